// SPDX-License-Identifier: Apache-2.0
#include "sim/host/host.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sim/engine/machine.h"
#include "sim/engine/random.h"
#include "tide/status.h"

namespace tide::sim {
namespace {

// ---- the processor time of a lane with a budget, which shares its core ----

constexpr int kLanePriority = 2, kLess = kLanePriority - 1, kMore = kLanePriority + 1;
// A callback that ends at the instant at which the budget ends counts as ended: the following code takes no time, but
// needs the core.
constexpr Time kInstant = 1;
constexpr uint16_t kReplenishments = 64;  // activations in a period that leave a part of the budget

// Exists as long as the lane's task, which is the only other task of its core.
class HostSupply {
 public:
  HostSupply(Task &lane, const executor_plan_t &executor, plan_supply_t supply, uint64_t seed)
      : budget_(std::min(executor.budget_ns + kInstant, executor.budget_period_ns)),
        period_(executor.budget_period_ns),
        random_(seed),
        engine_(lane.core().engine()) {
    if (supply == PLAN_SUPPLY_ANYWHERE) {
      other_ = std::make_unique<Task>(lane.core(), "others", kMore, [this] { take_all_but_the_budget(); });
      return;
    }
    other_ = std::make_unique<Task>(lane.core(), "others", kLess, [this] { take_what_is_left(); });
    tide_budget_config_t config{};
    config.priority = kLanePriority;
    config.low_priority = kLess - 1;
    config.budget_ns = budget_;
    config.period_ns = period_;
    config.maximum_replenishments = kReplenishments;
    server_ = std::make_unique<Budget>(lane, config);
  }

 private:
  void take_what_is_left() {
    for (;;) Task::current()->execute(kSecond);
  }

  // Late in one period and early in the next causes delays, as do positions between.
  void take_all_but_the_budget() {
    const Time spare = period_ - budget_;
    for (Time begin = -random_.between(0, period_ - 1);; begin += period_) {
      const Time late = random_.chance(0.4) ? 0 : random_.chance(0.6) ? spare : random_.between(0, spare);
      Task::current()->execute(begin + late - engine_.now());
      const Time end = begin + late + budget_;
      if (end > engine_.now()) Task::current()->block(end);
    }
  }

  Time budget_, period_;
  Random random_;
  Engine &engine_;
  std::unique_ptr<Task> other_;
  std::unique_ptr<Budget> server_;
};

// ---- the checks ----

constexpr size_t kViolationsKept = 8;

bool is_exclusive(const tide_callback_t &callback) {
  return callback.group != nullptr && callback.group->kind == TIDE_GROUP_EXCLUSIVE;
}

bool is_reentrant(const tide_callback_t &callback) {
  return callback.group != nullptr && callback.group->kind == TIDE_GROUP_REENTRANT;
}

// Conditions for chains on executors with several lanes, regardless of the order of the lanes.
//
// A callback never overlaps itself, but in a reentrant group; those of an exclusive group never overlap each other.
// Each callback runs once for each message of the preceding one, except messages dropped by a full queue; timers run on
// their grid. Of the callbacks that may run, a lane takes the most urgent one (tide); a timer comes before everything
// else (readyset). No lane sleeps while a callback may run. No response is shorter than its chain's executions. At the
// end all released instances have ended.

class HostChecks {
 public:
  HostChecks(const plan_t &plan, const program_t &program)
      : plan_(plan),
        program_(program),
        states_(plan.callback_count),
        of_executor_(plan.executor_count),
        of_group_(plan.group_count),
        successors_(plan.callback_count),
        groups_inside_(plan.group_count) {
    for (size_t executor = 0; executor < plan.executor_count; executor++) {
      for (size_t lane = 0; lane < plan.executors[executor].lanes; lane++) {
        lanes_.push_back({executor, &program.lanes[executor][lane], nullptr});
      }
    }
    for (size_t index = 0; index < plan.callback_count; index++) {
      of_executor_[plan.callbacks[index].executor].push_back(index);
      if (plan.callbacks[index].grouped) of_group_[plan.callbacks[index].group].push_back(index);
      const size_t before = plan_predecessor(&plan, index);
      if (before != index) successors_[before].push_back(index);
      const callback_plan_t &waits = plan.callbacks[index];
      for (size_t place = 0; place < waits.join_count; place++) successors_[waits.joins[place]].push_back(index);
    }
  }

