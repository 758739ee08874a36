// SPDX-License-Identifier: Apache-2.0
// Several lanes: what belongs to whom, in virtual time; then random programs on real threads, where every callback
// checks that nothing overlaps it that must not, and every notification must be answered by a run.
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <random>
#include <thread>

#include "exec_virtual.hpp"

namespace {

using exec_virtual::Machine;

// ---- one thread, virtual time: rounds of each lane by hand ----

struct Bands : testing::Test {
  struct Probe {
    tide_timer_t timer{};  // its callback is used for other kinds, too
    std::string *log = nullptr;
    char name = '?';
    std::function<void()> action;
  };

  void start(const std::vector<uint8_t> &levels) {
    lanes.resize(levels.size());
    for (size_t lane = 0; lane < levels.size(); lane++) lanes[lane].settings.least_level = levels[lane];
    config.platform = &machine.platform;
    config.policy = TIDE_POLICY_TIDE;
    config.callbacks = callbacks.data();
    config.ready_storage = ready.data();
    config.timer_storage = timers.data();
    config.callback_count = callbacks.size();
    config.lanes = lanes.data();
    config.lane_count = lanes.size();
    config.source = {this,
                     [](void *context, tide_priority_t least, tide_priority_t most) {
                       return static_cast<Bands *>(context)->most_urgent(least, most);
                     },
                     [](void *context, tide_priority_t least, tide_priority_t most) {
                       return static_cast<Bands *>(context)->digest(least, most);
                     },
                     [](void *) { return 0; }, nullptr};
    ASSERT_EQ(tide_executor_init(&executor, &config), TIDE_OK);
    for (tide_lane_t &lane : lanes) lane.event.state = 0;
  }

  Probe &add(char name, tide_priority_t priority, tide_group_t *group = nullptr) {
    probes.push_back(std::make_unique<Probe>());
    Probe &probe = *probes.back();
    probe.log = &log;
    probe.name = name;
    tide_callback_t &callback = probe.timer.callback;
    callback.kind = TIDE_CALLBACK_SUBSCRIPTION;
    callback.priority = priority;
    callback.group = group;
    callback.context = &probe;
    callback.execute = [](tide_callback_t *, void *context) { run(*static_cast<Probe *>(context)); };
    EXPECT_EQ(tide_executor_add(&executor, &callback), TIDE_OK);
    return probe;
  }

  Probe &add_timer(char name, tide_priority_t priority, int64_t period) {
    probes.push_back(std::make_unique<Probe>());
    Probe &probe = *probes.back();
    probe.log = &log;
    probe.name = name;
    probe.timer.period_ns = period;
    probe.timer.callback.priority = priority;
    probe.timer.callback.context = &probe;
    probe.timer.on_expiry = [](tide_timer_t *timer, int64_t) { run(*static_cast<Probe *>(timer->callback.context)); };
    EXPECT_EQ(tide_executor_add_timer(&executor, &probe.timer), TIDE_OK);
    return probe;
  }

  static void run(Probe &probe) {
    *probe.log += probe.name;
    if (probe.action) probe.action();
  }

  void notify(Probe &probe) { tide_executor_notify(&probe.timer.callback); }
  int round(size_t lane, int64_t deadline = 0) { return tide_executor_lane_round(&executor, lane, deadline); }
  // Which lanes were woken since the last look, as digits.
  std::string woken() {
    std::string result;
    for (size_t lane = 0; lane < lanes.size(); lane++) {
      if (lanes[lane].event.state != 0) result += static_cast<char>('0' + lane);
      lanes[lane].event.state = 0;
    }
    return result;
  }

