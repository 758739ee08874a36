// SPDX-License-Identifier: Apache-2.0
// The request and the answer by which boards find an agent.
#include <gtest/gtest.h>

#include <vector>

#include "tide/status.h"
#include "tide/xrce.h"

namespace xrce_discovery_test {

using Octets = std::vector<uint8_t>;

constexpr tide_xrce_info_t kInfo = {{9, TIDE_XRCE_OBJECT_AGENT}, 0, 0, 0x010F, 1, 0};

Octets answer_with(tide_xrce_locator_t locator) {
  Octets bytes(TIDE_XRCE_DISCOVERY_ANSWER_BYTES);
  bytes.resize(tide_xrce_put_discovery_answer(bytes.data(), &kInfo, locator));
  return bytes;
}

int read(const Octets &bytes, tide_xrce_locator_t &locator) {
  return tide_xrce_get_discovery_answer(bytes.data(), bytes.size(), &locator);
}

TEST(Discovery, AQuestionIsWhatStockClientsSend) {
  Octets bytes(TIDE_XRCE_DISCOVERY_QUESTION_BYTES);
  bytes.resize(tide_xrce_put_discovery_question(bytes.data()));
  EXPECT_EQ(bytes, (Octets{0x80, 0, 0, 0, 0x02, 0x01, 8, 0, 0, 9, 0xFF, 0xFD, 3, 0, 0, 0}));
  tide_xrce_request_t request{};
  EXPECT_TRUE(tide_xrce_get_discovery_question(bytes.data(), bytes.size(), &request));
  EXPECT_EQ(request.request, 9);
  for (size_t length = 0; length < bytes.size(); length++) {
    const Octets cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(length));
    EXPECT_FALSE(tide_xrce_get_discovery_question(cut.data(), cut.size(), &request)) << length;
  }
  bytes[11] = 0xFE;  // the query names another object
  EXPECT_FALSE(tide_xrce_get_discovery_question(bytes.data(), bytes.size(), &request));
}

TEST(Discovery, AnAnswerSaysTheAddress) {
  const Octets bytes = answer_with({{192, 168, 1, 7}, 8888});
  EXPECT_EQ(bytes.size(), TIDE_XRCE_DISCOVERY_ANSWER_BYTES);
  tide_xrce_locator_t locator{};
  ASSERT_EQ(read(bytes, locator), TIDE_OK);
  EXPECT_EQ(Octets(locator.address, locator.address + 4), (Octets{192, 168, 1, 7}));
  EXPECT_EQ(locator.port, 8888);
}

TEST(Discovery, AnAnswerThatIsCutIsNone) {
  const Octets bytes = answer_with({{192, 168, 1, 7}, 8888});
  for (size_t length = 0; length < bytes.size(); length++) {
    Octets cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(length));
    cut.shrink_to_fit();
    tide_xrce_locator_t locator{};
    EXPECT_LT(read(cut, locator), 0) << length;
  }
}

TEST(Discovery, WithoutAPortOrWithAnotherVersionThereIsNoAgent) {
  tide_xrce_locator_t locator{};
  EXPECT_EQ(read(answer_with({{10, 0, 0, 1}, 0}), locator), TIDE_ERROR_NOT_FOUND);
  Octets newer = answer_with({{10, 0, 0, 1}, 8888});
  constexpr size_t kVersion =
      4 + 4 + 4 + 2 + 1 + 1 + 4;  // header, submessage, request, statuses, present, kind, cookie
  ASSERT_EQ(newer[kVersion], 1);
  newer[kVersion] = 2;
  EXPECT_EQ(read(newer, locator), TIDE_ERROR_MALFORMED);
}

// An answer whose list of addresses consists of the given octets, in either byte order.
Octets answer_with_list(const Octets &list, bool big_endian) {
  Octets bytes = answer_with({{0, 0, 0, 0}, 1});
  bytes.resize(8 + 24);
  bytes.insert(bytes.end(), list.begin(), list.end());
  if (big_endian) bytes[5] = 0;
  bytes[6] = static_cast<uint8_t>(bytes.size() - 8);
  return bytes;
}

TEST(Discovery, AddressesOfOtherKindsAreSkipped) {
  const Octets list = {4, 0,  0, 0,                                                                      // count
                       0, 1,  2, 3,                                                                      // small
                       3, 0,  0, 0, 2, 0, 0,    0,   'a', 0,                                             // a text
                       2, 1,  2, 3, 4, 5, 6,    7,   8,   9, 10, 11, 12, 13, 14, 15, 16, 0, 1, 0, 0, 0,  // large
                       1, 10, 0, 0, 1, 0, 0xB8, 0x22};  // the expected address
  tide_xrce_locator_t locator{};
  const int status = read(answer_with_list(list, false), locator);
  ASSERT_EQ(status, TIDE_OK);
  EXPECT_EQ(Octets(locator.address, locator.address + 4), (Octets{10, 0, 0, 1}));
  EXPECT_EQ(locator.port, 8888);
}

TEST(Discovery, ACountBeyondTheMessageIsMalformed) {
  tide_xrce_locator_t locator{};
  EXPECT_EQ(read(answer_with_list({0xFF, 0xFF, 0xFF, 0x7F, 0, 1, 2, 3}, false), locator), TIDE_ERROR_MALFORMED);
  EXPECT_EQ(read(answer_with_list({1, 0, 0, 0, 9, 0, 0, 0}, false), locator), TIDE_ERROR_MALFORMED);
  EXPECT_EQ(read(answer_with_list({0, 0, 0, 0}, false), locator), TIDE_ERROR_NOT_FOUND);
}

TEST(Discovery, BothByteOrdersAreRead) {
  Octets bytes = answer_with_list({0, 0, 0, 1, 1, 10, 0, 0, 1, 0, 0x22, 0xB8}, true);
  tide_xrce_locator_t locator{};
  ASSERT_EQ(read(bytes, locator), TIDE_OK);
  EXPECT_EQ(locator.port, 8888);
}

}  // namespace xrce_discovery_test
