/* SPDX-License-Identifier: Apache-2.0 */
/* A board performs one operation after the other: samples, requests, goals or changes of parameters. Samples have no
 * reader; everything else goes from the board through the agent to the board itself.
 *
 *   operations PORT best_effort|reliable|sample|request|goal|parameter COUNT
 *
 * The program uses only the public interface of micro-ROS, so it links with any client. lab/bench/operations.py builds
 * it and counts its instructions. Exit status: 0 if all operations were answered, else 1. */
#include <rcl/rcl.h>
#include <rcl_interfaces/srv/set_parameters.h>
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <rclc_parameter/rclc_parameter.h>
#include <rmw_microros/rmw_microros.h>
#include <std_msgs/msg/string.h>
#include <std_srvs/srv/set_bool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <test_msgs/action/fibonacci.h>
#include <time.h>

#define HANDLES 16
#define NUMBERS 5
#define TEXT_BYTES 64
#define LIMIT_S 120

static rcl_allocator_t allocator;
static rclc_support_t support;
static rcl_node_t node;
static rclc_executor_t executor;
static int asked, answered;

static void require(rcl_ret_t code, const char *what) {
  if (code == RCL_RET_OK) return;
  fprintf(stderr, "operations: %s: %d\n", what, (int)code);
  exit(EXIT_FAILURE);
}

static void connect_node(const char *port) {
  allocator = rcl_get_default_allocator();
  rcl_init_options_t options = rcl_get_zero_initialized_init_options();
  require(rcl_init_options_init(&options, allocator), "options");
  rmw_init_options_t *link = rcl_init_options_get_rmw_init_options(&options);
  require(rmw_uros_options_set_udp_address("127.0.0.1", port, link), "address");
  require(rclc_support_init_with_options(&support, 0, NULL, &options, &allocator), "no agent");
  node = rcl_get_zero_initialized_node();
  require(rclc_node_init_default(&node, "board", "", &support), "node");
  executor = rclc_executor_get_zero_initialized_executor();
  require(rclc_executor_init(&executor, &support.context, HANDLES, &allocator), "executor");
}

/* ---- samples of 100 B: at a moderate rate without a reader, or back to back to this program's own reader ---- */

#define SAMPLE_BYTES 100
#define PACE_NS 200000

static rcl_publisher_t publisher;
static rcl_subscription_t subscription;
static std_msgs__msg__String sample, heard_sample;

static void set_sample(std_msgs__msg__String *message, char *memory, size_t size) {
  message->data.data = memory;
  message->data.capacity = SAMPLE_BYTES;
  message->data.size = size;
}

static void init_samples(const rmw_qos_profile_t *qos) {
  static char memory[SAMPLE_BYTES];
  memset(memory, 'x', SAMPLE_BYTES - 1);
  set_sample(&sample, memory, SAMPLE_BYTES - 1);
  const rosidl_message_type_support_t *type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, String);
  require(rclc_publisher_init(&publisher, &node, type, "samples", qos), "publisher");
}

static void init_best_effort(void) { init_samples(&rmw_qos_profile_sensor_data); }
static void init_reliable(void) { init_samples(&rmw_qos_profile_default); }

static void on_sample(const void *message) {
  answered += ((const std_msgs__msg__String *)message)->data.size == SAMPLE_BYTES - 1;
}

static void init_sample(void) {
  static char memory[SAMPLE_BYTES];
  init_samples(&rmw_qos_profile_default);
  set_sample(&heard_sample, memory, 0);
  const rosidl_message_type_support_t *type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, String);
  require(rclc_subscription_init_default(&subscription, &node, type, "samples"), "subscription");
  require(rclc_executor_add_subscription(&executor, &subscription, &heard_sample, on_sample, ON_NEW_DATA),
          "handle of the subscription");
}

static void publish(void) { require(rcl_publish(&publisher, &sample, NULL), "publish"); }

static void publish_at_pace(void) {
  const struct timespec pace = {0, PACE_NS};
  publish();
  answered++;
  nanosleep(&pace, NULL);
}

/* ---- requests ---- */

static rcl_service_t service;
static rcl_client_t client;
static std_srvs__srv__SetBool_Request request, taken;
static std_srvs__srv__SetBool_Response response, answer;

