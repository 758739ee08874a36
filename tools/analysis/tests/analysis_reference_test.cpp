// SPDX-License-Identifier: Apache-2.0
// A second implementation of the bounds of threads.cpp, as plain as docs/analysis/multithreaded.md: it tries every
// window and shares only the model with the code under test. Both must give the same bounds.
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/random_system.h"
#include "analysis/threads.h"

namespace tide::analysis {
namespace analysis_reference_test {

time_ns up(time_ns dividend, time_ns divisor) { return (dividend + divisor - 1) / divisor; }

class Reference {
 public:
  Reference(const Executor &executor, const Analysis &analysis, const Options &options)
      : executor_(executor),
        chains_(executor.chains()),
        lanes_(executor.lanes()),
        safe_(analysis.variant == Variant::safe),
        arbitrary_(analysis.deadlines == Deadlines::arbitrary),
        ranked_(analysis.policy == Policy::priority),
        groups_(analysis.groups),
        joint_(options.joint),
        cap_(options.cap_running && safe_ && executor.dedicated()),
        trusted_(chains_.size(), true) {}

  std::vector<time_ns> run() {
    std::vector<time_ns> all(chains_.size());
    for (bool again = true; again;) {
      again = false;
      for (size_t i = 0; i < chains_.size(); ++i) all[i] = bound(i);
      if (!safe_ || !ranked_) break;
      for (size_t i = 0; i < chains_.size(); ++i) {
        for (size_t j = 0; j < chains_.size(); ++j) {
          if (trusted_[i] && chains_[j].priority >= chains_[i].priority && !met(j, all[j]))
            again = true, trusted_[i] = false;
        }
      }
    }
    return all;
  }

 private:
  bool met(size_t i, time_ns response) const {
    const bool within = response <= chains_[i].deadline_ns;
    return within && (arbitrary_ || response + chains_[i].jitter_ns <= chains_[i].period_ns);
  }

  static time_ns least(const Lane &lane, time_ns t) {
    if (t <= 0) return 0;
    const time_ns gap = lane.period_ns - lane.budget_ns;
    const time_ns k = t <= gap ? 1 : std::max<time_ns>(up(t - gap, lane.period_ns), 1);
    if (t >= (k + 1) * lane.period_ns - 2 * lane.budget_ns && t <= (k + 1) * lane.period_ns - lane.budget_ns) {
      return t - (k + 1) * gap;
    }
    return (k - 1) * lane.budget_ns;
  }

  static time_ns inverse(const Lane &lane, time_ns amount) {
    time_ns t = 0;
    while (least(lane, t) < amount) ++t;
    return t;
  }

  static time_ns most(const Lane &lane, time_ns t) {  // the first budget as late, all others as early as possible
    time_ns sum = 0;
    for (time_ns slot = 0; slot < t; ++slot) {
      const time_ns place = slot < lane.budget_ns ? 0 : (slot - lane.budget_ns) % lane.period_ns;
      sum += place < lane.budget_ns ? 1 : 0;
    }
    return sum;
  }

  time_ns passing(time_ns c) const {
    time_ns worst = 0;
    for (size_t w = 0; w < lanes_.size(); ++w) {
      time_ns sum = c;
      for (size_t v = 0; v < lanes_.size(); ++v) {
        if (v != w) sum += most(lanes_[v], 1 + inverse(lanes_[w], c - 1));
      }
      worst = std::max(worst, sum);
    }
    return worst;
  }

  time_ns lanes() const { return static_cast<time_ns>(lanes_.size()); }
  time_ns hold(time_ns c) const { return safe_ && !executor_.dedicated() ? passing(c) : lanes() * c; }

  time_ns slack(size_t j) const {
    const Chain &chain = chains_[j];
    return std::max<time_ns>(0, (safe_ ? chain.jitter_ns : 0) + chain.deadline_ns - chain.execution_ns);
  }

  // An instance executes in the window for at most the overlap of two intervals: one as long as its execution time, the
  // other as long as the window and the slack together. The intervals of successive instances are a period apart, at
  // any offset.
  time_ns workload(size_t j, time_ns t) const {
    const Chain &chain = chains_[j];
    const time_ns length = t + slack(j);
    if (!safe_ && arbitrary_) return up(length, chain.period_ns) * chain.execution_ns;
    if (!safe_) {
      return length / chain.period_ns * chain.execution_ns + std::min(chain.execution_ns, length % chain.period_ns);
    }
    time_ns most = 0;
    for (time_ns shift = 0; shift < chain.period_ns; ++shift) {
      time_ns sum = 0;
      for (time_ns place = shift; place < length + chain.execution_ns; place += chain.period_ns) {
        sum += std::min({place, chain.execution_ns, length, length + chain.execution_ns - place});
      }
      most = std::max(most, sum);
    }
    return most;
  }

