// SPDX-License-Identifier: Apache-2.0
// Systems and faults by the seed alone.
#pragma once

#include <cstdint>

#include "sim/board/plan.h"

namespace tide::sim {

Plan draw_plan(uint64_t seed);

}  // namespace tide::sim
