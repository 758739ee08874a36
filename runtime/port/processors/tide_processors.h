/* SPDX-License-Identifier: Apache-2.0 */
/* A program that tests a port on several processors. It tests critical sections and events of the platform, then four
 * lanes with a group, a lock and a timer, with a thread and an interrupt that notify them. It needs no link and no
 * agent. The board provides a function that starts threads; each figure is printed. */
#ifndef TIDE_PROCESSORS_H
#define TIDE_PROCESSORS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TIDE_PROCESSORS_THREADS 4u

typedef struct tide_processors_board {
  uint32_t runs; /* runs of callbacks that pass tokens; also the number of sections and passes */
  /* Priorities of the lanes, as in tide_lane_settings_t; the last is the most urgent. 0: the priority of the calling
   * thread. */
  int priorities[3];
  bool pins; /* lanes can be pinned: the two of the lowest band to processors 0 and 1 */
  void (*busy_us)(uint32_t us);
  void (*sleep_ms)(uint32_t ms);
  /* Start the thread with this index, below TIDE_PROCESSORS_THREADS. An earlier thread with this index has ended or is
   * about to end. urgent: with a priority above the lanes; otherwise with the priority of the middle lane. */
  bool (*start_thread)(unsigned index, void (*run)(void *argument), void *argument, bool urgent);
  /* Start calls of the given function from an interrupt, some thousand times a second, until stop. Null: there is no
     interrupt. */
  void (*start_interrupt)(void (*function)(void));
  void (*stop_interrupt)(void);
} tide_processors_board_t;

typedef struct tide_processors_found {
  uint32_t wrong;                     /* number of wrong figures */
  uint32_t parallel;                  /* runs that began while the other lane of the band ran a callback */
  uint32_t preempted, urgent_late_us; /* urgent runs during two other callbacks; greatest lateness of an urgent run */
} tide_processors_found_t;

/* True: all figures are correct. Wrong figures are printed as WRONG. Must be called from a thread with 4 KiB of stack,
 * once in a program. */
bool tide_processors(const tide_processors_board_t *board, tide_processors_found_t *found);

#ifdef __cplusplus
}
#endif
#endif
