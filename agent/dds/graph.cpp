// SPDX-License-Identifier: Apache-2.0
#include "dds/graph.h"

#include <algorithm>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/topic/Topic.hpp>

#include "dds/opaque_type.h"

namespace tide::agent {
namespace {

namespace dds = eprosima::fastdds::dds;
namespace rtps = eprosima::fastrtps::rtps;

constexpr const char *kTopic = "ros_discovery_info";
constexpr const char *kType = "rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_";
constexpr size_t kNameMaximum = 255;  // of a node or a namespace, in the message's definition
// Between two samples: with many nodes each is long, every participant of the domain reads it whole, and while clients
// come and go one after the other each is out of date at once.
constexpr std::chrono::milliseconds kGap{20};
constexpr std::chrono::microseconds kGapOfOctet{2};

dds::DataWriterQos writer_qos() {
  dds::DataWriterQos qos = dds::DATAWRITER_QOS_DEFAULT;
  qos.reliability().kind = dds::RELIABLE_RELIABILITY_QOS;
  qos.durability().kind = dds::TRANSIENT_LOCAL_DURABILITY_QOS;
  qos.history().kind = dds::KEEP_LAST_HISTORY_QOS;
  qos.history().depth = 1;
  qos.reliability().max_blocking_time = {0, 1'000'000};  // the caller serves all clients
  qos.data_sharing().off();
  qos.endpoint().history_memory_policy = rtps::DYNAMIC_REUSABLE_MEMORY_MODE;
  return qos;
}

void put_count(std::vector<uint8_t> &sample, size_t count) {
  while (sample.size() % 4 != 0) sample.push_back(0);
  for (unsigned shift = 0; shift < 32; shift += 8) sample.push_back(static_cast<uint8_t>(count >> shift));
}

void put_text(std::vector<uint8_t> &sample, const std::string &text) {
  put_count(sample, text.size() + 1);
  sample.insert(sample.end(), text.begin(), text.end());
  sample.push_back(0);
}

}  // namespace

Graph::Graph(dds::DomainParticipant *participant, size_t gid_bytes, Schedule schedule)
    : participant_(participant->guid()), gid_bytes_(gid_bytes), schedule_(std::move(schedule)) {
  if (gid_bytes == 0) return;
  dds::TypeSupport(new OpaqueType(kType)).register_type(participant);
  dds::Publisher *publisher = participant->create_publisher(dds::PUBLISHER_QOS_DEFAULT);
  dds::Topic *topic = participant->create_topic(kTopic, kType, dds::TOPIC_QOS_DEFAULT);  // before a client asks for it
  if (publisher != nullptr && topic != nullptr) writer_ = publisher->create_datawriter(topic, writer_qos());
}

bool Graph::is_shown(const Node &node) {
  return !node.name.empty() && node.name.size() <= kNameMaximum && node.space.size() <= kNameMaximum;
}

Graph::Place Graph::add(const std::string &name) {
  Node node;
  const size_t slash = name.find_last_of('/');
  node.name = slash == std::string::npos ? name : name.substr(slash + 1);
  node.space = slash == std::string::npos ? "/" : name.substr(0, slash);
  if (node.space.empty() || node.space.front() != '/') node.space = std::string(1, '/').append(node.space);
  nodes_.push_back(std::move(node));
  if (is_shown(nodes_.back())) changed();
  return std::prev(nodes_.end());
}

void Graph::remove(Place node) {
  const bool shown = is_shown(*node);
  nodes_.erase(node);
  if (shown) changed();
}

void Graph::change(Node &node, std::set<Guid> &entities, const Guid &entity, bool add) {
  if (add) {
    entities.insert(entity);
  } else {
    entities.erase(entity);
  }
  if (is_shown(node)) changed();
}

void Graph::changed() {
  if (writer_ == nullptr || scheduled_) return;
  scheduled_ = true;
  schedule_(std::max(Clock::now(), free_));
}

void Graph::put_gid(std::vector<uint8_t> &sample, const Guid &guid) const {
  const size_t end = sample.size() + gid_bytes_;
  sample.insert(sample.end(), std::begin(guid.guidPrefix.value), std::end(guid.guidPrefix.value));
  sample.insert(sample.end(), std::begin(guid.entityId.value), std::end(guid.entityId.value));
  sample.resize(end);
}

std::vector<uint8_t> Graph::describe() const {
  std::vector<uint8_t> sample;
  put_gid(sample, participant_);
  put_count(sample, static_cast<size_t>(std::count_if(nodes_.begin(), nodes_.end(), is_shown)));
  for (const Node &node : nodes_) {
    if (!is_shown(node)) continue;
    put_text(sample, node.space);
    put_text(sample, node.name);
    for (const std::set<Guid> *entities : {&node.readers, &node.writers}) {
      put_count(sample, entities->size());
      for (const Guid &guid : *entities) put_gid(sample, guid);
    }
  }
  return sample;
}

void Graph::publish() {
  scheduled_ = false;
  const std::vector<uint8_t> sample = describe();
  OutgoingSample outgoing{sample, false};
  writer_->write(&outgoing);
  free_ = Clock::now() + kGap + kGapOfOctet * sample.size();
}

}  // namespace tide::agent
