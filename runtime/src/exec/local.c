/* SPDX-License-Identifier: Apache-2.0 */
/* Local delivery: messages between publishers and subscriptions of one program. A message has one reference for the
 * loan, one for each queue that contains it, and one for each callback that reads it. Removing the last reference frees
 * the message.
 *
 * Publishing leaves the critical section after each subscription, because a lane must not be woken inside it.
 * While the list of subscriptions is unchanged, publishing follows its pointers; after a change it finds the next
 * subscription by number. */
#include "tide/local.h"

#include "exec.h"
#include "tide/invariant.h"
#include "tide/status.h"

#define HEADER_BYTES ((sizeof(tide_local_message_t) + 7u) & ~(size_t)7u)
_Static_assert(TIDE_LOCAL_BLOCK_BYTES(8u) == HEADER_BYTES + 8u, "local.h and this file cut the storage alike");

static void *payload_of(tide_local_message_t *message) { return (uint8_t *)message + HEADER_BYTES; }

static tide_local_message_t *message_of(const void *payload) {
  return (tide_local_message_t *)(void *)((const uint8_t *)payload - HEADER_BYTES);
}

static uintptr_t enter(const tide_local_pool_t *pool) { return tide_platform_enter(pool->platform); }
static void leave(const tide_local_pool_t *pool, uintptr_t state) { tide_platform_exit(pool->platform, state); }

int tide_local_pool_init(tide_local_pool_t *pool, const tide_platform_t *platform, void *storage, uint32_t count,
                         uint32_t message_bytes) {
  if (pool == NULL || platform == NULL || storage == NULL || (uintptr_t)storage % 8u != 0u || count == 0u ||
      message_bytes == 0u) {
    return TIDE_ERROR_ARGUMENT;
  }
  *pool = (tide_local_pool_t){.platform = platform, .message_bytes = message_bytes, .count = count};
  for (uint32_t index = count; index > 0u; index--) {
    tide_local_message_t *message =
        (void *)((uint8_t *)storage + (size_t)(index - 1u) * TIDE_LOCAL_BLOCK_BYTES(message_bytes));
    *message = (tide_local_message_t){.next = pool->free};
    pool->free = message;
  }
  return TIDE_OK;
}

/* Locked. */
static int reserve(tide_local_topic_t *topic, uint32_t count) {
  tide_local_pool_t *pool = topic->pool;
  TIDE_INVARIANT(pool->reserved <= pool->count && topic->limit <= pool->reserved);
  if (count > pool->count - pool->reserved) return TIDE_ERROR_FULL;
  pool->reserved += count;
  topic->limit += count;
  return TIDE_OK;
}

/* Locked. */
static void unreserve(tide_local_topic_t *topic, uint32_t count) {
  TIDE_INVARIANT(count <= topic->limit && topic->limit <= topic->pool->reserved);
  topic->pool->reserved -= count;
  topic->limit -= count;
}

int tide_local_topic_init(tide_local_topic_t *topic, tide_local_pool_t *pool, uint32_t loans) {
  if (topic == NULL || pool == NULL) return TIDE_ERROR_ARGUMENT;
  *topic = (tide_local_topic_t){.pool = pool};
  const uintptr_t lock = enter(pool);
  const int status = reserve(topic, loans);
  leave(pool, lock);
  return status;
}

int tide_local_change_loans(tide_local_topic_t *topic, int32_t change) {
  if (topic == NULL || topic->pool == NULL) return TIDE_ERROR_ARGUMENT;
  int status = TIDE_OK;
  const uintptr_t lock = enter(topic->pool);
  const uint32_t fewer = change < 0 ? 0u - (uint32_t)change : 0u;
  if (change > 0) {
    status = reserve(topic, (uint32_t)change);
  } else if (fewer > topic->limit) {
    status = TIDE_ERROR_ARGUMENT;
  } else {
    unreserve(topic, fewer);
  }
  leave(topic->pool, lock);
  return status;
}

int tide_local_topic_fini(tide_local_topic_t *topic) {
  if (topic == NULL || topic->pool == NULL) return TIDE_ERROR_ARGUMENT;
  const uintptr_t lock = enter(topic->pool);
  const bool in_use = topic->subscriptions != NULL || topic->used > 0u;
  if (!in_use) unreserve(topic, topic->limit);
  leave(topic->pool, lock);
  return in_use ? TIDE_ERROR_STATE : TIDE_OK;
}

