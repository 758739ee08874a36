/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include <string.h>

#include "board.h"
#include "tide/port.h"

#define SYS_OPEN 0x01u
#define SYS_WRITE 0x05u
#define SYS_READ 0x06u
#define SYS_GET_CMDLINE 0x15u
#define OPEN_READ 1u /* binary */
#define OPEN_WRITE 5u
#define MESSAGE_BYTES 1536u

static char folder[96];
static union {
  world_plan_t plan;
  uint8_t bytes[4096];
} given;
static int up, down;

static int open_file(const char *name, unsigned mode) {
  char path[sizeof folder + 8u];
  const size_t length = strlen(folder);
  memcpy(path, folder, length);
  path[length] = '/';
  strcpy(path + length + 1u, name);
  const uint32_t arguments[3] = {(uint32_t)path, mode, (uint32_t)strlen(path)};
  return board_semihosting(SYS_OPEN, arguments);
}

/* Returns the number of bytes read. */
static size_t read_file(int file, void *place, size_t count) {
  const uint32_t arguments[3] = {(uint32_t)file, (uint32_t)place, count};
  return count - (size_t)board_semihosting(SYS_READ, arguments);
}

static void write_file(int file, const void *bytes, size_t count) {
  const uint32_t arguments[3] = {(uint32_t)file, (uint32_t)bytes, count};
  if (board_semihosting(SYS_WRITE, arguments) != 0) board_exit(71);
}

/* Reads the name of the folder, which is the last word of the command line. */
static void find_folder(void) {
  static char line[128];
  const uint32_t arguments[2] = {(uint32_t)line, sizeof line};
  if (board_semihosting(SYS_GET_CMDLINE, arguments) != 0) return;
  const char *last = strrchr(line, ' ');
  last = last == NULL ? line : last + 1;
  if (strlen(last) < sizeof folder) strcpy(folder, last);
}

const world_plan_t *world_open(void) {
  if (up > 0) return &given.plan;
  find_folder();
  const int plan = open_file("plan", OPEN_READ);
  if (plan < 0) return NULL;
  if (read_file(plan, given.bytes, sizeof given) != given.plan.bytes) return NULL;
  up = open_file("up", OPEN_WRITE);
  down = open_file("down", OPEN_READ);
  return up < 0 || down < 0 ? NULL : &given.plan;
}

/* The message is written in one piece, because lanes preempt each other. */
void world_tell(world_kind_t kind, int64_t time_ns, const void *bytes, size_t count) {
  static struct {
    world_header_t header;
    uint8_t body[MESSAGE_BYTES];
  } message;
  if (count > sizeof message.body) board_exit(72);
  const uintptr_t state = tide_port_platform()->critical_enter(NULL);
  message.header = (world_header_t){kind, count, time_ns};
  if (count > 0u) memcpy(message.body, bytes, count);
  write_file(up, &message, sizeof message.header + count);
  tide_port_platform()->critical_exit(NULL, state);
}

void world_read(uint8_t *place, size_t count) {
  while (count > 0u) {
    const size_t got = read_file(down, place, count);
    if (got == 0u) board_exit(73); /* the other end has closed the pipe */
    place += got;
    count -= got;
  }
}

world_answer_t world_ask(world_kind_t kind, int64_t time_ns, const void *bytes, size_t count) {
  world_answer_t answer;
  const uintptr_t state = tide_port_platform()->critical_enter(NULL);
  world_tell(kind, time_ns, bytes, count);
  world_read((uint8_t *)&answer, sizeof answer);
  tide_port_platform()->critical_exit(NULL, state);
  return answer;
}
