// SPDX-License-Identifier: Apache-2.0
#include "tide_rclcpp/options.hpp"

#include <stdexcept>

#include "words.h"

namespace tide_rclcpp {

namespace {

std::vector<std::string> split(const std::string &text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end = text.find(separator); end != std::string::npos; end = text.find(separator, begin)) {
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

Kind kind_of(Words &words) {
  if (words.take("timer")) return Kind::kTimer;
  if (words.take("subscription")) return Kind::kSubscription;
  if (words.take("service")) return Kind::kService;
  if (words.take("client")) return Kind::kClient;
  if (words.take("action_server")) return Kind::kActionServer;
  if (words.take("action_client")) return Kind::kActionClient;
  if (words.take("remote")) return Kind::kRemote;
  words.refuse("timer, subscription, service, client, action_server, action_client or remote");
}

std::string full_name(Words &words, const std::string &what, bool any) {
  const std::string expected = "the full name of " + what + (any ? ", or *" : "");
  if (any && words.take("*")) return "*";
  const Words before = words;
  std::string name = words.word(expected);
  if (name.front() != '/') before.refuse(expected + ", as /" + name);
  return name;
}

const char *word_of(Kind kind) {
  switch (kind) {
    case Kind::kTimer:
      return "timer";
    case Kind::kSubscription:
      return "subscription";
    case Kind::kService:
      return "service";
    case Kind::kClient:
      return "client";
    case Kind::kActionServer:
      return "action_server";
    case Kind::kActionClient:
      return "action_client";
    case Kind::kRemote:
      return "remote";
  }
  return "";
}

std::string what_is_named(Kind kind) {
  if (kind == Kind::kSubscription) return "a topic";
  return kind == Kind::kService || kind == Kind::kClient ? "a service" : "an action";
}

// A label is as in system.toml, so that `tide measured` finds it there.
std::string label_of(Words &words) {
  const Words before = words;
  const std::string label = words.word("a callback's name");
  const std::string letters = "abcdefghijklmnopqrstuvwxyz", others = "0123456789_";
  if (letters.find(label.front()) == std::string::npos ||
      label.find_first_not_of(letters + others) != std::string::npos) {
    before.refuse("a callback's name of small letters, digits and _");
  }
  return label;
}

Callback parse_callback(const std::string &text) {
  Words words(text);
  Callback callback;
  callback.kind = kind_of(words);
  if (callback.kind != Kind::kRemote) callback.node = full_name(words, "a node", true);
  if (callback.kind == Kind::kTimer) {
    const Words before = words;
    if (!words.empty() && !words.take("as"))
      callback.period = words.duration("a period");
    else
      words = before;
  } else if (callback.kind != Kind::kRemote) {
    callback.name = full_name(words, what_is_named(callback.kind), false);
  }
  if (words.take("as")) callback.label = label_of(words);
  if (!words.empty()) words.refuse("the end of a callback");
  return callback;
}

// True: it was understood.
bool parse_bandwidth(Words &words, tide_lane_settings_t &settings) {
  const bool deadline = words.take("deadline");
  if (!deadline && !words.take("budget")) return false;
  settings.scheduling = deadline ? TIDE_SCHEDULING_DEADLINE : TIDE_SCHEDULING_SPORADIC;
  settings.runtime_ns = words.duration("a runtime").count();
  settings.period_ns = words.duration("a period").count();
  if (settings.runtime_ns > settings.period_ns) words.refuse("a period of at least the runtime");
  return true;
}

bool parse_refusal(Words &words, tide_lane_settings_t &settings) {
  if (!words.take("normal")) return false;
  if (!words.take("if") || !words.take("refused")) words.refuse("normal if refused");
  settings.may_run_normally = true;
  return true;
}

bool parse_rest(Words &words, tide_lane_settings_t &settings) {
  if (words.take("cpu")) {
    settings.processor = TIDE_ON_PROCESSOR(words.number("a processor", 0, 1023));
    return true;
  }
  if (words.take("low")) {
    settings.low_priority = words.number("a priority without budget", 0, 98);
    return true;
  }
  return parse_bandwidth(words, settings) || parse_refusal(words, settings);
}

using Parameters = rclcpp::node_interfaces::NodeParametersInterface;

template <typename Value>
Value parameter(Parameters &parameters, const std::string &name, const Value &usual) {
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

}  // namespace

Chain parse_chain(const std::string &text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) {
    throw std::invalid_argument("'" + text +
                                "': there is no colon between the chain's name and level and its callbacks");
  }
  Words head(text.substr(0, colon));
  Chain chain;
  chain.name = head.word("the name of a chain");
  chain.level = static_cast<std::uint8_t>(head.number("a level", 1, TIDE_LEVEL_MAXIMUM));
  if (!head.empty()) head.refuse("the end of a chain's head");
  for (const std::string &part : split(text.substr(colon + 1), ',')) chain.callbacks.push_back(parse_callback(part));
  return chain;
}

tide_rcl::Lane parse_lane(const std::string &text) {
  Words words(text);
  tide_rcl::Lane lane;
  lane.name = words.word("the name of a lane");
  if (!words.take("from")) words.refuse("'from' and the lowest level of the lane");
  lane.settings.least_level = static_cast<std::uint8_t>(words.number("a level", 0, TIDE_LEVEL_MAXIMUM));
  while (!words.empty()) {
    if (words.take("fifo")) {
      lane.settings.priority = words.number("a priority", 1, 99);
      const bool budget = lane.settings.scheduling == TIDE_SCHEDULING_SPORADIC;
      lane.settings.scheduling = budget ? TIDE_SCHEDULING_SPORADIC : TIDE_SCHEDULING_FIFO;
    } else if (words.take("rr")) {
      lane.settings.scheduling = TIDE_SCHEDULING_ROUND_ROBIN;
      lane.settings.priority = words.number("a priority", 1, 99);
    } else if (!parse_rest(words, lane.settings)) {
      words.refuse("fifo, rr, deadline, budget, cpu, low or 'normal if refused'");
    }
  }
  if (lane.settings.scheduling == TIDE_SCHEDULING_SPORADIC && lane.settings.priority == 0) {
    throw std::invalid_argument("'" + text + "': a lane with a budget needs a priority, as fifo 60");
  }
  return lane;
}

std::string to_string(const Callback &callback) {
  if (callback.kind == Kind::kRemote) return "remote";
  if (callback.kind == Kind::kTimer) {
    const std::int64_t period_ns = callback.period.count();
    return "timer " + callback.node + (period_ns > 0 ? " " + std::to_string(period_ns) + "ns" : "");
  }
  return std::string(word_of(callback.kind)) + " " + callback.node + " " + callback.name;
}

std::string name_of(const Chain &chain, std::size_t position) {
  const Callback &callback = chain.callbacks[position];
  const std::string usual = std::string(word_of(callback.kind)) + "_" + std::to_string(position + 1);
  return chain.name + "/" + (callback.label.empty() ? usual : callback.label);
}

Options options_of(Parameters &parameters) {
  const std::string system = parameter(parameters, "tide.system", std::string());
  const std::string executor = parameter(parameters, "tide.executor", std::string());
  Options options = system.empty() ? Options{} : options_of_system(system, executor);
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
