/* SPDX-License-Identifier: Apache-2.0 */
#include "internal.h"
#include "rcl/publisher.h"

rcl_ret_t rcl_publisher_wait_for_all_acked(const rcl_publisher_t *publisher, rcl_duration_value_t timeout) {
  const tide_platform_t *platform = tide_port_platform();
  if (!rcl_publisher_is_valid(publisher)) return tide_compat_refusal(TIDE_ERROR_ARGUMENT, RCL_RET_PUBLISHER_INVALID);
  const int64_t now_ns = tide_platform_now_ns(platform);
  const int64_t end_ns = timeout < 0 || timeout > TIDE_FOREVER - now_ns ? TIDE_FOREVER : now_ns + timeout;
  return tide_compat_result(
      tide_compat_wait(publisher->impl->support, tide_compat_is_confirmed, publisher->impl, end_ns, false));
}
