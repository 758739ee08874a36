/* SPDX-License-Identifier: Apache-2.0 */
/* A board with actions, for tests against real ROS 2: test_msgs/Fibonacci.
 *
 *   action_peer (--udp PORT | --serial DEVICE --baud N | --rtps ADDRESS --domain N) --key N [--node NAME]
 *     [--serve NAME --step-ms N --threads] [--ask NAME --goals N --order N --at-once N]
 *
 * The server refuses orders above 200, computes one number per step, sends it as feedback, and lets clients cancel
 * goals of even orders. A timer performs the steps of all goals; with --threads, each goal has a thread instead. The
 * client sends --goals goals, at most --at-once of them at a time, with orders that count up from --order. It cancels
 * goals of orders from 100 on after their first feedback. Events are printed as lines of JSON; SIGTERM prints the
 * counters and ends it. */
#include <pthread.h>
#include <test_msgs/action/fibonacci.h>
#include <tide/rclc_action.h>
#include <time.h>

#define TIDE_NODES 1
#define TIDE_PUBLISHERS 0
#define TIDE_SUBSCRIPTIONS 0
#define TIDE_ACTION_SERVERS 1
#define TIDE_ACTION_CLIENTS 1
#define TIDE_ACTION_GOALS 24
#define TIDE_ACTION_RESULTS 32
#define TIDE_ACTION_RESULT_BYTES 1024
#define TIDE_SUBSCRIPTION_DEPTH 16
#define TIDE_SERVICE_DEPTH 16
#define TIDE_CLIENT_REQUESTS 16
#define TIDE_TIMERS 2
#define TIDE_SLOTS 64
#define TIDE_SMALL_NODES 32
#define TIDE_RTPS_WRITERS 8
#define TIDE_RTPS_READERS 7
#define TIDE_RTPS_FRAMES 16
#define TIDE_RTPS_HISTORY 16
#define TIDE_RTPS_SAMPLE_BYTES 1200
#define TIDE_DEFINE_RTPS

#include "peer.h"

#define GOALS 12
#define NUMBERS 256
#define ORDER_MAXIMUM 200

typedef test_msgs__action__Fibonacci_SendGoal_Request request_t;
typedef test_msgs__action__Fibonacci_FeedbackMessage feedback_t;
typedef test_msgs__action__Fibonacci_GetResult_Response result_t;

typedef struct run {
  rclc_action_goal_handle_t *goal;
  int32_t numbers[NUMBERS];
  size_t count;
} run_t;

static bool threads;
static int64_t step_ms = 20;
static request_t incoming[GOALS], outgoing[GOALS];
static run_t runs[GOALS];
static feedback_t heard;
static result_t result;
static int32_t heard_numbers[NUMBERS], result_numbers[NUMBERS];
static rclc_action_server_t server;
static rclc_action_client_t client;
static int64_t goals_to_send, first_order, at_once = 1, under_way;
static bool places[GOALS];

static void tell(const char *what, int32_t order, int value) {
  printf("{\"%s\": %" PRId32 ", \"value\": %d}\n", what, order, value);
  fflush(stdout);
}

/* ---- the server ---- */

static int32_t order_of(const rclc_action_goal_handle_t *goal) {
  return ((const request_t *)goal->ros_goal_request)->goal.order;
}

static bool end_run(run_t *run, rcl_action_goal_state_t state) {
  const int32_t order = order_of(run->goal); /* read first, because the handle may end */
  result_t response;
  memset(&response, 0, sizeof response);
  response.result.sequence.data = run->numbers;
  response.result.sequence.size = response.result.sequence.capacity = run->count;
  if (rclc_action_send_result(run->goal, state, &response) != RCL_RET_OK) return false;
  tell("ended", order, state);
  return true;
}

/* Computes one more number. Returns true if the goal is finished. */
static bool step(run_t *run) {
  if (run->goal->goal_cancelled) return end_run(run, GOAL_STATE_CANCELED);
  if (run->count >= (size_t)order_of(run->goal)) return end_run(run, GOAL_STATE_SUCCEEDED);
  run->numbers[run->count] =
      run->count < 2 ? (int32_t)run->count
                     : (int32_t)((uint32_t)run->numbers[run->count - 1] + (uint32_t)run->numbers[run->count - 2]);
  run->count++;
  feedback_t feedback;
  memset(&feedback, 0, sizeof feedback);
  feedback.feedback.sequence.data = run->numbers;
  feedback.feedback.sequence.size = feedback.feedback.sequence.capacity = run->count;
  (void)rclc_action_publish_feedback(run->goal, &feedback);
  return false;
}

