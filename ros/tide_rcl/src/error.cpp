// SPDX-License-Identifier: Apache-2.0
#include "tide_rcl/error.h"

#include <stdexcept>
#include <string>

#include "rcl/error_handling.h"

namespace tide_rcl {

void check(rcl_ret_t result, const char *call) {
  if (result == RCL_RET_OK) return;
  const std::string reason = rcl_error_is_set() ? rcl_get_error_string().str : "no reason given";
  rcl_reset_error();
  throw std::runtime_error(std::string(call) + ": " + reason + " (" + std::to_string(result) + ")");
}

}  // namespace tide_rcl
