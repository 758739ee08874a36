// SPDX-License-Identifier: Apache-2.0
// A program of rclc with the RTPS sockets of POSIX, on the loopback interface. A participant of the runtime stands for
// ROS 2.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <rclc/rclc.h>
#include <rmw_microros/rmw_microros.h>
#include <std_msgs/msg/int32.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <map>
#include <set>

#include "rtps_boards.h"
#include "tide/rclc.h"
#define TIDE_RTPS_WRITERS 3
#define TIDE_RTPS_DSCP dscp_of
#define TIDE_DEFINE_RTPS
#include "tide/rclc_rtps.h"

uint8_t dscp_of(uint8_t level) { return level > 100 ? 46 : level > 10 ? 10 : 0; }

static std::atomic<int> full_octet{-1};  // sockets with this TOS octet have a full buffer

// Replaces the C library's function in this program.
extern "C" ssize_t sendto(int descriptor, const void *bytes, size_t length, int flags, const sockaddr *to,
                          socklen_t to_bytes) {
  int octet = 0;
  socklen_t octet_bytes = sizeof octet;
  (void)getsockopt(descriptor, IPPROTO_IP, IP_TOS, &octet, &octet_bytes);
  if (octet != full_octet) return syscall(SYS_sendto, descriptor, bytes, length, flags, to, to_bytes);
  errno = EAGAIN;
  return -1;
}

namespace rtps_sockets_test {

using tide::test::RtpsBoard;
using tide::test::RtpsReader;

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

bool is_announcement(const uint8_t *bytes, size_t length) {
  size_t position = TIDE_RTPS_HEADER_BYTES;
  tide_rtps_submessage_t submessage;
  while (tide_rtps_next(bytes, length, &position, &submessage) == 1) {
    if (submessage.id != TIDE_RTPS_DATA) continue;
    tide_cdr_t cdr;
    tide_rtps_data_t data;
    tide_rtps_open(&cdr, &submessage);
    tide_rtps_get_data(&cdr, &submessage, &data);
    if (data.writer == TIDE_RTPS_ENTITY_SPDP_WRITER) return true;
  }
  return false;
}

// The host's socket: sends the participant's datagrams, and notes the TOS octets that arrive with samples.
struct Host {
  RtpsBoard board{2};
  std::vector<RtpsReader *> readers;
  int socket_fd = -1;
  std::map<std::string, std::set<int>> octets;  // by topic

  Host(uint32_t domain, bool reliable) {
    static const uint8_t loopback[1][4] = {{127, 0, 0, 1}};
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socket_fd = socket(AF_INET, SOCK_DGRAM, 0);
    for (uint16_t number = 0;; number++) {
      own.sin_port = htons(static_cast<uint16_t>(TIDE_RTPS_PORT_DISCOVERY(domain, number)));
      if (bind(socket_fd, reinterpret_cast<const sockaddr *>(&own), sizeof own) == 0) {
        board.config.participant = number;
        break;
      }
      if (number == 20) throw std::runtime_error("no free port");
    }
    const int yes = 1;
    if (setsockopt(socket_fd, IPPROTO_IP, IP_RECVTOS, &yes, sizeof yes) != 0) throw std::runtime_error("IP_RECVTOS");
    memcpy(board.config.address, loopback[0], 4);
    board.config.domain = domain;
    board.config.no_multicast = true;
    board.config.known = loopback;
    board.config.known_count = 1;
    board.config.known_participants = 32;
    board.start(now_ns());
    tide_rtps_qos_t qos = tide_rtps_qos_default();
    qos.reliable = reliable;
    for (const char *topic : {"rt/urgent", "rt/bulk", "rt/rest"}) {
      RtpsReader &made = board.reader(topic, qos, 100, now_ns());
      made.reader.endpoint.type = "std_msgs::msg::dds_::Int32_";
      readers.push_back(&made);
    }
  }
  ~Host() { close(socket_fd); }

  bool is_matched() const {
    return std::all_of(readers.begin(), readers.end(), [this](const RtpsReader *one) {
      return tide_participant_matched(&board.participant, &one->reader.endpoint) > 0;
    });
  }
  bool has_all() const {
    return std::none_of(readers.begin(), readers.end(), [](const RtpsReader *one) { return one->received.empty(); });
  }

