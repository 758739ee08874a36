// SPDX-License-Identifier: Apache-2.0
#include "wire.h"

#include <algorithm>

namespace tide::line {
namespace {

constexpr uint8_t kFlag = 0x7E, kEscape = 0x7D, kEscapeBit = 0x20;
constexpr size_t kLengthPlace = 3, kStreamPlace = 6, kSequencePlace = 7;
constexpr uint8_t kReliableStreams = 0x80;
constexpr int64_t kSecond_ns = 1'000'000'000;
constexpr uint64_t kFrameSeed = 0x9E3779B97F4A7C15u;

// std distributions differ between implementations; std::mt19937_64 does not.
double draw(std::mt19937_64 &random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

}  // namespace

Wire::Wire(const Settings &settings)
    : settings_(settings), byte_random_(settings.seed), frame_random_(settings.seed ^ kFrameSeed) {}

size_t Wire::room() const { return items_.size() >= settings_.queue_bytes ? 0 : settings_.queue_bytes - items_.size(); }

int64_t Wire::departure_of_next(int64_t arrival_ns) {
  if (arrival_ns > free_at_ns_) {
    busy_since_ns_ = arrival_ns;
    bytes_since_ = 0;
  }
  bytes_since_++;
  const int64_t bits = bytes_since_ * settings_.bits_a_byte;
  free_at_ns_ = busy_since_ns_ + (bits * kSecond_ns + settings_.baud - 1) / settings_.baud;
  if (bits % settings_.baud == 0) {  // a whole number of seconds: start counting again before the product overflows
    busy_since_ns_ = free_at_ns_;
    bytes_since_ = 0;
  }
  return free_at_ns_;
}

void Wire::begin_frame() {
  counters_.frames++;
  dropping_frame_ = draw(frame_random_) < settings_.faults.frame_loss;
  noise_due_ = draw(frame_random_) < settings_.faults.noise;
  const double delay = draw(frame_random_) * static_cast<double>(settings_.faults.max_delay_ns);
  frame_delay_ns_ = static_cast<int64_t>(delay);
  if (dropping_frame_) counters_.frames_dropped++;
  header_bytes_ = 0;
  escaped_ = false;
}

// Called only with first_loss. The bytes of a lost frame's header have passed already when the header has been read.
void Wire::read_header(uint8_t byte, int64_t departure_ns) {
  if (dropping_frame_ || header_bytes_ == header_.size()) return;
  if (byte == kEscape) {
    escaped_ = true;
    return;
  }
  header_[header_bytes_++] = escaped_ ? byte ^ kEscapeBit : byte;
  escaped_ = false;
  if (header_bytes_ < header_.size() || !is_lost_first(departure_ns)) return;
  dropping_frame_ = true;
  counters_.frames_dropped++;
}

bool Wire::is_lost_first(int64_t departure_ns) {
  const auto word = [this](size_t place) { return static_cast<uint16_t>(header_[place] | header_[place + 1] << 8); };
  const uint8_t stream = header_[kStreamPlace];
  if (stream < kReliableStreams || word(kLengthPlace) < kFirstLossBytes) return false;
  const uint16_t sequence = word(kSequencePlace);
  const bool first = static_cast<int16_t>(sequence - next_new_[stream]) >= 0;
  if (!first) return false;
  next_new_[stream] = static_cast<uint16_t>(sequence + 1);
  if (drawn_at_ns_ == INT64_MIN || departure_ns - drawn_at_ns_ >= kSameDraw_ns) {
    drawn_ = draw(frame_random_) < settings_.faults.first_loss;
    drawn_at_ns_ = departure_ns;
  }
  return drawn_;
}

void Wire::log_byte(uint8_t byte, int64_t departure_ns) {
  if (byte == kFlag) {
    log_full_ = log_.size() == log_.capacity();
    if (log_full_) return;
    const int64_t byte_ns = settings_.bits_a_byte * kSecond_ns / settings_.baud;
    log_.push_back({.start_ns = departure_ns - byte_ns, .dropped = dropping_frame_});
  }
  if (log_full_ || log_.empty()) return;
  LoggedFrame &frame = log_.back();
  if (frame.bytes < frame.head.size()) frame.head[frame.bytes] = byte;
  frame.bytes++;
  frame.end_ns = departure_ns;
  frame.dropped = dropping_frame_;
}

void Wire::put(uint8_t byte, int64_t departure_ns) {
  last_passed_ns_ = std::max(last_passed_ns_, departure_ns + frame_delay_ns_);
  if (noise_due_) {
    noise_due_ = false;
    items_.push_back({last_passed_ns_, static_cast<uint8_t>(frame_random_()), Kind::kNoise});
  }
  const bool lost = draw(byte_random_) < settings_.faults.byte_loss;
  const bool flipped = draw(byte_random_) < settings_.faults.bit_flip;
  const unsigned bit = static_cast<unsigned>(byte_random_() & 7u);
  if (lost || dropping_frame_) {
    counters_.bytes_dropped++;
    items_.push_back({last_passed_ns_, byte, Kind::kDropped});
    return;
  }
  if (flipped) {
    counters_.bits_flipped++;
    byte = static_cast<uint8_t>(byte ^ (1u << bit));
  }
  items_.push_back({last_passed_ns_, byte, Kind::kData});
}

void Wire::accept(std::span<const uint8_t> bytes, int64_t now_ns) {
  counters_.bytes += bytes.size();
  for (const uint8_t byte : bytes) {
    if (byte == kFlag) begin_frame();
    const int64_t departure_ns = departure_of_next(now_ns);
    if (settings_.faults.first_loss > 0) read_header(byte, departure_ns);
    if (log_.capacity() > 0) log_byte(byte, departure_ns);
    put(byte, departure_ns);
  }
}

size_t Wire::items_in_next_delivery() const {
  const size_t most = std::min(settings_.trigger_bytes, items_.size());
  for (size_t count = 1; count < most; count++) {
    if (items_[count].byte == kFlag) return count;
  }
  return most;
}

int64_t Wire::next_ns() const {
  if (items_.empty()) return kForever;
  return items_[items_in_next_delivery() - 1].passed_ns;
}

bool Wire::is_cut_at(int64_t time_ns) const {
  return cut_ || (time_ns >= settings_.cut_from_ns && time_ns < settings_.cut_until_ns);
}

size_t Wire::deliver(int64_t now_ns, std::span<uint8_t> into) {
  size_t count = 0;
  while (!items_.empty() && items_.front().passed_ns <= now_ns && count < into.size()) {
    const Item item = items_.front();
    items_.pop_front();
    if (item.kind == Kind::kDropped) continue;
    if (is_cut_at(item.passed_ns)) {
      counters_.bytes_cut++;
      continue;
    }
    if (item.kind == Kind::kNoise) counters_.noise_bytes++;
    into[count++] = item.byte;
  }
  counters_.delivered += count;
  return count;
}

}  // namespace tide::line
