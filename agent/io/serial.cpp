// SPDX-License-Identifier: Apache-2.0
#include "io/serial.h"

#include <fcntl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "serial_speed.h"

namespace tide::agent {
namespace {

constexpr Time kRetry = 100'000'000;
constexpr size_t kMessageBytesMaximum = 65535;
constexpr uint8_t kAgentAddress = 0;
constexpr Time kJudgedPeriod = 3 * kSecond;
constexpr uint64_t kJudgedBytes = 64;  // fewer bytes in a period say nothing about the line

// A pseudo terminal has no baud rate, which then only determines the pace of sending.
bool is_pseudo_terminal(const std::string &device) {
  std::error_code error;
  return std::filesystem::weakly_canonical(device, error).string().starts_with("/dev/pts/");
}

bool make_raw(int descriptor, const std::string &device, uint32_t baud) {
  termios settings{};
  if (tcgetattr(descriptor, &settings) != 0) return false;
  cfmakeraw(&settings);
  settings.c_cflag |= CLOCAL | CREAD;
  settings.c_cflag &= ~static_cast<tcflag_t>(CRTSCTS | CSTOPB);
  settings.c_cc[VMIN] = 1;
  settings.c_cc[VTIME] = 0;
  if (!tide_serial_set_speed(&settings, baud) && !is_pseudo_terminal(device)) return false;
  return tcsetattr(descriptor, TCSANOW, &settings) == 0;
}

}  // namespace

SerialLink::SerialLink(uint8_t number, Agent &agent, Poller &poller, const std::string &device, uint32_t baud)
    : Link(number, agent, poller),
      device_(device),
      baud_(baud),
      message_(kMessageBytesMaximum),
      frame_(TIDE_FRAMING_WORST_BYTES(kMessageBytesMaximum)) {
  termios settings{};
  if (!tide_serial_set_speed(&settings, baud) && !is_pseudo_terminal(device)) {
    std::string known;
    for (const tide_serial_speed &entry : tide_serial_speeds) known += " " + std::to_string(entry.baud);
    throw std::runtime_error("no such baud rate: " + std::to_string(baud) + "; use one of:" + known);
  }
  tide_framing_reader_init(&reader_, kAgentAddress);
  open_device(monotonic_ns());
  if (waits_because_ == ENOTTY || waits_because_ == EISDIR) {
    throw std::runtime_error("--serial " + device + " is not a serial device; give a tty or a pseudo terminal");
  }
}

SerialLink::~SerialLink() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::string SerialLink::describe() const { return "serial " + device_ + " " + std::to_string(baud_); }

void SerialLink::open_device(Time now) {
  retry_at_ns_ = now + kRetry;
  const int descriptor = open(device_.c_str(), O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) {
    wait_for_device(errno);
    return;
  }
  if (!make_raw(descriptor, device_, baud_)) {
    wait_for_device(errno);
    close(descriptor);
    return;
  }
  descriptor_ = descriptor;
  if (waits_because_ != 0) agent_.warn("opened " + device_);
  waits_because_ = 0;
  poller_.watch(descriptor_, base_);
  tide_framing_reader_reset(&reader_);
  tide_framing_reader_set_buffer(&reader_, message_.data(), message_.size());
  if (const auto call = std::exchange(on_first_open_, {})) call(*this);
}

// Reports why the device cannot be opened, in one line for each new reason.
void SerialLink::wait_for_device(int reason) {
  if (reason == waits_because_) return;
  waits_because_ = reason;
  if (reason == ENOTTY || reason == EISDIR) return;  // not a terminal: the constructor throws
  std::string line = "waiting for " + device_ + ": " + std::generic_category().message(reason);
  if (reason == EACCES) line += "; the user of the agent needs the right to it (often the group dialout)";
  agent_.warn(line);
}

// The frame on the wire is lost. Reliable streams repeat their messages when the device has returned.
void SerialLink::close_device(Time now) {
  poller_.forget(descriptor_);
  close(descriptor_);
  descriptor_ = -1;
  retry_at_ns_ = now + kRetry;
  watches_writable_ = false;
  counters_.reopened++;
  if (!on_the_wire_) return;
  on_the_wire_ = false;
  agent_.sent(sending_, now);
}

void SerialLink::event(const Poller::Event &event, Time now) {
  if (!is_open()) return;
  if (event.readable) receive(now);
  if (is_open() && event.writable) put_bytes(now);
}

void SerialLink::receive(Time now) {
  std::array<uint8_t, 4096> chunk;
  const ssize_t count = read(descriptor_, chunk.data(), chunk.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) {
    close_device(now);
    return;
  }
  if (judged_since_ == 0) {
    judged_ = counters_;
    judged_since_ = now;
  }
  counters_.bytes_in += static_cast<size_t>(count);
  for (size_t used = 0; used < static_cast<size_t>(count);) {
    int complete = 0;
    used += tide_framing_reader_input(&reader_, chunk.data() + used, static_cast<size_t>(count) - used, &complete);
    if (complete == 0) continue;
    counters_.frames_in++;
    const Bytes message(reader_.buffer, reader_.length);
    if (tide_crc16(message.data(), message.size()) == reader_.crc) {
      agent_.input(base_ | reader_.source, message, now);
    } else {
      counters_.checksum_errors++;
    }
    tide_framing_reader_set_buffer(&reader_, message_.data(), message_.size());
  }
  if (now - judged_since_ >= kJudgedPeriod) judge_line(now);
}

// Tells the user once, until the line is sound again, that bytes arrive which are hardly ever a valid frame.
void SerialLink::judge_line(Time now) {
  const uint64_t bytes = counters_.bytes_in - judged_.bytes_in, frames = counters_.frames_in - judged_.frames_in;
  const uint64_t bad = counters_.checksum_errors - judged_.checksum_errors;
  const Time seconds = (now - std::exchange(judged_since_, 0)) / kSecond;
  if (bytes < kJudgedBytes) return;
  const bool was_garbled = std::exchange(is_garbled_, frames == 0 || bad > frames / 2);
  if (was_garbled || !is_garbled_) return;
  agent_.warn(device_ + ": " + std::to_string(bytes) + " bytes arrived in " + std::to_string(seconds) + " s, but " +
              (frames == bad ? "no valid frame" : "few valid frames") + ": is " + std::to_string(baud_) +
              " the baud rate of the board? The board may also print text on this line");
}

void SerialLink::write(Endpoint endpoint, Time) {
  if (std::find(ready_.begin(), ready_.end(), endpoint) == ready_.end()) ready_.push_back(endpoint);
}

bool SerialLink::flush(Time now) {
  if (!is_open()) {
    if (now >= retry_at_ns_) open_device(now);
    return false;
  }
  const bool was_busy = on_the_wire_;
  if (was_busy) {
    // The next frame starts one octet before the end of this one, as with a driver that has a holding register, so that
    // the line is never idle between frames.
    if (frame_written_ < frame_bytes_ || now < line_free_at_ns_ - octet_ns()) return false;
    on_the_wire_ = false;
    agent_.sent(sending_, now);
  }
  return start_frame(now) || was_busy;  // if a frame was completed, the timeout of its acknowledgment starts, so poll
                                        // must be called again
}

bool SerialLink::start_frame(Time now) {
  tide_frame_parts_t frame;
  while (!ready_.empty()) {
    sending_ = ready_.front();
    std::rotate(ready_.begin(), ready_.begin() + 1, ready_.end());  // endpoints take turns
    if (!agent_.next(sending_, now, frame)) {
      ready_.pop_back();
      continue;
    }
    std::array<uint8_t, 65536> message;
    const size_t length = copy_frame(frame, message.data());
    const int framed = tide_framing_encode(frame_.data(), frame_.size(), kAgentAddress,
                                           static_cast<uint8_t>(sending_ & 0xFF), message.data(), length, nullptr, 0);
    if (framed <= 0) {
      agent_.sent(sending_, now);
      counters_.send_dropped++;
      continue;
    }
    frame_bytes_ = static_cast<size_t>(framed);
    frame_written_ = 0;
    on_the_wire_ = true;
    counters_.frames_out++;
    counters_.bytes_out += frame_bytes_;
    line_free_at_ns_ = std::max(now, line_free_at_ns_) +
                       static_cast<Time>(frame_bytes_) * kBitsOfOctet * kSecond / static_cast<Time>(baud_);
    put_bytes(now);
    return true;
  }
  return false;
}

void SerialLink::put_bytes(Time now) {
  if (frame_written_ < frame_bytes_) {
    const ssize_t count = ::write(descriptor_, frame_.data() + frame_written_, frame_bytes_ - frame_written_);
    if (count < 0 && errno != EAGAIN && errno != EINTR) {
      close_device(now);
      return;
    }
    if (count > 0) frame_written_ += static_cast<size_t>(count);
  }
  const bool wants = frame_written_ < frame_bytes_;
  if (wants != watches_writable_) poller_.rewatch(descriptor_, base_, wants);
  watches_writable_ = wants;
}

Time SerialLink::deadline() const {
  if (!is_open()) return retry_at_ns_;
  if (!on_the_wire_ || frame_written_ < frame_bytes_) return TIDE_FOREVER;
  return line_free_at_ns_ - octet_ns();
}

}  // namespace tide::agent
