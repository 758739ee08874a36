/* SPDX-License-Identifier: Apache-2.0 */
#include "internal.h"
#include "uxr/client/util/time.h"

int64_t uxr_nanos(void) {
  const tide_platform_t *platform = tide_port_platform();
  return tide_platform_now_ns(platform);
}

int64_t uxr_millis(void) { return uxr_nanos() / 1000000; }
