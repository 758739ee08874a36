// SPDX-License-Identifier: Apache-2.0
// Links over IPv4 and IPv6: UDP, TCP, and the answers to boards that look for the agent.
#pragma once

#include <netinet/in.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "io/link.h"
#include "link_datagrams.h"

namespace tide::agent {

// ---- messages that wait for the agent ----

enum class Standing : uint8_t { kSession, kStranger };

struct BacklogLimits {
  size_t messages = 16384;         // of one endpoint: as many as the agent processes in about 30 ms
  size_t bytes = size_t{2} << 20;  // the same limit in bytes
  size_t total_bytes = size_t{32} << 20;
  size_t endpoints = 1024;
  size_t messages_a_turn = 64;    // of one endpoint
  Time turn_ns = 200'000;         // the same limit in time; an endpoint that took longer skips turns
  size_t stranger_messages = 32;  // of one stranger, and of any endpoint outside sessions
  size_t strangers = 512;
  Time session_weight = 8;  // time share of endpoints with a session, relative to 1 for all strangers together
};

// Holds messages that arrive faster than they are processed. A link takes all messages out of the kernel, whose single
// queue for all clients would delay them for seconds and then drop arbitrary ones. Here each endpoint has a queue, and
// the queues are served in turns of equal time, so that no client waits for another client's flood or slow requests.
// Endpoints without a used session are strangers, which get a small share of the time while others wait. A full queue
// first drops the oldest samples of its own best-effort streams, then new messages, which their sender repeats.
class Backlog {
 public:
  using Deliver = std::function<void(Endpoint endpoint, Bytes message)>;
  using StandingOf = std::function<Standing(Endpoint endpoint)>;
  using Clock = std::function<Time()>;

  // `deliver` is called in the order of arrival for each endpoint, and must not call this object. `standing_of`: if
  // unset, all have a session. `clock` measures deliveries; if unset, they count as taking no time.
  explicit Backlog(Deliver deliver, const BacklogLimits &limits = {}, StandingOf standing_of = {}, Clock clock = {});

  bool empty() const { return lines_.empty(); }
  // Queues a copy of the message; if its queue is full, drops a message.
  void push(Endpoint endpoint, Bytes message);
  // Delivers messages up to these limits of number, octets and time.
  void serve(size_t messages, size_t bytes = SIZE_MAX, Time time_ns = INT64_MAX);
  uint64_t dropped() const { return dropped_; }

 private:
  struct Line {
    std::vector<uint8_t> bytes;  // messages, each preceded by its length
    size_t first = 0, messages = 0;
    Time debt_ns = 0;  // by how much its turns exceeded turn_ns; negative: time left over
    Standing standing = Standing::kSession;
    size_t used() const { return bytes.size() - first; }
  };
  struct Class {
    std::deque<Endpoint> turns;  // endpoints with a queue
    Time served_ns = 0;          // time spent on the class; that of strangers counts session_weight times
  };

  Bytes front(const Line &line) const;
  void pop(Line &line);
  Standing standing_of(Endpoint endpoint) const { return standing_of_ ? standing_of_(endpoint) : Standing::kSession; }
  Time now() const { return clock_ ? clock_() : 0; }
  Class &class_of(Standing standing) { return classes_[static_cast<size_t>(standing)]; }

  Deliver deliver_;
  BacklogLimits limits_;
  StandingOf standing_of_;
  Clock clock_;
  std::unordered_map<Endpoint, Line> lines_;
  std::array<Class, 2> classes_;
  size_t total_bytes_ = 0;
  uint64_t dropped_ = 0;
};

// ---- addresses ----

// Where messages come from, without the port. `scope` is the interface of a link-local IPv6 address, else 0.
struct Origin {
  Address address{};
  uint32_t scope = 0;
  auto operator<=>(const Origin &) const = default;
};

// Maps origins to numbers of 40 bits, because an endpoint has no room for an IPv6 address. An IPv4 address is its own
// number. Other origins get the next free number. When many are known, those without a client lose their numbers. No
// number is used again.
class Origins {
 public:
  Origins(const Agent &agent, uint64_t base) : agent_(agent), base_(base) {}
  uint64_t number_of(const Origin &origin);
  // Finds the origin with this number. Unset if the number was given up.
  std::optional<Origin> find(uint64_t number) const;

 private:
  static constexpr size_t kLeast = 4096;
  const Agent &agent_;
  const uint64_t base_;  // of the link; base_ | number is a host
  std::map<Origin, uint64_t> numbers_;
  std::unordered_map<uint64_t, Origin> origins_;
  uint64_t next_ = uint64_t{1} << 32;
  size_t most_ = kLeast;
};

// ---- UDP ----

// A UDP socket; each source address on it is an endpoint. Frames leave in batches (link_datagrams.h), so a frame that
// becomes the most urgent one waits for the current batch, at most kFramesPerTurn frames for each endpoint. While the
// kernel accepts no more frames, none is chosen.
class UdpLink : public Link {
 public:
  UdpLink(uint8_t number, Agent &agent, Poller &poller, const std::string &address, uint16_t port);
  ~UdpLink() override;

