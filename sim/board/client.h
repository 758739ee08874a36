// SPDX-License-Identifier: Apache-2.0
// The program of a simulated board: its callbacks and messages of the graph, on the shipped session, daemon and
// executor.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
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

// The instance to which a message or a run of a callback belongs; payloads begin with this mark.
struct Mark {
  uint16_t root = UINT16_MAX;  // number of the timer or event that began the instance (Graph::roots)
  uint32_t index = UINT32_MAX;
  auto operator<=>(const Mark &) const = default;
};
constexpr Mark kNoMark;

// Fills the payload. A payload that is too short for a mark gets only the low octets of the instance's number.
void put_mark(std::span<uint8_t> payload, const Mark &mark);
// Reads the marks of one message at one receiver. A short payload has only the low octets of the instance's number. Of
// all instances with these octets, the reader chooses the one nearest to the instance that follows the previous one.
class MarkReader {
 public:
  explicit MarkReader(const MessagePlan &message) : message_(message) {}
  // `padding`: greatest number of octets that the sender may have added. Returns kNoMark if the payload has a wrong
  // length.
  Mark read(std::span<const uint8_t> payload, size_t padding);

 private:
  const MessagePlan &message_;
  uint32_t next_ = 0;
};

// Draws the release delay of the callback's timer for one instance: from 0 to the jitter, and often exactly 0 or the
// jitter.
Time lateness(const CallbackPlan &callback, Random &random);
// Draws the times of at most `count` events that start the callback. They are mostly as close as permitted, with a
// pause now and then, and none is later than the last of `count` releases of a timer would be.
std::vector<Time> event_times(const CallbackPlan &callback, size_t count, Time first, Random &random);

// Name of the topic on which a message is published; of the topic to which the reader of an input subscribes.
std::string topic_of(const MessagePlan &message);
std::string topic_of(const Graph &graph, size_t input);

constexpr tide_frame_share_t kAllFrames{0, UINT16_MAX, 0};

// Executes for `duration`, with the callback's critical sections in their order at random positions; sections that do
// not fit are shortened. Then sleeps for the callback's `sleep`.
void execute_sections(const CallbackPlan &callback, Time duration, Random &random,
                      const std::function<void(unsigned lock, Time held)> &hold);

class Client {
 public:
  // Events of the program, for traces and checks. All functions must be set.
  struct Observer {
    std::function<void(const tide_executor_t &executor, const tide_callback_t &callback)> callback_start;
    std::function<void(const Mark &mark, Time release)> released;
    // A callback ran. `input` is the message that started it; SIZE_MAX if a timer or an event did.
    std::function<void(size_t callback, size_t input, const Mark &mark, Time start, Time end)> ran;
    std::function<void(size_t message, const Mark &mark, bool accepted)> sent;
    std::function<void(size_t input, const Mark &mark)> took;  // a callback took a message from the line
    std::function<void(size_t input)> strange_sample;
    std::function<void(size_t callback, const char *what)> broken;  // a check within the program failed
    std::function<void(const char *what)> event;
  };

  // `board`: the board's number in the graph.
  Client(Machine &machine, Line &up, const Plan &plan, const Graph &graph, int board, Observer observer);
  Client(const Client &) = delete;
  Client &operator=(const Client &) = delete;

  // True if all objects of the session exist and the first release is known.
  bool is_set_up() const { return first_release_ >= 0; }
  // When the session's objects exist, the program waits until this returns true. May be empty.
  std::function<bool()> is_discovered;
  Time first_release() const { return first_release_; }
  void stop();
  bool is_stopped() const;

  tide_session_t &session() { return session_; }
  Link &link() { return link_; }
  // True if no callback that a timer has started is running.
  bool is_settled() const { return running_ == 0; }
  // Number of messages from the line that the queue of this input has dropped.
  uint32_t dropped(size_t input) const { return inputs_.at(input)->reader.dropped; }
  const tide_executor_t &executor() const { return executor_; }
  // Level and budget state of each lane with a budget.
  std::vector<std::pair<unsigned, const tide_budget_t *>> budgets();
  // Number of local messages that neither arrived nor were dropped by a queue.
  int64_t unheard() const;
  uint32_t publish_failures() const { return publish_failures_; }
  uint32_t publish_waits() const { return publish_waits_; }

  // For Send::kAnswered: sets the number of answered HEARTBEATs, and counts a sent one.
  void note_heartbeats_answered(uint64_t count);
  void note_heartbeat() { heartbeats_++; }

