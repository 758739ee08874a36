// SPDX-License-Identifier: Apache-2.0
// Options of a system.toml.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "system_file.h"
#include "system_graph.h"
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

// What a callback sends: a topic, or the service that it requests or is.
std::string sent_by(const Table &callback) {
  for (const char *key : {"publishes.topic", "requests.service", "replies.service"}) {
    if (const std::string name = callback.get(key); !name.empty()) return name;
  }
  return "";
}

Kind kind_of(const std::string &kind) {
  if (kind == "timer") return Kind::kTimer;
  if (kind == "service") return Kind::kService;
  return kind == "client" ? Kind::kClient : Kind::kSubscription;
}

std::string absolute(const std::string &topic) { return topic.empty() || topic.front() == '/' ? topic : "/" + topic; }

Callback callback_of(const SystemGraph::Node &node, const std::string &executor, const std::string &published,
                     std::int64_t period_ns) {
  Callback made;
  made.label = node.table->get("name");
  made.priority = node.priority;
  if (node.table->get("executor") != executor) return made;
  made.kind = kind_of(node.table->get("kind"));
  const bool timer = made.kind == Kind::kTimer;
  made.node = "*";
  if (timer) made.period = std::chrono::nanoseconds(period_ns);
  if (!timer) made.name = absolute(published);
  return made;
}

// What its first callback joins beside the first message comes last: positions name callbacks.
Chain chain_of(const SystemGraph::Branch &branch, const std::string &executor) {
  Chain chain;
  chain.name = branch.table->get("name");
  chain.level = branch.level;
  const std::int64_t period_ns = milliseconds(*branch.table, "period_ms");
  std::string published = branch.topics.empty() ? "" : branch.topics.front();
  for (const SystemGraph::Node &node : branch.callbacks) {
    chain.callbacks.push_back(callback_of(node, executor, published, period_ns));
    published = sent_by(*node.table);
  }
  for (std::size_t index = 1; index < branch.topics.size() && !branch.callbacks.empty(); index++) {
    chain.callbacks.push_back(callback_of(branch.callbacks.front(), executor, branch.topics[index], period_ns));
  }
  return chain;
}

}  // namespace

Options options_of_system(const std::string &path, const std::string &executor) {
  const std::vector<Table> tables = read_tables(path);
  const Table &own = executor_of(path, tables, executor);
  Options options;
  options.lanes = lanes_of(own);
  const SystemGraph graph(path, tables, own.get("name"));
  for (const SystemGraph::Branch &branch : graph.chains()) {
    if (branch.level == 0) continue;
    options.chains.push_back(chain_of(branch, own.get("name")));
  }
  return options;
}

}  // namespace tide_rclcpp
