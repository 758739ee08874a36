// SPDX-License-Identifier: Apache-2.0
// Sobhani, Choi and Kim, Theorem 4: the priority-driven multi-threaded executor, arbitrary deadlines, reentrant
// callbacks.
#include "analysis/threads/registry.h"
#include "analysis/threads/terms.h"

namespace tide::analysis {
namespace of_theorem4 {
namespace {

constexpr Deadlines kDeadlines = Deadlines::arbitrary;

Terms published(const Situation &situation, time_ns window_ns) {
  Terms terms;
  terms.precedence = precedence(situation);
  terms.interference = interference_of_more_important(situation, whole_workload, window_ns);
  terms.own = own_published(situation, window_ns);
  terms.blocking = blocking_published(situation, kDeadlines, window_ns);
  return terms;
}

Terms safe(const Situation &situation, time_ns window_ns) {
  Terms terms;
  terms.precedence = precedence(situation);
  terms.interference = interference_of_more_important(situation, safe_workload(situation.options), window_ns);
  terms.own = own_safe(situation, window_ns);
  const GroupTerms groups = groups_safe(situation, Policy::priority, kDeadlines, window_ns);
  terms.groups = groups.demand;
  terms.blocking = blocking_safe(situation, kDeadlines, terms.interference + terms.own, groups.stages, window_ns);
  return terms;
}

constexpr Analysis kEntries[] = {
    {"theorem4-published", "PPWA_AD: priority-driven executor, arbitrary deadlines, as published", Policy::priority,
     kDeadlines, Variant::published, false, published},
    {"theorem4-safe", "PPWA_AD: priority-driven executor, arbitrary deadlines", Policy::priority, kDeadlines,
     Variant::safe, false, safe},
};

}  // namespace
}  // namespace of_theorem4

std::span<const Analysis> theorem4() { return of_theorem4::kEntries; }

}  // namespace tide::analysis
