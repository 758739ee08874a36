// SPDX-License-Identifier: Apache-2.0
// The entities of one client by object id, each with its definition, DDS object and waiting messages. Also their
// creation, one at a time, because DDS may take a while.
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

// Signals an event of an entity: threads of the middleware queue it, and the agent's thread handles it. It names the
// entity by a number that is never reused, so a signal for an entity that was deleted or never completed is ignored.
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

// A request without a reachable server, or a reply whose client DDS has not matched yet. DDS would lose the message if
// it were sent now.
struct WaitingMessage {
  uint16_t request = 0;       // from a requester: id of the request
  SampleIdentity identity{};  // from a replier: identity of the answered request
  std::vector<uint8_t> payload;
  bool big_endian = false;
  Time until_ns = 0;  // deadline, because it would do harm to execute a request much later
};

class WaitingMessages {
 public:
  bool empty() const { return messages_.empty(); }
  Time next_ns() const;  // time at which the next message expires
  // Adds a message, for which the oldest ones may have to be evicted. Returns the number of evicted messages.
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
  bool repeated = false;  // was sent but not acknowledged in the former session, and must not be dropped
};

// State of delivering an entity's data from DDS to the client.
struct Delivery {
  std::shared_ptr<Signal> signal;  // for new data; never null
  Reading reading{};
  bool has_data = false;
  std::deque<Fetched> waiting{};  // the oldest first
  size_t waiting_bytes = 0;
  uint32_t in_flight = 0;
  uint64_t last_turn = 0;   // value of Readings::turns_ at its last sample
  uint32_t generation = 0;  // changes when the output restarts; nodes of former generations are ignored
  uint32_t too_large = 0;   // number of samples that were too large, and that the client has not been told about
  uint32_t lost = 0;        // likewise, of the client's requests or replies that were dropped
  Time tell_ns = 0;         // earliest time of the next report to the client
  Time line_ns = 0;         // earliest time of the next line for the user
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

// Rate limit for waiting requests to one service: the number of requests that were sent since since_ns, by all clients.
struct Release {
  size_t count = 0;
  Time since_ns = 0;
};

// The part of an entity that depends on its kind; `dds` is never null.
struct DescribedPart {};  // topic, publisher, subscriber: no object in DDS
struct ParticipantPart {
  std::shared_ptr<const int> domain;  // see Context::domains
  std::unique_ptr<Participant> dds;
};
struct WriterPart {
  std::unique_ptr<Writer> dds;
  Time reader_deadline_ns = 0;  // until this time, samples wait for a reader that has discovered this writer; 0: they
                                // do not wait
  bool is_known = false;        // true: such a reader has acknowledged a first sample
  uint32_t unacknowledged = 0;  // number of samples written since all samples were last known to be acknowledged
  Time refused_since_ns = 0;    // time since which DDS has refused the samples; 0: DDS accepts them
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
  std::map<SampleIdentity, Time> taken{};  // times at which the unanswered requests were taken from DDS
  Replies replies{};
  WaitingMessages waiting{};
};

struct Entity {
  Definition definition;
  bool former = false;  // left over from the client's former run, and not created again yet
  std::variant<DescribedPart, ParticipantPart, WriterPart, ReaderPart, RequesterPart, ReplierPart> part;

  template <class Part> Part *as() { return std::get_if<Part>(&part); }
  template <class Part> const Part *as() const { return std::get_if<Part>(&part); }
  Made *made() const;      // the object in DDS; null if there is none
  Source *source() const;  // null, like delivery(), if the client reads nothing from the entity
  Delivery *delivery();    // null unless the entity is a reader, requester or replier
  const Delivery *delivery() const;
  WaitingMessages *waiting();  // null unless the entity is a requester or replier
};

// ---- all entities of a client ----

class Entities {
 public:
  // Called for each entity before it is removed.
  using Departure = std::function<void(uint16_t object, Entity &entity)>;

  explicit Entities(Departure departs) : departs_(std::move(departs)) {}

