// SPDX-License-Identifier: Apache-2.0
// A DDS domain as some nodes share it: one participant, their topics and their entry in the ROS 2 graph. Where a topic
// is there with another type it is made in a spare participant, since Fast DDS has one type for a topic of a
// participant: no client keeps others from a topic by using it first. Used by the worker's thread only.
#pragma once

#include <fastdds/rtps/common/Guid.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dds/graph.h"
#include "dds/owner.h"
#include "dds/worker.h"

namespace tide::agent {

using OwnerPointer = std::shared_ptr<Owner>;

class Domain : public std::enable_shared_from_this<Domain> {
 public:
  // Null: DDS refuses.
  using MakeOwner = std::function<OwnerPointer()>;

  // Null: DDS refuses.
  static std::shared_ptr<Domain> make(const MakeOwner &make_owner, size_t gid_bytes, Worker &worker);

  // Who has the topic with this type, or may get it; null: too many types of one topic, or DDS refuses.
  OwnerPointer find_owner(const Topic &topic);
  Graph &graph() { return graph_; }
  // A participant of this domain for one user. Null: DDS refuses.
  OwnerPointer make_owner() const { return make_owner_(); }
  size_t gid_bytes() const { return gid_bytes_; }

 private:
  Domain(MakeOwner make_owner, OwnerPointer owner, size_t gid_bytes, Worker &worker);
  void publish_at(Worker::Clock::time_point time);

  MakeOwner make_owner_;
  size_t gid_bytes_;
  Worker &worker_;
  OwnerPointer owner_;
  std::vector<std::weak_ptr<Owner>> spares_;  // kept by their readers and writers
  Graph graph_;
};

// One node of a domain, of one client.
class Node {
 public:
  // left: its domain is one node less; called when it lets go of it.
  Node(std::shared_ptr<Domain> domain, const std::string &name, std::function<void()> left)
      : domain_(std::move(domain)), place_(domain_->graph().add(name)), left_(std::move(left)) {}
  ~Node() {
    domain_->graph().remove(place_);
    domain_.reset();
    if (left_) left_();
  }
  Node(const Node &) = delete;
  Node &operator=(const Node &) = delete;

  Domain &domain() { return *domain_; }
  void add_reader(const Graph::Guid &reader) { domain_->graph().add_reader(place_, reader); }
  void add_writer(const Graph::Guid &writer) { domain_->graph().add_writer(place_, writer); }
  void remove_reader(const Graph::Guid &reader) { domain_->graph().remove_reader(place_, reader); }
  void remove_writer(const Graph::Guid &writer) { domain_->graph().remove_writer(place_, writer); }

 private:
  std::shared_ptr<Domain> domain_;
  Graph::Place place_;
  std::function<void()> left_;
};
using NodePointer = std::shared_ptr<Node>;

}  // namespace tide::agent
