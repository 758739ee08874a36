// SPDX-License-Identifier: Apache-2.0
// TIDE_INVARIANT with checked invariants and without.
#include <gtest/gtest.h>

#undef TIDE_INVARIANTS
#define TIDE_INVARIANTS 1
#include "tide/invariant.h"

namespace base_invariant_test {

void requires_positive(int value) { TIDE_INVARIANT(value > 0); }

TEST(Invariant, PassesInSilenceWhenItHolds) { requires_positive(1); }

TEST(InvariantDeathTest, PrintsConditionFileAndLineWhenItIsBroken) {
  EXPECT_DEATH(requires_positive(-1), "base_invariant_test\\.cpp:[0-9]+: broken invariant: value > 0");
}

}  // namespace base_invariant_test

#undef TIDE_INVARIANT
#undef TIDE_INVARIANTS
#define TIDE_INVARIANTS 0
#undef TIDE_INVARIANT_H
#include "tide/invariant.h"

TEST(Invariant, IsNotExecutedWhenNothingIsChecked) {
  int looks = 0;
  TIDE_INVARIANT(++looks < 0);
  EXPECT_EQ(looks, 0);
}
