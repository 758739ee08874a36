// SPDX-License-Identifier: Apache-2.0
// Every analysis has one signature and an entry in the registry; analyse() applies one to an executor.
//
// An analysis gives the demand that may keep the executor's lanes busy or unavailable in a window from the release of
// the chain until its last callback gets its first unit of time. The solver finds the least window whose supply exceeds
// that demand; the rest of the last callback is added (docs/analysis).
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
  // Lets less important chains block for at most their total execution. Requires that they meet their deadlines.
  bool joint = false;
  // For lanes on dedicated cores, a chain without a shared group, safe: the chain waits only while all lanes are busy
  // with others, and none of these can be busy for longer than that.
  bool cap_running = false;
  // On executors with one thread and no groups, lowers bounds by busy windows (single_thread.h).
  bool sharpen = false;
  // Counts whole instances of other chains, as the published theorems for arbitrary deadlines do.
  bool whole_instances = false;
  // Minimum range of the search for windows; 0: determined by deadlines.
  time_ns search_ns = 0;
  // Effort after which the search is given up and chains have no bound; each step costs the number of chains.
  int64_t most_work = std::numeric_limits<int64_t>::max();
  // The caller will confirm the chains' deadlines: only those in `late` are distrusted.
  bool presume = false;
  // The one chain that is bounded; by default all are.
  size_t only = std::numeric_limits<size_t>::max();
  // Only finds out whether every deadline is met: stops at the first miss, gives no reasons.
  bool only_verdict = false;
};

// One chain under analysis, and the known values of the others.
struct Situation {
  const Executor &executor;
  const Supply &supply;
  const Options &options;
  std::vector<time_ns> slack_ns;              // slack of each chain within its allowed response
  std::vector<char> trusted;                  // chains that are known to meet their deadlines
  size_t chain = 0;                           // the one under analysis
  time_ns precedence_ns = 0;                  // charge of the variant for preceding callbacks
  std::vector<size_t> blockers;               // less important chains, those with the longest callback first
  bool caps = false;                          // options.cap_running applies to the chain under analysis
  std::vector<time_ns> *shares_ns = nullptr;  // if requested: the interference by chain

  const Chain &self() const { return executor.chains()[chain]; }
};

// The demand in units of executor supply.
struct Terms {
  Linear precedence;    // while callbacks of the chain itself run, it cannot use other lanes
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
  Policy policy = Policy::any_order;  // policy of the executors for which it is proved
  Deadlines deadlines = Deadlines::constrained;
  Variant variant = Variant::safe;
  bool groups = false;  // covers mutually exclusive groups
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
  time_ns window_ns = 0;                 // the least window whose supply exceeds the demand
  time_ns finish_ns = 0;                 // time for the rest of the last callback; bound = window + this
};

struct ChainResult {
  std::optional<time_ns> response_ns;  // none: the analysis finds no bound
  bool met = false;                    // the bound is within the deadline
  bool guaranteed = false;             // met, safe, and everything it depends on is met too
  bool sound = false;                  // the bound holds whether or not the deadline is met
  std::string_view analysis;           // the analysis that gave the bound
  Policy proved_for = Policy::any_order;
  time_ns reached_ns = 0;  // without a bound: a lower limit
  Breakdown breakdown;     // without a bound: of the last window tried
  std::vector<Dependence> depends_on;
};

struct Result {
  const Analysis *analysis = nullptr;
  std::string error;  // why the analysis does not apply; then there are no chains
  std::vector<ChainResult> chains;
  bool met = false;  // all chains are met
  int64_t work = 0;  // effort used, in shares of chains
};

// late, if given: chains of which only the order is known, so that they meet no deadline.
Result analyse(const Analysis &analysis, const Executor &executor, const Options &options = {},
               const std::vector<char> *late = nullptr);

}  // namespace tide::analysis
