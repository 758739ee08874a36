// SPDX-License-Identifier: Apache-2.0
// Options of an Executor: its lanes, its policy, and the chains whose callbacks it prefers. Nodes need no change,
// because callbacks are named by their kind, node, and topic or service.
//
// A chain as text: brake 2: timer /lidar 10ms, subscription /planner /scan, remote, service /planner /planner/stop its
// name and level (1 to 126, larger is more urgent), then its callbacks in the order in which data flows through them. A
// callback is written as its kind (timer, subscription, service, client, action_server, action_client), its node with
// the namespace (or * for any node), and the full name of the topic, service or action after remapping. A timer has its
// period instead of that name; without a period, all timers of the node match. `remote` is a callback of another
// process. After a callback, `as NAME` names it for `tide trace times`; the default is its kind and position, as
// timer_1. `priority N` overrides its priority (1 to 32511; level L has the priorities 256 L to 256 L + 255). Callbacks
// later in a chain are more urgent. A callback of several chains has the highest of its priorities.
//
// A lane as text:    urgent from 2 fifo 60 cpu 1
// its name and the lowest level that it serves; it serves the levels from there up to the next higher one of these
// lowest levels. Then any of `fifo N`, `rr N`, `deadline RUNTIME PERIOD`, `budget RUNTIME PERIOD fifo N low N`, `cpu
// N`, `normal if refused`.
//
// `tide show --as parameters` writes the chains and lanes of an executor in a system.toml in this form.
//
// A duration is a number with a unit (ns, us, ms or s). For an invalid word, the parsers throw std::invalid_argument
// with a text that quotes it.
#pragma once

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

// A pattern for callbacks: each callback that matches it gets its priority.
struct Callback {
  Kind kind = Kind::kRemote;
  std::string node;                    // "*": any
  std::string name;                    // name of the topic, service or action
  std::chrono::nanoseconds period{0};  // period of a timer; 0: any
  tide_priority_t priority = 0;        // overrides the priority from its chain; 0: no override
  std::string label = {};              // name in system.toml and measurements; empty: kind and position
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
  // A callback that another callback makes ready, for example by an intra-process message, waits at most this long for
  // a lane that becomes free by itself (EngineOptions in tide_rcl/engine.h). 0 means that another lane is woken at
  // once.
  std::chrono::nanoseconds patience = std::chrono::microseconds(100);
  // Paths of a file for the execution times of all callbacks of chains (for `tide trace times`), and of a file for a
  // trace of all callbacks (for `tide trace export`). The files are complete when the executor has been destroyed.
  // {pid} in a path stands for the process id. An empty path is replaced by the environment variable TIDE_MEASURED_FILE
  // or TIDE_TRACE_FILE; if that is unset too, the file is not written.
  std::string measured_file, trace_file;
  std::uint16_t trace_place = 0;  // number of this program in a combined trace
};

Chain parse_chain(const std::string &words);
tide_rcl::Lane parse_lane(const std::string &words);
// The callback in the syntax of parse_chain.
std::string to_string(const Callback &callback);
std::string to_string(std::chrono::nanoseconds duration);
// The duration that the text gives, as "10ms"; no value if the text is not a duration.
std::optional<std::chrono::nanoseconds> duration_of(const std::string &text);
// The name that the callback at this position has in measurements, such as brake/timer_1.
std::string name_of(const Chain &chain, std::size_t position);

// Reads the options from read-only parameters of the node, which this declares if necessary: tide.chains and tide.lanes
// (lists of texts as above), tide.policy ("chains" or "default"), tide.patience (a duration such as 50us, or none),
// tide.measured_file, tide.trace_file and tide.trace_place. Throws std::invalid_argument if a value is invalid, or if
// the node was given a value for another parameter whose name begins with "tide.".
Options options_of(rclcpp::node_interfaces::NodeParametersInterface &parameters);

}  // namespace tide_rclcpp