static void serve(const void *from, void *to) {
  ((std_srvs__srv__SetBool_Response *)to)->success = ((const std_srvs__srv__SetBool_Request *)from)->data;
}

static void hear(const void *message) { answered += ((const std_srvs__srv__SetBool_Response *)message)->success; }

static void set_text(rosidl_runtime_c__String *text, char *memory, const char *content) {
  text->data = memory;
  text->capacity = TEXT_BYTES;
  text->size = strlen(content);
  memcpy(memory, content, text->size + 1);
}

static void init_requests(void) {
  static char texts[2][TEXT_BYTES];
  set_text(&response.message, texts[0], "");
  set_text(&answer.message, texts[1], "");
  const rosidl_service_type_support_t *type = ROSIDL_GET_SRV_TYPE_SUPPORT(std_srvs, srv, SetBool);
  require(rclc_service_init_default(&service, &node, type, "switch"), "service");
  require(rclc_client_init_default(&client, &node, type, "switch"), "client");
  require(rclc_executor_add_service(&executor, &service, &taken, &response, serve), "handle of the service");
  require(rclc_executor_add_client(&executor, &client, &answer, hear), "handle of the client");
}

static void send_request(void) {
  int64_t number = 0;
  request.data = true;
  require(rcl_send_request(&client, &request, &number), "request");
}

static void go_on_with_requests(void) {}

/* ---- goals, with one feedback each ---- */

static rclc_action_server_t action_server;
static rclc_action_client_t action_client;
static test_msgs__action__Fibonacci_SendGoal_Request goal, taken_goals[1];
static test_msgs__action__Fibonacci_FeedbackMessage feedback, heard_feedback;
static test_msgs__action__Fibonacci_GetResult_Response result, heard_result;
static rclc_action_goal_handle_t *running;

static rcl_ret_t on_goal(rclc_action_goal_handle_t *handle, void *context) {
  (void)context;
  running = handle;
  return RCL_RET_ACTION_GOAL_ACCEPTED;
}

static bool on_cancel(rclc_action_goal_handle_t *handle, void *context) {
  (void)handle;
  (void)context;
  return false;
}

static void on_goal_answer(rclc_action_goal_handle_t *handle, bool accepted, void *context) {
  (void)handle;
  (void)context;
  require(accepted ? RCL_RET_OK : RCL_RET_ERROR, "a goal was refused");
}

static void on_feedback(rclc_action_goal_handle_t *handle, void *message, void *context) {
  (void)handle;
  (void)message;
  (void)context;
}

static void on_result(rclc_action_goal_handle_t *handle, void *message, void *context) {
  (void)handle;
  (void)context;
  answered += ((test_msgs__action__Fibonacci_GetResult_Response *)message)->result.sequence.size == NUMBERS;
}

static void set_numbers(rosidl_runtime_c__int32__Sequence *sequence, int32_t *memory, size_t size) {
  sequence->data = memory;
  sequence->capacity = NUMBERS;
  sequence->size = size;
}

static void init_goals(void) {
  static int32_t numbers[4][NUMBERS];
  set_numbers(&feedback.feedback.sequence, numbers[0], NUMBERS);
  set_numbers(&heard_feedback.feedback.sequence, numbers[1], 0);
  set_numbers(&result.result.sequence, numbers[2], NUMBERS);
  set_numbers(&heard_result.result.sequence, numbers[3], 0);
  const rosidl_action_type_support_t *type = ROSIDL_GET_ACTION_TYPE_SUPPORT(test_msgs, Fibonacci);
  require(rclc_action_server_init_default(&action_server, &node, &support, type, "count"), "action server");
  require(rclc_action_client_init_default(&action_client, &node, type, "count"), "action client");
  require(rclc_executor_add_action_server(&executor, &action_server, 1, taken_goals, sizeof taken_goals[0], on_goal,
                                          on_cancel, NULL),
          "handle of the action server");
  require(rclc_executor_add_action_client(&executor, &action_client, 1, &heard_result, &heard_feedback, on_goal_answer,
                                          on_feedback, on_result, NULL, NULL),
          "handle of the action client");
}

static void send_goal(void) {
  goal.goal.order = NUMBERS;
  require(rclc_action_send_goal_request(&action_client, &goal, NULL), "goal");
}

