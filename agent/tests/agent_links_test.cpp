// SPDX-License-Identifier: Apache-2.0
// The agent's links over real sockets and terminals: messages are sent in the order that the core chooses, and links
// buffer a bounded amount. Also idle connections, unfinished messages and missing devices. One thread runs the agent
// and its clients; on the serial line, time is virtual.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "client_messages.h"
#include "io/network.h"
#include "io/serial.h"

namespace tide::agent::test::agent_links_test {

// An agent with one link, driven by the test.
struct Served {
  explicit Served(Options options = {}) : agent(middleware, std::move(options)) {}
  void pump(Time now) {
    for (bool more = true; more;) {
      deadline = agent.poll(now);
      agent.take_ready(ready);
      for (const Endpoint endpoint : ready) link->write(endpoint, now);
      more = link->flush(now);
    }
  }
  // Runs the agent until no event has occurred for `while_ns` of wall-clock time.
  void run(Time now, Time while_ns = 0) {
    for (bool more = true; more;) {
      pump(now);
      poller.wait(monotonic_ns() + while_ns, events);
      for (const Poller::Event &event : events) link->event(event, now);
      link->turn(now);
      more = !events.empty() || link->deadline() <= now;
    }
    pump(now);
  }
  FakeSource &source(const std::string &topic) {
    for (FakeSource *source : middleware.sources) {
      if (source->topic.name == topic) return *source;
    }
    throw std::runtime_error("nobody reads " + topic);
  }

