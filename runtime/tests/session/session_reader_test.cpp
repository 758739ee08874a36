// SPDX-License-Identifier: Apache-2.0
// Readers: their requests, and their queues of samples that stay in their frames.
#include "session_bench.h"
namespace session_reader_test {

using namespace bench;

struct Reading : Bench {
  explicit Reading(Options options = {}) : Bench(options) {
    connect();
    program = add_program(0, 3);
    EXPECT_TRUE(run_until([&] { return session()->objects_unanswered == 0; }));
  }
  Subscription *reader(size_t index, bool reliable, tide_priority_t priority, uint8_t depth) {
    const size_t before = agent.reads.size();
    Subscription *subscription = subscribe(program.readers[index]->id, reliable, priority, depth);
    EXPECT_TRUE(run_until([&] { return agent.reads.size() == before + 1; }));
    return subscription;
  }
  void publish(size_t index, const std::string &text, uint8_t format = 0) {
    agent.publish(program.readers[index]->id, text, format);
    run(5 * ms);
  }
  Writers program{};
};

TEST(SessionReader, AsksOnTheStreamOfItsLevelAndReliability) {
  Reading b;
  auto *first = b.reader(0, true, TIDE_PRIORITY(0, 7), 1);
  auto *second = b.reader(1, false, TIDE_PRIORITY(9, 0), 1);
  const tide_xrce_read_data_t &reliable = b.agent.reads.at(first->reader.object);
  EXPECT_EQ(reliable.stream, 0x80);
  EXPECT_TRUE(reliable.has_delivery_control);
  EXPECT_EQ(reliable.max_samples, 0xFFFF);
  EXPECT_EQ(b.agent.reads.at(second->reader.object).stream, 0x0A);
  b.publish(1, "x");
  EXPECT_EQ(b.take(&second->reader), "x");
  EXPECT_EQ(first->calls, 0u);
  EXPECT_EQ(second->calls, 1u);
}

TEST(SessionReader, KeepsTheLastAndCountsWhatGaveWay) {
  Reading b;
  auto *subscription = b.reader(0, true, 0, 3);
  for (int i = 0; i < 7; ++i) b.publish(0, std::to_string(i));
  EXPECT_EQ(subscription->reader.count, 3);
  EXPECT_EQ(subscription->reader.received, 7u);
  EXPECT_EQ(subscription->reader.dropped, 4u);
  EXPECT_EQ(subscription->calls, 7u);
  EXPECT_EQ(b.slots_in_use(), 3u) << "one slot a queued sample, in place";
  for (const char *expected : {"4", "5", "6", "-"}) EXPECT_EQ(b.take(&subscription->reader), expected);
  EXPECT_EQ(b.slots_in_use(), 0u);
}

TEST(SessionReader, KeepAllHoldsTheAgentAndLosesNothing) {
  Reading b;
  auto *subscription = b.reader(0, true, 0, 3);
  auto *other = b.reader(1, true, TIDE_PRIORITY(1, 0), 3);
  subscription->reader.keep_all = true;
  for (int i = 0; i < 40; ++i) b.publish(0, std::to_string(i));
  EXPECT_EQ(subscription->reader.count, 3);
  b.publish(1, "x");
  EXPECT_EQ(b.take(&other->reader), "x") << "a stream that is held stops no other one";
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(b.run_until([&] { return subscription->reader.count > 0; }, 5 * s)) << i;
    EXPECT_EQ(b.take(&subscription->reader), std::to_string(i));
  }
  EXPECT_EQ(subscription->reader.dropped, 0u);
}

// The program takes nothing before all its objects exist, and the agent immediately has data for the first of its
// readers.
void expect_ready_behind_data(const std::string &data, bool keep_all) {
  Bench b;
  b.open();
  const auto program = b.add_program(0, 1);
  auto *subscription = b.subscribe(program.readers[0]->id, true, 0, 8);
  subscription->reader.keep_all = keep_all;
  const tide_object_t *last = nullptr;
  for (int i = 0; i < 9; ++i) last = b.add(TIDE_XRCE_KIND_DATAWRITER, program.publisher->id, program.topic->id);
  for (unsigned session = 1; session <= 3; ++session) {
    SCOPED_TRACE("session " + std::to_string(session));
    ASSERT_TRUE(b.run_until([&] { return !b.agent.reads.empty(); }));
    ASSERT_NE(last->state, TIDE_OBJECT_CREATED);
    for (int i = 0; i < 20; ++i) b.agent.publish(subscription->reader.object, data);
    EXPECT_EQ(tide_session_wait_state(b.session(), TIDE_SESSION_READY, b.clock.now_ns + 9 * s, &b.pump), TIDE_OK);
    EXPECT_EQ(b.session()->counters.connects, session);
    EXPECT_FALSE(b.agent.is_idle()) << "the data is not blocked";
    b.agent.die();
    b.agent.live();
    ASSERT_TRUE(b.run_until([&] { return b.session()->state != TIDE_SESSION_READY; }));
  }
  const auto takes = [&] { return b.take(&subscription->reader) == "-" && b.agent.is_idle(); };
  EXPECT_TRUE(b.run_until([&] { return b.session()->state == TIDE_SESSION_READY && takes(); }));
}

