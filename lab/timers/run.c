/* SPDX-License-Identifier: Apache-2.0 */
/* The thread in which a measurement runs, and its samples. Between the first expiry and the last, the program does not
 * allocate, print or write. */
#define _GNU_SOURCE
#include "run.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tide/posix.h"
#include "tide/status.h"

#define STACK_BYTES ((size_t)512 * 1024)
#define STACK_TOUCH_BYTES ((size_t)256 * 1024)

static pthread_t main_thread;

static void spin(void *context) {
  const timers_run_t *run = context;
  run->spin(run->context);
  (void)pthread_kill(main_thread, SIGUSR1);
}

/* Waits until the thread has ended; returns true if SIGINT or SIGTERM ended it. It prints nothing and wakes only for
 * signals, because output and wake-ups would affect the measurement. */
static bool supervise(const timers_run_t *run, const sigset_t *signals) {
  bool interrupted = false;
  for (;;) {
    const int number = sigwaitinfo(signals, NULL);
    if (number == SIGUSR1) return interrupted;
    if (number == SIGINT || number == SIGTERM) {
      interrupted = true;
      run->stop(run->context);
    }
  }
}

int timers_in_thread(const timers_run_t *run, const tide_posix_scheduling_t *scheduling, const char *line,
                     bool *interrupted) {
  sigset_t signals;
  (void)sigemptyset(&signals);
  (void)sigaddset(&signals, SIGINT);
  (void)sigaddset(&signals, SIGTERM);
  (void)sigaddset(&signals, SIGUSR1);
  (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
  main_thread = pthread_self();
  const tide_posix_thread_config_t config = {.scheduling = *scheduling,
                                             .name = "tide lane",
                                             .stack_bytes = STACK_BYTES,
                                             .stack_touch_bytes = STACK_TOUCH_BYTES,
                                             .function = spin,
                                             .context = (void *)run};
  tide_posix_thread_t thread;
  const int status = tide_posix_thread_start(&thread, &config);
  if (status != TIDE_OK) return status;
  (void)fputs(line, stdout);
  (void)fflush(stdout);
  *interrupted = supervise(run, &signals);
  tide_posix_thread_join(&thread);
  return TIDE_OK;
}

int timers_run(const timers_run_t *run, const timers_options_t *options, bool *interrupted) {
  const bool memory_locked = tide_posix_lock_memory() == TIDE_OK;
  const bool latency_held = tide_posix_hold_cpu_latency(0) >= 0;
  char line[96];
  (void)snprintf(line, sizeof line, "{\"event\": \"started\", \"memory_locked\": %s, \"cpu_latency_held\": %s}\n",
                 memory_locked ? "true" : "false", latency_held ? "true" : "false");
  const int status = timers_in_thread(run, &options->scheduling, line, interrupted);
  if (status == TIDE_OK) return TIMERS_DONE;
  fprintf(stderr, "tide-timers: scheduling %s %d: %s\n", options->policy_name, options->scheduling.priority,
          tide_status_text(status));
  return TIMERS_FAILED;
}

timers_sample_t *timers_allocate(uint32_t repetitions) {
  const size_t bytes = repetitions * sizeof(timers_sample_t);
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    fprintf(stderr, "tide-timers: no memory for %lu measurements\n", (unsigned long)repetitions);
    return NULL;
  }
  memset(memory, 1, bytes);
  return memory;
}

static bool write_all(const timers_sample_t *samples, uint32_t count, const char *path) {
  FILE *file = fopen(path, "wb");
  if (file == NULL) return false;
  const size_t wrote = fwrite(samples, sizeof *samples, count, file);
  return fclose(file) == 0 && wrote == count;
}

bool timers_write(const timers_sample_t *samples, uint32_t count, const char *path) {
  if (write_all(samples, count, path)) return true;
  fprintf(stderr, "tide-timers: %s could not be written: %s\n", path, strerror(errno));
  return false;
}
