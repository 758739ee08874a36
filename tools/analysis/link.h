// SPDX-License-Identifier: Apache-2.0
// Analysis of chains between one board (the client) and ROS 2 executors (the host) that are connected by a serial line,
// or by Ethernet with RTPS: input and results.
//
// A chain begins with a timer or an event; the message of each callback makes the next callback ready.
// A message between client and host crosses the line once. A message between two callbacks of the client goes to the
// agent and back. A message between two callbacks of the host takes `host_hop_ns`, unless the receiving callback has
// its own `hop_ns`.
//
// These bounds are not published elsewhere; docs/analysis/link.md has the proofs. They cover the policy `tide`,
// cooperative or with preemptive lanes, together with the daemon that sends its messages, and for comparison rclc's
// policy `batch` with its send modes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/model.h"

namespace tide::analysis {

// ---- the system ----

// tide: one callback in each round, the most urgent one, without preemption. lanes: the most urgent callback first,
// with a preemptive lane for each level. batch: the executor of rclc; the analysis assumes no order of its callbacks.
enum class ClientPolicy { tide, lanes, batch };
// Send modes of the batch executor. stock: a reliable publish waits until it is acknowledged. blocking: a best-effort
// publish also waits until the last byte was sent.
enum class Send { asynchronous, stock, blocking };
// always: the agent acknowledges every reliable message. asked: it acknowledges only when a HEARTBEAT requests it.
enum class Acknowledges { always, asked };

// Work of the client besides its callbacks: an interrupt, a task, or the program's loop between rounds. A load preempts
// all callbacks, and each of its executions ends before its next one begins.
struct ClientLoad {
  time_ns execution_ns = 0, period_ns = 0;
  bool masks = false;         // the load masks interrupts, so the client neither starts nor receives a frame
  int64_t payload_bytes = 0;  // payload of the message that it sends to the agent, and of the answer for which it
                              // waits; 0: none
  // Longest time by which an execution, or its message, comes later than at the nominal times that are period_ns apart.
  // More than 0: executions may pile up, and need not end before the next one begins.
  time_ns late_ns = 0;
};

struct Client {
  ClientPolicy policy = ClientPolicy::tide;
  Send send = Send::asynchronous;
  bool waits_for_new_data = true;  // only for batch: rmw_wait returns only for new data, as the stock one does
  time_ns submit_ns = 0;           // time to encode and submit one message
  time_ns process_ns = 0;          // time to verify and process one received frame
  time_ns dispatch_ns = 0;         // time to choose a callback
  bool fixed_costs = false;        // true: these three times are exact; false: they are upper limits
  time_ns interrupt_receive_ns = 0, interrupt_complete_ns = 0;
  std::string name = "client";  // name of its executor
  std::vector<ClientLoad> loads = {};
  // Number of processors among which the client's callbacks are distributed. The analysis does not know the
  // distribution, and therefore counts all callbacks as if they were on one processor.
  int64_t processors = 1;
};

struct Line {
  int64_t baud = 115200;  // ten times the bytes per second
  bool usb = false;       // the description gives bytes per second, and no baud rate could be raised
  int64_t mtu_bytes = 512;
  int64_t quantum_bytes = 0;                 // largest frame to the agent, so that more urgent frames may go between
                                             // the fragments of a message; 0: the MTU
  std::optional<int64_t> escaped_bytes;      // most escaped bytes in one frame; unset: all bytes may be escaped
  bool exact_sizes = false;                  // true: message sizes are exact; false: they are upper limits
  time_ns agent_least_ns = 0, agent_ns = 0;  // least and greatest time from a message's last byte on the line until a
                                             // ROS 2 node has the message
  std::optional<time_ns> turn_ns;            // from a message's last byte until its acknowledgment can be sent; unset:
                                             // agent_ns
  time_ns return_ns = 0;                     // from a node's publish call until the agent can send the frame
  // Shorter values of agent_ns and return_ns, one pair for each entry, for which instances are also bounded: see
  // Shorter.
  std::vector<time_ns> shorter_agent_ns = {}, shorter_return_ns = {};
  time_ns host_hop_ns = 0;  // between two callbacks of the host, if the second one has no hop_ns
  // More than 0: the board speaks RTPS over an interface of this rate. A message to the host is then one datagram for
  // each of its readers, and a message from the host takes return_ns and no time on the line.
  int64_t rtps_mbit_per_s = 0;
  int64_t rtps_datagram_bytes = 1472;  // size of the longest datagram, including those of discovery
  int64_t rtps_queued = 1;             // datagrams that the interface may hold; a more urgent datagram cannot overtake
                                       // them
  // For lost datagrams: the time until a node answers a HEARTBEAT or a request, and the longest distance of a node's
  // HEARTBEATs while a sample is not acknowledged.
  time_ns rtps_acknowledge_ns = 0, rtps_heartbeat_ns = 0;

