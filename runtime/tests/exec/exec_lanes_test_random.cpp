// SPDX-License-Identifier: Apache-2.0
// Random programs on real threads, where every callback checks for forbidden overlaps, and every notification must lead
// to a run.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "exec_threads.h"
#include "tide/executor.h"
#include "tide/status.h"

namespace exec_lanes_test_random {

using exec_threads::Dice;
using exec_threads::environment;
using exec_threads::Host;

class RandomProgram {
 public:
  static constexpr size_t kCallbacks = 10, kGroups = 3, kNotifiers = 2;

  explicit RandomProgram(uint64_t the_seed) : seed(the_seed), dice(seed) {
    const bool readyset = dice.chance(40);
    const int band_count = readyset ? 1 : dice.between(1, 3);
    for (int band = 0; band < band_count; band++) {
      for (int count = dice.between(1, readyset ? 3 : 2); count > 0; count--) {
        lanes.emplace_back();
        lanes.back().settings.least_level = static_cast<uint8_t>(2 * band);
      }
    }
    const bool has_frames = dice.chance(50);
    const bool batch = lanes.size() == 1 && dice.chance(30);
    ready.resize(kCallbacks * lanes.size());
    timers.resize(kCallbacks * lanes.size());
    tide_executor_config_t config{};
    config.platform = &host.platform;
    config.policy = batch ? TIDE_POLICY_BATCH : readyset ? TIDE_POLICY_READYSET : TIDE_POLICY_TIDE;
    if (has_frames) config.source = source();
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
    quiet = true;
    EXPECT_TRUE(host.turns_until([this] { return is_done(); }, host.now_ns() + INT64_C(60'000'000'000)))
        << "something that was notified does not run";
    tide_executor_stop(&executor);
    for (std::thread &thread : spinners) thread.join();
    EXPECT_FALSE(executor.stopped);
    expect_rising();
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

  // The work uses plain data that the rules protect, so that ThreadSanitizer detects violations.
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

  // Frames of every priority, which make no callback ready.
  tide_source_t source() {
    tide_source_t result{};
    result.context = this;
    result.most_urgent = [](void *context, tide_priority_t least, tide_priority_t) -> int32_t {
      return static_cast<RandomProgram *>(context)->frames > 0 ? int32_t{least} : TIDE_PRIORITY_NONE;
    };
    result.process_most_urgent = [](void *context, tide_priority_t, tide_priority_t) { return process(context); };
    result.process_oldest = process;
    return result;
  }
  static int process(void *context) {
    std::atomic<int> &frames = static_cast<RandomProgram *>(context)->frames;
    int left = frames;
    while (left > 0 && !frames.compare_exchange_weak(left, left - 1)) continue;
    return left > 0;
  }

  // Any thread reads the counters while lanes count.
  void expect_rising() {
    const std::lock_guard lock(reading);
    tide_executor_counters_t now{};
    tide_executor_get_counters(&executor, &now);
    EXPECT_GE(now.callbacks_run, counted.callbacks_run);
    EXPECT_GE(now.rounds, counted.rounds);
    EXPECT_GE(now.sleeps, counted.sleeps);
    EXPECT_GE(now.frames_digested, counted.frames_digested);
    counted = now;
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
      } else if (what <= 93) {
        come_or_go();
      } else if (what <= 95) {
        frames++;
        tide_executor_wake_for_frames(&executor);
      } else if (what <= 97) {
        expect_rising();
      } else {
        for (int turns = own.between(1, 100); turns > 0; turns--) host.turn();
      }
    }
  }

  // The first item leaves and returns.
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
  std::mutex membership, reading;
  tide_executor_counters_t counted{};
  bool absent = false;
  std::atomic<int> frames = 0;
  std::atomic<int> violations = 0;
  std::atomic<bool> quiet = false;
};

TEST(ExecLanes, RandomProgramsOnThreads) {
  const uint64_t first = environment("TIDE_SEED", 1);
  const uint64_t last = first + environment("TIDE_SEEDS", std::getenv("TIDE_SEED") == nullptr ? 40 : 1);
  for (uint64_t seed = first; seed < last; seed++) {
    RandomProgram(seed).run();
    ASSERT_FALSE(testing::Test::HasFailure()) << "replay with TIDE_SEED=" << seed;
  }
}

}  // namespace exec_lanes_test_random
