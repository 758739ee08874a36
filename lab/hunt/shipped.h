// SPDX-License-Identifier: Apache-2.0
// The shipped executor in virtual time as an observer: each lane is a task with a core of its own, releases are
// notifications at their times.
#pragma once

#include "hunt/hunt.h"

namespace tide::analysis {

// By the policy of the executor: tide (most important callback first on every lane), or readyset (the default one).
Observer shipped_observer();

}  // namespace tide::analysis
