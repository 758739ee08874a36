// SPDX-License-Identifier: Apache-2.0
// All decoders of the wire: headers, submessages, every body, serial framing, CDR, input streams.
// runtime/tests/support/exercise.h has the conditions that are checked; a test also checks them on a limited number of
// inputs.
#include "exercise.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
  exercise_wire(bytes, count);
  return 0;
}
