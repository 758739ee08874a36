/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that sleeps until a time wakes later than that: the interrupt, the scheduler and, on an idle processor, its
 * leaving a sleep state take theirs, on a virtual one 15 us and more. Most of it is there at each wake-up. So who
 * sleeps asks to be woken earlier by what was always there of late, and looks at the clock until the time has come.
 *
 * What is learned is the least lateness of the last WAKE_UP_WINDOW to twice as many wake-ups, nothing before the first
 * window is over. Waking before the time costs looking at the clock for what is left, which is therefore rare, and ends
 * at once: it was a wake-up less late than all before, and the lead is shorter from then on. At most half of a pause is
 * lead. Who sleeps as the most urgent thread of its processor keeps others from it for the lead at most.
 *
 * Not thread-safe: one of each thread. Nothing allocates. Cost: some ten instructions and a look at the clock. */
#ifndef TIDE_PORT_POSIX_WAKE_UP_LEAD_H
#define TIDE_PORT_POSIX_WAKE_UP_LEAD_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WAKE_UP_WINDOW 32u

typedef struct tide_wake_up_lead {
  int64_t past_ns, present_ns; /* least lateness of the window before and of this one */
  uint32_t count;              /* wake-ups in this window */
} tide_wake_up_lead_t;

void tide_wake_up_lead_init(tide_wake_up_lead_t *lead);
/* By how much a sleep of pause_ns should end earlier: 0 to limit_ns. */
int64_t tide_wake_up_lead_of(const tide_wake_up_lead_t *lead, int64_t pause_ns, int64_t limit_ns);
/* A sleep ended by its time, so much after it. */
void tide_wake_up_lead_learn(tide_wake_up_lead_t *lead, int64_t late_ns);

#ifdef __cplusplus
}
#endif
#endif
