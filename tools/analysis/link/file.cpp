// SPDX-License-Identifier: Apache-2.0
#include "analysis/link/file.h"

#include <array>

#include "analysis/model/json_fields.h"

namespace tide::analysis {
namespace {

class Reader {
 public:
  explicit Reader(LinkFile &file) : file_(file) {}

  void run(Json json) {
    Fields fields(std::move(json), "system", file_.errors);
    one(fields, "client", [this](Fields &of) { client(of); });
    one(fields, "line", [this](Fields &of) { line(of); });
    one(fields, "protocol", [this](Fields &of) { protocol(of); });
    each(fields.list("hosts"), "host", [this](Fields &of) {
      HostExecutor &host = file_.system.hosts.emplace_back();
      of.text("name", host.name);
      of.integer("lanes", host.lanes);
      of.flag("own_cores", host.own_cores);
    });
    each(fields.list("chains"), "chain", [this](Fields &of) { chain(of); });
  }

 private:
  template <class Handle>
  void one(Fields &fields, const char *name, Handle handle) {
    if (!fields.has(name)) return;
    JsonObject object;
    fields.get(name, object, "an object");
    Fields inner({std::move(object)}, name, file_.errors);
    handle(inner);
  }

  template <class Handle>
  void each(JsonArray list, const std::string &kind, Handle handle) {
    for (size_t index = 0; index < list.size(); ++index) {
      Fields fields(std::move(list[index]), kind + " number " + std::to_string(index + 1), file_.errors);
      handle(fields);
    }
  }

  template <class Choice, size_t count>
  void choice(Fields &fields, const char *name, Choice &target, const std::array<const char *, count> &texts) {
    std::string text = texts[static_cast<size_t>(target)];
    fields.text(name, text);
    std::string known;
    for (size_t index = 0; index < count; ++index) {
      if (text == texts[index]) {
        target = static_cast<Choice>(index);
        return;
      }
      known += std::string(index > 0 ? ", " : "") + '"' + texts[index] + '"';
    }
    fields.error("'" + std::string(name) + "' must be one of " + known);
  }

  void client(Fields &fields) {
    Client &client = file_.system.client;
    fields.text("name", client.name);
    choice(fields, "policy", client.policy, std::array{"tide", "lanes", "batch"});
    choice(fields, "send", client.send, std::array{"asynchronous", "stock", "blocking"});
    fields.flag("waits_for_new_data", client.waits_for_new_data);
    fields.flag("fixed_costs", client.fixed_costs);
    fields.integer("submit_ns", client.submit_ns);
    fields.integer("process_ns", client.process_ns);
    fields.integer("dispatch_ns", client.dispatch_ns);
    fields.integer("interrupt_receive_ns", client.interrupt_receive_ns);
    fields.integer("interrupt_complete_ns", client.interrupt_complete_ns);
  }

  void line(Fields &fields) {
    Line &line = file_.system.line;
    fields.integer("baud", line.baud);
    fields.integer("mtu_bytes", line.mtu_bytes);
    fields.integer("quantum_bytes", line.quantum_bytes);
    fields.integer("escaped_bytes", line.escaped_bytes);
    fields.flag("exact_sizes", line.exact_sizes);
    fields.integer("agent_least_ns", line.agent_least_ns);
    fields.integer("agent_ns", line.agent_ns);
    fields.integer("turn_ns", line.turn_ns);
    fields.integer("return_ns", line.return_ns);
    fields.integer("host_hop_ns", line.host_hop_ns);
  }

  void protocol(Fields &fields) {
    Protocol &protocol = file_.system.protocol;
    choice(fields, "acknowledges", protocol.acknowledges, std::array{"always", "asked"});
    fields.flag("hold", protocol.hold);
    fields.integer("heartbeat_delay_ns", protocol.client.delay_ns);
    fields.integer("heartbeat_floor_ns", protocol.client.floor_ns);
    fields.integer("heartbeat_period_ns", protocol.client.period_ns);
    fields.integer("agent_heartbeat_delay_ns", protocol.agent.delay_ns);
    fields.integer("agent_heartbeat_floor_ns", protocol.agent.floor_ns);
    fields.integer("agent_heartbeat_period_ns", protocol.agent.period_ns);
    fields.integer("losses", protocol.losses);
    fields.integer("window", protocol.window);
    fields.integer("silence_ns", protocol.silence_ns);
  }

  void chain(Fields &fields) {
    LinkChain &chain = file_.system.chains.emplace_back();
    fields.text("name", chain.name);
    fields.integer("priority", chain.priority);
    fields.integer("period_ns", chain.period_ns);
    fields.integer("deadline_ns", chain.deadline_ns);
    fields.integer("jitter_ns", chain.jitter_ns);
    fields.integer("response_ns", chain.response_ns);
    fields.flag("uplink_reliable", chain.uplink_reliable);
    fields.flag("downlink_reliable", chain.downlink_reliable);
    fields.flag("sporadic", chain.sporadic);
    fields.flag("shares_level", chain.shares_level);
    each(fields.list("callbacks"), fields.where() + ", callback",
         [this, &chain](Fields &of) { callback(of, chain.callbacks.emplace_back()); });
  }

