// SPDX-License-Identifier: Apache-2.0
// DDS domains: participants and their topics, which the nodes of clients share, and their entries in the ROS 2 graph.
// Only the worker's thread uses these classes, except for OpaqueType and Reaper.
#pragma once

#include <fastdds/rtps/common/Guid.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/subscriber/qos/DataReaderQos.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/middleware.h"
#include "dds/transport.h"
#include "dds/worker.h"

namespace tide::agent {

constexpr int kOkay = 0;  // the ReturnCode_t of DDS for success
using DdsGuid = eprosima::fastrtps::rtps::GUID_t;

// ---- samples ----

struct OutgoingSample {
  Bytes payload;
  bool big_endian;
};

struct IncomingSample {
  std::vector<uint8_t> payload;
  bool big_endian;
};

// A DDS type whose samples are octets that were serialised elsewhere.
class OpaqueType : public eprosima::fastdds::dds::TopicDataType {
 public:
  explicit OpaqueType(const std::string &name);

  bool serialize(void *data, eprosima::fastrtps::rtps::SerializedPayload_t *payload) override;
  bool deserialize(eprosima::fastrtps::rtps::SerializedPayload_t *payload, void *data) override;
  std::function<uint32_t()> getSerializedSizeProvider(void *data) override;
  void *createData() override { return new IncomingSample{}; }
  void deleteData(void *data) override { delete static_cast<IncomingSample *>(data); }
  bool getKey(void *, eprosima::fastrtps::rtps::InstanceHandle_t *, bool) override { return false; }
};

eprosima::fastdds::dds::DataWriterQos writer_qos(const Qos &qos);
eprosima::fastdds::dds::DataReaderQos reader_qos(const Qos &qos);

// ---- participants ----

// Gives numbers to the process's participants, and deletes participants. The ports of a participant follow from its
// number. By default, Fast DDS takes a new number for each participant and ends the process when a port is too high, so
// this class reuses numbers. Fast DDS may take a few hundred milliseconds to delete a participant, so a separate thread
// does this.
class Reaper {
 public:
  Reaper() : thread_([this] { run(); }) {}
  ~Reaper();  // waits until all participants are deleted

  // The lowest free number below the limit; unset if there is none.
  std::optional<int> take_number(size_t limit);
  void give_back(int number);
  // Deletes the participant in the separate thread, and releases its number. If many participants wait to be deleted,
  // the caller waits, too.
  void bury(eprosima::fastdds::dds::DomainParticipant *participant);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<eprosima::fastdds::dds::DomainParticipant *> waiting_;
  std::set<int> numbers_;  // in use
  bool ending_ = false;
  std::thread thread_;  // declared last, because the thread uses the other members
};

// A DDS participant with its topics. Users share a topic, because in Fast DDS a participant may have only one topic of
// a name, with one type.
class Owner {
 public:
  // `contacts` belongs to the participant's transport.
  Owner(eprosima::fastdds::dds::DomainParticipant *participant, std::shared_ptr<Contacts> contacts, Reaper &reaper);
  ~Owner() { reaper_.bury(participant_); }
  Owner(const Owner &) = delete;
  Owner &operator=(const Owner &) = delete;

  eprosima::fastdds::dds::DomainParticipant *participant() const { return participant_; }
  eprosima::fastdds::dds::Publisher *publisher() const { return publisher_; }
  eprosima::fastdds::dds::Subscriber *subscriber() const { return subscriber_; }
  Contacts &contacts() const { return *contacts_; }

  enum class Fit { kThere, kFree, kOtherType };
  Fit find(const Topic &topic) const;
  // Creates the topic or shares the existing one. Returns null if the topic exists with another type, or if DDS refuses
  // it.
  eprosima::fastdds::dds::Topic *acquire(const Topic &topic);
  void release(const Topic &topic);

