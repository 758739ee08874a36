// SPDX-License-Identifier: Apache-2.0
// Names: a chain's `visit` of the client is what it executes there between two waits for the line. Loads are of one
// instance. All demands are functions of a window that begins with the release; the least window that they fit into is
// the bound.
#include "analysis/link_bound.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "analysis/frames.h"
#include "analysis/linear.h"

namespace tide::analysis {
namespace {

constexpr time_ns millisecond_ns = 1'000'000;
constexpr time_ns shortest_delay_ns = 2 * millisecond_ns;    // of an adaptive HEARTBEAT
constexpr time_ns longest_delay_ns = 2000 * millisecond_ns;  // the same
constexpr time_ns agent_period_ns = 100 * millisecond_ns;    // between the agent's HEARTBEATs
constexpr time_ns longest_wait_ns = 1000 * millisecond_ns;   // of a batch executor for new data
constexpr int most_passes = 2000;
constexpr int most_steps = 200'000;

// What one chain asks of one direction of the line.
struct Traffic {
  std::int64_t messages = 0, frames = 0, control = 0;  // control: ACKNACKs and HEARTBEATs
  time_ns total_ns = 0, unit_ns = 0, least_ns = 0;
};

struct Load {
  std::int64_t visits = 0;
  time_ns client_ns = 0;              // everything on the client
  time_ns unit_ns = 0;                // longest piece that is not preempted
  time_ns visit_ns = 0;               // longest visit
  time_ns first_ns = 0, last_ns = 0;  // the visits of a pair
  time_ns taking_ns = 0;              // of the frames before the last visit
  bool pair = false;                  // starts and ends on the client, elsewhere in between
  Traffic up, down;
  std::vector<time_ns> hosts_ns;           // by host executor
  time_ns host_ns = 0, host_least_ns = 0;  // the way through the agent and the chain's own host callbacks
  time_ns answer_ns = 0;                   // from the end of a message to its acknowledgment
  time_ns hold_ns = 0;                     // how long it may keep the line to itself
  time_ns interrupts_ns = 0;
  time_ns losses_ns = 0;
  time_ns new_data_ns = 0;  // batch: stored samples wait for the next event
  time_ns remote_least_ns() const { return up.least_ns + host_least_ns + down.least_ns; }
};

// Executions of a chain in a window, when an instance executes `load_ns` within `span_ns` of its release.
Linear share(time_ns load_ns, time_ns period_ns, time_ns span_ns, time_ns window_ns) {
  if (load_ns == 0) return {};
  const time_ns length_ns = window_ns + std::max<time_ns>(span_ns - load_ns, 0);
  const time_ns count = length_ns / period_ns;
  const time_ns rest_ns = length_ns % period_ns;
  const time_ns always = load_ns / period_ns;
  const time_ns part_ns = load_ns % period_ns;
  const time_ns value_ns = add(multiply(count, load_ns), multiply(always, rest_ns));
  if (part_ns == 0) return {value_ns, always, never_ns};
  if (rest_ns < part_ns) return {add(value_ns, rest_ns), always + 1, window_ns + part_ns - rest_ns};
  return {add(value_ns, part_ns), always, window_ns + period_ns - rest_ns};
}

// HEARTBEATs of a stream that waits so long for its acknowledgment.
std::int64_t heartbeats(const Protocol &protocol, time_ns delay_ns, time_ns period_ns, time_ns wait_ns) {
  const bool adaptive = delay_ns < 0;
  if (adaptive && protocol.heartbeats_for_losses) return protocol.losses;
  time_ns at_ns = adaptive ? shortest_delay_ns : delay_ns;
  time_ns step_ns = adaptive ? shortest_delay_ns : period_ns;
  std::int64_t count = 0;
  while (at_ns <= wait_ns && count < 64) {
    count++;
    if (adaptive) step_ns = std::min(2 * step_ns, std::max(period_ns, shortest_delay_ns));
    at_ns += step_ns;
  }
  return count;
}

class Model {
 public:
  explicit Model(const LinkSystem &system)
      : system_(system), responses_(size(), 0), remotes_(size(), 0), loads_(size()) {
    answer_ns_ = answer_frame_ns(system.line);
    gap_ns_ = system.client.interrupt_receive_ns + system.client.interrupt_complete_ns;
  }

