/* SPDX-License-Identifier: Apache-2.0 */
/* The POSIX platform: CLOCK_MONOTONIC, a recursive lock with priority inheritance as critical section, and events. Each
 * event is a futex on Linux, and a semaphore elsewhere (or with TIDE_POSIX_PORTABLE). */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "event.h"
#include "tide/invariant.h"
#include "tide/port.h"
#include "tide/posix.h"
#include "tide/status.h"
#include "wake_up_lead.h"

#if defined(__linux__)
#include <sys/prctl.h>
#endif
#if defined(__linux__) && !defined(TIDE_POSIX_PORTABLE)
#include <linux/futex.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>
#define USE_FUTEX 1
#else
#include <semaphore.h>
#define USE_FUTEX 0
#endif

#define NANOSECONDS INT64_C(1000000000)
#define WAKE_UP_LEAD_LIMIT_NS INT64_C(50000)
#define PIECE_NS INT64_C(1000000)

enum { EVENT_CLEAR, EVENT_SET, EVENT_AWAITED, EVENT_POLLED /* a polled event's state also has its waker's index */ };

static int64_t read_clock(clockid_t clock) {
  struct timespec time;
  (void)clock_gettime(clock, &time);
  return (int64_t)time.tv_sec * NANOSECONDS + time.tv_nsec;
}

static struct timespec to_timespec(int64_t time_ns) {
  struct timespec time;
  time.tv_sec = (time_t)(time_ns / NANOSECONDS);
  time.tv_nsec = (long)(time_ns % NANOSECONDS);
  return time;
}

static int64_t now_ns(void *context) {
  (void)context;
  return read_clock(CLOCK_MONOTONIC);
}

static int64_t wall_ns(void *context) {
  (void)context;
  return read_clock(CLOCK_REALTIME);
}

static pthread_once_t critical_once = PTHREAD_ONCE_INIT;

#if USE_FUTEX && !defined(__SANITIZE_THREAD__)

/* A recursive lock with priority inheritance, by the kernel's protocol for such locks. The word holds the number of the
 * owner's thread, and the kernel is called only when a thread has to wait. pthread's lock takes four times the
 * instructions, and enters the kernel at once, although for such short sections a few retries are cheaper. */
#define TRIES_BEFORE_WAITING 60

#define PREPARES_ITSELF 1
static uint32_t critical_word;
static unsigned critical_depth; /* nesting depth of the owner, without the outermost section */
static _Thread_local uint32_t thread_number;

static void forget_thread_number(void) { thread_number = 0u; }
static void critical_prepare(void) { (void)pthread_atfork(NULL, NULL, forget_thread_number); }

__attribute__((noinline)) static uint32_t ask_for_number(void) {
  (void)pthread_once(&critical_once, critical_prepare);
  thread_number = (uint32_t)syscall(SYS_gettid);
  return thread_number;
}

static uint32_t own_number(void) { return thread_number != 0u ? thread_number : ask_for_number(); }

