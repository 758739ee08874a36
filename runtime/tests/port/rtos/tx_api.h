/* SPDX-License-Identifier: Apache-2.0 */
/* The names of ThreadX that runtime/port/threadx uses, as in ThreadX's documentation. threadx_names.cpp implements
 * them. */
#ifndef TX_API_H
#define TX_API_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TIDE_THREADX 1 /* for rtos_test.cpp */
#define VOID void
typedef char CHAR;
typedef unsigned int UINT;
typedef unsigned long ULONG; /* holds a pointer */
typedef unsigned long long ULONG64;

#define TX_SUCCESS 0u
#define TX_NO_TIME_SLICE 0ul
#define TX_AUTO_START 1u
#define TX_WAIT_FOREVER (~0ul)
#define TX_MAX_PRIORITIES 32
#define TX_TIMER_TICKS_PER_SECOND 1000ul

typedef struct {
  void *task;
  UINT tx_thread_user_priority;
} TX_THREAD;
typedef struct {
  void *waiter;
  ULONG count;
} TX_SEMAPHORE;

ULONG tx_time_get(VOID);
UINT tx_semaphore_create(TX_SEMAPHORE *semaphore, CHAR *name, ULONG count);
UINT tx_semaphore_delete(TX_SEMAPHORE *semaphore);
UINT tx_semaphore_get(TX_SEMAPHORE *semaphore, ULONG ticks);
UINT tx_semaphore_put(TX_SEMAPHORE *semaphore);
UINT tx_thread_create(TX_THREAD *thread, CHAR *name, VOID (*entry)(ULONG), ULONG argument, VOID *stack, ULONG bytes,
                      UINT priority, UINT threshold, ULONG slice, UINT start);
UINT tx_thread_terminate(TX_THREAD *thread);
UINT tx_thread_delete(TX_THREAD *thread);
UINT tx_thread_priority_change(TX_THREAD *thread, UINT priority, UINT *before);
TX_THREAD *tx_thread_identify(VOID);

/* From tx_port.h and tx_thread.h. */
#define TX_INTERRUPT_SAVE_AREA UINT interrupt_save;
#define TX_DISABLE interrupt_save = fake_disable();
#define TX_RESTORE fake_restore(interrupt_save);
#define TX_THREAD_GET_SYSTEM_STATE() fake_system_state()
#define _tx_thread_preempt_disable (*fake_preempt_disable())
UINT fake_disable(VOID);
VOID fake_restore(UINT posture);
ULONG fake_system_state(VOID);
UINT *fake_preempt_disable(VOID);
VOID _tx_thread_system_preempt_check(VOID);

#ifdef __cplusplus
}
#endif
#endif
