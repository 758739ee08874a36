// SPDX-License-Identifier: Apache-2.0
// tide-sim: the shipped runtime in virtual time, with all checks enabled. Its modes simulate different kinds of
// systems. Campaigns and the replay of a seed work in the same way in all modes.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#ifdef TIDE_SIM_ACTIONS
#include "sim/actions/actions.h"
#endif
#include "sim/board/board.h"
#include "sim/board/bounds.h"
#include "sim/board/campaign.h"
#include "sim/board/system.h"

namespace tide::sim {
namespace {

constexpr const char *kUsage =
    "tide-sim: the runtime, the agent and a serial line in virtual time\n"
    "\n"
    "  tide-sim PLAN [NAME=VALUE ...] [--systems LIST] [--trace FILE]\n"
    "  tide-sim [MODE] --seed N [--show] [--trace FILE]\n"
    "  tide-sim [MODE] --seeds FIRST..LAST\n"
    "  tide-sim --serve\n"
    "\n"
    "Modes of campaigns; without one, a board with its line and agent is simulated:\n"
    "  host              chains on executors of several lanes in one process\n"
    "  overload          boards whose lanes have budgets; some are overloaded, the others must keep their bounds\n"
    "  actions           a board on rclc with actions and services: lost frames, cut lines, agents that die\n"
    "\n"
    "  PLAN              file with lines name = value (sim/README.md); NAME=VALUE overrides a line\n"
    "  --systems LIST    executors of the run: tide,batch,readyset,tide-preemptive,limit; default: that of the plan\n"
    "  --board IMAGE     image of sim/workloads/three_chains/mps2 that runs in QEMU as the board (sim/board/board.h)\n"
    "  --machine NAME    QEMU's machine for --board; default: mps2-an500\n"
    "  --listen TOPIC    with --board and the image of any program: print time in ns and bytes in hexadecimal of each\n"
    "                    sample of the topic; the exit status is that of the image\n"
    "  --echo TOPIC      topic on which each sample of --listen is published again\n"
    "  --samples N       number of samples of --listen after which the run ends; default: when the image ends\n"
    "  --trace FILE      file for the events, one per line, each with its time\n"
    "  --seed N          random seed of system and faults, as in a campaign\n"
    "  --show            print the plan of --seed instead of running it\n"
    "  --seeds A..B      seeds of a campaign; prints a line for each seed that breaks a rule\n"
    "  --serve           run the plan in each line of standard input, with ';' between its settings; print a line of\n"
    "                    JSON for each: worst response of each chain, ended and missing instances, broken rules\n"
    "\n"
    "Results are JSON on standard output. Exit status: 0 success, 1 a rule was broken, 2 wrong arguments.\n";

uint64_t number(const std::string &text) {
  uint64_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || rest != text.data() + text.size() || text.empty())
    throw std::invalid_argument("'" + text + "' is not a seed");
  return value;
}

// Options by name (flags have an empty value), and all other arguments as `words`.
struct Arguments {
  std::map<std::string, std::string> options;
  std::vector<std::string> words;
  bool has(const std::string &name) const { return options.contains(name); }
  std::string value(const std::string &name, const std::string &otherwise = "") const {
    const auto found = options.find(name);
    return found == options.end() ? otherwise : found->second;
  }
};

Arguments parse(const std::vector<std::string> &words, const std::string &known) {
  Arguments arguments;
  for (size_t index = 0; index < words.size(); index++) {
    const std::string &word = words[index];
    if (!word.starts_with("--")) {
      arguments.words.push_back(word);
      continue;
    }
    if ((" " + known + " ").find(" " + word + " ") == std::string::npos)
      throw std::invalid_argument("there is no option " + word + " here; --help says more");
    const bool is_flag = word == "--show" || word == "--serve";
    if (!is_flag && index + 1 == words.size()) throw std::invalid_argument(word + " needs a value");
    arguments.options[word] = is_flag ? "" : words[++index];
  }
  return arguments;
}

void write_file(const std::string &name, const std::string &text) {
  std::ofstream file(name);
  file << text;
  if (!file.flush()) throw std::invalid_argument("cannot write " + name);
}

class Json {
 public:
  Json &open(char bracket) {
    comma();
    text_ += bracket;
    fresh_ = true;
    return *this;
  }
  Json &close(char bracket) {
    text_ += bracket;
    fresh_ = false;
    return *this;
  }
  Json &key(const std::string &name) {
    string(name);
    text_ += ": ";
    fresh_ = true;
    return *this;
  }
  Json &string(const std::string &value) {
    comma();
    text_ += '"';
    for (const char character : value) {
      if (character == '"' || character == '\\') text_ += '\\';
      if (static_cast<unsigned char>(character) >= 0x20) text_ += character;
    }
    text_ += '"';
    return *this;
  }
  Json &strings(const char *name, const std::vector<std::string> &values) {
    key(name).open('[');
    for (const std::string &value : values) string(value);
    return close(']');
  }
  template <typename Number> Json &number(Number value) {
    comma();
    text_ += std::to_string(value);
    return *this;
  }
  template <typename Number> Json &numbers(const std::vector<Number> &values) {
    open('[');
    for (const Number value : values) number(value);
    return close(']');
  }
  Json &word(const char *value) {
    comma();
    text_ += value;
    return *this;
  }
  template <typename Number> Json &pair(const char *name, Number value) { return key(name).number(value); }
  std::string take() { return std::move(text_); }

