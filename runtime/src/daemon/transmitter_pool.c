/* SPDX-License-Identifier: Apache-2.0 */
/* The pool of nodes, what is submitted, and whose turn it is in a stream. */
#include <string.h>

#include "transmitter_claims.h"
#include "transmitter_internal.h"
#include "upcalls.h"

extern inline tide_output_stream_t *tide_transmitter_find_stream(const tide_transmitter_t *t, uint8_t id);

enum { OBJECT_OFFSET = 6 }; /* in a WRITE_DATA: behind its header and the number of the request */

void tide_transmitter_clear_stream(tide_output_stream_t *stream, uint8_t id) {
  *stream = (tide_output_stream_t){.id = id, .heartbeat_at_ns = TIDE_FOREVER};
}

tide_output_stream_t *tide_transmitter_take_stream(tide_transmitter_t *t, uint8_t id) {
  tide_output_stream_t *stream = tide_transmitter_find_stream(t, id);
  if (stream || id == 0u) return stream;
  stream = tide_transmitter_find_stream(t, 0u);
  if (!stream && t->stream_places < t->config.stream_count) stream = &t->config.streams[t->stream_places++];
  if (stream) tide_transmitter_clear_stream(stream, id);
  return stream;
}

/* ---- nodes ---- */

static void free_node(tide_transmitter_t *t, tide_node_t *node) {
  TIDE_INVARIANT(node->state != NODE_FREE && !tide_queue_contains(&node->entry));
  note_use(t, node, -1);
  node->state = NODE_FREE;
  node->stream = 0u;
  node->next_free = t->free_nodes[node->size_class];
  t->free_nodes[node->size_class] = node;
  t->nodes_in_use--;
  count_free(t, node->size_class, 1);
}

void tide_transmitter_finish_node(tide_transmitter_t *t, tide_node_t *node, tide_node_outcome_t outcome) {
  if (outcome == TIDE_NODE_ACKNOWLEDGED) TIDE_COUNT(t->counters.acknowledged, 1u);
  if (outcome == TIDE_NODE_EXPIRED) TIDE_COUNT(t->counters.expired, 1u);
  if (outcome == TIDE_NODE_EVICTED) TIDE_COUNT(t->counters.evicted, 1u);
  transmitter_tell_done(t, node, outcome);
  tide_output_stream_t *stream =
      TIDE_LONG_MESSAGES && node->owner ? tide_transmitter_find_stream(t, node->stream) : NULL;
  if (stream && transmitter_is_part(stream, node)) {
    tide_transmitter_return_part(stream, node);
  } else {
    free_node(t, node);
  }
}

void tide_transmitter_enqueue(tide_transmitter_t *t, tide_output_stream_t *stream, tide_node_t *node) {
  if (tide_queue_push(&t->execution_buffer, &node->entry, node->rank) == TIDE_OK) stream->queued++;
}

void tide_transmitter_dequeue(tide_transmitter_t *t, tide_output_stream_t *stream, tide_node_t *node) {
  if (!tide_queue_contains(&node->entry)) return;
  tide_queue_remove(&t->execution_buffer, &node->entry);
  TIDE_INVARIANT(stream->queued > 0u);
  stream->queued--;
}

void tide_transmitter_release_node(tide_transmitter_t *t, tide_output_stream_t *stream, tide_node_t *node,
                                   tide_node_outcome_t outcome) {
  tide_transmitter_dequeue(t, stream, node);
  transmitter_stop_pending(t, node);
  stream->nodes--;
  if (t->busy && t->current_node == node) {
    node->state = NODE_RETURNING;
    t->current_outcome = (uint8_t)outcome;
  } else {
    tide_transmitter_finish_node(t, node, outcome);
  }
}

static tide_node_t *least_urgent_waiting(const tide_transmitter_t *t, uint32_t bytes, tide_priority_t below) {
  tide_node_t *found = NULL;
  for (size_t i = 0; i < t->config.node_count; ++i) {
    tide_node_t *node = &t->config.nodes[i];
    if (node->state != NODE_SUBMITTED || transmitter_is_reliable(node) || !tide_queue_contains(&node->entry)) continue;
    if (node->capacity < bytes || node->priority >= below) continue;
    const bool is_less =
        !found || node->priority < found->priority || (node->priority == found->priority && node->rank < found->rank);
    if (is_less && !is_protected(t, node, below)) found = node;
  }
  return found;
}