TEST(SessionReader, ASessionIsReadyBehindFragmentsThatNothingTakes) {
  expect_ready_behind_data(std::string(1500, 'x'), false);
}

TEST(SessionReader, ASessionIsReadyBehindAFullKeepAllReader) { expect_ready_behind_data("x", true); }

TEST(SessionReader, AFloodIsCountedAtItsReader) {
  Reading b;
  auto *flooded = b.reader(0, false, TIDE_PRIORITY(1, 0), 2);
  auto *other = b.reader(1, false, 0, 2);
  const uint32_t received = flooded->reader.received;
  b.executor_runs = false;
  for (int i = 0; i < 100; ++i) b.publish(0, std::to_string(i));
  for (int i = 0; i < 2; ++i) b.publish(1, std::to_string(i));
  b.executor_runs = true;
  b.run(5 * ms);
  EXPECT_EQ(flooded->reader.received - received + flooded->reader.account.dropped, 100u);
  EXPECT_GT(flooded->reader.account.dropped, 0u);
  EXPECT_EQ(b.take(&other->reader), "0");
  EXPECT_EQ(b.take(&other->reader), "1");
}

TEST(SessionReader, TheSampleInUseStaysWhateverArrives) {
  Reading b;
  auto *subscription = b.reader(0, true, 0, 1);
  b.publish(0, "in use");
  const tide_sample_t *sample = tide_session_peek(b.session(), &subscription->reader);
  ASSERT_NE(sample, nullptr);
  for (int i = 0; i < 30; ++i) b.publish(0, "later " + std::to_string(i));
  EXPECT_EQ(std::string(sample->bytes, sample->bytes + sample->length), "in use");
  EXPECT_EQ(tide_session_peek(b.session(), &subscription->reader), sample);
  tide_session_take_done(b.session(), &subscription->reader);
  EXPECT_EQ(b.take(&subscription->reader), "later 29");
}

TEST(SessionReader, LongSamplesStayInTheirReassembly) {
  Reading b({.mtu = 128});
  auto *subscription = b.reader(0, true, 0, 2);
  const std::string text(1500, 'r');
  b.agent.publish(b.program.readers[0]->id, text);
  ASSERT_TRUE(b.run_until([&] { return subscription->reader.count == 1; }, 5 * s));
  const tide_sample_t *sample = tide_session_peek(b.session(), &subscription->reader);
  EXPECT_TRUE(sample->reassembled);
  EXPECT_EQ(b.take(&subscription->reader), text);
}

TEST(SessionReader, ChangingTheLevelMovesTheReaderAndLosesNothing) {
  Reading b;
  auto *subscription = b.reader(0, true, TIDE_PRIORITY(1, 0), 50);
  std::vector<std::string> sent, got;
  for (int i = 0; i < 40; ++i) {
    sent.push_back(std::to_string(i));
    b.agent.publish(b.program.readers[0]->id, sent.back());
    if (i == 20) {
      ASSERT_EQ(tide_session_set_reader_priority(b.session(), &subscription->reader, TIDE_PRIORITY(6, 0)), TIDE_OK);
      b.run(20 * ms); /* this lets the old stream drain, because the two streams are independent */
    }
    b.run(ms);
    for (std::string text; (text = b.take(&subscription->reader)) != "-";) got.push_back(text);
  }
  b.run(100 * ms);
  for (std::string text; (text = b.take(&subscription->reader)) != "-";) got.push_back(text);
  EXPECT_EQ(b.agent.reads.at(subscription->reader.object).stream, 0x86);
  EXPECT_EQ(got, sent);
  const size_t reads = static_cast<size_t>(std::count_if(
      b.agent.seen.begin(), b.agent.seen.end(), [](const Seen &seen) { return seen.id == TIDE_XRCE_READ_DATA; }));
  ASSERT_EQ(tide_session_set_reader_priority(b.session(), &subscription->reader, TIDE_PRIORITY(6, 9)), TIDE_OK);
  b.run(50 * ms);
  EXPECT_EQ(static_cast<size_t>(std::count_if(b.agent.seen.begin(), b.agent.seen.end(),
                                              [](const Seen &seen) { return seen.id == TIDE_XRCE_READ_DATA; })),
            reads)
      << "a position within the chain is local";
}

TEST(SessionReader, FramesAreProcessedByThePriorityOfTheirReader) {
  Reading b;
  auto *calm = b.reader(0, false, TIDE_PRIORITY(0, 1), 4);
  auto *urgent = b.reader(1, false, TIDE_PRIORITY(0, 200), 4);
  b.executor_runs = false;
  b.publish(0, "calm");
  b.publish(1, "urgent");
  EXPECT_EQ(tide_daemon_most_urgent(&b.session()->daemon), TIDE_PRIORITY(0, 200));
  tide_daemon_process_most_urgent(&b.session()->daemon);
  b.executor_runs = true;
  b.run(ms);
  EXPECT_EQ(b.take(&urgent->reader), "urgent");
  EXPECT_EQ(b.take(&calm->reader), "calm");
}

