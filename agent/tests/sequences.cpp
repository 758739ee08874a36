// SPDX-License-Identifier: Apache-2.0
#include "sequences.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstring>

namespace tide::agent::test {
namespace {

constexpr Time kMillisecond = 1'000'000;
constexpr std::chrono::seconds kPatience{60};  // in wall-clock time; long, because a busy machine delays threads of DDS
constexpr Time kWaited = 1'000'000;            // time of the agent that passes with each check of a wait
constexpr Endpoint kWriterPlace = 101, kReaderPlace = 102;
constexpr uint32_t kWriterKey = 0x600D0001, kReaderKey = 0x600D0002;
constexpr size_t kClients = 6, kEntities = 24;
constexpr size_t kSampleBytes = 96u << 10;  // more than the 16 bits of a submessage header can express

const std::array<std::string, 9> kTopics = {
    "rt/a", "rt/b", "rq/x", "rr/x", "rq/y", "plain", "rt/", "rt/a b", "ros_discovery_info"};
const std::array<std::string, 4> kTypes = {"T1", "T2", "T3", ""};
constexpr std::array<uint16_t, 6> kDepths = {0, 1, 2, 64, 600, 0xFFFF};
constexpr std::array<uint32_t, 5> kTimes = {0, 1, 50, 100'000, 0xFFFFFFFF};
constexpr std::array<uint8_t, 5> kStreams = {0x80, 0x80, 0x80, 0x81, 0x01};
constexpr std::array<Time, 16> kJumps = {0,
                                         0,
                                         0,
                                         0,
                                         0,
                                         kMillisecond,
                                         kMillisecond,
                                         kMillisecond,
                                         kMillisecond,
                                         20 * kMillisecond,
                                         20 * kMillisecond,
                                         20 * kMillisecond,
                                         200 * kMillisecond,
                                         200 * kMillisecond,
                                         1'000 * kMillisecond,
                                         2'500 * kMillisecond};
constexpr Time kExchangePeriod = 2'000 * kMillisecond;  // together with the longest jump, less than the silence after
                                                        // which a client is probed

template <typename List> const auto &one_of(const List &list, Choices &choices) {
  return list[choices(static_cast<uint32_t>(list.size()))];
}

// Random names of topics and types; the agent admits most of them.
const std::string &topic_name(Choices &choices) { return kTopics[choices(choices.one_in(8) ? 9 : 6)]; }
const std::string &type_name(Choices &choices) { return kTypes[choices(choices.one_in(8) ? 4 : 3)]; }

tide_text_t text(const std::string &characters) { return {characters.data(), characters.size()}; }

Options options_of(const std::shared_ptr<News> &news) {
  Options options;
  options.wake = [news] { news->bring(); };
  options.limits.clients = kClients;
  options.limits.entities_per_client = kEntities;
  options.limits.sample_bytes = kSampleBytes;
  options.limits.creations_at_once = 16;  // small, so that creations sometimes have to wait for later time
  options.limits.creation_period_ns = kMillisecond;
  options.limits.client_timeout_ns = 10'000 * kMillisecond;
  options.limits.write_wait_ns = 500 * kMillisecond;
  return options;
}

std::string topic_xml(const std::string &topic, const std::string &type) {
  return "<name>" + topic + "</name>" + (type.empty() ? type : "<dataType>" + type + "</dataType>");
}

std::string qos_xml(Choices &choices) {
  return std::string("<qos><reliability><kind>") + (choices(2) ? "RELIABLE" : "BEST_EFFORT") +
         "</kind></reliability><durability><kind>" + (choices(2) ? "TRANSIENT_LOCAL" : "VOLATILE") +
         "</kind></durability></qos>";
}

std::string history_xml(Choices &choices) {
  return std::string("<historyQos><kind>") + (choices(2) ? "KEEP_ALL" : "KEEP_LAST") + "</kind><depth>" +
         std::to_string(one_of(kDepths, choices)) + "</depth></historyQos>";
}

std::string xml_of(uint8_t kind, Choices &choices) {
  const std::string topic = topic_name(choices), other = topic_name(choices);
  const std::string type = type_name(choices), other_type = type_name(choices);
  switch (kind) {
    case TIDE_XRCE_KIND_PARTICIPANT:
      return "<dds><participant><rtps><name>n" + std::to_string(choices(3)) + "</name></rtps></participant></dds>";
    case TIDE_XRCE_KIND_TOPIC: return "<dds><topic>" + topic_xml(topic, type) + "</topic></dds>";
    case TIDE_XRCE_KIND_DATAWRITER:
    case TIDE_XRCE_KIND_DATAREADER: {
      const std::string tag = kind == TIDE_XRCE_KIND_DATAWRITER ? "data_writer" : "data_reader";
      return "<dds><" + tag + "><topic>" + topic_xml(topic, type) + history_xml(choices) + "</topic>" +
             qos_xml(choices) + "</" + tag + "></dds>";
    }
    case TIDE_XRCE_KIND_REQUESTER:
    case TIDE_XRCE_KIND_REPLIER: {
      const std::string tag = kind == TIDE_XRCE_KIND_REQUESTER ? "requester" : "replier";
      return "<dds><" + tag + " service_name=\"s\" request_type=\"" + type + "\" reply_type=\"" + other_type +
             "\"><request_topic_name>" + topic + "</request_topic_name><reply_topic_name>" + other +
             "</reply_topic_name></" + tag + "></dds>";
    }
    default: return {};
  }
}

uint16_t object_of(uint8_t kind, Choices &choices) {
  return TIDE_XRCE_OBJECT(1 + choices(kind == TIDE_XRCE_KIND_PARTICIPANT ? 2 : 3), kind);
}

uint16_t parent_of(uint8_t kind, Choices &choices) {
  if (choices.one_in(16)) return object_of(static_cast<uint8_t>(1 + choices(8)), choices);
  if (kind == TIDE_XRCE_KIND_DATAWRITER) return object_of(TIDE_XRCE_KIND_PUBLISHER, choices);
  if (kind == TIDE_XRCE_KIND_DATAREADER) return object_of(TIDE_XRCE_KIND_SUBSCRIBER, choices);
  return object_of(TIDE_XRCE_KIND_PARTICIPANT, choices);
}

std::vector<uint8_t> ids(uint16_t request, uint16_t object) {
  return Body(tide_xrce_put_request, tide_xrce_request_t{request, object}).octets();
}

std::vector<uint8_t> write_data(const std::vector<uint8_t> &body, uint16_t announced) {
  std::vector<uint8_t> whole(TIDE_XRCE_SUBMESSAGE_HEADER_BYTES + body.size());
  tide_xrce_put_submessage_header(whole.data(), TIDE_XRCE_WRITE_DATA, 1, announced);
  std::copy(body.begin(), body.end(), whole.begin() + TIDE_XRCE_SUBMESSAGE_HEADER_BYTES);
  return whole;
}

// Adds the fragments of a submessage to the current message and, as needed, to further ones. The last message is not
// sent here.
void add_in_pieces(Talker &talker, uint8_t stream, Bytes whole, size_t piece, bool complete, Time now) {
  for (; whole.size() > piece; whole = whole.subspan(piece)) {
    talker.add(TIDE_XRCE_FRAGMENT, 1, whole.first(piece));
    talker.send(now);
    talker.start(stream);
  }
  if (complete) talker.add(TIDE_XRCE_FRAGMENT, 3, whole);
}

}  // namespace

void News::bring() {
  {
    const std::lock_guard lock(mutex_);
    there_ = true;
  }
  changed_.notify_one();
}

void News::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::milliseconds(1), [this] { return there_; });
  there_ = false;
}

Sequences::Sequences(Middleware &middleware, int domain)
    : news_(std::make_shared<News>()),
      agent_(middleware, options_of(news_)),
      domain_(domain),
      good_topic_("rt/good_" + std::to_string(getpid())),
      writer_(agent_, kWriterPlace, kWriterKey, 0x81),
      reader_(agent_, kReaderPlace, kReaderKey, 0x81) {
  // Two of the other clients share one endpoint and have their keys in every message.
  actors_.emplace_back(agent_, 1, 0x11, 0x81);
  actors_.emplace_back(agent_, 2, 0x22, 0x01);
  actors_.emplace_back(agent_, 2, 0x33, 0x01);
  actors_.emplace_back(agent_, 3, 0x44, 0x95);
  set_up_good();
}

// ---- the regular clients ----

// Waits for the condition, which threads of DDS may cause; returns false after kPatience.
template <typename Condition> bool Sequences::comes(Condition condition) {
  const auto clock = [] { return std::chrono::steady_clock::now(); };
  const auto start = clock();
  while (!condition() && clock() - start < kPatience) {
    news_->wait();
    now_ += kWaited;  // so that refused samples are offered to DDS again
    pump(nullptr);
  }
  return condition();
}

void Sequences::set_up_good() {
  const auto create = [&](Talker &talker, uint16_t object, uint16_t parent, const std::string &xml) {
    tide_xrce_create_t body{};
    body.request = {talker.next_request(), object};
    body.object.kind = TIDE_XRCE_OBJECT_KIND(object);
    body.object.representation = TIDE_XRCE_BY_XML;
    body.object.parent = parent;
    body.object.domain = static_cast<int16_t>(domain_);
    body.object.text = text(xml);
    talker.start(0x80);
    talker.add(TIDE_XRCE_CREATE, 1, Body(tide_xrce_put_create, &body).octets());
    status_ = -1;
    talker.send(now_);
    pump(nullptr);
    TIDE_MUST(comes([&] { return status_ != -1; }) && status_ == TIDE_XRCE_STATUS_OK);
  };
  for (Talker *talker : {&writer_, &reader_}) {
    session_opened_ = false;
    talker->connect(talker->endpoint(), 512, now_);
    pump(nullptr);
    TIDE_MUST(session_opened_);
    create(*talker, 0x0011, 0, "<dds><participant><rtps><name>good</name></rtps></participant></dds>");
  }
  const std::string topic = "<topic><name>" + good_topic_ +
                            "</name><dataType>G</dataType><historyQos><kind>KEEP_ALL</kind>"
                            "</historyQos></topic><qos><reliability><kind>RELIABLE</kind></reliability></qos>";
  create(reader_, 0x0014, 0x0011, "");
  create(reader_, 0x0016, 0x0014, "<dds><data_reader>" + topic + "</data_reader></dds>");
  create(writer_, 0x0013, 0x0011, "");
  create(writer_, 0x0015, 0x0013, "<dds><data_writer>" + topic + "</data_writer></dds>");
  tide_xrce_read_data_t body{};
  body.request = {reader_.next_request(), 0x0016};
  body.stream = 0x01;
  body.has_delivery_control = true;
  body.max_samples = 0xFFFF;
  reader_.start(0x80);
  reader_.add(TIDE_XRCE_READ_DATA, 1, Body(tide_xrce_put_read_data, &body).octets());
  reader_.send(now_);
  pump(nullptr);
}

// One regular client sends a sample to the other; then both send a ping.
void Sequences::exchange() {
  number_++;
  std::vector<uint8_t> sample = ids(writer_.next_request(), 0x0015);
  sample.resize(sample.size() + sizeof number_);
  std::memcpy(&sample[4], &number_, sizeof number_);
  writer_.start(0x80);
  if (number_ % 4 != 0) {
    writer_.add(TIDE_XRCE_WRITE_DATA, 1, sample);
  } else {
    add_in_pieces(writer_, 0x80, write_data(sample, 0), 7, true, now_);  // length 0: up to the end of the last piece
  }
  writer_.send(now_);
  pump(nullptr);
  const uint16_t next = writer_.next_of(0x80);
  TIDE_MUST(comes([&] { return acknowledged_ == next; }));  // may take a moment, because DDS may refuse a sample at
                                                            // first
  TIDE_MUST(comes([&] { return received_ == number_; }));
  for (Talker *talker : {&writer_, &reader_}) {
    const tide_xrce_get_info_body_t question = {{talker->next_request(), TIDE_XRCE_OBJECT_CLIENT}, 2};
    talker->start(0);
    talker->add(TIDE_XRCE_GET_INFO, 1, Body(tide_xrce_put_get_info, &question).octets());
    informed_ = false;
    talker->send(now_);
    pump(nullptr);
    TIDE_MUST(informed_);
  }
  exchanged_++;
  exchanged_ns_ = now_;
}

// Handles a frame from the agent, if it is for one of the regular clients.
void Sequences::take(Endpoint endpoint, Bytes frame) {
  tide_xrce_header_t header;
  const int header_bytes = tide_xrce_get_header(frame.data(), frame.size(), &header);
  TIDE_MUST(header_bytes > 0);
  auto position = static_cast<size_t>(header_bytes);
  tide_xrce_submessage_t submessage;
  int more = 0;
  while ((more = tide_xrce_next_submessage(frame.data(), frame.size(), &position, &submessage)) == 1) {
    if (endpoint != kWriterPlace && endpoint != kReaderPlace) continue;
    Talker &talker = endpoint == kWriterPlace ? writer_ : reader_;
    tide_cdr_t cdr;
    tide_cdr_reader(&cdr, submessage.body, submessage.body_bytes, false);
    if (submessage.id == TIDE_XRCE_STATUS_AGENT) {
      session_opened_ = submessage.body[0] == TIDE_XRCE_STATUS_OK;
    } else if (submessage.id == TIDE_XRCE_STATUS) {
      status_ = submessage.body[4];
      const tide_xrce_acknack_t acknack = {static_cast<uint16_t>(header.sequence + 1), 0, header.stream};
      talker.start(0);
      talker.add(TIDE_XRCE_ACKNACK, 1, Body(tide_xrce_put_acknack, &acknack).octets());
      talker.send(now_);
    } else if (submessage.id == TIDE_XRCE_ACKNACK) {
      tide_xrce_acknack_t acknack;
      tide_xrce_get_acknack(&cdr, &acknack);
      if (endpoint == kWriterPlace) acknowledged_ = acknack.first_unacknowledged;
    } else if (submessage.id == TIDE_XRCE_INFO) {
      informed_ = true;
    } else if (submessage.id == TIDE_XRCE_DATA) {
      uint32_t number = 0;
      TIDE_MUST(submessage.body_bytes == 4 + sizeof number);
      std::memcpy(&number, submessage.body + 4, sizeof number);
      TIDE_MUST(number == ++received_);
    }
  }
  TIDE_MUST(more == 0);
}

// ---- the other clients ----

void Sequences::pump(Choices *choices) {
  for (bool more = true; more;) {
    more = false;
    if (before_poll) before_poll();
    agent_.poll(now_);
    agent_.take_ready(ready_);
    const std::vector<Endpoint> endpoints = ready_;
    for (const Endpoint endpoint : endpoints) {
      tide_frame_parts_t frame;
      while (agent_.next(endpoint, now_, frame)) {
        const std::vector<uint8_t> bytes = bytes_of(frame);
        // Some frames to the other clients are never completed.
        if (choices == nullptr || endpoint > 100 || !choices->one_in(16)) agent_.sent(endpoint, now_);
        take(endpoint, bytes);
        more = true;
        if (choices != nullptr && endpoint <= 100 && choices->one_in(32)) break;
      }
    }
  }
  agent_.flush();
  TIDE_MUST(agent_.client_count() <= kClients);
  TIDE_MUST(agent_.entity_count() <= kClients * kEntities);
}

void Sequences::describe(Choices &choices, Talker &talker) {
  static constexpr std::array<uint8_t, 10> kKinds = {1, 2, 3, 4, 5, 6, 7, 8, 7, 8};
  tide_xrce_create_t body{};
  const uint8_t kind = one_of(kKinds, choices);
  body.request = {talker.next_request(), object_of(kind, choices)};
  tide_xrce_object_t &object = body.object;
  object.kind = kind;
  object.parent = parent_of(kind, choices);
  object.domain = static_cast<int16_t>(choices.one_in(64) ? 233 + choices(9000) : static_cast<uint32_t>(domain_));
  const std::string xml = xml_of(kind, choices), name = topic_name(choices), type = type_name(choices);
  const std::string other = topic_name(choices), other_type = type_name(choices);
  object.representation = choices.one_in(3) ? TIDE_XRCE_BY_BINARY : TIDE_XRCE_BY_XML;
  object.text = text(xml);
  if (object.representation == TIDE_XRCE_BY_BINARY) {
    object.text = {};
    object.topic = object_of(TIDE_XRCE_KIND_TOPIC, choices);
    object.name = text(name);
    object.has_name = kind == TIDE_XRCE_KIND_PARTICIPANT;
    object.type = text(type);
    object.request_type = text(type);
    object.reply_type = text(other_type);
    object.has_request_topic = object.has_reply_topic = choices.one_in(2);
    object.request_topic = text(name);
    object.reply_topic = text(other);
    object.has_qos = true;
    object.qos_flags = static_cast<uint16_t>(choices(256));
    object.has_depth = object.has_deadline = object.has_lifespan = true;
    object.depth = one_of(kDepths, choices);
    object.deadline_ms = one_of(kTimes, choices);
    object.lifespan_ms = one_of(kTimes, choices);
  }
  static constexpr std::array<uint8_t, 4> kModes = {0, 0, TIDE_XRCE_FLAG_REUSE, TIDE_XRCE_FLAG_REPLACE};
  talker.add(TIDE_XRCE_CREATE, static_cast<uint8_t>(1 | one_of(kModes, choices)),
             Body(tide_xrce_put_create, &body).octets());
}

void Sequences::write(Choices &choices, Talker &talker, uint8_t stream) {
  static constexpr std::array<uint8_t, 3> kWriters = {TIDE_XRCE_KIND_DATAWRITER, TIDE_XRCE_KIND_REQUESTER,
                                                      TIDE_XRCE_KIND_REPLIER};
  const uint16_t object = object_of(one_of(kWriters, choices), choices);
  std::vector<uint8_t> body = ids(talker.next_request(), object);
  const bool is_long = stream == 0x80 && choices.one_in(64);
  const uint32_t bytes = is_long ? choices(kSampleBytes + (kSampleBytes >> 3)) : choices(choices(4) == 0 ? 700 : 40);
  body.insert(body.end(), bytes, static_cast<uint8_t>(choices(256)));
  if (!is_long && (stream != 0x80 || !choices.one_in(4))) {
    talker.add(TIDE_XRCE_WRITE_DATA, choices.one_in(8) ? uint8_t{0x03} : uint8_t{0x01}, body);
    return;
  }
  // Sends the submessage in pieces. Now and then the last piece is missing, or the header announces a wrong length or
  // 0.
  uint16_t announced = choices.one_in(4) ? uint16_t{0} : static_cast<uint16_t>(body.size());
  if (choices.one_in(8)) announced = static_cast<uint16_t>(body.size() + choices(9) - 4);
  const size_t piece = 1 + (is_long ? 1000 + choices(9000) : choices(300));
  add_in_pieces(talker, stream, write_data(body, announced), piece, !choices.one_in(4), now_);
}

void Sequences::read(Choices &choices, Talker &talker) {
  static constexpr std::array<uint8_t, 3> kReaders = {TIDE_XRCE_KIND_DATAREADER, TIDE_XRCE_KIND_REQUESTER,
                                                      TIDE_XRCE_KIND_REPLIER};
  tide_xrce_read_data_t body{};
  body.request = {talker.next_request(), object_of(one_of(kReaders, choices), choices)};
  body.stream = one_of(kStreams, choices);
  body.has_delivery_control = !choices.one_in(4);
  body.max_samples = static_cast<uint16_t>(choices.one_in(2) ? 0xFFFF : choices(4));
  body.max_elapsed_time_s = static_cast<uint16_t>(choices(3));
  body.max_bytes_per_second = static_cast<uint16_t>(choices.one_in(4) ? 1 + choices(1000) : 0);
  body.min_pace_period_ms = static_cast<uint16_t>(choices.one_in(4) ? choices(500) : 0);
  talker.add(TIDE_XRCE_READ_DATA, 1, Body(tide_xrce_put_read_data, &body).octets());
}

void Sequences::control(Choices &choices, Talker &talker) {
  const uint8_t stream = one_of(kStreams, choices);
  switch (choices(6)) {
    case 0: {
      const tide_xrce_acknack_t body = {static_cast<uint16_t>(choices(40)), static_cast<uint16_t>(choices(65536)),
                                        stream};
      talker.add(TIDE_XRCE_ACKNACK, 1, Body(tide_xrce_put_acknack, &body).octets());
      break;
    }
    case 1: {
      const uint16_t next = talker.next_of(stream);
      const tide_xrce_heartbeat_t body = {static_cast<uint16_t>(next - choices(20)),
                                          static_cast<uint16_t>(next - 1 + choices(3)), stream};
      talker.add(TIDE_XRCE_HEARTBEAT, 1, Body(tide_xrce_put_heartbeat, &body).octets());
      break;
    }
    case 2:
      talker.add(TIDE_XRCE_RESET, 1, {});
      if (choices(2) != 0) talker.restart_streams();
      break;
    case 3: {
      const tide_xrce_get_info_body_t body = {{talker.next_request(), TIDE_XRCE_OBJECT_CLIENT}, 3};
      talker.add(TIDE_XRCE_GET_INFO, 1, Body(tide_xrce_put_get_info, &body).octets());
      break;
    }
    case 4: talker.add(TIDE_XRCE_TIMESTAMP, 1, Body(tide_xrce_put_timestamp, tide_xrce_time_t{1, 2}).octets()); break;
    default:
      if (choices.one_in(3)) {
        talker.add(TIDE_XRCE_DELETE, 1, ids(talker.next_request(), TIDE_XRCE_OBJECT_CLIENT));
      }
  }
}

// One operation: sends a message of one to four submessages, or lets something else happen to a client.
void Sequences::operate(Choices &choices) {
  Talker &talker = actors_[choices(static_cast<uint32_t>(actors_.size()))];
  switch (choices(32)) {
    case 0:
    case 1: talker.connect(talker.endpoint(), static_cast<uint16_t>(64 + choices(1500)), now_); return;
    case 2: {  // a client connects with the key of another one
      static constexpr std::array<uint32_t, 4> kVictims = {0x11, 0x22, kWriterKey, kReaderKey};
      Talker thief(agent_, 4, one_of(kVictims, choices), 0x81);
      thief.connect(4 + choices(2), 512, now_);
      thief.start(0);
      thief.add(TIDE_XRCE_DELETE, 1, ids(1, TIDE_XRCE_OBJECT_CLIENT));
      thief.send(now_);
      return;
    }
    case 3: agent_.forget(1 + choices(4)); return;
    case 4: talker.skip(one_of(kStreams, choices), static_cast<int>(choices(4)) - 1); return;
    default: break;
  }
  const uint8_t stream = choices.one_in(6) ? uint8_t{0} : one_of(kStreams, choices);
  talker.start(stream);
  for (uint32_t count = 1 + choices(4); count != 0; count--) {
    const uint32_t kind = choices(16);
    if (kind < 8) {
      describe(choices, talker);
    } else if (kind < 10) {
      const uint16_t object = object_of(static_cast<uint8_t>(1 + choices(8)), choices);
      talker.add(TIDE_XRCE_DELETE, 1, ids(talker.next_request(), object));
    } else if (kind < 13) {
      write(choices, talker, stream);
    } else if (kind < 15) {
      read(choices, talker);
    } else {
      control(choices, talker);
    }
  }
  talker.send(now_);
}

void Sequences::run(Choices &choices, uint32_t operations) {
  for (uint32_t count = 0; count < operations && !choices.is_over(); count++) {
    operate(choices);
    if (choices.one_in(4)) continue;
    pump(&choices);
    now_ += one_of(kJumps, choices);
    if (now_ - exchanged_ns_ > kExchangePeriod) exchange();
  }
  exchange();
}

void Sequences::clear(Choices &choices) {
  for (Talker &talker : actors_) {
    talker.start(0);
    talker.add(TIDE_XRCE_DELETE, 1, ids(1, TIDE_XRCE_OBJECT_CLIENT));
    talker.send(now_);
    talker.restart_streams();
  }
  pump(&choices);
}

namespace {

volatile uint64_t seed_of_run = 0;

void tell_seed(int) {
  std::fprintf(stderr, "the run that ended so has the seed %llu\n", static_cast<unsigned long long>(seed_of_run));
}

}  // namespace

void announce_seed(uint64_t seed) {
  seed_of_run = seed;
  std::signal(SIGABRT, tell_seed);
}

}  // namespace tide::agent::test
