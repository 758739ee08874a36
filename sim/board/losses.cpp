// SPDX-License-Identifier: Apache-2.0
#include "sim/board/losses.h"

#include <algorithm>

#include "sim/board/client.h"

namespace tide::sim {
namespace {

constexpr size_t kWriteHeaderBytes = 8;   // bytes of a WRITE_DATA before the sample
constexpr size_t kAnswerStreamPlace = 8;  // place of the stream in a HEARTBEAT or ACKNACK, from the end of the
                                          // message's header

std::vector<bool> draw_successes(const Plan &plan, uint64_t deck) {
  uint32_t most = 0;
  for (const ChainPlan &chain : plan.chains) most = std::max(most, plan.instances_of(chain.period));
  std::vector<bool> successes(most);
  const auto count = static_cast<size_t>(plan.success_percent / 100 * most + 0.5);
  std::fill_n(successes.begin(), count, true);
  Random random(seed_of(plan, Chance::kDraw) + 16 * deck);
  for (size_t index = successes.size(); index > 1; index--) {
    const size_t other = random.below(index);
    const bool swapped = successes[index - 1];
    successes[index - 1] = successes[other];
    successes[other] = swapped;
  }
  return successes;
}

}  // namespace

Glance glance(agent::Bytes message) {
  Glance result;
  const int header_bytes = tide_xrce_get_header(message.data(), message.size(), &result.header);
  size_t position = static_cast<size_t>(std::max(header_bytes, 0));
  tide_xrce_submessage_t submessage;
  const bool read =
      header_bytes > 0 && tide_xrce_next_submessage(message.data(), message.size(), &position, &submessage) == 1;
  if (read) result.submessage = submessage.id;
  return result;
}

uint8_t stream_of(agent::Bytes message, const Glance &seen) {
  const size_t place = tide_xrce_header_bytes(seen.header.session) + kAnswerStreamPlace;
  const bool is_about_one = seen.submessage == TIDE_XRCE_HEARTBEAT || seen.submessage == TIDE_XRCE_ACKNACK;
  return is_about_one && message.size() > place ? message[place] : seen.header.stream;
}

size_t root_of(agent::Bytes message, const Glance &seen) {
  const size_t mark = tide_xrce_header_bytes(seen.header.session) + kWriteHeaderBytes;
  if (seen.submessage != TIDE_XRCE_WRITE_DATA || message.size() < mark + kMarkBytes) return kNoRoot;
  return static_cast<size_t>(message[mark] | message[mark + 1] << 8);
}

FirstLosses::FirstLosses(const Plan &plan) : plan_(plan), sent_(256, -1) {
  for (size_t deck = 0; deck < plan.chains.size(); deck++) {
    successes_.push_back(draw_successes(plan, plan.draw == Draw::kTogether ? 0 : deck));
  }
}

Glance FirstLosses::begin(agent::Bytes message) {
  const Glance seen = glance(message);
  first_leaving_ = false;
  if (!TIDE_STREAM_IS_RELIABLE(seen.header.stream) || plan_.success_percent >= 100) return seen;
  int64_t &highest = sent_[seen.header.stream];
  const bool first = highest < 0 || tide_sequence_distance(seen.header.sequence, static_cast<uint16_t>(highest)) > 0;
  if (first) highest = seen.header.sequence;
  chain_ = 0;
  for (size_t chain = 0; chain < plan_.chains.size(); chain++) {
    if (plan_.chains[chain].level == TIDE_STREAM_LEVEL(seen.header.stream)) chain_ = chain;
  }
  if (const size_t root = root_of(message, seen); root < plan_.chains.size()) chain_ = root;
  first_leaving_ = first && (seen.submessage == TIDE_XRCE_WRITE_DATA || seen.submessage == TIDE_XRCE_FRAGMENT);
  return seen;
}

bool FirstLosses::lost(Time since_release) const {
  if (!first_leaving_ || since_release < 0) return false;
  const auto period = static_cast<size_t>(since_release / plan_.chains[chain_].period);
  const auto &successes = successes_[chain_];
  return period < successes.size() && !successes[period];
}

InstanceLosses::InstanceLosses(const Plan &plan, const Graph &graph, int board)
    : plan_(plan), random_(seed_of(plan, Chance::kInstances)) {
  if (plan.instance_losses == 0 || plan.policy == Policy::kBatch) return;
  for (const MessagePlan &message : graph.messages) {
    const auto note = [&](size_t callback) {
      if (!graph.is_on_board(callback, board)) return;
      levels_[graph.callbacks[callback].level] = &graph.callbacks[graph.roots[*message.roots.rbegin()]];
    };
    note(message.sender);
    for (const size_t input : message.inputs) note(graph.inputs[input].callback);
  }
}

void InstanceLosses::begin(Way way, agent::Bytes message) {
  size_t &level = leaving_[static_cast<size_t>(way)];
  level = kNoLevel;
  if (plan_.instance_losses == 0) return;
  const Glance seen = glance(message);
  const uint8_t stream = stream_of(message, seen);
  if (TIDE_STREAM_IS_RELIABLE(stream)) level = TIDE_STREAM_LEVEL(stream);
}

bool InstanceLosses::lost(Way way, Time since_release) {
  return lost(leaving_[static_cast<size_t>(way)], since_release);
}

bool InstanceLosses::lost(size_t level, Time since_release) {
  const CallbackPlan *const timer = levels_[level];
  if (timer == nullptr) return false;
  const Time since = since_release - timer->phase;
  const int64_t instance = since < 0 ? -1 : since / timer->period;
  if (instance < 0 || instance >= plan_.instances_of(timer->period)) return false;
  Budget &budget = budgets_[level];
  if (budget.instance != instance) budget = {instance, plan_.instance_losses};
  if (budget.left == 0 || !random_.chance(plan_.instance_loss)) return false;
  budget.left--;
  return true;
}

}  // namespace tide::sim