 private:
  struct Topic {
    std::string name;
    tide_object_t topic{}, group{}, endpoint{};
  };
  // A service that a board calls or serves, identified by its request message.
  struct Service {
    std::string name, request_topic, reply_topic;
    tide_object_t object{};
    std::map<uint16_t, Mark> asked;  // by id of the request
  };
  struct Callback;
  struct Output {
    const MessagePlan *message;
    size_t number;
    Topic topic;
    Service *service = nullptr;
    std::vector<uint8_t> payload;
    tide_local_topic_t local{};
    uint32_t told = 0;
  };
  struct InputState {
    InputState(const MessagePlan &plan, size_t place) : message(plan), number(place), marks(plan) {}
    Client *client = nullptr;
    Callback *of = nullptr;
    const MessagePlan &message;
    size_t number;
    MarkReader marks;
    tide_callback_t callback{};
    // Used only for messages over the line.
    Topic topic;
    Service *service = nullptr;
    tide_reader_t reader{};
    std::vector<tide_sample_t> samples;
    // Used only for local messages.
    tide_local_subscription_t heard{};
    std::vector<tide_local_message_t *> queue;
    int64_t last_heard = -1;
    uint32_t runs = 0;
  };
  struct Callback {
    Client *client;
    size_t number;
    const CallbackPlan *plan;
    tide_timer_t timer{};      // if events start the callback, only the member `callback` of this timer is used, as a
                               // guard condition
    std::vector<Time> events;  // each event has its own run, in order; the first `begun` runs have begun
    uint32_t begun = 0;
    std::vector<std::unique_ptr<Output>> outputs;
    std::vector<InputState *> inputs;
    std::map<Mark, size_t> joined;  // by instance: number of its messages that have arrived
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
  void add_callback(size_t number);
  void configure_session();
  void describe_topic(Topic &topic, bool writer, bool reliable);
  Service *service_of(const MessagePlan &request, bool asks);
  void create_objects();
  void set_priorities();
  tide_priority_t priority_of(const Callback &callback) const;
  void choose_lanes();
  void add_executor();
  void start_lanes();
  void give_budget(size_t lane);
  void release_timers();
  void release(Callback &callback, int64_t index);
  void release_events(Callback &callback);
  void trigger(Callback &callback, Time event);
  void notice(Callback &callback);  // makes the callback ready if events wait for it
  void join_group(tide_callback_t &callback, unsigned group);
  void set_up_local();
  void set_up_locks();
  void execute(Callback &callback, const tide_callback_t &runs);
  void hold(Callback &callback, const tide_callback_t &runs, Lock &lock, Time duration);
  void run();

  void begin(Callback &callback);
  void take(InputState &input);
  void hear(InputState &input);
  bool is_last(Callback &callback, const Mark &mark);
  void send(Callback &callback, const Mark &mark, tide_priority_t priority, std::span<const uint8_t> identity);
  void tell(Callback &callback, Output &output, const Mark &mark);
  bool write(Output &output, const Mark &mark, tide_priority_t priority, std::span<const uint8_t> identity);
  bool answers_it(InputState &input, const tide_sample_t &sample, const Mark &mark);
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
  const Graph &graph_;
  Observer observer_;
  Random releases_;  // source of release delays
  tide_session_t session_{};
  Link link_;
  std::vector<tide_node_t> nodes_;
  std::vector<tide_queue_entry_t *> execution_, pending_, noted_;
  std::vector<tide_size_class_t> classes_;
  std::vector<uint8_t> node_storage_, slot_storage_, reassembly_storage_;
  std::vector<tide_output_stream_t> output_streams_;
  std::vector<tide_input_stream_t> input_streams_;
  std::vector<tide_slot_t> slots_;
  std::vector<tide_reassembly_t> reassemblies_;
  std::vector<tide_object_t *> objects_;
  tide_object_t participant_{};
  std::vector<std::unique_ptr<Callback>> callbacks_;
  std::map<size_t, std::unique_ptr<InputState>> inputs_;              // by number in the graph: inputs of this board
  std::map<const MessagePlan *, std::unique_ptr<Service>> services_;  // by request
  tide_executor_t executor_{};
  std::vector<tide_lane_t> lanes_;
  std::vector<tide_callback_t *> registered_;
  std::vector<tide_queue_entry_t *> ready_, timers_;
  std::vector<std::unique_ptr<Group>> groups_;
  Random sections_;  // source of the positions of critical sections
  Locks lock_port_;
  tide_lock_set_t lock_set_{};
  std::vector<std::unique_ptr<Lock>> locks_;
  tide_local_pool_t pool_{};
  std::vector<uint64_t> local_storage_;
  std::vector<std::unique_ptr<Task>> tasks_;
  std::vector<std::unique_ptr<Budget>> budgets_;  // one for each lane; null if it has no budget
  std::vector<tide_event_t *> waiters_;
  bool stopping_ = false;
  Time first_release_ = -1;
  size_t running_ = 0;
  uint32_t publish_failures_ = 0;
  uint32_t publish_waits_ = 0;
  uint64_t heartbeats_ = 0, heartbeats_answered_ = 0;
  std::unique_ptr<Task> main_;
};

}  // namespace tide::sim
