/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of the log (rcutils/logging_macros.h) as rcl_interfaces/msg/Log on /rosout. Only a program that asks for it has
 * it, and needs no generated messages:
 *
 *   tide_rclc_rosout_init(&node, RCUTILS_LOG_SEVERITY_WARN);
 *   RCUTILS_LOG_ERROR_NAMED("wheel", "current %d mA", current);       to the handler as ever, and to /rosout
 *
 * A line that is at least as severe as the logger's level and as this one is formatted on the stack of the caller, up
 * to TIDE_ROSOUT_TEXT_BYTES, and goes into a node of the pool. It waits for nothing and allocates nothing. Lines take a
 * node only while less than half of all nodes are in use, so a flood of them leaves the other half to the program. They
 * are reliable: while the agent is away those that have a node wait for it, and the others are counted as lost.
 *
 * From any thread, also from callbacks, from a function for errors (rmw_microros/error_handling.h) and from handlers of
 * lines. An interrupt that is no lane publishes no line; it is counted. A transport of the program's own that logs each
 * frame it writes makes a frame of each, without end: give such lines a severity below this one. */
#ifndef TIDE_RCLC_ROSOUT_H
#define TIDE_RCLC_ROSOUT_H

#include <rcl/node.h>
#include <rcutils/logging.h>

#include "tide/rclc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* With NUL. A longer text is cut behind a whole character of UTF-8. */
#define TIDE_ROSOUT_TEXT_BYTES 256

/* Once a program; takes a publisher (TIDE_PUBLISHERS). The default logger has the name of the node, as in rclcpp:
 * "namespace.node". The stamp is the agent's clock, 0 before rmw_uros_sync_session. TIDE_ERROR_EXISTS: there is one.
 * TIDE_ERROR_CAPACITY_PUBLISHERS. TIDE_ERROR_UNSUPPORTED: a build without reliable streams. It ends with its support,
 * too, and may be initialised again then; its counters begin anew. */
rcl_ret_t tide_rclc_rosout_init(const rcl_node_t *node, int least_severity);
/* TIDE_ERROR_STATE, and nothing changed: there is none, or another thread is within a line. As rcl_publisher_fini. */
rcl_ret_t tide_rclc_rosout_fini(rcl_node_t *node);

/* From any thread at any time. RCUTILS_LOG_SEVERITY_UNSET: all that the logger's level lets through. */
void tide_rclc_rosout_set_severity(int least_severity);
/* The level at which lines travel, before or between them. Default 0. TIDE_ERROR_ARGUMENT: no such level, or none. */
rcl_ret_t tide_rclc_rosout_set_priority(tide_priority_t priority);

typedef struct tide_rosout_counters {
  uint32_t published;            /* have got a node */
  uint32_t lost;                 /* no node, no session, larger than any node, or not to be formatted */
  uint32_t cut;                  /* of those published: text too long */
  uint32_t refused_in_interrupt; /* whether or not severe enough */
} tide_rosout_counters_t;
/* From any thread at any time. */
tide_rosout_counters_t tide_rclc_rosout_get_counters(void);

#ifdef __cplusplus
}
#endif
#endif
