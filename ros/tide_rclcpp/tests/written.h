// SPDX-License-Identifier: Apache-2.0
// A description in a file, for as long as the test runs.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace tide_rclcpp {

class Written {
 public:
  explicit Written(const std::string &text) : path(::testing::TempDir() + "tide_system_" + std::to_string(getpid())) {
    std::ofstream(path) << text;
  }
  Written(const Written &) = delete;
  Written &operator=(const Written &) = delete;
  ~Written() { (void)unlink(path.c_str()); }
  const std::string path;
};

}  // namespace tide_rclcpp