  LinkResults run();

 private:
  struct Demand {
    std::vector<Linear> cases;
    Linear up, down, host, remote;
    LinkParts parts;
  };

  std::size_t size() const { return system_.chains.size(); }
  bool is_batch() const { return system_.client.policy == ClientPolicy::batch; }
  bool goes_first(std::size_t other, std::size_t chain) const {
    return other != chain && (is_batch() || system_.chains[other].level > system_.chains[chain].level);
  }
  time_ns period(std::size_t chain) const { return system_.chains[chain].period_ns; }
  bool waits_for_answer(const LinkChain &chain) const {
    return is_batch() && system_.client.send != Send::asynchronous && chain.uplink_reliable;
  }
  bool waits_for_line(const LinkChain &chain) const {
    return is_batch() && system_.client.send == Send::blocking && !chain.uplink_reliable;
  }

  void make_loads();
  Load visit_load(const LinkChain &chain) const;
  void cross(Load &load, Direction direction, const LinkCallback &from) const;
  void count_control();
  void derive(std::size_t chain);
  bool uplink_keeps_up() const;
  bool downlink_keeps_up() const;
  bool is_alive_anyway() const;
  std::vector<std::size_t> dependences(std::size_t chain) const;

  Linear client_interference(std::size_t chain, time_ns window_ns, LinkParts &parts) const;
  Linear interrupts(std::size_t chain, time_ns window_ns) const;
  Linear uplink(std::size_t chain, time_ns window_ns, LinkParts &parts) const;
  Linear downlink(std::size_t chain, time_ns window_ns, LinkParts &parts) const;
  Linear host(std::size_t chain, time_ns window_ns) const;
  time_ns client_blocking(std::size_t chain) const;
  bool pairs_are_apart(std::size_t chain, time_ns window_ns, time_ns interrupts_ns) const;
  Demand demand(std::size_t chain, time_ns window_ns) const;
  time_ns solve(std::size_t chain) const;
  time_ns settled(std::size_t chain, time_ns window_ns) const;
  void explain(std::size_t chain, LinkResult &result) const;
  std::vector<std::string> assumptions() const;