static bool is_subscribed(const tide_local_topic_t *topic, const tide_local_subscription_t *subscription) {
  const tide_local_subscription_t *other = topic->subscriptions;
  while (other != NULL && other != subscription) other = other->next;
  return other != NULL;
}

/* Appends the subscription to the topic's list. Call this with the lock held. */
static void join(tide_local_topic_t *topic, tide_local_subscription_t *subscription) {
  tide_local_subscription_t **place = &topic->subscriptions;
  while (*place != NULL) place = &(*place)->next;
  *subscription = (tide_local_subscription_t){.callback = subscription->callback,
                                              .queue = subscription->queue,
                                              .depth = subscription->depth,
                                              .number = topic->changes++,
                                              .topic = topic};
  tide_exec_mark_local_locked(subscription->callback);
  *place = subscription;
}

int tide_local_subscribe(tide_local_topic_t *topic, tide_local_subscription_t *subscription) {
  if (topic == NULL || topic->pool == NULL || subscription == NULL || subscription->callback == NULL ||
      subscription->queue == NULL || subscription->depth == 0u) {
    return TIDE_ERROR_ARGUMENT;
  }
  const uintptr_t lock = enter(topic->pool);
  int status = is_subscribed(topic, subscription) ? TIDE_ERROR_EXISTS : reserve(topic, subscription->depth + 1u);
  if (status == TIDE_OK) join(topic, subscription);
  leave(topic->pool, lock);
  return status;
}

/* Locked. */
static void let_go(tide_local_message_t *message) {
  tide_local_topic_t *topic = message->topic;
  TIDE_INVARIANT(message->references > 0u && topic->used > 0u);
  message->references--;
  if (message->references > 0u) return;
  topic->used--;
  message->next = topic->pool->free;
  topic->pool->free = message;
}

/* Called with the lock held; returns null when the queue is empty. */
static tide_local_message_t *dequeue(tide_local_subscription_t *subscription) {
  if (subscription->count == 0u) return NULL;
  tide_local_message_t *message = subscription->queue[subscription->first];
  subscription->first = (uint16_t)((subscription->first + 1u) % subscription->depth);
  subscription->count--;
  TIDE_INVARIANT(subscription->first < subscription->depth && message->topic == subscription->topic);
  return message;
}

int tide_local_unsubscribe(tide_local_subscription_t *subscription) {
  if (subscription == NULL || subscription->topic == NULL) return TIDE_ERROR_ARGUMENT;
  tide_local_topic_t *topic = subscription->topic;
  int status = TIDE_ERROR_NOT_FOUND;
  const uintptr_t lock = enter(topic->pool);
  tide_local_subscription_t **place = &topic->subscriptions;
  while (*place != NULL && *place != subscription) place = &(*place)->next;
  if (*place != NULL) {
    *place = subscription->next;
    topic->changes++;
    for (tide_local_message_t *message = dequeue(subscription); message != NULL; message = dequeue(subscription)) {
      let_go(message);
    }
    unreserve(topic, subscription->depth + 1u);
    status = TIDE_OK;
  }
  leave(topic->pool, lock);
  return status;
}

int tide_local_borrow(tide_local_topic_t *topic, void **message) {
  if (topic == NULL || topic->pool == NULL || message == NULL) return TIDE_ERROR_ARGUMENT;
  tide_local_pool_t *pool = topic->pool;
  const uintptr_t lock = enter(pool);
  tide_local_message_t *taken = topic->used < topic->limit ? pool->free : NULL;
  if (taken == NULL) {
    topic->counters.refused++;
  } else {
    TIDE_INVARIANT(taken->references == 0u);
    pool->free = taken->next;
    taken->topic = topic;
    taken->references = 1u;
    topic->used++;
    topic->counters.used_maximum =
        topic->used > topic->counters.used_maximum ? topic->used : topic->counters.used_maximum;
  }
  leave(pool, lock);
  *message = taken == NULL ? NULL : payload_of(taken);
  return taken == NULL ? TIDE_ERROR_FULL : TIDE_OK;
}

