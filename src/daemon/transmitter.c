/* SPDX-License-Identifier: Apache-2.0 */
/* Invariants.
 * A reliable node is in execution_buffer exactly when one of its fragments could go now: something is flagged for
 * resending, or it is its stream's `sending` and the window is open. So at most one unsent node of a stream is in the
 * heap, an acknowledgment touches at most a window of nodes, and a full window blocks nobody else.
 * Sequence numbers are given when a fragment leaves for the first time. Since a stream is first come, first served
 * this is the same as giving them at submission, but what expires unsent leaves no hole.
 * A node whose time is over while it is on the wire (NODE_RETURNING) is given back when the wire lets go of it. */
#include "tide/transmitter.h"

#include <string.h>

#include "tide/platform.h"
#include "tide/status.h"

enum { NODE_FREE, NODE_OWNED, NODE_SUBMITTED, NODE_OVERDUE, NODE_RETURNING };
enum { FRAME_NONE, FRAME_CONTROL, FRAME_ACKNACK, FRAME_HEARTBEAT, FRAME_NODE, FRAME_OF_OLD_SESSION };
enum { DEFAULT_SESSION = 0x81, HEADER_OF_SET_SESSION = 0xFF, ACKNACK_BYTES = 5, HEARTBEAT_BYTES = 5 };
enum { SLOW_AFTER_HEARTBEATS = 8, DELAY_SHIFT_MAXIMUM = 5 };
#define MILLISECOND INT64_C(1000000)
#define DELAY_MINIMUM_NS (2 * MILLISECOND)
#define DELAY_UNMEASURED_NS (20 * MILLISECOND)
#define DELAY_MAXIMUM_NS (2000 * MILLISECOND)
#define PERIOD_DEFAULT_NS (100 * MILLISECOND)
#define ROUND_TRIP_MAXIMUM_NS (10000 * MILLISECOND)
#define RANK_BITS 47
#define RANK_ORDER_MASK ((INT64_C(1) << RANK_BITS) - 1)

static const uint8_t padding[3] = {0, 0, 0};

static tide_node_t *node_of_pending(tide_queue_entry_t *entry) {
  return (tide_node_t *)(void *)((uint8_t *)entry - offsetof(tide_node_t, pending));
}
static uint32_t ticks_of(int64_t time_ns) { return (uint32_t)((uint64_t)time_ns >> 10); }
static int64_t elapsed_ns(const tide_output_stream_t *stream, uint16_t sequence, int64_t now_ns) {
  return (int64_t)(uint32_t)(ticks_of(now_ns) - stream->sent_ticks[sequence % 16u]) << 10;
}
static uint16_t in_flight(const tide_output_stream_t *stream) {
  return (uint16_t)(stream->next_to_send - stream->first_unacknowledged);
}
static bool has_room(const tide_transmitter_t *t, const tide_output_stream_t *stream) {
  return in_flight(stream) < t->config.window;
}
static bool is_reliable(const tide_node_t *node) { return TIDE_STREAM_IS_RELIABLE(node->stream); }
static int32_t priority_at(uint8_t stream, int32_t position) {
  return (int32_t)TIDE_STREAM_LEVEL(stream) << 8 | position;
}
static int32_t priority_of_rank(int64_t rank) { return 0xFFFF - (int32_t)(rank >> RANK_BITS); }
static uint16_t low_bits(uint32_t count) { return (uint16_t)(count >= 16u ? 0xFFFFu : (1u << count) - 1u); }
static uint16_t shifted(uint32_t bits, uint32_t count) { return (uint16_t)(count >= 16u ? 0u : bits >> count); }
static bool has_bit(uint32_t bits, uint32_t number) { return (bits >> number & 1u) != 0u; }

static tide_output_stream_t *find_stream(const tide_transmitter_t *t, uint8_t id) {
  for (size_t i = 0; i < t->stream_places; ++i)
    if (t->config.streams[i].id == id) return &t->config.streams[i];
  return NULL;
}

static void clear_stream(tide_output_stream_t *stream, uint8_t id) {
  *stream = (tide_output_stream_t){.id = id, .heartbeat_at_ns = TIDE_FOREVER};
}

static tide_output_stream_t *take_stream(tide_transmitter_t *t, uint8_t id) {
  tide_output_stream_t *stream = find_stream(t, id);
  if (stream || id == 0u) return stream;
  stream = find_stream(t, 0u);
  if (!stream && t->stream_places < t->config.stream_count) stream = &t->config.streams[t->stream_places++];
  if (stream) clear_stream(stream, id);
  return stream;
}

/* ---- set-up ---- */

