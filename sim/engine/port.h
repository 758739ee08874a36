// SPDX-License-Identifier: Apache-2.0
// The port (tide/port.h) in virtual time, for programs on the runtime's public interface. While a Port lives,
// tide_port_* are its. The program's threads are tasks, each on a core of its own; links interrupt core 0. The code
// that drives the engine is a thread of the program, too: where it waits, the engine goes on.
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
  // Opens no custom link. Null: there is no such link. The link lives as long as the port.
  using Open = std::function<Link *(tide_session_t &session, const tide_link_address_t &address)>;

  Port(Machine &machine, Open open);
  ~Port();
  Port(const Port &) = delete;
  Port &operator=(const Port &) = delete;

  static Port *current();
  Machine &machine() { return machine_; }

  // Threads are delayed where they leave a critical section: one in `one_in`, by up to `most`, drawn from the seed.
  // Without this call time passes only where a thread waits.
  void hesitate(uint64_t seed, uint64_t one_in, Time most);
  // From a thread: time passes. Throws std::runtime_error past `limit`.
  void pause(Time duration);
  Time limit = kForever;
  // What tide_port_in_interrupt returns.
  bool in_interrupt = false;

 private:
  friend class Thread;
  friend struct PortFunctions;
  struct Custom;
  struct Opened {
    tide_session_t *session;
    Link *link;  // or
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
  std::vector<bool> busy_;                    // cores that have a thread
  std::vector<std::shared_ptr<void>> ended_;  // threads; events that concern them may come yet
  std::vector<Opened> links_;
  Random random_{0};
  uint64_t one_in_ = 0;
  Time most_ = 0;
};

// A thread of the program: std::thread on the current port, joined before the port ends. Throws std::runtime_error if
// all cores have one.
class Thread {
 public:
  Thread() = default;
  // The priority is what a budget and the thread itself see; nobody preempts it.
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
