// SPDX-License-Identifier: Apache-2.0
// Readers and writers of one topic each, and services as in rmw_fastrtps: a topic for requests and one for replies. A
// request names, as its related sample, the reader for which its reply is meant; the reply names that reader and the
// number of the request.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "core/middleware.h"
#include "dds/domain.h"

namespace tide::agent {

// The remote endpoints that DDS has matched with one of this agent's endpoints. Threads of DDS change this list and
// then call `wake`.
class Peers {
 public:
  using Clock = std::chrono::steady_clock;

  // contact_limit: after this time, a matched peer counts as a contact even if it has sent nothing.
  explicit Peers(Wake wake, Clock::duration contact_limit = std::chrono::seconds(3))
      : wake_(std::move(wake)), contact_limit_(contact_limit) {}
  void change(const eprosima::fastdds::dds::InstanceHandle_t &handle, bool matched);
  // The peer has also discovered the agent's endpoint, possibly before the match.
  void add_contact(const DdsGuid &peer);
  bool contains(const DdsGuid &peer) const;
  // True if some participant has one endpoint here and one in `other`, and both have discovered the agent's endpoints.
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
