/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r\n"
#define LINE_BYTES 4096

/* ---- numbers of instances in messages ---- */

enum { DIGITS = 5 };

static const struct {
  const char *word;
  size_t bytes;
  int64_t modulus;
} kinds[] = {
    [NUMBER_NONE] = {"none", 0, 1},
    [NUMBER_BOOL] = {"bool", 1, 2},
    [NUMBER_U8] = {"u8", 1, 1 << 7}, /* so that it also fits a signed one */
    [NUMBER_U16] = {"u16", 2, 1 << 15},
    [NUMBER_U32] = {"u32", 4, INT64_C(1) << 31},
    [NUMBER_U64] = {"u64", 8, INT64_C(1) << 31},
    [NUMBER_F32] = {"f32", 4, 1 << 24},
    [NUMBER_F64] = {"f64", 8, INT64_C(1) << 31},
    [NUMBER_DIGITS] = {"digits", DIGITS, 100000},
    [NUMBER_COUNT] = {"count", 0, 1},
};

static bool number_kind(const char *word, number_kind_t *kind) {
  for (size_t index = 0; index < sizeof kinds / sizeof *kinds; index++) {
    if (strcmp(word, kinds[index].word) != 0) continue;
    *kind = (number_kind_t)index;
    return true;
  }
  return false;
}

size_t number_bytes(number_kind_t kind) { return kinds[kind].bytes; }

static void write_digits(uint8_t *characters, uint32_t number) {
  for (int digit = DIGITS - 1; digit >= 0; digit--, number /= 10) characters[digit] = (uint8_t)('0' + number % 10);
}

void number_write(uint8_t *message, number_place_t place, uint32_t index) {
  const uint32_t number = (uint32_t)(index % kinds[place.kind].modulus);
  const uint64_t wide = number;
  const float f32 = (float)number;
  const double f64 = (double)number;
  uint8_t *at = message + place.offset;
  if (place.kind == NUMBER_DIGITS) {
    write_digits(at, number);
  } else if (place.kind == NUMBER_F32) {
    memcpy(at, &f32, sizeof f32);
  } else if (place.kind == NUMBER_F64) {
    memcpy(at, &f64, sizeof f64);
  } else {
    for (size_t byte = 0; byte < kinds[place.kind].bytes; byte++) at[byte] = (uint8_t)(wide >> 8 * byte);
  }
}

static int64_t read_digits(const uint8_t *characters) {
  int64_t number = 0;
  for (int digit = 0; digit < DIGITS; digit++) {
    if (characters[digit] < '0' || characters[digit] > '9') return -1;
    number = number * 10 + (characters[digit] - '0');
  }
  return number;
}

static int64_t read_float(const uint8_t *at, number_kind_t kind) {
  float f32 = 0;
  double f64 = 0;
  if (kind == NUMBER_F32) {
    memcpy(&f32, at, sizeof f32);
    f64 = (double)f32;
  } else {
    memcpy(&f64, at, sizeof f64);
  }
  return f64 >= 0 && f64 < (double)kinds[kind].modulus ? (int64_t)f64 : -1;
}

int64_t number_read(const uint8_t *message, size_t bytes, number_place_t place) {
  if (kinds[place.kind].bytes == 0) return 0;
  if (bytes < place.offset + kinds[place.kind].bytes) return -1;
  const uint8_t *at = message + place.offset;
  if (place.kind == NUMBER_DIGITS) return read_digits(at);
  if (place.kind == NUMBER_F32 || place.kind == NUMBER_F64) return read_float(at, place.kind);
  uint64_t number = 0;
  for (size_t byte = 0; byte < kinds[place.kind].bytes; byte++) number |= (uint64_t)at[byte] << 8 * byte;
  return number < (uint64_t)kinds[place.kind].modulus ? (int64_t)number : -1;
}

int64_t number_instance(int64_t read, number_place_t place, uint32_t every, int64_t latest) {
  if (read < 0 || latest < 0) return -1;
  const int64_t modulus = kinds[place.kind].modulus, count = latest / every;
  const int64_t behind = ((count - read) % modulus + modulus) % modulus;
  return (count - behind) * every;
}

