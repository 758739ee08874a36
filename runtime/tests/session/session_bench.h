// SPDX-License-Identifier: Apache-2.0
// A session in virtual time on a wire in memory, and a small agent at its other end that can be slow, lossy, refuse,
// die and come back. Everything random is drawn from one seed.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "daemon_memory.h"
#include "tide/session.h"
#include "tide/status.h"

namespace bench {

using Bytes = std::vector<uint8_t>;
constexpr int64_t ms = 1'000'000;
constexpr int64_t s = 1000 * ms;

struct Timer {
  int64_t at_ns;
  std::function<void()> action;
};

// The virtual time and its events, in order.
class Clock {
 public:
  int64_t now_ns = 5 * s;
  void at(int64_t time_ns, std::function<void()> action) {
    timers_.emplace(std::make_pair(time_ns, order_++), std::move(action));
  }
  int64_t next_ns() const { return timers_.empty() ? TIDE_FOREVER : timers_.begin()->first.first; }
  bool run_next(int64_t limit_ns) {
    if (next_ns() > limit_ns) return false;
    auto first = timers_.begin();
    now_ns = std::max(now_ns, first->first.first);
    auto action = std::move(first->second);
    timers_.erase(first);
    action();
    return true;
  }

 private:
  std::map<std::pair<int64_t, uint64_t>, std::function<void()>> timers_;
  uint64_t order_ = 0;
};

inline Bytes message(uint8_t session, uint8_t stream, uint16_t sequence, uint32_t key) {
  Bytes bytes(8);
  const tide_xrce_header_t header = {session, stream, sequence, key};
  bytes.resize(tide_xrce_put_header(bytes.data(), &header));
  return bytes;
}

inline void append(Bytes &bytes, uint8_t id, uint8_t flags, const Bytes &body) {
  while (bytes.size() % 4 != 0) bytes.push_back(0);
  uint8_t header[4];
  tide_xrce_put_submessage_header(header, id, flags, static_cast<uint16_t>(body.size()));
  bytes.insert(bytes.end(), header, header + 4);
  bytes.insert(bytes.end(), body.begin(), body.end());
}

inline Bytes body_of(const std::function<void(tide_cdr_t *)> &put) {
  Bytes body(2048);
  tide_cdr_t cdr;
  tide_cdr_writer(&cdr, body.data(), body.size());
  put(&cdr);
  EXPECT_EQ(cdr.status, TIDE_OK);
  body.resize(cdr.position);
  return body;
}

struct Seen {  // a submessage that reached the agent
  uint8_t id, flags, stream;
  Bytes body;
};

struct Options {
  uint64_t seed = 1;
  double loss = 0;  // probability of loss for each message, in both directions
  uint16_t mtu = 512;
  uint8_t session = 0x81;
  size_t small_nodes = 24, large_nodes = 4;
  int64_t wire_ns_per_byte = 1000;
  int64_t latency_ns = 300'000;
  uint8_t object_stream = 0;
  size_t slots = 12;
};

// How the bench polls the session. Either as after a reception, followed by a whole poll that must find no work; or
// only by whole polls; or only as after a reception.
enum class Polls { kBoth, kWhole, kReceived };

class Bench;

// The agent: the part of DDS-XRCE that is needed to check a client. It shares no code with the shipped agent.
class Agent {
 public:
  Agent(Clock &clock, std::function<void(const Bytes &)> send) : clock_(clock), send_(std::move(send)) {}

  bool running = true;
  bool mute_info = false;
  bool mute_acknacks = false;
  uint8_t refuse_client = 0;
  uint8_t version_major = 1;
  int64_t creation_ns = 500'000;
  std::map<uint16_t, uint8_t> refuse_object;  // id -> status
  std::set<uint16_t> objects;
  std::map<uint16_t, tide_xrce_read_data_t> reads;        // indexed by object
  std::vector<std::pair<uint16_t, std::string>> samples;  // writer, payload
  std::vector<Seen> seen;
  std::vector<tide_xrce_info_t> infos;
  unsigned create_clients = 0, deletes_of_client = 0, writes_to_unknown = 0;
  tide_xrce_create_client_t client{};
  int64_t wall_offset_ns = 1'700'000'000 * s;
  int64_t reply_delay_ns = 0;

