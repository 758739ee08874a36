// SPDX-License-Identifier: Apache-2.0
// The agent's core, without I/O and without DDS: its inputs are messages and the time, its outputs frames and
// deadlines. Only one thread may call it. The middleware reports events of DDS by Wake, from any thread; poll processes
// them.
//
//   input(endpoint, message, now)      a message was received
//   poll(now) -> deadline              timers and waiting data; call it after input, after wake and at the deadline
//   take_ready(endpoints)              endpoints that may have got frames since the last call
//   next(endpoint, now, frame)         the most urgent frame; copy it before any other call
// sent(endpoint, now) the frame's last byte was sent; call it before the next call of next
//
// A message may contain any bytes; malformed messages are counted and dropped.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/client.h"
#include "core/definition.h"
#include "core/diagnostics.h"
#include "core/limits.h"
#include "core/middleware.h"
#include "core/tracer.h"

namespace tide::agent {

struct Options {
  Limits limits;
  Profiles profiles;
  std::optional<int> domain;                         // overrides the domains of clients
  int default_domain = 0;                            // domain of clients that request domain 0
  std::function<int64_t()> wall_clock_ns;            // for time synchronisation; unset: the system's clock
  std::function<Time(Endpoint)> heartbeat_delay_ns;  // HEARTBEAT delay for a client at the endpoint, as in
                                                     // tide_transmitter_config_t; unset: -1
  std::function<Host(Endpoint)> host_of;             // unset: each endpoint is a host of its own
  std::function<bool(Endpoint)> may_be_forged;       // true if the endpoint's address may be forged; unset: never
  std::function<Time(Endpoint, uint32_t key)> client_timeout_ns;  // unset: limits.client_timeout_ns
  // The renaming of a client's topics, services and nodes; the returned object must outlive the agent. If the function
  // is unset or returns null, names stay as they are.
  std::function<const Renaming *(Endpoint, uint32_t key)> names;
  // True if the client with this key may connect; without a key, true if some client at the endpoint may connect.
  // Unset: all clients may.
  std::function<bool(Endpoint, std::optional<uint32_t> key)> allows;
  Wake wake;                                      // called when poll is needed; from any thread
  std::function<void(const std::string &)> log;   // receives a line for each creation of an entity
  std::function<void(const std::string &)> warn;  // receives a few lines about limits and refusals
  bool tells_events = false;  // warn also gets a line for each client that connects, leaves or is refused an entity
  std::function<std::string(Endpoint)> name_of;  // name of an endpoint for log and warn; unset: its number
  Tracer *tracer = nullptr;                      // records messages if not null; must outlive the agent
  DiagnosticsOptions diagnostics;
};

class Agent {
 public:
  Agent(Middleware &middleware, Options options);

  void input(Endpoint endpoint, Bytes message, Time now);
  Time poll(Time now);
  void take_ready(std::vector<Endpoint> &endpoints);
  // Sends samples that are batched in DDS; call this before waiting (middleware.h).
  void flush() { context_.middleware.flush(); }
  bool next(Endpoint endpoint, Time now, tide_frame_parts_t &frame);
  void sent(Endpoint endpoint, Time now);
  // Call this when the endpoint has closed. Drops answers that wait for the endpoint; its clients may return from
  // another endpoint.
  void forget(Endpoint endpoint);

  // Sums over present and former clients. O(clients).
  Counters counters() const;
  Notices &notices() { return notices_; }
  bool has_client(Endpoint endpoint) const;
  std::set<Host> hosts() const;  // the hosts of all clients
  // True if a client at the endpoint has sent a message in its session, or has entities from a former one.
  bool has_used_session(Endpoint endpoint) const;
  bool allows(Endpoint endpoint) const { return !options_.allows || options_.allows(endpoint, std::nullopt); }
  void warn(const std::string &line) const {
    if (options_.warn) options_.warn(line);
  }
  size_t client_count() const { return clients_.size(); }
  size_t entity_count() const;
  size_t output_count() const;         // number of clients to which something was sent in the current session
  size_t unserved_requesters() const;  // number of service clients whose server DDS has not found

 private:
  struct Reply {
    std::array<uint8_t, 48> bytes;
    size_t length;
  };
  struct Slot {
    std::unique_ptr<Client> client;
    bool dirty = false;
    Time deadline = TIDE_FOREVER;
    Host host = 0;
    std::optional<Endpoint> former{};  // the endpoint that the client has left, and the time of the move
    Time moved = 0;
  };
  struct Place {  // state of an endpoint
    std::deque<Reply> replies;
    std::vector<uint32_t> keys;  // keys of its clients
    size_t turn = 0;
    bool sending_reply = false;
    uint32_t sending_key = 0, sending_epoch = 0;  // client and epoch of the frame on the wire; epoch 0: none
    bool ready = false;
  };

  void create_client(Endpoint endpoint, const tide_xrce_submessage_t &submessage, Time now);
  bool is_of_former_session(const tide_xrce_create_client_t &body, Time now) const;
  bool may_come(Endpoint endpoint, uint32_t key, Time now);
  bool may_take_over(const Client &client, Endpoint endpoint, Time now) const;
  void report_competitor(Endpoint endpoint, Time now);
  uint8_t admit(Endpoint endpoint, const tide_xrce_create_client_t &body, Time now);
  bool make_room(Time now);
  Host host_of(Endpoint endpoint) const { return options_.host_of ? options_.host_of(endpoint) : endpoint; }
  std::string name_of(Endpoint endpoint) const;
  std::string name_of(uint32_t key, Endpoint endpoint) const;
  void displace(Endpoint endpoint, const tide_xrce_create_client_t &body, Time now);
  void answer_stranger(Endpoint endpoint, const tide_xrce_header_t &header, Bytes message);
  void reply(Endpoint endpoint, uint8_t session, uint32_t key, uint8_t id, Bytes body);
  void reply_status(Endpoint endpoint, uint8_t session, uint32_t key, tide_xrce_request_t related);
  Client *find(Endpoint endpoint, const tide_xrce_header_t &header);
  void detach(Endpoint endpoint, uint32_t key);
  // Removes a client. `what` describes the event in a line for the user; null: no line.
  void erase(uint32_t key, const char *what, Time now);
  void refuse(Endpoint endpoint, uint32_t key, const char *cause, Time now);
  // Reports an event of a client in a line for the user.
  void tell(uint32_t key, const std::string &what, Time now);
  void mark(uint32_t key);
  void mark_dirty(uint32_t key, Slot &slot);
  void mark_ready(Endpoint endpoint);
  void forget_if_empty(Endpoint endpoint);
  AgentVitals vitals(Time now);
  void check(Endpoint endpoint) const;

  Options options_;
  Counters counters_;  // counters of former clients, and of messages without a client
  Notices notices_;
  std::shared_ptr<SignalQueue> signals_;
  Context context_;
  Diagnostics diagnostics_;
  std::map<uint32_t, Slot> clients_;  // by key; ordered, so that a run can be repeated exactly
  std::unordered_map<Endpoint, Place> places_;
  std::unordered_map<Endpoint, uint32_t> left_;  // Slot::former of all clients, with their keys
  std::vector<Endpoint> ready_;
  std::vector<std::shared_ptr<Signal>> woken_;
  std::vector<uint32_t> dirty_;                    // keys of clients that must be polled regardless of their deadline
  std::set<std::pair<Time, uint32_t>> deadlines_;  // next poll of each client, including those in dirty_
  std::vector<uint32_t> due_;
  std::vector<ClientVitals> vitals_;
  size_t reply_count_ = 0;
};

}  // namespace tide::agent
