/* SPDX-License-Identifier: Apache-2.0 */
/* Custom links on this port: a thread runs what a microcontroller's main loop would run. */
#include <stdlib.h>

#include "link.h"
#include "tide/link_custom.h"
#include "tide/status.h"

#define TURN_NS INT64_C(20000000)

typedef struct custom {
  struct custom *next;
  tide_custom_link_t link;
  tide_posix_thread_t thread;
  atomic_bool stop;
  tide_link_counters_t scheduling; /* only what is said of the thread */
  uint8_t storage[];
} custom_t;

static pthread_mutex_t customs_mutex = PTHREAD_MUTEX_INITIALIZER;
static custom_t *customs;

static void run(void *argument) {
  custom_t *custom = argument;
  tide_posix_link_be_exact();
  while (!atomic_load(&custom->stop)) {
    tide_custom_link_run(&custom->link, custom->link.wakes ? TIDE_FOREVER : tide_posix_link_now_ns() + TURN_NS);
  }
}

int tide_posix_custom_open(tide_session_t *session, const tide_link_address_t *address) {
  const size_t storage_bytes = TIDE_CUSTOM_LINK_STORAGE_BYTES((size_t)session->config.mtu);
  custom_t *custom = calloc(1u, sizeof *custom + storage_bytes);
  if (custom == NULL) return TIDE_ERROR_LINK;
  int status = tide_custom_link_open(&custom->link, session, address->custom, custom->storage, storage_bytes);
  if (status == TIDE_OK) {
    status = tide_posix_link_start_thread(&custom->thread, address->thread_priority, run, custom, &custom->scheduling);
  }
  if (status != TIDE_OK) {
    tide_custom_link_close(&custom->link);
    free(custom);
    return status;
  }
  (void)pthread_mutex_lock(&customs_mutex);
  custom->next = customs;
  customs = custom;
  (void)pthread_mutex_unlock(&customs_mutex);
  return TIDE_OK;
}

static custom_t **place_of(tide_session_t *session) {
  custom_t **place = &customs;
  while (*place != NULL && (*place)->link.session != session) place = &(*place)->next;
  return place;
}

void tide_posix_custom_wake(tide_session_t *session) {
  (void)pthread_mutex_lock(&customs_mutex);
  custom_t *custom = *place_of(session);
  if (custom != NULL) tide_custom_link_wake(&custom->link);
  (void)pthread_mutex_unlock(&customs_mutex);
}

bool tide_posix_custom_close(tide_session_t *session) {
  (void)pthread_mutex_lock(&customs_mutex);
  custom_t **place = place_of(session);
  custom_t *custom = *place;
  if (custom != NULL) *place = custom->next;
  (void)pthread_mutex_unlock(&customs_mutex);
  if (custom == NULL) return false;
  atomic_store(&custom->stop, true);
  tide_custom_link_wake(&custom->link);
  tide_posix_thread_join(&custom->thread);
  tide_custom_link_close(&custom->link);
  free(custom);
  return true;
}

bool tide_posix_custom_counters(tide_session_t *session, tide_link_counters_t *counters) {
  (void)pthread_mutex_lock(&customs_mutex);
  const custom_t *custom = *place_of(session);
  if (custom != NULL) {
    const tide_platform_t *platform = session->daemon.platform;
    const uintptr_t state = platform->critical_enter(platform->context);
    const tide_custom_counters_t *known = &custom->link.counters;
    *counters = (tide_link_counters_t){.opens = 1u,
                                       .messages_sent = known->messages_sent,
                                       .messages_lost = known->messages_lost,
                                       .bytes_received = known->bytes_received,
                                       .thread_priority = custom->scheduling.thread_priority,
                                       .thread_status = custom->scheduling.thread_status};
    platform->critical_exit(platform->context, state);
  }
  (void)pthread_mutex_unlock(&customs_mutex);
  return custom != NULL;
}
