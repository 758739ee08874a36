// SPDX-License-Identifier: Apache-2.0
// An executor for rclcpp that runs the most urgent callback first and knows about chains. It takes the place of
// rclcpp's in one line:
//
//   tide_rclcpp::Executor executor(tide_rclcpp::options_of(*node->get_node_parameters_interface()));
//   executor.add_node(node);
//   executor.spin();
//
// Driven by events: no wait set, no look at what is not ready. A choice costs O(log n) of what is ready; timers wait in
// a queue by time. Every spin of rclcpp::Executor, cancel, callback groups, nodes and groups that come and go,
// simulated time, intra-process messages, actions and other waitables work as rclcpp documents them. Differences:
// - order: by priority, then by arrival. rclcpp's executors go by kind and registration (the policy "default" does,
// too).
// - spin with several lanes runs callbacks on threads of the executor's own; the other spins run them on the caller's.
// - an exception of a callback ends the spin that runs, on all lanes, and comes out of it. The executor can go on.
// - a late timer skips what it missed, as rcl does, and never runs early. Waitables need set_on_ready_callback and
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

  // As remove_node, and returns when no callback of the node runs any more, but for the one that calls this: then the
  // node and what its callbacks use may end, or go to another executor: an exclusive group holds within one. It waits
  // as long as they take: for ever, if one of them waits for the caller.
  void remove_node_and_wait(const rclcpp::node_interfaces::NodeBaseInterface::SharedPtr &node);

  // Of what no name reaches: this waitable. It has no effect on one that comes
  // later. std::invalid_argument: it is not in this executor.
  void set_priority(const rclcpp::Waitable &waitable, std::uint8_t level, std::uint8_t position = 0);

  // Names of chains that match nothing in the nodes that are here, and callbacks that are of no chain, one a line.
  // While it spins it logs when a name matches and when it does no longer (a warning), and each time that a node has
  // come all that never matched (a warning). Of callbacks without a chain it logs the number, and at level debug each.
  std::vector<std::string> unmatched() const;
  std::vector<std::string> without_chain() const;

  // Whose exception came out of the last spin, as "subscription /planner /scan"; empty: no callback's.
  std::string failed_callback() const;

  // What Options::measured_file will hold, as of now; empty without one.
  std::string measurement_lines();
  // From a callback: in the trace, it is this instance of its chain, as a number in its message says.
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
