/* SPDX-License-Identifier: Apache-2.0 */
/* A program that soak-tests a board together with `tide soak` on the computer. It sends numbered messages both ways on
 * three chains while the agent is killed, pings during a time synchronisation, removes a publisher with a full window,
 * and opens and closes sessions repeatedly. It needs std_msgs, and defines the pools of the program. */
#ifndef TIDE_EXCHANGE_H
#define TIDE_EXCHANGE_H

#include <rcl/rcl.h>
#include <stdbool.h>
#include <stddef.h>

TIDE_EXTERN_C_BEGIN

#define TIDE_EXCHANGE_CHAINS 3

typedef struct tide_exchange_board {
  /* Set the link of a session that is about to be opened: a serial device, an address, a custom transport. Null: the
   * default of the port. */
  rcl_ret_t (*choose_link)(rmw_init_options_t *options);
  /* Priorities of the lanes, least urgent first, in the system's numbers. All 0: one lane serves all levels. */
  int priorities[TIDE_EXCHANGE_CHAINS];
  /* Run entry(argument) in a thread of the same priority as the caller. Null: no ping during a synchronisation. */
  bool (*start_thread)(void (*entry)(void *), void *argument);
  size_t (*memory_used)(void); /* allocated bytes of the heap; null: no heap, or unknown */
} tide_exchange_board_t;

/* Runs until `tide soak` has all its answers. Returns 0, or the code of the failed step; the reason is printed. Must be
 * called from a thread with 4 KiB of stack, once in a program. */
int tide_exchange(const tide_exchange_board_t *board);

TIDE_EXTERN_C_END
#endif
