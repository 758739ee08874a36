// SPDX-License-Identifier: Apache-2.0
#include "sim/actions/actions.h"

#include <rcl/error_handling.h>
#include <rcl/rcl.h>
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <rmw_microros/rmw_microros.h>
#include <sim_interfaces/action/count.h>
#include <sim_interfaces/srv/twice.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/board/ros.h"
#include "sim/engine/port.h"
#include "sim/engine/random.h"
#include "tide/rclc.h"
#include "tide/rclc_action.h"
#include "tide/rclc_service.h"

namespace tide::sim {

namespace {

bool is_settled(const GoalRecord &goal) { return goal.answers > 0 && (!goal.accepted || goal.results > 0); }

void check_goal(const std::string &name, int32_t number, const GoalRecord &goal, std::vector<std::string> &found) {
  const auto must = [&](bool holds, const char *what) {
    if (!holds) found.push_back(name + " " + std::to_string(number) + " " + what);
  };
  must(goal.executed <= 1, "was executed twice");
  must(goal.answers > 0, "has no answer");
  must(goal.answers <= 1, "has two answers");
  must(goal.results <= 1, "has two results");
  must(!goal.accepted || (goal.results == 1 && goal.succeeded), "was accepted and has no good result");
  must(goal.accepted || goal.results == 0, "was refused and has a result");
  must(goal.accepted == (goal.executed > 0), "is accepted for one side and not for the other");
  must(!goal.accepted || !is_refused(number), "was accepted by a server that refuses it");
}

void check_request(const std::string &name, int32_t number, const RequestRecord &request, bool renewed,
                   std::vector<std::string> &found) {
  const auto must = [&](bool holds, const char *what) {
    if (!holds) found.push_back(name + " " + std::to_string(number) + " " + what);
  };
  must(request.executed <= 1 || renewed, "was executed twice");
  must(request.answers <= 1, "has two answers");
  must(request.answers == 0 || request.executed > 0, "was answered and never executed");
  must(renewed || (request.executed == 1 && request.answers == 1), "was lost while the agent lived");
  must(request.answers > 0 || request.given_up || renewed, "has no end");
}

}  // namespace

bool Ledger::all_goals_settled() const {
  const auto settled = [](const auto &named) { return is_settled(named.second); };
  return std::all_of(goals_of_board.begin(), goals_of_board.end(), settled) &&
         std::all_of(goals_of_nodes.begin(), goals_of_nodes.end(), settled);
}

bool Ledger::all_requests_settled() const {
  const auto settled = [](const auto &named) { return named.second.answers > 0 || named.second.given_up; };
  return std::all_of(requests_of_board.begin(), requests_of_board.end(), settled) &&
         std::all_of(requests_of_nodes.begin(), requests_of_nodes.end(), settled);
}

std::vector<std::string> Ledger::violations() const {
  std::vector<std::string> found = broken;
  for (const auto &[number, goal] : goals_of_board) check_goal("the board's goal", number, goal, found);
  for (const auto &[number, goal] : goals_of_nodes) check_goal("a node's goal", number, goal, found);
  for (const auto &[number, request] : requests_of_board)
    check_request("the board's request", number, request, renewed, found);
  for (const auto &[number, request] : requests_of_nodes)
    check_request("a node's request", number, request, renewed, found);
  return found;
}

// The ROS 2 side: a server and a client of an action, and a server and a client of a service. The action server
// executes a goal once, however often the request arrives. To a repeated request it answers "accepted", as a board
// does, or, if it is strict, "refused", as servers of rclcpp and rclpy do. The clients repeat requests that were lost
// with the agent.

namespace {

// ---- the ROS 2 side ----

using Payload = Bus::Payload;
using GoalId = std::array<uint8_t, 16>;

constexpr uint8_t kUnknown = 0, kSucceeded = 4;
constexpr size_t kIdBytes = 16, kGoalBytes = 20, kGoalAnswerBytes = 12, kResultBytes = 8;

void put(Payload &bytes, int32_t value) {
  for (unsigned shift = 0; shift < 32; shift += 8)
    bytes.push_back(static_cast<uint8_t>(static_cast<uint32_t>(value) >> shift));
}

int32_t word_at(const Payload &bytes, size_t place) {
  uint32_t word = 0;
  for (size_t octet = 0; octet < 4; octet++) word |= uint32_t{bytes.at(place + octet)} << 8 * octet;
  return static_cast<int32_t>(word);
}

GoalId id_of(const Payload &bytes) {
  GoalId id{};
  std::copy_n(bytes.begin(), std::min(kIdBytes, bytes.size()), id.begin());
  return id;
}

// The goal id of the nodes' goal with this number.
GoalId id_of(int32_t number) {
  GoalId id{};
  for (size_t octet = 0; octet < kIdBytes; octet++) id[octet] = static_cast<uint8_t>(number + 7 * octet);
  return id;
}

Payload result_of(uint8_t status, int32_t reached) {
  Payload bytes = {status, 0, 0, 0};
  put(bytes, reached);
  return bytes;
}

class Nodes {
 public:
  Nodes(Engine &engine, Bus &bus, Ledger &ledger, bool strict, uint64_t seed)
      : engine_(engine), bus_(bus), ledger_(ledger), strict_(strict), random_(seed) {
    serve_goals();
    serve_requests();
  }

