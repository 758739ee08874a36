// SPDX-License-Identifier: Apache-2.0
#include "core/definition.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "core/limits.h"

namespace tide::agent {

// ---- names ----

namespace {

constexpr size_t kNameBytesMaximum = 255;  // limit of DDS
constexpr size_t kQuotedMaximum = 80;

constexpr std::array<std::string_view, 6> kPrefixes = {"rt/", "rq/", "rr/", "rs/", "rp/", "ra/"};
constexpr std::array<std::string_view, 5> kReservedNames = {"ros_discovery_info", "DCPSParticipant", "DCPSTopic",
                                                            "DCPSPublication", "DCPSSubscription"};
constexpr std::array<std::string_view, 6> kShared = {"/tf",    "/tf_static",   "/rosout",
                                                     "/clock", "/diagnostics", "/parameter_events"};

bool contains(const auto &list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}
bool is_printable(char character) { return character > ' ' && character <= '~'; }
bool is_digit(char character) { return character >= '0' && character <= '9'; }
bool is_word(char character) {
  return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') || is_digit(character) ||
         character == '_';
}

std::string printable_fault(std::string_view name, bool spaces) {
  const bool printable = std::all_of(name.begin(), name.end(), [spaces](char character) {
    return is_printable(character) || (spaces && character == ' ');
  });
  if (name.size() > kNameBytesMaximum) return "is longer than 255 characters";
  return printable ? "" : "has characters that are not printable";
}

// The fault of a name whose parts are separated by "/"; empty if there is none.
std::string words_fault(std::string_view path) {
  for (;;) {
    const size_t end = std::min(path.find('/'), path.size());
    const std::string_view word = path.substr(0, end);
    if (word.empty()) return "has an empty part";
    if (is_digit(word.front())) return "has a part that starts with a digit";
    if (!std::all_of(word.begin(), word.end(), is_word)) return "has characters that are not letters, digits, _ or /";
    if (end == path.size()) return {};
    path.remove_prefix(end + 1);
  }
}

std::string ros_name_fault(const std::string &name) {
  const std::string fault = name.starts_with('/') ? words_fault(name.substr(1)) : "does not begin with /";
  return fault.empty() ? fault : quoted(name) + " " + fault;
}

}  // namespace

std::string topic_fault(std::string_view name) {
  if (contains(kReservedNames, name)) return "is reserved";
  if (name.size() <= kNameBytesMaximum) {
    for (const std::string_view prefix : kPrefixes) {
      if (name.starts_with(prefix)) return words_fault(name.substr(prefix.size()));
    }
  }
  return type_fault(name);
}

std::string type_fault(std::string_view name) { return name.empty() ? "is empty" : printable_fault(name, false); }

std::string participant_fault(std::string_view name) { return printable_fault(name, true); }

bool is_node_name(std::string_view name) {
  if (name.starts_with('/')) name.remove_prefix(1);
  return name.size() <= kNameBytesMaximum && words_fault(name).empty();
}

std::string quoted(std::string_view text) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string result = "'";
  for (const char character : text.substr(0, kQuotedMaximum)) {
    if (character == ' ' || (is_printable(character) && character != '\'' && character != '\\')) {
      result += character;
      continue;
    }
    const auto octet = static_cast<unsigned char>(character);
    result += {'\\', 'x', kDigits[octet >> 4], kDigits[octet & 15]};
  }
  return result + (text.size() > kQuotedMaximum ? "...'" : "'");
}

std::string Renaming::topic(const std::string &name) const {
  constexpr size_t kPrefixBytes = 2;  // rt, rq and so on; the slash after it belongs to the ROS 2 name
  if (!contains(kPrefixes, name.substr(0, kPrefixBytes + 1)) || (space.empty() && remaps.empty())) return name;
  std::string_view suffix;
  if (name.starts_with("rq/") && name.ends_with("Request")) suffix = "Request";
  if (name.starts_with("rr/") && name.ends_with("Reply")) suffix = "Reply";
  const std::string whole = name.substr(kPrefixBytes, name.size() - kPrefixBytes - suffix.size());
  // An action has five topics and services below its name, such as /dock/_action/feedback.
  const std::string base = whole.substr(0, std::min(whole.find("/_action/"), whole.size()));
  std::string result = name.substr(0, kPrefixBytes);
  if (const auto remap = remaps.find(base); remap != remaps.end()) {
    result += remap->second + whole.substr(base.size());
  } else {
    result += contains(kShared, whole) ? whole : space + whole;
  }
  return result.append(suffix);
}

std::string Renaming::node(const std::string &name) const {
  if (space.empty() || name.empty()) return name;
  return space + (name.front() == '/' ? "" : "/") + name;
}

