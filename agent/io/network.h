// SPDX-License-Identifier: Apache-2.0
// Links over IPv4 and IPv6: UDP, TCP, and the discovery of the agent by boards.
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
  size_t messages = 16384;         // of one endpoint: about as many as the agent processes in 30 ms
  size_t bytes = size_t{2} << 20;  // the same limit in bytes
  size_t total_bytes = size_t{32} << 20;
  size_t endpoints = 1024;
  size_t messages_a_turn = 64;    // of one endpoint
  Time turn_ns = 200'000;         // the same limit in time; an endpoint that exceeds it skips turns
  size_t stranger_messages = 32;  // of one stranger, and of messages outside of sessions from any endpoint
  size_t strangers = 512;
  Time session_weight = 8;  // share of the time that endpoints with a session get, where all strangers together get 1
};

// Holds messages that arrive faster than they are processed. A link takes all messages out of the kernel's queue: it is
// common to all clients, so it would delay messages for seconds and then drop those of any client. In the backlog each
// endpoint has a queue, and the queues are served in turns of equal time, so that no client waits for another client's
// flood or slow requests. Endpoints without a used session are strangers, which get only a small share of the time
// while others wait. A full queue drops its oldest message if that is a sample of a best-effort stream; otherwise it
// drops the new message, which the sender repeats.
class Backlog {
 public:
  using Deliver = std::function<void(Endpoint endpoint, Bytes message)>;
  using StandingOf = std::function<Standing(Endpoint endpoint)>;
  using Clock = std::function<Time()>;

  // `deliver` is called for the messages of each endpoint in the order of their arrival; it must not call functions of
  // this object. `standing_of`: unset means that all endpoints have a session. `clock` measures deliveries; unset means
  // that they take no time.
  explicit Backlog(Deliver deliver, const BacklogLimits &limits = {}, StandingOf standing_of = {}, Clock clock = {});

  bool empty() const { return lines_.empty(); }
  // Queues a copy of the message. If the queue is full, drops one or more messages (see above).
  void push(Endpoint endpoint, Bytes message);
  // Delivers messages up to these limits of number, octets and time.
  void serve(size_t messages, size_t bytes = SIZE_MAX, Time time_ns = INT64_MAX);
  uint64_t dropped() const { return dropped_; }

 private:
  struct Line {
    std::vector<uint8_t> bytes;  // messages, each preceded by its length
    size_t first = 0, messages = 0;
    Time debt_ns = 0;  // time by which its turns have exceeded turn_ns; negative: unused time
    Standing standing = Standing::kSession;
    size_t used() const { return bytes.size() - first; }
  };
  struct Class {
    std::deque<Endpoint> turns;  // endpoints that have a queue, in the order of their turns
    Time served_ns = 0;          // time spent on this class; for strangers, multiplied by session_weight
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

// The source of messages without its port. `scope` is the interface of a link-local IPv6 address, else 0.
struct Origin {
  Address address{};
  uint32_t scope = 0;
  auto operator<=>(const Origin &) const = default;
};

// Maps origins to numbers of 40 bits, because an IPv6 address does not fit into an endpoint. An IPv4 address is its own
// number. Each other origin gets the next free number. If too many are known, origins without a client lose their
// numbers. Numbers are never reused.
class Origins {
 public:
  Origins(const Agent &agent, uint64_t base) : agent_(agent), base_(base) {}
  uint64_t number_of(const Origin &origin);
  // The origin with this number; unset if the origin has lost its number.
  std::optional<Origin> find(uint64_t number) const;

 private:
  static constexpr size_t kLeast = 4096;
  const Agent &agent_;
  const uint64_t base_;  // base of the link; base_ | number is a Host
  std::map<Origin, uint64_t> numbers_;
  std::unordered_map<uint64_t, Origin> origins_;
  uint64_t next_ = uint64_t{1} << 32;
  size_t most_ = kLeast;
};

// ---- UDP ----

// A UDP socket; each source address and port is an endpoint. Frames are sent in batches (link_datagrams.h), so a frame
// that becomes the most urgent one waits for the current batch, which has at most kFramesPerTurn frames for each
// endpoint. While the kernel accepts no more frames, none is chosen.
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
  size_t turn_messages_ = 0, turn_bytes_ = 0;  // messages of this turn that were processed when they arrived, without
                                               // the backlog
  std::vector<Endpoint> waiting_;              // endpoints with frames while the kernel accepts none
  Time now_ = 0;                               // time of the call in progress
  bool sent_ = false;
};

// ---- TCP ----

struct TcpLimits {
  size_t connections = 80;  // more than Limits::clients, because even a client that is not admitted yet needs a
                            // connection
  size_t per_address = 80;
  Time session_wait_ns = 5'000'000'000;  // longest time without a session after the last whole message
  Time message_wait_ns = 5'000'000'000;  // longest time from the first octet of a message to its last one
};

// TCP: each connection is an endpoint, and each message is preceded by its length (u16, little-endian). A frame that
// becomes the most urgent one waits for frames that were chosen before: up to 16 KiB and one message in the link, 16
// KiB in the kernel, and data in transit. A connection that opens no session or does not finish a message is closed
// after some seconds. If all connections are in use, a new one replaces the connection without a session whose last
// message is the oldest.
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
    Time heard_ns = 0;  // time of the last whole message, or of the beginning of the connection
    Time half_ns = 0;   // time at which an unfinished message began; 0 if there is none
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
  bool paused_ = false;  // true: no descriptor is free, so no connection is accepted until the next check
  std::map<uint64_t, Connection> connections_;
  uint64_t next_number_ = 1;
  bool sent_ = false;
};

// ---- discovery ----

// The address of this machine to name in the answer to a discovery request from `from` that was received at the address
// `received_at` (0.0.0.0: unknown); unset if there is none.
std::optional<in_addr> address_told(const in_addr &received_at, const sockaddr_in &from);

// Answers boards that search the network for an agent. This link serves no clients.
class DiscoveryLink : public Link {
 public:
  // `address`: of the interface on which to listen; 0.0.0.0 or :: for all. `port`: of the multicast group; 0 for any.
  // `served`: the UDP port of the agent to name in answers. Boards that `access` does not admit get no answer.
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
