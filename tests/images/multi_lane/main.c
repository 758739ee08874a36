/* SPDX-License-Identifier: Apache-2.0 */
/* Four lanes on one stack, without an operating system, in exact virtual time (-icount shift=5,sleep=off):
 *
 *   brake     an event from an interrupt; above everything
 *   control   every 5 ms, for 1 ms
 *   planner   always busy; a budget of 2 ms in every 10 ms; beyond it, only time that no other lane uses
 *   logger    always busy, in pieces of 0.5 ms; above a planner without budget
 *
 * The program measures and prints all that is promised for lanes. The exit code is the number of the broken promise.
 * Everything runs twice, which shows that lanes can be ended and started again. */
#include <stddef.h>

#include "board.h"
#include "lanes.h"
#include "measure.h"
#include "platform.h"
#include "tide/executor.h"
#include "tide/port.h"
#include "tide/status.h"

#define MILLISECOND INT64_C(1000000)
#define CONTROL_PERIOD (5 * MILLISECOND)
#define CONTROL_TIME (1 * MILLISECOND)
#define BRAKE_TIME (MILLISECOND / 10)
#define BUDGET_TIME (2 * MILLISECOND)
#define BUDGET_PERIOD (10 * MILLISECOND)
#define PLANNER_TIME (7 * MILLISECOND)
#define LOGGER_TIME (MILLISECOND / 2)
#define DURATION (500 * MILLISECOND)
/* Permitted lateness beyond execution times, for entering lanes, the executor, and the interrupts of the timer and of
 * the brake. */
#define BRAKE_LATE_MAXIMUM_NS 60000
#define CONTROL_LATE_MAXIMUM_NS (2 * BRAKE_TIME + 250000) /* brakes are at least 1 ms apart */
#define LOGGER_MINIMUM_PERMILLE 450                       /* what planner, control, brakes and lanes leave of 1000 */

enum { LOGGER, PLANNER, CONTROL, BRAKE, LANES };
enum { CALLBACKS = 4 };

TIDE_DEFINE_LANE_BUDGETS(1, 8);

static tide_executor_t executor;
static tide_lane_t lanes[LANES];
static tide_callback_t *callbacks[CALLBACKS], brake = {.kind = TIDE_CALLBACK_GUARD};
static tide_queue_entry_t *ready[CALLBACKS * LANES], *timers[CALLBACKS * LANES];
static tide_timer_t control, planner, logger;
static int64_t started_ns, latest_brake_ns, latest_control_ns, planner_ns, logger_ns;
static volatile int64_t signalled_ns;
static uint32_t brakes, signals, controls;
static volatile int depth[LANES]; /* by lane: the most lanes on the stack when it started, with itself */
static volatile int running;
static bool overlapped, inverted;

static int64_t now(void) { return tide_cortex_m_platform.now_ns(NULL); }

/* Called when a callback of the lane starts: checks that a lane preempts only less urgent lanes, and never itself. */
static void begin(int lane) {
  static int stack[LANES];
  if (running > 0 && stack[running - 1] == lane) overlapped = true;
  if (running > 0 && stack[running - 1] > lane && lane != LOGGER) inverted = true;
  stack[running++] = lane;
  if (running > depth[lane]) depth[lane] = running;
}

static void end(void) { running--; }

static void arm_signal(void) {
  static uint32_t state = 2463534242u; /* xorshift, so that every run is the same */
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  board_alarm(0, (25000 + state % 100000u) * INT64_C(40)); /* 1 to 5 ms */
}

void board_alarm_interrupt(void) {
  if (!board_alarm_due(0)) return;
  signalled_ns = now();
  signals++;
  tide_executor_notify(&brake);
  arm_signal();
}

static void on_brake(tide_callback_t *callback, void *context) {
  (void)callback;
  (void)context;
  begin(BRAKE);
  const int64_t late_ns = now() - signalled_ns;
  if (late_ns > latest_brake_ns) latest_brake_ns = late_ns;
  measure_burn(BRAKE_TIME);
  brakes++;
  end();
}

static void on_control(tide_timer_t *timer, int64_t since_last_call_ns) {
  (void)since_last_call_ns;
  begin(CONTROL);
  measure_burn(CONTROL_TIME);
  controls++;
  const int64_t late_ns = now() - timer->callback.ready_ns - CONTROL_TIME;
  if (late_ns > latest_control_ns) latest_control_ns = late_ns;
  end();
  if (now() - started_ns < DURATION) return;
  board_alarm(0, -1); /* so that each signal has been answered */
  tide_executor_stop(&executor);
}

/* The planner computes in small pieces and adds each of them to its time, so that a callback which has not ended counts
 * as well. */
static void on_planner(tide_timer_t *timer, int64_t since_last_call_ns) {
  (void)timer;
  (void)since_last_call_ns;
  begin(PLANNER);
  for (int64_t done_ns = 0; done_ns < PLANNER_TIME; done_ns += MILLISECOND / 100) {
    measure_burn(MILLISECOND / 100);
    planner_ns += MILLISECOND / 100;
  }
  end();
}

static void on_logger(tide_timer_t *timer, int64_t since_last_call_ns) {
  (void)timer;
  (void)since_last_call_ns;
  begin(LOGGER);
  measure_burn(LOGGER_TIME);
  logger_ns += LOGGER_TIME;
  end();
}

static void spin_lane(void *context, size_t index) { tide_executor_spin_lane(context, index); }

static int run_lanes(size_t *refused) { return tide_port_run_lanes(lanes, LANES, spin_lane, &executor, refused); }

