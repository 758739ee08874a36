// SPDX-License-Identifier: Apache-2.0
// Batches of datagrams over real sockets: sent datagrams arrive in order and one by one, regardless of the method.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>
#include <utility>
#include <vector>

#include "link_datagrams.h"

namespace link_datagrams_test {

using Bytes = std::vector<uint8_t>;

struct Socket {
  explicit Socket(int opened) : number(opened) { EXPECT_GE(number, 0); }
  ~Socket() { close(number); }
  Socket(const Socket &) = delete;
  Socket &operator=(const Socket &) = delete;
  int number;
};

uint16_t port_of(const tide_socket_address_t &address) {
  return ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port);
}

struct UdpSocket : Socket {
  explicit UdpSocket(int family = AF_INET) : Socket(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    address.any.sa_family = static_cast<sa_family_t>(family);
    if (family == AF_INET6) {
      address.v6.sin6_addr = IN6ADDR_LOOPBACK_INIT;
    } else {
      address.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    }
    socklen_t length = sizeof address;
    EXPECT_EQ(bind(number, &address.any, tide_socket_address_bytes(&address)), 0);
    EXPECT_EQ(getsockname(number, &address.any, &length), 0);
    const int bytes = 4 << 20;
    setsockopt(number, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  }
  // Receives each datagram by one plain call, as a receiver without support for trains (segmented datagrams) does.
  Bytes take() const {
    Bytes bytes(TIDE_DATAGRAM_BYTES_MAXIMUM);
    const ssize_t count = recv(number, bytes.data(), bytes.size(), MSG_DONTWAIT);
    bytes.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
    return bytes;
  }
  tide_socket_address_t address{};
};

struct Output {
  explicit Output(int descriptor, size_t longest = 2000) : storage(longest + TIDE_DATAGRAM_BATCH_BYTES) {
    tide_datagram_output_init(&core, descriptor, storage.data(), storage.size());
  }
  void add(const Bytes &message, const tide_socket_address_t *to = nullptr) {
    uint8_t *place = tide_datagram_output_place(&core, message.size());
    ASSERT_NE(place, nullptr);
    std::copy(message.begin(), message.end(), place);
    tide_datagram_output_add(&core, message.size(), to);
  }
  void put(const Bytes &message, const tide_socket_address_t *to = nullptr) {
    add(message, to);
    if (tide_datagram_output_is_full(&core)) {
      EXPECT_TRUE(flush());
    }
  }
  bool flush() { return tide_datagram_output_flush(&core); }
  std::vector<uint8_t> storage;
  tide_datagram_output_t core{};
};

struct Input {
  explicit Input(int descriptor) : storage(4 * TIDE_DATAGRAM_BYTES_MAXIMUM) {
    tide_datagram_input_init(&core, descriptor, storage.data(), storage.size());
  }
  void take_all() {
    const auto keep = [](void *self, const uint8_t *bytes, size_t length, const tide_socket_address_t *from) {
      static_cast<Input *>(self)->messages.emplace_back(bytes, bytes + length);
      static_cast<Input *>(self)->ports.push_back(port_of(*from));
    };
    while (tide_datagram_input_take(&core, keep, this)) {}
  }
  std::vector<uint8_t> storage;
  tide_datagram_input_t core{};
  std::vector<Bytes> messages;
  std::vector<uint16_t> ports;
};

// Runs of messages of equal length, empty messages, and messages that are too long for a train.
std::vector<Bytes> random_messages(unsigned seed, size_t count) {
  std::mt19937 random(seed);
  std::vector<Bytes> messages;
  while (messages.size() < count) {
    const size_t length = random() % 8 == 0 ? 1473 + random() % 500 : random() % 1473;
    for (size_t run = 1 + random() % 40; run != 0; run--) {
      Bytes message(length);
      for (uint8_t &octet : message) octet = static_cast<uint8_t>(random());
      messages.push_back(std::move(message));
    }
    if (random() % 2 == 0) messages.emplace_back(random() % 20);
  }
  return messages;
}

class Datagrams : public testing::TestWithParam<unsigned> {};

TEST_P(Datagrams, ArriveOneByOneAndInOrder) {
  SCOPED_TRACE("seed " + std::to_string(GetParam()));
  const int family = GetParam() % 4 == 1 ? AF_INET6 : AF_INET;
  const UdpSocket plain(family), whole(family), from(family);
  Output output(from.number);
  Input input(whole.number);
  std::vector<Bytes> expected_plain, expected_whole;
  std::mt19937 random(GetParam());
  for (const Bytes &message : random_messages(GetParam(), 2000)) {
    const bool to_plain = random() % 16 == 0 ? random() % 2 == 0 : expected_plain.size() < expected_whole.size();
    output.put(message, to_plain ? &plain.address : &whole.address);
    (to_plain ? expected_plain : expected_whole).push_back(message);
    if (random() % 50 != 0) continue;
    ASSERT_TRUE(output.flush());
    input.take_all();
    for (const Bytes &next : std::exchange(expected_plain, {})) ASSERT_EQ(plain.take(), next);
  }
  ASSERT_TRUE(output.flush());
  input.take_all();
  for (const Bytes &next : expected_plain) ASSERT_EQ(plain.take(), next);
  EXPECT_EQ(input.messages, expected_whole);
  EXPECT_EQ(input.ports, std::vector<uint16_t>(expected_whole.size(), port_of(from.address)));
  EXPECT_EQ(output.core.lost, 0u);
  EXPECT_TRUE(output.core.trains);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Datagrams, testing::Values(1u, 2u, 77u), testing::PrintToStringParamName());

TEST(DatagramBatch, LeavesWithOneCallAndHasABound) {
  const UdpSocket to, from;
  ASSERT_EQ(connect(from.number, &to.address.any, tide_socket_address_bytes(&to.address)), 0);
  Output output(from.number);
  for (size_t index = 0; index < TIDE_DATAGRAMS_A_BATCH; index++) {
    EXPECT_FALSE(tide_datagram_output_is_full(&output.core));
    output.add(Bytes(100 + index % 2, static_cast<uint8_t>(index)));
  }
  EXPECT_TRUE(tide_datagram_output_is_full(&output.core));
  EXPECT_EQ(tide_datagram_output_place(&output.core, 1), nullptr);
  EXPECT_TRUE(output.flush());
  EXPECT_EQ(output.core.calls, 1u);
  EXPECT_EQ(output.core.sent, TIDE_DATAGRAMS_A_BATCH);
  for (size_t index = 0; index < TIDE_DATAGRAMS_A_BATCH; index++) {
    EXPECT_EQ(to.take(), Bytes(100 + index % 2, static_cast<uint8_t>(index)));
  }
  size_t count = 0;
  for (; !tide_datagram_output_is_full(&output.core); count++) output.add(Bytes(2000));
  EXPECT_EQ(count, TIDE_DATAGRAM_BATCH_BYTES / 2000 + 1);
  EXPECT_EQ(tide_datagram_output_clear(&output.core), count);
}

TEST(DatagramBatch, TravelsOneByOneWhereTrainsAreNotKnown) {
  const UdpSocket to, from;
  const int on = 1;
  ASSERT_EQ(setsockopt(from.number, SOL_SOCKET, SO_NO_CHECK, &on, sizeof on), 0);  // then the kernel refuses trains
  Output output(from.number);
  for (uint8_t number = 0; number < 20; number++) output.add(Bytes(64, number), &to.address);
  EXPECT_TRUE(output.flush());
  for (uint8_t number = 0; number < 20; number++) EXPECT_EQ(to.take(), Bytes(64, number));
  EXPECT_FALSE(output.core.trains);
  EXPECT_EQ(output.core.lost, 0u);
}

TEST(DatagramBatch, LosesOnlyWhatCannotLeave) {
  const UdpSocket to, from;
  Output output(from.number, 70000);
  output.add(Bytes(10, 1), &to.address);
  output.add(Bytes(66000, 2), &to.address);  // longer than a datagram may be
  EXPECT_TRUE(tide_datagram_output_is_full(&output.core));
  output.add(Bytes(10, 3), &to.address);
  EXPECT_TRUE(output.flush());
  EXPECT_EQ(to.take(), Bytes(10, 1));
  EXPECT_EQ(to.take(), Bytes(10, 3));
  EXPECT_EQ(output.core.lost, 1u);
  EXPECT_EQ(output.core.sent, 2u);
}

TEST(DatagramBatch, MeetsTheErrorOfAnEarlierDatagramWithoutLoss) {
  const UdpSocket from;
  tide_socket_address_t nobody{};
  {
    const UdpSocket gone;
    nobody = gone.address;
  }
  ASSERT_EQ(connect(from.number, &nobody.any, tide_socket_address_bytes(&nobody)), 0);
  Output output(from.number);
  for (int round = 0; round < 5; round++) {
    for (int number = 0; number < 10; number++) output.add(Bytes(static_cast<size_t>(30 + number % 3)));
    EXPECT_TRUE(output.flush());
  }
  EXPECT_EQ(output.core.lost, 0u);
  EXPECT_EQ(output.core.sent, 50u);
}

TEST(DatagramBatch, KeepsWhatTheKernelDoesNotTakeNow) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends), 0);  // these datagrams wait for their receiver
  const Socket from(ends[0]), to(ends[1]);
  Output output(from.number);
  output.core.trains = false;
  size_t added = 0, taken = 0;
  for (bool blocked = false; !blocked; blocked = !output.flush()) {
    ASSERT_LT(added, 100'000u);
    for (int number = 0; number < 8; number++) output.add(Bytes(50, static_cast<uint8_t>(added++)));
  }
  EXPECT_TRUE(output.core.blocked);
  const auto take = [&] {
    Bytes bytes(100);
    const ssize_t count = recv(to.number, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count < 0) return false;
    bytes.resize(static_cast<size_t>(count));
    EXPECT_EQ(bytes, Bytes(50, static_cast<uint8_t>(taken++)));
    return true;
  };
  while (take()) {}
  EXPECT_TRUE(output.flush());
  EXPECT_FALSE(output.core.blocked);
  while (take()) {}
  EXPECT_EQ(taken, added);
  EXPECT_EQ(output.core.lost, 0u);
}

}  // namespace link_datagrams_test
