// SPDX-License-Identifier: Apache-2.0
// The rule against a reference without portions: the budget is a row of single units, each with the time from
// which it may be used. Also checks, over all windows of random runs, the bounds stated in tide/budget.h.
#include <gtest/gtest.h>

#include "budget_world.h"

namespace budget_corrected_test {

using namespace budget_world;

// Each unit of processor time has its own entry: this is slow, but simple.
class Units {
 public:
  explicit Units(const Case &drawn) : drawn_(drawn), times_(static_cast<size_t>(drawn.budget), 0) {}

  bool high(int64_t now) const { return times_.front() <= now; }
  void ready(int64_t now) { raise(now); }
  void resume(int64_t now) {
    if (times_.front() >= now - drawn_.period) return;
    block(now);
    raise(now - drawn_.period);
  }
  void consume() {
    times_.push_back(times_.front() + drawn_.period);
    times_.pop_front();
  }
  void block(int64_t now) {
    const std::set<int64_t> different(times_.begin(), times_.end());
    if (different.size() <= drawn_.replenishments) return;
    const int64_t first = *different.begin(), second = *std::next(different.begin());
    for (int64_t &time : times_) time = time == first ? second : time;
    denied += second > now ? 1u : 0u;
  }
  int64_t available(int64_t now) const {
    return std::count_if(times_.begin(), times_.end(), [now](int64_t time) { return time <= now; });
  }
  uint64_t denied = 0;  // times budget came later because more replenishments were outstanding than there is room for

 private:
  void raise(int64_t floor) {
    for (int64_t &time : times_) time = std::max(time, floor);
  }
  Case drawn_;
  std::deque<int64_t> times_;
};

TEST(BudgetCorrected, AgreesWithUnitsAtEveryInstant) {
  for (uint64_t seed = 1; seed <= 1500; seed++) {
    const Case drawn = draw(seed);
    World world(drawn, seed);
    Units units(drawn);
    for (int64_t now = 0; now < 600; now++) {
      const Step step = world.begin(now);
      if (step.blocked) units.block(now);
      if (step.activated) units.ready(now);
      if (step.resumed) units.resume(now);
      ASSERT_EQ(world.machine().high, units.high(now)) << "seed " << seed << ", time " << now;
      if (step.looked && units.high(now)) {
        ASSERT_EQ(world.available(now), units.available(now)) << "seed " << seed << ", time " << now;
      }
      if (world.runs() && units.high(now)) units.consume();
      world.end();
    }
    ASSERT_EQ(world.machine().counters.denied, units.denied) << "seed " << seed;
  }
}

// With late accounting, used time is charged to the units at the front, whether or not they were usable.
TEST(BudgetCorrected, BorrowsWhatALateLookLetThrough) {
  for (uint64_t seed = 1; seed <= 1500; seed++) {
    const Case drawn = draw(seed);
    World world(drawn, seed, Looks::kLate);
    Units units(drawn);
    bool high = true;
    for (int64_t now = 0; now < 600; now++) {
      const Step step = world.begin(now);
      for (int64_t unit = 0; high && unit < step.charged; unit++) units.consume();
      if (step.blocked) units.block(now);
      if (step.activated) units.ready(now);
      if (step.resumed) units.resume(now);
      if (step.looked) high = units.high(now);
      ASSERT_EQ(world.machine().high, high) << "seed " << seed << ", time " << now;
      world.end();
    }
    ASSERT_EQ(world.machine().counters.denied, units.denied) << "seed " << seed;
  }
}

TEST(BudgetCorrected, NobodyAboveItNeverMoreThanTheIdealSupplyInAnyWindow) {
  for (uint64_t seed = 1; seed <= 400; seed++) {
    const Case drawn = draw(seed);
    World world(drawn, seed, Looks::kExact, Others::kNone);
    const std::vector<int64_t> used = world.run(800);
    for (size_t from = 0; from < used.size(); from++) {
      for (size_t to = from + 1; to < used.size(); to++) {
        const auto length = static_cast<int64_t>(to - from);
        const int64_t bound = length / drawn.period * drawn.budget + std::min(drawn.budget, length % drawn.period);
        ASSERT_LE(used[to] - used[from], bound) << "seed " << seed << ", from " << from << " to " << to;
      }
    }
  }
}

TEST(BudgetCorrected, AsAPeriodicTaskFromAnyInstantWithoutPendingWork) {
  uint64_t instants = 0;
  for (uint64_t seed = 1; seed <= 400; seed++) {
    const Case drawn = draw(seed);
    World world(drawn, seed);
    const std::vector<int64_t> used = world.run(800);
    for (size_t from = 0; from < used.size(); from++) {
      const bool idle = world.idle_before()[from];
      instants += idle;
      for (size_t to = from + 1; to < used.size(); to++) {
        const auto length = static_cast<int64_t>(to - from);
        const int64_t periods = (length + drawn.period - 1) / drawn.period + (idle ? 0 : 1);
        ASSERT_LE(used[to] - used[from], periods * drawn.budget)
            << "seed " << seed << ", from " << from << " to " << to;
      }
    }
  }
  EXPECT_GT(instants, 1000u);
}

TEST(BudgetCorrected, ALaneThatAlwaysWantsToRunGetsItsBudgetInEachPeriodAndNoMore) {
  for (uint64_t seed = 1; seed <= 300; seed++) {
    const Case drawn = draw(seed);
    World world(drawn, seed, Looks::kLate, Others::kNone);
    world.always_ready();
    const int64_t periods = 50;
    const std::vector<int64_t> used = world.run(periods * drawn.period);
    const int64_t overrun = kLatest;
    EXPECT_LE(used.back(), periods * drawn.budget + overrun) << "seed " << seed;
    EXPECT_GE(used.back(), periods * drawn.budget - kLatest * periods) << "seed " << seed;
  }
}

}  // namespace budget_corrected_test
