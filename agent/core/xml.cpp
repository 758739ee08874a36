// SPDX-License-Identifier: Apache-2.0
#include "core/xml.h"

#include <array>

namespace tide::agent {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

bool is_name(char character) {
  return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
         (character >= '0' && character <= '9') || character == '_' || character == '-' || character == '.' ||
         character == ':';
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

class Parser {
 public:
  Parser(std::string_view text, const XmlLimits &limits) : rest_(text), limits_(limits) {}

  bool document(XmlElement &root) { return skip_prologue() && element(root, 1) && skip_prologue() && rest_.empty(); }

 private:
  bool accept(std::string_view token) {
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }

  void skip_space() { rest_.remove_prefix(std::min(rest_.find_first_not_of(kSpace), rest_.size())); }

  bool skip_past(std::string_view token) {
    const size_t place = rest_.find(token);
    if (place == std::string_view::npos) return false;
    rest_.remove_prefix(place + token.size());
    return true;
  }

  bool skip_prologue() {
    for (skip_space();; skip_space()) {
      if (accept("<!--")) {
        if (!skip_past("-->")) return false;
      } else if (accept("<?")) {
        if (!skip_past("?>")) return false;
      } else {
        return true;
      }
    }
  }

  bool name(std::string &result) {
    size_t length = 0;
    while (length < rest_.size() && is_name(rest_[length])) length++;
    result = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return length != 0;
  }

  bool decode(std::string_view raw, std::string &result) {
    static constexpr std::array<std::pair<std::string_view, char>, 5> kEntities = {
        {{"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}}};
    while (!raw.empty()) {
      if (raw.front() != '&') {
        result += raw.front();
        raw.remove_prefix(1);
        continue;
      }
      bool found = false;
      for (const auto &[token, character] : kEntities) {
        if (!raw.starts_with(token)) continue;
        result += character;
        raw.remove_prefix(token.size());
        found = true;
        break;
      }
      if (!found) return false;
    }
    return true;
  }

  bool attributes(XmlElement &result) {
    for (skip_space(); !rest_.empty() && is_name(rest_.front()); skip_space()) {
      std::pair<std::string, std::string> attribute;
      if (!name(attribute.first)) return false;
      skip_space();
      if (!accept("=")) return false;
      skip_space();
      if (rest_.empty() || (rest_.front() != '"' && rest_.front() != '\'')) return false;
      const char quote = rest_.front();
      rest_.remove_prefix(1);
      const size_t end = rest_.find(quote);
      if (end == std::string_view::npos || !decode(rest_.substr(0, end), attribute.second)) return false;
      rest_.remove_prefix(end + 1);
      result.attributes.push_back(std::move(attribute));
    }
    return true;
  }

  bool content(XmlElement &result, size_t depth) {
    for (;;) {
      const size_t markup = rest_.find('<');
      if (markup == std::string_view::npos || !decode(trimmed(rest_.substr(0, markup)), result.text)) return false;
      rest_.remove_prefix(markup);
      if (accept("<!--")) {
        if (!skip_past("-->")) return false;
      } else if (accept("</")) {
        std::string closing;
        if (!name(closing) || closing != result.name) return false;
        skip_space();
        return accept(">");
      } else if (!element(result.children.emplace_back(), depth + 1)) {
        return false;
      }
    }
  }

  bool element(XmlElement &result, size_t depth) {
    if (depth > limits_.depth || ++elements_ > limits_.elements) return false;
    if (!accept("<") || !name(result.name) || !attributes(result)) return false;
    if (accept("/>")) return true;
    return accept(">") && content(result, depth);
  }

  std::string_view rest_;
  XmlLimits limits_;
  size_t elements_ = 0;
};

}  // namespace

const XmlElement *XmlElement::child(std::string_view wanted) const {
  for (const XmlElement &element : children) {
    if (element.name == wanted) return &element;
  }
  return nullptr;
}

const XmlElement *XmlElement::at(std::initializer_list<std::string_view> path) const {
  const XmlElement *element = this;
  for (const std::string_view step : path) {
    element = element->child(step);
    if (element == nullptr) return nullptr;
  }
  return element;
}

std::string XmlElement::text_at(std::initializer_list<std::string_view> path, std::string_view fallback) const {
  const XmlElement *element = at(path);
  return element != nullptr ? element->text : std::string(fallback);
}

std::string XmlElement::attribute(std::string_view wanted) const {
  for (const auto &[key, value] : attributes) {
    if (key == wanted) return value;
  }
  return {};
}

std::optional<XmlElement> parse_xml(std::string_view text, const XmlLimits &limits) {
  XmlElement root;
  if (!Parser(text, limits).document(root)) return std::nullopt;
  return root;
}

}  // namespace tide::agent
