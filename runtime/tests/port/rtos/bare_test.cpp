// SPDX-License-Identifier: Apache-2.0
// The platform for boards with only a clock and a loop, on a clock controlled by the test.
#include "bare.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tide/status.h"

namespace {

uint32_t clock_us;
uint32_t step_us;  // time that passes in each idle call
int idle_calls;
uint32_t longest_us;  // time that a call may take
tide_event_t *set_when_idle;
int masked;

const tide_platform_t &platform() { return *tide_port_platform(); }
int64_t now_ns() { return platform().now_ns(platform().context); }

}  // namespace

extern "C" {
uint32_t tide_bare_clock_us(void) { return clock_us; }
void tide_bare_idle(uint32_t most_us) {
  longest_us = std::max(longest_us, most_us);
  EXPECT_EQ(masked, 0) << "nothing could come in";
  idle_calls++;
  clock_us += step_us;
  if (set_when_idle != nullptr && idle_calls == 3) platform().event_set(platform().context, set_when_idle);
}
uintptr_t tide_bare_mask(void) { return static_cast<uintptr_t>(masked++); }
void tide_bare_unmask(uintptr_t state) {
  masked--;
  EXPECT_EQ(static_cast<uintptr_t>(masked), state) << "sections nest";
}
}

namespace {

class Bare : public testing::Test {
 protected:
  void SetUp() override {
    idle_calls = 0;
    longest_us = 0;
    set_when_idle = nullptr;
    step_us = 100;
    platform().event_init(platform().context, &event);
  }
  tide_event_t event{};
};

TEST_F(Bare, TheClockGoesOnWhereTheBoardsWraps) {
  clock_us = UINT32_MAX / 2;  // the counter is read before it wraps around
  (void)now_ns();
  clock_us = UINT32_MAX - 10;
  const int64_t before = now_ns();
  clock_us += 21;
  EXPECT_EQ(now_ns() - before, 21'000);
  clock_us = UINT32_MAX / 2;
  (void)now_ns();
  clock_us = UINT32_MAX;
  const int64_t later = now_ns();
  clock_us = 5;
  EXPECT_EQ(now_ns() - later, 6'000);
  EXPECT_EQ(now_ns() - later, 6'000) << "the round is counted once";
}

// A clock like micros() on several cores, while the interrupt that extends its counter is masked.
TEST_F(Bare, AClockThatStepsBackStandsStill) {
  uint64_t random = 88172645463325252u, whole_us = clock_us;
  const int64_t start = now_ns();
  const uint64_t start_us = whole_us;
  int64_t last = start;
  for (int step = 0; step < 200'000; step++) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    whole_us += random % 100'000;  // over several wrap-arounds
    const uint32_t back_us = random % 3 == 0 ? (random >> 32) % 10'000 : 0;
    clock_us = static_cast<uint32_t>(whole_us - std::min<uint64_t>(back_us, whole_us - start_us));
    const int64_t now = now_ns();
    ASSERT_GE(now, last) << step;
    const int64_t true_ns = start + static_cast<int64_t>(whole_us - start_us) * 1000;
    ASSERT_LE(now, true_ns) << step;
    ASSERT_GE(now, true_ns - 10'000'000) << step;
    last = now;
  }
}

TEST_F(Bare, AWaitNeverEndsBeforeItsDeadline) {
  const int64_t start = now_ns();
  EXPECT_EQ(platform().event_wait(platform().context, &event, start + 1'050'000), 0);
  EXPECT_GE(now_ns(), start + 1'050'000);
  EXPECT_EQ(idle_calls, 11);
  EXPECT_EQ(longest_us, 1051u) << "no sleep beyond the deadline";
}

TEST_F(Bare, ASetEndsTheWaitAndIsKeptForTheNext) {
  set_when_idle = &event;
  EXPECT_EQ(platform().event_wait(platform().context, &event, TIDE_FOREVER), 1);
  EXPECT_EQ(idle_calls, 3);
  platform().event_set(platform().context, &event);
  EXPECT_EQ(platform().event_wait(platform().context, &event, 0), 1) << "set before the wait";
  EXPECT_EQ(platform().event_wait(platform().context, &event, 0), 0) << "once";
  EXPECT_EQ(idle_calls, 3) << "a deadline in the past polls";
}

TEST_F(Bare, HasOneLaneAndNoLinksOfItsOwn) {
  tide_lane_t lanes[2] = {};
  int runs = 0;
  const auto run = [](void *context, size_t) { ++*static_cast<int *>(context); };
  size_t refused = 9;
  EXPECT_EQ(tide_port_run_lanes(lanes, 1, run, &runs, &refused), TIDE_OK);
  EXPECT_EQ(tide_port_run_lanes(lanes, 2, run, &runs, &refused), TIDE_ERROR_UNSUPPORTED);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(refused, 1u);
  EXPECT_EQ(tide_port_open_link(nullptr, nullptr), TIDE_ERROR_UNSUPPORTED);
  EXPECT_EQ(tide_port_pump(nullptr), nullptr);
}

}  // namespace
