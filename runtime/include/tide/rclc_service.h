/* SPDX-License-Identifier: Apache-2.0 */
/* What tide adds to the services of rclc. Requests and replies travel as messages of topics do: on the stream of their
 * level, in fragments when they are long (reliable only), with their sender never waiting for the wire. What is held
 * for whom is bounded, and what is lost is counted.
 *
 * A response that is not sent when the callback returns:
 *
 *   static rmw_request_id_t asked;
 *   static void on_request(const void *request, rmw_request_id_t *request_id, void *response) {
 *     asked = *request_id;
 *     tide_rclc_service_defer(&service);                             nothing is sent when this returns
 *   }
 *   static void on_done(rcl_timer_t *timer, int64_t last_call) { rcl_send_response(&service, &asked, &response); }
 *
 * What ends well and what does not. Client and agent repeat what is lost between them (reliable), and a request that
 * waited for a new session or a server goes out then, so a request may be executed twice after a restart of the agent.
 * The agent gives a request up after five seconds without a server. A reply never comes when the agent was killed with
 * it, or when a ROS 2 server sent it before DDS had shown it this client (a new one, under load): the program gives up
 * by its own clock and says so with tide_rclc_client_forget.
 *
 * Set-up calls as in tide/rclc.h. rcl_send_request, rcl_send_response, tide_rclc_client_forget and get_counters: from
 * any thread at any time. */
#ifndef TIDE_RCLC_SERVICE_H
#define TIDE_RCLC_SERVICE_H

#include "tide/rclc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* From the callback of a service that an executor runs: this response is not sent when it returns. The program sends
 * it with the request id that the callback got (rclc_executor_add_service_with_request_id), or never. */
rcl_ret_t tide_rclc_service_defer(const rcl_service_t *service);

/* The program waits no longer for this reply: its place is free, and if it comes yet it is dropped and counted.
 * TIDE_ERROR_NOT_FOUND: answered, forgotten or never sent. */
rcl_ret_t tide_rclc_client_forget(const rcl_client_t *client, int64_t sequence_number);

/* The level chooses the stream that requests come and replies leave on, and the other way round. Default 0. */
rcl_ret_t tide_rclc_service_set_priority(rcl_service_t *service, tide_priority_t priority);
rcl_ret_t tide_rclc_client_set_priority(rcl_client_t *client, tide_priority_t priority);
/* In data-dependency order, after they were added to their executor. Of a client the callback has the position; what
 * the server does takes another one before it (tide_chain_add_remote). */
rcl_ret_t tide_rclc_chain_add_service(tide_chain_t *chain, rcl_service_t *service);
rcl_ret_t tide_rclc_chain_add_client(tide_chain_t *chain, rcl_client_t *client);
/* Exclusive groups. TIDE_ERROR_UNSUPPORTED: a reentrant one, whose runs would share request and response. */
rcl_ret_t tide_rclc_service_set_group(rcl_service_t *service, const tide_callback_group_t *group);
rcl_ret_t tide_rclc_client_set_group(rcl_client_t *client, const tide_callback_group_t *group);
/* The runtime's callback when it was added to an executor, else null. */
tide_callback_t *tide_rclc_service_callback(const rcl_service_t *service);
tide_callback_t *tide_rclc_client_callback(const rcl_client_t *client);

typedef struct tide_service_counters {
  uint32_t received;       /* requests */
  uint32_t dropped;        /* more than TIDE_SERVICE_DEPTH waited: the oldest gave way */
  uint32_t decode_errors;  /* did not fit the memory of the request, or were malformed */
  uint32_t responses_lost; /* of callbacks: too large for any node, or no session (best effort) */
} tide_service_counters_t;
rcl_ret_t tide_rclc_service_get_counters(const rcl_service_t *service, tide_service_counters_t *counters);

typedef struct tide_client_counters {
  uint32_t received;      /* replies */
  uint32_t dropped;       /* as above */
  uint32_t decode_errors; /* as above */
  uint32_t unanswered;    /* requests now */
  uint32_t forgotten;     /* gave way to newer ones: more than TIDE_CLIENT_REQUESTS */
  uint32_t unexpected;    /* replies to requests that were forgotten */
} tide_client_counters_t;
rcl_ret_t tide_rclc_client_get_counters(const rcl_client_t *client, tide_client_counters_t *counters);

#ifdef __cplusplus
}
#endif
#endif
