// SPDX-License-Identifier: Apache-2.0
// One end of a line: a transmitter and a receiver with their own memory, for the tests of the daemon's pools.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "daemon_memory.h"
#include "tide/framing.h"
#include "tide/platform.h"
#include "tide/receiver.h"
#include "tide/status.h"
#include "tide/transmitter.h"

namespace peer {

using Bytes = std::vector<uint8_t>;

inline Bytes flatten(const tide_frame_parts_t &frame) {
  Bytes bytes(frame.head, frame.head + frame.head_bytes);
  bytes.insert(bytes.end(), frame.body, frame.body + frame.body_bytes);
  bytes.insert(bytes.end(), frame.tail, frame.tail + frame.tail_bytes);
  return bytes;
}

// A submessage: header, then the body.
inline Bytes submessage(uint8_t id, const Bytes &body, uint8_t flags = TIDE_XRCE_FLAG_LITTLE_ENDIAN) {
  Bytes bytes(4);
  tide_xrce_put_submessage_header(bytes.data(), id, flags, static_cast<uint16_t>(body.size()));
  bytes.insert(bytes.end(), body.begin(), body.end());
  return bytes;
}

inline Bytes message(uint8_t stream, uint16_t sequence, const std::vector<Bytes> &submessages, uint8_t session = 0x81) {
  Bytes bytes(8);
  const tide_xrce_header_t header{session, stream, sequence, 0};
  bytes.resize(tide_xrce_put_header(bytes.data(), &header));
  for (const Bytes &each : submessages) {
    bytes.resize((bytes.size() + 3) / 4 * 4);
    bytes.insert(bytes.end(), each.begin(), each.end());
  }
  return bytes;
}

inline Bytes heartbeat(uint8_t stream, uint16_t first, uint16_t last) {
  Bytes body(5);
  tide_cdr_t cdr;
  tide_cdr_writer(&cdr, body.data(), body.size());
  const tide_xrce_heartbeat_t fields{first, last, stream};
  tide_xrce_put_heartbeat(&cdr, &fields);
  return message(0, 0, {submessage(TIDE_XRCE_HEARTBEAT, body)});
}

inline Bytes fragment(const Bytes &part, bool last) {
  return submessage(TIDE_XRCE_FRAGMENT, part,
                    static_cast<uint8_t>(TIDE_XRCE_FLAG_LITTLE_ENDIAN | (last ? TIDE_XRCE_FLAG_LAST_FRAGMENT : 0)));
}

inline std::vector<Bytes> cut(const Bytes &whole, size_t part) {
  std::vector<Bytes> parts;
  for (size_t at = 0; at < whole.size(); at += part) {
    const size_t end = std::min(at + part, whole.size());
    parts.push_back(fragment({whole.begin() + long(at), whole.begin() + long(end)}, end == whole.size()));
  }
  return parts;
}

using Class = DaemonMemory::Class;

class Transmitter {
 public:
  explicit Transmitter(const std::vector<Class> &sizes,
                       const std::function<void(tide_transmitter_config_t &)> &adjust = {}, size_t stream_count = 8) {
    tide_transmitter_config_t config{};
    memory.give(config, {.classes = sizes, .streams = stream_count});
    config.message_bytes = 512;
    config.window = 16;
    config.heartbeat_delay_ns = -1;
    config.on_done = [](void *context, tide_node_t *node, tide_node_outcome_t outcome) {
      auto *self = static_cast<Transmitter *>(context);
      if (self->on_done) self->on_done(*node, outcome);
    };
    config.context = this;
    if (adjust) adjust(config);
    status = tide_transmitter_init(&core, &config);
  }
  Transmitter(const Transmitter &) = delete;

  int submit(uint8_t stream, const Bytes &bytes, tide_priority_t priority, int64_t now_ns = 0,
             int64_t expires_ns = TIDE_FOREVER, void *owner = nullptr, uint16_t writer = 0) {
    tide_node_t *node = nullptr;
    const int result =
        tide_transmitter_acquire_for(&core, static_cast<uint32_t>(bytes.size()), priority, writer, &node);
    if (result != TIDE_OK) return result;
    std::memcpy(node->bytes, bytes.data(), bytes.size());
    node->length = static_cast<uint32_t>(bytes.size());
    node->expires_ns = expires_ns;
    node->owner = owner;
    if (tide_transmitter_pack(&core, node, stream)) return TIDE_OK;
    return tide_transmitter_submit(&core, node, stream, now_ns);
  }

  // Returns the next frame; empty if no frame may be sent. The frame counts as sent when this returns.
  Bytes send(int64_t now_ns = 0) {
    tide_frame_parts_t frame;
    if (tide_transmitter_next(&core, now_ns, &frame) != 1) return {};
    Bytes bytes = flatten(frame);
    tide_transmitter_sent(&core, now_ns);
    return bytes;
  }

