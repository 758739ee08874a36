// SPDX-License-Identifier: Apache-2.0
// Random programs of timers, guards and received frames, and their runs by the shipped executor in virtual time.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "dice.h"
#include "exec_virtual.h"

namespace exec_virtual {

using tide::test::Dice;
using tide::test::environment;

enum class Verb { notify, frame, cancel, reset, phase, period, priority };

struct Action {
  Verb verb;
  size_t target;
  int64_t value;
};

struct Spec {
  tide_callback_kind_t kind;
  tide_priority_t priority;
  int64_t execution;
  int64_t period;
  int64_t phase;
  bool always;
  std::map<int, std::vector<Action>> actions;  // what the callback does, by the number of its run
};

enum class Trigger { any, all, one, odd };

struct Program {
  tide_policy_t policy;
  Trigger trigger;
  size_t trigger_handle;
  bool waits_for_new_data;
  int64_t spin_timeout;
  int64_t end;
  std::vector<Spec> callbacks;
  std::vector<std::pair<int64_t, Action>> interrupts;
};

struct Start {
  size_t callback;
  int64_t time;
  int64_t since;  // time of the last call, for timers
  bool operator==(const Start &) const = default;
};

struct Outcome {
  std::vector<Start> starts;
  std::vector<uint32_t> skipped, pending;
  bool operator==(const Outcome &) const = default;
};

inline std::string text(const Outcome &outcome) {
  std::ostringstream out;
  for (const Start &start : outcome.starts) out << start.callback << "@" << start.time << "(" << start.since << ") ";
  return out.str();
}

inline bool takes_frames(tide_callback_kind_t kind) {
  return kind == TIDE_CALLBACK_SUBSCRIPTION || kind == TIDE_CALLBACK_SERVICE || kind == TIDE_CALLBACK_CLIENT;
}

inline Action random_action(Dice &dice, const std::vector<Spec> &callbacks, int64_t end) {
  const auto target = static_cast<size_t>(dice.between(0, static_cast<int64_t>(callbacks.size()) - 1));
  const tide_callback_kind_t kind = callbacks[target].kind;
  if (dice.chance(10)) {
    return {Verb::priority, target, dice.between(0, 12)};
  }
  if (kind != TIDE_CALLBACK_TIMER) {
    return {takes_frames(kind) && dice.chance(70) ? Verb::frame : Verb::notify, target, 0};
  }
  switch (dice.between(0, 4)) {
    case 0: return {Verb::cancel, target, 0};
    case 1: return {Verb::phase, target, dice.between(0, end)};
    case 2: return {Verb::period, target, dice.between(1, 200)};
    case 3: return {Verb::notify, target, 0};
    default: return {Verb::reset, target, 0};
  }
}

inline Program random_program(uint64_t seed) {
  Dice dice(seed);
  Program program{};
  program.policy = dice.chance(50) ? TIDE_POLICY_TIDE : dice.chance(60) ? TIDE_POLICY_BATCH : TIDE_POLICY_READYSET;
  const bool any_only = program.policy == TIDE_POLICY_READYSET;
  program.trigger = any_only || dice.chance(60) ? Trigger::any : static_cast<Trigger>(dice.between(1, 3));
  program.waits_for_new_data = dice.chance(50);
  program.spin_timeout = dice.between(20, 300);
  program.end = dice.between(500, 4000);
  const int64_t count = dice.between(1, 10);
  const bool ties = dice.chance(50);
  const bool always = !any_only && dice.chance(30);
  for (int64_t index = 0; index < count; index++) {
    Spec spec{};
    spec.kind = dice.chance(40) ? TIDE_CALLBACK_TIMER : static_cast<tide_callback_kind_t>(dice.between(1, 4));
    spec.priority = static_cast<tide_priority_t>(ties ? dice.between(0, 3) : index * 7 % 11);
    spec.execution = dice.chance(30) ? 0 : dice.between(1, 40);
    spec.period = dice.between(5, 200);
    spec.phase = dice.between(0, 200);
    spec.always = always && spec.kind != TIDE_CALLBACK_TIMER && dice.chance(30);
    program.callbacks.push_back(spec);
  }
  program.trigger_handle = static_cast<size_t>(dice.between(0, count - 1));
  for (Spec &spec : program.callbacks) {
    for (int64_t many = dice.between(0, 4); many > 0; many--) {
      spec.actions[static_cast<int>(dice.between(1, 20))].push_back(
          random_action(dice, program.callbacks, program.end));
    }
  }
  for (int64_t many = dice.between(0, 60); many > 0; many--) {
    program.interrupts.emplace_back(dice.between(1, program.end), random_action(dice, program.callbacks, program.end));
  }
  std::stable_sort(program.interrupts.begin(), program.interrupts.end(),
                   [](const auto &left, const auto &right) { return left.first < right.first; });
  return program;
}

inline bool odd(size_t ready) { return ready % 2 == 1; }

// ---- the shipped executor ----

inline bool odd_trigger(tide_callback_t *const *callbacks, size_t count, void *) {
  return odd(static_cast<size_t>(std::count_if(callbacks, callbacks + count, tide_callback_is_ready)));
}

class Real {
 public:
  // `lane_count` is the number of lanes of the executor, of which only the first one ever spins.
  explicit Real(const Program &the_program, size_t lane_count = 1)
      : program(the_program), bench(program.policy, 32, lane_count) {}
  // Selects a platform that excludes lanes and interrupts by separate sections.
  Real &split() {
    bench.machine.split();
    return *this;
  }

