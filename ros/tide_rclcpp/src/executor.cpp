// SPDX-License-Identifier: Apache-2.0
#include "tide_rclcpp/executor.hpp"

#include <cstdlib>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>

#include "rclcpp/rclcpp.hpp"
#include "roll.h"
#include "tide_rcl/entities.h"

namespace tide_rclcpp {

namespace {

// The update, which adds new callbacks, is more urgent than callbacks in no chain, because they could delay it, but
// less urgent than every chain.
constexpr tide_priority_t kUpdatePriority = TIDE_PRIORITY(0, 255);

std::string or_environment(const std::string &path, const char *variable) {
  const char *set = std::getenv(variable);
  return path.empty() && set != nullptr ? set : path;
}

tide_rcl::EngineOptions engine_options(Options &options) {
  tide_rcl::EngineOptions engine;
  engine.lanes = std::move(options.lanes);
  engine.policy = options.policy;
  engine.patience = options.patience;
  engine.measured_file = or_environment(options.measured_file, "TIDE_MEASURED_FILE");
  engine.trace_file = or_environment(options.trace_file, "TIDE_TRACE_FILE");
  engine.trace_place = options.trace_place;
  return engine;
}

}  // namespace

class Executor::Impl {
  enum class Stage { kNone, kInside, kEnds };  // kEnds: ended, but `spinning` may still be true

 public:
  Impl(Executor &executor, Options options)
      : executor_(executor),
        notify_waitable(std::make_shared<rclcpp::executors::ExecutorNotifyWaitable>([] {})),
        collector(std::make_shared<rclcpp::executors::ExecutorEntitiesCollector>(notify_waitable)),
        kept_engine_(std::make_shared<tide_rcl::Engine>(with_hooks(engine_options(options)))),
        engine(*kept_engine_),
        roll(engine, executor.context_, std::move(options.chains)),
        update_(std::make_shared<tide_rcl::Guard>([this] { update_if_outdated(); })) {
    engine.add(update_, kUpdatePriority);
  }
  ~Impl() { engine.remove(update_); }
  Impl(const Impl &) = delete;
  Impl &operator=(const Impl &) = delete;

  // Called when a node or group has changed or the context ends. The caller holds locks of guard conditions, so this
  // does not update anything itself. A spin that starts later checks for changes.
  void notified() {
    if (!rclcpp::ok(executor_.context_)) engine.cancel();
    outdated_.store(true);
    if (executor_.spinning.load()) update_->trigger();
  }

  void update_if_outdated() {
    if (outdated_.load()) update();
  }

  void update() {
    outdated_.store(false);
    collector->update_collections();
    roll.update([this] { return collector->get_all_callback_groups(); });
    if (executor_.spinning.load()) report();
  }

  // Logs names that begin or cease to match, and callbacks that no chain names, each of them once.
  void report() {
    if (!roll.has_chains()) return;
    const rclcpp::Logger logger = rclcpp::get_logger("tide_rclcpp");
    const std::lock_guard<std::mutex> lock(report_mutex_);
    for (const auto &[warning, text] : roll.log_of_names()) {
      if (warning) {
        RCLCPP_WARN(logger, "%s", text.c_str());
      } else {
        RCLCPP_INFO(logger, "%s", text.c_str());
      }
    }
    const std::vector<std::string> without_chain = roll.without_chain();
    std::set<std::string> others;  // without callbacks that no longer exist, so that it does not grow for ever
    std::size_t more = 0;
    for (const std::string &line : without_chain) {
      if (!others.insert(line).second || others_.count(line) > 0) continue;
      more++;
      RCLCPP_DEBUG(logger, "%s: no chain names it", line.c_str());
    }
    others_.swap(others);
    if (more > 0) RCLCPP_INFO(logger, "callbacks that no chain names: %zu more; level debug lists them", more);
  }

  // Marks the executor as spinning until the end of the scope. The constructor throws std::runtime_error if it spins
  // already.
  class Spin {
   public:
    Spin(Executor &executor, const char *name) : executor_(executor), stage_(executor.impl_->stage_) {
      if (executor.spinning.exchange(true)) refuse(name);
      Stage none = Stage::kNone;
      while (!stage_.compare_exchange_weak(none, Stage::kInside)) {
        if (none == Stage::kInside) {  // a canceled spin has not ended yet
          executor.spinning.store(false);
          refuse(name);
        }
        none = Stage::kNone;
        std::this_thread::yield();
      }
      const std::lock_guard<std::mutex> lock(executor.impl_->report_mutex_);
      executor.impl_->failed_.clear();
    }
    Spin(const Spin &) = delete;
    Spin &operator=(const Spin &) = delete;
    ~Spin() {
      stage_.store(Stage::kEnds);
      executor_.spinning.store(false);
      stage_.store(Stage::kNone);  // the executor may be destroyed from here on
    }

