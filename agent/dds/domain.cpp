// SPDX-License-Identifier: Apache-2.0
#include "dds/domain.h"

#include <fastdds/rtps/participant/ParticipantDiscoveryInfo.h>
#include <fastdds/rtps/reader/ReaderDiscoveryInfo.h>
#include <fastdds/rtps/writer/WriterDiscoveryInfo.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/domain/DomainParticipantListener.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/Topic.hpp>

#include "tide/cdr.h"

namespace tide::agent {

namespace dds = eprosima::fastdds::dds;
namespace rtps = eprosima::fastrtps::rtps;

// ---- samples ----

namespace {

// RTPS pads a sample to a multiple of four octets. The last two bits of the encapsulation's options give the number of
// padding octets (DDS-XTypes 1.3, 7.6.3.1.2), so that a sample keeps its length. Readers that ignore these bits take
// the padding for a part of the sample; writers that do not set them send 0.
constexpr size_t kEncapsulationBytes = 4, kAlignment = 4;
constexpr uint8_t kPaddingMask = 0x03;
constexpr uint32_t kLargestSampleBytes = 65536;  // as declared; DYNAMIC_REUSABLE_MEMORY_MODE also holds longer samples
// A reader's history holds samples until the agent's thread takes them and applies the depth (core/delivery.cpp).
constexpr uint32_t kReaderSamples = 256;

size_t padding_of(size_t bytes) { return (kAlignment - bytes % kAlignment) % kAlignment; }

eprosima::fastrtps::Duration_t milliseconds(uint32_t count) {
  return {static_cast<int32_t>(count / 1000), (count % 1000) * 1'000'000u};
}

template <typename Target> void apply(const Qos &qos, Target &target) {
  target.reliability().kind = qos.reliable ? dds::RELIABLE_RELIABILITY_QOS : dds::BEST_EFFORT_RELIABILITY_QOS;
  target.durability().kind = qos.transient_local ? dds::TRANSIENT_LOCAL_DURABILITY_QOS : dds::VOLATILE_DURABILITY_QOS;
  const auto depth = static_cast<int32_t>(std::clamp(qos.depth, 1u, kDepthMaximum));
  target.history().kind = qos.keep_all ? dds::KEEP_ALL_HISTORY_QOS : dds::KEEP_LAST_HISTORY_QOS;
  target.history().depth = depth;
  const int32_t samples = qos.keep_all ? int32_t{kDepthMaximum} : depth;
  target.resource_limits().max_instances = 1;
  target.resource_limits().max_samples = samples;
  target.resource_limits().max_samples_per_instance = samples;
  target.resource_limits().allocated_samples = 1;
  if (qos.deadline_ms != 0) target.deadline().period = milliseconds(qos.deadline_ms);
  if (qos.lifespan_ms != 0) target.lifespan().duration = milliseconds(qos.lifespan_ms);
  target.data_sharing().off();
  target.endpoint().history_memory_policy = rtps::DYNAMIC_REUSABLE_MEMORY_MODE;
}

}  // namespace

OpaqueType::OpaqueType(const std::string &name) {
  setName(name.c_str());
  m_typeSize = kLargestSampleBytes;
  m_isGetKeyDefined = false;
  auto_fill_type_object(false);
  auto_fill_type_information(false);
}

bool OpaqueType::serialize(void *data, rtps::SerializedPayload_t *payload) {
  const auto *sample = static_cast<const OutgoingSample *>(data);
  const size_t bytes = sample->payload.size(), padding = padding_of(bytes);
  const size_t length = kEncapsulationBytes + bytes + padding;
  if (payload->max_size < length) return false;
  const std::array<uint8_t, kEncapsulationBytes> header = {0, static_cast<uint8_t>(sample->big_endian ? 0 : 1), 0,
                                                           static_cast<uint8_t>(padding)};
  uint8_t *end = std::copy(header.begin(), header.end(), payload->data);
  end = std::copy(sample->payload.begin(), sample->payload.end(), end);
  std::fill_n(end, padding, uint8_t{0});
  payload->encapsulation = sample->big_endian ? CDR_BE : CDR_LE;
  payload->length = static_cast<uint32_t>(length);
  return true;
}

bool OpaqueType::deserialize(rtps::SerializedPayload_t *payload, void *data) {
  if (payload->length < kEncapsulationBytes) return false;
  auto *sample = static_cast<IncomingSample *>(data);
  sample->big_endian = (payload->data[1] & 1u) == 0;
  const size_t bytes = payload->length - kEncapsulationBytes;
  const size_t padding = payload->data[3] & kPaddingMask;
  const uint8_t *first = payload->data + kEncapsulationBytes;
  sample->payload.assign(first, first + bytes - std::min(bytes, padding));
  return true;
}

std::function<uint32_t()> OpaqueType::getSerializedSizeProvider(void *data) {
  const size_t bytes = static_cast<const OutgoingSample *>(data)->payload.size();
  return [bytes] { return static_cast<uint32_t>(kEncapsulationBytes + bytes + padding_of(bytes)); };
}

dds::DataWriterQos writer_qos(const Qos &qos) {
  dds::DataWriterQos result = dds::DATAWRITER_QOS_DEFAULT;
  apply(qos, result);
  result.publish_mode().kind = dds::SYNCHRONOUS_PUBLISH_MODE;
  result.reliability().max_blocking_time = milliseconds(1);  // short, because the calling thread serves all clients
  result.reliable_writer_qos().times.heartbeatPeriod = milliseconds(20);
  result.reliable_writer_qos().times.nackResponseDelay = milliseconds(0);
  // If this time were zero, a timer of DDS would expire after each sample, and its thread would then hold the lock that
  // the next sample needs.
  result.reliable_writer_qos().times.nackSupressionDuration = milliseconds(1);
  return result;
}

dds::DataReaderQos reader_qos(const Qos &qos) {
  dds::DataReaderQos result = dds::DATAREADER_QOS_DEFAULT;
  Qos roomy = qos;
  // A transient local reader keeps its own depth, because only DDS can apply the depth of a late reader to the samples
  // that a writer has kept.
  if (!qos.transient_local) roomy.depth = std::max(qos.depth, kReaderSamples);
  apply(roomy, result);
  result.reliable_reader_qos().times.initialAcknackDelay = milliseconds(1);
  result.reliable_reader_qos().times.heartbeatResponseDelay = milliseconds(0);
  return result;
}

// ---- participants ----

std::optional<int> Reaper::take_number(size_t limit) {
  const std::lock_guard lock(mutex_);
  int number = 0;
  while (numbers_.contains(number)) number++;
  if (static_cast<size_t>(number) >= limit) return std::nullopt;
  numbers_.insert(number);
  return number;
}

void Reaper::give_back(int number) {
  const std::lock_guard lock(mutex_);
  numbers_.erase(number);
}

Reaper::~Reaper() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Reaper::bury(dds::DomainParticipant *participant) {
  constexpr size_t kWaitingMaximum = 8;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return waiting_.size() < kWaitingMaximum; });
  waiting_.push_back(participant);
  changed_.notify_all();
}

