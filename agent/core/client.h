// SPDX-License-Identifier: Apache-2.0
// One client: its session, streams and entities, and the delivery of what its readers asked for.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/definition.h"
#include "core/domains.h"
#include "core/input.h"
#include "core/limits.h"
#include "core/middleware.h"
#include "core/output.h"
#include "core/waiting.h"
#include "tide/platform.h"

namespace tide::agent {

// The vendor id that every stock client has seen so far.
constexpr uint16_t kVendor = 0x010F;
constexpr uint8_t kVersionMajor = 1, kVersionMinor = 0;

// The body of the INFO that answers a GET_INFO; 0: malformed.
size_t answer_get_info(const tide_xrce_submessage_t &question, bool known, std::span<uint8_t> answer);

using Endpoint = uint64_t;  // where a client is: chosen by the side that does I/O
using Host = uint64_t;      // what it runs on, the same when it has been restarted: chosen by that side too

// News of an entity, queued by threads of the middleware, taken by the thread of the agent. It names the entity by a
// number that no other ever has, and never points to it: what is gone by then, or never came about, is not found.
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

// What all clients share.
struct Context {
  Middleware &middleware;
  const Limits &limits;
  const Profiles &profiles;
  Counters &counters;
  std::shared_ptr<SignalQueue> signals;
  std::function<int64_t()> wall_clock_ns;
  std::optional<int> domain;  // instead of what clients ask for
  int default_domain = 0;     // for those that ask for 0
  std::function<void(const std::string &)> log;
  std::function<Time(Endpoint)> heartbeat_delay_ns;
  uint32_t next_epoch = 1;
  uint64_t next_entity = 1;
  Domains domains = {};
};

class Client {
 public:
  struct Announcement {
    uint32_t key = 0;
    uint8_t session = 0;
    uint32_t message_bytes = 0;
    Time liveliness_ns = 0;  // announced by the client; 0: none
    bool continues = false;  // what it began with an agent that is gone
  };

  Client(Context &context, Endpoint endpoint, const Announcement &announcement, Time now);
  Client(const Client &) = delete;
  Client &operator=(const Client &) = delete;

  // The same client opens its session again, or its next one: streams start anew, entities stay, readers wait to be
  // asked again.
  void resume(Endpoint endpoint, const Announcement &announcement, Time now);

  uint32_t key() const { return announcement_.key; }
  uint8_t session() const { return announcement_.session; }
  uint8_t former_session() const { return former_session_; }  // before a resume under another id; 0: none
  Time began() const { return began_; }                       // when this session did
  Endpoint endpoint() const { return endpoint_; }
  bool is_half_open() const { return entities_.empty() && last_heard_ == began_; }  // said nothing since it came
  uint32_t epoch() const { return epoch_; }                                         // changes when output starts anew
  Output &output() { return *output_; }
  size_t entity_count() const { return entities_.size(); }
  Time last_heard() const { return last_heard_; }
  bool is_closing() const { return closing_; }
  tide_xrce_request_t closing_request() const { return closing_request_; }
  bool answers_probes() const { return announcement_.liveliness_ns != 0 || acknowledged_; }
  // Asks for a sign of life. Returns false when it was asked just now.
  bool ask(Time now);

  // A message of this client's session.
  void message(const tide_xrce_header_t &header, Bytes message, Time now);
  // An entity of this client, if it still is there, has data or peers.
  void wake(const Signal &signal, Time now);
  // Timers. Returns when to call again.
  Time poll(Time now);
  // Deliver what became possible since nodes were freed.
  void serve(Time now);
  enum class Liveliness { kAlive, kSilent, kGone };
  Liveliness liveliness() const { return liveliness_; }

 private:
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
  struct Entity {
    Definition definition;
    Domains::Use domain;  // of a participant
    std::unique_ptr<Participant> participant;
    std::unique_ptr<Writer> writer;
    Time reader_deadline_ns = 0;            // until then samples wait for a first reader; 0: they do not
    Time refused_since_ns = 0;              // DDS takes nothing of this writer; 0: it does
    std::unique_ptr<Source> source;         // of readers, requesters and repliers
    Requester *requester = nullptr;         // the same object as source
    Replier *replier = nullptr;             // the same object as source
    std::map<uint64_t, uint16_t> requests;  // of a requester: sent number to request id
    WaitingMessages waiting;                // of requesters and repliers
    size_t released = 0;                    // of them since release_ns
    Time release_ns = 0;
    std::shared_ptr<Signal> signal;
    Reading reading;
    bool has_data = false;
    std::optional<Sample> stalled;  // taken, no node free
    uint32_t in_flight = 0;
    uint32_t generation = 0;  // of readings: nodes of older ones no longer count
    Made *made() const;       // what DDS makes of it; null: nothing
  };
  // Its stream stands still until DDS has made the entity, and so do other creations of this client.
  struct Creation {
    uint8_t stream = 0;
    tide_xrce_request_t request{};
    Entity entity;
    bool orphaned = false;           // its parent was deleted meanwhile
    std::shared_ptr<Signal> signal;  // that it is made
  };

