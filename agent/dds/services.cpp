// SPDX-License-Identifier: Apache-2.0
#include "dds/services.h"

#include <algorithm>
#include <deque>
#include <mutex>

namespace tide::agent {
namespace {

namespace dds = eprosima::fastdds::dds;
namespace rtps = eprosima::fastrtps::rtps;

constexpr size_t kRepliesMaximum = 256;  // of one requester, that nobody has taken; the oldest gives way
constexpr uint8_t kReaderEntity = 0x04;  // RTPS, table 9.1: this bit of an entity's kind is set in readers only

// The replies to all clients of a service come on one topic, so they are looked through as they arrive: those of others
// push none of ours out of DDS while this client's line is slow.
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

  bool is_ours(const DdsGuid &asker, dds::DataReader &reader) const {
    return asker == reader.guid() || asker == writer_guid_;
  }

  // By a thread of DDS.
  void sort(dds::DataReader &reader) {
    IncomingSample incoming;
    dds::SampleInfo info;
    bool any = false;
    while (reader.take_next_sample(&incoming, &info)() == kOkay) {
      const rtps::SampleIdentity &related = info.related_sample_identity;
      if (!info.valid_data || !is_ours(related.writer_guid(), reader)) continue;
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
  Peers request_readers_, reply_writers_;  // of servers
  std::mutex mutex_;
  std::deque<Sample> replies_;
  DdsGuid writer_guid_;
  std::unique_ptr<DdsWriter> writer_;
  std::unique_ptr<DdsReader> reader_;  // last, so that it ends first
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
    // A ROS 2 client names the reader that waits for the reply; others are answered at their writer's name.
    const rtps::GUID_t &named = info.related_sample_identity.writer_guid();
    const rtps::GUID_t &writer = info.sample_identity.writer_guid();
    put_identity(named != rtps::GUID_t::unknown() ? named : writer, info.sample_identity.sequence_number(),
                 sample.identity);
    return true;
  }

  bool reaches(const SampleIdentity &request) override {
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

std::unique_ptr<Requester> make_requester(const NodePointer &node, const Service &service, const Qos &qos,
                                          const Wake &wake) {
  return DdsRequester::make(node, service, qos, wake);
}

std::unique_ptr<Replier> make_replier(const NodePointer &node, const Service &service, const Qos &qos,
                                      const Wake &wake) {
  return DdsReplier::make(node, service, qos, wake);
}

}  // namespace tide::agent
