// SPDX-License-Identifier: Apache-2.0
#include "analysis/model/system_file.h"

#include "analysis/model/json_fields.h"

namespace tide::analysis {
namespace {

class Reader {
 public:
  explicit Reader(SystemFile &file) : file_(file) {}

  void run(Json json) {
    Fields fields(std::move(json), "system", file_.errors);
    each(fields.list("executors"), "executor", [this](Fields &one) { executor(one); });
    each(fields.list("groups"), "group", [this](Fields &one) {
      GroupEntry &group = file_.description.groups.emplace_back();
      one.text("name", group.name);
      one.text("executor", group.executor);
    });
    each(fields.list("chains"), "chain", [this](Fields &one) { chain(one); });
    each(fields.list("paths"), "path", [this](Fields &one) { path(one); });
  }

 private:
  template <class Handle>
  void each(JsonArray list, const std::string &kind, Handle handle) {
    for (size_t index = 0; index < list.size(); ++index) {
      Fields fields(std::move(list[index]), kind + " number " + std::to_string(index + 1), file_.errors);
      handle(fields);
    }
  }

  void executor(Fields &fields) {
    ExecutorEntry &executor = file_.description.executors.emplace_back();
    fields.text("name", executor.name);
    std::string policy;
    fields.text("policy", policy);
    if (const auto known = policy_of(policy)) {
      executor.policy = *known;
    } else {
      fields.error("'policy' must be \"priority\", \"default\", \"wait_set\" or \"any_order\"");
    }
    if (fields.has("threads") && fields.has("lanes")) fields.error("has both 'threads' and 'lanes'");
    time_ns threads = 0;
    fields.integer("threads", threads);
    if (threads < 0 || threads > static_cast<time_ns>(kMostLanes)) {
      fields.error("'threads' must be from 1 to " + std::to_string(kMostLanes));
    } else {
      executor.lanes.resize(static_cast<size_t>(threads));
    }
    each(fields.list("lanes"), fields.where() + ", lane", [&executor](Fields &one) {
      Lane lane{0, 0};
      one.integer("budget_ns", lane.budget_ns);
      one.integer("period_ns", lane.period_ns);
      executor.lanes.push_back(lane);
    });
  }

  void chain(Fields &fields) {
    ChainEntry &chain = file_.description.chains.emplace_back();
    fields.text("name", chain.name);
    fields.text("executor", chain.executor);
    if (!fields.has("priority")) fields.error("'priority' is missing");
    fields.integer("priority", chain.priority);
    fields.integer("period_ns", chain.period_ns);
    fields.integer("deadline_ns", chain.deadline_ns);
    fields.integer("jitter_ns", chain.jitter_ns);
    fields.flag("timer", chain.timer);
    each(fields.list("callbacks"), fields.where() + ", callback", [&chain](Fields &one) {
      CallbackEntry &callback = chain.callbacks.emplace_back();
      one.text("name", callback.name);
      one.integer("execution_ns", callback.execution_ns);
      one.integer("least_ns", callback.least_ns);
      one.text("group", callback.group);
      one.integer("priority", callback.priority);
    });
  }

  void path(Fields &fields) {
    PathEntry &path = file_.description.paths.emplace_back();
    fields.text("name", path.name);
    fields.integer("deadline_ns", path.deadline_ns);
    for (const Json &segment : fields.list("segments")) {
      const auto *name = std::get_if<std::string>(&segment.value);
      if (name == nullptr) {
        fields.error("'segments' must be names of chains");
      } else {
        path.segments.push_back(*name);
      }
    }
    for (const Json &delay : fields.list("delays_ns")) {
      const auto *delay_ns = std::get_if<int64_t>(&delay.value);
      if (delay_ns == nullptr) {
        fields.error("'delays_ns' must be integers");
      } else {
        path.delays_ns.push_back(*delay_ns);
      }
    }
  }

  SystemFile &file_;
};

}  // namespace

SystemFile read_system(Json json) {
  SystemFile file;
  Reader(file).run(std::move(json));
  return file;
}

SystemFile read_system(std::string_view text) {
  std::string error;
  auto json = parse_json(text, error);
  return json ? read_system(*std::move(json)) : SystemFile{{}, {error}};
}

}  // namespace tide::analysis
