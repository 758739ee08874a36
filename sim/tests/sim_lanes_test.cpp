// SPDX-License-Identifier: Apache-2.0
// Random programs of callbacks, groups and lanes on simulated cores: one lane per core, all lanes at once, and at times
// a lane that pauses between two critical sections, so that the others run in between. Checked in each step: a lane
// takes the most urgent callback that may run, groups are respected, and no lane sleeps while there is work for it.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>

#include "gtest/gtest.h"
#include "sim/engine/engine.h"
#include "sim/engine/random.h"
#include "tide/executor.h"
#include "tide/status.h"

namespace tide::sim {
namespace sim_lanes_test {

constexpr size_t kCallbacks = 9, kGroups = 3;

struct Start {
  size_t callback;
  Time time;
  bool operator==(const Start &) const = default;
};

struct Shape {
  std::vector<uint8_t> levels;  // levels of the lanes
  bool groups = true, delays = true;
};

class World {
 public:
  World(uint64_t seed, const Shape &shape) : random_(seed), delays_(seed + 1), shape_(shape) {
    platform_.context = this;
    platform_.now_ns = [](void *context) { return self(context).engine_.now(); };
    platform_.critical_enter = [](void *context) -> uintptr_t { return self(context).sections_++; };
    platform_.critical_exit = [](void *context, uintptr_t state) { self(context).leave(state); };
    platform_.event_init = [](void *, tide_event_t *event) { *event = {}; };
    platform_.event_set = [](void *context, tide_event_t *event) { self(context).set(event); };
    platform_.event_wait = [](void *context, tide_event_t *event, int64_t deadline) {
      return self(context).wait(event, deadline);
    };
    add_executor();
    for (size_t index = 0; index < kCallbacks; index++) add_callback(index);
    for (size_t index = 0; index < lanes_.size(); index++) {
      tasks_.push_back(std::make_unique<Task>(engine_.add_core(), "lane", 1, [this, index] {
        EXPECT_EQ(tide_executor_spin_lane(&executor_, index), TIDE_OK);
      }));
    }
    engine_.on_step = [this] { look_for_idleness(); };
  }

