/* SPDX-License-Identifier: Apache-2.0 */
/* The program for testing a board (runtime/port/exchange), as an image for QEMU: `tide soak --image exchange.elf`. */
#include <tide/rclc.h>

#include "tide_exchange.h"

static rcl_ret_t choose_link(rmw_init_options_t *options) { return tide_rclc_options_set_serial(options, "", 115200); }

int main(void) {
  static const tide_exchange_board_t board = {.choose_link = choose_link, .priorities = {1, 2, 3}};
  return tide_exchange(&board);
}
