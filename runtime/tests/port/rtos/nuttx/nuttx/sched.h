/* SPDX-License-Identifier: Apache-2.0 */
/* The names of NuttX that runtime/port/nuttx/nuttx.c uses, as in NuttX's headers; included before it. The neighbouring
 * headers include this one. nuttx_names.cpp implements them. */
#pragma once

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#define CONFIG_TIDE_BUDGETS_STACKSIZE 65536
#define CONFIG_TIDE_REPLENISHMENTS 8
#define CONFIG_SCHED_INSTRUMENTATION_SWITCH 1
#define CONFIG_SCHED_INSTRUMENTATION_FILTER 1
#define CONFIG_DRIVERS_NOTE_MAX 2
#define CONFIG_PRIORITY_INHERITANCE 1
#define CONFIG_USEC_PER_TICK 1000
#define CONFIG_RR_INTERVAL 200
#define SEM_PRIO_NONE 0

#ifdef __cplusplus
extern "C" {
#endif

struct tcb_s {
  uint8_t sched_priority, base_priority;
};
struct tcb_s *nxsched_self(void);

clock_t perf_gettime(void);
void perf_convert(clock_t elapsed, struct timespec *time);
unsigned long perf_getfreq(void);

typedef unsigned int irqstate_t;
typedef uint8_t spinlock_t;
irqstate_t spin_lock_irqsave(volatile spinlock_t *lock);
void spin_unlock_irqrestore(volatile spinlock_t *lock, irqstate_t state);

typedef uintptr_t wdparm_t;
typedef void (*wdentry_t)(wdparm_t argument);
struct wdog_s {
  wdentry_t entry;
  int64_t tick;
};
int wd_start(struct wdog_s *wdog, clock_t delay, wdentry_t entry, wdparm_t argument);
int wd_cancel(struct wdog_s *wdog);

#define NOTE_FILTER_MODE_FLAG_ENABLE 1u
#define NOTE_FILTER_MODE_FLAG_SWITCH 2u
struct note_driver_s;
struct note_driver_ops_s {
  void (*suspend)(struct note_driver_s *driver, struct tcb_s *tcb);
  void (*resume)(struct note_driver_s *driver, struct tcb_s *tcb);
};
struct note_driver_s {
  const char *name;
  struct {
    struct {
      unsigned int flag;
    } mode;
  } filter;
  const struct note_driver_ops_s *ops;
};
int note_driver_register(struct note_driver_s *driver);

int nuttx_attributes(pthread_attr_t *attributes);
int nuttx_set_policy(pthread_attr_t *attributes, int policy);
int nuttx_set_parameters(pthread_attr_t *attributes, const struct sched_param *parameters);
int nuttx_set_stack(pthread_attr_t *attributes, size_t bytes);
int nuttx_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *), void *argument);
int nuttx_set_scheduling(pthread_t thread, int policy, const struct sched_param *parameters);
int nuttx_get_scheduling(pthread_t thread, int *policy, struct sched_param *parameters);
int nuttx_post(sem_t *semaphore);
int nuttx_wait(sem_t *semaphore);
int nuttx_join(pthread_t thread, void **result);
pthread_t nuttx_self(void);

#ifdef __cplusplus
}
#else
#define sem_setprotocol(semaphore, protocol) 0
#define sem_post nuttx_post
#define sem_wait nuttx_wait
#define pthread_create nuttx_create
#define pthread_join nuttx_join
#define pthread_self nuttx_self
#define pthread_setschedparam nuttx_set_scheduling
#define pthread_getschedparam nuttx_get_scheduling
#define pthread_attr_init nuttx_attributes
#define pthread_attr_destroy(attributes) 0
#define pthread_attr_setinheritsched(attributes, how) 0
#define pthread_attr_setschedpolicy nuttx_set_policy
#define pthread_attr_setschedparam nuttx_set_parameters
#define pthread_attr_setstacksize nuttx_set_stack
#endif
