// SPDX-License-Identifier: Apache-2.0
// Clients of services: replies belong to their requests, and what the runtime keeps for requests without a reply.
#include <array>
#include <set>

#include "rmw_microros/rmw_microros.h"
#include "services.h"
#include "tide/pools.h"

namespace tide::compat::test::client_test {

using Replies = std::vector<std::pair<int64_t, int64_t>>;  // sequence number, sum

class Asking : public Services {
 protected:
  void SetUp() override {
    Services::SetUp();
    received.clear();
    ASSERT_OK(rclc_client_init_default(&client, &node, add_type(), "sums"));
  }
  static void on_reply(const void *response, rmw_request_id_t *id) {
    received.emplace_back(id->sequence_number, static_cast<const Response *>(response)->sum);
  }
  void add_client() { ASSERT_OK(rclc_executor_add_client_with_request_id(&executor, &client, &response, on_reply)); }
  int64_t send(int64_t a, int64_t b) {
    const Request request = {a, b};
    int64_t number = 0;
    EXPECT_OK(rcl_send_request(&client, &request, &number));
    return number;
  }
  // The numbers that DDS gave to the arrived requests.
  std::vector<uint64_t> numbers() {
    std::vector<uint64_t> all;
    for (const auto &request : server.requests("/sums")) all.push_back(request.number);
    return all;
  }
  bool await_requests(size_t count) {
    return eventually([&] { return numbers().size() == count; });
  }

