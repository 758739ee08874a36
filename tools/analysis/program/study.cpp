// SPDX-License-Identifier: Apache-2.0
#include "analysis/program/study.h"

#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <iostream>
#include <map>
#include <optional>

#include "analysis/threads/analysis.h"
#include "analysis/trials/generate.h"

namespace tide::analysis {
namespace {

struct Job {
  Recipe recipe;
  uint64_t first = 1;
  uint64_t count = 1;
};

using Read = std::function<bool(Job &job, const std::string &value)>;

std::optional<double> number_of(const std::string &value) {
  char *end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  if (value.empty() || *end != '\0' || !(number >= 0) || number > 1e12) return std::nullopt;
  return number;
}

Read whole(double least, double most, std::function<void(Job &job, uint64_t number)> take) {
  return [=](Job &job, const std::string &value) {
    const auto number = number_of(value);
    if (!number || *number < least || *number > most) return false;
    take(job, static_cast<uint64_t>(*number));
    return true;
  };
}

Read share(double most, double Recipe::*place) {
  return [=](Job &job, const std::string &value) {
    const auto number = number_of(value);
    if (!number || *number <= 0 || *number > most) return false;
    job.recipe.*place = *number;
    return true;
  };
}

template <class Law>
Read law(std::map<std::string, Law> known, Law Recipe::*place) {
  return [=](Job &job, const std::string &value) {
    const auto found = known.find(value);
    if (found == known.end()) return false;
    job.recipe.*place = found->second;
    return true;
  };
}

const std::map<std::string, Read> &readers() {
  static const std::map<std::string, Read> all{
      {"first", whole(0, 1e12, [](Job &job, uint64_t number) { job.first = number; })},
      {"count", whole(1, 1e6, [](Job &job, uint64_t number) { job.count = number; })},
      {"threads", whole(1, kMostLanes, [](Job &job, uint64_t number) { job.recipe.lanes = number; })},
      {"chains", whole(1, 1000, [](Job &job, uint64_t number) { job.recipe.chains = number; })},
      {"callbacks", whole(1, 1000, [](Job &job, uint64_t number) { job.recipe.callbacks = number; })},
      {"shortest_ms", whole(1, 1e6,
                            [](Job &job, uint64_t number) {
                              job.recipe.shortest_period_ns = static_cast<time_ns>(number) * 1'000'000;
                            })},
      {"longest_ms", whole(1, 1e6,
                           [](Job &job, uint64_t number) {
                             job.recipe.longest_period_ns = static_cast<time_ns>(number) * 1'000'000;
                           })},
      {"utilisation", share(1000, &Recipe::utilisation)},
      {"most_utilisation", share(1000, &Recipe::most_utilisation)},
      {"periods",
       law<PeriodLaw>({{"uniform", PeriodLaw::uniform}, {"log_uniform", PeriodLaw::log_uniform}}, &Recipe::periods)},
      {"priorities",
       law<PriorityLaw>({{"rate_monotonic", PriorityLaw::rate_monotonic}, {"random", PriorityLaw::random}},
                        &Recipe::priorities)},
      {"shares", law<ShareLaw>({{"uunifast", ShareLaw::uunifast}, {"dirichlet_rescale", ShareLaw::dirichlet_rescale}},
                               &Recipe::shares)}};
  return all;
}

std::optional<Job> job_of(const std::vector<std::string> &words) {
  Job job;
  for (const std::string &word : words) {
    const size_t equals = word.find('=');
    const auto reader = readers().find(word.substr(0, equals));
    if (equals != std::string::npos && reader != readers().end() && reader->second(job, word.substr(equals + 1)))
      continue;
    std::cerr << "--study does not take '" << word << "'\n";
    return std::nullopt;
  }
  if (job.recipe.shortest_period_ns > job.recipe.longest_period_ns) {
    std::cerr << "--study: shortest_ms is more than longest_ms\n";
    return std::nullopt;
  }
  return job;
}

struct Column {
  const Analysis *analysis = nullptr;
  Options options;
  std::string name;
  uint64_t met = 0;
};

// Those for arbitrary deadlines get the same sets with doubled deadlines.
void judge(const Job &job, std::vector<Column> &columns) {
  Recipe recipe = job.recipe;
  for (uint64_t seed = job.first; seed < job.first + job.count; ++seed) {
    recipe.deadline_periods = 1;
    const Executor constrained = generate(recipe, seed);
    recipe.deadline_periods = 2;
    const Executor arbitrary = generate(recipe, seed);
    for (Column &column : columns) {
      const Executor &executor = column.analysis->deadlines == Deadlines::constrained ? constrained : arbitrary;
      column.met += analyse(*column.analysis, executor, column.options).met ? 1U : 0U;
    }
  }
}

constexpr const char *kSafeNames[] = {"theorem1-safe", "theorem2-safe", "theorem3-safe", "theorem4-safe"};
constexpr const char *kPublishedNames[] = {"theorem1-published", "theorem2-published", "theorem3-published",
                                           "theorem4-published"};

void print(uint64_t sets, const std::vector<Column> &columns) {
  std::cout << "{\"sets\": " << sets;
  for (const Column &column : columns) std::cout << ", \"" << column.name << "\": " << column.met;
}

}  // namespace

int study(const std::vector<std::string> &words) {
  const auto job = job_of(words);
  if (!job) return 2;
  Options safe, published;
  safe.refine = safe.joint = true;
  published.only_verdict = true;
  Options tight = safe;
  tight.cap_running = true;
  std::vector<Column> columns;
  for (const char *name : kSafeNames) columns.push_back({find_analysis(name), safe, name});
  for (const char *name : kPublishedNames) columns.push_back({find_analysis(name), published, name});
  for (const char *name : kSafeNames)
    columns.push_back({find_analysis(name), tight, std::string(name, std::strlen(name) - 4) + "tight"});
  judge(*job, columns);
  print(job->count, columns);
  std::cout << "}\n";
  return 0;
}

// By the time of the processor, which does not count what else the machine does meanwhile.
int cost(const std::vector<std::string> &words) {
  const auto job = job_of(words);
  if (!job) return 2;
  Options verdict;
  verdict.only_verdict = true;
  std::vector<Column> columns;
  for (const char *name : kSafeNames) columns.push_back({find_analysis(name), verdict, name});
  const std::clock_t begin = std::clock();
  judge(*job, columns);
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  print(job->count, columns);
  std::cout << ", \"cpu_seconds\": " << seconds
            << ", \"sets_per_cpu_second\": " << (seconds > 0 ? static_cast<double>(job->count) / seconds : 0) << "}\n";
  return 0;
}

}  // namespace tide::analysis
