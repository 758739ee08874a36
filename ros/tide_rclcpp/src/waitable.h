// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "plan.h"
#include "rclcpp/rclcpp.hpp"

namespace tide_rclcpp {

// What chains can call a waitable: an intra-process subscription by its topic, an action's server or client by its
// action. All others (events, what programs make) are kRemote and have no name.
Found waitable_as_found(const rclcpp::Waitable::SharedPtr &waitable, const std::string &node, rclcpp::Context &context);

// The timers that a wait set would find ready, such as the expiry of an action server's goals. They end with it.
std::vector<const rcl_timer_t *> timers_of(rclcpp::Waitable &waitable, rclcpp::Context &context);
// What to execute for this timer, which is due; null: nothing. Not from two threads at a time.
std::shared_ptr<void> take_for_timer(rclcpp::Waitable &waitable, rclcpp::Context &context, const rcl_timer_t *timer);

}  // namespace tide_rclcpp
