/* SPDX-License-Identifier: Apache-2.0 */
/* Timing of links. Programs leave these values unchanged. Tests set them before they open a link, so that results do
 * not depend on the speed of the machine, and the next poll does not hide a lost wake-up.
 */
#pragma once

#include <stdint.h>

#include "tide/base/extern_c.h"

TIDE_EXTERN_C_BEGIN

typedef struct tide_posix_link_times {
  int64_t poll_limit_ns; /* longest interval between polls of the session, for requests that submit no message */
  /* UDP: there is a flood while submitters, for some time, send more than one message in each flood_gap_ns. */
  int64_t flood_gap_ns;
  int64_t gather_ns;    /* in a flood a message waits at most this long for others to be sent with it */
  int64_t attention_ns; /* how long the thread does not listen after its program waited or published */
  void (*pause)(void);  /* null, or a function that the link's thread calls wherever a wake-up could get lost */
} tide_posix_link_times_t;

extern tide_posix_link_times_t tide_posix_link_times;

TIDE_EXTERN_C_END
