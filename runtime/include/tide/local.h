/* SPDX-License-Identifier: Apache-2.0 */
/* Local delivery: messages between callbacks of one process, without an agent and without a copy. The publisher borrows
 * a message, fills it in place and publishes it. Each subscription queues a reference, and each callback reads the same
 * memory and releases it. After the last release the message is free again. Publishing makes the callbacks ready as a
 * received frame does, so policy, priorities, groups and lanes apply.
 *
 *   int32_t *message;                                             in a callback, a thread or an interrupt
 *   if (tide_local_borrow(&topic, (void **)&message) == TIDE_OK) {
 *     *message = 42;
 *     tide_local_publish(&topic, message, sizeof *message);
 *   }
 *   static void execute(tide_callback_t *callback, void *context) {        of the subscription
 *     tide_local_subscription_t *subscription = context;
 *     const int32_t *message = tide_local_take(subscription, NULL);
 *     if (message == NULL) return;
 *     use(*message);
 *     tide_local_release(message);
 *   }
 *
 * Queue rules, as for received samples (tide_reader_t): a subscription keeps the last `depth` messages. A full queue
 * drops the oldest and counts it. The callback never runs more often than there are messages.
 *
 * Memory: the caller provides a pool of blocks of one size for all messages. A topic reserves the largest number of
 * messages that it can need: its loans, and for each subscription its depth and one message that is being read. So a
 * flood on one topic takes no messages from other topics, and a borrow within the topic's loans is never refused. A
 * callback of a reentrant group that overlaps itself reads several messages at once, so its subscription needs a
 * greater depth. Nothing is allocated.
 *
 * Re-entrancy: any lane, thread or interrupt may call borrow, publish, give_back, take and release; only threads may
 * call subscribe and unsubscribe, also while others publish. Cost: O(1); publish takes O(log n) for each subscription,
 * each in a critical section of its own. The contents of a message are never copied. */
#ifndef TIDE_LOCAL_H
#define TIDE_LOCAL_H

#include "tide/executor.h"

TIDE_EXTERN_C_BEGIN

struct tide_local_topic;

/* Header of each message. */
typedef struct tide_local_message {
  struct tide_local_message *next; /* next in the list of free messages */
  struct tide_local_topic *topic;  /* the topic that uses the message */
  int64_t published_ns;            /* time of publication */
  uint32_t references; /* queues that contain the message and callbacks that read it; 1 while it is borrowed */
  uint32_t bytes;      /* size when published */
} tide_local_message_t;

typedef struct tide_local_pool {
  const tide_platform_t *platform;
  tide_local_message_t *free;
  uint32_t message_bytes;
  uint32_t count, reserved;
} tide_local_pool_t;

/* Size of the pool's storage, which must be aligned to 8 bytes. */
#define TIDE_LOCAL_BLOCK_BYTES(message_bytes) \
  (((sizeof(tide_local_message_t) + 7u) & ~(size_t)7u) + (((size_t)(message_bytes) + 7u) & ~(size_t)7u))
#define TIDE_LOCAL_STORAGE_BYTES(count, message_bytes) ((size_t)(count)*TIDE_LOCAL_BLOCK_BYTES(message_bytes))

typedef struct tide_local_counters {
  uint64_t published; /* messages */
  uint64_t delivered; /* references queued: one for each subscription */
  uint64_t dropped;   /* delivered references that newer references replaced in a full queue */
  uint32_t refused;   /* borrows that were refused because no message was free */
  uint32_t used_maximum;
} tide_local_counters_t;

typedef struct tide_local_subscription {
  tide_callback_t *callback;    /* made ready once for each message; set by the program */
  tide_local_message_t **queue; /* array of `depth`; set by the program */
  uint16_t depth;               /* 1 or more; set by the program; the runtime sets the rest */
  uint16_t first, count;        /* messages queued */
  uint32_t received, dropped;   /* dropped: the queue was full and the oldest was removed */
  uint32_t number;              /* increasing in the order of subscription */
  struct tide_local_topic *topic;
  struct tide_local_subscription *next;
} tide_local_subscription_t;

typedef struct tide_local_topic {
  tide_local_pool_t *pool;
  tide_local_subscription_t *subscriptions; /* in order of subscription */
  uint32_t limit, used;                     /* messages reserved for the topic; messages that it uses */
  uint32_t changes;                         /* counts changes of the list of subscriptions */
  tide_local_counters_t counters;
} tide_local_topic_t;

/* platform: the executors' platform. storage: TIDE_LOCAL_STORAGE_BYTES(count, message_bytes) bytes. */
int tide_local_pool_init(tide_local_pool_t *pool, const tide_platform_t *platform, void *storage, uint32_t count,
                         uint32_t message_bytes);
/* loans: number of messages that may be borrowed at the same time. Count one for each publisher that may fill a message
 * while others fill theirs. TIDE_ERROR_FULL: the pool has too few unreserved messages. */
int tide_local_topic_init(tide_local_topic_t *topic, tide_local_pool_t *pool, uint32_t loans);
/* Adds `change` loans; a negative value removes some. TIDE_ERROR_FULL: the pool has too few unreserved messages.
 * TIDE_ERROR_ARGUMENT: more loans are removed than the topic has reserved messages. */
int tide_local_change_loans(tide_local_topic_t *topic, int32_t change);
/* Subscribe. Set callback, queue and depth before this call, and add the callback to an executor. A callback that is
 * added later has to be notified once for each message that was published before. TIDE_ERROR_FULL: the pool has fewer
 * than depth + 1 unreserved messages. TIDE_ERROR_EXISTS: already subscribed. */
int tide_local_subscribe(tide_local_topic_t *topic, tide_local_subscription_t *subscription);
/* End a subscription. Its queued messages are released; a message that is being read stays valid until it is released.
 * TIDE_ERROR_NOT_FOUND: it is not subscribed. */
int tide_local_unsubscribe(tide_local_subscription_t *subscription);
/* End a topic and release its reservation. TIDE_ERROR_STATE: it has subscriptions, or a message is still in use. */
int tide_local_topic_fini(tide_local_topic_t *topic);

/* Borrow a message to fill in, aligned to 8 bytes, with undefined contents. TIDE_ERROR_FULL: all messages of the topic
 * are in use; counted. */
int tide_local_borrow(tide_local_topic_t *topic, void **message);
/* Publish a borrowed message and end the loan. Returns the number of subscriptions that receive it, 0 or more. The
 * message must not be written to any more. TIDE_ERROR_TOO_LARGE: a message has no room for this many bytes; the loan
 * continues. */
int tide_local_publish(tide_local_topic_t *topic, void *message, uint32_t bytes);
/* End the loan without publishing. */
void tide_local_give_back(void *message);

typedef struct tide_local_information {
  uint32_t bytes;
  int64_t published_ns;
} tide_local_information_t;

/* Take the oldest queued message; null if none is queued. information may be null. The message stays valid and
 * unchanged until it is released. */
const void *tide_local_take(tide_local_subscription_t *subscription, tide_local_information_t *information);
void tide_local_release(const void *message);
/* Time of publication of the oldest queued message; TIDE_FOREVER: none is queued. */
int64_t tide_local_oldest_ns(tide_local_subscription_t *subscription);

TIDE_EXTERN_C_END
#endif
