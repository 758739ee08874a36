// SPDX-License-Identifier: Apache-2.0
// What to simulate: one board, or several on one bus. As plain text: one `name = value` a line, `#` begins a comment.
// Times carry their unit in the name.
//
//   periods = 500
//   chain = name=brake level=3 period_us=500000 payload_bytes=96 reply_bytes=10 sample_us=10000 act_us=10000
//
// Each `chain` adds one; later settings override earlier ones. Chains are registered in this order. `board = arm`
// begins a board, with the settings before the first one; what follows is its own, but `hosts`, which all share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/engine/line.h"
#include "tide/priority.h"

namespace tide::sim {

// What a chain is made of. answered: sample on the client, a node's answer, act on the client. sampled: sample alone.
// heard: it ends at the node. told: a timer of the node, act on the client. looped: sample and act, by way of the
// agent. hosted: a timer of the node alone.
// How its messages travel. topics. asks: as a service that the client requests, and the reply is what it acts on.
// serves: as one that it acts on, and its reply goes back; a chain that is told, from a node or by another chain's
// `next`.
enum class Calls { kTopics, kAsks, kServes };
enum class Shape { kAnswered, kSampled, kHeard, kTold, kLooped, kHosted };

struct ChainPlan {
  std::string name = "chain";
  unsigned level = 0;
  Shape shape = Shape::kAnswered;
  Time period = 500 * kMillisecond, phase = 0, deadline = 0;  // deadline 0: the period
  unsigned burst = 0;  // more than 0: events begin it, of which so many may come at once and in so many periods
  Time jitter = 0;     // its timer releases it so much late at most, drawn for each instance
  uint32_t payload_bytes = 96, reply_bytes = 10;  // CDR, from the client and to it; 6 or more, of services any
  Time sample = 0, host = 0, act = 0;             // execution times
  bool reliable = true;
  bool reply_reliable = true;  // only when reliable
  unsigned node = 0;           // 0: its answer has a core of its own; else the executor of that number in `hosts`
  std::vector<unsigned> more_nodes, more_us;  // further callbacks on the host, one after the other, behind the first
  // How long what is published is under way from one of them to the next; empty: no time. hop: to the first one, of a
  // chain that others begin.
  std::vector<unsigned> more_hops_us, after_hops_us;
  Time hop = 0;
  unsigned group = 0;        // 0: none; callbacks of chains of the same number are one exclusive group
  uint32_t local_depth = 0;  // more than 0: what is sampled is also delivered to a callback of this process, this deep
  Time budget = 0, budget_period = 0;  // of the lane of its level, when there are lanes for each; 0: none
  bool hold = false;                   // nothing less urgent leaves while a message of it waits for its acknowledgment
  // Locks that its callbacks on the client take: the number of a lock and the microseconds for which it is held, in
  // turn.
  std::vector<unsigned> sample_locks, act_locks;
  Calls calls = Calls::kTopics;
  std::string service;                          // its name; empty: that of the chain
  std::vector<unsigned> after_nodes, after_us;  // serves: callbacks on the host behind the reply
  // Of its callbacks on the host, in their order (host, more, after): 0, or the number of the server that chains have
  // in common, which takes one request at a time, in order of arrival.
  std::vector<unsigned> servers;
  unsigned mark = 0;  // of its payloads, if not its place in the plan: 1 + that of whom it serves
  // heard: the chain of another board that its end begins, one that is told. asks: the one that serves. empty: none
  std::string next;
  // Chains, told or hosted, of any board, that its messages on the host begin, too: names, and in begins_at behind how
  // many of its callbacks there; 0: as what the client sends is heard.
  std::vector<std::string> begins;
  std::vector<unsigned> begins_at;
  bool ends_sampled = false;  // heard: its response is over when it has sampled, as what hears it is others'
  unsigned waits = 1;         // of one that others begin: for so many of them, each instance
  // told: 0, or the number of a join of this board. Of the chains of one join the last that arrives acts for all.
  unsigned join = 0;
  bool passed_on = false;  // who is named by `next` or `begins`; of a plan with boards, set by simulate()
  bool begun = false;      // by `begins`
  bool is_asked_by_board() const { return passed_on && !begun; }  // of one that serves
  // One of the node alone has no stream, whatever its level.
  bool has_stream(uint8_t stream) const { return shape != Shape::kHosted && level == TIDE_STREAM_LEVEL(stream); }
  bool acts() const { return shape != Shape::kSampled && shape != Shape::kHeard && shape != Shape::kHosted; }
  bool begins_on_host() const { return shape == Shape::kTold || shape == Shape::kHosted; }
  const std::string &service_name() const { return service.empty() ? name : service; }
  bool is_reply_reliable() const { return reliable && reply_reliable; }
};

enum class Policy { kTide, kBatch, kReadyset };
// asynchronous: the daemon sends. stock: reliable publishes wait until all is acknowledged. blocking: those of best
// effort, too, until the last byte has left. answered: blocking, and a reliable publish waits for the answer to its
// HEARTBEAT; when that asks for the message again, until it has left again (see README.md).
enum class Send { kAsynchronous, kStock, kBlocking, kAnswered };
// always: the agent acknowledges each reliable message, as stock agents do. asked: only HEARTBEATs are answered, as the
// paper describes it; the other ACKNACKs of the agent are left out.
enum class Acknowledges { kAlways, kAsked };
enum class Draw { kTogether, kIndependent };
// Where a latency begins: at the nominal expiry of the chain's timer, or, as publications count, when its first
// callback starts.
enum class LatencyFrom { kExpiry, kStart };

struct Plan {
  std::string system = "system";
  uint64_t seed = 1;
  Policy policy = Policy::kTide;
  Send send = Send::kAsynchronous;
  unsigned lanes = 1;  // 1: cooperative; more: one lane for each chain, preemptive; readyset: lanes over its one set
  unsigned lanes_a_band = 1;  // of each chain level, when there are lanes for each (tide)
  bool only_first = false;    // the physical limit: no other chain exists
  uint32_t periods = 60;      // instances of each chain; unless there is a horizon
  Time horizon = 0;           // more than 0: each chain has as many instances as its period is in it
  std::vector<ChainPlan> chains;