  // Sends what is due, waits for a datagram for at most 20 ms, and receives it.
  void step() {
    tide_rtps_datagram_t datagram{};
    datagram.bytes = board.buffer.data();
    while (tide_participant_poll(&board.participant, now_ns(), &datagram)) {
      sockaddr_in to{};
      to.sin_family = AF_INET;
      to.sin_port = htons(datagram.to.port);
      memcpy(&to.sin_addr, datagram.to.address, 4);
      (void)!sendto(socket_fd, datagram.bytes, datagram.length, 0, reinterpret_cast<const sockaddr *>(&to), sizeof to);
    }
    pollfd readable{socket_fd, POLLIN, 0};
    if (poll(&readable, 1, 20) <= 0) return;
    std::vector<uint8_t> bytes(65536), control(CMSG_SPACE(sizeof(int)));
    sockaddr_in from{};
    iovec part{bytes.data(), bytes.size()};
    msghdr message{};
    message.msg_name = &from;
    message.msg_namelen = sizeof from;
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t length = recvmsg(socket_fd, &message, 0);
    if (length < 0) return;
    const cmsghdr *header = CMSG_FIRSTHDR(&message);
    ASSERT_TRUE(header != nullptr && header->cmsg_type == IP_TOS);
    const int octet = *CMSG_DATA(header);
    std::vector<size_t> before;
    for (const RtpsReader *one : readers) before.push_back(one->received.size());
    uint8_t address[4];
    memcpy(address, &from.sin_addr, 4);
    tide_participant_receive(&board.participant, bytes.data(), static_cast<size_t>(length), address, now_ns());
    for (size_t i = 0; i < readers.size(); i++)
      if (readers[i]->received.size() > before[i]) octets[readers[i]->reader.endpoint.topic].insert(octet);
    if (is_announcement(bytes.data(), static_cast<size_t>(length))) octets["discovery"].insert(octet);
  }
};

// A board's program with a publisher for each of the host's readers.
class RtpsSockets : public testing::Test {
 protected:
  enum { URGENT, BULK, REST };
  void start(bool reliable) {
    const auto domain = static_cast<uint32_t>(1 + getpid() % 200);
    host = std::make_unique<Host>(domain, reliable);
    rcl_allocator_t allocator = rcl_get_default_allocator();
    ASSERT_EQ(rcl_init_options_init(&options, allocator), RCL_RET_OK);
    ASSERT_EQ(rcl_init_options_set_domain_id(&options, domain), RCL_RET_OK);
    ASSERT_EQ(tide_rclc_options_set_rtps(rcl_init_options_get_rmw_init_options(&options), "127.0.0.1"), RMW_RET_OK);
    ASSERT_EQ(rclc_support_init_with_options(&support, 0, nullptr, &options, &allocator), RCL_RET_OK);
    ASSERT_EQ(rclc_node_init_default(&node, "board", "", &support), RCL_RET_OK);
    for (auto &one : sent) {
      const auto *type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, Int32);
      one.publisher = rcl_get_zero_initialized_publisher();
      const auto &init = reliable ? rclc_publisher_init_default : rclc_publisher_init_best_effort;
      ASSERT_EQ(init(&one.publisher, &node, type, one.topic), RCL_RET_OK);
      ASSERT_EQ(tide_rclc_publisher_set_priority(&one.publisher, TIDE_PRIORITY(one.level, 0)), RCL_RET_OK);
    }
    // A sample that is published before the program knows the reader is lost.
    while (!host->has_all() && !HasFatalFailure()) {
      for (size_t number = URGENT; number <= REST; number++)
        if (host->is_matched()) publish(number, 1);
      host->step();
    }
  }
  void publish(size_t number, int32_t value) {
    const std_msgs__msg__Int32 message{value};
    (void)!rcl_publish(&sent[number].publisher, &message, nullptr);
  }
  // The received numbers above 1.
  std::vector<int32_t> received(size_t number) const {
    std::vector<int32_t> values;
    for (const RtpsReader::Sample &sample : host->readers[number]->received) {
      int32_t value = 0;
      memcpy(&value, sample.bytes.data(), sizeof value);
      if (value > 1) values.push_back(value);
    }
    return values;
  }
  void await(size_t number, int32_t value) {
    while ((received(number).empty() || received(number).back() != value) && !HasFatalFailure()) host->step();
  }
  void TearDown() override {
    for (auto &one : sent) EXPECT_EQ(rcl_publisher_fini(&one.publisher, &node), RCL_RET_OK);
    EXPECT_EQ(rcl_node_fini(&node), RCL_RET_OK);
    EXPECT_EQ(rclc_support_fini(&support), RCL_RET_OK);
    EXPECT_EQ(rcl_init_options_fini(&options), RCL_RET_OK);
  }
  std::unique_ptr<Host> host;
  rcl_init_options_t options = rcl_get_zero_initialized_init_options();
  rclc_support_t support{};
  rcl_node_t node = rcl_get_zero_initialized_node();
  struct {
    const char *topic;
    uint8_t level;
    rcl_publisher_t publisher;
  } sent[3] = {{"urgent", 110, {}}, {"bulk", 20, {}}, {"rest", 5, {}}};
};

TEST_F(RtpsSockets, ADatagramHasTheDscpOfItsLevel) {
  start(true);
  const std::map<std::string, std::set<int>> expected{
      {"discovery", {0}}, {"rt/urgent", {46 << 2}}, {"rt/bulk", {10 << 2}}, {"rt/rest", {0}}};
  EXPECT_EQ(host->octets, expected);
}

// While the buffer of a socket is full, the samples of its levels wait in the histories of their writers, which keep
// the newest; samples of other levels are sent.
TEST_F(RtpsSockets, AFullBufferKeepsTheNewestAndDelaysNoOther) {
  start(false);
  publish(BULK, 100);
  await(BULK, 100);  // so that nothing older is on its way
  full_octet = 10 << 2;
  for (int32_t value = 101; value <= 107; value++) {
    publish(BULK, value);
    publish(URGENT, value);
    publish(REST, value);  // sent by the session after the bulk sample, which is in the history by then
    await(URGENT, value);
    await(REST, value);
  }
  EXPECT_EQ(received(BULK), std::vector<int32_t>{100});
  full_octet = -1;
  await(BULK, 107);
  EXPECT_EQ(received(BULK), (std::vector<int32_t>{100, 101, 104, 105, 106, 107})) << "the first one was on its way";
}

}  // namespace rtps_sockets_test
