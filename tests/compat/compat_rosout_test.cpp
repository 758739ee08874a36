// SPDX-License-Identifier: Apache-2.0
// The publisher of the log: lines that arrive, lines that are refused and counted, the pool, several threads, and the
// orders in which objects may end.
#include <printf.h>
#include <rcutils/logging_macros.h>
#include <rmw_microros/error_handling.h>

#include <atomic>
#include <map>
#include <random>

#include "connected.h"
#include "tide/pools.h"
#include "tide/rclc_rosout.h"

namespace tide::compat::test::rosout_test {

struct Line {
  uint32_t seconds = 0, nanoseconds = 0, number = 0;
  int severity = 0;
  std::string name, text, file, function;
};

Line line_of(const Octets &bytes) {
  tide_cdr_t cdr;
  tide_cdr_reader(&cdr, bytes.data(), bytes.size(), false);
  const auto text = [&cdr] {
    size_t length = 0;
    const char *characters = tide_cdr_get_string(&cdr, &length);
    return characters == nullptr ? std::string() : std::string(characters, length);
  };
  Line line;
  line.seconds = tide_cdr_get_u32(&cdr);
  line.nanoseconds = tide_cdr_get_u32(&cdr);
  line.severity = tide_cdr_get_u8(&cdr);
  line.name = text();
  line.text = text();
  line.file = text();
  line.function = text();
  line.number = tide_cdr_get_u32(&cdr);
  EXPECT_EQ(cdr.status, TIDE_OK);
  EXPECT_EQ(tide_cdr_remaining(&cdr), 0u);
  return line;
}

class Rosout : public Connected {
 protected:
  void SetUp() override {
    Connected::SetUp();
    rcutils_logging_set_output_handler(nullptr);
    ASSERT_OK(tide_rclc_rosout_init(&node, RCUTILS_LOG_SEVERITY_UNSET));
  }
  void TearDown() override {
    sim::Port::current()->in_interrupt = false;
    rcutils_logging_set_output_handler(rcutils_logging_console_output_handler);
    rmw_uros_set_error_handling_callback(nullptr);
    Connected::TearDown();
  }
  std::vector<Line> lines() {
    std::vector<Line> all;
    for (const Octets &bytes : server.written("rt/rosout")) all.push_back(line_of(bytes));
    return all;
  }
  bool have_arrived(size_t count) {
    return eventually([&] { return server.written("rt/rosout").size() >= count; }, 10s);
  }
  bool settled() {
    return eventually([&] { return tide_session_is_idle(session(), 0); });
  }
  static uint32_t published() { return tide_rclc_rosout_get_counters().published; }
  static uint32_t lost() { return tide_rclc_rosout_get_counters().lost; }
};

TEST_F(Rosout, ALineArrivesWithAllItsMembers) {
  ASSERT_EQ(rmw_uros_sync_session(1000), RMW_RET_OK);
  const int64_t before_ns = rmw_uros_epoch_nanos();
  const uint32_t number = __LINE__ + 1;
  RCUTILS_LOG_WARN_NAMED("wheel", "turns %s at %d", "left", 7);
  RCUTILS_LOG_FATAL("%s", "");
  ASSERT_TRUE(have_arrived(2));
  const Line line = lines()[0];
  const int64_t stamp_ns = line.seconds * INT64_C(1000000000) + line.nanoseconds;
  EXPECT_GE(stamp_ns, before_ns);
  EXPECT_LE(stamp_ns, rmw_uros_epoch_nanos());
  EXPECT_EQ(line.severity, 30);
  EXPECT_EQ(line.name, "wheel");
  EXPECT_EQ(line.text, "turns left at 7");
  EXPECT_EQ(line.file, __FILE__);
  EXPECT_EQ(line.function, "TestBody");
  EXPECT_EQ(line.number, number);
  EXPECT_EQ(lines()[1].text, "");
  EXPECT_EQ(lines()[1].severity, 50);
  ASSERT_TRUE(settled());
  rcutils_log(nullptr, RCUTILS_LOG_SEVERITY_ERROR, nullptr, "of %s", "nowhere");
  ASSERT_TRUE(have_arrived(3));
  EXPECT_EQ(lines()[2].file, "");
  EXPECT_EQ(lines()[2].number, 0u);
  EXPECT_EQ(published(), 3u);
  EXPECT_EQ(lost(), 0u);
}

TEST_F(Rosout, TheDefaultLoggerHasTheNameOfTheNode) {
  RCUTILS_LOG_INFO("one");
  ASSERT_OK(tide_rclc_rosout_fini(&node));
  rcl_node_t other{};
  ASSERT_OK(rclc_node_init_default(&other, "name", "some/space", &support));
  ASSERT_OK(tide_rclc_rosout_init(&other, RCUTILS_LOG_SEVERITY_UNSET));
  RCUTILS_LOG_INFO("two");
  ASSERT_TRUE(have_arrived(2));
  EXPECT_EQ(lines()[0].name, "node");
  EXPECT_EQ(lines()[1].name, "some.space.name");
  EXPECT_EQ(lines()[1].seconds, 0u); /* the time is not known */
}

int handled;
void count(const rcutils_log_location_t *, int, const char *, rcutils_time_point_value_t, const char *format,
           va_list *arguments) {
  std::array<char, 100> text;
  std::vsnprintf(text.data(), text.size(), format, *arguments); /* uses up the va_list, as the publisher does */
  handled += std::string(text.data()) == "number 5";
}

TEST_F(Rosout, ItsSeverityHoldsForItAndTheLoggersForBoth) {
  handled = 0;
  rcutils_logging_set_output_handler(count);
  tide_rclc_rosout_set_severity(RCUTILS_LOG_SEVERITY_ERROR);
  RCUTILS_LOG_WARN("number %d", 5);
  RCUTILS_LOG_ERROR("number %d", 5);
  RCUTILS_LOG_DEBUG("number %d", 5);
  tide_rclc_rosout_set_severity(RCUTILS_LOG_SEVERITY_DEBUG);
  RCUTILS_LOG_DEBUG("number %d", 5);
  RCUTILS_LOG_INFO("number %d", 5);
  ASSERT_TRUE(have_arrived(2));
  EXPECT_EQ(handled, 3);
  EXPECT_EQ(published(), 2u);
  EXPECT_EQ(lines()[0].severity, 40);
  EXPECT_EQ(lines()[1].severity, 20);
  EXPECT_EQ(lines()[1].text, "number 5");
}

bool is_whole(const std::string &text) {
  size_t place = 0;
  while (place < text.size()) {
    const auto first = static_cast<uint8_t>(text[place]);
    const size_t bytes = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (first >= 0x80 && first < 0xC0) return false;
    if (place + bytes > text.size()) return false;
    place += bytes;
  }
  return true;
}

TEST_F(Rosout, ALongTextIsCutBehindAWholeCharacter) {
  const auto seed = static_cast<unsigned>(World::current().random.next());
  std::mt19937 random(seed);
  const std::array<std::string, 4> characters = {"a", "é", "€", "😀"};
  uint32_t cut = 0;
  std::vector<std::string> texts;
  for (int round = 0; round < 60; round++) {
    std::string text;
    const size_t bytes = TIDE_ROSOUT_TEXT_BYTES - 8 + random() % 12;
    while (text.size() < bytes) text += characters[random() % 4];
    texts.push_back(text);
    cut += text.size() >= TIDE_ROSOUT_TEXT_BYTES;
    RCUTILS_LOG_INFO("%s", text.c_str());
    ASSERT_TRUE(have_arrived(texts.size()));
    ASSERT_TRUE(settled()); /* because the longest text needs two nodes */
  }
  const std::vector<Line> all = lines();
  for (size_t i = 0; i < texts.size(); i++) {
    EXPECT_TRUE(is_whole(all[i].text)) << i;
    EXPECT_EQ(texts[i].compare(0, all[i].text.size(), all[i].text), 0) << i;
    EXPECT_GE(all[i].text.size(), std::min<size_t>(texts[i].size(), TIDE_ROSOUT_TEXT_BYTES - 4)) << i;
    EXPECT_LT(all[i].text.size(), static_cast<size_t>(TIDE_ROSOUT_TEXT_BYTES)) << i;
  }
  EXPECT_EQ(tide_rclc_rosout_get_counters().cut, cut);
}

TEST_F(Rosout, WhatFitsNoNodeOrCannotBeFormattedIsLost) {
  const std::string name(70'000, 'n');
  RCUTILS_LOG_INFO_NAMED(name.c_str(), "no place");
  const wchar_t unknown[] = {static_cast<wchar_t>(0x110000), 0}; /* there is no such character */
  RCUTILS_LOG_INFO("%ls", unknown);
  EXPECT_EQ(published(), 0u);
  EXPECT_EQ(lost(), 2u);
  RCUTILS_LOG_INFO("goes on");
  EXPECT_TRUE(have_arrived(1));
}

TEST_F(Rosout, AFloodLeavesHalfOfTheNodesToTheProgram) {
  rcl_publisher_t publisher = publisher_of(int32_type(), "number");
  ASSERT_OK(tide_rclc_publisher_set_wait_ms(&publisher, 0));
  server.mute(true); /* the agent acknowledges nothing */
  for (int i = 0; i < 100; i++) RCUTILS_LOG_INFO("line %d", i);
  const uint32_t kept = published();
  EXPECT_GE(kept, 1u);
  EXPECT_LE(kept, (tide_pools.data_node_count + 1u) / 2u);
  EXPECT_EQ(kept + lost(), 100u);
  std_msgs__msg__Int32 number = {1};
  for (int i = 0; i < tide_pools.data_node_count / 2 - 1; i++) EXPECT_OK(rcl_publish(&publisher, &number, nullptr));
  server.mute(false);
  ASSERT_TRUE(have_arrived(kept));
  ASSERT_TRUE(eventually([&] { return tide_session_is_idle(session(), 0); }));
  ASSERT_EQ(lines().size(), kept);
  for (uint32_t i = 0; i < kept; i++) EXPECT_EQ(lines()[i].text, "line " + std::to_string(i));
}

TEST_F(Rosout, LinesWithoutAnAgentArriveWhenItIsBack) {
  server.mute(true);
  ASSERT_TRUE(eventually([&] { return state() != TIDE_SESSION_READY; }, 10s));
  RCUTILS_LOG_ERROR("the agent is gone");
  RCUTILS_LOG_ERROR("still");
  EXPECT_EQ(published(), 2u);
  server.mute(false);
  ASSERT_TRUE(have_arrived(2));
  EXPECT_EQ(lines()[0].text, "the agent is gone");
  EXPECT_EQ(lines()[1].text, "still");
}

int errors;
TEST_F(Rosout, AFunctionForErrorsMayLogWhileAPublishFails) {
  rcl_publisher_t publisher = publisher_of(int32_type(), "number");
  ASSERT_OK(tide_rclc_publisher_set_wait_ms(&publisher, 0));
  errors = 0;
  rmw_uros_set_error_handling_callback([](auto, auto, auto, auto, auto) {
    errors++;
    RCUTILS_LOG_ERROR("publishing failed");
  });
  server.mute(true);
  std_msgs__msg__Int32 number = {1};
  while (rcl_publish(&publisher, &number, nullptr) == RCL_RET_OK) continue; /* the log has no node either */
  for (int i = 0; i < 5; i++) EXPECT_NE(rcl_publish(&publisher, &number, nullptr), RCL_RET_OK);
  EXPECT_EQ(errors, 6);
  EXPECT_EQ(lost(), 6u);
  server.mute(false);
  ASSERT_TRUE(eventually([&] { return tide_session_is_idle(session(), 0); }));
  EXPECT_NE(rcl_publish(&publisher, nullptr, nullptr), RCL_RET_OK);
  ASSERT_TRUE(have_arrived(1));
  EXPECT_EQ(lines()[0].text, "publishing failed");
}

TEST_F(Rosout, AHandlerOfLinesMayPublish) {
  static rcl_publisher_t publisher;
  publisher = {};
  ASSERT_OK(rclc_publisher_init_default(&publisher, &node, int32_type(), "number"));
  rcutils_logging_set_output_handler([](auto, auto, auto, auto, auto, auto) {
    const std_msgs__msg__Int32 number = {1};
    EXPECT_OK(rcl_publish(&publisher, &number, nullptr));
  });
  RCUTILS_LOG_INFO("both");
  EXPECT_TRUE(have_arrived(1));
  EXPECT_TRUE(eventually([&] { return server.written("rt/number").size() == 1; }));
}

rcl_node_t *node_within;
rcl_ret_t end_within;
int print_within(FILE *, const printf_info *, const void *const *) {
  end_within = tide_rclc_rosout_fini(node_within);
  RCUTILS_LOG_INFO("inner");
  return 0;
}
int no_arguments(const printf_info *, size_t, int *, int *) { return 0; }

/* The C library lets a program define conversions for printf. This one runs while the line is formatted, and logs a
 * line itself. */
TEST_F(Rosout, WithinALineItLogsAndDoesNotEnd) {
  ASSERT_EQ(register_printf_specifier('Y', print_within, no_arguments), 0);
  node_within = &node;
  const char *format = "outer%Y";
  rcutils_log(nullptr, RCUTILS_LOG_SEVERITY_INFO, "", format, 0);  // an unused argument
  ASSERT_EQ(register_printf_specifier('Y', nullptr, nullptr), 0);
  EXPECT_EQ(end_within, RCL_RET_ERROR);
  ASSERT_TRUE(have_arrived(2));
  EXPECT_EQ(lines()[0].text, "inner");
  EXPECT_EQ(lines()[1].text, "outer");
  ASSERT_OK(tide_rclc_rosout_fini(&node));
}

TEST_F(Rosout, InterruptsAreRefusedAndCounted) {
  sim::Port::current()->in_interrupt = true;
  RCUTILS_LOG_FATAL("from an interrupt");
  RCUTILS_LOG_FATAL("again");
  sim::Port::current()->in_interrupt = false;
  RCUTILS_LOG_INFO("from a thread");
  ASSERT_TRUE(have_arrived(1));
  EXPECT_EQ(lines()[0].text, "from a thread");
  EXPECT_EQ(tide_rclc_rosout_get_counters().refused_in_interrupt, 2u);
  EXPECT_EQ(lost(), 0u);
}

/* Of each thread, the lines for which there is a node arrive once and in order. The other lines are counted. */
TEST_F(Rosout, ThreadsLoseNothingUncounted) {
  constexpr int kThreads = 4, kLines = 300;
  std::vector<Thread> threads;
  for (int thread = 0; thread < kThreads; thread++) {
    threads.emplace_back([thread] {
      for (int i = 0; i < kLines; i++) {
        RCUTILS_LOG_INFO("%d %d", thread, i);
        if (i % 8 == 0) pass_time(1ms);
      }
    });
  }
  for (Thread &thread : threads) thread.join();
  const uint32_t kept = published();
  EXPECT_EQ(kept + lost(), static_cast<uint32_t>(kThreads * kLines));
  EXPECT_GE(kept, 1u);
  ASSERT_TRUE(have_arrived(kept));
  ASSERT_TRUE(eventually([&] { return tide_session_is_idle(session(), 0); }));
  std::map<int, int> last;
  for (const Line &line : lines()) {
    int thread = -1, number = -1;
    ASSERT_EQ(std::sscanf(line.text.c_str(), "%d %d", &thread, &number), 2) << line.text;
    EXPECT_GT(number, last.contains(thread) ? last[thread] : -1);
    last[thread] = number;
  }
  EXPECT_EQ(lines().size(), kept);
}

TEST_F(Rosout, ItEndsAndBeginsAgainWhileThreadsLog) {
  std::atomic<bool> stop = false;
  std::vector<Thread> threads;
  for (int thread = 0; thread < 3; thread++) {
    threads.emplace_back([&stop] {
      while (!stop) {
        RCUTILS_LOG_INFO("on and on");
        pass_time(50us);
      }
    });
  }
  for (int round = 0; round < 10; round++) {
    ASSERT_TRUE(eventually([&] { return tide_rclc_rosout_fini(&node) == RCL_RET_OK; }, 10s));
    const uint32_t before = published();
    pass_time(2ms);
    EXPECT_EQ(published(), before); /* no thread is logging any more */
    ASSERT_OK(tide_rclc_rosout_init(&node, RCUTILS_LOG_SEVERITY_UNSET));
  }
  stop = true;
  for (Thread &thread : threads) thread.join();
  for (const Line &line : lines()) ASSERT_EQ(line.text, "on and on");
}

TEST_F(Rosout, ThereIsOneAndItsEndsAreDefined) {
  EXPECT_REFUSED(tide_rclc_rosout_init(&node, 0), RCL_RET_ALREADY_INIT, TIDE_ERROR_EXISTS);
  rcl_node_t none{};
  EXPECT_REFUSED(tide_rclc_rosout_init(&none, 0), RCL_RET_INVALID_ARGUMENT, TIDE_ERROR_ARGUMENT);
  ASSERT_OK(tide_rclc_rosout_fini(&node));
  EXPECT_REFUSED(tide_rclc_rosout_fini(&node), RCL_RET_ERROR, TIDE_ERROR_STATE);
  RCUTILS_LOG_INFO("nobody hears it");
  ASSERT_OK(tide_rclc_rosout_init(&node, 0));
  RCUTILS_LOG_INFO("heard");
  ASSERT_TRUE(have_arrived(1));
  EXPECT_EQ(lines()[0].text, "heard");
}

/* The publisher of /rosout ends with its support, and the next publisher may then get its pool entry. */
TEST_F(Rosout, WithItsSupportItEndsToo) {
  ASSERT_OK(rclc_support_fini(&support));
  RCUTILS_LOG_INFO("without a support");
  connect();
  (void)publisher_of(int32_type(), "number");
  RCUTILS_LOG_INFO("must not go to the other topic");
  EXPECT_REFUSED(tide_rclc_rosout_fini(&node), RCL_RET_ERROR, TIDE_ERROR_STATE);
  ASSERT_OK(tide_rclc_rosout_init(&node, 0));
  RCUTILS_LOG_INFO("heard");
  ASSERT_TRUE(have_arrived(1));
  EXPECT_EQ(lines()[0].text, "heard");
  EXPECT_TRUE(server.written("rt/number").empty());
  EXPECT_EQ(published(), 1u);
}

TEST_F(Connected, WithoutAPlaceForAPublisherThereIsNoRosout) {
  std::vector<rcl_publisher_t> publishers(tide_pools.publisher_count);
  size_t count = 0;
  while (count < publishers.size() && rclc_publisher_init_default(&publishers[count], &node, int32_type(),
                                                                  ("t" + std::to_string(count)).c_str()) == RCL_RET_OK)
    count++;
  ASSERT_EQ(count, publishers.size());
  EXPECT_REFUSED(tide_rclc_rosout_init(&node, 0), RCL_RET_BAD_ALLOC, TIDE_ERROR_CAPACITY_PUBLISHERS);
  RCUTILS_LOG_INFO("to the handler only");
  ASSERT_OK(rcl_publisher_fini(&publishers[0], &node));
  EXPECT_OK(tide_rclc_rosout_init(&node, 0));
}

}  // namespace tide::compat::test::rosout_test