  void die() {
    running = false;
    known_ = false;
    objects.clear();
    reads.clear();
    forget_streams();
    ++life_;
  }
  void live() { running = true; }
  bool knows_client() const { return known_; }

  void receive(const Bytes &bytes) {
    if (!running) return;
    tide_xrce_header_t header;
    const int header_bytes = tide_xrce_get_header(bytes.data(), bytes.size(), &header);
    ASSERT_GT(header_bytes, 0);
    if (header.stream == 0) {
      handle_all(header, bytes, static_cast<size_t>(header_bytes));
    } else if (known_ && header.session == client.session) {
      receive_stream(header, bytes, static_cast<size_t>(header_bytes));
    }
  }

  // Data for a reader, on the stream that the READ_DATA requested.
  void publish(uint16_t object, const std::string &payload, uint8_t format = 0) {
    if (!running || reads.count(object) == 0) return;
    const tide_xrce_read_data_t &read = reads.at(object);
    Bytes body = body_of([&](tide_cdr_t *cdr) { tide_xrce_put_request(cdr, read.request); });
    body.insert(body.end(), payload.begin(), payload.end());
    send_on(read.stream, TIDE_XRCE_DATA, static_cast<uint8_t>(TIDE_XRCE_FLAG_LITTLE_ENDIAN | format), body);
  }
  void ask_client(uint16_t request) {
    send_control(client.session, TIDE_XRCE_GET_INFO, body_of([&](tide_cdr_t *cdr) {
                   const tide_xrce_get_info_body_t body = {{request, TIDE_XRCE_OBJECT_CLIENT}, 1};
                   tide_xrce_put_get_info(cdr, &body);
                 }));
  }
  void send_control(uint8_t session, uint8_t id, const Bytes &body) {
    Bytes bytes = message(session, 0, 0, client.key);
    append(bytes, id, TIDE_XRCE_FLAG_LITTLE_ENDIAN, body);
    send_(bytes);
  }
  // True if everything that was published reliably has been acknowledged.
  bool is_idle() const {
    for (const auto &[id, stream] : out_)
      if (!stream.history.empty()) return false;
    return true;
  }

 private:
  struct In {
    tide_input_stream_t stream;
    std::map<uint16_t, Bytes> held;
    Bytes fragments;
    bool started = false;
    uint16_t next_best_effort = 0;
  };
  struct Out {
    std::map<uint32_t, Bytes> history;  // by a running number whose low 16 bits are the sequence number
    uint32_t next = 0, first = 0;
    bool heartbeat = false;
  };

  void forget_streams() {
    in_.clear();
    out_.clear();
  }

  void handle_all(const tide_xrce_header_t &header, const Bytes &bytes, size_t position) {
    tide_xrce_submessage_t submessage;
    int more;
    while ((more = tide_xrce_next_submessage(bytes.data(), bytes.size(), &position, &submessage)) == 1)
      handle(header, submessage);
    EXPECT_EQ(more, 0);
  }

  void receive_stream(const tide_xrce_header_t &header, const Bytes &bytes, size_t position) {
    In &in = in_[header.stream];
    if (!in.started) {
      in.started = true;
      tide_input_stream_init(&in.stream, header.stream, 16);
    }
    if (!TIDE_STREAM_IS_RELIABLE(header.stream)) {
      if (tide_input_stream_arrive(&in.stream, header.sequence) == TIDE_STREAM_DELIVER) {
        handle_all(header, bytes, position);
        tide_input_stream_advance(&in.stream);
      }
      return;
    }
    const tide_stream_verdict_t verdict = tide_input_stream_arrive(&in.stream, header.sequence);
    if (verdict == TIDE_STREAM_HOLD) in.held[header.sequence] = bytes;
    if (verdict == TIDE_STREAM_DELIVER) {
      Bytes current = bytes;
      for (;;) {
        tide_xrce_header_t of_current;
        const int start = tide_xrce_get_header(current.data(), current.size(), &of_current);
        handle_all(of_current, current, static_cast<size_t>(start));
        if (in_.count(header.stream) == 0) return;
        if (!tide_input_stream_advance(&in.stream)) break;
        current = in.held.at(in.stream.next);
        in.held.erase(in.stream.next);
      }
    }
    acknowledge(in.stream);
  }

