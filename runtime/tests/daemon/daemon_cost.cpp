// SPDX-License-Identifier: Apache-2.0
// Cost of calls over the number of slots, nodes and streams, while all of them are in use. tide/receiver.h and
// tide/transmitter.h promise these costs, because the calls run within the critical section.
#include <gtest/gtest.h>

#include "cost.h"
#include "daemon_peer.h"

namespace daemon_cost {
namespace {

using peer::Bytes;
using tide::test::branches;
using tide::test::cost_of;
using tide::test::expect_linear;
using tide::test::expect_logarithmic;

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

  // Number of branches taken for one frame.
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

// The cost of the most expensive frame, when all slots are taken.
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
       receiver.receive(peer::message(0x81, 0, {begin}));  // takes the reassembly buffer, and never ends
       receiver.process();
       receiver.receive(peer::message(0x80, 0, {begin}));  // this message waits for the reassembly buffer
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

// Frames that precede an urgent frame in its stream become as urgent. Each of them moves in the heap, which adds a
// logarithmic number of steps.
TEST(ReceiverCost, PassingOnAnUrgencyIsLinearInTheSlotsButForTheHeap) {
  expect_linear("each frame more urgent than the one before", [](size_t slots) {
    Receiver receiver(slots, 0);
    receiver.rising = true;
    return most(receiver, slots, [](int i) { return sample(0x02, static_cast<uint16_t>(i)); });
  });
}

// ---- the transmitter ----

constexpr uint8_t kBestEffort = TIDE_STREAM_BEST_EFFORT(1), kReliable = TIDE_STREAM_RELIABLE(1);
constexpr tide_priority_t kPriority = TIDE_PRIORITY(1, 0);

Bytes sample_of(uint16_t writer) {
  return peer::submessage(TIDE_XRCE_WRITE_DATA,
                          {0, 0, static_cast<uint8_t>(writer >> 8), static_cast<uint8_t>(writer), 7, 7});
}

int submit(peer::Transmitter &t, uint8_t stream, uint16_t writer = 0x15) {
  return t.submit(stream, sample_of(writer), TIDE_PRIORITY(TIDE_STREAM_LEVEL(stream), 0), 0, TIDE_FOREVER, nullptr,
                  writer);
}

TEST(TransmitterCost, SubmitNextAndSentAreLogarithmicInTheNodes) {
  for (const uint8_t stream : {kBestEffort, kReliable}) {
    expect_logarithmic("submit", [&](size_t nodes) {
      peer::Transmitter t({{64, nodes}});
      uint64_t cost = 0;
      for (size_t i = 0; i < nodes; i++) cost = std::max(cost, cost_of([&] { submit(t, stream); }));
      EXPECT_EQ(t.core.nodes_in_use, nodes);
      return cost;
    });
    expect_logarithmic("next and sent", [&](size_t nodes) {
      peer::Transmitter t({{64, nodes}});
      for (size_t i = 0; i < nodes; i++) submit(t, stream);
      return cost_of([&] { EXPECT_FALSE(t.send().empty()); });
    });
  }
}

TEST(TransmitterCost, AnAcknowledgmentIsLogarithmicInTheNodes) {
  expect_logarithmic("acknack", [](size_t nodes) {
    peer::Transmitter t({{64, nodes}});
    for (size_t i = 0; i < nodes; i++) submit(t, kReliable);
    t.send();
    return cost_of([&] { t.acknack(kReliable, 1, 0); });
  });
}

TEST(TransmitterCost, ACallIsLinearInTheStreamsInUse) {
  expect_linear("submit, next and sent", [](size_t streams) {
    const size_t used = std::min<size_t>(streams, 120);
    peer::Transmitter t({{64, used + 1}}, {}, used);
    for (size_t i = 0; i < used; i++) submit(t, static_cast<uint8_t>(TIDE_STREAM_RELIABLE(i)));
    const auto last = static_cast<uint8_t>(TIDE_STREAM_RELIABLE(used - 1));
    return cost_of([&] {
      submit(t, last);
      EXPECT_FALSE(t.send().empty());
    });
  });
}

TEST(TransmitterCost, AcquireIsConstantAndLinearWhereItReplaces) {
  uint64_t first = 0;
  for (size_t nodes = 8; nodes <= 512; nodes *= 2) {
    peer::Transmitter t({{64, nodes}});
    for (size_t i = 0; i < nodes / 2; i++) submit(t, kBestEffort);
    tide_node_t *node = nullptr;
    const uint64_t cost = cost_of([&] { tide_transmitter_acquire_for(&t.core, 12, kPriority, 0x25, &node); });
    ASSERT_NE(node, nullptr);
    EXPECT_LE(cost, first == 0 ? cost : first + 64) << nodes << " nodes";  // 64 for counting the levels and writers
    first = first == 0 ? cost : first;
  }
  const auto full = [](size_t nodes, const std::function<int(peer::Transmitter &, tide_node_t **)> &acquire) {
    peer::Transmitter t({{64, nodes}});
    for (size_t i = 0; i < nodes; i++) submit(t, kBestEffort);
    tide_node_t *node = nullptr;
    const uint64_t cost = cost_of([&] { EXPECT_EQ(acquire(t, &node), TIDE_OK); });
    EXPECT_EQ(t.core.counters.evicted, 1u);
    return cost;
  };
  expect_linear("a more urgent message", [&](size_t nodes) {
    return full(nodes, [](peer::Transmitter &t, tide_node_t **node) {
      return tide_transmitter_acquire_for(&t.core, 12, TIDE_PRIORITY(2, 0), 0x25, node);
    });
  });
  expect_linear("KEEP_LAST beside a deeper one", [&](size_t nodes) {
    return full(nodes, [](peer::Transmitter &t, tide_node_t **node) {
      return tide_transmitter_acquire_last(&t.core, 12, kPriority, 0x25, node);
    });
  });
  expect_linear("KEEP_LAST of depth 1", [](size_t nodes) {
    peer::Transmitter t({{64, nodes}});
    for (size_t i = 1; i < nodes; i++) submit(t, kBestEffort, static_cast<uint16_t>(i << 4 | 5));
    tide_node_t *node = nullptr;
    tide_transmitter_acquire_for(&t.core, 12, kPriority, 0x15, &node);
    const Bytes bytes = sample_of(0x15);
    std::copy(bytes.begin(), bytes.end(), node->bytes);
    const uint64_t cost =
        cost_of([&] { tide_transmitter_keep_last(&t.core, node, kBestEffort, 1, 3 * TIDE_BURST_NS); });
    EXPECT_EQ(t.core.counters.evicted, 1u);
    return cost;
  });
}

}  // namespace
}  // namespace daemon_cost
