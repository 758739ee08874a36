/* SPDX-License-Identifier: Apache-2.0 */
/* Without an operating system there are no threads: one lane, which is the caller's loop. */
#include "tide/port.h"
#include "tide/status.h"

int tide_port_run_lanes(tide_lane_t *lanes, size_t count, void (*run)(void *context, size_t index), void *context,
                        size_t *refused) {
  if (lanes == NULL || count == 0u || run == NULL) return TIDE_ERROR_ARGUMENT;
  if (count > 1u || lanes[0].settings.scheduling != TIDE_SCHEDULING_INHERIT) {
    if (refused != NULL) *refused = count > 1u ? 1u : 0u;
    return TIDE_ERROR_UNSUPPORTED;
  }
  run(context, 0u);
  return TIDE_OK;
}
