/* SPDX-License-Identifier: Apache-2.0 */
/* A program that tries a board together with `tide exchange` on the computer: numbered messages both ways on three
 * chains while the agent is killed, a ping beside a time synchronisation, a publisher that is removed with a full
 * window, and sessions that are opened and closed again and again. It needs std_msgs, and brings the pools of the
 * program. */
#ifndef TIDE_EXCHANGE_H
#define TIDE_EXCHANGE_H

#include <rcl/rcl.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TIDE_EXCHANGE_CHAINS 3

typedef struct tide_exchange_board {
  /* Choose the link of a session that is about to be opened: a serial device, an address, a custom transport. Null:
   * what the port has anyway. */
  rcl_ret_t (*choose_link)(rmw_init_options_t *options);
  /* Of the lanes, the least urgent first, as the system counts. All 0: one lane for all. */
  int priorities[TIDE_EXCHANGE_CHAINS];
  /* Run entry(argument) in a thread of the same priority as the caller. Null: no ping beside a synchronisation. */
  bool (*start_thread)(void (*entry)(void *), void *argument);
  size_t (*memory_used)(void); /* bytes of the heap that are not free; null: the system has none, or does not tell */
} tide_exchange_board_t;

/* Until `tide exchange` has all its answers. 0, or how far it came; the reason is printed. From a thread with 4 KiB of
 * stack; once in a program. */
int tide_exchange(const tide_exchange_board_t *board);

#ifdef __cplusplus
}
#endif
#endif
