/* SPDX-License-Identifier: Apache-2.0 */
/* NuttX for the lanes of the port of kernels (runtime/port/rtos): threads with FIFO, round robin, and with
 * CONFIG_TIDE_BUDGETS the port's budgets, by the kernel's switch notes and a watchdog. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "../rtos/rtos.h"

#define SECOND_NS INT64_C(1000000000)
#if CONFIG_RR_INTERVAL > 0 /* without an interval NuttX refuses SCHED_RR */
#define IN_TURNS SCHED_RR
#else
#define IN_TURNS SCHED_FIFO
#endif

#ifdef CONFIG_TIDE_BUDGETS
#include <limits.h>
#include <nuttx/clock.h>
#include <nuttx/note/note_driver.h>
#include <nuttx/sched.h>
#include <nuttx/wdog.h>
#include <semaphore.h>

#ifndef CONFIG_SCHED_INSTRUMENTATION_SWITCH
#error "CONFIG_TIDE_BUDGETS needs CONFIG_SCHED_INSTRUMENTATION_SWITCH: who runs is known from the notes of switches"
#endif
#ifdef CONFIG_SMP
#error "CONFIG_TIDE_BUDGETS is for one processor"
#endif
#if defined(CONFIG_DRIVERS_NOTERAM) && CONFIG_DRIVERS_NOTE_MAX < 2
#error "No place for notes of tide: switch off CONFIG_DRIVERS_NOTERAM, or set CONFIG_DRIVERS_NOTE_MAX to 2"
#endif
#endif

/* ---- threads ---- */

void *tide_kernel_self(void) {
#ifdef CONFIG_TIDE_BUDGETS
  return nxsched_self();
#else
  const pthread_t self = pthread_self(); /* threads of NuttX's simulator share thread-local storage */
  void *name = NULL;
  memcpy(&name, &self, sizeof self < sizeof name ? sizeof self : sizeof name);
  return name;
#endif
}

static void *run_thread(void *argument) {
  tide_rtos_task_t *task = argument;
#ifdef CONFIG_TIDE_BUDGETS
  task->kernel.tcb = nxsched_self();
#endif
  task->run(task->argument);
  return NULL;
}

/* The system's policy and its parameters; false: inherit from the starting thread. */
static bool scheduling_of(const tide_lane_settings_t *settings, int priority, int *policy,
                          struct sched_param *parameters) {
  memset(parameters, 0, sizeof *parameters);
  parameters->sched_priority = priority;
  *policy = IN_TURNS;
  switch (settings->scheduling) {
    case TIDE_SCHEDULING_FIFO: *policy = SCHED_FIFO; return true;
    case TIDE_SCHEDULING_NORMAL: /* only priority scheduling exists: the lowest priority, round robin if available */
    case TIDE_SCHEDULING_ROUND_ROBIN: return true;
    case TIDE_SCHEDULING_SPORADIC: /* without budgets a lane that may run normally */
      *policy = SCHED_FIFO;
      return TIDE_KERNEL_BUDGETS;
    default: return false;
  }
}

int tide_kernel_start(tide_rtos_task_t *task, size_t slot, const tide_lane_settings_t *settings, int priority) {
  size_t stack_bytes = settings->stack_bytes;
#ifdef CONFIG_TIDE_BUDGETS
  if (slot == TIDE_RTOS_KEEPER) stack_bytes = CONFIG_TIDE_BUDGETS_STACKSIZE;
#endif
  (void)slot;
  if (settings->processor != 0u && !settings->may_run_normally) return TIDE_ERROR_UNSUPPORTED;
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return TIDE_ERROR_FULL;
  struct sched_param parameters;
  int policy, status = TIDE_OK;
  if (scheduling_of(settings, priority, &policy, &parameters) &&
      (pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED) != 0 ||
       pthread_attr_setschedpolicy(&attributes, policy) != 0 ||
       pthread_attr_setschedparam(&attributes, &parameters) != 0))
    status = TIDE_ERROR_ARGUMENT;
  if (stack_bytes > 0u && pthread_attr_setstacksize(&attributes, stack_bytes) != 0) status = TIDE_ERROR_ARGUMENT;
  if (status == TIDE_OK) {
    const int error = pthread_create(&task->kernel.thread, &attributes, run_thread, task);
    if (error == EPERM) {
      status = TIDE_ERROR_NOT_PERMITTED;
    } else if (error != 0) {
      status = error == EINVAL ? TIDE_ERROR_ARGUMENT : TIDE_ERROR_FULL;
    }
  }
  (void)pthread_attr_destroy(&attributes);
  return status;
}

void tide_kernel_join(tide_rtos_task_t *task) { (void)pthread_join(task->kernel.thread, NULL); }

int tide_kernel_priority(void) {
  struct sched_param own;
  int policy;
  return pthread_getschedparam(pthread_self(), &policy, &own) == 0 ? own.sched_priority : TIDE_KERNEL_PRIORITY_LEAST;
}

