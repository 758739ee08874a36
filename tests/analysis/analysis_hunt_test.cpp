// SPDX-License-Identifier: Apache-2.0
// Random systems and schedules: nothing observed may exceed a safe bound, and the hunt must catch bounds that are
// broken on purpose.
#include <gtest/gtest.h>

#include <cstdlib>

#include "analysis/analysis.h"
#include "tests/analysis/random_system.h"

namespace tide::analysis {
namespace {

struct Catch {
  int checked = 0;
  int exceeded = 0;
  std::string first;  // the seed that replays it
};

// More than usual, for a campaign: TIDE_HUNT_SEEDS=20000.
std::uint64_t seeds_of(std::uint64_t usual) {
  const char *wanted = std::getenv("TIDE_HUNT_SEEDS");
  return wanted == nullptr ? usual : std::strtoull(wanted, nullptr, 10);
}

Catch hunt(const Analysis &analysis, const Options &options, std::uint64_t seeds, int schedules, bool family = false) {
  Catch found;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    RandomSystem random(seed);
    const Executor executor =
        family ? random.blocking_family()
               : random.executor(analysis.policy, analysis.deadlines, analysis.groups, seed % 3 == 0);
    const Result result = analyse(analysis, executor, options);
    if (!result.met) continue;
    for (int round = 0; round < schedules; ++round) {
      const Schedule schedule = run_schedule(executor, random.scenario(executor, 400));
      for (std::size_t chain = 0; chain < executor.chains().size(); ++chain) {
        ++found.checked;
        if (schedule.worst_ns(chain) <= *result.chains[chain].response_ns) continue;
        ++found.exceeded;
        if (!found.first.empty()) continue;
        found.first = std::string(analysis.name) + ", seed " + std::to_string(seed) + ", round " +
                      std::to_string(round) + ", chain " + std::to_string(chain);
      }
    }
  }
  return found;
}

TEST(Hunt, NothingExceedsASafeBound) {
  for (const Analysis &analysis : analyses()) {
    if (analysis.variant != Variant::safe) continue;
    for (const bool tight : {false, true}) {
      Options options;
      options.refine = options.joint = options.cap_running = tight;
      const Catch found = hunt(analysis, options, seeds_of(150), 8);
      EXPECT_EQ(found.exceeded, 0) << found.first << (tight ? ", tight" : "");
      EXPECT_GT(found.checked, 200) << analysis.name;
    }
  }
}

// The published bound of the same theorem does not survive this family.
TEST(Hunt, TheFamilyOfRepeatedBlocking) {
  Options refine;
  refine.refine = true;
  EXPECT_GT(hunt(*find_analysis("theorem2-published"), refine, 400, 8, true).exceeded, 0);
  for (const char *name : {"theorem2-safe", "theorem4-safe"}) {
    for (const bool tight : {false, true}) {
      Options options;
      options.refine = options.joint = tight;
      const Catch found = hunt(*find_analysis(name), options, seeds_of(150), 8, true);
      EXPECT_EQ(found.exceeded, 0) << found.first << (tight ? ", tight" : "");
      EXPECT_GT(found.checked, 200) << name;
    }
  }
}

template <Linear Terms::*dropped>
Terms without(const Situation &situation, time_ns window_ns) {
  static const Demand whole = find_analysis("theorem6-constrained-safe")->demand;
  Terms terms = whole(situation, window_ns);
  terms.*dropped = Linear{};
  return terms;
}

TEST(Hunt, CatchesABoundThatLacksATerm) {
  const std::vector<std::pair<const char *, Demand>> twins{{"precedence", without<&Terms::precedence>},
                                                           {"interference", without<&Terms::interference>},
                                                           {"blocking", without<&Terms::blocking>},
                                                           {"groups", without<&Terms::groups>}};
  Options options;
  options.refine = true;
  for (const auto &[name, demand] : twins) {
    Analysis broken = *find_analysis("theorem6-constrained-safe");
    broken.demand = demand;
    EXPECT_GT(hunt(broken, options, 400, 8).exceeded, 0) << "without " << name;
  }
}

}  // namespace
}  // namespace tide::analysis
