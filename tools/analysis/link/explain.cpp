// SPDX-License-Identifier: Apache-2.0
// What a bound is made of, and what it takes for granted.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "analysis/link/model.h"

namespace tide::analysis {
namespace {

// To the microsecond, rounded up; what is shorter than that to the nanosecond.
std::string milliseconds(time_ns time) {
  if (time > 1000 && time < kNeverNs) time = divide_up(time, 1000) * 1000;
  std::string text = std::to_string(time / 1'000'000);
  const std::string rest = std::to_string(1'000'000 + time % 1'000'000).substr(1);
  const size_t last = rest.find_last_not_of('0');
  return text + (last == std::string::npos ? "" : "." + rest.substr(0, last + 1)) + " ms";
}

}  // namespace

// Shares of what this chain and all that go before it ask for, whoever waits for what: of the directions that it uses,
// with escapes as described and without any, and of the client.
LinkModel::Shares LinkModel::asked(size_t chain) const {
  Shares shares;
  const Load &self = asked_[chain];
  for (size_t other = 0; other < size(); other++) {
    if (other != chain && !goes_first(other, chain)) continue;
    const Load &load = asked_[other];
    const Cut cut = other == chain ? Cut() : cut_for(other, chain);
    const auto period_ns = static_cast<double>(period(other));
    if (self.up.messages > 0 || is_batch()) {
      shares.up += static_cast<double>(load.up.total_ns - cut.up_ns) / period_ns;
      shares.plain_up += static_cast<double>(load.up.plain_ns - cut.up_plain_ns) / period_ns;
    }
    if (self.down.messages > 0 || is_batch()) {
      shares.down += static_cast<double>(load.down.total_ns - cut.down_ns) / period_ns;
      shares.plain_down += static_cast<double>(load.down.plain_ns - cut.down_plain_ns) / period_ns;
    }
    shares.client += static_cast<double>(load.client_ns - cut.client_ns) / period_ns;
  }
  return shares;
}

// The most urgent chain, this one or one that goes before it, at which more is asked than there is time.
std::optional<size_t> LinkModel::overloaded(size_t chain) const {
  for (const size_t other : order_) {
    if (other != chain && !goes_first(other, chain)) continue;
    const Shares shares = asked(other);
    if (std::max({shares.up, shares.down, shares.client}) >= 1) return other;
  }
  return std::nullopt;
}

void LinkModel::blame(size_t chain, LinkResult &result) const {
  result.root = control_counted_ ? overloaded(chain).value_or(roots_[chain]) : chain;
  const size_t root = result.root;
  if (!overloaded(chain)) {
    result.reached_ns = reached_[root];
    result.reached_parts = reached_parts_[root];
  }
  result.limit_ns = period(root);
  result.reason = reason(root);
  if (root != chain)
    result.reason = "it needs a bound of chain '" + system_.chains[root].name + "', which has none: " + result.reason;
}

// What is asked of the line or of the client, if that is more than there is; else empty.
std::string LinkModel::overload(size_t chain) const {
  const Shares shares = asked(chain);
  const auto percent = [](double share) {
    const std::string tenths = std::to_string(std::llround(share * 1000));
    return tenths.substr(0, tenths.size() - 1) + "." + tenths.back() + " %";
  };
  bool alone = true;
  for (size_t other = 0; other < size(); other++) alone = alone && (other == chain || !goes_first(other, chain));
  const std::string who = is_batch() ? "all chains ask for "
                          : alone    ? "it asks for "
                                     : "it and the more urgent chains ask for ";
  if (shares.up < 1 && shares.down < 1)
    return shares.client < 1 ? "" : who + percent(shares.client) + " of the microcontroller";
  const bool up = shares.up >= shares.down;
  const double plain = up ? shares.plain_up : shares.plain_down;
  const std::string line = std::string(" of the line ") + (up ? "to" : "from") + " the agent at " +
                           std::to_string(system_.line.baud) + " baud";
  if (!system_.line.escaped_bytes && plain < 1)
    return who + percent(up ? shares.up : shares.down) + line +
           " if every byte of a frame is escaped, which is what is supposed without 'escaped_bytes', and for " +
           percent(plain) + " if none is; give 'escaped_bytes', raise 'baud' or send less";
  return who + percent(up ? shares.up : shares.down) + line + "; raise 'baud' or send less";
}

// Its stream needs more frames than a window holds, and the wait for it is what makes it late, or most of that.
std::optional<std::string> LinkModel::full_window(size_t chain) const {
  const time_ns waiting_ns = reached_parts_[chain].window_ns;
  const time_ns rest_ns = reached_[chain] - waiting_ns;
  if (waiting_ns == 0 || (rest_ns > period(chain) && rest_ns > waiting_ns)) return std::nullopt;
  const time_ns window_ns = std::max<time_ns>(period(chain) - jitter(chain), 1);
  const int64_t up = unacknowledged(chain, Direction::up, window_ns).value;
  const int64_t down = unacknowledged(chain, Direction::down, window_ns).value;
  const bool to_agent = window_wait(chain, Direction::up, 1, window_ns).value > 0;
  bool shared = false;
  for (const size_t other : here_)
    shared = shared || (other != chain && in_one_stream(other, chain, to_agent ? Direction::up : Direction::down));
  const Load &load = loads_[chain];
  return std::string("up to ") + std::to_string(to_agent ? up : down) + " frames of " +
         (shared ? "the stream that it shares with others" : "its stream") + (to_agent ? " to" : " from") +
         " the agent may wait for an acknowledgment, which takes " +
         milliseconds(to_agent ? load.answer_ns : load.receipt_ns) + ", and a window holds " +
         std::to_string(system_.protocol.window) + ": it may take " + milliseconds(reached_[chain]) +
         ", beyond its period of " + milliseconds(period(chain)) + "; make it best_effort, " +
         (shared ? "make its messages shorter or raise mtu_bytes" : "lengthen its period or lower mtu_bytes");
}

// Of a chain that has no bound by itself: more is asked than there is time, the repair of losses, the sum of all.
std::string LinkModel::reason(size_t chain) const {
  if (!control_counted_)
    return "the questions whether reliable messages have arrived keep each other waiting; send fewer reliable messages";
  if (std::string text = overload(chain); !text.empty()) return text;
  const LinkChain &self = system_.chains[chain];
  if (loads_[chain].losses_ns >= period(chain)) {
    const bool measured = (self.uplink_reliable && system_.protocol.client.delay_ns < 0) ||
                          (self.downlink_reliable && system_.protocol.agent.delay_ns < 0);
    return "the repair of lost frames may take " + milliseconds(loads_[chain].losses_ns) + ", longer than its period" +
           (measured ? "; a measured HEARTBEAT delay may be 2 s: give 'heartbeat_delay_ms'" : "");
  }
  if (const auto text = full_window(chain)) return *text;
  std::string limit = "its period of " + milliseconds(period(chain)) + ", within which it must be over";
  if (self.deadline_ns > self.period_ns)
    limit += ": bounds over a line know one instance at a time, so its deadline of " + milliseconds(self.deadline_ns) +
             " does not help";
  if (loads_[chain].settling_ns >= kLongestWaitNs) return "its acknowledgments and HEARTBEATs have no end";
  if (reached_[chain] > 0) return "it may take " + milliseconds(reached_[chain]) + " or more, beyond " + limit;
  return "its bound and those of others raise each other, and did not settle below " + limit;
}

void LinkModel::explain(size_t chain, LinkResult &result) const {
  const time_ns response_ns = end_ns(chain);
  Demand made = demand(chain, response_ns - jitter(chain), Until::ended);
  LinkParts &parts = made.parts;
  parts.jitter_ns = jitter(chain);
  result.response_ns = response_ns;
  result.met = response_ns <= system_.chains[chain].deadline_ns;
  result.hidden = made.cases.size() > 1 && made.cases[0].value >= response_ns - jitter(chain);
  if (result.hidden) {
    parts.line_ns = parts.host_ns = parts.line_blocking_ns = parts.control_ns = parts.window_ns = 0;
    parts.host_wait_ns = parts.losses_ns = 0;
    parts.line_interference_ns.assign(size(), 0);
    parts.client_blocking_ns = client_blocking(chain);
  }
  // What the sum of all parts counts twice is taken from the interference, that of the least urgent chain first.
  time_ns surplus_ns = parts.total_ns() - response_ns;
  if (surplus_ns < 0) parts.client_blocking_ns -= std::exchange(surplus_ns, 0);  // both visits of a less urgent chain
  std::vector<size_t> order(size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [this](size_t left, size_t right) {
    return system_.chains[left].priority < system_.chains[right].priority;
  });
  for (std::vector<time_ns> *shares : {&parts.client_interference_ns, &parts.line_interference_ns}) {
    for (const size_t other : order) {
      const time_ns taken_ns = std::clamp<time_ns>(surplus_ns, 0, (*shares)[other]);
      (*shares)[other] -= taken_ns;
      surplus_ns -= taken_ns;
    }
  }
  for (time_ns *part : {&parts.control_ns, &parts.window_ns, &parts.line_blocking_ns, &parts.line_ns, &parts.host_ns}) {
    const time_ns taken_ns = std::clamp<time_ns>(surplus_ns, 0, *part);
    *part -= taken_ns;
    surplus_ns -= taken_ns;
  }
  result.parts = parts;
}

std::vector<Assumption> LinkModel::assumptions() const {
  const Line &line = system_.line;
  const Client &client = system_.client;
  const std::vector<LinkChain> &chains = system_.chains;
  std::vector<Assumption> list;
  list.push_back({"execution",
                  "execution times are worst cases; to make a message takes " + milliseconds(client.submit_ns) +
                      " more at most, to choose a callback " + milliseconds(client.dispatch_ns),
                  {{"submit_ns", client.submit_ns}, {"dispatch_ns", client.dispatch_ns}}});
  const bool shortest = std::any_of(chains.begin(), chains.end(), [](const LinkChain &chain) {
    return std::any_of(chain.callbacks.begin(), chain.callbacks.end(),
                       [](const LinkCallback &callback) { return callback.least_ns > 0; });
  });
  if (shortest) list.push_back({"shortest_execution", "no execution is shorter than its least_ms", {}});
  list.push_back({"digestion",
                  "to take over a frame takes " + milliseconds(client.process_ns) + " at most",
                  {{"process_ns", client.process_ns}}});
  Assumption releases{"release_jitter", "a timer starts its chain when it expires", {}};
  std::string late;
  for (const LinkChain &chain : chains) {
    releases.values.emplace_back(chain.name, chain.jitter_ns);
    if (chain.jitter_ns > 0) late += (late.empty() ? "" : ", ") + chain.name + " " + milliseconds(chain.jitter_ns);
  }
  if (!late.empty()) releases.text += ", or later by at most: " + late;
  list.push_back(releases);
  list.push_back({"agent",
                  "agent, DDS and serial adapter take " + milliseconds(line.agent_ns) + " to the node at most",
                  {{"agent_ns", line.agent_ns}}});
  list.push_back({"return",
                  "they take " + milliseconds(line.return_ns) + " back from the node to the line at most",
                  {{"return_ns", line.return_ns}}});
  Assumption escapes{"escapes", "every byte of a frame may be escaped", {}};
  if (line.escaped_bytes) {
    escapes.text = "at most " + std::to_string(*line.escaped_bytes) + " bytes of a frame are escaped";
    escapes.values = {{"escaped_bytes", *line.escaped_bytes}};
  }
  list.push_back(std::move(escapes));
  list.push_back({"sizes",
                  line.exact_sizes ? "messages are exactly as long as they say" : "no message is longer than it says",
                  {{"exact", line.exact_sizes ? 1 : 0}}});
  const int64_t losses = system_.protocol.losses;
  list.push_back(
      {"losses",
       losses == 0 ? "no frame is lost" : "at most " + std::to_string(losses) + " frames of an instance are lost",
       {{"losses", losses}}});
  const auto questions = [&](const char *id, const char *side, const char *what, const Questions &asked) {
    const time_ns first_ns = asked.delay_ns < 0 ? asked.floor_ns : asked.delay_ns;
    list.push_back({id,
                    std::string(side) + " asks about " + what + " after " + milliseconds(first_ns) +
                        " at the earliest, and every " + milliseconds(asked.period_ns) + " again" +
                        (asked.delay_ns < 0 ? " or sooner" : ""),
                    {{"delay_ns", first_ns}, {"period_ns", asked.period_ns}}});
  };
  if (std::any_of(chains.begin(), chains.end(), [](const LinkChain &chain) { return chain.uplink_reliable; }))
    questions("client_questions", "the client", "a request that is not acknowledged", system_.protocol.client);
  if (std::any_of(chains.begin(), chains.end(), [](const LinkChain &chain) { return chain.downlink_reliable; }))
    questions("agent_questions", "the agent", "an answer that is not acknowledged", system_.protocol.agent);
  list.push_back({"pools", "pools never run full", {{"window", system_.protocol.window}}});
  list.push_back({"line_alone", "nobody else uses the line", {}});
  if (alive_ && system_.protocol.silence_ns > 0) {
    // Something must have come back within the silence, so the first release is earlier by what its answer takes.
    const time_ns silence_ns = system_.protocol.silence_ns;
    size_t soonest = size();
    for (size_t chain = 0; chain < size(); chain++) {
      if (chains[chain].sporadic || loads_[chain].down.messages == 0) continue;
      if (add(period(chain), responses_[chain]) > silence_ns) continue;
      if (soonest == size() || responses_[chain] < responses_[soonest]) soonest = chain;
    }
    const time_ns answer_ns = soonest < size() ? responses_[soonest] : 0;
    const std::string of = soonest < size() ? "the first release of " + chains[soonest].name : "its first release";
    list.push_back({"heard_at_start",
                    "no board has a session for " + milliseconds(silence_ns - answer_ns) + " before " + of +
                        "; a board that hears nothing for " + milliseconds(silence_ns) +
                        " asks whether the agent is there",
                    {{"silence_ns", silence_ns - answer_ns}}});
  }
  time_ns event_ns = 0;
  for (const Load &load : loads_)
    event_ns = std::max(event_ns, load.down.messages > 0 ? load.new_data_ns / load.down.messages : 0);
  if (event_ns > 0)
    list.push_back({"timers_run",
                    "a sample that came during a publish waits for the next timer of the board, " +
                        milliseconds(event_ns) + " at most: all of its timers run from the start",
                    {{"event_ns", event_ns}}});
  list.push_back(
      {"over_in_time", "a chain is over before its next release; the chains that a bound depends on are, too", {}});
  return list;
}
}  // namespace tide::analysis
