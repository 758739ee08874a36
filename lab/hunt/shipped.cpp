// SPDX-License-Identifier: Apache-2.0
#include "hunt/shipped.h"

#include <deque>
#include <memory>
#include <stdexcept>

#include "sim/engine/engine.h"
#include "tide/executor.h"
#include "tide/status.h"

namespace tide::analysis {
namespace {

class Shipped;

struct Station {
  tide_callback_t callback{};
  Shipped *machine = nullptr;
  size_t chain = 0;
  size_t number = 0;               // position in the chain
  std::deque<size_t> instances{};  // waiting instances, in order
};

class Shipped {
 public:
  Shipped(const Executor &executor, const Scenario &scenario) : model_(executor), scenario_(scenario) {
    platform_ = {.context = this,
                 .now_ns = now_ns,
                 .wall_ns = now_ns,
                 .critical_enter = enter,
                 .critical_exit = exit,
                 .lanes_enter = nullptr,
                 .lanes_exit = nullptr,
                 .event_init = event_init,
                 .event_set = event_set,
                 .event_wait = event_wait};
    for (size_t chain = 0; chain < executor.chains().size(); ++chain) {
      stations_.emplace_back(executor.chains()[chain].callbacks.size());
      schedule_.response_ns.emplace_back(scenario.releases[chain].size(), kNeverNs);
    }
    start_executor();
    add_groups();
    std::vector<size_t> chains = scenario.registration;
    for (size_t chain = chains.size(); chain < stations_.size(); ++chain) chains.push_back(chain);
    for (const size_t chain : chains) add(chain);
  }

  ~Shipped() {
    tide_executor_stop(&executor_);
    engine_.run_until(engine_.now());  // the lanes end
  }
  Shipped(const Shipped &) = delete;
  Shipped &operator=(const Shipped &) = delete;

  Schedule run() {
    for (size_t chain = 0; chain < stations_.size(); ++chain) {
      for (size_t number = 0; number < scenario_.releases[chain].size(); ++number) {
        engine_.at(scenario_.releases[chain][number].at_ns, [this, chain, number] { ready(chain, 0, number); });
      }
    }
    for (size_t lane = 0; lane < lanes_.size(); ++lane) {
      tasks_.push_back(std::make_unique<sim::Task>(engine_.add_core(), "lane", 1,
                                                   [this, lane] { tide_executor_spin_lane(&executor_, lane); }));
    }
    engine_.run_until(sim::kForever - 1);
    return std::move(schedule_);
  }

 private:
  void start_executor() {
    size_t count = 0;
    for (const auto &chain : stations_) count += chain.size();
    callbacks_.resize(count);
    ready_.resize(count);
    timers_.resize(count);
    lanes_.resize(model_.lanes().size());
    tide_executor_config_t config{};
    config.platform = &platform_;
    config.policy = model_.policy() == Policy::priority ? TIDE_POLICY_TIDE : TIDE_POLICY_READYSET;
    config.callbacks = callbacks_.data();
    config.ready_storage = ready_.data();
    config.timer_storage = timers_.data();
    config.callback_count = count;
    config.lanes = lanes_.data();
    config.lane_count = lanes_.size();
    if (tide_executor_init(&executor_, &config) != TIDE_OK) throw std::logic_error("the executor refuses the system");
  }

  void add_groups() {
    tide_group_init(&overlapping_, TIDE_GROUP_REENTRANT, nullptr, 0);
    groups_.resize(model_.groups().size());
    waiting_.resize(groups_.size(), std::vector<tide_queue_entry_t *>(callbacks_.size()));
    for (size_t group = 0; group < groups_.size(); ++group)
      tide_group_init(&groups_[group], TIDE_GROUP_EXCLUSIVE, waiting_[group].data(), waiting_[group].size());
  }

