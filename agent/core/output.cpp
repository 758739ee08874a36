// SPDX-License-Identifier: Apache-2.0
#include "core/output.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <type_traits>

#include "tide/platform.h"
#include "tide/status.h"

namespace tide::agent {
namespace {

constexpr Time kHeartbeatPeriod = 100'000'000;
constexpr tide_priority_t kControlPriority = TIDE_PRIORITY(TIDE_LEVEL_MAXIMUM, 255);

size_t total_bytes(const Limits &limits) {
  size_t total = 0;
  for (const NodeClass &entry : limits.nodes) total += size_t{entry.node_bytes} * entry.count;
  return total;
}

size_t total_nodes(const Limits &limits) {
  size_t total = 0;
  for (const NodeClass &entry : limits.nodes) total += entry.count;
  return total;
}

constexpr size_t kAlignment = alignof(std::max_align_t);

template <typename Type>
size_t bytes_of(size_t count) {
  static_assert(std::is_trivially_destructible_v<Type> && alignof(Type) <= kAlignment);
  return (count * sizeof(Type) + kAlignment - 1) / kAlignment * kAlignment;
}

template <typename Type>
std::span<Type> take(uint8_t *&place, size_t count) {
  auto *first = reinterpret_cast<Type *>(place);
  std::uninitialized_value_construct_n(first, count);
  place += bytes_of<Type>(count);
  return {first, count};
}

size_t total_memory(const Limits &limits) {
  const size_t nodes = total_nodes(limits);
  return bytes_of<tide_node_t>(nodes) + 2 * bytes_of<tide_queue_entry_t *>(nodes) +
         bytes_of<tide_output_stream_t>(limits.output_streams) + total_bytes(limits);
}

}  // namespace

Output::Output(const Limits &limits, uint8_t session, uint32_t key, uint32_t message_bytes, Time heartbeat_delay_ns,
               OnDone on_done)
    : on_done_(std::move(on_done)), memory_(std::make_unique_for_overwrite<uint8_t[]>(total_memory(limits))) {
  uint8_t *place = memory_.get();
  nodes_ = take<tide_node_t>(place, total_nodes(limits));
  execution_ = take<tide_queue_entry_t *>(place, nodes_.size());
  pending_ = take<tide_queue_entry_t *>(place, nodes_.size());
  streams_ = take<tide_output_stream_t>(place, limits.output_streams);
  for (const NodeClass &entry : limits.nodes) {
    if (entry.count == 0) continue;
    classes_.push_back({place, entry.node_bytes, entry.count});
    place += size_t{entry.node_bytes} * entry.count;
  }
  tide_transmitter_config_t config{};
  config.nodes = nodes_.data();
  config.execution_storage = execution_.data();
  config.pending_storage = pending_.data();
  config.node_count = nodes_.size();
  config.classes = classes_.data();
  config.class_count = classes_.size();
  config.streams = streams_.data();
  config.stream_count = streams_.size();
  config.message_bytes = std::min(message_bytes, limits.message_bytes) & ~3u;
  config.window = 16;
  config.heartbeat_delay_ns = heartbeat_delay_ns;
  config.heartbeat_period_ns = kHeartbeatPeriod;
  config.on_done = done;
  config.context = this;
  tide_transmitter_init(&transmitter_, &config);
  tide_transmitter_set_session(&transmitter_, session, key);
}

void Output::done(void *context, tide_node_t *node, tide_node_outcome_t outcome) {
  auto *output = static_cast<Output *>(context);
  output->on_done_(node->owner, outcome);
}

bool Output::is_clear(uint8_t id) const {
  const auto used = streams_.first(transmitter_.stream_places);
  const auto stream = std::find_if(used.begin(), used.end(), [id](const auto &one) { return one.id == id; });
  if (stream == used.end()) return true;
  if (!TIDE_STREAM_IS_RELIABLE(id)) return stream->queued == 0;
  return stream->sending == nullptr &&
         static_cast<uint16_t>(stream->next_to_send - stream->first_unacknowledged) < transmitter_.config.window;
}

int Output::submit(uint8_t stream, uint8_t id, uint8_t flags, Bytes head, Bytes body, void *owner, Time now) {
  const size_t body_bytes = head.size() + body.size();
  if (body_bytes > UINT16_MAX) return TIDE_ERROR_TOO_LARGE;
  const auto length = static_cast<uint32_t>(TIDE_XRCE_SUBMESSAGE_HEADER_BYTES + body_bytes);
  tide_node_t *node = nullptr;
  const int status =
      tide_transmitter_acquire(&transmitter_, length, TIDE_PRIORITY(TIDE_STREAM_LEVEL(stream), 0), &node);
  if (status < 0) return status;
  tide_xrce_put_submessage_header(node->bytes, id, flags, static_cast<uint16_t>(body_bytes));
  uint8_t *place = node->bytes + TIDE_XRCE_SUBMESSAGE_HEADER_BYTES;
  if (!head.empty()) std::memcpy(place, head.data(), head.size());
  if (!body.empty()) std::memcpy(place + head.size(), body.data(), body.size());
  node->length = length;
  node->expires_ns = TIDE_FOREVER;
  node->owner = owner;
  if (!submitted_ns_.empty()) submitted_ns_[static_cast<size_t>(node - nodes_.data())] = now;
  return tide_transmitter_submit(&transmitter_, node, stream, now);
}

std::vector<Output::Unacknowledged> Output::take_back() {
  std::vector<Unacknowledged> taken;
  for (tide_node_t *node = tide_transmitter_take_back(&transmitter_); node != nullptr; node = node->next_in_stream) {
    taken.push_back({node->owner, {node->bytes, node->length}});
  }
  return taken;
}

int Output::submit_control(uint8_t id, Bytes body) {
  std::array<uint8_t, 40> submessage;
  if (body.size() + TIDE_XRCE_SUBMESSAGE_HEADER_BYTES > submessage.size()) return TIDE_ERROR_TOO_LARGE;
  tide_xrce_put_submessage_header(submessage.data(), id, TIDE_XRCE_FLAG_LITTLE_ENDIAN,
                                  static_cast<uint16_t>(body.size()));
  std::memcpy(submessage.data() + TIDE_XRCE_SUBMESSAGE_HEADER_BYTES, body.data(), body.size());
  return tide_transmitter_submit_control(&transmitter_, submessage.data(),
                                         body.size() + TIDE_XRCE_SUBMESSAGE_HEADER_BYTES, 0xFF, kControlPriority);
}

}  // namespace tide::agent
