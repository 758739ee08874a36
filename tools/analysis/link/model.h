// SPDX-License-Identifier: Apache-2.0
// The model that the bounds of the link are solved on; private to link_*.cpp.
//
// Names: a chain's `visit` of the client is what it executes there between two waits for the line. Loads are of one
// instance. All demands are functions of a window that begins with the release; the least window that they fit into,
// and the jitter of the release before it, is the bound. `responses_` count from the nominal expiry.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/link/bound.h"
#include "analysis/link/frames.h"
#include "analysis/model/linear.h"

namespace tide::analysis {

// What one chain asks of one direction of the line.
struct Traffic {
  int64_t messages = 0, frames = 0;
  int64_t control = 0;   // ACKNACKs and HEARTBEATs
  int64_t receipts = 0;  // of these the ACKNACKs that follow a message of the other direction at once
  int64_t asks = 0;      // of these the HEARTBEATs; as many of the other direction are their answers
  time_ns total_ns = 0, unit_ns = 0, least_ns = 0;
  time_ns plain_ns = 0;  // of total_ns what is left if no byte is escaped
};

struct Load {
  int64_t visits = 0;
  time_ns client_ns = 0;              // everything on the client
  time_ns unit_ns = 0;                // longest piece that is not preempted
  time_ns visit_ns = 0;               // longest visit
  time_ns first_ns = 0, last_ns = 0;  // the visits of a pair
  time_ns taking_ns = 0;              // of the frames before the last visit
  bool pair = false;                  // starts and ends on the client, elsewhere in between
  time_ns tail_line_ns = 0;           // of the message of its last callback, behind whose end the response is over
  Traffic up, down;
  std::vector<time_ns> hosts_ns;             // by host executor
  std::vector<bool> visits_host;             // the same; a callback that takes no time has to wait for a lane, too
  time_ns host_ns = 0, host_least_ns = 0;    // the way through the agent and the chain's own host callbacks
  time_ns up_wait_ns = 0, down_wait_ns = 0;  // of an ACKNACK, until it has crossed
  time_ns taking_most_ns = 0;                // from the arrival of an answer until it is taken
  time_ns answer_ns = 0;                     // from the end of a message to its acknowledgment
  time_ns receipt_ns = 0;                    // from the arrival of an answer to its acknowledgment
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

// What chains have in common counts once (docs/analysis/joins.md, "What ways share"): a callback, by its number and 0,
// or a message and what takes it over, by the numbers of both ends.
using SharedKey = std::pair<int64_t, int64_t>;

// Of a chain's load what does not count for another one, as it is counted elsewhere.
struct Cut {
  time_ns client_ns = 0, up_ns = 0, down_ns = 0, up_plain_ns = 0, down_plain_ns = 0;
  int64_t up_frames = 0, down_frames = 0;
  std::vector<bool> callbacks;  // those that others count
};

// What one instance of a chain asks, as another one sees it.
struct Seen {
  time_ns client_ns = 0, up_ns = 0, down_ns = 0;
  int64_t up_frames = 0, down_frames = 0;  // in a window of the stream
  int64_t up_control = 0, down_control = 0, up_asks = 0, down_asks = 0;
};

// Beyond it nothing has a bound.
inline constexpr time_ns kLongestWaitNs = 1'000'000'000'000;

// Executions of a chain in a window, when an instance executes `load_ns` within `span_ns` of its release.
inline Linear share(time_ns load_ns, time_ns period_ns, time_ns span_ns, time_ns window_ns) {
  if (load_ns == 0) return {};
  const time_ns length_ns = window_ns + std::max<time_ns>(span_ns - load_ns, 0);
  const time_ns count = length_ns / period_ns;
  const time_ns rest_ns = length_ns % period_ns;
  const time_ns always = load_ns / period_ns;
  const time_ns part_ns = load_ns % period_ns;
  const time_ns value_ns = add(multiply(count, load_ns), multiply(always, rest_ns));
  if (part_ns == 0) return {value_ns, always, kNeverNs};
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
    for (size_t chain = 0; chain < size(); chain++) order_.push_back(chain);
    std::stable_sort(order_.begin(), order_.end(), [this](size_t left, size_t right) {
      return system_.chains[left].priority > system_.chains[right].priority;
    });
    for (size_t chain = 0; chain < size(); chain++) {
      roots_[chain] = chain;
      responses_[chain] = system.chains[chain].response_ns.value_or(0);
      if (!is_foreign(chain) || is_batch()) here_.push_back(chain);
    }
    answer_ns_ = answer_frame_ns(system.line);
    gap_ns_ = system.client.interrupt_receive_ns + system.client.interrupt_complete_ns;
    for (const LinkChain &chain : system.chains) asked_.push_back(visit_load(chain));
    find_shared();
  }

