// SPDX-License-Identifier: Apache-2.0
#include "analysis/system/end_to_end.h"

namespace tide::analysis {
namespace {

constexpr int kMostRounds = 400;
constexpr int kExactRounds = 24;  // after them jitters are raised a little further, which keeps the rounds few
constexpr int64_t kMostWork = 40'000'000;

class Composition {
 public:
  Composition(const System &system, const Options &options) : system_(system), work_(kMostWork) {
    executors_.reserve(system.executors().size());
    for (size_t number = 0; number < system.executors().size(); ++number) {
      const Executor &executor = system.executors()[number];
      executors_.emplace_back(executor, number, options, work_);
      jitter_ns_.emplace_back();
      for (const Chain &chain : executor.chains()) jitter_ns_.back().push_back(chain.jitter_ns);
    }
  }

  SystemResult run() {
    for (int round = 0;; ++round) {
      for (size_t number = 0; number < executors_.size(); ++number) executors_[number].find(jitter_ns_[number]);
      if (round == kMostRounds || work_ <= 0) give_up();
      if (!carry_jitter(round >= kExactRounds)) break;
    }
    return conclude();
  }

 private:
  const ChainResult &at(const Place &place) const { return executors_[place.executor].result().chains[place.chain]; }
  const std::optional<Shortfall> &why(const Place &place) const { return executors_[place.executor].why(place.chain); }
  time_ns &jitter_ns(const Place &place) { return jitter_ns_[place.executor][place.chain]; }

  // Whether a segment is released later than was supposed, or nobody knows how late. A segment's jitter is what lies
  // between its latest release and its earliest, which is that of a path whose callbacks all take their shortest time.
  bool carry_jitter(bool further) {
    bool changed = false;
    for (const Path &path : system_.paths()) {
      time_ns late_ns = jitter_ns(path.segments.front()), early_ns = 0;
      for (size_t segment = 1; segment < path.segments.size(); ++segment) {
        const Place &before = path.segments[segment - 1], &place = path.segments[segment];
        const Chain &chain = system_.executors()[before.executor].chains()[before.chain];
        early_ns += chain.least_ns;
        if (executors_[place.executor].is_lost(place.chain)) continue;
        if (why(before)) {
          lose(place, *why(before));
          changed = true;
          continue;
        }
        // Also of one that has no bound: how late it is released is in the bounds of others.
        late_ns = add(late_ns, add(*at(before).response_ns, path.delays_ns[segment - 1]));
        time_ns &known_ns = jitter_ns(place);
        if (late_ns - early_ns <= known_ns) {
          late_ns = early_ns + known_ns;
          continue;
        }
        changed = true;
        const time_ns limit_ns = longest_response_ns(path.deadline_ns, chain.period_ns);
        if (late_ns > limit_ns)
          lose(place, {Shortfall::Kind::unsettled, before.executor, before.chain, late_ns, limit_ns});
        const time_ns spread_ns = late_ns - early_ns;
        known_ns = add(spread_ns, further ? spread_ns / 16 : 0);
        late_ns = add(early_ns, known_ns);
      }
    }
    return changed;
  }

  void lose(const Place &place, const Shortfall &why) { executors_[place.executor].lose(place.chain, why); }

  // What waits for another executor may still be released later than is known.
  void give_up() {
    for (const Path &path : system_.paths()) {
      const Place &first = path.segments.front();
      const time_ns period_ns = system_.executors()[first.executor].chains()[first.chain].period_ns;
      for (size_t segment = 1; segment < path.segments.size(); ++segment) {
        const Place &place = path.segments[segment];
        if (!executors_[place.executor].is_lost(place.chain))
          lose(place, {Shortfall::Kind::effort, first.executor, first.chain, jitter_ns(place),
                       longest_response_ns(path.deadline_ns, period_ns)});
      }
    }
    work_ = std::max<int64_t>(work_, kMostWork / 10);  // for what is left
  }

  SystemResult conclude() {
    SystemResult result;
    result.guaranteed = true;
    for (size_t number = 0; number < executors_.size(); ++number) {
      result.executors.push_back(executors_[number].result());
      result.why.emplace_back();
      for (size_t chain = 0; chain < result.executors.back().chains.size(); ++chain) {
        result.why.back().push_back(executors_[number].why(chain));
        result.guaranteed = result.guaranteed && result.executors.back().chains[chain].guaranteed;
      }
    }
    for (const Path &path : system_.paths()) {
      PathResult answer;
      time_ns sum_ns = 0;
      for (const Place &place : path.segments) {
        answer.segments_ns.push_back(at(place).response_ns);
        answer.jitter_ns.push_back(jitter_ns(place));
        if (!answer.why) answer.why = why(place);
        sum_ns = add(sum_ns, at(place).response_ns.value_or(0));
      }
      for (const time_ns delay_ns : path.delays_ns) sum_ns = add(sum_ns, delay_ns);
      result.settled = result.settled && !answer.why;
      if (!answer.why) answer.response_ns = sum_ns;
      answer.met = answer.guaranteed = !answer.why && sum_ns <= path.deadline_ns;
      result.guaranteed = result.guaranteed && answer.guaranteed;
      result.paths.push_back(std::move(answer));
    }
    return result;
  }

  const System &system_;
  int64_t work_;
  std::vector<Confirmed> executors_;
  std::vector<std::vector<time_ns>> jitter_ns_;
};

}  // namespace

SystemResult analyse_system(const System &system, const Options &options) { return Composition(system, options).run(); }

}  // namespace tide::analysis
