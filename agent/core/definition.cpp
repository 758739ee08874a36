// SPDX-License-Identifier: Apache-2.0
#include "core/definition.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "core/domains.h"
#include "core/names.h"

namespace tide::agent {
namespace {

constexpr uint32_t kServiceDepth = 64;

std::string_view tag_of(uint8_t kind) {
  switch (kind) {
    case TIDE_XRCE_KIND_PARTICIPANT:
      return "participant";
    case TIDE_XRCE_KIND_TOPIC:
      return "topic";
    case TIDE_XRCE_KIND_PUBLISHER:
      return "publisher";
    case TIDE_XRCE_KIND_SUBSCRIBER:
      return "subscriber";
    case TIDE_XRCE_KIND_DATAWRITER:
      return "data_writer";
    case TIDE_XRCE_KIND_DATAREADER:
      return "data_reader";
    case TIDE_XRCE_KIND_REQUESTER:
      return "requester";
    case TIDE_XRCE_KIND_REPLIER:
      return "replier";
    default:
      return {};
  }
}

std::string_view view(tide_text_t text) {
  std::string_view result =
      text.characters == nullptr ? std::string_view{} : std::string_view(text.characters, text.length);
  return result.substr(0, result.find('\0'));
}

bool is_service(uint8_t kind) { return kind == TIDE_XRCE_KIND_REQUESTER || kind == TIDE_XRCE_KIND_REPLIER; }

// What a writer or reader has when nothing is said about it.
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

Service service_of(std::string_view name, std::string_view request_type, std::string_view reply_type,
                   std::string_view request_topic, std::string_view reply_topic) {
  Service service;
  service.request = {request_topic.empty() ? std::string(name) + "_Request" : std::string(request_topic),
                     std::string(request_type)};
  service.reply = {reply_topic.empty() ? std::string(name) + "_Reply" : std::string(reply_topic),
                   std::string(reply_type)};
  return service;
}

void define_from_element(const XmlElement &element, Definition &definition) {
  switch (definition.kind) {
    case TIDE_XRCE_KIND_PARTICIPANT:
      definition.name = element.text_at({"rtps", "name"});
      break;
    case TIDE_XRCE_KIND_TOPIC:
      definition.topic = {element.text_at({"name"}), element.text_at({"dataType"})};
      break;
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
    default:
      break;
  }
}

uint8_t define_by_reference(std::string_view name, const Profiles &profiles, Definition &definition) {
  const XmlElement *element = profiles.find(tag_of(definition.kind), name);
  if (element == nullptr) return TIDE_XRCE_STATUS_ERR_UNKNOWN_REFERENCE;
  define_from_element(*element, definition);
  return TIDE_XRCE_STATUS_OK;
}

bool may_be_empty(uint8_t kind) {
  return kind == TIDE_XRCE_KIND_PARTICIPANT || kind == TIDE_XRCE_KIND_PUBLISHER || kind == TIDE_XRCE_KIND_SUBSCRIBER;
}

uint8_t define_by_xml(std::string_view xml, const Profiles &profiles, Definition &definition) {
  if (xml.empty()) return may_be_empty(definition.kind) ? TIDE_XRCE_STATUS_OK : TIDE_XRCE_STATUS_ERR_DDS;
  if (xml.find('<') == std::string_view::npos) {  // a bare name where XML was announced: some clients refer so
    return define_by_reference(xml, profiles, definition) == TIDE_XRCE_STATUS_OK ? TIDE_XRCE_STATUS_OK
                                                                                 : TIDE_XRCE_STATUS_ERR_DDS;
  }
  const std::optional<XmlElement> root = parse_xml(xml);
  if (!root) return TIDE_XRCE_STATUS_ERR_DDS;
  const XmlElement *element = root->name == "dds" ? root->child(tag_of(definition.kind)) : nullptr;
  if (element == nullptr) return may_be_empty(definition.kind) ? TIDE_XRCE_STATUS_OK : TIDE_XRCE_STATUS_ERR_DDS;
  define_from_element(*element, definition);
  return TIDE_XRCE_STATUS_OK;
}

Qos qos_of(const tide_xrce_object_t &object) {
  Qos qos = default_qos(object.kind);
  if (!object.has_qos) return qos;
  qos.reliable = (object.qos_flags & TIDE_XRCE_QOS_RELIABLE) != 0;
  qos.transient_local =
      (object.qos_flags & (TIDE_XRCE_QOS_TRANSIENT_LOCAL | TIDE_XRCE_QOS_TRANSIENT | TIDE_XRCE_QOS_PERSISTENT)) != 0;
  qos.keep_all = (object.qos_flags & TIDE_XRCE_QOS_KEEP_LAST) == 0;
  if (object.has_depth && object.depth != 0) qos.depth = object.depth;
  if (object.has_deadline) qos.deadline_ms = object.deadline_ms;
  if (object.has_lifespan) qos.lifespan_ms = object.lifespan_ms;
  return qos;
}

uint8_t define_by_binary(const tide_xrce_object_t &object, Definition &definition) {
  definition.topic_object = object.topic;
  definition.name = object.has_name ? view(object.name) : std::string_view{};
  if (object.kind == TIDE_XRCE_KIND_TOPIC)
    definition.topic = {std::string(view(object.name)), std::string(view(object.type))};
  if (is_service(object.kind)) {
    definition.service = service_of(view(object.name), view(object.request_type), view(object.reply_type),
                                    object.has_request_topic ? view(object.request_topic) : std::string_view{},
                                    object.has_reply_topic ? view(object.reply_topic) : std::string_view{});
  } else {
    definition.qos = qos_of(object);
  }
  if (object.kind != TIDE_XRCE_KIND_PARTICIPANT) definition.name.clear();
  return TIDE_XRCE_STATUS_OK;
}

std::string fault_of(const char *what, std::string_view name, const std::string &fault) {
  return fault.empty() ? fault : std::string(what) + " " + quoted(name) + " " + fault;
}

// A writer or reader may leave its type to the topic of that name.
std::string fault_of(const Topic &topic, bool may_lack_type = false) {
  std::string fault = fault_of("topic", topic.name, topic_fault(topic.name));
  if (!fault.empty() || (may_lack_type && topic.type.empty())) return fault;
  return fault_of("type", topic.type, type_fault(topic.type));
}

// What cannot be, or an empty text.
std::string fault_of(const Definition &definition) {
  switch (definition.kind) {
    case TIDE_XRCE_KIND_PARTICIPANT:
      if (participants_maximum(definition.domain) == 0)
        return "there is no domain " + std::to_string(definition.domain);
      return fault_of("participant", definition.name, participant_fault(definition.name));
    case TIDE_XRCE_KIND_TOPIC:
      return fault_of(definition.topic);
    case TIDE_XRCE_KIND_DATAWRITER:
    case TIDE_XRCE_KIND_DATAREADER:
      return definition.topic_object != 0 ? std::string{} : fault_of(definition.topic, true);
    case TIDE_XRCE_KIND_REQUESTER:
    case TIDE_XRCE_KIND_REPLIER: {
      const std::string fault = fault_of(definition.service.request);
      return fault.empty() ? fault_of(definition.service.reply) : fault;
    }
    default:
      return {};
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
  const auto of_topic = [](const char *what, const Topic &topic) {
    return what + quoted(topic.name) + (topic.type.empty() ? "" : ", type " + quoted(topic.type));
  };
  switch (definition.kind) {
    case TIDE_XRCE_KIND_PARTICIPANT:
      return "node " + quoted(definition.name);
    case TIDE_XRCE_KIND_TOPIC:
      return of_topic("topic ", definition.topic);
    case TIDE_XRCE_KIND_DATAWRITER:
      return of_topic("publisher of ", definition.topic);
    case TIDE_XRCE_KIND_DATAREADER:
      return of_topic("subscription of ", definition.topic);
    case TIDE_XRCE_KIND_REQUESTER:
      return of_topic("client of ", definition.service.request);
    case TIDE_XRCE_KIND_REPLIER:
      return of_topic("service of ", definition.service.request);
    default:
      return "entity";
  }
}

uint8_t define(const tide_xrce_create_t &create, const Profiles &profiles, Definition &definition, std::string &fault) {
  fault.clear();
  const tide_xrce_object_t &object = create.object;
  if (tag_of(object.kind).empty() || TIDE_XRCE_OBJECT_KIND(create.request.object) != object.kind) {
    return TIDE_XRCE_STATUS_ERR_INVALID_DATA;
  }
  definition = Definition{};
  definition.kind = object.kind;
  definition.parent = object.parent;
  definition.domain = object.domain;
  definition.qos = default_qos(object.kind);
  uint8_t status = TIDE_XRCE_STATUS_ERR_INVALID_DATA;
  switch (object.representation) {
    case TIDE_XRCE_BY_REFERENCE:
      status = define_by_reference(view(object.text), profiles, definition);
      break;
    case TIDE_XRCE_BY_XML:
      status = define_by_xml(view(object.text), profiles, definition);
      break;
    case TIDE_XRCE_BY_BINARY:
      status = define_by_binary(object, definition);
      break;
    default:
      break;
  }
  if (status != TIDE_XRCE_STATUS_OK) return status;
  fault = fault_of(definition);
  if (fault.empty()) return TIDE_XRCE_STATUS_OK;
  return object.representation == TIDE_XRCE_BY_XML ? TIDE_XRCE_STATUS_ERR_DDS : TIDE_XRCE_STATUS_ERR_INVALID_DATA;
}

}  // namespace tide::agent
