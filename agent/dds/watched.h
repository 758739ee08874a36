// SPDX-License-Identifier: Apache-2.0
// What is known of a ROS 2 graph: endpoints as DDS discovers them, nodes as ros_discovery_info tells them. Used under
// a lock of its owner.
#pragma once

#include <fastdds/rtps/common/Guid.h>

#include <map>
#include <string>
#include <vector>

#include "core/middleware.h"

namespace tide::agent {

class Watched {
 public:
  using Guid = eprosima::fastrtps::rtps::GUID_t;

  void add(const Guid &guid, bool is_writer, Topic topic) { endpoints_[guid] = {is_writer, std::move(topic)}; }
  void remove(const Guid &guid) { endpoints_.erase(guid); }
  void remove_participant(const Guid &guid) { participants_.erase(guid.guidPrefix); }
  // rmw_dds_common/msg/ParticipantEntitiesInfo, little-endian; what is malformed is ignored. False: it was.
  bool read_nodes(Bytes sample, size_t gid_bytes);
  // micro_ros_msgs/msg/Graph.
  std::vector<uint8_t> describe() const;

 private:
  struct Endpoint {
    bool is_writer;
    Topic topic;
  };
  struct Node {
    std::string space, name;
    std::vector<Guid> endpoints;
  };
  using Prefix = eprosima::fastrtps::rtps::GuidPrefix_t;

  std::map<Guid, Endpoint> endpoints_;
  std::map<Prefix, std::vector<Node>> participants_;
};

}  // namespace tide::agent
