// SPDX-License-Identifier: Apache-2.0
// Waiting for the line, and when there is none (docs/analysis/link.md, "The line keeps up").
#include <algorithm>

#include "analysis/link/model.h"

namespace tide::analysis {

namespace {

constexpr int kMostBusyPasses = 64;

}  // namespace

// Instances of each chain that can have frames in one stretch during which a direction of the line is never idle; empty
// if no end of such a stretch is found.
std::vector<int64_t> LinkModel::busy_instances(Direction direction) const {
  std::vector<int64_t> instances(size(), 0);
  time_ns length_ns = 0;
  for (int pass = 0; pass < kMostBusyPasses; pass++) {
    time_ns next_ns = 0;
    for (size_t chain = 0; chain < size(); chain++) {
      if (goes_on_[chain]) continue;  // its messages are those of a longer one
      const Load &load = loads_[chain];
      const bool up = direction == Direction::up;
      const Traffic &traffic = up ? load.up : load.down;
      const time_ns work_ns = add(traffic.total_ns, multiply(traffic.control, answer_ns_ + (up ? gap_ns_ : 0)));
      if (work_ns == 0) continue;
      instances[chain] = divide_up(add(length_ns, span_ns(chain)), period(chain));
      instances[chain] = std::max<int64_t>(instances[chain], 1);
      next_ns = add(next_ns, multiply(instances[chain], work_ns));
    }
    if (next_ns <= length_ns) return instances;
    if (next_ns == kNeverNs) break;
    length_ns = next_ns;
  }
  return {};
}

// One processor makes all messages, one callback after the other, and nobody keeps the line to himself: how far apart
// they come at least, and how long they are at most. Apart by 0: as near as they like.
LinkModel::Spacing LinkModel::message_spacing() const {
  const Client &client = system_.client;
  if (client.policy == ClientPolicy::lanes || !alive_ || !windows_suffice_) return {};
  const time_ns costs_ns = client.fixed_costs ? client.dispatch_ns + client.submit_ns : 0;
  Spacing spacing{kNeverNs, 0};
  for (size_t chain = 0; chain < size(); chain++) {
    const LinkChain &self = system_.chains[chain];
    if (self.uplink_reliable && (system_.protocol.hold || system_.protocol.losses > 0)) return {};
    if (is_batch() && loads_[chain].up.control > 0) return {};
    for (const LinkCallback &callback : self.callbacks) {
      if (callback.place != kOnClient || callback.payload_bytes == 0) continue;
      const Message sent = message(system_.line, Direction::up, callback.payload_bytes);
      spacing.apart_ns = std::min(spacing.apart_ns, callback.least_ns + costs_ns);
      spacing.longest_ns = std::max(spacing.longest_ns, sent.total_ns + sent.frames * gap_ns_);
    }
  }
  return spacing;
}

// What a message finds waiting is never more than the ACKNACKs and HEARTBEATs of the stretch in which the line has been
// busy, and what each message before was longer than their distance; of the ACKNACKs the one for the answer to the
// message that was made last is still to come.
time_ns LinkModel::uplink_wait(size_t chain, const Spacing &spacing, const std::vector<int64_t> &instances) const {
  const time_ns control_ns = answer_ns_ + gap_ns_;
  const Load &self = loads_[chain];
  time_ns all_ns = 0, spared_ns = kNeverNs, soonest_ns = kNeverNs;
  int64_t before = -1;
  for (const size_t other : here_) {
    if (goes_on_[other]) continue;
    const Load &load = loads_[other];
    // Its own are sent after its message; those of its instances before are not.
    const bool own = other == chain && !self.answers_first;
    const int64_t count = instances[other] - (own ? 1 : 0);
    all_ns = add(all_ns, multiply(multiply(count, load.up.control), control_ns));
    before = add(before, multiply(instances[other], load.up.messages));
    if (load.up.messages > 0 && count > 0) {
      spared_ns = std::min(spared_ns, load.pair ? load.up.receipts * control_ns : 0);
      soonest_ns = std::min(soonest_ns, load.host_least_ns + load.down.least_ns);
    }
  }
  const time_ns excess_ns = std::max<time_ns>(spacing.longest_ns - spacing.apart_ns, 0);
  all_ns = add(all_ns, multiply(before, excess_ns));
  const time_ns rest_ns = all_ns - std::min(all_ns, spared_ns);
  if (self.pair && all_ns <= spacing.apart_ns && rest_ns <= soonest_ns) all_ns = rest_ns;
  if (all_ns == 0) return 0;
  // Were the next message made before this one has left, the argument would not hold.
  const time_ns until_last_ns = add(all_ns, self.up.frames > self.up.messages ? self.up.total_ns : 0);
  return until_last_ns < spacing.apart_ns ? multiply(self.up.messages, all_ns) : kNeverNs;
}

void LinkModel::find_uplink_waits() {
  up_waits_.assign(size(), kNeverNs);
  const Spacing spacing = message_spacing();
  if (spacing.apart_ns == 0) return;
  const std::vector<int64_t> instances = busy_instances(Direction::up);
  for (const size_t chain : here_) {
    if (!instances.empty()) up_waits_[chain] = uplink_wait(chain, spacing, instances);
  }
}

// The least time between the ends of two messages on the line to the agent, where each brings one answer and what
// follows it at once; 0: they may be as near as they like.
time_ns LinkModel::answers_apart_ns() const {
  time_ns apart_ns = kNeverNs;
  for (size_t chain = 0; chain < size(); chain++) {
    const Load &load = loads_[chain];
    const bool begins_here = system_.chains[chain].callbacks.front().place == kOnClient;
    // One that takes no time there waits for its turn all the same.
    bool on_shared_host = false;
    for (size_t place = 0; place < system_.hosts.size(); place++)
      on_shared_host = on_shared_host || (load.visits_host[place] && !system_.hosts[place].own_cores);
    if (load.up.messages == 0 && load.down.messages == 0 && !on_shared_host) continue;
    if (!begins_here || load.up.messages > 1 || load.up.frames > load.up.messages) return 0;
    if (load.down.messages > (load.pair ? 1 : 0)) return 0;
    // Of chains that begin with one message it may bring the answers of all.
    if (system_.chains[chain].shares_level) return 0;
    if (load.up.messages == 0) return on_shared_host ? 0 : apart_ns;
    apart_ns = std::min(apart_ns, load.up.least_ns);
  }
  return apart_ns;
}

// Every answer follows a message that came over the line. When those are farther apart than the host, the answer and
// the receipt for it take, then each has host and line for itself but for HEARTBEATs and the answers to these.
void LinkModel::find_downlink_waits() {
  down_waits_.assign(size(), kNeverNs);
  hosts_keep_up_ = false;
  const std::vector<int64_t> instances = busy_instances(Direction::down);
  if (!alive_ || !windows_suffice_ || system_.protocol.losses > 0 || instances.empty()) return;
  time_ns longest_ns = 0, unasked_ns = 0, host_ns = 0;
  for (size_t chain = 0; chain < size(); chain++) {
    const Load &load = loads_[chain];
    longest_ns = std::max(longest_ns, load.down.total_ns + load.down.receipts * answer_ns_);
    host_ns = std::max(host_ns, load.host_ns);
    const int64_t others = load.down.control - load.down.receipts;
    unasked_ns = add(unasked_ns, multiply(multiply(instances[chain], others), answer_ns_));
  }
  const time_ns spread_ns = std::max(host_ns, system_.line.acknowledges_ns()) - system_.line.agent_least_ns;
  if (add(unasked_ns, longest_ns + spread_ns) > answers_apart_ns()) return;
  hosts_keep_up_ = true;
  for (size_t chain = 0; chain < size(); chain++)
    down_waits_[chain] = add(unasked_ns, loads_[chain].down.receipts * answer_ns_);
}

// ---- demands ----

// messages: of its own that it waits for.
Linear LinkModel::uplink(size_t chain, int64_t messages, time_ns window_ns, LinkParts &parts) const {
  parts.line_interference_ns.assign(size(), 0);
  // While somebody's publish waits nothing else runs, and it waits behind the frames of those whose publish does not.
  const bool somebody_waits = std::any_of(system_.chains.begin(), system_.chains.end(),
                                          [this](const LinkChain &other) { return waits_for_answer(other); });
  if (messages == 0 && !somebody_waits) return {};
  LinkParts by_level = parts;
  const Linear general = uplink_by_level(chain, messages, window_ns, by_level);
  if (somebody_waits) {
    parts = by_level;
    return general;
  }
  const time_ns wait_ns = up_waits_[chain];
  if (wait_ns >= general.value) {
    parts = by_level;
  } else {
    parts.control_ns = add(parts.control_ns, wait_ns);
  }
  return lesser(general, constant(wait_ns), window_ns);
}

// Questions whether the other side is there, where nothing else says so.
Linear LinkModel::signs_of_life(time_ns window_ns, Direction direction) const {
  const time_ns frame_ns = question_frame_ns(system_.line) + (direction == Direction::up ? gap_ns_ : 0);
  return scale(signs_of_life(window_ns), frame_ns);
}

Linear LinkModel::uplink_by_level(size_t chain, int64_t messages, time_ns window_ns, LinkParts &parts) const {
  const Load &self = loads_[chain];
  const time_ns control_ns = answer_ns_ + gap_ns_;
  Linear sum;
  time_ns blocking_ns = 0;
  for (const size_t other : here_) {
    if (other == chain) continue;
    const Load &load = loads_[other];
    if (!goes_first(other, chain)) {
      blocking_ns = std::max({blocking_ns, load.up.unit_ns, load.up.control > 0 ? control_ns : 0});
      continue;
    }
    const time_ns span = span_ns(other);
    const bool waited = waits_for_line(system_.chains[other]) || waits_for_answer(system_.chains[other]);
    const Seen part = seen(other, chain);
    Linear frames;
    if (waited) {
      frames = {};
    } else if (load.hold_ns > load.up.total_ns) {  // also for what others have counted, unless all of it is theirs
      frames = share(goes_on_[other] ? 0 : load.hold_ns, period(other), std::max(span, load.hold_ns), window_ns);
    } else if (one_release(other, chain)) {
      frames = within(other, chain, part.up_ns, window_ns);
    } else {
      frames = share(part.up_ns, period(other), std::max(span, part.up_ns), window_ns);
    }
    const Linear control = share(part.up_control * control_ns, period(other), span, window_ns);
    parts.line_interference_ns[other] = add(parts.line_interference_ns[other], frames.value);
    parts.control_ns = add(parts.control_ns, control.value);
    sum = sum + frames + control;
  }
  if (self.answers_first || add(add(window_ns, jitter(chain)), self.settling_ns) > period(chain)) {
    sum = sum + constant(self.up.control * control_ns);
    parts.control_ns = add(parts.control_ns, self.up.control * control_ns);
  }
  if (!alive_) {
    const Linear questions = signs_of_life(window_ns, Direction::up);
    parts.control_ns = add(parts.control_ns, questions.value);
    sum = sum + questions;
  }
  parts.line_blocking_ns += messages * blocking_ns;
  return sum + constant(messages * blocking_ns);
}

Linear LinkModel::downlink(size_t chain, time_ns window_ns, LinkParts &parts) const {
  if (loads_[chain].down.messages == 0) return {};
  LinkParts by_level = parts;
  const Linear general = downlink_by_level(chain, window_ns, by_level);
  const time_ns wait_ns = down_waits_[chain];
  if (wait_ns >= general.value) {
    parts = by_level;
  } else {
    parts.control_ns = add(parts.control_ns, wait_ns);
  }
  return lesser(general, constant(wait_ns), window_ns);
}

Linear LinkModel::downlink_by_level(size_t chain, time_ns window_ns, LinkParts &parts) const {
  const Load &self = loads_[chain];
  // Its own acknowledgments may stand before its answer, and those of the instance before.
  const bool late_answer = add(add(window_ns, jitter(chain)), self.settling_ns) > period(chain);
  const time_ns own_ns = self.down.control * answer_ns_ * (late_answer ? 2 : 1);
  Linear sum = constant(own_ns);
  parts.control_ns = add(parts.control_ns, own_ns);
  time_ns blocking_ns = 0;
  for (const size_t other : here_) {
    if (other == chain) continue;
    const Load &load = loads_[other];
    if (!goes_first(other, chain)) {
      blocking_ns = std::max({blocking_ns, load.down.unit_ns, load.down.control > 0 ? answer_ns_ : 0});
      continue;
    }
    const Seen part = seen(other, chain);
    const Linear control = share(part.down_control * answer_ns_, period(other), span_ns(other), window_ns);
    parts.control_ns = add(parts.control_ns, control.value);
    sum = sum + control;
    const Linear frames = within(other, chain, part.down_ns, window_ns);
    parts.line_interference_ns[other] = add(parts.line_interference_ns[other], frames.value);
    sum = sum + frames;
  }
  if (!alive_) {
    const Linear questions = signs_of_life(window_ns, Direction::down);
    parts.control_ns = add(parts.control_ns, questions.value);
    sum = sum + questions;
  }
  parts.line_blocking_ns += self.down.messages * blocking_ns;
  return sum + constant(self.down.messages * blocking_ns);
}
}  // namespace tide::analysis
