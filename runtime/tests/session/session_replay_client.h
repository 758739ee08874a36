// SPDX-License-Identifier: Apache-2.0
// A session of ours with the requests of a recorded client.
#pragma once

#include <gtest/gtest.h>
#include <deque>
#include <iterator>
#include <memory>
#include <vector>

#include "daemon_memory.h"
#include "session_replay_recording.h"
#include "tide/session.h"
#include "tide/status.h"

namespace session_replay {

constexpr int64_t never_ns = INT64_C(1) << 55;

// One session of tide's client, on a link that takes a message at once.
class Client {
 public:
  Client(const tide_xrce_create_client_t &wanted, uint8_t object_stream, bool serial, int64_t start_ns)
      : now_ns(start_ns), serial_(serial) {
    platform_ = {this, now, nullptr, enter, leave, nullptr, nullptr, event_init, event_set, event_wait};
    memory_.give(config.daemon, {.classes = {{256, 24}, {4096, 6}}, .streams = 6, .slots = 24, .reassemblies = 1});
    config.daemon.transmitter.window = config.daemon.receiver.window = 16;
    config.daemon.transmitter.pad_last = true;
    config.daemon.transmitter.heartbeat_delay_ns = 100'000'000;
    config.daemon.platform = &platform_;
    config.key = wanted.key;
    config.session = wanted.session;
    config.mtu = static_cast<uint16_t>(wanted.mtu + 4);
    config.vendor = wanted.vendor;
    config.object_stream = object_stream;
    config.creations_at_once = 16;
    config.objects = table_;
    config.object_count = std::size(table_);
    config.silence_limit_ns = never_ns; /* pings follow the recording */
    config.daemon.transmitter.message_bytes = wanted.mtu;
    EXPECT_EQ(tide_session_init(&session, &config), TIDE_OK);
    const tide_link_t link = {this, start, nullptr, nullptr, 0};
    EXPECT_EQ(tide_daemon_attach_link(&session.daemon, &link, client_address), TIDE_OK);
  }

  void settle() {
    for (int i = 0; i < 200; ++i) {
      const int64_t next_ns = tide_session_poll(&session);
      bool more = next_ns <= now_ns;
      if (busy_) {
        busy_ = false;
        more = true;
        tide_daemon_on_transmit_complete(&session.daemon);
      }
      while (tide_daemon_most_urgent(&session.daemon) != TIDE_PRIORITY_NONE) {
        tide_daemon_process_most_urgent(&session.daemon);
        more = true;
      }
      if (!more) return;
    }
    ADD_FAILURE() << "the session does not come to rest";
  }
  void advance(int64_t until_ns) {
    settle();
    for (int64_t next_ns; (next_ns = tide_session_poll(&session)) <= until_ns; settle())
      now_ns = std::max(now_ns, next_ns);
    now_ns = std::max(now_ns, until_ns);
    settle();
  }
  void feed(const Bytes &bytes) {
    if (serial_)
      tide_daemon_on_bytes(&session.daemon, bytes.data(), bytes.size());
    else
      tide_daemon_on_message(&session.daemon, bytes.data(), bytes.size());
    settle();
  }

