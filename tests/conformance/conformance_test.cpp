// SPDX-License-Identifier: Apache-2.0
// Runs the behaviours with tide in virtual time, each in its own process, and compares them with those that
// lab/bench/behaviours.py has observed with the real agent and ROS 2 (lab/results/behaviours/tide.json). The core of
// the agent is the shipped one. DDS is a fake that passes each sample at once to all readers of its topic.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "agent_server.h"
#include "behaviours.h"

namespace tide::compat::test {
namespace {

// These behaviours depend on what the fake does not do: matching by QoS, and keeping samples for late readers.
const std::set<std::string> kOfDds = {"QoS, reliability", "QoS, durability", "QoS, depth"};

struct Surroundings {
  std::unique_ptr<AgentServer> agent;
  uint16_t port = 0;
  std::string topic;  // the topic that the peer observes
  int messages = 0;   // number of messages that the peer has received
  std::vector<Thread> threads;

  void hand_on(const agent::test::Written &sample) {
    if (!topic.empty() && sample.topic == "rt/" + topic) messages++;
    agent::Sample received{sample.payload, sample.big_endian, sample.identity, sample.number, 0};
    const bool is_request = sample.topic.starts_with("rq/");
    if (is_request) {  // the reply must have the client's identity and the request's number
      for (size_t octet = 0; octet < 8; octet++) {
        received.identity[octet] = static_cast<uint8_t>(sample.number >> (8 * octet));
      }
      received.request = 0;
    } else if (sample.topic.starts_with("rr/")) {
      for (size_t octet = 0; octet < 8; octet++) received.request |= uint64_t{sample.identity[octet]} << (8 * octet);
    }
    const auto sources = agent->middleware().sources;
    for (agent::test::FakeSource *source : sources) {
      if (source->topic.name == sample.topic) source->offer(received);
    }
  }
  // Lets requests that wait for a server be sent, because one may have appeared.
  void look_for_servers() {
    agent::test::FakeMiddleware &dds = agent->middleware();
    const auto serves = [](const auto *source) { return source->topic.name.starts_with("rq/"); };
    const bool served = std::any_of(dds.sources.begin(), dds.sources.end(), serves);
    if (served && !dds.served) agent->serve(true);
  }
};
Surroundings *around = nullptr;

// Reads the pairs of {"name": "what", ...}. The file has one pair in each line.
std::map<std::string, std::string> read_expected() {
  std::map<std::string, std::string> expected;
  std::ifstream file(TIDE_BEHAVIOURS);
  for (std::string line_of_file; std::getline(file, line_of_file);) {
    std::vector<std::string> texts;
    for (size_t at = 0; (at = line_of_file.find('"', at)) != std::string::npos; at++) {
      std::string text;
      for (at++; line_of_file[at] != '"'; at++) {
        if (line_of_file[at] == '\\') at++;
        text += line_of_file[at];
      }
      texts.push_back(text);
    }
    if (texts.size() == 2) expected[texts[0]] = texts[1];
  }
  return expected;
}

std::vector<const behaviour_t *> all_behaviours() {
  std::vector<const behaviour_t *> all;
  for (const behaviour_t *list : behaviour_lists) {
    for (; list->run != nullptr; list++) {
      if (!kOfDds.contains(list->name)) all.push_back(list);
    }
  }
  return all;
}

// Runs the behaviour in a process. Returns its observations, or how the process ended.
std::string seen_by(const behaviour_t &behaviour) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  std::cout << std::flush;
  const pid_t process = fork();
  if (process == 0) {
    dup2(ends[1], STDOUT_FILENO);
    Surroundings surroundings;
    around = &surroundings;
    start_agent();
    agent_port = strdup(surroundings.agent->port().c_str());
    allocator = rcl_get_default_allocator();
    try {
      behaviour.run();
      std::cout << line + strspn(line, " ,") << std::flush;
    } catch (const std::exception &error) {
      std::cout << line << " " << error.what() << std::flush;
    }
    _exit(0);
  }
  close(ends[1]);
  std::string seen_text;
  char buffer[4096];
  for (ssize_t count; (count = read(ends[0], buffer, sizeof buffer)) > 0;)
    seen_text.append(buffer, static_cast<size_t>(count));
  close(ends[0]);
  int status = 0;
  waitpid(process, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? seen_text : seen_text + " and ends the program";
}

class Behaviour : public ::testing::TestWithParam<const behaviour_t *> {};

TEST_P(Behaviour, IsAsItIsWithTheRealAgent) {
  const auto expected = read_expected();
  ASSERT_TRUE(expected.contains(GetParam()->name)) << "lab/bench/behaviours.py run";
  EXPECT_EQ(seen_by(*GetParam()), expected.at(GetParam()->name));
}

INSTANTIATE_TEST_SUITE_P(OfTide, Behaviour, ::testing::ValuesIn(all_behaviours()), [](const auto &one) {
  std::string name = one.param->name;
  for (char &letter : name) {
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '_';
  }
  return name;
});

}  // namespace
}  // namespace tide::compat::test

// ---- the world around the behaviours ----

using namespace tide::compat::test;

int64_t now_ms() { return now_ns() / 1'000'000; }
int64_t wall_ms() { return wall_ns() / 1'000'000; }
void sleep_ms(int64_t time_ms) { pass_time(std::chrono::milliseconds(time_ms)); }

thread_t start_thread(void *(*body)(void *), void *argument) {
  around->threads.emplace_back([=] { body(argument); });
  return static_cast<thread_t>(around->threads.size() - 1);
}
void join_thread(thread_t thread) { around->threads[static_cast<size_t>(thread)].join(); }

void require(bool holds, const char *step) {
  if (!holds) throw std::runtime_error(std::string("no result: ") + step + " failed");
}

void start_agent() {
  around->agent = std::make_unique<AgentServer>(AgentServer::Kind::kUdp, around->port);
  around->port = static_cast<uint16_t>(std::stoi(around->agent->port()));
  tide::agent::test::FakeMiddleware &dds = around->agent->middleware();
  dds.served = false;
  dds.on_written = [](const tide::agent::test::Written &sample) { around->hand_on(sample); };
  dds.on_source = [] { around->look_for_servers(); };
  sleep_ms(500);
}
void kill_agent() { around->agent.reset(); }

void start_peer(const char *topic) { around->topic = topic; }

int ask_peer(const char *question) {
  std::istringstream words(question);
  std::string word;
  int wanted = 0;
  words >> word >> wanted;
  if (word == "forget") around->messages = 0;
  if (word == "forget" || word == "messages") return around->messages;
  const auto count = [&] {
    if (around->agent == nullptr) return 0;
    const tide::agent::test::FakeMiddleware &dds = around->agent->middleware();
    if (word == "nodes") return dds.participants;
    const std::string name = "rt/" + around->topic;
    const auto is_topic = [&](const tide::agent::Topic *topic) { return topic->name == name; };
    const auto reads = [&](const auto *source) { return source->topic.name == name; };
    return static_cast<int>(word == "publishers"
                                ? std::count_if(dds.written_topics.begin(), dds.written_topics.end(), is_topic)
                                : std::count_if(dds.sources.begin(), dds.sources.end(), reads));
  };
  (void)eventually([&] { return count() == wanted; }, std::chrono::seconds(2));
  return count();
}
