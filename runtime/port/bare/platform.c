/* SPDX-License-Identifier: Apache-2.0 */
/* Clock, critical section and events where one context executes. */
#include "bare.h"
#include "tide/status.h"

static struct {
  uint32_t last;
  uint32_t rounds;
} bare_clock;

static uintptr_t critical_enter(void *context) {
  (void)context;
  return tide_bare_mask();
}

static void critical_exit(void *context, uintptr_t state) {
  (void)context;
  tide_bare_unmask(state);
}

/* The clock of several Arduino cores combines a counter with an overflow interrupt. This interrupt is masked here, so
 * the clock may step back by a few ticks. A step back below this limit is not a wrap: the time stays unchanged. */
#define STEP_BACK_US (UINT32_C(1) << 24)

/* Interrupts are masked, so that an interrupt that also reads the clock cannot count a wrap twice. */
static int64_t now_ns(void *context) {
  const uintptr_t state = critical_enter(context);
  uint32_t us = tide_bare_clock_us();
  if ((uint32_t)(bare_clock.last - us) < STEP_BACK_US) us = bare_clock.last;
  if (us < bare_clock.last) bare_clock.rounds++;
  bare_clock.last = us;
  const uint64_t whole_us = ((uint64_t)bare_clock.rounds << 32) | us;
  critical_exit(context, state);
  return (int64_t)(whole_us * 1000u);
}

static void event_init(void *context, tide_event_t *event) {
  (void)context;
  event->state = 0u;
  event->port = NULL;
}

static void event_set(void *context, tide_event_t *event) {
  const uintptr_t state = critical_enter(context);
  event->state = 1u;
  critical_exit(context, state);
}

static bool take(void *context, tide_event_t *event) {
  const uintptr_t state = critical_enter(context);
  const bool set = event->state != 0u;
  event->state = 0u;
  critical_exit(context, state);
  return set;
}

#define IDLE_MAXIMUM_NS INT64_C(1000000000)

static int event_wait(void *context, tide_event_t *event, int64_t deadline_ns) {
  for (;;) {
    const int64_t left_ns = deadline_ns == TIDE_FOREVER ? IDLE_MAXIMUM_NS : deadline_ns - now_ns(context);
    if (take(context, event)) return 1;
    if (left_ns <= 0) return 0;
    tide_bare_idle((uint32_t)(left_ns < IDLE_MAXIMUM_NS ? left_ns : IDLE_MAXIMUM_NS) / 1000u + 1u);
  }
}

const tide_platform_t *tide_port_platform(void) {
  static const tide_platform_t platform = {.now_ns = now_ns,
                                           .critical_enter = critical_enter,
                                           .critical_exit = critical_exit,
                                           .event_init = event_init,
                                           .event_set = event_set,
                                           .event_wait = event_wait};
  return &platform;
}

static uint64_t measure_now(void *context) { return (uint64_t)now_ns(context); }

const tide_measure_clock_t *tide_port_measure_clock(void) {
  static const tide_measure_clock_t measure_clock = {
      .now = measure_now, .mask = UINT64_MAX, .hertz = 1000000000u, .of_thread = false};
  return &measure_clock;
}

/* ---- links and lanes: custom transports and one lane ---- */

int tide_port_open_link(tide_session_t *session, const tide_link_address_t *address) {
  (void)session;
  (void)address;
  return TIDE_ERROR_UNSUPPORTED;
}

void tide_port_close_link(tide_session_t *session) { (void)session; }

void tide_port_wake_link(tide_session_t *session) { (void)session; }

void tide_port_serve_link(tide_session_t *session) { (void)session; }

const tide_pump_t *tide_port_pump(tide_session_t *session) {
  (void)session;
  return NULL;
}

int tide_port_link_counters(tide_session_t *session, tide_link_counters_t *counters) {
  (void)session;
  (void)counters;
  return TIDE_ERROR_NOT_FOUND;
}

int tide_port_run_lanes(tide_lane_t *lanes, size_t count, void (*run)(void *context, size_t index), void *context,
                        size_t *refused) {
  (void)lanes;
  if (count > 1u) {
    if (refused) *refused = 1u;
    return TIDE_ERROR_UNSUPPORTED;
  }
  run(context, 0u);
  return TIDE_OK;
}