/* As in rclc, the result is sent only after it was requested. */
static void go_on_with_goals(void) {
  static bool told;
  if (running == NULL) return;
  if (!told) require(rclc_action_publish_feedback(running, &feedback), "feedback");
  told = true;
  const rcl_ret_t sent = rclc_action_send_result(running, GOAL_STATE_SUCCEEDED, &result);
  if (sent == RCLC_RET_ACTION_WAIT_RESULT_REQUEST) return;
  require(sent, "result");
  running = NULL;
  told = false;
}

/* ---- changes of a parameter ---- */

static rclc_parameter_server_t parameters;
static rcl_client_t changer;
static rcl_interfaces__srv__SetParameters_Request change;
static rcl_interfaces__srv__SetParameters_Response changed;

static bool on_change(const Parameter *before, const Parameter *after, void *context) {
  (void)before;
  (void)after;
  (void)context;
  return true;
}

static void on_changed(const void *message) {
  const rcl_interfaces__srv__SetParameters_Response *all = message;
  answered += all->results.size == 1 && all->results.data[0].successful;
}

static void init_parameters(void) {
  static rcl_interfaces__msg__Parameter parameter;
  static rcl_interfaces__msg__SetParametersResult outcome;
  static char texts[3][TEXT_BYTES];
  set_text(&parameter.name, texts[0], "gain");
  set_text(&parameter.value.string_value, texts[1], "");
  set_text(&outcome.reason, texts[2], "");
  parameter.value.type = RCLC_PARAMETER_DOUBLE;
  change.parameters.data = &parameter;
  change.parameters.size = change.parameters.capacity = 1;
  changed.results.data = &outcome;
  changed.results.capacity = 1;
  const rosidl_service_type_support_t *type = ROSIDL_GET_SRV_TYPE_SUPPORT(rcl_interfaces, srv, SetParameters);
  require(rclc_parameter_server_init_default(&parameters, &node), "parameter server");
  require(rclc_add_parameter(&parameters, "gain", RCLC_PARAMETER_DOUBLE), "parameter");
  require(rclc_executor_add_parameter_server(&executor, &parameters, on_change), "handle of the parameter server");
  require(rclc_client_init_default(&changer, &node, type, "board/set_parameters"), "client of parameters");
  require(rclc_executor_add_client(&executor, &changer, &changed, on_changed), "handle of the client of parameters");
}

static void send_change(void) {
  int64_t number = 0;
  change.parameters.data[0].value.double_value = asked;
  require(rcl_send_request(&changer, &change, &number), "change");
}

/* ---- one after the other ---- */

typedef struct kind {
  const char *name;
  void (*init)(void);
  void (*send)(void);
  void (*go_on)(void);
} kind_t;

static const kind_t kinds[] = {{"best_effort", init_best_effort, publish_at_pace, go_on_with_requests},
                               {"reliable", init_reliable, publish_at_pace, go_on_with_requests},
                               {"sample", init_sample, publish, go_on_with_requests},
                               {"request", init_requests, send_request, go_on_with_requests},
                               {"goal", init_goals, send_goal, go_on_with_goals},
                               {"parameter", init_parameters, send_change, go_on_with_requests}};

static const kind_t *kind_of(const char *name) {
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    if (strcmp(kinds[i].name, name) == 0) return &kinds[i];
  }
  return NULL;
}

int main(int count, char **words) {
  const kind_t *kind = count == 4 ? kind_of(words[2]) : NULL;
  const int wanted = kind == NULL ? 0 : atoi(words[3]);
  if (wanted < 1) {
    fprintf(stderr, "usage: operations PORT best_effort|reliable|sample|request|goal|parameter COUNT\n");
    return 2;
  }
  connect_node(words[1]);
  kind->init();
  const time_t end = time(NULL) + LIMIT_S;
  while (answered < wanted && time(NULL) < end) {
    if (asked == answered) {
      asked++;
      kind->send();
    }
    if (asked == answered) continue;
    (void)rclc_executor_spin_some(&executor, RCL_MS_TO_NS(100));
    kind->go_on();
  }
  printf("%d answered\n", answered);
  return answered == wanted ? EXIT_SUCCESS : EXIT_FAILURE;
}
