// SPDX-License-Identifier: Apache-2.0
// What an entity is, independent of the representation (XML, binary, reference) in which the client described it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "core/middleware.h"
#include "core/xml.h"
#include "tide/xrce.h"

namespace tide::agent {

struct Definition {
  uint8_t kind = TIDE_XRCE_KIND_INVALID;
  uint16_t parent = 0;        // participant, publisher or subscriber
  int domain = 0;             // participant
  std::string name;           // participant
  uint16_t topic_object = 0;  // datawriter, datareader in binary form: the topic is looked up by the client
  Topic topic;                // topic, datawriter, datareader; the type may be empty when the topic exists by name
  Qos qos;                    // datawriter, datareader, requester, replier
  Service service;            // requester, replier
  bool operator==(const Definition &) const = default;
};

// Named descriptions that clients may refer to.
class Profiles {
 public:
  // Add every element with a profile_name of an XML document (<profiles> alone or in <dds>). False: not well-formed.
  bool add(std::string_view xml);
  // The element of this tag ("participant", "data_writer", ...) and name, or null.
  const XmlElement *find(std::string_view tag, std::string_view name) const;

 private:
  std::map<std::pair<std::string, std::string>, XmlElement> elements_;
};

// For the user: "writer of 'rt/chatter', type 'std_msgs::msg::dds_::String_'".
std::string described(const Definition &definition);

// Fill in the definition. Returns a TIDE_XRCE_STATUS_*: OK, ERR_DDS (bad XML), ERR_UNKNOWN_REFERENCE,
// ERR_INVALID_DATA (a kind, name or domain that cannot be; ERR_DDS when XML says so). fault: what is wrong with a name
// or domain, for a message.
uint8_t define(const tide_xrce_create_t &create, const Profiles &profiles, Definition &definition, std::string &fault);

}  // namespace tide::agent
