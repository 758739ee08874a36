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

// An event of an entity: queued by threads of the middleware, handled by the agent's thread. An event names its entity
// by a number that is never reused, so a signal for a deleted or never completed entity is ignored.
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

// A request without a reachable server, or a reply whose client DDS has not matched yet. If it were sent now, it would
// be lost.
struct WaitingMessage {
  uint16_t request = 0;       // from a requester: id of the request
  SampleIdentity identity{};  // from a replier: identity of the answered request
  std::vector<uint8_t> payload;
  bool big_endian = false;
  Time until_ns = 0;  // deadline: a request executed much later would do harm
};

class WaitingMessages {
 public:
  bool empty() const { return messages_.empty(); }
  Time next_ns() const;  // time at which the first message is dropped
  // Returns the number of messages evicted for it; the oldest are evicted first.
  size_t push(WaitingMessage message, const Limits &limits);
  // Offers each waiting message, oldest first, to `send`, which returns true if it has sent the message. Returns the
  // number of messages that have expired.
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

// A sample that was taken from DDS and waits for a node.
struct Fetched {
  Sample sample;
  Time since_ns = 0;      // time at which it was taken
  bool repeated = false;  // sent but not acknowledged in the former session: never dropped
};

// State of delivering an entity's data from DDS to the client.
struct Delivery {
  std::shared_ptr<Signal> signal;  // signals new data; never null
  Reading reading{};
  bool has_data = false;
  std::deque<Fetched> waiting{};  // the oldest first
  size_t waiting_bytes = 0;
  uint32_t in_flight = 0;
  uint64_t last_turn = 0;   // turn of its last sample, counted over all readers
  uint32_t generation = 0;  // changes when the output restarts; nodes of former generations do not count
  uint32_t too_large = 0;   // dropped samples not yet reported to the client
  Time tell_ns = 0;         // earliest time of the next report
};

// Statistics of the replies to one entity's requests.
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
  uint16_t request = 0;  // the client's id of the request
  Time at_ns = 0;
};

// Rate limit for sending waiting requests to one service: the number sent since since_ns, over all clients.
struct Release {
  size_t count = 0;
  Time since_ns = 0;
};

// What an entity has in DDS, depending on its kind; `dds` is never null.
struct DescribedPart {};  // topic, publisher, subscriber: no object in DDS
struct ParticipantPart {
  std::shared_ptr<const int> domain;  // see Context::domains
  std::unique_ptr<Participant> dds;
};
struct WriterPart {
  std::unique_ptr<Writer> dds;
  Time reader_deadline_ns = 0;  // deadline until which samples wait for a reader that has discovered this writer; 0:
                                // they do not wait
  bool is_known = false;        // such a reader has acknowledged a first sample
  uint32_t unacknowledged = 0;  // samples written since all samples were last known to be acknowledged
  Time refused_since_ns = 0;    // time since which DDS has refused its samples; 0: it accepts them
};
struct ReaderPart {
  std::unique_ptr<Source> dds;
  Delivery delivery;
};
struct RequesterPart {
  std::unique_ptr<Requester> dds;
  Delivery delivery;
  std::shared_ptr<Release> release;
  std::map<uint64_t, Asked> requests{};  // by the number that DDS gave the request
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
  bool former = false;  // left from the client's former run, and not created again yet
  std::variant<DescribedPart, ParticipantPart, WriterPart, ReaderPart, RequesterPart, ReplierPart> part;

  template <class Part>
  Part *as() {
    return std::get_if<Part>(&part);
  }
  template <class Part>
  const Part *as() const {
    return std::get_if<Part>(&part);
  }
  Made *made() const;      // the object in DDS; null if there is none
  Source *source() const;  // null, like delivery, if the client reads nothing from it
  Delivery *delivery();    // null unless a reader, requester or replier
  const Delivery *delivery() const;
  WaitingMessages *waiting();  // null unless a requester or replier
};

// ---- all entities of a client ----

class Entities {
 public:
  // Called for each entity before the entity is removed.
  using Departure = std::function<void(uint16_t object, Entity &entity)>;

  explicit Entities(Departure departs) : departs_(std::move(departs)) {}

