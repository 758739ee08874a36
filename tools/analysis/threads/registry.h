// SPDX-License-Identifier: Apache-2.0
// One file per published analysis; each lists its entries here.
#pragma once

#include <span>

#include "analysis/threads/analysis.h"

namespace tide::analysis {

std::span<const Analysis> theorem1();
std::span<const Analysis> theorem2();
std::span<const Analysis> theorem3();
std::span<const Analysis> theorem4();
std::span<const Analysis> theorem5();
std::span<const Analysis> theorem6();

}  // namespace tide::analysis
