// SPDX-License-Identifier: Apache-2.0
// An executor with several lanes in virtual time, on one thread: a test performs the rounds of each lane explicitly.
#pragma once

#include <memory>
#include <string>

#include "exec_virtual.h"

namespace exec_virtual {

struct Bands : testing::Test, Bench {
  struct Probe {
    tide_timer_t timer{};  // its callback is used for other kinds as well
    std::string *log = nullptr;
    char name = '?';
    std::function<void()> action;
  };

  Bands() : Bench(TIDE_POLICY_TIDE, 16) {}

  void start(const std::vector<uint8_t> &levels) {
    lanes.assign(levels.size(), {});
    for (size_t lane = 0; lane < levels.size(); lane++) lanes[lane].settings.least_level = levels[lane];
    ready.resize(callbacks.size() * levels.size());
    timers.resize(ready.size());
    config.policy = policy;
    config.ready_storage = ready.data();
    config.timer_storage = timers.data();
    config.lanes = lanes.data();
    config.lane_count = lanes.size();
    if (has_source) config.source = source();
    init();
    for (tide_lane_t &lane : lanes) lane.event.state = 0;
  }

  tide_source_t source() {
    return {this,
            [](void *context, tide_priority_t least, tide_priority_t most) {
              return static_cast<Bands *>(context)->most_urgent(least, most);
            },
            [](void *context, tide_priority_t least, tide_priority_t most) {
              return static_cast<Bands *>(context)->digest(least, most);
            },
            [](void *context) { return static_cast<Bands *>(context)->digest_oldest(); },
            nullptr,
            nullptr,
            nullptr};
  }

  Probe &add(char name, tide_priority_t priority, tide_group_t *group = nullptr,
             tide_callback_kind_t kind = TIDE_CALLBACK_SUBSCRIPTION) {
    Probe &probe = make(name, priority);
    tide_callback_t &callback = probe.timer.callback;
    callback.kind = kind;
    callback.group = group;
    callback.execute = [](tide_callback_t *, void *context) { run(*static_cast<Probe *>(context)); };
    EXPECT_EQ(tide_executor_add(&executor, &callback), TIDE_OK);
    return probe;
  }

  Probe &add_timer(char name, tide_priority_t priority, int64_t period) {
    Probe &probe = make(name, priority);
    probe.timer.period_ns = period;
    probe.timer.on_expiry = [](tide_timer_t *timer, int64_t) { run(*static_cast<Probe *>(timer->callback.context)); };
    EXPECT_EQ(tide_executor_add_timer(&executor, &probe.timer), TIDE_OK);
    return probe;
  }

  Probe &make(char name, tide_priority_t priority) {
    Probe &probe = *probes.emplace_back(std::make_unique<Probe>());
    probe.log = &log;
    probe.name = name;
    probe.timer.callback.priority = priority;
    probe.timer.callback.context = &probe;
    return probe;
  }

  static void run(Probe &probe) {
    *probe.log += probe.name;
    if (probe.action) probe.action();
  }

  void notify(Probe &probe) { tide_executor_notify(&probe.timer.callback); }
  int round(size_t lane, int64_t deadline = 0) { return tide_executor_lane_round(&executor, lane, deadline); }
  // The lanes woken since the last call, as digits.
  std::string woken() {
    std::string result;
    for (size_t lane = 0; lane < lanes.size(); lane++) {
      if (lanes[lane].event.state != 0) result += static_cast<char>('0' + lane);
      lanes[lane].event.state = 0;
    }
    return result;
  }

  int32_t most_urgent(tide_priority_t least, tide_priority_t most) {
    asked++;
    int32_t best = TIDE_PRIORITY_NONE;
    for (const Probe *frame : frames) {
      const tide_priority_t priority = frame->timer.callback.priority;
      if (priority >= least && priority <= most && priority > best) best = priority;
    }
    return best;
  }
  int digest(tide_priority_t least, tide_priority_t most) {
    const int32_t best = most_urgent(least, most);
    const auto place = std::find_if(frames.begin(), frames.end(),
                                    [&](const Probe *frame) { return frame->timer.callback.priority == best; });
    Probe *probe = *place;
    frames.erase(place);
    notify(*probe);
    return 1;
  }
  int digest_oldest() {
    Probe *probe = frames.front();
    frames.erase(frames.begin());
    notify(*probe);
    return 1;
  }

  uint64_t updates() {
    tide_executor_counters_t counters{};
    tide_executor_get_counters(&executor, &counters);
    return counters.set_updates;
  }

  tide_policy_t policy = TIDE_POLICY_TIDE;
  bool has_source = true;
  int asked = 0;  // number of queries for the source's most urgent frame
  std::vector<std::unique_ptr<Probe>> probes;
  std::vector<Probe *> frames;
  std::string log;
};

}  // namespace exec_virtual
