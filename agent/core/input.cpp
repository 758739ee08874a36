// SPDX-License-Identifier: Apache-2.0
#include "core/input.h"

#include <algorithm>
#include <utility>

#include "tide/invariant.h"
#include "tide/priority.h"

namespace tide::agent {
namespace {

// The longest submessage that a header can announce, and what may fill it up to a multiple of 4.
constexpr size_t kPaddingMaximum = 3;
constexpr size_t kSubmessageMaximum = TIDE_XRCE_SUBMESSAGE_HEADER_BYTES + UINT16_MAX + kPaddingMaximum;

// A sample that is longer than the sixteen bits of its header can say announces 0, as the stock client does; then the
// last fragment is its end. No other one is that short, as two ids stand before each.
constexpr size_t kWriteBytes = TIDE_XRCE_SUBMESSAGE_HEADER_BYTES + 4;

bool has_no_length(Bytes submessage) {
  return submessage.size() >= kWriteBytes && submessage[0] == TIDE_XRCE_WRITE_DATA && submessage[2] == 0 &&
         submessage[3] == 0;
}

size_t aligned(size_t position) { return (position + 3u) & ~size_t{3}; }

int next_submessage(Bytes message, size_t *position, tide_xrce_submessage_t *submessage) {
  const Bytes rest = message.subspan(std::min(aligned(*position), message.size()));
  if (!has_no_length(rest)) return tide_xrce_next_submessage(message.data(), message.size(), position, submessage);
  *submessage = {};
  submessage->id = rest[0];
  submessage->flags = rest[1];
  submessage->body = rest.data() + TIDE_XRCE_SUBMESSAGE_HEADER_BYTES;
  submessage->body_bytes = rest.size() - TIDE_XRCE_SUBMESSAGE_HEADER_BYTES;
  *position = message.size();
  return 1;
}

}  // namespace

Input::Input(const Limits &limits, Counters &counters, OnSubmessage on_submessage, OnRefused on_refused)
    : limits_(limits),
      counters_(counters),
      on_submessage_(std::move(on_submessage)),
      on_refused_(std::move(on_refused)) {}

Input::Stream *Input::find(uint8_t id) {
  for (const auto &stream : streams_) {
    if (stream->state.id == id) return stream.get();
  }
  if (streams_.size() >= limits_.input_streams) {
    counters_.streams_refused++;
    return nullptr;
  }
  streams_.push_back(std::make_unique<Stream>());
  tide_input_stream_init(&streams_.back()->state, id, TIDE_STREAM_WINDOW_MAXIMUM);
  return streams_.back().get();
}

uint64_t Input::gaps() const {
  uint64_t gaps = 0;
  for (const auto &stream : streams_) {
    if (!TIDE_STREAM_IS_RELIABLE(stream->state.id)) gaps += stream->state.gaps;
  }
  return gaps;
}

uint16_t Input::sequence(uint8_t stream) const {
  const auto found =
      std::find_if(streams_.begin(), streams_.end(), [stream](const auto &one) { return one->state.id == stream; });
  return found == streams_.end() ? uint16_t{0} : (*found)->state.next;
}

const tide_input_stream_t *Input::message(const tide_xrce_header_t &header, Bytes message) {
  Stream *stream = find(header.stream);
  if (stream == nullptr) return nullptr;
  switch (tide_input_stream_arrive(&stream->state, header.sequence)) {
    case TIDE_STREAM_DELIVER:
      deliver_in_order(*stream, message);
      deliver_held(*stream);
      break;
    case TIDE_STREAM_HOLD:
      hold(*stream, header.sequence, message);
      break;
    case TIDE_STREAM_DUPLICATE:
      counters_.duplicates++;
      break;
    case TIDE_STREAM_OUTSIDE:
      counters_.outside_window++;
      break;
  }
  check();
  return TIDE_STREAM_IS_RELIABLE(header.stream) ? &stream->state : nullptr;
}

const tide_input_stream_t *Input::heartbeat(const tide_xrce_heartbeat_t &heartbeat) {
  if (!TIDE_STREAM_IS_RELIABLE(heartbeat.stream)) return nullptr;
  Stream *stream = find(heartbeat.stream);
  if (stream == nullptr) return nullptr;
  const uint16_t before = stream->state.next;
  const uint16_t given_up = tide_input_stream_heartbeat(&stream->state, heartbeat.first_unacknowledged, heartbeat.last);
  if (given_up == 0) return &stream->state;
  counters_.given_up += given_up;
  drop_fragments(*stream);
  stream->skip_fragments = true;
  for (uint16_t skipped = 0; skipped < given_up && skipped < TIDE_STREAM_WINDOW_MAXIMUM; skipped++) {
    std::vector<uint8_t> &place = stream->held[(before + skipped) % TIDE_STREAM_WINDOW_MAXIMUM];
    held_bytes_ -= place.size();
    place.clear();
  }
  deliver_held(*stream);
  check();
  return &stream->state;
}

// A message of which something waits counts as held, so that it is neither acknowledged nor asked for.
void Input::deliver_in_order(Stream &stream, Bytes message) {
  deliver(stream, message);
  if (stream.waiting.empty() || !TIDE_STREAM_IS_RELIABLE(stream.state.id)) {
    tide_input_stream_advance(&stream.state);
  } else {
    stream.state.held |= 1u;
  }
}

void Input::deliver_held(Stream &stream) {
  while (stream.waiting.empty() && (stream.state.held & 1u) != 0u) {
    std::vector<uint8_t> message;
    message.swap(stream.held[stream.state.next % TIDE_STREAM_WINDOW_MAXIMUM]);
    held_bytes_ -= message.size();
    deliver_in_order(stream, message);
  }
}

void Input::resume(const OnProgress &on_progress) {
  for (const auto &stream : streams_) {
    if (stream->waiting.empty()) continue;
    std::vector<std::vector<uint8_t>> parts;
    parts.swap(stream->waiting);
    stalled_streams_--;
    for (std::vector<uint8_t> &part : parts) {
      held_bytes_ -= part.size();
      if (stream->waiting.empty()) {
        process(*stream, part);
      } else {
        wait(*stream, std::move(part));
      }
    }
    if (!stream->waiting.empty() || !TIDE_STREAM_IS_RELIABLE(stream->state.id)) continue;
    tide_input_stream_advance(&stream->state);
    deliver_held(*stream);
    on_progress(stream->state);
  }
  check();
}

void Input::submessage(uint8_t stream_id, const tide_xrce_submessage_t &submessage) {
  Stream *stream = find(stream_id);
  if (stream == nullptr) return;
  const uint8_t *start = submessage.body - TIDE_XRCE_SUBMESSAGE_HEADER_BYTES;
  process(*stream, {start, TIDE_XRCE_SUBMESSAGE_HEADER_BYTES + submessage.body_bytes});
}

void Input::hold(Stream &stream, uint16_t sequence, Bytes message) {
  if (held_bytes_ + message.size() > limits_.held_bytes) {
    counters_.held_dropped++;
    tide_input_stream_forget(&stream.state, sequence);
    return;
  }
  stream.held[sequence % TIDE_STREAM_WINDOW_MAXIMUM].assign(message.begin(), message.end());
  held_bytes_ += message.size();
}

void Input::deliver(Stream &stream, Bytes message) {
  tide_xrce_header_t header;
  const int header_bytes = tide_xrce_get_header(message.data(), message.size(), &header);
  if (header_bytes >= 0) process(stream, message.subspan(static_cast<size_t>(header_bytes)));
}

// Ends early when something has to wait, with everything behind it.
void Input::process(Stream &stream, Bytes submessages) {
  size_t position = 0;
  tide_xrce_submessage_t submessage;
  int more = 1;
  while (stream.waiting.empty()) {
    const Bytes rest = submessages.subspan(std::min(aligned(position), submessages.size()));
    more = next_submessage(submessages, &position, &submessage);
    if (more != 1) break;
    if (submessage.id == TIDE_XRCE_FRAGMENT) {
      fragment(stream, submessage);
    } else {
      stream.skip_fragments = false;
      offer(stream, submessage, rest);
      if (!stream.waiting.empty()) return;
    }
  }
  if (more < 0) counters_.malformed++;
  const Bytes behind = submessages.subspan(std::min(aligned(position), submessages.size()));
  if (stream.waiting.empty() || behind.empty()) return;
  if (TIDE_STREAM_IS_RELIABLE(stream.state.id) || held_bytes_ + behind.size() <= limits_.held_bytes) {
    wait(stream, {behind.begin(), behind.end()});
  } else {
    counters_.held_dropped++;
  }
}

// rest: from this submessage on.
void Input::offer(Stream &stream, const tide_xrce_submessage_t &submessage, Bytes rest) {
  if (on_submessage_(stream.state.id, submessage)) return;
  if (held_bytes_ + rest.size() <= limits_.held_bytes + (has_no_length(rest) ? limits_.sample_bytes : 0)) {
    wait(stream, {rest.begin(), rest.end()});
  } else {
    counters_.held_dropped++;
  }
}

void Input::wait(Stream &stream, std::vector<uint8_t> rest) {
  if (stream.waiting.empty()) stalled_streams_++;
  held_bytes_ += rest.size();
  stream.waiting.push_back(std::move(rest));
}

bool Input::is_stalled(uint8_t stream_id) const {
  return std::any_of(streams_.begin(), streams_.end(), [stream_id](const auto &stream) {
    return stream->state.id == stream_id && !stream->waiting.empty();
  });
}

void Input::fragment(Stream &stream, const tide_xrce_submessage_t &submessage) {
  const bool last = (submessage.flags & TIDE_XRCE_FLAG_LAST_FRAGMENT) != 0;
  if (!TIDE_STREAM_IS_RELIABLE(stream.state.id)) {
    counters_.fragments_dropped++;
    return;
  }
  if (!stream.skip_fragments && !has_room(stream, submessage)) {
    refuse_fragments(stream);
    stream.skip_fragments = true;
  }
  if (stream.skip_fragments) {
    counters_.fragments_dropped++;
    stream.skip_fragments = !last;
    return;
  }
  stream.fragments.insert(stream.fragments.end(), submessage.body, submessage.body + submessage.body_bytes);
  fragment_bytes_ += submessage.body_bytes;
  if (last) finish_fragments(stream);
}

// For all but one stream as much as before there were longer samples.
bool Input::has_room(const Stream &stream, const tide_xrce_submessage_t &submessage) const {
  const Bytes start =
      stream.fragments.empty() ? Bytes{submessage.body, submessage.body_bytes} : Bytes{stream.fragments};
  const size_t bytes = stream.fragments.size() + submessage.body_bytes;
  if (has_no_length(start) && bytes > kSubmessageMaximum)
    return bytes <= kWriteBytes + limits_.sample_bytes &&
           fragment_bytes_ + submessage.body_bytes <= limits_.reassembly_bytes + limits_.sample_bytes;
  return bytes <= kSubmessageMaximum && fragment_bytes_ + submessage.body_bytes <= limits_.reassembly_bytes;
}

void Input::finish_fragments(Stream &stream) {
  size_t position = 0;
  tide_xrce_submessage_t submessage;
  const std::vector<uint8_t> &fragments = stream.fragments;
  const bool whole = next_submessage(fragments, &position, &submessage) == 1 && submessage.id != TIDE_XRCE_FRAGMENT &&
                     fragments.size() - position <= kPaddingMaximum;
  if (!whole) {
    refuse_fragments(stream);
    return;
  }
  const std::vector<uint8_t> taken = std::exchange(stream.fragments, {});
  fragment_bytes_ -= taken.size();
  offer(stream, submessage, taken);
}

// A length beyond 65535 is announced modulo 65536: a part of such a message must not pass for the whole.
void Input::refuse_fragments(Stream &stream) {
  counters_.fragmented_refused++;
  const std::vector<uint8_t> refused = std::exchange(stream.fragments, {});
  fragment_bytes_ -= refused.size();
  if (refused.size() < TIDE_XRCE_SUBMESSAGE_HEADER_BYTES) return;
  tide_xrce_submessage_t submessage{};
  submessage.id = refused[0];
  submessage.flags = refused[1];
  submessage.body = refused.data() + TIDE_XRCE_SUBMESSAGE_HEADER_BYTES;
  submessage.body_bytes = refused.size() - TIDE_XRCE_SUBMESSAGE_HEADER_BYTES;
  on_refused_(stream.state.id, submessage);
}

void Input::drop_fragments(Stream &stream) {
  fragment_bytes_ -= stream.fragments.size();
  stream.fragments.clear();
}

void Input::check() const {
#if TIDE_INVARIANTS
  size_t held = 0, fragments = 0, stalled = 0;
  for (const auto &stream : streams_) {
    for (size_t i = 0; i < stream->held.size(); i++) {
      const std::vector<uint8_t> &place = stream->held[(stream->state.next + i) % stream->held.size()];
      held += place.size();
      TIDE_INVARIANT(place.empty() || (stream->state.held >> i & 1u) != 0);
    }
    for (const auto &part : stream->waiting) held += part.size();
    fragments += stream->fragments.size();
    stalled += stream->waiting.empty() ? 0 : 1;
    TIDE_INVARIANT(stream->fragments.size() <= kSubmessageMaximum || has_no_length(stream->fragments));
  }
  TIDE_INVARIANT(held == held_bytes_);
  TIDE_INVARIANT(fragments == fragment_bytes_ && fragments <= limits_.reassembly_bytes + limits_.sample_bytes);
  TIDE_INVARIANT(stalled == stalled_streams_ && streams_.size() <= limits_.input_streams);
#endif
}

}  // namespace tide::agent
