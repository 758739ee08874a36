// SPDX-License-Identifier: Apache-2.0
// tide-line as a process: real terminals, real time.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "line_process.h"

namespace cable_test {

constexpr double kByte_ns = 1e10 / 115200;

int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

using Line = LineProcess;

class Terminal {
 public:
  explicit Terminal(const std::string &path) : descriptor_(open(path.c_str(), O_RDWR | O_NOCTTY)) {
    EXPECT_GE(descriptor_, 0) << path;
  }
  Terminal(const Terminal &) = delete;
  Terminal &operator=(const Terminal &) = delete;
  ~Terminal() { close(descriptor_); }

  void send(const std::vector<uint8_t> &bytes) {
    size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t count = write(descriptor_, bytes.data() + sent, bytes.size() - sent);
      ASSERT_GT(count, 0);
      sent += static_cast<size_t>(count);
    }
  }
  // Collects received bytes until `wanted` bytes are there, or none has arrived for this long.
  struct Piece {
    int64_t time_ns;
    size_t end;  // bytes so far
  };
  std::vector<uint8_t> receive(size_t wanted, int silence_ms = 1000, std::vector<Piece> *pieces = nullptr) {
    std::vector<uint8_t> bytes;
    std::array<uint8_t, 4096> part;
    pollfd wait{descriptor_, POLLIN, 0};
    while (bytes.size() < wanted && poll(&wait, 1, silence_ms) > 0) {
      const ssize_t count = read(descriptor_, part.data(), part.size());
      if (count <= 0) break;
      bytes.insert(bytes.end(), part.begin(), part.begin() + count);
      if (pieces != nullptr) pieces->push_back({now_ns(), bytes.size()});
    }
    return bytes;
  }

 private:
  int descriptor_;
};

std::vector<uint8_t> frames(uint64_t seed, size_t count, size_t bytes) {
  std::mt19937_64 random(seed);
  std::vector<uint8_t> all;
  for (size_t frame = 0; frame < count; frame++) {
    all.push_back(0x7E);
    for (size_t index = 1; index < bytes; index++) all.push_back(static_cast<uint8_t>(random() % 0x7E));
  }
  return all;
}

// Real-time priority keeps other programs from affecting the figures, if it is permitted.
void become_urgent() {
  sched_param parameters{};
  parameters.sched_priority = 70;
  sched_setscheduler(0, SCHED_FIFO, &parameters);
}

// Lateness of the most punctual piece between two points of the stream, relative to an ideal line that began at
// `start_ns`.
double least_late_ns(const std::vector<Terminal::Piece> &pieces, int64_t start_ns, size_t from, size_t until) {
  double least = 1e18;
  for (const auto &piece : pieces) {
    if (piece.end <= from || piece.end > until) continue;
    least = std::min(least, static_cast<double>(piece.time_ns - start_ns) - kByte_ns * static_cast<double>(piece.end));
  }
  return least;
}

TEST(Cable, CarriesBothDirectionsAtOnceExactlyAtItsBaudRate) {
  become_urgent();
  Line line({});
  Terminal a(line.a), b(line.b);
  const auto up = frames(1, 1000, 31), down = frames(2, 1000, 31);
  std::vector<Terminal::Piece> up_pieces, down_pieces;
  std::vector<uint8_t> up_received, down_received;
  const int64_t start_ns = now_ns();
  std::thread up_reader([&] { up_received = b.receive(up.size(), 3000, &up_pieces); });
  std::thread down_reader([&] { down_received = a.receive(down.size(), 3000, &down_pieces); });
  std::thread up_writer([&] { a.send(up); });
  b.send(down);
  up_writer.join();
  up_reader.join();
  down_reader.join();
  EXPECT_EQ(up_received, up);
  EXPECT_EQ(down_received, down);
  for (const auto *pieces : {&up_pieces, &down_pieces}) {
    ASSERT_FALSE(pieces->empty());
    for (const auto &piece : *pieces) {
      ASSERT_GE(static_cast<double>(piece.time_ns - start_ns), kByte_ns * static_cast<double>(piece.end));
    }
    // The line neither gains nor loses time from the first fifth of the stream to the last.
    const size_t fifth = up.size() / 5;
    const double drift_ns =
        least_late_ns(*pieces, start_ns, up.size() - fifth, up.size()) - least_late_ns(*pieces, start_ns, 0, fifth);
    EXPECT_NEAR(drift_ns, 0, kByte_ns * static_cast<double>(up.size()) / 100);
  }
  const std::string report = line.finish();
  EXPECT_EQ(Line::number(report, "a_to_b", "bytes"), up.size());
  EXPECT_EQ(Line::number(report, "b_to_a", "frames"), 1000u);
  std::printf("%s", report.c_str());
}

