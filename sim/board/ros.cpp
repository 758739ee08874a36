// SPDX-License-Identifier: Apache-2.0
#include "sim/board/ros.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "sim/board/losses.h"
#include "tide/link_serial.h"
#include "tide/status.h"

namespace tide::sim {

// ---- services ----

namespace {

constexpr uint8_t kIdentity = 0x5A;  // first octets of each identity; the number after them distinguishes requests
constexpr size_t kNumberPlace = 16;

std::string name_of(const agent::Service &service) {
  constexpr size_t kPrefixBytes = 3, kSuffixBytes = 7;  // lengths of "rq/" and "Request"
  const std::string &topic = service.request.name;
  return topic.substr(kPrefixBytes, topic.size() - kPrefixBytes - kSuffixBytes);
}

agent::SampleIdentity identity_of(uint64_t number) {
  agent::SampleIdentity identity;
  identity.fill(kIdentity);
  for (size_t octet = 0; octet < 8; octet++) identity[kNumberPlace + octet] = static_cast<uint8_t>(number >> 8 * octet);
  return identity;
}

// The number in the identity of a request; 0 if the request does not come from this file.
uint64_t number_of(const agent::SampleIdentity &identity) {
  uint64_t number = 0;
  for (size_t octet = 8; octet-- > 0;) number = number << 8 | identity[kNumberPlace + octet];
  return identity == identity_of(number) ? number : 0;
}

}  // namespace

class BusRequester : public agent::Requester {
 public:
  BusRequester(Services &services, std::string service, agent::Wake wake)
      : services_(services), service_(std::move(service)), wake_(std::move(wake)) {
    services_.entry(service_).requesters.push_back(this);
  }
  ~BusRequester() override { std::erase(services_.entry(service_).requesters, this); }
  bool is_served() override { return services_.is_served(service_); }
  std::optional<uint64_t> send(agent::Bytes payload, bool) override {
    const uint64_t number = ++sent_;
    const std::weak_ptr<BusRequester *> alive = alive_;
    services_.ask(service_, {payload.begin(), payload.end()}, [alive, number](const Services::Payload &reply) {
      if (const auto self = alive.lock()) (*self)->offer(number, reply);
    });
    return number;
  }
  bool take(agent::Sample &sample) override {
    if (waiting_.empty()) return false;
    sample = std::move(waiting_.front());
    waiting_.pop_front();
    return true;
  }
  void wake() { wake_(); }

 private:
  void offer(uint64_t number, const Services::Payload &reply) {
    agent::Sample sample;
    sample.payload = reply;
    sample.request = number;
    waiting_.push_back(std::move(sample));
    wake_();
  }

  Services &services_;
  std::string service_;
  agent::Wake wake_;
  uint64_t sent_ = 0;
  std::deque<agent::Sample> waiting_;
  std::shared_ptr<BusRequester *> alive_ = std::make_shared<BusRequester *>(this);  // null when this object is
                                                                                    // destroyed; late replies check it
};

class BusReplier : public agent::Replier {
 public:
  BusReplier(Services &services, std::string service, agent::Wake wake)
      : services_(services), service_(std::move(service)), wake_(std::move(wake)) {
    services_.entry(service_).replier = this;
    for (BusRequester *requester : services_.entry(service_).requesters) requester->wake();
  }
  ~BusReplier() override {
    if (services_.entry(service_).replier == this) services_.entry(service_).replier = nullptr;
  }
  bool take(agent::Sample &sample) override {
    if (waiting_.empty()) return false;
    sample = std::move(waiting_.front());
    waiting_.pop_front();
    return true;
  }
  bool reaches(const agent::SampleIdentity &) override { return true; }
  bool send(const agent::SampleIdentity &request, agent::Bytes payload, bool) override {
    services_.answer(service_, number_of(request), {payload.begin(), payload.end()});
    return true;
  }
  void offer(uint64_t number, const Services::Payload &request) {
    agent::Sample sample;
    sample.payload = request;
    sample.identity = identity_of(number);
    waiting_.push_back(std::move(sample));
    wake_();
  }

