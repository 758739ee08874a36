// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tide/framing.h"
#include "tide/status.h"
#include "vectors.h"

namespace xrce_framing_test {

using Bytes = std::vector<uint8_t>;

uint16_t crc_bit_by_bit(const Bytes &bytes) {
  unsigned crc = 0;
  for (uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xA001u : 0u);
  }
  return static_cast<uint16_t>(crc);
}

// The expected frame, encoded by the rules of the specification.
Bytes plain_frame(uint8_t source, uint8_t destination, const Bytes &message) {
  Bytes inside = {source, destination, static_cast<uint8_t>(message.size()), static_cast<uint8_t>(message.size() >> 8)};
  inside.insert(inside.end(), message.begin(), message.end());
  const uint16_t crc = crc_bit_by_bit(message);
  inside.push_back(static_cast<uint8_t>(crc));
  inside.push_back(static_cast<uint8_t>(crc >> 8));
  Bytes frame = {0x7E};
  for (uint8_t octet : inside) {
    if (octet == 0x7E || octet == 0x7D) {
      frame.push_back(0x7D);
      octet ^= 0x20;
    }
    frame.push_back(octet);
  }
  return frame;
}

Bytes encode(uint8_t source, uint8_t destination, const Bytes &message, size_t split) {
  Bytes frame(TIDE_FRAMING_WORST_BYTES(message.size()));
  const int written = tide_framing_encode(frame.data(), frame.size(), source, destination, message.data(), split,
                                          message.data() + split, message.size() - split);
  frame.resize(static_cast<size_t>(std::max(written, 0)));
  return frame;
}

// Octets that include many flags and escapes.
uint8_t octet(std::mt19937_64 &random) {
  static const uint8_t favourites[] = {0x7E, 0x7D, 0x5E, 0x5D, 0x00, 0x01};
  return random() % 3 == 0 ? favourites[random() % 6] : static_cast<uint8_t>(random());
}

Bytes octets(std::mt19937_64 &random, size_t count) {
  Bytes bytes(count);
  for (uint8_t &byte : bytes) byte = octet(random);
  return bytes;
}

TEST(Crc16, KnownValue) {
  const std::string digits = "123456789";
  EXPECT_EQ(tide_crc16(reinterpret_cast<const uint8_t *>(digits.data()), digits.size()), 0xBB3D);
}

TEST(Framing, FramesLikeTheSpecification) {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const Bytes message = octets(random, random() % 300);
    const uint8_t source = octet(random), destination = octet(random);
    const Bytes expected = plain_frame(source, destination, message);
    const size_t split = message.empty() ? 0 : random() % message.size();
    EXPECT_EQ(encode(source, destination, message, split), expected);
    EXPECT_EQ(tide_crc16(message.data(), message.size()), crc_bit_by_bit(message));

    Bytes exact(expected.size());
    EXPECT_EQ(tide_framing_encode(exact.data(), exact.size(), source, destination, message.data(), message.size(),
                                  nullptr, 0),
              static_cast<int>(expected.size()));
    const size_t shorter = random() % expected.size();
    Bytes small(shorter);  // its exact size lets the sanitizer check its end
    EXPECT_EQ(
        tide_framing_encode(small.data(), shorter, source, destination, message.data(), message.size(), nullptr, 0),
        TIDE_ERROR_TOO_LARGE);
  }
}

TEST(Framing, LongestMessage) {
  const Bytes message(65535, 0x7E);
  const Bytes frame = encode(0x7D, 0x7E, message, 65535);
  EXPECT_EQ(frame, plain_frame(0x7D, 0x7E, message));
  EXPECT_LE(frame.size(), TIDE_FRAMING_WORST_BYTES(65535u));
  uint8_t some[16];
  EXPECT_EQ(tide_framing_encode(some, sizeof some, 0, 1, message.data(), 65535, message.data(), 1),
            TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_framing_encode(some, sizeof some, 0, 1, message.data(), SIZE_MAX, message.data(), SIZE_MAX),
            TIDE_ERROR_ARGUMENT);

  Bytes buffer(65535);
  tide_framing_reader_t reader;
  tide_framing_reader_init(&reader, 0x7E);
  tide_framing_reader_set_buffer(&reader, buffer.data(), buffer.size());
  int complete = 0;
  EXPECT_EQ(tide_framing_reader_input(&reader, frame.data(), frame.size(), &complete), frame.size());
  EXPECT_EQ(complete, 1);
  EXPECT_EQ(reader.source, 0x7D);
  EXPECT_EQ(buffer, message);
}