static void *run_in_thread(void *context) {
  run_t *run = context;
  const struct timespec pause = {0, (long)step_ms * 1000000};
  do {
    nanosleep(&pause, NULL); /* clock: a pace, the time of a step */
  } while (!step(run));
  __atomic_store_n(&run->goal, NULL, __ATOMIC_RELEASE);
  return NULL;
}

static void run_all(rcl_timer_t *timer, int64_t last_call_time) {
  RCLC_UNUSED(timer);
  RCLC_UNUSED(last_call_time);
  for (size_t i = 0; i < GOALS && !threads; i++) {
    if (runs[i].goal != NULL && step(&runs[i])) runs[i].goal = NULL;
  }
}

static rcl_ret_t on_goal(rclc_action_goal_handle_t *goal, void *context) {
  (void)context;
  run_t *run = runs;
  while (run < runs + GOALS && __atomic_load_n(&run->goal, __ATOMIC_ACQUIRE) != NULL) run++;
  if (order_of(goal) > ORDER_MAXIMUM || run == runs + GOALS) return RCL_RET_ACTION_GOAL_REJECTED;
  tell("started", order_of(goal), 0);
  run->count = 0;
  run->goal = goal;
  if (!threads) return RCL_RET_ACTION_GOAL_ACCEPTED;
  pthread_t thread;
  if (pthread_create(&thread, NULL, run_in_thread, run) != 0) return RCL_RET_ACTION_GOAL_REJECTED;
  pthread_detach(thread);
  return RCL_RET_ACTION_GOAL_ACCEPTED;
}

static bool on_cancel(rclc_action_goal_handle_t *goal, void *context) {
  (void)context;
  return order_of(goal) % 2 == 0;
}

/* ---- the client ---- */

static size_t place_of(const rclc_action_goal_handle_t *goal) {
  return (size_t)((const request_t *)goal->ros_goal_request - outgoing);
}

static void end_goal(const rclc_action_goal_handle_t *goal) {
  places[place_of(goal)] = false;
  under_way--;
}

static void send_goals(rcl_timer_t *timer, int64_t last_call_time) {
  RCLC_UNUSED(timer);
  RCLC_UNUSED(last_call_time);
  while (goals_to_send > 0 && under_way < at_once) {
    size_t place = 0;
    while (places[place]) place++;
    outgoing[place].goal.order = (int32_t)first_order;
    if (rclc_action_send_goal_request(&client, &outgoing[place], NULL) != RCL_RET_OK) return;
    places[place] = true;
    under_way++;
    goals_to_send--;
    first_order++;
  }
}

static void on_goal_answer(rclc_action_goal_handle_t *goal, bool accepted, void *context) {
  (void)context;
  tell(accepted ? "accepted" : "refused", order_of(goal), 0);
  if (!accepted) end_goal(goal);
}

static void on_feedback(rclc_action_goal_handle_t *goal, void *message, void *context) {
  (void)context;
  const feedback_t *feedback = message;
  tell("feedback", order_of(goal), (int)feedback->feedback.sequence.size);
  if (order_of(goal) >= 100 && feedback->feedback.sequence.size == 3) {
    require(rclc_action_send_cancel_request(goal), "cancelling");
  }
}

static bool is_fibonacci(const result_t *given) {
  const int32_t *numbers = given->result.sequence.data;
  for (size_t i = 0; i < given->result.sequence.size; i++) {
    const uint32_t wanted = i < 2 ? (uint32_t)i : (uint32_t)numbers[i - 1] + (uint32_t)numbers[i - 2];
    if ((uint32_t)numbers[i] != wanted) return false;
  }
  return true;
}

