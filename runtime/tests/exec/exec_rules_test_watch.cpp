// SPDX-License-Identifier: Apache-2.0
// Deadlines of chains at run time: a timer, a delay elsewhere, and a callback that ends the chain.
#include <utility>

#include "exec_rules.h"
#include "tide/chain_watch.h"
#include "tide/trace.h"

namespace exec_rules_test_watch {

using namespace exec_virtual;

using Told = std::vector<std::pair<tide_violation_t, int64_t>>;

struct Watched {
  explicit Watched(Bench &the_bench) : bench(the_bench) {
    tide_chain_init(&chain, "brake", 3, 100, 60);
    tide_chain_add(&chain, &clock.timer.callback);
    tide_chain_add_remote(&chain);
    tide_chain_add(&chain, &act.callback);
    clock.execution = 10;
    clock.action = [this] {
      const size_t index = clock.times.size() - 1;
      const int64_t away = index < answers.size() ? answers[index] : 20;
      if (away >= 0) bench.machine.at(bench.machine.now + away, [this] { act.notify(); });
    };
    act.action = [this] { bench.machine.execute(5); };
    watch.context = &told;
    watch.on_violation = [](tide_chain_watch_t *of, tide_violation_t violation, int64_t over_ns) {
      static_cast<Told *>(of->context)->emplace_back(violation, over_ns);
    };
  }
  int add() { return tide_chain_watch(&watch, &chain, &clock.timer.callback, &act.callback); }
  tide_chain_watch_counters_t counters() const { return tide_chain_watch_counters(&watch); }

