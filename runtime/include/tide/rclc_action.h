/* SPDX-License-Identifier: Apache-2.0 */
/* tide's additions to the actions of rclc. A server or client of an action is one handle of its executor and one
 * callback of its chains. Goals, cancellations, result requests, replies, feedback and status all travel on the streams
 * of its level. These messages are handled one at a time, in the order of arrival.
 *
 * Results. The result passed to rclc_action_send_result is kept serialised and sent to every client that requests it:
 * before or after the goal ends, and again after a restart of the agent. Without memory for it (TIDE_ACTION_RESULTS) a
 * result is not sent before a client has requested it, as in rclc.
 *
 * Faults. A repeated goal (the same id again) is accepted again but executed once; a repeat of one of the last four
 * refused goals is refused again. In a new session a client requests the results of its accepted goals again. It also
 * requests the results of goals without an answer. If the server knows the goal it sends the result, and the goal
 * counts as accepted. If the server answers that it does not know the goal, the client sends the goal request again,
 * once in each session. For this, the request in the program's memory must be unchanged, and at most 8 s may have
 * passed since it was first sent. Otherwise the client requests the result again a second later; if the server still
 * does not know the goal, the goal counts as refused. If a refusal arrives in a later session than that of the goal
 * request, the server may already run the goal and have refused only the repeated id. So the client first requests the
 * result: a result, or feedback, shows that the goal was accepted. Servers of rclc never report an unknown goal, so
 * with such a server the program needs its own timeout, after which it calls tide_rclc_action_client_forget. A result
 * that ROS 2 sent before DDS had discovered the new agent is lost, too: call tide_rclc_action_client_ask_again.
 */
#ifndef TIDE_RCLC_ACTION_H
#define TIDE_RCLC_ACTION_H

#include <rclc/action_client.h>
#include <rclc/action_server.h>

#include "tide/rclc.h"

TIDE_EXTERN_C_BEGIN

/* How long a result is kept; default 10 s, negative: until its memory is needed for another result. Outdated goals
 * leave the status message at its next change. */
rcl_ret_t tide_rclc_action_server_set_result_timeout(rclc_action_server_t *action_server, int64_t timeout_ns);
/* Requests the result of an accepted goal once more; the program gets at most one reply. Any thread may call it.
 * TIDE_ERROR_STATE: the goal is not accepted yet. */
rcl_ret_t tide_rclc_action_client_ask_again(rclc_action_goal_handle_t *goal_handle);
/* Stops waiting for this goal: its handle becomes free, and later messages for the goal are dropped and counted. */
rcl_ret_t tide_rclc_action_client_forget(rclc_action_goal_handle_t *goal_handle);

/* The level of everything that the action sends and receives. Default 0. */
rcl_ret_t tide_rclc_action_server_set_priority(rclc_action_server_t *action_server, tide_priority_t priority);
rcl_ret_t tide_rclc_action_client_set_priority(rclc_action_client_t *action_client, tide_priority_t priority);
/* Call it after the server or client was added to its executor. */
rcl_ret_t tide_rclc_chain_add_action_server(tide_chain_t *chain, rclc_action_server_t *action_server);
rcl_ret_t tide_rclc_chain_add_action_client(tide_chain_t *chain, rclc_action_client_t *action_client);
/* The runtime's callback; null if the server or client is in no executor. */
tide_callback_t *tide_rclc_action_server_callback(const rclc_action_server_t *action_server);
tide_callback_t *tide_rclc_action_client_callback(const rclc_action_client_t *action_client);

typedef struct tide_action_counters {
  uint32_t goals;          /* server: accepted goals; client: sent goals */
  uint32_t refused;        /* goals refused by the server */
  uint32_t repeated;       /* server: repeated goals; client: repeated result requests */
  uint32_t results;        /* server: replies with a result; client: results received */
  uint32_t results_waited; /* server: results that could not be kept for lack of memory
                              (RCLC_RET_ACTION_WAIT_RESULT_REQUEST) */
  uint32_t results_gone;   /* server: kept results replaced by newer ones before any request */
  uint32_t askers_gone;    /* server: more than two clients requested the same result, and the oldest request was
                              dropped */
  uint32_t unknown;        /* feedback, replies and requests for goals that are unknown or forgotten */
  uint32_t malformed;      /* messages too large for their memory, or malformed */
  uint32_t dropped;        /* oldest messages dropped, beyond TIDE_SERVICE_DEPTH or TIDE_SUBSCRIPTION_DEPTH */
  uint32_t replies_lost;   /* messages not sent (too large, or refused by the agent), or sent without the goals that fit
                              no node */
} tide_action_counters_t;
rcl_ret_t tide_rclc_action_server_get_counters(const rclc_action_server_t *action_server,
                                               tide_action_counters_t *counters);
rcl_ret_t tide_rclc_action_client_get_counters(const rclc_action_client_t *action_client,
                                               tide_action_counters_t *counters);

TIDE_EXTERN_C_END
#endif
