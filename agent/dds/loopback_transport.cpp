// SPDX-License-Identifier: Apache-2.0
#include "dds/loopback_transport.h"

#include <fastdds/rtps/transport/ChainingTransport.h>
#include <fastrtps/utils/IPLocator.h>

namespace tide::agent {
namespace {

namespace rtps = eprosima::fastdds::rtps;
using eprosima::fastrtps::rtps::IPLocator;
using eprosima::fastrtps::rtps::Locator_t;
using eprosima::fastrtps::rtps::LocatorsIterator;
using eprosima::fastrtps::rtps::octet;
using eprosima::fastrtps::rtps::SenderResource;

constexpr const char *kLoopback = "127.0.0.1";

class LoopbackTransport : public rtps::ChainingTransport {
 public:
  explicit LoopbackTransport(const LoopbackTransportDescriptor &descriptor)
      : ChainingTransport(descriptor), descriptor_(descriptor) {}

  rtps::TransportDescriptorInterface *get_configuration() override { return &descriptor_; }

  bool transform_remote_locator(const Locator_t &remote, Locator_t &result) const override {
    if (!low_level_transport_->IsLocatorSupported(remote)) return false;
    if (!low_level_transport_->is_local_locator(remote))
      return low_level_transport_->transform_remote_locator(remote, result);
    result = remote;
    IPLocator::setIPv4(result, kLoopback);
    return true;
  }

  bool send(SenderResource *sender, const octet *bytes, uint32_t count, LocatorsIterator *first, LocatorsIterator *last,
            const std::chrono::steady_clock::time_point &timeout) override {
    return sender->send(bytes, count, first, last, timeout);
  }

  void receive(rtps::TransportReceiverInterface *receiver, const octet *bytes, uint32_t count, const Locator_t &local,
               const Locator_t &remote) override {
    receiver->OnDataReceived(bytes, count, local, remote);
  }

  void shutdown() override { low_level_transport_->shutdown(); }

 private:
  LoopbackTransportDescriptor descriptor_;
};

std::shared_ptr<rtps::UDPv4TransportDescriptor> confined(std::shared_ptr<rtps::UDPv4TransportDescriptor> udp) {
  udp->interfaceWhiteList.assign(1, kLoopback);
  return udp;
}

}  // namespace

LoopbackTransportDescriptor::LoopbackTransportDescriptor(std::shared_ptr<rtps::UDPv4TransportDescriptor> udp)
    : ChainingTransportDescriptor(confined(std::move(udp))) {}

rtps::TransportInterface *LoopbackTransportDescriptor::create_transport() const { return new LoopbackTransport(*this); }

}  // namespace tide::agent
