// SPDX-License-Identifier: Apache-2.0
// What an Executor is told: its lanes, its policy, and the chains whose callbacks it shall prefer. Nodes need no
// change: callbacks are named by their kind, node and topic or service.
//
// A chain in words:   brake 2: timer /lidar 10ms, subscription /planner /scan, remote, service /planner /planner/stop
//   its name and level (1 to 126, larger is more urgent), then its callbacks in the order in which data flows through
//   them. A kind (timer, subscription, service, client,
//   action_server, action_client), a node with its namespace or * for any, and the full name of
//   the topic, service or action as it is after remapping; of a timer its period, which may be left out. `remote` is a
//   callback of another process. Without a period, all timers of the node are named, whatever periods they get.
//   Behind a callback, `as NAME` names it in what `tide trace times` reads; otherwise it is its kind and its place, as
//   timer_1. `priority N` gives it another priority (1 to 32511, 256 for each level) than its place in the chain. Later
//   in a chain is more urgent; a callback of several chains has the highest of its priorities.
//
// A lane in words:    urgent from 2 fifo 60 cpu 1
//   its name and the lowest level that it serves (up to below the next lane's); then as wanted `fifo N`, `rr N`,
//   `deadline RUNTIME PERIOD`, `budget RUNTIME PERIOD fifo N low N`, `cpu N`, `normal if refused`.
//
// `tide show --as parameters` writes both for an executor of a system.toml.
//
// Durations have a unit: ns, us, ms or s. std::invalid_argument says which word is not understood.
#ifndef TIDE_RCLCPP__OPTIONS_HPP_
#define TIDE_RCLCPP__OPTIONS_HPP_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tide_rcl/engine.h"

namespace rclcpp::node_interfaces {
class NodeParametersInterface;
}

namespace tide_rclcpp {

enum class Kind { kTimer, kSubscription, kService, kClient, kActionServer, kActionClient, kRemote };

// Names one callback, or several: all that match get its priority.
struct Callback {
  Kind kind = Kind::kRemote;
  std::string node;                    // "*": any
  std::string name;                    // topic, service or action
  std::chrono::nanoseconds period{0};  // of a timer; 0: any
  tide_priority_t priority = 0;        // in place of what its chain gives it; 0: none
  std::string label = {};              // in system.toml and in measurements; empty: its kind and place
};

struct Chain {
  std::string name;
  std::uint8_t level = 1;
  std::vector<Callback> callbacks;
};

struct Options {
  std::vector<tide_rcl::Lane> lanes;  // empty: one, the thread that spins
  tide_rcl::Policy policy = tide_rcl::Policy::kChains;
  std::vector<Chain> chains;
  // How long what a callback publishes within the process may wait for another lane of its level than its own, where
  // one looks by itself by then (tide_rcl/engine.h). 0: another lane is woken at once.
  std::chrono::nanoseconds patience = std::chrono::microseconds(100);
  // Files for execution times of all callbacks of chains (`tide trace times` reads it) and for a trace of all callbacks
  // (`tide trace export`); written until the executor ends. {pid} in a path is the number of the process. Empty: the
  // environment's TIDE_MEASURED_FILE and TIDE_TRACE_FILE; neither: none.
  std::string measured_file, trace_file;
  std::uint16_t trace_place = 0;  // number of this program in the trace
};

Chain parse_chain(const std::string &words);
tide_rcl::Lane parse_lane(const std::string &words);
// As parse_chain takes it.
std::string to_string(const Callback &callback);
std::string to_string(std::chrono::nanoseconds duration);
// "10ms"; nothing when it is none.
std::optional<std::chrono::nanoseconds> duration_of(const std::string &text);
// Of the callback at this position, as in measurements: brake/timer_1.
std::string name_of(const Chain &chain, std::size_t position);

// From parameters, which it declares: tide.chains and tide.lanes (lists of words as above), tide.policy ("chains" or
// "default"), tide.patience (a duration, as 50us, or none), tide.measured_file, tide.trace_file and tide.trace_place.
// std::invalid_argument: another parameter of this node begins with "tide.".
Options options_of(rclcpp::node_interfaces::NodeParametersInterface &parameters);

}  // namespace tide_rclcpp

#endif  // TIDE_RCLCPP__OPTIONS_HPP_
