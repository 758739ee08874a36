// SPDX-License-Identifier: Apache-2.0
// Samples that a program writes in pieces, because they are longer than all nodes of the pool together (3 kB). They
// arrive whole or not at all, even if messages are lost, if others are on the same stream, or if the program gives up.
#include <atomic>

#include "connected.h"
#include "tide/cdr.h"
#include "tide/long_write.h"
#include "tide/pools.h"

namespace tide::compat::test::continuous_test {

constexpr uint32_t kImageBytes = 300'000;
constexpr size_t kTextBytes = 8;  // "abc" with its length and its NUL

// The state of the callbacks, because they get no context.
struct Plan {
  uint32_t announced = kImageBytes, written = kImageBytes;
  uint32_t piece = 1000;
  bool is_uniform = false;                     // all octets are alike, and look like the beginning of a WRITE_DATA
  std::function<void(uint32_t)> before_piece;  // argument: how many octets have been given
};
thread_local Plan *plan = nullptr;

uint8_t octet(uint32_t number) { return static_cast<uint8_t>(number * 7 + number / 251); }

void add_size(uint32_t *length) { *length += plan->announced; }

void write_pieces(ucdrBuffer *buffer) {
  std::vector<uint8_t> piece;
  for (uint32_t at = 0; at < plan->written; at += static_cast<uint32_t>(piece.size())) {
    if (plan->before_piece) plan->before_piece(at);
    piece.resize(std::min(plan->piece, plan->written - at));
    for (uint32_t i = 0; i < piece.size(); i++)
      piece[i] = plan->is_uniform ? uint8_t{TIDE_XRCE_WRITE_DATA} : octet(at + i);
    if (!ucdr_serialize_array_uint8_t(buffer, piece.data(), piece.size())) return;
  }
}

Octets image(uint32_t bytes = kImageBytes) {
  Octets whole = string_bytes("abc");
  for (uint32_t i = 0; i < bytes; i++) whole.push_back(octet(i));
  return whole;
}

class Continuous : public Connected {
 protected:
  void SetUp() override {
    Connected::SetUp();
    ASSERT_OK(rclc_publisher_init_default(&publisher, &node, string_type(), "image"));
    ASSERT_OK(rclc_publisher_init_default(&beside, &node, int32_type(), "beside"));
    set(&publisher);
    plan = &usual;
  }
  void TearDown() override {
    plan = nullptr;
    Connected::TearDown();
  }
  static void set(const rcl_publisher_t *one) {
    rmw_uros_set_continous_serialization_callbacks(rcl_publisher_get_rmw_handle(one), add_size, write_pieces);
  }
  static rcl_ret_t publish(const rcl_publisher_t *one) {
    char text[] = "abc";
    const std_msgs__msg__String message = {{text, 3, 4}};
    return rcl_publish(one, &message, nullptr);
  }
  rcl_ret_t publish() const { return publish(&publisher); }
  rcl_ret_t publish_number(int32_t number) const {
    const std_msgs__msg__Int32 message = {number};
    return rcl_publish(&beside, &message, nullptr);
  }
  // Expects that all nodes are free again, and that the next published message arrives whole.
  void expect_usual() {
    plan = &usual;
    ASSERT_TRUE(eventually([&] { return state() == TIDE_SESSION_READY; }, 10s));
    const size_t before = server.written("rt/image").size();
    EXPECT_OK(publish());
    ASSERT_TRUE(eventually([&] { return server.written("rt/image").size() == before + 1; }));
    EXPECT_EQ(server.written("rt/image").back(), image());
    ASSERT_TRUE(eventually([&] { return tide_session_is_idle(session(), 0); }));
    EXPECT_TRUE(eventually([&] { return nodes_in_use() <= 1; })) << nodes_in_use();  // one is the session's reserve
  }
  unsigned nodes_in_use() {
    return masked([](const tide_session_t &session) { return session.daemon.transmitter.nodes_in_use; });
  }

