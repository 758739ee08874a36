// SPDX-License-Identifier: Apache-2.0
#include "roll.h"

#include <algorithm>
#include <deque>
#include <optional>

#include "rcl/error_handling.h"
#include "rcl/wait.h"
#include "rclcpp/experimental/subscription_intra_process_base.hpp"
#include "tide_rcl/entities.h"

namespace tide_rclcpp {

namespace {

using rclcpp::experimental::SubscriptionIntraProcessBase;

// Gives access to protected static functions of rclcpp::Executor.
struct Access : public rclcpp::Executor {
  using rclcpp::Executor::execute_client;
  using rclcpp::Executor::execute_service;
  using rclcpp::Executor::execute_subscription;
};

// A timer exposes its clock, which has rclcpp's lock, only to derived classes.
struct ClockOf : public rclcpp::TimerBase {
  static rclcpp::Clock::SharedPtr get(rclcpp::TimerBase &timer) { return timer.*(&ClockOf::clock_); }
};

std::size_t places_of(const rclcpp::QoS &qos) {
  return qos.history() == rclcpp::HistoryPolicy::KeepLast ? qos.depth() : 0;
}

std::size_t places_of(const rclcpp::Waitable::SharedPtr &waitable) {
  const auto intra_process = std::dynamic_pointer_cast<SubscriptionIntraProcessBase>(waitable);
  return intra_process == nullptr ? 0 : places_of(intra_process->get_actual_qos());
}

// ---- entities of rclcpp as entities of the engine ----
//
// A record keeps its rclcpp object alive only while that object's callback runs. The function that the object calls on
// arrivals keeps the record and its engine alive, because a subscription that the program destroys may receive messages
// until its destructor has finished, and the record cannot reset that function any more.

// The entity for a queue of the middleware. `Of` defines how rclcpp reports arrivals in this queue and how rclcpp takes
// from it.
template <typename Of>
class QueueRecord final : public tide_rcl::Arrivals, public std::enable_shared_from_this<QueueRecord<Of>> {
 public:
  explicit QueueRecord(const std::shared_ptr<typename Of::Thing> &thing)
      : Arrivals(Of::kKind, Of::places(*thing)), thing_(thing) {}

 private:
  void connect() override {
    Arrivals::connect();
    const auto thing = thing_.lock();
    if (thing == nullptr) return;
    Of::listen(*thing, [self = this->shared_from_this(), engine = this->keep_engine()](std::size_t times) {
      self->arrived(times);
    });
  }
  void disconnect() noexcept override {
    const auto thing = thing_.lock();
    if (thing != nullptr) Of::listen_no_more(*thing);
  }
  void take() override {
    const auto thing = thing_.lock();
    if (thing != nullptr) Of::execute(thing);
  }
  std::weak_ptr<typename Of::Thing> thing_;
};

using Told = std::function<void(std::size_t)>;
struct OfSubscription {
  using Thing = rclcpp::SubscriptionBase;
  static constexpr tide_callback_kind_t kKind = TIDE_CALLBACK_SUBSCRIPTION;
  static std::size_t places(const Thing &thing) { return places_of(thing.get_actual_qos()); }
  static void listen(Thing &thing, const Told &told) { thing.set_on_new_message_callback(told); }
  static void listen_no_more(Thing &thing) { thing.clear_on_new_message_callback(); }
  static void execute(const std::shared_ptr<Thing> &thing) { Access::execute_subscription(thing); }
};
struct OfService {
  using Thing = rclcpp::ServiceBase;
  static constexpr tide_callback_kind_t kKind = TIDE_CALLBACK_SERVICE;
  static std::size_t places(const Thing &) { return 0; }
  static void listen(Thing &thing, const Told &told) { thing.set_on_new_request_callback(told); }
  static void listen_no_more(Thing &thing) { thing.clear_on_new_request_callback(); }
  static void execute(const std::shared_ptr<Thing> &thing) { Access::execute_service(thing); }
};
struct OfClient {
  using Thing = rclcpp::ClientBase;
  static constexpr tide_callback_kind_t kKind = TIDE_CALLBACK_CLIENT;
  static std::size_t places(const Thing &) { return 0; }
  static void listen(Thing &thing, const Told &told) { thing.set_on_new_response_callback(told); }
  static void listen_no_more(Thing &thing) { thing.clear_on_new_response_callback(); }
  static void execute(const std::shared_ptr<Thing> &thing) { Access::execute_client(thing); }
};
using SubscriptionRecord = QueueRecord<OfSubscription>;
using ServiceRecord = QueueRecord<OfService>;
using ClientRecord = QueueRecord<OfClient>;

class TimerRecord final : public tide_rcl::TimerEntity {
 public:
  explicit TimerRecord(const rclcpp::TimerBase::SharedPtr &timer) : timer_(timer), handle_(timer->get_timer_handle()) {}

