/* SPDX-License-Identifier: Apache-2.0 */
/* A board's own transports, for the kinds of links that a program names (built with TIDE_LINK_SYSTEM=1). */
#ifndef TIDE_RTOS_TRANSPORTS_H
#define TIDE_RTOS_TRANSPORTS_H

#include "tide/port.h"

/* Of the board. Null: there is none of this kind, or the address is not known. The link's task calls its functions. */
const tide_custom_transport_t *tide_rtos_transport(const tide_link_address_t *address);

#endif
