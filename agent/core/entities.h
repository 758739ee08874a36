// SPDX-License-Identifier: Apache-2.0
// The entities of one client: their descriptions, DDS objects and waiting messages, by object id; and their creation,
// one at a time, since DDS may take a while.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/definition.h"
#include "core/limits.h"
#include "core/middleware.h"
#include "core/tracer.h"

namespace tide::agent {

// ---- signals ----

// An event of an entity, queued by threads of the middleware, handled by the agent's. It names the entity by a number
// that is never reused, so that a signal of a deleted or never completed entity is ignored.
struct Signal {
  Signal(uint32_t key_of_client, uint16_t object_id, uint64_t entity_number)
      : key(key_of_client), object(object_id), number(entity_number) {}
  std::atomic<bool> queued{false};
  const uint32_t key;
  const uint16_t object;
  const uint64_t number;
};

class SignalQueue {
 public:
  explicit SignalQueue(Wake wake) : wake_(std::move(wake)) {}
  void push(const std::shared_ptr<Signal> &signal);
  void take(std::vector<std::shared_ptr<Signal>> &signals);

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<Signal>> signals_;
  Wake wake_;
};

// ---- messages that wait for ROS 2 ----

// A request without a reachable server, or a reply whose client DDS has not matched yet: ROS 2 would lose them.
struct WaitingMessage {
  uint16_t request = 0;       // of a requester: id of the request
  SampleIdentity identity{};  // for a replier: identity of the request that is answered
  std::vector<uint8_t> payload;
  bool big_endian = false;
  Time until_ns = 0;  // deadline: a request executed much later would do harm
};

class WaitingMessages {
 public:
  bool empty() const { return messages_.empty(); }
  Time next_ns() const;  // time at which the first is dropped
  // Returns the number of evicted (oldest) messages.
  size_t push(WaitingMessage message, const Limits &limits);
  // Offers each waiting message, oldest first, to `send`, which returns whether it was sent. Returns how many messages
  // have expired.
  size_t flush(Time now, const std::function<bool(const WaitingMessage &)> &send);

 private:
  void check() const;

  std::deque<WaitingMessage> messages_;
  size_t bytes_ = 0;
};

// ---- one entity ----

// The client's last READ_DATA of this entity.
struct Reading {
  bool active = false;
  tide_xrce_request_t request{};
  uint8_t stream = 0;
  bool unlimited = false;
  uint16_t remaining = 0;
  Time ends_ns = 0;
  uint32_t bytes_per_second = 0;
  Time pace_ns = 0;
  Time next_ns = 0;
};

// A sample taken from DDS that has no node yet.
struct Fetched {
  Sample sample;
  Time since_ns = 0;      // time at which it was taken
  bool repeated = false;  // sent but not acknowledged in the former session: never dropped
};

// State of the delivery of an entity's data from DDS to the client.
struct Delivery {
  std::shared_ptr<Signal> signal;  // signals new data; never null
  Reading reading{};
  bool has_data = false;
  std::deque<Fetched> waiting{};  // the oldest first
  size_t waiting_bytes = 0;
  uint32_t in_flight = 0;
  uint64_t last_turn = 0;   // sequence number, over all readers, of its last sample
  uint32_t generation = 0;  // generation of the reading: nodes of former ones do not count
  uint32_t too_large = 0;   // dropped samples not yet reported to the client
  Time tell_ns = 0;         // earliest time of the next report
};

// Replies to the requests of one entity.
struct Replies {
  uint64_t count = 0;
  Time last_ns = 0, greatest_ns = 0;
  void add(Time time_ns) {
    count++;
    last_ns = time_ns;
    greatest_ns = std::max(greatest_ns, time_ns);
  }
};

struct Asked {
  uint16_t request = 0;  // id of the client
  Time at_ns = 0;
};

// Rate limit of released requests for one service: number sent since since_ns, over all clients.
struct Release {
  size_t count = 0;
  Time since_ns = 0;
};

// What an entity has in DDS, by its kind; `dds` is never null.
struct DescribedPart {};  // topic, publisher, subscriber: no object in DDS
struct ParticipantPart {
  std::shared_ptr<const int> domain;  // see Context::domains
  std::unique_ptr<Participant> dds;
};
struct WriterPart {
  std::unique_ptr<Writer> dds;
  Time reader_deadline_ns = 0;  // time until which samples wait for a reader that has discovered this writer; 0: they
                                // do not wait
  bool is_known = false;        // such a reader has acknowledged a first sample
  uint32_t unacknowledged = 0;  // samples written since all were last known to be acknowledged
  Time refused_since_ns = 0;    // time since which DDS refuses its samples; 0: it does not
};
struct ReaderPart {
  std::unique_ptr<Source> dds;
  Delivery delivery;
};
struct RequesterPart {
  std::unique_ptr<Requester> dds;
  Delivery delivery;
  std::shared_ptr<Release> release;
  std::map<uint64_t, Asked> requests{};  // by DDS's number of the request
  Replies replies{};
  WaitingMessages waiting{};
};
struct ReplierPart {
  std::unique_ptr<Replier> dds;
  Delivery delivery;
  std::map<SampleIdentity, Time> taken{};  // unanswered requests, with the time at which they were taken from DDS
  Replies replies{};
  WaitingMessages waiting{};
};

struct Entity {
  Definition definition;
  bool former = false;  // from the client's former run, not created again yet
  std::variant<DescribedPart, ParticipantPart, WriterPart, ReaderPart, RequesterPart, ReplierPart> part;

