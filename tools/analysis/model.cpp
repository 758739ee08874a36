// SPDX-License-Identifier: Apache-2.0
#include "analysis/model.h"

#include <map>
#include <numeric>
#include <set>
#include <utility>

namespace tide::analysis {

// ---- checking and building ----

namespace {

std::string quote(const std::string &name) { return "'" + name + "'"; }

std::string entry(const char *kind, const std::string &name, size_t index) {
  return std::string(kind) + " " + (name.empty() ? "number " + std::to_string(index + 1) : quote(name));
}

class Checker {
 public:
  explicit Checker(const Description &description) : description_(description) {}

  std::vector<std::string> run() {
    executors();
    groups();
    chains();
    paths();
    return std::move(errors_);
  }

 private:
  void error(const std::string &where, const std::string &what) { errors_.push_back(where + ": " + what); }

  // Reports a time outside of [least_ns, kLongestTimeNs].
  void time(const std::string &where, const char *field, time_ns value_ns, time_ns least_ns) {
    if (value_ns < least_ns) {
      error(where, std::string(field) + " is " + std::to_string(value_ns) + ", but must be at least " +
                       std::to_string(least_ns));
    } else if (value_ns > kLongestTimeNs) {
      error(where, std::string(field) + " is " + std::to_string(value_ns) + ", but must be at most " +
                       std::to_string(kLongestTimeNs));
    }
  }

  void unique(std::set<std::string> &seen, const std::string &where, const std::string &name) {
    if (name.empty()) {
      error(where, "has no name");
    } else if (!seen.insert(name).second) {
      error(where, "the name is used twice");
    }
  }

  void executors() {
    if (description_.executors.empty()) error("system", "has no executor");
    for (size_t index = 0; index < description_.executors.size(); ++index) {
      const ExecutorEntry &executor = description_.executors[index];
      const std::string where = entry("executor", executor.name, index);
      unique(executors_, where, executor.name);
      if (executor.lanes.empty()) error(where, "has no lane");
      if (executor.lanes.size() > kMostLanes) error(where, "has more than " + std::to_string(kMostLanes) + " lanes");
      for (size_t lane = 0; lane < executor.lanes.size(); ++lane) {
        const std::string which = where + ", lane " + std::to_string(lane + 1);
        time(which, "budget_ns", executor.lanes[lane].budget_ns, 1);
        time(which, "period_ns", executor.lanes[lane].period_ns, 1);
        if (executor.lanes[lane].budget_ns > executor.lanes[lane].period_ns) {
          error(which, "budget_ns is larger than period_ns");
        }
      }
      if (executor.core < 0) continue;
      if (executor.lanes.size() != 1 || !executor.lanes.front().dedicated())
        error(where, "shares a core, so it must have one lane without a budget");
      if (!threads_.insert({executor.core, executor.thread_priority}).second)
        error(where, "has the thread_priority of another executor on its core; they must be distinct");
    }
  }

  void groups() {
    std::set<std::string> seen;
    for (size_t index = 0; index < description_.groups.size(); ++index) {
      const GroupEntry &group = description_.groups[index];
      const std::string where = entry("group", group.name, index);
      unique(seen, where, group.name);
      if (!executors_.contains(group.executor)) error(where, "executor " + quote(group.executor) + " is unknown");
      groups_[group.name] = group.executor;
    }
  }

  void callback(const ChainEntry &chain, const std::string &where, const CallbackEntry &callback) {
    time(where, "execution_ns", callback.execution_ns, 1);
    if (callback.least_ns != 0 && (callback.least_ns < 0 || callback.least_ns > callback.execution_ns))
      error(where, "least_ns must be from 0 to its execution_ns");
    if (callback.priority < 0 || callback.priority > kMostPriority)
      error(where, "priority must be from 1 to " + std::to_string(kMostPriority) + ", or absent");
    auto &[with, without] = own_priorities_[chain.executor];
    (callback.priority > 0 ? with : without) = where;
    if (!with.empty() && !without.empty() && mixed_.insert(chain.executor).second)
      error(without, "has no priority of its own, and other callbacks of executor " + quote(chain.executor) + " have");
    if (callback.group.empty()) return;
    const auto found = groups_.find(callback.group);
    if (found == groups_.end()) {
      error(where, "group " + quote(callback.group) + " is unknown");
    } else if (found->second != chain.executor) {
      error(where, "group " + quote(callback.group) + " belongs to executor " + quote(found->second));
    }
  }

