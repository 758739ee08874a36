/* SPDX-License-Identifier: Apache-2.0 */
/* One traversal of the fields serves three purposes: it requests every block of memory from a source, always in the
 * same order, and the source either measures it, takes it from a buffer, or allocates it. Without a message (measuring)
 * the elements of a sequence are traversed once and multiplied, as block sizes do not depend on addresses. */
#include <string.h>

#include "micro_ros_utilities/string_utilities.h"
#include "micro_ros_utilities/type_utilities.h"
#include "tide/message_memory.h"

#define ALIGNMENT 8u

const micro_ros_utilities_memory_conf_t micro_ros_utilities_memory_conf_default = {
    .max_string_capacity = 20, .max_ros2_type_sequence_capacity = 5, .max_basic_type_sequence_capacity = 5};

typedef struct path {
  const struct path *parent;
  const char *name;
} path_t;

typedef struct memory {
  micro_ros_utilities_memory_conf_t conf;
  rcutils_allocator_t allocator;
  uint8_t *next; /* next byte of the buffer; null if memory is allocated */
} memory_t;

static const tide_message_type_t *type_of(const rosidl_message_type_support_t *support) {
  const rosidl_message_type_support_t *handle = get_message_typesupport_handle(support, TIDE_TYPESUPPORT_IDENTIFIER);
  return handle == NULL ? NULL : handle->data;
}

static memory_t memory_of(const micro_ros_utilities_memory_conf_t *conf) {
  const micro_ros_utilities_memory_conf_t *standard = &micro_ros_utilities_memory_conf_default;
  memory_t memory = {.conf = *conf};
  micro_ros_utilities_memory_conf_t *used = &memory.conf;
  if (used->max_string_capacity == 0) used->max_string_capacity = standard->max_string_capacity;
  if (used->max_ros2_type_sequence_capacity == 0)
    used->max_ros2_type_sequence_capacity = standard->max_ros2_type_sequence_capacity;
  if (used->max_basic_type_sequence_capacity == 0)
    used->max_basic_type_sequence_capacity = standard->max_basic_type_sequence_capacity;
  memory.allocator = conf->allocator != NULL ? *conf->allocator : rcutils_get_default_allocator();
  return memory;
}

/* The part of the rule that follows this path, or null: for the rule "a.b.c" and the path a.b it is ".c". */
static const char *rest_of_rule(const char *rule, const path_t *path) {
  if (path->parent != NULL) {
    rule = rest_of_rule(rule, path->parent);
    if (rule == NULL || *rule++ != '.') return NULL;
  }
  size_t length = strlen(path->name);
  return strncmp(rule, path->name, length) == 0 ? rule + length : NULL;
}

static const micro_ros_utilities_memory_rule_t *rule_of(const memory_t *memory, const path_t *path) {
  for (size_t i = 0; memory->conf.rules != NULL && i < memory->conf.n_rules; ++i) {
    const char *rest = rest_of_rule(memory->conf.rules[i].rule, path);
    if (rest != NULL && *rest == '\0') return &memory->conf.rules[i];
  }
  return NULL;
}

static bool is_string(const tide_field_t *field) {
  return field->kind == TIDE_FIELD_STRING || field->kind == TIDE_FIELD_WSTRING;
}

/* A rule for a sequence of strings sets the capacity of the sequence; its strings keep the general capacity. */
static size_t string_capacity(const memory_t *memory, const tide_field_t *field, const path_t *path) {
  const micro_ros_utilities_memory_rule_t *rule = field->shape == TIDE_SHAPE_SEQUENCE ? NULL : rule_of(memory, path);
  if (rule != NULL) return rule->size;
  return field->string_bound != 0 ? (size_t)field->string_bound + 1u : memory->conf.max_string_capacity;
}

static size_t sequence_capacity(const memory_t *memory, const tide_field_t *field, const path_t *path) {
  const micro_ros_utilities_memory_rule_t *rule = rule_of(memory, path);
  if (rule != NULL) return rule->size;
  if (field->bound != 0) return field->bound;
  return field->kind == TIDE_FIELD_MESSAGE ? memory->conf.max_ros2_type_sequence_capacity
                                           : memory->conf.max_basic_type_sequence_capacity;
}