  Plan usual;
  rcl_publisher_t publisher{}, beside{};
};

TEST_F(Continuous, AnImageOfAHundredPoolsArrivesAsItIs) {
  static_assert(8 * 128 + 2 * 1020 < 4096);
  EXPECT_OK(publish());
  EXPECT_EQ(server.written("rt/image").size(), 1u);  // the agent has it when the call returns
  EXPECT_EQ(server.written("rt/image")[0], image());
  expect_usual();
  rmw_uros_set_continous_serialization_callbacks(rcl_publisher_get_rmw_handle(&publisher), nullptr, nullptr);
  EXPECT_OK(publish());
  EXPECT_TRUE(eventually([&] { return server.written("rt/image").back() == string_bytes("abc"); }));
}

TEST_F(Continuous, EachLengthArrivesWithOneMessageInFiftyLost) {
  server.lose_one_in(50);
  Plan one;
  plan = &one;
  // near the sizes of one node, one fragment and two nodes, and the greatest length that a header can express
  const uint32_t around[] = {1,    244,  1000,   1008,   1009,   1016,   1017,   1024,  1100,
                             2023, 2040, 65'519, 65'523, 65'524, 65'527, 65'528, 70'001};
  size_t count = 0;
  for (const uint32_t bytes : around) {
    SCOPED_TRACE(bytes);
    one.announced = one.written = bytes;
    one.piece = 1 + bytes / 7;
    ASSERT_OK(publish());
    count++;
    ASSERT_TRUE(eventually([&] { return server.written("rt/image").size() == count; }));
    ASSERT_EQ(server.written("rt/image").back(), image(bytes));
  }
}

TEST_F(Continuous, OthersOfItsLevelFollowAndOtherLevelsPass) {
  rcl_publisher_t urgent = publisher_of(string_type(), "urgent");
  ASSERT_OK(tide_rclc_publisher_set_priority(&urgent, TIDE_PRIORITY(5, 0)));
  Plan one;
  plan = &one;
  size_t beside_before = 99, urgent_before = 0;
  bool is_told = false;
  one.before_piece = [&](uint32_t at) {
    if (at == 50'000) {
      for (int32_t number = 0; number < 4; number++) EXPECT_OK(publish_number(number));
      EXPECT_OK(publish(&urgent));
    }
    if (at == 290'000) {
      is_told = eventually([&] { return server.written("rt/urgent").size() == 1; });
      beside_before = server.written("rt/beside").size();
      urgent_before = server.written("rt/urgent").size();
    }
  };
  EXPECT_OK(publish());
  EXPECT_TRUE(is_told);
  EXPECT_EQ(beside_before, 0u);
  EXPECT_EQ(urgent_before, 1u);
  EXPECT_TRUE(eventually([&] { return server.written("rt/beside").size() == 4; }));
  EXPECT_EQ(server.written("rt/image")[0], image());
  for (int32_t number = 0; number < 4; number++) EXPECT_EQ(server.written("rt/beside")[number], int32_bytes(number));
  expect_usual();
}

TEST_F(Continuous, SeveralThreadsTakeTurns) {
  rcl_publisher_t other = publisher_of(string_type(), "other");
  set(&other);
  ASSERT_OK(tide_rclc_publisher_set_wait_ms(&publisher, 20'000));
  ASSERT_OK(tide_rclc_publisher_set_wait_ms(&other, 20'000));
  server.lose_one_in(100, 7);
  std::atomic<bool> ends{false};
  Thread second([&] {
    plan = &usual;
    for (int i = 0; i < 3; i++) EXPECT_OK(publish(&other));
  });
  Thread third([&] {
    for (int32_t number = 0; !ends.load(); number++) (void)publish_number(number);
  });
  for (int i = 0; i < 3; i++) EXPECT_OK(publish());
  second.join();
  ends = true;
  third.join();
  ASSERT_EQ(server.written("rt/image").size(), 3u);
  ASSERT_EQ(server.written("rt/other").size(), 3u);
  for (int i = 0; i < 3; i++) {
    EXPECT_EQ(server.written("rt/image")[i], image());
    EXPECT_EQ(server.written("rt/other")[i], image());
  }
}

// Messages that wait behind the sample that was given up arrive in the new session, in order and once.
TEST_F(Continuous, WhatIsNotTakenInTimeIsGivenUpWhole) {
  ASSERT_OK(tide_rclc_publisher_set_wait_ms(&publisher, 100));
  Plan one;
  plan = &one;
  one.before_piece = [&](uint32_t at) {
    if (at != 100'000) return;
    EXPECT_OK(publish_number(1));
    EXPECT_OK(publish_number(2));
    server.mute(true);
  };
  EXPECT_REFUSED(publish(), RCL_RET_ERROR, TIDE_ERROR_EXPIRED);
  server.mute(false);
  EXPECT_TRUE(eventually([&] { return server.written("rt/beside").size() == 2; }, 10s));
  EXPECT_EQ(server.written("rt/beside"), (std::vector<Octets>{int32_bytes(1), int32_bytes(2)}));
  EXPECT_TRUE(server.written("rt/image").empty());
  expect_usual();
}

TEST_F(Continuous, ASessionThatEndsInItTakesTheWholeSample) {
  Plan one;
  plan = &one;
  one.before_piece = [&](uint32_t at) {
    if (at != 100'000) return;
    masked([](tide_session_t &session) { return session.agent_lost = true; });
    tide_session_ping(session());  // polls the session
  };
  one.is_uniform = true;
  EXPECT_REFUSED(publish(), RCL_RET_ERROR, TIDE_ERROR_DISCONNECTED);
  EXPECT_TRUE(server.written("rt/image").empty());
  expect_usual();
  EXPECT_EQ(server.counters().malformed + server.counters().write_unknown, 0u);
}

TEST_F(Continuous, FewerOrMoreOctetsThanAnnouncedAreNotDelivered) {
  for (const uint32_t announced : {200u, kImageBytes}) {
    for (const int more : {-1, 1, -100, 100}) {
      SCOPED_TRACE(std::to_string(announced) + " announced, " + std::to_string(more) + " more written");
      Plan one;
      plan = &one;
      one.announced = announced;
      one.written = announced + static_cast<uint32_t>(more);
      EXPECT_REFUSED(publish(), RCL_RET_ERROR, more > 0 ? TIDE_ERROR_TOO_LARGE : TIDE_ERROR_MALFORMED);
      ASSERT_TRUE(eventually([&] { return state() == TIDE_SESSION_READY; }, 10s));
    }
  }
  EXPECT_TRUE(server.written("rt/image").empty());
  expect_usual();
}

TEST_F(Continuous, WhoMayNotWaitSendsWhatOneNodeHolds) {
  ASSERT_OK(tide_rclc_publisher_set_wait_ms(&publisher, 0));
  EXPECT_REFUSED(publish(), RCL_RET_ERROR, TIDE_ERROR_TOO_LARGE);
  Plan one;
  plan = &one;
  one.announced = one.written = 1020 - 8 - kTextBytes;
  EXPECT_OK(publish());
  EXPECT_TRUE(eventually([&] { return server.written("rt/image").size() == 1; }));
  EXPECT_EQ(server.written("rt/image")[0], image(one.written));
}

TEST_F(Continuous, BestEffortGoesInOneMessageOrNotAtAll) {
  rcl_publisher_t quick{};
  ASSERT_OK(rclc_publisher_init_best_effort(&quick, &node, string_type(), "quick"));
  set(&quick);
  EXPECT_REFUSED(publish(&quick), RCL_RET_ERROR, TIDE_ERROR_TOO_LARGE);
  Plan one;
  plan = &one;
  one.announced = one.written = 200;
  EXPECT_OK(publish(&quick));
  EXPECT_TRUE(eventually([&] { return server.written("rt/quick").size() == 1; }));
  EXPECT_EQ(server.written("rt/quick")[0], image(200));
}

TEST_F(Continuous, PrimitivesAreAlignedWhereverANodeEnds) {
  struct Shape {
    static void size(uint32_t *length) {
      tide_cdr_t cdr;
      tide_cdr_measure(&cdr);
      cdr.position = *length;
      put(&cdr);
      *length = static_cast<uint32_t>(cdr.position);
    }
    static void put(tide_cdr_t *cdr) {
      const std::vector<double> row(31, 0.25);
      for (uint32_t i = 0; i < 400; i++) {
        tide_cdr_put_u8(cdr, static_cast<uint8_t>(i));
        tide_cdr_put_f64(cdr, i);
        tide_cdr_put_u16(cdr, static_cast<uint16_t>(i));
        tide_cdr_put_u32(cdr, 31);
        tide_cdr_put_array(cdr, row.data(), row.size(), 8);
        tide_cdr_put_string(cdr, "row", 3);
        tide_cdr_put_bool(cdr, true);
      }
    }
    static void write(ucdrBuffer *buffer) {
      const std::vector<double> row(31, 0.25);
      for (uint32_t i = 0; i < 400; i++) {
        EXPECT_TRUE(ucdr_serialize_uint8_t(buffer, static_cast<uint8_t>(i)));
        ucdr_serialize_double(buffer, i);
        ucdr_serialize_int16_t(buffer, static_cast<int16_t>(i));
        ucdr_serialize_sequence_double(buffer, row.data(), 31);
        ucdr_serialize_string(buffer, "row");
        ucdr_serialize_bool(buffer, true);
      }
    }
  };
  rmw_uros_set_continous_serialization_callbacks(rcl_publisher_get_rmw_handle(&publisher), Shape::size, Shape::write);
  ASSERT_OK(publish());
  Octets expected(150'000);
  tide_cdr_t cdr;
  tide_cdr_writer(&cdr, expected.data(), expected.size());
  tide_cdr_put_string(&cdr, "abc", 3);
  Shape::put(&cdr);
  expected.resize(cdr.position);
  EXPECT_EQ(server.written("rt/image")[0], expected);
}

// The program replaces the count of the empty sequence at the end of the message, as the header describes.
TEST_F(Continuous, TheLastOctetsOfTheMessageCanBeReplaced) {
  rmw_uros_set_continous_serialization_callbacks(
      rcl_publisher_get_rmw_handle(&publisher), [](uint32_t *length) { *length += 5000; },
      [](ucdrBuffer *buffer) {
        buffer->iterator -= 2;
        ucdr_serialize_array_char(buffer, "C!", 2);
        ucdr_advance_buffer(buffer, 5000);
      });
  ASSERT_OK(publish());
  Octets expected = string_bytes("abC");
  expected.back() = '!';
  expected.resize(expected.size() + 5000);
  EXPECT_EQ(server.written("rt/image")[0], expected);
}

TEST_F(Continuous, AnotherAgentIsNotWaitedForLongerThanAllowed) {
  ASSERT_OK(tide_rclc_publisher_set_wait_ms(&publisher, 50));
  server.mute(true);
  const Time begin_ns = now_ns();
  EXPECT_REFUSED(publish(), RCL_RET_ERROR, TIDE_ERROR_EXPIRED);
  EXPECT_LT(now_ns() - begin_ns, 2'000'000'000);
  EXPECT_REFUSED(publish(), RCL_RET_ERROR, TIDE_ERROR_DISCONNECTED);  // a new session begins in this call
  server.mute(false);
  ASSERT_OK(tide_rclc_publisher_set_wait_ms(&publisher, 10'000));
  expect_usual();
}

TEST(ContinuousOverSerial, AnImageArrivesWithOneFrameInAHundredLost) {
  AgentServer server(AgentServer::Kind::kStream);
  ASSERT_EQ(rmw_uros_set_custom_transport(true, &server.client_end, open_transport, close_transport, write_transport,
                                          read_transport),
            RMW_RET_OK);
  rcl_allocator_t allocator = rcl_get_default_allocator();
  rclc_support_t support;
  ASSERT_OK(rclc_support_init(&support, 0, nullptr, &allocator));
  rcl_node_t node{};
  ASSERT_OK(rclc_node_init_default(&node, "node", "", &support));
  rcl_publisher_t publisher{};
  ASSERT_OK(rclc_publisher_init_default(&publisher, &node, string_type(), "image"));
  rmw_uros_set_continous_serialization_callbacks(rcl_publisher_get_rmw_handle(&publisher), add_size, write_pieces);
  server.lose_one_in(100, 3);
  Plan one;
  plan = &one;
  char text[] = "abc";
  const std_msgs__msg__String message = {{text, 3, 4}};
  EXPECT_OK(rcl_publish(&publisher, &message, nullptr));
  EXPECT_EQ(server.written("rt/image").size(), 1u);
  EXPECT_EQ(server.written("rt/image").at(0), image());
  plan = nullptr;
  server.lose_one_in(0);
  EXPECT_OK(rclc_support_fini(&support));
}

TEST_F(Connected, OnlySoManyPublishersWriteInPieces) {
  EXPECT_OK(rclc_support_fini(&support));
  connect();
  static std::array<tide_publisher_handle_t, 5> handles;  // the runtime uses those of the last repetition until the end
  handles = {};
  for (tide_publisher_handle_t &handle : handles)
    rmw_uros_set_continous_serialization_callbacks(reinterpret_cast<rmw_publisher_t *>(&handle), add_size, nullptr);
  EXPECT_NE(handles[3].continuous, nullptr);
  EXPECT_EQ(tide_rclc_last_status(), TIDE_ERROR_CAPACITY_PUBLISHERS);
  rmw_uros_set_continous_serialization_callbacks(reinterpret_cast<rmw_publisher_t *>(handles.data()), nullptr, nullptr);
  rcl_reset_error();
  rmw_uros_set_continous_serialization_callbacks(reinterpret_cast<rmw_publisher_t *>(&handles[4]), add_size, nullptr);
  EXPECT_EQ(tide_rclc_last_status(), TIDE_OK);
  for (tide_publisher_handle_t &handle : handles)
    rmw_uros_set_continous_serialization_callbacks(reinterpret_cast<rmw_publisher_t *>(&handle), nullptr, nullptr);
}

}  // namespace tide::compat::test::continuous_test
