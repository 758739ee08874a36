// SPDX-License-Identifier: Apache-2.0
// Services of the program: requests in, responses out, at once and later, under overload.
#include "rmw_microros/rmw_microros.h"
#include "services.h"

namespace tide::compat::test::service_test {

class Serving : public Services {
 protected:
  void SetUp() override {
    Services::SetUp();
    ASSERT_OK(rclc_service_init_default(&service, &node, add_type(), "sums"));
  }
  std::vector<int64_t> sums() {
    std::vector<int64_t> all;
    for (const auto &reply : server.replies("/sums")) all.push_back(word_of(reply.payload));
    return all;
  }
  // Publishes until no node is free. The agent is muted, so nothing is acknowledged.
  void fill_pool(rcl_publisher_t *publisher) {
    ASSERT_OK(rclc_publisher_init_default(publisher, &node, int32_type(), "filling"));
    ASSERT_OK(tide_rclc_publisher_set_wait_ms(publisher, 0));
    server.mute(true);
    const std_msgs__msg__Int32 number = {7};
    int sent = 0;
    while (rcl_publish(publisher, &number, nullptr) == RCL_RET_OK) ASSERT_LT(++sent, 100);
    ASSERT_EQ(tide_rclc_last_status(), TIDE_ERROR_FULL);
  }