/* ---- the file ---- */

typedef struct fields {
  char *rest;         /* of the line */
  const char *beside; /* path of the plan */
} fields_t;

static const char *next(fields_t *fields) { return strtok_r(NULL, BLANKS, &fields->rest); }

static bool take_text(fields_t *fields, char *text, size_t bytes) {
  const char *word = next(fields);
  if (word == NULL || strlen(word) >= bytes) return false;
  memcpy(text, word, strlen(word) + 1);
  return true;
}

static bool take_number(fields_t *fields, int64_t *number) {
  const char *word = next(fields);
  char *end = NULL;
  if (word != NULL) *number = strtoll(word, &end, 10);
  return word != NULL && end != word && *end == '\0';
}

static bool take_reliability(fields_t *fields, bool *reliable) {
  const char *word = next(fields);
  *reliable = word != NULL && strcmp(word, "reliable") == 0;
  return *reliable || (word != NULL && strcmp(word, "best_effort") == 0);
}

static const char *read_chain(fields_t *fields, plan_t *plan) {
  if (plan->chain_count == PLAN_CHAINS) return "is one chain too many (at most 32)";
  plan_chain_t *chain = &plan->chains[plan->chain_count++];
  int64_t level = 0, instances = 0, burst = 0;
  if (!take_text(fields, chain->name, sizeof chain->name) || !take_number(fields, &level) ||
      !take_number(fields, &chain->period_ns) || !take_number(fields, &chain->offset_ns) ||
      !take_number(fields, &instances) || !take_number(fields, &burst)) {
    return "does not have the seven fields of a chain";
  }
  if (!take_reliability(fields, &chain->reliable)) return "is neither reliable nor best_effort";
  if (next(fields) != NULL) return "does not have the seven fields of a chain";
  if (level < 1 || level > 126) return "has a level outside 1..126";
  if (chain->period_ns <= 0 || chain->offset_ns < 0) return "has an impossible time";
  if (instances < 1 || instances > 10000000) return "has an impossible number of instances";
  if (burst < 0 || burst > 16) return "has an impossible burst";
  chain->level = (uint8_t)level;
  chain->instances = (uint32_t)instances;
  chain->burst = (uint32_t)burst;
  chain->first = plan->callback_count;
  return NULL;
}

/* File names refer to the plan's folder. */
static bool take_file(fields_t *fields, char *file) {
  const char *word = next(fields);
  if (word == NULL) return false;
  const char *slash = strrchr(fields->beside, '/');
  const int folder = slash == NULL ? 0 : (int)(slash - fields->beside) + 1;
  return snprintf(file, PLAN_PATH_BYTES, "%.*s%s", folder, fields->beside, word) < PLAN_PATH_BYTES;
}

static const char *read_message(fields_t *fields, plan_message_t *message) {
  if (!take_text(fields, message->topic, sizeof message->topic)) return "lacks a topic, or has one that is too long";
  if (strcmp(message->topic, "-") == 0) {
    message->topic[0] = '\0';
    return NULL;
  }
  char kind[16];
  int64_t offset = 0, every = 0;
  if (!take_text(fields, message->type, sizeof message->type) || !take_text(fields, kind, sizeof kind) ||
      !take_number(fields, &offset) || !take_number(fields, &every) || !take_reliability(fields, &message->reliable) ||
      !take_file(fields, message->file)) {
    return "lacks a field of a message";
  }
  if (every < 1 || every > UINT32_MAX) return "has a message of no instance";
  message->every = (uint32_t)every;
  if (!number_kind(kind, &message->number.kind)) return "has a number that is none of " NUMBER_KINDS;
  if (offset < 0 || offset > PLAN_PAYLOAD_BYTES) return "has its number behind the largest message";
  message->number.offset = (size_t)offset;
  return NULL;
}

static bool is_service(const plan_message_t *message) {
  return message->topic[0] != '\0' && strstr(message->type, "/msg/") == NULL &&
         strstr(message->type, "_FeedbackMessage") == NULL;
}

