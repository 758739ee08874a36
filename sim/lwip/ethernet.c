/* SPDX-License-Identifier: Apache-2.0 */
#include "ethernet.h"

#include <lwip/init.h>
#include <netif/ethernet.h>
#include <string.h>

#include "board.h"
#include "chip.h"
#include "lan9118.h"
#include "platform.h"
#include "tide/port.h"
#include "tide_lwip.h"

#define SYS_TIME 0x11u
#define SYS_GET_CMDLINE 0x15u
#define WORDS 4u
#define CPU_PART (*(const volatile uint32_t *)0xE000ED00u >> 4 & 0xFFFu)
#define CPU_CORTEX_M7 0xC27u

static struct netif ethernet;
static const tide_lwip_network_t network = {&ethernet, tide_lan9118_input};
static char line[128];
static const char *words[WORDS];

/* A random number that differs from start to start of an image: it depends on the calendar time and on the time since
 * the start. */
uint32_t ethernet_random(void) {
  static uint32_t state;
  if (state == 0) state = (uint32_t)board_semihosting(SYS_TIME, NULL) * 2654435761u;
  state = state * 1664525u + 1013904223u;
  return state ^ (uint32_t)tide_lwip_now_ns();
}

static void read_command_line(void) {
  const uint32_t arguments[2] = {(uint32_t)line, sizeof line};
  if (board_semihosting(SYS_GET_CMDLINE, arguments) != 0) return;
  unsigned count = 0;
  for (char *next = line; next != NULL && count < WORDS;) {
    words[count++] = next;
    next = strchr(next, ' ');
    if (next != NULL) *next++ = '\0';
  }
}

const char *ethernet_start(unsigned word) {
  if (network.interface->input == NULL) {
    ip4_addr_t address, mask, gateway;
    read_command_line();
    if (words[1] == NULL || !ip4addr_aton(words[1], &address)) {
      board_print("the command line has no address of the board\n");
      board_exit(79);
    }
    IP4_ADDR(&mask, 255, 255, 255, 0);
    ip4_addr_set_any(&gateway);
    lwip_init();
    tide_lwip_set_network(&network);
    void *const controller = (void *)(CPU_PART == CPU_CORTEX_M7 ? MPS2_ETHERNET_AN500 : MPS2_ETHERNET_AN386);
    if (netif_add(&ethernet, &address, &mask, &gateway, controller, tide_lan9118_init, ethernet_input) == NULL) {
      board_print("there is no Ethernet controller\n");
      board_exit(80);
    }
    netif_set_default(&ethernet);
    netif_set_up(&ethernet);
    tide_cortex_m_enable_interrupt(MPS2_IRQ_ETHERNET);
  }
  return words[word];
}
