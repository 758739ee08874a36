// SPDX-License-Identifier: Apache-2.0
// The rule of POSIX, implemented tick by tick from its text, compared with the machine; and the defects of the text,
// which the corrected rule does not have.
#include <gtest/gtest.h>

#include "budget_world.h"

namespace budget_posix_test {

using namespace budget_world;

// The text of section 2.8.4, with one tick of execution at a time. `consumed` is what is not yet scheduled for
// replenishment.
class Text {
 public:
  explicit Text(const Case &drawn) : drawn_(drawn), capacity_(drawn.budget) {}

  bool high() const { return capacity_ > 0 && pending_.size() < drawn_.replenishments; }
  int64_t capacity() const { return capacity_; }

  void at(int64_t now, bool was_ready, const Step &step) {
    bool assigned_high = assigned_high_;
    if (assigned_high && capacity_ == 0) {
      assigned_high = false;
      schedule(now);
      if (high()) activate(now, assigned_high);
    }
    replenish(now, was_ready, assigned_high);
    if (step.blocked && consumed_ > 0) schedule(now);
    replenish(now, was_ready && !step.blocked, assigned_high);
    if (step.activated && high()) activate(now, assigned_high);
    assigned_high_ = high();
  }
  void consume() {
    capacity_--;
    consumed_++;
  }

 private:
  using Pending = std::vector<std::pair<int64_t, int64_t>>;
  Pending::iterator earliest() { return std::min_element(pending_.begin(), pending_.end()); }
  void replenish(int64_t now, bool runnable, bool &assigned_high) {
    for (auto due = earliest(); due != pending_.end() && due->first <= now; due = earliest()) {
      const auto [time, amount] = *due;
      pending_.erase(due);
      capacity_ = std::min(capacity_ + amount, drawn_.budget);
      if (runnable && !assigned_high && high()) activate(time, assigned_high);
    }
  }
  void activate(int64_t now, bool &assigned_high) {
    assigned_high = true;
    activation_ = now;
    consumed_ = 0;
  }
  void schedule(int64_t now) {
    const int64_t time = activation_ + drawn_.period;
    const int64_t amount = std::exchange(consumed_, 0);
    if (time < now) {
      capacity_ = std::min(capacity_ + amount, drawn_.budget);
    } else {
      pending_.emplace_back(time, amount);
    }
  }

  Case drawn_;
  int64_t capacity_, activation_ = 0, consumed_ = 0;
  bool assigned_high_ = true;
  Pending pending_;
};

TEST(BudgetPosix, AgreesWithTheTextAtEveryInstant) {
  for (uint64_t seed = 1; seed <= 1500; seed++) {
    const Case drawn = draw(seed, TIDE_BUDGET_POSIX);
    World world(drawn, seed);
    Text text(drawn);
    bool was_ready = false;
    for (int64_t now = 0; now < 600; now++) {
      const Step step = world.begin(now);
      text.at(now, was_ready, step);
      was_ready = world.machine().ready;
      ASSERT_EQ(world.machine().high, text.high()) << "seed " << seed << ", time " << now;
      if (step.looked && text.high()) {
        ASSERT_EQ(world.available(now), text.capacity()) << "seed " << seed << ", time " << now;
      }
      if (world.runs() && text.high()) text.consume();
      world.end();
    }
  }
}

class Lane {
 public:
  explicit Lane(tide_budget_rule_t rule) {
    const tide_budget_config_t config = {.priority = kHigh,
                                         .low_priority = kLow,
                                         .budget_ns = 10,
                                         .period_ns = 50,
                                         .replenishments = storage_,
                                         .maximum_replenishments = 8,
                                         .rule = rule};
    EXPECT_EQ(tide_budget_init(&machine_, &config, 0), 0);
  }
  void ready(int64_t now) { tide_budget_ready(&machine_, now); }
  // Runs from `from` to `to`, with the time accounted at each deadline; returns the time at high priority.
  int64_t run(int64_t from, int64_t to) {
    tide_budget_run(&machine_, from);
    int64_t high = 0;
    for (int64_t now = from; now < to;) {
      const int64_t until = std::min(to, std::max(now + 1, tide_budget_deadline_ns(&machine_)));
      high += machine_.high ? until - now : 0;
      tide_budget_account(&machine_, until - now, until);
      now = until;
    }
    tide_budget_preempt(&machine_, 0, to);
    return high;
  }
  void block(int64_t now) { tide_budget_block(&machine_, 0, now); }
  tide_budget_t machine_{};

 private:
  tide_replenishment_t storage_[8]{};
};

// Stanovich et al., premature replenishment: the amount replenished at 50 comes back at 90, with the rest of its
// activation.
int64_t used_within_two_periods(tide_budget_rule_t rule) {
  Lane lane(rule);
  lane.ready(0);
  int64_t used = lane.run(0, 2);
  lane.block(2);
  lane.ready(40);  // and a more urgent thread runs until 50
  used += lane.run(50, 100);
  return used;
}

TEST(BudgetPosix, PrematureReplenishmentExceedsThePeriodicTask) {
  EXPECT_EQ(used_within_two_periods(TIDE_BUDGET_POSIX), 22);
  EXPECT_EQ(used_within_two_periods(TIDE_BUDGET_CORRECTED), 20);
}

int64_t used_with_late_looks(tide_budget_rule_t rule) {
  Lane lane(rule);
  lane.ready(0);
  tide_budget_run(&lane.machine_, 0);
  int64_t now = 0, used = 0;
  while (now < 100 * 50) {
    const bool high = lane.machine_.high;
    const int64_t look = tide_budget_deadline_ns(&lane.machine_) + (high ? 1 : 0);
    used += high ? look - now : 0;
    tide_budget_account(&lane.machine_, look - now, look);
    now = look;
  }
  return used;
}

TEST(BudgetPosix, OverrunsAddUpButNotWithTheCorrectedRule) {
  EXPECT_EQ(used_with_late_looks(TIDE_BUDGET_POSIX), 100 * 11);
  EXPECT_LE(used_with_late_looks(TIDE_BUDGET_CORRECTED), 100 * 10 + 1);
}

}  // namespace budget_posix_test
