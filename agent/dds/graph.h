// SPDX-License-Identifier: Apache-2.0
// Shows a participant as a node of the ROS 2 graph, with its readers and writers, as rmw_fastrtps shows its own: a
// sample of rmw_dds_common/msg/ParticipantEntitiesInfo on ros_discovery_info, and a new one after each change. Tools
// learn names and types of the topics from DDS itself.
#pragma once

#include <fastdds/rtps/common/Guid.h>

#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <set>
#include <string>
#include <vector>

namespace tide::agent {

class Graph {
 public:
  using Guid = eprosima::fastrtps::rtps::GUID_t;

  // name: node, or /namespace/node; without a name nothing is shown. gid_bytes 0: nothing is shown.
  Graph(eprosima::fastdds::dds::DomainParticipant *participant, const std::string &name, size_t gid_bytes);

  void add_reader(const Guid &reader) { change(readers_, reader, true); }
  void add_writer(const Guid &writer) { change(writers_, writer, true); }
  void remove_reader(const Guid &reader) { change(readers_, reader, false); }
  void remove_writer(const Guid &writer) { change(writers_, writer, false); }

 private:
  void change(std::set<Guid> &entities, const Guid &entity, bool add);
  void put_gid(std::vector<uint8_t> &sample, const Guid &guid) const;
  std::vector<uint8_t> describe() const;
  void publish();

  Guid participant_;
  std::string namespace_, name_;
  size_t gid_bytes_;
  std::set<Guid> readers_, writers_;
  eprosima::fastdds::dds::DataWriter *writer_ = nullptr;  // the participant's; null: nothing is shown
};

}  // namespace tide::agent