 private:
  std::shared_ptr<const rcl_timer_t> lock() const override { return timer_.expired() ? nullptr : handle_; }
  bool call(std::shared_ptr<void> &data) override {
    const auto timer = timer_.lock();
    if (timer != nullptr) data = timer->call();
    return data != nullptr;
  }
  void fire(const std::shared_ptr<void> &data) override {
    const auto timer = timer_.lock();
    if (timer != nullptr) timer->execute_callback(data);
  }
  void connect() override {
    const auto timer = timer_.lock();
    if (timer == nullptr) return;
    TimerEntity::connect();
    timer->set_on_reset_callback([this](std::size_t) { follow(); });
    const rclcpp::Clock::SharedPtr clock = ClockOf::get(*timer);
    if (clock->get_clock_type() != RCL_ROS_TIME) return;
    const rcl_jump_threshold_t every_jump = {true, {1}, {-1}};
    jumps_ = clock->create_jump_callback(
        nullptr, [this](const rcl_time_jump_t &) { follow(); }, every_jump);
    follow();  // its clock may have jumped before the callback existed
  }
  void disconnect() noexcept override {
    jumps_.reset();
    const auto timer = timer_.lock();
    if (timer != nullptr) timer->clear_on_reset_callback();
  }

  std::weak_ptr<rclcpp::TimerBase> timer_;
  // Kept so that lock() need not hold the timer: lock() is called while a clock jump is reported, which holds the
  // clock's lock. The destructor of the timer takes this lock, so the last reference to the timer must not be released
  // there.
  std::shared_ptr<const rcl_timer_t> handle_;
  rclcpp::JumpHandler::SharedPtr jumps_;
};

// The entity for a waitable: an event, action server or client, intra-process subscription, or user-defined waitable.
class WaitableRecord final : public tide_rcl::Arrivals, public std::enable_shared_from_this<WaitableRecord> {
 public:
  explicit WaitableRecord(const rclcpp::Waitable::SharedPtr &waitable)
      : Arrivals(TIDE_CALLBACK_GUARD, places_of(waitable)),
        waitable_(waitable),
        intra_process_(std::dynamic_pointer_cast<SubscriptionIntraProcessBase>(waitable) != nullptr) {}

 private:
  void connect() override {
    Arrivals::connect();
    const auto waitable = waitable_.lock();
    if (waitable == nullptr) return;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      parts_.clear();
    }
    waitable->set_on_ready_callback([self = shared_from_this(), engine = keep_engine()](std::size_t times, int part) {
      self->became_ready(times, part);
    });
    const auto subscription = std::dynamic_pointer_cast<SubscriptionIntraProcessBase>(waitable);
    if (subscription == nullptr) return;
    // Messages that arrived before this executor had the callback are not reported again, so they are counted here. A
    // run that finds no message does nothing.
    const std::size_t depth = places_of(subscription->get_actual_qos());
    const std::size_t free = subscription->available_capacity();
    if (depth > free) arrived(depth - free);
  }
  void disconnect() noexcept override {
    const auto waitable = waitable_.lock();
    if (waitable != nullptr) waitable->clear_on_ready_callback();
  }
  void became_ready(std::size_t times, int part) {
    if (!intra_process_) {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (parts_.empty() || parts_.back().first != part) parts_.emplace_back(part, 0);
      parts_.back().second += times;
    }
    arrived(times);
  }
  int next_part() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (parts_.empty()) return 0;
    const int part = parts_.front().first;
    if (--parts_.front().second == 0) parts_.pop_front();
    return part;
  }
  void take() override {
    const int part = intra_process_ ? 0 : next_part();
    const auto waitable = waitable_.lock();
    if (waitable == nullptr) return;
    const std::shared_ptr<void> data = waitable->take_data_by_entity_id(static_cast<std::size_t>(part));
    waitable->execute(data);
  }