  void acknowledge(tide_input_stream_t &stream) {
    if (mute_acknacks) return;
    const tide_xrce_acknack_t body = {stream.next, tide_input_stream_missing(&stream), stream.id};
    send_control(client.session, TIDE_XRCE_ACKNACK,
                 body_of([&](tide_cdr_t *cdr) { tide_xrce_put_acknack(cdr, &body); }));
  }

  void handle(const tide_xrce_header_t &header, const tide_xrce_submessage_t &submessage) {
    tide_cdr_t cdr;
    tide_cdr_reader(&cdr, submessage.body, submessage.body_bytes, false);
    if (submessage.id != TIDE_XRCE_FRAGMENT)
      seen.push_back({submessage.id, submessage.flags, header.stream,
                      Bytes(submessage.body, submessage.body + submessage.body_bytes)});
    switch (submessage.id) {
      case TIDE_XRCE_CREATE_CLIENT: return on_create_client(&cdr);
      case TIDE_XRCE_GET_INFO: return on_get_info(header, &cdr);
      case TIDE_XRCE_TIMESTAMP: return on_timestamp(header, &cdr);
      default: break;
    }
    if (!known_ || header.session != client.session) {
      if (submessage.id == TIDE_XRCE_DELETE) on_delete(header, &cdr);
      return;
    }
    switch (submessage.id) {
      case TIDE_XRCE_CREATE: return on_create(header, &cdr);
      case TIDE_XRCE_DELETE: return on_delete(header, &cdr);
      case TIDE_XRCE_WRITE_DATA: return on_write(submessage, &cdr);
      case TIDE_XRCE_READ_DATA: return on_read(header, &cdr);
      case TIDE_XRCE_ACKNACK: return on_acknack(&cdr);
      case TIDE_XRCE_HEARTBEAT: return on_heartbeat(&cdr);
      case TIDE_XRCE_FRAGMENT: return on_fragment(header, submessage);
      case TIDE_XRCE_INFO: {
        tide_xrce_info_t info;
        tide_xrce_get_info(&cdr, &info);
        infos.push_back(info);
        return;
      }
      default: ADD_FAILURE() << "the client sent submessage " << int(submessage.id);
    }
  }

  void on_create_client(tide_cdr_t *cdr) {
    tide_xrce_get_create_client(cdr, &client);
    ASSERT_EQ(cdr->status, TIDE_OK);
    ++create_clients;
    const tide_xrce_status_agent_t answer = {refuse_client, 0, version_major, 0, 0x010F, true};
    if (refuse_client == 0 && version_major == 1) {
      known_ = true;
      ++life_;
      forget_streams();
    }
    send_control(client.session, TIDE_XRCE_STATUS_AGENT,
                 body_of([&](tide_cdr_t *out) { tide_xrce_put_status_agent(out, &answer); }));
  }

  void on_get_info(const tide_xrce_header_t &header, tide_cdr_t *cdr) {
    tide_xrce_get_info_body_t body;
    tide_xrce_get_get_info(cdr, &body);
    if (mute_info) return;
    const bool ours = known_ && header.session == client.session;
    const tide_xrce_info_t info = {body.request, 0, static_cast<uint8_t>(ours), 0x010F, 1, 0};
    Bytes bytes = message(header.session, 0, 0, header.key);
    append(bytes, TIDE_XRCE_INFO, 1, body_of([&](tide_cdr_t *out) { tide_xrce_put_info(out, &info); }));
    send_(bytes);
  }

