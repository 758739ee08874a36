// SPDX-License-Identifier: Apache-2.0
// tide-line as a child process of a test.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>
#include <vector>

class LineProcess {
 public:
  explicit LineProcess(std::vector<std::string> options) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    std::vector<char *> words{const_cast<char *>("tide-line")};
    for (std::string &option : options) words.push_back(option.data());
    words.push_back(nullptr);
    process_ = fork();
    if (process_ == 0) {
      dup2(ends[1], STDOUT_FILENO);
      ::close(ends[0]);
      execv(TIDE_LINE, words.data());
      _exit(127);
    }
    ::close(ends[1]);
    output_ = fdopen(ends[0], "r");
    const std::string first = line();
    a = text(first, "a");
    b = text(first, "b");
  }
  LineProcess(const LineProcess &) = delete;
  LineProcess &operator=(const LineProcess &) = delete;
  ~LineProcess() {
    if (process_ > 0) finish();
    std::fclose(output_);
  }

  std::string line() {
    std::array<char, 2048> bytes{};
    return std::fgets(bytes.data(), static_cast<int>(bytes.size()), output_) == nullptr ? "" : bytes.data();
  }
  void tell(int signal) { kill(process_, signal); }
  // Unplugs the cable or plugs it in, and returns when that is done, because a busy machine merges two signals into
  // one.
  void set_plugged(bool plugged) {
    tell(SIGUSR2);
    do tell(SIGUSR1);
    while (number(line(), "b_to_a", "unplugged") != (plugged ? 0U : 1U));
  }
  // Ends the process and returns its last report.
  std::string finish() {
    tell(SIGTERM);
    const std::string report = line();
    int status = 0;
    waitpid(process_, &status, 0);
    process_ = 0;
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return report;
  }

  // Value of a key of flat JSON.
  static std::string text(const std::string &json, const std::string &key) {
    const size_t start = json.find("\"" + key + "\": \"");
    if (start == std::string::npos) return "";
    const size_t first = start + key.size() + 5;
    return json.substr(first, json.find('"', first) - first);
  }
  // The number of this key in the object of a direction.
  static uint64_t number(const std::string &json, const std::string &direction, const std::string &key) {
    const size_t object = json.find("\"" + direction + "\"");
    const size_t start = json.find("\"" + key + "\": ", object);
    if (object == std::string::npos || start == std::string::npos) return UINT64_MAX;
    return std::stoull(json.substr(start + key.size() + 4));
  }

  std::string a, b;

 private:
  pid_t process_ = 0;
  FILE *output_ = nullptr;
};