 private:
  void comma() {
    if (!fresh_ && !text_.empty()) text_ += ", ";
    fresh_ = false;
  }
  std::string text_;
  bool fresh_ = true;
};

// ---- boards ----

struct Run {
  std::string executor;  // a name of --systems, or the policy of the first executor
  Plan plan;
  Result result;
  std::vector<std::optional<Time>> bounds;  // by chain; empty: not computed
};

void write_chain(Json &json, const ChainResult &chain, std::optional<Time> bound, bool each) {
  const Summary summary = summarise(chain);
  json.open('{').key("name").string(chain.name).pair("priority", chain.level).pair("samples", summary.samples);
  if (summary.samples > 0) {
    json.pair("min_ns", summary.minimum).pair("p50_ns", summary.p50).pair("p99_ns", summary.p99);
    json.pair("max_ns", summary.maximum).pair("mean_ns", summary.mean).pair("std_ns", summary.deviation);
  }
  json.pair("deadline_ns", chain.deadline).pair("deadline_misses", summary.deadline_misses).key("bound_ns");
  bound ? json.number(*bound) : json.word("null");
  json.pair("lost", chain.lost).pair("skipped", chain.skipped);
  if (each) json.key("latencies_ns").numbers(chain.latencies);
  json.close('}');
}

void write_line(Json &json, const char *name, const LineCounters &line) {
  json.key(name).open('{').pair("frames", line.frames).pair("bytes", line.bytes).pair("lost", line.lost);
  json.pair("duplicated", line.duplicated).pair("corrupted", line.corrupted).pair("delayed", line.delayed);
  json.pair("cut", line.cut).pair("refused", line.refused).close('}');
}

void write_run(Json &json, const Run &run) {
  const Result &result = run.result;
  const bool is_board = result.stack_bytes > 0;
  char hash[20];
  std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(result.trace_hash));
  json.open('{').key("executor").string(run.executor).key("send").string(text_of(run.plan.send));
  json.pair("periods", run.plan.periods).key("trace_hash").string(hash).key("chains").open('[');
  for (size_t chain = 0; chain < result.chains.size(); chain++)
    write_chain(json, result.chains[chain], chain < run.bounds.size() ? run.bounds[chain] : std::nullopt,
                is_board || run.plan.record);
  json.close(']').key("counters").open('{');
  write_line(json, "up", result.up);
  write_line(json, "down", result.down);
  json.pair("publish_failures", result.publish_failures).pair("agent_restarts", result.agent_restarts);
  json.pair("connects", result.session.connects).pair("reconnects", result.session.reconnects);
  json.pair("frames_sent", result.transmitter.frames).pair("retransmissions", result.transmitter.retransmissions);
  json.pair("heartbeats", result.transmitter.heartbeats).pair("acknacks", result.transmitter.acknacks);
  json.pair("acknowledged", result.transmitter.acknowledged).pair("packed", result.transmitter.packed);
  json.pair("evicted", result.transmitter.evicted);
  json.pair("frames_received", result.receiver.frames).pair("checksum_errors", result.receiver.checksum_errors);
  json.pair("duplicates", result.receiver.duplicates).pair("overflow_dropped", result.receiver.overflow_dropped);
  json.pair("events", result.events).pair("simulated_ns", result.simulated).close('}');
  if (!result.executors.empty()) {
    json.key("executors").open('[');
    for (const ExecutorResult &each : result.executors) {
      json.open('{').key("name").string(each.name).pair("updates", each.updates).pair("choices", each.choices);
      json.pair("callbacks_run", each.runs).close('}');
    }
    json.close(']');
  }
  if (is_board) {
    json.pair("masked_instructions", result.masked_maximum).pair("stack_bytes", result.stack_bytes);
    json.strings("execution_times", result.execution_times).key("budgets").open('[');
    for (const LaneBudget &budget : result.budgets) {
      json.open('{').pair("level", budget.level).pair("exhaustions", budget.exhaustions).pair("used_ns", budget.used);
      json.pair("low_ns", budget.low).pair("overrun_ns", budget.overrun).close('}');
    }
    json.close(']');
  }
  json.strings("violations", result.violations).close('}');
}

