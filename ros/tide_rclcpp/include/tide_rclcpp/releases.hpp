// SPDX-License-Identifier: Apache-2.0
// Differences between the supported releases of rclcpp. Templates detect them at compile time, because version numbers
// do not show which changes were backported.
#pragma once

#include <memory>
#include <type_traits>

#include "rclcpp/executor.hpp"

namespace tide_rclcpp {

// The virtual functions of rclcpp::Executor take pointers by value up to Kilted, and by reference in later releases.
template <typename Pointer, typename = void> struct Taken { using Type = Pointer; };

template <typename Pointer> using ByReference = void (rclcpp::Executor::*)(const Pointer &, bool);

template <typename Pointer>
struct Taken<Pointer, std::void_t<decltype(static_cast<ByReference<Pointer>>(&rclcpp::Executor::remove_node))>> {
  using Type = const Pointer &;
};

template <> struct Taken<rclcpp::CallbackGroup::SharedPtr, void> {
  using Pointer = rclcpp::CallbackGroup::SharedPtr;
  using Function = decltype(&rclcpp::Executor::remove_callback_group);
  using Type = std::conditional_t<std::is_same_v<Function, ByReference<Pointer>>, const Pointer &, Pointer>;
};

using TakenGroup = Taken<rclcpp::CallbackGroup::SharedPtr>::Type;
using TakenNode = Taken<std::shared_ptr<rclcpp::Node>>::Type;
using TakenNodeBase = Taken<rclcpp::node_interfaces::NodeBaseInterface::SharedPtr>::Type;

}  // namespace tide_rclcpp
