// SPDX-License-Identifier: Apache-2.0
#include "io/tcp.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>
#include <system_error>

namespace tide::agent {
namespace {

constexpr size_t kLengthBytes = 2;
// The quantum: beyond so many octets that have not left, here and in the kernel, the next frame is not chosen yet.
constexpr size_t kOutMaximum = 16384;
constexpr int kUnsentBytes = 16384;
constexpr size_t kFramesPerConnection = 32;

int open_listener(const std::string &address, uint16_t &port) {
  sockaddr_in local{};
  local.sin_family = AF_INET;
  local.sin_port = htons(port);
  if (inet_pton(AF_INET, address.c_str(), &local.sin_addr) != 1)
    throw std::runtime_error("not an IPv4 address: " + address);
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) throw std::system_error(errno, std::generic_category(), "tcp");
  const int on = 1;
  setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  socklen_t length = sizeof local;
  if (bind(descriptor, reinterpret_cast<sockaddr *>(&local), sizeof local) != 0 || listen(descriptor, 16) != 0 ||
      getsockname(descriptor, reinterpret_cast<sockaddr *>(&local), &length) != 0) {
    const int reason = errno;
    close(descriptor);
    throw std::runtime_error(text_of_bind_error("tcp", address, port, reason));
  }
  port = ntohs(local.sin_port);
  return descriptor;
}

}  // namespace

TcpLink::TcpLink(uint8_t number, Agent &agent, Poller &poller, const std::string &address, uint16_t port,
                 const TcpLimits &limits)
    : Link(number, agent, poller),
      listener_(open_listener(address, port)),
      address_(address),
      port_(port),
      limits_(limits) {
  poller_.watch(listener_, base_);
}

TcpLink::~TcpLink() {
  for (const auto &[number, connection] : connections_) close(connection.descriptor);
  close(listener_);
}

std::string TcpLink::describe() const { return "tcp " + address_ + ":" + std::to_string(port_); }

void TcpLink::event(const Poller::Event &event, Time now) {
  const uint64_t number = event.token & kLinkMask;
  if (number == 0) {
    accept_connection(now);
    return;
  }
  const auto place = connections_.find(number);
  if (place == connections_.end()) return;
  if (event.writable) write(event.token, now);
  if (event.readable && connections_.contains(number)) receive(number, place->second, now);
}

Peer TcpLink::peer(Endpoint endpoint) const {
  const auto place = connections_.find(endpoint & kLinkMask);
  return {place == connections_.end() ? 0 : place->second.address, {}};
}

std::string TcpLink::name_of(Endpoint endpoint) const { return "tcp " + text_of_address(peer(endpoint).address); }

