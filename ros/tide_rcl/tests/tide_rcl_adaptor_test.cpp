// SPDX-License-Identifier: Apache-2.0
// The adaptor against the real rcl and its DDS: messages in every form, services, guards.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <numeric>
#include <vector>

#include "engine_probe.h"
#include "rcl/graph.h"
#include "rcl_program.h"
#include "tide_rcl/entities.h"

#if defined(__SANITIZE_THREAD__)
// Fast CDR is not instrumented, so its accesses to buffers look like races even if the buffers are handed over
// correctly. Fast CDR calls none of this project's functions, so this suppression hides no race in them.
extern "C" const char *__tsan_default_suppressions() { return "race:libfastcdr.so\n"; }
#endif

namespace tide_rcl {
namespace tide_rcl_adaptor_test {

// The received values; any lane may add one.
class Received {
 public:
  void note(std::int64_t value) {
    const std::lock_guard<std::mutex> lock(mutex_);
    values_.push_back(value);
  }
  std::vector<std::int64_t> values() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return values_;
  }
  std::size_t count() const { return values().size(); }

 private:
  mutable std::mutex mutex_;
  std::vector<std::int64_t> values_;
};

std::vector<std::int64_t> from_to(std::int64_t first, std::int64_t last) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(last - first + 1));
  std::iota(values.begin(), values.end(), first);
  return values;
}

Subscription::Function note_in(Received &received) {
  return [&received](const std::shared_ptr<void> &message, const rmw_message_info_t &) {
    received.note(value_of(message.get()));
  };
}

TEST(Adaptor, EveryMessageRunsOnceAndInOrder) {
  Program program;
  for (const auto &options : {EngineOptions{}, lanes_of({0, 0}), lanes_of({0, 1})}) {
    Topic topic(program, "every");
    Engine engine(options);
    Received received;
    const auto subscription = std::make_shared<Subscription>(&topic.subscription, make_int64, note_in(received));
    engine.add(subscription, TIDE_PRIORITY(1, 0));
    {
      const Spinning spinning(engine);
      for (std::int64_t value = 1; value <= 50; value++) topic.publish(value);
      EXPECT_TRUE(eventually([&] { return received.count() == 50; })) << received.count();
    }
    EXPECT_EQ(received.values(), from_to(1, 50));
    EXPECT_EQ(engine.counters().callbacks_run, 50u);
    engine.remove(subscription);
  }
}

TEST(Adaptor, WhatCameBeforeItWasAddedRunsToo) {
  Program program;
  Topic topic(program, "before");
  Topic other(program, "other");
  Received received;
  Engine engine;
  const auto witness = std::make_shared<Subscription>(&other.subscription, make_int64, note_in(received));
  engine.add(witness, 0);
  for (std::int64_t value = 1; value <= 3; value++) topic.publish(value);
  other.publish(99);
  while (received.count() == 0) engine.spin_once(milliseconds(10));
  const auto late = std::make_shared<Subscription>(&topic.subscription, make_int64, note_in(received));
  engine.add(late, 0);
  (void)eventually([&] {
    engine.spin_all(std::chrono::seconds(0));
    return received.count() == 4;
  });
  EXPECT_EQ(received.values(), (std::vector<std::int64_t>{99, 1, 2, 3}));
  engine.remove(late);
  topic.publish(4);
  other.publish(100);
  while (received.count() < 5) engine.spin_once(milliseconds(10));
  EXPECT_EQ(received.values().back(), 100) << "of what was removed nothing runs";
  engine.add(late, 0);
  (void)eventually([&] {
    engine.spin_all(std::chrono::seconds(0));
    return received.count() == 6;
  });
  EXPECT_EQ(received.values().back(), 4);
}

TEST(Adaptor, BytesAsTheyCame) {
  Program program;
  Topic topic(program, "bytes");
  Engine engine;
  std::vector<std::int64_t> values;
  const auto subscription = std::make_shared<SerializedSubscription>(
      &topic.subscription, [&](const rcl_serialized_message_t &message, const rmw_message_info_t &info) {
        ASSERT_EQ(message.buffer_length, 12u) << "the encapsulation and eight bytes";
        std::int64_t value = 0;
        std::memcpy(&value, message.buffer + 4, sizeof value);
        values.push_back(value);
        EXPECT_GT(info.source_timestamp, 0);
      });
  engine.add(subscription, 0);
  topic.publish(0x123456789);
  topic.publish(-2);
  (void)eventually([&] {
    engine.spin_all(std::chrono::seconds(0));
    return values.size() == 2;
  });
  EXPECT_EQ(values, (std::vector<std::int64_t>{0x123456789, -2}));
}

