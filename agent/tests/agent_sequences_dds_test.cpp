// SPDX-License-Identifier: Apache-2.0
// Some sequences of operations that fail half-way (sequences.h), with the real DDS; the fuzzer agent_fuzz and
// TIDE_SEEDS run more of them. With AddressSanitizer, they reveal dangling pointers.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <semaphore>
#include <thread>

#include "core/limits.h"
#include "dds/domain.h"
#include "dds/fast_dds.h"
#include "dice.h"
#include "sequences.h"

namespace tide::agent::test::agent_sequences_dds_test {

constexpr int kDomain = 91;

// For a campaign with more seeds, TIDE_SEED is the first seed, TIDE_SEEDS their number, and ROS_DOMAIN_ID the domain.
TEST(Sequences, OfTheRealDdsDisturbNobody) {
  const auto real = make_fast_dds({});
  uint64_t created = 0, refused = 0;  // the numbers depend on the speed of DDS: 235 and more were seen
  const uint64_t first = tide::test::environment("TIDE_SEED", 1);
  const uint64_t count = tide::test::environment("TIDE_SEEDS", std::getenv("TIDE_SEED") == nullptr ? 12 : 1);
  for (uint64_t seed = first; seed < first + count; seed++) {
    announce_seed(seed);
    SCOPED_TRACE("seed " + std::to_string(seed));
    Sequences sequences(*real, static_cast<int>(tide::test::environment("ROS_DOMAIN_ID", kDomain)));
    Choices choices(seed);
    for (int sequence = 0; sequence < 10; sequence++) sequences.run(choices, 32);
    sequences.clear(choices);
    EXPECT_GE(sequences.exchanged(), 10u);
    created += sequences.counters().entities_created;
    refused += sequences.counters().entities_refused;
  }
  EXPECT_GT(created, count * 10u);
  EXPECT_GT(refused, count * 10u);
}

// ---- readers and writers ----

// Waits until the entity has been created or refused; returns true if it was created.
bool settled(Made &made) {
  const auto done = std::make_shared<std::binary_semaphore>(0);
  made.await([done] { done->release(); });
  done->acquire();
  return made.state() == Made::State::kMade;
}

template <typename Condition> void await(Condition condition) {
  while (!condition()) std::this_thread::yield();  // if the condition never holds, the time limit of the test ends this
}

class Matched : public testing::Test {
 protected:
  void SetUp() override {
    participant = real->create_participant(kDomain, "");
    ASSERT_TRUE(settled(*participant));
  }
  // Writes samples whose last two octets are their number.
  void write(Writer &writer, size_t count) {
    for (size_t number = 0; number < count; number++) {
      const std::array<uint8_t, 4> payload = {0, 0, static_cast<uint8_t>(number >> 8), static_cast<uint8_t>(number)};
      ASSERT_TRUE(writer.write(payload, false));
    }
    real->flush();
    await([&] { return writer.is_acknowledged(); });
  }

  const std::unique_ptr<Middleware> real = make_fast_dds({});
  std::unique_ptr<Participant> participant;
};

// The agent's thread takes samples only after it has written all messages of its clients, so a reader must keep samples
// until then.
TEST_F(Matched, AReaderKeepsWhatIsWrittenBeforeItIsAsked) {
  const Topic topic{"rt/turn", "T"};
  for (const uint32_t depth : {1u, 10u}) {
    const Qos qos{.depth = depth};
    const auto reader = participant->create_reader(topic, qos, [] {});
    const auto writer = participant->create_writer(topic, qos);
    ASSERT_TRUE(settled(*reader) && settled(*writer));
    await([&] { return writer->has_reader(); });
    write(*writer, 200);
    Sample sample;
    for (size_t number = 0; number < 200; number++) {
      ASSERT_TRUE(reader->take(sample)) << number << " of depth " << depth;
      EXPECT_EQ(sample.payload[2] << 8 | sample.payload[3], static_cast<int>(number));
      EXPECT_EQ(sample.skipped, 0u);
    }
    EXPECT_FALSE(reader->take(sample));
  }
}

// DDS pads samples to a multiple of four octets; a board must read exactly the octets that another board wrote.
TEST_F(Matched, ASampleComesOutAsLongAsItWentIn) {
  const Topic topic{"rt/length", "T"};
  const Qos qos{.depth = 10};
  const auto reader = participant->create_reader(topic, qos, [] {});
  const auto writer = participant->create_writer(topic, qos);
  ASSERT_TRUE(settled(*reader) && settled(*writer));
  await([&] { return writer->has_reader(); });
  for (const size_t bytes : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 55u, 65000u, 65001u}) {
    const std::vector<uint8_t> payload(bytes, 0x5A);
    ASSERT_TRUE(writer->write(payload, bytes % 2 != 0));
    real->flush();
    await([&] { return writer->is_acknowledged(); });
    Sample sample;
    ASSERT_TRUE(reader->take(sample)) << bytes;
    EXPECT_EQ(sample.payload, payload) << sample.payload.size() << " octets for " << bytes;
  }
}

