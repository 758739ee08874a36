// SPDX-License-Identifier: Apache-2.0
#include "dds/endpoints.h"

#include <algorithm>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/Topic.hpp>

namespace tide::agent {
namespace {

namespace dds = eprosima::fastdds::dds;
namespace rtps = eprosima::fastrtps::rtps;
using eprosima::fastrtps::Duration_t;

constexpr int32_t kSamplesMaximum = 512;  // in a history, whatever the depth asked for
// A reader's history has room for what comes before the agent's thread looks, which applies the depth (readings.cpp).
constexpr uint32_t kReaderSamples = 256;
constexpr uint32_t kKnownWritersMaximum = 64;
constexpr size_t kContactsMaximum = 1024;

Duration_t milliseconds(uint32_t count) { return {static_cast<int32_t>(count / 1000), (count % 1000) * 1'000'000u}; }

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
  // Of zero, a timer of DDS would end after each sample: its thread wakes, and takes the lock of the next one.
  result.reliable_writer_qos().times.nackSupressionDuration = milliseconds(1);
  return result;
}

dds::DataReaderQos reader_qos(const Qos &qos) {
  dds::DataReaderQos result = dds::DATAREADER_QOS_DEFAULT;
  Qos roomy = qos;
  // What a transient local writer keeps for a late reader is cut to that reader's depth by DDS alone.
  if (!qos.transient_local) roomy.depth = std::max(qos.depth, kReaderSamples);
  apply(roomy, result);
  result.reliable_reader_qos().times.initialAcknackDelay = milliseconds(1);
  result.reliable_reader_qos().times.heartbeatResponseDelay = milliseconds(0);
  return result;
}

}  // namespace

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

std::map<DdsGuid, Peers::Clock::time_point> Peers::get() const {
  const std::lock_guard lock(mutex_);
  return peers_;
}

std::set<DdsGuid> Peers::get_contacts() const {
  const std::lock_guard lock(mutex_);
  return contacts_;
}

bool Peers::meets(const Peers &other) const {
  const auto here = get(), there = other.get();
  const std::set<DdsGuid> contacts = other.get_contacts();
  const Clock::time_point limit = Clock::now() - other.contact_limit_;
  return std::any_of(there.begin(), there.end(), [&](const auto &peer) {
    if (peer.second > limit && !contacts.contains(peer.first)) return false;
    return std::any_of(here.begin(), here.end(),
                       [&](const auto &one) { return one.first.guidPrefix == peer.first.guidPrefix; });
  });
}

// ---- writers ----

DdsWriter::DdsWriter(NodePointer node, OwnerPointer owner, Topic topic, Peers *peers)
    : node_(std::move(node)), owner_(std::move(owner)), topic_(std::move(topic)), listener_(peers) {}

std::unique_ptr<DdsWriter> DdsWriter::make(const NodePointer &node, const Topic &topic, const Qos &qos, Peers *peers) {
  const OwnerPointer owner = node->domain().find_owner(topic);
  dds::Topic *shared = owner == nullptr ? nullptr : owner->acquire(topic);
  if (shared == nullptr) return nullptr;
  auto result = std::unique_ptr<DdsWriter>(new DdsWriter(node, owner, topic, peers));
  const dds::StatusMask mask = peers == nullptr ? dds::StatusMask::none() : dds::StatusMask::publication_matched();
  result->writer_ = owner->publisher()->create_datawriter(shared, writer_qos(qos),
                                                          peers == nullptr ? nullptr : &result->listener_, mask);
  if (result->writer_ == nullptr) return nullptr;
  node->add_writer(result->guid());
  return result;
}

DdsWriter::~DdsWriter() {
  if (writer_ != nullptr) {
    node_->remove_writer(guid());
    writer_->set_listener(nullptr);
    owner_->publisher()->delete_datawriter(writer_);
  }
  owner_->release(topic_);
}

bool DdsWriter::write(Bytes payload, bool big_endian) {
  OutgoingSample sample{payload, big_endian};
  return writer_->write(&sample);
}

bool DdsWriter::has_reader() const {
  dds::PublicationMatchedStatus status;
  return writer_->get_publication_matched_status(status)() == kOkay && status.current_count > 0;
}

bool DdsWriter::is_acknowledged() { return writer_->wait_for_acknowledgments({0, 0})() == kOkay; }

bool DdsWriter::write(Bytes payload, bool big_endian, rtps::WriteParams &parameters) {
  OutgoingSample sample{payload, big_endian};
  return writer_->write(&sample, parameters);
}

void DdsWriter::Listener::on_publication_matched(dds::DataWriter *, const dds::PublicationMatchedStatus &status) {
  peers_->change(status.last_subscription_handle, status.current_count_change > 0);
}

// ---- readers ----

DdsReader::DdsReader(NodePointer node, OwnerPointer owner, Topic topic, Arrival arrival, Peers *peers)
    : node_(std::move(node)),
      owner_(std::move(owner)),
      topic_(std::move(topic)),
      listener_(std::move(arrival), peers) {}

std::unique_ptr<DdsReader> DdsReader::make(const NodePointer &node, const Topic &topic, const Qos &qos, Arrival arrival,
                                           Peers *peers) {
  const OwnerPointer owner = node->domain().find_owner(topic);
  dds::Topic *shared = owner == nullptr ? nullptr : owner->acquire(topic);
  if (shared == nullptr) return nullptr;
  auto result = std::unique_ptr<DdsReader>(new DdsReader(node, owner, topic, std::move(arrival), peers));
  dds::StatusMask mask = dds::StatusMask::data_available();
  if (peers != nullptr) mask << dds::StatusMask::subscription_matched();
  const auto create = [&] {
    result->reader_ = owner->subscriber()->create_datareader(shared, reader_qos(qos), &result->listener_, mask);
    return result->reader_ == nullptr ? Contacts::Entity::unknown() : result->guid().entityId;
  };
  if (peers == nullptr) {
    create();
  } else {
    result->has_contacts_ = true;
    owner->contacts().watch(create, [peers](const DdsGuid &writer) { peers->add_contact(writer); });
  }
  if (result->reader_ == nullptr) return nullptr;
  node->add_reader(result->guid());
  return result;
}

DdsReader::~DdsReader() {
  if (reader_ != nullptr) {
    node_->remove_reader(guid());
    if (has_contacts_) owner_->contacts().forget(guid().entityId);
    reader_->set_listener(nullptr);
    owner_->subscriber()->delete_datareader(reader_);
  }
  owner_->release(topic_);
}

bool DdsReader::take(Sample &sample) {
  dds::SampleInfo info;
  return take(sample, info);
}

bool DdsReader::take(Sample &sample, dds::SampleInfo &info) {
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

// How many samples of this writer never came, by the numbers that DDS gives them.
uint32_t DdsReader::skipped(const rtps::SampleIdentity &identity) {
  const uint64_t number = identity.sequence_number().to64long();
  if (last_.size() >= kKnownWritersMaximum && !last_.contains(identity.writer_guid())) last_.clear();
  const auto [place, first] = last_.try_emplace(identity.writer_guid(), number);
  if (first) return 0;
  const uint64_t expected = place->second + 1;
  place->second = std::max(place->second, number);
  return number > expected ? static_cast<uint32_t>(std::min<uint64_t>(number - expected, UINT32_MAX)) : 0;
}

void DdsReader::Listener::on_subscription_matched(dds::DataReader *, const dds::SubscriptionMatchedStatus &status) {
  peers_->change(status.last_publication_handle, status.current_count_change > 0);
}

}  // namespace tide::agent
