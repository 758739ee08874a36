// SPDX-License-Identifier: Apache-2.0
#include "analysis/trials/generate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tide::analysis {
namespace {

time_ns period_of(const Recipe &recipe, Random &random) {
  const auto low = static_cast<double>(recipe.shortest_period_ns);
  const auto high = static_cast<double>(recipe.longest_period_ns);
  const double place = random.unit();
  const double period =
      recipe.periods == PeriodLaw::uniform ? low + place * (high - low) : low * std::pow(high / low, place);
  return std::llround(period);
}

std::vector<double> utilisations_of(const Recipe &recipe, Random &random) {
  if (recipe.shares == ShareLaw::uunifast) return uunifast(random, recipe.chains, recipe.utilisation);
  const double least = recipe.utilisation / static_cast<double>(recipe.chains);
  const std::vector<double> most(recipe.chains, std::max(recipe.most_utilisation, least));
  return dirichlet_rescale(random, recipe.utilisation, most);
}

// Their sum is rounded once: ten callbacks of a chain that is to execute for its period would exceed it otherwise.
std::vector<time_ns> executions_of(const Recipe &recipe, Random &random, double total_ns) {
  std::vector<time_ns> executions_ns;
  const auto count = static_cast<time_ns>(recipe.callbacks);
  time_ns left_ns = std::max(count, static_cast<time_ns>(std::llround(total_ns)));
  double sum_ns = 0;
  time_ns taken_ns = 0;
  for (const double part_ns : uunifast(random, recipe.callbacks, total_ns)) {
    sum_ns += part_ns;
    const time_ns behind = count - static_cast<time_ns>(executions_ns.size()) - 1;  // each needs a nanosecond
    const time_ns wanted_ns = behind == 0 ? left_ns : std::llround(sum_ns) - taken_ns;
    executions_ns.push_back(std::clamp<time_ns>(wanted_ns, 1, left_ns - behind));
    left_ns -= executions_ns.back();
    taken_ns += executions_ns.back();
  }
  return executions_ns;
}

// The order in which chains are important, the most important first.
std::vector<size_t> importance(const Recipe &recipe, Random &random, const std::vector<time_ns> &periods_ns) {
  std::vector<size_t> order(periods_ns.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (recipe.priorities == PriorityLaw::rate_monotonic) {
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t left, size_t right) { return periods_ns[left] < periods_ns[right]; });
    return order;
  }
  for (size_t left = order.size(); left > 1; --left) std::swap(order[left - 1], order[random.bits() % left]);
  return order;
}

}  // namespace

Executor generate(const Recipe &recipe, uint64_t seed) {
  Random random(seed);
  const std::vector<double> utilisations = utilisations_of(recipe, random);
  std::vector<Chain> chains;
  std::vector<time_ns> periods_ns;
  for (const double utilisation : utilisations) {
    const time_ns period_ns = period_of(recipe, random);
    const auto executions_ns = executions_of(recipe, random, utilisation * static_cast<double>(period_ns));
    chains.push_back(make_chain(executions_ns, period_ns, recipe.deadline_periods * period_ns, 0));
    periods_ns.push_back(period_ns);
  }
  auto priority = static_cast<int64_t>(chains.size());
  for (const size_t index : importance(recipe, random, periods_ns)) chains[index].priority = priority--;
  return {"", Policy::priority, std::vector<Lane>(recipe.lanes), std::move(chains)};
}

}  // namespace tide::analysis
