// SPDX-License-Identifier: Apache-2.0
// The model of every analysis: exact time, executors with their lanes, the chains of callbacks on them, and the least
// and greatest processor supply of lanes.
//
// A reader of files or a generator fills in a Description. System::build() checks it and makes the immutable System;
// for an impossible or incomplete description it returns errors that name the entry.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tide::analysis {

// ---- time ----
// Exact time: integer nanoseconds, with sums and products that stop at `kNeverNs` instead of overflowing.

using time_ns = int64_t;

// Larger than every time that a model may contain; the sum of two still fits.
inline constexpr time_ns kNeverNs = std::numeric_limits<time_ns>::max() / 4;

inline time_ns add(time_ns left, time_ns right) { return std::min(left + right, kNeverNs); }

inline time_ns multiply(time_ns left, time_ns right) {
  time_ns product = 0;
  return __builtin_mul_overflow(left, right, &product) ? kNeverNs : std::min(product, kNeverNs);
}

// The quotient rounded up, for a dividend that is not negative and a positive divisor.
inline time_ns divide_up(time_ns dividend, time_ns divisor) { return (dividend + divisor - 1) / divisor; }

// ---- functions of a window ----
// A function of the window's length, described at one window: its value, its slope, and the longest window up to which
// this description is exact.
//
// Demand and supply are piecewise linear. Because each piece is known, the solver can go from corner to corner;
// otherwise, when demand grows as fast as supply, it would advance by one nanosecond per step.

struct Linear {
  time_ns value = 0;
  time_ns slope = 0;
  time_ns until_ns = kNeverNs;  // the longest window for which value + slope * (window - here) is exact
};

inline Linear operator+(const Linear &left, const Linear &right) {
  return {add(left.value, right.value), add(left.slope, right.slope), std::min(left.until_ns, right.until_ns)};
}

inline Linear operator-(const Linear &left, const Linear &right) {
  return {left.value - right.value, left.slope - right.slope, std::min(left.until_ns, right.until_ns)};
}

// Multiplies by a constant. If the factor is the value of a stair, the caller must limit until_ns to that of the stair.
inline Linear scale(const Linear &function, time_ns factor) {
  return {multiply(function.value, factor), multiply(function.slope, factor), function.until_ns};
}

inline Linear constant(time_ns value) { return {value, 0, kNeverNs}; }

// The lower envelope of two functions, at the window `here_ns`.
inline Linear lesser(const Linear &left, const Linear &right, time_ns here_ns) {
  const bool left_wins = left.value < right.value || (left.value == right.value && left.slope <= right.slope);
  const Linear &low = left_wins ? left : right;
  const Linear &high = left_wins ? right : left;
  time_ns until_ns = std::min(low.until_ns, high.until_ns);
  if (low.slope > high.slope) {
    until_ns = std::min(until_ns, add(here_ns, (high.value - low.value) / (low.slope - high.slope)));
  }
  return {low.value, low.slope, until_ns};
}

// ceil((window + offset) / period): a stair.
inline Linear stair(time_ns window_ns, time_ns offset_ns, time_ns period_ns) {
  const time_ns count = divide_up(window_ns + offset_ns, period_ns);
  return {count, 0, multiply(count, period_ns) - offset_ns};
}

// ---- executors and chains ----

// Which ready callback a free lane takes. any_order: an arbitrary one. ready_set: one from a cached set that contains
// each callback once, while timers enter the set as they expire (TIDE_POLICY_READYSET; the model of Casini et al. 2019
// and Blass et al. 2021). wait_set: one from such a set in which timers are cached, too (rclcpp of Jazzy on one
// thread). fifo: the one that became ready first (rclcpp's EventsExecutor). priority: always the most important one.
enum class Policy { any_order, ready_set, wait_set, fifo, priority };

// True if a bound proved for one policy also holds for an executor with another policy. The bound for ready_set holds
// for wait_set, too, because a cached timer runs at most as often as a live one.
constexpr bool holds_for(Policy proved, Policy executor) {
  return proved == executor || proved == Policy::any_order ||
         (proved == Policy::ready_set && executor == Policy::wait_set);
}

