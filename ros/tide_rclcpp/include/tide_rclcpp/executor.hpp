// SPDX-License-Identifier: Apache-2.0
// An executor for rclcpp that runs the most urgent callback first and supports chains. It replaces an executor of
// rclcpp in one line:
//
//   tide_rclcpp::Executor executor(tide_rclcpp::options_of(*node->get_node_parameters_interface()));
//   executor.add_node(node);
//   executor.spin();
//
// The executor is event-driven, without a wait set: it inspects only ready callbacks. A choice costs O(log n) for n
// ready callbacks; timers wait in a queue sorted by time. Every spin of rclcpp::Executor, cancel, callback groups,
// nodes and groups added and removed at run time, simulated time, intra-process messages, actions and other waitables
// work as rclcpp documents them. Differences:
// - order: by priority, then by arrival. rclcpp's executors order by kind and registration, as does the policy
//   "default".
// - spin with several lanes runs callbacks on the executor's threads; the other spins run them on the caller's.
// - an exception of a callback ends the current spin on all lanes and is rethrown from it. The executor remains usable.
// - a late timer skips missed expiries, as in rcl, and never runs early.
// Waitables must implement set_on_ready_callback and take_data_by_entity_id, as for rclcpp's EventsExecutor. Timers
// that waitables put into a wait set are served as well.
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
  // Ends the spin of another thread and waits for it. Must not be called from a callback, nor while another thread
  // waits in spin_until_future_complete.
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

  // Like remove_node, but returns only when no callback of the node runs any more, except the caller's own. The node
  // and the data of its callbacks may then be destroyed, or moved to another executor (an exclusive group holds only
  // within one executor). The call waits as long as the callbacks run, so it waits for ever if one of them waits for
  // the caller.
  void remove_node_and_wait(const rclcpp::node_interfaces::NodeBaseInterface::SharedPtr &node);

  // Sets the priority of a waitable, because chains have no name for waitables. This has no effect on a waitable that
  // is added later. Throws std::invalid_argument if the waitable is not in this executor.
  void set_priority(const rclcpp::Waitable &waitable, std::uint8_t level, std::uint8_t position = 0);

  // Names in chains that match no callback of the present nodes, and callbacks that are in no chain, one in each line.
  // While spinning, the executor logs when a name matches and, as a warning, when it no longer does. After each new
  // node, it logs as a warning all names that have never matched. It also logs the number of callbacks that are in no
  // chain and, at level debug, each of them.
  std::vector<std::string> unmatched() const;
  std::vector<std::string> without_chain() const;

  // The callback whose exception ended the last spin, in the form "subscription /planner /scan"; empty if there was
  // none.
  std::string failed_callback() const;

  // The lines that Options::measured_file would get now; empty without such a file.
  std::string measurement_lines();
  // Called by a callback to set its instance number in the trace, from a number in its message.
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
