// SPDX-License-Identifier: Apache-2.0
// The plan of a simulation: one board, or several on one bus. Its text has one `name = value` in each line; `#` begins
// a comment. Names of times contain the unit.
//
//   executor = name=ros2 lanes=2
//   board = arm
//   callback = name=look on=arm execution_us=400 level=3 period_us=20000
//   callback = name=plan on=ros2 execution_us=900
//   callback = name=grip on=arm execution_us=300 level=3
//   message = name=seen from=look to=plan bytes=96
//   message = name=command from=plan to=grip bytes=10
//   path = name=grasp callbacks=look,plan,grip
//
// `board` begins the settings of a board, which initially has the settings made before the first board. The lines after
// it belong to that board, except for executors, callbacks, messages, paths and loads, which are common to all boards.
// A round trip of one board, from its timer through a node of the host, has a short form:
//
//   chain = name=brake level=3 period_us=500000 payload_bytes=96 reply_bytes=10 sample_us=10000 act_us=10000
//
// Later settings override earlier ones. Callbacks are registered in the order of their lines.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "sim/engine/line.h"

namespace tide::sim {

// Size of the mark at the beginning of a payload: the number of the instance's timer or event, and the number of the
// instance.
constexpr uint32_t kMarkBytes = 6;

// ---- the graph: executors of nodes, callbacks, the messages between them, and the paths that are measured ----

// any: the lanes take ready callbacks in an order drawn from the seed, and a callback may overlap itself. Other
// policies: a shipped executor, each lane of which has its own core unless `core` is given. All shipped executors are
// in one process, and their callbacks do not overlap themselves unless they are reentrant.
enum class HostPolicy { kAny, kTide, kReadyset };
// An executor of ROS 2 nodes.
struct ExecutorPlan {
  std::string name;
  unsigned lanes = 1;
  HostPolicy policy = HostPolicy::kAny;
  // The following fields are only for shipped executors. dispatch: additional cost of starting a callback, to model
  // another runtime. budget: budget of each lane, which then shares its core; 0: none. anywhere: true if each lane gets
  // its budget in one piece at a random time in each period; false if the runtime's sporadic server enforces it while
  // another task always needs the core.
  Time dispatch = 0, budget = 0, budget_period = 0;
  bool anywhere = false;
  // Only for shipped executors with one lane: the number of a core that the lane shares with those of other executors
  // with this number, and the lane's priority there, from 1; larger is more urgent, and preempts. Core 0: its own.
  unsigned core = 0, thread_priority = 0;
  bool is_shipped() const { return policy != HostPolicy::kAny; }
};

// A callback is started by messages, by its timer (`period`), or by events (`period` and `burst`).
struct CallbackPlan {
  std::string name;
  std::string on = "host";  // name of its board or executor; "host": it has its own core
  Time execution = 0;
  Time sleep = 0;          // time for which it sleeps after its execution, without using the core
  unsigned level = 0;      // level of its chain on a board
  unsigned group = 0;      // callbacks of one board or executor with the same number form an exclusive group; 0: none
  Time least = -1;         // on a shipped executor: each run takes a random time from `least` to `execution`; -1:
                           // always `execution`
  unsigned priority = 0;   // on an executor with the policy tide
  bool reentrant = false;  // on a shipped executor: true if it may overlap itself
  std::vector<unsigned> locks;  // alternating: number of a lock, and for how many microseconds it is held
  bool reliable = true;         // true if its readers are reliable; best-effort messages may be lost
  bool joins = false;           // true: starts when all its messages of one instance have arrived; false: starts for
                                // each message
  Time period = 0, phase = 0;   // period more than 0: a timer starts it
  Time jitter = 0;              // greatest release delay of its timer; a delay is drawn for each instance
  unsigned burst = 0;           // more than 0: events start it; at most `burst` of them come in any `burst` periods,
                                // possibly all at once
  Time budget = 0, budget_period = 0;  // budget of its level's lane, if each level has one; 0: none

