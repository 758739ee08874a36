// SPDX-License-Identifier: Apache-2.0
// Many XRCE clients over UDP in one process, each with its own socket, session, node, publisher and subscription. They
// speak plain XRCE without a client library, which costs little. The program executes commands from its input and
// prints lines of JSON:
//
// (at the start) all clients open a session and create their entities at the same time; prints "ready"
// publish RATE SECONDS clients in turn publish RATE messages a second; RATE 0: as many as are acknowledged;
//                          prints "published"
// flood SECONDS each client creates and deletes a writer as fast as it can; prints "flooded" leave the clients delete
// their sessions; prints "left"
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <deque>
#include <iostream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tide/xrce.h"

namespace {

using Octets = std::vector<uint8_t>;
using Time = int64_t;

constexpr Time kMillisecond = 1'000'000, kSecond = 1'000'000'000;
constexpr Time kRepeat = kSecond, kRepeatMessages = 100 * kMillisecond, kPatience = 120 * kSecond;
constexpr uint8_t kSession = 0x81, kReliable = 0x80, kBestEffort = 0x01;
constexpr size_t kWindow = 16;
constexpr uint16_t kParticipant = 0x0011, kUp = 0x0012, kDown = 0x0022, kPublisher = 0x0013, kSubscriber = 0x0014,
                   kWriter = 0x0015, kReader = 0x0016;

struct Arguments {
  uint16_t port = 0;
  size_t clients = 1, bytes = 16;
  uint32_t first_key = 0x0F000001;
  std::string name = "robot", type = "std_msgs::msg::dds_::String_";
  bool shared = false, reliable = false, hear = false, number = false;
};

Time now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

template <typename Put> Octets body_of(Put put) {
  Octets bytes(2048);
  tide_cdr_t cdr;
  tide_cdr_writer(&cdr, bytes.data(), bytes.size());
  put(&cdr);
  bytes.resize(cdr.position);
  return bytes;
}

Octets message_of(uint8_t session, uint8_t stream, uint16_t sequence, uint8_t id, const Octets &body) {
  Octets bytes(TIDE_XRCE_HEADER_MAXIMUM_BYTES);
  const tide_xrce_header_t header = {session, stream, sequence, 0};
  bytes.resize(tide_xrce_put_header(bytes.data(), &header));
  std::array<uint8_t, TIDE_XRCE_SUBMESSAGE_HEADER_BYTES> head;
  tide_xrce_put_submessage_header(head.data(), id, 1, static_cast<uint16_t>(body.size()));
  bytes.insert(bytes.end(), head.begin(), head.end());
  bytes.insert(bytes.end(), body.begin(), body.end());
  return bytes;
}

Octets create(uint16_t request, uint16_t object, uint16_t parent, const std::string &xml) {
  tide_xrce_create_t body{};
  body.request = {request, object};
  body.object.kind = TIDE_XRCE_OBJECT_KIND(object);
  body.object.representation = TIDE_XRCE_BY_XML;
  body.object.parent = parent;
  body.object.text = {xml.data(), xml.size()};
  return body_of([&](tide_cdr_t *cdr) { tide_xrce_put_create(cdr, &body); });
}

class Client {
 public:
  Client(const Arguments &arguments, size_t number)
      : arguments_(arguments), number_(number), socket_(socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0)) {
    sockaddr_in agent{};
    agent.sin_family = AF_INET;
    agent.sin_port = htons(arguments.port);
    agent.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (socket_ < 0 || connect(socket_, reinterpret_cast<sockaddr *>(&agent), sizeof agent) != 0)
      throw std::runtime_error("no socket for a client; raise the limit of open files (ulimit -n)");
    const std::string own = arguments.name + "_" + std::to_string(number);
    const std::string space = arguments.shared ? "fleet" : own;
    const auto topic = [&](const char *what) { return "rt/" + space + "/" + what; };
    const auto endpoint = [](const std::string &kind, const std::string &name) {
      return "<dds><" + kind + "><topic><name>" + name + "</name></topic></" + kind + "></dds>";
    };
    const auto described = [&](const std::string &name) {
      return "<dds><topic><name>" + name + "</name><dataType>" + arguments.type + "</dataType></topic></dds>";
    };
    steps_ = {
        {kParticipant, 0, "<dds><participant><rtps><name>/" + own + "/base</name></rtps></participant></dds>"},
        {kUp, kParticipant, described(topic("up"))},
        {kPublisher, kParticipant, ""},
        {kWriter, kPublisher, endpoint("data_writer", topic("up"))},
        {kDown, kParticipant, described(topic("down"))},
        {kSubscriber, kParticipant, ""},
        {kReader, kSubscriber, endpoint("data_reader", topic(arguments.hear ? "up" : "down"))},
    };
    flood_ = endpoint("data_writer", topic("up"));
  }
  ~Client() { close(socket_); }
  Client(const Client &) = delete;
  Client &operator=(const Client &) = delete;

