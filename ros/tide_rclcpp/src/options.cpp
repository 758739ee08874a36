// SPDX-License-Identifier: Apache-2.0
#include "tide_rclcpp/options.hpp"

#include <cmath>
#include <iterator>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace tide_rclcpp {

// The duration as text, in the largest unit that gives a whole number.
std::string to_string(std::chrono::nanoseconds duration) {
  const std::int64_t ns = duration.count();
  const std::pair<std::int64_t, const char *> units[] = {{1000000000, "s"}, {1000000, "ms"}, {1000, "us"}};
  for (const auto &[length_ns, unit] : units) {
    if (ns % length_ns == 0) return std::to_string(ns / length_ns) + unit;
  }
  return std::to_string(ns) + "ns";
}

std::optional<std::chrono::nanoseconds> duration_of(const std::string &text) {
  std::istringstream stream(text);
  double number = 0;
  std::string unit;
  if (!(stream >> number) || !(number > 0)) return std::nullopt;
  stream >> unit;
  const double factor = unit == "ns" ? 1 : unit == "us" ? 1e3 : unit == "ms" ? 1e6 : unit == "s" ? 1e9 : 0;
  std::string more;
  if (factor == 0 || number * factor < 1 || number * factor > 9e18 || stream >> more) return std::nullopt;
  return std::chrono::nanoseconds(std::llround(number * factor));
}

namespace {

// Reads the words of a text, one after the other.
class Words {
 public:
  explicit Words(const std::string &text) : text_(text) {
    std::istringstream stream(text);
    for (std::string word; stream >> word;) words_.push_back(word);
  }
  bool empty() const { return next_ == words_.size(); }
  bool is(const std::string &word) const { return !empty() && words_[next_] == word; }
  const std::string &next() const { return words_[next_]; }
  // Takes the next word if it equals this word.
  bool take(const std::string &word) {
    if (!is(word)) return false;
    next_++;
    return true;
  }
  [[noreturn]] void refuse(const std::string &what) const {
    const std::string found = empty() ? "its end" : "'" + words_[next_] + "'";
    throw std::invalid_argument("'" + text_ + "': " + found + " is not " + what);
  }
  // Takes the next word. Throws std::invalid_argument if there is none; `what` names the expected word.
  std::string word(const std::string &what) {
    if (empty()) refuse(what);
    return words_[next_++];
  }
  int number(const std::string &what, int least, int most) {
    if (!empty()) {
      std::istringstream stream(words_[next_]);
      int number = 0;
      if (stream >> number && stream.eof() && number >= least && number <= most) {
        next_++;
        return number;
      }
    }
    refuse(what + " (" + std::to_string(least) + " to " + std::to_string(most) + ")");
  }
  std::chrono::nanoseconds duration(const std::string &what) {
    const auto duration = empty() ? std::nullopt : duration_of(words_[next_]);
    if (!duration.has_value()) refuse(what + ", as 10ms");
    next_++;
    return *duration;
  }

 private:
  std::string text_;
  std::vector<std::string> words_;
  std::size_t next_ = 0;
};

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

// Names of the kinds, in the order of Kind.
constexpr const char *kKinds[] = {"timer",         "subscription",  "service", "client",
                                  "action_server", "action_client", "remote"};
const char *word_of(Kind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

Kind kind_of(Words &words) {
  for (std::size_t kind = 0; kind < std::size(kKinds); kind++) {
    if (words.take(kKinds[kind])) return static_cast<Kind>(kind);
  }
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

std::string what_is_named(Kind kind) {
  if (kind == Kind::kSubscription) return "a topic";
  return kind == Kind::kService || kind == Kind::kClient ? "a service" : "an action";
}

// A callback's name by the rules of system.toml, because `tide trace times` looks for it there.
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
  const auto refuse = [&](const std::string &what) { throw std::invalid_argument("'" + text + "': " + what); };
  std::set<std::string> given;
  while (!words.empty()) {
    if (!given.insert(words.next()).second) refuse(words.next() + " is given twice");
    if (words.take("fifo")) {
      lane.settings.priority = words.number("a priority", 1, 99);
      const bool budget = lane.settings.scheduling == TIDE_SCHEDULING_SPORADIC;
      lane.settings.scheduling = budget ? TIDE_SCHEDULING_SPORADIC : TIDE_SCHEDULING_FIFO;
    } else if (words.take("rr")) {
      lane.settings.scheduling = TIDE_SCHEDULING_ROUND_ROBIN;
      lane.settings.priority = words.number("a priority", 1, 99);
    } else if (words.take("cpu")) {
      lane.settings.processor = TIDE_ON_PROCESSOR(words.number("a processor", 0, 1023));
    } else if (words.take("low")) {
      lane.settings.low_priority = words.number("a priority without budget", 0, 98);
    } else if (words.is("deadline") || words.is("budget")) {
      lane.settings.scheduling = words.take("deadline") ? TIDE_SCHEDULING_DEADLINE : TIDE_SCHEDULING_SPORADIC;
      (void)words.take("budget");
      lane.settings.runtime_ns = words.duration("a runtime").count();
      lane.settings.period_ns = words.duration("a period").count();
      if (lane.settings.runtime_ns > lane.settings.period_ns) words.refuse("a period of at least the runtime");
    } else if (words.take("normal")) {
      if (!words.take("if") || !words.take("refused")) words.refuse("normal if refused");
      lane.settings.may_run_normally = true;
    } else {
      words.refuse("fifo, rr, deadline, budget, cpu, low or 'normal if refused'");
    }
  }
  const std::pair<const char *, const char *> exclusive[] = {
      {"fifo", "rr"}, {"fifo", "deadline"}, {"rr", "deadline"}, {"budget", "rr"}, {"budget", "deadline"}};
  for (const auto &[one, other] : exclusive) {
    if (given.count(one) > 0 && given.count(other) > 0)
      refuse(std::string("a lane cannot have both ") + one + " and " + other);
  }
  const tide_lane_settings_t &settings = lane.settings;
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
