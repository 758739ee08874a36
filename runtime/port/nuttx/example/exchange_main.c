/* SPDX-License-Identifier: Apache-2.0 */
/* Soak-tests the board it runs on: see tide_exchange.h. The argument of the program is its serial device. */
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "tide/rclc.h"
#include "tide_exchange.h"

#define USUAL_DEVICE "/dev/ttyS1"

static const char *device = USUAL_DEVICE;
static void (*thread_entry)(void *);

static rcl_ret_t choose_link(rmw_init_options_t *options) {
  return tide_rclc_options_set_serial(options, device, 115200);
}

static void *run_thread(void *argument) {
  thread_entry(argument);
  return NULL;
}

static bool start_thread(void (*entry)(void *), void *argument) {
  pthread_t thread;
  pthread_attr_t attributes;
  thread_entry = entry;
  if (pthread_attr_init(&attributes) != 0) return false;
  (void)pthread_attr_setstacksize(&attributes, CONFIG_TIDE_EXCHANGE_STACKSIZE);
  const bool started = pthread_create(&thread, &attributes, run_thread, argument) == 0;
  (void)pthread_attr_destroy(&attributes);
  return started && pthread_detach(thread) == 0;
}

static size_t memory_used(void) { return (size_t)mallinfo().uordblks; }

int main(int argc, char *argv[]) {
  /* Below the usual priority of a program, 100. The link's threads are above all lanes. */
  static const tide_exchange_board_t board = {
      .choose_link = choose_link, .priorities = {60, 80, 90}, .start_thread = start_thread, .memory_used = memory_used};
  if (argc > 1) device = argv[1];
  /* Sessions open and close the device many times. Keeping the device open here keeps its driver set up in between. The
   * simulator's pseudo terminal then keeps its name, and a USB device its connection. */
  const int kept = open(device, O_RDWR | O_NOCTTY | O_NONBLOCK);
  const int code = tide_exchange(&board);
  if (kept >= 0) (void)close(kept);
  return code;
}
