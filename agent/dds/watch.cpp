// SPDX-License-Identifier: Apache-2.0
#include "dds/watch.h"

#include <fastdds/rtps/participant/ParticipantDiscoveryInfo.h>
#include <fastdds/rtps/reader/ReaderDiscoveryInfo.h>
#include <fastdds/rtps/writer/WriterDiscoveryInfo.h>

#include <fastdds/dds/domain/DomainParticipantListener.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <mutex>

#include "dds/opaque_type.h"
#include "dds/watched.h"

namespace tide::agent {
namespace {

namespace dds = eprosima::fastdds::dds;
namespace rtps = eprosima::fastrtps::rtps;

constexpr int32_t kParticipantsMaximum = 512;
constexpr std::chrono::milliseconds kGap{100};  // between two graphs: a node that comes makes many changes
const Topic kDiscovery{"ros_discovery_info", "rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_"};

// Outlives the source while a wake is due.
class Picture : public std::enable_shared_from_this<Picture> {
 public:
  Picture(Worker &worker, Wake wake) : worker_(worker), wake_(std::move(wake)) {}

  template <typename Change>
  void change(Change how) {
    const std::lock_guard lock(mutex_);
    how(watched_);
    newer_ = true;
    if (scheduled_) return;
    scheduled_ = true;
    worker_.add_at(Worker::Clock::now() + kGap, [self = weak_from_this()] {
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
  // By the worker, as the source's end: it is over before, or there is nobody to wake.
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

// By threads of DDS.
class Discovery : public dds::DomainParticipantListener {
 public:
  explicit Discovery(Picture &picture) : picture_(picture) {}
  void on_participant_discovery(dds::DomainParticipant *, rtps::ParticipantDiscoveryInfo &&info) override {
    using Info = rtps::ParticipantDiscoveryInfo;
    if (info.status != Info::REMOVED_PARTICIPANT && info.status != Info::DROPPED_PARTICIPANT) return;
    picture_.change([&](Watched &watched) { watched.remove_participant(info.info.m_guid); });
  }
  void on_publisher_discovery(dds::DomainParticipant *, rtps::WriterDiscoveryInfo &&info) override {
    change(info.info, true, info.status == rtps::WriterDiscoveryInfo::REMOVED_WRITER);
  }
  void on_subscriber_discovery(dds::DomainParticipant *, rtps::ReaderDiscoveryInfo &&info) override {
    change(info.info, false, info.status == rtps::ReaderDiscoveryInfo::REMOVED_READER);
  }

 private:
  template <typename Proxy>
  void change(const Proxy &endpoint, bool is_writer, bool removed) {
    picture_.change([&](Watched &watched) {
      if (removed) {
        watched.remove(endpoint.guid());
      } else {
        watched.add(endpoint.guid(), is_writer, {endpoint.topicName().c_str(), endpoint.typeName().c_str()});
      }
    });
  }

  Picture &picture_;
};

class Nodes : public dds::DataReaderListener {
 public:
  Nodes(Picture &picture, size_t gid_bytes) : picture_(picture), gid_bytes_(gid_bytes) {}
  void on_data_available(dds::DataReader *reader) override {
    IncomingSample sample;
    dds::SampleInfo info;
    while (reader->take_next_sample(&sample, &info)() == kOkay) {
      if (!info.valid_data || sample.big_endian) continue;
      picture_.change([&](Watched &watched) { watched.read_nodes(sample.payload, gid_bytes_); });
    }
  }

 private:
  Picture &picture_;
  size_t gid_bytes_;
};

dds::DataReaderQos reader_qos() {
  dds::DataReaderQos qos = dds::DATAREADER_QOS_DEFAULT;
  qos.reliability().kind = dds::RELIABLE_RELIABILITY_QOS;
  qos.durability().kind = dds::TRANSIENT_LOCAL_DURABILITY_QOS;
  qos.history().kind = dds::KEEP_LAST_HISTORY_QOS;
  qos.history().depth = kParticipantsMaximum;
  qos.resource_limits().max_instances = 1;
  qos.resource_limits().max_samples = kParticipantsMaximum;
  qos.resource_limits().max_samples_per_instance = kParticipantsMaximum;
  qos.resource_limits().allocated_samples = 1;
  qos.data_sharing().off();
  qos.endpoint().history_memory_policy = rtps::DYNAMIC_REUSABLE_MEMORY_MODE;
  return qos;
}

class Watch : public Source {
 public:
  Watch(OwnerPointer owner, size_t gid_bytes, Worker &worker, Wake wake)
      : owner_(std::move(owner)),
        picture_(std::make_shared<Picture>(worker, std::move(wake))),
        discovery_(*picture_),
        nodes_(*picture_, gid_bytes) {
    owner_->participant()->set_listener(&discovery_, dds::StatusMask::none());
    dds::Topic *topic = owner_->acquire(kDiscovery);
    if (topic == nullptr) return;
    reader_ = owner_->subscriber()->create_datareader(topic, reader_qos(), &nodes_, dds::StatusMask::data_available());
    picture_->change([](Watched &) {});  // an empty graph is told, too
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
  OwnerPointer owner_;
  std::shared_ptr<Picture> picture_;
  Discovery discovery_;
  Nodes nodes_;
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
