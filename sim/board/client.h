// SPDX-License-Identifier: Apache-2.0
// A program on a simulated microcontroller: the shipped session, daemon and executor, and for each chain a timer that
// samples and publishes, and a subscription that acts on the answer. What examples/three_chains does with rclc, this
// does with tide_session and tide_executor.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/board/plan.h"
#include "sim/engine/line.h"
#include "sim/engine/machine.h"
#include "sim/engine/random.h"
#include "tide/executor.h"
#include "tide/local.h"
#include "tide/session.h"

namespace tide::sim {

// What payloads begin with.
struct Mark {
  uint16_t chain = 0;
  uint32_t index = 0;
};
constexpr size_t kMarkBytes = 6;
void put_mark(uint8_t *bytes, const Mark &mark);
Mark get_mark(const uint8_t *bytes);
// The same in payloads that may be shorter: these have the instance alone, below 256.
constexpr uint32_t kShortInstances = 256;
void put_mark(std::span<uint8_t> payload, const Mark &mark);
Mark get_mark(std::span<const uint8_t> payload, uint16_t chain);

struct Instance {
  Time release = 0, sample_start = -1, sample_end = -1, act_start = -1, act_end = -1;
  Time heard = -1, answered = -1;  // by the node: its first callback may begin, its last one has published or ended
  bool published = false;          // the session took it
};

constexpr tide_frame_share_t kAllFrames{0, UINT16_MAX, 0};

class Client {
 public:
  // What happens in the program, for traces and checks. All are set.
  struct Observer {
    std::function<void(const tide_executor_t &executor, const tide_callback_t &callback)> callback_start;
    std::function<void(size_t chain, uint32_t index)> sample_end, act, replied;
    std::function<void(size_t chain, uint32_t bytes)> strange_sample;
    std::function<void(size_t chain, const char *what)> broken;  // a rule, seen from within
    std::function<void(const char *what)> event;
  };

  Client(Machine &machine, Line &up, const Plan &plan, Observer observer);
  Client(const Client &) = delete;
  Client &operator=(const Client &) = delete;

  // All objects exist and the first release is known.
  bool is_set_up() const { return first_release_ >= 0; }
  Time first_release() const { return first_release_; }
  void stop();
  bool is_stopped() const;

  tide_session_t &session() { return session_; }
  Link &link() { return link_; }
  size_t chain_count() const { return chains_.size(); }
  const ChainPlan &chain_plan(size_t chain) const { return chains_[chain]->plan; }
  const std::vector<Instance> &instances(size_t chain) const { return chains_[chain]->instances; }
  // Of a chain that begins, or ends, on the host.
  void note_release(size_t chain, uint32_t index, Time release);
  void note_end(size_t chain, uint32_t index, Time end);
  void note_heard(size_t chain, uint32_t index, Time now) { chains_[chain]->instances[index].heard = now; }
  void note_answered(size_t chain, uint32_t index, Time now) { chains_[chain]->instances[index].answered = now; }
  const tide_reader_t &reader(size_t chain) const { return chains_[chain]->reader; }
  const tide_executor_t &executor() const { return executor_; }
  // Of the lane of a level; null: it has none.
  const tide_budget_t *budget(unsigned level);
  // What its payloads begin with.
  uint16_t mark_of(size_t chain) const { return chains_[chain]->mark; }
  std::string topic(size_t chain) const { return "rt/" + chains_[chain]->plan.name; }
  std::string reply_topic(size_t chain) const { return topic(chain) + "_reply"; }
  // Messages to a callback of this process that did not arrive and were not let go by its queue.
  int64_t unheard(size_t chain) const {
    const Chain &each = *chains_[chain];
    return int64_t{each.told} - each.runs_of_listener - each.heard.dropped;
  }
  uint32_t publish_failures() const { return publish_failures_; }
  uint32_t publish_waits() const { return publish_waits_; }
  const tide_slot_t *slots() const { return slots_.data(); }
  const tide_reassembly_t *reassemblies() const { return reassemblies_.data(); }

  // For Send::kAnswered: HEARTBEATs that left, and how many of them are answered.
  void note_heartbeats_answered(uint64_t count);
  void note_heartbeat() { heartbeats_++; }

