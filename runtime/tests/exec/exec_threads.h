// SPDX-License-Identifier: Apache-2.0
// Parts of random programs on real threads: a platform, dice, and seeds for replays.
#pragma once

#include "dice.h"
#include "threads.h"

namespace exec_threads {

using Host = tide::test::Threads;
using tide::test::Dice;
using tide::test::environment;

}  // namespace exec_threads
