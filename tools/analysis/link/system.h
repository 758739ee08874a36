// SPDX-License-Identifier: Apache-2.0
// Chains between a microcontroller and ROS 2 executors over one serial line: what the analysis of the link reads.
//
// A chain begins with a timer; every further callback is made ready by the message that the one before it publishes.
// A message between the two sides crosses the line once; one between two callbacks of the client goes to the agent and
// comes back; one between two host executors takes `host_hop_ns`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/model/time.h"

namespace tide::analysis {

// tide: most urgent first, one callback a round, nothing is preempted. lanes: the same with a preemptive lane for each
// level. batch: the executor of rclc, any order.
enum class ClientPolicy { tide, lanes, batch };
// Of the batch executor. stock: a reliable publish waits until it is acknowledged. blocking: best effort, too, until
// the last byte has left.
enum class Send { asynchronous, stock, blocking };
// always: the agent acknowledges every reliable message. asked: only when a HEARTBEAT asks.
enum class Acknowledges { always, asked };

struct Client {
  ClientPolicy policy = ClientPolicy::tide;
  Send send = Send::asynchronous;
  bool waits_for_new_data = true;  // batch, as the stock rmw_wait
  time_ns submit_ns = 0;           // make one message
  time_ns process_ns = 0;          // verify and take over one received frame
  time_ns dispatch_ns = 0;         // choose a callback
  bool fixed_costs = false;        // these three take as long as they say; else at most
  time_ns interrupt_receive_ns = 0, interrupt_complete_ns = 0;
  std::string name = "client";  // of its executor
};

struct Line {
  int64_t baud = 115200;
  int64_t mtu_bytes = 512;
  int64_t quantum_bytes = 0;                 // largest piece before an urgent frame may pass; 0: the MTU
  std::optional<int64_t> escaped_bytes;      // in one frame at most; none: all of them may be
  bool exact_sizes = false;                  // messages are as long as they say; else at most
  time_ns agent_least_ns = 0, agent_ns = 0;  // from the last byte on the line until a ROS 2 node has the message
  std::optional<time_ns> turn_ns;            // from the last byte until the acknowledgment can go; none: agent_ns
  time_ns return_ns = 0;                     // from a node's publish until the frame can go
  time_ns host_hop_ns = 0;                   // between two callbacks of the host that do not say it themselves

  time_ns acknowledges_ns() const { return turn_ns.value_or(agent_ns); }
};

// The HEARTBEATs of one side: when it asks about a reliable message that is not acknowledged.
struct Questions {
  time_ns delay_ns = -1;  // from the end of the message; -1: measured, between the floor and 2 s, doubled each time
  time_ns floor_ns = 0;   // what a measured delay never is below
  time_ns period_ns = 0;  // between two of them
};

struct Protocol {
  Acknowledges acknowledges = Acknowledges::always;
  bool hold = false;  // nothing less urgent starts before the acknowledgment
  Questions client{-1, 20'000'000, 100'000'000};
  Questions agent{100'000'000, 2'000'000, 100'000'000};  // of tide-agent on a serial line
  int64_t losses = 0;                                    // frames of one instance that are lost at most
  int64_t window = 16;                                   // frames of one stream without an acknowledgment at most
  time_ns silence_ns = 1'000'000'000;  // then a client asks whether the agent is there; 0: there is no session
};

// own_cores: every callback has a processor of its own. Else `lanes` threads that take ready callbacks in any order.
struct HostExecutor {
  std::string name;
  int64_t lanes = 1;
  bool own_cores = false;
};

inline constexpr int kOnClient = -1;

// How long a callback holds a lock of the client, at most. With lanes its lane is then as urgent as the most urgent
// chain that takes the lock; without them callbacks do not overlap.
struct CriticalSection {
  std::string lock;
  time_ns section_ns = 0;
};

struct LinkCallback {
  std::string name;
  int place = kOnClient;  // or the index of a host executor
  time_ns execution_ns = 0;
  time_ns least_ns = 0;       // shortest execution
  int64_t payload_bytes = 0;  // of what it publishes; 0: nothing
  std::vector<CriticalSection> sections = {};
  std::optional<time_ns> hop_ns = std::nullopt;  // on the host, from the callback before it there
  // The same number in several chains of one timer is one callback, executed once an instance whoever goes on from it;
  // of two that follow each other in several chains the message is one, too. 0: it is this chain's alone.
  int64_t shared = 0;
  std::string group = {};  // on the host: of callbacks that exclude each other, though lanes are free; empty: of none
};

struct LinkChain {
  std::string name;
  int64_t priority = 0;  // larger is more urgent
  time_ns period_ns = 0;
  time_ns deadline_ns = 0;
  bool uplink_reliable = false, downlink_reliable = false;
  std::vector<LinkCallback> callbacks;
  time_ns jitter_ns = 0;  // how late its timer may release it after the nominal expiry
  // Of a chain that is bounded elsewhere, of which only the host's part is here: that bound, from a nominal expiry of
  // its own; kNeverNs: there is none.
  std::optional<time_ns> response_ns = std::nullopt;
  bool sporadic = false;      // begun by events: its period is the least time between two, and nothing has to come
  bool shares_level = false;  // with others of the same priority that say so, too: all have the same streams
};

struct LinkSystem {
  Client client;
  Line line;
  Protocol protocol;
  std::vector<HostExecutor> hosts;
  std::vector<LinkChain> chains;
};

// What is impossible, each with the entry that it belongs to; empty: the system can be analysed.
std::vector<std::string> check(const LinkSystem &system);

}  // namespace tide::analysis
