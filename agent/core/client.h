// SPDX-License-Identifier: Apache-2.0
// One client: its session and streams, the answers to its requests, and its liveness.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "core/delivery.h"
#include "core/diagnostics.h"
#include "core/entities.h"
#include "core/streams.h"
#include "tide/platform.h"

namespace tide::agent {

// The vendor id of stock agents, which stock clients expect in answers.
constexpr uint16_t kVendor = 0x010F;
constexpr uint8_t kVersionMajor = 1, kVersionMinor = 0;

// The INFO that answers a GET_INFO; unset if the GET_INFO is malformed. `known`: true if the client has a session.
std::optional<Encoded> info_for(const tide_xrce_submessage_t &question, bool known);

// Liveness of a client: when it is probed, and whether it is considered alive, silent or gone.
class Liveness {
 public:
  enum class State { kAlive, kSilent, kGone };

  // `announced_ns`: the silence after which the client wants to be probed; 0: it announced none. `timeout_ns` replaces
  // it in this case; 0: no probes.
  Liveness(const Limits &limits, Counters &counters, Time announced_ns, Time timeout_ns, Time now)
      : limits_(limits), counters_(counters), announced_ns_(announced_ns), timeout_ns_(timeout_ns), last_heard_(now) {}

  // Call this when the client's session restarts.
  void restart(Time announced_ns, Time timeout_ns, Time now);
  void heard(Time now);
  // The client has answered a request, so it can be expected to answer a probe.
  void answered() { answers_ = true; }
  bool answers() const { return answers_; }
  bool is_watched() const { return silence_ns() != 0; }
  State state() const { return state_; }
  Time last_heard() const { return last_heard_; }
  bool answers_probes() const { return announced_ns_ != 0 || answers_; }
  // Probes the client, unless another call did so less than probe_period_ns ago.
  void ask(Output &output, Time now);
  bool is_probe_due(Time now) const;
  // Handles expired timers. Returns when to call again. `output` may be null if the session has none yet: then no probe
  // is sent, but it counts as an unanswered one.
  Time poll(Output *output, Time now);

 private:
  void probe(Output &output);
  Time due_ns() const;  // time of the next probe; after the last probe, time at which the client counts as silent
  Time silence_ns() const { return announced_ns_ != 0 ? announced_ns_ : timeout_ns_; }

  const Limits &limits_;
  Counters &counters_;
  Time announced_ns_, timeout_ns_;
  Time last_heard_;
  Time asked_ns_ = 0;
  uint32_t unanswered_ = 0;
  State state_ = State::kAlive;
  bool answers_ = false;
};

class Client {
 public:
  struct Announcement {
    uint32_t key = 0;
    uint8_t session = 0;
    uint32_t message_bytes = 0;
    Time liveliness_ns = 0;           // announced by the client; 0: none
    Time timeout_ns = 0;              // applies if the client announces no liveliness; 0: never
    bool may_be_forged = false;       // true: the address of the client may be forged
    const Renaming *names = nullptr;  // null: names stay as the client gives them
    bool starts = false;              // true: the client's program was started for this session
    bool continues = false;           // true: the client had sessions before, possibly with a former agent
  };

  Client(Context &context, Endpoint endpoint, const Announcement &announcement, Time now);
  Client(const Client &) = delete;
  Client &operator=(const Client &) = delete;

  // Call this when the client opens its session again, or another one: streams restart, entities stay, and readers wait
  // for a new READ_DATA. If the session is the one that a client of tide opens next, it begins with the messages that
  // the client did not acknowledge in the old session. With any other session, the client may have restarted: waiting
  // messages are dropped, and entities that the client does not create again are deleted later. If the client has
  // certainly restarted, they are deleted even if it creates none.
  void resume(Endpoint endpoint, const Announcement &announcement, Time now);

