// SPDX-License-Identifier: Apache-2.0
#include "io/udp.h"

#include <arpa/inet.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace tide::agent {
namespace {

constexpr size_t kFramesPerTurn = TIDE_DATAGRAMS_A_BATCH;  // of one endpoint, before others get theirs
constexpr size_t kReceiveRounds = 64;                      // at once; more waits in the kernel
// Dealt with before what they became leaves and the kernel is asked again. A reader in DDS has a socket with room for
// 200 kB as a rule: what the agent writes faster than readers take is lost to them, and the agent's time with it.
constexpr size_t kMessagesPerTurn = 256, kBytesPerTurn = 32768;
constexpr Time kTimePerTurn = 2'000'000;
constexpr size_t kReceivePlaces = TIDE_DATAGRAM_PLACES_MAXIMUM;
constexpr int kReceiveBytes = 8 * 1024 * 1024;
constexpr int kSendBytes = 4 * TIDE_DATAGRAM_SOCKET_BYTES;  // the longest message in pieces takes more than its length

uint64_t place_of(const sockaddr_in &address) {
  return (static_cast<uint64_t>(ntohl(address.sin_addr.s_addr)) << 16) | ntohs(address.sin_port);
}

sockaddr_in address_of(uint64_t place) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(static_cast<uint32_t>(place >> 16));
  address.sin_port = htons(static_cast<uint16_t>(place));
  return address;
}

int open_socket(const std::string &address, uint16_t &port) {
  sockaddr_in local{};
  local.sin_family = AF_INET;
  local.sin_port = htons(port);
  if (inet_pton(AF_INET, address.c_str(), &local.sin_addr) != 1)
    throw std::runtime_error("not an IPv4 address: " + address);
  const int descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) throw std::system_error(errno, std::generic_category(), "udp");
  if (setsockopt(descriptor, SOL_SOCKET, SO_RCVBUFFORCE, &kReceiveBytes, sizeof kReceiveBytes) != 0) {
    setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &kReceiveBytes, sizeof kReceiveBytes);
  }
  setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &kSendBytes, sizeof kSendBytes);
  socklen_t length = sizeof local;
  if (bind(descriptor, reinterpret_cast<sockaddr *>(&local), sizeof local) != 0 ||
      getsockname(descriptor, reinterpret_cast<sockaddr *>(&local), &length) != 0) {
    const int reason = errno;
    close(descriptor);
    throw std::runtime_error(text_of_bind_error("udp", address, port, reason));
  }
  port = ntohs(local.sin_port);
  return descriptor;
}

}  // namespace

UdpLink::UdpLink(uint8_t number, Agent &agent, Poller &poller, const std::string &address, uint16_t port)
    : Link(number, agent, poller),
      socket_(open_socket(address, port)),
      address_(address),
      port_(port),
      in_storage_(kReceivePlaces * TIDE_DATAGRAM_BYTES_MAXIMUM),
      out_storage_(TIDE_DATAGRAM_BYTES_MAXIMUM + TIDE_DATAGRAM_BATCH_BYTES),
      backlog_([this](Endpoint endpoint, Bytes message) { agent_.input(endpoint, message, now_); }, {},
               [this](Endpoint endpoint) { return standing_of(endpoint); }, monotonic_ns) {
  tide_datagram_input_init(&in_, socket_, in_storage_.data(), in_storage_.size());
  tide_datagram_output_init(&out_, socket_, out_storage_.data(), out_storage_.size());
  poller_.watch(socket_, base_);
}

UdpLink::~UdpLink() { close(socket_); }

std::string UdpLink::describe() const { return "udp " + address_ + ":" + std::to_string(port_); }

Peer UdpLink::peer(Endpoint endpoint) const { return {static_cast<uint32_t>((endpoint & kLinkMask) >> 16), {}}; }

std::string UdpLink::name_of(Endpoint endpoint) const {
  return "udp " + text_of_address(peer(endpoint).address) + ":" + std::to_string(endpoint & 0xFFFF);
}

void UdpLink::event(const Poller::Event &event, Time now) {
  now_ = now;
  behind_ = !backlog_.empty();
  turn_messages_ = turn_bytes_ = 0;
  for (size_t round = 0; event.readable && round < kReceiveRounds; round++) {
    if (!tide_datagram_input_take(&in_, received, this)) break;
    behind_ = true;
  }
  if (event.writable) go_on(now);
}

void UdpLink::turn(Time now) {
  now_ = now;
  if (backlog_.empty()) return;
  backlog_.serve(kMessagesPerTurn, kBytesPerTurn, kTimePerTurn);
  if (!backlog_.empty()) sched_yield();  // on a full processor a reader comes first: what waits here may be lost anyway
  counters_.receive_dropped = backlog_.dropped();
}

void UdpLink::received(void *link, const uint8_t *bytes, size_t length, const sockaddr_in *from) {
  auto &self = *static_cast<UdpLink *>(link);
  self.counters_.frames_in++;
  self.counters_.bytes_in += length;
  const Endpoint endpoint = self.base_ | place_of(*from);
  if (self.behind_ || self.standing_of(endpoint) == Standing::kStranger) {
    self.behind_ = true;
    self.backlog_.push(endpoint, {bytes, length});
  } else {
    self.agent_.input(endpoint, {bytes, length}, self.now_);
    self.turn_bytes_ += length;
    self.behind_ = ++self.turn_messages_ >= kMessagesPerTurn || self.turn_bytes_ >= kBytesPerTurn;
  }
}

Standing UdpLink::standing_of(Endpoint endpoint) const {
  return agent_.has_used_session(endpoint) ? Standing::kSession : Standing::kStranger;
}

void UdpLink::write(Endpoint endpoint, Time now) {
  const sockaddr_in to = address_of(endpoint & kLinkMask);
  tide_frame_parts_t frame;
  for (size_t turn = 0; turn < kFramesPerTurn && !out_.blocked && agent_.next(endpoint, now, frame); turn++) {
    const size_t length = frame.head_bytes + frame.body_bytes + frame.tail_bytes;
    if (uint8_t *place = tide_datagram_output_place(&out_, length); place != nullptr) {
      tide_datagram_output_add(&out_, copy_frame(frame, place), &to);
      counters_.bytes_out += length;
    } else {
      counters_.send_dropped++;  // no message is that long
    }
    agent_.sent(endpoint, now);
    sent_ = true;
    if (tide_datagram_output_is_full(&out_)) send();
  }
  if (out_.blocked && std::find(waiting_.begin(), waiting_.end(), endpoint) == waiting_.end()) {
    waiting_.push_back(endpoint);
  }
}

bool UdpLink::flush(Time) {
  if (!out_.blocked) send();
  const bool sent = sent_;
  sent_ = false;
  return sent;
}

void UdpLink::send() {
  const bool was_blocked = out_.blocked;
  const uint64_t sent = out_.sent, lost = out_.lost;
  tide_datagram_output_flush(&out_);
  counters_.frames_out += out_.sent - sent;
  counters_.send_dropped += out_.lost - lost;
  if (out_.blocked != was_blocked) poller_.rewatch(socket_, base_, out_.blocked);
}

// The kernel takes frames again.
void UdpLink::go_on(Time now) {
  send();
  if (out_.blocked) return;
  const std::vector<Endpoint> endpoints = std::exchange(waiting_, {});
  for (const Endpoint endpoint : endpoints) write(endpoint, now);
  sent_ = sent_ || !endpoints.empty();
}

}  // namespace tide::agent
