/* SPDX-License-Identifier: Apache-2.0 */
/* A board with a lifecycle node, for tests against real ROS 2: lifecycle_peer --udp PORT|--serial DEVICE (921,600
 * baud)|--rtps ADDRESS --domain N. Its callback refuses the first "activate". The callbacks print lines of JSON. */
#include <rclc_lifecycle/rclc_lifecycle.h>
#include <tide/rclc_lifecycle.h>

#define TIDE_NODES 1
#define TIDE_PUBLISHERS 0
#define TIDE_SUBSCRIPTIONS 0
#define TIDE_TIMERS 0
#define TIDE_GUARD_CONDITIONS 0
#define TIDE_LIFECYCLE_NODES 1
#define TIDE_RTPS_WRITERS 6
#define TIDE_RTPS_READERS 5
#define TIDE_RTPS_SAMPLE_BYTES 2048
#define TIDE_DEFINE_RTPS

#include "peer.h"

static int say(const char *name) {
  printf("{\"called\": \"%s\"}\n", name);
  fflush(stdout);
  return RCL_RET_OK;
}

static int on_configure(void) { return say("configure"); }
static int on_deactivate(void) { return say("deactivate"); }
static int on_cleanup(void) { return say("cleanup"); }
static int on_activate(void) {
  static int asked;
  say("activate");
  return asked++ == 0 ? RCL_RET_ERROR : RCL_RET_OK;
}

int main(int count, char **words) {
  connect_board(count, words, NULL, "robot", 5);
  rcl_lifecycle_state_machine_t machine = rcl_lifecycle_get_zero_initialized_state_machine();
  rclc_lifecycle_node_t lifecycle;
  require(rclc_make_node_a_lifecycle_node(&lifecycle, &node, &machine, &allocator, true), "the lifecycle");
  require(rclc_lifecycle_register_on_configure(&lifecycle, on_configure), "configure");
  require(rclc_lifecycle_register_on_activate(&lifecycle, on_activate), "activate");
  require(rclc_lifecycle_register_on_deactivate(&lifecycle, on_deactivate), "deactivate");
  require(rclc_lifecycle_register_on_cleanup(&lifecycle, on_cleanup), "cleanup");
  rclc_lifecycle_service_context_t context = {&lifecycle};
  require(rclc_lifecycle_init_get_state_server(&context, &executor), "get_state");
  require(rclc_lifecycle_init_get_available_states_server(&context, &executor), "get_available_states");
  require(rclc_lifecycle_init_change_state_server(&context, &executor), "change_state");
  require(tide_rclc_lifecycle_init_get_available_transitions_server(&context, &executor), "transitions");
  require(tide_rclc_lifecycle_init_get_transition_graph_server(&context, &executor), "the graph");
  tell_ready();
  require(rclc_executor_spin(&executor), "spinning");
  return 0;
}
