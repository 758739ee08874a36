/* SPDX-License-Identifier: Apache-2.0 */
/* A lock between preemptive lanes, without an operating system and on FreeRTOS, in exact virtual time
 * (-icount shift=5,sleep=off):
 *
 *   stop      an event from an interrupt; above the ceiling, takes nothing
 *   steer     an event from an interrupt; takes the lock for 0.1 ms
 *   middle    every 3 ms, for 1 ms; takes nothing
 *   map       every 7 ms, for 3 ms, of which it has the lock for 2 ms
 *
 * steer may wait for one section of map, but not for middle in addition; stop never waits. The exit code names the
 * promise that was broken. */
#include <stddef.h>

#include "board.h"
#include "measure.h"
#include "platform.h"
#include "tide/executor.h"
#include "tide/lock.h"
#include "tide/port.h"
#include "tide/status.h"

#define MILLISECOND INT64_C(1000000)
#define SECTION_TIME (2 * MILLISECOND)
#define STEER_TIME (MILLISECOND / 10)
#define DURATION (1000 * MILLISECOND)
/* Permitted lateness beyond execution times, for entering lanes, the executor, and interrupts of the timer. */
#define LATE_NS 60000

enum { MAP, MIDDLE, STEER, STOP, LANES };

static tide_executor_t executor;
static tide_lane_t lanes[LANES];
static tide_callback_t *callbacks[LANES], steer = {.kind = TIDE_CALLBACK_GUARD}, stop = {.kind = TIDE_CALLBACK_GUARD};
static tide_queue_entry_t *ready[LANES * LANES], *timers[LANES * LANES];
static tide_timer_t map, middle;
static tide_lock_set_t set;
static tide_lock_t lock, other;
static int64_t started_ns, latest_steer_ns, latest_stop_ns;
static volatile int64_t signalled_ns;
static volatile bool holds;
static uint32_t steers, stops, maps, stops_in_section, middles_in_section, steers_after_section;
static int wrong;

static int64_t now(void) { return tide_port_platform()->now_ns(tide_port_platform()->context); }

static void expect(int found, int wanted, int broken) {
  if (found != wanted && wrong == 0) wrong = broken;
}

static void arm_signal(void) {
  static uint32_t state = 2463534242u; /* xorshift, so that every run is the same */
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  board_alarm(0, (110000 + state % 90000u) * INT64_C(40)); /* 4.4 to 8 ms */
}

/* Alternates between the two interrupts. */
void board_alarm_interrupt(void) {
  static uint32_t signals;
  if (!board_alarm_due(0)) return;
  signalled_ns = now();
  expect(tide_lock_take(&lock, &steer), TIDE_ERROR_LOCK_CONTEXT, 20);
  tide_executor_notify(signals++ % 3u == 0u ? &stop : &steer);
  arm_signal();
}

static void on_stop(tide_callback_t *callback, void *context) {
  (void)context;
  const int64_t late_ns = now() - signalled_ns;
  if (late_ns > latest_stop_ns) latest_stop_ns = late_ns;
  if (holds) {
    stops_in_section++;
    expect(tide_lock_give(&lock), TIDE_ERROR_LOCK_OWNER, 21);
  }
  expect(tide_lock_take(&lock, callback), TIDE_ERROR_LOCK_CEILING, 22);
  stops++;
}

static void on_steer(tide_callback_t *callback, void *context) {
  (void)context;
  const int64_t late_ns = now() - signalled_ns;
  if (late_ns > latest_steer_ns) latest_steer_ns = late_ns;
  if (late_ns > LATE_NS) steers_after_section++;
  expect(tide_lock_take(&lock, callback), TIDE_OK, 23);
  if (holds) expect(1, 0, 24);
  measure_burn(STEER_TIME);
  expect(tide_lock_give(&lock), TIDE_OK, 25);
  steers++;
}

static void on_middle(tide_timer_t *timer, int64_t since_last_call_ns) {
  (void)timer;
  (void)since_last_call_ns;
  if (holds) middles_in_section++;
  measure_burn(MILLISECOND);
}

