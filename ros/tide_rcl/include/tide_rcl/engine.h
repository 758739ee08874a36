// SPDX-License-Identifier: Apache-2.0
// The engine of tide for C++ hosts: which callback runs next, and on which lane. The engine does not depend on rcl or
// rclcpp.
//
// An Entity is an object that can run. A thread of the middleware, a timer or the program notifies an entity when it
// becomes ready; a notification costs O(log n) for n ready entities. A lane (a thread that runs entities) takes the
// most urgent ready entity of its levels whose group is free, without inspecting the others.
//
// Thread safety: notify, add, remove, set_priority and cancel may be called from any thread, from callbacks, and while
// callbacks run. Errors are exceptions: std::invalid_argument for invalid arguments, std::system_error if the operating
// system denies permission, std::runtime_error for all others. Memory: besides the entities, the engine keeps tables
// with 8 bytes for each place, and 16 more for each different least_level of the lanes. There are 64 places at first;
// when they are used up, their number doubles. They are freed with the engine.
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

// A thread that runs callbacks. tide/lane.h describes `settings`; their member `name` is ignored in favour of the one
// here.
struct Lane {
  std::string name = "tide lane";
  tide_lane_settings_t settings{};
};

enum class Policy {
  kChains,  // the most urgent entity first
  kDefault  // for comparison, the order of rclcpp's own executors: a set of ready callbacks, by kind and registration
};

struct EngineOptions {
  // If this is empty, the spinning thread is the only lane and serves all levels. Several lanes are threads that the
  // engine creates for each spin; the spinning thread waits for them. With kDefault all lanes must have the same
  // least_level.
  std::vector<Lane> lanes;
  Policy policy = Policy::kChains;
  // Used if several lanes have the same least_level: an entity that a callback makes ready may wait this long for a
  // lane that becomes free by itself (usually the lane of that callback) before another lane is woken. A wake-up
  // usually takes longer than the rest of a callback after it has published. 0 means that another lane is woken at
  // once. Not used with kDefault.
  std::chrono::nanoseconds patience = std::chrono::microseconds(100);
  // Called once at the start of each spin. If it returns false, the spin ends at once. A cancel during or after the
  // call ends this spin. Empty: as if it returned true.
  std::function<bool()> may_spin;
  // The lane calls on_start before and on_end after each run, with the time on CLOCK_MONOTONIC.
  std::function<void(Entity &, std::int64_t now_ns)> on_start, on_end;
  // The lane calls this when an entity has thrown the exception that the spin will rethrow (the first one of the spin).
  std::function<void(Entity &)> on_failure;
  // If not empty: a file into which the engine, when it is destroyed, writes a line for each name (Entity::set_names)
  // of a callback that ran. `tide trace times` reads this file. OutputFile describes the rules for paths. Cost: the
  // thread's processor clock is read twice in each run.
  std::string measured_file;
  // If not empty: a file into which a trace of all runs is written, for `tide trace export`. trace_place is the number
  // of this program in a combined trace.
  std::string trace_file;
  std::uint16_t trace_place = 0;
};

// A group of entities. In an exclusive group, one entity runs at a time. In a reentrant group, runs of different
// entities and of the same entity may overlap.
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
  std::atomic<Engine *> engine_{nullptr};  // the engine of its members; null without members
};

// An object that becomes ready and then runs. Its engine keeps it alive from Engine::add until it has been removed and
// its last run has ended.
class Entity {
 public:
  virtual ~Entity() = default;
  Entity(const Entity &) = delete;
  Entity &operator=(const Entity &) = delete;

  // Makes the entity ready for this many more runs. Has no effect while the entity is in no engine.
  void notify(std::size_t times = 1) noexcept;
  [[nodiscard]] tide_priority_t priority() const noexcept { return timer_.callback.priority; }
  [[nodiscard]] tide_callback_kind_t kind() const noexcept { return timer_.callback.kind; }
  // Sets the names for measurements: one of the form "chain/callback", as in system.toml, for each chain that contains
  // the entity. May be called only while the entity is in no engine.
  void set_names(std::vector<std::string> names) { names_ = std::move(names); }

 protected:
  explicit Entity(tide_callback_kind_t kind) noexcept;
  // Does the work of one run, called by a lane. An exception ends the spin, which rethrows it.
  virtual void run() = 0;
  // Engine::add calls connect, which registers the entity with the source of its notifications. Engine::remove calls
  // disconnect, perhaps while a run continues. The engine holds no lock during these calls.
  virtual void connect() {}
  virtual void disconnect() noexcept {}

  // The next four functions are for entities of the kind timer. arm_at sets the next expiry and the period, in the time
  // of CLOCK_MONOTONIC; it does nothing while the timer is in no engine. Arming withdraws an expiry whose run has not
  // begun yet. When a run of the timer starts, the next expiry moves by one period, or by as many periods as have
  // passed.
  void arm_at(std::int64_t expiry_ns, std::int64_t period_ns) noexcept;
  void disarm() noexcept;
  [[nodiscard]] std::int64_t armed_for_ns() const noexcept;  // TIDE_FOREVER if it is not armed
  [[nodiscard]] bool is_ready() const noexcept { return tide_callback_is_ready(&timer_.callback); }
  // The time on CLOCK_MONOTONIC at which the lane started the run; may be called only from run. If runs of the entity
  // overlap, the result may be the start of a later run.
  [[nodiscard]] std::int64_t start_ns() const noexcept;
  // A shared pointer to the entity's engine. A source of notifications that may outlive the engine can keep it alive
  // with this pointer. Null if the entity has no engine, or if the engine is not owned by a shared pointer.
  [[nodiscard]] std::shared_ptr<Engine> keep_engine() const;

