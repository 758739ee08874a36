// SPDX-License-Identifier: Apache-2.0
// A program of rclc with the RTPS wire, in virtual time. A participant of the runtime stands for ROS 2. A seed
// determines how the network loses, repeats and reorders datagrams. The environment variables TIDE_FIRST_SEED and
// TIDE_SEEDS choose the seeds.
#include <gtest/gtest.h>
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <rmw_microros/rmw_microros.h>
#include <std_msgs/msg/int32.h>
#include <std_msgs/msg/u_int8_multi_array.h>
#include <std_srvs/srv/set_bool.h>

#include <algorithm>
#include <memory>

#include "bare.h"
#include "mutate.h"
#include "rtps_boards.h"
#include "tide/rclc.h"
#include "tide/rclc_rtps.h"
#include "tide/rclc_service.h"

namespace compat_rtps_test {

using tide::test::environment;
using tide::test::kMs;
using tide::test::RtpsBoard;
using tide::test::RtpsNetwork;
using tide::test::RtpsReader;
using tide::test::RtpsWriter;

const char *const kInt32 = "std_msgs::msg::dds_::Int32_";
const char *const kBytes = "std_msgs::msg::dds_::UInt8MultiArray_";

tide_rtps_qos_t quality(bool reliable) {
  tide_rtps_qos_t qos = tide_rtps_qos_default();
  qos.reliable = reliable;
  return qos;
}

std::vector<uint8_t> number_bytes(int32_t number) {
  std::vector<uint8_t> bytes(4);
  memcpy(bytes.data(), &number, 4);
  return bytes;
}

int32_t number_of(const std::vector<uint8_t> &bytes) {
  int32_t number = 0;
  memcpy(&number, bytes.data(), 4);
  return number;
}

// The network, the host, and the board's side of the wire. The board's address is 10.0.0.1.
struct World {
  static World *current;
  static inline int64_t last_ns = 0;  // the next world begins at this time, because the port's clock never goes back
  explicit World(uint64_t seed) : network(seed) {
    current = this;
    network.now = std::max(network.now, last_ns);
    network.boards = {&place, &host};
    place.elsewhere = &agent.participant;
    place.is_on = false;
    place.buffer.resize(TIDE_RTPS_DATAGRAM_BYTES);
    start_host();
  }
  ~World() {
    last_ns = network.now;
    current = nullptr;
  }

  void start_host() {
    host.config.prefix[3]++;
    host.start(network.now);
    const auto typed = [](auto &made, const char *type) {
      made.endpoint.type = type;
      return &made;
    };
    up = &host.reader("rt/up", quality(true), 5000, network.now);
    down = &host.writer("rt/down", quality(true), 40, 100, network.now);
    low = &host.writer("rt/low", quality(true), 40, 3000, network.now);
    served = &host.reader("rq/askedRequest", quality(true), 100, network.now);
    serving = &host.writer("rr/askedReply", quality(true), 8, 100, network.now);
    asking = &host.writer("rq/servedRequest", quality(true), 8, 100, network.now);
    replied = &host.reader("rr/servedReply", quality(true), 100, network.now);
    typed(up->reader, kInt32);
    typed(down->writer, kInt32);
    typed(low->writer, kBytes);
    for (tide_rtps_endpoint_t *one : {&served->reader.endpoint, &asking->writer.endpoint})
      one->type = "std_srvs::srv::dds_::SetBool_Request_";
    for (tide_rtps_endpoint_t *one : {&serving->writer.endpoint, &replied->reader.endpoint})
      one->type = "std_srvs::srv::dds_::SetBool_Response_";
    related.assign(16, {});
    serving->writer.related = related.data();
    asking->writer.related = related.data() + 8;
  }
  void write(RtpsWriter &to, const std::vector<uint8_t> &bytes, const tide_rtps_sample_identity_t *of = nullptr) {
    uint8_t *room = tide_participant_write_begin(&host.participant, &to.writer, bytes.size());
    ASSERT_NE(room, nullptr);
    std::copy(bytes.begin(), bytes.end(), room);
    tide_participant_write_end(&host.participant, &to.writer, bytes.size(), of, network.now);
  }
  // Reads a message of the agent for the session into `bytes` and returns its length; 0 if there is none in time.
  size_t read(uint8_t *bytes, int64_t duration_ns) {
    int64_t deadline = INT64_MAX;
    const int64_t end = network.now + duration_ns;
    size_t length = 0;
    const auto try_read = [&] {
      length = length != 0 ? length : tide_rtps_agent_read(&agent, bytes, network.now, &deadline);
      return length != 0;
    };
    while (!try_read()) {
      place.is_on = tide_rtps_agent_is_up(&agent);
      const int64_t until = std::min(end, deadline);
      network.run(std::max<int64_t>(until - network.now, 0), try_read);
      if (length != 0 || network.now >= end) break;
    }
    place.is_on = tide_rtps_agent_is_up(&agent);
    return length;
  }

