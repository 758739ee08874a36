// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <random>

#include "analysis/model/json.h"
#include "analysis/model/system_file.h"
#include "analysis/system/results_file.h"

namespace tide::analysis {
namespace analysis_file_test {

// A and B of the worked examples on two cores, and a path to a third chain.
const std::string example = R"({
  "executors": [{"name": "main", "policy": "priority", "threads": 2},
                {"name": "far", "policy": "default", "lanes": [{"budget_ns": 4, "period_ns": 5}]}],
  "groups": [],
  "chains": [
    {"name": "A", "executor": "main", "priority": 2, "period_ns": 20, "deadline_ns": 20,
     "callbacks": [{"name": "a1", "execution_ns": 1}, {"name": "a2", "execution_ns": 2}]},
    {"name": "B \"quoted\"", "executor": "main", "priority": 1, "period_ns": 20, "deadline_ns": 20, "timer": true,
     "callbacks": [{"name": "b1", "execution_ns": 3}, {"name": "b2", "execution_ns": 4}]},
    {"name": "C", "executor": "far", "priority": 1, "period_ns": 20, "deadline_ns": 10,
     "callbacks": [{"name": "c", "execution_ns": 2}]}],
  "paths": [{"name": "all", "segments": ["A", "C"], "delays_ns": [3], "deadline_ns": 30}]
})";

std::string replaced(std::string text, const std::string &from, const std::string &to) {
  const size_t place = text.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  return text.replace(place, from.size(), to);
}

std::vector<std::string> errors_of(const std::string &from, const std::string &to) {
  SystemFile file = read_system(replaced(example, from, to));
  if (file.errors.empty()) file.errors = System::build(file.description).errors;
  return file.errors;
}

using Errors = std::vector<std::string>;

TEST(SystemFile, ReadsTheExample) {
  const SystemFile file = read_system(example);
  ASSERT_EQ(file.errors, Errors{});
  const Built built = System::build(file.description);
  ASSERT_EQ(built.errors, Errors{});
  EXPECT_EQ(built.system->executors()[0].lanes().size(), 2U);
  EXPECT_TRUE(built.system->executors()[0].chains()[1].timer);
  EXPECT_EQ(built.system->executors()[1].policy(), Policy::ready_set);
  EXPECT_EQ(built.system->executors()[1].lanes()[0], (Lane{4, 5}));
  const SystemResult result = analyse_system(*built.system);
  EXPECT_EQ(result.executors[0].chains[0].response_ns, 4);
  EXPECT_EQ(result.executors[0].chains[1].response_ns, 10);
  EXPECT_EQ(result.paths[0].response_ns, 4 + 3 + *result.executors[1].chains[0].response_ns);
}

TEST(SystemFile, ErrorsNameTheEntry) {
  EXPECT_EQ(errors_of("\"period_ns\": 20", "\"perod_ns\": 20"), (Errors{"chain 'A': 'perod_ns' is unknown"}));
  EXPECT_EQ(errors_of("\"priority\": 2, ", ""), (Errors{"chain 'A': 'priority' is missing"}));
  EXPECT_EQ(errors_of("\"execution_ns\": 4", "\"execution_ns\": \"4\""),
            (Errors{"chain 'B \"quoted\"', callback 'b2': 'execution_ns' must be an integer"}));
  EXPECT_EQ(errors_of("\"threads\": 2", "\"threads\": -2"),
            (Errors{"executor 'main': 'threads' must be from 1 to 1024"}));
  EXPECT_EQ(errors_of("\"threads\": 2", "\"threads\": 0"), (Errors{"executor 'main': has no lane"}));
  EXPECT_EQ(errors_of("\"policy\": \"priority\"", "\"policy\": \"urgent\""),
            (Errors{"executor 'main': 'policy' must be \"priority\", \"default\", \"wait_set\" or \"any_order\""}));
  EXPECT_EQ(errors_of("[3]", "[true]").front(), "path 'all': 'delays_ns' must be integers");
  EXPECT_EQ(errors_of("\"name\": \"c\", \"execution_ns\": 2", "\"name\": \"c\""),
            (Errors{"chain 'C', callback 'c': execution_ns is 0, but must be at least 1"}));
  EXPECT_EQ(errors_of("\"threads\": 2", "\"threads\": 2.5"), (Errors{"line 2: numbers must be integers"}));
}

TEST(SystemFile, DamagedTextNeverDoesHarm) {
  std::mt19937_64 random(11);
  int rejected = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = example;
    for (uint64_t change = 1 + random() % 4; change > 0; --change) {
      const size_t place = random() % text.size();
      if (random() % 2 == 0) {
        text.erase(place, 1 + random() % 9);
      } else {
        text[place] = "{}[]\",:\\u0019-etn \x01\xff"[random() % 20];
      }
      if (text.empty()) text = " ";
    }
    const SystemFile file = read_system(text);
    if (!file.errors.empty() || !System::build(file.description).system) ++rejected;
  }
  EXPECT_GT(rejected, 1000);
}

