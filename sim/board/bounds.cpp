// SPDX-License-Identifier: Apache-2.0
#include "sim/board/bounds.h"

#include <algorithm>
#include <cstdio>

#include "analysis/link.h"

namespace tide::sim {
namespace {

// Most escaped bytes of a frame from an image in QEMU. Its samples consist of dots and two small numbers, so escapes
// may be needed only for the low bytes of the sequence number, of two lengths and of the sample's number, for the four
// bytes of the object's id, and for the checksum.
constexpr std::int64_t kEscapes = 10;
constexpr uint32_t kMostPeriods = 10'000;  // limit for plans of such images, so that the high bytes of numbers need no
                                           // escapes

bool is_covered(const Plan &plan, const analysis::LinkSystem &system) {
  if (plan.up.any() || plan.down.any() || plan.cuts > 0 || plan.restarts > 0) return false;
  if (plan.send == Send::kAnswered || !plan.boards.empty() || !plan.callbacks.empty()) return false;
  if (plan.send != Send::kAsynchronous && plan.policy != Policy::kBatch)
    return false;  // the analysis knows other send
                   // modes only with batch
  if (plan.policy == Policy::kReadyset || plan.lanes_a_band > 1) return false;
  for (const ChainPlan &chain : plan.chains) {
    if (chain.group != 0 || chain.local_depth > 0) return false;
  }
  if (plan.success_percent >= 100) return true;
  return std::all_of(system.chains.begin(), system.chains.end(), [&system](const analysis::LinkChain &chain) {
    const std::int64_t bytes = chain.callbacks.front().payload_bytes;
    return analysis::message(system.line, analysis::Direction::up, bytes).frames <= 1;
  });
}

}  // namespace

analysis::LinkSystem system_of(const Plan &plan) {
  analysis::LinkSystem system;
  system.client.policy = plan.policy == Policy::kBatch ? analysis::ClientPolicy::batch
                         : plan.lanes > 1              ? analysis::ClientPolicy::lanes
                                                       : analysis::ClientPolicy::tide;
  system.client.send = plan.send == Send::kStock      ? analysis::Send::stock
                       : plan.send == Send::kBlocking ? analysis::Send::blocking
                                                      : analysis::Send::asynchronous;
  system.client.waits_for_new_data = plan.batch_waits_for_new_data;
  system.client.submit_ns = plan.submit;
  system.client.process_ns = plan.process;
  system.client.dispatch_ns = plan.dispatch;
  system.client.fixed_costs = true;
  system.client.interrupt_receive_ns = plan.interrupt_receive;
  system.client.interrupt_complete_ns = plan.interrupt_complete;
  system.line.baud = static_cast<std::int64_t>(plan.baud);
  system.line.mtu_bytes = plan.mtu;
  system.line.agent_least_ns = plan.agent_least;
  system.line.agent_ns = plan.agent_most;
  system.protocol.acknowledges =
      plan.agent_acknowledges == Acknowledges::kAsked ? analysis::Acknowledges::asked : analysis::Acknowledges::always;
  system.protocol.client.delay_ns = plan.heartbeat_delay;
  system.protocol.agent.delay_ns = plan.agent_heartbeat_delay;
  system.protocol.window = plan.window;
  system.protocol.losses = (plan.success_percent < 100 ? 1 : 0) + plan.instance_losses;
  for (const ChainPlan &chain : plan.chains) {
    const int place = static_cast<int>(system.hosts.size());
    system.hosts.push_back({chain.name, 1, true});
    system.chains.push_back({chain.name,
                             chain.level,
                             chain.period,
                             chain.period,
                             chain.reliable,
                             chain.is_reply_reliable(),
                             {{"sample", analysis::kOnClient, chain.sample, 0, chain.payload_bytes},
                              {"decide", place, chain.host, 0, chain.reply_bytes},
                              {"act", analysis::kOnClient, chain.act, 0, 0}},
                             chain.jitter});
    system.chains.back().hold = plan.hold_until_acknowledged || chain.hold;
  }
  return system;
}

std::vector<std::optional<Time>> bounds_of(const Plan &plan) {
  analysis::LinkSystem system = system_of(plan);
  std::vector<std::optional<Time>> bounds(plan.chains.size());
  if (plan.only_first && !system.chains.empty()) system.chains.resize(1);
  for (analysis::LinkChain &chain : system.chains) {
    for (analysis::LinkCallback &callback : chain.callbacks) callback.least_ns = callback.execution_ns;
  }
  system.line.exact_sizes = true;
  const bool few = std::all_of(plan.chains.begin(), plan.chains.end(), [&plan](const ChainPlan &chain) {
    return plan.instances_of(chain.period) <= kMostPeriods;
  });
  if (few) system.line.escaped_bytes = kEscapes;
  if (!is_covered(plan, system) || !analysis::check(system).empty()) return bounds;
  const analysis::LinkResults results = analysis::bound_link(system);
  for (size_t chain = 0; chain < results.chains.size(); chain++) bounds[chain] = results.chains[chain].response_ns;
  return bounds;
}

std::vector<std::string> above_bounds(const std::vector<std::optional<Time>> &bounds, const Result &result) {
  std::vector<std::string> lines;
  if (result.publish_failures > 0 || result.transmitter.evicted > 0 || result.receiver.overflow_dropped > 0)
    return lines;
  for (size_t chain = 0; chain < result.chains.size() && chain < bounds.size(); chain++) {
    const Time worst = result.chains[chain].worst_response;
    if (!bounds[chain] || worst <= *bounds[chain]) continue;
    char text[160];
    std::snprintf(text, sizeof text, "chain %s: %.6f ms is above its bound of %.6f ms",
                  result.chains[chain].name.substr(0, 64).c_str(), static_cast<double>(worst) / 1e6,
                  static_cast<double>(*bounds[chain]) / 1e6);
    lines.emplace_back(text);
  }
  return lines;
}

}  // namespace tide::sim
