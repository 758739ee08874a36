// SPDX-License-Identifier: Apache-2.0
// As much of JSON as a system file needs: numbers are integers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tide::analysis {

struct Json;
using JsonArray = std::vector<Json>;
using JsonObject = std::map<std::string, Json>;

struct Json {
  std::variant<std::nullptr_t, bool, int64_t, std::string, JsonArray, JsonObject> value;
};

// The value, or nothing and where it went wrong ("line 3: ...").
std::optional<Json> parse_json(std::string_view text, std::string &error);

// With its quotation marks.
std::string json_string(std::string_view text);

}  // namespace tide::analysis
