// SPDX-License-Identifier: Apache-2.0
// Sequences of well-formed operations that fail half-way. Several clients create, delete and recreate all kinds of
// entities, with shared topics and conflicting types. They restart, reset, stop in the middle of fragments, use each
// other's keys, and leave. The agent is polled at random times, and its time jumps. Meanwhile two regular clients
// exchange samples, none of which may be lost, duplicated or late. All choices come from one source, the octets of a
// fuzzer or a seed, so that a run can be repeated. A violated condition aborts the process.
#pragma once

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "core/agent.h"
#include "tide/xrce.h"

namespace tide::agent::test {

// If the process aborts from now on, it reports this seed, with which the run can be repeated.
void announce_seed(uint64_t seed);

#define TIDE_MUST(condition)                                                          \
  do {                                                                                \
    if (!(condition)) {                                                               \
      std::fprintf(stderr, "%s:%d: must hold: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                   \
    }                                                                                 \
  } while (false)

inline std::vector<uint8_t> bytes_of(const tide_frame_parts_t &frame) {
  std::vector<uint8_t> bytes(frame.head, frame.head + frame.head_bytes);
  bytes.insert(bytes.end(), frame.body, frame.body + frame.body_bytes);
  bytes.insert(bytes.end(), frame.tail, frame.tail + frame.tail_bytes);
  return bytes;
}

class Choices {
 public:
  explicit Choices(Bytes bytes) : bytes_(bytes) {}
  explicit Choices(uint64_t seed) : random_(seed), is_random_(true) {}
  // A number from 0 to below - 1.
  uint32_t operator()(uint32_t below) {
    if (is_random_) return static_cast<uint32_t>(random_() % below);
    const uint32_t high = octet(), low = below > 256 ? octet() : 0;
    return (high | low << 8) % below;
  }
  bool one_in(uint32_t count) { return (*this)(count) == count - 1; }
  bool is_over() const { return !is_random_ && place_ >= bytes_.size(); }

 private:
  uint8_t octet() { return place_ < bytes_.size() ? bytes_[place_++] : uint8_t{0}; }
  Bytes bytes_;
  size_t place_ = 0;
  std::mt19937_64 random_;
  bool is_random_ = false;
};

class Body {
 public:
  template <typename Put, typename... Values> explicit Body(Put put, const Values &...values) : octets_(4096) {
    tide_cdr_writer(&cdr_, octets_.data(), octets_.size());
    put(&cdr_, values...);
    octets_.resize(cdr_.position);
  }
  void append(size_t count, uint8_t value) { octets_.insert(octets_.end(), count, value); }
  void append(Bytes bytes) { octets_.insert(octets_.end(), bytes.begin(), bytes.end()); }
  const std::vector<uint8_t> &octets() const { return octets_; }

 private:
  std::vector<uint8_t> octets_;
  tide_cdr_t cdr_{};
};

// Builds and sends messages of an XRCE client.
class Talker {
 public:
  Talker(Agent &agent, Endpoint endpoint, uint32_t key, uint8_t session)
      : agent_(agent), endpoint_(endpoint), key_(key), session_(session) {}

  void connect(Endpoint from, uint16_t mtu, Time now) {
    tide_xrce_create_client_t body{};
    body.version_major = 1;
    body.vendor = 0x010F;
    body.key = key_;
    body.session = session_;
    body.mtu = mtu;
    const uint8_t none = session_ < 0x80 ? TIDE_XRCE_SESSION_NONE_WITH_KEY : TIDE_XRCE_SESSION_NONE_WITHOUT_KEY;
    start(none, 0, 0);
    add(TIDE_XRCE_CREATE_CLIENT, 1, Body(tide_xrce_put_create_client, &body).octets());
    send(from, now);
    sequences_.clear();
  }
  void start(uint8_t stream) { start(session_, stream, stream == 0 ? uint16_t{0} : sequences_[stream]++); }
  void add(uint8_t id, uint8_t flags, Bytes body) {
    while (message_.size() % 4 != 0) message_.push_back(0);
    uint8_t head[4];
    tide_xrce_put_submessage_header(head, id, flags, static_cast<uint16_t>(body.size()));
    message_.insert(message_.end(), head, head + sizeof head);
    message_.insert(message_.end(), body.begin(), body.end());
  }
  void send(Endpoint from, Time now) {
    // The allocation has exactly the message's size, so that the sanitizer detects reads beyond its end.
    const std::unique_ptr<uint8_t[]> exact(new uint8_t[message_.size()]);
    std::copy(message_.begin(), message_.end(), exact.get());
    agent_.input(from, {exact.get(), message_.size()}, now);
  }
  void send(Time now) { send(endpoint_, now); }
  void skip(uint8_t stream, int count) { sequences_[stream] = static_cast<uint16_t>(sequences_[stream] + count); }
  void restart_streams() { sequences_.clear(); }
  uint16_t next_of(uint8_t stream) { return sequences_[stream]; }
  uint16_t next_request() { return request_++; }
  Endpoint endpoint() const { return endpoint_; }

 private:
  void start(uint8_t session, uint8_t stream, uint16_t sequence) {
    message_.resize(TIDE_XRCE_HEADER_MAXIMUM_BYTES);
    const tide_xrce_header_t header = {session, stream, sequence, key_};
    message_.resize(tide_xrce_put_header(message_.data(), &header));
  }

  Agent &agent_;
  Endpoint endpoint_;
  uint32_t key_;
  uint8_t session_;
  uint16_t request_ = 10;
  std::map<uint8_t, uint16_t> sequences_;
  std::vector<uint8_t> message_;
};

// Wake-ups of this thread by threads of DDS.
class News {
 public:
  void bring();
  // Waits for a wake-up, at most a millisecond.
  void wait();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool there_ = false;
};

class Sequences {
 public:
  // `domain`: the DDS domain of all participants whose creation must succeed.
  Sequences(Middleware &middleware, int domain);
  // Runs one sequence of at most `operations`.
  void run(Choices &choices, uint32_t operations);
  // Lets all other clients leave.
  void clear(Choices &choices);
  // Sends one sample between the regular clients, and a ping of both; run does this, too.
  void exchange();

  std::function<void()> before_poll;  // unset: nothing

  uint64_t exchanged() const { return exchanged_; }
  Counters counters() const { return agent_.counters(); }

 private:
  void operate(Choices &choices);
  void describe(Choices &choices, Talker &talker);
  void write(Choices &choices, Talker &talker, uint8_t stream);
  void read(Choices &choices, Talker &talker);
  void control(Choices &choices, Talker &talker);
  void pump(Choices *choices);
  void take(Endpoint endpoint, Bytes frame);
  void set_up_good();
  template <typename Condition> bool comes(Condition condition);

  std::shared_ptr<News> news_;
  Agent agent_;
  int domain_;
  std::string good_topic_;
  Time now_ = 1'000'000'000, exchanged_ns_ = 0;
  std::vector<Talker> actors_;
  Talker writer_, reader_;
  uint32_t number_ = 0, received_ = 0;  // numbers of the last sample of the regular writer that was sent, and received
  uint16_t acknowledged_ = 0;           // first message of its stream that the agent has not acknowledged
  bool session_opened_ = false, informed_ = false;
  int status_ = -1;
  uint64_t exchanged_ = 0;
  std::vector<Endpoint> ready_;
};

}  // namespace tide::agent::test