  void on_timestamp(const tide_xrce_header_t &header, tide_cdr_t *cdr) {
    const tide_xrce_time_t originate = tide_xrce_get_timestamp(cdr);
    const int64_t received_ns = clock_.now_ns + wall_offset_ns;
    const auto life = life_;
    clock_.at(clock_.now_ns + reply_delay_ns, [=, this] {
      if (life != life_) return;
      const tide_xrce_timestamp_reply_t reply = {tide_xrce_time_from_ns(received_ns + 10'000),
                                                 tide_xrce_time_from_ns(received_ns), originate};
      send_control(header.session, TIDE_XRCE_TIMESTAMP_REPLY,
                   body_of([&](tide_cdr_t *out) { tide_xrce_put_timestamp_reply(out, &reply); }));
    });
  }

  void send_status(const tide_xrce_header_t &header, tide_xrce_request_t related, uint8_t status) {
    const tide_xrce_status_body_t body = {related, status, 0};
    const Bytes bytes = body_of([&](tide_cdr_t *cdr) { tide_xrce_put_status(cdr, &body); });
    const auto life = life_;
    clock_.at(clock_.now_ns + creation_ns, [=, this] {
      if (life != life_) return;
      if (header.stream == 0)
        send_control(header.session, TIDE_XRCE_STATUS, bytes);
      else
        send_on(header.stream, TIDE_XRCE_STATUS, 1, bytes);
    });
  }

  void on_create(const tide_xrce_header_t &header, tide_cdr_t *cdr) {
    tide_xrce_create_t create;
    tide_xrce_get_create(cdr, &create);
    ASSERT_EQ(cdr->status, TIDE_OK);
    uint8_t status = 0;
    if (refuse_object.count(create.request.object))
      status = refuse_object[create.request.object];
    else if (create.object.kind != TIDE_XRCE_KIND_PARTICIPANT && objects.count(create.object.parent) == 0)
      status = TIDE_XRCE_STATUS_ERR_UNKNOWN_REFERENCE;
    else
      objects.insert(create.request.object);
    send_status(header, create.request, status);
  }

  void on_delete(const tide_xrce_header_t &header, tide_cdr_t *cdr) {
    const tide_xrce_request_t request = tide_xrce_get_request(cdr);
    if (request.object == TIDE_XRCE_OBJECT_CLIENT) {
      ++deletes_of_client;
      send_status(header, request, 0);
      known_ = false;
      objects.clear();
      reads.clear();
      return;
    }
    send_status(header, request, objects.erase(request.object) != 0 ? 0 : TIDE_XRCE_STATUS_ERR_UNKNOWN_REFERENCE);
  }

  void on_write(const tide_xrce_submessage_t &submessage, tide_cdr_t *cdr) {
    const tide_xrce_request_t request = tide_xrce_get_request(cdr);
    if (objects.count(request.object) == 0) {
      ++writes_to_unknown;
      return;
    }
    samples.emplace_back(request.object, std::string(submessage.body + 4, submessage.body + submessage.body_bytes));
  }

  void on_read(const tide_xrce_header_t &header, tide_cdr_t *cdr) {
    tide_xrce_read_data_t read;
    tide_xrce_get_read_data(cdr, &read);
    ASSERT_EQ(cdr->status, TIDE_OK);
    if (objects.count(read.request.object) == 0)
      send_status(header, read.request, TIDE_XRCE_STATUS_ERR_UNKNOWN_REFERENCE);
    else if (read.max_samples == 0)
      reads.erase(read.request.object);
    else
      reads[read.request.object] = read;
  }

  void on_fragment(const tide_xrce_header_t &header, const tide_xrce_submessage_t &submessage) {
    Bytes &whole = in_[header.stream].fragments;
    whole.insert(whole.end(), submessage.body, submessage.body + submessage.body_bytes);
    if ((submessage.flags & TIDE_XRCE_FLAG_LAST_FRAGMENT) == 0) return;
    const Bytes complete = std::move(whole);
    whole.clear();
    handle_all(header, complete, 0);
  }

  void on_heartbeat(tide_cdr_t *cdr) {
    tide_xrce_heartbeat_t body;
    tide_xrce_get_heartbeat(cdr, &body);
    In &in = in_[body.stream];
    if (!in.started) {
      in.started = true;
      tide_input_stream_init(&in.stream, body.stream, 16);
    }
    tide_input_stream_heartbeat(&in.stream, body.first_unacknowledged, body.last);
    acknowledge(in.stream);
  }

  void transmit(uint8_t id, const Bytes &bytes) {
    (void)id;
    send_(bytes);
  }

  void send_on(uint8_t id, uint8_t submessage, uint8_t flags, const Bytes &body) {
    Out &out = out_[id];
    Bytes whole;
    append(whole, submessage, flags, body);
    const size_t room = static_cast<size_t>(client.mtu) - tide_xrce_header_bytes(client.session);
    std::vector<Bytes> messages;
    if (whole.size() <= room) {
      Bytes bytes = message(client.session, id, static_cast<uint16_t>(out.next + messages.size()), client.key);
      bytes.insert(bytes.end(), whole.begin(), whole.end());
      messages.push_back(bytes);
    } else {
      for (size_t at = 0; at < whole.size(); at += room - 4) {
        const size_t end = std::min(whole.size(), at + room - 4);
        Bytes bytes = message(client.session, id, static_cast<uint16_t>(out.next + messages.size()), client.key);
        append(bytes, TIDE_XRCE_FRAGMENT,
               static_cast<uint8_t>(1 | (end == whole.size() ? TIDE_XRCE_FLAG_LAST_FRAGMENT : 0)),
               Bytes(whole.begin() + static_cast<long>(at), whole.begin() + static_cast<long>(end)));
        messages.push_back(bytes);
      }
    }
    for (const Bytes &bytes : messages) {
      if (TIDE_STREAM_IS_RELIABLE(id)) {
        out.history[out.next] = bytes;
        if (out.next - out.first < 16) send_(bytes);
      } else {
        send_(bytes);
      }
      ++out.next;
    }
    if (TIDE_STREAM_IS_RELIABLE(id)) watch(id);
  }

  // Sends HEARTBEATs as long as a message is not acknowledged.
  void watch(uint8_t id) {
    Out &out = out_[id];
    if (out.heartbeat) return;
    out.heartbeat = true;
    const auto life = life_;
    clock_.at(clock_.now_ns + 50 * ms, [=, this] {
      if (life != life_) return;
      Out &stream = out_[id];
      stream.heartbeat = false;
      if (stream.history.empty()) return;
      const uint32_t last = std::min(stream.next, stream.first + 16) - 1;
      const tide_xrce_heartbeat_t body = {static_cast<uint16_t>(stream.first), static_cast<uint16_t>(last), id};
      send_control(client.session, TIDE_XRCE_HEARTBEAT,
                   body_of([&](tide_cdr_t *cdr) { tide_xrce_put_heartbeat(cdr, &body); }));
      watch(id);
    });
  }

  void on_acknack(tide_cdr_t *cdr) {
    tide_xrce_acknack_t body;
    tide_xrce_get_acknack(cdr, &body);
    Out &out = out_[body.stream];
    const int16_t count = tide_sequence_distance(body.first_unacknowledged, static_cast<uint16_t>(out.first));
    if (count < 0) return;
    ASSERT_LE(out.first + static_cast<uint32_t>(count), out.next) << "acknowledges what was never sent";
    for (uint32_t n = 0; n < static_cast<uint32_t>(count); ++n) {
      out.history.erase(out.first++);
      const uint32_t opened = out.first + 15;
      if (out.history.count(opened)) send_(out.history.at(opened));
    }
    for (uint32_t n = 0; n < 16; ++n)
      if ((body.missing >> n & 1) && out.history.count(out.first + n)) send_(out.history.at(out.first + n));
  }

  Clock &clock_;
  std::function<void(const Bytes &)> send_;
  bool known_ = false;
  uint64_t life_ = 0;
  std::map<uint8_t, In> in_;
  std::map<uint8_t, Out> out_;
};

class Bench {
 public:
  explicit Bench(Options options = {})
      : options_(options), random_(options.seed), agent(clock, [this](const Bytes &bytes) { to_client(bytes); }) {
    platform_ = {this, now, nullptr, enter, leave, nullptr, nullptr, event_init, event_set, event_wait};
    session_ = std::make_unique<tide_session_t>();
    give_memory();
    config.daemon.platform = &platform_;
    config.key = 0xAAAABBBB;
    config.session = options.session;
    config.objects = objects_;
    config.object_count = std::size(objects_);
    config.mtu = options.mtu;
    config.object_stream = options.object_stream;
    config.on_state = [](void *context, tide_session_state_t state) {
      static_cast<Bench *>(context)->states.push_back(state);
    };
    config.context = this;
    pump = {[](void *context, int64_t deadline_ns) { static_cast<Bench *>(context)->run_to(deadline_ns); }, this};
  }
  ~Bench() { EXPECT_EQ(critical_, 0); }