  // The line and the host.
  uint64_t baud = 115200;
  Time agent_least = 0, agent_most = 0;    // latency of the host, uniform, of each frame
  Time return_least = 0, return_most = 0;  // from a node's publish to the agent, uniform, of each answer
  std::vector<unsigned> hosts;             // lanes of each executor of ROS 2 nodes
  Acknowledges agent_acknowledges = Acknowledges::kAlways;
  Time agent_heartbeat_delay = 100 * kMillisecond;  // as tide-agent on a line; -1: measured
  uint32_t mtu = 512;

  // CPU time of each lane in every period; 0: no budget. Of a board only: the simulated client has none.
  Time budget = 0, budget_period = 0;

  bool lock_ceilings = true;  // a lane rises while it has a lock; false: a mistake that the checks are to find

  // Costs on the microcontroller.
  Time submit = 0;    // serialise, frame and submit one message
  Time process = 0;   // verify and copy one received frame
  Time dispatch = 0;  // choose one callback
  Time interrupt_receive = 0, interrupt_complete = 0;

  // The daemon.
  bool hold_until_acknowledged = false;  // every chain, as if each said hold
  bool packs = false;                    // messages that wait for the window share a frame
  Time heartbeat_delay = -1;
  bool batch_waits_for_new_data = true;
  uint32_t nodes = 16, slots = 16, window = 16, reassemblies = 2;
  int32_t large_nodes = -1;         // of messages that no small node holds; -1: as many as `nodes`, the small ones
  uint32_t small_node_bytes = 256;  // with the header of a WRITE_DATA
  uint32_t depth = 8;               // slots that a reader wants for itself; a server has one for each of its askers

  // First transmissions of reliable samples that reach the agent, in percent; the rest is lost on the line.
  double success_percent = 100;
  Draw draw = Draw::kTogether;

  // So many frames of each instance of a chain are lost at most, of its reliable messages and what belongs to them,
  // each with this probability; not known to a batch client, whose chains share their streams.
  uint32_t instance_losses = 0;
  double instance_loss = 0.5;

  // Faults between the first release and the last.
  Faults up, down;
  unsigned cuts = 0, restarts = 0;
  Time cut_maximum = 0, outage_maximum = 0;
  bool cut_unplugs = false;   // the client notices cuts
  Time settle = 2 * kSecond;  // after the last period, without faults

  LatencyFrom latency_from = LatencyFrom::kExpiry;
  bool trace = false;
  bool record = false;  // the times of each instance
  // Worst responses are those of instances that end while all chains are released, or less than a second later: behind
  // that a board that hears nothing more asks for a sign of life, as it never would while its chains go on.
  bool steady = false;

  uint32_t instances_of(const ChainPlan &chain) const {
    if (horizon <= 0) return periods;
    return static_cast<uint32_t>(std::max<Time>((horizon + chain.period - 1) / chain.period, 1));
  }

  Time begin = 0;            // when the client begins to connect
  Time start = 0;            // the first release, if the board is set up by then
  std::vector<Plan> boards;  // several: chains are theirs; `system` is the name of each
};

// Throws std::invalid_argument with a message for the user.
void set(Plan &plan, const std::string &name, const std::string &value);
void read_plan(Plan &plan, const std::string &text);
std::string write_plan(const Plan &plan);
const char *text_of(Policy policy);
const char *text_of(Send send);

}  // namespace tide::sim