  Nodes(const Nodes &) = delete;
  Nodes &operator=(const Nodes &) = delete;

  void send_goal(int32_t number) {
    ledger_.goals_of_nodes[number];
    ask_goal(number);
  }

  void ask(int32_t number) {
    ledger_.requests_of_nodes[number];
    Payload request;
    put(request, number);
    bus_.services.ask("twice_here", request, [this, number](const Payload &answer) {
      ledger_.requests_of_nodes[number].answers++;
      if (word_at(answer, 0) != 2 * number) ledger_.note("request " + std::to_string(number) + " has a wrong answer");
    });
  }

  // Repeats unanswered requests for goals and results; the first request may still be answered, too.
  void ask_again() {
    for (const auto &[number, goal] : ledger_.goals_of_nodes) {
      if (goal.answers == 0) {
        ask_goal(number);
      } else if (goal.accepted && goal.results == 0) {
        ask_result(number);
      }
    }
  }

  // Marks the requests that have no answer yet as given up.
  void give_up() {
    for (auto &[number, request] : ledger_.requests_of_nodes) request.given_up = request.answers == 0;
  }

 private:
  struct Known {
    int32_t number = 0;
    bool ended = false;
    std::vector<Services::Take> askers;
  };

  void serve_goals() {
    bus_.services.serve("count/_action/send_goal", [this](const Payload &request, Services::Take reply) {
      soon([this, request, reply] { take_goal(request, reply); });
    });
    bus_.services.serve("count/_action/get_result", [this](const Payload &request, Services::Take reply) {
      soon([this, request, reply] { tell_result(request, reply); });
    });
  }

  void serve_requests() {
    bus_.services.serve("twice_there", [this](const Payload &request, Services::Take reply) {
      const int32_t number = word_at(request, 0);
      ledger_.requests_of_board[number].executed++;
      Payload answer;
      put(answer, 2 * number);
      soon([reply, answer] { reply(answer); });
    });
  }

  void take_goal(const Payload &request, const Services::Take &reply) {
    if (request.size() < kGoalBytes) {
      ledger_.note("a goal of the board came short");
      return;
    }
    const GoalId id = id_of(request);
    const int32_t number = word_at(request, kIdBytes);
    const bool is_known = known_.contains(id);
    const bool accepted = is_known ? !strict_ : !is_refused(number);
    if (accepted && !is_known) {
      known_[id].number = number;
      ledger_.goals_of_board[number].executed++;
      engine_.after(random_.between(0, 400) * kMillisecond, [this, id] { end(id); });
    }
    Payload answer(kGoalAnswerBytes);
    answer[0] = accepted;
    reply(answer);
  }

  void tell_result(const Payload &request, const Services::Take &reply) {
    const auto place = known_.find(id_of(request));
    if (place == known_.end()) {
      reply(result_of(kUnknown, 0));
    } else if (place->second.ended) {
      reply(result_of(kSucceeded, place->second.number));
    } else {
      place->second.askers.push_back(reply);
    }
  }

  void end(const GoalId &id) {
    Known &goal = known_[id];
    goal.ended = true;
    for (const Services::Take &asker : goal.askers) asker(result_of(kSucceeded, goal.number));
    goal.askers.clear();
  }

  void ask_goal(int32_t number) {
    const GoalId id = id_of(number);
    Payload request(id.begin(), id.end());
    put(request, number);
    bus_.services.ask("walk/_action/send_goal", request, [this, number](const Payload &answer) {
      GoalRecord &goal = ledger_.goals_of_nodes[number];
      const bool accepted = answer.at(0) != 0;
      if (goal.answers > 0) { /* answer to a repeated request */
        if (accepted != goal.accepted) ledger_.note("a server changes its mind on goal " + std::to_string(number));
        return;
      }
      goal.answers++;
      goal.accepted = accepted;
      if (accepted) ask_result(number);
    });
  }