  // Set by graph_of.
  int board = -1;                        // -1: it is on the host
  unsigned executor = 0;                 // on the host: number of its executor, from 1; 0: it has its own core
  unsigned position = 0;                 // number of callbacks that precede it in its chain
  size_t root = SIZE_MAX;                // if a timer or events start it: its index in Graph::roots
  std::vector<size_t> inputs, messages;  // inputs that start it, and messages that it sends at its end, in order of
                                         // their lines
  std::set<size_t> roots;                // roots that begin the instances for which it runs
  uint64_t step = 1;                     // it runs for the instances whose number is a multiple of this
  bool is_root() const { return period > 0; }
};

// local: passed by reference, within one board's process.
enum class Carry { kTopic, kRequest, kReply, kLocal };
// A message that a callback sends at its end to one or several callbacks.
struct MessagePlan {
  std::string name, from;
  std::vector<std::string> to;
  std::vector<unsigned> hops_us;  // delays between executors of the host, one for each receiver; empty: none
  Carry carry = Carry::kTopic;
  std::string request;  // for a reply: the name of the request
  uint32_t bytes = 0;   // size in CDR, without encapsulation
  bool reliable = true;
  bool hold = false;     // while the message waits for its acknowledgment, the board sends nothing less urgent
  bool escaped = false;  // true: the line escapes every byte of its payload
  unsigned every = 1;    // it is sent in every n-th run of its sender
  uint32_t depth = 0;    // if it is local, or sent to a shipped executor: depth of each receiver's queue

  // Set by graph_of.
  size_t sender = 0, answers = SIZE_MAX, answered_by = SIZE_MAX;
  std::vector<size_t> inputs;
  std::set<size_t> roots;   // roots that begin the instances to which it may belong
  uint64_t step = 1;        // it is sent for the instances whose number is a multiple of this
  bool keeps_order = true;  // false if a callback that precedes it runs several times for one instance
};

// A message and one of its receivers.
struct Input {
  size_t message, callback;
  Time hop;
  bool reliable;
};

// Work of a board in addition to its callbacks, and more urgent than all of them: it takes at most `execution`, with at
// least `period` between two starts.
struct LoadPlan {
  std::string name, on;
  Time execution = 0, period = 0, phase = 0;
  bool masks = false;   // interrupts are masked while it executes
  bool sleeps = false;  // it sleeps for a random part of each run
  bool asks = false;    // it pings the agent at its start
  int board = -1;       // set by graph_of
};

// A measured path: from the release of the first callback until the last callback has ended, or until the last one has
// sent the message `until` to ROS 2.
struct PathPlan {
  std::string name;
  std::vector<std::string> callbacks;
  std::string until;
  Time deadline = 0;  // 0: as long as the period
  unsigned level = 0;

  // Set by graph_of.
  size_t first = 0, last = 0, crossing = SIZE_MAX;
  uint64_t step = 1;  // the instances that are multiples of this reach its end
};

struct Plan;
struct Graph {
  std::vector<CallbackPlan> callbacks;
  std::vector<MessagePlan> messages;
  std::vector<Input> inputs;
  std::vector<PathPlan> paths;
  std::vector<LoadPlan> loads;
  std::vector<size_t> roots;  // callbacks

