// SPDX-License-Identifier: Apache-2.0
// The client's side of every recording. The test reads from the captured client frames what the program wanted (which
// objects, samples, pings), makes our session want the same at the same moment, feeds it what the agent answered then,
// and compares what our session put on the wire.
//
// EXACT     everything that the protocol fixes is equal, octet for octet and in the same order: CREATE_CLIENT, GET_INFO
//           (but its request id), TIMESTAMP, DELETE, every message of every stream by its sequence number: header,
//           submessages, cut into the same fragments. Serial frames are equal with escapes and checksum. Every ACKNACK
//           of the recording is among ours in the same order, and ours are never ahead; every HEARTBEAT is among ours.
//           What the agent flagged, and only that, is sent again. Repeats of a message count once: when and how often
//           is ours to choose. Octets that the stock client leaves undefined (padding, alignment in binary CREATEs)
//           must be zero in ours; its last FRAGMENT may count the padding.
// BATCHED   the stock client packed several submessages into one message, ours go one by one: the submessages of each
//           stream are equal, in order; sequence numbers and ACKNACKs of the peer then differ.
// RESTART   EXACT up to the moment the agent says that it does not know the session: there the stock client goes on
//           in vain, ours connects again.
// UNKNOWN   no session was ever created by the recorded client: the frames are equal, ours reconnects.
// OUTSIDE   pings without a session: frames equal.
// LIVELINESS as EXACT; but CREATE_CLIENT has a property list in the recording (compared by meaning), and ours answers
//           GET_INFO with INFO where the stock client sends eight zero octets.
// PROBE     hand-written frames of the recording (big-endian bodies, HEARTBEATs for nothing) have no intent; the rest
//           is EXACT.
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>

#include "tide/session.h"
#include "tide/status.h"
#include "vectors.hpp"

