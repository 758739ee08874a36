// SPDX-License-Identifier: Apache-2.0
#include "sim/host/pong.h"

#include <memory>

#include "sim/engine/machine.h"

namespace tide::sim {
namespace {

// A lane with a topic of depth one (keep last), as in algorithms 1 and 2 of the paper.
struct Lane {
  const lane_plan_t *plan = nullptr;
  lane_result_t result{};
  bool waiting = false;  // a ping is in the topic
  bool busy = false;
  Time busy_ns = 0;
  std::unique_ptr<Task> task;
  std::unique_ptr<Budget> budget;
};

class Pong {
 public:
  explicit Pong(const pong_plan_t &plan) : plan_(plan), core_(engine_.add_core()), lanes_(plan.lane_count) {
    executor_ = std::make_unique<Task>(core_, "executor", EXECUTOR_PRIORITY, [this] { dispatch(); });
    for (int32_t index = 0; index < plan.lane_count; index++) prepare(lanes_[index], plan.lanes[index]);
    engine_.at(0, [this] { ping(); });
  }

  std::vector<lane_result_t> play() {
    engine_.run_until(plan_.duration_ns);
    std::vector<lane_result_t> results;
    for (Lane &lane : lanes_) {
      if (lane.budget) lane.result.budget = lane.budget->state().counters;
      results.push_back(lane.result);
    }
    return results;
  }

 private:
  void prepare(Lane &lane, const lane_plan_t &wanted) {
    lane.plan = &wanted;
    lane.task = std::make_unique<Task>(core_, wanted.name, wanted.priority, [this, &lane] { work(lane); });
    if (wanted.budget_ns == 0) return;
    tide_budget_config_t config{};
    config.priority = wanted.priority;
    config.low_priority = wanted.low_priority;
    config.budget_ns = wanted.budget_ns;
    config.period_ns = wanted.period_ns;
    config.maximum_replenishments = plan_.replenishments;
    config.rule = plan_.rule;
    lane.budget = std::make_unique<Budget>(*lane.task, config);
  }

  void ping() {
    for (Lane &lane : lanes_) {
      lane.result.pings++;
      if (lane.waiting) lane.result.overwritten++;
      lane.waiting = true;
    }
    executor_->wake();
    engine_.after(plan_.ping_ns, [this] { ping(); });
  }

  void dispatch() {
    for (;;) {
      for (Lane &lane : lanes_) {
        if (!lane.waiting || lane.busy) continue;
        lane.waiting = false;
        lane.busy = true;
        lane.task->wake();
      }
      executor_->block(kForever);
    }
  }

  void work(Lane &lane) {
    for (;;) {
      while (!lane.busy) lane.task->block(kForever);
      const Time sleep = plan_.work_ns / 100 * lane.plan->sleep_percent;
      lane.task->execute(plan_.work_ns - sleep);
      lane.result.cpu_ns += plan_.work_ns - sleep;
      const Time wake = engine_.now() + sleep;
      if (sleep > 0) lane.task->block(wake);
      lane.result.replies++;
      lane.busy = false;
      executor_->wake();
      lane.task->give_way();  // a ping that waits is ours without a new activation
    }
  }

  pong_plan_t plan_;
  Engine engine_;
  Core &core_;
  std::unique_ptr<Task> executor_;
  std::vector<Lane> lanes_;
};

}  // namespace

std::vector<lane_result_t> play_pong(const pong_plan_t &plan) { return Pong(plan).play(); }

}  // namespace tide::sim
