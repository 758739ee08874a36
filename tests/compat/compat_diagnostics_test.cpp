// SPDX-License-Identifier: Apache-2.0
// The /diagnostics of a program: each status with its warnings, statuses that are left out, budgets, and the orders in
// which objects may end.
#include <atomic>
#include <map>
#include <set>

#include "connected.h"
#include "tide/chain_watch.h"
#include "tide/measure.h"
#include "tide/pools.h"
#include "tide/rclc_diagnostics.h"

namespace tide::compat::test::diagnostics_test {

constexpr uint32_t kPeriodMs = 60;
constexpr const char *kTopic = "rt/diagnostics";

struct Status {
  uint8_t level = 255;
  int64_t stamp_ns = 0;
  std::string name, message, hardware;
  std::map<std::string, std::string> values;
};

Status status_of(const Octets &bytes) {
  tide_cdr_t cdr;
  tide_cdr_reader(&cdr, bytes.data(), bytes.size(), false);
  const auto text = [&cdr] {
    size_t length = 0;
    const char *characters = tide_cdr_get_string(&cdr, &length);
    return characters == nullptr ? std::string() : std::string(characters, length);
  };
  Status status;
  status.stamp_ns = tide_cdr_get_u32(&cdr) * INT64_C(1000000000);
  status.stamp_ns += tide_cdr_get_u32(&cdr);
  EXPECT_EQ(text(), "");
  EXPECT_EQ(tide_cdr_get_u32(&cdr), 1u);
  status.level = tide_cdr_get_u8(&cdr);
  status.name = text();
  status.message = text();
  status.hardware = text();
  for (uint32_t left = tide_cdr_get_u32(&cdr); left > 0 && cdr.status == TIDE_OK; left--) {
    const std::string key = text();
    EXPECT_TRUE(status.values.emplace(key, text()).second) << key;
  }
  EXPECT_EQ(cdr.status, TIDE_OK);
  EXPECT_EQ(tide_cdr_remaining(&cdr), 0u);
  return status;
}

class Diagnostics : public Spinning {
 protected:
  Diagnostics() : Spinning(3) {}
  rcl_ret_t begin() { return tide_rclc_diagnostics_init(&node, &support, &executor, kPeriodMs); }
  std::vector<Status> statuses() {
    std::vector<Status> all;
    for (const Octets &bytes : server.written(kTopic)) all.push_back(status_of(bytes));
    return all;
  }
  void spin() { (void)rclc_executor_spin_some(&executor, RCL_MS_TO_NS(5)); }
  template <typename Condition> bool spin_until(const Condition &condition) {
    for (const Time limit = now_ns() + 20 * sim::kSecond; now_ns() < limit;) {
      if (condition()) return true;
      spin();
    }
    return condition();
  }
  // Waits for a status with this name after the first `behind` statuses, and returns it.
  Status told(const std::string &name, size_t behind = 0) {
    Status found;
    EXPECT_TRUE(spin_until([&] {
      const std::vector<Status> all = statuses();
      for (size_t index = behind; index < all.size(); index++) {
        if (all[index].name != name) continue;
        found = all[index];
        return true;
      }
      return false;
    })) << name;
    return found;
  }
  static uint32_t published() { return tide_rclc_diagnostics_get_counters().published; }
  static uint32_t left_out() { return tide_rclc_diagnostics_get_counters().left_out; }
};

TEST_F(Diagnostics, EachStatusIsToldInTurnWithItsValues) {
  ASSERT_EQ(rmw_uros_sync_session(1000), RMW_RET_OK);
  const int64_t before_ns = rmw_uros_epoch_nanos();
  ASSERT_OK(begin());
  (void)publisher_of(int32_type(), "number");
  ASSERT_TRUE(spin_until([&] { return statuses().size() >= 8; }));
  const std::vector<Status> all = statuses();
  const std::vector<std::string> names = {"node: link", "node: memory", "node: executor 1", "node: object 1"};
  for (size_t index = 0; index < all.size(); index++) {
    EXPECT_EQ(all[index].name, names[index % names.size()]);
    EXPECT_EQ(all[index].level, 0) << all[index].message;
    EXPECT_EQ(all[index].message, index % names.size() == 3 ? "publisher" : "as usual");
    EXPECT_GE(all[index].stamp_ns, before_ns);
    EXPECT_LE(all[index].stamp_ns, rmw_uros_epoch_nanos());
    char key[9];
    std::snprintf(key, sizeof key, "%08X", session()->config.key);
    EXPECT_EQ(all[index].hardware, key);
  }
  EXPECT_EQ(all[0].values.at("sessions"), "1");
  EXPECT_EQ(all[0].values.at("clock synchronised"), "1");
  EXPECT_EQ(all[1].values.at("nodes"), std::to_string(session()->daemon.transmitter.config.node_count));
  EXPECT_EQ(all[1].values.at("messages refused, no node"), "0");
  EXPECT_EQ(all[2].values.at("lanes"), "1");
  EXPECT_EQ(all[2].values.at("policy"), std::to_string(TIDE_POLICY_TIDE));
  EXPECT_EQ(all[2].values.at("send mode"), std::to_string(TIDE_SEND_ASYNCHRONOUS));
  EXPECT_EQ(all[2].values.at("timers expired"), "3");
  EXPECT_EQ(all[6].values.at("timers expired"), "7");
}

TEST_F(Diagnostics, TheObjectsOfTheProgramTakeTurns) {
  rcl_publisher_t publisher = publisher_of(int32_type(), "number");
  rcl_timer_t timer = rcl_get_zero_initialized_timer();
  ASSERT_OK(rclc_timer_init_default(&timer, &support, RCL_MS_TO_NS(20), [](rcl_timer_t *, int64_t) {}));
  ASSERT_OK(rclc_executor_add_timer(&executor, &timer));
  tide_chain_t chain;
  ASSERT_EQ(tide_chain_init(&chain, "brake", 3, RCL_MS_TO_NS(20), RCL_MS_TO_NS(15)), TIDE_OK);
  ASSERT_OK(tide_rclc_chain_add_timer(&chain, &timer));
  ASSERT_OK(tide_rclc_chain_add_publisher(&chain, &publisher));
  EXPECT_REFUSED(tide_rclc_diagnostics_add_chain(&chain), RCL_RET_ERROR, TIDE_ERROR_STATE);
  ASSERT_OK(begin());
  const tide_chain_t none{};
  EXPECT_REFUSED(tide_rclc_diagnostics_add_chain(&none), RCL_RET_INVALID_ARGUMENT, TIDE_ERROR_ARGUMENT);
  ASSERT_OK(tide_rclc_diagnostics_add_chain(&chain));
  const Status brake = told("node: object 1");
  EXPECT_EQ(brake.message, "chain");
  EXPECT_EQ(brake.values.at("name"), "brake");
  EXPECT_EQ(brake.values.at("priority"), std::to_string(TIDE_PRIORITY(3, 0)));
  EXPECT_EQ(brake.values.at("period ns"), "20000000");
  EXPECT_EQ(brake.values.at("deadline ns"), "15000000");
  EXPECT_EQ(brake.values.at("objects"), "3");
  const Status number = told("node: object 2");
  EXPECT_EQ(number.message, "publisher");
  EXPECT_EQ(number.values.at("name"), "/number");
  EXPECT_EQ(number.values.at("priority"), std::to_string(TIDE_PRIORITY(3, 1)));
  const Status ticks = told("node: object 3");
  EXPECT_EQ(ticks.message, "timer");
  EXPECT_EQ(ticks.values.at("priority"), std::to_string(TIDE_PRIORITY(3, 0)));
  EXPECT_EQ(ticks.values.at("period ns"), "20000000");
  EXPECT_EQ(ticks.values.at("executor"), "1");
  EXPECT_GT(std::stoi(ticks.values.at("runs")), 0);
  EXPECT_EQ(told("node: object 1", statuses().size()).message, "chain") << "the table begins again";
  for (uint32_t more = 1; more < TIDE_DIAGNOSTICS_CHAINS; more++) ASSERT_OK(tide_rclc_diagnostics_add_chain(&chain));
  EXPECT_REFUSED(tide_rclc_diagnostics_add_chain(&chain), RCL_RET_ERROR, TIDE_ERROR_FULL);
}

TEST_F(Diagnostics, EachIsToldOnceAPeriod) {
  ASSERT_OK(begin());
  const auto start = now_ns();
  ASSERT_TRUE(spin_until([&] { return statuses().size() >= 15; }));
  const auto taken = now_ns() - start;
  EXPECT_GE(taken, 15 * kPeriodMs / 4 * sim::kMillisecond - sim::kMillisecond) << "turns of a quarter of the period";
}

TEST_F(Diagnostics, ALossIsAWarningForTenReports) {
  ASSERT_OK(begin());
  EXPECT_EQ(told("node: memory").level, 0);
  masked([](tide_session_t &session) { return session.daemon.transmitter.counters.expired += 3; });
  size_t warned = 0, fine_after = 0, lost_more = 0;
  ASSERT_TRUE(spin_until([&] {
    warned = fine_after = lost_more = 0;
    for (const Status &status : statuses()) {
      if (status.name != "node: memory") continue;
      if (status.level == 1) {
        warned++;
        EXPECT_EQ(status.message, "messages were refused or lost");
        EXPECT_EQ(status.values.at("messages expired"), "3");
        for (const char *other : {"messages refused, no node", "messages replaced", "frames dropped, no slot"}) {
          lost_more += status.values.at(other) != "0";
        }
      } else if (warned > 0) {
        fine_after++;
      }
    }
    return fine_after >= 2;
  }));
  EXPECT_GE(warned, 10u);
  if (lost_more == 0) {
    EXPECT_EQ(warned, 10u) << "a machine that stands still loses more, and the ten begin anew";
  }
  for (const Status &status : statuses()) {
    if (status.name != "node: memory") {
      EXPECT_EQ(status.level, 0) << status.name;
    }
  }
}

TEST_F(Diagnostics, HalfOfThePoolStaysThePrograms) {
  rcl_publisher_t publisher = publisher_of(int32_type(), "number");
  ASSERT_OK(begin());
  (void)told("node: memory");
  server.mute(true);
  ASSERT_TRUE(eventually([&] {
    std_msgs__msg__Int32 number = {7};
    (void)rcl_publish(&publisher, &number, nullptr);
    return 2u * session()->daemon.transmitter.nodes_in_use >= tide_pools.data_node_count;
  }));
  const uint32_t before = published(), without = left_out();
  ASSERT_TRUE(spin_until([&] { return left_out() >= without + 5; }));
  EXPECT_LE(published(), before + 1);
}

TEST_F(Diagnostics, ALaneWithABudgetTellsWhatItUsed) {
  struct Budget {
    tide_budget_counters_t counters{};
    bool high = false;
  } budget;
  budget.counters = {.activations = 1,
                     .exhaustions = 4,
                     .replenishments = 3,
                     .denied = 0,
                     .forgiven = 0,
                     .used_ns = 5'000'000,
                     .low_ns = 2'000'000,
                     .overrun_ns = 7'000};
  tide_lane_t &lane = tide_rclc_executor_core(&executor)->config.lanes[0];
  lane.settings.runtime_ns = 2'000'000;
  lane.settings.period_ns = 10'000'000;
  lane.budget.context = &budget;
  lane.budget.ready = [](void *) {};
  lane.budget.block = [](void *) {};
  lane.budget.read = [](void *context, tide_budget_counters_t *counters, bool *high) {
    auto *own = static_cast<Budget *>(context);
    own->counters.used_ns += 1'000'000;
    *counters = own->counters;
    *high = own->high;
  };
  ASSERT_OK(begin());
  const Status first = told("node: lane 1");
  EXPECT_EQ(first.values.at("budget us"), "2000");
  EXPECT_EQ(first.values.at("period us"), "10000");
  EXPECT_EQ(first.values.at("has budget left"), "0");
  EXPECT_EQ(first.values.at("times used up"), "4");
  EXPECT_EQ(first.values.at("used ms"), "6");
  EXPECT_EQ(first.values.at("without budget ms"), "2");
  EXPECT_EQ(first.values.at("overrun us"), "7");
  EXPECT_EQ(first.values.count("used, per mille"), 0u) << "of no time";
  const Status second = told("node: lane 1", statuses().size());
  const int per_mille = std::stoi(second.values.at("used, per mille"));
  EXPECT_GT(per_mille, 0);
  EXPECT_LT(per_mille, 1000) << "a millisecond in four turns of twelve";
  EXPECT_EQ(second.level, 0) << "a budget that is used up is no trouble";
  budget.counters.denied = 1;
  const Status third = told("node: lane 1", statuses().size() + 1);
  EXPECT_EQ(third.level, 1);
  EXPECT_EQ(third.message, "more to replenish than places for it");
  lane.budget = {};
}

TEST_F(Diagnostics, MeasuredCallbacksAreToldByTheirNames) {
  uint64_t ticks = 0;
  const tide_measure_clock_t clock = {[](void *context) -> uint64_t { return *static_cast<uint64_t *>(context) += 7; },
                                      &ticks, UINT64_MAX, 1'000'000'000, true};
  tide_measure_t measure;
  tide_measure_init(&measure, &clock);
  tide_rclc_executor_core(&executor)->config.measure = &measure;
  ASSERT_OK(begin());
  tide_measurement_t own = {.name = "brake/sample", .count = 1, .minimum = 3, .maximum = 4321, .sum = 4321};
  rcl_timer_t timer = rcl_get_zero_initialized_timer();
  ASSERT_OK(rclc_timer_init_default(&timer, &support, RCL_S_TO_NS(1000), [](rcl_timer_t *, int64_t) {}));
  ASSERT_OK(rclc_executor_add_timer(&executor, &timer));
  tide_rclc_timer_callback(&timer)->measurement = &own;
  EXPECT_EQ(told("node: executor 1").values.at("brake/sample, longest ns"), "4321");
}

TEST_F(Diagnostics, AWatchedChainThatIsLateIsAWarning) {
  rcl_timer_t timer = rcl_get_zero_initialized_timer();
  ASSERT_OK(rclc_timer_init_default(&timer, &support, RCL_MS_TO_NS(100), [](rcl_timer_t *, int64_t) {}));
  ASSERT_OK(rclc_executor_add_timer(&executor, &timer));
  rcl_timer_t never = rcl_get_zero_initialized_timer();
  ASSERT_OK(rclc_timer_init_default(&never, &support, RCL_S_TO_NS(1000), [](rcl_timer_t *, int64_t) {}));
  ASSERT_OK(rclc_executor_add_timer(&executor, &never));
  tide_chain_t chain;
  tide_chain_watch_t watch{};
  ASSERT_EQ(tide_chain_init(&chain, "brake", 3, RCL_MS_TO_NS(100), RCL_MS_TO_NS(60)), TIDE_OK);
  ASSERT_EQ(tide_chain_watch(&watch, &chain, tide_rclc_timer_callback(&timer), tide_rclc_timer_callback(&never)),
            TIDE_OK);
  ASSERT_OK(begin());
  EXPECT_EQ(told("node: executor 1").level, 0) << "nothing is missing yet";
  ASSERT_TRUE(spin_until([&] { return tide_chain_watch_counters(&watch).missing >= 2; }));
  const Status found = told("node: executor 1", statuses().size());
  EXPECT_EQ(found.level, 1);
  EXPECT_EQ(found.message, "an instance of a chain was late or missing");
  EXPECT_EQ(found.values.at("brake, late"), "0");
  EXPECT_GE(std::stoi(found.values.at("brake, missing")), 2);
}

TEST_F(Diagnostics, AnotherExecutorIsToldToo) {
  rclc_executor_t other = executor_of(1);
  EXPECT_REFUSED(tide_rclc_diagnostics_add_executor(&other), RCL_RET_ERROR, TIDE_ERROR_STATE);
  ASSERT_OK(begin());
  ASSERT_OK(tide_rclc_diagnostics_add_executor(&other));
  EXPECT_EQ(told("node: executor 2").values.at("timers expired"), "0");
  EXPECT_NE(told("node: executor 1").values.at("timers expired"), "0");
  ASSERT_OK(rclc_executor_fini(&other));
  const size_t behind = statuses().size() + 1;
  (void)told("node: executor 1", behind);
  for (size_t index = behind; index < statuses().size(); index++) EXPECT_NE(statuses()[index].name, "node: executor 2");
}

TEST_F(Diagnostics, AfterTheAgentsRestartTheyGoOn) {
  ASSERT_OK(begin());
  (void)told("node: link");
  server.mute(true);
  ASSERT_TRUE(spin_until([&] { return state() != TIDE_SESSION_READY; }));
  server.mute(false);
  ASSERT_TRUE(spin_until([&] {
    for (const Status &status : statuses())
      if (status.name == "node: link" && status.values.at("sessions") == "2") return true;
    return false;
  }));
}

TEST_F(Diagnostics, ThereIsOneAndItsEndsAreDefined) {
  rcl_node_t none{};
  EXPECT_REFUSED(tide_rclc_diagnostics_init(&none, &support, &executor, 10), RCL_RET_INVALID_ARGUMENT,
                 TIDE_ERROR_ARGUMENT);
  EXPECT_REFUSED(tide_rclc_diagnostics_init(&node, &support, &executor, 0), RCL_RET_INVALID_ARGUMENT,
                 TIDE_ERROR_ARGUMENT);
  EXPECT_REFUSED(tide_rclc_diagnostics_fini(&node), RCL_RET_ERROR, TIDE_ERROR_STATE);
  ASSERT_OK(begin());
  EXPECT_REFUSED(begin(), RCL_RET_ALREADY_INIT, TIDE_ERROR_EXISTS);
  ASSERT_OK(tide_rclc_diagnostics_fini(&node));
  EXPECT_REFUSED(tide_rclc_diagnostics_fini(&node), RCL_RET_ERROR, TIDE_ERROR_STATE);
  ASSERT_OK(begin());
  (void)told("node: link");
}

/* The diagnostics end with their support, and other objects may then use their pool entries. */
TEST_F(Diagnostics, WithTheirSupportTheyEndToo) {
  ASSERT_OK(begin());
  ASSERT_OK(rclc_executor_fini(&executor));
  ASSERT_OK(rclc_support_fini(&support));
  connect();
  ASSERT_OK(rclc_executor_init(&executor, &support.context, 3, &allocator));
  (void)publisher_of(int32_type(), "number");
  EXPECT_REFUSED(tide_rclc_diagnostics_fini(&node), RCL_RET_ERROR, TIDE_ERROR_STATE);
  ASSERT_OK(begin());
  (void)told("node: link");
  EXPECT_TRUE(server.written("rt/number").empty());
}

/* An init call fails when half of its objects exist. */
TEST_F(Diagnostics, NothingIsLeftOfOneThatFails) {
  rclc_executor_t full = executor_of(1);
  rcl_timer_t timer = rcl_get_zero_initialized_timer();
  ASSERT_OK(rclc_timer_init_default(&timer, &support, RCL_S_TO_NS(1000), [](rcl_timer_t *, int64_t) {}));
  ASSERT_OK(rclc_executor_add_timer(&full, &timer));
  for (size_t attempt = 0; attempt < size_t{2} * (tide_pools.publisher_count + tide_pools.timer_count); attempt++) {
    ASSERT_NE(tide_rclc_diagnostics_init(&node, &support, &full, 10), RCL_RET_OK);
  }
  ASSERT_OK(begin());
  (void)told("node: memory");
  ASSERT_OK(rclc_executor_fini(&full));
}

}  // namespace tide::compat::test::diagnostics_test
