// SPDX-License-Identifier: Apache-2.0
// Nodes for the tests. Their messages and services are those on which rclcpp itself depends.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "rcl_interfaces/srv/list_parameters.hpp"
#include "rclcpp/rclcpp.hpp"
#include "rosgraph_msgs/msg/clock.hpp"
#include "tide_rclcpp/executor.hpp"

namespace tide_rclcpp {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Message = rosgraph_msgs::msg::Clock;
using Call = rcl_interfaces::srv::ListParameters;

// Names contain the process number, so that other programs do not receive its messages.
inline std::string space() { return "/tide_" + std::to_string(getpid()); }

class Program : public ::testing::Test {
 protected:
  void SetUp() override {
    (void)setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST", 1);
    rclcpp::init(0, nullptr);
  }
  void TearDown() override { rclcpp::shutdown(); }

  static std::shared_ptr<rclcpp::Node> make_node(const std::string &name, bool intra_process = false) {
    return std::make_shared<rclcpp::Node>(name, space(), rclcpp::NodeOptions().use_intra_process_comms(intra_process));
  }
};

inline Message message(int value) {
  Message made;
  made.clock.sec = value;
  return made;
}

template <typename Condition> bool eventually(Condition &&holds) {
  for (int tries = 0; tries < 20000; tries++) {
    if (holds()) return true;
    std::this_thread::sleep_for(milliseconds(1));  // clock: the interval of the checks
  }
  return holds();
}

class Spinning {
 public:
  explicit Spinning(Executor &executor) : executor_(executor), thread_([&executor] { executor.spin(); }) {
    (void)eventually([&] { return executor.is_spinning(); });
  }
  Spinning(const Spinning &) = delete;
  Spinning &operator=(const Spinning &) = delete;
  ~Spinning() {
    executor_.cancel();
    thread_.join();
  }

 private:
  Executor &executor_;
  std::thread thread_;
};

inline Options with(std::initializer_list<const char *> lanes, std::initializer_list<std::string> chains = {}) {
  Options options;
  for (const char *words : lanes) options.lanes.push_back(parse_lane(words));
  for (const std::string &words : chains) options.chains.push_back(parse_chain(words));
  return options;
}

}  // namespace tide_rclcpp
