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
  for (uint64_t seed = 1; seed <= 12; seed++) {
    announce_seed(seed);
    SCOPED_TRACE("seed " + std::to_string(seed));
    Sequences sequences(middleware, kDomain);
    Choices choices(seed);
    for (int sequence = 0; sequence < 10; sequence++) sequences.run(choices, 32);
    sequences.clear(choices);
    EXPECT_GE(sequences.exchanged(), 10u);
    EXPECT_GT(sequences.counters().entities_created, 20u);
    EXPECT_GT(sequences.counters().entities_refused, 20u);
  }
}

// Fast DDS ends the process for a port beyond 65535.
// Numbers, and with them ports, come back: a client that is restarted for ever does not use them up.
TEST(Domains, ParticipantsThatComeAndGoUseUpNoPorts) {
  const auto real = make_fast_dds({});
  for (int round = 0; round < 80; round++) ASSERT_NE(real->create_participant(kDomainMaximum, ""), nullptr) << round;
}

TEST(Domains, TheLastOneHasAnEndWithoutEndingTheProcess) {
  const auto real = make_fast_dds({});
  std::vector<std::unique_ptr<Participant>> participants;
  for (size_t number = 0; number < participants_maximum(kDomainMaximum); number++) {
    participants.push_back(real->create_participant(kDomainMaximum, ""));
    ASSERT_NE(participants.back(), nullptr) << number;
  }
  EXPECT_EQ(real->create_participant(kDomainMaximum, ""), nullptr);
  EXPECT_NE(real->create_participant(0, ""), nullptr);
}

}  // namespace
}  // namespace tide::agent::test