  Outcome run() {
    set_up();
    while (tide_executor_lane_round(&bench.executor, 0, program.end) > 0 && bench.machine.now < program.end) {}
    return finish();
  }

  // Spins one lane, like a thread of a pool, until the executor is stopped.
  Outcome spin() {
    set_up();
    bench.machine.at(program.end, [this] { tide_executor_stop(&bench.executor); });
    EXPECT_EQ(tide_executor_spin_lane(&bench.executor, 0), TIDE_OK);
    return finish();
  }

  // With several lanes the executor observes groups; with one lane, groups have no effect.
  void group(size_t callback, tide_group_t *its_group) { groups[callback] = its_group; }

 private:
  Outcome finish() {
    for (auto &timer : objects) {
      outcome.skipped.push_back(timer->skipped);
      outcome.pending.push_back(timer->callback.pending + timer->callback.arrived);
    }
    return outcome;
  }

  void set_up() {
    for (const auto &[time, action] : program.interrupts) {
      bench.machine.at(time, [this, action = action] { apply(action); });
    }
    bench.config.batch_waits_for_new_data = program.waits_for_new_data;
    bench.config.spin_timeout_ns = program.spin_timeout;
    bench.config.source = {
        this,
        [](void *context, tide_priority_t, tide_priority_t) { return static_cast<Real *>(context)->most_urgent(); },
        [](void *context, tide_priority_t, tide_priority_t) { return static_cast<Real *>(context)->process(true); },
        [](void *context) { return static_cast<Real *>(context)->process(false); },
        nullptr,
        nullptr,
        nullptr};
    bench.init();
    for (size_t index = 0; index < program.callbacks.size(); index++) add(index, program.callbacks[index]);
    constexpr std::array triggers{tide_trigger_any, tide_trigger_all, tide_trigger_one, odd_trigger};
    tide_executor_set_trigger(&bench.executor, triggers[static_cast<size_t>(program.trigger)],
                              objects[program.trigger_handle].get());
  }

  void add(size_t index, const Spec &spec) {
    objects.push_back(std::make_unique<tide_timer_t>());
    tide_timer_t *timer = objects.back().get();
    timer->callback.priority = spec.priority;
    timer->callback.context = this;
    if (groups.contains(index)) timer->callback.group = groups[index];
    timer->callback.handle = timer;
    if (spec.kind == TIDE_CALLBACK_TIMER) {
      timer->period_ns = spec.period;
      timer->on_expiry = [](tide_timer_t *expired, int64_t since) {
        static_cast<Real *>(expired->callback.context)->started(&expired->callback, since);
      };
      EXPECT_EQ(tide_executor_add_timer(&bench.executor, timer), TIDE_OK);
      EXPECT_EQ(tide_timer_set_phase(timer, spec.phase), TIDE_OK);
    } else {
      timer->callback.kind = spec.kind;
      timer->callback.always = spec.always;
      timer->callback.execute = [](tide_callback_t *callback, void *context) {
        static_cast<Real *>(context)->started(callback, 0);
      };
      EXPECT_EQ(tide_executor_add(&bench.executor, &timer->callback), TIDE_OK);
    }
    EXPECT_EQ(timer->callback.index, index);
  }

  void started(tide_callback_t *callback, int64_t since) {
    EXPECT_EQ(bench.machine.depth, 0) << "a callback runs within the critical section";
    EXPECT_EQ(tide_executor_lane_round(&bench.executor, 0, 0), TIDE_ERROR_STATE);
    const Spec &spec = program.callbacks[callback->index];
    outcome.starts.push_back({callback->index, bench.machine.now, since});
    const auto found = spec.actions.find(++runs[callback->index]);
    if (found != spec.actions.end()) {
      for (const Action &action : found->second) apply(action);
    }
    bench.machine.execute(spec.execution);
  }

  void apply(const Action &action) {
    tide_timer_t *timer = objects[action.target].get();
    switch (action.verb) {
      case Verb::notify: return tide_executor_notify(&timer->callback);
      case Verb::frame: frames.push_back(action.target); return tide_executor_wake(&bench.executor);
      case Verb::cancel: return static_cast<void>(tide_timer_cancel(timer));
      case Verb::reset: return static_cast<void>(tide_timer_reset(timer));
      case Verb::phase: return static_cast<void>(tide_timer_set_phase(timer, action.value));
      case Verb::period: return static_cast<void>(tide_timer_set_period(timer, action.value));
      case Verb::priority:
        return static_cast<void>(
            tide_executor_set_priority(&bench.executor, &timer->callback, static_cast<tide_priority_t>(action.value)));
    }
  }

  std::vector<size_t>::iterator best() {
    return std::max_element(frames.begin(), frames.end(), [this](size_t left, size_t right) {
      return objects[left]->callback.priority < objects[right]->callback.priority;
    });
  }

  int32_t most_urgent() { return frames.empty() ? TIDE_PRIORITY_NONE : objects[*best()]->callback.priority; }

  int process(bool most_urgent_first) {
    const auto frame = most_urgent_first ? best() : frames.begin();
    tide_executor_notify(&objects[*frame]->callback);
    frames.erase(frame);
    return 1;
  }

  const Program &program;
  Bench bench;
  std::vector<std::unique_ptr<tide_timer_t>> objects;
  std::vector<size_t> frames;
  std::map<size_t, int> runs;
  std::map<size_t, tide_group_t *> groups;
  Outcome outcome;
};

}  // namespace exec_virtual