/* A mark identifies the client of a common service. */
static const char *find_server(plan_t *plan, plan_callback_t *callback) {
  for (const plan_callback_t *other = plan->callbacks; other <= callback; other++) {
    if (other->role != PLAN_SERVICE || strcmp(other->in.topic, callback->in.topic) != 0) continue;
    callback->server = (size_t)(other - plan->callbacks);
    if (other == callback) return NULL;
    if (strcmp(other->in.type, callback->in.type) != 0) return "serves a service of another type under the same name";
    const bool marked = callback->mark.kind != NUMBER_NONE && other->mark.kind != NUMBER_NONE;
    return marked ? NULL : "serves what another callback serves, and a mark is missing";
  }
  return NULL;
}

static const char *find_role(plan_t *plan, plan_callback_t *callback) {
  const bool takes_reply = is_service(&callback->in);
  const bool serves = takes_reply && strcmp(callback->in.topic, callback->out.topic) == 0;
  const bool begins = callback->in.topic[0] == '\0';
  callback->role = begins && plan->chains[callback->chain].burst > 0 ? PLAN_EVENT
                   : begins                                          ? PLAN_TIMER
                   : serves                                          ? PLAN_SERVICE
                   : takes_reply                                     ? PLAN_CLIENT
                                                                     : PLAN_SUBSCRIPTION;
  callback->requests = !serves && is_service(&callback->out);
  if (serves) return find_server(plan, callback);
  if (callback->role != PLAN_CLIENT) return NULL;
  for (const plan_callback_t *other = plan->callbacks; other < callback; other++) {
    callback->request = (size_t)(other - plan->callbacks);
    const bool asks = other->requests && other->chain == callback->chain;
    if (asks && strcmp(other->out.topic, callback->in.topic) == 0) return NULL;
  }
  return "takes the reply of a service that no callback of its chain before it requests";
}

/* Optional, at the end of the line. */
static const char *read_mark(fields_t *fields, plan_callback_t *callback) {
  char kind[16];
  int64_t offset = 0;
  if (fields->rest == NULL || fields->rest[strspn(fields->rest, BLANKS)] == '\0') return NULL;
  if (!take_text(fields, kind, sizeof kind) || !take_number(fields, &offset) ||
      !take_number(fields, &callback->mark_value)) {
    return "lacks a field of a mark";
  }
  if (!number_kind(kind, &callback->mark.kind)) return "has a mark that is none of " NUMBER_KINDS;
  if (offset < 0 || offset > PLAN_PAYLOAD_BYTES) return "has its mark behind the largest message";
  callback->mark.offset = (size_t)offset;
  return NULL;
}

static const char *read_callback(fields_t *fields, plan_t *plan) {
  if (plan->chain_count == 0) return "is a callback before the first chain";
  if (plan->callback_count == PLAN_CALLBACKS) return "is one callback too many (at most 64)";
  plan_callback_t *callback = &plan->callbacks[plan->callback_count++];
  callback->chain = plan->chain_count - 1;
  plan->chains[callback->chain].count++;
  if (!take_text(fields, callback->name, sizeof callback->name) || !take_number(fields, &callback->execution_ns) ||
      !take_number(fields, &callback->least_ns) || !take_number(fields, &callback->limit_ns)) {
    return "does not begin as a callback";
  }
  if (callback->execution_ns < 0 || callback->least_ns < 0 || callback->limit_ns < 0) return "has an impossible time";
  const char *problem = read_message(fields, &callback->in);
  if (problem == NULL) problem = read_message(fields, &callback->out);
  if (problem == NULL) problem = read_mark(fields, callback);
  if (problem == NULL && next(fields) != NULL) problem = "has a field too many";
  if (problem == NULL) problem = find_role(plan, callback);
  const bool is_first = plan->chains[callback->chain].count == 1;
  if (problem == NULL && callback->in.topic[0] == '\0' && !is_first) problem = "is a timer that does not begin a chain";
  if (problem == NULL && callback->out.topic[0] != '\0' && !is_service(&callback->out)) {
    problem = "publishes, which a line `send` says";
  }
  return problem;
}

