/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest program on the runtime's own interface: a publisher, a subscription and a timer on an executor.
 * It publishes the last received number plus one, and ends with exit code 0 after a fixed number of received messages.
 * The macro FOOTPRINT_RELIABLE (0 or 1) chooses the reliability.
 */
#include <string.h>

#include "board.h"
#include "platform.h"
#include "tide/executor.h"
#include "tide/port.h"
#include "tide/status.h"
#include "uart.h"

#define RELIABLE FOOTPRINT_RELIABLE
#define PLATFORM (TIDE_STATIC_PLATFORM ? NULL : &tide_cortex_m_platform)
#define ID(number, kind) TIDE_XRCE_OBJECT(number, TIDE_XRCE_KIND_##kind)
enum { MTU_BYTES = 128, NODES = 4, SLOTS = 4, STREAMS = 1 + RELIABLE, CALLBACKS = 2, HEARD_ENOUGH = 20 };

/* Memory for messages. The program chooses its size. */
struct {
  uint32_t nodes[NODES][MTU_BYTES / 4], slots[SLOTS][MTU_BYTES / 4];
} tide_message_memory;

static const tide_size_class_t size_class = {(uint8_t *)tide_message_memory.nodes, MTU_BYTES, NODES};
static tide_node_t nodes[NODES];
static tide_queue_entry_t *execution[NODES], *pending[NODES], *noted[SLOTS];
static tide_output_stream_t output_streams[STREAMS];
static tide_input_stream_t input_streams[STREAMS];
static tide_slot_t slots[SLOTS];
static tide_sample_t sample;

static uint8_t piece[32], ring[64];
const tide_uart_board_t tide_uart_board = {&TIDE_CHIP_UART, piece, sizeof piece, ring, sizeof ring};

/* The program's objects in the agent, each after its parent. */
static const struct entity {
  uint8_t kind;
  uint16_t parent, topic;
  const char *name;
} entities[] = {
    {TIDE_XRCE_KIND_PARTICIPANT, 0, 0, "footprint"},
    {TIDE_XRCE_KIND_TOPIC, ID(1, PARTICIPANT), 0, "rt/said"},
    {TIDE_XRCE_KIND_PUBLISHER, ID(1, PARTICIPANT), 0, NULL},
    {TIDE_XRCE_KIND_DATAWRITER, ID(1, PUBLISHER), ID(1, TOPIC), NULL},
    {TIDE_XRCE_KIND_TOPIC, ID(1, PARTICIPANT), 0, "rt/heard"},
    {TIDE_XRCE_KIND_SUBSCRIBER, ID(1, PARTICIPANT), 0, NULL},
    {TIDE_XRCE_KIND_DATAREADER, ID(1, SUBSCRIBER), ID(2, TOPIC), NULL},
};
enum { OBJECTS = sizeof entities / sizeof entities[0] };
static tide_object_t objects[OBJECTS];
static tide_object_t *table[OBJECTS];

static tide_session_t session;
static tide_executor_t executor;
static tide_lane_t lane;
static tide_callback_t *callbacks[CALLBACKS];
static tide_queue_entry_t *ready[CALLBACKS], *timers[CALLBACKS];
static uint32_t heard;
static tide_reader_t reader;
static tide_callback_t subscription;

static void publish(tide_timer_t *expired, int64_t since_last_call_ns) {
  (void)expired;
  (void)since_last_call_ns;
  tide_write_t write;
  if (tide_session_write_begin(&session, &write, ID(1, DATAWRITER), RELIABLE, TIDE_PRIORITY(0, 0), 4u) != TIDE_OK)
    return;
  tide_cdr_put_u32(&write.cdr, heard + 1u);
  (void)tide_session_write_end(&write);
}

static void hear(tide_callback_t *callback, void *context) {
  (void)callback;
  (void)context;
  const tide_sample_t *oldest = tide_session_peek(&session, &reader);
  if (oldest == NULL) return;
  tide_cdr_t cdr;
  tide_cdr_reader(&cdr, oldest->bytes, oldest->length, false);
  heard = tide_cdr_get_u32(&cdr);
  tide_session_take_done(&session, &reader);
  if (heard >= HEARD_ENOUGH) tide_executor_stop(&executor);
}

static void on_sample(void *context, tide_reader_t *reader_) {
  (void)context;
  (void)reader_;
  tide_executor_notify(&subscription);
}

