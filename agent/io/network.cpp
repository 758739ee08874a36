// SPDX-License-Identifier: Apache-2.0
#include "io/network.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "tide/xrce.h"

namespace tide::agent {

// ---- sockets ----

namespace {

void set_option(int descriptor, int level, int option, int value) {
  setsockopt(descriptor, level, option, &value, sizeof value);
}

tide_socket_address_t socket_address(int family, const Origin &origin, uint16_t port) {
  tide_socket_address_t result;
  std::memset(&result, 0, sizeof result);
  result.any.sa_family = static_cast<sa_family_t>(family);
  if (family == AF_INET6) {
    std::memcpy(&result.v6.sin6_addr, origin.address.data(), sizeof result.v6.sin6_addr);
    result.v6.sin6_scope_id = origin.scope;
    result.v6.sin6_port = htons(port);
  } else {
    result.v4.sin_addr.s_addr = htonl(ipv4_of(origin.address).value_or(INADDR_ANY));
    result.v4.sin_port = htons(port);
  }
  return result;
}

Origin origin_of(const tide_socket_address_t &from) {
  if (from.any.sa_family != AF_INET6) return {mapped(ntohl(from.v4.sin_addr.s_addr)), 0};
  Origin origin{{}, from.v6.sin6_scope_id};
  std::memcpy(origin.address.data(), &from.v6.sin6_addr, sizeof origin.address);
  return origin;
}

// ADDRESS:PORT, with brackets around an address that contains a colon: [::1]:8888.
std::string with_port(const std::string &address, unsigned port) {
  const bool is_ipv6 = address.find(':') != std::string::npos;
  return (is_ipv6 ? "[" + address + "]" : address) + ":" + std::to_string(port);
}

// True for an address like fe80::1, which several interfaces may have, and also for one with the name of an interface
// (fe80::1%wlan0).
bool is_link_local(const std::string &text) {
  const std::optional<Address> address = parse_address(text.substr(0, text.find('%')));
  return address && (*address)[0] == 0xFE && ((*address)[1] & 0xC0) == 0x80;
}

// A step of opening a socket. `interface` is the IPv4 address of the interface in host order, or INADDR_ANY for all
// interfaces; it is unset for an IPv6 address.
using Step = bool (*)(int descriptor, std::optional<in_addr_t> interface);

// Creates a socket that is bound to `bound` (null: to `address`). `prepare` sets its options before the binding, and
// `finish` is called after it; if one of them returns false, errno gives the reason. If `port` is 0, any port is taken;
// `port` receives the port. Throws std::runtime_error with one line for the user.
int open_socket(const std::string &protocol, int type, const std::string &address, uint16_t &port, Step prepare,
                Step finish, const char *bound = nullptr) {
  const std::optional<Address> own = parse_address(address);
  if (is_link_local(address)) {
    throw std::runtime_error("--bind " + address + ": the address of one link; --bind :: serves it and all others");
  }
  if (!own) throw std::runtime_error("--bind " + address + ": not an IP address");
  const std::optional<in_addr_t> interface = *own == Address{} ? INADDR_ANY : ipv4_of(*own);
  const std::optional<Address> local_address = bound == nullptr ? own : parse_address(bound);
  const int family = ipv4_of(*local_address) ? AF_INET : AF_INET6;
  tide_socket_address_t local = socket_address(family, {*local_address, 0}, port);
  socklen_t length = sizeof local;
  const int descriptor = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0 && errno == EAFNOSUPPORT && family == AF_INET6) {
    throw std::runtime_error("--bind " + address + ": this machine has no IPv6; 0.0.0.0 stands for all its addresses");
  }
  if (descriptor < 0) throw std::system_error(errno, std::generic_category(), protocol + " " + address);
  if (family == AF_INET6) set_option(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, 0);  // :: also serves IPv4
  prepare(descriptor, interface);
  if (bind(descriptor, &local.any, tide_socket_address_bytes(&local)) == 0 &&
      getsockname(descriptor, &local.any, &length) == 0 && finish(descriptor, interface)) {
    port = ntohs(family == AF_INET6 ? local.v6.sin6_port : local.v4.sin_port);
    return descriptor;
  }
  const int reason = errno;
  close(descriptor);
  const std::string place = with_port(address, port);
  std::string text = protocol + " " + place + ": " + std::generic_category().message(reason);
  if (reason == EADDRINUSE) {
    text += "; ss -lp" + std::string(type == SOCK_STREAM ? "t" : "u") + "n sport = :" + std::to_string(port) +
            " names the process that has it, tide doctor --agent " + place + " says whether that is an agent";
  } else if (reason == EADDRNOTAVAIL) {
    text += ": this machine has no such address; 0.0.0.0 (:: with IPv6) stands for all its addresses";
  } else if (reason == EAFNOSUPPORT) {
    text += ": boards look for agents over IPv4; --bind an IPv4 address, or :: for all";
  } else if (reason == EACCES) {
    text += ": ports below 1024 need special rights; use 8888";
  }
  throw std::runtime_error(text);
}

}  // namespace

