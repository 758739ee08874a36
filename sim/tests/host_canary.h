/* SPDX-License-Identifier: Apache-2.0 */
/* Included before the executor's own files by the canaries: each breaks one thing that a campaign must notice. */
#include "tide/executor.h"
#include "tide/platform.h"
#include "tide/queue.h"

#ifdef CANARY_EARLY /* now and then the clock is a little fast */
static inline int64_t canary_now(const tide_platform_t *platform) {
  static unsigned looks;
  return tide_platform_now_ns(platform) + (++looks % 256u == 0u ? 50000 : 0);
}
#define tide_platform_now_ns canary_now
#endif

#ifdef CANARY_GROUPS /* now and then an exclusive group is taken for a reentrant one */
__attribute__((unused)) static unsigned canary_looks;
#define TIDE_GROUP_REENTRANT (++canary_looks % 16u == 0u ? TIDE_GROUP_EXCLUSIVE : TIDE_GROUP_REENTRANT)
#endif

#ifdef CANARY_IDLE /* now and then what could run is overlooked until something else happens */
static inline tide_queue_entry_t *canary_head(const tide_queue_t *queue) {
  static unsigned looks;
  return ++looks % 256u == 0u ? NULL : tide_queue_head(queue);
}
#define tide_queue_head canary_head
#endif

#ifdef CANARY_ORDER /* now and then something ready goes last, whatever its priority */
static inline int canary_push(tide_queue_t *queue, tide_queue_entry_t *entry, int64_t key) {
  static unsigned pushes;
  const bool of_ready_list = key == entry->key; /* a timer's is given for the first time */
  return tide_queue_push(queue, entry, of_ready_list && ++pushes % 64u == 0u ? INT64_MAX - 1 : key);
}
#define tide_queue_push canary_push
#endif