namespace {

using Bytes = std::vector<uint8_t>;

enum class Mode { exact, batched, restart, unknown, outside, liveliness, probe };

struct Case {
  const char *file;
  Mode mode;
  size_t samples;  // that reach the program
};

// Every recording is here; a file that is missing or unknown fails the test below.
const Case cases[] = {
    {"serial_agent_restart", Mode::restart, 0},
    {"serial_corrupt_agent_to_client", Mode::exact, 0},
    {"serial_create_binary", Mode::exact, 0},
    {"serial_create_xml", Mode::exact, 0},
    {"serial_drop_write_data", Mode::exact, 0},
    {"serial_escape_agent_to_client_best_effort", Mode::exact, 3},
    {"serial_escape_agent_to_client_reliable", Mode::exact, 3},
    {"serial_escape_length_agent_to_client_113", Mode::exact, 3},
    {"serial_escape_length_agent_to_client_114", Mode::exact, 3},
    {"serial_escape_payload", Mode::exact, 0},
    {"serial_escape_payload_best_effort", Mode::exact, 0},
    {"serial_fragment_reliable_3000", Mode::exact, 0},
    {"serial_ping_no_session", Mode::outside, 0},
    {"serial_publish_best_effort", Mode::exact, 0},
    {"serial_publish_reliable", Mode::exact, 0},
    {"serial_raw_chunks", Mode::exact, 0},
    {"serial_request_reply_requester", Mode::exact, 3},
    {"serial_session", Mode::exact, 0},
    {"serial_subscribe_best_effort", Mode::exact, 10},
    {"serial_subscribe_reliable", Mode::exact, 10},
    {"serial_timesync", Mode::exact, 0},
    {"tcp_fragment_reliable_3000", Mode::exact, 0},
    {"tcp_publish_best_effort", Mode::exact, 0},
    {"tcp_publish_reliable", Mode::exact, 0},
    {"tcp_session", Mode::exact, 0},
    {"tcp_subscribe_reliable", Mode::exact, 10},
    {"udp_agent301_create_binary", Mode::exact, 0},
    {"udp_agent301_create_xml", Mode::batched, 0},
    {"udp_agent301_fragment_reliable_3000", Mode::exact, 0},
    {"udp_agent301_publish_best_effort", Mode::exact, 0},
    {"udp_agent301_publish_reliable", Mode::exact, 0},
    {"udp_agent301_session", Mode::exact, 0},
    {"udp_agent301_status_errors", Mode::exact, 0},
    {"udp_agent301_subscribe_best_effort", Mode::exact, 6},
    {"udp_agent301_subscribe_delivery_control", Mode::exact, 35},
    {"udp_agent301_subscribe_reliable", Mode::exact, 6},
    {"udp_agent301_timesync", Mode::exact, 0},
    {"udp_agent_restart", Mode::restart, 0},
    {"udp_batched_alignment", Mode::batched, 0},
    {"udp_create_best_effort", Mode::exact, 0},
    {"udp_create_binary", Mode::exact, 0},
    {"udp_create_reference", Mode::exact, 0},
    {"udp_create_xml", Mode::exact, 0},
    {"udp_create_xml_batched", Mode::batched, 0},
    {"udp_duplicate_write_data", Mode::exact, 0},
    {"udp_fragment_agent_to_client_900", Mode::exact, 2},
    {"udp_fragment_agent_to_client_mtu128_loss", Mode::exact, 2},
    {"udp_fragment_mtu128", Mode::exact, 0},
    {"udp_fragment_reliable_3000", Mode::exact, 0},
    {"udp_hard_liveliness", Mode::liveliness, 0},
    {"udp_loss_acknack", Mode::exact, 0},
    {"udp_loss_acknack_client_to_agent", Mode::exact, 10},
    {"udp_loss_best_effort", Mode::exact, 0},
    {"udp_loss_create_client", Mode::exact, 0},
    {"udp_loss_data_agent_to_client", Mode::exact, 10},
    {"udp_loss_last_write_data", Mode::exact, 0},
    {"udp_loss_status_agent", Mode::exact, 0},
    {"udp_loss_write_data", Mode::exact, 0},
    {"udp_loss_write_data_and_retry", Mode::exact, 0},
    {"udp_ping_and_delete_unknown_session", Mode::unknown, 0},
    {"udp_ping_no_session", Mode::outside, 0},
    {"udp_probe_endianness_agent230", Mode::probe, 0},
    {"udp_probe_endianness_agent301", Mode::probe, 0},
    {"udp_publish_best_effort", Mode::exact, 0},
    {"udp_publish_reliable", Mode::exact, 0},
    {"udp_publish_reliable_with_key", Mode::exact, 0},
    {"udp_reconnect_same_key", Mode::exact, 0},
    {"udp_request_reply_replier", Mode::exact, 3},
    {"udp_request_reply_replier_best_effort", Mode::exact, 3},
    {"udp_request_reply_requester", Mode::exact, 3},
    {"udp_request_reply_requester_best_effort", Mode::exact, 3},
    {"udp_session", Mode::exact, 0},
    {"udp_session_with_key", Mode::exact, 0},
    {"udp_status_errors", Mode::exact, 0},
    {"udp_subscribe_best_effort", Mode::exact, 10},
    {"udp_subscribe_max_samples_3", Mode::exact, 3},
    {"udp_subscribe_reliable", Mode::exact, 10},
    {"udp_timesync", Mode::exact, 0},
};

constexpr int64_t never_ns = INT64_C(1) << 55;
constexpr uint8_t client_address = 1, agent_address = 0;

struct Submessage {
  uint8_t id = 0, flags = 0;
  Bytes body;
  bool little_endian() const { return (flags & 1) != 0; }
};

struct Message {
  tide_xrce_header_t header{};
  std::vector<Submessage> submessages;
  Bytes bytes;
  uint8_t id() const { return submessages.empty() ? 0xFF : submessages[0].id; }
};

Message parse(const Bytes &bytes) {
  Message message;
  message.bytes = bytes;
  const int start = tide_xrce_get_header(bytes.data(), bytes.size(), &message.header);
  if (start < 0) return message;
  size_t position = static_cast<size_t>(start);
  tide_xrce_submessage_t view;
  while (tide_xrce_next_submessage(bytes.data(), bytes.size(), &position, &view) == 1) {
    message.submessages.push_back({view.id, view.flags, Bytes(view.body, view.body + view.body_bytes)});
    if (view.id == TIDE_XRCE_CREATE_CLIENT) break; /* its properties run to the end */
  }
  return message;
}

// The messages in a run of serial bytes.
std::vector<Bytes> unframe(const Bytes &bytes, uint8_t address, tide_framing_reader_t &reader, Bytes &buffer) {
  std::vector<Bytes> messages;
  if (buffer.empty()) {
    buffer.resize(2048);
    tide_framing_reader_init(&reader, address);
    tide_framing_reader_set_buffer(&reader, buffer.data(), buffer.size());
  }
  for (size_t used = 0; used < bytes.size();) {
    int complete = 0;
    used += tide_framing_reader_input(&reader, bytes.data() + used, bytes.size() - used, &complete);
    if (complete != 0 && tide_crc16(0, buffer.data(), reader.length) == reader.crc) {
      messages.emplace_back(buffer.begin(), buffer.begin() + reader.length);
      tide_framing_reader_set_buffer(&reader, buffer.data(), buffer.size());
    }
  }
  return messages;
}

Bytes framed(const Bytes &message) {
  Bytes frame(TIDE_FRAMING_WORST_BYTES(message.size()));
  const int size = tide_framing_encode(frame.data(), frame.size(), client_address, agent_address, message.data(),
                                       message.size(), nullptr, 0);
  frame.resize(static_cast<size_t>(std::max(size, 0)));
  return frame;
}

// What happened, one entry a message; a serial recording in chunks gives several or none a record.
struct Event {
  bool to_agent = false;
  int64_t t_ns = 0;
  Message message;  // of a client frame
  Bytes raw;        // as recorded
  bool dropped = false, duplicate = false, damaged = false;
};

struct Recording {
  explicit Recording(const std::string &name) {
    tide_framing_reader_t reader_of[2];
    Bytes buffer_of[2];
    for (const Record &record : load_vectors(vector_file(name + ".jsonl"))) {
      transport = record.transport;
      Event event{record.client_to_agent, record.t_ns,     {}, record.bytes, record.dropped,
                  record.duplicate,       record.corrupted};
      const Bytes &sent = record.client_to_agent ? record.original : record.bytes;
      std::vector<Bytes> messages;
      if (transport == "serial") {
        const bool up = record.client_to_agent;
        messages = unframe(sent, up ? agent_address : client_address, reader_of[up], buffer_of[up]);
      } else if (transport == "tcp") {
        EXPECT_EQ(sent[0] | sent[1] << 8, static_cast<int>(sent.size()) - 2);
        messages.emplace_back(sent.begin() + 2, sent.end());
      } else {
        messages.push_back(sent);
      }
      if (messages.empty()) events.push_back(event); /* a damaged frame, or a part of one */
      for (size_t i = 0; i < messages.size(); ++i) {
        event.message = parse(messages[i]);
        events.push_back(event);
        event.raw.clear(); /* raw bytes are fed once */
      }
    }
  }
  std::string transport;
  std::vector<Event> events;
};

// One session of ours, on a link that takes a message at once.
class Client {
 public:
  Client(const tide_xrce_create_client_t &wanted, uint8_t object_stream, bool serial, int64_t start_ns)
      : now_ns(start_ns), serial_(serial) {
    platform_ = {this, now, nullptr, enter, leave, event_init, event_set, event_wait};
    build();
    config.daemon.platform = &platform_;
    config.key = wanted.key;
    config.session = wanted.session;
    config.mtu = static_cast<uint16_t>(wanted.mtu + 4);
    config.vendor = wanted.vendor;
    config.object_stream = object_stream;
    config.creations_at_once = 16;
    config.objects = table_;
    config.object_count = std::size(table_);
    config.silence_limit_ns = never_ns; /* pings are the recording's */
    config.daemon.transmitter.message_bytes = wanted.mtu;
    EXPECT_EQ(tide_session_init(&session, &config), TIDE_OK);
    const tide_link_t link = {this, start, nullptr};
    EXPECT_EQ(tide_daemon_attach_link(&session.daemon, &link, client_address), TIDE_OK);
  }

