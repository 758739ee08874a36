// SPDX-License-Identifier: Apache-2.0
// The links of the POSIX port over real terminals and sockets, under a daemon that the test can look into.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>

#include "fake_daemon.hpp"
#include "line_process.hpp"

namespace {

using namespace std::chrono_literals;

Bytes random_message(std::mt19937_64 &random, size_t length) {
  Bytes message(length);
  for (auto &byte : message) byte = static_cast<uint8_t>(random());
  return message;
}

std::vector<Bytes> random_messages(uint64_t seed, size_t count, size_t most_bytes) {
  std::mt19937_64 random(seed);
  std::vector<Bytes> messages(count);
  for (auto &message : messages) message = random_message(random, 1 + random() % most_bytes);
  return messages;
}

Bytes frame_of(const Bytes &message, uint8_t source, uint8_t destination) {
  Bytes frame(TIDE_FRAMING_WORST_BYTES(message.size()));
  const int length = tide_framing_encode(frame.data(), frame.size(), source, destination, message.data(),
                                         message.size(), message.data(), 0);
  frame.resize(static_cast<size_t>(length));
  return frame;
}

Bytes frames_of(const std::vector<Bytes> &messages, uint8_t source = 1, uint8_t destination = 0) {
  Bytes all;
  for (const Bytes &message : messages) {
    const Bytes frame = frame_of(message, source, destination);
    all.insert(all.end(), frame.begin(), frame.end());
  }
  return all;
}

tide_link_address_t serial(const std::string &path, uint32_t baud = 115200) {
  tide_link_address_t address{};
  address.kind = TIDE_LINK_SERIAL;
  address.device = path.c_str();
  address.baud = baud;
  return address;
}

tide_link_address_t internet(tide_link_kind_t kind, uint16_t port) {
  tide_link_address_t address{};
  address.kind = kind;
  address.host = "127.0.0.1";
  address.port = port;
  return address;
}

struct Descriptor {
  explicit Descriptor(int opened = -1) : number(opened) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor &&other) noexcept : number(std::exchange(other.number, -1)) {}
  Descriptor &operator=(Descriptor &&other) noexcept {
    close();
    number = std::exchange(other.number, -1);
    return *this;
  }
  void close() {
    if (number >= 0) ::close(number);
    number = -1;
  }
  int number;
};

Bytes read_some(const Descriptor &from, size_t wanted, int silence_ms = 2000) {
  Bytes bytes;
  std::array<uint8_t, 4096> part;
  pollfd wait{from.number, POLLIN, 0};
  while (bytes.size() < wanted && poll(&wait, 1, silence_ms) > 0) {
    const ssize_t count = read(from.number, part.data(), std::min(part.size(), wanted - bytes.size()));
    if (count <= 0) break;
    bytes.insert(bytes.end(), part.begin(), part.begin() + count);
  }
  return bytes;
}

// The far end of a cable that ends here.
struct PseudoTerminal {
  PseudoTerminal() : master(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    EXPECT_EQ(grantpt(master.number), 0);
    EXPECT_EQ(unlockpt(master.number), 0);
    path = ptsname(master.number);
  }
  Descriptor master;
  std::string path;
};

