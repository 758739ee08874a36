// SPDX-License-Identifier: Apache-2.0
#include "analysis/model.h"

#include <gtest/gtest.h>

#include <random>

namespace tide::analysis {
namespace analysis_supply_test {

const Lane kThreeOfFive{3, 5};

// Least or greatest supply in a window, counted time unit by time unit for all phases. The budget may lie anywhere in
// its period, so the least supply follows right after an early budget, and the greatest begins with a late budget.
time_ns counted(const Lane &lane, time_ns window_ns, bool least) {
  time_ns extreme = least ? kNeverNs : 0;
  for (time_ns start = 0; start < 2 * lane.period_ns; ++start) {
    time_ns given = 0;
    for (time_ns slot = start; slot < start + window_ns; ++slot) {
      const time_ns place = slot % lane.period_ns;
      const bool first = slot < lane.period_ns;  // if the first budget is early, all others are late, and vice versa
      const bool early = first == least;
      given += early ? place < lane.budget_ns : place >= lane.period_ns - lane.budget_ns;
    }
    extreme = least ? std::min(extreme, given) : std::max(extreme, given);
  }
  return extreme;
}

TEST(Supply, HasTheWorkedValues) {
  const std::vector<time_ns> least{0, 0, 0, 0, 0, 1, 2, 3, 3, 3, 4};
  for (size_t window = 0; window < least.size(); ++window) {
    EXPECT_EQ(least_supply_ns(kThreeOfFive, static_cast<time_ns>(window)), least[window]) << window;
  }
  EXPECT_EQ(window_for_ns(kThreeOfFive, 0), 0);
  EXPECT_EQ(window_for_ns(kThreeOfFive, 1), 5);
  EXPECT_EQ(window_for_ns(kThreeOfFive, 3), 7);
  EXPECT_EQ(window_for_ns(kThreeOfFive, 4), 10);
  const std::vector<time_ns> most{0, 1, 2, 3, 4, 5, 6, 6, 6, 7, 8, 9, 9};
  for (size_t window = 0; window < most.size(); ++window) {
    EXPECT_EQ(most_supply_ns(kThreeOfFive, static_cast<time_ns>(window)), most[window]) << window;
  }
}

TEST(Supply, IsWhatCountingSlotsGives) {
  for (time_ns period = 1; period <= 7; ++period) {
    for (time_ns budget = 1; budget <= period; ++budget) {
      const Lane lane{budget, period};
      for (time_ns window = 0; window <= 5 * period; ++window) {
        EXPECT_EQ(least_supply_ns(lane, window), counted(lane, window, true))
            << budget << '/' << period << ' ' << window;
        EXPECT_EQ(most_supply_ns(lane, window), counted(lane, window, false))
            << budget << '/' << period << ' ' << window;
      }
    }
  }
}

TEST(Supply, InversesAreTheShortestWindows) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<Lane> lanes(1 + random() % 4);
    for (Lane &lane : lanes) {
      lane.period_ns = static_cast<time_ns>(1 + random() % 9);
      lane.budget_ns = static_cast<time_ns>(1 + random() % static_cast<uint64_t>(lane.period_ns));
    }
    const Supply supply(lanes);
    for (time_ns amount = 1; amount <= 40; ++amount) {
      const time_ns window = supply.window_for_ns(amount);
      ASSERT_GE(supply.least(window).value, amount) << "round " << round;
      ASSERT_LT(supply.least(window - 1).value, amount) << "round " << round;
      const time_ns alone = window_for_ns(lanes[0], amount);
      ASSERT_GE(least_supply_ns(lanes[0], alone), amount);
      ASSERT_LT(least_supply_ns(lanes[0], alone - 1), amount);
      ASSERT_GE(supply.worst_window_for_ns(amount), alone);
    }
  }
}

TEST(Supply, PiecesHoldAsFarAsTheySay) {
  const std::vector<Lane> lanes{{3, 5}, {1, 4}, {2, 2}};
  const Supply supply(lanes);
  for (time_ns window = 0; window < 100; ++window) {
    const Linear piece = supply.least(window);
    ASSERT_GT(piece.until_ns, window);
    for (time_ns later = window; later <= std::min<time_ns>(piece.until_ns, window + 50); ++later) {
      ASSERT_EQ(supply.least(later).value, piece.value + piece.slope * (later - window)) << window << ' ' << later;
    }
  }
}

// A more urgent thread takes 2 of every 10, and a segment with jitter or waiting in it, 3 of every 20 within 3 + 8 of
// its release: it may end one period and begin the next.
const Lane kPreempted{1, 1, {{2, 10, 0}, {3, 20, 8}}};

TEST(Supply, APreemptedLaneGetsWhatMoreUrgentThreadsLeave) {
  for (time_ns window = 0; window <= 200; ++window) {
    time_ns least = 0;
    for (time_ns part = 0; part <= window; ++part) {
      const time_ns taken =
          part / 10 * 2 + std::min<time_ns>(2, part % 10) + (part + 8) / 20 * 3 + std::min<time_ns>(3, (part + 8) % 20);
      least = std::max(least, part - taken);
    }
    EXPECT_EQ(least_supply_ns(kPreempted, window), least) << window;
  }
  for (time_ns supply = 1; supply <= 120; ++supply) {
    const time_ns window = window_for_ns(kPreempted, supply);
    EXPECT_GE(least_supply_ns(kPreempted, window), supply);
    EXPECT_LT(least_supply_ns(kPreempted, window - 1), supply);
  }
  const std::vector<Lane> lanes{kPreempted};
  for (time_ns window = 0; window <= 100; ++window) {
    const Linear piece = Supply(lanes).least(window);
    ASSERT_GT(piece.until_ns, window);
    for (time_ns later = window; later <= std::min<time_ns>(piece.until_ns, 200); ++later)
      EXPECT_EQ(piece.value + piece.slope * (later - window), least_supply_ns(kPreempted, later)) << window;
  }
  EXPECT_EQ(window_for_ns(Lane{1, 1, {{1, 2, 0}, {1, 2, 0}}}, 1), kNeverNs);  // nothing is left
}

TEST(Supply, WhatPassesWhileALaneHoldsACallback) {
  const std::vector<Lane> cores(3);
  EXPECT_EQ(Supply(cores).passing_ns(5), 15);
  const std::vector<Lane> mixed{{1, 10}, {10, 10}};
  // The first lane gets its second unit up to 20 after the first; the other lane is always supplied.
  EXPECT_EQ(Supply(mixed).passing_ns(2), 2 + 1 + window_for_ns(mixed[0], 1));
}

TEST(Supply, LargeTimesDoNotOverflow) {
  const Lane lane{1, kLongestTimeNs};
  EXPECT_EQ(window_for_ns(lane, kLongestTimeNs), kNeverNs);
  EXPECT_EQ(least_supply_ns(lane, 2 * kLongestTimeNs), 1);
}

}  // namespace analysis_supply_test
}  // namespace tide::analysis
