// SPDX-License-Identifier: Apache-2.0
#include "cable.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <system_error>

namespace tide::line {
namespace {

constexpr int64_t kSecond_ns = 1'000'000'000;

[[noreturn]] void fail(const std::string &what) { throw std::system_error(errno, std::generic_category(), what); }

void make_raw(int terminal) {
  termios mode{};
  if (tcgetattr(terminal, &mode) != 0) fail("terminal attributes");
  cfmakeraw(&mode);
  if (tcsetattr(terminal, TCSANOW, &mode) != 0) fail("raw mode");
}

}  // namespace

int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kSecond_ns + now.tv_nsec;
}

void End::open(const std::string &link) {
  descriptor_ = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor_ < 0 || grantpt(descriptor_) != 0 || unlockpt(descriptor_) != 0) fail("pseudo terminal");
  std::array<char, 64> name{};
  if (ptsname_r(descriptor_, name.data(), name.size()) != 0) fail("name of the terminal");
  terminal_ = name.data();
  held_open_ = ::open(terminal_.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (held_open_ < 0) fail(terminal_);
  make_raw(held_open_);
  if (!link.empty()) make_link(link);
}

// The link is put in place by renaming, so that a program that waits for the link never finds it missing or incomplete.
// An existing file is replaced only if it is a symbolic link.
void End::make_link(const std::string &link) {
  std::array<char, 1> target{};
  if (access(link.c_str(), F_OK) == 0 && readlink(link.c_str(), target.data(), target.size()) < 0) {
    errno = EEXIST;
    fail(link);
  }
  const std::string fresh = link + ".new";
  unlink(fresh.c_str());
  if (symlink(terminal_.c_str(), fresh.c_str()) != 0) fail(fresh);
  if (rename(fresh.c_str(), link.c_str()) != 0) fail(link);
  link_ = link;
}

End::~End() {
  if (!link_.empty()) {
    std::array<char, 64> target{};
    const ssize_t length = readlink(link_.c_str(), target.data(), target.size() - 1);
    if (length > 0 && terminal_ == target.data()) unlink(link_.c_str());
  }
  if (held_open_ >= 0) close(held_open_);
  if (descriptor_ >= 0) close(descriptor_);
}

void Cable::take_in(const Direction &direction, int64_t now) {
  std::array<uint8_t, 4096> bytes;
  while (direction.wire.room() > 0) {
    const size_t wanted = std::min(bytes.size(), direction.wire.room());
    const ssize_t count = read(direction.from.descriptor(), bytes.data(), wanted);
    if (count <= 0) return;
    direction.wire.accept({bytes.data(), static_cast<size_t>(count)}, now);
  }
}

void Cable::give_out(const Direction &direction, int64_t now) {
  const int64_t due = direction.wire.next_ns();
  if (due > now) return;
  direction.lateness.wakeups++;
  direction.lateness.total_ns += now - due;
  direction.lateness.maximum_ns = std::max(direction.lateness.maximum_ns, now - due);
  std::array<uint8_t, 4096> bytes;
  while (const size_t count = direction.wire.deliver(now, bytes)) {
    const ssize_t written = write(direction.to.descriptor(), bytes.data(), count);
    direction.overrun += count - static_cast<size_t>(std::max<ssize_t>(written, 0));
  }
}

