/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "board_callbacks.h"

#include <rcl/rcl.h>
#include <tide/posix.h>
#include <tide/rclc_service.h>
#include <time.h>

#include "number.h"
#include "recorder.h"
#include "trace_file.h"

plan_t plan;
callback_t callbacks[PLAN_CALLBACKS];
join_t joins[PLAN_JOINS];
int64_t first_release_ns;
atomic_uint publish_failures, unexpected;

int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

enum {
  WAKE_UP_NS = 30000, /* a sleep may end so late */
  SPARE_NS = 10000    /* of what it takes to begin and to end */
};
static bool waits;
static int64_t waited_ns, granted_ns = -1;

void play_executions(bool waiting, int64_t granted) {
  waits = waiting;
  granted_ns = granted;
}

int64_t executed_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec + waited_ns;
}

static void wait_ns(int64_t duration_ns) {
  const int64_t begin_ns = executed_ns(), end_ns = now_ns() + duration_ns, wake_ns = end_ns - WAKE_UP_NS;
  const struct timespec wake = {.tv_sec = wake_ns / 1000000000, .tv_nsec = wake_ns % 1000000000};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, NULL);
  while (now_ns() < end_ns) {
  }
  waited_ns += duration_ns - (executed_ns() - begin_ns);
}

/* What is described is the worst that occurs, and what surrounds the work is not known before: as much as that took of
 * late is left free. */
static int64_t work_of_ns(const callback_t *callback, int64_t spent_ns) {
  const int64_t execution_ns = callback->plan->execution_ns;
  if (granted_ns < 0) return execution_ns;
  const int64_t beside_ns = callback->plan->out.topic[0] != '\0' ? granted_ns : 0;
  const int64_t left_ns = execution_ns + beside_ns - callback->sent_ns - spent_ns - SPARE_NS;
  if (left_ns < execution_ns / 2) return execution_ns / 2;
  return left_ns < execution_ns ? left_ns : execution_ns;
}

static void keep_sent(callback_t *callback, int64_t sent_ns) {
  const int64_t known_ns = callback->sent_ns / 16 * 15;
  callback->sent_ns = sent_ns > known_ns ? sent_ns : known_ns;
}

const plan_chain_t *chain_of(const callback_t *callback) { return &plan.chains[callback->plan->chain]; }

bool subscribes(const callback_t *callback) { return callback->plan->in.topic[0] != '\0'; }

bool serves(const callback_t *callback) { return callback->plan->role == PLAN_SERVICE; }

callback_t *server_of(const callback_t *callback) { return &callbacks[callback->plan->server]; }

bool has_service(const callback_t *callback) { return serves(callback) && server_of(callback) == callback; }

bool requests(const callback_t *callback) { return callback->plan->requests; }

bool publishes(const callback_t *callback) {
  return callback->plan->out.topic[0] != '\0' && !serves(callback) && !requests(callback);
}

rcl_client_t *client_of(callback_t *callback) { return &callbacks[callback->plan->request].client; }

static bool is_last(const callback_t *callback) {
  const plan_chain_t *chain = chain_of(callback);
  return callback->plan == &plan.callbacks[chain->first + chain->count - 1];
}

static int64_t since_first_ns(const plan_chain_t *chain, int64_t at_ns) {
  return at_ns - first_release_ns - chain->offset_ns;
}

static rcl_ret_t request(callback_t *callback) {
  int64_t sequence_number = 0;
  return rcl_send_request(&callback->client, &callback->out, &sequence_number);
}

tide_callback_t *core_of(callback_t *callback) {
  switch (callback->plan->role) {
    case PLAN_TIMER:
      return tide_rclc_timer_callback(&callback->timer);
    case PLAN_SERVICE:
      return tide_rclc_service_callback(&server_of(callback)->service);
    case PLAN_CLIENT:
      return tide_rclc_client_callback(client_of(callback));
    default:
      return tide_rclc_subscription_callback(&callback->subscription);
  }
}

