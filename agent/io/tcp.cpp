// SPDX-License-Identifier: Apache-2.0
#include "io/tcp.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

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
constexpr size_t kFramesPerTurn = 32;

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
    throw std::system_error(reason, std::generic_category(), "tcp " + address + ":" + std::to_string(port));
  }
  port = ntohs(local.sin_port);
  return descriptor;
}

}  // namespace

TcpLink::TcpLink(uint8_t number, Agent &agent, Poller &poller, const std::string &address, uint16_t port,
                 size_t connections)
    : Link(number, agent, poller),
      listener_(open_listener(address, port)),
      address_(address),
      port_(port),
      connections_maximum_(connections) {
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
    accept_connection();
    return;
  }
  const auto place = connections_.find(number);
  if (place == connections_.end()) return;
  if (event.writable) write(event.token, now);
  if (event.readable && connections_.contains(number)) receive(number, place->second, now);
}

void TcpLink::accept_connection() {
  const int descriptor = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (descriptor < 0) return;
  if (connections_.size() >= connections_maximum_) {
    close(descriptor);
    counters_.send_dropped++;
    return;
  }
  const int on = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(descriptor, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsentBytes, sizeof kUnsentBytes);
  const uint64_t number = next_number_++;
  connections_[number].descriptor = descriptor;
  poller_.watch(descriptor, base_ | number);
}

void TcpLink::receive(uint64_t number, Connection &connection, Time now) {
  std::array<uint8_t, 16384> chunk;
  const ssize_t count = recv(connection.descriptor, chunk.data(), chunk.size(), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) {
    close_connection(number);
    return;
  }
  std::vector<uint8_t> &in = connection.in;
  in.insert(in.end(), chunk.begin(), chunk.begin() + count);
  size_t position = 0;
  while (in.size() - position >= kLengthBytes) {
    const size_t length = static_cast<size_t>(in[position]) | static_cast<size_t>(in[position + 1]) << 8;
    if (in.size() - position - kLengthBytes < length) break;
    counters_.frames_in++;
    agent_.input(base_ | number, {in.data() + position + kLengthBytes, length}, now);
    position += kLengthBytes + length;
  }
  in.erase(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(position));
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
       turn < kFramesPerTurn && connection.out.size() < kOutMaximum && agent_.next(endpoint, now, frame); turn++) {
    const size_t length = frame.head_bytes + frame.body_bytes + frame.tail_bytes;
    const size_t start = connection.out.size();
    connection.out.resize(start + kLengthBytes + length);
    connection.out[start] = static_cast<uint8_t>(length);
    connection.out[start + 1] = static_cast<uint8_t>(length >> 8);
    copy_frame(frame, connection.out.data() + start + kLengthBytes);
    agent_.sent(endpoint, now);
    counters_.frames_out++;
    sent_ = true;
  }
  put_bytes(number, connection);
}

bool TcpLink::flush(Time) {
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
