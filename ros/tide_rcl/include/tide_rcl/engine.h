// SPDX-License-Identifier: Apache-2.0
// The engine of tide for C++ hosts: which callback runs next, and on which lane. It knows nothing of rcl or rclcpp.
//
// What may run is an Entity. Whoever learns that one has become ready (a thread of the middleware, a timer, the
// program) notifies it: O(log n), from any thread. A lane that chooses takes the most urgent entity of its levels that
// is ready and whose group is free, and looks at no other. Rules of lanes, levels, groups, timers and policies:
// tide/executor.h.
//
// Thread-safe: notify, add, remove, set_priority and cancel come from any thread, also while callbacks run, and from
// callbacks. Errors are exceptions: std::invalid_argument for what cannot be, std::runtime_error for what cannot be
// now, std::system_error for what the operating system does not permit. Memory: 24 bytes an entity and band, and the
// entity; it grows with what is added and is given back with the engine.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tide/executor.h"
#include "tide_rcl/records.h"

namespace tide_rcl {

class Engine;
class Entity;

// A thread that runs callbacks. `settings` are those of tide/lane.h, but for the name, which is kept here.
struct Lane {
  std::string name = "tide lane";
  tide_lane_settings_t settings{};
};

enum class Policy {
  kChains,  // the most urgent first
  kDefault  // as rclcpp's own executors: a set of ready callbacks, in the order of kinds and registration; a baseline
};

struct EngineOptions {
  // Empty: one lane for all levels, which is the thread that spins. Several lanes are threads of the engine's own while
  // it spins, and the thread that spins waits for them. With kDefault all lanes have the same least_level.
  std::vector<Lane> lanes;
  Policy policy = Policy::kChains;
  // Several lanes of one level: what a callback makes ready may wait so long for another lane than its own, where one
  // looks by itself by then. Saves waking it, which takes longer than most callbacks go on after they have published.
  // 0: another lane is woken at once. Not with kDefault.
  std::chrono::nanoseconds patience = std::chrono::microseconds(100);
  // Asked once at the beginning of each spin, when a cancel from then on is not lost any more: false ends it at once.
  // Empty: true.
  std::function<bool()> may_spin;
  // Around each run, by the lane that runs it, with its time on CLOCK_MONOTONIC.
  std::function<void(Entity &, std::int64_t now_ns)> on_start, on_end;
  // By the lane, when a callback has thrown what its spin will throw.
  std::function<void(Entity &)> on_failure;
  // Not empty: the file for a line about each name that ran (Entity::set_names), written when the engine ends.
  // `tide trace times` reads it. OutputFile has the rules for paths. Cost: two looks at the thread's clock a run.
  std::string measured_file;
  // Not empty: the file for a trace of all runs, which `tide trace export` reads; and the number of this program in it.
  std::string trace_file;
  std::uint16_t trace_place = 0;
};

// Entities that do not run at the same time (exclusive), or that may overlap each other and themselves (reentrant).
class Group {
 public:
  explicit Group(tide_group_kind_t kind);
  Group(const Group &) = delete;
  Group &operator=(const Group &) = delete;

 private:
  friend class Engine;
  tide_group_t group_{};
  std::vector<tide_queue_entry_t *> storage_;
  std::size_t members_ = 0;
  std::atomic<Engine *> engine_{nullptr};  // of its members
};

// Something that becomes ready and then runs. Held by its engine from add until it was removed and does not run any
// more.
class Entity {
 public:
  virtual ~Entity() = default;
  Entity(const Entity &) = delete;
  Entity &operator=(const Entity &) = delete;

  // It is ready so many times more, and will run as often. Does nothing while it is in no engine.
  void notify(std::size_t times = 1) noexcept;
  [[nodiscard]] tide_priority_t priority() const noexcept { return timer_.callback.priority; }
  [[nodiscard]] tide_callback_kind_t kind() const noexcept { return timer_.callback.kind; }
  // "chain/callback" as in system.toml, for measurements; of all chains that it is in. While it is in no engine.
  void set_names(std::vector<std::string> names) { names_ = std::move(names); }

 protected:
  explicit Entity(tide_callback_kind_t kind) noexcept;
  // One run, on a lane. An exception ends the spin, which throws it.
  virtual void run() = 0;
  // The engine has taken it, or lets go of it: connect to what notifies it, and disconnect. Not called with a lock
  // held.
  virtual void connect() {}
  virtual void disconnect() noexcept {}

  // Timers only; they do nothing while it is in no engine. Times on CLOCK_MONOTONIC. Arming takes back an expiry that
  // has not run yet. After each start the next expiry is a period later, or as many as have passed.
  void arm_at(std::int64_t expiry_ns, std::int64_t period_ns) noexcept;
  void disarm() noexcept;
  [[nodiscard]] std::int64_t armed_for_ns() const noexcept;  // TIDE_FOREVER: not armed
  [[nodiscard]] bool is_ready() const noexcept { return tide_callback_is_ready(&timer_.callback); }
  // CLOCK_MONOTONIC when the run began, as the lane read it; only from run. Where runs of it overlap it may be that of
  // another one, which began later.
  [[nodiscard]] std::int64_t start_ns() const noexcept;
  // Its engine, for what may still notify it when the engine ends. Null: none, or one that no shared pointer has.
  [[nodiscard]] std::shared_ptr<Engine> keep_engine() const;

