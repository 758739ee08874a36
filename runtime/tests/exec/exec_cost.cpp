// SPDX-License-Identifier: Apache-2.0
// Cost of calls of executor, local delivery, locks and budgets over the number of callbacks, groups, lanes,
// subscriptions, locks and replenishments, as promised in their headers.
#include <gtest/gtest.h>

#include <deque>

#include "cost.h"
#include "exec_virtual.h"
#include "tide/budget.h"
#include "tide/local.h"
#include "tide/lock.h"

extern "C" void __sanitizer_cov_trace_pc() { tide::test::branches++; }

namespace exec_cost {
namespace {

using tide::test::cost_of;
using tide::test::expect_constant;
using tide::test::expect_linear;
using tide::test::expect_logarithmic;

// An executor with these numbers of guards, lanes (each in its own band) and timers.
class Program {
 public:
  explicit Program(size_t count, size_t lane_count = 1, tide_group_t *group = nullptr, bool one_band = false)
      : callbacks(2 * count), ready(2 * count * lane_count), expiries(ready), lanes(lane_count) {
    for (size_t lane = 0; lane < lane_count && !one_band; lane++) {
      lanes[lane].settings.least_level = static_cast<uint8_t>(lane * 120 / lane_count);
    }
    tide_executor_config_t config{};
    config.platform = &machine.platform;
    config.callbacks = callbacks.data();
    config.ready_storage = ready.data();
    config.timer_storage = expiries.data();
    config.callback_count = callbacks.size();
    config.lanes = lanes.data();
    config.lane_count = lane_count;
    EXPECT_EQ(tide_executor_init(&core, &config), TIDE_OK);
    for (size_t number = 0; number < count; number++) {
      tide_callback_t &guard = guards.emplace_back();
      guard.kind = TIDE_CALLBACK_GUARD;
      guard.priority = TIDE_PRIORITY(number % 120, number % 7);
      guard.group = group;
      guard.execute = [](tide_callback_t *, void *context) { ++*static_cast<size_t *>(context); };
      guard.context = &runs;
      EXPECT_EQ(tide_executor_add(&core, &guard), TIDE_OK);
    }
  }
  void add_timers(size_t count) {
    for (size_t number = 0; number < count; number++) {
      tide_timer_t &timer = timers.emplace_back();
      timer.period_ns = static_cast<int64_t>(1000 + number);
      timer.callback.context = &runs;
      timer.on_expiry = [](tide_timer_t *expired, int64_t) { ++*static_cast<size_t *>(expired->callback.context); };
      EXPECT_EQ(tide_executor_add_timer(&core, &timer), TIDE_OK);
    }
  }
  // The cost of the most expensive of the calls, one for each guard.
  uint64_t most(const std::function<void(tide_callback_t &)> &call) {
    uint64_t cost = 0;
    for (tide_callback_t &guard : guards) cost = std::max(cost, cost_of([&] { call(guard); }));
    return cost;
  }
  void notify_all() {
    for (tide_callback_t &guard : guards) tide_executor_notify(&guard);
  }
  void round(size_t lane = 0) { (void)tide_executor_lane_round(&core, lane, machine.now); }

