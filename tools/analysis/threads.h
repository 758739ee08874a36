// SPDX-License-Identifier: Apache-2.0
// Executors with any number of threads. Every analysis has the same signature (Demand) and an entry in the registry
// analyses(); analyse() applies one of them to an executor.
//
// An analysis gives the demand that may keep the executor's lanes busy or unavailable in a window. The window reaches
// from the release of the chain until its last callback gets its first unit of time. The solver finds the least window
// whose supply exceeds that demand; the rest of the last callback is added (docs/analysis).
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

// published: as printed, kept for comparison with the literature, although real schedules exceed it. safe: the repaired
// bound.
enum class Variant { published, safe };
// constrained: no deadline is longer than its period.
enum class Deadlines { constrained, arbitrary };

struct Options {
  // After a pass in which all chains meet their deadlines, the analysis repeats the pass with their bounds in place of
  // their deadlines.
  bool refine = false;
  int refine_passes = 16;
  // Limits blocking by less important chains to their total execution time. This requires that they meet their
  // deadlines.
  bool joint = false;
  // Applies to the safe bound of a chain without a shared group, on lanes with dedicated cores: the chain waits only
  // while all lanes are busy with other chains, and none of these can be busy for longer than that wait.
  bool cap_running = false;
  // On executors with one thread and no groups, lowers bounds by the analysis of busy windows (single.h).
  bool sharpen = false;
  // Counts whole instances, as the published theorems for arbitrary deadlines do.
  bool whole_instances = false;
  // Windows are searched at least up to this length; 0: the deadlines alone determine the range.
  time_ns search_ns = 0;
  // Effort after which the search ends, so that the remaining chains have no bound. Each step of the search costs as
  // much effort as there are chains.
  int64_t most_work = std::numeric_limits<int64_t>::max();
  // Deadlines may be assumed to be met, because the caller confirms them afterwards. This excludes the chains in `late`
  // (see analyse()).
  bool presume = false;
  // The one chain that is bounded; unset: all chains.
  size_t only = std::numeric_limits<size_t>::max();
  // Only finds out whether every deadline is met: the search stops at the first miss and gives no reasons.
  bool only_verdict = false;
};

// Input of a Demand: the chain under analysis, and what the current pass knows about the other chains.
struct Situation {
  const Executor &executor;
  const Supply &supply;
  const Options &options;
  std::vector<time_ns> slack_ns;              // slack of each chain within its allowed response
  std::vector<char> trusted;                  // by chain: 1 if it is assumed to meet its deadline
  size_t chain = 0;                           // index of the chain under analysis
  time_ns precedence_ns = 0;                  // time that the variant (published or safe) counts for preceding
                                              // callbacks of the chain
  std::vector<size_t> blockers;               // less important chains, those with the longest callback first
  bool caps = false;                          // true if options.cap_running applies to the chain under analysis
  std::vector<time_ns> *shares_ns = nullptr;  // if not null, receives the interference by chain

  const Chain &self() const { return executor.chains()[chain]; }
};

// The demand in units of executor supply.
struct Terms {
  Linear precedence;    // supply that the chain cannot use while its preceding callbacks run
  Linear interference;  // execution of other chains that may go first
  Linear own;           // other instances of the same chain
  Linear blocking;      // less important callbacks that have started and cannot be preempted
  Linear groups;        // waiting for members of mutually exclusive groups
  Linear total() const { return precedence + interference + own + blocking + groups; }
};

using Demand = Terms (*)(const Situation &situation, time_ns window_ns);

struct Analysis {
  std::string_view name;
  std::string_view title;
  Policy policy = Policy::any_order;  // policy of the executors for which the analysis is proved
  Deadlines deadlines = Deadlines::constrained;
  Variant variant = Variant::safe;
  bool groups = false;  // true if it covers mutually exclusive groups
  Demand demand = nullptr;
};

// All analyses, by theorem.
std::span<const Analysis> analyses();
const Analysis *find_analysis(std::string_view name);
// The safe analysis that fits the executor's policy, groups and deadlines.
const Analysis &fitting_analysis(const Executor &executor);

// Why a bound needs another chain to meet its deadline: the bound counts that chain's interference or its blocking.
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
  time_ns finish_ns = 0;                 // time for the rest of the last callback; the bound is the window plus this
};

struct ChainResult {
  std::optional<time_ns> response_ns;  // unset if the analysis finds no bound
  bool met = false;                    // true if the bound is within the deadline
  bool guaranteed = false;             // true if the bound is met and safe, and all that it depends on is met too
  bool sound = false;                  // true if the bound holds whether or not the deadline is met
  std::string_view analysis;           // the analysis that gave the bound
  Policy proved_for = Policy::any_order;
  time_ns reached_ns = 0;  // only without a bound: a lower limit
  Breakdown breakdown;     // without a bound: parts of the last window tried
  std::vector<Dependence> depends_on;
};

struct Result {
  const Analysis *analysis = nullptr;
  std::string error;  // why the analysis does not apply; `chains` is then empty
  std::vector<ChainResult> chains;
  bool met = false;  // true if all chains are met
  int64_t work = 0;  // effort used, in the unit of most_work
};

// `late`, if given, marks chains of which only the importance is known. They count as missing their deadlines.
Result analyse(const Analysis &analysis, const Executor &executor, const Options &options = {},
               const std::vector<char> *late = nullptr);

}  // namespace tide::analysis
