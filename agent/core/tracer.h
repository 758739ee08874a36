// SPDX-License-Identifier: Apache-2.0
// What an agent records of its clients' messages (tide/trace.h, TIDE_TRACE_CLIENT): a ring for each client, which the
// thread of the agent fills and another one drains.
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

// Of one client, from the thread of the agent. A record takes a few stores; a ring that is full counts what it drops.
class ClientTrace {
 public:
  ClientTrace(uint32_t key, uint16_t place, uint16_t source);
  ClientTrace(const ClientTrace &) = delete;
  ClientTrace &operator=(const ClientTrace &) = delete;

  // A message came with this frame, and went to DDS now.
  void received(uint16_t object, uint8_t stream, uint16_t sequence, Time received_ns, Time now_ns);
  // A frame begins to leave. taken_ns: when its message was taken from DDS.
  void sending(uint16_t object, const tide_transmitter_t &transmitter, Time taken_ns, Time now_ns);
  // That frame has left.
  void sent(Time now_ns);

 private:
  friend class Tracer;
  void put(tide_trace_kind_t kind, uint8_t stream, uint32_t instance, Time time_ns);

  std::vector<tide_trace_record_t> records_;
  tide_trace_instances_t instances_{};
  tide_trace_ring_t ring_{};
  uint32_t sending_ = 0;  // as its records name it; 0: none of a message
  uint8_t stream_ = 0;
};

class Tracer {
 public:
  // place: number of this agent among the programs of one trace.
  explicit Tracer(uint16_t place) : place_(place) {}

  // For a client that comes. Its records are kept until they are drained, also when it is gone.
  std::shared_ptr<ClientTrace> add(uint32_t key);
  // From one thread, any. Returns false once the sink has refused a block.
  bool drain(tide_trace_sink_t sink, void *context);

 private:
  uint16_t place_, next_source_ = 0;
  std::mutex mutex_;  // of the list
  std::vector<std::shared_ptr<ClientTrace>> clients_;
};

// Of the clock that records are on.
Time trace_now_ns();

}  // namespace tide::agent
