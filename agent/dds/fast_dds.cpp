// SPDX-License-Identifier: Apache-2.0
#include "dds/fast_dds.h"

#include <fastdds/rtps/common/WriteParams.h>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastrtps/utils/IPLocator.h>
#include <algorithm>
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/log/Log.hpp>
#include <fastdds/dds/log/StdoutErrConsumer.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/Topic.hpp>
#include <map>
#include <mutex>

#include "dds/graph.h"
#include "dds/loopback_transport.h"
#include "dds/opaque_type.h"
#include "dds/reaper.h"

namespace tide::agent {
namespace {

namespace dds = eprosima::fastdds::dds;
namespace rtps = eprosima::fastrtps::rtps;
using eprosima::fastrtps::Duration_t;

constexpr int32_t kSamplesMaximum = 512;  // in a history, whatever the depth asked for
constexpr int kOkay = 0;
constexpr uint32_t kPeersOnLoopback = 32;
constexpr uint32_t kSocketBytes = 4 * 1024 * 1024;
constexpr uint32_t kKnownWritersMaximum = 64;

Duration_t milliseconds(uint32_t count) { return {static_cast<int32_t>(count / 1000), (count % 1000) * 1'000'000u}; }

// ---- participants and topics ----

class Owner {  // of a DDS participant; readers and writers keep it alive
 public:
  Owner(dds::DomainParticipant *participant, const std::string &name, size_t gid_bytes, Reaper &reaper)
      : participant_(participant), reaper_(reaper), graph_(participant, name, gid_bytes) {
    publisher_ = participant_->create_publisher(dds::PUBLISHER_QOS_DEFAULT);
    subscriber_ = participant_->create_subscriber(dds::SUBSCRIBER_QOS_DEFAULT);
  }
  ~Owner() { reaper_.bury(participant_); }
  Owner(const Owner &) = delete;
  Owner &operator=(const Owner &) = delete;

  dds::Publisher *publisher() const { return publisher_; }
  dds::Subscriber *subscriber() const { return subscriber_; }
  Graph &graph() { return graph_; }

  bool check(const Topic &topic) const {
    const auto place = topics_.find(topic.name);
    return place == topics_.end() || place->second.type == topic.type;
  }

  dds::Topic *acquire(const Topic &topic) {
    const auto place = topics_.find(topic.name);
    if (place != topics_.end()) {
      if (place->second.type != topic.type) return nullptr;
      place->second.users++;
      return place->second.topic;
    }
    if (types_[topic.type] == 0) {
      dds::TypeSupport(new OpaqueType(topic.type)).register_type(participant_);
    }
    dds::Topic *made = participant_->create_topic(topic.name, topic.type, dds::TOPIC_QOS_DEFAULT);
    if (made == nullptr) return nullptr;
    types_[topic.type]++;
    topics_[topic.name] = {made, topic.type, 1};
    return made;
  }

  void release(const Topic &topic) {
    const auto place = topics_.find(topic.name);
    if (place == topics_.end() || --place->second.users != 0) return;
    participant_->delete_topic(place->second.topic);
    topics_.erase(place);
    if (--types_[topic.type] != 0) return;
    types_.erase(topic.type);
    participant_->unregister_type(topic.type);
  }