std::string Renaming::add(const std::string &remap) {
  const size_t at = remap.find(":=");
  if (at == std::string::npos) return "has no :=, as in /cmd_vel:=/robot1/cmd_vel";
  const std::string from = remap.substr(0, at), to = remap.substr(at + 2);
  for (const std::string &name : {from, to}) {
    if (std::string fault = ros_name_fault(name); !fault.empty()) return fault;
  }
  return remaps.emplace(from, to).second ? "" : quoted(from) + " is remapped twice";
}

std::string Renaming::set_space(const std::string &name) {
  std::string fault = ros_name_fault(name);
  if (fault.empty() && !space.empty()) fault = "the namespace is " + quoted(space) + " already";
  if (fault.empty()) space = name;
  return fault;
}

// ---- XML ----

namespace {

constexpr std::string_view kSpace = " \t\r\n";

bool is_name(char character) { return is_word(character) || character == '-' || character == '.' || character == ':'; }

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

  static bool decode(std::string_view raw, std::string &result) {
    static constexpr std::array<std::pair<std::string_view, char>, 5> kEntities = {
        {{"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}}};
    for (size_t used = 1; !raw.empty(); raw.remove_prefix(used)) {
      const auto entity = std::find_if(kEntities.begin(), kEntities.end(),
                                       [raw](const auto &one) { return raw.starts_with(one.first); });
      if (raw.front() == '&' && entity == kEntities.end()) return false;
      result += raw.front() == '&' ? entity->second : raw.front();
      used = raw.front() == '&' ? entity->first.size() : 1;
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

std::string XmlElement::text_at(std::initializer_list<std::string_view> path) const {
  const XmlElement *element = this;
  for (const std::string_view step : path) {
    element = element->child(step);
    if (element == nullptr) return {};
  }
  return element->text;
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

// ---- definitions ----

namespace {

constexpr uint32_t kServiceDepth = 64;

struct Kind {
  uint8_t kind;
  std::string_view tag;  // in XML
  const char *noun;      // for messages; ends with a space if a name follows
};
constexpr std::array<Kind, 8> kKinds = {{{TIDE_XRCE_KIND_PARTICIPANT, "participant", "node "},
                                         {TIDE_XRCE_KIND_TOPIC, "topic", "topic "},
                                         {TIDE_XRCE_KIND_PUBLISHER, "publisher", "publisher object"},
                                         {TIDE_XRCE_KIND_SUBSCRIBER, "subscriber", "subscriber object"},
                                         {TIDE_XRCE_KIND_DATAWRITER, "data_writer", "publisher of "},
                                         {TIDE_XRCE_KIND_DATAREADER, "data_reader", "subscription of "},
                                         {TIDE_XRCE_KIND_REQUESTER, "requester", "client of "},
                                         {TIDE_XRCE_KIND_REPLIER, "replier", "service of "}}};

// Returns an empty tag if there is no such kind.
Kind kind_of(uint8_t kind) {
  const auto known = std::find_if(kKinds.begin(), kKinds.end(), [kind](const Kind &one) { return one.kind == kind; });
  return known == kKinds.end() ? Kind{kind, {}, "CREATE"} : *known;
}

std::string_view view(tide_text_t text) {
  std::string_view result =
      text.characters == nullptr ? std::string_view{} : std::string_view(text.characters, text.length);
  return result.substr(0, result.find('\0'));
}

bool is_service(uint8_t kind) { return kind == TIDE_XRCE_KIND_REQUESTER || kind == TIDE_XRCE_KIND_REPLIER; }

// The QoS of an entity whose description has none.
Qos default_qos(uint8_t kind) {
  Qos qos;
  qos.reliable = kind != TIDE_XRCE_KIND_DATAREADER;
  qos.transient_local = kind == TIDE_XRCE_KIND_DATAWRITER;
  if (is_service(kind)) qos.depth = kServiceDepth;
  return qos;
}

void read_qos(const XmlElement &element, Qos &qos) {
  const std::string reliability = element.text_at({"qos", "reliability", "kind"});
  if (!reliability.empty()) qos.reliable = reliability.starts_with("RELIABLE");
  const std::string durability = element.text_at({"qos", "durability", "kind"});
  if (!durability.empty()) qos.transient_local = !durability.starts_with("VOLATILE");
  qos.keep_all = element.text_at({"topic", "historyQos", "kind"}).starts_with("KEEP_ALL");
  const std::string depth = element.text_at({"topic", "historyQos", "depth"});
  uint32_t number = 0;
  const auto parsed = std::from_chars(depth.data(), depth.data() + depth.size(), number);
  if (parsed.ec == std::errc() && number != 0) qos.depth = number;
}

Service service_of(const std::string &name, const std::string &request_type, const std::string &reply_type,
                   const std::string &request_topic, const std::string &reply_topic) {
  return {{request_topic.empty() ? name + "_Request" : request_topic, request_type},
          {reply_topic.empty() ? name + "_Reply" : reply_topic, reply_type}};
}

void define_from_element(const XmlElement &element, Definition &definition) {
  switch (definition.kind) {
    case TIDE_XRCE_KIND_PARTICIPANT: definition.name = element.text_at({"rtps", "name"}); break;
    case TIDE_XRCE_KIND_TOPIC: definition.topic = {element.text_at({"name"}), element.text_at({"dataType"})}; break;
    case TIDE_XRCE_KIND_DATAWRITER:
    case TIDE_XRCE_KIND_DATAREADER:
      definition.topic = {element.text_at({"topic", "name"}), element.text_at({"topic", "dataType"})};
      read_qos(element, definition.qos);
      break;
    case TIDE_XRCE_KIND_REQUESTER:
    case TIDE_XRCE_KIND_REPLIER:
      definition.service = service_of(element.attribute("service_name"), element.attribute("request_type"),
                                      element.attribute("reply_type"), element.text_at({"request_topic_name"}),
                                      element.text_at({"reply_topic_name"}));
      break;
    default: break;
  }
}

uint8_t define_by_reference(std::string_view name, const Profiles &profiles, Definition &definition) {
  const XmlElement *element = profiles.find(kind_of(definition.kind).tag, name);
  if (element == nullptr) return TIDE_XRCE_STATUS_ERR_UNKNOWN_REFERENCE;
  define_from_element(*element, definition);
  return TIDE_XRCE_STATUS_OK;
}

bool may_be_empty(uint8_t kind) {
  return kind == TIDE_XRCE_KIND_PARTICIPANT || kind == TIDE_XRCE_KIND_PUBLISHER || kind == TIDE_XRCE_KIND_SUBSCRIBER;
}

uint8_t define_by_xml(std::string_view xml, const Profiles &profiles, Definition &definition) {
  if (xml.empty()) return may_be_empty(definition.kind) ? TIDE_XRCE_STATUS_OK : TIDE_XRCE_STATUS_ERR_DDS;
  if (xml.find('<') == std::string_view::npos) {  // some clients announce XML but send a reference to a profile
    return define_by_reference(xml, profiles, definition) == TIDE_XRCE_STATUS_OK ? TIDE_XRCE_STATUS_OK
                                                                                 : TIDE_XRCE_STATUS_ERR_DDS;
  }
  const std::optional<XmlElement> root = parse_xml(xml);
  if (!root) return TIDE_XRCE_STATUS_ERR_DDS;
  const XmlElement *element = root->name == "dds" ? root->child(kind_of(definition.kind).tag) : nullptr;
  if (element == nullptr) return may_be_empty(definition.kind) ? TIDE_XRCE_STATUS_OK : TIDE_XRCE_STATUS_ERR_DDS;
  define_from_element(*element, definition);
  return TIDE_XRCE_STATUS_OK;
}

void define_by_binary(const tide_xrce_object_t &object, Definition &definition) {
  const auto text = [](bool is_there, tide_text_t value) { return std::string(is_there ? view(value) : ""); };
  definition.topic_object = object.topic;
  if (object.kind == TIDE_XRCE_KIND_PARTICIPANT) definition.name = text(object.has_name, object.name);
  if (object.kind == TIDE_XRCE_KIND_TOPIC) definition.topic = {text(true, object.name), text(true, object.type)};
  if (is_service(object.kind)) {
    definition.service = service_of(text(true, object.name), text(true, object.request_type),
                                    text(true, object.reply_type), text(object.has_request_topic, object.request_topic),
                                    text(object.has_reply_topic, object.reply_topic));
  } else if (object.has_qos) {
    constexpr uint8_t kLasting = TIDE_XRCE_QOS_TRANSIENT_LOCAL | TIDE_XRCE_QOS_TRANSIENT | TIDE_XRCE_QOS_PERSISTENT;
    Qos &qos = definition.qos;
    qos.reliable = (object.qos_flags & TIDE_XRCE_QOS_RELIABLE) != 0;
    qos.transient_local = (object.qos_flags & kLasting) != 0;
    qos.keep_all = (object.qos_flags & TIDE_XRCE_QOS_KEEP_LAST) == 0;
    if (object.has_depth && object.depth != 0) qos.depth = object.depth;
    if (object.has_deadline) qos.deadline_ms = object.deadline_ms;
    if (object.has_lifespan) qos.lifespan_ms = object.lifespan_ms;
  }
}

std::string fault_of(const char *what, std::string_view name, const std::string &fault) {
  return fault.empty() ? fault : std::string(what) + " " + quoted(name) + " " + fault;
}

// may_lack_type: true for a writer or reader, which can take its type from the topic object with the same name.
std::string fault_of(const Topic &topic, bool may_lack_type = false) {
  std::string fault = fault_of("topic", topic.name, topic_fault(topic.name));
  if (!fault.empty() || (may_lack_type && topic.type.empty())) return fault;
  return fault_of("type", topic.type, type_fault(topic.type));
}

// Describes the fault in the entity's names or domain; empty if there is none.
std::string fault_of(const Definition &definition) {
  switch (definition.kind) {
    case TIDE_XRCE_KIND_PARTICIPANT:
      if (participants_maximum(definition.domain) == 0)
        return "there is no domain " + std::to_string(definition.domain);
      return fault_of("participant", definition.name, participant_fault(definition.name));
    case TIDE_XRCE_KIND_TOPIC: return fault_of(definition.topic);
    case TIDE_XRCE_KIND_DATAWRITER:
    case TIDE_XRCE_KIND_DATAREADER:
      return definition.topic_object != 0 ? std::string{} : fault_of(definition.topic, true);
    case TIDE_XRCE_KIND_REQUESTER:
    case TIDE_XRCE_KIND_REPLIER: {
      const std::string fault = fault_of(definition.service.request);
      return fault.empty() ? fault_of(definition.service.reply) : fault;
    }
    default: return {};
  }
}

}  // namespace

bool Profiles::add(std::string_view xml) {
  std::optional<XmlElement> root = parse_xml(xml, {.depth = 32, .elements = 16384});
  if (!root) return false;
  XmlElement *parent = &*root;
  if (root->name == "dds") {
    const auto place = std::find_if(root->children.begin(), root->children.end(),
                                    [](const XmlElement &element) { return element.name == "profiles"; });
    if (place != root->children.end()) parent = &*place;
  }
  for (XmlElement &element : parent->children) {
    const std::string name = element.attribute("profile_name");
    if (!name.empty()) elements_.insert_or_assign({element.name, name}, std::move(element));
  }
  return true;
}

const XmlElement *Profiles::find(std::string_view tag, std::string_view name) const {
  const auto place = elements_.find({std::string(tag), std::string(name)});
  return place == elements_.end() ? nullptr : &place->second;
}

std::string described(const Definition &definition) {
  std::string noun = kind_of(definition.kind).noun;
  if (definition.kind == TIDE_XRCE_KIND_PARTICIPANT) return noun + quoted(definition.name);
  if (!noun.ends_with(' ')) return noun;
  const Topic &topic = is_service(definition.kind) ? definition.service.request : definition.topic;
  return noun + quoted(topic.name) + (topic.type.empty() ? "" : ", type " + quoted(topic.type));
}

uint8_t define(const tide_xrce_create_t &create, const Profiles &profiles, Definition &definition, std::string &fault) {
  fault.clear();
  const tide_xrce_object_t &object = create.object;
  if (kind_of(object.kind).tag.empty() || TIDE_XRCE_OBJECT_KIND(create.request.object) != object.kind) {
    return TIDE_XRCE_STATUS_ERR_INVALID_DATA;
  }
  definition = Definition{};
  definition.kind = object.kind;
  definition.parent = object.parent;
  definition.domain = object.domain == kDomainOfAgent ? 0 : object.domain;
  definition.qos = default_qos(object.kind);
  uint8_t status = TIDE_XRCE_STATUS_ERR_INVALID_DATA;
  switch (object.representation) {
    case TIDE_XRCE_BY_REFERENCE: status = define_by_reference(view(object.text), profiles, definition); break;
    case TIDE_XRCE_BY_XML: status = define_by_xml(view(object.text), profiles, definition); break;
    case TIDE_XRCE_BY_BINARY:
      define_by_binary(object, definition);
      status = TIDE_XRCE_STATUS_OK;
      break;
    default: break;
  }
  if (status != TIDE_XRCE_STATUS_OK) return status;
  definition.qos.depth = std::min(definition.qos.depth, kDepthMaximum);
  fault = fault_of(definition);
  if (fault.empty()) return TIDE_XRCE_STATUS_OK;
  return object.representation == TIDE_XRCE_BY_XML ? TIDE_XRCE_STATUS_ERR_DDS : TIDE_XRCE_STATUS_ERR_INVALID_DATA;
}

}  // namespace tide::agent