  int descriptor() const { return socket_; }

  void open() {
    started_ns = asked_ns_ = now_ns();
    tide_xrce_create_client_t body{};
    body.version_major = 1;
    body.vendor = 0x010F;
    body.key = arguments_.first_key + static_cast<uint32_t>(number_);
    body.session = kSession;
    body.mtu = 508;
    const Octets bytes = body_of([&](tide_cdr_t *cdr) { tide_xrce_put_create_client(cdr, &body); });
    ask(message_of(TIDE_XRCE_SESSION_NONE_WITHOUT_KEY, 0, 0, TIDE_XRCE_CREATE_CLIENT, bytes));
  }

  void leave() {
    state = kLeaving;
    const Octets bytes = body_of([&](tide_cdr_t *cdr) {
      tide_xrce_put_request(cdr, {++request_, TIDE_XRCE_OBJECT_CLIENT});
    });
    ask(message_of(kSession, 0, 0, TIDE_XRCE_DELETE, bytes));
  }

  bool may_publish() const { return unacknowledged_.size() < kWindow; }
  void publish() {
    const Octets body = body_of([&](tide_cdr_t *cdr) {
      tide_xrce_put_request(cdr, {0, kWriter});
      const std::string text(arguments_.bytes, 'x');
      if (arguments_.number) {
        tide_cdr_put_u32(cdr, static_cast<uint32_t>(arguments_.bytes));
      } else {
        tide_cdr_put_string(cdr, text.data(), text.size());
      }
    });
    if (arguments_.reliable) {
      submit(TIDE_XRCE_WRITE_DATA, body);
    } else {
      send(message_of(kSession, kBestEffort, best_effort_++, TIDE_XRCE_WRITE_DATA, body));
    }
  }

  void flood() {
    const auto object = static_cast<uint16_t>(0x0105 + ((flooded_ / 2) % 64) * 16);
    const bool creates = flooded_++ % 2 == 0;
    const Octets body = creates ? create(1, object, kPublisher, flood_) : body_of([&](tide_cdr_t *cdr) {
      tide_xrce_put_request(cdr, {1, object});
    });
    send(message_of(kSession, kBestEffort, best_effort_++, creates ? TIDE_XRCE_CREATE : TIDE_XRCE_DELETE, body));
  }
  void drain() {
    std::array<uint8_t, 2048> bytes;
    while (recv(socket_, bytes.data(), bytes.size(), 0) > 0) {}
  }

  void receive() {
    std::array<uint8_t, 4096> bytes;
    for (ssize_t length; (length = recv(socket_, bytes.data(), bytes.size(), 0)) > 0;)
      take(bytes.data(), static_cast<size_t>(length));
  }

  // Repeats a request and reliable messages that have had no answer for a while.
  void tend(Time now) {
    if (!question_.empty() && now - question_ns_ > kRepeat) {
      send(question_);
      question_ns_ = now;
      repeated++;
    }
    if (unacknowledged_.empty() || now - sent_ns_ < repeat_ns_) return;
    for (const auto &[sequence, message] : unacknowledged_) send(message);
    sent_ns_ = now;
    repeat_ns_ = std::min(2 * repeat_ns_, 2 * kSecond);  // repetitions of a thousand clients are a load themselves
    repeated++;
  }

  enum State { kOpening, kCreating, kReady, kLeaving, kGone, kFailed };
  State state = kOpening;
  int refusal = 0;
  Time started_ns = 0, ready_ns = 0;
  std::vector<Time> answers_ns;  // of each creation, the time until its STATUS
  uint64_t sent = 0, acknowledged = 0, received = 0, repeated = 0;

 private:
  struct Step {
    uint16_t object, parent;
    std::string xml;
  };