  void chains() {
    if (description_.chains.empty()) error("system", "has no chain");
    std::map<std::pair<std::string, int64_t>, std::string> priorities;
    std::set<std::string> seen;
    for (size_t index = 0; index < description_.chains.size(); ++index) {
      const ChainEntry &chain = description_.chains[index];
      const std::string where = entry("chain", chain.name, index);
      unique(seen, where, chain.name);
      chains_[chain.name] = &chain;
      if (!executors_.contains(chain.executor)) error(where, "executor " + quote(chain.executor) + " is unknown");
      time(where, "period_ns", chain.period_ns, 1);
      time(where, "deadline_ns", chain.deadline_ns, 1);
      time(where, "jitter_ns", chain.jitter_ns, 0);
      if (chain.callbacks.empty()) error(where, "has no callback");
      if (chain.callbacks.size() > kMostCallbacks) {
        error(where, "has more than " + std::to_string(kMostCallbacks) + " callbacks");
      }
      for (size_t number = 0; number < chain.callbacks.size(); ++number) {
        const CallbackEntry &one = chain.callbacks[number];
        callback(chain, where + ", " + entry("callback", one.name, number), one);
      }
      const auto [other, fresh] = priorities.try_emplace({chain.executor, chain.priority}, chain.name);
      if (!fresh) {
        error(where, "has the same priority as chain " + quote(other->second) + " on executor " +
                         quote(chain.executor) + "; priorities must be distinct");
      }
    }
  }

  void segments(const std::string &where, const PathEntry &path) {
    const ChainEntry *before = nullptr;
    for (const std::string &name : path.segments) {
      const auto found = chains_.find(name);
      if (found == chains_.end()) {
        error(where, "chain " + quote(name) + " is unknown");
        before = nullptr;
        continue;
      }
      if (!used_.insert(name).second) error(where, "chain " + quote(name) + " is already a segment of a path");
      const ChainEntry *chain = found->second;
      if (before != nullptr && before->executor == chain->executor) {
        error(where, "segments " + quote(before->name) + " and " + quote(name) +
                         " follow each other on one executor; make them one chain");
      }
      if (before != nullptr && before->period_ns != chain->period_ns) {
        error(where, "segments " + quote(before->name) + " and " + quote(name) + " have different periods");
      }
      if (before != nullptr && chain->jitter_ns != 0) {
        error(where, "segment " + quote(name) + " states a jitter, but it follows from the segments before it");
      }
      before = chain;
    }
  }

  void paths() {
    std::set<std::string> seen;
    for (size_t index = 0; index < description_.paths.size(); ++index) {
      const PathEntry &path = description_.paths[index];
      const std::string where = entry("path", path.name, index);
      unique(seen, where, path.name);
      time(where, "deadline_ns", path.deadline_ns, 1);
      if (path.segments.empty()) {
        error(where, "has no segment");
        continue;
      }
      if (path.delays_ns.size() + 1 != path.segments.size()) {
        error(where, "needs one delay between each two segments");
      }
      for (const time_ns delay_ns : path.delays_ns) time(where, "delay_ns", delay_ns, 0);
      segments(where, path);
    }
  }

