// SPDX-License-Identifier: Apache-2.0
// Every analysis has one signature and an entry in the registry; analyse() applies one to an executor.
//
// An analysis states what may keep the lanes of the executor busy, or away from the chain, in a window that starts with
// the release of the chain and ends when its last callback gets its first unit of time. The solver finds the least
// window in which the supply exceeds that demand; what remains of the last callback is added (docs/analysis).
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/model.h"

namespace tide::analysis {

// published: as printed, kept for comparison with the literature; real schedules exceed it. safe: the repaired bound.
enum class Variant { published, safe };
// constrained: no deadline exceeds its period.
enum class Deadlines { constrained, arbitrary };

struct Options {
  // After a pass in which the chains meet their deadlines, takes their bounds in place of their deadlines; repeats.
  bool refine = false;
  int refine_passes = 16;
  // Lets less important chains block at most as long as they execute at all. Needs them to meet their deadlines.
  bool joint = false;
  // Lanes on cores of their own, a chain that shares no group, safe: others keep the chain waiting only while all lanes
  // are busy with them at the same time, and none of them can be busy for longer than that.
  bool cap_running = false;
  // On executors with one thread and no groups, lowers bounds by looking at busy windows (single_thread.h).
  bool sharpen = false;
  // Counts whole instances of other chains, as the published theorems for arbitrary deadlines do.
  bool whole_instances = false;
  // Windows are looked for at least this far; 0: as far as deadlines suggest.
  time_ns search_ns = 0;
  // Shares of chains that may be looked at before it is given up, which leaves chains without a bound.
  int64_t most_work = std::numeric_limits<int64_t>::max();
  // The caller confirms what deadlines say of the chains: none of them is distrusted for being late but those of
  // `late`.
  bool presume = false;
  // The one chain that is bounded; by default all are.
  size_t only = std::numeric_limits<size_t>::max();
  // Asks only whether all chains are met: stops at the first that is not, explains nothing.
  bool only_verdict = false;
};

// One chain under analysis, and what is known of the others.
struct Situation {
  const Executor &executor;
  const Supply &supply;
  const Options &options;
  std::vector<time_ns> slack_ns;              // how late within its allowed response each chain may still execute
  std::vector<char> trusted;                  // chains that are known to meet their deadlines
  size_t chain = 0;                           // the one under analysis
  time_ns precedence_ns = 0;                  // what its variant charges for preceding callbacks
  std::vector<size_t> blockers;               // less important chains, those with the longest callback first
  bool caps = false;                          // options.cap_running applies to the chain under analysis
  std::vector<time_ns> *shares_ns = nullptr;  // if asked for: the interference by chain

  const Chain &self() const { return executor.chains()[chain]; }
};

// The demand in units of executor supply.
struct Terms {
  Linear precedence;    // while callbacks of the chain itself run, other lanes are of no use to it
  Linear interference;  // executions of other chains that may go first
  Linear own;           // other instances of the same chain
  Linear blocking;      // less important callbacks that have started and cannot be preempted
  Linear groups;        // waiting for members of mutually exclusive groups
  Linear total() const { return precedence + interference + own + blocking + groups; }
};

using Demand = Terms (*)(const Situation &situation, time_ns window_ns);

struct Analysis {
  std::string_view name;
  std::string_view title;
  Policy policy = Policy::any_order;  // of the executors that it is proved for
  Deadlines deadlines = Deadlines::constrained;
  Variant variant = Variant::safe;
  bool groups = false;  // knows mutually exclusive groups
  Demand demand = nullptr;
};

// All analyses, by theorem.
std::span<const Analysis> analyses();
const Analysis *find_analysis(std::string_view name);
// The safe analysis that fits the executor: its policy, its groups, its deadlines.
const Analysis &fitting_analysis(const Executor &executor);

// The bound of a chain holds only if another chain meets its deadline, because its ...
enum class Reason { interference, blocking };

struct Dependence {
  size_t chain = 0;
  Reason reason = Reason::interference;
};

struct Breakdown {
  time_ns precedence_ns = 0;
  time_ns own_ns = 0;
  time_ns blocking_ns = 0;
  time_ns groups_ns = 0;
  std::vector<time_ns> interference_ns;  // by chain
  time_ns demand_ns = 0;                 // the sum of all above
  time_ns window_ns = 0;                 // the least in which the supply exceeds the demand
  time_ns finish_ns = 0;                 // for the rest of the last callback; with the window it is the bound
};

struct ChainResult {
  std::optional<time_ns> response_ns;  // none: the analysis finds no bound
  bool met = false;                    // the bound is within the deadline
  bool guaranteed = false;             // met, safe, and everything it depends on is met too
  bool sound = false;                  // the bound holds, be the deadline met or not
  std::string_view analysis;           // that the bound comes from
  Policy proved_for = Policy::any_order;
  time_ns reached_ns = 0;  // without a bound: it would be no less
  Breakdown breakdown;     // without a bound: of the window that was looked at last
  std::vector<Dependence> depends_on;
};

struct Result {
  const Analysis *analysis = nullptr;
  std::string error;  // why the analysis does not apply; then there are no chains
  std::vector<ChainResult> chains;
  bool met = false;  // all chains are
  int64_t work = 0;  // shares of chains that were looked at
};

// late, if given: chains of which nothing is known but their order, so that they meet no deadline.
Result analyse(const Analysis &analysis, const Executor &executor, const Options &options = {},
               const std::vector<char> *late = nullptr);

}  // namespace tide::analysis