  void settle() {
    for (int i = 0; i < 200; ++i) {
      const int64_t next_ns = tide_session_poll(&session);
      bool more = next_ns <= now_ns;
      if (busy_) {
        busy_ = false;
        more = true;
        tide_daemon_on_transmit_complete(&session.daemon);
      }
      while (tide_daemon_most_urgent(&session.daemon) != TIDE_PRIORITY_NONE) {
        tide_daemon_process_most_urgent(&session.daemon);
        more = true;
      }
      if (!more) return;
    }
    ADD_FAILURE() << "the session does not come to rest";
  }
  void advance(int64_t until_ns) {
    settle();
    for (int64_t next_ns; (next_ns = tide_session_poll(&session)) <= until_ns; settle())
      now_ns = std::max(now_ns, next_ns);
    now_ns = std::max(now_ns, until_ns);
    settle();
  }
  void feed(const Bytes &bytes) {
    if (serial_)
      tide_daemon_on_bytes(&session.daemon, bytes.data(), bytes.size());
    else
      tide_daemon_on_message(&session.daemon, bytes.data(), bytes.size());
    settle();
  }

  void create(const Submessage &submessage) {
    tide_cdr_t cdr;
    tide_cdr_reader(&cdr, submessage.body.data(), submessage.body.size(), !submessage.little_endian());
    tide_xrce_create_t create;
    tide_xrce_get_create(&cdr, &create);
    ASSERT_EQ(cdr.status, TIDE_OK);
    const uint8_t flags = submessage.flags & (TIDE_XRCE_FLAG_REUSE | TIDE_XRCE_FLAG_REPLACE);
    session.config.create_flags = flags == 0 ? TIDE_SESSION_CREATE_PLAIN : flags;
    objects_.push_back({create.object, create.request.object, 0, 0, 0, 0});
    ASSERT_EQ(tide_session_add_object(&session, &objects_.back()), TIDE_OK);
    settle();
  }
  void remove(uint16_t id) {
    tide_object_t *object = nullptr;
    for (tide_object_t &candidate : objects_)
      if (candidate.state == TIDE_OBJECT_CREATED && (object == nullptr || object->id != id)) object = &candidate;
    ASSERT_NE(object, nullptr);
    object->id = id; /* the recording deletes one that never was, too */
    ASSERT_EQ(tide_session_remove_object(&session, object), TIDE_OK);
    settle();
  }
  void write(uint8_t stream, const Submessage &submessage) {
    tide_write_t write;
    const uint32_t bytes = static_cast<uint32_t>(submessage.body.size() - 4);
    const uint16_t writer = static_cast<uint16_t>(submessage.body[2] << 8 | submessage.body[3]);
    ASSERT_EQ(tide_session_write_begin(&session, &write, writer, TIDE_STREAM_IS_RELIABLE(stream),
                                       TIDE_PRIORITY(TIDE_STREAM_LEVEL(stream), 0), bytes),
              TIDE_OK);
    tide_cdr_put_bytes(&write.cdr, submessage.body.data() + 4, bytes);
    ASSERT_EQ(tide_session_write_end(&write), TIDE_OK);
    settle();
  }
  void read(const Submessage &submessage) {
    tide_cdr_t cdr;
    tide_cdr_reader(&cdr, submessage.body.data(), submessage.body.size(), false);
    tide_xrce_read_data_t read;
    tide_xrce_get_read_data(&cdr, &read);
    ASSERT_EQ(cdr.status, TIDE_OK);
    if (read.max_samples == 0) {
      for (auto &reader : readers_)
        if (reader->object == read.request.object) {
          EXPECT_EQ(tide_session_remove_reader(&session, reader.get()), TIDE_OK);
        }
      return settle();
    }
    readers_.push_back(std::make_unique<tide_reader_t>());
    tide_reader_t *reader = readers_.back().get();
    reader->object = read.request.object;
    reader->reliable = TIDE_STREAM_IS_RELIABLE(read.stream);
    reader->priority = TIDE_PRIORITY(TIDE_STREAM_LEVEL(read.stream), 0);
    reader->max_samples = read.max_samples == 0xFFFF ? 0 : read.max_samples;
    reader->max_elapsed_s = read.max_elapsed_time_s;
    reader->max_bytes_per_s = read.max_bytes_per_second;
    reader->min_pace_ms = read.min_pace_period_ms;
    rings_.emplace_back(4);
    reader->samples = rings_.back().data();
    reader->depth = 4;
    reader->context = this;
    reader->on_sample = [](void *context, tide_reader_t *which) {
      Client *self = static_cast<Client *>(context);
      const tide_sample_t *sample = tide_session_peek(&self->session, which);
      ASSERT_NE(sample, nullptr);
      self->samples.emplace_back(sample->bytes, sample->bytes + sample->length);
      tide_session_take_done(&self->session, which);
    };
    ASSERT_EQ(tide_session_add_reader(&session, reader), TIDE_OK);
    settle();
  }

