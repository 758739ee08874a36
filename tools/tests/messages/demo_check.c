/* SPDX-License-Identifier: Apache-2.0 */
/* Uses generated messages of the demo package as a user's program would. At the first mismatch it prints the line and
 * aborts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "demo_msgs/msg/everything.h"
#include "demo_msgs/msg/nothing.h"
#include "demo_msgs/srv/turn.h"
#include "rosidl_runtime_c/string_functions.h"
#include "rosidl_runtime_c/u16string_functions.h"
#include "tide/message_memory.h"
#include "tide/status.h"

#define REQUIRE(condition)                                    \
  do {                                                        \
    if (!(condition)) {                                       \
      fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
      abort();                                                \
    }                                                         \
  } while (0)

typedef demo_msgs__msg__Everything everything_t;
typedef demo_msgs__msg__Everything__Storage storage_t;

static storage_t storage, other_storage;

static void check_constants(void) {
  REQUIRE(demo_msgs__msg__Everything__SMALL == -128);
  REQUIRE(demo_msgs__msg__Everything__LARGE == 4294967295u);
  REQUIRE(demo_msgs__msg__Everything__LOWEST == INT64_MIN);
  REQUIRE(demo_msgs__msg__Everything__HIGHEST == UINT64_MAX);
  REQUIRE(demo_msgs__msg__Everything__HALF == 0.5f);
  REQUIRE(demo_msgs__msg__Everything__YES);
  REQUIRE(strcmp(demo_msgs__msg__Everything__GREETING, "say \"hi\"") == 0);
  REQUIRE(demo_msgs__msg__Everything__bounded_numbers__MAX_SIZE == 3);
}

static void check_defaults(const everything_t *message) {
  static const uint16_t hoehe[] = {'h', 0xf6, 'h', 'e'};
  REQUIRE(message->a_bool && message->a_byte == 255 && message->a_char == 65 && message->an_int8 == -128);
  REQUIRE(message->a_uint8 == 0 && message->a_uint16 == 65535 && message->an_int32 == INT32_MIN);
  REQUIRE(message->a_uint32 == UINT32_MAX && message->an_int64 == INT64_MIN && message->a_uint64 == UINT64_MAX);
  REQUIRE(message->a_float32 == 1.5f && message->a_float64 == -1e300);
  REQUIRE(message->a_string.size == 4 && memcmp(message->a_string.data, "tide", 5) == 0);
  REQUIRE(message->a_wstring.size == 4 && memcmp(message->a_wstring.data, hoehe, sizeof hoehe) == 0);
  REQUIRE(message->some_bools[0] && !message->some_bools[1] && message->some_bools[2]);
  REQUIRE(message->some_ints[1] == -2);
  REQUIRE(strcmp(message->some_strings[1].data, "flow") == 0);
  REQUIRE(message->doubles.size == 2 && message->doubles.data[1] == 0.25);
  REQUIRE(message->strings.size == 2 && strcmp(message->strings.data[1].data, "two") == 0);
  REQUIRE(message->leaf.flag && message->leaf.number == -7 && strcmp(message->leaf.name.data, "leaf") == 0);
  REQUIRE(message->leaves[1].number == -7);
  REQUIRE(message->bools.size == 0 && message->leaf_sequence.size == 0);
}

static void fill(everything_t *message) {
  static const uint16_t wide[] = {0x6c34, 0};
  REQUIRE(rosidl_runtime_c__String__assign(&message->a_bounded_string, "12345"));
  REQUIRE(!rosidl_runtime_c__String__assign(&message->a_bounded_string, "123456"));
  REQUIRE(message->a_bounded_string.size == 5);
  REQUIRE(rosidl_runtime_c__U16String__assign(&message->a_bounded_wstring, wide));
  REQUIRE(message->wstrings.capacity == 16 && message->bounded_strings.capacity == 2);
  message->wstrings.size = 1;
  REQUIRE(rosidl_runtime_c__U16String__assign(&message->wstrings.data[0], wide));
  message->bounded_strings.size = 2;
  REQUIRE(rosidl_runtime_c__String__assign(&message->bounded_strings.data[1], "abcd"));
  message->bools.size = 2;
  message->bools.data[0] = true;
  message->bools.data[1] = false;
  message->bounded_numbers.size = 3;
  message->bounded_numbers.data[2] = 0x1234;
  message->leaf_sequence.size = 3;
  REQUIRE(rosidl_runtime_c__String__assign(&message->leaf_sequence.data[2].name, "third"));
  message->bounded_leaf_sequence.size = 1;
  message->uniform.yz[1] = 2.5;
  message->uniforms[1].x = -1;
  message->uniform_sequence.size = 2;
  message->uniform_sequence.data[1].yz[0] = 7;
}

static int decode(everything_t *message, const uint8_t *bytes, size_t length) {
  tide_cdr_t cdr;
  tide_cdr_reader(&cdr, bytes, length, false);
  demo_msgs__msg__Everything__decode(&cdr, message);
  return cdr.status;
}

static void check_round_trip(const everything_t *message) {
  static uint8_t bytes[demo_msgs__msg__Everything__STORED_BYTES];
  static everything_t back;
  tide_cdr_t cdr;
  demo_msgs__msg__Everything__bind(&back, &other_storage);
  tide_cdr_writer(&cdr, bytes, sizeof bytes);
  demo_msgs__msg__Everything__encode(&cdr, message);
  REQUIRE(cdr.status == TIDE_OK);
  REQUIRE(cdr.position == tide_message_size(&demo_msgs__msg__Everything__type, message));
  size_t length = cdr.position;
  REQUIRE(!demo_msgs__msg__Everything__are_equal(message, &back));
  REQUIRE(decode(&back, bytes, length) == TIDE_OK);
  REQUIRE(demo_msgs__msg__Everything__are_equal(message, &back));
  for (size_t shorter = 0; shorter < length; ++shorter) REQUIRE(decode(&back, bytes, shorter) == TIDE_ERROR_MALFORMED);
  REQUIRE(decode(&back, bytes, length) == TIDE_OK);
  back.uniforms[1].yz[1] += 1;
  REQUIRE(!demo_msgs__msg__Everything__are_equal(message, &back));
}

static void check_copy(const everything_t *message) {
  static everything_t copy;
  demo_msgs__msg__Everything__bind(&copy, &other_storage);
  REQUIRE(demo_msgs__msg__Everything__copy(message, &copy));
  REQUIRE(demo_msgs__msg__Everything__are_equal(message, &copy));
  copy.leaf_sequence.capacity = 2;
  REQUIRE(!demo_msgs__msg__Everything__copy(message, &copy));
  REQUIRE(copy.leaf_sequence.size == 0);
  demo_msgs__msg__Everything__fini(&copy);
  REQUIRE(copy.a_string.data == NULL && copy.leaves[1].name.data == NULL && copy.doubles.capacity == 0);
  REQUIRE(!demo_msgs__msg__Everything__copy(message, NULL) && !demo_msgs__msg__Everything__are_equal(NULL, message));
}

/* A received value that is too long for its member leaves the member empty, and a sequence beyond its bound is not
 * sent. */
