// SPDX-License-Identifier: Apache-2.0
// The agent's core at the other end of the program's links, in virtual time. Its DDS is a fake that the test can
// inspect.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "core/agent.h"
#include "fake_middleware.h"
#include "tide/framing.h"
#include "virtual_time.h"

namespace tide::compat::test {

using agent::Bytes;
using agent::Endpoint;
using Octets = std::vector<uint8_t>;

// The program's end of a custom transport. It carries datagrams, or a stream whose bytes arrive in pieces of random
// lengths.
class ClientEnd {
 public:
  explicit ClientEnd(bool stream) : stream_(stream) {
    tide_port_platform()->event_init(tide_port_platform()->context, &arrived_);
  }
  void push(Octets bytes) {
    waiting_.push_back(std::move(bytes));
    tide_port_platform()->event_set(tide_port_platform()->context, &arrived_);
  }
  // Returns the number of bytes read; 0 if none arrived in time.
  size_t read(uint8_t *bytes, size_t count, int timeout_ms) {
    const tide_platform_t *platform = tide_port_platform();
    const Time deadline = now_ns() + timeout_ms * sim::kMillisecond;
    while (waiting_.empty() && platform->event_wait(platform->context, &arrived_, deadline) == 1) continue;
    if (waiting_.empty()) return 0;
    Octets &first = waiting_.front();
    size_t taken = std::min(count, first.size());
    if (stream_) taken = 1 + World::current().random.below(taken);
    std::copy_n(first.begin(), taken, bytes);
    first.erase(first.begin(), first.begin() + static_cast<ptrdiff_t>(taken));
    if (first.empty() || !stream_) waiting_.pop_front();
    return taken;
  }
  std::function<void(Octets bytes)> write;

 private:
  bool stream_;
  tide_event_t arrived_{};
  std::deque<Octets> waiting_;
};

class AgentServer {
 public:
  enum class Kind { kUdp, kDatagrams, kStream };  // the last two are a custom transport at client_end

  // `port` is as in World::listen.
  explicit AgentServer(Kind kind = Kind::kUdp, uint16_t port = 0)
      : client_end(kind == Kind::kStream), kind_(kind), agent_(middleware_, options()) {
    port_ = World::current().listen(this, port);
    tide_framing_reader_init(&reader_, kAgentAddress);
    tide_framing_reader_set_buffer(&reader_, frame_.data(), frame_.size());
    client_end.write = [this](Octets bytes) {
      later(World::current().engine.now() + World::current().latency(), last_up_,
            [this, bytes = std::move(bytes)] { receive(kCustomEndpoint, bytes); });
    };
  }
  AgentServer(const AgentServer &) = delete;
  AgentServer &operator=(const AgentServer &) = delete;
  ~AgentServer() { World::current().close(this); }

  std::string port() const { return std::to_string(port_); }

  // A muted server neither receives nor sends, and messages in transfer are lost.
  void mute(bool muted) { muted_ = muted; }
  bool is_muted() const { return muted_; }
  // From now on, a message in either direction is lost with the probability 1 / messages; 0: none is lost.
  void lose_one_in(unsigned messages, unsigned seed = 1) {
    one_in_ = messages;
    chance_ = sim::Random(World::current().random.next() + seed);
  }
  void refuse(bool refuse) { middleware_.refuse = refuse; }

  // Publishes a sample in ROS 2 for all readers of the topic. Returns false if the topic has no readers.
  bool offer(const std::string &topic, const Octets &payload, bool big_endian = false) {
    return offer_sample(topic, {payload, big_endian, {}, 0, 0});
  }
  // Lets a ROS 2 client call a service of the program. Returns false if no service has this name.
  bool ask(const std::string &service, const Octets &request, const agent::SampleIdentity &identity,
           bool big_endian = false) {
    return offer_sample("rq" + service + "Request", {request, big_endian, identity, 0, 0});
  }
  // Lets a ROS 2 server answer a request of the program. `number` is the one that `requests` returns for it.
  bool answer(const std::string &service, const Octets &reply, uint64_t number, bool big_endian = false) {
    return offer_sample("rr" + service + "Reply", {reply, big_endian, {}, number, 0});
  }
  std::vector<agent::test::Written> replies(const std::string &service) {
    return written_samples("rr" + service + "Reply");
  }
  std::vector<agent::test::Written> requests(const std::string &service) {
    return written_samples("rq" + service + "Request");
  }
  void serve(bool served) {
    middleware_.served = served;
    for (agent::test::FakeSource *source : middleware_.sources) source->wake();
  }
  std::vector<Octets> written(const std::string &topic) {
    std::vector<Octets> payloads;
    for (const auto &sample : middleware_.written) {
      if (sample.topic == topic) payloads.push_back(sample.payload);
    }
    return payloads;
  }
  agent::test::FakeMiddleware &middleware() { return middleware_; }
  size_t entities() { return agent_.entity_count(); }
  agent::Counters counters() { return agent_.counters(); }
  size_t clients() { return agent_.client_count(); }
  // The streams on which submessages of this kind arrived, in order.
  std::vector<uint8_t> streams_of(uint8_t submessage) {
    std::vector<uint8_t> streams;
    for (const Octets &message : received_) {
      const size_t header = message[0] < 0x80 ? 8 : 4;
      if (message.size() > header && message[header] == submessage) streams.push_back(message[1]);
    }
    return streams;
  }
  // True if any received message contained the text.
  bool heard(const std::string &text) {
    return std::any_of(received_.begin(), received_.end(), [&](const Octets &message) {
      return std::search(message.begin(), message.end(), text.begin(), text.end()) != message.end();
    });
  }
  std::vector<int> domains() { return middleware_.domains; }
  void forget_received() { received_.clear(); }
  agent::Qos qos_of_reader(const std::string &topic) {
    for (const agent::test::FakeSource *source : middleware_.sources) {
      if (source->topic.name == topic) return source->qos;
    }
    return {};
  }

