/* SPDX-License-Identifier: Apache-2.0 */
#include "raw_message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tide/cdr.h>
#include <tide/status.h>

static void encode(tide_cdr_t *cdr, const void *message) {
  const raw_message_t *raw = message;
  tide_cdr_put_bytes(cdr, raw->bytes, raw->size);
}

static void decode(tide_cdr_t *cdr, void *message) {
  raw_message_t *raw = message;
  raw->size = tide_cdr_remaining(cdr);
  if (raw->size > raw->capacity) {
    raw->size = 0;
    cdr->status = TIDE_ERROR_CAPACITY_MESSAGE;
    return;
  }
  tide_cdr_get_bytes(cdr, raw->bytes, raw->size);
}

bool raw_type_init(raw_type_t *type, const char *name) {
  if (strlen(name) >= sizeof type->package) return false;
  memcpy(type->package, name, strlen(name) + 1);
  char *kind = strchr(type->package, '/');
  char *short_name = kind == NULL ? NULL : strchr(kind + 1, '/');
  if (short_name == NULL) return false;
  *kind++ = '\0';
  *short_name++ = '\0';
  snprintf(type->dds_name, sizeof type->dds_name, "%s::%s::dds_::%s_", type->package, kind, short_name);
  type->type = (tide_message_type_t){.package = type->package,
                                     .kind = kind,
                                     .name = short_name,
                                     .dds_name = type->dds_name,
                                     .structure_bytes = sizeof(raw_message_t),
                                     .encode = encode,
                                     .decode = decode};
  type->support = (rosidl_message_type_support_t){TIDE_TYPESUPPORT_IDENTIFIER, &type->type,
                                                  get_message_typesupport_handle_function};
  return true;
}

bool raw_service_init(raw_service_t *service, const char *name) {
  char part[PLAN_TYPE_BYTES + 16];
  snprintf(part, sizeof part, "%s_Request", name);
  bool known = raw_type_init(&service->request, part);
  snprintf(part, sizeof part, "%s_Response", name);
  known = known && raw_type_init(&service->response, part);
  service->type = (tide_service_type_t){service->request.package, service->request.type.name, &service->request.type,
                                        &service->response.type};
  service->support = (rosidl_service_type_support_t){TIDE_TYPESUPPORT_IDENTIFIER, &service->type,
                                                     get_service_typesupport_handle_function};
  return known;
}

bool raw_message_reserve(raw_message_t *message) {
  message->bytes = malloc(PLAN_PAYLOAD_BYTES);
  message->capacity = PLAN_PAYLOAD_BYTES;
  message->size = 0;
  return message->bytes != NULL;
}

bool raw_message_read(raw_message_t *message, const char *file) {
  if (!raw_message_reserve(message)) return false;
  FILE *stream = fopen(file, "rb");
  if (stream != NULL) {
    message->size = fread(message->bytes, 1, message->capacity, stream);
    const bool more = fgetc(stream) != EOF;
    fclose(stream);
    if (message->size > 0 && !more) return true;
  }
  fprintf(stderr, "chain_client: %s is no message of 1 to %d bytes; give the plan that tide run wrote\n", file,
          PLAN_PAYLOAD_BYTES);
  return false;
}
