// SPDX-License-Identifier: Apache-2.0
// Readers and writers of topics, and clients and servers of services. A service consists of a topic for requests and
// one for replies, as in rmw_fastrtps. The related sample of a request names the reader for which the reply is meant;
// the related sample of the reply names this reader and the number of the request.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "core/middleware.h"
#include "dds/domain.h"

namespace tide::agent {

// The remote endpoints (peers) that DDS has matched with one endpoint of this agent. Threads of DDS change this list
// and then call `wake`.
class Peers {
 public:
  using Clock = std::chrono::steady_clock;

  // contact_limit: after this time, a matched peer counts as a contact (add_contact) even if it has sent nothing.
  explicit Peers(Wake wake, Clock::duration contact_limit = std::chrono::seconds(3))
      : wake_(std::move(wake)), contact_limit_(contact_limit) {}
  void change(const eprosima::fastdds::dds::InstanceHandle_t &handle, bool matched);
  // Call this when the peer is known to have discovered the agent's endpoint, possibly before the match.
  void add_contact(const DdsGuid &peer);
  bool contains(const DdsGuid &peer) const;
  // True if some remote participant has a peer in this list and one in `other`, and both peers have discovered the
  // agent's endpoints.
  bool meets(const Peers &other) const;

 private:
  mutable std::mutex mutex_;
  std::map<DdsGuid, Clock::time_point> peers_;  // each with the time of its match
  std::set<DdsGuid> contacts_;
  Wake wake_;
  Clock::duration contact_limit_;
};

// Returns null if DDS refuses. `wake` is as for Participant; it may be called before these functions return.
std::unique_ptr<Writer> make_writer(const NodePointer &node, const Topic &topic, const Qos &qos);
std::unique_ptr<Source> make_reader(const NodePointer &node, const Topic &topic, const Qos &qos, const Wake &wake);
std::unique_ptr<Requester> make_requester(const NodePointer &node, const Service &service, const Qos &qos,
                                          const Wake &wake);
std::unique_ptr<Replier> make_replier(const NodePointer &node, const Service &service, const Qos &qos,
                                      const Wake &wake);

}  // namespace tide::agent