static void choose_lanes(void) {
  static const tide_lane_settings_t settings[LANES] = {
      [LOGGER] = {.scheduling = TIDE_SCHEDULING_FIFO, .priority = 2},
      [PLANNER] = {.least_level = 2,
                   .scheduling = TIDE_SCHEDULING_SPORADIC,
                   .priority = 5,
                   .low_priority = 1,
                   .runtime_ns = BUDGET_TIME,
                   .period_ns = BUDGET_PERIOD},
      [CONTROL] = {.least_level = 3, .scheduling = TIDE_SCHEDULING_FIFO, .priority = 7},
      [BRAKE] = {.least_level = 4, .scheduling = TIDE_SCHEDULING_FIFO, .priority = 9}};
  for (int lane = 0; lane < LANES; lane++) lanes[lane] = (tide_lane_t){.settings = settings[lane]};
}

static void add_timer(tide_timer_t *timer, uint8_t level, int64_t period_ns,
                      void (*on_expiry)(tide_timer_t *timer, int64_t since_last_call_ns)) {
  timer->period_ns = period_ns;
  timer->on_expiry = on_expiry;
  timer->callback.priority = TIDE_PRIORITY(level, 0);
  tide_executor_add_timer(&executor, timer);
}

static int set_up(void) {
  const tide_executor_config_t config = {.platform = &tide_cortex_m_platform,
                                         .callbacks = callbacks,
                                         .ready_storage = ready,
                                         .timer_storage = timers,
                                         .callback_count = CALLBACKS,
                                         .lanes = lanes,
                                         .lane_count = LANES};
  if (tide_executor_init(&executor, &config) != TIDE_OK) return 2;
  add_timer(&control, 3, CONTROL_PERIOD, on_control);
  add_timer(&planner, 2, PLANNER_TIME, on_planner);
  add_timer(&logger, 1, LOGGER_TIME, on_logger);
  brake.priority = TIDE_PRIORITY(4, 0);
  brake.execute = on_brake;
  return tide_executor_add(&executor, &brake) == TIDE_OK ? 0 : 3;
}

/* If a lane is refused, no lane runs, and the index of the refused lane is returned. */
static int check_refusals(void) {
  size_t refused = LANES;
  lanes[CONTROL].settings.scheduling = TIDE_SCHEDULING_DEADLINE;
  if (run_lanes(&refused) != TIDE_ERROR_UNSUPPORTED || refused != CONTROL) return 4;
  lanes[CONTROL].settings.scheduling =
      TIDE_SCHEDULING_SPORADIC; /* refused, because the program has memory for only one budget */
  lanes[CONTROL].settings.runtime_ns = lanes[CONTROL].settings.period_ns = BUDGET_PERIOD;
  if (run_lanes(&refused) != TIDE_ERROR_FULL || refused != CONTROL) return 5;
  lanes[CONTROL].settings.scheduling = TIDE_SCHEDULING_FIFO;
  lanes[CONTROL].settings.least_level = 2;
  if (run_lanes(&refused) != TIDE_ERROR_UNSUPPORTED || refused != CONTROL) return 6;
  lanes[CONTROL].settings.least_level = 3;
  return 0;
}

static int64_t permille(int64_t part_ns, int64_t of_ns) { return part_ns * 1000 / of_ns; }

static int check_promises(void) {
  const tide_budget_t *budget = tide_port_lane_budget(PLANNER);
  const int64_t lasted_ns = now() - started_ns;
  const int64_t planned = permille(planner_ns, lasted_ns), logged = permille(logger_ns, lasted_ns);
  const int64_t taken = permille((int64_t)budget->counters.used_ns, lasted_ns);
  measure_print("brake at most ns after its interrupt: ", latest_brake_ns, "\n");
  measure_print("control at most ns later than alone: ", latest_control_ns, "\n");
  measure_print("planner, permille of the time: ", planned, "\n");
  measure_print("planner, permille by its budget: ", taken, "\n");
  measure_print("logger, permille of the time: ", logged, "\n");
  measure_print("budget used up, times: ", (int64_t)budget->counters.exhaustions, "\n");
  measure_print("lanes on the stack at once: ", depth[BRAKE], "\n");
  if (overlapped || inverted) return 7;
  if (brakes != signals || brakes < (uint32_t)(lasted_ns / (6 * MILLISECOND))) return 8;
  if (latest_brake_ns > BRAKE_LATE_MAXIMUM_NS) return 9;
  if (controls + 1u < (uint32_t)(lasted_ns / CONTROL_PERIOD) || latest_control_ns > CONTROL_LATE_MAXIMUM_NS) return 10;
  /* A budget may be exceeded or missed by one callback. */
  const int64_t share = permille(BUDGET_TIME, BUDGET_PERIOD), callback = permille(PLANNER_TIME, DURATION);
  if (taken > share + callback || taken < share - callback) return 11;
  if (planned > share + callback || planned < share - 2 * callback) return 12;
  if (logged < LOGGER_MINIMUM_PERMILLE) return 13;
  if (depth[BRAKE] < LANES) return 14;
  return 0;
}

static int run_once(void) {
  latest_brake_ns = latest_control_ns = planner_ns = logger_ns = 0;
  brakes = signals = controls = 0;
  for (int lane = 0; lane < LANES; lane++) depth[lane] = 0;
  tide_timer_reset(&control);
  tide_timer_reset(&planner);
  tide_timer_reset(&logger);
  started_ns = now();
  arm_signal();
  if (run_lanes(NULL) != TIDE_OK) return 15;
  return check_promises();
}

int main(void) {
  measure_mark_stack();
  choose_lanes();
  int broken = set_up();
  if (broken == 0) broken = check_refusals();
  for (int run = 0; run < 2 && broken == 0; run++) broken = run_once();
  measure_print("stack used: ", measure_stack_used(), " bytes\n");
  return broken;
}
