// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "plan.h"
#include "rclcpp/rclcpp.hpp"

namespace tide_rclcpp {

// What chains can call a waitable: an intra-process subscription by its topic, an action's server or client by its
// action. All others (events, what programs make) are kRemote and have no name.
Found waitable_as_found(const rclcpp::Waitable::SharedPtr &waitable, const std::string &node, rclcpp::Context &context);

}  // namespace tide_rclcpp