  RtpsNetwork network;
  RtpsBoard place{1}, host{2, 4, 16};
  tide_rtps_agent_t agent{};
  RtpsReader *up = nullptr, *served = nullptr, *replied = nullptr;
  RtpsWriter *down = nullptr, *low = nullptr, *serving = nullptr, *asking = nullptr;
  std::vector<tide_rtps_sample_identity_t> related;
  std::vector<std::pair<std::string, int64_t>> too_large;  // topics and bytes of samples that were too large
  uint8_t starts = 0;
  int link_loss = 0, link_duplication = 0;  // percentages of the messages between session and agent
};
World *World::current = nullptr;

bool start(void *, uint32_t domain, tide_participant_config_t *config) {
  World &world = *World::current;
  memcpy(config->prefix, world.place.config.prefix, sizeof config->prefix);
  config->prefix[3] = ++world.starts;
  memcpy(config->address, world.place.config.address, sizeof config->address);
  return domain == 0;
}

bool open_wire(uxrCustomTransport *) {
  tide_rtps_agent_config_t config = tide_rtps_memory;
  config.start = start;
  config.event = [](void *, const tide_rtps_event_t *event) {
    if (event->kind != TIDE_RTPS_EVENT_TOO_LARGE) return;
    World::current->too_large.emplace_back(event->local->topic, event->count);
  };
  tide_rtps_agent_init(&World::current->agent, &config);
  return true;
}
bool close_wire(uxrCustomTransport *) {
  World &world = *World::current;
  tide_rtps_agent_close(&world.agent, world.network.now);
  world.network.run(0);  // the host is told that the participant ends
  world.place.is_on = false;
  return true;
}
size_t write_wire(uxrCustomTransport *, const uint8_t *bytes, size_t count, uint8_t *) {
  World &world = *World::current;
  const std::vector<uint8_t> exact(bytes, bytes + count);  // so that a sanitizer detects a read beyond the end
  if (world.network.dice.chance(world.link_loss)) return count;
  const auto write = [&] {
    return tide_rtps_agent_write(&world.agent, exact.data(), count, world.network.now, 5'000'000'000);
  };
  const bool taken = write();
  if (taken && world.network.dice.chance(world.link_duplication)) write();
  return taken ? count : 0;
}
size_t read_wire(uxrCustomTransport *, uint8_t *bytes, size_t, int timeout_ms, uint8_t *) {
  World &world = *World::current;
  const size_t length = world.read(bytes, timeout_ms * kMs);
  return length != 0 && world.network.dice.chance(world.link_loss) ? 0 : length;
}

// The board's program. It keeps the messages that it receives. Its timer publishes a number. Its service returns the
// negated request, and passes each request on to a service of the host.
struct Program {
  explicit Program(bool adds_service = true) {
    current = this;
    rcl_allocator_t allocator = rcl_get_default_allocator();
    rcl_init_options_t options = rcl_get_zero_initialized_init_options();
    expect(rcl_init_options_init(&options, allocator));
    expect(rmw_uros_options_set_custom_transport(false, nullptr, open_wire, close_wire, write_wire, read_wire,
                                                 rcl_init_options_get_rmw_init_options(&options)));
    expect(rclc_support_init_with_options(&support, 0, nullptr, &options, &allocator));
    expect(rclc_node_init_default(&node, "board", "robot", &support));
    const auto *number_type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, Int32);
    const auto *array_type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, UInt8MultiArray);
    expect(rclc_publisher_init_default(&up, &node, number_type, "/up"));
    expect(rclc_subscription_init_default(&down, &node, number_type, "/down"));
    rmw_qos_profile_t deep = rmw_qos_profile_default;
    deep.depth = 100;  // the session drops no sample for a newer one
    expect(rclc_subscription_init(&low, &node, array_type, "/low", &deep));
    expect(rclc_executor_init(&executor, &support.context, 5, &allocator));
    expect(rclc_timer_init_default(&timer, &support, RCL_MS_TO_NS(10), [](rcl_timer_t *, int64_t) {
      std_msgs__msg__Int32 message{};
      message.data = ++current->sent;
      if (current->sent <= current->wanted) EXPECT_EQ(rcl_publish(&current->up, &message, nullptr), RCL_RET_OK);
    }));
    expect(rclc_executor_add_timer(&executor, &timer));
    bytes.data.data = storage;
    bytes.data.capacity = sizeof storage;
    const auto on_number = [](const void *message) {
      current->numbers.push_back(static_cast<const std_msgs__msg__Int32 *>(message)->data);
      current->order.emplace_back("urgent");
    };
    const auto on_bytes = [](const void *message) {
      const auto *array = static_cast<const std_msgs__msg__UInt8MultiArray *>(message);
      current->sizes.push_back(array->data.size);
      current->order.emplace_back("low");
    };
    expect(rclc_executor_add_subscription(&executor, &down, &heard, on_number, ON_NEW_DATA));
    expect(rclc_executor_add_subscription(&executor, &low, &bytes, on_bytes, ON_NEW_DATA));
    expect(tide_rclc_subscription_set_priority(&down, TIDE_PRIORITY(2, 0)));
    if (!adds_service) return;
    const auto *set = ROSIDL_GET_SRV_TYPE_SUPPORT(std_srvs, srv, SetBool);
    expect(rclc_service_init_default(&service, &node, set, "/served"));
    expect(rclc_client_init_default(&client, &node, set, "/asked"));
    expect(rclc_executor_add_service(&executor, &service, &request, &response, [](const void *given, void *made) {
      const bool data = static_cast<const std_srvs__srv__SetBool_Request *>(given)->data;
      static_cast<std_srvs__srv__SetBool_Response *>(made)->success = !data;
      std_srvs__srv__SetBool_Request passed_on{data};
      int64_t number = 0;
      expect(rcl_send_request(&current->client, &passed_on, &number));
    }));
    expect(rclc_executor_add_client_with_request_id(
        &executor, &client, &reply, [](const void *given, rmw_request_id_t *id) {
          const bool success = static_cast<const std_srvs__srv__SetBool_Response *>(given)->success;
          current->replies.emplace_back(id->sequence_number, success);
        }));
  }
  ~Program() { end(); }
  void end() {
    if (current == nullptr) return;
    expect(rclc_executor_fini(&executor));
    expect(rclc_support_fini(&support));
    current = nullptr;
  }
  static void expect(rcl_ret_t result) {
    if (result != RCL_RET_OK) throw std::runtime_error(tide_status_text(tide_rclc_last_status()));
  }
  bool spin(
      int64_t duration_ns, const std::function<bool()> &until = [] { return false; }) {
    const int64_t end = World::current->network.now + duration_ns;
    while (!until()) {
      if (World::current->network.now >= end) return false;
      (void)rclc_executor_spin_some(&executor, kMs);
    }
    return true;
  }
  static Program *current;
  rclc_support_t support{};
  rcl_node_t node = rcl_get_zero_initialized_node();
  rcl_publisher_t up = rcl_get_zero_initialized_publisher();
  rcl_subscription_t down = rcl_get_zero_initialized_subscription(), low = rcl_get_zero_initialized_subscription();
  rcl_service_t service = rcl_get_zero_initialized_service();
  rcl_client_t client = rcl_get_zero_initialized_client();
  rcl_timer_t timer = rcl_get_zero_initialized_timer();
  rclc_executor_t executor = rclc_executor_get_zero_initialized_executor();
  std_msgs__msg__Int32 heard{};
  std_msgs__msg__UInt8MultiArray bytes{};
  uint8_t storage[4000];
  std_srvs__srv__SetBool_Request request{};
  std_srvs__srv__SetBool_Response response{}, reply{};
  int32_t sent = 0, wanted = 0;
  std::vector<int32_t> numbers;
  std::vector<size_t> sizes;
  std::vector<std::string> order;
  std::vector<std::pair<int64_t, bool>> replies;
};
Program *Program::current = nullptr;