  rcl_service_t service{};
  Request request{};
  Response response{};
};

TEST_F(Serving, AnswersEachAskerAtItsName) {
  ASSERT_OK(rclc_executor_add_service(&executor, &service, &request, &response, add));
  for (uint8_t asker = 1; asker <= 3; asker++) ASSERT_TRUE(ask("/sums", asker, 1000, identity_of(asker, 70000)));
  ASSERT_TRUE(spin_until([&] { return server.replies("/sums").size() == 3; }));
  for (uint8_t asker = 1; asker <= 3; asker++) {
    const auto reply = server.replies("/sums")[asker - 1u];
    EXPECT_EQ(word_of(reply.payload), 1000 + asker);
    EXPECT_EQ(reply.identity, identity_of(asker, 70000));
  }
  EXPECT_EQ(counters_of(service).received, 3u);
}

TEST_F(Serving, IsNamedAsRos2NamesIt) {
  EXPECT_TRUE(server.heard("example_interfaces::srv::dds_::AddTwoInts_Request_"));
  EXPECT_TRUE(server.heard("example_interfaces::srv::dds_::AddTwoInts_Response_"));
  EXPECT_TRUE(server.heard("rq/sumsRequest"));
  EXPECT_TRUE(server.heard("rr/sumsReply"));
  rcl_service_t local{};
  ASSERT_OK(rclc_service_init_default(&local, &node, add_type(), "~/sums"));
  EXPECT_TRUE(server.heard("rq/node/sumsRequest"));
}

TEST_F(Serving, CallbacksGetTheRequestIdOrTheContext) {
  static rmw_request_id_t seen;
  ASSERT_OK(rclc_executor_add_service_with_request_id(&executor, &service, &request, &response,
                                                      [](const void *in, rmw_request_id_t *id, void *out) {
                                                        seen = *id;
                                                        add(in, out);
                                                      }));
  rcl_service_t other{};
  ASSERT_OK(rclc_service_init_best_effort(&other, &node, add_type(), "others"));
  int calls = 0;
  Request other_request{};
  Response other_response{};
  ASSERT_OK(rclc_executor_add_service_with_context(
      &executor, &other, &other_request, &other_response,
      [](const void *in, void *out, void *context) {
        ++*static_cast<int *>(context);
        add(in, out);
      },
      &calls));
  ASSERT_TRUE(ask("/sums", 1, 2, identity_of(5, 9)));
  ASSERT_TRUE(ask("/others", 3, 4, identity_of(6, 9)));
  ASSERT_TRUE(spin_until([&] { return server.replies("/sums").size() == 1 && server.replies("/others").size() == 1; }));
  EXPECT_EQ(seen.sequence_number, 3LL << 32 | 9);
  EXPECT_EQ(static_cast<uint8_t>(seen.writer_guid[1]), 5 + 16);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(word_of(server.replies("/others")[0].payload), 7);
}

TEST_F(Serving, ResponsesMayComeLaterAndInAnyOrder) {
  static std::vector<std::pair<rmw_request_id_t, int64_t>> asked;
  static rcl_service_t *self;
  asked.clear();
  self = &service;
  ASSERT_OK(rclc_executor_add_service_with_request_id(&executor, &service, &request, &response,
                                                      [](const void *in, rmw_request_id_t *id, void *) {
                                                        asked.emplace_back(*id, static_cast<const Request *>(in)->a);
                                                        EXPECT_OK(tide_rclc_service_defer(self));
                                                      }));
  for (uint8_t asker = 1; asker <= 3; asker++) ASSERT_TRUE(ask("/sums", asker, 0, identity_of(asker, asker)));
  ASSERT_TRUE(spin_until([&] { return asked.size() == 3; }));
  EXPECT_TRUE(server.replies("/sums").empty());
  for (const size_t place : {2u, 0u, 1u}) {
    Response late = {asked[place].second * 100};
    EXPECT_OK(rcl_send_response(&service, &asked[place].first, &late));
  }
  ASSERT_TRUE(eventually([&] { return server.replies("/sums").size() == 3; }));
  EXPECT_EQ(sums(), (std::vector<int64_t>{300, 100, 200}));
  EXPECT_EQ(server.replies("/sums")[0].identity, identity_of(3, 3));
}

// The executor sends the response, so no call of the program can return the error of this.
TEST_F(Serving, AResponseThatIsTooLongReachesTheErrorHandlerAndTheSpin) {
  static int told;
  told = 0;
  rcl_service_t blobs{};
  ASSERT_OK(rclc_service_init_best_effort(&blobs, &node, blob_type(), "blobs"));
  test_interfaces__srv__Blob_Request in{};
  test_interfaces__srv__Blob_Response out{};
  ASSERT_OK(rclc_executor_add_service(&executor, &blobs, &in, &out, [](const void *, void *given) {
    static_cast<test_interfaces__srv__Blob_Response *>(given)->data.size = 800;  // a message has 256 octets
  }));
  rmw_uros_set_error_handling_callback([](rmw_uros_error_entity_type_t, rmw_uros_error_source_t,
                                          rmw_uros_error_context_t, const char *, int) { told++; });
  rcl_reset_error();
  ASSERT_TRUE(eventually([&] { return server.ask("/blobs", Octets(4), identity_of(1, 1)); }));
  int refused = 0;
  EXPECT_TRUE(eventually([&] {
    refused += rclc_executor_spin_some(&executor, 5 * kMillisecond) != RCL_RET_OK;
    return told == 1;
  }));
  EXPECT_EQ(refused, 1);
  rmw_uros_set_error_handling_callback(nullptr);
  EXPECT_EQ(tide_rclc_last_status(), TIDE_ERROR_TOO_LARGE);
  EXPECT_EQ(counters_of(blobs).responses_lost, 1u);
}

TEST_F(Serving, WithoutAnExecutorRequestsAreTaken) {
  rmw_service_info_t info{};
  EXPECT_EQ(rcl_take_request_with_info(&service, &info, &request), RCL_RET_SERVICE_TAKE_FAILED);
  ASSERT_TRUE(ask("/sums", 20, 22, identity_of(1, 2)));
  rmw_request_id_t id{};
  ASSERT_TRUE(spin_until([&] { return rcl_take_request(&service, &id, &request) == RCL_RET_OK; }));
  add(&request, &response);
  EXPECT_OK(rcl_send_response(&service, &id, &response));
  ASSERT_TRUE(eventually([&] { return sums() == std::vector<int64_t>{42}; }));
}

TEST_F(Serving, AResponseWaitsForANodeAndNothingIsLost) {
  static int calls;
  calls = 0;
  ASSERT_OK(rclc_executor_add_service(&executor, &service, &request, &response, [](const void *in, void *out) {
    calls++;
    add(in, out);
  }));
  for (uint32_t number = 1; number <= 3; number++) bring("/sums", number, 0, identity_of(1, number));
  rcl_publisher_t publisher{};
  fill_pool(&publisher);
  for (int round = 0; round < 5; round++) EXPECT_OK(rclc_executor_spin_some(&executor, kMillisecond));
  EXPECT_EQ(calls, 1) << "the response of the first waits";
  EXPECT_TRUE(server.replies("/sums").empty());
  server.mute(false);
  ASSERT_TRUE(spin_until([&] { return server.replies("/sums").size() == 3; }));
  EXPECT_EQ(sums(), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(counters_of(service).responses_lost, 0u);
}

TEST_F(Serving, ALateResponseIsRefusedByNameWhenThereIsNoNode) {
  rcl_publisher_t publisher{};
  fill_pool(&publisher);
  rmw_request_id_t id{};
  EXPECT_REFUSED(rcl_send_response(&service, &id, &response), RCL_RET_ERROR, TIDE_ERROR_FULL);
  server.mute(false);
  ASSERT_TRUE(eventually([&] { return rcl_send_response(&service, &id, &response) == RCL_RET_OK; }));
}

TEST_F(Serving, ALateResponseWaitsForAPlaceAsLongAsTheProgramSays) {
  rcl_publisher_t publisher{};
  fill_pool(&publisher);
  rmw_request_id_t id{};
  ASSERT_EQ(rmw_uros_set_service_session_timeout(rcl_service_get_rmw_handle(&service), 10'000), RMW_RET_OK);
  Thread later([&] {
    pass_time(50ms);
    server.mute(false);
  });
  EXPECT_OK(rcl_send_response(&service, &id, &response));
  later.join();
}

TEST_F(Serving, TheTimeoutHoldsNoExecutorUp) {
  ASSERT_OK(rclc_executor_add_service(&executor, &service, &request, &response, add));
  ASSERT_EQ(rmw_uros_set_service_session_timeout(rcl_service_get_rmw_handle(&service), 60'000), RMW_RET_OK);
  bring("/sums", 1, 2, identity_of(1, 1));
  rcl_publisher_t publisher{};
  fill_pool(&publisher);
  const Time begin_ns = now_ns();
  EXPECT_OK(rclc_executor_spin_some(&executor, kMillisecond));
  EXPECT_LT(now_ns() - begin_ns, 30'000'000'000);
  EXPECT_TRUE(server.replies("/sums").empty());
  server.mute(false);
  ASSERT_TRUE(spin_until([&] { return sums() == std::vector<int64_t>{3}; }));
}

TEST_F(Serving, WhatDoesNotFitIsCountedAndTheNextIsServed) {
  ASSERT_OK(rclc_executor_add_service(&executor, &service, &request, &response, add));
  ASSERT_TRUE(eventually([&] { return server.ask("/sums", {}, identity_of(1, 1)); }));
  ASSERT_TRUE(eventually([&] { return server.ask("/sums", {1, 2, 3}, identity_of(1, 2)); }));
  ASSERT_TRUE(ask("/sums", 4, 5, identity_of(1, 3)));
  ASSERT_TRUE(spin_until([&] { return sums() == std::vector<int64_t>{9}; })) << "nonsense is no error of the program";
  EXPECT_EQ(counters_of(service).decode_errors, 2u);
}

TEST_F(Serving, LongRequestsAndResponsesTravelInFragments) {
  rcl_service_t blobs{};
  ASSERT_OK(rclc_service_init_default(&blobs, &node, blob_type(), "blobs"));
  test_interfaces__srv__Blob_Request in{};
  test_interfaces__srv__Blob_Response out{};
  ASSERT_OK(rclc_executor_add_service(&executor, &blobs, &in, &out, [](const void *taken, void *given) {
    const auto *asked = static_cast<const test_interfaces__srv__Blob_Request *>(taken);
    auto *answer = static_cast<test_interfaces__srv__Blob_Response *>(given);
    answer->data.size = asked->data.size;
    for (size_t i = 0; i < asked->data.size; i++) answer->data.data[i] = asked->data.data[asked->data.size - 1 - i];
  }));
  static uint8_t in_memory[900], out_memory[900];
  in.data = {in_memory, 0, sizeof in_memory};
  out.data = {out_memory, 0, sizeof out_memory};
  Octets bytes = {0x84, 0x03, 0, 0};  // the length, 900
  for (int i = 0; i < 900; i++) bytes.push_back(static_cast<uint8_t>(i * 7));
  ASSERT_TRUE(eventually([&] { return server.ask("/blobs", bytes, identity_of(1, 1)); }));
  ASSERT_TRUE(spin_until([&] { return server.replies("/blobs").size() == 1; }));
  Octets expected(bytes.begin(), bytes.begin() + 4);
  expected.insert(expected.end(), bytes.rbegin(), bytes.rend() - 4);
  EXPECT_EQ(server.replies("/blobs")[0].payload, expected);
  EXPECT_FALSE(server.streams_of(TIDE_XRCE_FRAGMENT).empty());
}

TEST_F(Serving, ItsLevelChoosesTheStreamsBothWays) {
  ASSERT_OK(rclc_executor_add_service(&executor, &service, &request, &response, add));
  tide_chain_t chain;
  ASSERT_EQ(tide_chain_init(&chain, "sums", 2, 100'000'000, 100'000'000), TIDE_OK);
  EXPECT_OK(tide_rclc_chain_add_service(&chain, &service));
  EXPECT_EQ(tide_rclc_service_callback(&service)->priority, TIDE_PRIORITY(2, 0));
  ASSERT_TRUE(ask("/sums", 4, 5, identity_of(1, 3)));
  ASSERT_TRUE(spin_until([&] { return sums() == std::vector<int64_t>{9}; }));
  EXPECT_EQ(server.streams_of(TIDE_XRCE_WRITE_DATA), std::vector<uint8_t>{TIDE_STREAM_RELIABLE(2)});
}

TEST_F(Serving, LimitsAndMistakesAreNamed) {
  rcl_service_t more{}, too_many{};
  EXPECT_REFUSED(rclc_service_init_default(&more, &node, add_type(), "1sums"), RCL_RET_SERVICE_NAME_INVALID,
                 TIDE_ERROR_NAME);
  EXPECT_REFUSED(rclc_service_init_default(&more, &node, add_type(), std::string(40, 'x').c_str()),
                 RCL_RET_SERVICE_NAME_INVALID, TIDE_ERROR_CAPACITY_NAMES);
  EXPECT_OK(rclc_service_init_default(&more, &node, add_type(), std::string(36, 'x').c_str()));
  EXPECT_REFUSED(rclc_service_init_default(&too_many, &node, add_type(), "no"), RCL_RET_ERROR,
                 TIDE_ERROR_CAPACITY_SERVICES);
  EXPECT_OK(rcl_service_fini(&more, &node));
  EXPECT_OK(rclc_service_init_default(&too_many, &node, add_type(), "yes"));
  EXPECT_REFUSED(rclc_executor_add_service(&executor, &more, &request, &response, add), RCL_RET_INVALID_ARGUMENT,
                 TIDE_ERROR_ARGUMENT);
  EXPECT_REFUSED(rclc_executor_add_service(&executor, &service, &request, nullptr, add), RCL_RET_INVALID_ARGUMENT,
                 TIDE_ERROR_ARGUMENT);
  EXPECT_OK(rclc_executor_add_service(&executor, &service, &request, &response, add));
  EXPECT_REFUSED(rclc_executor_add_service(&executor, &service, &request, &response, add), RCL_RET_ALREADY_INIT,
                 TIDE_ERROR_EXISTS);
  tide_callback_group_t group = {nullptr};
  ASSERT_OK(tide_rclc_callback_group_init(&group, TIDE_GROUP_REENTRANT));
  EXPECT_REFUSED(tide_rclc_service_set_group(&too_many, &group), RCL_RET_UNSUPPORTED, TIDE_ERROR_UNSUPPORTED);
}

TEST_F(Serving, ComesAndGoes) {
  for (int round = 0; round < 20; round++) {
    ASSERT_OK(rclc_executor_add_service(&executor, &service, &request, &response, add));
    ASSERT_TRUE(ask("/sums", round, 1, identity_of(1, static_cast<uint32_t>(round))));
    ASSERT_TRUE(spin_until([&] { return server.replies("/sums").size() == static_cast<size_t>(round) + 1; }));
    if (round % 2 == 0) {
      ASSERT_OK(rclc_executor_remove_service(&executor, &service));
    }
    const size_t before = server.entities();
    ASSERT_OK(rcl_service_fini(&service, &node));
    ASSERT_TRUE(eventually([&] { return server.entities() == before - 1; }));
    ASSERT_OK(rclc_service_init_default(&service, &node, add_type(), "sums"));
  }
}

}  // namespace tide::compat::test::service_test