uint64_t Origins::number_of(const Origin &origin) {
  if (const std::optional<uint32_t> ipv4 = ipv4_of(origin.address)) return *ipv4;
  const auto known = numbers_.find(origin);
  if (known != numbers_.end()) return known->second;
  if (numbers_.size() >= most_) {  // a sender can forge any number of addresses
    const std::set<Host> used = agent_.hosts();
    std::erase_if(numbers_, [&](const auto &entry) {
      return !used.contains(base_ | entry.second) && origins_.erase(entry.second) != 0;
    });
    most_ = kLeast + 2 * numbers_.size();
  }
  origins_[next_] = origin;
  return numbers_[origin] = next_++;
}

std::optional<Origin> Origins::find(uint64_t number) const {
  if (number >> 32 == 0) return Origin{mapped(static_cast<uint32_t>(number)), 0};
  const auto found = origins_.find(number);
  return found == origins_.end() ? std::nullopt : std::optional(found->second);
}

// ---- messages that wait for the agent ----

namespace {

using Length = uint32_t;

// True for a sample on a best-effort stream, the only kind of message that its sender does not repeat.
bool is_lost_for_good(Bytes message) {
  tide_xrce_header_t header;
  return tide_xrce_get_header(message.data(), message.size(), &header) >= 0 && header.stream != TIDE_XRCE_STREAM_NONE &&
         !TIDE_STREAM_IS_RELIABLE(header.stream);
}

// True for a request for a session or about the agent. Answering it is expensive, and a client has only one such
// request at a time.
bool is_outside_sessions(Bytes message) {
  tide_xrce_header_t header;
  return tide_xrce_get_header(message.data(), message.size(), &header) >= 0 && tide_xrce_is_no_session(header.session);
}

}  // namespace

Backlog::Backlog(Deliver deliver, const BacklogLimits &limits, StandingOf standing_of, Clock clock)
    : deliver_(std::move(deliver)), limits_(limits), standing_of_(std::move(standing_of)), clock_(std::move(clock)) {}

void Backlog::push(Endpoint endpoint, Bytes message) {
  const size_t length = sizeof(Length) + message.size();
  const Standing standing = standing_of(endpoint);
  const bool is_stranger = standing == Standing::kStranger;
  auto place = lines_.find(endpoint);
  Class &own = class_of(standing);
  if (place == lines_.end()) {
    if (total_bytes_ + length > limits_.total_bytes || lines_.size() >= limits_.endpoints ||
        (is_stranger && own.turns.size() >= limits_.strangers)) {
      dropped_++;
      return;
    }
    // A class that had no messages must not have accumulated time for later.
    const Class &other = classes_[1 - static_cast<size_t>(standing)];
    if (own.turns.empty() && !other.turns.empty()) own.served_ns = std::max(own.served_ns, other.served_ns);
    place = lines_.try_emplace(endpoint).first;
    place->second.standing = standing;
    own.turns.push_back(endpoint);
  }
  Line &line = place->second;
  if (line.messages >= limits_.stranger_messages && (is_stranger || is_outside_sessions(message))) {
    dropped_++;
    return;
  }
  // The oldest best-effort samples are evicted until there is room. If the oldest message is of another kind, the new
  // message is dropped.
  while (line.messages != 0 && (line.messages >= limits_.messages || line.used() + length > limits_.bytes ||
                                total_bytes_ + length > limits_.total_bytes)) {
    dropped_++;
    if (!is_lost_for_good(front(line))) return;
    pop(line);
  }
  const auto count = static_cast<Length>(message.size());
  const size_t end = line.bytes.size();
  line.bytes.resize(end + length);
  std::memcpy(line.bytes.data() + end, &count, sizeof count);
  std::copy(message.begin(), message.end(), line.bytes.begin() + static_cast<std::ptrdiff_t>(end + sizeof count));
  line.messages++;
  total_bytes_ += length;
}

