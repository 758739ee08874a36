/* SPDX-License-Identifier: Apache-2.0 */
/* The Ethernet controllers LAN9118 and LAN9220 on a 32-bit bus, as an interface of lwIP. QEMU's MPS2 boards have one.
 * Frames are copied through the controller's FIFOs, without DMA, which takes the context that runs lwIP about 2
 * instructions a byte. With LWIP_IGMP the MAC passes all multicast frames, and lwIP chooses.
 *
 *   netif_add(&ethernet, &address, &mask, &gateway, (void *)0x40200000, tide_lan9118_init, ethernet_input);
 *
 * The hardware address is that of the controller's EEPROM. */
#ifndef TIDE_LAN9118_H
#define TIDE_LAN9118_H

#include <lwip/netif.h>

#include "tide/base/extern_c.h"

TIDE_EXTERN_C_BEGIN

/* ERR_IF: there is no such controller at the address in interface->state, or it does not become ready. */
err_t tide_lan9118_init(struct netif *interface);
/* Passes the received frames to lwIP, and reports to it when the cable is plugged in or out. */
void tide_lan9118_input(struct netif *interface);
/* Handler of the controller's interrupt, to be placed in the vector table. A program can have only one controller. */
void tide_lan9118_interrupt(void);

TIDE_EXTERN_C_END
#endif