  const Entity *find(uint16_t object) const;
  Entity *find(uint16_t object) { return const_cast<Entity *>(std::as_const(*this).find(object)); }
  // Finds the topic with this name or object id in the same participant, and fills in definition.topic. Returns a
  // TIDE_XRCE_STATUS_*.
  uint8_t find_topic(Definition &definition) const;
  // The participant that contains the entity. Null if the entity's parent is unknown.
  const Entity *participant_of(const Definition &definition) const;
  // True if the entity's parent exists, or if the entity needs no parent.
  bool has_parent(const Definition &definition) const;
  size_t size() const { return entities_.size(); }
  void add(uint16_t object, Entity entity) { entities_.emplace(object, std::move(entity)); }
  // Removes an entity and everything that the entity contains.
  void remove(uint16_t object);

  // The client was restarted: marks all entities as left from the former run, until they are created again.
  void begin_anew();
  // Marks an entity and its parents as created again.
  void renew(uint16_t object);
  // Removes entities that conflict with a topic's type: those left from the former run, and those of the topic
  // `replaced`.
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

using Endpoint = uint64_t;  // address of a client, as a number that the I/O side assigns
using Host = uint64_t;      // machine or line of a client, unchanged by a restart; also numbered by the I/O side

// Shared by all clients of an agent.
struct Context {
  Middleware &middleware;
  const Limits &limits;
  const Profiles &profiles;
  std::shared_ptr<SignalQueue> signals;
  std::function<int64_t()> wall_clock_ns;
  std::optional<int> domain;  // overrides the domains of clients
  int default_domain = 0;     // used for clients that request domain 0
  std::function<void(const std::string &)> log;
  std::function<void(uint32_t key, const std::string &, Time now)> event;  // reports an event of a client; may be unset
  std::function<Time(Endpoint)> heartbeat_delay_ns;
  Tracer *tracer = nullptr;
  uint32_t next_epoch = 1;
  uint64_t next_entity = 1;
  // The domains in use; the participants keep them alive. Each domain costs threads, sockets and megabytes, so their
  // number is limited.
  std::map<int, std::weak_ptr<const int>> domains = {};
  std::map<std::pair<int, std::string>, std::weak_ptr<Release>> releases = {};  // by domain and topic of the requests
};

class Creation {
 public:
  Creation(Context &context, Entities &entities, uint32_t key) : context_(context), entities_(entities), key_(key) {}

  // Sets the renaming of entities created from now on; null: names stay unchanged. The renaming must outlive this
  // object.
  void set_names(const Renaming *names) { names_ = names; }
  // Returns a TIDE_XRCE_STATUS_*; unset if DDS is still creating the entity, in which case finish must be called later.
  // `fault` gets the error text for a message that also names the entity.
  std::optional<uint8_t> begin(const tide_xrce_create_t &body, uint8_t flags, uint8_t stream, std::string &fault);
  // Adds the entity whose creation has ended. Returns a TIDE_XRCE_STATUS_*.
  uint8_t finish(std::string &fault);
  // True while DDS is still creating an entity. Meanwhile the stream that carried its CREATE is blocked, and so are the
  // client's other creations.
  bool is_under_way() const;
  bool is_begun() const { return pending_ != nullptr; }
  uint8_t stream() const { return pending_->stream; }
  bool is_of(uint8_t stream, tide_xrce_request_t request) const;
  void forget() { pending_.reset(); }
  // Notifies that an entity is removed; it may be the parent of the pending one.
  void removes(uint16_t object);

 private:
  struct Pending {
    uint8_t stream = 0;
    tide_xrce_request_t request{};
    Entity entity{};
    bool orphaned = false;           // the pending entity's parent was deleted meanwhile
    std::shared_ptr<Signal> signal;  // signals that the creation has ended
  };

  uint8_t instantiate(uint16_t object, const Definition &definition, Entity &entity, std::string &fault);
  Wake wake_of(std::shared_ptr<Signal> &signal, uint16_t object);

  Context &context_;
  Entities &entities_;
  uint32_t key_;  // of the client that owns the entities
  const Renaming *names_ = nullptr;
  std::unique_ptr<Pending> pending_;
};

}  // namespace tide::agent
