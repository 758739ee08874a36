/* SPDX-License-Identifier: Apache-2.0 */
/* UDP over lwIP's raw interface, for a board whose chip has an Ethernet MAC: to an agent, or RTPS to ROS 2 without one
 * (tide_rclc_options_set_rtps of tide/rclc_rtps.h). lwIP is the user's or the system's package; its lwipopts.h has
 * NO_SYS=1. docs/porting.md says how to build it.
 *
 * All calls of lwIP come from the context that runs a custom transport: the link's task on a kernel with tasks, else
 * the caller that waits. So lwIP needs neither a task nor locks of its own, and the program calls it only before it
 * opens the session. The interface's timers and replies to ARP also stop while no session is open.
 *
 * The program brings up the interface as lwIP says: lwip_init, netif_add, netif_set_default, netif_set_up. Then:
 *
 *   static const tide_lwip_network_t network = {&ethernet, tide_lan9118_input};
 *   tide_lwip_set_network(&network);
 *   tide_lwip_options_set_agent(rmw_options, "192.168.1.2", 8888);  or
 *   tide_rclc_options_set_rtps(rmw_options, "192.168.1.20");
 *
 * Memory: the pools of lwipopts.h; 70 bytes for an agent, 1.2 kB for RTPS. Each is linked only if it is chosen. */
#ifndef TIDE_LWIP_H
#define TIDE_LWIP_H

#include <lwip/netif.h>
#include <rmw/init_options.h>
#include <rmw/ret_types.h>
#include <stdint.h>

TIDE_EXTERN_C_BEGIN

/* Largest number of the agent's datagrams that are kept until the session reads them. Further ones are dropped;
 * reliable streams send their messages again. */
#ifndef TIDE_LWIP_DATAGRAMS
#define TIDE_LWIP_DATAGRAMS 8
#endif

typedef struct tide_lwip_network {
  struct netif *interface;
  /* Passes received frames to interface->input, and returns; ethernetif_input of STM32Cube has this form. */
  void (*input)(struct netif *interface);
} tide_lwip_network_t;

/* Call it before the session is opened. The structure stays in use. */
void tide_lwip_set_network(const tide_lwip_network_t *network);
/* The MAC's interrupt calls it when frames have arrived; any other context may call it, too. Without this call a frame
 * is noticed a slice later (tide/link_custom.h), or when lwIP's next timer is due. */
void tide_lwip_wake(void);

/* The agent's address must be IPv4 (else RMW_RET_INVALID_ARGUMENT). Only one session at a time may use it. */
rmw_ret_t tide_lwip_options_set_agent(rmw_init_options_t *options, const char *address, uint16_t port);
/* Datagrams of the agent that were dropped: no room, or longer than TIDE_MTU_BYTES. */
uint32_t tide_lwip_dropped(void);

/* ---- for the transports of this folder ---- */

extern const tide_lwip_network_t *tide_lwip_network; /* null: not set */
/* Receives frames and runs timers that are due. */
void tide_lwip_poll(void);
/* Sleeps until tide_lwip_wake, that time or lwIP's next timer. */
void tide_lwip_wait(int64_t deadline_ns);
int64_t tide_lwip_now_ns(void);

TIDE_EXTERN_C_END
#endif
