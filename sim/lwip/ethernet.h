/* SPDX-License-Identifier: Apache-2.0 */
/* The Ethernet controller of the MPS2 boards as lwIP's interface, with addresses from QEMU's command line:
 * -semihosting-config enable=on,target=native,arg=fw,arg=OWN[,arg=AGENT,arg=PORT]. */
#pragma once

#include <stdint.h>

/* The first call starts lwIP and the controller. Returns the word of the command line with this number, from 1; null if
 * there is none. */
const char *ethernet_start(unsigned word);