  const LinkSystem &system_;
  std::vector<time_ns> responses_;  // never_ns: late
  std::vector<time_ns> remotes_;    // from the end of the first visit until the answer is there
  std::vector<Load> loads_;
  time_ns answer_ns_ = 0, gap_ns_ = 0;
  bool uplink_keeps_up_ = false, downlink_keeps_up_ = false, alive_ = false;
};

// ---- loads ----

void Model::cross(Load &load, Direction direction, const LinkCallback &from) const {
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
Load Model::visit_load(const LinkChain &chain) const {
  const Client &client = system_.client;
  const Line &line = system_.line;
  Load load;
  load.hosts_ns.resize(system_.hosts.size());
  for (std::size_t index = 0; index < chain.callbacks.size(); index++) {
    const LinkCallback &callback = chain.callbacks[index];
    const bool has_next = index + 1 < chain.callbacks.size();
    const bool here = callback.place == on_client;
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
    }
    if (next_here) {
      cross(load, Direction::down, callback);
      load.host_ns += line.return_most_ns;
    }
    if (!here && has_next && !next_here) load.host_ns += line.host_hop_ns;
  }
  load.pair = load.visits == 2 && chain.callbacks.front().place == on_client &&
              chain.callbacks.back().place == on_client && chain.callbacks.back().payload_bytes == 0;
  return load;
}

// How often an instance asks and is asked whether something has arrived. Waiting for an answer takes longer the more is
// asked, so this is a fixed point of its own.
void Model::count_control() {
  const Protocol &protocol = system_.protocol;
  const bool reliable = std::any_of(system_.chains.begin(), system_.chains.end(), [](const LinkChain &chain) {
    return chain.uplink_reliable || chain.downlink_reliable;
  });
  if (!reliable) return;
  for (int pass = 0; pass < most_passes; pass++) {
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
      const time_ns asking_ns = asked ? std::max<time_ns>(protocol.heartbeat_delay_ns, 0) + up_unit_ns + up_ns +
                                            up_control_ns + answer_ns_ + gap_ns_
                                      : 0;
      const time_ns recovery_ns =
          std::max(protocol.heartbeat_delay_ns < 0 ? longest_delay_ns : protocol.heartbeat_delay_ns,
                   std::max(protocol.heartbeat_period_ns, agent_period_ns)) +
          2 * (up_unit_ns + down_unit_ns) + up_control_ns + way_ns + load.up.unit_ns + load.down.unit_ns;
      const std::int64_t lost = protocol.losses * (is_batch() ? static_cast<std::int64_t>(size()) : 1);
      Traffic up = load.up, down = load.down;
      up.control = down.control = 0;
      load.losses_ns = self.uplink_reliable || self.downlink_reliable ? multiply(lost, recovery_ns) : 0;
      if (self.uplink_reliable && up.messages > 0) {
        load.answer_ns = add(way_ns + asking_ns, load.losses_ns);
        const std::int64_t asks =
            heartbeats(protocol, protocol.heartbeat_delay_ns, protocol.heartbeat_period_ns, load.answer_ns);
        up.control += up.messages * asks;
        down.control += up.messages * asks + (asked ? 0 : up.frames) + protocol.losses;
      }
      if (self.downlink_reliable && down.messages > 0) {
        const time_ns taken_ns = std::min(responses_[chain], period(chain));
        const time_ns wait_ns = add(taken_ns + up_unit_ns + up_ns + up_control_ns + answer_ns_, load.losses_ns);
        const std::int64_t asks = heartbeats(protocol, -1, agent_period_ns, wait_ns);
        down.control += down.messages * asks;
        up.control += down.messages * asks + down.frames + protocol.losses;
      }
      changed = changed || up.control != load.up.control || down.control != load.down.control;
      load.up.control = up.control;
      load.down.control = down.control;
    }
    if (!changed) return;
  }
}

void Model::derive(std::size_t chain) {
  const Client &client = system_.client;
  const LinkChain &self = system_.chains[chain];
  Load &load = loads_[chain];
  load.interrupts_ns = (load.down.frames + load.down.control) * client.interrupt_receive_ns +
                       (load.up.frames + load.up.control) * client.interrupt_complete_ns;
  const bool reliable = self.uplink_reliable || self.downlink_reliable;
  if (reliable) load.up.total_ns += system_.protocol.losses * load.up.unit_ns;
  if (reliable) load.down.total_ns += system_.protocol.losses * load.down.unit_ns;
  load.hold_ns = load.up.total_ns;
  if (system_.protocol.hold && self.uplink_reliable && !is_batch())
    load.hold_ns = add(load.hold_ns, multiply(load.up.messages, load.answer_ns));
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
    time_ns event_ns = longest_wait_ns;
    for (std::size_t other = 0; other < size(); other++) event_ns = std::min(event_ns, period(other));
    load.new_data_ns = load.down.messages * event_ns;
  }
}

void Model::make_loads() {
  for (std::size_t chain = 0; chain < size(); chain++) loads_[chain] = visit_load(system_.chains[chain]);
  count_control();
  for (std::size_t chain = 0; chain < size(); chain++) derive(chain);
  alive_ = is_alive_anyway();
  uplink_keeps_up_ = uplink_keeps_up();
  downlink_keeps_up_ = downlink_keeps_up();
}

// Something arrives in every silence_ns, so that nobody asks whether the other side is there.
bool Model::is_alive_anyway() const {
  for (std::size_t chain = 0; chain < size(); chain++) {
    if (loads_[chain].down.messages > 0 && add(period(chain), responses_[chain]) <= system_.protocol.silence_ns)
      return true;
  }
  return std::all_of(loads_.begin(), loads_.end(),
                     [](const Load &load) { return load.up.messages + load.down.messages == 0; });
}

