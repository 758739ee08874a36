/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RCL_ACTION__RCL_ACTION_H_
#define RCL_ACTION__RCL_ACTION_H_

#include "rcl/graph.h"
#include "rcl_action/types.h"

#endif
