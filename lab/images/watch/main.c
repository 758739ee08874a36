/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions of an instance of a chain of two callbacks, watched or not (WATCHED); run it with -icount shift=5, where
 * an instruction takes 32 ns. The executor lives in a time of its own, so that no wait counts. */
#include "board.h"
#include "measure.h"
#include "tide/chain_watch.h"
#include "tide/port.h"
#include "tide/status.h"

enum { INSTANCES = 1000, PERIOD_NS = 1000 };

static int64_t virtual_ns;
static int64_t now_ns(void *context) {
  (void)context;
  return virtual_ns;
}
static int wait_for(void *context, tide_event_t *event, int64_t deadline_ns) {
  (void)context;
  const int set = event->state == 1u ? 1 : 0;
  event->state = 0u;
  virtual_ns = set == 0 && deadline_ns > virtual_ns ? deadline_ns : virtual_ns;
  return set;
}

static tide_callback_t *callbacks[2];
static tide_queue_entry_t *ready[2], *expiries[2];
static tide_lane_t lane;
static tide_executor_t executor;
static tide_timer_t timer;
static tide_callback_t last;
static uint32_t runs;

static void on_expiry(tide_timer_t *expired, int64_t since_last_call_ns) {
  (void)expired;
  (void)since_last_call_ns;
  tide_executor_notify(&last);
}

static void on_last(tide_callback_t *callback, void *context) {
  (void)callback;
  (void)context;
  runs++;
}

static int set_up(const tide_platform_t *platform) {
  const tide_executor_config_t config = {.platform = platform,
                                         .callbacks = callbacks,
                                         .ready_storage = ready,
                                         .timer_storage = expiries,
                                         .callback_count = 2,
                                         .lanes = &lane,
                                         .lane_count = 1};
  timer.period_ns = PERIOD_NS;
  timer.on_expiry = on_expiry;
  last.kind = TIDE_CALLBACK_SUBSCRIPTION;
  last.execute = on_last;
  int status = tide_executor_init(&executor, &config);
  if (status == TIDE_OK) status = tide_executor_add_timer(&executor, &timer);
  if (status == TIDE_OK) status = tide_executor_add(&executor, &last);
#if WATCHED
  static tide_chain_t chain;
  static tide_chain_watch_t watch;
  if (status == TIDE_OK) status = tide_chain_init(&chain, "c", 1, PERIOD_NS, PERIOD_NS);
  if (status == TIDE_OK) status = tide_chain_watch(&watch, &chain, &timer.callback, &last);
#endif
  return status;
}

int main(void) {
  const tide_platform_t *board = tide_port_platform();
  tide_platform_t platform = *board;
  platform.now_ns = now_ns;
  platform.event_wait = wait_for;
  if (set_up(&platform) != TIDE_OK) return 1;
  const int64_t start_ns = board->now_ns(board->context);
  while (runs < INSTANCES) {
    if (tide_executor_round(&executor, TIDE_FOREVER) < 0) return 2;
  }
  const int64_t took_ns = board->now_ns(board->context) - start_ns;
  measure_print("an instance: ", measure_instructions(took_ns / INSTANCES), " instructions\n");
  return 0;
}
