// SPDX-License-Identifier: Apache-2.0
#include "dds/fast_dds.h"

#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastrtps/attributes/LibrarySettingsAttributes.h>
#include <fastrtps/utils/IPLocator.h>
#include <fastrtps/xmlparser/XMLProfileManager.h>

#include <fastdds/dds/domain/DomainParticipantFactory.hpp>

#include "core/domains.h"
#include "dds/domain.h"
#include "dds/log.h"
#include "dds/outbox.h"
#include "dds/reaper.h"
#include "dds/shared_node.h"
#include "dds/transport.h"

namespace tide::agent {
namespace {

namespace dds = eprosima::fastdds::dds;
namespace rtps = eprosima::fastrtps::rtps;

constexpr uint32_t kPeersOnLoopback = 32;
constexpr const char *kSharedName = "tide-agent";
constexpr uint32_t kSocketBytes = 4 * 1024 * 1024;
// A node that comes often misses the answer to its first announcement, as it is not ready for it, and knows nobody
// until the next one: three seconds by default. With many participants that would be many messages.
constexpr int32_t kAnnouncementMilliseconds = 500;
constexpr uint32_t kFirstAnnouncementMilliseconds = 20;  // the first is not sent (contacts.h)

dds::DomainParticipantQos participant_qos(const DdsOptions &options, const std::string &name, Outbox &outbox,
                                          const std::shared_ptr<Contacts> &contacts) {
  dds::DomainParticipantQos qos = dds::PARTICIPANT_QOS_DEFAULT;
  qos.name(name.c_str());
  auto transport = std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>();
  transport->maxInitialPeersRange = kPeersOnLoopback;
  transport->sendBufferSize = kSocketBytes;
  transport->receiveBufferSize = kSocketBytes;
  // The segments of shared memory differ between versions of Fast DDS, so it is left out even on one machine.
  qos.transport().use_builtin_transports = false;
  qos.transport().user_transports.push_back(
      std::make_shared<TransportDescriptor>(transport, options.loopback_only, outbox, contacts));
  auto &builtin = qos.wire_protocol().builtin;
  builtin.readerHistoryMemoryPolicy = rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
  builtin.writerHistoryMemoryPolicy = rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
  rtps::Locator_t peer;  // without a port: those of the first participants of a machine
  rtps::IPLocator::setIPv4(peer, "127.0.0.1");
  builtin.initialPeersList.push_back(peer);
  builtin.discovery_config.initial_announcements.period = {0, kFirstAnnouncementMilliseconds * 1'000'000u};
  if (options.shared_participants)
    builtin.discovery_config.leaseDuration_announcementperiod = {0, kAnnouncementMilliseconds * 1'000'000u};
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
    log_to_standard_error(options.verbose);
    // Fast DDS 2.9 hands samples to readers of the same process without keeping them alive: one that a thread deletes
    // meanwhile is written to. Over the transport that cannot happen.
    eprosima::fastrtps::LibrarySettingsAttributes settings;
    settings.intraprocess_delivery = eprosima::fastrtps::INTRAPROCESS_OFF;
    eprosima::fastrtps::xmlparser::XMLProfileManager::library_settings(settings);
  }

  std::unique_ptr<Participant> create_participant(int domain, const std::string &name) override {
    if (options_.shared_participants) {
      return make_shared_node(worker_, outbox_, [this, domain, name]() -> NodePointer {
        std::shared_ptr<Domain> shared = domains_.enter(domain);
        if (shared == nullptr) return nullptr;
        return std::make_shared<Node>(std::move(shared), name, [this, domain] { domains_.left(domain); });
      });
    }
    return make_shared_node(worker_, outbox_, [this, domain, name]() -> NodePointer {
      std::shared_ptr<Domain> own = make_domain(domain, name);
      return own == nullptr ? nullptr : std::make_shared<Node>(std::move(own), name, nullptr);
    });
  }

  void flush() override { outbox_.flush(); }

 private:
  std::shared_ptr<Domain> make_domain(int domain, const std::string &name) {
    return Domain::make([this, domain, name] { return make_owner(domain, name); }, options_.gid_bytes, worker_);
  }

  OwnerPointer make_owner(int domain, const std::string &name) {
    // Beyond that Fast DDS would end the process. Those that are still being deleted keep their numbers.
    const std::optional<int> number = numbers_.take(participants_maximum(domain));
    if (!number) return nullptr;
    const auto contacts = std::make_shared<Contacts>();
    dds::DomainParticipantQos qos = participant_qos(options_, name, outbox_, contacts);
    qos.wire_protocol().participant_id = *number;
    dds::DomainParticipant *participant = dds::DomainParticipantFactory::get_instance()->create_participant(
        static_cast<uint32_t>(domain), qos, nullptr, dds::StatusMask::none());
    if (participant == nullptr) {
      numbers_.give_back(*number);
      return nullptr;
    }
    contacts->open();
    return std::make_shared<Owner>(participant, contacts, reaper_);
  }

  DdsOptions options_;
  ParticipantNumbers numbers_;
  Outbox outbox_;
  Reaper reaper_{numbers_};
  SharedDomains domains_{[this](int domain) { return make_domain(domain, kSharedName); }, worker_};
  Worker worker_;  // last, so that it ends first
};

}  // namespace

std::unique_ptr<Middleware> make_fast_dds(const DdsOptions &options) { return std::make_unique<FastDds>(options); }

}  // namespace tide::agent