  // Call this after changing config.
  void start() {
    ASSERT_EQ(tide_session_init(session(), &config), TIDE_OK);
    attach();
  }
  void attach() {
    const tide_link_t link = {this, start_frame, nullptr, nullptr, 0};
    ASSERT_EQ(tide_daemon_attach_link(&session()->daemon, &link, 0), TIDE_OK);
  }
  void open() {
    start();
    tide_session_open(session());
  }
  void connect() {
    open();
    ASSERT_EQ(tide_session_wait_state(session(), TIDE_SESSION_READY, clock.now_ns + 30 * s, &pump), TIDE_OK);
  }

  tide_session_t *session() { return session_.get(); }

  // Polls like a link after a reception. If the session rests and therefore skips the poll, a whole poll must find no
  // work. A HEARTBEAT that is sent meanwhile may be what causes the request.
  int64_t poll() {
    if (polls == Polls::kWhole) return tide_session_poll(session());
    if (polls == Polls::kReceived) return tide_session_poll_received(session());
    const auto &counters = session()->daemon.transmitter.counters;
    const auto heartbeats = counters.heartbeats;
    const int64_t received_ns = tide_session_poll_received(session());
    tide_session_t before = *session();
    const int64_t poll_ns = tide_session_poll(session());
    before.deadline_ns = session()->deadline_ns;
    before.poll_refused = session()->poll_refused;  // set by the interrupted poll
    before.counters.polls = session()->counters.polls;
    before.daemon.transmitter.counters.refused_full = counters.refused_full;  // it may try again to get a reserve
    before.daemon.transmitter.counters.refused_kept = counters.refused_kept;
    before.daemon.transmitter.heartbeat_least_ns = session()->daemon.transmitter.heartbeat_least_ns;  // a lower bound
    if (poll_ns <= clock.now_ns || counters.heartbeats != heartbeats) return poll_ns;
    EXPECT_EQ(std::memcmp(&before, session(), sizeof before), 0) << "at " << clock.now_ns << " ns it had work";
    if (interrupts) return poll_ns;  // a call that was interrupted has not yet returned its next poll time
    EXPECT_GE(poll_ns, received_ns) << "at " << clock.now_ns << " ns";
    return poll_ns;
  }

