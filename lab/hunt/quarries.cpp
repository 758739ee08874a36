// SPDX-License-Identifier: Apache-2.0
#include "analysis/single.h"
#include "analysis/system.h"
#include "hunt/hunt.h"

namespace tide::analysis {
namespace {

Bounds guaranteed(const Analysis &analysis, const Executor &executor, const Options &options) {
  const Result result = analyse(analysis, executor, options);
  if (!result.met) return {};
  Bounds bounds;
  for (const ChainResult &chain : result.chains) bounds.push_back(chain.response_ns);
  return bounds;
}

std::vector<Form> forms_of(const Analysis &analysis) {
  return {{"plain", [&analysis](const Executor &executor) { return guaranteed(analysis, executor, {}); }},
          {"tight", [&analysis](const Executor &executor) { return guaranteed(analysis, executor, tight_options()); }}};
}

Quarry quarry_of(const Analysis &analysis) {
  const auto draw = [&analysis](RandomSystem &random, uint64_t seed) {
    if (analysis.deadlines == Deadlines::arbitrary && seed % 4 == 1)
      return random.crowded(analysis.policy, analysis.groups);
    return random.executor(analysis.policy, analysis.deadlines, analysis.groups, seed % 3 == 0);
  };
  return {std::string(analysis.name), draw, forms_of(analysis)};
}

Quarry family_of(const Analysis &analysis) {
  const auto draw = [](RandomSystem &random, uint64_t) { return random.blocking_family(); };
  return {std::string(analysis.name) + "-blocking", draw, forms_of(analysis)};
}

// These bounds hold even if deadlines are missed.
Quarry quarry_of(const SingleThreadAnalysis &analysis) {
  const auto draw = [&analysis](RandomSystem &random, uint64_t seed) {
    const Deadlines deadlines = seed % 2 == 0 ? Deadlines::constrained : Deadlines::arbitrary;
    const Executor drawn = random.executor(analysis.policy, deadlines, false, seed % 3 == 0, 2);
    return Executor(drawn.name(), analysis.policy, {drawn.lanes()[0]}, drawn.chains());
  };
  const auto bounds = [&analysis](const Executor &executor) {
    Bounds each;
    for (size_t chain = 0; chain < executor.chains().size(); ++chain) each.push_back(analysis.bound(executor, chain));
    return each;
  };
  return {std::string(analysis.name), draw, {{"plain", bounds}}};
}

// These bounds must hold even if deadlines are missed, so most deadlines are drawn too short to be met.
Quarry confirmed_quarry(const char *name, Policy policy, bool groups, bool own_priorities) {
  const auto draw = [policy, groups, own_priorities](RandomSystem &random, uint64_t seed) {
    const Executor drawn = seed % 4 == 1 ? random.crowded(policy, groups)
                                         : random.executor(policy, Deadlines::arbitrary, groups, seed % 3 == 0);
    std::vector<Chain> chains = drawn.chains();
    for (Chain &chain : chains) {
      chain.deadline_ns = random.within(1, chain.period_ns);
      for (Callback &callback : chain.callbacks) callback.priority = own_priorities ? random.within(1, 5) : 0;
    }
    return Executor(drawn.name(), policy, drawn.lanes(), std::move(chains), drawn.groups());
  };
  const auto bounds = [](const Executor &executor) {
    Options options = tight_options();
    options.sharpen = true;
    Bounds each;
    for (const ChainResult &chain : analyse_executor(executor, options, 1'000'000'000).chains)
      each.push_back(chain.response_ns);
    return each;
  };
  return {name, draw, {{"confirmed", bounds}}};
}

}  // namespace

Options tight_options() {
  Options options;
  options.refine = options.joint = options.cap_running = true;
  return options;
}

std::vector<Quarry> quarries() {
  std::vector<Quarry> all;
  for (const Analysis &analysis : analyses()) {
    if (analysis.variant != Variant::safe) continue;
    all.push_back(quarry_of(analysis));
    if (analysis.policy == Policy::priority && !analysis.groups) all.push_back(family_of(analysis));
  }
  for (const SingleThreadAnalysis &analysis : single_thread_analyses()) {
    if (!analysis.exceeded) all.push_back(quarry_of(analysis));
  }
  all.push_back(confirmed_quarry("confirmed-any-order", Policy::any_order, false, false));
  all.push_back(confirmed_quarry("confirmed-ready-sets", Policy::ready_set, false, false));
  all.push_back(confirmed_quarry("confirmed-groups", Policy::any_order, true, false));
  all.push_back(confirmed_quarry("confirmed-priority", Policy::priority, false, false));
  all.push_back(confirmed_quarry("confirmed-priority-groups", Policy::priority, true, false));
  all.push_back(confirmed_quarry("confirmed-own-priorities", Policy::priority, false, true));
  all.push_back(confirmed_quarry("confirmed-own-priorities-groups", Policy::priority, true, true));
  return all;
}

}  // namespace tide::analysis
