// SPDX-License-Identifier: Apache-2.0
// The names of NuttX on the fake kernel: queries for tests.
#pragma once

#include <nuttx/sched.h>

#include "fake_kernel.h"

struct FakeNuttx {
  unsigned long frequency = 1'000'000'000;
  bool is_full = false;  // no further note driver can be registered
};
extern FakeNuttx nuttx;
tcb_s &tcb_of(FakeKernel::Task &task);
