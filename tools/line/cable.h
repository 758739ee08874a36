// SPDX-License-Identifier: Apache-2.0
// Two pseudo terminals joined by two wires, in real time, on the calling thread.
#pragma once

#include <csignal>
#include <string>

#include "wire.h"

namespace tide::line {

// The end of a cable that a program opens: a pseudo terminal in raw mode. Its terminal side is held open here, too, so
// that the program may close and reopen it without a hang-up.
class End {
 public:
  End() = default;
  End(const End &) = delete;
  End &operator=(const End &) = delete;
  ~End();

  // Throws std::system_error. link: a symbolic link to the terminal, made here and removed with the end; may be empty.
  void open(const std::string &link);
  const std::string &path() const { return link_.empty() ? terminal_ : link_; }
  int descriptor() const { return descriptor_; }

 private:
  void make_link(const std::string &link);

  int descriptor_ = -1, held_open_ = -1;
  std::string terminal_, link_;
};

struct Lateness {
  uint64_t wakeups = 0;  // wake-ups at which bytes were due
  int64_t total_ns = 0;  // sum, over the wake-ups, of the time since the first of these bytes were due
  int64_t maximum_ns = 0;
};

class Cable {
 public:
  // Requests to run(), set by signals.
  struct Requests {
    volatile sig_atomic_t stop = 0, report = 0, toggle_cut = 0;
  };

  Cable(const Settings &a_to_b, const Settings &b_to_a) : a_to_b_(a_to_b), b_to_a_(b_to_a) {}

  End &a() { return a_; }
  End &b() { return b_; }

  // Runs until requests.stop, or until the end of the file on_eof (-1: none). `sleeping` is the signal mask while it
  // sleeps; the caller has blocked the signals that set the requests, so they come only then. Reports go to standard
  // output, one line of JSON each.
  void run(Requests &requests, const sigset_t &sleeping, int on_eof);
  std::string report() const;

  // keep_log makes run() keep the first `most` frames of each direction in memory. write_log writes them, one line of
  // JSON for each frame, and throws std::system_error when the file cannot be written.
  void keep_log(size_t most);
  void write_log(const std::string &file) const;

 private:
  struct Direction {
    Wire &wire;
    End &from, &to;
    Lateness &lateness;
    uint64_t &overrun;
  };

  void take_in(const Direction &direction, int64_t now_ns);
  void give_out(const Direction &direction, int64_t now_ns);
  std::string report_of(const Wire &wire, const Lateness &lateness, uint64_t overrun) const;

  Wire a_to_b_, b_to_a_;
  End a_, b_;
  Lateness late_to_a_, late_to_b_;
  uint64_t overrun_a_ = 0, overrun_b_ = 0;  // bytes lost because the reader left the kernel's buffer full
};

int64_t now_ns();

}  // namespace tide::line
