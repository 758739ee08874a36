// SPDX-License-Identifier: Apache-2.0
#include "core/tracer.h"

#include <algorithm>
#include <chrono>

#include "tide/priority.h"

namespace tide::agent {
namespace {

constexpr uint32_t kRecords = 2048;

uint32_t name_of(uint16_t object, uint16_t sequence) { return uint32_t{object} << 16 | sequence; }

}  // namespace

Time trace_now_ns() { return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count(); }

ClientTrace::ClientTrace(uint32_t key, uint16_t place, uint16_t source) : records_(kRecords) {
  (void)tide_trace_init(&ring_, records_.data(), kRecords, &instances_, place, source);
  put(TIDE_TRACE_CLIENT, 0, key, trace_now_ns());
}

void ClientTrace::put(tide_trace_kind_t kind, uint8_t stream, uint32_t instance, Time time_ns) {
  (void)tide_trace_put(&ring_, kind, TIDE_PRIORITY(TIDE_STREAM_LEVEL(stream), 0), instance, stream, time_ns);
}

void ClientTrace::received(uint16_t object, uint8_t stream, uint16_t sequence, Time received_ns, Time now_ns) {
  put(TIDE_TRACE_RECEIVED, stream, name_of(object, sequence), received_ns);
  put(TIDE_TRACE_DIGESTED, stream, name_of(object, sequence), now_ns);
}

void ClientTrace::sending(uint16_t object, const tide_transmitter_t &transmitter, Time taken_ns, Time now_ns) {
  stream_ = transmitter.current_stream->id;
  sending_ = name_of(object, transmitter.current_sequence);
  put(TIDE_TRACE_SUBMIT, stream_, sending_, taken_ns);
  put(TIDE_TRACE_WIRE_START, stream_, sending_, now_ns);
}

void ClientTrace::sent(Time now_ns) {
  if (sending_ != 0) put(TIDE_TRACE_WIRE_END, stream_, sending_, now_ns);
  sending_ = 0;
}

std::shared_ptr<ClientTrace> Tracer::add(uint32_t key) {
  auto made = std::make_shared<ClientTrace>(key, place_, next_source_++);
  const std::lock_guard<std::mutex> lock(mutex_);
  clients_.push_back(made);
  return made;
}

bool Tracer::drain(tide_trace_sink_t sink, void *context) {
  std::vector<std::shared_ptr<ClientTrace>> clients;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    clients = clients_;
  }
  for (const auto &client : clients) {
    const bool is_gone = client.use_count() == 2;  // only this loop and the list refer to it, so no more records are
                                                   // added
    if (tide_trace_drain(&client->ring_, UINT32_MAX, sink, context) < 0) return false;
    if (!is_gone) continue;
    const std::lock_guard<std::mutex> lock(mutex_);
    std::erase(clients_, client);
  }
  return true;
}

}  // namespace tide::agent