  void callback(Fields &fields, LinkCallback &callback) {
    fields.text("name", callback.name);
    fields.integer("execution_ns", callback.execution_ns);
    fields.integer("least_ns", callback.least_ns);
    fields.integer("payload_bytes", callback.payload_bytes);
    fields.integer("hop_ns", callback.hop_ns);
    fields.integer("shared", callback.shared);
    fields.text("group", callback.group);
    std::string executor = file_.system.client.name;
    fields.text("executor", executor);
    callback.place = place_of(executor);
    if (callback.place == kNowhere) fields.error("there is no executor '" + executor + "'");
    each(fields.list("sections"), fields.where() + ", section", [&callback](Fields &of) {
      CriticalSection &one = callback.sections.emplace_back();
      of.text("lock", one.lock);
      of.integer("section_ns", one.section_ns);
    });
  }

  int place_of(const std::string &name) const {
    if (name == file_.system.client.name) return kOnClient;
    for (size_t index = 0; index < file_.system.hosts.size(); ++index) {
      if (file_.system.hosts[index].name == name) return static_cast<int>(index);
    }
    return kNowhere;
  }

  static constexpr int kNowhere = -2;
  LinkFile &file_;
};

std::string by_chain(const LinkSystem &system, const std::vector<time_ns> &shares) {
  std::vector<std::string> members;
  for (size_t other = 0; other < shares.size(); ++other) {
    if (shares[other] > 0) members.push_back(field(system.chains[other].name, std::to_string(shares[other])));
  }
  return join(members, "{", "}");
}

std::string parts_of(const LinkSystem &system, const LinkParts &parts) {
  const auto time = [](const char *name, time_ns value) { return field(name, std::to_string(value)); };
  return join(
      {time("jitter_ns", parts.jitter_ns), time("execution_ns", parts.execution_ns), time("line_ns", parts.line_ns),
       time("host_ns", parts.host_ns), field("client_interference_ns", by_chain(system, parts.client_interference_ns)),
       field("line_interference_ns", by_chain(system, parts.line_interference_ns)),
       time("client_blocking_ns", parts.client_blocking_ns), time("new_data_ns", parts.new_data_ns),
       time("lock_blocking_ns", parts.lock_blocking_ns), time("line_blocking_ns", parts.line_blocking_ns),
       time("control_ns", parts.control_ns), time("window_ns", parts.window_ns),
       time("interrupts_ns", parts.interrupts_ns), time("host_wait_ns", parts.host_wait_ns),
       time("losses_ns", parts.losses_ns), time("lateness_ns", parts.lateness_ns)},
      "{", "}");
}

std::string assumption_of(const Assumption &one) {
  std::vector<std::string> values;
  for (const auto &[name, value] : one.values) values.push_back(field(name, std::to_string(value)));
  return join(
      {field("id", json_string(one.id)), field("text", json_string(one.text)), field("values", join(values, "{", "}"))},
      "{", "}");
}

std::string chain_of(const LinkSystem &system, const LinkResults &results, size_t index) {
  const LinkChain &chain = system.chains[index];
  const LinkResult &result = results.chains[index];
  std::vector<std::string> depends;
  for (const size_t other : result.depends_on) depends.push_back(json_string(system.chains[other].name));
  std::optional<time_ns> slack_ns;
  if (result.response_ns) slack_ns = chain.deadline_ns - *result.response_ns;
  return join({field("chain", json_string(chain.name)), field("response_ns", number(result.response_ns)),
               field("deadline_ns", std::to_string(chain.deadline_ns)), field("slack_ns", number(slack_ns)),
               field("met", flag(result.met)), field("hidden", flag(result.hidden)),
               field("parts", result.response_ns ? parts_of(system, result.parts) : "null"),
               field("reason", result.response_ns ? "null" : json_string(result.reason)),
               field("depends_on", join(depends, "[", "]"))},
              "{", "}");
}

}  // namespace

LinkFile read_link_system(Json json) {
  LinkFile file;
  Reader(file).run(std::move(json));
  if (file.errors.empty()) file.errors = check(file.system);
  return file;
}

LinkFile read_link_system(std::string_view text) {
  std::string error;
  std::optional<Json> json = parse_json(text, error);
  return json ? read_link_system(*std::move(json)) : LinkFile{{}, {error}};
}

std::string write_link_results(const LinkSystem &system, const LinkResults &results) {
  std::vector<std::string> chains, assumptions;
  for (size_t chain = 0; chain < results.chains.size(); ++chain) chains.push_back(chain_of(system, results, chain));
  for (const Assumption &one : results.assumptions) assumptions.push_back(assumption_of(one));
  return "{\n  " + field("met", flag(results.met)) + ",\n  " + field("chains", lines(chains)) + ",\n  " +
         field("assumptions", lines(assumptions)) + "\n}\n";
}

std::string write_link_comparison(const LinkSystem &system) {
  struct Way {
    const char *name;
    ClientPolicy policy;
    Send send;
  };
  constexpr std::array kWays{
      Way{"tide", ClientPolicy::tide, Send::asynchronous}, Way{"lanes", ClientPolicy::lanes, Send::asynchronous},
      Way{"batch_asynchronous", ClientPolicy::batch, Send::asynchronous},
      Way{"batch_stock", ClientPolicy::batch, Send::stock}, Way{"batch_blocking", ClientPolicy::batch, Send::blocking}};
  std::string text = "{";
  for (const Way &way : kWays) {
    LinkSystem variant = system;
    variant.client.policy = way.policy;
    variant.client.send = way.send;
    if (way.policy == ClientPolicy::batch) variant.protocol.hold = false;
    text += std::string(text.size() > 1 ? ",\n" : "\n") + json_string(way.name) + ": " +
            write_link_results(variant, bound_link(variant));
  }
  return text + "}\n";
}

}  // namespace tide::analysis
