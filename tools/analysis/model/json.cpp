// SPDX-License-Identifier: Apache-2.0
#include "analysis/model/json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

namespace tide::analysis {
namespace {

constexpr int kDeepest = 32;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::optional<Json> run(std::string &error) {
    Json value;
    if (parse(value, 0)) {
      skip_blank();
      if (place_ != text_.size()) fail("something follows the value");
    }
    if (error_.empty()) return value;
    const auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<ptrdiff_t>(place_), '\n');
    error = "line " + std::to_string(line) + ": " + error_;
    return std::nullopt;
  }

 private:
  bool fail(const char *what) {
    if (error_.empty()) error_ = what;
    return false;
  }

  void skip_blank() {
    while (place_ < text_.size() && std::string_view(" \t\r\n").find(text_[place_]) != std::string_view::npos) ++place_;
  }

  bool take(char wanted) {
    skip_blank();
    if (place_ >= text_.size() || text_[place_] != wanted) return false;
    ++place_;
    return true;
  }

  bool word(std::string_view wanted) {
    if (text_.substr(place_, wanted.size()) != wanted) return false;
    place_ += wanted.size();
    return true;
  }

  bool parse(Json &value, int depth) {
    skip_blank();
    if (depth > kDeepest) return fail("nested too deeply");
    if (place_ >= text_.size()) return fail("the text ends early");
    if (take('{')) return object(value, depth);
    if (take('[')) return array(value, depth);
    if (text_[place_] == '"') {
      std::string text;
      if (!string(text)) return false;
      value.value = std::move(text);
      return true;
    }
    if (word("true")) return value.value = true, true;
    if (word("false")) return value.value = false, true;
    if (word("null")) return value.value = nullptr, true;
    return number(value);
  }

  bool object(Json &value, int depth) {
    JsonObject object;
    if (!take('}')) {
      do {
        std::string name;
        skip_blank();
        if (!string(name)) return false;
        if (!take(':')) return fail("a ':' is missing");
        Json member;
        if (!parse(member, depth + 1)) return false;
        if (!object.emplace(std::move(name), std::move(member)).second) return fail("a name occurs twice");
      } while (take(','));
      if (!take('}')) return fail("a ',' or '}' is missing");
    }
    value.value = std::move(object);
    return true;
  }

  bool array(Json &value, int depth) {
    JsonArray array;
    if (!take(']')) {
      do {
        if (!parse(array.emplace_back(), depth + 1)) return false;
      } while (take(','));
      if (!take(']')) return fail("a ',' or ']' is missing");
    }
    value.value = std::move(array);
    return true;
  }

  bool number(Json &value) {
    int64_t result = 0;
    const char *begin = text_.data() + place_;
    const auto [end, problem] = std::from_chars(begin, text_.data() + text_.size(), result);
    if (problem == std::errc::result_out_of_range) return fail("the number is too large");
    if (problem != std::errc{}) return fail("a value is missing");
    place_ += static_cast<size_t>(end - begin);
    if (place_ < text_.size() && std::string_view(".eE").find(text_[place_]) != std::string_view::npos) {
      return fail("numbers must be integers");
    }
    value.value = result;
    return true;
  }

  bool string(std::string &text) {
    if (place_ >= text_.size() || text_[place_] != '"') return fail("a string is missing");
    for (++place_; place_ < text_.size(); ++place_) {
      const char letter = text_[place_];
      if (letter == '"') return ++place_, true;
      if (static_cast<unsigned char>(letter) < 0x20) return fail("a control character in a string");
      if (letter != '\\') {
        text += letter;
      } else if (!escape(text)) {
        return false;
      }
    }
    return fail("a string does not end");
  }

  bool escape(std::string &text) {
    static constexpr std::string_view kCodes = "\"\\/bfnrt";
    static constexpr std::string_view kLetters = "\"\\/\b\f\n\r\t";
    if (++place_ >= text_.size()) return fail("a string does not end");
    const size_t code = kCodes.find(text_[place_]);
    if (code != std::string_view::npos) return text += kLetters[code], true;
    unsigned point = 0;
    const char *digits = text_.data() + place_ + 1;
    if (text_[place_] != 'u' || text_.size() - place_ < 5 ||
        std::from_chars(digits, digits + 4, point, 16).ptr != digits + 4 || (point >= 0xD800 && point < 0xE000)) {
      return fail("an unknown escape in a string");
    }
    place_ += 4;
    if (point < 0x80) {
      text += static_cast<char>(point);
    } else if (point < 0x800) {
      text += static_cast<char>(0xC0 | (point >> 6));
      text += static_cast<char>(0x80 | (point & 0x3F));
    } else {
      text += static_cast<char>(0xE0 | (point >> 12));
      text += static_cast<char>(0x80 | ((point >> 6) & 0x3F));
      text += static_cast<char>(0x80 | (point & 0x3F));
    }
    return true;
  }

  std::string_view text_;
  size_t place_ = 0;
  std::string error_;
};

}  // namespace

std::optional<Json> parse_json(std::string_view text, std::string &error) { return Parser(text).run(error); }

std::string json_string(std::string_view text) {
  std::string quoted = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') {
      quoted += '\\';
      quoted += letter;
    } else if (static_cast<unsigned char>(letter) < 0x20) {
      std::array<char, 8> code{};
      std::snprintf(code.data(), code.size(), "\\u%04x", static_cast<unsigned>(letter));
      quoted += code.data();
    } else {
      quoted += letter;
    }
  }
  return quoted + '"';
}

}  // namespace tide::analysis
