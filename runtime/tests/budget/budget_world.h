// SPDX-License-Identifier: Apache-2.0
// A lane in a world of unit ticks: it becomes ready, is preempted and blocks at random by seed; the machine under test
// gets the events as from a scheduler.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <random>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tide/budget.h"

namespace budget_world {

constexpr int32_t kHigh = 60, kLow = 6;
constexpr int64_t kLatest = 4;  // greatest delay of the accounting, in ticks

struct Case {
  int64_t budget, period;
  uint16_t replenishments;
};

inline Case draw(uint64_t seed) {
  std::mt19937_64 random(seed);
  const int64_t period = std::uniform_int_distribution<int64_t>(2, 60)(random);
  const int64_t budget = std::uniform_int_distribution<int64_t>(1, period)(random);
  const uint16_t places[] = {1, 2, 3, 5, 20};
  return {budget, period, places[random() % 5]};
}

enum class Looks { kExact, kLate };
enum class Others { kPreempt, kNone };

// Events at the beginning of a tick, which happen in this order.
struct Step {
  int64_t charged = 0;  // ticks reported to the machine
  bool blocked = false, activated = false, resumed = false;
  bool looked = false;  // the machine got any event
};

class World {
 public:
  World(const Case &drawn, uint64_t seed, Looks looks = Looks::kExact, Others others = Others::kPreempt)
      : storage_(drawn.replenishments), random_(seed ^ 0x9E3779B97F4A7C15u), looks_(looks), others_(others) {
    const tide_budget_config_t config = {.priority = kHigh,
                                         .low_priority = kLow,
                                         .budget_ns = drawn.budget,
                                         .period_ns = drawn.period,
                                         .replenishments = storage_.data(),
                                         .maximum_replenishments = drawn.replenishments};
    if (tide_budget_init(&machine_, &config, 0) != 0) throw std::runtime_error("init");
    change_percent_ = 3 + static_cast<int>(random_() % 40);
  }

  const tide_budget_t &machine() const { return machine_; }
  bool runs() const { return ready_ && !preempted_; }
  void always_ready() { never_blocks_ = true; }

  Step begin(int64_t now) {
    Step step;
    const bool was_running = runs();
    const bool was_ready = ready_;
    change();
    const bool is_due = now - late_ >= tide_budget_deadline_ns(&machine_);
    if (was_running && !runs()) {
      step.charged = take();
      if (ready_) {
        tide_budget_preempt(&machine_, step.charged, now);
      } else {
        tide_budget_block(&machine_, step.charged, now);
        step.blocked = true;
      }
      step.looked = true;
    } else if (was_ready && !ready_) {
      tide_budget_block(&machine_, 0, now);
      step.blocked = step.looked = true;
    } else if (is_due || chance(5)) {
      step.charged = take();
      tide_budget_account(&machine_, step.charged, now);
      step.looked = true;
    }
    if (step.looked) late_ = looks_ == Looks::kLate ? static_cast<int64_t>(random_() % (kLatest + 1)) : 0;
    if (!was_ready && ready_) {
      tide_budget_ready(&machine_, now);
      step.activated = step.looked = true;
    }
    if (!was_running && runs()) {
      tide_budget_run(&machine_, now);
      step.resumed = step.looked = true;
    }
    return step;
  }

  int64_t available(int64_t) const { return tide_budget_available_ns(&machine_) - unaccounted_; }

  void end() {
    if (runs()) unaccounted_++;
  }

  // Time used at high priority before each instant, 0 to `ticks`.
  std::vector<int64_t> run(int64_t ticks) {
    std::vector<int64_t> used = {0};
    for (int64_t now = 0; now < ticks; now++) {
      const bool was_idle = !ready_ || !machine_.high;
      begin(now);
      idle_before_.push_back(was_idle);
      used.push_back(used.back() + (runs() && machine_.high ? 1 : 0));
      end();
    }
    idle_before_.push_back(false);
    return used;
  }
  // For each instant: whether the lane was blocked, or had no budget, just before it.
  const std::vector<bool> &idle_before() const { return idle_before_; }

 private:
  bool chance(int percent) { return static_cast<int>(random_() % 100) < percent; }
  int64_t take() { return std::exchange(unaccounted_, 0); }
  void change() {
    if (never_blocks_) ready_ = true;
    if (!never_blocks_ && chance(change_percent_)) ready_ = !ready_;
    if (others_ == Others::kPreempt && chance(change_percent_)) preempted_ = !preempted_;
  }

  std::vector<tide_replenishment_t> storage_;
  std::mt19937_64 random_;
  Looks looks_;
  Others others_;
  tide_budget_t machine_{};
  int change_percent_ = 0;
  bool ready_ = false, preempted_ = false, never_blocks_ = false;
  int64_t unaccounted_ = 0, late_ = 0;
  std::vector<bool> idle_before_;
};

}  // namespace budget_world
