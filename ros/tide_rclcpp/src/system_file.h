// SPDX-License-Identifier: Apache-2.0
// As much of TOML as a system.toml uses: tables, arrays of tables, inline tables on one line, texts, numbers, truth
// values, and lists, which may take several lines.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tide_rclcpp {

// A table of the file, in the order of the file: its path, as chains.callbacks, and its keys; those of an inline table
// have its name and a dot in front. Texts without their quotes; a list as it is written, on one line.
struct Table {
  std::string path;
  std::map<std::string, std::string> values;

  std::string get(const std::string &key, const std::string &otherwise = "") const;
  double number(const std::string &key) const;                   // 0 when it is not there
  std::vector<std::string> texts(const std::string &key) const;  // of a list
};

// std::runtime_error: the file cannot be read, or a line is none of these; the message names file and line.
std::vector<Table> read_tables(const std::string &path);

}  // namespace tide_rclcpp