std::vector<uint8_t> array_bytes(size_t size) {  // layout without dimensions, offset 0, data
  std::vector<uint8_t> bytes(12 + size);
  const auto count = static_cast<uint32_t>(size);
  memcpy(bytes.data() + 8, &count, 4);
  return bytes;
}

void for_each_seed(uint64_t few, const std::function<void(uint64_t)> &test) {
  const uint64_t first = environment("TIDE_FIRST_SEED", 1);
  const uint64_t count = environment("TIDE_SEEDS", few);
  for (uint64_t seed = first; seed < first + count && !testing::Test::HasFailure(); seed++) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test(seed);
  }
}

// True if both sides know each other's endpoints. Tables may still contain earlier participants, which do not count.
bool is_matched(World &world) {
  const auto answered = [](const tide_participant_t &one, const tide_participant_t &other) {
    size_t count = 0;
    for (size_t i = 0; i < one.config.match_count; i++) {
      const tide_rtps_match_t &match = one.config.matches[i];
      count += match.local != nullptr && match.proxy.answered &&
               memcmp(one.config.peers[match.peer].prefix, other.config.prefix, TIDE_RTPS_PREFIX_BYTES) == 0;
    }
    return count;
  };
  const size_t wanted = Program::current->service.impl == nullptr ? 3 : 7;
  const tide_participant_t &board = world.agent.participant, &host = world.host.participant;
  return answered(board, host) == wanted && answered(host, board) == wanted;
}