  int64_t now_ns;
  tide_session_t session{};
  tide_session_config_t config{};
  std::vector<Bytes> sent;
  std::vector<Bytes> samples;

 private:
  static int64_t now(void *context) { return static_cast<Client *>(context)->now_ns; }
  static uintptr_t enter(void *) { return 0; }
  static void leave(void *, uintptr_t) {}
  static void event_init(void *, tide_event_t *event) { event->state = 0; }
  static void event_set(void *, tide_event_t *event) { event->state = 1; }
  static int event_wait(void *, tide_event_t *, int64_t) { return 0; }
  static int start(void *context, const tide_frame_parts_t *frame) {
    Client *self = static_cast<Client *>(context);
    Bytes bytes(frame->head, frame->head + frame->head_bytes);
    bytes.insert(bytes.end(), frame->body, frame->body + frame->body_bytes);
    bytes.insert(bytes.end(), frame->tail, frame->tail + frame->tail_bytes);
    self->sent.push_back(bytes);
    self->busy_ = true;
    return TIDE_OK;
  }
  void build() {
    classes_[0] = {small_.data(), 256, 24};
    classes_[1] = {large_.data(), 4096, 6};
    tide_transmitter_config_t &out = config.daemon.transmitter;
    out.nodes = nodes_;
    out.execution_storage = execution_;
    out.pending_storage = pending_;
    out.node_count = std::size(nodes_);
    out.classes = classes_;
    out.class_count = 2;
    out.streams = output_streams_;
    out.stream_count = std::size(output_streams_);
    out.window = 16;
    out.pad_last = true;
    out.heartbeat_delay_ns = 100'000'000;
    tide_receiver_config_t &in = config.daemon.receiver;
    in.slots = slots_;
    in.slot_count = std::size(slots_);
    in.storage = slot_storage_.data();
    in.slot_bytes = 512;
    in.noted_storage = noted_;
    in.streams = input_streams_;
    in.stream_count = std::size(input_streams_);
    in.window = 16;
    reassembly_.bytes = reassembly_storage_.data();
    reassembly_.capacity = static_cast<uint32_t>(reassembly_storage_.size());
    in.reassemblies = &reassembly_;
    in.reassembly_count = 1;
  }