  // Processes one event and all reactions to it, at most until limit_ns.
  void step(int64_t limit_ns) {
    const int64_t poll_ns = poll();
    if (clock.next_ns() <= std::min(poll_ns, limit_ns))
      clock.run_next(limit_ns);
    else
      clock.now_ns = std::max(clock.now_ns, std::min(poll_ns, limit_ns));
    if (poll_ns <= clock.now_ns && ++idle_polls_ > 100000) FAIL() << "poll asks for itself without end";
    if (poll_ns > clock.now_ns) idle_polls_ = 0;
    execute();
  }
  void run_to(int64_t until_ns) { step(until_ns); }
  void run(int64_t duration_ns) {
    const int64_t until_ns = clock.now_ns + duration_ns;
    while (clock.now_ns < until_ns && !testing::Test::HasFatalFailure()) step(until_ns);
  }
  template <class Condition> bool run_until(Condition condition, int64_t limit_ns = 60 * s) {
    const int64_t until_ns = clock.now_ns + limit_ns;
    bool met = condition();  // evaluated once in each step, because it may have side effects
    for (; !met && clock.now_ns < until_ns && !testing::Test::HasFatalFailure(); met = condition()) step(until_ns);
    return met;
  }
  void execute() {
    while (executor_runs && tide_daemon_most_urgent(&session()->daemon) != TIDE_PRIORITY_NONE)
      tide_daemon_process_most_urgent(&session()->daemon);
  }

