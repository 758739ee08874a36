// SPDX-License-Identifier: Apache-2.0
// An executor for rclcpp that runs the most urgent callback first and supports chains. It replaces rclcpp's in one
// line:
//
//   tide_rclcpp::Executor executor(tide_rclcpp::options_of(*node->get_node_parameters_interface()));
//   executor.add_node(node);
//   executor.spin();
//
// Event-driven, without a wait set: only ready callbacks are inspected. A choice costs O(log n) in the ready callbacks;
// timers wait in a queue by time. Every spin of rclcpp::Executor, cancel, callback groups, nodes and groups added and
// removed at run time, simulated time, intra-process messages, actions and other waitables work as rclcpp documents
// them. Differences:
// - order: by priority, then by arrival. rclcpp's executors order by kind and registration, as does the policy
// "default".
// - spin with several lanes runs callbacks on the executor's threads; the other spins run them on the caller's.
// - an exception of a callback ends the current spin on all lanes and is rethrown from it. The executor remains usable.
// - a late timer skips missed expiries, as in rcl, and never runs early. Waitables need set_on_ready_callback and
//   take_data_by_entity_id, as with rclcpp's EventsExecutor. Timers that they put into a wait set are served, too.
#ifndef TIDE_RCLCPP__EXECUTOR_HPP_
#define TIDE_RCLCPP__EXECUTOR_HPP_

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
  // Ends the spin of another thread and waits for it. Not from a callback, and not while another thread waits in
  // spin_until_future_complete.
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

  // As remove_node, but returns when no callback of the node runs any more, except the caller's own. The node and the
  // data of its callbacks may then be destroyed or moved to another executor (an exclusive group holds only within
  // one). It waits as long as the callbacks run: for ever, if one of them waits for the caller.
  void remove_node_and_wait(const rclcpp::node_interfaces::NodeBaseInterface::SharedPtr &node);

  // Sets the priority of a waitable, which has no name for chains. No effect on one that is added later.
  // std::invalid_argument: it is not in this executor.
  void set_priority(const rclcpp::Waitable &waitable, std::uint8_t level, std::uint8_t position = 0);

  // Names in chains that match no callback of the present nodes, and callbacks without a chain, one a line. While
  // spinning, the executor logs when a name matches and when it no longer does (a warning), and after each new node all
  // names that never matched (a warning). It logs the number of callbacks without a chain, and at level debug each of
  // them.
  std::vector<std::string> unmatched() const;
  std::vector<std::string> without_chain() const;

  // The callback whose exception ended the last spin, as "subscription /planner /scan"; empty: none.
  std::string failed_callback() const;

  // Present contents of Options::measured_file; empty without one.
  std::string measurement_lines();
  // Called by a callback: sets its instance number in the trace, from a number in its message.
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

#endif  // TIDE_RCLCPP__EXECUTOR_HPP_
