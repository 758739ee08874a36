/* SPDX-License-Identifier: Apache-2.0 */
/* A thread sets its own scheduling first, and reports the result to its starter. */
#define _GNU_SOURCE
#include "tide/posix_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tide/status.h"

#if defined(__linux__)
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

#define PAGE_BYTES 4096u
#define STACK_SPARE_BYTES 65536u
#define UNKNOWN 1 /* not a status */

#if defined(__linux__) && defined(SCHED_DEADLINE)

/* The kernel's structure, because the C library has none before glibc 2.41. */
typedef struct kernel_attributes {
  uint32_t size, policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime_ns, deadline_ns, period_ns;
} kernel_attributes_t;

static bool is_deadline(const tide_posix_scheduling_t *scheduling) { return scheduling->policy == SCHED_DEADLINE; }

static bool is_valid_deadline(const tide_posix_scheduling_t *scheduling) {
  return scheduling->cpu == TIDE_POSIX_ANY_CPU && scheduling->priority == 0 && scheduling->runtime_ns > 0 &&
         scheduling->deadline_ns >= scheduling->runtime_ns && scheduling->period_ns >= scheduling->deadline_ns;
}

/* EPERM: missing permission, or a pinned thread. EBUSY: deadline threads use all available bandwidth. */
static int schedule_deadline(const tide_posix_scheduling_t *scheduling) {
  if (!is_valid_deadline(scheduling)) return TIDE_ERROR_ARGUMENT;
  const kernel_attributes_t attributes = {.size = sizeof attributes,
                                          .policy = (uint32_t)scheduling->policy,
                                          .priority = (uint32_t)scheduling->priority,
                                          .runtime_ns = (uint64_t)scheduling->runtime_ns,
                                          .deadline_ns = (uint64_t)scheduling->deadline_ns,
                                          .period_ns = (uint64_t)scheduling->period_ns};
  if (syscall(SYS_sched_setattr, 0, &attributes, 0u) == 0) return TIDE_OK;
  switch (errno) {
    case ENOSYS: return TIDE_ERROR_UNSUPPORTED;
    case EPERM:
    case EBUSY: return TIDE_ERROR_NOT_PERMITTED;
    default: return TIDE_ERROR_ARGUMENT;
  }
}

#else

static bool is_deadline(const tide_posix_scheduling_t *scheduling) {
  (void)scheduling;
  return false;
}

static int schedule_deadline(const tide_posix_scheduling_t *scheduling) {
  (void)scheduling;
  return TIDE_ERROR_UNSUPPORTED;
}

#endif

int tide_posix_schedule(const tide_posix_scheduling_t *scheduling) {
  if (scheduling == NULL) return TIDE_ERROR_ARGUMENT;
  if (is_deadline(scheduling)) return schedule_deadline(scheduling);
  return tide_posix_set_scheduling(scheduling->policy, scheduling->priority, scheduling->cpu);
}

/* Queries Linux directly: pthread may return the starter's scheduling, not later changes by chrt or
 * sched_setscheduler. */
tide_posix_scheduling_t tide_posix_own_scheduling(void) {
  tide_posix_scheduling_t scheduling = {.policy = SCHED_OTHER, .cpu = TIDE_POSIX_ANY_CPU};
  struct sched_param parameter = {0};
#if defined(__linux__)
  const int policy = sched_getscheduler(0);
  if (policy >= 0 && sched_getparam(0, &parameter) == 0) scheduling.policy = policy & ~SCHED_RESET_ON_FORK;
#else
  (void)pthread_getschedparam(pthread_self(), &scheduling.policy, &parameter);
#endif
  scheduling.priority = parameter.sched_priority;
  return scheduling;
}

/* Its stack frames are released before the thread's function runs, so that function uses the memory that was touched
 * here. */
__attribute__((noinline)) static void touch_stack(size_t bytes) {
  volatile uint8_t page[PAGE_BYTES];
  page[0] = 0u;
  if (bytes > sizeof page) touch_stack(bytes - sizeof page);
  page[sizeof page - 1u] = page[0]; /* keeps the frame until the deeper ones have been touched */
}

/* Limits the wanted bytes to what fits, because thread-local storage is also in the stack, and is large with
 * sanitizers. */