  Bench &bench;
  std::string log;
  tide_chain_t chain{};
  Clock clock{bench, 100};
  Probe act{bench, log, 'a', 1};
  std::vector<int64_t> answers;  // delay of each message; negative: it never arrives
  tide_chain_watch_t watch{};
  Told told;
};

TEST(ExecWatch, EndsInTimeAreCounted) {
  Bench bench(TIDE_POLICY_TIDE);
  bench.init();
  Watched watched(bench);
  ASSERT_EQ(watched.add(), TIDE_OK);
  rounds_until(bench, 1050);
  const auto counters = watched.counters();
  EXPECT_EQ(counters.started, 10u);
  EXPECT_EQ(counters.ended, 10u);
  EXPECT_EQ(counters.late + counters.missing, 0u);
  EXPECT_EQ(counters.longest_ns, 35);
  EXPECT_TRUE(watched.told.empty());
}

TEST(ExecWatch, LateAndMissingEndsAreToldWithHowMuch) {
  Bench bench(TIDE_POLICY_TIDE);
  bench.init();
  Watched watched(bench);
  watched.answers = {20, 50, -1, 45, 46, -1, -1, 20};
  ASSERT_EQ(watched.add(), TIDE_OK);
  rounds_until(bench, 850);
  const auto counters = watched.counters();
  EXPECT_EQ(counters.started, 8u);
  EXPECT_EQ(counters.ended, 5u);
  EXPECT_EQ(counters.late, 2u);
  EXPECT_EQ(counters.missing, 3u);
  EXPECT_EQ(counters.longest_ns, 65);
  const Told expected{{TIDE_VIOLATION_LATE, 5},
                      {TIDE_VIOLATION_MISSING, 100},
                      {TIDE_VIOLATION_LATE, 1},
                      {TIDE_VIOLATION_MISSING, 100},
                      {TIDE_VIOLATION_MISSING, 100}};
  EXPECT_EQ(watched.told, expected);
}

#if TIDE_TRACE
TEST(ExecWatch, LateAndMissingInstancesStandInTheTrace) {
  Bench bench(TIDE_POLICY_TIDE);
  bench.init();
  Watched watched(bench);
  watched.answers = {20, 50, -1, 45};
  ASSERT_EQ(watched.add(), TIDE_OK);
  std::array<tide_trace_record_t, 64> records{};
  tide_trace_instances_t instances{};
  tide_trace_ring_t ring{};
  ring.records = records.data();
  ring.mask = records.size() - 1;
  ring.instances = &instances;
  bench.lanes[0].trace = &ring;
  rounds_until(bench, 500);
  std::vector<std::array<int64_t, 3>> found;  // time, instance and kind
  for (uint32_t number = 0; number < ring.written; number++) {
    const tide_trace_record_t &one = records[number];
    if (one.kind != TIDE_TRACE_DEADLINE) continue;
    EXPECT_EQ(one.priority, watched.act.callback.priority);
    found.push_back({one.time_ns, one.instance, one.detail});
  }
  const std::vector<std::array<int64_t, 3>> expected{{265, 1, TIDE_VIOLATION_LATE}, {400, 2, TIDE_VIOLATION_MISSING}};
  EXPECT_EQ(found, expected);
}
#endif

TEST(ExecWatch, AnExecutorKnowsTheWatchedChainsOfItsCallbacks) {
  Bench bench(TIDE_POLICY_TIDE);
  bench.init();
  Watched watched(bench);
  watched.answers = {20, -1};
  ASSERT_EQ(watched.add(), TIDE_OK);
  rounds_until(bench, 350);
  const char *name = nullptr;
  tide_chain_watch_counters_t counters{};
  size_t watches = 0, place = 0;
  for (int found; (found = tide_executor_get_watch(&bench.executor, place, &name, &counters)) >= 0; place++) {
    watches += static_cast<size_t>(found);
  }
  EXPECT_EQ(tide_executor_get_watch(&bench.executor, place, &name, &counters), TIDE_ERROR_NOT_FOUND);
  EXPECT_EQ(watches, 1u);
  EXPECT_STREQ(name, "brake");
  EXPECT_EQ(counters.missing, 1u);
}

// The timer was delayed, but its instance began at its expiry.
TEST(ExecWatch, AnInstanceBeginsAtTheNominalExpiry) {
  Bench bench(TIDE_POLICY_TIDE);
  bench.init();
  Watched watched(bench);
  Probe blocks(bench, watched.log, 'b', 2);
  blocks.action = [&] { bench.machine.execute(40); };
  ASSERT_EQ(watched.add(), TIDE_OK);
  bench.machine.at(99, [&] { blocks.notify(); });
  rounds_until(bench, 190);
  EXPECT_EQ(watched.counters().longest_ns, 74) << "39 of them before the timer ran";
  EXPECT_EQ(watched.counters().late, 1u);
}

TEST(ExecWatch, WhatNoInstanceWaitsForIsNoEnd) {
  Bench bench(TIDE_POLICY_TIDE);
  bench.init();
  Watched watched(bench);
  ASSERT_EQ(watched.add(), TIDE_OK);
  watched.act.notify();
  rounds_until(bench, 90);
  EXPECT_EQ(watched.counters().ended, 0u);
}

TEST(ExecWatch, OneCallbackMayBeTheWholeChain) {
  Bench bench(TIDE_POLICY_TIDE);
  bench.init();
  Watched watched(bench);
  auto *timer = &watched.clock.timer.callback;
  ASSERT_EQ(tide_chain_watch(&watched.watch, &watched.chain, timer, timer), TIDE_OK);
  rounds_until(bench, 350);
  EXPECT_EQ(watched.counters().ended, 3u);
  EXPECT_EQ(watched.counters().longest_ns, 10);
}

TEST(ExecWatch, WhatContradictsTheTimerIsRefused) {
  Bench bench(TIDE_POLICY_TIDE);
  bench.init();
  Watched watched(bench);
  const auto with = [&](int64_t period, int64_t deadline) {
    watched.chain.period_ns = period;
    watched.chain.deadline_ns = deadline;
    return watched.add();
  };
  EXPECT_EQ(with(500, 60), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(with(100, 0), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(with(100, 101), TIDE_ERROR_ARGUMENT);
  tide_callback_t stray{};
  EXPECT_EQ(with(100, 100), TIDE_OK);
  EXPECT_EQ(with(100, 100), TIDE_ERROR_EXISTS);
  tide_chain_watch_t other{};
  stray.kind = TIDE_CALLBACK_SUBSCRIPTION;
  EXPECT_EQ(tide_chain_watch(&other, &watched.chain, &stray, &stray), TIDE_ERROR_STATE);
  EXPECT_EQ(tide_chain_watch_counters(&other).started, 0u);
}

}  // namespace exec_rules_test_watch
