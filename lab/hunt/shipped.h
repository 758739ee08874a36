// SPDX-License-Identifier: Apache-2.0
// The shipped executor in virtual time as an observer: each lane is a task on its own core, and releases are
// notifications at given times.
#pragma once

#include "hunt/hunt.h"

namespace tide::analysis {

// Policy of the executor: tide (most important callback first on every lane), or readyset (the default policy).
Observer shipped_observer();

}  // namespace tide::analysis
