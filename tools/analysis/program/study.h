// SPDX-License-Identifier: Apache-2.0
// Random chain sets judged by all analyses for reentrant callbacks: how many are schedulable, and what judging costs.
#pragma once

#include <string>
#include <vector>

namespace tide::analysis {

// words: NAME=VALUE of a recipe, `first` and `count` of the seeds. Print JSON; 0, or 2 for a word that makes no sense.
int study(const std::vector<std::string> &words);
int cost(const std::vector<std::string> &words);

}  // namespace tide::analysis
