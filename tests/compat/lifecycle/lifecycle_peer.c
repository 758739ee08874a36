/* SPDX-License-Identifier: Apache-2.0 */
/* A board with a lifecycle node, for tests against real ROS 2: lifecycle_peer --udp PORT|--serial DEVICE (921,600
 * baud). The first "activate" is refused. Its callbacks print lines of JSON. */
#include <rclc_lifecycle/rclc_lifecycle.h>
#include <rmw_microros/rmw_microros.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tide/rclc.h>
#include <tide/rclc_lifecycle.h>
#include <tide/status.h>

#define TIDE_NODES 1
#define TIDE_PUBLISHERS 0
#define TIDE_SUBSCRIPTIONS 0
#define TIDE_TIMERS 0
#define TIDE_GUARD_CONDITIONS 0
#define TIDE_LIFECYCLE_NODES 1
#define TIDE_DEFINE_POOLS
#include <tide/pools.h>

static void require(rcl_ret_t result, const char *step) {
  if (result == RCL_RET_OK) return;
  fprintf(stderr, "lifecycle_peer: %s failed: %s\n", step, tide_status_text(tide_rclc_last_status()));
  exit(1);
}

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
  const bool serial = count == 3 && strcmp(words[1], "--serial") == 0;
  if (count != 3 || (!serial && strcmp(words[1], "--udp") != 0)) {
    fprintf(stderr, "usage: lifecycle_peer --udp PORT|--serial DEVICE\n");
    return 2;
  }
  rcl_allocator_t allocator = rcl_get_default_allocator();
  rcl_init_options_t options = rcl_get_zero_initialized_init_options();
  require(rcl_init_options_init(&options, allocator), "options");
  rmw_init_options_t *link = rcl_init_options_get_rmw_init_options(&options);
  require(serial ? tide_rclc_options_set_serial(link, words[2], 921600)
                 : rmw_uros_options_set_udp_address("127.0.0.1", words[2], link),
          "the address");
  rclc_support_t support;
  rcl_node_t node = rcl_get_zero_initialized_node();
  rclc_executor_t executor = rclc_executor_get_zero_initialized_executor();
  require(rclc_support_init_with_options(&support, 0, NULL, &options, &allocator), "connecting");
  require(rclc_node_init_default(&node, "peer", "robot", &support), "the node");
  rcl_lifecycle_state_machine_t machine = rcl_lifecycle_get_zero_initialized_state_machine();
  rclc_lifecycle_node_t lifecycle;
  require(rclc_make_node_a_lifecycle_node(&lifecycle, &node, &machine, &allocator, true), "the lifecycle");
  require(rclc_lifecycle_register_on_configure(&lifecycle, on_configure), "configure");
  require(rclc_lifecycle_register_on_activate(&lifecycle, on_activate), "activate");
  require(rclc_lifecycle_register_on_deactivate(&lifecycle, on_deactivate), "deactivate");
  require(rclc_lifecycle_register_on_cleanup(&lifecycle, on_cleanup), "cleanup");
  require(rclc_executor_init(&executor, &support.context, 5, &allocator), "the executor");
  rclc_lifecycle_service_context_t context = {&lifecycle};
  require(rclc_lifecycle_init_get_state_server(&context, &executor), "get_state");
  require(rclc_lifecycle_init_get_available_states_server(&context, &executor), "get_available_states");
  require(rclc_lifecycle_init_change_state_server(&context, &executor), "change_state");
  require(tide_rclc_lifecycle_init_get_available_transitions_server(&context, &executor), "transitions");
  require(tide_rclc_lifecycle_init_get_transition_graph_server(&context, &executor), "the graph");
  printf("{\"event\": \"ready\"}\n");
  fflush(stdout);
  require(rclc_executor_spin(&executor), "spinning");
  return 0;
}
