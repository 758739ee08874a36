// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "core/middleware.h"
#include "dds/transport.h"

namespace tide::agent {

// A thread that creates and deletes DDS objects, which is slow, so that the agent's own thread can continue to carry
// messages. Jobs of a lane run in order. Lanes take turns: between two jobs of a lane, at most one job of each other
// lane runs.
class Worker {
 public:
  using Clock = std::chrono::steady_clock;
  using Job = std::function<void()>;  // must not throw

  class Lane {
    friend class Worker;
    std::deque<Job> jobs_;  // if not empty, the lane is queued, or its first job is running
  };

  Worker();
  ~Worker();  // runs all remaining jobs except those added by add_at

  // May be called from any thread.
  void add(const std::shared_ptr<Lane> &lane, Job job);
  // Runs the job at this time, or after the job that is then running. May be called from any thread.
  void add_at(Clock::time_point time, Job job);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Lane>> lanes_;  // lanes that have jobs
  std::multimap<Clock::time_point, Job> later_;
  bool ending_ = false;
  std::thread thread_;  // declared last, because the thread uses the other members
};

// An object that the worker's thread creates and deletes while its owner, the agent's thread, continues. The owner may
// destroy the Later at any time; the worker then deletes the object, after its creation if that is not finished.
template <typename Object> class Later {
 public:
  using Make = std::function<std::unique_ptr<Object>()>;  // returns null if the object was refused

  Later(Worker &worker, Outbox &outbox, std::shared_ptr<Worker::Lane> lane, Make make)
      : worker_(worker), outbox_(outbox), lane_(std::move(lane)), shared_(std::make_shared<Shared>()) {
    worker_.add(lane_, [shared = shared_, make = std::move(make)] { shared->make(make); });
  }
  ~Later() {
    shared_->abandoned = true;
    outbox_.flush();  // none of the object's messages may wait when the worker deletes it, because its participant may
                      // go, too
    worker_.add(lane_, [shared = std::move(shared_)] { shared->object.reset(); });
  }
  Later(const Later &) = delete;
  Later &operator=(const Later &) = delete;

  Made::State state() const { return shared_->state; }
  void await(Wake wake) { shared_->await(std::move(wake)); }
  // Call these only after the object was created.
  Object &operator*() const { return *shared_->object; }
  Object *operator->() const { return shared_->object.get(); }

 private:
  struct Shared {
    std::atomic<Made::State> state{Made::State::kUnderWay};
    std::atomic<bool> abandoned{false};
    std::unique_ptr<Object> object;  // used by the worker and, after the creation, by the owner
    std::mutex mutex;                // guards wake and changes of the state
    Wake wake;

    void make(const Make &how) {
      if (!abandoned) try {
          object = how();
        } catch (const std::exception &) {
          object = nullptr;  // an exception about the client's arguments must refuse only this entity
        }
      Wake told;
      {
        const std::lock_guard lock(mutex);
        state = object != nullptr ? Made::State::kMade : Made::State::kRefused;
        told.swap(wake);
      }
      if (told) told();
    }

    void await(Wake whom) {
      {
        const std::lock_guard lock(mutex);
        if (state == Made::State::kUnderWay) {
          wake = std::move(whom);
          return;
        }
      }
      whom();
    }
  };

  Worker &worker_;
  Outbox &outbox_;
  std::shared_ptr<Worker::Lane> lane_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace tide::agent
