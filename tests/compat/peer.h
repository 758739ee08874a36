/* SPDX-License-Identifier: Apache-2.0 */
/* What boards of the tests against real ROS 2 share: steps that have to succeed, an end by SIGTERM, and the options of
 * the link. Included once by a program that has defined PEER, its name, and its pools. */
#ifndef TIDE_TESTS_COMPAT_PEER_H
#define TIDE_TESTS_COMPAT_PEER_H

#include <getopt.h>
#include <rclc/rclc.h>
#include <rmw_microros/rmw_microros.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <tide/rclc.h>
#include <tide/status.h>

#define PEER_BAUD 921600
#define PEER_LINK_OPTIONS                                                            \
  {"udp", required_argument, NULL, 'u'}, {"serial", required_argument, NULL, 's'}, { \
    "key", required_argument, NULL, 'k'                                              \
  }

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
  fprintf(stderr, PEER ": %s failed: %s\n", step, tide_status_text(tide_rclc_last_status()));
  exit(1);
}

/* An option that getopt has read and the program does not know itself. */
static inline void read_link_option(int option, rmw_init_options_t *link) {
  switch (option) {
    case 'u':
      require(rmw_uros_options_set_udp_address("127.0.0.1", optarg, link), "the address");
      break;
    case 's':
      require(tide_rclc_options_set_serial(link, optarg, PEER_BAUD), "the device");
      break;
    case 'k':
      require(rmw_uros_options_set_client_key((uint32_t)strtoul(optarg, NULL, 0), link), "the key");
      break;
    default:
      exit(2);
  }
}

/* Of a program with no other options. */
static inline void read_link_options(int count, char **words, rmw_init_options_t *link) {
  static const struct option known[] = {PEER_LINK_OPTIONS, {NULL, 0, NULL, 0}};
  for (int option; (option = getopt_long(count, words, "", known, NULL)) != -1;) read_link_option(option, link);
}

#endif