  int32_t most_urgent(tide_priority_t least, tide_priority_t most) {
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

  Machine machine;
  std::array<tide_callback_t *, 16> callbacks{};
  std::array<tide_queue_entry_t *, 64> ready{}, timers{};
  std::vector<tide_lane_t> lanes;
  tide_executor_config_t config{};
  tide_executor_t executor{};
  std::vector<std::unique_ptr<Probe>> probes;
  std::vector<Probe *> frames;
  std::string log;
};

TEST_F(Bands, EachLevelIsServedByItsOwnLane) {
  start({0, 2, 5});
  Probe &low = add('l', TIDE_PRIORITY(1, 7)), &middle = add('m', TIDE_PRIORITY(4, 255)),
        &high = add('h', TIDE_PRIORITY(5, 0));
  notify(low);
  EXPECT_EQ(woken(), "0");
  notify(middle);
  EXPECT_EQ(woken(), "1");
  notify(high);
  EXPECT_EQ(woken(), "2") << "no other lane hears of it";
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(log, "l") << "the less urgent lane leaves the others' alone";
  EXPECT_EQ(round(0), TIDE_ERROR_TIMEOUT);
  EXPECT_EQ(round(2), 1);
  EXPECT_EQ(round(1), 1);
  EXPECT_EQ(log, "lhm");
}

TEST_F(Bands, TheLowestLaneServesWhatIsBelowItsLevel) {
  start({2, 5});
  Probe &low = add('l', 0);
  notify(low);
  EXPECT_EQ(woken(), "0");
  EXPECT_EQ(round(0), 1);
}

TEST_F(Bands, AnUrgentTimerRunsOnItsLaneWhileALessUrgentCallbackRuns) {
  start({0, 3});
  Probe &low = add('l', 1);
  add_timer('t', TIDE_PRIORITY(3, 0), 10);
  low.action = [&] {
    machine.execute(25);  // in the middle of it the other lane is scheduled
    EXPECT_EQ(round(1), 1);
    EXPECT_EQ(round(0), TIDE_ERROR_STATE) << "its own lane is busy";
    log += '.';
  };
  notify(low);
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(log, "lt.");
  EXPECT_EQ(round(0, 29), TIDE_ERROR_TIMEOUT) << "the timer is not this lane's";
  EXPECT_EQ(log, "lt.");
}

TEST_F(Bands, FramesWakeAndAreDigestedByTheirOwnLane) {
  start({0, 3});
  Probe &low = add('l', TIDE_PRIORITY(1, 1)), &high = add('h', TIDE_PRIORITY(3, 1));
  frames = {&high};
  tide_executor_wake_for_frames(&executor);
  EXPECT_EQ(woken(), "1");
  EXPECT_EQ(round(0), TIDE_ERROR_TIMEOUT);
  EXPECT_EQ(frames.size(), 1u) << "a less urgent lane never digests it";
  frames.push_back(&low);
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(log, "l");
  EXPECT_EQ(woken(), "01") << "what is left may have become processable by that";
  EXPECT_EQ(round(1), 1);
  EXPECT_EQ(log, "lh");
  tide_executor_wake_for_frames(&executor);
  EXPECT_EQ(woken(), "1") << "by its own notification; nothing is left";
}

TEST_F(Bands, AChangedPriorityMovesWhatIsReadyAndTheTimer) {
  start({0, 3});
  Probe &callback = add('c', 1), &timer = add_timer('t', 1, 10);
  notify(callback);
  woken();
  EXPECT_EQ(tide_executor_set_priority(&executor, &callback.timer.callback, TIDE_PRIORITY(3, 1)), TIDE_OK);
  EXPECT_EQ(tide_executor_set_priority(&executor, &timer.timer.callback, TIDE_PRIORITY(4, 1)), TIDE_OK);
  EXPECT_EQ(woken(), "1");
  EXPECT_EQ(round(0, 50), TIDE_ERROR_TIMEOUT);
  EXPECT_EQ(round(1, 50), 1);
  EXPECT_EQ(round(1, 50), 1);
  EXPECT_EQ(log, "tc") << "by its new priority";
}

TEST_F(Bands, IdleLanesOfABandAreWokenOneByOne) {
  start({0, 0, 0});
  Probe &a = add('a', 1), &b = add('b', 2), &c = add('c', 3);
  // All of them fall asleep; meanwhile three callbacks become ready.
  machine.at(5, [&] { notify(a); });
  EXPECT_EQ(round(0, 5), 1);
  EXPECT_EQ(log, "a");
  EXPECT_EQ(round(1, 6), TIDE_ERROR_TIMEOUT);
  woken();
  notify(b);
  notify(c);
  EXPECT_EQ(woken(), "") << "a lane that is in no round is not idle";
  b.action = [&] { EXPECT_EQ(round(2), TIDE_ERROR_TIMEOUT); };
  c.action = [&] { EXPECT_EQ(round(1), 1); };
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(log, "acb") << "the lanes share what is ready, the most urgent first";
}

TEST_F(Bands, ACallbackDoesNotOverlapItself) {
  start({0, 0});
  Probe &a = add('a', 3), &b = add('b', 1);
  notify(a);
  notify(a);
  notify(b);
  a.action = [&] {
    if (log == "a") {
      EXPECT_EQ(round(1), 1);
      EXPECT_EQ(log, "ab") << "the second lane takes the less urgent one";
      EXPECT_EQ(round(1), TIDE_ERROR_TIMEOUT);
    }
  };
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(round(1), 1);
  EXPECT_EQ(log, "aba");
}

TEST_F(Bands, AReentrantGroupOverlapsItself) {
  start({0, 0});
  tide_group_t group{};
  ASSERT_EQ(tide_group_init(&group, TIDE_GROUP_REENTRANT, nullptr, 0), TIDE_OK);
  Probe &a = add('a', 3, &group);
  notify(a);
  notify(a);
  a.action = [&] {
    if (log == "a") {
      EXPECT_EQ(round(1), 1);
      log += '.';
    }
  };
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(log, "aa.");
}

TEST_F(Bands, AnExclusiveGroupWaitsWithoutBlockingOthers) {
  start({0, 0});
  std::array<tide_queue_entry_t *, 3> storage{};
  tide_group_t group{};
  ASSERT_EQ(tide_group_init(&group, TIDE_GROUP_EXCLUSIVE, storage.data(), storage.size()), TIDE_OK);
  Probe &a = add('a', 5, &group), &b = add('b', 6, &group), &c = add('c', 7, &group), &other = add('o', 1);
  notify(a);
  a.action = [&] {
    notify(b);
    notify(c);
    notify(other);
    EXPECT_EQ(round(1), 1);
    EXPECT_EQ(log, "ao") << "the group is taken; the less urgent one outside of it is eligible";
    EXPECT_EQ(round(1), TIDE_ERROR_TIMEOUT);
  };
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(round(1), 1);
  EXPECT_EQ(log, "aocb") << "then the most urgent of the group";
}

TEST_F(Bands, TheNextOfAGroupIsFoundOnItsOwnBand) {
  start({0, 3});
  std::array<tide_queue_entry_t *, 2> storage{};
  tide_group_t group{};
  ASSERT_EQ(tide_group_init(&group, TIDE_GROUP_EXCLUSIVE, storage.data(), storage.size()), TIDE_OK);
  Probe &low = add('l', 1, &group), &high = add('h', TIDE_PRIORITY(3, 0), &group);
  notify(low);
  low.action = [&] {
    notify(high);
    EXPECT_EQ(round(1), TIDE_ERROR_TIMEOUT) << "the data of the group are in use";
    woken();
  };
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(woken(), "1");
  EXPECT_EQ(round(1), 1);
  EXPECT_EQ(log, "lh");
}

TEST_F(Bands, WhatIsRemovedWhileItRunsIsNotTouchedAfterwards) {
  start({0, 0});
  std::array<tide_queue_entry_t *, 2> storage{};
  tide_group_t group{};
  ASSERT_EQ(tide_group_init(&group, TIDE_GROUP_EXCLUSIVE, storage.data(), storage.size()), TIDE_OK);
  Probe &a = add('a', 2, &group), &b = add('b', 1, &group);
  a.action = [&] {
    EXPECT_TRUE(tide_executor_is_running(&executor, &a.timer.callback));
    EXPECT_EQ(tide_executor_remove_idle(&executor, &a.timer.callback), TIDE_ERROR_STATE);
    EXPECT_EQ(tide_executor_remove(&executor, &a.timer.callback), TIDE_OK);
    std::memset(static_cast<void *>(&a.timer), 0x55, sizeof a.timer);
    notify(b);
    EXPECT_EQ(round(1), TIDE_ERROR_TIMEOUT) << "the group is still taken";
  };
  notify(a);
  EXPECT_EQ(round(0), 1);
  EXPECT_FALSE(tide_executor_is_running(&executor, &a.timer.callback));
  EXPECT_EQ(a.timer.callback.runs, UINT64_C(0x5555555555555555));
  EXPECT_EQ(round(1), 1);
  EXPECT_EQ(log, "ab");
  EXPECT_EQ(tide_executor_remove_idle(&executor, &b.timer.callback), TIDE_OK);
}

TEST_F(Bands, OneThatIsAddedAgainWhileItRunsStillDoesNotOverlap) {
  start({0, 0});
  Probe &a = add('a', 2);
  a.action = [&] {
    if (log != "a") return;
    EXPECT_EQ(tide_executor_remove(&executor, &a.timer.callback), TIDE_OK);
    EXPECT_EQ(tide_executor_add(&executor, &a.timer.callback), TIDE_OK);
    notify(a);
    EXPECT_EQ(round(1), TIDE_ERROR_TIMEOUT);
  };
  notify(a);
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(round(1), 1);
  EXPECT_EQ(log, "aa");
}

TEST_F(Bands, AStopIsSeenByEveryLane) {
  start({0, 3, 3});
  for (int again = 0; again < 2; again++) {
    tide_executor_stop(&executor);
    EXPECT_EQ(tide_executor_spin_lane(&executor, 1), TIDE_OK);
    EXPECT_EQ(tide_executor_spin_lane(&executor, 0), TIDE_OK);
    EXPECT_EQ(tide_executor_spin_lane(&executor, 1), TIDE_OK) << "not all have seen it yet";
    EXPECT_EQ(tide_executor_spin_lane(&executor, 2), TIDE_OK);
    EXPECT_FALSE(executor.stopped) << "the next spin starts afresh";
  }
}

TEST_F(Bands, WhatNeedsOneLaneIsRefusedWithSeveral) {
  start({0, 3});
  EXPECT_EQ(tide_executor_round(&executor, 0), TIDE_ERROR_UNSUPPORTED);
  EXPECT_EQ(tide_executor_spin(&executor), TIDE_ERROR_UNSUPPORTED);
  EXPECT_EQ(tide_executor_set_trigger(&executor, tide_trigger_all, nullptr), TIDE_ERROR_UNSUPPORTED);
  EXPECT_EQ(tide_executor_set_trigger(&executor, nullptr, nullptr), TIDE_OK);
  EXPECT_EQ(tide_executor_set_policy(&executor, TIDE_POLICY_BATCH), TIDE_ERROR_UNSUPPORTED);
  EXPECT_EQ(tide_executor_lane_round(&executor, 2, 0), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_executor_spin_lane(&executor, 2), TIDE_ERROR_ARGUMENT);
  tide_callback_t always{};
  always.always = true;
  always.execute = [](tide_callback_t *, void *) {};
  EXPECT_EQ(tide_executor_add(&executor, &always), TIDE_ERROR_UNSUPPORTED);
  tide_executor_t other{};
  config.policy = TIDE_POLICY_BATCH;
  EXPECT_EQ(tide_executor_init(&other, &config), TIDE_ERROR_UNSUPPORTED);
  config.policy = TIDE_POLICY_TIDE;
  lanes[0].settings.least_level = 127;
  EXPECT_EQ(tide_executor_init(&other, &config), TIDE_ERROR_ARGUMENT);
}

TEST_F(Bands, GroupsHaveTheirLimits) {
  start({0, 0});
  std::array<tide_queue_entry_t *, 1> storage{};
  tide_group_t group{};
  EXPECT_EQ(tide_group_init(nullptr, TIDE_GROUP_REENTRANT, nullptr, 0), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_group_init(&group, TIDE_GROUP_EXCLUSIVE, nullptr, 1), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_group_init(&group, TIDE_GROUP_EXCLUSIVE, storage.data(), 0), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_group_init(&group, static_cast<tide_group_kind_t>(5), storage.data(), 1), TIDE_ERROR_ARGUMENT);
  ASSERT_EQ(tide_group_init(&group, TIDE_GROUP_EXCLUSIVE, storage.data(), 1), TIDE_OK);
  Probe &a = add('a', 1, &group);
  tide_callback_t second = a.timer.callback;
  EXPECT_EQ(tide_executor_add(&executor, &second), TIDE_ERROR_FULL);
  tide_executor_t other{};
  std::vector<tide_lane_t> other_lanes(2);
  std::array<tide_queue_entry_t *, 32> other_ready{}, other_timers{};
  std::array<tide_callback_t *, 16> other_callbacks{};
  config.lanes = other_lanes.data();
  config.callbacks = other_callbacks.data();
  config.ready_storage = other_ready.data();
  config.timer_storage = other_timers.data();
  ASSERT_EQ(tide_executor_init(&other, &config), TIDE_OK);
  EXPECT_EQ(tide_executor_add(&other, &second), TIDE_ERROR_ARGUMENT) << "a group belongs to one executor";
  EXPECT_EQ(tide_executor_remove(&executor, &a.timer.callback), TIDE_OK);
  EXPECT_EQ(tide_executor_add(&other, &second), TIDE_OK);
}

// ---- real threads ----

// A platform of the C++ library.
class Host {
 public:
  Host() {
    platform.context = this;
    platform.now_ns = [](void *) -> int64_t {
      return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count();
    };
    platform.critical_enter = [](void *context) -> uintptr_t {
      static_cast<Host *>(context)->mutex.lock();
      return 0;
    };
    platform.critical_exit = [](void *context, uintptr_t) { static_cast<Host *>(context)->mutex.unlock(); };
    platform.event_init = [](void *, tide_event_t *event) { event->state = 0; };
    platform.event_set = [](void *context, tide_event_t *event) {
      auto *self = static_cast<Host *>(context);
      const std::lock_guard lock(self->event_mutex);
      event->state = 1;
      self->changed.notify_all();
    };
    platform.event_wait = [](void *context, tide_event_t *event, int64_t deadline) {
      auto *self = static_cast<Host *>(context);
      std::unique_lock lock(self->event_mutex);
      while (event->state == 0) {
        const int64_t left = deadline - self->platform.now_ns(context);
        if (left <= 0) return 0;
        self->changed.wait_for(lock, std::chrono::nanoseconds(std::min<int64_t>(left, 1'000'000'000)));
      }
      event->state = 0;
      return 1;
    };
  }
  tide_platform_t platform{};

 private:
  std::recursive_mutex mutex;
  std::mutex event_mutex;
  std::condition_variable changed;
};

class Dice {
 public:
  explicit Dice(uint64_t seed) : engine(seed) {}
  int between(int low, int high) { return low + static_cast<int>(engine() % static_cast<uint64_t>(high - low + 1)); }
  bool chance(int percent) { return between(1, 100) <= percent; }

 private:
  std::mt19937_64 engine;
};

class RandomProgram {
 public:
  static constexpr size_t kCallbacks = 10, kGroups = 3, kNotifiers = 2;

  explicit RandomProgram(uint64_t the_seed) : seed(the_seed), dice(seed) {
    const int band_count = dice.between(1, 3);
    for (int band = 0; band < band_count; band++) {
      for (int count = dice.between(1, 2); count > 0; count--) {
        lanes.emplace_back();
        lanes.back().settings.least_level = static_cast<uint8_t>(2 * band);
      }
    }
    if (lanes.size() == 1) lanes.emplace_back();
    ready.resize(kCallbacks * lanes.size());
    timers.resize(kCallbacks * lanes.size());
    tide_executor_config_t config{};
    config.platform = &host.platform;
    config.callbacks = callbacks.data();
    config.ready_storage = ready.data();
    config.timer_storage = timers.data();
    config.callback_count = kCallbacks;
    config.lanes = lanes.data();
    config.lane_count = lanes.size();
    EXPECT_EQ(tide_executor_init(&executor, &config), TIDE_OK);
    for (Group &group : groups) {
      const auto kind = dice.chance(70) ? TIDE_GROUP_EXCLUSIVE : TIDE_GROUP_REENTRANT;
      EXPECT_EQ(tide_group_init(&group.group, kind, group.storage.data(), kCallbacks), TIDE_OK);
    }
    for (size_t index = 0; index < kCallbacks; index++) prepare(items[index], index);
  }

  void run() {
    std::vector<std::thread> spinners, notifiers;
    for (size_t lane = 0; lane < lanes.size(); lane++) {
      spinners.emplace_back([this, lane] { EXPECT_EQ(tide_executor_spin_lane(&executor, lane), TIDE_OK); });
    }
    for (size_t thread = 0; thread < kNotifiers; thread++) {
      notifiers.emplace_back([this, thread] { disturb(Dice(seed * 31 + thread)); });
    }
    for (std::thread &thread : notifiers) thread.join();
    const int64_t limit = host.platform.now_ns(nullptr) + INT64_C(60'000'000'000);
    quiet = true;
    while (!is_done() && host.platform.now_ns(nullptr) < limit)
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    EXPECT_LT(host.platform.now_ns(nullptr), limit) << "something that was notified does not run";
    tide_executor_stop(&executor);
    for (std::thread &thread : spinners) thread.join();
    EXPECT_FALSE(executor.stopped);
    for (const Item &item : items) {
      if (item.is_timer || item.comes_and_goes) continue;
      EXPECT_EQ(item.runs + item.timer.callback.pending, item.notified) << "callback " << &item - items.data();
    }
    EXPECT_EQ(violations, 0);
  }

 private:
  struct Group {
    tide_group_t group{};
    std::array<tide_queue_entry_t *, kCallbacks> storage{};
    std::atomic<int> inside = 0;
    uint64_t work = 0;
  };
  struct Item {
    tide_timer_t timer{};
    RandomProgram *program = nullptr;
    Group *group = nullptr;
    bool is_timer = false, comes_and_goes = false, notifies = false;
    std::atomic<int> inside = 0;
    std::atomic<uint64_t> runs = 0, notified = 0;
    uint64_t work = 0;
    int partner = 0;
  };

  void prepare(Item &item, size_t index) {
    item.program = this;
    item.is_timer = dice.chance(30);
    item.comes_and_goes = index == 0;
    item.notifies = !item.comes_and_goes && dice.chance(30);
    item.partner = dice.between(1, static_cast<int>(kCallbacks) - 1);
    item.group = dice.chance(60) ? &groups[static_cast<size_t>(dice.between(0, kGroups - 1))] : nullptr;
    tide_callback_t &callback = item.timer.callback;
    callback.priority = TIDE_PRIORITY(dice.between(0, 6), dice.between(0, 3));
    callback.group = item.group == nullptr ? nullptr : &item.group->group;
    callback.context = &item;
    if (item.is_timer) {
      item.timer.period_ns = dice.between(20, 400) * 1000;
      item.timer.on_expiry = [](tide_timer_t *timer, int64_t) { body(*static_cast<Item *>(timer->callback.context)); };
      EXPECT_EQ(tide_executor_add_timer(&executor, &item.timer), TIDE_OK);
    } else {
      callback.kind = TIDE_CALLBACK_GUARD;
      callback.execute = [](tide_callback_t *, void *context) { body(*static_cast<Item *>(context)); };
      EXPECT_EQ(tide_executor_add(&executor, &callback), TIDE_OK);
    }
  }

  // The work is done on plain data that the rules protect, so that ThreadSanitizer sees it when they do not.
  static void body(Item &item) {
    RandomProgram &program = *item.program;
    const bool reentrant = item.group != nullptr && item.group->group.kind == TIDE_GROUP_REENTRANT;
    const bool exclusive = item.group != nullptr && !reentrant;
    if (item.inside.fetch_add(1) != 0 && !reentrant) program.violations++;
    if (exclusive && item.group->inside.fetch_add(1) != 0) program.violations++;
    for (int step = 0; step < 200 && !reentrant; step++) item.work = item.work * 7 + 1;
    if (exclusive) item.group->work += item.work;
    if (item.notifies && !program.quiet && item.runs % 4 == 0)
      program.notify(program.items[static_cast<size_t>(item.partner)]);
    if (exclusive) item.group->inside--;
    item.inside--;
    item.runs++;
  }

  void notify(Item &item) {
    if (item.is_timer || item.comes_and_goes) return;
    item.notified++;
    tide_executor_notify(&item.timer.callback);
  }

  void disturb(Dice own) {
    for (int step = 0; step < 300; step++) {
      Item &item = items[static_cast<size_t>(own.between(1, kCallbacks - 1))];
      const int what = own.between(1, 100);
      if (what <= 75) {
        notify(item);
      } else if (what <= 85) {
        EXPECT_EQ(tide_executor_set_priority(&executor, &item.timer.callback,
                                             TIDE_PRIORITY(own.between(0, 6), own.between(0, 3))),
                  TIDE_OK);
      } else if (what <= 90 && item.is_timer) {
        EXPECT_EQ(tide_timer_reset(&item.timer), TIDE_OK);
      } else if (what <= 95) {
        come_or_go();
      } else {
        std::this_thread::sleep_for(std::chrono::microseconds(own.between(1, 100)));
      }
    }
  }

  // The first item leaves and comes back.
  void come_or_go() {
    const std::lock_guard lock(membership);
    tide_callback_t *callback = &items[0].timer.callback;
    if (absent) {
      if (tide_executor_is_running(&executor, callback)) return;
      EXPECT_EQ(items[0].is_timer ? tide_executor_add_timer(&executor, &items[0].timer)
                                  : tide_executor_add(&executor, callback),
                TIDE_OK);
      tide_executor_notify(callback);
    } else {
      EXPECT_EQ(tide_executor_remove(&executor, callback), TIDE_OK);
    }
    absent = !absent;
  }

  bool is_done() {
    for (const Item &item : items) {
      if (!item.is_timer && !item.comes_and_goes && item.runs != item.notified) return false;
    }
    return true;
  }

  uint64_t seed;
  Dice dice;
  Host host;
  std::vector<tide_lane_t> lanes;
  std::array<tide_callback_t *, kCallbacks> callbacks{};
  std::vector<tide_queue_entry_t *> ready, timers;
  tide_executor_t executor{};
  std::array<Group, kGroups> groups;
  std::array<Item, kCallbacks> items;
  std::mutex membership;
  bool absent = false;
  std::atomic<int> violations = 0;
  std::atomic<bool> quiet = false;
};

uint64_t environment(const char *name, uint64_t otherwise) {
  const char *value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 0);
}

TEST(ExecLanes, RandomProgramsOnThreads) {
  const uint64_t first = environment("TIDE_SEED", 1);
  const uint64_t last = first + environment("TIDE_SEEDS", std::getenv("TIDE_SEED") == nullptr ? 40 : 1);
  for (uint64_t seed = first; seed < last; seed++) {
    RandomProgram(seed).run();
    ASSERT_FALSE(testing::Test::HasFailure()) << "replay with TIDE_SEED=" << seed;
  }
}

}  // namespace
