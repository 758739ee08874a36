// SPDX-License-Identifier: Apache-2.0
// The entities of one client: their descriptions, their objects in DDS and what waits between the two, by object id;
// and how they are created, one at a time, since DDS may take a while to make one.
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

// News of an entity, queued by threads of the middleware, taken by the agent's. It names the entity by a number that is
// never used again, so that a signal of a deleted entity, or of one that was never completed, is ignored.
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

// A request that no server would receive yet, or a reply whose asker DDS has not matched yet: ROS 2 would lose them.
struct WaitingMessage {
  uint16_t request = 0;       // of a requester: id of the request
  SampleIdentity identity{};  // of a replier: of the request that is answered
  std::vector<uint8_t> payload;
  bool big_endian = false;
  Time until_ns = 0;  // given up then: a request that is carried out much later does harm
};

class WaitingMessages {
 public:
  bool empty() const { return messages_.empty(); }
  Time next_ns() const;  // when the first is given up
  // Returns how many of the oldest were evicted.
  size_t push(WaitingMessage message, const Limits &limits);
  // Offers each, oldest first, to `send`, which returns whether it was sent. Returns how many have expired.
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

// A sample that was taken from DDS and has no node yet.
struct Fetched {
  Sample sample;
  Time since_ns = 0;      // when it was taken
  bool repeated = false;  // sent in the former session and not acknowledged: never dropped
};

// From DDS to the client.
struct Delivery {
  std::shared_ptr<Signal> signal;  // of new data; never null
  Reading reading{};
  bool has_data = false;
  std::deque<Fetched> waiting{};  // the oldest first
  size_t waiting_bytes = 0;
  uint32_t in_flight = 0;
  uint64_t last_turn = 0;   // number of its last sample among those of all readers
  uint32_t generation = 0;  // of readings: nodes of former ones do not count
  uint32_t too_large = 0;   // samples dropped that the client has not been told of
  Time tell_ns = 0;         // when it may be again
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

// Requests of all clients that had waited for one service's server: how many have been sent since since_ns.
struct Release {
  size_t count = 0;
  Time since_ns = 0;
};

// By kind; dds is never null.
struct DescribedPart {};  // topic, publisher, subscriber: no object in DDS
struct ParticipantPart {
  std::shared_ptr<const int> domain;  // see Context::domains
  std::unique_ptr<Participant> dds;
};
struct WriterPart {
  std::unique_ptr<Writer> dds;
  Time reader_deadline_ns = 0;  // samples wait until then for a reader that knows this writer; 0: they do not wait
  bool has_written = false;     // a first sample, for such a reader to acknowledge
  Time refused_since_ns = 0;    // since when DDS refuses its samples; 0: it does not
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
  std::map<SampleIdentity, Time> taken{};  // requests without a reply, and when they were taken from DDS
  Replies replies{};
  WaitingMessages waiting{};
};

struct Entity {
  Definition definition;
  bool former = false;  // left by the client's former run, and not created again yet
  std::variant<DescribedPart, ParticipantPart, WriterPart, ReaderPart, RequesterPart, ReplierPart> part;

  template <class Part>
  Part *as() {
    return std::get_if<Part>(&part);
  }
  template <class Part>
  const Part *as() const {
    return std::get_if<Part>(&part);
  }
  Made *made() const;                // the object in DDS; null: there is none
  Source *source() const;            // null, as delivery: the client reads nothing of it
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
  // Null: its parent is unknown.
  const Entity *participant_of(const Definition &definition) const;
  // Also true when it needs none.
  bool has_parent(const Definition &definition) const;
  size_t size() const { return entities_.size(); }
  void add(uint16_t object, Entity entity) { entities_.emplace(object, std::move(entity)); }
  // With everything that it contains.
  void remove(uint16_t object);

  // The client was restarted: all are former ones until they are created again.
  void begin_anew();
  // Created again, and with it what it belongs to.
  void renew(uint16_t object);
  // Removes what conflicts with a topic's type: former entities, and those of `replaced`, which this topic replaces.
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
using Host = uint64_t;      // its machine or line, which a restart does not change; numbered by the I/O side too

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

  // For entities created from now on; null: names stay as the client gives them. Outlives this.
  void set_names(const Renaming *names) { names_ = names; }
  // Returns a TIDE_XRCE_STATUS_*; unset: DDS is making it, call finish later. fault: what is wrong, for a message that
  // also names the entity.
  std::optional<uint8_t> begin(const tide_xrce_create_t &body, uint8_t flags, uint8_t stream, std::string &fault);
  // The result for an entity that is no longer under way.
  uint8_t finish(std::string &fault);
  // DDS is still making an entity: the stream of its CREATE is blocked, and so are other creations of this client.
  bool is_under_way() const;
  bool is_begun() const { return pending_ != nullptr; }
  uint8_t stream() const { return pending_->stream; }
  bool is_of(uint8_t stream, tide_xrce_request_t request) const;
  void forget() { pending_.reset(); }
  // An entity is removed: it may be the parent of the pending one.
  void removes(uint16_t object);

 private:
  struct Pending {
    uint8_t stream = 0;
    tide_xrce_request_t request{};
    Entity entity{};
    bool orphaned = false;           // its parent was deleted meanwhile
    std::shared_ptr<Signal> signal;  // of its completion
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
