// SPDX-License-Identifier: Apache-2.0
// Bounds of one executor that hold whether or not its deadlines are met, and why a chain has none.
//
// A bound takes for granted how late the other chains may be. That may be any value, their deadlines or another one, as
// long as the bounds that follow from it keep to it: then there is no first moment in which one of them is broken.
// Where deadlines do not do, the least such values are looked for from below.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/system/own_orders.h"
#include "analysis/threads/analysis.h"

namespace tide::analysis {

// No bound is looked for beyond so many times the longer of deadline and period.
inline constexpr time_ns kMostTimesLate = 10;
time_ns longest_response_ns(time_ns deadline_ns, time_ns period_ns);

// What fails first.
struct Shortfall {
  // overload: more is asked of the executor than its lanes give. too_long: nothing below the limit is enough.
  // unsettled: a chain is released later and later, beyond the limit. effort: it was given up.
  enum class Kind { overload, too_long, unsettled, effort };
  Kind kind = Kind::too_long;
  size_t executor = 0, chain = 0;        // of overload the least important chain that is counted
  time_ns reached_ns = 0, limit_ns = 0;  // but for overload
  int64_t asked_permille = 0;            // of one core, for overload; rounded up
  int64_t given_permille = 0;            // rounded down
  std::string_view part{};               // the largest one of what was reached; empty: none is known
  time_ns part_ns = 0;
  std::optional<size_t> part_chain{};  // whose it is
};
const char *name_of(Shortfall::Kind kind);

// The bounds of an executor, for release jitters that only grow.
class Confirmed {
 public:
  // number: of the executor in its system. work: what may still be spent; counted down.
  Confirmed(const Executor &executor, size_t number, const Options &options, int64_t &work);

  void find(const std::vector<time_ns> &jitter_ns);
  // Nothing is known of the releases of a chain any more. Takes effect with the next find().
  void lose(size_t chain, const Shortfall &why);
  bool is_lost(size_t chain) const { return lost_[chain] != 0; }

  // `sound` and `response_ns` of a chain come and go together; met and guaranteed are those of its deadline.
  const Result &result() const { return result_; }
  const std::optional<Shortfall> &why(size_t chain) const { return why_[chain]; }  // it has no bound

 private:
  void find_overload();
  Result analysed(const Executor &executor, bool presume);
  bool all_sound() const;
  bool raise(bool further);
  bool confirmed(const Result &result) const;
  void conclude();
  // alone: those whose bounds need no other chain keep them.
  void lose_from(size_t chain, const Shortfall &why, bool alone = false);
  ChainResult seen_by(size_t chain, const std::vector<time_ns> &jitter_ns, const Analysis *&analysis);
  Result analysed_views(const std::vector<time_ns> &jitter_ns);
  Shortfall too_long(size_t chain) const;
  std::vector<char> late() const;

  const Executor &executor_;
  size_t number_;
  Options options_;
  int64_t &work_;
  Result result_;
  std::vector<char> lost_;
  std::vector<ChainResult> alone_;  // those that need no other chain to be in time
  std::vector<View> views_;         // where callbacks have priorities of their own
  std::unique_ptr<Executor> unordered_executor_;
  std::unique_ptr<Confirmed> unordered_;  // the same in any order
  std::vector<std::optional<Shortfall>> why_;
  std::vector<time_ns> allowed_ns_;  // how late each chain is taken to be, when deadlines do not do
  bool from_below_ = false;
};

}  // namespace tide::analysis