std::string results_json(const Plan &plan, const std::vector<Run> &runs) {
  Json json;
  json.open('{').pair("schema", 1).key("system").string(plan.system).key("on").string("sim").pair("seed", plan.seed);
  json.key("machine").open('{').close('}').key("runs").open('[');
  for (const Run &run : runs) write_run(json, run);
  return json.close(']').close('}').take();
}

void set_word(Plan &plan, const std::string &word) {
  const size_t equals = word.find('=');
  if (equals == std::string::npos) throw std::invalid_argument("'" + word + "' is not NAME=VALUE");
  set(plan, word.substr(0, equals), word.substr(equals + 1));
}

Plan plan_of(const Arguments &arguments) {
  Plan plan;
  if (arguments.has("--seed")) plan = draw_plan(number(arguments.value("--seed")));
  std::string file;
  for (const std::string &word : arguments.words) {
    if (word.find('=') != std::string::npos) continue;
    if (!file.empty()) throw std::invalid_argument("one plan only; '" + word + "' is another");
    file = word;
    std::ifstream input(file);
    std::ostringstream text;
    text << input.rdbuf();
    if (!input) throw std::invalid_argument("cannot read " + file);
    read_plan(plan, text.str());
  }
  for (const std::string &word : arguments.words) {
    if (word.find('=') != std::string::npos) set_word(plan, word);
  }
  return plan;
}

// The plan with the executor that `name` selects (for --systems). `batch` keeps the send mode of the plan.
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

int listen(const Plan &plan, const Board &board, const Arguments &arguments) {
  const uint64_t samples = arguments.has("--samples") ? number(arguments.value("--samples")) : UINT64_MAX;
  const ProgramResult result =
      run_program(plan, board, arguments.value("--listen"), arguments.value("--echo"), samples);
  for (const ProgramResult::Sample &sample : result.samples) {
    std::printf("%lld ", static_cast<long long>(sample.time));
    for (const uint8_t octet : sample.payload) std::printf("%02x", octet);
    std::printf("\n");
  }
  return result.exit_code;
}

int run_plan(const Plan &plan, const Arguments &arguments) {
  const Board board{arguments.value("--board"), arguments.value("--machine", "mps2-an500"), false};
  if (arguments.has("--listen")) return listen(plan, board, arguments);
  if (arguments.has("--show")) {
    std::fputs(write_plan(plan).c_str(), stdout);
    return 0;
  }
  std::string replay = "; replay: tide-sim ";
  if (arguments.has("--seed")) replay += "--seed " + arguments.value("--seed") + " ";
  for (const std::string &word : arguments.words) replay += word + " ";
  const std::string systems = arguments.value("--systems");
  const char *const own = plan.boards.empty() && !plan.executors.empty() ? text_of(plan.executors.front().policy)
                          : plan.policy != Policy::kTide                 ? text_of(plan.policy)
                          : plan.only_first                              ? "limit"
                          : plan.lanes > 1                               ? "tide-preemptive"
                                                                         : "tide";
  std::vector<Run> runs;
  std::istringstream names(systems.empty() ? own : systems);
  for (std::string name; std::getline(names, name, ',');) {
    Plan variant = systems.empty() ? plan : as_system(plan, name);
    variant.trace = variant.trace || arguments.has("--trace");
    if (!board.image.empty()) {  // a binary has costs that the plan does not contain, so there are no bounds
      runs.push_back({name, variant, run_board(variant, board), {}});
      continue;
    }
    Run &run = runs.emplace_back(Run{name, variant, simulate(variant), bounds_of(variant)});
    for (const std::string &line : above_bounds(run.bounds, run.result))
      run.result.violations.push_back(line + replay + "--systems " + name);
  }
  if (arguments.has("--trace")) {
    std::string text;
    for (const Run &run : runs) text += "# " + run.executor + '\n' + run.result.trace;
    write_file(arguments.value("--trace"), text);
  }
  std::printf("%s\n", results_json(plan, runs).c_str());
  return std::all_of(runs.begin(), runs.end(), [](const Run &run) { return run.result.violations.empty(); }) ? 0 : 1;
}

