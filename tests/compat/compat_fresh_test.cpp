// SPDX-License-Identifier: Apache-2.0
// KEEP_LAST: however slow a callback or line is, samples are not older on arrival than the history depth permits. The
// age of a sample to the program is the time from its arrival at the agent to the start of its callback. The age of a
// sample from the program is the time from the publish call to the sample's arrival at the agent.
#include <array>
#include <cstdio>
#include <memory>

#include "connected.h"
#include "tide/pools.h"

namespace tide::compat::test::fresh_test {

constexpr Time kWay = TIDE_BURST_NS + 10 * sim::kMillisecond;  // greatest time of a burst without losses, plus the
                                                               // agent, link and executor

struct Case {
  size_t depth;
  int rate_hz;
  Time callback;
  bool reliable;
  bool flood;  // another topic of the same level, with 500 messages a second and a callback of 1 ms
};

class Fresh : public Spinning {
 protected:
  Fresh() : Spinning(3) {}
  struct Topic {
    rcl_subscription_t subscription{};
    std_msgs__msg__Int32 message{};
    Time callback = 0;
    std::vector<Time> ages, at;  // of the second reader: times of the offers in microseconds
  };

  void subscribe(Topic &topic, const char *name, size_t depth, bool reliable) {
    rmw_qos_profile_t qos = rmw_qos_profile_default;
    qos.depth = depth;
    qos.reliability = reliable ? RMW_QOS_POLICY_RELIABILITY_RELIABLE : RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT;
    ASSERT_OK(rclc_subscription_init(&topic.subscription, &node, int32_type(), name, &qos));
    ASSERT_OK(rclc_executor_add_subscription_with_context(&executor, &topic.subscription, &topic.message, on_sample,
                                                          &topic, ON_NEW_DATA));
    ASSERT_TRUE(eventually([&] { return server.offer(std::string("rt/") + name, now()); }));
    ASSERT_TRUE(eventually([&] { return rclc_executor_spin_some(&executor, 0) == RCL_RET_OK && !topic.ages.empty(); }));
    topic.ages.clear();
  }
  // A sample contains the time of its offer, in microseconds.
  static Octets now() { return int32_bytes(static_cast<int32_t>(now_ns() / 1000)); }
  static void on_sample(const void *message, void *context) {
    auto *topic = static_cast<Topic *>(context);
    const int32_t offered = static_cast<const std_msgs__msg__Int32 *>(message)->data;
    topic->ages.push_back(now_ns() - offered * Time{1000});
    topic->at.push_back(offered);
    pass_time(std::chrono::nanoseconds(topic->callback));
  }
  void offer_until(const char *name, Time period, Time end) {
    const Time first = now_ns();
    for (int64_t number = 0; now_ns() < end; number++) {
      server.offer(std::string("rt/") + name, now());
      pass_time(std::chrono::nanoseconds(std::max<Time>(first + (number + 1) * period - now_ns(), 1)));
    }
  }
  static Time greatest(const Topic &topic) { return *std::max_element(topic.ages.begin(), topic.ages.end()); }
  static Time mean(const Topic &topic) {
    Time sum = 0;
    for (const Time age : topic.ages) sum += age;
    return sum / static_cast<Time>(topic.ages.size());
  }
};

class FreshTable : public Fresh, public ::testing::WithParamInterface<Case> {};

TEST_P(FreshTable, ASlowCallbackIsGivenWhatItsDepthKeeps) {
  const Case &one = GetParam();
  Topic slow, flood;
  subscribe(slow, "slow", one.depth, one.reliable);
  if (one.flood) subscribe(flood, "flood", 1, one.reliable);
  slow.callback = one.callback;
  flood.callback = sim::kMillisecond;
  const Time period = sim::kSecond / one.rate_hz, end = now_ns() + 8 * one.callback;
  Thread publisher([&] { offer_until("slow", period, end); });
  Thread flooder([&] {
    if (one.flood) offer_until("flood", 2 * sim::kMillisecond, end);
  });
  while (now_ns() < end) ASSERT_OK(rclc_executor_spin_some(&executor, 10'000'000));
  publisher.join();
  flooder.join();
  ASSERT_FALSE(slow.ages.empty());
  std::printf("depth %2zu %3d Hz callback %4d ms %-11s %-5s: age mean %4d ms, greatest %4d ms, of %zu callbacks\n",
              one.depth, one.rate_hz, int(one.callback / sim::kMillisecond), one.reliable ? "reliable" : "best effort",
              one.flood ? "flood" : "", int(mean(slow) / sim::kMillisecond), int(greatest(slow) / sim::kMillisecond),
              slow.ages.size());
  const Time kept = static_cast<Time>(one.depth - 1) * period;
  EXPECT_LE(greatest(slow), one.callback + kept + kWay);
  if (one.flood) EXPECT_LE(greatest(flood), one.callback + kWay);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const size_t depth : {1, 4, 10})
    for (const int rate_hz : {6, 20, 100})
      for (const Time callback_ms : {50, 200, 1000})
        for (const bool reliable : {true, false})
          for (const bool flood : {false, true})
            all.push_back({depth, rate_hz, callback_ms * sim::kMillisecond, reliable, flood});
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, FreshTable, ::testing::ValuesIn(cases()));

