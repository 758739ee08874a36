// SPDX-License-Identifier: Apache-2.0
// tide-host-sim: chains on executors of several lanes in virtual time, and campaigns of random ones with the checks on.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "sim/host/host_system.h"

namespace tide::sim {
namespace {

constexpr const char *kMore =
    "   or: tide-host-sim --seed N [--show] [--trace FILE]   the random system of this seed\n"
    "   or: tide-host-sim --seeds FIRST..LAST                a campaign: a line for each seed that breaks a rule\n"
    "   or: tide-host-sim --serve                            a plan in each line of standard input, record=true before "
    "it\n"
    "                                                        for the times of instances; its worst responses\n"
    "--trace FILE: what ran when. Exit: 0 all is well, 1 a rule was broken, 2 wrong arguments.\n";

int complain(const std::string &what) {
  std::fprintf(stderr, "tide-host-sim: %s\n", what.c_str());
  return 2;
}

bool number(const char *text, uint64_t &value, char end = '\0') {
  char *rest = nullptr;
  value = std::strtoull(text, &rest, 10);
  return rest != text && *rest == end && *text != '-';
}

int print(const plan_t &plan, const HostOptions &options, const char *trace) {
  const HostResult result = simulate_host(plan, options);
  if (trace != nullptr) {
    std::ofstream file(trace);
    file << result.trace;
    if (!file.flush()) return complain(std::string("cannot write ") + trace);
  }
  std::vector<const char *> lines;
  for (const std::string &violation : result.violations) lines.push_back(violation.c_str());
  program_print(result.program.get(), "sim", lines.data(), lines.size());
  return lines.empty() ? 0 : 1;
}

std::string failure_of(uint64_t seed) {
  try {
    const plan_t plan = draw_host_plan(seed);
    const HostResult result = simulate_host(plan, {.hesitate = true});
    return result.violations.empty() ? "" : result.violations.front();
  } catch (const std::exception &error) {
    return error.what();
  }
}

int run_campaign(uint64_t first, uint64_t last) {
  uint64_t failures = 0;
  for (uint64_t seed = first; seed <= last; seed++) {
    const std::string failure = failure_of(seed);
    if (failure.empty()) continue;
    failures++;
    std::printf("seed %llu: %s; replay: tide-host-sim --seed %llu\n", static_cast<unsigned long long>(seed),
                failure.c_str(), static_cast<unsigned long long>(seed));
    std::fflush(stdout);
  }
  std::printf("%llu seeds, %llu failures\n", static_cast<unsigned long long>(last - first + 1),
              static_cast<unsigned long long>(failures));
  return failures == 0 ? 0 : 1;
}

// By chain, by instance: release, start of the first callback, end of the last.
std::string recorded(const HostResult &result) {
  std::ostringstream out;
  out << "[";
  const char *between = "[";
  for (const std::vector<HostInstance> &chain : result.recorded) {
    out << between;
    between = ", [";
    const char *separator = "";
    for (const HostInstance &one : chain) {
      out << separator << "[" << one.release << ", " << one.start << ", " << one.end << "]";
      separator = ", ";
    }
    out << "]";
  }
  out << "]";
  return out.str();
}

// One line of JSON: the worst response of each chain, how many instances ended and how many did not, broken rules.
std::string answer(const plan_t &plan, bool record) {
  const HostResult result = simulate_host(plan, {.record = record});
  std::ostringstream out;
  out << "{\"chains\": [";
  for (size_t index = 0; index < plan.chain_count; index++) {
    const chain_plan_t &chain = plan.chains[index];
    const program_chain_t &seen = result.program->chains[index];
    const int64_t *const end = seen.responses_ns + seen.completed;
    const int64_t *const worst = std::max_element<const int64_t *>(seen.responses_ns, end);
    out << (index == 0 ? "[" : ", [") << (worst == end ? -1 : *worst) << ", " << seen.completed << ", "
        << result.program->released[chain.callbacks[0]] - seen.completed << "]";
  }
  out << "], \"violations\": [";
  const char *separator = "";
  for (const std::string &violation : result.violations) {
    out << separator << '"' << violation << '"';
    separator = ", ";
  }
  out << "]";
  if (record) out << ", \"recorded\": " << recorded(result);
  out << "}";
  return out.str();
}

int serve() {
  plan_t plan;
  for (std::string line; std::getline(std::cin, line);) {
    std::vector<char *> words;
    for (char *word = std::strtok(line.data(), " "); word != nullptr; word = std::strtok(nullptr, " "))
      words.push_back(word);
    const bool record = !words.empty() && std::strcmp(words[0], "record=true") == 0;
    const size_t skipped = record ? 1 : 0;
    const char *const wrong = plan_read(&plan, static_cast<int>(words.size() - skipped), words.data() + skipped);
    if (wrong != nullptr) {
      std::cout << "{\"refused\": \"" << wrong << "\"}" << std::endl;
      continue;
    }
    std::cout << answer(plan, record) << std::endl;
  }
  return 0;
}

int run(int count, char **words) {
  if (count == 1 && std::strcmp(words[0], "--serve") == 0) return serve();
  const char *trace = nullptr, *seeds = nullptr, *seed = nullptr;
  bool show = false;
  std::vector<char *> rest;
  for (int index = 0; index < count; index++) {
    const char **value = std::strcmp(words[index], "--trace") == 0   ? &trace
                         : std::strcmp(words[index], "--seeds") == 0 ? &seeds
                         : std::strcmp(words[index], "--seed") == 0  ? &seed
                                                                     : nullptr;
    if (value != nullptr) {
      if (index + 1 == count) return complain(std::string(words[index]) + " needs a value");
      *value = words[++index];
    } else if (std::strcmp(words[index], "--show") == 0) {
      show = true;
    } else {
      rest.push_back(words[index]);
    }
  }
  uint64_t first = 0, last = 0;
  if (seeds != nullptr) {
    const char *dots = std::strstr(seeds, "..");
    if (dots == nullptr || !number(seeds, first, '.') || !number(dots + 2, last)) {
      return complain("--seeds takes FIRST..LAST");
    }
    return run_campaign(first, last);
  }
  if (seed != nullptr && !number(seed, first)) return complain(std::string("'") + seed + "' is not a seed");
  plan_t plan;
  if (seed != nullptr) {
    plan = draw_host_plan(first);
  } else if (const char *wrong = plan_read(&plan, static_cast<int>(rest.size()), rest.data()); wrong != nullptr) {
    return complain(wrong);
  }
  if (show) {
    std::fputs(write_host_plan(plan).c_str(), stdout);
    return 0;
  }
  return print(plan, {.hesitate = seed != nullptr, .trace = trace != nullptr}, trace);
}

}  // namespace
}  // namespace tide::sim

int main(int count, char **words) {
  if (count == 2 && std::strcmp(words[1], "--help") == 0) {
    plan_help("tide-host-sim");
    std::fputs(tide::sim::kMore, stdout);
    return 0;
  }
  try {
    return tide::sim::run(count - 1, words + 1);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "tide-host-sim: %s\n", error.what());
    return 1;
  }
}