static size_t touchable(size_t wanted_bytes) {
#if defined(__linux__)
  pthread_attr_t attributes;
  void *base = NULL;
  size_t size = 0u;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0u;
  (void)pthread_attr_getstack(&attributes, &base, &size);
  (void)pthread_attr_destroy(&attributes);
  const size_t left_bytes = (size_t)((uintptr_t)&attributes - (uintptr_t)base);
  const size_t most_bytes = left_bytes > STACK_SPARE_BYTES ? left_bytes - STACK_SPARE_BYTES : 0u;
  return wanted_bytes < most_bytes ? wanted_bytes : most_bytes;
#else
  return wanted_bytes;
#endif
}

static void *run(void *argument) {
  tide_posix_thread_t *thread = argument;
  const tide_posix_thread_config_t config = thread->config;
#if defined(__linux__)
  if (config.name != NULL) (void)prctl(PR_SET_NAME, config.name, 0UL, 0UL, 0UL);
#endif
  const size_t touch_bytes = config.stack_touch_bytes == 0u ? 0u : touchable(config.stack_touch_bytes);
  if (touch_bytes > 0u) touch_stack(touch_bytes);
  const int status = tide_posix_schedule(&config.scheduling);
  (void)pthread_mutex_lock(&thread->mutex);
  thread->status = status;
  (void)pthread_cond_signal(&thread->known);
  (void)pthread_mutex_unlock(&thread->mutex);
  if (status == TIDE_OK) config.function(config.context);
  return NULL;
}

static int create(tide_posix_thread_t *thread, const pthread_attr_t *attributes) {
  sigset_t all, before;
  (void)sigfillset(&all);
  (void)pthread_sigmask(SIG_BLOCK, &all, &before);
  const int error = pthread_create(&thread->thread, attributes, run, thread);
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  return error == 0 ? TIDE_OK : TIDE_ERROR_FULL;
}

static int await_status(tide_posix_thread_t *thread) {
  (void)pthread_mutex_lock(&thread->mutex);
  while (thread->status == UNKNOWN) (void)pthread_cond_wait(&thread->known, &thread->mutex);
  (void)pthread_mutex_unlock(&thread->mutex);
  return thread->status;
}

static bool stack_fits(const tide_posix_thread_config_t *config, const pthread_attr_t *attributes) {
  size_t stack_bytes = 0u;
  (void)pthread_attr_getstacksize(attributes, &stack_bytes);
  return config->stack_touch_bytes == 0u ||
         (stack_bytes > STACK_SPARE_BYTES && config->stack_touch_bytes <= stack_bytes - STACK_SPARE_BYTES);
}

static void forget(tide_posix_thread_t *thread) {
  (void)pthread_cond_destroy(&thread->known);
  (void)pthread_mutex_destroy(&thread->mutex);
}

static int start(tide_posix_thread_t *thread, const pthread_attr_t *attributes) {
  (void)pthread_mutex_init(&thread->mutex, NULL);
  (void)pthread_cond_init(&thread->known, NULL);
  int status = create(thread, attributes);
  if (status == TIDE_OK) {
    status = await_status(thread);
    if (status == TIDE_OK) return TIDE_OK;
    (void)pthread_join(thread->thread, NULL);
  }
  forget(thread);
  return status;
}

int tide_posix_thread_start(tide_posix_thread_t *thread, const tide_posix_thread_config_t *config) {
  if (thread == NULL || config == NULL || config->function == NULL) return TIDE_ERROR_ARGUMENT;
  pthread_attr_t attributes;
  (void)pthread_attr_init(&attributes);
  const size_t stack_bytes = config->stack_bytes;
  int status = TIDE_ERROR_ARGUMENT;
  if ((stack_bytes == 0u || pthread_attr_setstacksize(&attributes, stack_bytes) == 0) &&
      stack_fits(config, &attributes)) {
    *thread = (tide_posix_thread_t){.config = *config, .status = UNKNOWN};
    status = start(thread, &attributes);
  }
  (void)pthread_attr_destroy(&attributes);
  return status;
}

void tide_posix_thread_join(tide_posix_thread_t *thread) {
  (void)pthread_join(thread->thread, NULL);
  forget(thread);
}

int tide_posix_lock_memory(void) {
  return mlockall(MCL_CURRENT | MCL_FUTURE) == 0 ? TIDE_OK : TIDE_ERROR_NOT_PERMITTED;
}

int tide_posix_hold_cpu_latency(int32_t latency_us) {
  const int descriptor = open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) return errno == ENOENT ? TIDE_ERROR_UNSUPPORTED : TIDE_ERROR_NOT_PERMITTED;
  if (write(descriptor, &latency_us, sizeof latency_us) == (ssize_t)sizeof latency_us) return descriptor;
  (void)close(descriptor);
  return TIDE_ERROR_NOT_PERMITTED;
}
