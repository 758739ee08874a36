// SPDX-License-Identifier: Apache-2.0
#include "sim/host/host_supply.h"

#include <algorithm>

namespace tide::sim {
namespace {

constexpr int kLess = HostSupply::kLanePriority - 1, kMore = HostSupply::kLanePriority + 1;
// What ends at the instant at which the budget does has ended: the code behind it takes no time, but needs the core.
constexpr Time kInstant = 1;
constexpr uint16_t kReplenishments = 64;  // so many activations in a period that leave some of the budget

}  // namespace

HostSupply::HostSupply(Task &lane, const executor_plan_t &executor, plan_supply_t supply, uint64_t seed)
    : budget_(std::min(executor.budget_ns + kInstant, executor.budget_period_ns)),
      period_(executor.budget_period_ns),
      random_(seed),
      engine_(lane.core().engine()) {
  if (supply == PLAN_SUPPLY_ANYWHERE) {
    other_ = std::make_unique<Task>(lane.core(), "others", kMore, [this] { take_all_but_the_budget(); });
    return;
  }
  other_ = std::make_unique<Task>(lane.core(), "others", kLess, [this] { take_what_is_left(); });
  tide_budget_config_t config{};
  config.priority = kLanePriority;
  config.low_priority = kLess - 1;
  config.budget_ns = budget_;
  config.period_ns = period_;
  config.maximum_replenishments = kReplenishments;
  server_ = std::make_unique<Budget>(lane, config);
}

void HostSupply::take_what_is_left() {
  for (;;) Task::current()->execute(kSecond);
}

// Late in one period and early in the next is what hurts; so is a place in between.
void HostSupply::take_all_but_the_budget() {
  const Time spare = period_ - budget_;
  for (Time begin = -random_.between(0, period_ - 1);; begin += period_) {
    const Time late = random_.chance(0.4) ? 0 : random_.chance(0.6) ? spare : random_.between(0, spare);
    Task::current()->execute(begin + late - engine_.now());
    const Time end = begin + late + budget_;
    if (end > engine_.now()) Task::current()->block(end);
  }
}

}  // namespace tide::sim
