// SPDX-License-Identifier: Apache-2.0
#include "sim/board/rtps.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "sim/board/client.h"
#include "sim/board/losses.h"
#include "tide/priority.h"
#include "tide/status.h"

namespace tide::sim {

namespace {

constexpr char kType[] = "std_msgs::msg::dds_::String_";  // as those of the session's topics and services
constexpr char kRequestType[] = "s::srv::dds_::S_Request_", kReplyType[] = "s::srv::dds_::S_Response_";
constexpr uint8_t kBoardAddress[4] = {10, 0, 0, 1}, kHostAddress[4] = {10, 0, 0, 2};
constexpr Time kWallClock = 1'700'000'000 * kSecond;
constexpr uint32_t kEncapsulationBytes = 4, kIdentityBytes = 16;
constexpr unsigned kEarlyAnnouncements = 5;
constexpr uint16_t kPeers = 2, kFramesMore = 4;  // of tide/rclc_rtps.h: frames besides one for each reader
constexpr uint32_t kHostDepth = 64;
// Bytes on Ethernet: headers of IPv4 and UDP; shortest payload of a frame; preamble, header, checksum and gap.
constexpr size_t kInternetBytes = 28, kLeastPayload = 46, kEthernetBytes = 38;

Time duration(const Plan &plan, size_t datagram_bytes) {
  const size_t bytes = std::max(datagram_bytes + kInternetBytes, kLeastPayload) + kEthernetBytes;
  return static_cast<Time>((bytes * 8000 + plan.rtps_mbit - 1) / plan.rtps_mbit);
}

void introduce(tide_participant_config_t &config, const uint8_t (&own)[4], const uint8_t (&other)[1][4]) {
  const uint8_t prefix[] = {TIDE_RTPS_VENDOR >> 8, TIDE_RTPS_VENDOR & 0xFF, own[3]};
  std::memcpy(config.prefix, prefix, sizeof prefix);
  std::memcpy(config.address, own, sizeof own);
  config.known = other;
  config.known_count = config.known_participants = 1;
}

constexpr uint8_t kBoards[1][4] = {{10, 0, 0, 1}}, kHosts[1][4] = {{10, 0, 0, 2}};

tide_rtps_qos_t quality(bool reliable) {
  tide_rtps_qos_t qos = tide_rtps_qos_default();
  qos.reliable = reliable;
  return qos;
}

// True if all reliable matches have been answered. Reliable samples are sent only when both sides know each other.
bool has_answered(const std::vector<tide_rtps_match_t> &matches) {
  return std::all_of(matches.begin(), matches.end(), [](const tide_rtps_match_t &match) {
    return match.local == nullptr || match.policy != 0 || !match.reliable || match.proxy.answered;
  });
}

}  // namespace

struct RtpsWire::Memory {
  std::vector<tide_rtps_peer_t> peers{kPeers}, host_peers{kPeers};
  std::vector<tide_rtps_match_t> matches, host_matches;
  std::vector<tide_rtps_agent_node_t> nodes{1};
  std::vector<tide_rtps_agent_topic_t> topics;
  std::vector<tide_rtps_output_t> outputs;
  std::vector<tide_rtps_input_t> inputs;
  std::vector<tide_rtps_slot_t> slots;
  std::vector<tide_rtps_sample_identity_t> related;
  std::vector<uint16_t> requests;
  std::vector<uint8_t> histories, assemblies, frame_memory;
  std::vector<tide_rtps_frame_t> frames;
  std::vector<uint8_t> sent, host_sent;
};

struct RtpsWire::Reader {
  RtpsWire *wire;
  size_t message, count;  // count: number of readers of the message
  std::string topic;
  std::vector<uint8_t> memory;
  tide_rtps_reader_t reader{};
};

struct RtpsWire::Writer {
  std::string topic;
  std::vector<tide_rtps_slot_t> slots{kHostDepth};
  std::vector<tide_rtps_sample_identity_t> related;
  std::vector<uint8_t> memory;
  tide_rtps_writer_t writer{};
};

// Names as the session has them (client.cpp). topic: of a message that is no part of a service.
static void describe(tide_rtps_endpoint_t &endpoint, std::string &topic, const Graph &graph,
                     const MessagePlan &message) {
  endpoint.type = kType;
  endpoint.qos = quality(message.reliable || message.carry != Carry::kTopic);
  if (message.carry == Carry::kRequest) {
    topic = "rq/" + message.name + "Request";
    endpoint.type = kRequestType;
  } else if (message.carry == Carry::kReply) {
    topic = "rr/" + graph.messages[message.answers].name + "Reply";
    endpoint.type = kReplyType;
  }
  endpoint.topic = topic.c_str();
}

RtpsWire::RtpsWire(Machine &machine, Link &link, const Plan &plan, const Graph &graph, int board)
    : machine_(machine),
      engine_(machine.engine()),
      link_(link),
      plan_(plan),
      graph_(graph),
      memory_(std::make_unique<Memory>()),
      latency_(seed_of(plan, Chance::kLatency)),
      return_(seed_of(plan, Chance::kReturn)) {
  size_t outputs = 0, matches = 0;
  uint32_t longest = 0;
  std::vector<std::pair<size_t, size_t>> heard;  // numbers of the sent messages, each with the number of its remote
                                                 // readers
  for (size_t number = 0; number < graph.messages.size(); number++) {
    const MessagePlan &message = graph.messages[number];
    if (message.carry == Carry::kLocal) continue;
    const auto is_here = [&](size_t input) { return graph.is_on_board(graph.inputs[input].callback, board); };
    const auto here = static_cast<size_t>(std::count_if(message.inputs.begin(), message.inputs.end(), is_here));
    const bool sends = graph.is_on_board(message.sender, board);
    if (!sends && here == 0) continue;
    if (sends && here > 0) throw std::invalid_argument("message '" + message.name + "' does not leave its board");
    longest = std::max(longest, message.bytes);
    inputs_ += here;
    outputs += sends ? 1 : 0;
    const unsigned more = message.carry == Carry::kTopic ? plan.rtps_readers : 0;
    if (sends) heard.emplace_back(number, std::max<size_t>(message.inputs.size(), 1) + more);
    matches += here + (sends ? heard.back().second : 0);
  }
  Memory &memory = *memory_;
  const uint32_t sample_bytes = plan.rtps_sample_bytes > 0 ? plan.rtps_sample_bytes : longest;
  const uint32_t slot_bytes = sample_bytes + TIDE_RTPS_SLOT_OVERHEAD_BYTES;
  const size_t slots = std::max<size_t>(outputs, 1) * plan.rtps_history;
  memory.host_matches.resize(std::max<size_t>(matches, 1));
  memory.matches.resize(plan.rtps_matches > 0 ? plan.rtps_matches : memory.host_matches.size());
  memory.outputs.resize(std::max<size_t>(outputs, 1));
  memory.inputs.resize(std::max<size_t>(inputs_, 1));
  memory.topics.resize(memory.outputs.size() + memory.inputs.size());
  memory.slots.resize(slots);
  memory.related.resize(slots);
  memory.requests.resize(slots);
  memory.histories.resize(slots * slot_bytes);
  memory.assemblies.resize(memory.inputs.size() * (sample_bytes + kEncapsulationBytes));
  memory.frames.resize(plan.rtps_frames > 0 ? plan.rtps_frames : memory.inputs.size() + kFramesMore);
  memory.frame_memory.resize(memory.frames.size() * plan.mtu);
  memory.sent.resize(plan.rtps_datagram);
  memory.host_sent.resize(UINT16_MAX);
  const tide_rtps_agent_config_t config = {.start = start,
                                           .event = nullptr,
                                           .dscp = nullptr,
                                           .context = this,
                                           .peers = memory.peers.data(),
                                           .matches = memory.matches.data(),
                                           .nodes = memory.nodes.data(),
                                           .topics = memory.topics.data(),
                                           .outputs = memory.outputs.data(),
                                           .inputs = memory.inputs.data(),
                                           .slots = memory.slots.data(),
                                           .related = memory.related.data(),
                                           .requests = memory.requests.data(),
                                           .histories = memory.histories.data(),
                                           .assemblies = memory.assemblies.data(),
                                           .frames = memory.frames.data(),
                                           .frame_memory = memory.frame_memory.data(),
                                           .peer_count = kPeers,
                                           .match_count = static_cast<uint16_t>(memory.matches.size()),
                                           .node_count = 1,
                                           .output_count = static_cast<uint16_t>(memory.outputs.size()),
                                           .input_count = static_cast<uint16_t>(memory.inputs.size()),
                                           .frame_count = static_cast<uint16_t>(memory.frames.size()),
                                           .history = static_cast<uint16_t>(plan.rtps_history),
                                           .frame_bytes = static_cast<uint16_t>(plan.mtu),
                                           .sample_bytes = sample_bytes};
  tide_rtps_agent_init(&agent_, &config);

  tide_participant_config_t host{};
  introduce(host, kHostAddress, kBoards);
  host.no_multicast = true;
  host.datagram_bytes = UINT16_MAX - kInternetBytes;
  host.peers = memory.host_peers.data();
  host.peer_count = kPeers;
  host.matches = memory.host_matches.data();
  host.match_count = static_cast<uint16_t>(memory.host_matches.size());
  bool fits = tide_participant_init(&host_, &host, engine_.now()) == TIDE_OK;
  for (const auto &[message, count] : heard) {
    for (size_t copy = 0; copy < count; copy++) {
      const MessagePlan &of = graph.messages[message];
      Reader &made =
          *readers_.emplace_back(std::make_unique<Reader>(Reader{this, message, count, topic_of(of), {}, {}}));
      describe(made.reader.endpoint, made.topic, graph, of);
      made.reader.endpoint.context = &made;
      made.reader.sample = on_sample;
      made.memory.resize(of.bytes + kEncapsulationBytes);
      made.reader.memory = made.memory.data();
      made.reader.memory_bytes = static_cast<uint32_t>(made.memory.size());
      fits = fits && tide_participant_add_reader(&host_, &made.reader, engine_.now()) == TIDE_OK;
    }
  }
  for (size_t input = 0; input < graph.inputs.size(); input++) {
    const MessagePlan &message = graph.messages[graph.inputs[input].message];
    if (!graph.is_on_board(graph.inputs[input].callback, board) || message.carry == Carry::kLocal) continue;
    Writer &made = *(writers_[input] = std::make_unique<Writer>());
    made.topic = topic_of(graph, input);
    describe(made.writer.endpoint, made.topic, graph, message);
    if (message.carry == Carry::kTopic) made.writer.endpoint.qos = quality(graph.inputs[input].reliable);
    made.writer.slot_bytes = message.bytes + kEncapsulationBytes;
    if (message.carry != Carry::kTopic) {
      made.related.resize(kHostDepth);
      made.writer.related = made.related.data();
      made.writer.slot_bytes += kIdentityBytes;
    }
    made.writer.slots = made.slots.data();
    made.writer.depth = kHostDepth;
    made.memory.resize(size_t{kHostDepth} * made.writer.slot_bytes);
    made.writer.memory = made.memory.data();
    fits = fits && tide_participant_add_writer(&host_, &made.writer, engine_.now()) == TIDE_OK;
  }
  if (!fits) throw std::invalid_argument("a participant refuses the plan");
  pump_host();
}

RtpsWire::~RtpsWire() = default;

bool RtpsWire::start(void *context, uint32_t domain, tide_participant_config_t *config) {
  introduce(*config, kBoardAddress, kHosts);
  config->domain = domain;
  config->datagram_bytes = static_cast<uint16_t>(static_cast<RtpsWire *>(context)->plan_.rtps_datagram);
  return true;
}

bool RtpsWire::is_discovered() const {
  // True if the frequent announcements of the beginning are over.
  const auto is_over = [](const tide_participant_t &one) { return one.early_announcements >= kEarlyAnnouncements; };
  if (!tide_rtps_agent_is_up(&agent_) || !is_over(agent_.participant) || !is_over(host_)) return false;
  size_t known = 0;
  for (const auto &reader : readers_) known += tide_participant_matched(&host_, &reader->reader.endpoint);
  for (const auto &[input, writer] : writers_) known += tide_participant_matched(&host_, &writer->writer.endpoint);
  const auto is_reading = [](const tide_rtps_input_t &input) { return input.object != 0 && input.request != 0; };
  const auto reading = static_cast<size_t>(std::count_if(memory_->inputs.begin(), memory_->inputs.end(), is_reading));
  size_t matched = 0;
  for (const tide_rtps_output_t &output : memory_->outputs)
    if (output.object != 0) matched += tide_participant_matched(&agent_.participant, &output.writer.endpoint);
  for (const tide_rtps_input_t &input : memory_->inputs)
    if (input.object != 0) matched += tide_participant_matched(&agent_.participant, &input.reader.endpoint);
  const size_t all = readers_.size() + writers_.size();
  const bool is_complete = matched == all || agent_.participant.counters.matches_full > 0;
  return known == all && is_complete && reading == inputs_ && has_answered(memory_->matches) &&
         has_answered(memory_->host_matches);
}

std::vector<const char *> RtpsWire::full() const {
  const tide_rtps_counters_t &counters = agent_.participant.counters;
  const std::pair<const char *, uint32_t> all[] = {{"RTPS matches", counters.matches_full},
                                                   {"RTPS histories", counters.overwritten},
                                                   {"RTPS samples", agent_.counters.too_large + counters.too_large},
                                                   {"RTPS frames", agent_.counters.refused + agent_.counters.dropped}};
  std::vector<const char *> full;
  for (const auto &[name, count] : all)
    if (count > 0) full.push_back(name);
  return full;
}

// ---- the host ----

void RtpsWire::subscribe(size_t message, Bus::Receive receive) { receives_[message] = std::move(receive); }

bool RtpsWire::on_sample(void *context, const tide_rtps_sample_t *sample) {
  const Reader &reader = *static_cast<Reader *>(context);
  size_t &count = reader.wire->heard_[{reader.message, sample->identity.sequence}];
  if (++count < reader.count) return true;
  reader.wire->heard_.erase({reader.message, sample->identity.sequence});
  RtpsWire &wire = *reader.wire;
  const MessagePlan &message = wire.graph_.messages[reader.message];
  const Bus::Payload payload(sample->bytes, sample->bytes + sample->length);
  const auto receive = wire.receives_.find(reader.message);
  if (receive != wire.receives_.end()) receive->second(payload);
  if (message.carry == Carry::kRequest) {
    const size_t input = wire.graph_.messages[message.answered_by].inputs[0];
    const tide_rtps_sample_identity_t related{.guid = sample->related.guid, .sequence = sample->identity.sequence};
    wire.ask(reader.message, payload,
             [&wire, input, related](const Bus::Payload &reply) { wire.write_sample(input, reply, &related); });
  } else if (message.carry == Carry::kReply) {
    const auto asker = wire.askers_.extract({message.answers, sample->related.sequence});
    asker.empty() ? wire.broken("a node receives a reply to no request") : asker.mapped()(payload);
  }
  return true;
}

int64_t RtpsWire::write_sample(size_t input, const Bus::Payload &payload, const tide_rtps_sample_identity_t *related) {
  tide_rtps_writer_t &writer = writers_.at(input)->writer;
  uint8_t *room = tide_participant_write_begin(&host_, &writer, payload.size());
  std::copy(payload.begin(), payload.end(), room);
  const int64_t number = tide_participant_write_end(&host_, &writer, payload.size(), related, engine_.now());
  engine_.at(engine_.now(), [this] { pump_host(); });  // not from a callback of the participant
  return number;
}

void RtpsWire::publish(size_t input, const Bus::Payload &payload) { write_sample(input, payload, nullptr); }

void RtpsWire::request(size_t input, const Bus::Payload &payload, Bus::Receive reply) {
  const size_t message = graph_.inputs[input].message;
  const auto is_reply = [&](const auto &one) { return one->message == graph_.messages[message].answered_by; };
  const auto replies = std::find_if(readers_.begin(), readers_.end(), is_reply);
  tide_rtps_sample_identity_t related{};
  related.guid = tide_participant_guid(&host_, &(*replies)->reader.endpoint);
  askers_[{message, write_sample(input, payload, &related)}] = std::move(reply);
}

void RtpsWire::pump_host() {
  tide_rtps_datagram_t datagram{};
  datagram.bytes = memory_->host_sent.data();
  while (tide_participant_poll(&host_, engine_.now(), &datagram)) {
    Datagram bytes(datagram.bytes, datagram.bytes + datagram.length);
    if (is_lost(bytes, false)) continue;
    last_down_ = std::max(last_down_, engine_.now() + return_.between(plan_.return_least, plan_.return_most));
    travelling_++;
    engine_.at(last_down_, [this, bytes = std::move(bytes)] {
      machine_.core().interrupt(plan_.interrupt_receive, [this, bytes] {
        travelling_--;
        if (!tide_rtps_agent_is_up(&agent_)) return;
        tide_participant_receive(&agent_.participant, bytes.data(), bytes.size(), kHostAddress, engine_.now());
        pump();
      });
    });
  }
  schedule(next_host_, datagram.deadline_ns, true);
}

// ---- the board ----

void RtpsWire::write(const Line::Bytes &message) {
  unwritten_.push_back(message);
  // not at once, because the session must know that the message was sent before an acknowledgment arrives
  machine_.core().interrupt(0, [this] { pump(); });
}

void RtpsWire::pump() {
  int64_t deadline = INT64_MAX;
  Line::Bytes message(plan_.mtu);
  for (;;) {
    while (const size_t length = tide_rtps_agent_read(&agent_, message.data(), engine_.now(), &deadline))
      link_.receive({message.begin(), message.begin() + static_cast<std::ptrdiff_t>(length)});
    if (unwritten_.empty()) break;
    const Line::Bytes &first = unwritten_.front();
    if (!tide_rtps_agent_write(&agent_, first.data(), first.size(), engine_.now(), kWallClock)) break;
    unwritten_.pop_front();
  }
  tide_rtps_datagram_t datagram{};
  datagram.bytes = memory_->sent.data();
  while (tide_rtps_agent_is_up(&agent_) && queued_.size() < plan_.rtps_queued) {
    if (!tide_participant_poll(&agent_.participant, engine_.now(), &datagram)) {
      deadline = std::min(deadline, datagram.deadline_ns);
      break;
    }
    send(datagram);
  }
  schedule(next_pump_, deadline, false);
}

void RtpsWire::send(const tide_rtps_datagram_t &datagram) {
  queued_.emplace_back(datagram.bytes, datagram.bytes + datagram.length);
  check_order(queued_.back());
  if (queued_.size() == 1) engine_.after(duration(plan_, datagram.length), [this] { leave(); });
}

// Checks that no sample waits while a less urgent sample or a datagram of discovery is sent.
void RtpsWire::check_order(const Datagram &datagram) {
  size_t position = TIDE_RTPS_HEADER_BYTES;
  tide_rtps_submessage_t submessage;
  int level = -1;
  bool is_sample = false;  // a sample, or data of discovery (level -1); HEARTBEATs and ACKNACKs are not checked
  while (tide_rtps_next(datagram.data(), datagram.size(), &position, &submessage) == 1) {
    if (submessage.id != TIDE_RTPS_DATA && submessage.id != TIDE_RTPS_DATA_FRAG) continue;
    is_sample = true;
    tide_cdr_t cdr;
    tide_rtps_data_t data;
    tide_rtps_open(&cdr, &submessage);
    tide_rtps_get_data(&cdr, &submessage, &data);
    for (const tide_rtps_output_t &output : memory_->outputs)
      if (output.object != 0 && output.writer.endpoint.entity == data.writer) level = output.writer.endpoint.level;
  }
  for (const tide_rtps_match_t &match : memory_->matches) {
    if (!is_sample || match.local == nullptr || match.policy != 0 || !match.local->is_writer ||
        match.local->level <= level)
      continue;
    const auto *writer = reinterpret_cast<const tide_rtps_writer_t *>(match.local);  // its first member
    // A reliable sample in fragments is acknowledged before the next one is sent.
    const int64_t before = match.proxy.end - 1;
    if (match.reliable && match.proxy.next <= before && before >= writer->first &&
        writer->slots[before % writer->depth].bytes > agent_.participant.fragment_bytes)
      continue;
    if ((!match.reliable || match.proxy.answered) && match.proxy.end <= writer->last)
      broken("a datagram goes before a more urgent sample");
  }
}

// Only datagrams about the board's reliable topics and services may be lost, not those of discovery.
bool RtpsWire::is_lost(const Datagram &datagram, bool to_host) const {
  size_t position = TIDE_RTPS_HEADER_BYTES;
  tide_rtps_submessage_t submessage;
  while (tide_rtps_next(datagram.data(), datagram.size(), &position, &submessage) == 1) {
    tide_cdr_t cdr;
    tide_rtps_data_t data;
    tide_rtps_repair_t repair;
    tide_rtps_open(&cdr, &submessage);
    uint32_t writer = 0, reader = 0;
    if (submessage.id == TIDE_RTPS_DATA || submessage.id == TIDE_RTPS_DATA_FRAG) {
      tide_rtps_get_data(&cdr, &submessage, &data);
      writer = data.writer;
      reader = data.reader;
    } else if (submessage.id == TIDE_RTPS_HEARTBEAT || submessage.id == TIDE_RTPS_ACKNACK) {
      tide_rtps_get_repair(&cdr, &submessage, &repair);
      writer = repair.writer;
      reader = repair.reader;
    }
    const uint32_t here = to_host == (submessage.id != TIDE_RTPS_ACKNACK) ? writer : reader;
    const auto is_about = [here](const tide_rtps_endpoint_t &one) { return one.entity == here && one.qos.reliable; };
    for (const tide_rtps_output_t &output : memory_->outputs)
      if (output.object != 0 && is_about(output.writer.endpoint)) return lost(output.writer.endpoint.level);
    for (const tide_rtps_input_t &input : memory_->inputs)
      if (input.object != 0 && is_about(input.reader.endpoint)) return lost(input.reader.endpoint.level);
  }
  return false;
}

void RtpsWire::leave() {
  const Datagram datagram = std::move(queued_.front());
  queued_.pop_front();
  counters_.frames++;
  counters_.bytes += datagram.size();
  if (on_left) on_left(datagram.size());
  if (!queued_.empty()) engine_.after(duration(plan_, queued_.front().size()), [this] { leave(); });
  if (!is_lost(datagram, true)) {
    last_up_ = std::max(last_up_, engine_.now() + latency_.between(plan_.agent_least, plan_.agent_most));
    travelling_++;
    engine_.at(last_up_, [this, datagram] {
      travelling_--;
      tide_participant_receive(&host_, datagram.data(), datagram.size(), kBoardAddress, engine_.now());
      pump_host();
    });
  }
  machine_.core().interrupt(plan_.interrupt_complete, [this] { pump(); });
}

void RtpsWire::schedule(Time &next, Time time, bool is_host) {
  if (time == INT64_MAX || time >= next) return;
  next = time = std::max(time, engine_.now() + 1);
  engine_.at(time, [this, &next, time, is_host] {
    if (next != time) return;  // meanwhile an earlier time was set
    next = kForever;
    if (is_host) return pump_host();
    machine_.core().interrupt(0, [this] { pump(); });
  });
}

}  // namespace tide::sim
