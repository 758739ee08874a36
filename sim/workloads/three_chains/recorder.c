/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "recorder.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct finished {
  uint32_t chain, index;
} finished_t;

static struct {
  size_t chain_count;
  const char *const *names;
  uint32_t instances;
  record_t *records;
  finished_t *finished; /* in order of completion; a place for every instance, so it cannot overflow */
  atomic_size_t finished_count;
  pthread_mutex_t finishing; /* lanes preempt each other */
  atomic_bool stopping;
  pthread_t thread;
} recorder;

static void print_event(const char *name, int64_t start_ns, int64_t end_ns, int64_t cpu_ns, const char *separator) {
  printf("%s{\"callback\": \"%s\", \"start_ns\": %" PRId64 ", \"end_ns\": %" PRId64 ", \"cpu_ns\": %" PRId64 "}",
         separator, name, start_ns, end_ns, cpu_ns);
}

static void print_instance(uint32_t chain, uint32_t index) {
  const record_t *record = recorder_at(chain, index);
  printf("{\"chain\": \"%s\", \"index\": %" PRIu32 ", \"release_ns\": %" PRId64 ", \"start_ns\": %" PRId64
         ", \"end_ns\": %" PRId64 ", \"latency_ns\": %" PRId64 ", \"events\": [",
         recorder.names[chain], index, record->release_ns, record->sample_start_ns, record->act_end_ns,
         record->act_end_ns - record->release_ns);
  print_event("sample", record->sample_start_ns, record->sample_end_ns, record->sample_cpu_ns, "");
  print_event("act", record->act_start_ns, record->act_end_ns, record->act_cpu_ns, ", ");
  printf("]}\n");
}

static size_t print_from(size_t printed) {
  const size_t count = atomic_load_explicit(&recorder.finished_count, memory_order_acquire);
  const bool any = printed < count;
  for (; printed < count; printed++) print_instance(recorder.finished[printed].chain, recorder.finished[printed].index);
  if (any) fflush(stdout);
  return printed;
}

static void *print_until_stopped(void *argument) {
  (void)argument;
  const struct timespec pause = {0, 50 * 1000 * 1000};
  size_t printed = 0;
  while (!atomic_load(&recorder.stopping)) {
    printed = print_from(printed);
    nanosleep(&pause, NULL);
  }
  print_from(printed);
  return NULL;
}

bool recorder_start(size_t chain_count, const char *const *names, uint32_t instances) {
  recorder.chain_count = chain_count;
  recorder.names = names;
  recorder.instances = instances;
  recorder.records = calloc(chain_count * instances, sizeof *recorder.records);
  recorder.finished = calloc(chain_count * instances, sizeof *recorder.finished);
  if (recorder.records == NULL || recorder.finished == NULL) return false;
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
  pthread_mutex_init(&recorder.finishing, &attributes);
  pthread_mutexattr_destroy(&attributes);
  return pthread_create(&recorder.thread, NULL, print_until_stopped, NULL) == 0;
}

record_t *recorder_at(size_t chain, uint32_t index) { return &recorder.records[chain * recorder.instances + index]; }

void recorder_finish(size_t chain, uint32_t index) {
  pthread_mutex_lock(&recorder.finishing);
  const size_t count = atomic_load_explicit(&recorder.finished_count, memory_order_relaxed);
  recorder.finished[count] = (finished_t){(uint32_t)chain, index};
  atomic_store_explicit(&recorder.finished_count, count + 1, memory_order_release);
  pthread_mutex_unlock(&recorder.finishing);
}

size_t recorder_finished(void) { return atomic_load(&recorder.finished_count); }

void recorder_stop(uint32_t released) {
  atomic_store(&recorder.stopping, true);
  pthread_join(recorder.thread, NULL);
  for (size_t chain = 0; chain < recorder.chain_count; chain++) {
    for (uint32_t index = 0; index < released; index++) {
      const record_t *record = recorder_at(chain, index);
      if (record->act_end_ns != 0) continue;
      printf("{\"chain\": \"%s\", \"index\": %" PRIu32 ", \"%s\": true}\n", recorder.names[chain], index,
             record->sample_start_ns != 0 ? "lost" : "skipped");
    }
  }
  fflush(stdout);
  free(recorder.records);
  free(recorder.finished);
}
