// SPDX-License-Identifier: Apache-2.0
// Chains of a board whose messages are requests and replies of a service.
#include <span>

#include "sim/board/one_board.h"

namespace tide::sim {
namespace {

uint32_t index_of(const Bus::Payload &payload, size_t bytes) {
  return get_mark(std::span(payload).first(bytes), 0).index;
}

// Between nodes.
Bus::Payload payload_of(const Mark &mark) {
  Bus::Payload payload(kMarkBytes);
  put_mark(payload.data(), mark);
  return payload;
}

}  // namespace

void OneBoard::add_service(size_t chain) {
  if (plan_.chains[chain].calls == Calls::kAsks) {
    add_asking(chain);
  } else {
    add_serving(chain);
  }
}

// A node serves, or the chain of another board.
void OneBoard::add_asking(size_t chain) {
  const ChainPlan &plan = plan_.chains[chain];
  const std::string &service = plan.service_name();
  bus_.services.watch_requests(service, [this, chain](const Bus::Payload &payload) {
    const size_t bytes = plan_.chains[chain].payload_bytes;
    if (!is_own(chain, payload, bytes)) return;
    const uint32_t index = index_of(payload, bytes);
    checks_.host_received(chain, index, is_renewed(), engine_.now());
    client_.note_heard(chain, index, engine_.now());
    const std::string &next = plan_.chains[chain].next;
    if (!next.empty()) world_.note_begun(next, index, client_.instances(chain)[index].release);
  });
  bus_.services.watch_replies(service, [this, chain](const Bus::Payload &payload) {
    const uint32_t index = index_of(payload, plan_.chains[chain].reply_bytes);
    client_.note_answered(chain, index, engine_.now());
    checks_.host_answered(chain, index);
  });
  bus_.services.carry_replies(service, [this](std::function<void()> deliver) { come_back(std::move(deliver)); });
  if (!plan.next.empty()) {
    nodes_.push_back(nullptr);
    return;
  }
  const End end = [this, chain](const Bus::Payload &payload) {
    const Mark mark = get_mark(payload.data());
    Bus::Payload reply(plan_.chains[chain].reply_bytes, 0x3B);
    put_mark(std::span(reply), mark);
    if (const auto asker = askers_.extract({chain, mark.index}); !asker.empty()) asker.mapped()(reply);
  };
  nodes_.push_back(first_of(plan, end));
  bus_.services.serve(service, [this, chain](const Bus::Payload &payload, Services::Take reply) {
    const Mark mark{client_.mark_of(chain), index_of(payload, plan_.chains[chain].payload_bytes)};
    askers_[{chain, mark.index}] = std::move(reply);
    nodes_[chain]->receive(payload_of(mark));
  });
}

// A node asks, or the chain of another board, which notes when an instance begins.
void OneBoard::add_serving(size_t chain) {
  const ChainPlan &plan = plan_.chains[chain];
  const std::string service = plan.service_name();
  bus_.services.carry_requests(service, [this](std::function<void()> deliver) { come_back(std::move(deliver)); });
  bus_.services.watch_requests(service, [this, chain](const Bus::Payload &payload) {
    const uint32_t index = index_of(payload, plan_.chains[chain].reply_bytes);
    client_.note_answered(chain, index, engine_.now());
    checks_.host_answered(chain, index);
  });
  bus_.services.watch_replies(service, [this, chain](const Bus::Payload &payload) {
    const size_t bytes = plan_.chains[chain].payload_bytes;
    if (!is_own(chain, payload, bytes)) return;
    const uint32_t index = index_of(payload, bytes);
    checks_.host_replied(chain, index);
    if (plan_.chains[chain].is_asked_by_board()) client_.note_end(chain, index, engine_.now());
  });
  if (plan.is_asked_by_board()) {
    nodes_.push_back(nullptr);
    return;
  }
  const End finish = [this, chain](const Bus::Payload &payload) {
    client_.note_end(chain, get_mark(payload.data()).index, engine_.now());
  };
  HostCallback *const after = followers_of(plan, true, finish);
  const End ask = [this, chain, service, after, finish](const Bus::Payload &payload) {
    Bus::Payload request(plan_.chains[chain].reply_bytes, 0x3B);
    const Mark mark = get_mark(payload.data());
    put_mark(std::span(request), mark);
    bus_.services.ask(service, request, [after, finish, mark](const Bus::Payload &) {
      after != nullptr ? after->receive(payload_of(mark)) : finish(payload_of(mark));
    });
  };
  nodes_.push_back(first_of(plan, ask));
}

void OneBoard::note_begun(size_t chain, uint32_t index, Time release) {
  client_.note_release(chain, index, release);
  checks_.host_received(chain, index, is_renewed(), engine_.now());
  client_.note_heard(chain, index, engine_.now());
}

void World::note_begun(const std::string &next, uint32_t index, Time release) {
  const auto &[system, chain] = begun_elsewhere.at(next);
  system->note_begun(chain, index, release);
}

}  // namespace tide::sim
