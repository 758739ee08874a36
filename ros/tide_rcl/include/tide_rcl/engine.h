// SPDX-License-Identifier: Apache-2.0
// The engine of tide for C++ hosts: which callback runs next, and on which lane. It does not depend on rcl or rclcpp.
//
// An Entity can run. A thread of the middleware, a timer or the program notifies it when it becomes ready: O(log n),
// from any thread. A choosing lane takes the most urgent ready entity of its levels whose group is free, and inspects
// no other. Rules of lanes, levels, groups, timers and policies: tide/executor.h.
//
// Thread-safe: notify, add, remove, set_priority and cancel may be called from any thread, also while callbacks run,
// and from callbacks. Errors are exceptions: std::invalid_argument for invalid arguments, std::runtime_error for calls
// not allowed now, std::system_error for refusals of the operating system. Memory: 24 bytes for each entity and band,
// plus the entity; it grows with added entities and is freed with the engine.
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

// A thread that runs callbacks. `settings` are those of tide/lane.h, except the name, which is stored here.
struct Lane {
  std::string name = "tide lane";
  tide_lane_settings_t settings{};
};

enum class Policy {
  kChains,  // most urgent first
  kDefault  // like rclcpp's own executors: a set of ready callbacks, by kind and registration; a baseline
};

struct EngineOptions {
  // Empty: one lane for all levels, in the spinning thread. Several lanes are threads of the engine while it spins, and
  // the spinning thread waits for them. With kDefault all lanes have the same least_level.
  std::vector<Lane> lanes;
  Policy policy = Policy::kChains;
  // Several lanes of one level: an entity made ready by a callback may wait this long for another lane that wakes by
  // itself. This saves a wake-up, which takes longer than the rest of most callbacks after they have published. 0:
  // another lane is woken at once. Not with kDefault.
  std::chrono::nanoseconds patience = std::chrono::microseconds(100);
  // Called once at the start of each spin; a cancel after that is not lost. false ends the spin at once. Empty: true.
  std::function<bool()> may_spin;
  // Called before and after each run by its lane, with the time on CLOCK_MONOTONIC.
  std::function<void(Entity &, std::int64_t now_ns)> on_start, on_end;
  // Called by the lane when a callback has thrown the exception that the spin will rethrow.
  std::function<void(Entity &)> on_failure;
  // Not empty: the file for a line about each callback that ran (Entity::set_names), written when the engine ends.
  // `tide trace times` reads it. OutputFile has the rules for paths. Cost: two readings of the thread's clock a run.
  std::string measured_file;
  // Not empty: the file for a trace of all runs, which `tide trace export` reads. place: this program's number in it.
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
  std::atomic<Engine *> engine_{nullptr};  // engine of its members
};

// An object that becomes ready and then runs. Its engine keeps it alive from add until it has been removed and no
// longer runs.
class Entity {
 public:
  virtual ~Entity() = default;
  Entity(const Entity &) = delete;
  Entity &operator=(const Entity &) = delete;

  // Makes the entity ready for this many more runs. No effect while it is not in an engine.
  void notify(std::size_t times = 1) noexcept;
  [[nodiscard]] tide_priority_t priority() const noexcept { return timer_.callback.priority; }
  [[nodiscard]] tide_callback_kind_t kind() const noexcept { return timer_.callback.kind; }
  // Names for measurements, "chain/callback" as in system.toml, of all chains that contain the entity. Call it while
  // the entity is not in an engine.
  void set_names(std::vector<std::string> names) { names_ = std::move(names); }

 protected:
  explicit Entity(tide_callback_kind_t kind) noexcept;
  // One run, on a lane. An exception ends the spin, which rethrows it.
  virtual void run() = 0;
  // Called when the engine adds or releases it: connect to and disconnect from its notifier. Not called with a lock
  // held.
  virtual void connect() {}
  virtual void disconnect() noexcept {}