// One processor makes all messages, one callback after the other: when the shortest such callback takes longer than the
// longest message, the line is idle whenever a message comes.
bool Model::uplink_keeps_up() const {
  const Client &client = system_.client;
  if (client.policy == ClientPolicy::lanes || !alive_) return false;
  const time_ns costs_ns = client.fixed_costs ? client.dispatch_ns + client.submit_ns : 0;
  time_ns shortest_ns = never_ns, longest_ns = 0;
  for (std::size_t chain = 0; chain < size(); chain++) {
    if (loads_[chain].up.control > 0) return false;
    for (const LinkCallback &callback : system_.chains[chain].callbacks) {
      if (callback.place != on_client || callback.payload_bytes == 0) continue;
      const Message sent = message(system_.line, Direction::up, callback.payload_bytes);
      shortest_ns = std::min(shortest_ns, callback.least_ns + costs_ns);
      longest_ns = std::max(longest_ns, sent.total_ns + sent.frames * gap_ns_);
    }
  }
  return longest_ns <= shortest_ns;
}

// Every answer follows a message that came over the line; those are at least a message apart, less what the host's
// latency varies.
bool Model::downlink_keeps_up() const {
  if (!alive_) return false;
  time_ns apart_ns = never_ns, longest_ns = 0, most_ns = 0;
  for (std::size_t chain = 0; chain < size(); chain++) {
    const LinkChain &self = system_.chains[chain];
    const Load &load = loads_[chain];
    if (load.down.control > 0) return false;
    if (load.up.messages > 0) apart_ns = std::min(apart_ns, load.up.messages > 1 ? 0 : load.up.least_ns);
    if (load.down.messages == 0) continue;
    if (!load.pair || load.down.messages > 1) return false;
    longest_ns = std::max(longest_ns, load.down.total_ns);
    time_ns host_ns = 0;
    for (const LinkCallback &callback : self.callbacks) {
      if (callback.place == on_client) continue;
      if (!system_.hosts[static_cast<std::size_t>(callback.place)].own_cores) return false;
      host_ns += callback.execution_ns;
    }
    most_ns = std::max(most_ns, host_ns + system_.line.return_most_ns);
  }
  const time_ns spread_ns = system_.line.agent_most_ns - system_.line.agent_least_ns + most_ns;
  return longest_ns + spread_ns <= apart_ns;
}

// ---- demands ----

Linear Model::client_interference(std::size_t chain, time_ns window_ns, LinkParts &parts) const {
  Linear sum;
  parts.client_interference_ns.assign(size(), 0);
  for (std::size_t other = 0; other < size(); other++) {
    if (!goes_first(other, chain)) continue;
    const time_ns load_ns = loads_[other].client_ns;
    const Linear executed = share(load_ns, period(other), responses_[other], window_ns);
    parts.client_interference_ns[other] = executed.value;
    const time_ns punctual_ns = share(load_ns, period(other), load_ns, window_ns).value;
    parts.lateness_ns = add(parts.lateness_ns, executed.value - punctual_ns);
    sum = sum + executed;
  }
  return sum;
}

Linear Model::interrupts(std::size_t chain, time_ns window_ns) const {
  Linear sum = constant(2 * loads_[chain].interrupts_ns);
  for (std::size_t other = 0; other < size(); other++) {
    if (other == chain || loads_[other].interrupts_ns == 0) continue;
    sum = sum +
          share(loads_[other].interrupts_ns, period(other), add(responses_[other], loads_[other].answer_ns), window_ns);
  }
  return sum;
}