  // Execution of the chain's earlier and later instances while the one under analysis is under way.
  time_ns other_instances(size_t i, time_ns t) const {
    const Chain &chain = chains_[i];
    time_ns sum = 0;
    for (time_ns apart = chain.period_ns;; apart += chain.period_ns) {
      const time_ns before = std::max<time_ns>(0, slack(i) + chain.execution_ns - apart);
      const time_ns after = std::max<time_ns>(0, t + chain.jitter_ns - apart);
      if (before + after == 0) return sum;
      sum += std::min(before, chain.execution_ns) + std::min(after, chain.execution_ns);
    }
  }

  // Longest wait of the chain in a window of t, if it waits only while all lanes are busy with other chains.
  time_ns room(size_t i, time_ns t) const {
    bool itself = chains_[i].timer;
    bool shares = false;
    for (const Callback &callback : chains_[i].callbacks) {
      if (callback.group == kReentrant) continue;
      itself = true;
      int members = 0;
      for (const Chain &chain : chains_) {
        for (const Callback &other : chain.callbacks) members += other.group == callback.group ? 1 : 0;
      }
      shares = shares || members > 1;
    }
    const bool waits_otherwise = shares || (itself && slack(i) + chains_[i].execution_ns > chains_[i].period_ns);
    return cap_ && !waits_otherwise ? t - (chains_[i].execution_ns - chains_[i].last_ns) : kNeverNs / 1000;
  }

  time_ns under_way(size_t j) const { return up(slack(j) + chains_[j].execution_ns, chains_[j].period_ns); }

  time_ns share(size_t i, size_t j, time_ns t) const { return std::min(workload(j, t), under_way(j) * room(i, t)); }

  time_ns pool(size_t i, time_ns size, time_ns t) const {
    std::vector<time_ns> terms;
    for (size_t l = 0; l < chains_.size(); ++l) {
      if (chains_[l].priority >= chains_[i].priority) continue;
      time_ns copies = 1;
      if (arbitrary_) copies = safe_ ? under_way(l) : up(t + slack(l), chains_[l].period_ns);
      if (!trusted_[l]) copies = size;
      for (time_ns copy = 0; copy < std::min(copies, size); ++copy)
        terms.push_back(std::min(chains_[l].longest_ns - 1, room(i, t)));
    }
    std::sort(terms.rbegin(), terms.rend());
    time_ns sum = 0;
    for (size_t place = 0; place < terms.size() && static_cast<time_ns>(place) < size; ++place) sum += terms[place];
    return sum;
  }

  time_ns group_demand(size_t i, time_ns t, time_ns &stages) const {
    time_ns sum = 0;
    for (size_t k = 0; k < chains_[i].callbacks.size(); ++k) {
      const int group = chains_[i].callbacks[k].group;
      const bool lonely = safe_ && arbitrary_ && group == kReentrant && k == 0 && chains_[i].timer;
      time_ns below = 0;
      for (size_t j = 0; j < chains_.size(); ++j) {
        for (size_t y = 0; y < chains_[j].callbacks.size(); ++y) {
          const bool self = i == j && k == y;
          if (!(lonely && self) && (group == kReentrant || chains_[j].callbacks[y].group != group)) continue;
          if (i == j && !arbitrary_) continue;
          const time_ns c = chains_[j].callbacks[y].execution_ns;
          const bool more = i == j ? y > k : chains_[j].priority > chains_[i].priority;
          if (!safe_) {
            if (!self && (!ranked_ || more)) sum += lanes() * c * up(t + slack(j), chains_[j].period_ns);
            continue;
          }
          if (i != j && ranked_ && !more) {
            below = std::max(below, c);
            continue;
          }
          const time_ns earlier = up(slack(j) + chains_[j].execution_ns, chains_[j].period_ns) - 1;
          time_ns count = self ? earlier : up(t + slack(j) + chains_[j].execution_ns - c, chains_[j].period_ns);
          if (i == j && !self)
            count = std::min(count, earlier + up(t + chains_[j].jitter_ns, chains_[j].period_ns) - 1);
          sum += count * hold(c);
          stages += count;
        }
      }
      if (below <= (executor_.dedicated() ? 1 : 0)) continue;
      sum += executor_.dedicated() ? lanes() * (below - 1) : passing(below);
      ++stages;
    }
    return sum;
  }

