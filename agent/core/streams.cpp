// SPDX-License-Identifier: Apache-2.0
#include "core/streams.h"

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "tide/invariant.h"
#include "tide/platform.h"
#include "tide/priority.h"
#include "tide/status.h"

namespace tide::agent {

// ---- receiving ----

namespace {

// Most octets of padding after a submessage, to a multiple of 4.
constexpr size_t kPaddingMaximum = 3;
constexpr size_t kSubmessageMaximum = TIDE_XRCE_SUBMESSAGE_HEADER_BYTES + UINT16_MAX + kPaddingMaximum;
constexpr size_t kWriteBytes = TIDE_XRCE_SUBMESSAGE_HEADER_BYTES + kRequestBytes;

// True for a WRITE_DATA that announces the length 0. As in the stock client, its length exceeds the 16 bits of the
// header, and it ends with the last fragment. A WRITE_DATA is never really empty, because each body begins with two
// ids.
bool has_no_length(Bytes submessage) {
  return submessage.size() >= kWriteBytes && submessage[0] == TIDE_XRCE_WRITE_DATA && submessage[2] == 0 &&
         submessage[3] == 0;
}

tide_xrce_submessage_t whole_of(Bytes submessage) {
  tide_xrce_submessage_t result{};
  result.id = submessage[0];
  result.flags = submessage[1];
  result.body = submessage.data() + TIDE_XRCE_SUBMESSAGE_HEADER_BYTES;
  result.body_bytes = submessage.size() - TIDE_XRCE_SUBMESSAGE_HEADER_BYTES;
  return result;
}

// The message from the next aligned position on.
Bytes rest_of(Bytes message, size_t position) {
  return message.subspan(std::min((position + 3u) & ~size_t{3}, message.size()));
}

int next_submessage(Bytes message, size_t *position, tide_xrce_submessage_t *submessage) {
  const Bytes rest = rest_of(message, *position);
  if (!has_no_length(rest)) return tide_xrce_next_submessage(message.data(), message.size(), position, submessage);
  *submessage = whole_of(rest);
  *position = message.size();
  return 1;
}

}  // namespace

Input::Input(const Limits &limits, Counters &counters, OnSubmessage on_submessage, OnRefused on_refused)
    : limits_(limits),
      counters_(counters),
      on_submessage_(std::move(on_submessage)),
      on_refused_(std::move(on_refused)) {}

// Returns null if the limit of streams is reached.
Input::Stream *Input::find(uint8_t id) {
  for (const auto &stream : streams_) {
    if (stream->state.id == id) return stream.get();
  }
  if (streams_.size() >= limits_.input_streams) {
    counters_.streams_refused++;
    return nullptr;
  }
  streams_.push_back(std::make_unique<Stream>());
  tide_input_stream_init(&streams_.back()->state, id, TIDE_STREAM_WINDOW_MAXIMUM);
  return streams_.back().get();
}

const tide_input_stream_t *Input::message(const tide_xrce_header_t &header, Bytes message) {
  Stream *stream = find(header.stream);
  if (stream == nullptr) return nullptr;
  switch (tide_input_stream_arrive(&stream->state, header.sequence)) {
    case TIDE_STREAM_DELIVER:
      deliver(*stream, message);
      deliver_held(*stream);
      break;
    case TIDE_STREAM_HOLD:
      if (held_bytes_ + message.size() > limits_.held_bytes) {
        counters_.held_dropped++;
        tide_input_stream_forget(&stream->state, header.sequence);
      } else {
        stream->held[header.sequence % TIDE_STREAM_WINDOW_MAXIMUM].assign(message.begin(), message.end());
        held_bytes_ += message.size();
      }
      break;
    case TIDE_STREAM_DUPLICATE: counters_.duplicates++; break;
    case TIDE_STREAM_OUTSIDE: counters_.outside_window++; break;
  }
  check();
  return TIDE_STREAM_IS_RELIABLE(header.stream) ? &stream->state : nullptr;
}

const tide_input_stream_t *Input::heartbeat(const tide_xrce_heartbeat_t &heartbeat) {
  if (!TIDE_STREAM_IS_RELIABLE(heartbeat.stream)) return nullptr;
  Stream *stream = find(heartbeat.stream);
  if (stream == nullptr) return nullptr;
  const uint16_t before = stream->state.next;
  const uint16_t given_up = tide_input_stream_heartbeat(&stream->state, heartbeat.first_unacknowledged, heartbeat.last);
  if (given_up == 0) return &stream->state;
  // The client no longer has these messages, so a submessage with fragments in them is lost.
  counters_.given_up += given_up;
  fragment_bytes_ -= stream->fragments.size();
  stream->fragments.clear();
  stream->skip_fragments = true;
  for (uint16_t skipped = 0; skipped < given_up && skipped < TIDE_STREAM_WINDOW_MAXIMUM; skipped++) {
    std::vector<uint8_t> &held = stream->held[(before + skipped) % TIDE_STREAM_WINDOW_MAXIMUM];
    held_bytes_ -= held.size();
    held.clear();
  }
  deliver_held(*stream);
  check();
  return &stream->state;
}

void Input::submessage(uint8_t stream_id, const tide_xrce_submessage_t &submessage) {
  Stream *stream = find(stream_id);
  if (stream == nullptr) return;
  const uint8_t *start = submessage.body - TIDE_XRCE_SUBMESSAGE_HEADER_BYTES;
  process(*stream, {start, TIDE_XRCE_SUBMESSAGE_HEADER_BYTES + submessage.body_bytes});
}

void Input::resume(const OnProgress &on_progress) {
  for (const auto &stream : streams_) {
    if (stream->waiting.empty()) continue;
    std::vector<std::vector<uint8_t>> parts;
    parts.swap(stream->waiting);
    stalled_streams_--;
    for (std::vector<uint8_t> &part : parts) {
      held_bytes_ -= part.size();
      if (stream->waiting.empty()) {
        process(*stream, part);
      } else {
        wait(*stream, std::move(part));
      }
    }
    if (!stream->waiting.empty() || !TIDE_STREAM_IS_RELIABLE(stream->state.id)) continue;
    tide_input_stream_advance(&stream->state);
    deliver_held(*stream);
    on_progress(stream->state);
  }
  check();
}

bool Input::is_stalled(uint8_t stream_id) const {
  return std::any_of(streams_.begin(), streams_.end(), [stream_id](const auto &stream) {
    return stream->state.id == stream_id && !stream->waiting.empty();
  });
}

uint64_t Input::gaps() const {
  uint64_t gaps = 0;
  for (const auto &stream : streams_) {
    if (!TIDE_STREAM_IS_RELIABLE(stream->state.id)) gaps += stream->state.gaps;
  }
  return gaps;
}

uint16_t Input::sequence(uint8_t stream) const {
  const auto found =
      std::find_if(streams_.begin(), streams_.end(), [stream](const auto &one) { return one->state.id == stream; });
  return found == streams_.end() ? uint16_t{0} : (*found)->state.next;
}

// Delivers the next message of the stream. If a part of a reliable message has to wait, the message is marked as held:
// it is not acknowledged, and not requested again.
void Input::deliver(Stream &stream, Bytes message) {
  tide_xrce_header_t header;
  const int header_bytes = tide_xrce_get_header(message.data(), message.size(), &header);
  if (header_bytes >= 0) process(stream, message.subspan(static_cast<size_t>(header_bytes)));
  if (stream.waiting.empty() || !TIDE_STREAM_IS_RELIABLE(stream.state.id)) {
    tide_input_stream_advance(&stream.state);
  } else {
    stream.state.held |= 1u;
  }
}

void Input::deliver_held(Stream &stream) {
  while (stream.waiting.empty() && (stream.state.held & 1u) != 0u) {
    std::vector<uint8_t> message;
    message.swap(stream.held[stream.state.next % TIDE_STREAM_WINDOW_MAXIMUM]);
    held_bytes_ -= message.size();
    deliver(stream, message);
  }
}

// Processes submessages up to the first one that has to wait; this one and all later ones then wait.
void Input::process(Stream &stream, Bytes submessages) {
  size_t position = 0;
  tide_xrce_submessage_t submessage;
  int more = 1;
  while (stream.waiting.empty()) {
    const Bytes rest = rest_of(submessages, position);
    more = next_submessage(submessages, &position, &submessage);
    if (more != 1) break;
    if (submessage.id == TIDE_XRCE_FRAGMENT) {
      fragment(stream, submessage);
    } else {
      stream.skip_fragments = false;
      offer(stream, submessage, rest);
      if (!stream.waiting.empty()) return;
    }
  }
  if (more < 0) counters_.malformed++;
  const Bytes behind = rest_of(submessages, position);
  if (stream.waiting.empty() || behind.empty()) return;
  if (TIDE_STREAM_IS_RELIABLE(stream.state.id) || held_bytes_ + behind.size() <= limits_.held_bytes) {
    wait(stream, {behind.begin(), behind.end()});
  } else {
    counters_.held_dropped++;
  }
}

// Offers a submessage to the client; if it must wait, stores `rest`, the message from this submessage on.
void Input::offer(Stream &stream, const tide_xrce_submessage_t &submessage, Bytes rest) {
  if (on_submessage_(stream.state.id, submessage)) return;
  if (held_bytes_ + rest.size() <= limits_.held_bytes + (has_no_length(rest) ? limits_.sample_bytes : 0)) {
    wait(stream, {rest.begin(), rest.end()});
  } else {
    counters_.held_dropped++;
  }
}

void Input::wait(Stream &stream, std::vector<uint8_t> rest) {
  if (stream.waiting.empty()) stalled_streams_++;
  held_bytes_ += rest.size();
  stream.waiting.push_back(std::move(rest));
}

void Input::fragment(Stream &stream, const tide_xrce_submessage_t &submessage) {
  const bool last = (submessage.flags & TIDE_XRCE_FLAG_LAST_FRAGMENT) != 0;
  if (!TIDE_STREAM_IS_RELIABLE(stream.state.id)) {
    counters_.fragments_dropped++;
    return;
  }
  // One sample without an announced length may have up to sample_bytes; this is not counted with the memory for all
  // other reassemblies.
  std::vector<uint8_t> &fragments = stream.fragments;
  const Bytes body = {submessage.body, submessage.body_bytes};
  const size_t bytes = fragments.size() + body.size();
  const bool is_long = has_no_length(fragments.empty() ? body : Bytes{fragments}) && bytes > kSubmessageMaximum;
  const size_t extra = is_long ? limits_.sample_bytes : 0;
  const bool is_too_long = bytes > (is_long ? kWriteBytes + limits_.sample_bytes : kSubmessageMaximum);
  const bool has_memory = fragment_bytes_ + body.size() <= limits_.reassembly_bytes + extra;
  if (!stream.skip_fragments && (is_too_long || !has_memory)) {
    refuse_fragments(stream, is_too_long ? "it is too long; see --max-sample"
                                         : "the fragments of several long messages exceed the memory for them");
    stream.skip_fragments = true;
  }
  if (stream.skip_fragments) {
    counters_.fragments_dropped++;
    stream.skip_fragments = !last;
    return;
  }
  fragments.insert(fragments.end(), body.begin(), body.end());
  fragment_bytes_ += body.size();
  if (!last) return;
  size_t position = 0;
  tide_xrce_submessage_t whole;
  // If a client announces the length modulo 65536, the announced length is only a part of the submessage, which is
  // refused.
  if (next_submessage(fragments, &position, &whole) != 1 || whole.id == TIDE_XRCE_FRAGMENT ||
      fragments.size() - position > kPaddingMaximum) {
    refuse_fragments(stream, "its length is not the one that it announces");
    return;
  }
  const std::vector<uint8_t> taken = std::exchange(fragments, {});
  fragment_bytes_ -= taken.size();
  offer(stream, whole, taken);
}

void Input::refuse_fragments(Stream &stream, const char *cause) {
  counters_.fragmented_refused++;
  const std::vector<uint8_t> refused = std::exchange(stream.fragments, {});
  fragment_bytes_ -= refused.size();
  if (refused.size() >= TIDE_XRCE_SUBMESSAGE_HEADER_BYTES) on_refused_(stream.state.id, whole_of(refused), cause);
}

// Checks that the counters of bytes and of blocked streams agree with the sums over the streams.
void Input::check() const {
#if TIDE_INVARIANTS
  size_t held = 0, fragments = 0, stalled = 0;
  for (const auto &stream : streams_) {
    for (size_t i = 0; i < stream->held.size(); i++) {
      const std::vector<uint8_t> &message = stream->held[(stream->state.next + i) % stream->held.size()];
      held += message.size();
      TIDE_INVARIANT(message.empty() || (stream->state.held >> i & 1u) != 0);
    }
    for (const auto &part : stream->waiting) held += part.size();
    fragments += stream->fragments.size();
    stalled += stream->waiting.empty() ? 0 : 1;
    TIDE_INVARIANT(stream->fragments.size() <= kSubmessageMaximum || has_no_length(stream->fragments));
  }
  TIDE_INVARIANT(held == held_bytes_);
  TIDE_INVARIANT(fragments == fragment_bytes_ && fragments <= limits_.reassembly_bytes + limits_.sample_bytes);
  TIDE_INVARIANT(stalled == stalled_streams_ && streams_.size() <= limits_.input_streams);
#endif
}

// ---- sending ----

namespace {

constexpr Time kHeartbeatPeriod = 100'000'000;
constexpr tide_priority_t kControlPriority = TIDE_PRIORITY(TIDE_LEVEL_MAXIMUM, 255);
constexpr size_t kAlignment = alignof(std::max_align_t);

template <typename Type> size_t bytes_of(size_t count) {
  static_assert(std::is_trivially_destructible_v<Type> && alignof(Type) <= kAlignment);
  return (count * sizeof(Type) + kAlignment - 1) / kAlignment * kAlignment;  // NOLINT(bugprone-sizeof-expression)
}

template <typename Type> std::span<Type> take(uint8_t *&memory, size_t count) {
  auto *first = reinterpret_cast<Type *>(memory);
  std::uninitialized_value_construct_n(first, count);
  memory += bytes_of<Type>(count);
  return {first, count};
}

}  // namespace

Output::Output(const Limits &limits, uint8_t session, uint32_t key, uint32_t message_bytes, Time heartbeat_delay_ns,
               OnDone on_done)
    : on_done_(std::move(on_done)) {
  size_t nodes = 0, octets = 0;
  for (const NodeClass &entry : limits.nodes) {
    nodes += entry.count;
    octets += size_t{entry.node_bytes} * entry.count;
  }
  memory_ = std::make_unique_for_overwrite<uint8_t[]>(bytes_of<tide_node_t>(nodes) +
                                                      2 * bytes_of<tide_queue_entry_t *>(nodes) +
                                                      bytes_of<tide_output_stream_t>(limits.output_streams) + octets);
  uint8_t *memory = memory_.get();
  nodes_ = take<tide_node_t>(memory, nodes);
  const auto execution = take<tide_queue_entry_t *>(memory, nodes), pending = take<tide_queue_entry_t *>(memory, nodes);
  streams_ = take<tide_output_stream_t>(memory, limits.output_streams);
  for (const NodeClass &entry : limits.nodes) {
    if (entry.count == 0) continue;
    classes_.push_back({memory, entry.node_bytes, entry.count});
    memory += size_t{entry.node_bytes} * entry.count;
  }
  tide_transmitter_config_t config{};
  config.nodes = nodes_.data();
  config.execution_storage = execution.data();
  config.pending_storage = pending.data();
  config.node_count = nodes;
  config.classes = classes_.data();
  config.class_count = classes_.size();
  config.streams = streams_.data();
  config.stream_count = streams_.size();
  config.message_bytes = std::min(message_bytes, limits.message_bytes) & ~3u;
  config.window = 16;
  config.heartbeat_delay_ns = heartbeat_delay_ns;
  config.heartbeat_period_ns = kHeartbeatPeriod;
  config.on_done = [](void *context, tide_node_t *node, tide_node_outcome_t outcome) {
    static_cast<Output *>(context)->on_done_(node->owner, outcome);
  };
  config.context = this;
  tide_transmitter_init(&transmitter_, &config);
  tide_transmitter_set_session(&transmitter_, session, key);
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
  std::copy(head.begin(), head.end(), node->bytes + TIDE_XRCE_SUBMESSAGE_HEADER_BYTES);
  std::copy(body.begin(), body.end(), node->bytes + TIDE_XRCE_SUBMESSAGE_HEADER_BYTES + head.size());
  node->length = length;
  node->expires_ns = TIDE_FOREVER;
  node->owner = owner;
  if (!submitted_ns_.empty()) submitted_ns_[static_cast<size_t>(node - nodes_.data())] = now;
  return tide_transmitter_submit(&transmitter_, node, stream, now);
}

int Output::submit_control(uint8_t id, Bytes body) {
  std::array<uint8_t, 40> submessage;
  if (body.size() + TIDE_XRCE_SUBMESSAGE_HEADER_BYTES > submessage.size()) return TIDE_ERROR_TOO_LARGE;
  tide_xrce_put_submessage_header(submessage.data(), id, TIDE_XRCE_FLAG_LITTLE_ENDIAN,
                                  static_cast<uint16_t>(body.size()));
  std::copy(body.begin(), body.end(), submessage.begin() + TIDE_XRCE_SUBMESSAGE_HEADER_BYTES);
  return tide_transmitter_submit_control(&transmitter_, submessage.data(),
                                         body.size() + TIDE_XRCE_SUBMESSAGE_HEADER_BYTES, 0xFF, kControlPriority);
}

std::vector<Output::Unacknowledged> Output::take_back() {
  std::vector<Unacknowledged> taken;
  for (tide_node_t *node = tide_transmitter_take_back(&transmitter_); node != nullptr; node = node->next_in_stream) {
    taken.push_back({node->owner, {node->bytes, node->length}});
  }
  return taken;
}

}  // namespace tide::agent
