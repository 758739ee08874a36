// SPDX-License-Identifier: Apache-2.0
// A daemon for the tests of links: the functions that a link calls, with plain queues that a test can inspect. It
// replaces the real daemon at link time by defining the same names.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include "eventually.h"
#include "tide/port.h"
#include "tide/status.h"

using Bytes = std::vector<uint8_t>;

class FakeDaemon {
 public:
  struct Sent {
    int64_t started_ns, submitted_ns, completed_ns;
    size_t bytes;
  };

  explicit FakeDaemon(uint16_t mtu = 512) {
    session.daemon.platform = tide_port_platform();
    session.config.mtu = mtu;
    session.config.context = this;
    session.deadline_ns = TIDE_FOREVER;
  }
  ~FakeDaemon() { close(); }
  FakeDaemon(const FakeDaemon &) = delete;
  FakeDaemon &operator=(const FakeDaemon &) = delete;

  int open(const tide_link_address_t &where) {
    const int status = tide_port_open_link(&session, &where);
    opened_ = status == TIDE_OK;
    return status;
  }
  void close() {
    if (opened_) tide_port_close_link(&session);
    opened_ = false;
  }
  tide_link_counters_t counters() {
    tide_link_counters_t counters{};
    EXPECT_EQ(tide_port_link_counters(&session, &counters), TIDE_OK);
    return counters;
  }

  static int64_t now_ns() { return tide_port_platform()->now_ns(tide_port_platform()->context); }

  // Callable from any thread; the message waits while the link is busy or down, as in the real daemon.
  void submit(Bytes message) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back({std::move(message), now_ns()});
    start_next();
  }

  // Waits for an action of another thread; returns false if it did not happen in ten seconds.
  bool eventually(const std::function<bool(const FakeDaemon &)> &condition) {
    return tide::test::eventually([&] {
      const std::lock_guard lock(mutex_);
      return condition(*this);
    });
  }
  template <typename Result> Result look(const std::function<Result(const FakeDaemon &)> &at) {
    const std::lock_guard lock(mutex_);
    return at(*this);
  }

  // Functions called by the link.
  int attach(const tide_link_t *link, uint8_t new_address) {
    const std::lock_guard lock(mutex_);
    link_ = *link;
    if (on_attach) on_attach();
    attached = true;
    attaches++;
    address = new_address;
    start_next();
    return TIDE_OK;
  }
  void detach() {
    const std::lock_guard lock(mutex_);
    attached = false;
    if (busy_) waiting_.push_front({current_, current_submitted_ns_});
    busy_ = false;
  }
  void complete() {
    const std::lock_guard lock(mutex_);
    if (!busy_) wrong_completions++;
    if (starting_) completed_in_start++;
    busy_ = false;
    sent.push_back({started_ns_, current_submitted_ns_, now_ns(), current_.size()});
    if (!starting_) start_next();
  }
  void take_bytes(const uint8_t *bytes, size_t count) {
    const std::lock_guard lock(mutex_);
    received.insert(received.end(), bytes, bytes + count);
  }
  void take_message(const uint8_t *message, size_t length) {
    const std::lock_guard lock(mutex_);
    messages.emplace_back(message, message + length);
    if (on_message) on_message();
  }
  // Like tide_daemon_wait.
  int wait(tide_event_t *event, int64_t deadline_ns, tide_wait_t kind = TIDE_WAIT_ANSWER) {
    const tide_link_t link = look<tide_link_t>([](const FakeDaemon &fake) { return fake.link_; });
    const tide_platform_t *platform = session.daemon.platform;
    const uintptr_t critical = platform->critical_enter(platform->context);
    link.hold(link.context);
    platform->critical_exit(platform->context, critical);
    return link.wait(link.context, event, deadline_ns, kind);
  }
  int64_t poll() {
    const std::lock_guard lock(mutex_);
    polls++;
    return now_ns() + poll_period_ns;
  }

  tide_session_t session{};

  // Use these members only inside eventually and look.
  std::vector<Sent> sent;
  Bytes received;
  std::vector<Bytes> messages;
  bool attached = false;
  int attaches = 0, polls = 0, refused = 0, wrong_completions = 0, completed_in_start = 0;
  bool awaited = false;  // the value for submitted messages
  tide_priority_t priority = 0;
  int64_t poll_period_ns = 1'000'000'000;
  std::function<void()> on_message, on_attach;  // set before the link's thread runs
  uint8_t address = 0xFF;
  size_t waiting() const { return waiting_.size() + (busy_ ? 1u : 0u); }

 private:
  struct Message {
    Bytes bytes;
    int64_t submitted_ns;
  };

  void start_next() {
    while (attached && !busy_ && !waiting_.empty()) {
      current_ = waiting_.front().bytes;
      current_submitted_ns_ = waiting_.front().submitted_ns;
      waiting_.pop_front();
      // Like the transmitter: a header, the body, and up to three octets of padding.
      const size_t head = std::min<size_t>(8, current_.size()), tail = std::min<size_t>(3, current_.size() - head);
      parts_ = {};
      parts_.head = current_.data();
      parts_.head_bytes = head;
      parts_.body = current_.data() + head;
      parts_.body_bytes = current_.size() - head - tail;
      parts_.tail = current_.data() + current_.size() - tail;
      parts_.tail_bytes = tail;
      parts_.awaited = awaited;
      parts_.priority = priority;
      busy_ = true;
      starting_ = true;
      started_ns_ = parts_.time_ns = now_ns();
      const tide_platform_t *platform = session.daemon.platform;
      const uintptr_t critical = platform->critical_enter(platform->context);
      const int status = link_.start(link_.context, &parts_);
      platform->critical_exit(platform->context, critical);
      if (status == TIDE_LINK_SENT) complete();
      if (status < 0) {
        busy_ = false;
        refused++;
      }
      starting_ = false;
    }
  }

  std::recursive_mutex mutex_;
  std::deque<Message> waiting_;
  tide_link_t link_{};
  tide_frame_parts_t parts_{};
  Bytes current_;
  int64_t current_submitted_ns_ = 0, started_ns_ = 0;
  bool busy_ = false, starting_ = false, opened_ = false;
};

// The daemon is a member of its session, whose context is the fake.
inline FakeDaemon &fake_of(tide_daemon_t *daemon) {
  void *session = reinterpret_cast<uint8_t *>(daemon) - offsetof(tide_session_t, daemon);
  return *static_cast<FakeDaemon *>(static_cast<tide_session_t *>(session)->config.context);
}

extern "C" {
int tide_daemon_attach_link(tide_daemon_t *daemon, const tide_link_t *link, uint8_t address) {
  return fake_of(daemon).attach(link, address);
}
void tide_daemon_detach_link(tide_daemon_t *daemon) { fake_of(daemon).detach(); }
void tide_daemon_on_transmit_complete(tide_daemon_t *daemon) { fake_of(daemon).complete(); }
void tide_daemon_on_bytes(tide_daemon_t *daemon, const uint8_t *bytes, size_t count) {
  fake_of(daemon).take_bytes(bytes, count);
}
void tide_daemon_on_message(tide_daemon_t *daemon, const uint8_t *message, size_t length) {
  fake_of(daemon).take_message(message, length);
}
int64_t tide_session_poll(tide_session_t *session) { return fake_of(&session->daemon).poll(); }
int64_t tide_session_poll_received(tide_session_t *session) { return tide_session_poll(session); }
}
