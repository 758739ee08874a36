// SPDX-License-Identifier: Apache-2.0
// Adaptation of busy polling to waits, on a clock controlled by the test.
#include "busy_poll.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <functional>
#include <thread>

namespace busy_poll_test {

constexpr int64_t kUs = 1000, kLimit = 100 * kUs, kLook = 1 * kUs;

struct BusyPoll {
  // Simulates a machine with enough processors.
  explicit BusyPoll(int64_t limit_ns = kLimit) {
    tide_busy_poll_init(&core, limit_ns);
    core.limit_ns = limit_ns;
  }
  // Data arrives after comes_ns, unless the wait has ended by then without data. Returns the time spent polling.
  int64_t wait(int64_t comes_ns, bool found = true) {
    const int64_t start_ns = now_ns;
    tide_busy_poll_start(&core, now_ns);
    bool seen = false;
    while (!seen && tide_busy_poll_goes_on(&core, now_ns)) {
      now_ns += kLook;
      seen = now_ns - start_ns >= comes_ns;
    }
    const int64_t looked_ns = now_ns - start_ns;
    tide_busy_poll_looked(&core, now_ns, seen && found);
    if (!seen) now_ns = start_ns + comes_ns;
    tide_busy_poll_end(&core, now_ns - start_ns, now_ns, found);
    return looked_ns;
  }
  tide_busy_poll_t core{};
  int64_t now_ns = 1'000'000'000;
};

// Runs on a separate thread, because it changes scheduling.
void on_a_thread(const std::function<void()> &action) { std::thread(action).join(); }

TEST(BusyPoll, LearnsHowLongToLook) {
  BusyPoll poll;
  EXPECT_EQ(poll.wait(30 * kUs), 0);
  EXPECT_EQ(poll.wait(30 * kUs), 10 * kUs);
  EXPECT_EQ(poll.wait(30 * kUs), 20 * kUs);
  EXPECT_EQ(poll.wait(30 * kUs), 30 * kUs);  // from now on, polling pays off
  EXPECT_EQ(poll.core.hits, 1u);
  for (int count = 0; count < 10; count++) EXPECT_EQ(poll.wait(30 * kUs), 30 * kUs);
  EXPECT_EQ(poll.core.window_ns, 40 * kUs);
  for (int count = 0; count < 10; count++) poll.wait(90 * kUs);
  EXPECT_EQ(poll.core.window_ns, kLimit);
  EXPECT_EQ(poll.core.hits, 11u + 8u);
}

TEST(BusyPoll, SleepsWhereItWouldNotPay) {
  BusyPoll poll;
  for (int count = 0; count < 5; count++) poll.wait(50 * kUs);
  EXPECT_LE(poll.wait(1000 * kUs), kLimit);
  const uint64_t polled_ns = poll.core.polled_ns;
  for (int count = 0; count < 1000; count++) EXPECT_EQ(poll.wait(1000 * kUs), 0);
  EXPECT_EQ(poll.core.polled_ns, polled_ns);
  for (int count = 0; count < 1000; count++) {  // data comes in pairs: a request with an immediate answer, then a pause
    EXPECT_EQ(poll.wait(20 * kUs), 0);
    EXPECT_LE(poll.wait(1000 * kUs), 10 * kUs);
  }
  for (int count = 0; count < 1000; count++) EXPECT_EQ(poll.wait(50 * kUs, false), 0) << "nothing came";
}

TEST(BusyPoll, GoesOnAfterOneLongWaitWhenItPaysElse) {
  BusyPoll poll;
  for (int count = 0; count < 20; count++) poll.wait(30 * kUs);
  for (int count = 0; count < 100; count++) {
    EXPECT_EQ(poll.wait(count % 10 == 0 ? 500 * kUs : 30 * kUs), count % 10 == 0 ? 40 * kUs : 30 * kUs) << count;
  }
  EXPECT_EQ(poll.wait(500 * kUs), 40 * kUs);
  EXPECT_EQ(poll.wait(500 * kUs), 40 * kUs);
  EXPECT_EQ(poll.wait(500 * kUs), 0);
}

TEST(BusyPoll, GivesUpWhenSomebodyElseGetsTheProcessor) {
  BusyPoll poll;
  for (int count = 0; count < 5; count++) poll.wait(50 * kUs);
  tide_busy_poll_start(&poll.core, poll.now_ns);
  EXPECT_TRUE(tide_busy_poll_goes_on(&poll.core, poll.now_ns));
  EXPECT_FALSE(tide_busy_poll_goes_on(&poll.core, poll.now_ns + 300 * kUs));
  tide_busy_poll_end(&poll.core, 300 * kUs, poll.now_ns + 300 * kUs, true);
  EXPECT_GT(poll.core.rest_ns, poll.now_ns + 1000 * kUs);
  while (poll.now_ns < poll.core.rest_ns) EXPECT_EQ(poll.wait(50 * kUs), 0);
  EXPECT_GT(poll.wait(50 * kUs), 0);
}

// Each time, another thread takes the processor; returns the pause that follows.
int64_t rest_after_loss(BusyPoll &poll) {
  while (poll.wait(50 * kUs) == 0) {}
  tide_busy_poll_start(&poll.core, poll.now_ns);
  EXPECT_TRUE(tide_busy_poll_goes_on(&poll.core, poll.now_ns));
  poll.now_ns += 300 * kUs;
  EXPECT_FALSE(tide_busy_poll_goes_on(&poll.core, poll.now_ns));
  tide_busy_poll_end(&poll.core, 300 * kUs, poll.now_ns, true);
  return poll.core.rest_ns - poll.now_ns;
}

TEST(BusyPoll, RestsTwiceAsLongEachTimeOnABusyMachineAndForgetsIt) {
  BusyPoll poll;
  const int64_t first_ns = rest_after_loss(poll);
  int64_t rest_ns = first_ns;
  for (int count = 0; count < 8; count++) {
    rest_ns *= 2;
    EXPECT_EQ(rest_after_loss(poll), rest_ns) << count;
  }
  EXPECT_EQ(rest_after_loss(poll), rest_ns) << "that is the longest";
  for (int64_t until_ns = poll.now_ns + 3 * rest_ns; poll.now_ns < until_ns;) poll.wait(50 * kUs);
  EXPECT_EQ(rest_after_loss(poll), first_ns);
}

TEST(BusyPoll, NeverLooksWhenItIsOffOrHasOneProcessor) {
  BusyPoll off(0);
  for (int count = 0; count < 10; count++) EXPECT_EQ(off.wait(20 * kUs), 0);
  on_a_thread([] {
    tide_busy_poll_t poll;
    cpu_set_t set;
    CPU_ZERO(&set);
    ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
    tide_busy_poll_init(&poll, kLimit);
    EXPECT_EQ(poll.limit_ns, CPU_COUNT(&set) > 1 ? kLimit : 0);
    CPU_ZERO(&set);
    CPU_SET(static_cast<unsigned>(sched_getcpu()), &set);
    ASSERT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
    tide_busy_poll_init(&poll, kLimit);
    EXPECT_EQ(poll.limit_ns, 0);
  });
}

TEST(BusyPoll, LeavesOthersMostOfTheTimeOfARealTimeThread) {
  on_a_thread([] {
    const sched_param parameter{1};
    const bool real_time = pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameter) == 0;
    BusyPoll poll;
    const int64_t start_ns = poll.now_ns;
    for (int count = 0; count < 10'000; count++) poll.wait(20 * kUs);
    const int64_t taken_ns = poll.now_ns - start_ns;
    const auto polled_ns = static_cast<int64_t>(poll.core.polled_ns);
    if (real_time) {
      EXPECT_LE(polled_ns, taken_ns / 4 + kLimit + 10'000 * kLook);
      EXPECT_LT(polled_ns, taken_ns / 3);
    } else {
      EXPECT_GT(polled_ns, taken_ns / 4 * 3);
    }
  });
}

}  // namespace busy_poll_test
