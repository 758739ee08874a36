// SPDX-License-Identifier: Apache-2.0
#include "virtual_time.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>

#include "agent_server.h"

namespace tide::compat::test {
namespace {

constexpr size_t kCores = 24;  // one of them is for interrupts of the links, the others for threads
constexpr Time kLimit = 3600 * sim::kSecond;

World *world = nullptr;

// Draws an upper limit of 10^1 to 10^decades times 10 microseconds, then a duration from 1 microsecond up to this
// limit.
Time draw_duration(sim::Random &random, int64_t decades) {
  Time most = 10'000;
  for (int64_t times = random.between(1, decades); times > 0; times--) most *= 10;
  return random.between(1'000, most);
}

class Worlds : public ::testing::EmptyTestEventListener {
 public:
  static int install() {
    ::testing::UnitTest::GetInstance()->listeners().Append(new Worlds);
    return 0;
  }

 private:
  void OnTestIterationStart(const ::testing::UnitTest &, int iteration) override {
    const char *text = std::getenv("TIDE_SEED");
    seed_ = (text == nullptr ? 1 : std::strtoull(text, nullptr, 10)) + static_cast<uint64_t>(iteration);
  }
  void OnTestStart(const ::testing::TestInfo &test) override {
    uint64_t seed = seed_ * 0x9E3779B97F4A7C15u;
    for (const char letter : name_of(test)) seed = (seed ^ static_cast<uint8_t>(letter)) * 0x100000001B3u;
    world_ = std::make_unique<World>(seed);
  }
  void OnTestEnd(const ::testing::TestInfo &test) override {
    world_.reset();
    if (!test.result()->Failed()) return;
    std::cout << "replay: TIDE_SEED=" << seed_ << " with --gtest_filter=" << name_of(test) << std::endl;
  }
  static std::string name_of(const ::testing::TestInfo &test) {
    return std::string(test.test_suite_name()) + "." + test.name();
  }

  uint64_t seed_ = 1;
  std::unique_ptr<World> world_;
};

const int installed = Worlds::install();

}  // namespace

Connection::Connection(sim::Machine &machine, tide_session_t &session, Time latency, uint64_t seed)
    : random(seed),
      latency_most(latency),
      up(machine.engine(), World::current().up_baud, 0),
      link(machine, session, up, {}, sim::Link::Kind::kDatagrams) {
  up.deliver = [this, &machine](const Octets &datagram) {
    last_up = std::max(last_up, machine.engine().now() + random.between(1, latency_most));
    machine.engine().at(last_up, [this, datagram] {
      if (server != nullptr) server->receive(endpoint, datagram);
    });
  };
}

void Connection::deliver(Octets datagram) {
  sim::Engine &engine = World::current().engine;
  last_down = std::max(last_down, engine.now() + random.between(1, latency_most));
  engine.at(last_down, [this, datagram = std::move(datagram)] {
    if (server != nullptr && !server->is_muted()) link.receive(datagram);
  });
}

World::World(uint64_t seed)
    : random(seed),
      machine(engine, kCores),
      latency_most_(draw_duration(random, 2)),
      port_(machine,
            [this](tide_session_t &session, const tide_link_address_t &address) { return open(session, address); }) {
  world = this;
  port_.limit = kLimit;
  port_.hesitate(random.next(), static_cast<uint64_t>(random.between(1, 30)), draw_duration(random, 1));
}

World &World::current() { return *world; }

uint16_t World::listen(AgentServer *server, uint16_t port) {
  if (port == 0) {
    servers_.push_back(server);
    return static_cast<uint16_t>(kFirstPort + servers_.size() - 1);
  }
  const size_t place = size_t{port} - kFirstPort;
  servers_[place] = server;
  for (const auto &connection : connections_) {
    if (connection->place != place) continue;
    connection->server = server;
    connection->endpoint = server->accept(*connection);
  }
  return port;
}

void World::close(AgentServer *server) {
  std::replace(servers_.begin(), servers_.end(), server, static_cast<AgentServer *>(nullptr));
  for (const auto &connection : connections_) {
    if (connection->server == server) connection->server = nullptr;
  }
}

// Opens a link to a server of this world. There are no serial lines and no other hosts.
sim::Link *World::open(tide_session_t &session, const tide_link_address_t &address) {
  if (address.kind != TIDE_LINK_UDP || std::string(address.host) != "127.0.0.1") return nullptr;
  connections_.push_back(std::make_unique<Connection>(machine, session, latency_most_, random.next()));
  Connection &connection = *connections_.back();
  connection.place = size_t{address.port} - kFirstPort;
  if (connection.place < servers_.size()) connection.server = servers_[connection.place];
  if (connection.server != nullptr) connection.endpoint = connection.server->accept(connection);
  return &connection.link;
}

}  // namespace tide::compat::test
