// SPDX-License-Identifier: Apache-2.0
// UDPv4 through an outbox (outbox.h) and past the contacts (contacts.h), on all interfaces or on loopback alone. There
// its sockets are bound to 127.0.0.1 and nothing else. ROS 2 participants announce the address of a network interface
// even when they are told to stay on this machine; such an address of ours is reached at 127.0.0.1 too.
#pragma once

#include <fastdds/rtps/transport/ChainingTransportDescriptor.h>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>

#include <memory>

#include "dds/contacts.h"
#include "dds/outbox.h"

namespace tide::agent {

class TransportDescriptor : public eprosima::fastdds::rtps::ChainingTransportDescriptor {
 public:
  // outbox: outlives the transports.
  TransportDescriptor(std::shared_ptr<eprosima::fastdds::rtps::UDPv4TransportDescriptor> udp, bool loopback_only,
                      Outbox &outbox, std::shared_ptr<Contacts> contacts);
  eprosima::fastdds::rtps::TransportInterface *create_transport() const override;
  bool is_loopback_only() const { return loopback_only_; }
  Outbox &outbox() const { return outbox_; }
  Contacts &contacts() const { return *contacts_; }

 private:
  bool loopback_only_;
  Outbox &outbox_;
  std::shared_ptr<Contacts> contacts_;
};

}  // namespace tide::agent
