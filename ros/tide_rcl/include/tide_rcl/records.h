// SPDX-License-Identifier: Apache-2.0
// Records of an engine's runs: execution times for `tide trace times`, and a trace for `tide trace export`.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tide/executor.h"
#include "tide/trace.h"

namespace tide_rcl {

// An output file. The first OutputFile of a path in this process empties the file; later ones append to it. {pid} in
// the path stands for the process id.
class OutputFile {
 public:
  // Throws std::runtime_error if the file cannot be written.
  explicit OutputFile(const std::string &path);
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;
  ~OutputFile();

  // Returns false if not all bytes were written.
  bool write(const void *bytes, std::size_t count) noexcept;
  const std::string &path() const { return path_; }

 private:
  std::string path_;
  std::FILE *file_;
};

// Execution times of callbacks by their names. They are measured with the processor clock of the running thread, so
// they do not include time in which the thread was preempted.
class Measurements {
 public:
  Measurements();
  // The record for a callback with these names ("chain/callback"); callbacks with equal names share one record. Null if
  // there are no names. The pointer is valid as long as this object exists. This function is thread-safe.
  tide_measurement_t *of(const std::vector<std::string> &names);
  tide_measure_t *measure() { return &measure_; }
  // One line for each name of a callback that ran, in the format that `tide trace times` reads. This function is
  // thread-safe and may be called while callbacks run.
  std::string lines(tide_executor_t &executor);

 private:
  tide_measure_t measure_{};
  std::mutex mutex_;
  std::map<std::vector<std::string>, std::unique_ptr<tide_measurement_t>> places_;
};

// A trace file in the format of docs/internals/trace.md. Each lane stores its records in a ring of its own; a thread
// with ordinary scheduling writes them to the file. If 16,384 records of a lane are not yet written, its new records
// are dropped, and the file contains their number.
class Trace {
 public:
  // `place` is the number of this program in a combined trace. Throws std::runtime_error if the file cannot be written.
  Trace(const std::string &path, std::uint16_t place, std::size_t lanes);
  Trace(const Trace &) = delete;
  Trace &operator=(const Trace &) = delete;
  ~Trace();

  // start, end and set_instance are called by the thread that runs the rounds of this lane.
  struct Start {
    tide_priority_t priority;
    tide_callback_kind_t kind;
    std::uint32_t instance;
    std::int64_t ready_ns, start_ns;
  };
  void start(std::size_t lane, const Start &start) noexcept;
  void end(std::size_t lane, std::int64_t now_ns) noexcept;
  void set_instance(std::size_t lane, std::uint32_t instance) noexcept;

 private:
  struct Ring {
    tide_trace_ring_t ring{};
    std::vector<tide_trace_record_t> records;
    Start running{};
  };
  static int write(void *trace, const std::uint8_t *bytes, std::size_t count);
  void drain() noexcept;
  void drain_until_end() noexcept;

  OutputFile file_;
  tide_trace_instances_t instances_{};
  std::vector<Ring> rings_;
  bool failed_ = false;
  std::mutex mutex_;  // guards ended_
  std::condition_variable ends_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace tide_rcl