TEST(Cable, ABurstOfOneFrameTakesItsTimeAfterASilence) {
  become_urgent();
  Line line({"--trigger", "1"});
  Terminal a(line.a), b(line.b);
  std::vector<double> late_ns;
  for (int round = 0; round < 40; round++) {
    // clock: a pace; the line is idle in between
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    const int64_t start_ns = now_ns();
    a.send(frames(1, 1, 119));
    std::vector<Terminal::Piece> pieces;
    ASSERT_EQ(b.receive(119, 1000, &pieces).size(), 119u);
    for (const auto &piece : pieces) {
      ASSERT_GE(static_cast<double>(piece.time_ns - start_ns), kByte_ns * static_cast<double>(piece.end));
    }
    late_ns.push_back(static_cast<double>(pieces.back().time_ns - start_ns) - 119 * kByte_ns);
  }
  EXPECT_LT(*std::min_element(late_ns.begin(), late_ns.end()), 1e6);  // the other rounds show how busy the machine is
}

std::vector<uint8_t> through_a_lossy_line(const std::string &seed, std::string *report) {
  Line line({"--baud", "460800", "--frame-loss", "0.1", "--byte-loss-a-to-b", "0.001", "--seed", seed});
  Terminal a(line.a), b(line.b);
  std::vector<uint8_t> received;
  std::thread reader([&] { received = b.receive(SIZE_MAX, 500); });
  a.send(frames(5, 500, 40));
  reader.join();
  *report = line.finish();
  return received;
}

TEST(Cable, LossesAreThoseOfTheSeed) {
  std::string first, second, third;
  const auto one = through_a_lossy_line("42", &first), same = through_a_lossy_line("42", &second),
             other = through_a_lossy_line("43", &third);
  for (const auto &report : {first, second, third}) {
    ASSERT_EQ(Line::number(report, "a_to_b", "bytes_overrun"), 0u) << report;
  }
  EXPECT_EQ(one, same);
  EXPECT_NE(one, other);
  EXPECT_NEAR(static_cast<double>(Line::number(first, "a_to_b", "frames_dropped")), 50, 30);
  EXPECT_EQ(one.size() + Line::number(first, "a_to_b", "bytes_dropped"), 20'000u);
}

TEST(Cable, EndsMayBeClosedAndOpenedAgain) {
  const auto folder = std::filesystem::temp_directory_path() / ("tide_line_" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  const std::string link = folder / "robot";
  {
    Line line({"--link-a", link, "--baud", "1000000"});
    EXPECT_EQ(line.a, link);
    Terminal b(line.b);
    for (uint64_t round = 0; round < 5; round++) {
      Terminal a(link);
      const auto frame = frames(round, 3, 50);
      a.send(frame);
      EXPECT_EQ(b.receive(frame.size()), frame);
      b.send(frame);
      EXPECT_EQ(a.receive(frame.size()), frame);
    }
    line.finish();
  }
  EXPECT_FALSE(std::filesystem::is_symlink(link));
  std::filesystem::remove_all(folder);
}

TEST(Cable, IsCutAndJoinedBySignal) {
  Line line({"--baud", "1000000"});
  Terminal a(line.a), b(line.b);
  const auto frame = frames(1, 1, 20);
  line.set_plugged(false);
  a.send(frame);
  EXPECT_TRUE(b.receive(1, 100).empty());
  uint64_t cut = 0;
  for (int time = 0; time < 100 && cut != 20; time++) {
    line.tell(SIGUSR1);
    cut = Line::number(line.line(), "a_to_b", "bytes_cut");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // clock: a pace
  }
  EXPECT_EQ(cut, 20u);
  line.set_plugged(true);
  a.send(frame);
  EXPECT_EQ(b.receive(frame.size()), frame);
}

TEST(Cable, IsCutForAWhile) {
  Line line({"--baud", "1000000", "--cut-after", "0.0", "--cut-for", "1.0"});
  Terminal a(line.a), b(line.b);
  a.send(frames(1, 1, 20));
  EXPECT_TRUE(b.receive(1, 50).empty());
  std::this_thread::sleep_for(std::chrono::milliseconds(1200));  // clock: --cut-for is in real time
  a.send(frames(1, 1, 20));
  EXPECT_EQ(b.receive(20).size(), 20u);
}

TEST(Cable, AnIdleLineUsesNoProcessorTime) {
  Line line({});
  line.tell(SIGUSR1);
  const std::string before = line.line();
  std::this_thread::sleep_for(std::chrono::seconds(1));  // clock: a busy machine only makes the line do less
  const std::string after = line.finish();
  EXPECT_LT(Line::number(after, "a_to_b", "cpu_us") - Line::number(before, "a_to_b", "cpu_us"), 5000u);
}

TEST(Cable, RefusesWhatItDoesNotUnderstand) {
  for (const char *words :
       {"--baud 0", "--baud x", "--frame-loss 1.5", "--byte-loss -1", "--seed", "--nonsense", "--link-a /", "extra"}) {
    const std::string command = std::string(TIDE_LINE) + " " + words + " >/dev/null 2>&1";
    const int status = std::system(command.c_str());
    EXPECT_TRUE(WIFEXITED(status) && (WEXITSTATUS(status) == 2 || WEXITSTATUS(status) == 1)) << words;
  }
}

}  // namespace cable_test