void Reaper::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    dds::DomainParticipant *participant = waiting_.front();
    lock.unlock();
    const int number = participant->get_qos().wire_protocol().participant_id;
    participant->delete_contained_entities();
    const auto status = dds::DomainParticipantFactory::get_instance()->delete_participant(participant);
    lock.lock();
    if (status() == kOkay) numbers_.erase(number);
    waiting_.pop_front();
    changed_.notify_all();
  }
}

Owner::Owner(dds::DomainParticipant *participant, std::shared_ptr<Contacts> contacts, Reaper &reaper)
    : participant_(participant), contacts_(std::move(contacts)), reaper_(reaper) {
  publisher_ = participant_->create_publisher(dds::PUBLISHER_QOS_DEFAULT);
  subscriber_ = participant_->create_subscriber(dds::SUBSCRIBER_QOS_DEFAULT);
}

Owner::Fit Owner::find(const Topic &topic) const {
  const auto place = topics_.find(topic.name);
  if (place == topics_.end()) return Fit::kFree;
  return place->second.type == topic.type ? Fit::kThere : Fit::kOtherType;
}

dds::Topic *Owner::acquire(const Topic &topic) {
  const auto place = topics_.find(topic.name);
  if (place != topics_.end()) {
    if (place->second.type != topic.type) return nullptr;
    place->second.users++;
    return place->second.topic;
  }
  if (!types_.contains(topic.type)) dds::TypeSupport(new OpaqueType(topic.type)).register_type(participant_);
  dds::Topic *made = participant_->create_topic(topic.name, topic.type, dds::TOPIC_QOS_DEFAULT);
  if (made == nullptr) {
    if (!types_.contains(topic.type)) participant_->unregister_type(topic.type);
    return nullptr;
  }
  types_[topic.type]++;
  topics_[topic.name] = {made, topic.type, 1};
  return made;
}

