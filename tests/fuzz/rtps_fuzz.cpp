// SPDX-License-Identifier: Apache-2.0
// An RTPS participant gets messages that claim to come from a participant with which it is matched
// (runtime/tests/support/rtps_exercise.h).
#include "rtps_exercise.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
  exercise_participant(bytes, count);
  return 0;
}
