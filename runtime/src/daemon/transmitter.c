/* SPDX-License-Identifier: Apache-2.0 */
/* The sending half of the daemon (tide/transmitter.h): a pool of nodes, streams of nodes, and the choice of the next
 * frame.
 *
 * Invariants, tested by check: A reliable node is in execution_buffer (a heap) exactly when one of its fragments could
 * be sent now: a fragment is flagged for resending, or the node is its stream's `sending` and the window is open.
 * Therefore at most one unsent node of a stream is in the heap, an acknowledgment touches at most a window of nodes,
 * and a full window blocks no other stream. Sequence numbers are assigned when a fragment is sent for the first time.
 * Since a stream is FIFO, this equals assignment at submission, except that messages that expire unsent leave no gap. A
 * node that is finished while it is on the wire (NODE_RETURNING) is returned when the wire releases it. */
#include "tide/transmitter.h"

#include <string.h>

#include "daemon_internal.h"
#include "tide/invariant.h"
#include "tide/platform.h"
#include "tide/receiver.h"
#include "tide/status.h"

enum { NODE_FREE, NODE_OWNED, NODE_SUBMITTED, NODE_OVERDUE, NODE_RETURNING };
enum { FRAME_NONE, FRAME_CONTROL, FRAME_ACKNACK, FRAME_HEARTBEAT, FRAME_NODE, FRAME_OF_OLD_SESSION };
enum { DEFAULT_SESSION = 0x81, HEADER_OF_SET_SESSION = 0xFF, ACKNACK_BYTES = 5, HEARTBEAT_BYTES = 5 };
enum { OBJECT_OFFSET = 6 }; /* offset of the object id in WRITE_DATA: after the header and the request number */
enum { SLOW_AFTER_HEARTBEATS = 8, DELAY_SHIFT_MAXIMUM = 5 };
#define PERIOD_DEFAULT_NS INT64_C(100000000)
#define DELAY_MINIMUM_NS UINT32_C(2000000)
#define DELAY_UNMEASURED_NS UINT32_C(20000000)
#define DELAY_MAXIMUM_NS UINT32_C(2000000000)
#define TICK_BITS 10                      /* ticks_of shifts by this: a tick is 1,024 ns */
#define ROUND_TRIP_MAXIMUM_TICKS 9765625u /* 10 s */
/* A rank contains the priority and, in its low bits, the order of submission. */
#define RANK_BITS 47
#define RANK_NONE INT64_C(0) /* precedes all other ranks */
#define RANK_ORDER_MASK ((INT64_C(1) << RANK_BITS) - 1)

/* For paths that a message takes only when nodes run short or something is wrong: kept out of the functions of the
 * usual path, which then need few registers. */
#define RARE __attribute__((noinline, cold))
/* For steps of the usual path that are shorter than a call. */
#define IN_PLACE static inline __attribute__((always_inline))

#define AGE_BITS 20 /* age_of shifts by this: an age counts units of 2^20 ns */
static uint16_t age_of(int64_t time_ns) { return (uint16_t)((uint64_t)time_ns >> AGE_BITS); }
static uint32_t ticks_of(int64_t time_ns) { return (uint32_t)((uint64_t)time_ns >> TICK_BITS); }
static bool has_bit(uint32_t bits, uint32_t number) { return (bits >> number & 1u) != 0u; }
static uint16_t low_bits(uint32_t count) { return (uint16_t)(count >= 16u ? 0xFFFFu : (1u << count) - 1u); }
static uint16_t shifted(uint32_t bits, uint32_t count) { return (uint16_t)(count >= 16u ? 0u : bits >> count); }
static uint32_t at_most(uint32_t value, uint32_t maximum) { return value < maximum ? value : maximum; }

static uint16_t object_of(const tide_node_t *node) {
  return (uint16_t)(node->bytes[OBJECT_OFFSET] << 8 | node->bytes[OBJECT_OFFSET + 1u]);
}

static bool is_reliable(const tide_node_t *node) { return TIDE_STREAM_IS_RELIABLE(node->stream); }

static uint16_t in_flight(const tide_output_stream_t *stream) {
  return (uint16_t)(stream->next_to_send - stream->first_unacknowledged);
}

static bool has_room(const tide_transmitter_t *t, const tide_output_stream_t *stream) {
  return in_flight(stream) < t->config.window;
}

static int32_t priority_at(const tide_output_stream_t *stream, int32_t position) {
  return (int32_t)stream->level << 8 | position;
}

static int32_t priority_of_rank(int64_t rank) { return 0xFFFF - (int32_t)(rank >> RANK_BITS); }

/* In builds without fragmentation every message counts as one fragment. */
static uint16_t fragment_count(const tide_node_t *node) {
  return (uint16_t)(TIDE_FRAGMENTS ? node->fragment_count : 1u);
}

static uint16_t window_base(const tide_node_t *node) { return (uint16_t)(TIDE_FRAGMENTS ? node->window_base : 0u); }

/* In builds without time limits no message expires, so nothing is skipped. */
static bool has_skipped(const tide_output_stream_t *stream) { return !TIDE_LEAN && stream->skipped; }

static tide_long_message_t *long_message_of(const tide_output_stream_t *stream) {
#if TIDE_LONG_MESSAGES
  return stream->long_message;
#else
  (void)stream;
  return NULL;
#endif
}

static bool is_part(const tide_output_stream_t *stream, const tide_node_t *node) {
  const tide_long_message_t *message = long_message_of(stream);
  return message && node->owner == message;
}

/* True while more parts of the message will follow, so that later messages of the stream wait. */
static bool is_being_written(const tide_output_stream_t *stream) {
  const tide_long_message_t *message = long_message_of(stream);
  return message && !message->complete;
}

/* ---- streams and the execution buffer ---- */

static tide_output_stream_t *find_stream(const tide_transmitter_t *t, uint8_t id) {
  tide_output_stream_t *stream = t->config.streams;
  for (size_t left = t->stream_places; left > 0u; --left, ++stream)
    if (stream->id == id) return stream;
  return NULL;
}

static void clear_stream(tide_output_stream_t *stream, uint8_t id) {
  *stream = (tide_output_stream_t){.id = id, .level = TIDE_STREAM_LEVEL(id), .heartbeat_at_ns = TIDE_FOREVER};
}

/* Returns NULL if there is no free element for another stream. */
static RARE tide_output_stream_t *take_other_stream(tide_transmitter_t *t, uint8_t id) {
  TIDE_INVARIANT(id != 0u);
  tide_output_stream_t *stream = find_stream(t, id);
  if (stream) return stream;
  stream = find_stream(t, 0u);
  if (!stream && t->stream_places < t->config.stream_count) stream = &t->config.streams[t->stream_places++];
  if (stream) clear_stream(stream, id);
  return stream;
}

/* True if the node's message needs no fragments. */
static bool fits_frame(const tide_transmitter_t *t, const tide_node_t *node) {
  return node->length <= t->fragment_bytes + TIDE_XRCE_SUBMESSAGE_HEADER_BYTES;
}

static void enqueue(tide_transmitter_t *t, tide_output_stream_t *stream, tide_node_t *node) {
  if (tide_queue_push(&t->execution_buffer, &node->entry, node->rank) == TIDE_OK) stream->queued++;
}

IN_PLACE tide_output_stream_t *take_stream(tide_transmitter_t *t, uint8_t id) {
  return t->current_stream->id == id ? t->current_stream : take_other_stream(t, id);
}

static void dequeue(tide_transmitter_t *t, tide_output_stream_t *stream, tide_node_t *node) {
  if (!tide_queue_contains(&node->entry)) return;
  tide_queue_remove(&t->execution_buffer, &node->entry);
  TIDE_INVARIANT(stream->queued > 0u);
  stream->queued--;
}

static void limit_time(tide_transmitter_t *t, tide_node_t *node) {
  if (!TIDE_LEAN) (void)tide_queue_push(&t->pending_buffer, &node->pending, node->expires_ns);
}

static void stop_limit(tide_transmitter_t *t, tide_node_t *node) {
  if (!TIDE_LEAN && tide_queue_contains(&node->pending)) tide_queue_remove(&t->pending_buffer, &node->pending);
}

static void unlink_node(tide_output_stream_t *stream, tide_node_t *node) {
  tide_node_t *before = NULL;
  if (TIDE_LEAN || stream->first == node) { /* in lean builds only the first node is ever removed */
    stream->first = node->next_in_stream;
  } else {
    for (before = stream->first; before->next_in_stream != node; before = before->next_in_stream) continue;
    before->next_in_stream = node->next_in_stream;
  }
  if (stream->last == node) stream->last = before;
  if (stream->sending == node) stream->sending = node->next_in_stream;
  tide_long_message_t *message = long_message_of(stream);
  if (message && message->last == node) message->last = NULL;
}

/* The node will be sent again from its first fragment. */
IN_PLACE void start_over(const tide_transmitter_t *t, tide_node_t *node) {
  node->next_fragment = 0u;
  node->resend = 0u;
  if (!TIDE_FRAGMENTS) return;
  node->window_base = 0u;
  node->fragment_count = 1u;
  if (!fits_frame(t, node))
    node->fragment_count = (uint16_t)((node->length + t->fragment_bytes - 1u) / t->fragment_bytes);
}

/* ---- reservations of nodes: one for each level, and one for each writer that has found no free node ---- */

typedef struct claim {
  tide_priority_t priority;
  uint8_t account;
  bool may_evict;
  uint16_t keeps_last; /* history depth of a best-effort writer whose new sample may replace an older one; 0: none */
} claim_t;

/* may take any free node, reserved or not */
static const claim_t own_claim = {TIDE_PRIORITY(0, 0), TIDE_NODE_OWN, true, 0u};

/* Writers whose numbers map to the same account count as one writer. The number of an object is stored above its kind,
 * which has four bits. */
static uint8_t account_of(uint16_t writer) { return (uint8_t)(((uint32_t)writer >> 4 ^ (uint32_t)writer << 2) % 32u); }

