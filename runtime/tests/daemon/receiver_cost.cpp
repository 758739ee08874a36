// SPDX-License-Identifier: Apache-2.0
// What receiving a frame costs over the number of slots, while all of them are in use: tide/receiver.h promises at most
// linear, and it is paid within the critical section. Counted are the branches taken (the receiver is compiled with
// -fsanitize-coverage=trace-pc), so that every run and every machine counts the same.
#include <gtest/gtest.h>

#include "daemon_peer.h"

namespace receiver_cost {
namespace {

using peer::Bytes;

uint64_t branches = 0;

Bytes sample(uint8_t stream, uint16_t sequence, uint8_t reader = 6) {
  return peer::message(stream, sequence, {peer::submessage(TIDE_XRCE_DATA, Bytes{0, 1, 0, reader, 7, 7, 7, 7})});
}

class Receiver {
 public:
  explicit Receiver(size_t slot_count, size_t reserved) {
    tide_receiver_config_t config{};
    memory.give(config, {.classes = {}, .streams = 6, .slots = slot_count, .reassemblies = 1, .slot_bytes = 64});
    config.context = this;
    config.priority_of = [](void *context, uint8_t stream, tide_xrce_request_t request,
                            tide_account_t **account) -> int32_t {
      auto *self = static_cast<Receiver *>(context);
      const auto reader = static_cast<uint8_t>(request.object);
      if (self->has_readers) *account = &self->accounts.at(reader % 2);
      return TIDE_PRIORITY(TIDE_STREAM_LEVEL(stream), self->rising ? std::min(255, self->asked++) : 0);
    };
    config.on_submessage = [](void *context, const tide_delivery_t *) {
      static_cast<Receiver *>(context)->delivered++;
    };
    config.on_control = [](void *, const tide_delivery_t *) {};
    config.on_acknowledge = [](void *, uint8_t, uint16_t, uint16_t) {};
    EXPECT_EQ(tide_receiver_init(&core, &config), TIDE_OK);
    tide_receiver_set_session(&core, 0x81, 0);
    has_readers = reserved > 0;
    for (tide_account_t &account : accounts)
      if (has_readers) tide_receiver_open_account(&core, &account, static_cast<uint16_t>(reserved));
  }
  Receiver(const Receiver &) = delete;

  // Branches taken for one frame.
  uint64_t receive(const Bytes &message) {
    memcpy(tide_receiver_claim(&core), message.data(), message.size());
    const uint64_t before = branches;
    tide_receiver_commit(&core, static_cast<uint16_t>(message.size()), false, 0, 0);
    return branches - before;
  }
  uint64_t process() {
    const uint64_t before = branches;
    tide_receiver_process_most_urgent(&core);
    return branches - before;
  }

  tide_receiver_t core{};
  bool has_readers = false, rising = false;
  int asked = 0, delivered = 0;

 private:
  DaemonMemory memory;
  std::array<tide_account_t, 2> accounts{};
};

// The most expensive of the frames after all slots were taken.
struct Flood {
  const char *name;
  uint64_t (*cost)(size_t slots);
};

uint64_t most(Receiver &receiver, size_t slots, const std::function<Bytes(int)> &frame) {
  const int count = static_cast<int>(slots);
  for (int i = 0; i < count; i++) receiver.receive(frame(i));
  uint64_t cost = 0;
  for (int i = count; i < count + 100; i++) cost = std::max(cost, receiver.receive(frame(i)));
  EXPECT_GE(receiver.core.counters.overflow_dropped, 100u) << "nothing was evicted";
  return cost;
}

const Flood kFloods[] = {
    {"no reader",
     [](size_t slots) {
       Receiver receiver(slots, 0);
       return most(receiver, slots, [](int i) { return sample(0x02, static_cast<uint16_t>(i)); });
     }},
    {"a slow reader with four slots",
     [](size_t slots) {
       Receiver receiver(slots, 4);
       return most(receiver, slots, [](int i) { return sample(0x02, static_cast<uint16_t>(i)); });
     }},
    {"a second reader's frames evict those of the first",
     [](size_t slots) {
       Receiver receiver(slots, 4);
       return most(receiver, slots, [](int i) {
         return sample(i % 2 == 0 ? 0x02 : 0x03, static_cast<uint16_t>(i / 2), i % 2 == 0 ? 6 : 7);
       });
     }},
    {"streams of all levels, the least urgent last",
     [](size_t slots) {
       Receiver receiver(slots, 0);
       return most(receiver, slots,
                   [](int i) { return sample(static_cast<uint8_t>(6 - i % 6), static_cast<uint16_t>(i / 6)); });
     }},
    {"a reliable stream blocked on the reassembly, beside best effort",
     [](size_t slots) {
       Receiver receiver(slots, 2);
       const Bytes whole = peer::submessage(TIDE_XRCE_DATA, Bytes(80, 1));
       const auto begin = peer::fragment({whole.begin(), whole.begin() + 20}, false);
       receiver.receive(peer::message(0x81, 0, {begin}));  // takes the reassembly, and never ends
       receiver.process();
       receiver.receive(peer::message(0x80, 0, {begin}));  // waits for it
       receiver.process();
       for (uint16_t i = 1; i < 8; i++) receiver.receive(sample(0x80, i));
       return most(receiver, slots, [](int i) { return sample(0x01, static_cast<uint16_t>(i)); });
     }},
    {"reliable and best-effort frames of one level",
     [](size_t slots) {
       Receiver receiver(slots, 0);
       for (uint16_t i = 1; i < 12; i++) receiver.receive(sample(0x81, i));
       return most(receiver, slots, [](int i) { return sample(0x02, static_cast<uint16_t>(i)); });
     }},
};

// Where the slots double, so does the cost, within a tenth and a constant; a quadratic one would be four times as much.
void expect_linear(const char *name, const std::function<uint64_t(size_t)> &cost) {
  uint64_t before = cost(8), first = before;
  for (size_t slots = 16; slots <= 256; slots *= 2) {
    const uint64_t now = cost(slots);
    EXPECT_LE(double(now), 2.2 * double(before) + 64) << name << ": " << slots << " slots, before " << before;
    before = now;
  }
  EXPECT_GT(before, first) << name << ": nothing is counted";
}

TEST(ReceiverCost, CommitIsLinearInTheSlots) {
  for (const Flood &flood : kFloods) expect_linear(flood.name, flood.cost);
}

TEST(ReceiverCost, EachStepOfProcessIsLinearInTheSlots) {
  expect_linear("all frames, one after another", [](size_t slots) {
    Receiver receiver(slots, 0);
    for (size_t i = 0; i < slots; i++)
      receiver.receive(sample(static_cast<uint8_t>(1 + i % 4), static_cast<uint16_t>(i / 4)));
    const auto filled = static_cast<int>(slots) - 1;
    uint64_t cost = 0;
    for (int i = 0; i < filled; i++) cost = std::max(cost, receiver.process());
    EXPECT_EQ(receiver.delivered, filled);
    return cost;
  });
}

// What is before an urgent frame in its stream becomes as urgent: each of these moves in the heap, where the library
// of queues is not counted.
TEST(ReceiverCost, PassingOnAnUrgencyIsLinearInTheSlots) {
  expect_linear("each frame more urgent than the one before", [](size_t slots) {
    Receiver receiver(slots, 0);
    receiver.rising = true;
    return most(receiver, slots, [](int i) { return sample(0x02, static_cast<uint16_t>(i)); });
  });
}

}  // namespace
}  // namespace receiver_cost

extern "C" void __sanitizer_cov_trace_pc() { receiver_cost::branches++; }
