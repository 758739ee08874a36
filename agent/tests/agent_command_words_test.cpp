// SPDX-License-Identifier: Apache-2.0
// What the user of the stock agent types, and words that are almost right.
#include "io/command_words.h"

#include <gtest/gtest.h>

#include <sstream>

namespace tide::agent::test {
namespace agent_command_words_test {

std::string ours(const std::string &line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return stock_command_in_our_words(words);
}

TEST(CommandWords, TheStockAgentsLineIsAnsweredWithOurs) {
  const std::string udp = "tide agent --udp 8888 --bind 0.0.0.0 --ros-network";
  EXPECT_EQ(ours("udp4 --port 8888"), udp);
  EXPECT_EQ(ours("udp4 -p 8888 -v4"), udp);
  EXPECT_EQ(ours("udp4 --port=8888 -v 6"), udp + " --verbose");
  EXPECT_EQ(ours("udp4 -p8888 -v6 -d"), udp + " --discovery 7400 --verbose");
  EXPECT_EQ(ours("udp6 -p 8888"), udp + " (over IPv4: this agent does not speak IPv6)");
  EXPECT_EQ(ours("tcp4 -p 9000 -r profiles.xml"),
            "tide agent --tcp 9000 --bind 0.0.0.0 --ros-network --references profiles.xml");
  EXPECT_EQ(ours("serial --dev /dev/ttyACM0 -b 921600"),
            "tide agent --serial /dev/ttyACM0 --baud 921600 --ros-network");
  EXPECT_EQ(ours("serial -D /dev/ttyACM0 -m dds"), "tide agent --serial /dev/ttyACM0 --ros-network");
  EXPECT_EQ(ours("multiserial --devs /dev/ttyS1 /dev/ttyS2 -b 115200"),
            "tide agent --serial /dev/ttyS1 --serial /dev/ttyS2 --baud 115200 --ros-network");
  EXPECT_EQ(ours("canfd --dev can0"), "nothing yet: this agent does not speak CAN FD");
  EXPECT_EQ(ours("--udp 8888"), "");
  EXPECT_EQ(ours(""), "");
}

TEST(CommandWords, TheOptionThatWasMeantIsFound) {
  const std::vector<std::string> known = {"--udp",  "--tcp",         "--serial", "--baud",
                                          "--bind", "--ros-network", "--verbose"};
  EXPECT_EQ(option_meant("--bnd", known), "--bind");
  EXPECT_EQ(option_meant("--ros_network", known), "--ros-network");
  EXPECT_EQ(option_meant("--seriel=/dev/ttyUSB0", known), "--serial");
  EXPECT_EQ(option_meant("-v6", known), "--verbose");
  EXPECT_EQ(option_meant("--port", known), "--udp");
  EXPECT_EQ(option_meant("--dev", known), "--serial");
  EXPECT_EQ(option_meant("--middleware", known), "");
  EXPECT_EQ(option_meant("-x", known), "");
}

}  // namespace agent_command_words_test
}  // namespace tide::agent::test
