/* SPDX-License-Identifier: Apache-2.0 */
/* The plan file that `tide run` writes from system.toml for one board. (A program for a microcontroller would have
 * these numbers compiled in.) Fields are separated by blanks; lines that begin with # are comments. Each chain with
 * callbacks on the board has a line, the most urgent chain first. After it come the lines of the chain's callbacks on
 * this board, in the order of the chain:
 *
 *   chain NAME LEVEL PERIOD_NS OFFSET_NS INSTANCES BURST reliable|best_effort
 *   callback NAME EXECUTION_NS LEAST_NS LIMIT_NS IN OUT [MARK MARK_OFFSET MARK_VALUE]
 *   join IN
 *   send OUT
 *
 * BURST is 0 if a timer begins the chain. Otherwise an interrupt begins it, which raises BURST events at once, every
 * BURST periods. A callback computes for EXECUTION_NS, or less if it would otherwise take more than LIMIT_NS together
 * with taking and sending its messages. It takes at least LEAST_NS in total.
 *
 * A `join` adds a message to the subscription in the callback line above it: the callback runs when the last of its
 * messages of an instance has arrived. A `send` adds a publication. In a callback line, IN is the subscription, or -
 * for a timer or an event, and OUT is a request, a reply, or -. IN and OUT are written as
 *
 *   TOPIC PACKAGE/msg/TYPE NUMBER OFFSET EVERY reliable|best_effort FILE
 *
 * FILE is a file in the plan's folder with a serialised message without encapsulation, which is sent each time; for IN
 * it is -. There is a message for every EVERYth instance, which contains the instance's number. NUMBER is the format of
 * this number (digits, which means five of them; u8, u16, u32, u64, f32, f64, bool; none), and OFFSET its place. If the
 * number wraps around or is missing, the latest possible instance is assumed. The format `count` is for messages of
 * programs that write no number: the position of a message among all received ones counts as its number.
 *
 * If the type is PACKAGE/srv/TYPE (or PACKAGE/action/TYPE), it is the type of a service, and TOPIC is the service's
 * name. A callback whose IN and OUT belong to the same service is a server of this service. Otherwise OUT is a request,
 * and IN is the reply to the request of an earlier callback. If callbacks of several chains serve one service, MARK,
 * MARK_OFFSET and MARK_VALUE select the callback for a request: they are the format, place and value of a second number
 * that the request contains.
 *
 * Work of the board besides its callbacks, and more urgent than all of them, once in each PERIOD_NS:
 *
 *   load NAME EXECUTION_NS PERIOD_NS MASKS ASKS
 *
 * MASKS is 1 if the load masks interrupts, otherwise 0. ASKS is 1 if the load pings the agent and waits for the answer,
 * otherwise 0.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Format of the instance's number in a serialised message of any type. */
typedef enum number_kind {
  NUMBER_NONE,
  NUMBER_BOOL,
  NUMBER_U8,
  NUMBER_U16,
  NUMBER_U32,
  NUMBER_U64,
  NUMBER_F32,
  NUMBER_F64,
  NUMBER_DIGITS,
  NUMBER_COUNT /* the message contains no number; its position among all received messages counts */
} number_kind_t;

typedef struct number_place {
  number_kind_t kind;
  size_t offset;
} number_place_t;

/* Size in bytes of an instance number of this format. */
size_t number_bytes(number_kind_t kind);
/* Writes an instance number into a message; `place` must lie within it. */
void number_write(uint8_t *message, number_place_t place, uint32_t index);
/* Returns -1 if the message is too short, or if it has no number. */
int64_t number_read(const uint8_t *message, size_t bytes, number_place_t place);
/* The latest instance, up to `latest` and among every `every`th one, to which the number that was read belongs.
 * Negative if there is none. */
int64_t number_instance(int64_t read, number_place_t place, uint32_t every, int64_t latest);

#define PLAN_CHAINS 32
#define PLAN_CALLBACKS 64
#define PLAN_JOINS 32       /* of all callbacks together */
#define PLAN_JOINS_OF_ONE 7 /* of one callback */
#define PLAN_SENDS 96       /* of all callbacks together */
#define PLAN_EVENTS 8       /* chains that begin with events */
#define PLAN_LOADS 16
#define PLAN_NAME_BYTES 72
#define PLAN_TOPIC_BYTES 208
#define PLAN_TYPE_BYTES 128
#define PLAN_PATH_BYTES 1024
#define PLAN_PAYLOAD_BYTES 40000
#define MTU_BYTES_MOST 4096 /* largest MTU for which the program has memory */

typedef struct plan_message {
  char topic[PLAN_TOPIC_BYTES]; /* empty: none */
  char type[PLAN_TYPE_BYTES];
  number_place_t number;
  uint32_t every; /* there is a message for every n-th instance */
  bool reliable;
  char file[PLAN_PATH_BYTES];
} plan_message_t;

typedef enum plan_role { PLAN_TIMER, PLAN_EVENT, PLAN_SUBSCRIPTION, PLAN_SERVICE, PLAN_CLIENT } plan_role_t;

typedef struct plan_callback {
  char name[PLAN_NAME_BYTES];
  size_t chain;
  plan_role_t role;
  bool requests;       /* true: it sends a request at its end */
  size_t server;       /* for a service: index of the first callback of the same service */
  number_place_t mark; /* for a service: NUMBER_NONE if all requests are for this callback */
  int64_t mark_value;
  size_t request; /* for a client: index of the callback that sends the request */
  int64_t execution_ns, least_ns, limit_ns;
  plan_message_t in, out;        /* out: a request or a reply */
  size_t first_join, join_count; /* messages for which it waits in addition to `in` */
  size_t first_send, send_count; /* publications */
} plan_callback_t;

typedef struct plan_chain {
  char name[PLAN_NAME_BYTES];
  uint8_t level;
  int64_t period_ns;
  int64_t offset_ns; /* time from the first release of the program to the first timer expiry of this chain */
  uint32_t instances;
  uint32_t burst; /* number of events raised at once; 0: a timer begins the chain */
  bool reliable;
  size_t first, count; /* range of its callbacks */
} plan_chain_t;

typedef struct plan_load {
  char name[PLAN_NAME_BYTES];
  int64_t execution_ns, period_ns;
  bool masks, asks;
} plan_load_t;

typedef struct plan {
  plan_chain_t chains[PLAN_CHAINS];
  size_t chain_count;
  plan_callback_t callbacks[PLAN_CALLBACKS];
  size_t callback_count;
  plan_message_t joins[PLAN_JOINS];
  size_t join_count;
  plan_message_t sends[PLAN_SENDS];
  size_t send_count;
  plan_load_t loads[PLAN_LOADS];
  size_t load_count;
} plan_t;

/* Returns false if the plan cannot be used, and prints an error message that names the line of the file. */
bool plan_read(const char *path, plan_t *plan);
/* True if the chain begins on this board. */
bool plan_begins(const plan_t *plan, const plan_chain_t *chain);
