// SPDX-License-Identifier: Apache-2.0
// What a client's participant is in DDS: a node of a domain that clients share, or of one of its own. Its entities are
// made and deleted by the worker.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/middleware.h"
#include "dds/domain.h"
#include "dds/outbox.h"
#include "dds/worker.h"

namespace tide::agent {

// The domains that clients share; a domain stays for a while when its last client has gone, so that one that comes back
// finds its peers known. Used by the worker's thread only; outlives the worker.
class SharedDomains {
 public:
  // Null: DDS refuses.
  using Make = std::function<std::shared_ptr<Domain>(int domain)>;

  SharedDomains(Make make, Worker &worker) : make_(std::move(make)), worker_(worker) {}
  std::shared_ptr<Domain> enter(int domain);
  void left(int domain);

 private:
  struct Entry {
    std::shared_ptr<Domain> domain;
    Worker::Clock::time_point left{};
  };
  void release(int domain);

  Make make_;
  Worker &worker_;
  std::map<int, Entry> entries_;
};

// Null: DDS refuses.
using EnterDomain = std::function<NodePointer()>;

std::unique_ptr<Participant> make_shared_node(Worker &worker, Outbox &outbox, EnterDomain enter);

}  // namespace tide::agent
