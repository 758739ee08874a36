/* SPDX-License-Identifier: Apache-2.0 */
/* A program that tries whether what runs on several processors at once keeps out of each other's way: sections and
 * events of the platform, then four lanes with a group, a lock and a timer, with a thread and an interrupt that notify
 * them. It needs no link and no agent. The board says how it starts threads; each figure is printed. */
#ifndef TIDE_PROCESSORS_H
#define TIDE_PROCESSORS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TIDE_PROCESSORS_THREADS 4u

typedef struct tide_processors_board {
  uint32_t runs; /* of callbacks that hand on tokens; sections and passes are as many */
  /* Of the lanes, as tide_lane_settings_t counts; the last is the most urgent. 0: as the thread that calls. */
  int priorities[3];
  bool pins; /* lanes can be kept on a processor: the two of the lowest band have 0 and 1 */
  void (*busy_us)(uint32_t us);
  void (*sleep_ms)(uint32_t ms);
  /* A thread beside the caller, index below TIDE_PROCESSORS_THREADS; one of before with that index has ended or is
   * about to. urgent: above the lanes; else as urgent as the middle one. */
  bool (*start_thread)(unsigned index, void (*run)(void *argument), void *argument, bool urgent);
  /* Call it from an interrupt, some thousand times a second, until stop; null: there is none. */
  void (*start_interrupt)(void (*function)(void));
  void (*stop_interrupt)(void);
} tide_processors_board_t;

typedef struct tide_processors_found {
  uint32_t wrong;                     /* of the figures */
  uint32_t parallel;                  /* runs that began while the other lane of the band ran one */
  uint32_t preempted, urgent_late_us; /* urgent runs while two callbacks were under way; the latest of all */
} tide_processors_found_t;

/* True: nothing was wrong. What is printed as WRONG was. From a thread with 4 KiB of stack; once in a program. */
bool tide_processors(const tide_processors_board_t *board, tide_processors_found_t *found);

#ifdef __cplusplus
}
#endif
#endif
