// SPDX-License-Identifier: Apache-2.0
// The round of a thread: which lane it is, and what is noted around a run (hooks of the program, measurements, the
// trace).
#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "tide_rcl/engine.h"

namespace tide_rcl {

namespace {

// The round that is under way on this thread; trace: while a callback runs in it.
struct Running {
  const Engine *engine = nullptr;
  std::size_t lane = 0;
  Trace *trace = nullptr;
};
thread_local Running running;

}  // namespace

void Engine::configure(tide_executor_config_t &config) {
  if (!options_.measured_file.empty()) {
    measured_file_ = std::make_unique<OutputFile>(options_.measured_file);
    measurements_ = std::make_unique<Measurements>();
    config.measure = measurements_->measure();
  }
  if (!options_.trace_file.empty()) {
    trace_ = std::make_unique<Trace>(options_.trace_file, options_.trace_place, lanes_.size());
  }
  config.context = this;
  if (options_.on_start || trace_ != nullptr) config.on_start = started;
  if (options_.on_end || trace_ != nullptr) config.on_end = ended;
}

// A callback may spin another engine.
int Engine::round(std::size_t lane, std::int64_t deadline_ns) noexcept {
  const Running around = std::exchange(running, {this, lane, nullptr});
  const int result = tide_executor_lane_round(&executor_, lane, deadline_ns);
  running = around;
  let_go_of_removed();
  return result;
}

bool Engine::has_run_of_locked(const std::vector<std::shared_ptr<Group>> &groups) const {
  const std::size_t own = running.engine == this ? running.lane : SIZE_MAX;
  const std::uintptr_t state = executor_.enter(platform_->context);
  const bool found = std::any_of(removed_.begin(), removed_.end(), [&](const Removed &removed) {
    if (std::find(groups.begin(), groups.end(), removed.group) == groups.end()) return false;
    for (std::size_t lane = 0; lane < lanes_.size(); lane++) {
      if (lane != own && lanes_[lane].running == &removed.entity->timer_.callback) return true;
    }
    return false;
  });
  executor_.exit(platform_->context, state);
  return found;
}

void Engine::wait_for_removed(const std::vector<std::shared_ptr<Group>> &groups) const {
  for (;;) {
    {
      const std::lock_guard<std::mutex> lock(entities_mutex_);
      if (!has_run_of_locked(groups)) return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void Engine::notify(Entity &entity, std::size_t times) noexcept {
  const std::size_t lane = running.engine == this ? running.lane : SIZE_MAX;
  for (std::size_t count = 0; count < times; count++) tide_executor_notify_from(&entity.timer_.callback, lane);
  wake_alone();
}

// Reentrant callbacks start on several lanes at a time.
void Engine::trace_start(Entity &entity, std::int64_t now_ns) noexcept {
  const tide_callback_t &callback = entity.timer_.callback;
  const std::uintptr_t state = executor_.enter(platform_->context);
  const Trace::Start start{callback.priority, callback.kind, entity.starts_++, callback.ready_ns, now_ns};
  executor_.exit(platform_->context, state);
  running.trace = trace_.get();
  trace_->start(running.lane, start);
}

void Engine::started(void *engine, tide_callback_t *callback, std::int64_t now_ns) {
  auto &self = *static_cast<Engine *>(engine);
  auto &entity = *static_cast<Entity *>(callback->context);
  if (self.trace_ != nullptr) self.trace_start(entity, now_ns);
  if (self.options_.on_start) self.options_.on_start(entity, now_ns);
}

void Engine::ended(void *engine, tide_callback_t *callback, std::int64_t now_ns) {
  auto &self = *static_cast<Engine *>(engine);
  if (self.trace_ != nullptr) self.trace_->end(running.lane, now_ns);
  running.trace = nullptr;
  if (self.options_.on_end) self.options_.on_end(*static_cast<Entity *>(callback->context), now_ns);
}

void Engine::set_trace_instance(std::uint32_t instance) noexcept {
  if (running.trace != nullptr) running.trace->set_instance(running.lane, instance);
}

std::string Engine::measurement_lines() {
  return measurements_ == nullptr ? std::string() : measurements_->lines(executor_);
}

}  // namespace tide_rcl