TEST_F(Fresh, EachOfSeveralSlowCallbacksIsGivenTheNewest) {
  std::array<Topic, 3> topics;
  const std::array<const char *, 3> names = {"one", "two", "three"};
  for (size_t i = 0; i < topics.size(); i++) subscribe(topics.at(i), names.at(i), 1, i != 1);
  for (Topic &topic : topics) topic.callback = 200 * sim::kMillisecond;
  const Time end = now_ns() + 5 * sim::kSecond;
  std::vector<std::unique_ptr<Thread>> publishers;
  for (const char *name : names)
    publishers.push_back(
        std::make_unique<Thread>([this, name, end] { offer_until(name, 10 * sim::kMillisecond, end); }));
  while (now_ns() < end - sim::kSecond) ASSERT_OK(rclc_executor_spin_some(&executor, 10'000'000));
  for (const auto &publisher : publishers) publisher->join();
  for (const Topic &topic : topics) {
    EXPECT_GE(topic.ages.size(), 5u);
    EXPECT_LE(greatest(topic), kWay);
  }
}

// Several topics of one level, whose callbacks are too slow, share the slots.
class FreshShared : public Fresh, public ::testing::WithParamInterface<Case> {
 protected:
  using Publishers = std::vector<std::unique_ptr<Thread>>;
  void publish(Publishers &publishers, const char *name, Time period, Time end) {
    publishers.push_back(std::make_unique<Thread>([this, name, period, end] { offer_until(name, period, end); }));
  }
  // Spins until this time. The publishers must publish longer than the last callback takes.
  void spin_until_end(Publishers &publishers, Time end) {
    while (now_ns() < end) ASSERT_OK(rclc_executor_spin_some(&executor, 10'000'000));
    for (const auto &publisher : publishers) publisher->join();
  }
  static void expect_fresh(const char *name, const Topic &topic, Time bound) {
    const Case &one = GetParam();
    std::printf("%s of depth %2zu %3d Hz callback %4d ms %-11s: age mean %4d ms, greatest %4d ms, of %zu callbacks\n",
                name, one.depth, one.rate_hz, int(one.callback / sim::kMillisecond),
                one.reliable ? "reliable" : "best effort", int(mean(topic) / sim::kMillisecond),
                int(greatest(topic) / sim::kMillisecond), topic.ages.size());
    EXPECT_LE(greatest(topic), bound);
  }
};

TEST_P(FreshShared, EachOfTheSlowCallbacksIsGivenWhatItsDepthKeeps) {
  const Case &one = GetParam();
  std::array<Topic, 3> topics;
  const std::array<const char *, 3> names = {"one", "two", "three"};
  for (size_t i = 0; i < topics.size(); i++) subscribe(topics.at(i), names.at(i), one.depth, one.reliable);
  const Time period = sim::kSecond / one.rate_hz, end = now_ns() + 24 * one.callback;
  Publishers publishers;
  for (size_t i = 0; i < topics.size(); i++) {
    topics.at(i).callback = one.callback;
    publish(publishers, names.at(i), period, end + 3 * one.callback);
  }
  spin_until_end(publishers, end);
  for (size_t i = 0; i < topics.size(); i++) {
    EXPECT_GE(topics.at(i).ages.size(), 7u) << "they take turns";
    expect_fresh(names.at(i), topics.at(i), static_cast<Time>(one.depth) * period + kWay);
  }
}

TEST_P(FreshShared, ARareTopicWaitsForOneCallback) {
  const Case &one = GetParam();
  Topic busy, rare;
  subscribe(busy, "busy", one.depth, one.reliable);
  subscribe(rare, "rare", 1, one.reliable);
  busy.callback = one.callback;
  const Time end = now_ns() + 20 * one.callback;
  Publishers publishers;
  publish(publishers, "busy", sim::kSecond / one.rate_hz, end + one.callback);
  publish(publishers, "rare", 2 * one.callback + 7 * sim::kMillisecond, end - 2 * one.callback);
  spin_until_end(publishers, end);
  EXPECT_GE(rare.ages.size(), 9u);
  expect_fresh("rare", rare, one.callback + kWay);
}