static void check_limits(everything_t *message) {
  static uint8_t bytes[demo_msgs__msg__Everything__STORED_BYTES];
  static everything_t small;
  tide_cdr_t cdr;
  tide_cdr_writer(&cdr, bytes, sizeof bytes);
  demo_msgs__msg__Everything__encode(&cdr, message);
  size_t length = cdr.position;
  demo_msgs__msg__Everything__bind(&small, &other_storage);
  small.a_string.capacity = 4;
  REQUIRE(decode(&small, bytes, length) == TIDE_ERROR_CAPACITY_MESSAGE);
  REQUIRE(small.a_string.size == 0 && small.a_string.data[0] == '\0');
  demo_msgs__msg__Everything__bind(&small, &other_storage);
  small.leaf_sequence.capacity = 2;
  REQUIRE(decode(&small, bytes, length) == TIDE_ERROR_CAPACITY_MESSAGE);
  REQUIRE(small.leaf_sequence.size == 0);
  demo_msgs__msg__Everything__init(&small);
  REQUIRE(decode(&small, bytes, length) == TIDE_ERROR_CAPACITY_MESSAGE);

  static uint16_t many[4];
  rosidl_runtime_c__uint16__Sequence bounded = message->bounded_numbers;
  message->bounded_numbers.data = many;
  message->bounded_numbers.size = 4;
  tide_cdr_writer(&cdr, bytes, sizeof bytes);
  demo_msgs__msg__Everything__encode(&cdr, message);
  REQUIRE(cdr.status == TIDE_ERROR_TOO_LARGE);
  REQUIRE(tide_message_size(&demo_msgs__msg__Everything__type, message) == 0);
  message->bounded_numbers = bounded;
}

