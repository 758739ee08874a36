// SPDX-License-Identifier: Apache-2.0
// The engine of tide for C++ hosts: which callback runs next, and on which lane. The engine does not depend on rcl or
// rclcpp.
//
// An Entity is an object that can run. A thread of the middleware, a timer or the program notifies an entity when it
// becomes ready; this costs O(log n) and is allowed from any thread. A lane that chooses takes the most urgent ready
// entity of its levels whose group is free, and inspects no other entity.
//
// Thread safety: notify, add, remove, set_priority and cancel may be called from any thread, from callbacks, and while
// callbacks run. Errors are exceptions: std::invalid_argument for invalid arguments, std::runtime_error for calls that
// are not allowed now, std::system_error for refusals by the operating system. Memory: 24 bytes for each entity and
// band, plus the entity. It grows when entities are added, and is freed with the engine.
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

// A thread that runs callbacks. `settings` are those of tide/lane.h, except for the name, which is stored here.
struct Lane {
  std::string name = "tide lane";
  tide_lane_settings_t settings{};
};

enum class Policy {
  kChains,  // the most urgent entity first
  kDefault  // a baseline like rclcpp's own executors: a set of ready callbacks, ordered by kind and registration
};

struct EngineOptions {
  // If this is empty, there is one lane for all levels, in the spinning thread. Several lanes are threads of the engine
  // while it spins, and the spinning thread waits for them. With kDefault all lanes have the same least_level.
  std::vector<Lane> lanes;
  Policy policy = Policy::kChains;
  // For several lanes of one level: an entity that a callback has made ready may wait this long for another lane that
  // wakes by itself. This saves a wake-up, which usually takes longer than the rest of the callback after it has
  // published. 0 means that another lane is woken at once. Not used with kDefault.
  std::chrono::nanoseconds patience = std::chrono::microseconds(100);
  // Called once at the start of each spin; a cancel after this call is not lost. If it returns false, the spin ends at
  // once. Empty: as if it returned true.
  std::function<bool()> may_spin;
  // Called by the lane before and after each run, with the time on CLOCK_MONOTONIC.
  std::function<void(Entity &, std::int64_t now_ns)> on_start, on_end;
  // Called by the lane when a callback has thrown the exception that the spin will rethrow.
  std::function<void(Entity &)> on_failure;
  // If not empty: the file for a line about each callback that ran (Entity::set_names), written when the engine ends.
  // `tide trace times` reads this file. OutputFile describes the rules for paths. Cost: the thread's clock is read
  // twice in each run.
  std::string measured_file;
  // If not empty: the file for a trace of all runs, which `tide trace export` reads. trace_place is the number of this
  // program in the trace.
  std::string trace_file;
  std::uint16_t trace_place = 0;
};

// Entities that do not run at the same time (exclusive), or that may overlap one another and themselves (reentrant).
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
  std::atomic<Engine *> engine_{nullptr};  // the engine of its members
};

// An object that becomes ready and then runs. Its engine keeps it alive from add until it has been removed and does not
// run any more.
class Entity {
 public:
  virtual ~Entity() = default;
  Entity(const Entity &) = delete;
  Entity &operator=(const Entity &) = delete;

  // Makes the entity ready for this many more runs. This has no effect while the entity is not in an engine.
  void notify(std::size_t times = 1) noexcept;
  [[nodiscard]] tide_priority_t priority() const noexcept { return timer_.callback.priority; }
  [[nodiscard]] tide_callback_kind_t kind() const noexcept { return timer_.callback.kind; }
  // Names for measurements, of the form "chain/callback" as in system.toml, one for each chain that contains the
  // entity. Call this while the entity is not in an engine.
  void set_names(std::vector<std::string> names) { names_ = std::move(names); }

 protected:
  explicit Entity(tide_callback_kind_t kind) noexcept;
  // One run, on a lane. An exception from it ends the spin, which rethrows the exception.
  virtual void run() = 0;
  // Called when the engine adds or releases the entity, to connect it to its notifier or disconnect it from there. The
  // engine holds no lock during the call.
  virtual void connect() {}
  virtual void disconnect() noexcept {}

