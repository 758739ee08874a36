// SPDX-License-Identifier: Apache-2.0
#include "sim/actions/program.h"

#include <rcl/error_handling.h>
#include <rmw_microros/rmw_microros.h>

#include <algorithm>
#include <string>

#include "tide/rclc.h"
#include "tide/rclc_action.h"
#include "tide/rclc_service.h"

namespace tide::sim {
namespace {

constexpr int kPriority = 100, kConnectAttempts = 10;
constexpr Time kTurn = 5 * kMillisecond, kPatience = 5 * kSecond;
constexpr int8_t kStatusSucceeded = 4;

}  // namespace

Program *Program::in_use = nullptr;

Program::Program(Machine &machine, Ledger &ledger, uint64_t seed)
    : machine_(machine),
      ledger_(ledger),
      random_(seed),
      key_(static_cast<uint32_t>(seed) | 1u),
      task_(machine.core(), "program", kPriority, [this] { run(); }) {
  in_use = this;
}

void Program::must(rcl_ret_t result, const char *what) {
  if (result != RCL_RET_OK) ledger_.note(std::string(what) + ": " + rcl_get_error_string().str);
}

uint32_t Program::reconnects() { return tide_rclc_support_session(&support_)->counters.reconnects; }

int32_t Program::number_of(const rclc_action_goal_handle_t *goal) const {
  return static_cast<const sim_interfaces__action__Count_SendGoal_Request *>(goal->ros_goal_request)->goal.target;
}

bool Program::set_up() {
  rcl_allocator_t allocator = rcl_get_default_allocator();
  must(rcl_init_options_init(&options_, allocator), "options");
  rmw_uros_options_set_client_key(key_, rcl_init_options_get_rmw_init_options(&options_));
  int attempts = 0;
  while (rclc_support_init_with_options(&support_, 0, nullptr, &options_, &allocator) != RCL_RET_OK) {
    if (++attempts == kConnectAttempts) return false;
  }
  must(rclc_node_init_default(&node_, "board", "", &support_), "node");
  const rosidl_action_type_support_t *count = ROSIDL_GET_ACTION_TYPE_SUPPORT(sim_interfaces, Count);
  const rosidl_service_type_support_t *twice = ROSIDL_GET_SRV_TYPE_SUPPORT(sim_interfaces, srv, Twice);
  must(rclc_action_server_init_default(&server_, &node_, &support_, count, "walk"), "server");
  must(tide_rclc_action_server_set_result_timeout(&server_, -1), "time of results");
  must(rclc_action_client_init_default(&client_, &node_, count, "count"), "client");
  must(rclc_service_init_default(&service_, &node_, twice, "twice_here"), "service");
  must(rclc_client_init_default(&asker_, &node_, twice, "twice_there"), "client of a service");
  must(rclc_executor_init(&executor_, &support_.context, 4, &allocator), "executor");

  const auto on_goal = [](rclc_action_goal_handle_t *goal, void *context) -> rcl_ret_t {
    auto &self = *static_cast<Program *>(context);
    const int32_t number = self.number_of(goal);
    if (is_refused(number)) return RCL_RET_ACTION_GOAL_REJECTED;
    self.ledger_.goals_of_nodes[number].executed++;
    const Time end = self.machine_.engine().now() + self.random_.between(0, 400) * kMillisecond;
    self.runs_.push_back({goal, number, end});
    return RCL_RET_ACTION_GOAL_ACCEPTED;
  };
  const auto on_cancel = [](rclc_action_goal_handle_t *, void *) { return false; };
  must(rclc_executor_add_action_server(&executor_, &server_, kGoals, taken_goals_.data(), sizeof taken_goals_[0],
                                       on_goal, on_cancel, this),
       "handle of the server");

  const auto on_answer = [](rclc_action_goal_handle_t *goal, bool accepted, void *context) {
    auto &self = *static_cast<Program *>(context);
    GoalRecord &record = self.ledger_.goals_of_board[self.number_of(goal)];
    record.answers++;
    record.accepted = accepted;
  };
  const auto on_result = [](rclc_action_goal_handle_t *goal, void *message, void *context) {
    auto &self = *static_cast<Program *>(context);
    const auto &response = *static_cast<const sim_interfaces__action__Count_GetResult_Response *>(message);
    const int32_t number = self.number_of(goal);
    GoalRecord &record = self.ledger_.goals_of_board[number];
    record.results++;
    record.succeeded = response.status == kStatusSucceeded && response.result.reached == number;
  };
  must(rclc_executor_add_action_client(&executor_, &client_, kGoals, &result_, &feedback_, on_answer, nullptr,
                                       on_result, nullptr, this),
       "handle of the client");

  const auto on_request = [](const void *request, void *response, void *context) {
    auto &self = *static_cast<Program *>(context);
    const int32_t number = static_cast<const sim_interfaces__srv__Twice_Request *>(request)->number;
    static_cast<sim_interfaces__srv__Twice_Response *>(response)->twice = 2 * number;
    self.ledger_.requests_of_nodes[number].executed++;
  };
  must(rclc_executor_add_service_with_context(&executor_, &service_, &request_, &response_, on_request, this),
       "handle of the service");
  const auto on_reply = [](const void *response) {
    const int32_t heard = static_cast<const sim_interfaces__srv__Twice_Response *>(response)->twice;
    RequestRecord &request = in_use->ledger_.requests_of_board[heard / 2];
    request.answers++;
    if (request.given_up) in_use->ledger_.note("a request that was given up has an answer");
  };
  must(rclc_executor_add_client(&executor_, &asker_, &answer_, on_reply), "handle of the asker");
  return true;
}

void Program::run() {
  if (!set_up()) {
    ledger_.note("the board never connected");
    return;
  }
  set_up_ = true;
  while (!stopping_) {
    must(rclc_executor_spin_some(&executor_, kTurn), "spin");
    turn();
  }
  fini();
}

void Program::turn() {
  send_goals();
  send_requests();
  give_up();
  end_goals();
}

void Program::send_goals() {
  while (!goals_due_.empty() && sent_ < sent_goals_.size()) {
    const int32_t number = goals_due_.front();
    sent_goals_[sent_].goal.target = number;
    rclc_action_goal_handle_t *handle = nullptr;
    if (rclc_action_send_goal_request(&client_, &sent_goals_[sent_], &handle) != RCL_RET_OK) return;
    ledger_.goals_of_board[number];
    goals_due_.erase(goals_due_.begin());
    sent_++;
  }
}

void Program::send_requests() {
  while (!requests_due_.empty()) {
    const sim_interfaces__srv__Twice_Request request{requests_due_.front()};
    int64_t sequence = 0;
    if (rcl_send_request(&asker_, &request, &sequence) != RCL_RET_OK) return;
    ledger_.requests_of_board[request.number];
    asked_.push_back({sequence, request.number, machine_.engine().now()});
    requests_due_.erase(requests_due_.begin());
  }
}

// Answered ones are not there any more.
void Program::give_up() {
  const Time since = machine_.engine().now() - kPatience;
  std::erase_if(asked_, [&](const Asked &asked) {
    RequestRecord &request = ledger_.requests_of_board[asked.number];
    if (request.answers > 0) return true;
    if (asked.since > since) return false;
    must(tide_rclc_client_forget(&asker_, asked.sequence), "forget");
    return request.given_up = true;
  });
}

void Program::end_goals() {
  const Time now = machine_.engine().now();
  std::erase_if(runs_, [&](const Run &run) {
    if (run.end > now) return false;
    sim_interfaces__action__Count_GetResult_Response response{};
    response.result.reached = run.number;
    return rclc_action_send_result(run.goal, GOAL_STATE_SUCCEEDED, &response) == RCL_RET_OK;
  });
}

// Whatever is under way: what does not come back is missing to the next board.
void Program::fini() {
  must(rclc_executor_fini(&executor_), "fini of the executor");
  must(rclc_action_server_fini(&server_, &node_), "fini of the server");
  must(rclc_action_client_fini(&client_, &node_), "fini of the client");
  must(rcl_service_fini(&service_, &node_), "fini of the service");
  must(rcl_client_fini(&asker_, &node_), "fini of the asker");
  must(rcl_node_fini(&node_), "fini of the node");
  must(rclc_support_fini(&support_), "fini of the support");
  must(rcl_init_options_fini(&options_), "fini of the options");
}

}  // namespace tide::sim