  void ask_result(int32_t number) {
    const GoalId id = id_of(number);
    bus_.services.ask("walk/_action/get_result", {id.begin(), id.end()}, [this, number](const Payload &answer) {
      GoalRecord &goal = ledger_.goals_of_nodes[number];
      if (goal.results > 0) return;
      goal.results++;
      goal.succeeded = answer.size() >= kResultBytes && answer[0] == kSucceeded && word_at(answer, 4) == number;
    });
  }

  void soon(std::function<void()> action) { engine_.after(random_.between(0, kLatencyMost), std::move(action)); }
  static constexpr Time kLatencyMost = 5 * kMillisecond;

  Engine &engine_;
  Bus &bus_;
  Ledger &ledger_;
  const bool strict_;
  Random random_;
  std::map<GoalId, Known> known_;
};

// The board's program, on rclc: a server and a client of an action, and a server and a client of a service.

// ---- the board's program ----

constexpr int kPriority = 100, kConnectAttempts = 10;
constexpr Time kTurn = 5 * kMillisecond, kPatience = 5 * kSecond;
constexpr int8_t kStatusSucceeded = 4;

class Program {
 public:
  Program(Machine &machine, Ledger &ledger, uint64_t seed)
      : machine_(machine),
        ledger_(ledger),
        random_(seed),
        key_(static_cast<uint32_t>(seed) | 1u),
        task_(machine.core(), "program", kPriority, [this] { run(); }) {
    in_use = this;
  }

  Program(const Program &) = delete;
  Program &operator=(const Program &) = delete;

  bool is_set_up() const { return set_up_; }
  bool is_finished() const { return task_.is_finished(); }
  void stop() { stopping_ = true; }
  // Requests that a goal is sent: at the next check of the program at which there is room for it.
  void send_goal(int32_t number) { goals_due_.push_back(number); }
  void ask(int32_t number) { requests_due_.push_back(number); }
  bool has_sent_all() const { return goals_due_.empty() && requests_due_.empty(); }
  uint32_t reconnects() { return tide_rclc_support_session(&support_)->counters.reconnects; }

 private:
  static Program *in_use;  // rclc passes no context to the callbacks of clients
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

