// SPDX-License-Identifier: Apache-2.0
#include "io/loop.h"

#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <system_error>

namespace tide::agent {
namespace {

constexpr uint64_t kWakerToken = uint64_t{0xFF} << kLinkShift;
constexpr uint64_t kSignalToken = uint64_t{0xFE} << kLinkShift;

}  // namespace

Waker::Waker() : descriptor_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (descriptor_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
}
Waker::~Waker() { close(descriptor_); }

void Waker::wake() const {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(descriptor_, &one, sizeof one);  // full counts as set
}

void Waker::clear() const {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(descriptor_, &count, sizeof count);
}

int open_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGUSR1);
  // The terminal is closed: the end is an orderly one, too. Under nohup it is ignored, which blocking would undo.
  struct sigaction hangup {};
  if (sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN) sigaddset(&set, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

Loop::Loop(Agent &agent, Poller &poller, const Waker &waker, int signals, std::function<void()> on_report)
    : agent_(agent), poller_(poller), waker_(waker), signals_(signals), on_report_(std::move(on_report)) {
  poller_.watch(waker_.descriptor(), kWakerToken);
  poller_.watch(signals_, kSignalToken);
}

void Loop::run() {
  while (!ending_) {
    if (pump(monotonic_ns())) continue;
    Time until = deadline_ns_;
    for (const auto &link : links_) until = std::min(until, link->deadline());
    wait(until);
    const Time now = monotonic_ns();
    for (const Poller::Event &event : events_) dispatch(event, now);
    for (const auto &link : links_) link->turn(now);
  }
}

void Loop::wait(Time until) {
  const Time start = monotonic_ns();
  events_.clear();
  tide_busy_poll_start(&busy_poll_, start);
  Time now = start;
  while (events_.empty() && now < until && tide_busy_poll_goes_on(&busy_poll_, now)) {
    poller_.wait(now, events_);
    now = monotonic_ns();
  }
  tide_busy_poll_looked(&busy_poll_, now, !events_.empty());
  if (events_.empty()) poller_.wait(until, events_);
  now = monotonic_ns();
  tide_busy_poll_end(&busy_poll_, now - start, now, !events_.empty());
}

// True when frames left or reached their end, so that there may be more.
bool Loop::pump(Time now) {
  deadline_ns_ = agent_.poll(now);
  agent_
      .flush();  // before the acknowledgments leave: what a client has no longer is in DDS, whatever ends this program
  agent_.take_ready(ready_);
  for (const Endpoint endpoint : ready_) links_[endpoint >> kLinkShift]->write(endpoint, now);
  bool sent = false;
  for (const auto &link : links_) sent = link->flush(now) || sent;
  return sent;
}

void Loop::dispatch(const Poller::Event &event, Time now) {
  if (event.token == kWakerToken) {
    waker_.clear();
  } else if (event.token == kSignalToken) {
    signalfd_siginfo signal{};
    if (read(signals_, &signal, sizeof signal) != static_cast<ssize_t>(sizeof signal)) return;
    if (signal.ssi_signo == SIGUSR1) {
      on_report_();
    } else {
      ending_ = true;
    }
  } else {
    links_[event.token >> kLinkShift]->event(event, now);
  }
}

}  // namespace tide::agent