  // For timers only. These calls do nothing while the timer is not in an engine. Times on CLOCK_MONOTONIC. Arming
  // withdraws an expiry
  // that has not run yet. At each start the next expiry moves by one period, or by as many as have passed.
  void arm_at(std::int64_t expiry_ns, std::int64_t period_ns) noexcept;
  void disarm() noexcept;
  [[nodiscard]] std::int64_t armed_for_ns() const noexcept;  // TIDE_FOREVER: not armed
  [[nodiscard]] bool is_ready() const noexcept { return tide_callback_is_ready(&timer_.callback); }
  // Start of the run on CLOCK_MONOTONIC, as read by the lane; only from run. If runs of the entity overlap, this may be
  // the start of a later run.
  [[nodiscard]] std::int64_t start_ns() const noexcept;
  // The entity's engine, kept alive for notifiers that may outlive it. Null: the entity has no engine, or one without a
  // shared pointer.
  [[nodiscard]] std::shared_ptr<Engine> keep_engine() const;

 private:
  friend class Engine;
  static void execute(tide_callback_t *callback, void *context);
  static void expire(tide_timer_t *timer, std::int64_t since_last_call_ns);

  tide_timer_t timer_{};  // other kinds use only its first member
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

  // An entity is in one engine at a time, and so is a group as long as it has members. std::invalid_argument otherwise.
  void add(const std::shared_ptr<Entity> &entity, tide_priority_t priority, std::shared_ptr<Group> group = nullptr);
  // The entity does not start after this returns; a run that has begun continues. False: the entity is not in this
  // engine.
  bool remove(const std::shared_ptr<Entity> &entity);
  // Waits until no removed member of these groups runs any more, except the caller's own run.
  void wait_for_removed(const std::vector<std::shared_ptr<Group>> &groups) const;
  void set_priority(Entity &entity, tide_priority_t priority);
  [[nodiscard]] std::size_t size() const;

  // Spins until cancel, or until a callback throws. All four spins throw std::runtime_error if it spins already.
  void spin();
  // One callback, on the calling thread: the most urgent of all lanes. Waits at most `timeout`; negative: for ever.
  void spin_once(std::chrono::nanoseconds timeout = std::chrono::nanoseconds(-1));
  // Runs as many callbacks as are ready at its start; starts none after max_duration (0: no limit).
  void spin_some(std::chrono::nanoseconds max_duration = std::chrono::nanoseconds(0));
  // Runs callbacks until none is ready.
  void spin_all(std::chrono::nanoseconds max_duration);
  // Ends the current spin after the running callbacks; no effect without a spin.
  void cancel() noexcept;
  [[nodiscard]] bool is_spinning() const noexcept { return spinning_.load(); }

  [[nodiscard]] std::int64_t now_ns() const noexcept;
  [[nodiscard]] tide_executor_counters_t counters();
  // Number of lost exceptions: all of a spin except the first one, which is rethrown.
  [[nodiscard]] std::uint64_t exceptions_lost() const noexcept { return exceptions_lost_.load(); }
  // Present contents of the measured file. Empty without one.
  [[nodiscard]] std::string measurement_lines();
  // Called by a callback: sets its instance number in the trace, for example to a number from its message. The default
  // is the number of its earlier starts. No effect elsewhere, or without a trace.
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
  std::vector<std::size_t> by_urgency_;  // first lane of each band, most urgent band first
  std::vector<tide_callback_t *> callbacks_;
  std::vector<tide_queue_entry_t *> ready_storage_, timer_storage_;
  tide_executor_t executor_{};
  const tide_platform_t *platform_;

  mutable std::mutex entities_mutex_;  // guards the members below
  std::unordered_map<const Entity *, std::shared_ptr<Entity>> entities_;
  struct Removed {
    std::shared_ptr<Entity> entity;
    std::shared_ptr<Group> group;  // group in which it runs; when added again it may be in another
  };
  std::vector<Removed> removed_;  // removed, possibly still running
  std::atomic<bool> has_removed_{false};

  std::mutex spin_mutex_;  // guards the members below; atomic ones are also read without it
  std::atomic<bool> spinning_{false};
  std::atomic<bool> cancelled_{false};
  bool by_lanes_ = false;  // the spin uses lanes, and the executor's stop ends it
  std::exception_ptr failure_;
  std::atomic<std::uint64_t> exceptions_lost_{0};

  std::atomic<bool> alone_{false};  // one thread runs the rounds of all lanes, and sleeps on this event
  tide_event_t alone_event_{};
};

}  // namespace tide_rcl
