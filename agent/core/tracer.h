// SPDX-License-Identifier: Apache-2.0
// Trace records of clients' messages (tide/trace.h, TIDE_TRACE_CLIENT): a ring for each client, which the agent's
// thread fills and another thread drains.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "core/limits.h"
#include "tide/trace.h"
#include "tide/transmitter.h"

namespace tide::agent {

// Trace of one client, for the agent's thread. A record costs a few stores; a full ring counts the records that it
// drops.
class ClientTrace {
 public:
  ClientTrace(uint32_t key, uint16_t place, uint16_t source);
  ClientTrace(const ClientTrace &) = delete;
  ClientTrace &operator=(const ClientTrace &) = delete;

  // Records that the message with this stream and sequence number, received at received_ns, is now written to DDS.
  void received(uint16_t object, uint8_t stream, uint16_t sequence, Time received_ns, Time now_ns);
  // Records that a frame starts. taken_ns is the time at which its message was submitted to the
  // client's transmitter.
  void sending(uint16_t object, const tide_transmitter_t &transmitter, Time taken_ns, Time now_ns);
  // Records that the frame of the last call of sending was sent.
  void sent(Time now_ns);

 private:
  friend class Tracer;
  void put(tide_trace_kind_t kind, uint8_t stream, uint32_t instance, Time time_ns);

  std::vector<tide_trace_record_t> records_;
  tide_trace_instances_t instances_{};
  tide_trace_ring_t ring_{};
  uint32_t sending_ = 0;  // object and sequence number of the frame being sent; 0 for a frame without a message
  uint8_t stream_ = 0;
};

class Tracer {
 public:
  // `place` is the index of this agent among the programs of one trace.
  explicit Tracer(uint16_t place) : place_(place) {}

  // Returns the trace of a new client. Its records are kept until they are drained, even if the client has left.
  std::shared_ptr<ClientTrace> add(uint32_t key);
  // Writes all records to the sink. May be called from any thread, but from one at a time. Returns false if the sink
  // refuses a block.
  bool drain(tide_trace_sink_t sink, void *context);

 private:
  uint16_t place_, next_source_ = 0;
  std::mutex mutex_;  // guards the list of traces
  std::vector<std::shared_ptr<ClientTrace>> clients_;
};

// Time on the clock of the records.
Time trace_now_ns();

}  // namespace tide::agent
