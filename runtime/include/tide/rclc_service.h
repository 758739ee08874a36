/* SPDX-License-Identifier: Apache-2.0 */
/* tide's additions to the services of rclc. Requests and replies travel like messages of topics: on the stream of their
 * level, in fragments if they are long (reliable only), and the sender never waits for the wire. All queues are
 * bounded, and losses are counted.
 *
 * A deferred response, which is not sent when the callback returns:
 *
 *   static rmw_request_id_t asked;
 *   static void on_request(const void *request, rmw_request_id_t *request_id, void *response) {
 *     asked = *request_id;
 *     tide_rclc_service_defer(&service);                             nothing is sent when this returns
 *   }
 *   static void on_done(rcl_timer_t *timer, int64_t last_call) { rcl_send_response(&service, &asked, &response); }
 *
 * Faults. Client and agent retransmit lost messages (reliable). A request that waits for a new session or a server is
 * sent as soon as there is one. After a restart of the agent a request may therefore be executed twice. The agent drops
 * a request after five seconds without a server, and a reply without its client. It reports this to the board: the
 * counters have `undelivered`, the error callback gets TIDE_ERROR_EXPIRED when the executor next runs the service or
 * client, and a program on a host prints a line. A reply is lost if the agent is killed while it holds the reply. A
 * reply is also lost if a ROS 2 server sent it before DDS had discovered this client (a new client, under load). So the
 * program needs its own timeout, after which it calls tide_rclc_client_forget.
 *
 * For set-up calls see tide/rclc.h. Any thread may at any time call rcl_send_request, rcl_send_response,
 * tide_rclc_client_forget and get_counters. */
#ifndef TIDE_RCLC_SERVICE_H
#define TIDE_RCLC_SERVICE_H

#include "tide/rclc.h"

TIDE_EXTERN_C_BEGIN

/* Call it from a service callback: no response is sent when the callback returns. The program sends it later with the
 * request id that the callback received (rclc_executor_add_service_with_request_id), or never. */
rcl_ret_t tide_rclc_service_defer(const rcl_service_t *service);

/* Stops waiting for this reply: its entry becomes free, and a late reply is dropped and counted. TIDE_ERROR_NOT_FOUND:
 * answered, forgotten or never sent. */
rcl_ret_t tide_rclc_client_forget(const rcl_client_t *client, int64_t sequence_number);

/* The level selects the streams of requests and replies, in both directions. Default 0. */
rcl_ret_t tide_rclc_service_set_priority(rcl_service_t *service, tide_priority_t priority);
rcl_ret_t tide_rclc_client_set_priority(rcl_client_t *client, tide_priority_t priority);
/* Call these in the order of the data flow, after the handles were added to their executor. A client's position is that
 * of its callback. To give the server's work a position, call tide_chain_add_remote before the client is added. */
rcl_ret_t tide_rclc_chain_add_service(tide_chain_t *chain, rcl_service_t *service);
rcl_ret_t tide_rclc_chain_add_client(tide_chain_t *chain, rcl_client_t *client);
/* Sets an exclusive group. TIDE_ERROR_UNSUPPORTED: a reentrant group, because runs that overlap would share request and
 * response. */
rcl_ret_t tide_rclc_service_set_group(rcl_service_t *service, const tide_callback_group_t *group);
rcl_ret_t tide_rclc_client_set_group(rcl_client_t *client, const tide_callback_group_t *group);
/* The runtime's callback; null if the service or client is in no executor. */
tide_callback_t *tide_rclc_service_callback(const rcl_service_t *service);
tide_callback_t *tide_rclc_client_callback(const rcl_client_t *client);

typedef struct tide_service_counters {
  uint32_t received;       /* requests received */
  uint32_t dropped;        /* oldest requests dropped, beyond TIDE_SERVICE_DEPTH */
  uint32_t decode_errors;  /* requests too large for their memory, or malformed */
  uint32_t responses_lost; /* callbacks' responses that were too large for any node, or had no session (best effort) */
  uint32_t undelivered;    /* replies that the agent dropped, because their client could not be reached */
} tide_service_counters_t;
rcl_ret_t tide_rclc_service_get_counters(const rcl_service_t *service, tide_service_counters_t *counters);

typedef struct tide_client_counters {
  uint32_t received;      /* replies received */
  uint32_t dropped;       /* oldest replies dropped, beyond TIDE_SERVICE_DEPTH */
  uint32_t decode_errors; /* replies too large for their memory, or malformed */
  uint32_t unanswered;    /* requests without an answer now */
  uint32_t forgotten;     /* requests replaced by newer ones, beyond TIDE_CLIENT_REQUESTS */
  uint32_t unexpected;    /* replies to requests that were forgotten */
  uint32_t undelivered;   /* requests that the agent dropped: no server was found, or newer ones replaced them */
} tide_client_counters_t;
rcl_ret_t tide_rclc_client_get_counters(const rcl_client_t *client, tide_client_counters_t *counters);

TIDE_EXTERN_C_END
#endif