  rcl_client_t client{};
  Response response{};
  static Replies received;
};
Replies Asking::received;

TEST_F(Asking, RepliesFindTheirRequestsInAnyOrder) {
  add_client();
  for (int64_t number = 1; number <= 3; number++) EXPECT_EQ(send(number, 10 * number), number);
  ASSERT_TRUE(await_requests(3));
  EXPECT_EQ(server.requests("/sums")[1].payload, words_bytes({2, 20}));
  EXPECT_EQ(counters_of(client).unanswered, 3u);
  for (const size_t place : {2u, 0u, 1u}) {
    ASSERT_TRUE(server.answer("/sums", words_bytes({static_cast<int64_t>(place) * 100}), numbers()[place]));
  }
  ASSERT_TRUE(spin_until([&] { return received.size() == 3; }));
  EXPECT_EQ(received, (Replies{{3, 200}, {1, 0}, {2, 100}}));
  EXPECT_EQ(counters_of(client).unanswered, 0u);
}

TEST_F(Asking, WithoutAnExecutorRepliesAreTaken) {
  rmw_request_id_t id{};
  EXPECT_EQ(rcl_take_response(&client, &id, &response), RCL_RET_CLIENT_TAKE_FAILED);
  EXPECT_EQ(send(1, 2), 1);
  ASSERT_TRUE(await_requests(1));
  ASSERT_TRUE(server.answer("/sums", words_bytes({3}), numbers()[0]));
  ASSERT_TRUE(spin_until([&] { return rcl_take_response(&client, &id, &response) == RCL_RET_OK; }));
  EXPECT_EQ(id.sequence_number, 1);
  EXPECT_EQ(response.sum, 3);
}

TEST_F(Asking, UnansweredRequestsAreBoundedAndCounted) {
  add_client();
  for (int64_t number = 1; number <= 6; number++) EXPECT_EQ(send(number, 0), number);
  ASSERT_TRUE(await_requests(6));
  EXPECT_EQ(counters_of(client).unanswered, 4u);
  EXPECT_EQ(counters_of(client).forgotten, 2u);
  for (const uint64_t number : numbers()) {
    ASSERT_TRUE(server.answer("/sums", words_bytes({static_cast<int64_t>(number)}), number));
    ASSERT_TRUE(spin_until([&] {
      const tide_client_counters_t counters = counters_of(client);
      return counters.received == number && counters.unexpected + received.size() == number;
    }));
  }
  EXPECT_EQ(received, (Replies{{3, 3}, {4, 4}, {5, 5}, {6, 6}}));
  EXPECT_EQ(counters_of(client).unexpected, 2u);
}

TEST_F(Asking, AForgottenRequestLeavesNothing) {
  add_client();
  const int64_t number = send(1, 2);
  EXPECT_OK(tide_rclc_client_forget(&client, number));
  EXPECT_REFUSED(tide_rclc_client_forget(&client, number), RCL_RET_ERROR, TIDE_ERROR_NOT_FOUND);
  EXPECT_EQ(counters_of(client).unanswered, 0u);
  EXPECT_EQ(send(3, 4), 2);
  ASSERT_TRUE(await_requests(2));
  for (const uint64_t one : numbers()) ASSERT_TRUE(server.answer("/sums", words_bytes({9}), one));
  ASSERT_TRUE(spin_until([&] { return !received.empty(); }));
  EXPECT_EQ(received, (Replies{{2, 9}}));
  EXPECT_EQ(counters_of(client).unexpected, 1u);
  EXPECT_REFUSED(tide_rclc_client_forget(&client, 2), RCL_RET_ERROR, TIDE_ERROR_NOT_FOUND);
}

TEST_F(Asking, AFullPoolIsNamedAndLeavesNothing) {
  server.mute(true);
  const Request request = {1, 2};
  int64_t number = 0;
  int sent = 0;
  const Time begin_ns = now_ns();
  while (rcl_send_request(&client, &request, &number) == RCL_RET_OK) ASSERT_LT(++sent, 100);
  EXPECT_EQ(tide_rclc_last_status(), TIDE_ERROR_FULL);
  EXPECT_LT(now_ns() - begin_ns, 500'000'000) << "never waits";
  EXPECT_EQ(counters_of(client).unanswered, 4u);
  EXPECT_EQ(counters_of(client).forgotten, static_cast<uint32_t>(sent) - 4u);
  server.mute(false);
  ASSERT_TRUE(await_requests(static_cast<size_t>(sent)));
}

TEST_F(Asking, ARequestWaitsForAPlaceAsLongAsTheProgramSays) {
  const Request request = {1, 2};
  int64_t number = 0;
  server.mute(true);
  while (rcl_send_request(&client, &request, &number) == RCL_RET_OK) {}
  ASSERT_EQ(rmw_uros_set_client_session_timeout(rcl_client_get_rmw_handle(&client), 60), RMW_RET_OK);
  const Time begin_ns = now_ns();
  EXPECT_REFUSED(rcl_send_request(&client, &request, &number), RCL_RET_ERROR, TIDE_ERROR_FULL);
  EXPECT_GE(now_ns() - begin_ns, 60'000'000);
  ASSERT_EQ(rmw_uros_set_client_session_timeout(rcl_client_get_rmw_handle(&client), 10'000), RMW_RET_OK);
  Thread later([&] {
    pass_time(50ms);
    server.mute(false);
  });
  EXPECT_OK(rcl_send_request(&client, &request, &number));
  later.join();
}

// Threads send more requests than the pool holds. Each request waits for a free entry, arrives once, and has a number
// of its own.
TEST_F(Asking, ThreadsThatWaitForPlacesSendEachRequestOnce) {
  constexpr int64_t kThreads = 4, kRequests = 100;
  ASSERT_EQ(rmw_uros_set_client_session_timeout(rcl_client_get_rmw_handle(&client), 30'000), RMW_RET_OK);
  std::array<std::vector<int64_t>, kThreads> sent;
  std::vector<Thread> threads;
  for (int64_t thread = 0; thread < kThreads; thread++) {
    threads.emplace_back([&, thread] {
      for (int64_t one = 0; one < kRequests; one++) sent[static_cast<size_t>(thread)].push_back(send(thread, one));
    });
  }
  for (Thread &thread : threads) thread.join();
  ASSERT_TRUE(await_requests(kThreads * kRequests));
  std::set<int64_t> all_numbers;
  for (const auto &of_thread : sent) all_numbers.insert(of_thread.begin(), of_thread.end());
  EXPECT_EQ(all_numbers.size(), static_cast<size_t>(kThreads * kRequests));
  std::set<Octets> payloads;
  for (const auto &request : server.requests("/sums")) payloads.insert(request.payload);
  EXPECT_EQ(payloads.size(), static_cast<size_t>(kThreads * kRequests));
}

TEST_F(Asking, ARequestWaitsForItsServer) {
  add_client();
  server.serve(false);
  send(1, 2);
  send(3, 4);
  pass_time(50ms);
  EXPECT_TRUE(numbers().empty());
  server.serve(true);
  ASSERT_TRUE(await_requests(2));
  EXPECT_EQ(server.requests("/sums")[0].payload, words_bytes({1, 2}));
  ASSERT_TRUE(server.answer("/sums", words_bytes({3}), numbers()[0]));
  ASSERT_TRUE(spin_until([&] { return received == Replies{{1, 3}}; }));
}

TEST_F(Asking, LongRequestsTravelInFragments) {
  rcl_client_t blobs{};
  ASSERT_OK(rclc_client_init_default(&blobs, &node, blob_type(), "blobs"));
  static uint8_t memory[900], answer[900];
  for (size_t i = 0; i < sizeof memory; i++) memory[i] = static_cast<uint8_t>(i);
  test_interfaces__srv__Blob_Request request{};
  request.data = {memory, 900, sizeof memory};
  test_interfaces__srv__Blob_Response reply{};
  reply.data = {answer, 0, sizeof answer};
  int64_t number = 0;
  ASSERT_OK(rcl_send_request(&blobs, &request, &number));
  ASSERT_TRUE(eventually([&] { return server.requests("/blobs").size() == 1; }));
  const auto sent = server.requests("/blobs")[0];
  EXPECT_EQ(sent.payload.size(), 904u);
  EXPECT_TRUE(std::equal(memory, memory + 900, sent.payload.begin() + 4));
  ASSERT_TRUE(server.answer("/blobs", sent.payload, sent.number));
  rmw_request_id_t id{};
  ASSERT_TRUE(spin_until([&] { return rcl_take_response(&blobs, &id, &reply) == RCL_RET_OK; }));
  EXPECT_EQ(reply.data.size, 900u);
  EXPECT_TRUE(std::equal(memory, memory + 900, reply.data.data));
}

TEST_F(Asking, AReplyThatDoesNotFitIsReportedAndTheNextIsTaken) {
  rcl_client_t blobs{};
  ASSERT_OK(rclc_client_init_default(&blobs, &node, blob_type(), "blobs"));
  static uint8_t memory[5];
  test_interfaces__srv__Blob_Response reply{};
  reply.data = {memory, 0, sizeof memory};
  static std::vector<size_t> sizes;
  sizes.clear();
  ASSERT_OK(rclc_executor_add_client(&executor, &blobs, &reply, [](const void *taken) {
    sizes.push_back(static_cast<const test_interfaces__srv__Blob_Response *>(taken)->data.size);
  }));
  const test_interfaces__srv__Blob_Request request{};
  int64_t number = 0;
  for (int sent = 0; sent < 2; sent++) ASSERT_OK(rcl_send_request(&blobs, &request, &number));
  ASSERT_TRUE(eventually([&] { return server.requests("/blobs").size() == 2; }));
  ::testing::internal::CaptureStderr();
  for (const size_t octets : {12u, 4u}) {
    Octets bytes(4 + octets);
    bytes[0] = static_cast<uint8_t>(octets);
    ASSERT_TRUE(server.answer("/blobs", bytes, server.requests("/blobs")[octets == 12 ? 0 : 1].number));
  }
  int refused = 0;
  EXPECT_TRUE(eventually([&] {
    if (rclc_executor_spin_some(&executor, kMillisecond) == RCL_RET_ERROR) {
      refused++;
      EXPECT_EQ(tide_rclc_last_status(), TIDE_ERROR_CAPACITY_MESSAGE);
    }
    return !sizes.empty();
  }));
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("was dropped: "), std::string::npos);
  EXPECT_EQ(sizes, std::vector<size_t>{4});
  EXPECT_EQ(refused, 1);
  EXPECT_EQ(counters_of(blobs).decode_errors, 1u);
}

TEST_F(Asking, ItsLevelChoosesTheStream) {
  add_client();
  tide_chain_t chain;
  ASSERT_EQ(tide_chain_init(&chain, "sums", 3, 100'000'000, 100'000'000), TIDE_OK);
  EXPECT_EQ(tide_chain_add_remote(&chain), 0);
  EXPECT_OK(tide_rclc_chain_add_client(&chain, &client));
  EXPECT_EQ(tide_rclc_client_callback(&client)->priority, TIDE_PRIORITY(3, 1));
  send(1, 2);
  ASSERT_TRUE(await_requests(1));
  EXPECT_EQ(server.streams_of(TIDE_XRCE_WRITE_DATA), std::vector<uint8_t>{TIDE_STREAM_RELIABLE(3)});
}

TEST_F(Asking, LimitsAndMistakesAreNamed) {
  rcl_client_t second{}, third{};
  EXPECT_OK(rclc_client_init_best_effort(&second, &node, add_type(), "others"));
  EXPECT_REFUSED(rclc_client_init_default(&third, &node, add_type(), "no"), RCL_RET_ERROR, TIDE_ERROR_CAPACITY_CLIENTS);
  EXPECT_OK(rcl_client_fini(&second, &node));
  EXPECT_FALSE(rcl_client_is_valid(&second));
  EXPECT_OK(rclc_client_init_default(&third, &node, add_type(), "yes"));
  const Request request{};
  int64_t number = 0;
  EXPECT_REFUSED(rcl_send_request(&second, &request, &number), RCL_RET_INVALID_ARGUMENT, TIDE_ERROR_ARGUMENT);
  EXPECT_REFUSED(rcl_send_request(&third, &request, nullptr), RCL_RET_INVALID_ARGUMENT, TIDE_ERROR_ARGUMENT);
}

// ---- with other callbacks ----

// Callbacks of every kind. The order in which they run is recorded by letters: t timer, s subscription, S service, C
// client.
class Ordered : public Asking {
 protected:
  void SetUp() override {
    Asking::SetUp();
    order.clear();
    ASSERT_OK(rclc_service_init_default(&service, &node, add_type(), "own"));
    ASSERT_OK(rclc_subscription_init_default(&subscription, &node, int32_type(), "topic"));
    ASSERT_OK(
        rclc_timer_init_default(&timer, &support, 10 * kMillisecond, [](rcl_timer_t *, int64_t) { order += 't'; }));
  }
  // Registers the callbacks in the reverse of the order of kinds, makes one callback of each kind ready, and runs all
  // in one round.
  void run_one_of_each() {
    ASSERT_OK(rclc_executor_add_client(&executor, &client, &response, [](const void *) { order += 'C'; }));
    ASSERT_OK(rclc_executor_add_service(&executor, &service, &own_request, &own_response,
                                        [](const void *, void *) { order += 'S'; }));
    ASSERT_OK(rclc_executor_add_subscription(
        &executor, &subscription, &message, [](const void *) { order += 's'; }, ON_NEW_DATA));
    ASSERT_OK(rclc_executor_add_timer(&executor, &timer));
    if (prepare) prepare();
    send(1, 2);
    ASSERT_TRUE(await_requests(1));
    size_t before = noted();
    ASSERT_TRUE(server.answer("/sums", words_bytes({3}), numbers()[0]));
    ASSERT_TRUE(eventually([&] { return noted() > before; }));
    bring("/own", 1, 1, identity_of(1, 1));
    before = noted();
    ASSERT_TRUE(eventually([&] { return server.offer("rt/topic", int32_bytes(1)); }));
    ASSERT_TRUE(eventually([&] { return noted() > before; }));
    pass_time(12ms);
    ASSERT_TRUE(spin_until([&] {
      return order.find('C') != std::string::npos && order.find('S') != std::string::npos &&
             order.find('s') != std::string::npos && order.find('t') != std::string::npos;
    }));
  }
  // The kinds of the callbacks, in the order of their first runs.
  static std::string first() {
    std::string kinds;
    for (const char one : order) {
      if (kinds.find(one) == std::string::npos) kinds += one;
    }
    return kinds;
  }

  std::function<void()> prepare;
  rcl_service_t service{};
  rcl_subscription_t subscription{};
  rcl_timer_t timer{};
  Request own_request{};
  Response own_response{};
  std_msgs__msg__Int32 message{};
  static std::string order;
};
std::string Ordered::order;

TEST_F(Ordered, ReadysetRunsTimersSubscriptionsServicesClients) {
  ASSERT_OK(tide_rclc_executor_set_policy(&executor, TIDE_POLICY_READYSET));
  run_one_of_each();
  EXPECT_EQ(first(), "tsSC");
}

TEST_F(Ordered, TideRunsByPriority) {
  prepare = [this] {
    ASSERT_OK(tide_rclc_service_set_priority(&service, TIDE_PRIORITY(2, 9)));
    ASSERT_OK(tide_rclc_client_set_priority(&client, TIDE_PRIORITY(2, 7)));
    ASSERT_OK(tide_rclc_timer_set_priority(&timer, TIDE_PRIORITY(1, 0)));
  };
  run_one_of_each();
  EXPECT_EQ(first(), "SCts");
}

TEST_F(Ordered, BatchRunsOneSampleAHandle) {
  ASSERT_OK(tide_rclc_executor_set_policy(&executor, TIDE_POLICY_BATCH));
  run_one_of_each();
  EXPECT_EQ(order.find('C') < order.find('s'), true) << order << ": packets in the order they came";
  EXPECT_EQ(order.find('S') < order.find('s'), true) << order;
}

TEST_F(Ordered, TriggersSeeTheHandles) {
  ASSERT_OK(rclc_executor_add_service(&executor, &service, &own_request, &own_response,
                                      [](const void *, void *) { order += 'S'; }));
  ASSERT_OK(rclc_executor_add_client(&executor, &client, &response, [](const void *) { order += 'C'; }));
  ASSERT_OK(rclc_executor_set_trigger(&executor, rclc_executor_trigger_one, &client));
  bring("/own", 1, 1, identity_of(1, 1));
  EXPECT_OK(rclc_executor_spin_some(&executor, 20 * kMillisecond));
  EXPECT_EQ(order, "");
  send(1, 2);
  ASSERT_TRUE(await_requests(1));
  ASSERT_TRUE(server.answer("/sums", words_bytes({3}), numbers()[0]));
  ASSERT_TRUE(spin_until([&] { return order.size() == 2; }));
  ASSERT_OK(rclc_executor_remove_client(&executor, &client));
  ASSERT_OK(rclc_executor_remove_service(&executor, &service));
  EXPECT_REFUSED(rclc_executor_remove_service(&executor, &service), RCL_RET_ERROR, TIDE_ERROR_NOT_FOUND);
}

// ---- on lanes ----

TEST_F(Ordered, AnUrgentServiceDoesNotWaitForASlowOne) {
  std::array<tide_lane_settings_t, 2> lanes = {};
  lanes[1].least_level = 2;
  ASSERT_OK(tide_rclc_executor_set_lanes(&executor, lanes.data(), lanes.size()));
  rcl_service_t urgent{};
  ASSERT_OK(rclc_service_init_default(&urgent, &node, add_type(), "urgent"));
  static std::atomic<bool> slow_runs, go_on;
  slow_runs = go_on = false;
  ASSERT_OK(rclc_executor_add_service(&executor, &service, &own_request, &own_response, [](const void *in, void *out) {
    slow_runs = true;
    while (!go_on) pass_time(1ms);
    add(in, out);
  }));
  Request urgent_request{};
  Response urgent_response{};
  ASSERT_OK(rclc_executor_add_service(&executor, &urgent, &urgent_request, &urgent_response, add));
  ASSERT_OK(tide_rclc_service_set_priority(&urgent, TIDE_PRIORITY(2, 0)));
  Spinner spinner(executor);
  ASSERT_TRUE(ask("/own", 1, 2, identity_of(1, 1)));
  EXPECT_TRUE(eventually([&] { return slow_runs.load(); }));
  EXPECT_TRUE(ask("/urgent", 3, 4, identity_of(2, 1)));
  EXPECT_TRUE(eventually([&] { return server.replies("/urgent").size() == 1; }));
  EXPECT_TRUE(server.replies("/own").empty());
  EXPECT_REFUSED(rcl_service_fini(&service, &node), RCL_RET_ERROR, TIDE_ERROR_STATE);
  go_on = true;
  EXPECT_TRUE(eventually([&] { return server.replies("/own").size() == 1; }));
  spinner.stop();
  EXPECT_EQ(word_of(server.replies("/urgent")[0].payload), 7);
  EXPECT_EQ(word_of(server.replies("/own")[0].payload), 3);
}

TEST_F(Ordered, ServicesAndClientsJoinAGroup) {  // what a group does is in exec_tests and sim_host_test
  tide_callback_group_t group = {nullptr};
  ASSERT_OK(tide_rclc_callback_group_init(&group, TIDE_GROUP_EXCLUSIVE));
  ASSERT_OK(tide_rclc_service_set_group(&service, &group));
  ASSERT_OK(tide_rclc_client_set_group(&client, &group));
  ASSERT_OK(rclc_executor_add_service(&executor, &service, &own_request, &own_response, add));
  ASSERT_OK(rclc_executor_add_client(&executor, &client, &response, [](const void *) {}));
  EXPECT_EQ(tide_rclc_service_callback(&service)->group, &group.impl->group);
  EXPECT_EQ(tide_rclc_client_callback(&client)->group, &group.impl->group);
  EXPECT_REFUSED(tide_rclc_callback_group_fini(&group), RCL_RET_ERROR, TIDE_ERROR_STATE);
}

}  // namespace tide::compat::test::client_test
