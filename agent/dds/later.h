// SPDX-License-Identifier: Apache-2.0
// An object that the worker makes and destroys, while its owner, the agent's thread, goes on. The owner may destroy
// this at any time; what is under way then is undone by the worker.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>

#include "core/middleware.h"
#include "dds/outbox.h"
#include "dds/worker.h"

namespace tide::agent {

template <typename Object>
class Later {
 public:
  using Make = std::function<std::unique_ptr<Object>()>;  // null: refused

  Later(Worker &worker, Outbox &outbox, std::shared_ptr<Worker::Lane> lane, Make make)
      : worker_(worker), outbox_(outbox), lane_(std::move(lane)), shared_(std::make_shared<Shared>()) {
    worker_.add(lane_, [shared = shared_, make = std::move(make)] { shared->make(make); });
  }
  ~Later() {
    shared_->abandoned = true;
    outbox_.flush();  // nothing of it waits when the worker deletes it, perhaps with its participant
    worker_.add(lane_, [shared = std::move(shared_)] { shared->object.reset(); });
  }
  Later(const Later &) = delete;
  Later &operator=(const Later &) = delete;

  Made::State state() const { return shared_->state; }
  void await(Wake wake) { shared_->await(std::move(wake)); }
  // Only when it is made.
  Object &operator*() const { return *shared_->object; }
  Object *operator->() const { return shared_->object.get(); }

 private:
  struct Shared {
    std::atomic<Made::State> state{Made::State::kUnderWay};
    std::atomic<bool> abandoned{false};
    std::unique_ptr<Object> object;  // the worker's, and the owner's once it is made
    std::mutex mutex;                // of wake, and of the end of being under way
    Wake wake;

    void make(const Make &how) {
      if (!abandoned) try {
          object = how();
        } catch (const std::exception &) {
          object = nullptr;  // what DDS thinks of a client's arguments ends nothing but their entity
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