static size_t smallest_class(const tide_transmitter_t *t, uint32_t bytes) {
  size_t size_class = 0;
  while (size_class < t->config.class_count && t->config.classes[size_class].node_bytes < bytes) ++size_class;
  return size_class;
}

/* TIDE_NODE_OWN takes any free node, kept or not. */
static tide_node_t *free_node_of(const tide_transmitter_t *t, uint32_t bytes, claim_t claim) {
  const size_t smallest = smallest_class(t, bytes);
  for (size_t i = smallest; i < t->config.class_count; ++i) {
    if (!t->free_nodes[i]) continue;
    if (!TIDE_RESERVATIONS || claim.account == TIDE_NODE_OWN || may_take(t, claim, i, i == smallest))
      return t->free_nodes[i];
  }
  return NULL;
}

uint32_t tide_transmitter_free_bytes(const tide_transmitter_t *t, uint32_t bytes) {
  const claim_t own = {0u, TIDE_NODE_OWN};
  const tide_node_t *node = free_node_of(t, bytes, own);
  return node ? node->capacity : 0u;
}

bool tide_transmitter_may_acquire(const tide_transmitter_t *t, uint32_t bytes, tide_priority_t priority,
                                  uint16_t writer) {
  return free_node_of(t, bytes, claim_of(priority, writer)) != NULL;
}

static int refuse(tide_transmitter_t *t, uint32_t bytes) {
  TIDE_COUNT(t->counters.refused_full, 1u);
  if (TIDE_RESERVATIONS && tide_transmitter_free_bytes(t, bytes) > 0u) TIDE_COUNT(t->counters.refused_kept, 1u);
  return TIDE_ERROR_FULL;
}

static tide_node_t *free_or_evicted(tide_transmitter_t *t, uint32_t bytes, claim_t claim) {
  tide_node_t *node = free_node_of(t, bytes, claim);
  if (node || (TIDE_RESERVATIONS && claim.account == TIDE_NODE_OWN)) return node;
  node = least_urgent_waiting(t, bytes, claim.priority);
  if (!node) return note_starved(t, claim, smallest_class(t, bytes)) ? free_node_of(t, bytes, claim) : NULL;
  tide_transmitter_release_node(t, tide_transmitter_find_stream(t, node->stream), node, TIDE_NODE_EVICTED);
  return node;
}

static int acquire(tide_transmitter_t *t, uint32_t bytes, claim_t claim, tide_node_t **result) {
  *result = NULL;
  if (bytes > t->config.classes[t->config.class_count - 1u].node_bytes) {
    TIDE_COUNT(t->counters.refused_large, 1u);
    return TIDE_ERROR_TOO_LARGE;
  }
  if (claim.account != TIDE_NODE_OWN) note_level(t, claim.priority, smallest_class(t, bytes));
  tide_node_t *node = free_or_evicted(t, bytes, claim);
  if (!node) return refuse(t, bytes);
  t->free_nodes[node->size_class] = node->next_free;
  count_free(t, node->size_class, -1);
  node->state = NODE_OWNED;
  if (TIDE_RESERVATIONS) node->account = claim.account;
  node->priority = claim.priority;
  node->length = 0u;
  node->expires_ns = TIDE_FOREVER;
  node->owner = NULL;
  note_use(t, node, 1);
  ++t->nodes_in_use;
  if (TIDE_COUNTERS && t->nodes_in_use > t->counters.nodes_in_use_maximum)
    t->counters.nodes_in_use_maximum = t->nodes_in_use;
  *result = node;
  return TIDE_OK;
}

int tide_transmitter_acquire(tide_transmitter_t *t, uint32_t bytes, tide_priority_t priority, tide_node_t **result) {
  return acquire(t, bytes, claim_of(priority, 0u), result);
}

int tide_transmitter_acquire_for(tide_transmitter_t *t, uint32_t bytes, tide_priority_t priority, uint16_t writer,
                                 tide_node_t **result) {
  return acquire(t, bytes, claim_of(priority, writer), result);
}

int tide_transmitter_acquire_own(tide_transmitter_t *t, uint32_t bytes, tide_node_t **result) {
  const claim_t own = {TIDE_PRIORITY(0, 0), TIDE_NODE_OWN};
  return acquire(t, bytes, own, result);
}

