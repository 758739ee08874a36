// SPDX-License-Identifier: Apache-2.0
// TCP links over real sockets, with a daemon that the test can inspect.
#include <thread>

#include "eventually.h"
#include "link_ends.h"

namespace link_tcp_test {

class TcpLinkFamily : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(All, TcpLinkFamily, ::testing::Values(AF_INET, AF_INET6));

TEST_P(TcpLinkFamily, KeepsMessagesApartHoweverTheStreamIsCut) {
  Server server(SOCK_STREAM, 0, GetParam());
  FakeDaemon client;
  ASSERT_EQ(client.open(internet(TIDE_LINK_TCP, server.port, GetParam())), TIDE_OK);
  const Descriptor peer(accept(server.socket.number, nullptr, nullptr));
  const auto messages = random_messages(5, 200, 512);
  Bytes stream;
  for (const auto &message : messages) {
    stream.push_back(static_cast<uint8_t>(message.size()));
    stream.push_back(static_cast<uint8_t>(message.size() >> 8));
    stream.insert(stream.end(), message.begin(), message.end());
    client.submit(message);
  }
  EXPECT_EQ(read_some(peer, stream.size()), stream);
  Bytes oversize{0x00, 0x10};  // 4,096 bytes, which are dropped
  oversize.resize(2 + 4096);
  stream.insert(stream.begin(), oversize.begin(), oversize.end());
  std::mt19937_64 random(6);
  for (size_t place = 0; place < stream.size();) {
    const size_t count = std::min<size_t>(stream.size() - place, 1 + random() % 700);
    ASSERT_EQ(write(peer.number, stream.data() + place, count), static_cast<ssize_t>(count));
    place += count;
    if (random() % 8 == 0) tide::test::let_others_run(20);
  }
  ASSERT_TRUE(client.eventually([&](const FakeDaemon &fake) { return fake.messages.size() == messages.size(); }));
  EXPECT_EQ(client.messages, messages);
  EXPECT_EQ(client.counters().messages_oversize, 1u);
}

TEST(TcpLink, ConnectsAgain) {
  auto server = std::make_unique<Server>(SOCK_STREAM);
  const uint16_t port = server->port;
  FakeDaemon client;
  ASSERT_EQ(client.open(internet(TIDE_LINK_TCP, port)), TIDE_OK);
  for (int round = 0; round < 3; round++) {
    Descriptor peer(accept(server->socket.number, nullptr, nullptr));
    client.submit(Bytes(3, 7));
    EXPECT_EQ(read_some(peer, 5), (Bytes{3, 0, 7, 7, 7}));
    ASSERT_TRUE(client.eventually([&](const FakeDaemon &fake) { return fake.waiting() == 0; }));
    server.reset();
    peer.close();
    ASSERT_TRUE(client.eventually([](const FakeDaemon &fake) { return !fake.attached; }));
    server = std::make_unique<Server>(SOCK_STREAM, port);
    ASSERT_TRUE(client.eventually([](const FakeDaemon &fake) { return fake.attached; }));
  }
  EXPECT_EQ(client.counters().cuts, 3u);
}

}  // namespace link_tcp_test