  FakeMiddleware middleware;
  Agent agent;
  Poller poller;
  std::unique_ptr<Link> link;
  Time deadline = 0;
  std::vector<Endpoint> ready;
  std::vector<Poller::Event> events;
};

// Creates a participant, a subscriber, and a reader for each topic.
void create_readers(TestClient &client, const std::vector<std::pair<uint16_t, std::string>> &readers) {
  ASSERT_EQ(client.create_xml(0x0011, 0, TestClient::kParticipant), 0);
  ASSERT_EQ(client.create_xml(0x0014, 0x0011, ""), 0);
  for (const auto &[object, name] : readers) {
    ASSERT_EQ(client.create_xml(object, 0x0014,
                                "<dds><data_reader><topic><name>" + name +
                                    "</name><dataType>T</dataType><historyQos><kind>KEEP_ALL</kind></historyQos>"
                                    "</topic></data_reader></dds>"),
              0);
  }
}

tide_socket_address_t loopback(uint16_t port, int family = AF_INET) {
  tide_socket_address_t address{};
  address.any.sa_family = static_cast<sa_family_t>(family);
  if (family == AF_INET6) {
    address.v6.sin6_addr = IN6ADDR_LOOPBACK_INIT;
    address.v6.sin6_port = htons(port);
  } else {
    address.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.v4.sin_port = htons(port);
  }
  return address;
}

class Socket {
 public:
  Socket(int type, uint16_t port, int receive_bytes = 0, int family = AF_INET)
      : number(::socket(family, type | SOCK_CLOEXEC, 0)) {
    if (receive_bytes != 0) setsockopt(number, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    const tide_socket_address_t to = loopback(port, family);
    EXPECT_EQ(connect(number, &to.any, tide_socket_address_bytes(&to)), 0);
  }
  ~Socket() { close(number); }
  Socket(const Socket &) = delete;
  Socket &operator=(const Socket &) = delete;
  const int number;
};

// ---- UDP ----

struct UdpClient {
  UdpClient(Served &agent, uint32_t key, int family = AF_INET)
      : served(agent),
        socket(SOCK_DGRAM, static_cast<UdpLink &>(*agent.link).port(), 0, family),
        client(driver, 1, key) {
    driver.forward = [this](Endpoint, const Octets &bytes) {
      ASSERT_EQ(send(socket.number, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
      served.run(0);
      receive();
    };
  }
  void receive() {
    Octets bytes(65536);
    for (ssize_t count = 0; (count = recv(socket.number, bytes.data(), bytes.size(), MSG_DONTWAIT)) > 0;) {
      driver.sent.push_back({0, 1, Octets(bytes.begin(), bytes.begin() + count)});
    }
  }
  Served &served;
  Socket socket;
  Driver driver;
  TestClient client;
};

TEST(UdpLink, ServesManyClientsWithManyFramesEach) {
  Served served;
  served.link = std::make_unique<UdpLink>(0, served.agent, served.poller, "127.0.0.1", 0);
  std::vector<std::unique_ptr<UdpClient>> clients;
  for (uint32_t number = 0; number < 5; number++) {
    clients.push_back(std::make_unique<UdpClient>(served, 0x100 + number));
    ASSERT_EQ(clients.back()->client.connect(), 0);
    create_readers(clients.back()->client, {{0x0016, "t" + std::to_string(number)}});
    clients.back()->client.read(0x0016, 0x01);
  }
  for (uint8_t number = 0; number < 200; number++) {
    for (size_t client = 0; client < clients.size(); client++) {
      served.source("t" + std::to_string(client)).offer(sample_of({number, 0, 0, 0}));
    }
  }
  served.run(0);
  for (const auto &client : clients) {
    client->receive();
    const std::vector<Octets> got = client->client.all(TIDE_XRCE_DATA);
    ASSERT_EQ(got.size(), 200u);
    for (size_t number = 0; number < got.size(); number++) EXPECT_EQ(got[number][4], number);
  }
  EXPECT_EQ(served.link->counters().send_dropped, 0u);
  EXPECT_EQ(served.agent.counters().samples_to_client, 1000u);
}

TEST(UdpLink, TakesBurstsApart) {
  Served served;
  served.link = std::make_unique<UdpLink>(0, served.agent, served.poller, "127.0.0.1", 0);
  UdpClient robot(served, 0x77);
  ASSERT_EQ(robot.client.connect(), 0);
  robot.client.create_all();
  std::vector<uint8_t> storage(TIDE_DATAGRAM_BYTES_MAXIMUM + TIDE_DATAGRAM_BATCH_BYTES);
  tide_datagram_output_t output;
  tide_datagram_output_init(&output, robot.socket.number, storage.data(), storage.size());
  robot.driver.forward = [&](Endpoint, const Octets &bytes) {
    std::copy(bytes.begin(), bytes.end(), tide_datagram_output_place(&output, bytes.size()));
    tide_datagram_output_add(&output, bytes.size(), nullptr);
    if (tide_datagram_output_is_full(&output)) tide_datagram_output_flush(&output);
  };
  for (uint8_t number = 0; number < 100; number++) robot.client.write(0x0015, {number, 1, 2, 3}, 0x01);
  ASSERT_TRUE(tide_datagram_output_flush(&output));
  served.run(0);
  ASSERT_EQ(served.middleware.written.size(), 100u);
  for (uint8_t number = 0; number < 100; number++) EXPECT_EQ(served.middleware.written[number].payload[0], number);
}

// ---- TCP ----

struct TcpClient {
  explicit TcpClient(Served &agent)
      : served(agent), socket(SOCK_STREAM, static_cast<TcpLink &>(*agent.link).port(), 65536), client(driver, 1, 0x42) {
    driver.forward = [this](Endpoint, const Octets &bytes) {
      Octets framed = {static_cast<uint8_t>(bytes.size()), static_cast<uint8_t>(bytes.size() >> 8)};
      framed.insert(framed.end(), bytes.begin(), bytes.end());
      ASSERT_EQ(send(socket.number, framed.data(), framed.size(), 0), static_cast<ssize_t>(framed.size()));
      served.run(0, kSecond / 100);
      receive();
    };
  }
  bool receive() {
    std::array<uint8_t, 4096> bytes;
    bool any = false;
    for (ssize_t count = 0; (count = recv(socket.number, bytes.data(), bytes.size(), MSG_DONTWAIT)) > 0;) {
      in.insert(in.end(), bytes.begin(), bytes.begin() + count);
      any = true;
    }
    while (in.size() >= 2 && in.size() >= 2u + (in[0] | in[1] << 8)) {
      const auto length = static_cast<std::ptrdiff_t>(in[0] | in[1] << 8);
      driver.sent.push_back({0, 1, Octets(in.begin() + 2, in.begin() + 2 + length)});
      in.erase(in.begin(), in.begin() + 2 + length);
    }
    return any;
  }
  Served &served;
  Socket socket;
  Driver driver;
  TestClient client;
  Octets in;
};

TEST(TcpLink, APeerThatReadsLateGetsEverythingAndTheUrgentEarly) {
  constexpr size_t kBacklog = 2000, kBytes = 400;
  Served served;
  served.link = std::make_unique<TcpLink>(0, served.agent, served.poller, "127.0.0.1", 0, TcpLimits{});
  TcpClient robot(served);
  ASSERT_EQ(robot.client.connect(), 0);
  create_readers(robot.client, {{0x0016, "slow"}, {0x0026, "urgent"}});
  robot.client.read(0x0016, TIDE_STREAM_BEST_EFFORT(1));
  robot.client.read(0x0026, TIDE_STREAM_BEST_EFFORT(5));
  for (size_t number = 0; number < kBacklog; number++) served.source("slow").offer(sample_of(Octets(kBytes, 1)));
  served.run(0, kSecond / 100);  // until the kernel accepts no more octets
  served.source("urgent").offer(sample_of({9}));
  for (int idle = 0; idle < 2000 && robot.client.all(TIDE_XRCE_DATA).size() < kBacklog + 1; idle++) {
    if (robot.receive()) idle = 0;
    served.run(0, kSecond / 1000);
  }
  const std::vector<Octets> got = robot.client.all(TIDE_XRCE_DATA);
  ASSERT_EQ(got.size(), kBacklog + 1);
  const auto place = std::find_if(got.begin(), got.end(), [](const Octets &body) { return body.size() == 5; });
  EXPECT_LT(place - got.begin(), 800) << "of " << kBacklog;  // these were in the kernel's buffers on both sides and in
                                                             // the agent's
  EXPECT_EQ(served.link->counters().frames_out, served.agent.counters().messages_out);
}

// ---- serial ----

struct Terminal {
  Terminal() : master(posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)) {
    EXPECT_EQ(grantpt(master), 0);
    EXPECT_EQ(unlockpt(master), 0);
    path = ptsname(master);
  }
  ~Terminal() { close(master); }
  Terminal(const Terminal &) = delete;
  Terminal &operator=(const Terminal &) = delete;
  const int master;
  std::string path;
};

// A client at the other end of the line. It stores each received message with the virtual time of its arrival.
class SerialClient {
 public:
  SerialClient() : client(driver, 1, 0x5E) {
    served.link = std::make_unique<SerialLink>(0, served.agent, served.poller, terminal_.path, 115200);
    now = monotonic_ns();
    tide_framing_reader_init(&reader_, 1);
    tide_framing_reader_set_buffer(&reader_, message_.data(), message_.size());
    driver.forward = [this](Endpoint, const Octets &bytes) {
      Octets frame(TIDE_FRAMING_WORST_BYTES(bytes.size()));
      const int length = tide_framing_encode(frame.data(), frame.size(), 1, 0, bytes.data(), bytes.size(), nullptr, 0);
      const uint64_t &bytes_in = served.link->counters().bytes_in;
      const uint64_t expected = bytes_in + static_cast<uint64_t>(length);
      const Time limit = monotonic_ns() + 10 * kSecond;
      ASSERT_EQ(write(terminal_.master, frame.data(), static_cast<size_t>(length)), length);
      // A thread of the kernel passes the bytes on and then wakes the poller.
      while (bytes_in < expected && monotonic_ns() < limit) served.run(now, kSecond / 1000);
      ASSERT_EQ(bytes_in, expected) << "the terminal keeps what it was given";
      const size_t before = driver.sent.size();
      while (waits_for_answers && driver.sent.size() == before && monotonic_ns() < limit) {
        served.run(now, kSecond / 1000);
        run_until(now + kSecond / 10);
      }
    };
  }
  void run_until(Time end) {
    for (;;) {
      served.run(now);
      receive();
      const Time next = std::min(served.deadline, served.link->deadline());
      if (next > end) break;
      now = std::max(now, next);
    }
    now = end;
    served.run(now);
    receive();
  }
  // Repeated, because a terminal passes bytes on with a short delay.
  void receive() {
    std::array<uint8_t, 4096> bytes;
    pollfd wait = {terminal_.master, POLLIN, 0};
    while (frames_ < served.link->counters().frames_out && poll(&wait, 1, 10'000) == 1) {
      const ssize_t count = read(terminal_.master, bytes.data(), bytes.size());
      if (count < 0 && errno == EAGAIN) continue;
      if (count <= 0) return;
      for (size_t used = 0; used < static_cast<size_t>(count);) {
        int complete = 0;
        used += tide_framing_reader_input(&reader_, bytes.data() + used, static_cast<size_t>(count) - used, &complete);
        if (complete == 0) continue;
        frames_++;
        driver.sent.push_back({now, 1, Octets(reader_.buffer, reader_.buffer + reader_.length)});
        tide_framing_reader_set_buffer(&reader_, message_.data(), message_.size());
      }
    }
  }

 private:
  Terminal terminal_;
  tide_framing_reader_t reader_{};
  std::array<uint8_t, 2048> message_{};
  uint64_t frames_ = 0;

 public:
  bool waits_for_answers = true;
  Served served;
  Driver driver;
  TestClient client;
  Time now = 0;
};

// The line is never idle, because samples of two less urgent readers wait, one of them in fragments. Samples of the
// urgent reader arrive at random times. After such an arrival, frames for the other readers must not start, so the
// sample waits at most for the frame on the wire.
void saturate(unsigned seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  constexpr uint8_t kBestEffort = TIDE_STREAM_BEST_EFFORT(1), kReliable = TIDE_STREAM_RELIABLE(2);
  constexpr uint8_t kUrgent = TIDE_STREAM_RELIABLE(7);
  constexpr Time kOctet = 10 * kSecond / 115200 + 1;
  SerialClient robot;
  ASSERT_EQ(robot.client.connect(252), 0);
  create_readers(robot.client, {{0x0016, "low"}, {0x0026, "long"}, {0x0036, "urgent"}});
  robot.client.read(0x0016, kBestEffort);
  robot.client.read(0x0026, kReliable);
  robot.client.read(0x0036, kUrgent);
  robot.waits_for_answers = false;
  std::mt19937 random(seed);
  Served &served = robot.served;
  const auto fill = [&](const char *topic, size_t bytes) {
    while (served.source(topic).waiting.size() < 20) served.source(topic).offer(sample_of(Octets(bytes, 1)));
  };
  for (int round = 0; round < 60; round++) {
    fill("low", 100);
    fill("long", 1500);
    robot.run_until(robot.now + static_cast<Time>(random() % 60'000'000));
    if (random() % 2 == 0) robot.client.acknowledge(kReliable);
    robot.client.acknowledge(kUrgent);
    robot.run_until(robot.now + static_cast<Time>(random() % 30'000'000));
    robot.driver.sent.clear();
    ASSERT_NE(served.link->deadline(), TIDE_FOREVER) << "the line is idle in round " << round;
    served.source("urgent").offer(sample_of(Octets(20, 3)));
    const Time offered = robot.now;
    robot.run_until(offered + 40'000'000);
    ASSERT_FALSE(robot.driver.sent.empty());
    const Sent &first = robot.driver.sent.front();
    ASSERT_EQ(first.bytes[1], kUrgent) << "round " << round;
    ASSERT_LE(first.t_ns - offered, 270 * kOctet) << "round " << round;  // 252 octets, some of which are escaped
  }
}

TEST(Saturated, LineLetsTheUrgentReaderPassAfterOneQuantum) {
  for (const unsigned seed : {1u, 2u, 3u}) saturate(seed);
}

// ---- hostile or missing peers; time is virtual ----

class TcpServer : public Served {
 public:
  explicit TcpServer(const TcpLimits &limits) : Served(options()) {
    link = std::make_unique<TcpLink>(0, agent, poller, "127.0.0.1", 0, limits);
  }
  void run() { Served::run(now, 5'000'000); }
  uint16_t port() const { return static_cast<TcpLink &>(*link).port(); }