  void begin(size_t callback, Time release, Time now) {
    State &state = states_[callback];
    const callback_plan_t &plan = plan_.callbacks[callback];
    if (state.inside++ > 0 && !is_reentrant(core(callback))) violate(now, "it overlaps itself", callback);
    if (is_exclusive(core(callback)) && groups_inside_[plan.group]++ > 0) {
      violate(now, "it overlaps another one of its exclusive group", callback);
    }
    if (plan.period_ns > 0) {
      if ((release - program_.callbacks[callback].grid_ns) % plan.period_ns != 0)
        violate(now, "it is off its grid", callback);
      if (release > now) violate(now, "it runs before its expiry", callback);
      if (release <= state.last_release) violate(now, "it runs twice for an expiry", callback);
      state.last_release = release;
      return;
    }
    const auto place = std::find(state.expected.begin(), state.expected.end(), release);
    if (place == state.expected.end()) {
      violate(now, "nobody sent what it has received", callback);
    } else {
      state.expected.erase(place);
    }
  }

  void end(size_t callback, Time release) {
    states_[callback].inside--;
    if (is_exclusive(core(callback))) groups_inside_[plan_.callbacks[callback].group]--;
    for (const size_t next : successors_[callback]) {
      State &state = states_[next];
      const size_t wanted = plan_.callbacks[next].join_count + 1;
      if (wanted > 1 && ++state.ended[release] < wanted) continue;
      state.ended.erase(release);
      state.expected.push_back(release);
    }
  }

  // Called when a task has left a critical section: checks what a lane has taken in it.
  void section_end(Time now) {
    for (Lane &lane : lanes_) {
      const tide_callback_t *running = lane.lane->running;
      if (running != nullptr && lane.seen_running == nullptr) check_choice(lane.executor, *running, now);
      lane.seen_running = running;
    }
  }

  // Called when every core has settled and no task is stopped between two sections.
  void settled(Time now) {
    for (size_t executor = 0; executor < plan_.executor_count; executor++) {
      // The code that wakes a lane does not know which lane has budget left.
      if (plan_.executors[executor].budget_ns > 0 || !sleeps(executor)) continue;
      for (const size_t index : of_executor_[executor]) {
        if (may_run(index)) violate(now, "it waits while a lane sleeps", index);
      }
    }
  }

  void at_end(Time now) {
    for (size_t index = 0; index < plan_.callback_count; index++) {
      const program_callback_t &callback = program_.callbacks[index];
      if (states_[index].inside > 0 || core(index).pending > 0 || callback.subscription.count > 0) {
        violate(now, "it has not come to its end", index);
      }
      if (plan_.callbacks[index].period_ns == 0 && states_[index].expected.size() != callback.subscription.dropped) {
        violate(now, std::to_string(states_[index].expected.size()) + " messages did not reach it", index);
      }
    }
    for (size_t index = 0; index < plan_.chain_count; index++) {
      const chain_plan_t &chain = plan_.chains[index];
      const program_chain_t &result = program_.chains[index];
      Time least = 0, lost = 0;
      for (size_t place = 0; place < chain.length; place++) {
        least += plan_.callbacks[chain.callbacks[place]].least_ns;
        lost += static_cast<Time>(program_.callbacks[chain.callbacks[place]].subscription.dropped);
      }
      const size_t last = chain.callbacks[chain.length - 1];
      for (size_t sample = 0; sample < result.completed; sample++) {
        if (result.responses_ns[sample] < least) violate(now, "a response is shorter than the executions", last);
      }
      if (program_.released[chain.callbacks[0]] != result.completed + static_cast<uint64_t>(lost)) {
        violate(now, "instances are missing at the end of a chain", last);
      }
    }
  }

