// SPDX-License-Identifier: Apache-2.0
#include "io/link.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
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
  if (count < 0 && errno == ENOSYS) {  // Linux before 5.11, Valgrind: in whole milliseconds
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

LinkVitals Link::vitals() const {
  LinkVitals vitals;
  vitals.name = describe();
  vitals.bits_per_second = bits_per_second();
  vitals.frames_in = counters_.frames_in;
  vitals.bytes_in = counters_.bytes_in;
  vitals.frames_out = counters_.frames_out;
  vitals.bytes_out = counters_.bytes_out;
  vitals.checksum_errors = counters_.checksum_errors;
  vitals.send_dropped = counters_.send_dropped;
  vitals.receive_dropped = counters_.receive_dropped;
  vitals.reopened = counters_.reopened;
  vitals.connections_refused = counters_.connections_refused;
  vitals.connections_timed_out = counters_.connections_timed_out;
  return vitals;
}

Time monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

std::string text_of_address(uint32_t address) {
  std::string text = std::to_string(address >> 24);
  for (const unsigned shift : {16u, 8u, 0u}) text += "." + std::to_string(address >> shift & 0xFF);
  return text;
}

std::string text_of_bind_error(const std::string &protocol, const std::string &address, uint16_t port, int reason) {
  const std::string place = address + ":" + std::to_string(port);
  std::string text = protocol + " " + place + ": " + std::generic_category().message(reason);
  if (reason == EADDRINUSE) {
    text += "; ss -lp" + protocol.substr(0, 1) + "n sport = :" + std::to_string(port) +
            " names the process that has it, tide doctor --agent " + place + " says whether that is an agent";
  } else if (reason == EADDRNOTAVAIL) {
    text += ": this machine has no such address; 0.0.0.0 is all that it has";
  } else if (reason == EACCES) {
    text += ": ports below 1024 need rights; take 8888";
  }
  return text;
}

size_t copy_frame(const tide_frame_parts_t &frame, uint8_t *bytes) {
  uint8_t *place = bytes;
  const auto append = [&place](const uint8_t *part, size_t length) {
    if (length != 0) std::memcpy(place, part, length);
    place += length;
  };
  append(frame.head, frame.head_bytes);
  append(frame.body, frame.body_bytes);
  append(frame.tail, frame.tail_bytes);
  return static_cast<size_t>(place - bytes);
}

}  // namespace tide::agent
