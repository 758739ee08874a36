// SPDX-License-Identifier: Apache-2.0
// The agent's core behind real sockets, served by a thread; its DDS is a fake that the test looks into.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/agent.h"
#include "fake_middleware.h"
#include "tide/framing.h"

namespace tide::compat::test {

using agent::Bytes;
using agent::Endpoint;
using agent::Time;
using Octets = std::vector<uint8_t>;
using namespace std::chrono_literals;

inline Time now_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

inline bool eventually(const std::function<bool()> &condition, std::chrono::milliseconds limit = 5s) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

class AgentServer {
 public:
  enum class Kind { kUdp, kDatagrams, kStream };

  explicit AgentServer(Kind kind = Kind::kUdp) : kind_(kind), agent_(middleware_, options()) {
    if (kind == Kind::kUdp) {
      open_udp();
    } else {
      int ends[2];
      EXPECT_EQ(socketpair(AF_UNIX, kind == Kind::kStream ? SOCK_STREAM : SOCK_DGRAM, 0, ends), 0);
      socket_ = ends[0];
      client_end = ends[1];
    }
    tide_framing_reader_init(&reader_, kAgentAddress);
    tide_framing_reader_set_buffer(&reader_, frame_.data(), frame_.size());
    thread_ = std::thread([this] { run(); });
  }
  AgentServer(const AgentServer &) = delete;
  AgentServer &operator=(const AgentServer &) = delete;
  ~AgentServer() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake();
    thread_.join();
    close(socket_);
    close(wake_);
    if (client_end >= 0) close(client_end);
  }

  std::string port() const { return std::to_string(port_); }

  // While muted it hears nothing and says nothing.
  void mute(bool muted) {
    const std::lock_guard lock(mutex_);
    muted_ = muted;
  }
  // Every so many of the messages that come and that go are lost, by chance; 0: none.
  void lose_one_in(unsigned messages, unsigned seed = 1) {
    const std::lock_guard lock(mutex_);
    one_in_ = messages;
    chance_.seed(seed);
  }
  void refuse(bool refuse) {
    const std::lock_guard lock(mutex_);
    middleware_.refuse = refuse;
  }