Linear Model::uplink(std::size_t chain, time_ns window_ns, LinkParts &parts) const {
  parts.line_interference_ns.assign(size(), 0);
  const Load &self = loads_[chain];
  if (self.up.messages == 0 || uplink_keeps_up_) return {};
  const time_ns control_ns = answer_ns_ + gap_ns_;
  Linear sum;
  time_ns blocking_ns = 0;
  for (std::size_t other = 0; other < size(); other++) {
    if (other == chain) continue;
    const Load &load = loads_[other];
    if (!goes_first(other, chain)) {
      blocking_ns = std::max({blocking_ns, load.up.unit_ns, load.up.control > 0 ? control_ns : 0});
      continue;
    }
    const bool tail = system_.chains[other].callbacks.back().payload_bytes > 0;
    const time_ns span_ns = add(add(responses_[other], load.answer_ns), tail ? period(other) : 0);
    const bool waited = waits_for_line(system_.chains[other]) || waits_for_answer(system_.chains[other]);
    const Linear frames =
        waited ? Linear{} : share(load.hold_ns, period(other), std::max(span_ns, load.hold_ns), window_ns);
    const Linear control = share(load.up.control * control_ns, period(other), span_ns, window_ns);
    parts.line_interference_ns[other] = add(parts.line_interference_ns[other], frames.value);
    parts.control_ns = add(parts.control_ns, control.value);
    sum = sum + frames + control;
  }
  if (add(window_ns, self.answer_ns) > period(chain)) {
    sum = sum + constant(self.up.control * control_ns);
    parts.control_ns = add(parts.control_ns, self.up.control * control_ns);
  }
  if (!alive_) {
    const Linear questions = scale(stair(window_ns, system_.protocol.silence_ns, system_.protocol.silence_ns / 2),
                                   question_frame_ns(system_.line) + gap_ns_);
    parts.control_ns = add(parts.control_ns, questions.value);
    sum = sum + questions;
  }
  parts.line_blocking_ns += self.up.messages * blocking_ns;
  return sum + constant(self.up.messages * blocking_ns);
}

Linear Model::downlink(std::size_t chain, time_ns window_ns, LinkParts &parts) const {
  const Load &self = loads_[chain];
  if (self.down.messages == 0 || downlink_keeps_up_) return {};
  // Its own acknowledgments may stand before its answer, and those of the instance before.
  const bool late_answer = add(window_ns, self.answer_ns) > period(chain);
  const time_ns own_ns = self.down.control * answer_ns_ * (late_answer ? 2 : 1);
  Linear sum = constant(own_ns);
  parts.control_ns = add(parts.control_ns, own_ns);
  time_ns blocking_ns = 0;
  for (std::size_t other = 0; other < size(); other++) {
    if (other == chain) continue;
    const Load &load = loads_[other];
    const time_ns span_ns = add(responses_[other], load.answer_ns);
    const Linear control = share(load.down.control * answer_ns_, period(other), span_ns, window_ns);
    parts.control_ns = add(parts.control_ns, control.value);
    sum = sum + control;
    if (!goes_first(other, chain)) {
      blocking_ns = std::max(blocking_ns, load.down.unit_ns);
      continue;
    }
    const Linear frames = share(load.down.total_ns, period(other), responses_[other], window_ns);
    parts.line_interference_ns[other] = add(parts.line_interference_ns[other], frames.value);
    sum = sum + frames;
  }
  if (!alive_) {
    const Linear questions = scale(stair(window_ns, system_.protocol.silence_ns, system_.protocol.silence_ns / 2),
                                   question_frame_ns(system_.line));
    parts.control_ns = add(parts.control_ns, questions.value);
    sum = sum + questions;
  }
  parts.line_blocking_ns += self.down.messages * blocking_ns;
  return sum + constant(self.down.messages * blocking_ns);
}

// While a callback waits all lanes of its executor run others.
Linear Model::host(std::size_t chain, time_ns window_ns) const {
  Linear sum;
  for (std::size_t place = 0; place < system_.hosts.size(); place++) {
    if (system_.hosts[place].own_cores || loads_[chain].hosts_ns[place] == 0) continue;
    Linear others;
    for (std::size_t other = 0; other < size(); other++) {
      if (other != chain)
        others = others + share(loads_[other].hosts_ns[place], period(other), responses_[other], window_ns);
    }
    const time_ns lanes = system_.hosts[place].lanes;
    sum = sum + (lanes == 1 ? others : Linear{divide_up(others.value, lanes), 0, window_ns});
  }
  return sum;
}

