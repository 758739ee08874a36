// SPDX-License-Identifier: Apache-2.0
// Sobhani, Choi and Kim, Theorem 3: the default multi-threaded executor, arbitrary deadlines, reentrant callbacks.
#include "analysis/threads/registry.h"
#include "analysis/threads/terms.h"

namespace tide::analysis {
namespace of_theorem3 {
namespace {

constexpr Deadlines kDeadlines = Deadlines::arbitrary;

Terms published(const Situation &situation, time_ns window_ns) {
  Terms terms;
  terms.precedence = precedence(situation);
  terms.interference = interference_of_all(situation, whole_workload, window_ns);
  terms.own = own_published(situation, window_ns);
  return terms;
}

Terms safe(const Situation &situation, time_ns window_ns) {
  Terms terms;
  terms.precedence = precedence(situation);
  terms.interference = interference_of_all(situation, safe_workload(situation.options), window_ns);
  terms.own = own_safe(situation, window_ns);
  terms.groups = groups_safe(situation, Policy::any_order, kDeadlines, window_ns).demand;
  return terms;
}

constexpr Analysis kEntries[] = {
    {"theorem3-published", "PWA_AD: default executor, arbitrary deadlines, as published", Policy::any_order, kDeadlines,
     Variant::published, false, published},
    {"theorem3-safe", "PWA_AD: default executor, arbitrary deadlines", Policy::any_order, kDeadlines, Variant::safe,
     false, safe},
};

}  // namespace
}  // namespace of_theorem3

std::span<const Analysis> theorem3() { return of_theorem3::kEntries; }

}  // namespace tide::analysis
