// SPDX-License-Identifier: Apache-2.0
// What one instance of each chain asks of the client, the line and the host.
#include <algorithm>

#include "analysis/link_model.h"

namespace tide::analysis {
namespace {

constexpr time_ns millisecond_ns = 1'000'000;
constexpr time_ns longest_delay_ns = 2000 * millisecond_ns;  // of a measured HEARTBEAT
constexpr int most_passes = 2000;
constexpr time_ns longest_event_ns = 1000 * millisecond_ns;      // until a batch executor looks again
constexpr time_ns longest_wait_ns = 1'000'000 * millisecond_ns;  // for an acknowledgment; beyond it nothing has a bound

// HEARTBEATs of a stream that waits so long for its acknowledgment.
std::int64_t heartbeats(const Questions &questions, time_ns pending_ns) {
  const time_ns wait_ns = std::min(pending_ns, longest_wait_ns);
  const bool measured = questions.delay_ns < 0;
  const time_ns longest_step_ns = measured ? std::max(questions.period_ns, questions.floor_ns) : questions.period_ns;
  time_ns at_ns = measured ? questions.floor_ns : questions.delay_ns;
  time_ns step_ns = measured ? std::min(2 * questions.floor_ns, longest_step_ns) : longest_step_ns;
  std::int64_t count = 0;
  for (; at_ns <= wait_ns && step_ns < longest_step_ns; count++) {
    at_ns += step_ns;
    step_ns = std::min(2 * step_ns, longest_step_ns);
  }
  return at_ns <= wait_ns ? count + 1 + (wait_ns - at_ns) / step_ns : count;
}

// Until a side asks that has not heard of what was lost, the first time or again.
time_ns silence_ns(const Questions &questions) {
  return std::max(questions.delay_ns < 0 ? longest_delay_ns : questions.delay_ns, questions.period_ns);
}
}  // namespace

void LinkModel::cross(Load &load, Direction direction, const LinkCallback &from) const {
  const Message sent = message(system_.line, direction, from.payload_bytes);
  Traffic &traffic = direction == Direction::up ? load.up : load.down;
  const time_ns gap_ns = direction == Direction::up ? gap_ns_ : 0;
  traffic.messages++;
  traffic.frames += sent.frames;
  traffic.total_ns += sent.total_ns + sent.frames * gap_ns;
  traffic.unit_ns = std::max(traffic.unit_ns, sent.unit_ns + gap_ns);
  traffic.least_ns += sent.least_ns;
}

// One walk along the chain.
Load LinkModel::visit_load(const LinkChain &chain) const {
  const Client &client = system_.client;
  const Line &line = system_.line;
  Load load;
  load.hosts_ns.resize(system_.hosts.size());
  for (std::size_t index = 0; index < chain.callbacks.size(); index++) {
    const LinkCallback &callback = chain.callbacks[index];
    const bool has_next = index + 1 < chain.callbacks.size();
    const bool here = callback.place == on_client;
    const time_ns least_ns =
        callback.least_ns +
        (here && client.fixed_costs ? client.dispatch_ns + (callback.payload_bytes > 0 ? client.submit_ns : 0) : 0);
    if (load.down.messages == 0) load.before_ns += least_ns;
    load.behind_ns += least_ns;
    if (here) {
      const time_ns taking_ns = index == 0 ? 0 : client.process_ns;
      const time_ns running_ns =
          client.dispatch_ns + callback.execution_ns + (callback.payload_bytes > 0 ? client.submit_ns : 0);
      const std::int64_t frames =
          index == 0 ? 0 : message(line, Direction::down, chain.callbacks[index - 1].payload_bytes).frames;
      const time_ns visit_ns = running_ns + frames * taking_ns;
      load.visits++;
      load.client_ns += visit_ns;
      load.visit_ns = std::max(load.visit_ns, visit_ns);
      load.unit_ns = std::max({load.unit_ns, running_ns, taking_ns});
      (index == 0 ? load.first_ns : load.last_ns) = visit_ns;
      load.taking_ns = frames * taking_ns;
    } else {
      load.hosts_ns[static_cast<std::size_t>(callback.place)] += callback.execution_ns;
      load.host_ns += callback.execution_ns;
      load.host_least_ns += callback.least_ns;
    }
    if (callback.payload_bytes == 0) continue;
    const bool next_here = has_next && chain.callbacks[index + 1].place == on_client;
    if (here) {
      cross(load, Direction::up, callback);
      load.host_ns += has_next ? line.agent_most_ns : 0;
      load.host_least_ns += has_next ? line.agent_least_ns : 0;
      if (load.down.messages == 0)
        load.before_ns += message(line, Direction::up, callback.payload_bytes).least_ns + line.agent_least_ns;
    }
    if (next_here) {
      if (load.down.messages == 0) load.before_ns += message(line, Direction::down, callback.payload_bytes).least_ns;
      cross(load, Direction::down, callback);
      load.host_ns += line.return_most_ns;
      load.behind_ns = 0;
    }
    if (!here && has_next && !next_here) load.host_ns += line.host_hop_ns;
  }
  load.pair = load.visits == 2 && chain.callbacks.front().place == on_client &&
              chain.callbacks.back().place == on_client && chain.callbacks.back().payload_bytes == 0;
  return load;
}

// How long an answer is not known to have come, at most: until it is taken, and its ACKNACK has crossed.
time_ns LinkModel::answer_pending_ns(std::size_t chain) const {
  const Load &self = loads_[chain];
  const time_ns control_ns = answer_ns_ + gap_ns_;
  time_ns unit_ns = control_ns;
  for (const Load &load : loads_) unit_ns = std::max(unit_ns, load.up.unit_ns);
  const time_ns own_ns = unit_ns + self.up.total_ns + (self.up.control + 1) * control_ns;
  time_ns window_ns = own_ns, next_ns = own_ns;
  do {
    window_ns = next_ns;
    next_ns = own_ns;
    for (std::size_t other = 0; other < size(); other++) {
      if (!goes_first(other, chain)) continue;
      const Load &load = loads_[other];
      const time_ns span_ns = std::min(add(responses_[other], load.answer_ns), longest_wait_ns);
      const time_ns load_ns = load.up.total_ns + load.up.control * control_ns;
      next_ns = add(next_ns, share(load_ns, period(other), span_ns, window_ns).value);
    }
  } while (next_ns > window_ns && next_ns < longest_wait_ns);
  const time_ns taken_ns = std::min(responses_[chain], period(chain)) - self.before_ns - self.behind_ns;
  return add(add(std::max<time_ns>(taken_ns, 0), next_ns), system_.line.agent_most_ns);
}

// How often an instance asks and is asked whether something has arrived. Waiting for an answer takes longer the more is
// asked, so this is a fixed point of its own.
void LinkModel::count_control() {
  const Protocol &protocol = system_.protocol;
  const bool reliable = std::any_of(system_.chains.begin(), system_.chains.end(), [](const LinkChain &chain) {
    return chain.uplink_reliable || chain.downlink_reliable;
  });
  control_counted_ = !reliable;
  for (int pass = 0; pass < most_passes && !control_counted_; pass++) {
    time_ns up_control_ns = 0, down_control_ns = 0, up_ns = 0, down_unit_ns = 0, up_unit_ns = answer_ns_ + gap_ns_;
    for (const Load &load : loads_) {
      up_control_ns += load.up.control * (answer_ns_ + gap_ns_);
      down_control_ns += load.down.control * answer_ns_;
      up_ns += load.up.total_ns;
      up_unit_ns = std::max(up_unit_ns, load.up.unit_ns);
      down_unit_ns = std::max(down_unit_ns, load.down.unit_ns);
    }
    bool changed = false;
    for (std::size_t chain = 0; chain < size(); chain++) {
      const LinkChain &self = system_.chains[chain];
      Load &load = loads_[chain];
      const time_ns way_ns = system_.line.agent_most_ns + down_unit_ns + down_control_ns + answer_ns_ + gap_ns_;
      const bool asked = protocol.acknowledges == Acknowledges::asked;
      const time_ns asking_ns = asked ? std::max<time_ns>(protocol.client.delay_ns, 0) + up_unit_ns + up_ns +
                                            up_control_ns + answer_ns_ + gap_ns_
                                      : 0;
      const time_ns silent_ns = std::max(self.uplink_reliable ? silence_ns(protocol.client) : 0,
                                         self.downlink_reliable ? silence_ns(protocol.agent) : 0);
      const time_ns recovery_ns =
          silent_ns + 2 * (up_unit_ns + down_unit_ns) + up_control_ns + way_ns + load.up.unit_ns + load.down.unit_ns;
      const std::int64_t lost = protocol.losses * (is_batch() ? static_cast<std::int64_t>(size()) : 1);
      Traffic up = load.up, down = load.down;
      up.control = down.control = up.receipts = down.receipts = 0;
      load.losses_ns = self.uplink_reliable || self.downlink_reliable ? multiply(lost, recovery_ns) : 0;
      if (self.uplink_reliable && up.messages > 0) {
        load.answer_ns = add(way_ns + asking_ns, load.losses_ns);
        // Nothing less urgent stands before the question then but an answer that has begun; what is more urgent keeps
        // the line for itself.
        const time_ns held_ns = asked ? std::max<time_ns>(protocol.client.delay_ns, 0) + 2 * (answer_ns_ + gap_ns_) : 0;
        load.hold_ns = add(way_ns + held_ns, load.losses_ns);
        const std::int64_t asks = heartbeats(protocol.client, load.answer_ns);
        up.control += up.messages * asks;
        down.receipts = asked ? 0 : up.frames;
        down.control += up.messages * asks + down.receipts + protocol.losses;
      }
      if (self.downlink_reliable && down.messages > 0) {
        const std::int64_t asks = heartbeats(protocol.agent, add(answer_pending_ns(chain), load.losses_ns));
        down.control += down.messages * asks;
        up.receipts = down.frames;
        up.control += down.messages * asks + up.receipts + protocol.losses;
      }
      changed = changed || up.control != load.up.control || down.control != load.down.control;
      load.up = up;
      load.down = down;
    }
    control_counted_ = !changed;
  }
}

void LinkModel::derive(std::size_t chain) {
  const Client &client = system_.client;
  const LinkChain &self = system_.chains[chain];
  Load &load = loads_[chain];
  load.interrupts_ns = (load.down.frames + load.down.control) * client.interrupt_receive_ns +
                       (load.up.frames + load.up.control) * client.interrupt_complete_ns;
  const bool reliable = self.uplink_reliable || self.downlink_reliable;
  if (reliable) load.up.total_ns += system_.protocol.losses * load.up.unit_ns;
  if (reliable) load.down.total_ns += system_.protocol.losses * load.down.unit_ns;
  const bool holds = system_.protocol.hold && self.uplink_reliable && !is_batch();
  load.hold_ns = add(load.up.total_ns, holds ? multiply(load.up.messages, load.hold_ns) : 0);
  // While such a publish waits nothing else runs.
  time_ns waiting_ns = 0;
  if (waits_for_line(self) || waits_for_answer(self)) {
    waiting_ns = load.up.total_ns;
    for (const Load &other : loads_) waiting_ns += other.up.control * (answer_ns_ + gap_ns_);
  }
  if (waits_for_answer(self)) waiting_ns = add(waiting_ns, multiply(load.up.messages, load.answer_ns));
  load.client_ns = add(load.client_ns, waiting_ns);
  load.visit_ns = add(load.visit_ns, waiting_ns);
  // Samples are stored outside a wait only while a publish waits for its acknowledgment.
  const bool stored = std::any_of(system_.chains.begin(), system_.chains.end(),
                                  [this](const LinkChain &other) { return waits_for_answer(other); });
  if (stored && client.waits_for_new_data) {
    time_ns event_ns = longest_event_ns;
    for (std::size_t other = 0; other < size(); other++) event_ns = std::min(event_ns, period(other));
    load.new_data_ns = load.down.messages * event_ns;
  }
}

void LinkModel::make_loads() {
  for (std::size_t chain = 0; chain < size(); chain++) loads_[chain] = visit_load(system_.chains[chain]);
  count_control();
  for (std::size_t chain = 0; chain < size(); chain++) derive(chain);
  alive_ = is_alive_anyway();
  find_uplink_waits();
  find_downlink_waits();
}

// Something arrives in every silence_ns, so that nobody asks whether the other side is there.
bool LinkModel::is_alive_anyway() const {
  for (std::size_t chain = 0; chain < size(); chain++) {
    if (loads_[chain].down.messages > 0 && add(period(chain), responses_[chain]) <= system_.protocol.silence_ns)
      return true;
  }
  return std::all_of(loads_.begin(), loads_.end(),
                     [](const Load &load) { return load.up.messages + load.down.messages == 0; });
}
}  // namespace tide::analysis
