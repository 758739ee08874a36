// SPDX-License-Identifier: Apache-2.0
// Callbacks of ROS 2 nodes on shipped executors, all in one process: each lane is a task on its own core, or on a core
// that it shares by priority. Messages are delivered locally (tide/local.h). This class also checks the rules of
// executors with several lanes (see nodes.cpp).
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/board/client.h"
#include "sim/board/plan.h"
#include "sim/board/system.h"
#include "sim/engine/machine.h"
#include "sim/engine/random.h"
#include "tide/executor.h"
#include "tide/local.h"

namespace tide::sim {

class Nodes {
 public:
  struct Observer {
    std::function<void(const Mark &mark, Time release)> released;
    std::function<void(const char *what, size_t callback, const Mark &mark)> event;  // for traces
    // A callback has ended; the observer must now send the messages of that callback.
    std::function<void(size_t callback, const Mark &mark, Time start, Time end)> ran;
  };

  // Throws std::invalid_argument if the executors refuse the plan.
  Nodes(Engine &engine, const Plan &plan, const Graph &graph, Observer observer);
  Nodes(const Nodes &) = delete;
  Nodes &operator=(const Nodes &) = delete;
  ~Nodes();

  bool has(size_t callback) const { return callbacks_[callback] != nullptr; }
  void start(Time first_release);
  // Delivers a message to its subscribers: those receivers that have no other input and that the message reaches
  // without delay (hop 0). All other receivers get the message by receive().
  void publish(size_t message, const Mark &mark);
  bool subscribes(size_t input) const;
  // Delivers a message to a callback that is not one of its subscribers (see publish).
  void receive(size_t callback, const Mark &mark);

  // Call this after each step of the engine.
  void step_end();
  // True if no timer is going to start another instance, and no callback waits or runs.
  bool is_quiet() const;
  void stop();
  bool is_stopped() const;
  // Adds violated rules, and counters of executors and callbacks, to the result.
  void tell(Result &result);

 private:
  struct Callback;
  // A local topic: for one message of the graph, or for all messages that one callback gets by receive().
  struct Topic {
    tide_local_topic_t local{};
    std::vector<Callback *> subscribers;
  };
  struct Callback {
    Nodes *nodes = nullptr;
    size_t number = 0;
    const CallbackPlan *plan = nullptr;
    tide_timer_t timer{};  // if messages start the callback, only the member `callback` of this timer is used
    Random random{0};
    Topic inbox;
    tide_local_subscription_t subscription{};
    std::vector<tide_local_message_t *> queue;
    // State for the checks of the rules.
    unsigned inside = 0;
    Time last_release = -1;
    std::deque<Mark> expected;  // messages that were sent to the callback and have not started it yet
    const tide_callback_t &core() const { return timer.callback; }
  };
  struct Executor {
    const ExecutorPlan *plan = nullptr;
    tide_executor_t core{};
    std::vector<tide_lane_t> lanes;
    std::vector<const tide_callback_t *> seen;  // by lane: the callback that the lane was running at the end of the
                                                // last critical section
    std::vector<tide_callback_t *> registered;
    std::vector<tide_queue_entry_t *> ready, timers;
    std::vector<Callback *> callbacks;
  };
  struct Group {
    tide_group_t group{};
    std::vector<tide_queue_entry_t *> waiting;
    std::vector<Callback *> callbacks;
    unsigned inside = 0;
  };
  struct Lock {
    tide_lock_t lock{};
    unsigned inside = 0;
  };
  class Supply;

  void add_executor(const ExecutorPlan &plan);
  void add_callback(size_t number);
  void join_group(Callback &callback);
  void add_topics();
  void add_locks();
  void expire(Callback &callback);
  void take(Callback &callback);
  void run(Callback &callback, const Mark &mark);
  void hold(Callback &callback, unsigned number, Time duration);
  void deliver(Topic &topic, const Mark &mark);
  Group *group_of(const Callback &callback) const;
  size_t depth_of(const Callback &callback) const;

  void begin(Callback &callback, const Mark &mark);
  void section_end();
  void check_choice(const Executor &executor, const tide_callback_t &taken);
  bool may_run(const Callback &callback) const;
  void violate(const Callback &callback, const std::string &what);

  Engine &engine_;
  const Plan &plan_;
  const Graph &graph_;
  Observer observer_;
  Machine machine_;
  Locks lock_port_;
  Random hesitations_;
  std::vector<std::unique_ptr<Executor>> executors_;  // by number in the plan; null: not a shipped executor
  std::vector<std::unique_ptr<Callback>> callbacks_;  // by number in the graph; null: not on a shipped executor
  std::map<std::pair<unsigned, unsigned>, std::unique_ptr<Group>> groups_;  // by number of the executor and of the
                                                                            // group
  std::vector<std::unique_ptr<Topic>> topics_;                              // by message; null if it has no subscriber
  tide_lock_set_t lock_set_{};
  std::map<unsigned, std::unique_ptr<Lock>> locks_;
  tide_local_pool_t pool_{};
  std::vector<uint64_t> storage_;
  std::vector<std::unique_ptr<Task>> tasks_;
  std::vector<std::unique_ptr<Supply>> supplies_;
  Time first_release_ = 0;
  unsigned hesitating_ = 0;
  std::vector<std::string> violations_;
};

}  // namespace tide::sim