// What a reader returns for bytes that arrive in pieces chosen by `piece`.
struct Reading {
  std::vector<Bytes> messages;  // messages with a right CRC, each followed by its source address
  size_t damaged = 0;
  tide_framing_counters_t counters{};
  bool operator==(const Reading &other) const {
    return messages == other.messages && damaged == other.damaged &&
           std::memcmp(&counters, &other.counters, sizeof counters) == 0;
  }
};

template <typename Piece> Reading read_all(const Bytes &line, uint8_t address, size_t capacity, Piece piece) {
  Reading reading;
  Bytes buffer(capacity);
  tide_framing_reader_t reader;
  tide_framing_reader_init(&reader, address);
  tide_framing_reader_set_buffer(&reader, buffer.data(), buffer.size());
  for (size_t position = 0; position < line.size();) {
    size_t count = std::min<size_t>(piece(), line.size() - position);
    while (count > 0) {
      const Bytes chunk(line.begin() + static_cast<ptrdiff_t>(position),
                        line.begin() + static_cast<ptrdiff_t>(position + count));
      int complete = 0;
      const size_t used = tide_framing_reader_input(&reader, chunk.data(), chunk.size(), &complete);
      EXPECT_TRUE(complete || used == count);
      EXPECT_GT(used, 0u);
      position += used;
      count -= used;
      if (!complete) continue;
      Bytes message(buffer.begin(), buffer.begin() + reader.length);
      message.push_back(reader.source);
      if (tide_crc16(buffer.data(), reader.length) == reader.crc) {
        reading.messages.push_back(message);
      } else {
        reading.damaged++;
      }
    }
  }
  reading.counters = reader.counters;
  return reading;
}

bool is_subsequence(const std::vector<Bytes> &wanted, const std::vector<Bytes> &found) {
  size_t next = 0;
  for (const Bytes &each : found)
    if (next < wanted.size() && each == wanted[next]) ++next;
  return next == wanted.size();
}

// A line that carries whole frames, with noise, truncated frames and flipped bits between them. Every whole frame
// arrives, whatever bytes precede it and however the bytes are divided into pieces.
TEST(FramingProperty, WholeFramesSurviveAnyNoise) {
  size_t sent = 0, invented = 0, damaged = 0;
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const uint8_t address = octet(random);
    std::vector<Bytes> whole;
    Bytes line;
    for (size_t items = random() % 30; items > 0; --items) {
      Bytes message = octets(random, 4 + random() % 80);
      const uint8_t source = octet(random);
      Bytes frame = encode(source, address, message, random() % message.size());
      switch (random() % 6) {
        case 0: frame = octets(random, random() % 40); break;
        case 1: frame.resize(random() % frame.size()); break;
        case 2: frame[random() % frame.size()] ^= static_cast<uint8_t>(1u << random() % 8); break;
        default: message.push_back(source); whole.push_back(message);
      }
      line.insert(line.end(), frame.begin(), frame.end());
    }
    const Reading at_once = read_all(line, address, 256, [] { return size_t{1} << 30; });
    const Reading octet_wise = read_all(line, address, 256, [] { return size_t{1}; });
    const Reading pieces = read_all(line, address, 256, [&] { return 1 + random() % 20; });
    EXPECT_TRUE(at_once == octet_wise);
    EXPECT_TRUE(at_once == pieces);
    ASSERT_TRUE(is_subsequence(whole, at_once.messages));
    EXPECT_EQ(at_once.counters.frames, at_once.messages.size() + at_once.damaged);
    sent += whole.size();
    invented += at_once.messages.size() - whole.size();
    damaged += at_once.damaged;
  }
  EXPECT_GT(sent, 5000u);
  EXPECT_GT(damaged, 500u);
  // By chance, a truncated frame can become whole again, and noise can look like an empty message.
  EXPECT_LT(invented, sent / 100);
}

struct Fixture {
  Bytes buffer = Bytes(32);
  tide_framing_reader_t reader{};
  int complete = 0;
  Fixture() {
    tide_framing_reader_init(&reader, 5);
    tide_framing_reader_set_buffer(&reader, buffer.data(), buffer.size());
  }
  size_t input(const Bytes &bytes) { return tide_framing_reader_input(&reader, bytes.data(), bytes.size(), &complete); }
};