  void create(const Submessage &submessage) {
    tide_cdr_t cdr;
    tide_cdr_reader(&cdr, submessage.body.data(), submessage.body.size(), !submessage.little_endian());
    tide_xrce_create_t create;
    tide_xrce_get_create(&cdr, &create);
    ASSERT_EQ(cdr.status, TIDE_OK);
    const uint8_t flags = submessage.flags & (TIDE_XRCE_FLAG_REUSE | TIDE_XRCE_FLAG_REPLACE);
    session.config.create_flags = flags == 0 ? TIDE_SESSION_CREATE_PLAIN : flags;
    objects_.push_back({create.object, create.request.object, 0, 0, 0, 0});
    ASSERT_EQ(tide_session_add_object(&session, &objects_.back()), TIDE_OK);
    settle();
  }
  void remove(uint16_t id) {
    tide_object_t *object = nullptr;
    for (tide_object_t &candidate : objects_)
      if (candidate.state == TIDE_OBJECT_CREATED && (object == nullptr || object->id != id)) object = &candidate;
    ASSERT_NE(object, nullptr);
    object->id = id; /* because the recording also deletes an unknown object */
    ASSERT_EQ(tide_session_remove_object(&session, object), TIDE_OK);
    settle();
  }
  void write(uint8_t stream, const Submessage &submessage) {
    tide_write_t write;
    const uint32_t bytes = static_cast<uint32_t>(submessage.body.size() - 4);
    const uint16_t writer = static_cast<uint16_t>(submessage.body[2] << 8 | submessage.body[3]);
    ASSERT_EQ(tide_session_write_begin(&session, &write, writer, TIDE_STREAM_IS_RELIABLE(stream),
                                       TIDE_PRIORITY(TIDE_STREAM_LEVEL(stream), 0), bytes),
              TIDE_OK);
    tide_cdr_put_bytes(&write.cdr, submessage.body.data() + 4, bytes);
    ASSERT_EQ(tide_session_write_end(&write), TIDE_OK);
    settle();
  }
  void read(const Submessage &submessage) {
    tide_cdr_t cdr;
    tide_cdr_reader(&cdr, submessage.body.data(), submessage.body.size(), false);
    tide_xrce_read_data_t read;
    tide_xrce_get_read_data(&cdr, &read);
    ASSERT_EQ(cdr.status, TIDE_OK);
    if (read.max_samples == 0) {
      for (auto &reader : readers_)
        if (reader->object == read.request.object) {
          EXPECT_EQ(tide_session_remove_reader(&session, reader.get()), TIDE_OK);
        }
      return settle();
    }
    readers_.push_back(std::make_unique<tide_reader_t>());
    tide_reader_t *reader = readers_.back().get();
    reader->object = read.request.object;
    reader->reliable = TIDE_STREAM_IS_RELIABLE(read.stream);
    reader->priority = TIDE_PRIORITY(TIDE_STREAM_LEVEL(read.stream), 0);
    reader->max_samples = read.max_samples == 0xFFFF ? 0 : read.max_samples;
    reader->max_elapsed_s = read.max_elapsed_time_s;
    reader->max_bytes_per_s = read.max_bytes_per_second;
    reader->min_pace_ms = read.min_pace_period_ms;
    rings_.emplace_back(4);
    reader->samples = rings_.back().data();
    reader->depth = 4;
    reader->context = this;
    reader->on_sample = [](void *context, tide_reader_t *which) {
      Client *self = static_cast<Client *>(context);
      const tide_sample_t *sample = tide_session_peek(&self->session, which);
      ASSERT_NE(sample, nullptr);
      self->samples.emplace_back(sample->bytes, sample->bytes + sample->length);
      tide_session_take_done(&self->session, which);
    };
    ASSERT_EQ(tide_session_add_reader(&session, reader), TIDE_OK);
    settle();
  }

  int64_t now_ns;
  tide_session_t session{};
  tide_session_config_t config{};
  std::vector<Bytes> sent;
  std::vector<Bytes> samples;

 private:
  static int64_t now(void *context) { return static_cast<Client *>(context)->now_ns; }
  static uintptr_t enter(void *) { return 0; }
  static void leave(void *, uintptr_t) {}
  static void event_init(void *, tide_event_t *event) { event->state = 0; }
  static void event_set(void *, tide_event_t *event) { event->state = 1; }
  static int event_wait(void *, tide_event_t *, int64_t) { return 0; }
  static int start(void *context, const tide_frame_parts_t *frame) {
    Client *self = static_cast<Client *>(context);
    Bytes bytes(frame->head, frame->head + frame->head_bytes);
    bytes.insert(bytes.end(), frame->body, frame->body + frame->body_bytes);
    bytes.insert(bytes.end(), frame->tail, frame->tail + frame->tail_bytes);
    self->sent.push_back(bytes);
    self->busy_ = true;
    return TIDE_OK;
  }
  bool serial_, busy_ = false;
  tide_platform_t platform_{};
  tide_object_t *table_[32]{};
  std::deque<tide_object_t> objects_;
  std::vector<std::unique_ptr<tide_reader_t>> readers_;
  std::deque<std::vector<tide_sample_t>> rings_;
  DaemonMemory memory_;
};

}  // namespace session_replay
