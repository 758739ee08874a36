/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RCLC__RCLC_H_
#define RCLC__RCLC_H_

#include "rclc/action_client.h"
#include "rclc/action_server.h"
#include "rclc/client.h"
#include "rclc/init.h"
#include "rclc/node.h"
#include "rclc/publisher.h"
#include "rclc/service.h"
#include "rclc/sleep.h"
#include "rclc/subscription.h"
#include "rclc/timer.h"
#include "rclc/types.h"

#endif