  const Description &description_;
  std::vector<std::string> errors_;
  std::set<std::string> executors_;
  std::set<std::pair<time_ns, time_ns>> threads_;  // core and thread_priority
  std::map<std::string, std::string> groups_;
  std::map<std::string, const ChainEntry *> chains_;
  std::set<std::string> used_;
  std::map<std::string, std::pair<std::string, std::string>>
      own_priorities_;  // by executor: where a callback with its own priority was found, and where one without; empty:
                        // nowhere so far
  std::set<std::string> mixed_;
};

int index_of(const std::vector<std::string> &names, const std::string &name) {
  for (size_t index = 0; index < names.size(); ++index) {
    if (names[index] == name) return static_cast<int>(index);
  }
  return kReentrant;
}

Chain to_chain(const ChainEntry &entry, const std::vector<std::string> &groups) {
  Chain chain{entry.name, {}, entry.period_ns, entry.deadline_ns, entry.jitter_ns, entry.priority, entry.timer};
  for (const CallbackEntry &callback : entry.callbacks) {
    chain.callbacks.push_back(
        {callback.name, callback.execution_ns, index_of(groups, callback.group), callback.priority, callback.least_ns});
  }
  return chain;
}

constexpr std::pair<const char *, Policy> kPolicies[] = {{"any_order", Policy::any_order},
                                                         {"default", Policy::ready_set},
                                                         {"wait_set", Policy::wait_set},
                                                         {"fifo", Policy::fifo},
                                                         {"priority", Policy::priority}};

}  // namespace

const char *name_of(Policy policy) {
  for (const auto &[name, one] : kPolicies) {
    if (one == policy) return name;
  }
  return "";
}

std::optional<Policy> policy_of(std::string_view name) {
  for (const auto &[known, policy] : kPolicies) {
    if (name == known) return policy;
  }
  return std::nullopt;
}

Executor::Executor(std::string name, Policy policy, std::vector<Lane> lanes, std::vector<Chain> chains,
                   std::vector<std::string> groups)
    : name_(std::move(name)),
      policy_(policy),
      lanes_(std::move(lanes)),
      chains_(std::move(chains)),
      groups_(std::move(groups)),
      members_(groups_.size()),
      order_(chains_.size()),
      rank_(chains_.size()) {
  for (const Lane &lane : lanes_) dedicated_ = dedicated_ && lane.dedicated();
  for (size_t index = 0; index < chains_.size(); ++index) {
    Chain &chain = chains_[index];
    chain.execution_ns = chain.least_ns = 0;
    chain.longest_ns = 0;
    for (size_t number = 0; number < chain.callbacks.size(); ++number) {
      const Callback &callback = chain.callbacks[number];
      chain.execution_ns += callback.execution_ns;
      chain.least_ns += callback.least_ns;
      chain.longest_ns = std::max(chain.longest_ns, callback.execution_ns);
      own_priorities_ = own_priorities_ || callback.priority > 0;
      if (callback.group == kReentrant) continue;
      members_[static_cast<size_t>(callback.group)].push_back({index, number});
      has_groups_ = true;
    }
    chain.last_ns = chain.callbacks.back().execution_ns;
  }
  std::iota(order_.begin(), order_.end(), size_t{0});
  std::sort(order_.begin(), order_.end(), [this](size_t left, size_t right) {
    return chains_[left].priority != chains_[right].priority ? chains_[left].priority > chains_[right].priority
                                                             : left < right;
  });
  for (size_t place = 0; place < order_.size(); ++place) rank_[order_[place]] = place;
}

Executor Executor::with_policy(Policy policy) const {
  Executor other = *this;
  other.policy_ = policy;
  return other;
}

void Executor::preempt(const std::vector<Preemption> &by) {
  lanes_.front().preempted_by = by;
  dedicated_ = lanes_.front().dedicated();
}

void Executor::retime(const std::vector<time_ns> &jitter_ns, const std::vector<time_ns> &deadline_ns) {
  for (size_t index = 0; index < chains_.size(); ++index) {
    chains_[index].jitter_ns = jitter_ns[index];
    chains_[index].deadline_ns = deadline_ns[index];
  }
}

Executor Executor::with_deadlines(const std::vector<time_ns> &deadline_ns) const {
  Executor other = *this;
  for (size_t index = 0; index < other.chains_.size(); ++index) other.chains_[index].deadline_ns = deadline_ns[index];
  return other;
}

Executor Executor::with_jitter(const std::vector<time_ns> &jitter_ns) const {
  Executor other = *this;
  for (size_t index = 0; index < other.chains_.size(); ++index) other.chains_[index].jitter_ns = jitter_ns[index];
  return other;
}

Built System::build(const Description &description) {
  Built built;
  built.errors = Checker(description).run();
  if (!built.errors.empty()) return built;
  System system;
  std::map<std::string, Place> places;
  for (const ExecutorEntry &executor : description.executors) {
    std::vector<std::string> groups;
    for (const GroupEntry &group : description.groups) {
      if (group.executor == executor.name) groups.push_back(group.name);
    }
    std::vector<Chain> chains;
    for (const ChainEntry &chain : description.chains) {
      if (chain.executor != executor.name) continue;
      places[chain.name] = {system.executors_.size(), chains.size()};
      chains.push_back(to_chain(chain, groups));
    }
    system.executors_.emplace_back(executor.name, executor.policy, executor.lanes, std::move(chains),
                                   std::move(groups));
    system.executors_.back().core = executor.core;
    system.executors_.back().thread_priority = executor.thread_priority;
  }
  for (const PathEntry &path : description.paths) {
    Path made{path.name, {}, path.delays_ns, path.deadline_ns};
    for (const std::string &segment : path.segments) made.segments.push_back(places.at(segment));
    system.paths_.push_back(std::move(made));
  }
  built.system = std::move(system);
  return built;
}

Chain make_chain(const std::vector<time_ns> &execution_ns, time_ns period_ns, time_ns deadline_ns, int64_t priority) {
  Chain chain;
  for (const time_ns one_ns : execution_ns) chain.callbacks.push_back({{}, one_ns, kReentrant, 0});
  chain.period_ns = period_ns;
  chain.deadline_ns = deadline_ns;
  chain.priority = priority;
  return chain;
}

// ---- supply ----

namespace {

// The most that more urgent threads execute in a window of this length.
time_ns preempted_ns(const Lane &lane, time_ns window_ns) {
  time_ns sum_ns = 0;
  for (const Preemption &one : lane.preempted_by) {
    const time_ns reach_ns = add(window_ns, one.slack_ns);
    sum_ns = add(sum_ns, multiply(reach_ns / one.period_ns, one.execution_ns));
    sum_ns = add(sum_ns, std::min(one.execution_ns, reach_ns % one.period_ns));
  }
  return sum_ns;
}

// A lower limit of window_for_ns: more urgent threads execute at least in proportion to their shares of the core.
// kNeverNs if they leave nothing of it.
time_ns earliest_ns(const Lane &lane, time_ns supply_ns) {
  long double left = 1, needed_ns = static_cast<long double>(supply_ns);
  for (const Preemption &one : lane.preempted_by) {
    const long double share = static_cast<long double>(one.execution_ns) / static_cast<long double>(one.period_ns);
    left -= share;
    needed_ns += share * static_cast<long double>(one.slack_ns);
  }
  constexpr long double kRounding = 1e-9L;
  if (left < kRounding || needed_ns / left >= static_cast<long double>(kNeverNs)) return kNeverNs;
  return std::max(supply_ns, static_cast<time_ns>(needed_ns / left * (1 - kRounding)) - 1);
}

// The least supply of a lane that more urgent threads preempt: the greatest for which the window suffices. It grows
// only while none of the threads executes in the window that they delay most.
Linear preempted_piece(const Lane &lane, time_ns window_ns) {
  time_ns least_ns = std::max<time_ns>(window_ns - preempted_ns(lane, window_ns), 0);
  time_ns next_ns = window_for_ns(lane, least_ns + 1);
  const auto idle_ns = [&lane](time_ns from_ns) {  // how long none of them executes
    time_ns shortest_ns = kNeverNs;
    for (const Preemption &one : lane.preempted_by) {
      const time_ns place_ns = add(from_ns, one.slack_ns) % one.period_ns;
      shortest_ns = std::min(shortest_ns, place_ns < one.execution_ns ? 0 : one.period_ns - place_ns);
    }
    return shortest_ns;
  };
  while (next_ns <= window_ns) {
    least_ns += 1 + std::min(idle_ns(next_ns), window_ns - next_ns);
    next_ns = window_for_ns(lane, least_ns + 1);
  }
  if (next_ns > window_ns + 1) return {least_ns, 0, next_ns - 1};
  return {least_ns, 1, add(window_ns, std::max<time_ns>(idle_ns(window_ns), 1))};
}

// The lane's least supply in a window, as a linear piece: first no supply for twice the gap (period less budget), then
// a budget and a gap alternately.
Linear least_piece(const Lane &lane, time_ns window_ns) {
  if (lane.dedicated()) return {window_ns, 1, kNeverNs};
  if (!lane.preempted_by.empty()) return preempted_piece(lane, window_ns);
  const time_ns starved_ns = 2 * (lane.period_ns - lane.budget_ns);
  if (window_ns < starved_ns) return {0, 0, starved_ns};
  const time_ns rounds = (window_ns - starved_ns) / lane.period_ns;
  const time_ns rest_ns = (window_ns - starved_ns) % lane.period_ns;
  const time_ns before_ns = multiply(rounds, lane.budget_ns);
  if (rest_ns < lane.budget_ns) return {add(before_ns, rest_ns), 1, window_ns + lane.budget_ns - rest_ns};
  return {add(before_ns, lane.budget_ns), 0, window_ns + lane.period_ns - rest_ns};
}

}  // namespace

time_ns least_supply_ns(const Lane &lane, time_ns window_ns) { return least_piece(lane, window_ns).value; }

time_ns most_supply_ns(const Lane &lane, time_ns window_ns) {
  if (lane.budget_ns == lane.period_ns || window_ns <= 2 * lane.budget_ns) return window_ns;
  const time_ns later_ns = window_ns - 2 * lane.budget_ns;
  const time_ns part_ns = later_ns % lane.period_ns - (lane.period_ns - lane.budget_ns);
  return add(2 * lane.budget_ns + std::max<time_ns>(0, part_ns), multiply(later_ns / lane.period_ns, lane.budget_ns));
}

time_ns window_for_ns(const Lane &lane, time_ns supply_ns) {
  if (supply_ns <= 0) return 0;
  if (lane.dedicated()) return supply_ns;
  if (!lane.preempted_by.empty()) {
    time_ns window_ns = 0, needed_ns = earliest_ns(lane, supply_ns);
    while (window_ns < needed_ns && needed_ns < kNeverNs) {
      window_ns = needed_ns;
      needed_ns = add(supply_ns, preempted_ns(lane, window_ns));
    }
    return needed_ns;
  }
  const time_ns rounds = (supply_ns - 1) / lane.budget_ns;
  return add(add(2 * (lane.period_ns - lane.budget_ns), multiply(rounds, lane.period_ns)),
             supply_ns - rounds * lane.budget_ns);
}

Supply::Supply(const std::vector<Lane> &lanes) : lanes_(lanes) {
  for (const Lane &lane : lanes_) {
    dedicated_ = dedicated_ && lane.dedicated();
    alike_ = alike_ && lane == lanes_.front();
  }
  alike_ = alike_ || dedicated_;
}

Linear Supply::least(time_ns window_ns) const {
  if (dedicated_) return {multiply(lanes(), window_ns), lanes(), kNeverNs};
  if (alike_) return scale(least_piece(lanes_.front(), window_ns), lanes());
  Linear sum;
  for (const Lane &lane : lanes_) sum = sum + least_piece(lane, window_ns);
  return sum;
}

time_ns Supply::window_for_ns(time_ns supply_ns) const {
  if (supply_ns <= 0) return 0;
  if (alike_) return analysis::window_for_ns(lanes_.front(), divide_up(supply_ns, lanes()));
  time_ns high_ns = kNeverNs;  // by this time, even one lane alone supplies enough
  for (const Lane &lane : lanes_) high_ns = std::min(high_ns, analysis::window_for_ns(lane, supply_ns));
  time_ns low_ns = 0;  // by this time, all lanes together supply too little
  while (high_ns - low_ns > 1) {
    const time_ns middle_ns = low_ns + (high_ns - low_ns) / 2;
    (least(middle_ns).value >= supply_ns ? high_ns : low_ns) = middle_ns;
  }
  return high_ns;
}

time_ns Supply::worst_window_for_ns(time_ns supply_ns) const {
  if (dedicated_) return std::max<time_ns>(supply_ns, 0);
  time_ns worst_ns = 0;
  for (const Lane &lane : lanes_) worst_ns = std::max(worst_ns, analysis::window_for_ns(lane, supply_ns));
  return worst_ns;
}

time_ns Supply::passing_ns(time_ns execution_ns) const {
  if (dedicated_) return multiply(lanes(), execution_ns);
  time_ns worst_ns = 0;
  for (size_t holder = 0; holder < lanes_.size(); ++holder) {
    const time_ns window_ns = add(1, analysis::window_for_ns(lanes_[holder], execution_ns - 1));
    time_ns passing_ns = execution_ns;
    for (size_t other = 0; other < lanes_.size(); ++other) {
      if (other != holder) passing_ns = add(passing_ns, most_supply_ns(lanes_[other], window_ns));
    }
    worst_ns = std::max(worst_ns, passing_ns);
  }
  return worst_ns;
}

}  // namespace tide::analysis
