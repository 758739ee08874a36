// SPDX-License-Identifier: Apache-2.0
// One thread for what takes DDS long, creating and deleting, so that the agent's own goes on carrying messages. The
// jobs of a lane run in the order in which they came; lanes take turns, so that a job waits for at most one of each
// other lane, however many those have.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

namespace tide::agent {

class Worker {
 public:
  using Clock = std::chrono::steady_clock;
  using Job = std::function<void()>;  // throws nothing

  class Lane {
    friend class Worker;
    std::deque<Job> jobs_;  // not empty: it stands in the queue, or its first one runs
  };

  Worker();
  ~Worker();  // runs what is left, but nothing that is due later
  Worker(const Worker &) = delete;
  Worker &operator=(const Worker &) = delete;

  // From any thread.
  void add(const std::shared_ptr<Lane> &lane, Job job);
  // Before the next job, once this time has come. From any thread.
  void add_at(Clock::time_point time, Job job);

 private:
  void run();
  Job next(std::unique_lock<std::mutex> &lock, std::shared_ptr<Lane> &lane);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Lane>> lanes_;  // that have jobs
  std::multimap<Clock::time_point, Job> later_;
  bool ending_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace tide::agent
