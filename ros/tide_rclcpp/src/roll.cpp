// SPDX-License-Identifier: Apache-2.0
#include "roll.h"

#include <algorithm>

#include "records.h"
#include "waitable.h"

namespace tide_rclcpp {

namespace {

std::chrono::nanoseconds period_of(const rclcpp::TimerBase &timer) {
  std::int64_t period_ns = 0;
  auto &unlocked = const_cast<rclcpp::TimerBase &>(timer);
  if (rcl_timer_get_period(unlocked.get_timer_handle().get(), &period_ns) != RCL_RET_OK) rcl_reset_error();
  return std::chrono::nanoseconds(period_ns);
}

}  // namespace

struct Roll::Everything {
  std::vector<rclcpp::CallbackGroup::SharedPtr> groups;
  std::vector<rclcpp::SubscriptionBase::SharedPtr> subscriptions;
  std::vector<rclcpp::ServiceBase::SharedPtr> services;
  std::vector<rclcpp::ClientBase::SharedPtr> clients;
  std::vector<rclcpp::TimerBase::SharedPtr> timers;
  std::vector<rclcpp::Waitable::SharedPtr> waitables;
};

Roll::Roll(tide_rcl::Engine &engine, rclcpp::Context::SharedPtr context, std::vector<Chain> chains)
    : engine_(engine), context_(std::move(context)), plan_(std::move(chains)) {}

Roll::~Roll() {
  for (auto &[key, record] : records_) remove(record);
}

void Roll::remove(const Record &record) {
  (void)engine_.remove(record.entity);
  for (const auto &timer : record.timers) (void)engine_.remove(timer);
}

void Roll::know(const rclcpp::node_interfaces::NodeBaseInterface::SharedPtr &node) {
  const std::lock_guard<std::mutex> lock(mutex_);
  nodes_.erase(std::remove_if(nodes_.begin(), nodes_.end(),
                              [&](const auto &known) { return known.expired() || known.lock() == node; }),
               nodes_.end());
  nodes_.push_back(node);
}

void Roll::know(const rclcpp::CallbackGroup::SharedPtr &group,
                const rclcpp::node_interfaces::NodeBaseInterface::SharedPtr &node) {
  if (node == nullptr) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  named_groups_.erase(std::remove_if(named_groups_.begin(), named_groups_.end(),
                                     [&](const auto &named) { return named.first.expired(); }),
                      named_groups_.end());
  named_groups_.emplace_back(group, node->get_fully_qualified_name());
}

Roll::Nodes Roll::nodes_of_groups_locked() {
  Nodes names;
  for (const auto &[weak, name] : named_groups_) {
    const auto group = weak.lock();
    if (group != nullptr) names[group.get()] = name;
  }
  for (const auto &weak : nodes_) {
    const auto node = weak.lock();
    if (node == nullptr) continue;
    const std::string name = node->get_fully_qualified_name();
    node->for_each_callback_group([&](const rclcpp::CallbackGroup::SharedPtr &group) { names[group.get()] = name; });
  }
  return names;
}

// One that lies where a former one lay is another.
std::shared_ptr<tide_rcl::Group> Roll::group_locked(const rclcpp::CallbackGroup::SharedPtr &group) {
  GroupRecord &record = groups_[group.get()];
  if (record.group == nullptr || record.thing.lock() != group) {
    const bool reentrant = group->type() == rclcpp::CallbackGroupType::Reentrant;
    record.thing = group;
    record.group = std::make_shared<tide_rcl::Group>(reentrant ? TIDE_GROUP_REENTRANT : TIDE_GROUP_EXCLUSIVE);
  }
  return record.group;
}

template <typename Made, typename Thing>
void Roll::see_locked(const std::shared_ptr<Thing> &thing, Found found, const rclcpp::CallbackGroup::SharedPtr &group) {
  Record &record = records_[thing.get()];
  if (record.entity != nullptr && record.thing.lock() == thing) {
    record.seen = round_;
    return;
  }
  if (record.entity != nullptr) remove(record);
  const tide_priority_t priority = plan_.priority_of(found);
  record = {thing, std::make_shared<Made>(thing), std::move(found), round_, {}};
  if constexpr (std::is_same_v<Thing, rclcpp::Waitable>) record.timers = kept_timers(thing);
  try {
    for (const auto &entity : record.entities()) {
      entity->set_names(plan_.names_of(record.found));
      engine_.add(entity, priority, group_locked(group));
    }
  } catch (...) {  // a waitable that cannot tell when it is ready
    remove(record);
    records_.erase(thing.get());
    throw;
  }
}

// No event tells that one is due.
std::vector<std::shared_ptr<tide_rcl::Entity>> Roll::kept_timers(const rclcpp::Waitable::SharedPtr &waitable) {
  std::vector<std::shared_ptr<tide_rcl::Entity>> timers;
  const auto mutex = std::make_shared<std::mutex>();  // a reentrant group runs them at a time
  const std::weak_ptr<rclcpp::Waitable> weak = waitable;
  for (const rcl_timer_t *timer : timers_of(*waitable, *context_)) {
    const auto serve = [weak, timer, mutex, context = context_] {
      const auto held = weak.lock();
      if (held == nullptr) return;
      const auto take = [&] {
        const std::lock_guard<std::mutex> lock(*mutex);
        return take_for_timer(*held, *context, timer);
      };
      const std::shared_ptr<void> data = take();
      if (data != nullptr) held->execute(data);
    };
    timers.push_back(std::make_shared<tide_rcl::KeptTimer>(std::shared_ptr<const rcl_timer_t>(waitable, timer), serve));
  }
  return timers;
}

// It is asked for its name only once.
bool Roll::is_here_locked(const rclcpp::Waitable::SharedPtr &waitable) {
  const auto known = records_.find(waitable.get());
  if (known == records_.end() || known->second.thing.lock() != waitable) return false;
  known->second.seen = round_;
  return true;
}

void Roll::see_group_locked(const Everything &everything, const rclcpp::CallbackGroup::SharedPtr &group,
                            const std::string &node) {
  for (const auto &timer : everything.timers) {
    see_locked<TimerRecord>(timer, {Kind::kTimer, node, "", period_of(*timer), 0}, group);
  }
  for (const auto &subscription : everything.subscriptions) {
    see_locked<SubscriptionRecord>(subscription, {Kind::kSubscription, node, subscription->get_topic_name(), {}, 0},
                                   group);
  }
  for (const auto &service : everything.services) {
    see_locked<ServiceRecord>(service, {Kind::kService, node, service->get_service_name(), {}, 0}, group);
  }
  for (const auto &client : everything.clients) {
    see_locked<ClientRecord>(client, {Kind::kClient, node, client->get_service_name(), {}, 0}, group);
  }
  for (const auto &waitable : everything.waitables) {
    if (is_here_locked(waitable)) continue;
    see_locked<WaitableRecord>(waitable, waitable_as_found(waitable, node, *context_), group);
  }
}

void Roll::update(const std::function<Groups()> &groups) {
  std::vector<Everything> all;  // outlives the lock: a destructor of the program may call us
  const std::lock_guard<std::mutex> lock(mutex_);
  round_++;
  const Nodes names = nodes_of_groups_locked();
  for (const auto &weak : groups()) {
    const auto group = weak.lock();
    if (group == nullptr) continue;
    Everything &here = all.emplace_back();
    here.groups.push_back(group);
    group->collect_all_ptrs(
        [&](const auto &one) { here.subscriptions.push_back(one); },
        [&](const auto &one) { here.services.push_back(one); }, [&](const auto &one) { here.clients.push_back(one); },
        [&](const auto &one) { here.timers.push_back(one); }, [&](const auto &one) { here.waitables.push_back(one); });
    const auto name = names.find(group.get());
    see_group_locked(here, group, name == names.end() ? "" : name->second);
  }
  forget_unseen_locked();
}

void Roll::forget_unseen_locked() {
  for (auto next = records_.begin(); next != records_.end();) {
    if (next->second.seen == round_) {
      ++next;
      continue;
    }
    remove(next->second);
    next = records_.erase(next);
  }
  for (auto next = groups_.begin(); next != groups_.end();) {
    next = next->second.thing.expired() ? groups_.erase(next) : std::next(next);
  }
}

std::vector<std::shared_ptr<tide_rcl::Group>> Roll::groups_of(rclcpp::node_interfaces::NodeBaseInterface &node) const {
  std::vector<std::shared_ptr<tide_rcl::Group>> groups;
  const std::lock_guard<std::mutex> lock(mutex_);
  node.for_each_callback_group([&](const rclcpp::CallbackGroup::SharedPtr &group) {
    const auto found = groups_.find(group.get());
    if (found != groups_.end()) groups.push_back(found->second.group);
  });
  return groups;
}

bool Roll::set_priority(const rclcpp::Waitable &waitable, tide_priority_t priority) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = records_.find(&waitable);
  if (found == records_.end()) return false;
  for (const auto &entity : found->second.entities()) engine_.set_priority(*entity, priority);
  return true;
}