  // A sample from ROS 2 for everyone who reads the topic. False when nobody does.
  bool offer(const std::string &topic, const Octets &payload, bool big_endian = false) {
    return offer_sample(topic, {payload, big_endian, {}, 0, 0});
  }
  // A ROS 2 client asks a service of the program. False when there is none of this name.
  bool ask(const std::string &service, const Octets &request, const agent::SampleIdentity &identity,
           bool big_endian = false) {
    return offer_sample("rq" + service + "Request", {request, big_endian, identity, 0, 0});
  }
  // A ROS 2 server answers a request of the program, by the number it has in `requests`.
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
    {
      const std::lock_guard lock(mutex_);
      middleware_.served = served;
      for (agent::test::FakeSource *source : middleware_.sources) source->wake();
    }
    wake();
  }
  std::vector<Octets> written(const std::string &topic) {
    const std::lock_guard lock(mutex_);
    std::vector<Octets> payloads;
    for (const auto &sample : middleware_.written) {
      if (sample.topic == topic) payloads.push_back(sample.payload);
    }
    return payloads;
  }
  size_t entities() {
    const std::lock_guard lock(mutex_);
    return agent_.entity_count();
  }
  agent::Counters counters() {
    const std::lock_guard lock(mutex_);
    return agent_.counters();
  }
  size_t clients() {
    const std::lock_guard lock(mutex_);
    return agent_.client_count();
  }
  // Streams on which submessages of this kind came, in order.
  std::vector<uint8_t> streams_of(uint8_t submessage) {
    const std::lock_guard lock(mutex_);
    std::vector<uint8_t> streams;
    for (const Octets &message : received_) {
      const size_t header = message[0] < 0x80 ? 8 : 4;
      if (message.size() > header && message[header] == submessage) streams.push_back(message[1]);
    }
    return streams;
  }
  // Whether the text was in any message.
  bool heard(const std::string &text) {
    const std::lock_guard lock(mutex_);
    return std::any_of(received_.begin(), received_.end(), [&](const Octets &message) {
      return std::search(message.begin(), message.end(), text.begin(), text.end()) != message.end();
    });
  }
  std::vector<int> domains() {
    const std::lock_guard lock(mutex_);
    return middleware_.domains;
  }
  void forget_received() {
    const std::lock_guard lock(mutex_);
    received_.clear();
  }
  agent::Qos qos_of_reader(const std::string &topic) {
    const std::lock_guard lock(mutex_);
    for (const agent::test::FakeSource *source : middleware_.sources) {
      if (source->topic.name == topic) return source->qos;
    }
    return {};
  }

  int client_end = -1;

 private:
  static constexpr uint8_t kAgentAddress = 0, kClientAddress = 1;

  agent::Options options() {
    agent::Options options;
    options.wake = [this] { wake(); };
    options.host_of = [](agent::Endpoint) { return agent::Host{0}; };  // all clients are on this machine
    return options;
  }
  void wake() const {
    const uint64_t one = 1;
    EXPECT_EQ(write(wake_, &one, sizeof one), static_cast<ssize_t>(sizeof one));
  }
  void open_udp() {
    socket_ = socket(AF_INET, SOCK_DGRAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    EXPECT_EQ(bind(socket_, reinterpret_cast<sockaddr *>(&address), length), 0);
    EXPECT_EQ(getsockname(socket_, reinterpret_cast<sockaddr *>(&address), &length), 0);
    port_ = ntohs(address.sin_port);
  }

  bool offer_sample(const std::string &topic, const agent::Sample &sample) {
    bool any = false;
    {
      const std::lock_guard lock(mutex_);
      for (agent::test::FakeSource *source : middleware_.sources) {
        if (source->topic.name != topic) continue;
        source->offer(sample);
        any = true;
      }
    }
    wake();
    return any;
  }
  std::vector<agent::test::Written> written_samples(const std::string &topic) {
    const std::lock_guard lock(mutex_);
    std::vector<agent::test::Written> samples;
    for (const auto &sample : middleware_.written) {
      if (sample.topic == topic) samples.push_back(sample);
    }
    return samples;
  }

  void run() {
    int timeout_ms = -1;
    for (;;) {
      pollfd waits[2] = {{socket_, POLLIN, 0}, {wake_, POLLIN, 0}};
      poll(waits, 2, timeout_ms);
      if (waits[1].revents != 0) {
        uint64_t count;
        EXPECT_EQ(read(wake_, &count, sizeof count), static_cast<ssize_t>(sizeof count));
      }
      const std::lock_guard lock(mutex_);
      if (stop_) return;
      receive();
      const Time deadline = pump();
      timeout_ms = static_cast<int>(std::clamp<Time>((deadline - now_ns()) / 1'000'000 + 1, 0, 1000));
    }
  }

  void receive() {
    std::array<uint8_t, 2048> bytes;
    for (;;) {
      sockaddr_in sender{};
      socklen_t length = sizeof sender;
      const ssize_t count = recvfrom(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT,
                                     kind_ == Kind::kUdp ? reinterpret_cast<sockaddr *>(&sender) : nullptr,
                                     kind_ == Kind::kUdp ? &length : nullptr);
      if (count <= 0) return;
      if (muted_ || is_lost()) continue;
      const Bytes input{bytes.data(), static_cast<size_t>(count)};
      if (kind_ == Kind::kStream) {
        receive_stream(input);
      } else {
        message(kind_ == Kind::kUdp ? ntohs(sender.sin_port) : 1, input);
      }
    }
  }

  void receive_stream(Bytes input) {
    while (!input.empty()) {
      int complete = 0;
      const size_t used = tide_framing_reader_input(&reader_, input.data(), input.size(), &complete);
      input = input.subspan(used);
      if (complete != 0) {
        message(1, {frame_.data(), reader_.length});
        tide_framing_reader_set_buffer(&reader_, frame_.data(), frame_.size());
      }
    }
  }

  void message(Endpoint endpoint, Bytes input) {
    received_.emplace_back(input.begin(), input.end());
    agent_.input(endpoint, input, now_ns());
  }

  bool is_lost() { return one_in_ != 0 && chance_() % one_in_ == 0; }

  Time pump() {
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
    return deadline;
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
      ASSERT_EQ(::send(socket_, framed.data(), static_cast<size_t>(length), 0), length);
      return;
    }
    bytes.insert(bytes.end(), body.begin(), body.end());
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(endpoint));
    const auto *target = kind_ == Kind::kUdp ? reinterpret_cast<const sockaddr *>(&address) : nullptr;
    sendto(socket_, bytes.data(), bytes.size(), 0, target, target == nullptr ? 0 : sizeof address);
  }

  Kind kind_;
  std::mutex mutex_;
  agent::test::FakeMiddleware middleware_;
  int wake_ = eventfd(0, EFD_CLOEXEC);
  agent::Agent agent_;
  int socket_ = -1;
  uint16_t port_ = 0;
  bool stop_ = false, muted_ = false;
  unsigned one_in_ = 0;
  std::mt19937 chance_;
  std::vector<Endpoint> ready_;
  std::vector<Octets> received_;
  tide_framing_reader_t reader_{};
  std::array<uint8_t, 2048> frame_{};
  std::thread thread_;
};

}  // namespace tide::compat::test