static int check_config(const tide_transmitter_config_t *config) {
  if (!config->nodes || !config->execution_storage || !config->pending_storage || !config->classes || !config->streams)
    return TIDE_ERROR_ARGUMENT;
  if (config->class_count == 0u || config->class_count > 4u || config->stream_count == 0u) return TIDE_ERROR_ARGUMENT;
  if (config->stream_count > UINT16_MAX) return TIDE_ERROR_ARGUMENT;
  if (config->message_bytes < 64u || config->message_bytes % 4u != 0u) return TIDE_ERROR_ARGUMENT;
  if (config->window > 16u || config->heartbeat_delay_ns < -1) return TIDE_ERROR_ARGUMENT;
  if (config->heartbeat_period_ns < 0) return TIDE_ERROR_ARGUMENT;
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
  for (size_t i = 0; i < config->stream_count; ++i) clear_stream(&config->streams[i], 0u);
  fill_pool(t);
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

/* ---- nodes ---- */

static void free_node(tide_transmitter_t *t, tide_node_t *node) {
  node->state = NODE_FREE;
  node->stream = 0u;
  node->next_free = t->free_nodes[node->size_class];
  t->free_nodes[node->size_class] = node;
  t->nodes_in_use--;
}

static void finish_node(tide_transmitter_t *t, tide_node_t *node, tide_node_outcome_t outcome) {
  if (outcome == TIDE_NODE_ACKNOWLEDGED) TIDE_COUNT(t->counters.acknowledged, 1u);
  if (outcome == TIDE_NODE_EXPIRED) TIDE_COUNT(t->counters.expired, 1u);
  if (outcome == TIDE_NODE_EVICTED) TIDE_COUNT(t->counters.evicted, 1u);
  if (t->config.on_done) t->config.on_done(t->config.context, node, outcome);
  free_node(t, node);
}

static void enqueue(tide_transmitter_t *t, tide_output_stream_t *stream, tide_node_t *node) {
  if (tide_queue_push(&t->execution_buffer, &node->entry, node->rank) == TIDE_OK) stream->queued++;
}

static void dequeue(tide_transmitter_t *t, tide_output_stream_t *stream, tide_node_t *node) {
  if (!tide_queue_contains(&node->entry)) return;
  tide_queue_remove(&t->execution_buffer, &node->entry);
  stream->queued--;
}

/* The node is no longer in its stream's list: give it back, now or when the wire lets go of it. */
static void release_node(tide_transmitter_t *t, tide_output_stream_t *stream, tide_node_t *node,
                         tide_node_outcome_t outcome) {
  dequeue(t, stream, node);
  if (TIDE_MESSAGE_EXPIRY) tide_queue_remove(&t->pending_buffer, &node->pending);
  stream->nodes--;
  if (t->busy && t->current_node == node) {
    node->state = NODE_RETURNING;
    t->current_outcome = (uint8_t)outcome;
  } else {
    finish_node(t, node, outcome);
  }
}

static tide_node_t *least_urgent_waiting(const tide_transmitter_t *t, uint32_t bytes, tide_priority_t below) {
  tide_node_t *found = NULL;
  for (size_t i = 0; i < t->config.node_count; ++i) {
    tide_node_t *node = &t->config.nodes[i];
    if (node->state != NODE_SUBMITTED || is_reliable(node) || !tide_queue_contains(&node->entry)) continue;
    if (node->capacity < bytes || node->priority >= below) continue;
    if (!found || node->priority < found->priority || (node->priority == found->priority && node->rank < found->rank))
      found = node;
  }
  return found;
}

static tide_node_t *free_node_of(const tide_transmitter_t *t, uint32_t bytes) {
  for (size_t i = 0; i < t->config.class_count; ++i)
    if (t->config.classes[i].node_bytes >= bytes && t->free_nodes[i]) return t->free_nodes[i];
  return NULL;
}

uint32_t tide_transmitter_free_bytes(const tide_transmitter_t *t, uint32_t bytes) {
  const tide_node_t *node = free_node_of(t, bytes);
  return node ? node->capacity : 0u;
}

int tide_transmitter_acquire(tide_transmitter_t *t, uint32_t bytes, tide_priority_t priority, tide_node_t **result) {
  *result = NULL;
  if (bytes > t->config.classes[t->config.class_count - 1u].node_bytes) {
    TIDE_COUNT(t->counters.refused_large, 1u);
    return TIDE_ERROR_TOO_LARGE;
  }
  tide_node_t *node = free_node_of(t, bytes);
  if (!node) {
    node = least_urgent_waiting(t, bytes, priority);
    if (!node) {
      TIDE_COUNT(t->counters.refused_full, 1u);
      return TIDE_ERROR_FULL;
    }
    release_node(t, find_stream(t, node->stream), node, TIDE_NODE_EVICTED);
  }
  t->free_nodes[node->size_class] = node->next_free;
  node->state = NODE_OWNED;
  node->priority = priority;
  node->length = 0u;
  node->expires_ns = TIDE_FOREVER;
  node->owner = NULL;
  ++t->nodes_in_use;
  if (TIDE_COUNTERS && t->nodes_in_use > t->counters.nodes_in_use_maximum)
    t->counters.nodes_in_use_maximum = t->nodes_in_use;
  *result = node;
  return TIDE_OK;
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

static int64_t heartbeat_delay_ns(const tide_transmitter_t *t) {
  if (t->config.heartbeat_delay_ns >= 0) return t->config.heartbeat_delay_ns;
  int64_t delay = t->round_trip_ns > 0 ? t->round_trip_ns + 4 * t->round_trip_deviation_ns : DELAY_UNMEASURED_NS;
  if (delay < DELAY_MINIMUM_NS) delay = DELAY_MINIMUM_NS;
  delay <<= t->delay_shift;
  return delay < DELAY_MAXIMUM_NS ? delay : DELAY_MAXIMUM_NS;
}

static int64_t repeat_delay_ns(const tide_transmitter_t *t, const tide_output_stream_t *stream) {
  const uint8_t count = stream->heartbeats_unanswered;
  int64_t delay = t->config.heartbeat_period_ns;
  if (count > SLOW_AFTER_HEARTBEATS) {
    const unsigned slower = (unsigned)(count - SLOW_AFTER_HEARTBEATS) / 4u;
    return delay << (slower < 3u ? slower : 3u);
  }
  if (t->config.heartbeat_delay_ns >= 0) return delay;
  const int64_t first = heartbeat_delay_ns(t);
  const int64_t doubled = first << count;
  if (doubled < delay) delay = doubled;
  return delay > first ? delay : first;
}

static bool is_on_wire(const tide_transmitter_t *t, const tide_output_stream_t *stream) {
  return t->busy && t->current_kind == FRAME_NODE && t->current_stream == stream;
}

/* After any change: what the stream could send is queued, and silence has its time limit, counted from the end of the
 * last frame. */
static void refresh_stream(tide_transmitter_t *t, tide_output_stream_t *stream, int64_t now_ns) {
  if (!TIDE_RELIABLE_STREAMS) return;
  if (stream->sending && has_room(t, stream)) enqueue(t, stream, stream->sending);
  if (in_flight(stream) == 0u && !stream->skipped) {
    stream->heartbeat_at_ns = TIDE_FOREVER;
    stream->heartbeat_due = false;
    stream->heartbeats_unanswered = 0u;
  } else if (stream->queued > 0u || is_on_wire(t, stream)) {
    stream->heartbeat_at_ns = TIDE_FOREVER;
  } else if (!stream->heartbeat_due && stream->heartbeat_at_ns == TIDE_FOREVER) {
    stream->heartbeat_at_ns = now_ns + heartbeat_delay_ns(t);
  }
}

static void append_node(tide_output_stream_t *stream, tide_node_t *node) {
  node->next_in_stream = NULL;
  if (stream->last)
    stream->last->next_in_stream = node;
  else
    stream->first = node;
  stream->last = node;
  if (!stream->sending) stream->sending = node;
}

static void unlink_node(tide_output_stream_t *stream, tide_node_t *node) {
  tide_node_t *before = NULL;
  if (stream->first == node) {
    stream->first = node->next_in_stream;
  } else {
    for (before = stream->first; before->next_in_stream != node; before = before->next_in_stream) continue;
    before->next_in_stream = node->next_in_stream;
  }
  if (stream->last == node) stream->last = before;
  if (stream->sending == node) stream->sending = node->next_in_stream;
}

static void start_over(const tide_transmitter_t *t, tide_node_t *node) {
  node->next_fragment = 0u;
  node->window_base = 0u;
  node->resend = 0u;
  node->fragment_count = 1u;
  if (TIDE_FRAGMENTS && node->length + tide_xrce_header_bytes(t->session) > t->config.message_bytes)
    node->fragment_count = (uint16_t)((node->length + t->fragment_bytes - 1u) / t->fragment_bytes);
}

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
static int64_t rank_of(const tide_transmitter_t *t, const tide_output_stream_t *stream, const tide_node_t *node) {
  int32_t priority = priority_at(stream->id, node->priority & 0xFF);
  if (TIDE_RELIABLE_STREAMS && stream->last && priority_of_rank(stream->last->rank) < priority)
    priority = priority_of_rank(stream->last->rank);
  return (int64_t)((uint64_t)(uint32_t)(0xFFFF - priority) << RANK_BITS | t->submissions);
}

int tide_transmitter_submit(tide_transmitter_t *t, tide_node_t *node, uint8_t id, int64_t now_ns) {
  int status = check_submission(t, node, id);
  tide_output_stream_t *stream = status == TIDE_OK ? take_stream(t, id) : NULL;
  if (status == TIDE_OK && !stream) status = TIDE_ERROR_CAPACITY_STREAMS;
  if (status != TIDE_OK) {
    if (status == TIDE_ERROR_TOO_LARGE) TIDE_COUNT(t->counters.refused_large, 1u);
    tide_transmitter_abandon(t, node);
    return status;
  }
  node->rank = rank_of(t, stream, node);
  t->submissions++;
  node->stream = id;
  node->state = NODE_SUBMITTED;
  node->submitted_ns = now_ns;
  start_over(t, node);
  stream->nodes++;
  TIDE_COUNT(t->counters.submitted, 1u);
  if (TIDE_MESSAGE_EXPIRY && node->expires_ns != TIDE_FOREVER)
    (void)tide_queue_push(&t->pending_buffer, &node->pending, node->expires_ns);
  if (is_reliable(node)) {
    append_node(stream, node);
    refresh_stream(t, stream, now_ns);
  } else {
    enqueue(t, stream, node);
  }
  return TIDE_OK;
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
  tide_output_stream_t *stream = take_stream(t, id);
  if (!stream) return TIDE_ERROR_CAPACITY_STREAMS;
  stream->acknack_first = first;
  stream->acknack_missing = missing;
  stream->acknack_due = true;
  return TIDE_OK;
}

/* ---- what goes next ---- */

typedef struct choice {
  uint8_t kind;
  int32_t priority; /* ACKNACKs and HEARTBEATs stand above every position of their level */
  size_t control;
  tide_output_stream_t *stream;
  tide_node_t *node;
} choice_t;

static void choose_control(const tide_transmitter_t *t, choice_t *best) {
  for (size_t i = 0; i < t->control_count; ++i)
    if (t->control[i].priority > best->priority)
      *best = (choice_t){.kind = FRAME_CONTROL, .priority = t->control[i].priority, .control = i};
}

/* ACKNACKs are seen before HEARTBEATs, so that at the same level they go first. */
static void choose_answer(const tide_transmitter_t *t, choice_t *best, uint8_t kind) {
  if (!TIDE_RELIABLE_STREAMS) return;
  for (size_t i = 0; i < t->stream_places; ++i) {
    tide_output_stream_t *stream = &t->config.streams[i];
    if (!(kind == FRAME_ACKNACK ? stream->acknack_due : stream->heartbeat_due)) continue;
    const int32_t priority = priority_at(stream->id, 0xFF);
    if (priority > best->priority) *best = (choice_t){.kind = kind, .priority = priority, .stream = stream};
  }
}

static bool holds(const tide_transmitter_t *t, uint8_t level) {
  return t->config.hold_until_acknowledged || has_bit(t->config.hold_levels[level / 32u], level % 32u);
}

/* The most urgent level that keeps less urgent ones off the wire; none: TIDE_PRIORITY_NONE. */
static int32_t held_level(const tide_transmitter_t *t) {
  int32_t level = TIDE_PRIORITY_NONE;
  for (size_t i = 0; i < t->stream_places; ++i) {
    const tide_output_stream_t *stream = &t->config.streams[i];
    const uint8_t own = TIDE_STREAM_LEVEL(stream->id);
    if (stream->id != 0u && in_flight(stream) > 0u && own > level && holds(t, own)) level = own;
  }
  return level;
}

static void choose_node(const tide_transmitter_t *t, choice_t *best) {
  tide_node_t *node = (tide_node_t *)(void *)tide_queue_head(&t->execution_buffer);
  if (!node) return;
  if (TIDE_RELIABLE_STREAMS && TIDE_STREAM_LEVEL(node->stream) < held_level(t)) return;
  const int32_t priority = priority_of_rank(node->rank);
  if (priority > best->priority) *best = (choice_t){.kind = FRAME_NODE, .priority = priority, .node = node};
}

static choice_t choose(const tide_transmitter_t *t) {
  choice_t best = {.kind = FRAME_NONE, .priority = TIDE_PRIORITY_NONE};
  choose_control(t, &best);
  if (t->paused) return best;
  choose_answer(t, &best, FRAME_ACKNACK);
  choose_answer(t, &best, FRAME_HEARTBEAT);
  choose_node(t, &best);
  return best;
}

static void start_frame(const tide_transmitter_t *t, tide_frame_parts_t *frame, uint8_t session, uint8_t stream,
                        uint16_t sequence) {
  const tide_xrce_header_t header = {.session = session, .stream = stream, .sequence = sequence, .key = t->key};
  frame->head = frame->head_storage;
  frame->head_bytes = tide_xrce_put_header(frame->head_storage, &header);
  frame->body = NULL;
  frame->body_bytes = 0u;
  frame->tail = NULL;
  frame->tail_bytes = 0u;
  frame->awaited = false;
}

static void build_control(tide_transmitter_t *t, size_t index, tide_frame_parts_t *frame) {
  const uint8_t session = t->control[index].session;
  start_frame(t, frame, session == HEADER_OF_SET_SESSION ? t->session : session, TIDE_XRCE_STREAM_NONE, 0u);
  memcpy(frame->head_storage + frame->head_bytes, t->control[index].bytes, t->control[index].length);
  frame->head_bytes += t->control[index].length;
  t->current_control = (uint8_t)index;
}

static void build_answer(tide_transmitter_t *t, tide_output_stream_t *stream, uint8_t kind, tide_frame_parts_t *frame) {
  tide_cdr_t cdr;
  start_frame(t, frame, t->session, TIDE_XRCE_STREAM_NONE, 0u);
  uint8_t *bytes = frame->head_storage + frame->head_bytes;
  tide_cdr_writer(&cdr, bytes + TIDE_XRCE_SUBMESSAGE_HEADER_BYTES, ACKNACK_BYTES);
  if (kind == FRAME_ACKNACK) {
    const tide_xrce_acknack_t body = {stream->acknack_first, stream->acknack_missing, stream->id};
    tide_xrce_put_submessage_header(bytes, TIDE_XRCE_ACKNACK, TIDE_XRCE_FLAG_LITTLE_ENDIAN, ACKNACK_BYTES);
    tide_xrce_put_acknack(&cdr, &body);
    stream->acknack_due = false;
    TIDE_COUNT(t->counters.acknacks, 1u);
  } else {
    const tide_xrce_heartbeat_t body = {stream->first_unacknowledged, (uint16_t)(stream->next_to_send - 1u),
                                        stream->id};
    tide_xrce_put_submessage_header(bytes, TIDE_XRCE_HEARTBEAT, TIDE_XRCE_FLAG_LITTLE_ENDIAN, HEARTBEAT_BYTES);
    tide_xrce_put_heartbeat(&cdr, &body);
    stream->heartbeat_due = false;
    frame->awaited = true;
    if (stream->heartbeats_unanswered < UINT8_MAX) stream->heartbeats_unanswered++;
    TIDE_COUNT(t->counters.heartbeats, 1u);
  }
  frame->head_bytes += TIDE_XRCE_SUBMESSAGE_HEADER_BYTES + cdr.position;
  t->current_stream = stream;
}

/* Reliable: the fragment to go now, and the books as if it had gone: its acknowledgment may overtake the report that
 * its last byte has left. */
static void take_fragment(tide_transmitter_t *t, tide_output_stream_t *stream, tide_node_t *node, int64_t now_ns) {
  uint16_t offset = 0u;
  if (node->resend != 0u) {
    while (!has_bit(node->resend, offset)) offset++;
    node->resend &= (uint16_t)(node->resend - 1u);
    t->current_fragment = (uint16_t)(node->window_base + offset);
    t->current_sequence = (uint16_t)(node->first_sequence + t->current_fragment);
    stream->resent |= (uint16_t)(1u << (uint16_t)(t->current_sequence - stream->first_unacknowledged));
    TIDE_COUNT(t->counters.retransmissions, 1u);
  } else {
    if (node->next_fragment == 0u) node->first_sequence = stream->next_to_send;
    t->current_fragment = node->next_fragment++;
    t->current_sequence = stream->next_to_send++;
    if (node->next_fragment == node->fragment_count) stream->sending = node->next_in_stream;
  }
  stream->sent_ticks[t->current_sequence % 16u] = ticks_of(now_ns);
  if (!tide_queue_contains(&node->pending)) (void)tide_queue_push(&t->pending_buffer, &node->pending, node->expires_ns);
  if (node->resend == 0u && !(stream->sending == node && has_room(t, stream))) dequeue(t, stream, node);
  refresh_stream(t, stream, now_ns);
}

static void build_node(tide_transmitter_t *t, tide_node_t *node, int64_t now_ns, tide_frame_parts_t *frame) {
  tide_output_stream_t *stream = find_stream(t, node->stream);
  t->current_stream = stream;
  t->current_node = node;
  if (is_reliable(node)) {
    take_fragment(t, stream, node, now_ns);
  } else {
    dequeue(t, stream, node);
    t->current_sequence = stream->next_sequence;
  }
  start_frame(t, frame, t->session, node->stream, t->current_sequence);
  frame->awaited = is_reliable(node);
  frame->body = node->bytes;
  frame->body_bytes = node->length;
  if (node->fragment_count > 1u) {
    const uint32_t start = t->current_fragment * t->fragment_bytes;
    const bool last = t->current_fragment + 1u == node->fragment_count;
    const uint32_t bytes = last ? node->length - start : t->fragment_bytes;
    frame->body = node->bytes + start;
    frame->body_bytes = bytes;
    const uint8_t flags = (uint8_t)(TIDE_XRCE_FLAG_LITTLE_ENDIAN | (last ? TIDE_XRCE_FLAG_LAST_FRAGMENT : 0u));
    tide_xrce_put_submessage_header(frame->head_storage + frame->head_bytes, TIDE_XRCE_FRAGMENT, flags,
                                    (uint16_t)bytes);
    frame->head_bytes += TIDE_XRCE_SUBMESSAGE_HEADER_BYTES;
    TIDE_COUNT(t->counters.fragments, 1u);
  }
  if (t->config.pad_last) {
    frame->tail = padding;
    frame->tail_bytes = (4u - frame->body_bytes % 4u) % 4u;
  }
}

/* Returns the time of the next HEARTBEAT that is not due yet. */
static int64_t mark_due_heartbeats(tide_transmitter_t *t, int64_t now_ns) {
  int64_t next_ns = TIDE_FOREVER;
  if (!TIDE_RELIABLE_STREAMS) return next_ns;
  for (size_t i = 0; i < t->stream_places; ++i) {
    tide_output_stream_t *stream = &t->config.streams[i];
    if (stream->id == 0u) continue;
    if (stream->heartbeat_at_ns <= now_ns) {
      stream->heartbeat_at_ns = TIDE_FOREVER;
      stream->heartbeat_due = true;
    }
    if (stream->heartbeat_at_ns < next_ns) next_ns = stream->heartbeat_at_ns;
  }
  return next_ns;
}

int tide_transmitter_next(tide_transmitter_t *t, int64_t now_ns, tide_frame_parts_t *frame) {
  if (t->busy) return 0;
  (void)mark_due_heartbeats(t, now_ns);
  const choice_t choice = choose(t);
  if (choice.kind == FRAME_NONE) return 0;
  t->busy = true;
  t->current_kind = choice.kind;
  t->current_node = NULL;
  frame->priority = (tide_priority_t)choice.priority;
  if (choice.kind == FRAME_CONTROL)
    build_control(t, choice.control, frame);
  else if (choice.kind == FRAME_NODE)
    build_node(t, choice.node, now_ns, frame);
  else if (TIDE_RELIABLE_STREAMS)
    build_answer(t, choice.stream, choice.kind, frame);
  TIDE_COUNT(t->counters.frames, 1u);
  return 1;
}

/* ---- the wire is done ---- */

static void remove_control(tide_transmitter_t *t) {
  t->control_count--;
  for (size_t i = t->current_control; i < t->control_count; ++i) t->control[i] = t->control[i + 1u];
}

static void expire_node(tide_transmitter_t *t, tide_output_stream_t *stream, tide_node_t *node, int64_t now_ns);

/* A node that ran out of time while others of its stream stood before it may be at the front now. */
static void expire_overdue(tide_transmitter_t *t, tide_output_stream_t *stream, int64_t now_ns) {
  while (TIDE_RELIABLE_STREAMS && stream->first && stream->first->state == NODE_OVERDUE &&
         !(t->busy && t->current_node == stream->first))
    expire_node(t, stream, stream->first, now_ns);
}

static void node_sent(tide_transmitter_t *t, tide_node_t *node, int64_t now_ns) {
  tide_output_stream_t *stream = t->current_stream;
  if (!is_reliable(node)) {
    stream->next_sequence++;
    if (node->state == NODE_SUBMITTED) release_node(t, stream, node, TIDE_NODE_SENT);
    return;
  }
  if (node->state != NODE_RETURNING) {
    node->sent_ns = now_ns;
    stream->sent_ticks[t->current_sequence % 16u] = ticks_of(now_ns);
  }
  stream->heartbeat_at_ns = TIDE_FOREVER; /* counts from the last frame */
  refresh_stream(t, stream, now_ns);
  expire_overdue(t, stream, now_ns);
}

static void give_back_current(tide_transmitter_t *t, tide_node_t *node) {
  if (node && node->state == NODE_RETURNING) finish_node(t, node, (tide_node_outcome_t)t->current_outcome);
}

void tide_transmitter_sent(tide_transmitter_t *t, int64_t now_ns) {
  if (!t->busy) return;
  tide_node_t *node = t->current_node;
  tide_output_stream_t *stream = t->current_stream;
  t->busy = false;
  t->current_node = NULL;
  switch (t->current_kind) {
    case FRAME_CONTROL:
      remove_control(t);
      break;
    case FRAME_HEARTBEAT:
      if (!TIDE_RELIABLE_STREAMS) break;
      if (in_flight(stream) > 0u || stream->skipped) stream->heartbeat_at_ns = now_ns + repeat_delay_ns(t, stream);
      refresh_stream(t, stream, now_ns);
      break;
    case FRAME_NODE:
      node_sent(t, node, now_ns);
      break;
    default:
      break;
  }
  give_back_current(t, node);
}

static void queue_again(tide_transmitter_t *t, tide_node_t *node) {
  tide_output_stream_t *stream = t->current_stream;
  const bool acknowledged = is_reliable(node) && t->current_fragment < node->window_base;
  if (node->state != NODE_RETURNING && !acknowledged) {
    if (is_reliable(node)) node->resend |= (uint16_t)(1u << (uint16_t)(t->current_fragment - node->window_base));
    enqueue(t, stream, node);
  }
  /* nothing of it goes now, so nothing would ask about the rest */
  if (is_reliable(node) && stream->queued == 0u && in_flight(stream) > 0u) stream->heartbeat_due = true;
}

void tide_transmitter_cancel(tide_transmitter_t *t) {
  if (!t->busy) return;
  tide_node_t *node = t->current_node;
  t->busy = false;
  t->current_node = NULL;
  if (t->current_kind == FRAME_NODE) queue_again(t, node);
  if (t->current_kind == FRAME_ACKNACK) t->current_stream->acknack_due = true;
  if (t->current_kind == FRAME_HEARTBEAT) t->current_stream->heartbeat_due = true;
  give_back_current(t, node);
}

/* ---- acknowledgments ---- */

static void measure_round_trip(tide_transmitter_t *t, int64_t sample_ns) {
  if (sample_ns > ROUND_TRIP_MAXIMUM_NS) return;
  t->delay_shift = 0u;
  if (t->round_trip_ns == 0) {
    t->round_trip_ns = sample_ns > 0 ? sample_ns : 1;
    t->round_trip_deviation_ns = sample_ns / 2;
    return;
  }
  const int64_t error = sample_ns - t->round_trip_ns;
  t->round_trip_ns += error / 8;
  t->round_trip_deviation_ns += ((error < 0 ? -error : error) - t->round_trip_deviation_ns) / 4;
  if (t->round_trip_ns < 1) t->round_trip_ns = 1;
}

/* Karn: what was sent twice measures nothing, and neither does an answer that a HEARTBEAT may have asked for; but if
 * that goes on the delay is too short for this line, so it doubles. */
static void observe_progress(tide_transmitter_t *t, const tide_output_stream_t *stream, uint16_t count,
                             int64_t now_ns) {
  const uint16_t newest = (uint16_t)(stream->first_unacknowledged + count - 1u);
  if ((stream->resent & low_bits(count)) != 0u) return;
  if (t->busy && t->current_kind == FRAME_NODE && t->current_stream == stream && t->current_sequence == newest) return;
  if (t->config.heartbeat_delay_ns < 0 && stream->heartbeats_unanswered > 0u && t->round_trip_ns > 0) {
    if (t->delay_shift < DELAY_SHIFT_MAXIMUM) t->delay_shift++;
    return;
  }
  measure_round_trip(t, elapsed_ns(stream, newest, now_ns));
}

static void move_window(tide_output_stream_t *stream, uint16_t count) {
  stream->first_unacknowledged = (uint16_t)(stream->first_unacknowledged + count);
  stream->resent = shifted(stream->resent, count);
}

static void acknowledge(tide_transmitter_t *t, tide_output_stream_t *stream, uint16_t count) {
  while (count > 0u && stream->first) {
    tide_node_t *node = stream->first;
    uint16_t step = (uint16_t)(node->next_fragment - node->window_base);
    if (step > count) step = count;
    if (step == 0u) return;
    count = (uint16_t)(count - step);
    move_window(stream, step);
    node->window_base = (uint16_t)(node->window_base + step);
    node->resend = shifted(node->resend, step);
    if (node->window_base == node->fragment_count) {
      unlink_node(stream, node);
      release_node(t, stream, node, TIDE_NODE_ACKNOWLEDGED);
    } else if (node->resend == 0u && stream->sending != node) {
      dequeue(t, stream, node);
    }
  }
}

static bool is_under_way(const tide_transmitter_t *t, const tide_output_stream_t *stream, const tide_node_t *node,
                         uint16_t sequence, int64_t now_ns) {
  const uint16_t fragment = (uint16_t)(sequence - node->first_sequence);
  if (has_bit(node->resend, (uint16_t)(fragment - node->window_base))) return true;
  if (t->busy && t->current_kind == FRAME_NODE && t->current_node == node && t->current_fragment == fragment)
    return true;
  const uint16_t offset = (uint16_t)(sequence - stream->first_unacknowledged);
  if (!has_bit(stream->resent, offset)) return false;
  const int64_t guard_ns = t->round_trip_ns > 0 ? t->round_trip_ns : DELAY_UNMEASURED_NS;
  return elapsed_ns(stream, sequence, now_ns) < guard_ns;
}

/* Returns how many fragments were queued again. */
static uint16_t resend_flagged(tide_transmitter_t *t, tide_output_stream_t *stream, uint16_t missing, int64_t now_ns) {
  uint16_t count = 0u;
  tide_node_t *node = stream->first;
  const uint16_t sent = in_flight(stream);
  for (uint16_t n = 0; n < sent; ++n) {
    const uint16_t sequence = (uint16_t)(stream->first_unacknowledged + n);
    while ((uint16_t)(sequence - node->first_sequence) >= node->next_fragment) node = node->next_in_stream;
    if (!has_bit(missing, n)) continue;
    if (is_under_way(t, stream, node, sequence, now_ns)) {
      TIDE_COUNT(t->counters.nack_ignored, 1u);
      continue;
    }
    node->resend |= (uint16_t)(1u << (uint16_t)(sequence - node->first_sequence - node->window_base));
    enqueue(t, stream, node);
    count++;
  }
  return count;
}

int tide_transmitter_on_acknack(tide_transmitter_t *t, const tide_xrce_acknack_t *acknack, int64_t now_ns) {
  tide_output_stream_t *stream = TIDE_STREAM_IS_RELIABLE(acknack->stream) ? find_stream(t, acknack->stream) : NULL;
  const uint16_t count = stream ? (uint16_t)(acknack->first_unacknowledged - stream->first_unacknowledged) : 0u;
  if (stream && count >= 0x8000u) return TIDE_OK; /* overtaken by a later one, or the peer misses what has expired */
  if (!stream || count > in_flight(stream)) {
    TIDE_COUNT(t->counters.nack_ignored, 1u);
    return stream ? TIDE_ERROR_STATE : TIDE_OK;
  }
  if (count > 0u) {
    observe_progress(t, stream, count, now_ns);
    acknowledge(t, stream, count);
  }
  const bool progress = count > 0u || stream->skipped;
  stream->skipped = false;
  if (resend_flagged(t, stream, acknack->missing, now_ns) > 0u || progress) {
    stream->heartbeats_unanswered = 0u;
    if (t->config.heartbeat_delay_ns < 0) stream->heartbeat_at_ns = TIDE_FOREVER;
  }
  expire_overdue(t, stream, now_ns);
  refresh_stream(t, stream, now_ns);
  return TIDE_OK;
}

/* ---- time ---- */

/* One that was sent leaves a hole. When the last of its fragments never left, one more number is used up, so that
 * the peer in any case misses something between the parts it has and the next message. */
static void skip_sent(tide_output_stream_t *stream, const tide_node_t *node) {
  if (node->next_fragment < node->fragment_count) stream->next_to_send++;
  const uint16_t given_up = (uint16_t)(node->next_fragment - node->window_base);
  move_window(stream, (uint16_t)(given_up + (node->next_fragment < node->fragment_count ? 1u : 0u)));
  stream->skipped = true;
  stream->heartbeat_due = true;
  stream->heartbeat_at_ns = TIDE_FOREVER;
}

static void expire_node(tide_transmitter_t *t, tide_output_stream_t *stream, tide_node_t *node, int64_t now_ns) {
  const bool on_wire = t->busy && t->current_node == node;
  if (!is_reliable(node) && on_wire) return;
  if (is_reliable(node)) {
    if (node->next_fragment > 0u && (stream->first != node || on_wire)) {
      node->state = NODE_OVERDUE;
      return;
    }
    if (node->next_fragment > 0u) skip_sent(stream, node);
    unlink_node(stream, node);
  }
  release_node(t, stream, node, TIDE_NODE_EXPIRED);
  if (TIDE_STREAM_IS_RELIABLE(stream->id)) refresh_stream(t, stream, now_ns);
}

int64_t tide_transmitter_poll(tide_transmitter_t *t, int64_t now_ns) {
  int64_t expiry_ns = TIDE_FOREVER;
  for (tide_queue_entry_t *head; TIDE_MESSAGE_EXPIRY && (head = tide_queue_head(&t->pending_buffer)) != NULL;) {
    expiry_ns = head->key;
    if (expiry_ns > now_ns) break;
    tide_node_t *node = node_of_pending(head);
    tide_output_stream_t *stream = find_stream(t, node->stream);
    tide_queue_remove(&t->pending_buffer, head);
    expire_node(t, stream, node, now_ns);
    expire_overdue(t, stream, now_ns);
    expiry_ns = TIDE_FOREVER;
  }
  const int64_t heartbeat_ns = mark_due_heartbeats(t, now_ns);
  return heartbeat_ns < expiry_ns ? heartbeat_ns : expiry_ns;
}

/* ---- sessions ---- */

static void discard_stream(tide_transmitter_t *t, tide_output_stream_t *stream) {
  while (TIDE_RELIABLE_STREAMS && stream->first) {
    tide_node_t *node = stream->first;
    unlink_node(stream, node);
    release_node(t, stream, node, TIDE_NODE_DISCARDED);
  }
}

static void restart_stream(tide_transmitter_t *t, tide_output_stream_t *stream) {
  if (!TIDE_STREAM_IS_RELIABLE(stream->id)) { /* what on_done has submitted meanwhile belongs to the new session */
    const uint16_t nodes = stream->nodes;
    clear_stream(stream, nodes > 0u ? stream->id : 0u);
    stream->nodes = stream->queued = nodes;
    return;
  }
  for (tide_node_t *node = stream->first; node; node = node->next_in_stream) {
    dequeue(t, stream, node);
    tide_queue_remove(&t->pending_buffer, &node->pending);
    if (node->expires_ns != TIDE_FOREVER) (void)tide_queue_push(&t->pending_buffer, &node->pending, node->expires_ns);
    node->state = NODE_SUBMITTED;
    start_over(t, node);
  }
  tide_node_t *const first = stream->first, *const last = stream->last;
  const uint16_t nodes = stream->nodes;
  clear_stream(stream, first ? stream->id : 0u);
  stream->first = first;
  stream->last = last;
  stream->sending = first;
  stream->nodes = nodes;
  if (first) enqueue(t, stream, first);
}

void tide_transmitter_reset(tide_transmitter_t *t, bool keep) {
  for (size_t i = 0; i < t->config.node_count; ++i) {
    tide_node_t *node = &t->config.nodes[i];
    if (node->state == NODE_SUBMITTED && !is_reliable(node))
      release_node(t, find_stream(t, node->stream), node, TIDE_NODE_DISCARDED);
  }
  for (size_t i = 0; i < t->stream_places; ++i) {
    if (t->config.streams[i].id == 0u) continue;
    if (!keep) discard_stream(t, &t->config.streams[i]);
    restart_stream(t, &t->config.streams[i]);
  }
  while (t->stream_places > 0u && t->config.streams[t->stream_places - 1u].id == 0u) t->stream_places--;
  if (t->busy && t->current_kind != FRAME_CONTROL) t->current_kind = FRAME_OF_OLD_SESSION;
}

static tide_node_t *take_back_stream(tide_transmitter_t *t, tide_output_stream_t *stream, tide_node_t *taken) {
  while (stream->first) {
    tide_node_t *node = stream->first;
    unlink_node(stream, node);
    dequeue(t, stream, node);
    tide_queue_remove(&t->pending_buffer, &node->pending);
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
  const uint32_t bit = UINT32_C(1) << level % 32u;
  uint32_t *const levels = &t->config.hold_levels[level / 32u];
  *levels = hold ? *levels | bit : *levels & ~bit;
  return TIDE_OK;
}

void tide_transmitter_pause_streams(tide_transmitter_t *t, bool paused) { t->paused = paused; }

bool tide_transmitter_is_idle(const tide_transmitter_t *t, uint8_t id) {
  if (id != 0u) {
    const tide_output_stream_t *stream = find_stream(t, id);
    return !stream || stream->nodes == 0u;
  }
  for (size_t i = 0; i < t->stream_places; ++i)
    if (t->config.streams[i].nodes > 0u) return false;
  return true;
}
