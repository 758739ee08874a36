// SPDX-License-Identifier: Apache-2.0
// The sending half of one client: a transmitter and the memory it works in.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/limits.h"
#include "core/middleware.h"
#include "tide/transmitter.h"

namespace tide::agent {

class Output {
 public:
  using OnDone = std::function<void(void *owner, tide_node_outcome_t outcome)>;

  // message_bytes: 64 or more; what the client announced. heartbeat_delay_ns: -1 or more.
  Output(const Limits &limits, uint8_t session, uint32_t key, uint32_t message_bytes, Time heartbeat_delay_ns,
         OnDone on_done);
  Output(const Output &) = delete;
  Output &operator=(const Output &) = delete;

  tide_transmitter_t &transmitter() { return transmitter_; }
  const tide_transmitter_t &transmitter() const { return transmitter_; }
  // From here on it is kept when messages are submitted.
  void keep_times() { submitted_ns_.resize(nodes_.size()); }
  // When this node's message was submitted; after keep_times.
  Time submitted_ns(const tide_node_t &node) const { return submitted_ns_[static_cast<size_t>(&node - nodes_.data())]; }
  size_t node_count() const { return nodes_.size(); }
  // What is submitted to this stream now would leave before anything else of it, and need not wait for an
  // acknowledgment.
  bool is_clear(uint8_t stream) const;

  // A submessage of two parts on a stream. owner comes back in on_done. A tide_status_t.
  int submit(uint8_t stream, uint8_t id, uint8_t flags, Bytes head, Bytes body, void *owner, Time now);
  // A short submessage on stream 0.
  int submit_control(uint8_t id, Bytes body);

  struct Unacknowledged {
    void *owner;
    Bytes submessage;  // with its header; valid as long as the output
  };
  // What went to reliable streams and was not acknowledged, in the order of its submission. All streams end.
  std::vector<Unacknowledged> take_back();

 private:
  static void done(void *context, tide_node_t *node, tide_node_outcome_t outcome);

  OnDone on_done_;
  // All that the transmitter works in is one block, so that it goes as a whole when its client goes: in parts of the
  // heap, clients that come and go would lie elsewhere each time. What follows the arrays is the octets of the nodes,
  // which take memory as they come into use: most clients need few.
  std::unique_ptr<uint8_t[]> memory_;
  std::span<tide_node_t> nodes_;
  std::span<tide_queue_entry_t *> execution_, pending_;
  std::span<tide_output_stream_t> streams_;
  std::vector<Time> submitted_ns_;  // by node; empty: nobody asks
  std::vector<tide_size_class_t> classes_;
  tide_transmitter_t transmitter_{};
};

}  // namespace tide::agent
