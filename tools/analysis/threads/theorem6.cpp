// SPDX-License-Identifier: Apache-2.0
// Sobhani, Choi and Kim, Theorem 6: the priority-driven multi-threaded executor with mutually exclusive groups.
#include "analysis/threads/registry.h"
#include "analysis/threads/terms.h"

namespace tide::analysis {
namespace of_theorem6 {
namespace {

constexpr Policy kPolicy = Policy::priority;

template <Deadlines deadlines>
Terms published(const Situation &situation, time_ns window_ns) {
  constexpr bool kArbitrary = deadlines == Deadlines::arbitrary;
  Terms terms;
  terms.precedence = precedence(situation);
  terms.interference =
      interference_of_more_important(situation, kArbitrary ? whole_workload : constrained_workload, window_ns);
  if (kArbitrary) terms.own = own_published(situation, window_ns);
  terms.groups = groups_published(situation, kPolicy, deadlines, window_ns).demand;
  terms.blocking = blocking_published(situation, deadlines, window_ns);
  return terms;
}

template <Deadlines deadlines>
Terms safe(const Situation &situation, time_ns window_ns) {
  constexpr bool kArbitrary = deadlines == Deadlines::arbitrary;
  const Workload workload = kArbitrary ? safe_workload(situation.options) : sharp_workload;
  const GroupTerms groups = groups_safe(situation, kPolicy, deadlines, window_ns);
  Terms terms;
  terms.precedence = precedence(situation);
  terms.interference = interference_of_more_important(situation, workload, window_ns);
  if (kArbitrary) terms.own = own_safe(situation, window_ns);
  terms.groups = groups.demand;
  terms.blocking = blocking_safe(situation, deadlines, terms.interference + terms.own, groups.stages, window_ns);
  return terms;
}

constexpr Deadlines kConstrained = Deadlines::constrained;
constexpr Deadlines kArbitrary = Deadlines::arbitrary;
constexpr Analysis kEntries[] = {
    {"theorem6-constrained-published", "priority-driven executor with groups, constrained deadlines, as published",
     kPolicy, kConstrained, Variant::published, true, published<kConstrained>},
    {"theorem6-constrained-safe", "priority-driven executor with groups, constrained deadlines", kPolicy, kConstrained,
     Variant::safe, true, safe<kConstrained>},
    {"theorem6-arbitrary-published", "priority-driven executor with groups, arbitrary deadlines, as published", kPolicy,
     kArbitrary, Variant::published, true, published<kArbitrary>},
    {"theorem6-arbitrary-safe", "priority-driven executor with groups, arbitrary deadlines", kPolicy, kArbitrary,
     Variant::safe, true, safe<kArbitrary>},
};

}  // namespace
}  // namespace of_theorem6

std::span<const Analysis> theorem6() { return of_theorem6::kEntries; }

}  // namespace tide::analysis
