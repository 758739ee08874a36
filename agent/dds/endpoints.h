// SPDX-License-Identifier: Apache-2.0
// Readers and writers of one topic each.
#pragma once

#include <fastdds/rtps/common/Guid.h>
#include <fastdds/rtps/common/WriteParams.h>

#include <chrono>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/DataWriterListener.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "core/middleware.h"
#include "dds/domain.h"
#include "dds/opaque_type.h"

namespace tide::agent {

using DdsGuid = eprosima::fastrtps::rtps::GUID_t;

// The ends of others that DDS has matched with one of ours. Changed by threads of DDS, which then call `wake`.
class Peers {
 public:
  using Clock = std::chrono::steady_clock;

  // contact_limit: a peer that has said nothing for so long is of a kind that never does, and counts as a contact.
  explicit Peers(Wake wake, Clock::duration contact_limit = std::chrono::seconds(3))
      : wake_(std::move(wake)), contact_limit_(contact_limit) {}
  void change(const eprosima::fastdds::dds::InstanceHandle_t &handle, bool matched);
  // The peer has found our end, too; perhaps before it is matched.
  void add_contact(const DdsGuid &peer);
  bool contains(const DdsGuid &peer) const;
  // Whether a participant has one here and one in `other`, and that has found our end there.
  bool meets(const Peers &other) const;

 private:
  std::map<DdsGuid, Clock::time_point> get() const;
  std::set<DdsGuid> get_contacts() const;

  mutable std::mutex mutex_;
  std::map<DdsGuid, Clock::time_point> peers_;  // since when
  std::set<DdsGuid> contacts_;
  Wake wake_;
  Clock::duration contact_limit_;
};

class DdsWriter : public Writer {
 public:
  // peers: null, or kept up to date; outlives the writer. Null when DDS refuses.
  static std::unique_ptr<DdsWriter> make(const NodePointer &node, const Topic &topic, const Qos &qos,
                                         Peers *peers = nullptr);
  ~DdsWriter() override;
  DdsWriter(const DdsWriter &) = delete;
  DdsWriter &operator=(const DdsWriter &) = delete;

  bool write(Bytes payload, bool big_endian) override;
  bool has_reader() const override;
  bool is_acknowledged() override;
  bool write(Bytes payload, bool big_endian, eprosima::fastrtps::rtps::WriteParams &parameters);
  DdsGuid guid() const { return writer_->guid(); }

 private:
  class Listener : public eprosima::fastdds::dds::DataWriterListener {
   public:
    explicit Listener(Peers *peers) : peers_(peers) {}
    void on_publication_matched(eprosima::fastdds::dds::DataWriter *writer,
                                const eprosima::fastdds::dds::PublicationMatchedStatus &status) override;

   private:
    Peers *peers_;
  };

  DdsWriter(NodePointer node, OwnerPointer owner, Topic topic, Peers *peers);

  NodePointer node_;
  OwnerPointer owner_;
  Topic topic_;
  Listener listener_;
  eprosima::fastdds::dds::DataWriter *writer_ = nullptr;
};

class DdsReader : public Source {
 public:
  using Arrival = std::function<void(eprosima::fastdds::dds::DataReader &reader)>;

  // arrival: data has come; by a thread of DDS, also before this returns. peers: as a writer's, with their contacts.
  static std::unique_ptr<DdsReader> make(const NodePointer &node, const Topic &topic, const Qos &qos, Arrival arrival,
                                         Peers *peers = nullptr);
  ~DdsReader() override;
  DdsReader(const DdsReader &) = delete;
  DdsReader &operator=(const DdsReader &) = delete;

  bool take(Sample &sample) override;
  bool take(Sample &sample, eprosima::fastdds::dds::SampleInfo &info);
  DdsGuid guid() const { return reader_->guid(); }

 private:
  class Listener : public eprosima::fastdds::dds::DataReaderListener {
   public:
    Listener(Arrival arrival, Peers *peers) : arrival_(std::move(arrival)), peers_(peers) {}
    void on_data_available(eprosima::fastdds::dds::DataReader *reader) override { arrival_(*reader); }
    void on_subscription_matched(eprosima::fastdds::dds::DataReader *reader,
                                 const eprosima::fastdds::dds::SubscriptionMatchedStatus &status) override;

   private:
    Arrival arrival_;
    Peers *peers_;
  };

  DdsReader(NodePointer node, OwnerPointer owner, Topic topic, Arrival arrival, Peers *peers);
  uint32_t skipped(const eprosima::fastrtps::rtps::SampleIdentity &identity);

  NodePointer node_;
  OwnerPointer owner_;
  Topic topic_;
  Listener listener_;
  eprosima::fastdds::dds::DataReader *reader_ = nullptr;
  bool has_contacts_ = false;
  std::map<DdsGuid, uint64_t> last_;
};

}  // namespace tide::agent
