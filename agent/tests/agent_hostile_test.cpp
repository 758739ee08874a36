// SPDX-License-Identifier: Apache-2.0
// Random and damaged messages from many endpoints, while one well-behaved client works. The agent must not fail or grow
// without bound, and the well-behaved client must get every answer and every sample at once.
#include <gtest/gtest.h>

#include <random>

#include "client_messages.h"
#include "mutate.h"
#include "sequences.h"

namespace tide::agent::test::agent_hostile_test {

constexpr int kMessages = 100'000;
constexpr Endpoint kHostile = 1000;
constexpr size_t kHostileEndpoints = 24;

class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed), walks_(kHostileEndpoints) {
    for (const auto &path : all_vector_files()) {
      std::vector<Octets> script;
      for (const Message &message : recorded_messages(path)) {
        all_.push_back(message.bytes);
        if (message.from_client) script.push_back(message.bytes);
      }
      scripts_.push_back(std::move(script));
    }
  }

  // The next message of an endpoint. Each endpoint replays a recorded client, so that sessions and entities are
  // created, with errors inserted now and then.
  Octets next(size_t endpoint) {
    const unsigned kind = number() % 8;
    if (kind == 0) return noise();
    Octets bytes = kind < 3 ? all_[number() % all_.size()] : own_key(step(walks_[endpoint]), endpoint);
    if (kind < 5) mutate(&bytes, all_[number() % all_.size()], random_);
    return bytes;
  }
  unsigned number() { return static_cast<unsigned>(random_()); }

 private:
  // Gives most endpoints a key of their own, because all recordings use the same key.
  static Octets own_key(Octets bytes, size_t endpoint) {
    static constexpr uint8_t kRecorded[] = {0xAA, 0xAA, 0xBB, 0xBB};
    const auto place = std::search(bytes.begin(), bytes.end(), std::begin(kRecorded), std::end(kRecorded));
    if (place != bytes.end()) place[3] = static_cast<uint8_t>(place[3] - endpoint);
    return bytes;
  }

  Octets noise() {
    Octets bytes(random_() % 80);
    for (uint8_t &octet : bytes) octet = static_cast<uint8_t>(random_());
    return bytes;
  }

  struct Walk {
    size_t script = 0, place = 0;
  };

  const Octets &step(Walk &walk) {
    if (walk.place >= scripts_[walk.script].size() || number() % 64 == 0) walk = {number() % scripts_.size(), 0};
    return scripts_[walk.script][walk.place++];
  }

  std::mt19937_64 random_;
  std::vector<Walk> walks_;
  std::vector<Octets> all_;
  std::vector<std::vector<Octets>> scripts_;
};

void disturb(unsigned seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  Mutator mutator(seed);
  Driver driver(limited(&Limits::clients, 16));
  ReadyClient good(driver, 1, 0x600DC0DE, 0x95);
  ASSERT_EQ(driver.middleware.sources.size(), 1u);
  FakeSource *source = driver.middleware.sources[0];
  good.read(0x0016, 0x01);
  uint64_t writes = 0;
  for (int round = 0; round < kMessages; round++) {
    driver.keep = false;
    const size_t endpoint = mutator.number() % kHostileEndpoints;
    driver.input(kHostile + endpoint, mutator.next(endpoint));
    if (round % 16 != 0) continue;
    driver.run_until(driver.now() + 1'000'000);
    driver.keep = true;
    driver.sent.clear();
    for (FakeSource *other : driver.middleware.sources) {
      if (other != source && mutator.number() % 4 == 0) other->offer({Octets(mutator.number() % 600), false, {}, 0, 0});
    }
    const size_t before = driver.middleware.written.size();
    good.write(0x0015, {static_cast<uint8_t>(round)});
    writes++;
    ASSERT_EQ(driver.middleware.written.size(), before + 1) << "message " << round;
    driver.middleware.written.clear();
    ASSERT_EQ(good.all(TIDE_XRCE_ACKNACK).size(), 1u) << "message " << round;
    source->offer({{static_cast<uint8_t>(round)}, false, {}, 0, 0});
    driver.pump();
    const Octets data = good.last(TIDE_XRCE_DATA);
    ASSERT_EQ(data.size(), 5u) << "message " << round;
    ASSERT_EQ(data[4], static_cast<uint8_t>(round));
    good.submit(0, TIDE_XRCE_GET_INFO, 1, bytes_from_hex("000afffd02000000"));
    ASSERT_EQ(good.last(TIDE_XRCE_INFO).at(5), 1) << "message " << round;
    ASSERT_LE(driver.agent.client_count(), 16u);
    driver.sent.clear();
  }
  EXPECT_GE(driver.agent.counters().messages_in, static_cast<uint64_t>(kMessages) + writes);
  EXPECT_GT(driver.agent.counters().clients_created, 1u);  // some hostile clients had sessions
  EXPECT_GT(driver.agent.counters().entities_created, 1000u);
  EXPECT_GT(driver.agent.counters().samples_to_client, writes + 100);
}

TEST(Hostile, BytesDisturbNobody) {
  for (const unsigned seed : {1u, 20240611u}) disturb(seed);
}

// ---- well-formed operations that fail half-way (sequences.h) ----

// A middleware that passes each sample to all readers of its topic at once, as DDS does within a process.
class Echo : public FakeMiddleware {
 public:
  void bring() {
    while (!written.empty()) {
      const std::vector<Written> news = std::exchange(written, {});
      for (const Written &one : news) {
        for (FakeSource *source : std::vector<FakeSource *>(sources)) {
          if (source->topic.name == one.topic)
            source->offer({one.payload, one.big_endian, one.identity, one.number, 0});
        }
      }
    }
  }
};

TEST(Sequences, DisturbNobody) {
  for (uint64_t seed = 1; seed <= 60; seed++) {
    announce_seed(seed);
    Echo middleware;
    Sequences sequences(middleware, 3);
    sequences.before_poll = [&middleware] { middleware.bring(); };
    Choices choices(seed);
    for (int sequence = 0; sequence < 20; sequence++) sequences.run(choices, 32);
    sequences.clear(choices);
    EXPECT_GE(sequences.exchanged(), 20u);
    EXPECT_GT(sequences.counters().entities_created, 50u);
    EXPECT_GT(sequences.counters().samples_to_client, 20u);
  }
}

}  // namespace tide::agent::test::agent_hostile_test
