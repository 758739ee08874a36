/* SPDX-License-Identifier: Apache-2.0 */
/* State of a program's session, memory, executors and budgets, published on /diagnostics
 * (diagnostic_msgs/msg/DiagnosticArray), as rqt, Foxglove and `tide watch` show it. Optional; needs no generated
 * messages:
 *
 *   tide_rclc_diagnostics_init(&node, &support, &executor, 1000);     after the lanes are set, before anything spins
 *
 * Each status is a separate reliable message of some 200 to 450 octets: the link, the memory, each executor, each lane
 * with a budget, and one object of the program: a chain, a publisher, a timer, a subscription, a guard condition, a
 * service or a client. The statuses are published one after another, each once per period, so that at most one of them
 * delays a more urgent frame. A status never waits: without a session, or while half of the pool is in use, it is
 * skipped and counted. The callback of the reports has level 0, the least urgent. In a description, describe the
 * reports as a chain of one timer, with the period divided by the number of statuses.
 *
 * The status of an executor has its policy and the send mode as numbers of tide_policy_t and tide_send_t.
 *
 * The objects take turns, one per period. `tide trace describe` reads them: the period of a timer, the level of each
 * object, the topic, the number of runs of a callback and its longest time, preemption included. Chains are reported if
 * they are added:
 *
 *   tide_rclc_diagnostics_add_chain(&brake);
 *
 * A status is a warning for ten reports after one of these events: messages were refused, dropped or lost; an instance
 * of a watched chain (tide/chain_watch.h) was late or missing; or a lane had more outstanding replenishments than it
 * can store. A lane that uses up its budget does not cause a warning. */
#ifndef TIDE_RCLC_DIAGNOSTICS_H
#define TIDE_RCLC_DIAGNOSTICS_H

#include <rcl/node.h>

#include "tide/rclc.h"

TIDE_EXTERN_C_BEGIN

#define TIDE_DIAGNOSTICS_EXECUTORS 4u
#define TIDE_DIAGNOSTICS_CHAINS 16u

/* Call it once per program, from one thread, before the executor spins. Takes a publisher (TIDE_PUBLISHERS) and a
 * handle of the executor, the first executor that is reported. period_ms: 1 or more. TIDE_ERROR_ARGUMENT: it is 0, or
 * an object is invalid. TIDE_ERROR_EXISTS: the diagnostics exist already. TIDE_ERROR_UNSUPPORTED: a build without
 * reliable streams. Other errors as from rclc_publisher_init and rclc_executor_add_timer. After an error nothing
 * remains allocated. Finalising the support ends the diagnostics too. */
rcl_ret_t tide_rclc_diagnostics_init(rcl_node_t *node, rclc_support_t *support, rclc_executor_t *executor,
                                     uint32_t period_ms);
/* Report a further executor, which must live until fini. Call it before anything spins. Its budgets are not reported.
 * TIDE_ERROR_FULL: TIDE_DIAGNOSTICS_EXECUTORS are reported already. TIDE_ERROR_STATE: there are no diagnostics. */
rcl_ret_t tide_rclc_diagnostics_add_executor(rclc_executor_t *executor);
/* Report a chain with its name, period and deadline. The chain and its name must live until fini. Call it before
 * anything spins. TIDE_ERROR_ARGUMENT: not a chain of tide_chain_init, or without a name. TIDE_ERROR_FULL:
 * TIDE_DIAGNOSTICS_CHAINS are reported already. TIDE_ERROR_STATE: there are no diagnostics. */
rcl_ret_t tide_rclc_diagnostics_add_chain(const tide_chain_t *chain);
/* Call it while nothing spins. TIDE_ERROR_STATE: not initialised. Other errors as from rcl_publisher_fini. */
rcl_ret_t tide_rclc_diagnostics_fini(rcl_node_t *node);

typedef struct tide_diagnostics_counters {
  uint32_t published;
  uint32_t left_out; /* statuses skipped: no session, half of the pool in use, or larger than any node */
} tide_diagnostics_counters_t;
/* May be called from any thread at any time. */
tide_diagnostics_counters_t tide_rclc_diagnostics_get_counters(void);

TIDE_EXTERN_C_END
#endif
