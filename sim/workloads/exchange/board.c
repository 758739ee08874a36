/* SPDX-License-Identifier: Apache-2.0 */
/* The soak test of a board (runtime/port/exchange), built for this machine:
 *
 *   board_exchange (--udp PORT | --serial DEVICE) [--one-lane]
 */
#define _DEFAULT_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <rmw_microros/rmw_microros.h>
#include <stdio.h>
#include <string.h>
#include <tide/rclc.h>

#include "tide_exchange.h"

static const char *kind, *place;
static void (*thread_entry)(void *);

static rcl_ret_t choose_link(rmw_init_options_t *options) {
  if (strcmp(kind, "--udp") == 0) return rmw_uros_options_set_udp_address("127.0.0.1", place, options);
  return tide_rclc_options_set_serial(options, place, 115200);
}

static void *run_thread(void *argument) {
  thread_entry(argument);
  return NULL;
}

static bool start_thread(void (*entry)(void *), void *argument) {
  pthread_t thread;
  thread_entry = entry;
  return pthread_create(&thread, NULL, run_thread, argument) == 0 && pthread_detach(thread) == 0;
}

static size_t memory_used(void) { return mallinfo2().uordblks; }

int main(int argc, char **argv) {
  static tide_exchange_board_t board = {
      .choose_link = choose_link, .priorities = {1, 2, 3}, .start_thread = start_thread, .memory_used = memory_used};
  if (argc < 3 || argc > 4) {
    fputs("usage: board_exchange (--udp PORT | --serial DEVICE) [--one-lane]\n", stderr);
    return 2;
  }
  kind = argv[1];
  place = argv[2];
  if (argc == 4) memset(board.priorities, 0, sizeof board.priorities);
  return tide_exchange(&board);
}