  // The first few violations; empty: none.
  const std::vector<std::string> &violations() const { return violations_; }

 private:
  struct State {
    size_t inside = 0;
    std::deque<Time> expected;  // messages that were sent and whose callbacks have not begun
    Time last_release = -1;
    std::map<Time, size_t> ended;  // for a callback with several inputs: number of ended ones, by instance
  };
  const tide_callback_t &core(size_t index) const { return program_.callbacks[index].timer.callback; }

  // one of its lanes does
  bool sleeps(size_t executor) const {
    for (size_t lane = 0; lane < plan_.executors[executor].lanes; lane++) {
      const tide_event_t &event = program_.lanes[executor][lane].event;
      if (event.port != nullptr && event.state == 0) return true;
    }
    return false;
  }

  bool may_run(size_t index) const {
    const tide_callback_t &callback = core(index);
    if (callback.pending == 0) return false;
    if (is_exclusive(callback)) return callback.group->taken_by == nullptr && is_first_of_group(index);
    return callback.group != nullptr || callback.running == 0;
  }

  // The most urgent callback of a group runs next.
  bool is_first_of_group(size_t index) const {
    for (const size_t other : of_group_[plan_.callbacks[index].group]) {
      if (core(other).pending > 0 && core(other).priority > core(index).priority) return false;
    }
    return true;
  }

  // Called in the critical section in which a lane has taken it.
  void check_choice(size_t executor, const tide_callback_t &taken, Time now) {
    for (const size_t index : of_executor_[executor]) {
      const tide_callback_t &other = core(index);
      if (&other == &taken || other.pending == 0) continue;
      const bool goes_first = plan_.policy == TIDE_POLICY_TIDE
                                  ? other.priority > taken.priority
                                  : other.kind == TIDE_CALLBACK_TIMER && taken.kind != TIDE_CALLBACK_TIMER;
      if (!goes_first) continue;
      // The group of the taken callback is already taken.
      const bool same_group = is_exclusive(other) && other.group == taken.group;
      if (may_run(index) || same_group) violate(now, "it waits while a lane takes a less urgent one", index);
    }
  }

  void violate(Time now, const std::string &what, size_t callback) {
    if (violations_.size() >= kViolationsKept) return;
    violations_.push_back(std::to_string(now) + " ns: " + plan_.callbacks[callback].name + ": " + what);
  }

  const plan_t &plan_;
  const program_t &program_;
  std::vector<State> states_;
  // The plan's contents, by executor, by group and by callback.
  std::vector<std::vector<size_t>> of_executor_, of_group_, successors_;
  std::vector<size_t> groups_inside_;
  struct Lane {
    size_t executor;
    const tide_lane_t *lane;
    const tide_callback_t *seen_running;
  };
  std::vector<Lane> lanes_;
  std::vector<std::string> violations_;
};

// ---- a run ----

constexpr Time kSettleLimit = 600 * kSecond;  // after the last release; longer runs never end
constexpr Time kSettleStep = 100 * kMillisecond;

size_t lanes_of(const plan_t &plan) {
  size_t lanes = 0;
  for (size_t index = 0; index < plan.executor_count; index++) lanes += plan.executors[index].lanes;
  return lanes;
}

class HostSystem {
 public:
  HostSystem(const plan_t &plan, const HostOptions &options)
      : plan_(plan),
        options_(options),
        machine_(engine_, lanes_of(plan)),
        random_(plan.seed),
        program_(new program_t{}),
        checks_(plan, *program_) {
    const program_world_t world{machine_.platform(), locks_.port(), work, on_begin, on_end, this};
    const int status = program_init(program_.get(), &plan_, &world);
    if (status != TIDE_OK)
      throw std::runtime_error(std::string("the executors refuse the plan: ") + tide_status_text(status));
    machine_.on_section_end = [this] { section_end(); };
    engine_.on_step = [this] {
      // All events of one instant must have happened.
      if (hesitating_ == 0 && engine_.next_time() > engine_.now()) checks_.settled(engine_.now());
    };
    if (options_.record) recorded_.resize(plan_.chain_count);
    start_lanes();
    program_start(program_.get(), engine_.now());
  }