  bool serial_, busy_ = false;
  tide_platform_t platform_{};
  tide_object_t *table_[32]{};
  std::deque<tide_object_t> objects_;
  std::vector<std::unique_ptr<tide_reader_t>> readers_;
  std::deque<std::vector<tide_sample_t>> rings_;
  Bytes small_ = Bytes(24 * 256), large_ = Bytes(6 * 4096), slot_storage_ = Bytes(24 * 512),
        reassembly_storage_ = Bytes(4096);
  tide_size_class_t classes_[2]{};
  tide_node_t nodes_[30]{};
  tide_queue_entry_t *execution_[30]{}, *pending_[30]{}, *noted_[24]{};
  tide_output_stream_t output_streams_[6]{};
  tide_input_stream_t input_streams_[6]{};
  tide_slot_t slots_[24]{};
  tide_reassembly_t reassembly_{};
};

// ---- what is compared ----

struct Output {
  std::vector<Bytes> requests;                      // all but ACKNACK and HEARTBEAT, repeats once
  std::map<uint8_t, std::vector<Bytes>> by_stream;  // submessages with their headers, in the order of sequence
  std::vector<Bytes> acknacks, heartbeats;          // bodies; a repeat of the same right after itself counts once
  unsigned infos = 0;
  std::map<uint32_t, unsigned> times_sent;  // by stream and sequence number
};

Bytes with_header(const Submessage &submessage) {
  Bytes bytes = {submessage.id, submessage.flags, static_cast<uint8_t>(submessage.body.size()),
                 static_cast<uint8_t>(submessage.body.size() >> 8)};
  bytes.insert(bytes.end(), submessage.body.begin(), submessage.body.end());
  return bytes;
}

void add_once(std::vector<Bytes> &list, const Bytes &bytes) {
  if (list.empty() || list.back() != bytes) list.push_back(bytes);
}

// GET_INFO's request id is the client's to choose.
Bytes without_ping_id(const Message &message) {
  Bytes bytes = message.bytes;
  if (message.id() == TIDE_XRCE_GET_INFO) {
    const size_t at = tide_xrce_header_bytes(message.header.session) + 4;
    bytes[at] = bytes[at + 1] = 0;
  }
  return bytes;
}

void add(Output &output, const Message &message) {
  if (message.header.stream != 0) {
    const uint32_t number = static_cast<uint32_t>(message.header.stream) << 16 | message.header.sequence;
    if (++output.times_sent[number] > 1) return;
    output.requests.push_back(message.bytes);
    for (const Submessage &submessage : message.submessages)
      output.by_stream[message.header.stream].push_back(with_header(submessage));
    return;
  }
  switch (message.id()) {
    case TIDE_XRCE_ACKNACK:
      return add_once(output.acknacks, message.submessages[0].body);
    case TIDE_XRCE_HEARTBEAT:
      return add_once(output.heartbeats, message.submessages[0].body);
    case TIDE_XRCE_INFO:
      ++output.infos;
      return;
    default:
      return add_once(output.requests, without_ping_id(message));
  }
}

std::optional<tide_xrce_create_t> binary_create(const Message &message) {
  if (message.id() != TIDE_XRCE_CREATE) return std::nullopt;
  const Submessage &submessage = message.submessages[0];
  tide_cdr_t cdr;
  tide_cdr_reader(&cdr, submessage.body.data(), submessage.body.size(), false);
  tide_xrce_create_t create;
  tide_xrce_get_create(&cdr, &create);
  if (cdr.status != TIDE_OK || create.object.representation != TIDE_XRCE_BY_BINARY) return std::nullopt;
  return create;
}

// The stock client pads the last submessage with whatever its buffer held before, ours with zeros; and it counts this
// padding into the length of a last FRAGMENT. Theirs without these two, as ours would look.
Bytes tidied(const Message &theirs) {
  Bytes bytes = theirs.bytes;
  if (theirs.header.stream == 0 || theirs.submessages.empty()) return bytes;
  const Submessage &last = theirs.submessages.back();
  const size_t padding = (4 - last.body.size() % 4) % 4;
  std::fill(bytes.end() - static_cast<long>(padding), bytes.end(), uint8_t{0});
  return bytes;
}

bool equal_but_for_counted_padding(const Message &ours, const Message &theirs) {
  if (ours.submessages.empty() || theirs.submessages.empty() || ours.bytes.size() != theirs.bytes.size()) return false;
  const Submessage &our_last = ours.submessages.back(), &their_last = theirs.submessages.back();
  const bool last_fragments = our_last.id == TIDE_XRCE_FRAGMENT && our_last.flags == their_last.flags &&
                              (our_last.flags & TIDE_XRCE_FLAG_LAST_FRAGMENT) != 0;
  return last_fragments && our_last.body.size() < their_last.body.size() &&
         our_last.body.size() + 3 >= their_last.body.size() &&
         std::equal(our_last.body.begin(), our_last.body.end(), their_last.body.begin()) &&
         std::equal(ours.bytes.begin(), ours.bytes.begin() + 6, theirs.bytes.begin());
}

// Equal but for alignment octets in a binary CREATE, which are zero in ours. An octet is one of alignment when the
// message means the same whatever its value.
void expect_equal(const Bytes &ours, const Bytes &theirs) {
  const Message our_message = parse(ours), their_message = parse(theirs);
  if (ours == tidied(their_message) || equal_but_for_counted_padding(our_message, their_message)) return;
  if (!binary_create(their_message) || ours.size() != theirs.size()) {
    ADD_FAILURE() << "ours   " << hex_from_bytes(ours) << "\ntheirs " << hex_from_bytes(theirs);
    return;
  }
  Bytes again(1024);
  tide_cdr_t cdr;
  tide_cdr_writer(&cdr, again.data(), again.size());
  const tide_xrce_create_t create = *binary_create(their_message);
  tide_xrce_put_create(&cdr, &create);
  again.resize(cdr.position);
  EXPECT_EQ(hex_from_bytes(our_message.submessages[0].body), hex_from_bytes(again));
  for (size_t i = 0; i < ours.size(); ++i) EXPECT_TRUE(ours[i] == theirs[i] || ours[i] == 0) << "octet " << i;
}

void expect_equal(const std::vector<Bytes> &ours, const std::vector<Bytes> &theirs, const char *what) {
  SCOPED_TRACE(what);
  for (size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
    SCOPED_TRACE("number " + std::to_string(i));
    expect_equal(ours[i], theirs[i]);
  }
  for (size_t i = theirs.size(); i < ours.size(); ++i) ADD_FAILURE() << "ours only: " << hex_from_bytes(ours[i]);
  for (size_t i = ours.size(); i < theirs.size(); ++i) ADD_FAILURE() << "theirs only: " << hex_from_bytes(theirs[i]);
}

// ---- the replay ----

class Replay {
 public:
  Replay(const Case &what) : what_(what), recording_(what.file) {}

  void run() {
    find_clock();
    for (index_ = 0; index_ < recording_.events.size() && !over_; ++index_) {
      const Event &event = recording_.events[index_];
      const int64_t now_ns = std::max(event.t_ns + clock_offset_ns_, client_ ? client_->now_ns : 0);
      if (event.to_agent)
        on_client_event(event, now_ns);
      else
        on_agent_event(event, now_ns);
      if (::testing::Test::HasFatalFailure()) return;
    }
    end_instance();
    EXPECT_EQ(delivered_.size(), what_.samples);
    EXPECT_EQ(delivered_, published());
  }

 private:
  // Our clock runs so that the TIMESTAMPs come out as recorded.
  void find_clock() {
    for (const Event &event : recording_.events)
      if (event.to_agent && event.message.id() == TIDE_XRCE_TIMESTAMP && event.message.submessages[0].little_endian()) {
        clock_offset_ns_ = timestamp_of(event.message) - event.t_ns;
        return;
      }
  }
  static int64_t timestamp_of(const Message &message) {
    tide_cdr_t cdr;
    tide_cdr_reader(&cdr, message.submessages[0].body.data(), message.submessages[0].body.size(), false);
    return tide_xrce_time_to_ns(tide_xrce_get_timestamp(&cdr));
  }

