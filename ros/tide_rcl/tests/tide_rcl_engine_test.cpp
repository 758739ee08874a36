// SPDX-License-Identifier: Apache-2.0
// The engine for C++ hosts, without a middleware.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "engine_probe.h"

namespace tide_rcl {
namespace tide_rcl_engine_test {

TEST(Engine, RunsTheMostUrgentFirstAndEqualsInOrder) {
  Engine engine;
  std::string order;
  const auto low = probe([&] { order += 'l'; });
  const auto first = probe([&] { order += '1'; });
  const auto second = probe([&] { order += '2'; });
  engine.add(low, TIDE_PRIORITY(1, 0));
  engine.add(first, TIDE_PRIORITY(2, 0));
  engine.add(second, TIDE_PRIORITY(2, 0));
  low->notify(2);
  second->notify();
  first->notify();
  engine.spin_all(std::chrono::seconds(0));
  EXPECT_EQ(order, "21ll");
  EXPECT_EQ(engine.counters().callbacks_run, 4u);
}

TEST(Engine, TheDefaultPolicyTakesKindsInTheOrderOfRclcpp) {
  EngineOptions options;
  options.policy = Policy::kDefault;
  Engine engine(options);
  std::string order;
  const auto client = probe([&] { order += 'c'; }, TIDE_CALLBACK_CLIENT);
  const auto service = probe([&] { order += 's'; }, TIDE_CALLBACK_SERVICE);
  const auto second = probe([&] { order += '2'; });
  const auto first = probe([&] { order += '1'; });
  const auto alarm = std::make_shared<Alarm>([&] { order += 't'; });
  engine.add(client, TIDE_PRIORITY(9, 0));
  engine.add(service, 0);
  engine.add(first, 0);
  engine.add(second, TIDE_PRIORITY(3, 0));
  engine.add(alarm, 0);
  second->notify(2);
  client->notify();
  first->notify();
  service->notify();
  alarm->arm_at(engine.now_ns(), 3600000000000);
  engine.spin_all(std::chrono::seconds(0));
  EXPECT_EQ(order, "t12sc2") << "one of each a polling point, priorities or not";
}

TEST(Engine, SpinSomeRunsWhatWasReadyAndNoMore) {
  Engine engine;
  int runs = 0;
  std::shared_ptr<Probe> again;
  again = probe([&] {
    runs++;
    again->notify();
  });
  engine.add(again, 0);
  again->notify(3);
  engine.spin_some();
  EXPECT_EQ(runs, 3);
  engine.spin_some();
  EXPECT_EQ(runs, 6);
  engine.remove(again);
  again.reset();
}

TEST(Engine, SpinSomeBeginsNothingAfterItsTime) {
  Engine engine;
  int runs = 0;
  const auto slow = probe([&] {
    runs++;
    const std::int64_t over_ns = engine.now_ns() + 2000000;
    while (engine.now_ns() < over_ns) std::this_thread::yield();
  });
  engine.add(slow, 0);
  slow->notify(5);
  engine.spin_some(milliseconds(1));
  EXPECT_EQ(runs, 1);
}

TEST(Engine, SpinOnceWaitsForOneAndForNoLonger) {
  Engine engine(lanes_of({0, 5}));
  std::atomic<int> runs{0};
  const auto urgent = probe([&] { runs++; });
  const auto other = probe([&] { runs += 100; });
  engine.add(urgent, TIDE_PRIORITY(7, 0));
  engine.add(other, 0);
  const std::int64_t begin_ns = engine.now_ns();
  engine.spin_once(milliseconds(5));
  EXPECT_GE(engine.now_ns() - begin_ns, 5000000);
  EXPECT_EQ(runs, 0);
  other->notify();
  urgent->notify();
  engine.spin_once(std::chrono::seconds(0));
  EXPECT_EQ(runs, 1) << "the most urgent of all lanes";
  engine.spin_once();
  EXPECT_EQ(runs, 101);
  std::thread notifier([&] {
    (void)eventually([&] { return engine.is_spinning(); });
    urgent->notify();
  });
  engine.spin_once();
  EXPECT_EQ(runs, 102) << "woken from a wait for ever";
  notifier.join();
}

// ThreadSanitizer checks the accesses of the two lanes. Five repetitions suffice, because it usually detects a race in
// the first ones.
TEST(Engine, ARunAsksForItsStartWhileAnotherLaneBeginsTheNext) {
  Engine engine(lanes_of({0, 0}));
  std::atomic<int> runs{0};
  std::shared_ptr<Alarm> alarm;
  alarm = std::make_shared<Alarm>([&] {
    const int number = ++runs;
    while (number == 1 && runs < 2) {
      const std::int64_t start_ns = alarm->start_ns();
      EXPECT_LE(start_ns, engine.now_ns());
      std::this_thread::yield();
    }
    if (number == 2) engine.cancel();
  });
  engine.add(alarm, 0, std::make_shared<Group>(TIDE_GROUP_REENTRANT));
  for (int count = 0; count < 5; count++) {
    runs = 0;
    alarm->notify(2);
    engine.spin();
    EXPECT_EQ(runs, 2);
  }
}

TEST(Engine, ATimerNeverRunsEarlyAndKeepsItsGrid) {
  Engine engine(lanes_of({0, 3}));
  constexpr std::int64_t kPeriodNs = 2000000;
  std::vector<std::int64_t> starts;
  std::shared_ptr<Alarm> alarm;
  alarm = std::make_shared<Alarm>([&] { starts.push_back(alarm->start_ns()); });
  engine.add(alarm, TIDE_PRIORITY(4, 0));
  const std::int64_t first_ns = engine.now_ns() + kPeriodNs;
  EXPECT_EQ(alarm->armed_for_ns(), TIDE_FOREVER);
  alarm->arm_at(first_ns, kPeriodNs);
  std::int64_t due_ns = first_ns;
  for (int count = 0; count < 20; count++) {
    EXPECT_EQ((due_ns - first_ns) % kPeriodNs, 0);
    engine.spin_once();
    ASSERT_EQ(starts.size(), static_cast<std::size_t>(count) + 1);
    EXPECT_GE(starts.back(), due_ns);
    due_ns = alarm->armed_for_ns();
    EXPECT_GT(due_ns, starts.back());
  }
  alarm->disarm();
  engine.spin_once(milliseconds(10));
  EXPECT_EQ(starts.size(), 20u);
  engine.remove(alarm);
  alarm.reset();
}

TEST(Engine, AnUrgentLaneRunsWhileAnotherIsBusy) {
  Engine engine(lanes_of({0, 2}));
  std::atomic<bool> ran{false}, seen{false};
  const auto urgent = probe([&] { ran = true; });
  const auto busy = probe([&] { seen = eventually([&] { return ran.load(); }); });
  engine.add(urgent, TIDE_PRIORITY(2, 0));
  engine.add(busy, TIDE_PRIORITY(1, 0));
  const Spinning spinning(engine);
  busy->notify();
  (void)eventually([&] { return engine.counters().rounds > 0; });
  urgent->notify();
  EXPECT_TRUE(eventually([&] { return seen.load(); }));
}

TEST(Engine, ExclusiveGroupsDoNotOverlapAndReentrantOnesDo) {
  for (const bool exclusive : {true, false}) {
    Engine engine(lanes_of({0, 0, 0}));
    const auto group = std::make_shared<Group>(exclusive ? TIDE_GROUP_EXCLUSIVE : TIDE_GROUP_REENTRANT);
    std::atomic<int> inside{0}, most{0}, runs{0};
    std::vector<std::shared_ptr<Probe>> probes;
    for (int index = 0; index < 9; index++) {  // more than a group has places for at first
      probes.push_back(probe([&] {
        const int now = ++inside;
        int before = most.load();
        while (before < now && !most.compare_exchange_weak(before, now)) {}
        if (!exclusive && most < 2) (void)eventually([&] { return most.load() > 1; });
        inside--;
        runs++;
      }));
      engine.add(probes.back(), TIDE_PRIORITY(index % 3, 0), group);
    }
    const Spinning spinning(engine);
    for (int times = 0; times < 100; times++) probes[static_cast<std::size_t>(times) % probes.size()]->notify();
    EXPECT_TRUE(eventually([&] { return runs == 100; })) << runs;
    if (exclusive) {
      EXPECT_EQ(most, 1);
    } else {
      EXPECT_GE(most, 2);
    }
  }
}

TEST(Engine, GrowsWithWhatIsAddedWhileItSpins) {
  Engine engine(lanes_of({0, 2, 2}));
  std::atomic<int> runs{0};
  std::vector<std::shared_ptr<Entity>> all;
  const auto group = std::make_shared<Group>(TIDE_GROUP_EXCLUSIVE);
  const Spinning spinning(engine);
  for (int index = 0; index < 1000; index++) {
    if (index % 4 == 0) {
      const auto alarm = std::make_shared<Alarm>([&] { runs++; });
      engine.add(alarm, TIDE_PRIORITY(index % 5, 0));
      alarm->arm_at(engine.now_ns(), INT64_C(3600000000000));
      all.push_back(alarm);
    } else {
      all.push_back(probe([&] { runs++; }));
      engine.add(all.back(), TIDE_PRIORITY(index % 5, 0), index % 4 == 1 ? group : nullptr);
      all.back()->notify();
    }
  }
  EXPECT_EQ(engine.size(), 1000u);
  EXPECT_TRUE(eventually([&] { return runs == 1000; })) << runs;
}

TEST(Engine, WhatIsRemovedStartsNoMoreAndIsLetGo) {
  Engine engine(lanes_of({0, 0}));
  std::atomic<int> runs{0};
  std::atomic<bool> leave{false};
  auto long_one = probe([&] {
    runs++;
    (void)eventually([&] { return leave.load(); });
  });
  auto itself = probe([] {});
  const std::weak_ptr<Probe> watched = long_one, watched_itself = itself;
  std::weak_ptr<Probe> self = itself;
  auto remover = probe([&] { EXPECT_TRUE(engine.remove(self.lock())); });
  engine.add(long_one, 0);
  engine.add(itself, 0);
  engine.add(remover, 0);
  {
    const Spinning spinning(engine);
    long_one->notify(5);
    ASSERT_TRUE(eventually([&] { return runs == 1; }));
    EXPECT_TRUE(engine.remove(long_one));
    EXPECT_FALSE(engine.remove(long_one));
    long_one->notify();
    long_one.reset();
    itself.reset();
    remover->notify();
    EXPECT_TRUE(eventually([&] { return watched_itself.expired(); }));
    EXPECT_FALSE(watched.expired()) << "it runs";
    leave = true;
  }
  EXPECT_TRUE(watched.expired());
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(engine.size(), 1u);
}

TEST(Engine, AnExceptionEndsTheSpinThatThrowsItAndTheEngineGoesOn) {
  for (const bool threads : {false, true}) {
    Engine engine(threads ? lanes_of({0, 0}) : EngineOptions{});
    int runs = 0;
    const auto bad = probe([] { throw std::domain_error("from a callback"); });
    const auto good = probe([&] { runs++; });
    engine.add(bad, TIDE_PRIORITY(1, 0));
    engine.add(good, 0);
    bad->notify();
    EXPECT_THROW(engine.spin(), std::domain_error);
    EXPECT_FALSE(engine.is_spinning());
    bad->notify();
    EXPECT_THROW(engine.spin_once(), std::domain_error);
    good->notify();
    engine.spin_once();
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(engine.counters().callbacks_run, 3u) << "those that threw are among them";
  }
}

TEST(Engine, CancelEndsEverySpinAndIsForgottenAfterwards) {
  for (const auto &options : {EngineOptions{}, lanes_of({0, 0, 4})}) {
    Engine engine(options);
    engine.cancel();  // without a spin, this has no effect
    int runs = 0;
    const auto one = probe([&] { runs++; });
    engine.add(one, 0);
    one->notify();
    engine.spin_once();
    EXPECT_EQ(runs, 1);
    for (int kind = 0; kind < 2; kind++) {
      std::thread canceller([&] {
        (void)eventually([&] { return engine.is_spinning(); });
        engine.cancel();
        engine.cancel();
      });
      kind == 0 ? engine.spin() : engine.spin_once();
      canceller.join();
      EXPECT_FALSE(engine.is_spinning());
    }
    const auto last = probe([&] { engine.cancel(); });
    engine.add(last, TIDE_PRIORITY(9, 0));
    one->notify(3);
    last->notify();
    engine.spin_all(std::chrono::seconds(0));
    EXPECT_EQ(runs, 1) << "nothing after the callback that cancelled";
    engine.spin_all(std::chrono::seconds(0));
    EXPECT_EQ(runs, 4);
  }
}

TEST(Engine, MaySpinIsAskedWhenACancelIsNotLostAnyMore) {
  Engine *itself = nullptr;
  bool may = false;
  EngineOptions options;
  options.may_spin = [&] {
    if (may) itself->cancel();
    return may;
  };
  Engine engine(options);
  itself = &engine;
  engine.spin();
  may = true;
  engine.spin();
  engine.spin_once();
  EXPECT_FALSE(engine.is_spinning());
}

TEST(Engine, OneSpinAtATime) {
  Engine engine;
  std::string said;
  const auto nested = probe([&] {
    try {
      engine.spin_some();
    } catch (const std::runtime_error &error) {
      said = error.what();
    }
  });
  engine.add(nested, 0);
  nested->notify();
  engine.spin_some();
  EXPECT_EQ(said, "the executor is already spinning");
}

TEST(Engine, RefusesWhatCannotBe) {
  Engine engine, other;
  const auto one = probe([] {});
  engine.add(one, 0);
  EXPECT_THROW(engine.add(one, 0), std::invalid_argument);
  EXPECT_THROW(other.add(one, 0), std::invalid_argument);
  EXPECT_THROW(engine.add(nullptr, 0), std::invalid_argument);
  EXPECT_THROW(other.set_priority(*one, 3), std::runtime_error);
  EXPECT_FALSE(other.remove(one));
  EXPECT_THROW(engine.spin_all(milliseconds(-1)), std::invalid_argument);
  const auto group = std::make_shared<Group>(TIDE_GROUP_EXCLUSIVE);
  const auto member = probe([] {}), stranger = probe([] {});
  engine.add(member, 0, group);
  EXPECT_THROW(other.add(stranger, 0, group), std::invalid_argument);
  EXPECT_EQ(other.size(), 0u);
  const auto free_group = std::make_shared<Group>(TIDE_GROUP_EXCLUSIVE);
  EXPECT_THROW(engine.add(one, 0, free_group), std::invalid_argument);
  other.add(stranger, 0, free_group);  // a refused member leaves the group as it was
  EngineOptions mixed = lanes_of({0, 3});
  mixed.policy = Policy::kDefault;
  EXPECT_THROW(Engine refused(mixed), std::invalid_argument);
}

TEST(Engine, ALaneThatTheSystemRefusesIsNamedAndNothingRuns) {
  EngineOptions options = lanes_of({0, 1});
  options.lanes[1].name = "brake";
  options.lanes[1].settings.scheduling = TIDE_SCHEDULING_FIFO;
  options.lanes[1].settings.priority = 4711;  // no system has this priority
  Engine engine(options);
  int runs = 0;
  const auto one = probe([&] { runs++; });
  engine.add(one, 0);
  one->notify();
  try {
    engine.spin();
    FAIL() << "no such priority";
  } catch (const std::runtime_error &error) {
    EXPECT_NE(std::string(error.what()).find("lane 'brake'"), std::string::npos) << error.what();
  }
  EXPECT_EQ(runs, 0);
  engine.spin_some();
  EXPECT_EQ(runs, 1);
}

TEST(Engine, TheSettingThatTheSystemRefusesIsNamed) {
  const auto refusal_of = [](const std::function<void(tide_lane_settings_t &)> &set) -> std::string {
    EngineOptions options = lanes_of({0});
    options.lanes[0].name = "urgent";
    set(options.lanes[0].settings);
    Engine engine(options);
    try {
      engine.spin();
    } catch (const std::runtime_error &error) {
      return error.what();
    }
    return "(taken)";
  };
  const std::string of_cpu = refusal_of([](auto &settings) { settings.processor = TIDE_ON_PROCESSOR(999); });
  EXPECT_EQ(of_cpu.find("lane 'urgent': cpu 999: this machine has processors 0 to "), 0u) << of_cpu;
  const std::string of_fifo = refusal_of([](auto &settings) {
    settings.scheduling = TIDE_SCHEDULING_FIFO;
    settings.priority = 4711;
  });
  EXPECT_EQ(of_fifo.find("lane 'urgent': fifo 4711: "), 0u) << of_fifo;
}

// Number of voluntary context switches of all threads of this process except the calling one.
long sleeps_of_others() {
  rusage all{}, own{};
  (void)getrusage(RUSAGE_SELF, &all);
  (void)getrusage(RUSAGE_THREAD, &own);
  return all.ru_nvcsw - own.ru_nvcsw;
}

// Counts the context switches for `count` messages that one thread of the middleware reports one after another.
long sleeps_for_arrivals(std::size_t lanes, int count) {
  Engine engine(lanes == 1 ? EngineOptions{} : lanes_of({0, 0}));
  std::atomic<int> runs{0};
  const auto message = probe([&] { runs++; });
  engine.add(message, 0);
  const Spinning spinning(engine);
  message->notify();
  while (runs < 1) std::this_thread::yield();
  const long before = sleeps_of_others();
  for (int sent = 1; sent <= count; sent++) {
    message->notify();
    while (runs <= sent) std::this_thread::yield();
  }
  return sleeps_of_others() - before;
}

// Counts them for messages that the callback of a timer publishes, and that the middleware reports to the subscription
// in the same thread.
long sleeps_for_own_messages(std::size_t lanes, int count) {
  Engine engine(lanes == 1 ? EngineOptions{} : lanes_of({0, 0}));
  std::atomic<int> runs{0};
  const auto message = probe([&] { runs++; });
  const auto alarm = std::make_shared<Alarm>([&] { message->notify(); });
  engine.add(message, 0, std::make_shared<Group>(TIDE_GROUP_EXCLUSIVE));
  engine.add(alarm, 0, std::make_shared<Group>(TIDE_GROUP_EXCLUSIVE));
  const Spinning spinning(engine);
  alarm->arm_at(engine.now_ns() + 1000000, 1000000);
  while (runs < 1) std::this_thread::yield();
  const long before = sleeps_of_others();
  while (runs <= count) std::this_thread::yield();
  return sleeps_of_others() - before;
}

TEST(Engine, ASecondLaneCostsAtMostOneWakeUpMore) {
  constexpr int kMessages = 200;
  constexpr long kSlack = kMessages / 2;  // because a lane that is preempted within a callback makes the other one
                                          // sleep more often
  EXPECT_LE(sleeps_for_arrivals(1, kMessages), kMessages + kSlack);
  EXPECT_LE(sleeps_for_arrivals(2, kMessages), kMessages + kSlack) << "none more";
  EXPECT_LE(sleeps_for_own_messages(1, kMessages), kMessages + kSlack);
  EXPECT_LE(sleeps_for_own_messages(2, kMessages), 2 * kMessages + kSlack) << "the look for what a callback leaves";
}

TEST(Engine, HooksAreCalledAroundEachRun) {
  std::string order;
  std::int64_t start_ns = 0;
  EngineOptions options;
  options.on_start = [&](Entity &entity, std::int64_t now_ns) {
    start_ns = now_ns;
    order += entity.priority() == TIDE_PRIORITY(3, 1) ? 's' : '?';
  };
  options.on_end = [&](Entity &entity, std::int64_t now_ns) {
    EXPECT_GE(now_ns, start_ns);
    order += entity.kind() == TIDE_CALLBACK_SERVICE ? 'e' : '?';
  };
  Engine engine(options);
  const auto one = probe([&] { order += '.'; }, TIDE_CALLBACK_SERVICE);
  engine.add(one, 0);
  engine.set_priority(*one, TIDE_PRIORITY(3, 1));
  one->notify(2);
  engine.spin_some();
  EXPECT_EQ(order, "s.es.e");
}

TEST(Engine, WhoseExceptionItWasIsTold) {
  for (EngineOptions options : {EngineOptions{}, lanes_of({0, 0})}) {
    std::atomic<const Entity *> failed{nullptr};
    options.on_failure = [&](Entity &entity) { failed.store(&entity); };
    Engine engine(options);
    const auto right = probe([] {}), wrong = probe([] { throw std::domain_error("wrong"); });
    for (const auto &one : {right, wrong}) {
      engine.add(one, 0);
      one->notify();
    }
    EXPECT_THROW(engine.spin(), std::domain_error);
    EXPECT_EQ(failed, wrong.get());
  }
}

}  // namespace tide_rcl_engine_test
}  // namespace tide_rcl
