// SPDX-License-Identifier: Apache-2.0
#include "analysis/schedule.h"

#include <deque>

namespace tide::analysis {
namespace {

struct Job {
  std::size_t chain = 0;
  std::size_t callback = 0;
  std::size_t instance = 0;
};

struct Running {
  bool busy = false;
  Job job;
  time_ns left_ns = 0;
};

class Machine {
 public:
  Machine(const Executor &executor, const Scenario &scenario)
      : executor_(executor),
        scenario_(scenario),
        lanes_(executor.lanes().size()),
        held_(executor.groups().size(), 0),
        released_(executor.chains().size(), 0) {
    for (const Chain &chain : executor.chains()) {
      waiting_.emplace_back(chain.callbacks.size());
      running_.emplace_back(chain.callbacks.size(), 0);
    }
    for (const auto &releases : scenario.releases) {
      schedule_.response_ns.emplace_back(releases.size(), never_ns);
    }
    arrange();
  }

  Schedule run() {
    for (time_ns now_ns = 0; now_ns < never_ns;) {
      release(now_ns);
      dispatch(now_ns);
      const time_ns next_ns = next_event(now_ns);
      advance(now_ns, next_ns);
      now_ns = next_ns;
    }
    return std::move(schedule_);
  }

 private:
  // Timers first, then in order of registration.
  void arrange() {
    std::vector<std::size_t> chains = scenario_.registration;
    for (std::size_t chain = chains.size(); chain < executor_.chains().size(); ++chain) chains.push_back(chain);
    for (const bool timers : {true, false}) {
      for (const std::size_t chain : chains) {
        const Chain &entry = executor_.chains()[chain];
        for (std::size_t callback = 0; callback < entry.callbacks.size(); ++callback) {
          if ((entry.timer && callback == 0) == timers) registered_.push_back({chain, callback, 0});
        }
      }
    }
  }

  void release(time_ns now_ns) {
    for (std::size_t chain = 0; chain < scenario_.releases.size(); ++chain) {
      const auto &releases = scenario_.releases[chain];
      while (released_[chain] < releases.size() && releases[released_[chain]].at_ns <= now_ns) {
        waiting_[chain][0].push_back(released_[chain]++);
      }
    }
  }

  bool supplied(std::size_t lane, time_ns now_ns) const { return edge(lane, now_ns).first; }

  // Whether the lane is supplied now, and until when that stays so.
  std::pair<bool, time_ns> edge(std::size_t lane, time_ns now_ns) const {
    if (lane >= scenario_.lanes.size() || scenario_.lanes[lane].empty()) return {true, never_ns};
    for (const auto &[from_ns, to_ns] : scenario_.lanes[lane]) {
      if (now_ns < from_ns) return {false, from_ns};
      if (now_ns < to_ns) return {true, to_ns};
    }
    return {false, never_ns};
  }

  bool eligible(const Job &job) const {
    if (waiting_[job.chain][job.callback].empty()) return false;
    const Chain &chain = executor_.chains()[job.chain];
    if (chain.timer && job.callback == 0 && running_[job.chain][0] != 0) return false;
    const int group = chain.callbacks[job.callback].group;
    return group == reentrant || held_[static_cast<std::size_t>(group)] == 0;
  }

  // The first eligible callback of the cached set; if there is none, the set is collected anew, once.
  bool take_of_ready_set(Job &taken) {
    for (const bool fresh : {false, true}) {
      if (fresh) {
        ready_.clear();
        for (const Job &job : registered_) {
          if (!waiting_[job.chain][job.callback].empty()) ready_.push_back(job);
        }
      }
      for (auto job = ready_.begin(); job != ready_.end(); ++job) {
        if (!eligible(*job)) continue;
        taken = *job;
        ready_.erase(job);
        return true;
      }
    }
    return false;
  }

  // Later callbacks of a chain beat earlier ones, and more important chains beat the others.
  bool take_most_important(Job &taken) const {
    for (const std::size_t chain : executor_.order()) {
      for (std::size_t callback = executor_.chains()[chain].callbacks.size(); callback-- > 0;) {
        taken = {chain, callback, 0};
        if (eligible(taken)) return true;
      }
    }
    return false;
  }

  void dispatch(time_ns now_ns) {
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      if (lanes_[lane].busy || !supplied(lane, now_ns)) continue;
      Job job;
      const bool found = executor_.policy() == Policy::priority ? take_most_important(job) : take_of_ready_set(job);
      if (!found) return;
      auto &waiting = waiting_[job.chain][job.callback];
      job.instance = waiting.front();
      waiting.pop_front();
      const Callback &callback = executor_.chains()[job.chain].callbacks[job.callback];
      const Release &release = scenario_.releases[job.chain][job.instance];
      const bool worst = release.execution_ns.empty();
      lanes_[lane] = {true, job, worst ? callback.execution_ns : release.execution_ns[job.callback]};
      hold(job, 1);
    }
  }

  void hold(const Job &job, int change) {
    running_[job.chain][job.callback] += change;
    const int group = executor_.chains()[job.chain].callbacks[job.callback].group;
    if (group != reentrant) held_[static_cast<std::size_t>(group)] += change;
  }

  time_ns next_event(time_ns now_ns) const {
    time_ns next_ns = never_ns;
    for (std::size_t chain = 0; chain < scenario_.releases.size(); ++chain) {
      const auto &releases = scenario_.releases[chain];
      if (released_[chain] < releases.size()) next_ns = std::min(next_ns, releases[released_[chain]].at_ns);
    }
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      const auto [on, until_ns] = edge(lane, now_ns);
      next_ns = std::min(next_ns, until_ns);
      if (on && lanes_[lane].busy) next_ns = std::min(next_ns, now_ns + lanes_[lane].left_ns);
    }
    return next_ns;
  }

  void advance(time_ns now_ns, time_ns next_ns) {
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      Running &running = lanes_[lane];
      if (!running.busy || !supplied(lane, now_ns)) continue;
      running.left_ns -= next_ns - now_ns;
      if (running.left_ns <= 0) complete(running, next_ns);
    }
  }

  void complete(Running &running, time_ns now_ns) {
    running.busy = false;
    const Job &job = running.job;
    hold(job, -1);
    if (job.callback + 1 < waiting_[job.chain].size()) {
      waiting_[job.chain][job.callback + 1].push_back(job.instance);
    } else {
      schedule_.response_ns[job.chain][job.instance] = now_ns - scenario_.releases[job.chain][job.instance].at_ns;
    }
  }

  const Executor &executor_;
  const Scenario &scenario_;
  std::vector<Running> lanes_;
  std::vector<int> held_;                                      // running members of each group
  std::vector<std::size_t> released_;                          // instances of each chain
  std::vector<std::vector<std::deque<std::size_t>>> waiting_;  // instances that wait at each callback
  std::vector<std::vector<int>> running_;
  std::vector<Job> registered_;
  std::vector<Job> ready_;
  Schedule schedule_;
};

}  // namespace

time_ns Schedule::worst_ns(std::size_t chain) const {
  time_ns worst_ns = 0;
  for (const time_ns one_ns : response_ns[chain]) worst_ns = std::max(worst_ns, one_ns);
  return worst_ns;
}

Schedule run_schedule(const Executor &executor, const Scenario &scenario) { return Machine(executor, scenario).run(); }

}  // namespace tide::analysis