  HostResult run() {
    engine_.run_until(plan_.duration_ns);
    const Time limit = plan_.duration_ns + kSettleLimit;
    while (!program_is_quiet(program_.get()) && engine_.now() < limit) engine_.run_until(engine_.now() + kSettleStep);
    checks_.at_end(engine_.now());
    engine_.on_step = nullptr;
    program_stop(program_.get());
    const Time stopped = engine_.now();
    while (!lanes_have_ended() && engine_.now() < stopped + kSettleLimit)
      engine_.run_until(engine_.now() + kSettleStep);
    std::vector<std::string> violations = checks_.violations();
    if (program_->lock_errors > 0) violations.emplace_back("a lock was refused, or two had it");
    for (const auto &task : tasks_) {
      if (!task->is_finished()) throw std::runtime_error("a lane does not end its spin");
    }
    return {std::move(program_), std::move(violations), std::move(trace_), engine_.event_count(), std::move(recorded_)};
  }

 private:
  static HostSystem &self(void *context) { return *static_cast<HostSystem *>(context); }

  void start_lanes() {
    size_t core = 0;
    for (size_t executor = 0; executor < plan_.executor_count; executor++) {
      for (size_t lane = 0; lane < plan_.executors[executor].lanes; lane++) {
        tasks_.push_back(std::make_unique<Task>(machine_.core(core), "lane", kLanePriority, [this, executor, lane] {
          tide_executor_spin_lane(&program_->executors[executor], lane);
        }));
        if (plan_.executors[executor].budget_ns > 0) {
          supplies_.push_back(std::make_unique<HostSupply>(*tasks_.back(), plan_.executors[executor], plan_.supply,
                                                           plan_.seed * 0x9E3779B97F4A7C15u + core));
        }
        core++;
      }
    }
  }

  bool lanes_have_ended() const {
    return std::all_of(tasks_.begin(), tasks_.end(), [](const auto &task) { return task->is_finished(); });
  }

  static void work(void *, int64_t duration_ns) { Task::current()->execute(duration_ns); }

  static void on_begin(void *context, size_t callback, int64_t release_ns) {
    HostSystem &system = self(context);
    system.checks_.begin(callback, release_ns, system.engine_.now());
    system.note("begin", callback, release_ns);
    if (system.options_.record) system.starts_[{callback, release_ns}] = system.engine_.now();
  }

  static void on_end(void *context, size_t callback, int64_t release_ns) {
    HostSystem &system = self(context);
    system.checks_.end(callback, release_ns);
    system.note("end", callback, release_ns);
    if (system.options_.record) system.record(callback, release_ns);
  }

  void record(size_t callback, Time release) {
    for (size_t index = 0; index < plan_.chain_count; index++) {
      const chain_plan_t &chain = plan_.chains[index];
      if (chain.callbacks[chain.length - 1] != callback) continue;
      recorded_[index].push_back({release, starts_.at({chain.callbacks[0], release}), engine_.now()});
    }
  }

  void note(const char *what, size_t callback, Time release) {
    if (!options_.trace) return;
    trace_ += std::to_string(engine_.now()) + " " + what + " " + plan_.callbacks[callback].name + " " +
              std::to_string(release) + "\n";
  }

