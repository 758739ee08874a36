// SPDX-License-Identifier: Apache-2.0
// Common parts of the engine's tests.
#pragma once

#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include "eventually.h"
#include "tide_rcl/engine.h"

namespace tide_rcl {

using std::chrono::milliseconds;

// An entity that runs a function.
class Probe final : public Entity {
 public:
  explicit Probe(std::function<void()> function, tide_callback_kind_t kind = TIDE_CALLBACK_SUBSCRIPTION)
      : Entity(kind), function_(std::move(function)) {}

 private:
  void run() override { function_(); }
  std::function<void()> function_;
};

class Alarm final : public Entity {
 public:
  explicit Alarm(std::function<void()> function) : Entity(TIDE_CALLBACK_TIMER), function_(std::move(function)) {}
  using Entity::arm_at;
  using Entity::armed_for_ns;
  using Entity::disarm;
  using Entity::start_ns;

 private:
  void run() override { function_(); }
  std::function<void()> function_;
};

inline std::shared_ptr<Probe> probe(std::function<void()> function,
                                    tide_callback_kind_t kind = TIDE_CALLBACK_SUBSCRIPTION) {
  return std::make_shared<Probe>(std::move(function), kind);
}

using tide::test::eventually;

// Spins in a separate thread until the end of the scope.
class Spinning {
 public:
  explicit Spinning(Engine &engine) : engine_(engine), thread_([&engine] { engine.spin(); }) {
    (void)eventually([&engine] { return engine.is_spinning(); });
  }
  Spinning(const Spinning &) = delete;
  Spinning &operator=(const Spinning &) = delete;
  ~Spinning() {
    engine_.cancel();
    thread_.join();
  }

 private:
  Engine &engine_;
  std::thread thread_;
};

inline EngineOptions lanes_of(std::initializer_list<int> least_levels) {
  EngineOptions options;
  for (const int level : least_levels) {
    options.lanes.emplace_back();
    options.lanes.back().settings.least_level = static_cast<std::uint8_t>(level);
  }
  return options;
}

}  // namespace tide_rcl
