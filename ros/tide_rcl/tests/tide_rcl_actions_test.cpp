// SPDX-License-Identifier: Apache-2.0
// Goals of an action server expire, although only a timer within rcl reports when: no goal is kept for ever.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <thread>

#include "engine_probe.h"
#include "rcl_action/rcl_action.h"
#include "rcl_program.h"
#include "test_msgs/action/fibonacci.h"
#include "tide_rcl/entities.h"

namespace tide_rcl {
namespace tide_rcl_actions_test {

constexpr std::int64_t kSecondNs = 1000000000;

// A server with one lock for all its uses, as in rclcpp_action.
class Server {
 public:
  Server(Program &program, RclClock &clock, std::int64_t result_timeout_ns) : node_(program.node) {
    rcl_action_server_options_t options = rcl_action_server_get_default_options();
    options.result_timeout.nanoseconds = result_timeout_ns;
    const auto *type = ROSIDL_GET_ACTION_TYPE_SUPPORT(test_msgs, Fibonacci);
    check(rcl_action_server_init(server_.get(), &node_, &clock.clock, type, ("move_" + Program::number()).c_str(),
                                 &options),
          "rcl_action_server_init");
    rcl_wait_set_t set = rcl_get_zero_initialized_wait_set();
    check(rcl_wait_set_init(&set, 0, 0, 1, 0, 3, 0, program.context(), rcl_get_default_allocator()), "wait set");
    check(rcl_action_wait_set_add_action_server(&set, server_.get(), nullptr), "add_action_server");
    timer = {server_, set.timers[0]};
    check(rcl_wait_set_fini(&set), "rcl_wait_set_fini");
  }
  Server(const Server &) = delete;
  Server &operator=(const Server &) = delete;
  ~Server() {
    EXPECT_EQ(rcl_action_server_fini(server_.get(), &node_), RCL_RET_OK);
    for (auto &[goal, handle] : handles_) EXPECT_EQ(rcl_action_goal_handle_fini(&handle), RCL_RET_OK);
  }

  // Accepts a goal, executes it and ends it. The server uses the goal's handle until the goal has expired.
  void finish_goal() {
    rcl_action_goal_info_t info = rcl_action_get_zero_initialized_goal_info();
    const std::lock_guard<std::mutex> lock(mutex_);
    last_++;
    std::memcpy(info.goal_id.uuid, &last_, sizeof last_);
    rcl_action_goal_handle_t *kept = rcl_action_accept_new_goal(server_.get(), &info);
    ASSERT_NE(kept, nullptr);
    rcl_action_goal_handle_t &handle = handles_[last_] = *kept;
    check(rcl_action_update_goal_state(&handle, GOAL_EVENT_EXECUTE), "execute");
    check(rcl_action_update_goal_state(&handle, GOAL_EVENT_SUCCEED), "succeed");
    check(rcl_action_notify_goal_done(server_.get()), "rcl_action_notify_goal_done");
  }

  // Does what rclcpp_action does when a wait set finds the timer ready.
  void expire() {
    const std::lock_guard<std::mutex> lock(mutex_);
    rcl_action_goal_info_t expired[1];
    std::size_t count = 0;
    for (;;) {
      check(rcl_action_expire_goals(server_.get(), expired, 1, &count), "rcl_action_expire_goals");
      if (count == 0) break;
      std::uint64_t goal = 0;
      std::memcpy(&goal, expired[0].goal_id.uuid, sizeof goal);
      check(rcl_action_goal_handle_fini(&handles_.at(goal)), "rcl_action_goal_handle_fini");
      handles_.erase(goal);
    }
    serves++;
  }

  std::size_t kept() {
    rcl_action_goal_handle_t **handles = nullptr;
    std::size_t count = 0;
    const std::lock_guard<std::mutex> lock(mutex_);
    check(rcl_action_server_get_goal_handles(server_.get(), &handles, &count), "rcl_action_server_get_goal_handles");
    return count;
  }

  std::shared_ptr<KeptTimer> entity() {
    return std::make_shared<KeptTimer>(timer, [this] { expire(); });
  }

