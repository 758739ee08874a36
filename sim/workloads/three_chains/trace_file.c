/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "trace_file.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <tide/budget_posix.h>
#include <tide/rclc.h>
#include <tide/status.h>
#include <tide/trace.h>
#include <time.h>

#include "plan.h"

enum { RECORDS = 4096, DAEMON = 0, FIRST_LANE = 1, FIRST_BUDGET = FIRST_LANE + PLAN_CHAINS };
enum { RINGS = FIRST_BUDGET + PLAN_CHAINS };

static struct {
  const char *path;
  FILE *file;
  tide_trace_ring_t rings[RINGS];
  tide_trace_record_t records[RINGS][RECORDS];
  tide_trace_instances_t instances;
  atomic_bool stopping;
  bool failed;
  pthread_t thread;
} trace;

static int write_block(void *context, const uint8_t *bytes, size_t count) {
  (void)context;
  return fwrite(bytes, 1, count, trace.file) == count ? TIDE_OK : TIDE_ERROR_FULL;
}

/* A disk that is full is told once; from then on the rings count what is dropped. */
static void drain(void) {
  for (size_t ring = 0; ring < RINGS && !trace.failed; ring++) {
    trace.failed = tide_trace_drain(&trace.rings[ring], UINT32_MAX, write_block, NULL) < 0;
  }
  if (!trace.failed) trace.failed = fflush(trace.file) != 0;
}

static void *drain_until_stopped(void *argument) {
  (void)argument;
  const struct timespec pause = {.tv_nsec = 50000000};
  while (!atomic_load(&trace.stopping)) {
    drain();
    nanosleep(&pause, NULL);
  }
  return NULL;
}

bool trace_file_open(const char *path) {
  trace.path = path;
  trace.file = fopen(path, "wb");
  if (trace.file == NULL) {
    fprintf(stderr, "chain_client: %s: cannot be written: %s\n", path, strerror(errno));
    return false;
  }
  for (size_t ring = 0; ring < RINGS; ring++) {
    (void)tide_trace_init(&trace.rings[ring], trace.records[ring], RECORDS, &trace.instances, 0, (uint16_t)ring);
  }
  return pthread_create(&trace.thread, NULL, drain_until_stopped, NULL) == 0;
}

void trace_file_attach(rclc_support_t *support, rclc_executor_t *executor) {
  if (trace.file == NULL) return;
  const tide_executor_config_t *config = &tide_rclc_executor_core(executor)->config;
  for (size_t lane = 0; lane < config->lane_count; lane++) {
    config->lanes[lane].trace = &trace.rings[FIRST_LANE + lane];
  }
  tide_session_t *session = tide_rclc_support_session(support);
  const uintptr_t state = tide_platform_enter(session->daemon.platform);
  session->daemon.trace = &trace.rings[DAEMON];
  tide_platform_exit(session->daemon.platform, state);
}

void trace_file_attach_budgets(rclc_executor_t *executor) {
  if (trace.file == NULL) return;
  const tide_executor_config_t *config = &tide_rclc_executor_core(executor)->config;
  for (size_t lane = 0; lane < config->lane_count; lane++) {
    tide_posix_budget_t *budget = config->lanes[lane].budget.context; /* what tide_posix_budget_hooks has set */
    if (budget == NULL || budget->owner == NULL) continue;
    pthread_mutex_lock(&budget->owner->mutex);
    budget->budget.trace = &trace.rings[FIRST_BUDGET + lane];
    pthread_mutex_unlock(&budget->owner->mutex);
  }
}

void trace_file_instance(tide_priority_t priority, uint32_t instance) {
  if (trace.file != NULL) tide_trace_set_instance(&trace.rings[DAEMON], priority, instance);
}

void trace_file_close(void) {
  if (trace.file == NULL) return;
  atomic_store(&trace.stopping, true);
  pthread_join(trace.thread, NULL);
  drain();
  trace.failed = fclose(trace.file) != 0 || trace.failed;
  trace.file = NULL;
  if (trace.failed) fprintf(stderr, "chain_client: %s: not all of the trace was written\n", trace.path);
}
