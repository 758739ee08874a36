/* SPDX-License-Identifier: Apache-2.0 */
/* What a program on NuttX may ask of this port. */
#ifndef TIDE_NUTTX_H
#define TIDE_NUTTX_H

#include <stddef.h>

#include "tide/budget.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The budget of a lane while the lanes run and after it, for its counters; null: it has none. With CONFIG_TIDE_BUDGETS.
 * From any thread; a lane that runs changes it meanwhile. */
const tide_budget_t *tide_nuttx_lane_budget(size_t lane);

#ifdef __cplusplus
}
#endif
#endif
