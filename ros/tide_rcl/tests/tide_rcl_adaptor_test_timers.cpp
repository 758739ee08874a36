// SPDX-License-Identifier: Apache-2.0
// Timers of rcl, on each kind of clock.
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

#include "engine_probe.h"
#include "rcl_program.h"
#include "tide_rcl/entities.h"

namespace tide_rcl {
namespace tide_rcl_adaptor_test_timers {

constexpr std::int64_t kMillisecondNs = 1000000;

TEST(AdaptorTimers, RunAtTheTimesThatRclSays) {
  Program program;
  RclClock clock(RCL_STEADY_TIME);
  RclTimer timer(program, clock, 2 * kMillisecondNs);
  Engine engine;
  std::int64_t due_ns = timer.next_ns();
  const std::int64_t first_ns = due_ns;
  int runs = 0;
  engine.add(std::make_shared<Timer>(&timer.timer,
                                     [&] {
                                       EXPECT_GE(engine.now_ns(), due_ns);
                                       EXPECT_GT(timer.next_ns(), due_ns);
                                       due_ns = timer.next_ns();
                                       EXPECT_LE(due_ns, engine.now_ns() + 2 * kMillisecondNs);
                                       EXPECT_EQ((due_ns - first_ns) % (2 * kMillisecondNs), 0);
                                       runs++;
                                       while (runs == 5 && engine.now_ns() < due_ns + 7 * kMillisecondNs) {
                                       }  // four expiries pass
                                     }),
             0);
  while (runs < 20) engine.spin_once();
  EXPECT_EQ(engine.counters().callbacks_run, 20u);
  EXPECT_GE(timer.next_ns(), first_ns + 23 * 2 * kMillisecondNs) << "what passed was skipped";
}

TEST(AdaptorTimers, CancelResetAndAnotherPeriod) {
  Program program;
  RclClock clock(RCL_STEADY_TIME);
  RclTimer timer(program, clock, kMillisecondNs, false);
  Engine engine;
  int runs = 0;
  engine.add(std::make_shared<Timer>(&timer.timer, [&] { runs++; }), 0);
  engine.spin_once(milliseconds(5));
  EXPECT_EQ(runs, 0) << "made without a start";
  check(rcl_timer_reset(&timer.timer), "rcl_timer_reset");
  engine.spin_once();
  EXPECT_EQ(runs, 1);
  check(rcl_timer_cancel(&timer.timer), "rcl_timer_cancel");
  engine.spin_once(milliseconds(5));
  engine.spin_once(milliseconds(5));
  EXPECT_EQ(runs, 1) << "canceled";
  std::int64_t before_ns = 0;
  check(rcl_timer_exchange_period(&timer.timer, INT64_C(3600000) * kMillisecondNs, &before_ns), "exchange_period");
  check(rcl_timer_reset(&timer.timer), "rcl_timer_reset");
  engine.spin_once(milliseconds(5));
  EXPECT_EQ(runs, 1) << "an hour";
  check(rcl_timer_exchange_period(&timer.timer, kMillisecondNs, &before_ns), "exchange_period");
  check(rcl_timer_reset(&timer.timer), "rcl_timer_reset");
  for (int count = 2; count <= 5; count++) {
    engine.spin_once();
    EXPECT_EQ(runs, count);
  }
}

TEST(AdaptorTimers, AResetFromAnotherThreadWakesTheSpin) {
  Program program;
  RclClock clock(RCL_STEADY_TIME);
  RclTimer timer(program, clock, INT64_C(3600000) * kMillisecondNs);
  for (const auto &options : {EngineOptions{}, lanes_of({0, 0}), lanes_of({0, 1})}) {
    Engine engine(options);
    std::atomic<int> runs{0};
    const auto added = std::make_shared<Timer>(&timer.timer, [&] { runs++; });
    engine.add(added, TIDE_PRIORITY(1, 0));
    std::int64_t before_ns = 0;
    {
      const Spinning spinning(engine);
      std::this_thread::sleep_for(milliseconds(2));  // clock: time in which the lanes usually begin to wait; the test
                                                     // holds in either case
      EXPECT_EQ(runs, 0);
      check(rcl_timer_exchange_period(&timer.timer, kMillisecondNs, &before_ns), "exchange_period");
      check(rcl_timer_reset(&timer.timer), "rcl_timer_reset");
      EXPECT_TRUE(eventually([&] { return runs >= 3; }));
    }
    engine.remove(added);
    check(rcl_timer_exchange_period(&timer.timer, INT64_C(3600000) * kMillisecondNs, &before_ns), "exchange_period");
    check(rcl_timer_reset(&timer.timer), "rcl_timer_reset");
  }
}

TEST(AdaptorTimers, SimulatedTime) {
  Program program;
  RclClock clock(RCL_ROS_TIME);
  check(rcl_enable_ros_time_override(&clock.clock), "rcl_enable_ros_time_override");
  check(rcl_set_ros_time_override(&clock.clock, 1000 * kMillisecondNs), "rcl_set_ros_time_override");
  RclTimer timer(program, clock, 10 * kMillisecondNs);
  Engine engine;
  int runs = 0;
  const auto added = std::make_shared<Timer>(&timer.timer, [&] { runs++; });
  engine.add(added, 0);
  const auto runs_at = [&](std::int64_t milliseconds_of_clock) {
    check(rcl_set_ros_time_override(&clock.clock, milliseconds_of_clock * kMillisecondNs), "set");
    engine.spin_all(std::chrono::seconds(0));
    return runs;
  };
  engine.spin_once(milliseconds(15));
  EXPECT_EQ(runs, 0) << "this clock stands still";
  EXPECT_EQ(runs_at(1009), 0);
  EXPECT_EQ(runs_at(1010), 1);
  EXPECT_EQ(runs_at(1011), 1);
  EXPECT_EQ(runs_at(1055), 2) << "what passed is skipped";
  EXPECT_EQ(runs_at(1060), 3);
  EXPECT_EQ(runs_at(100), 3) << "back";
  const std::int64_t next_ns = timer.next_ns();
  EXPECT_EQ(runs_at(next_ns / kMillisecondNs), 4);
  check(rcl_disable_ros_time_override(&clock.clock), "rcl_disable_ros_time_override");
  (void)eventually([&] {
    engine.spin_once(milliseconds(1));
    return runs >= 6;
  });
  EXPECT_GE(runs, 6) << "the system's time again";
  engine.remove(added);
}

TEST(AdaptorTimers, OnTheSystemClock) {
  Program program;
  RclClock clock(RCL_SYSTEM_TIME);
  RclTimer timer(program, clock, 2 * kMillisecondNs);
  Engine engine(lanes_of({0, 0}));
  std::atomic<int> runs{0};
  engine.add(std::make_shared<Timer>(&timer.timer,
                                     [&] {
                                       std::int64_t since_ns = -1;
                                       check(rcl_timer_get_time_since_last_call(&timer.timer, &since_ns), "since");
                                       EXPECT_GE(since_ns, 0);
                                       runs++;
                                     }),
             0);
  const Spinning spinning(engine);
  EXPECT_TRUE(eventually([&] { return runs >= 10; }));
}

TEST(AdaptorTimers, TheMostUrgentOfThoseDueGoesFirst) {
  Program program;
  RclClock clock(RCL_STEADY_TIME);
  std::vector<std::unique_ptr<RclTimer>> timers;
  Engine engine;
  std::vector<int> order;
  for (int index = 0; index < 100; index++) {
    timers.push_back(std::make_unique<RclTimer>(program, clock, kMillisecondNs));
    engine.add(std::make_shared<Timer>(&timers.back()->timer, [&order, index] { order.push_back(index); }),
               TIDE_PRIORITY(index, 0));
  }
  ASSERT_TRUE(eventually([&] { return engine.now_ns() > timers.back()->next_ns(); }));
  engine.spin_once(std::chrono::seconds(0));
  ASSERT_EQ(order.size(), 1u);
  EXPECT_EQ(order.front(), 99);
}

TEST(AdaptorTimers, AnExceptionLeavesTheTimerRunning) {
  Program program;
  RclClock clock(RCL_STEADY_TIME);
  RclTimer timer(program, clock, kMillisecondNs);
  Engine engine(lanes_of({0, 0}));
  int runs = 0;
  engine.add(std::make_shared<Timer>(&timer.timer,
                                     [&] {
                                       if (++runs < 3) throw std::domain_error("not yet");
                                       engine.cancel();
                                     }),
             0, std::make_shared<Group>(TIDE_GROUP_EXCLUSIVE));
  EXPECT_THROW(engine.spin(), std::domain_error);
  EXPECT_THROW(engine.spin(), std::domain_error);
  EXPECT_NO_THROW(engine.spin());
  EXPECT_EQ(runs, 3);
}

}  // namespace tide_rcl_adaptor_test_timers
}  // namespace tide_rcl
