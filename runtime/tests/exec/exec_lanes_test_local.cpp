// SPDX-License-Identifier: Apache-2.0
// Local delivery: its queue rules and its memory, in virtual time; then publishers, subscriptions and lanes on threads.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "dice.h"
#include "exec_bands.h"
#include "threads.h"
#include "tide/local.h"

namespace exec_lanes_test_local {

using tide::test::Dice;
using tide::test::environment;
using Host = tide::test::Threads;

struct Subscription {
  explicit Subscription(uint16_t depth) : queue(depth) {
    local.queue = queue.data();
    local.depth = depth;
  }
  std::vector<tide_local_message_t *> queue;
  tide_local_subscription_t local{};
};

struct Local : exec_virtual::Bands {
  static constexpr uint32_t kMessages = 12, kBytes = 12;

  void open(const std::vector<uint8_t> &levels, uint32_t loans = 1) {
    start(levels);
    ASSERT_EQ(tide_local_pool_init(&pool, &machine.platform, storage.data(), kMessages, kBytes), TIDE_OK);
    ASSERT_EQ(tide_local_topic_init(&topic, &pool, loans), TIDE_OK);
  }

  // Subscribes with a callback that logs its name and the values that it takes.
  tide_local_subscription_t &subscribe(char name, tide_priority_t priority, uint16_t depth) {
    Probe &probe = add(name, priority);
    subscriptions.push_back(std::make_unique<Subscription>(depth));
    tide_local_subscription_t *local = &subscriptions.back()->local;
    local->callback = &probe.timer.callback;
    EXPECT_EQ(tide_local_subscribe(&topic, local), TIDE_OK);
    probe.action = [this, local] { read(*local); };
    return *local;
  }

  void read(tide_local_subscription_t &local) {
    const auto *value = static_cast<const int *>(tide_local_take(&local, nullptr));
    log += value == nullptr ? "-" : std::to_string(*value);
    if (value != nullptr) tide_local_release(value);
  }

  int publish(int value) {
    void *message = nullptr;
    const int status = tide_local_borrow(&topic, &message);
    if (status != TIDE_OK) return status;
    *static_cast<int *>(message) = value;
    return tide_local_publish(&topic, message, sizeof value);
  }

  void run_all(size_t lane = 0) {
    while (round(lane) > 0) {}
  }

  tide_local_pool_t pool{};
  tide_local_topic_t topic{};
  std::array<uint64_t, TIDE_LOCAL_STORAGE_BYTES(kMessages, kBytes) / 8> storage{};
  std::vector<std::unique_ptr<Subscription>> subscriptions;
};

TEST_F(Local, EverySubscriptionReadsTheMemoryThatThePublisherWrote) {
  open({0});
  tide_local_subscription_t &a = subscribe('a', 1, 2), &b = subscribe('b', 2, 2);
  void *message = nullptr;
  ASSERT_EQ(tide_local_borrow(&topic, &message), TIDE_OK);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(message) % 8, 0u);
  std::memset(message, 0x2a, kBytes);
  machine.now = 77;
  EXPECT_EQ(tide_local_publish(&topic, message, kBytes), 2);
  tide_local_information_t information{};
  const void *first = tide_local_take(&a, &information), *second = tide_local_take(&b, nullptr);
  EXPECT_EQ(first, message);
  EXPECT_EQ(second, message);
  EXPECT_EQ(information.bytes, kBytes);
  EXPECT_EQ(information.published_ns, 77);
  EXPECT_EQ(topic.used, 1u);
  tide_local_release(first);
  EXPECT_EQ(topic.used, 1u) << "the other one still reads it";
  tide_local_release(second);
  EXPECT_EQ(topic.used, 0u);
}

TEST_F(Local, CallbacksRunByPriorityAndOncePerMessage) {
  open({0});
  subscribe('a', 1, 4);
  subscribe('b', 2, 4);
  EXPECT_EQ(publish(1), 2);
  EXPECT_EQ(publish(2), 2);
  EXPECT_EQ(woken(), "0");
  run_all();
  EXPECT_EQ(log, "b1b2a1a2");
  EXPECT_EQ(executor.counters.callbacks_run, 4u);
}