TEST(Json, StringsSurvive) {
  std::string error;
  const std::string text = "a \"b\" \\ \n \x02 \xc3\xa4";
  const auto back = parse_json(json_string(text), error);
  ASSERT_TRUE(back.has_value()) << error;
  EXPECT_EQ(std::get<std::string>(back->value), text);
  const auto escaped = parse_json(R"("\u00e4\u20ac\t")", error);
  ASSERT_TRUE(escaped.has_value());
  EXPECT_EQ(std::get<std::string>(escaped->value), "\xc3\xa4\xe2\x82\xac\t");
}

TEST(Json, SaysWhereItWentWrong) {
  std::string error;
  for (const auto &[text, expected] :
       std::vector<std::pair<std::string, std::string>>{{"{\"a\": 1\n \"b\": 2}", "line 2: a ',' or '}' is missing"},
                                                        {"[1, 2", "line 1: a ',' or ']' is missing"},
                                                        {"{\"a\": 1, \"a\": 2}", "line 1: a name occurs twice"},
                                                        {"[1] 2", "line 1: something follows the value"},
                                                        {"99999999999999999999", "line 1: the number is too large"},
                                                        {"\"abc", "line 1: a string does not end"},
                                                        {"\"\\x\"", "line 1: an unknown escape in a string"},
                                                        {"\"\\u12\"", "line 1: an unknown escape in a string"},
                                                        {std::string(100, '['), "line 1: nested too deeply"},
                                                        {"", "line 1: the text ends early"}}) {
    EXPECT_FALSE(parse_json(text, error).has_value()) << text;
    EXPECT_EQ(error, expected) << text;
  }
}

// Runs the program on a text; what it printed, and its exit code.
std::pair<std::string, int> run(const std::string &arguments, const std::string &input) {
  // Tests of this file run side by side, each in a process of its own.
  const std::string name = testing::TempDir() + "tide_analysis_input_" + std::to_string(getpid()) + ".json";
  std::ofstream(name) << input;
  FILE *pipe = popen((std::string(TIDE_ANALYSIS) + " " + arguments + " < " + name + " 2>&1").c_str(), "r");
  std::string output;
  for (int letter = fgetc(pipe); letter != EOF; letter = fgetc(pipe)) output += static_cast<char>(letter);
  const int status = pclose(pipe);
  std::remove(name.c_str());
  return {output, WEXITSTATUS(status)};
}

const Json &member(const Json &object, const std::string &name) { return std::get<JsonObject>(object.value).at(name); }

TEST(Program, PrintsBoundsAsJson) {
  const auto [output, code] = run("-", example);
  EXPECT_EQ(code, 0) << output;
  std::string error;
  const auto json = parse_json(output, error);
  ASSERT_TRUE(json.has_value()) << error << '\n' << output;
  const auto &chains = std::get<JsonArray>(member(*json, "chains").value);
  ASSERT_EQ(chains.size(), 3U);
  EXPECT_EQ(std::get<std::string>(member(chains[1], "chain").value), "B \"quoted\"");
  EXPECT_EQ(std::get<int64_t>(member(chains[1], "response_ns").value), 10);
  EXPECT_EQ(std::get<int64_t>(member(chains[1], "slack_ns").value), 10);
  EXPECT_EQ(std::get<int64_t>(member(member(chains[1], "breakdown"), "precedence_ns").value), 6);
  EXPECT_TRUE(std::get<bool>(member(*json, "guaranteed").value));
}

TEST(Program, ExitCodesSayWhatHappened) {
  EXPECT_EQ(run("-", replaced(example, "\"deadline_ns\": 10", "\"deadline_ns\": 1")).second, 1);
  const auto [output, code] = run("-", replaced(example, "\"period_ns\": 20", "\"period_ns\": 0"));
  EXPECT_EQ(code, 2);
  EXPECT_NE(output.find("chain 'A': period_ns is 0"), std::string::npos) << output;
  EXPECT_EQ(run("--nonsense", "").second, 2);
  EXPECT_EQ(run("", "").second, 2);
  EXPECT_EQ(run("nowhere.json", "").second, 2);
}

TEST(Program, ComparesAndLists) {
  const auto [output, code] = run("--compare --refine --joint -", example);
  EXPECT_EQ(code, 0);
  std::string error;
  const auto json = parse_json(output, error);
  ASSERT_TRUE(json.has_value()) << error;
  // All sixteen for two chains; the eight for default executors and the five for their single threads for one.
  EXPECT_EQ(std::get<JsonArray>(member(*json, "chains").value).size(), 45U);
  EXPECT_NE(run("--list", "").first.find("theorem6-arbitrary-safe"), std::string::npos);
  EXPECT_NE(run("--cost count=50", "").first.find("\"sets\": 50"), std::string::npos);
}

}  // namespace analysis_file_test
}  // namespace tide::analysis
