/* SPDX-License-Identifier: Apache-2.0 */
/* Names as rmw makes them: "rt" before the fully qualified topic name; "~" is the node, no "/" in front is relative to
 * the node's namespace. */
#include <string.h>

#include "internal.h"

typedef struct text {
  char *characters;
  size_t length;
  bool cut;
} text_t;

static void append(text_t *text, const char *more) {
  const size_t length = strlen(more);
  text->cut = text->cut || text->length + length >= tide_pools.name_bytes;
  if (text->cut) return;
  memcpy(text->characters + text->length, more, length + 1);
  text->length += length;
}

static bool is_digit(char character) { return character >= '0' && character <= '9'; }

static bool is_part_of_name(char character) {
  return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') || is_digit(character) ||
         character == '_';
}

/* One or more parts with a slash between them. */
static bool is_name(const char *name, bool one_part) {
  bool first = true; /* of a part */
  for (; *name != '\0'; name++) {
    if (*name == '/' ? first || one_part : !is_part_of_name(*name) || (first && is_digit(*name))) return false;
    first = *name == '/';
  }
  return !first;
}

int tide_compat_node_name(tide_node_handle_t *node, const char *name, const char *namespace_) {
  const char *inner = namespace_[0] == '/' ? namespace_ + 1 : namespace_;
  if (!is_name(name, true) || (inner[0] != '\0' && !is_name(inner, false))) return TIDE_ERROR_NAME;
  text_t space = {node->namespace_, 0, false};
  append(&space, "/");
  append(&space, inner);
  text_t full = {node->full_name, 0, false};
  if (inner[0] != '\0') append(&full, node->namespace_);
  append(&full, "/");
  node->name = node->full_name + full.length;
  append(&full, name);
  return space.cut || full.cut ? TIDE_ERROR_CAPACITY_NAMES : TIDE_OK;
}

int tide_compat_topic_name(char *destination, const char *topic, const tide_node_handle_t *node) {
  text_t text = {destination, 0, false};
  append(&text, "rt");
  if (topic[0] == '~') {
    append(&text, node->full_name);
    if (topic[1] != '\0' && (topic[1] != '/' || !is_name(topic + 2, false))) return TIDE_ERROR_NAME;
    append(&text, topic + 1);
  } else {
    if (!is_name(topic[0] == '/' ? topic + 1 : topic, false)) return TIDE_ERROR_NAME;
    if (topic[0] != '/' && node->namespace_[1] != '\0') append(&text, node->namespace_);
    if (topic[0] != '/') append(&text, "/");
    append(&text, topic);
  }
  return text.cut ? TIDE_ERROR_CAPACITY_NAMES : TIDE_OK;
}