  void acknack(uint8_t stream, uint16_t first, uint16_t missing, int64_t now_ns = 0) {
    const tide_xrce_acknack_t body{first, missing, stream};
    tide_transmitter_on_acknack(&core, &body, now_ns);
  }

  tide_transmitter_t core{};
  int status = TIDE_ERROR_STATE;
  std::function<void(const tide_node_t &, tide_node_outcome_t)> on_done;
  DaemonMemory memory;
  std::vector<tide_node_t> &nodes = memory.nodes();
  std::vector<tide_output_stream_t> &streams = memory.output_streams();
};

struct Acknack {
  uint8_t stream;
  uint16_t first, missing;
  bool operator==(const Acknack &) const = default;
};

class Receiver {
 public:
  struct Options {
    size_t slots = 8;
    uint32_t slot_bytes = 512;
    size_t streams = 8;
    uint8_t window = 16;
    std::vector<uint32_t> reassemblies = {};
  };

  explicit Receiver(const Options &options)
      : slots(options.slots),
        reassemblies(options.reassemblies.size()),
        storage(options.slots * options.slot_bytes),
        noted(options.slots),
        streams(options.streams) {
    for (size_t i = 0; i < reassemblies.size(); ++i) {
      reassembly_bytes.emplace_back(options.reassemblies[i]);
      reassemblies[i].bytes = reassembly_bytes.back().data();
      reassemblies[i].capacity = options.reassemblies[i];
    }
    tide_receiver_config_t config{};
    config.slots = slots.data();
    config.slot_count = slots.size();
    config.storage = storage.data();
    config.slot_bytes = options.slot_bytes;
    config.noted_storage = noted.data();
    config.streams = streams.data();
    config.stream_count = streams.size();
    config.window = options.window;
    config.reassemblies = reassemblies.data();
    config.reassembly_count = reassemblies.size();
    config.context = this;
    config.priority_of = [](void *context, uint8_t stream, tide_xrce_request_t request,
                            tide_account_t **account) -> int32_t {
      auto *self = static_cast<Receiver *>(context);
      if (self->account_of) *account = self->account_of(request);
      return self->priority_of ? self->priority_of(stream, request) : TIDE_STREAM_LEVEL(stream) << 8;
    };
    config.on_submessage = [](void *context, const tide_delivery_t *delivery) {
      auto *self = static_cast<Receiver *>(context);
      if (self->on_submessage) self->on_submessage(*delivery);
    };
    config.on_control = [](void *context, const tide_delivery_t *delivery) {
      auto *self = static_cast<Receiver *>(context);
      if (self->on_control) self->on_control(*delivery);
    };
    config.on_acknowledge = [](void *context, uint8_t stream, uint16_t first, uint16_t missing) {
      auto *self = static_cast<Receiver *>(context);
      self->acknacks.push_back({stream, first, missing});
      if (self->on_acknowledge) self->on_acknowledge(stream, first, missing);
    };
    status = tide_receiver_init(&core, &config);
  }
  Receiver(const Receiver &) = delete;

  int arrive(const Bytes &bytes, int64_t now_ns = 0) { return commit(bytes, false, 0, now_ns); }
  int arrive_checked(const Bytes &bytes, uint16_t crc, int64_t now_ns = 0) { return commit(bytes, true, crc, now_ns); }
  int process() { return tide_receiver_process_most_urgent(&core); }
  // Processes frames until none is left.
  int process_all() {
    int count = 0;
    while (tide_receiver_most_urgent(&core) != TIDE_PRIORITY_NONE) count += process();
    return count;
  }
  size_t slots_in_use() const {
    size_t count = 0;
    for (const tide_slot_t &slot : slots)
      if (slot.state != 0) ++count;
    return count - 1;  // because one slot is always being filled
  }
  size_t reassemblies_in_use() const {
    size_t count = 0;
    for (const tide_reassembly_t &each : reassemblies)
      if (each.stream != 0) ++count;
    return count;
  }

  tide_receiver_t core{};
  int status = TIDE_ERROR_STATE;
  std::function<int32_t(uint8_t, tide_xrce_request_t)> priority_of;
  std::function<tide_account_t *(tide_xrce_request_t)> account_of;
  std::function<void(const tide_delivery_t &)> on_submessage, on_control;
  std::function<void(uint8_t, uint16_t, uint16_t)> on_acknowledge;
  std::vector<Acknack> acknacks;
  std::vector<tide_slot_t> slots;
  std::vector<tide_reassembly_t> reassemblies;

 private:
  int commit(const Bytes &bytes, bool verify, uint16_t crc, int64_t now_ns) {
    std::copy(bytes.begin(), bytes.end(), tide_receiver_claim(&core));
    return tide_receiver_commit(&core, static_cast<uint16_t>(bytes.size()), verify, crc, now_ns);
  }

  std::vector<uint8_t> storage;
  std::vector<tide_queue_entry_t *> noted;
  std::vector<tide_input_stream_t> streams;
  std::vector<Bytes> reassembly_bytes;
};

}  // namespace peer
