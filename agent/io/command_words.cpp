// SPDX-License-Identifier: Apache-2.0
#include "io/command_words.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <sstream>

namespace tide::agent {
namespace {

// Of the stock agent's options those that have an argument; ours for them, empty: there is nothing like it.
struct StockOptions {
  std::vector<std::string> devices;
  std::string port, baud, references, discovery;
  bool verbose = false, discovers = false;
};

bool is_option(const std::string &word) { return word.size() > 1 && word.front() == '-'; }

// A value may stand in the same word: --port=8888, -p8888, -v6.
StockOptions parse(const std::vector<std::string> &words) {
  StockOptions options;
  for (size_t number = 1; number < words.size(); number++) {
    std::string name = words[number], value;
    const size_t equals = name.find('=');
    const bool is_short = name.size() > 2 && name[1] != '-';
    if (equals != std::string::npos) {
      value = name.substr(equals + 1);
      name.resize(equals);
    } else if (is_short) {
      value = name.substr(2);
      name.resize(2);
    } else if (number + 1 < words.size() && !is_option(words[number + 1])) {
      value = words[++number];
    }
    if (name == "--port" || name == "-p") options.port = value;
    if (name == "--baudrate" || name == "-b") options.baud = value;
    if (name == "--refs" || name == "-r") options.references = value;
    if (name == "--verbose" || name == "-v") options.verbose = value.empty() || value > "4";
    if (name == "--discovery" || name == "-d") {
      options.discovers = true;
      options.discovery = value;
    }
    if (name != "--dev" && name != "-D" && name != "--devs") continue;
    std::istringstream list(value);
    for (std::string device; list >> device;) options.devices.push_back(device);
    while (name == "--devs" && number + 1 < words.size() && !is_option(words[number + 1])) {
      options.devices.push_back(words[++number]);
    }
  }
  return options;
}

size_t distance(const std::string &one, const std::string &other) {
  std::vector<size_t> row(other.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < one.size(); i++) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < other.size(); j++) {
      const size_t changed = diagonal + (one[i] == other[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string stock_command_in_our_words(const std::vector<std::string> &words) {
  if (words.empty()) return {};
  const std::string &kind = words.front();
  const bool udp = kind == "udp4" || kind == "udp6", tcp = kind == "tcp4" || kind == "tcp6";
  const bool serial = kind == "serial" || kind == "multiserial" || kind == "pseudoterminal";
  if (kind == "canfd") return "nothing yet: this agent does not speak CAN FD";
  if (!udp && !tcp && !serial) return {};
  const StockOptions options = parse(words);
  std::string ours = "tide agent";
  // The stock agent serves all networks, and so does its DDS.
  if (!serial) {
    ours += (udp ? " --udp " : " --tcp ") + (options.port.empty() ? "8888" : options.port) + " --bind 0.0.0.0";
  }
  for (const std::string &device : options.devices) ours += " --serial " + device;
  if (serial && options.devices.empty()) ours += " --serial /dev/ttyUSB0";
  if (serial && !options.baud.empty()) ours += " --baud " + options.baud;
  ours += " --ros-network";
  if (options.discovers) ours += " --discovery " + (options.discovery.empty() ? "7400" : options.discovery);
  if (!options.references.empty()) ours += " --references " + options.references;
  if (options.verbose) ours += " --verbose";
  if (kind == "udp6" || kind == "tcp6") ours += " (over IPv4: this agent does not speak IPv6)";
  return ours;
}

std::string option_meant(const std::string &word, const std::vector<std::string> &known) {
  static const std::map<std::string, std::string> kStock = {
      {"--port", "--udp"},    {"-p", "--udp"},          {"--dev", "--serial"}, {"--devs", "--serial"},
      {"-D", "--serial"},     {"--baudrate", "--baud"}, {"-b", "--baud"},      {"--refs", "--references"},
      {"-r", "--references"}, {"-d", "--discovery"},    {"-v", "--verbose"},
  };
  const std::string name = word.substr(0, word.find('='));
  const bool is_short = name.size() >= 2 && name[0] == '-' && name[1] != '-';
  const auto stock = kStock.find(is_short ? name.substr(0, 2) : name);
  if (stock != kStock.end()) return stock->second;
  std::string best;
  size_t least = 3;  // more letters than two are another word
  for (const std::string &option : known) {
    const size_t letters = distance(name, option);
    if (letters >= least || letters * 2 >= name.size()) continue;
    least = letters;
    best = option;
  }
  return best;
}

}  // namespace tide::agent