static tide_timer_t timer;

static int32_t most_urgent(void *context, tide_priority_t least, tide_priority_t most) {
  (void)least; /* one lane takes all callbacks */
  (void)most;
  return tide_daemon_most_urgent(context);
}
static int process(void *context, tide_priority_t least, tide_priority_t most) {
  (void)least;
  (void)most;
  return tide_daemon_process_most_urgent(context);
}
static int process_oldest(void *context) { return tide_daemon_process_oldest(context); }
static int64_t poll(void *context) {
  (void)context;
  tide_port_serve_link(&session);
  return tide_session_poll(&session);
}
static void wake(void *context) { tide_executor_wake(context); }

static const tide_session_config_t session_config = {
    .daemon = {.platform = PLATFORM,
               .transmitter = {.nodes = nodes,
                               .execution_storage = execution,
                               .pending_storage = pending,
                               .node_count = NODES,
                               .classes = &size_class,
                               .class_count = 1u,
                               .streams = output_streams,
                               .stream_count = STREAMS,
                               .message_bytes = MTU_BYTES - 4u,
                               .pad_last = true,
                               .heartbeat_delay_ns = -1},
               .receiver = {.slots = slots,
                            .slot_count = SLOTS,
                            .storage = (uint8_t *)tide_message_memory.slots,
                            .slot_bytes = MTU_BYTES,
                            .noted_storage = noted,
                            .streams = input_streams,
                            .stream_count = STREAMS},
               .on_activity = wake,
               .context = &executor},
    .key = 0x0F007001u,
    .session = 0x81u,
    .objects = table,
    .object_count = OBJECTS,
    .mtu = MTU_BYTES,
    .on_work = wake,
    .context = &executor};

static const tide_executor_config_t executor_config = {
    .platform = PLATFORM,
    .callbacks = callbacks,
    .ready_storage = ready,
    .timer_storage = timers,
    .callback_count = CALLBACKS,
    .lanes = &lane,
    .lane_count = 1u,
    .source = {&session.daemon, most_urgent, process, TIDE_LEAN ? NULL : process_oldest, poll}};

static int open_executor(void) {
  timer.period_ns = 50000000;
  timer.on_expiry = publish;
  subscription.kind = TIDE_CALLBACK_SUBSCRIPTION;
  subscription.execute = hear;
  int status = tide_executor_init(&executor, &executor_config);
  if (status == TIDE_OK) status = tide_executor_add_timer(&executor, &timer);
  return status == TIDE_OK ? tide_executor_add(&executor, &subscription) : status;
}

static tide_text_t text(const char *characters) { return (tide_text_t){characters, strlen(characters)}; }

static int add(tide_object_t *object, const struct entity *entity) {
  tide_xrce_object_t *description = &object->description;
  description->kind = entity->kind;
  description->representation = TIDE_XRCE_BY_BINARY;
  description->parent = entity->parent;
  description->topic = entity->topic;
  if (entity->name != NULL) {
    description->has_name = true;
    description->name = text(entity->name);
    description->type = text("std_msgs::msg::dds_::Int32_"); /* the type of both topics */
  }
  if (entity->topic != 0u) {
    description->has_qos = true;
    description->qos_flags = TIDE_XRCE_QOS_KEEP_LAST | (RELIABLE ? TIDE_XRCE_QOS_RELIABLE : 0u);
  }
  return tide_session_add_object(&session, object);
}

static int open_session(void) {
  reader.object = ID(1, DATAREADER);
  reader.reliable = RELIABLE;
  reader.samples = &sample;
  reader.depth = 1u;
  reader.on_sample = on_sample;
  int status = tide_session_init(&session, &session_config);
  for (size_t i = 0; i < OBJECTS && status == TIDE_OK; i++) status = add(&objects[i], &entities[i]);
  return status == TIDE_OK ? tide_session_add_reader(&session, &reader) : status;
}

int main(void) {
  if (open_executor() != TIDE_OK) return 2;
  if (open_session() != TIDE_OK) return 3;
  const tide_link_address_t line = {.kind = TIDE_LINK_SERIAL, .baud = 115200u};
  if (tide_port_open_link(&session, &line) != TIDE_OK) return 4;
  tide_session_open(&session);
  return tide_executor_spin(&executor) == TIDE_OK ? 0 : 5;
}