   private:
    [[noreturn]] static void refuse(const char *name) {
      throw std::runtime_error(std::string(name) + "() called while already spinning");
    }
    Executor &executor_;
    std::atomic<Stage> &stage_;
  };

  void end_spin() {
    executor_.spinning.store(false);
    engine.cancel();
    while (stage_.load() != Stage::kNone) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  std::string failed() const {
    const std::lock_guard<std::mutex> lock(report_mutex_);
    return failed_;
  }

 private:
  tide_rcl::EngineOptions with_hooks(tide_rcl::EngineOptions options) {
    options.may_spin = [this] { return may_spin(); };
    options.on_failure = [this](tide_rcl::Entity &entity) {
      std::string name = &entity == update_.get() ? "what adds new callbacks" : roll.name_of(entity);
      const std::lock_guard<std::mutex> lock(report_mutex_);
      failed_.swap(name);
    };
    return options;
  }
  bool may_spin() const { return executor_.spinning.load() && rclcpp::ok(executor_.context_); }

  Executor &executor_;
  std::atomic<Stage> stage_{Stage::kNone};
  std::atomic<bool> outdated_{false};
  mutable std::mutex report_mutex_;
  std::string failed_;
  std::set<std::string> others_;

 public:
  std::shared_ptr<rclcpp::executors::ExecutorNotifyWaitable> notify_waitable;
  std::shared_ptr<rclcpp::executors::ExecutorEntitiesCollector> collector;

 private:
  std::shared_ptr<tide_rcl::Engine> kept_engine_;  // shared, because a subscription that is being destroyed may still
                                                   // call it

 public:
  tide_rcl::Engine &engine;
  Roll roll;

 private:
  std::shared_ptr<tide_rcl::Guard> update_;
};

Executor::Executor(const rclcpp::ExecutorOptions &options) : Executor(Options{}, options) {}

Executor::Executor(Options tide, const rclcpp::ExecutorOptions &options)
    : rclcpp::Executor(options), impl_(std::make_unique<Impl>(*this, std::move(tide))) {
  notify_waitable_ = impl_->notify_waitable;
  notify_waitable_->add_guard_condition(interrupt_guard_condition_);
  notify_waitable_->add_guard_condition(shutdown_guard_condition_);
  notify_waitable_->set_on_ready_callback([this](std::size_t, int) { impl_->notified(); });
}

Executor::~Executor() {
  impl_->end_spin();
  notify_waitable_->clear_on_ready_callback();
}

void Executor::spin() {
  const Impl::Spin spin(*this, "spin");
  impl_->update();
  impl_->engine.spin();
}

void Executor::spin_once(std::chrono::nanoseconds timeout) {
  const Impl::Spin spin(*this, "spin_once");
  spin_once_impl(timeout);
}

void Executor::spin_once_impl(std::chrono::nanoseconds timeout) {
  impl_->update_if_outdated();
  impl_->engine.spin_once(timeout);
}

void Executor::spin_some(std::chrono::nanoseconds max_duration) {
  const Impl::Spin spin(*this, "spin_some");
  impl_->update_if_outdated();
  impl_->engine.spin_some(max_duration);
}

void Executor::spin_all(std::chrono::nanoseconds max_duration) {
  if (max_duration.count() < 0) throw std::invalid_argument("max_duration must be greater than or equal to 0");
  const Impl::Spin spin(*this, "spin_all");
  impl_->update_if_outdated();
  impl_->engine.spin_all(max_duration);
}

void Executor::cancel() {
  spinning.store(false);
  impl_->engine.cancel();
}

void Executor::add_node(TakenNodeBase node, bool notify) {
  (void)notify;  // the executor's own update needs no wake-up
  impl_->collector->add_node(node);
  impl_->roll.know(node);
  impl_->update();
}

void Executor::add_node(TakenNode node, bool notify) { add_node(node->get_node_base_interface(), notify); }

void Executor::remove_node(TakenNodeBase node, bool notify) {
  (void)notify;
  impl_->collector->remove_node(node);
  impl_->update();
}

void Executor::remove_node_and_wait(const rclcpp::node_interfaces::NodeBaseInterface::SharedPtr &node) {
  const auto groups = impl_->roll.groups_of(*node);
  remove_node(node);
  impl_->engine.wait_for_removed(groups);
}

void Executor::remove_node(TakenNode node, bool notify) { remove_node(node->get_node_base_interface(), notify); }

void Executor::add_callback_group(TakenGroup group, TakenNodeBase node, bool notify) {
  (void)notify;
  impl_->collector->add_callback_group(group);
  impl_->roll.know(group, node);
  impl_->update();
}

void Executor::remove_callback_group(TakenGroup group, bool notify) {
  (void)notify;
  impl_->collector->remove_callback_group(group);
  impl_->update();
}

std::vector<rclcpp::CallbackGroup::WeakPtr> Executor::get_all_callback_groups() {
  impl_->collector->update_collections();
  return impl_->collector->get_all_callback_groups();
}

std::vector<rclcpp::CallbackGroup::WeakPtr> Executor::get_manually_added_callback_groups() {
  impl_->collector->update_collections();
  return impl_->collector->get_manually_added_callback_groups();
}

std::vector<rclcpp::CallbackGroup::WeakPtr> Executor::get_automatically_added_callback_groups_from_nodes() {
  impl_->collector->update_collections();
  return impl_->collector->get_automatically_added_callback_groups();
}

void Executor::set_priority(const rclcpp::Waitable &waitable, std::uint8_t level, std::uint8_t position) {
  if (level > TIDE_LEVEL_MAXIMUM) throw std::invalid_argument("level " + std::to_string(level) + " is not in 0 to 126");
  if (!impl_->roll.set_priority(waitable, TIDE_PRIORITY(level, position))) {
    throw std::invalid_argument("the waitable is not in this executor");
  }
}

std::vector<std::string> Executor::unmatched() const { return impl_->roll.unmatched(); }

std::string Executor::failed_callback() const { return impl_->failed(); }

std::string Executor::measurement_lines() { return impl_->engine.measurement_lines(); }

void Executor::set_trace_instance(std::uint32_t instance) noexcept { tide_rcl::Engine::set_trace_instance(instance); }

std::vector<std::string> Executor::without_chain() const { return impl_->roll.without_chain(); }

tide_executor_counters_t Executor::counters() { return impl_->engine.counters(); }

// ---- options from a node's parameters ----

namespace {

using Parameters = rclcpp::node_interfaces::NodeParametersInterface;

template <typename Value> Value parameter(Parameters &parameters, const std::string &name, const Value &usual) {
  if (!parameters.has_parameter(name)) {
    rcl_interfaces::msg::ParameterDescriptor descriptor;
    descriptor.read_only = true;
    parameters.declare_parameter(name, rclcpp::ParameterValue(usual), descriptor, false);
  }
  return parameters.get_parameter(name).get_value<Value>();
}

std::vector<std::string> list_of(Parameters &parameters, const std::string &name) {
  return parameter(parameters, name, std::vector<std::string>{});
}

tide_rcl::Policy policy_of(Parameters &parameters) {
  const std::string policy = parameter(parameters, "tide.policy", std::string("chains"));
  if (policy == "chains") return tide_rcl::Policy::kChains;
  if (policy == "default") return tide_rcl::Policy::kDefault;
  throw std::invalid_argument("parameter tide.policy: '" + policy + "' is neither chains nor default");
}

std::chrono::nanoseconds patience_of(Parameters &parameters) {
  const std::string usual = std::to_string(Options{}.patience.count()) + "ns";
  const std::string text = parameter(parameters, "tide.patience", usual);
  if (text == "none") return std::chrono::nanoseconds(0);
  const std::optional<std::chrono::nanoseconds> patience = duration_of(text);
  if (!patience.has_value()) {
    throw std::invalid_argument("parameter tide.patience: '" + text + "' is neither a duration, as 50us, nor none");
  }
  return *patience;
}

std::uint16_t place_of(Parameters &parameters) {
  const std::int64_t place = parameter(parameters, "tide.trace_place", std::int64_t{0});
  if (place >= 0 && place <= UINT16_MAX) return static_cast<std::uint16_t>(place);
  throw std::invalid_argument("parameter tide.trace_place: " + std::to_string(place) + " is not in 0 to 65535");
}

// Throws for an unknown parameter, because a misspelt one would otherwise be ignored silently.
void refuse_unknown(Parameters &parameters) {
  const std::set<std::string> known = {"tide.chains",        "tide.lanes",      "tide.policy",     "tide.patience",
                                       "tide.measured_file", "tide.trace_file", "tide.trace_place"};
  for (const auto &[name, value] : parameters.get_parameter_overrides()) {
    if (name.rfind("tide.", 0) != 0 || known.count(name) > 0) continue;
    std::string text = "parameter " + name + ": there is none of that name; known are";
    for (const std::string &one : known) text += (one == *known.begin() ? " " : ", ") + one;
    throw std::invalid_argument(text);
  }
}

}  // namespace

Options options_of(Parameters &parameters) {
  refuse_unknown(parameters);
  Options options;
  options.policy = policy_of(parameters);
  options.patience = patience_of(parameters);
  options.measured_file = parameter(parameters, "tide.measured_file", std::string());
  options.trace_file = parameter(parameters, "tide.trace_file", std::string());
  options.trace_place = place_of(parameters);
  for (const std::string &words : list_of(parameters, "tide.chains")) options.chains.push_back(parse_chain(words));
  for (const std::string &words : list_of(parameters, "tide.lanes")) options.lanes.push_back(parse_lane(words));
  return options;
}

}  // namespace tide_rclcpp
