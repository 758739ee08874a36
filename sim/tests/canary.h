/* SPDX-License-Identifier: Apache-2.0 */
/* Included before the daemon's own files by the canaries: each breaks one thing that a campaign must notice. */
#include "tide/platform.h"
#include "tide/priority.h"
#include "tide/queue.h"
#include "tide/stream.h"
#include "tide/xrce.h"

#ifdef CANARY_DOUBLES /* a message that comes twice is handed on twice */
static inline tide_stream_verdict_t canary_arrive(tide_input_stream_t *stream, uint16_t sequence) {
  const uint16_t next = stream->next;
  const tide_stream_verdict_t verdict = tide_input_stream_arrive(stream, sequence);
  if (verdict != TIDE_STREAM_DUPLICATE || !TIDE_STREAM_IS_RELIABLE(stream->id)) return verdict;
  if ((uint16_t)(sequence + 1u) != next) return verdict;
  stream->next = sequence;
  return TIDE_STREAM_DELIVER;
}
#define tide_input_stream_arrive canary_arrive
/* ... and is not recognised when it comes in */
static inline int16_t canary_distance(uint16_t a, uint16_t b) {
  const int16_t distance = tide_sequence_distance(a, b);
  return distance == -1 ? 0 : distance;
}
#define tide_sequence_distance canary_distance
#endif

#ifdef CANARY_LOSES /* what the peer misses is taken for acknowledged */
static inline void canary_get_acknack(tide_cdr_t *cdr, tide_xrce_acknack_t *body) {
  tide_xrce_get_acknack(cdr, body);
  if ((body->missing & 1u) == 0u) return;
  body->first_unacknowledged++;
  body->missing = (uint16_t)(body->missing >> 1);
}
#define tide_xrce_get_acknack canary_get_acknack
#endif

#ifdef CANARY_ORDER /* the least urgent message goes first */
static inline int canary_push(tide_queue_t *queue, tide_queue_entry_t *entry, int64_t key) {
  return tide_queue_push(queue, entry, key == TIDE_FOREVER ? key : -key);
}
#define tide_queue_push canary_push
#endif

#ifdef CANARY_IDLE /* now and then what could go is overlooked until something else happens */
static inline tide_queue_entry_t *canary_head(const tide_queue_t *queue) {
  static unsigned looks;
  return ++looks % 64u == 0u ? NULL : tide_queue_head(queue);
}
#define tide_queue_head canary_head
#endif
