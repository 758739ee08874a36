// SPDX-License-Identifier: Apache-2.0
// UDPv4 whose sockets are bound to 127.0.0.1 and nothing else. ROS 2 participants announce the address of a network
// interface even when they are told to stay on this machine; such an address of ours is reached at 127.0.0.1 too.
#pragma once

#include <fastdds/rtps/transport/ChainingTransportDescriptor.h>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>

#include <memory>

namespace tide::agent {

class LoopbackTransportDescriptor : public eprosima::fastdds::rtps::ChainingTransportDescriptor {
 public:
  explicit LoopbackTransportDescriptor(std::shared_ptr<eprosima::fastdds::rtps::UDPv4TransportDescriptor> udp);
  eprosima::fastdds::rtps::TransportInterface *create_transport() const override;
};

}  // namespace tide::agent