 private:
  friend class Engine;
  static void execute(tide_callback_t *callback, void *context);
  static void expire(tide_timer_t *timer, std::int64_t since_last_call_ns);

  tide_timer_t timer_{};  // of other kinds only its first member is used
  std::atomic<Engine *> engine_{nullptr};
  std::shared_ptr<Group> group_;
  std::vector<std::string> names_;
  std::uint32_t starts_ = 0;  // its instances in a trace
};

class Engine : public std::enable_shared_from_this<Engine> {
 public:
  // std::runtime_error: a file of the options cannot be written.
  explicit Engine(EngineOptions options = {});
  ~Engine();  // not while it spins
  Engine(const Engine &) = delete;
  Engine &operator=(const Engine &) = delete;

  // An entity is in one engine at a time; a group, too, as long as it has members. std::invalid_argument otherwise.
  void add(const std::shared_ptr<Entity> &entity, tide_priority_t priority, std::shared_ptr<Group> group = nullptr);
  // It starts no more once this returns; a run that has begun goes on. False: it is not in this engine.
  bool remove(const std::shared_ptr<Entity> &entity);
  // Until no removed member of these groups runs any more, but for the run that the caller is in.
  void wait_for_removed(const std::vector<std::shared_ptr<Group>> &groups) const;
  void set_priority(Entity &entity, tide_priority_t priority);
  [[nodiscard]] std::size_t size() const;

  // Until cancel, or until a callback throws. std::runtime_error when it spins already, for each of these four.
  void spin();
  // One callback, on the calling thread: the most urgent of all lanes. Waits at most so long; negative: for ever.
  void spin_once(std::chrono::nanoseconds timeout = std::chrono::nanoseconds(-1));
  // As many callbacks as are ready when it begins; it begins none after max_duration (0: no limit).
  void spin_some(std::chrono::nanoseconds max_duration = std::chrono::nanoseconds(0));
  // Until nothing is ready.
  void spin_all(std::chrono::nanoseconds max_duration);
  // Ends the spin that is running after the callbacks that run now; does nothing when there is none.
  void cancel() noexcept;
  [[nodiscard]] bool is_spinning() const noexcept { return spinning_.load(); }

  [[nodiscard]] std::int64_t now_ns() const noexcept;
  [[nodiscard]] tide_executor_counters_t counters();
  // Exceptions of callbacks beside the first of a spin, which is thrown; they are lost but for this number.
  [[nodiscard]] std::uint64_t exceptions_lost() const noexcept { return exceptions_lost_.load(); }
  // What the measured file will hold, as of now. Empty without one.
  [[nodiscard]] std::string measurement_lines();
  // From a callback: in the trace it is this instance of its chain, as a number in its message says. Otherwise the
  // number of its starts before. Does nothing elsewhere, and without a trace.
  static void set_trace_instance(std::uint32_t instance) noexcept;

 private:
  friend class Entity;

  static void started(void *engine, tide_callback_t *callback, std::int64_t now_ns);
  static void ended(void *engine, tide_callback_t *callback, std::int64_t now_ns);
  void reserve_locked(std::size_t count);
  void reserve_in_group_locked(Group &group);
  void let_go_of_removed() noexcept;
  bool has_run_of_locked(const std::vector<std::shared_ptr<Group>> &groups) const;
  bool begin_spin(bool by_lanes);
  void end_spin();
  int round(std::size_t lane, std::int64_t deadline_ns) noexcept;
  void notify(Entity &entity, std::size_t times) noexcept;
  bool run_one(std::int64_t deadline_ns);
  void spin_lane(std::size_t lane) noexcept;
  void spin_lanes();
  void spin_while_ready(std::chrono::nanoseconds max_duration, bool exhaustive);
  void wake_alone() noexcept;
  void cancel_locked() noexcept;
  bool fail(std::exception_ptr exception) noexcept;

  EngineOptions options_;
  std::unique_ptr<Measurements> measurements_;
  std::unique_ptr<OutputFile> measured_file_;
  std::unique_ptr<Trace> trace_;
  std::vector<tide_lane_t> lanes_;
  std::vector<std::size_t> by_urgency_;  // the first lane of each band, the most urgent band first
  std::vector<tide_callback_t *> callbacks_;
  std::vector<tide_queue_entry_t *> ready_storage_, timer_storage_;
  tide_executor_t executor_{};
  const tide_platform_t *platform_;

  mutable std::mutex entities_mutex_;  // of what follows
  std::unordered_map<const Entity *, std::shared_ptr<Entity>> entities_;
  struct Removed {
    std::shared_ptr<Entity> entity;
    std::shared_ptr<Group> group;  // that it runs in; added again it may be in another
  };
  std::vector<Removed> removed_;  // and perhaps still running
  std::atomic<bool> has_removed_{false};

  std::mutex spin_mutex_;  // of what follows; atomic where others look
  std::atomic<bool> spinning_{false};
  std::atomic<bool> cancelled_{false};
  bool by_lanes_ = false;  // the spin is one of lanes, which the executor's stop ends
  std::exception_ptr failure_;
  std::atomic<std::uint64_t> exceptions_lost_{0};

  std::atomic<bool> alone_{false};  // one thread does the rounds of all lanes, and sleeps on this event
  tide_event_t alone_event_{};
};

}  // namespace tide_rcl
