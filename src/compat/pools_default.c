/* SPDX-License-Identifier: Apache-2.0 */
/* The pools of a program that defines none: the linker takes this object from the library only then. */
#define TIDE_DEFINE_POOLS
#include "tide/pools.h"
