// SPDX-License-Identifier: Apache-2.0
// tide-analysis: bounds of a system, as JSON.
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "analysis/link/file.h"
#include "analysis/model/system_file.h"
#include "analysis/program/study.h"
#include "analysis/single/single_thread.h"
#include "analysis/system/results_file.h"

namespace {

using namespace tide::analysis;

constexpr const char *kUsage =
    "tide-analysis [OPTION...] FILE     print bounds of the system in FILE, '-' for standard input, as JSON\n"
    "tide-analysis --link [--compare] FILE   print bounds of a system over a serial line\n"
    "tide-analysis --list               list the analyses\n"
    "tide-analysis --study NAME=VALUE...     count the random chain sets that each analysis finds schedulable; names:\n"
    "    first, count (seeds), utilisation, threads, chains, callbacks, shortest_ms, longest_ms,\n"
    "    periods (uniform, log_uniform), priorities (rate_monotonic, random), shares (uunifast, dirichlet_rescale),\n"
    "    most_utilisation (of a chain, with dirichlet_rescale)\n"
    "tide-analysis --cost [NAME=VALUE...]    print the CPU time of judging such sets by the four safe analyses\n"
    "\n"
    "  --refine    take bounds in place of deadlines, once all are met\n"
    "  --sharpen   look at busy windows where an executor has one thread\n"
    "  --joint     let less important chains block at most as long as they execute\n"
    "  --cap       let others keep a chain waiting only while all lanes are busy with them at the same time\n"
    "  --compare   print every analysis that applies, published ones included; each executor for itself, without "
    "paths\n"
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

}  // namespace

int main(int argc, char **argv) {
  Options options;
  bool compare = false, link = false;
  const char *file = nullptr;
  for (int index = 1; index < argc; ++index) {
    const std::string_view argument = argv[index];
    if (argument == "--list") return list();
    if (argument == "--study") return study({argv + index + 1, argv + argc});
    if (argument == "--cost") return cost({argv + index + 1, argv + argc});
    if (argument == "--help") {
      std::cout << kUsage;
      return 0;
    }
    if (argument == "--refine") {
      options.refine = true;
      continue;
    } else if (argument == "--sharpen") {
      options.sharpen = true;
      continue;
    } else if (argument == "--cap") {
      options.cap_running = true;
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
    std::cerr << kUsage;
    return 2;
  }
  if (file != nullptr) return link ? check_link(file, compare) : check(file, options, compare);
  std::cerr << kUsage;
  return 2;
}
