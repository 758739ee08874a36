// SPDX-License-Identifier: Apache-2.0
// Budgets in virtual time: a task whose priority follows the shipped tide_budget_t, exactly.
#pragma once

#include <vector>

#include "sim/engine/engine.h"
#include "tide/budget.h"

namespace tide::sim {

// Stays as long as the task.
class Budget : private TaskObserver {
 public:
  // config.replenishments is filled in here. Throws std::invalid_argument when it is no budget.
  Budget(Task &task, tide_budget_config_t config);
  ~Budget() override;
  Budget(const Budget &) = delete;
  Budget &operator=(const Budget &) = delete;

  // Up to date.
  const tide_budget_t &state();

 private:
  void on_ready() override;
  void on_run() override;
  void on_stop() override;
  void on_block() override;
  Time take_consumed();
  void look();
  void settle();

  Task &task_;
  Engine &engine_;
  std::vector<tide_replenishment_t> storage_;
  tide_budget_t budget_{};
  bool runs_ = false;
  Time accounted_ = 0;  // of what it runs: until here
  Time deadline_ = kForever;
  std::shared_ptr<Budget *> self_;  // for events that come after its end
};

}  // namespace tide::sim
