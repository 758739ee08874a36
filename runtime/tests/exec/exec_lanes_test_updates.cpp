// SPDX-License-Identifier: Apache-2.0
// When the tide policy updates its set, and the cost of a choice without an update: no query of the source, and one
// critical section less.
#include "exec_bands.h"

namespace exec_lanes_test_updates {

struct Updates : exec_virtual::Bands {
  Updates() { has_source = false; }

  int sections_of_round(size_t lane) {
    const int before = machine.sections;
    EXPECT_EQ(round(lane), 1);
    return machine.sections - before;
  }
};

TEST_F(Updates, NoneWhileNothingCanBeNew) {
  start({0, 0});
  Probe &a = add('a', 9), &b = add('b', 1), &c = add('c', 5);
  add_timer('t', 0, 1000);
  a.action = [&] {
    notify(b);
    notify(c);
    EXPECT_EQ(round(1), 1);
  };
  notify(a);
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(log, "acb") << "who notifies puts it into the set in its place";
  EXPECT_EQ(updates(), 0u);
  EXPECT_EQ(executor.counters.rounds, 3u);
  EXPECT_EQ(round(0), TIDE_ERROR_TIMEOUT);
  EXPECT_EQ(updates(), 0u) << "it brought nothing";
}

TEST_F(Updates, OneForAnExpiryAlsoWhenAnotherCallbackGoesFirst) {
  start({0, 0});
  Probe &a = add('a', 9);
  add_timer('t', 0, 10);
  notify(a);
  machine.now = 9;
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(updates(), 0u);
  notify(a);
  machine.now = 10;
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(log, "aa");
  EXPECT_EQ(updates(), 1u);
  EXPECT_EQ(round(1), 1);
  EXPECT_EQ(log, "aat");
  EXPECT_EQ(updates(), 1u) << "it was in the set";
}

TEST_F(Updates, OneForEachWaitThatBroughtSomething) {
  start({0});
  Probe &a = add('a', 9);
  add_timer('t', 0, 10);
  machine.at(5, [&] { notify(a); });
  EXPECT_EQ(round(0, 100), 1);
  EXPECT_EQ(updates(), 1u);
  EXPECT_EQ(round(0, 100), 1);
  EXPECT_EQ(machine.now, 10);
  EXPECT_EQ(log, "at");
  EXPECT_EQ(updates(), 2u);
  machine.at(12, [&] { tide_executor_wake(&executor); });
  EXPECT_EQ(round(0, 15), TIDE_ERROR_TIMEOUT);
  EXPECT_EQ(updates(), 2u);
}

TEST_F(Updates, OneForArrivalsWhereInterruptsOnlyNoteThem) {
  machine.split();
  start({0});
  Probe &a = add('a', 9), &b = add('b', 1);
  a.action = [&] { notify(b); };
  notify(a);
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(updates(), 1u);
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(updates(), 2u);
  EXPECT_EQ(log, "ab");
}

TEST_F(Updates, AChoiceWithoutOneTakesOneCriticalSection) {
  start({0, 0});
  Probe &a = add('a', 9);
  notify(a);
  notify(a);
  EXPECT_EQ(sections_of_round(0), 2) << "to choose, and at the end";
  notify(a);
  has_source = true;
  executor.config.source = source();
  EXPECT_EQ(sections_of_round(0), 3) << "to update, to choose, and at the end";
  EXPECT_GT(asked, 0);
  const int before = asked;
  executor.config.source = {};
  EXPECT_EQ(sections_of_round(1), 2);
  EXPECT_EQ(asked, before);
}

TEST_F(Updates, AnAlwaysCallbackIsHeardOfDuringAWait) {
  start({0});
  Probe &a = add('a', 9);
  Probe &every = add('e', 1);
  EXPECT_EQ(tide_executor_remove(&executor, &every.timer.callback), TIDE_OK);
  every.timer.callback.always = true;
  machine.at(5, [&] {
    EXPECT_EQ(tide_executor_add(&executor, &every.timer.callback), TIDE_OK);
    notify(a);
  });
  EXPECT_EQ(round(0, 100), 2);
  EXPECT_EQ(log, "ae");
}

}  // namespace exec_lanes_test_updates
