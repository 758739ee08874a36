// SPDX-License-Identifier: Apache-2.0
#include "dds/transport.h"

#include <fastdds/rtps/transport/ChainingTransport.h>
#include <fastrtps/utils/IPLocator.h>

namespace tide::agent {
namespace {

namespace transports = eprosima::fastdds::rtps;
using eprosima::fastrtps::rtps::IPLocator;
using eprosima::fastrtps::rtps::Locator_t;
using eprosima::fastrtps::rtps::LocatorsIterator;
using eprosima::fastrtps::rtps::octet;
using eprosima::fastrtps::rtps::SenderResource;

constexpr const char *kLoopback = "127.0.0.1";
// Loopback takes longer ones, but a reader's socket has room for about 200 kB; Ethernet takes no more in one packet.
constexpr size_t kLoopbackDatagramBytes = 16384, kNetworkDatagramBytes = 1472;

class Transport : public transports::ChainingTransport {
 public:
  explicit Transport(const TransportDescriptor &descriptor)
      : ChainingTransport(descriptor),
        descriptor_(descriptor),
        outlet_(descriptor.outbox(), descriptor.is_loopback_only() ? kLoopbackDatagramBytes : kNetworkDatagramBytes) {}

  transports::TransportDescriptorInterface *get_configuration() override { return &descriptor_; }

  bool transform_remote_locator(const Locator_t &remote, Locator_t &result) const override {
    if (!low_level_transport_->IsLocatorSupported(remote)) return false;
    if (!descriptor_.is_loopback_only() || !low_level_transport_->is_local_locator(remote))
      return low_level_transport_->transform_remote_locator(remote, result);
    result = remote;
    IPLocator::setIPv4(result, kLoopback);
    return true;
  }

  bool send(SenderResource *sender, const octet *bytes, uint32_t count, LocatorsIterator *first, LocatorsIterator *last,
            const std::chrono::steady_clock::time_point &timeout) override {
    if (!descriptor_.contacts().is_open()) return true;
    return outlet_.send(*sender, {bytes, count}, *first, *last, timeout);
  }

  void receive(transports::TransportReceiverInterface *receiver, const octet *bytes, uint32_t count,
               const Locator_t &local, const Locator_t &remote) override {
    descriptor_.contacts().receive({bytes, count});
    receiver->OnDataReceived(bytes, count, local, remote);
  }

  void shutdown() override { low_level_transport_->shutdown(); }

 private:
  TransportDescriptor descriptor_;
  Outlet outlet_;
};

std::shared_ptr<transports::UDPv4TransportDescriptor> confined(
    std::shared_ptr<transports::UDPv4TransportDescriptor> udp, bool loopback_only) {
  if (loopback_only) udp->interfaceWhiteList.assign(1, kLoopback);
  return udp;
}

}  // namespace

TransportDescriptor::TransportDescriptor(std::shared_ptr<transports::UDPv4TransportDescriptor> udp, bool loopback_only,
                                         Outbox &outbox, std::shared_ptr<Contacts> contacts)
    : ChainingTransportDescriptor(confined(std::move(udp), loopback_only)),
      loopback_only_(loopback_only),
      outbox_(outbox),
      contacts_(std::move(contacts)) {}

transports::TransportInterface *TransportDescriptor::create_transport() const { return new Transport(*this); }

}  // namespace tide::agent