  uint16_t port() const { return port_; }
  std::string describe() const override;
  void event(const Poller::Event &event, Time now) override;
  void write(Endpoint endpoint, Time now) override;
  bool flush(Time now) override;
  Peer peer(Endpoint endpoint) const override;
  Host host_of(Endpoint endpoint) const override { return base_ | number_of(endpoint); }
  std::string name_of(Endpoint endpoint) const override;
  Time deadline() const override { return backlog_.empty() ? TIDE_FOREVER : 0; }
  void turn(Time now) override;
  bool may_be_forged() const override { return true; }

 private:
  void receive(Bytes message, const tide_socket_address_t &from);
  static uint64_t number_of(Endpoint endpoint) { return (endpoint & kLinkMask) >> 16; }  // number of the origin
  Standing standing_of(Endpoint endpoint) const;
  void send();

  std::string address_;
  uint16_t port_;
  int socket_, family_ = 0;
  std::vector<uint8_t> in_storage_, out_storage_;
  tide_datagram_input_t in_{};
  tide_datagram_output_t out_{};
  Origins origins_;
  Backlog backlog_;
  bool behind_ = false;                        // true while a new message must queue behind others
  size_t turn_messages_ = 0, turn_bytes_ = 0;  // processed directly when they arrived
  std::vector<Endpoint> waiting_;              // endpoints with frames while the kernel accepts none
  Time now_ = 0;                               // time of the call in progress
  bool sent_ = false;
};

// ---- TCP ----

struct TcpLimits {
  size_t connections = 80;  // more than clients, because a new client needs a connection to be admitted
  size_t per_address = 80;
  Time session_wait_ns = 5'000'000'000;  // longest time without a session after the last whole message
  Time message_wait_ns = 5'000'000'000;  // longest time from a message's first octet to its last
};

// TCP: each message is preceded by its length (u16, little-endian), and each connection is an endpoint. A frame that
// becomes the most urgent one waits for unsent frames chosen before it: 16 KiB and a message here, 16 KiB in the
// kernel, and data in transit. A connection that opens no session, or does not finish a message, is closed after some
// seconds. If all connections are in use, a new one replaces the one that has been without a session for the longest
// time.
class TcpLink : public Link {
 public:
  TcpLink(uint8_t number, Agent &agent, Poller &poller, const std::string &address, uint16_t port,
          const TcpLimits &limits = {});
  ~TcpLink() override;

  uint16_t port() const { return port_; }
  std::string describe() const override;
  void event(const Poller::Event &event, Time now) override;
  void write(Endpoint endpoint, Time now) override;
  bool flush(Time now) override;
  Time deadline() const override { return next_check_ns_; }
  Peer peer(Endpoint endpoint) const override;
  Host host_of(Endpoint endpoint) const override;
  std::string name_of(Endpoint endpoint) const override;

 private:
  struct Connection {
    int descriptor = -1;
    Origin origin{};
    uint64_t host = 0;  // number of the origin
    Time heard_ns = 0;  // time of the last whole message, or of the connection itself
    Time half_ns = 0;   // time since which a message is unfinished; 0 if none is
    std::vector<uint8_t> in{}, out{};
    bool watches_writable = false;
  };

  void accept_connection(Time now);
  const char *reason_to_refuse(const Origin &origin, Time now);
  bool make_room(std::optional<Origin> origin, Time now);
  void check(Time now);
  void receive(uint64_t number, Connection &connection, Time now);
  bool put_bytes(uint64_t number, Connection &connection);
  void close_connection(uint64_t number);

  std::string address_;
  uint16_t port_;
  int listener_;
  TcpLimits limits_;
  Origins origins_;
  Time next_check_ns_ = TIDE_FOREVER;
  bool paused_ = false;  // no descriptor is free: no connection is accepted until the next check
  std::map<uint64_t, Connection> connections_;
  uint64_t next_number_ = 1;
  bool sent_ = false;
};

// ---- discovery ----

// This machine's address for the answer to a request received at `received_at` (0.0.0.0: unknown); unset if there is
// none.
std::optional<in_addr> address_told(const in_addr &received_at, const sockaddr_in &from);

// Answers boards that search the network for an agent. This link serves no clients.
class DiscoveryLink : public Link {
 public:
  // `address` is that of the interface to listen on, 0.0.0.0 or :: for all; `port` is that of the group, 0 for any;
  // `served` is the UDP port named in answers. Boards that are not admitted get no answer.
  DiscoveryLink(uint8_t number, Agent &agent, Poller &poller, const std::string &address, uint16_t port,
                uint16_t served, const AccessList &access);
  ~DiscoveryLink() override;

  uint16_t port() const { return port_; }
  std::string describe() const override;
  void event(const Poller::Event &event, Time now) override;
  void write(Endpoint, Time) override {}
  bool flush(Time) override { return false; }
  Peer peer(Endpoint) const override { return {}; }
  std::string name_of(Endpoint) const override { return describe(); }

 private:
  bool answer_next();

  const AccessList &access_;
  uint16_t port_, served_;
  int socket_;
};

}  // namespace tide::agent
