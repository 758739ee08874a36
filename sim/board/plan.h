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
// `board` begins a board, which starts with the settings made before the first board. Settings after it belong to that
// board, except for executors, callbacks, messages, paths and loads, which are common to all. There is a short form for
// a round trip of one board, from its timer through a node of the host:
//
//   chain = name=brake level=3 period_us=500000 payload_bytes=96 reply_bytes=10 sample_us=10000 act_us=10000
//
// Later settings override earlier ones. Callbacks are registered in this order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "sim/engine/line.h"

namespace tide::sim {

// Payloads begin with the number of the instance's timer and the number of the instance.
constexpr uint32_t kMarkBytes = 6;

// ---- the graph: executors of nodes, callbacks, the messages between them, and the paths that are measured ----

// any: the lanes take ready callbacks in an order drawn from the seed, and a callback may overlap itself. Other
// policies: an executor of the runtime in a common process, with each lane on its own core; a callback does not overlap
// itself.
enum class HostPolicy { kAny, kTide, kReadyset };
// An executor of ROS 2 nodes.
struct ExecutorPlan {
  std::string name;
  unsigned lanes = 1;
  HostPolicy policy = HostPolicy::kAny;
  // These are for shipped executors (policies other than any) only. dispatch: additional cost of starting a callback,
  // to model another runtime. budget: that of each lane, which then shares its core; 0: none. anywhere: true if the
  // budget comes in one piece at a random time in each period; false if it comes from the runtime's server, while a
  // less urgent task always needs the core.
  Time dispatch = 0, budget = 0, budget_period = 0;
  bool anywhere = false;
  bool is_shipped() const { return policy != HostPolicy::kAny; }
};

// The smallest schedulable unit. It is started by a message, or else by its timer or by events (burst).
struct CallbackPlan {
  std::string name;
  std::string on = "host";  // name of its board or executor; "host": it has its own core
  Time execution = 0;
  Time sleep = 0;          // it sleeps for this long after its execution, without using the core
  unsigned level = 0;      // level of its chain on a board
  unsigned group = 0;      // callbacks of one board or executor with the same number form an exclusive group; 0: none
  Time least = -1;         // on a shipped executor: each run draws from `least` to `execution`; -1: takes `execution`
  unsigned priority = 0;   // on an executor with the policy tide
  bool reentrant = false;  // on a shipped executor: true if it may overlap itself
  std::vector<unsigned> locks;  // number of a lock and microseconds of holding it, alternating
  bool reliable = true;         // true if its readers are reliable; best-effort messages may be lost
  bool joins = false;           // starts when all its messages of one instance have arrived; false: with each message
  Time period = 0, phase = 0;   // period more than 0: a timer starts it
  Time jitter = 0;              // greatest lateness of its timer, drawn for each instance
  unsigned burst = 0;           // more than 0: events start it, at most this many at once and in this many periods
  Time budget = 0, budget_period = 0;  // budget of its level's lane, if each level has one; 0: none

  // Set by graph_of.
  int board = -1;                        // -1: it is on the host
  unsigned executor = 0;                 // on the host: its executor's number, from 1 on; 0: it has its own core
  unsigned position = 0;                 // number of callbacks before it, counted from the first
  size_t root = SIZE_MAX;                // if a timer or events start it: its number among such callbacks
  std::vector<size_t> inputs, messages;  // messages that start it, and messages sent at its end, in this order
  std::set<size_t> roots;                // timers and events that begin the instances for which it runs
  uint64_t step = 1;                     // it runs for the instances that are multiples of this
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
  bool hold = false;     // the board sends nothing less urgent while the message waits for its acknowledgment
  bool escaped = false;  // all its bytes are such that a serial line escapes them
  unsigned every = 1;    // it is sent in one of this many runs of its sender
  uint32_t depth = 0;    // if it is local, or sent to a shipped executor: depth of a receiver's queue

