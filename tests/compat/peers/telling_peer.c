/* SPDX-License-Identifier: Apache-2.0 */
/* A board that publishes its trace and /diagnostics over its own link, for tests with real ROS 2.
 *
 *   telling_peer (--udp PORT | --serial DEVICE (921,600 baud)) --key N [--records N] [--budget] [--unsynchronised]
 *     [--chain MS [--ask]]
 *
 * A timer of level 3 publishes a number on "count" every 20 ms. A subscription of level 5 takes messages from "echo"
 * and publishes them on "again". It has two lanes: one for levels from 4 on, and one for the others. With --chain the
 * timer has this period, its number comes back on "echo", and all of this is a declared chain of level 3, "loop"; there
 * is then no trace. With --ask the chain's timer calls the service "hold" instead of publishing, and the callback that
 * takes the reply publishes "again". On SIGTERM it prints the counters as a line of JSON and ends. */
#include <std_msgs/msg/int32.h>
#include <std_srvs/srv/set_bool.h>
#include <tide/rclc_diagnostics.h>
#include <tide/rclc_service.h>
#include <tide/rclc_trace.h>

#define TIDE_NODES 1
#define TIDE_PUBLISHERS 4
#define TIDE_SUBSCRIPTIONS 1
#define TIDE_CLIENTS 1
#define TIDE_TIMERS 3
#define TIDE_GUARD_CONDITIONS 0
#define TIDE_EXECUTORS 1
#define TIDE_EXECUTOR_LANES 2
#define TIDE_HANDLES 5
#define TIDE_CONNECT_TIMEOUT_MS 20000 /* enough for lossy lines and busy machines */
#include "peer.h"

enum { LANES = 2, RINGS = 1 + LANES, MOST_RECORDS = 1024, PERIOD_MS = 20 };

static struct {
  rcl_timer_t timer;
  rcl_publisher_t count, again;
  rcl_subscription_t echo;
  std_msgs__msg__Int32 taken;
  rcl_client_t hold;
  std_srvs__srv__SetBool_Response reply;
  uint32_t published, echoed;
  int64_t records, chain_ms;
  bool budget, unsynchronised, ask;
} board = {.records = 256};

static tide_trace_ring_t rings[RINGS];
static tide_trace_record_t records[RINGS * MOST_RECORDS];

static void on_timer(rcl_timer_t *timer, int64_t since_last_call_ns) {
  (void)timer, (void)since_last_call_ns;
  if (interrupted) tide_executor_stop(tide_rclc_executor_core(&executor));
  if (board.ask) {
    const std_srvs__srv__SetBool_Request request = {.data = true};
    int64_t sequence_number = 0;
    (void)rcl_send_request(&board.hold, &request, &sequence_number);
    return;
  }
  const std_msgs__msg__Int32 number = {.data = (int32_t)board.published++};
  (void)rcl_publish(&board.count, &number, NULL);
}

static void on_echo(const void *message) {
  board.echoed++;
  (void)rcl_publish(&board.again, message, NULL);
}

static void on_reply(const void *reply) {
  (void)reply;
  const std_msgs__msg__Int32 number = {.data = (int32_t)board.published++};
  (void)rcl_publish(&board.again, &number, NULL);
}

static void make_chains(void) {
  const rosidl_message_type_support_t *type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, Int32);
  require(rclc_publisher_init_default(&board.count, &node, type, "count"), "count");
  require(rclc_publisher_init_default(&board.again, &node, type, "again"), "again");
  require(rclc_subscription_init_default(&board.echo, &node, type, "echo"), "echo");
  const rosidl_service_type_support_t *set = ROSIDL_GET_SRV_TYPE_SUPPORT(std_srvs, srv, SetBool);
  if (board.ask) require(rclc_client_init_default(&board.hold, &node, set, "hold"), "hold");
  const int64_t period_ms = board.chain_ms > 0 ? board.chain_ms : PERIOD_MS;
  require(rclc_timer_init_default(&board.timer, &support, (uint64_t)RCL_MS_TO_NS(period_ms), on_timer), "the timer");
  if (board.chain_ms > 0) return;
  require(tide_rclc_publisher_set_priority(&board.count, TIDE_PRIORITY(3, 1)), "a priority");
  require(tide_rclc_publisher_set_priority(&board.again, TIDE_PRIORITY(5, 1)), "a priority");
  require(tide_rclc_subscription_set_priority(&board.echo, TIDE_PRIORITY(5, 0)), "a priority");
  require(tide_rclc_timer_set_priority(&board.timer, TIDE_PRIORITY(3, 0)), "a priority");
}

