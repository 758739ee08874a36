// SPDX-License-Identifier: Apache-2.0
#include "tide_rcl/engine.h"

#include <algorithm>
#include <stdexcept>
#include <system_error>

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

}  // namespace

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
  configure(config);
  const int status = tide_executor_init(&executor_, &config);
  if (status != TIDE_OK) refuse("an executor with " + std::to_string(count) + " lanes", status);
  platform_->event_init(platform_->context, &alone_event_);
  sort_bands();
}

void Engine::sort_bands() {
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

// What the executor uses is replaced before the former storage goes.
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

// Destructors of the program run without a lock.
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

}  // namespace tide_rcl
