/* SPDX-License-Identifier: Apache-2.0 */
#include "internal.h"

rcl_ret_t tide_rclc_chain_add_timer(tide_chain_t *chain, rcl_timer_t *timer) {
  tide_callback_t *callback = tide_rclc_timer_callback(timer);
  if (chain == NULL || callback == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  return tide_compat_result(tide_chain_add(chain, callback));
}

rcl_ret_t tide_rclc_chain_add_subscription(tide_chain_t *chain, rcl_subscription_t *subscription) {
  tide_callback_t *callback = tide_rclc_subscription_callback(subscription);
  if (chain == NULL || callback == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  int position = tide_chain_add(chain, callback);
  if (position < 0) return tide_compat_result(position);
  return tide_rclc_subscription_set_priority(subscription, callback->priority);
}

rcl_ret_t tide_rclc_chain_add_publisher(tide_chain_t *chain, rcl_publisher_t *publisher) {
  if (chain == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  return tide_rclc_publisher_set_priority(publisher, TIDE_PRIORITY(chain->level, chain->length));
}
