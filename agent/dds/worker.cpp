// SPDX-License-Identifier: Apache-2.0
#include "dds/worker.h"

namespace tide::agent {

Worker::Worker() : thread_([this] { run(); }) {}

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Worker::add(const std::shared_ptr<Lane> &lane, Job job) {
  {
    const std::lock_guard lock(mutex_);
    lane->jobs_.push_back(std::move(job));
    if (lane->jobs_.size() == 1) lanes_.push_back(lane);
  }
  changed_.notify_all();
}

void Worker::add_at(Clock::time_point time, Job job) {
  {
    const std::lock_guard lock(mutex_);
    later_.emplace(time, std::move(job));
  }
  changed_.notify_all();
}

void Worker::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    std::shared_ptr<Lane> lane;
    Job job;
    if (!later_.empty() && !ending_ && later_.begin()->first <= Clock::now()) {
      job = std::move(later_.extract(later_.begin()).mapped());
    } else if (!lanes_.empty()) {
      lane = std::move(lanes_.front());
      lanes_.pop_front();
      job = std::move(lane->jobs_.front());
    } else if (ending_) {
      return;
    } else if (later_.empty()) {
      changed_.wait(lock);
      continue;
    } else {
      changed_.wait_until(lock, later_.begin()->first);
      continue;
    }
    lock.unlock();
    job();
    job = {};  // releases its captures, which must be done without the lock
    lock.lock();
    if (lane == nullptr) continue;
    lane->jobs_.pop_front();
    if (!lane->jobs_.empty()) lanes_.push_back(std::move(lane));
  }
}

}  // namespace tide::agent
