// SPDX-License-Identifier: Apache-2.0
// A working client receives damaged and foreign messages, as datagrams and as bytes of a serial line. The client must
// neither corrupt memory nor hang, and must work as before once the storm has ended and the agent has restarted.
#include <gtest/gtest.h>

#include "dice.h"
#include "mutate.h"
#include "session_bench.h"
#include "tide/framing.h"
#include "vectors.h"

namespace session_hostile_test {

namespace storm {

std::vector<bench::Bytes> recorded_messages() {
  std::vector<bench::Bytes> messages;
  for (const std::string &file : all_vector_files())
    for (const Record &record : load_vectors(file))
      if (record.transport == "udp") messages.push_back(record.bytes);
  return messages;
}

const uint64_t first_seed = tide::test::environment("TIDE_SEED", 1);

struct Program {
  explicit Program(uint64_t seed)
      : bench([&] {
          bench::Options options;
          options.seed = seed;
          return options;
        }()) {
    bench.start();
    objects = bench.add_program(2, 2);
    readers[0] = bench.subscribe(objects.readers[0]->id, true, TIDE_PRIORITY(2, 1), 4);
    readers[1] = bench.subscribe(objects.readers[1]->id, false, 0, 4);
    tide_session_open(bench.session());
    EXPECT_TRUE(bench.run_until([&] { return bench.session()->state == TIDE_SESSION_READY; }));
    bench.agent.die(); /* all messages from here on are forged */
  }

  /* The program's normal work: it publishes and takes received samples. */
  void work(uint64_t turn) {
    bench.write(objects.writers[0]->id, "reliable " + std::to_string(turn), true, TIDE_PRIORITY(1, 1));
    bench.write(objects.writers[1]->id, std::string(700, 'x'), turn % 2 == 0, 0);
    for (auto *reader : readers) {
      while (bench.take(&reader->reader) != "-") {}
    }
  }

  bool exchanges() {
    bench.agent.samples.clear();
    const std::string text = "after the storm";
    /* samples published in the storm are sent before this one */
    EXPECT_TRUE(bench.run_until([&] { return tide_session_is_idle(bench.session(), 0); }, 120 * bench::s));
    EXPECT_EQ(bench.write(objects.writers[0]->id, text, true, 0), TIDE_OK);
    const bool sent = bench.run_until([&] {
      for (const auto &sample : bench.agent.samples)
        if (sample.second == text) return true;
      return false;
    });
    while (bench.take(&readers[0]->reader) != "-") {}
    bench.agent.publish(objects.readers[0]->id, "answer");
    return sent && bench.run_until([&] { return bench.take(&readers[0]->reader) == "answer"; });
  }

  bench::Bench bench;
  bench::Bench::Writers objects;
  bench::Bench::Subscription *readers[2];
};

void start_agent(bench::Bench &b) {
  b.agent.live();
  ASSERT_TRUE(
      b.run_until([&] { return b.agent.knows_client() && b.session()->state == TIDE_SESSION_READY; }, 120 * bench::s));
}

}  // namespace storm

TEST(SessionHostile, SurvivesDamagedDatagrams) {
  const std::vector<bench::Bytes> recorded = storm::recorded_messages();
  for (uint64_t seed = storm::first_seed; seed < storm::first_seed + 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed) + " (TIDE_SEED)");
    storm::Program program(seed);
    std::mt19937_64 random(seed);
    for (int turn = 0; turn < 4000; ++turn) {
      bench::Bytes bytes = recorded[random() % recorded.size()];
      if (random() % 8 != 0) mutate(&bytes, recorded[random() % recorded.size()], random);
      tide_daemon_on_message(&program.bench.session()->daemon, bytes.data(), bytes.size());
      if (turn % 4 == 0) program.work(static_cast<uint64_t>(turn));
      program.bench.run(static_cast<int64_t>(random() % 2000) * 1000);
    }
    EXPECT_GT(program.bench.session()->daemon.receiver.counters.frames, 500u) << "the storm did not arrive";
    storm::start_agent(program.bench);
    EXPECT_TRUE(program.exchanges());
    EXPECT_EQ(program.bench.slots_in_use(), 0u);
  }
}

TEST(SessionHostile, SurvivesDamagedSerialFrames) {
  const std::vector<bench::Bytes> recorded = storm::recorded_messages();
  for (uint64_t seed = storm::first_seed; seed < storm::first_seed + 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed) + " (TIDE_SEED)");
    storm::Program program(seed);
    std::mt19937_64 random(seed);
    for (int turn = 0; turn < 3000; ++turn) {
      bench::Bytes message = recorded[random() % recorded.size()];
      if (random() % 2 != 0) mutate(&message, recorded[random() % recorded.size()], random);
      bench::Bytes frame(TIDE_FRAMING_WORST_BYTES(message.size()));
      const int count =
          tide_framing_encode(frame.data(), frame.size(), 0, 0, message.data(), message.size(), nullptr, 0);
      ASSERT_GT(count, 0);
      frame.resize(static_cast<size_t>(count));
      if (random() % 2 != 0) mutate(&frame, recorded[random() % recorded.size()], random);
      for (size_t at = 0; at < frame.size();) {
        const size_t piece = std::min<size_t>(frame.size() - at, 1 + random() % 64);
        tide_daemon_on_bytes(&program.bench.session()->daemon, frame.data() + at, piece);
        at += piece;
      }
      if (turn % 4 == 0) program.work(static_cast<uint64_t>(turn));
      program.bench.run(static_cast<int64_t>(random() % 2000) * 1000);
    }
    EXPECT_GT(program.bench.session()->daemon.receiver.counters.frames, 500u) << "the storm did not arrive";
    storm::start_agent(program.bench);
    EXPECT_TRUE(program.exchanges());
  }
}

}  // namespace session_hostile_test