time_ns Model::client_blocking(std::size_t chain) const {
  time_ns longest_ns = 0;
  if (system_.client.policy != ClientPolicy::tide) return 0;
  for (std::size_t other = 0; other < size(); other++) {
    if (other != chain && !goes_first(other, chain)) longest_ns = std::max(longest_ns, loads_[other].unit_ns);
  }
  return longest_ns;
}

// No busy stretch of the client is long enough to hold both visits of one instance of a more urgent chain: between the
// two of the pair that lies innermost, every other instance has one visit at most.
bool Model::pairs_are_apart(std::size_t chain, time_ns window_ns, time_ns interrupts_ns) const {
  const Load &self = loads_[chain];
  const bool preemptive = system_.client.policy == ClientPolicy::lanes;
  for (std::size_t pair = 0; pair < size(); pair++) {
    if (!goes_first(pair, chain) || !loads_[pair].pair) continue;
    // Of its own visits only what may lie between two others that both delay it.
    time_ns between_ns = interrupts_ns + (preemptive ? self.client_ns : self.taking_ns);
    for (std::size_t other = 0; other < size(); other++) {
      if (other == pair || !goes_first(other, chain)) continue;
      const Load &load = loads_[other];
      const time_ns count = stair(window_ns, responses_[other], period(other)).value;
      between_ns = add(between_ns, multiply(count, load.pair ? load.visit_ns : load.client_ns));
    }
    if (between_ns >= loads_[pair].remote_least_ns()) return false;
  }
  return true;
}

Model::Demand Model::demand(std::size_t chain, time_ns window_ns) const {
  const Load &self = loads_[chain];
  Demand result;
  LinkParts &parts = result.parts;
  const Linear client = client_interference(chain, window_ns, parts);
  const Linear interrupt = interrupts(chain, window_ns);
  const Linear up = uplink(chain, window_ns, parts);
  const Linear down = downlink(chain, window_ns, parts);
  const Linear host_wait = host(chain, window_ns);
  const time_ns blocking_ns = client_blocking(chain);
  const bool waited = waits_for_line(system_.chains[chain]) || waits_for_answer(system_.chains[chain]);
  // A publish that waits has put the frame on the line already, and may hear of it later than the answer comes.
  const time_ns line_ns = self.down.total_ns + (waited ? 0 : self.up.total_ns);
  result.remote = constant(line_ns + self.host_ns + self.losses_ns) + up + down + host_wait;
  parts.execution_ns = self.client_ns;
  parts.line_ns = line_ns;
  parts.host_ns = self.host_ns;
  parts.client_blocking_ns = self.visits * blocking_ns + self.new_data_ns;
  parts.interrupts_ns = interrupt.value;
  parts.host_wait_ns = host_wait.value;
  parts.losses_ns = self.losses_ns;
  const Linear base = constant(self.client_ns + parts.client_blocking_ns) + interrupt;
  const Linear generic = base + result.remote + client;
  if (!self.pair || is_batch()) {
    result.cases = {generic};
    return result;
  }
  // The client is busy with this chain or more urgent ones all the way: the line does not count.
  const Linear busy = constant(self.client_ns + blocking_ns) + interrupt + client;
  if (!pairs_are_apart(chain, window_ns, interrupt.value)) {
    result.cases = {lesser(busy, generic, window_ns), generic};
    return result;
  }
  // It is not: each instance of a more urgent chain is in the way once ...
  Linear once;
  time_ns latest_ns = 0;
  for (std::size_t other = 0; other < size(); other++) {
    if (!goes_first(other, chain)) continue;
    const Load &load = loads_[other];
    const Linear all = share(load.client_ns, period(other), responses_[other], window_ns);
    const Linear count = stair(window_ns, responses_[other], period(other));
    once = once + (load.pair ? lesser(all, scale(count, load.visit_ns), window_ns) : all);
    if (load.pair) latest_ns = std::max(latest_ns, remotes_[other]);
  }
  // ... or one of them twice, and then its answer was there soon after it had been in the way for the first time.
  const bool preemptive = system_.client.policy == ClientPolicy::lanes;
  const Linear first = constant(self.first_ns);
  const Linear twice = preemptive ? first + lesser(result.remote, constant(latest_ns), window_ns)
                                  : lesser(first + result.remote, constant(latest_ns), window_ns);
  result.cases = {
      busy, lesser(base + result.remote + once, generic, window_ns),
      lesser(constant(self.last_ns + parts.client_blocking_ns) + interrupt + client + twice, generic, window_ns)};
  return result;
}

