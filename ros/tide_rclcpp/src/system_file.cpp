// SPDX-License-Identifier: Apache-2.0
#include "system_file.h"

#include <cstdlib>
#include <fstream>
#include <stdexcept>

namespace tide_rclcpp {

namespace {

std::string trimmed(const std::string &text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// Text up to `end` that is in no quotes; `begin` moves behind it. Quotes stay.
std::string until(const std::string &text, const std::string &ends, std::size_t &begin) {
  char quote = 0;
  const std::size_t first = begin;
  for (; begin < text.size(); begin++) {
    const char here = text[begin];
    if (quote != 0) {
      if (here == '\\' && quote == '"') begin++;
      if (here == quote) quote = 0;
    } else if (here == '"' || here == '\'') {
      quote = here;
    } else if (ends.find(here) != std::string::npos) {
      return text.substr(first, begin++ - first);
    }
  }
  begin = text.size();
  return text.substr(first);
}

std::string unquoted(const std::string &value) {
  const bool quoted =
      value.size() > 1 && (value.front() == '"' || value.front() == '\'') && value.back() == value.front();
  return quoted ? value.substr(1, value.size() - 2) : value;
}

class Reader {
 public:
  explicit Reader(const std::string &path) : path_(path), file_(path) {
    if (!file_) throw std::runtime_error(path + ": cannot be read");
  }

  std::vector<Table> read() {
    tables_.push_back({"", {}});
    for (std::string line; std::getline(file_, line);) {
      number_++;
      std::size_t begin = 0;
      const std::string text = trimmed(until(line, "#", begin));
      if (!text.empty()) take(text);
    }
    return std::move(tables_);
  }

 private:
  [[noreturn]] void refuse(const std::string &what) const {
    throw std::runtime_error(path_ + ", line " + std::to_string(number_) + ": " + what);
  }

  void take(const std::string &text) {
    if (text.front() == '[') {
      const std::size_t brackets = text.size() > 1 && text[1] == '[' ? 2 : 1;
      if (text.size() < 2 * brackets || text[text.size() - brackets] != ']') refuse("a table's name without its end");
      tables_.push_back({trimmed(text.substr(brackets, text.size() - 2 * brackets)), {}});
    } else {
      take_value("", text);
    }
  }

  void take_value(const std::string &prefix, const std::string &text) {
    std::size_t begin = 0;
    const std::string key = trimmed(until(text, "=", begin));
    const std::string value = trimmed(text.substr(begin));
    if (key.empty() || value.empty()) refuse("'" + text + "' is neither a table nor a key with its value");
    if (value.front() != '{') {
      tables_.back().values[prefix + unquoted(key)] = unquoted(value);
      return;
    }
    if (value.back() != '}') refuse("an inline table without its end");
    const std::string inside = value.substr(1, value.size() - 2);
    for (std::size_t next = 0; next < inside.size();) {
      const std::string part = trimmed(until(inside, ",", next));
      if (!part.empty()) take_value(prefix + unquoted(key) + ".", part);
    }
  }

  std::string path_;
  std::ifstream file_;
  int number_ = 0;
  std::vector<Table> tables_;
};

}  // namespace

std::string Table::get(const std::string &key, const std::string &otherwise) const {
  const auto found = values.find(key);
  return found == values.end() ? otherwise : found->second;
}

double Table::number(const std::string &key) const { return std::strtod(get(key, "0").c_str(), nullptr); }

std::vector<Table> read_tables(const std::string &path) { return Reader(path).read(); }

}  // namespace tide_rclcpp