  std::vector<std::string> lines;
  Time now = kSecond;

 private:
  Options options() {
    Options options = telling(lines);
    options.limits.clients = 8;
    options.host_of = [this](Endpoint endpoint) { return link->host_of(endpoint); };
    return options;
  }
};

// A peer of the agent, on 127.0.0.N.
class Connection {
 public:
  explicit Connection(TcpServer &server, uint8_t host = 1)
      : server_(server), socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(0x7F000000u + host);
    EXPECT_EQ(bind(socket_, reinterpret_cast<const sockaddr *>(&address), sizeof address), 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(server.port());
    EXPECT_EQ(connect(socket_, reinterpret_cast<const sockaddr *>(&address), sizeof address), 0);
    server_.run();
  }
  ~Connection() { close(socket_); }
  Connection(const Connection &) = delete;
  Connection &operator=(const Connection &) = delete;

  void say(const Octets &bytes) {
    EXPECT_EQ(send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
    server_.run();
  }
  bool is_open() {
    pollfd wait = {socket_, POLLIN, 0};
    std::array<uint8_t, 256> bytes;
    if (poll(&wait, 1, 0) == 1) count_ = recv(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    return count_ > 0;
  }
  // Requests a session for this key; returns true if the agent admits the client.
  bool opens_session(uint32_t key) {
    Octets message = bytes_from_hex("18008000000000011000585243450100010f0a0b0c0d8100fc01");
    for (unsigned octet = 0; octet < 4; octet++) message[18 + octet] = static_cast<uint8_t>(key >> (24 - 8 * octet));
    say(message);
    return is_open() && server_.agent.has_client(endpoint());
  }
  Endpoint endpoint() const { return number; }
  Endpoint number = 0;

 private:
  TcpServer &server_;
  int socket_;
  ssize_t count_ = 1;
};

TEST(HostileTcp, IdleConnectionsAndHalfMessagesAreClosed) {
  TcpServer server({.connections = 8, .per_address = 8});
  Connection idle(server), length(server), half(server), client(server);
  length.say({0x20});
  half.say({0x20, 0x00, 0x80, 0x00});
  client.number = 4;
  EXPECT_TRUE(client.opens_session(0x0A0B0C0D));
  server.now += 5 * kSecond - 1;
  half.say({0x00});  // single octets now and then must not extend the time limit
  server.run();
  EXPECT_TRUE(idle.is_open() && length.is_open() && half.is_open());
  EXPECT_LE(server.link->deadline(), server.now + 1);
  server.now += 1;
  server.run();
  EXPECT_FALSE(idle.is_open() || length.is_open() || half.is_open());
  EXPECT_TRUE(server.agent.has_client(4));
  client.say({0x20});  // nor may a client with a session take longer for a message
  server.now += 5 * kSecond;
  server.run();
  EXPECT_EQ(server.link->counters().connections_timed_out, 4u);
  EXPECT_EQ(server.lines.size(), 2u);
}

TEST(HostileTcp, IdleConnectionsDoNotKeepAClientOut) {
  TcpServer server({.connections = 8, .per_address = 8});
  std::vector<std::unique_ptr<Connection>> idle;
  for (int number = 0; number < 50; number++) idle.push_back(std::make_unique<Connection>(server));
  Connection client(server);
  client.number = 51;
  EXPECT_TRUE(client.opens_session(0x0A0B0C0D));
  EXPECT_EQ(std::count_if(idle.begin(), idle.end(), [](const auto &connection) { return connection->is_open(); }), 7);
  EXPECT_EQ(server.link->counters().connections_timed_out, 43u);
  EXPECT_EQ(server.lines.size(), 1u) << server.lines.back();
}

// A new client replaces a half-open session, because there are only a few more connections than clients.
TEST(HostileTcp, HalfOpenSessionsDoNotKeepAClientOut) {
  TcpServer server({.connections = 10, .per_address = 10});
  std::vector<std::unique_ptr<Connection>> half_open;
  for (uint32_t number = 1; number <= 30; number++) {
    half_open.push_back(std::make_unique<Connection>(server));
    half_open.back()->number = number;
    half_open.back()->opens_session(number);
  }
  Connection client(server);
  client.number = 31;
  EXPECT_TRUE(client.opens_session(0x0A0B0C0D));
  EXPECT_EQ(server.agent.client_count(), 8u);
}

TEST(HostileTcp, OneAddressTakesItsShareOnly) {
  TcpServer server({.connections = 8, .per_address = 3});
  std::vector<std::unique_ptr<Connection>> greedy;
  for (uint32_t number = 1; number <= 20; number++) {
    greedy.push_back(std::make_unique<Connection>(server));
    greedy.back()->number = number;
    EXPECT_EQ(greedy.back()->is_open() && greedy.back()->opens_session(number), number <= 3);
  }
  EXPECT_EQ(std::count_if(greedy.begin(), greedy.end(), [](const auto &connection) { return connection->is_open(); }),
            3);
  EXPECT_EQ(server.link->counters().connections_refused, 17u);
  EXPECT_EQ(server.link->counters().send_dropped, 0u);
  ASSERT_EQ(server.lines.size(), 1u);
  EXPECT_NE(server.lines[0].find("tcp 127.0.0.1: connection refused"), std::string::npos) << server.lines[0];
  Connection other(server, 2);
  EXPECT_TRUE(other.is_open());
}

TEST(HostileTcp, ARestartedClientIsInAtOnceAndAThiefIsNot) {
  TcpServer server({});
  auto before = std::make_unique<Connection>(server);
  before->number = 1;
  ASSERT_TRUE(before->opens_session(0x0A0B0C0D));
  Connection thief(server, 2), after(server);
  thief.number = 2;
  after.number = 3;
  EXPECT_FALSE(thief.opens_session(0x0A0B0C0D));
  before.reset();
  server.run();
  EXPECT_FALSE(thief.opens_session(0x0A0B0C0D));
  EXPECT_TRUE(after.opens_session(0x0A0B0C0D));
}

// ---- IPv6 ----

TEST(Ipv6, UdpServesAndNamesItsClients) {
  std::vector<std::string> lines;
  Link *link = nullptr;
  Options options = telling(lines, true);
  options.host_of = [&link](Endpoint endpoint) { return link->host_of(endpoint); };
  options.name_of = [&link](Endpoint endpoint) { return link->name_of(endpoint); };
  Served served(options);
  served.link = std::make_unique<UdpLink>(3, served.agent, served.poller, "::1", 0);
  link = served.link.get();
  const std::string port = std::to_string(static_cast<UdpLink &>(*link).port());
  EXPECT_EQ(link->describe(), "udp [::1]:" + port);
  std::vector<std::unique_ptr<UdpClient>> clients;
  for (const uint32_t key : {0x100u, 0x101u}) {
    clients.push_back(std::make_unique<UdpClient>(served, key, AF_INET6));
    ASSERT_EQ(clients.back()->client.connect(), 0);
    create_readers(clients.back()->client, {{0x0016, "t" + std::to_string(key)}});
    clients.back()->client.read(0x0016, 0x01);
  }
  for (uint8_t number = 0; number < 100; number++) {
    for (const std::string topic : {"t256", "t257"}) served.source(topic).offer(sample_of({number, 0, 0, 0}));
  }
  served.run(0);
  for (const auto &client : clients) {
    client->receive();
    EXPECT_EQ(client->client.all(TIDE_XRCE_DATA).size(), 100u);
  }
  ASSERT_FALSE(lines.empty());
  EXPECT_NE(lines.front().find("udp [::1]:"), std::string::npos) << lines.front();
  EXPECT_EQ(served.agent.hosts().size(), 1u) << "one machine";
  const Host host = *served.agent.hosts().begin();
  const Endpoint endpoint = (host & ~kLinkMask) | (host & kLinkMask) << 16;
  EXPECT_EQ(text_of(link->peer(endpoint).address), "::1");
}

TEST(Ipv6, AllAddressesAreThoseOfIpv4Too) {
  Options options;
  Link *link = nullptr;
  options.host_of = [&link](Endpoint endpoint) { return link->host_of(endpoint); };
  Served served(options);
  served.link = std::make_unique<UdpLink>(0, served.agent, served.poller, "::", 0);
  link = served.link.get();
  std::vector<std::unique_ptr<UdpClient>> clients;
  for (const int family : {AF_INET, AF_INET6}) {
    clients.push_back(std::make_unique<UdpClient>(served, 0x100 + static_cast<uint32_t>(family), family));
    EXPECT_EQ(clients.back()->client.connect(), 0);
  }
  std::set<std::string> names;
  for (const Host host : served.agent.hosts()) {
    names.insert(text_of(link->peer((host & ~kLinkMask) | (host & kLinkMask) << 16).address));
  }
  EXPECT_EQ(names, (std::set<std::string>{"127.0.0.1", "::1"})) << "as --allow names them";
  Served tcp;
  tcp.link = std::make_unique<TcpLink>(0, tcp.agent, tcp.poller, "::", 0, TcpLimits{.per_address = 1});
  const uint16_t port = static_cast<TcpLink &>(*tcp.link).port();
  const Socket ipv4(SOCK_STREAM, port, 0, AF_INET), ipv6(SOCK_STREAM, port, 0, AF_INET6);
  tcp.run(0);
  tcp.run(0);
  EXPECT_EQ(tcp.link->counters().connections_timed_out, 0u) << "two addresses";
}

TEST(Ipv6, TcpServesAndCountsByAddress) {
  Served served;
  served.link = std::make_unique<TcpLink>(0, served.agent, served.poller, "::1", 0, TcpLimits{.per_address = 1});
  const uint16_t port = static_cast<TcpLink &>(*served.link).port();
  EXPECT_EQ(served.link->describe(), "tcp [::1]:" + std::to_string(port));
  const Socket first(SOCK_STREAM, port, 0, AF_INET6);
  served.run(0);
  const Octets ask = {0x10, 0x00, 0x80, 0x00, 0x00, 0x00, 0x02, 0x01, 0x08,
                      0x00, 0x00, 0x0A, 0xFF, 0xFD, 0x02, 0x00, 0x00, 0x00};  // GET_INFO
  ASSERT_EQ(send(first.number, ask.data(), ask.size(), 0), static_cast<ssize_t>(ask.size()));
  served.run(0);
  Octets answer(64);
  EXPECT_GT(recv(first.number, answer.data(), answer.size(), MSG_DONTWAIT), 0);
  const Socket second(SOCK_STREAM, port, 0, AF_INET6);
  served.run(0);
  EXPECT_EQ(served.link->counters().connections_timed_out, 1u) << "the second one replaces it";
}

TEST(Ipv6, ANumberIsNotUsedAgain) {
  FakeMiddleware middleware;
  const Agent agent(middleware, {});
  Origins origins(agent, 0);
  const auto origin = [](uint32_t number) {
    Origin result{parse_address("fd00::").value(), number % 3};
    std::memcpy(result.address.data() + 8, &number, sizeof number);
    return result;
  };
  std::set<uint64_t> numbers;
  for (uint32_t number = 0; number < 20000; number++) {
    const uint64_t own = origins.number_of(origin(number));
    EXPECT_TRUE(numbers.insert(own).second);
    EXPECT_EQ(origins.number_of(origin(number)), own);
    ASSERT_EQ(origins.find(own), origin(number));
    EXPECT_EQ(own >> 40, 0u) << "a port has room beside it";
  }
  size_t kept = 0;
  for (const uint64_t number : numbers) kept += origins.find(number).has_value() ? 1 : 0;
  EXPECT_LE(kept, 8192u) << "forged addresses take no more memory";
  EXPECT_EQ(origins.number_of({mapped(0x7F000001), 0}), 0x7F000001u);
}

// ---- discovery ----

// If the multicast group has a separate route, the kernel does not report the address at which the request was
// received.
TEST(Discovery, NobodyIsToldToConnectTo0000) {
  sockaddr_in from{};
  from.sin_family = AF_INET;
  from.sin_port = htons(4711);
  from.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const in_addr unknown{}, known{htonl(0xC0A80107)};
  ASSERT_TRUE(address_told(unknown, from).has_value());
  EXPECT_EQ(address_told(unknown, from)->s_addr, htonl(INADDR_LOOPBACK));
  EXPECT_EQ(address_told(known, from)->s_addr, known.s_addr);
}

// ---- serial devices ----

TEST(MissingDevice, IsWaitedForAndTheUserIsTold) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("tide_agent_device_" + std::to_string(getpid()));
  std::vector<std::string> lines;
  Options options = telling(lines);
  FakeMiddleware middleware;
  Agent agent(middleware, options);
  Poller poller;
  SerialLink link(0, agent, poller, path, 115200);
  for (int round = 0; round < 5; round++) link.flush(monotonic_ns() + round * kSecond);
  EXPECT_EQ(lines, (std::vector<std::string>{"waiting for " + path.string() + ": No such file or directory"}));
  const int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_EQ(grantpt(master), 0);
  ASSERT_EQ(unlockpt(master), 0);
  std::filesystem::create_symlink(ptsname(master), path);
  link.flush(monotonic_ns() + 6 * kSecond);
  std::filesystem::remove(path);
  close(master);
  EXPECT_TRUE(link.is_open());
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1], "opened " + path.string());
}

// One line for each time that the line becomes garbled. Few bytes are no reason for one, nor is a damaged frame.
TEST(GarbledLine, TheUserIsToldOfTheBaudRate) {
  std::vector<std::string> lines;
  FakeMiddleware middleware;
  Served served(telling(lines));
  Terminal terminal;
  served.link = std::make_unique<SerialLink>(0, served.agent, served.poller, terminal.path, 115200);
  Time now = kSecond;
  const auto deliver = [&](const Octets &bytes) {
    const uint64_t expected = served.link->counters().bytes_in + bytes.size();
    ASSERT_EQ(write(terminal.master, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    while (served.link->counters().bytes_in < expected) served.run(now, kSecond / 1000);
    now += kSecond;
  };
  const auto frame = [](bool is_damaged) {
    const Octets message(20, 7);
    Octets bytes(TIDE_FRAMING_WORST_BYTES(message.size()));
    const int length =
        tide_framing_encode(bytes.data(), bytes.size(), 1, 0, message.data(), message.size(), nullptr, 0);
    bytes.resize(static_cast<size_t>(length));
    if (is_damaged) bytes[10] ^= 1;
    return bytes;
  };
  for (int second = 0; second < 5; second++) deliver(Octets(10, 0x55));
  for (int second = 0; second < 10; second++) deliver(frame(second % 3 == 0));
  EXPECT_EQ(lines, std::vector<std::string>{});
  for (int second = 0; second < 20; second++) deliver(Octets(30, 0x55));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0], terminal.path +
                          ": 120 bytes arrived in 3 s, but no valid frame: is 115200 the baud rate of the " +
                          "board? The board may also print text on this line");
  for (int second = 0; second < 10; second++) deliver(frame(false));
  EXPECT_EQ(lines.size(), 1u);
  for (int second = 0; second < 10; second++) deliver(frame(second % 4 != 0));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_NE(lines[1].find("few valid frames"), std::string::npos) << lines[1];
}

TEST(MissingDevice, WhatIsNoTerminalIsRefused) {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("tide_agent_file_" + std::to_string(getpid()));
  std::ofstream(file) << "text";
  FakeMiddleware middleware;
  Agent agent(middleware, {});
  Poller poller;
  for (const std::string &path : {file.string(), std::string("/dev/null"), std::string("/tmp")}) {
    EXPECT_THROW(SerialLink(0, agent, poller, path, 115200), std::runtime_error) << path;
  }
  std::filesystem::remove(file);
  EXPECT_THROW(SerialLink(0, agent, poller, "/dev/null", 115201), std::runtime_error);
}

}  // namespace tide::agent::test::agent_links_test