// The names used in documents and results: "any_order", "default", "wait_set", "fifo", "priority".
const char *name_of(Policy policy);
std::optional<Policy> policy_of(std::string_view name);

// What a more urgent thread of a lane's core executes for one of its chains: execution_ns in each period. Each of these
// executions lies within slack_ns + execution_ns of its nominal release.
struct Preemption {
  time_ns execution_ns = 0, period_ns = 1, slack_ns = 0;
  bool operator==(const Preemption &) const = default;
};

// A thread of an executor. It gets budget_ns of processor time in every period_ns; if both values are equal, it has a
// core, which more urgent threads may share.
struct Lane {
  time_ns budget_ns = 1;
  time_ns period_ns = 1;
  std::vector<Preemption> preempted_by{};
  bool dedicated() const { return budget_ns == period_ns && preempted_by.empty(); }
  bool operator==(const Lane &) const = default;
};

// The largest time in a model (eleven days), and the greatest number of callbacks of a chain. Together they keep every
// sum of the model below kNeverNs.
inline constexpr time_ns kLongestTimeNs = 1'000'000'000'000'000;
inline constexpr size_t kMostCallbacks = 1000;
inline constexpr size_t kMostLanes = 1024;

inline constexpr int64_t kMostPriority = 1'000'000'000;

inline constexpr int kReentrant = -1;

struct Callback {
  std::string name;
  time_ns execution_ns = 0;  // worst case; at least 1
  int group = kReentrant;    // index of its mutually exclusive group in the executor
  int64_t priority = 0;      // its own priority, which overrides that of its chain; 0: none. Larger is more important
  time_ns least_ns = 0;      // shortest execution
};

// A sequence of callbacks, each of which makes the next one ready. A timer or an event releases the first callback at
// most once every period_ns; each release may be late by up to jitter_ns. deadline_ns counts from the release of the
// first callback to the completion of the last.
struct Chain {
  std::string name;
  std::vector<Callback> callbacks;
  time_ns period_ns = 0;
  time_ns deadline_ns = 0;
  time_ns jitter_ns = 0;
  int64_t priority = 0;  // larger is more important
  bool timer = false;    // the first callback is a timer and so never overlaps itself
  // Derived:
  time_ns execution_ns = 0;  // total of all callbacks
  time_ns least_ns = 0;      // sum of the shortest times of all callbacks
  time_ns longest_ns = 0;    // execution time of the longest callback
  time_ns last_ns = 0;       // execution time of the last callback
};

struct Member {
  size_t chain = 0;
  size_t callback = 0;
};

class Executor {
 public:
  // Does not check its arguments, because System::build() and the generator do.
  Executor(std::string name, Policy policy, std::vector<Lane> lanes, std::vector<Chain> chains,
           std::vector<std::string> groups = {});

  // The core that its only lane shares with those of other executors, and the lane's priority there; -1: none.
  time_ns core = -1, thread_priority = 0;

  const std::string &name() const { return name_; }
  Policy policy() const { return policy_; }
  const std::vector<Lane> &lanes() const { return lanes_; }
  const std::vector<Chain> &chains() const { return chains_; }
  const std::vector<std::string> &groups() const { return groups_; }
  const std::vector<std::vector<Member>> &members() const { return members_; }  // the callbacks of each group
  bool dedicated() const { return dedicated_; }                                 // every lane has a dedicated core
  bool has_groups() const { return has_groups_; }                               // some callback is in a group
  bool own_priorities() const { return own_priorities_; }                       // all callbacks have their own priority

  // The chains from the most to the least important, and the position of each chain in that order.
  const std::vector<size_t> &order() const { return order_; }
  size_t rank(size_t chain) const { return rank_[chain]; }
  bool above(size_t left, size_t right) const { return rank_[left] < rank_[right]; }

  Executor with_policy(Policy policy) const;
  void preempt(const std::vector<Preemption> &by);  // of its only lane
  void retime(const std::vector<time_ns> &jitter_ns, const std::vector<time_ns> &deadline_ns);
  Executor with_deadlines(const std::vector<time_ns> &deadline_ns) const;  // one value for each chain
  Executor with_jitter(const std::vector<time_ns> &jitter_ns) const;       // one value for each chain

