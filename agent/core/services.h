// SPDX-License-Identifier: Apache-2.0
// What a client says to its requesters and repliers: handed to DDS, or kept until ROS 2 is ready for it.
#pragma once

#include <cstdint>

#include "core/context.h"
#include "core/entities.h"
#include "tide/platform.h"

namespace tide::agent {

class Services {
 public:
  Services(Context &context, Counters &counters, Entities &entities)
      : context_(context), counters_(counters), entities_(entities) {}

  // Of an entity where messages wait. False: malformed.
  bool write(Entity &entity, uint16_t request, Bytes payload, bool big_endian, Time now);
  // Peers of it may have come.
  void flush(Entity &entity, Time now);
  // Timers of all.
  void poll(Time now);
  Time next_ns() const { return next_ns_; }  // when poll has something to do
  // DDS gave a sample of it: a server has room for one more of what waits.
  void took(Entity &entity, Time now);
  // The program that asked has started anew.
  void forget();

 private:
  bool may_release(const Release &release, Time now);
  void look_again(Entity &entity, bool refused, Time now);
  void count_release(Release &release, Time now) const;
  bool send(Entity &entity, const WaitingMessage &message, Time now);

  Context &context_;
  Counters &counters_;
  Entities &entities_;
  Time next_ns_ = TIDE_FOREVER;  // when the next message is given up
};

}  // namespace tide::agent