void Backlog::serve(size_t messages, size_t bytes, Time time_ns) {
  const Time began = now(), until = time_ns > INT64_MAX - began ? INT64_MAX : began + time_ns;
  const auto is_over = [&](Time time) { return messages == 0 || bytes == 0 || time >= until; };
  auto &[sessions, strangers] = classes_;
  while (!lines_.empty() && !is_over(now())) {
    const bool prefers_sessions = strangers.turns.empty() || sessions.served_ns <= strangers.served_ns;
    Class &served = !sessions.turns.empty() && prefers_sessions ? sessions : strangers;
    const Endpoint endpoint = served.turns.front();
    served.turns.pop_front();
    const auto place = lines_.find(endpoint);
    Line &line = place->second;
    const Time start = now();
    Time end = start;
    for (size_t left = limits_.messages_a_turn;
         left != 0 && line.messages != 0 && line.debt_ns + end - start < limits_.turn_ns && !is_over(end); left--) {
      const Bytes message = front(line);
      deliver_(endpoint, message);
      bytes -= std::min(bytes, message.size());
      messages--;
      pop(line);
      end = now();
    }
    line.debt_ns = std::max(line.debt_ns + end - start - limits_.turn_ns, -limits_.turn_ns);
    served.served_ns += (end - start) * (line.standing == Standing::kSession ? 1 : limits_.session_weight);
    if (line.messages == 0) {
      lines_.erase(place);
      continue;
    }
    line.standing = standing_of(endpoint);
    class_of(line.standing).turns.push_back(endpoint);
  }
}

Bytes Backlog::front(const Line &line) const {
  Length length = 0;
  std::memcpy(&length, line.bytes.data() + line.first, sizeof length);
  return {line.bytes.data() + line.first + sizeof length, length};
}

void Backlog::pop(Line &line) {
  const size_t length = sizeof(Length) + front(line).size();
  line.first += length;
  line.messages--;
  total_bytes_ -= length;
  if (line.first * 2 < line.bytes.size()) return;  // then each octet is moved at most once on average
  line.bytes.erase(line.bytes.begin(), line.bytes.begin() + static_cast<std::ptrdiff_t>(line.first));
  line.first = 0;
}

// ---- UDP ----

namespace {

constexpr size_t kFramesPerTurn = TIDE_DATAGRAMS_A_BATCH;  // of one endpoint, before it is the turn of the next one
constexpr size_t kReceiveRounds = 64;  // batches of datagrams that are read at once; further datagrams wait in the
                                       // kernel
// Messages that are processed before their results are sent and the kernel is read again. They are few, because the
// socket of a DDS reader usually holds 200 kB, and samples that are written faster than the reader takes them are lost.
constexpr size_t kMessagesPerTurn = 256, kBytesPerTurn = 32768;
constexpr Time kTimePerTurn = 2'000'000;
constexpr int kReceiveBytes = 8 * 1024 * 1024;
constexpr int kSendBytes = 4 * TIDE_DATAGRAM_SOCKET_BYTES;  // a fragmented message takes more of the socket's memory
                                                            // than its own length

bool prepare_udp(int descriptor, std::optional<in_addr_t>) {
  if (setsockopt(descriptor, SOL_SOCKET, SO_RCVBUFFORCE, &kReceiveBytes, sizeof kReceiveBytes) != 0) {
    set_option(descriptor, SOL_SOCKET, SO_RCVBUF, kReceiveBytes);
  }
  set_option(descriptor, SOL_SOCKET, SO_SNDBUF, kSendBytes);
  return true;
}

}  // namespace

UdpLink::UdpLink(uint8_t number, Agent &agent, Poller &poller, const std::string &address, uint16_t port)
    : Link(number, agent, poller),
      address_(address),
      port_(port),
      socket_(open_socket("udp", SOCK_DGRAM, address, port_, prepare_udp,
                          [](int, std::optional<in_addr_t>) { return true; })),
      in_storage_(size_t{TIDE_DATAGRAM_PLACES_MAXIMUM} * TIDE_DATAGRAM_BYTES_MAXIMUM),
      out_storage_(TIDE_DATAGRAM_BYTES_MAXIMUM + TIDE_DATAGRAM_BATCH_BYTES),
      origins_(agent, base_),
      backlog_(
          [this](Endpoint endpoint, Bytes message) {
            if (origins_.find(number_of(endpoint))) agent_.input(endpoint, message, now_);
          },
          {}, [this](Endpoint endpoint) { return standing_of(endpoint); }, monotonic_ns) {
  family_ = ipv4_of(*parse_address(address)) ? AF_INET : AF_INET6;
  tide_datagram_input_init(&in_, socket_, in_storage_.data(), in_storage_.size());
  tide_datagram_output_init(&out_, socket_, out_storage_.data(), out_storage_.size());
  poller_.watch(socket_, base_);
}

