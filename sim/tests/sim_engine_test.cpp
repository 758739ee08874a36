// SPDX-License-Identifier: Apache-2.0
// Virtual time: tasks, preemption, interrupts, and the platform for the runtime.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "sim/engine/engine.h"
#include "sim/engine/line.h"
#include "sim/engine/machine.h"
#include "sim/engine/random.h"

namespace tide::sim {
namespace sim_engine_test {

using Log = std::vector<std::pair<Time, std::string>>;

TEST(SimEngine, EventsOfOneTimeKeepTheirOrder) {
  Engine engine;
  std::string order;
  engine.at(5, [&] { order += 'b'; });
  engine.at(3, [&] {
    order += 'a';
    engine.at(5, [&] { order += 'd'; });
  });
  engine.at(5, [&] { order += 'c'; });
  engine.run_until(10);
  EXPECT_EQ(order, "abcd");
  EXPECT_EQ(engine.now(), 10);
}

TEST(SimEngine, AMoreUrgentTaskPreemptsAndTheOtherGoesOn) {
  Engine engine;
  Core &core = engine.add_core();
  Log log;
  Task low(core, "low", 1, [&] {
    Task::current()->execute(100);
    log.emplace_back(engine.now(), "low");
  });
  Task high(core, "high", 2, [&] {
    Task::current()->block(30);
    Task::current()->execute(50);
    log.emplace_back(engine.now(), "high");
  });
  engine.run_until(1000);
  EXPECT_EQ(log, (Log{{80, "high"}, {150, "low"}}));
}

TEST(SimEngine, EqualPrioritiesDoNotPreempt) {
  Engine engine;
  Core &core = engine.add_core();
  Log log;
  Task first(core, "first", 1, [&] {
    Task::current()->execute(100);
    log.emplace_back(engine.now(), "first");
  });
  Task second(core, "second", 1, [&] {
    Task::current()->execute(10);
    log.emplace_back(engine.now(), "second");
  });
  engine.run_until(1000);
  EXPECT_EQ(log, (Log{{100, "first"}, {110, "second"}}));
}

// The numbers of cores are chosen around 64, because the engine keeps the set of cores with work in words of 64 bits.
TEST(SimEngine, ManyCoresRunAtTheSameTimeAndWakeEachOther) {
  for (const size_t count : {63u, 64u, 65u, 128u, 130u}) {
    Engine engine;
    std::vector<std::unique_ptr<Task>> tasks(count);
    std::vector<Time> woken;
    for (size_t index = count; index-- > 0;) {
      tasks[index] = std::make_unique<Task>(engine.add_core(), "one", 1, [&, index] {
        if (index > 0) Task::current()->block(kForever);
        woken.push_back(engine.now());
        Task::current()->execute(10);
        if (index + 1 < count) tasks[index + 1]->wake();
      });
    }
    engine.run_until(static_cast<Time>(count) * 10);
    ASSERT_EQ(woken.size(), count);
    for (size_t index = 0; index < count; index++) EXPECT_EQ(woken[index], static_cast<Time>(index) * 10);
  }
}

TEST(SimEngine, CoresRunAtTheSameTime) {
  Engine engine;
  Core &one = engine.add_core();
  Core &two = engine.add_core();
  Log log;
  Task left(one, "left", 1, [&] {
    Task::current()->execute(100);
    log.emplace_back(engine.now(), "left");
  });
  Task right(two, "right", 1, [&] {
    Task::current()->execute(70);
    log.emplace_back(engine.now(), "right");
  });
  engine.run_until(1000);
  EXPECT_EQ(log, (Log{{70, "right"}, {100, "left"}}));
}

TEST(SimEngine, AnInterruptTakesItsCostFromTheTask) {
  Engine engine;
  Core &core = engine.add_core();
  Log log;
  Task task(core, "task", 1, [&] {
    Task::current()->execute(100);
    log.emplace_back(engine.now(), "task");
  });
  engine.at(40, [&] { core.interrupt(7, [&] { log.emplace_back(engine.now(), "first"); }); });
  engine.at(42, [&] { core.interrupt(5, [&] { log.emplace_back(engine.now(), "second"); }); });
  engine.run_until(1000);
  EXPECT_EQ(log, (Log{{40, "first"}, {47, "second"}, {112, "task"}}));
}

TEST(SimEngine, WhoNeverWaitsIsNoticed) {
  Engine engine;
  Core &core = engine.add_core();
  bool stop = false;
  Task low(core, "low", 1, [&] {
    while (!stop) core.interrupt(0, [] {}), Task::current()->give_way();
  });
  EXPECT_THROW(engine.run_until(1), std::runtime_error);
  stop = true;
  engine.run_until(2);
  EXPECT_TRUE(low.is_finished());
}

TEST(SimPlatform, AnEventThatIsSetEarlyEndsTheWait) {
  Engine engine;
  Machine machine(engine);
  const tide_platform_t *platform = machine.platform();
  tide_event_t event;
  platform->event_init(platform->context, &event);
  std::vector<int> results;
  std::vector<Time> times;
  Task task(machine.core(), "task", 1, [&] {
    for (const Time deadline : {Time{0}, Time{50}, Time{80}, kForever}) {
      results.push_back(platform->event_wait(platform->context, &event, deadline));
      times.push_back(engine.now());
    }
  });
  engine.at(60, [&] { platform->event_set(platform->context, &event); });
  engine.at(200, [&] { platform->event_set(platform->context, &event); });
  engine.run_until(1000);
  EXPECT_EQ(results, (std::vector<int>{0, 0, 1, 1}));
  EXPECT_EQ(times, (std::vector<Time>{0, 50, 60, 200}));
}

TEST(SimPlatform, AMoreUrgentTaskWaitsForTheEndOfTheSection) {
  Engine engine;
  Machine machine(engine);
  const tide_platform_t *platform = machine.platform();
  tide_event_t event;
  platform->event_init(platform->context, &event);
  std::string order;
  Task high(machine.core(), "high", 2, [&] {
    platform->event_wait(platform->context, &event, TIDE_FOREVER);
    order += 'h';
  });
  Task low(machine.core(), "low", 1, [&] {
    const uintptr_t outer = platform->critical_enter(platform->context);
    const uintptr_t inner = platform->critical_enter(platform->context);
    platform->event_set(platform->context, &event);
    order += 'a';
    platform->critical_exit(platform->context, inner);
    order += 'b';
    platform->critical_exit(platform->context, outer);
    order += 'c';
  });
  engine.run_until(1000);
  EXPECT_EQ(order, "abhc");
}

TEST(SimLine, AByteIsTenBits) {
  Engine engine;
  Line line(engine, 115200, 1);
  std::vector<Time> arrivals, departures;
  line.deliver = [&](const Line::Bytes &) { arrivals.push_back(engine.now()); };
  line.send(Line::Bytes(115), [&] { departures.push_back(engine.now()); });
  engine.run_until(kSecond);
  EXPECT_EQ(arrivals, (std::vector<Time>{9982639}));
  EXPECT_EQ(departures, arrivals);
}

TEST(SimLine, FaultsHappenAsOftenAsAsked) {
  Engine engine;
  Line line(engine, 0, 7);
  size_t delivered = 0, changed = 0;
  const Line::Bytes frame(20, 0x55);
  line.deliver = [&](const Line::Bytes &bytes) {
    delivered++;
    changed += bytes == frame ? 0 : 1;
  };
  line.set_faults({.loss = 0.2, .duplication = 0.1, .corruption = 0.3, .delay = 0.5, .delay_maximum = 1000});
  for (int count = 0; count < 10000; count++) line.send(frame, [] {});
  engine.run_until(kSecond);
  const LineCounters &counters = line.counters();
  EXPECT_NEAR(static_cast<double>(counters.lost), 2000, 200);
  EXPECT_NEAR(static_cast<double>(counters.duplicated), 800, 150);
  EXPECT_EQ(delivered, 10000 - counters.lost + counters.duplicated);
  EXPECT_NEAR(static_cast<double>(changed), static_cast<double>(delivered) * 0.3, 300);
  EXPECT_NEAR(static_cast<double>(counters.delayed), static_cast<double>(delivered) * 0.5, 300);
}

TEST(SimRandom, IsTheSameEverywhere) {
  Random random(42);
  EXPECT_EQ(random.next(), 1546998764402558742u);
  EXPECT_EQ(random.next(), 6990951692964543102u);
  for (int count = 0; count < 1000; count++) {
    const int64_t value = random.between(-3, 3);
    EXPECT_GE(value, -3);
    EXPECT_LE(value, 3);
  }
}

}  // namespace sim_engine_test
}  // namespace tide::sim
