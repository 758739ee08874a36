// SPDX-License-Identifier: Apache-2.0
// The link of runtime/port/nuttx on this machine, over a pseudo terminal.
#include <gtest/gtest.h>
#include <pty.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "../fake_daemon.h"
#include "tide/link_serial.h"

namespace {

struct Cable {
  Cable() {
    char name[64];
    termios raw{};
    cfmakeraw(&raw);
    EXPECT_EQ(openpty(&near, &far, name, &raw, nullptr), 0);
    device = name;
  }
  ~Cable() {
    close(near);
    close(far);
  }
  Bytes read_some(size_t count) const {
    Bytes bytes;
    std::array<uint8_t, 256> part{};
    while (bytes.size() < count) {
      const ssize_t got = read(near, part.data(), std::min(part.size(), count - bytes.size()));
      if (got <= 0) break;
      bytes.insert(bytes.end(), part.begin(), part.begin() + got);
    }
    return bytes;
  }
  int near = -1, far = -1;
  std::string device;
};

tide_link_address_t address_of(const Cable &cable) {
  tide_link_address_t address{};
  address.kind = TIDE_LINK_SERIAL;
  address.device = cable.device.c_str();
  address.baud = B115200;
  return address;
}

}  // namespace

TEST(NuttxLink, FramesLeaveInOrderAndTheirEndsAreReportedOnce) {
  const Cable cable;
  FakeDaemon daemon;
  ASSERT_EQ(daemon.open(address_of(cable)), TIDE_OK);
  Bytes expected;
  for (uint8_t n = 0; n < 20; n++) {
    const Bytes message(static_cast<size_t>(n + 1), static_cast<uint8_t>(0x70 + n));
    std::array<uint8_t, 128> frame{};
    const int length = tide_framing_encode(frame.data(), frame.size(), TIDE_SERIAL_ADDRESS_CLIENT,
                                           TIDE_SERIAL_ADDRESS_AGENT, message.data(), message.size(), nullptr, 0);
    ASSERT_GT(length, 0);
    expected.insert(expected.end(), frame.begin(), frame.begin() + length);
    daemon.submit(message);
  }
  EXPECT_EQ(cable.read_some(expected.size()), expected);
  EXPECT_TRUE(daemon.eventually([](const FakeDaemon &fake) { return fake.sent.size() == 20; }));
  EXPECT_EQ(daemon.wrong_completions, 0);
  EXPECT_EQ(daemon.counters().bytes_sent, expected.size());
}

TEST(NuttxLink, BytesArriveAndTheSessionsTimePasses) {
  const Cable cable;
  FakeDaemon daemon;
  ASSERT_EQ(daemon.open(address_of(cable)), TIDE_OK);
  const Bytes bytes{1, 2, 3, 0x7E, 0x0A, 0x0D, 0x11, 0x13, 0xFF, 0};
  ASSERT_EQ(write(cable.near, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  EXPECT_TRUE(daemon.eventually([&](const FakeDaemon &fake) { return fake.received == bytes; }));
  daemon.close();
  EXPECT_FALSE(daemon.attached);
}

TEST(NuttxLink, ADeviceThatIsNotThereIsAnErrorAndTheLineCanBeOpenedAgain) {
  FakeDaemon daemon;
  tide_link_address_t nowhere{};
  nowhere.kind = TIDE_LINK_SERIAL;
  nowhere.device = "/nonexistent/tty";
  EXPECT_EQ(daemon.open(nowhere), TIDE_ERROR_LINK);
  const Cable cable;
  EXPECT_EQ(daemon.open(address_of(cable)), TIDE_OK);
  EXPECT_EQ(tide_port_open_link(&daemon.session, &nowhere), TIDE_ERROR_EXISTS);
}
