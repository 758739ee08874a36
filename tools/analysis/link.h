// SPDX-License-Identifier: Apache-2.0
// Chains between a microcontroller and ROS 2 executors over one serial line: what the analysis of the link reads.
//
// A chain begins with a timer; every further callback is made ready by the message that the one before it publishes.
// A message between the two sides crosses the line once; one between two callbacks of the client goes to the agent and
// comes back; one between two host executors takes `host_hop_ns`.
//
// The bounds are unpublished: the TIDE executor, cooperative or with preemptive lanes, with the daemon that sends for
// it; and the batch executor with its ways of sending, for comparison (docs/analysis/link.md has the argument).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/model.h"

namespace tide::analysis {

// ---- the system ----

// tide: most urgent first, one callback a round, nothing is preempted. lanes: the same with a preemptive lane for each
// level. batch: the executor of rclc, any order.
enum class ClientPolicy { tide, lanes, batch };
// Of the batch executor. stock: a reliable publish waits until it is acknowledged. blocking: best effort, too, until
// the last byte has left.
enum class Send { asynchronous, stock, blocking };
// always: the agent acknowledges every reliable message. asked: only when a HEARTBEAT asks.
enum class Acknowledges { always, asked };

// What the client executes beside its callbacks: an interrupt, a task, what the program's loop does between rounds. It
// goes before everything, and each is over before the next.
struct ClientLoad {
  time_ns execution_ns = 0, period_ns = 0;
  bool masks = false;         // interrupts are off: the client neither starts a frame nor takes one over
  int64_t payload_bytes = 0;  // of a frame to the agent and one back that it waits for; 0: none
};

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
  std::vector<ClientLoad> loads = {};
  // Processors that its callbacks are bound to, of which nobody says which: each counts as if all were on one.
  int64_t processors = 1;
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

// own_cores: every callback has a processor of its own, and its instances may overlap: a delay. Else `lanes` threads
// that take ready callbacks in any order.
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
  // of two that follow each other in several chains the message is one, too, and of one the same `message`. 0: it is
  // this chain's alone.
  int64_t shared = 0;
  int64_t message = 0;     // which of the messages that one run makes: what the others take to make is execution
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
  std::string alone = {};     // why an instance must be over before the next one is released; empty: it need not
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

// ---- messages as frames ----
// How long messages are on a serial line with 8N1 framing: headers, fragments, padding and escaped bytes.

enum class Direction { up, down };

// One message as frames.
struct Message {
  int64_t frames = 0;
  time_ns total_ns = 0;  // of all its frames, at most
  time_ns unit_ns = 0;   // of the longest frame, at most
  time_ns least_ns = 0;  // of all its frames, at least
  time_ns plain_ns = 0;  // of all its frames, if no byte is escaped
};

// Bytes of an XRCE message: what fits into one frame of this direction.
int64_t message_limit(const Line &line, Direction direction);
// Of a frame that carries so many bytes of XRCE message.
time_ns frame_ns(const Line &line, int64_t message_bytes);
Message message(const Line &line, Direction direction, int64_t payload_bytes);
// An ACKNACK or a HEARTBEAT, and the question whether the other side is alive.
time_ns answer_frame_ns(const Line &line);
time_ns question_frame_ns(const Line &line);

// ---- the bounds ----

// What a bound is made of. Everything but `lateness_ns` adds up to the bound.
struct LinkParts {
  time_ns jitter_ns = 0;                        // from the nominal expiry of its timer to the release
  time_ns execution_ns = 0;                     // the chain's own callbacks on the client, with their costs
  time_ns line_ns = 0;                          // its own frames
  time_ns host_ns = 0;                          // agent, DDS and the chain's callbacks on the host
  std::vector<time_ns> client_interference_ns;  // by chain: callbacks that go first
  std::vector<time_ns> line_interference_ns;    // by chain: frames that go first, or keep the line for themselves
  time_ns client_blocking_ns = 0;               // less urgent callbacks that have started
  time_ns new_data_ns = 0;                      // batch: samples that came during a publish, until the next timer
  time_ns lock_blocking_ns = 0;                 // critical sections of less urgent callbacks
  time_ns line_blocking_ns = 0;                 // less urgent frames that have started
  time_ns control_ns = 0;                       // acknowledgments, HEARTBEATs, signs of life
  time_ns window_ns = 0;                        // until a full window of its stream takes its frames
  time_ns interrupts_ns = 0;
  time_ns host_wait_ns = 0;  // other callbacks of the host executors
  time_ns own_ns = 0;        // its other instances
  time_ns losses_ns = 0;     // until what was lost has been sent again
  time_ns lateness_ns = 0;   // that part of the interference which is there because others may be late
  time_ns total_ns() const;
  void include(const LinkParts &more);  // of another part of the way
};

// What one direction holds of a chain at the same time, at most: instances whose messages are queued, under way or not
// yet acknowledged, and frames without an acknowledgment of the stream that it uses, whoever else does.
struct StreamUse {
  int64_t instances = 0, frames = 0;
};

struct LinkResult {
  std::optional<time_ns> response_ns;  // from the nominal expiry to the end of the last callback; none: no bound
  StreamUse up, down;                  // of a chain that has a bound
  bool met = false;
  LinkParts parts;
  bool hidden = false;  // the way over the line is hidden behind callbacks that run meanwhile
  // Without a bound: the chain that failed first, which may be this one; how long that would take at least, no more
  // than what may be; and what most of it is made of, as parts of that chain. reached_ns 0: it was not looked at.
  size_t root = 0;
  time_ns reached_ns = 0, limit_ns = 0;
  LinkParts reached_parts;
  std::string reason;              // the same in words
  std::vector<size_t> depends_on;  // chains whose bounds this one needs
};

// What the bounds take for granted, so that a run can answer it: `id` is one of those in docs/analysis/link.md, the
// values have the names of system.toml or of what they limit.
struct Assumption {
  std::string id, text;
  std::vector<std::pair<std::string, int64_t>> values;
};

struct LinkResults {
  std::vector<LinkResult> chains;
  bool met = false;
  std::vector<Assumption> assumptions;
};

// The system must have passed check(). most_passes: until what is asked and answered must have been counted; else there
// is no bound.
LinkResults bound_link(const LinkSystem &system, int most_passes = 2000);

}  // namespace tide::analysis