 private:
  struct Shared {
    dds::Topic *topic;
    std::string type;
    size_t users;
  };
  dds::DomainParticipant *participant_;
  Reaper &reaper_;
  Graph graph_;
  dds::Publisher *publisher_;
  dds::Subscriber *subscriber_;
  std::map<std::string, Shared> topics_;
  std::map<std::string, size_t> types_;
};
using OwnerPointer = std::shared_ptr<Owner>;

// ---- quality of service ----

template <typename Target>
void apply(const Qos &qos, Target &target) {
  target.reliability().kind = qos.reliable ? dds::RELIABLE_RELIABILITY_QOS : dds::BEST_EFFORT_RELIABILITY_QOS;
  target.durability().kind = qos.transient_local ? dds::TRANSIENT_LOCAL_DURABILITY_QOS : dds::VOLATILE_DURABILITY_QOS;
  const int32_t depth =
      std::clamp(static_cast<int32_t>(std::min<uint32_t>(qos.depth, kSamplesMaximum)), 1, kSamplesMaximum);
  target.history().kind = qos.keep_all ? dds::KEEP_ALL_HISTORY_QOS : dds::KEEP_LAST_HISTORY_QOS;
  target.history().depth = depth;
  const int32_t samples = qos.keep_all ? kSamplesMaximum : depth;
  target.resource_limits().max_instances = 1;
  target.resource_limits().max_samples = samples;
  target.resource_limits().max_samples_per_instance = samples;
  target.resource_limits().allocated_samples = 1;
  if (qos.deadline_ms != 0) target.deadline().period = milliseconds(qos.deadline_ms);
  if (qos.lifespan_ms != 0) target.lifespan().duration = milliseconds(qos.lifespan_ms);
  target.data_sharing().off();
  target.endpoint().history_memory_policy = rtps::DYNAMIC_REUSABLE_MEMORY_MODE;
}

dds::DataWriterQos writer_qos(const Qos &qos) {
  dds::DataWriterQos result = dds::DATAWRITER_QOS_DEFAULT;
  apply(qos, result);
  result.publish_mode().kind = dds::SYNCHRONOUS_PUBLISH_MODE;
  result.reliability().max_blocking_time = milliseconds(1);  // the caller serves all clients
  result.reliable_writer_qos().times.heartbeatPeriod = milliseconds(20);
  result.reliable_writer_qos().times.nackResponseDelay = milliseconds(0);
  result.reliable_writer_qos().times.nackSupressionDuration = milliseconds(0);
  return result;
}

dds::DataReaderQos reader_qos(const Qos &qos) {
  dds::DataReaderQos result = dds::DATAREADER_QOS_DEFAULT;
  apply(qos, result);
  result.reliable_reader_qos().times.initialAcknackDelay = milliseconds(1);
  result.reliable_reader_qos().times.heartbeatResponseDelay = milliseconds(0);
  return result;
}

// ---- endpoints ----

class DdsWriter : public Writer {
 public:
  static std::unique_ptr<DdsWriter> make(OwnerPointer owner, const Topic &topic, const Qos &qos) {
    dds::Topic *shared = owner->acquire(topic);
    if (shared == nullptr) return nullptr;
    dds::DataWriter *writer = owner->publisher()->create_datawriter(shared, writer_qos(qos));
    if (writer != nullptr) return std::unique_ptr<DdsWriter>(new DdsWriter(std::move(owner), topic, writer));
    owner->release(topic);
    return nullptr;
  }
  ~DdsWriter() override {
    owner_->graph().remove_writer(guid());
    owner_->publisher()->delete_datawriter(writer_);
    owner_->release(topic_);
  }
  DdsWriter(const DdsWriter &) = delete;
  DdsWriter &operator=(const DdsWriter &) = delete;

  bool write(Bytes payload, bool big_endian) override {
    OutgoingSample sample{payload, big_endian};
    return writer_->write(&sample);
  }
  bool write(Bytes payload, bool big_endian, rtps::WriteParams &parameters) {
    OutgoingSample sample{payload, big_endian};
    return writer_->write(&sample, parameters);
  }
  bool has_reader() const override {
    dds::PublicationMatchedStatus status;
    return writer_->get_publication_matched_status(status)() == kOkay && status.current_count > 0;
  }
  rtps::GUID_t guid() const { return writer_->guid(); }

 private:
  DdsWriter(OwnerPointer owner, Topic topic, dds::DataWriter *writer)
      : owner_(std::move(owner)), topic_(std::move(topic)), writer_(writer) {
    owner_->graph().add_writer(guid());
  }

  OwnerPointer owner_;
  Topic topic_;
  dds::DataWriter *writer_;
};

class DdsReader : public Source {
 public:
  static std::unique_ptr<DdsReader> make(const OwnerPointer &owner, const Topic &topic, const Qos &qos, Wake wake) {
    dds::Topic *shared = owner->acquire(topic);
    if (shared == nullptr) return nullptr;
    auto result = std::unique_ptr<DdsReader>(new DdsReader(owner, topic, std::move(wake)));
    result->reader_ = owner->subscriber()->create_datareader(shared, reader_qos(qos), &result->listener_,
                                                             dds::StatusMask::data_available());
    if (result->reader_ == nullptr) return nullptr;
    owner->graph().add_reader(result->guid());
    return result;
  }
  ~DdsReader() override {
    if (reader_ != nullptr) {
      owner_->graph().remove_reader(guid());
      reader_->set_listener(nullptr);
      owner_->subscriber()->delete_datareader(reader_);
    }
    owner_->release(topic_);
  }
  DdsReader(const DdsReader &) = delete;
  DdsReader &operator=(const DdsReader &) = delete;

  bool take(Sample &sample) override {
    dds::SampleInfo info;
    return take(sample, info);
  }