static claim_t claim_of(tide_priority_t priority, uint16_t writer, bool may_evict) {
  const bool is_known = TIDE_RESERVATIONS && writer != 0u;
  return (claim_t){priority, is_known ? account_of(writer) : (uint8_t)TIDE_NODE_NO_WRITER, may_evict, 0u};
}

#if TIDE_RESERVATIONS
static uint32_t bit_of_level(tide_priority_t priority) { return UINT32_C(1) << TIDE_PRIORITY_LEVEL(priority) % 32u; }
static uint32_t bit_of_writer(uint8_t account) { return account < TIDE_NODE_NO_WRITER ? UINT32_C(1) << account : 0u; }

static uint32_t count_bits(uint32_t bits) {
  uint32_t count = 0u;
  for (; bits != 0u; bits &= bits - 1u) ++count;
  return count;
}

#if !TIDE_NODE_COUNTS || TIDE_INVARIANTS
/* The levels and writers that use nodes of the class, found by counting its nodes. */
static tide_node_use_t count_use(const tide_transmitter_t *t, size_t size_class) {
  tide_node_use_t use = {0u, 0u, 0u, 0u};
  for (size_t i = 0; i < t->config.node_count; ++i) {
    const tide_node_t *node = &t->config.nodes[i];
    if (node->size_class != size_class || node->state == NODE_FREE || node->account == TIDE_NODE_OWN) continue;
    use.levels_with_more |= use.levels & bit_of_level(node->priority);
    use.levels |= bit_of_level(node->priority);
    use.writers_with_more |= use.writers & bit_of_writer(node->account);
    use.writers |= bit_of_writer(node->account);
  }
  return use;
}
#endif

static tide_node_use_t use_of(const tide_transmitter_t *t, size_t size_class) {
#if TIDE_NODE_COUNTS
  const uint16_t *of_level = t->counted[size_class].of_level, *of_writer = t->counted[size_class].of_writer;
  tide_node_use_t use = {0u, 0u, 0u, 0u};
  for (uint32_t i = 0u; i < 32u; ++i) {
    use.levels |= (of_level[i] > 0u ? 1u : 0u) << i;
    use.levels_with_more |= (of_level[i] > 1u ? 1u : 0u) << i;
    use.writers |= (of_writer[i] > 0u ? 1u : 0u) << i;
    use.writers_with_more |= (of_writer[i] > 1u ? 1u : 0u) << i;
  }
  return use;
#else
  return count_use(t, size_class);
#endif
}

/* Counts a node that was acquired (1) or freed (-1). The node's priority does not change between the two. */
static inline void count_node(tide_transmitter_t *t, const tide_node_t *node, int change) {
  t->free_counts[node->size_class] = (uint16_t)(t->free_counts[node->size_class] - change);
#if TIDE_NODE_COUNTS
  if (node->account == TIDE_NODE_OWN) return;
  uint16_t *of_level = &t->counted[node->size_class].of_level[TIDE_PRIORITY_LEVEL(node->priority) % 32u];
  TIDE_INVARIANT(change > 0 || *of_level > 0u);
  *of_level = (uint16_t)(*of_level + change);
  if (node->account >= TIDE_NODE_NO_WRITER) return;
  uint16_t *of_writer = &t->counted[node->size_class].of_writer[node->account];
  TIDE_INVARIANT(change > 0 || *of_writer > 0u);
  *of_writer = (uint16_t)(*of_writer + change);
#endif
}

static inline bool knows_level(const tide_transmitter_t *t, size_t size_class, tide_priority_t priority) {
  return (t->levels[size_class] & bit_of_level(priority)) != 0u;
}

/* Records that a level uses nodes of this class. */
static void note_level(tide_transmitter_t *t, size_t size_class, tide_priority_t priority) {
  if (knows_level(t, size_class, priority)) return;
  t->levels[size_class] |= bit_of_level(priority);
  t->kept[size_class]++;
}

/* True if more nodes are free than are reserved. */
static inline bool has_spare(const tide_transmitter_t *t, size_t size_class) {
  return t->free_counts[size_class] > t->kept[size_class];
}

/* Each level may take a first node. A writer that has starved (found no free node) may take its first node while each
 * level could still get its own. Any further node is available only while each of the other levels and starved writers
 * could still get its first. */
static bool may_take(const tide_transmitter_t *t, const claim_t *claim, size_t size_class, bool is_smallest) {
  const uint32_t starved = t->starved[size_class];
  if (claim->account == TIDE_NODE_OWN || has_spare(t, size_class)) return true;
  const tide_node_use_t use = use_of(t, size_class);
  if (is_smallest && (use.levels & bit_of_level(claim->priority)) == 0u) return true;
  uint32_t kept = count_bits(t->levels[size_class] & ~use.levels);
  const bool is_first = is_smallest && (starved & ~use.writers & bit_of_writer(claim->account)) != 0u;
  if (!is_first) kept += count_bits(starved & ~use.writers);
  return t->free_counts[size_class] > kept;
}

/* True if the node is the only one of another level, or of a writer that has starved, provided that there are enough
 * nodes for each such level and writer to have one. */
static bool is_protected(const tide_transmitter_t *t, const tide_node_t *node, tide_priority_t below) {
  const uint32_t level = bit_of_level(node->priority), levels = count_bits(t->levels[node->size_class]);
  const uint32_t starved = t->starved[node->size_class], count = t->config.classes[node->size_class].count;
  const tide_node_use_t use = use_of(t, node->size_class);
  if (level != bit_of_level(below) && (use.levels_with_more & level) == 0u && levels <= count) return true;
  const bool is_only_one = (starved & ~use.writers_with_more & bit_of_writer(node->account)) != 0u;
  return is_only_one && levels + count_bits(starved) <= count;
}

/* Records a writer that found no free node while it holds none. Returns false if it holds one, or was recorded
 * before. */
static bool remember_starved(tide_transmitter_t *t, const claim_t *claim, size_t size_class) {
  const uint32_t bit = bit_of_writer(claim->account) & ~t->starved[size_class];
  if (bit == 0u || (use_of(t, size_class).writers & bit) != 0u) return false;
  t->starved[size_class] |= bit;
  t->kept[size_class]++;
  return true;
}
#else
static void note_level(tide_transmitter_t *t, size_t size_class, tide_priority_t priority) {
  (void)t, (void)size_class, (void)priority;
}
static inline bool knows_level(const tide_transmitter_t *t, size_t size_class, tide_priority_t priority) {
  (void)t, (void)size_class, (void)priority;
  return true;
}
static inline void count_node(tide_transmitter_t *t, const tide_node_t *node, int change) {
  (void)t, (void)node, (void)change;
}
static inline bool has_spare(const tide_transmitter_t *t, size_t size_class) {
  (void)t, (void)size_class;
  return true;
}
static inline bool may_take(const tide_transmitter_t *t, const claim_t *claim, size_t size_class, bool is_smallest) {
  (void)t, (void)claim, (void)size_class, (void)is_smallest;
  return true;
}
static bool is_protected(const tide_transmitter_t *t, const tide_node_t *node, tide_priority_t below) {
  (void)t, (void)node, (void)below;
  return false;
}
static bool remember_starved(tide_transmitter_t *t, const claim_t *claim, size_t size_class) {
  (void)t, (void)claim, (void)size_class;
  return false;
}
#endif

/* ---- invariants, all checked after each step ----
 *
 * Not checked in functions that on_done may call (submit, acquire, poll), because a step may be incomplete there. */

