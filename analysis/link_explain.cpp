// SPDX-License-Identifier: Apache-2.0
// What a bound is made of, and what it takes for granted.
#include <algorithm>
#include <numeric>
#include <utility>

#include "analysis/link_model.h"

namespace tide::analysis {

void LinkModel::explain(std::size_t chain, LinkResult &result) const {
  const time_ns response_ns = responses_[chain];
  Demand made = demand(chain, response_ns);
  LinkParts &parts = made.parts;
  result.response_ns = response_ns;
  result.met = response_ns <= system_.chains[chain].deadline_ns;
  result.hidden = made.cases.size() > 1 && made.cases[0].value >= response_ns;
  if (result.hidden) {
    parts.line_ns = parts.host_ns = parts.line_blocking_ns = parts.control_ns = parts.host_wait_ns = parts.losses_ns =
        0;
    parts.line_interference_ns.assign(size(), 0);
    parts.client_blocking_ns = client_blocking(chain);
  }
  // What the sum of all parts counts twice is taken from the interference, that of the least urgent chain first.
  time_ns surplus_ns = parts.total_ns() - response_ns;
  if (surplus_ns < 0) parts.client_blocking_ns -= std::exchange(surplus_ns, 0);  // both visits of a less urgent chain
  std::vector<std::size_t> order(size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [this](std::size_t left, std::size_t right) {
    return system_.chains[left].level < system_.chains[right].level;
  });
  for (std::vector<time_ns> *shares : {&parts.client_interference_ns, &parts.line_interference_ns}) {
    for (const std::size_t other : order) {
      const time_ns taken_ns = std::clamp<time_ns>(surplus_ns, 0, (*shares)[other]);
      (*shares)[other] -= taken_ns;
      surplus_ns -= taken_ns;
    }
  }
  for (time_ns *part : {&parts.control_ns, &parts.line_blocking_ns, &parts.line_ns, &parts.host_ns}) {
    const time_ns taken_ns = std::clamp<time_ns>(surplus_ns, 0, *part);
    *part -= taken_ns;
    surplus_ns -= taken_ns;
  }
  result.parts = parts;
}

std::vector<std::string> LinkModel::assumptions() const {
  const Line &line = system_.line;
  const auto milliseconds = [](time_ns time) {
    std::string text = std::to_string(time / 1'000'000);
    const std::string rest = std::to_string(1'000'000 + time % 1'000'000).substr(1);
    const std::size_t last = rest.find_last_not_of('0');
    return text + (last == std::string::npos ? "" : '.' + rest.substr(0, last + 1)) + " ms";
  };
  std::vector<std::string> list;
  list.push_back("execution times are worst cases; submit " + milliseconds(system_.client.submit_ns) + ", process " +
                 milliseconds(system_.client.process_ns) + ", dispatch " + milliseconds(system_.client.dispatch_ns));
  list.push_back("agent, DDS and serial adapter take " + milliseconds(line.agent_most_ns) + " to the node and " +
                 milliseconds(line.return_most_ns) + " back at most");
  list.push_back(line.escapes == escapes_worst
                     ? "every byte of a frame may be escaped"
                     : "at most " + std::to_string(line.escapes) + " bytes of a frame are escaped");
  if (line.fixed_sizes) list.push_back("messages are exactly as long as they say");
  list.push_back(system_.protocol.losses == 0
                     ? "no frame is lost"
                     : "at most " + std::to_string(system_.protocol.losses) + " frames of an instance are lost");
  const bool reliable = std::any_of(system_.chains.begin(), system_.chains.end(), [](const LinkChain &chain) {
    return chain.uplink_reliable || chain.downlink_reliable;
  });
  if (reliable && system_.protocol.heartbeats_for_losses)
    list.push_back("HEARTBEATs are sent for lost frames only: their delay is longer than an acknowledgment takes");
  list.push_back("pools and windows never run full; nobody else uses the line");
  list.push_back("a chain is over before its next release; the chains that a bound depends on are, too");
  return list;
}
}  // namespace tide::analysis