 private:
  Services &services_;
  std::string service_;
  agent::Wake wake_;
  std::deque<agent::Sample> waiting_;
};

std::unique_ptr<agent::Requester> Services::create_requester(const agent::Service &service, agent::Wake wake) {
  return std::make_unique<BusRequester>(*this, name_of(service), std::move(wake));
}

std::unique_ptr<agent::Replier> Services::create_replier(const agent::Service &service, agent::Wake wake) {
  return std::make_unique<BusReplier>(*this, name_of(service), std::move(wake));
}

void Services::ask(const std::string &service, const Payload &request, Take reply) {
  Entry &of = entry(service);
  const uint64_t number = ++last_;
  asked_.emplace(number, std::move(reply));
  for (const Take &take : of.requests) take(request);
  if (of.serve) {
    of.serve(request, [this, service, number](const Payload &answered) { answer(service, number, answered); });
    return;
  }
  // If the server no longer exists at the delivery, the request is lost.
  const auto deliver = [this, service, number, request] {
    if (BusReplier *replier = entry(service).replier) replier->offer(number, request);
  };
  of.to_server ? of.to_server(deliver) : deliver();
}

// Passes a reply to the client. Each request is answered once; a reply for which no request is open is dropped and
// counted.
void Services::answer(const std::string &service, uint64_t number, const Payload &reply) {
  auto asked = asked_.extract(number);
  if (asked.empty()) {
    unasked_replies_++;
    return;
  }
  Entry &of = entry(service);
  for (const Take &take : of.replies) take(reply);
  const auto deliver = [take = std::move(asked.mapped()), reply] { take(reply); };
  of.to_asker ? of.to_asker(deliver) : deliver();
}

// ---- topics and executors of nodes ----

class BusReader : public agent::Source {
 public:
  BusReader(Bus &bus, std::string topic, const agent::Qos &qos, agent::Wake wake)
      : bus_(bus), topic_(std::move(topic)), qos_(qos), wake_(std::move(wake)) {
    bus_.readers_[topic_].push_back(this);
  }
  ~BusReader() override { std::erase(bus_.readers_[topic_], this); }
  void offer(const Bus::Payload &payload) {
    waiting_.push_back(payload);
    if (!qos_.keep_all && waiting_.size() > qos_.depth) {
      waiting_.pop_front();
      skipped_++;
    }
    wake_();
  }
  bool take(agent::Sample &sample) override {
    if (waiting_.empty()) return false;
    sample = {};
    sample.payload = std::move(waiting_.front());
    sample.skipped = std::exchange(skipped_, 0u);
    waiting_.pop_front();
    return true;
  }

 private:
  Bus &bus_;
  std::string topic_;
  agent::Qos qos_;
  agent::Wake wake_;
  std::deque<Bus::Payload> waiting_;
  uint32_t skipped_ = 0;
};

class BusWriter : public agent::Writer {
 public:
  BusWriter(Bus &bus, std::string topic) : bus_(bus), topic_(std::move(topic)) {}
  bool has_reader() const override { return true; }
  bool is_acknowledged() override { return true; }
  bool write(agent::Bytes payload, bool) override {
    bus_.publish(topic_, {payload.begin(), payload.end()});
    return true;
  }

 private:
  Bus &bus_;
  std::string topic_;
};

class BusParticipant : public agent::Participant {
 public:
  explicit BusParticipant(Bus &bus) : bus_(bus) {}
  bool check_topic(const agent::Topic &) override { return true; }
  std::unique_ptr<agent::Writer> create_writer(const agent::Topic &topic, const agent::Qos &) override {
    return std::make_unique<BusWriter>(bus_, topic.name);
  }
  std::unique_ptr<agent::Source> create_reader(const agent::Topic &topic, const agent::Qos &qos,
                                               agent::Wake wake) override {
    return std::make_unique<BusReader>(bus_, topic.name, qos, std::move(wake));
  }
  std::unique_ptr<agent::Requester> create_requester(const agent::Service &service, const agent::Qos &,
                                                     agent::Wake wake) override {
    return bus_.services.create_requester(service, std::move(wake));
  }
  std::unique_ptr<agent::Replier> create_replier(const agent::Service &service, const agent::Qos &,
                                                 agent::Wake wake) override {
    return bus_.services.create_replier(service, std::move(wake));
  }

