/* SPDX-License-Identifier: Apache-2.0 */
/* A sleeping thread wakes late: the interrupt, the scheduler and, on an idle processor, leaving a sleep state take
 * time, 15 us or more on a virtual processor. Most of this delay occurs at each wake-up. So a thread that sleeps
 * requests a wake-up that is earlier by the least delay of recent wake-ups, and then polls the clock until its time.
 *
 * The lead is the least lateness of the latest wake-ups (WAKE_UP_WINDOW of them, up to twice as many), and 0 before the
 * first window has ended. A wake-up comes too early only if it is less late than all recent ones. It then costs polling
 * for the rest of the time, and shortens the lead at once, so this is rare and not repeated. The lead is at most half
 * of a pause. If the thread is the most urgent of its processor, it blocks others for at most the lead.
 *
 * Not thread-safe: each thread needs its own. Nothing allocates. Cost: some ten instructions and a reading of the
 * clock. */
#pragma once

#include <stdint.h>

#include "tide/base/extern_c.h"

TIDE_EXTERN_C_BEGIN

#define WAKE_UP_WINDOW 32u

typedef struct tide_wake_up_lead {
  int64_t past_ns, present_ns; /* least lateness of the previous window and of the present window */
  uint32_t count;              /* wake-ups in this window */
} tide_wake_up_lead_t;

void tide_wake_up_lead_init(tide_wake_up_lead_t *lead);
/* By how much a sleep of pause_ns should end earlier: 0 to limit_ns. */
int64_t tide_wake_up_lead_of(const tide_wake_up_lead_t *lead, int64_t pause_ns, int64_t limit_ns);
/* Reports that a sleep ended late_ns after its requested time. */
void tide_wake_up_lead_learn(tide_wake_up_lead_t *lead, int64_t late_ns);

TIDE_EXTERN_C_END
