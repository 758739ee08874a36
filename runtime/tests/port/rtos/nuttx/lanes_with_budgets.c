/* SPDX-License-Identifier: Apache-2.0 */
/* The lanes of NuttX with CONFIG_TIDE_BUDGETS; nuttx_test.cpp has them without. */
#include <nuttx/sched.h>

#include "../../../../port/nuttx/lanes.c"
