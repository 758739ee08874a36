// SPDX-License-Identifier: Apache-2.0
// A node of plain rcl with topics of std_msgs/Int64 and services of std_srvs/SetBool. Names contain the process number,
// so that other programs do not receive its messages.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rcl/rcl.h"
#include "std_msgs/msg/int64.h"
#include "std_srvs/srv/set_bool.h"
#include "tide_rcl/entities.h"

namespace tide_rcl {

class Program {
 public:
  Program() {
    // rcl lends messages only with the first variable. The second one keeps all traffic on this machine.
    (void)setenv("ROS_DISABLE_LOANED_MESSAGES", "0", 1);
    (void)setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST", 1);
    rcl_init_options_t options = rcl_get_zero_initialized_init_options();
    check(rcl_init_options_init(&options, rcutils_get_default_allocator()), "rcl_init_options_init");
    check(rcl_init(0, nullptr, &options, &context_), "rcl_init");
    check(rcl_init_options_fini(&options), "rcl_init_options_fini");
    const rcl_node_options_t node_options = rcl_node_get_default_options();
    check(rcl_node_init(&node, ("adaptor_" + number()).c_str(), "", &context_, &node_options), "rcl_node_init");
  }
  Program(const Program &) = delete;
  Program &operator=(const Program &) = delete;
  ~Program() {
    EXPECT_EQ(rcl_node_fini(&node), RCL_RET_OK);
    EXPECT_EQ(rcl_shutdown(&context_), RCL_RET_OK);
    EXPECT_EQ(rcl_context_fini(&context_), RCL_RET_OK);
  }

  static std::string number() { return std::to_string(getpid()); }
  rcl_context_t *context() { return &context_; }

  rcl_node_t node = rcl_get_zero_initialized_node();

 private:
  rcl_context_t context_ = rcl_get_zero_initialized_context();
};

inline rmw_qos_profile_t keep_last(std::size_t depth) {
  rmw_qos_profile_t qos = rmw_qos_profile_default;
  qos.depth = depth;
  return qos;
}

// A publisher and a subscription of one topic, matched.
class Topic {
 public:
  Topic(Program &program, const std::string &name, std::size_t depth = 100) : node_(program.node) {
    const std::string full = "/adaptor_" + Program::number() + "/" + name;
    const auto *type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, Int64);
    rcl_publisher_options_t publisher_options = rcl_publisher_get_default_options();
    publisher_options.qos = keep_last(1000);
    check(rcl_publisher_init(&publisher, &node_, type, full.c_str(), &publisher_options), "rcl_publisher_init");
    rcl_subscription_options_t options = rcl_subscription_get_default_options();
    options.qos = keep_last(depth);
    options.disable_loaned_message = false;
    check(rcl_subscription_init(&subscription, &node_, type, full.c_str(), &options), "rcl_subscription_init");
    std::size_t matched = 0;
    for (int tries = 0; tries < 30000 && matched == 0; tries++) {
      check(rcl_publisher_get_subscription_count(&publisher, &matched), "rcl_publisher_get_subscription_count");
      usleep(1000);  // clock: a pace, of the checks for discovered endpoints
    }
    EXPECT_EQ(matched, 1u);
  }
  Topic(const Topic &) = delete;
  Topic &operator=(const Topic &) = delete;
  ~Topic() {
    EXPECT_EQ(rcl_subscription_fini(&subscription, &node_), RCL_RET_OK);
    EXPECT_EQ(rcl_publisher_fini(&publisher, &node_), RCL_RET_OK);
  }

  void publish(std::int64_t value) {
    std_msgs__msg__Int64 message{value};
    check(rcl_publish(&publisher, &message, nullptr), "rcl_publish");
  }

  rcl_publisher_t publisher = rcl_get_zero_initialized_publisher();
  rcl_subscription_t subscription = rcl_get_zero_initialized_subscription();

 private:
  rcl_node_t &node_;
};

inline std::shared_ptr<void> make_int64() { return std::make_shared<std_msgs__msg__Int64>(); }
inline std::int64_t value_of(const void *message) { return static_cast<const std_msgs__msg__Int64 *>(message)->data; }

class RclClock {
 public:
  explicit RclClock(rcl_clock_type_t type) {
    rcutils_allocator_t allocator = rcutils_get_default_allocator();
    check(rcl_clock_init(type, &clock, &allocator), "rcl_clock_init");
  }
  RclClock(const RclClock &) = delete;
  RclClock &operator=(const RclClock &) = delete;
  ~RclClock() { EXPECT_EQ(rcl_clock_fini(&clock), RCL_RET_OK); }
  rcl_clock_t clock{};
};

class RclTimer {
 public:
  RclTimer(Program &program, RclClock &clock, std::int64_t period_ns, bool started = true) {
    check(rcl_timer_init2(&timer, &clock.clock, program.context(), period_ns, nullptr, rcutils_get_default_allocator(),
                          started),
          "rcl_timer_init2");
  }
  RclTimer(const RclTimer &) = delete;
  RclTimer &operator=(const RclTimer &) = delete;
  ~RclTimer() { EXPECT_EQ(rcl_timer_fini(&timer), RCL_RET_OK); }

  std::int64_t next_ns() const {
    std::int64_t next_ns = 0;
    check(rcl_timer_get_next_call_time(&timer, &next_ns), "rcl_timer_get_next_call_time");
    return next_ns;
  }
  rcl_timer_t timer = rcl_get_zero_initialized_timer();
};

}  // namespace tide_rcl
