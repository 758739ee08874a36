// SPDX-License-Identifier: Apache-2.0
// The network of a board that speaks RTPS. The shipped agent on the board (tide/rtps_agent.h) is between the board's
// session and its network interface. A DDS participant represents the ROS 2 nodes of the host.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "sim/board/plan.h"
#include "sim/board/ros.h"
#include "sim/engine/line.h"
#include "sim/engine/machine.h"
#include "sim/engine/random.h"
#include "tide/rtps_agent.h"

namespace tide::sim {

// Each datagram that was received or has been sent interrupts the board. In this interrupt, the board's agent passes
// received messages to the session, and datagrams of its participant to the interface as long as the interface has
// room. The interface sends datagrams one at a time, in the order in which it got them. The network delays each
// datagram by the latencies of the plan and keeps the order.
class RtpsWire {
 public:
  RtpsWire(Machine &machine, Link &link, const Plan &plan, const Graph &graph, int board);
  ~RtpsWire();
  RtpsWire(const RtpsWire &) = delete;
  RtpsWire &operator=(const RtpsWire &) = delete;

  // Passes a message of the session to the board's agent.
  void write(const Line::Bytes &message);
  // Publishes a sample of a host node for this input of the board.
  void publish(size_t input, const Bus::Payload &payload);
  // Sends a node's request to a service of the board, and calls `reply` when the reply has come to the node.
  void request(size_t input, const Bus::Payload &payload, Bus::Receive reply);
  // Called when a request of the board has come to its node, which calls `reply` at any later time. Must be set.
  std::function<void(size_t message, const Bus::Payload &payload, Bus::Receive reply)> ask;
  // Called when all readers of the message on the host have a sample.
  void subscribe(size_t message, Bus::Receive receive);
  // True if all topics of the graph have found their readers and writers.
  bool is_discovered() const;
  const LineCounters &counters() const { return counters_; }  // of datagrams to the host
  // The memory of the board that did not suffice.
  std::vector<const char *> full() const;
  // A reliable sample was overwritten before all readers had it.
  bool has_overwritten() const { return agent_.participant.counters.overwritten > 0 || host_.counters.lost > 0; }
  // No datagram is in the interface or the network.
  bool is_idle() const { return queued_.empty() && travelling_ == 0; }
  // Called when the interface has sent a datagram. May be empty.
  std::function<void(size_t bytes)> on_left;
  // Whether a datagram with a reliable sample of this level, or with a HEARTBEAT or ACKNACK about one, is lost. Must be
  // set.
  std::function<bool(size_t level)> lost;
  // Called when a rule is violated. Must be set.
  std::function<void(const char *what)> broken;

 private:
  struct Memory;
  struct Reader;
  struct Writer;
  using Datagram = std::vector<uint8_t>;
  static bool start(void *context, uint32_t domain, tide_participant_config_t *config);
  int64_t write_sample(size_t input, const Bus::Payload &payload, const tide_rtps_sample_identity_t *related);
  static bool on_sample(void *context, const tide_rtps_sample_t *sample);
  void pump();
  void pump_host();
  void send(const tide_rtps_datagram_t &datagram);
  void check_order(const Datagram &datagram);
  bool is_lost(const Datagram &datagram, bool to_host) const;
  void leave();
  void schedule(Time &next, Time time, bool is_host);

  Machine &machine_;
  Engine &engine_;
  Link &link_;
  const Plan &plan_;
  const Graph &graph_;
  std::unique_ptr<Memory> memory_;
  tide_rtps_agent_t agent_{};
  tide_participant_t host_{};
  std::map<size_t, std::unique_ptr<Writer>> writers_;   // on the host, by input of the board
  std::vector<std::unique_ptr<Reader>> readers_;        // on the host
  std::map<size_t, Bus::Receive> receives_;             // by message
  std::map<std::pair<size_t, int64_t>, size_t> heard_;  // how many readers have a sample, by message and sequence
  std::map<std::pair<size_t, int64_t>, Bus::Receive> askers_;  // of the board's services, by request and its number
  std::deque<Line::Bytes> unwritten_;                          // messages of the session that the agent has refused
  std::deque<Datagram> queued_;                                // in the interface; the first one is being sent
  size_t inputs_ = 0, travelling_ = 0;
  LineCounters counters_;
  Random latency_, return_;
  Time last_up_ = 0, last_down_ = 0, next_pump_ = kForever, next_host_ = kForever;
};

}  // namespace tide::sim