void tide_transmitter_abandon(tide_transmitter_t *t, tide_node_t *node) {
  if (!node || node->state != NODE_OWNED) return;
  if (t->busy && t->current_node == node) { /* taken back while on the wire */
    node->state = NODE_RETURNING;
    t->current_outcome = TIDE_NODE_DISCARDED;
  } else {
    free_node(t, node);
  }
}
/* ---- streams ---- */

static void append_node(tide_output_stream_t *stream, tide_node_t *node) {
  node->next_in_stream = NULL;
  if (stream->last) {
    stream->last->next_in_stream = node;
  } else {
    stream->first = node;
  }
  stream->last = node;
  if (!stream->sending && !transmitter_is_being_written(stream)) stream->sending = node;
}

void tide_transmitter_unlink_node(tide_output_stream_t *stream, tide_node_t *node) {
  tide_node_t *before = NULL;
  if (!TIDE_MESSAGE_EXPIRY || stream->first == node) { /* what is acknowledged or given up at once is the first */
    stream->first = node->next_in_stream;
  } else {
    for (before = stream->first; before->next_in_stream != node; before = before->next_in_stream) continue;
    before->next_in_stream = node->next_in_stream;
  }
  if (stream->last == node) stream->last = before;
  if (stream->sending == node) stream->sending = node->next_in_stream;
#if TIDE_LONG_MESSAGES
  if (stream->long_message && stream->long_message->last == node) stream->long_message->last = NULL;
#endif
}

void tide_transmitter_start_over(const tide_transmitter_t *t, tide_node_t *node) {
  node->next_fragment = 0u;
  node->resend = 0u;
  if (!TIDE_FRAGMENTS) return;
  node->window_base = 0u;
  node->fragment_count = 1u;
  if (node->length + tide_xrce_header_bytes(t->session) > t->config.message_bytes)
    node->fragment_count = (uint16_t)((node->length + t->fragment_bytes - 1u) / t->fragment_bytes);
}
/* ---- submit ---- */

static int check_submission(const tide_transmitter_t *t, const tide_node_t *node, uint8_t stream) {
  if (node->state != NODE_OWNED || stream == TIDE_XRCE_STREAM_NONE) return TIDE_ERROR_ARGUMENT;
  if (node->length < TIDE_XRCE_SUBMESSAGE_HEADER_BYTES || node->length > node->capacity) return TIDE_ERROR_ARGUMENT;
  const bool fits = node->length + tide_xrce_header_bytes(t->session) <= t->config.message_bytes;
  if ((!TIDE_FRAGMENTS || !TIDE_STREAM_IS_RELIABLE(stream)) && !fits) return TIDE_ERROR_TOO_LARGE;
  if (!TIDE_FRAGMENTS) return TIDE_OK;
  return node->length / t->fragment_bytes < 0x7FFFu ? TIDE_OK : TIDE_ERROR_TOO_LARGE;
}

/* A reliable node is never ahead of those before it in its stream: sending later ones again could keep the one that
 * everybody waits for off the wire. */
int64_t tide_transmitter_rank_of(const tide_transmitter_t *t, const tide_output_stream_t *stream,
                                 const tide_node_t *node) {
  int32_t priority = transmitter_priority_at(stream->id, node->priority & 0xFF);
  if (TIDE_RELIABLE_STREAMS && stream->last && transmitter_priority_of_rank(stream->last->rank) < priority)
    priority = transmitter_priority_of_rank(stream->last->rank);
  return (int64_t)((uint64_t)(uint32_t)(0xFFFF - priority) << TRANSMITTER_RANK_BITS | t->submissions);
}

int tide_transmitter_submit(tide_transmitter_t *t, tide_node_t *node, uint8_t id, int64_t now_ns) {
  int status = check_submission(t, node, id);
  tide_output_stream_t *stream = status == TIDE_OK ? tide_transmitter_take_stream(t, id) : NULL;
  if (status == TIDE_OK && !stream) status = TIDE_ERROR_CAPACITY_STREAMS;
  if (status != TIDE_OK) {
    if (status == TIDE_ERROR_TOO_LARGE) TIDE_COUNT(t->counters.refused_large, 1u);
    tide_transmitter_abandon(t, node);
    return status;
  }
  node->rank = tide_transmitter_rank_of(t, stream, node);
  t->submissions++;
  node->stream = id;
  node->state = NODE_SUBMITTED;
  tide_transmitter_start_over(t, node);
  stream->nodes++;
  TIDE_COUNT(t->counters.submitted, 1u);
  if (TIDE_MESSAGE_EXPIRY && node->expires_ns != TIDE_FOREVER)
    (void)tide_queue_push(&t->pending_buffer, &node->pending, node->expires_ns);
  if (transmitter_is_reliable(node)) {
    append_node(stream, node);
    tide_transmitter_refresh_stream(t, stream, now_ns);
  } else {
    tide_transmitter_enqueue(t, stream, node);
  }
  return TIDE_OK;
}

