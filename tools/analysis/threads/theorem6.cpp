// SPDX-License-Identifier: Apache-2.0
// Sobhani, Choi and Kim, Theorem 6: the priority-driven multi-threaded executor with mutually exclusive groups.
#include "analysis/threads/registry.h"
#include "analysis/threads/terms.h"

namespace tide::analysis {
namespace {

constexpr Policy policy = Policy::priority;

template <Deadlines deadlines>
Terms published(const Situation &situation, time_ns window_ns) {
  constexpr bool arbitrary = deadlines == Deadlines::arbitrary;
  Terms terms;
  terms.precedence = precedence(situation);
  terms.interference =
      interference_of_more_important(situation, arbitrary ? whole_workload : constrained_workload, window_ns);
  if (arbitrary) terms.own = own_published(situation, window_ns);
  terms.groups = groups_published(situation, policy, deadlines, window_ns).demand;
  terms.blocking = blocking_published(situation, deadlines, window_ns);
  return terms;
}

template <Deadlines deadlines>
Terms safe(const Situation &situation, time_ns window_ns) {
  constexpr bool arbitrary = deadlines == Deadlines::arbitrary;
  const Workload workload = arbitrary ? safe_workload(situation.options) : sharp_workload;
  const GroupTerms groups = groups_safe(situation, policy, deadlines, window_ns);
  Terms terms;
  terms.precedence = precedence(situation);
  terms.interference = interference_of_more_important(situation, workload, window_ns);
  if (arbitrary) terms.own = own_safe(situation, window_ns);
  terms.groups = groups.demand;
  terms.blocking = blocking_safe(situation, deadlines, terms.interference + terms.own, groups.stages, window_ns);
  return terms;
}

constexpr Deadlines constrained = Deadlines::constrained;
constexpr Deadlines arbitrary = Deadlines::arbitrary;
constexpr Analysis entries[] = {
    {"theorem6-constrained-published", "priority-driven executor with groups, constrained deadlines, as published",
     policy, constrained, Variant::published, true, published<constrained>},
    {"theorem6-constrained-safe", "priority-driven executor with groups, constrained deadlines", policy, constrained,
     Variant::safe, true, safe<constrained>},
    {"theorem6-arbitrary-published", "priority-driven executor with groups, arbitrary deadlines, as published", policy,
     arbitrary, Variant::published, true, published<arbitrary>},
    {"theorem6-arbitrary-safe", "priority-driven executor with groups, arbitrary deadlines", policy, arbitrary,
     Variant::safe, true, safe<arbitrary>},
};

}  // namespace

std::span<const Analysis> theorem6() { return entries; }

}  // namespace tide::analysis