 private:
  std::string name_;
  Policy policy_;
  std::vector<Lane> lanes_;
  std::vector<Chain> chains_;
  std::vector<std::string> groups_;
  std::vector<std::vector<Member>> members_;
  std::vector<size_t> order_;
  std::vector<size_t> rank_;
  bool dedicated_ = true;
  bool has_groups_ = false;
  bool own_priorities_ = false;
};

struct CallbackEntry {
  std::string name;
  time_ns execution_ns = 0;
  std::string group;     // empty if it is reentrant
  int64_t priority = 0;  // 0 selects the priority of its chain
  time_ns least_ns = 0;  // shortest execution
};

struct ChainEntry {
  std::string name;
  std::string executor;
  std::vector<CallbackEntry> callbacks;
  time_ns period_ns = 0;
  time_ns deadline_ns = 0;
  time_ns jitter_ns = 0;
  int64_t priority = 0;
  bool timer = false;
};

// `core`: a number that executors on one core have in common, -1 for none. They then have one lane each, and of the
// lanes of a core that could execute, the one with the greatest thread_priority does.
struct ExecutorEntry {
  std::string name;
  Policy policy = Policy::priority;
  std::vector<Lane> lanes;
  time_ns core = -1, thread_priority = 0;
};

struct GroupEntry {
  std::string name;
  std::string executor;
};

// A chain over several executors. Each segment is an entry of `chains`; there is a propagation delay between successive
// segments.
struct PathEntry {
  std::string name;
  std::vector<std::string> segments;
  std::vector<time_ns> delays_ns;  // one fewer than segments
  time_ns deadline_ns = 0;
};

struct Description {
  std::vector<ExecutorEntry> executors;
  std::vector<GroupEntry> groups;
  std::vector<ChainEntry> chains;
  std::vector<PathEntry> paths;
};

struct Place {
  size_t executor = 0;
  size_t chain = 0;
};

struct Path {
  std::string name;
  std::vector<Place> segments;
  std::vector<time_ns> delays_ns;
  time_ns deadline_ns = 0;
};

class System;

// Either a system or at least one error.
struct Built;

class System {
 public:
  static Built build(const Description &description);

  const std::vector<Executor> &executors() const { return executors_; }
  const std::vector<Path> &paths() const { return paths_; }

 private:
  std::vector<Executor> executors_;
  std::vector<Path> paths_;
};

struct Built {
  std::optional<System> system;
  std::vector<std::string> errors;
};

// Makes a chain of reentrant callbacks from their execution times.
Chain make_chain(const std::vector<time_ns> &execution_ns, time_ns period_ns, time_ns deadline_ns, int64_t priority);

// ---- supply ----
// Least and greatest processor time of a lane, or of all lanes of an executor together, in a window.

// The least supply of a lane in any window of this length (Shin and Lee).
time_ns least_supply_ns(const Lane &lane, time_ns window_ns);
// The most supply of a lane in any window of this length.
time_ns most_supply_ns(const Lane &lane, time_ns window_ns);
// The shortest window in which the lane is guaranteed supply_ns of processor time.
time_ns window_for_ns(const Lane &lane, time_ns supply_ns);

// Supply of all lanes of an executor. Keeps a reference to these lanes.
class Supply {
 public:
  explicit Supply(const std::vector<Lane> &lanes);

  time_ns lanes() const { return static_cast<time_ns>(lanes_.size()); }
  bool dedicated() const { return dedicated_; }
  // The sum of the lanes' least supplies; a lower limit whatever the phases of the lanes.
  Linear least(time_ns window_ns) const;
  time_ns window_for_ns(time_ns supply_ns) const;
  // Like window_for_ns, for the slowest single lane: the longest time that a callback of this length needs once it has
  // started.
  time_ns worst_window_for_ns(time_ns supply_ns) const;
  // Greatest supply of all lanes together while one of them executes a callback of this length. The executing lane may
  // be out of budget while the others are not.
  time_ns passing_ns(time_ns execution_ns) const;

 private:
  const std::vector<Lane> &lanes_;
  bool dedicated_ = true;
  bool alike_ = true;
};

}  // namespace tide::analysis
