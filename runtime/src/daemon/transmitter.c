/* SPDX-License-Identifier: Apache-2.0 */
/* Set-up, sessions and settings. */
#include <string.h>

#include "transmitter_internal.h"

enum { DEFAULT_SESSION = 0x81 };
#define PERIOD_DEFAULT_NS INT64_C(100000000)
#define RANK_ORDER_MASK ((INT64_C(1) << TRANSMITTER_RANK_BITS) - 1)

/* ---- set-up ---- */

static int check_config(const tide_transmitter_config_t *config) {
  if (!config->nodes || !config->execution_storage || !config->pending_storage || !config->classes || !config->streams)
    return TIDE_ERROR_ARGUMENT;
  if (config->class_count == 0u || config->class_count > 4u || config->stream_count == 0u) return TIDE_ERROR_ARGUMENT;
  if (config->stream_count > UINT16_MAX) return TIDE_ERROR_ARGUMENT;
  if (config->message_bytes < 64u || config->message_bytes % 4u != 0u) return TIDE_ERROR_ARGUMENT;
  if (config->window > 16u || config->heartbeat_delay_ns < -1) return TIDE_ERROR_ARGUMENT;
  if (config->heartbeat_period_ns < 0 || config->heartbeat_floor_ns < 0) return TIDE_ERROR_ARGUMENT;
  for (size_t i = 0; !TIDE_HOLD && i < sizeof config->hold_levels / sizeof config->hold_levels[0]; ++i)
    if (config->hold_levels[i] != 0u || config->hold_until_acknowledged) return TIDE_ERROR_UNSUPPORTED;
  size_t nodes = 0;
  uint32_t smaller = 0;
  for (size_t i = 0; i < config->class_count; ++i) {
    const tide_size_class_t *size = &config->classes[i];
    if (!size->storage || size->node_bytes % 4u != 0u || size->node_bytes <= smaller) return TIDE_ERROR_ARGUMENT;
    smaller = size->node_bytes;
    nodes += size->count;
  }
  return nodes == config->node_count && nodes > 0u ? TIDE_OK : TIDE_ERROR_ARGUMENT;
}

static void fill_pool(tide_transmitter_t *t) {
  tide_node_t *node = t->config.nodes;
  for (size_t i = 0; i < t->config.class_count; ++i) {
    const tide_size_class_t *size = &t->config.classes[i];
    for (uint16_t n = 0; n < size->count; ++n, ++node) {
      *node = (tide_node_t){.bytes = size->storage + (size_t)n * size->node_bytes,
                            .capacity = size->node_bytes,
                            .size_class = (uint8_t)i,
                            .next_free = t->free_nodes[i]};
      t->free_nodes[i] = node;
    }
#if TIDE_RESERVATIONS
    t->free_counts[i] = size->count;
#endif
  }
}

static void set_fragment_bytes(tide_transmitter_t *t) {
  t->fragment_bytes =
      t->config.message_bytes - (uint32_t)tide_xrce_header_bytes(t->session) - TIDE_XRCE_SUBMESSAGE_HEADER_BYTES;
}

int tide_transmitter_init(tide_transmitter_t *t, const tide_transmitter_config_t *config) {
  if (!t || !config) return TIDE_ERROR_ARGUMENT;
  const int status = TIDE_CONFIG_CHECKS ? check_config(config) : TIDE_OK;
  if (status != TIDE_OK) return status;
  memset(t, 0, sizeof *t);
  t->config = *config;
  if (t->config.window == 0u) t->config.window = TIDE_TRANSMITTER_WINDOW_DEFAULT;
  if (t->config.heartbeat_period_ns == 0) t->config.heartbeat_period_ns = PERIOD_DEFAULT_NS;
  t->session = DEFAULT_SESSION;
  set_fragment_bytes(t);
  tide_queue_init(&t->execution_buffer, config->execution_storage, config->node_count);
  tide_queue_init(&t->pending_buffer, config->pending_storage, config->node_count);
  for (size_t i = 0; i < config->stream_count; ++i) tide_transmitter_clear_stream(&config->streams[i], 0u);
  fill_pool(t);
  tide_transmitter_check(t);
  return TIDE_OK;
}

void tide_transmitter_set_session(tide_transmitter_t *t, uint8_t session, uint32_t key) {
  const bool same_header = tide_xrce_header_bytes(session) == tide_xrce_header_bytes(t->session);
  t->session = session;
  t->key = key;
  if (same_header) return;
  set_fragment_bytes(t);
  tide_transmitter_reset(t, true); /* what was cut into fragments is cut anew */
}
/* ---- sessions ---- */

static void discard_stream(tide_transmitter_t *t, tide_output_stream_t *stream) {
  while (TIDE_RELIABLE_STREAMS && stream->first) {
    tide_node_t *node = stream->first;
    tide_transmitter_unlink_node(stream, node);
    tide_transmitter_release_node(t, stream, node, TIDE_NODE_DISCARDED);
  }
}

