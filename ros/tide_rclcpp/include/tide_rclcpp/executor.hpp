// SPDX-License-Identifier: Apache-2.0
// An executor for rclcpp that runs the most urgent callback first and supports chains. One changed line replaces an
// executor of rclcpp by this one:
//
//   tide_rclcpp::Executor executor(tide_rclcpp::options_of(*node->get_node_parameters_interface()));
//   executor.add_node(node);
//   executor.spin();
//
// The executor is driven by events, without a wait set, so it does not inspect callbacks that are not ready. A choice
// costs O(log n) for n ready callbacks. Timers wait in a queue sorted by time. All spin functions of rclcpp::Executor,
// cancel, callback groups, nodes and groups that are added and removed at run time, simulated time, intra-process
// messages, actions and other waitables work as rclcpp documents them. Differences:
// - ready callbacks are ordered by priority, then by arrival. rclcpp's executors, and this one with the policy
// "default", order them by kind and registration.
// - with several lanes, spin() runs callbacks in threads of the executor. The other spin functions always run them in
// the calling thread.
// - an exception of a callback ends the current spin on all lanes, and the spin function rethrows it. The executor can
// spin again. - a timer never runs early. A late one skips missed expiries, as in rcl.
// Waitables must implement set_on_ready_callback and take_data_by_entity_id, as for rclcpp's EventsExecutor. Timers
// that waitables put into a wait set are served as well.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "rclcpp/executor.hpp"
#include "tide_rclcpp/options.hpp"
#include "tide_rclcpp/releases.hpp"

namespace tide_rclcpp {

class Executor : public rclcpp::Executor {
 public:
  RCLCPP_SMART_PTR_DEFINITIONS(Executor)

  explicit Executor(const rclcpp::ExecutorOptions &options = rclcpp::ExecutorOptions());
  explicit Executor(Options tide, const rclcpp::ExecutorOptions &options = rclcpp::ExecutorOptions());
  // Ends a spin in another thread and waits until it has ended. Must not be called from a callback, nor while another
  // thread is in spin_until_future_complete.
  ~Executor() override;

  void spin() override;
  void spin_once(std::chrono::nanoseconds timeout = std::chrono::nanoseconds(-1)) override;
  void spin_some(std::chrono::nanoseconds max_duration = std::chrono::nanoseconds(0)) override;
  void spin_all(std::chrono::nanoseconds max_duration) override;
  void cancel() override;

  using rclcpp::Executor::add_node;
  using rclcpp::Executor::remove_node;
  void add_node(TakenNodeBase node, bool notify = true) override;
  void add_node(TakenNode node, bool notify = true) override;
  void remove_node(TakenNodeBase node, bool notify = true) override;
  void remove_node(TakenNode node, bool notify = true) override;
  void add_callback_group(TakenGroup group, TakenNodeBase node, bool notify = true) override;
  void remove_callback_group(TakenGroup group, bool notify = true) override;
  std::vector<rclcpp::CallbackGroup::WeakPtr> get_all_callback_groups() override;
  std::vector<rclcpp::CallbackGroup::WeakPtr> get_manually_added_callback_groups() override;
  std::vector<rclcpp::CallbackGroup::WeakPtr> get_automatically_added_callback_groups_from_nodes() override;

  // Like remove_node, but returns only when no callback of the node runs any more, except one that makes this call.
  // Then the node and the data of its callbacks may be destroyed, or the node may be added to another executor (an
  // exclusive group excludes runs only within one executor). The call never returns if a running callback of the node
  // waits for the caller.
  void remove_node_and_wait(const rclcpp::node_interfaces::NodeBaseInterface::SharedPtr &node);

  // Sets the priority of a waitable, such as a user-defined one, which chains cannot name. Throws std::invalid_argument
  // if the waitable is not in this executor (add it first), or if the level is above 126. A waitable that is removed
  // and added again loses this priority.
  void set_priority(const rclcpp::Waitable &waitable, std::uint8_t level, std::uint8_t position = 0);

  // unmatched returns a line for each name in a chain that matches no callback of the present nodes, without_chain one
  // for each callback that no chain names. While spinning, the executor logs when a name begins to match and, as a
  // warning, when it no longer matches. After each new node, and when the node of such a name has other callbacks than
  // before, it logs as a warning all names that have never matched. It also logs how many further callbacks no chain
  // names and, at level debug, each of them.
  std::vector<std::string> unmatched() const;
  std::vector<std::string> without_chain() const;

  // The callback whose exception ended the last spin, in the form "subscription /planner /scan", or a description if it
  // has no such name; empty if no exception ended the spin.
  std::string failed_callback() const;

  // The lines that Options::measured_file would get if the executor were destroyed now; empty without such a file.
  std::string measurement_lines();
  // A callback may call this to set the instance number of its run in the trace, for example to a number from its
  // message.
  static void set_trace_instance(std::uint32_t instance) noexcept;

  tide_executor_counters_t counters();

 protected:
  void spin_once_impl(std::chrono::nanoseconds timeout) override;

 private:
  class Impl;
  RCLCPP_DISABLE_COPY(Executor)
  std::unique_ptr<Impl> impl_;
};

}  // namespace tide_rclcpp
