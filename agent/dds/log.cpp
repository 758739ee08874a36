// SPDX-License-Identifier: Apache-2.0
#include "dds/log.h"

#include <unistd.h>

#include <iostream>
#include <memory>
#include <sstream>

#include <fastdds/dds/log/Log.hpp>
#include <fastdds/dds/log/StdoutErrConsumer.hpp>

namespace tide::agent {
namespace {

namespace dds = eprosima::fastdds::dds;

class PlainConsumer : public dds::LogConsumer {
 public:
  void Consume(const dds::Log::Entry &entry) override {
    std::ostringstream line;
    line << entry.timestamp << (entry.kind == dds::Log::Kind::Error ? " error, " : " warning, ")
         << entry.context.category << ": " << entry.message << '\n';
    std::cerr << line.str();  // in one piece, as other threads write there too
  }
};

}  // namespace

void log_to_standard_error(bool verbose) {
  dds::Log::ClearConsumers();
  if (isatty(STDERR_FILENO) != 0) {
    auto consumer = std::make_unique<dds::StdoutErrConsumer>();
    consumer->stderr_threshold(dds::Log::Kind::Info);
    dds::Log::RegisterConsumer(std::move(consumer));
  } else {
    dds::Log::RegisterConsumer(std::make_unique<PlainConsumer>());
  }
  dds::Log::SetVerbosity(verbose ? dds::Log::Kind::Warning : dds::Log::Kind::Error);
}

}  // namespace tide::agent