TEST(SessionReader, RemovingCancelsReleasesAndIgnoresWhatStillComes) {
  Reading b;
  auto *subscription = b.reader(0, true, 0, 4);
  const tide_xrce_read_data_t asked = b.agent.reads.at(subscription->reader.object);
  b.publish(0, "one");
  b.publish(0, "two");
  EXPECT_EQ(b.slots_in_use(), 2u);
  ASSERT_EQ(tide_session_remove_reader(b.session(), &subscription->reader), TIDE_OK);
  EXPECT_EQ(b.slots_in_use(), 0u);
  EXPECT_EQ(tide_session_remove_reader(b.session(), &subscription->reader), TIDE_ERROR_NOT_FOUND);
  ASSERT_TRUE(b.run_until([&] { return b.agent.reads.empty(); }, s));
  b.agent.reads[subscription->reader.object] = asked; /* the agent behaves as if it had missed the removal */
  b.publish(0, "three");
  EXPECT_EQ(b.session()->counters.samples_unwanted, 1u);
  EXPECT_EQ(subscription->calls, 2u);
  EXPECT_TRUE(b.run_until([&] { return b.agent.is_idle(); }, s)) << "it is acknowledged all the same";
}

TEST(SessionReader, AReaderTheAgentRefusesIsReported) {
  Reading b;
  auto *subscription = b.subscribe(TIDE_XRCE_OBJECT(77, TIDE_XRCE_KIND_DATAREADER), true, 0, 1);
  ASSERT_TRUE(b.run_until([&] { return subscription->reader.state == TIDE_OBJECT_REFUSED; }, s));
  EXPECT_EQ(subscription->reader.status, TIDE_XRCE_STATUS_ERR_UNKNOWN_REFERENCE);
}

TEST(SessionReader, LimitsGoIntoTheDeliveryControl) {
  Reading b;
  Bench::Subscription subscription;
  subscription.ring.resize(1);
  subscription.reader.object = b.program.readers[0]->id;
  subscription.reader.samples = subscription.ring.data();
  subscription.reader.depth = 1;
  subscription.reader.max_samples = 500;
  subscription.reader.max_elapsed_s = 2;
  subscription.reader.max_bytes_per_s = 1000;
  subscription.reader.min_pace_ms = 7;
  ASSERT_EQ(tide_session_add_reader(b.session(), &subscription.reader), TIDE_OK);
  EXPECT_EQ(tide_session_add_reader(b.session(), &subscription.reader), TIDE_ERROR_EXISTS);
  ASSERT_TRUE(b.run_until([&] { return b.agent.reads.size() == 1; }));
  const tide_xrce_read_data_t &read = b.agent.reads.begin()->second;
  EXPECT_EQ(read.max_samples, 500);
  EXPECT_EQ(read.max_elapsed_time_s, 2);
  EXPECT_EQ(read.max_bytes_per_second, 1000);
  EXPECT_EQ(read.min_pace_period_ms, 7);
  ASSERT_EQ(tide_session_remove_reader(b.session(), &subscription.reader), TIDE_OK);
}

TEST(SessionReader, DamagedSamplesAreCountedAndNothingLeaks) {
  std::mt19937_64 random(11);
  Reading b;
  auto *subscription = b.reader(0, true, 0, 4);
  for (int i = 0; i < 2000; ++i) {
    std::string text(random() % 40, '\0');
    for (char &c : text) c = static_cast<char>(random() % 7 == 0 ? random() : random() % 4);
    b.publish(0, text, static_cast<uint8_t>((random() % 8) << 1));
    if (i % 3 == 0) b.take(&subscription->reader);
    EXPECT_LE(b.slots_in_use(), 4u) << "step " << i;
  }
  EXPECT_GT(b.session()->counters.samples_malformed, 100u);
  while (b.take(&subscription->reader) != "-") {}
  EXPECT_EQ(b.slots_in_use(), 0u);
}

TEST(SessionReader, RandomQueuesBehaveLikeAModel) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    Reading b({.slots = 24});
    const uint8_t depth = static_cast<uint8_t>(1 + random() % 6);
    auto *subscription = b.reader(0, true, 0, depth);
    std::deque<std::string> model;
    std::string held;
    for (int i = 0; i < 200; ++i) {
      switch (random() % 3) {
        case 0:
          model.push_back(std::to_string(i));
          if (model.size() > depth) model.pop_front();
          b.publish(0, std::to_string(i));
          break;
        case 1:
          if (const tide_sample_t *sample = tide_session_peek(b.session(), &subscription->reader)) {
            if (held.empty()) {
              ASSERT_FALSE(model.empty());
              held = model.front();
              model.pop_front();
            }
            ASSERT_EQ(std::string(sample->bytes, sample->bytes + sample->length), held);
          } else {
            ASSERT_TRUE(model.empty() && held.empty());
          }
          break;
        default:
          tide_session_take_done(b.session(), &subscription->reader);
          held.clear();
          break;
      }
      ASSERT_EQ(subscription->reader.count, model.size());
    }
  }
}

}  // namespace session_reader_test