static size_t character_bytes(const tide_field_t *field) { return field->kind == TIDE_FIELD_WSTRING ? 2 : 1; }

static size_t sum(size_t a, size_t b) { return a > SIZE_MAX - b ? SIZE_MAX : a + b; }

static size_t product(size_t a, size_t b) { return b != 0 && a > SIZE_MAX / b ? SIZE_MAX : a * b; }

static size_t rounded(size_t bytes, size_t alignment) {
  return sum(bytes, alignment - 1u) == SIZE_MAX ? SIZE_MAX : (bytes + alignment - 1u) / alignment * alignment;
}

static size_t measure(const memory_t *memory, const tide_message_type_t *type, const path_t *parent, size_t alignment);

/* Measures the memory to which one element of the field points. */
static size_t measure_element(const memory_t *memory, const tide_field_t *field, const path_t *path, size_t alignment) {
  if (field->kind == TIDE_FIELD_MESSAGE) return measure(memory, field->type, path, alignment);
  if (!is_string(field)) return 0;
  return rounded(product(string_capacity(memory, field, path), character_bytes(field)), alignment);
}

static size_t measure_field(const memory_t *memory, const tide_field_t *field, const path_t *path, size_t alignment) {
  size_t element = measure_element(memory, field, path, alignment);
  if (field->shape == TIDE_SHAPE_ONE) return element;
  if (field->shape == TIDE_SHAPE_ARRAY) return product(field->bound, element);
  size_t capacity = sequence_capacity(memory, field, path);
  size_t block = rounded(product(capacity, tide_field_element_bytes(field)), alignment);
  return sum(block, product(capacity, element));
}

static size_t measure(const memory_t *memory, const tide_message_type_t *type, const path_t *parent, size_t alignment) {
  size_t bytes = 0;
  for (size_t i = 0; i < type->field_count; ++i) {
    path_t path = {parent, type->fields[i].name};
    bytes = sum(bytes, measure_field(memory, &type->fields[i], &path, alignment));
  }
  return bytes;
}

static void *take(memory_t *memory, size_t count, size_t element_bytes) {
  size_t bytes = product(count, element_bytes);
  if (bytes == 0 || bytes == SIZE_MAX) return NULL;
  void *block = memory->next;
  if (block != NULL) {
    memory->next += rounded(bytes, ALIGNMENT);
  } else if (memory->conf.allocator == NULL) {
    return tide_message_allocate(bytes);
  } else if (memory->allocator.allocate != NULL) {
    block = memory->allocator.allocate(bytes, memory->allocator.state);
  }
  if (block != NULL) memset(block, 0, bytes);
  return block;
}

static bool provide(memory_t *memory, const tide_message_type_t *type, const path_t *parent, uint8_t *message);

static bool provide_block(memory_t *memory, uint8_t *member, size_t capacity, size_t element_bytes) {
  tide_sequence_t sequence = {.data = take(memory, capacity, element_bytes)};
  if (sequence.data != NULL) sequence.capacity = capacity;
  memcpy(member, &sequence, sizeof sequence);
  return capacity == 0 || sequence.data != NULL;
}

static bool provide_elements(memory_t *memory, const tide_field_t *field, const path_t *path, uint8_t *element,
                             size_t count) {
  size_t stride = tide_field_element_bytes(field);
  if (field->kind < TIDE_FIELD_STRING) return true;
  for (size_t i = 0; i < count; ++i, element += stride) {
    bool done = is_string(field)
                    ? provide_block(memory, element, string_capacity(memory, field, path), character_bytes(field))
                    : provide(memory, field->type, path, element);
    if (!done) return false;
  }
  return true;
}

static bool provide_field(memory_t *memory, const tide_field_t *field, const path_t *path, uint8_t *member) {
  if (field->shape != TIDE_SHAPE_SEQUENCE)
    return provide_elements(memory, field, path, member, field->shape == TIDE_SHAPE_ARRAY ? field->bound : 1);
  size_t capacity = sequence_capacity(memory, field, path);
  if (!provide_block(memory, member, capacity, tide_field_element_bytes(field))) return false;
  tide_sequence_t sequence;
  memcpy(&sequence, member, sizeof sequence);
  return provide_elements(memory, field, path, sequence.data, capacity);
}