  // Called by the links when a datagram or bytes of the stream have arrived.
  void receive(Endpoint endpoint, const Octets &input) {
    if (muted_ || is_lost()) return;
    if (kind_ == Kind::kStream) {
      receive_stream(input);
    } else {
      message(endpoint, input);
    }
    pump();
  }
  // Called when a client opens a link. Returns the agent's endpoint for it.
  Endpoint accept(Connection &connection) {
    connections_.push_back(&connection);
    return connections_.size();
  }

  ClientEnd client_end;

 private:
  static constexpr uint8_t kAgentAddress = 0, kClientAddress = 1;
  static constexpr Endpoint kCustomEndpoint = 1;

  agent::Options options() {
    agent::Options options;
    options.wake = [this] { wake_at(now_ns()); };
    options.wall_clock_ns = wall_ns;
    options.host_of = [](agent::Endpoint) { return agent::Host{0}; };  // all clients are on one host
    return options;
  }

  // Runs the action at this time, but not before the actions of earlier messages. Drops it if the server has ended by
  // then.
  void later(Time time, Time &last, sim::Engine::Action action) {
    last = std::max(last, time);
    World::current().engine.at(last, [alive = std::weak_ptr(alive_), action = std::move(action)] {
      if (!alive.expired()) action();
    });
  }
  // Lets the agent poll at this time. May be called during a call of the agent.
  void wake_at(Time time) {
    if (time >= next_pump_) return;
    next_pump_ = time;
    Time unordered = 0;
    later(time, unordered, [this, time] {
      if (next_pump_ != time) return;
      next_pump_ = sim::kForever;
      pump();
    });
  }

  bool offer_sample(const std::string &topic, const agent::Sample &sample) {
    bool any = false;
    for (agent::test::FakeSource *source : middleware_.sources) {
      if (source->topic.name != topic) continue;
      source->offer(sample);
      any = true;
    }
    return any;
  }
  std::vector<agent::test::Written> written_samples(const std::string &topic) {
    std::vector<agent::test::Written> samples;
    for (const auto &sample : middleware_.written) {
      if (sample.topic == topic) samples.push_back(sample);
    }
    return samples;
  }

  void receive_stream(Bytes input) {
    while (!input.empty()) {
      int complete = 0;
      const size_t used = tide_framing_reader_input(&reader_, input.data(), input.size(), &complete);
      input = input.subspan(used);
      if (complete != 0) {
        message(kCustomEndpoint, {frame_.data(), reader_.length});
        tide_framing_reader_set_buffer(&reader_, frame_.data(), frame_.size());
      }
    }
  }

  void message(Endpoint endpoint, Bytes input) {
    received_.emplace_back(input.begin(), input.end());
    agent_.input(endpoint, input, now_ns());
  }

  bool is_lost() { return one_in_ != 0 && chance_.below(one_in_) == 0; }

  void pump() {
    Time deadline = 0;
    for (bool more = true; more;) {
      more = false;
      deadline = agent_.poll(now_ns());
      agent_.take_ready(ready_);
      for (const Endpoint endpoint : ready_) {
        tide_frame_parts_t frame;
        while (agent_.next(endpoint, now_ns(), frame)) {
          send(endpoint, frame);
          agent_.sent(endpoint, now_ns());
          more = true;
        }
      }
    }
    if (deadline != sim::kForever) wake_at(std::max(deadline, now_ns() + 1));
  }

  void send(Endpoint endpoint, const tide_frame_parts_t &frame) {
    if (muted_ || is_lost()) return;
    Octets body(frame.body, frame.body + frame.body_bytes);
    body.insert(body.end(), frame.tail, frame.tail + frame.tail_bytes);
    Octets bytes(frame.head, frame.head + frame.head_bytes);
    if (kind_ == Kind::kStream) {
      Octets framed(TIDE_FRAMING_WORST_BYTES(bytes.size() + body.size()));
      const int length = tide_framing_encode(framed.data(), framed.size(), kAgentAddress, kClientAddress, bytes.data(),
                                             bytes.size(), body.data(), body.size());
      ASSERT_GT(length, 0);
      framed.resize(static_cast<size_t>(length));
      bytes = std::move(framed);
    } else {
      bytes.insert(bytes.end(), body.begin(), body.end());
    }
    if (kind_ == Kind::kUdp) {
      connections_[endpoint - 1]->deliver(std::move(bytes));
    } else {
      later(now_ns() + World::current().latency(), last_down_, [this, bytes = std::move(bytes)] {
        if (!muted_) client_end.push(bytes);
      });
    }
  }

  Kind kind_;
  uint16_t port_ = 0;
  agent::test::FakeMiddleware middleware_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  Time next_pump_ = sim::kForever, last_up_ = 0, last_down_ = 0;
  agent::Agent agent_;
  bool muted_ = false;
  unsigned one_in_ = 0;
  sim::Random chance_{0};
  std::vector<Connection *> connections_;  // by endpoint; the first one is 1
  std::vector<Endpoint> ready_;
  std::vector<Octets> received_;
  tide_framing_reader_t reader_{};
  std::array<uint8_t, 2048> frame_{};
};

}  // namespace tide::compat::test