TEST(Adaptor, LentMessagesGoBackWhateverTheCallbackDoes) {
  Program program;
  Topic topic(program, "lent", 4);
  ASSERT_TRUE(rcl_subscription_can_loan_messages(&topic.subscription));
  Engine engine;
  std::int64_t sum = 0;
  const auto subscription =
      std::make_shared<LoanedSubscription>(&topic.subscription, [&](const void *message, const rmw_message_info_t &) {
        sum += value_of(message);
        if (value_of(message) % 2 == 0) throw std::runtime_error("even");
      });
  engine.add(subscription, 0);
  std::int64_t expected = 0;
  for (std::int64_t value = 1; value <= 60; value++) {  // more than the middleware can lend at the same time
    topic.publish(value);
    expected += value;
    ASSERT_TRUE(eventually([&] {
      try {
        engine.spin_all(std::chrono::seconds(0));
      } catch (const std::runtime_error &) {}
      return sum == expected;
    })) << value;
  }
}

TEST(Adaptor, AFloodLeavesNoBacklogOfEmptyRuns) {
  Program program;
  Topic topic(program, "flood", 5);
  Topic gate(program, "gate");
  Engine engine(lanes_of({0, 1}));
  Received received, opened;
  std::atomic<bool> blocked{false}, leave{false};
  const auto subscription = std::make_shared<Subscription>(
      &topic.subscription, make_int64, [&](const std::shared_ptr<void> &message, const rmw_message_info_t &) {
        received.note(value_of(message.get()));
        blocked = true;
        (void)eventually([&] { return leave.load(); });
      });
  const auto witness = std::make_shared<Subscription>(&gate.subscription, make_int64, note_in(opened));
  engine.add(subscription, 0);
  engine.add(witness, TIDE_PRIORITY(1, 0));
  const Spinning spinning(engine);
  topic.publish(0);
  ASSERT_TRUE(eventually([&] { return blocked.load(); }));
  for (std::int64_t value = 1; value <= 500; value++) topic.publish(value);
  gate.publish(1);
  ASSERT_TRUE(eventually([&] { return opened.count() == 1; }));
  leave = true;
  EXPECT_TRUE(eventually([&] { return received.values().back() == 500; }));
  const std::uint64_t runs = engine.counters().callbacks_run;
  EXPECT_LE(runs, 1u + 5u + 1u + opened.count()) << "at most the depth, and one that was being taken";
}

TEST(Adaptor, TheMoreUrgentTopicGoesFirst) {
  Program program;
  Topic low(program, "low"), high(program, "high"), witness_topic(program, "witness");
  Engine engine(lanes_of({0, 9}));
  Received received, seen;
  std::atomic<bool> blocked{false}, leave{false};
  const auto stop = std::make_shared<Guard>([&] {
    blocked = true;
    (void)eventually([&] { return leave.load(); });
  });
  engine.add(stop, 0);
  engine.add(std::make_shared<Subscription>(&low.subscription, make_int64, note_in(received)), TIDE_PRIORITY(1, 0));
  engine.add(std::make_shared<Subscription>(&high.subscription, make_int64, note_in(received)), TIDE_PRIORITY(2, 0));
  engine.add(std::make_shared<Subscription>(&witness_topic.subscription, make_int64, note_in(seen)),
             TIDE_PRIORITY(9, 0));
  const Spinning spinning(engine);
  stop->trigger();
  ASSERT_TRUE(eventually([&] { return blocked.load(); }));
  for (std::int64_t value = 1; value <= 3; value++) low.publish(value);
  for (std::int64_t value = 11; value <= 13; value++) high.publish(value);
  witness_topic.publish(1);
  ASSERT_TRUE(eventually([&] { return seen.count() == 1; })) << "the lane of its own runs beside the busy one";
  leave = true;
  EXPECT_TRUE(eventually([&] { return received.count() == 6; }));
  EXPECT_EQ(received.values(), (std::vector<std::int64_t>{11, 12, 13, 1, 2, 3}));
}

TEST(Adaptor, AGuardRunsOnceForWhatWasTriggeredBefore) {
  Engine engine;
  int runs = 0;
  const auto guard = std::make_shared<Guard>([&] { runs++; });
  guard->trigger();
  engine.add(guard, 0);
  engine.remove(guard);
  engine.add(guard, 0);
  guard->trigger();
  guard->trigger();
  engine.spin_all(std::chrono::seconds(0));
  EXPECT_EQ(runs, 1);
  guard->trigger();
  engine.spin_all(std::chrono::seconds(0));
  EXPECT_EQ(runs, 2);
}