static bool try_to_own(uint32_t self) {
  uint32_t expected = 0u;
  return __atomic_compare_exchange_n(&critical_word, &expected, self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

__attribute__((noinline)) static void own_slowly(uint32_t self) {
  for (int count = 0; count < TRIES_BEFORE_WAITING; count++) {
    if (__atomic_load_n(&critical_word, __ATOMIC_RELAXED) == 0u && try_to_own(self)) return;
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
  }
  while (syscall(SYS_futex, &critical_word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0) != 0) {
    if (try_to_own(self)) return;
    if (errno == ENOSYS) (void)sched_yield();
  }
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
}

static uintptr_t critical_enter(void *context) {
  (void)context;
  const uint32_t self = own_number();
  if (try_to_own(self)) return 0u;
  if ((__atomic_load_n(&critical_word, __ATOMIC_RELAXED) & FUTEX_TID_MASK) == self) {
    critical_depth++;
  } else {
    own_slowly(self);
  }
  return 0u;
}

static void critical_exit(void *context, uintptr_t state) {
  (void)context;
  (void)state;
  if (critical_depth > 0u) {
    critical_depth--;
    return;
  }
  uint32_t expected = thread_number;
  if (__atomic_compare_exchange_n(&critical_word, &expected, 0u, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) return;
  (void)syscall(SYS_futex, &critical_word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0);
}

static bool is_inside(void) {
  return (__atomic_load_n(&critical_word, __ATOMIC_RELAXED) & FUTEX_TID_MASK) == own_number();
}

#else

#define PREPARES_ITSELF 0

/* A mutex cannot tell its owner. */
static bool is_inside(void) { return false; }

static pthread_mutex_t critical_mutex;

static void critical_prepare(void) {
  pthread_mutexattr_t attributes;
  (void)pthread_mutexattr_init(&attributes);
  (void)pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  (void)pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
  (void)pthread_mutex_init(&critical_mutex, &attributes);
  (void)pthread_mutexattr_destroy(&attributes);
}

static uintptr_t critical_enter(void *context) {
  (void)context;
  (void)pthread_mutex_lock(&critical_mutex);
  return 0u;
}

static void critical_exit(void *context, uintptr_t state) {
  (void)context;
  (void)state;
  (void)pthread_mutex_unlock(&critical_mutex);
}

#endif

static int64_t wake_up_lead_limit_ns = WAKE_UP_LEAD_LIMIT_NS;
static _Thread_local tide_wake_up_lead_t wake_up_lead;

void tide_posix_set_wake_up_lead(int64_t limit_ns) {
  __atomic_store_n(&wake_up_lead_limit_ns, limit_ns < 0 ? 0 : limit_ns, __ATOMIC_RELAXED);
}

/* Threads without real-time scheduling are woken as much as 50 us late, unless they reduce their timer slack. */
static void sleep_precisely(void) {
  static _Thread_local bool said;
  if (said) return;
  said = true;
  tide_wake_up_lead_init(&wake_up_lead);
#if defined(__linux__)
  (void)prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
#endif
}

/* Wake-up time to request for a future deadline. */
static int64_t wake_up_for(int64_t deadline_ns, int64_t pause_ns) {
  const int64_t limit_ns = __atomic_load_n(&wake_up_lead_limit_ns, __ATOMIC_RELAXED);
  return deadline_ns - tide_wake_up_lead_of(&wake_up_lead, pause_ns, limit_ns);
}

/* After an early wake-up: polls the clock until the deadline, unless the event is set meanwhile. */
static void stay_awake_until(int64_t deadline_ns, int64_t wake_up_ns, const tide_event_t *event) {
  int64_t now = now_ns(NULL);
  tide_wake_up_lead_learn(&wake_up_lead, now - wake_up_ns);
  while (now < deadline_ns && __atomic_load_n(&event->state, __ATOMIC_RELAXED) != EVENT_SET) now = now_ns(NULL);
}

static int wait_in_pieces(tide_event_t *event, int64_t deadline_ns);

#if USE_FUTEX

static void event_init(void *context, tide_event_t *event) {
  (void)context;
  __atomic_store_n(&event->state, EVENT_CLEAR, __ATOMIC_RELEASE);
}

/* Descriptors that end a poll. The descriptors are never closed, so that a thread preempted while setting an event
 * cannot write to another file later. At worst the next wait with that waker ends early. */
#define WAKERS 8u
static struct {
  bool taken;
  int descriptor; /* 0: not created yet */
} wakers[WAKERS];

static void event_set(void *context, tide_event_t *event) {
  (void)context;
  const uint32_t before = __atomic_exchange_n(&event->state, EVENT_SET, __ATOMIC_ACQ_REL);
  if (before == EVENT_AWAITED) {
    (void)syscall(SYS_futex, &event->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
  } else if (before >= EVENT_POLLED) {
    const uint64_t one = 1u;
    (void)!write(wakers[before - EVENT_POLLED].descriptor, &one, sizeof one);
  }
}

/* True when the event was set; it is clear afterwards. */
static bool event_take(tide_event_t *event) {
  return __atomic_exchange_n(&event->state, EVENT_CLEAR, __ATOMIC_ACQ_REL) == EVENT_SET;
}

static int event_wait(void *context, tide_event_t *event, int64_t deadline_ns) {
  TIDE_INVARIANT(!is_inside()); /* no sleep inside a critical section */
  if (event_take(event)) return 1;
  sleep_precisely();
  bool late = false;
  for (int64_t now; !late && (now = now_ns(context)) < deadline_ns;) {
    const int64_t wake_up_ns = wake_up_for(deadline_ns, deadline_ns - now);
    const struct timespec wake_up = to_timespec(wake_up_ns);
    uint32_t expected = EVENT_CLEAR;
    if (__atomic_compare_exchange_n(&event->state, &expected, EVENT_AWAITED, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
      const long result = syscall(SYS_futex, &event->state, FUTEX_WAIT_BITSET_PRIVATE, EVENT_AWAITED,
                                  deadline_ns == TIDE_FOREVER ? NULL : &wake_up, NULL, FUTEX_BITSET_MATCH_ANY);
      late = result != 0 && errno == ETIMEDOUT;
      if (late) stay_awake_until(deadline_ns, wake_up_ns, event);
    }
    if (event_take(event)) return 1;
  }
  return 0; /* if the event was set after the check, it ends the next wait */
}

/* Returns WAKERS if none is free, or if the system has none. */
static uint32_t take_waker(void) {
  uint32_t number = 0u;
  while (number < WAKERS && __atomic_exchange_n(&wakers[number].taken, true, __ATOMIC_ACQUIRE)) number++;
  if (number == WAKERS || wakers[number].descriptor > 0) return number;
  wakers[number].descriptor = eventfd(0u, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wakers[number].descriptor > 0) return number;
  __atomic_store_n(&wakers[number].taken, false, __ATOMIC_RELEASE);
  return WAKERS;
}

static bool poll_until(int descriptor, int waker, int64_t deadline_ns) {
  struct pollfd wait[2] = {{.fd = descriptor, .events = POLLIN}, {.fd = waker, .events = POLLIN}};
  int64_t pause_ns = deadline_ns - now_ns(NULL);
  if (pause_ns < 0) pause_ns = 0;
  const struct timespec timeout = to_timespec(pause_ns);
  if (ppoll(wait, 2, &timeout, NULL) <= 0) return false;
  uint64_t count;
  if (wait[1].revents != 0) (void)!read(waker, &count, sizeof count);
  return wait[0].revents != 0;
}

int tide_posix_event_wait_or_readable(tide_event_t *event, int descriptor, int64_t deadline_ns) {
  TIDE_INVARIANT(!is_inside());
  if (event_take(event)) return 1;
  sleep_precisely();
  const uint32_t number = take_waker();
  if (number == WAKERS) return wait_in_pieces(event, deadline_ns);
  bool readable = false, set = false;
  do {
    uint32_t expected = EVENT_CLEAR;
    if (__atomic_compare_exchange_n(&event->state, &expected, EVENT_POLLED + number, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
      readable = poll_until(descriptor, wakers[number].descriptor, deadline_ns);
    }
    set = event_take(event);
  } while (!set && !readable && now_ns(NULL) < deadline_ns);
  __atomic_store_n(&wakers[number].taken, false, __ATOMIC_RELEASE);
  return set ? 1 : readable ? TIDE_POSIX_READABLE : 0;
}

#else

static pthread_mutex_t event_mutex = PTHREAD_MUTEX_INITIALIZER;

static void event_init(void *context, tide_event_t *event) {
  (void)context;
  event->state = EVENT_CLEAR;
  event->port = NULL;
}

static void event_set(void *context, tide_event_t *event) {
  (void)context;
  (void)pthread_mutex_lock(&event_mutex);
  if (event->port != NULL) (void)sem_post(event->port);
  __atomic_store_n(&event->state, EVENT_SET, __ATOMIC_RELAXED); /* also read without the mutex */
  (void)pthread_mutex_unlock(&event_mutex);
}

/* Releases the mutex while it sleeps. It sleeps on its own semaphore instead of a condition variable, because NuttX
 * keeps counting timed waits that have ended, and at the next change wakes as many threads as it counts, thousands of
 * times in vain. True: woken at wake_up_ns. */
static bool event_sleep(tide_event_t *event, int64_t deadline_ns, int64_t wake_up_ns) {
  sem_t woken;
  int result;
  if (sem_init(&woken, 0, 0) != 0) return false;
  event->state = EVENT_AWAITED;
  event->port = &woken;
  (void)pthread_mutex_unlock(&event_mutex);
  const struct timespec wake_up = to_timespec(wake_up_ns);
  do {
    result = deadline_ns == TIDE_FOREVER ? sem_wait(&woken) : sem_clockwait(&woken, CLOCK_MONOTONIC, &wake_up);
  } while (result != 0 && errno == EINTR);
  const bool timed_out = result != 0 && errno == ETIMEDOUT;
  (void)pthread_mutex_lock(&event_mutex);
  event->port = NULL;
  (void)sem_destroy(&woken);
  return timed_out;
}

static int event_wait(void *context, tide_event_t *event, int64_t deadline_ns) {
  TIDE_INVARIANT(!is_inside()); /* no sleep inside a critical section */
  sleep_precisely();
  (void)pthread_mutex_lock(&event_mutex);
  for (int64_t now; event->state != EVENT_SET && (now = now_ns(context)) < deadline_ns;) {
    const int64_t wake_up_ns = wake_up_for(deadline_ns, deadline_ns - now);
    if (!event_sleep(event, deadline_ns, wake_up_ns)) continue;
    (void)pthread_mutex_unlock(&event_mutex);
    stay_awake_until(deadline_ns, wake_up_ns, event);
    (void)pthread_mutex_lock(&event_mutex);
  }
  const int result = event->state == EVENT_SET ? 1 : 0;
  event->state = EVENT_CLEAR;
  (void)pthread_mutex_unlock(&event_mutex);
  return result;
}

int tide_posix_event_wait_or_readable(tide_event_t *event, int descriptor, int64_t deadline_ns) {
  (void)descriptor;
  return wait_in_pieces(event, deadline_ns);
}

#endif

/* The descriptor is not watched: it is assumed readable now and then. */
static int wait_in_pieces(tide_event_t *event, int64_t deadline_ns) {
  const int64_t piece_ns = now_ns(NULL) + PIECE_NS;
  if (event_wait(NULL, event, deadline_ns < piece_ns ? deadline_ns : piece_ns) == 1) return 1;
  return piece_ns < deadline_ns ? TIDE_POSIX_READABLE : 0;
}

const tide_platform_t *tide_port_platform(void) {
  static const tide_platform_t platform = {
      .context = NULL,
      .now_ns = now_ns,
      .wall_ns = wall_ns,
      .critical_enter = critical_enter,
      .critical_exit = critical_exit,
      .event_init = event_init,
      .event_set = event_set,
      .event_wait = event_wait,
  };
  static bool prepared = PREPARES_ITSELF;
  if (!PREPARES_ITSELF && !__atomic_load_n(&prepared, __ATOMIC_ACQUIRE)) {
    (void)pthread_once(&critical_once, critical_prepare);
    __atomic_store_n(&prepared, true, __ATOMIC_RELEASE);
  }
  return &platform;
}

static int status_of_errno(int error) { return error == EPERM ? TIDE_ERROR_NOT_PERMITTED : TIDE_ERROR_ARGUMENT; }

static int set_affinity(int cpu) {
#if defined(__linux__)
  if (cpu < 0 || cpu >= CPU_SETSIZE) return TIDE_ERROR_ARGUMENT;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET((unsigned)cpu, &set);
  const int error = pthread_setaffinity_np(pthread_self(), sizeof set, &set);
  return error == 0 ? TIDE_OK : status_of_errno(error);
#else
  (void)cpu;
  return TIDE_ERROR_UNSUPPORTED;
#endif
}

int tide_posix_set_scheduling(int policy, int priority, int cpu) {
  int old_policy = SCHED_OTHER;
  struct sched_param old_parameter = {0};
  (void)pthread_getschedparam(pthread_self(), &old_policy, &old_parameter);
  const struct sched_param parameter = {.sched_priority = priority};
  const int error = pthread_setschedparam(pthread_self(), policy, &parameter);
  if (error != 0) return status_of_errno(error);
  const int status = cpu == TIDE_POSIX_ANY_CPU ? TIDE_OK : set_affinity(cpu);
  if (status != TIDE_OK) (void)pthread_setschedparam(pthread_self(), old_policy, &old_parameter);
  return status;
}

void tide_posix_spin_cpu(int64_t duration_ns) {
  const int64_t end_ns = read_clock(CLOCK_THREAD_CPUTIME_ID) + duration_ns;
  while (read_clock(CLOCK_THREAD_CPUTIME_ID) < end_ns) {}
}
