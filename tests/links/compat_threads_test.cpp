// SPDX-License-Identifier: Apache-2.0
// The micro-ROS interface in several threads, on real sockets. Lanes of an executor and a thread of the program publish
// and call a service, the link has a thread of its own, and the agent is restarted meanwhile. The test is for
// ThreadSanitizer, which detects races.
#include <example_interfaces/srv/add_two_ints.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <rcl/rcl.h>
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <rmw_microros/rmw_microros.h>
#include <std_msgs/msg/int32.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "core/agent.h"
#include "eventually.h"
#include "fake_middleware.h"
#include "tide/executor.h"
#include "tide/rclc.h"
#include "tide/rclc_service.h"

namespace tide::agent::test {
namespace compat_threads_test {

using tide::test::eventually;

Time now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * Time{1'000'000'000} + now.tv_nsec;
}

// An agent in a thread, for one client. It offers what is written to rt/up0 to readers of rt/down0, and answers each
// request with the request's first number.
class UdpAgent {
 public:
  UdpAgent() {
    descriptor_ = socket(AF_INET, SOCK_DGRAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address;
    EXPECT_EQ(bind(descriptor_, reinterpret_cast<sockaddr *>(&address), sizeof address), 0);
    EXPECT_EQ(getsockname(descriptor_, reinterpret_cast<sockaddr *>(&address), &bytes), 0);
    port = std::to_string(ntohs(address.sin_port));
    thread_ = std::thread([this] { run(); });
  }
  ~UdpAgent() {
    over_ = true;
    thread_.join();
    close(descriptor_);
  }
  // Restarts the agent, which loses the session and all entities.
  void restart() { restart_ = true; }

  std::string port;
  std::atomic<int> sessions = 0;

 private:
  void run() {
    while (!over_) {
      if (restart_.exchange(false)) begin();
      pollfd watched = {descriptor_, POLLIN, 0};
      ::poll(&watched, 1, 1);
      std::array<uint8_t, 2048> bytes;
      socklen_t length = sizeof board_;
      ssize_t count = 0;
      while ((count = recvfrom(descriptor_, bytes.data(), bytes.size(), MSG_DONTWAIT,
                               reinterpret_cast<sockaddr *>(&board_), &length)) > 0) {
        agent_->input(1, {bytes.data(), static_cast<size_t>(count)}, now_ns());
      }
      echo();
      send();
      if (!std::exchange(connected_, agent_->has_client(1)) && connected_) sessions++;
    }
    agent_.reset();
  }
  void begin() {
    agent_.reset();
    middleware_.written.clear();
    connected_ = false;
    agent_ = std::make_unique<Agent>(middleware_, Options{});
  }
  void echo() {
    for (const Written &one : std::exchange(middleware_.written, {})) {
      std::string to = one.topic;
      const bool request = to.starts_with("rq/");
      to = request ? "rr/addReply" : to.replace(3, 2, "down");
      std::vector<uint8_t> payload = one.payload;
      if (request) payload.resize(8);
      for (FakeSource *source : middleware_.sources) {
        if (source->topic.name == to) source->offer({payload, one.big_endian, {}, one.number, 0});
      }
    }
  }
  void send() {
    agent_->poll(now_ns());
    std::vector<Endpoint> ready;
    agent_->take_ready(ready);
    tide_frame_parts_t frame;
    while (!ready.empty() && agent_->next(1, now_ns(), frame)) {
      std::vector<uint8_t> bytes(frame.head, frame.head + frame.head_bytes);
      bytes.insert(bytes.end(), frame.body, frame.body + frame.body_bytes);
      bytes.insert(bytes.end(), frame.tail, frame.tail + frame.tail_bytes);
      sendto(descriptor_, bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr *>(&board_), sizeof board_);
      agent_->sent(1, now_ns());
    }
  }

  int descriptor_ = -1;
  sockaddr_in board_{};
  FakeMiddleware middleware_;
  std::unique_ptr<Agent> agent_ = std::make_unique<Agent>(middleware_, Options{});
  bool connected_ = false;
  std::atomic<bool> over_ = false, restart_ = false;
  std::thread thread_;
};

#define ASSERT_OK(call) ASSERT_EQ((call), RCL_RET_OK) << tide_rclc_last_status()
#define EXPECT_OK(call) EXPECT_EQ((call), RCL_RET_OK) << tide_rclc_last_status()

// A chain of the program: a timer publishes a message, which the agent sends back.
struct Chain {
  rcl_publisher_t publisher{};
  rcl_subscription_t subscription{};
  rcl_timer_t timer{};
  std_msgs__msg__Int32 next{}, message{};
  std::atomic<int> received = 0;
};
std::array<Chain, 2> chains;
rcl_client_t client;
example_interfaces__srv__AddTwoInts_Request request;
example_interfaces__srv__AddTwoInts_Response reply;
std::atomic<int> replies;

template <size_t index> void publish(rcl_timer_t *, int64_t) {
  chains[index].next.data++;
  (void)rcl_publish(&chains[index].publisher, &chains[index].next, nullptr);  // refused while the agent is away
  if (index == 1) {
    int64_t number = 0;
    (void)rcl_send_request(&client, &request, &number);
  }
}

TEST(CompatThreads, LanesLinkAndProgramShareASession) {
  UdpAgent agent;
  rcl_allocator_t allocator = rcl_get_default_allocator();
  rcl_init_options_t options = rcl_get_zero_initialized_init_options();
  ASSERT_OK(rcl_init_options_init(&options, allocator));
  rmw_init_options_t *rmw_options = rcl_init_options_get_rmw_init_options(&options);
  ASSERT_EQ(rmw_uros_options_set_udp_address("127.0.0.1", agent.port.c_str(), rmw_options), RMW_RET_OK);
  rclc_support_t support{};
  ASSERT_OK(rclc_support_init_with_options(&support, 0, nullptr, &options, &allocator));
  rcl_node_t node{};
  ASSERT_OK(rclc_node_init_default(&node, "node", "", &support));
  rclc_executor_t executor{};
  ASSERT_OK(rclc_executor_init(&executor, &support.context, 5, &allocator));
  std::array<tide_lane_settings_t, 2> lanes{};
  lanes[1].least_level = 2;
  ASSERT_OK(tide_rclc_executor_set_lanes(&executor, lanes.data(), lanes.size()));

  const rosidl_message_type_support_t *type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, Int32);
  for (size_t index = 0; index < chains.size(); index++) {
    Chain &chain = chains[index];
    const tide_priority_t priority = TIDE_PRIORITY(1 + 2 * index, 0);
    const std::string number = std::to_string(index);
    ASSERT_OK(rclc_publisher_init_default(&chain.publisher, &node, type, ("up" + number).c_str()));
    ASSERT_OK(rclc_subscription_init_default(&chain.subscription, &node, type, ("down" + number).c_str()));
    ASSERT_OK(rclc_timer_init_default(&chain.timer, &support, 2'000'000, index == 0 ? publish<0> : publish<1>));
    ASSERT_OK(rclc_executor_add_timer(&executor, &chain.timer));
    ASSERT_OK(rclc_executor_add_subscription_with_context(
        &executor, &chain.subscription, &chain.message,
        [](const void *, void *context) { static_cast<Chain *>(context)->received++; }, &chain, ON_NEW_DATA));
    ASSERT_OK(tide_rclc_timer_set_priority(&chain.timer, priority));
    ASSERT_OK(tide_rclc_subscription_set_priority(&chain.subscription, priority));
  }
  ASSERT_OK(rclc_client_init_default(&client, &node, ROSIDL_GET_SRV_TYPE_SUPPORT(example_interfaces, srv, AddTwoInts),
                                     "add"));
  ASSERT_OK(rclc_executor_add_client(&executor, &client, &reply, [](const void *) { replies++; }));
  ASSERT_OK(tide_rclc_client_set_priority(&client, TIDE_PRIORITY(3, 1)));  // because chain 0 uses all time of its lane

