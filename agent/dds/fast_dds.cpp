// SPDX-License-Identifier: Apache-2.0
#include "dds/fast_dds.h"

#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastrtps/utils/IPLocator.h>

#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/log/Log.hpp>
#include <fastdds/dds/log/StdoutErrConsumer.hpp>

#include "core/domains.h"
#include "dds/endpoints.h"
#include "dds/loopback_transport.h"
#include "dds/services.h"

namespace tide::agent {
namespace {

namespace dds = eprosima::fastdds::dds;
namespace rtps = eprosima::fastrtps::rtps;

constexpr uint32_t kPeersOnLoopback = 32;
constexpr uint32_t kSocketBytes = 4 * 1024 * 1024;

class DdsParticipant : public Participant {
 public:
  explicit DdsParticipant(OwnerPointer owner) : owner_(std::move(owner)) {}

  bool check_topic(const Topic &topic) override { return owner_->check(topic); }
  std::unique_ptr<Writer> create_writer(const Topic &topic, const Qos &qos) override {
    return DdsWriter::make(owner_, topic, qos);
  }
  std::unique_ptr<Source> create_reader(const Topic &topic, const Qos &qos, Wake wake) override {
    return DdsReader::make(owner_, topic, qos, [wake = std::move(wake)](dds::DataReader &) { wake(); });
  }
  std::unique_ptr<Requester> create_requester(const Service &service, const Qos &qos, Wake wake) override {
    return make_requester(owner_, service, qos, std::move(wake));
  }
  std::unique_ptr<Replier> create_replier(const Service &service, const Qos &qos, Wake wake) override {
    return make_replier(owner_, service, qos, std::move(wake));
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
    // Beyond that Fast DDS would end the process. Those that are still being deleted keep their numbers.
    const std::optional<int> number = numbers_.take(participants_maximum(domain));
    if (!number) return nullptr;
    dds::DomainParticipantQos qos = participant_qos(options_, name);
    qos.wire_protocol().participant_id = *number;
    dds::DomainParticipant *participant = dds::DomainParticipantFactory::get_instance()->create_participant(
        static_cast<uint32_t>(domain), qos, nullptr, dds::StatusMask::none());
    if (participant == nullptr) {
      numbers_.give_back(*number);
      return nullptr;
    }
    return std::make_unique<DdsParticipant>(std::make_shared<Owner>(participant, name, options_.gid_bytes, reaper_));
  }

 private:
  DdsOptions options_;
  ParticipantNumbers numbers_;
  Reaper reaper_{numbers_};
};

}  // namespace

std::unique_ptr<Middleware> make_fast_dds(const DdsOptions &options) { return std::make_unique<FastDds>(options); }

}  // namespace tide::agent
