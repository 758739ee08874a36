// SPDX-License-Identifier: Apache-2.0
// The processor time of a lane with a budget: others want its core, too.
#pragma once

#include <memory>

#include "sim/engine/budget.h"
#include "sim/engine/engine.h"
#include "sim/engine/random.h"
#include "sim/workloads/host_chains/plan.h"

namespace tide::sim {

// Stays as long as the lane's task, which is the only other one of its core.
class HostSupply {
 public:
  // The priority that the lane's task is made with.
  static constexpr int kLanePriority = 2;

  HostSupply(Task &lane, const executor_plan_t &executor, plan_supply_t supply, uint64_t seed);

 private:
  void take_what_is_left();
  void take_all_but_the_budget();

  Time budget_, period_;
  Random random_;
  Engine &engine_;
  std::unique_ptr<Task> other_;
  std::unique_ptr<Budget> server_;
};

}  // namespace tide::sim