  void send(const Octets &message) const {
    [[maybe_unused]] const ssize_t done = ::send(socket_, message.data(), message.size(), 0);
  }
  void ask(Octets message) {
    question_ = std::move(message);
    question_ns_ = now_ns();
    send(question_);
  }
  void submit(uint8_t id, const Octets &body) {
    unacknowledged_.emplace_back(reliable_, message_of(kSession, kReliable, reliable_, id, body));
    reliable_++;
    sent_ns_ = now_ns();
    send(unacknowledged_.back().second);
  }

  void step() {
    if (step_ == steps_.size()) {
      tide_xrce_read_data_t body{};
      body.request = {++request_, kReader};
      body.stream = kBestEffort;
      body.has_delivery_control = true;
      body.max_samples = 0xFFFF;
      submit(TIDE_XRCE_READ_DATA, body_of([&](tide_cdr_t *cdr) { tide_xrce_put_read_data(cdr, &body); }));
      state = kReady;
      ready_ns = now_ns();
      return;
    }
    const Step &next = steps_[step_++];
    asked_ns_ = now_ns();
    submit(TIDE_XRCE_CREATE, create(++request_, next.object, next.parent, next.xml));
  }

  void answered(uint8_t status) {
    if (status != 0) {
      state = kFailed;
      refusal = status;
      question_.clear();
      return;
    }
    if (state == kCreating) answers_ns.push_back(now_ns() - asked_ns_);
    if (state == kOpening) state = kCreating;
    if (state == kCreating) step();
  }

  void take(const uint8_t *bytes, size_t length) {
    tide_xrce_header_t header;
    const int header_bytes = tide_xrce_get_header(bytes, length, &header);
    if (header_bytes < 0) return;
    const bool reliable = header.stream >= 0x80;
    if (reliable) {
      const bool is_next = header.sequence == expected_;
      if (is_next) expected_++;
      acknowledge(header.stream);
      if (!is_next) return;
    }
    auto position = static_cast<size_t>(header_bytes);
    tide_xrce_submessage_t submessage;
    while (tide_xrce_next_submessage(bytes, length, &position, &submessage) == 1) take(submessage);
  }

  void take(const tide_xrce_submessage_t &submessage) {
    tide_cdr_t cdr;
    tide_cdr_reader(&cdr, submessage.body, submessage.body_bytes, false);
    switch (submessage.id) {
      case TIDE_XRCE_STATUS_AGENT: {
        tide_xrce_status_agent_t body;
        tide_xrce_get_status_agent(&cdr, &body);
        if (state != kOpening) break;
        question_.clear();
        answered(body.status);
        break;
      }
      case TIDE_XRCE_STATUS: {
        tide_xrce_status_body_t body;
        tide_xrce_get_status(&cdr, &body);
        if (body.related.request != request_) break;
        if (state == kCreating) answered(body.status);
        if (state == kLeaving) {
          state = kGone;
          question_.clear();
        }
        break;
      }
      case TIDE_XRCE_ACKNACK: {
        tide_xrce_acknack_t body;
        tide_xrce_get_acknack(&cdr, &body);
        while (!unacknowledged_.empty() &&
               static_cast<int16_t>(unacknowledged_.front().first - body.first_unacknowledged) < 0) {
          unacknowledged_.pop_front();
          repeat_ns_ = kRepeatMessages;
          acknowledged++;
        }
        for (const auto &[sequence, message] : unacknowledged_) {
          const auto place = static_cast<uint16_t>(sequence - body.first_unacknowledged);
          if (place < 16 && (body.missing >> place & 1u) != 0) send(message);
        }
        break;
      }
      case TIDE_XRCE_HEARTBEAT: {
        tide_xrce_heartbeat_t body;
        tide_xrce_get_heartbeat(&cdr, &body);
        acknowledge(body.stream);
        break;
      }
      case TIDE_XRCE_DATA: received++; break;
      default: break;
    }
  }

  void acknowledge(uint8_t stream) {
    const tide_xrce_acknack_t body = {expected_, 0, stream};
    send(message_of(kSession, 0, 0, TIDE_XRCE_ACKNACK,
                    body_of([&](tide_cdr_t *cdr) { tide_xrce_put_acknack(cdr, &body); })));
  }

  const Arguments &arguments_;
  size_t number_;
  int socket_;
  std::vector<Step> steps_;
  std::string flood_;
  size_t step_ = 0;
  uint16_t request_ = 10, reliable_ = 0, best_effort_ = 0, expected_ = 0;
  Octets question_;
  std::deque<std::pair<uint16_t, Octets>> unacknowledged_;
  Time repeat_ns_ = kRepeatMessages;
  Time question_ns_ = 0, sent_ns_ = 0, asked_ns_ = 0;
  uint64_t flooded_ = 0;
};