/* ---- packing ---- */

static uint32_t aligned(uint32_t length) { return (length + 3u) & ~UINT32_C(3); }

static bool is_sample_of(const tide_node_t *node, const uint8_t *object) {
  return node->bytes[0] == TIDE_XRCE_WRITE_DATA && node->length > OBJECT_OFFSET + 1u &&
         node->bytes[OBJECT_OFFSET] == object[0] && node->bytes[OBJECT_OFFSET + 1u] == object[1];
}

/* Of one writer only: what is kept for the next session waits there until its writer exists again. With the longest
 * header, as the next session may have it: nothing that is packed may ever need fragments, which carry one message. */
static bool may_join(const tide_transmitter_t *t, const tide_node_t *first, const tide_node_t *node) {
  const uint32_t bytes = aligned(first->length) + node->length;
  if (first->next_fragment > 0u || first == t->current_node || first->state != NODE_SUBMITTED) return false;
  if (first->owner || node->owner || first->priority != node->priority) return false;
  if (first->expires_ns != TIDE_FOREVER || node->expires_ns != TIDE_FOREVER) return false;
  if (node->state != NODE_OWNED || node->length <= OBJECT_OFFSET + 1u) return false;
  if (bytes > first->capacity || bytes + TIDE_XRCE_HEADER_MAXIMUM_BYTES > t->config.message_bytes) return false;
  return is_sample_of(first, node->bytes + OBJECT_OFFSET) && is_sample_of(node, node->bytes + OBJECT_OFFSET);
}

bool tide_transmitter_pack(tide_transmitter_t *t, tide_node_t *node, uint8_t id) {
  if (!TIDE_PACKING || !t->config.pack || !TIDE_STREAM_IS_RELIABLE(id)) return false;
  const tide_output_stream_t *stream = tide_transmitter_find_stream(t, id);
  tide_node_t *first = stream ? stream->last : NULL;
  if (!first || !may_join(t, first, node)) return false;
  const uint32_t start = aligned(first->length);
  memset(first->bytes + first->length, 0, start - first->length);
  memcpy(first->bytes + start, node->bytes, node->length);
  first->length = start + node->length;
  node->stream = id;
  TIDE_INVARIANT(transmitter_fragment_count(first) == 1u);
  TIDE_COUNT(t->counters.submitted, 1u);
  TIDE_COUNT(t->counters.packed, 1u);
  tide_transmitter_finish_node(t, node, TIDE_NODE_PACKED);
  return true;
}

int tide_transmitter_submit_control(tide_transmitter_t *t, const uint8_t *submessage, size_t length, uint8_t session,
                                    tide_priority_t priority) {
  if (!submessage || length < TIDE_XRCE_SUBMESSAGE_HEADER_BYTES) return TIDE_ERROR_ARGUMENT;
  if (length > sizeof t->control[0].bytes) return TIDE_ERROR_TOO_LARGE;
  if (t->control_count == TIDE_CONTROL_PLACES) return TIDE_ERROR_FULL;
  memcpy(t->control[t->control_count].bytes, submessage, length);
  t->control[t->control_count].length = (uint8_t)length;
  t->control[t->control_count].session = session;
  t->control[t->control_count].priority = priority;
  t->control_count++;
  return TIDE_OK;
}

int tide_transmitter_request_acknack(tide_transmitter_t *t, uint8_t id, uint16_t first, uint16_t missing) {
  if (!TIDE_STREAM_IS_RELIABLE(id)) return TIDE_ERROR_ARGUMENT;
  tide_output_stream_t *stream = tide_transmitter_take_stream(t, id);
  if (!stream) return TIDE_ERROR_CAPACITY_STREAMS;
  stream->acknack_first = first;
  stream->acknack_missing = missing;
  stream->acknack_due = true;
  return TIDE_OK;
}
