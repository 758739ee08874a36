// SPDX-License-Identifier: Apache-2.0
#include "tide_rcl/engine.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "tide/port.h"
#include "tide/status.h"

namespace tide_rcl {

namespace {

constexpr std::size_t kFirstCapacity = 64;
constexpr std::size_t kFirstMembers = 4;

[[noreturn]] void refuse(const std::string &what, int status) {
  const std::string text = what + ": " + tide_status_text(status);
  if (status == TIDE_ERROR_NOT_PERMITTED) throw std::system_error(EPERM, std::generic_category(), text);
  if (status == TIDE_ERROR_ARGUMENT || status == TIDE_ERROR_UNSUPPORTED) throw std::invalid_argument(text);
  throw std::runtime_error(text);
}

// The round that this thread executes. `trace` is set only from the start to the end of a traced callback in it.
struct Running {
  const Engine *engine = nullptr;
  std::size_t lane = 0;
  Trace *trace = nullptr;
};
thread_local Running running;

}  // namespace

// ---- entities ----

Entity::Entity(tide_callback_kind_t kind) noexcept {
  timer_.callback.kind = kind;
  timer_.callback.execute = execute;
  timer_.callback.context = this;
  timer_.on_expiry = expire;
  timer_.period_ns = 1;
  timer_.canceled = true;  // until the timer is armed
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

// The read is a critical section, because another lane may begin a run of the same entity meanwhile (in a reentrant
// group).
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

// No exception may leave this function, because the executor of the runtime, which calls it, is written in C.
void Entity::execute(tide_callback_t *callback, void *context) {
  auto *entity = static_cast<Entity *>(context);
  Engine *engine = entity->engine_.load();
  (void)callback;
  if (engine != nullptr && engine->cancelled_.load()) {  // another lane ended the spin while this lane chose
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

// ---- members of an engine ----

Group::Group(tide_group_kind_t kind) : storage_(kFirstMembers) {
  const int status = tide_group_init(&group_, kind, storage_.data(), storage_.size());
  if (status != TIDE_OK) refuse("a group of callbacks", status);
}

Engine::Engine(EngineOptions options) : options_(std::move(options)), platform_(tide_port_platform()) {
  if (options_.lanes.empty()) options_.lanes.emplace_back();
  const std::size_t count = options_.lanes.size();
  lanes_.resize(count);
  for (std::size_t index = 0; index < count; index++) {
    lanes_[index].settings = options_.lanes[index].settings;
    lanes_[index].settings.name = options_.lanes[index].name.c_str();
  }
  callbacks_.resize(kFirstCapacity);
  ready_storage_.resize(kFirstCapacity * count);
  timer_storage_.resize(kFirstCapacity * count);
  tide_executor_config_t config{};
  config.platform = platform_;
  config.policy = options_.policy == Policy::kChains ? TIDE_POLICY_TIDE : TIDE_POLICY_READYSET;
  config.callbacks = callbacks_.data();
  config.ready_storage = ready_storage_.data();
  config.timer_storage = timer_storage_.data();
  config.callback_count = kFirstCapacity;
  config.lanes = lanes_.data();
  config.lane_count = count;
  config.patience_ns = options_.patience.count();
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
  const int status = tide_executor_init(&executor_, &config);
  if (status != TIDE_OK) refuse("an executor with " + std::to_string(count) + " lanes", status);
  platform_->event_init(platform_->context, &alone_event_);
  for (std::size_t index = 0; index < lanes_.size(); index++) {
    if (lanes_[index].band == &lanes_[index].own_band) by_urgency_.push_back(index);
  }
  std::sort(by_urgency_.begin(), by_urgency_.end(), [this](std::size_t left, std::size_t right) {
    return lanes_[left].settings.least_level > lanes_[right].settings.least_level;
  });
}

Engine::~Engine() {
  for (;;) {
    std::shared_ptr<Entity> entity;
    {
      const std::lock_guard<std::mutex> lock(entities_mutex_);
      if (entities_.empty()) break;
      entity = entities_.begin()->second;
    }
    (void)remove(entity);
  }
  if (measured_file_ == nullptr) return;
  const std::string lines = measurement_lines();
  if (!measured_file_->write(lines.data(), lines.size())) {
    std::fprintf(stderr, "%s: cannot be written\n", measured_file_->path().c_str());
  }
}

// The executor uses the new storage before the old one is freed.
void Engine::reserve_locked(std::size_t count) {
  if (count <= callbacks_.size()) return;
  const std::size_t capacity = std::min<std::size_t>(UINT16_MAX, callbacks_.size() * 2);
  if (count > capacity) throw std::runtime_error("an executor takes 65535 callbacks, timers and waitables");
  std::vector<tide_callback_t *> callbacks(capacity);
  std::vector<tide_queue_entry_t *> ready(capacity * by_urgency_.size());
  std::vector<tide_queue_entry_t *> timers(capacity * by_urgency_.size());
  const int status = tide_executor_grow(&executor_, callbacks.data(), ready.data(), timers.data(), capacity);
  if (status != TIDE_OK) refuse("more places for callbacks", status);
  callbacks_.swap(callbacks);
  ready_storage_.swap(ready);
  timer_storage_.swap(timers);
}

void Engine::reserve_in_group_locked(Group &group) {
  Engine *none = nullptr;
  if (!group.engine_.compare_exchange_strong(none, this) && none != this) {
    throw std::invalid_argument("the group has members in another executor");
  }
  if (group.group_.kind != TIDE_GROUP_EXCLUSIVE || group.members_ < group.storage_.size()) return;
  std::vector<tide_queue_entry_t *> storage(group.storage_.size() * 2);
  const int status = tide_group_grow(&executor_, &group.group_, storage.data(), storage.size());
  if (status != TIDE_OK) refuse("more places in a group", status);
  group.storage_.swap(storage);
}

void Engine::add(const std::shared_ptr<Entity> &entity, tide_priority_t priority, std::shared_ptr<Group> group) {
  if (entity == nullptr) throw std::invalid_argument("no entity to add");
  {
    const std::lock_guard<std::mutex> lock(entities_mutex_);
    reserve_locked(entities_.size() + 1);
    if (group != nullptr) reserve_in_group_locked(*group);
    Engine *none = nullptr;
    if (!entity->engine_.compare_exchange_strong(none, this)) {
      if (group != nullptr && group->members_ == 0) group->engine_.store(nullptr);
      throw std::invalid_argument("the entity is in an executor already");
    }
    tide_callback_t &callback = entity->timer_.callback;
    callback.priority = priority;
    callback.group = group == nullptr ? nullptr : &group->group_;
    callback.measurement = measurements_ == nullptr ? nullptr : measurements_->of(entity->names_);
    entities_.emplace(entity.get(), entity);
    const int status = tide_executor_add(&executor_, &callback);
    if (status != TIDE_OK) {
      entity->engine_.store(nullptr);
      if (group != nullptr && group->members_ == 0) group->engine_.store(nullptr);
      entities_.erase(entity.get());
      refuse("adding to an executor", status);
    }
    if (group != nullptr) group->members_++;
    entity->group_ = std::move(group);
  }
  try {
    entity->connect();
  } catch (...) {
    (void)remove(entity);
    throw;
  }
}

bool Engine::remove(const std::shared_ptr<Entity> &entity) {
  {
    const std::lock_guard<std::mutex> lock(entities_mutex_);
    if (entity == nullptr || entities_.erase(entity.get()) == 0) return false;
    (void)tide_executor_remove(&executor_, &entity->timer_.callback);
    entity->timer_.canceled = true;
    entity->engine_.store(nullptr);
    const std::shared_ptr<Group> &group = entity->group_;
    if (group != nullptr && --group->members_ == 0) group->engine_.store(nullptr);
    removed_.push_back({entity, group});
    has_removed_.store(true);
  }
  entity->disconnect();
  let_go_of_removed();
  return true;
}

// The entities in `done` are destroyed after the lock is released, because their destructors are functions of the
// program.
void Engine::let_go_of_removed() noexcept {
  if (!has_removed_.load()) return;
  std::vector<Removed> done;
  const std::lock_guard<std::mutex> lock(entities_mutex_);
  const auto kept = std::partition(removed_.begin(), removed_.end(), [this](const Removed &removed) {
    return tide_executor_is_running(&executor_, &removed.entity->timer_.callback);
  });
  done.assign(std::make_move_iterator(kept), std::make_move_iterator(removed_.end()));
  removed_.erase(kept, removed_.end());
  has_removed_.store(!removed_.empty());
}

void Engine::set_priority(Entity &entity, tide_priority_t priority) {
  const int status = tide_executor_set_priority(&executor_, &entity.timer_.callback, priority);
  if (status != TIDE_OK) refuse("a priority", status);
  wake_alone();
}

std::size_t Engine::size() const {
  const std::lock_guard<std::mutex> lock(entities_mutex_);
  return entities_.size();
}

std::int64_t Engine::now_ns() const noexcept { return platform_->now_ns(platform_->context); }

tide_executor_counters_t Engine::counters() {
  tide_executor_counters_t counters;
  tide_executor_get_counters(&executor_, &counters);
  return counters;
}

// ---- rounds: what is recorded around a run (hooks of the program, measurements, the trace) ----

// Saves and restores the outer round of this thread, because a callback may spin another engine.
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

void Engine::started(void *engine, tide_callback_t *callback, std::int64_t now_ns) {
  auto &self = *static_cast<Engine *>(engine);
  auto &entity = *static_cast<Entity *>(callback->context);
  if (self.trace_ != nullptr) {
    const std::uintptr_t state =
        self.executor_.enter(self.platform_->context);  // a reentrant callback may start on several lanes
    const Trace::Start start{callback->priority, callback->kind, entity.starts_++, callback->ready_ns, now_ns};
    self.executor_.exit(self.platform_->context, state);
    running.trace = self.trace_.get();
    self.trace_->start(running.lane, start);
  }
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

// ---- spinning: by lanes, or by one thread that runs the rounds of all lanes, the most urgent first ----

namespace {

std::int64_t deadline_after(std::int64_t now_ns, std::chrono::nanoseconds duration) {
  const std::int64_t length_ns = duration.count();
  return length_ns < 0 || length_ns > TIDE_FOREVER - now_ns ? TIDE_FOREVER : now_ns + length_ns;
}

// Text that names the setting which the operating system refuses, as far as this can be determined.
std::string refused_setting(const tide_lane_settings_t &settings, int status) {
  const long processors = sysconf(_SC_NPROCESSORS_CONF);
  if (status == TIDE_ERROR_ARGUMENT && settings.processor != 0) {
    const std::string cpu = "cpu " + std::to_string(settings.processor - 1);
    if (settings.processor <= processors) return cpu + " is none of those that this process may use";
    return cpu + ": this machine has processors 0 to " + std::to_string(processors - 1);
  }
  const std::string priority = std::to_string(settings.priority);
  std::string what;
  if (settings.scheduling == TIDE_SCHEDULING_FIFO) what = "fifo " + priority + ": ";
  if (settings.scheduling == TIDE_SCHEDULING_ROUND_ROBIN) what = "rr " + priority + ": ";
  if (settings.scheduling == TIDE_SCHEDULING_DEADLINE) what = "deadline: ";
  if (settings.scheduling == TIDE_SCHEDULING_SPORADIC) what = "budget with fifo " + priority + ": ";
  return what + tide_status_text(status);
}

[[noreturn]] void refuse_lane(const Lane &lane, int status) {
  const std::string text = "lane '" + lane.name + "': " + refused_setting(lane.settings, status);
  if (status == TIDE_ERROR_NOT_PERMITTED) throw std::system_error(EPERM, std::generic_category(), text);
  throw std::runtime_error(text);
}

}  // namespace

// Claims the engine for a spin. Returns false if may_spin has returned false. end_spin must follow in either case.
bool Engine::begin_spin(bool by_lanes) {
  {
    const std::lock_guard<std::mutex> lock(spin_mutex_);
    if (spinning_.load()) throw std::runtime_error("the executor is already spinning");
    spinning_.store(true);
    cancelled_.store(false);
    by_lanes_ = by_lanes;
    failure_ = nullptr;
    alone_.store(!by_lanes);
    __atomic_store_n(&executor_.stopped, false, __ATOMIC_RELEASE);  // clears the stop of the previous spin
  }
  return !options_.may_spin || options_.may_spin();
}

void Engine::end_spin() {
  std::exception_ptr failure;
  {
    const std::lock_guard<std::mutex> lock(spin_mutex_);
    spinning_.store(false);
    alone_.store(false);
    failure = std::exchange(failure_, nullptr);
  }
  let_go_of_removed();
  if (failure != nullptr) std::rethrow_exception(failure);
}

void Engine::cancel_locked() noexcept {
  if (!spinning_.load()) return;
  cancelled_.store(true);
  if (by_lanes_) tide_executor_stop(&executor_);
  wake_alone();
}

void Engine::cancel() noexcept {
  const std::lock_guard<std::mutex> lock(spin_mutex_);
  cancel_locked();
}

// Records an exception and ends the spin. Returns true if it is the first one of this spin, which the spin will
// rethrow.
bool Engine::fail(std::exception_ptr exception) noexcept {
  const std::lock_guard<std::mutex> lock(spin_mutex_);
  const bool first = failure_ == nullptr;
  if (first) failure_ = std::move(exception);
  cancel_locked();
  return first;
}

void Engine::wake_alone() noexcept {
  if (alone_.load()) platform_->event_set(platform_->context, &alone_event_);
}

void Engine::spin_lane(std::size_t lane) noexcept {
  while (!cancelled_.load() && round(lane, TIDE_FOREVER) >= 0) {}
}

void Engine::spin_lanes() {
  const tide_lane_settings_t &first = lanes_.front().settings;
  if (lanes_.size() == 1 && first.scheduling == TIDE_SCHEDULING_INHERIT && first.processor == 0) {
    spin_lane(0);  // a single lane without scheduling settings runs in the spinning thread
    return;
  }
  std::size_t refused = 0;
  const auto run = [](void *context, std::size_t index) { static_cast<Engine *>(context)->spin_lane(index); };
  const int status = tide_port_run_lanes(lanes_.data(), lanes_.size(), run, this, &refused);
  if (status == TIDE_OK) return;
  try {
    refuse_lane(options_.lanes[refused], status);
  } catch (...) {
    (void)fail(std::current_exception());
  }
}

void Engine::spin() {
  if (begin_spin(true)) spin_lanes();
  end_spin();
}

bool Engine::run_one(std::int64_t deadline_ns) {
  for (;;) {
    for (const std::size_t lane : by_urgency_) {
      if (round(lane, 0) > 0) return true;
    }
    if (cancelled_.load() || now_ns() >= deadline_ns) return false;
    const std::int64_t until_ns = std::min(deadline_ns, tide_executor_next_expiry_ns(&executor_));
    (void)platform_->event_wait(platform_->context, &alone_event_, until_ns);
    if (cancelled_.load()) return false;
  }
}

void Engine::spin_once(std::chrono::nanoseconds timeout) {
  if (begin_spin(false)) (void)run_one(deadline_after(now_ns(), timeout));
  end_spin();
}

void Engine::spin_while_ready(std::chrono::nanoseconds max_duration, bool exhaustive) {
  const std::int64_t now = now_ns();
  const std::int64_t end_ns = max_duration.count() == 0 ? TIDE_FOREVER : deadline_after(now, max_duration);
  std::size_t left = exhaustive ? SIZE_MAX : tide_executor_count_starts(&executor_, now);
  while (left > 0 && !cancelled_.load() && run_one(0) && now_ns() < end_ns) left--;
}

void Engine::spin_some(std::chrono::nanoseconds max_duration) {
  if (begin_spin(false)) spin_while_ready(max_duration, false);
  end_spin();
}

void Engine::spin_all(std::chrono::nanoseconds max_duration) {
  if (max_duration.count() < 0) throw std::invalid_argument("spin_all: max_duration is negative");
  if (begin_spin(false)) spin_while_ready(max_duration, true);
  end_spin();
}

}  // namespace tide_rcl