void Owner::release(const Topic &topic) {
  const auto place = topics_.find(topic.name);
  if (place == topics_.end() || --place->second.users != 0) return;
  participant_->delete_topic(place->second.topic);
  topics_.erase(place);
  if (--types_[topic.type] != 0) return;
  types_.erase(topic.type);
  participant_->unregister_type(topic.type);
}

// ---- the graph of a participant's nodes ----

namespace {

const Topic kDiscovery{"ros_discovery_info", "rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_"};
constexpr size_t kNameMaximum = 255;  // limit for the name of a node or a namespace, from the definition of the message
// Least time between two samples. With many nodes, each sample is long and all participants of the domain read it, and
// while clients come and go it is soon outdated.
constexpr std::chrono::milliseconds kGap{20};
constexpr std::chrono::microseconds kGapPerOctet{2};

// A message of the graph, little-endian CDR.
class Text {
 public:
  void octet(uint8_t value) { bytes.push_back(value); }
  void count(size_t value) {
    while (bytes.size() % 4 != 0) octet(0);
    for (unsigned shift = 0; shift < 32; shift += 8) octet(static_cast<uint8_t>(value >> shift));
  }
  void put(const std::string &text) {
    count(text.size() + 1);
    bytes.insert(bytes.end(), text.begin(), text.end());
    octet(0);
  }
  void put(const DdsGuid &guid, size_t gid_bytes) {
    const size_t end = bytes.size() + gid_bytes;
    bytes.insert(bytes.end(), std::begin(guid.guidPrefix.value), std::end(guid.guidPrefix.value));
    bytes.insert(bytes.end(), std::begin(guid.entityId.value), std::end(guid.entityId.value));
    bytes.resize(end);
  }
  std::vector<uint8_t> bytes;
};

}  // namespace

