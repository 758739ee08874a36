/* SPDX-License-Identifier: Apache-2.0 */
/* The callbacks of a board of a system.toml: what each is described to do, with what it received. */
#ifndef SIM_BOARD_CALLBACKS_H
#define SIM_BOARD_CALLBACKS_H

#include <rcl/rcl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <tide/rclc.h>

#include "plan.h"
#include "raw_message.h"

typedef struct callback {
  const plan_callback_t *plan;
  raw_type_t in_type, out_type;
  raw_message_t in, out;
  raw_message_t reply; /* of a service: where rclc looks for it, whichever of its callbacks made it */
  rcl_publisher_t publisher;
  rcl_subscription_t subscription;
  raw_service_t served, requested;
  rcl_service_t service;
  rcl_client_t client; /* of the callback that requests; the one that takes the reply uses it */
  rcl_timer_t timer;
  uint32_t taken;  /* messages since the first release */
  int64_t sent_ns; /* what it took of late to make and send its message, at most */
  uint8_t *came;   /* of one that joins: by instance a bit for each message that is there */
} callback_t;

/* What a callback waits for beside its first message. */
typedef struct join {
  callback_t *callback;
  const plan_message_t *plan;
  unsigned bit;
  raw_type_t type;
  raw_message_t in;
  rcl_subscription_t subscription;
  uint32_t taken;
} join_t;

extern plan_t plan;
extern callback_t callbacks[PLAN_CALLBACKS];
extern join_t joins[PLAN_JOINS];
extern int64_t first_release_ns;
extern atomic_uint publish_failures, unexpected; /* of all lanes */

int64_t now_ns(void);
/* How callbacks execute from now on. waits: they wait in place of computing, which is for one thread that runs them.
 * granted_ns: what one that sends may take beside its execution time; what it takes more, its work takes less, down to
 * a half. -1: the work is as described. */
void play_executions(bool waits, int64_t granted_ns);
/* The processor time of the calling thread, with what it waited for in its place. */
int64_t executed_ns(void);
const plan_chain_t *chain_of(const callback_t *callback);
bool subscribes(const callback_t *callback);
bool serves(const callback_t *callback);
/* A service that several chains ask is one, and belongs to the first of its callbacks. */
callback_t *server_of(const callback_t *callback);
bool has_service(const callback_t *callback);
bool requests(const callback_t *callback);
bool publishes(const callback_t *callback);
/* That this callback's reply comes through. */
rcl_client_t *client_of(callback_t *callback);
/* After it was created. */
tide_callback_t *core_of(callback_t *callback);

/* As rclc calls them. context: of a subscription its callback_t or join_t, of a service its callback_t. */
void on_timer(rcl_timer_t *timer, int64_t since_last_call_ns);
void on_message(const void *message, void *context);
void on_join(const void *message, void *context);
void on_request(const void *message, void *response, void *context);
void on_reply(const void *message, rmw_request_id_t *request_id);

#endif