  void section_end() {
    checks_.section_end(engine_.now());
    if (!options_.hesitate || random_.below(4) != 0) return;
    hesitating_++;
    Task::current()->execute(random_.between(1, 5));
    hesitating_--;
  }

  const plan_t &plan_;
  HostOptions options_;
  Engine engine_;
  Machine machine_;
  Locks locks_;
  Random random_;
  decltype(HostResult::program) program_;
  HostChecks checks_;
  std::vector<std::unique_ptr<Task>> tasks_;
  std::vector<std::unique_ptr<HostSupply>> supplies_;
  std::string trace_;
  std::map<std::pair<size_t, Time>, Time> starts_;  // of callbacks, by the release of their instance
  std::vector<std::vector<HostInstance>> recorded_;
  unsigned hesitating_ = 0;
};

}  // namespace

HostResult simulate_host(const plan_t &plan, const HostOptions &options) { return HostSystem(plan, options).run(); }

// ---- random systems ----

namespace {

void name(char (&place)[PLAN_NAME_BYTES], const char *kind, size_t number) {
  std::snprintf(place, sizeof place, "%s%zu", kind, number);
}

size_t count(Random &random, int64_t least, int64_t most) { return static_cast<size_t>(random.between(least, most)); }

size_t add_callback(plan_t &plan, Random &random, Time period, bool timer) {
  callback_plan_t &callback = plan.callbacks[plan.callback_count];
  name(callback.name, "callback", plan.callback_count);
  callback.executor = count(random, 0, static_cast<int64_t>(plan.executor_count) - 1);
  callback.period_ns = timer ? period : 0;
  callback.priority = static_cast<tide_priority_t>(random.between(1, 20));
  callback.most_ns = random.chance(0.1) ? 0 : random.between(1, period / 6);
  callback.least_ns = random.chance(0.5) ? callback.most_ns : random.between(0, callback.most_ns);
  // The groups of an executor have numbers with the same remainder.
  const size_t group = callback.executor + plan.executor_count * static_cast<size_t>(random.below(3));
  callback.placed = timer && random.chance(0.5);
  if (timer && random.chance(0.2)) callback.jitter_ns = random.between(0, period / 2);
  if (callback.placed) callback.offset_ns = random.between(0, period);
  callback.grouped = group < plan.group_count && random.chance(0.7);
  callback.group = callback.grouped ? group : 0;
  return plan.callback_count++;
}

void add_chain(plan_t &plan, Random &random) {
  chain_plan_t &chain = plan.chains[plan.chain_count];
  name(chain.name, "chain", plan.chain_count);
  Time period = random.between(500, 20'000) * kMicrosecond;
  if (plan.chain_count > 0 && random.chance(0.25)) {  // it begins like another one
    const chain_plan_t &other = plan.chains[random.below(plan.chain_count)];
    period = plan.callbacks[other.callbacks[0]].period_ns;
    chain.length = count(random, 1, static_cast<int64_t>(other.length));
    for (size_t place = 0; place < chain.length; place++) chain.callbacks[place] = other.callbacks[place];
  } else {
    chain.callbacks[chain.length++] = add_callback(plan, random, period, true);
  }
  for (size_t more = count(random, 0, 4); more > 0 && chain.length < PLAN_LENGTH; more--) {
    chain.callbacks[chain.length++] = add_callback(plan, random, period, false);
  }
  plan.chain_count++;
}

}  // namespace

plan_t draw_host_plan(uint64_t seed) {
  Random random(seed * 0xD1342543DE82EF95u + 11);
  plan_t plan{};
  plan.seed = seed;
  plan.policy = random.chance(0.5) ? TIDE_POLICY_TIDE : TIDE_POLICY_READYSET;
  plan.duration_ns = random.between(20, 120) * kMillisecond;
  plan.dispatch_ns = random.chance(0.5) ? 0 : random.between(0, 50 * kMicrosecond);
  plan.spread_ns = random.chance(0.3) ? 0 : random.between(0, 20 * kMillisecond);
  plan.depth = random.chance(0.2) ? 1 : count(random, 1, 12);
  plan.executions = random.chance(0.3) ? PLAN_EXECUTIONS_EXTREMES : PLAN_EXECUTIONS_UNIFORM;
  plan.supply = random.chance(0.5) ? PLAN_SUPPLY_SERVER : PLAN_SUPPLY_ANYWHERE;
  plan.executor_count = random.chance(0.8) ? 1 : 2;
  for (size_t index = 0; index < plan.executor_count; index++) {
    name(plan.executors[index].name, "executor", index);
    plan.executors[index].lanes = count(random, 1, random.chance(0.1) ? 16 : 5);
    if (!random.chance(0.2)) continue;
    plan.executors[index].budget_period_ns = random.between(1, 10) * kMillisecond;
    plan.executors[index].budget_ns = random.between(1, 10) * plan.executors[index].budget_period_ns / 10;
  }
  plan.group_count = count(random, 0, 6);
  for (size_t index = 0; index < plan.group_count; index++) {
    name(plan.groups[index].name, "group", index);
    plan.groups[index].kind = random.chance(0.6) ? TIDE_GROUP_EXCLUSIVE : TIDE_GROUP_REENTRANT;
  }
  for (size_t chains = count(random, 1, 8); chains > 0; chains--) add_chain(plan, random);
  return plan;
}

std::string write_host_plan(const plan_t &plan) {
  std::ostringstream out;
  out.precision(15);
  const auto microseconds = [](Time time) { return static_cast<double>(time) / 1000; };
  out << "policy=" << plan_policy(plan.policy) << "\nseconds=" << static_cast<double>(plan.duration_ns) / 1e9
      << "\nseed=" << plan.seed << "\nspread_us=" << microseconds(plan.spread_ns)
      << "\ndispatch_us=" << microseconds(plan.dispatch_ns) << "\ndepth=" << plan.depth
      << "\nexecutions=" << (plan.executions == PLAN_EXECUTIONS_UNIFORM ? "uniform" : "extremes")
      << "\nsupply=" << (plan.supply == PLAN_SUPPLY_SERVER ? "server" : "anywhere") << '\n';
  for (size_t index = 0; index < plan.executor_count; index++) {
    const executor_plan_t &executor = plan.executors[index];
    out << "executor=" << executor.name << ',' << executor.lanes;
    if (executor.budget_ns > 0)
      out << ',' << microseconds(executor.budget_ns) << ',' << microseconds(executor.budget_period_ns);
    out << '\n';
  }
  for (size_t index = 0; index < plan.group_count; index++) {
    out << "group=" << plan.groups[index].name << ','
        << (plan.groups[index].kind == TIDE_GROUP_EXCLUSIVE ? "exclusive" : "reentrant") << '\n';
  }
  for (size_t index = 0; index < plan.callback_count; index++) {
    const callback_plan_t &callback = plan.callbacks[index];
    out << "callback=" << callback.name << ',' << plan.executors[callback.executor].name << ','
        << microseconds(callback.period_ns) << ',' << callback.priority << ',' << microseconds(callback.least_ns) << ','
        << microseconds(callback.most_ns);
    if (callback.grouped) out << ',' << plan.groups[callback.group].name;
    out << '\n';
    if (callback.jitter_ns > 0) out << "jitter=" << callback.name << ',' << microseconds(callback.jitter_ns) << '\n';
    if (callback.placed) out << "offset=" << callback.name << ',' << microseconds(callback.offset_ns) << '\n';
  }
  for (size_t index = 0; index < plan.chain_count; index++) {
    out << "chain=" << plan.chains[index].name;
    for (size_t place = 0; place < plan.chains[index].length; place++) {
      out << ',' << plan.callbacks[plan.chains[index].callbacks[place]].name;
    }
    out << '\n';
  }
  return out.str();
}

}  // namespace tide::sim