// ---- the solution ----

std::vector<std::size_t> Model::dependences(std::size_t chain) const {
  std::vector<std::size_t> found;
  for (std::size_t other = 0; other < size(); other++) {
    if (other == chain) continue;
    const Load &load = loads_[other];
    bool shares_host = false;
    for (std::size_t place = 0; place < system_.hosts.size(); place++) {
      shares_host = shares_host ||
                    (!system_.hosts[place].own_cores && load.hosts_ns[place] > 0 && loads_[chain].hosts_ns[place] > 0);
    }
    if (goes_first(other, chain) || shares_host || load.interrupts_ns > 0 || load.down.control > 0 ||
        (load.up.control > 0 && loads_[chain].up.control > 0))
      found.push_back(other);
  }
  return found;
}

time_ns Model::solve(std::size_t chain) const {
  for (const std::size_t other : dependences(chain)) {
    if (responses_[other] == never_ns) return never_ns;
  }
  time_ns window_ns = std::max<time_ns>(responses_[chain], 1);
  for (int step = 0; step < most_steps && window_ns <= period(chain); step++) {
    time_ns next_ns = window_ns;
    for (const Linear &each : demand(chain, window_ns).cases) {
      if (each.value <= window_ns) continue;
      const time_ns behind_ns = each.slope >= 1 ? each.until_ns + 1 : 0;
      next_ns = std::max({next_ns, each.value, std::min(behind_ns, add(period(chain), 1))});
    }
    if (next_ns == window_ns) return settled(chain, window_ns);
    window_ns = next_ns;
  }
  return never_ns;
}

// A step behind a corner may go a little too far; whatever a window is enough for is itself a window that is enough.
time_ns Model::settled(std::size_t chain, time_ns window_ns) const {
  for (int step = 0; step < most_steps; step++) {
    time_ns least_ns = 1;
    for (const Linear &each : demand(chain, window_ns).cases) least_ns = std::max(least_ns, each.value);
    if (least_ns >= window_ns) break;
    window_ns = least_ns;
  }
  return window_ns;
}

LinkResults Model::run() {
  for (int pass = 0;; pass++) {
    make_loads();
    bool changed = false;
    for (std::size_t chain = 0; chain < size(); chain++) {
      if (responses_[chain] == never_ns) continue;
      const time_ns found_ns = pass < most_passes ? solve(chain) : never_ns;
      const time_ns remote_ns = found_ns == never_ns
                                    ? never_ns
                                    : add(demand(chain, found_ns).remote.value, interrupts(chain, found_ns).value);
      changed = changed || found_ns != responses_[chain] || remote_ns != remotes_[chain];
      responses_[chain] = found_ns;
      remotes_[chain] = remote_ns;
    }
    if (!changed) break;
  }
  LinkResults results;
  results.met = true;
  for (std::size_t chain = 0; chain < size(); chain++) {
    LinkResult &result = results.chains.emplace_back();
    result.depends_on = dependences(chain);
    if (responses_[chain] != never_ns) explain(chain, result);
    results.met = results.met && result.met;
  }
  results.assumptions = assumptions();
  return results;
}

