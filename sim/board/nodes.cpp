// SPDX-License-Identifier: Apache-2.0
#include "sim/board/nodes.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "sim/board/losses.h"
#include "tide/status.h"

namespace tide::sim {
namespace {

constexpr size_t kMostViolations = 8;
constexpr int kLanePriority = 2, kLess = kLanePriority - 1, kMore = kLanePriority + 1;
// Budgets are longer by this time. The code after a callback takes no time but needs the core; without the extra time
// it would not run if the callback and the budget end at the same instant.
constexpr Time kInstant = 1;
constexpr size_t kDepth = 64;          // depth of a callback's queue, unless the plan gives one
constexpr uint16_t kActivations = 64;  // most activations in a period that use only a part of the budget

size_t lanes_of(const Plan &plan) {
  size_t lanes = 0;
  for (const ExecutorPlan &executor : plan.executors)
    if (executor.is_shipped()) lanes += executor.lanes;
  return lanes;
}

}  // namespace

// Limits the processor time of a lane that has a budget and shares its core. It exists as long as the lane's task.
class Nodes::Supply {
 public:
  Supply(Task &lane, const ExecutorPlan &executor, uint64_t seed)
      : budget_(std::min(executor.budget + kInstant, executor.budget_period)),
        period_(executor.budget_period),
        random_(seed),
        engine_(lane.core().engine()) {
    if (executor.anywhere) {
      other_ = std::make_unique<Task>(lane.core(), "others", kMore, [this] { take_all_but_the_budget(); });
      return;
    }
    other_ = std::make_unique<Task>(lane.core(), "others", kLess, [] {
      for (;;) Task::current()->execute(kSecond);
    });
    tide_budget_config_t config{};
    config.priority = kLanePriority;
    config.low_priority = kLess - 1;
    config.budget_ns = budget_;
    config.period_ns = period_;
    config.maximum_replenishments = kActivations;
    server_ = std::make_unique<Budget>(lane, config);
  }