static bool provide(memory_t *memory, const tide_message_type_t *type, const path_t *parent, uint8_t *message) {
  for (size_t i = 0; i < type->field_count; ++i) {
    path_t path = {parent, type->fields[i].name};
    if (!provide_field(memory, &type->fields[i], &path, message + type->fields[i].offset_bytes)) return false;
  }
  return true;
}

static void release(const rcutils_allocator_t *allocator, const tide_message_type_t *type, uint8_t *message);

static void release_block(const rcutils_allocator_t *allocator, uint8_t *member) {
  tide_sequence_t sequence;
  memcpy(&sequence, member, sizeof sequence);
  const bool is_held = sequence.data != NULL && sequence.capacity > 0;
  const bool is_remembered = is_held && tide_message_is_in_allocated(sequence.data);
  if (is_remembered) (void)tide_message_release(sequence.data);
  if (is_held && !is_remembered && allocator->deallocate != NULL)
    allocator->deallocate(sequence.data, allocator->state);
  memset(member, 0, sizeof sequence);
}

static void release_elements(const rcutils_allocator_t *allocator, const tide_field_t *field, uint8_t *element,
                             size_t count) {
  size_t stride = tide_field_element_bytes(field);
  if (field->kind < TIDE_FIELD_STRING || element == NULL) return;
  for (size_t i = 0; i < count; ++i, element += stride) {
    if (is_string(field)) {
      release_block(allocator, element);
    } else {
      release(allocator, field->type, element);
    }
  }
}

static void release_field(const rcutils_allocator_t *allocator, const tide_field_t *field, uint8_t *member) {
  if (field->shape != TIDE_SHAPE_SEQUENCE) {
    release_elements(allocator, field, member, field->shape == TIDE_SHAPE_ARRAY ? field->bound : 1);
    return;
  }
  tide_sequence_t sequence;
  memcpy(&sequence, member, sizeof sequence);
  release_elements(allocator, field, sequence.data, sequence.capacity);
  release_block(allocator, member);
}

static void release(const rcutils_allocator_t *allocator, const tide_message_type_t *type, uint8_t *message) {
  for (size_t i = 0; i < type->field_count; ++i)
    release_field(allocator, &type->fields[i], message + type->fields[i].offset_bytes);
}

size_t micro_ros_utilities_get_dynamic_size(const rosidl_message_type_support_t *type_support,
                                            const micro_ros_utilities_memory_conf_t conf) {
  const tide_message_type_t *type = type_of(type_support);
  memory_t memory = memory_of(&conf);
  return type == NULL ? 0 : measure(&memory, type, NULL, 1);
}

size_t micro_ros_utilities_get_static_size(const rosidl_message_type_support_t *type_support,
                                           const micro_ros_utilities_memory_conf_t conf) {
  const tide_message_type_t *type = type_of(type_support);
  memory_t memory = memory_of(&conf);
  size_t bytes = type == NULL ? 0 : measure(&memory, type, NULL, ALIGNMENT);
  return bytes == 0 ? 0 : sum(bytes, ALIGNMENT - 1u);
}

bool micro_ros_utilities_create_message_memory(const rosidl_message_type_support_t *type_support, void *ros_msg,
                                               const micro_ros_utilities_memory_conf_t conf) {
  const tide_message_type_t *type = type_of(type_support);
  memory_t memory = memory_of(&conf);
  if (type == NULL || ros_msg == NULL) return false;
  tide_message_forget(type, ros_msg);
  if (provide(&memory, type, NULL, ros_msg)) return true;
  release(&memory.allocator, type, ros_msg);
  return false;
}

