/* SPDX-License-Identifier: Apache-2.0 */
/* The plan file that `tide run` writes from system.toml for one board: a microcontroller program would have these
 * numbers compiled in. Fields are separated by blanks, lines that begin with # are comments. A line for each chain that
 * touches the board, most urgent first, and behind it one for each of its callbacks here, in the order of the chain:
 *
 *   chain NAME LEVEL PERIOD_NS OFFSET_NS INSTANCES BURST reliable|best_effort
 *   callback NAME EXECUTION_NS LEAST_NS LIMIT_NS IN OUT [MARK MARK_OFFSET MARK_VALUE]
 *   join IN
 *   send OUT
 *
 * BURST is 0 if a timer begins the chain. Otherwise an interrupt does, which raises BURST events at once, in every
 * BURST periods. A callback works for EXECUTION_NS, or less if that and the surrounding work would take more than
 * LIMIT_NS; the whole takes at least LEAST_NS.
 *
 * A join belongs to the callback before it, a subscription: that callback also takes this message, and runs when the
 * last message of an instance has arrived. IN is - for a timer or an event, otherwise the callback's subscription. OUT
 * is - or a request or a reply; each publication has a line `send`. All are written as
 *
 *   TOPIC PACKAGE/msg/TYPE NUMBER OFFSET EVERY reliable|best_effort FILE
 *
 * FILE, in the plan's folder, contains a serialised message without encapsulation, which is published repeatedly; for
 * IN it is -. The message belongs to each EVERYth instance and contains its number. NUMBER and OFFSET give the number's
 * format and place: digits (five), u8, u16, u32, u64, f32, f64, bool, or none. If the number wraps around or is
 * missing, the latest possible instance is used. With count, for messages of programs without numbers, the number is
 * the position of the message among all received ones.
 *
 * A type PACKAGE/srv/TYPE (or PACKAGE/action/TYPE) is that of a service, and TOPIC its name. A callback whose IN and
 * OUT belong to one service serves it; otherwise OUT is a request, and IN is the reply to an earlier callback's
 * request. Callbacks of several chains may serve one service. MARK then selects the callback for a request: the kind,
 * place and value of a number that the request contains in addition to that of its instance.
 *
 * What the board executes besides its callbacks, more urgent than all of them, in each PERIOD_NS:
 *
 *   load NAME EXECUTION_NS PERIOD_NS MASKS ASKS
 *
 * MASKS is 1 if interrupts are off meanwhile, and ASKS is 1 if it pings the agent and waits for the answer; otherwise
 * 0.
 */
#ifndef THREE_CHAINS_PLAN_H
#define THREE_CHAINS_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The number of a chain's instance in a serialised message of any type. */
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
  NUMBER_COUNT /* no number in the message: the message's position among all counts */
} number_kind_t;

typedef struct number_place {
  number_kind_t kind;
  size_t offset;
} number_place_t;

/* Bytes of an instance number of this kind. */
size_t number_bytes(number_kind_t kind);
/* Writes an instance number into a message; `place` must lie within it. */
void number_write(uint8_t *message, number_place_t place, uint32_t index);
/* -1: the message is too short, or there is no number. */
int64_t number_read(const uint8_t *message, size_t bytes, number_place_t place);
/* The latest instance up to `latest` that has this number; only each `every`th counts. Negative: no instance has it. */
int64_t number_instance(int64_t read, number_place_t place, uint32_t every, int64_t latest);

#define PLAN_CHAINS 32
#define PLAN_CALLBACKS 64
#define PLAN_JOINS 32       /* in all callbacks */
#define PLAN_JOINS_OF_ONE 7 /* in one callback */
#define PLAN_SENDS 96       /* in all callbacks */
#define PLAN_EVENTS 8       /* chains that begin with events */
#define PLAN_LOADS 16
#define PLAN_NAME_BYTES 72
#define PLAN_TOPIC_BYTES 208
#define PLAN_TYPE_BYTES 128
#define PLAN_PATH_BYTES 1024
#define PLAN_PAYLOAD_BYTES 40000
#define MTU_BYTES_MOST 4096 /* limit of the program's pools */

typedef struct plan_message {
  char topic[PLAN_TOPIC_BYTES]; /* empty: none */
  char type[PLAN_TYPE_BYTES];
  number_place_t number;
  uint32_t every; /* instances from one message to the next */
  bool reliable;
  char file[PLAN_PATH_BYTES];
} plan_message_t;

typedef enum plan_role { PLAN_TIMER, PLAN_EVENT, PLAN_SUBSCRIPTION, PLAN_SERVICE, PLAN_CLIENT } plan_role_t;

typedef struct plan_callback {
  char name[PLAN_NAME_BYTES];
  size_t chain;
  plan_role_t role;
  bool requests;       /* sends a request at its end */
  size_t server;       /* for a service: the number of the first callback that serves it */
  number_place_t mark; /* for a service: NUMBER_NONE if all requests are for this callback */
  int64_t mark_value;
  size_t request; /* for a client: the number of the requesting callback */
  int64_t execution_ns, least_ns, limit_ns;
  plan_message_t in, out;        /* out: a request or a reply */
  size_t first_join, join_count; /* inputs that it waits for besides `in` */
  size_t first_send, send_count; /* publications */
} plan_callback_t;

typedef struct plan_chain {
  char name[PLAN_NAME_BYTES];
  uint8_t level;
  int64_t period_ns;
  int64_t offset_ns; /* time from the program's first release to this chain's first timer expiry */
  uint32_t instances;
  uint32_t burst; /* number of events at once; 0: a timer begins the chain */
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

/* False if the plan cannot be used, with an error message that names the line of the file. */
bool plan_read(const char *path, plan_t *plan);
/* True if the chain's timer or event is here. */
bool plan_begins(const plan_t *plan, const plan_chain_t *chain);

#endif
