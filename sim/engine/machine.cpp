// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/machine.h"

#include <algorithm>
#include <stdexcept>

namespace tide::sim {

namespace {

Machine &machine_of(void *context) { return *static_cast<Machine *>(context); }

}  // namespace

Machine::Machine(Engine &engine, size_t cores)
    : engine_(engine),
      platform_{.context = this,
                .now_ns = now_ns,
                .wall_ns = now_ns,
                .critical_enter = critical_enter,
                .critical_exit = critical_exit,
                .lanes_enter = nullptr,
                .lanes_exit = nullptr,
                .event_init = event_init,
                .event_set = event_set,
                .event_wait = event_wait} {
  for (size_t index = 0; index < cores; index++) cores_.push_back(&engine.add_core());
}

void Machine::let_others_go() {
  Task *task = Task::current();
  if (task == nullptr || std::find(cores_.begin(), cores_.end(), &task->core()) == cores_.end()) return;
  if (on_section_end) on_section_end();
  task->give_way();
}

int64_t Machine::now_ns(void *context) { return machine_of(context).engine_.now(); }

uintptr_t Machine::critical_enter(void *context) {
  Machine &machine = machine_of(context);
  if (!machine.changed_ && machine.on_change) {
    machine.changed_ = true;
    machine.on_change();
  }
  return machine.sections_++;
}

void Machine::critical_exit(void *context, uintptr_t state) {
  Machine &machine = machine_of(context);
  machine.sections_ = static_cast<unsigned>(state);
  if (machine.sections_ == 0) machine.let_others_go();
}

void Machine::event_init(void *, tide_event_t *event) { *event = {}; }

void Machine::event_set(void *context, tide_event_t *event) {
  Machine &machine = machine_of(context);
  event->state = 1;
  if (event->port == nullptr) return;
  static_cast<Task *>(event->port)->wake();
  if (machine.sections_ == 0) machine.let_others_go();
}

int Machine::event_wait(void *context, tide_event_t *event, int64_t deadline_ns) {
  const Machine &machine = machine_of(context);
  while (event->state == 0) {
    if (machine.engine_.now() >= deadline_ns) return 0;
    event->port = Task::current();
    Task::current()->block(deadline_ns);
    event->port = nullptr;
  }
  event->state = 0;
  return 1;
}

// ---- budgets ----

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
