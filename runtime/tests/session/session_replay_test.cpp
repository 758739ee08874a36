// SPDX-License-Identifier: Apache-2.0
// The client's side of every recording. The test reads the program's requests (objects, samples, pings) from the
// captured client frames, makes the same requests on a session of tide at the same times, passes the agent's recorded
// answers to that session, and compares its output.
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "session_replay_cases.h"
#include "session_replay_client.h"
#include "session_replay_output.h"

namespace session_replay_test {

using namespace session_replay;

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
  // The clock is set so that the TIMESTAMPs equal the recorded ones.
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

  // A client whose CREATE_CLIENT is not in this recording.
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
        const Bytes first = theirs_.requests.back(); /* the comparison begins anew for a restarted program */
        theirs_.requests.pop_back();
        start_instance(wanted, now_ns);
        theirs_.requests.push_back(first);
        tide_session_open(&client_->session);
        break;
      }
      case TIDE_XRCE_GET_INFO: ASSERT_EQ(tide_session_ping(&client_->session), TIDE_OK); break;
      case TIDE_XRCE_TIMESTAMP:
        ASSERT_LE(client_->now_ns, timestamp_of(message));
        client_->advance(timestamp_of(message));
        ASSERT_EQ(tide_session_synchronise(&client_->session), TIDE_OK);
        break;
      case TIDE_XRCE_DELETE:
        if (what_.mode == Mode::unknown) { /* tide's client has reconnected, so it would delete another session */
          collect();
          client_.reset();
          start_silent_instance(now_ns);
        }
        tide_session_close(&client_->session);
        break;
      default: /* acknowledgments are made by the session itself */ break;
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
    wholes_.push_back(submessage); /* kept, because the texts of objects point into it */
    const Submessage &kept = wholes_.back();
    switch (kept.id) {
      case TIDE_XRCE_CREATE: return client_->create(kept);
      case TIDE_XRCE_DELETE: return client_->remove(static_cast<uint16_t>(kept.body[2] << 8 | kept.body[3]));
      case TIDE_XRCE_WRITE_DATA: return client_->write(header.stream, kept);
      case TIDE_XRCE_READ_DATA: return client_->read(kept);
      default: FAIL() << "submessage " << int(kept.id) << " on a stream";
    }
  }

  // The message whose first fragment this is, reassembled from the frames that follow in the recording.
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
    if (info) bytes = echoing(event.message.bytes); /* because an agent repeats the id of the request */
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
  }

  // tide's ACKNACKs contain the recorded ones, in order; they may acknowledge in smaller steps, but never earlier.
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

  unsigned asked_by_agent() const {
    unsigned count = 0;
    for (const Event &event : recording_.events)
      count += !event.to_agent && !event.dropped && event.message.id() == TIDE_XRCE_GET_INFO;
    return count;
  }

  // Stream and sequence number of each message that was flagged as missing by the agent.
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

  // If the recorded client ended properly, tide's client must, too.
  void check_states() {
    const bool last = index_ >= recording_.events.size();
    if (last && (what_.mode == Mode::exact || what_.mode == Mode::liveliness || what_.mode == Mode::probe)) {
      EXPECT_EQ(client_->session.state, TIDE_SESSION_IDLE) << "after its goodbye was answered";
    }
    EXPECT_EQ(client_->session.counters.samples_malformed, 0u);
    EXPECT_EQ(client_->session.daemon.receiver.counters.malformed, 0u);
  }

  // The samples that the agent sent, according to the recording alone.
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
  std::vector<Bytes> delivered_;
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

}  // namespace session_replay_test