  std::weak_ptr<rclcpp::Waitable> waitable_;
  bool intra_process_;
  std::mutex mutex_;  // guards parts_: which parts of the waitable became ready, in order, and how often
  std::deque<std::pair<int, std::size_t>> parts_;
};

// ---- waitables ----
//
// Some properties of a waitable can be read only from a wait set: rclcpp_action reports neither the name of an action
// nor the expiry of results, but its waitables add their services, clients and timers to a wait set. Because they are
// read there, this package does not depend on rclcpp_action.

// These two functions compare a waitable with the numbers of entities that rcl_action's server and client have. Only
// waitables with equal numbers are examined for the name of an action.
bool is_like_server(rclcpp::Waitable &waitable) {
  return waitable.get_number_of_ready_services() == 3 && waitable.get_number_of_ready_timers() == 1;
}

bool is_like_client(rclcpp::Waitable &waitable) {
  return waitable.get_number_of_ready_clients() == 3 && waitable.get_number_of_ready_subscriptions() == 2;
}

class WaitSet {
 public:
  WaitSet(rclcpp::Waitable &waitable, rclcpp::Context &context) {
    const rcl_ret_t result = rcl_wait_set_init(
        &set, waitable.get_number_of_ready_subscriptions(), waitable.get_number_of_ready_guard_conditions(),
        waitable.get_number_of_ready_timers(), waitable.get_number_of_ready_clients(),
        waitable.get_number_of_ready_services(), waitable.get_number_of_ready_events(), context.get_rcl_context().get(),
        rcl_get_default_allocator());
    if (result != RCL_RET_OK) rcl_reset_error();
    is_valid = result == RCL_RET_OK;
  }
  WaitSet(const WaitSet &) = delete;
  WaitSet &operator=(const WaitSet &) = delete;
  ~WaitSet() {
    if (rcl_wait_set_fini(&set) != RCL_RET_OK) rcl_reset_error();
  }
  bool is_valid = false;  // false if rcl refused it, because the context is shut down
  rcl_wait_set_t set = rcl_get_zero_initialized_wait_set();
};

const char *name_of_first(const rcl_wait_set_t &set) {
  if (set.size_of_services > 0 && set.services[0] != nullptr) return rcl_service_get_service_name(set.services[0]);
  if (set.size_of_clients > 0 && set.clients[0] != nullptr) return rcl_client_get_service_name(set.clients[0]);
  return nullptr;
}

std::unique_ptr<WaitSet> filled(rclcpp::Waitable &waitable, rclcpp::Context &context) {
  auto wait_set = std::make_unique<WaitSet>(waitable, context);
  if (!wait_set->is_valid) return nullptr;
  waitable.add_to_wait_set(wait_set->set);
  return wait_set;
}

// The name of the waitable's action; no value if its services are not those of an action.
std::optional<std::string> action_of(rclcpp::Waitable &waitable, rclcpp::Context &context) {
  const auto wait_set = filled(waitable, context);
  if (wait_set == nullptr) return std::nullopt;
  const char *service = name_of_first(wait_set->set);
  const std::string name = service == nullptr ? "" : service;
  const std::size_t at = name.rfind("/_action/");
  if (at == std::string::npos) return std::nullopt;
  return name.substr(0, at);
}