  void run() {
    const auto count = static_cast<int>(random_.between(20, 120));
    for (int event = 0; event < count; event++) {
      const auto target = static_cast<size_t>(random_.below(kCallbacks));
      const auto what = random_.below(10);
      const auto priority = static_cast<tide_priority_t>(TIDE_PRIORITY(random_.below(7), random_.below(4)));
      engine_.at(random_.between(1, 3000), [this, target, what, priority] { disturb(target, what, priority); });
    }
    engine_.run_until(20'000);
    for (const Item &item : items_) {
      if (item.is_timer) {
        tide_timer_cancel(const_cast<tide_timer_t *>(&item.timer));
        continue;
      }
      const tide_callback_t &callback = item.timer.callback;
      EXPECT_LE(item.runs + callback.pending, item.notified);
      EXPECT_GE(item.runs + callback.pending + callback.running, item.notified);
    }
    tide_executor_stop(&executor_);
    engine_.run_until(30'000);
    for (const auto &task : tasks_) EXPECT_TRUE(task->is_finished());
  }

  const std::vector<Start> &starts() const { return starts_; }

 private:
  struct Item {
    tide_timer_t timer{};
    World *world = nullptr;
    size_t index = 0;
    bool is_timer = false;
    Time execution = 0;
    size_t next = kCallbacks;  // notified at its end
    int inside = 0;
    uint64_t runs = 0, notified = 0;
  };
  static World &self(void *context) { return *static_cast<World *>(context); }

  void add_executor() {
    lanes_.resize(shape_.levels.size());
    seen_running_.resize(lanes_.size());
    for (size_t lane = 0; lane < lanes_.size(); lane++) lanes_[lane].settings.least_level = shape_.levels[lane];
    ready_.resize(kCallbacks * lanes_.size());
    timers_.resize(kCallbacks * lanes_.size());
    tide_executor_config_t config{};
    config.platform = &platform_;
    config.callbacks = callbacks_.data();
    config.ready_storage = ready_.data();
    config.timer_storage = timers_.data();
    config.callback_count = kCallbacks;
    config.lanes = lanes_.data();
    config.lane_count = lanes_.size();
    EXPECT_EQ(tide_executor_init(&executor_, &config), TIDE_OK);
    for (size_t group = 0; group < kGroups; group++) {
      const auto kind = group == 0 ? TIDE_GROUP_REENTRANT : TIDE_GROUP_EXCLUSIVE;
      EXPECT_EQ(tide_group_init(&groups_[group], kind, waiting_[group].data(), kCallbacks), TIDE_OK);
    }
  }

  void add_callback(size_t index) {
    Item &item = items_[index];
    item.world = this;
    item.index = index;
    item.is_timer = random_.below(3) == 0;
    item.execution = random_.below(3) == 0 ? 0 : random_.between(1, 60);
    const auto group = static_cast<size_t>(random_.below(kGroups + 1));
    const auto next = static_cast<size_t>(random_.below(3 * kCallbacks));
    if (next > index && next < kCallbacks) item.next = next;  // only upwards, so that it ends
    tide_callback_t &callback = item.timer.callback;
    callback.priority = static_cast<tide_priority_t>(TIDE_PRIORITY(random_.below(7), random_.below(4)));
    callback.group = shape_.groups && group < kGroups ? &groups_[group] : nullptr;
    callback.context = &item;
    item.timer.period_ns = random_.between(100, 900);
    item.timer.overrun = random_.below(2) == 0 ? TIDE_OVERRUN_SKIP : TIDE_OVERRUN_CATCH_UP;
    if (item.is_timer) {
      item.timer.on_expiry = [](tide_timer_t *timer, int64_t) { body(*static_cast<Item *>(timer->callback.context)); };
      EXPECT_EQ(tide_executor_add_timer(&executor_, &item.timer), TIDE_OK);
    } else {
      callback.kind = TIDE_CALLBACK_GUARD;
      callback.execute = [](tide_callback_t *, void *context) { body(*static_cast<Item *>(context)); };
      EXPECT_EQ(tide_executor_add(&executor_, &callback), TIDE_OK);
    }
  }

  static void body(Item &item) {
    World &world = *item.world;
    world.starts_.push_back({item.index, world.engine_.now()});
    const tide_group_t *group = item.timer.callback.group;
    const bool reentrant = group != nullptr && group->kind == TIDE_GROUP_REENTRANT;
    EXPECT_TRUE(item.inside++ == 0 || reentrant) << "it overlaps itself";
    for (const Item &other : world.items_) {
      const bool shares = &other != &item && group != nullptr && other.timer.callback.group == group && !reentrant;
      EXPECT_FALSE(shares && other.inside > 0) << "two of an exclusive group run";
    }
    Task::current()->execute(item.execution);
    item.inside--;
    item.runs++;
    if (item.next < kCallbacks) world.notify(world.items_[item.next]);
  }

  void notify(Item &item) {
    if (item.is_timer) return;
    item.notified++;
    tide_executor_notify(&item.timer.callback);
  }

  void disturb(size_t target, uint64_t what, tide_priority_t priority) {
    Item &item = items_[target];
    if (what < 7) {
      notify(item);
    } else if (what < 9) {
      EXPECT_EQ(tide_executor_set_priority(&executor_, &item.timer.callback, priority), TIDE_OK);
    } else if (item.is_timer) {
      EXPECT_EQ(tide_timer_reset(&item.timer), TIDE_OK);
    }
  }

  // ---- the platform ----

  void stand_still() {
    if (!shape_.delays || Task::current() == nullptr || delays_.below(4) != 0) return;
    delaying_++;
    Task::current()->execute(delays_.between(1, 5));
    delaying_--;
  }

  void leave(uintptr_t state) {
    sections_ = static_cast<unsigned>(state);
    if (sections_ > 0) return;
    for (size_t lane = 0; lane < lanes_.size(); lane++) {
      const tide_callback_t *running = lanes_[lane].running;
      if (running != nullptr && seen_running_[lane] == nullptr) check_choice(*running);
      seen_running_[lane] = running;
    }
    stand_still();
  }

  void set(tide_event_t *event) {
    EXPECT_EQ(sections_, 0u);
    event->state = 1;
    if (event->port != nullptr) static_cast<Task *>(event->port)->wake();
    stand_still();
  }

  int wait(tide_event_t *event, int64_t deadline) {
    EXPECT_EQ(sections_, 0u);
    while (event->state == 0) {
      if (engine_.now() >= deadline) return 0;
      event->port = Task::current();
      Task::current()->block(deadline);
      event->port = nullptr;
    }
    event->state = 0;
    return 1;
  }

  // ---- the checks ----

  static bool is_exclusive(const tide_callback_t &callback) {
    return callback.group != nullptr && callback.group->kind == TIDE_GROUP_EXCLUSIVE;
  }

  // The most urgent callback of a group runs next, regardless of its band.
  bool is_first_of_group(const tide_callback_t &callback) const {
    return std::none_of(items_.begin(), items_.end(), [&](const Item &item) {
      const tide_callback_t &other = item.timer.callback;
      return other.group == callback.group && other.pending > 0 && other.priority > callback.priority;
    });
  }

  bool may_run(const tide_callback_t &callback) const {
    if (callback.pending == 0) return false;
    if (is_exclusive(callback)) return callback.group->taken_by == nullptr && is_first_of_group(callback);
    return callback.group != nullptr || callback.running == 0;
  }

  // Called in the critical section in which a lane has taken it.
  void check_choice(const tide_callback_t &taken) {
    for (const Item &item : items_) {
      const tide_callback_t &other = item.timer.callback;
      if (&other == &taken || other.band != taken.band || other.priority <= taken.priority) continue;
      // The group of the taken callback is already taken.
      const bool same_group = is_exclusive(other) && other.group == taken.group && other.pending > 0;
      EXPECT_FALSE(may_run(other) || same_group) << "a less urgent callback was chosen at " << engine_.now();
    }
  }

  // Called when all tasks have settled: checks for a sleeping lane that should run a callback.
  void look_for_idleness() {
    if (delaying_ > 0) return;
    for (const tide_lane_t &lane : lanes_) {
      if (lane.event.port == nullptr || lane.event.state != 0) continue;
      for (const Item &item : items_) {
        const tide_callback_t &callback = item.timer.callback;
        if (callback.band != lane.band) continue;
        EXPECT_FALSE(may_run(callback)) << "a lane sleeps while callback " << item.index << " could run, "
                                        << engine_.now();
        const bool due = item.is_timer && !item.timer.canceled && callback.pending == 0 &&
                         item.timer.next_ns < engine_.now() && callback.running == 0;
        EXPECT_FALSE(due) << "a lane sleeps while timer " << item.index << " is due";
      }
    }
  }

  Engine engine_;
  Random random_, delays_;
  Shape shape_;
  tide_platform_t platform_{};
  unsigned sections_ = 0, delaying_ = 0;
  tide_executor_t executor_{};
  std::vector<tide_lane_t> lanes_;
  std::vector<const tide_callback_t *> seen_running_;
  std::array<tide_callback_t *, kCallbacks> callbacks_{};
  std::vector<tide_queue_entry_t *> ready_, timers_;
  std::array<tide_group_t, kGroups> groups_{};
  std::array<std::array<tide_queue_entry_t *, kCallbacks>, kGroups> waiting_{};
  std::array<Item, kCallbacks> items_;
  std::vector<Start> starts_;
  std::vector<std::unique_ptr<Task>> tasks_;
};

uint64_t environment(const char *name, uint64_t otherwise) {
  const char *value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 0);
}

template <typename Body>
void for_seeds(uint64_t count, const Body &body) {
  const uint64_t first = environment("TIDE_SEED", 1);
  const uint64_t last = first + environment("TIDE_SEEDS", std::getenv("TIDE_SEED") == nullptr ? count : 1);
  for (uint64_t seed = first; seed < last; seed++) {
    body(seed);
    ASSERT_FALSE(testing::Test::HasFailure()) << "replay with TIDE_SEED=" << seed;
  }
}

TEST(SimLanes, RandomProgramsKeepTheRules) {
  static const std::vector<std::vector<uint8_t>> shapes{{0, 0}, {0, 0, 0, 0}, {0, 3}, {0, 2, 4, 6}, {0, 0, 3, 3}};
  size_t starts = 0;
  for_seeds(1500, [&](uint64_t seed) {
    World world(seed, {shapes[seed % shapes.size()]});
    world.run();
    starts += world.starts().size();
  });
  if (std::getenv("TIDE_SEED") == nullptr) {
    EXPECT_GT(starts, 50'000u) << "the programs do not do enough to prove anything";
  }
}

TEST(SimLanes, OneLaneWithGroupsRunsAsTheSingleThreadedExecutor) {
  for_seeds(300, [](uint64_t seed) {
    World plain(seed, {{0}, false, false}), grouped(seed, {{0}, true, false});
    plain.run();
    grouped.run();
    EXPECT_EQ(plain.starts(), grouped.starts());
  });
}

TEST(SimLanes, SameSeedSameTrace) {
  for_seeds(20, [](uint64_t seed) {
    World first(seed, {{0, 0, 3}}), second(seed, {{0, 0, 3}});
    first.run();
    second.run();
    EXPECT_EQ(first.starts(), second.starts());
  });
}

}  // namespace sim_lanes_test
}  // namespace tide::sim
