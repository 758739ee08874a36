// SPDX-License-Identifier: Apache-2.0
// Deletes participants on a thread of its own: that takes Fast DDS up to a few hundred milliseconds, during which
// the other clients are to be served.
#pragma once

#include <condition_variable>
#include <deque>
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <mutex>
#include <thread>

#include "dds/participant_numbers.h"

namespace tide::agent {

constexpr int kOkay = 0;  // a ReturnCode_t of DDS

class Reaper {
 public:
  // Gives back the numbers of those that are gone; they outlive it.
  explicit Reaper(ParticipantNumbers &numbers);
  ~Reaper();  // waits for what is left
  Reaper(const Reaper &) = delete;
  Reaper &operator=(const Reaper &) = delete;

  // When many wait already, the caller waits too.
  void bury(eprosima::fastdds::dds::DomainParticipant *participant);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<eprosima::fastdds::dds::DomainParticipant *> waiting_;
  ParticipantNumbers &numbers_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace tide::agent
