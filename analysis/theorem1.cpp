// SPDX-License-Identifier: Apache-2.0
// Sobhani, Choi and Kim, Theorem 1: the default multi-threaded executor, constrained deadlines, reentrant callbacks.
#include "analysis/registry.h"
#include "analysis/terms.h"

namespace tide::analysis {
namespace {

constexpr Deadlines deadlines = Deadlines::constrained;

Terms published(const Situation &situation, time_ns window_ns) {
  Terms terms;
  terms.precedence = precedence(situation);
  terms.interference = interference_of_all(situation, constrained_workload, window_ns);
  return terms;
}

// While a callback of the chain runs, its own lane is busy with it, and constrained chains run one callback at a time.
Linear capped(const Situation &situation, time_ns window_ns) {
  const Linear room{window_ns - (situation.self().execution_ns - situation.self().last_ns), 1, never_ns};
  Linear sum;
  for (std::size_t other = 0; other < situation.executor.chains().size(); ++other) {
    if (other == situation.chain) continue;
    const Linear workload = sharp_workload(situation.executor.chains()[other], situation.slack_ns[other], window_ns);
    const Linear share = lesser(workload, room, window_ns);
    if (situation.shares_ns != nullptr) (*situation.shares_ns)[other] = share.value;
    sum = sum + share;
  }
  return sum;
}

Terms safe(const Situation &situation, time_ns window_ns) {
  const bool cap = situation.options.cap_running && situation.supply.dedicated();
  Terms terms;
  terms.precedence = precedence(situation);
  terms.interference = cap ? capped(situation, window_ns) : interference_of_all(situation, sharp_workload, window_ns);
  return terms;
}

constexpr Analysis entries[] = {
    {"theorem1-published", "PWA_CD: default executor, constrained deadlines, as published", Policy::ready_set,
     deadlines, Variant::published, false, published},
    {"theorem1-safe", "PWA_CD: default executor, constrained deadlines", Policy::ready_set, deadlines, Variant::safe,
     false, safe},
};

}  // namespace

std::span<const Analysis> theorem1() { return entries; }

}  // namespace tide::analysis
