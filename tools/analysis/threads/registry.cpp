// SPDX-License-Identifier: Apache-2.0
#include "analysis/threads/registry.h"

namespace tide::analysis {

std::span<const Analysis> analyses() {
  static const std::vector<Analysis> all = [] {
    std::vector<Analysis> entries;
    for (const auto theorem : {theorem1(), theorem2(), theorem3(), theorem4(), theorem5(), theorem6()}) {
      entries.insert(entries.end(), theorem.begin(), theorem.end());
    }
    return entries;
  }();
  return all;
}

const Analysis *find_analysis(std::string_view name) {
  for (const Analysis &analysis : analyses()) {
    if (analysis.name == name) return &analysis;
  }
  return nullptr;
}

const Analysis &fitting_analysis(const Executor &executor) {
  Deadlines deadlines = Deadlines::constrained;
  for (const Chain &chain : executor.chains()) {
    if (add(chain.deadline_ns, chain.jitter_ns) > chain.period_ns) deadlines = Deadlines::arbitrary;
  }
  const Policy policy = executor.policy() == Policy::priority ? Policy::priority : Policy::any_order;
  const Analysis *fitting = nullptr;
  for (const Analysis &analysis : analyses()) {
    if (analysis.variant == Variant::safe && analysis.policy == policy && analysis.deadlines == deadlines &&
        analysis.groups == executor.has_groups()) {
      fitting = &analysis;
    }
  }
  return *fitting;  // the registry has one for every combination
}

}  // namespace tide::analysis
