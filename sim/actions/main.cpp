// SPDX-License-Identifier: Apache-2.0
// tide-action-sim: actions and services with faults, in virtual time, by seed.
#include <charconv>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/actions/actions.h"
#include "sim/actions/apart.h"

namespace tide::sim {
namespace {

constexpr const char *kUsage =
    "tide-action-sim: actions and services of a board, with lost frames, cut lines and agents that die\n"
    "\n"
    "  tide-action-sim --seeds FIRST..LAST    a line for each seed that breaks a promise\n"
    "  tide-action-sim --seed N               what became of each goal and request of this seed\n"
    "\n"
    "Exit: 0 all is well, 1 a promise was broken, 2 wrong arguments.\n";

uint64_t number(const std::string &text) {
  uint64_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || rest != text.data() + text.size())
    throw std::invalid_argument("'" + text + "' is no seed");
  return value;
}

int run_seeds(uint64_t first, uint64_t last) {
  unsigned long long failures = 0;
  Summary sum;
  for (uint64_t seed = first; seed <= last; seed++) {
    const Summary one = simulate_apart(seed);
    sum.goals += one.goals;
    sum.accepted += one.accepted;
    sum.requests += one.requests;
    sum.restarts += one.restarts;
    if (one.violation.empty()) continue;
    failures++;
    const auto named = static_cast<unsigned long long>(seed);
    std::printf("seed %llu: %s; replay: tide-action-sim --seed %llu\n", named, one.violation.c_str(), named);
    std::fflush(stdout);
  }
  std::printf("%llu goals, %llu of them accepted, %llu requests, %llu restarts of agents\n",
              static_cast<unsigned long long>(sum.goals), static_cast<unsigned long long>(sum.accepted),
              static_cast<unsigned long long>(sum.requests), static_cast<unsigned long long>(sum.restarts));
  std::printf("%llu seeds, %llu failures\n", static_cast<unsigned long long>(last - first + 1), failures);
  return failures == 0 ? 0 : 1;
}

int show(uint64_t seed) {
  const ActionPlan plan = draw_actions(seed);
  const ActionResult result = simulate(plan);
  const auto tell_goals = [](const char *whose, const auto &goals) {
    for (const auto &[place, goal] : goals) {
      std::printf("%s goal %d: %d answers, %s, executed %d times, %d results\n", whose, place, goal.answers,
                  goal.accepted ? "accepted" : "refused", goal.executed, goal.results);
    }
  };
  const auto tell_requests = [](const char *whose, const auto &requests) {
    for (const auto &[place, request] : requests) {
      std::printf("%s request %d: executed %d times, %d answers%s\n", whose, place, request.executed, request.answers,
                  request.given_up ? ", given up" : "");
    }
  };
  tell_goals("the board's", result.ledger.goals_of_board);
  tell_goals("a node's", result.ledger.goals_of_nodes);
  tell_requests("the board's", result.ledger.requests_of_board);
  tell_requests("a node's", result.ledger.requests_of_nodes);
  std::printf("%u restarts of the agent, %zu cuts, %llu of %llu frames lost, %.1f s, %llu events; a %s server\n",
              result.restarts, plan.cuts.size(), static_cast<unsigned long long>(result.frames_lost),
              static_cast<unsigned long long>(result.frames), static_cast<double>(result.simulated) / 1e9,
              static_cast<unsigned long long>(result.events), plan.strict ? "strict" : "lenient");
  for (const std::string &line : result.violations) std::printf("%s\n", line.c_str());
  return result.violations.empty() ? 0 : 1;
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
  if (words.size() == 2 && words[0] == "--seed") return show(number(words[1]));
  throw std::invalid_argument("it takes --seeds FIRST..LAST or --seed N; --help says more");
}

}  // namespace
}  // namespace tide::sim

int main(int count, char **words) {
  try {
    return tide::sim::run({words + 1, words + count});
  } catch (const std::exception &error) {
    std::fprintf(stderr, "tide-action-sim: %s\n", error.what());
    return 2;
  }
}