static void make_executor(void) {
  tide_lane_settings_t lanes[LANES] = {{.name = "slow", .may_run_normally = true},
                                       {.name = "fast", .least_level = 4, .may_run_normally = true}};
  if (board.budget) {
    lanes[1].scheduling = TIDE_SCHEDULING_SPORADIC;
    lanes[1].priority = 20;
    lanes[1].low_priority = 5;
    lanes[1].runtime_ns = RCL_MS_TO_NS(2);
    lanes[1].period_ns = RCL_MS_TO_NS(10);
  }
  require(tide_rclc_executor_set_lanes(&executor, lanes, LANES), "the lanes");
  require(rclc_executor_add_timer(&executor, &board.timer), "adding");
  require(rclc_executor_add_subscription(&executor, &board.echo, &board.taken, on_echo, ON_NEW_DATA), "adding");
  if (board.ask) require(rclc_executor_add_client(&executor, &board.hold, &board.reply, on_reply), "adding");
}

static void declare_chain(void) {
  static tide_chain_t loop;
  const int64_t period_ns = RCL_MS_TO_NS(board.chain_ms);
  require(tide_chain_init(&loop, "loop", 3, period_ns, period_ns) == TIDE_OK ? RCL_RET_OK : RCL_RET_ERROR, "the chain");
  require(tide_rclc_chain_add_timer(&loop, &board.timer), "its timer");
  if (!board.ask) require(tide_rclc_chain_add_publisher(&loop, &board.count), "its publisher");
  require(tide_chain_add_remote(&loop) < 0 ? RCL_RET_ERROR : RCL_RET_OK, "its node");
  if (board.ask) require(tide_rclc_chain_add_client(&loop, &board.hold), "its client");
  if (!board.ask) require(tide_rclc_chain_add_subscription(&loop, &board.echo), "its subscription");
  require(tide_rclc_chain_add_publisher(&loop, &board.again), "its end");
  require(tide_rclc_diagnostics_init(&node, &support, &executor, 500), "/diagnostics");
  require(tide_rclc_diagnostics_add_chain(&loop), "its report");
}

static void tell(void) {
  const tide_trace_settings_t settings = {.rings = rings,
                                          .ring_count = RINGS,
                                          .records = records,
                                          .records_a_ring = (uint32_t)board.records,
                                          .place = 7,
                                          .period_ms = 50,
                                          .most_messages = 4,
                                          .chains_only = true};
  require(tide_rclc_trace_init(&node, &support, &executor, &settings), "the trace");
  require(tide_rclc_diagnostics_init(&node, &support, &executor, 500), "/diagnostics");
}

static void print_end(void) {
  const tide_trace_counters_t trace = tide_rclc_trace_get_counters();
  const tide_diagnostics_counters_t told = tide_rclc_diagnostics_get_counters();
  uint32_t dropped = 0;
  for (size_t ring = 0; ring < RINGS; ring++) dropped += rings[ring].dropped;
  printf("{\"event\": \"end\", \"published\": %" PRIu32 ", \"echoed\": %" PRIu32 ", \"messages\": %" PRIu32
         ", \"lost\": %" PRIu32 ", \"held\": %" PRIu32 ", \"dropped\": %" PRIu32 ", \"told\": %" PRIu32
         ", \"left_out\": %" PRIu32 "}\n",
         board.published, board.echoed, trace.messages, trace.lost, trace.held, dropped, told.published, told.left_out);
  fflush(stdout);
}

int main(int count, char **words) {
  const peer_option_t own[] = {{.name = "records", .number = &board.records},
                               {.name = "chain", .number = &board.chain_ms},
                               {.name = "ask", .flag = &board.ask},
                               {.name = "budget", .flag = &board.budget},
                               {.name = "unsynchronised", .flag = &board.unsynchronised},
                               {0}};
  connect_board(count, words, own, "some/space", 4);
  if (!board.unsynchronised) require((rcl_ret_t)rmw_uros_sync_session(5000), "synchronising");
  make_chains();
  make_executor();
  if (board.chain_ms > 0) {
    declare_chain();
  } else {
    tell();
  }
  end_by_signal();
  tell_ready();
  require(rclc_executor_spin(&executor), "spinning");
  print_end();
  require(tide_rclc_diagnostics_fini(&node), "the end of /diagnostics");
  if (board.chain_ms == 0) require(tide_rclc_trace_fini(&node), "the end of the trace");
  return 0;
}