// From a message in three parts, the writer makes the same frame as encode, in pieces of any size.
TEST(FramingWriter, WritesWhatEncodeWrites) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    Bytes message(random() % 300);
    for (uint8_t &octet : message)
      octet = random() % 4 == 0 ? static_cast<uint8_t>(0x7D + random() % 2) : uint8_t(random());
    const size_t first = random() % (message.size() + 1), second = first + random() % (message.size() - first + 1);
    const auto address = static_cast<uint8_t>(random() % 3 == 0 ? 0x7E : 1);
    tide_framing_writer_t writer;
    ASSERT_EQ(tide_framing_writer_init(&writer, address, 0, message.data(), first, message.data() + first,
                                       second - first, message.data() + second, message.size() - second),
              TIDE_OK);
    Bytes frame, bytes(1 + random() % 20);
    for (size_t count; (count = tide_framing_writer_output(&writer, bytes.data(), bytes.size())) > 0;)
      frame.insert(frame.end(), bytes.begin(), bytes.begin() + static_cast<long>(count));
    ASSERT_EQ(frame, encode(address, 0, message, first)) << "round " << round;
  }
  tide_framing_writer_t writer;
  EXPECT_EQ(tide_framing_writer_init(&writer, 1, 0, nullptr, 65535, nullptr, 0, nullptr, 1), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_framing_writer_init(&writer, 1, 0, nullptr, 0, nullptr, 0, nullptr, 0), TIDE_OK);
}

TEST(FramingReader, CountsWhatItSkips) {
  Fixture f;
  f.input({1, 2, 3});
  EXPECT_EQ(f.reader.counters.noise_bytes, 3u);
  f.input(plain_frame(1, 6, {1, 2, 3, 4}));
  EXPECT_EQ(f.reader.counters.foreign, 1u);
  f.input(plain_frame(1, 5, Bytes(33)));
  EXPECT_EQ(f.reader.counters.oversize, 1u);
  f.input({0x7E, 1, 5, 4, 0, 9});
  EXPECT_EQ(f.input(plain_frame(1, 5, Bytes(32, 7))), 1u + 6u + 32u);
  EXPECT_EQ(f.complete, 1);
  EXPECT_EQ(f.reader.counters.truncated, 1u);
  EXPECT_EQ(f.reader.counters.frames, 1u);
  EXPECT_EQ(f.reader.counters.noise_bytes, 3u);
  EXPECT_EQ(f.reader.length, 32u);
}

TEST(FramingReader, StopsAtEachCompleteMessage) {
  Fixture f;
  Bytes two = plain_frame(1, 5, {1, 2, 3, 4});
  const size_t first = two.size();
  const Bytes second = plain_frame(2, 5, {5, 6, 7, 8, 9});
  two.insert(two.end(), second.begin(), second.end());
  EXPECT_EQ(f.input(two), first);
  EXPECT_EQ(f.complete, 1);
  Bytes other(8);
  tide_framing_reader_set_buffer(&f.reader, other.data(), other.size());
  f.input(Bytes(two.begin() + static_cast<ptrdiff_t>(first), two.end()));
  EXPECT_EQ(f.complete, 1);
  EXPECT_EQ(f.reader.source, 2);
  EXPECT_EQ(other[4], 9);
  EXPECT_EQ(f.buffer[3], 4);
}

TEST(FramingReader, BuffersMayComeAndGo) {
  Fixture f;
  const Bytes frame = plain_frame(1, 5, {1, 2, 3, 4});
  tide_framing_reader_set_buffer(&f.reader, nullptr, 99);
  f.input(frame);
  EXPECT_EQ(f.complete, 0);
  EXPECT_EQ(f.reader.counters.oversize, 1u);

  Bytes tiny(2);
  tide_framing_reader_set_buffer(&f.reader, f.buffer.data(), f.buffer.size());
  f.input({frame.begin(), frame.begin() + 7});
  tide_framing_reader_set_buffer(&f.reader, tiny.data(), tiny.size());  // in the middle of a message
  f.input({frame.begin() + 7, frame.end()});
  EXPECT_EQ(f.complete, 0);
  EXPECT_EQ(f.reader.counters.truncated, 1u);

  tide_framing_reader_set_buffer(&f.reader, f.buffer.data(), f.buffer.size());
  f.input({frame.begin(), frame.begin() + 7});
  tide_framing_reader_reset(&f.reader);
  f.input({frame.begin() + 7, frame.end()});
  EXPECT_EQ(f.complete, 0);
  f.input(frame);
  EXPECT_EQ(f.complete, 1);
}

}  // namespace xrce_framing_test