  LinkResults run();

 private:
  struct Demand {
    std::vector<Linear> cases;
    Linear up, down, host, remote;
    LinkParts parts;
  };
  // What a response counts to: what its last callback sends has left, or that callback has ended.
  enum class Until { sent, ended };
  struct Spacing {
    time_ns apart_ns = 0, longest_ns = 0;
  };
  struct Once {
    Linear sum;
    time_ns again_ns = 0;   // what one instance more would add, were it there with both visits
    time_ns latest_ns = 0;  // the longest way over the line of any
  };

  size_t size() const { return system_.chains.size(); }
  // Bounded elsewhere: it is about on the host only.
  bool is_foreign(size_t chain) const { return system_.chains[chain].response_ns.has_value(); }
  bool is_batch() const { return system_.client.policy == ClientPolicy::batch; }
  bool goes_first(size_t other, size_t chain) const {
    return other != chain && (is_batch() || system_.chains[other].priority > system_.chains[chain].priority ||
                              shares_level(other, chain));
  }
  // What is as urgent goes first or comes behind: both have the same streams, and order of arrival decides.
  bool shares_level(size_t other, size_t chain) const {
    return other != chain && system_.chains[other].shares_level && system_.chains[chain].shares_level &&
           system_.chains[other].priority == system_.chains[chain].priority;
  }
  // Those that share the level of this chain, without it.
  std::vector<size_t> sharers(size_t chain) const {
    std::vector<size_t> found;
    for (const size_t other : here_) {
      if (shares_level(other, chain)) found.push_back(other);
    }
    return found;
  }
  // Both are released by the same expiry of the same timer.
  bool one_release(size_t other, size_t chain) const {
    return roots_of_[other] != 0 && roots_of_[other] == roots_of_[chain];
  }
  time_ns period(size_t chain) const { return system_.chains[chain].period_ns; }
  time_ns jitter(size_t chain) const { return system_.chains[chain].jitter_ns; }
  bool waits_for_answer(const LinkChain &chain) const {
    return is_batch() && system_.client.send != Send::asynchronous && chain.uplink_reliable;
  }
  bool waits_for_line(const LinkChain &chain) const {
    return is_batch() && system_.client.send == Send::blocking && !chain.uplink_reliable;
  }

  void find_shared();
  Cut cut_of(size_t chain, const std::set<SharedKey> &elsewhere) const;
  bool begins_alike(size_t longer, size_t shorter) const;
  const Cut &cut_for(size_t other, size_t chain) const {
    return one_release(other, chain) ? inside_.at({other, chain}) : outside_[other];
  }
  Seen seen(size_t other, size_t chain) const;
  std::map<std::string, time_ns> seen_on_host(size_t other, size_t chain, size_t place) const;
  Linear lanes_wait(size_t chain, size_t place, time_ns window_ns) const;
  time_ns latest_ns(size_t chain) const;
  Linear within(size_t other, size_t chain, time_ns load_ns, time_ns window_ns) const;
  void make_loads();
  Load visit_load(const LinkChain &chain) const;
  void cross(Load &load, Direction direction, const LinkCallback &from) const;
  void count_control();
  int64_t lossy_instances(size_t chain) const;
  void count_questions(size_t chain);
  time_ns tail_ns(size_t chain) const;
  time_ns span_ns(size_t chain) const;
  void count_interrupts(Load &load) const;
  time_ns longest_frame_ns(Direction direction) const;
  int64_t beginnings(size_t chain, const Traffic &sent) const;
  int64_t asks_within(size_t chain, Direction direction, time_ns window_ns) const;
  time_ns control_wait_ns(size_t chain, Direction direction, int64_t own, time_ns known_ns) const;
  time_ns taking_ns(size_t chain) const;
  Linear signs_of_life(time_ns window_ns) const;
  Linear signs_of_life(time_ns window_ns, Direction direction) const;
  void derive(size_t chain);
  std::vector<int64_t> busy_instances(Direction direction) const;
  Spacing message_spacing() const;
  time_ns uplink_wait(size_t chain, const Spacing &spacing, const std::vector<int64_t> &instances) const;
  void find_uplink_waits();
  time_ns answers_apart_ns() const;
  void find_downlink_waits();
  bool is_alive_anyway() const;
  std::vector<size_t> dependences(size_t chain) const;