TEST_F(Local, AFullQueueLetsTheOldestGoAndCountsIt) {
  open({0});
  tide_local_subscription_t &a = subscribe('a', 1, 2), &b = subscribe('b', 2, 5);
  for (int value = 1; value <= 5; value++) EXPECT_EQ(publish(value), 2);
  EXPECT_EQ(a.dropped, 3u);
  EXPECT_EQ(a.received, 5u);
  EXPECT_EQ(b.dropped, 0u);
  EXPECT_EQ(topic.counters.dropped, 3u);
  EXPECT_EQ(topic.counters.delivered, 10u);
  run_all();
  EXPECT_EQ(log, "b1b2b3b4b5a4a5") << "as many runs as there are messages";
  EXPECT_EQ(topic.used, 0u);
}

TEST_F(Local, AMessageThatIsReadOutlivesTheQueueThatMovesOn) {
  open({0});
  tide_local_subscription_t &a = subscribe('a', 1, 2);
  publish(1);
  const auto *reading = static_cast<const int *>(tide_local_take(&a, nullptr));
  for (int value = 2; value <= 9; value++) EXPECT_EQ(publish(value), 1) << "depth and one that is read are set aside";
  EXPECT_EQ(*reading, 1);
  tide_local_release(reading);
  EXPECT_EQ(topic.counters.refused, 0u);
}

TEST_F(Local, NoTopicTakesWhatIsSetAsideForAnother) {
  open({0}, 2);          // takes 2 of the 12 messages
  subscribe('a', 1, 3);  // takes 4
  tide_local_topic_t other{}, third{};
  EXPECT_EQ(tide_local_topic_init(&other, &pool, 7), TIDE_ERROR_FULL);
  ASSERT_EQ(tide_local_topic_init(&other, &pool, 3), TIDE_OK);
  Subscription large(3);
  large.local.callback = &add('x', 1).timer.callback;
  EXPECT_EQ(tide_local_subscribe(&other, &large.local), TIDE_ERROR_FULL);
  std::array<void *, 3> loans{};
  for (void *&loan : loans) EXPECT_EQ(tide_local_borrow(&other, &loan), TIDE_OK);
  void *more = nullptr;
  EXPECT_EQ(tide_local_borrow(&other, &more), TIDE_ERROR_FULL);
  EXPECT_EQ(more, nullptr);
  EXPECT_EQ(other.counters.refused, 1u);
  for (int value = 1; value <= 20; value++) EXPECT_EQ(publish(value), 1) << "whatever the other one holds";
  EXPECT_EQ(tide_local_topic_fini(&other), TIDE_ERROR_STATE);
  for (void *loan : loans) tide_local_give_back(loan);
  EXPECT_EQ(tide_local_topic_fini(&other), TIDE_OK);
  EXPECT_EQ(tide_local_topic_init(&third, &pool, 6), TIDE_OK) << "what it had set aside is free";
}

TEST_F(Local, SubscriptionsComeAndGo) {
  open({0});
  EXPECT_EQ(publish(1), 0) << "nobody listens";
  EXPECT_EQ(topic.used, 0u);
  tide_local_subscription_t &a = subscribe('a', 1, 2), &b = subscribe('b', 2, 2);
  EXPECT_EQ(tide_local_subscribe(&topic, &a), TIDE_ERROR_EXISTS);
  publish(2);
  EXPECT_EQ(tide_local_unsubscribe(&a), TIDE_OK);
  EXPECT_EQ(tide_local_unsubscribe(&a), TIDE_ERROR_NOT_FOUND);
  EXPECT_EQ(publish(3), 1);
  run_all();
  EXPECT_EQ(log, "b2b3a-") << "what it was notified for is gone";
  EXPECT_EQ(tide_local_unsubscribe(&b), TIDE_OK);
  EXPECT_EQ(topic.used, 0u);
  EXPECT_EQ(tide_local_topic_fini(&topic), TIDE_OK);
  EXPECT_EQ(pool.reserved, 0u);
}

TEST_F(Local, ThePublisherInterruptsALessUrgentLane) {
  open({0, 3}, 2);
  Probe &low = add('l', 1);
  subscribe('h', TIDE_PRIORITY(3, 0), 2);
  low.action = [&] {
    publish(5);
    EXPECT_EQ(woken(), "1") << "no other lane hears of it";
    EXPECT_EQ(round(1), 1);
  };
  notify(low);
  woken();
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(log, "lh5");
}

