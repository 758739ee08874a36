/* SPDX-License-Identifier: Apache-2.0 */
/* Messages longer than any node: parts that stand together in their stream, and come back to their writer. */
#include "transmitter_internal.h"

#if TIDE_LONG_MESSAGES
/* Behind its newest part; when all were acknowledged, what is left of the stream came later. */
static void insert(tide_output_stream_t *stream, tide_long_message_t *message, tide_node_t *node) {
  const bool begins = message->stream == 0u;
  tide_node_t *before = begins ? stream->last : message->last;
  tide_node_t **place = before ? &before->next_in_stream : &stream->first;
  node->next_in_stream = *place;
  *place = node;
  if (!node->next_in_stream) stream->last = node;
  if (!stream->sending) stream->sending = node;
}

static void keep(tide_long_message_t *message, tide_node_t *node) {
  node->state = NODE_OWNED;
  node->next_free = message->free;
  message->free = node;
}

static int check_part(const tide_transmitter_t *t, const tide_long_message_t *message, const tide_node_t *node,
                      uint8_t id) {
  if (message->lost) return TIDE_ERROR_DISCONNECTED;
  if (node->state != NODE_OWNED || !TIDE_STREAM_IS_RELIABLE(id) || message->complete) return TIDE_ERROR_ARGUMENT;
  if (node->length == 0u || node->length > node->capacity) return TIDE_ERROR_ARGUMENT;
  return node->length / t->fragment_bytes < 0x7FFFu ? TIDE_OK : TIDE_ERROR_TOO_LARGE;
}

int tide_transmitter_submit_part(tide_transmitter_t *t, tide_long_message_t *message, tide_node_t *node, uint8_t id,
                                 bool complete, int64_t now_ns) {
  int status = check_part(t, message, node, id);
  tide_output_stream_t *stream = status == TIDE_OK ? tide_transmitter_take_stream(t, id) : NULL;
  if (status == TIDE_OK && !stream) status = TIDE_ERROR_CAPACITY_STREAMS;
  if (stream && stream->long_message && stream->long_message != message) status = TIDE_ERROR_FULL;
  if (status != TIDE_OK) {
    keep(message, node);
    return status;
  }
  if (message->stream == 0u) {
    message->rank = tide_transmitter_rank_of(t, stream, node);
    t->submissions++;
    TIDE_COUNT(t->counters.submitted, 1u);
  }
  node->rank = message->rank;
  node->owner = message;
  node->stream = id;
  node->state = NODE_SUBMITTED;
  tide_transmitter_start_over(t, node);
  node->fragment_count = (uint16_t)((node->length + t->fragment_bytes - 1u) / t->fragment_bytes);
  insert(stream, message, node);
  stream->long_message = message;
  stream->nodes++;
  message->stream = id;
  message->last = node;
  message->complete = complete;
  message->parts++;
  tide_transmitter_refresh_stream(t, stream, now_ns);
  return TIDE_OK;
}

void tide_transmitter_return_part(tide_output_stream_t *stream, tide_node_t *node) {
  tide_long_message_t *message = stream->long_message;
  TIDE_INVARIANT(message->parts > 0u);
  message->parts--;
  keep(message, node);
  if (message->complete && message->parts == 0u) stream->long_message = NULL;
}

static tide_node_t *first_unsent(const tide_output_stream_t *stream) {
  tide_node_t *node = stream->first;
  while (node && node->next_fragment == node->fragment_count) node = node->next_in_stream;
  return node;
}

/* The wire may read on in one of them; that frame means nothing any more. One that was acknowledged meanwhile goes to
 * the pool when the wire lets go of it. */
void tide_transmitter_lose_long(tide_transmitter_t *t, tide_output_stream_t *stream) {
  tide_long_message_t *message = stream->long_message;
  if (!message) return;
  stream->last = NULL;
  for (tide_node_t **place = &stream->first; *place;) {
    tide_node_t *node = *place;
    if (node->owner != message) {
      stream->last = node;
      place = &node->next_in_stream;
      continue;
    }
    *place = node->next_in_stream;
    tide_transmitter_dequeue(t, stream, node);
    stream->nodes--;
    if (t->current_node == node) t->current_node = NULL;
    keep(message, node);
  }
  if (t->current_node && t->current_node->owner == message) t->current_node->owner = NULL;
  message->lost = true;
  message->last = NULL;
  message->parts = 0u;
  stream->long_message = NULL;
  stream->sending = first_unsent(stream);
}

bool tide_transmitter_give_up_long(tide_transmitter_t *t, tide_long_message_t *message, int64_t now_ns) {
  tide_output_stream_t *stream = message->stream != 0u ? tide_transmitter_find_stream(t, message->stream) : NULL;
  if (!stream || stream->long_message != message) return false;
  tide_transmitter_lose_long(t, stream);
  t->paused = true;
  /* Its numbers leave the window, so that what still comes of them acknowledges nothing. */
  stream->first_unacknowledged = stream->next_to_send;
  stream->resent = 0u;
  if (t->busy && t->current_kind == FRAME_NODE && t->current_stream == stream) t->current_kind = FRAME_OF_OLD_SESSION;
  tide_transmitter_refresh_stream(t, stream, now_ns);
  tide_transmitter_check(t);
  return true;
}
#else
int tide_transmitter_submit_part(tide_transmitter_t *t, tide_long_message_t *message, tide_node_t *node, uint8_t id,
                                 bool complete, int64_t now_ns) {
  (void)t;
  (void)message;
  (void)node;
  (void)id;
  (void)complete;
  (void)now_ns;
  return TIDE_ERROR_UNSUPPORTED;
}
bool tide_transmitter_give_up_long(tide_transmitter_t *t, tide_long_message_t *message, int64_t now_ns) {
  (void)t;
  (void)message;
  (void)now_ns;
  return false;
}
#endif
