/* SPDX-License-Identifier: Apache-2.0 */
/* The names of Zephyr that runtime/port/zephyr uses, as in Zephyr's documentation: enough to compile the port here.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CONFIG_TIDE_LANES_MAXIMUM 4
#define CONFIG_TIDE_LANE_STACK_BYTES 4096
#define CONFIG_TIDE_RING_BYTES 64
#define CONFIG_TIDE_LINK_STACK_BYTES 2048
#define CONFIG_TIDE_LINK_PRIORITY 0
#ifdef CONFIG_SMP
#define CONFIG_SCHED_CPU_MASK 1
#define CONFIG_MP_MAX_NUM_CPUS 2
#else
#define CONFIG_TIDE_BUDGETS 1
#endif
#define CONFIG_TIDE_BUDGETS_STACK_BYTES 1024
#define CONFIG_TIDE_REPLENISHMENTS 8
#define CONFIG_NUM_COOP_PRIORITIES 16
#define CONFIG_NUM_PREEMPT_PRIORITIES 15
#define K_PRIO_COOP(count) ((count)-CONFIG_NUM_COOP_PRIORITIES)
#define K_LOWEST_APPLICATION_THREAD_PRIO 14
#define ARG_UNUSED(name) (void)(name)

typedef int64_t k_ticks_t;
typedef struct {
  k_ticks_t ticks;
} k_timeout_t;
#define K_FOREVER ((k_timeout_t){-1})
#define K_NO_WAIT ((k_timeout_t){0})
#define K_MSEC(count) ((k_timeout_t){(k_ticks_t)(count)*10})
#define K_TIMEOUT_ABS_TICKS(at) ((k_timeout_t){-2 - (at)})
#define SYS_FOREVER_US (-1)

struct k_sem {
  unsigned int count;
  void *waiter;
};
struct k_thread {
  void *task;
};
typedef struct k_thread *k_tid_t;
struct k_spinlock {
  bool held;
};
typedef struct {
  int key;
} k_spinlock_key_t;
typedef struct {
  char memory[1];
} k_thread_stack_t;
#define K_THREAD_STACK_ARRAY_DEFINE(name, count, bytes) k_thread_stack_t name[count][bytes]
#define K_THREAD_STACK_DEFINE(name, bytes) k_thread_stack_t name[bytes]
#define K_THREAD_STACK_SIZEOF(stack) sizeof(stack)

struct k_timer {
  void (*expired)(struct k_timer *timer);
};
#define K_TIMER_DEFINE(name, expired, stopped) struct k_timer name = {expired}
typedef struct {
  uint64_t execution_cycles;
} k_thread_runtime_stats_t;

k_ticks_t k_uptime_ticks(void);
uint64_t k_ticks_to_ns_floor64(uint64_t ticks);
uint64_t k_ns_to_ticks_ceil64(uint64_t time_ns);
uint32_t k_cycle_get_32(void);
int sys_clock_hw_cycles_per_sec(void);
unsigned int irq_lock(void);
void irq_unlock(unsigned int key);
k_spinlock_key_t k_spin_lock(struct k_spinlock *lock);
void k_spin_unlock(struct k_spinlock *lock, k_spinlock_key_t key);
int k_sem_init(struct k_sem *semaphore, unsigned int count, unsigned int limit);
void k_sem_give(struct k_sem *semaphore);
int k_sem_take(struct k_sem *semaphore, k_timeout_t timeout);
k_tid_t k_current_get(void);
int k_thread_priority_get(k_tid_t thread);
void k_thread_priority_set(k_tid_t thread, int priority);
k_tid_t k_thread_create(struct k_thread *thread, k_thread_stack_t *stack, size_t bytes,
                        void (*entry)(void *, void *, void *), void *one, void *two, void *three, int priority,
                        uint32_t options, k_timeout_t delay);
int k_thread_name_set(k_tid_t thread, const char *name);
void k_thread_start(k_tid_t thread);
int k_thread_cpu_pin(k_tid_t thread, int cpu);
int k_thread_join(struct k_thread *thread, k_timeout_t timeout);
bool k_is_in_isr(void);
void k_timer_init(struct k_timer *timer, void (*expired)(struct k_timer *timer),
                  void (*stopped)(struct k_timer *timer));
void k_timer_start(struct k_timer *timer, k_timeout_t duration, k_timeout_t period);
void k_timer_stop(struct k_timer *timer);
int k_thread_runtime_stats_get(k_tid_t thread, k_thread_runtime_stats_t *statistics);
uint64_t k_cyc_to_ns_floor64(uint64_t cycles);
int32_t k_msleep(int32_t ms);
void k_sched_lock(void);
void k_sched_unlock(void);

#ifdef __cplusplus
}
#endif