 private:
  Bus &bus_;
};

std::unique_ptr<agent::Participant> Bus::create_participant(int, const std::string &) {
  return std::make_unique<BusParticipant>(*this);
}

void Bus::subscribe(const std::string &topic, Receive receive) { subscriptions_[topic].push_back(std::move(receive)); }

size_t Bus::publish(const std::string &topic, const Payload &payload) {
  for (const Receive &receive : subscriptions_[topic]) receive(payload);
  const auto &readers = readers_[topic];
  for (BusReader *reader : readers) reader->offer(payload);
  return readers.size();
}

HostExecutor::HostExecutor(Engine &engine, unsigned lanes, uint64_t seed)
    : engine_(engine), free_lanes_(lanes), random_(seed), order_(static_cast<Order>(random_.below(3))) {}

void HostExecutor::add(const void *callback, Time execution, bool alone, std::function<void()> body) {
  ready_.push_back({callback, execution, alone, std::move(body)});
  begin();
}

void HostExecutor::begin() {
  while (free_lanes_ > 0) {
    std::vector<size_t> able;
    for (size_t place = 0; place < ready_.size(); place++) {
      if (may_run(ready_[place])) able.push_back(place);
    }
    if (able.empty()) return;
    const size_t chosen = order_ == Order::kOldest   ? able.front()
                          : order_ == Order::kNewest ? able.back()
                                                     : able[random_.below(able.size())];
    const auto oldest = std::find_if(ready_.begin(), ready_.end(), [this, chosen](const Ready &one) {
      return one.callback == ready_[chosen].callback;
    });
    const auto place = static_cast<size_t>(oldest - ready_.begin());
    free_lanes_--;
    const void *const alone = oldest->alone ? oldest->callback : nullptr;
    if (alone != nullptr) running_.insert(alone);
    engine_.after(ready_[place].execution, [this, alone, body = std::move(ready_[place].body)] {
      free_lanes_++;
      if (alone != nullptr) running_.erase(alone);
      body();
      begin();
    });
    ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(place));
  }
}

void HostCallback::run(std::function<void()> body) {
  if (executor_ != nullptr) {
    executor_->add(group_ == nullptr ? this : group_, execution_, group_ != nullptr, std::move(body));
    return;
  }
  free_at_ = std::max(free_at_, engine_.now()) + execution_;
  engine_.at(free_at_, std::move(body));
}

// ---- the agent ----

namespace {

constexpr agent::Endpoint kEndpoint = 1;
static_assert(agent::kLineHeartbeatDelay == 100 * kMillisecond, "the default of a plan");
constexpr size_t kMessageBytes = 65540;

// Body of the first submessage; empty if this submessage has an id other than `id`.
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

// The message in a frame, without escapes. If the frame is damaged, so is the message.
std::vector<uint8_t> message_of(const Line::Bytes &frame) {
  constexpr size_t kFramingBytes = 5;  // flag, two addresses, two bytes of length
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
  agent::Options options;                     // the limits of the shipped agent (agent/core/limits.h)
  options.limits.entities_per_client = 1024;  // enough for a client that uses all levels
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
  const size_t root = root_of({message.data(), message.size()}, seen);
  size_t &sender = senders_[stream_of({message.data(), message.size()}, seen)];
  if (root != kNoRoot) sender = root + 1;
  return latencies_.try_emplace(sender, seed_ + 0x9E3779B97F4A7C15u * sender).first->second;
}

void AgentHost::receive(const Line::Bytes &frame) {
  const Time latency = manner_.slot > 0 ? slot_delay(manner_.slots_us, manner_.slot, engine_.now())
                                        : latencies_of(frame).between(manner_.least, manner_.most);
  last_input_ = std::max(last_input_, engine_.now() + latency);
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
    if (tide_crc16(buffer_.data(), reader_.length) == reader_.crc) {
      const agent::Bytes message(buffer_.data(), reader_.length);
      if (on_input) on_input(message);
      note_heartbeat(message);
      agent_->input(kEndpoint, message, engine_.now());
    }
    tide_framing_reader_set_buffer(&reader_, buffer_.data(), buffer_.size());
  }
  pump();
}

// Calls the agent later and not at once, because data of the agent's own writers may wake it during one of its calls.
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