// A client and a service with one name.
class Calls {
 public:
  explicit Calls(Program &program) : node_(program.node) {
    const std::string name = "/adaptor_" + Program::number() + "/set";
    const auto *type = ROSIDL_GET_SRV_TYPE_SUPPORT(std_srvs, srv, SetBool);
    const rcl_service_options_t service_options = rcl_service_get_default_options();
    check(rcl_service_init(&service, &node_, type, name.c_str(), &service_options), "rcl_service_init");
    const rcl_client_options_t client_options = rcl_client_get_default_options();
    check(rcl_client_init(&client, &node_, type, name.c_str(), &client_options), "rcl_client_init");
    bool available = false;
    EXPECT_TRUE(eventually([&] {
      check(rcl_service_server_is_available(&node_, &client, &available), "rcl_service_server_is_available");
      return available;
    }));
  }
  Calls(const Calls &) = delete;
  Calls &operator=(const Calls &) = delete;
  ~Calls() {
    EXPECT_EQ(rcl_client_fini(&client, &node_), RCL_RET_OK);
    EXPECT_EQ(rcl_service_fini(&service, &node_), RCL_RET_OK);
  }

  void answer(const rmw_request_id_t &id, bool data) {
    std_srvs__srv__SetBool_Response response{};
    ASSERT_TRUE(std_srvs__srv__SetBool_Response__init(&response));
    response.success = !data;
    rmw_request_id_t to = id;
    check(rcl_send_response(&service, &to, &response), "rcl_send_response");
    std_srvs__srv__SetBool_Response__fini(&response);
  }

  rcl_service_t service = rcl_get_zero_initialized_service();
  rcl_client_t client = rcl_get_zero_initialized_client();

 private:
  rcl_node_t &node_;
};

std::shared_ptr<void> make_request() {
  return {std_srvs__srv__SetBool_Request__create(), [](void *request) {
            std_srvs__srv__SetBool_Request__destroy(static_cast<std_srvs__srv__SetBool_Request *>(request));
          }};
}

std::shared_ptr<void> make_response() {
  return {std_srvs__srv__SetBool_Response__create(), [](void *response) {
            std_srvs__srv__SetBool_Response__destroy(static_cast<std_srvs__srv__SetBool_Response *>(response));
          }};
}

TEST(Adaptor, RequestsAndAnswers) {
  Program program;
  Calls calls(program);
  Engine engine(lanes_of({0, 0}));
  std::mutex mutex;
  std::vector<std::int64_t> answered;
  std::atomic<int> right{0};
  const auto service = std::make_shared<Service>(
      &calls.service, make_request, [&](const rmw_request_id_t &id, const std::shared_ptr<void> &request) {
        calls.answer(id, static_cast<const std_srvs__srv__SetBool_Request *>(request.get())->data);
      });
  const auto client = std::make_shared<Client>(
      &calls.client, make_response, [&](const rmw_request_id_t &id, const std::shared_ptr<void> &response) {
        const bool success = static_cast<const std_srvs__srv__SetBool_Response *>(response.get())->success;
        if (success == (id.sequence_number % 2 == 0)) right++;
        const std::lock_guard<std::mutex> lock(mutex);
        answered.push_back(id.sequence_number);
      });
  engine.add(service, TIDE_PRIORITY(1, 0));
  engine.add(client, TIDE_PRIORITY(1, 1));
  const Spinning spinning(engine);
  for (int count = 1; count <= 20; count++) {
    std_srvs__srv__SetBool_Request request{};
    request.data = count % 2 == 1;
    std::int64_t number = 0;
    check(rcl_send_request(&calls.client, &request, &number), "rcl_send_request");
    ASSERT_EQ(number, count);
    ASSERT_TRUE(eventually([&] {
      const std::lock_guard<std::mutex> lock(mutex);
      return answered.size() == static_cast<std::size_t>(count);
    }));
  }
  EXPECT_EQ(right, 20);
  EXPECT_EQ(answered, from_to(1, 20));
}

TEST(Adaptor, TopicsComeAndGoWhileMessagesArrive) {
  Program program;
  Engine engine(lanes_of({0, 0, 2}));
  const Spinning spinning(engine);
  for (int round = 0; round < 8; round++) {
    Topic topic(program, "come_and_go");
    std::atomic<int> runs{0};
    std::atomic<bool> removed{false};
    const auto subscription = std::make_shared<Subscription>(
        &topic.subscription, make_int64, [&](const std::shared_ptr<void> &, const rmw_message_info_t &) { runs++; });
    engine.add(subscription, TIDE_PRIORITY(round % 3, 0));
    std::atomic<std::int64_t> published{0};
    std::thread publisher([&] {
      for (; !removed; published++) topic.publish(published);
    });
    EXPECT_TRUE(eventually([&] { return runs > 20; }));
    EXPECT_TRUE(engine.remove(subscription));
    EXPECT_TRUE(eventually([&] { return subscription.use_count() == 1; }));
    const int at_removal = runs;
    EXPECT_TRUE(eventually([&, before = published.load()] { return published > before + 20; }));
    EXPECT_EQ(runs, at_removal);
    removed = true;
    publisher.join();
  }
}

}  // namespace tide_rcl_adaptor_test
}  // namespace tide_rcl