#if TIDE_INVARIANTS
static void check_reliable(const tide_transmitter_t *t, const tide_output_stream_t *stream) {
  size_t nodes = 0u, queued = 0u;
  bool unsent = false;
  const tide_node_t *last = NULL, *last_part = NULL;
  const tide_long_message_t *message = long_message_of(stream);
  uint16_t parts = 0u;
  for (const tide_node_t *node = stream->first; node; node = node->next_in_stream) {
    const bool is_queued = tide_queue_contains(&node->entry), of_message = is_part(stream, node);
    TIDE_INVARIANT(node->state == NODE_SUBMITTED || node->state == NODE_OVERDUE);
    TIDE_INVARIANT(node->stream == stream->id);
    TIDE_INVARIANT(is_queued == (node->resend != 0u || (stream->sending == node && has_room(t, stream))));
    /* while a message is still being written, the first node after its newest part is unsent, too */
    const bool waits = is_being_written(stream) && !stream->sending && !of_message && message->last == last;
    unsent = unsent || stream->sending == node || waits;
    TIDE_INVARIANT(unsent == (node->next_fragment < fragment_count(node)));
    TIDE_INVARIANT(window_base(node) <= node->next_fragment);
    nodes++;
    queued += is_queued ? 1u : 0u;
    if (of_message) {
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
  TIDE_INVARIANT(in_flight(stream) <= t->config.window);
}

static void check(const tide_transmitter_t *t) {
  size_t free = 0u, in_streams = 0u, of_streams = 0u, queued = 0u;
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
  for (size_t i = 0; i < t->config.stream_count; ++i) {
    const tide_output_stream_t *stream = &t->config.streams[i];
    TIDE_INVARIANT(i < t->stream_places || stream->id == 0u);
    TIDE_INVARIANT(stream->id != 0u || stream->nodes == 0u);
    TIDE_INVARIANT(stream->queued <= stream->nodes);
    TIDE_INVARIANT(t->answers_due || (!stream->acknack_due && !stream->heartbeat_due));
    TIDE_INVARIANT(stream->heartbeat_at_ns >= t->heartbeat_least_ns);
    if (TIDE_STREAM_IS_RELIABLE(stream->id)) check_reliable(t, stream);
    of_streams += stream->nodes;
  }
  TIDE_INVARIANT(free + t->nodes_in_use == t->config.node_count);
  TIDE_INVARIANT(queued == t->execution_buffer.count);
  TIDE_INVARIANT(t->control_count <= TIDE_CONTROL_PLACES);
  TIDE_INVARIANT(in_streams == of_streams);
#if TIDE_NODE_COUNTS
  for (size_t i = 0; i < t->config.class_count; ++i) {
    const tide_node_use_t counted = use_of(t, i), seen = count_use(t, i);
    TIDE_INVARIANT(counted.levels == seen.levels && counted.levels_with_more == seen.levels_with_more);
    TIDE_INVARIANT(counted.writers == seen.writers && counted.writers_with_more == seen.writers_with_more);
  }
#endif
}
#else
static void check(const tide_transmitter_t *t) { (void)t; }
#endif

/* ---- nodes are returned ---- */

static inline void free_node(tide_transmitter_t *t, tide_node_t *node) {
  TIDE_INVARIANT(node->state != NODE_FREE && !tide_queue_contains(&node->entry));
  count_node(t, node, -1);
  node->state = NODE_FREE;
  node->stream = 0u;
  node->next_free = t->free_nodes[node->size_class];
  t->free_nodes[node->size_class] = node;
  t->nodes_in_use--;
}

#if TIDE_LONG_MESSAGES
static void give_to_writer(tide_long_message_t *message, tide_node_t *node) {
  node->state = NODE_OWNED;
  node->next_free = message->free;
  message->free = node;
}
#endif

/* Reports the outcome to the owner and frees the node. */
static inline void finish_node(tide_transmitter_t *t, tide_node_t *node, tide_node_outcome_t outcome) {
  if (outcome == TIDE_NODE_ACKNOWLEDGED) {
    TIDE_COUNT(t->counters.acknowledged, 1u);
  } else if (outcome != TIDE_NODE_SENT) {
    TIDE_COUNT(t->counters.expired, outcome == TIDE_NODE_EXPIRED ? 1u : 0u);
    TIDE_COUNT(t->counters.evicted, outcome == TIDE_NODE_EVICTED ? 1u : 0u);
  }
#if TIDE_STATIC_PLATFORM
  tide_daemon_on_done((void *)((uintptr_t)t - offsetof(tide_daemon_t, transmitter)), node, outcome);
#else
  if (t->config.on_done) t->config.on_done(t->config.context, node, outcome);
#endif
#if TIDE_LONG_MESSAGES
  tide_output_stream_t *stream = node->owner ? find_stream(t, node->stream) : NULL;
  if (stream && is_part(stream, node)) { /* a part of a long message is returned to its writer */
    tide_long_message_t *message = stream->long_message;
    TIDE_INVARIANT(message->parts > 0u);
    message->parts--;
    give_to_writer(message, node);
    if (message->complete && message->parts == 0u) stream->long_message = NULL;
    return;
  }
#endif
  free_node(t, node);
}

/* The node is no longer in its stream's list: it is returned now, or when the wire releases it. */
static inline void release_node(tide_transmitter_t *t, tide_output_stream_t *stream, tide_node_t *node,
                                tide_node_outcome_t outcome) {
  dequeue(t, stream, node);
  stop_limit(t, node);
  stream->nodes--;
  if (t->busy && t->current_node == node) {
    node->state = NODE_RETURNING;
    t->current_outcome = (uint8_t)outcome;
  } else {
    finish_node(t, node, outcome);
  }
}

void tide_transmitter_abandon(tide_transmitter_t *t, tide_node_t *node) {
  if (!node || node->state != NODE_OWNED) return;
  if (t->busy && t->current_node == node) { /* the wire still reads this node */
    node->state = NODE_RETURNING;
    t->current_outcome = TIDE_NODE_DISCARDED;
  } else {
    free_node(t, node);
  }
}

/* ---- KEEP_LAST of best-effort writers ---- */

static bool is_waiting_sample(const tide_node_t *node, uint8_t stream) {
  return node->state == NODE_SUBMITTED && node->stream == stream && node->bytes[0] == TIDE_XRCE_WRITE_DATA &&
         tide_queue_contains(&node->entry);
}

/* Returns the first of the writer's samples that are in execution_buffer behind this rank; *count gets their number. */
static tide_node_t *oldest_behind(const tide_transmitter_t *t, uint8_t stream, uint16_t writer, int64_t rank,
                                  uint32_t *count) {
  tide_node_t *oldest = NULL;
  *count = 0u;
  for (size_t i = 0; i < t->config.node_count; ++i) {
    tide_node_t *node = &t->config.nodes[i];
    if (!is_waiting_sample(node, stream) || object_of(node) != writer || node->rank <= rank) continue;
    ++*count;
    if (!oldest || node->rank < oldest->rank) oldest = node;
  }
  return oldest;
}

typedef struct turn {
  int64_t rank;
  uint16_t since; /* stored as in tide_node_t.first_sequence */
} turn_t;

static void give_turn(tide_node_t *node, turn_t turn) {
  node->rank = turn.rank;
  node->first_sequence = turn.since;
}

/* Evicts the writer's oldest waiting sample. Each later sample of the writer moves up to the turn (the place in the
 * queue) of the sample before it. Returns the turn that the last one leaves, for the new sample. If new samples joined
 * the end of the queue instead, a writer faster than the wire would lose every sample before its turn. A turn keeps the
 * time at which it began, so that a flood no longer counts as a burst after TIDE_BURST_NS. */
static turn_t evict_oldest(tide_transmitter_t *t, tide_node_t *oldest, uint16_t writer) {
  const uint8_t id = oldest->stream;
  tide_output_stream_t *stream = find_stream(t, id);
  turn_t turn = {oldest->rank, oldest->first_sequence};
  uint32_t count = 0u;
  release_node(t, stream, oldest, TIDE_NODE_EVICTED);
  for (tide_node_t *node; (node = oldest_behind(t, id, writer, turn.rank, &count)) != NULL;) {
    const turn_t left = {node->rank, node->first_sequence};
    dequeue(t, stream, node);
    give_turn(node, turn);
    enqueue(t, stream, node);
    turn = left;
  }
  return turn;
}

/* Returns the oldest sample of the writer that has the most waiting samples, at least two. The function makes two
 * passes over the nodes rather than one for each writer, because it runs in the critical section. */
static tide_node_t *oldest_of_most(const tide_transmitter_t *t, uint8_t stream, uint32_t bytes,
                                   tide_priority_t priority) {
  uint16_t counts[TIDE_NODE_NO_WRITER] = {0u};
  for (size_t i = 0; i < t->config.node_count; ++i)
    if (is_waiting_sample(&t->config.nodes[i], stream)) counts[account_of(object_of(&t->config.nodes[i]))]++;
  tide_node_t *found = NULL;
  uint32_t most = 1u;
  for (size_t i = 0; i < t->config.node_count; ++i) {
    tide_node_t *node = &t->config.nodes[i];
    if (node->capacity < bytes || node->priority > priority || !is_waiting_sample(node, stream)) continue;
    const uint32_t count = counts[account_of(object_of(node))];
    if (count < most || (count == most && (!found || node->rank > found->rank))) continue;
    most = count;
    found = node;
  }
  return found;
}

/* Makes room for a sample of a KEEP_LAST writer: evicts the writer's oldest waiting sample or, if it has none or its
 * node is too small, a sample of the writer with the most waiting samples. Returns NULL if none can be evicted. If the
 * writer's own sample was evicted, *turn is the turn for the new sample. */
static tide_node_t *make_room(tide_transmitter_t *t, uint32_t bytes, const claim_t *claim, turn_t *turn) {
  uint32_t count = 0u;
  const uint8_t id = TIDE_STREAM_BEST_EFFORT(TIDE_PRIORITY_LEVEL(claim->priority));
  tide_node_t *node = oldest_behind(t, id, claim->keeps_last, RANK_NONE, &count);
  if (node && node->capacity >= bytes) {
    *turn = evict_oldest(t, node, claim->keeps_last);
    return node;
  }
  node = oldest_of_most(t, id, bytes, claim->priority);
  if (node) release_node(t, find_stream(t, id), node, TIDE_NODE_EVICTED);
  return node;
}

void tide_transmitter_keep_last(tide_transmitter_t *t, tide_node_t *node, uint8_t id, uint16_t depth, int64_t now_ns) {
  const tide_output_stream_t *stream = TIDE_LEAN ? NULL : find_stream(t, id);
  while (stream && stream->queued >= depth) {
    uint32_t count = 0u;
    tide_node_t *oldest = oldest_behind(t, id, object_of(node), RANK_NONE, &count);
    if (count < depth) return;
    const bool has_memory =
        t->nodes_in_use < (t->config.node_count + 1u) / 2u; /* nodes_in_use already counts the new sample's node */
    const uint16_t waited = (uint16_t)(age_of(now_ns) - oldest->first_sequence);
    if (has_memory && waited < TIDE_BURST_NS >> AGE_BITS) return;
    give_turn(node, evict_oldest(t, oldest, object_of(node)));
  }
}

/* ---- acquire ---- */

static size_t smallest_class(const tide_transmitter_t *t, uint32_t bytes) {
  const tide_size_class_t *size = t->config.classes;
  size_t size_class = 0;
  for (; size_class < t->config.class_count && size->node_bytes < bytes; ++size) ++size_class;
  return size_class;
}

static tide_node_t *free_node_for(const tide_transmitter_t *t, size_t smallest, const claim_t *claim) {
  for (size_t i = smallest; i < t->config.class_count; ++i) {
    if (t->free_nodes[i] && may_take(t, claim, i, i == smallest)) return t->free_nodes[i];
  }
  return NULL;
}

uint32_t tide_transmitter_free_bytes(const tide_transmitter_t *t, uint32_t bytes) {
  const tide_node_t *node = free_node_for(t, smallest_class(t, bytes), &own_claim);
  return node ? node->capacity : 0u;
}

/* Frees the least urgent waiting best-effort node below the priority, the oldest among equals; returns NULL if no node
 * is eligible. */
static tide_node_t *evict(tide_transmitter_t *t, uint32_t bytes, tide_priority_t below) {
  tide_node_t *found = NULL;
  for (size_t i = 0; i < t->config.node_count; ++i) {
    tide_node_t *node = &t->config.nodes[i];
    if (node->state != NODE_SUBMITTED || is_reliable(node) || !tide_queue_contains(&node->entry)) continue;
    if (node->capacity < bytes || node->priority >= below) continue;
    const bool is_less =
        !found || node->priority < found->priority || (node->priority == found->priority && node->rank < found->rank);
    if (is_less && !is_protected(t, node, below)) found = node;
  }
  if (found) release_node(t, find_stream(t, found->stream), found, TIDE_NODE_EVICTED);
  return found;
}

/* For a class without a node to spare. Returns null if no node may be taken. */
static RARE tide_node_t *scarce_node_for(tide_transmitter_t *t, uint32_t bytes, size_t smallest, const claim_t *claim) {
  const bool is_own = TIDE_RESERVATIONS && claim->account == TIDE_NODE_OWN;
  turn_t turn = {RANK_NONE, 0u};
  tide_node_t *node = free_node_for(t, smallest, claim);
  if (!node && !claim->may_evict) return NULL;
  if (!node && !is_own) node = evict(t, bytes, claim->priority);
  if (!TIDE_LEAN && !node && claim->keeps_last != 0u) node = make_room(t, bytes, claim, &turn);
  if (!node && !is_own && remember_starved(t, claim, smallest)) node = free_node_for(t, smallest, claim);
  if (node) {
    give_turn(node, turn);
    return node;
  }
  TIDE_COUNT(t->counters.refused_full, 1u);
  if (TIDE_RESERVATIONS && tide_transmitter_free_bytes(t, bytes) > 0u) TIDE_COUNT(t->counters.refused_kept, 1u);
  return NULL;
}

static void take_node(tide_transmitter_t *t, tide_node_t *node, tide_priority_t priority, uint8_t account) {
  TIDE_INVARIANT(t->free_nodes[node->size_class] == node);
  t->free_nodes[node->size_class] = node->next_free;
  node->state = NODE_OWNED;
  if (TIDE_RESERVATIONS) node->account = account;
  node->priority = priority;
  node->length = 0u;
  node->expires_ns = TIDE_FOREVER;
  node->owner = NULL;
  count_node(t, node, 1);
  ++t->nodes_in_use;
  if (!TIDE_LEAN && t->nodes_in_use > t->counters.nodes_in_use_maximum)
    t->counters.nodes_in_use_maximum = t->nodes_in_use;
}

static int acquire(tide_transmitter_t *t, uint32_t bytes, const claim_t *claim, tide_node_t **result) {
  const size_t smallest = smallest_class(t, bytes);
  *result = NULL;
  if (smallest == t->config.class_count) {
    if (claim->may_evict) TIDE_COUNT(t->counters.refused_large, 1u);
    return claim->may_evict ? TIDE_ERROR_TOO_LARGE : TIDE_ERROR_FULL;
  }
  if (!TIDE_RESERVATIONS || claim->account != TIDE_NODE_OWN) note_level(t, smallest, claim->priority);
  tide_node_t *node = t->free_nodes[smallest];
  if (node && has_spare(t, smallest)) {
    node->rank = RANK_NONE;
  } else {
    node = scarce_node_for(t, bytes, smallest, claim);
    if (!node) return TIDE_ERROR_FULL;
  }
  take_node(t, node, claim->priority, claim->account);
  *result = node;
  return TIDE_OK;
}

int tide_transmitter_acquire(tide_transmitter_t *t, uint32_t bytes, tide_priority_t priority, tide_node_t **result) {
  return tide_transmitter_acquire_for(t, bytes, priority, 0u, result);
}

int tide_transmitter_acquire_for(tide_transmitter_t *t, uint32_t bytes, tide_priority_t priority, uint16_t writer,
                                 tide_node_t **result) {
  const claim_t claim = claim_of(priority, writer, true);
  return acquire(t, bytes, &claim, result);
}

int tide_transmitter_acquire_last(tide_transmitter_t *t, uint32_t bytes, tide_priority_t priority, uint16_t writer,
                                  tide_node_t **result) {
  claim_t claim = claim_of(priority, writer, true);
  claim.keeps_last = writer;
  return acquire(t, bytes, &claim, result);
}

int tide_transmitter_acquire_free(tide_transmitter_t *t, uint32_t bytes, tide_priority_t priority, uint16_t writer,
                                  tide_node_t **result) {
  tide_node_t *node = t->free_nodes[0];
  const claim_t claim = claim_of(priority, writer, false);
  if (TIDE_LEAN || !node || node->capacity < bytes || !has_spare(t, 0) || !knows_level(t, 0, priority))
    return acquire(t, bytes, &claim, result);
  node->rank = RANK_NONE; /* the usual case, without a search */
  take_node(t, node, priority, claim.account);
  *result = node;
  return TIDE_OK;
}

int tide_transmitter_acquire_own(tide_transmitter_t *t, uint32_t bytes, tide_node_t **result) {
  return acquire(t, bytes, &own_claim, result);
}

/* ---- HEARTBEATs: when a stream requests its acknowledgment ---- */

static uint32_t round_trip_ticks(const tide_transmitter_t *t) { return t->round_trip_eighths >> 3; }

static int64_t heartbeat_delay_ns(const tide_transmitter_t *t) {
  if (t->config.heartbeat_delay_ns >= 0) return t->config.heartbeat_delay_ns;
  if (t->config.heartbeat_floor_ns >= (int64_t)DELAY_MAXIMUM_NS) return DELAY_MAXIMUM_NS;
  const uint32_t given_ns = (uint32_t)t->config.heartbeat_floor_ns;
  const uint32_t floor_ns = given_ns > 0u ? given_ns : DELAY_MINIMUM_NS;
  const uint32_t ticks = at_most(round_trip_ticks(t) + t->deviation_quarters, DELAY_MAXIMUM_NS >> TICK_BITS);
  uint32_t delay_ns = t->round_trip_eighths > 0u ? ticks << TICK_BITS : DELAY_UNMEASURED_NS;
  if (delay_ns < floor_ns) delay_ns = floor_ns;
  return at_most(delay_ns, DELAY_MAXIMUM_NS >> t->delay_shift) << t->delay_shift;
}

/* Time until an unanswered HEARTBEAT is repeated. */
static int64_t repeat_delay_ns(const tide_transmitter_t *t, const tide_output_stream_t *stream) {
  const uint32_t count = stream->heartbeats_unanswered;
  int64_t delay = t->config.heartbeat_period_ns;
  if (count > SLOW_AFTER_HEARTBEATS) { /* the peer is silent: reduce the rate to a half, a quarter, an eighth */
    return delay << at_most((count - SLOW_AFTER_HEARTBEATS) / 4u, 3u);
  }
  if (t->config.heartbeat_delay_ns >= 0) return delay;
  int64_t doubled = heartbeat_delay_ns(t);
  if (doubled >= delay) return doubled;
  for (uint32_t n = count; n > 0u && doubled < delay; --n) doubled += doubled;
  return doubled < delay ? doubled : delay;
}

static void ask_at(tide_transmitter_t *t, tide_output_stream_t *stream, int64_t time_ns) {
  stream->heartbeat_at_ns = time_ns;
  if (time_ns < t->heartbeat_least_ns) t->heartbeat_least_ns = time_ns;
}

/* Call this after any change of a stream: it queues the node that the stream could send, and sets the time of the next
 * HEARTBEAT, counted from the end of the last frame. */
static void refresh_stream(tide_transmitter_t *t, tide_output_stream_t *stream, int64_t now_ns) {
  if (!TIDE_RELIABLE_STREAMS) return;
  if (stream->sending && has_room(t, stream)) enqueue(t, stream, stream->sending);
  const bool is_on_wire =
      t->busy && t->current_stream == stream && (t->current_kind == FRAME_NODE || t->current_kind == FRAME_HEARTBEAT);
  if (in_flight(stream) == 0u && !has_skipped(stream)) {
    stream->heartbeat_at_ns = TIDE_FOREVER;
    stream->heartbeat_due = false;
    stream->heartbeats_unanswered = 0u;
  } else if (stream->queued > 0u || is_on_wire) {
    stream->heartbeat_at_ns = TIDE_FOREVER;
  } else if (!stream->heartbeat_due && stream->heartbeat_at_ns == TIDE_FOREVER) {
    ask_at(t, stream, now_ns + heartbeat_delay_ns(t));
  }
}

/* Returns the time of the earliest HEARTBEAT that is not due yet. */
static int64_t mark_due_heartbeats(tide_transmitter_t *t, int64_t now_ns) {
  int64_t next_ns = TIDE_FOREVER;
  if (!TIDE_RELIABLE_STREAMS) return next_ns;
  for (size_t i = 0; i < t->stream_places; ++i) {
    tide_output_stream_t *stream = &t->config.streams[i];
    if (stream->id == 0u) continue;
    if (stream->heartbeat_at_ns <= now_ns) {
      stream->heartbeat_at_ns = TIDE_FOREVER;
      stream->heartbeat_due = t->answers_due = true;
    }
    if (stream->heartbeat_at_ns < next_ns) next_ns = stream->heartbeat_at_ns;
  }
  t->heartbeat_least_ns = next_ns;
  return next_ns;
}

/* ---- submit ---- */

/* The rank of a node that joins the stream now. A reliable node never precedes earlier nodes of its stream: otherwise
 * repeats of later nodes could keep the first missing message off the wire. */
static inline int64_t rank_of(const tide_transmitter_t *t, const tide_output_stream_t *stream,
                              const tide_node_t *node) {
  int32_t priority = priority_at(stream, node->priority & 0xFF);
  if (TIDE_RELIABLE_STREAMS && stream->last && priority_of_rank(stream->last->rank) < priority)
    priority = priority_of_rank(stream->last->rank);
  return (int64_t)((uint64_t)(uint32_t)(0xFFFF - priority) << RANK_BITS | t->submissions);
}

static int check_submission(const tide_transmitter_t *t, const tide_node_t *node, uint8_t stream) {
  if (node->state != NODE_OWNED || stream == TIDE_XRCE_STREAM_NONE) return TIDE_ERROR_ARGUMENT;
  if (node->length < TIDE_XRCE_SUBMESSAGE_HEADER_BYTES || node->length > node->capacity) return TIDE_ERROR_ARGUMENT;
  if (fits_frame(t, node)) return TIDE_OK;
  if (!TIDE_FRAGMENTS || !TIDE_STREAM_IS_RELIABLE(stream)) return TIDE_ERROR_TOO_LARGE;
  return node->length < 0x7FFFu * t->fragment_bytes ? TIDE_OK : TIDE_ERROR_TOO_LARGE;
}

/* status: why the node cannot be submitted; TIDE_OK: its stream has no element. */
static RARE int refuse_submission(tide_transmitter_t *t, tide_node_t *node, int status) {
  if (status == TIDE_ERROR_TOO_LARGE) TIDE_COUNT(t->counters.refused_large, 1u);
  tide_transmitter_abandon(t, node);
  return status == TIDE_OK ? TIDE_ERROR_CAPACITY_STREAMS : status;
}

static void begin_node(tide_transmitter_t *t, tide_output_stream_t *stream, tide_node_t *node, int64_t now_ns,
                       tide_frame_parts_t *frame);

/* True if no other frame could be sent now, and no level is configured to hold back others until its messages are
 * acknowledged. */
static bool is_quiet(const tide_transmitter_t *t, int64_t now_ns) {
  return !t->busy && !t->paused && !t->may_hold && !t->answers_due && t->control_count == 0u &&
         t->execution_buffer.count == 0u && now_ns < t->heartbeat_least_ns;
}

int tide_transmitter_submit_next(tide_transmitter_t *t, tide_node_t *node, uint8_t id, int64_t now_ns,
                                 tide_frame_parts_t *frame) {
  const int status = check_submission(t, node, id);
  tide_output_stream_t *stream = status == TIDE_OK ? take_stream(t, id) : NULL;
  if (!stream) return refuse_submission(t, node, status);
  /* unless the node takes the rank of an evicted sample */
  if (TIDE_LEAN || TIDE_STREAM_IS_RELIABLE(id) || node->rank == RANK_NONE) {
    node->rank = rank_of(t, stream, node);
    node->first_sequence = age_of(now_ns);
  }
  t->submissions++;
  node->stream = id;
  node->state = NODE_SUBMITTED;
  start_over(t, node);
  stream->nodes++;
  TIDE_COUNT(t->counters.submitted, 1u);
  if (node->expires_ns != TIDE_FOREVER) limit_time(t, node);
  const bool is_quiet_now = !TIDE_LEAN && frame && is_quiet(t, now_ns);
  if (!is_reliable(node)) {
    if (is_quiet_now) {
      begin_node(t, stream, node, now_ns, frame);
    } else {
      enqueue(t, stream, node);
    }
    return is_quiet_now ? 1 : TIDE_OK;
  }
  node->next_in_stream = NULL;
  if (stream->last) {
    stream->last->next_in_stream = node;
  } else {
    stream->first = node;
  }
  stream->last = node;
  const bool is_first = !stream->sending && !is_being_written(stream); /* the first unsent node */
  if (is_first) stream->sending = node;
  if (is_first && is_quiet_now && has_room(t, stream)) {
    begin_node(t, stream, node, now_ns, frame);
    return 1;
  }
  refresh_stream(t, stream, now_ns);
  return TIDE_OK;
}

int tide_transmitter_submit(tide_transmitter_t *t, tide_node_t *node, uint8_t id, int64_t now_ns) {
  return tide_transmitter_submit_next(t, node, id, now_ns, NULL);
}

static uint32_t aligned(uint32_t length) { return (length + 3u) & ~UINT32_C(3); }

static bool is_sample_of(const tide_node_t *node, const uint8_t *object) {
  return node->bytes[0] == TIDE_XRCE_WRITE_DATA && node->length > OBJECT_OFFSET + 1u &&
         node->bytes[OBJECT_OFFSET] == object[0] && node->bytes[OBJECT_OFFSET + 1u] == object[1];
}

/* True if the message of `node` may share the node and the frame of the preceding message. */
static bool may_join(const tide_transmitter_t *t, const tide_node_t *first, const tide_node_t *node) {
  const uint32_t bytes = aligned(first->length) + node->length;
  if (first->next_fragment > 0u || first == t->current_node || first->state != NODE_SUBMITTED) return false;
  if (first->owner || node->owner || first->priority != node->priority) return false;
  if (first->expires_ns != TIDE_FOREVER || node->expires_ns != TIDE_FOREVER) return false;
  if (node->state != NODE_OWNED || node->length <= OBJECT_OFFSET + 1u) return false;
  /* The size is counted with the longest header, which the next session may have: packed messages must never need
   * fragments, because fragments carry a single message. */
  if (bytes > first->capacity || bytes + TIDE_XRCE_HEADER_MAXIMUM_BYTES > t->config.message_bytes) return false;
  /* Only messages of one writer are packed, because a node kept for the next session waits until its writer exists
   * again. */
  return is_sample_of(first, node->bytes + OBJECT_OFFSET) && is_sample_of(node, node->bytes + OBJECT_OFFSET);
}

bool tide_transmitter_pack(tide_transmitter_t *t, tide_node_t *node, uint8_t id) {
  if (!TIDE_PACKING || !t->config.pack || !TIDE_STREAM_IS_RELIABLE(id)) return false;
  const tide_output_stream_t *stream = find_stream(t, id);
  tide_node_t *first = stream ? stream->last : NULL;
  if (!first || !may_join(t, first, node)) return false;
  const uint32_t start = aligned(first->length);
  memset(first->bytes + first->length, 0, start - first->length);
  memcpy(first->bytes + start, node->bytes, node->length);
  first->length = start + node->length;
  node->stream = id;
  TIDE_INVARIANT(fragment_count(first) == 1u);
  TIDE_COUNT(t->counters.submitted, 1u);
  TIDE_COUNT(t->counters.packed, 1u);
  finish_node(t, node, TIDE_NODE_PACKED);
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
  tide_output_stream_t *stream = take_stream(t, id);
  if (!stream) return TIDE_ERROR_CAPACITY_STREAMS;
  stream->acknack_first = first;
  stream->acknack_missing = missing;
  stream->acknack_due = t->answers_due = true;
  return TIDE_OK;
}

/* ---- messages longer than any node: their parts are adjacent in the stream and are returned to the writer ---- */

int tide_transmitter_submit_part(tide_transmitter_t *t, tide_long_message_t *message, tide_node_t *node, uint8_t id,
                                 bool complete, int64_t now_ns) {
#if TIDE_LONG_MESSAGES
  int status = TIDE_OK;
  if (message->lost) {
    status = TIDE_ERROR_DISCONNECTED;
  } else if (node->state != NODE_OWNED || !TIDE_STREAM_IS_RELIABLE(id) || message->complete || node->length == 0u ||
             node->length > node->capacity) {
    status = TIDE_ERROR_ARGUMENT;
  } else if (node->length / t->fragment_bytes >= 0x7FFFu) {
    status = TIDE_ERROR_TOO_LARGE;
  }
  tide_output_stream_t *stream = status == TIDE_OK ? take_stream(t, id) : NULL;
  if (status == TIDE_OK && !stream) status = TIDE_ERROR_CAPACITY_STREAMS;
  if (stream && stream->long_message && stream->long_message != message) status = TIDE_ERROR_FULL;
  if (status != TIDE_OK) {
    give_to_writer(message, node);
    return status;
  }
  const bool begins = message->stream == 0u;
  if (begins) {
    message->rank = rank_of(t, stream, node);
    t->submissions++;
    TIDE_COUNT(t->counters.submitted, 1u);
  }
  node->rank = message->rank;
  node->owner = message;
  node->stream = id;
  node->state = NODE_SUBMITTED;
  start_over(t, node);
  node->fragment_count = (uint16_t)((node->length + t->fragment_bytes - 1u) / t->fragment_bytes);
  /* insert the part after the message's newest part; if all parts were acknowledged, the remaining nodes of the stream
   * come later */
  tide_node_t *before = begins ? stream->last : message->last;
  tide_node_t **link = before ? &before->next_in_stream : &stream->first;
  node->next_in_stream = *link;
  *link = node;
  if (!node->next_in_stream) stream->last = node;
  if (!stream->sending) stream->sending = node;
  stream->long_message = message;
  stream->nodes++;
  message->stream = id;
  message->last = node;
  message->complete = complete;
  message->parts++;
  refresh_stream(t, stream, now_ns);
  return TIDE_OK;
#else
  (void)t, (void)message, (void)node, (void)id, (void)complete, (void)now_ns;
  return TIDE_ERROR_UNSUPPORTED;
#endif
}

/* Returns all parts to the writer. The wire may still read one of the parts, but that frame has no meaning any more. A
 * part acknowledged meanwhile returns to the pool when the wire releases it. */
static void lose_long(tide_transmitter_t *t, tide_output_stream_t *stream) {
#if TIDE_LONG_MESSAGES
  tide_long_message_t *message = stream->long_message;
  if (!message) return;
  stream->last = NULL;
  for (tide_node_t **link = &stream->first; *link;) {
    tide_node_t *node = *link;
    if (node->owner != message) {
      stream->last = node;
      link = &node->next_in_stream;
      continue;
    }
    *link = node->next_in_stream;
    dequeue(t, stream, node);
    stream->nodes--;
    if (t->current_node == node) t->current_node = NULL;
    give_to_writer(message, node);
  }
  if (t->current_node && t->current_node->owner == message) t->current_node->owner = NULL;
  message->lost = true;
  message->last = NULL;
  message->parts = 0u;
  stream->long_message = NULL;
  stream->sending = stream->first; /* the first node that has not been sent */
  while (stream->sending && stream->sending->next_fragment == stream->sending->fragment_count)
    stream->sending = stream->sending->next_in_stream;
#else
  (void)t, (void)stream;
#endif
}

bool tide_transmitter_give_up_long(tide_transmitter_t *t, tide_long_message_t *message, int64_t now_ns) {
#if TIDE_LONG_MESSAGES
  tide_output_stream_t *stream = message->stream != 0u ? find_stream(t, message->stream) : NULL;
  if (!stream || stream->long_message != message) return false;
  lose_long(t, stream);
  t->paused = true;
  /* Moves the message's sequence numbers out of the window, so that late acknowledgments of them have no effect. */
  stream->first_unacknowledged = stream->next_to_send;
  stream->resent = 0u;
  if (t->busy && t->current_kind == FRAME_NODE && t->current_stream == stream) t->current_kind = FRAME_OF_OLD_SESSION;
  refresh_stream(t, stream, now_ns);
  check(t);
  return true;
#else
  (void)t, (void)message, (void)now_ns;
  return false;
#endif
}

/* ---- the next frame ---- */

typedef struct choice {
  uint8_t kind;
  int32_t priority; /* ACKNACKs and HEARTBEATs precede all nodes of their level */
  size_t control;
  tide_output_stream_t *stream;
  tide_node_t *node;
} choice_t;

static choice_t choose(tide_transmitter_t *t) {
  choice_t best = {.kind = FRAME_NONE, .priority = TIDE_PRIORITY_NONE};
  int32_t held = TIDE_PRIORITY_NONE; /* the most urgent level that keeps less urgent levels off the wire */
  for (size_t i = 0; i < t->control_count; ++i) {
    if (t->control[i].priority <= best.priority) continue;
    best.kind = FRAME_CONTROL;
    best.priority = t->control[i].priority;
    best.control = i;
  }
  if (t->paused) return best;
  const bool looks = TIDE_RELIABLE_STREAMS && (t->answers_due || t->may_hold);
  uint32_t answers = 0u;
  for (size_t i = 0; looks && i < t->stream_places; ++i) {
    tide_output_stream_t *stream = &t->config.streams[i];
    if (in_flight(stream) > 0u) {
      const uint8_t level = stream->level;
      const bool holds = t->config.hold_until_acknowledged || has_bit(t->config.hold_levels[level / 32u], level % 32u);
      if (holds && level > held) held = level;
    }
    if (!stream->acknack_due && !stream->heartbeat_due) continue;
    answers += (stream->acknack_due ? 1u : 0u) + (stream->heartbeat_due ? 1u : 0u);
    const int32_t priority = priority_at(stream, 0xFF);
    if (priority <= best.priority) continue;
    /* Each level has one stream that needs these frames (level 0 also has that of requests); its ACKNACK precedes its
     * HEARTBEAT. */
    best.kind = stream->acknack_due ? FRAME_ACKNACK : FRAME_HEARTBEAT;
    best.priority = priority;
    best.stream = stream;
  }
  tide_node_t *node = (tide_node_t *)(void *)tide_queue_head(&t->execution_buffer);
  const bool may_go = node && !(TIDE_RELIABLE_STREAMS && TIDE_STREAM_LEVEL(node->stream) < held);
  const int32_t priority = may_go ? priority_of_rank(node->rank) : TIDE_PRIORITY_NONE;
  if (priority > best.priority) {
    best.kind = FRAME_NODE;
    best.priority = priority;
    best.node = node;
  }
  const bool is_answer = best.kind == FRAME_ACKNACK || best.kind == FRAME_HEARTBEAT;
  t->answers_due = answers > (is_answer ? 1u : 0u); /* ACKNACKs and HEARTBEATs other than the one sent now */
  return best;
}

static void start_frame(tide_transmitter_t *t, tide_frame_parts_t *frame, uint8_t stream, uint16_t sequence,
                        int64_t now_ns) {
  static const uint8_t padding[3] = {0, 0, 0};
  t->header.stream = stream;
  t->header.sequence = sequence;
  frame->head = frame->head_storage;
  frame->head_bytes = tide_xrce_put_header(frame->head_storage, &t->header);
  frame->body = NULL;
  frame->body_bytes = 0u;
  frame->tail = padding;
  frame->tail_bytes = 0u;
  frame->awaited = false;
#if TIDE_DESKTOP
  frame->time_ns = now_ns;
#else
  (void)now_ns;
#endif
}

static void build_control(tide_transmitter_t *t, size_t index, int64_t now_ns, tide_frame_parts_t *frame) {
  const uint8_t session = t->control[index].session, set_session = t->header.session;
  if (session != HEADER_OF_SET_SESSION) t->header.session = session;
  start_frame(t, frame, TIDE_XRCE_STREAM_NONE, 0u, now_ns);
  t->header.session = set_session;
  memcpy(frame->head_storage + frame->head_bytes, t->control[index].bytes, t->control[index].length);
  frame->head_bytes += t->control[index].length;
  t->current_control = (uint8_t)index;
}

static void build_answer(tide_transmitter_t *t, tide_output_stream_t *stream, uint8_t kind, int64_t now_ns,
                         tide_frame_parts_t *frame) {
  tide_cdr_t cdr;
  start_frame(t, frame, TIDE_XRCE_STREAM_NONE, 0u, now_ns);
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

/* Takes the next fragment of a reliable node. The fragment already counts as sent, because its acknowledgment may
 * arrive before the report of its last byte. */
static void take_fragment(tide_transmitter_t *t, tide_output_stream_t *stream, tide_node_t *node, int64_t now_ns) {
  if (node->resend != 0u) {
    uint16_t offset = 0u;
    while (TIDE_FRAGMENTS && !has_bit(node->resend, offset)) offset++;
    node->resend &= (uint16_t)(node->resend - 1u);
    t->current_fragment = (uint16_t)(window_base(node) + offset);
    t->current_sequence = (uint16_t)(node->first_sequence + t->current_fragment);
    stream->resent |= (uint16_t)(1u << (uint16_t)(t->current_sequence - stream->first_unacknowledged));
    TIDE_COUNT(t->counters.retransmissions, 1u);
  } else {
    TIDE_INVARIANT(has_room(t, stream));
    if (node->next_fragment == 0u) node->first_sequence = stream->next_to_send;
    t->current_fragment = node->next_fragment++;
    t->current_sequence = stream->next_to_send++;
    if (!TIDE_FRAGMENTS || node->next_fragment == node->fragment_count) {
      /* the following node is sent next, unless it has to wait for more parts of a message that is being written */
      const bool waits = is_being_written(stream) && long_message_of(stream)->last == node;
      stream->sending = waits ? NULL : node->next_in_stream;
    }
  }
  stream->sent_ticks[t->current_sequence % 16u] = ticks_of(now_ns);
  if (tide_queue_contains(&node->entry) && node->resend == 0u && !(stream->sending == node && has_room(t, stream)))
    dequeue(t, stream, node);
  if (stream->sending && has_room(t, stream)) enqueue(t, stream, stream->sending);
  stream->heartbeat_at_ns = TIDE_FOREVER; /* the frame is on the wire */
}

/* Makes the node's next fragment the frame on the wire. */
static void begin_node(tide_transmitter_t *t, tide_output_stream_t *stream, tide_node_t *node, int64_t now_ns,
                       tide_frame_parts_t *frame) {
  t->busy = true;
  t->current_kind = FRAME_NODE;
  t->current_stream = stream;
  t->current_node = node;
  if (is_reliable(node)) {
    take_fragment(t, stream, node, now_ns);
  } else {
    dequeue(t, stream, node);
    t->current_sequence = stream->next_sequence;
  }
  start_frame(t, frame, node->stream, t->current_sequence, now_ns);
  frame->awaited = is_reliable(node);
  frame->body = node->bytes;
  frame->body_bytes = node->length;
  const bool of_message = TIDE_LONG_MESSAGES && is_part(stream, node);
  if (TIDE_FRAGMENTS && (node->fragment_count > 1u || of_message)) {
    const tide_long_message_t *message = long_message_of(stream);
    const uint32_t start = t->current_fragment * t->fragment_bytes;
    const bool ends = t->current_fragment + 1u == node->fragment_count;
    const bool last = ends && (!of_message || (message->complete && message->last == node));
    const uint32_t bytes = ends ? node->length - start : t->fragment_bytes;
    frame->body = node->bytes + start;
    frame->body_bytes = bytes;
    const uint8_t flags = (uint8_t)(TIDE_XRCE_FLAG_LITTLE_ENDIAN | (last ? TIDE_XRCE_FLAG_LAST_FRAGMENT : 0u));
    tide_xrce_put_submessage_header(frame->head_storage + frame->head_bytes, TIDE_XRCE_FRAGMENT, flags,
                                    (uint16_t)bytes);
    frame->head_bytes += TIDE_XRCE_SUBMESSAGE_HEADER_BYTES;
    TIDE_COUNT(t->counters.fragments, 1u);
  }
  if (t->config.pad_last) frame->tail_bytes = (4u - frame->body_bytes % 4u) % 4u;
  frame->priority = (tide_priority_t)priority_of_rank(node->rank);
  TIDE_COUNT(t->counters.frames, 1u);
  check(t);
}

bool tide_transmitter_has_next(const tide_transmitter_t *t) {
  return t->control_count > 0u || (!t->paused && (t->execution_buffer.count > 0u || t->answers_due));
}

int tide_transmitter_next(tide_transmitter_t *t, int64_t now_ns, tide_frame_parts_t *frame) {
  if (t->busy) return 0;
  if (now_ns >= t->heartbeat_least_ns) (void)mark_due_heartbeats(t, now_ns);
  if (!tide_transmitter_has_next(t)) return 0;
  const choice_t choice = choose(t);
  if (choice.kind == FRAME_NONE) return 0;
  if (choice.kind == FRAME_NODE) {
    begin_node(t, find_stream(t, choice.node->stream), choice.node, now_ns, frame);
    return 1;
  }
  t->busy = true;
  t->current_kind = choice.kind;
  t->current_node = NULL;
  if (choice.kind == FRAME_CONTROL) {
    build_control(t, choice.control, now_ns, frame);
  } else if (TIDE_RELIABLE_STREAMS) {
    build_answer(t, choice.stream, choice.kind, now_ns, frame);
  }
  frame->priority = (tide_priority_t)choice.priority;
  TIDE_COUNT(t->counters.frames, 1u);
  check(t);
  return 1;
}

/* ---- time limits ---- */

static void move_window(tide_output_stream_t *stream, uint16_t count) {
  stream->first_unacknowledged = (uint16_t)(stream->first_unacknowledged + count);
  stream->resent = shifted(stream->resent, count);
}

static void expire_node(tide_transmitter_t *t, tide_output_stream_t *stream, tide_node_t *node, int64_t now_ns) {
  const bool on_wire = t->busy && t->current_node == node;
  if (!is_reliable(node)) {
    if (!on_wire) release_node(t, stream, node, TIDE_NODE_EXPIRED);
    return;
  }
  if (node->next_fragment > 0u) { /* it was sent, so it leaves a gap, which is allowed only at the front of a stream */
    if (stream->first != node || on_wire) {
      node->state = NODE_OVERDUE;
      return;
    }
    /* If its last fragment was never sent, one more number is skipped, so that the peer always sees a gap between the
     * fragments it has and the next message. */
    const bool sent_in_part = node->next_fragment < fragment_count(node);
    if (sent_in_part) stream->next_to_send++;
    const uint16_t given_up = (uint16_t)(node->next_fragment - window_base(node));
    move_window(stream, (uint16_t)(given_up + (sent_in_part ? 1u : 0u)));
    stream->skipped = true;
    stream->heartbeat_due = t->answers_due = true;
    stream->heartbeat_at_ns = TIDE_FOREVER;
  }
  unlink_node(stream, node);
  release_node(t, stream, node, TIDE_NODE_EXPIRED);
  refresh_stream(t, stream, now_ns);
}

/* A node that expired while others of its stream preceded it may be at the front now. */
static void expire_overdue(tide_transmitter_t *t, tide_output_stream_t *stream, int64_t now_ns) {
  while (TIDE_RELIABLE_STREAMS && !TIDE_LEAN && stream->first && stream->first->state == NODE_OVERDUE &&
         !(t->busy && t->current_node == stream->first))
    expire_node(t, stream, stream->first, now_ns);
}

int64_t tide_transmitter_deadline(const tide_transmitter_t *t) {
  const tide_queue_entry_t *head = TIDE_LEAN ? NULL : tide_queue_head(&t->pending_buffer);
  return head && head->key < t->heartbeat_least_ns ? head->key : t->heartbeat_least_ns;
}

int64_t tide_transmitter_poll(tide_transmitter_t *t, int64_t now_ns) {
  int64_t expiry_ns = TIDE_FOREVER;
  for (tide_queue_entry_t *head; !TIDE_LEAN && (head = tide_queue_head(&t->pending_buffer)) != NULL;) {
    expiry_ns = head->key;
    if (expiry_ns > now_ns) break;
    tide_node_t *node = (tide_node_t *)(void *)((uint8_t *)head - offsetof(tide_node_t, pending));
    tide_output_stream_t *stream = find_stream(t, node->stream);
    tide_queue_remove(&t->pending_buffer, head);
    expire_node(t, stream, node, now_ns);
    expire_overdue(t, stream, now_ns);
    expiry_ns = TIDE_FOREVER;
  }
  const int64_t heartbeat_ns = mark_due_heartbeats(t, now_ns);
  return heartbeat_ns < expiry_ns ? heartbeat_ns : expiry_ns;
}

/* ---- the wire is free again ---- */

static void finish_returning(tide_transmitter_t *t, tide_node_t *node) {
  if (node && node->state == NODE_RETURNING) finish_node(t, node, (tide_node_outcome_t)t->current_outcome);
  check(t);
}

void tide_transmitter_sent(tide_transmitter_t *t, int64_t now_ns) {
  if (!t->busy) return;
  tide_node_t *node = t->current_node;
  tide_output_stream_t *stream = t->current_stream;
  t->busy = false;
  t->current_node = NULL;
  if (t->current_kind == FRAME_CONTROL) {
    TIDE_INVARIANT(t->current_control < t->control_count);
    t->control_count--;
    for (size_t i = t->current_control; i < t->control_count; ++i) t->control[i] = t->control[i + 1u];
  } else if (TIDE_RELIABLE_STREAMS && t->current_kind == FRAME_HEARTBEAT) {
    if (in_flight(stream) > 0u || has_skipped(stream)) ask_at(t, stream, now_ns + repeat_delay_ns(t, stream));
    refresh_stream(t, stream, now_ns);
  } else if (t->current_kind == FRAME_NODE && !is_reliable(node)) {
    stream->next_sequence++;
    if (node->state == NODE_SUBMITTED) release_node(t, stream, node, TIDE_NODE_SENT);
  } else if (t->current_kind == FRAME_NODE) {
    if (node->state != NODE_RETURNING) stream->sent_ticks[t->current_sequence % 16u] = ticks_of(now_ns);
    stream->heartbeat_at_ns = TIDE_FOREVER; /* set again when the stream's last frame is sent */
    refresh_stream(t, stream, now_ns);
    expire_overdue(t, stream, now_ns);
  }
  finish_returning(t, node);
}

void tide_transmitter_cancel(tide_transmitter_t *t) {
  if (!t->busy) return;
  tide_node_t *node = t->current_node;
  tide_output_stream_t *stream = t->current_stream;
  t->busy = false;
  t->current_node = NULL;
  if (t->current_kind == FRAME_NODE) {
    const bool acknowledged = is_reliable(node) && t->current_fragment < window_base(node);
    if (node->state != NODE_RETURNING && !acknowledged) {
      if (is_reliable(node)) node->resend |= (uint16_t)(1u << (uint16_t)(t->current_fragment - window_base(node)));
      enqueue(t, stream, node);
    }
    /* the HEARTBEAT's delay normally begins when the stream's last frame ends, but no frame of this stream is left to
     * send */
    if (is_reliable(node) && stream->queued == 0u && in_flight(stream) > 0u) stream->heartbeat_due = true;
  }
  if (t->current_kind == FRAME_ACKNACK) stream->acknack_due = true;
  if (t->current_kind == FRAME_HEARTBEAT) stream->heartbeat_due = true;
  t->answers_due = true; /* the next choice finds out whether an ACKNACK or HEARTBEAT is due */
  finish_returning(t, node);
}

/* ---- acknowledgments ---- */

static uint32_t elapsed_ticks(const tide_output_stream_t *stream, uint16_t sequence, int64_t now_ns) {
  return ticks_of(now_ns) - stream->sent_ticks[sequence % 16u];
}

static void measure_round_trip(tide_transmitter_t *t, const tide_output_stream_t *stream, uint16_t count,
                               int64_t now_ns) {
  /* Karn's algorithm: repeated messages are not measured. With an adaptive delay, acknowledgments that a HEARTBEAT may
   * have requested are not measured either. Such an acknowledgment suggests that the delay is too short for this link,
   * so the delay is doubled until the next measurement. */
  const uint16_t newest = (uint16_t)(stream->first_unacknowledged + count - 1u);
  if ((stream->resent & low_bits(count)) != 0u) return;
  if (t->busy && t->current_kind == FRAME_NODE && t->current_stream == stream && t->current_sequence == newest) return;
  if (t->config.heartbeat_delay_ns < 0 && stream->heartbeats_unanswered > 0u && t->round_trip_eighths > 0u) {
    if (t->delay_shift < DELAY_SHIFT_MAXIMUM) t->delay_shift++;
    return;
  }
  /* As in TCP (Jacobson, Congestion Avoidance and Control, 1988): an eighth of each error is added to the mean, and a
   * quarter to the mean deviation. The mean is stored times 8, the deviation times 4. */
  const uint32_t sample_ticks = elapsed_ticks(stream, newest, now_ns);
  if (sample_ticks > ROUND_TRIP_MAXIMUM_TICKS) return;
  t->delay_shift = 0u;
  if (t->round_trip_eighths == 0u) {
    t->round_trip_eighths = sample_ticks > 0u ? sample_ticks * 8u : 1u;
    t->deviation_quarters = sample_ticks * 2u;
    return;
  }
  const int32_t error = (int32_t)(sample_ticks - round_trip_ticks(t));
  t->round_trip_eighths += (uint32_t)error;
  t->deviation_quarters += (uint32_t)(error < 0 ? -error : error) - t->deviation_quarters / 4u;
}

static void acknowledge(tide_transmitter_t *t, tide_output_stream_t *stream, uint16_t count) {
  while (count > 0u && stream->first) {
    tide_node_t *node = stream->first;
    uint16_t step = (uint16_t)(node->next_fragment - window_base(node));
    TIDE_INVARIANT(step <= in_flight(stream));
    if (TIDE_FRAGMENTS && step > count) step = count;
    if (step == 0u) return;
    count = (uint16_t)(count - step);
    move_window(stream, step);
    if (TIDE_FRAGMENTS) {
      node->window_base = (uint16_t)(node->window_base + step);
      node->resend = shifted(node->resend, step);
    }
    if (!TIDE_FRAGMENTS || node->window_base == node->fragment_count) {
      unlink_node(stream, node);
      release_node(t, stream, node, TIDE_NODE_ACKNOWLEDGED);
    } else if (node->resend == 0u && stream->sending != node) {
      dequeue(t, stream, node);
    }
  }
}

/* True if a missing fragment is already queued or on the wire, or was repeated less than a round trip ago. */
static bool is_under_way(const tide_transmitter_t *t, const tide_output_stream_t *stream, const tide_node_t *node,
                         uint16_t sequence, int64_t now_ns) {
  const uint16_t fragment = (uint16_t)(sequence - node->first_sequence);
  if (has_bit(node->resend, (uint16_t)(fragment - window_base(node)))) return true;
  if (t->busy && t->current_kind == FRAME_NODE && t->current_node == node && t->current_fragment == fragment)
    return true;
  if (!has_bit(stream->resent, (uint16_t)(sequence - stream->first_unacknowledged))) return false;
  const uint32_t guard_ticks = t->round_trip_eighths > 0u ? round_trip_ticks(t) : DELAY_UNMEASURED_NS >> TICK_BITS;
  return elapsed_ticks(stream, sequence, now_ns) < guard_ticks;
}

/* Returns the number of fragments that were queued again. */
static uint16_t resend_flagged(tide_transmitter_t *t, tide_output_stream_t *stream, uint16_t missing, int64_t now_ns) {
  uint16_t count = 0u;
  tide_node_t *node = stream->first;
  const uint16_t sent = in_flight(stream);
  for (uint16_t n = 0; n < sent; ++n) {
    const uint16_t sequence = (uint16_t)(stream->first_unacknowledged + n);
    while ((uint16_t)(sequence - node->first_sequence) >= (TIDE_FRAGMENTS ? node->next_fragment : 1u))
      node = node->next_in_stream;
    TIDE_INVARIANT(node != NULL);
    if (!has_bit(missing, n)) continue;
    if (is_under_way(t, stream, node, sequence, now_ns)) {
      TIDE_COUNT(t->counters.nack_ignored, 1u);
      continue;
    }
    node->resend |= (uint16_t)(1u << (uint16_t)(sequence - node->first_sequence - window_base(node)));
    enqueue(t, stream, node);
    count++;
  }
  return count;
}

int tide_transmitter_on_acknack(tide_transmitter_t *t, const tide_xrce_acknack_t *acknack, int64_t now_ns) {
  tide_output_stream_t *stream = TIDE_STREAM_IS_RELIABLE(acknack->stream) ? find_stream(t, acknack->stream) : NULL;
  const uint16_t count = stream ? (uint16_t)(acknack->first_unacknowledged - stream->first_unacknowledged) : 0u;
  if (stream && count >= 0x8000u) return TIDE_OK; /* overtaken, or the peer still waits for an expired message */
  if (!stream || count > in_flight(stream)) {
    TIDE_COUNT(t->counters.nack_ignored, 1u);
    return stream ? TIDE_ERROR_STATE : TIDE_OK;
  }
  if (count > 0u) {
    measure_round_trip(t, stream, count, now_ns);
    acknowledge(t, stream, count);
  }
  const bool progress = count > 0u || has_skipped(stream);
  stream->skipped = false;
  if (resend_flagged(t, stream, acknack->missing, now_ns) > 0u || progress) {
    stream->heartbeats_unanswered = 0u;
    if (t->config.heartbeat_delay_ns < 0) stream->heartbeat_at_ns = TIDE_FOREVER;
  }
  expire_overdue(t, stream, now_ns);
  refresh_stream(t, stream, now_ns);
  check(t);
  return TIDE_OK;
}

/* ---- sessions ---- */

static void restart_stream(tide_transmitter_t *t, tide_output_stream_t *stream) {
  if (!TIDE_STREAM_IS_RELIABLE(stream->id)) { /* messages submitted by on_done meanwhile belong to the new session */
    const uint16_t nodes = stream->nodes;
    clear_stream(stream, nodes > 0u ? stream->id : 0u);
    stream->nodes = stream->queued = nodes;
    return;
  }
  for (tide_node_t *node = stream->first; node; node = node->next_in_stream) {
    dequeue(t, stream, node);
    stop_limit(t, node);
    if (node->expires_ns != TIDE_FOREVER) limit_time(t, node);
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
    tide_output_stream_t *stream = &t->config.streams[i];
    if (stream->id == 0u) continue;
    lose_long(t, stream);
    while (TIDE_RELIABLE_STREAMS && !keep && stream->first) {
      tide_node_t *node = stream->first;
      unlink_node(stream, node);
      release_node(t, stream, node, TIDE_NODE_DISCARDED);
    }
    restart_stream(t, stream);
  }
  while (t->stream_places > 0u && t->config.streams[t->stream_places - 1u].id == 0u) t->stream_places--;
  if (t->busy && t->current_kind != FRAME_CONTROL) t->current_kind = FRAME_OF_OLD_SESSION;
  check(t);
}

tide_node_t *tide_transmitter_take_back(tide_transmitter_t *t) {
  tide_node_t *taken = NULL;
  for (size_t i = 0; TIDE_RELIABLE_STREAMS && i < t->stream_places; ++i) {
    tide_output_stream_t *stream = &t->config.streams[i];
    if (!TIDE_STREAM_IS_RELIABLE(stream->id)) continue;
    lose_long(t, stream);
    while (stream->first) {
      tide_node_t *node = stream->first;
      unlink_node(stream, node);
      dequeue(t, stream, node);
      stop_limit(t, node);
      stream->nodes--;
      if (t->current_node == node) t->current_node = NULL; /* the wire may still read it, but without effect */
      node->state = NODE_OWNED;
      tide_node_t **link = &taken; /* each stream is in order: merge by the low bits of the rank */
      while (*link && ((*link)->rank & RANK_ORDER_MASK) < (node->rank & RANK_ORDER_MASK))
        link = &(*link)->next_in_stream;
      node->next_in_stream = *link;
      *link = node;
    }
  }
  tide_transmitter_reset(t, false);
  return taken;
}

static void note_holding_levels(tide_transmitter_t *t) {
  const uint32_t *levels = t->config.hold_levels;
  t->may_hold = t->config.hold_until_acknowledged || (levels[0] | levels[1] | levels[2] | levels[3]) != 0u;
}

static void set_fragment_bytes(tide_transmitter_t *t) {
  t->fragment_bytes =
      t->config.message_bytes - (uint32_t)tide_xrce_header_bytes(t->header.session) - TIDE_XRCE_SUBMESSAGE_HEADER_BYTES;
}

void tide_transmitter_set_session(tide_transmitter_t *t, uint8_t session, uint32_t key) {
  const bool same_header = tide_xrce_header_bytes(session) == tide_xrce_header_bytes(t->header.session);
  t->header.session = session;
  t->header.key = key;
  if (same_header) return;
  set_fragment_bytes(t);
  tide_transmitter_reset(t, true); /* fragmented messages start again from their first fragment */
}

/* ---- set-up and settings ---- */

static int check_config(const tide_transmitter_config_t *config) {
  if (!config->nodes || !config->execution_storage || !config->pending_storage || !config->classes || !config->streams)
    return TIDE_ERROR_ARGUMENT;
  if (config->class_count == 0u || config->class_count > 4u || config->stream_count == 0u) return TIDE_ERROR_ARGUMENT;
  if (config->stream_count > UINT16_MAX) return TIDE_ERROR_ARGUMENT;
  if (config->message_bytes < 64u || config->message_bytes % 4u != 0u) return TIDE_ERROR_ARGUMENT;
  if (config->window > 16u || config->heartbeat_delay_ns < -1) return TIDE_ERROR_ARGUMENT;
  if (config->heartbeat_period_ns < 0 || config->heartbeat_floor_ns < 0) return TIDE_ERROR_ARGUMENT;
  for (size_t i = 0; !TIDE_RELIABLE_STREAMS && i < sizeof config->hold_levels / sizeof config->hold_levels[0]; ++i)
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

int tide_transmitter_init(tide_transmitter_t *t, const tide_transmitter_config_t *config) {
  if (!t || !config) return TIDE_ERROR_ARGUMENT;
  const int status = TIDE_LEAN ? TIDE_OK : check_config(config);
  if (status != TIDE_OK) return status;
  memset(t, 0, sizeof *t);
  t->config = *config;
  if (t->config.window == 0u) t->config.window = TIDE_TRANSMITTER_WINDOW_DEFAULT;
  if (t->config.heartbeat_period_ns == 0) t->config.heartbeat_period_ns = PERIOD_DEFAULT_NS;
  t->header.session = DEFAULT_SESSION;
  t->heartbeat_least_ns = TIDE_FOREVER;
  t->current_stream = config->streams;
  set_fragment_bytes(t);
  note_holding_levels(t);
  tide_queue_init(&t->execution_buffer, config->execution_storage, config->node_count);
  tide_queue_init(&t->pending_buffer, config->pending_storage, config->node_count);
  for (size_t i = 0; i < config->stream_count; ++i) clear_stream(&config->streams[i], 0u);
  tide_node_t *node = config->nodes;
  for (size_t i = 0; i < config->class_count; ++i) {
    const tide_size_class_t *size = &config->classes[i];
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
  check(t);
  return TIDE_OK;
}

int tide_transmitter_set_heartbeat_delay(tide_transmitter_t *t, int64_t delay_ns) {
  if (delay_ns < -1) return TIDE_ERROR_ARGUMENT;
  t->config.heartbeat_delay_ns = delay_ns;
  return TIDE_OK;
}

int tide_transmitter_hold_level(tide_transmitter_t *t, uint8_t level, bool hold) {
  if (level > TIDE_LEVEL_MAXIMUM) return TIDE_ERROR_ARGUMENT;
  if (!TIDE_RELIABLE_STREAMS && hold) return TIDE_ERROR_UNSUPPORTED;
  const uint32_t bit = UINT32_C(1) << level % 32u;
  uint32_t *const levels = &t->config.hold_levels[level / 32u];
  *levels = hold ? *levels | bit : *levels & ~bit;
  note_holding_levels(t);
  return TIDE_OK;
}

void tide_transmitter_pause_streams(tide_transmitter_t *t, bool paused) { t->paused = paused; }

uint16_t tide_transmitter_in_flight(const tide_transmitter_t *t, uint8_t id) {
  const tide_output_stream_t *stream = TIDE_STREAM_IS_RELIABLE(id) ? find_stream(t, id) : NULL;
  return stream ? in_flight(stream) : 0u;
}

bool tide_transmitter_is_idle(const tide_transmitter_t *t, uint8_t id) {
  for (size_t i = 0; i < t->stream_places; ++i) {
    const tide_output_stream_t *stream = &t->config.streams[i];
    if ((id == 0u || stream->id == id) && stream->nodes > 0u) return false;
  }
  return true;
}