  time_ns acknowledges_ns() const { return turn_ns.value_or(agent_ns); }
};

// Timing of one side's HEARTBEATs for unacknowledged reliable messages.
struct Questions {
  time_ns delay_ns = -1;  // from the end of the message to the first HEARTBEAT; -1: measured, between the floor and 2
                          // s, and doubled after each HEARTBEAT
  time_ns floor_ns = 0;   // minimum of a measured delay
  time_ns period_ns = 0;  // between two HEARTBEATs
};

struct Protocol {
  Acknowledges acknowledges = Acknowledges::always;
  Questions client{-1, 20'000'000, 100'000'000};
  Questions agent{100'000'000, 2'000'000, 100'000'000};  // of tide-agent on a serial line
  int64_t losses = 0;                                    // most lost frames of one instance
  int64_t window = 16;                                   // most unacknowledged frames of one stream
  time_ns silence_ns = 1'000'000'000;                    // silence after which the client probes the agent; 0: never
                                                         // (no session)
};

// own_cores: every callback has its own processor and its instances may overlap, so the analysis treats it as a pure
// delay. Otherwise `lanes` threads take ready callbacks in any order.
struct HostExecutor {
  std::string name;
  int64_t lanes = 1;
  bool own_cores = false;
};

inline constexpr int kOnClient = -1;

// Longest time for which a callback holds a lock of the client. With lanes, the callback's lane meanwhile has the
// priority of the most urgent chain that takes the lock. Without lanes, callbacks do not overlap, so locks block
// nothing.
struct CriticalSection {
  std::string lock;
  time_ns section_ns = 0;
};

struct LinkCallback {
  std::string name;
  int place = kOnClient;  // kOnClient, or the index of a host executor
  time_ns execution_ns = 0;
  time_ns least_ns = 0;       // shortest execution
  int64_t payload_bytes = 0;  // size of its message; 0: none
  std::vector<CriticalSection> sections = {};
  std::optional<time_ns> hop_ns = std::nullopt;  // transfer time on the host from the preceding callback
  // Number of a callback that several chains of one timer have in common. The callback is executed once for each expiry
  // of the timer, although each of these chains lists it. If two successive callbacks are shared, the message between
  // them is shared too, provided that `message` is equal. 0: the callback is in this chain only.
  int64_t shared = 0;
  bool repeats = false;    // on the client: this execution, with all its messages, is counted in another chain of the
                           // same level
  int64_t message = 0;     // index of its message among all that one execution sends; the time to send the others is
                           // part of execution_ns
  int64_t readers = 1;     // number of readers of its message, if the board speaks RTPS
  std::string group = {};  // on the host: the mutually exclusive group of the callback; empty: none
};

struct LinkChain {
  std::string name;
  int64_t priority = 0;  // larger is more urgent
  time_ns period_ns = 0;
  time_ns deadline_ns = 0;
  bool uplink_reliable = false, downlink_reliable = false;
  std::vector<LinkCallback> callbacks;
  time_ns jitter_ns = 0;  // longest time from the nominal expiry to the release
  // Only for a chain that is bounded elsewhere, of which this system contains just the host part: the bound, counted
  // from the chain's nominal expiry; kNeverNs: no bound.
  std::optional<time_ns> response_ns = std::nullopt;
  bool hold = false;          // until this chain's messages are acknowledged, frames of less urgent chains to the agent
                              // do not start
  bool sporadic = false;      // released by events: the period is the least time between two events, and there may be
                              // none
  bool repaired = false;      // over RTPS: its samples are reliable, so lost datagrams are repaired
  bool shares_level = false;  // shares its streams with the other chains of the same priority that have this flag
  int64_t band = 0;           // of the client's executors on its core, the one that runs its callbacks there; a greater
                              // one preempts
  std::string alone = {};     // why an instance must end before the next one is released; empty: it need not
  // By entry of Line::shorter_agent_ns: by how much its delays on executors with own_cores are shorter, too; empty: by
  // 0.
  std::vector<time_ns> shorter_away_ns = {};
};

struct LinkSystem {
  Client client;
  Line line;
  Protocol protocol;
  std::vector<HostExecutor> hosts;
  std::vector<LinkChain> chains;
};

// Returns the errors, each of which names the entry concerned; empty if the system can be analysed.
std::vector<std::string> check(const LinkSystem &system);

// ---- messages as frames ----
// Transmission times: on a serial line (8N1) with headers, fragments, padding and escaped bytes; or of RTPS datagrams
// on Ethernet.

enum class Direction { up, down };

// Number of frames of one message, and their transmission times.
struct Message {
  int64_t frames = 0;
  time_ns total_ns = 0;  // upper limit: all its frames
  time_ns unit_ns = 0;   // upper limit: its longest frame
  time_ns least_ns = 0;  // lower limit: all its frames
  time_ns plain_ns = 0;  // all its frames, if no byte is escaped
};

// Largest XRCE message in one frame of this direction.
int64_t message_limit(const Line &line, Direction direction);
// Transmission time of a frame that contains an XRCE message of this many bytes.
time_ns frame_ns(const Line &line, int64_t message_bytes);
Message message(const Line &line, Direction direction, int64_t payload_bytes, int64_t readers = 1);
// Transmission time of a datagram on Ethernet, including its headers and the gap behind it. `datagram_bytes`: its UDP
// payload.
time_ns datagram_ns(const Line &line, int64_t datagram_bytes);
// Transmission times of an ACKNACK or a HEARTBEAT, and of a liveness probe.
time_ns answer_frame_ns(const Line &line);
time_ns question_frame_ns(const Line &line);

// ---- the bounds ----

// Parts of a bound. All of them except `lateness_ns` add up to the bound.
struct LinkParts {
  time_ns jitter_ns = 0;                        // from the nominal expiry of the chain's timer to the release
  time_ns execution_ns = 0;                     // the chain's own callbacks on the client, with their costs
  time_ns line_ns = 0;                          // the chain's own frames
  time_ns host_ns = 0;                          // agent, DDS and the chain's callbacks on the host
  std::vector<time_ns> client_interference_ns;  // by chain: callbacks that run first
  std::vector<time_ns> line_interference_ns;    // by chain: frames that are sent first, and time for which the chain
                                                // holds the line
  time_ns client_blocking_ns = 0;               // less urgent callbacks that started before
  time_ns new_data_ns = 0;                      // batch: a sample that arrived during a publish waits for the next
                                                // timer
  time_ns lock_blocking_ns = 0;                 // critical sections of less urgent callbacks
  time_ns line_blocking_ns = 0;                 // less urgent frames whose transmission started before
  time_ns control_ns = 0;                       // acknowledgments, HEARTBEATs, liveness probes
  time_ns window_ns = 0;                        // waiting because the window of the chain's stream is full
  time_ns interrupts_ns = 0;
  time_ns host_wait_ns = 0;  // other callbacks of the host executors
  time_ns own_ns = 0;        // other instances of the chain
  time_ns losses_ns = 0;     // until lost frames have been retransmitted
  time_ns lateness_ns = 0;   // the part of the interference that exists only because other chains may be late
  time_ns total_ns() const;
  void include(const LinkParts &more);  // Adds the parts of another stage of the chain.
};

// Greatest use of one direction at any time. instances: those of the chain that have messages queued, in transit or
// unacknowledged. frames: unacknowledged frames of the chain's stream, including those of other chains.
struct StreamUse {
  int64_t instances = 0, frames = 0;
};

// The bound of an instance if the messages of this instance and of the preceding `instances` - 1 instances take at most
// the shorter times. The messages of all other instances may take agent_ns and return_ns.
struct Shorter {
  time_ns response_ns = 0;
  int64_t instances = 1;
};

struct LinkResult {
  std::optional<time_ns> response_ns;      // from the nominal expiry to the end of the last callback; unset: no bound
  StreamUse up, down;                      // only for a chain that has a bound
  std::vector<Shorter> shorter;            // by entry of Line::shorter_agent_ns; only for a chain that has a bound
  int64_t up_frames = 0, down_frames = 0;  // frames of one instance that its last callback needs
  bool met = false;
  LinkParts parts;
  bool hidden = false;  // the bound does not include the time on the line, because more urgent callbacks run meanwhile
  // Only without a bound: the chain that failed first (possibly this one), a lower limit of that chain's response, the
  // limit that this response exceeds, and its parts. A reached_ns of 0 means that the response was not evaluated.
  size_t root = 0;
  time_ns reached_ns = 0, limit_ns = 0;
  LinkParts reached_parts;
  std::string reason;              // why there is no bound, as a sentence for the user
  std::vector<size_t> depends_on;  // chains whose bounds the bound of this chain needs
};

// An assumption of the bounds that a run can check. `id` is listed in docs/analysis/link.md. Each of `values` has the
// name of its key in system.toml or of the quantity that it limits.
struct Assumption {
  std::string id, text;
  std::vector<std::pair<std::string, int64_t>> values;
};

struct LinkResults {
  std::vector<LinkResult> chains;
  bool met = false;
  std::vector<Assumption> assumptions;
};

// The system must have passed check(). `most_passes` limits the iterations that count HEARTBEATs and their answers; if
// the counts have not settled by then, no chain has a bound.
LinkResults bound_link(const LinkSystem &system, int most_passes = 2000);

}  // namespace tide::analysis
