/* SPDX-License-Identifier: Apache-2.0 */
/* Priorities of callbacks, chains and frames. Larger is more urgent, everywhere.
 *
 * A priority has two parts: the level, which belongs to a chain and travels on the wire as the number of the stream,
 * and the position within the chain, which is not transmitted. Comparing two priorities as numbers gives the
 * chain-aware order: every callback of a more urgent chain is above every callback of a less urgent one, and within a
 * chain later callbacks are more urgent.
 *
 * A program that sets no priority has level 0, whose streams are those of a stock client.
 */
#ifndef TIDE_PRIORITY_H
#define TIDE_PRIORITY_H

#include <stdint.h>

#include "tide/options.h"

typedef uint16_t tide_priority_t;

#define TIDE_LEVEL_MAXIMUM 126u
#define TIDE_PRIORITY(level, position) ((tide_priority_t)(((unsigned)(level) << 8) | ((unsigned)(position)&0xFFu)))
#define TIDE_PRIORITY_LEVEL(priority) ((uint8_t)((priority) >> 8))
#define TIDE_PRIORITY_NONE (-1) /* value of an int32_t that holds no priority */

/* The XRCE stream that carries a level: 0x01 + level (best effort), 0x80 + level (reliable). Level 0 gives the two
 * streams that the stock client uses; an agent that knows nothing of levels treats them as independent streams.
 *
 * Requests of the session have a stream of their own, which is as urgent as level 0. tide's agent answers on the stream
 * of the request, so its answers do not wait behind samples that no reader takes. A stock agent answers on 0x80. */
#define TIDE_STREAM_BEST_EFFORT(level) ((uint8_t)(0x01u + (level)))
#define TIDE_STREAM_RELIABLE(level) ((uint8_t)(0x80u + (level)))
#define TIDE_STREAM_REQUESTS 0xFFu /* reliable */
#define TIDE_STREAM_IS_RELIABLE(stream) (TIDE_RELIABLE_STREAMS && (stream) >= 0x80u)
#define TIDE_STREAM_LEVEL(stream)                                                \
  ((uint8_t)((stream) == 0u || (stream) == TIDE_STREAM_REQUESTS ? 0u             \
             : (stream) >= 0x80u                                ? (stream)-0x80u \
                                                                : (stream)-0x01u))

#endif