void TcpLink::accept_connection(Time now) {
  sockaddr_in from{};
  socklen_t length = sizeof from;
  const int descriptor = accept4(listener_, reinterpret_cast<sockaddr *>(&from), &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (descriptor < 0) {
    if (errno == EMFILE || errno == ENFILE) pause(now);
    return;
  }
  const uint64_t number = next_number_++;
  const uint32_t address = ntohl(from.sin_addr.s_addr);
  const char *reason = reason_to_refuse(address, now);
  connections_[number] = {.descriptor = descriptor, .address = address, .heard_ns = now};
  if (reason == nullptr && !agent_.allows(base_ | number)) reason = "not let in: no --allow names it";
  if (reason != nullptr) {
    agent_.notices().tell(reason, name_of(base_ | number), now);
    counters_.connections_refused++;
    close(descriptor);
    connections_.erase(number);
    return;
  }
  const int on = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(descriptor, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsentBytes, sizeof kUnsentBytes);
  poller_.watch(descriptor, base_ | number);
  next_check_ns_ = std::min(next_check_ns_, now + limits_.session_wait_ns);
}

// Null: none.
const char *TcpLink::reason_to_refuse(uint32_t address, Time now) {
  const auto same = std::count_if(connections_.begin(), connections_.end(),
                                  [address](const auto &entry) { return entry.second.address == address; });
  if (static_cast<size_t>(same) >= limits_.per_address && !make_room(address, now)) {
    return "connection refused: this address has as many as --max-tcp-per-address allows";
  }
  if (connections_.size() >= limits_.connections && !make_room({}, now)) {
    return "connection refused: all are taken by clients; see --max-clients";
  }
  return nullptr;
}

// address: of the one that gives way.
bool TcpLink::make_room(std::optional<uint32_t> address, Time now) {
  auto chosen = connections_.end();
  for (auto place = connections_.begin(); place != connections_.end(); ++place) {
    if ((address && place->second.address != *address) || agent_.has_client(base_ | place->first)) continue;
    if (chosen == connections_.end() || place->second.heard_ns < chosen->second.heard_ns) chosen = place;
  }
  if (chosen == connections_.end()) return false;
  agent_.notices().tell("connection without a session closed, to make room for another one",
                        name_of(base_ | chosen->first), now);
  counters_.connections_timed_out++;
  close_connection(chosen->first);
  return true;
}

void TcpLink::pause(Time now) {
  constexpr Time kPause = 1'000'000'000;
  agent_.notices().tell("connections wait: no file descriptor is left; raise the limit (ulimit -n)", describe(), now);
  if (!paused_) poller_.forget(listener_);
  paused_ = true;
  next_check_ns_ = std::min(next_check_ns_, now + kPause);
}

// Whoever keeps a connection without using it loses it.
void TcpLink::check(Time now) {
  next_check_ns_ = TIDE_FOREVER;
  if (paused_) poller_.watch(listener_, base_);
  paused_ = false;
  std::vector<std::pair<uint64_t, const char *>> over;
  for (const auto &[number, connection] : connections_) {
    Time limit = TIDE_FOREVER;
    const char *reason = "connection closed: no session within five seconds";
    if (!agent_.has_client(base_ | number)) limit = connection.heard_ns + limits_.session_wait_ns;
    if (connection.half_ns != 0 && connection.half_ns + limits_.message_wait_ns < limit) {
      limit = connection.half_ns + limits_.message_wait_ns;
      reason = "connection closed: a message was not finished within five seconds";
    }
    if (now >= limit) {
      over.emplace_back(number, reason);
    } else if (limit != TIDE_FOREVER) {
      next_check_ns_ = std::min(next_check_ns_, limit);
    } else {
      next_check_ns_ = std::min(next_check_ns_, now + limits_.session_wait_ns);  // its session may end
    }
  }
  for (const auto &[number, reason] : over) {
    agent_.notices().tell(reason, name_of(base_ | number), now);
    counters_.connections_timed_out++;
    close_connection(number);
  }
}

void TcpLink::receive(uint64_t number, Connection &connection, Time now) {
  std::array<uint8_t, 16384> chunk;
  const ssize_t count = recv(connection.descriptor, chunk.data(), chunk.size(), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) {
    close_connection(number);
    return;
  }
  counters_.bytes_in += static_cast<size_t>(count);
  std::vector<uint8_t> &in = connection.in;
  in.insert(in.end(), chunk.begin(), chunk.begin() + count);
  size_t position = 0;
  while (in.size() - position >= kLengthBytes) {
    const size_t length = static_cast<size_t>(in[position]) | static_cast<size_t>(in[position + 1]) << 8;
    if (in.size() - position - kLengthBytes < length) break;
    counters_.frames_in++;
    agent_.input(base_ | number, {in.data() + position + kLengthBytes, length}, now);
    position += kLengthBytes + length;
    connection.heard_ns = now;
    connection.half_ns = 0;
  }
  in.erase(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(position));
  if (in.empty() || connection.half_ns != 0) return;
  connection.half_ns = now;
  next_check_ns_ = std::min(next_check_ns_, now + limits_.message_wait_ns);
}

void TcpLink::write(Endpoint endpoint, Time now) {
  const uint64_t number = endpoint & kLinkMask;
  const auto place = connections_.find(number);
  if (place == connections_.end()) {
    agent_.forget(endpoint);
    return;
  }
  Connection &connection = place->second;
  if (!put_bytes(number, connection)) return;  // makes room
  tide_frame_parts_t frame;
  for (size_t turn = 0;
       turn < kFramesPerConnection && connection.out.size() < kOutMaximum && agent_.next(endpoint, now, frame);
       turn++) {
    const size_t length = frame.head_bytes + frame.body_bytes + frame.tail_bytes;
    const size_t start = connection.out.size();
    connection.out.resize(start + kLengthBytes + length);
    connection.out[start] = static_cast<uint8_t>(length);
    connection.out[start + 1] = static_cast<uint8_t>(length >> 8);
    copy_frame(frame, connection.out.data() + start + kLengthBytes);
    agent_.sent(endpoint, now);
    counters_.frames_out++;
    counters_.bytes_out += kLengthBytes + length;
    sent_ = true;
  }
  put_bytes(number, connection);
}

bool TcpLink::flush(Time now) {
  if (now >= next_check_ns_) check(now);
  const bool sent = sent_;
  sent_ = false;
  return sent;
}

// False: the connection is no more.
bool TcpLink::put_bytes(uint64_t number, Connection &connection) {
  std::vector<uint8_t> &out = connection.out;
  if (!out.empty()) {
    const ssize_t count = send(connection.descriptor, out.data(), out.size(), MSG_NOSIGNAL);
    if (count < 0 && errno != EAGAIN && errno != EINTR) {
      close_connection(number);
      return false;
    }
    if (count > 0) out.erase(out.begin(), out.begin() + count);
  }
  const bool wants = !out.empty();
  if (wants != connection.watches_writable) poller_.rewatch(connection.descriptor, base_ | number, wants);
  connection.watches_writable = wants;
  return true;
}

void TcpLink::close_connection(uint64_t number) {
  const auto place = connections_.find(number);
  poller_.forget(place->second.descriptor);
  close(place->second.descriptor);
  connections_.erase(place);
  agent_.forget(base_ | number);
}

}  // namespace tide::agent