  std::thread spins([&] { EXPECT_OK(rclc_executor_spin(&executor)); });
  std::atomic<bool> over = false;
  std::thread program([&] {  // a thread without an executor
    std_msgs__msg__Int32 own{};
    while (!over) {
      (void)rcl_publish(&chains[0].publisher, &own, nullptr);
      (void)rmw_uros_epoch_nanos();
      std::this_thread::yield();
    }
  });
  const auto all = [](int count) {
    return eventually(
        [count] { return replies >= count && chains[0].received >= count && chains[1].received >= count; });
  };
  EXPECT_TRUE(all(100)) << replies << " replies, " << chains[0].received << " and " << chains[1].received;
  for (int session = 2; session <= 5; session++) {
    agent.restart();
    EXPECT_TRUE(eventually([&] { return agent.sessions == session; }));
    const int before = std::max({replies.load(), chains[0].received.load(), chains[1].received.load()});
    EXPECT_TRUE(all(before + 10));
  }
  over = true;
  program.join();
  tide_executor_stop(tide_rclc_executor_core(&executor));
  spins.join();
  EXPECT_OK(rclc_executor_fini(&executor));
  EXPECT_OK(rclc_support_fini(&support));
  rcl_init_options_fini(&options);
}

}  // namespace compat_threads_test
}  // namespace tide::agent::test
