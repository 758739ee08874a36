/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r\n"
#define LINE_BYTES 4096

/* ---- instance numbers in messages ---- */

enum { DIGITS = 5 };

static const struct {
  const char *word;
  size_t bytes;
  int64_t modulus;
} kinds[] = {
    [NUMBER_NONE] = {"none", 0, 1},
    [NUMBER_BOOL] = {"bool", 1, 2},
    [NUMBER_U8] = {"u8", 1, 1 << 7}, /* 1 << 7, so that an int8 has the same values */
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
  char *rest;         /* the rest of the line */
  const char *beside; /* path of the plan; its folder has the message files */
} fields_t;

static const char *next(fields_t *fields) { return strtok_r(NULL, BLANKS, &fields->rest); }

static bool at_end(fields_t *fields) { return next(fields) == NULL; }

static bool take_text(fields_t *fields, char *text, size_t bytes) {
  const char *word = next(fields);
  if (word == NULL || strlen(word) >= bytes) return false;
  memcpy(text, word, strlen(word) + 1);
  return true;
}

static bool take_number(fields_t *fields, int64_t least, int64_t most, int64_t *number) {
  const char *word = next(fields);
  char *end = NULL;
  if (word != NULL) *number = strtoll(word, &end, 10);
  return word != NULL && end != word && *end == '\0' && least <= *number && *number <= most;
}

static bool take_time(fields_t *fields, int64_t *time_ns) { return take_number(fields, 0, INT64_MAX, time_ns); }

static bool take_reliability(fields_t *fields, bool *reliable) {
  const char *word = next(fields);
  *reliable = word != NULL && strcmp(word, "reliable") == 0;
  return *reliable || (word != NULL && strcmp(word, "best_effort") == 0);
}

static bool take_place(fields_t *fields, number_place_t *place) {
  char kind[16];
  int64_t offset = 0;
  if (!take_text(fields, kind, sizeof kind) || !number_kind(kind, &place->kind) ||
      !take_number(fields, 0, PLAN_PAYLOAD_BYTES, &offset)) {
    return false;
  }
  place->offset = (size_t)offset;
  return true;
}

static bool read_chain(fields_t *fields, plan_t *plan) {
  if (plan->chain_count == PLAN_CHAINS) return false;
  plan_chain_t *chain = &plan->chains[plan->chain_count++];
  int64_t level = 0, instances = 0, burst = 0;
  if (!take_text(fields, chain->name, sizeof chain->name) || !take_number(fields, 1, 126, &level) ||
      !take_number(fields, 1, INT64_MAX, &chain->period_ns) || !take_time(fields, &chain->offset_ns) ||
      !take_number(fields, 1, 10000000, &instances) || !take_number(fields, 0, 16, &burst)) {
    return false;
  }
  chain->level = (uint8_t)level;
  chain->instances = (uint32_t)instances;
  chain->burst = (uint32_t)burst;
  chain->first = plan->callback_count;
  return take_reliability(fields, &chain->reliable) && at_end(fields);
}

/* File names are relative to the folder of the plan. */
static bool take_file(fields_t *fields, char *file) {
  const char *word = next(fields);
  if (word == NULL) return false;
  const char *slash = strrchr(fields->beside, '/');
  const int folder = slash == NULL ? 0 : (int)(slash - fields->beside) + 1;
  return snprintf(file, PLAN_PATH_BYTES, "%.*s%s", folder, fields->beside, word) < PLAN_PATH_BYTES;
}

static bool read_message(fields_t *fields, plan_message_t *message) {
  int64_t every = 0;
  if (!take_text(fields, message->topic, sizeof message->topic)) return false;
  if (strcmp(message->topic, "-") == 0) {
    message->topic[0] = '\0';
    return true;
  }
  if (!take_text(fields, message->type, sizeof message->type) || !take_place(fields, &message->number) ||
      !take_number(fields, 1, UINT32_MAX, &every)) {
    return false;
  }
  message->every = (uint32_t)every;
  return take_reliability(fields, &message->reliable) && take_file(fields, message->file);
}

static bool is_service(const plan_message_t *message) {
  return message->topic[0] != '\0' && strstr(message->type, "/msg/") == NULL &&
         strstr(message->type, "_FeedbackMessage") == NULL;
}

static bool is_topic(const plan_message_t *message) { return message->topic[0] != '\0' && !is_service(message); }

/* Finds the first callback that serves the same service. If there are several such callbacks, a mark in the request
 * must select one of them. */
static bool find_server(plan_t *plan, plan_callback_t *callback) {
  const plan_callback_t *other = plan->callbacks;
  while (other->role != PLAN_SERVICE || strcmp(other->in.topic, callback->in.topic) != 0) other++;
  callback->server = (size_t)(other - plan->callbacks);
  return other == callback || (strcmp(other->in.type, callback->in.type) == 0 && callback->mark.kind != NUMBER_NONE &&
                               other->mark.kind != NUMBER_NONE);
}

static bool find_role(plan_t *plan, plan_callback_t *callback) {
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
  if (callback->role != PLAN_CLIENT) return true;
  for (const plan_callback_t *other = plan->callbacks; other < callback; other++) {
    callback->request = (size_t)(other - plan->callbacks);
    const bool asks = other->requests && other->chain == callback->chain;
    if (asks && strcmp(other->out.topic, callback->in.topic) == 0) return true;
  }
  return false; /* no callback of this chain sends this request */
}