UdpLink::~UdpLink() { close(socket_); }

std::string UdpLink::describe() const { return "udp " + with_port(address_, port_); }

// An endpoint consists of the number of the origin and the port.
Peer UdpLink::peer(Endpoint endpoint) const {
  return {origins_.find(number_of(endpoint)).value_or(Origin{}).address, {}};
}

std::string UdpLink::name_of(Endpoint endpoint) const {
  return "udp " + with_port(text_of(peer(endpoint).address), endpoint & 0xFFFF);
}

void UdpLink::event(const Poller::Event &event, Time now) {
  now_ = now;
  behind_ = !backlog_.empty();
  turn_messages_ = turn_bytes_ = 0;
  const auto received = [](void *link, const uint8_t *bytes, size_t length, const tide_socket_address_t *from) {
    static_cast<UdpLink *>(link)->receive({bytes, length}, *from);
  };
  for (size_t round = 0; event.readable && round < kReceiveRounds; round++) {
    if (!tide_datagram_input_take(&in_, received, this)) break;
    behind_ = true;
  }
  if (!event.writable) return;
  send();  // the kernel now accepts frames again
  if (out_.blocked) return;
  const std::vector<Endpoint> endpoints = std::exchange(waiting_, {});
  for (const Endpoint endpoint : endpoints) write(endpoint, now);
  sent_ = sent_ || !endpoints.empty();
}

void UdpLink::receive(Bytes message, const tide_socket_address_t &from) {
  counters_.frames_in++;
  counters_.bytes_in += message.size();
  const uint16_t port = from.any.sa_family == AF_INET6 ? from.v6.sin6_port : from.v4.sin_port;
  const Endpoint endpoint = base_ | origins_.number_of(origin_of(from)) << 16 | ntohs(port);
  if (behind_ || standing_of(endpoint) == Standing::kStranger) {
    behind_ = true;
    backlog_.push(endpoint, message);
  } else {
    agent_.input(endpoint, message, now_);
    turn_bytes_ += message.size();
    behind_ = ++turn_messages_ >= kMessagesPerTurn || turn_bytes_ >= kBytesPerTurn;
  }
}

void UdpLink::turn(Time now) {
  now_ = now;
  if (backlog_.empty()) return;
  backlog_.serve(kMessagesPerTurn, kBytesPerTurn, kTimePerTurn);
  if (!backlog_.empty())
    sched_yield();  // lets DDS readers run first on a busy processor, which would otherwise lose the samples that are
                    // written next
  counters_.receive_dropped = backlog_.dropped();
}

Standing UdpLink::standing_of(Endpoint endpoint) const {
  return agent_.has_used_session(endpoint) ? Standing::kSession : Standing::kStranger;
}

