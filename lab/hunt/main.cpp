// SPDX-License-Identifier: Apache-2.0
// tide-hunt: runs a part of a campaign and prints its result as JSON.
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "hunt/directed.h"
#include "hunt/hunt.h"
#include "hunt/twins.h"

namespace {

using namespace tide::analysis;

constexpr const char *kUsage =
    "tide-hunt --list                  list the bounds that can be tested\n"
    "tide-hunt BOUND [NAME=VALUE...]   compare a bound with schedules of random systems; names: first, count (seeds),\n"
    "    schedules (of each system), climbs (changes tried after them)\n"
    "tide-hunt --twins [NAME=VALUE...] test deliberately wrong bounds (mutants): each must be detected\n"
    "tide-hunt --tightness ANALYSIS UTILISATION FIRST COUNT TRIES\n"
    "    search directed schedules of chain sets of the published size (4 threads, 5 chains of 10\n"
    "    callbacks), TRIES for each chain\n"
    "\n"
    "Exit status: 0 nothing exceeded its bound (--twins: every mutant was detected), 1 otherwise, 2 wrong arguments.\n";

bool set(Campaign &campaign, const std::string &word) {
  const size_t equals = word.find('=');
  if (equals == std::string::npos) return false;
  const std::string name = word.substr(0, equals), value = word.substr(equals + 1);
  char *end = nullptr;
  const unsigned long long number = std::strtoull(value.c_str(), &end, 10);
  if (value.empty() || *end != '\0' || number > 1'000'000'000'000ULL) return false;
  if (name == "first") campaign.first = number;
  if (name == "count") campaign.count = number;
  if (name == "schedules" && number <= 1000) campaign.schedules = static_cast<int>(number);
  if (name == "climbs" && number <= 100) campaign.climbs = static_cast<int>(number);
  return name == "first" || name == "count" || (name == "schedules" && number <= 1000) ||
         (name == "climbs" && number <= 100);
}

std::string quoted(const std::string &text) {
  std::string result = "\"";
  for (const char one : text) {
    if (one == '\n') {
      result += "\\n";
      continue;
    }
    if (one == '"' || one == '\\') result += '\\';
    result += one;
  }
  return result + '"';
}

void print(const Ratios &ratios) {
  std::cout << "\"ratios\": {\"count\": " << ratios.count() << ", \"least\": " << ratios.least()
            << ", \"sum\": " << ratios.sum() << ", \"histogram\": [";
  const char *separator = "";
  for (size_t place = 0; place < Ratios::kSteps; ++place) {
    if (ratios.histogram()[place] == 0) continue;
    std::cout << separator << "[" << Ratios::kStep * static_cast<double>(place + 1) << ", " << ratios.histogram()[place]
              << "]";
    separator = ", ";
  }
  std::cout << "]}";
}

void print(const std::string &quarry, const Tally &tally) {
  std::cout << "{\"quarry\": " << quoted(quarry) << ", \"systems\": " << tally.systems
            << ", \"accepted\": " << tally.accepted << ", \"observations\": " << tally.observations
            << ", \"exceeded\": " << tally.exceeded << ", ";
  print(tally.ratios);
  if (tally.first) {
    const Failure &failure = *tally.first;
    std::cout << ", \"failure\": {\"seed\": " << failure.seed << ", \"schedule\": " << failure.schedule
              << ", \"chain\": " << failure.chain << ", \"form\": " << quoted(failure.form)
              << ", \"bound\": " << failure.bound_ns << ", \"observed\": " << failure.observed_ns
              << ", \"system\": " << quoted(failure.system) << "}";
  }
  std::cout << "}\n";
}

int measure_tightness(const std::vector<std::string> &words) {
  const Analysis *analysis = words.size() == 5 ? find_analysis(words[0]) : nullptr;
  if (analysis == nullptr || analysis->variant != Variant::safe || analysis->groups) {
    std::cerr << kUsage;
    return 2;
  }
  Recipe recipe;
  recipe.utilisation = std::strtod(words[1].c_str(), nullptr);
  const auto number = [&](size_t place) { return std::strtoull(words[place].c_str(), nullptr, 10); };
  const Tightness found = tightness(*analysis, recipe, number(2), number(3), static_cast<int>(number(4)));
  std::cout << "{\"analysis\": " << quoted(words[0]) << ", \"utilisation\": " << recipe.utilisation
            << ", \"sets\": " << found.sets << ", \"met\": " << found.met << ", \"exceeded\": " << found.exceeded
            << ", ";
  print(found.ratios);
  std::cout << "}\n";
  return found.exceeded == 0 ? 0 : 1;
}

bool is_caught(const std::string &twin, const Tally &tally) {
  std::cout << twin << ": " << (tally.exceeded > 0 ? "caught" : "NOT caught") << " after " << tally.systems
            << " systems" << std::endl;
  return tally.exceeded > 0;
}

int hunt_twins(Campaign campaign) {
  campaign.stop_at_first = true;
  bool all = true;
  for (const Twin &twin : twins()) all = is_caught(twin.name, hunt(twin.quarry, campaign)) && all;
  return all ? 0 : 1;
}

}  // namespace

int main(int argc, char **argv) {
  const std::string what = argc > 1 ? argv[1] : "--help";
  if (what == "--tightness") return measure_tightness({argv + 2, argv + argc});
  Campaign campaign;
  for (int index = 2; index < argc; ++index) {
    if (set(campaign, argv[index])) continue;
    std::cerr << "tide-hunt does not take '" << argv[index] << "'\n";
    return 2;
  }
  if (what == "--help") {
    std::cout << kUsage;
    return 0;
  }
  if (what == "--twins") return hunt_twins(campaign);
  for (const Quarry &quarry : quarries()) {
    if (what == "--list") std::cout << quarry.name << '\n';
    if (what != quarry.name) continue;
    const Tally tally = hunt(quarry, campaign);
    print(quarry.name, tally);
    return tally.exceeded == 0 ? 0 : 1;
  }
  if (what == "--list") return 0;
  std::cerr << "there is no quarry '" << what << "'; tide-hunt --list names them\n";
  return 2;
}
