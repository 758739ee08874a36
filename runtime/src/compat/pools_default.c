/* SPDX-License-Identifier: Apache-2.0 */
/* The pools of a program that defines none: the linker takes this object from the library only then. */
#include "tide/options.h"
#if TIDE_SERVICE_OBJECTS
#define TIDE_SERVICES 2
#define TIDE_CLIENTS 2
#endif
#define TIDE_DEFINE_POOLS
#include "tide/pools.h"