  bool take(Sample &sample, dds::SampleInfo &info) {
    IncomingSample incoming;
    while (reader_->take_next_sample(&incoming, &info)() == kOkay) {
      if (!info.valid_data) continue;
      sample.payload = std::move(incoming.payload);
      sample.big_endian = incoming.big_endian;
      sample.skipped = skipped(info.sample_identity);
      return true;
    }
    return false;
  }
  rtps::GUID_t guid() const { return reader_->guid(); }

 private:
  class Listener : public dds::DataReaderListener {
   public:
    explicit Listener(Wake wake) : wake_(std::move(wake)) {}
    void on_data_available(dds::DataReader *) override { wake_(); }

   private:
    Wake wake_;
  };

  DdsReader(OwnerPointer owner, Topic topic, Wake wake)
      : owner_(std::move(owner)), topic_(std::move(topic)), listener_(std::move(wake)) {}

  // How many samples of this writer never came, by the numbers that DDS gives them.
  uint32_t skipped(const rtps::SampleIdentity &identity) {
    const uint64_t number = identity.sequence_number().to64long();
    if (last_.size() >= kKnownWritersMaximum && !last_.contains(identity.writer_guid())) last_.clear();
    const auto [place, first] = last_.try_emplace(identity.writer_guid(), number);
    if (first) return 0;
    const uint64_t expected = place->second + 1;
    place->second = std::max(place->second, number);
    return number > expected ? static_cast<uint32_t>(std::min<uint64_t>(number - expected, UINT32_MAX)) : 0;
  }

  OwnerPointer owner_;
  Topic topic_;
  Listener listener_;
  dds::DataReader *reader_ = nullptr;
  std::map<rtps::GUID_t, uint64_t> last_;
};

class DdsRequester : public Requester {
 public:
  DdsRequester(std::unique_ptr<DdsWriter> writer, std::unique_ptr<DdsReader> reader)
      : writer_(std::move(writer)), reader_(std::move(reader)) {}

  std::optional<uint64_t> send(Bytes payload, bool big_endian) override {
    rtps::WriteParams parameters;
    parameters.related_sample_identity().writer_guid(reader_->guid());  // where a ROS 2 server sends the reply
    if (!writer_->write(payload, big_endian, parameters)) return std::nullopt;
    return parameters.sample_identity().sequence_number().to64long();
  }

  bool take(Sample &sample) override {
    dds::SampleInfo info;
    while (reader_->take(sample, info)) {
      const rtps::SampleIdentity &related = info.related_sample_identity;
      if (related.writer_guid() != writer_->guid() && related.writer_guid() != reader_->guid()) continue;
      sample.request = related.sequence_number().to64long();
      sample.skipped = 0;
      return true;
    }
    return false;
  }

 private:
  std::unique_ptr<DdsWriter> writer_;
  std::unique_ptr<DdsReader> reader_;
};

void put_identity(const rtps::GUID_t &guid, const rtps::SequenceNumber_t &number, SampleIdentity &identity) {
  auto place = std::copy_n(guid.guidPrefix.value, sizeof guid.guidPrefix.value, identity.begin());
  place = std::copy_n(guid.entityId.value, sizeof guid.entityId.value, place);
  for (const uint32_t word : {static_cast<uint32_t>(number.high), number.low}) {
    for (uint32_t shift = 0; shift < 32; shift += 8) *place++ = static_cast<uint8_t>(word >> shift);
  }
}

uint32_t get_word(const SampleIdentity &identity, size_t at) {
  uint32_t word = 0;
  for (size_t octet = 4; octet-- != 0;) word = word << 8 | identity[at + octet];
  return word;
}

rtps::SampleIdentity get_identity(const SampleIdentity &identity) {
  rtps::GUID_t guid;
  std::copy_n(identity.begin(), sizeof guid.guidPrefix.value, guid.guidPrefix.value);
  std::copy_n(identity.begin() + sizeof guid.guidPrefix.value, sizeof guid.entityId.value, guid.entityId.value);
  rtps::SampleIdentity result;
  result.writer_guid(guid);
  result.sequence_number(rtps::SequenceNumber_t(static_cast<int32_t>(get_word(identity, 16)), get_word(identity, 20)));
  return result;
}

class DdsReplier : public Replier {
 public:
  DdsReplier(std::unique_ptr<DdsReader> reader, std::unique_ptr<DdsWriter> writer)
      : reader_(std::move(reader)), writer_(std::move(writer)) {}

  bool take(Sample &sample) override {
    dds::SampleInfo info;
    if (!reader_->take(sample, info)) return false;
    // A ROS 2 client names the reader that waits for the reply; others are answered at their writer's name.
    const rtps::GUID_t &named = info.related_sample_identity.writer_guid();
    const rtps::GUID_t &writer = info.sample_identity.writer_guid();
    put_identity(named != rtps::GUID_t::unknown() ? named : writer, info.sample_identity.sequence_number(),
                 sample.identity);
    return true;
  }

