/* SPDX-License-Identifier: Apache-2.0 */
/* Publishes log lines (rcutils/logging_macros.h) as rcl_interfaces/msg/Log on /rosout. Optional; needs no generated
 * messages:
 *
 *   tide_rclc_rosout_init(&node, RCUTILS_LOG_SEVERITY_WARN);
 *   RCUTILS_LOG_ERROR_NAMED("wheel", "current %d mA", current);       to the handler as before, and to /rosout
 *
 * A line that is at least as severe as both the logger's level and this severity is formatted on the caller's stack, up
 * to TIDE_ROSOUT_TEXT_BYTES, and stored in a node of the pool. Logging neither waits nor allocates. A line takes a node
 * only while less than half of the nodes are in use, so a flood of lines leaves the other half to the program. Lines
 * are reliable: while the agent is away, lines that have a node wait for it, and other lines are counted as lost.
 *
 * Any thread may log, also in callbacks, in an error callback (rmw_microros/error_handling.h) and in log handlers. A
 * line from an interrupt that is not a lane is counted but not published. A custom transport that logs each frame it
 * writes would endlessly cause further frames: give such lines a lower severity than the published lines. */
#ifndef TIDE_RCLC_ROSOUT_H
#define TIDE_RCLC_ROSOUT_H

#include <rcl/node.h>
#include <rcutils/logging.h>

#include "tide/rclc.h"

TIDE_EXTERN_C_BEGIN

/* Maximum length of a line's text, with NUL. A longer text is truncated at a UTF-8 character boundary. */
#define TIDE_ROSOUT_TEXT_BYTES 256

/* Call it once per program; takes a publisher (TIDE_PUBLISHERS). The default logger has the name of the node, as in
 * rclcpp: "namespace.node". The stamp is the agent's time, 0 before rmw_uros_sync_session. TIDE_ERROR_EXISTS: rosout is
 * initialised already. TIDE_ERROR_CAPACITY_PUBLISHERS: no publisher is free. TIDE_ERROR_UNSUPPORTED: a build without
 * reliable streams. Finalising the support also ends rosout. It may then be initialised again, with new counters. */
rcl_ret_t tide_rclc_rosout_init(const rcl_node_t *node, int least_severity);
/* TIDE_ERROR_STATE, without change: not initialised, or another thread is logging. Other errors as from
 * rcl_publisher_fini. */
rcl_ret_t tide_rclc_rosout_fini(rcl_node_t *node);

/* Any thread may call it at any time. RCUTILS_LOG_SEVERITY_UNSET: every line that passes the logger's level. */
void tide_rclc_rosout_set_severity(int least_severity);

typedef struct tide_rosout_counters {
  uint32_t published;            /* lines that got a node */
  uint32_t lost;                 /* lines lost: no node, no session, larger than any node, or not formattable */
  uint32_t cut;                  /* published lines that were truncated */
  uint32_t refused_in_interrupt; /* lines logged in interrupts, of any severity */
} tide_rosout_counters_t;
/* May be called from any thread at any time. */
tide_rosout_counters_t tide_rclc_rosout_get_counters(void);

TIDE_EXTERN_C_END
#endif
