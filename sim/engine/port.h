// SPDX-License-Identifier: Apache-2.0
// The port (tide/port.h) in virtual time, for programs on the runtime's public interface. While a Port exists, the
// functions tide_port_* use it. The program's threads are tasks, each on its own core; links interrupt core 0. Code
// outside of tasks and events also counts as a thread of the program: while it waits, the engine runs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/engine/line.h"
#include "sim/engine/machine.h"
#include "sim/engine/random.h"
#include "tide/port.h"

namespace tide::sim {

class Port {
 public:
  // Opens a link, except for custom links, which the port opens itself. Returns null if no link has this address. The
  // returned link must exist as long as the port.
  using Open = std::function<Link *(tide_session_t &session, const tide_link_address_t &address)>;

  Port(Machine &machine, Open open);
  ~Port();
  Port(const Port &) = delete;
  Port &operator=(const Port &) = delete;

  static Port *current();
  Machine &machine() { return machine_; }

  // Delays threads that leave a critical section: one of `one_in` times, by up to `most`, drawn from the seed. Without
  // these delays, time passes only while a thread waits.
  void hesitate(uint64_t seed, uint64_t one_in, Time most);
  // Called from a thread: lets time pass. Throws std::runtime_error if the virtual time exceeds `limit`.
  void pause(Time duration);
  Time limit = kForever;
  Time hesitated = 0;  // sum of all delays caused by hesitate()
  // Sets the result of tide_port_in_interrupt.
  bool in_interrupt = false;

 private:
  friend class Thread;
  friend struct PortFunctions;
  struct Custom;
  struct Opened {
    tide_session_t *session;
    Link *link;  // null: a custom link
    std::unique_ptr<Custom> custom;
  };

  void advance(Time until);
  bool is_outside() const { return Task::current() == nullptr && !machine_.engine().is_stepping(); }
  void section_end();
  int wait(tide_event_t *event, Time deadline);
  int open(tide_session_t *session, const tide_link_address_t &address);
  void close(tide_session_t *session);
  Opened *find(const tide_session_t *session);

  Machine &machine_;
  Open open_;
  std::vector<bool> busy_;                    // by core: true if it has a thread; core 0 never has one
  std::vector<std::shared_ptr<void>> ended_;  // threads that have ended, kept because events may still refer to them
  std::vector<Opened> links_;
  Random random_{0};
  uint64_t one_in_ = 0;
  Time most_ = 0;
};

// Takes the place of std::thread on the simulated machine: a task on a core of the current port that has no thread yet.
// The owner must join it before the port is destroyed. The constructor throws std::runtime_error if all cores have a
// thread.
class Thread {
 public:
  Thread() = default;
  // A budget and the thread itself can read the priority; it has no other effect, because the thread has its own core.
  explicit Thread(std::function<void()> body, int priority = kNormalPriority);
  Thread(Thread &&) noexcept = default;
  Thread &operator=(Thread &&) noexcept = default;
  ~Thread();
  bool joinable() const { return state_ != nullptr; }
  void join();
  Task &task();
  static constexpr int kNormalPriority = 0;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tide::sim
