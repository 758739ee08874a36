// SPDX-License-Identifier: Apache-2.0
// tide-analysis: bounds of a system, as JSON.
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "analysis/generate.h"
#include "analysis/link_file.h"
#include "analysis/single_thread.h"
#include "analysis/system_file.h"

namespace {

using namespace tide::analysis;

constexpr const char *usage =
    "tide-analysis [OPTION...] FILE     bounds of the system in FILE, '-' for standard input, as JSON\n"
    "tide-analysis --link [--compare] FILE   bounds of a system over a serial line\n"
    "tide-analysis --list               the analyses\n"
    "tide-analysis --study NAME=VALUE...     how many random chain sets each analysis finds schedulable; names: "
    "first,\n"
    "    count (seeds), utilisation, threads, chains, callbacks, shortest_ms, longest_ms,\n"
    "    periods (uniform, log_uniform), priorities (rate_monotonic, random)\n"
    "tide-analysis --throughput SETS    how many chain sets a second can be judged\n"
    "\n"
    "  --refine    take bounds in place of deadlines, once all are met\n"
    "  --sharpen   look at busy windows where an executor has one thread\n"
    "  --joint     less important chains block at most as long as they execute\n"
    "  --compare   every analysis that applies, published ones included; each executor for itself, without paths\n"
    "\n"
    "Ends with 0 if every deadline is guaranteed, 1 if not, 2 if the system cannot be read.\n";

int list() {
  for (const Analysis &analysis : analyses()) std::cout << analysis.name << "  " << analysis.title << '\n';
  for (const SingleThreadAnalysis &analysis : single_thread_analyses())
    std::cout << analysis.name << "  " << analysis.title << '\n';
  return 0;
}

bool read(const char *name, std::string &text) {
  if (std::strcmp(name, "-") == 0) {
    text.assign(std::istreambuf_iterator<char>(std::cin), {});
    return true;
  }
  std::ifstream file(name, std::ios::binary);
  if (!file) {
    std::cerr << name << ": cannot be opened\n";
    return false;
  }
  text.assign(std::istreambuf_iterator<char>(file), {});
  return true;
}

int check_link(const char *name, bool compare) {
  std::string text;
  if (!read(name, text)) return 2;
  const LinkFile file = read_link_system(text);
  for (const std::string &error : file.errors) std::cerr << error << '\n';
  if (!file.errors.empty()) return 2;
  const LinkResults results = bound_link(file.system);
  std::cout << (compare ? write_link_comparison(file.system) : write_link_results(file.system, results));
  return results.met ? 0 : 1;
}

int check(const char *name, const Options &options, bool compare) {
  std::string text;
  if (!read(name, text)) return 2;
  SystemFile file = read_system(text);
  Built built;
  if (file.errors.empty()) {
    built = System::build(file.description);
    file.errors = built.errors;
  }
  for (const std::string &error : file.errors) std::cerr << error << '\n';
  if (!built.system) return 2;
  const SystemResult result = analyse_system(*built.system, options);
  std::cout << (compare ? write_comparison(*built.system, options) : write_results(*built.system, result));
  return result.guaranteed ? 0 : 1;
}

// Five chains of ten callbacks on four threads, utilisation from 0.8 to 4.0 as in the published sweep, judged by the
// four analyses for reentrant callbacks; those for arbitrary deadlines get doubled deadlines.
int throughput(long sets) {
  constexpr int steps = 9;
  const char *names[] = {"theorem1-safe", "theorem2-safe", "theorem3-safe", "theorem4-safe"};
  long met[4] = {};
  Options options;
  options.only_verdict = true;
  const auto begin = std::chrono::steady_clock::now();
  for (long set = 0; set < sets; ++set) {
    Recipe recipe;
    recipe.utilisation = 0.8 + 0.4 * static_cast<double>(set % steps);
    const Executor constrained = generate(recipe, static_cast<std::uint64_t>(set));
    recipe.deadline_periods = 2;
    const Executor arbitrary = generate(recipe, static_cast<std::uint64_t>(set));
    for (int index = 0; index < 4; ++index) {
      const Analysis *analysis = find_analysis(names[index]);
      const Executor &executor = analysis->deadlines == Deadlines::constrained ? constrained : arbitrary;
      met[index] += analyse(*analysis, executor, options).met ? 1 : 0;
    }
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::cout << "{\"sets\": " << sets << ", \"seconds\": " << took.count()
            << ", \"sets_per_second\": " << static_cast<double>(sets) / took.count();
  for (int index = 0; index < 4; ++index) std::cout << ", \"" << names[index] << "\": " << met[index];
  std::cout << "}\n";
  return 0;
}

bool set(Recipe &recipe, long &first, long &count, const std::string &name, const std::string &value) {
  char *end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  const bool is_number = !value.empty() && *end == '\0' && number >= 0 && number <= 1e12;
  if (name == "periods" || name == "priorities") {
    const bool first_word = value == (name == "periods" ? "uniform" : "rate_monotonic");
    if (!first_word && value != (name == "periods" ? "log_uniform" : "random")) return false;
    if (name == "periods") recipe.periods = first_word ? PeriodLaw::uniform : PeriodLaw::log_uniform;
    if (name == "priorities") recipe.priorities = first_word ? PriorityLaw::rate_monotonic : PriorityLaw::random;
    return true;
  }
  if (!is_number) return false;
  const auto whole = static_cast<long>(number);
  const auto within = [whole](long least, long most) { return whole >= least && whole <= most; };
  if (name == "first") first = whole;
  if (name == "count") count = whole;
  if (name == "utilisation") recipe.utilisation = number;
  if (name == "threads") recipe.lanes = static_cast<std::size_t>(whole);
  if (name == "chains") recipe.chains = static_cast<std::size_t>(whole);
  if (name == "callbacks") recipe.callbacks = static_cast<std::size_t>(whole);
  if (name == "shortest_ms") recipe.shortest_period_ns = whole * 1'000'000;
  if (name == "longest_ms") recipe.longest_period_ns = whole * 1'000'000;
  if (name == "utilisation") return number > 0 && number <= 1000;
  if (name == "threads") return within(1, static_cast<long>(most_lanes));
  if (name == "count" || name == "shortest_ms" || name == "longest_ms") return within(1, 1'000'000);
  return name == "first" || ((name == "chains" || name == "callbacks") && within(1, 1000));
}

// How many of the random chain sets with the seeds from `first` on each analysis finds schedulable. Those for arbitrary
// deadlines get the same sets with doubled deadlines.
int study(const std::vector<std::string> &words) {
  Recipe recipe;
  long first = 1, count = 1;
  for (const std::string &word : words) {
    const std::size_t equals = word.find('=');
    const bool known =
        equals != std::string::npos && set(recipe, first, count, word.substr(0, equals), word.substr(equals + 1));
    if (known) continue;
    std::cerr << "--study does not take '" << word << "'\n";
    return 2;
  }
  if (recipe.shortest_period_ns > recipe.longest_period_ns) {
    std::cerr << "--study: shortest_ms is more than longest_ms\n";
    return 2;
  }
  constexpr const char *names[] = {"theorem1-safe",      "theorem2-safe",      "theorem3-safe",
                                   "theorem4-safe",      "theorem1-published", "theorem2-published",
                                   "theorem3-published", "theorem4-published"};
  long met[std::size(names)] = {};
  Options published, safe;
  published.only_verdict = true;
  safe.refine = safe.joint = true;
  for (long seed = first; seed < first + count; ++seed) {
    recipe.deadline_periods = 1;
    const Executor constrained = generate(recipe, static_cast<std::uint64_t>(seed));
    recipe.deadline_periods = 2;
    const Executor arbitrary = generate(recipe, static_cast<std::uint64_t>(seed));
    for (std::size_t index = 0; index < std::size(names); ++index) {
      const Analysis *analysis = find_analysis(names[index]);
      const Executor &executor = analysis->deadlines == Deadlines::constrained ? constrained : arbitrary;
      const Options &options = analysis->variant == Variant::safe ? safe : published;
      met[index] += analyse(*analysis, executor, options).met ? 1 : 0;
    }
  }
  std::cout << "{\"sets\": " << count;
  for (std::size_t index = 0; index < std::size(names); ++index)
    std::cout << ", \"" << names[index] << "\": " << met[index];
  std::cout << "}\n";
  return 0;
}

}  // namespace

int main(int argc, char **argv) {
  Options options;
  bool compare = false, link = false;
  const char *file = nullptr;
  for (int index = 1; index < argc; ++index) {
    const std::string_view argument = argv[index];
    if (argument == "--list") return list();
    if (argument == "--study") return study({argv + index + 1, argv + argc});
    if (argument == "--help") {
      std::cout << usage;
      return 0;
    }
    if (argument == "--throughput" && index + 1 < argc) {
      const long sets = std::strtol(argv[index + 1], nullptr, 10);
      if (sets > 0) return throughput(sets);
    } else if (argument == "--refine") {
      options.refine = true;
      continue;
    } else if (argument == "--sharpen") {
      options.sharpen = true;
      continue;
    } else if (argument == "--joint") {
      options.joint = true;
      continue;
    } else if (argument == "--compare") {
      compare = true;
      continue;
    } else if (argument == "--link") {
      link = true;
      continue;
    } else if (file == nullptr && (argument == "-" || argument.substr(0, 1) != "-")) {
      file = argv[index];
      continue;
    }
    std::cerr << usage;
    return 2;
  }
  if (file != nullptr) return link ? check_link(file, compare) : check(file, options, compare);
  std::cerr << usage;
  return 2;
}
