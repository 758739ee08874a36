// SPDX-License-Identifier: Apache-2.0
#include "analysis/link.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string_view>

namespace tide::analysis {

// ---- messages as frames ----

namespace {

constexpr int64_t kFramingBytes = 7;  // a flag, two addresses, the length, the checksum
constexpr int64_t kHeaderBytes = 4, kSubmessageBytes = 4, kRequestBytes = 4;
constexpr int64_t kAnswerBytes = kHeaderBytes + kSubmessageBytes + 5;
constexpr int64_t kAnswerEscapes = 7;   // bytes that may need escaping: two numbers, the stream and the checksum; all
                                        // others have known values
constexpr int64_t kQuestionBytes = 32;  // size of GET_INFO and of INFO, rounded up
constexpr time_ns kSecondNs = 1'000'000'000;
// A datagram with one sample contains the RTPS header, INFO_DST, INFO_TS, DATA and the encapsulation. The shortest one
// has no INFO_TS.
constexpr int64_t kRtpsBytes = 20 + 16 + 12 + 24 + 4, kLeastRtpsBytes = kRtpsBytes - 12;
constexpr int64_t kRtpsControlBytes = 32;  // of a HEARTBEAT or ACKNACK, in place of a sample
constexpr time_ns kRtpsRetryNs = 20'000'000, kLongestRtpsRetryNs = 128 * kRtpsRetryNs;  // RETRY_NS of participant.c
constexpr int64_t kEncapsulationBytes = 4, kFragmentBytes = 12;  // by which DATA_FRAG is longer than DATA
constexpr int64_t kInternetBytes = 28, kEthernetBytes = 38, kLeastEthernetPayload = 46;  // 38: with preamble and gap
constexpr int64_t kRtpsOverheadBytes = 176;  // TIDE_RTPS_OVERHEAD_BYTES of tide/rtps.h: kept free in a datagram

time_ns duration_ns(const Line &line, int64_t bytes) { return divide_up(bytes * 10 * kSecondNs, line.baud); }

time_ns plain_ns(const Line &line, int64_t message_bytes) { return duration_ns(line, message_bytes + kFramingBytes); }

int64_t padded(Direction direction, int64_t bytes) { return direction == Direction::up ? (bytes + 3) / 4 * 4 : bytes; }

}  // namespace

int64_t message_limit(const Line &line, Direction direction) {
  // A client announces an MTU that is four bytes less than its slots can hold (ANNOUNCED_LESS_BYTES).
  if (direction == Direction::down) return (line.mtu_bytes - 4) / 4 * 4;
  const int64_t quantum = line.quantum_bytes > 0 ? line.quantum_bytes : line.mtu_bytes - 4;
  return std::min(quantum, line.mtu_bytes - 4) / 4 * 4;
}

time_ns frame_ns(const Line &line, int64_t message_bytes) {
  const int64_t worst = 1 + 2 * (message_bytes + kFramingBytes - 1);
  if (!line.escaped_bytes) return duration_ns(line, worst);
  return duration_ns(line, std::min(worst, message_bytes + kFramingBytes + *line.escaped_bytes));
}

time_ns datagram_ns(const Line &line, int64_t datagram_bytes) {
  const int64_t bytes = std::max(datagram_bytes + kInternetBytes, kLeastEthernetPayload) + kEthernetBytes;
  return divide_up(bytes * 8000, line.rtps_mbit_per_s);
}

Message message(const Line &line, Direction direction, int64_t payload_bytes, int64_t readers) {
  if (line.rtps_mbit_per_s > 0 && direction == Direction::up) {
    Message result;
    const int64_t sample = kEncapsulationBytes + payload_bytes;
    const int64_t room = (line.rtps_datagram_bytes - kRtpsOverheadBytes) / 4 * 4;
    const int64_t pieces = divide_up(sample, room), last = (sample - (pieces - 1) * room + 3) / 4 * 4;
    const int64_t headers = kRtpsBytes - kEncapsulationBytes + (pieces > 1 ? kFragmentBytes : 0);
    result.frames = multiply(readers, pieces);
    result.unit_ns = datagram_ns(line, headers + (pieces > 1 ? room : last));
    const time_ns whole_ns = add(multiply(pieces - 1, result.unit_ns), datagram_ns(line, headers + last));
    result.total_ns = result.plain_ns = multiply(readers, whole_ns);
    result.least_ns = datagram_ns(line, kLeastRtpsBytes);  // this reader's datagram may be sent first
    return result;
  }
  const int64_t limit = message_limit(line, direction);
  const int64_t length = kSubmessageBytes + kRequestBytes + payload_bytes;
  const int64_t shortest = kHeaderBytes + kSubmessageBytes + kRequestBytes;
  Message result;
  if (kHeaderBytes + length <= limit) {
    const int64_t bytes = kHeaderBytes + padded(direction, length);
    result.frames = 1;
    result.total_ns = result.unit_ns = frame_ns(line, bytes);
    result.plain_ns = plain_ns(line, bytes);
    result.least_ns = line.exact_sizes ? result.plain_ns : plain_ns(line, shortest);
    return result;
  }
  const int64_t piece = limit - kHeaderBytes - kSubmessageBytes;
  result.frames = divide_up(length, piece);
  const int64_t rest = length - (result.frames - 1) * piece;
  const int64_t last = kHeaderBytes + kSubmessageBytes + padded(direction, rest);
  result.unit_ns = frame_ns(line, std::max(direction == Direction::down ? line.mtu_bytes - 4 : limit, last));
  result.total_ns = add(multiply(result.frames - 1, frame_ns(line, limit)), frame_ns(line, last));
  result.plain_ns = (result.frames - 1) * plain_ns(line, limit) + plain_ns(line, last);
  result.least_ns = line.exact_sizes ? result.plain_ns : plain_ns(line, shortest);
  return result;
}

time_ns answer_frame_ns(const Line &line) {
  return duration_ns(
      line, kAnswerBytes + kFramingBytes + std::min(line.escaped_bytes.value_or(kAnswerEscapes), kAnswerEscapes));
}

time_ns question_frame_ns(const Line &line) { return frame_ns(line, kQuestionBytes); }

// ---- checks of a description ----

namespace {

constexpr time_ns kMostTimeNs = 1'000'000'000'000;        // about 17 minutes, so that no sum overflows
constexpr time_ns kMostPeriodNs = 1'000'000'000'000'000;  // eleven days, as for executors of the host (model.h)
constexpr size_t kMostChains = 1000;
constexpr int64_t kMostPayloadBytes = 1'000'000;
constexpr int64_t kUnansweredQuestions = 8;  // PINGS_UNANSWERED_MAXIMUM: unanswered probes, half a silence (silence_ns)
                                             // apart, after which the session gives up
constexpr int64_t kMostFragments = 15;       // of one message; the window of 16 frames holds them all and one frame
                                             // more

class Checker {
 public:
  explicit Checker(const LinkSystem &system) : system_(system) {}

  std::vector<std::string> run() {
    client();
    line();
    hosts();
    if (system_.chains.empty()) error("system", "has no chains");
    if (system_.chains.size() > kMostChains) error("system", "has more than 1000 chains");
    if (!errors_.empty()) return errors_;
    for (const LinkChain &one : system_.chains) chain(one);
    levels();
    if (errors_.empty()) silence();
    return errors_;
  }

 private:
  void error(const std::string &where, const std::string &what) { errors_.push_back(where + ": " + what); }
  void time(const std::string &where, const std::string &name, time_ns value, time_ns least = 0,
            time_ns most = kMostTimeNs) {
    if (value < least || value > most)
      error(where, "'" + name + "' is " + std::to_string(value) + "; it must be from " + std::to_string(least) +
                       " to " + std::to_string(most));
  }

  void questions(const std::string &whose, const Questions &asked) {
    time("protocol", whose + "heartbeat_delay_ns", asked.delay_ns, -1);
    time("protocol", whose + "heartbeat_floor_ns", asked.floor_ns, 1'000'000);
    time("protocol", whose + "heartbeat_period_ns", asked.period_ns, 1'000'000);
  }

  void client() {
    const Client &client = system_.client;
    time("client", "submit_ns", client.submit_ns);
    time("client", "process_ns", client.process_ns);
    time("client", "dispatch_ns", client.dispatch_ns);
    time("client", "interrupt_receive_ns", client.interrupt_receive_ns);
    time("client", "interrupt_complete_ns", client.interrupt_complete_ns);
    if (client.processors < 1) error("client", "'processors' must be 1 or more");
    for (const ClientLoad &load : client.loads) {
      time("client", "period_ns", load.period_ns, 1, kMostPeriodNs);
      time("client", "execution_ns", load.execution_ns);
      time("client", "late_ns", load.late_ns, 0, 4 * kMostPeriodNs);
      if (load.payload_bytes < 0 || load.payload_bytes > kMostPayloadBytes)
        error("client", "'payload_bytes' of a load must be from 0 to " + std::to_string(kMostPayloadBytes));
    }
    const Protocol &protocol = system_.protocol;
    questions("", protocol.client);
    questions("agent_", protocol.agent);
    if (protocol.silence_ns != 0) time("protocol", "silence_ns", protocol.silence_ns, 1'000'000);
    if (protocol.losses < 0 || protocol.losses > 16) error("protocol", "'losses' must be from 0 to 16");
    if (protocol.window < 1) error("protocol", "'window' must be 1 or more");
    if (protocol.acknowledges == Acknowledges::asked && protocol.client.delay_ns < 0)
      error("protocol", "acknowledgments that are asked for need a 'heartbeat_delay_ns'");
  }