/* Reads the mark, the optional fields at the end of a callback's line. */
static bool read_mark(fields_t *fields, plan_callback_t *callback) {
  if (fields->rest == NULL || fields->rest[strspn(fields->rest, BLANKS)] == '\0') return true;
  return take_place(fields, &callback->mark) && take_number(fields, INT64_MIN, INT64_MAX, &callback->mark_value);
}

static bool read_callback(fields_t *fields, plan_t *plan) {
  if (plan->chain_count == 0 || plan->callback_count == PLAN_CALLBACKS) return false;
  plan_callback_t *callback = &plan->callbacks[plan->callback_count++];
  callback->chain = plan->chain_count - 1;
  const bool is_first = plan->chains[callback->chain].count++ == 0;
  return take_text(fields, callback->name, sizeof callback->name) && take_time(fields, &callback->execution_ns) &&
         take_time(fields, &callback->least_ns) && take_time(fields, &callback->limit_ns) &&
         read_message(fields, &callback->in) && read_message(fields, &callback->out) && read_mark(fields, callback) &&
         at_end(fields) && find_role(plan, callback) && (is_first || callback->in.topic[0] != '\0') &&
         !is_topic(&callback->out);
}

/* The callback to which a line `join` or `send` belongs: the last one so far. NULL if there is none. */
static plan_callback_t *last_callback(plan_t *plan) {
  const bool any = plan->chain_count > 0 && plan->chains[plan->chain_count - 1].count > 0;
  return any ? &plan->callbacks[plan->callback_count - 1] : NULL;
}

static bool read_join(fields_t *fields, plan_t *plan) {
  plan_callback_t *callback = last_callback(plan);
  if (callback == NULL || callback->role != PLAN_SUBSCRIPTION || callback->join_count == PLAN_JOINS_OF_ONE ||
      plan->join_count == PLAN_JOINS) {
    return false;
  }
  if (callback->join_count++ == 0) callback->first_join = plan->join_count;
  plan_message_t *message = &plan->joins[plan->join_count++];
  return read_message(fields, message) && is_topic(message) && at_end(fields);
}

static bool read_send(fields_t *fields, plan_t *plan) {
  plan_callback_t *callback = last_callback(plan);
  if (callback == NULL || plan->send_count == PLAN_SENDS) return false;
  if (callback->send_count++ == 0) callback->first_send = plan->send_count;
  plan_message_t *message = &plan->sends[plan->send_count++];
  return read_message(fields, message) && is_topic(message) && at_end(fields);
}

static bool read_load(fields_t *fields, plan_t *plan) {
  if (plan->load_count == PLAN_LOADS) return false;
  plan_load_t *load = &plan->loads[plan->load_count++];
  int64_t masks = 0, asks = 0;
  if (!take_text(fields, load->name, sizeof load->name) || !take_time(fields, &load->execution_ns) ||
      !take_number(fields, 1, INT64_MAX, &load->period_ns) || !take_number(fields, 0, 1, &masks) ||
      !take_number(fields, 0, 1, &asks)) {
    return false;
  }
  load->masks = masks != 0;
  load->asks = asks != 0;
  return at_end(fields);
}

static bool read_line(char *line, const char *path, plan_t *plan) {
  static const struct {
    const char *word;
    bool (*read)(fields_t *fields, plan_t *plan);
  } kinds_of_lines[] = {{"chain", read_chain},
                        {"callback", read_callback},
                        {"join", read_join},
                        {"send", read_send},
                        {"load", read_load}};
  fields_t fields = {NULL, path};
  const char *word = strtok_r(line, BLANKS, &fields.rest);
  if (word == NULL || word[0] == '#') return true;
  for (size_t index = 0; index < sizeof kinds_of_lines / sizeof *kinds_of_lines; index++) {
    if (strcmp(word, kinds_of_lines[index].word) == 0) return kinds_of_lines[index].read(&fields, plan);
  }
  return false;
}

static bool is_whole(const plan_t *plan) {
  for (size_t index = 0; index < plan->chain_count; index++) {
    if (plan->chains[index].count == 0) return false;
  }
  return plan->chain_count > 0;
}

bool plan_read(const char *path, plan_t *plan) {
  FILE *file = fopen(path, "r");
  if (file == NULL) {
    fprintf(stderr, "chain_client: %s cannot be opened; give the plan that tide run wrote\n", path);
    return false;
  }
  memset(plan, 0, sizeof *plan);
  char line[LINE_BYTES];
  int number = 0;
  bool right = true;
  for (; right && fgets(line, sizeof line, file) != NULL; number++) right = read_line(line, path, plan);
  fclose(file);
  right = right && is_whole(plan);
  if (!right) fprintf(stderr, "chain_client: %s:%d: not as plan.h describes it; let tide run write it\n", path, number);
  return right;
}

bool plan_begins(const plan_t *plan, const plan_chain_t *chain) {
  return plan->callbacks[chain->first].in.topic[0] == '\0';
}
