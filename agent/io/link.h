// SPDX-License-Identifier: Apache-2.0
// What carries messages between the agent's core and its clients. The loop calls everything from one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/agent.h"
#include "io/access.h"
#include "tide/platform.h"

namespace tide::agent {

struct LinkCounters {
  uint64_t bytes_in = 0, bytes_out = 0;  // as they travel on the link
  uint64_t frames_in = 0, frames_out = 0, checksum_errors = 0, send_dropped = 0, receive_dropped = 0, reopened = 0;
  uint64_t connections_refused = 0, connections_timed_out = 0;
};

// Who waits for which file descriptors.
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
  // Until something happens or until_ns. The events replace those of the vector.
  void wait(Time until_ns, std::vector<Event> &events);

 private:
  int epoll_;
};

// Of an endpoint and of a token, the upper 8 bits are the number of the link; the rest is the link's.
constexpr unsigned kLinkShift = 56;
constexpr uint64_t kLinkMask = (uint64_t{1} << kLinkShift) - 1;

class Link {
 public:
  Link(uint8_t number, Agent &agent, Poller &poller)
      : base_(static_cast<uint64_t>(number) << kLinkShift), agent_(agent), poller_(poller) {}
  virtual ~Link() = default;
  Link(const Link &) = delete;
  Link &operator=(const Link &) = delete;

  // One line for the user: what is open, or is to be.
  virtual std::string describe() const = 0;
  virtual bool is_open() const { return true; }
  virtual void event(const Poller::Event &event, Time now) = 0;
  // The endpoint may have frames.
  virtual void write(Endpoint endpoint, Time now) = 0;
  // All that was gathered by write goes out. True: frames left or reached their end, so ask the agent again.
  virtual bool flush(Time now) = 0;
  // When turn is to be called next.
  virtual Time deadline() const { return TIDE_FOREVER; }
  // Who is there; nobody: address 0 and no device.
  virtual Peer peer(Endpoint endpoint) const = 0;
  virtual std::string name_of(Endpoint endpoint) const = 0;
  // The same for all that one machine, or one line, opens on this link one after the other.
  Host host_of(Endpoint endpoint) const { return base_ | peer(endpoint).address; }
  // Whether who sends from an address need not be there.
  virtual bool may_be_forged() const { return false; }
  // After the events, each time: goes on with what has been received and waits.
  virtual void turn(Time) {}
  const LinkCounters &counters() const { return counters_; }
  // 0: not known.
  virtual uint64_t bits_per_second() const { return 0; }
  LinkVitals vitals() const;

 protected:
  const uint64_t base_;
  Agent &agent_;
  Poller &poller_;
  LinkCounters counters_;
};

Time monotonic_ns();
std::string text_of_address(uint32_t address);
// Why a port cannot be served, and what to do. protocol: "udp" or "tcp".
std::string text_of_bind_error(const std::string &protocol, const std::string &address, uint16_t port, int reason);
// All octets of a frame after each other; returns their count.
size_t copy_frame(const tide_frame_parts_t &frame, uint8_t *bytes);

}  // namespace tide::agent
