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
  const plan_t *plan;
  int64_t first_release_ns;
  record_t *records[PLAN_CALLBACKS]; /* by callback and instance */
  finished_t *finished;              /* in order of completion; a place for every instance, so it cannot overflow */
  atomic_size_t finished_count;
  atomic_size_t own_count;   /* finished ones of chains that begin here */
  pthread_mutex_t finishing; /* lanes preempt each other */
  atomic_bool stopping;
  pthread_t thread;
} recorder;

static int64_t release_ns(const plan_chain_t *chain, uint32_t index) {
  return recorder.first_release_ns + chain->offset_ns + (int64_t)index * chain->period_ns;
}

static void print_events(const plan_chain_t *chain, uint32_t index) {
  const char *separator = "";
  for (size_t number = chain->first; number < chain->first + chain->count; number++) {
    const plan_callback_t *callback = &recorder.plan->callbacks[number];
    const record_t *record = recorder_at(callback, index);
    if (record->end_ns == 0) continue;
    printf("%s{\"callback\": \"%s\", \"start_ns\": %" PRId64 ", \"end_ns\": %" PRId64 ", \"cpu_ns\": %" PRId64 "}",
           separator, callback->name, record->start_ns, record->end_ns, record->cpu_ns);
    separator = ", ";
  }
}

static bool ends_here(const plan_chain_t *chain) {
  return recorder.plan->callbacks[chain->first + chain->count - 1].out.topic[0] == '\0';
}

/* A latency has what begins and ends on this board. */
static void print_instance(const plan_chain_t *chain, uint32_t index) {
  const record_t *first = recorder_at(&recorder.plan->callbacks[chain->first], index);
  const record_t *last = recorder_at(&recorder.plan->callbacks[chain->first + chain->count - 1], index);
  const int64_t released_ns = release_ns(chain, index);
  printf("{\"chain\": \"%s\", \"index\": %" PRIu32 ", \"release_ns\": %" PRId64 ", \"start_ns\": %" PRId64
         ", \"end_ns\": %" PRId64,
         chain->name, index, released_ns, first->start_ns, last->end_ns);
  if (plan_begins(recorder.plan, chain) && ends_here(chain)) {
    printf(", \"latency_ns\": %" PRId64, last->end_ns - released_ns);
  }
  printf(", \"events\": [");
  print_events(chain, index);
  printf("]}\n");
}

static size_t print_from(size_t printed) {
  const size_t count = atomic_load_explicit(&recorder.finished_count, memory_order_acquire);
  const bool any = printed < count;
  for (; printed < count; printed++) {
    const finished_t *one = &recorder.finished[printed];
    print_instance(&recorder.plan->chains[one->chain], one->index);
  }
  if (any) fflush(stdout);
  return printed;
}

static void *print_until_stopped(void *argument) {
  (void)argument;
  const struct timespec pause = {0, 50000000};
  size_t printed = 0;
  while (!atomic_load(&recorder.stopping)) {
    printed = print_from(printed);
    nanosleep(&pause, NULL);
  }
  print_from(printed);
  return NULL;
}

static bool allocate(const plan_t *plan) {
  size_t instances = 0;
  for (size_t chain = 0; chain < plan->chain_count; chain++) instances += plan->chains[chain].instances;
  recorder.finished = calloc(instances + 1, sizeof *recorder.finished);
  bool whole = recorder.finished != NULL;
  for (size_t index = 0; index < plan->callback_count; index++) {
    const size_t count = plan->chains[plan->callbacks[index].chain].instances;
    recorder.records[index] = calloc(count, sizeof *recorder.records[index]);
    whole = whole && recorder.records[index] != NULL;
  }
  return whole;
}

bool recorder_start(const plan_t *plan) {
  recorder.plan = plan;
  if (!allocate(plan)) return false;
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
  pthread_mutex_init(&recorder.finishing, &attributes);
  pthread_mutexattr_destroy(&attributes);
  return pthread_create(&recorder.thread, NULL, print_until_stopped, NULL) == 0;
}

void recorder_begin(int64_t first_release_ns) { recorder.first_release_ns = first_release_ns; }

record_t *recorder_at(const plan_callback_t *callback, uint32_t index) {
  return &recorder.records[callback - recorder.plan->callbacks][index];
}

void recorder_finish(size_t chain, uint32_t index) {
  pthread_mutex_lock(&recorder.finishing);
  const size_t count = atomic_load_explicit(&recorder.finished_count, memory_order_relaxed);
  recorder.finished[count] = (finished_t){(uint32_t)chain, index};
  atomic_store_explicit(&recorder.finished_count, count + 1, memory_order_release);
  if (plan_begins(recorder.plan, &recorder.plan->chains[chain])) recorder.own_count++;
  pthread_mutex_unlock(&recorder.finishing);
}

bool recorder_is_complete(void) {
  size_t wanted = 0;
  for (size_t index = 0; index < recorder.plan->chain_count; index++) {
    const plan_chain_t *chain = &recorder.plan->chains[index];
    if (!plan_begins(recorder.plan, chain)) return false; /* who sends is not known to be at its end */
    wanted += chain->instances;
  }
  return recorder.own_count >= wanted;
}

static uint32_t released(const plan_chain_t *chain, int64_t now_ns) {
  const int64_t since_ns = now_ns - release_ns(chain, 0);
  const int64_t count = since_ns < 0 ? 0 : since_ns / chain->period_ns + 1;
  return count > chain->instances ? chain->instances : (uint32_t)count;
}

static void print_missing(const plan_chain_t *chain, int64_t now_ns) {
  const plan_callback_t *first = &recorder.plan->callbacks[chain->first];
  const uint32_t count = released(chain, now_ns);
  for (uint32_t index = 0; index < count; index++) {
    if (recorder_at(first + chain->count - 1, index)->end_ns != 0) continue;
    printf("{\"chain\": \"%s\", \"index\": %" PRIu32 ", \"%s\": true}\n", chain->name, index,
           recorder_at(first, index)->start_ns != 0 ? "lost" : "skipped");
  }
}

void recorder_stop(int64_t now_ns) {
  atomic_store(&recorder.stopping, true);
  pthread_join(recorder.thread, NULL);
  for (size_t index = 0; index < recorder.plan->chain_count; index++) {
    const plan_chain_t *chain = &recorder.plan->chains[index];
    if (plan_begins(recorder.plan, chain)) print_missing(chain, now_ns);
  }
  fflush(stdout);
  for (size_t index = 0; index < recorder.plan->callback_count; index++) free(recorder.records[index]);
  free(recorder.finished);
}