static const char *read_join(fields_t *fields, plan_t *plan) {
  if (plan->callback_count == 0 || plan->chains[plan->chain_count - 1].count == 0) return "is a join of no callback";
  plan_callback_t *callback = &plan->callbacks[plan->callback_count - 1];
  if (callback->role != PLAN_SUBSCRIPTION) return "is a join of what is no subscription";
  if (callback->join_count == PLAN_JOINS_OF_ONE) return "is one message too many for one callback (at most 8)";
  if (plan->join_count == PLAN_JOINS) return "is one join too many (at most 32)";
  if (callback->join_count++ == 0) callback->first_join = plan->join_count;
  plan_message_t *message = &plan->joins[plan->join_count++];
  const char *problem = read_message(fields, message);
  if (problem == NULL && (message->topic[0] == '\0' || is_service(message))) problem = "joins what is no topic";
  if (problem == NULL && next(fields) != NULL) problem = "has a field too many";
  return problem;
}

static const char *read_send(fields_t *fields, plan_t *plan) {
  if (plan->callback_count == 0 || plan->chains[plan->chain_count - 1].count == 0) return "is a message of no callback";
  plan_callback_t *callback = &plan->callbacks[plan->callback_count - 1];
  if (plan->send_count == PLAN_SENDS) return "is one publication too many (at most 96)";
  if (callback->send_count++ == 0) callback->first_send = plan->send_count;
  plan_message_t *message = &plan->sends[plan->send_count++];
  const char *problem = read_message(fields, message);
  if (problem == NULL && (message->topic[0] == '\0' || is_service(message))) problem = "publishes what is no topic";
  if (problem == NULL && next(fields) != NULL) problem = "has a field too many";
  return problem;
}

static const char *read_load(fields_t *fields, plan_t *plan) {
  if (plan->load_count == PLAN_LOADS) return "is one load too many (at most 16)";
  plan_load_t *load = &plan->loads[plan->load_count++];
  int64_t masks = 0, asks = 0;
  if (!take_text(fields, load->name, sizeof load->name) || !take_number(fields, &load->execution_ns) ||
      !take_number(fields, &load->period_ns) || !take_number(fields, &masks) || !take_number(fields, &asks) ||
      next(fields) != NULL) {
    return "does not have the five fields of a load";
  }
  load->masks = masks != 0;
  load->asks = asks != 0;
  return load->execution_ns < 0 || load->period_ns <= 0 ? "has an impossible time" : NULL;
}

static const char *read_line(char *line, const char *path, plan_t *plan) {
  fields_t fields = {NULL, path};
  const char *word = strtok_r(line, BLANKS, &fields.rest);
  if (word == NULL || word[0] == '#') return NULL;
  if (strcmp(word, "chain") == 0) return read_chain(&fields, plan);
  if (strcmp(word, "callback") == 0) return read_callback(&fields, plan);
  if (strcmp(word, "join") == 0) return read_join(&fields, plan);
  if (strcmp(word, "send") == 0) return read_send(&fields, plan);
  if (strcmp(word, "load") == 0) return read_load(&fields, plan);
  return "begins with none of chain, callback, join, send and load";
}

static const char *whole(const plan_t *plan) {
  if (plan->chain_count == 0) return "is the end, and there was no chain";
  for (size_t index = 0; index < plan->chain_count; index++) {
    if (plan->chains[index].count == 0) return "is the end, and a chain has no callback";
  }
  return NULL;
}

bool plan_read(const char *path, plan_t *plan) {
  FILE *file = fopen(path, "r");
  if (file == NULL) {
    fprintf(stderr, "chain_client: %s cannot be opened; give the plan that tide run wrote\n", path);
    return false;
  }
  memset(plan, 0, sizeof *plan);
  const char *problem = NULL;
  char line[LINE_BYTES];
  int number = 0;
  while (problem == NULL && fgets(line, sizeof line, file) != NULL) {
    number++;
    problem = read_line(line, path, plan);
  }
  fclose(file);
  if (problem == NULL) problem = whole(plan);
  if (problem != NULL) fprintf(stderr, "chain_client: %s:%d: %s\n", path, number, problem);
  return problem == NULL;
}

bool plan_begins(const plan_t *plan, const plan_chain_t *chain) {
  return plan->callbacks[chain->first].in.topic[0] == '\0';
}
