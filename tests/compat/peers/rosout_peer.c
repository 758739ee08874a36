/* SPDX-License-Identifier: Apache-2.0 */
/* A board that logs to /rosout, for tests with real ROS 2.
 *
 *   rosout_peer (--udp PORT | --serial DEVICE (921,600 baud)) --key N
 *
 * Every 20 ms it logs "line N": each fourth line as WARN of the logger "wheel", the others as INFO of the node's
 * logger. On SIGTERM it prints the counters as a line of JSON, and ends when everything is acknowledged. */
#include <rclc/sleep.h>
#include <rcutils/logging_macros.h>
#include <tide/rclc_rosout.h>

#define TIDE_NODES 1
#define TIDE_PUBLISHERS 1
#define TIDE_SUBSCRIPTIONS 0
#define TIDE_TIMERS 0
#define TIDE_GUARD_CONDITIONS 0
#define TIDE_SMALL_NODES 60
#include "peer.h"

#define END_ATTEMPTS 500

static void log_lines(void) {
  for (int number = 0; !interrupted; number++) {
    if (number % 4 == 0) {
      RCUTILS_LOG_WARN_NAMED("wheel", "line %d", number);
    } else {
      RCUTILS_LOG_INFO("line %d", number);
    }
    rclc_sleep_ms(20);
  }
}

static void print_end(void) {
  tide_session_t *session = tide_rclc_support_session(&support);
  for (int attempt = 0; attempt < END_ATTEMPTS && !tide_session_is_idle(session, 0); attempt++) rclc_sleep_ms(20);
  const tide_rosout_counters_t counters = tide_rclc_rosout_get_counters();
  printf("{\"event\": \"end\", \"published\": %" PRIu32 ", \"lost\": %" PRIu32 ", \"reconnects\": %" PRIu32 "}\n",
         counters.published, counters.lost, session->counters.reconnects);
  fflush(stdout);
}

int main(int count, char **words) {
  connect_board(count, words, NULL, "some/space", 0);
  end_by_signal();
  require((rcl_ret_t)rmw_uros_sync_session(5000), "synchronising");
  require(tide_rclc_rosout_init(&node, RCUTILS_LOG_SEVERITY_UNSET), "/rosout");
  tell_ready();
  log_lines();
  print_end();
  require(tide_rclc_rosout_fini(&node), "the end of /rosout");
  return 0;
}
