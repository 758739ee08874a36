// SPDX-License-Identifier: Apache-2.0
// Passes arbitrary bytes to every decoder of the wire. Called by the fuzzer and, with a bounded number of inputs, by a
// test. Aborts when a rule is broken; the sanitizers watch memory.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "recode.h"
#include "tide/framing.h"
#include "tide/stream.h"

inline void require(bool holds, const char *rule) {
  if (holds) return;
  std::fprintf(stderr, "broken rule: %s\n", rule);
  std::abort();
}

// Decoded values can be encoded, and decoding this encoding gives the same values again.
inline void exercise_message(const uint8_t *bytes, size_t count) {
  const Recoded once = recode_message(bytes, count, false);
  if (once.status != TIDE_OK) {
    require(once.status == TIDE_ERROR_MALFORMED, "bad bytes are malformed and nothing else");
    return;
  }
  const Recoded twice = recode_message(once.bytes.data(), once.bytes.size(), false);
  require(twice.status == TIDE_OK, "our own encoding decodes");
  require(twice.bytes == once.bytes, "encoding what was decoded changes nothing");
}

// Values found in an answer are found again in an answer that is encoded from them.
inline void exercise_discovery(const uint8_t *bytes, size_t count) {
  tide_xrce_request_t request{};
  (void)tide_xrce_get_discovery_question(bytes, count, &request);
  tide_xrce_locator_t found{}, again{};
  if (tide_xrce_get_discovery_answer(bytes, count, &found) != TIDE_OK) return;
  const tide_xrce_info_t info = {request, 0, 0, TIDE_XRCE_VENDOR, 1, 0};
  uint8_t answer[TIDE_XRCE_DISCOVERY_ANSWER_BYTES];
  const size_t length = tide_xrce_put_discovery_answer(answer, &info, found);
  require(tide_xrce_get_discovery_answer(answer, length, &again) == TIDE_OK, "our own answer is read");
  require(found.port == again.port && std::equal(found.address, found.address + 4, again.address), "as it was said");
}

inline std::vector<Bytes> exercise_reader(const uint8_t *bytes, size_t count, size_t piece, size_t capacity) {
  std::vector<Bytes> messages;
  Bytes buffer(capacity);
  tide_framing_reader_t reader;
  tide_framing_reader_init(&reader, count == 0 ? 0 : bytes[count - 1]);
  tide_framing_reader_set_buffer(&reader, buffer.data(), buffer.size());
  for (size_t position = 0; position < count;) {
    int complete = 0;
    const size_t offered = std::min(piece, count - position);
    const size_t used = tide_framing_reader_input(&reader, bytes + position, offered, &complete);
    require(used > 0 && used <= offered && (complete || used == offered), "a reader consumes what it is given");
    position += used;
    if (complete) messages.emplace_back(buffer.begin(), buffer.begin() + reader.length);
  }
  return messages;
}

inline void exercise_framing(const uint8_t *bytes, size_t count) {
  const size_t piece = count == 0 ? 1 : 1u + bytes[0] % 16u;
  const std::vector<Bytes> whole = exercise_reader(bytes, count, count + 1, 64);
  require(whole == exercise_reader(bytes, count, piece, 64), "pieces make no difference");
  for (const Bytes &message : whole) exercise_message(message.data(), message.size());

  Bytes frame(TIDE_FRAMING_WORST_BYTES(count));
  const int written = tide_framing_encode(frame.data(), frame.size(), 1, 0x7E, bytes, count, nullptr, 0);
  require(written > 0, "a frame fits its worst size");
  Bytes buffer(count + 1);
  tide_framing_reader_t reader;
  tide_framing_reader_init(&reader, 0x7E);
  tide_framing_reader_set_buffer(&reader, buffer.data(), buffer.size());
  int complete = 0;
  const size_t used = tide_framing_reader_input(&reader, frame.data(), static_cast<size_t>(written), &complete);
  require(complete && used == static_cast<size_t>(written) && reader.length == count, "a frame comes back");
  require(std::equal(bytes, bytes + count, buffer.begin()), "its message comes back");
  require(tide_crc16(buffer.data(), count) == reader.crc, "its checksum is right");
}

// Reads in an order that the bytes choose.
inline void exercise_cursor(const uint8_t *bytes, size_t count) {
  tide_cdr_t cdr;
  tide_cdr_reader(&cdr, bytes, count, count % 2 != 0);
  uint64_t elements[4];
  uint16_t text[4];
  bool flags[4];
  size_t length = 0;
  for (size_t i = 0; i < count && cdr.status == TIDE_OK; ++i) {
    switch (bytes[i] % 10) {
      case 0: (void)tide_cdr_get_u8(&cdr); break;
      case 1: (void)tide_cdr_get_u16(&cdr); break;
      case 2: (void)tide_cdr_get_u32(&cdr); break;
      case 3: (void)tide_cdr_get_u64(&cdr); break;
      case 4: (void)tide_cdr_get_string(&cdr, &length); break;
      case 5: (void)tide_cdr_get_wstring(&cdr, text, 4); break;
      case 6: tide_cdr_get_array(&cdr, elements, 4, size_t{1} << bytes[i] % 4); break;
      case 7: tide_cdr_get_bools(&cdr, flags, 4); break;
      case 8: (void)tide_cdr_view(&cdr, tide_cdr_get_count(&cdr, 1)); break;
      default: tide_cdr_align(&cdr, size_t{1} << bytes[i] % 4); break;
    }
    require(cdr.position <= cdr.capacity, "a cursor stays in its buffer");
  }
}

// Sequence numbers, heartbeats and drops that the bytes choose.
inline void exercise_stream(const uint8_t *bytes, size_t count) {
  tide_input_stream_t stream;
  tide_input_stream_init(&stream, count == 0 ? 0x80 : bytes[0], 8);
  for (size_t i = 1; i + 4 < count; i += 5) {
    const uint16_t first = static_cast<uint16_t>(bytes[i + 1] | bytes[i + 2] << 8);
    const uint16_t last = static_cast<uint16_t>(bytes[i + 3] | bytes[i + 4] << 8);
    if (bytes[i] % 4 == 0) {
      tide_input_stream_heartbeat(&stream, first, last);
    } else if (bytes[i] % 4 == 1) {
      tide_input_stream_forget(&stream, first);
    } else if (tide_input_stream_arrive(&stream, first) == TIDE_STREAM_DELIVER) {
      while (tide_input_stream_advance(&stream)) {}
    }
    require(stream.held >> 8 == 0, "nothing beyond the window is held");
    require((tide_input_stream_missing(&stream) & stream.held) == 0, "what is held is not missing");
  }
}

inline void exercise_wire(const uint8_t *bytes, size_t count) {
  exercise_message(bytes, count);
  exercise_discovery(bytes, count);
  exercise_framing(bytes, count);
  exercise_cursor(bytes, count);
  exercise_stream(bytes, count);
}
