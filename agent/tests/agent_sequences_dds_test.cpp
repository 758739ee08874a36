// SPDX-License-Identifier: Apache-2.0
// Sequences of operations that fail half-way (sequences.h) with the real DDS, a bounded number of them; the fuzzer
// agent_fuzz and the program agent_campaign run more. Under AddressSanitizer this is where a dangling pointer shows.
#include <gtest/gtest.h>

#include "core/domains.h"
#include "dds/fast_dds.h"
#include "sequences.h"
#include "shared_middleware.h"

#if defined(__SANITIZE_ADDRESS__)
// As Debian ships it, Fast DDS deletes its own readers with another size than it allocated.
extern "C" const char *__asan_default_options();
extern "C" const char *__asan_default_options() { return "new_delete_type_mismatch=0:abort_on_error=1:handle_abort=0"; }
#endif

namespace tide::agent::test {
namespace {

constexpr int kDomain = 91;

TEST(Sequences, OfTheRealDdsDisturbNobody) {
  const auto real = make_fast_dds({});
  SharedMiddleware middleware(*real, 16);
  uint64_t created = 0, refused = 0;  // of one seed they depend on how long the DDS takes
  for (uint64_t seed = 1; seed <= 12; seed++) {
    announce_seed(seed);
    SCOPED_TRACE("seed " + std::to_string(seed));
    Sequences sequences(middleware, kDomain);
    Choices choices(seed);
    for (int sequence = 0; sequence < 10; sequence++) sequences.run(choices, 32);
    sequences.clear(choices);
    EXPECT_GE(sequences.exchanged(), 10u);
    created += sequences.counters().entities_created;
    refused += sequences.counters().entities_refused;
  }
  EXPECT_GT(created, 12 * 20u);
  EXPECT_GT(refused, 12 * 20u);
}

// Fast DDS ends the process for a port beyond 65535.
// Numbers, and with them ports, come back: a client that is restarted for ever does not use them up.
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

}  // namespace
}  // namespace tide::agent::test