static void on_map(tide_timer_t *timer, int64_t since_last_call_ns) {
  (void)since_last_call_ns;
  measure_burn(MILLISECOND / 2);
  expect(tide_lock_take(&lock, &timer->callback), TIDE_OK, 26);
  holds = true;
  expect(tide_lock_take(&lock, &timer->callback), TIDE_ERROR_LOCK_HELD, 27);
  expect(tide_lock_take(&other, &timer->callback), TIDE_ERROR_LOCK_HELD, 28);
  measure_burn(SECTION_TIME);
  holds = false;
  expect(tide_lock_give(&lock), TIDE_OK, 29);
  expect(tide_lock_give(&lock), TIDE_ERROR_STATE, 30);
  measure_burn(MILLISECOND / 2);
  maps++;
  if (now() - started_ns < DURATION) return;
  board_alarm(0, -1);
  tide_executor_stop(&executor);
}

static void spin_lane(void *context, size_t index) { tide_executor_spin_lane(context, index); }

static void add_timer(tide_timer_t *timer, uint8_t level, int64_t period_ns,
                      void (*on_expiry)(tide_timer_t *timer, int64_t since_last_call_ns)) {
  timer->period_ns = period_ns;
  timer->on_expiry = on_expiry;
  timer->callback.priority = TIDE_PRIORITY(level, 0);
  tide_executor_add_timer(&executor, timer);
}

static void add_event(tide_callback_t *event, uint8_t level, void (*execute)(tide_callback_t *, void *)) {
  event->priority = TIDE_PRIORITY(level, 0);
  event->execute = execute;
  tide_executor_add(&executor, event);
}

static int set_up(void) {
  const tide_executor_config_t config = {.platform = tide_port_platform(),
                                         .callbacks = callbacks,
                                         .ready_storage = ready,
                                         .timer_storage = timers,
                                         .callback_count = LANES,
                                         .lanes = lanes,
                                         .lane_count = LANES};
  for (int lane = 0; lane < LANES; lane++) {
    lanes[lane].settings = (tide_lane_settings_t){
        .least_level = (uint8_t)(lane + 1), .scheduling = TIDE_SCHEDULING_FIFO, .priority = lane + 1};
  }
  if (tide_executor_init(&executor, &config) != TIDE_OK) return 2;
  add_timer(&map, 1, 7 * MILLISECOND, on_map);
  add_timer(&middle, 2, 3 * MILLISECOND, on_middle);
  add_event(&steer, 3, on_steer);
  add_event(&stop, 4, on_stop);
  tide_lock_set_init(&set, tide_port_platform(), tide_port_locks());
  tide_lock_init(&lock, &set);
  tide_lock_init(&other, &set);
  const bool allowed = tide_lock_allow(&lock, &map.callback) == TIDE_OK &&
                       tide_lock_allow(&other, &map.callback) == TIDE_OK && tide_lock_allow(&lock, &steer) == TIDE_OK;
  return allowed ? 0 : 3;
}

static int check_promises(void) {
  measure_print("steer at most ns after its interrupt: ", latest_steer_ns, "\n");
  measure_print("stop at most ns after its interrupt: ", latest_stop_ns, "\n");
  measure_print("steer waited for a section, times: ", steers_after_section, "\n");
  measure_print("stop came within a section, times: ", stops_in_section, "\n");
  measure_print("the lock was taken, times: ", lock.takes, "\n");
  measure_print("the lock was found taken, times: ", lock.waits, "\n");
  if (wrong != 0) return wrong;
  if (steers_after_section == 0u || stops_in_section == 0u) return 4; /* without these, nothing was tested */
  if (middles_in_section != 0u) return 5;
  if (latest_stop_ns > LATE_NS) return 6;
  if (latest_steer_ns > SECTION_TIME + 2 * LATE_NS) return 7;
  if (lock.takes != steers + maps || lock.owner != NULL) return 8;
  /* While map has the lock, it is as urgent as steer. A kernel with round-robin between equal priorities may then run
   * steer, which has to wait for the lock. */
  if (lock.waits > (tide_port_locks()->may_wait ? steers : 0u)) return 10;
  return 0;
}

int main(void) {
  int broken = set_up();
  started_ns = now();
  arm_signal();
  if (broken == 0 && tide_port_run_lanes(lanes, LANES, spin_lane, &executor, NULL) != TIDE_OK) broken = 9;
  return broken != 0 ? broken : check_promises();
}