  bool has_intent(const Event &event) const {
    const Message &message = event.message;
    if (event.duplicate || message.submessages.empty()) return false;
    const bool sign_of_life = message.id() == TIDE_XRCE_CREATE_CLIENT && message.submessages[0].body.empty();
    const bool by_hand =
        what_.mode == Mode::probe && (!message.submessages[0].little_endian() || message.id() == TIDE_XRCE_HEARTBEAT);
    return !sign_of_life && !by_hand && !message.bytes.empty() &&
           !(message.id() == TIDE_XRCE_CREATE_CLIENT && message.header.session != 0x80 &&
             message.header.session != 0x00);
  }

  void start_instance(const tide_xrce_create_client_t &wanted, int64_t now_ns) {
    end_instance();
    uint8_t object_stream = TIDE_STREAM_RELIABLE(0);
    for (size_t i = index_; i < recording_.events.size(); ++i)
      if (recording_.events[i].to_agent && recording_.events[i].message.id() == TIDE_XRCE_CREATE) {
        object_stream = recording_.events[i].message.header.stream;
        break;
      }
    client_ = std::make_unique<Client>(wanted, object_stream, recording_.transport == "serial", now_ns);
  }

  // A client that was never told of by CREATE_CLIENT in this recording.
  void start_silent_instance(int64_t now_ns) {
    const tide_xrce_create_client_t wanted = {1, 0, 0x010F, 0xAAAABBBB, 0x81, 508, true, 0, nullptr, 0};
    start_instance(wanted, now_ns);
    if (what_.mode != Mode::unknown) return;
    tide_session_open(&client_->session);
    client_->settle();
    client_->feed(bytes_from_hex("8100000004010b000000585243450100010f00"));
    ASSERT_EQ(client_->session.state, TIDE_SESSION_READY);
    client_->sent.clear();
  }

  void on_client_event(const Event &event, int64_t now_ns) {
    if (!has_intent(event)) return;
    const Message &message = event.message;
    if (client_ == nullptr && message.id() != TIDE_XRCE_CREATE_CLIENT) start_silent_instance(now_ns);
    if (client_ != nullptr && message.id() != TIDE_XRCE_TIMESTAMP) client_->advance(now_ns);
    add(theirs_, message);
    if (!event.raw.empty() && recording_.transport == "serial") serial_frames_.push_back(event.raw);
    if (message.header.stream != 0) {
      if (!seen_.insert({instance_, message.header.stream, message.header.sequence}).second) return;
      for (const Submessage &submessage : message.submessages) on_stream_intent(message.header, submessage);
    } else {
      on_control_intent(message, now_ns);
    }
  }

  void on_control_intent(const Message &message, int64_t now_ns) {
    const Submessage &submessage = message.submessages[0];
    switch (submessage.id) {
      case TIDE_XRCE_CREATE_CLIENT: {
        tide_cdr_t cdr;
        tide_cdr_reader(&cdr, submessage.body.data(), submessage.body.size(), false);
        tide_xrce_create_client_t wanted;
        tide_xrce_get_create_client(&cdr, &wanted);
        ASSERT_EQ(cdr.status, TIDE_OK);
        if (what_.mode == Mode::liveliness) theirs_.requests.back() = without_properties(message, wanted);
        if (client_ && client_->session.state == TIDE_SESSION_CONNECTING) return; /* a repeat */
        const Bytes first = theirs_.requests.back(); /* a program that starts again begins a new comparison */
        theirs_.requests.pop_back();
        start_instance(wanted, now_ns);
        theirs_.requests.push_back(first);
        tide_session_open(&client_->session);
        break;
      }
      case TIDE_XRCE_GET_INFO:
        ASSERT_EQ(tide_session_ping(&client_->session), TIDE_OK);
        break;
      case TIDE_XRCE_TIMESTAMP:
        ASSERT_LE(client_->now_ns, timestamp_of(message));
        client_->advance(timestamp_of(message));
        ASSERT_EQ(tide_session_synchronise(&client_->session), TIDE_OK);
        break;
      case TIDE_XRCE_DELETE:
        if (what_.mode == Mode::unknown) { /* ours has started again meanwhile: the goodbye is said by another one */
          collect();
          client_.reset();
          start_silent_instance(now_ns);
        }
        tide_session_close(&client_->session);
        break;
      default: /* acknowledgments are the session's own */
        break;
    }
    client_->settle();
  }

  static Bytes without_properties(const Message &message, const tide_xrce_create_client_t &wanted) {
    Bytes body(16);
    tide_cdr_t cdr;
    tide_cdr_writer(&cdr, body.data(), body.size());
    tide_xrce_create_client_t bare = wanted;
    bare.property_count = 0;
    tide_xrce_put_create_client(&cdr, &bare);
    Bytes bytes(message.bytes.begin(), message.bytes.begin() + 8);
    bytes.insert(bytes.end(), body.begin(), body.end());
    return bytes;
  }