class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("tide_link_" + std::to_string(getpid()))) {
    std::filesystem::create_directory(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file(const std::string &name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

void point(const std::string &link, const std::string &target) {
  std::filesystem::remove(link);
  std::filesystem::create_symlink(target, link);
}

int64_t median(std::vector<int64_t> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// ---- serial ----

TEST(SerialLink, ReportsTheEndOfATransmissionWhenItsLastByteHasLeftTheLine) {
  LineProcess line({});
  FakeDaemon client, agent;
  tide_link_address_t address = serial(line.a);
  address.thread_priority = 85;
  ASSERT_EQ(client.open(address), TIDE_OK);
  tide_link_address_t far = serial(line.b);
  far.agent_side = true;
  ASSERT_EQ(agent.open(far), TIDE_OK);
  std::vector<Bytes> up_messages, down_messages;
  std::mt19937_64 random(3);
  for (int index = 0; index < 100; index++) up_messages.push_back(random_message(random, 93));  // about 100 on the line
  for (int index = 0; index < 100; index++) down_messages.push_back(random_message(random, 20));
  for (const auto &message : up_messages) client.submit(message);
  for (const auto &message : down_messages) agent.submit(message);
  const Bytes up_bytes = frames_of(up_messages), down_bytes = frames_of(down_messages, 0, 1);
  ASSERT_TRUE(client.eventually([](const FakeDaemon &fake) { return fake.sent.size() == 100; }));
  ASSERT_TRUE(agent.eventually([&](const FakeDaemon &fake) { return fake.received.size() == up_bytes.size(); }));
  ASSERT_TRUE(client.eventually([&](const FakeDaemon &fake) { return fake.received.size() == down_bytes.size(); }));
  EXPECT_EQ(agent.received, up_bytes);
  EXPECT_EQ(client.received, down_bytes);
  EXPECT_EQ(client.address, TIDE_SERIAL_ADDRESS_CLIENT);
  EXPECT_EQ(agent.address, TIDE_SERIAL_ADDRESS_AGENT);
  std::vector<int64_t> late_ns;
  int64_t total_ns = 0;
  for (size_t index = 0; index < 100; index++) {
    const auto &sent = client.sent[index];
    const size_t bytes = frame_of(up_messages[index], 1, 0).size();
    late_ns.push_back(sent.completed_ns - sent.started_ns - tide_serial_duration_ns(bytes, 115200));
    EXPECT_GE(late_ns.back(), 0) << index;
    total_ns += late_ns.back();
  }
  std::printf("late by %lld us in the median, %lld us on average\n", static_cast<long long>(median(late_ns) / 1000),
              static_cast<long long>(total_ns / 100'000));
  EXPECT_LT(total_ns / 100, 1'000'000);
  EXPECT_EQ(client.wrong_completions, 0);
  EXPECT_EQ(client.counters().messages_sent, 100u);
  EXPECT_EQ(client.counters().bytes_sent, up_bytes.size());
}

TEST(SerialLink, APeerThatStopsReadingDelaysNobodyAndLosesNothing) {
  PseudoTerminal terminal;
  FakeDaemon client;
  ASSERT_EQ(client.open(serial(terminal.path, 4'000'000)), TIDE_OK);
  const auto messages = random_messages(7, 400, 400);
  int64_t longest_ns = 0;
  for (const auto &message : messages) {
    const int64_t before_ns = FakeDaemon::now_ns();
    client.submit(message);
    longest_ns = std::max(longest_ns, FakeDaemon::now_ns() - before_ns);
  }
  EXPECT_LT(longest_ns, 100'000'000);
  std::this_thread::sleep_for(300ms);
  const auto waiting = client.look<size_t>([](const FakeDaemon &fake) { return fake.waiting(); });
  EXPECT_GT(waiting, 100u);
  EXPECT_GT(client.counters().writes_partial, 0u);
  const Bytes expected = frames_of(messages);
  EXPECT_EQ(read_some(terminal.master, expected.size()), expected);
  EXPECT_TRUE(client.eventually([](const FakeDaemon &fake) { return fake.sent.size() == 400; }));
  EXPECT_EQ(client.wrong_completions, 0);
}

TEST(SerialLink, ComesBackByItselfAfterItsTerminalVanished) {
  const Folder folder;
  const std::string path = folder.file("robot");
  auto terminal = std::make_unique<PseudoTerminal>();
  point(path, terminal->path);
  FakeDaemon client;
  ASSERT_EQ(client.open(serial(path)), TIDE_OK);
  const Bytes message(20, 0x55), frame = frame_of(message, 1, 0);
  for (int round = 1; round <= 3; round++) {
    client.submit(message);
    EXPECT_EQ(read_some(terminal->master, frame.size()), frame);
    ASSERT_EQ(write(terminal->master.number, "hello", 5), 5);
    ASSERT_TRUE(client.eventually(
        [&](const FakeDaemon &fake) { return fake.received.size() == 5u * static_cast<size_t>(round); }));
    std::filesystem::remove(path);
    terminal.reset();
    ASSERT_TRUE(client.eventually([](const FakeDaemon &fake) { return !fake.attached; }));
    EXPECT_EQ(client.counters().cuts, static_cast<uint32_t>(round));
    std::this_thread::sleep_for(250ms);  // it tries in vain once
    terminal = std::make_unique<PseudoTerminal>();
    point(path, terminal->path);
    ASSERT_TRUE(client.eventually([](const FakeDaemon &fake) { return fake.attached; }));
  }
  EXPECT_EQ(client.counters().opens, 4u);
}

TEST(SerialLink, IsCutInTheMiddleOfAFrame) {
  const Folder folder;
  const std::string path = folder.file("robot");
  auto terminal = std::make_unique<PseudoTerminal>();
  point(path, terminal->path);
  FakeDaemon client;
  ASSERT_EQ(client.open(serial(path, 9600)), TIDE_OK);  // 200 bytes take 208 ms
  const Bytes message(193, 0x11), frame = frame_of(message, 1, 0);
  client.submit(message);
  EXPECT_EQ(read_some(terminal->master, 10).size(), 10u);
  terminal.reset();
  ASSERT_TRUE(client.eventually([](const FakeDaemon &fake) { return !fake.attached; }));
  EXPECT_EQ(client.counters().messages_lost, 1u);
  terminal = std::make_unique<PseudoTerminal>();
  point(path, terminal->path);
  EXPECT_EQ(read_some(terminal->master, frame.size()), frame);  // the daemon sends it again
  EXPECT_TRUE(client.eventually([](const FakeDaemon &fake) { return fake.sent.size() == 1; }));
  EXPECT_EQ(client.wrong_completions, 0);
}

TEST(SerialLink, IsClosedWhileFramesAreOnTheirWay) {
  for (int round = 0; round < 20; round++) {
    PseudoTerminal terminal;
    FakeDaemon client;
    ASSERT_EQ(client.open(serial(terminal.path, 1'000'000)), TIDE_OK);
    std::atomic<bool> stop = false;
    std::thread submitter([&] {
      while (!stop) {
        client.submit(Bytes(50, 0x33));
        std::this_thread::sleep_for(50us);
      }
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(round));
    client.close();
    stop = true;
    submitter.join();
    EXPECT_FALSE(client.attached);
    EXPECT_EQ(client.wrong_completions, 0);
  }
}

TEST(Links, RefuseWhatCannotBeOpened) {
  FakeDaemon client;
  EXPECT_EQ(client.open(serial("/dev/there_is_no_such_tty")), TIDE_ERROR_LINK);
  EXPECT_EQ(client.open(serial("/dev/null")), TIDE_ERROR_LINK);
  EXPECT_EQ(client.open(serial("/dev/null", 0)), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(client.open(internet(TIDE_LINK_UDP, 0)), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(client.open(internet(TIDE_LINK_TCP, 1)), TIDE_ERROR_LINK);
  EXPECT_EQ(client.open(internet(TIDE_LINK_NONE, 1)), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(client.open(internet(TIDE_LINK_CUSTOM, 1)), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_port_open_link(nullptr, nullptr), TIDE_ERROR_ARGUMENT);
  tide_link_counters_t counters;
  EXPECT_EQ(tide_port_link_counters(&client.session, &counters), TIDE_ERROR_NOT_FOUND);
  EXPECT_FALSE(client.attached);
  tide_port_close_link(&client.session);
  ASSERT_EQ(client.open(internet(TIDE_LINK_UDP, 9)), TIDE_OK);
  const tide_link_address_t again = internet(TIDE_LINK_UDP, 9);
  EXPECT_EQ(tide_port_open_link(&client.session, &again), TIDE_ERROR_EXISTS);
}

// ---- UDP ----

struct Server {
  explicit Server(int type, uint16_t wanted = 0) : socket(::socket(AF_INET, type | SOCK_CLOEXEC, 0)) {
    const int yes = 1;
    setsockopt(socket.number, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(wanted);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(socket.number, reinterpret_cast<sockaddr *>(&address), sizeof address), 0);
    if (type == SOCK_STREAM) {
      EXPECT_EQ(listen(socket.number, 1), 0);
    }
    socklen_t length = sizeof address;
    getsockname(socket.number, reinterpret_cast<sockaddr *>(&address), &length);
    port = ntohs(address.sin_port);
  }
  Bytes take(sockaddr_in *from = nullptr) {
    Bytes message(70000);
    pollfd wait{socket.number, POLLIN, 0};
    if (poll(&wait, 1, 2000) <= 0) return {};
    socklen_t length = sizeof(sockaddr_in);
    const ssize_t count = recvfrom(socket.number, message.data(), message.size(), 0, reinterpret_cast<sockaddr *>(from),
                                   from == nullptr ? nullptr : &length);
    message.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
    return message;
  }
  void give(const Bytes &message, const sockaddr_in &to) {
    EXPECT_EQ(
        sendto(socket.number, message.data(), message.size(), 0, reinterpret_cast<const sockaddr *>(&to), sizeof to),
        static_cast<ssize_t>(message.size()));
  }
  Descriptor socket;
  uint16_t port;
};

TEST(UdpLink, CarriesOneMessageADatagramBothWays) {
  Server server(SOCK_DGRAM);
  FakeDaemon client;
  ASSERT_EQ(client.open(internet(TIDE_LINK_UDP, server.port)), TIDE_OK);
  const auto messages = random_messages(1, 500, 512);
  sockaddr_in from{};
  for (const auto &message : messages) {
    client.submit(message);
    ASSERT_EQ(server.take(&from), message);
    server.give(message, from);
  }
  server.give(Bytes(513, 1), from);  // above the mtu
  server.give(Bytes(), from);
  server.give(Bytes(512, 2), from);
  ASSERT_TRUE(client.eventually([](const FakeDaemon &fake) { return fake.messages.size() == 501; }));
  EXPECT_TRUE(std::equal(messages.begin(), messages.end(), client.messages.begin()));
  EXPECT_EQ(client.messages.back(), Bytes(512, 2));
  EXPECT_EQ(client.counters().messages_oversize, 1u);
  EXPECT_TRUE(client.eventually([](const FakeDaemon &fake) { return fake.sent.size() == 500; }));
  EXPECT_EQ(client.wrong_completions, 0);
}

TEST(UdpLink, SendsABurstWithoutAWakeUpForEach) {
  Server server(SOCK_DGRAM);
  FakeDaemon client;
  ASSERT_EQ(client.open(internet(TIDE_LINK_UDP, server.port)), TIDE_OK);
  const auto polls = [&] { return client.look<int>([](const FakeDaemon &fake) { return fake.polls; }); };
  const int before = polls();
  for (int index = 0; index < 2000; index++) client.submit(Bytes(16, 1));
  ASSERT_TRUE(client.eventually([](const FakeDaemon &fake) { return fake.sent.size() == 2000; }));
  EXPECT_EQ(client.refused, 0);
  EXPECT_EQ(client.counters().messages_sent, 2000u);
  EXPECT_LT(polls() - before, 2001);
}

// A control message needs nobody else: the link's thread sleeps on, unless an answer may have to be asked for.
TEST(UdpLink, CompletesAControlMessageWhileItIsStarted) {
  Server server(SOCK_DGRAM);
  FakeDaemon client;
  ASSERT_EQ(client.open(internet(TIDE_LINK_UDP, server.port)), TIDE_OK);
  const Bytes control(8, 1), data(30, 2);  // the fake puts eight octets into the head
  const auto completed_in_start = [&] {
    return client.look<int>([](const FakeDaemon &fake) { return fake.completed_in_start; });
  };
  for (int index = 0; index < 20; index++) {
    client.submit(control);
    EXPECT_EQ(completed_in_start(), index + 1);
    EXPECT_EQ(server.take(), control);
  }
  client.submit(data);
  EXPECT_TRUE(client.eventually([](const FakeDaemon &fake) { return fake.sent.size() == 21; }));
  client.awaited = true;
  client.submit(control);
  EXPECT_TRUE(client.eventually([](const FakeDaemon &fake) { return fake.sent.size() == 22; }));
  EXPECT_EQ(completed_in_start(), 20);
  EXPECT_EQ(client.wrong_completions, 0);
  EXPECT_EQ(client.counters().messages_sent, 22u);
}

// Callers that wait receive by themselves or are told by the link's thread: nothing is lost, doubled or out of order.
TEST(UdpLink, LendsWhatItReceivesToCallersThatWait) {
  Server server(SOCK_DGRAM);
  FakeDaemon client;
  ASSERT_EQ(client.open(internet(TIDE_LINK_UDP, server.port)), TIDE_OK);
  client.submit(Bytes(10, 1));
  sockaddr_in from{};
  ASSERT_EQ(server.take(&from), Bytes(10, 1));
  const tide_platform_t *platform = tide_port_platform();
  tide_event_t event{};
  platform->event_init(platform->context, &event);
  client.on_message = [&] { platform->event_set(platform->context, &event); };
  const auto wait = [&](int64_t limit_ns) { return client.wait(&event, FakeDaemon::now_ns() + limit_ns); };
  const auto messages = random_messages(2, 2000, 512);
  for (const auto &message : messages) {
    server.give(message, from);
    ASSERT_EQ(wait(10'000'000'000), 1);
  }
  EXPECT_EQ(client.messages, messages);
  std::thread other([&] {  // neither the thread nor the caller: whatever happens in the program
    std::this_thread::sleep_for(5ms);
    platform->event_set(platform->context, &event);
  });
  EXPECT_EQ(wait(10'000'000'000), 1);
  other.join();
  EXPECT_EQ(wait(3'000'000), 0);
  EXPECT_EQ(wait(-1), 0);
}

TEST(UdpLink, MayBeClosedWhileACallerWaits) {
  const Server server(SOCK_DGRAM);
  FakeDaemon client;
  ASSERT_EQ(client.open(internet(TIDE_LINK_UDP, server.port)), TIDE_OK);
  const tide_platform_t *platform = tide_port_platform();
  tide_event_t event{};
  platform->event_init(platform->context, &event);
  std::atomic<int> result = -1;
  std::thread waiting([&] { result = client.wait(&event, FakeDaemon::now_ns() + 10'000'000'000); });
  std::this_thread::sleep_for(5ms);
  client.close();
  EXPECT_EQ(result, -1);  // it waits for its event, with or without the link
  platform->event_set(platform->context, &event);
  waiting.join();
  EXPECT_EQ(result, 1);
}

TEST(UdpLink, DoesNotMindThatNobodyListensYet) {
  uint16_t port;
  {
    const Server server(SOCK_DGRAM);
    port = server.port;
  }
  FakeDaemon client;
  ASSERT_EQ(client.open(internet(TIDE_LINK_UDP, port)), TIDE_OK);
  for (int index = 0; index < 20; index++) {
    client.submit(Bytes(10, 1));
    std::this_thread::sleep_for(2ms);
  }
  ASSERT_TRUE(client.eventually([](const FakeDaemon &fake) { return fake.sent.size() == 20; }));
  for (int index = 0; index < 200; index++) client.submit(Bytes(10, 1));  // each meets the error of the one before
  ASSERT_TRUE(client.eventually([](const FakeDaemon &fake) { return fake.sent.size() == 220; }));
  EXPECT_EQ(client.refused, 0);
  EXPECT_EQ(client.counters().messages_lost, 0u);
  EXPECT_EQ(client.counters().cuts, 0u);
  Server server(SOCK_DGRAM, port);
  client.submit(Bytes(10, 2));
  EXPECT_EQ(server.take(), Bytes(10, 2));
}

// ---- TCP ----

TEST(TcpLink, KeepsMessagesApartHoweverTheStreamIsCut) {
  Server server(SOCK_STREAM);
  FakeDaemon client;
  ASSERT_EQ(client.open(internet(TIDE_LINK_TCP, server.port)), TIDE_OK);
  const Descriptor peer(accept(server.socket.number, nullptr, nullptr));
  const auto messages = random_messages(5, 200, 512);
  Bytes stream;
  for (const auto &message : messages) {
    stream.push_back(static_cast<uint8_t>(message.size()));
    stream.push_back(static_cast<uint8_t>(message.size() >> 8));
    stream.insert(stream.end(), message.begin(), message.end());
    client.submit(message);
  }
  EXPECT_EQ(read_some(peer, stream.size()), stream);
  Bytes oversize{0x00, 0x10};  // 4,096 bytes, dropped
  oversize.resize(2 + 4096);
  stream.insert(stream.begin(), oversize.begin(), oversize.end());
  std::mt19937_64 random(6);
  for (size_t place = 0; place < stream.size();) {
    const size_t count = std::min<size_t>(stream.size() - place, 1 + random() % 700);
    ASSERT_EQ(write(peer.number, stream.data() + place, count), static_cast<ssize_t>(count));
    place += count;
    if (random() % 8 == 0) std::this_thread::sleep_for(1ms);
  }
  ASSERT_TRUE(client.eventually([&](const FakeDaemon &fake) { return fake.messages.size() == messages.size(); }));
  EXPECT_EQ(client.messages, messages);
  EXPECT_EQ(client.counters().messages_oversize, 1u);
}

TEST(TcpLink, ConnectsAgain) {
  auto server = std::make_unique<Server>(SOCK_STREAM);
  const uint16_t port = server->port;
  FakeDaemon client;
  ASSERT_EQ(client.open(internet(TIDE_LINK_TCP, port)), TIDE_OK);
  for (int round = 0; round < 3; round++) {
    Descriptor peer(accept(server->socket.number, nullptr, nullptr));
    client.submit(Bytes(3, 7));
    EXPECT_EQ(read_some(peer, 5), (Bytes{3, 0, 7, 7, 7}));
    ASSERT_TRUE(client.eventually([&](const FakeDaemon &fake) { return fake.waiting() == 0; }));
    server.reset();
    peer.close();
    ASSERT_TRUE(client.eventually([](const FakeDaemon &fake) { return !fake.attached; }));
    std::this_thread::sleep_for(250ms);
    server = std::make_unique<Server>(SOCK_STREAM, port);
    ASSERT_TRUE(client.eventually([](const FakeDaemon &fake) { return fake.attached; }));
  }
  EXPECT_EQ(client.counters().cuts, 3u);
}

// ---- custom ----

// What a program's transport does, for the test to steer.
struct Transport {
  bool opens = true, is_open = false, stuck = false;
  size_t takes_at_once = SIZE_MAX;
  std::vector<Bytes> written;
  std::deque<Bytes> arriving;
  int longest_timeout_ms = 0;
  std::atomic<int> inside = 0, collisions = 0;

  tide_custom_transport_t functions(bool framed) { return {this, framed, open, close, write, read}; }
  struct Guard {
    explicit Guard(Transport &owner) : transport(owner) {
      if (transport.inside++ != 0) transport.collisions++;
    }
    ~Guard() { transport.inside--; }
    Transport &transport;
  };
  static bool open(void *context) { return static_cast<Transport *>(context)->is_open = at(context).opens; }
  static bool close(void *context) {
    at(context).is_open = false;
    return true;
  }
  static size_t write(void *context, const uint8_t *bytes, size_t count, uint8_t *error) {
    const Guard guard(at(context));
    *error = at(context).stuck ? 1 : 0;
    if (at(context).stuck) return 0;
    count = std::min(count, at(context).takes_at_once);
    at(context).written.emplace_back(bytes, bytes + count);
    return count;
  }
  static size_t read(void *context, uint8_t *bytes, size_t count, int timeout_ms, uint8_t *) {
    const Guard guard(at(context));
    Transport &transport = at(context);
    transport.longest_timeout_ms = std::max(transport.longest_timeout_ms, timeout_ms);
    if (transport.arriving.empty()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(timeout_ms));
      return 0;
    }
    Bytes &first = transport.arriving.front();
    const size_t taken = std::min(count, first.size());
    std::copy_n(first.begin(), taken, bytes);
    transport.arriving.pop_front();
    return taken;
  }
  static Transport &at(void *context) { return *static_cast<Transport *>(context); }
  Bytes stream() const {
    Bytes all;
    for (const auto &piece : written) all.insert(all.end(), piece.begin(), piece.end());
    return all;
  }
};

struct CustomLink {
  CustomLink(FakeDaemon &fake, Transport &transport, bool framed) {
    const tide_custom_transport_t functions = transport.functions(framed);
    storage.resize(TIDE_CUSTOM_LINK_STORAGE_BYTES(fake.session.config.mtu));
    status = tide_custom_link_open(&link, &fake.session, &functions, storage.data(), storage.size());
  }
  ~CustomLink() { tide_custom_link_close(&link); }
  CustomLink(const CustomLink &) = delete;
  CustomLink &operator=(const CustomLink &) = delete;
  void run() { tide_custom_link_run(&link, 0); }
  std::vector<uint8_t> storage;
  tide_custom_link_t link;
  int status;
};

TEST(CustomLink, IsRunByWhoeverWaits) {
  for (const bool framed : {true, false}) {
    FakeDaemon client;
    Transport transport;
    CustomLink custom(client, transport, framed);
    ASSERT_EQ(custom.status, TIDE_OK);
    EXPECT_TRUE(transport.is_open);
    const auto messages = random_messages(9, 10, 300);
    for (const auto &message : messages) client.submit(message);
    EXPECT_TRUE(transport.written.empty());  // nothing but run touches the transport
    custom.run();
    EXPECT_EQ(client.sent.size(), 10u);
    if (framed) {
      EXPECT_EQ(transport.stream(), frames_of(messages));
    } else {
      EXPECT_EQ(transport.written, messages);
    }
    transport.arriving = {Bytes(5, 1), Bytes(6, 2)};
    custom.run();
    custom.run();
    EXPECT_EQ(client.received.size(), framed ? 11u : 0u);
    EXPECT_EQ(client.messages, framed ? std::vector<Bytes>{} : (std::vector<Bytes>{Bytes(5, 1), Bytes(6, 2)}));
    EXPECT_EQ(custom.link.counters.messages_sent, 10u);
    EXPECT_EQ(custom.link.counters.bytes_received, 11u);
    EXPECT_EQ(client.wrong_completions, 0);
  }
}

TEST(CustomLink, WaitsNoLongerThanItsDeadline) {
  FakeDaemon client;
  Transport transport;
  CustomLink custom(client, transport, true);
  const int64_t start_ns = FakeDaemon::now_ns();
  tide_custom_link_run(&custom.link, start_ns + 30'000'000);
  const int64_t taken_ns = FakeDaemon::now_ns() - start_ns;
  EXPECT_GE(taken_ns, 29'000'000);
  EXPECT_LT(taken_ns, 60'000'000);
  EXPECT_EQ(transport.longest_timeout_ms, 1);
  EXPECT_GT(client.polls, 5);
}

TEST(CustomLink, GoesOnWithWhatTheTransportDidNotTake) {
  FakeDaemon client;
  Transport transport;
  transport.takes_at_once = 7;
  CustomLink custom(client, transport, true);
  const auto messages = random_messages(4, 5, 100);
  for (const auto &message : messages) client.submit(message);
  for (int turn = 0; turn < 1000 && client.sent.size() < 5; turn++) custom.run();
  EXPECT_EQ(transport.stream(), frames_of(messages));
}

TEST(CustomLink, GivesUpAMessageThatIsNeverTaken) {
  for (const bool framed : {true, false}) {
    FakeDaemon client;
    Transport transport;
    transport.stuck = true;
    CustomLink custom(client, transport, framed);
    client.submit(Bytes(10, 1));
    client.submit(Bytes(10, 2));
    for (int turn = 0; turn < 10000 && client.sent.size() < 2; turn++) custom.run();
    EXPECT_EQ(custom.link.counters.messages_lost, 2u);
    transport.stuck = false;
    client.submit(Bytes(10, 3));
    custom.run();
    EXPECT_EQ(custom.link.counters.messages_sent, 1u);
  }
}

TEST(CustomLink, RefusesWhatDoesNotWork) {
  FakeDaemon client;
  Transport transport;
  transport.opens = false;
  CustomLink custom(client, transport, true);
  EXPECT_EQ(custom.status, TIDE_ERROR_LINK);
  EXPECT_FALSE(client.attached);
  custom.run();
  tide_custom_transport_t functions = transport.functions(true);
  uint8_t few[10];
  EXPECT_EQ(tide_custom_link_open(&custom.link, &client.session, &functions, few, sizeof few), TIDE_ERROR_TOO_LARGE);
  functions.read = nullptr;
  EXPECT_EQ(
      tide_custom_link_open(&custom.link, &client.session, &functions, custom.storage.data(), custom.storage.size()),
      TIDE_ERROR_ARGUMENT);
}

TEST(CustomLink, HasAThreadOnThisPort) {
  FakeDaemon client;
  Transport transport;
  const tide_custom_transport_t functions = transport.functions(false);
  tide_link_address_t address{};
  address.kind = TIDE_LINK_CUSTOM;
  address.custom = &functions;
  ASSERT_EQ(client.open(address), TIDE_OK);
  EXPECT_EQ(tide_port_pump(&client.session), nullptr);
  for (int index = 0; index < 50; index++) client.submit(Bytes(10, 1));
  ASSERT_TRUE(client.eventually([](const FakeDaemon &fake) { return fake.sent.size() == 50; }));
  EXPECT_EQ(client.counters().messages_sent, 50u);
  client.close();
  EXPECT_FALSE(transport.is_open);
  EXPECT_EQ(transport.collisions, 0);
  EXPECT_EQ(transport.written.size(), 50u);
}

// ---- all kinds ----

struct LinkThread {
  int policy, priority;
  bool operator==(const LinkThread &) const = default;
};

// Of this process's threads that bear the links' name.
std::vector<LinkThread> link_threads_now() {
  std::vector<LinkThread> found;
  for (const auto &entry : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(entry.path() / "comm");
    std::string name;
    std::getline(file, name);
    if (name != "tide link") continue;
    const pid_t thread = std::stoi(entry.path().filename());
    sched_param parameter{};
    const int policy = sched_getscheduler(thread);
    if (sched_getparam(thread, &parameter) == 0) found.push_back({policy, parameter.sched_priority});
  }
  return found;
}

// One that was joined is on the kernel's list a moment longer.
std::vector<LinkThread> link_threads(size_t count) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  std::vector<LinkThread> found = link_threads_now();
  while (found.size() != count && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    found = link_threads_now();
  }
  return found;
}

bool may_be_real_time() {
  bool may = false;
  std::thread([&may] {
    const sched_param parameter{1};
    may = pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameter) == 0;
  }).join();
  return may;
}

// Without the right to real-time priorities, which root has: every thread has rights of its own on Linux.
void without_rights(const std::function<void()> &action) {
  std::thread([&action] {
    rlimit before{};
    getrlimit(RLIMIT_RTPRIO, &before);
    const rlimit none{0, before.rlim_max};
    setrlimit(RLIMIT_RTPRIO, &none);
    const bool root = geteuid() == 0;
    if (root) {
      EXPECT_EQ(syscall(SYS_setresuid, -1, 65534, -1), 0);
    }
    action();
    if (root) {
      EXPECT_EQ(syscall(SYS_setresuid, -1, 0, -1), 0);
    }
    setrlimit(RLIMIT_RTPRIO, &before);
  }).join();
}

TEST(Links, RunTheirInterruptSideAtTheTopPriorityUnlessToldOtherwise) {
  const PseudoTerminal terminal;
  ASSERT_EQ(chmod(terminal.path.c_str(), 0666), 0);  // for the one without rights
  Transport transport;
  const tide_custom_transport_t functions = transport.functions(false);
  tide_link_address_t custom{};
  custom.kind = TIDE_LINK_CUSTOM;
  custom.custom = &functions;
  const bool may = may_be_real_time();
  const int top = sched_get_priority_max(SCHED_FIFO);
  for (tide_link_address_t address : {serial(terminal.path), custom}) {
    SCOPED_TRACE(static_cast<int>(address.kind));
    {
      FakeDaemon client;
      ASSERT_EQ(client.open(address), TIDE_OK);
      const LinkThread expected = may ? LinkThread{SCHED_FIFO, top} : LinkThread{SCHED_OTHER, 0};
      EXPECT_EQ(link_threads(1), std::vector{expected});
      EXPECT_EQ(client.counters().thread_priority, may ? top : 0);
      EXPECT_EQ(client.counters().thread_status, may ? TIDE_OK : TIDE_ERROR_NOT_PERMITTED);
    }
    without_rights([&] {  // quietly, but one can see it
      FakeDaemon client;
      ASSERT_EQ(client.open(address), TIDE_OK);
      EXPECT_EQ(link_threads(1), (std::vector{LinkThread{SCHED_OTHER, 0}}));
      EXPECT_EQ(client.counters().thread_priority, 0);
      EXPECT_EQ(client.counters().thread_status, TIDE_ERROR_NOT_PERMITTED);
      client.close();
      address.thread_priority = TIDE_LINK_PRIORITY_INHERIT;
      ASSERT_EQ(client.open(address), TIDE_OK);
      EXPECT_EQ(client.counters().thread_status, TIDE_OK);
    });
    FakeDaemon client;
    address.thread_priority = top + 1;
    EXPECT_EQ(client.open(address), TIDE_ERROR_ARGUMENT);
    EXPECT_TRUE(link_threads(0).empty());
  }
}

// Above those who submit it would be there after each datagram, and there would be no batches.
TEST(UdpLink, HasAThreadOfTheOpenersSchedulingUnlessToldOtherwise) {
  const Server datagrams(SOCK_DGRAM);
  FakeDaemon client;
  ASSERT_EQ(client.open(internet(TIDE_LINK_UDP, datagrams.port)), TIDE_OK);
  EXPECT_EQ(link_threads(1), (std::vector{LinkThread{SCHED_OTHER, 0}}));
  EXPECT_EQ(client.counters().thread_priority, 0);
  EXPECT_EQ(client.counters().thread_status, TIDE_OK);
}

TEST(Links, RunTheirInterruptSideOnAThreadOfThePriorityAskedFor) {
  const PseudoTerminal terminal;
  const Server datagrams(SOCK_DGRAM), connections(SOCK_STREAM);
  Transport transport;
  const tide_custom_transport_t functions = transport.functions(false);
  tide_link_address_t custom{};
  custom.kind = TIDE_LINK_CUSTOM;
  custom.custom = &functions;
  const LinkThread expected = may_be_real_time() ? LinkThread{SCHED_FIFO, 85} : LinkThread{SCHED_OTHER, 0};
  for (tide_link_address_t address : {serial(terminal.path), internet(TIDE_LINK_UDP, datagrams.port),
                                      internet(TIDE_LINK_TCP, connections.port), custom}) {
    SCOPED_TRACE(static_cast<int>(address.kind));
    FakeDaemon client;
    address.thread_priority = 85;
    ASSERT_EQ(client.open(address), TIDE_OK);
    const auto end = std::chrono::steady_clock::now() + 10s;
    while (link_threads_now() != std::vector{expected} && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(1ms);
    }
    EXPECT_EQ(link_threads(1), std::vector{expected});
    client.close();
    EXPECT_TRUE(link_threads(0).empty());
  }
}

}  // namespace