  void add(size_t chain) {
    tide_chain_t order{};
    const size_t level = stations_.size() - model_.rank(chain);
    tide_chain_init(&order, "chain", static_cast<uint8_t>(level), 1, 1);
    for (size_t number = 0; number < stations_[chain].size(); ++number) {
      Station &station = stations_[chain][number];
      station.machine = this;
      station.chain = chain;
      station.number = number;
      // In a cached set, timers come before all others. Releases here are notifications, so the kind is chosen to give
      // that order.
      const bool alone = model_.chains()[chain].timer && number == 0;  // may overlap all others
      station.callback.kind = alone ? TIDE_CALLBACK_SUBSCRIPTION : TIDE_CALLBACK_GUARD;
      station.callback.execute = execute;
      station.callback.context = &station;
      const int group = model_.chains()[chain].callbacks[number].group;
      if (group != kReentrant) {
        station.callback.group = &groups_[static_cast<size_t>(group)];
      } else if (!alone) {
        station.callback.group = &overlapping_;
      }
      tide_chain_add(&order, &station.callback);
      if (const int64_t own = model_.chains()[chain].callbacks[number].priority; own > 0)
        station.callback.priority = static_cast<tide_priority_t>(own);
      if (tide_executor_add(&executor_, &station.callback) != TIDE_OK)
        throw std::logic_error("the executor refuses a callback");
    }
  }

  void ready(size_t chain, size_t number, size_t instance) {
    Station &station = stations_[chain][number];
    station.instances.push_back(instance);
    tide_executor_notify(&station.callback);
  }

  static void execute(tide_callback_t *, void *context) {
    Station &station = *static_cast<Station *>(context);
    station.machine->run(station);
  }

  void run(Station &station) {
    const size_t instance = station.instances.front();
    station.instances.pop_front();
    const Release &release = scenario_.releases[station.chain][instance];
    const std::vector<Callback> &callbacks = model_.chains()[station.chain].callbacks;
    const bool worst = release.execution_ns.empty();
    sim::Task::current()->execute(worst ? callbacks[station.number].execution_ns
                                        : release.execution_ns[station.number]);
    if (station.number + 1 < callbacks.size()) {
      ready(station.chain, station.number + 1, instance);
    } else {
      schedule_.response_ns[station.chain][instance] = engine_.now() - release.at_ns;
    }
  }

  static Shipped &machine_of(void *context) { return *static_cast<Shipped *>(context); }
  static int64_t now_ns(void *context) { return machine_of(context).engine_.now(); }
  static std::uintptr_t enter(void *) { return 0; }  // a task is not preempted until it waits or executes
  static void exit(void *, std::uintptr_t) {}
  static void event_init(void *, tide_event_t *event) { *event = {}; }

  static void event_set(void *, tide_event_t *event) {
    event->state = 1;
    if (event->port != nullptr) static_cast<sim::Task *>(event->port)->wake();
  }

  static int event_wait(void *context, tide_event_t *event, int64_t deadline_ns) {
    while (event->state == 0) {
      if (machine_of(context).engine_.now() >= deadline_ns) return 0;
      event->port = sim::Task::current();
      sim::Task::current()->block(deadline_ns);
      event->port = nullptr;
    }
    event->state = 0;
    return 1;
  }

  const Executor &model_;
  const Scenario &scenario_;
  sim::Engine engine_;
  tide_platform_t platform_{};
  tide_executor_t executor_{};
  std::vector<tide_lane_t> lanes_;
  std::vector<tide_callback_t *> callbacks_;
  std::vector<tide_queue_entry_t *> ready_, timers_;
  tide_group_t overlapping_{};
  std::vector<tide_group_t> groups_;
  std::vector<std::vector<tide_queue_entry_t *>> waiting_;
  std::vector<std::vector<Station>> stations_;
  std::vector<std::unique_ptr<sim::Task>> tasks_;
  Schedule schedule_;
};

Schedule run_shipped(const Executor &executor, const Scenario &scenario) { return Shipped(executor, scenario).run(); }

}  // namespace

Observer shipped_observer() { return {"shipped", run_shipped, false, 1000, 1}; }

}  // namespace tide::analysis
