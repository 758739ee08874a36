// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rcl/types.h"

namespace tide_rcl {

// std::runtime_error with what rcl said, when it is not RCL_RET_OK.
void check(rcl_ret_t result, const char *call);

}  // namespace tide_rcl
