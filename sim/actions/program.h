// SPDX-License-Identifier: Apache-2.0
// The program of the board, on rclc: a server and a client of an action, and of a service.
#pragma once

#include <rcl/rcl.h>
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <sim_interfaces/action/count.h>
#include <sim_interfaces/srv/twice.h>

#include <array>
#include <memory>
#include <vector>

#include "sim/actions/ledger.h"
#include "sim/engine/engine.h"
#include "sim/engine/platform.h"
#include "sim/engine/random.h"

namespace tide::sim {

class Program {
 public:
  Program(Machine &machine, Ledger &ledger, uint64_t seed);
  Program(const Program &) = delete;
  Program &operator=(const Program &) = delete;

  bool is_set_up() const { return set_up_; }
  bool is_finished() const { return task_.is_finished(); }
  void stop() { stopping_ = true; }
  // Sent when it next looks, and as soon as there is room.
  void send_goal(int32_t number) { goals_due_.push_back(number); }
  void ask(int32_t number) { requests_due_.push_back(number); }
  bool has_sent_all() const { return goals_due_.empty() && requests_due_.empty(); }
  uint32_t reconnects();

 private:
  static Program *in_use;  // callbacks of clients have no context
  static constexpr size_t kGoals = 4, kGoalsMost = 64;
  struct Run {
    rclc_action_goal_handle_t *goal;
    int32_t number;
    Time end;
  };
  struct Asked {
    int64_t sequence;
    int32_t number;
    Time since;
  };
  void run();
  bool set_up();
  void turn();
  void send_goals();
  void send_requests();
  void give_up();
  void end_goals();
  void fini();
  void must(rcl_ret_t result, const char *what);
  int32_t number_of(const rclc_action_goal_handle_t *goal) const;

  Machine &machine_;
  Ledger &ledger_;
  Random random_;
  uint32_t key_;
  bool set_up_ = false, stopping_ = false;
  std::vector<int32_t> goals_due_, requests_due_;
  std::vector<Run> runs_;
  std::vector<Asked> asked_;
  size_t sent_ = 0;
  std::array<sim_interfaces__action__Count_SendGoal_Request, kGoalsMost> sent_goals_{};
  std::array<sim_interfaces__action__Count_SendGoal_Request, kGoals> taken_goals_{};
  sim_interfaces__action__Count_GetResult_Response result_{};
  sim_interfaces__action__Count_FeedbackMessage feedback_{};
  sim_interfaces__srv__Twice_Request request_{};
  sim_interfaces__srv__Twice_Response response_{}, answer_{};
  rcl_init_options_t options_{};
  rclc_support_t support_{};
  rcl_node_t node_{};
  rclc_executor_t executor_{};
  rclc_action_server_t server_{};
  rclc_action_client_t client_{};
  rcl_service_t service_{};
  rcl_client_t asker_{};
  Task task_;
};

}  // namespace tide::sim