 private:
  struct Shared {
    eprosima::fastdds::dds::Topic *topic;
    std::string type;
    size_t users;
  };
  eprosima::fastdds::dds::DomainParticipant *participant_;
  std::shared_ptr<Contacts> contacts_;
  Reaper &reaper_;
  eprosima::fastdds::dds::Publisher *publisher_;
  eprosima::fastdds::dds::Subscriber *subscriber_;
  std::map<std::string, Shared> topics_;
  std::map<std::string, size_t> types_;
};
using OwnerPointer = std::shared_ptr<Owner>;

// ---- domains and nodes ----

// Publishes the nodes of a participant, with their readers and writers, to the ROS 2 graph, as rmw_fastrtps does for a
// process: a rmw_dds_common/msg/ParticipantEntitiesInfo with all nodes on ros_discovery_info, and a new message after
// changes, several of which may be combined. ROS 2 tools get the names and types of topics from DDS itself.
class Graph {
 public:
  using Clock = std::chrono::steady_clock;
  using Schedule = std::function<void(Clock::time_point)>;
  enum class Side { kReader, kWriter };
  struct Node {
    std::string space, name;
    std::set<DdsGuid> readers, writers;
  };
  using Place = std::list<Node>::iterator;

  // gid_bytes 0: nothing is published. `schedule` must call publish once at the given time.
  Graph(eprosima::fastdds::dds::DomainParticipant *participant, size_t gid_bytes, Schedule schedule);

  // `name`: NODE or /NAMESPACE/NODE; a node with an empty name is not published. Several nodes may have the same name.
  Place add(const std::string &name);
  void remove(Place node);
  void change(Place node, Side side, const DdsGuid &endpoint, bool add);
  void publish();

 private:
  static bool is_shown(const Node &node);
  void changed();

  DdsGuid participant_;
  size_t gid_bytes_;
  Schedule schedule_;
  std::list<Node> nodes_;
  eprosima::fastdds::dds::DataWriter *writer_ = nullptr;  // null if nothing is shown
  bool scheduled_ = false;
  Clock::time_point free_{};  // earliest time of the next sample
};

// A DDS domain that several nodes share: one participant with the topics of all nodes and their entry in the ROS 2
// graph. If a topic already exists with another type, a spare participant gets the topic, so that no client can block a
// topic for others by using it first.
class Domain : public std::enable_shared_from_this<Domain> {
 public:
  using MakeOwner = std::function<OwnerPointer()>;  // returns null if DDS refuses

  // Returns null if DDS refuses.
  static std::shared_ptr<Domain> make(const MakeOwner &make_owner, size_t gid_bytes, Worker &worker);

  // The participant in which to acquire this topic with this type. Returns null if the topic is in use with too many
  // types, or if DDS refuses.
  OwnerPointer find_owner(const Topic &topic);
  Graph &graph() { return graph_; }
  // Creates another participant of this domain. Returns null if DDS refuses.
  OwnerPointer make_owner() const { return make_owner_(); }
  size_t gid_bytes() const { return gid_bytes_; }

 private:
  Domain(MakeOwner make_owner, OwnerPointer owner, size_t gid_bytes, Worker &worker);

  MakeOwner make_owner_;
  size_t gid_bytes_;
  OwnerPointer owner_;
  std::vector<std::weak_ptr<Owner>> spares_;  // kept alive by the readers and writers that use them
  Graph graph_;
};

// One node in a domain; it belongs to one client.
class Node {
 public:
  // The destructor calls `left` when the node has left its domain.
  Node(std::shared_ptr<Domain> domain, const std::string &name, std::function<void()> left)
      : domain_(std::move(domain)), place_(domain_->graph().add(name)), left_(std::move(left)) {}
  ~Node() {
    domain_->graph().remove(place_);
    domain_.reset();
    if (left_) left_();
  }
  Node(const Node &) = delete;
  Node &operator=(const Node &) = delete;

  Domain &domain() { return *domain_; }
  void change(Graph::Side side, const DdsGuid &endpoint, bool add) {
    domain_->graph().change(place_, side, endpoint, add);
  }

 private:
  std::shared_ptr<Domain> domain_;
  Graph::Place place_;
  std::function<void()> left_;
};
using NodePointer = std::shared_ptr<Node>;

// ---- the graph for clients ----

// As in micro-ROS, a client that reads the topic ros_to_microros_graph receives a micro_ros_msgs/Graph with all nodes
// of the domain, their topics and services, and a new one after changes.
bool is_graph(const Topic &topic);
// A source of graphs. It watches the ROS 2 graph with a participant of its own as long as it exists. `wake` is called,
// from any thread, when there is a new graph. Returns null if DDS refuses.
std::unique_ptr<Source> make_watch(const NodePointer &node, Worker &worker, Wake wake);

}  // namespace tide::agent
