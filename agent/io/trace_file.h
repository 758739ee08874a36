// SPDX-License-Identifier: Apache-2.0
// The file that receives what a Tracer records, written by a thread without urgency.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>

#include "core/tracer.h"

namespace tide::agent {

class TraceFile {
 public:
  // std::runtime_error: it cannot be written. The tracer must outlive this.
  TraceFile(const std::string &path, Tracer &tracer);
  TraceFile(const TraceFile &) = delete;
  TraceFile &operator=(const TraceFile &) = delete;
  // Writes what is left.
  ~TraceFile();

 private:
  static int write(void *file, const uint8_t *bytes, size_t count);
  void drain();
  void drain_until_end();

  std::string path_;
  Tracer &tracer_;
  std::FILE *file_;
  bool failed_ = false;
  std::mutex mutex_;  // of the end
  std::condition_variable ends_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace tide::agent
