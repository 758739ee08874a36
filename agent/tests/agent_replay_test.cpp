// SPDX-License-Identifier: Apache-2.0
// Replays every recording with this agent in place of the recorded one: it gets the client's messages and the samples
// of DDS at their recorded times. Its messages are compared with those of the recorded agent:
//
//   STATUS_AGENT, STATUS, DATA, FRAGMENT, INFO,   byte for byte, in order, on each stream
//   TIMESTAMP_REPLY, GET_INFO
//   ACKNACK                                       byte for byte, in order
//   retransmissions                               requested messages are sent again, byte for byte as the first time
//   serial lines                                  the frames too, with escapes and CRC
//   HEARTBEAT, order between ACKNACK and others   not compared: the protocol does not fix them
//
// The table of deviations lists all other differences, with their reasons. Every recorded file is replayed.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "driver.h"
#include "tide/xrce.h"

namespace tide::agent::test::agent_replay_test {

constexpr Endpoint kClient = 1;
constexpr const char *kReferences = R"(<profiles>
  <participant profile_name="default_xrce_participant"><rtps><name>default_xrce_participant</name></rtps></participant>
  <topic profile_name="shapetype_topic"><name>Square</name><dataType>ShapeType</dataType></topic>
  <data_writer profile_name="shapetype_data_writer"><topic><name>Square</name><dataType>ShapeType</dataType></topic></data_writer>
  <data_reader profile_name="shapetype_data_reader"><topic><name>Square</name><dataType>ShapeType</dataType></topic></data_reader>
  <requester profile_name="shapetype_requester" service_name="shapetype_service" request_type="request_type"
             reply_type="reply_type"></requester>
  <replier profile_name="shapetype_replier" service_name="shapetype_service" request_type="request_type"
           reply_type="reply_type"></replier>
  <topic profile_name="HelloWorldTopic"><name>HelloWorldTopic</name><dataType>HelloWorld</dataType></topic>
  <data_writer profile_name="HelloWorldTopic"><topic><name>HelloWorldTopic</name></topic></data_writer>
  <data_reader profile_name="HelloWorldTopic"><topic><name>HelloWorldTopic</name></topic></data_reader>
</profiles>)";

// Frames that this agent sends in another form than the recorded agent.
struct Deviation {
  const char *file;
  const char *theirs;
  const char *ours;
  const char *reason;
};
constexpr Deviation kDeviations[] = {
    {"udp_probe_endianness_agent230", "810000000a0105000001ffff80", "810000000a0105000100000380",
     "agent 2.3.0 reads a big-endian HEARTBEAT as little-endian"},
    {"udp_probe_endianness_agent230", "810000000f011800bdf1016bc5c53a03bdf1016b11c53a030000000100000002",
     "810000000f011800bdf1016bc5c53a03bdf1016b11c53a030100000002000000", "the same for a big-endian TIMESTAMP"},
    {"udp_agent301_create_binary", "8180060005010600001000178000", "8180060005010600001000170000",
     "agent 3.0.1 was built with a middleware that has no services"},
    {"udp_agent301_create_binary", "8180070005010600001100188000", "8180070005010600001100180000",
     "the same for the replier"},
    {"udp_reconnect_same_key", "8180080005010600001200128200", "8180080005010600001200128000",
     "the participant was replaced: here its topic went with it, so the bad XML is what is left to complain about"},
    {"udp_agent301_status_errors", "8180080005010600001200120000", "8180080005010600001200128000",
     "agent 3.0.1 takes any text for the name of a topic; here bad XML is an error, as in agent 2.3.0"},
};

std::string stem(const std::string &path) { return std::filesystem::path(path).stem().string(); }

std::string expected_of(const std::string &file, const std::string &hex) {
  for (const Deviation &deviation : kDeviations) {
    if (file == deviation.file && hex == deviation.theirs) return deviation.ours;
  }
  return hex;
}

struct Parsed {
  tide_xrce_header_t header{};
  uint8_t id = 0xFF;
};

Parsed parse(const Octets &bytes) {
  Parsed parsed;
  const int position = tide_xrce_get_header(bytes.data(), bytes.size(), &parsed.header);
  if (position > 0 && bytes.size() > static_cast<size_t>(position)) parsed.id = bytes[static_cast<size_t>(position)];
  return parsed;
}

// The messages of one agent, sorted for the comparison.
struct Digest {
  std::vector<std::string> control;
  std::vector<std::string> acknacks;
  std::map<std::pair<int, int>, std::vector<std::string>> streams;  // by session (counted) and stream: first
                                                                    // transmissions
  std::set<std::string> repeated;
  std::vector<std::string> surprises;

