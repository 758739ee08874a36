// SPDX-License-Identifier: Apache-2.0
// One direction of a serial cable as a model without I/O: bytes and time in, bytes and deadlines out.
//
// A byte that arrives while the wire is busy waits; it passes one byte time after the preceding byte, so
//   departure(i) = max(departure(i - 1), arrival(i)) + byte time
// in exact integers: rounding never adds up, and no byte is ever early. Faults are drawn from the seed byte by byte and
// frame by frame. Except for cuts and first_loss they do not depend on time, so the same bytes meet the same faults in
// every run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <span>
#include <vector>

namespace tide::line {

inline constexpr int64_t kForever = INT64_MAX;

inline constexpr uint32_t kFirstLossBytes = 64;
inline constexpr int64_t kSameDraw_ns = 200'000'000;

// Probabilities are 0 to 1. A frame begins with a flag (0x7E) and ends before the next one.
struct Faults {
  double byte_loss = 0;      // a byte vanishes
  double bit_flip = 0;       // one bit of a byte is flipped
  double frame_loss = 0;     // everything from a flag to the next vanishes
  double noise = 0;          // a random byte appears before a flag
  int64_t max_delay_ns = 0;  // each frame is delayed by up to this much; the order stays
  // XRCE in serial framing, as the PoDS paper's lossy line: the first transmission of a reliable message of
  // kFirstLossBytes or more is truncated after its header, and later ones pass. One draw counts for all that begin
  // within kSameDraw_ns, so that messages sent together by several chains are lost together.
  double first_loss = 0;
};

struct Settings {
  uint32_t baud = 115200;
  uint32_t bits_a_byte = 10;  // 8N1: a start bit, eight data bits, a stop bit
  size_t queue_bytes = 4096;  // capacity of the sender's driver; a full queue blocks the sender
  size_t trigger_bytes = 8;   // the receiver is notified after this many bytes, at the end of a frame, or when no more
                              // bytes follow
  int64_t cut_from_ns = kForever;  // bytes that pass in [from, until) vanish
  int64_t cut_until_ns = kForever;
  uint64_t seed = 1;
  Faults faults;
};

struct Counters {
  uint64_t bytes = 0;      // bytes that entered
  uint64_t delivered = 0;  // bytes that came out, including noise
  uint64_t frames = 0;     // flags that entered
  uint64_t frames_dropped = 0;
  uint64_t bytes_dropped = 0;  // bytes dropped by byte loss, frame loss and first loss
  uint64_t bits_flipped = 0;
  uint64_t noise_bytes = 0;
  uint64_t bytes_cut = 0;
};

// A frame as it passed the wire: from the start of its flag to the end of its last byte, faults or not.
struct LoggedFrame {
  int64_t start_ns = 0, end_ns = 0;
  uint32_t bytes = 0;
  bool dropped = false;
  std::array<uint8_t, 32> head{};  // the first bytes, escapes as on the wire
};

class Wire {
 public:
  explicit Wire(const Settings &settings);

  // Keeps a log of the first `most` frames. Its memory is allocated here and never grows.
  void keep_log(size_t most) { log_.reserve(most); }
  const std::vector<LoggedFrame> &log() const { return log_; }

  // How many bytes accept would take now.
  size_t room() const;
  // The sender passes bytes at this time; at most room().
  void accept(std::span<const uint8_t> bytes, int64_t now_ns);
  // When deliver should be called next; kForever if no bytes are pending. Like a UART with a receive FIFO, it groups
  // some bytes, but never delays the end of a frame.
  int64_t next_ns() const;
  // Copies bytes that have passed by now, at most into.size(), and returns how many.
  size_t deliver(int64_t now_ns, std::span<uint8_t> into);
  // Cuts the wire or joins it again, in addition to the window of the settings.
  void set_cut(bool cut) { cut_ = cut; }
  bool is_cut() const { return cut_; }

  const Counters &counters() const { return counters_; }

 private:
  enum class Kind : uint8_t { kData, kDropped, kNoise };
  struct Item {
    int64_t passed_ns;
    uint8_t byte;
    Kind kind;
  };

  size_t items_in_next_delivery() const;
  int64_t departure_of_next(int64_t arrival_ns);
  void begin_frame();
  void read_header(uint8_t byte, int64_t departure_ns);
  bool is_lost_first(int64_t departure_ns);
  void log_byte(uint8_t byte, int64_t departure_ns);
  void put(uint8_t byte, int64_t departure_ns);
  bool is_cut_at(int64_t time_ns) const;

  Settings settings_;
  Counters counters_;
  std::deque<Item> items_;
  std::mt19937_64 byte_random_, frame_random_;
  int64_t busy_since_ns_ = 0;  // the wire has been busy without a break since then
  int64_t bytes_since_ = 0;    // bytes carried since then
  int64_t free_at_ns_ = INT64_MIN;
  int64_t last_passed_ns_ = INT64_MIN;
  int64_t frame_delay_ns_ = 0;
  bool dropping_frame_ = false;
  std::array<uint8_t, 9>
      header_{};  // of the frame, without escapes: flag, addresses, length, session, stream, sequence
  size_t header_bytes_ = 0;
  bool escaped_ = false;
  std::array<uint16_t, 256> next_new_{};  // by stream: the first sequence number never sent
  int64_t drawn_at_ns_ = INT64_MIN;
  bool drawn_ = false;
  bool noise_due_ = false;
  bool cut_ = false;
  std::vector<LoggedFrame> log_;
  bool log_full_ = false;
};

}  // namespace tide::line
