// SPDX-License-Identifier: Apache-2.0
// Sobhani, Choi and Kim, Theorem 2: the priority-driven multi-threaded executor, constrained deadlines, reentrant
// callbacks.
#include "analysis/threads/registry.h"
#include "analysis/threads/terms.h"

namespace tide::analysis {
namespace of_theorem2 {
namespace {

constexpr Deadlines kDeadlines = Deadlines::constrained;

Terms published(const Situation &situation, time_ns window_ns) {
  Terms terms;
  terms.precedence = precedence(situation);
  terms.interference = interference_of_more_important(situation, constrained_workload, window_ns);
  terms.blocking = blocking_published(situation, kDeadlines, window_ns);
  return terms;
}

Terms safe(const Situation &situation, time_ns window_ns) {
  Terms terms;
  terms.precedence = precedence(situation);
  terms.interference = interference_of_more_important(situation, sharp_workload, window_ns);
  terms.blocking = blocking_safe(situation, kDeadlines, terms.interference, Linear{}, window_ns);
  return terms;
}

constexpr Analysis kEntries[] = {
    {"theorem2-published", "PPWA_CD: priority-driven executor, constrained deadlines, as published", Policy::priority,
     kDeadlines, Variant::published, false, published},
    {"theorem2-safe", "PPWA_CD: priority-driven executor, constrained deadlines", Policy::priority, kDeadlines,
     Variant::safe, false, safe},
};

}  // namespace
}  // namespace of_theorem2

std::span<const Analysis> theorem2() { return of_theorem2::kEntries; }

}  // namespace tide::analysis
