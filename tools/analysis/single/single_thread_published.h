// SPDX-License-Identifier: Apache-2.0
// What has been published on executors with one thread, as published (docs/analysis/single_thread.md has the sources).
#pragma once

#include <optional>
#include <vector>

#include "analysis/model/model.h"

namespace tide::analysis {

// Casini, Blass, Luetkebohle, Brandenburg 2019, Lemma 8: a chain on one executor.
std::optional<time_ns> casini_lemma8(const Executor &executor, size_t chain);

// Blass, Casini, Bozhko, Brandenburg 2021, Theorem 2: each polling point runs each callback once. It needs response
// times of all callbacks; they are those of its own least fixed point.
std::optional<time_ns> blass_theorem2(const Executor &executor, size_t chain);

// The same, Theorem 3: besides, what is activated in a busy window is counted from its begin, where nothing is pending.
std::optional<time_ns> blass_theorem3(const Executor &executor, size_t chain);

// Choi, Xiang, Kim 2021 (PiCAS), Theorem 1, for a chain on one executor with a processor of its own and no jitter.
std::optional<time_ns> picas_theorem1(const Executor &executor, size_t chain);

}  // namespace tide::analysis
