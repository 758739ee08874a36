// SPDX-License-Identifier: Apache-2.0
// A serial line (tty or pseudo terminal) with the stream framing of XRCE. The next frame is chosen only when the
// previous one has left the line, at a time that is computed from the baud rate (8N1). An urgent frame therefore waits
// for at most one other frame.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "io/link.h"
#include "tide/framing.h"

namespace tide::agent {

class SerialLink : public Link {
 public:
  // If the device is missing or vanishes later, this is reported, and the device is opened as soon as it appears.
  // Throws std::runtime_error if the device is not a terminal, or if this system does not support the speed.
  SerialLink(uint8_t number, Agent &agent, Poller &poller, const std::string &device, uint32_t baud);
  ~SerialLink() override;

  bool is_open() const override { return descriptor_ >= 0; }
  // Calls `call` when the device is opened, if it is not open now.
  void on_first_open(std::function<void(const SerialLink &)> call) {
    if (!is_open()) on_first_open_ = std::move(call);
  }
  std::string describe() const override;
  uint64_t bits_per_second() const override { return baud_; }
  void event(const Poller::Event &event, Time now) override;
  void write(Endpoint endpoint, Time now) override;
  bool flush(Time now) override;
  Time deadline() const override;
  Peer peer(Endpoint) const override { return {{}, device_}; }
  std::string name_of(Endpoint) const override { return "serial " + device_; }

 private:
  static constexpr Time kBitsOfOctet = 10;  // 8N1

  void open_device(Time now);
  void wait_for_device(int reason);
  void close_device(Time now);
  void receive(Time now);
  void judge_line(Time now);
  bool start_frame(Time now);
  void put_bytes(Time now);
  Time octet_ns() const { return kBitsOfOctet * kSecond / static_cast<Time>(baud_); }

  std::string device_;
  uint32_t baud_;
  std::function<void(const SerialLink &)> on_first_open_;
  int descriptor_ = -1;
  Time retry_at_ns_ = 0;
  int waits_because_ = 0;  // the errno that was reported; 0 if the device is open
  tide_framing_reader_t reader_{};
  LinkCounters judged_;    // as they were at the beginning of the present period of judge_line
  Time judged_since_ = 0;  // that beginning; 0: the next received bytes begin a period
  bool is_garbled_ = false;
  std::vector<uint8_t> message_;
  std::vector<uint8_t> frame_;  // the frame being sent
  size_t frame_bytes_ = 0, frame_written_ = 0;
  bool on_the_wire_ = false;
  bool watches_writable_ = false;
  Endpoint sending_ = 0;
  Time line_free_at_ns_ = 0;
  std::vector<Endpoint> ready_;  // endpoints for which the agent has frames
};

}  // namespace tide::agent
