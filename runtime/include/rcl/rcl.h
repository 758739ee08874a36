/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RCL__RCL_H_
#define RCL__RCL_H_

#include "rcl/client.h"
#include "rcl/context.h"
#include "rcl/guard_condition.h"
#include "rcl/init.h"
#include "rcl/node.h"
#include "rcl/publisher.h"
#include "rcl/service.h"
#include "rcl/subscription.h"
#include "rcl/time.h"
#include "rcl/timer.h"
#include "rcl/wait.h"

#endif
