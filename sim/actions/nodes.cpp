// SPDX-License-Identifier: Apache-2.0
#include "sim/actions/nodes.h"

#include <algorithm>

namespace tide::sim {
namespace {

using Payload = Nodes::Payload;
using GoalId = Nodes::GoalId;

constexpr uint8_t kUnknown = 0, kSucceeded = 4;
constexpr size_t kIdBytes = 16, kGoalBytes = 20, kGoalAnswerBytes = 12, kResultBytes = 8;

void put(Payload &bytes, int32_t value) {
  for (unsigned shift = 0; shift < 32; shift += 8)
    bytes.push_back(static_cast<uint8_t>(static_cast<uint32_t>(value) >> shift));
}

int32_t word_at(const Payload &bytes, size_t place) {
  uint32_t word = 0;
  for (size_t octet = 0; octet < 4; octet++) word |= uint32_t{bytes.at(place + octet)} << 8 * octet;
  return static_cast<int32_t>(word);
}

GoalId id_of(const Payload &bytes) {
  GoalId id{};
  std::copy_n(bytes.begin(), std::min(kIdBytes, bytes.size()), id.begin());
  return id;
}

// Of a goal of the nodes.
GoalId id_of(int32_t number) {
  GoalId id{};
  for (size_t octet = 0; octet < kIdBytes; octet++) id[octet] = static_cast<uint8_t>(number + 7 * octet);
  return id;
}

Payload result_of(uint8_t status, int32_t reached) {
  Payload bytes = {status, 0, 0, 0};
  put(bytes, reached);
  return bytes;
}

}  // namespace

Nodes::Nodes(Engine &engine, Bus &bus, Ledger &ledger, bool strict, uint64_t seed)
    : engine_(engine), bus_(bus), ledger_(ledger), strict_(strict), random_(seed) {
  serve_goals();
  serve_requests();
}

// ---- the server of the board's goals ----

void Nodes::serve_goals() {
  bus_.services.serve("count/_action/send_goal", [this](const Payload &request, Services::Take reply) {
    soon([this, request, reply] { take_goal(request, reply); });
  });
  bus_.services.serve("count/_action/get_result", [this](const Payload &request, Services::Take reply) {
    soon([this, request, reply] { tell_result(request, reply); });
  });
}

void Nodes::take_goal(const Payload &request, const Services::Take &reply) {
  if (request.size() < kGoalBytes) {
    ledger_.note("a goal of the board came short");
    return;
  }
  const GoalId id = id_of(request);
  const int32_t number = word_at(request, kIdBytes);
  const bool is_known = known_.contains(id);
  const bool accepted = is_known ? !strict_ : !is_refused(number);
  if (accepted && !is_known) {
    known_[id].number = number;
    ledger_.goals_of_board[number].executed++;
    engine_.after(random_.between(0, 400) * kMillisecond, [this, id] { end(id); });
  }
  Payload answer(kGoalAnswerBytes);
  answer[0] = accepted;
  reply(answer);
}

void Nodes::tell_result(const Payload &request, const Services::Take &reply) {
  const auto place = known_.find(id_of(request));
  if (place == known_.end()) {
    reply(result_of(kUnknown, 0));
  } else if (place->second.ended) {
    reply(result_of(kSucceeded, place->second.number));
  } else {
    place->second.askers.push_back(reply);
  }
}

void Nodes::end(const GoalId &id) {
  Known &goal = known_[id];
  goal.ended = true;
  for (const Services::Take &asker : goal.askers) asker(result_of(kSucceeded, goal.number));
  goal.askers.clear();
}

// ---- the client of the board's server ----

void Nodes::send_goal(int32_t number) {
  ledger_.goals_of_nodes[number];
  ask_goal(number);
}

void Nodes::ask_goal(int32_t number) {
  const GoalId id = id_of(number);
  Payload request(id.begin(), id.end());
  put(request, number);
  bus_.services.ask("walk/_action/send_goal", request, [this, number](const Payload &answer) {
    GoalRecord &goal = ledger_.goals_of_nodes[number];
    const bool accepted = answer.at(0) != 0;
    if (goal.answers > 0) { /* of a question that was asked again */
      if (accepted != goal.accepted) ledger_.note("a server changes its mind on goal " + std::to_string(number));
      return;
    }
    goal.answers++;
    goal.accepted = accepted;
    if (accepted) ask_result(number);
  });
}

void Nodes::ask_result(int32_t number) {
  const GoalId id = id_of(number);
  bus_.services.ask("walk/_action/get_result", {id.begin(), id.end()}, [this, number](const Payload &answer) {
    GoalRecord &goal = ledger_.goals_of_nodes[number];
    if (goal.results > 0) return;
    goal.results++;
    goal.succeeded = answer.size() >= kResultBytes && answer[0] == kSucceeded && word_at(answer, 4) == number;
  });
}

// ---- services ----

void Nodes::serve_requests() {
  bus_.services.serve("twice_there", [this](const Payload &request, Services::Take reply) {
    const int32_t number = word_at(request, 0);
    ledger_.requests_of_board[number].executed++;
    Payload answer;
    put(answer, 2 * number);
    soon([reply, answer] { reply(answer); });
  });
}

void Nodes::ask(int32_t number) {
  ledger_.requests_of_nodes[number];
  Payload request;
  put(request, number);
  bus_.services.ask("twice_here", request, [this, number](const Payload &answer) {
    ledger_.requests_of_nodes[number].answers++;
    if (word_at(answer, 0) != 2 * number) ledger_.note("request " + std::to_string(number) + " has a wrong answer");
  });
}

void Nodes::ask_again() {
  for (const auto &[number, goal] : ledger_.goals_of_nodes) {
    if (goal.answers == 0) {
      ask_goal(number);
    } else if (goal.accepted && goal.results == 0) {
      ask_result(number);
    }
  }
}

void Nodes::give_up() {
  for (auto &[number, request] : ledger_.requests_of_nodes) request.given_up = request.answers == 0;
}

}  // namespace tide::sim