  void on_stream_intent(const tide_xrce_header_t &header, const Submessage &submessage) {
    if (submessage.id == TIDE_XRCE_FRAGMENT) {
      if (fragments_left_[header.stream] == 0) {
        wholes_.push_back(gather(header));
        on_stream_intent(header, wholes_.back());
      }
      --fragments_left_[header.stream];
      return;
    }
    wholes_.push_back(submessage); /* texts of objects are views into it */
    const Submessage &kept = wholes_.back();
    switch (kept.id) {
      case TIDE_XRCE_CREATE:
        return client_->create(kept);
      case TIDE_XRCE_DELETE:
        return client_->remove(static_cast<uint16_t>(kept.body[2] << 8 | kept.body[3]));
      case TIDE_XRCE_WRITE_DATA:
        return client_->write(header.stream, kept);
      case TIDE_XRCE_READ_DATA:
        return client_->read(kept);
      default:
        FAIL() << "submessage " << int(kept.id) << " on a stream";
    }
  }

  // The message whose first fragment this is, from the frames that follow in the recording.
  Submessage gather(const tide_xrce_header_t &header) {
    Bytes whole;
    uint16_t sequence = header.sequence;
    for (size_t i = index_; i < recording_.events.size(); ++i) {
      const Event &event = recording_.events[i];
      const Message &message = event.message;
      if (!event.to_agent || message.header.stream != header.stream || message.header.sequence != sequence) continue;
      for (const Submessage &fragment : message.submessages) {
        if (fragment.id != TIDE_XRCE_FRAGMENT) continue;
        whole.insert(whole.end(), fragment.body.begin(), fragment.body.end());
        ++fragments_left_[header.stream];
        if ((fragment.flags & TIDE_XRCE_FLAG_LAST_FRAGMENT) != 0)
          return {whole[0], whole[1], Bytes(whole.begin() + 4, whole.end())};
      }
      ++sequence;
    }
    ADD_FAILURE() << "a message without an end";
    return {};
  }

  void on_agent_event(const Event &event, int64_t now_ns) {
    if (event.dropped || client_ == nullptr) return;
    client_->advance(now_ns);
    Bytes bytes = event.raw;
    if (recording_.transport == "tcp") bytes.erase(bytes.begin(), bytes.begin() + 2);
    const bool info = event.message.id() == TIDE_XRCE_INFO;
    if (info) bytes = echoing(event.message.bytes); /* an agent repeats the id it was asked with */
    if (bytes.empty()) return;
    const unsigned reconnects = client_->session.counters.reconnects;
    const bool answered = client_->session.ping_under_way;
    client_->feed(bytes);
    if (info && answered) {
      EXPECT_FALSE(client_->session.ping_asked);
      EXPECT_GE(client_->session.ping_round_trip_ns, 0);
    }
    const bool reply = event.message.id() == TIDE_XRCE_TIMESTAMP_REPLY;
    if (reply && event.message.submessages[0].little_endian() && what_.mode != Mode::probe) {
      EXPECT_NEAR(static_cast<double>(client_->session.time_sync.offset_ns), 0, 2e6); /* one machine, one clock */
    }
    const bool says_unknown = info && event.message.submessages[0].body[5] == 0;
    if (says_unknown && what_.mode != Mode::outside) {
      EXPECT_EQ(client_->session.counters.reconnects, reconnects + 1);
      EXPECT_EQ(client_->session.state, TIDE_SESSION_CONNECTING);
      ASSERT_FALSE(client_->sent.empty());
      EXPECT_EQ(parse(client_->sent.back()).id(), TIDE_XRCE_CREATE_CLIENT);
      client_->sent.pop_back();
      over_ = what_.mode == Mode::restart;
    }
  }

  Bytes echoing(Bytes message) const {
    const size_t at = tide_xrce_header_bytes(message[0]) + 4;
    message[at] = static_cast<uint8_t>(client_->session.ping_request >> 8);
    message[at + 1] = static_cast<uint8_t>(client_->session.ping_request);
    if (recording_.transport != "serial") return message;
    Bytes frame(TIDE_FRAMING_WORST_BYTES(message.size()));
    frame.resize(static_cast<size_t>(tide_framing_encode(frame.data(), frame.size(), agent_address, client_address,
                                                         message.data(), message.size(), nullptr, 0)));
    return frame;
  }

  void collect() {
    for (const Bytes &bytes : client_->sent) add(ours_, parse(bytes));
    delivered_.insert(delivered_.end(), client_->samples.begin(), client_->samples.end());
  }

  void end_instance() {
    if (client_ == nullptr) return;
    collect();
    compare();
    check_states();
    client_.reset();
    ours_ = theirs_ = Output();
    serial_frames_.clear();
    ++instance_;
  }

  void compare() {
    SCOPED_TRACE("client " + std::to_string(instance_));
    if (what_.mode == Mode::batched) {
      EXPECT_EQ(ours_.by_stream.size(), theirs_.by_stream.size());
      for (const auto &[stream, submessages] : theirs_.by_stream)
        expect_equal(ours_.by_stream[stream], submessages, "submessages of a stream");
      return;
    }
    expect_equal(ours_.requests, theirs_.requests, "requests");
    expect_acknacks();
    for (const Bytes &heartbeat : theirs_.heartbeats)
      EXPECT_NE(std::find(ours_.heartbeats.begin(), ours_.heartbeats.end(), heartbeat), ours_.heartbeats.end())
          << "HEARTBEAT " << hex_from_bytes(heartbeat);
    EXPECT_EQ(ours_.infos, asked_by_agent());
    for (const uint32_t number : flagged()) EXPECT_GT(ours_.times_sent[number], 1u) << "resent when flagged " << number;
    for (const auto &[number, times] : ours_.times_sent)
      EXPECT_TRUE(times == 1 || flagged().count(number)) << "resent, although not flagged: " << number;
    if (what_.mode == Mode::exact && !serial_frames_.empty() && instance_ == 0) compare_serial_frames();
  }