Graph::Graph(dds::DomainParticipant *participant, size_t gid_bytes, Schedule schedule)
    : participant_(participant->guid()), gid_bytes_(gid_bytes), schedule_(std::move(schedule)) {
  if (gid_bytes == 0) return;
  dds::TypeSupport(new OpaqueType(kDiscovery.type)).register_type(participant);
  dds::Publisher *publisher = participant->create_publisher(dds::PUBLISHER_QOS_DEFAULT);
  // No conflict with a client is possible, because the name of this topic is reserved (topic_fault).
  dds::Topic *topic = participant->create_topic(kDiscovery.name, kDiscovery.type, dds::TOPIC_QOS_DEFAULT);
  if (publisher == nullptr || topic == nullptr) return;
  writer_ = publisher->create_datawriter(topic, writer_qos({.transient_local = true}));
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

void Graph::change(Place node, Side side, const DdsGuid &endpoint, bool add) {
  std::set<DdsGuid> &endpoints = side == Side::kReader ? node->readers : node->writers;
  if (add) {
    endpoints.insert(endpoint);
  } else {
    endpoints.erase(endpoint);
  }
  if (is_shown(*node)) changed();
}

void Graph::changed() {
  if (writer_ == nullptr || scheduled_) return;
  scheduled_ = true;
  schedule_(std::max(Clock::now(), free_));
}

void Graph::publish() {
  scheduled_ = false;
  Text sample;
  sample.put(participant_, gid_bytes_);
  sample.count(static_cast<size_t>(std::count_if(nodes_.begin(), nodes_.end(), is_shown)));
  for (const Node &node : nodes_) {
    if (!is_shown(node)) continue;
    sample.put(node.space);
    sample.put(node.name);
    for (const std::set<DdsGuid> *endpoints : {&node.readers, &node.writers}) {
      sample.count(endpoints->size());
      for (const DdsGuid &guid : *endpoints) sample.put(guid, gid_bytes_);
    }
  }
  OutgoingSample outgoing{sample.bytes, false};
  const bool written = writer_->write(&outgoing);
  free_ = Clock::now() + kGap + kGapPerOctet * sample.bytes.size();
  if (!written) changed();  // publishes again later; otherwise the change would be missing until the next one
}

// ---- domains ----

std::shared_ptr<Domain> Domain::make(const MakeOwner &make_owner, size_t gid_bytes, Worker &worker) {
  OwnerPointer owner = make_owner();
  if (owner == nullptr) return nullptr;
  return std::shared_ptr<Domain>(new Domain(make_owner, std::move(owner), gid_bytes, worker));
}

Domain::Domain(MakeOwner make_owner, OwnerPointer owner, size_t gid_bytes, Worker &worker)
    : make_owner_(std::move(make_owner)),
      gid_bytes_(gid_bytes),
      owner_(std::move(owner)),
      graph_(owner_->participant(), gid_bytes, [this, &worker](Worker::Clock::time_point time) {
        worker.add_at(time, [self = weak_from_this()] {
          if (const auto domain = self.lock()) domain->graph_.publish();
        });
      }) {}

OwnerPointer Domain::find_owner(const Topic &topic) {
  constexpr size_t kSparesMaximum = 4;  // few, because each spare is a participant with threads of its own
  std::erase_if(spares_, [](const auto &spare) { return spare.expired(); });
  std::vector<OwnerPointer> owners = {owner_};
  for (const auto &spare : spares_) owners.push_back(spare.lock());
  for (const Owner::Fit fit : {Owner::Fit::kThere, Owner::Fit::kFree}) {
    const auto place =
        std::find_if(owners.begin(), owners.end(), [&](const auto &owner) { return owner->find(topic) == fit; });
    if (place != owners.end()) return *place;
  }
  if (spares_.size() >= kSparesMaximum) return nullptr;
  OwnerPointer spare = make_owner_();
  if (spare != nullptr) spares_.push_back(spare);
  return spare;
}

// ---- the graph for clients ----

namespace {

constexpr int32_t kParticipantsMaximum = 512;
constexpr std::chrono::milliseconds kWatchGap{100};  // least time between two graphs, because a new node causes many
                                                     // changes

enum Kind : uint8_t { kPublisher, kSubscription, kServer, kClient };  // kinds of micro_ros_msgs/Entity

bool cut_front(std::string &text, const std::string &front) {
  if (!text.starts_with(front)) return false;
  text.erase(0, front.size());
  return true;
}

bool cut_back(std::string &text, const std::string &back) {
  if (!text.ends_with(back)) return false;
  text.erase(text.size() - back.size());
  return true;
}

// Converts std_msgs::msg::dds_::String_ to std_msgs/msg/String.
std::string ros_type_of(std::string type) {
  const size_t place = type.find("::dds_::");
  if (place == std::string::npos || !cut_back(type, "_")) return type;
  type.replace(place, 8, "/");
  for (size_t colons; (colons = type.find("::")) != std::string::npos;) type.replace(colons, 2, "/");
  return type;
}

DdsGuid read_gid(tide_cdr_t &cdr, size_t gid_bytes) {
  std::array<uint8_t, 24> octets{};
  tide_cdr_get_bytes(&cdr, octets.data(), std::min(gid_bytes, octets.size()));
  DdsGuid guid;
  std::copy_n(octets.begin(), 12, guid.guidPrefix.value);
  std::copy_n(octets.begin() + 12, 4, guid.entityId.value);
  return guid;
}

std::string read_text(tide_cdr_t &cdr) {
  size_t length = 0;
  const char *text = tide_cdr_get_string(&cdr, &length);
  return text == nullptr ? std::string() : std::string(text, length);
}

// The ROS 2 graph as known so far: endpoints that DDS has discovered, and nodes from ros_discovery_info. The caller's
// lock guards it.
class Watched {
 public:
  void add(const DdsGuid &guid, bool is_writer, Topic topic) { endpoints_[guid] = {is_writer, std::move(topic)}; }
  void remove(const DdsGuid &guid) { endpoints_.erase(guid); }
  void remove_participant(const DdsGuid &guid) { participants_.erase(guid.guidPrefix); }

  // Reads a rmw_dds_common/msg/ParticipantEntitiesInfo, little-endian; ignores a malformed one.
  void read_nodes(Bytes sample, size_t gid_bytes) {
    tide_cdr_t cdr;
    tide_cdr_reader(&cdr, sample.data(), sample.size(), false);
    const DdsGuid participant = read_gid(cdr, gid_bytes);
    std::vector<Node> nodes(tide_cdr_get_count(&cdr, 16));
    for (Node &node : nodes) {
      node.space = read_text(cdr);
      node.name = read_text(cdr);
      for (int side = 0; side < 2; side++) {
        const uint32_t count = tide_cdr_get_count(&cdr, gid_bytes);
        for (uint32_t i = 0; i < count; i++) node.endpoints.push_back(read_gid(cdr, gid_bytes));
      }
    }
    if (cdr.status == 0) participants_[participant.guidPrefix] = std::move(nodes);
  }

  // Returns a micro_ros_msgs/msg/Graph.
  std::vector<uint8_t> describe() const {
    Text graph;
    size_t nodes = 0;
    for (const auto &[prefix, of_participant] : participants_) nodes += of_participant.size();
    graph.count(nodes);
    for (const auto &[prefix, of_participant] : participants_) {
      for (const Node &node : of_participant) describe(node, graph);
    }
    return std::move(graph.bytes);
  }

 private:
  struct Endpoint {
    bool is_writer;
    Topic topic;
  };
  struct Node {
    std::string space, name;
    std::vector<DdsGuid> endpoints;
  };

  void describe(const Node &node, Text &graph) const {
    Text entities;
    size_t count = 0;
    // `entities` has the alignment that it needs in `graph`, because both begin at a multiple of four.
    for (const DdsGuid &guid : node.endpoints) {
      const auto place = endpoints_.find(guid);
      if (place == endpoints_.end()) continue;
      const bool is_writer = place->second.is_writer;
      std::string name = place->second.topic.name, type = place->second.topic.type;
      Kind kind = is_writer ? kPublisher : kSubscription;
      if (!cut_front(name, "rt/")) {
        // A service is shown by its request topic; its reply topic, and topics of plain DDS, are not shown.
        if (!cut_front(name, "rq/") || !cut_back(name, "Request")) continue;
        cut_back(type, "Request_");
        kind = is_writer ? kClient : kServer;
      }
      entities.octet(kind);
      entities.put("/" + name);
      entities.count(1);
      entities.put(ros_type_of(type));
      count++;
    }
    graph.put(node.space);
    graph.put(node.name);
    graph.count(count);
    graph.bytes.insert(graph.bytes.end(), entities.bytes.begin(), entities.bytes.end());
  }

  std::map<DdsGuid, Endpoint> endpoints_;
  std::map<rtps::GuidPrefix_t, std::vector<Node>> participants_;
};

// The current graph, and the wake-up of its reader. A scheduled wake-up does not keep this object alive.
class Picture : public std::enable_shared_from_this<Picture> {
 public:
  Picture(Worker &worker, Wake wake) : worker_(worker), wake_(std::move(wake)) {}

  template <typename Change> void change(Change how) {
    const std::lock_guard lock(mutex_);
    how(watched_);
    newer_ = true;
    if (scheduled_) return;
    scheduled_ = true;
    worker_.add_at(Worker::Clock::now() + kWatchGap, [self = weak_from_this()] {
      if (const auto picture = self.lock()) picture->wake();
    });
  }
  bool take(Sample &sample) {
    const std::lock_guard lock(mutex_);
    if (!newer_ || scheduled_) return false;
    newer_ = false;
    sample = {};
    sample.payload = watched_.describe();
    return true;
  }
  void close() {
    const std::lock_guard lock(mutex_);
    wake_ = nullptr;
  }

 private:
  // Called by the worker, which also deletes the source, so this never runs during the deletion.
  void wake() {
    Wake wake;
    {
      const std::lock_guard lock(mutex_);
      scheduled_ = false;
      wake = wake_;
    }
    if (wake) wake();
  }

  Worker &worker_;
  std::mutex mutex_;
  Wake wake_;
  Watched watched_;
  bool newer_ = false, scheduled_ = false;
};

// Listens for endpoints and nodes. Threads of DDS call the on_* functions.
class Watch : public Source, private dds::DomainParticipantListener {
 public:
  Watch(OwnerPointer owner, size_t gid_bytes, Worker &worker, Wake wake)
      : owner_(std::move(owner)), gid_bytes_(gid_bytes), picture_(std::make_shared<Picture>(worker, std::move(wake))) {
    owner_->participant()->set_listener(this, dds::StatusMask::none());
    dds::Topic *topic = owner_->acquire(kDiscovery);
    if (topic == nullptr) return;
    reader_ = owner_->subscriber()->create_datareader(
        topic, reader_qos({.transient_local = true, .depth = kParticipantsMaximum}),
        static_cast<dds::DataReaderListener *>(this), dds::StatusMask::data_available());
    picture_->change([](Watched &) {});  // publishes the first graph, even if it is empty
  }
  ~Watch() override {
    picture_->close();
    owner_->participant()->set_listener(nullptr);
    if (reader_ != nullptr) {
      reader_->set_listener(nullptr);
      owner_->subscriber()->delete_datareader(reader_);
    }
    owner_->release(kDiscovery);
  }
  Watch(const Watch &) = delete;
  Watch &operator=(const Watch &) = delete;

  bool take(Sample &sample) override { return picture_->take(sample); }
  bool is_there() const { return reader_ != nullptr; }

 private:
  void on_participant_discovery(dds::DomainParticipant *, rtps::ParticipantDiscoveryInfo &&info) override {
    using Info = rtps::ParticipantDiscoveryInfo;
    if (info.status != Info::REMOVED_PARTICIPANT && info.status != Info::DROPPED_PARTICIPANT) return;
    picture_->change([&](Watched &watched) { watched.remove_participant(info.info.m_guid); });
  }
  void on_publisher_discovery(dds::DomainParticipant *, rtps::WriterDiscoveryInfo &&info) override {
    change(info.info, true, info.status == rtps::WriterDiscoveryInfo::REMOVED_WRITER);
  }
  void on_subscriber_discovery(dds::DomainParticipant *, rtps::ReaderDiscoveryInfo &&info) override {
    change(info.info, false, info.status == rtps::ReaderDiscoveryInfo::REMOVED_READER);
  }
  template <typename Proxy> void change(const Proxy &endpoint, bool is_writer, bool removed) {
    picture_->change([&](Watched &watched) {
      if (removed) {
        watched.remove(endpoint.guid());
      } else {
        watched.add(endpoint.guid(), is_writer, {endpoint.topicName().c_str(), endpoint.typeName().c_str()});
      }
    });
  }
  void on_data_available(dds::DataReader *reader) override {
    IncomingSample sample;
    dds::SampleInfo info;
    while (reader->take_next_sample(&sample, &info)() == kOkay) {
      if (!info.valid_data || sample.big_endian) continue;
      picture_->change([&](Watched &watched) { watched.read_nodes(sample.payload, gid_bytes_); });
    }
  }

  OwnerPointer owner_;
  size_t gid_bytes_;
  std::shared_ptr<Picture> picture_;
  dds::DataReader *reader_ = nullptr;
};

}  // namespace

bool is_graph(const Topic &topic) {
  return topic.name == "rt/ros_to_microros_graph" && topic.type == "micro_ros_msgs::msg::dds_::Graph_";
}

std::unique_ptr<Source> make_watch(const NodePointer &node, Worker &worker, Wake wake) {
  OwnerPointer owner = node->domain().make_owner();
  if (owner == nullptr) return nullptr;
  auto watch = std::make_unique<Watch>(std::move(owner), node->domain().gid_bytes(), worker, std::move(wake));
  return watch->is_there() ? std::move(watch) : nullptr;
}

}  // namespace tide::agent