  bool is_on_board(size_t callback, int board) const { return callbacks[callback].board == board; }
  // True if messages to this input cross the board's line.
  bool is_remote(size_t input) const {
    const Input &each = inputs[input];
    return callbacks[each.callback].board >= 0 && messages[each.message].carry != Carry::kLocal;
  }
};
// The graph of all boards with their round trips; names are resolved. Throws std::invalid_argument with a description
// of the error.
Graph graph_of(const Plan &plan);

// The short form of a chain: a timer of the board samples, a node of the host on its own core answers, and the board
// acts.
struct ChainPlan {
  std::string name = "chain";
  unsigned level = 0;
  Time period = 500 * kMillisecond, phase = 0, deadline = 0;  // deadline 0: as long as the period
  Time jitter = 0;                                            // greatest release delay of its timer; a delay is drawn
                                                              // for each instance
  uint32_t payload_bytes = 96, reply_bytes = 10;              // sizes in CDR of the message from the board, and of the
                                                              // answer
  Time sample = 0, host = 0, act = 0;                         // execution times
  bool reliable = true;
  bool reply_reliable = true;  // applies only if `reliable`
  unsigned group = 0;          // callbacks of chains with the same number form one exclusive group; 0: none
  uint32_t local_depth = 0;    // more than 0: samples also go to another callback of the board, locally, with a queue
                               // of this depth
  Time budget = 0, budget_period = 0;  // budget of its level's lane, if each level has lanes; 0: none
  bool hold = false;                   // while a message of the chain waits for its acknowledgment, the board sends
                                       // nothing less urgent
  bool is_reply_reliable() const { return reliable && reply_reliable; }
};

enum class Policy { kTide, kBatch, kReadyset };
// asynchronous: a publish does not wait; the daemon sends. stock: a reliable publish waits until its whole stream is
// acknowledged. blocking: like stock, and a best-effort publish waits until its last byte was sent. answered: a
// best-effort publish waits as with blocking; a reliable one waits for the answer to its HEARTBEAT and, if that answer
// requests the message again, until the message was sent again (see sim/README.md).
enum class Send { kAsynchronous, kStock, kBlocking, kAnswered };
// always: the agent acknowledges each reliable message, as stock agents do. asked: the agent acknowledges only in
// answer to HEARTBEATs, as the PoDS paper describes (see sim/README.md).
enum class Acknowledges { kAlways, kAsked };
enum class Draw { kTogether, kIndependent };
// Where a latency begins: at the nominal expiry of the chain's timer or, as in publications, at the start of its first
// callback.
enum class LatencyFrom { kExpiry, kStart };

struct Plan {
  std::string system = "system";
  uint64_t seed = 1;
  Policy policy = Policy::kTide;
  Send send = Send::kAsynchronous;
  unsigned lanes = 1;  // 1: one cooperative lane; more: a preemptive lane for each level; with readyset: this number of
                       // lanes, which share the set
  std::vector<unsigned> bands;  // with tide and one lane: the least level of each of several preemptive lanes, the
                                // least urgent first, for several executors on one core; empty: one lane
  unsigned lanes_a_band = 1;    // with tide and a lane for each level: number of lanes for each level
  bool only_first = false;      // simulates the first chain alone: the physical limit
  uint32_t periods = 60;        // number of instances of each timer; ignored if there is a horizon
  Time horizon = 0;             // more than 0: each timer has as many instances as its periods begin within this time
  std::vector<ChainPlan> chains;

  // The line and the host.
  uint64_t baud = 115200;
  Time agent_least = 0, agent_most = 0;    // latency of the host for each frame, uniformly distributed
  Time return_least = 0, return_most = 0;  // latency from a node's publish to the agent for each answer, uniformly
                                           // distributed
  // If delay_slot is more than 0, both latencies depend on the time instead (see slot_delay): delay_slot is the length
  // of a slot, and the lists have the longest latency in each slot, in microseconds. The slots repeat.
  Time delay_slot = 0;
  std::vector<unsigned> agent_slots_us, return_slots_us;
  Acknowledges agent_acknowledges = Acknowledges::kAlways;
  Time agent_heartbeat_delay = 100 * kMillisecond;  // as in tide-agent on a line; -1: measured
  uint32_t mtu = 512;

  // RTPS in place of the line and the agent: the rate of the board's interface, 0: no. The longest datagram, how many
  // the interface holds, readers of each topic besides those of the graph; the board's memory (tide/rclc_rtps.h), 0: as
  // much as the graph can use. Agent and return latencies are then those of the network.
  unsigned rtps_mbit = 0, rtps_queued = 1, rtps_readers = 0, rtps_history = 4;
  unsigned rtps_matches = 0, rtps_frames = 0;
  uint32_t rtps_datagram = 1472, rtps_sample_bytes = 0;

