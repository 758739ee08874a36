// SPDX-License-Identifier: Apache-2.0
#include "analysis/end_to_end.h"

#include "analysis/single_thread.h"

namespace tide::analysis {
namespace {

constexpr int most_rounds = 1000;

class Composition {
 public:
  Composition(const System &system, const Options &options) : system_(system), options_(options) {
    options_.only_verdict = false;
    for (const Executor &executor : system.executors()) {
      jitter_ns_.emplace_back();
      for (const Chain &chain : executor.chains()) jitter_ns_.back().push_back(chain.jitter_ns);
    }
  }

  SystemResult run() {
    result_.settled = false;
    for (int round = 0; round < most_rounds; ++round) {
      analyse_executors();
      bool changed = false;
      if (!carry_jitter(changed)) break;
      if (changed) continue;
      result_.settled = true;
      break;
    }
    withdraw_guarantees();
    conclude();
    return std::move(result_);
  }

 private:
  ChainResult &at(const Place &place) { return result_.executors[place.executor].chains[place.chain]; }
  time_ns &jitter_ns(const Place &place) { return jitter_ns_[place.executor][place.chain]; }

  void analyse_executors() {
    result_.executors.clear();
    for (std::size_t index = 0; index < system_.executors().size(); ++index) {
      const Executor executor = system_.executors()[index].with_jitter(jitter_ns_[index]);
      Result result = analyse(fitting_analysis(executor), executor, options_);
      result_.executors.push_back(options_.sharpen ? sharpened(executor, std::move(result)) : std::move(result));
    }
  }

  // False if a segment that another one waits for has no bound, or would be released too late to say anything.
  bool carry_jitter(bool &changed) {
    for (const Path &path : system_.paths()) {
      time_ns late_ns = jitter_ns(path.segments.front());
      for (std::size_t segment = 1; segment < path.segments.size(); ++segment) {
        const ChainResult &before = at(path.segments[segment - 1]);
        if (!before.response_ns) return false;
        late_ns = add(late_ns, add(*before.response_ns, path.delays_ns[segment - 1]));
        if (late_ns > longest_time_ns) return false;
        time_ns &known_ns = jitter_ns(path.segments[segment]);
        if (late_ns <= known_ns) continue;
        known_ns = late_ns;
        changed = true;
      }
    }
    return true;
  }

  bool withdraw(std::size_t executor) {
    bool changed = false;
    for (ChainResult &chain : result_.executors[executor].chains) {
      changed = changed || chain.guaranteed;
      chain.guaranteed = false;
    }
    return changed;
  }

  // The jitter of a segment is only as good as the bounds before it, and an executor only as good as its jitters.
  void withdraw_guarantees() {
    bool changed = true;
    while (changed) {
      changed = false;
      for (const Path &path : system_.paths()) {
        bool sound = result_.settled;
        for (const Place &place : path.segments) {
          if (!sound) changed = withdraw(place.executor) || changed;
          sound = sound && at(place).guaranteed;
        }
      }
    }
  }

  void conclude() {
    result_.guaranteed = true;
    for (const Result &executor : result_.executors) {
      for (const ChainResult &chain : executor.chains) result_.guaranteed = result_.guaranteed && chain.guaranteed;
    }
    for (const Path &path : system_.paths()) {
      PathResult answer;
      time_ns sum_ns = 0;
      bool bounded = result_.settled;
      answer.guaranteed = result_.settled;
      for (const Place &place : path.segments) {
        const ChainResult &chain = at(place);
        answer.segments_ns.push_back(chain.response_ns);
        answer.jitter_ns.push_back(jitter_ns(place));
        answer.guaranteed = answer.guaranteed && chain.guaranteed;
        bounded = bounded && chain.response_ns.has_value();
        sum_ns = add(sum_ns, chain.response_ns.value_or(0));
      }
      for (const time_ns delay_ns : path.delays_ns) sum_ns = add(sum_ns, delay_ns);
      if (bounded) answer.response_ns = sum_ns;
      answer.met = bounded && sum_ns <= path.deadline_ns;
      answer.guaranteed = answer.guaranteed && answer.met;
      result_.guaranteed = result_.guaranteed && answer.guaranteed;
      result_.paths.push_back(std::move(answer));
    }
  }

  const System &system_;
  Options options_;
  std::vector<std::vector<time_ns>> jitter_ns_;
  SystemResult result_;
};

}  // namespace

SystemResult analyse_system(const System &system, const Options &options) { return Composition(system, options).run(); }

}  // namespace tide::analysis