  // These functions are for timers only. They do nothing while the timer is not in an engine. Times are on
  // CLOCK_MONOTONIC. Arming withdraws an expiry whose run has not begun yet. At each start of the timer, the next
  // expiry moves by one period, or by as many periods as have passed.
  void arm_at(std::int64_t expiry_ns, std::int64_t period_ns) noexcept;
  void disarm() noexcept;
  [[nodiscard]] std::int64_t armed_for_ns() const noexcept;  // TIDE_FOREVER if it is not armed
  [[nodiscard]] bool is_ready() const noexcept { return tide_callback_is_ready(&timer_.callback); }
  // Start of the run on CLOCK_MONOTONIC, as read by the lane; may be called only from run. If runs of the entity
  // overlap, this may be the start of a later run.
  [[nodiscard]] std::int64_t start_ns() const noexcept;
  // The entity's engine, kept alive for notifiers that may outlive it. Null if the entity has no engine, or if the
  // engine is not owned by a shared pointer.
  [[nodiscard]] std::shared_ptr<Engine> keep_engine() const;

 private:
  friend class Engine;
  static void execute(tide_callback_t *callback, void *context);
  static void expire(tide_timer_t *timer, std::int64_t since_last_call_ns);

  tide_timer_t timer_{};  // entities that are not timers use only its first member
  std::atomic<Engine *> engine_{nullptr};
  std::shared_ptr<Group> group_;
  std::vector<std::string> names_;
  std::uint32_t starts_ = 0;  // number of its starts, which identifies its instances in a trace
};

class Engine : public std::enable_shared_from_this<Engine> {
 public:
  // Throws std::runtime_error if a file named in the options cannot be written.
  explicit Engine(EngineOptions options = {});
  ~Engine();  // must not be called while it spins
  Engine(const Engine &) = delete;
  Engine &operator=(const Engine &) = delete;

  // An entity is in one engine at a time, and so is a group as long as it has members; otherwise this throws
  // std::invalid_argument.
  void add(const std::shared_ptr<Entity> &entity, tide_priority_t priority, std::shared_ptr<Group> group = nullptr);
  // After this returns, the entity does not start any more; a run that has begun continues. Returns false if the entity
  // is not in this engine.
  bool remove(const std::shared_ptr<Entity> &entity);
  // Waits until no removed member of these groups runs any more; the caller's own run is excluded.
  void wait_for_removed(const std::vector<std::shared_ptr<Group>> &groups) const;
  void set_priority(Entity &entity, tide_priority_t priority);
  [[nodiscard]] std::size_t size() const;

  // Spins until cancel is called, or until a callback throws. All four spin functions throw std::runtime_error if the
  // engine is already spinning.
  void spin();
  // Runs one callback on the calling thread: the most urgent one of all lanes. Waits at most `timeout` for it; a
  // negative timeout means for ever.
  void spin_once(std::chrono::nanoseconds timeout = std::chrono::nanoseconds(-1));
  // Runs at most as many callbacks as are ready when it starts, and starts none after max_duration (0: no limit).
  void spin_some(std::chrono::nanoseconds max_duration = std::chrono::nanoseconds(0));
  // Runs callbacks until none is ready.
  void spin_all(std::chrono::nanoseconds max_duration);
  // Ends the current spin after the running callbacks; has no effect without a spin.
  void cancel() noexcept;
  [[nodiscard]] bool is_spinning() const noexcept { return spinning_.load(); }

  [[nodiscard]] std::int64_t now_ns() const noexcept;
  [[nodiscard]] tide_executor_counters_t counters();
  // The lines that the measured file would get now. Empty if there is no measured file.
  [[nodiscard]] std::string measurement_lines();
  // Called by a callback to set its instance number in the trace, for example to a number from its message. The default
  // is the number of its previous starts. Has no effect elsewhere, or without a trace.
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
  std::vector<std::size_t> by_urgency_;  // index of the first lane of each band, the most urgent band first
  std::vector<tide_callback_t *> callbacks_;
  std::vector<tide_queue_entry_t *> ready_storage_, timer_storage_;
  tide_executor_t executor_{};
  const tide_platform_t *platform_;

  mutable std::mutex entities_mutex_;  // guards the members below
  std::unordered_map<const Entity *, std::shared_ptr<Entity>> entities_;
  struct Removed {
    std::shared_ptr<Entity> entity;
    std::shared_ptr<Group> group;  // the group in which it runs; if it is added again, it may be in another one
  };
  std::vector<Removed> removed_;  // removed, but possibly still running
  std::atomic<bool> has_removed_{false};

  std::mutex spin_mutex_;  // guards the members below; the atomic ones are also read without it
  std::atomic<bool> spinning_{false};
  std::atomic<bool> cancelled_{false};
  bool by_lanes_ = false;  // true if the spin uses lanes, so that the executor's stop ends it
  std::exception_ptr failure_;

  std::atomic<bool> alone_{false};  // true if one thread runs the rounds of all lanes and sleeps on the event below
  tide_event_t alone_event_{};
};

}  // namespace tide_rcl
