/* SPDX-License-Identifier: Apache-2.0 */
/* The trigger conditions that rclc knows. */
#include "tide/executor.h"

bool tide_trigger_any(tide_callback_t *const *callbacks, size_t count, void *object) {
  (void)object;
  for (size_t index = 0; index < count; index++) {
    if (tide_callback_is_ready(callbacks[index])) {
      return true;
    }
  }
  return false;
}

bool tide_trigger_all(tide_callback_t *const *callbacks, size_t count, void *object) {
  (void)object;
  for (size_t index = 0; index < count; index++) {
    if (!tide_callback_is_ready(callbacks[index])) {
      return false;
    }
  }
  return count > 0u;
}

bool tide_trigger_one(tide_callback_t *const *callbacks, size_t count, void *object) {
  for (size_t index = 0; index < count; index++) {
    if (callbacks[index]->handle == object && tide_callback_is_ready(callbacks[index])) {
      return true;
    }
  }
  return false;
}

bool tide_trigger_always(tide_callback_t *const *callbacks, size_t count, void *object) {
  (void)callbacks;
  (void)count;
  (void)object;
  return true;
}
