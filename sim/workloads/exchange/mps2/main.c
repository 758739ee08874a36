/* SPDX-License-Identifier: Apache-2.0 */
/* The soak test of a board (runtime/port/exchange) as an image for QEMU: `tide soak --image exchange.elf`. With
 * Ethernet, the agent's address and port are words 2 and 3 of the command line (sim/lwip/ethernet.h). */
#include <tide/rclc.h>

#include "tide_exchange.h"

#if BOARD_ETHERNET
#include <stdlib.h>

#include "ethernet.h"
#include "tide_lwip.h"

static rcl_ret_t choose_link(rmw_init_options_t *options) {
  return tide_lwip_options_set_agent(options, ethernet_start(2), (uint16_t)atoi(ethernet_start(3)));
}
#else
static rcl_ret_t choose_link(rmw_init_options_t *options) { return tide_rclc_options_set_serial(options, "", 115200); }
#endif

int main(void) {
  static const tide_exchange_board_t board = {.choose_link = choose_link, .priorities = {1, 2, 3}};
  return tide_exchange(&board);
}
