/* SPDX-License-Identifier: Apache-2.0 */
/* "/robot/arm/node" as the logger "robot.arm.node". Only programs that ask for it have the memory of this file. */
#include <string.h>

#include "internal.h"

static struct {
  char texts[TIDE_LOGGER_NAME_BYTES]; /* one behind the other, each with its NUL; none is ever taken away */
  size_t used;
} names;

static char dotted(char character) { return (char)(character == '/' ? '.' : character); }

static bool is_dotted(const char *text, const char *name) {
  while (*text != '\0' && *text == dotted(*name)) {
    text++;
    name++;
  }
  return *text == *name;
}

static const char *find_locked(const char *name) {
  for (const char *text = names.texts; text < names.texts + names.used; text += strlen(text) + 1u)
    if (is_dotted(text, name)) return text;
  return NULL;
}

static const char *keep_locked(const char *name) {
  const size_t bytes = strlen(name) + 1u;
  if (bytes > sizeof names.texts - names.used) return NULL;
  char *text = names.texts + names.used;
  for (size_t i = 0; i < bytes; i++) text[i] = dotted(name[i]);
  names.used += bytes;
  return text;
}

const char *rcl_node_get_logger_name(const rcl_node_t *node) {
  if (!tide_compat_is_node(node)) return NULL;
  const char *name = node->impl->full_name + 1; /* behind the first slash */
  if (strchr(name, '/') == NULL) return name;
  const uintptr_t critical = tide_platform_enter(tide_port_platform());
  const char *text = find_locked(name);
  if (text == NULL) text = keep_locked(name);
  tide_platform_exit(tide_port_platform(), critical);
  if (text == NULL) (void)tide_compat_result(TIDE_ERROR_CAPACITY_NAMES);
  return text;
}