  time_ns demand(size_t i, time_ns t) const {
    const Chain &self = chains_[i];
    time_ns sum = 0;
    for (size_t k = 0; k + 1 < self.callbacks.size(); ++k) sum += hold(self.callbacks[k].execution_ns);
    time_ns others = 0;
    for (size_t j = 0; j < chains_.size(); ++j) {
      if (j != i && (!ranked_ || chains_[j].priority > self.priority)) others += share(i, j, t);
    }
    if (arbitrary_) {
      const time_ns own = safe_ ? other_instances(i, t) : workload(i, t) - self.execution_ns;
      others += room(i, t) <= t ? std::min(own, (under_way(i) - 1) * room(i, t)) : own;
    }
    sum += others;
    auto stages = static_cast<time_ns>(self.callbacks.size());
    if (groups_ || (safe_ && arbitrary_)) sum += group_demand(i, t, stages);
    if (!ranked_) return sum;
    time_ns blocking = pool(i, lanes(), t);
    if (safe_) {
      time_ns again = (stages - 1) * pool(i, lanes() - 1, t);
      if (executor_.dedicated()) again = std::min(again, (lanes() - 1) * others);
      blocking += again;
    }
    if (joint_ && safe_) {
      time_ns everything = 0;
      bool trusted = true;
      for (size_t l = 0; l < chains_.size(); ++l) {
        if (chains_[l].priority >= self.priority) continue;
        everything += share(i, l, t);
        trusted = trusted && trusted_[l];
      }
      if (trusted) blocking = std::min(blocking, everything);
    }
    return sum + blocking;
  }

  time_ns bound(size_t i) const {
    const Chain &self = chains_[i];
    time_ns limit = 0;
    for (const Chain &chain : chains_) limit = std::max(limit, 4 * (chain.deadline_ns + chain.jitter_ns));
    for (const Chain &chain : chains_) limit += chain.execution_ns;
    for (time_ns t = self.execution_ns - self.last_ns + 1; t <= limit; ++t) {
      time_ns supply = 0;
      for (const Lane &lane : lanes_) supply += least(lane, t);
      if (demand(i, t) >= supply) continue;
      time_ns finish = 0;
      for (const Lane &lane : lanes_) finish = std::max(finish, inverse(lane, self.last_ns - 1));
      return t + finish;
    }
    return kNeverNs;
  }

  const Executor &executor_;
  const std::vector<Chain> &chains_;
  const std::vector<Lane> &lanes_;
  bool safe_;
  bool arbitrary_;
  bool ranked_;
  bool groups_;
  bool joint_;
  bool cap_;
  std::vector<bool> trusted_;
};

TEST(Reference, AgreesOnRandomSystems) {
  int finite = 0;
  for (const Analysis &analysis : analyses()) {
    for (uint64_t seed = 1; seed <= 60; ++seed) {
      RandomSystem random(seed);
      const bool reservations = seed % 3 == 0;
      const Executor executor = random.executor(analysis.policy, analysis.deadlines, analysis.groups, reservations);
      Options options;
      options.joint = seed % 2 == 0;
      options.cap_running = seed % 4 < 2;
      const Result result = analyse(analysis, executor, options);
      ASSERT_EQ(result.error, "") << analysis.name << ", seed " << seed;
      const auto expected = Reference(executor, analysis, options).run();
      for (size_t chain = 0; chain < expected.size(); ++chain) {
        ASSERT_EQ(result.chains[chain].response_ns.value_or(kNeverNs), expected[chain])
            << analysis.name << ", seed " << seed << ", chain " << chain;
        finite += expected[chain] != kNeverNs ? 1 : 0;
      }
    }
  }
  EXPECT_GT(finite, 1500);
}

TEST(Reference, AVerdictAloneIsTheSameVerdict) {
  int met = 0;
  for (const Analysis &analysis : analyses()) {
    for (uint64_t seed = 1; seed <= 200; ++seed) {
      RandomSystem random(seed);
      const Executor executor = random.executor(analysis.policy, analysis.deadlines, analysis.groups, seed % 3 == 0);
      Options options;
      options.cap_running = seed % 4 < 2;
      const bool expected = analyse(analysis, executor, options).met;
      options.only_verdict = true;
      ASSERT_EQ(analyse(analysis, executor, options).met, expected) << analysis.name << ", seed " << seed;
      met += expected ? 1 : 0;
    }
  }
  EXPECT_GT(met, 200);
}

TEST(Reference, RefinementAndTighteningNeverRaiseABound) {
  for (const Analysis &analysis : analyses()) {
    for (uint64_t seed = 1; seed <= 200; ++seed) {
      RandomSystem random(seed);
      const Executor executor = random.executor(analysis.policy, analysis.deadlines, analysis.groups, seed % 3 == 0);
      const Result plain = analyse(analysis, executor);
      Options options;
      options.refine = true;
      options.joint = true;
      options.cap_running = true;
      const Result tight = analyse(analysis, executor, options);
      for (size_t chain = 0; chain < plain.chains.size(); ++chain) {
        ASSERT_LE(tight.chains[chain].response_ns.value_or(kNeverNs),
                  plain.chains[chain].response_ns.value_or(kNeverNs))
            << analysis.name << ", seed " << seed << ", chain " << chain;
      }
    }
  }
}

}  // namespace analysis_reference_test
}  // namespace tide::analysis
