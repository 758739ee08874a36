// SPDX-License-Identifier: Apache-2.0
#include "analysis/system/results_file.h"

#include "analysis/model/json_fields.h"
#include "analysis/system/compare.h"

namespace tide::analysis {
namespace {

std::string breakdown(const Executor &executor, const Breakdown &breakdown) {
  std::vector<std::string> shares;
  for (size_t other = 0; other < breakdown.interference_ns.size(); ++other) {
    if (breakdown.interference_ns[other] == 0) continue;
    shares.push_back(field(executor.chains()[other].name, std::to_string(breakdown.interference_ns[other])));
  }
  return join(
      {field("precedence_ns", std::to_string(breakdown.precedence_ns)),
       field("interference_ns", join(shares, "{", "}")), field("own_ns", std::to_string(breakdown.own_ns)),
       field("blocking_ns", std::to_string(breakdown.blocking_ns)),
       field("groups_ns", std::to_string(breakdown.groups_ns)), field("demand_ns", std::to_string(breakdown.demand_ns)),
       field("window_ns", std::to_string(breakdown.window_ns)),
       field("finish_ns", std::to_string(breakdown.finish_ns))},
      "{", "}");
}

std::string shortfall(const System &system, const std::optional<Shortfall> &why) {
  if (!why) return "null";
  const Executor &executor = system.executors()[why->executor];
  return join({field("kind", json_string(name_of(why->kind))), field("executor", json_string(executor.name())),
               field("chain", json_string(executor.chains()[why->chain].name)),
               field("reached_ns", std::to_string(why->reached_ns)), field("limit_ns", std::to_string(why->limit_ns)),
               field("asked_permille", std::to_string(why->asked_permille)),
               field("given_permille", std::to_string(why->given_permille))},
              "{", "}");
}

// why: as JSON, where it is known.
std::string chain_result(const Executor &executor, std::string_view analysis, const Result &result, size_t index,
                         const std::string &why = "null") {
  const Chain &chain = executor.chains()[index];
  const ChainResult &answer = result.chains[index];
  std::optional<time_ns> slack_ns;
  if (answer.response_ns) slack_ns = chain.deadline_ns - *answer.response_ns;
  std::vector<std::string> depends;
  for (const Dependence &one : answer.depends_on) {
    const char *reason = one.reason == Reason::interference ? "\"interference\"" : "\"blocking\"";
    depends.push_back(
        join({field("chain", json_string(executor.chains()[one.chain].name)), field("because", reason)}, "{", "}"));
  }
  return join(
      {field("chain", json_string(chain.name)), field("executor", json_string(executor.name())),
       field("analysis", json_string(answer.analysis.empty() ? analysis : answer.analysis)),
       field("holds_for", json_string(name_of(answer.proved_for))), field("response_ns", number(answer.response_ns)),
       field("deadline_ns", std::to_string(chain.deadline_ns)), field("slack_ns", number(slack_ns)),
       field("met", flag(answer.met)), field("guaranteed", flag(answer.guaranteed)),
       field("execution_ns", std::to_string(chain.execution_ns)),
       field("breakdown", answer.response_ns ? breakdown(executor, answer.breakdown) : "null"),
       field("depends_on", join(depends, "[", "]")), field("why", why)},
      "{", "}");
}

}  // namespace

std::string write_results(const System &system, const SystemResult &result) {
  std::vector<std::string> chains;
  for (size_t executor = 0; executor < system.executors().size(); ++executor) {
    const Executor &one = system.executors()[executor];
    for (size_t chain = 0; chain < one.chains().size(); ++chain) {
      const Result &answer = result.executors[executor];
      chains.push_back(
          chain_result(one, answer.analysis->name, answer, chain, shortfall(system, result.why[executor][chain])));
    }
  }
  std::vector<std::string> paths;
  for (size_t index = 0; index < system.paths().size(); ++index) {
    const Path &path = system.paths()[index];
    const PathResult &answer = result.paths[index];
    std::vector<std::string> segments;
    for (size_t segment = 0; segment < path.segments.size(); ++segment) {
      const Place &place = path.segments[segment];
      segments.push_back(
          join({field("chain", json_string(system.executors()[place.executor].chains()[place.chain].name)),
                field("response_ns", number(answer.segments_ns[segment])),
                field("jitter_ns", std::to_string(answer.jitter_ns[segment]))},
               "{", "}"));
    }
    paths.push_back(join({field("path", json_string(path.name)), field("response_ns", number(answer.response_ns)),
                          field("deadline_ns", std::to_string(path.deadline_ns)), field("met", flag(answer.met)),
                          field("guaranteed", flag(answer.guaranteed)), field("segments", join(segments, "[", "]")),
                          field("why", shortfall(system, answer.why))},
                         "{", "}"));
  }
  return "{\n  " + field("guaranteed", flag(result.guaranteed)) + ",\n  " + field("settled", flag(result.settled)) +
         ",\n  " + field("chains", lines(chains)) + ",\n  " + field("paths", lines(paths)) + "\n}\n";
}

std::string write_comparison(const System &system, const Options &options) {
  std::vector<std::string> rows;
  for (const Executor &executor : system.executors()) {
    for (const auto &[analysis, result] : compare(executor, options)) {
      for (size_t chain = 0; chain < executor.chains().size(); ++chain) {
        rows.push_back(chain_result(executor, analysis, result, chain));
      }
    }
  }
  return "{\n  " + field("chains", lines(rows)) + "\n}\n";
}

}  // namespace tide::analysis
