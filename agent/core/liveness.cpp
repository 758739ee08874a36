// SPDX-License-Identifier: Apache-2.0
#include "core/liveness.h"

#include <array>

#include "tide/platform.h"
#include "tide/priority.h"

namespace tide::agent {
namespace {

constexpr uint8_t kProbedStream = TIDE_STREAM_RELIABLE(0);

}  // namespace

void Liveness::restart(Time announced_ns, Time timeout_ns, Time now) {
  announced_ns_ = announced_ns;
  timeout_ns_ = timeout_ns;
  last_heard_ = now;
  answers_ = false;
}

void Liveness::heard(Time now) {
  last_heard_ = now;
  unanswered_ = 0;
  state_ = State::kAlive;
}

Time Liveness::poll(Output *output, Time now) {
  const Time silence = silence_ns();
  if (silence == 0) return TIDE_FOREVER;
  const Time due = last_heard_ + silence + static_cast<Time>(unanswered_) * limits_.probe_period_ns;
  if (now < due) return due;
  if (unanswered_ < limits_.probes) {
    if (output != nullptr) probe(*output);
    unanswered_++;
    return due + limits_.probe_period_ns;
  }
  state_ = answers_probes() ? State::kGone : State::kSilent;
  return TIDE_FOREVER;
}

void Liveness::ask(Output &output, Time now) {
  if (now - asked_ns_ < limits_.probe_period_ns && asked_ns_ != 0) return;
  asked_ns_ = now;
  probe(output);
}

// A client that knows liveliness answers GET_INFO; every client answers a HEARTBEAT of a reliable stream it has.
void Liveness::probe(Output &output) {
  counters_.probes_sent++;
  std::array<uint8_t, 8> storage;
  tide_cdr_t body;
  tide_cdr_writer(&body, storage.data(), storage.size());
  const tide_xrce_get_info_body_t question = {{0, TIDE_XRCE_OBJECT_CLIENT}, 1};
  tide_xrce_put_get_info(&body, &question);
  output.submit_control(TIDE_XRCE_GET_INFO, {storage.data(), body.position});
  if (announced_ns_ != 0 || !answers_) return;
  for (const tide_output_stream_t *stream = output.transmitter().config.streams;
       stream != output.transmitter().config.streams + output.transmitter().config.stream_count; stream++) {
    if (stream->id != kProbedStream) continue;
    tide_cdr_writer(&body, storage.data(), storage.size());
    const tide_xrce_heartbeat_t heartbeat = {stream->first_unacknowledged,
                                             static_cast<uint16_t>(stream->next_to_send - 1), kProbedStream};
    tide_xrce_put_heartbeat(&body, &heartbeat);
    output.submit_control(TIDE_XRCE_HEARTBEAT, {storage.data(), body.position});
  }
}

}  // namespace tide::agent