  void run() {
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

  bool set_up() {
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

  void turn() {
    send_goals();
    send_requests();
    give_up();
    end_goals();
  }

  void send_goals() {
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

  void send_requests() {
    while (!requests_due_.empty()) {
      const sim_interfaces__srv__Twice_Request request{requests_due_.front()};
      int64_t sequence = 0;
      if (rcl_send_request(&asker_, &request, &sequence) != RCL_RET_OK) return;
      ledger_.requests_of_board[request.number];
      asked_.push_back({sequence, request.number, machine_.engine().now()});
      requests_due_.erase(requests_due_.begin());
    }
  }

  // Gives up requests that have waited for kPatience, and removes answered ones from the list.
  void give_up() {
    const Time since = machine_.engine().now() - kPatience;
    std::erase_if(asked_, [&](const Asked &asked) {
      RequestRecord &request = ledger_.requests_of_board[asked.number];
      if (request.answers > 0) return true;
      if (asked.since > since) return false;
      must(tide_rclc_client_forget(&asker_, asked.sequence), "forget");
      return request.given_up = true;
    });
  }

  void end_goals() {
    const Time now = machine_.engine().now();
    std::erase_if(runs_, [&](const Run &run) {
      if (run.end > now) return false;
      sim_interfaces__action__Count_GetResult_Response response{};
      response.result.reached = run.number;
      return rclc_action_send_result(run.goal, GOAL_STATE_SUCCEEDED, &response) == RCL_RET_OK;
    });
  }

  // Releases everything that is still in use, because a later board of this process needs it.
  void fini() {
    must(rclc_executor_fini(&executor_), "fini of the executor");
    must(rclc_action_server_fini(&server_, &node_), "fini of the server");
    must(rclc_action_client_fini(&client_, &node_), "fini of the client");
    must(rcl_service_fini(&service_, &node_), "fini of the service");
    must(rcl_client_fini(&asker_, &node_), "fini of the asker");
    must(rcl_node_fini(&node_), "fini of the node");
    must(rclc_support_fini(&support_), "fini of the support");
    must(rcl_init_options_fini(&options_), "fini of the options");
  }

  void must(rcl_ret_t result, const char *what) {
    if (result != RCL_RET_OK) ledger_.note(std::string(what) + ": " + rcl_get_error_string().str);
  }

  int32_t number_of(const rclc_action_goal_handle_t *goal) const {
    return static_cast<const sim_interfaces__action__Count_SendGoal_Request *>(goal->ros_goal_request)->goal.target;
  }

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

Program *Program::in_use = nullptr;

// ---- a run ----

constexpr uint64_t kBaud = 0;  // frames take no time, so the number of escaped bytes in goal ids has no influence
constexpr Time kSpan = 4 * kSecond, kSetUpLimit = 30 * kSecond, kSettleLimit = 120 * kSecond;
constexpr Time kAskAgain = 2 * kSecond, kRest = kSecond, kEndLimit = 30 * kSecond;

Faults draw_faults(Random &random) {
  Faults faults;
  if (random.chance(0.6)) faults.loss = static_cast<double>(random.between(1, 30)) / 100;
  if (random.chance(0.3)) faults.duplication = static_cast<double>(random.between(1, 20)) / 100;
  if (random.chance(0.3)) faults.corruption = static_cast<double>(random.between(1, 20)) / 100;
  if (random.chance(0.3)) faults.delay = static_cast<double>(random.between(1, 20)) / 100;
  faults.delay_maximum = random.between(1, 30) * kMillisecond;
  return faults;
}

std::vector<Time> draw_times(Random &random, int64_t most) {
  std::vector<Time> times(static_cast<size_t>(random.between(0, most)));
  for (Time &time : times) time = random.between(0, kSpan);
  return times;
}

std::vector<Incident> draw_incidents(Random &random, int64_t most, Time longest) {
  std::vector<Incident> incidents(static_cast<size_t>(random.between(1, most)));
  for (Incident &incident : incidents) incident = {random.between(0, kSpan), random.between(0, longest)};
  return incidents;
}

class System {
 public:
  explicit System(const ActionPlan &plan)
      : plan_(plan),
        up_(engine_, kBaud, plan.seed * 5 + 1),
        down_(engine_, kBaud, plan.seed * 5 + 2),
        host_(engine_, bus_, down_, {0, plan.agent_most}, plan.seed * 5 + 3),
        machine_(engine_),
        port_(machine_, [this](tide_session_t &session, const tide_link_address_t &) { return open(session); }),
        nodes_(engine_, bus_, ledger_, plan.strict, plan.seed * 5 + 4),
        program_(machine_, ledger_, plan.seed) {
    up_.deliver = [this](const Line::Bytes &frame) { host_.receive(frame); };
    down_.deliver = [this](const Line::Bytes &frame) {
      if (!links_.empty()) links_.back()->receive(frame);
    };
  }

  ActionResult run() {
    if (run_until([this] { return program_.is_set_up(); }, kSetUpLimit)) {
      disturb();
      engine_.run_until(engine_.now() + kSpan);
      settle();
    }
    const uint32_t reconnects = program_.is_set_up() ? program_.reconnects() : 0;
    ledger_.renewed = host_.restarts() > 0 || reconnects > 0;
    const uint64_t again = bus_.services.unasked_replies();
    if (!ledger_.renewed && again > 0) ledger_.note("a reply came to ROS 2 twice");
    program_.stop();
    if (!run_until([this] { return program_.is_finished(); }, kEndLimit)) ledger_.note("the program does not end");
    ActionResult result{ledger_.violations(), ledger_, engine_.now(), engine_.event_count()};
    for (const LineCounters *counters : {&up_.counters(), &down_.counters()}) {
      result.frames += counters->frames;
      result.frames_lost += counters->lost + counters->cut + counters->corrupted;
    }
    result.restarts = host_.restarts();
    return result;
  }

 private:
  template <typename Condition> bool run_until(const Condition &condition, Time limit) {
    const Time end = engine_.now() + limit;
    while (!condition() && engine_.now() < end) {
      if (!engine_.step(end)) break;
    }
    return condition();
  }

  template <typename Send> void schedule(const std::vector<Time> &times, Send send) {
    for (size_t place = 0; place < times.size(); place++) {
      engine_.after(times[place], [send, number = static_cast<int32_t>(place) + 1] { send(number); });
    }
  }

  Link *open(tide_session_t &session) {
    return links_.emplace_back(std::make_unique<Link>(machine_, session, up_, Link::Costs{})).get();
  }

  void cut(bool is_cut) {
    up_.set_cut(is_cut);
    down_.set_cut(is_cut);
  }

  void disturb() {
    up_.set_faults(plan_.up);
    down_.set_faults(plan_.down);
    for (const Incident &incident : plan_.cuts) {
      engine_.after(incident.at, [this] { cut(true); });
      engine_.after(incident.at + incident.duration, [this] { cut(false); });
    }
    for (const Incident &incident : plan_.restarts)
      engine_.after(incident.at, [this, outage = incident.duration] { host_.restart(outage); });
    schedule(plan_.goals_of_board, [this](int32_t number) { program_.send_goal(number); });
    schedule(plan_.goals_of_nodes, [this](int32_t number) { nodes_.send_goal(number); });
    schedule(plan_.questions, [this](int32_t) { nodes_.ask_again(); });
    schedule(plan_.requests_of_board, [this](int32_t number) { program_.ask(number); });
    schedule(plan_.requests_of_nodes, [this](int32_t number) { nodes_.ask(number); });
  }

  // Ends the faults, lets clients repeat unanswered requests, and waits for late messages.
  void settle() {
    up_.set_faults({});
    down_.set_faults({});
    const Time end = engine_.now() + kSettleLimit;
    const auto settled = [this] {
      return program_.has_sent_all() && ledger_.all_goals_settled() && ledger_.all_requests_settled();
    };
    while (engine_.now() < end) {
      engine_.run_until(engine_.now() + kAskAgain);
      if (settled()) break;
      nodes_.ask_again();
      nodes_.give_up();
    }
    engine_.run_until(engine_.now() + kRest);
    if (!program_.has_sent_all()) ledger_.note("the board could not send all");
  }

  const ActionPlan &plan_;
  Engine engine_;
  Bus bus_;
  Line up_, down_;
  AgentHost host_;
  Machine machine_;
  std::vector<std::unique_ptr<Link>> links_;  // the last link is in use; events may still refer to the others
  Port port_;
  Ledger ledger_;
  Nodes nodes_;
  Program program_;
};

}  // namespace

ActionPlan draw_actions(uint64_t seed) {
  Random random(seed * 0xD1342543DE82EF95u + 11);
  ActionPlan plan;
  plan.seed = seed;
  if (random.chance(0.7)) plan.up = draw_faults(random);
  if (random.chance(0.7)) plan.down = draw_faults(random);
  if (random.chance(0.3)) plan.cuts = draw_incidents(random, 3, 800 * kMillisecond);
  if (random.chance(0.5)) plan.restarts = draw_incidents(random, 4, 800 * kMillisecond);
  plan.agent_most = random.between(0, 20) * kMillisecond;
  plan.goals_of_board = draw_times(random, 12);
  plan.goals_of_nodes = draw_times(random, 12);
  plan.questions = draw_times(random, 6);
  plan.requests_of_board = draw_times(random, 6);
  plan.requests_of_nodes = draw_times(random, 6);
  plan.strict = random.chance(0.5);
  return plan;
}

ActionResult simulate(const ActionPlan &plan) { return System(plan).run(); }

namespace {

// The result that the separate process passes back.
struct Left {
  ActionCounts counts;
  char violation[400];
  bool is_whole;
};

void run_child(uint64_t seed, Left &left) {
  std::string violation;
  try {
    const ActionResult result = simulate(draw_actions(seed));
    for (const auto *sent : {&result.ledger.goals_of_board, &result.ledger.goals_of_nodes}) {
      left.counts.goals += sent->size();
      for (const auto &[number, goal] : *sent) left.counts.accepted += goal.accepted ? 1 : 0;
    }
    for (const auto *asked : {&result.ledger.requests_of_board, &result.ledger.requests_of_nodes}) {
      left.counts.requests += asked->size();
      for (const auto &[number, request] : *asked) left.counts.given_up += request.given_up ? 1 : 0;
    }
    left.counts.restarts = result.restarts;
    left.counts.frames = result.frames;
    left.counts.events = result.events;
    if (!result.violations.empty()) violation = result.violations.front();
  } catch (const std::exception &error) {
    violation = error.what();
  }
  violation.copy(left.violation, sizeof left.violation - 1);
  left.is_whole = true;
}

}  // namespace

ActionSummary simulate_apart(uint64_t seed) {
  void *const shared = mmap(nullptr, sizeof(Left), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) throw std::runtime_error("no memory for a run");
  Left &left = *new (shared) Left{};
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("no process for a run");
  if (child == 0) {
    run_child(seed, left);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ActionSummary summary{left.counts, left.violation};
  if (WIFSIGNALED(status)) {
    summary.violation = "the run was ended by signal " + std::to_string(WTERMSIG(status));
  } else if (!left.is_whole) {
    summary.violation = "the run did not tell its end";
  }
  munmap(shared, sizeof(Left));
  return summary;
}

}  // namespace tide::sim
