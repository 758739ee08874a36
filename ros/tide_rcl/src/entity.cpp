// SPDX-License-Identifier: Apache-2.0
#include "tide/port.h"
#include "tide_rcl/engine.h"

namespace tide_rcl {

Entity::Entity(tide_callback_kind_t kind) noexcept {
  timer_.callback.kind = kind;
  timer_.callback.execute = execute;
  timer_.callback.context = this;
  timer_.on_expiry = expire;
  timer_.period_ns = 1;
  timer_.canceled = true;  // until it is armed
}

void Entity::notify(std::size_t times) noexcept {
  Engine *engine = engine_.load();
  if (engine != nullptr && times > 0) engine->notify(*this, times);
}

void Entity::arm_at(std::int64_t expiry_ns, std::int64_t period_ns) noexcept {
  Engine *engine = engine_.load();
  if (engine == nullptr) return;
  (void)tide_timer_set_period(&timer_, period_ns < 1 ? 1 : period_ns);
  (void)tide_timer_set_phase(&timer_, expiry_ns < 0 ? 0 : expiry_ns);
  engine->wake_alone();
}

void Entity::disarm() noexcept { (void)tide_timer_cancel(&timer_); }

std::int64_t Entity::armed_for_ns() const noexcept { return tide_timer_until_next_ns(&timer_, 0); }

// In a reentrant group another lane may begin a run of it meanwhile.
std::int64_t Entity::start_ns() const noexcept {
  const tide_platform_t *platform = tide_port_platform();
  const std::uintptr_t state = tide_platform_enter(platform);
  const std::int64_t start_ns = timer_.callback.start_ns;
  tide_platform_exit(platform, state);
  return start_ns;
}

std::shared_ptr<Engine> Entity::keep_engine() const {
  Engine *engine = engine_.load();
  return engine == nullptr ? nullptr : engine->weak_from_this().lock();
}

// No exception passes through the engine, which is C.
void Entity::execute(tide_callback_t *callback, void *context) {
  auto *entity = static_cast<Entity *>(context);
  Engine *engine = entity->engine_.load();
  (void)callback;
  if (engine != nullptr && engine->cancelled_.load()) {  // a lane that chose while another ended the spin
    entity->notify();
    return;
  }
  try {
    entity->run();
  } catch (...) {
    if (engine == nullptr || !engine->fail(std::current_exception())) return;
    if (engine->options_.on_failure) engine->options_.on_failure(*entity);
  }
}

void Entity::expire(tide_timer_t *timer, std::int64_t since_last_call_ns) {
  (void)since_last_call_ns;
  execute(&timer->callback, timer->callback.context);
}

}  // namespace tide_rcl