std::string spread_ms(std::vector<Time> times) {
  if (times.empty()) times = {0};
  std::sort(times.begin(), times.end());
  std::array<char, 80> text;
  std::snprintf(text.data(), text.size(), "{\"p50\": %.2f, \"max\": %.2f}",
                static_cast<double>(times[times.size() / 2]) / 1e6, static_cast<double>(times.back()) / 1e6);
  return text.data();
}

class Fleet {
 public:
  explicit Fleet(const Arguments &arguments) : arguments_(arguments), epoll_(epoll_create1(0)) {
    for (size_t number = 0; number < arguments.clients; number++) {
      clients_.push_back(std::make_unique<Client>(arguments_, number));
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.ptr = clients_.back().get();
      epoll_ctl(epoll_, EPOLL_CTL_ADD, clients_.back()->descriptor(), &event);
    }
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = nullptr;
    ended_ = epoll_ctl(epoll_, EPOLL_CTL_ADD, STDIN_FILENO, &event) != 0;  // true for a file, which cannot be polled
    fcntl(STDIN_FILENO, F_SETFL, fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK);
  }
  ~Fleet() { close(epoll_); }
  Fleet(const Fleet &) = delete;
  Fleet &operator=(const Fleet &) = delete;

  bool open() {
    const Time start = now_ns();
    for (const auto &client : clients_) client->open();
    await(Client::kReady);
    std::vector<Time> whole, each;
    size_t failed = 0;
    uint64_t repeated = 0;
    int refusal = 0;
    for (const auto &client : clients_) {
      repeated += client->repeated;
      if (client->state != Client::kReady) {
        failed++;
        refusal = client->refusal;
        continue;
      }
      whole.push_back(client->ready_ns - client->started_ns);
      each.insert(each.end(), client->answers_ns.begin(), client->answers_ns.end());
    }
    std::printf(
        "{\"event\": \"ready\", \"clients\": %zu, \"failed\": %zu, \"refusal\": %d, \"total_ms\": %.1f, "
        "\"client_ms\": %s, \"entity_ms\": %s, \"repeated\": %" PRIu64 "}\n",
        clients_.size(), failed, refusal, static_cast<double>(now_ns() - start) / 1e6, spread_ms(whole).c_str(),
        spread_ms(each).c_str(), repeated);
    std::fflush(stdout);
    return failed == 0;
  }

  void serve() {
    std::string line;
    while (next_line(line)) {
      std::istringstream words(line);
      std::string what;
      words >> what;
      double rate = 0, seconds = 0;
      if (what == "publish" && words >> rate >> seconds) publish(rate, seconds);
      if (what == "flood" && words >> seconds) flood(seconds);
      if (what == "leave") leave();
    }
  }

 private:
  // Reads a line of the input. Returns false if the input has ended.
  bool next_line(std::string &line) {
    for (;;) {
      const size_t end = input_.find('\n');
      if (end != std::string::npos) {
        line = input_.substr(0, end);
        input_.erase(0, end + 1);
        return true;
      }
      if (ended_) return false;
      turn(now_ns() + kSecond / 10);
    }
  }

  void turn(Time until) {
    std::array<epoll_event, 64> events;
    const Time rest = std::max<Time>(until - now_ns(), 0);
    const timespec timeout = {rest / kSecond, rest % kSecond};
    const int count = epoll_pwait2(epoll_, events.data(), static_cast<int>(events.size()), &timeout, nullptr);
    for (int place = 0; place < count; place++) {
      void *whose = events[static_cast<size_t>(place)].data.ptr;
      if (whose != nullptr) {
        static_cast<Client *>(whose)->receive();
      } else {
        read_input();
      }
    }
    const Time now = now_ns();
    if (now < tend_ns_) return;
    tend_ns_ = now + 50 * kMillisecond;
    for (const auto &client : clients_) client->tend(now);
  }

  void read_input() {
    std::array<char, 256> text;
    const ssize_t length = read(STDIN_FILENO, text.data(), text.size());
    if (length > 0) input_.append(text.data(), static_cast<size_t>(length));
    if (length == 0) {
      ended_ = true;
      epoll_ctl(epoll_, EPOLL_CTL_DEL, STDIN_FILENO, nullptr);
    }
  }

