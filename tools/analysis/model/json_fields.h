// SPDX-License-Identifier: Apache-2.0
// Reading objects member by member, and writing them: what the files of the analysis have in common.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/model/json.h"
#include "analysis/model/time.h"

namespace tide::analysis {

// Takes the members of one object; what nobody took is an error.
class Fields {
 public:
  Fields(Json json, std::string where, std::vector<std::string> &errors) : where_(std::move(where)), errors_(errors) {
    if (auto *object = std::get_if<JsonObject>(&json.value)) {
      left_ = std::move(*object);
    } else {
      error("must be an object");
    }
    if (const auto name = left_.find("name"); name != left_.end()) {
      if (const auto *text = std::get_if<std::string>(&name->second.value)) where_ = kind() + " '" + *text + "'";
    }
  }

  Fields(const Fields &) = delete;
  Fields &operator=(const Fields &) = delete;

  ~Fields() {
    for (const auto &[name, value] : left_) error("'" + name + "' is unknown");
  }

  const std::string &where() const { return where_; }
  void error(const std::string &what) { errors_.push_back(where_ + ": " + what); }

  template <class Type>
  void get(const char *name, Type &target, const char *expected) {
    const auto found = left_.find(name);
    if (found == left_.end()) return;
    if (auto *value = std::get_if<Type>(&found->second.value)) {
      target = std::move(*value);
    } else {
      error("'" + std::string(name) + "' must be " + expected);
    }
    left_.erase(found);
  }

  void text(const char *name, std::string &target) { get(name, target, "a string"); }
  void integer(const char *name, int64_t &target) { get(name, target, "an integer"); }
  // Absent or null: none.
  void integer(const char *name, std::optional<int64_t> &target) {
    if (const auto found = left_.find(name);
        found != left_.end() && std::holds_alternative<std::nullptr_t>(found->second.value)) {
      left_.erase(found);
    } else if (found != left_.end()) {
      get(name, target.emplace(), "an integer or null");
    }
  }
  void flag(const char *name, bool &target) { get(name, target, "true or false"); }
  JsonArray list(const char *name) {
    JsonArray array;
    get(name, array, "a list");
    return array;
  }
  bool has(const char *name) const { return left_.contains(name); }

 private:
  std::string kind() const { return where_.substr(0, where_.find(" number")); }

  JsonObject left_;
  std::string where_;
  std::vector<std::string> &errors_;
};

inline std::string number(std::optional<time_ns> value) { return value ? std::to_string(*value) : "null"; }
inline std::string flag(bool value) { return value ? "true" : "false"; }
inline std::string field(std::string_view name, const std::string &value) { return json_string(name) + ": " + value; }

inline std::string join(const std::vector<std::string> &parts, const char *open, const char *close) {
  std::string text = open;
  for (size_t index = 0; index < parts.size(); ++index) text += (index > 0 ? ", " : "") + parts[index];
  return text + close;
}

inline std::string lines(const std::vector<std::string> &parts) {
  std::string text = "[";
  for (size_t index = 0; index < parts.size(); ++index) text += (index > 0 ? ",\n    " : "\n    ") + parts[index];
  return text + (parts.empty() ? "]" : "\n  ]");
}

}  // namespace tide::analysis
