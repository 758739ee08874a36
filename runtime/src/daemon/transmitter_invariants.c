/* SPDX-License-Identifier: Apache-2.0 */
/* The invariants of transmitter_internal.h, looked at as a whole after each step. */
#include "tide/invariant.h"
#include "transmitter_claims.h"
#include "transmitter_internal.h"

#if TIDE_INVARIANTS
static bool could_go(const tide_transmitter_t *t, const tide_output_stream_t *stream, const tide_node_t *node) {
  return node->resend != 0u || (stream->sending == node && transmitter_has_room(t, stream));
}

/* The first node behind the newest part of a message that is still being written. */
static bool waits_behind(const tide_output_stream_t *stream, const tide_node_t *node, const tide_node_t *before) {
  return transmitter_is_being_written(stream) && !stream->sending && !transmitter_is_part(stream, node) &&
         transmitter_long_message(stream)->last == before;
}

static void check_reliable(const tide_transmitter_t *t, const tide_output_stream_t *stream) {
  size_t nodes = 0u, queued = 0u;
  bool unsent = false;
  const tide_node_t *last = NULL, *last_part = NULL;
  const tide_long_message_t *message = transmitter_long_message(stream);
  uint16_t parts = 0u;
  for (const tide_node_t *node = stream->first; node; node = node->next_in_stream) {
    const bool is_queued = tide_queue_contains(&node->entry);
    TIDE_INVARIANT(node->state == NODE_SUBMITTED || node->state == NODE_OVERDUE);
    TIDE_INVARIANT(node->stream == stream->id);
    TIDE_INVARIANT(is_queued == could_go(t, stream, node));
    unsent = unsent || stream->sending == node || waits_behind(stream, node, last);
    TIDE_INVARIANT(unsent == (node->next_fragment < transmitter_fragment_count(node)));
    TIDE_INVARIANT(transmitter_window_base(node) <= node->next_fragment);
    nodes++;
    queued += is_queued ? 1u : 0u;
    if (transmitter_is_part(stream, node)) {
      parts++;
      last_part = node;
    }
    last = node;
  }
  TIDE_INVARIANT(stream->last == last);
  TIDE_INVARIANT(nodes == stream->nodes && queued == stream->queued);
  TIDE_INVARIANT(parts <= (message ? message->parts : 0u));
  TIDE_INVARIANT(!message || (last_part == message->last && (message->parts > 0u || !message->complete)));
  TIDE_INVARIANT(!stream->sending || unsent);
  TIDE_INVARIANT(transmitter_in_flight(stream) <= t->config.window);
}

static size_t check_streams(const tide_transmitter_t *t) {
  size_t nodes = 0u;
  for (size_t i = 0; i < t->config.stream_count; ++i) {
    const tide_output_stream_t *stream = &t->config.streams[i];
    TIDE_INVARIANT(i < t->stream_places || stream->id == 0u);
    TIDE_INVARIANT(stream->id != 0u || stream->nodes == 0u);
    TIDE_INVARIANT(stream->queued <= stream->nodes);
    if (TIDE_STREAM_IS_RELIABLE(stream->id)) check_reliable(t, stream);
    nodes += stream->nodes;
  }
  return nodes;
}

#if TIDE_NODE_COUNTS
static void check_counts(const tide_transmitter_t *t) {
  for (size_t i = 0; i < t->config.class_count; ++i) {
    const tide_node_use_t counted = look_at_use(t, i), seen = count_use(t, i);
    TIDE_INVARIANT(counted.levels == seen.levels && counted.levels_with_more == seen.levels_with_more);
    TIDE_INVARIANT(counted.writers == seen.writers && counted.writers_with_more == seen.writers_with_more);
  }
}
#else
static void check_counts(const tide_transmitter_t *t) { (void)t; }
#endif

void tide_transmitter_check(const tide_transmitter_t *t) {
  size_t free = 0u, in_streams = 0u, queued = 0u;
  for (size_t i = 0; i < t->config.node_count; ++i) {
    const tide_node_t *node = &t->config.nodes[i];
    const bool is_in_stream = node->state == NODE_SUBMITTED || node->state == NODE_OVERDUE;
    const bool is_queued = tide_queue_contains(&node->entry);
    TIDE_INVARIANT(!is_queued || is_in_stream);
    TIDE_INVARIANT(node->state != NODE_RETURNING || (t->busy && t->current_node == node));
    free += node->state == NODE_FREE ? 1u : 0u;
    in_streams += is_in_stream ? 1u : 0u;
    queued += is_queued ? 1u : 0u;
  }
  TIDE_INVARIANT(free + t->nodes_in_use == t->config.node_count);
  TIDE_INVARIANT(queued == t->execution_buffer.count);
  TIDE_INVARIANT(t->control_count <= TIDE_CONTROL_PLACES);
  TIDE_INVARIANT(in_streams == check_streams(t));
  check_counts(t);
}
#else
typedef int transmitter_has_no_invariants_t; /* a file that says nothing is not C */
#endif
