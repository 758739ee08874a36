// SPDX-License-Identifier: Apache-2.0
#include "analysis/link/system.h"

#include <algorithm>
#include <map>
#include <set>

#include "analysis/link/frames.h"

namespace tide::analysis {
namespace {

constexpr time_ns kMostTimeNs = 1'000'000'000'000;        // a quarter of an hour, so that no sum overflows
constexpr time_ns kMostPeriodNs = 1'000'000'000'000'000;  // eleven days, as on the host
constexpr size_t kMostChains = 1000, kMostSteps = 1000;
constexpr int64_t kMostPayloadBytes = 1'000'000;
constexpr int64_t kMostFragments = 15;  // of one message: all of it may be under way, and one frame more

class Checker {
 public:
  explicit Checker(const LinkSystem &system) : system_(system) {}

  std::vector<std::string> run() {
    client();
    line();
    hosts();
    if (system_.chains.empty()) error("system", "has no chains");
    if (system_.chains.size() > kMostChains) error("system", "has more than 1000 chains");
    if (!errors_.empty()) return errors_;
    for (const LinkChain &one : system_.chains) chain(one);
    levels();
    return errors_;
  }

 private:
  void error(const std::string &where, const std::string &what) { errors_.push_back(where + ": " + what); }
  void time(const std::string &where, const std::string &name, time_ns value, time_ns least = 0,
            time_ns most = kMostTimeNs) {
    if (value < least || value > most)
      error(where, "'" + name + "' is " + std::to_string(value) + "; it must be from " + std::to_string(least) +
                       " to " + std::to_string(most));
  }

  void questions(const std::string &whose, const Questions &asked) {
    time("protocol", whose + "heartbeat_delay_ns", asked.delay_ns, -1);
    time("protocol", whose + "heartbeat_floor_ns", asked.floor_ns, 1'000'000);
    time("protocol", whose + "heartbeat_period_ns", asked.period_ns, 1'000'000);
  }

  void client() {
    const Client &client = system_.client;
    time("client", "submit_ns", client.submit_ns);
    time("client", "process_ns", client.process_ns);
    time("client", "dispatch_ns", client.dispatch_ns);
    time("client", "interrupt_receive_ns", client.interrupt_receive_ns);
    time("client", "interrupt_complete_ns", client.interrupt_complete_ns);
    const Protocol &protocol = system_.protocol;
    questions("", protocol.client);
    questions("agent_", protocol.agent);
    if (protocol.silence_ns != 0) time("protocol", "silence_ns", protocol.silence_ns, 1'000'000);
    if (protocol.losses < 0 || protocol.losses > 16) error("protocol", "'losses' must be from 0 to 16");
    if (protocol.window < 1) error("protocol", "'window' must be 1 or more");
    if (protocol.acknowledges == Acknowledges::asked && protocol.client.delay_ns < 0)
      error("protocol", "acknowledgments that are asked for need a 'heartbeat_delay_ns'");
  }

