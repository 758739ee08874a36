// SPDX-License-Identifier: Apache-2.0
// A client, its line, its agent and its nodes in a world that other boards may share.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/board/agent_host.h"
#include "sim/board/bus.h"
#include "sim/board/checks.h"
#include "sim/board/client.h"
#include "sim/board/losses.h"
#include "sim/board/system.h"

namespace tide::sim {

class Trace {
 public:
  explicit Trace(bool kept) : kept_(kept) {}
  void add(Time now, const char *what, int64_t first = -1, int64_t second = -1) {
    char line[128];
    char *end = put(line, line + sizeof line, now);
    *end++ = ' ';
    end = std::copy_n(what, std::strlen(what), end);
    for (const int64_t number : {first, second}) {
      if (number < 0) continue;
      *end++ = ' ';
      end = put(end, line + sizeof line, number);
    }
    *end++ = '\n';
    for (const char *byte = line; byte < end; byte++) {
      hash_ = (hash_ ^ static_cast<uint8_t>(*byte)) * 0x100000001B3u;
    }
    if (kept_) text_.append(line, end);
  }
  std::string text() const { return text_; }
  uint64_t hash() const { return hash_; }

 private:
  // A line is made for each of some thousand events of a seed: printf took a quarter of a campaign.
  static char *put(char *begin, char *end, int64_t number) { return std::to_chars(begin, end, number).ptr; }

  bool kept_;
  std::string text_;
  uint64_t hash_ = 0xCBF29CE484222325u;
};

class OneBoard;

// What boards share.
struct World {
  explicit World(const Plan &plan) : trace(plan.trace) {
    for (const unsigned lanes : plan.hosts)
      hosts.push_back(std::make_unique<HostExecutor>(engine, lanes, seed_of(plan, Chance::kHosts) + hosts.size()));
  }
  // The end of a chain on one board begins one on another.
  void pass_on(const std::string &next, uint32_t index, Time release);
  // A request of one board is on its way to the chain of another one that serves it.
  void note_begun(const std::string &next, uint32_t index, Time release);

  Engine engine;
  Trace trace;
  Bus bus;
  std::vector<std::unique_ptr<HostExecutor>> hosts;
  std::map<unsigned, char> servers;  // of several chains; who they are is where they are
  std::map<std::string, std::pair<OneBoard *, size_t>> begun_elsewhere;  // by name
  std::vector<OneBoard *> changed;  // that have done something in this step; others are as they were
};

// A board, its line and its agent.
class OneBoard {
 public:
  OneBoard(World &world, const Plan &plan);
  void check_step() {
    machine_.rest();
    checks_.step_end(client_, engine_.now());
  }
  bool is_set_up() const { return client_.is_set_up(); }
  Time first_release() const { return client_.first_release(); }
  void release_nodes();
  void take_over(size_t chain, uint32_t index, Time release);
  Time hop_to(size_t chain) const { return plan_.chains[chain].hop; }
  void note_begun(size_t chain, uint32_t index, Time release);
  void schedule_incidents();
  Time last_release() const;
  Time steady_until() const;
  Time longest_period() const;
  Time longest_callbacks() const;
  bool is_done();
  void end();
  bool is_stopped() const { return client_.is_stopped(); }
  void tell(Result &result);

 private:
  size_t chain_count() const { return plan_.only_first ? 1 : plan_.chains.size(); }
  Client::Observer observer();
  void connect();
  void add_node(size_t chain);
  using End = std::function<void(const Bus::Payload &payload)>;
  std::unique_ptr<HostCallback> callback_of(Time execution, unsigned node, unsigned server, HostCallback *next,
                                            End end);
  End telling(const ChainPlan &plan, size_t done, HostCallback *next, Time hop, const End &end);
  std::unique_ptr<HostCallback> first_of(const ChainPlan &plan, const End &end);
  HostCallback *followers_of(const ChainPlan &plan, bool after, const End &end);
  void begin_others(size_t chain, size_t done, uint32_t index);
  void come_back(std::function<void()> deliver);
  bool is_own(size_t chain, const Bus::Payload &payload, size_t least);
  void add_service(size_t chain);
  void add_asking(size_t chain);
  void add_serving(size_t chain);
  void answer(size_t chain, const Bus::Payload &payload);
  bool is_renewed() { return client_.session().counters.reconnects > 0 || host_.restarts() > 0; }

  World &world_;
  const Plan &plan_;
  Engine &engine_;
  Trace &trace_;
  Checks checks_;
  Line up_, down_;
  Bus &bus_;
  AgentHost host_;
  Machine machine_;
  Client client_;
  Random incidents_, return_;
  Time last_return_ = 0;
  std::vector<std::unique_ptr<HostCallback>> nodes_;              // by chain, the first
  std::vector<std::unique_ptr<HostCallback>> followers_;          // those behind it
  std::map<std::pair<size_t, uint32_t>, Services::Take> askers_;  // by chain and instance, of nodes that serve
  std::map<std::pair<size_t, uint32_t>, unsigned> arrived_;  // by chain and instance, of those that wait for several
  FirstLosses losses_;
  InstanceLosses instance_losses_;
  uint64_t heartbeats_seen_ = 0, heartbeats_answered_ = 0;
  bool acknowledging_ = false;
  unsigned cuts_now_ = 0;
};

}  // namespace tide::sim
