// SPDX-License-Identifier: Apache-2.0
#include "sim/actions/apart.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <sstream>
#include <stdexcept>

#include "sim/actions/actions.h"

namespace tide::sim {
namespace {

std::string told(uint64_t seed) {
  const ActionResult result = simulate(draw_actions(seed));
  uint64_t goals = 0, accepted = 0, requests = 0, given_up = 0;
  for (const auto *sent : {&result.ledger.goals_of_board, &result.ledger.goals_of_nodes}) {
    goals += sent->size();
    for (const auto &[number, goal] : *sent) accepted += goal.accepted ? 1 : 0;
  }
  for (const auto *asked : {&result.ledger.requests_of_board, &result.ledger.requests_of_nodes}) {
    requests += asked->size();
    for (const auto &[number, request] : *asked) given_up += request.given_up ? 1 : 0;
  }
  std::ostringstream text;
  text << goals << ' ' << accepted << ' ' << requests << ' ' << given_up << ' ' << result.restarts << ' '
       << result.frames << ' ' << result.events << '\n';
  if (!result.violations.empty()) text << result.violations.front();
  return text.str();
}

[[noreturn]] void run_child(uint64_t seed, int output) {
  std::string text;
  try {
    text = told(seed);
  } catch (const std::exception &error) {
    text = std::string("0 0 0 0 0 0 0\n") + error.what();
  }
  for (size_t written = 0; written < text.size();) {
    const ssize_t count = write(output, text.data() + written, text.size() - written);
    if (count <= 0) _exit(1);
    written += static_cast<size_t>(count);
  }
  _exit(0);
}

}  // namespace

Summary simulate_apart(uint64_t seed) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw std::runtime_error("no pipe for a run");
  const pid_t child = fork();
  if (child == 0) run_child(seed, ends[1]);
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    throw std::runtime_error("no process for a run");
  }
  std::string text;
  std::array<char, 512> piece{};
  for (ssize_t count = 0; (count = read(ends[0], piece.data(), piece.size())) > 0;)
    text.append(piece.data(), static_cast<size_t>(count));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  Summary summary;
  std::istringstream input(text);
  input >> summary.goals >> summary.accepted >> summary.requests >> summary.given_up >> summary.restarts >>
      summary.frames >> summary.events;
  input.ignore();
  std::getline(input, summary.violation);
  if (WIFSIGNALED(status)) summary.violation = "the run was ended by signal " + std::to_string(WTERMSIG(status));
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0) summary.violation = "the run did not tell its end";
  return summary;
}

}  // namespace tide::sim
