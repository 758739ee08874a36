// SPDX-License-Identifier: Apache-2.0
// All decoders of the wire: headers, submessages, every body, serial framing, CDR, input streams. What must hold is in
// tests/c/exercise.hpp, which a test also runs on a bounded number of inputs.
#include "exercise.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
  exercise_wire(bytes, count);
  return 0;
}