 private:
  friend class Engine;
  static void execute(tide_callback_t *callback, void *context);
  static void expire(tide_timer_t *timer, std::int64_t since_last_call_ns);

  tide_timer_t timer_{};  // entities of other kinds use only the member `callback`
  std::atomic<Engine *> engine_{nullptr};
  std::shared_ptr<Group> group_;
  std::vector<std::string> names_;
  std::uint32_t starts_ = 0;  // number of its starts in the trace, which identifies its instances
};

class Engine : public std::enable_shared_from_this<Engine> {
 public:
  // Throws std::runtime_error if a file named in the options cannot be written.
  explicit Engine(EngineOptions options = {});
  ~Engine();  // must not be called while it spins
  Engine(const Engine &) = delete;
  Engine &operator=(const Engine &) = delete;

  // Throws std::invalid_argument if the entity is in an engine already, or if the group has members in another engine,
  // and std::runtime_error for the 65,536th entity. An exception of the entity's connect is rethrown after the entity
  // has been removed again.
  void add(const std::shared_ptr<Entity> &entity, tide_priority_t priority, std::shared_ptr<Group> group = nullptr);
  // After this returns, no run of the entity begins; a run that has begun continues. Returns false if the entity is not
  // in this engine.
  bool remove(const std::shared_ptr<Entity> &entity);
  // Waits until no removed member of these groups runs any more. A callback that calls this does not wait for itself.
  void wait_for_removed(const std::vector<std::shared_ptr<Group>> &groups) const;
  void set_priority(Entity &entity, tide_priority_t priority);
  [[nodiscard]] std::size_t size() const;

  // Runs callbacks until cancel is called or a callback throws. Throws std::system_error or std::runtime_error if the
  // operating system refuses the settings of a lane. All four spin functions rethrow the first exception of a callback,
  // and throw std::runtime_error if the engine is already spinning.
  void spin();
  // Runs one callback in the calling thread: the most urgent one of those that are ready for any lane. Waits at most
  // `timeout` for it; a negative timeout is no limit.
  void spin_once(std::chrono::nanoseconds timeout = std::chrono::nanoseconds(-1));
  // Runs callbacks in the calling thread, at most as many as are ready at the call. Starts none after max_duration (0:
  // no limit).
  void spin_some(std::chrono::nanoseconds max_duration = std::chrono::nanoseconds(0));
  // Runs callbacks in the calling thread until none is ready. Starts none after max_duration (0: no limit). Throws
  // std::invalid_argument if max_duration is negative.
  void spin_all(std::chrono::nanoseconds max_duration);
  // Ends the current spin as soon as the running callbacks have ended; has no effect if the engine does not spin.
  void cancel() noexcept;
  [[nodiscard]] bool is_spinning() const noexcept { return spinning_.load(); }

  [[nodiscard]] std::int64_t now_ns() const noexcept;
  [[nodiscard]] tide_executor_counters_t counters();
  // The lines that the measured file would get now. Empty if there is no measured file.
  [[nodiscard]] std::string measurement_lines();
  // A callback may call this to set the instance number of its run in the trace, for example to a number from its
  // message. The default is the number of previous starts of the callback. Has no effect outside a callback, or without
  // a trace.
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
  std::vector<std::size_t> by_urgency_;  // for each band (the lanes with equal least_level), the most urgent first: the
                                         // index of its first lane
  std::vector<tide_callback_t *> callbacks_;
  std::vector<tide_queue_entry_t *> ready_storage_, timer_storage_;
  tide_executor_t executor_{};
  const tide_platform_t *platform_;

  mutable std::mutex entities_mutex_;  // guards entities_ and removed_
  std::unordered_map<const Entity *, std::shared_ptr<Entity>> entities_;
  struct Removed {
    std::shared_ptr<Entity> entity;
    std::shared_ptr<Group> group;  // the group in which it still runs; entity->group_ may be another one by then, if
                                   // the entity was added again
  };
  std::vector<Removed> removed_;  // removed entities of which a run may still continue
  std::atomic<bool> has_removed_{false};

  std::mutex spin_mutex_;  // guards the next five members; the atomic ones are also read without it
  std::atomic<bool> spinning_{false};
  std::atomic<bool> cancelled_{false};
  bool by_lanes_ = false;  // true during spin(), which cancel ends by stopping the executor of the runtime
  std::exception_ptr failure_;

  std::atomic<bool> alone_{false};  // true during the other spins: one thread runs the rounds of all lanes and sleeps
                                    // on the event below
  tide_event_t alone_event_{};
};

}  // namespace tide_rcl