// While the slow callback runs, frames of a flood fit only because the board drops samples that are older than a burst.
// After dropped samples the agent repeats earlier ones, which are older by another burst. Each repetition of a case is
// a world of its own.
class FreshFlood : public FreshShared {};

TEST_P(FreshFlood, BesideASlowCallback) {
  const Case &one = GetParam();
  struct Part {
    const char *name;
    Time period, callback;
    Topic topic{};
  };
  std::array<Part, 3> parts = {Part{"slow", sim::kSecond / one.rate_hz, one.callback},
                               Part{"flood", 2 * sim::kMillisecond, sim::kMillisecond},
                               Part{"rest", 5 * sim::kMillisecond, sim::kMillisecond}};
  for (Part &part : parts) subscribe(part.topic, part.name, one.depth, one.reliable);
  const Time end = now_ns() + 16 * one.callback;
  Publishers publishers;
  for (Part &part : parts) {
    part.topic.callback = part.callback;
    publish(publishers, part.name, part.period, end + one.callback);
  }
  spin_until_end(publishers, end);
  for (const Part &part : parts) {
    const Time kept = static_cast<Time>(one.depth - 1) * part.period;
    expect_fresh(part.name, part.topic, one.callback + kept + TIDE_BURST_NS + kWay);
  }
}

std::vector<Case> shared() {
  std::vector<Case> all;
  for (const size_t depth : {1, 4, 10})
    for (const int rate_hz : {20, 100})
      for (const Time callback_ms : {50, 200})
        for (const bool reliable : {true, false})
          all.push_back({depth, rate_hz, callback_ms * sim::kMillisecond, reliable, false});
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, FreshShared, ::testing::ValuesIn(shared()));

std::vector<Case> floods() {
  std::vector<Case> all = shared();
  std::erase_if(all, [](const Case &one) { return !one.reliable; });
  all.insert(all.end(), 12, {10, 100, 50 * sim::kMillisecond, true, false});
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, FreshFlood, ::testing::ValuesIn(floods()));

// ---- samples that must not arrive, by the rules of the history ----

struct Overload {
  size_t depth;
  Time callback;
  unsigned lost_one_in;  // messages in either direction are lost with the probability 1 / lost_one_in; 0: none
};
class FreshOverload : public Fresh, public ::testing::WithParamInterface<Overload> {};

TEST_P(FreshOverload, ABoardThatIsTooSlowIsNeverIdleAndEachSampleIsCounted) {
  const Overload &one = GetParam();
  Topic topic;
  subscribe(topic, "topic", one.depth, true);
  const tide_reader_t &reader = topic.subscription.impl->reader;
  const auto dropped = [&] { return reader.dropped + reader.account.dropped + server.counters().samples_skipped; };
  const uint64_t before = dropped();
  topic.callback = one.callback;
  server.lose_one_in(one.lost_one_in);
  const Time period = one.callback * 2 / 7, begun = now_ns(), end = begun + 400 * period;
  const Time &hesitated = sim::Port::current()->hesitated, hesitated_before = hesitated;
  uint64_t offered = 0;
  Thread publisher([&] {
    for (; now_ns() < end; pass_time(std::chrono::nanoseconds(period))) offered += server.offer("rt/topic", now());
  });
  while (now_ns() < end) ASSERT_OK(rclc_executor_spin_some(&executor, 10'000'000));
  publisher.join();
  const size_t in_time = topic.ages.size();
  const Time busy = static_cast<Time>(in_time) * one.callback + hesitated - hesitated_before;
  for (size_t last = 0; last != topic.ages.size();) {
    last = topic.ages.size();
    for (int turn = 0; turn < 20; turn++) ASSERT_OK(rclc_executor_spin_some(&executor, 50'000'000));
  }
  std::printf("depth %2zu callback %3d ms lost 1 in %2u: %zu callbacks, %d possible, of %zu samples\n", one.depth,
              int(one.callback / sim::kMillisecond), one.lost_one_in, in_time, int((end - begun) / one.callback),
              size_t(offered));
  EXPECT_GE(busy, (end - begun) * 95 / 100) << "it was idle";
  EXPECT_EQ(topic.ages.size() + dropped() - before, offered) << "a sample is lost, or counted twice";
}
INSTANTIATE_TEST_SUITE_P(
    All, FreshOverload,
    ::testing::Values(Overload{1, 20 * sim::kMillisecond, 0}, Overload{1, 20 * sim::kMillisecond, 50},
                      Overload{10, 20 * sim::kMillisecond, 0}, Overload{10, 20 * sim::kMillisecond, 50},
                      Overload{1, 200 * sim::kMillisecond, 50}, Overload{10, 200 * sim::kMillisecond, 50},
                      Overload{10, 3 * sim::kMillisecond, 50}));