void Cable::run(Requests &requests, const sigset_t &sleeping, int on_eof) {
  const Direction to_b{a_to_b_, a_, b_, late_to_b_, overrun_b_};
  const Direction to_a{b_to_a_, b_, a_, late_to_a_, overrun_a_};
  while (!requests.stop) {
    std::array<pollfd, 3> wait{};
    wait[0] = {a_to_b_.room() > 0 ? a_.descriptor() : -1, POLLIN, 0};
    wait[1] = {b_to_a_.room() > 0 ? b_.descriptor() : -1, POLLIN, 0};
    wait[2] = {on_eof, POLLIN, 0};
    const int64_t deadline = std::min(a_to_b_.next_ns(), b_to_a_.next_ns());
    const int64_t pause = std::max<int64_t>(deadline == kForever ? 0 : deadline - now_ns(), 0);
    const timespec timeout{static_cast<time_t>(pause / kSecond_ns), static_cast<long>(pause % kSecond_ns)};
    const int ready = ppoll(wait.data(), wait.size(), deadline == kForever ? nullptr : &timeout, &sleeping);
    if (ready < 0 && errno != EINTR) fail("poll");
    const int64_t now = now_ns();
    if (ready > 0 && wait[0].revents != 0) take_in(to_b, now);
    if (ready > 0 && wait[1].revents != 0) take_in(to_a, now);
    give_out(to_b, now);
    give_out(to_a, now);
    if (ready > 0 && wait[2].revents != 0) {
      char ignored[64];
      if (read(on_eof, ignored, sizeof ignored) <= 0) requests.stop = 1;
    }
    if (requests.toggle_cut) {
      requests.toggle_cut = 0;
      a_to_b_.set_cut(!a_to_b_.is_cut());
      b_to_a_.set_cut(!b_to_a_.is_cut());
    }
    if (requests.report) {
      requests.report = 0;
      std::puts(report().c_str());
      std::fflush(stdout);
    }
  }
}

std::string Cable::report_of(const Wire &wire, const Lateness &lateness, uint64_t overrun) const {
  const Counters &counters = wire.counters();
  const auto field = [](const char *name, uint64_t value) {
    return '"' + std::string(name) + "\": " + std::to_string(value) + ", ";
  };
  const int64_t mean_ns = lateness.wakeups == 0 ? 0 : lateness.total_ns / static_cast<int64_t>(lateness.wakeups);
  return '{' + field("bytes", counters.bytes) + field("delivered", counters.delivered) +
         field("frames", counters.frames) + field("frames_dropped", counters.frames_dropped) +
         field("bytes_dropped", counters.bytes_dropped) + field("bits_flipped", counters.bits_flipped) +
         field("noise_bytes", counters.noise_bytes) + field("bytes_cut", counters.bytes_cut) +
         field("unplugged", wire.is_cut() ? 1 : 0) + field("bytes_overrun", overrun) +
         field("wakeups", lateness.wakeups) + field("late_mean_ns", static_cast<uint64_t>(mean_ns)) +
         "\"late_maximum_ns\": " + std::to_string(lateness.maximum_ns) + "}";
}

std::string Cable::report() const {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto microseconds = [](const timeval &time) { return time.tv_sec * 1'000'000 + time.tv_usec; };
  return "{\"a_to_b\": " + report_of(a_to_b_, late_to_b_, overrun_b_) +
         ", \"b_to_a\": " + report_of(b_to_a_, late_to_a_, overrun_a_) +
         ", \"cpu_us\": " + std::to_string(microseconds(usage.ru_utime) + microseconds(usage.ru_stime)) + "}";
}

void Cable::keep_log(size_t most) {
  a_to_b_.keep_log(most);
  b_to_a_.keep_log(most);
}

void Cable::write_log(const std::string &file) const {
  std::FILE *stream = std::fopen(file.c_str(), "w");
  if (stream == nullptr) fail(file);
  for (const auto &[name, wire] : {std::pair{"a-to-b", &a_to_b_}, std::pair{"b-to-a", &b_to_a_}}) {
    for (const LoggedFrame &frame : wire->log()) {
      std::fprintf(stream,
                   R"({"direction": "%s", "start_ns": %lld, "end_ns": %lld, "bytes": %u, "dropped": %s, "head": ")",
                   name, static_cast<long long>(frame.start_ns), static_cast<long long>(frame.end_ns), frame.bytes,
                   frame.dropped ? "true" : "false");
      for (size_t index = 0; index < std::min<size_t>(frame.bytes, frame.head.size()); index++) {
        std::fprintf(stream, "%02x", frame.head[index]);
      }
      std::fputs("\"}\n", stream);
    }
  }
  if (std::fclose(stream) != 0) fail(file);
}

}  // namespace tide::line
