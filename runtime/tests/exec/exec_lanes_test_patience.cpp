// SPDX-License-Identifier: Apache-2.0
// Which lanes are woken and which need not be, because they will check by themselves soon or the callback cannot start
// anyway.
#include "exec_bands.h"

namespace exec_lanes_test_patience {

struct Patience : exec_virtual::Bands {
  Patience() {
    has_source = false;
    config.patience_ns = 5;
  }

  void notify_from(Probe &probe, size_t lane) { tide_executor_notify_from(&probe.timer.callback, lane); }

  // Performs the action in lane 0, while it runs the timer that expires at 10. Lanes 1 and 2 have waited for that
  // expiry as well.
  void on_expiry(const std::function<void()> &action) {
    start({0, 0, 0});
    add_timer('t', TIDE_PRIORITY(5, 0), 10).action = action;
    machine.at(1, [&] { (void)round(1, 14); });
    machine.at(10, [&] { EXPECT_EQ(round(0), 1); });
    (void)round(2, 14);
  }
};

TEST_F(Patience, OneLaneWakesForAnExpiryAndTheOthersLater) {
  start({0, 0});
  add_timer('t', 0, 10);
  machine.at(1, [&] {
    EXPECT_EQ(round(1, 1000), 1);
    EXPECT_EQ(machine.now, 15) << "the first lane has not come, and this one does";
  });
  EXPECT_EQ(round(0, 1000), 1);
  EXPECT_EQ(machine.now, 20);
  EXPECT_EQ(log, "tt");
}

TEST_F(Patience, ASecondExpiryHasALaneOfItsOwn) {
  start({0, 0});
  add_timer('t', 0, 10);
  add_timer('u', 1, 12);
  machine.at(1, [&] {
    EXPECT_EQ(round(1, 1000), 1);
    EXPECT_EQ(machine.now, 12) << "no timer is late for what lanes are patient with";
  });
  EXPECT_EQ(round(0, 1000), 1);
  EXPECT_EQ(log, "ut");
}

TEST_F(Patience, NoneWithoutIt) {
  config.patience_ns = 0;
  start({0, 0});
  add_timer('t', 0, 10);
  machine.at(1, [&] {
    EXPECT_EQ(round(1, 1000), 1);
    EXPECT_EQ(machine.now, 10);
  });
  EXPECT_EQ(round(0, 1000), 1);
}

TEST_F(Patience, ALaneNeedsNobodyForWhatItTakesItself) {
  Probe *b = nullptr, *c = nullptr;
  on_expiry([&] {
    b = &add('b', 1);
    c = &add('c', 1);
    notify_from(*b, 0);
    EXPECT_EQ(woken(), "") << "another one looks at 15 at the latest";
    notify_from(*c, 0);
    EXPECT_EQ(woken(), "1") << "it cannot take both";
  });
  EXPECT_EQ(log, "tbc");
}

TEST_F(Patience, TheOnlyLaneOfABandNeedsNoWakeUpFromItsOwnCallback) {
  config.patience_ns = 0;
  start({0, 3});
  Probe &b = add('b', 1), &c = add('c', TIDE_PRIORITY(3, 0)), &x = add('x', 9);
  x.action = [&] {
    notify_from(b, 0);
    EXPECT_EQ(woken(), "") << "it looks before it sleeps";
    notify_from(c, 0);
    EXPECT_EQ(woken(), "1") << "another band's lane may sleep";
  };
  notify(x);
  EXPECT_EQ(woken(), "0");
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(round(1), 1);
  EXPECT_EQ(log, "xbc");
  notify_from(b, 0);
  EXPECT_EQ(woken(), "0") << "it runs nothing, so it may sleep";
  EXPECT_EQ(executor.counters.sleeps, 0u);
}

TEST_F(Patience, ALaneThatLooksTakesItWhenTheFirstGoesOn) {
  start({0, 0, 0});
  Probe &b = add('b', 1);
  add_timer('t', TIDE_PRIORITY(5, 0), 10).action = [&] {
    notify_from(b, 0);
    EXPECT_EQ(woken(), "");
  };
  machine.at(1, [&] {
    EXPECT_EQ(round(1, 1000), 1);
    EXPECT_EQ(machine.now, 15) << "not at the next expiry";
    EXPECT_EQ(log, "tb");
  });
  machine.at(10, [&] { EXPECT_EQ(round(0), 1); });  // and is not checked again
  EXPECT_EQ(round(2, 19), TIDE_ERROR_TIMEOUT);
}

TEST_F(Patience, EverybodyElseWakesALane) {
  on_expiry([&] {
    notify(add('x', 1));
    EXPECT_EQ(woken(), "1") << "who is not the lane does not know how long it goes on";
  });
}

TEST_F(Patience, NotForMoreRunsThanOne) {
  tide_group_t group{};
  on_expiry([&] {
    ASSERT_EQ(tide_group_init(&group, TIDE_GROUP_REENTRANT, nullptr, 0), TIDE_OK);
    Probe &b = add('b', 1, &group);
    notify_from(b, 0);
    notify_from(b, 0);
    EXPECT_EQ(woken(), "1");
  });
}

TEST_F(Patience, NotWhereNobodyLooksSoon) {
  start({0, 0, 0, 0});
  Probe &b = add('b', 1), &x = add('x', 9);
  add_timer('t', 0, 10);
  x.action = [&] {
    EXPECT_EQ(woken(), "") << "a lane waits for the expiry already";
    notify_from(b, 0);
    EXPECT_EQ(woken(), "2") << "one looks at 10, which is too late";
  };
  machine.at(1, [&] { (void)round(2, 9); });
  machine.at(2, [&] { (void)round(1, 9); });
  machine.at(3, [&] {
    notify(x);
    EXPECT_EQ(woken(), "1") << "not the one that waits for the expiry";
    EXPECT_EQ(round(0), 1);
  });
  (void)round(3, 9);
  EXPECT_EQ(log, "xb");
}

TEST_F(Patience, NotForALessUrgentLanesCallback) {
  start({0, 0, 3});
  Probe &b = add('b', 1), &x = add('x', TIDE_PRIORITY(3, 0));
  add_timer('t', 0, 10);
  x.action = [&] {
    notify_from(b, 2);
    EXPECT_EQ(woken(), "1") << "this lane does not take it";
  };
  machine.at(1, [&] { (void)round(1, 9); });
  machine.at(8, [&] {
    notify(x);
    EXPECT_EQ(woken(), "2");
    EXPECT_EQ(round(2), 1);
  });
  (void)round(0, 9);
  EXPECT_EQ(log, "xb");
}

TEST_F(Patience, AnEarlierExpiryIsNotLate) {
  start({0, 0, 0, 0});
  add_timer('t', 0, 10);
  Probe &u = add_timer('u', 0, 1000), &x = add('x', 9);
  x.action = [&] { EXPECT_EQ(tide_timer_set_phase(&u.timer, 6), TIDE_OK); };
  machine.at(1, [&] { (void)round(2, 9); });
  machine.at(2, [&] { (void)round(1, 9); });
  machine.at(3, [&] {
    notify(x);
    EXPECT_EQ(round(0), 1);
    EXPECT_EQ(round(0, 1000), 1);
    EXPECT_EQ(machine.now, 6) << "an idle lane waits for the expiry at 10";
  });
  (void)round(3, 9);
  EXPECT_EQ(log, "xu");
}

TEST_F(Patience, WhoWaitsForTheExpiryIsWokenLast) {
  start({0, 0});
  Probe &t = add_timer('t', 0, 1000), &b = add('b', 1);
  EXPECT_EQ(tide_timer_cancel(&t.timer), TIDE_OK);
  woken();
  machine.at(1, [&] { (void)round(1, 9); });
  machine.at(3, [&] { EXPECT_EQ(tide_timer_set_phase(&t.timer, 10), TIDE_OK); });  // it checks, and waits for that
                                                                                   // expiry
  machine.at(5, [&] {
    notify(b);
    EXPECT_EQ(woken(), "0");
  });
  (void)round(0, 9);
}

TEST_F(Patience, WhatWaitsForItsGroupWakesNobody) {
  config.patience_ns = 0;
  start({0, 0, 0});
  std::array<tide_queue_entry_t *, 2> storage{};
  tide_group_t group{};
  ASSERT_EQ(tide_group_init(&group, TIDE_GROUP_EXCLUSIVE, storage.data(), storage.size()), TIDE_OK);
  Probe &a = add('a', 5, &group), &b = add('b', 1, &group);
  a.action = [&] {
    notify(b);
    EXPECT_EQ(woken(), "") << "nobody could take it";
    notify(a);
    EXPECT_EQ(woken(), "") << "nor this one";
    a.action = nullptr;
  };
  machine.at(1, [&] { (void)round(1, 9); });
  machine.at(5, [&] {
    notify(a);
    EXPECT_EQ(woken(), "1");
    EXPECT_EQ(round(0), 1);
  });
  (void)round(2, 9);
  (void)round(0);
  EXPECT_EQ(log, "aab") << "who looks next takes what has waited";
}

}  // namespace exec_lanes_test_patience
