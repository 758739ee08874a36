// SPDX-License-Identifier: Apache-2.0
// The streams of one client's session, with bounded memory. Input receives: it orders messages, keeps early ones, and
// reassembles fragments. Output sends: it contains a transmitter and its memory.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/limits.h"
#include "core/middleware.h"
#include "tide/stream.h"
#include "tide/transmitter.h"
#include "tide/xrce.h"

namespace tide::agent {

constexpr size_t kRequestBytes = 4;  // size of the request id and object id at the start of most bodies

inline bool is_big_endian(const tide_xrce_submessage_t &submessage) {
  return (submessage.flags & TIDE_XRCE_FLAG_LITTLE_ENDIAN) == 0;
}

// A reader of the body, in the byte order that the flags give.
inline tide_cdr_t reader_of(const tide_xrce_submessage_t &submessage) {
  tide_cdr_t cdr;
  tide_cdr_reader(&cdr, submessage.body, submessage.body_bytes, is_big_endian(submessage));
  return cdr;
}

// Builds a short body of a submessage, little-endian.
class Encoded {
 public:
  template <typename Put, typename Value> Encoded(Put put, const Value &value) {
    tide_cdr_t cdr;
    tide_cdr_writer(&cdr, octets_.data(), octets_.size());
    put(&cdr, &value);
    length_ = cdr.position;
  }
  operator Bytes() const { return {octets_.data(), length_}; }

 private:
  std::array<uint8_t, 36> octets_;
  size_t length_;
};

// A submessage that cannot be processed now blocks its stream. Messages of a blocked reliable stream are not
// acknowledged, so the client waits. Those of a blocked best-effort stream are kept as long as there is memory.
class Input {
 public:
  // Returns false if the submessage cannot be processed now; resume offers it again.
  using OnSubmessage = std::function<bool(uint8_t stream, const tide_xrce_submessage_t &)>;
  // Reports a fragmented submessage that is refused, with the part that was received and the cause.
  using OnRefused = std::function<void(uint8_t stream, const tide_xrce_submessage_t &, const char *cause)>;
  using OnProgress = std::function<void(const tide_input_stream_t &)>;

  Input(const Limits &limits, Counters &counters, OnSubmessage on_submessage, OnRefused on_refused);

  // Handles a message of a stream other than 0. Returns the stream if it must be acknowledged; null for a best-effort
  // stream, or if the limit of streams is reached.
  const tide_input_stream_t *message(const tide_xrce_header_t &header, Bytes message);
  const tide_input_stream_t *heartbeat(const tide_xrce_heartbeat_t &heartbeat);
  // Handles a submessage without a stream as if it had arrived on this best-effort stream.
  void submessage(uint8_t stream, const tide_xrce_submessage_t &submessage);

  // Offers blocked submessages again. Calls on_progress for each stream that must be acknowledged.
  void resume(const OnProgress &on_progress);
  bool is_stalled() const { return stalled_streams_ != 0; }
  bool is_stalled(uint8_t stream) const;
  // Number of messages of best-effort streams that were never received.
  uint64_t gaps() const;
  // Sequence number of the message that is being processed.
  uint16_t sequence(uint8_t stream) const;

 private:
  struct Stream {
    tide_input_stream_t state{};
    std::array<std::vector<uint8_t>, TIDE_STREAM_WINDOW_MAXIMUM> held;
    std::vector<uint8_t> fragments;
    bool skip_fragments = false;                // true: drop the remaining fragments of the current submessage
    std::vector<std::vector<uint8_t>> waiting;  // of a blocked stream: the rest of message state.next, and later
                                                // messages in order; else empty
  };

  Stream *find(uint8_t id);
  void deliver(Stream &stream, Bytes message);
  void deliver_held(Stream &stream);
  void process(Stream &stream, Bytes submessages);
  void offer(Stream &stream, const tide_xrce_submessage_t &submessage, Bytes rest);
  void wait(Stream &stream, std::vector<uint8_t> rest);
  void fragment(Stream &stream, const tide_xrce_submessage_t &submessage);
  void refuse_fragments(Stream &stream, const char *cause);
  void check() const;

  const Limits &limits_;
  Counters &counters_;
  OnSubmessage on_submessage_;
  OnRefused on_refused_;
  std::vector<std::unique_ptr<Stream>> streams_;
  size_t held_bytes_ = 0;
  size_t fragment_bytes_ = 0;
  size_t stalled_streams_ = 0;
};

class Output {
 public:
  using OnDone = std::function<void(void *owner, tide_node_outcome_t outcome)>;

  // message_bytes: the size that the client has announced, at least 64. heartbeat_delay_ns: at least -1.
  Output(const Limits &limits, uint8_t session, uint32_t key, uint32_t message_bytes, Time heartbeat_delay_ns,
         OnDone on_done);
  Output(const Output &) = delete;
  Output &operator=(const Output &) = delete;

  tide_transmitter_t &transmitter() { return transmitter_; }
  const tide_transmitter_t &transmitter() const { return transmitter_; }
  // From now on, records the time at which each message is submitted.
  void keep_times() { submitted_ns_.resize(nodes_.size()); }
  // Time at which the message of this node was submitted, if keep_times was called before.
  Time submitted_ns(const tide_node_t &node) const { return submitted_ns_[static_cast<size_t>(&node - nodes_.data())]; }
  size_t node_count() const { return nodes_.size(); }
  // True if a message that is submitted to the stream now would be the next one sent on it, without waiting for an
  // acknowledgment.
  bool is_clear(uint8_t stream) const;

  // Submits a submessage with the body `head` and `body` on a stream. `owner` is passed to on_done. Returns a
  // tide_status_t.
  int submit(uint8_t stream, uint8_t id, uint8_t flags, Bytes head, Bytes body, void *owner, Time now);
  // Submits a short submessage on stream 0.
  int submit_control(uint8_t id, Bytes body);

  struct Unacknowledged {
    void *owner;
    Bytes submessage;  // with its header; valid as long as the output exists
  };
  // Ends all streams and returns the unacknowledged messages of reliable ones, in order.
  std::vector<Unacknowledged> take_back();

 private:
  OnDone on_done_;
  // The transmitter works in one block of memory, so that clients that come and go do not fragment the heap. The block
  // begins with the arrays to which the following members refer, and ends with the octets of the nodes, whose pages are
  // touched only when the nodes are used.
  std::unique_ptr<uint8_t[]> memory_;
  std::span<tide_node_t> nodes_;
  std::span<tide_output_stream_t> streams_;
  std::vector<Time> submitted_ns_;  // indexed by node; empty if not recorded
  std::vector<tide_size_class_t> classes_;
  tide_transmitter_t transmitter_{};
};

}  // namespace tide::agent
