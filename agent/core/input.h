// SPDX-License-Identifier: Apache-2.0
// The receiving half of one client's streams: order, early messages, reassembly of fragments; all of it bounded. A
// stream whose submessage cannot be taken now stands still: a reliable one is not acknowledged, so the client waits;
// what comes on a best-effort one is kept as long as there is room.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/limits.h"
#include "core/middleware.h"
#include "tide/stream.h"
#include "tide/xrce.h"

namespace tide::agent {

class Input {
 public:
  // False: not now. Offered again by resume.
  using OnSubmessage = std::function<bool(uint8_t stream, const tide_xrce_submessage_t &)>;
  // A submessage that was put together and is not what its header says, or too long; what is there of its body.
  using OnRefused = std::function<void(uint8_t stream, const tide_xrce_submessage_t &)>;
  using OnProgress = std::function<void(const tide_input_stream_t &)>;

  Input(const Limits &limits, Counters &counters, OnSubmessage on_submessage, OnRefused on_refused);

  // A message of a stream (not 0). The reliable state to acknowledge, or null (best effort, no room for the stream).
  const tide_input_stream_t *message(const tide_xrce_header_t &header, Bytes message);
  const tide_input_stream_t *heartbeat(const tide_xrce_heartbeat_t &heartbeat);

  // One that belongs to no stream: taken as if it came on a best-effort stream of this id.
  void submessage(uint8_t stream, const tide_xrce_submessage_t &submessage);

  // Offer again what was not taken. on_progress: a stream moves on, to be acknowledged.
  void resume(const OnProgress &on_progress);
  bool is_stalled() const { return stalled_streams_ != 0; }
  bool is_stalled(uint8_t stream) const;
  // Messages of best-effort streams that never came.
  uint64_t gaps() const;
  // Of the message that is being given on: its number in the stream.
  uint16_t sequence(uint8_t stream) const;

 private:
  struct Stream {
    tide_input_stream_t state{};
    std::array<std::vector<uint8_t>, TIDE_STREAM_WINDOW_MAXIMUM> held;
    std::vector<uint8_t> fragments;
    bool skip_fragments = false;                // until the next message starts
    std::vector<std::vector<uint8_t>> waiting;  // what is left of the message state.next, in order; empty: not stalled
  };

  Stream *find(uint8_t id);
  void deliver(Stream &stream, Bytes message);
  void deliver_in_order(Stream &stream, Bytes message);
  void process(Stream &stream, Bytes submessages);
  void offer(Stream &stream, const tide_xrce_submessage_t &submessage, Bytes rest);
  void wait(Stream &stream, std::vector<uint8_t> rest);
  void deliver_held(Stream &stream);
  void hold(Stream &stream, uint16_t sequence, Bytes message);
  void fragment(Stream &stream, const tide_xrce_submessage_t &submessage);
  bool has_room(const Stream &stream, const tide_xrce_submessage_t &submessage) const;
  void finish_fragments(Stream &stream);
  void refuse_fragments(Stream &stream);
  void drop_fragments(Stream &stream);
  void check() const;  // that the sums are those of the streams

  const Limits &limits_;
  Counters &counters_;
  OnSubmessage on_submessage_;
  OnRefused on_refused_;
  std::vector<std::unique_ptr<Stream>> streams_;
  size_t held_bytes_ = 0;
  size_t fragment_bytes_ = 0;
  size_t stalled_streams_ = 0;
};

}  // namespace tide::agent
