/* SPDX-License-Identifier: Apache-2.0 */
/* Who may take a node: each level has one, and each writer that has starved. For transmitter_pool.c. */
#ifndef TIDE_DAEMON_TRANSMITTER_CLAIMS_H
#define TIDE_DAEMON_TRANSMITTER_CLAIMS_H

#include "tide/invariant.h"
#include "transmitter_internal.h"

/* Who asks for a node. */
typedef struct claim {
  tide_priority_t priority;
  uint8_t account;
} claim_t;

/* Writers that share a number count as one. The number of an object stands above its kind, which takes four bits. */
static inline claim_t claim_of(tide_priority_t priority, uint16_t writer) {
  const bool is_known = TIDE_RESERVATIONS && writer != 0u;
  const claim_t claim = {
      priority, is_known ? (uint8_t)(((uint32_t)writer >> 4 ^ (uint32_t)writer << 2) % 32u) : TIDE_NODE_NO_WRITER};
  return claim;
}

#if TIDE_RESERVATIONS
static uint32_t bit_of(tide_priority_t priority) { return UINT32_C(1) << TIDE_PRIORITY_LEVEL(priority) % 32u; }

static uint32_t bit_of_writer(uint8_t account) { return account < TIDE_NODE_NO_WRITER ? UINT32_C(1) << account : 0u; }

static inline void add_to_use(tide_node_use_t *use, const tide_node_t *node) {
  use->levels_with_more |= use->levels & bit_of(node->priority);
  use->levels |= bit_of(node->priority);
  use->writers_with_more |= use->writers & bit_of_writer(node->account);
  use->writers |= bit_of_writer(node->account);
}

/* All nodes of a class that are in use, looked at. */
static inline tide_node_use_t count_use(const tide_transmitter_t *t, size_t size_class) {
  tide_node_use_t use = {0u, 0u, 0u, 0u};
  for (size_t i = 0; i < t->config.node_count; ++i) {
    const tide_node_t *node = &t->config.nodes[i];
    if (node->size_class != size_class || node->state == NODE_FREE || node->account == TIDE_NODE_OWN) continue;
    add_to_use(&use, node);
  }
  return use;
}

enum { MOST_KEPT = 64 }; /* a bit of each mask */

#if TIDE_NODE_COUNTS
static inline tide_node_use_t look_at_use(const tide_transmitter_t *t, size_t size_class) {
  const uint16_t *of_level = t->counted[size_class].of_level, *of_writer = t->counted[size_class].of_writer;
  tide_node_use_t use = {0u, 0u, 0u, 0u};
  for (uint32_t i = 0u; i < 32u; ++i) {
    use.levels |= (of_level[i] > 0u ? 1u : 0u) << i;
    use.levels_with_more |= (of_level[i] > 1u ? 1u : 0u) << i;
    use.writers |= (of_writer[i] > 0u ? 1u : 0u) << i;
    use.writers_with_more |= (of_writer[i] > 1u ? 1u : 0u) << i;
  }
  return use;
}

/* One more, or one less. A node keeps the priority that it was acquired with until it is free. */
static inline void note_use(tide_transmitter_t *t, const tide_node_t *node, int change) {
  if (node->account == TIDE_NODE_OWN) return;
  uint16_t *of_level = &t->counted[node->size_class].of_level[TIDE_PRIORITY_LEVEL(node->priority) % 32u];
  TIDE_INVARIANT(change > 0 || *of_level > 0u);
  *of_level = (uint16_t)(*of_level + change);
  if (node->account >= TIDE_NODE_NO_WRITER) return;
  uint16_t *of_writer = &t->counted[node->size_class].of_writer[node->account];
  TIDE_INVARIANT(change > 0 || *of_writer > 0u);
  *of_writer = (uint16_t)(*of_writer + change);
}
#else
static inline tide_node_use_t look_at_use(const tide_transmitter_t *t, size_t size_class) {
  return count_use(t, size_class);
}

static inline void note_use(tide_transmitter_t *t, const tide_node_t *node, int change) {
  (void)t;
  (void)node;
  (void)change;
}
#endif

static uint32_t count_bits(uint32_t bits) {
  uint32_t count = 0u;
  for (; bits != 0u; bits &= bits - 1u) ++count;
  return count;
}

/* The first one is each level's right, then each writer's that has starved; a second one is for whoever comes, while
 * each of the others would still find its first. */
static inline bool may_take(const tide_transmitter_t *t, claim_t claim, size_t size_class, bool is_smallest) {
  const uint32_t free_count = t->free_counts[size_class], starved = t->starved[size_class];
  if (free_count > MOST_KEPT || free_count > count_bits(t->levels[size_class]) + count_bits(starved)) return true;
  const tide_node_use_t use = look_at_use(t, size_class);
  if (is_smallest && (use.levels & bit_of(claim.priority)) == 0u) return true;
  uint32_t kept = count_bits(t->levels[size_class] & ~use.levels);
  const bool is_first = is_smallest && (starved & ~use.writers & bit_of_writer(claim.account)) != 0u;
  if (!is_first) kept += count_bits(starved & ~use.writers);
  return free_count > kept;
}

/* As long as each level can have one, and each writer that has starved. */
static inline bool is_protected(const tide_transmitter_t *t, const tide_node_t *node, tide_priority_t below) {
  const uint32_t level = bit_of(node->priority), levels = count_bits(t->levels[node->size_class]);
  const uint32_t starved = t->starved[node->size_class], count = t->config.classes[node->size_class].count;
  const tide_node_use_t use = look_at_use(t, node->size_class);
  if (level != bit_of(below) && (use.levels_with_more & level) == 0u && levels <= count) return true;
  const bool is_only_one = (starved & ~use.writers_with_more & bit_of_writer(node->account)) != 0u;
  return is_only_one && levels + count_bits(starved) <= count;
}

/* True: this writer has found no node while it had none, for the first time. */
static inline bool note_starved(tide_transmitter_t *t, claim_t claim, size_t size_class) {
  const uint32_t bit = bit_of_writer(claim.account) & ~t->starved[size_class];
  if (bit == 0u || (look_at_use(t, size_class).writers & bit) != 0u) return false;
  t->starved[size_class] |= bit;
  return true;
}

static inline void note_level(tide_transmitter_t *t, tide_priority_t priority, size_t size_class) {
  t->levels[size_class] |= bit_of(priority);
}

static inline void count_free(tide_transmitter_t *t, size_t size_class, int change) {
  t->free_counts[size_class] = (uint16_t)(t->free_counts[size_class] + change);
}
#else
static inline void note_use(tide_transmitter_t *t, const tide_node_t *node, int change) {
  (void)t;
  (void)node;
  (void)change;
}
static inline bool may_take(const tide_transmitter_t *t, claim_t claim, size_t size_class, bool is_smallest) {
  (void)t;
  (void)claim;
  (void)size_class;
  (void)is_smallest;
  return true;
}
static inline bool is_protected(const tide_transmitter_t *t, const tide_node_t *node, tide_priority_t below) {
  (void)t;
  (void)node;
  (void)below;
  return false;
}
static inline bool note_starved(tide_transmitter_t *t, claim_t claim, size_t size_class) {
  (void)t;
  (void)claim;
  (void)size_class;
  return false;
}
static inline void note_level(tide_transmitter_t *t, tide_priority_t priority, size_t size_class) {
  (void)t;
  (void)priority;
  (void)size_class;
}
static inline void count_free(tide_transmitter_t *t, size_t size_class, int change) {
  (void)t;
  (void)size_class;
  (void)change;
}
#endif

#endif