  int write(uint16_t object, const std::string &payload, bool reliable, tide_priority_t priority) {
    tide_write_t out;
    const int status =
        tide_session_write_begin(session(), &out, object, reliable, priority, static_cast<uint32_t>(payload.size()));
    if (status != TIDE_OK) return status;
    tide_cdr_put_bytes(&out.cdr, payload.data(), payload.size());
    return tide_session_write_end(&out);
  }

  // The objects of a publisher and of a subscription below one participant.
  tide_object_t *add(uint8_t kind, uint16_t parent, uint16_t topic = 0) {
    owned_.push_back(std::make_unique<tide_object_t>());
    tide_object_t *object = owned_.back().get();
    object->description.kind = kind;
    object->description.representation = TIDE_XRCE_BY_XML;
    object->description.text = {"<dds/>", 6};
    object->description.parent = parent;
    object->description.topic = topic;
    EXPECT_EQ(tide_session_add_object(session(), object), TIDE_OK);
    return object;
  }
  struct Writers {
    tide_object_t *participant, *topic, *publisher, *subscriber;
    std::vector<tide_object_t *> writers, readers;
  };
  Writers add_program(size_t writers, size_t readers = 0) {
    Writers program{};
    program.participant = add(TIDE_XRCE_KIND_PARTICIPANT, 0);
    program.topic = add(TIDE_XRCE_KIND_TOPIC, program.participant->id);
    program.publisher = add(TIDE_XRCE_KIND_PUBLISHER, program.participant->id);
    program.subscriber = add(TIDE_XRCE_KIND_SUBSCRIBER, program.participant->id);
    for (size_t i = 0; i < writers; ++i)
      program.writers.push_back(add(TIDE_XRCE_KIND_DATAWRITER, program.publisher->id, program.topic->id));
    for (size_t i = 0; i < readers; ++i)
      program.readers.push_back(add(TIDE_XRCE_KIND_DATAREADER, program.subscriber->id, program.topic->id));
    return program;
  }

  struct Subscription {
    tide_reader_t reader{};
    std::vector<tide_sample_t> ring;
    unsigned calls = 0;
  };
  Subscription *subscribe(uint16_t object, bool reliable, tide_priority_t priority, uint8_t depth) {
    subscriptions_.push_back(std::make_unique<Subscription>());
    Subscription *subscription = subscriptions_.back().get();
    subscription->ring.resize(depth);
    subscription->reader.object = object;
    subscription->reader.reliable = reliable;
    subscription->reader.priority = priority;
    subscription->reader.depth = depth;
    subscription->reader.samples = subscription->ring.data();
    subscription->reader.context = subscription;
    subscription->reader.on_sample = [](void *context, tide_reader_t *) {
      ++static_cast<Subscription *>(context)->calls;
    };
    EXPECT_EQ(tide_session_add_reader(session(), &subscription->reader), TIDE_OK);
    return subscription;
  }
  // The text of the next sample, or "-".
  std::string take(tide_reader_t *reader) {
    const tide_sample_t *sample = tide_session_peek(session(), reader);
    if (sample == nullptr) return "-";
    const std::string text(sample->bytes, sample->bytes + sample->length);
    tide_session_take_done(session(), reader);
    return text;
  }
  size_t slots_in_use() const {
    size_t used = 0;
    for (const tide_slot_t &slot : memory_.slots()) used += slot.references != slot.released;
    return used;
  }

 private:
  Options options_;
  std::mt19937_64 random_;

