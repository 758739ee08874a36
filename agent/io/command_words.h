// SPDX-License-Identifier: Apache-2.0
// What to type instead of what the user typed: the stock agent's command in our words, and the option that was meant.
#pragma once

#include <string>
#include <vector>

namespace tide::agent {

// words: the command line without the program. "tide agent --udp 8888 --bind 0.0.0.0 --ros-network" for the stock
// agent's "udp4 --port 8888"; why there is nothing like it, for canfd; empty: these are not the stock agent's words.
std::string stock_command_in_our_words(const std::vector<std::string> &words);

// The option of `known` (with their dashes) that is most like this word; empty: none is.
std::string option_meant(const std::string &word, const std::vector<std::string> &known);

}  // namespace tide::agent
