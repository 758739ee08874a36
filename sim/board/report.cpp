// SPDX-License-Identifier: Apache-2.0
#include "sim/board/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <type_traits>

namespace tide::sim {
namespace {

class Json {
 public:
  Json &open(char bracket) {
    comma();
    text_ += bracket;
    fresh_ = true;
    return *this;
  }
  Json &close(char bracket) {
    text_ += bracket;
    fresh_ = false;
    return *this;
  }
  Json &key(const std::string &name) {
    string(name);
    text_ += ": ";
    fresh_ = true;
    return *this;
  }
  Json &string(const std::string &value) {
    comma();
    text_ += '"';
    for (const char character : value) {
      if (character == '"' || character == '\\') text_ += '\\';
      if (static_cast<unsigned char>(character) >= 0x20) text_ += character;
    }
    text_ += '"';
    return *this;
  }
  template <typename Number>
  Json &number(Number value) {
    comma();
    if constexpr (std::is_floating_point_v<Number>) {
      char digits[32];
      std::snprintf(digits, sizeof digits, "%.10g", value);
      text_ += digits;
    } else {
      text_ += std::to_string(value);
    }
    return *this;
  }
  Json &word(const char *value) {
    comma();
    text_ += value;
    return *this;
  }
  template <typename Number>
  Json &pair(const char *name, Number value) {
    return key(name).number(value);
  }
  std::string take() { return std::move(text_); }

 private:
  void comma() {
    if (!fresh_ && !text_.empty()) text_ += ", ";
    fresh_ = false;
  }
  std::string text_;
  bool fresh_ = true;
};

// The smallest sample that at least this share of all samples does not exceed.
Time percentile(const std::vector<Time> &sorted, double share) {
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::max<size_t>(rank, 1) - 1];
}

void write_chain(Json &json, const ChainResult &chain, std::optional<Time> bound, bool each) {
  const Summary summary = summarise(chain);
  json.open('{').key("name").string(chain.name).pair("priority", chain.level).pair("samples", summary.samples);
  if (summary.samples > 0) {
    json.pair("min_ns", summary.minimum).pair("p50_ns", summary.p50).pair("p99_ns", summary.p99);
    json.pair("max_ns", summary.maximum).pair("mean_ns", summary.mean).pair("std_ns", summary.deviation);
  }
  json.pair("deadline_ns", chain.deadline).pair("deadline_misses", summary.deadline_misses);
  json.key("bound_ns");
  if (bound) {
    json.number(*bound);
  } else {
    json.word("null");
  }
  json.pair("lost", chain.lost);
  if (each) {
    json.key("latencies_ns").open('[');
    for (const Time latency : chain.latencies) json.number(latency);
    json.close(']');
  }
  json.close('}');
}

void write_line(Json &json, const char *name, const LineCounters &line) {
  json.key(name).open('{').pair("frames", line.frames).pair("bytes", line.bytes).pair("lost", line.lost);
  json.pair("duplicated", line.duplicated).pair("corrupted", line.corrupted).pair("delayed", line.delayed);
  json.pair("cut", line.cut).pair("refused", line.refused).close('}');
}

void write_counters(Json &json, const Result &result) {
  json.key("counters").open('{');
  write_line(json, "up", result.up);
  write_line(json, "down", result.down);
  json.pair("publish_failures", result.publish_failures).pair("agent_restarts", result.agent_restarts);
  json.pair("connects", result.session.connects).pair("reconnects", result.session.reconnects);
  json.pair("frames_sent", result.transmitter.frames).pair("retransmissions", result.transmitter.retransmissions);
  json.pair("heartbeats", result.transmitter.heartbeats).pair("acknacks", result.transmitter.acknacks);
  json.pair("acknowledged", result.transmitter.acknowledged).pair("packed", result.transmitter.packed);
  json.pair("evicted", result.transmitter.evicted);
  json.pair("frames_received", result.receiver.frames).pair("checksum_errors", result.receiver.checksum_errors);
  json.pair("duplicates", result.receiver.duplicates).pair("overflow_dropped", result.receiver.overflow_dropped);
  json.pair("events", result.events).pair("simulated_ns", result.simulated).close('}');
}

// What only a board tells.
void write_board(Json &json, const Result &result) {
  if (result.stack_bytes == 0) return;
  json.pair("masked_instructions", result.masked_maximum).pair("stack_bytes", result.stack_bytes);
  json.key("execution_times").open('[');
  for (const std::string &line : result.execution_times) json.string(line);
  json.close(']').key("budgets").open('[');
  for (const LaneBudget &budget : result.budgets) {
    json.open('{').pair("level", budget.level).pair("exhaustions", budget.exhaustions).pair("used_ns", budget.used);
    json.pair("low_ns", budget.low).pair("overrun_ns", budget.overrun).close('}');
  }
  json.close(']');
}

void write_run(Json &json, const Run &run) {
  char hash[20];
  std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(run.result.trace_hash));
  json.open('{').key("executor").string(run.executor).key("send").string(text_of(run.plan.send));
  json.pair("periods", run.plan.periods).key("trace_hash").string(hash);
  json.key("chains").open('[');
  for (size_t chain = 0; chain < run.result.chains.size(); chain++)
    write_chain(json, run.result.chains[chain], chain < run.bounds.size() ? run.bounds[chain] : std::nullopt,
                run.result.stack_bytes > 0);
  json.close(']');
  write_counters(json, run.result);
  write_board(json, run.result);
  json.key("violations").open('[');
  for (const std::string &violation : run.result.violations) json.string(violation);
  json.close(']').close('}');
}

}  // namespace

Summary summarise(const ChainResult &chain) {
  Summary summary;
  summary.samples = chain.latencies.size();
  if (summary.samples == 0) return summary;
  std::vector<Time> sorted = chain.latencies;
  std::sort(sorted.begin(), sorted.end());
  const auto count = static_cast<double>(sorted.size());
  const double mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / count;
  double squares = 0;
  for (const Time latency : sorted) {
    squares += (static_cast<double>(latency) - mean) * (static_cast<double>(latency) - mean);
    if (latency > chain.deadline) summary.deadline_misses++;
  }
  summary.minimum = sorted.front();
  summary.p50 = percentile(sorted, 0.5);
  summary.p99 = percentile(sorted, 0.99);
  summary.maximum = sorted.back();
  summary.mean = static_cast<Time>(std::llround(mean));
  summary.deviation = static_cast<Time>(std::llround(std::sqrt(squares / count)));
  return summary;
}

std::string results_json(const Plan &plan, const std::vector<Run> &runs) {
  Json json;
  json.open('{').pair("schema", 1).key("system").string(plan.system).key("on").string("sim").pair("seed", plan.seed);
  json.key("machine").open('{').close('}').key("runs").open('[');
  for (const Run &run : runs) write_run(json, run);
  json.close(']').close('}');
  return json.take();
}

}  // namespace tide::sim
