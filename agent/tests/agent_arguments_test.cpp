// SPDX-License-Identifier: Apache-2.0
// The command line: rules that select clients, commands of the stock agent, mistyped arguments.
#include "io/arguments.h"

#include <gtest/gtest.h>

#include <optional>
#include <sstream>
#include <stdexcept>

namespace tide::agent::test::agent_arguments_test {

std::string ours(const std::string &line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return stock_command_in_our_words(words);
}

// ---- admitted clients ----

TEST(Access, RulesSayWhoIsLetIn) {
  AccessList list;
  const Peer near = {mapped(0xC0A80107), {}}, far = {mapped(0x0A000001), {}}, line = {{}, "/dev/ttyUSB0"};
  EXPECT_TRUE(list.allows(far, 7));
  list.add("192.168.1.0/24");
  EXPECT_TRUE(list.allows(near, 7));
  EXPECT_TRUE(list.allows(near, std::nullopt));
  EXPECT_FALSE(list.allows(far, 7));
  EXPECT_FALSE(list.allows(line, 7));
  list.add("/dev/ttyUSB0");
  EXPECT_TRUE(list.allows(line, 7));
  list.add("0A0B0C0D@10.0.0.1");
  EXPECT_FALSE(list.allows(far, 7));
  EXPECT_TRUE(list.allows(far, 0x0A0B0C0D));
  EXPECT_TRUE(list.allows(far, std::nullopt));
  list.add("0xFF");
  EXPECT_TRUE(list.allows({mapped(0x01020304), {}}, 0xFF));
  AccessList all;
  all.add("0.0.0.0/0");
  EXPECT_TRUE(all.allows(far, 7));
  EXPECT_FALSE(all.allows(line, 7));
}

TEST(Access, RulesNameIpv6Addresses) {
  const auto peer = [](const char *address) { return Peer{parse_address(address).value(), {}}; };
  AccessList list;
  list.add("fd00:0:0:4200::/58");
  list.add("0A0B0C0D@fe80::1");
  EXPECT_TRUE(list.allows(peer("fd00:0:0:423f::1"), 7));
  EXPECT_FALSE(list.allows(peer("fd00:0:0:4240::1"), 7));
  EXPECT_FALSE(list.allows(peer("192.168.1.7"), 7));
  EXPECT_TRUE(list.allows(peer("fe80::1"), 0x0A0B0C0D));
  EXPECT_FALSE(list.allows(peer("fe80::1"), 7));
  EXPECT_FALSE(list.allows(peer("fe80::2"), 0x0A0B0C0D));
  AccessList all, one;
  all.add("::/0");
  EXPECT_TRUE(all.allows(peer("::1"), 7));
  EXPECT_TRUE(all.allows(peer("192.168.1.7"), 7)) << "::ffff:192.168.1.7";
  one.add("::1");
  EXPECT_FALSE(one.allows(peer("0.0.0.1"), 7));
}

TEST(Access, ABadRuleIsNamedWithWhatIsWrong) {
  for (const auto &[rule, why] : std::vector<std::pair<std::string, std::string>>{
           {"192.168.1.0/33", "number of bits"},
           {"192.168.1.0/", "number of bits"},
           {"192.168.1.0/8x", "number of bits"},
           {"192.168.1.7/24", "beyond the first 24"},
           {"192.168.1", "not an IP address"},
           {"1.2.3.400", "not an IP address"},
           {"fe80:::1", "not an IP address"},
           {"fd00::/129", "from 0 to 128"},
           {"fd00::1/64", "beyond the first 64"},
           {"hello", "neither an address"},
           {"", "neither an address"},
           {"0", "neither an address"},
           {"123456789", "neither an address"},
           {"G1@10.0.0.1", "before @"},
           {"@10.0.0.1", "before @"},
           {"7@", "not an IP address"},
       }) {
    AccessList list;
    try {
      list.add(rule);
      ADD_FAILURE() << rule;
    } catch (const std::runtime_error &error) {
      EXPECT_EQ(std::string(error.what()).rfind("--allow " + rule + ": ", 0), 0u) << error.what();
      EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
    }
  }
}

// ---- hints ----

TEST(CommandWords, TheStockAgentsLineIsAnsweredWithOurs) {
  const std::string udp = "tide agent --udp 8888 --bind 0.0.0.0 --ros-network";
  EXPECT_EQ(ours("udp4 --port 8888"), udp);
  EXPECT_EQ(ours("udp4 -p 8888 -v4"), udp);
  EXPECT_EQ(ours("udp4 --port=8888 -v 6"), udp + " --verbose");
  EXPECT_EQ(ours("udp4 -p8888 -v6 -d"), udp + " --discovery 7400 --verbose");
  EXPECT_EQ(ours("udp6 -p 8888"), "tide agent --udp 8888 --bind :: --ros-network");
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

}  // namespace tide::agent::test::agent_arguments_test
