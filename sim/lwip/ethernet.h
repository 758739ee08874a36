/* SPDX-License-Identifier: Apache-2.0 */
/* The Ethernet controller of the MPS2 boards as lwIP's interface, with addresses of QEMU's command line:
 * -semihosting-config enable=on,target=native,arg=fw,arg=OWN[,arg=AGENT,arg=PORT]. */
#ifndef TIDE_SIM_ETHERNET_H
#define TIDE_SIM_ETHERNET_H

#include <stdint.h>

/* Starts lwIP and the controller, once. Returns a word of the command line, from 1; null: there is none. */
const char *ethernet_start(unsigned word);

#endif
