// SPDX-License-Identifier: Apache-2.0
// A bounded reader for the small XML documents that describe DDS entities: elements, attributes, text, comments, the
// five predefined entities. No document types, no namespaces, no processing instructions beyond the declaration.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tide::agent {

struct XmlElement {
  std::string name;
  std::vector<std::pair<std::string, std::string>> attributes;
  std::string text;  // of this element itself, without surrounding space
  std::vector<XmlElement> children;

  // The first child of this name, or null.
  const XmlElement *child(std::string_view wanted) const;
  // Follow a path of first children; null when a step is missing.
  const XmlElement *at(std::initializer_list<std::string_view> path) const;
  // Text of the element at the path, or the fallback.
  std::string text_at(std::initializer_list<std::string_view> path, std::string_view fallback = {}) const;
  std::string attribute(std::string_view wanted) const;
};

struct XmlLimits {
  size_t depth = 16;
  size_t elements = 256;
};

// The root element; nothing when the text is not well-formed or exceeds a limit.
std::optional<XmlElement> parse_xml(std::string_view text, const XmlLimits &limits = {});

}  // namespace tide::agent