TEST(OpaqueType, TakesAwayWhatAForeignWriterFilledUp) {
  OpaqueType type("T");
  eprosima::fastrtps::rtps::SerializedPayload_t payload(16);
  IncomingSample sample;
  struct {
    uint8_t options;
    uint32_t length, bytes;
  } const cases[] = {{0, 12, 8}, {3, 12, 5}, {2, 12, 6}, {0x40, 12, 8}, {3, 6, 0}, {1, 4, 0}};
  for (const auto &one : cases) {
    payload.length = one.length;
    std::memset(payload.data, 0, one.length);
    payload.data[3] = one.options;
    ASSERT_TRUE(type.deserialize(&payload, &sample));
    EXPECT_EQ(sample.payload.size(), one.bytes) << one.length << " octets, options " << int{one.options};
  }
}

TEST_F(Matched, ALateReaderHasItsDepthOfATransientLocalWriter) {
  const Topic topic{"rt/late", "T"};
  const auto writer = participant->create_writer(topic, {.transient_local = true, .depth = 100});
  ASSERT_TRUE(settled(*writer));
  write(*writer, 50);
  const auto reader = participant->create_reader(topic, {.transient_local = true, .depth = 3}, [] {});
  ASSERT_TRUE(settled(*reader));
  await([&] { return writer->has_reader(); });
  await([&] { return writer->is_acknowledged(); });
  Sample sample;
  for (int number = 47; number < 50; number++) {
    ASSERT_TRUE(reader->take(sample));
    EXPECT_EQ(sample.payload[3], number);
  }
  EXPECT_FALSE(reader->take(sample));
}

TEST_F(Matched, ARequesterIsServedOnceTheServerKnowsIt) {
  const Service service{{"rq/sumRequest", "Q"}, {"rr/sumReply", "R"}};
  std::atomic<int> news = 0;
  const auto requester = participant->create_requester(service, {.depth = 10}, [&] { news++; });
  ASSERT_TRUE(settled(*requester));
  EXPECT_FALSE(requester->is_served());
  auto replier = participant->create_replier(service, {.depth = 10}, [] {});
  ASSERT_TRUE(settled(*replier));
  await([&] { return requester->is_served(); });
  EXPECT_GE(news, 2) << "each end has found its peer";
  replier.reset();
  await([&] { return !requester->is_served(); });
}

// Participants reuse numbers and so ports, because Fast DDS ends the process if a port exceeds 65535.
// A client that restarts again and again must not exhaust them.
TEST(Domains, ParticipantsThatComeAndGoUseUpNoPorts) {
  DdsOptions options;
  options.shared_participants = false;
  const auto real = make_fast_dds(options);
  for (int round = 0; round < 80; round++) {
    const auto participant = real->create_participant(kDomainMaximum, "");
    ASSERT_NE(participant, nullptr) << round;
    ASSERT_TRUE(settled(*participant)) << round;
  }
}

TEST(Domains, TheLastOneHasAnEndWithoutEndingTheProcess) {
  DdsOptions options;
  options.shared_participants = false;
  const auto real = make_fast_dds(options);
  const auto is_made = [](const std::unique_ptr<Participant> &one) { return one != nullptr && settled(*one); };
  std::vector<std::unique_ptr<Participant>> participants;
  for (size_t number = 0; number < participants_maximum(kDomainMaximum); number++) {
    participants.push_back(real->create_participant(kDomainMaximum, ""));
    ASSERT_TRUE(is_made(participants.back())) << number;
  }
  EXPECT_FALSE(is_made(real->create_participant(kDomainMaximum, "")));
  EXPECT_TRUE(is_made(real->create_participant(0, "")));
}

}  // namespace tide::agent::test::agent_sequences_dds_test