  void line() {
    const Line &line = system_.line;
    if (line.baud < 1200 || line.baud > 1'000'000'000) error("line", "'baud' must be from 1200 to 1000000000");
    if (line.mtu_bytes < 68 || line.mtu_bytes > 65535) error("line", "'mtu_bytes' must be from 68 to 65535");
    if (line.quantum_bytes != 0 && (line.quantum_bytes < 64 || line.quantum_bytes > line.mtu_bytes))
      error("line", "'quantum_bytes' must be 0, or from 64 to the MTU");
    if (line.escaped_bytes.value_or(0) < 0) error("line", "'escaped_bytes' must be 0 or more, or null for all");
    time("line", "agent_least_ns", line.agent_least_ns);
    time("line", "agent_ns", line.agent_ns, line.agent_least_ns);
    time("line", "turn_ns", line.acknowledges_ns());
    time("line", "return_ns", line.return_ns);
    time("line", "host_hop_ns", line.host_hop_ns);
    time("line", "rtps_acknowledge_ns", line.rtps_acknowledge_ns);
    time("line", "rtps_heartbeat_ns", line.rtps_heartbeat_ns);
    if (line.shorter_agent_ns.size() != line.shorter_return_ns.size())
      error("line", "'shorter_agent_ns' and 'shorter_return_ns' differ in length");
    for (const time_ns value : line.shorter_agent_ns) time("line", "shorter_agent_ns", value, 0, line.agent_ns);
    for (const time_ns value : line.shorter_return_ns) time("line", "shorter_return_ns", value, 0, line.return_ns);
    if (line.rtps_mbit_per_s < 0 || line.rtps_mbit_per_s > 100'000)
      error("line", "'rtps_mbit_per_s' must be from 0 to 100000");
    if (line.rtps_datagram_bytes < 768 || line.rtps_datagram_bytes > 65'507)
      error("line", "'rtps_datagram_bytes' must be from 768 to 65507");
    if (line.rtps_queued < 1 || line.rtps_queued > 1000) error("line", "'rtps_queued' must be from 1 to 1000");
  }

  void hosts() {
    for (const HostExecutor &host : system_.hosts) {
      if (host.lanes < 1 || host.lanes > 64) error("host '" + host.name + "'", "'lanes' must be from 1 to 64");
    }
  }

  void chain(const LinkChain &chain) {
    const std::string where = "chain '" + chain.name + "'";
    time(where, "period_ns", chain.period_ns, 1, kMostPeriodNs);
    time(where, "deadline_ns", chain.deadline_ns, 1, kMostPeriodNs);
    time(where, "jitter_ns", chain.jitter_ns);
    if (chain.callbacks.empty()) error(where, "has no callbacks");
    if (chain.callbacks.size() > kMostCallbacks) error(where, "has more than 1000 callbacks");
    for (size_t index = 0; index < chain.callbacks.size(); index++) callback(chain, index);
    if (!chain.shorter_away_ns.empty() && chain.shorter_away_ns.size() != system_.line.shorter_agent_ns.size())
      error(where, "'shorter_away_ns' and 'shorter_agent_ns' differ in length");
    for (const time_ns value : chain.shorter_away_ns) time(where, "shorter_away_ns", value);
    if (!chain.response_ns) return;
    if (*chain.response_ns < 0) error(where, "'response_ns' is less than 0");
    if (is_on_client(chain)) error(where, "is bounded elsewhere and has a callback on the client");
  }

  void callback(const LinkChain &chain, size_t index) {
    const LinkCallback &callback = chain.callbacks[index];
    const std::string where = "chain '" + chain.name + "', callback '" + callback.name + "'";
    time(where, "execution_ns", callback.execution_ns);
    time(where, "least_ns", callback.least_ns);
    time(where, "hop_ns", callback.hop_ns.value_or(0));
    if (callback.least_ns > callback.execution_ns) error(where, "'least_ns' is more than 'execution_ns'");
    for (const CriticalSection &section : callback.sections) {
      time(where, "section_ns", section.section_ns);
      if (section.section_ns > callback.execution_ns)
        error(where, "'section_ns' of lock '" + section.lock + "' is more than 'execution_ns'");
    }
    if (callback.place < kOnClient || callback.place >= static_cast<int>(system_.hosts.size())) {
      error(where, "is on no executor");
      return;
    }
    if (callback.payload_bytes < 0 || callback.payload_bytes > kMostPayloadBytes) {
      error(where, "'payload_bytes' must be from 0 to " + std::to_string(kMostPayloadBytes));
      return;
    }
    if (callback.readers < 1 || callback.readers > 10'000) error(where, "'readers' must be from 1 to 10000");
    const bool has_next = index + 1 < chain.callbacks.size();
    if (has_next && callback.payload_bytes == 0) error(where, "publishes nothing that the next callback could receive");
    if (callback.payload_bytes == 0) return;
    if (callback.place == kOnClient) fits(where, Direction::up, chain.uplink_reliable, callback.payload_bytes);
    if (has_next && chain.callbacks[index + 1].place == kOnClient)
      fits(where, Direction::down, chain.downlink_reliable || chain.repaired, callback.payload_bytes);
  }

  // A client probes an agent that has been silent. The probe and its answer each wait for a frame whose transmission
  // has begun.
  void silence() {
    const Line &line = system_.line;
    const time_ns limit_ns = kUnansweredQuestions * (system_.protocol.silence_ns / 2);
    const time_ns answer_ns = up_.ns + down_.ns + 2 * question_frame_ns(line) + line.acknowledges_ns();
    if (system_.protocol.silence_ns == 0 || answer_ns < limit_ns || up_.ns + down_.ns == 0) return;
    const bool is_up = up_.ns > down_.ns;
    const auto ms = [](time_ns time) { return std::to_string(time / 1'000'000) + " ms"; };
    error((is_up ? up_ : down_).where,
          "its frame takes " + ms(std::max(up_.ns, down_.ns)) + ", one in the other direction " +
              ms(std::min(up_.ns, down_.ns)) + ", and the agent " + ms(line.acknowledges_ns()) +
              ": together too long for a board, which begins a new session when its agent has not answered for " +
              ms(limit_ns) + "; lower mtu_bytes or agent_ms" + (line.usb ? "" : ", or raise baud"));
  }

  void fits(const std::string &where, Direction direction, bool reliable, int64_t payload_bytes) {
    const Line &line = system_.line;
    const Message sent = message(line, direction, payload_bytes);
    Longest &longest = direction == Direction::up ? up_ : down_;
    if (sent.unit_ns > longest.ns) longest = {sent.unit_ns, where};
    if (line.rtps_mbit_per_s > 0 && direction == Direction::up) return;
    if (sent.frames > 1 && !reliable)
      error(where, "a message of " + std::to_string(payload_bytes) +
                       " bytes needs more than one frame and best effort knows no fragments; make it reliable or raise "
                       "the MTU");
    if (sent.frames > kMostFragments)
      error(where, "a message of " + std::to_string(payload_bytes) + " bytes needs " + std::to_string(sent.frames) +
                       " frames, and there is a bound for at most " + std::to_string(kMostFragments) + "; raise " +
                       (system_.line.quantum_bytes > 0 ? "quantum_bytes" : "mtu_bytes"));
  }

  // Host executors take ready callbacks in any order, so priorities matter only on the client and on its line.
  static bool is_on_client(const LinkChain &chain) {
    return std::any_of(chain.callbacks.begin(), chain.callbacks.end(),
                       [](const LinkCallback &one) { return one.place == kOnClient; });
  }

  // Neither the link nor the executor orders chains of equal priority, so chains that have the same priority must
  // declare it (shares_level). The batch executor ignores priorities.
  void levels() {
    std::map<int64_t, const LinkChain *> owners;
    std::set<std::string> names;
    for (const LinkChain &chain : system_.chains) {
      if (!names.insert(chain.name).second) error("chain '" + chain.name + "'", "there are two of this name");
      if (!is_on_client(chain)) continue;
      const auto [known, first] = owners.emplace(chain.priority, &chain);
      const LinkChain &owner = *known->second;
      if (!first && system_.client.policy != ClientPolicy::batch && !(chain.shares_level && owner.shares_level))
        error("chain '" + chain.name + "'", "has the priority of chain '" + owner.name + "'; give each its own");
    }
  }

  const LinkSystem &system_;
  std::vector<std::string> errors_;
  struct Longest {
    time_ns ns = 0;
    std::string where;
  };
  Longest up_, down_;  // frames of all messages
};

}  // namespace

std::vector<std::string> check(const LinkSystem &system) { return Checker(system).run(); }

// ---- the model on which bounds are computed ----
// A `visit` is a chain's execution on the client between two waits for the line. A Load is the demand of one instance.
// All demands are functions of the length of a window that begins at the release. The bound is the shortest window that
// is at least as long as its demand, plus the release jitter. The times in `responses_` count from the nominal expiry.

namespace {

// Demand of one chain for one direction of the line.
struct Traffic {
  int64_t messages = 0, frames = 0;
  int64_t control = 0;   // ACKNACKs and HEARTBEATs
  int64_t receipts = 0;  // those of `control` that are ACKNACKs which immediately follow a message of the other
                         // direction
  int64_t asks = 0;      // those of `control` that are HEARTBEATs; the other direction has as many answers
  time_ns total_ns = 0, unit_ns = 0, least_ns = 0;
  time_ns plain_ns = 0;  // total_ns without escaped bytes
};

struct Load {
  int64_t visits = 0;
  time_ns client_ns = 0;              // all execution on the client
  time_ns unit_ns = 0;                // longest part that a cooperative executor does not preempt
  time_ns visit_ns = 0;               // longest visit
  time_ns first_ns = 0, last_ns = 0;  // the two visits of a pair
  time_ns taking_ns = 0;              // processing of the received frames at the beginning of the last visit
  bool pair = false;                  // two visits: the chain starts and ends on the client, and is elsewhere in
                                      // between
  time_ns tail_line_ns = 0;           // time on the line of the last callback's message, which the response to the
                                      // callback's end excludes
  Traffic up, down;
  std::vector<time_ns> hosts_ns;           // by host executor
  std::vector<bool> visits_host;           // by host executor: true even for a callback without execution time, which
                                           // also waits for a lane
  time_ns host_ns = 0, host_least_ns = 0;  // greatest and least time in the agent and in the chain's own host callbacks
  time_ns up_wait_ns = 0, down_wait_ns = 0;  // time for which an ACKNACK waits and is transmitted
  time_ns taking_most_ns = 0;                // from the arrival of an answer until its callback takes it
  time_ns answer_ns = 0;                     // from the end of a message to its acknowledgment
  time_ns receipt_ns = 0;                    // from the arrival of an answer to its acknowledgment
  time_ns settling_ns = 0;                   // from the end of an instance to the end of its ACKNACKs and HEARTBEATs
  bool answers_first = false;                // ACKNACKs of an instance may precede a later message of its own
  time_ns hold_ns = 0;                       // longest time for which the chain may hold the line
  time_ns interrupts_ns = 0;
  time_ns losses_ns = 0;
  time_ns spare_ns = 0;     // over RTPS with losses: from the end of an instance until its samples are acknowledged
  time_ns new_data_ns = 0;  // batch: time for which stored samples wait for the next event
  time_ns before_ns = 0;    // shortest time from the release to the arrival of an answer
  time_ns behind_ns = 0;    // shortest time from the last answer's processing to the end
  time_ns remote_least_ns() const { return up.least_ns + host_least_ns + down.least_ns; }
};

// Elements that chains share are counted once (docs/analysis/joins.md, "What paths share"). An element is a callback,
// named by its number and 0; its message to the agent, named by its number, kSends and the message; or a message
// towards the board with its receiver, named by the numbers of both ends and the message.
using SharedKey = std::array<int64_t, 3>;
constexpr int64_t kSends = std::numeric_limits<int64_t>::min();

// The part of a chain's load that another chain must not count, because it is counted with a third chain, or with the
// other chain itself.
struct Cut {
  time_ns client_ns = 0, up_ns = 0, down_ns = 0, up_plain_ns = 0, down_plain_ns = 0;
  int64_t up_frames = 0, down_frames = 0;
  std::vector<bool> callbacks;  // callbacks that other chains count
};

// One step of a chain: a callback, or a message in transit. A stage serves the instances of the chain one after the
// other, except that in a delay they may overlap.
struct Stage {
  enum class Kind { client, up, down, host, delay } kind = Kind::delay;
  size_t host = 0;
  time_ns own_ns = 0, least_ns = 0;
  time_ns others_ns = 0;              // other work of the same instance on the same processor or direction
  time_ns late_ns = 0, early_ns = 0;  // greatest and least time from the nominal expiry until an instance arrives at
                                      // the stage
  time_ns behind_ns = 0;              // greatest time from the nominal expiry until an instance leaves the stage
  size_t index = 0;
  bool is_at(const Stage &other) const { return kind == other.kind && host == other.host; }
};

// When the instance under analysis arrives at a stage, counted from the beginning of the window. The window begins when
// no work that is more urgent than the chain or of its level is pending at the stage.
using Arrival = std::optional<time_ns>;

// Demand of one instance of a chain, as far as it is counted for another chain.
struct Seen {
  time_ns client_ns = 0, up_ns = 0, down_ns = 0;
  int64_t up_frames = 0, down_frames = 0;  // including frames that were sent and wait for their acknowledgment
  int64_t up_control = 0, down_control = 0, up_asks = 0, down_asks = 0;
};

// Upper limit of all bounds.
constexpr time_ns kLongestWaitNs = 1'000'000'000'000;

// Execution of a chain's instances in a window, if an instance executes for `load_ns` within `span_ns` of its release.
Linear share(time_ns load_ns, time_ns period_ns, time_ns span_ns, time_ns window_ns) {
  if (load_ns == 0) return {};
  const time_ns length_ns = window_ns + std::max<time_ns>(span_ns - load_ns, 0);
  const time_ns count = length_ns / period_ns;
  const time_ns rest_ns = length_ns % period_ns;
  const time_ns always = load_ns / period_ns;
  const time_ns part_ns = load_ns % period_ns;
  const time_ns value_ns = add(multiply(count, load_ns), multiply(always, rest_ns));
  if (part_ns == 0) return {value_ns, always, kNeverNs};
  if (rest_ns < part_ns) return {add(value_ns, rest_ns), always + 1, window_ns + part_ns - rest_ns};
  return {add(value_ns, part_ns), always, window_ns + period_ns - rest_ns};
}

constexpr time_ns kMillisecondNs = 1'000'000;
constexpr time_ns kLongestDelayNs = 2000 * kMillisecondNs;  // limit of a measured HEARTBEAT delay
constexpr time_ns kLongestEventNs = 1000 * kMillisecondNs;  // time after which a batch executor checks for data even
                                                            // without an event
constexpr int64_t kAgentSilences = 30;                      // silence after which the agent probes, as a multiple of
                                                            // the client's

time_ns first_step_ns(const Questions &questions) {
  return questions.delay_ns < 0 ? questions.floor_ns : questions.delay_ns;
}

// Number of HEARTBEATs for one frame whose acknowledgment takes this long.
int64_t heartbeats(const Questions &questions, time_ns pending_ns) {
  const time_ns wait_ns = std::min(pending_ns, kLongestWaitNs);
  const bool measured = questions.delay_ns < 0;
  const time_ns longest_step_ns = measured ? std::max(questions.period_ns, questions.floor_ns) : questions.period_ns;
  time_ns at_ns = first_step_ns(questions);
  time_ns step_ns = measured ? std::min(2 * questions.floor_ns, longest_step_ns) : longest_step_ns;
  int64_t count = 0;
  for (; at_ns <= wait_ns && step_ns < longest_step_ns; count++) {
    at_ns += step_ns;
    step_ns = std::min(2 * step_ns, longest_step_ns);
  }
  return at_ns <= wait_ns ? count + 1 + (wait_ns - at_ns) / step_ns : count;
}

// Number of HEARTBEATs of one stream in a window, however many of its messages are unacknowledged. At most one
// HEARTBEAT is outstanding, and the next one follows a period later, unless the delay was restarted in between.
// `beginnings` is the maximum number of restarts; -1 means unknown.
int64_t heartbeats_of_stream(const Questions &questions, int64_t beginnings, time_ns window_ns) {
  const time_ns first_ns = first_step_ns(questions);
  const time_ns apart_ns = std::min(first_ns, questions.period_ns);
  const int64_t by_distance = apart_ns > 0 ? window_ns / apart_ns + 1 : kNeverNs;
  if (beginnings < 0) return by_distance;
  int64_t sooner = 1;
  if (questions.delay_ns < 0) {
    for (time_ns step_ns = 2 * first_ns; step_ns < questions.period_ns; step_ns *= 2) sooner++;
  }
  return std::min(by_distance, add(multiply(beginnings, sooner), window_ns / questions.period_ns + 1));
}

// Longest time until a side sends its first or its next HEARTBEAT for a lost frame.
time_ns silence_ns(const Questions &questions) {
  return std::max(questions.delay_ns < 0 ? kLongestDelayNs : questions.delay_ns, questions.period_ns);
}

// ---- elements shared by chains of one timer ----

// Elements that a chain may share, in order: its callbacks, and each message with its receiver.
std::vector<SharedKey> ordered_keys(const LinkChain &chain) {
  std::vector<SharedKey> keys;
  const LinkCallback *before = nullptr;
  for (const LinkCallback &callback : chain.callbacks) {
    if (callback.shared != 0) {
      if (before != nullptr && before->shared != 0) keys.push_back({before->shared, callback.shared, before->message});
      keys.push_back({callback.shared, 0, 0});
      if (callback.payload_bytes > 0) keys.push_back({callback.shared, kSends, callback.message});
    }
    before = &callback;
  }
  return keys;
}

constexpr Stage kClient{Stage::Kind::client}, kUp{Stage::Kind::up}, kDown{Stage::Kind::down};

constexpr int kMostBusyPasses = 64;

constexpr int kMostPasses = 2000, kExactPasses = 40;
constexpr int64_t kMostInstances = 100;  // most instances of one chain that may be under way at once, or follow each
                                         // other without a gap
constexpr int kMostSteps = 200'000;
constexpr int kMostArrivals = 500;  // most arrivals that are tried in a busy window

// Milliseconds as text, rounded up to a microsecond; shorter times are rounded up to a nanosecond.
std::string milliseconds(time_ns time) {
  if (time > 1000 && time < kNeverNs) time = divide_up(time, 1000) * 1000;
  std::string text = std::to_string(time / 1'000'000);
  const std::string rest = std::to_string(1'000'000 + time % 1'000'000).substr(1);
  const size_t last = rest.find_last_not_of('0');
  return text + (last == std::string::npos ? "" : "." + rest.substr(0, last + 1)) + " ms";
}

class LinkModel {
 public:
  explicit LinkModel(const LinkSystem &system, int most_passes)
      : system_(system),
        most_passes_(most_passes),
        responses_(size(), 0),
        roots_(size(), 0),
        reached_(size(), 0),
        reached_parts_(size()),
        why_(size()),
        several_(size(), false),
        remotes_(size(), 0),
        loads_(size()) {
    // More urgent chains come first, so that one pass computes most of the values that the next chain needs.
    for (size_t chain = 0; chain < size(); chain++) order_.push_back(chain);
    std::stable_sort(order_.begin(), order_.end(), [this](size_t left, size_t right) {
      return system_.chains[left].priority > system_.chains[right].priority;
    });
    for (size_t chain = 0; chain < size(); chain++) {
      roots_[chain] = chain;
      responses_[chain] = system.chains[chain].response_ns.value_or(0);
      if (!is_foreign(chain) || is_batch()) here_.push_back(chain);
    }
    answer_ns_ = answer_frame_ns(system.line);
    load_span_ns_ = load_span_ns();
    gap_ns_ = system.client.interrupt_receive_ns + system.client.interrupt_complete_ns;
    for (const LinkChain &chain : system.chains) asked_.push_back(visit_load(chain));
    for (size_t chain = 0; chain < size(); chain++) stages_.push_back(stages_of(chain));
    for (size_t chain = 0; chain < size(); chain++) {
      shares_.push_back(!ordered_keys(system.chains[chain]).empty());
      is_plain_.push_back(!is_foreign(chain) && !shares_[chain]);
    }
    has_trees_ = std::find(shares_.begin(), shares_.end(), true) != shares_.end();
    too_much_.resize(size());
    find_shared();
    on_host_.resize(size());
    for (size_t chain = 0; chain < size(); chain++) {
      for (size_t place = 0; place < system_.hosts.size(); place++)
        on_host_[chain].push_back(by_group(chain, place, nullptr));
    }
  }

  LinkResults run() {
    for (int pass = 0;; pass++) {
      make_loads();
      bool changed = false;
      for (const size_t chain : order_) {
        if (responses_[chain] == kNeverNs || is_foreign(chain)) continue;
        time_ns reached_ns = 0;
        settled_ = settled_ && pass < kMostPasses;
        time_ns found_ns = settled_ ? solve(chain, reached_ns) : kNeverNs;
        // A value above the found one is also a bound, and with it the iteration ends sooner.
        if (several_[chain] && pass > kExactPasses && found_ns > responses_[chain])
          found_ns = std::min(add(found_ns, found_ns / 16), kNeverNs);
        if (found_ns == kNeverNs) fail(chain, reached_ns);
        const time_ns window_ns = found_ns - jitter(chain);
        const time_ns remote_ns = found_ns == kNeverNs || several_[chain]
                                      ? kNeverNs
                                      : add(demand(chain, window_ns).remote.value, interrupts(chain, window_ns).value);
        changed = changed || found_ns != responses_[chain] || remote_ns != remotes_[chain];
        responses_[chain] = found_ns;
        remotes_[chain] = remote_ns;
        changed = (any_several_ && place_stages(chain)) || changed;
      }
      if (!changed) break;
    }
    LinkResults results;
    results.met = true;
    for (size_t chain = 0; chain < size(); chain++) {
      LinkResult &result = results.chains.emplace_back();
      if (is_foreign(chain)) {
        result.response_ns = system_.chains[chain].response_ns;
        result.met = true;
        continue;
      }
      result.depends_on = dependences(chain);
      if (responses_[chain] == kNeverNs) {
        blame(chain, result);
      } else if (several_[chain] && !timer_keeps_up(chain)) {
        blame_timer(chain, result);
      } else {
        explain(chain, result);
        bound_shorter(chain, result);
        result.up = use_of(chain, Direction::up);
        result.down = use_of(chain, Direction::down);
      }
      results.met = results.met && result.met;
    }
    results.assumptions = assumptions();
    return results;
  }

 private:
  struct Demand {
    std::vector<Linear> cases;
    Linear up, down, host, remote;
    LinkParts parts;
  };
  // When a response ends: when the last callback's message was sent, or when the last callback ends.
  enum class Until { sent, ended };
  struct Spacing {
    time_ns apart_ns = 0, longest_ns = 0;
  };
  struct Once {
    Linear sum;
    time_ns again_ns = 0;   // additional demand if both visits of one instance interfere
    time_ns latest_ns = 0;  // the longest round trip over the line of any chain
  };

  size_t size() const { return system_.chains.size(); }
  // True for a chain that is bounded elsewhere, so that only its host part exists here.
  bool is_foreign(size_t chain) const { return system_.chains[chain].response_ns.has_value(); }
  bool is_rtps() const { return system_.line.rtps_mbit_per_s > 0; }
  bool is_batch() const { return system_.client.policy == ClientPolicy::batch; }
  bool goes_first(size_t other, size_t chain) const {
    return other != chain && (is_batch() || system_.chains[other].priority > system_.chains[chain].priority ||
                              shares_level(other, chain));
  }
  // True for two chains of the same priority that share their streams: their messages go in the order of arrival.
  bool shares_level(size_t other, size_t chain) const {
    return other != chain && system_.chains[other].shares_level && system_.chains[chain].shares_level &&
           system_.chains[other].priority == system_.chains[chain].priority;
  }
  // The other chains that share this chain's level.
  std::vector<size_t> sharers(size_t chain) const {
    std::vector<size_t> found;
    for (const size_t other : here_) {
      if (shares_level(other, chain)) found.push_back(other);
    }
    return found;
  }
  // Time for which an instance is under way, as far as known in this pass.
  time_ns about_ns(size_t chain) const {
    const bool longer = several_[chain] && responses_[chain] != kNeverNs;
    return longer ? responses_[chain] : std::min(responses_[chain], period(chain));
  }
  // True if the two chains are released by the same expiry of one timer.
  bool one_release(size_t other, size_t chain) const {
    return roots_of_[other] != 0 && roots_of_[other] == roots_of_[chain];
  }
  time_ns period(size_t chain) const { return system_.chains[chain].period_ns; }
  time_ns jitter(size_t chain) const { return system_.chains[chain].jitter_ns; }
  // True if the line stays idle, or serves only more urgent chains, until the chain's messages are acknowledged.
  bool holds(size_t chain) const {
    return system_.chains[chain].hold && system_.chains[chain].uplink_reliable && !is_batch();
  }
  bool waits_for_answer(const LinkChain &chain) const {
    return is_batch() && system_.client.send != Send::asynchronous && chain.uplink_reliable;
  }
  bool waits_for_line(const LinkChain &chain) const {
    return is_batch() && system_.client.send == Send::blocking && !chain.uplink_reliable;
  }

  const Cut &cut_for(size_t other, size_t chain) const {
    return one_release(other, chain) ? inside_.at({other, chain}) : outside_[other];
  }

  // Like cut_for, but for a window of `chain`: elements that begin only after the end of `chain` do not count there.
  const Cut &cut_within(size_t other, size_t chain) const {
    const auto found = within_.find({other, chain});
    return found == within_.end() || may_meet(other, chain) ? cut_for(other, chain) : found->second;
  }

  struct Shares {
    double up = 0, down = 0, plain_up = 0, plain_down = 0, client = 0;
    std::vector<double> hosts;  // load of each lane, for each executor that the chain visits
  };

  // ---- demand of one instance of each chain on the client, the line and the host ----

  void cross(Load &load, Direction direction, const LinkCallback &from) const {
    const Message sent = message(system_.line, direction, from.payload_bytes, from.readers);
    Traffic &traffic = direction == Direction::up ? load.up : load.down;
    const time_ns gap_ns = direction == Direction::up ? gap_ns_ : 0;
    traffic.messages++;
    traffic.frames += sent.frames;
    traffic.total_ns += sent.total_ns + sent.frames * gap_ns;
    traffic.unit_ns = std::max(traffic.unit_ns, sent.unit_ns + gap_ns);
    traffic.least_ns += sent.least_ns;
    traffic.plain_ns += sent.plain_ns + sent.frames * gap_ns;
  }

  // Time that the client spends on a callback in addition to its execution.
  time_ns costs_ns(const LinkCallback &callback) const {
    if (callback.repeats) return 0;
    return system_.client.dispatch_ns + (callback.payload_bytes > 0 ? system_.client.submit_ns : 0);
  }

  // The load of the chain: the sum over its callbacks and messages.
  Load visit_load(const LinkChain &chain) const {
    const Client &client = system_.client;
    const Line &line = system_.line;
    Load load;
    load.hosts_ns.resize(system_.hosts.size());
    load.visits_host.resize(system_.hosts.size());
    for (size_t index = 0; index < chain.callbacks.size(); index++) {
      const LinkCallback &callback = chain.callbacks[index];
      const bool has_next = index + 1 < chain.callbacks.size();
      const bool here = callback.place == kOnClient;
      // A callback without execution time also waits for a lane. It counts as 1 ns, so that the window includes its
      // start.
      const bool is_alone = !here && system_.hosts[static_cast<size_t>(callback.place)].own_cores;
      const time_ns execution_ns = std::max<time_ns>(callback.execution_ns, is_alone ? 0 : 1);
      const time_ns least_ns = callback.least_ns + (here && client.fixed_costs ? costs_ns(callback) : 0);
      if (load.down.messages == 0) load.before_ns += least_ns;
      load.behind_ns += least_ns;
      if (here) {
        const time_ns taking_ns = index == 0 ? 0 : client.process_ns;
        const time_ns running_ns = costs_ns(callback) + execution_ns;
        const int64_t frames =
            index == 0 ? 0 : message(line, Direction::down, chain.callbacks[index - 1].payload_bytes).frames;
        const time_ns visit_ns = running_ns + frames * taking_ns;
        load.visits++;
        load.client_ns += visit_ns;
        load.visit_ns = std::max(load.visit_ns, visit_ns);
        load.unit_ns = std::max({load.unit_ns, running_ns, taking_ns});
        (index == 0 ? load.first_ns : load.last_ns) = visit_ns;
        load.taking_ns = frames * taking_ns;
      } else {
        load.hosts_ns[static_cast<size_t>(callback.place)] += callback.execution_ns;
        load.visits_host[static_cast<size_t>(callback.place)] = true;
        load.host_ns += execution_ns;
        load.host_least_ns += callback.least_ns;
      }
      if (callback.payload_bytes == 0) continue;
      const bool next_here = has_next && chain.callbacks[index + 1].place == kOnClient;
      if (here) {
        load.answers_first = load.answers_first || load.down.messages > 0 || load.up.messages > 0;
        const time_ns before_ns = load.up.total_ns;
        cross(load, Direction::up, callback);
        if (!has_next) load.tail_line_ns = load.up.total_ns - before_ns;
        load.host_ns += has_next ? line.agent_ns : 0;
        load.host_least_ns += has_next ? line.agent_least_ns : 0;
        if (load.down.messages == 0)
          load.before_ns += message(line, Direction::up, callback.payload_bytes).least_ns + line.agent_least_ns;
      }
      if (next_here) {
        if (load.down.messages == 0) load.before_ns += message(line, Direction::down, callback.payload_bytes).least_ns;
        cross(load, Direction::down, callback);
        load.host_ns += line.return_ns;
        load.behind_ns = 0;
      }
      if (!here && has_next && !next_here) load.host_ns += chain.callbacks[index + 1].hop_ns.value_or(line.host_hop_ns);
    }
    load.pair = load.visits == 2 && chain.callbacks.front().place == kOnClient &&
                chain.callbacks.back().place == kOnClient && chain.callbacks.back().payload_bytes == 0;
    return load;
  }

  std::vector<Stage> stages_of(size_t chain) const {
    using Kind = Stage::Kind;
    const Client &client = system_.client;
    const Line &line = system_.line;
    const std::vector<LinkCallback> &callbacks = system_.chains[chain].callbacks;
    const Load &load = asked_[chain];
    std::vector<Stage> stages;
    const auto delay = [&stages](time_ns most_ns, time_ns least_ns) {
      if (most_ns > 0) stages.push_back({Kind::delay, 0, most_ns, least_ns, 0});
    };
    for (size_t index = 0; index < callbacks.size(); index++) {
      const LinkCallback &callback = callbacks[index];
      const LinkCallback *before = index > 0 ? &callbacks[index - 1] : nullptr;
      const bool here = callback.place == kOnClient, was_here = before != nullptr && before->place == kOnClient;
      if (before != nullptr && here) {
        const Message taken = message(line, Direction::down, before->payload_bytes);
        delay(line.return_ns, 0);
        stages.push_back({Kind::down, 0, taken.total_ns, taken.least_ns, load.down.total_ns - taken.total_ns});
      } else if (before != nullptr && !was_here) {
        delay(callback.hop_ns.value_or(line.host_hop_ns), 0);
      }
      if (here) {
        // Messages for a later instance may be processed first, so `others_ns` also contains the processing.
        const time_ns taking_ns =
            before == nullptr ? 0 : message(line, Direction::down, before->payload_bytes).frames * client.process_ns;
        const time_ns own_ns = costs_ns(callback) + std::max<time_ns>(callback.execution_ns, 1) + taking_ns;
        // A message may leave before the callback that publishes it has ended, so the least time is 0.
        const time_ns least_ns = callback.payload_bytes > 0 ? 0 : callback.least_ns;
        stages.push_back({Kind::client, 0, own_ns, least_ns, load.client_ns - own_ns + taking_ns});
        if (callback.payload_bytes == 0) continue;
        const Message sent = message(line, Direction::up, callback.payload_bytes, callback.readers);
        const time_ns up_ns = sent.total_ns + sent.frames * gap_ns_;
        stages.push_back({Kind::up, 0, up_ns, sent.least_ns, load.up.total_ns - up_ns});
        if (index + 1 < callbacks.size()) delay(line.agent_ns, line.agent_least_ns);
        continue;
      }
      const auto host = static_cast<size_t>(callback.place);
      const time_ns least_ns = callback.payload_bytes > 0 ? 0 : callback.least_ns;
      if (system_.hosts[host].own_cores) {
        delay(callback.execution_ns, least_ns);
        continue;
      }
      const time_ns own_ns = std::max<time_ns>(callback.execution_ns, 1);
      const bool one_lane = system_.hosts[host].lanes == 1;
      const time_ns others_ns = one_lane ? load.hosts_ns[host] - callback.execution_ns : 0;
      stages.push_back({Kind::host, host, own_ns, least_ns, others_ns});
    }
    for (Stage &stage : stages) stage.late_ns = stage.behind_ns = jitter(chain);
    for (size_t index = 1; index < stages.size(); index++) {
      stages[index].index = index;
      stages[index].early_ns = stages[index - 1].early_ns + stages[index - 1].least_ns;
    }
    return stages;
  }

  // True if chain `shorter`, including the message with which it ends, is a prefix of chain `longer`.
  bool begins_alike(size_t longer, size_t shorter) const {
    const auto &of = system_.chains[longer].callbacks, &begin = system_.chains[shorter].callbacks;
    return of.size() >= begin.size() &&
           std::equal(begin.begin(), begin.end(), of.begin(), [](const LinkCallback &one, const LinkCallback &other) {
             return one.shared != 0 && one.shared == other.shared &&
                    (one.payload_bytes == 0 || one.message == other.message);
           });
  }

  // The part of a chain's load that consists of these elements.
  Cut cut_of(size_t chain, const std::set<SharedKey> &elsewhere) const {
    Cut cut;
    cut.callbacks.resize(system_.chains[chain].callbacks.size());
    const Client &client = system_.client;
    const std::vector<LinkCallback> &callbacks = system_.chains[chain].callbacks;
    for (size_t index = 0; index < callbacks.size(); index++) {
      const LinkCallback &callback = callbacks[index];
      const bool here = callback.place == kOnClient;
      const bool is_elsewhere = elsewhere.count({callback.shared, 0, 0}) > 0;
      const LinkCallback *before = index > 0 ? &callbacks[index - 1] : nullptr;
      const bool is_reception = here && before != nullptr && callback.shared != 0;
      if (is_reception && elsewhere.count({before->shared, callback.shared, before->message}) > 0) {
        const Message taken = message(system_.line, Direction::down, before->payload_bytes);
        cut.client_ns += client.dispatch_ns + taken.frames * client.process_ns;
        cut.down_ns += taken.total_ns;
        cut.down_plain_ns += taken.plain_ns;
        cut.down_frames += taken.frames;
      }
      cut.callbacks[index] = is_elsewhere;
      if (!is_elsewhere || !here) continue;
      cut.client_ns += std::max<time_ns>(callback.execution_ns, 1) + costs_ns(callback) -
                       (before == nullptr ? 0 : client.dispatch_ns);
      if (callback.payload_bytes == 0 || elsewhere.count({callback.shared, kSends, callback.message}) == 0) continue;
      const Message sent = message(system_.line, Direction::up, callback.payload_bytes, callback.readers);
      cut.up_ns += sent.total_ns + sent.frames * gap_ns_;
      cut.up_plain_ns += sent.plain_ns + sent.frames * gap_ns_;
      cut.up_frames += sent.frames;
    }
    return cut;
  }

  void find_shared() {
    std::vector<std::vector<SharedKey>> keys;
    std::map<SharedKey, std::vector<size_t>> owners;
    goes_on_.assign(size(), false);
    outside_.assign(size(), {});
    as_late_.assign(size(), {});
    for (size_t chain = 0; chain < size(); chain++) {
      keys.push_back(ordered_keys(system_.chains[chain]));
      roots_of_.push_back(system_.chains[chain].callbacks.front().shared);
      for (size_t other = 0; other < size() && roots_of_[chain] != 0; other++) {
        const bool alike = other != chain && begins_alike(other, chain);
        goes_on_[chain] = goes_on_[chain] || (alike && (!begins_alike(chain, other) || other < chain));
      }
    }
    // By chain: elements that begin only after the chain has ended, on longer paths that continue it.
    std::vector<std::set<SharedKey>> behind(size());
    for (size_t chain = 0; chain < size(); chain++) {
      for (size_t longer = 0; longer < size() && goes_on_[chain]; longer++) {
        if (!one_release(longer, chain) || !begins_alike(longer, chain)) continue;
        behind[chain].insert(keys[longer].begin() + static_cast<ptrdiff_t>(keys[chain].size()), keys[longer].end());
      }
    }
    // An element that is on several paths is counted on one of them: the first that no other path continues.
    for (const bool goes_on : {false, true}) {
      for (size_t chain = 0; chain < size(); chain++) {
        if (goes_on_[chain] != goes_on) continue;
        for (const SharedKey &key : keys[chain]) owners[key].push_back(chain);
      }
    }
    const auto counted_by_others = [&](size_t chain) {
      std::set<SharedKey> found;
      for (const SharedKey &key : keys[chain]) {
        if (owners[key].front() != chain) found.insert(key);
      }
      return found;
    };
    for (size_t chain = 0; chain < size(); chain++) {
      outside_[chain] = cut_of(chain, {});
      if (keys[chain].empty()) continue;
      const std::set<SharedKey> others = counted_by_others(chain);
      outside_[chain] = cut_of(chain, others);
      // After a join, an element ends when the path through the last input ends.
      std::set<size_t> late;
      for (const SharedKey &key : keys[chain]) {
        const auto own = std::find(keys[chain].begin(), keys[chain].end(), key);
        for (const size_t other : owners[key]) {
          const auto there = std::find(keys[other].begin(), keys[other].end(), key);
          if (!std::equal(keys[chain].begin(), own, keys[other].begin(), there)) late.insert(other);
        }
      }
      as_late_[chain].assign(late.begin(), late.end());
      for (size_t self = 0; self < size(); self++) {
        if (self == chain || !one_release(self, chain)) continue;
        std::set<SharedKey> all = others;
        all.insert(keys[self].begin(), keys[self].end());
        const Cut &cut = inside_[{chain, self}] = cut_of(chain, all);
        if (behind[self].empty()) continue;
        all.insert(behind[self].begin(), behind[self].end());
        Cut &less = within_[{chain, self}] = cut_of(chain, all);
        less.up_frames = cut.up_frames;  // because acknowledgments of the preceding instance may remain
        less.down_frames = cut.down_frames;
      }
    }
    // For each chain: the paths from its timer that contain every host callback which is counted for the chain.
    lies_on_.assign(size(), {});
    for (size_t chain = 0; chain < size(); chain++) {
      const std::vector<LinkCallback> &callbacks = system_.chains[chain].callbacks;
      for (size_t path = 0; path < size(); path++) {
        if (path != chain && !one_release(path, chain)) continue;
        bool lies_on = true;
        for (size_t index = 0; index < callbacks.size() && path != chain; index++) {
          if (callbacks[index].place == kOnClient || outside_[chain].callbacks[index]) continue;
          const SharedKey key{callbacks[index].shared, 0, 0};
          lies_on = lies_on && key[0] != 0 && std::find(keys[path].begin(), keys[path].end(), key) != keys[path].end();
        }
        if (lies_on) lies_on_[chain].push_back(path);
      }
    }
  }

  // The demand of one instance of `other` in a window of `chain`. Frames that are counted elsewhere add no HEARTBEATs
  // and acknowledgments here. If `other` continues `chain`, its present instance has not executed its own part yet, so
  // only acknowledgments and unacknowledged frames of its preceding instance remain.
  Seen seen(size_t other, size_t chain) const {
    const Load &load = loads_[other];
    const Cut &cut = cut_within(other, chain);
    const bool follows = !may_meet(other, chain) && begins_alike(other, chain);
    Seen seen;
    seen.client_ns = follows ? 0 : load.client_ns - cut.client_ns;
    seen.up_ns = follows ? 0 : load.up.total_ns - cut.up_ns;
    seen.down_ns = follows ? 0 : load.down.total_ns - cut.down_ns;
    seen.up_frames = load.up.frames - cut.up_frames;
    seen.down_frames = load.down.frames - cut.down_frames;
    seen.up_asks = seen.up_frames > 0 ? load.up.asks : 0;
    seen.down_asks = seen.down_frames > 0 ? load.down.asks : 0;
    const int64_t asks = load.up.asks - seen.up_asks + load.down.asks - seen.down_asks;  // asks that are counted
                                                                                         // elsewhere; each causes one
                                                                                         // answer
    seen.up_control = load.up.control - asks - std::min(load.up.receipts, cut.down_frames);
    seen.down_control = load.down.control - asks - std::min(load.down.receipts, cut.up_frames);
    return seen;
  }

  // Execution times by mutually exclusive group. The names are views of the system's strings; callbacks in no group
  // have the empty name. The result of seen_on_host is valid until its next call.
  using ByGroup = std::vector<std::pair<std::string_view, time_ns>>;
  const ByGroup &seen_on_host(size_t other, size_t chain, size_t place) const {
    if (!shares_[other]) return on_host_[other][place];
    seen_on_host_.clear();
    if (!may_meet(other, chain) && begins_alike(other, chain)) return seen_on_host_;
    seen_on_host_ = by_group(other, place, other == chain ? nullptr : &cut_within(other, chain).callbacks);
    return seen_on_host_;
  }

  static time_ns &of_group(ByGroup &times, std::string_view group) {
    for (auto &[known, load_ns] : times) {
      if (known == group) return load_ns;
    }
    return times.emplace_back(group, 0).second;
  }

  // The chain's execution times by group, without the callbacks that are counted elsewhere.
  ByGroup by_group(size_t chain, size_t place, const std::vector<bool> *elsewhere) const {
    ByGroup found;
    const std::vector<LinkCallback> &callbacks = system_.chains[chain].callbacks;
    for (size_t index = 0; index < callbacks.size(); index++) {
      const LinkCallback &callback = callbacks[index];
      if (callback.place != static_cast<int>(place) || (elsewhere != nullptr && (*elsewhere)[index])) continue;
      of_group(found, callback.group) += callback.execution_ns;
    }
    return found;
  }

  // Time from the nominal expiry until all elements of the chain have ended. An element after a join may end later than
  // the chain's response, because a path through another input of the join makes it ready.
  time_ns latest_ns(size_t chain) const {
    time_ns latest_ns = responses_[chain];
    for (const size_t other : as_late_[chain]) latest_ns = std::max(latest_ns, responses_[other]);
    return latest_ns;
  }

  // True if a window of `chain` may contain an instance of `other` from a different expiry.
  bool may_meet(size_t other, size_t chain) const {
    return !one_release(other, chain) || several_[chain] || latest_ns(other) > period(other);
  }

  // Time from an instance's nominal expiry until all its work at this stage has ended. If several instances may be
  // under way, it is computed for this stage alone; otherwise it is the latest end of the instance.
  time_ns until_ns(size_t chain, const Stage &at) const {
    if (!several_[chain] || !is_plain_[chain]) return latest_ns(chain);
    time_ns behind_ns = 0;
    for (const Stage &stage : stages_[chain]) {
      if (stage.is_at(at)) behind_ns = std::max(behind_ns, stage.behind_ns);
    }
    return std::min(behind_ns, latest_ns(chain));
  }

  // Work that `other` executes or sends at this stage in a window of `chain`. `arrival` is given for a busy window, in
  // which all of this work has also arrived.
  Linear within(size_t other, size_t chain, const Stage &at, time_ns load_ns, time_ns window_ns,
                Arrival arrival) const {
    if (!may_meet(other, chain) && system_.protocol.losses == 0) return constant(load_ns);
    const Linear executed = share(load_ns, period(other), std::max(until_ns(other, at), load_ns), window_ns);
    return arrival ? lesser(executed, arrived_before(other, chain, at, window_ns, *arrival), window_ns) : executed;
  }

  // Like within, but limited by arrivals alone. If work leaves in order of arrival, only the work that arrives no later
  // than that of `chain` counts.
  Linear arrived_before(size_t other, size_t chain, const Stage &at, time_ns window_ns, time_ns arrival_ns) const {
    if (arrival_ns < window_ns && leaves_in_order(other, chain, at))
      return constant(arrived(other, at, arrival_ns + 1).value);
    return arrived(other, at, window_ns);
  }

  // True if, at stage `at`, messages of `other` go before those of `chain` only when they were submitted earlier.
  // Within one level the order of submission decides. On the client, however, messages of later callbacks in a chain go
  // first, and those of first callbacks last (tide/priority.h).
  bool leaves_in_order(size_t other, size_t chain, const Stage &at) const {
    if (is_batch() || !shares_level(other, chain)) return false;
    if (at.kind == Stage::Kind::down) return true;
    const LinkCallback &first = system_.chains[other].callbacks.front();
    return at.kind == Stage::Kind::up && first.place == kOnClient && first.payload_bytes > 0 &&
           asked_[other].up.messages == 1;
  }

  // The next arrival after `after_ns` of a message from a chain for which leaves_in_order holds. Both times count from
  // the beginning of a busy window.
  time_ns next_arrival_ns(size_t chain, const Stage &at, time_ns after_ns) const {
    time_ns next_ns = kNeverNs;
    for (const size_t other : here_) {
      if (!leaves_in_order(other, chain, at)) continue;
      const Linear before = arrived(other, at, after_ns + 1);
      if (before.value > 0 && before.value < kNeverNs) next_ns = std::min(next_ns, before.until_ns);
    }
    return next_ns;
  }

  // Work of the chain that arrives at the stage's processor or direction in any window of this length. kNeverNs:
  // unknown, because some of the work waits for something other than this stage and may have arrived before the window.
  Linear arrived(size_t chain, const Stage &at, time_ns window_ns) const {
    if (!is_plain_[chain] || !windows_suffice_ || holds(chain) || system_.protocol.losses > 0)
      return constant(kNeverNs);
    Linear sum;
    for (const Stage &stage : stages_[chain]) {
      if (!stage.is_at(at)) continue;
      sum = sum + scale(stair(window_ns, stage.late_ns - stage.early_ns, period(chain)), stage.own_ns);
    }
    return sum;
  }

  // Longest time from the end of the response until the last callback's message is sent: a period, because the message
  // leaves before the same message of the next instance.
  time_ns tail_ns(size_t chain) const {
    const LinkCallback &last = system_.chains[chain].callbacks.back();
    return last.place == kOnClient && last.payload_bytes > 0 ? period(chain) : 0;
  }

  // Time from the release of an instance until no frame of it is pending.
  time_ns span_ns(size_t chain) const { return add(add(latest_ns(chain), loads_[chain].settling_ns), tail_ns(chain)); }

  void count_interrupts(Load &load) const {
    load.interrupts_ns = add(multiply(load.down.frames + load.down.control, system_.client.interrupt_receive_ns),
                             multiply(load.up.frames + load.up.control, system_.client.interrupt_complete_ns));
  }

  // The longest frame of a direction.
  time_ns longest_frame_ns(Direction direction) const {
    const bool up = direction == Direction::up;
    time_ns longest_ns = answer_ns_ + (up ? gap_ns_ : 0);
    for (const Load &load : loads_) longest_ns = std::max(longest_ns, (up ? load.up : load.down).unit_ns);
    return longest_ns;
  }

  // Number of restarts of the HEARTBEAT delay during an instance: whenever a frame is sent and, if the delay is
  // measured, whenever some of the outstanding frames are acknowledged. If each message is acknowledged before the next
  // one is sent, the latter happens frames − 1 times for each message.
  int64_t beginnings(size_t chain, const Traffic &sent) const {
    const Protocol &protocol = system_.protocol;
    if (is_batch() || system_.chains[chain].shares_level || several_[chain]) return -1;
    const bool one_by_one =
        protocol.acknowledges == Acknowledges::always && protocol.losses == 0 && span_ns(chain) <= period(chain);
    return one_by_one ? sent.frames : 3 * (sent.frames + protocol.losses);
  }

  // HEARTBEATs of this chain that leave within a window.
  int64_t asks_within(size_t chain, Direction direction, time_ns window_ns) const {
    const bool up = direction == Direction::up;
    const Traffic &traffic = up ? loads_[chain].up : loads_[chain].down;
    if (traffic.asks == 0) return 0;
    const int64_t instances = divide_up(add(window_ns, span_ns(chain)), period(chain));
    const int64_t begun = beginnings(chain, traffic);
    return heartbeats_of_stream(up ? system_.protocol.client : system_.protocol.agent,
                                begun < 0 ? begun : multiply(begun, instances), window_ns);
  }

  // ---- what the client executes besides its callbacks (docs/analysis/link.md, "Loads") ----

  // Greatest execution of the client's loads in any window of this length. `masking`: only of the loads that mask
  // interrupts, and so also stop the line.
  Linear loads(time_ns window_ns, bool masking) const {
    Linear sum;
    for (const ClientLoad &load : system_.client.loads) {
      if (masking && !load.masks) continue;
      const time_ns span_ns =
          load.late_ns > 0 ? add(load.late_ns, load_span_ns_) : std::min(load_span_ns_, load.period_ns);
      sum = sum + share(load.execution_ns, load.period_ns, span_ns, window_ns);
    }
    return sum;
  }

  // Longest time for which frames of the client's loads occupy the line in this direction. A load's frame may be sent
  // or received at any time within the load's period, or within late_ns if that is longer.
  Linear loads_on_line(Direction direction, time_ns window_ns) const {
    Linear sum;
    for (const ClientLoad &load : system_.client.loads) {
      if (load.payload_bytes > 0)
        sum = sum + share(frame_ns(load, direction), load.period_ns, std::max(load.period_ns, load.late_ns), window_ns);
    }
    return sum;
  }

  // Longest time from the beginning of a load to its end, including interference from other loads.
  time_ns load_span_ns() const {
    time_ns span_ns = 0, next_ns = 0, longest_ns = 0;
    double use = 0;
    bool is_late = false;
    for (const ClientLoad &load : system_.client.loads) {
      next_ns = add(next_ns, load.execution_ns);
      longest_ns = std::max(longest_ns, load.period_ns);
      use += static_cast<double>(load.execution_ns) / static_cast<double>(load.period_ns);
      is_late = is_late || load.late_ns > 0;
    }
    if (is_late && use >= 1) return kLongestWaitNs;
    if (is_late) longest_ns = kLongestWaitNs;
    while (next_ns > span_ns && next_ns < longest_ns) {
      span_ns = next_ns;
      next_ns = 0;
      for (const ClientLoad &load : system_.client.loads)
        next_ns = add(next_ns, multiply(divide_up(add(span_ns, load.late_ns), load.period_ns), load.execution_ns));
    }
    return std::min(next_ns, longest_ns);
  }

  time_ns frame_ns(const ClientLoad &load, Direction direction) const {
    const Message sent = message(system_.line, direction, load.payload_bytes);
    return sent.total_ns + (direction == Direction::up ? sent.frames * gap_ns_ : 0);
  }

  bool loads_reach_line() const {
    return std::any_of(system_.client.loads.begin(), system_.client.loads.end(),
                       [](const ClientLoad &load) { return load.masks || load.payload_bytes > 0; });
  }

  // Over RTPS: the time of the datagrams that the interface may hold, of less urgent chains and of discovery.
  time_ns queued_ns(time_ns longest_frame_ns) const {
    const time_ns longest_ns = datagram_ns(system_.line, system_.line.rtps_datagram_bytes) + gap_ns_;
    return multiply(system_.line.rtps_queued, std::max(longest_frame_ns, longest_ns));
  }

  // Time until the last of `own` ACKNACKs and HEARTBEATs of this chain is sent. It waits for one frame whose
  // transmission has begun, and for more urgent frames. With batch, all messages use one stream, and none of them
  // precedes an ACKNACK. `known_ns` is a lower limit of the time.
  time_ns control_wait_ns(size_t chain, Direction direction, int64_t own, time_ns known_ns) const {
    const bool up = direction == Direction::up;
    time_ns frame_ns = answer_ns_ + (up ? gap_ns_ : 0), begun_ns = longest_frame_ns(direction);
    if (is_rtps() && up) {
      frame_ns = message(system_.line, direction, kRtpsControlBytes).total_ns + gap_ns_;
      begun_ns = queued_ns(begun_ns);
    }
    const time_ns least_ns = add(begun_ns, multiply(own, frame_ns));
    time_ns window_ns = 0, next_ns = std::max(least_ns, known_ns);
    while (next_ns > window_ns && next_ns < kLongestWaitNs) {
      window_ns = next_ns;
      next_ns = least_ns;
      next_ns = add(next_ns, add(loads_on_line(direction, window_ns).value, loads(window_ns, true).value));
      for (const size_t other : here_) {
        if (!goes_first(other, chain)) continue;
        const Seen load = seen(other, chain);
        const int64_t asks = up ? load.up_asks : load.down_asks, answers = up ? load.down_asks : load.up_asks;
        const auto share_of = [&](time_ns load_ns) {
          return share(load_ns, period(other), std::min(span_ns(other), kLongestWaitNs), window_ns).value;
        };
        const time_ns sent_ns = is_batch() ? 0 : up ? load.up_ns : load.down_ns;
        const int64_t control = (up ? load.up_control : load.down_control) - asks - answers;
        next_ns = add(next_ns, share_of(add(sent_ns, multiply(control, frame_ns))));
        const int64_t asked = asks_within(other, direction, window_ns);
        next_ns = add(next_ns, std::min(share_of(multiply(asks, frame_ns)), multiply(asked, frame_ns)));
        // One answer may already be waiting when the window begins. A HEARTBEAT that arrives while an answer waits
        // causes no additional answer.
        const int64_t asked_back =
            asks_within(other, up ? Direction::down : Direction::up, add(window_ns, system_.line.acknowledges_ns()));
        next_ns = add(next_ns, std::min(share_of(multiply(answers, frame_ns)), multiply(asked_back + 1, frame_ns)));
      }
      if (!alive_) next_ns = add(next_ns, signs_of_life(window_ns, direction).value);
    }
    return std::min(next_ns, kLongestWaitNs);
  }

  // Longest time from the arrival of an answer to the start of its callback.
  time_ns taking_ns(size_t chain) const {
    const Load &self = loads_[chain];
    const time_ns late_ns = std::max<time_ns>(about_ns(chain) - self.before_ns - self.behind_ns, 0);
    if (is_batch()) return late_ns;
    const time_ns own_ns = add(client_blocking(chain) + lock_blocking(chain), self.visit_ns);
    LinkParts parts;
    time_ns window_ns = 0, next_ns = std::max(own_ns, self.taking_most_ns);
    while (next_ns > window_ns && next_ns < late_ns) {
      window_ns = next_ns;
      next_ns =
          add(own_ns, add(client_interference(chain, window_ns, parts).value, interrupts(chain, window_ns).value));
      if (several_[chain])
        next_ns = add(next_ns, share(self.client_ns, period(chain), about_ns(chain), window_ns).value);
    }
    return std::min(next_ns, late_ns);
  }

  bool asks_client(size_t chain) const {
    return system_.chains[chain].uplink_reliable && loads_[chain].up.messages > 0;
  }
  bool asks_agent(size_t chain) const {
    return system_.chains[chain].downlink_reliable && loads_[chain].down.messages > 0;
  }

  // Number of instances whose lost frames may delay one instance of this chain, itself included. On a shared stream, a
  // message waits for the messages ahead of it, which belong to at most one instance of each other chain. Lost messages
  // behind it, also of at most one instance of each other chain, may postpone its HEARTBEAT
  // (docs/analysis/services.md).
  int64_t lossy_instances(size_t chain) const {
    if (is_batch()) return static_cast<int64_t>(size());
    const auto others = static_cast<int64_t>(sharers(chain).size());
    return 1 + 2 * others * (loads_[chain].up.messages + loads_[chain].down.messages);
  }

  // Counts the HEARTBEATs of one instance in both directions, with the values known so far.
  void count_questions(size_t chain) {
    const Protocol &protocol = system_.protocol;
    const LinkChain &self = system_.chains[chain];
    const bool asked = protocol.acknowledges == Acknowledges::asked;
    const time_ns control_ns = answer_ns_ + gap_ns_;
    Load &load = loads_[chain];
    const time_ns up_wait_ns = load.up_wait_ns = control_wait_ns(chain, Direction::up, 1, load.up_wait_ns);
    const time_ns down_wait_ns = load.down_wait_ns = control_wait_ns(chain, Direction::down, 1, load.down_wait_ns);
    const time_ns agent_ns = system_.line.acknowledges_ns();
    const time_ns way_ns = agent_ns + down_wait_ns + gap_ns_;
    const time_ns delay_ns = std::max<time_ns>(protocol.client.delay_ns, 0);
    const time_ns asking_ns = asked ? add(delay_ns, control_wait_ns(chain, Direction::up, load.up.control + 1, 0)) : 0;
    // Each side sends HEARTBEATs for its own messages, so only the sides that send messages of this chain count.
    const time_ns silent_ns = std::max(asks_client(chain) ? silence_ns(protocol.client) : 0,
                                       asks_agent(chain) ? silence_ns(protocol.agent) : 0);
    const int64_t lost = protocol.losses * lossy_instances(chain);
    // A repair consists of a HEARTBEAT, its answer and the retransmitted frame, in either direction; it comes after the
    // chain's own HEARTBEATs and answers. More urgent frames precede these frames, too. If the chain itself waits for a
    // direction, its demand already includes the more urgent frames of that direction.
    time_ns up_unit_ns = load.up.unit_ns, down_unit_ns = load.down.unit_ns;
    for (const size_t other : sharers(chain)) {
      up_unit_ns = std::max(up_unit_ns, loads_[other].up.unit_ns);
      down_unit_ns = std::max(down_unit_ns, loads_[other].down.unit_ns);
    }
    const time_ns turn_ns = silent_ns + agent_ns + up_unit_ns + down_unit_ns;
    const time_ns own_ns =
        lost == 0 ? 0 : add(multiply(load.up.control, control_ns), multiply(load.down.control, answer_ns_));
    const bool counted_up = load.up.messages > 0 && self.uplink_reliable, counted_down = load.down.messages > 0;
    const time_ns up_turn_ns = counted_up ? longest_frame_ns(Direction::up) + control_ns : up_wait_ns;
    const time_ns down_turn_ns = counted_down ? longest_frame_ns(Direction::down) + answer_ns_ : down_wait_ns;
    load.losses_ns = add(multiply(lost, add(turn_ns, add(2 * up_turn_ns, 2 * down_turn_ns))), own_ns);
    const time_ns repair_ns = add(multiply(lost, add(turn_ns, multiply(2, add(up_wait_ns, down_wait_ns)))), own_ns);
    const time_ns late_ns = about_ns(chain);
    const time_ns pending_ns = add(add(late_ns, load.settling_ns), tail_ns(chain));
    Traffic up = load.up, down = load.down;
    up.control = down.control = up.receipts = down.receipts = up.asks = down.asks = 0;
    const auto count = [&](const Questions &questions, const Traffic &sent, time_ns message_pending_ns) {
      // With several instances under way, a HEARTBEAT may follow each frame.
      if (several_[chain]) {
        const int64_t each = questions.delay_ns < 0
                                 ? message_pending_ns / std::min(questions.floor_ns, questions.period_ns)
                                 : heartbeats(questions, message_pending_ns);
        return std::min(multiply(sent.frames, each), heartbeats_of_stream(questions, -1, pending_ns));
      }
      const int64_t begun = questions.delay_ns < 0 ? sent.frames : sent.messages;
      return std::min(multiply(begun, heartbeats(questions, message_pending_ns)),
                      heartbeats_of_stream(questions, beginnings(chain, sent), pending_ns));
    };
    time_ns settling_ns = 0;
    if (self.uplink_reliable && up.messages > 0) {
      // A chain that holds the line may hold back retransmitted frames, but the message arrives before the response
      // ends in any case.
      const bool held = std::any_of(here_.begin(), here_.end(),
                                    [&](size_t other) { return goes_first(other, chain) && holds(other); });
      const time_ns held_ns = held && lost > 0 ? late_ns : 0;
      load.answer_ns = add(add(way_ns, asking_ns), add(repair_ns, held_ns));
      // While the chain holds the line, its HEARTBEAT waits at most for a frame whose transmission has begun. More
      // urgent frames do not count, because they hold the line themselves.
      load.hold_ns = add(way_ns + (asked ? delay_ns + 2 * control_ns : 0), repair_ns);
      up.asks = count(protocol.client, up, load.answer_ns);
      up.control += up.asks;
      down.receipts = asked ? 0 : up.frames;
      down.control += up.asks + down.receipts + protocol.losses;
      settling_ns = add(load.answer_ns, up.asks > 0 ? way_ns : 0);
    }
    if (self.downlink_reliable && down.messages > 0) {
      load.taking_most_ns = taking_ns(chain);
      const time_ns known_ns = add(add(up_wait_ns, agent_ns), repair_ns);
      // The time counts from the arrival of a message's last frame, but a batch executor may process the first frame
      // earlier.
      load.receipt_ns = add(is_batch() ? late_ns : load.taking_most_ns, known_ns);
      down.asks = count(protocol.agent, down, add(load.taking_most_ns, known_ns));
      down.control += down.asks;
      up.receipts = down.frames;
      up.control += down.asks + up.receipts + protocol.losses;
      settling_ns = std::max(settling_ns, add(known_ns, down.asks > 0 ? add(down_wait_ns, up_wait_ns) : 0));
    }
    load.up = up;
    load.down = down;
    load.settling_ns = std::min(settling_ns, kLongestWaitNs);
    count_interrupts(load);
  }

  // The repair of lost datagrams over RTPS (docs/analysis/link.md, "Without an agent", 12 and 13).
  void find_repair(size_t chain) {
    const Line &line = system_.line;
    const int64_t lost = system_.protocol.losses;
    Load &load = loads_[chain];
    if (!system_.chains[chain].repaired || lost == 0) return;
    const time_ns wait_ns = load.up_wait_ns = control_wait_ns(chain, Direction::up, 1, load.up_wait_ns);
    // Each loss wastes at most one HEARTBEAT with its answer.
    time_ns wasted_ns = 0, wasted_up_ns = 0, retry_ns = kRtpsRetryNs;
    for (int64_t count = 0; count < lost; count++) {
      const time_ns up_ns = load.up.messages > 0 ? add(retry_ns + kRtpsRetryNs, multiply(2, wait_ns)) : 0;
      wasted_up_ns = add(wasted_up_ns, up_ns);
      wasted_ns = add(wasted_ns, std::max(up_ns, load.down.messages > 0 ? line.rtps_heartbeat_ns : 0));
      retry_ns = std::min(2 * retry_ns, kLongestRtpsRetryNs);
    }
    const time_ns turn_ns =
        line.agent_ns + line.rtps_acknowledge_ns + line.return_ns;  // from a HEARTBEAT to its answer
    const time_ns again_ns = add(turn_ns, add(wait_ns, load.up.unit_ns));
    load.losses_ns = add(wasted_ns, multiply(std::min(lost, load.up.messages + load.down.messages), again_ns));
    if (load.up.messages > 0)
      load.spare_ns = add(add(wasted_up_ns, 2 * kRtpsRetryNs), add(add(wait_ns, again_ns), turn_ns));
  }

  // HEARTBEATs make waits longer, and longer waits cause more HEARTBEATs. They are therefore counted again and again
  // until their number settles.
  void count_control() {
    const bool reliable = std::any_of(system_.chains.begin(), system_.chains.end(), [](const LinkChain &chain) {
      return chain.uplink_reliable || chain.downlink_reliable;
    });
    control_counted_ = !reliable;
    for (int pass = 0; pass < most_passes_ && !control_counted_; pass++) {
      control_counted_ = true;
      for (const size_t chain : order_) {
        if (!system_.chains[chain].uplink_reliable && !system_.chains[chain].downlink_reliable) continue;
        const Load &load = loads_[chain];
        const int64_t up = load.up.control, down = load.down.control;
        const time_ns settling_ns = load.settling_ns;
        count_questions(chain);
        if (load.up.control != up || load.down.control != down || load.settling_ns != settling_ns)
          control_counted_ = false;
      }
    }
  }

  void derive(size_t chain) {
    const Client &client = system_.client;
    const LinkChain &self = system_.chains[chain];
    Load &load = loads_[chain];
    load.hold_ns = add(load.up.total_ns, holds(chain) ? multiply(load.up.messages, load.hold_ns) : 0);
    // Waiting for a full window also delays the acknowledgments of the chain's messages.
    if (holds(chain) && responses_[chain] != kNeverNs)
      load.hold_ns = add(load.hold_ns, window_wait(chain, Direction::up, load.up.messages, responses_[chain]).value);
    // While a publish waits, no other callback runs.
    time_ns waiting_ns = 0;
    if (waits_for_line(self) || waits_for_answer(self)) {
      waiting_ns = load.up.total_ns;
      for (const Load &other : loads_) waiting_ns += other.up.control * (answer_ns_ + gap_ns_);
    }
    if (waits_for_answer(self)) waiting_ns = add(waiting_ns, multiply(load.up.messages, load.answer_ns));
    load.client_ns = add(load.client_ns, waiting_ns);
    load.visit_ns = add(load.visit_ns, waiting_ns);
    // Samples arrive while the executor is not in rmw_wait only if a publish waits for its acknowledgment.
    const bool stored = std::any_of(system_.chains.begin(), system_.chains.end(),
                                    [this](const LinkChain &other) { return waits_for_answer(other); });
    if (stored && client.waits_for_new_data) {
      time_ns event_ns = kLongestEventNs;
      for (const size_t other : here_) {
        // A host's timer does not wake the board.
        if (system_.chains[other].callbacks.front().place != kOnClient) continue;
        event_ns = std::min(event_ns, add(period(other), jitter(other)));
      }
      load.new_data_ns = load.down.messages * event_ns;
    }
  }

  void make_loads() {
    for (size_t chain = 0; chain < size(); chain++) {
      const LinkChain &self = system_.chains[chain];
      Load load = visit_load(self);
      if (self.uplink_reliable || self.downlink_reliable) {
        load.up.total_ns += system_.protocol.losses * load.up.unit_ns;
        load.down.total_ns += system_.protocol.losses * load.down.unit_ns;
      }
      // Responses and control traffic only grow from pass to pass, so the counts of the last pass are lower limits.
      for (const auto &[fresh, before] : {std::pair{&load.up, &loads_[chain].up}, {&load.down, &loads_[chain].down}}) {
        fresh->control = before->control;
        fresh->asks = before->asks;
        fresh->receipts = before->receipts;
      }
      const Load &before = loads_[chain];
      load.settling_ns = before.settling_ns;
      load.up_wait_ns = before.up_wait_ns;
      load.down_wait_ns = before.down_wait_ns;
      load.taking_most_ns = before.taking_most_ns;
      count_interrupts(load);
      loads_[chain] = load;
    }
    alive_ = is_alive_anyway();
    count_control();
    for (size_t chain = 0; chain < size(); chain++) {
      find_repair(chain);
      derive(chain);
    }
    windows_suffice_ = !is_any_window_full();
    find_uplink_waits();
    find_downlink_waits();
  }

  // True if both sides receive messages often enough never to send probes.
  bool is_alive_anyway() const {
    const Protocol &protocol = system_.protocol;
    if (protocol.silence_ns == 0) return true;
    bool client_hears = false, agent_hears = false;
    for (size_t chain = 0; chain < size(); chain++) {
      if (system_.chains[chain].sporadic) continue;  // its events may never occur
      const Load &load = loads_[chain];
      const time_ns apart_ns = add(period(chain), responses_[chain]);
      const bool acknowledges = load.down.messages > 0 && system_.chains[chain].downlink_reliable;
      client_hears = client_hears || (load.down.messages > 0 && apart_ns <= protocol.silence_ns);
      agent_hears =
          agent_hears || ((load.up.messages > 0 || acknowledges) && apart_ns <= kAgentSilences * protocol.silence_ns);
    }
    return client_hears && agent_hears;
  }

  // Number of probes, and also of answers, in a window. Probes are at least half a silence apart. The agent may delay
  // its answer, and a batch executor processes the answer after all ready callbacks.
  Linear signs_of_life(time_ns window_ns) const {
    const time_ns silence_ns = system_.protocol.silence_ns;
    time_ns late_ns = system_.line.acknowledges_ns();
    for (size_t chain = 0; is_batch() && chain < size(); chain++)
      late_ns = std::max(late_ns, add(system_.line.acknowledges_ns(), about_ns(chain)));
    return stair(window_ns, add(silence_ns, late_ns), silence_ns / 2);
  }

  // ---- waiting for the line, and when no chain waits (docs/analysis/link.md, "The line keeps up") ----

  // For each chain: number of instances that can have frames in one busy interval of a direction. Empty if the search
  // finds no end of the interval.
  std::vector<int64_t> busy_instances(Direction direction) const {
    std::vector<int64_t> instances(size(), 0);
    time_ns length_ns = 0;
    for (int pass = 0; pass < kMostBusyPasses; pass++) {
      time_ns next_ns = 0;
      for (size_t chain = 0; chain < size(); chain++) {
        if (goes_on_[chain]) continue;  // its messages are counted in a longer chain
        const Load &load = loads_[chain];
        const bool up = direction == Direction::up;
        const Traffic &traffic = up ? load.up : load.down;
        const time_ns work_ns = add(traffic.total_ns, multiply(traffic.control, answer_ns_ + (up ? gap_ns_ : 0)));
        if (work_ns == 0) continue;
        instances[chain] = divide_up(add(length_ns, span_ns(chain)), period(chain));
        instances[chain] = std::max<int64_t>(instances[chain], 1);
        next_ns = add(next_ns, multiply(instances[chain], work_ns));
      }
      if (next_ns <= length_ns) return instances;
      if (next_ns == kNeverNs) break;
      length_ns = next_ns;
    }
    return {};
  }

  // Least distance and greatest length of the messages to the agent. They are known only if one processor creates all
  // messages, one callback after the other, and no chain holds the line. A distance of 0 means that messages may be
  // arbitrarily close.
  Spacing message_spacing() const {
    const Client &client = system_.client;
    if (client.policy == ClientPolicy::lanes || client.processors > 1) return {};
    if (is_rtps()) return {};  // discovery may be in a busy interval
    if (!alive_ || !windows_suffice_ || loads_reach_line()) return {};
    const time_ns costs_ns = client.fixed_costs ? client.dispatch_ns + client.submit_ns : 0;
    Spacing spacing{kNeverNs, 0};
    for (size_t chain = 0; chain < size(); chain++) {
      const LinkChain &self = system_.chains[chain];
      if (holds(chain) || (self.uplink_reliable && system_.protocol.losses > 0)) return {};
      if (is_batch() && loads_[chain].up.control > 0) return {};
      for (const LinkCallback &callback : self.callbacks) {
        if (callback.place != kOnClient || callback.payload_bytes == 0) continue;
        if (callback.message > 0 || callback.repeats) return {};  // the callback sends several messages at once
        const Message sent = message(system_.line, Direction::up, callback.payload_bytes, callback.readers);
        spacing.apart_ns = std::min(spacing.apart_ns, callback.least_ns + costs_ns);
        spacing.longest_ns = std::max(spacing.longest_ns, sent.total_ns + sent.frames * gap_ns_);
      }
    }
    return spacing;
  }

  // Longest wait of the chain's messages if the line keeps up. A message waits at most for the ACKNACKs and HEARTBEATs
  // of its busy interval, except for the ACKNACK of the answer to the last message, which comes later. Each preceding
  // message adds the time by which the longest message exceeds the least distance between messages.
  time_ns uplink_wait(size_t chain, const Spacing &spacing, const std::vector<int64_t> &instances) const {
    const time_ns control_ns = answer_ns_ + gap_ns_;
    const Load &self = loads_[chain];
    time_ns all_ns = 0, spared_ns = kNeverNs, soonest_ns = kNeverNs;
    int64_t before = -1;
    for (const size_t other : here_) {
      if (goes_on_[other]) continue;
      const Load &load = loads_[other];
      // The ACKNACKs and HEARTBEATs of the instance itself are sent after its message; those of preceding instances may
      // be sent before it.
      const bool own = other == chain && !self.answers_first;
      const int64_t count = instances[other] - (own ? 1 : 0);
      all_ns = add(all_ns, multiply(multiply(count, load.up.control), control_ns));
      before = add(before, multiply(instances[other], load.up.messages));
      if (load.up.messages > 0 && count > 0) {
        spared_ns = std::min(spared_ns, load.pair ? load.up.receipts * control_ns : 0);
        soonest_ns = std::min(soonest_ns, load.host_least_ns + load.down.least_ns);
      }
    }
    const time_ns excess_ns = std::max<time_ns>(spacing.longest_ns - spacing.apart_ns, 0);
    all_ns = add(all_ns, multiply(before, excess_ns));
    const time_ns rest_ns = all_ns - std::min(all_ns, spared_ns);
    if (self.pair && all_ns <= spacing.apart_ns && rest_ns <= soonest_ns) all_ns = rest_ns;
    if (all_ns == 0) return 0;
    // This bound is valid only if the message is sent before the next one is created.
    const time_ns until_last_ns = add(all_ns, self.up.frames > self.up.messages ? self.up.total_ns : 0);
    return until_last_ns < spacing.apart_ns ? multiply(self.up.messages, all_ns) : kNeverNs;
  }

  void find_uplink_waits() {
    up_waits_.assign(size(), kNeverNs);
    const Spacing spacing = message_spacing();
    if (spacing.apart_ns == 0) return;
    const std::vector<int64_t> instances = busy_instances(Direction::up);
    for (const size_t chain : here_) {
      if (!instances.empty()) up_waits_[chain] = uplink_wait(chain, spacing, instances);
    }
  }

  // The least time between the ends of two messages to the agent, provided that a message causes at most one answer; 0
  // if the messages or their answers may be arbitrarily close.
  time_ns answers_apart_ns() const {
    time_ns apart_ns = kNeverNs;
    for (size_t chain = 0; chain < size(); chain++) {
      const Load &load = loads_[chain];
      const bool begins_here = system_.chains[chain].callbacks.front().place == kOnClient;
      // A callback without execution time also waits for the host.
      bool on_shared_host = false;
      for (size_t place = 0; place < system_.hosts.size(); place++)
        on_shared_host = on_shared_host || (load.visits_host[place] && !system_.hosts[place].own_cores);
      if (load.up.messages == 0 && load.down.messages == 0 && !on_shared_host) continue;
      if (!begins_here || load.up.messages > 1 || load.up.frames > load.up.messages) return 0;
      if (load.down.messages > (load.pair ? 1 : 0)) return 0;
      // A message that several chains share may cause the answers of all of them.
      if (system_.chains[chain].shares_level) return 0;
      if (load.up.messages == 0) return on_shared_host ? 0 : apart_ns;
      apart_ns = std::min(apart_ns, load.up.least_ns);
    }
    return apart_ns;
  }

  // Every answer follows a message that came over the line. If messages are farther apart than the time for the host,
  // the answer and the acknowledgments, each message finds the host idle, and only HEARTBEATs and their answers on the
  // line.
  void find_downlink_waits() {
    down_waits_.assign(size(), kNeverNs);
    hosts_keep_up_ = false;
    const std::vector<int64_t> instances = busy_instances(Direction::down);
    if (!alive_ || !windows_suffice_ || system_.protocol.losses > 0 || instances.empty() || loads_reach_line()) return;
    if (any_several_ || is_rtps()) return;
    time_ns longest_ns = 0, unasked_ns = 0, host_ns = 0;
    for (size_t chain = 0; chain < size(); chain++) {
      const Load &load = loads_[chain];
      longest_ns = std::max(longest_ns, load.down.total_ns + load.down.receipts * answer_ns_);
      host_ns = std::max(host_ns, load.host_ns);
      const int64_t others = load.down.control - load.down.receipts;
      unasked_ns = add(unasked_ns, multiply(multiply(instances[chain], others), answer_ns_));
    }
    const time_ns spread_ns = std::max(host_ns, system_.line.acknowledges_ns()) - system_.line.agent_least_ns;
    if (add(unasked_ns, longest_ns + spread_ns) > answers_apart_ns()) return;
    hosts_keep_up_ = true;
    for (size_t chain = 0; chain < size(); chain++)
      down_waits_[chain] = add(unasked_ns, loads_[chain].down.receipts * answer_ns_);
  }

  // ---- demands ----

  // Time for which the chain's messages to the agent wait. `messages` is the number of those that the response
  // includes.
  Linear uplink(size_t chain, int64_t messages, time_ns window_ns, LinkParts &parts) const {
    parts.line_interference_ns.assign(size(), 0);
    // While a publish waits for its acknowledgment, no other callback runs, and its frame waits behind those of
    // best-effort publishes.
    const bool somebody_waits = std::any_of(system_.chains.begin(), system_.chains.end(),
                                            [this](const LinkChain &other) { return waits_for_answer(other); });
    if (messages == 0 && !somebody_waits) return {};
    by_level_ = parts;
    const Linear general = uplink_by_level(chain, messages, window_ns, by_level_);
    if (somebody_waits || several_[chain]) {
      parts = by_level_;
      return general;
    }
    const time_ns wait_ns = up_waits_[chain];
    if (wait_ns >= general.value) {
      parts = by_level_;
    } else {
      parts.control_ns = add(parts.control_ns, wait_ns);
    }
    return lesser(general, constant(wait_ns), window_ns);
  }

  // Liveness probes, which are sent unless other messages replace them.
  Linear signs_of_life(time_ns window_ns, Direction direction) const {
    const time_ns frame_ns = question_frame_ns(system_.line) + (direction == Direction::up ? gap_ns_ : 0);
    return scale(signs_of_life(window_ns), frame_ns);
  }

  Linear uplink_by_level(size_t chain, int64_t messages, time_ns window_ns, LinkParts &parts,
                         Arrival arrival = {}) const {
    const Load &self = loads_[chain];
    const time_ns control_ns = answer_ns_ + gap_ns_;
    Linear sum;
    time_ns blocking_ns = 0;
    for (const size_t other : here_) {
      if (other == chain) continue;
      const Load &load = loads_[other];
      if (!goes_first(other, chain)) {
        blocking_ns = std::max({blocking_ns, load.up.unit_ns, load.up.control > 0 ? control_ns : 0});
        continue;
      }
      const time_ns span = span_ns(other);
      const bool waited = waits_for_line(system_.chains[other]) || waits_for_answer(system_.chains[other]);
      const Seen part = seen(other, chain);
      Linear frames;
      if (waited) {
        frames = {};
      } else if (load.hold_ns > load.up.total_ns) {  // The line is held even for frames that other chains count, unless
                                                     // those chains count all of them.
        frames = share(goes_on_[other] ? 0 : load.hold_ns, period(other), std::max(span, load.hold_ns), window_ns);
      } else if (!may_meet(other, chain) || several_[other]) {
        frames = within(other, chain, kUp, part.up_ns, window_ns, arrival);
      } else {
        frames = share(part.up_ns, period(other), std::max(span, part.up_ns), window_ns);
        if (arrival) frames = lesser(frames, arrived_before(other, chain, kUp, window_ns, *arrival), window_ns);
      }
      const Linear control = share(part.up_control * control_ns, period(other), span, window_ns);
      parts.line_interference_ns[other] = add(parts.line_interference_ns[other], frames.value);
      parts.control_ns = add(parts.control_ns, control.value);
      sum = sum + frames + control;
    }
    // A window of one stage (`arrival`) begins later than the release, so that control frames of several instances may
    // be in it.
    const bool by_span = several_[chain] || arrival;
    if (by_span || self.answers_first || add(add(window_ns, jitter(chain)), self.settling_ns) > period(chain)) {
      const time_ns own_ns = self.up.control * control_ns;
      const Linear control = by_span ? share(own_ns, period(chain), span_ns(chain), window_ns) : constant(own_ns);
      sum = sum + control;
      parts.control_ns = add(parts.control_ns, control.value);
    }
    const Linear beside = loads_on_line(Direction::up, window_ns);
    parts.control_ns = add(parts.control_ns, beside.value);
    sum = sum + beside;
    if (!alive_) {
      const Linear questions = signs_of_life(window_ns, Direction::up);
      parts.control_ns = add(parts.control_ns, questions.value);
      sum = sum + questions;
    }
    if (is_rtps()) blocking_ns = queued_ns(blocking_ns);
    parts.line_blocking_ns += messages * blocking_ns;
    return sum + constant(messages * blocking_ns);
  }

  Linear downlink(size_t chain, time_ns window_ns, LinkParts &parts) const {
    if (loads_[chain].down.messages == 0) return {};
    by_level_ = parts;
    const Linear general = downlink_by_level(chain, loads_[chain].down.messages, window_ns, by_level_);
    const time_ns wait_ns = down_waits_[chain];
    if (wait_ns >= general.value) {
      parts = by_level_;
    } else {
      parts.control_ns = add(parts.control_ns, wait_ns);
    }
    return lesser(general, constant(wait_ns), window_ns);
  }

  Linear downlink_by_level(size_t chain, int64_t messages, time_ns window_ns, LinkParts &parts,
                           Arrival arrival = {}) const {
    const Load &self = loads_[chain];
    // The acknowledgments of this instance may precede its answer, and so may those of the chain's preceding instance.
    const bool late_answer = add(add(window_ns, jitter(chain)), self.settling_ns) > period(chain);
    const time_ns own_ns = self.down.control * answer_ns_;
    Linear sum = several_[chain] || arrival ? share(own_ns, period(chain), span_ns(chain), window_ns)
                                            : constant(own_ns * (late_answer ? 2 : 1));
    parts.control_ns = add(parts.control_ns, sum.value);
    time_ns blocking_ns = 0;
    for (const size_t other : here_) {
      if (other == chain) continue;
      const Load &load = loads_[other];
      if (!goes_first(other, chain)) {
        blocking_ns = std::max({blocking_ns, load.down.unit_ns, load.down.control > 0 ? answer_ns_ : 0});
        continue;
      }
      const Seen part = seen(other, chain);
      const Linear control = share(part.down_control * answer_ns_, period(other), span_ns(other), window_ns);
      parts.control_ns = add(parts.control_ns, control.value);
      sum = sum + control;
      const Linear frames = within(other, chain, kDown, part.down_ns, window_ns, arrival);
      parts.line_interference_ns[other] = add(parts.line_interference_ns[other], frames.value);
      sum = sum + frames;
    }
    const Linear beside = loads_on_line(Direction::down, window_ns);
    parts.control_ns = add(parts.control_ns, beside.value);
    sum = sum + beside;
    if (!alive_) {
      const Linear questions = signs_of_life(window_ns, Direction::down);
      parts.control_ns = add(parts.control_ns, questions.value);
      sum = sum + questions;
    }
    parts.line_blocking_ns += messages * blocking_ns;
    return sum + constant(messages * blocking_ns);
  }

  // ---- bounds: demand in a window, and the least window that holds it ----

  Linear client_interference(size_t chain, time_ns window_ns, LinkParts &parts, Arrival arrival = {}) const {
    Linear sum;
    parts.client_interference_ns.assign(size(), 0);
    if (loads_[chain].visits == 0) return sum;  // the chain has no callback on the client
    for (const size_t other : here_) {
      if (!goes_first(other, chain)) continue;
      const time_ns load_ns = seen(other, chain).client_ns;
      const Linear executed = within(other, chain, kClient, load_ns, window_ns, arrival);
      parts.client_interference_ns[other] = executed.value;
      const time_ns punctual_ns = share(load_ns, period(other), load_ns, window_ns).value;
      if (!one_release(other, chain)) parts.lateness_ns = add(parts.lateness_ns, executed.value - punctual_ns);
      sum = sum + executed;
    }
    return sum;
  }

  Linear interrupts(size_t chain, time_ns window_ns) const {
    if (loads_[chain].visits == 0) return {};
    Linear sum = constant(2 * loads_[chain].interrupts_ns);
    if (several_[chain]) sum = scale(stair(window_ns, span_ns(chain), period(chain)), loads_[chain].interrupts_ns);
    sum = sum + loads(window_ns, false);
    for (const size_t other : here_) {
      if (other == chain || loads_[other].interrupts_ns == 0) continue;
      const Seen load = seen(other, chain);
      const time_ns interrupts_ns =
          add(multiply(load.down_frames + load.down_control, system_.client.interrupt_receive_ns),
              multiply(load.up_frames + load.up_control, system_.client.interrupt_complete_ns));
      sum = sum + share(interrupts_ns, period(other), span_ns(other), window_ns);
    }
    if (alive_) return sum;
    // Answers to probes are the least urgent frames, so their processing counts as blocking (client_blocking). A batch
    // executor processes frames in any order, and a publish that waits for its acknowledgment may also wait for a probe
    // and its answer.
    time_ns each_ns = gap_ns_;
    if (is_batch()) each_ns += system_.client.process_ns;
    if (is_batch() && system_.client.send != Send::asynchronous)
      each_ns += 2 * question_frame_ns(system_.line) + gap_ns_;
    return sum + scale(signs_of_life(window_ns), each_ns);
  }

  // Adds the execution time to the first unit that has one of these paths; if there is none, makes a new unit.
  static void add_on_paths(std::vector<std::pair<std::vector<size_t>, time_ns>> &units,
                           const std::vector<size_t> &paths, time_ns executed_ns) {
    for (auto &[of_unit, sum_ns] : units) {
      std::vector<size_t> common;
      std::set_intersection(of_unit.begin(), of_unit.end(), paths.begin(), paths.end(), std::back_inserter(common));
      if (common.empty()) continue;
      of_unit = std::move(common);
      sum_ns = add(sum_ns, executed_ns);
      return;
    }
    units.emplace_back(paths, executed_ns);
  }

  // While a callback waits, all lanes of its executor run other callbacks, or the callback's group is busy
  // (docs/analysis/link.md, "Lanes of the host"). A unit runs only one callback at a time: a group, a chain, or those
  // parts of a timer's paths that lie on one path. No unit can therefore execute for longer than the wait.
  Linear lanes_wait(size_t chain, size_t place, time_ns window_ns) const {
    ByGroup &groups = groups_;
    std::vector<time_ns> &units = units_;
    groups.clear();
    units.clear();
    std::vector<std::pair<std::vector<size_t>, time_ns>> on_paths;  // execution of units, each with the paths of a
                                                                    // timer that contain it
    time_ns rest_ns = 0;  // execution of chains that are no unit, because several of their instances may run at once
    for (size_t other = 0; other < size(); other++) {
      if ((other == chain && !several_[chain]) || loads_[other].hosts_ns[place] == 0) continue;
      for (const auto &[group, load_ns] : seen_on_host(other, chain, place)) {
        const Stage at{Stage::Kind::host, place};
        const time_ns executed_ns = within(other, chain, at, load_ns, window_ns, {}).value;
        if (group.empty() && latest_ns(other) > period(other)) {
          rest_ns = add(rest_ns, executed_ns);
        } else if (group.empty() && roots_of_[other] != 0) {
          add_on_paths(on_paths, lies_on_[other], executed_ns);
        } else if (group.empty()) {
          units.push_back(executed_ns);
        } else {
          time_ns &sum_ns = of_group(groups, group);
          sum_ns = add(sum_ns, executed_ns);
        }
      }
    }
    time_ns excluded_ns = 0;
    const ByGroup &own = on_host_[chain][place];
    for (const auto &[group, executed_ns] : groups) {
      const bool is_own =
          std::any_of(own.begin(), own.end(), [name = group](const auto &one) { return one.first == name; });
      if (is_own) excluded_ns = add(excluded_ns, executed_ns);
      // If all callbacks of the chain are in this group, the group is not a unit, because its execution counts in full
      // (excluded_ns).
      if (!is_own || own.size() > 1) units.push_back(executed_ns);
    }
    for (const auto &[paths, executed_ns] : on_paths) units.push_back(executed_ns);
    std::sort(units.rbegin(), units.rend());
    time_ns busy_ns = kNeverNs;
    for (const time_ns unit_ns : units) rest_ns = add(rest_ns, unit_ns);
    for (size_t longest = 0; longest < static_cast<size_t>(system_.hosts[place].lanes); longest++) {
      const auto left = static_cast<time_ns>(static_cast<size_t>(system_.hosts[place].lanes) - longest);
      busy_ns = std::min(busy_ns, divide_up(rest_ns, left));
      if (longest >= units.size()) break;
      rest_ns -= units[longest];
    }
    return {add(excluded_ns, busy_ns), 0, window_ns};
  }

  Linear host_at(size_t chain, size_t place, time_ns window_ns, Arrival arrival = {}) const {
    if (system_.hosts[place].lanes > 1) return lanes_wait(chain, place, window_ns);
    Linear sum;
    for (size_t other = 0; other < size(); other++) {
      if (other == chain || loads_[other].hosts_ns[place] == 0) continue;
      for (const auto &[group, load_ns] : seen_on_host(other, chain, place))
        sum = sum + within(other, chain, {Stage::Kind::host, place}, load_ns, window_ns, arrival);
    }
    return sum;
  }

  Linear host(size_t chain, time_ns window_ns) const {
    Linear sum;
    if (hosts_keep_up_) return sum;
    for (size_t place = 0; place < system_.hosts.size(); place++) {
      if (!system_.hosts[place].own_cores && loads_[chain].visits_host[place])
        sum = sum + host_at(chain, place, window_ns);
    }
    return sum;
  }

  // ---- windows (docs/analysis/link.md, "Windows") ----

  bool in_one_stream(size_t other, size_t chain, Direction direction) const {
    const LinkChain &self = system_.chains[other];
    const bool reliable = direction == Direction::up ? self.uplink_reliable : self.downlink_reliable;
    return reliable && !is_foreign(other) && (other == chain || is_batch() || shares_level(other, chain));
  }

  // Most unacknowledged frames of the chain's stream, those of the chain included, when it publishes a message.
  Linear unacknowledged(size_t chain, Direction direction, time_ns window_ns) const {
    Linear frames;
    for (const size_t other : here_) {
      const bool up = direction == Direction::up;
      const Traffic &traffic = up ? loads_[other].up : loads_[other].down;
      if (traffic.frames == 0 || !in_one_stream(other, chain, direction)) continue;
      int64_t count = traffic.frames;
      if (other != chain) count = up ? seen(other, chain).up_frames : seen(other, chain).down_frames;
      // The chain's own response may still grow, so its instances are counted in the window.
      const time_ns own_ns = add(add(jitter(chain), loads_[chain].settling_ns), tail_ns(chain));
      const bool by_window = other == chain && !any_several_;  // with several instances, the window may be that of a
                                                               // single stage
      const Linear instances = by_window ? stair(window_ns, own_ns, period(chain))
                                         : constant(std::max<int64_t>(divide_up(span_ns(other), period(other)), 1));
      frames = frames + scale(instances, count);
    }
    return frames;
  }

  // Longest time for which this many of the chain's messages wait because the window of their stream is full. Of the
  // unacknowledged frames, as many as fit into one window have been sent. Each further windowful waits for the last
  // acknowledgment of the previous one; then transmission of a less urgent frame may have begun.
  Linear window_wait(size_t chain, Direction direction, int64_t messages, time_ns window_ns) const {
    const bool up = direction == Direction::up;
    if (messages == 0 || !in_one_stream(chain, chain, direction)) return {};
    if (up && waits_for_answer(system_.chains[chain])) return {};  // while its publish waits, no other publishes
    const Linear frames = unacknowledged(chain, direction, window_ns);
    const int64_t full = divide_up(frames.value, system_.protocol.window) - 1;
    if (full <= 0) return {0, 0, frames.until_ns};
    time_ns acknowledged_ns = 0;
    for (const size_t other : here_) {
      if (in_one_stream(other, chain, direction))
        acknowledged_ns = std::max(acknowledged_ns, up ? loads_[other].answer_ns : loads_[other].receipt_ns);
    }
    const time_ns each_ns = add(acknowledged_ns, longest_frame_ns(direction));
    return {multiply(multiply(messages, full), each_ns), 0, frames.until_ns};
  }

  bool is_any_window_full() const {
    return std::any_of(here_.begin(), here_.end(), [this](size_t chain) {
      if (is_foreign(chain)) return false;
      const time_ns window_ns = std::max<time_ns>(about_ns(chain) - jitter(chain), 1);
      const Load &load = loads_[chain];
      return window_wait(chain, Direction::up, load.up.messages, window_ns).value > 0 ||
             window_wait(chain, Direction::down, load.down.messages, window_ns).value > 0;
    });
  }

  // Call this only for a chain that has a bound.
  StreamUse use_of(size_t chain, Direction direction) const {
    const bool up = direction == Direction::up;
    const Traffic &traffic = up ? loads_[chain].up : loads_[chain].down;
    if (traffic.messages == 0) return {};
    const bool reliable = in_one_stream(chain, chain, direction);
    const time_ns settling_ns = reliable ? loads_[chain].settling_ns : 0;
    const time_ns pending_ns = add(add(responses_[chain], settling_ns), up ? tail_ns(chain) : 0);
    const int64_t frames = reliable ? unacknowledged(chain, direction, responses_[chain] - jitter(chain)).value : 0;
    return {std::max<int64_t>(divide_up(pending_ns, period(chain)), 1), frames};
  }

  // True if a callback of the other, less urgent chain that has begun is not preempted.
  bool may_block(size_t other, size_t chain) const {
    return other != chain && !goes_first(other, chain) && system_.chains[other].band >= system_.chains[chain].band;
  }

  time_ns client_blocking(size_t chain) const {
    if (is_batch()) return 0;
    // The lane that processes an answer to a probe may run callbacks, too.
    time_ns longest_ns = alive_ ? 0 : system_.client.process_ns;
    if (system_.client.policy == ClientPolicy::lanes) return longest_ns;
    for (const size_t other : here_) {
      if (may_block(other, chain)) longest_ns = std::max(longest_ns, loads_[other].unit_ns);
    }
    return longest_ns;
  }

  // Blocking of all visits together. Each visit waits for at most one callback or frame of less urgent chains that has
  // begun. One execution blocks only one visit, because it has ended when the chain runs. A callback therefore blocks
  // at most as often as its chain has instances in the window.
  Linear client_blockings(size_t chain, time_ns window_ns) const {
    const int64_t visits = loads_[chain].visits;
    if (visits < 2 || system_.client.policy != ClientPolicy::tide)
      return constant(multiply(visits, client_blocking(chain)));
    Linear result = constant(0);
    time_ns frame_ns = alive_ ? 0 : system_.client.process_ns;  // any number of frames may be processed
    std::vector<std::pair<time_ns, int64_t>> &pieces = pieces_;
    pieces.clear();
    for (const size_t other : here_) {
      if (!may_block(other, chain)) continue;
      int64_t count = visits;
      if (latest_ns(other) != kNeverNs) {
        const Linear instances = stair(window_ns, latest_ns(other), period(other));
        if (instances.value < visits) result.until_ns = std::min(result.until_ns, instances.until_ns);
        count = std::min(count, instances.value);
      }
      const std::vector<LinkCallback> &callbacks = system_.chains[other].callbacks;
      for (size_t index = 0; index < callbacks.size(); index++) {
        if (callbacks[index].place != kOnClient) continue;
        if (index > 0) frame_ns = std::max(frame_ns, system_.client.process_ns);
        pieces.emplace_back(costs_ns(callbacks[index]) + std::max<time_ns>(callbacks[index].execution_ns, 1), count);
      }
    }
    std::sort(pieces.rbegin(), pieces.rend());
    int64_t left = visits;
    for (const auto &[piece_ns, count] : pieces) {
      if (left == 0 || piece_ns <= frame_ns) break;
      const int64_t blocked = std::min(left, count);
      result.value = add(result.value, multiply(blocked, piece_ns));
      left -= blocked;
    }
    result.value = add(result.value, multiply(left, frame_ns));
    return result;
  }

  // The longest critical section of a less urgent chain under a lock that this chain or a more urgent one also takes.
  // It blocks at most once for each visit: while this chain waits, less urgent chains do not begin another section
  // (docs/analysis/locks.md).
  time_ns lock_blocking(size_t chain) const {
    if (system_.client.policy != ClientPolicy::lanes || loads_[chain].visits == 0) return 0;
    std::map<std::string, int64_t> ceilings;
    const auto each = [this](auto look) {
      for (const LinkChain &one : system_.chains) {
        for (const LinkCallback &callback : one.callbacks) {
          if (callback.place != kOnClient) continue;
          for (const CriticalSection &section : callback.sections) look(one.priority, section);
        }
      }
    };
    each([&](int64_t priority, const CriticalSection &section) {
      const auto [known, first] = ceilings.emplace(section.lock, priority);
      if (!first) known->second = std::max(known->second, priority);
    });
    time_ns longest_ns = 0;
    const int64_t own = system_.chains[chain].priority;
    each([&](int64_t priority, const CriticalSection &section) {
      if (priority < own && ceilings[section.lock] >= own) longest_ns = std::max(longest_ns, section.section_ns);
    });
    return longest_ns;
  }

  // True if no busy interval of the client can contain both visits of one instance of a more urgent pair. It suffices
  // to count one visit of every other pair: among all pairs in the interval, one encloses no other pair, and between
  // its visits every other instance has at most one visit.
  bool pairs_are_apart(size_t chain, time_ns window_ns, time_ns more_ns) const {
    const Load &self = loads_[chain];
    const bool preemptive = system_.client.policy == ClientPolicy::lanes;
    for (size_t pair = 0; pair < size(); pair++) {
      if (!goes_first(pair, chain) || !loads_[pair].pair) continue;
      // Of the chain's own execution, only the part that may lie between the two visits counts.
      time_ns between_ns = more_ns + (preemptive ? self.client_ns : self.taking_ns);
      for (const size_t other : here_) {
        if (other == pair || !goes_first(other, chain) || goes_on_[other]) continue;
        const Load &load = loads_[other];
        const time_ns count = stair(window_ns, responses_[other], period(other)).value;
        between_ns = add(between_ns, multiply(count, load.pair ? load.visit_ns : load.client_ns));
      }
      if (between_ns >= loads_[pair].remote_least_ns()) return false;
    }
    return true;
  }

  // An empty demand that reuses the memory of the previous one, because a bound evaluates thousands of windows.
  Demand &emptied_demand() const {
    LinkParts &parts = demand_.parts;
    std::vector<time_ns> client_ns = std::move(parts.client_interference_ns);
    std::vector<time_ns> line_ns = std::move(parts.line_interference_ns);
    std::vector<Linear> cases = std::move(demand_.cases);
    demand_ = {};
    cases.clear();
    client_ns.assign(size(), 0);
    line_ns.assign(size(), 0);
    demand_.cases = std::move(cases);
    parts.client_interference_ns = std::move(client_ns);
    parts.line_interference_ns = std::move(line_ns);
    return demand_;
  }

  // The chain's demand in a window that begins at the release of the first of `instances` consecutive instances; 1 if
  // each instance ends before the next release. The result is valid until the next call of demand or demand_at.
  const Demand &demand(size_t chain, time_ns window_ns, Until until = Until::sent, int64_t instances = 1) const {
    const Load &self = loads_[chain];
    const LinkChain &described = system_.chains[chain];
    const bool waited = waits_for_line(described) || waits_for_answer(described);
    // A publish that waits ends with the transmission of its message.
    const bool without_tail = until == Until::ended && self.tail_line_ns > 0 && !waited;
    const int64_t messages = self.up.messages - (without_tail ? 1 : 0);
    const bool crosses = messages > 0 || self.down.messages > 0;
    Demand &result = emptied_demand();
    LinkParts &parts = result.parts;
    const Linear client = client_interference(chain, window_ns, parts);
    const Linear interrupt = interrupts(chain, window_ns);
    const Linear up = uplink(chain, messages, window_ns, parts);
    const Linear down = downlink(chain, window_ns, parts);
    const Linear host_wait = host(chain, window_ns);
    const time_ns blocking_ns = client_blocking(chain);
    // The time of a publish that waits is part of client_ns, including its frame. The acknowledgment may arrive after
    // the answer.
    const time_ns line_ns =
        self.down.total_ns + (waited ? 0 : self.up.total_ns - (without_tail ? self.tail_line_ns : 0));
    const time_ns losses_ns = without_tail && !crosses ? 0 : self.losses_ns;
    const Linear window = window_wait(chain, Direction::up, messages, window_ns) +
                          window_wait(chain, Direction::down, self.down.messages, window_ns);
    result.remote = constant(line_ns + self.host_ns - shorter_ns_ + losses_ns) + up + down + host_wait + window;
    parts.execution_ns = self.client_ns;
    parts.line_ns = line_ns;
    parts.host_ns = self.host_ns;
    const Linear blockings = client_blockings(chain, window_ns);
    parts.client_blocking_ns = blockings.value;
    parts.new_data_ns = self.new_data_ns;
    parts.lock_blocking_ns = self.visits * lock_blocking(chain);
    parts.interrupts_ns = interrupt.value;
    parts.host_wait_ns = host_wait.value;
    parts.losses_ns = losses_ns;
    parts.window_ns = window.value;
    const Linear base = constant(self.client_ns + self.new_data_ns + parts.lock_blocking_ns) + blockings + interrupt;
    const Linear generic = base + result.remote + client;
    // The following cases rest on the lemmas on pairs. Without their premises, only the generic demand applies: several
    // instances, an interrupted critical section (it continues between the visits of a more urgent chain), or chains of
    // equal priority.
    if (several_[chain]) {
      const Linear own = own_instances(chain, until, instances, window_ns);
      parts.own_ns = own.value;
      result.cases = {generic + own};
      return result;
    }
    const bool one_processor = system_.client.processors == 1;
    if (!self.pair || is_batch() || parts.lock_blocking_ns > 0 || system_.chains[chain].shares_level ||
        !one_processor || is_shorter_) {
      result.cases = {generic};
      return result;
    }
    // Case 1: the client executes this chain or more urgent ones all the time, so the time on the line does not count.
    const Linear executed = constant(self.client_ns) + interrupt + client;
    const Linear busy = executed + constant(blocking_ns);
    if (!pairs_are_apart(chain, window_ns, interrupt.value)) {
      result.cases = {lesser(busy, generic, window_ns), generic};
      return result;
    }
    // Case 2: the client is idle in between. Then each instance of a more urgent chain interferes with at most one
    // visit ...
    const Once once = visits_once(chain, window_ns);
    // ... or some interfere with both visits, and the answer of the first of these arrived soon after its first
    // interference.
    const Linear way = constant(self.first_ns) + result.remote;
    const Linear latest = constant(once.latest_ns);
    const bool preemptive = system_.client.policy == ClientPolicy::lanes;
    Linear twice = preemptive ? client + constant(self.first_ns) + lesser(result.remote, latest, window_ns)
                              : client + lesser(way, latest, window_ns);
    if (!preemptive) twice = lesser(twice, once.sum + constant(once.again_ns) + latest, window_ns);
    const size_t below = only_less_urgent(chain, window_ns);
    const bool alone = below < size() && pairs_are_apart(chain, window_ns, interrupt.value + loads_[below].visit_ns);
    Linear blocked = blockings;
    if (alone) {
      // One instance of the less urgent chain `below` can block both visits of this chain in only two ways. Either the
      // second visit is blocked only by the processing of its frames (counted here), or each of its own visits blocks
      // one (the last two cases).
      const Load &load = loads_[below];
      blocked = {load.unit_ns + load.taking_ns, 0, stair(window_ns, responses_[below], period(below)).until_ns};
      parts.client_blocking_ns = blocked.value;
    }
    const Linear idle = constant(self.last_ns) + interrupt + blocked;
    result.cases = {busy, lesser(idle + way + once.sum, generic, window_ns), lesser(idle + twice, generic, window_ns)};
    if (alone) {
      // Both visits of that instance block; the second one blocks as soon as its answer has arrived.
      const Linear both = constant(loads_[below].client_ns);
      const Linear late = constant(self.last_ns + remotes_[below]) + interrupt + once.sum;
      result.cases.push_back(lesser(executed + both, generic, window_ns));
      result.cases.push_back(lesser(late + both, generic, window_ns));
    }
    return result;
  }

  // Interference if only one of the two visits of each more urgent pair falls into the window.
  Once visits_once(size_t chain, time_ns window_ns) const {
    Once once;
    for (const size_t other : here_) {
      if (!goes_first(other, chain)) continue;
      const Load &load = loads_[other];
      const Linear all = within(other, chain, kClient, seen(other, chain).client_ns, window_ns, {});
      const Linear count = stair(window_ns, responses_[other], period(other));
      once.sum = once.sum + (load.pair ? lesser(all, scale(count, load.visit_ns), window_ns) : all);
      if (!load.pair) continue;
      once.latest_ns = std::max(once.latest_ns, remotes_[other]);
      once.again_ns = std::max(once.again_ns, load.client_ns - load.visit_ns);
    }
    return once;
  }

  // The less urgent chain on a cooperative executor, if there is only one, at most one instance of it is in the window,
  // and no probes are sent; otherwise size().
  size_t only_less_urgent(size_t chain, time_ns window_ns) const {
    size_t found = size();
    if (system_.client.policy != ClientPolicy::tide || !alive_) return found;
    for (const size_t other : here_) {
      if (other == chain || goes_first(other, chain) || loads_[other].visits == 0 || goes_on_[other]) continue;
      if (found < size() || !loads_[other].pair) return size();
      found = other;
    }
    if (found < size() && stair(window_ns, responses_[found], period(found)).value > 1) return size();
    return found;
  }

  // ---- several instances under way (docs/analysis/link.md, "Beyond the period") ----

  // The reason why an instance of this chain must end before the next one is released; empty if it need not.
  std::string alone(size_t chain) const {
    const LinkChain &self = system_.chains[chain];
    const Protocol &protocol = system_.protocol;
    if (!self.alone.empty()) return self.alone;
    if (is_batch() && system_.client.send != Send::asynchronous)
      return "publishing waits, and there is no bound for a sample that comes meanwhile and finds one before it";
    if (!self.uplink_reliable && !self.downlink_reliable) return "";
    if (protocol.losses > 0) return "there is no bound for the repair of several instances";
    if (holds(chain)) return "there is no bound for several instances of a chain with 'hold'";
    if (protocol.acknowledges == Acknowledges::asked)
      return "there is no bound for several instances that are acknowledged when they are asked about";
    return "";
  }

  // The stages of an instance up to the given end.
  std::vector<Stage> stages_until(size_t chain, Until until) const {
    std::vector<Stage> stages = stages_[chain];
    if (until == Until::ended && loads_[chain].tail_line_ns > 0) stages.pop_back();
    return stages;
  }

  // Work that the chain's other instances add to the critical path through all stages, in a window of this many
  // instances. If the chain has several stages on one resource, all its work there counts. At any other stage its
  // instances are served in order, so all other instances together add only the longest stage each.
  Linear own_instances(size_t chain, Until until, int64_t instances, time_ns window_ns) const {
    using Kind = Stage::Kind;
    const std::vector<Stage> stages = stages_until(chain, until);
    Linear sum;
    time_ns longest_ns = 0;
    for (size_t index = 0; index < stages.size(); index++) {
      const Stage &stage = stages[index];
      if (stage.kind == Kind::delay) continue;
      const auto is_alike = [&stage](const Stage &other) {
        return other.kind == stage.kind && other.host == stage.host;
      };
      longest_ns = std::max(longest_ns, add(stage.own_ns, full_window_ns(chain, stage, window_ns)));
      const auto here = stages.begin() + static_cast<ptrdiff_t>(index);
      if (stage.others_ns == 0 || std::find_if(stages.begin(), here, is_alike) != here) continue;
      const Linear others = share(stage.own_ns + stage.others_ns, period(chain), span_ns(chain), window_ns);
      sum = sum + others;
    }
    return sum + constant(multiply(instances - 1, longest_ns));
  }

  // Time for which one of the chain's messages waits at this stage because the window of its stream is full.
  time_ns full_window_ns(size_t chain, const Stage &stage, time_ns window_ns) const {
    if (stage.kind != Stage::Kind::up && stage.kind != Stage::Kind::down) return 0;
    const Direction direction = stage.kind == Stage::Kind::up ? Direction::up : Direction::down;
    return window_wait(chain, direction, 1, window_ns).value;
  }

  // Work of the chain's instances at other stages on the same resource, and the processing of later messages.
  Linear other_stages(size_t chain, const Stage &stage, time_ns window_ns) const {
    const Linear executed = share(stage.others_ns, period(chain), span_ns(chain), window_ns);
    if (stage.others_ns == 0 || !is_plain_[chain] || !windows_suffice_) return executed;
    time_ns taking_ns = stage.others_ns;
    Linear came;
    for (const Stage &other : stages_[chain]) {
      if (!other.is_at(stage) || other.index == stage.index) continue;
      came = came + scale(stair(window_ns, other.late_ns - other.early_ns, period(chain)), other.own_ns);
      taking_ns -= other.own_ns;
    }
    came = came + scale(stair(window_ns, stage.late_ns - stage.early_ns, period(chain)), taking_ns);
    return lesser(executed, came, window_ns);
  }

  // Demand of this many instances at one stage, in a window that begins when nothing of this chain or more urgent waits
  // there. The last of the instances arrives at `arrival_ns`, counted from the beginning of the window.
  const Demand &demand_at(size_t chain, const Stage &stage, time_ns window_ns, int64_t instances,
                          time_ns arrival_ns) const {
    using Kind = Stage::Kind;
    Demand &result = emptied_demand();
    LinkParts &parts = result.parts;
    const Linear others = other_stages(chain, stage, window_ns);
    const time_ns waiting_ns = full_window_ns(chain, stage, window_ns);
    Linear sum = constant(add(stage.own_ns, multiply(instances, waiting_ns))) + others;
    parts.window_ns = multiply(instances, waiting_ns);
    parts.own_ns = add(others.value, multiply(instances - 1, stage.own_ns));
    sum = sum + constant(multiply(instances - 1, stage.own_ns));
    switch (stage.kind) {
      case Kind::client: {
        const Linear interrupt = interrupts(chain, window_ns);
        parts.execution_ns = stage.own_ns;
        parts.client_blocking_ns = client_blocking(chain);
        parts.lock_blocking_ns = lock_blocking(chain);
        parts.interrupts_ns = interrupt.value;
        sum = sum + client_interference(chain, window_ns, parts, arrival_ns) + interrupt;
        sum = sum + constant(parts.client_blocking_ns + parts.lock_blocking_ns);
        break;
      }
      case Kind::up:
      case Kind::down: {
        const Linear masked = loads(window_ns, true);
        parts.line_ns = stage.own_ns;
        parts.interrupts_ns = masked.value;
        sum = sum + masked +
              (stage.kind == Kind::up ? uplink_by_level(chain, 1, window_ns, parts, arrival_ns)
                                      : downlink_by_level(chain, 1, window_ns, parts, arrival_ns));
        break;
      }
      case Kind::host: {
        const Linear waits = host_at(chain, stage.host, window_ns, arrival_ns);
        parts.host_ns = stage.own_ns;
        parts.host_wait_ns = waits.value;
        sum = sum + waits;
        break;
      }
      case Kind::delay: parts.host_ns = stage.own_ns;
    }
    result.cases = {sum};
    return result;
  }

  // behind_ns: longest time from the arrival of an instance until it leaves the stage; with the window and the arrival
  // for which it was found.
  struct Latest {
    time_ns behind_ns = 0, window_ns = 0, arrival_ns = kNeverNs;
  };

  // The maximum over all arrivals from first_ns to the end of the busy window; kNeverNs if there are too many arrivals.
  template <class Least>
  Latest latest_in_order(size_t chain, const Stage &stage, time_ns first_ns, time_ns whole_ns,
                         const Least &least_ns) const {
    Latest latest;
    time_ns window_ns = 1, arrival_ns = first_ns;
    for (int tries = 0; tries == 0 || arrival_ns < whole_ns; tries++) {
      window_ns = least_ns(window_ns, arrival_ns);
      if (window_ns == kNeverNs || tries == kMostArrivals) return {kNeverNs, 0, 0};
      if (window_ns - arrival_ns > latest.behind_ns) latest = {window_ns - arrival_ns, window_ns, arrival_ns};
      arrival_ns = next_arrival_ns(chain, stage, arrival_ns);
    }
    return latest;
  }

  // Longest time from an instance's arrival at a stage until it leaves the stage, if it arrives at most late_ns after
  // the nominal expiry; kNeverNs: no bound. `parts` receives the parts of this time.
  time_ns stage_ns(size_t chain, const Stage &stage, time_ns late_ns, LinkParts *parts) const {
    if (stage.kind == Stage::Kind::delay) {
      if (parts != nullptr) parts->host_ns += stage.own_ns;
      return stage.own_ns;
    }
    time_ns longest_ns = 0, window_ns = 1, unused_ns = 0;
    for (int64_t instances = 1; instances <= kMostInstances; instances++) {
      const time_ns earlier_ns = multiply(instances - 1, period(chain));
      const auto least_ns = [&](time_ns from_ns, time_ns arrival_ns) {
        const auto ask = [&](time_ns in_ns) -> const std::vector<Linear> & {
          return demand_at(chain, stage, in_ns, instances, arrival_ns).cases;
        };
        return least_window(ask, from_ns, kLongestWaitNs, unused_ns);
      };
      window_ns = least_ns(window_ns, kNeverNs);
      if (window_ns == kNeverNs) return kNeverNs;
      // The time in the whole busy window or, if the order of arrival gives a shorter time, the maximum over all
      // arrivals.
      Latest latest{window_ns - earlier_ns, window_ns, kNeverNs};
      if (next_arrival_ns(chain, stage, earlier_ns) < kNeverNs) {
        const Latest in_order = latest_in_order(chain, stage, earlier_ns, window_ns, least_ns);
        if (in_order.behind_ns < latest.behind_ns) latest = in_order;
      }
      if (latest.behind_ns > longest_ns) {
        longest_ns = latest.behind_ns;
        if (parts != nullptr) *parts = demand_at(chain, stage, latest.window_ns, instances, latest.arrival_ns).parts;
      }
      // All these instances have left the stage when the next instance arrives.
      if (add(late_ns, window_ns) <= add(earlier_ns, period(chain)) + stage.early_ns) return longest_ns;
    }
    return kNeverNs;
  }

  // The bound as a sum over stages. Earlier stages affect a later stage only because they delay the arrivals there.
  time_ns by_stages_ns(size_t chain, Until until, LinkParts *parts = nullptr) const {
    time_ns late_ns = jitter(chain);
    for (const Stage &stage : stages_until(chain, until)) {
      LinkParts own;
      const time_ns behind_ns = stage_ns(chain, stage, late_ns, parts == nullptr ? nullptr : &own);
      if (behind_ns >= kLongestWaitNs - late_ns) return kNeverNs;
      late_ns += behind_ns;
      if (parts != nullptr) parts->include(own);
    }
    return late_ns;
  }

  // Updates the times at which instances arrive at each stage; the windows of other chains use them. Returns true if
  // any of them has changed.
  bool place_stages(size_t chain) {
    if (!is_plain_[chain]) return false;
    bool changed = false;
    time_ns late_ns = jitter(chain);
    for (Stage &stage : stages_[chain]) {
      const time_ns behind_ns = std::min(add(late_ns, stage_ns(chain, stage, late_ns, nullptr)), responses_[chain]);
      changed = changed || late_ns > stage.late_ns || behind_ns > stage.behind_ns;
      stage.late_ns = std::max(stage.late_ns, late_ns);
      late_ns = stage.behind_ns = std::max(stage.behind_ns, behind_ns);
    }
    return changed;
  }

  // The bound by one window over all stages. The window begins with the release of the first of several instances that
  // follow each other without a gap. `most`: the number of these instances, if known. `found`, if not null, receives
  // this number.
  time_ns by_window_ns(size_t chain, Until until, LinkParts *parts = nullptr, int64_t most = 0,
                       int64_t *found = nullptr) const {
    time_ns longest_ns = 0, window_ns = 1, unused_ns = 0;
    for (int64_t instances = 1; instances <= kMostInstances; instances++) {
      const auto ask = [&](time_ns in_ns) -> const std::vector<Linear> & {
        return demand(chain, in_ns, until, instances).cases;
      };
      window_ns = least_window(ask, window_ns, kLongestWaitNs, unused_ns);
      if (window_ns == kNeverNs) return kNeverNs;
      const time_ns response_ns = add(jitter(chain), window_ns) - multiply(instances - 1, period(chain));
      if (response_ns > longest_ns) {
        longest_ns = response_ns;
        if (parts != nullptr) *parts = demand(chain, window_ns, until, instances).parts;
      }
      if (found != nullptr) *found = instances;
      if (response_ns <= period(chain) || instances == most) return longest_ns;
    }
    return kNeverNs;
  }

  // True if the chain's timer is never late by a whole period. The executor skips an expiry of a timer that is.
  bool timer_keeps_up(size_t chain) const {
    const Stage &first = stages_[chain].front();
    if (system_.chains[chain].sporadic || first.kind == Stage::Kind::delay) return true;
    return add(jitter(chain), timer_ns(chain)) <= period(chain);
  }

  // Time from the release until the timer's callback has ended.
  time_ns timer_ns(size_t chain) const {
    time_ns unused_ns = 0;
    const auto ask = [&](time_ns in_ns) -> const std::vector<Linear> & {
      return demand_at(chain, stages_[chain].front(), in_ns, 1, 0).cases;
    };
    return least_window(ask, 1, kLongestWaitNs, unused_ns);
  }

  time_ns beyond_period_ns(size_t chain, Until until) const {
    if (jitter(chain) >= kLongestWaitNs || overloaded(chain)) return kNeverNs;
    return std::min(by_stages_ns(chain, until), by_window_ns(chain, until));
  }

  // ---- the solution ----

  std::vector<size_t> dependences(size_t chain) const {
    std::vector<size_t> found;
    for (size_t other = 0; other < size(); other++) {
      if (other == chain) continue;
      const Load &load = loads_[other];
      bool shares_host = false;
      for (size_t place = 0; place < system_.hosts.size(); place++) {
        shares_host = shares_host ||
                      (!system_.hosts[place].own_cores && load.hosts_ns[place] > 0 && loads_[chain].visits_host[place]);
      }
      if (is_foreign(other)) {
        if (shares_host) found.push_back(other);
        continue;
      }
      if (goes_first(other, chain) || shares_host || load.interrupts_ns > 0 || blocks_as_often(other, chain) ||
          (load.up.control > 0 && up_waits_[chain] != kNeverNs) ||
          (load.down.control > 0 && down_waits_[chain] != kNeverNs))
        found.push_back(other);
    }
    std::set<size_t> late;
    for (const size_t other : found) late.insert(as_late_[other].begin(), as_late_[other].end());
    for (const size_t other : found) late.erase(other);
    late.erase(chain);
    found.insert(found.end(), late.begin(), late.end());
    return found;
  }

  // True if the other chain blocks only as often as the window contains its instances (client_blockings); a chain
  // without a bound may block each visit.
  bool blocks_as_often(size_t other, size_t chain) const {
    return system_.client.policy == ClientPolicy::tide && loads_[chain].visits > 1 && loads_[other].visits > 0 &&
           latest_ns(other) != kNeverNs;
  }

  // The chain's response with the values of this pass; kNeverNs if there is no bound. `reached_ns` receives the last
  // window tried, if any, which is a lower limit of the response without jitter if the chain itself is late.
  time_ns solve(size_t chain, time_ns &reached_ns) {
    if (!control_counted_ || loads_[chain].settling_ns >= kLongestWaitNs) return kNeverNs;
    for (const size_t other : dependences(chain)) {
      if (responses_[other] == kNeverNs) return kNeverNs;
    }
    if (!several_[chain]) {
      const time_ns from_ns = std::max<time_ns>(responses_[chain] - jitter(chain), 1);
      const auto ask = [&](time_ns window_ns) -> const std::vector<Linear> & { return demand(chain, window_ns).cases; };
      const time_ns most_ns = period(chain) - jitter(chain) - loads_[chain].spare_ns;
      const time_ns window_ns = least_window(ask, from_ns, most_ns, reached_ns);
      const time_ns found_ns = window_ns == kNeverNs ? kNeverNs : add(jitter(chain), window_ns);
      if (!alone(chain).empty() || (!any_several_ && found_ns != kNeverNs)) return found_ns;
      const time_ns least_ns = std::min(found_ns, staged_ns(chain, Until::sent));
      if (least_ns <= period(chain)) return std::max(least_ns, responses_[chain]);
      several_[chain] = any_several_ = true;
    }
    const time_ns found_ns = beyond_period_ns(chain, Until::sent);
    return found_ns > multiply(kMostInstances, period(chain)) ? kNeverNs : std::max(found_ns, responses_[chain]);
  }

  // The least window, from from_ns on, that is as long as the greatest of its cases of demand; kNeverNs if there is
  // none up to most_ns.
  template <class Ask>
  static time_ns least_window(const Ask &ask, time_ns from_ns, time_ns most_ns, time_ns &reached_ns) {
    time_ns window_ns = from_ns;
    for (int step = 0; step < kMostSteps && window_ns <= most_ns; step++) {
      time_ns next_ns = window_ns;
      for (const Linear &each : ask(window_ns)) {
        if (each.value <= window_ns) continue;
        const time_ns behind_ns = each.slope >= 1 ? each.until_ns + 1 : 0;
        next_ns = std::max({next_ns, each.value, std::min(behind_ns, add(most_ns, 1))});
      }
      if (next_ns == window_ns) return settled(ask, window_ns);
      reached_ns = window_ns = next_ns;
    }
    return kNeverNs;
  }

  // Records why the chain has no bound. If the chain depends on a chain without a bound, it gets the root cause of that
  // chain.
  void fail(size_t chain, time_ns reached_ns) {
    roots_[chain] = chain;
    for (const size_t other : dependences(chain)) {
      if (responses_[other] != kNeverNs) continue;
      roots_[chain] = roots_[other];
      return;
    }
    const time_ns window_ns = std::max<time_ns>(period(chain) - jitter(chain) - loads_[chain].spare_ns, 1);
    if (several_[chain]) why_[chain] = why_beyond(chain);
    if (several_[chain] || reached_ns <= window_ns) return;  // no window beyond the period was tried
    Demand made = demand(chain, window_ns);
    made.parts.jitter_ns = jitter(chain);
    for (const Linear &each : made.cases) reached_[chain] = std::max(reached_[chain], add(jitter(chain), each.value));
    reached_parts_[chain] = std::move(made.parts);
  }

  // Shortens a window that suffices as long as the shorter one still suffices, because a step of the search beyond a
  // corner may go slightly too far.
  template <class Ask> static time_ns settled(const Ask &ask, time_ns window_ns) {
    for (int step = 0; step < kMostSteps; step++) {
      time_ns least_ns = 1;
      for (const Linear &each : ask(window_ns)) least_ns = std::max(least_ns, each.value);
      if (least_ns >= window_ns) break;
      window_ns = least_ns;
    }
    return window_ns;
  }

  // The response until the last callback ends, without the transmission of its message. Call this only for a chain that
  // has a bound.
  time_ns end_ns(size_t chain) const {
    if (several_[chain]) return std::min(beyond_period_ns(chain, Until::ended), responses_[chain]);
    if (loads_[chain].tail_line_ns == 0) return responses_[chain];
    return std::min({in_period_ns(chain, Until::ended), staged_ns(chain, Until::ended), responses_[chain]});
  }

  // The bound by the window of one instance, if that ends before the next release; otherwise kNeverNs.
  time_ns in_period_ns(size_t chain, Until until) const {
    time_ns reached_ns = 0;
    const time_ns most_ns = period(chain) - jitter(chain);
    const auto ask = [&](time_ns window_ns) -> const std::vector<Linear> & {
      return demand(chain, window_ns, until).cases;
    };
    const time_ns window_ns = least_window(ask, 1, most_ns, reached_ns);
    return window_ns == kNeverNs ? kNeverNs : add(jitter(chain), window_ns);
  }

  // The bound by stages, or kNeverNs if it is not used. It helps only if some chain has several instances under way,
  // because their work adds up to more in one long window than at any single stage.
  time_ns staged_ns(size_t chain, Until until) const {
    return any_several_ && alone(chain).empty() ? by_stages_ns(chain, until) : kNeverNs;
  }

  // ---- shorter delays of an instance (docs/analysis/link.md, "Measured delays") ----

  // Bounds for shorter delays. Only the delays of the instance itself are shorter, and its demand is the generic one of
  // demand(). Everything else, including the responses of other instances, keeps the longest delays.
  void bound_shorter(size_t chain, LinkResult &result) {
    const Line &line = system_.line;
    const LinkChain &described = system_.chains[chain];
    int64_t ups = 0, downs = 0;
    for (size_t index = 0; index + 1 < described.callbacks.size(); index++) {
      const LinkCallback &from = described.callbacks[index];
      const bool up = from.place == kOnClient, down = described.callbacks[index + 1].place == kOnClient;
      ups += up ? 1 : 0;
      downs += down ? 1 : 0;
      if (up) result.up_frames += message(line, Direction::up, from.payload_bytes).frames;
      if (down) result.down_frames += message(line, Direction::down, from.payload_bytes).frames;
    }
    is_shorter_ = true;
    const int64_t instances = several_[chain] ? instances_in_window(chain) : 1;
    for (size_t index = 0; index < line.shorter_agent_ns.size(); index++) {
      shorter_ns_ = ups * (line.agent_ns - line.shorter_agent_ns[index]) +
                    downs * (line.return_ns - line.shorter_return_ns[index]) +
                    (described.shorter_away_ns.empty() ? 0 : described.shorter_away_ns[index]);
      time_ns response_ns = kNeverNs;
      if (!several_[chain]) {
        response_ns = in_period_ns(chain, Until::ended);
      } else if (instances > 0) {
        response_ns = by_window_ns(chain, Until::ended, nullptr, instances);
      }
      const bool is_less = response_ns < *result.response_ns;
      result.shorter.push_back({is_less ? response_ns : *result.response_ns, is_less ? instances : 1});
    }
    is_shorter_ = false;
    shorter_ns_ = 0;
  }

  // Number of instances in the longest window of by_window_ns; 0: unknown.
  int64_t instances_in_window(size_t chain) const {
    int64_t instances = 0;
    return by_window_ns(chain, Until::ended, nullptr, 0, &instances) == kNeverNs ? 0 : instances;
  }

  // ---- parts and assumptions of a bound ----

  // Utilisation by this chain and all chains that go first, without any waiting: of the line's directions that the
  // chain uses (with escaped bytes as described, and without any), of the client, and of each host executor that the
  // chain visits.
  Shares asked(size_t chain) const {
    Shares shares;
    shares.hosts.assign(system_.hosts.size() + 1, 0);  // the last entry is unused
    const Load &self = asked_[chain];
    const Cut nothing;
    for (const ClientLoad &load : system_.client.loads) {
      const auto period_ns = static_cast<double>(load.period_ns);
      shares.client += static_cast<double>(load.execution_ns) / period_ns;
      if (load.payload_bytes == 0) continue;
      shares.up += static_cast<double>(frame_ns(load, Direction::up)) / period_ns;
      shares.down += static_cast<double>(frame_ns(load, Direction::down)) / period_ns;
    }
    for (size_t other = 0; other < size(); other++) {
      if (other != chain && !goes_first(other, chain)) continue;
      const Load &load = asked_[other];
      const Cut &cut = other == chain ? nothing : cut_for(other, chain);
      const auto period_ns = static_cast<double>(period(other));
      if (self.up.messages > 0 || is_batch()) {
        shares.up += static_cast<double>(load.up.total_ns - cut.up_ns) / period_ns;
        shares.plain_up += static_cast<double>(load.up.plain_ns - cut.up_plain_ns) / period_ns;
      }
      if (self.down.messages > 0 || is_batch()) {
        shares.down += static_cast<double>(load.down.total_ns - cut.down_ns) / period_ns;
        shares.plain_down += static_cast<double>(load.down.plain_ns - cut.down_plain_ns) / period_ns;
      }
      shares.client += static_cast<double>(load.client_ns - cut.client_ns) / period_ns;
    }
    for (size_t place = 0; place < system_.hosts.size(); place++) {
      if (system_.hosts[place].own_cores || !self.visits_host[place]) continue;
      for (size_t other = 0; other < size(); other++) {
        time_ns load_ns = asked_[other].hosts_ns[place];
        if (other != chain) {
          load_ns = 0;
          for (const auto &[group, own_ns] : seen_on_host(other, chain, place)) load_ns += own_ns;
        }
        shares.hosts[place] += static_cast<double>(load_ns) / static_cast<double>(period(other)) /
                               static_cast<double>(system_.hosts[place].lanes);
      }
    }
    return shares;
  }

  // The most urgent chain, among this chain and those that go first, at which the load exceeds the capacity.
  std::optional<size_t> overloaded(size_t chain) const {
    for (const size_t other : order_) {
      if ((other == chain || goes_first(other, chain)) && asks_too_much(other)) return other;
    }
    return std::nullopt;
  }

  // True if this chain and those that go first reach the capacity of something that the chain uses. The result is
  // cached, because it changes only if chains share elements (has_trees_).
  bool asks_too_much(size_t chain) const {
    std::optional<bool> &known = too_much_[chain];
    if (!known || has_trees_) {
      const Shares shares = asked(chain);
      const double host = *std::max_element(shares.hosts.begin(), shares.hosts.end());
      known = std::max({shares.up, shares.down, shares.client, host}) >= 1;
    }
    return *known;
  }

  void blame(size_t chain, LinkResult &result) const {
    result.root = control_counted_ ? overloaded(chain).value_or(roots_[chain]) : chain;
    const size_t root = result.root;
    if (!overloaded(chain)) {
      result.reached_ns = reached_[root];
      result.reached_parts = reached_parts_[root];
    }
    result.limit_ns = period(root);
    result.reason = reason(root);
    if (root != chain)
      result.reason = "it needs a bound of chain '" + system_.chains[root].name + "', which has none: " + result.reason;
  }

  static std::string percent(double share) {
    const std::string tenths = std::to_string(std::llround(share * 1000));
    return (tenths.size() > 1 ? tenths.substr(0, tenths.size() - 1) : "0") + "." + tenths.back() + " %";
  }

  // The subject of a sentence about the load that is counted for this chain.
  std::string who_asks(size_t chain) const {
    bool alone = true;
    for (size_t other = 0; other < size(); other++) alone = alone && (other == chain || !goes_first(other, chain));
    return is_batch() ? "all chains ask for " : alone ? "it asks for " : "it and the more urgent chains ask for ";
  }

  // What carries the messages, in the words of the description.
  std::string wire(bool up) const {
    return std::string(system_.line.rtps_mbit_per_s > 0 ? "the interface " : "the line ") + (up ? "to" : "from") +
           (system_.line.rtps_mbit_per_s > 0 ? " the nodes" : " the agent");
  }

  // The key that makes the line faster, as the beginning of an advice; empty if the throughput is a property of the
  // port.
  std::string faster() const {
    if (system_.line.usb) return "";
    return std::string("raise '") + (system_.line.rtps_mbit_per_s > 0 ? "mbit_per_s" : "baud") + "' or ";
  }

  // The load of line, client and host counted for a chain, as text. It is used when the iteration does not settle
  // although none of them is overloaded.
  std::string load(size_t chain) const {
    const Shares shares = asked(chain);
    const double line = std::max(shares.up, shares.down);
    const auto host = std::max_element(shares.hosts.begin(), shares.hosts.end());
    std::string text = who_asks(chain);
    if (line > 0) text += percent(line) + " of " + wire(shares.up >= shares.down) + " and ";
    text += percent(shares.client) + " of the microcontroller";
    if (*host > std::max(line, shares.client))
      text += "; the callbacks of executor '" + system_.hosts[static_cast<size_t>(host - shares.hosts.begin())].name +
              "' ask for " + percent(*host) + " of it";
    return text + (line > std::max(shares.client, *host) ? "; " + faster() + "send less"
                                                         : "; lengthen periods or shorten executions");
  }

  // A sentence about the overload of the line or the client; empty if there is none.
  std::string overload(size_t chain) const {
    const Shares shares = asked(chain);
    const std::string who = who_asks(chain);
    if (shares.up < 1 && shares.down < 1) {
      if (shares.client >= 1) return who + percent(shares.client) + " of the microcontroller";
      const auto busiest = std::max_element(shares.hosts.begin(), shares.hosts.end());
      if (*busiest < 1) return "";
      const HostExecutor &host = system_.hosts[static_cast<size_t>(busiest - shares.hosts.begin())];
      return "the callbacks of executor '" + host.name + "' ask for " + percent(*busiest) + " of " +
             (host.lanes > 1 ? "its lanes" : "it") + "; lengthen periods or shorten executions";
    }
    const bool up = shares.up >= shares.down;
    const double plain = up ? shares.plain_up : shares.plain_down;
    const Line &given = system_.line;
    const std::string line = " of " + wire(up) + " at " +
                             (given.rtps_mbit_per_s > 0 ? std::to_string(given.rtps_mbit_per_s) + " Mbit/s"
                              : given.usb               ? std::to_string(given.baud / 10) + " bytes/s"
                                                        : std::to_string(given.baud) + " baud");
    if (!given.escaped_bytes && plain < 1)
      return who + percent(up ? shares.up : shares.down) + line +
             " if every byte of a frame is escaped, which is what is supposed without 'escaped_bytes', and for " +
             percent(plain) + " if none is; give 'escaped_bytes'" + (faster().empty() ? " or " : ", " + faster()) +
             "send less";
    return who + percent(up ? shares.up : shares.down) + line + "; " + faster() + "send less";
  }

  // The chain's timer may skip expiries, and there is no bound for a skipped one, so the chain has none. The executed
  // instances end within the computed response, so the bounds of other chains hold (docs/analysis/link.md, "Beyond the
  // period").
  void blame_timer(size_t chain, LinkResult &result) const {
    result.root = chain;
    result.reached_ns = add(jitter(chain), timer_ns(chain));
    result.limit_ns = period(chain);
    result.reached_parts = demand_at(chain, stages_[chain].front(), timer_ns(chain), 1, 0).parts;
    result.reason = "its timer's callback may end " + milliseconds(result.reached_ns) +
                    " after its expiry, beyond its period of " + milliseconds(period(chain)) +
                    ", and a timer that is late by a period skips an expiry";
    if (stages_[chain].front().kind == Stage::Kind::client)
      result.reason += "; if one run may stand for several expiries, begin the chain with kind = \"event\"";
  }

  // The reason why a chain has no bound although several of its instances were allowed to be under way.
  std::string why_beyond(size_t chain) const {
    if (const auto text = full_window(chain)) return *text;
    const std::vector<Stage> &stages = stages_[chain];
    const bool comes_again =
        std::any_of(stages.begin(), stages.end(), [](const Stage &stage) { return stage.others_ns > 0; });
    const time_ns alone_ns = std::accumulate(stages.begin(), stages.end(), jitter(chain),
                                             [](time_ns sum, const Stage &stage) { return add(sum, stage.own_ns); });
    if (comes_again && alone_ns > period(chain))
      return "it takes " + milliseconds(alone_ns) + " even without any waiting, beyond its period of " +
             milliseconds(period(chain)) +
             ", and where it comes to the board, the line or a node again, no limit is known to how long its instances "
             "delay each other; end it earlier and begin another chain there, or lengthen its period";
    return "the time until its instances are over did not settle: " + load(chain);
  }

  // The reason if the chain's stream needs more frames than a window holds, and the wait for the window is the main
  // cause of its lateness.
  std::optional<std::string> full_window(size_t chain) const {
    const time_ns waiting_ns = reached_parts_[chain].window_ns;
    const time_ns rest_ns = reached_[chain] - waiting_ns;
    if (!several_[chain] && (waiting_ns == 0 || (rest_ns > period(chain) && rest_ns > waiting_ns))) return std::nullopt;
    const time_ns window_ns = std::max<time_ns>(period(chain) - jitter(chain), 1);
    const int64_t up = unacknowledged(chain, Direction::up, window_ns).value;
    const int64_t down = unacknowledged(chain, Direction::down, window_ns).value;
    if (several_[chain] && std::max(up, down) > kMostInstances) return std::nullopt;  // the iteration no longer settles
    const bool to_agent = window_wait(chain, Direction::up, 1, window_ns).value > 0;
    if (several_[chain] && !to_agent && window_wait(chain, Direction::down, 1, window_ns).value == 0)
      return std::nullopt;
    bool shared = false, in_fragments = false;
    for (const size_t other : here_) {
      if (!in_one_stream(other, chain, to_agent ? Direction::up : Direction::down)) continue;
      const Traffic &traffic = to_agent ? loads_[other].up : loads_[other].down;
      shared = shared || other != chain;
      in_fragments = in_fragments || traffic.frames > traffic.messages;
    }
    const Load &load = loads_[chain];
    return std::string("up to ") + std::to_string(to_agent ? up : down) + " frames of " +
           (shared ? "the stream that it shares with others" : "its stream") + (to_agent ? " to" : " from") +
           " the agent may wait for an acknowledgment, which takes " +
           milliseconds(to_agent ? load.answer_ns : load.receipt_ns) + ", and a window holds " +
           std::to_string(system_.protocol.window) +
           (several_[chain] ? ", so that its instances come faster than they are over"
                            : ": it may take " + milliseconds(reached_[chain]) + ", beyond its period of " +
                                  milliseconds(period(chain))) +
           "; make it best_effort" +
           (!shared        ? ", lengthen its period or lower mtu_bytes"
            : in_fragments ? ", make its messages shorter or raise mtu_bytes"
                           : " or lengthen its period");
  }

  // Why a chain has no bound, as a text for the user.
  std::string reason(size_t chain) const {
    if (!control_counted_)
      return "the questions whether reliable messages have arrived keep each other waiting; send fewer reliable "
             "messages";
    if (std::string text = overload(chain); !text.empty()) return text;
    if (loads_[chain].losses_ns >= period(chain)) {
      const bool measured = (asks_client(chain) && system_.protocol.client.delay_ns < 0) ||
                            (asks_agent(chain) && system_.protocol.agent.delay_ns < 0);
      return "the repair of lost frames may take " + milliseconds(loads_[chain].losses_ns) +
             ", longer than its period" +
             (is_rtps() && loads_[chain].down.messages > 0 ? "; lower heartbeat_ms, with a profile of the nodes" : "") +
             (measured ? "; a measured HEARTBEAT delay may be 2 s: give 'heartbeat_delay_ms'" : "");
    }
    if (const auto text = full_window(chain)) return *text;
    if (loads_[chain].settling_ns >= kLongestWaitNs)
      return "more urgent chains keep board and line so busy that nothing bounds when its messages are acknowledged: " +
             load(chain);
    if (several_[chain]) return why_[chain];
    std::string limit = "its period of " + milliseconds(period(chain)) + ", within which it must be over";
    if (loads_[chain].spare_ns > 0)
      limit += " " + milliseconds(loads_[chain].spare_ns) + " before the end, to be acknowledged";
    if (const std::string why = alone(chain); !why.empty()) limit += ": " + why;
    if (reached_[chain] > 0) return "it may take " + milliseconds(reached_[chain]) + " or more, beyond " + limit;
    return "its bound and those of others raise each other, and did not settle below " + limit;
  }

  LinkParts parts_beyond(size_t chain) const {
    LinkParts stages, window;
    stages.client_interference_ns.assign(size(), 0);
    stages.line_interference_ns.assign(size(), 0);
    const time_ns staged_ns = by_stages_ns(chain, Until::ended, &stages);
    if (!several_[chain]) return stages;
    return staged_ns <= by_window_ns(chain, Until::ended, &window) ? stages : window;
  }

  void explain(size_t chain, LinkResult &result) const {
    const time_ns response_ns = end_ns(chain);
    const bool several = several_[chain] || in_period_ns(chain, Until::ended) > response_ns;
    Demand made = several ? Demand() : demand(chain, response_ns - jitter(chain), Until::ended);
    LinkParts &parts = made.parts;
    if (several) parts = parts_beyond(chain);
    parts.jitter_ns = jitter(chain);
    result.response_ns = response_ns;
    result.met = response_ns <= system_.chains[chain].deadline_ns;
    result.hidden = !several && made.cases.size() > 1 && made.cases[0].value >= response_ns - jitter(chain);
    if (result.hidden) {
      parts.line_ns = parts.host_ns = parts.line_blocking_ns = parts.control_ns = parts.window_ns = 0;
      parts.host_wait_ns = parts.losses_ns = 0;
      parts.line_interference_ns.assign(size(), 0);
      parts.client_blocking_ns = client_blocking(chain);
    }
    // The parts may add up to more than the bound. The surplus is subtracted from the interference, the least urgent
    // chain first.
    time_ns surplus_ns = parts.total_ns() - response_ns;
    if (surplus_ns < 0)
      parts.client_blocking_ns -= std::exchange(surplus_ns, 0);  // blocked by both visits: the last
                                                                 // cases of demand()
    std::vector<size_t> order(size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(), [this](size_t left, size_t right) {
      return system_.chains[left].priority < system_.chains[right].priority;
    });
    // First, the time from the beginning of the window to the release of the instance under analysis is subtracted from
    // the part of the chain's other instances.
    const time_ns earlier_ns = std::clamp<time_ns>(surplus_ns, 0, parts.own_ns);
    parts.own_ns -= earlier_ns;
    surplus_ns -= earlier_ns;
    for (std::vector<time_ns> *shares : {&parts.client_interference_ns, &parts.line_interference_ns}) {
      for (const size_t other : order) {
        const time_ns taken_ns = std::clamp<time_ns>(surplus_ns, 0, (*shares)[other]);
        (*shares)[other] -= taken_ns;
        surplus_ns -= taken_ns;
      }
    }
    for (time_ns *part : {&parts.control_ns, &parts.window_ns, &parts.host_wait_ns, &parts.line_blocking_ns,
                          &parts.interrupts_ns, &parts.line_ns, &parts.host_ns, &parts.execution_ns}) {
      const time_ns taken_ns = std::clamp<time_ns>(surplus_ns, 0, *part);
      *part -= taken_ns;
      surplus_ns -= taken_ns;
    }
    result.parts = parts;
  }

  std::vector<Assumption> assumptions() const {
    const Line &line = system_.line;
    const Client &client = system_.client;
    const std::vector<LinkChain> &chains = system_.chains;
    std::vector<Assumption> list;
    list.push_back({"execution",
                    "execution times are worst cases; to make a message takes " + milliseconds(client.submit_ns) +
                        " more at most, to choose a callback " + milliseconds(client.dispatch_ns),
                    {{"submit_ns", client.submit_ns}, {"dispatch_ns", client.dispatch_ns}}});
    const bool shortest = std::any_of(chains.begin(), chains.end(), [](const LinkChain &chain) {
      return std::any_of(chain.callbacks.begin(), chain.callbacks.end(),
                         [](const LinkCallback &callback) { return callback.least_ns > 0; });
    });
    if (shortest) list.push_back({"shortest_execution", "no execution is shorter than its least_ms", {}});
    list.push_back(
        {"digestion",
         "a board takes at most " + milliseconds(client.process_ns) + " to process a received frame (process_ms)",
         {{"process_ns", client.process_ns}}});
    Assumption releases{"release_jitter", "a timer starts its chain when it expires", {}};
    std::string late;
    for (const LinkChain &chain : chains) {
      releases.values.emplace_back(chain.name, chain.jitter_ns);
      if (chain.jitter_ns > 0) late += (late.empty() ? "" : ", ") + chain.name + " " + milliseconds(chain.jitter_ns);
    }
    if (!late.empty()) releases.text += ", or later by at most: " + late;
    list.push_back(releases);
    list.push_back({"agent",
                    "from the line to the node: " + milliseconds(line.agent_ns) +
                        " at most (agent_ms: serial adapter, agent, DDS)",
                    {{"agent_ns", line.agent_ns}}});
    list.push_back({"return",
                    "from the node to the line: " + milliseconds(line.return_ns) +
                        " at most (return_ms: DDS, agent, serial adapter)",
                    {{"return_ns", line.return_ns}}});
    Assumption escapes{"escapes", "every byte of a frame may be escaped", {}};
    if (line.escaped_bytes) {
      escapes.text = *line.escaped_bytes == 0
                         ? "no byte of a frame is escaped"
                         : "at most " + std::to_string(*line.escaped_bytes) + " bytes of a frame are escaped";
      escapes.values = {{"escaped_bytes", *line.escaped_bytes}};
    }
    list.push_back(std::move(escapes));
    list.push_back({"sizes",
                    line.exact_sizes ? "messages are exactly as long as they say" : "no message is longer than it says",
                    {{"exact", line.exact_sizes ? 1 : 0}}});
    const int64_t losses = system_.protocol.losses;
    list.push_back(
        {"losses",
         losses == 0 ? "no frame is lost" : "at most " + std::to_string(losses) + " frames of an instance are lost",
         {{"losses", losses}}});
    const auto questions = [&](const char *id, const char *whose, const Questions &asked) {
      const time_ns first_ns = asked.delay_ns < 0 ? asked.floor_ns : asked.delay_ns;
      list.push_back({id,
                      std::string("the HEARTBEAT for ") + whose + " unacknowledged message comes " +
                          milliseconds(first_ns) + " later at the earliest, then every " +
                          milliseconds(asked.period_ns) + (asked.delay_ns < 0 ? " or sooner" : ""),
                      {{"delay_ns", first_ns}, {"period_ns", asked.period_ns}}});
    };
    if (std::any_of(chains.begin(), chains.end(), [](const LinkChain &chain) { return chain.uplink_reliable; }))
      questions("client_questions", "a board's", system_.protocol.client);
    if (std::any_of(chains.begin(), chains.end(), [](const LinkChain &chain) { return chain.downlink_reliable; }))
      questions("agent_questions", "the agent's", system_.protocol.agent);
    list.push_back({"pools", "pools never run full", {{"window", system_.protocol.window}}});
    list.push_back({"line_alone", "no other traffic is on the line", {}});
    if (alive_ && system_.protocol.silence_ns > 0) {
      // The first answer must arrive within the silence, so the first release must come earlier by the time until that
      // answer.
      const time_ns silence_ns = system_.protocol.silence_ns;
      size_t soonest = size();
      for (size_t chain = 0; chain < size(); chain++) {
        if (chains[chain].sporadic || loads_[chain].down.messages == 0) continue;
        if (add(period(chain), responses_[chain]) > silence_ns) continue;
        if (soonest == size() || responses_[chain] < responses_[soonest]) soonest = chain;
      }
      const time_ns answer_ns = soonest < size() ? responses_[soonest] : 0;
      const std::string of = soonest < size() ? "the first release of " + chains[soonest].name : "its first release";
      list.push_back({"heard_at_start",
                      of + " comes within " + milliseconds(silence_ns - answer_ns) +
                          " of a session's start: a board that receives nothing for " + milliseconds(silence_ns) +
                          " asks whether the agent is there",
                      {{"silence_ns", silence_ns - answer_ns}}});
    }
    time_ns event_ns = 0;
    for (const Load &load : loads_)
      event_ns = std::max(event_ns, load.down.messages > 0 ? load.new_data_ns / load.down.messages : 0);
    if (event_ns > 0)
      list.push_back({"timers_run",
                      "a sample that came during a publish waits for the next timer of the board, " +
                          milliseconds(event_ns) + " at most: all of its timers run from the start",
                      {{"event_ns", event_ns}}});
    list.push_back({"over_in_time", "a chain is over before its next release", {}});
    return list;
  }

  const LinkSystem &system_;
  const int most_passes_;
  std::vector<size_t> order_;       // most urgent first
  std::vector<size_t> here_;        // chains that may delay others on the client and the line: those that are not
                                    // foreign; with batch, all chains
  std::vector<time_ns> responses_;  // counted from the nominal expiry; kNeverNs: no bound
  std::vector<size_t> roots_;       // for a chain without a bound: the chain that was late first
  std::vector<time_ns> reached_;    // for a chain that was late by itself: lower limit of its response
  std::vector<LinkParts> reached_parts_;
  std::vector<std::string> why_;  // for a chain with several_: why it has no bound
  std::vector<bool> several_;     // by chain: an instance may still be under way when the next one is released
  bool any_several_ = false;
  bool settled_ = true;           // false if bounds raised each other without end
  std::vector<time_ns> remotes_;  // from the end of the first visit until the arrival of the answer
  std::vector<Load> loads_;
  std::vector<Load> asked_;  // loads in an idle system, where nothing waits
  std::vector<std::vector<Stage>> stages_;
  std::vector<std::vector<ByGroup>> on_host_;  // by chain and host executor
  mutable ByGroup seen_on_host_;
  // Memory for demand() and the functions that it calls. It is reused because they are evaluated for thousands of
  // windows.
  mutable Demand demand_;
  mutable LinkParts by_level_;
  mutable ByGroup groups_;
  mutable std::vector<time_ns> units_;
  mutable std::vector<std::pair<time_ns, int64_t>> pieces_;
  std::vector<bool> shares_;  // by chain: true if it has elements that may be in other chains, too
  bool has_trees_ = false;    // true if shares_ is true for any chain
  mutable std::vector<std::optional<bool>> too_much_;
  std::vector<bool> is_plain_;                       // by chain: it shares no elements and is not foreign
  std::vector<int64_t> roots_of_;                    // by chain: `shared` of its first callback
  std::vector<std::vector<size_t>> lies_on_;         // by chain: the paths that contain its part of the host load
  std::vector<bool> goes_on_;                        // by chain: it is a prefix of another one
  std::vector<Cut> outside_;                         // by chain: the part that is counted with other chains
  std::map<std::pair<size_t, size_t>, Cut> inside_;  // by two chains of one timer: the part of the first that a window
                                                     // of the second must not count
  std::map<std::pair<size_t, size_t>, Cut> within_;  // inside_, plus elements that begin only after the second chain
                                                     // has ended
  std::vector<std::vector<size_t>> as_late_;  // by chain: other paths that lead to its elements, through another input
                                              // of a join
  time_ns answer_ns_ = 0, gap_ns_ = 0, load_span_ns_ = 0;
  std::vector<time_ns> up_waits_, down_waits_;  // by chain: wait of one instance if the line keeps up; else kNeverNs
  bool hosts_keep_up_ = false, alive_ = false;
  bool is_shorter_ = false;  // true in bound_shorter: demand() subtracts shorter_ns_ from the chain's delays and uses
                             // only the generic demand
  time_ns shorter_ns_ = 0;
  bool windows_suffice_ = true;   // no message ever waits because a window is full
  bool control_counted_ = false;  // false: the numbers of HEARTBEATs have not settled, so no chain has a bound
};

}  // namespace

void LinkParts::include(const LinkParts &more) {
  for (time_ns LinkParts::*part :
       {&LinkParts::execution_ns, &LinkParts::line_ns, &LinkParts::host_ns, &LinkParts::client_blocking_ns,
        &LinkParts::lock_blocking_ns, &LinkParts::line_blocking_ns, &LinkParts::control_ns, &LinkParts::window_ns,
        &LinkParts::interrupts_ns, &LinkParts::host_wait_ns, &LinkParts::own_ns, &LinkParts::lateness_ns})
    this->*part = add(this->*part, more.*part);
  for (size_t chain = 0; chain < more.client_interference_ns.size(); chain++) {
    client_interference_ns[chain] = add(client_interference_ns[chain], more.client_interference_ns[chain]);
    line_interference_ns[chain] = add(line_interference_ns[chain], more.line_interference_ns[chain]);
  }
}

time_ns LinkParts::total_ns() const {
  time_ns sum = own_ns + jitter_ns + execution_ns + line_ns + host_ns + client_blocking_ns + new_data_ns +
                lock_blocking_ns + line_blocking_ns + control_ns + window_ns + interrupts_ns + host_wait_ns + losses_ns;
  for (const time_ns part : client_interference_ns) sum += part;
  for (const time_ns part : line_interference_ns) sum += part;
  return sum;
}

LinkResults bound_link(const LinkSystem &system, int most_passes) { return LinkModel(system, most_passes).run(); }

}  // namespace tide::analysis
