// SPDX-License-Identifier: Apache-2.0
// Definitions of the entities that clients request (by XML, in binary form or by reference), and the names that these
// entities may have in DDS.
#pragma once

#include <compare>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/middleware.h"
#include "tide/xrce.h"

namespace tide::agent {

// ---- names ----
// ROS 2 tools decode every name that they discover, so one client's bad name breaks the tools for everybody: rclpy
// raises UnicodeDecodeError for octets that are not UTF-8. The *_fault functions return a description of the fault, or
// an empty text.

// After a prefix of ROS 2 (rt/, rq/, rr/, rs/, rp/, ra/), the rest must be a full ROS 2 name: letters, digits, _ and /,
// without an empty part or a part that starts with a digit. A name without such a prefix belongs to a topic of plain
// DDS, and must be printable ASCII without spaces. Names that DDS and ROS 2 reserve for discovery are faults.
std::string topic_fault(std::string_view name);
std::string type_fault(std::string_view name);         // must be printable ASCII without spaces
std::string participant_fault(std::string_view name);  // must be printable ASCII
// True if a participant's name has the form of a ROS 2 node: node, or /namespace/node.
bool is_node_name(std::string_view name);
// For log messages: bytes other than printable ASCII become \xNN, and a long text is truncated.
std::string quoted(std::string_view text);

// How the agent renames one client's topics, services, actions and nodes, so that one firmware image serves many
// robots. Names here are ROS 2 names, such as /cmd_vel.
struct Renaming {
  std::string space;                          // prefix (/robot1) of every name that no remap changes; empty: none
  std::map<std::string, std::string> remaps;  // from fully qualified names to fully qualified names

  // The DDS topic (rt/cmd_vel, rq/sumRequest, rr/sumReply) after renaming. Topics without a ROS prefix keep their
  // names. The namespace is not applied to topics that all robots share (/tf, /tf_static, /rosout, /clock,
  // /diagnostics, /parameter_events).
  std::string topic(const std::string &name) const;
  std::string node(const std::string &name) const;
  // add adds a remap FROM:=TO of fully qualified names. add and set_space return an error message, which is empty on
  // success.
  std::string add(const std::string &remap);
  std::string set_space(const std::string &name);
  auto operator<=>(const Renaming &) const = default;
};

// ---- XML ----
// A parser for the small documents that describe DDS entities. It supports elements, attributes, text, comments and the
// five predefined entities, but no document types, no namespaces, and no processing instructions except the
// declaration.

struct XmlElement {
  std::string name;
  std::vector<std::pair<std::string, std::string>> attributes;
  std::string text;  // text of this element, without that of its children and without surrounding space
  std::vector<XmlElement> children;

  // The first child with this name; null if there is none.
  const XmlElement *child(std::string_view wanted) const;
  // Text of the element at this path, which takes the first child of each name; empty if there is no such element.
  std::string text_at(std::initializer_list<std::string_view> path) const;
  std::string attribute(std::string_view wanted) const;
};

struct XmlLimits {
  size_t depth = 16;
  size_t elements = 256;
};

// The root element; nothing if the text is not well-formed or exceeds a limit.
std::optional<XmlElement> parse_xml(std::string_view text, const XmlLimits &limits = {});

// ---- definitions ----

struct Definition {
  uint8_t kind = TIDE_XRCE_KIND_INVALID;
  uint16_t parent = 0;        // participant, publisher or subscriber
  int domain = 0;             // of a participant
  std::string name;           // of a participant
  uint16_t topic_object = 0;  // object id of the topic of a datawriter or datareader in binary form
  Topic topic;                // of a topic, datawriter or datareader; without a type: the type of the topic object
  Qos qos;                    // of a datawriter, datareader, requester or replier
  Service service;            // of a requester or replier
  bool operator==(const Definition &) const = default;
};

// Named descriptions that clients may refer to.
class Profiles {
 public:
  // Adds every element that has a profile_name in an XML document (<profiles> alone or in <dds>). Returns false if the
  // document is not well-formed.
  bool add(std::string_view xml);
  // The element with this tag ("participant", "data_writer", ...) and name; null if there is none.
  const XmlElement *find(std::string_view tag, std::string_view name) const;

 private:
  std::map<std::pair<std::string, std::string>, XmlElement> elements_;
};

// For log messages: "publisher of 'rt/chatter', type 'std_msgs::msg::dds_::String_'".
std::string described(const Definition &definition);

// Fills in the definition. Returns a TIDE_XRCE_STATUS_*: OK; ERR_UNKNOWN_REFERENCE; ERR_DDS for malformed XML, or for
// an invalid name or domain in XML; ERR_INVALID_DATA for an invalid kind, or for an invalid name or domain in another
// form. `fault` gets the error text about a name or domain.
uint8_t define(const tide_xrce_create_t &create, const Profiles &profiles, Definition &definition, std::string &fault);

}  // namespace tide::agent