  void add(const std::string &file, const Octets &bytes) {
    const Parsed parsed = parse(bytes);
    const std::string hex = expected_of(file, hex_from_bytes(bytes));
    if (parsed.id == TIDE_XRCE_HEARTBEAT) return;
    if (parsed.id == TIDE_XRCE_STATUS_AGENT) session_++;
    if (parsed.id == TIDE_XRCE_ACKNACK) {
      acknacks.push_back(hex);
    } else if (parsed.header.stream == TIDE_XRCE_STREAM_NONE) {
      control.push_back(hex);
    } else {
      add_to_stream(parsed, hex);
    }
  }

 private:
  void add_to_stream(const Parsed &parsed, const std::string &hex) {
    auto &stream = streams[{session_, parsed.header.stream}];
    if (parsed.header.sequence == stream.size()) {
      stream.push_back(hex);
    } else if (parsed.header.sequence < stream.size() && stream[parsed.header.sequence] == hex) {
      repeated.insert(hex);
    } else {
      surprises.push_back(hex);
    }
  }
  int session_ = 0;
};

class Replay {
 public:
  explicit Replay(const std::string &path) : file_(stem(path)), messages_(recorded_messages(path)) { start_agent(); }

  void run() {
    const auto [cut, resume] = find_restart();
    for (size_t place = 0; place < messages_.size(); place++) {
      const Message &message = messages_[place];
      if (place == resume) start_agent();
      if (message.from_client) {
        if (!message.dropped && (place < cut || place >= resume)) feed(message);
      } else {
        expect(place);
      }
    }
    driver_->run_until(messages_.back().t_ns + 1'000'000);
    collect();
    compare();
  }

 private:
  void start_agent() {
    if (driver_) collect();
    Options options;
    EXPECT_TRUE(options.profiles.add(kReferences));
    options.wall_clock_ns = [this] { return wall_clock_.empty() ? 0 : next_wall_clock(); };
    driver_ = std::make_unique<Driver>(std::move(options), messages_.front().t_ns);
  }

  int64_t next_wall_clock() {
    const int64_t value = wall_clock_.front();
    wall_clock_.erase(wall_clock_.begin());
    return value;
  }

  // For a recording in which the agent was killed: indexes `cut` and `resume`; messages of the client from `cut` until
  // `resume` were lost.
  std::pair<size_t, size_t> find_restart() const {
    const size_t count = messages_.size();
    bool known = false;
    for (size_t place = 0; place < count; place++) {
      const Message &message = messages_[place];
      const Parsed parsed = parse(message.bytes);
      if (message.from_client || parsed.id != TIDE_XRCE_INFO) continue;
      const bool answers_known = message.bytes[13] == 1;
      if (known && !answers_known) return {last_before(place, false) + 1, last_question(place)};
      known = answers_known;
    }
    return {count, count};
  }
  size_t last_before(size_t place, bool from_client) const {
    while (place-- != 0 && messages_[place].from_client != from_client) {}
    return place;
  }
  size_t last_question(size_t place) const {
    while (place-- != 0 && (!messages_[place].from_client || parse(messages_[place].bytes).id != TIDE_XRCE_GET_INFO)) {}
    return place;
  }

  void feed(const Message &message) {
    driver_->run_until(message.t_ns);
    note_clock(message);
    if (parse(message.bytes).id == TIDE_XRCE_WRITE_DATA) note_request(message.bytes);
    driver_->input(kClient, message.bytes);
  }

  // Sets the clock to the readings in the next TIMESTAMP_REPLY of the recorded agent.
  void note_clock(const Message &question) {
    if (parse(question.bytes).id != TIDE_XRCE_TIMESTAMP) return;
    const auto after =
        std::find_if(messages_.begin() + (&question - messages_.data()), messages_.end(), [](const Message &message) {
          return !message.from_client && parse(message.bytes).id == TIDE_XRCE_TIMESTAMP_REPLY;
        });
    ASSERT_NE(after, messages_.end());
    tide_cdr_t cdr;
    tide_cdr_reader(&cdr, after->bytes.data() + 8, after->bytes.size() - 8, false);
    tide_xrce_timestamp_reply_t reply;
    tide_xrce_get_timestamp_reply(&cdr, &reply);
    wall_clock_ = {tide_xrce_time_to_ns(reply.receive), tide_xrce_time_to_ns(reply.transmit)};
  }

  // Counts the WRITE_DATA to requesters, because the fake middleware numbers requests from 1.
  void note_request(const Octets &bytes) {
    if (TIDE_XRCE_OBJECT_KIND(bytes[11]) != TIDE_XRCE_KIND_REQUESTER) return;
    requests_[static_cast<uint16_t>(bytes[8] << 8 | bytes[9])] = ++request_count_;
  }

