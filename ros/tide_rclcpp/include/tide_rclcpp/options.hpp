// SPDX-License-Identifier: Apache-2.0
// Options of an Executor: its lanes, its policy, and the chains whose callbacks it prefers. Nodes need no change,
// because callbacks are named by their kind, node, and topic or service.
//
// A chain as text:   brake 2: timer /lidar 10ms, subscription /planner /scan, remote, service /planner /planner/stop
//   its name and level (1 to 126, larger is more urgent), then its callbacks in the order in which data flows through
//   them. A callback is a kind (timer, subscription, service, client, action_server, action_client), a node with its
//   namespace or * for any, and the full name of the topic, service or action after remapping. For a timer it is the
//   period instead of the name; without it, all timers of the node match. `remote` is a callback of another process.
//   After a callback, `as NAME` names it for `tide trace times`; the default is its kind and position, as timer_1.
//   `priority N` overrides its priority (1 to 32511, 256 for each level). Callbacks later in a chain are more urgent;
//   a callback of several chains has the highest of its priorities.
//
// A lane as text:    urgent from 2 fifo 60 cpu 1
//   its name and the lowest level that it serves (up to below the next lane's); then optionally `fifo N`, `rr N`,
//   `deadline RUNTIME PERIOD`, `budget RUNTIME PERIOD fifo N low N`, `cpu N`, `normal if refused`.
//
// `tide show --as parameters` writes both for an executor of a system.toml.
//
// Durations have a unit: ns, us, ms or s. std::invalid_argument names an invalid word.
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

// Names one callback, or several: all that match it get its priority.
struct Callback {
  Kind kind = Kind::kRemote;
  std::string node;                    // "*": any
  std::string name;                    // name of the topic, service or action
  std::chrono::nanoseconds period{0};  // period of a timer; 0: any
  tide_priority_t priority = 0;        // overrides the priority from its chain; 0: no override
  std::string label = {};              // its name in system.toml and in measurements; empty: kind and position
};

struct Chain {
  std::string name;
  std::uint8_t level = 1;
  std::vector<Callback> callbacks;
};

struct Options {
  std::vector<tide_rcl::Lane> lanes;  // empty: one lane, the thread that spins
  tide_rcl::Policy policy = tide_rcl::Policy::kChains;
  std::vector<Chain> chains;
  // Longest time for which an intra-process message waits for another lane of its level to wake by itself
  // (tide_rcl/engine.h). 0 means that another lane is woken at once.
  std::chrono::nanoseconds patience = std::chrono::microseconds(100);
  // Files for the execution times of all callbacks of chains (read by `tide trace times`), and for a trace of all
  // callbacks (read by `tide trace export`). They are complete when the executor has been destroyed. {pid} in a path
  // stands for the process id. If these are empty, the environment variables TIDE_MEASURED_FILE and TIDE_TRACE_FILE are
  // used; if those are unset too, no files are written.
  std::string measured_file, trace_file;
  std::uint16_t trace_place = 0;  // number of this program in the trace
};

Chain parse_chain(const std::string &words);
tide_rcl::Lane parse_lane(const std::string &words);
// The callback in the syntax of parse_chain.
std::string to_string(const Callback &callback);
std::string to_string(std::chrono::nanoseconds duration);
// Parses "10ms"; unset if it is not a duration.
std::optional<std::chrono::nanoseconds> duration_of(const std::string &text);
// The name that the callback at this position has in measurements, such as brake/timer_1.
std::string name_of(const Chain &chain, std::size_t position);

// Declares parameters and reads the options from them: tide.chains and tide.lanes (lists of texts as above),
// tide.policy ("chains" or "default"), tide.patience (a duration such as 50us, or none), tide.measured_file,
// tide.trace_file and tide.trace_place. Throws std::invalid_argument if another parameter of this node begins with
// "tide.".
Options options_of(rclcpp::node_interfaces::NodeParametersInterface &parameters);

}  // namespace tide_rclcpp

#endif  // TIDE_RCLCPP__OPTIONS_HPP_
