// SPDX-License-Identifier: Apache-2.0
// Execution times of callbacks, by a clock of the test.
#include <algorithm>
#include <array>

#include "exec_rules.h"

namespace exec_rules_test_measure {

using namespace exec_virtual;

struct Measured {
  explicit Measured(Bench &bench, uint64_t mask = UINT64_MAX, bool of_thread = false) {
    clock.now = [](void *context) -> uint64_t {
      return static_cast<uint64_t>(static_cast<Bench *>(context)->machine.now);
    };
    clock.context = &bench;
    clock.mask = mask;
    clock.hertz = 1000000000;
    clock.of_thread = of_thread;
    tide_measure_init(&measure, &clock);
    bench.config.measure = &measure;
  }
  tide_measure_clock_t clock{};
  tide_measure_t measure{};
};

// Another executor of the same machine, whose callback runs in an interrupt and so preempts.
struct Preempting {
  explicit Preempting(Bench &bench) {
    auto config = bench.config;
    config.callbacks = callbacks.data();
    config.ready_storage = ready.data();
    config.timer_storage = timers.data();
    config.callback_count = callbacks.size();
    config.lanes = &lane;
    EXPECT_EQ(tide_executor_init(&executor, &config), TIDE_OK);
  }
  std::array<tide_callback_t *, 2> callbacks{};
  std::array<tide_queue_entry_t *, 2> ready{}, timers{};
  tide_lane_t lane{};
  tide_executor_t executor{};
};

TEST(ExecMeasure, CountsShortestLongestAndSumOfTheCallbacksThatAreMeasured) {
  Bench bench(TIDE_POLICY_TIDE);
  Measured measured(bench);
  bench.init();
  std::string log;
  Probe a(bench, log, 'a', 1), b(bench, log, 'b', 2);
  tide_measurement_t of_a{"brake/a", 0, 0, 0, 0};
  a.callback.measurement = &of_a;
  int64_t duration = 0;
  a.action = [&] { bench.machine.execute(duration); };
  b.action = [&] { bench.machine.execute(1000); };
  for (const int64_t each : {30, 7, 12}) {
    duration = each;
    a.notify();
    b.notify();
    rounds_until(bench, bench.machine.now + 2000);
  }
  EXPECT_EQ(log, "bababa");
  EXPECT_EQ(of_a.count, 3u);
  EXPECT_EQ(of_a.minimum, 7u);
  EXPECT_EQ(of_a.maximum, 30u);
  EXPECT_EQ(of_a.sum, 49u);
}

TEST(ExecMeasure, WhatPreemptsIsTakenOffUnlessTheClockIsTheThreads) {
  for (const bool of_thread : {false, true}) {
    Bench bench(TIDE_POLICY_TIDE);
    Measured measured(bench, UINT64_MAX, of_thread);
    bench.init();
    Preempting urgent(bench), most_urgent(bench);
    std::array<tide_measurement_t, 3> of{};
    std::string log;
    Probe low(bench, log, 'l', 1);
    low.callback.measurement = &of[0];
    low.action = [&] { bench.machine.execute(100); };
    struct Nested {
      Bench *bench;
      int64_t duration;
    } middle{&bench, 40}, high{&bench, 5};
    const auto nested = [](tide_callback_t *, void *context) {
      auto *self = static_cast<Nested *>(context);
      self->bench->machine.execute(self->duration);
    };
    tide_callback_t in_middle{}, in_high{};
    in_middle.kind = in_high.kind = TIDE_CALLBACK_GUARD;
    in_middle.execute = in_high.execute = nested;
    in_middle.context = &middle;
    in_high.context = &high;
    in_middle.measurement = &of[1];
    in_high.measurement = &of[2];
    ASSERT_EQ(tide_executor_add(&urgent.executor, &in_middle), TIDE_OK);
    ASSERT_EQ(tide_executor_add(&most_urgent.executor, &in_high), TIDE_OK);
    const auto preempt = [&](tide_executor_t &executor, tide_callback_t &callback) {
      tide_executor_notify(&callback);
      EXPECT_EQ(tide_executor_round(&executor, bench.machine.now), 1);
    };
    for (const int64_t begin : {0, 1000}) {
      bench.machine.at(begin + 10, [&] { preempt(urgent.executor, in_middle); });
      for (const int64_t offset : {12, 20})  // within the middle run
        bench.machine.at(begin + offset, [&] { preempt(most_urgent.executor, in_high); });
      bench.machine.at(begin + 80, [&] { preempt(most_urgent.executor, in_high); });  // within the low run
      bench.machine.now = begin;
      low.notify();
      rounds_until(bench, begin + 900);
    }
    EXPECT_EQ(of[0].count, 2u);
    EXPECT_EQ(of[1].count, 2u);
    EXPECT_EQ(of[2].count, 6u);
    EXPECT_EQ(of[2].sum, 30u);
    const uint64_t low_whole = of_thread ? of[0].maximum : of[0].maximum + of[1].maximum + 3 * of[2].maximum;
    EXPECT_EQ(low_whole, 100u);  // execute() ends at a fixed time, so a preemption shortens the measured run
    EXPECT_EQ(of[0].minimum, of[0].maximum);
    EXPECT_EQ(of[1].maximum, of_thread ? 40u : 30u);
  }
}

TEST(ExecMeasure, ACounterThatWrapsMeasuresOn) {
  Bench bench(TIDE_POLICY_TIDE);
  Measured measured(bench, 0xFF);
  measured.measure.clock.now = [](void *context) -> uint64_t {
    return static_cast<uint64_t>(static_cast<Bench *>(context)->machine.now) & 0xFF;
  };
  bench.init();
  tide_measurement_t of{};
  Clock clock(bench, 300);
  clock.execution = 200;
  clock.timer.callback.measurement = &of;
  rounds_until(bench, 3000);
  EXPECT_GE(of.count, 9u);
  EXPECT_EQ(of.minimum, 200u);
  EXPECT_EQ(of.maximum, 200u);
}

TEST(ExecMeasure, ALineIsInNanosecondsAndNeverTooLong) {
  tide_measure_t measure{};
  measure.clock.hertz = 216000000;
  const tide_measurement_t of{"brake/sample", 2, 216, UINT32_MAX, UINT64_C(432000000000) + 1};
  char text[TIDE_MEASUREMENT_LINE_BYTES];
  const std::string expected = "tide-execution brake/sample 2 1000 19884107848 2000000000005\n";
  EXPECT_EQ(tide_measurement_line(&of, &measure, text, sizeof text), expected.size());
  EXPECT_EQ(text, expected);
  for (size_t bytes = 0; bytes <= expected.size() + 1; bytes++) {
    std::string cut(bytes + 1, '#');
    const size_t written = tide_measurement_line(&of, &measure, cut.data(), bytes);
    EXPECT_EQ(written, bytes == 0 ? 0 : std::min(bytes - 1, expected.size()));
    EXPECT_EQ(cut.substr(0, written), expected.substr(0, written));
    EXPECT_EQ(cut[bytes], '#') << "written beyond " << bytes;
  }
}

}  // namespace exec_rules_test_measure