 private:
  struct Topic {
    std::string name;
    tide_object_t topic{}, group{}, endpoint{};
  };
  struct Service {
    std::string name, request_topic, reply_topic;
    tide_object_t object{};
    std::map<uint16_t, uint32_t> asked;  // instances, by the ids of their requests
  };
  struct Chain {
    Client *client;
    size_t index;
    ChainPlan plan;
    uint16_t mark = 0;
    Topic request, reply;
    Service service;
    tide_timer_t timer{};      // of a chain that events begin, its callback alone, as that of a guard condition
    std::vector<Time> events;  // that have a run of their own, in order; the first ones have begun
    uint32_t begun = 0;
    tide_callback_t subscription{};
    tide_reader_t reader{};
    std::vector<tide_sample_t> samples;
    std::vector<Instance> instances;
    std::vector<uint8_t> payload;
    tide_callback_t listener{};
    tide_local_topic_t topic{};
    tide_local_subscription_t heard{};
    std::vector<tide_local_message_t *> queue;
    int64_t last_heard = -1;
    uint32_t told = 0, runs_of_listener = 0;
  };
  struct Group {
    tide_group_t group{};
    std::vector<tide_queue_entry_t *> waiting;
    unsigned inside = 0;
  };
  struct Lock {
    tide_lock_t lock{};
    unsigned inside = 0;
  };
  class Inside;
  void configure_session();
  uint8_t depth_of(const ChainPlan &chain) const;
  void describe_topic(Topic &topic, bool writer, bool reliable, uint8_t depth);
  void describe_service(Chain &chain);
  void create_objects();
  void name_chain(Chain &chain);
  void choose_lanes();
  void add_executor();
  void start_lanes();
  void give_budget(size_t lane);
  void release_timers();
  void release(Chain &chain, int64_t index);
  void release_events(Chain &chain);
  void trigger(Chain &chain, Time event);
  Group *group_of(const Chain &chain);
  void set_up_groups();
  void set_up_local();
  void set_up_locks();
  void allow(const std::vector<unsigned> &sections, const tide_callback_t &callback);
  void execute(Chain &chain, const tide_callback_t &callback, Time duration, const std::vector<unsigned> &sections);
  void hold(Chain &chain, const tide_callback_t &callback, Lock &lock, Time duration);
  void tell(Chain &chain, uint32_t index);
  void hear(Chain &chain);
  void run();

  void sample(Chain &chain);
  void act(Chain &chain);
  bool is_last_of_join(const Chain &chain, uint32_t index);
  bool publish(Chain &chain, uint32_t index);
  bool write(Chain &chain, uint32_t index, tide_priority_t priority, std::span<const uint8_t> header);
  bool answers_it(Chain &chain, const tide_sample_t &sample, uint32_t index);
  void wait_as_sent(uint8_t stream, bool reliable, uint64_t heartbeats_before);
  bool wait_until(const std::function<bool()> &done, Time deadline, bool digest);
  void wake_waiters();
  int process(int (*digest)(tide_daemon_t *daemon, const tide_frame_share_t *share), const tide_frame_share_t &share);

  static void on_activity(void *context);
  static void on_done(void *context, tide_node_t *node, tide_node_outcome_t outcome);
  static void on_work(void *context);
  static void on_state(void *context, tide_session_state_t state);
  static void on_sample(void *context, tide_reader_t *reader);
  static void on_start(void *context, tide_callback_t *callback, int64_t now_ns);
  static int32_t source_most_urgent(void *context, tide_priority_t least, tide_priority_t most);
  static int source_process_most_urgent(void *context, tide_priority_t least, tide_priority_t most);
  static int source_process_oldest(void *context);

  Machine &machine_;
  const Plan &plan_;
  Observer observer_;
  Random releases_;  // how late they are
  tide_session_t session_{};
  Link link_;
  std::vector<tide_node_t> nodes_;
  std::vector<tide_queue_entry_t *> execution_, pending_, noted_;
  std::vector<tide_size_class_t> classes_;
  std::vector<uint8_t> node_storage_, slot_storage_, reassembly_storage_;
  std::vector<tide_output_stream_t> outputs_;
  std::vector<tide_input_stream_t> inputs_;
  std::vector<tide_slot_t> slots_;
  std::vector<tide_reassembly_t> reassemblies_;
  std::vector<tide_object_t *> objects_;
  tide_object_t participant_{};
  std::vector<std::unique_ptr<Chain>> chains_;
  std::map<std::pair<unsigned, uint32_t>, size_t> joined_;  // by join and instance, how many of its chains have arrived
  tide_executor_t executor_{};
  std::vector<tide_lane_t> lanes_;
  std::vector<tide_callback_t *> callbacks_;
  std::vector<tide_queue_entry_t *> ready_, timers_;
  std::vector<std::unique_ptr<Group>> groups_;
  Random sections_;  // where they lie in executions
  Locks lock_port_;
  tide_lock_set_t lock_set_{};
  std::vector<std::unique_ptr<Lock>> locks_;
  tide_local_pool_t pool_{};
  std::vector<uint64_t> local_storage_;
  std::vector<std::unique_ptr<Task>> tasks_;
  std::vector<std::unique_ptr<Budget>> budgets_;  // one for each lane, or null
  std::vector<tide_event_t *> waiters_;
  bool stopping_ = false;
  Time first_release_ = -1;
  uint32_t publish_failures_ = 0;
  uint32_t publish_waits_ = 0;
  uint64_t heartbeats_ = 0, heartbeats_answered_ = 0;
  std::unique_ptr<Task> main_;
};

}  // namespace tide::sim
