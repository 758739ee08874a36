// SPDX-License-Identifier: Apache-2.0
// Readers and writers of one topic each, and services as in rmw_fastrtps: a topic for requests and one for replies. A
// request names, as its related sample, the reader that its reply is for; the reply names that reader and the number of
// the request.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "core/middleware.h"
#include "dds/domain.h"

namespace tide::agent {

// The remote endpoints that DDS has matched with one of ours. Changed by threads of DDS, which then call `wake`.
class Peers {
 public:
  using Clock = std::chrono::steady_clock;

  // contact_limit: a peer that has sent nothing for this long after the match counts as a contact.
  explicit Peers(Wake wake, Clock::duration contact_limit = std::chrono::seconds(3))
      : wake_(std::move(wake)), contact_limit_(contact_limit) {}
  void change(const eprosima::fastdds::dds::InstanceHandle_t &handle, bool matched);
  // The peer has also discovered our endpoint, possibly before the match.
  void add_contact(const DdsGuid &peer);
  bool contains(const DdsGuid &peer) const;
  // Whether some participant has one endpoint here and one in `other`, both of which have discovered ours.
  bool meets(const Peers &other) const;

 private:
  mutable std::mutex mutex_;
  std::map<DdsGuid, Clock::time_point> peers_;  // with the time of the match
  std::set<DdsGuid> contacts_;
  Wake wake_;
  Clock::duration contact_limit_;
};

// Null when DDS refuses. wake: as for Participant; may be called before these functions return.
std::unique_ptr<Writer> make_writer(const NodePointer &node, const Topic &topic, const Qos &qos);
std::unique_ptr<Source> make_reader(const NodePointer &node, const Topic &topic, const Qos &qos, const Wake &wake);
std::unique_ptr<Requester> make_requester(const NodePointer &node, const Service &service, const Qos &qos,
                                          const Wake &wake);
std::unique_ptr<Replier> make_replier(const NodePointer &node, const Service &service, const Qos &qos,
                                      const Wake &wake);

}  // namespace tide::agent
