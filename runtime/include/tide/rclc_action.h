/* SPDX-License-Identifier: Apache-2.0 */
/* What tide adds to the actions of rclc. A server or client of an action is one handle of its executor and one callback
 * of its chains: goals, cancellations, requests for results, replies, feedback and status all travel on the streams of
 * its level and are handled one at a time, in the order of arrival.
 *
 * Results. What rclc_action_send_result is given is kept, serialised, for whoever asks: before the goal ends, after it,
 * and again after the agent was restarted. Without memory for it (TIDE_ACTION_RESULTS) a result leaves only when
 * somebody has asked, as in rclc.
 *
 * What ends well and what does not. A goal that comes twice with the same id (a repetition) is accepted once more and
 * executed once; one of the last four that were refused is refused again. A client asks again for the results of its
 * accepted goals when it has a new session. For a goal without an answer it then asks for the result, too. A server
 * that knows the goal answers with it, and the goal counts as accepted; one that does not says so. Then the goal
 * request is sent again, once in each session, if the memory that the program gave for it still has the same content
 * and no more than 8 s have passed; else the client asks again a second later, and by the same answer the goal counts
 * as refused. A refusal that comes in a later session than the goal was sent in may be that of a server which runs the
 * goal and takes no id twice, so the client asks for the result before it believes that: a result, or feedback, says
 * that the goal was accepted. Servers of rclc never say that they do not know a goal: there the program gives up by its
 * own clock and says so with tide_rclc_action_client_forget. A reply with a
 * result that ROS 2 sent before DDS had shown it the new agent is lost, too: tide_rclc_action_client_ask_again.
 */
#ifndef TIDE_RCLC_ACTION_H
#define TIDE_RCLC_ACTION_H

#include <rclc/action_client.h>
#include <rclc/action_server.h>

#include "tide/rclc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How long a result is kept; default 10 s, negative: until its memory is needed. What is out of date leaves the list of
 * states with the next change of it. */
rcl_ret_t tide_rclc_action_server_set_result_timeout(rclc_action_server_t *action_server, int64_t timeout_ns);
/* Asks once more for the result of an accepted goal, of which one reply at most is given to the program. From any
 * thread. TIDE_ERROR_STATE: it was not accepted yet. */
rcl_ret_t tide_rclc_action_client_ask_again(rclc_action_goal_handle_t *goal_handle);
/* The program waits no longer for this goal: its handle is free, and what comes for it yet is dropped and counted. */
rcl_ret_t tide_rclc_action_client_forget(rclc_action_goal_handle_t *goal_handle);

/* The level of everything that the action sends and receives. Default 0. */
rcl_ret_t tide_rclc_action_server_set_priority(rclc_action_server_t *action_server, tide_priority_t priority);
rcl_ret_t tide_rclc_action_client_set_priority(rclc_action_client_t *action_client, tide_priority_t priority);
/* After it was added to its executor. */
rcl_ret_t tide_rclc_chain_add_action_server(tide_chain_t *chain, rclc_action_server_t *action_server);
rcl_ret_t tide_rclc_chain_add_action_client(tide_chain_t *chain, rclc_action_client_t *action_client);
/* The runtime's callback when it was added to an executor, else null. */
tide_callback_t *tide_rclc_action_server_callback(const rclc_action_server_t *action_server);
tide_callback_t *tide_rclc_action_client_callback(const rclc_action_client_t *action_client);

typedef struct tide_action_counters {
  uint32_t goals;          /* server: accepted; client: sent */
  uint32_t refused;        /* by the server */
  uint32_t repeated;       /* server: goals that came again; client: results that were asked for again */
  uint32_t results;        /* server: replies with a result; client: results received */
  uint32_t results_waited; /* server: no memory to keep one, RCLC_RET_ACTION_WAIT_RESULT_REQUEST */
  uint32_t results_gone;   /* server: kept, and gave way to newer ones before anybody asked */
  uint32_t askers_gone;    /* server: more than two asked for the same result, the oldest gave way */
  uint32_t unknown;        /* feedback, replies and requests for goals that are not, or no longer, known */
  uint32_t malformed;      /* did not fit the memory of the message, or broke the format */
  uint32_t dropped;        /* more waited than TIDE_SERVICE_DEPTH or TIDE_SUBSCRIPTION_DEPTH: the oldest gave way */
  uint32_t replies_lost;   /* could not be sent: too large for any node, or the agent refused the object */
} tide_action_counters_t;
rcl_ret_t tide_rclc_action_server_get_counters(const rclc_action_server_t *action_server,
                                               tide_action_counters_t *counters);
rcl_ret_t tide_rclc_action_client_get_counters(const rclc_action_client_t *action_client,
                                               tide_action_counters_t *counters);

#ifdef __cplusplus
}
#endif
#endif
