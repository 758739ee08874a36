// SPDX-License-Identifier: Apache-2.0
// The one thread that serves all links: events in, frames out, deadlines kept. Ends on SIGINT, SIGTERM or SIGHUP.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "busy_poll.h"
#include "core/agent.h"
#include "io/link.h"

namespace tide::agent {

// Lets other threads end the wait of the loop.
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

// Must come before any other thread is started: the signals are blocked for all of them.
int open_signals();

class Loop {
 public:
  // on_report: SIGUSR1 came.
  Loop(Agent &agent, Poller &poller, const Waker &waker, int signals, std::function<void()> on_report);
  void add(std::unique_ptr<Link> link) { links_.push_back(std::move(link)); }
  const std::vector<std::unique_ptr<Link>> &links() const { return links_; }
  // How long a wait may look for events before it sleeps (busy_poll.h). From the thread that calls run.
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
  std::vector<std::unique_ptr<Link>> links_;  // number n is at place n
  std::vector<Endpoint> ready_;
  std::vector<Poller::Event> events_;
  tide_busy_poll_t busy_poll_{};
  Time deadline_ns_ = 0;
  bool ending_ = false;
};

}  // namespace tide::agent
