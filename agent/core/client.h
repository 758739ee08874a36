// SPDX-License-Identifier: Apache-2.0
// One client: its session and streams, the answers to what it asks, and its signs of life.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "core/context.h"
#include "core/creation.h"
#include "core/creation_budget.h"
#include "core/entities.h"
#include "core/input.h"
#include "core/liveness.h"
#include "core/output.h"
#include "core/readings.h"
#include "core/services.h"
#include "core/vitals.h"
#include "tide/platform.h"

namespace tide::agent {

class Client {
 public:
  struct Announcement {
    uint32_t key = 0;
    uint8_t session = 0;
    uint32_t message_bytes = 0;
    Time liveliness_ns = 0;           // announced by the client; 0: none
    Time timeout_ns = 0;              // of silence, for a client that announces none; 0: never
    bool may_be_forged = false;       // its address
    const Renaming *names = nullptr;  // null: as the client has them
    bool continues = false;           // what it began with an agent that is gone
  };

  Client(Context &context, Endpoint endpoint, const Announcement &announcement, Time now);
  Client(const Client &) = delete;
  Client &operator=(const Client &) = delete;

  // The same client opens its session again, or its next one: streams start anew, entities stay, readers wait to be
  // asked again. In its next session it is given first what it has not acknowledged in this one.
  void resume(Endpoint endpoint, const Announcement &announcement, Time now);

  uint32_t key() const { return announcement_.key; }
  uint8_t session() const { return announcement_.session; }
  uint8_t former_session() const { return former_session_; }  // before a resume under another id; 0: none
  Time began() const { return began_; }                       // when this session did
  Endpoint endpoint() const { return endpoint_; }
  bool is_half_open() const { return entities_.size() == 0 && last_heard() == began_; }  // said nothing since it came
  uint32_t epoch() const { return epoch_; }  // changes when output starts anew
  // Made when something is first sent: most of a session's memory, and who only opens sessions takes none of it.
  Output &output();
  bool has_output() const { return output_ != nullptr; }
  Counters &counters() { return counters_; }  // of all its sessions
  const Counters &counters() const { return counters_; }
  // Without its place.
  ClientVitals vitals(Time now) const;
  size_t entity_count() const { return entities_.size(); }
  size_t unserved_requesters() const;  // whose server DDS has not found
  Time last_heard() const { return liveness_.last_heard(); }
  bool is_closing() const { return closing_; }
  tide_xrce_request_t closing_request() const { return closing_request_; }
  bool answers_probes() const { return liveness_.answers_probes(); }
  // Asks for a sign of life, unless it was asked just now.
  void ask(Time now) { liveness_.ask(output(), now); }

  // Nothing is sent to it until it says something: it may not know that it has a session, and whoever is at its address
  // asked for nothing.
  bool is_paused() const;
  // True once for each time that what it reads no longer goes to it.
  bool begins_pause();
  Time timeout_ns() const { return announcement_.timeout_ns; }
  void count_out(size_t bytes);

  // A message of this client's session.
  void message(const tide_xrce_header_t &header, Bytes message, Time now);
  // An entity of this client, if it still is there, has data or peers.
  void wake(const Signal &signal, Time now);
  // Timers. Returns when to call again.
  Time poll(Time now);
  // Deliver what became possible since nodes were freed.
  void serve(Time now);
  // The frame that the transmitter has chosen begins to leave; it has left.
  void sending(Time now);
  void sent(Time now);
  Liveness::State liveness() const { return liveness_.state(); }

 private:
  void control_submessage(const tide_xrce_submessage_t &submessage, Time now);
  bool stream_submessage(uint8_t stream, const tide_xrce_submessage_t &submessage);
  void acknowledge(const tide_input_stream_t *stream);
  void refuse_fragments(uint8_t stream, const tide_xrce_submessage_t &submessage);
  bool on_create(uint8_t stream, const tide_xrce_submessage_t &submessage);
  void on_created(uint16_t object);
  void sweep();
  void on_delete(uint8_t stream, const tide_xrce_submessage_t &submessage);
  bool on_write(uint8_t stream, const tide_xrce_submessage_t &submessage);
  void on_read(uint8_t stream, const tide_xrce_submessage_t &submessage);
  void answer(uint8_t id, size_t length);
  void reset_streams();
  void keep_counts();

  void trace_write(uint8_t stream, uint16_t object);
  bool write(Entity &entity, uint16_t request, Bytes payload, bool big_endian);
  bool offer_again();
  bool may_create(const tide_xrce_create_t &body, uint8_t flags);
  Time next_offer_ns(Time now) const;
  bool may_wait(Entity &entity, uint8_t stream);
  bool waits_for_reader(Entity &entity, uint8_t stream) const;
  void send_status(uint8_t stream, tide_xrce_request_t related, uint8_t status);
  void node_done(void *owner, tide_node_outcome_t outcome);

  Context &context_;
  Counters counters_;
  uint64_t past_gaps_ = 0, past_repeated_ = 0;  // of streams that have ended
  Endpoint endpoint_;
  Announcement announcement_;
  uint8_t former_session_ = 0;
  Time began_ = 0;
  uint32_t epoch_ = 0;
  std::unique_ptr<Input> input_;
  std::unique_ptr<Output> output_;  // null: nothing has been sent in this session
  Entities entities_;
  Creation creation_;
  CreationBudget creation_budget_;  // of all sessions of this client
  Services services_;
  Readings readings_;
  Liveness liveness_;
  Time now_ = 0;                        // of the call in progress
  std::array<uint8_t, 36> answer_{};    // that is being made
  std::shared_ptr<ClientTrace> trace_;  // null: nobody asked
  bool closing_ = false;
  tide_xrce_request_t closing_request_{};
  Time write_retry_ns_ = TIDE_FOREVER;  // when a sample that DDS refused is offered again
  Time creation_ns_ = 0;                // before, nothing more is made
  size_t unheard_bytes_ = 0;            // sent since it said something
  bool was_paused_ = false;
  Time sweep_ns_ = TIDE_FOREVER;  // when what the program before this one had, and this one has not made, goes
};

}  // namespace tide::agent