  const Entity *find(uint16_t object) const;
  Entity *find(uint16_t object) { return const_cast<Entity *>(std::as_const(*this).find(object)); }
  // Finds the topic object of a reader's or writer's definition in the same participant, by name or object id, and
  // fills in definition.topic. Returns a TIDE_XRCE_STATUS_*.
  uint8_t find_topic(Definition &definition) const;
  // The participant that contains the entity. Null if the entity's parent is unknown.
  const Entity *participant_of(const Definition &definition) const;
  // True if the entity's parent exists, or if the entity needs no parent.
  bool has_parent(const Definition &definition) const;
  size_t size() const { return entities_.size(); }
  void add(uint16_t object, Entity entity) { entities_.emplace(object, std::move(entity)); }
  // Removes an entity and all entities that it contains.
  void remove(uint16_t object);

  // Call this when the client was restarted: marks all entities as left over from the former run, until they are
  // created again.
  void begin_anew();
  // Marks an entity and its parents as created again.
  void renew(uint16_t object);
  // Removes entities whose topic has the same name and another type, if they are left over from the former run or
  // belong to the topic `replaced`.
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

using Endpoint = uint64_t;  // address of a client: a number that the I/O side assigns
using Host = uint64_t;      // machine or line of a client: a number that the I/O side assigns and that a restart of the
                            // client does not change

// Shared by all clients of an agent.
struct Context {
  Middleware &middleware;
  const Limits &limits;
  const Profiles &profiles;
  std::shared_ptr<SignalQueue> signals;
  std::function<int64_t()> wall_clock_ns;
  std::optional<int> domain;  // overrides the domains of clients
  int default_domain = 0;     // domain of clients that request domain 0
  std::function<void(const std::string &)> log;
  std::function<void(uint32_t key, const std::string &, Time now)> event;  // reports an event of a client; may be unset
  std::function<Time(Endpoint)> heartbeat_delay_ns;
  Tracer *tracer = nullptr;
  uint32_t next_epoch = 1;
  uint64_t next_entity = 1;
  // The domains in use; participants keep them alive. Each domain costs threads, sockets and megabytes, so the number
  // of domains is limited.
  std::map<int, std::weak_ptr<const int>> domains = {};
  std::map<std::pair<int, std::string>, std::weak_ptr<Release>> releases = {};  // by domain and topic of the requests
};

class Creation {
 public:
  Creation(Context &context, Entities &entities, uint32_t key) : context_(context), entities_(entities), key_(key) {}

  // Sets the renaming of entities that are created from now on; null: names stay unchanged. The renaming must outlive
  // this object.
  void set_names(const Renaming *names) { names_ = names; }
  // Returns a TIDE_XRCE_STATUS_*; unset if DDS is still creating the entity, in which case finish must be called later.
  // `fault` gets the error text, without the name of the entity.
  std::optional<uint8_t> begin(const tide_xrce_create_t &body, uint8_t flags, uint8_t stream, std::string &fault);
  // Adds the pending entity, whose creation must have ended. Returns a TIDE_XRCE_STATUS_*.
  uint8_t finish(std::string &fault);
  // True while DDS is still creating an entity. During this time the stream of its CREATE is blocked, and so are the
  // client's other creations.
  bool is_under_way() const;
  bool is_begun() const { return pending_ != nullptr; }
  uint8_t stream() const { return pending_->stream; }
  bool is_of(uint8_t stream, tide_xrce_request_t request) const;
  void forget() { pending_.reset(); }
  // Call this when an entity is removed, which may be the parent of the pending one.
  void removes(uint16_t object);

 private:
  struct Pending {
    uint8_t stream = 0;
    tide_xrce_request_t request{};
    Entity entity{};
    bool orphaned = false;           // the parent of the pending entity was deleted meanwhile
    std::shared_ptr<Signal> signal;  // signals that the creation has ended
  };

  uint8_t instantiate(uint16_t object, const Definition &definition, Entity &entity, std::string &fault);
  Wake wake_of(std::shared_ptr<Signal> &signal, uint16_t object);

  Context &context_;
  Entities &entities_;
  uint32_t key_;  // key of the client
  const Renaming *names_ = nullptr;
  std::unique_ptr<Pending> pending_;
};

}  // namespace tide::agent
