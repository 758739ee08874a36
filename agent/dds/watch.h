// SPDX-License-Identifier: Apache-2.0
// The ROS 2 graph for clients that ask for it, as micro-ROS has it: who reads ros_to_microros_graph gets a
// micro_ros_msgs/Graph with all nodes of the domain and their topics and services, and a new one after changes. It
// watches with a participant of its own, which is there while somebody reads.
#pragma once

#include <memory>

#include "core/middleware.h"
#include "dds/domain.h"

namespace tide::agent {

bool is_graph(const Topic &topic);
// wake: there is a newer graph; from any thread. Null: DDS refuses.
std::unique_ptr<Source> make_watch(const NodePointer &node, Worker &worker, Wake wake);

}  // namespace tide::agent
