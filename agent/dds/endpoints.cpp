// SPDX-License-Identifier: Apache-2.0
#include "dds/endpoints.h"

#include <fastdds/rtps/common/WriteParams.h>

#include <algorithm>
#include <deque>
#include <fastdds/dds/publisher/DataWriterListener.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/Topic.hpp>

namespace tide::agent {

namespace dds = eprosima::fastdds::dds;
namespace rtps = eprosima::fastrtps::rtps;

// ---- peers ----

void Peers::change(const dds::InstanceHandle_t &handle, bool matched) {
  {
    const std::lock_guard lock(mutex_);
    const DdsGuid peer = rtps::iHandle2GUID(handle);
    if (matched) {
      peers_.try_emplace(peer, Clock::now());
    } else {
      peers_.erase(peer);
      contacts_.erase(peer);
    }
  }
  wake_();
}

void Peers::add_contact(const DdsGuid &peer) {
  constexpr size_t kContactsMaximum = 1024;
  {
    const std::lock_guard lock(mutex_);
    if (contacts_.size() >= kContactsMaximum || !contacts_.insert(peer).second) return;
  }
  wake_();
}

bool Peers::contains(const DdsGuid &peer) const {
  const std::lock_guard lock(mutex_);
  return peers_.contains(peer);
}

bool Peers::meets(const Peers &other) const {
  const std::scoped_lock lock(mutex_, other.mutex_);
  const Clock::time_point limit = Clock::now() - other.contact_limit_;
  return std::any_of(other.peers_.begin(), other.peers_.end(), [&](const auto &peer) {
    if (peer.second > limit && !other.contacts_.contains(peer.first)) return false;
    return std::any_of(peers_.begin(), peers_.end(),
                       [&](const auto &one) { return one.first.guidPrefix == peer.first.guidPrefix; });
  });
}

namespace {

// ---- writers ----

class DdsWriter : public Writer, private dds::DataWriterListener {
 public:
  // `peers`, if not null, is kept up to date with the discovered readers; it must outlive the writer. Returns null if
  // DDS refuses.
  static std::unique_ptr<DdsWriter> make(const NodePointer &node, const Topic &topic, const Qos &qos,
                                         Peers *peers = nullptr) {
    const OwnerPointer owner = node->domain().find_owner(topic);
    dds::Topic *shared = owner == nullptr ? nullptr : owner->acquire(topic);
    if (shared == nullptr) return nullptr;
    auto result = std::unique_ptr<DdsWriter>(new DdsWriter(node, owner, topic, peers));
    const dds::StatusMask mask = peers == nullptr ? dds::StatusMask::none() : dds::StatusMask::publication_matched();
    result->writer_ =
        owner->publisher()->create_datawriter(shared, writer_qos(qos), peers == nullptr ? nullptr : result.get(), mask);
    if (result->writer_ == nullptr) return nullptr;
    node->change(Graph::Side::kWriter, result->guid(), true);
    return result;
  }
  ~DdsWriter() override {
    if (writer_ != nullptr) {
      node_->change(Graph::Side::kWriter, guid(), false);
      writer_->set_listener(nullptr);
      owner_->publisher()->delete_datawriter(writer_);
    }
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
  bool is_acknowledged() override { return writer_->wait_for_acknowledgments({0, 0})() == kOkay; }
  DdsGuid guid() const { return writer_->guid(); }

 private:
  DdsWriter(NodePointer node, OwnerPointer owner, Topic topic, Peers *peers)
      : node_(std::move(node)), owner_(std::move(owner)), topic_(std::move(topic)), peers_(peers) {}
  void on_publication_matched(dds::DataWriter *, const dds::PublicationMatchedStatus &status) override {
    peers_->change(status.last_subscription_handle, status.current_count_change > 0);
  }

  NodePointer node_;
  OwnerPointer owner_;
  Topic topic_;
  Peers *peers_;
  dds::DataWriter *writer_ = nullptr;
};

// ---- readers ----

class DdsReader : public Source, private dds::DataReaderListener {
 public:
  using Arrival = std::function<void(dds::DataReader &reader)>;

