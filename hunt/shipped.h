// SPDX-License-Identifier: Apache-2.0
// The shipped executor in virtual time as an observer: each lane is a task with a core of its own, releases are
// notifications at their times.
#pragma once

#include "hunt/hunt.h"

namespace tide::analysis {

// Most important callback first on every lane: what the priority-driven analyses are about, and one of the orders that
// those for any order must allow.
Observer shipped_observer();

}  // namespace tide::analysis