  template <class Part>
  Part *as() {
    return std::get_if<Part>(&part);
  }
  template <class Part>
  const Part *as() const {
    return std::get_if<Part>(&part);
  }
  Made *made() const;                // the object in DDS; null: none
  Source *source() const;            // null, like delivery, if the client reads nothing from it
  Delivery *delivery();              // of readers, requesters and repliers
  const Delivery *delivery() const;  // the same
  WaitingMessages *waiting();        // of requesters and repliers; others: null
};

// ---- all entities of a client ----

class Entities {
 public:
  // Called for each entity before it is removed.
  using Departure = std::function<void(uint16_t object, Entity &entity)>;

  explicit Entities(Departure departs) : departs_(std::move(departs)) {}

  const Entity *find(uint16_t object) const;
  Entity *find(uint16_t object) { return const_cast<Entity *>(std::as_const(*this).find(object)); }
  // The topic of this name or object id in the same participant: fills in definition.topic. Returns a
  // TIDE_XRCE_STATUS_*.
  uint8_t find_topic(Definition &definition) const;
  // The participant to which the entity belongs. Null: its parent is unknown.
  const Entity *participant_of(const Definition &definition) const;
  // True if the entity's parent exists, or if it needs none.
  bool has_parent(const Definition &definition) const;
  size_t size() const { return entities_.size(); }
  void add(uint16_t object, Entity entity) { entities_.emplace(object, std::move(entity)); }
  // Removes an entity and everything that it contains.
  void remove(uint16_t object);

  // The client was restarted: marks all as of the former run until they are created again.
  void begin_anew();
  // Marks an entity and its parents as created again.
  void renew(uint16_t object);
  // Removes entities that conflict with a topic's type: those of the former run, and those of `replaced`.
  void make_way(const Topic &topic, const std::optional<Topic> &replaced);
  bool has_former() const;
  void remove_former();

  auto begin() { return entities_.begin(); }
  auto end() { return entities_.end(); }
  auto begin() const { return entities_.begin(); }
  auto end() const { return entities_.end(); }

 private:
  void remove_if(const std::function<bool(const Entity &entity)> &condition);

  std::map<uint16_t, Entity> entities_;
  Departure departs_;
};

// ---- creation ----

using Endpoint = uint64_t;  // address of a client, numbered by the I/O side
using Host = uint64_t;      // machine or line of a client, unchanged by a restart; also numbered by the I/O side

// Shared by all clients of an agent.
struct Context {
  Middleware &middleware;
  const Limits &limits;
  const Profiles &profiles;
  std::shared_ptr<SignalQueue> signals;
  std::function<int64_t()> wall_clock_ns;
  std::optional<int> domain;  // overrides those of clients
  int default_domain = 0;     // for clients that ask for 0
  std::function<void(const std::string &)> log;
  std::function<void(uint32_t key, const std::string &, Time now)> event;  // of a client, for the user; unset: none
  std::function<Time(Endpoint)> heartbeat_delay_ns;
  Tracer *tracer = nullptr;
  uint32_t next_epoch = 1;
  uint64_t next_entity = 1;
  // Domains in use: participants hold them. Each costs threads, sockets and megabytes, so their number is limited.
  std::map<int, std::weak_ptr<const int>> domains = {};
  std::map<std::pair<int, std::string>, std::weak_ptr<Release>> releases = {};  // by domain and topic of the requests
};

class Creation {
 public:
  Creation(Context &context, Entities &entities, uint32_t key) : context_(context), entities_(entities), key_(key) {}

  // Sets the renaming of entities created from now on; null: names are unchanged. Must outlive this.
  void set_names(const Renaming *names) { names_ = names; }
  // Returns a TIDE_XRCE_STATUS_*; unset: DDS is creating it, call finish later. fault: error text, for a message that
  // also names the entity.
  std::optional<uint8_t> begin(const tide_xrce_create_t &body, uint8_t flags, uint8_t stream, std::string &fault);
  // The result of a completed creation.
  uint8_t finish(std::string &fault);
  // True while DDS is still creating an entity: the stream of its CREATE is blocked, and so are other creations of this
  // client.
  bool is_under_way() const;
  bool is_begun() const { return pending_ != nullptr; }
  uint8_t stream() const { return pending_->stream; }
  bool is_of(uint8_t stream, tide_xrce_request_t request) const;
  void forget() { pending_.reset(); }
  // Notifies that an entity is removed, which may be the pending one's parent.
  void removes(uint16_t object);

 private:
  struct Pending {
    uint8_t stream = 0;
    tide_xrce_request_t request{};
    Entity entity{};
    bool orphaned = false;           // its parent was deleted meanwhile
    std::shared_ptr<Signal> signal;  // signals its completion
  };

  uint8_t instantiate(uint16_t object, const Definition &definition, Entity &entity, std::string &fault);
  Wake wake_of(std::shared_ptr<Signal> &signal, uint16_t object);

  Context &context_;
  Entities &entities_;
  uint32_t key_;  // of the client
  const Renaming *names_ = nullptr;
  std::unique_ptr<Pending> pending_;
};

}  // namespace tide::agent
