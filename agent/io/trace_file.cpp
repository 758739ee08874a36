// SPDX-License-Identifier: Apache-2.0
#include "io/trace_file.h"

#include <pthread.h>
#include <sched.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>

#include "tide/status.h"

namespace tide::agent {
namespace {

constexpr std::chrono::milliseconds kDrainPeriod(50);

}  // namespace

TraceFile::TraceFile(const std::string &path, Tracer &tracer)
    : path_(path), tracer_(tracer), file_(std::fopen(path.c_str(), "wb")) {
  if (file_ == nullptr) throw std::runtime_error(path + ": cannot be written: " + std::strerror(errno));
  thread_ = std::thread([this] { drain_until_end(); });
}

TraceFile::~TraceFile() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
  }
  ends_.notify_all();
  thread_.join();
  drain();
  if (std::fclose(file_) != 0 && !failed_) std::fprintf(stderr, "%s: not all of it was written\n", path_.c_str());
}

int TraceFile::write(void *file, const uint8_t *bytes, size_t count) {
  return std::fwrite(bytes, 1, count, static_cast<std::FILE *>(file)) == count ? TIDE_OK : TIDE_ERROR_FULL;
}

// A disk that is full is told once; from then on the rings count what is dropped.
void TraceFile::drain() {
  if (failed_) return;
  failed_ = !tracer_.drain(write, file_) || std::fflush(file_) != 0;
  if (failed_) std::fprintf(stderr, "%s: cannot be written any more: %s\n", path_.c_str(), std::strerror(errno));
}

// The thread that starts it may be one of SCHED_FIFO; this one must not.
void TraceFile::drain_until_end() {
  const sched_param none{};
  (void)pthread_setschedparam(pthread_self(), SCHED_OTHER, &none);
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ended_) {
    (void)ends_.wait_for(lock, kDrainPeriod);
    lock.unlock();
    drain();
    lock.lock();
  }
}

}  // namespace tide::agent
