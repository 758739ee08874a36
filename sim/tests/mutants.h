/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of the runtime: each has one defect, which a campaign must detect. The runtime's files are compiled a second
 * time for sim_mutants_test and sim_host_mutants_test, with this header included first (-include); it intercepts their
 * calls. mutants.c contains the mutants that intercept a file's own functions. tide_mutant selects the active mutant.
 * The product contains nothing of this. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tide_mutant {
  MUTANT_NONE,
  MUTANT_DOUBLES,   /* daemon: a duplicate of a message is delivered again */
  MUTANT_LOSES,     /* daemon: a message that the peer misses counts as acknowledged */
  MUTANT_ORDER,     /* daemon: the least urgent message is sent first */
  MUTANT_IDLE,      /* daemon: now and then, a message that could be sent is not sent until another event occurs */
  MUTANT_GREEDY,    /* receiver: slots are not reserved, so that the first reader takes slots of others */
  MUTANT_HOARDING,  /* receiver: used reassemblies are not counted, so that the first reader takes those of others */
  MUTANT_GRABBING,  /* transmitter: levels are not remembered, so that the first level takes nodes kept for others */
  MUTANT_GENEROUS,  /* budget: used time is replenished after half a period, so that a lane gets twice its budget */
  MUTANT_FORGETS,   /* action server: a repeated request for an ended goal starts a new goal */
  MUTANT_TRUSTS,    /* action client: after a new session, unanswered requests of the old session are not repeated */
  MUTANT_BELIEVES,  /* action client: a refusal is believed even if the request may have arrived twice */
  MUTANT_EARLY,     /* executor: now and then, the clock shows a slightly later time */
  MUTANT_GROUPS,    /* executor: now and then, an exclusive group is treated as reentrant */
  MUTANT_OVERLOOKS, /* executor: now and then, a callback that could run does not run until another event occurs */
  MUTANT_LAST       /* executor: now and then, a ready callback goes last, whatever its priority */
} tide_mutant_t;
extern tide_mutant_t tide_mutant;
extern unsigned tide_mutant_looks; /* counts calls, for mutants that act only now and then */

#ifdef __cplusplus
}
#else

#include "tide/executor.h"
#include "tide/platform.h"
#include "tide/priority.h"
#include "tide/queue.h"
#include "tide/stream.h"
#include "tide/xrce.h"

static inline _Bool mutant_now_and_then(tide_mutant_t mutant, unsigned often) {
  return tide_mutant == mutant && ++tide_mutant_looks % often == 0u;
}

/* ---- daemon ---- */

#ifdef MUTANT_OF_DAEMON
static inline tide_stream_verdict_t mutant_arrive(tide_input_stream_t *stream, uint16_t sequence) {
  const uint16_t next = stream->next;
  const tide_stream_verdict_t verdict = tide_input_stream_arrive(stream, sequence);
  if (tide_mutant != MUTANT_DOUBLES || verdict != TIDE_STREAM_DUPLICATE || !TIDE_STREAM_IS_RELIABLE(stream->id))
    return verdict;
  if ((uint16_t)(sequence + 1u) != next) return verdict;
  stream->next = sequence;
  return TIDE_STREAM_DELIVER;
}
#define tide_input_stream_arrive mutant_arrive

/* For MUTANT_DOUBLES, too: otherwise the check at the arrival would detect the duplicate. */
static inline int16_t mutant_distance(uint16_t a, uint16_t b) {
  const int16_t distance = tide_sequence_distance(a, b);
  return tide_mutant == MUTANT_DOUBLES && distance == -1 ? 0 : distance;
}
#define tide_sequence_distance mutant_distance

static inline void mutant_get_acknack(tide_cdr_t *cdr, tide_xrce_acknack_t *body) {
  tide_xrce_get_acknack(cdr, body);
  if (tide_mutant != MUTANT_LOSES || (body->missing & 1u) == 0u) return;
  body->first_unacknowledged++;
  body->missing = (uint16_t)(body->missing >> 1);
}
#define tide_xrce_get_acknack mutant_get_acknack

static inline int mutant_push(tide_queue_t *queue, tide_queue_entry_t *entry, int64_t key) {
  return tide_queue_push(queue, entry, tide_mutant == MUTANT_ORDER && key != TIDE_FOREVER ? -key : key);
}
#define tide_queue_push mutant_push

static inline tide_queue_entry_t *mutant_head(const tide_queue_t *queue) {
  return mutant_now_and_then(MUTANT_IDLE, 64u) ? NULL : tide_queue_head(queue);
}
#define tide_queue_head mutant_head
#endif

/* Calls from the daemon to the transmitter and the receiver. */
#ifdef MUTANT_OF_CALLS
#include <string.h>

#include "tide/daemon.h"

static inline int mutant_commit(tide_receiver_t *r, uint16_t length, _Bool verify, uint16_t crc, int64_t now_ns) {
  if (tide_mutant == MUTANT_GREEDY) r->owed = 0u;
  return tide_receiver_commit(r, length, verify, crc, now_ns);
}
#define tide_receiver_commit mutant_commit

static inline _Bool mutant_accept(tide_receiver_t *r, tide_slot_t *slot, _Bool verified) {
  for (tide_account_t *account = &r->nobody; tide_mutant == MUTANT_HOARDING && account; account = account->next)
    account->reassemblies = 0u;
  return tide_receiver_accept(r, slot, verified);
}
#define tide_receiver_accept mutant_accept

static inline int mutant_acquire_free(tide_transmitter_t *t, uint32_t bytes, tide_priority_t priority, uint16_t writer,
                                      tide_node_t **node) {
  if (tide_mutant == MUTANT_GRABBING) memset(t->levels, 0, sizeof t->levels);
  const int status = tide_transmitter_acquire_free(t, bytes, priority, writer, node);
  if (tide_mutant == MUTANT_GRABBING) memset(t->levels, 0, sizeof t->levels);
  return status;
}
#define tide_transmitter_acquire_free mutant_acquire_free
#endif

/* ---- executor ---- */

#ifdef MUTANT_OF_EXECUTOR
static inline int64_t mutant_now(const tide_platform_t *platform) {
  return tide_platform_now_ns(platform) + (mutant_now_and_then(MUTANT_EARLY, 256u) ? 50000 : 0);
}
#define tide_platform_now_ns mutant_now

#define TIDE_GROUP_REENTRANT (mutant_now_and_then(MUTANT_GROUPS, 16u) ? TIDE_GROUP_EXCLUSIVE : TIDE_GROUP_REENTRANT)

static inline tide_queue_entry_t *mutant_head(const tide_queue_t *queue) {
  return mutant_now_and_then(MUTANT_OVERLOOKS, 256u) ? NULL : tide_queue_head(queue);
}
#define tide_queue_head mutant_head

static inline int mutant_push(tide_queue_t *queue, tide_queue_entry_t *entry, int64_t key) {
  const _Bool of_ready_list = key == entry->key; /* a timer that starts has a new key */
  return tide_queue_push(queue, entry, of_ready_list && mutant_now_and_then(MUTANT_LAST, 64u) ? INT64_MAX - 1 : key);
}
#define tide_queue_push mutant_push
#endif

#endif
