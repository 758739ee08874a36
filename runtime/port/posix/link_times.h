/* SPDX-License-Identifier: Apache-2.0 */
/* How long links wait for what. Programs leave these times as they are; tests set them, before they open a link, so
 * that what follows does not depend on the speed of the machine, and a lost wake-up is not made good by the next poll.
 */
#ifndef TIDE_PORT_POSIX_LINK_TIMES_H
#define TIDE_PORT_POSIX_LINK_TIMES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_posix_link_times {
  int64_t poll_limit_ns; /* the session is polled at least so often, as a program may ask for what submits nothing */
  /* UDP. A flood: submitters have more messages than one in so long, for a while. */
  int64_t flood_gap_ns;
  int64_t gather_ns;   /* in a flood a message waits at most so long for others that leave with it */
  void (*pause)(void); /* null, or called by the link's thread wherever a wake-up could get lost */
} tide_posix_link_times_t;

extern tide_posix_link_times_t tide_posix_link_times;

#ifdef __cplusplus
}
#endif
#endif