  void control_submessage(const tide_xrce_submessage_t &submessage, Time now);
  bool stream_submessage(uint8_t stream, const tide_xrce_submessage_t &submessage);
  void acknowledge(const tide_input_stream_t *stream);
  void refuse_fragments(uint8_t stream, const tide_xrce_submessage_t &submessage);
  bool on_create(uint8_t stream, const tide_xrce_submessage_t &submessage);
  void on_delete(uint8_t stream, const tide_xrce_submessage_t &submessage);
  bool on_write(uint8_t stream, const tide_xrce_submessage_t &submessage);
  void on_read(uint8_t stream, const tide_xrce_submessage_t &submessage);
  void on_get_info(const tide_xrce_submessage_t &submessage);
  void on_timestamp(const tide_xrce_submessage_t &submessage);
  void reset_streams();
  void forget_requests();

  // Unset: later.
  std::optional<uint8_t> create(const tide_xrce_create_t &body, uint8_t flags, uint8_t stream, std::string &fault);
  bool is_creating() const;
  uint8_t finish_creation();
  uint8_t instantiate(uint16_t object, Definition &definition, Entity &entity);
  uint8_t find_topic(Definition &definition, const Entity &participant) const;
  Entity *participant_of(const Definition &definition);
  const Entity *find_participant(uint16_t object) const;
  bool has_parent(const Definition &definition) const;
  size_t count(uint8_t kind) const;
  Entity *find(uint16_t object);
  void remove(uint16_t object);
  Wake wake_of(std::shared_ptr<Signal> &signal, uint16_t object);

  bool write(Entity &entity, uint16_t request, Bytes payload, bool big_endian);
  bool offer_again();
  bool may_wait(Entity &entity, uint8_t stream);
  bool waits_for_reader(Entity &entity, uint8_t stream) const;
  bool write_to_service(Entity &entity, uint16_t request, Bytes payload, bool big_endian);
  bool is_ready(Entity &entity, const WaitingMessage &message);
  bool may_release(Entity &entity);
  void send_to_service(Entity &entity, const WaitingMessage &message);
  void flush_waiting(Entity &entity);
  void flush_all_waiting(Time now);
  void send_status(uint8_t stream, tide_xrce_request_t related, uint8_t status);

  void rank_readers();
  void serve_entity(Entity &entity, uint16_t object, Time now);
  bool fetch(Entity &entity);
  int deliver(Entity &entity, uint16_t object, Time now);
  void account(Reading &reading, size_t payload_bytes, Time now);
  void node_done(void *owner, tide_node_outcome_t outcome);
  void watch(Time now);
  void probe();

  Context &context_;
  Endpoint endpoint_;
  Announcement announcement_;
  uint8_t former_session_ = 0;
  Time began_ = 0;
  uint32_t epoch_ = 0;
  std::unique_ptr<Input> input_;
  std::unique_ptr<Output> output_;
  std::map<uint16_t, Entity> entities_;
  std::unique_ptr<Creation> creation_;
  std::vector<uint16_t> readers_;  // active ones, most urgent stream first
  Time now_ = 0;                   // of the call in progress
  Time last_heard_ = 0;
  Time next_probe_ns_ = 0;
  Time asked_ns_ = 0;
  uint32_t probes_unanswered_ = 0;
  Liveliness liveliness_ = Liveliness::kAlive;
  bool acknowledged_ = false;  // has answered on a reliable stream: it will answer a probe
  bool closing_ = false;
  tide_xrce_request_t closing_request_{};
  uint32_t generation_ = 0;
  size_t data_nodes_ = 0;
  Time readers_next_ns_ = 0;
  Time write_retry_ns_ = TIDE_FOREVER;   // when a sample that DDS refused is offered again
  Time waiting_next_ns_ = TIDE_FOREVER;  // when the next message to a service is given up
};

}  // namespace tide::agent