  uint32_t key() const { return announcement_.key; }
  uint8_t session() const { return announcement_.session; }
  uint8_t former_session() const { return former_session_; }  // session id before a resume under another id; 0: none
  Time began() const { return began_; }                       // time at which the current session began
  Endpoint endpoint() const { return endpoint_; }
  // True if the client has no entities and has sent nothing since its CREATE_CLIENT.
  bool is_half_open() const { return entities_.size() == 0 && last_heard() == began_; }
  uint32_t epoch() const { return epoch_; }  // changes when the output restarts
  // The first call creates the Output. It is most of a session's memory, which a client that only opens sessions must
  // not occupy.
  Output &output();
  bool has_output() const { return output_ != nullptr; }
  Counters &counters() { return counters_; }  // sums over all sessions of the client
  const Counters &counters() const { return counters_; }
  ClientVitals vitals(Time now) const;  // without `place`, which the caller fills in
  size_t entity_count() const { return entities_.size(); }
  size_t unserved_requesters() const;  // number of service clients whose server DDS has not found
  Time last_heard() const { return liveness_.last_heard(); }
  Liveness::State liveness() const { return liveness_.state(); }
  bool is_closing() const { return closing_; }
  tide_xrce_request_t closing_request() const { return closing_request_; }
  bool answers_probes() const { return liveness_.answers_probes(); }
  void ask(Time now) { liveness_.ask(output(), now); }
  // True if nothing may be sent to the client until it sends a message: if its address is forged, an uninvolved host
  // would be flooded with data.
  bool is_paused() const;
  // True at the first call in each pause (see is_paused) of a client that reads, so that each pause is logged once.
  bool begins_pause();
  Time timeout_ns() const { return announcement_.timeout_ns; }
  void count_out(size_t bytes);

  // Handles a message of this client's session.
  void message(const tide_xrce_header_t &header, Bytes message, Time now);
  // Handles an event of an entity of this client; does nothing if the entity no longer exists.
  void wake(const Signal &signal, Time now);
  // Handles expired timers. Returns when to call again.
  Time poll(Time now);
  // Delivers messages for which nodes have become free.
  void serve(Time now);
  // sending: call this when the frame that the transmitter has chosen starts. sent: when it has been sent.
  void sending(Time now);
  void sent(Time now);

 private:
  void control_submessage(const tide_xrce_submessage_t &submessage, Time now);
  bool stream_submessage(uint8_t stream, const tide_xrce_submessage_t &submessage);
  void acknowledge(const tide_input_stream_t *stream);
  bool on_create(uint8_t stream, const tide_xrce_submessage_t &submessage);
  bool may_create(const tide_xrce_create_t &body, uint8_t flags);
  void tell(uint16_t object, const std::string &what) const;
  void on_delete(uint8_t stream, const tide_xrce_submessage_t &submessage);
  bool on_write(uint8_t stream, const tide_xrce_submessage_t &submessage);
  bool waits_for_reader(WriterPart *writer, uint8_t stream, uint32_t depth) const;
  bool write(Entity &entity, uint16_t request, Bytes payload, bool big_endian);
  bool offer_again();
  void on_read(uint8_t stream, const tide_xrce_submessage_t &submessage);
  void submit_answer(uint8_t id, Bytes body);
  void send_status(uint8_t stream, tide_xrce_request_t related, uint8_t status);
  void reset_streams();
  Time next_offer_ns(Time now) const;

  Context &context_;
  Counters counters_;
  uint64_t past_gaps_ = 0, past_repeated_ = 0;  // counts of ended streams
  Endpoint endpoint_;
  Announcement announcement_;
  uint8_t former_session_ = 0;
  Time began_ = 0;
  uint32_t epoch_ = 0;
  std::unique_ptr<Input> input_;
  std::unique_ptr<Output> output_;  // null if nothing was sent in this session
  Entities entities_;
  Creation creation_;
  Services services_;
  Readings readings_;
  Liveness liveness_;
  Time now_ = 0;                        // time of the call in progress
  std::shared_ptr<ClientTrace> trace_;  // null if not traced
  bool closing_ = false;
  tide_xrce_request_t closing_request_{};
  Time write_retry_ns_ = TIDE_FOREVER;  // time at which a sample that DDS has refused is offered again
  Time creations_paid_ns_ = 0;          // the budget for creations is used up to this time (may_create)
  Time creation_ns_ = 0;                // no creation is allowed before this time
  size_t unheard_bytes_ = 0;            // bytes sent since the client's last message
  bool was_paused_ = false;
  Time sweep_ns_ = TIDE_FOREVER;  // time at which entities of the client's former run are deleted unless they were
                                  // created again
};

}  // namespace tide::agent
