// SPDX-License-Identifier: Apache-2.0
// Shows a participant's nodes to the ROS 2 graph, with their readers and writers, as rmw_fastrtps shows those of a
// process: a sample of rmw_dds_common/msg/ParticipantEntitiesInfo on ros_discovery_info with all of them, and a new one
// after changes, not for each of many. Tools learn names and types of the topics from DDS itself. Used by one thread.
#pragma once

#include <fastdds/rtps/common/Guid.h>

#include <chrono>
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <list>
#include <set>
#include <string>
#include <vector>

namespace tide::agent {

class Graph {
 public:
  using Guid = eprosima::fastrtps::rtps::GUID_t;
  using Clock = std::chrono::steady_clock;
  using Schedule = std::function<void(Clock::time_point)>;
  struct Node {
    std::string space, name;
    std::set<Guid> readers, writers;
  };
  using Place = std::list<Node>::iterator;

  // gid_bytes 0: nothing is shown. schedule: publish is to be called at that time; once for each call.
  Graph(eprosima::fastdds::dds::DomainParticipant *participant, size_t gid_bytes, Schedule schedule);

  // name: node, or /namespace/node; without a name it is not shown. Others may have the same.
  Place add(const std::string &name);
  void remove(Place node);
  void add_reader(Place node, const Guid &reader) { change(*node, node->readers, reader, true); }
  void add_writer(Place node, const Guid &writer) { change(*node, node->writers, writer, true); }
  void remove_reader(Place node, const Guid &reader) { change(*node, node->readers, reader, false); }
  void remove_writer(Place node, const Guid &writer) { change(*node, node->writers, writer, false); }
  bool is_empty() const { return nodes_.empty(); }

  void publish();

 private:
  static bool is_shown(const Node &node);
  void change(Node &node, std::set<Guid> &entities, const Guid &entity, bool add);
  void changed();
  void put_gid(std::vector<uint8_t> &sample, const Guid &guid) const;
  std::vector<uint8_t> describe() const;

  Guid participant_;
  size_t gid_bytes_;
  Schedule schedule_;
  std::list<Node> nodes_;
  eprosima::fastdds::dds::DataWriter *writer_ = nullptr;  // the participant's; null: nothing is shown
  bool scheduled_ = false;
  Clock::time_point free_{};  // when the line of this topic is free again
};

}  // namespace tide::agent
