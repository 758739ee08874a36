// SPDX-License-Identifier: Apache-2.0
// What random programs on real threads are made of: a platform, dice, and seeds that replay.
#pragma once

#include "dice.h"
#include "threads.h"

namespace exec_threads {

using Host = tide::test::Threads;
using tide::test::Dice;
using tide::test::environment;

}  // namespace exec_threads
