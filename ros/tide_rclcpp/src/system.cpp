// SPDX-License-Identifier: Apache-2.0
// Options of a system.toml.
#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

#include "system_file.h"
#include "tide_rclcpp/options.hpp"

namespace tide_rclcpp {

namespace {

constexpr int kPriorityOfBudgets = 50;

std::int64_t milliseconds(const Table &table, const std::string &key) {
  return static_cast<std::int64_t>(std::llround(table.number(key) * 1e6));
}

const Table &executor_of(const std::string &path, const std::vector<Table> &tables, const std::string &name) {
  for (const Table &table : tables) {
    if (table.path != "executors") continue;
    if (name.empty() ? table.get("where") == "host" : table.get("name") == name) return table;
  }
  throw std::runtime_error(
      path + (name.empty() ? ": no executor has where = \"host\"" : ": no executor has the name '" + name + "'"));
}

std::vector<tide_rcl::Lane> lanes_of(const Table &executor) {
  const auto count = static_cast<std::size_t>(std::max(1.0, executor.number("lanes")));
  const bool budget = milliseconds(executor, "budget_ms") > 0;
  std::vector<tide_rcl::Lane> lanes;
  for (std::size_t index = 0; index < count && (count > 1 || budget); index++) {
    tide_rcl::Lane &lane = lanes.emplace_back();
    lane.name = executor.get("name").substr(0, 12) + " " + std::to_string(index + 1);
    if (!budget) continue;
    lane.settings.scheduling = TIDE_SCHEDULING_SPORADIC;
    lane.settings.priority = kPriorityOfBudgets;
    lane.settings.runtime_ns = milliseconds(executor, "budget_ms");
    lane.settings.period_ns = milliseconds(executor, "budget_period_ms");
  }
  return lanes;
}

std::string absolute(const std::string &topic) { return topic.empty() || topic.front() == '/' ? topic : "/" + topic; }

Callback callback_of(const Table &callback, const std::string &executor, const std::string &published,
                     std::int64_t period_ns) {
  Callback made;
  made.label = callback.get("name");
  if (callback.get("executor") != executor) return made;
  const bool timer = callback.get("kind") == "timer";
  made.kind = timer ? Kind::kTimer : Kind::kSubscription;
  made.node = "*";
  if (timer) made.period = std::chrono::nanoseconds(period_ns);
  if (!timer) made.name = absolute(published);
  made.priority = static_cast<tide_priority_t>(callback.number("priority"));
  return made;
}

std::uint8_t level_of(const std::string &path, const Table &chain) {
  const double level = chain.number("priority");
  if (level >= 1 && level <= TIDE_LEVEL_MAXIMUM) return static_cast<std::uint8_t>(level);
  throw std::runtime_error(path + ": chain '" + chain.get("name") + "': priority " + chain.get("priority", "(none)") +
                           " is not in 1 to 126");
}

}  // namespace

Options options_of_system(const std::string &path, const std::string &executor) {
  const std::vector<Table> tables = read_tables(path);
  const Table &own = executor_of(path, tables, executor);
  Options options;
  options.lanes = lanes_of(own);
  std::int64_t period_ns = 0;
  std::string published;
  std::map<std::string, std::string> topics;  // of chain.callback, for chains that branch
  for (const Table &table : tables) {
    if (table.path == "chains") {
      options.chains.push_back({table.get("name"), level_of(path, table), {}});
      period_ns = milliseconds(table, "period_ms");
      published = topics[table.get("branches_from")];
    } else if (table.path == "chains.callbacks" && !options.chains.empty()) {
      options.chains.back().callbacks.push_back(callback_of(table, own.get("name"), published, period_ns));
      published = table.get("publishes.topic");
      topics[options.chains.back().name + "." + table.get("name")] = published;
    }
  }
  return options;
}

}  // namespace tide_rclcpp