  std::shared_ptr<const rcl_timer_t> timer;
  std::atomic<int> serves{0};

 private:
  rcl_node_t &node_;
  std::shared_ptr<rcl_action_server_t> server_ =
      std::make_shared<rcl_action_server_t>(rcl_action_get_zero_initialized_server());
  std::mutex mutex_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, rcl_action_goal_handle_t> handles_;  // goals that have not expired, by number
};

// Each goal expires before the next one arrives, so the last goal must cost as much as the first.
TEST(Actions, TenThousandGoalsAreForgotten) {
  Program program;
  for (const rcl_clock_type_t type : {RCL_STEADY_TIME, RCL_ROS_TIME}) {
    RclClock clock(type);
    Server server(program, clock, 0);
    const auto engine = std::make_shared<Engine>();
    engine->add(server.entity(), TIDE_PRIORITY(1, 0), std::make_shared<Group>(TIDE_GROUP_EXCLUSIVE));
    std::size_t most = 0;
    for (int goal = 0; goal < 10000; goal++) {
      server.finish_goal();
      most = std::max(most, server.kept());
      while (server.kept() > 0) engine->spin_once();
    }
    EXPECT_EQ(most, 1u);
    EXPECT_LE(server.serves, 2 * 10000) << "a goal costs a run, and one more where the clock has not moved on";
    engine->spin_some();
  }
}

// The goals end in a thread of the program, while the engine spins in another one.
TEST(Actions, GoalsThatEndOnOtherThreadsAreForgotten) {
  Program program;
  RclClock clock(RCL_STEADY_TIME);
  for (const auto &options : {EngineOptions{}, lanes_of({0, 0})}) {
    Server server(program, clock, 1);
    const auto engine = std::make_shared<Engine>(options);
    const auto entity = server.entity();
    engine->add(entity, 0);
    std::thread spinner([&] { engine->spin(); });
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 3; thread++) {
      threads.emplace_back([&] {
        for (int goal = 0; goal < 200; goal++) server.finish_goal();
      });
    }
    for (std::thread &thread : threads) thread.join();
    EXPECT_TRUE(eventually([&] { return server.kept() == 0; }));
    std::thread last([&] {
      for (int goal = 0; goal < 200; goal++) server.finish_goal();
    });
    EXPECT_TRUE(engine->remove(entity)) << "while goals end";
    last.join();
    engine->cancel();
    spinner.join();
  }
}

// The engine is not notified of jumps of the server's clock, because it is the clock of the node, whose lock the engine
// does not have. It checks the timer once a second.
TEST(Actions, ExpireBySimulatedTime) {
  Program program;
  RclClock clock(RCL_ROS_TIME);
  check(rcl_enable_ros_time_override(&clock.clock), "rcl_enable_ros_time_override");
  check(rcl_set_ros_time_override(&clock.clock, kSecondNs), "rcl_set_ros_time_override");
  Server server(program, clock, kSecondNs);
  const auto engine = std::make_shared<Engine>();
  engine->add(server.entity(), 0);
  server.finish_goal();
  engine->spin_some();
  EXPECT_EQ(server.serves, 0) << "time stands";
  check(rcl_set_ros_time_override(&clock.clock, 4 * kSecondNs), "rcl_set_ros_time_override");
  while (server.kept() > 0) engine->spin_once();
  EXPECT_GE(server.serves, 1);
}

// If the owner of a due timer does nothing, the timer is served again a millisecond later, not at once.
TEST(Actions, AServerThatDoesNotServeIsNoBusyLoop) {
  Program program;
  RclClock clock(RCL_STEADY_TIME);
  RclTimer timer(program, clock, 1);
  int serves = 0;
  const auto engine = std::make_shared<Engine>();
  engine->add(std::make_shared<KeptTimer>(
                  std::shared_ptr<const rcl_timer_t>(std::shared_ptr<void>(&serves, [](auto) {}), &timer.timer),
                  [&] { serves++; }),
              0);
  engine->spin_once();
  engine->spin_all(milliseconds(0));
  EXPECT_LE(serves, 2);
}

}  // namespace tide_rcl_actions_test
}  // namespace tide_rcl
