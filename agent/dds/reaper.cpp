// SPDX-License-Identifier: Apache-2.0
#include "dds/reaper.h"

#include <fastdds/dds/domain/DomainParticipantFactory.hpp>

namespace tide::agent {
namespace {

constexpr size_t kWaitingMaximum = 8;

}  // namespace

Reaper::Reaper(ParticipantNumbers &numbers) : numbers_(numbers), thread_([this] { run(); }) {}

Reaper::~Reaper() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Reaper::bury(eprosima::fastdds::dds::DomainParticipant *participant) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return waiting_.size() < kWaitingMaximum; });
  waiting_.push_back(participant);
  changed_.notify_all();
}

void Reaper::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    eprosima::fastdds::dds::DomainParticipant *participant = waiting_.front();
    lock.unlock();
    const int number = participant->get_qos().wire_protocol().participant_id;
    participant->delete_contained_entities();
    const auto status =
        eprosima::fastdds::dds::DomainParticipantFactory::get_instance()->delete_participant(participant);
    if (status() == kOkay) numbers_.give_back(number);
    lock.lock();
    waiting_.pop_front();
    changed_.notify_all();
  }
}

}  // namespace tide::agent
