/* SPDX-License-Identifier: Apache-2.0 */
/* The pools of a program that defines none: the linker takes this object from the library only for such a program. */
#include "tide/options.h"
#if TIDE_DESKTOP
#define TIDE_SERVICES 8
#define TIDE_CLIENTS 8
#elif !TIDE_LEAN
#define TIDE_SERVICES 2
#define TIDE_CLIENTS 2
#endif
#if TIDE_DESKTOP && TIDE_RELIABLE_STREAMS
#define TIDE_ACTION_SERVERS 4
#define TIDE_ACTION_CLIENTS 4
#define TIDE_ACTION_GOALS 128
#define TIDE_ACTION_RESULTS 32
#define TIDE_ACTION_RESULT_BYTES 65500
#define TIDE_PARAMETER_SERVERS 4
#define TIDE_PARAMETERS 250
#define TIDE_LIFECYCLE_NODES 4
#define TIDE_GRAPH_BYTES 65536
#endif
#if TIDE_DESKTOP /* on a desktop, unused memory costs nothing */
#define TIDE_GUARD_CONDITIONS 8
#define TIDE_EXECUTORS 8
#define TIDE_HANDLES 128
#define TIDE_LARGE_NODES 8
#define TIDE_LARGE_NODE_BYTES 65544 /* the largest message that the protocol allows */
#define TIDE_REASSEMBLY_BYTES 65544
#endif
/* On systems that link the whole library (Zephyr) the object is always present, and the program's own definition
 * overrides it. */
#define TIDE_POOLS_LINKAGE __attribute__((weak))
#define TIDE_DEFINE_POOLS
#include "tide/pools.h"