static void on_result(rclc_action_goal_handle_t *goal, void *message, void *context) {
  (void)context;
  const result_t *given = message;
  printf("{\"result\": %" PRId32 ", \"value\": %d, \"numbers\": %zu, \"right\": %s}\n", order_of(goal), given->status,
         given->result.sequence.size, is_fibonacci(given) ? "true" : "false");
  fflush(stdout);
  end_goal(goal);
}

static void on_cancel_answer(rclc_action_goal_handle_t *goal, bool agreed, void *context) {
  (void)context;
  tell("cancelled", order_of(goal), agreed);
}

/* ---- both ---- */

static void print_counters(const char *side, const tide_action_counters_t *counters) {
  printf(", \"%s\": {\"goals\": %" PRIu32 ", \"refused\": %" PRIu32 ", \"repeated\": %" PRIu32 ", \"results\": %" PRIu32
         ", \"unknown\": %" PRIu32 ", \"malformed\": %" PRIu32 ", \"dropped\": %" PRIu32 ", \"replies_lost\": %" PRIu32
         "}",
         side, counters->goals, counters->refused, counters->repeated, counters->results, counters->unknown,
         counters->malformed, counters->dropped, counters->replies_lost);
}

static void print_end(bool serves, bool asks) {
  tide_action_counters_t counters;
  tide_session_t *session = tide_rclc_support_session(&support);
  printf("{\"event\": \"end\", \"reconnects\": %" PRIu32 ", \"retransmissions\": %" PRIu32,
         session->counters.reconnects, session->daemon.transmitter.counters.retransmissions);
  if (serves) {
    require(tide_rclc_action_server_get_counters(&server, &counters), "counting");
    print_counters("server", &counters);
  }
  if (asks) {
    require(tide_rclc_action_client_get_counters(&client, &counters), "counting");
    print_counters("client", &counters);
  }
  puts("}");
  fflush(stdout);
}

int main(int argc, char **argv) {
  const char *serves = NULL, *asks = NULL;
  const peer_option_t own[] = {{.name = "serve", .text = &serves},        {.name = "ask", .text = &asks},
                               {.name = "step-ms", .number = &step_ms},   {.name = "goals", .number = &goals_to_send},
                               {.name = "order", .number = &first_order}, {.name = "at-once", .number = &at_once},
                               {.name = "threads", .flag = &threads},     {0}};
  connect_board(argc, argv, own, "", 4);
  if (step_ms <= 0 || step_ms > 900 || at_once <= 0 || at_once > GOALS) return 2;
  end_by_signal();
  heard.feedback.sequence.data = heard_numbers;
  result.result.sequence.data = result_numbers;
  heard.feedback.sequence.capacity = result.result.sequence.capacity = NUMBERS;
  const rosidl_action_type_support_t *type = ROSIDL_GET_ACTION_TYPE_SUPPORT(test_msgs, Fibonacci);
  rcl_timer_t run_timer = rcl_get_zero_initialized_timer(), send_timer = rcl_get_zero_initialized_timer();
  if (serves != NULL) {
    require(rclc_action_server_init_default(&server, &node, &support, type, serves), "server");
    require(rclc_executor_add_action_server(&executor, &server, GOALS, incoming, sizeof incoming[0], on_goal, on_cancel,
                                            NULL),
            "adding");
    require(rclc_timer_init_default(&run_timer, &support, RCL_MS_TO_NS(step_ms), run_all), "timer");
    require(rclc_executor_add_timer(&executor, &run_timer), "adding");
  }
  if (asks != NULL) {
    require(rclc_action_client_init_default(&client, &node, type, asks), "client");
    require(rclc_executor_add_action_client(&executor, &client, GOALS, &result, &heard, on_goal_answer, on_feedback,
                                            on_result, on_cancel_answer, NULL),
            "adding");
    require(rclc_timer_init_default(&send_timer, &support, RCL_MS_TO_NS(100), send_goals), "timer");
    require(rclc_executor_add_timer(&executor, &send_timer), "adding");
  }
  tell_ready();
  while (!interrupted) (void)rclc_executor_spin_some(&executor, RCL_MS_TO_NS(20));
  print_end(serves != NULL, asks != NULL);
  if (threads) return 0; /* threads of goals may still be running */
  require(rclc_executor_fini(&executor), "finishing");
  require(rclc_support_fini(&support), "goodbye");
  return 0;
}
