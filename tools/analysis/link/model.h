// SPDX-License-Identifier: Apache-2.0
// The model that the bounds of the link are solved on; private to link_*.cpp.
//
// Names: a chain's `visit` of the client is what it executes there between two waits for the line. Loads are of one
// instance. All demands are functions of a window that begins with the release; the least window that they fit into,
// and the jitter of the release before it, is the bound. `responses_` count from the nominal expiry.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/link/bound.h"
#include "analysis/link/frames.h"
#include "analysis/model/linear.h"

namespace tide::analysis {

// What one chain asks of one direction of the line.
struct Traffic {
  std::int64_t messages = 0, frames = 0;
  std::int64_t control = 0;   // ACKNACKs and HEARTBEATs
  std::int64_t receipts = 0;  // of these the ACKNACKs that follow a message of the other direction at once
  std::int64_t asks = 0;      // of these the HEARTBEATs; as many of the other direction are their answers
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
  std::vector<time_ns> hosts_ns;             // by host executor
  std::vector<bool> visits_host;             // the same; a callback that takes no time has to wait for a lane, too
  time_ns host_ns = 0, host_least_ns = 0;    // the way through the agent and the chain's own host callbacks
  time_ns up_wait_ns = 0, down_wait_ns = 0;  // of an ACKNACK, until it has crossed
  time_ns taking_most_ns = 0;                // from the arrival of an answer until it is taken
  time_ns answer_ns = 0;                     // from the end of a message to its acknowledgment
  time_ns settling_ns = 0;                   // from the end of an instance until its ACKNACKs and HEARTBEATs are over
  bool answers_first = false;                // ACKNACKs of an instance may stand before a later message of its own
  time_ns hold_ns = 0;                       // how long it may keep the line to itself
  time_ns interrupts_ns = 0;
  time_ns losses_ns = 0;
  time_ns new_data_ns = 0;  // batch: stored samples wait for the next event
  time_ns before_ns = 0;    // from the release until an answer has come, at least
  time_ns behind_ns = 0;    // from taking the last answer until the end, at least
  time_ns remote_least_ns() const { return up.least_ns + host_least_ns + down.least_ns; }
};

// Beyond it nothing has a bound.
inline constexpr time_ns longest_wait_ns = 1'000'000'000'000;

// Executions of a chain in a window, when an instance executes `load_ns` within `span_ns` of its release.
inline Linear share(time_ns load_ns, time_ns period_ns, time_ns span_ns, time_ns window_ns) {
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

class LinkModel {
 public:
  // most_passes: until what is asked and answered must have been counted; else there is no bound.
  explicit LinkModel(const LinkSystem &system, int most_passes = 2000)
      : system_(system),
        most_passes_(most_passes),
        responses_(size(), 0),
        roots_(size(), 0),
        reached_(size(), 0),
        reached_parts_(size()),
        remotes_(size(), 0),
        loads_(size()) {
    // What is more urgent comes first: then one walk knows most of what the next would.
    for (std::size_t chain = 0; chain < size(); chain++) order_.push_back(chain);
    std::stable_sort(order_.begin(), order_.end(), [this](std::size_t left, std::size_t right) {
      return system_.chains[left].priority > system_.chains[right].priority;
    });
    for (std::size_t chain = 0; chain < size(); chain++) {
      roots_[chain] = chain;
      responses_[chain] = system.chains[chain].response_ns.value_or(0);
    }
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
  struct Spacing {
    time_ns apart_ns = 0, longest_ns = 0;
  };
  struct Once {
    Linear sum;
    time_ns again_ns = 0;   // what one instance more would add, were it there with both visits
    time_ns latest_ns = 0;  // the longest way over the line of any
  };

  std::size_t size() const { return system_.chains.size(); }
  // Bounded elsewhere: it is about on the host only.
  bool is_foreign(std::size_t chain) const { return system_.chains[chain].response_ns.has_value(); }
  bool is_batch() const { return system_.client.policy == ClientPolicy::batch; }
  bool goes_first(std::size_t other, std::size_t chain) const {
    return other != chain && (is_batch() || system_.chains[other].priority > system_.chains[chain].priority);
  }
  time_ns period(std::size_t chain) const { return system_.chains[chain].period_ns; }
  time_ns jitter(std::size_t chain) const { return system_.chains[chain].jitter_ns; }
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
  void count_questions(std::size_t chain);
  time_ns tail_ns(std::size_t chain) const;
  time_ns span_ns(std::size_t chain) const;
  void count_interrupts(Load &load) const;
  time_ns longest_frame_ns(Direction direction) const;
  std::int64_t beginnings(std::size_t chain, const Traffic &sent) const;
  std::int64_t asks_within(std::size_t chain, Direction direction, time_ns window_ns) const;
  time_ns control_wait_ns(std::size_t chain, Direction direction, std::int64_t own, time_ns known_ns) const;
  time_ns taking_ns(std::size_t chain) const;
  Linear signs_of_life(time_ns window_ns) const;
  Linear signs_of_life(time_ns window_ns, Direction direction) const;
  void derive(std::size_t chain);
  std::vector<std::int64_t> busy_instances(Direction direction) const;
  Spacing message_spacing() const;
  time_ns uplink_wait(std::size_t chain, const Spacing &spacing, const std::vector<std::int64_t> &instances) const;
  void find_uplink_waits();
  time_ns answers_apart_ns() const;
  void find_downlink_waits();
  bool is_alive_anyway() const;
  std::vector<std::size_t> dependences(std::size_t chain) const;

  Linear client_interference(std::size_t chain, time_ns window_ns, LinkParts &parts) const;
  Linear interrupts(std::size_t chain, time_ns window_ns) const;
  Linear uplink(std::size_t chain, time_ns window_ns, LinkParts &parts) const;
  Linear uplink_by_level(std::size_t chain, time_ns window_ns, LinkParts &parts) const;
  Linear downlink(std::size_t chain, time_ns window_ns, LinkParts &parts) const;
  Linear downlink_by_level(std::size_t chain, time_ns window_ns, LinkParts &parts) const;
  Linear host(std::size_t chain, time_ns window_ns) const;
  time_ns client_blocking(std::size_t chain) const;
  bool pairs_are_apart(std::size_t chain, time_ns window_ns, time_ns more_ns) const;
  Once visits_once(std::size_t chain, time_ns window_ns) const;
  std::size_t only_less_urgent(std::size_t chain, time_ns window_ns) const;
  Demand demand(std::size_t chain, time_ns window_ns) const;
  time_ns solve(std::size_t chain, time_ns &reached_ns) const;
  void fail(std::size_t chain, time_ns reached_ns);
  std::optional<std::size_t> overloaded(std::size_t chain) const;
  time_ns settled(std::size_t chain, time_ns window_ns) const;
  void explain(std::size_t chain, LinkResult &result) const;
  void blame(std::size_t chain, LinkResult &result) const;
  std::string reason(std::size_t chain) const;
  std::vector<Assumption> assumptions() const;

  const LinkSystem &system_;
  const int most_passes_;
  std::vector<std::size_t> order_;  // most urgent first
  std::vector<time_ns> responses_;  // from the nominal expiry; never_ns: late
  std::vector<std::size_t> roots_;  // of those that are late, the chain that was late first
  std::vector<time_ns> reached_;    // and what was found of it then
  std::vector<LinkParts> reached_parts_;
  bool settled_ = true;           // else bounds raised each other without end
  std::vector<time_ns> remotes_;  // from the end of the first visit until the answer is there
  std::vector<Load> loads_;
  time_ns answer_ns_ = 0, gap_ns_ = 0;
  std::vector<time_ns> up_waits_, down_waits_;  // by chain, of one instance where the line keeps up; else never_ns
  bool hosts_keep_up_ = false, alive_ = false;
  bool control_counted_ = false;  // else loads_ lack some of what is asked, and nothing has a bound
};

}  // namespace tide::analysis
