// SPDX-License-Identifier: Apache-2.0
#include "io/link.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <system_error>

namespace tide::agent {

namespace {

epoll_event event_of(uint64_t token, bool writable) {
  epoll_event event{};
  event.events = EPOLLIN | (writable ? static_cast<uint32_t>(EPOLLOUT) : 0u);
  event.data.u64 = token;
  return event;
}

}  // namespace

Poller::Poller() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  if (epoll_ < 0) throw std::system_error(errno, std::generic_category(), "epoll");
}
Poller::~Poller() { close(epoll_); }

void Poller::watch(int descriptor, uint64_t token, bool writable) {
  epoll_event event = event_of(token, writable);
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) != 0) {
    throw std::system_error(errno, std::generic_category(), "epoll");
  }
}

void Poller::rewatch(int descriptor, uint64_t token, bool writable) {
  epoll_event event = event_of(token, writable);
  epoll_ctl(epoll_, EPOLL_CTL_MOD, descriptor, &event);
}

void Poller::forget(int descriptor) { epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, nullptr); }

void Poller::wait(Time until_ns, std::vector<Event> &events) {
  events.clear();
  std::array<epoll_event, 32> happened;
  timespec timeout{};
  if (until_ns != TIDE_FOREVER) {
    const Time rest = std::max<Time>(until_ns - monotonic_ns(), 0);
    timeout = {rest / kSecond, rest % kSecond};
  }
  const auto most = static_cast<int>(happened.size());
  int count = epoll_pwait2(epoll_, happened.data(), most, until_ns == TIDE_FOREVER ? nullptr : &timeout, nullptr);
  if (count < 0 && errno == ENOSYS) {  // Linux before 5.11, and Valgrind: only timeouts in whole milliseconds
    const int64_t rest_ms = timeout.tv_sec * 1000 + (timeout.tv_nsec + 999'999) / 1'000'000;
    count = epoll_wait(epoll_, happened.data(), most,
                       until_ns == TIDE_FOREVER ? -1 : static_cast<int>(std::min<int64_t>(rest_ms, 1'000'000)));
  }
  for (int place = 0; place < count; place++) {
    const epoll_event &event = happened[static_cast<size_t>(place)];
    events.push_back(
        {event.data.u64, (event.events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0, (event.events & EPOLLOUT) != 0});
  }
}

Time monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

size_t copy_frame(const tide_frame_parts_t &frame, uint8_t *bytes) {
  uint8_t *place = bytes;
  place = std::copy_n(frame.head, frame.head_bytes, place);
  place = std::copy_n(frame.body, frame.body_bytes, place);
  place = std::copy_n(frame.tail, frame.tail_bytes, place);
  return static_cast<size_t>(place - bytes);
}

// ---- the loop ----

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
  [[maybe_unused]] const ssize_t written = write(descriptor_, &one, sizeof one);  // a failure means that the counter is
                                                                                  // full, so the event is set
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
  // When the terminal is closed (SIGHUP), the agent ends in an orderly way, too. Under nohup, SIGHUP is ignored and
  // must not be blocked, because the loop would then read it.
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

// Sends frames of all links. Returns true if frames were sent or completed, because there may then be more.
bool Loop::pump(Time now) {
  deadline_ns_ = agent_.poll(now);
  agent_.flush();  // before acknowledgments are sent, so that an acknowledged deletion has reached DDS even if this
                   // program ends
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