void Model::explain(std::size_t chain, LinkResult &result) const {
  const time_ns response_ns = responses_[chain];
  Demand made = demand(chain, response_ns);
  LinkParts &parts = made.parts;
  result.response_ns = response_ns;
  result.met = response_ns <= system_.chains[chain].deadline_ns;
  result.hidden = made.cases.size() > 1 && made.cases[0].value >= response_ns;
  if (result.hidden) {
    parts.line_ns = parts.host_ns = parts.line_blocking_ns = parts.control_ns = parts.host_wait_ns = parts.losses_ns =
        0;
    parts.line_interference_ns.assign(size(), 0);
    parts.client_blocking_ns = client_blocking(chain);
  }
  // What the sum of all parts counts twice is taken from the interference, that of the least urgent chain first.
  time_ns surplus_ns = parts.total_ns() - response_ns;
  std::vector<std::size_t> order(size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [this](std::size_t left, std::size_t right) {
    return system_.chains[left].level < system_.chains[right].level;
  });
  for (std::vector<time_ns> *shares : {&parts.client_interference_ns, &parts.line_interference_ns}) {
    for (const std::size_t other : order) {
      const time_ns taken_ns = std::clamp<time_ns>(surplus_ns, 0, (*shares)[other]);
      (*shares)[other] -= taken_ns;
      surplus_ns -= taken_ns;
    }
  }
  for (time_ns *part : {&parts.control_ns, &parts.line_blocking_ns, &parts.line_ns, &parts.host_ns}) {
    const time_ns taken_ns = std::clamp<time_ns>(surplus_ns, 0, *part);
    *part -= taken_ns;
    surplus_ns -= taken_ns;
  }
  result.parts = parts;
}

std::vector<std::string> Model::assumptions() const {
  const Line &line = system_.line;
  const auto milliseconds = [](time_ns time) {
    std::string text = std::to_string(time / millisecond_ns);
    const std::string rest = std::to_string(1'000'000 + time % millisecond_ns).substr(1);
    const std::size_t last = rest.find_last_not_of('0');
    return text + (last == std::string::npos ? "" : "." + rest.substr(0, last + 1)) + " ms";
  };
  std::vector<std::string> list;
  list.push_back("execution times are worst cases; submit " + milliseconds(system_.client.submit_ns) + ", process " +
                 milliseconds(system_.client.process_ns) + ", dispatch " + milliseconds(system_.client.dispatch_ns));
  list.push_back("agent, DDS and serial adapter take " + milliseconds(line.agent_most_ns) + " to the node and " +
                 milliseconds(line.return_most_ns) + " back at most");
  list.push_back(line.escapes == escapes_worst
                     ? "every byte of a frame may be escaped"
                     : "at most " + std::to_string(line.escapes) + " bytes of a frame are escaped");
  if (line.fixed_sizes) list.push_back("messages are exactly as long as they say");
  list.push_back(system_.protocol.losses == 0
                     ? "no frame is lost"
                     : "at most " + std::to_string(system_.protocol.losses) + " frames of an instance are lost");
  const bool reliable = std::any_of(system_.chains.begin(), system_.chains.end(), [](const LinkChain &chain) {
    return chain.uplink_reliable || chain.downlink_reliable;
  });
  if (reliable && system_.protocol.heartbeats_for_losses)
    list.push_back("HEARTBEATs are sent for lost frames only: their delay is longer than an acknowledgment takes");
  list.push_back("pools and windows never run full; nobody else uses the line");
  list.push_back("a chain is over before its next release; the chains that a bound depends on are, too");
  return list;
}

}  // namespace

time_ns LinkParts::total_ns() const {
  time_ns sum = execution_ns + line_ns + host_ns + client_blocking_ns + line_blocking_ns + control_ns + interrupts_ns +
                host_wait_ns + losses_ns;
  for (const time_ns part : client_interference_ns) sum += part;
  for (const time_ns part : line_interference_ns) sum += part;
  return sum;
}

LinkResults bound_link(const LinkSystem &system) { return Model(system).run(); }

}  // namespace tide::analysis