// Samples that wait for a running callback have been acknowledged, so the next session does not bring them again.
TEST_F(Fresh, WhatWasAcknowledgedOutlivesTheSession) {
  Topic slow, flood;
  subscribe(slow, "slow", 10, true);
  subscribe(flood, "flood", 1, true);
  slow.callback = 30 * sim::kSecond;
  std::vector<Time> offered;
  slow.at.clear();
  Thread agent([&] {
    const auto offer = [&] {
      offered.push_back(now_ns() / 1000);
      server.offer("rt/slow", now());
      pass_time(1ms);
    };
    offer();
    ASSERT_TRUE(eventually([&] { return !slow.at.empty(); }));
    for (int number = 0; number < 4; number++) offer();
    offer_until("flood", sim::kMillisecond, now_ns() + 30 * sim::kMillisecond);
    server.mute(true);
    ASSERT_TRUE(eventually([&] { return state() != TIDE_SESSION_READY; }, 20s));
    server.mute(false);
  });
  while (slow.at.empty()) ASSERT_OK(rclc_executor_spin_some(&executor, 10'000'000));
  agent.join();
  slow.callback = 0;
  ASSERT_TRUE(spin_until([&] { return slow.at.size() >= offered.size(); }));
  EXPECT_EQ(slow.at, offered);
}

// ---- samples that wait for a trigger, and messages longer than a frame ----

TEST_F(Fresh, ATriggerIsGivenTheNewest) {
  Topic fast, seldom;
  subscribe(fast, "fast", 1, true);
  subscribe(seldom, "seldom", 1, true);
  ASSERT_OK(rclc_executor_set_trigger(&executor, rclc_executor_trigger_all, nullptr));
  const Time end = now_ns() + 5 * sim::kSecond;
  Thread often([&] { offer_until("fast", 10 * sim::kMillisecond, end); });
  Thread rarely([&] { offer_until("seldom", 500 * sim::kMillisecond, end); });
  while (now_ns() < end) ASSERT_OK(rclc_executor_spin_some(&executor, 10'000'000));
  often.join();
  rarely.join();
  ASSERT_GT(fast.ages.size(), 5u);
  EXPECT_LE(greatest(fast), kWay);
}

struct Long {
  size_t depth, octets;
  bool reliable;
};
class FreshLong : public Fresh, public ::testing::WithParamInterface<Long> {};

TEST_P(FreshLong, ASlowCallbackIsGivenTheNewest) {
  const Long &one = GetParam();
  static constexpr Time kCallback = 200 * sim::kMillisecond, kPeriod = 10 * sim::kMillisecond;
  rmw_qos_profile_t qos = one.reliable ? rmw_qos_profile_default : rmw_qos_profile_sensor_data;
  qos.depth = one.depth;
  rcl_subscription_t subscription{};
  ASSERT_OK(rclc_subscription_init(&subscription, &node, string_type(), "long", &qos));
  char text[1000];
  std_msgs__msg__String message = {{text, 0, sizeof text}};
  std::vector<Time> ages;
  ASSERT_OK(rclc_executor_add_subscription_with_context(
      &executor, &subscription, &message,
      [](const void *sample, void *context) {
        const Time offered = atoll(static_cast<const std_msgs__msg__String *>(sample)->data.data);
        static_cast<std::vector<Time> *>(context)->push_back(now_ns() - offered);
        pass_time(std::chrono::nanoseconds(kCallback));
      },
      &ages, ON_NEW_DATA));
  const auto offer = [&] {
    std::string padded = std::to_string(now_ns());
    padded.resize(one.octets, ' ');
    return server.offer("rt/long", string_bytes(padded));
  };
  ASSERT_TRUE(eventually(offer));
  const Time end = now_ns() + 3 * sim::kSecond;
  Thread publisher([&] {
    for (; now_ns() < end; pass_time(std::chrono::nanoseconds(kPeriod))) offer();
  });
  while (now_ns() < end) ASSERT_OK(rclc_executor_spin_some(&executor, 10'000'000));
  publisher.join();
  EXPECT_GE(ages.size(), 14u) << "the callback was idle";
  const Time greatest = *std::max_element(ages.begin(), ages.end());
  std::printf("depth %2zu %3zu octets: greatest age %4d ms, of %zu\n", one.depth, one.octets,
              int(greatest / sim::kMillisecond), ages.size());
  // The newest message waits in fragments while a callback is running.
  const Time on_its_way = one.octets > TIDE_MTU_BYTES ? kCallback : 0;
  EXPECT_LE(greatest, kCallback + on_its_way + static_cast<Time>(one.depth - 1) * kPeriod + kWay);
}
INSTANTIATE_TEST_SUITE_P(All, FreshLong,
                         ::testing::Values(Long{1, 150, true}, Long{1, 600, true}, Long{1, 980, true},
                                           Long{4, 600, true}, Long{10, 600, true}, Long{1, 150, false}));

