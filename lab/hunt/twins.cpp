// SPDX-License-Identifier: Apache-2.0
#include "hunt/twins.h"

#include <array>
#include <utility>

#include "analysis/single.h"

namespace tide::analysis {
namespace {

struct Term {
  const char *name;
  Linear Terms::*place;
};
constexpr Term kTerms[] = {{"precedence", &Terms::precedence},
                           {"interference", &Terms::interference},
                           {"own", &Terms::own},
                           {"blocking", &Terms::blocking},
                           {"groups", &Terms::groups}};

// The demand function of the analysis `number` without the term `dropped`. It is a plain function, because an analysis
// stores a function pointer.
template <size_t number, size_t dropped> Terms without(const Situation &situation, time_ns window_ns) {
  Terms whole = analyses()[number].demand(situation, window_ns);
  whole.*kTerms[dropped].place = Linear{};
  return whole;
}

constexpr size_t kMostAnalyses = 16;
constexpr size_t kTermCount = std::size(kTerms);

template <size_t... index> constexpr std::array<Demand, sizeof...(index)> all_without(std::index_sequence<index...>) {
  return {without<index / kTermCount, index % kTermCount>...};
}
constexpr auto kDemands = all_without(std::make_index_sequence<kMostAnalyses * kTermCount>{});

bool needs(const Analysis &analysis, const std::string &term) {
  if (term == "own") return analysis.deadlines == Deadlines::arbitrary;
  if (term == "blocking") return analysis.policy == Policy::priority;
  if (term == "groups") return analysis.groups;
  return true;
}

Twin twin_of(size_t number, size_t dropped, const Quarry &whole) {
  Analysis broken = analyses()[number];
  broken.demand = kDemands[number * kTermCount + dropped];
  const auto bounds = [broken](const Executor &executor) {
    Options options;
    options.refine = true;
    const Result result = analyse(broken, executor, options);
    Bounds each;
    if (!result.met) return each;
    for (const ChainResult &chain : result.chains) each.push_back(chain.response_ns);
    return each;
  };
  const std::string name = whole.name + " without " + kTerms[dropped].name;
  return {name, {name, whole.draw, {{"refined", bounds}}}};
}

// The next functions compute terms that the bounds for one thread must not omit.
time_ns shortest_other(const Executor &executor, size_t chain) {
  time_ns shortest_ns = kNeverNs;
  for (size_t other = 0; other < executor.chains().size(); ++other) {
    if (other != chain) shortest_ns = std::min(shortest_ns, executor.chains()[other].execution_ns);
  }
  return shortest_ns;
}

time_ns blocking(const Executor &executor, size_t chain) {
  time_ns longest_ns = 0;
  for (size_t other = 0; other < executor.chains().size(); ++other) {
    if (other != chain && !executor.above(other, chain))
      longest_ns = std::max(longest_ns, executor.chains()[other].longest_ns - 1);
  }
  return longest_ns;
}

time_ns one_ready_set(const Executor &executor, size_t chain) {
  time_ns sum_ns = 0;
  for (size_t other = 0; other < executor.chains().size(); ++other) {
    if (other != chain) sum_ns += executor.chains()[other].execution_ns;
  }
  return sum_ns;
}

time_ns shortest_callback(const Executor &executor, size_t chain) {
  time_ns shortest_ns = kNeverNs;
  for (size_t other = 0; other < executor.chains().size(); ++other) {
    if (other == chain) continue;
    for (const Callback &callback : executor.chains()[other].callbacks)
      shortest_ns = std::min(shortest_ns, callback.execution_ns);
  }
  return shortest_ns;
}

Twin twin_of(const Quarry &whole, const char *what, time_ns (*forgotten)(const Executor &, size_t)) {
  const auto bounds = [form = whole.forms[0], forgotten](const Executor &executor) {
    Bounds each = form.bounds(executor);
    for (size_t chain = 0; chain < each.size(); ++chain) {
      if (each[chain]) *each[chain] = std::max<time_ns>(1, *each[chain] - forgotten(executor, chain));
    }
    return each;
  };
  const std::string name = whole.name + " without " + what;
  return {name, {name, whole.draw, {{"plain", bounds}}}};
}

}  // namespace

std::vector<Twin> twins() {
  std::vector<Twin> all;
  for (const Quarry &quarry : quarries()) {
    for (size_t number = 0; number < std::min(kMostAnalyses, analyses().size()); ++number) {
      if (quarry.name != analyses()[number].name) continue;
      for (size_t dropped = 0; dropped < kTermCount; ++dropped) {
        if (needs(analyses()[number], kTerms[dropped].name)) all.push_back(twin_of(number, dropped, quarry));
      }
    }
    if (quarry.name == "single-any-order" || quarry.name == "casini2019-published")
      all.push_back(twin_of(quarry, "the shortest other chain", shortest_other));
    if (quarry.name == "single-ready-sets" || quarry.name == "single-wait-sets" || quarry.name == "single-fifo")
      all.push_back(twin_of(quarry, "the shortest callback of another", shortest_callback));
    if (quarry.name == "single-priority") all.push_back(twin_of(quarry, "blocking", blocking));
    if (quarry.name == "single-ready-sets" || quarry.name == "single-wait-sets" || quarry.name.starts_with("blass2021"))
      all.push_back(twin_of(quarry, "one ready set", one_ready_set));
  }
  return all;
}

}  // namespace tide::analysis
