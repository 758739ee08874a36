// SPDX-License-Identifier: Apache-2.0
// Links whose peers mean harm or are not there: connections that nobody uses, messages that nobody finishes,
// devices that are missing. Time is virtual.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "client_messages.h"
#include "io/network.h"
#include "io/serial.h"

namespace tide::agent::test {
namespace agent_hostile_links_test {

class TcpServer {
 public:
  explicit TcpServer(const TcpLimits &limits) {
    Options options;
    options.limits.clients = 8;
    options.warn = [this](const std::string &line) { lines.push_back(line); };
    options.host_of = [this](Endpoint endpoint) { return link->host_of(endpoint); };
    agent = std::make_unique<Agent>(middleware, options);
    link = std::make_unique<TcpLink>(0, *agent, poller, "127.0.0.1", 0, limits);
  }
  // Until nothing more happens.
  void run() {
    do {
      agent->poll(now);
      agent->take_ready(ready);
      for (const Endpoint endpoint : ready) link->write(endpoint, now);
      link->flush(now);
      poller.wait(monotonic_ns() + 5'000'000, events);
      for (const Poller::Event &event : events) link->event(event, now);
    } while (!events.empty());
  }

  FakeMiddleware middleware;
  std::vector<std::string> lines;
  std::unique_ptr<Agent> agent;
  Poller poller;
  std::unique_ptr<TcpLink> link;
  Time now = kSecond;
  std::vector<Endpoint> ready;
  std::vector<Poller::Event> events;
};

// A peer of it, on 127.0.0.N.
class Connection {
 public:
  explicit Connection(TcpServer &server, uint8_t host = 1)
      : server_(server), socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(0x7F000000u + host);
    EXPECT_EQ(bind(socket_, reinterpret_cast<const sockaddr *>(&address), sizeof address), 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(server.link->port());
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
  // Whether the agent lets a client with this key in.
  bool opens_session(uint32_t key) {
    Octets message = from_hex("18008000000000011000585243450100010f0a0b0c0d8100fc01");
    for (unsigned octet = 0; octet < 4; octet++) message[18 + octet] = static_cast<uint8_t>(key >> (24 - 8 * octet));
    say(message);
    return is_open() && server_.agent->has_client(endpoint());
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
  half.say({0x00});  // an octet now and then does not help
  server.run();
  EXPECT_TRUE(idle.is_open() && length.is_open() && half.is_open());
  EXPECT_LE(server.link->deadline(), server.now + 1);
  server.now += 1;
  server.run();
  EXPECT_FALSE(idle.is_open() || length.is_open() || half.is_open());
  EXPECT_TRUE(server.agent->has_client(4));
  client.say({0x20});  // a client with a session does not get longer for a message
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

// Sessions that nobody uses give way to one that comes, as its connection is one of the few more than clients.
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
  EXPECT_EQ(server.agent->client_count(), 8u);
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

// ---- discovery ----

// A route of its own for the group leaves the kernel without an address that the question came to.
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

}  // namespace agent_hostile_links_test
}  // namespace tide::agent::test
