/* SPDX-License-Identifier: Apache-2.0 */
/* Chains: the chain-aware assignment of priorities. */
#include "tide/executor.h"
#include "tide/invariant.h"
#include "tide/status.h"

#define POSITIONS 256
_Static_assert(TIDE_PRIORITY(TIDE_LEVEL_MAXIMUM, POSITIONS - 1) <= UINT16_MAX, "a priority holds level and position");

int tide_chain_init(tide_chain_t *chain, const char *name, uint8_t level, int64_t period_ns, int64_t deadline_ns) {
  if (chain == NULL || level < 1u || level > TIDE_LEVEL_MAXIMUM || period_ns < 0 || deadline_ns < 0) {
    return TIDE_ERROR_ARGUMENT;
  }
  *chain = (tide_chain_t){.name = name, .level = level, .period_ns = period_ns, .deadline_ns = deadline_ns};
  return TIDE_OK;
}

static int next_position(const tide_chain_t *chain) { return chain->length + chain->remote_before; }

static bool is_full(const tide_chain_t *chain) { return next_position(chain) >= POSITIONS; }

int tide_chain_add(tide_chain_t *chain, tide_callback_t *callback) {
  if (chain == NULL || callback == NULL || chain->level == 0u) {
    return TIDE_ERROR_ARGUMENT;
  }
  if (is_full(chain)) {
    return TIDE_ERROR_FULL;
  }
  const int position = next_position(chain);
  const tide_priority_t priority = TIDE_PRIORITY(chain->level, position);
  TIDE_INVARIANT(position >= 0 && position < POSITIONS && TIDE_PRIORITY_LEVEL(priority) == chain->level);
  chain->length++;
  if (priority <= callback->priority) {
    return position;
  }
  if (callback->executor == NULL) {
    callback->priority = priority;
  } else {
    (void)tide_executor_set_priority(callback->executor, callback, priority);
  }
  return position;
}

int tide_chain_add_remote(tide_chain_t *chain) {
  if (chain == NULL || chain->level == 0u) {
    return TIDE_ERROR_ARGUMENT;
  }
  if (is_full(chain)) {
    return TIDE_ERROR_FULL;
  }
  const int position = next_position(chain);
  chain->remote_before++;
  return position;
}