 private:
  // Keeps the core busy except for one piece of the budget in each period. A budget early in one period and late in the
  // next delays the lane most, so these cases are frequent; all other times occur, too.
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

// ---- set-up ----

Nodes::Nodes(Engine &engine, const Plan &plan, const Graph &graph, Observer observer)
    : engine_(engine),
      plan_(plan),
      graph_(graph),
      observer_(std::move(observer)),
      machine_(engine, lanes_of(plan)),
      hesitations_(plan.seed),
      callbacks_(graph.callbacks.size()),
      topics_(graph.messages.size()) {
  for (const ExecutorPlan &executor : plan.executors) add_executor(executor);
  for (size_t number = 0; number < graph.callbacks.size(); number++) add_callback(number);
  add_locks();
  add_topics();
  machine_.on_section_end = [this] { section_end(); };
}

Nodes::~Nodes() = default;

void Nodes::add_executor(const ExecutorPlan &plan) {
  executors_.push_back(nullptr);
  if (!plan.is_shipped()) return;
  executors_.back() = std::make_unique<Executor>();
  Executor &executor = *executors_.back();
  executor.plan = &plan;
  executor.lanes.resize(plan.lanes);
  executor.seen.resize(plan.lanes);
  executor.registered.resize(callbacks_.size());
  executor.ready.resize(callbacks_.size());
  executor.timers.resize(callbacks_.size());
  tide_executor_config_t config{};
  config.platform = machine_.platform();
  config.policy = plan.policy == HostPolicy::kTide ? TIDE_POLICY_TIDE : TIDE_POLICY_READYSET;
  config.callbacks = executor.registered.data();
  config.ready_storage = executor.ready.data();
  config.timer_storage = executor.timers.data();
  config.callback_count = callbacks_.size();
  config.lanes = executor.lanes.data();
  config.lane_count = executor.lanes.size();
  const int status = tide_executor_init(&executor.core, &config);
  if (status != TIDE_OK)
    throw std::invalid_argument("executor '" + plan.name + "' refuses the plan: " + tide_status_text(status));
}

void Nodes::add_callback(size_t number) {
  const CallbackPlan &plan = graph_.callbacks[number];
  if (plan.executor == 0 || executors_[plan.executor - 1] == nullptr) return;
  callbacks_[number] = std::make_unique<Callback>();
  Callback &callback = *callbacks_[number];
  callback.nodes = this;
  callback.number = number;
  callback.plan = &plan;
  callback.random = Random(seed_of(plan_, Chance::kNodes) + number);
  tide_callback_t &core = callback.timer.callback;
  core.priority = static_cast<tide_priority_t>(plan.priority);
  core.context = &callback;
  join_group(callback);
  Executor &executor = *executors_[plan.executor - 1];
  executor.callbacks.push_back(&callback);
  if (plan.is_root()) {
    callback.timer.period_ns = plan.period;
    callback.timer.on_expiry = [](tide_timer_t *timer, int64_t) {
      auto *self = static_cast<Callback *>(timer->callback.context);
      self->nodes->expire(*self);
    };
    tide_executor_add_timer(&executor.core, &callback.timer);
    tide_timer_cancel(&callback.timer);  // starts in start()
    return;
  }
  core.kind = TIDE_CALLBACK_SUBSCRIPTION;
  core.execute = [](tide_callback_t *, void *context) {
    auto *self = static_cast<Callback *>(context);
    self->nodes->take(*self);
  };
  tide_executor_add(&executor.core, &core);
}

void Nodes::join_group(Callback &callback) {
  if (callback.plan->group == 0 && !callback.plan->reentrant) return;
  auto &group = groups_[{callback.plan->executor, callback.plan->group}];
  if (group == nullptr) {
    group = std::make_unique<Group>();
    group->waiting.resize(callbacks_.size());
    const auto kind = callback.plan->group == 0 ? TIDE_GROUP_REENTRANT : TIDE_GROUP_EXCLUSIVE;
    tide_group_init(&group->group, kind, group->waiting.data(), group->waiting.size());
  }
  group->callbacks.push_back(&callback);
  callback.timer.callback.group = &group->group;
}

bool Nodes::subscribes(size_t input) const {
  const Input &each = graph_.inputs[input];
  return callbacks_[each.callback] != nullptr && each.hop == 0 && graph_.callbacks[each.callback].inputs.size() == 1;
}

size_t Nodes::depth_of(const Callback &callback) const {
  const uint32_t depth = graph_.messages[graph_.inputs[callback.plan->inputs.front()].message].depth;
  return depth == 0 ? kDepth : depth;
}

// At any time, a callback holds at most one message on each of its lanes, to publish or to read it.
void Nodes::add_topics() {
  const auto overlaps = [this](const CallbackPlan &callback) {
    return callback.executor > 0 ? plan_.executors[callback.executor - 1].lanes : 1u;
  };
  std::vector<std::pair<Topic *, uint32_t>> topics;  // each with the number of messages that callbacks may hold at a
                                                     // time
  uint32_t count = 0;
  for (size_t number = 0; number < topics_.size(); number++) {
    const MessagePlan &message = graph_.messages[number];
    uint32_t loans = overlaps(graph_.callbacks[message.sender]);
    for (const size_t input : message.inputs) {
      if (!subscribes(input)) continue;
      const CallbackPlan &receiver = graph_.callbacks[graph_.inputs[input].callback];
      if (topics_[number] == nullptr) topics_[number] = std::make_unique<Topic>();
      topics_[number]->subscribers.push_back(callbacks_[graph_.inputs[input].callback].get());
      loans += overlaps(receiver);
    }
    if (topics_[number] != nullptr) topics.emplace_back(topics_[number].get(), loans);
  }
  for (const auto &callback : callbacks_) {
    if (callback == nullptr || callback->plan->is_root() || subscribes(callback->plan->inputs.front())) continue;
    uint32_t loans = overlaps(*callback->plan) + 1;
    for (const size_t input : callback->plan->inputs)
      loans += overlaps(graph_.callbacks[graph_.messages[graph_.inputs[input].message].sender]);
    callback->inbox.subscribers.push_back(callback.get());
    topics.emplace_back(&callback->inbox, loans);
  }
  for (const auto &[topic, loans] : topics) {
    count += loans;
    for (const Callback *subscriber : topic->subscribers) count += depth_of(*subscriber) + 1;
  }
  if (count == 0) return;
  storage_.resize(TIDE_LOCAL_STORAGE_BYTES(count, sizeof(Mark)) / sizeof(uint64_t));
  bool fits = tide_local_pool_init(&pool_, machine_.platform(), storage_.data(), count, sizeof(Mark)) == TIDE_OK;
  for (const auto &[topic, loans] : topics) {
    fits = fits && tide_local_topic_init(&topic->local, &pool_, loans) == TIDE_OK;
    for (Callback *subscriber : topic->subscribers) {
      subscriber->queue.resize(depth_of(*subscriber));
      subscriber->subscription.callback = &subscriber->timer.callback;
      subscriber->subscription.queue = subscriber->queue.data();
      subscriber->subscription.depth = static_cast<uint16_t>(subscriber->queue.size());
      fits = fits && tide_local_subscribe(&topic->local, &subscriber->subscription) == TIDE_OK;
    }
  }
  if (!fits) throw std::invalid_argument("the pool of local messages is too small");
}

void Nodes::add_locks() {
  tide_lock_set_init(&lock_set_, machine_.platform(), lock_port_.port());
  for (const auto &callback : callbacks_) {
    if (callback == nullptr) continue;
    const std::vector<unsigned> &sections = callback->plan->locks;
    for (size_t place = 0; place + 1 < sections.size(); place += 2) {
      auto &lock = locks_[sections[place]];
      if (lock == nullptr) {
        lock = std::make_unique<Lock>();
        tide_lock_init(&lock->lock, &lock_set_);
      }
      if (tide_lock_allow(&lock->lock, &callback->timer.callback) != TIDE_OK)
        throw std::invalid_argument("a lock refuses a callback");
    }
  }
}

void Nodes::start(Time first_release) {
  first_release_ = first_release;
  size_t core = 0;
  std::map<unsigned, size_t> shared;  // by number in the plan: the core that several executors share
  for (const auto &executor : executors_) {
    if (executor == nullptr) continue;
    for (size_t lane = 0; lane < executor->lanes.size(); lane++, core++) {
      tide_executor_t *const spun = &executor->core;
      const ExecutorPlan &plan = *executor->plan;
      const size_t place = plan.core == 0 ? core : shared.try_emplace(plan.core, core).first->second;
      tasks_.push_back(std::make_unique<Task>(machine_.core(place), "lane",
                                              kLanePriority + static_cast<int>(plan.thread_priority),
                                              [spun, lane] { tide_executor_spin_lane(spun, lane); }));
      if (executor->plan->budget > 0)
        supplies_.push_back(
            std::make_unique<Supply>(*tasks_.back(), *executor->plan, plan_.seed * 0x9E3779B97F4A7C15u + core));
    }
  }
  for (const auto &callback : callbacks_) {
    if (callback == nullptr || !callback->plan->is_root()) continue;
    tide_timer_set_phase(&callback->timer,
                         first_release + callback->plan->phase + lateness(*callback->plan, callback->random));
  }
}

// ---- a run of a callback ----

// A timer has expired. The instance is identified by the nominal expiry. Afterwards, the next expiry is delayed by the
// drawn jitter, unless it is already pending.
void Nodes::expire(Callback &callback) {
  const CallbackPlan &plan = *callback.plan;
  const Time since = callback.core().ready_ns - first_release_ - plan.phase;
  const auto index = static_cast<uint32_t>(since / plan.period);
  const Time release = first_release_ + plan.phase + index * plan.period;
  if (plan.jitter == 0 && since % plan.period != 0) violate(callback, "it is off its grid");
  if (plan.jitter > 0 && callback.core().pending == 0)
    tide_timer_set_phase(&callback.timer, release + plan.period + lateness(plan, callback.random));
  if (index >= plan_.instances_of(plan.period)) {
    tide_timer_cancel(&callback.timer);
    return;
  }
  if (release > engine_.now()) violate(callback, "it runs before its expiry");
  if (release <= callback.last_release) violate(callback, "it runs twice for an expiry");
  callback.last_release = release;
  const Mark mark{static_cast<uint16_t>(plan.root), index};
  observer_.released(mark, release);
  run(callback, mark);
}

void Nodes::take(Callback &callback) {
  const void *const message = tide_local_take(&callback.subscription, nullptr);
  if (message == nullptr) return;
  Mark mark;
  std::memcpy(&mark, message, sizeof mark);
  const auto place = std::find(callback.expected.begin(), callback.expected.end(), mark);
  if (place == callback.expected.end()) {
    violate(callback, "it has received a message that nobody sent");
  } else {
    callback.expected.erase(place);
  }
  run(callback, mark);
  tide_local_release(message);
}

void Nodes::run(Callback &callback, const Mark &mark) {
  const CallbackPlan &plan = *callback.plan;
  Group *const group = group_of(callback);
  if (callback.inside++ > 0 && !plan.reentrant) violate(callback, "it overlaps itself");
  if (group != nullptr && group->inside++ > 0) violate(callback, "it overlaps another one of its exclusive group");
  const Time start = engine_.now();
  observer_.event("begins", callback.number, mark);
  const Time least = plan.least < 0 ? plan.execution : plan.least;
  Time duration = plan.execution;
  if (least < duration) {
    const bool shortest = plan_.extremes && callback.random.chance(0.5);
    duration = shortest ? least : plan_.extremes ? duration : callback.random.between(least, duration);
  }
  const Time dispatch = plan_.executors[plan.executor - 1].dispatch;
  execute_sections(plan, dispatch + duration, callback.random,
                   [&](unsigned lock, Time held) { hold(callback, lock, held); });
  callback.inside--;
  if (group != nullptr) group->inside--;
  observer_.event("ends", callback.number, mark);
  observer_.ran(callback.number, mark, start, engine_.now());
}

void Nodes::hold(Callback &callback, unsigned number, Time duration) {
  Lock &lock = *locks_.at(number);
  const int status = tide_lock_take(&lock.lock, &callback.core());
  if (status != TIDE_OK) return violate(callback, tide_lock_text(status));
  if (lock.inside++ > 0) violate(callback, "two callbacks hold one lock");
  Task::current()->execute(duration);
  lock.inside--;
  tide_lock_give(&lock.lock);
}

void Nodes::publish(size_t message, const Mark &mark) {
  if (topics_[message] != nullptr) deliver(*topics_[message], mark);
}

void Nodes::receive(size_t callback, const Mark &mark) { deliver(callbacks_[callback]->inbox, mark); }

void Nodes::deliver(Topic &topic, const Mark &mark) {
  void *message = nullptr;
  if (tide_local_borrow(&topic.local, &message) != TIDE_OK)
    return violate(*topic.subscribers.front(), "a reserved loan is refused");
  std::memcpy(message, &mark, sizeof mark);
  for (Callback *subscriber : topic.subscribers) subscriber->expected.push_back(mark);
  tide_local_publish(&topic.local, message, sizeof mark);
}

// ---- the rules that must hold ----
//
// Whatever the order in which lanes run: a callback overlaps itself only if it is reentrant, and callbacks of an
// exclusive group never overlap one another. Each callback runs once for each message, except for messages that a full
// queue has dropped; timers run at their nominal expiries. Of the callbacks that may run, a lane takes the most urgent
// one (tide), or a timer before all others (readyset). No lane sleeps while a callback may run. At the end of the run,
// all callbacks have ended.

Nodes::Group *Nodes::group_of(const Callback &callback) const {
  const unsigned number = callback.plan->group;
  return number == 0 ? nullptr : groups_.at({callback.plan->executor, number}).get();
}

// Called when a task has left a critical section: checks the callbacks that lanes have chosen in it.
void Nodes::section_end() {
  for (const auto &executor : executors_) {
    if (executor == nullptr) continue;
    for (size_t lane = 0; lane < executor->lanes.size(); lane++) {
      const tide_callback_t *running = executor->lanes[lane].running;
      if (running != nullptr && executor->seen[lane] == nullptr) check_choice(*executor, *running);
      executor->seen[lane] = running;
    }
  }
  if (!plan_.hesitate || hesitations_.below(4) != 0) return;
  hesitating_++;
  Task::current()->execute(hesitations_.between(1, 5));
  hesitating_--;
}

void Nodes::check_choice(const Executor &executor, const tide_callback_t &taken) {
  for (const Callback *callback : executor.callbacks) {
    const tide_callback_t &other = callback->core();
    if (&other == &taken || other.pending == 0) continue;
    const bool goes_first = executor.plan->policy == HostPolicy::kTide
                                ? other.priority > taken.priority
                                : other.kind == TIDE_CALLBACK_TIMER && taken.kind != TIDE_CALLBACK_TIMER;
    if (!goes_first) continue;
    // may_run() is false for other callbacks of the group of the taken callback, because this callback occupies the
    // group.
    const bool same_group = group_of(*callback) != nullptr && other.group == taken.group;
    if (may_run(*callback) || same_group) violate(*callback, "it waits while a lane takes a less urgent one");
  }
}

// True if a lane could choose this callback now. Of the callbacks of a group, only the most urgent one may run.
bool Nodes::may_run(const Callback &callback) const {
  const tide_callback_t &core = callback.core();
  if (core.pending == 0) return false;
  const Group *const group = group_of(callback);
  if (group == nullptr) return callback.plan->reentrant || core.running == 0;
  return group->group.taken_by == nullptr &&
         std::none_of(group->callbacks.begin(), group->callbacks.end(), [&core](const Callback *other) {
           return other->core().pending > 0 && other->core().priority > core.priority;
         });
}

// Checks only at the end of an instant, when all its events have occurred and no task pauses between two sections.
void Nodes::step_end() {
  if (hesitating_ > 0 || engine_.next_time() <= engine_.now()) return;
  for (const auto &executor : executors_) {
    // Executors with budgets are excluded, because the code that wakes a lane does not know which lanes have budget
    // left.
    if (executor == nullptr || executor->plan->budget > 0) continue;
    const bool sleeps = std::any_of(executor->lanes.begin(), executor->lanes.end(), [](const tide_lane_t &lane) {
      return lane.event.port != nullptr && lane.event.state == 0;
    });
    if (!sleeps) continue;
    for (const Callback *callback : executor->callbacks)
      if (may_run(*callback)) violate(*callback, "it waits while a lane sleeps");
  }
}

void Nodes::violate(const Callback &callback, const std::string &what) {
  if (violations_.size() >= kMostViolations) return;
  violations_.push_back(std::to_string(engine_.now()) + " ns: " + callback.plan->name + ": " + what);
}

bool Nodes::is_quiet() const {
  return std::all_of(callbacks_.begin(), callbacks_.end(), [](const auto &callback) {
    if (callback == nullptr) return true;
    const bool releases = callback->plan->is_root() && !callback->timer.canceled;
    return !releases && callback->core().pending == 0 && callback->core().running == 0;
  });
}

void Nodes::stop() {
  for (const auto &executor : executors_)
    if (executor != nullptr) tide_executor_stop(&executor->core);
}

bool Nodes::is_stopped() const {
  return std::all_of(tasks_.begin(), tasks_.end(), [](const auto &task) { return task->is_finished(); });
}

void Nodes::tell(Result &result) {
  result.dropped.resize(callbacks_.size());
  result.skipped.resize(callbacks_.size());
  for (size_t number = 0; number < callbacks_.size(); number++) {
    if (callbacks_[number] == nullptr) continue;
    const Callback &callback = *callbacks_[number];
    const uint64_t dropped = callback.subscription.dropped;
    if (callback.inside > 0 || callback.core().pending > 0 || callback.subscription.count > 0)
      violate(callback, "it has not come to its end");
    if (callback.expected.size() != dropped)
      violate(callback, std::to_string(callback.expected.size()) + " messages did not reach it");
    result.dropped[number] = dropped;
    result.skipped[number] = callback.timer.skipped;
  }
  for (const auto &executor : executors_) {
    if (executor == nullptr) continue;
    const tide_executor_counters_t &counters = executor->core.counters;
    result.executors.push_back({executor->plan->name, counters.set_updates, counters.rounds, counters.callbacks_run});
  }
  result.violations.insert(result.violations.end(), violations_.begin(), violations_.end());
}

}  // namespace tide::sim