  // Only for an image in QEMU: processor time of each lane in every period; 0: no budget. Lanes of the simulated client
  // get the budgets of their callbacks instead.
  Time budget = 0, budget_period = 0;

  bool lock_ceilings = true;  // true: a lane's priority is raised while it holds a lock; false: it is not, a defect
                              // that the checks must detect

  // Costs on the microcontroller.
  Time submit = 0;    // to serialise, frame and submit one message
  Time process = 0;   // to verify and copy one received frame
  Time dispatch = 0;  // to choose one callback
  Time interrupt_receive = 0, interrupt_complete = 0;

  // The daemon.
  bool hold_until_acknowledged = false;  // true: as if each chain had `hold`
  bool packs = false;                    // true: messages that wait for the window share a frame
  Time heartbeat_delay = -1;
  bool batch_waits_for_new_data = true;
  uint32_t nodes = 16, slots = 16, window = 16, reassemblies = 2;
  int32_t large_nodes = -1;         // nodes for messages larger than small nodes; -1: `nodes`, which is the number of
                                    // small ones
  uint32_t small_node_bytes = 256;  // including the header of a WRITE_DATA
  uint32_t depth = 8;               // number of slots that a reader reserves
  uint32_t service_depth = 0;       // number of slots that a service reserves; 0: `depth`

  // Share of first transmissions of reliable samples that reach the agent, in percent; the others are lost on the line.
  double success_percent = 100;
  Draw draw = Draw::kTogether;

  // For each instance of a chain, at most instance_losses frames (reliable messages, HEARTBEATs and ACKNACKs) are lost,
  // each with the probability instance_loss. Not for a batch client, whose chains share their streams.
  uint32_t instance_losses = 0;
  double instance_loss = 0.5;

  // Faults that occur between the first release and the last.
  Faults up, down;
  unsigned cuts = 0, restarts = 0;
  Time cut_maximum = 0, outage_maximum = 0;
  bool cut_unplugs = false;   // true: the client notices cuts, because its link closes
  Time settle = 2 * kSecond;  // after the last period no faults occur; the run ends when no message has arrived for
                              // this time
  Time way = 0;               // time for which instances may still be under way after the last period

  LatencyFrom latency_from = LatencyFrom::kExpiry;
  bool trace = false;
  bool record = false;  // keeps the times of each instance in the result
  // True: worst responses include only instances that end while all chains are still released, or less than a second
  // later. After that time, a board without incoming messages sends probes, which it does not do while its chains
  // continue.
  bool steady = false;

  uint32_t instances_of(Time period) const {
    if (horizon <= 0) return periods;
    return static_cast<uint32_t>(std::max<Time>((horizon + period - 1) / period, 1));
  }

  Time begin = 0;            // time at which the client begins to connect
  Time start = 0;            // the first release, if the board is ready by then
  bool extremes = false;     // true: each execution takes either the shortest or the longest time
  bool hesitate = false;     // true: lanes of shipped executors sometimes pause between two critical sections, drawn
                             // from the seed
  std::vector<Plan> boards;  // each has its name in `system`; empty: at most one board, with the settings of this plan
  std::vector<ExecutorPlan> executors;
  std::vector<CallbackPlan> callbacks;
  std::vector<MessagePlan> messages;
  std::vector<PathPlan> paths;
  std::vector<LoadPlan> loads;
};

// Throws std::invalid_argument with a message for the user.
void set(Plan &plan, const std::string &name, const std::string &value);
void read_plan(Plan &plan, const std::string &text);
std::string write_plan(const Plan &plan);
// The latency of a message that is sent at `now`. It is limited so that no message overtakes an earlier one: towards
// the end of a slot, it falls to the least value of all slots.
Time slot_delay(const std::vector<unsigned> &slots_us, Time slot, Time now);
const char *text_of(Policy policy);
const char *text_of(HostPolicy policy);
const char *text_of(Send send);

}  // namespace tide::sim