TEST_F(Local, AnInterruptPublishesIntoACallbackAndIntoAWait) {
  open({0}, 2);
  subscribe('a', 3, 2);
  Probe &low = add('l', 1);
  low.action = [&] { machine.execute(10); };
  machine.at(5, [&] { EXPECT_EQ(publish(1), 1); });
  machine.at(50, [&] { EXPECT_EQ(publish(2), 1); });
  notify(low);
  EXPECT_EQ(round(0, 100), 1);
  EXPECT_EQ(round(0, 100), 1);
  EXPECT_EQ(machine.now, 10);
  EXPECT_EQ(round(0, 100), 1);
  EXPECT_EQ(machine.now, 50);
  EXPECT_EQ(log, "la1a2");
}

TEST_F(Local, WhatIsSubscribedWhileAPublicationGoesOnWaitsForTheNext) {
  open({0, 3}, 2);
  tide_local_subscription_t &a = subscribe('a', TIDE_PRIORITY(3, 0), 2);
  subscribe('b', 1, 2);
  Probe &late = add('c', 1);
  subscriptions.push_back(std::make_unique<Subscription>(2));
  tide_local_subscription_t &c = subscriptions.back()->local;
  c.callback = &late.timer.callback;
  late.action = [&] { read(c); };
  // The wake-up of the first subscriber's lane lets that lane run in the middle of the publication.
  static Local *self;
  self = this;
  static tide_local_subscription_t *leaving, *coming;
  leaving = &a;
  coming = &c;
  machine.platform.event_set = [](void *, tide_event_t *event) {
    event->state = 1;
    if (leaving == nullptr) return;
    EXPECT_EQ(tide_local_unsubscribe(leaving), TIDE_OK);
    EXPECT_EQ(tide_local_subscribe(&self->topic, coming), TIDE_OK);
    leaving = nullptr;
  };
  EXPECT_EQ(publish(1), 2) << "a before it left, and b";
  EXPECT_EQ(c.count, 0u);
  EXPECT_EQ(publish(2), 2);
  run_all(0);
  EXPECT_EQ(log, "b1c2b2");
}

