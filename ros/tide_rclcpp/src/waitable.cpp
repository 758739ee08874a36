// SPDX-License-Identifier: Apache-2.0
// What a waitable shows to no event, but to a wait set: rclcpp_action tells nobody the name of an action, nor that the
// results of goals expire. Its waitables put services, clients and timers into a wait set. So this needs no
// rclcpp_action.
#include "waitable.h"

#include <algorithm>
#include <memory>
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

std::unique_ptr<WaitSet> filled(rclcpp::Waitable &waitable, rclcpp::Context &context) {
  auto wait_set = std::make_unique<WaitSet>(waitable, context);
  if (!wait_set->is_valid) return nullptr;
  waitable.add_to_wait_set(wait_set->set);
  return wait_set;
}

// Nothing: its services are none of an action.
std::optional<std::string> action_of(rclcpp::Waitable &waitable, rclcpp::Context &context) {
  const auto wait_set = filled(waitable, context);
  if (wait_set == nullptr) return std::nullopt;
  const char *service = name_of_first(wait_set->set);
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

std::vector<const rcl_timer_t *> timers_of(rclcpp::Waitable &waitable, rclcpp::Context &context) {
  if (waitable.get_number_of_ready_timers() == 0) return {};
  const auto wait_set = filled(waitable, context);
  if (wait_set == nullptr) return {};
  const rcl_wait_set_t &set = wait_set->set;
  std::vector<const rcl_timer_t *> timers(set.timers, set.timers + set.size_of_timers);
  timers.erase(std::remove(timers.begin(), timers.end(), nullptr), timers.end());
  return timers;
}

// Of all that is in the wait set only the timer is ready: events tell of the rest.
std::shared_ptr<void> take_for_timer(rclcpp::Waitable &waitable, rclcpp::Context &context, const rcl_timer_t *timer) {
  const auto wait_set = filled(waitable, context);
  if (wait_set == nullptr) return nullptr;
  rcl_wait_set_t &set = wait_set->set;
  const auto none = [](auto **entities, std::size_t count) { std::fill(entities, entities + count, nullptr); };
  none(set.subscriptions, set.size_of_subscriptions);
  none(set.guard_conditions, set.size_of_guard_conditions);
  none(set.clients, set.size_of_clients);
  none(set.services, set.size_of_services);
  none(set.events, set.size_of_events);
  std::replace_if(
      set.timers, set.timers + set.size_of_timers, [timer](auto *one) { return one != timer; }, nullptr);
  return waitable.is_ready(set) ? waitable.take_data() : nullptr;
}

}  // namespace tide_rclcpp