static void check_type_support(void) {
  const rosidl_message_type_support_t *support = ROSIDL_GET_MSG_TYPE_SUPPORT(demo_msgs, msg, Everything);
  REQUIRE(support->data == &demo_msgs__msg__Everything__type);
  REQUIRE(get_message_typesupport_handle(support, TIDE_TYPESUPPORT_IDENTIFIER) == support);
  REQUIRE(get_message_typesupport_handle(support, "other") == NULL);
  const rosidl_service_type_support_t *service = ROSIDL_GET_SRV_TYPE_SUPPORT(demo_msgs, srv, Turn);
  const tide_service_type_t *turn = service->data;
  REQUIRE(strcmp(turn->response->dds_name, "demo_msgs::srv::dds_::Turn_Response_") == 0);
  REQUIRE(turn->request->structure_bytes == sizeof(demo_msgs__srv__Turn_Request));
  REQUIRE(sizeof(demo_msgs__msg__Nothing) == 1);
  REQUIRE(demo_msgs__msg__Uniform__type.maximum_bytes == 24);
}

/* With AddressSanitizer, a leak ends the program with an error. */
static void check_heap(const everything_t *message) {
  demo_msgs__msg__Leaf *leaf = demo_msgs__msg__Leaf__create();
  REQUIRE(leaf != NULL && leaf->name.capacity == 64 && strcmp(leaf->name.data, "leaf") == 0);
  leaf->name = (rosidl_runtime_c__String){NULL, 0, 0};
  REQUIRE(rosidl_runtime_c__String__assign(&leaf->name, "a name of the heap"));
  demo_msgs__msg__Leaf__destroy(leaf);
  demo_msgs__msg__Leaf__destroy(NULL);
  leaf = demo_msgs__msg__Leaf__create();
  static char longer[200];
  memset(longer, 'x', sizeof longer - 1);
  REQUIRE(leaf != NULL && rosidl_runtime_c__String__assign(&leaf->name, longer));
  REQUIRE(strcmp(leaf->name.data, longer) == 0);
  demo_msgs__msg__Leaf__destroy(leaf);

  everything_t copy;
  REQUIRE(demo_msgs__msg__Everything__init(&copy));
  REQUIRE(rosidl_runtime_c__String__assign(&copy.a_string, "longer than the default"));
  REQUIRE(demo_msgs__msg__Everything__copy(message, &copy));
  REQUIRE(demo_msgs__msg__Everything__are_equal(message, &copy));
  REQUIRE(copy.leaf_sequence.data != message->leaf_sequence.data);
  demo_msgs__msg__Everything__fini(&copy);
  REQUIRE(copy.leaf_sequence.data == NULL && copy.a_string.data == NULL);

  REQUIRE(demo_msgs__msg__Everything__init(&copy));
  REQUIRE(demo_msgs__msg__Leaf__Sequence__init(&copy.leaf_sequence, 2));
  REQUIRE(demo_msgs__msg__Leaf__Sequence__copy(&message->leaf_sequence, &copy.leaf_sequence));
  REQUIRE(copy.leaf_sequence.size == 3 && strcmp(copy.leaf_sequence.data[2].name.data, "third") == 0);
  demo_msgs__msg__Everything__fini(&copy);
  demo_msgs__msg__Leaf__Sequence *leaves = demo_msgs__msg__Leaf__Sequence__create(4);
  REQUIRE(leaves != NULL && leaves->size == 4 && strcmp(leaves->data[3].name.data, "leaf") == 0);
  demo_msgs__msg__Leaf__Sequence__destroy(leaves);
}

int main(void) {
  static everything_t message;
  check_constants();
  memset(&message, 0xa5, sizeof message);
  REQUIRE(demo_msgs__msg__Everything__init(&message) && !demo_msgs__msg__Everything__init(NULL));
  check_defaults(&message);
  memset(&message, 0xa5, sizeof message);
  memset(&storage, 0xa5, sizeof storage);
  demo_msgs__msg__Everything__bind(&message, &storage);
  check_defaults(&message);
  fill(&message);
  check_round_trip(&message);
  check_copy(&message);
  check_limits(&message);
  check_type_support();
  check_heap(&message);
  return 0;
}
