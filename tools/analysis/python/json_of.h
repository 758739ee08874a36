// SPDX-License-Identifier: Apache-2.0
// Python's dictionaries, lists and numbers as the JSON that the analysis reads.
#pragma once

#include <nanobind/nanobind.h>

#include "analysis/model/json.h"

namespace tide::analysis {

// Throws std::invalid_argument with the place of what JSON of the analysis cannot be: "chains[2].period_ns: ...".
Json json_of(nanobind::handle value);

}  // namespace tide::analysis