// ---- a best-effort publisher on a line that cannot carry everything ----

constexpr uint64_t kBaud = 9600;
constexpr Time kFrame = 30 * sim::kMillisecond;  // for an Int32 and the session's own frames

struct Output {
  size_t depth;
  int rate_hz;
  bool flood;  // another publisher of the level, depth 1, 500 messages a second
};

class FreshOutput : public Connected, public ::testing::WithParamInterface<Output> {
 protected:
  void SetUp() override {
    World::current().up_baud = kBaud;
    Connected::SetUp();
  }
  rcl_publisher_t best_effort(const char *name, size_t depth) {
    rmw_qos_profile_t qos = rmw_qos_profile_sensor_data;
    qos.depth = depth;
    rcl_publisher_t publisher = rcl_get_zero_initialized_publisher();
    EXPECT_OK(rclc_publisher_init(&publisher, &node, int32_type(), name, &qos));
    return publisher;
  }
  static int32_t now_us() { return static_cast<int32_t>(now_ns() / 1000); }
  static void publish_until(rcl_publisher_t &publisher, Time period, Time end) {
    for (const Time first = now_ns(); now_ns() < end;) {
      const std_msgs__msg__Int32 message = {now_us()};
      EXPECT_OK(rcl_publish(&publisher, &message, nullptr));
      pass_time(std::chrono::nanoseconds(period - (now_ns() - first) % period));
    }
  }
};

TEST_P(FreshOutput, AFullLineCarriesTheNewest) {
  const Output &one = GetParam();
  rcl_publisher_t state = best_effort("state", one.depth), flood = best_effort("flood", 1);
  std::vector<Time> ages;
  server.middleware().on_written = [&](const agent::test::Written &sample) {
    if (sample.topic == "rt/state") ages.push_back(now_ns() - int32_of(sample.payload) * Time{1000});
  };
  const Time period = sim::kSecond / one.rate_hz, end = now_ns() + 5 * sim::kSecond;
  Thread flooder([&] {
    if (one.flood) publish_until(flood, 2 * sim::kMillisecond, end);
  });
  publish_until(state, period, end);
  flooder.join();
  server.middleware().on_written = nullptr;
  ASSERT_GT(ages.size(), 20u);
  const Time greatest = *std::max_element(ages.begin(), ages.end());
  std::printf("depth %2zu %3d Hz %-5s: greatest age %4d ms, of %zu\n", one.depth, one.rate_hz, one.flood ? "flood" : "",
              int(greatest / sim::kMillisecond), ages.size());
  EXPECT_LE(greatest, std::max(TIDE_BURST_NS, static_cast<Time>(one.depth) * period) + 2 * kFrame);
}

std::vector<Output> outputs() {
  std::vector<Output> all;
  for (const size_t depth : {1, 4, 10})
    for (const int rate_hz : {20, 100, 500})
      for (const bool flood : {false, true}) all.push_back({depth, rate_hz, flood});
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, FreshOutput, ::testing::ValuesIn(outputs()));

class FreshOutputBurst : public FreshOutput {};

TEST_F(FreshOutputBurst, ABurstBeyondTheDepthArrives) {
  rcl_publisher_t state = best_effort("state", 1);
  for (int32_t number = 0; number < 4; number++) {
    const std_msgs__msg__Int32 message = {number};
    ASSERT_OK(rcl_publish(&state, &message, nullptr));
  }
  EXPECT_TRUE(eventually([&] { return server.written("rt/state").size() == 4; }));
}

}  // namespace tide::compat::test::fresh_test
