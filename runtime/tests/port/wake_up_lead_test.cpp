// SPDX-License-Identifier: Apache-2.0
// Adaptation of the wake-up lead to sleeps, on a clock controlled by the test.
#include "wake_up_lead.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <random>

#include "seeds.h"

namespace wake_up_lead_test {

constexpr int64_t kUs = 1000, kLimit = 50 * kUs, kPause = 1000 * kUs;

struct Sleeper {
  Sleeper() { tide_wake_up_lead_init(&lead); }
  int64_t of(int64_t pause_ns = kPause) const { return tide_wake_up_lead_of(&lead, pause_ns, kLimit); }
  // Sleeps for kPause and is woken late by the given time. Returns the time for which the clock was polled.
  int64_t sleep(int64_t late_ns) {
    const int64_t asked_ns = of();
    tide_wake_up_lead_learn(&lead, late_ns);
    return std::max<int64_t>(0, asked_ns - late_ns);
  }
  tide_wake_up_lead_t lead{};
};

TEST(WakeUpLead, IsNothingBeforeTheFirstWindowIsOver) {
  Sleeper sleeper;
  for (unsigned count = 0; count < WAKE_UP_WINDOW; count++) {
    EXPECT_EQ(sleeper.of(), 0);
    sleeper.sleep(20 * kUs);
  }
  EXPECT_EQ(sleeper.of(), 20 * kUs);
}

TEST(WakeUpLead, IsShorterAtOnceAndLongerAfterTwoWindows) {
  Sleeper sleeper;
  for (unsigned count = 0; count < 2 * WAKE_UP_WINDOW; count++) sleeper.sleep(20 * kUs);
  EXPECT_EQ(sleeper.sleep(3 * kUs), 17 * kUs);
  EXPECT_EQ(sleeper.of(), 3 * kUs);
  EXPECT_EQ(sleeper.sleep(3 * kUs), 0);
  for (unsigned count = 0; count < 2 * WAKE_UP_WINDOW - 3; count++) {
    EXPECT_EQ(sleeper.of(), 3 * kUs);
    sleeper.sleep(20 * kUs);
  }
  sleeper.sleep(20 * kUs);
  EXPECT_EQ(sleeper.of(), 20 * kUs);
}

TEST(WakeUpLead, HasALimitAndLeavesHalfOfAPause) {
  Sleeper sleeper;
  for (unsigned count = 0; count < WAKE_UP_WINDOW; count++) sleeper.sleep(200 * kUs);
  EXPECT_EQ(sleeper.of(), kLimit);
  EXPECT_EQ(sleeper.of(30 * kUs), 15 * kUs);
  EXPECT_EQ(tide_wake_up_lead_of(&sleeper.lead, kPause, 0), 0);
}

// In all cases, the lead is at most the least lateness of the last WAKE_UP_WINDOW wake-ups, and at least that of the
// last two windows. The clock is therefore polled only after a wake-up that was less late than all others of a window.
TEST(WakeUpLead, LiesBetweenTheLeastOfOneWindowAndOfTwo) {
  const unsigned seed = tide::test::seed_of_run();
  SCOPED_TRACE(tide::test::replay_of(seed));
  std::mt19937 random(seed);
  std::deque<int64_t> late;
  Sleeper sleeper;
  for (int count = 0; count < 20000; count++) {
    const int64_t base_ns = (count / 500 % 3 + 1) * 4 * kUs;
    late.push_front(base_ns + static_cast<int64_t>(random() % (30 * kUs)));
    sleeper.sleep(late.front());
    if (late.size() > 2 * WAKE_UP_WINDOW) late.pop_back();
    if (late.size() < 2 * WAKE_UP_WINDOW) continue;
    const int64_t of_one = *std::min_element(late.begin(), late.begin() + WAKE_UP_WINDOW);
    const int64_t of_two = *std::min_element(late.begin(), late.end());
    ASSERT_LE(sleeper.of(), std::min(of_one, kLimit)) << "wake-up " << count;
    ASSERT_GE(sleeper.of(), std::min(of_two, kLimit)) << "wake-up " << count;
  }
}

}  // namespace wake_up_lead_test