  // Theirs are among ours, in order; ours may acknowledge in smaller steps, but never ahead.
  void expect_acknacks() const {
    size_t next = 0;
    for (const Bytes &acknack : ours_.acknacks) {
      if (next < theirs_.acknacks.size() && acknack == theirs_.acknacks[next]) {
        ++next;
        continue;
      }
      ASSERT_LT(next, theirs_.acknacks.size()) << "ours only: " << hex_from_bytes(acknack);
      const Bytes &theirs = theirs_.acknacks[next];
      const int ahead = (acknack[0] | acknack[1] << 8) - (theirs[0] | theirs[1] << 8);
      EXPECT_LE(ahead, 0) << hex_from_bytes(acknack) << " before " << hex_from_bytes(theirs);
    }
    EXPECT_EQ(next, theirs_.acknacks.size()) << "theirs only: " << hex_from_bytes(theirs_.acknacks[next]);
  }

  // The frames on the line, with escapes and checksum.
  void compare_serial_frames() {
    if (std::string(what_.file) == "serial_raw_chunks") return; /* chunks are not frames */
    for (const Bytes &frame : serial_frames_)
      EXPECT_EQ(hex_from_bytes(framed(unframe_one(frame))), hex_from_bytes(frame));
  }
  static Bytes unframe_one(const Bytes &frame) {
    tide_framing_reader_t reader;
    Bytes buffer;
    const std::vector<Bytes> messages = unframe(frame, agent_address, reader, buffer);
    return messages.empty() ? Bytes() : messages[0];
  }

  unsigned asked_by_agent() const {
    unsigned count = 0;
    for (const Event &event : recording_.events)
      count += !event.to_agent && !event.dropped && event.message.id() == TIDE_XRCE_GET_INFO;
    return count;
  }

  // Stream and sequence number of all that the agent flagged as missing.
  std::set<uint32_t> flagged() const {
    std::set<uint32_t> numbers;
    for (const Event &event : recording_.events) {
      if (event.to_agent || event.dropped || event.message.id() != TIDE_XRCE_ACKNACK) continue;
      const Bytes &body = event.message.submessages[0].body;
      const unsigned first = body[0] | static_cast<unsigned>(body[1]) << 8;
      const unsigned missing = static_cast<unsigned>(body[2]) << 8 | body[3];
      for (unsigned n = 0; n < 16; ++n)
        if ((missing >> n & 1) != 0 && what_.mode != Mode::probe)
          numbers.insert(static_cast<uint32_t>(body[4]) << 16 | (first + n));
    }
    return numbers;
  }

  // Where the recorded client ended well, so does ours.
  void check_states() {
    const bool last = index_ >= recording_.events.size();
    if (last && (what_.mode == Mode::exact || what_.mode == Mode::liveliness || what_.mode == Mode::probe)) {
      EXPECT_EQ(client_->session.state, TIDE_SESSION_IDLE) << "after its goodbye was answered";
    }
    EXPECT_EQ(client_->session.counters.samples_malformed, 0u);
    EXPECT_EQ(client_->session.daemon.receiver.counters.malformed, 0u);
  }

  // The samples that the agent sent, from the recording alone.
  std::vector<Bytes> published() const {
    std::map<std::pair<uint8_t, uint16_t>, const Message *> messages;
    for (const Event &event : recording_.events)
      if (!event.to_agent && !event.dropped && event.message.header.stream != 0)
        messages.emplace(std::pair{event.message.header.stream, event.message.header.sequence}, &event.message);
    std::vector<Bytes> samples;
    Bytes whole;
    for (const auto &[number, message] : messages)
      for (const Submessage &submessage : message->submessages) {
        if (submessage.id == TIDE_XRCE_DATA) samples.emplace_back(submessage.body.begin() + 4, submessage.body.end());
        if (submessage.id != TIDE_XRCE_FRAGMENT) continue;
        whole.insert(whole.end(), submessage.body.begin(), submessage.body.end());
        if ((submessage.flags & TIDE_XRCE_FLAG_LAST_FRAGMENT) == 0) continue;
        if (whole[0] == TIDE_XRCE_DATA) samples.emplace_back(whole.begin() + 8, whole.end());
        whole.clear();
      }
    return samples;
  }

  const Case &what_;
  Recording recording_;
  size_t index_ = 0;
  unsigned instance_ = 0;
  bool over_ = false;
  int64_t clock_offset_ns_ = 0;
  std::unique_ptr<Client> client_;
  Output ours_, theirs_;
  std::vector<Bytes> serial_frames_, delivered_;
  std::set<std::tuple<unsigned, uint8_t, uint16_t>> seen_;
  std::map<uint8_t, int> fragments_left_;
  std::deque<Submessage> wholes_;
};

class ClientReplay : public ::testing::TestWithParam<Case> {};

TEST_P(ClientReplay, MatchesTheRecording) { Replay(GetParam()).run(); }

INSTANTIATE_TEST_SUITE_P(Vectors, ClientReplay, ::testing::ValuesIn(cases),
                         [](const auto &parameter) { return std::string(parameter.param.file); });

TEST(ClientReplayTable, CoversEveryRecording) {
  std::set<std::string> covered;
  for (const Case &one : cases) covered.insert(vector_file(std::string(one.file) + ".jsonl"));
  const std::vector<std::string> files = all_vector_files();
  EXPECT_EQ(covered, std::set<std::string>(files.begin(), files.end()));
}

}  // namespace
