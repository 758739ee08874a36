// SPDX-License-Identifier: Apache-2.0
// The engine's records of its runs: the trace and the measured times.
#include <gtest/gtest.h>
#include <time.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine_probe.h"

namespace tide_rcl {
namespace tide_rcl_engine_test_records {

std::string contents_of(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

struct Row {
  std::int64_t time_ns;
  std::uint32_t instance;
  std::uint16_t priority;
  int kind, detail;
};

template <typename Number> Number number_at(const std::string &bytes, std::size_t at) {
  Number number;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

// The records of all blocks of the trace (docs/internals/trace.md), in order, by the source of the block.
std::map<int, std::vector<Row>> rows_of(const std::string &trace, int place) {
  std::map<int, std::vector<Row>> rows;
  for (std::size_t at = 0; at < trace.size();) {
    EXPECT_EQ(trace.substr(at, 4), "TDTR");
    EXPECT_EQ(number_at<std::uint16_t>(trace, at + 8), place);
    const auto count = number_at<std::uint16_t>(trace, at + 6);
    auto &of_source = rows[number_at<std::uint16_t>(trace, at + 10)];
    at += TIDE_TRACE_BLOCK_HEADER_BYTES;
    for (int left = count; left > 0; left--, at += 16) {
      of_source.push_back({number_at<std::int64_t>(trace, at), number_at<std::uint32_t>(trace, at + 8),
                           number_at<std::uint16_t>(trace, at + 12), trace[at + 14], trace[at + 15]});
    }
  }
  return rows;
}

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = ::testing::TempDir() + "tide_rcl_XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string folder_;
};

TEST_F(Files, ATraceHasEachRunWithItsInstanceAndItsTimes) {
  EngineOptions options = lanes_of({0, 3});
  options.trace_file = folder_ + "/{pid}.trace";
  options.trace_place = 7;
  const std::string path = folder_ + "/" + std::to_string(getpid()) + ".trace";
  std::int64_t due_ns = 0;
  {
    Engine engine(options);
    const auto urgent = probe([] { Engine::set_trace_instance(41); }, TIDE_CALLBACK_SERVICE);
    const auto alarm = std::make_shared<Alarm>([] {});
    EngineOptions inner_options;
    inner_options.trace_file = options.trace_file;
    inner_options.trace_place = 7;
    Engine inner(inner_options);
    const auto nested = probe([] {});
    inner.add(nested, TIDE_PRIORITY(9, 0));
    const auto spinner = probe([&] {
      nested->notify();
      inner.spin_some();
    });
    engine.add(urgent, TIDE_PRIORITY(3, 1));
    engine.add(spinner, TIDE_PRIORITY(2, 2));
    engine.add(alarm, TIDE_PRIORITY(1, 0));
    due_ns = engine.now_ns();
    alarm->arm_at(due_ns, 1000000000);
    urgent->notify();
    spinner->notify(2);
    engine.spin_some();
  }
  const auto rows = rows_of(contents_of(path), 7);
  ASSERT_EQ(rows.size(), 3u) << "two lanes, and the engine within";
  const auto &low = rows.begin()->second;
  const auto &high = std::next(rows.begin())->second;
  ASSERT_EQ(high.size(), 3u);
  EXPECT_EQ(high[0].kind, TIDE_TRACE_READY);
  EXPECT_EQ(high[1].kind, TIDE_TRACE_START);
  EXPECT_EQ(high[1].detail, TIDE_CALLBACK_SERVICE);
  EXPECT_EQ(high[1].instance, 0u);
  EXPECT_EQ(high[2].kind, TIDE_TRACE_END);
  EXPECT_EQ(high[2].instance, 41u) << "as the callback says";
  EXPECT_EQ(high[2].priority, TIDE_PRIORITY(3, 1));
  EXPECT_LE(high[0].time_ns, high[1].time_ns);
  EXPECT_LE(high[1].time_ns, high[2].time_ns);
  std::string order;
  for (const Row &row : low) order += std::to_string(row.priority / 256) + "." + std::to_string(row.instance) + " ";
  EXPECT_EQ(order, "2.0 2.0 2.0 2.1 2.1 2.1 1.0 1.0 1.0 ");
  EXPECT_EQ(low[6].kind, TIDE_TRACE_RELEASE);
  EXPECT_EQ(low[6].time_ns, due_ns) << "the expiry, not the start";
  EXPECT_EQ(std::next(rows.begin(), 2)->second.size(), 6u);
}

TEST_F(Files, ALongTraceLosesNothingThatIsWritten) {
  EngineOptions options;
  options.trace_file = folder_ + "/long.trace";
  constexpr int kRuns = 5000;
  {
    Engine engine(options);
    const auto one = probe([] {});
    engine.add(one, TIDE_PRIORITY(1, 0));
    for (int round = 0; round < kRuns / 10; round++) {
      one->notify(10);
      engine.spin_all(std::chrono::seconds(10));
    }
  }
  const auto rows = rows_of(contents_of(options.trace_file), 0);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows.begin()->second.size(), 3u * kRuns);
  EXPECT_EQ(rows.begin()->second.back().instance, kRuns - 1u);
}

TEST_F(Files, MeasurementsByNameAreWrittenWhenTheEngineEnds) {
  EngineOptions options;
  options.measured_file = folder_ + "/lines.txt";
  std::string seen;
  {
    Engine engine(options);
    const auto busy = probe([] {
      timespec time{};
      do {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
      } while (time.tv_nsec % 2000000 < 1000000);
      std::this_thread::sleep_for(milliseconds(30));  // clock: a sleep, which must not count as execution
    });
    const auto nameless = probe([] {});
    const auto idle = probe([] {});
    busy->set_names({"brake/plan", "map/plan"});
    idle->set_names({"brake/never"});
    for (const auto &one : {busy, nameless, idle}) engine.add(one, TIDE_PRIORITY(1, 0));
    busy->notify(3);
    nameless->notify();
    engine.spin_some();
    seen = engine.measurement_lines();
    EXPECT_TRUE(engine.remove(busy)) << "its times stay";
  }
  const std::string lines = contents_of(options.measured_file);
  EXPECT_EQ(lines, seen);
  std::istringstream words(lines);
  for (const char *name : {"brake/plan", "map/plan"}) {
    std::string head, of;
    std::uint64_t count = 0, minimum = 0, maximum = 0, sum = 0;
    words >> head >> of >> count >> minimum >> maximum >> sum;
    EXPECT_EQ(head, "tide-execution");
    EXPECT_EQ(of, name);
    EXPECT_EQ(count, 3u);
    EXPECT_LE(minimum, maximum);
    EXPECT_LE(3 * minimum, sum);
    EXPECT_LE(sum, 3 * maximum);
    EXPECT_LT(minimum, 30000000u) << "sleeping is not execution";
  }
  std::string more;
  EXPECT_FALSE(words >> more) << more;
}

TEST_F(Files, WhatCannotBeWrittenIsSaidAtOnce) {
  EngineOptions options;
  options.trace_file = folder_ + "/none/file";
  try {
    Engine engine(options);
    FAIL() << "there is no such folder";
  } catch (const std::runtime_error &error) {
    EXPECT_NE(std::string(error.what()).find("/none/file: cannot be written"), std::string::npos) << error.what();
  }
}

}  // namespace tide_rcl_engine_test_records
}  // namespace tide_rcl
