// SPDX-License-Identifier: Apache-2.0
#include "sim/host/host_system.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

#include "sim/engine/locks.h"
#include "sim/engine/platform.h"
#include "sim/engine/random.h"
#include "sim/host/host_checks.h"
#include "sim/host/host_supply.h"
#include "tide/status.h"

namespace tide::sim {
namespace {

constexpr Time kSettleLimit = 600 * kSecond;  // after the last release; whoever needs longer never ends
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
      // Of the events of one instant all have to have happened.
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
        constexpr int priority = HostSupply::kLanePriority;
        tasks_.push_back(std::make_unique<Task>(machine_.core(core), "lane", priority, [this, executor, lane] {
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

}  // namespace tide::sim
