// SPDX-License-Identifier: Apache-2.0
// rclcpp_action tells nobody the name of an action, but its waitables put their services and clients into a wait set,
// and these have names. So this needs no rclcpp_action.
#include "waitable_name.h"

#include <optional>

#include "rcl/error_handling.h"
#include "rcl/wait.h"
#include "rclcpp/experimental/subscription_intra_process_base.hpp"

namespace tide_rclcpp {

namespace {

using rclcpp::experimental::SubscriptionIntraProcessBase;

// As many as rcl_action's server and client have: no other waitable is asked.
bool is_like_server(rclcpp::Waitable &waitable) {
  return waitable.get_number_of_ready_services() == 3 && waitable.get_number_of_ready_timers() == 1;
}

bool is_like_client(rclcpp::Waitable &waitable) {
  return waitable.get_number_of_ready_clients() == 3 && waitable.get_number_of_ready_subscriptions() == 2;
}

class WaitSet {
 public:
  WaitSet(rclcpp::Waitable &waitable, rclcpp::Context &context) {
    const rcl_ret_t result = rcl_wait_set_init(
        &set, waitable.get_number_of_ready_subscriptions(), waitable.get_number_of_ready_guard_conditions(),
        waitable.get_number_of_ready_timers(), waitable.get_number_of_ready_clients(),
        waitable.get_number_of_ready_services(), waitable.get_number_of_ready_events(), context.get_rcl_context().get(),
        rcl_get_default_allocator());
    if (result != RCL_RET_OK) rcl_reset_error();
    is_valid = result == RCL_RET_OK;
  }
  WaitSet(const WaitSet &) = delete;
  WaitSet &operator=(const WaitSet &) = delete;
  ~WaitSet() {
    if (rcl_wait_set_fini(&set) != RCL_RET_OK) rcl_reset_error();
  }
  bool is_valid = false;  // not in a context that is shut down
  rcl_wait_set_t set = rcl_get_zero_initialized_wait_set();
};

const char *name_of_first(const rcl_wait_set_t &set) {
  if (set.size_of_services > 0 && set.services[0] != nullptr) return rcl_service_get_service_name(set.services[0]);
  if (set.size_of_clients > 0 && set.clients[0] != nullptr) return rcl_client_get_service_name(set.clients[0]);
  return nullptr;
}

// Nothing: its services are none of an action.
std::optional<std::string> action_of(rclcpp::Waitable &waitable, rclcpp::Context &context) {
  WaitSet wait_set(waitable, context);
  if (!wait_set.is_valid) return std::nullopt;
  waitable.add_to_wait_set(wait_set.set);
  const char *service = name_of_first(wait_set.set);
  const std::string name = service == nullptr ? "" : service;
  const std::size_t at = name.rfind("/_action/");
  if (at == std::string::npos) return std::nullopt;
  return name.substr(0, at);
}

}  // namespace

Found waitable_as_found(const rclcpp::Waitable::SharedPtr &waitable, const std::string &node,
                        rclcpp::Context &context) {
  const auto subscription = std::dynamic_pointer_cast<SubscriptionIntraProcessBase>(waitable);
  if (subscription != nullptr) return {Kind::kSubscription, node, subscription->get_topic_name(), {}, 0};
  const bool server = is_like_server(*waitable);
  if (server || is_like_client(*waitable)) {
    const std::optional<std::string> action = action_of(*waitable, context);
    if (action) return {server ? Kind::kActionServer : Kind::kActionClient, node, *action, {}, 0};
  }
  return {Kind::kRemote, node, "", {}, 0};
}

}  // namespace tide_rclcpp
