// SPDX-License-Identifier: Apache-2.0
#include "tide_rclcpp/options.hpp"

#include <stdexcept>

#include "words.h"

namespace tide_rclcpp {

namespace {

constexpr int kMostPriority = TIDE_PRIORITY(TIDE_LEVEL_MAXIMUM, 255);

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

// A label is as in system.toml, so that `tide trace times` finds it there.
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
    if (!words.empty() && !words.is("as") && !words.is("priority")) callback.period = words.duration("a period");
  } else if (callback.kind != Kind::kRemote) {
    callback.name = full_name(words, what_is_named(callback.kind), false);
  }
  while (!words.empty()) {
    if (words.take("as")) {
      callback.label = label_of(words);
    } else if (words.take("priority")) {
      callback.priority = static_cast<tide_priority_t>(words.number("a priority", 1, kMostPriority));
    } else {
      words.refuse("'as', 'priority' or the end of a callback");
    }
  }
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
  const tide_lane_settings_t &settings = lane.settings;
  const auto refuse = [&](const std::string &what) { throw std::invalid_argument("'" + text + "': " + what); };
  const std::string low = "low " + std::to_string(settings.low_priority);
  if (settings.scheduling == TIDE_SCHEDULING_SPORADIC) {
    if (settings.priority == 0) refuse("a lane with a budget needs a priority, as fifo 60");
    if (settings.low_priority >= settings.priority)
      refuse(low + " is not below fifo " + std::to_string(settings.priority));
  } else if (settings.low_priority > 0) {
    refuse(low + " is of a lane with a budget, and this one has none");
  }
  if (settings.scheduling == TIDE_SCHEDULING_DEADLINE && settings.processor != 0) {
    refuse("cpu " + std::to_string(settings.processor - 1) + ": a lane with deadline runs on all processors");
  }
  return lane;
}

std::string to_string(const Callback &callback) {
  if (callback.kind == Kind::kRemote) return "remote";
  if (callback.kind == Kind::kTimer) {
    return "timer " + callback.node + (callback.period.count() > 0 ? " " + to_string(callback.period) : "");
  }
  return std::string(word_of(callback.kind)) + " " + callback.node + " " + callback.name;
}

std::string name_of(const Chain &chain, std::size_t position) {
  const Callback &callback = chain.callbacks[position];
  const std::string usual = std::string(word_of(callback.kind)) + "_" + std::to_string(position + 1);
  return chain.name + "/" + (callback.label.empty() ? usual : callback.label);
}

}  // namespace tide_rclcpp
