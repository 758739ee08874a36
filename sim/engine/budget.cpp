// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/budget.h"

#include <stdexcept>

namespace tide::sim {

Budget::Budget(Task &task, tide_budget_config_t config)
    : task_(task),
      engine_(task.core().engine()),
      storage_(config.maximum_replenishments),
      self_(std::make_shared<Budget *>(this)) {
  config.replenishments = storage_.data();
  if (tide_budget_init(&budget_, &config, engine_.now()) != 0) throw std::invalid_argument("this is no budget");
  if (task.is_ready()) tide_budget_ready(&budget_, engine_.now());
  task.observe(this);
  settle();
}

Budget::~Budget() {
  *self_ = nullptr;
  task_.observe(nullptr);
}

Time Budget::take_consumed() {
  const Time consumed = runs_ ? engine_.now() - accounted_ : 0;
  accounted_ = engine_.now();
  return consumed;
}

void Budget::on_ready() {
  tide_budget_ready(&budget_, engine_.now());
  settle();
}

void Budget::on_run() {
  runs_ = true;
  accounted_ = engine_.now();
  tide_budget_run(&budget_, engine_.now());
  settle();
}

void Budget::on_stop() {
  tide_budget_preempt(&budget_, take_consumed(), engine_.now());
  runs_ = false;
  settle();
}

void Budget::on_block() {
  tide_budget_block(&budget_, 0, engine_.now());
  settle();
}

const tide_budget_t &Budget::state() {
  look();
  return budget_;
}

void Budget::look() {
  tide_budget_account(&budget_, take_consumed(), engine_.now());
  settle();
}

void Budget::settle() {
  task_.set_priority(tide_budget_priority(&budget_));
  const Time deadline = tide_budget_deadline_ns(&budget_);
  if (deadline == deadline_) return;
  deadline_ = deadline;
  if (deadline == kForever) return;
  engine_.at(deadline, [self = self_, deadline] {
    if (*self == nullptr || (*self)->deadline_ != deadline) return;
    (*self)->deadline_ = kForever;
    (*self)->look();
  });
}

}  // namespace tide::sim
