// SPDX-License-Identifier: Apache-2.0
// tide-overload-sim: boards with overloaded lanes in virtual time, by seed.
#include <charconv>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/board/overload.h"

namespace tide::sim {
namespace {

constexpr const char *kUsage =
    "tide-overload-sim: lanes with budgets, some of them overloaded, in virtual time\n"
    "\n"
    "  tide-overload-sim --seeds FIRST..LAST    a line for each seed that breaks a promise\n"
    "  tide-overload-sim --seed N [--show]      the system of this seed, each chain beside its bound; --show: its "
    "plan\n"
    "\n"
    "Exit: 0 all is well, 1 a promise was broken, 2 wrong arguments.\n";

uint64_t number(const std::string &text) {
  uint64_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || rest != text.data() + text.size())
    throw std::invalid_argument("'" + text + "' is no seed");
  return value;
}

std::vector<std::string> failures_of(uint64_t seed, Result &result) {
  try {
    const Overload overload = draw_overload(seed);
    result = simulate(overload.plan);
    return broken_promises(overload, result);
  } catch (const std::exception &error) {
    return {error.what()};
  }
}

int run_seeds(uint64_t first, uint64_t last) {
  unsigned long long failures = 0;
  for (uint64_t seed = first; seed <= last; seed++) {
    Result result;
    const std::vector<std::string> broken = failures_of(seed, result);
    if (broken.empty()) continue;
    failures++;
    const auto named = static_cast<unsigned long long>(seed);
    std::printf("seed %llu: %s; replay: tide-overload-sim --seed %llu\n", named, broken.front().c_str(), named);
    std::fflush(stdout);
  }
  std::printf("%llu seeds, %llu failures\n", static_cast<unsigned long long>(last - first + 1), failures);
  return failures == 0 ? 0 : 1;
}

int show(uint64_t seed, bool plan_only) {
  const Overload overload = draw_overload(seed);
  if (plan_only) {
    std::fputs(write_plan(overload.plan).c_str(), stdout);
    return 0;
  }
  Result result;
  const std::vector<std::string> broken = failures_of(seed, result);
  for (size_t index = 0; index < result.chains.size(); index++) {
    const ChainPlan &chain = overload.plan.chains[index];
    const ChainResult &seen = result.chains[index];
    std::printf("%s: budget %.1f of %.1f ms, ", chain.name.c_str(), static_cast<double>(chain.budget) / 1e6,
                static_cast<double>(chain.budget_period) / 1e6);
    if (overload.bounds[index] < 0) {
      std::printf("overloaded, %zu answers\n", seen.latencies.size());
    } else {
      std::printf("worst answer %.3f ms, bound %.3f ms\n", static_cast<double>(seen.worst_response) / 1e6,
                  static_cast<double>(overload.bounds[index]) / 1e6);
    }
  }
  for (const std::string &line : broken) std::printf("%s\n", line.c_str());
  return broken.empty() ? 0 : 1;
}

int run(const std::vector<std::string> &words) {
  if (words.size() == 1 && words[0] == "--help") {
    std::fputs(kUsage, stdout);
    return 0;
  }
  if (words.size() == 2 && words[0] == "--seeds") {
    const size_t dots = words[1].find("..");
    if (dots == std::string::npos) throw std::invalid_argument("--seeds takes FIRST..LAST");
    return run_seeds(number(words[1].substr(0, dots)), number(words[1].substr(dots + 2)));
  }
  const bool plan_only = words.size() == 3 && words[2] == "--show";
  if ((words.size() == 2 || plan_only) && words[0] == "--seed") return show(number(words[1]), plan_only);
  throw std::invalid_argument("it takes --seeds FIRST..LAST or --seed N [--show]; --help says more");
}

}  // namespace
}  // namespace tide::sim

int main(int count, char **words) {
  try {
    return tide::sim::run({words + 1, words + count});
  } catch (const std::invalid_argument &error) {
    std::fprintf(stderr, "tide-overload-sim: %s\n", error.what());
    return 2;
  }
}