int run_boards(const Arguments &arguments) { return run_plan(plan_of(arguments), arguments); }

// The answer to one line of --serve. `chains`: for each chain its worst response, the numbers of instances that ended
// and that did not, and the number of the instance with the worst response.
std::string answer(const std::string &line) {
  Plan plan;
  std::istringstream settings(line);
  for (std::string setting; std::getline(settings, setting, ';');) set_word(plan, setting);
  const Result result = simulate(plan);
  std::vector<std::string> full;
  const auto note = [&full](const char *pool, uint64_t times) {
    if (times > 0) full.emplace_back(pool);
  };
  note("nodes", result.publish_failures + result.publish_waits);
  note("evicted nodes", result.transmitter.evicted);
  note("slots", result.receiver.overflow_dropped);
  note("reassemblies", result.receiver.reassembly_busy);
  full.insert(full.end(), result.full.begin(), result.full.end());
  Json json;
  json.open('{').strings("full", full).key("chains").open('[');
  for (const ChainResult &chain : result.chains) {
    const auto ended = static_cast<int64_t>(chain.latencies.size());
    json.numbers(std::vector<int64_t>{chain.worst_response, ended, chain.lost, chain.worst_index});
  }
  json.close(']').strings("violations", result.violations);
  if (!plan.record) return json.close('}').take();
  json.key("recorded").open('[');
  for (const ChainResult &chain : result.chains) {
    json.open('[');
    for (const Recorded &one : chain.recorded) json.numbers(std::vector<Time>{one.release, one.start, one.end});
    json.close(']');
  }
  json.close(']');
  const auto write = [&json](const char *name, const auto &all) {
    json.key(name).open('[');
    for (const auto &one : all) {
      json.open('[');
      for (const auto &times : one) json.numbers(std::vector<Time>(times.begin(), times.end()));
      json.close(']');
    }
    json.close(']');
  };
  write("runs", result.records.runs);
  write("crossings", result.records.crossings);
  return json.close('}').take();
}

std::string first_of(const std::vector<std::string> &violations) { return violations.empty() ? "" : violations[0]; }

std::string fail_board(uint64_t seed) { return first_of(simulate(draw_plan(seed)).violations); }

// ---- overload ----

std::string fail_overload(uint64_t seed) {
  const Overload overload = draw_overload(seed);
  return first_of(broken_promises(overload, simulate(overload.plan)));
}

int run_overload(const Arguments &arguments) {
  const Overload overload = draw_overload(number(arguments.value("--seed")));
  if (arguments.has("--show")) {
    std::fputs(write_plan(overload.plan).c_str(), stdout);
    return 0;
  }
  const Result result = simulate(overload.plan);
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
  const std::vector<std::string> broken = broken_promises(overload, result);
  for (const std::string &line : broken) std::printf("%s\n", line.c_str());
  return broken.empty() ? 0 : 1;
}

// ---- hosts ----

int run_host(const Arguments &arguments) { return run_plan(draw_host(number(arguments.value("--seed"))), arguments); }

std::string fail_host(uint64_t seed) { return first_of(simulate(draw_host(seed)).violations); }

// ---- actions ----

#ifdef TIDE_SIM_ACTIONS
std::string fail_actions(uint64_t seed) { return simulate_apart(seed).violation; }

int run_actions(const Arguments &arguments) {
  const ActionPlan plan = draw_actions(number(arguments.value("--seed")));
  const ActionResult result = simulate(plan);
  const auto print_goals = [](const char *whose, const auto &goals) {
    for (const auto &[place, goal] : goals) {
      std::printf("%s goal %d: %d answers, %s, executed %d times, %d results\n", whose, place, goal.answers,
                  goal.accepted ? "accepted" : "refused", goal.executed, goal.results);
    }
  };
  const auto print_requests = [](const char *whose, const auto &requests) {
    for (const auto &[place, request] : requests) {
      std::printf("%s request %d: executed %d times, %d answers%s\n", whose, place, request.executed, request.answers,
                  request.given_up ? ", given up" : "");
    }
  };
  print_goals("the board's", result.ledger.goals_of_board);
  print_goals("a node's", result.ledger.goals_of_nodes);
  print_requests("the board's", result.ledger.requests_of_board);
  print_requests("a node's", result.ledger.requests_of_nodes);
  std::printf("%u restarts of the agent, %zu cuts, %llu of %llu frames lost, %.1f s, %llu events; a %s server\n",
              result.restarts, plan.cuts.size(), static_cast<unsigned long long>(result.frames_lost),
              static_cast<unsigned long long>(result.frames), static_cast<double>(result.simulated) / 1e9,
              static_cast<unsigned long long>(result.events), plan.strict ? "strict" : "lenient");
  for (const std::string &line : result.violations) std::printf("%s\n", line.c_str());
  return result.violations.empty() ? 0 : 1;
}
#endif