bool micro_ros_utilities_create_static_message_memory(const rosidl_message_type_support_t *type_support, void *ros_msg,
                                                      const micro_ros_utilities_memory_conf_t conf, uint8_t *buffer,
                                                      size_t buffer_len) {
  const tide_message_type_t *type = type_of(type_support);
  memory_t memory = memory_of(&conf);
  if (type == NULL || ros_msg == NULL || buffer == NULL) return false;
  size_t padding = (size_t)(0u - (uintptr_t)buffer) % ALIGNMENT;
  if (sum(measure(&memory, type, NULL, ALIGNMENT), padding) > buffer_len) return false;
  tide_message_forget(type, ros_msg);
  memory.next = buffer + padding;
  return provide(&memory, type, NULL, ros_msg);
}

bool micro_ros_utilities_destroy_message_memory(const rosidl_message_type_support_t *type_support, void *ros_msg,
                                                const micro_ros_utilities_memory_conf_t conf) {
  const tide_message_type_t *type = type_of(type_support);
  memory_t memory = memory_of(&conf);
  if (type == NULL || ros_msg == NULL) return false;
  release(&memory.allocator, type, ros_msg);
  return true;
}

typedef struct text {
  char *characters; /* null if texts are only counted */
  size_t length;
} text_t;

static void write_text(text_t *text, const char *part) {
  size_t length = strlen(part);
  if (text->characters != NULL) memcpy(text->characters + text->length, part, length);
  text->length += length;
}

static void write_number(text_t *text, uint32_t number) {
  char digits[11] = {0};
  size_t first = sizeof digits - 1u;
  do {
    digits[--first] = (char)('0' + number % 10u);
    number /= 10u;
  } while (number != 0);
  write_text(text, digits + first);
}

static void write_type_name(text_t *text, const tide_message_type_t *type) {
  write_text(text, type->package);
  write_text(text, "/");
  write_text(text, type->kind);
  write_text(text, "/");
  write_text(text, type->name);
}

static void write_field(text_t *text, const tide_field_t *field) {
  static const char *const names[] = {
      [TIDE_FIELD_BOOL] = "bool",      [TIDE_FIELD_OCTET] = "byte",  [TIDE_FIELD_CHAR] = "char",
      [TIDE_FIELD_I8] = "int8",        [TIDE_FIELD_U8] = "uint8",    [TIDE_FIELD_I16] = "int16",
      [TIDE_FIELD_U16] = "uint16",     [TIDE_FIELD_WCHAR] = "wchar", [TIDE_FIELD_I32] = "int32",
      [TIDE_FIELD_U32] = "uint32",     [TIDE_FIELD_I64] = "int64",   [TIDE_FIELD_U64] = "uint64",
      [TIDE_FIELD_F32] = "float32",    [TIDE_FIELD_F64] = "float64", [TIDE_FIELD_STRING] = "string",
      [TIDE_FIELD_WSTRING] = "wstring"};
  if (field->kind == TIDE_FIELD_MESSAGE) {
    write_type_name(text, field->type);
  } else {
    write_text(text, names[field->kind]);
  }
  if (field->string_bound != 0) {
    write_text(text, "<=");
    write_number(text, field->string_bound);
  }
  if (field->shape != TIDE_SHAPE_ONE) {
    write_text(text, field->shape == TIDE_SHAPE_SEQUENCE && field->bound != 0 ? "[<=" : "[");
    if (field->bound != 0) write_number(text, field->bound);
    write_text(text, "]");
  }
  write_text(text, " ");
  write_text(text, field->name);
}

static void write_type(text_t *text, const tide_message_type_t *type) {
  write_type_name(text, type);
  write_text(text, " {");
  for (size_t i = 0; i < type->field_count; ++i) {
    write_text(text, i == 0 ? "" : "; ");
    write_field(text, &type->fields[i]);
  }
  write_text(text, "}");
}

rosidl_runtime_c__String micro_ros_utilities_type_info(const rosidl_message_type_support_t *type_support) {
  const tide_message_type_t *type = type_of(type_support);
  rosidl_runtime_c__String info = {NULL, 0, 0};
  text_t text = {NULL, 0};
  if (type == NULL) return info;
  write_type(&text, type);
  info = micro_ros_string_utilities_init_with_size(text.length);
  if (info.data == NULL) return info;
  text = (text_t){info.data, 0};
  write_type(&text, type);
  info.data[text.length] = '\0';
  info.size = text.length;
  return info;
}