tide::test::RtpsFaults faults(RtpsNetwork &network) {
  return {static_cast<int>(network.dice.between(0, 10)), static_cast<int>(network.dice.between(0, 10)),
          static_cast<int>(network.dice.between(0, 10))};
}

std::vector<int32_t> received(const RtpsReader &reader) {
  std::vector<int32_t> numbers;
  for (const RtpsReader::Sample &sample : reader.received) numbers.push_back(number_of(sample.bytes));
  return numbers;
}

std::vector<int32_t> from_one_to(int32_t last) {
  std::vector<int32_t> numbers;
  for (int32_t number = 1; number <= last; number++) numbers.push_back(number);
  return numbers;
}

// Whatever the network does, reliable samples arrive in both directions once and in order, and requests of both sides
// are answered.
TEST(Wire, TopicsAndServicesBothWays) {
  for_each_seed(30, [](uint64_t seed) {
    World world(seed);
    Program board;
    world.network.faults = faults(world.network);
    ASSERT_TRUE(board.spin(60'000 * kMs, [&] { return is_matched(world); }));
    // The board's history has eight samples, and its timer a period of 10 ms, so with many losses it may outrun the
    // host.
    world.network.faults.loss /= 4;
    if (seed % 2 == 0) {  // a port may lose messages between agent and session
      world.link_loss = 5;
      world.link_duplication = 10;
    }
    board.sent = 0;
    board.wanted = 40;
    for (int32_t number = 1; number <= 40; number++) {
      world.write(*world.down, number_bytes(number));
      board.spin(world.network.dice.between(0, 10) * kMs);
    }
    EXPECT_TRUE(board.spin(60'000 * kMs, [&] { return board.numbers.size() == 40 && board.sent >= 40; }));
    EXPECT_EQ(board.numbers, from_one_to(40));
    EXPECT_TRUE(board.spin(
        60'000 * kMs, [&] { return !world.up->received.empty() && number_of(world.up->received.back().bytes) == 40; }));
    const std::vector<int32_t> heard = received(*world.up);
    EXPECT_EQ(heard.size() + world.host.participant.counters.lost, 40u);
    EXPECT_TRUE(std::is_sorted(heard.begin(), heard.end()));
    const tide_rtps_sample_identity_t own{
        tide_participant_guid(&world.host.participant, &world.replied->reader.endpoint), 0};
    for (int i = 0; i < 5; i++) {
      const auto index = static_cast<size_t>(i);
      world.write(*world.asking, {static_cast<uint8_t>(i % 2)}, &own);
      ASSERT_TRUE(board.spin(60'000 * kMs, [&] { return world.replied->received.size() == index + 1; }));
      EXPECT_EQ(world.replied->received.back().bytes[0], i % 2 == 0);
      EXPECT_EQ(world.replied->received.back().related.sequence, world.asking->writer.last);
      EXPECT_TRUE(tide_guid_equal(&world.replied->received.back().related.guid, &own.guid));
      ASSERT_TRUE(board.spin(60'000 * kMs, [&] { return world.served->received.size() == index + 1; }));
      const RtpsReader::Sample &request = world.served->received.back();
      EXPECT_EQ(request.bytes[0], i % 2);
      const tide_rtps_sample_identity_t of{request.related.guid, request.sequence};
      std::vector<uint8_t> answer(9);
      answer[0] = i % 2 == 0;
      answer[4] = 1;
      tide_rtps_sample_identity_t stranger = of;
      stranger.guid.entity ^= 0x100;
      std::vector<uint8_t> other = answer;
      other[0] = !answer[0];
      world.write(*world.serving, other, &stranger);  // another client's
      world.write(*world.serving, answer, &of);
      ASSERT_TRUE(board.spin(60'000 * kMs, [&] { return board.replies.size() == index + 1; }));
      EXPECT_EQ(board.replies.back(), (std::pair<int64_t, bool>{i + 1, i % 2 == 0}));
    }
    const tide_rtps_agent_counters_t &counters = world.agent.counters;
    EXPECT_EQ(counters.malformed + counters.unsupported + counters.unknown + counters.dropped, 0u);
    EXPECT_EQ(world.agent.participant.counters.malformed, 0u);
    EXPECT_EQ(tide_rclc_support_session(&board.support)->counters.reconnects, 0u);
  });
}

// While a callback does not run, its samples occupy no frames of other readers, and none is lost: the host keeps the
// samples that the board refuses.
TEST(Wire, WhatTheExecutorDoesNotTakeWaitsAtTheHost) {
  for_each_seed(20, [](uint64_t seed) {
    World world(seed);
    Program board(false);
    world.network.faults = faults(world.network);
    ASSERT_TRUE(board.spin(60'000 * kMs, [&] { return is_matched(world); }));
    for (int i = 0; i < 30; i++) world.write(*world.low, array_bytes(static_cast<size_t>(i)));
    world.network.run(2000 * kMs);  // nothing is processed meanwhile
    EXPECT_GT(world.agent.counters.refused, 0u);
    world.write(*world.down, number_bytes(1));
    world.network.run(2000 * kMs);
    EXPECT_TRUE(board.spin(60'000 * kMs, [&] { return board.order.size() == 31; }));
    ASSERT_EQ(board.sizes.size(), 30u);
    for (size_t i = 0; i < 30; i++) EXPECT_EQ(board.sizes[i], i);
    EXPECT_EQ(board.order[0], "urgent");  // although it was sent last
    EXPECT_EQ(world.agent.participant.counters.lost, 0u);
  });
}

// On a network without faults, waiting samples arrive as fast as the program takes them, and not only when host or
// board try again.
TEST(Wire, WhatWaitsComesAtOnce) {
  World world(1);
  Program board(false);
  ASSERT_TRUE(board.spin(60'000 * kMs, [&] { return is_matched(world); }));
  for (int i = 0; i < 30; i++) world.write(*world.low, array_bytes(10));
  world.network.run(3000 * kMs);
  EXPECT_GT(world.agent.counters.refused, 0u);
  const int64_t begin = world.network.now;
  EXPECT_TRUE(board.spin(60'000 * kMs, [&] { return board.order.size() == 30; }));
  EXPECT_LT(world.network.now - begin, 400 * kMs);
}

// A reader that keeps one sample gets a new one after each run of a slow callback, whatever the writer's history still
// holds.
TEST(Wire, ASlowCallbackGetsNewSamples) {
  static std::vector<int64_t> written, ages;
  for (const bool is_reliable : {true, false}) {
    SCOPED_TRACE(is_reliable ? "reliable" : "best effort");
    World world(1);
    Program board(false);
    ASSERT_TRUE(board.spin(60'000 * kMs, [&] { return is_matched(world); }));
    written.clear();
    ages.clear();
    const auto *number_type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, Int32);
    rmw_qos_profile_t last = is_reliable ? rmw_qos_profile_default : rmw_qos_profile_sensor_data;
    last.depth = 1;
    Program::expect(rclc_executor_remove_subscription(&board.executor, &board.down));
    Program::expect(rcl_subscription_fini(&board.down, &board.node));
    Program::expect(rclc_subscription_init(&board.down, &board.node, number_type, "/down", &last));
    const auto slow = [](const void *message) {
      const auto number = static_cast<size_t>(static_cast<const std_msgs__msg__Int32 *>(message)->data);
      World &now = *World::current;
      ages.push_back(now.network.now - written[number]);
      for (int step = 0; step < 20; step++) {
        now.write(*now.down, number_bytes(static_cast<int32_t>(written.size())));
        written.push_back(now.network.now);
        now.network.run(10 * kMs);
      }
    };
    Program::expect(rclc_executor_add_subscription(&board.executor, &board.down, &board.heard, slow, ON_NEW_DATA));
    ASSERT_TRUE(board.spin(60'000 * kMs, [&] {
      return tide_participant_matched(&world.host.participant, &world.down->writer.endpoint) == 1;
    }));
    board.spin(100 * kMs);
    written.push_back(world.network.now);
    world.write(*world.down, number_bytes(0));
    ASSERT_TRUE(board.spin(60'000 * kMs, [&] { return ages.size() >= 30; }));
    EXPECT_LE(*std::max_element(ages.begin(), ages.end()), 200 * kMs);
  }
}

// A best-effort reader keeps its newest samples, also if fewer than its depth fit the outbox.
TEST(Wire, AFullOutboxKeepsTheNewestOfABestEffortReader) {
  World world(1);
  Program board(false);
  const auto *number_type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, Int32);
  rmw_qos_profile_t deep = rmw_qos_profile_sensor_data;
  deep.depth = 30;
  Program::expect(rclc_executor_remove_subscription(&board.executor, &board.down));
  Program::expect(rcl_subscription_fini(&board.down, &board.node));
  Program::expect(rclc_subscription_init(&board.down, &board.node, number_type, "/down", &deep));
  const auto on_number = [](const void *message) {
    Program::current->numbers.push_back(static_cast<const std_msgs__msg__Int32 *>(message)->data);
  };
  Program::expect(rclc_executor_add_subscription(&board.executor, &board.down, &board.heard, on_number, ON_NEW_DATA));
  ASSERT_TRUE(board.spin(60'000 * kMs, [&] {
    return tide_participant_matched(&world.host.participant, &world.down->writer.endpoint) == 1;
  }));
  board.spin(100 * kMs);
  for (int32_t number = 1; number <= 40; number++) {
    world.write(*world.down, number_bytes(number));
    world.network.run(10 * kMs);
  }
  board.spin(1000 * kMs);
  ASSERT_FALSE(board.numbers.empty());
  EXPECT_EQ(board.numbers.back(), 40);
  EXPECT_GE(board.numbers.size(), 8u);
  EXPECT_EQ(board.numbers.front() + static_cast<int32_t>(board.numbers.size()), 41) << "none is missing between";
}

// Large samples travel in fragments of RTPS on the network, and in fragments of XRCE between agent and session.
TEST(Wire, LargeSamplesArriveWhole) {
  for_each_seed(20, [](uint64_t seed) {
    World world(seed);
    Program board(false);
    world.network.faults = faults(world.network);
    ASSERT_TRUE(board.spin(60'000 * kMs, [&] { return is_matched(world); }));
    std::vector<size_t> sizes;
    for (int i = 0; i < 10; i++) {
      sizes.push_back(static_cast<size_t>(world.network.dice.between(0, 2900)));
      world.write(*world.low, array_bytes(sizes.back()));
      board.spin(world.network.dice.between(0, 30) * kMs);
    }
    EXPECT_TRUE(board.spin(60'000 * kMs, [&] { return board.sizes.size() == 10; }));
    EXPECT_EQ(board.sizes, sizes);
  });
}

// The program hears of a sample that is too long for the history or for the outbox only by an event. What remains of
// the sample is skipped.
TEST(Wire, WhatIsTooLargeIsReported) {
  World world(1);
  Program board(false);
  ASSERT_TRUE(board.spin(60'000 * kMs, [&] { return is_matched(world); }));
  const auto *array_type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, UInt8MultiArray);
  Program::expect(rcl_publisher_fini(&board.up, &board.node));
  Program::expect(rclc_publisher_init_default(&board.up, &board.node, array_type, "/big"));
  for (const size_t size : {size_t{3800}, size_t{1000}}) {
    board.bytes.data.size = size;
    Program::expect(rcl_publish(&board.up, &board.bytes, nullptr));
  }
  board.spin(100 * kMs);
  ASSERT_EQ(world.too_large.size(), 1u);
  EXPECT_EQ(world.too_large[0].first, "rt/big");
  EXPECT_GT(world.too_large[0].second, 3000);
  EXPECT_EQ(world.agent.counters.too_large, 1u);
  EXPECT_EQ(world.agent.counters.unsupported, 0u);
  EXPECT_EQ(world.agent.config.outputs[0].writer.last, 1) << "the second one";
  Program::expect(rclc_executor_remove_subscription(&board.executor, &board.low));
  Program::expect(rcl_subscription_fini(&board.low, &board.node));
  Program::expect(rclc_subscription_init_best_effort(&board.low, &board.node, array_type, "/low"));
  EXPECT_TRUE(board.spin(60'000 * kMs, [&] {
    world.write(*world.low, array_bytes(600));
    return world.too_large.size() > 1;
  }));
  EXPECT_EQ(world.too_large.back(), (std::pair<std::string, int64_t>{"rt/low", 612}));
  EXPECT_EQ(world.agent.counters.dropped, world.too_large.size() - 1);
}

TEST(Wire, BothSidesRestart) {
  for_each_seed(20, [](uint64_t seed) {
    World world(seed);
    world.network.faults = faults(world.network);
    auto board = std::make_unique<Program>();
    for (int round = 0; round < 3; round++) {
      if (round > 0 && world.network.dice.chance(50)) {
        board.reset();
        board = std::make_unique<Program>();
      } else if (round > 0) {
        world.start_host();
      }
      board->numbers.clear();
      ASSERT_TRUE(board->spin(120'000 * kMs, [&] { return is_matched(world); })) << "round " << round;
      for (int32_t number = 1; number <= 3; number++) world.write(*world.down, number_bytes(number));
      EXPECT_TRUE(board->spin(60'000 * kMs, [&] { return board->numbers.size() == 3; })) << "round " << round;
      EXPECT_EQ(board->numbers, from_one_to(3));
      world.up->received.clear();
      board->sent = 0;
      board->wanted = 3;
      EXPECT_TRUE(board->spin(60'000 * kMs, [&] { return world.up->received.size() == 3; })) << "round " << round;
    }
  });
}

// A request waits at most five seconds for a server. A server that appears after that, or after another one has taken
// the request, does not get it.
TEST(Wire, ARequestWaitsForItsServer) {
  for_each_seed(20, [](uint64_t seed) {
    World world(seed);
    Program board;
    world.network.faults = faults(world.network);
    world.host.is_on = false;
    const std_srvs__srv__SetBool_Request request{true};
    int64_t number = 0;
    Program::expect(rcl_send_request(&board.client, &request, &number));
    const int64_t patience = world.network.dice.between(0, 1) == 0 ? 1000 : 6000;
    board.spin(patience * kMs);
    world.host.is_on = true;
    const bool is_heard = board.spin(10'000 * kMs, [&] { return !world.served->received.empty(); });
    EXPECT_EQ(is_heard, patience < 5000);
    world.start_host();
    EXPECT_TRUE(board.spin(60'000 * kMs, [&] { return is_matched(world); }));
    board.spin(1000 * kMs);
    EXPECT_TRUE(world.served->received.empty());
  });
}

// A program hears of each request and reply that is dropped because nobody took it: by the error callback, the counters
// and the diagnostics.
TEST(Wire, WhatNobodyTakesIsReported) {
  World world(1);
  Program board;
  static std::vector<std::string> errors;
  errors.clear();
  rmw_uros_set_error_handling_callback([](auto, auto, const rmw_uros_error_context_t context, const char *, int) {
    errors.emplace_back(context.description);
  });
  tide_client_counters_t client{};
  tide_service_counters_t service{};
  const auto count = [&] {
    Program::expect(tide_rclc_client_get_counters(&board.client, &client));
    Program::expect(tide_rclc_service_get_counters(&board.service, &service));
    EXPECT_EQ(errors,
              std::vector<std::string>(client.undelivered + service.undelivered, tide_status_text(TIDE_ERROR_EXPIRED)));
    EXPECT_EQ(tide_rclc_support_session(&board.support)->counters.undelivered, errors.size());
    EXPECT_EQ(world.agent.participant.counters.unheard, errors.size());
  };
  world.host.is_on = false;
  const std_srvs__srv__SetBool_Request request{true};
  int64_t number = 0;
  for (int i = 0; i < 9; i++) {
    Program::expect(rcl_send_request(&board.client, &request, &number));
    board.spin(10 * kMs);
  }
  count();
  EXPECT_EQ(client.undelivered, 1u) << "the history has eight samples";
  board.spin(4800 * kMs);
  count();
  EXPECT_EQ(client.undelivered, 1u);
  board.spin(200 * kMs);
  count();
  EXPECT_EQ(client.undelivered, 9u);

  world.host.is_on = true;
  ASSERT_TRUE(board.spin(60'000 * kMs, [&] { return is_matched(world); }));
  tide_rtps_sample_identity_t asker{tide_participant_guid(&world.host.participant, &world.replied->reader.endpoint), 0};
  for (const uint32_t other : {0u, 0x4200u}) {  // the second one has no reader for its reply
    asker.guid.entity ^= other;
    world.write(*world.asking, {1}, &asker);
    ASSERT_TRUE(board.spin(1000 * kMs, [&] { return !world.replied->received.empty(); }));
    board.spin(6000 * kMs);
    count();
    EXPECT_EQ(service.undelivered, other == 0 ? 0u : 1u);
  }
  EXPECT_EQ(client.undelivered, 9u) << "the host has taken the requests that the service passed on";
  rmw_uros_set_error_handling_callback(nullptr);
}

// With the RTPS wire, the board itself contains the agent, whose time is the board's wall clock.
TEST(Wire, TheSessionIsAliveAndKnowsTheTime) {
  World world(1);
  Program board(false);
  EXPECT_EQ(rmw_uros_ping_agent(100, 1), RMW_RET_OK);
  EXPECT_EQ(rmw_uros_sync_session(100), RMW_RET_OK);
  EXPECT_NEAR(static_cast<double>(rmw_uros_epoch_nanos()), static_cast<double>(world.network.now + 5'000'000'000), 2e6);
  board.spin(60'000 * kMs);
  EXPECT_EQ(tide_rclc_support_session(&board.support)->counters.reconnects, 0u);
  const tide_rtps_node_t *node = world.agent.participant.nodes;
  ASSERT_NE(node, nullptr);
  EXPECT_STREQ(node->name_space, "/robot");
  EXPECT_STREQ(node->name, "board");
  // An object for which there is no memory is refused; the error names the limit, as with other agents.
  rcl_publisher_t more = rcl_get_zero_initialized_publisher();
  const auto *number = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, Int32);
  EXPECT_NE(rclc_publisher_init_default(&more, &board.node, number, "/more"), RCL_RET_OK);
}

}  // namespace compat_rtps_test

// The port of the board: its clock is that of the simulated network, and time passes while the board waits.
extern "C" {
uint32_t tide_bare_clock_us(void) {
  const auto *world = compat_rtps_test::World::current;
  return static_cast<uint32_t>((world == nullptr ? compat_rtps_test::World::last_ns : world->network.now) / 1000);
}
void tide_bare_idle(uint32_t most_us) { compat_rtps_test::World::current->network.run(int64_t{most_us} * 1000); }
uintptr_t tide_bare_mask(void) { return 0; }
void tide_bare_unmask(uintptr_t) {}
int tide_port_discover_agent(uint16_t, int, char *, uint16_t *) { return TIDE_ERROR_UNSUPPORTED; }
}