  void await(Client::State state) {
    const Time until = now_ns() + kPatience;
    const auto is_there = [state](const auto &client) {
      return client->state == state || client->state == Client::kFailed;
    };
    while (now_ns() < until && !std::all_of(clients_.begin(), clients_.end(), is_there)) turn(now_ns() + kSecond / 10);
  }

  void publish(double rate, double seconds) {
    const Time start = now_ns(), end = start + static_cast<Time>(seconds * 1e9);
    const uint64_t acknowledged = total(&Client::acknowledged), received = total(&Client::received);
    uint64_t count = 0, held = 0;
    size_t next = 0;
    for (Time now = start; now < end; now = now_ns()) {
      const auto due =
          rate == 0 ? UINT64_MAX : static_cast<uint64_t>(static_cast<double>(now - start) / 1e9 * rate) + 1;
      for (size_t tries = clients_.size(); count + held < due && tries != 0; next = (next + 1) % clients_.size()) {
        Client &client = *clients_[next];
        if (client.may_publish()) {
          client.publish();
          count++;
        } else {
          tries--;
          if (rate != 0) held++;  // the window was full at the time of this message
        }
      }
      const Time due_ns = rate == 0 ? end : start + static_cast<Time>(static_cast<double>(count + held) / rate * 1e9);
      turn(std::min(due_ns, end));
    }
    for (const Time last = now_ns() + kSecond / 2; now_ns() < last;) turn(last);
    std::printf("{\"event\": \"published\", \"sent\": %" PRIu64 ", \"held\": %" PRIu64 ", \"acknowledged\": %" PRIu64
                ", \"received\": %" PRIu64 "}\n",
                count, held, total(&Client::acknowledged) - acknowledged, total(&Client::received) - received);
    std::fflush(stdout);
  }

  void flood(double seconds) {
    const Time end = now_ns() + static_cast<Time>(seconds * 1e9);
    uint64_t count = 0;
    while (now_ns() < end) {
      for (const auto &client : clients_) {
        for (size_t burst = 0; burst < 64; burst++) client->flood();
        client->drain();
        count += 64;
      }
    }
    std::printf("{\"event\": \"flooded\", \"datagrams\": %" PRIu64 "}\n", count);
    std::fflush(stdout);
  }

  void leave() {
    const Time start = now_ns();
    for (const auto &client : clients_) client->leave();
    await(Client::kGone);
    std::printf("{\"event\": \"left\", \"total_ms\": %.1f}\n", static_cast<double>(now_ns() - start) / 1e6);
    std::fflush(stdout);
  }

  uint64_t total(uint64_t Client::*count) const {
    uint64_t sum = 0;
    for (const auto &client : clients_) sum += (*client).*count;
    return sum;
  }

  const Arguments &arguments_;
  int epoll_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::string input_;
  bool ended_ = false;
  Time tend_ns_ = 0;
};

}  // namespace

int main(int argc, char **argv) {
  CLI::App app{"Many XRCE clients in one process.", "fleet_clients"};
  Arguments arguments;
  app.add_option("--udp", arguments.port, "Port of the agent on this machine")->required();
  app.add_option("--clients", arguments.clients, "Number of clients")->capture_default_str();
  app.add_option("--bytes", arguments.bytes, "Bytes of text in each message")->capture_default_str();
  app.add_option("--key", arguments.first_key, "Key of the first client; the others follow")->capture_default_str();
  app.add_option("--name", arguments.name, "Name of the robots; number 7 is the node /robot_7/base")
      ->capture_default_str();
  app.add_option("--type", arguments.type, "Type of all topics, as DDS names it")->capture_default_str();
  app.add_flag("--shared", arguments.shared, "Use the topics /fleet/up and /fleet/down for all clients");
  app.add_flag("--hear", arguments.hear, "Subscribe to the topics that they publish on");
  app.add_flag("--number", arguments.number, "Send the number of --bytes instead of a text");
  app.add_flag("--reliable", arguments.reliable, "Publish on the reliable stream");
  CLI11_PARSE(app, argc, argv);
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  try {
    Fleet fleet(arguments);
    const bool all = fleet.open();
    fleet.serve();
    return all ? 0 : 1;
  } catch (const std::exception &error) {
    std::cerr << "fleet_clients: " << error.what() << '\n';
    return 1;
  }
}