  bool send(const SampleIdentity &request, Bytes payload, bool big_endian) override {
    rtps::WriteParams parameters;
    parameters.related_sample_identity(get_identity(request));
    return writer_->write(payload, big_endian, parameters);
  }

 private:
  std::unique_ptr<DdsReader> reader_;
  std::unique_ptr<DdsWriter> writer_;
};

class DdsParticipant : public Participant {
 public:
  explicit DdsParticipant(OwnerPointer owner) : owner_(std::move(owner)) {}

  bool check_topic(const Topic &topic) override { return owner_->check(topic); }
  std::unique_ptr<Writer> create_writer(const Topic &topic, const Qos &qos) override {
    return DdsWriter::make(owner_, topic, qos);
  }
  std::unique_ptr<Source> create_reader(const Topic &topic, const Qos &qos, Wake wake) override {
    return DdsReader::make(owner_, topic, qos, std::move(wake));
  }
  std::unique_ptr<Requester> create_requester(const Service &service, const Qos &qos, Wake wake) override {
    auto reader = DdsReader::make(owner_, service.reply, qos, std::move(wake));
    auto writer = DdsWriter::make(owner_, service.request, qos);
    if (reader == nullptr || writer == nullptr) return nullptr;
    return std::make_unique<DdsRequester>(std::move(writer), std::move(reader));
  }
  std::unique_ptr<Replier> create_replier(const Service &service, const Qos &qos, Wake wake) override {
    auto writer = DdsWriter::make(owner_, service.reply, qos);
    auto reader = DdsReader::make(owner_, service.request, qos, std::move(wake));
    if (reader == nullptr || writer == nullptr) return nullptr;
    return std::make_unique<DdsReplier>(std::move(reader), std::move(writer));
  }

 private:
  OwnerPointer owner_;
};

dds::DomainParticipantQos participant_qos(const DdsOptions &options, const std::string &name) {
  dds::DomainParticipantQos qos = dds::PARTICIPANT_QOS_DEFAULT;
  qos.name(name.c_str());
  auto transport = std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>();
  transport->maxInitialPeersRange = kPeersOnLoopback;
  transport->sendBufferSize = kSocketBytes;
  transport->receiveBufferSize = kSocketBytes;
  // The segments of shared memory differ between versions of Fast DDS, so it is left out even on one machine.
  qos.transport().use_builtin_transports = false;
  if (options.loopback_only) {
    qos.transport().user_transports.push_back(std::make_shared<LoopbackTransportDescriptor>(transport));
  } else {
    qos.transport().user_transports.push_back(transport);
  }
  auto &builtin = qos.wire_protocol().builtin;
  builtin.readerHistoryMemoryPolicy = rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
  builtin.writerHistoryMemoryPolicy = rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
  rtps::Locator_t peer;  // without a port: those of the first participants of a machine
  rtps::IPLocator::setIPv4(peer, "127.0.0.1");
  builtin.initialPeersList.push_back(peer);
  if (!options.loopback_only) {
    rtps::Locator_t group;
    rtps::IPLocator::setIPv4(group, "239.255.0.1");
    builtin.initialPeersList.push_back(group);
  }
  const std::string enclave = "enclave=/;";  // by which ROS 2 knows its own
  qos.user_data().data_vec({enclave.begin(), enclave.end()});
  return qos;
}

class FastDds : public Middleware {
 public:
  explicit FastDds(const DdsOptions &options) : options_(options) {
    dds::Log::ClearConsumers();
    dds::Log::RegisterConsumer(std::make_unique<dds::StdoutErrConsumer>());
    dds::Log::SetVerbosity(options.verbose ? dds::Log::Kind::Warning : dds::Log::Kind::Error);
  }

  std::unique_ptr<Participant> create_participant(int domain, const std::string &name) override {
    dds::DomainParticipant *participant = dds::DomainParticipantFactory::get_instance()->create_participant(
        static_cast<uint32_t>(domain), participant_qos(options_, name), nullptr, dds::StatusMask::none());
    if (participant == nullptr) return nullptr;
    return std::make_unique<DdsParticipant>(std::make_shared<Owner>(participant, name, options_.gid_bytes, reaper_));
  }

 private:
  DdsOptions options_;
  Reaper reaper_;
};

}  // namespace

std::unique_ptr<Middleware> make_fast_dds(const DdsOptions &options) { return std::make_unique<FastDds>(options); }

}  // namespace tide::agent