  Linear client_interference(size_t chain, time_ns window_ns, LinkParts &parts) const;
  Linear interrupts(size_t chain, time_ns window_ns) const;
  Linear uplink(size_t chain, int64_t messages, time_ns window_ns, LinkParts &parts) const;
  Linear uplink_by_level(size_t chain, int64_t messages, time_ns window_ns, LinkParts &parts) const;
  Linear downlink(size_t chain, time_ns window_ns, LinkParts &parts) const;
  Linear downlink_by_level(size_t chain, time_ns window_ns, LinkParts &parts) const;
  Linear host(size_t chain, time_ns window_ns) const;
  bool in_one_stream(size_t other, size_t chain, Direction direction) const;
  Linear unacknowledged(size_t chain, Direction direction, time_ns window_ns) const;
  Linear window_wait(size_t chain, Direction direction, int64_t messages, time_ns window_ns) const;
  bool is_any_window_full() const;
  StreamUse use_of(size_t chain, Direction direction) const;
  time_ns client_blocking(size_t chain) const;
  time_ns lock_blocking(size_t chain) const;
  bool pairs_are_apart(size_t chain, time_ns window_ns, time_ns more_ns) const;
  Once visits_once(size_t chain, time_ns window_ns) const;
  size_t only_less_urgent(size_t chain, time_ns window_ns) const;
  Demand demand(size_t chain, time_ns window_ns, Until until = Until::sent) const;
  time_ns solve(size_t chain, time_ns &reached_ns) const;
  void fail(size_t chain, time_ns reached_ns);
  struct Shares {
    double up = 0, down = 0, plain_up = 0, plain_down = 0, client = 0;
  };
  Shares asked(size_t chain) const;
  std::optional<size_t> overloaded(size_t chain) const;
  time_ns least_window(size_t chain, Until until, time_ns from_ns, time_ns most_ns, time_ns &reached_ns) const;
  time_ns settled(size_t chain, Until until, time_ns window_ns) const;
  time_ns end_ns(size_t chain) const;
  void explain(size_t chain, LinkResult &result) const;
  void blame(size_t chain, LinkResult &result) const;
  std::string reason(size_t chain) const;
  std::string overload(size_t chain) const;
  std::optional<std::string> full_window(size_t chain) const;
  std::vector<Assumption> assumptions() const;

  const LinkSystem &system_;
  const int most_passes_;
  std::vector<size_t> order_;       // most urgent first
  std::vector<size_t> here_;        // that may delay others on the client and its line; in a batch all of them
  std::vector<time_ns> responses_;  // from the nominal expiry; kNeverNs: late
  std::vector<size_t> roots_;       // of those that are late, the chain that was late first
  std::vector<time_ns> reached_;    // and what was found of it then
  std::vector<LinkParts> reached_parts_;
  bool settled_ = true;           // else bounds raised each other without end
  std::vector<time_ns> remotes_;  // from the end of the first visit until the answer is there
  std::vector<Load> loads_;
  std::vector<Load> asked_;                          // the same of an idle system: nothing waits for anything
  std::vector<int64_t> roots_of_;                    // number of the first callback
  std::vector<bool> goes_on_;                        // there is a chain that begins with all of this one
  std::vector<Cut> outside_;                         // what others have counted already
  std::map<std::pair<size_t, size_t>, Cut> inside_;  // of one, as another one of its timer has it
  std::vector<std::vector<size_t>> as_late_;         // chains by whose last input what this one is charged may come
  time_ns answer_ns_ = 0, gap_ns_ = 0;
  std::vector<time_ns> up_waits_, down_waits_;  // by chain, of one instance where the line keeps up; else kNeverNs
  bool hosts_keep_up_ = false, alive_ = false;
  bool windows_suffice_ = true;   // no stream ever has to wait for an acknowledgment
  bool control_counted_ = false;  // else loads_ lack some of what is asked, and nothing has a bound
};

}  // namespace tide::analysis
