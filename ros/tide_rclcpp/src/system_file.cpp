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

// What an inner table or list begins (1) or ends (-1) with.
int step_of(char here) { return here == '{' || here == '[' ? 1 : here == '}' || here == ']' ? -1 : 0; }

// What stands between commas, but for those of inner tables and lists.
std::vector<std::string> parts_of(const std::string &text) {
  std::vector<std::string> parts;
  int depth = 0;
  for (std::size_t first = 0, next = 0; next < text.size();) {
    (void)until(text, ",{}[]", next);
    const char end = text[next - 1];
    depth += step_of(end);
    const bool comma = end == ',' && depth == 0;
    if (next < text.size() && !comma) continue;
    const std::string part = trimmed(text.substr(first, next - first - (comma ? 1 : 0)));
    if (!part.empty()) parts.push_back(part);
    first = next;
  }
  return parts;
}

bool is_open(const std::string &text) {
  int depth = 0;
  for (std::size_t next = 0; next < text.size();) {
    (void)until(text, "{}[]", next);
    depth += step_of(text[next - 1]);
  }
  return depth > 0;
}

class Reader {
 public:
  explicit Reader(const std::string &path) : path_(path), file_(path) {
    if (!file_) throw std::runtime_error(path + ": cannot be read");
  }

  std::vector<Table> read() {
    begin_table("");
    for (std::string text; next_line(text);) {
      if (text.empty()) continue;
      if (begins_list(text)) finish_list(text);
      take(text);
    }
    return std::move(tables_);
  }

 private:
  [[noreturn]] void refuse(const std::string &what) const {
    throw std::runtime_error(path_ + ", line " + std::to_string(number_) + ": " + what);
  }

  bool next_line(std::string &text) {
    std::string line;
    if (!std::getline(file_, line)) return false;
    number_++;
    std::size_t begin = 0;
    text = trimmed(until(line, "#", begin));
    return true;
  }

  static bool begins_list(const std::string &text) {
    std::size_t begin = 0;
    (void)until(text, "=", begin);
    const std::string value = begin < text.size() ? trimmed(text.substr(begin)) : "";
    return text.front() != '[' && !value.empty() && value.front() == '[';
  }

  // It may go on for several lines.
  void finish_list(std::string &text) {
    const int first = number_;
    for (std::string more; is_open(text); text += " " + more) {
      if (next_line(more)) continue;
      number_ = first;
      refuse("a list without its end");
    }
  }

  void take(const std::string &text) {
    if (text.front() == '[') {
      const std::size_t brackets = text.size() > 1 && text[1] == '[' ? 2 : 1;
      if (text.size() < 2 * brackets || text[text.size() - brackets] != ']') refuse("a table's name without its end");
      begin_table(trimmed(text.substr(brackets, text.size() - 2 * brackets)));
    } else {
      take_value("", text);
    }
  }

  void take_value(const std::string &prefix, const std::string &text) {
    std::size_t begin = 0;
    const std::string key = trimmed(until(text, "=", begin));
    const std::string value = trimmed(text.substr(begin));
    if (key.empty() || value.empty()) refuse("'" + text + "' is neither a table nor a key with its value");
    if (value.front() == '{') {
      take_inside(prefix + unquoted(key) + ".", value);
    } else if (const std::string inner = first_of_list(value); !inner.empty() && inner.front() == '{') {
      take_tables(unquoted(key), value);
    } else {
      tables_[current_].values[prefix + unquoted(key)] = unquoted(value);
    }
  }

  static std::string first_of_list(const std::string &value) {
    return value.front() == '[' && value.size() > 2 ? trimmed(value.substr(1, value.size() - 2)) : "";
  }

  void take_inside(const std::string &prefix, const std::string &table) {
    if (table.back() != '}') refuse("an inline table without its end");
    for (const std::string &part : parts_of(table.substr(1, table.size() - 2))) take_value(prefix, part);
  }

  // As if each had a head of its own; what follows is the outer table's again.
  void take_tables(const std::string &key, const std::string &list) {
    const std::size_t outer = current_;
    for (const std::string &item : parts_of(list.substr(1, list.size() - 2))) {
      begin_table(tables_[outer].path + "." + key);
      take_inside("", item);
    }
    current_ = outer;
  }

  void begin_table(const std::string &path) {
    current_ = tables_.size();
    tables_.push_back({path, {}});
  }

  std::string path_;
  std::ifstream file_;
  int number_ = 0;
  std::size_t current_ = 0;
  std::vector<Table> tables_;
};

}  // namespace

std::string Table::get(const std::string &key, const std::string &otherwise) const {
  const auto found = values.find(key);
  return found == values.end() ? otherwise : found->second;
}

std::vector<std::string> Table::texts(const std::string &key) const {
  const std::string list = get(key);
  if (list.size() < 2) return {};
  std::vector<std::string> found = parts_of(list.substr(1, list.size() - 2));
  for (std::string &text : found) text = unquoted(text);
  return found;
}

double Table::number(const std::string &key) const { return std::strtod(get(key, "0").c_str(), nullptr); }

std::vector<Table> read_tables(const std::string &path) { return Reader(path).read(); }

}  // namespace tide_rclcpp
