// SPDX-License-Identifier: Apache-2.0
#include "dds/worker.h"

#include <utility>

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

// Waits for a job; none: the end. lane: where it came from, if from one.
Worker::Job Worker::next(std::unique_lock<std::mutex> &lock, std::shared_ptr<Lane> &lane) {
  for (;;) {
    if (!later_.empty() && !ending_ && later_.begin()->first <= Clock::now()) {
      return std::move(later_.extract(later_.begin()).mapped());
    }
    if (!lanes_.empty()) {
      lane = std::move(lanes_.front());
      lanes_.pop_front();
      return std::move(lane->jobs_.front());
    }
    if (ending_) return {};
    if (later_.empty()) {
      changed_.wait(lock);
    } else {
      changed_.wait_until(lock, later_.begin()->first);
    }
  }
}

void Worker::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    std::shared_ptr<Lane> lane;
    Job job = next(lock, lane);
    if (!job) return;
    lock.unlock();
    job();
    job = {};  // what it held is let go of outside the lock
    lock.lock();
    if (lane == nullptr) continue;
    lane->jobs_.pop_front();
    if (!lane->jobs_.empty()) lanes_.push_back(std::move(lane));
  }
}

}  // namespace tide::agent
