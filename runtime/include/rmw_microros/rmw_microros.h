/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RMW_MICROROS__RMW_MICROROS_H_
#define RMW_MICROROS__RMW_MICROROS_H_

#include "rmw/ret_types.h"
#include "rmw/rmw.h"
#include "rmw_microros/continous_serialization.h"
#include "rmw_microros/custom_transport.h"
#include "rmw_microros/discovery.h"
#include "rmw_microros/error_handling.h"
#include "rmw_microros/init_options.h"
#include "rmw_microros/ping.h"
#include "rmw_microros/time_sync.h"
#include "rmw_microros/timing.h"
#include "uxr/client/transport.h"

#endif
