/* SPDX-License-Identifier: Apache-2.0 */
/* Common parts of the programs that are boards in the tests with real ROS 2: options, a connection with a node and an
 * executor, steps that must succeed, and an end by SIGTERM. A program includes this file once. If it defines sizes of
 * pools, it does so before.
 *
 *   NAME_peer (--udp PORT | --serial DEVICE [--baud N] | --rtps ADDRESS --domain N) [--key N] [--node NAME]
 *     [own options]
 *
 * Only programs that define TIDE_DEFINE_RTPS have the option --rtps. */
#pragma once

#ifdef TIDE_NODES
#define TIDE_DEFINE_POOLS
#include <tide/pools.h>
#endif

#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <rmw_microros/rmw_microros.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tide/rclc.h>
#ifdef TIDE_DEFINE_RTPS
#include <tide/rclc_rtps.h>
#endif
#include <tide/status.h>
#include <unistd.h>

enum { PEER_OPTIONS_MAXIMUM = 16 };

typedef struct peer_option {
  const char *name;
  int64_t *number;
  const char **text;
  bool *flag; /* an option sets one of these three */
} peer_option_t;

static rcl_allocator_t allocator;
static rcl_init_options_t init_options;
static rclc_support_t support;
static rcl_node_t node;
static rclc_executor_t executor;
static int64_t key; /* client key; 0: drawn for each connection */
static const char *node_name = "peer";
static volatile sig_atomic_t interrupted;

static inline void on_signal(int number) {
  (void)number;
  interrupted = 1;
}

static inline void end_by_signal(void) {
  const struct sigaction action = {.sa_handler = on_signal};
  sigaction(SIGTERM, &action, NULL);
}

static inline void require(rcl_ret_t result, const char *step) {
  if (result == RCL_RET_OK) return;
  fprintf(stderr, "%s failed: %s\n", step, tide_status_text(tide_rclc_last_status()));
  exit(1);
}

/* `own` lists the program's own options; its last element has no name. Null: there are none. */
static inline void read_options(int count, char **words, const peer_option_t *own) {
  const char *udp = NULL, *serial = NULL, *rtps = NULL;
  int64_t baud = 921600, domain = 0;
  peer_option_t known[PEER_OPTIONS_MAXIMUM + 1] = {
      {.name = "udp", .text = &udp},       {.name = "serial", .text = &serial},   {.name = "baud", .number = &baud},
      {.name = "rtps", .text = &rtps},     {.name = "domain", .number = &domain}, {.name = "key", .number = &key},
      {.name = "node", .text = &node_name}};
  struct option names[PEER_OPTIONS_MAXIMUM + 1] = {{0}};
  size_t used = 7;
  while (own != NULL && own->name != NULL && used < PEER_OPTIONS_MAXIMUM) known[used++] = *own++;
  for (size_t i = 0; i < used; i++) {
    names[i].name = known[i].name;
    names[i].has_arg = known[i].flag != NULL ? no_argument : required_argument;
  }
  int place = 0;
  for (int option; (option = getopt_long(count, words, "", names, &place)) != -1;) {
    if (option != 0) exit(2);
    if (known[place].flag != NULL) *known[place].flag = true;
    if (known[place].number != NULL) *known[place].number = strtoll(optarg, NULL, 0);
    if (known[place].text != NULL) *known[place].text = optarg;
  }
  allocator = rcl_get_default_allocator();
  require(rcl_init_options_init(&init_options, allocator), "options");
  require(rcl_init_options_set_domain_id(&init_options, (size_t)domain), "the domain");
  rmw_init_options_t *link = rcl_init_options_get_rmw_init_options(&init_options);
#ifdef TIDE_DEFINE_RTPS
  if (rtps != NULL) {
    require(tide_rclc_options_set_rtps(link, rtps), "the address");
    return;
  }
#endif
  require(serial != NULL ? tide_rclc_options_set_serial(link, serial, (uint32_t)baud)
                         : rmw_uros_options_set_udp_address("127.0.0.1", udp != NULL ? udp : "8888", link),
          "the address");
  if (key != 0) require(rmw_uros_options_set_client_key((uint32_t)key, link), "the key");
}

/* `handles` is the number of handles of the executor; 0: no executor is made. */
static inline void connect_board(int count, char **words, const peer_option_t *own, const char *namespace_,
                                 size_t handles) {
  read_options(count, words, own);
  setvbuf(stdin, NULL, _IONBF, 0); /* poll would miss buffered input */
  require(rclc_support_init_with_options(&support, 0, NULL, &init_options, &allocator), "connecting");
  require(rclc_node_init_default(&node, node_name, namespace_, &support), "the node");
  if (handles > 0) require(rclc_executor_init(&executor, &support.context, handles, &allocator), "the executor");
}

static inline void tell_ready(void) {
  puts("{\"event\": \"ready\"}");
  fflush(stdout);
}

/* Returns a line of the standard input; null if there is none yet. Ends the program at the end of the input. */
static inline char *next_order(void) {
  static char line[32];
  struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
  if (poll(&input, 1, 0) <= 0) return NULL;
  if (fgets(line, sizeof line, stdin) == NULL) exit(0);
  return line;
}
