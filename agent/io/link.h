// SPDX-License-Identifier: Apache-2.0
// Links carry messages between the agent's core and its clients. One thread, which runs the loop, serves all links: it
// handles events, sends frames and keeps deadlines.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "busy_poll.h"
#include "core/agent.h"
#include "io/arguments.h"
#include "tide/platform.h"

namespace tide::agent {

// Waits for events of file descriptors; a token identifies the link that handles an event.
class Poller {
 public:
  Poller();
  ~Poller();
  Poller(const Poller &) = delete;
  Poller &operator=(const Poller &) = delete;

  void watch(int descriptor, uint64_t token, bool writable = false);
  void rewatch(int descriptor, uint64_t token, bool writable);
  void forget(int descriptor);

  struct Event {
    uint64_t token;
    bool readable, writable;
  };
  // Waits until an event occurs, or until until_ns. The events replace the contents of the vector.
  void wait(Time until_ns, std::vector<Event> &events);

 private:
  int epoll_;
};

// The upper 8 bits of an endpoint and of a token are the number of the link; the link assigns the rest.
constexpr unsigned kLinkShift = 56;
constexpr uint64_t kLinkMask = (uint64_t{1} << kLinkShift) - 1;

class Link {
 public:
  Link(uint8_t number, Agent &agent, Poller &poller)
      : base_(static_cast<uint64_t>(number) << kLinkShift), agent_(agent), poller_(poller) {}
  virtual ~Link() = default;
  Link(const Link &) = delete;
  Link &operator=(const Link &) = delete;

  // One line for the user about the link, whether it is open or waits to be opened.
  virtual std::string describe() const = 0;
  virtual bool is_open() const { return true; }
  virtual void event(const Poller::Event &event, Time now) = 0;
  // Takes frames for the endpoint from the agent. Call this when the agent may have some.
  virtual void write(Endpoint endpoint, Time now) = 0;
  // Sends the frames that write has taken. Returns true if frames were sent or completed, because the agent may then
  // have more.
  virtual bool flush(Time now) = 0;
  // Time at which turn must be called next.
  virtual Time deadline() const { return TIDE_FOREVER; }
  // The peer at the endpoint; all zeroes and no device if none is known.
  virtual Peer peer(Endpoint endpoint) const = 0;
  virtual std::string name_of(Endpoint endpoint) const = 0;
  // Identifies the machine or the line behind an endpoint. The value is the same for all endpoints of this machine.
  virtual Host host_of(Endpoint) const { return base_; }
  // True if the sender's address can be forged.
  virtual bool may_be_forged() const { return false; }
  // Processes received messages that wait. Called after the events of each turn of the loop.
  virtual void turn(Time) {}
  const LinkCounters &counters() const { return counters_; }
  // 0 if unknown.
  virtual uint64_t bits_per_second() const { return 0; }
  LinkVitals vitals() const { return {counters_, describe(), bits_per_second()}; }

 protected:
  const uint64_t base_;
  Agent &agent_;
  Poller &poller_;
  LinkCounters counters_;
};

Time monotonic_ns();
// Copies all octets of a frame into `bytes`; returns their number.
size_t copy_frame(const tide_frame_parts_t &frame, uint8_t *bytes);

// Ends a wait of the loop. wake() may be called from any thread.
class Waker {
 public:
  Waker();
  ~Waker();
  Waker(const Waker &) = delete;
  Waker &operator=(const Waker &) = delete;
  void wake() const;
  void clear() const;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

// Blocks the signals that the loop handles, and returns the descriptor from which it reads them. Call this before any
// other thread is started, because threads inherit the blocked signals.
int open_signals();

// The loop of the agent's thread. It ends on SIGINT, SIGTERM or SIGHUP.
class Loop {
 public:
  // on_report is called on SIGUSR1.
  Loop(Agent &agent, Poller &poller, const Waker &waker, int signals, std::function<void()> on_report);
  void add(std::unique_ptr<Link> link) { links_.push_back(std::move(link)); }
  const std::vector<std::unique_ptr<Link>> &links() const { return links_; }
  // Sets for how long a wait polls for events before it sleeps (busy_poll.h). Call this in the thread that calls run.
  void set_busy_poll(Time limit_ns) { tide_busy_poll_init(&busy_poll_, limit_ns); }
  const tide_busy_poll_t &busy_poll() const { return busy_poll_; }
  void run();

 private:
  bool pump(Time now);
  void wait(Time until);
  void dispatch(const Poller::Event &event, Time now);

  Agent &agent_;
  Poller &poller_;
  const Waker &waker_;
  int signals_;
  std::function<void()> on_report_;
  std::vector<std::unique_ptr<Link>> links_;  // by number
  std::vector<Endpoint> ready_;
  std::vector<Poller::Event> events_;
  tide_busy_poll_t busy_poll_{};
  Time deadline_ns_ = 0;
  bool ending_ = false;
};

}  // namespace tide::agent