std::vector<Found> Roll::found_locked() const {
  std::vector<Found> found;
  for (const auto &[key, record] : records_) found.push_back(record.found);
  return found;
}

std::vector<std::string> Roll::unmatched() const {
  if (plan_.empty()) return {};
  const std::lock_guard<std::mutex> lock(mutex_);
  return plan_.unmatched(found_locked());
}

std::vector<NameLog::Line> Roll::log_of_names() {
  if (plan_.empty()) return {};
  const std::lock_guard<std::mutex> lock(mutex_);
  return name_log_.update(plan_, found_locked());
}

std::string Roll::name_of(const tide_rcl::Entity &entity) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto &[key, record] : records_) {
    const auto entities = record.entities();
    const bool is =
        std::any_of(entities.begin(), entities.end(), [&](const auto &one) { return one.get() == &entity; });
    if (!is) continue;
    return record.found.kind == Kind::kRemote ? "a waitable of " + record.found.node : to_string(record.found);
  }
  return "a callback that was removed meanwhile";
}

std::vector<std::string> Roll::without_chain() const {
  std::vector<std::string> lines;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto &[key, record] : records_) {
    const bool named = record.found.kind != Kind::kRemote;
    if (named && record.entity->priority() == 0) lines.push_back(to_string(record.found));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

}  // namespace tide_rclcpp
