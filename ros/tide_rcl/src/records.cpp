// SPDX-License-Identifier: Apache-2.0
#include "tide_rcl/records.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <set>
#include <stdexcept>

#include "tide/port.h"
#include "tide/status.h"

namespace tide_rcl {

namespace {

constexpr std::size_t kRecordsOfALane = 16384;
constexpr std::chrono::milliseconds kDrainPeriod(50);

std::string with_process_number(std::string path) {
  const std::string pattern = "{pid}";
  for (std::size_t at = path.find(pattern); at != std::string::npos; at = path.find(pattern)) {
    path.replace(at, pattern.size(), std::to_string(getpid()));
  }
  return path;
}

bool is_first_of_process(const std::string &path) {
  static std::mutex mutex;
  static std::set<std::string> opened;
  const std::lock_guard<std::mutex> lock(mutex);
  return opened.insert(path).second;
}

// Numbers the rings of this process, because several executors may write into one file.
std::uint16_t next_source() {
  static std::atomic<std::uint16_t> next{0};
  return next++;
}

// The thread that creates the engine may use SCHED_FIFO; the writing thread must not inherit it.
void become_ordinary() {
  const sched_param none{};
  (void)pthread_setschedparam(pthread_self(), SCHED_OTHER, &none);
  (void)pthread_setname_np(pthread_self(), "tide trace");
}

std::string line_of(tide_measurement_t measurement, const std::string &name, const tide_measure_t &measure) {
  std::string line(TIDE_MEASUREMENT_LINE_BYTES + name.size(), '\0');
  measurement.name = name.c_str();
  line.resize(tide_measurement_line(&measurement, &measure, line.data(), line.size()));
  return line;
}

}  // namespace

OutputFile::OutputFile(const std::string &path) : path_(with_process_number(path)) {
  if (is_first_of_process(path_)) (void)truncate(path_.c_str(), 0);
  file_ = std::fopen(path_.c_str(), "ab");  // "a": several writers of the file do not overwrite one another
  if (file_ == nullptr) throw std::runtime_error(path_ + ": cannot be written: " + std::strerror(errno));
}

OutputFile::~OutputFile() {
  if (std::fclose(file_) != 0) std::fprintf(stderr, "%s: not all of it was written\n", path_.c_str());
}

bool OutputFile::write(const void *bytes, std::size_t count) noexcept {
  return std::fwrite(bytes, 1, count, file_) == count && std::fflush(file_) == 0;
}

Measurements::Measurements() { tide_measure_init(&measure_, tide_port_measure_clock()); }

tide_measurement_t *Measurements::of(const std::vector<std::string> &names) {
  if (names.empty()) return nullptr;
  const std::lock_guard<std::mutex> lock(mutex_);
  std::unique_ptr<tide_measurement_t> &place = places_[names];
  if (place == nullptr) place = std::make_unique<tide_measurement_t>();
  return place.get();
}

std::string Measurements::lines(tide_executor_t &executor) {
  std::string text;
  void *context = executor.config.platform->context;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto &[names, place] : places_) {
    const std::uintptr_t state = executor.enter(context);
    const tide_measurement_t copy = *place;
    executor.exit(context, state);
    for (const std::string &name : names) {
      if (copy.count > 0) text += line_of(copy, name, measure_);
    }
  }
  return text;
}

Trace::Trace(const std::string &path, std::uint16_t place, std::size_t lanes) : file_(path), rings_(lanes) {
  for (Ring &ring : rings_) {
    ring.records.resize(kRecordsOfALane);
    const auto count = static_cast<std::uint32_t>(ring.records.size());
    (void)tide_trace_init(&ring.ring, ring.records.data(), count, &instances_, place, next_source());
  }
  thread_ = std::thread([this] { drain_until_end(); });
}

Trace::~Trace() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
  }
  ends_.notify_all();
  thread_.join();
  drain();
}

void Trace::start(std::size_t lane, const Start &start) noexcept {
  Ring &ring = rings_[lane];
  ring.running = start;
  const tide_trace_kind_t kind = start.kind == TIDE_CALLBACK_TIMER ? TIDE_TRACE_RELEASE : TIDE_TRACE_READY;
  (void)tide_trace_put(&ring.ring, kind, start.priority, start.instance, 0, start.ready_ns);
  (void)tide_trace_put(&ring.ring, TIDE_TRACE_START, start.priority, start.instance,
                       static_cast<std::uint8_t>(start.kind), start.start_ns);
}

void Trace::end(std::size_t lane, std::int64_t now_ns) noexcept {
  Ring &ring = rings_[lane];
  (void)tide_trace_put(&ring.ring, TIDE_TRACE_END, ring.running.priority, ring.running.instance, 0, now_ns);
}

void Trace::set_instance(std::size_t lane, std::uint32_t instance) noexcept {
  rings_[lane].running.instance = instance;
}

int Trace::write(void *trace, const std::uint8_t *bytes, std::size_t count) {
  return static_cast<Trace *>(trace)->file_.write(bytes, count) ? TIDE_OK : TIDE_ERROR_FULL;
}

// After a failed write (a full disk), which is reported once, nothing more is written: the rings fill and count dropped
// records.
void Trace::drain() noexcept {
  for (Ring &ring : rings_) {
    if (failed_ || tide_trace_drain(&ring.ring, UINT32_MAX, write, this) >= 0) continue;
    failed_ = true;
    std::fprintf(stderr, "%s: cannot be written any more: %s\n", file_.path().c_str(), std::strerror(errno));
  }
}

void Trace::drain_until_end() noexcept {
  become_ordinary();
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ended_) {
    (void)ends_.wait_for(lock, kDrainPeriod);
    lock.unlock();
    drain();
    lock.lock();
  }
}

}  // namespace tide_rcl