#ifndef CONFIG_TIDE_BUDGETS
void tide_kernel_set_priority(const tide_rtos_task_t *task, int priority) {
  struct sched_param own;
  int policy;
  const pthread_t thread = task != NULL ? task->kernel.thread : pthread_self();
  if (pthread_getschedparam(thread, &policy, &own) != 0) return;
  own.sched_priority = priority;
  (void)pthread_setschedparam(thread, policy, &own);
}
#else

/* ---- budgets ---- */

#define TICK_NS ((int64_t)CONFIG_USEC_PER_TICK * 1000)
#define UNCOUNTED ULONG_MAX /* frequency of a counter that was not started */

static spinlock_t lock;
static struct wdog_s watchdog;
static sem_t look;
static tide_event_t unused;
static const tide_platform_t *platform; /* fetched once, because fetching it may wait */

irqstate_t tide_nuttx_mask(void) { return spin_lock_irqsave(&lock); }
void tide_nuttx_unmask(irqstate_t state) { spin_unlock_irqrestore(&lock, state); }

static void on_suspend(struct note_driver_s *driver, struct tcb_s *tcb) {
  (void)driver;
  (void)tcb;
  tide_rtos_switched(NULL);
}

static void on_resume(struct note_driver_s *driver, struct tcb_s *tcb) {
  (void)driver;
  tide_rtos_switched(tcb);
}

static const struct note_driver_ops_s operations = {.suspend = on_suspend, .resume = on_resume};
static struct note_driver_s driver = {
#ifdef CONFIG_SCHED_INSTRUMENTATION_FILTER
    .name = "tide",
    .filter = {.mode = {.flag = NOTE_FILTER_MODE_FLAG_ENABLE | NOTE_FILTER_MODE_FLAG_SWITCH}},
#endif
    .ops = &operations,
};

/* TIDE_ERROR_UNSUPPORTED: the chip's counter was not started (CONFIG_ARCH_PERF_EVENTS). TIDE_ERROR_FULL: no room for
 * another note driver (CONFIG_DRIVERS_NOTE_MAX). */
int tide_kernel_prepare_budgets(void) {
  static bool prepared; /* permanent: NuttX cannot unregister a driver */
  if (perf_getfreq() == 0u || perf_getfreq() == UNCOUNTED) return TIDE_ERROR_UNSUPPORTED;
  if (prepared) return TIDE_OK;
  platform = tide_port_platform();
  if (note_driver_register(&driver) != 0) return TIDE_ERROR_FULL;
  platform->event_init(platform->context, &unused);
  (void)sem_init(&look, 0, 0);
  (void)sem_setprotocol(&look, SEM_PRIO_NONE); /* no priority inheritance, because the thread that posts this semaphore
                                                  does not hold it */
  prepared = true;
  return TIDE_OK;
}

int64_t tide_kernel_consumed_ns(tide_kernel_stamp_t *stamp, void *task) {
  const unsigned long now = (unsigned long)perf_gettime();
  struct timespec consumed;
  (void)task;
  perf_convert((clock_t)(now - *stamp), &consumed);
  *stamp = now;
  return (int64_t)consumed.tv_sec * SECOND_NS + consumed.tv_nsec;
}

void tide_kernel_wake_keeper(void) { (void)sem_post(&look); }

void tide_kernel_await_look(void) {
  while (sem_wait(&look) != 0) {}
}

static void on_alarm(wdparm_t argument) {
  (void)argument;
  tide_kernel_wake_keeper();
}

/* The watchdog may fire up to one tick early; the check then arms it again. */
void tide_kernel_look_at_masked(int64_t time_ns) {
  const int64_t left_ns = time_ns - platform->now_ns(platform->context);
  if (time_ns == TIDE_FOREVER) {
    (void)wd_cancel(&watchdog);
  } else {
    (void)wd_start(&watchdog, left_ns > 0 ? (clock_t)((left_ns - 1) / TICK_NS) : 0, on_alarm, 0);
  }
}

/* Setting a priority makes the kernel drop inherited priority, and a thread that is demoted inherits none. So no lane
 * may be demoted inside a section of the runtime, where others would wait for it. For this, the thread that sets
 * priorities first takes both locks of the platform. Priority that the lane has inherited from a more urgent waiting
 * thread is kept. */
void tide_kernel_set_priority(const tide_rtos_task_t *task, int priority) {
  struct sched_param parameters;
  memset(&parameters, 0, sizeof parameters);
  parameters.sched_priority = priority;
  if (task == NULL) { /* the ceiling of a lock */
    (void)pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameters);
    return;
  }
  const uintptr_t section = platform->critical_enter(platform->context);
  platform->event_set(platform->context, &unused);
  bool stays = false;
#ifdef CONFIG_PRIORITY_INHERITANCE
  struct tcb_s *const tcb = task->kernel.tcb;
  const irqstate_t state = tide_nuttx_mask();
  stays = tcb->sched_priority > tcb->base_priority && tcb->sched_priority > priority;
  if (stays) tcb->base_priority = (uint8_t)priority;
  tide_nuttx_unmask(state);
#endif
  if (!stays) (void)pthread_setschedparam(task->kernel.thread, SCHED_FIFO, &parameters);
  platform->critical_exit(platform->context, section);
}
#endif
