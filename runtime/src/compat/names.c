/* SPDX-License-Identifier: Apache-2.0 */
/* Names as rmw makes them: "rt" before the fully qualified topic name, "rq" and "rr" around a service's; "~" is the
 * node, no "/" in front is relative to the node's namespace, and {node}, {ns} and {namespace} stand for what they say.
 */
#include <string.h>

#include "internal.h"

typedef struct text {
  char *characters;
  size_t capacity;
  size_t length;
  bool cut;
} text_t;

static void append_part(text_t *text, const char *more, size_t length) {
  text->cut = text->cut || text->length + length >= text->capacity;
  if (text->cut) return;
  memcpy(text->characters + text->length, more, length);
  text->length += length;
  text->characters[text->length] = '\0';
}

static void append(text_t *text, const char *more) { append_part(text, more, strlen(more)); }

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

bool tide_compat_is_node_name(const char *name) { return is_name(name, true); }

int tide_compat_node_name(tide_node_handle_t *node, const char *name, const char *namespace_) {
  const char *inner = namespace_[0] == '/' ? namespace_ + 1 : namespace_;
  if (!is_name(name, true) || (inner[0] != '\0' && !is_name(inner, false))) return TIDE_ERROR_NAME;
  text_t space = {node->namespace_, tide_pools.name_bytes, 0, false};
  append(&space, "/");
  append(&space, inner);
  text_t full = {node->full_name, tide_pools.name_bytes, 0, false};
  if (inner[0] != '\0') append(&full, node->namespace_);
  append(&full, "/");
  node->name = node->full_name + full.length;
  append(&full, name);
  return space.cut || full.cut ? TIDE_ERROR_CAPACITY_NAMES : TIDE_OK;
}

/* What a name in braces stands for, and how long it is with them; null: nothing. */
static const char *substitute(const char *braces, const tide_node_handle_t *node, size_t *length) {
  static const struct {
    char name[12];
    bool is_node;
  } known[] = {{"{node}", true}, {"{ns}", false}, {"{namespace}", false}};
  for (size_t i = 0; TIDE_NAME_SUBSTITUTIONS && i < sizeof known / sizeof known[0]; i++) {
    *length = strlen(known[i].name);
    if (strncmp(braces, known[i].name, *length) == 0) return known[i].is_node ? node->name : node->namespace_;
  }
  return NULL;
}

static void append_expanded(text_t *text, const char *name, const tide_node_handle_t *node) {
  while (*name != '\0') {
    size_t length = 1;
    const char *more = *name == '{' ? substitute(name, node, &length) : NULL;
    if (more != NULL) {
      append(text, more);
    } else {
      length = 1;
      append_part(text, name, 1);
    }
    name += length;
  }
}

static bool is_absolute(const char *name, const tide_node_handle_t *node) {
  size_t length = 0;
  const char *first = *name == '{' ? substitute(name, node, &length) : NULL;
  return (first != NULL ? first : name)[0] == '/';
}

/* The fully qualified name, behind what the text has already. */
static int append_name(text_t *text, const char *name, const tide_node_handle_t *node) {
  const size_t start = text->length;
  if (name[0] == '~') {
    if (name[1] != '\0' && name[1] != '/') return TIDE_ERROR_NAME;
    append(text, node->full_name);
    name++;
  } else if (!is_absolute(name, node)) {
    if (node->namespace_[1] != '\0') append(text, node->namespace_);
    append(text, "/");
  }
  append_expanded(text, name, node);
  return text->cut || is_name(text->characters + start + 1, false) ? TIDE_OK : TIDE_ERROR_NAME;
}

static int make_name(text_t *text, const char *prefix, const char *name, const char *suffix,
                     const tide_node_handle_t *node) {
  append(text, prefix);
  const int status = append_name(text, name, node);
  if (status != TIDE_OK) return status;
  append(text, suffix);
  return text->cut ? TIDE_ERROR_CAPACITY_NAMES : TIDE_OK;
}

int tide_compat_topic_name(char *destination, const char *topic, const tide_node_handle_t *node) {
  text_t text = {destination, tide_pools.name_bytes, 0, false};
  return make_name(&text, "rt", topic, "", node);
}

int tide_compat_service_names(char *request, char *reply, const char *service, const tide_node_handle_t *node) {
  text_t asking = {request, tide_pools.service_name_bytes, 0, false};
  text_t answering = {reply, tide_pools.service_name_bytes, 0, false};
  const int status = make_name(&asking, "rq", service, "Request", node);
  return status == TIDE_OK ? make_name(&answering, "rr", service, "Reply", node) : status;
}