// How chains name a waitable: an intra-process subscription by its topic, an action server or client by its action. All
// other waitables (events, user-defined ones) cannot be named; the result is then of the kind kRemote.
Found waitable_as_found(const rclcpp::Waitable::SharedPtr &waitable, const std::string &node,
                        rclcpp::Context &context) {
  const auto subscription = std::dynamic_pointer_cast<SubscriptionIntraProcessBase>(waitable);
  if (subscription != nullptr) return {Kind::kSubscription, node, subscription->get_topic_name(), {}, 0};
  const bool server = is_like_server(*waitable);
  if (server || is_like_client(*waitable)) {
    const std::optional<std::string> action = action_of(*waitable, context);
    if (action) return {server ? Kind::kActionServer : Kind::kActionClient, node, *action, {}, 0};
  }
  return {Kind::kRemote, node, "", {}, 0};
}

// The timers that a waitable adds to a wait set, such as the expiry of an action server's goals. They exist as long as
// the waitable.
std::vector<const rcl_timer_t *> timers_of(rclcpp::Waitable &waitable, rclcpp::Context &context) {
  if (waitable.get_number_of_ready_timers() == 0) return {};
  const auto wait_set = filled(waitable, context);
  if (wait_set == nullptr) return {};
  const rcl_wait_set_t &set = wait_set->set;
  std::vector<const rcl_timer_t *> timers(set.timers, set.timers + set.size_of_timers);
  timers.erase(std::remove(timers.begin(), timers.end(), nullptr), timers.end());
  return timers;
}

// Takes the waitable's work for this due timer; null if there is none. Only one thread at a time may call this for a
// waitable. In the wait set only the timer is marked ready, because events report everything else.
std::shared_ptr<void> take_for_timer(rclcpp::Waitable &waitable, rclcpp::Context &context, const rcl_timer_t *timer) {
  const auto wait_set = filled(waitable, context);
  if (wait_set == nullptr) return nullptr;
  rcl_wait_set_t &set = wait_set->set;
  const auto none = [](auto **entities, std::size_t count) { std::fill(entities, entities + count, nullptr); };
  none(set.subscriptions, set.size_of_subscriptions);
  none(set.guard_conditions, set.size_of_guard_conditions);
  none(set.clients, set.size_of_clients);
  none(set.services, set.size_of_services);
  none(set.events, set.size_of_events);
  std::replace_if(
      set.timers, set.timers + set.size_of_timers, [timer](auto *one) { return one != timer; }, nullptr);
  return waitable.is_ready(set) ? waitable.take_data() : nullptr;
}

std::chrono::nanoseconds period_of(const rclcpp::TimerBase &timer) {
  std::int64_t period_ns = 0;
  auto &unlocked = const_cast<rclcpp::TimerBase &>(timer);
  if (rcl_timer_get_period(unlocked.get_timer_handle().get(), &period_ns) != RCL_RET_OK) rcl_reset_error();
  return std::chrono::nanoseconds(period_ns);
}

}  // namespace

// ---- the roll ----

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

// The engine's group for this group of rclcpp. A new group may have the address of a destroyed one, so both are
// compared.
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
  } catch (...) {  // thrown, for example, by a waitable without set_on_ready_callback
    remove(record);
    records_.erase(thing.get());
    throw;
  }
}

// Returns an entity for each timer inside a waitable, because no event reports that such a timer is due.
std::vector<std::shared_ptr<tide_rcl::Entity>> Roll::kept_timers(const rclcpp::Waitable::SharedPtr &waitable) {
  std::vector<std::shared_ptr<tide_rcl::Entity>> timers;
  const auto mutex = std::make_shared<std::mutex>();  // in a reentrant group, lanes may serve them concurrently
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

// True if the waitable has a record already, which this marks as seen. Its name then need not be determined again.
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
  std::vector<Everything> all;  // destroyed after the lock, because destructors of the program may call this object
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