 public:
  Clock clock;
  Agent agent;
  tide_session_config_t config{};
  tide_pump_t pump{};
  bool cut = false;  // no message passes, in either direction
  double loss_to_agent = -1, loss_to_client = -1;
  bool executor_runs = true;
  Polls polls = Polls::kBoth;
  std::function<void()> interrupts;  // called at the end of each critical section
  std::vector<tide_session_state_t> states;
  std::vector<Bytes> sent;  // messages as the client sent them
  std::vector<int64_t> sent_ns;

 private:
  static int64_t now(void *context) { return static_cast<Bench *>(context)->clock.now_ns; }
  static uintptr_t enter(void *context) { return static_cast<uintptr_t>(static_cast<Bench *>(context)->critical_++); }
  static void leave(void *context, uintptr_t state) {
    Bench *self = static_cast<Bench *>(context);
    EXPECT_EQ(static_cast<uintptr_t>(--self->critical_), state);
    if (self->critical_ == 0 && self->interrupts) self->interrupts();
  }
  static void event_init(void *, tide_event_t *event) { event->state = 0; }
  static void event_set(void *, tide_event_t *event) { event->state = 1; }
  static int event_wait(void *context, tide_event_t *event, int64_t deadline_ns) {
    Bench *self = static_cast<Bench *>(context);
    self->step(deadline_ns);
    const int was_set = static_cast<int>(event->state);
    event->state = 0;
    return was_set;
  }

  bool is_lost(double loss) { return cut || std::uniform_real_distribution<>(0, 1)(random_) < loss; }

  static int start_frame(void *context, const tide_frame_parts_t *frame) {
    Bench *self = static_cast<Bench *>(context);
    Bytes bytes(frame->head, frame->head + frame->head_bytes);
    bytes.insert(bytes.end(), frame->body, frame->body + frame->body_bytes);
    bytes.insert(bytes.end(), frame->tail, frame->tail + frame->tail_bytes);
    EXPECT_LE(bytes.size(), self->options_.mtu);
    self->sent.push_back(bytes);
    self->sent_ns.push_back(self->clock.now_ns);
    const int64_t end_ns = self->clock.now_ns + static_cast<int64_t>(bytes.size()) * self->options_.wire_ns_per_byte;
    self->clock.at(end_ns, [self] { tide_daemon_on_transmit_complete(&self->session()->daemon); });
    const double loss = self->loss_to_agent >= 0 ? self->loss_to_agent : self->options_.loss;
    if (!self->is_lost(loss))
      self->clock.at(end_ns + self->options_.latency_ns, [self, bytes] { self->agent.receive(bytes); });
    return TIDE_OK;
  }

  void to_client(const Bytes &bytes) {
    downlink_free_ns_ =
        std::max(downlink_free_ns_, clock.now_ns) + static_cast<int64_t>(bytes.size()) * options_.wire_ns_per_byte;
    if (is_lost(loss_to_client >= 0 ? loss_to_client : options_.loss)) return;
    clock.at(downlink_free_ns_ + options_.latency_ns, [this, bytes] {
      if (!cut) tide_daemon_on_message(&session()->daemon, bytes.data(), bytes.size());
    });
  }

  void give_memory() {
    memory_.give(config.daemon, {.classes = {{256, options_.small_nodes}, {2048, options_.large_nodes}},
                                 .streams = 10,
                                 .slots = options_.slots,
                                 .reassemblies = 4});
    tide_transmitter_config_t &out = config.daemon.transmitter;
    out.message_bytes = options_.mtu - 4u;
    out.window = 16;
    out.pad_last = true;
    out.heartbeat_delay_ns = -1;
    config.daemon.receiver.window = 8;
  }

  int critical_ = 0;
  unsigned idle_polls_ = 0;
  int64_t downlink_free_ns_ = 0;
  tide_platform_t platform_{};
  std::unique_ptr<tide_session_t> session_;
  tide_object_t *objects_[32]{};
  std::vector<std::unique_ptr<tide_object_t>> owned_;
  std::vector<std::unique_ptr<Subscription>> subscriptions_;
  DaemonMemory memory_;
};

}  // namespace bench