  // Adds an expected message. If it carries a sample, DDS delivered this sample just before the recorded agent sent the
  // message, so this agent gets the sample now.
  void expect(size_t place) {
    const Message &message = messages_[place];
    expected_.add(file_, message.bytes);
    if (!message.frame.empty()) expected_frames_.insert(hex_from_bytes(message.frame));
    const Parsed parsed = parse(message.bytes);
    if (parsed.header.stream == TIDE_XRCE_STREAM_NONE) return;
    if (!seen_.insert({parsed.header.stream, parsed.header.sequence}).second) return;
    if (parsed.id == TIDE_XRCE_DATA) {
      offer({message.bytes.begin() + 8, message.bytes.end()}, message.t_ns);
    } else if (parsed.id == TIDE_XRCE_FRAGMENT && !in_fragments_) {
      offer(reassemble(place), message.t_ns);
    }
    if (parsed.id == TIDE_XRCE_FRAGMENT) in_fragments_ = (message.bytes[5] & TIDE_XRCE_FLAG_LAST_FRAGMENT) == 0;
  }

  Octets reassemble(size_t place) const {
    Octets whole;
    std::set<uint16_t> taken;
    for (; place < messages_.size(); place++) {
      const Message &message = messages_[place];
      const Parsed parsed = parse(message.bytes);
      if (message.from_client || parsed.id != TIDE_XRCE_FRAGMENT || !taken.insert(parsed.header.sequence).second)
        continue;
      whole.insert(whole.end(), message.bytes.begin() + 8, message.bytes.end());
      if ((message.bytes[5] & TIDE_XRCE_FLAG_LAST_FRAGMENT) != 0) break;
    }
    return {whole.begin() + 4, whole.end()};
  }

  // Offers a sample to this agent. The body of a DATA consists of the ids of the READ_DATA, the prefix of services, and
  // the payload.
  void offer(const Octets &body, int64_t t_ns) {
    driver_->run_until(t_ns);
    FakeSource *source = driver_->middleware.newest_source();
    ASSERT_NE(source, nullptr) << file_;
    Sample sample;
    size_t prefix = 4;
    if (TIDE_XRCE_OBJECT_KIND(body[3]) == TIDE_XRCE_KIND_REQUESTER) {
      sample.request = requests_.at(static_cast<uint16_t>(body[4] << 8 | body[5]));
      prefix += 4;
    } else if (TIDE_XRCE_OBJECT_KIND(body[3]) == TIDE_XRCE_KIND_REPLIER) {
      std::copy_n(body.begin() + 4, sample.identity.size(), sample.identity.begin());
      prefix += sample.identity.size();
    }
    sample.payload.assign(body.begin() + static_cast<std::ptrdiff_t>(prefix), body.end());
    source->offer(std::move(sample));
    driver_->pump();
  }

  void collect() {
    for (const Sent &message : driver_->sent) produced_.push_back(message.bytes);
    driver_->sent.clear();
  }

  void compare() {
    Digest ours;
    for (const Octets &bytes : produced_) ours.add("", bytes);
    EXPECT_EQ(ours.control, expected_.control) << file_;
    EXPECT_EQ(ours.acknacks, expected_.acknacks) << file_;
    EXPECT_EQ(ours.streams, expected_.streams) << file_;
    EXPECT_EQ(ours.surprises, std::vector<std::string>{}) << file_;
    for (const std::string &frame : expected_.repeated)
      EXPECT_TRUE(ours.repeated.contains(frame)) << file_ << " " << frame;
    compare_frames();
  }

  void compare_frames() {
    std::set<std::string> frames;
    for (const Octets &bytes : produced_) {
      Octets frame(TIDE_FRAMING_WORST_BYTES(bytes.size()));
      const int length = tide_framing_encode(frame.data(), frame.size(), 0, 1, bytes.data(), bytes.size(), nullptr, 0);
      ASSERT_GT(length, 0);
      frame.resize(static_cast<size_t>(length));
      frames.insert(hex_from_bytes(frame));
    }
    for (const std::string &frame : expected_frames_) {
      if (frame.substr(0, 24).find("0b010500") != std::string::npos) continue;  // HEARTBEAT
      EXPECT_TRUE(frames.contains(frame)) << file_ << " " << frame;
    }
  }

  std::string file_;
  const std::vector<Message> messages_;
  std::unique_ptr<Driver> driver_;
  std::vector<int64_t> wall_clock_;
  std::map<uint16_t, uint64_t> requests_;
  uint64_t request_count_ = 0;
  bool in_fragments_ = false;
  std::set<std::pair<uint8_t, uint16_t>> seen_;
  Digest expected_;
  std::set<std::string> expected_frames_;
  std::vector<Octets> produced_;
};

class AgentReplay : public testing::TestWithParam<std::string> {};

TEST_P(AgentReplay, AnswersAsRecorded) { Replay(GetParam()).run(); }

INSTANTIATE_TEST_SUITE_P(Recordings, AgentReplay, testing::ValuesIn(all_vector_files()),
                         [](const auto &parameter) { return stem(parameter.param); });

TEST(AgentReplay, FindsTheRecordings) { EXPECT_GE(all_vector_files().size(), 70u); }

}  // namespace tide::agent::test::agent_replay_test
