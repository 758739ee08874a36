/* SPDX-License-Identifier: Apache-2.0 */
/* What NuttX has and this machine's C library lacks: the sporadic server of POSIX. Included before
 * runtime/port/nuttx/lanes.c, whose settings then arrive at the test (nuttx_test.cpp) instead of at a scheduler. */
#ifndef TIDE_TEST_NUTTX_H
#define TIDE_TEST_NUTTX_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <sched.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CONFIG_SCHED_SPORADIC 1
#define CONFIG_RR_INTERVAL 200
#define SCHED_SPORADIC 99
struct nuttx_sched_param {
  int sched_priority;
  int sched_ss_low_priority;
  struct timespec sched_ss_repl_period, sched_ss_init_budget;
  int sched_ss_max_repl;
};
int nuttx_set_policy(pthread_attr_t *attributes, int policy);
int nuttx_set_parameters(pthread_attr_t *attributes, const struct nuttx_sched_param *parameters);
int nuttx_own_parameters(pthread_t thread, int policy, const struct nuttx_sched_param *parameters);
int nuttx_least(int policy);
int nuttx_most(int policy);
int nuttx_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *), void *argument);

#ifdef __cplusplus
}
#else
#define sched_param nuttx_sched_param
#define pthread_attr_setschedpolicy nuttx_set_policy
#define pthread_attr_setschedparam nuttx_set_parameters
#define pthread_setschedparam nuttx_own_parameters
#define pthread_attr_setinheritsched(attributes, how) 0
#define sched_get_priority_min nuttx_least
#define sched_get_priority_max nuttx_most
#define pthread_create nuttx_create
#endif
#endif
