// SPDX-License-Identifier: Apache-2.0
#include "sim/board/agent_host.h"

#include <algorithm>
#include <utility>

#include "sim/board/losses.h"
#include "tide/link_serial.h"
#include "tide/status.h"

namespace tide::sim {
namespace {

constexpr agent::Endpoint kEndpoint = 1;
static_assert(agent::kLineHeartbeatDelay == 100 * kMillisecond, "the default of a plan");
constexpr size_t kMessageBytes = 65540;

// The first submessage, where it is the wanted one; else its body is empty.
tide_cdr_t body_of(agent::Bytes message, uint8_t id) {
  tide_xrce_header_t header;
  tide_xrce_submessage_t submessage{};
  const int header_bytes = tide_xrce_get_header(message.data(), message.size(), &header);
  size_t position = static_cast<size_t>(std::max(header_bytes, 0));
  const bool read =
      header_bytes > 0 && tide_xrce_next_submessage(message.data(), message.size(), &position, &submessage) == 1;
  tide_cdr_t cdr;
  tide_cdr_reader(&cdr, submessage.body, read && submessage.id == id ? submessage.body_bytes : 0,
                  (submessage.flags & TIDE_XRCE_FLAG_LITTLE_ENDIAN) == 0);
  return cdr;
}

// The message of a frame as it was before its escapes; damaged if the frame is.
std::vector<uint8_t> message_of(const Line::Bytes &frame) {
  constexpr size_t kFramingBytes = 5;  // flag, addresses, length
  std::vector<uint8_t> octets;
  for (size_t place = 0; place < frame.size(); place++) {
    const bool escaped = frame[place] == TIDE_FRAMING_ESCAPE && place + 1 < frame.size();
    octets.push_back(static_cast<uint8_t>(escaped ? frame[++place] ^ TIDE_FRAMING_XOR : frame[place]));
  }
  octets.erase(octets.begin(), octets.begin() + static_cast<ptrdiff_t>(std::min(kFramingBytes, octets.size())));
  return octets;
}

}  // namespace

AgentHost::AgentHost(Engine &engine, Bus &bus, Line &down, const Manner &manner, uint64_t seed)
    : engine_(engine), bus_(bus), down_(down), manner_(manner), seed_(seed), buffer_(kMessageBytes) {
  begin();
}

void AgentHost::begin() {
  agent::Options options;                     // its nodes are those of the shipped agent (agent/core/limits.h)
  options.limits.entities_per_client = 1024;  // of a client that uses every level
  options.limits.input_streams = options.limits.output_streams = 256;
  options.wall_clock_ns = [this] { return engine_.now(); };
  options.heartbeat_delay_ns = [this](agent::Endpoint) { return manner_.heartbeat_delay; };
  options.wake = [this] { schedule(engine_.now()); };
  agent_ = std::make_unique<agent::Agent>(bus_, std::move(options));
  tide_framing_reader_init(&reader_, TIDE_SERIAL_ADDRESS_AGENT);
  tide_framing_reader_set_buffer(&reader_, buffer_.data(), buffer_.size());
  sending_ = false;
  pump_due_ = false;
  next_poll_ = kForever;
}

void AgentHost::restart(Time outage) {
  if (!agent_) return;
  life_++;
  restarts_++;
  agent_.reset();
  engine_.after(outage, [this] { begin(); });
}

Random &AgentHost::latencies_of(const Line::Bytes &frame) {
  const std::vector<uint8_t> message = message_of(frame);
  const Glance seen = glance({message.data(), message.size()});
  const size_t chain = chain_of({message.data(), message.size()}, seen);
  size_t &sender = senders_[stream_of({message.data(), message.size()}, seen)];
  if (chain != kNoChain) sender = chain + 1;
  return latencies_.try_emplace(sender, seed_ + 0x9E3779B97F4A7C15u * sender).first->second;
}

void AgentHost::receive(const Line::Bytes &frame) {
  last_input_ = std::max(last_input_, engine_.now() + latencies_of(frame).between(manner_.least, manner_.most));
  const unsigned life = life_;
  engine_.at(last_input_, [this, frame, life] {
    if (agent_ && life == life_) input(frame);
  });
}

void AgentHost::input(const Line::Bytes &frame) {
  for (size_t used = 0; used < frame.size();) {
    int complete = 0;
    used += tide_framing_reader_input(&reader_, frame.data() + used, frame.size() - used, &complete);
    if (complete == 0) continue;
    if (tide_crc16(0, buffer_.data(), reader_.length) == reader_.crc) {
      const agent::Bytes message(buffer_.data(), reader_.length);
      if (on_input) on_input(message);
      note_heartbeat(message);
      agent_->input(kEndpoint, message, engine_.now());
    }
    tide_framing_reader_set_buffer(&reader_, buffer_.data(), buffer_.size());
  }
  pump();
}

// Not from within a call of the agent: data of its own writers may wake it.
void AgentHost::schedule(Time time) {
  if (time == engine_.now() ? pump_due_ : time >= next_poll_) return;
  if (time == engine_.now()) {
    pump_due_ = true;
  } else {
    next_poll_ = time;
  }
  const unsigned life = life_;
  engine_.at(time, [this, life, time] {
    if (!agent_ || life != life_) return;
    if (time >= next_poll_) next_poll_ = kForever;
    pump();
  });
}

void AgentHost::pump() {
  pump_due_ = false;
  const Time next = agent_->poll(engine_.now());
  if (next != kForever) schedule(std::max(next, engine_.now() + 1));
  agent_->take_ready(ready_);
  if (!sending_) send();
}

void AgentHost::note_heartbeat(agent::Bytes message) {
  tide_xrce_heartbeat_t heartbeat{};
  tide_cdr_t cdr = body_of(message, TIDE_XRCE_HEARTBEAT);
  tide_xrce_get_heartbeat(&cdr, &heartbeat);
  if (cdr.status == TIDE_OK) asked_[heartbeat.stream] = true;
}

bool AgentHost::is_unasked(agent::Bytes message) {
  tide_xrce_acknack_t acknack{};
  tide_cdr_t cdr = body_of(message, TIDE_XRCE_ACKNACK);
  tide_xrce_get_acknack(&cdr, &acknack);
  return cdr.status == TIDE_OK && !std::exchange(asked_[acknack.stream], false);
}

bool AgentHost::next(std::vector<uint8_t> &message) {
  for (tide_frame_parts_t parts; agent_->next(kEndpoint, engine_.now(), parts);) {
    message.assign(parts.head, parts.head + parts.head_bytes);
    message.insert(message.end(), parts.body, parts.body + parts.body_bytes);
    message.insert(message.end(), parts.tail, parts.tail + parts.tail_bytes);
    if (manner_.acknowledges == Acknowledges::kAlways || !is_unasked(message)) return true;
    agent_->sent(kEndpoint, engine_.now());
  }
  return false;
}

void AgentHost::send() {
  std::vector<uint8_t> message;
  if (!next(message)) return;
  if (on_output) on_output(message);
  Line::Bytes frame(TIDE_FRAMING_WORST_BYTES(message.size()));
  const int length = tide_framing_encode(frame.data(), frame.size(), TIDE_SERIAL_ADDRESS_AGENT,
                                         TIDE_SERIAL_ADDRESS_CLIENT, message.data(), message.size(), nullptr, 0);
  frame.resize(static_cast<size_t>(std::max(length, 0)));
  sending_ = true;
  const unsigned life = life_;
  down_.send(std::move(frame), [this, life] {
    if (!agent_ || life != life_) return;
    sending_ = false;
    agent_->sent(kEndpoint, engine_.now());
    pump();
  });
}

}  // namespace tide::sim
