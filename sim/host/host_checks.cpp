// SPDX-License-Identifier: Apache-2.0
#include "sim/host/host_checks.h"

#include <algorithm>

namespace tide::sim {
namespace {

constexpr size_t kViolationsKept = 8;

bool is_exclusive(const tide_callback_t &callback) {
  return callback.group != nullptr && callback.group->kind == TIDE_GROUP_EXCLUSIVE;
}

bool is_reentrant(const tide_callback_t &callback) {
  return callback.group != nullptr && callback.group->kind == TIDE_GROUP_REENTRANT;
}

}  // namespace

HostChecks::HostChecks(const plan_t &plan, const program_t &program)
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

void HostChecks::violate(Time now, const std::string &what, size_t callback) {
  if (violations_.size() >= kViolationsKept) return;
  violations_.push_back(std::to_string(now) + " ns: " + plan_.callbacks[callback].name + ": " + what);
}

// ---- callbacks ----

void HostChecks::begin(size_t callback, Time release, Time now) {
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

void HostChecks::end(size_t callback, Time release) {
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

// ---- choices ----

// The most urgent of a group goes next.
bool HostChecks::is_first_of_group(size_t index) const {
  for (const size_t other : of_group_[plan_.callbacks[index].group]) {
    if (core(other).pending > 0 && core(other).priority > core(index).priority) return false;
  }
  return true;
}

bool HostChecks::may_run(size_t index) const {
  const tide_callback_t &callback = core(index);
  if (callback.pending == 0) return false;
  if (is_exclusive(callback)) return callback.group->taken_by == nullptr && is_first_of_group(index);
  return callback.group != nullptr || callback.running == 0;
}

// In the critical section in which a lane has taken it.
void HostChecks::check_choice(size_t executor, const tide_callback_t &taken, Time now) {
  for (const size_t index : of_executor_[executor]) {
    const tide_callback_t &other = core(index);
    if (&other == &taken || other.pending == 0) continue;
    const bool goes_first = plan_.policy == TIDE_POLICY_TIDE
                                ? other.priority > taken.priority
                                : other.kind == TIDE_CALLBACK_TIMER && taken.kind != TIDE_CALLBACK_TIMER;
    if (!goes_first) continue;
    // The group of the one that was taken is taken by now.
    const bool same_group = is_exclusive(other) && other.group == taken.group;
    if (may_run(index) || same_group) violate(now, "it waits while a lane takes a less urgent one", index);
  }
}

void HostChecks::section_end(Time now) {
  for (Lane &lane : lanes_) {
    const tide_callback_t *running = lane.lane->running;
    if (running != nullptr && lane.seen_running == nullptr) check_choice(lane.executor, *running, now);
    lane.seen_running = running;
  }
}

bool HostChecks::sleeps(size_t executor) const {
  for (size_t lane = 0; lane < plan_.executors[executor].lanes; lane++) {
    const tide_event_t &event = program_.lanes[executor][lane].event;
    if (event.port != nullptr && event.state == 0) return true;
  }
  return false;
}

void HostChecks::settled(Time now) {
  for (size_t executor = 0; executor < plan_.executor_count; executor++) {
    // Who wakes a lane does not know which of them has budget left.
    if (plan_.executors[executor].budget_ns > 0 || !sleeps(executor)) continue;
    for (const size_t index : of_executor_[executor]) {
      if (may_run(index)) violate(now, "it waits while a lane sleeps", index);
    }
  }
}

// ---- the end ----

void HostChecks::at_end(Time now) {
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

}  // namespace tide::sim
