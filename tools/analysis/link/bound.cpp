// SPDX-License-Identifier: Apache-2.0
#include "analysis/link/bound.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "analysis/link/model.h"
#include "analysis/model/linear.h"

namespace tide::analysis {
namespace {

constexpr int kMostPasses = 2000;
constexpr int kMostSteps = 200'000;

}  // namespace

Linear LinkModel::client_interference(size_t chain, time_ns window_ns, LinkParts &parts) const {
  Linear sum;
  parts.client_interference_ns.assign(size(), 0);
  if (loads_[chain].visits == 0) return sum;  // it never waits there
  for (const size_t other : here_) {
    if (!goes_first(other, chain)) continue;
    const time_ns load_ns = seen(other, chain).client_ns;
    const Linear executed = within(other, chain, load_ns, window_ns);
    parts.client_interference_ns[other] = executed.value;
    const time_ns punctual_ns = share(load_ns, period(other), load_ns, window_ns).value;
    if (!one_release(other, chain)) parts.lateness_ns = add(parts.lateness_ns, executed.value - punctual_ns);
    sum = sum + executed;
  }
  return sum;
}

Linear LinkModel::interrupts(size_t chain, time_ns window_ns) const {
  if (loads_[chain].visits == 0) return {};
  Linear sum = constant(2 * loads_[chain].interrupts_ns);
  for (const size_t other : here_) {
    if (other == chain || loads_[other].interrupts_ns == 0) continue;
    const Seen load = seen(other, chain);
    const time_ns interrupts_ns =
        add(multiply(load.down_frames + load.down_control, system_.client.interrupt_receive_ns),
            multiply(load.up_frames + load.up_control, system_.client.interrupt_complete_ns));
    sum = sum + share(interrupts_ns, period(other), span_ns(other), window_ns);
  }
  if (alive_) return sum;
  // Signs of life are digested as the least urgent of all (client_blocking). In a batch they are in any order, and a
  // publish that waits may have to wait for them.
  time_ns each_ns = gap_ns_;
  if (is_batch()) each_ns += system_.client.process_ns;
  if (is_batch() && system_.client.send != Send::asynchronous) each_ns += 2 * question_frame_ns(system_.line) + gap_ns_;
  return sum + scale(signs_of_life(window_ns), each_ns);
}
// While a callback waits all lanes of its executor run others, or its group is busy (docs/analysis/link.md, "Lanes of
// the host"). Of a group, and of a chain, one callback runs at a time: in a wait neither does more than it is long.
Linear LinkModel::lanes_wait(size_t chain, size_t place, time_ns window_ns) const {
  std::set<std::string> own;
  for (const LinkCallback &callback : system_.chains[chain].callbacks) {
    if (callback.place == static_cast<int>(place)) own.insert(callback.group);
  }
  std::map<std::string, time_ns> of_group;
  std::vector<time_ns> units;
  for (size_t other = 0; other < size(); other++) {
    if (other == chain || loads_[other].hosts_ns[place] == 0) continue;
    for (const auto &[group, load_ns] : seen_on_host(other, chain, place)) {
      const time_ns executed_ns = within(other, chain, load_ns, window_ns).value;
      if (group.empty()) {
        units.push_back(executed_ns);
      } else {
        of_group[group] = add(of_group[group], executed_ns);
      }
    }
  }
  time_ns excluded_ns = 0;
  for (const auto &[group, executed_ns] : of_group) {
    if (own.count(group) > 0) excluded_ns = add(excluded_ns, executed_ns);
    // Where all of its callbacks are in it, what else keeps it waiting is without that group.
    if (own.count(group) == 0 || own.size() > 1) units.push_back(executed_ns);
  }
  std::sort(units.rbegin(), units.rend());
  time_ns rest_ns = 0, busy_ns = kNeverNs;
  for (const time_ns unit_ns : units) rest_ns = add(rest_ns, unit_ns);
  for (size_t longest = 0; longest < static_cast<size_t>(system_.hosts[place].lanes); longest++) {
    const auto left = static_cast<time_ns>(static_cast<size_t>(system_.hosts[place].lanes) - longest);
    busy_ns = std::min(busy_ns, divide_up(rest_ns, left));
    if (longest >= units.size()) break;
    rest_ns -= units[longest];
  }
  return {add(excluded_ns, busy_ns), 0, window_ns};
}

Linear LinkModel::host(size_t chain, time_ns window_ns) const {
  Linear sum;
  if (hosts_keep_up_) return sum;
  for (size_t place = 0; place < system_.hosts.size(); place++) {
    if (system_.hosts[place].own_cores || !loads_[chain].visits_host[place]) continue;
    if (system_.hosts[place].lanes > 1) {
      sum = sum + lanes_wait(chain, place, window_ns);
      continue;
    }
    for (size_t other = 0; other < size(); other++) {
      if (other == chain || loads_[other].hosts_ns[place] == 0) continue;
      for (const auto &[group, load_ns] : seen_on_host(other, chain, place))
        sum = sum + within(other, chain, load_ns, window_ns);
    }
  }
  return sum;
}

// ---- windows (docs/analysis/link.md, "Windows") ----

bool LinkModel::in_one_stream(size_t other, size_t chain, Direction direction) const {
  const LinkChain &self = system_.chains[other];
  const bool reliable = direction == Direction::up ? self.uplink_reliable : self.downlink_reliable;
  return reliable && !is_foreign(other) && (other == chain || is_batch() || shares_level(other, chain));
}

// Frames of its stream, its own among them, that are without an acknowledgment when one of its messages is published.
Linear LinkModel::unacknowledged(size_t chain, Direction direction, time_ns window_ns) const {
  Linear frames;
  for (const size_t other : here_) {
    const bool up = direction == Direction::up;
    const Traffic &traffic = up ? loads_[other].up : loads_[other].down;
    if (traffic.frames == 0 || !in_one_stream(other, chain, direction)) continue;
    int64_t count = traffic.frames;
    if (other != chain) count = up ? seen(other, chain).up_frames : seen(other, chain).down_frames;
    // Its own response may be longer than what is known of it so far.
    const time_ns own_ns = add(add(jitter(chain), loads_[chain].settling_ns), tail_ns(chain));
    const Linear instances =
        other == chain ? stair(window_ns, own_ns, period(chain)) : constant(divide_up(span_ns(other), period(other)));
    frames = frames + scale(instances, count);
  }
  return frames;
}

// How long so many of its messages wait for their window. Of the frames that are in front without an acknowledgment the
// first so many as a window holds are there already; each time that as many more are to leave, the last one before them
// must be acknowledged, and may then find that a less urgent frame has begun.
Linear LinkModel::window_wait(size_t chain, Direction direction, int64_t messages, time_ns window_ns) const {
  const bool up = direction == Direction::up;
  if (messages == 0 || !in_one_stream(chain, chain, direction)) return {};
  if (up && waits_for_answer(system_.chains[chain])) return {};  // it is alone in the window, and a message fits
  const Linear frames = unacknowledged(chain, direction, window_ns);
  const int64_t full = divide_up(frames.value, system_.protocol.window) - 1;
  if (full <= 0) return {0, 0, frames.until_ns};
  time_ns acknowledged_ns = 0;
  for (const size_t other : here_) {
    if (in_one_stream(other, chain, direction))
      acknowledged_ns = std::max(acknowledged_ns, up ? loads_[other].answer_ns : loads_[other].receipt_ns);
  }
  const time_ns each_ns = add(acknowledged_ns, longest_frame_ns(direction));
  return {multiply(multiply(messages, full), each_ns), 0, frames.until_ns};
}

bool LinkModel::is_any_window_full() const {
  return std::any_of(here_.begin(), here_.end(), [this](size_t chain) {
    if (is_foreign(chain)) return false;
    const time_ns window_ns = std::max<time_ns>(std::min(responses_[chain], period(chain)) - jitter(chain), 1);
    const Load &load = loads_[chain];
    return window_wait(chain, Direction::up, load.up.messages, window_ns).value > 0 ||
           window_wait(chain, Direction::down, load.down.messages, window_ns).value > 0;
  });
}

// Of a chain that has a bound.
StreamUse LinkModel::use_of(size_t chain, Direction direction) const {
  const bool up = direction == Direction::up;
  const Traffic &traffic = up ? loads_[chain].up : loads_[chain].down;
  if (traffic.messages == 0) return {};
  const bool reliable = in_one_stream(chain, chain, direction);
  const time_ns settling_ns = reliable ? loads_[chain].settling_ns : 0;
  const time_ns pending_ns = add(add(responses_[chain], settling_ns), up ? tail_ns(chain) : 0);
  const int64_t frames = reliable ? unacknowledged(chain, direction, responses_[chain] - jitter(chain)).value : 0;
  return {std::max<int64_t>(divide_up(pending_ns, period(chain)), 1), frames};
}

time_ns LinkModel::client_blocking(size_t chain) const {
  if (is_batch()) return 0;
  // A lane that digests a sign of life may have callbacks of its own.
  time_ns longest_ns = alive_ ? 0 : system_.client.process_ns;
  if (system_.client.policy == ClientPolicy::lanes) return longest_ns;
  for (const size_t other : here_) {
    if (other != chain && !goes_first(other, chain)) longest_ns = std::max(longest_ns, loads_[other].unit_ns);
  }
  return longest_ns;
}

// The longest critical section of a less urgent chain whose lock has this chain or a more urgent one among its takers.
// There is one at most once a visit: nobody less urgent begins another while this one waits (docs/analysis/locks.md).
time_ns LinkModel::lock_blocking(size_t chain) const {
  if (system_.client.policy != ClientPolicy::lanes || loads_[chain].visits == 0) return 0;
  std::map<std::string, int64_t> ceilings;
  const auto each = [this](auto look) {
    for (const LinkChain &one : system_.chains) {
      for (const LinkCallback &callback : one.callbacks) {
        if (callback.place != kOnClient) continue;
        for (const CriticalSection &section : callback.sections) look(one.priority, section);
      }
    }
  };
  each([&](int64_t priority, const CriticalSection &section) {
    const auto [known, first] = ceilings.emplace(section.lock, priority);
    if (!first) known->second = std::max(known->second, priority);
  });
  time_ns longest_ns = 0;
  const int64_t own = system_.chains[chain].priority;
  each([&](int64_t priority, const CriticalSection &section) {
    if (priority < own && ceilings[section.lock] >= own) longest_ns = std::max(longest_ns, section.section_ns);
  });
  return longest_ns;
}

// No busy stretch of the client is long enough to hold both visits of one instance of a more urgent chain: between the
// two of the pair that lies innermost, every other instance has one visit at most.
bool LinkModel::pairs_are_apart(size_t chain, time_ns window_ns, time_ns more_ns) const {
  const Load &self = loads_[chain];
  const bool preemptive = system_.client.policy == ClientPolicy::lanes;
  for (size_t pair = 0; pair < size(); pair++) {
    if (!goes_first(pair, chain) || !loads_[pair].pair) continue;
    // Of its own visits only what may lie between two others that both delay it.
    time_ns between_ns = more_ns + (preemptive ? self.client_ns : self.taking_ns);
    for (const size_t other : here_) {
      if (other == pair || !goes_first(other, chain) || goes_on_[other]) continue;
      const Load &load = loads_[other];
      const time_ns count = stair(window_ns, responses_[other], period(other)).value;
      between_ns = add(between_ns, multiply(count, load.pair ? load.visit_ns : load.client_ns));
    }
    if (between_ns >= loads_[pair].remote_least_ns()) return false;
  }
  return true;
}

LinkModel::Demand LinkModel::demand(size_t chain, time_ns window_ns, Until until) const {
  const Load &self = loads_[chain];
  const LinkChain &described = system_.chains[chain];
  const bool waited = waits_for_line(described) || waits_for_answer(described);
  // A publish that waits ends with what it sends.
  const bool without_tail = until == Until::ended && self.tail_line_ns > 0 && !waited;
  const int64_t messages = self.up.messages - (without_tail ? 1 : 0);
  const bool crosses = messages > 0 || self.down.messages > 0;
  Demand result;
  LinkParts &parts = result.parts;
  const Linear client = client_interference(chain, window_ns, parts);
  const Linear interrupt = interrupts(chain, window_ns);
  const Linear up = uplink(chain, messages, window_ns, parts);
  const Linear down = downlink(chain, window_ns, parts);
  const Linear host_wait = host(chain, window_ns);
  const time_ns blocking_ns = client_blocking(chain);
  // A publish that waits has put the frame on the line already, and may hear of it later than the answer comes.
  const time_ns line_ns = self.down.total_ns + (waited ? 0 : self.up.total_ns - (without_tail ? self.tail_line_ns : 0));
  const time_ns losses_ns = without_tail && !crosses ? 0 : self.losses_ns;
  const Linear window = window_wait(chain, Direction::up, messages, window_ns) +
                        window_wait(chain, Direction::down, self.down.messages, window_ns);
  result.remote = constant(line_ns + self.host_ns + losses_ns) + up + down + host_wait + window;
  parts.execution_ns = self.client_ns;
  parts.line_ns = line_ns;
  parts.host_ns = self.host_ns;
  parts.client_blocking_ns = self.visits * blocking_ns;
  parts.new_data_ns = self.new_data_ns;
  parts.lock_blocking_ns = self.visits * lock_blocking(chain);
  parts.interrupts_ns = interrupt.value;
  parts.host_wait_ns = host_wait.value;
  parts.losses_ns = losses_ns;
  parts.window_ns = window.value;
  const Linear base =
      constant(self.client_ns + parts.client_blocking_ns + self.new_data_ns + parts.lock_blocking_ns) + interrupt;
  const Linear generic = base + result.remote + client;
  // A section that is interrupted goes on between the visits of more urgent chains, which the lemmas of pairs exclude.
  // They say nothing of chains that are as urgent.
  if (!self.pair || is_batch() || parts.lock_blocking_ns > 0 || system_.chains[chain].shares_level) {
    result.cases = {generic};
    return result;
  }
  // The client is busy with this chain or more urgent ones all the way: the line does not count.
  const Linear executed = constant(self.client_ns) + interrupt + client;
  const Linear busy = executed + constant(blocking_ns);
  if (!pairs_are_apart(chain, window_ns, interrupt.value)) {
    result.cases = {lesser(busy, generic, window_ns), generic};
    return result;
  }
  // It is not: each instance of a more urgent chain is in the way once ...
  const Once once = visits_once(chain, window_ns);
  // ... or some of them twice, and then the answer of the first of these was there soon after it had been in the way.
  const Linear way = constant(self.first_ns) + result.remote;
  const Linear latest = constant(once.latest_ns);
  const bool preemptive = system_.client.policy == ClientPolicy::lanes;
  Linear twice = preemptive ? client + constant(self.first_ns) + lesser(result.remote, latest, window_ns)
                            : client + lesser(way, latest, window_ns);
  if (!preemptive) twice = lesser(twice, once.sum + constant(once.again_ns) + latest, window_ns);
  const size_t below = only_less_urgent(chain, window_ns);
  const bool alone = below < size() && pairs_are_apart(chain, window_ns, interrupt.value + loads_[below].visit_ns);
  Linear blocked = constant(parts.client_blocking_ns);
  if (alone) {
    // Of one instance only its frames' digestion comes before both of our visits; unless both of its visits do, see
    // below.
    const Load &load = loads_[below];
    blocked = {load.unit_ns + load.taking_ns, 0, stair(window_ns, responses_[below], period(below)).until_ns};
    parts.client_blocking_ns = blocked.value;
  }
  const Linear idle = constant(self.last_ns) + interrupt + blocked;
  result.cases = {busy, lesser(idle + way + once.sum, generic, window_ns), lesser(idle + twice, generic, window_ns)};
  if (alone) {
    // Both visits of that one instance are in the way, the second as soon as its answer is there.
    const Linear both = constant(loads_[below].client_ns);
    const Linear late = constant(self.last_ns + remotes_[below]) + interrupt + once.sum;
    result.cases.push_back(lesser(executed + both, generic, window_ns));
    result.cases.push_back(lesser(late + both, generic, window_ns));
  }
  return result;
}

// Each instance of a more urgent chain in the way with one of its visits.
LinkModel::Once LinkModel::visits_once(size_t chain, time_ns window_ns) const {
  Once once;
  for (const size_t other : here_) {
    if (!goes_first(other, chain)) continue;
    const Load &load = loads_[other];
    const Linear all = within(other, chain, seen(other, chain).client_ns, window_ns);
    const Linear count = stair(window_ns, responses_[other], period(other));
    once.sum = once.sum + (load.pair ? lesser(all, scale(count, load.visit_ns), window_ns) : all);
    if (!load.pair) continue;
    once.latest_ns = std::max(once.latest_ns, remotes_[other]);
    once.again_ns = std::max(once.again_ns, load.client_ns - load.visit_ns);
  }
  return once;
}

// The only less urgent chain of a cooperative executor, when no more than one instance of it is about and no sign of
// life; else size().
size_t LinkModel::only_less_urgent(size_t chain, time_ns window_ns) const {
  size_t found = size();
  if (system_.client.policy != ClientPolicy::tide || !alive_) return found;
  for (const size_t other : here_) {
    if (other == chain || goes_first(other, chain) || loads_[other].visits == 0 || goes_on_[other]) continue;
    if (found < size() || !loads_[other].pair) return size();
    found = other;
  }
  if (found < size() && stair(window_ns, responses_[found], period(found)).value > 1) return size();
  return found;
}

// ---- the solution ----

std::vector<size_t> LinkModel::dependences(size_t chain) const {
  std::vector<size_t> found;
  for (size_t other = 0; other < size(); other++) {
    if (other == chain) continue;
    const Load &load = loads_[other];
    bool shares_host = false;
    for (size_t place = 0; place < system_.hosts.size(); place++) {
      shares_host = shares_host ||
                    (!system_.hosts[place].own_cores && load.hosts_ns[place] > 0 && loads_[chain].visits_host[place]);
    }
    if (is_foreign(other)) {
      if (shares_host) found.push_back(other);
      continue;
    }
    if (goes_first(other, chain) || shares_host || load.interrupts_ns > 0 || other == only_less_urgent(chain, 1) ||
        (load.up.control > 0 && up_waits_[chain] != kNeverNs) ||
        (load.down.control > 0 && down_waits_[chain] != kNeverNs))
      found.push_back(other);
  }
  std::set<size_t> late;
  for (const size_t other : found) late.insert(as_late_[other].begin(), as_late_[other].end());
  for (const size_t other : found) late.erase(other);
  late.erase(chain);
  found.insert(found.end(), late.begin(), late.end());
  return found;
}

// reached_ns: if it is late by itself, what it would take at least.
time_ns LinkModel::solve(size_t chain, time_ns &reached_ns) const {
  if (!control_counted_ || loads_[chain].settling_ns >= kLongestWaitNs) return kNeverNs;
  for (const size_t other : dependences(chain)) {
    if (responses_[other] == kNeverNs) return kNeverNs;
  }
  const time_ns from_ns = std::max<time_ns>(responses_[chain] - jitter(chain), 1);
  const time_ns window_ns = least_window(chain, Until::sent, from_ns, period(chain) - jitter(chain), reached_ns);
  return window_ns == kNeverNs ? kNeverNs : add(jitter(chain), window_ns);
}

// The least window from here on that all of it fits into; kNeverNs: none up to most_ns.
time_ns LinkModel::least_window(size_t chain, Until until, time_ns from_ns, time_ns most_ns,
                                time_ns &reached_ns) const {
  time_ns window_ns = from_ns;
  for (int step = 0; step < kMostSteps && window_ns <= most_ns; step++) {
    time_ns next_ns = window_ns;
    for (const Linear &each : demand(chain, window_ns, until).cases) {
      if (each.value <= window_ns) continue;
      const time_ns behind_ns = each.slope >= 1 ? each.until_ns + 1 : 0;
      next_ns = std::max({next_ns, each.value, std::min(behind_ns, add(most_ns, 1))});
    }
    if (next_ns == window_ns) return settled(chain, until, window_ns);
    reached_ns = window_ns = next_ns;
  }
  return kNeverNs;
}

// Of a chain that depends on one which is late already, that is the reason.
void LinkModel::fail(size_t chain, time_ns reached_ns) {
  roots_[chain] = chain;
  for (const size_t other : dependences(chain)) {
    if (responses_[other] != kNeverNs) continue;
    roots_[chain] = roots_[other];
    return;
  }
  const time_ns window_ns = std::max<time_ns>(period(chain) - jitter(chain), 1);
  if (reached_ns <= window_ns) return;  // it was not looked at
  Demand made = demand(chain, window_ns);
  made.parts.jitter_ns = jitter(chain);
  for (const Linear &each : made.cases) reached_[chain] = std::max(reached_[chain], add(jitter(chain), each.value));
  reached_parts_[chain] = std::move(made.parts);
}

// A step behind a corner may go a little too far; whatever a window is enough for is itself a window that is enough.
time_ns LinkModel::settled(size_t chain, Until until, time_ns window_ns) const {
  for (int step = 0; step < kMostSteps; step++) {
    time_ns least_ns = 1;
    for (const Linear &each : demand(chain, window_ns, until).cases) least_ns = std::max(least_ns, each.value);
    if (least_ns >= window_ns) break;
    window_ns = least_ns;
  }
  return window_ns;
}

// Of a chain that has a bound: until its last callback has ended, whatever that sends.
time_ns LinkModel::end_ns(size_t chain) const {
  if (loads_[chain].tail_line_ns == 0) return responses_[chain];
  time_ns reached_ns = 0;
  const time_ns most_ns = responses_[chain] - jitter(chain);
  return add(jitter(chain), std::min(least_window(chain, Until::ended, 1, most_ns, reached_ns), most_ns));
}

LinkResults LinkModel::run() {
  for (int pass = 0;; pass++) {
    make_loads();
    bool changed = false;
    for (const size_t chain : order_) {
      if (responses_[chain] == kNeverNs || is_foreign(chain)) continue;
      time_ns reached_ns = 0;
      settled_ = settled_ && pass < kMostPasses;
      const time_ns found_ns = settled_ ? solve(chain, reached_ns) : kNeverNs;
      if (found_ns == kNeverNs) fail(chain, reached_ns);
      const time_ns window_ns = found_ns - jitter(chain);
      const time_ns remote_ns = found_ns == kNeverNs
                                    ? kNeverNs
                                    : add(demand(chain, window_ns).remote.value, interrupts(chain, window_ns).value);
      changed = changed || found_ns != responses_[chain] || remote_ns != remotes_[chain];
      responses_[chain] = found_ns;
      remotes_[chain] = remote_ns;
    }
    if (!changed) break;
  }
  LinkResults results;
  results.met = true;
  for (size_t chain = 0; chain < size(); chain++) {
    LinkResult &result = results.chains.emplace_back();
    if (is_foreign(chain)) {
      result.response_ns = system_.chains[chain].response_ns;
      result.met = true;
      continue;
    }
    result.depends_on = dependences(chain);
    if (responses_[chain] == kNeverNs) {
      blame(chain, result);
    } else {
      explain(chain, result);
      result.up = use_of(chain, Direction::up);
      result.down = use_of(chain, Direction::down);
    }
    results.met = results.met && result.met;
  }
  results.assumptions = assumptions();
  return results;
}
time_ns LinkParts::total_ns() const {
  time_ns sum = jitter_ns + execution_ns + line_ns + host_ns + client_blocking_ns + new_data_ns + lock_blocking_ns +
                line_blocking_ns + control_ns + window_ns + interrupts_ns + host_wait_ns + losses_ns;
  for (const time_ns part : client_interference_ns) sum += part;
  for (const time_ns part : line_interference_ns) sum += part;
  return sum;
}

LinkResults bound_link(const LinkSystem &system) { return LinkModel(system).run(); }

}  // namespace tide::analysis