  // `arrival` is called for new data by a thread of DDS, possibly before make returns. `peers`, if not null, is kept up
  // to date with the discovered writers and their contacts; it must outlive the reader.
  static std::unique_ptr<DdsReader> make(const NodePointer &node, const Topic &topic, const Qos &qos, Arrival arrival,
                                         Peers *peers = nullptr) {
    const OwnerPointer owner = node->domain().find_owner(topic);
    dds::Topic *shared = owner == nullptr ? nullptr : owner->acquire(topic);
    if (shared == nullptr) return nullptr;
    auto result = std::unique_ptr<DdsReader>(new DdsReader(node, owner, topic, std::move(arrival), peers));
    dds::StatusMask mask = dds::StatusMask::data_available();
    if (peers != nullptr) mask << dds::StatusMask::subscription_matched();
    const auto create = [&] {
      result->reader_ = owner->subscriber()->create_datareader(shared, reader_qos(qos), result.get(), mask);
      return result->reader_ == nullptr ? Contacts::Entity::unknown() : result->guid().entityId;
    };
    if (peers == nullptr) {
      create();
    } else {
      owner->contacts().watch(create, [peers](const DdsGuid &writer) { peers->add_contact(writer); });
    }
    if (result->reader_ == nullptr) return nullptr;
    node->change(Graph::Side::kReader, result->guid(), true);
    return result;
  }
  ~DdsReader() override {
    if (reader_ != nullptr) {
      node_->change(Graph::Side::kReader, guid(), false);
      if (peers_ != nullptr) owner_->contacts().forget(guid().entityId);
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
  DdsGuid guid() const { return reader_->guid(); }

 private:
  DdsReader(NodePointer node, OwnerPointer owner, Topic topic, Arrival arrival, Peers *peers)
      : node_(std::move(node)),
        owner_(std::move(owner)),
        topic_(std::move(topic)),
        arrival_(std::move(arrival)),
        peers_(peers) {}
  void on_data_available(dds::DataReader *reader) override { arrival_(*reader); }
  void on_subscription_matched(dds::DataReader *, const dds::SubscriptionMatchedStatus &status) override {
    peers_->change(status.last_publication_handle, status.current_count_change > 0);
  }

  // Number of samples of the same writer that were lost before this one, by the sequence numbers of DDS.
  uint32_t skipped(const rtps::SampleIdentity &identity) {
    constexpr size_t kKnownWritersMaximum = 64;
    const uint64_t number = identity.sequence_number().to64long();
    if (last_.size() >= kKnownWritersMaximum && !last_.contains(identity.writer_guid())) last_.clear();
    const auto [place, first] = last_.try_emplace(identity.writer_guid(), number);
    if (first) return 0;
    const uint64_t expected = place->second + 1;
    place->second = std::max(place->second, number);
    return number > expected ? static_cast<uint32_t>(std::min<uint64_t>(number - expected, UINT32_MAX)) : 0;
  }

  NodePointer node_;
  OwnerPointer owner_;
  Topic topic_;
  Arrival arrival_;
  Peers *peers_;
  dds::DataReader *reader_ = nullptr;
  std::map<DdsGuid, uint64_t> last_;
};

// ---- services ----

// The replies to all clients of a service arrive on one topic. They are filtered on arrival; otherwise, while this
// client's line is slow, replies to other clients would evict this client's replies from the history of DDS.
class DdsRequester : public Requester {
 public:
  static std::unique_ptr<DdsRequester> make(const NodePointer &node, const Service &service, const Qos &qos,
                                            const Wake &wake) {
    auto result = std::unique_ptr<DdsRequester>(new DdsRequester(wake));
    result->writer_ = DdsWriter::make(node, service.request, qos, &result->request_readers_);
    if (result->writer_ == nullptr) return nullptr;
    result->writer_guid_ = result->writer_->guid();
    DdsRequester *self = result.get();
    result->reader_ = DdsReader::make(
        node, service.reply, qos, [self](dds::DataReader &reader) { self->sort(reader); }, &result->reply_writers_);
    return result->reader_ == nullptr ? nullptr : std::move(result);
  }

  bool is_served() override { return request_readers_.meets(reply_writers_); }

  std::optional<uint64_t> send(Bytes payload, bool big_endian) override {
    rtps::WriteParams parameters;
    parameters.related_sample_identity().writer_guid(reader_->guid());  // where a ROS 2 server sends the reply
    if (!writer_->write(payload, big_endian, parameters)) return std::nullopt;
    return parameters.sample_identity().sequence_number().to64long();
  }

  bool take(Sample &sample) override {
    const std::lock_guard lock(mutex_);
    if (replies_.empty()) return false;
    sample = std::move(replies_.front());
    replies_.pop_front();
    return true;
  }

 private:
  explicit DdsRequester(const Wake &wake) : wake_(wake), request_readers_(wake), reply_writers_(wake) {}

  // Stores this client's replies and drops all others. Called by a thread of DDS.
  void sort(dds::DataReader &reader) {
    constexpr size_t kRepliesMaximum = 256;  // limit of waiting replies, beyond which the oldest one is dropped
    IncomingSample incoming;
    dds::SampleInfo info;
    bool any = false;
    while (reader.take_next_sample(&incoming, &info)() == kOkay) {
      const rtps::SampleIdentity &related = info.related_sample_identity;
      const DdsGuid &asker = related.writer_guid();
      if (!info.valid_data || (asker != reader.guid() && asker != writer_guid_)) continue;
      any = true;
      Sample sample;
      sample.payload = std::move(incoming.payload);
      sample.big_endian = incoming.big_endian;
      sample.request = related.sequence_number().to64long();
      const std::lock_guard lock(mutex_);
      if (replies_.size() >= kRepliesMaximum) replies_.pop_front();
      replies_.push_back(std::move(sample));
    }
    if (any) wake_();
  }

  Wake wake_;
  Peers request_readers_, reply_writers_;  // both of servers
  std::mutex mutex_;
  std::deque<Sample> replies_;
  DdsGuid writer_guid_;
  std::unique_ptr<DdsWriter> writer_;
  std::unique_ptr<DdsReader> reader_;  // declared last, so that it ends first
};

void put_identity(const DdsGuid &guid, const rtps::SequenceNumber_t &number, SampleIdentity &identity) {
  auto place = std::copy_n(guid.guidPrefix.value, sizeof guid.guidPrefix.value, identity.begin());
  place = std::copy_n(guid.entityId.value, sizeof guid.entityId.value, place);
  for (const uint32_t word : {static_cast<uint32_t>(number.high), number.low}) {
    for (uint32_t shift = 0; shift < 32; shift += 8) *place++ = static_cast<uint8_t>(word >> shift);
  }
}

rtps::SampleIdentity get_identity(const SampleIdentity &identity) {
  const auto word_at = [&identity](size_t at) {
    uint32_t word = 0;
    for (size_t octet = 4; octet-- != 0;) word = word << 8 | identity[at + octet];
    return word;
  };
  DdsGuid guid;
  std::copy_n(identity.begin(), sizeof guid.guidPrefix.value, guid.guidPrefix.value);
  std::copy_n(identity.begin() + sizeof guid.guidPrefix.value, sizeof guid.entityId.value, guid.entityId.value);
  rtps::SampleIdentity result;
  result.writer_guid(guid);
  result.sequence_number(rtps::SequenceNumber_t(static_cast<int32_t>(word_at(16)), word_at(20)));
  return result;
}

class DdsReplier : public Replier {
 public:
  static std::unique_ptr<DdsReplier> make(const NodePointer &node, const Service &service, const Qos &qos,
                                          const Wake &wake) {
    auto result = std::unique_ptr<DdsReplier>(new DdsReplier(wake));
    result->writer_ = DdsWriter::make(node, service.reply, qos, &result->reply_readers_);
    if (result->writer_ == nullptr) return nullptr;
    result->reader_ = DdsReader::make(node, service.request, qos, [wake](dds::DataReader &) { wake(); });
    return result->reader_ == nullptr ? nullptr : std::move(result);
  }

  bool take(Sample &sample) override {
    dds::SampleInfo info;
    if (!reader_->take(sample, info)) return false;
    // The reply must name the reader that the request names, as ROS 2 clients do, or else the writer of the request.
    const DdsGuid &named = info.related_sample_identity.writer_guid();
    const DdsGuid &writer = info.sample_identity.writer_guid();
    put_identity(named != DdsGuid::unknown() ? named : writer, info.sample_identity.sequence_number(), sample.identity);
    return true;
  }

  bool reaches(const SampleIdentity &request) override {
    constexpr uint8_t kReaderEntity = 0x04;  // RTPS, table 9.1: this bit of an entity's kind is set in readers only
    const DdsGuid asker = get_identity(request).writer_guid();
    const bool is_reader = (asker.entityId.value[3] & kReaderEntity) != 0;
    return !is_reader || reply_readers_.contains(asker);
  }

  bool send(const SampleIdentity &request, Bytes payload, bool big_endian) override {
    rtps::WriteParams parameters;
    parameters.related_sample_identity(get_identity(request));
    return writer_->write(payload, big_endian, parameters);
  }

 private:
  explicit DdsReplier(const Wake &wake) : reply_readers_(wake) {}

  Peers reply_readers_;
  std::unique_ptr<DdsWriter> writer_;
  std::unique_ptr<DdsReader> reader_;
};

}  // namespace

std::unique_ptr<Writer> make_writer(const NodePointer &node, const Topic &topic, const Qos &qos) {
  return DdsWriter::make(node, topic, qos);
}

std::unique_ptr<Source> make_reader(const NodePointer &node, const Topic &topic, const Qos &qos, const Wake &wake) {
  return DdsReader::make(node, topic, qos, [wake](dds::DataReader &) { wake(); });
}

std::unique_ptr<Requester> make_requester(const NodePointer &node, const Service &service, const Qos &qos,
                                          const Wake &wake) {
  return DdsRequester::make(node, service, qos, wake);
}

std::unique_ptr<Replier> make_replier(const NodePointer &node, const Service &service, const Qos &qos,
                                      const Wake &wake) {
  return DdsReplier::make(node, service, qos, wake);
}

}  // namespace tide::agent