// ---- the program ----

struct Mode {
  const char *name;
  const char *options;               // options of this mode
  int (*run)(const Arguments &);     // simulates a plan, or the system of a seed
  std::string (*failure)(uint64_t);  // describes the failure of a seed of the campaign; empty if it passes
};
constexpr Mode kModes[] = {
    {"", "--seed --seeds --show --serve --trace --systems --board --machine --listen --echo --samples", run_boards,
     fail_board},
    {"host", "--seed --seeds --show --trace", run_host, fail_host},
    {"overload", "--seed --seeds --show", run_overload, fail_overload},
#ifdef TIDE_SIM_ACTIONS
    {"actions", "--seed --seeds", run_actions, fail_actions},
#endif
};

std::string last_words;  // printed if a broken invariant ends the process: the command that replays the seed
void say_last_words(int number) {
  (void)!write(STDERR_FILENO, last_words.data(), last_words.size());
  std::signal(number, SIG_DFL);
  std::raise(number);
}

int run_campaign(const Mode &mode, const std::string &range) {
  const size_t dots = range.find("..");
  if (dots == std::string::npos) throw std::invalid_argument("--seeds takes FIRST..LAST");
  const uint64_t first = number(range.substr(0, dots)), last = number(range.substr(dots + 2));
  const std::string replay = std::string("tide-sim ") + mode.name + (*mode.name == '\0' ? "" : " ") + "--seed ";
  uint64_t failures = 0;
  std::signal(SIGABRT, say_last_words);
  for (uint64_t seed = first; seed <= last; seed++) {
    last_words =
        "seed " + std::to_string(seed) + " ended the campaign; replay: " + replay + std::to_string(seed) + '\n';
    std::string failure;
    try {
      failure = mode.failure(seed);
    } catch (const std::exception &error) {
      failure = error.what();
    }
    if (failure.empty()) continue;
    failures++;
    std::cout << "seed " << seed << ": " << failure << "; replay: " << replay << seed << std::endl;
  }
  std::cout << last - first + 1 << " seeds, " << failures << " failures" << std::endl;
  return failures == 0 ? 0 : 1;
}

std::string answer_to(const std::string &line) {
  try {
    return answer(line);
  } catch (const std::exception &error) {
    return Json().open('{').key("refused").string(error.what()).close('}').take();
  }
}

int serve() {
  for (std::string line; std::getline(std::cin, line);) std::cout << answer_to(line) << std::endl;
  return 0;
}

int run(std::vector<std::string> words) {
  const Mode *mode = kModes;
  for (const Mode &one : kModes) {
    if (!words.empty() && words[0] == one.name) mode = &one;
  }
  if (mode != kModes) words.erase(words.begin());
  const bool is_asked = !words.empty() && words[0] == "--help";
  if (is_asked || words.empty()) {
    std::fputs(kUsage, is_asked ? stdout : stderr);
    return is_asked ? 0 : 2;
  }
  const Arguments arguments = parse(words, mode->options);
  if (arguments.has("--serve")) return serve();
  if (arguments.has("--seeds")) return run_campaign(*mode, arguments.value("--seeds"));
  if (mode != kModes && !arguments.has("--seed"))
    throw std::invalid_argument(std::string(mode->name) + " takes --seeds FIRST..LAST or --seed N");
  return mode->run(arguments);
}

}  // namespace
}  // namespace tide::sim

// Answers one line of --serve in the caller's process (lab/hunt). The answer is valid until the next call. Only one
// thread may call this function.
extern "C" const char *tide_sim_answer(const char *line);
const char *tide_sim_answer(const char *line) {
  static std::string text;
  text = tide::sim::answer_to(line);
  return text.c_str();
}

int main(int count, char **words) {
  try {
    return tide::sim::run({words + 1, words + count});
  } catch (const std::invalid_argument &error) {
    std::fprintf(stderr, "tide-sim: %s\n", error.what());
    return 2;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "tide-sim: %s\n", error.what());
    return 1;
  }
}
