/* SPDX-License-Identifier: Apache-2.0 */
#ifndef UXR__CLIENT__CONFIG_H_
#define UXR__CLIENT__CONFIG_H_

#include "tide/options.h"

/* Available links, for #ifdef in programs. */
#if !TIDE_LEAN
#define UCLIENT_PROFILE_CUSTOM_TRANSPORT
#endif
#if TIDE_SOCKETS
#define UCLIENT_PROFILE_DISCOVERY
#define UCLIENT_PROFILE_UDP
#endif

#endif
