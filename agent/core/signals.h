// SPDX-License-Identifier: Apache-2.0
// News of entities, queued by threads of the middleware, taken by the thread of the agent.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/middleware.h"

namespace tide::agent {

// It names the entity by a number that no other ever has, and never points to it: what is gone by then, or never came
// about, is not found.
struct Signal {
  Signal(uint32_t key_of_client, uint16_t object_id, uint64_t entity_number)
      : key(key_of_client), object(object_id), number(entity_number) {}
  std::atomic<bool> queued{false};
  const uint32_t key;
  const uint16_t object;
  const uint64_t number;
};

class SignalQueue {
 public:
  explicit SignalQueue(Wake wake) : wake_(std::move(wake)) {}
  void push(const std::shared_ptr<Signal> &signal);
  void take(std::vector<std::shared_ptr<Signal>> &signals);

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<Signal>> signals_;
  Wake wake_;
};

}  // namespace tide::agent
