// SPDX-License-Identifier: Apache-2.0
// Sobhani, Choi and Kim, Theorem 1: the default multi-threaded executor, constrained deadlines, reentrant callbacks.
#include "analysis/threads/registry.h"
#include "analysis/threads/terms.h"

namespace tide::analysis {
namespace of_theorem1 {
namespace {

constexpr Deadlines kDeadlines = Deadlines::constrained;

Terms published(const Situation &situation, time_ns window_ns) {
  Terms terms;
  terms.precedence = precedence(situation);
  terms.interference = interference_of_all(situation, constrained_workload, window_ns);
  return terms;
}

Terms safe(const Situation &situation, time_ns window_ns) {
  Terms terms;
  terms.precedence = precedence(situation);
  terms.interference = interference_of_all(situation, sharp_workload, window_ns);
  return terms;
}

constexpr Analysis kEntries[] = {
    {"theorem1-published", "PWA_CD: default executor, constrained deadlines, as published", Policy::any_order,
     kDeadlines, Variant::published, false, published},
    {"theorem1-safe", "PWA_CD: default executor, constrained deadlines", Policy::any_order, kDeadlines, Variant::safe,
     false, safe},
};

}  // namespace
}  // namespace of_theorem1

std::span<const Analysis> theorem1() { return of_theorem1::kEntries; }

}  // namespace tide::analysis