static void restart_stream(tide_transmitter_t *t, tide_output_stream_t *stream) {
  if (!TIDE_STREAM_IS_RELIABLE(stream->id)) { /* what on_done has submitted meanwhile belongs to the new session */
    const uint16_t nodes = stream->nodes;
    tide_transmitter_clear_stream(stream, nodes > 0u ? stream->id : 0u);
    stream->nodes = stream->queued = nodes;
    return;
  }
  for (tide_node_t *node = stream->first; node; node = node->next_in_stream) {
    tide_transmitter_dequeue(t, stream, node);
    transmitter_stop_pending(t, node);
    if (TIDE_MESSAGE_EXPIRY && node->expires_ns != TIDE_FOREVER)
      (void)tide_queue_push(&t->pending_buffer, &node->pending, node->expires_ns);
    node->state = NODE_SUBMITTED;
    tide_transmitter_start_over(t, node);
  }
  tide_node_t *const first = stream->first, *const last = stream->last;
  const uint16_t nodes = stream->nodes;
  tide_transmitter_clear_stream(stream, first ? stream->id : 0u);
  stream->first = first;
  stream->last = last;
  stream->sending = first;
  stream->nodes = nodes;
  if (first) tide_transmitter_enqueue(t, stream, first);
}

void tide_transmitter_reset(tide_transmitter_t *t, bool keep) {
  for (size_t i = 0; i < t->config.node_count; ++i) {
    tide_node_t *node = &t->config.nodes[i];
    if (node->state == NODE_SUBMITTED && !transmitter_is_reliable(node))
      tide_transmitter_release_node(t, tide_transmitter_find_stream(t, node->stream), node, TIDE_NODE_DISCARDED);
  }
  for (size_t i = 0; i < t->stream_places; ++i) {
    if (t->config.streams[i].id == 0u) continue;
    tide_transmitter_lose_long(t, &t->config.streams[i]);
    if (!keep) discard_stream(t, &t->config.streams[i]);
    restart_stream(t, &t->config.streams[i]);
  }
  while (t->stream_places > 0u && t->config.streams[t->stream_places - 1u].id == 0u) t->stream_places--;
  if (t->busy && t->current_kind != FRAME_CONTROL) t->current_kind = FRAME_OF_OLD_SESSION;
  tide_transmitter_check(t);
}

static tide_node_t *take_back_stream(tide_transmitter_t *t, tide_output_stream_t *stream, tide_node_t *taken) {
  tide_transmitter_lose_long(t, stream);
  while (stream->first) {
    tide_node_t *node = stream->first;
    tide_transmitter_unlink_node(stream, node);
    tide_transmitter_dequeue(t, stream, node);
    transmitter_stop_pending(t, node);
    stream->nodes--;
    if (t->current_node == node) t->current_node = NULL; /* the wire may read on; that frame means nothing any more */
    node->state = NODE_OWNED;
    tide_node_t **place = &taken; /* the submissions of each stream are in order: a merge by rank's low bits */
    while (*place && ((*place)->rank & RANK_ORDER_MASK) < (node->rank & RANK_ORDER_MASK))
      place = &(*place)->next_in_stream;
    node->next_in_stream = *place;
    *place = node;
  }
  return taken;
}

tide_node_t *tide_transmitter_take_back(tide_transmitter_t *t) {
  tide_node_t *taken = NULL;
  for (size_t i = 0; TIDE_RELIABLE_STREAMS && i < t->stream_places; ++i) {
    tide_output_stream_t *stream = &t->config.streams[i];
    if (TIDE_STREAM_IS_RELIABLE(stream->id)) taken = take_back_stream(t, stream, taken);
  }
  tide_transmitter_reset(t, false);
  return taken;
}

int tide_transmitter_set_heartbeat_delay(tide_transmitter_t *t, int64_t delay_ns) {
  if (delay_ns < -1) return TIDE_ERROR_ARGUMENT;
  t->config.heartbeat_delay_ns = delay_ns;
  return TIDE_OK;
}

int tide_transmitter_hold_level(tide_transmitter_t *t, uint8_t level, bool hold) {
  if (level > TIDE_LEVEL_MAXIMUM) return TIDE_ERROR_ARGUMENT;
  if (!TIDE_HOLD && hold) return TIDE_ERROR_UNSUPPORTED;
  const uint32_t bit = UINT32_C(1) << level % 32u;
  uint32_t *const levels = &t->config.hold_levels[level / 32u];
  *levels = hold ? *levels | bit : *levels & ~bit;
  return TIDE_OK;
}

void tide_transmitter_pause_streams(tide_transmitter_t *t, bool paused) { t->paused = paused; }

bool tide_transmitter_is_idle(const tide_transmitter_t *t, uint8_t id) {
  if (id != 0u) {
    const tide_output_stream_t *stream = tide_transmitter_find_stream(t, id);
    return !stream || stream->nodes == 0u;
  }
  for (size_t i = 0; i < t->stream_places; ++i)
    if (t->config.streams[i].nodes > 0u) return false;
  return true;
}
