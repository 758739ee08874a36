// SPDX-License-Identifier: Apache-2.0
// tide-sim: runs plans in virtual time, and campaigns of seeds with the checks on.
#include <array>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/board/board.h"
#include "sim/board/bounds.h"
#include "sim/board/campaign.h"
#include "sim/board/report.h"
#include "sim/board/system.h"

namespace tide::sim {
namespace {

constexpr const char *kUsage =
    "tide-sim: the runtime, the agent and a serial line in virtual time\n"
    "\n"
    "  tide-sim PLAN [NAME=VALUE ...] [--systems LIST] [--trace FILE]\n"
    "  tide-sim --seed N [--show]\n"
    "  tide-sim --seeds FIRST..LAST\n"
    "  tide-sim --serve\n"
    "\n"
    "  PLAN              lines of name = value; NAME=VALUE overrides them; see sim/README.md\n"
    "  --systems LIST    executors to run the plan with: tide,batch,readyset,tide-preemptive,limit; default: the "
    "plan's\n"
    "  --board IMAGE     client: this image of sim/workloads/three_chains/mps2 in QEMU; see board.h\n"
    "  --machine NAME    board of QEMU for it; default: mps2-an500\n"
    "  --listen TOPIC    with --board: another program's image; each sample of the topic, on standard output, as its "
    "time in\n"
    "                    ns and its octets in hexadecimal; the exit status is the image's\n"
    "  --echo TOPIC      topic to publish each of these samples on, too\n"
    "  --samples N       number of samples to end after; default: only when the program ends\n"
    "  --board-trace FILE  what the image records, when it is built with TIDE_TRACE\n"
    "  --trace FILE      file for the events, one a line with its time\n"
    "  --seed N          random seed of system and faults, as in a campaign\n"
    "  --show            print the plan of --seed instead of running it\n"
    "  --seeds A..B      seeds of a campaign: a line on standard output for each that breaks a rule\n"
    "  --serve           run the plan in each line of standard input, its settings divided by ';'; a line of JSON "
    "each:\n"
    "                    worst response of each chain, how many instances ended and how many did not; broken rules\n"
    "\n"
    "Results are JSON on standard output. Exit: 0 all is well, 1 a rule was broken, 2 wrong arguments.\n";

struct Arguments {
  std::string plan, systems, trace, seeds, listen, echo;
  uint64_t samples = UINT64_MAX;
  Board board{"", "mps2-an500", "", false};
  std::vector<std::string> settings;
  bool seeded = false, show = false;
  uint64_t seed = 0;
};

uint64_t number(const std::string &text) {
  uint64_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || rest != text.data() + text.size() || text.empty()) {
    throw std::invalid_argument("'" + text + "' is not a seed");
  }
  return value;
}

Arguments parse(const std::vector<std::string> &words) {
  Arguments arguments;
  for (size_t index = 0; index < words.size(); index++) {
    const std::string &word = words[index];
    const auto next = [&]() -> const std::string & {
      if (index + 1 == words.size()) throw std::invalid_argument(word + " needs a value");
      return words[++index];
    };
    if (word == "--systems") {
      arguments.systems = next();
    } else if (word == "--board") {
      arguments.board.image = next();
    } else if (word == "--listen") {
      arguments.listen = next();
    } else if (word == "--echo") {
      arguments.echo = next();
    } else if (word == "--samples") {
      arguments.samples = number(next());
    } else if (word == "--machine") {
      arguments.board.machine = next();
    } else if (word == "--board-trace") {
      arguments.board.trace = next();
    } else if (word == "--trace") {
      arguments.trace = next();
    } else if (word == "--seeds") {
      arguments.seeds = next();
    } else if (word == "--seed") {
      arguments.seed = number(next());
      arguments.seeded = true;
    } else if (word == "--show") {
      arguments.show = true;
    } else if (word.starts_with("--")) {
      throw std::invalid_argument("there is no option " + word);
    } else if (word.find('=') != std::string::npos) {
      arguments.settings.push_back(word);
    } else if (arguments.plan.empty()) {
      arguments.plan = word;
    } else {
      throw std::invalid_argument("one plan only; '" + word + "' is another");
    }
  }
  return arguments;
}

Plan plan_of(const Arguments &arguments) {
  Plan plan;
  if (arguments.seeded) plan = draw_plan(arguments.seed);
  if (!arguments.plan.empty()) {
    std::ifstream file(arguments.plan);
    std::ostringstream text;
    text << file.rdbuf();
    if (!file) throw std::invalid_argument("cannot read " + arguments.plan);
    read_plan(plan, text.str());
  }
  for (const std::string &setting : arguments.settings) {
    const size_t equals = setting.find('=');
    set(plan, setting.substr(0, equals), setting.substr(equals + 1));
  }
  return plan;
}

// What a name of a system makes of a plan; the plan says how its own baseline sends.
Plan as_system(Plan plan, const std::string &name) {
  if (name == "batch") {
    plan.policy = Policy::kBatch;
    if (plan.send == Send::kAsynchronous) plan.send = Send::kBlocking;
    return plan;
  }
  plan.policy = name == "readyset" ? Policy::kReadyset : Policy::kTide;
  plan.send = Send::kAsynchronous;
  if (name == "limit") {
    plan.only_first = true;
  } else if (name == "tide-preemptive") {
    plan.lanes = 2;
  } else if (name != "tide" && name != "readyset") {
    throw std::invalid_argument("there is no system '" + name + "'");
  }
  return plan;
}

std::string name_of(const Plan &plan) {
  if (plan.policy != Policy::kTide) return text_of(plan.policy);
  return plan.only_first ? "limit" : plan.lanes > 1 ? "tide-preemptive" : "tide";
}

std::string replay_of(const Arguments &arguments, const std::string &system) {
  std::string words = arguments.seeded ? "--seed " + std::to_string(arguments.seed) + " " : "";
  if (!arguments.plan.empty()) words += arguments.plan + " ";
  for (const std::string &setting : arguments.settings) words += setting + " ";
  return words + "--systems " + system;
}

int run_plan(const Arguments &arguments) {
  const Plan plan = plan_of(arguments);
  if (arguments.show) {
    std::fputs(write_plan(plan).c_str(), stdout);
    return 0;
  }
  std::vector<Run> runs;
  std::istringstream names(arguments.systems.empty() ? name_of(plan) : arguments.systems);
  for (std::string name; std::getline(names, name, ',');) {
    Plan variant = arguments.systems.empty() ? plan : as_system(plan, name);
    variant.trace = variant.trace || !arguments.trace.empty();
    if (!arguments.board.image.empty()) {  // its executions have costs that the plan does not know: no bounds
      runs.push_back({name, variant, run_board(variant, arguments.board), {}});
      continue;
    }
    Run &run = runs.emplace_back(Run{name, variant, simulate(variant), bounds_of(variant)});
    for (const std::string &line : above_bounds(run.bounds, run.result))
      run.result.violations.push_back(line + "; replay: tide-sim " + replay_of(arguments, name));
  }
  if (!arguments.trace.empty()) {
    std::ofstream file(arguments.trace);
    for (const Run &run : runs) file << "# " << run.executor << '\n' << run.result.trace;
    if (!file.flush()) throw std::invalid_argument("cannot write " + arguments.trace);
  }
  std::printf("%s\n", results_json(plan, runs).c_str());
  for (const Run &run : runs) {
    if (!run.result.violations.empty()) return 1;
  }
  return 0;
}

int listen(const Arguments &arguments) {
  const ProgramResult result =
      run_program(plan_of(arguments), arguments.board, arguments.listen, arguments.echo, arguments.samples);
  for (const ProgramResult::Sample &sample : result.samples) {
    std::printf("%lld ", static_cast<long long>(sample.time));
    for (const uint8_t octet : sample.payload) std::printf("%02x", octet);
    std::printf("\n");
  }
  return result.exit_code;
}

// By chain, by instance: release, sample from and to, heard and answered by the node, act from and to.
std::string recorded(const Result &result) {
  std::ostringstream out;
  const char *between = "[";
  for (const ChainResult &chain : result.chains) {
    out << between << "[";
    between = ", ";
    const char *separator = "";
    for (const Recorded &one : chain.recorded) {
      out << separator << "[" << one.release << ", " << one.sample_start << ", " << one.sample_end << ", " << one.heard
          << ", " << one.answered << ", " << one.act_start << ", " << one.act_end << "]";
      separator = ", ";
    }
    out << "]";
  }
  out << "]";
  return out.str();
}

std::string answer(const std::string &line) {
  Plan plan;
  std::istringstream settings(line);
  for (std::string setting; std::getline(settings, setting, ';');) {
    const size_t equals = setting.find('=');
    if (equals == std::string::npos) throw std::invalid_argument("'" + setting + "' is not NAME=VALUE");
    set(plan, setting.substr(0, equals), setting.substr(equals + 1));
  }
  const Result result = simulate(plan);
  const std::array<std::pair<const char *, uint64_t>, 4> pools{
      {{"nodes", result.publish_failures + result.publish_waits},
       {"nodes that gave way", result.transmitter.evicted},
       {"slots", result.receiver.overflow_dropped},
       {"reassemblies", result.receiver.reassembly_busy}}};
  std::ostringstream out;
  out << "{\"full\": [";
  const char *between = "";
  for (const auto &[pool, times] : pools) {
    if (times == 0) continue;
    out << between << '"' << pool << '"';
    between = ", ";
  }
  out << "], \"chains\": [";
  const char *separator = "";
  for (const ChainResult &chain : result.chains) {
    out << separator << "[" << chain.worst_response << ", " << chain.latencies.size() << ", " << chain.lost << "]";
    separator = ", ";
  }
  out << "], \"violations\": [";
  separator = "";
  for (const std::string &violation : result.violations) {
    out << separator << '"' << violation << '"';
    separator = ", ";
  }
  out << "]";
  if (plan.record) out << ", \"recorded\": " << recorded(result);
  out << "}";
  return out.str();
}

int serve() {
  for (std::string line; std::getline(std::cin, line);) {
    try {
      std::cout << answer(line) << std::endl;
    } catch (const std::exception &error) {
      std::cout << "{\"refused\": \"" << error.what() << "\"}" << std::endl;
    }
  }
  return 0;
}

std::string failure_of(uint64_t seed) {
  try {
    const Result result = simulate(draw_plan(seed));
    return result.violations.empty() ? "" : result.violations.front();
  } catch (const std::exception &error) {
    return error.what();
  }
}

int run_campaign(const std::string &range) {
  const size_t dots = range.find("..");
  if (dots == std::string::npos) throw std::invalid_argument("--seeds takes FIRST..LAST");
  const uint64_t first = number(range.substr(0, dots)), last = number(range.substr(dots + 2));
  uint64_t failures = 0;
  for (uint64_t seed = first; seed <= last; seed++) {
    const std::string failure = failure_of(seed);
    if (failure.empty()) continue;
    failures++;
    std::printf("seed %llu: %s; replay: tide-sim --seed %llu\n", static_cast<unsigned long long>(seed), failure.c_str(),
                static_cast<unsigned long long>(seed));
    std::fflush(stdout);
  }
  std::printf("%llu seeds, %llu failures\n", static_cast<unsigned long long>(last - first + 1),
              static_cast<unsigned long long>(failures));
  return failures == 0 ? 0 : 1;
}

int run(const std::vector<std::string> &words) {
  if (words.empty() || words[0] == "--help") {
    std::fputs(kUsage, words.empty() ? stderr : stdout);
    return words.empty() ? 2 : 0;
  }
  if (words.size() == 1 && words[0] == "--serve") return serve();
  try {
    const Arguments arguments = parse(words);
    if (!arguments.listen.empty()) return listen(arguments);
    return arguments.seeds.empty() ? run_plan(arguments) : run_campaign(arguments.seeds);
  } catch (const std::invalid_argument &error) {
    std::fprintf(stderr, "tide-sim: %s\n", error.what());
    return 2;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "tide-sim: %s\n", error.what());
    return 1;
  }
}

}  // namespace
}  // namespace tide::sim

int main(int count, char **words) { return tide::sim::run({words + 1, words + count}); }