TEST_F(Local, WrongArgumentsAreRefused) {
  open({0});
  void *message = nullptr;
  tide_local_topic_t unused{};
  Subscription subscription(1);
  EXPECT_EQ(tide_local_pool_init(&pool, &machine.platform, reinterpret_cast<uint8_t *>(storage.data()) + 1, 1, 8),
            TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_local_topic_init(&unused, nullptr, 1), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_local_change_loans(&unused, 1), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_local_change_loans(&topic, -2), TIDE_ERROR_ARGUMENT) << "it has one";
  EXPECT_EQ(tide_local_change_loans(&topic, INT32_MIN), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(topic.limit, 1u);
  EXPECT_EQ(tide_local_borrow(&unused, &message), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_local_subscribe(&topic, &subscription.local), TIDE_ERROR_ARGUMENT) << "no callback";
  ASSERT_EQ(tide_local_borrow(&topic, &message), TIDE_OK);
  EXPECT_EQ(tide_local_publish(&unused, message, 4), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_local_publish(&topic, message, kBytes + 1), TIDE_ERROR_TOO_LARGE);
  EXPECT_EQ(topic.used, 1u) << "the loan goes on";
  EXPECT_EQ(tide_local_publish(&topic, message, kBytes), 0);
  EXPECT_EQ(tide_local_take(&subscription.local, nullptr), nullptr);
  EXPECT_EQ(tide_local_oldest_ns(&subscription.local), TIDE_FOREVER);
}

// A wait of the batch policy ends only with new data: a local message counts, a stored sample does not.
TEST(LocalBatch, AWaitForNewDataEndsWithALocalMessage) {
  exec_virtual::Bench bench(TIDE_POLICY_BATCH);
  bench.config.batch_waits_for_new_data = true;
  bench.init();
  alignas(8) std::array<uint8_t, TIDE_LOCAL_STORAGE_BYTES(4, 8)> storage{};
  tide_local_pool_t pool{};
  tide_local_topic_t topic{};
  ASSERT_EQ(tide_local_pool_init(&pool, &bench.machine.platform, storage.data(), 4, 8), TIDE_OK);
  ASSERT_EQ(tide_local_topic_init(&topic, &pool, 1), TIDE_OK);
  Subscription subscription(1);
  tide_callback_t callback{};
  callback.kind = TIDE_CALLBACK_SUBSCRIPTION;
  callback.context = &subscription;
  callback.execute = [](tide_callback_t *, void *context) {
    const void *message = tide_local_take(&static_cast<Subscription *>(context)->local, nullptr);
    if (message != nullptr) tide_local_release(message);
  };
  ASSERT_EQ(tide_executor_add(&bench.executor, &callback), TIDE_OK);
  tide_executor_notify(&callback);
  EXPECT_EQ(tide_executor_round(&bench.executor, 1000), 1);
  EXPECT_EQ(bench.machine.now, 1000) << "stored, not new";
  tide_executor_notify(&callback);
  subscription.local.callback = &callback;
  ASSERT_EQ(tide_local_subscribe(&topic, &subscription.local), TIDE_OK);
  void *message = nullptr;
  ASSERT_EQ(tide_local_borrow(&topic, &message), TIDE_OK);
  EXPECT_EQ(tide_local_publish(&topic, message, 8), 1);
  EXPECT_EQ(tide_executor_round(&bench.executor, 2000), 1);
  EXPECT_EQ(tide_executor_round(&bench.executor, 2000), 1);
  EXPECT_EQ(bench.machine.now, 1000);
  EXPECT_EQ(bench.executor.prompt_count, 0u);
}

// ---- threads: each publisher numbers its messages, so that order and memory can be checked ----

class Traffic {
 public:
  static constexpr size_t kTopics = 2, kSubscriptions = 6, kPublishers = 3;

  explicit Traffic(uint64_t seed) : dice(seed) {
    lanes.resize(static_cast<size_t>(dice.between(1, 3)));
    for (tide_lane_t &lane : lanes) lane.settings.least_level = dice.chance(50) ? 0 : 2;
    std::sort(lanes.begin(), lanes.end(), [](const tide_lane_t &left, const tide_lane_t &right) {
      return left.settings.least_level < right.settings.least_level;
    });
    ready.resize(kSubscriptions * lanes.size());
    timers.resize(kSubscriptions * lanes.size());
    tide_executor_config_t config{};
    config.platform = &host.platform;
    config.callbacks = callbacks.data();
    config.ready_storage = ready.data();
    config.timer_storage = timers.data();
    config.callback_count = kSubscriptions;
    config.lanes = lanes.data();
    config.lane_count = lanes.size();
    EXPECT_EQ(tide_executor_init(&executor, &config), TIDE_OK);
    EXPECT_EQ(tide_local_pool_init(&pool, &host.platform, storage.data(), kMessages, sizeof(Message)), TIDE_OK);
    for (tide_local_topic_t &topic : topics) EXPECT_EQ(tide_local_topic_init(&topic, &pool, kPublishers), TIDE_OK);
    for (size_t index = 0; index < kSubscriptions; index++) prepare(listeners[index], index);
  }

  void run() {
    std::vector<std::thread> spinners, publishers;
    for (size_t lane = 0; lane < lanes.size(); lane++) {
      spinners.emplace_back([this, lane] { EXPECT_EQ(tide_executor_spin_lane(&executor, lane), TIDE_OK); });
    }
    for (size_t publisher = 0; publisher < kPublishers; publisher++) {
      publishers.emplace_back([this, publisher, seed = dice.between(0, 1 << 20)] {
        publish(publisher, Dice(static_cast<uint64_t>(seed)));
      });
    }
    for (std::thread &thread : publishers) thread.join();
    const int64_t limit = host.platform.now_ns(&host) + INT64_C(60'000'000'000);
    while (executor_is_busy() && host.platform.now_ns(&host) < limit) std::this_thread::yield();
    tide_executor_stop(&executor);
    for (std::thread &thread : spinners) thread.join();
    for (const Listener &listener : listeners) {
      EXPECT_EQ(listener.taken + listener.local.dropped, listener.local.received) << "one lost, or run for nothing";
      EXPECT_EQ(listener.empty, 0u);
    }
    for (const tide_local_topic_t &topic : topics) {
      EXPECT_EQ(topic.used, 0u) << "a message leaked";
      EXPECT_EQ(topic.counters.refused, 0u);
    }
    EXPECT_EQ(errors, 0);
  }

 private:
  static constexpr uint32_t kMessages = kTopics * kPublishers + kSubscriptions * 4;
  struct Message {
    size_t publisher;
    uint64_t number, check;
  };
  struct Listener {
    tide_callback_t callback{};
    tide_local_subscription_t local{};
    std::array<tide_local_message_t *, 3> queue{};
    std::array<uint64_t, kPublishers> last{};
    uint64_t taken = 0, empty = 0;
    Traffic *traffic = nullptr;
  };

  void prepare(Listener &listener, size_t index) {
    listener.traffic = this;
    listener.callback.kind = TIDE_CALLBACK_SUBSCRIPTION;
    listener.callback.priority = TIDE_PRIORITY(dice.between(0, 4), 0);
    listener.callback.context = &listener;
    listener.callback.execute = [](tide_callback_t *, void *context) { take(*static_cast<Listener *>(context)); };
    EXPECT_EQ(tide_executor_add(&executor, &listener.callback), TIDE_OK);
    listener.local.callback = &listener.callback;
    listener.local.queue = listener.queue.data();
    listener.local.depth = static_cast<uint16_t>(dice.between(1, 3));
    EXPECT_EQ(tide_local_subscribe(&topics[index % kTopics], &listener.local), TIDE_OK);
  }

  // Plain data of the callback and the message, so that ThreadSanitizer notices when they are not protected.
  static void take(Listener &listener) {
    const auto *message = static_cast<const Message *>(tide_local_take(&listener.local, nullptr));
    if (message == nullptr) {
      listener.empty++;
      return;
    }
    listener.taken++;
    uint64_t &last = listener.last[message->publisher];
    if (message->number <= last || message->check != message->number * 3 + message->publisher) {
      listener.traffic->errors++;
    }
    last = message->number;
    tide_local_release(message);
  }

  void publish(size_t publisher, Dice own) {
    for (uint64_t number = 1; number <= 300; number++) {
      tide_local_topic_t &topic = topics[static_cast<size_t>(own.between(0, kTopics - 1))];
      void *place = nullptr;
      if (tide_local_borrow(&topic, &place) != TIDE_OK) {
        errors++;
        return;
      }
      *static_cast<Message *>(place) = {publisher, number, number * 3 + publisher};
      if (own.chance(5)) {
        tide_local_give_back(place);
      } else if (tide_local_publish(&topic, place, sizeof(Message)) != static_cast<int>(kSubscriptions / kTopics)) {
        errors++;
      }
      if (own.chance(20)) std::this_thread::yield();
    }
  }

  bool executor_is_busy() {
    const uintptr_t lock = host.platform.critical_enter(&host);
    bool busy = executor.ready_count > 0;
    for (const tide_lane_t &lane : lanes) busy = busy || lane.running != nullptr;
    host.platform.critical_exit(&host, lock);
    return busy;
  }

  Dice dice;
  Host host;
  std::vector<tide_lane_t> lanes;
  std::array<tide_callback_t *, kSubscriptions> callbacks{};
  std::vector<tide_queue_entry_t *> ready, timers;
  tide_executor_t executor{};
  tide_local_pool_t pool{};
  alignas(8) std::array<uint8_t, TIDE_LOCAL_STORAGE_BYTES(kMessages, sizeof(Message))> storage{};
  std::array<tide_local_topic_t, kTopics> topics{};
  std::array<Listener, kSubscriptions> listeners{};
  std::atomic<int> errors = 0;
};

TEST(LocalThreads, NothingIsLostDoubledOrOverwritten) {
  const uint64_t first = environment("TIDE_SEED", 1);
  const uint64_t last = first + environment("TIDE_SEEDS", std::getenv("TIDE_SEED") == nullptr ? 20 : 1);
  for (uint64_t seed = first; seed < last; seed++) {
    Traffic(seed).run();
    ASSERT_FALSE(testing::Test::HasFailure()) << "replay with TIDE_SEED=" << seed;
  }
}

}  // namespace exec_lanes_test_local
