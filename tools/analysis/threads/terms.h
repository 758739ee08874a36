// SPDX-License-Identifier: Apache-2.0
// The building blocks of the theorems. Each is a function of the window; docs/analysis says why it is a bound.
#pragma once

#include "analysis/threads/analysis.h"

namespace tide::analysis {

// How much a chain can execute in a window (Lemmas 1 and 5; for constrained deadlines).
Linear constrained_workload(const Chain &chain, time_ns slack_ns, time_ns window_ns);
// Every instance that touches the window, in full (Lemma 6).
Linear whole_workload(const Chain &chain, time_ns slack_ns, time_ns window_ns);
// Not more than either of the above: instances that overlap in time cannot each fill the same part of the window.
Linear sharp_workload(const Chain &chain, time_ns slack_ns, time_ns window_ns);

using Workload = Linear (*)(const Chain &chain, time_ns slack_ns, time_ns window_ns);

// The workload function of the safe variants.
Workload safe_workload(const Options &options);

Linear precedence(const Situation &situation);
Linear interference_of_all(const Situation &situation, Workload workload, time_ns window_ns);
Linear interference_of_more_important(const Situation &situation, Workload workload, time_ns window_ns);

Linear own_published(const Situation &situation, time_ns window_ns);
Linear own_safe(const Situation &situation, time_ns window_ns);

struct GroupTerms {
  Linear demand;
  Linear stages;  // how often the chain may have to wait anew
};

GroupTerms groups_published(const Situation &situation, Policy policy, Deadlines deadlines, time_ns window_ns);
// Also what a chain with a timer needs when there is no group: instances of one timer exclude each other.
GroupTerms groups_safe(const Situation &situation, Policy policy, Deadlines deadlines, time_ns window_ns);

Linear blocking_published(const Situation &situation, Deadlines deadlines, time_ns window_ns);
// more_important: executions that can take the lane which a callback of the chain has just left.
Linear blocking_safe(const Situation &situation, Deadlines deadlines, const Linear &more_important,
                     const Linear &group_stages, time_ns window_ns);

}  // namespace tide::analysis