void UdpLink::write(Endpoint endpoint, Time now) {
  const std::optional<Origin> origin = origins_.find(number_of(endpoint));
  if (!origin) {
    agent_.forget(endpoint);
    return;
  }
  const tide_socket_address_t to = socket_address(family_, *origin, static_cast<uint16_t>(endpoint));
  tide_frame_parts_t frame;
  for (size_t turn = 0; turn < kFramesPerTurn && !out_.blocked && agent_.next(endpoint, now, frame); turn++) {
    const size_t length = frame.head_bytes + frame.body_bytes + frame.tail_bytes;
    if (uint8_t *place = tide_datagram_output_place(&out_, length); place != nullptr) {
      tide_datagram_output_add(&out_, copy_frame(frame, place), &to);
      counters_.bytes_out += length;
    } else {
      counters_.send_dropped++;  // longer than any valid message
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
  return std::exchange(sent_, false);
}

void UdpLink::send() {
  const bool was_blocked = out_.blocked;
  const uint64_t sent = out_.sent, lost = out_.lost;
  tide_datagram_output_flush(&out_);
  counters_.frames_out += out_.sent - sent;
  counters_.send_dropped += out_.lost - lost;
  if (out_.blocked != was_blocked) poller_.rewatch(socket_, base_, out_.blocked);
}

// ---- TCP ----

namespace {

constexpr size_t kLengthBytes = 2;
// No further frame is chosen while more than this number of octets waits here and in the kernel.
constexpr size_t kOutMaximum = 16384;
constexpr int kUnsentBytes = 16384;
constexpr size_t kFramesPerConnection = 32;

bool prepare_tcp(int descriptor, std::optional<in_addr_t>) {
  set_option(descriptor, SOL_SOCKET, SO_REUSEADDR, 1);
  return true;
}

}  // namespace

TcpLink::TcpLink(uint8_t number, Agent &agent, Poller &poller, const std::string &address, uint16_t port,
                 const TcpLimits &limits)
    : Link(number, agent, poller),
      address_(address),
      port_(port),
      listener_(open_socket("tcp", SOCK_STREAM, address, port_, prepare_tcp,
                            [](int descriptor, std::optional<in_addr_t>) { return listen(descriptor, 16) == 0; })),
      limits_(limits),
      origins_(agent, base_) {
  poller_.watch(listener_, base_);
}

TcpLink::~TcpLink() {
  for (const auto &[number, connection] : connections_) close(connection.descriptor);
  close(listener_);
}

std::string TcpLink::describe() const { return "tcp " + with_port(address_, port_); }

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
  return {place == connections_.end() ? Address{} : place->second.origin.address, {}};
}

Host TcpLink::host_of(Endpoint endpoint) const {
  const auto place = connections_.find(endpoint & kLinkMask);
  return place == connections_.end() ? base_ : base_ | place->second.host;
}

std::string TcpLink::name_of(Endpoint endpoint) const { return "tcp " + text_of(peer(endpoint).address); }

void TcpLink::accept_connection(Time now) {
  tide_socket_address_t from{};
  socklen_t length = sizeof from;
  const int descriptor = accept4(listener_, &from.any, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (descriptor < 0 && (errno == EMFILE || errno == ENFILE)) {
    agent_.notices().tell("connections wait, because no file descriptor is free; raise the limit (ulimit -n)",
                          describe(), now);
    if (!paused_) poller_.forget(listener_);
    paused_ = true;
    next_check_ns_ = std::min(next_check_ns_, now + kSecond);
  }
  if (descriptor < 0) return;
  const uint64_t number = next_number_++;
  const Origin origin = origin_of(from);
  const char *reason = reason_to_refuse(origin, now);
  connections_[number] = {
      .descriptor = descriptor, .origin = origin, .host = origins_.number_of(origin), .heard_ns = now};
  if (reason == nullptr && !agent_.allows(base_ | number)) reason = "refused: no --allow names it";
  if (reason != nullptr) {
    agent_.notices().tell(reason, name_of(base_ | number), now);
    counters_.connections_refused++;
    close(descriptor);
    connections_.erase(number);
    return;
  }
  set_option(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(descriptor, IPPROTO_TCP, TCP_NOTSENT_LOWAT, kUnsentBytes);
  poller_.watch(descriptor, base_ | number);
  next_check_ns_ = std::min(next_check_ns_, now + limits_.session_wait_ns);
}

// The reason to refuse a connection from this origin; null if there is none.
const char *TcpLink::reason_to_refuse(const Origin &origin, Time now) {
  const auto same = std::count_if(connections_.begin(), connections_.end(),
                                  [&origin](const auto &entry) { return entry.second.origin == origin; });
  if (static_cast<size_t>(same) >= limits_.per_address && !make_room(origin, now)) {
    return "connection refused: this address has reached the limit of --max-tcp-per-address";
  }
  if (connections_.size() >= limits_.connections && !make_room({}, now)) {
    return "connection refused: clients use all connections; see --max-clients";
  }
  return nullptr;
}

// Closes one connection without a session; if an origin is given, one from this origin. Returns false if there is none.
bool TcpLink::make_room(std::optional<Origin> origin, Time now) {
  auto chosen = connections_.end();
  for (auto place = connections_.begin(); place != connections_.end(); ++place) {
    if ((origin && place->second.origin != *origin) || agent_.has_client(base_ | place->first)) continue;
    if (chosen == connections_.end() || place->second.heard_ns < chosen->second.heard_ns) chosen = place;
  }
  if (chosen == connections_.end()) return false;
  agent_.notices().tell("connection without a session closed, to make room for another one",
                        name_of(base_ | chosen->first), now);
  counters_.connections_timed_out++;
  close_connection(chosen->first);
  return true;
}

// Closes connections that have been without a session, or with an unfinished message, for too long.
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
    } else {  // a connection with a session is checked again, too, because its session may end
      next_check_ns_ = std::min({next_check_ns_, limit, now + limits_.session_wait_ns});
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
  if (!put_bytes(number, connection)) return;  // sends octets, which makes room for more
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
  return std::exchange(sent_, false);
}

// Sends as many octets as the kernel accepts. Returns false if the connection is closed.
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

// ---- discovery ----

namespace {

constexpr size_t kQuestionsPerTurn = 16;  // further requests wait in the kernel; boards repeat requests that the kernel
                                          // drops

bool prepare_group(int descriptor, std::optional<in_addr_t>) {
  set_option(descriptor, SOL_SOCKET, SO_REUSEADDR, 1);  // DDS uses the same port for another group
  set_option(descriptor, IPPROTO_IP, IP_PKTINFO, 1);
  return true;
}

bool join(int descriptor, in_addr interface) {
  ip_mreq group = {.imr_multiaddr = {}, .imr_interface = interface};
  inet_pton(AF_INET, TIDE_XRCE_DISCOVERY_GROUP, &group.imr_multiaddr);
  return setsockopt(descriptor, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof group) == 0;
}

bool join_group(int descriptor, std::optional<in_addr_t> interface) {
  if (!interface) {
    errno = EAFNOSUPPORT;  // the group and the addresses in answers are IPv4 addresses
    return false;
  }
  if (*interface != INADDR_ANY) return join(descriptor, {htonl(*interface)});
  ifaddrs *first = nullptr;
  if (getifaddrs(&first) != 0) return false;
  bool joined = false;
  for (const ifaddrs *one = first; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    joined = join(descriptor, reinterpret_cast<const sockaddr_in *>(one->ifa_addr)->sin_addr) || joined;
  }
  const int reason = errno;
  freeifaddrs(first);
  errno = reason;
  return joined;
}

// The address of this machine at which the request was received; 0.0.0.0 if unknown.
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
  if (received_at.s_addr != INADDR_ANY) return received_at;
  // If the multicast group has a separate route, the kernel does not report the receiving address. In this case, the
  // result is the address from which this machine sends to the board.
  const int descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in own{};
  socklen_t length = sizeof own;
  const bool known = connect(descriptor, reinterpret_cast<const sockaddr *>(&from), sizeof from) == 0 &&
                     getsockname(descriptor, reinterpret_cast<sockaddr *>(&own), &length) == 0;
  if (descriptor >= 0) close(descriptor);
  return known && own.sin_addr.s_addr != INADDR_ANY ? std::optional(own.sin_addr) : std::nullopt;
}

DiscoveryLink::DiscoveryLink(uint8_t number, Agent &agent, Poller &poller, const std::string &address, uint16_t port,
                             uint16_t served, const AccessList &access)
    : Link(number, agent, poller),
      access_(access),
      port_(port),
      served_(served),
      socket_(
          open_socket("discovery", SOCK_DGRAM, address, port_, prepare_group, join_group, TIDE_XRCE_DISCOVERY_GROUP)) {
  poller_.watch(socket_, base_);
}

DiscoveryLink::~DiscoveryLink() { close(socket_); }

std::string DiscoveryLink::describe() const { return "discovery " + std::to_string(port_); }

void DiscoveryLink::event(const Poller::Event &event, Time) {
  for (size_t turn = 0; event.readable && turn < kQuestionsPerTurn && answer_next(); turn++) {}
}

// Answers the next discovery request. Returns false if no request is waiting.
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
  const bool let_in = access_.allows({mapped(ntohl(from.sin_addr.s_addr)), {}}, std::nullopt);
  const std::optional<in_addr> own = asks && let_in ? address_told(interface_of(message), from) : std::nullopt;
  if (!own) return true;
  const tide_xrce_info_t info = {.related = {request.request, TIDE_XRCE_OBJECT_AGENT},
                                 .status = TIDE_XRCE_STATUS_OK,
                                 .implementation_status = 0,
                                 .vendor = kVendor,
                                 .version_major = kVersionMajor,
                                 .version_minor = kVersionMinor};
  tide_xrce_locator_t locator{};
  std::memcpy(locator.address, &*own, sizeof locator.address);
  locator.port = served_;
  std::array<uint8_t, TIDE_XRCE_DISCOVERY_ANSWER_BYTES> answer;
  const size_t length = tide_xrce_put_discovery_answer(answer.data(), &info, locator);
  const ssize_t sent =
      sendto(socket_, answer.data(), length, 0, reinterpret_cast<const sockaddr *>(&from), sizeof from);
  (sent == static_cast<ssize_t>(length) ? counters_.frames_out : counters_.send_dropped)++;
  return true;
}

}  // namespace tide::agent
