// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <zephyr/kernel.h>

#include <functional>

#include "fake_kernel.h"

constexpr int64_t ZEPHYR_TICK_NS = 100'000;
extern std::function<void()> while_spinning;  // called while another processor holds a lock
extern bool a_wait_was_limited;               // true if a wait used a time limit of the kernel
