/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RMW_MICROXRCEDDS_C__CONFIG_H_
#define RMW_MICROXRCEDDS_C__CONFIG_H_

#include "tide/options.h"

/* Available links, for #ifdef in programs. The sizes of the pools are in tide/pools.h. */
#if !TIDE_LEAN
#define RMW_UXRCE_TRANSPORT_CUSTOM
#endif
#if TIDE_SOCKETS
#define RMW_UXRCE_TRANSPORT_UDP
#endif

#endif