  void line() {
    const Line &line = system_.line;
    if (line.baud < 1200 || line.baud > 1'000'000'000) error("line", "'baud' must be from 1200 to 1000000000");
    if (line.mtu_bytes < 68 || line.mtu_bytes > 65535) error("line", "'mtu_bytes' must be from 68 to 65535");
    if (line.quantum_bytes != 0 && (line.quantum_bytes < 64 || line.quantum_bytes > line.mtu_bytes))
      error("line", "'quantum_bytes' must be 0, or from 64 to the MTU");
    if (line.escaped_bytes.value_or(0) < 0) error("line", "'escaped_bytes' must be 0 or more, or null for all");
    time("line", "agent_least_ns", line.agent_least_ns);
    time("line", "agent_ns", line.agent_ns, line.agent_least_ns);
    time("line", "turn_ns", line.acknowledges_ns());
    time("line", "return_ns", line.return_ns);
    time("line", "host_hop_ns", line.host_hop_ns);
  }

  void hosts() {
    for (const HostExecutor &host : system_.hosts) {
      if (host.lanes < 1 || host.lanes > 64) error("host '" + host.name + "'", "'lanes' must be from 1 to 64");
    }
  }

  void chain(const LinkChain &chain) {
    const std::string where = "chain '" + chain.name + "'";
    time(where, "period_ns", chain.period_ns, 1, kMostPeriodNs);
    time(where, "deadline_ns", chain.deadline_ns, 1, kMostPeriodNs);
    time(where, "jitter_ns", chain.jitter_ns);
    if (chain.callbacks.empty()) error(where, "has no callbacks");
    if (chain.callbacks.size() > kMostSteps) error(where, "has more than 1000 callbacks");
    for (size_t index = 0; index < chain.callbacks.size(); index++) callback(chain, index);
    if (!chain.response_ns) return;
    if (*chain.response_ns < 0) error(where, "'response_ns' is less than 0");
    if (is_on_client(chain)) error(where, "is bounded elsewhere and has a callback on the client");
  }

  void callback(const LinkChain &chain, size_t index) {
    const LinkCallback &callback = chain.callbacks[index];
    const std::string where = "chain '" + chain.name + "', callback '" + callback.name + "'";
    time(where, "execution_ns", callback.execution_ns);
    time(where, "least_ns", callback.least_ns);
    time(where, "hop_ns", callback.hop_ns.value_or(0));
    if (callback.least_ns > callback.execution_ns) error(where, "'least_ns' is more than 'execution_ns'");
    for (const CriticalSection &section : callback.sections) {
      time(where, "section_ns", section.section_ns);
      if (section.section_ns > callback.execution_ns)
        error(where, "'section_ns' of lock '" + section.lock + "' is more than 'execution_ns'");
    }
    if (callback.place < kOnClient || callback.place >= static_cast<int>(system_.hosts.size())) {
      error(where, "is on no executor");
      return;
    }
    if (callback.payload_bytes < 0 || callback.payload_bytes > kMostPayloadBytes) {
      error(where, "'payload_bytes' must be from 0 to " + std::to_string(kMostPayloadBytes));
      return;
    }
    const bool has_next = index + 1 < chain.callbacks.size();
    if (has_next && callback.payload_bytes == 0) error(where, "publishes nothing that the next callback could receive");
    if (callback.payload_bytes == 0) return;
    if (callback.place == kOnClient) fits(where, Direction::up, chain.uplink_reliable, callback.payload_bytes);
    if (has_next && chain.callbacks[index + 1].place == kOnClient)
      fits(where, Direction::down, chain.downlink_reliable, callback.payload_bytes);
  }

  void fits(const std::string &where, Direction direction, bool reliable, int64_t payload_bytes) {
    const Message sent = message(system_.line, direction, payload_bytes);
    if (sent.frames > 1 && !reliable)
      error(where, "a message of " + std::to_string(payload_bytes) +
                       " bytes needs more than one frame and best effort knows no fragments; make it reliable or raise "
                       "the MTU");
    if (sent.frames > kMostFragments)
      error(where, "a message of " + std::to_string(payload_bytes) + " bytes needs " + std::to_string(sent.frames) +
                       " frames, and there is a bound for at most " + std::to_string(kMostFragments) + "; raise " +
                       (system_.line.quantum_bytes > 0 ? "quantum_bytes" : "mtu_bytes"));
  }

  // Host executors take callbacks in any order, so priorities matter on the client and on its line only.
  static bool is_on_client(const LinkChain &chain) {
    return std::any_of(chain.callbacks.begin(), chain.callbacks.end(),
                       [](const LinkCallback &one) { return one.place == kOnClient; });
  }

  // The wire and the executor cannot tell equal levels apart by importance; the baseline does not look at them. Who
  // shares a level says so.
  void levels() {
    std::map<int64_t, const LinkChain *> owners;
    std::set<std::string> names;
    for (const LinkChain &chain : system_.chains) {
      if (!names.insert(chain.name).second) error("chain '" + chain.name + "'", "there are two of this name");
      if (!is_on_client(chain)) continue;
      const auto [known, first] = owners.emplace(chain.priority, &chain);
      const LinkChain &owner = *known->second;
      if (!first && system_.client.policy != ClientPolicy::batch && !(chain.shares_level && owner.shares_level))
        error("chain '" + chain.name + "'", "has the priority of chain '" + owner.name + "'; give each its own");
    }
  }

  const LinkSystem &system_;
  std::vector<std::string> errors_;
};

}  // namespace

std::vector<std::string> check(const LinkSystem &system) { return Checker(system).run(); }

}  // namespace tide::analysis