/* Locked. Returns true if the callback has one more run to do. */
static bool enqueue(tide_local_subscription_t *subscription, tide_local_message_t *message) {
  const bool full = subscription->count == subscription->depth;
  if (full) {
    subscription->dropped++;
    subscription->topic->counters.dropped++;
    let_go(dequeue(subscription));
  }
  const size_t place = (size_t)subscription->first + subscription->count;
  subscription->queue[place % subscription->depth] = message;
  subscription->count++;
  TIDE_INVARIANT(subscription->count <= subscription->depth && subscription->first < subscription->depth);
  subscription->received++;
  subscription->topic->counters.delivered++;
  message->references++;
  return !full;
}

/* Returns the first subscription with at least this number that existed when the publication began, i.e. whose number
 * is below `end`. Call this with the lock held. */
static tide_local_subscription_t *next_of(tide_local_subscription_t *subscription, uint32_t number, uint32_t end) {
  while (subscription != NULL && (int32_t)(subscription->number - number) < 0) subscription = subscription->next;
  return subscription != NULL && (int32_t)(subscription->number - end) < 0 ? subscription : NULL;
}

static tide_lane_t *deliver(tide_local_subscription_t *subscription, tide_local_message_t *message,
                            tide_executor_t **executor) {
  tide_callback_t *callback = subscription->callback;
  *executor = callback->executor;
  const bool runs = enqueue(subscription, message) && callback->executor != NULL;
  return runs ? tide_exec_notify_masked(callback, NULL, message->published_ns) : NULL;
}

static int distribute(tide_local_topic_t *topic, tide_local_message_t *message) {
  int reached = 0;
  uintptr_t lock = enter(topic->pool);
  const uint32_t end = topic->changes;
  uint32_t changes = topic->changes;
  topic->counters.published++;
  tide_local_subscription_t *subscription = topic->subscriptions;
  while (subscription != NULL) {
    const uint32_t number = subscription->number;
    tide_executor_t *executor = NULL;
    tide_lane_t *lane = deliver(subscription, message, &executor);
    tide_local_subscription_t *next = subscription->next;
    reached++;
    leave(topic->pool, lock);
    if (lane != NULL) tide_exec_wake_lane(executor, lane);
    lock = enter(topic->pool);
    subscription = next_of(changes == topic->changes ? next : topic->subscriptions, number + 1u, end);
    changes = topic->changes;
  }
  let_go(message);
  leave(topic->pool, lock);
  return reached;
}

int tide_local_publish(tide_local_topic_t *topic, void *message, uint32_t bytes) {
  if (topic == NULL || topic->pool == NULL || message == NULL || message_of(message)->topic != topic) {
    return TIDE_ERROR_ARGUMENT;
  }
  if (bytes > topic->pool->message_bytes) return TIDE_ERROR_TOO_LARGE;
  tide_local_message_t *published = message_of(message);
  published->bytes = bytes;
  published->published_ns = tide_platform_now_ns(topic->pool->platform);
  return distribute(topic, published);
}

void tide_local_release(const void *message) {
  tide_local_message_t *released = message_of(message);
  const tide_local_pool_t *pool = released->topic->pool;
  const uintptr_t lock = enter(pool);
  let_go(released);
  leave(pool, lock);
}

void tide_local_give_back(void *message) { tide_local_release(message); }

const void *tide_local_take(tide_local_subscription_t *subscription, tide_local_information_t *information) {
  if (subscription == NULL || subscription->topic == NULL) return NULL;
  const tide_local_pool_t *pool = subscription->topic->pool;
  const uintptr_t lock = enter(pool);
  tide_local_message_t *message = dequeue(subscription);
  leave(pool, lock);
  if (message == NULL) return NULL;
  if (information != NULL) {
    *information = (tide_local_information_t){.bytes = message->bytes, .published_ns = message->published_ns};
  }
  return payload_of(message);
}

int64_t tide_local_oldest_ns(tide_local_subscription_t *subscription) {
  if (subscription == NULL || subscription->topic == NULL) return TIDE_FOREVER;
  const tide_local_pool_t *pool = subscription->topic->pool;
  const uintptr_t lock = enter(pool);
  const int64_t oldest_ns =
      subscription->count == 0u ? TIDE_FOREVER : subscription->queue[subscription->first]->published_ns;
  leave(pool, lock);
  return oldest_ns;
}
