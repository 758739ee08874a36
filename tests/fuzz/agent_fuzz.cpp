// SPDX-License-Identifier: Apache-2.0
// The agent's core with the real DDS. The input chooses a sequence of well-formed operations of several clients, some
// of which fail half-way, beside two regular clients (agent/tests/sequences.h). Fast DDS itself is not instrumented for
// coverage.
#include "dds/fast_dds.h"
#include "sequences.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);
extern "C" const char *__asan_default_options();

// Fast DDS as built by Debian deletes its readers with a size that differs from the allocated one.
extern "C" const char *__asan_default_options() { return "new_delete_type_mismatch=0"; }

namespace {

constexpr int kDomain = 93;
constexpr uint32_t kOperations = 48;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
  using namespace tide::agent;
  // Never deleted, because threads of DDS run until the process ends.
  static Middleware *const real = make_fast_dds({}).release();
  test::Sequences sequences(*real, kDomain);
  test::Choices choices(Bytes(bytes, count));
  sequences.run(choices, kOperations);
  sequences.clear(choices);
  return 0;
}
