// SPDX-License-Identifier: Apache-2.0
// Sequences of operations that fail half-way (sequences.h) with a middleware that is a fake: fast, and the same each
// time.
#include <gtest/gtest.h>

#include "fake_middleware.h"
#include "sequences.h"

namespace tide::agent::test {
namespace agent_sequences_test {

// Brings each sample to all readers of its topic at once, as DDS does within a process.
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

}  // namespace agent_sequences_test
}  // namespace tide::agent::test
