// SPDX-License-Identifier: Apache-2.0
// What one instance of each chain asks of the client, the line and the host.
#include <algorithm>

#include "analysis/link/model.h"

namespace tide::analysis {
namespace {

constexpr time_ns kMillisecondNs = 1'000'000;
constexpr time_ns kLongestDelayNs = 2000 * kMillisecondNs;  // of a measured HEARTBEAT
constexpr time_ns kLongestEventNs = 1000 * kMillisecondNs;  // until a batch executor looks again
constexpr int64_t kAgentSilences = 30;                      // of the client: so long the agent waits until it asks

time_ns first_step_ns(const Questions &questions) {
  return questions.delay_ns < 0 ? questions.floor_ns : questions.delay_ns;
}

// HEARTBEATs about one frame that waits so long for its acknowledgment.
int64_t heartbeats(const Questions &questions, time_ns pending_ns) {
  const time_ns wait_ns = std::min(pending_ns, kLongestWaitNs);
  const bool measured = questions.delay_ns < 0;
  const time_ns longest_step_ns = measured ? std::max(questions.period_ns, questions.floor_ns) : questions.period_ns;
  time_ns at_ns = first_step_ns(questions);
  time_ns step_ns = measured ? std::min(2 * questions.floor_ns, longest_step_ns) : longest_step_ns;
  int64_t count = 0;
  for (; at_ns <= wait_ns && step_ns < longest_step_ns; count++) {
    at_ns += step_ns;
    step_ns = std::min(2 * step_ns, longest_step_ns);
  }
  return at_ns <= wait_ns ? count + 1 + (wait_ns - at_ns) / step_ns : count;
}

// HEARTBEATs of one stream that leave within so long, whatever waits meanwhile. One is outstanding at most, and the
// next comes a period after it, unless its delay has begun anew in between. beginnings: how often that can be; -1:
// unknown.
int64_t heartbeats_of_stream(const Questions &questions, int64_t beginnings, time_ns window_ns) {
  const time_ns first_ns = first_step_ns(questions);
  const time_ns apart_ns = std::min(first_ns, questions.period_ns);
  const int64_t by_distance = apart_ns > 0 ? window_ns / apart_ns + 1 : kNeverNs;
  if (beginnings < 0) return by_distance;
  int64_t sooner = 1;
  if (questions.delay_ns < 0) {
    for (time_ns step_ns = 2 * first_ns; step_ns < questions.period_ns; step_ns *= 2) sooner++;
  }
  return std::min(by_distance, add(multiply(beginnings, sooner), window_ns / questions.period_ns + 1));
}

// Until a side asks that has not heard of what was lost, the first time or again.
time_ns silence_ns(const Questions &questions) {
  return std::max(questions.delay_ns < 0 ? kLongestDelayNs : questions.delay_ns, questions.period_ns);
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
  traffic.plain_ns += sent.plain_ns + sent.frames * gap_ns;
}

// One walk along the chain.
Load LinkModel::visit_load(const LinkChain &chain) const {
  const Client &client = system_.client;
  const Line &line = system_.line;
  Load load;
  load.hosts_ns.resize(system_.hosts.size());
  load.visits_host.resize(system_.hosts.size());
  for (size_t index = 0; index < chain.callbacks.size(); index++) {
    const LinkCallback &callback = chain.callbacks[index];
    const bool has_next = index + 1 < chain.callbacks.size();
    const bool here = callback.place == kOnClient;
    // One that takes no time waits for its turn all the same, and a window is long enough for it only if it is served.
    const bool is_alone = !here && system_.hosts[static_cast<size_t>(callback.place)].own_cores;
    const time_ns execution_ns = std::max<time_ns>(callback.execution_ns, is_alone ? 0 : 1);
    const time_ns least_ns =
        callback.least_ns +
        (here && client.fixed_costs ? client.dispatch_ns + (callback.payload_bytes > 0 ? client.submit_ns : 0) : 0);
    if (load.down.messages == 0) load.before_ns += least_ns;
    load.behind_ns += least_ns;
    if (here) {
      const time_ns taking_ns = index == 0 ? 0 : client.process_ns;
      const time_ns running_ns =
          client.dispatch_ns + execution_ns + (callback.payload_bytes > 0 ? client.submit_ns : 0);
      const int64_t frames =
          index == 0 ? 0 : message(line, Direction::down, chain.callbacks[index - 1].payload_bytes).frames;
      const time_ns visit_ns = running_ns + frames * taking_ns;
      load.visits++;
      load.client_ns += visit_ns;
      load.visit_ns = std::max(load.visit_ns, visit_ns);
      load.unit_ns = std::max({load.unit_ns, running_ns, taking_ns});
      (index == 0 ? load.first_ns : load.last_ns) = visit_ns;
      load.taking_ns = frames * taking_ns;
    } else {
      load.hosts_ns[static_cast<size_t>(callback.place)] += callback.execution_ns;
      load.visits_host[static_cast<size_t>(callback.place)] = true;
      load.host_ns += execution_ns;
      load.host_least_ns += callback.least_ns;
    }
    if (callback.payload_bytes == 0) continue;
    const bool next_here = has_next && chain.callbacks[index + 1].place == kOnClient;
    if (here) {
      load.answers_first = load.answers_first || load.down.messages > 0 || load.up.messages > 0;
      const time_ns before_ns = load.up.total_ns;
      cross(load, Direction::up, callback);
      if (!has_next) load.tail_line_ns = load.up.total_ns - before_ns;
      load.host_ns += has_next ? line.agent_ns : 0;
      load.host_least_ns += has_next ? line.agent_least_ns : 0;
      if (load.down.messages == 0)
        load.before_ns += message(line, Direction::up, callback.payload_bytes).least_ns + line.agent_least_ns;
    }
    if (next_here) {
      if (load.down.messages == 0) load.before_ns += message(line, Direction::down, callback.payload_bytes).least_ns;
      cross(load, Direction::down, callback);
      load.host_ns += line.return_ns;
      load.behind_ns = 0;
    }
    if (!here && has_next && !next_here) load.host_ns += chain.callbacks[index + 1].hop_ns.value_or(line.host_hop_ns);
  }
  load.pair = load.visits == 2 && chain.callbacks.front().place == kOnClient &&
              chain.callbacks.back().place == kOnClient && chain.callbacks.back().payload_bytes == 0;
  return load;
}

// ---- what chains of one timer have in common ----

namespace {

// What a chain has in common with others, in its order: its callbacks, and each message with what takes it over.
std::vector<SharedKey> ordered_keys(const LinkChain &chain) {
  std::vector<SharedKey> keys;
  int64_t before = 0;
  for (const LinkCallback &callback : chain.callbacks) {
    if (before != 0 && callback.shared != 0) keys.emplace_back(before, callback.shared);
    if (callback.shared != 0) keys.emplace_back(callback.shared, 0);
    before = callback.shared;
  }
  return keys;
}

}  // namespace

// Its end is on the way of the longer one.
bool LinkModel::begins_alike(size_t longer, size_t shorter) const {
  const auto &of = system_.chains[longer].callbacks, &begin = system_.chains[shorter].callbacks;
  return of.size() >= begin.size() &&
         std::equal(begin.begin(), begin.end(), of.begin(), [](const LinkCallback &one, const LinkCallback &other) {
           return one.shared != 0 && one.shared == other.shared;
         });
}

// Of the load of a chain what these keys name.
Cut LinkModel::cut_of(size_t chain, const std::set<SharedKey> &elsewhere) const {
  Cut cut;
  cut.callbacks.resize(system_.chains[chain].callbacks.size());
  const Client &client = system_.client;
  const std::vector<LinkCallback> &callbacks = system_.chains[chain].callbacks;
  for (size_t index = 0; index < callbacks.size(); index++) {
    const LinkCallback &callback = callbacks[index];
    const bool here = callback.place == kOnClient;
    const bool is_elsewhere = elsewhere.count({callback.shared, 0}) > 0;
    const LinkCallback *before = index > 0 ? &callbacks[index - 1] : nullptr;
    const bool is_reception = here && before != nullptr && callback.shared != 0;
    if (is_reception && elsewhere.count({before->shared, callback.shared}) > 0) {
      const Message taken = message(system_.line, Direction::down, before->payload_bytes);
      cut.client_ns += client.dispatch_ns + taken.frames * client.process_ns;
      cut.down_ns += taken.total_ns;
      cut.down_plain_ns += taken.plain_ns;
      cut.down_frames += taken.frames;
    }
    cut.callbacks[index] = is_elsewhere;
    if (!is_elsewhere || !here) continue;
    cut.client_ns += std::max<time_ns>(callback.execution_ns, 1) + (before == nullptr ? client.dispatch_ns : 0) +
                     (callback.payload_bytes > 0 ? client.submit_ns : 0);
    if (callback.payload_bytes == 0) continue;
    const Message sent = message(system_.line, Direction::up, callback.payload_bytes);
    cut.up_ns += sent.total_ns + sent.frames * gap_ns_;
    cut.up_plain_ns += sent.plain_ns + sent.frames * gap_ns_;
    cut.up_frames += sent.frames;
  }
  return cut;
}

void LinkModel::find_shared() {
  std::vector<std::vector<SharedKey>> keys;
  std::map<SharedKey, std::vector<size_t>> owners;
  goes_on_.assign(size(), false);
  outside_.assign(size(), {});
  as_late_.assign(size(), {});
  for (size_t chain = 0; chain < size(); chain++) {
    keys.push_back(ordered_keys(system_.chains[chain]));
    roots_of_.push_back(system_.chains[chain].callbacks.front().shared);
    for (size_t other = 0; other < size() && roots_of_[chain] != 0; other++) {
      const bool alike = other != chain && begins_alike(other, chain);
      goes_on_[chain] = goes_on_[chain] || (alike && (!begins_alike(chain, other) || other < chain));
    }
  }
  // Who counts it for everybody else is the first that does not end on the way of another one.
  for (const bool goes_on : {false, true}) {
    for (size_t chain = 0; chain < size(); chain++) {
      if (goes_on_[chain] != goes_on) continue;
      for (const SharedKey &key : keys[chain]) owners[key].push_back(chain);
    }
  }
  const auto counted_by_others = [&](size_t chain) {
    std::set<SharedKey> found;
    for (const SharedKey &key : keys[chain]) {
      if (owners[key].front() != chain) found.insert(key);
    }
    return found;
  };
  for (size_t chain = 0; chain < size(); chain++) {
    outside_[chain] = cut_of(chain, {});
    if (keys[chain].empty()) continue;
    const std::set<SharedKey> others = counted_by_others(chain);
    outside_[chain] = cut_of(chain, others);
    // Behind a join it is over when the way by the last input is.
    std::set<size_t> late;
    for (const SharedKey &key : keys[chain]) {
      const auto own = std::find(keys[chain].begin(), keys[chain].end(), key);
      for (const size_t other : owners[key]) {
        const auto there = std::find(keys[other].begin(), keys[other].end(), key);
        if (!std::equal(keys[chain].begin(), own, keys[other].begin(), there)) late.insert(other);
      }
    }
    as_late_[chain].assign(late.begin(), late.end());
    for (size_t self = 0; self < size(); self++) {
      if (self == chain || !one_release(self, chain)) continue;
      std::set<SharedKey> all = others;
      all.insert(keys[self].begin(), keys[self].end());
      inside_[{chain, self}] = cut_of(chain, all);
    }
  }
}

// Its frames that others count bring no questions and acknowledgments of their own. A chain that goes on from the end
// of this one has all of that to come; what is left of its instance before is acknowledgments and frames without one.
Seen LinkModel::seen(size_t other, size_t chain) const {
  const Load &load = loads_[other];
  const Cut &cut = cut_for(other, chain);
  const bool follows = one_release(other, chain) && begins_alike(other, chain);
  Seen seen;
  seen.client_ns = follows ? 0 : load.client_ns - cut.client_ns;
  seen.up_ns = follows ? 0 : load.up.total_ns - cut.up_ns;
  seen.down_ns = follows ? 0 : load.down.total_ns - cut.down_ns;
  seen.up_frames = load.up.frames - cut.up_frames;
  seen.down_frames = load.down.frames - cut.down_frames;
  seen.up_asks = seen.up_frames > 0 ? load.up.asks : 0;
  seen.down_asks = seen.down_frames > 0 ? load.down.asks : 0;
  const int64_t asks = load.up.asks - seen.up_asks + load.down.asks - seen.down_asks;  // and as many answers
  seen.up_control = load.up.control - asks - std::min(load.up.receipts, cut.down_frames);
  seen.down_control = load.down.control - asks - std::min(load.down.receipts, cut.up_frames);
  return seen;
}

// By exclusive group; with an empty name what is in none.
std::map<std::string, time_ns> LinkModel::seen_on_host(size_t other, size_t chain, size_t place) const {
  std::map<std::string, time_ns> found;
  if (one_release(other, chain) && begins_alike(other, chain)) return found;
  const std::vector<bool> &elsewhere = cut_for(other, chain).callbacks;
  const std::vector<LinkCallback> &callbacks = system_.chains[other].callbacks;
  for (size_t index = 0; index < callbacks.size(); index++) {
    const LinkCallback &callback = callbacks[index];
    if (callback.place == static_cast<int>(place) && !elsewhere[index]) found[callback.group] += callback.execution_ns;
  }
  return found;
}

// From the nominal expiry until all that others are charged for is over.
time_ns LinkModel::latest_ns(size_t chain) const {
  time_ns latest_ns = responses_[chain];
  for (const size_t other : as_late_[chain]) latest_ns = std::max(latest_ns, responses_[other]);
  return latest_ns;
}

// What another chain executes or sends in a window of this one. Of chains of one timer no other instance is about: each
// is over before the next expiry.
Linear LinkModel::within(size_t other, size_t chain, time_ns load_ns, time_ns window_ns) const {
  if (one_release(other, chain) && system_.protocol.losses == 0) return constant(load_ns);
  return share(load_ns, period(other), latest_ns(other), window_ns);
}

// What the last callback sends leaves after the response, before that of the next instance at the latest.
time_ns LinkModel::tail_ns(size_t chain) const {
  const LinkCallback &last = system_.chains[chain].callbacks.back();
  return last.place == kOnClient && last.payload_bytes > 0 ? period(chain) : 0;
}

// From the release of an instance until nothing of it is under way any more.
time_ns LinkModel::span_ns(size_t chain) const {
  return add(add(latest_ns(chain), loads_[chain].settling_ns), tail_ns(chain));
}

void LinkModel::count_interrupts(Load &load) const {
  load.interrupts_ns = add(multiply(load.down.frames + load.down.control, system_.client.interrupt_receive_ns),
                           multiply(load.up.frames + load.up.control, system_.client.interrupt_complete_ns));
}

// The longest frame of a direction.
time_ns LinkModel::longest_frame_ns(Direction direction) const {
  const bool up = direction == Direction::up;
  time_ns longest_ns = answer_ns_ + (up ? gap_ns_ : 0);
  for (const Load &load : loads_) longest_ns = std::max(longest_ns, (up ? load.up : load.down).unit_ns);
  return longest_ns;
}

// How often the delay of an instance's HEARTBEATs begins: when a frame has left, and, if it is measured, when some of
// those that are out are acknowledged. Where a message has been acknowledged before the next one leaves, the latter
// happens once less a message than it has frames.
int64_t LinkModel::beginnings(size_t chain, const Traffic &sent) const {
  const Protocol &protocol = system_.protocol;
  if (is_batch() || system_.chains[chain].shares_level) return -1;
  const bool one_by_one =
      protocol.acknowledges == Acknowledges::always && protocol.losses == 0 && span_ns(chain) <= period(chain);
  return one_by_one ? sent.frames : 3 * (sent.frames + protocol.losses);
}

// HEARTBEATs of this chain that leave within a window.
int64_t LinkModel::asks_within(size_t chain, Direction direction, time_ns window_ns) const {
  const bool up = direction == Direction::up;
  const Traffic &traffic = up ? loads_[chain].up : loads_[chain].down;
  if (traffic.asks == 0) return 0;
  const int64_t instances = divide_up(add(window_ns, span_ns(chain)), period(chain));
  const int64_t begun = beginnings(chain, traffic);
  return heartbeats_of_stream(up ? system_.protocol.client : system_.protocol.agent,
                              begun < 0 ? begun : multiply(begun, instances), window_ns);
}

// How long the last of `own` ACKNACKs and HEARTBEATs of this chain takes, with its wait: behind a frame that has begun,
// and what is more urgent. In a batch all use one stream, of which no message stands before an ACKNACK.
// known_ns: what it takes at least.
time_ns LinkModel::control_wait_ns(size_t chain, Direction direction, int64_t own, time_ns known_ns) const {
  const bool up = direction == Direction::up;
  const time_ns frame_ns = answer_ns_ + (up ? gap_ns_ : 0);
  const time_ns least_ns = add(longest_frame_ns(direction), multiply(own, frame_ns));
  time_ns window_ns = 0, next_ns = std::max(least_ns, known_ns);
  while (next_ns > window_ns && next_ns < kLongestWaitNs) {
    window_ns = next_ns;
    next_ns = least_ns;
    for (const size_t other : here_) {
      if (!goes_first(other, chain)) continue;
      const Seen load = seen(other, chain);
      const int64_t asks = up ? load.up_asks : load.down_asks, answers = up ? load.down_asks : load.up_asks;
      const auto share_of = [&](time_ns load_ns) {
        return share(load_ns, period(other), std::min(span_ns(other), kLongestWaitNs), window_ns).value;
      };
      const time_ns sent_ns = is_batch() ? 0 : up ? load.up_ns : load.down_ns;
      const int64_t control = (up ? load.up_control : load.down_control) - asks - answers;
      next_ns = add(next_ns, share_of(add(sent_ns, multiply(control, frame_ns))));
      const int64_t asked = asks_within(other, direction, window_ns);
      next_ns = add(next_ns, std::min(share_of(multiply(asks, frame_ns)), multiply(asked, frame_ns)));
      // An answer waits for one of them at most; the next question finds that one.
      const int64_t asked_back =
          asks_within(other, up ? Direction::down : Direction::up, add(window_ns, system_.line.acknowledges_ns()));
      next_ns = add(next_ns, std::min(share_of(multiply(answers, frame_ns)), multiply(asked_back + 1, frame_ns)));
    }
    if (!alive_) next_ns = add(next_ns, signs_of_life(window_ns, direction).value);
  }
  return std::min(next_ns, kLongestWaitNs);
}

// From the arrival of an answer until its callback begins, at most.
time_ns LinkModel::taking_ns(size_t chain) const {
  const Load &self = loads_[chain];
  const time_ns late_ns =
      std::max<time_ns>(std::min(responses_[chain], period(chain)) - self.before_ns - self.behind_ns, 0);
  if (is_batch()) return late_ns;
  const time_ns own_ns = add(client_blocking(chain) + lock_blocking(chain), self.visit_ns);
  LinkParts parts;
  time_ns window_ns = 0, next_ns = std::max(own_ns, self.taking_most_ns);
  while (next_ns > window_ns && next_ns < late_ns) {
    window_ns = next_ns;
    next_ns = add(own_ns, add(client_interference(chain, window_ns, parts).value, interrupts(chain, window_ns).value));
  }
  return std::min(next_ns, late_ns);
}

// Instances whose lost frames keep one of this chain waiting, itself among them. On a stream that others use a message
// waits for those in front, of which there is one instance of each other chain at most; and a lost one behind may put
// off the question about it, again of one instance each (docs/analysis/services.md).
int64_t LinkModel::lossy_instances(size_t chain) const {
  if (is_batch()) return static_cast<int64_t>(size());
  const auto others = static_cast<int64_t>(sharers(chain).size());
  return 1 + 2 * others * (loads_[chain].up.messages + loads_[chain].down.messages);
}

// How often one instance asks and is asked whether something has arrived, from what is known so far.
void LinkModel::count_questions(size_t chain) {
  const Protocol &protocol = system_.protocol;
  const LinkChain &self = system_.chains[chain];
  const bool asked = protocol.acknowledges == Acknowledges::asked;
  const time_ns control_ns = answer_ns_ + gap_ns_;
  Load &load = loads_[chain];
  const time_ns up_wait_ns = load.up_wait_ns = control_wait_ns(chain, Direction::up, 1, load.up_wait_ns);
  const time_ns down_wait_ns = load.down_wait_ns = control_wait_ns(chain, Direction::down, 1, load.down_wait_ns);
  const time_ns agent_ns = system_.line.acknowledges_ns();
  const time_ns way_ns = agent_ns + down_wait_ns + gap_ns_;
  const time_ns delay_ns = std::max<time_ns>(protocol.client.delay_ns, 0);
  const time_ns asking_ns = asked ? add(delay_ns, control_wait_ns(chain, Direction::up, load.up.control + 1, 0)) : 0;
  const time_ns silent_ns = std::max(self.uplink_reliable ? silence_ns(protocol.client) : 0,
                                     self.downlink_reliable ? silence_ns(protocol.agent) : 0);
  const int64_t lost = protocol.losses * lossy_instances(chain);
  // A question, its answer and what was lost again, in whatever direction; before them what the chain itself asks and
  // answers. What is more urgent is in front of them, too; the demand of a response has that already, where the chain
  // itself waits for that direction.
  time_ns up_unit_ns = load.up.unit_ns, down_unit_ns = load.down.unit_ns;
  for (const size_t other : sharers(chain)) {
    up_unit_ns = std::max(up_unit_ns, loads_[other].up.unit_ns);
    down_unit_ns = std::max(down_unit_ns, loads_[other].down.unit_ns);
  }
  const time_ns turn_ns = silent_ns + agent_ns + up_unit_ns + down_unit_ns;
  const time_ns own_ns =
      lost == 0 ? 0 : add(multiply(load.up.control, control_ns), multiply(load.down.control, answer_ns_));
  const bool counted_up = load.up.messages > 0 && self.uplink_reliable, counted_down = load.down.messages > 0;
  const time_ns up_turn_ns = counted_up ? longest_frame_ns(Direction::up) + control_ns : up_wait_ns;
  const time_ns down_turn_ns = counted_down ? longest_frame_ns(Direction::down) + answer_ns_ : down_wait_ns;
  load.losses_ns = add(multiply(lost, add(turn_ns, add(2 * up_turn_ns, 2 * down_turn_ns))), own_ns);
  const time_ns repair_ns = add(multiply(lost, add(turn_ns, multiply(2, add(up_wait_ns, down_wait_ns)))), own_ns);
  const time_ns late_ns = std::min(responses_[chain], period(chain));
  const time_ns pending_ns = add(add(late_ns, load.settling_ns), tail_ns(chain));
  Traffic up = load.up, down = load.down;
  up.control = down.control = up.receipts = down.receipts = up.asks = down.asks = 0;
  const auto count = [&](const Questions &questions, const Traffic &sent, time_ns message_pending_ns) {
    const int64_t begun = questions.delay_ns < 0 ? sent.frames : sent.messages;
    return std::min(multiply(begun, heartbeats(questions, message_pending_ns)),
                    heartbeats_of_stream(questions, beginnings(chain, sent), pending_ns));
  };
  time_ns settling_ns = 0;
  if (self.uplink_reliable && up.messages > 0) {
    // What is sent again may be held back; the message arrives before the response is over, whatever holds it.
    const time_ns held_ns = protocol.hold && lost > 0 ? late_ns : 0;
    load.answer_ns = add(add(way_ns, asking_ns), add(repair_ns, held_ns));
    // Nothing less urgent stands before the question then but an answer that has begun; what is more urgent keeps
    // the line for itself.
    load.hold_ns = add(way_ns + (asked ? delay_ns + 2 * control_ns : 0), repair_ns);
    up.asks = count(protocol.client, up, load.answer_ns);
    up.control += up.asks;
    down.receipts = asked ? 0 : up.frames;
    down.control += up.asks + down.receipts + protocol.losses;
    settling_ns = add(load.answer_ns, up.asks > 0 ? way_ns : 0);
  }
  if (self.downlink_reliable && down.messages > 0) {
    load.taking_most_ns = taking_ns(chain);
    const time_ns known_ns = add(add(up_wait_ns, agent_ns), repair_ns);
    // A batch may take the first of several frames before it has the last one, from which its time counts.
    load.receipt_ns = add(is_batch() ? late_ns : load.taking_most_ns, known_ns);
    down.asks = count(protocol.agent, down, add(load.taking_most_ns, known_ns));
    down.control += down.asks;
    up.receipts = down.frames;
    up.control += down.asks + up.receipts + protocol.losses;
    settling_ns = std::max(settling_ns, add(known_ns, down.asks > 0 ? add(down_wait_ns, up_wait_ns) : 0));
  }
  load.up = up;
  load.down = down;
  load.settling_ns = std::min(settling_ns, kLongestWaitNs);
  count_interrupts(load);
}

// Waiting for an answer takes longer the more is asked, so this is a fixed point of its own.
void LinkModel::count_control() {
  const bool reliable = std::any_of(system_.chains.begin(), system_.chains.end(), [](const LinkChain &chain) {
    return chain.uplink_reliable || chain.downlink_reliable;
  });
  control_counted_ = !reliable;
  for (int pass = 0; pass < most_passes_ && !control_counted_; pass++) {
    control_counted_ = true;
    for (const size_t chain : order_) {
      if (!system_.chains[chain].uplink_reliable && !system_.chains[chain].downlink_reliable) continue;
      const Load &load = loads_[chain];
      const int64_t up = load.up.control, down = load.down.control;
      const time_ns settling_ns = load.settling_ns;
      count_questions(chain);
      if (load.up.control != up || load.down.control != down || load.settling_ns != settling_ns)
        control_counted_ = false;
    }
  }
}

void LinkModel::derive(size_t chain) {
  const Client &client = system_.client;
  const LinkChain &self = system_.chains[chain];
  Load &load = loads_[chain];
  const bool holds = system_.protocol.hold && self.uplink_reliable && !is_batch();
  load.hold_ns = add(load.up.total_ns, holds ? multiply(load.up.messages, load.hold_ns) : 0);
  // Its stream is not acknowledged while it waits for its window, either.
  if (holds && responses_[chain] != kNeverNs)
    load.hold_ns = add(load.hold_ns, window_wait(chain, Direction::up, load.up.messages, responses_[chain]).value);
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
    time_ns event_ns = kLongestEventNs;
    for (const size_t other : here_) {
      // A timer of a host wakes nobody here.
      if (system_.chains[other].callbacks.front().place != kOnClient) continue;
      event_ns = std::min(event_ns, add(period(other), jitter(other)));
    }
    load.new_data_ns = load.down.messages * event_ns;
  }
}

void LinkModel::make_loads() {
  for (size_t chain = 0; chain < size(); chain++) {
    const LinkChain &self = system_.chains[chain];
    Load load = visit_load(self);
    if (self.uplink_reliable || self.downlink_reliable) {
      load.up.total_ns += system_.protocol.losses * load.up.unit_ns;
      load.down.total_ns += system_.protocol.losses * load.down.unit_ns;
    }
    // Responses have become longer, so there is more of it than before.
    for (const auto &[fresh, before] : {std::pair{&load.up, &loads_[chain].up}, {&load.down, &loads_[chain].down}}) {
      fresh->control = before->control;
      fresh->asks = before->asks;
      fresh->receipts = before->receipts;
    }
    const Load &before = loads_[chain];
    load.settling_ns = before.settling_ns;
    load.up_wait_ns = before.up_wait_ns;
    load.down_wait_ns = before.down_wait_ns;
    load.taking_most_ns = before.taking_most_ns;
    count_interrupts(load);
    loads_[chain] = load;
  }
  alive_ = is_alive_anyway();
  count_control();
  for (size_t chain = 0; chain < size(); chain++) derive(chain);
  windows_suffice_ = !is_any_window_full();
  find_uplink_waits();
  find_downlink_waits();
}

// Each side hears something often enough, so that nobody asks whether the other side is there.
bool LinkModel::is_alive_anyway() const {
  const Protocol &protocol = system_.protocol;
  if (protocol.silence_ns == 0) return true;
  bool client_hears = false, agent_hears = false;
  for (size_t chain = 0; chain < size(); chain++) {
    if (system_.chains[chain].sporadic) continue;  // it may stay away
    const Load &load = loads_[chain];
    const time_ns apart_ns = add(period(chain), responses_[chain]);
    const bool acknowledges = load.down.messages > 0 && system_.chains[chain].downlink_reliable;
    client_hears = client_hears || (load.down.messages > 0 && apart_ns <= protocol.silence_ns);
    agent_hears =
        agent_hears || ((load.up.messages > 0 || acknowledges) && apart_ns <= kAgentSilences * protocol.silence_ns);
  }
  return client_hears && agent_hears;
}

// How many questions, and how many answers to them, a window has a part in: they are half a silence apart. An answer
// may come as late as the agent is, and a batch digests it after all that is ready.
Linear LinkModel::signs_of_life(time_ns window_ns) const {
  const time_ns silence_ns = system_.protocol.silence_ns;
  time_ns late_ns = system_.line.acknowledges_ns();
  for (size_t chain = 0; is_batch() && chain < size(); chain++)
    late_ns = std::max(late_ns, add(system_.line.acknowledges_ns(), std::min(responses_[chain], period(chain))));
  return stair(window_ns, add(silence_ns, late_ns), silence_ns / 2);
}
}  // namespace tide::analysis