  exec_virtual::Machine machine;
  std::vector<tide_callback_t *> callbacks;
  std::vector<tide_queue_entry_t *> ready, expiries;
  std::vector<tide_lane_t> lanes;
  std::deque<tide_callback_t> guards;
  std::deque<tide_timer_t> timers;
  tide_executor_t core{};
  size_t runs = 0;
};

// ---- callbacks, groups and lanes ----

TEST(ExecutorCost, NotifyingAndRunningAreLogarithmicInTheCallbacks) {
  expect_logarithmic("notify", [](size_t count) {
    Program program(count);
    return program.most([](tide_callback_t &guard) { tide_executor_notify(&guard); });
  });
  expect_logarithmic("a round", [](size_t count) {
    Program program(count);
    program.notify_all();
    const uint64_t cost = program.most([&](tide_callback_t &) { program.round(); });
    EXPECT_EQ(program.runs, count);
    return cost;
  });
  expect_logarithmic("set_priority", [](size_t count) {
    Program program(count);
    program.notify_all();
    return program.most(
        [&](tide_callback_t &guard) { tide_executor_set_priority(&program.core, &guard, guard.priority ^ 1u); });
  });
}

TEST(ExecutorCost, TimersAreLogarithmicInTheTimers) {
  expect_logarithmic("an expiry", [](size_t count) {
    Program program(count);
    program.add_timers(count);
    uint64_t cost = 0;
    for (size_t number = 0; number < count; number++) {
      program.machine.now = program.timers[number].next_ns;
      cost = std::max(cost, cost_of([&] { program.round(); }));
    }
    EXPECT_GE(program.runs, count);
    return cost;
  });
  expect_logarithmic("cancel and reset", [](size_t count) {
    Program program(count);
    program.add_timers(count);
    uint64_t cost = 0;
    for (tide_timer_t &timer : program.timers) {
      cost = std::max(cost, cost_of([&] {
                        tide_timer_cancel(&timer);
                        tide_timer_reset(&timer);
                      }));
    }
    return cost;
  });
}

TEST(ExecutorCost, GroupsAreLogarithmicInTheirCallbacks) {
  const auto steps = [](size_t count, bool notifies) {
    tide_group_t group;
    std::vector<tide_queue_entry_t *> waiting(count);
    EXPECT_EQ(tide_group_init(&group, TIDE_GROUP_EXCLUSIVE, waiting.data(), count), TIDE_OK);
    Program program(count, 2, &group, true);
    const uint64_t notify = program.most([](tide_callback_t &guard) { tide_executor_notify(&guard); });
    const uint64_t run = program.most([&](tide_callback_t &) { program.round(); });
    EXPECT_EQ(program.runs, count);
    return notifies ? notify : run;
  };
  expect_logarithmic("notify", [&](size_t count) { return steps(count, true); });
  expect_logarithmic("a round", [&](size_t count) { return steps(count, false); });
}

TEST(ExecutorCost, LanesCostEachCallAStepEach) {
  const auto linear = [](const char *name, const std::function<void(Program &)> &call) {
    expect_linear(name, [&](size_t count) {
      Program program(2, std::min<size_t>(count, 120));
      return cost_of([&] { call(program); });
    });
  };
  linear("add", [](Program &program) {
    tide_callback_t &guard = program.guards.emplace_back(program.guards.front());
    guard.executor = nullptr;
    EXPECT_EQ(tide_executor_add(&program.core, &guard), TIDE_OK);
  });
  linear("is_running", [](Program &program) { tide_executor_is_running(&program.core, &program.guards.front()); });
  linear("next_expiry_ns", [](Program &program) { tide_executor_next_expiry_ns(&program.core); });
  expect_constant("notify and a round", [](size_t count) {
    Program program(2, std::min<size_t>(count, 120));
    return cost_of([&] {
      tide_executor_notify(&program.guards.front());
      program.round();
    });
  });
}

TEST(ExecutorCost, RemovingAndCountingAreLinearInTheCallbacks) {
  expect_linear("remove", [](size_t count) {
    Program program(count);
    program.notify_all();
    return cost_of([&] { tide_executor_remove(&program.core, &program.guards.front()); });
  });
  expect_linear("count_starts", [](size_t count) {
    Program program(count);
    program.add_timers(count);
    return cost_of([&] { tide_executor_count_starts(&program.core, 0); });
  });
}

// ---- local delivery ----

TEST(LocalCost, PublishIsLinearInTheSubscriptionsAndTakingIsConstant) {
  const auto publish = [](size_t count, bool takes) {
    Program program(count);
    tide_local_pool_t pool;
    std::vector<uint64_t> storage(TIDE_LOCAL_STORAGE_BYTES(2 * count + 1, 8) / 8);
    EXPECT_EQ(
        tide_local_pool_init(&pool, &program.machine.platform, storage.data(), static_cast<uint32_t>(2 * count + 1), 8),
        TIDE_OK);
    tide_local_topic_t topic{};
    EXPECT_EQ(tide_local_topic_init(&topic, &pool, 1), TIDE_OK);
    std::vector<tide_local_message_t *> queues(count);
    std::deque<tide_local_subscription_t> subscriptions;
    for (size_t number = 0; number < count; number++) {
      tide_local_subscription_t &subscription = subscriptions.emplace_back();
      subscription.callback = &program.guards[number];
      subscription.queue = &queues[number];
      subscription.depth = 1;
      EXPECT_EQ(tide_local_subscribe(&topic, &subscription), TIDE_OK);
    }
    void *message = nullptr;
    EXPECT_EQ(tide_local_borrow(&topic, &message), TIDE_OK);
    const uint64_t published =
        cost_of([&] { EXPECT_EQ(tide_local_publish(&topic, message, 8), static_cast<int>(count)); });
    const uint64_t taken = cost_of([&] { tide_local_release(tide_local_take(&subscriptions.back(), nullptr)); });
    return takes ? taken : published;
  };
  expect_linear("publish", [&](size_t count) { return publish(count, false); });
  expect_constant("take and release", [&](size_t count) { return publish(count, true); });
}

// ---- locks ----

TEST(LockCost, TakeIsLinearInTheLocksOfTheSetAndGiveIsConstant) {
  static const tide_lock_port_t port = {nullptr, [](void *) -> const void * { return &port; },
                                        [](void *, const tide_lane_t *, uintptr_t *) { return int{TIDE_OK}; },
                                        [](void *, uintptr_t) {}, true};
  struct Holder {
    tide_lock_t *lock;
    uint64_t take, give;
  };
  const auto hold = [](size_t count, bool gives) {
    Program program(1);
    tide_lock_set_t set;
    EXPECT_EQ(tide_lock_set_init(&set, &program.machine.platform, &port), TIDE_OK);
    std::deque<tide_lock_t> locks(count);
    tide_callback_t &guard = program.guards.front();
    for (tide_lock_t &lock : locks) {
      EXPECT_EQ(tide_lock_init(&lock, &set), TIDE_OK);
      EXPECT_EQ(tide_lock_allow(&lock, &guard), TIDE_OK);
    }
    Holder holder = {&locks.front(), 0, 0};
    guard.context = &holder;
    guard.execute = [](tide_callback_t *callback, void *context) {
      auto *held = static_cast<Holder *>(context);
      held->take = cost_of([&] { EXPECT_EQ(tide_lock_take(held->lock, callback), TIDE_OK); });
      held->give = cost_of([&] { EXPECT_EQ(tide_lock_give(held->lock), TIDE_OK); });
    };
    tide_executor_notify(&guard);
    program.round();
    return gives ? holder.give : holder.take;
  };
  expect_linear("take", [&](size_t count) { return hold(count, false); });
  expect_constant("give", [&](size_t count) { return hold(count, true); });
}

// ---- budgets ----

TEST(BudgetCost, AnEventIsLinearInTheReplenishmentsAndConstantForOneUse) {
  const auto use = [](size_t count, bool in_pieces) {
    std::vector<tide_replenishment_t> replenishments(count);
    tide_budget_config_t config{};
    config.priority = 1;
    config.budget_ns = static_cast<int64_t>(10 * count);
    config.period_ns = 1000 * config.budget_ns;
    config.replenishments = replenishments.data();
    config.maximum_replenishments = static_cast<uint16_t>(count);
    tide_budget_t budget;
    EXPECT_EQ(tide_budget_init(&budget, &config, 0), TIDE_OK);
    uint64_t cost = 0;
    int64_t now = 0;
    for (size_t piece = 0; piece < (in_pieces ? count : 1); piece++) {
      cost = std::max(cost, cost_of([&] {
                        tide_budget_ready(&budget, now);
                        tide_budget_run(&budget, now);
                        tide_budget_block(&budget, 5, now + 5);
                      }));
      now += 20;
    }
    cost = std::max(cost, cost_of([&] {
                      tide_budget_ready(&budget, now + 2 * config.period_ns);
                      tide_budget_run(&budget, now + 2 * config.period_ns);
                      tide_budget_block(&budget, config.budget_ns, now + 3 * config.period_ns);
                    }));
    return cost;
  };
  expect_linear("in pieces", [&](size_t count) { return use(count, true); });
  expect_constant("in one go", [&](size_t count) { return use(count, false); });
}

}  // namespace
}  // namespace exec_cost
