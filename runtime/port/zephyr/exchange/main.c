/* SPDX-License-Identifier: Apache-2.0 */
/* Soak-tests the board it runs on: see tide_exchange.h. */
#include <tide_exchange.h>
#include <zephyr/kernel.h>
#ifndef CONFIG_TIDE_LINK_UART_ASYNC
#include <microros_transports.h>
#endif
#include <rmw_microros/rmw_microros.h>

static K_THREAD_STACK_DEFINE(stack, 4096);
static struct k_thread thread;
static void (*thread_entry)(void *);

static rcl_ret_t choose_link(rmw_init_options_t *options) {
  (void)options;
#ifdef CONFIG_TIDE_LINK_UART_ASYNC
  return RCL_RET_OK;
#else
  return rmw_uros_set_custom_transport(MICRO_ROS_FRAMING_REQUIRED, &default_params, zephyr_transport_open,
                                       zephyr_transport_close, zephyr_transport_write, zephyr_transport_read);
#endif
}

static void run_thread(void *argument, void *first, void *second) {
  (void)first;
  (void)second;
  thread_entry(argument);
}

static bool start_thread(void (*entry)(void *), void *argument) {
  thread_entry = entry;
  (void)k_thread_create(&thread, stack, K_THREAD_STACK_SIZEOF(stack), run_thread, argument, NULL, NULL,
                        k_thread_priority_get(k_current_get()), 0, K_NO_WAIT);
  return true;
}

int main(void) {
  static const tide_exchange_board_t board = {
      .choose_link = choose_link, .priorities = {1, 2, 3}, .start_thread = start_thread};
  return tide_exchange(&board);
}
