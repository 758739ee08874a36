// SPDX-License-Identifier: Apache-2.0
#include "io/discovery.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <system_error>

#include "core/answers.h"
#include "tide/xrce.h"

namespace tide::agent {
namespace {

constexpr size_t kQuestionsPerTurn = 16;  // what asks more often waits, or is lost: it asks again

in_addr parse(const std::string &text) {
  in_addr address{};
  if (inet_pton(AF_INET, text.c_str(), &address) != 1) throw std::runtime_error("not an IPv4 address: " + text);
  return address;
}

bool join(int descriptor, in_addr interface) {
  const ip_mreq group = {.imr_multiaddr = parse(TIDE_XRCE_DISCOVERY_GROUP), .imr_interface = interface};
  return setsockopt(descriptor, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof group) == 0;
}

bool join_all(int descriptor) {
  ifaddrs *first = nullptr;
  if (getifaddrs(&first) != 0) return false;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs *)> owner(first, freeifaddrs);
  bool joined = false;
  for (const ifaddrs *one = first; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    joined = join(descriptor, reinterpret_cast<const sockaddr_in *>(one->ifa_addr)->sin_addr) || joined;
  }
  return joined;
}

// DDS uses the same port for another group, so the port is shared, and only the own group is heard.
int group_socket(const std::string &address, uint16_t &port) {
  const in_addr interface = parse(address);
  const int descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) throw std::system_error(errno, std::generic_category(), "discovery");
  const int yes = 1;
  setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  setsockopt(descriptor, IPPROTO_IP, IP_PKTINFO, &yes, sizeof yes);
  sockaddr_in local{};
  local.sin_family = AF_INET;
  local.sin_port = htons(port);
  local.sin_addr = parse(TIDE_XRCE_DISCOVERY_GROUP);
  socklen_t length = sizeof local;
  const bool opened = bind(descriptor, reinterpret_cast<sockaddr *>(&local), sizeof local) == 0 &&
                      getsockname(descriptor, reinterpret_cast<sockaddr *>(&local), &length) == 0 &&
                      (interface.s_addr == INADDR_ANY ? join_all(descriptor) : join(descriptor, interface));
  if (!opened) {
    const int reason = errno;
    close(descriptor);
    throw std::system_error(reason, std::generic_category(), "discovery on " + address + ":" + std::to_string(port));
  }
  port = ntohs(local.sin_port);
  return descriptor;
}

// The own address from which this machine sends to that one: where the kernel does not say which address a question
// came to, as behind a route of its own for the group. Unset: it sends nothing there.
std::optional<in_addr> own_address_towards(const sockaddr_in &to) {
  const int descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in own{};
  socklen_t length = sizeof own;
  const bool known = connect(descriptor, reinterpret_cast<const sockaddr *>(&to), sizeof to) == 0 &&
                     getsockname(descriptor, reinterpret_cast<sockaddr *>(&own), &length) == 0;
  if (descriptor >= 0) close(descriptor);
  return known && own.sin_addr.s_addr != INADDR_ANY ? std::optional(own.sin_addr) : std::nullopt;
}

// The own address on the interface that the question came in by.
in_addr interface_of(msghdr &message) {
  for (cmsghdr *item = CMSG_FIRSTHDR(&message); item != nullptr; item = CMSG_NXTHDR(&message, item)) {
    if (item->cmsg_level != IPPROTO_IP || item->cmsg_type != IP_PKTINFO) continue;
    in_pktinfo info{};
    std::memcpy(&info, CMSG_DATA(item), sizeof info);
    return info.ipi_spec_dst;
  }
  return {};
}

}  // namespace

std::optional<in_addr> address_told(const in_addr &received_at, const sockaddr_in &from) {
  return received_at.s_addr != INADDR_ANY ? std::optional(received_at) : own_address_towards(from);
}

DiscoveryLink::DiscoveryLink(uint8_t number, Agent &agent, Poller &poller, const std::string &address, uint16_t port,
                             uint16_t served, const AccessList &access)
    : Link(number, agent, poller), access_(access), socket_(group_socket(address, port)), port_(port), served_(served) {
  poller_.watch(socket_, base_);
}

DiscoveryLink::~DiscoveryLink() { close(socket_); }

std::string DiscoveryLink::describe() const { return "discovery " + std::to_string(port_); }

void DiscoveryLink::event(const Poller::Event &event, Time) {
  for (size_t turn = 0; event.readable && turn < kQuestionsPerTurn && answer_next(); turn++) {
  }
}

// False: nothing was there.
bool DiscoveryLink::answer_next() {
  std::array<uint8_t, 64> bytes;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(in_pktinfo))> control;
  sockaddr_in from{};
  iovec part = {bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_name = &from;
  message.msg_namelen = sizeof from;
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t count = recvmsg(socket_, &message, 0);
  if (count < 0) return false;
  counters_.frames_in++;
  tide_xrce_request_t request{};
  const bool asks = tide_xrce_get_discovery_question(bytes.data(), static_cast<size_t>(count), &request);
  const bool let_in = access_.allows({ntohl(from.sin_addr.s_addr), {}}, std::nullopt);
  if (!asks || !let_in) return true;
  // Nobody can reach 0.0.0.0, so it is never the answer.
  const std::optional<in_addr> own = address_told(interface_of(message), from);
  if (own) answer(from, *own, request.request);
  return true;
}

void DiscoveryLink::answer(const sockaddr_in &from, const in_addr &interface, uint16_t request) {
  const tide_xrce_info_t info = {.related = {request, TIDE_XRCE_OBJECT_AGENT},
                                 .status = TIDE_XRCE_STATUS_OK,
                                 .implementation_status = 0,
                                 .vendor = kVendor,
                                 .version_major = kVersionMajor,
                                 .version_minor = kVersionMinor};
  tide_xrce_locator_t locator{};
  std::memcpy(locator.address, &interface, sizeof locator.address);
  locator.port = served_;
  std::array<uint8_t, TIDE_XRCE_DISCOVERY_ANSWER_BYTES> bytes;
  const size_t count = tide_xrce_put_discovery_answer(bytes.data(), &info, locator);
  const ssize_t sent = sendto(socket_, bytes.data(), count, 0, reinterpret_cast<const sockaddr *>(&from), sizeof from);
  (sent == static_cast<ssize_t>(count) ? counters_.frames_out : counters_.send_dropped)++;
}

}  // namespace tide::agent