  // Set by graph_of.
  size_t sender = 0, answers = SIZE_MAX, answered_by = SIZE_MAX;
  std::vector<size_t> inputs;
  std::set<size_t> roots;   // timers and events that begin the instances to which it may belong
  uint64_t step = 1;        // it is sent for the instances that are multiples of this
  bool keeps_order = true;  // false if a callback before it runs several times for one instance
};

// A message and one of its receivers.
struct Input {
  size_t message, callback;
  Time hop;
  bool reliable;
};

// Work of a board that is additional to its callbacks and more urgent than them: at most `execution` long, with at
// least `period` between two starts.
struct LoadPlan {
  std::string name, on;
  Time execution = 0, period = 0, phase = 0;
  bool masks = false;  // interrupts are masked meanwhile
  bool asks = false;   // it pings the agent when it begins
  int board = -1;      // set by graph_of
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
  Time jitter = 0;                                            // jitter of its timer, drawn for each instance
  uint32_t payload_bytes = 96, reply_bytes = 10;              // in CDR: size from the board, and to it
  Time sample = 0, host = 0, act = 0;                         // execution times
  bool reliable = true;
  bool reply_reliable = true;  // applies only if `reliable`
  unsigned group = 0;          // callbacks of chains with the same number form one exclusive group; 0: none
  uint32_t local_depth = 0;    // more than 0: samples also go to a callback of this process, whose queue has this depth
  Time budget = 0, budget_period = 0;  // budget of its level's lane, if each level has lanes; 0: none
  bool hold = false;                   // nothing less urgent is sent while a message of it waits for its acknowledgment
  bool is_reply_reliable() const { return reliable && reply_reliable; }
};

enum class Policy { kTide, kBatch, kReadyset };
// asynchronous: a publish waits for nothing, and the daemon sends. stock: a reliable publish waits until everything is
// acknowledged. blocking: a best-effort publish also waits until the last byte was sent. answered: like blocking, and a
// reliable publish waits for the answer to its HEARTBEAT and, if that answer requests the message again, until the
// message was resent (see sim/README.md).
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
  unsigned lanes = 1;  // 1: cooperative; more: preemptive, one lane for each level; readyset: lanes sharing its one set
  unsigned lanes_a_band = 1;  // number of lanes for each chain level, if levels have lanes (tide)
  bool only_first = false;    // simulates the first chain alone: the physical limit
  uint32_t periods = 60;      // number of instances of each timer, unless there is a horizon
  Time horizon = 0;           // more than 0: each timer has as many instances as periods fit in it
  std::vector<ChainPlan> chains;

  // The line and the host.
  uint64_t baud = 115200;
  Time agent_least = 0, agent_most = 0;    // latency of the host for each frame, uniformly distributed
  Time return_least = 0, return_most = 0;  // from a node's publish to the agent for each answer, uniformly distributed
  // If delay_slot is more than 0, both depend on the time instead: in each slot of this length, the longest value is
  // that of the slot, in microseconds. The slots repeat.
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

  // CPU time of each lane in every period; 0: no budget. For an image in QEMU only: the lanes of the simulated client
  // have the budgets of their callbacks.
  Time budget = 0, budget_period = 0;

  bool lock_ceilings = true;  // true: a lane's priority is raised while it holds a lock; false: a defect that the
                              // checks must find

  // Costs on the microcontroller.
  Time submit = 0;    // to serialise, frame and submit one message
  Time process = 0;   // to verify and copy one received frame
  Time dispatch = 0;  // to choose one callback
  Time interrupt_receive = 0, interrupt_complete = 0;

  // The daemon.
  bool hold_until_acknowledged = false;  // as if each chain had `hold`
  bool packs = false;                    // messages that wait for the window share a frame
  Time heartbeat_delay = -1;
  bool batch_waits_for_new_data = true;
  uint32_t nodes = 16, slots = 16, window = 16, reassemblies = 2;
  int32_t large_nodes = -1;         // nodes for messages larger than small nodes; -1: the same number as of small ones,
                                    // `nodes`
  uint32_t small_node_bytes = 256;  // including the header of a WRITE_DATA
  uint32_t depth = 8;               // number of slots that a reader reserves
  uint32_t service_depth = 0;       // the same for a service; 0: `depth`

  // Share of first transmissions of reliable samples that reach the agent, in percent; the others are lost on the line.
  double success_percent = 100;
  Draw draw = Draw::kTogether;

  // For each instance of a chain, at most this many frames (reliable messages and acknowledgments) are lost, each with
  // this probability. Not for a batch client, whose chains share their streams.
  uint32_t instance_losses = 0;
  double instance_loss = 0.5;

  // Faults that occur between the first release and the last.
  Faults up, down;
  unsigned cuts = 0, restarts = 0;
  Time cut_maximum = 0, outage_maximum = 0;
  bool cut_unplugs = false;   // true: the client notices cuts
  Time settle = 2 * kSecond;  // no faults occur after the last period; the run ends after this time without a message
  Time way = 0;               // how long after the last period instances may still be under way

  LatencyFrom latency_from = LatencyFrom::kExpiry;
  bool trace = false;
  bool record = false;  // keeps the times of each instance in the result
  // Worst responses include only instances that end while all chains are still released, or less than a second later.
  // After that, a board without incoming messages sends probes, which it never does while its chains continue.
  bool steady = false;

  uint32_t instances_of(Time period) const {
    if (horizon <= 0) return periods;
    return static_cast<uint32_t>(std::max<Time>((horizon + period - 1) / period, 1));
  }

  Time begin = 0;            // time at which the client begins to connect
  Time start = 0;            // the first release, if the board is ready by then
  bool extremes = false;     // each execution takes either the shortest or the longest time
  bool hesitate = false;     // lanes of shipped executors pause between two critical sections, as drawn from the seed
  std::vector<Plan> boards;  // each named by its `system`; empty: a single board, if any callback is on one
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
// The delay of a message that begins at `now`. Until the end of its slot the delay falls to the least value of all
// slots, so that no message passes an earlier one.
Time slot_delay(const std::vector<unsigned> &slots_us, Time slot, Time now);
const char *text_of(Policy policy);
const char *text_of(HostPolicy policy);
const char *text_of(Send send);

}  // namespace tide::sim