/* The whole of a callback: works, sends, and keeps when. What a service replies leaves when it has returned. */
static void execute(callback_t *callback, uint32_t index, int64_t start_ns, int64_t start_cpu_ns) {
  trace_file_instance(core_of(callback)->priority, TRACE_INSTANCE(callback->plan->chain, index));
  const int64_t work_ns = work_of_ns(callback, executed_ns() - start_cpu_ns);
  if (waits) {
    wait_ns(work_ns);
  } else {
    tide_posix_spin_cpu(work_ns);
  }
  const int64_t worked_ns = executed_ns();
  record_t *record = recorder_at(callback->plan, index);
  record->start_ns = start_ns;
  if (callback->plan->out.topic[0] != '\0') number_write(callback->out.bytes, callback->plan->out.number, index);
  if (publishes(callback) && rcl_publish(&callback->publisher, &callback->out, NULL) != RCL_RET_OK) publish_failures++;
  if (requests(callback) && request(callback) != RCL_RET_OK) publish_failures++;
  record->end_ns = now_ns();
  const int64_t done_ns = executed_ns();
  record->cpu_ns = done_ns - start_cpu_ns;
  keep_sent(callback, done_ns - worked_ns);
  if (is_last(callback)) recorder_finish(callback->plan->chain, index);
}

/* An instance is that of its expiry: late in its period it may start in the next one. */
void on_timer(rcl_timer_t *timer, int64_t since_last_call_ns) {
  (void)since_last_call_ns;
  const int64_t start_ns = now_ns(), start_cpu_ns = executed_ns();
  size_t number = 0;
  while (&callbacks[number].timer != timer) number++;
  const plan_chain_t *chain = chain_of(&callbacks[number]);
  const int64_t since_ns = since_first_ns(chain, tide_rclc_timer_callback(timer)->ready_ns);
  const int64_t index = since_ns / chain->period_ns;
  if (since_ns < 0 || index >= chain->instances) return; /* past the last counted period */
  execute(&callbacks[number], (uint32_t)index, start_ns, start_cpu_ns);
}

/* The instance that a message is of; -1: of none, or of one that has been here. taken: messages before this one. */
static int64_t instance_of(callback_t *callback, const raw_message_t *message, number_place_t place, uint32_t *taken,
                           int64_t at_ns) {
  const plan_chain_t *chain = chain_of(callback);
  const int64_t since_ns = since_first_ns(chain, at_ns);
  if (since_ns < 0) return -1;
  const int64_t read = number_read(message->bytes, message->size, place);
  int64_t index = number_instance(read, place, since_ns / chain->period_ns);
  if (place.kind == NUMBER_COUNT) index = (*taken)++;
  if (index < 0 || index >= chain->instances) return -1;
  return recorder_at(callback->plan, (uint32_t)index)->end_ns == 0 ? index : -1;
}

/* All messages of the instance are there. Those of one callback come in one lane, as they are of one level. */
static bool is_last_of_join(callback_t *callback, int64_t index, unsigned bit) {
  if (callback->came == NULL) return true;
  callback->came[index] |= (uint8_t)(1u << bit);
  return callback->came[index] == (1u << (callback->plan->join_count + 1u)) - 1u;
}

void on_message(const void *message, void *context) {
  const int64_t start_ns = now_ns(), start_cpu_ns = executed_ns();
  callback_t *callback = context;
  const int64_t index = instance_of(callback, message, callback->plan->in.number, &callback->taken, start_ns);
  if (index < 0) {
    unexpected++;
  } else if (is_last_of_join(callback, index, 0)) {
    execute(callback, (uint32_t)index, start_ns, start_cpu_ns);
  }
}

void on_join(const void *message, void *context) {
  const int64_t start_ns = now_ns(), start_cpu_ns = executed_ns();
  join_t *join = context;
  const int64_t index = instance_of(join->callback, message, join->plan->number, &join->taken, start_ns);
  if (index < 0) {
    unexpected++;
  } else if (is_last_of_join(join->callback, index, join->bit)) {
    execute(join->callback, (uint32_t)index, start_ns, start_cpu_ns);
  }
}

/* Of the callbacks of a service; NULL: of none. */
static callback_t *asked_by(const callback_t *server, const raw_message_t *message) {
  for (size_t index = 0; index < plan.callback_count; index++) {
    callback_t *callback = &callbacks[index];
    const plan_callback_t *described = callback->plan;
    if (!serves(callback) || server_of(callback) != server) continue;
    if (described->mark.kind == NUMBER_NONE) return callback;
    if (number_read(message->bytes, message->size, described->mark) == described->mark_value) return callback;
  }
  return NULL;
}

void on_request(const void *message, void *response, void *context) {
  callback_t *asked = asked_by(context, message);
  if (asked == NULL) {
    unexpected++;
    asked = context;
  } else {
    on_message(message, asked);
  }
  *(raw_message_t *)response = asked->out; /* with the number in it by now */
}

void on_reply(const void *message, rmw_request_id_t *request_id) {
  (void)request_id;
  size_t number = 0;
  while (&callbacks[number].in != message) number++;
  on_message(message, &callbacks[number]);
}
