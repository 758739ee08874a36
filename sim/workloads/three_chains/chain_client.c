/* SPDX-License-Identifier: Apache-2.0 */
/* A micro-ROS program that plays a board of a system.toml: its callbacks compute for the described times and send
 * messages of the described types. The callbacks are plain rclc. The set-up in main adds what belongs to tide: the
 * chains with their levels, and the executor's policy and the send mode, which `tide run` varies.
 *
 * The latency of an instance is the time from the nominal expiry of its timer to the completion of its last callback,
 * on CLOCK_MONOTONIC. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <rcl/rcl.h>
#include <rclc/client.h>
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <rclc/service.h>
#include <rmw_microros/rmw_microros.h>
#include <rosidl_runtime_c/message_type_support_struct.h>
#include <rosidl_runtime_c/service_type_support_struct.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <tide/budget_posix.h>
#include <tide/cdr.h>
#include <tide/executor.h>
#include <tide/message.h>
#include <tide/message_memory.h>
#include <tide/posix.h>
#include <tide/rclc.h>
#include <tide/rclc_service.h>
#include <tide/status.h>
#include <tide/trace.h>
#include <time.h>
#include <unistd.h>

#include "plan.h"

#define TIDE_PUBLISHERS PLAN_SENDS
#define TIDE_SUBSCRIPTIONS (PLAN_CALLBACKS + PLAN_JOINS)
#define TIDE_SERVICES PLAN_CHAINS
#define TIDE_CLIENTS PLAN_CHAINS
#define TIDE_TIMERS PLAN_CHAINS
#define TIDE_GUARD_CONDITIONS PLAN_EVENTS
#define TIDE_NODES 1
#define TIDE_EXECUTOR_LANES PLAN_CHAINS
#define TIDE_STREAMS (PLAN_CHAINS + 1)
#define TIDE_NAME_BYTES PLAN_TOPIC_BYTES
#define TIDE_MTU_BYTES MTU_BYTES_MOST
#define TIDE_SLOTS (4 * PLAN_CHAINS)
#define TIDE_SMALL_NODES (3 * PLAN_CHAINS)
#define TIDE_LARGE_NODES PLAN_CHAINS
#define TIDE_LARGE_NODE_BYTES (PLAN_PAYLOAD_BYTES + 16)
#define TIDE_REASSEMBLY_BYTES (PLAN_PAYLOAD_BYTES + 16)
#define TIDE_DEFINE_POOLS
#include <tide/pools.h>
/* Limits of boards without an agent: PLAYED_RTPS of tide_tools/run/plan.py. */
#define TIDE_RTPS_WRITERS 32
#define TIDE_RTPS_READERS 16
#define TIDE_RTPS_PEERS 32
#define TIDE_RTPS_MATCHES 256
#define TIDE_RTPS_HISTORY 16
#define TIDE_RTPS_SAMPLE_BYTES 8192
#define TIDE_DEFINE_RTPS
#include <tide/rclc_rtps.h>

static plan_t plan;
static int64_t first_release_ns;
static volatile sig_atomic_t interrupted;

static int64_t clock_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }

/* ---- options ---- */

static const char usage[] =
    "chain_client: a board of a system.toml, its chains as tide run plans them\n"
    "\n"
    "  chain_client --plan out/plan.txt --device out/robot.tty --executor tide\n"
    "\n"
    "  --plan FILE          file of the chains, as written by tide run\n"
    "  --device PATH        serial device of the agent's line\n"
    "  --udp PORT           UDP port of the agent on this machine, in place of a device\n"
    "  --tcp PORT           the same of TCP\n"
    "  --rtps ADDRESS       own IPv4 address of a board without an agent, in place of a device\n"
    "  --baud N             baud rate; default: 115200\n"
    "  --mtu N              bytes of the largest message of the link; default: 512\n"
    "  --key N              key of the client; default: any\n"
    "  --executor NAME      executor: tide | tide-preemptive | batch; default: tide\n"
    "  --send NAME          way of sending: asynchronous | stock | blocking; default: asynchronous\n"
    "  --domain N           ROS domain; default: 0\n"
    "  --cpu N              processor of the executor; default: any\n"
    "  --link-cpu N         processor of the link's thread; default: any\n"
    "  --priority N         SCHED_FIFO priority of the executor; 0: normal scheduling. tide-preemptive: of its least\n"
    "                       urgent lane; the others are above it\n"
    "  --link-priority N    SCHED_FIFO priority of the link's thread; default: the highest\n"
    "  --heartbeat-delay-us N  microseconds from a reliable message to the question after it; default: a measured\n"
    "                       round trip\n"
    "  --hold-level N       level whose reliable messages keep all that is less urgent until their\n"
    "                       acknowledgment; may be repeated\n"
    "  --budget-us N        microseconds of each lane, or of the batch executor, at its priority in each period\n"
    "  --budget-period-us N microseconds of that period; needs --priority\n"
    "  --wait               wait for execution times in place of computing, as a board with a processor of its own "
    "would\n"
    "                       have them; not with tide-preemptive or a budget\n"
    "  --wait-for-start     wait with the first release for a line on standard input: start, and when in nanoseconds "
    "of\n"
    "                       the monotonic clock; default: release half a second from now\n"
    "  --trace FILE         file of the trace; read by tide trace export\n"
    "\n"
    "Runs until SIGINT or SIGTERM. Prints a line of JSON for each event and each finished chain instance, and the "
    "execution times of the "
    "callbacks.\n";

static struct {
  const char *plan, *device, *udp, *tcp, *rtps, *trace; /* udp, tcp: port of the agent here, instead of a device */
  tide_policy_t policy;
  bool preemptive; /* true: one lane for each level */
  tide_send_t send;
  int64_t baud, mtu_bytes, key, domain, cpu, link_cpu, priority, link_priority, heartbeat_delay_ns;
  int64_t budget_ns, budget_period_ns; /* of each lane; budget_ns 0: no budgets */
  bool hold[TIDE_LEVEL_MAXIMUM + 1];
  bool wait_for_start, waits; /* waits: callbacks sleep for their execution times instead of computing */
} options = {.policy = TIDE_POLICY_TIDE,
             .send = TIDE_SEND_ASYNCHRONOUS,
             .baud = 115200,
             .mtu_bytes = 512,
             .cpu = TIDE_POSIX_ANY_CPU,
             .link_cpu = TIDE_POSIX_ANY_CPU,
             .heartbeat_delay_ns = -1};

static void refuse(const char *name, const char *value) {
  fprintf(stderr, "chain_client: %s does not take '%s'; see chain_client --help\n", name, value);
  exit(2);
}

static int64_t number(const char *name, const char *text, long least, long most) {
  char *end = NULL;
  const long value = strtol(text, &end, 10);
  if (end == text || *end != '\0' || value < least || value > most) refuse(name, text);
  return value;
}

static void take_option(const char *name, const char *value) {
  static const struct {
    const char *name;
    long least, most, unit_ns;
    int64_t *number;
  } numbers[] = {{"--baud", 50, 100000000, 1, &options.baud},
                 {"--mtu", 68, MTU_BYTES_MOST, 1, &options.mtu_bytes},
                 {"--key", 1, 0x7FFFFFFF, 1, &options.key},
                 {"--domain", 0, 232, 1, &options.domain},
                 {"--cpu", 0, 1023, 1, &options.cpu},
                 {"--link-cpu", 0, 1023, 1, &options.link_cpu},
                 {"--priority", 0, 99, 1, &options.priority},
                 {"--link-priority", 0, 99, 1, &options.link_priority},
                 {"--heartbeat-delay-us", 0, 1000000, 1000, &options.heartbeat_delay_ns},
                 {"--budget-us", 1, 10000000, 1000, &options.budget_ns},
                 {"--budget-period-us", 1, 10000000, 1000, &options.budget_period_ns}};
  static const struct {
    const char *name, **text;
  } texts[] = {{"--plan", &options.plan}, {"--device", &options.device}, {"--udp", &options.udp},
               {"--tcp", &options.tcp},   {"--rtps", &options.rtps},     {"--trace", &options.trace}};
  for (size_t index = 0; index < sizeof numbers / sizeof *numbers; index++) {
    if (strcmp(name, numbers[index].name) != 0) continue;
    *numbers[index].number = number(name, value, numbers[index].least, numbers[index].most) * numbers[index].unit_ns;
    return;
  }
  for (size_t index = 0; index < sizeof texts / sizeof *texts; index++) {
    if (strcmp(name, texts[index].name) == 0) {
      *texts[index].text = value;
      return;
    }
  }
  if (strcmp(name, "--executor") == 0) {
    options.preemptive = strcmp(value, "tide-preemptive") == 0;
    options.policy = strcmp(value, "batch") == 0 ? TIDE_POLICY_BATCH : TIDE_POLICY_TIDE;
    if (options.policy == TIDE_POLICY_TIDE && !options.preemptive && strcmp(value, "tide") != 0) refuse(name, value);
  } else if (strcmp(name, "--send") == 0) {
    options.send = strcmp(value, "stock") == 0      ? TIDE_SEND_STOCK
                   : strcmp(value, "blocking") == 0 ? TIDE_SEND_STOCK_BLOCKING
                                                    : TIDE_SEND_ASYNCHRONOUS;
    if (options.send == TIDE_SEND_ASYNCHRONOUS && strcmp(value, "asynchronous") != 0) refuse(name, value);
  } else if (strcmp(name, "--hold-level") == 0) {
    options.hold[number(name, value, 0, TIDE_LEVEL_MAXIMUM)] = true;
  } else {
    fprintf(stderr, "chain_client: there is no option %s; see chain_client --help\n", name);
    exit(2);
  }
}

/* Ends the program: after --help, or with status 2 and an error message if the arguments are invalid. */
static void read_options(int count, char **words) {
  for (int index = 1; index < count; index++) {
    if (strcmp(words[index], "--help") == 0) {
      fputs(usage, stdout);
      exit(0);
    } else if (strcmp(words[index], "--wait") == 0) {
      options.waits = true;
    } else if (strcmp(words[index], "--wait-for-start") == 0) {
      options.wait_for_start = true;
    } else {
      if (index + 1 == count) refuse(words[index], "");
      take_option(words[index], words[index + 1]);
      index++;
    }
  }
  const char *problem = NULL, *port = options.udp != NULL ? options.udp : options.tcp;
  const int links = (options.device != NULL) + (options.udp != NULL) + (options.tcp != NULL) + (options.rtps != NULL);
  if (options.plan == NULL || links != 1) {
    problem = "needs --plan, and one of --device, --udp, --tcp and --rtps; see chain_client --help";
  } else if (port != NULL && (atoi(port) < 1 || atoi(port) > 65535)) {
    problem = "--udp and --tcp need a port from 1 to 65535";
  } else if (options.waits && (options.preemptive || options.budget_ns > 0)) {
    problem = "--wait has no preemption and no budget; leave out --wait, or these";
  } else if ((options.budget_ns > 0 || options.budget_period_ns > 0) &&
             (options.priority == 0 || options.budget_ns == 0 || options.budget_ns > options.budget_period_ns)) {
    problem = "a budget needs --priority, --budget-us and a --budget-period-us that is not shorter";
  }
  if (problem == NULL) return;
  fprintf(stderr, "chain_client: %s\n", problem);
  exit(2);
}

/* ---- messages of any ROS 2 type, in serialised form ---- */

typedef struct raw_message {
  uint8_t *bytes; /* the serialised message, without encapsulation */
  size_t size, capacity;
} raw_message_t;

/* A message type of which only the name is known; its messages are raw_message_t. Do not move this structure after its
 * initialisation. */
typedef struct raw_type {
  char package[PLAN_TYPE_BYTES], dds_name[PLAN_TYPE_BYTES + 16];
  tide_message_type_t type;
  rosidl_message_type_support_t support;
} raw_type_t;

/* A service type whose messages are raw_message_t. Do not move this structure after its initialisation. */
typedef struct raw_service {
  raw_type_t request, response;
  tide_service_type_t type;
  rosidl_service_type_support_t support;
} raw_service_t;

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

/* `name` must have a form like std_msgs/msg/String. Returns false if it does not. */
static bool raw_type_init(raw_type_t *type, const char *name) {
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

/* `name` must have a form like std_srvs/srv/Trigger. Returns false if it does not. */
static bool raw_service_init(raw_service_t *service, const char *name) {
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

/* Allocates room for any message; returns false if there is no memory. */
static bool raw_message_reserve(raw_message_t *message) {
  message->bytes = malloc(PLAN_PAYLOAD_BYTES);
  message->capacity = PLAN_PAYLOAD_BYTES;
  message->size = 0;
  return message->bytes != NULL;
}

/* Returns false and prints an error message if the file cannot be read, is empty, or is larger than PLAN_PAYLOAD_BYTES.
 * The message keeps its memory until the program ends. */
static bool raw_message_read(raw_message_t *message, const char *file) {
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

/* ---- records: callbacks store them, and another thread prints them, because real-time threads must neither format nor
 * write. For each instance of a chain, the program prints the runs on this board as one line of JSON on standard
 * output. ---- */

/* One run of a callback. The times are on CLOCK_MONOTONIC, or 0 if not reached; `cpu` is the run's processor time. */
typedef struct record {
  int64_t start_ns, end_ns, cpu_ns;
} record_t;

typedef struct finished {
  uint32_t chain, index;
} finished_t;

static struct {
  record_t *records[PLAN_CALLBACKS]; /* by callback and instance */
  finished_t *finished;              /* in order of completion; has room for every instance */
  atomic_size_t finished_count;
  pthread_mutex_t finishing; /* guards `finished`, because lanes preempt each other */
  atomic_bool stopping;
  pthread_t thread;
} recorder;

static record_t *recorder_at(const plan_callback_t *callback, uint32_t index) {
  return &recorder.records[callback - plan.callbacks][index];
}

static uint32_t events_of(const plan_chain_t *chain) { return chain->burst > 1 ? chain->burst : 1; }

/* The nominal release of an instance; all events of a burst have the same one. */
static int64_t release_ns(const plan_chain_t *chain, uint32_t index) {
  return first_release_ns + chain->offset_ns + (int64_t)(index - index % events_of(chain)) * chain->period_ns;
}

/* The latest instance of the chain that was released no later than at_ns; negative if there is none. */
static int64_t latest(const plan_chain_t *chain, int64_t at_ns) {
  const int64_t since_ns = at_ns - release_ns(chain, 0), events = events_of(chain);
  return since_ns < 0 ? -1 : (since_ns / (events * chain->period_ns) + 1) * events - 1;
}

static void print_events(const plan_chain_t *chain, uint32_t index) {
  const char *separator = "";
  for (size_t number = chain->first; number < chain->first + chain->count; number++) {
    const plan_callback_t *callback = &plan.callbacks[number];
    const record_t *record = recorder_at(callback, index);
    if (record->end_ns == 0) continue;
    printf("%s{\"callback\": \"%s\", \"start_ns\": %" PRId64 ", \"end_ns\": %" PRId64 ", \"cpu_ns\": %" PRId64 "}",
           separator, callback->name, record->start_ns, record->end_ns, record->cpu_ns);
    separator = ", ";
  }
}

static bool ends_here(const plan_chain_t *chain) {
  const plan_callback_t *last = &plan.callbacks[chain->first + chain->count - 1];
  return last->out.topic[0] == '\0' && last->send_count == 0;
}

/* Only chains that begin and end on this board have a latency. */
static void print_instance(const plan_chain_t *chain, uint32_t index) {
  const record_t *first = recorder_at(&plan.callbacks[chain->first], index);
  const record_t *last = recorder_at(&plan.callbacks[chain->first + chain->count - 1], index);
  const int64_t released_ns = release_ns(chain, index);
  printf("{\"chain\": \"%s\", \"index\": %" PRIu32 ", \"release_ns\": %" PRId64 ", \"start_ns\": %" PRId64
         ", \"end_ns\": %" PRId64,
         chain->name, index, released_ns, first->start_ns, last->end_ns);
  if (plan_begins(&plan, chain) && ends_here(chain)) {
    printf(", \"latency_ns\": %" PRId64, last->end_ns - released_ns);
  }
  printf(", \"events\": [");
  print_events(chain, index);
  printf("]}\n");
}

static size_t print_from(size_t printed) {
  const size_t count = atomic_load_explicit(&recorder.finished_count, memory_order_acquire);
  const bool any = printed < count;
  for (; printed < count; printed++) {
    const finished_t *one = &recorder.finished[printed];
    print_instance(&plan.chains[one->chain], one->index);
  }
  if (any) fflush(stdout);
  return printed;
}

static void *print_until_stopped(void *argument) {
  (void)argument;
  const struct timespec pause = {0, 50000000};
  size_t printed = 0;
  while (!atomic_load(&recorder.stopping)) {
    printed = print_from(printed);
    nanosleep(&pause, NULL);
  }
  print_from(printed);
  return NULL;
}

static bool allocate(void) {
  size_t instances = 0;
  for (size_t chain = 0; chain < plan.chain_count; chain++) instances += plan.chains[chain].instances;
  recorder.finished = calloc(instances + 1, sizeof *recorder.finished);
  bool whole = recorder.finished != NULL;
  for (size_t index = 0; index < plan.callback_count; index++) {
    const size_t count = plan.chains[plan.callbacks[index].chain].instances;
    recorder.records[index] = calloc(count, sizeof *recorder.records[index]);
    whole = whole && recorder.records[index] != NULL;
  }
  return whole;
}

/* Call this before the program raises its own priority, which the new thread would inherit. */
static bool recorder_start(void) {
  if (!allocate()) return false;
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
  pthread_mutex_init(&recorder.finishing, &attributes);
  pthread_mutexattr_destroy(&attributes);
  return pthread_create(&recorder.thread, NULL, print_until_stopped, NULL) == 0;
}

/* Call this when the instance's last callback on this board has ended, so that the records of the instance do not
 * change any more. */
static void recorder_finish(size_t chain, uint32_t index) {
  pthread_mutex_lock(&recorder.finishing);
  const size_t count = atomic_load_explicit(&recorder.finished_count, memory_order_relaxed);
  recorder.finished[count] = (finished_t){(uint32_t)chain, index};
  atomic_store_explicit(&recorder.finished_count, count + 1, memory_order_release);
  pthread_mutex_unlock(&recorder.finishing);
}

static uint32_t released(const plan_chain_t *chain, int64_t now_ns) {
  const int64_t count = latest(chain, now_ns) + 1;
  return count > chain->instances ? chain->instances : (uint32_t)count;
}

static void print_missing(const plan_chain_t *chain, int64_t now_ns) {
  const plan_callback_t *first = &plan.callbacks[chain->first];
  const uint32_t count = released(chain, now_ns);
  for (uint32_t index = 0; index < count; index++) {
    if (recorder_at(first + chain->count - 1, index)->end_ns != 0) continue;
    printf("{\"chain\": \"%s\", \"index\": %" PRIu32 ", \"%s\": true}\n", chain->name, index,
           recorder_at(first, index)->start_ns != 0 ? "lost" : "skipped");
  }
}

/* Ends the thread after it has printed the remaining instances. Then prints, for each chain that begins here, a line
 * for each instance that did not finish (lost), and for each one that never started because its timer could not run in
 * its period (skipped). */
static void recorder_stop(int64_t now_ns) {
  atomic_store(&recorder.stopping, true);
  pthread_join(recorder.thread, NULL);
  for (size_t index = 0; index < plan.chain_count; index++) {
    const plan_chain_t *chain = &plan.chains[index];
    if (plan_begins(&plan, chain)) print_missing(chain, now_ns);
  }
  fflush(stdout);
  for (size_t index = 0; index < plan.callback_count; index++) free(recorder.records[index]);
  free(recorder.finished);
}

/* ---- the trace, which a thread of low priority writes to a file. TRACE_INSTANCE makes the id of an instance from the
 * index of the chain in the plan, from 1, and the number of the instance, so that chains of one level can be
 * distinguished. Records that belong to no chain have no instance. ----
 */

#define TRACE_INSTANCE(chain, index) (((uint32_t)(chain) + 1u) << 24 | ((index)&0xFFFFFFu))

enum { RECORDS = 4096, DAEMON = 0, FIRST_LANE = 1, FIRST_BUDGET = FIRST_LANE + PLAN_CHAINS };
enum { RINGS = FIRST_BUDGET + PLAN_CHAINS };

static struct {
  FILE *file;
  tide_trace_ring_t rings[RINGS];
  tide_trace_record_t records[RINGS][RECORDS];
  tide_trace_instances_t instances;
  atomic_bool stopping;
  bool failed;
  pthread_t thread;
} trace;

static int write_block(void *context, const uint8_t *bytes, size_t count) {
  (void)context;
  return fwrite(bytes, 1, count, trace.file) == count ? TIDE_OK : TIDE_ERROR_FULL;
}

/* If the disk is full, this is reported once; the rings then fill up and count dropped records. */
static void drain(void) {
  for (size_t ring = 0; ring < RINGS && !trace.failed; ring++) {
    trace.failed = tide_trace_drain(&trace.rings[ring], UINT32_MAX, write_block, NULL) < 0;
  }
  if (!trace.failed) trace.failed = fflush(trace.file) != 0;
}

static void *drain_until_stopped(void *argument) {
  (void)argument;
  const struct timespec pause = {.tv_nsec = 50000000};
  while (!atomic_load(&trace.stopping)) {
    drain();
    nanosleep(&pause, NULL);
  }
  return NULL;
}

/* Call this before the program raises its own priority, which the new thread would inherit. */
static bool trace_open(const char *path) {
  trace.file = fopen(path, "wb");
  if (trace.file == NULL) {
    fprintf(stderr, "chain_client: %s: cannot be written: %s\n", path, strerror(errno));
    return false;
  }
  for (size_t ring = 0; ring < RINGS; ring++) {
    (void)tide_trace_init(&trace.rings[ring], trace.records[ring], RECORDS, &trace.instances, 0, (uint16_t)ring);
  }
  return pthread_create(&trace.thread, NULL, drain_until_stopped, NULL) == 0;
}

/* Gives the daemon and all lanes their trace rings. Call this after the lanes are chosen and before they run. */
static void trace_attach(rclc_support_t *support, rclc_executor_t *executor) {
  if (trace.file == NULL) return;
  const tide_executor_config_t *config = &tide_rclc_executor_core(executor)->config;
  for (size_t lane = 0; lane < config->lane_count; lane++) {
    config->lanes[lane].trace = &trace.rings[FIRST_LANE + lane];
  }
  tide_session_t *session = tide_rclc_support_session(support);
  const uintptr_t state = tide_platform_enter(session->daemon.platform);
  session->daemon.trace = &trace.rings[DAEMON];
  tide_platform_exit(session->daemon.platform, state);
}

/* Gives the budgets of the lanes their trace rings. Call this while the lanes run, because only then do the budgets
 * exist. */
static void trace_attach_budgets(rclc_executor_t *executor) {
  if (trace.file == NULL) return;
  const tide_executor_config_t *config = &tide_rclc_executor_core(executor)->config;
  for (size_t lane = 0; lane < config->lane_count; lane++) {
    tide_posix_budget_t *budget = config->lanes[lane].budget.context; /* set by tide_posix_budget_hooks */
    if (budget == NULL || budget->owner == NULL) continue;
    pthread_mutex_lock(&budget->owner->mutex);
    budget->budget.trace = &trace.rings[FIRST_BUDGET + lane];
    pthread_mutex_unlock(&budget->owner->mutex);
  }
}

static void trace_close(void) {
  if (trace.file == NULL) return;
  atomic_store(&trace.stopping, true);
  pthread_join(trace.thread, NULL);
  drain();
  trace.failed = fclose(trace.file) != 0 || trace.failed;
  trace.file = NULL;
  if (trace.failed) fprintf(stderr, "chain_client: %s: not all of the trace was written\n", options.trace);
}

/* ---- budgets ---- */

enum { REPLENISHMENTS = 16 };

static struct {
  unsigned level;
  tide_budget_counters_t counters;
} noted[PLAN_CHAINS];
static size_t noted_count;
static tide_posix_budgets_t supervisor;
static tide_posix_budget_t own;
static tide_replenishment_t replenishments[REPLENISHMENTS];

/* Limits the calling thread by a budget. */
static bool take_budget(int priority, int64_t budget_ns, int64_t period_ns) {
  const tide_budget_config_t config = {.priority = priority,
                                       .budget_ns = budget_ns,
                                       .period_ns = period_ns,
                                       .replenishments = replenishments,
                                       .maximum_replenishments = REPLENISHMENTS};
  int status = tide_posix_budgets_start(&supervisor, priority + 1, TIDE_POSIX_ANY_CPU);
  if (status == TIDE_OK) status = tide_posix_budget_attach(&supervisor, &own, pthread_self(), &config);
  if (status != TIDE_OK) fprintf(stderr, "chain_client: no budget: %s\n", tide_posix_budget_advice(status));
  return status == TIDE_OK;
}

static void note(unsigned level, tide_posix_budget_t *budget) {
  if (noted_count == PLAN_CHAINS) return;
  noted[noted_count].level = level;
  if (tide_posix_budget_counters(budget, &noted[noted_count].counters) == TIDE_OK) noted_count++;
}

/* Saves the counters of the budgets. Call this while the lanes run, because only then do the budgets exist. */
static void note_budgets(rclc_executor_t *executor) {
  const tide_executor_config_t *config = &tide_rclc_executor_core(executor)->config;
  if (own.owner != NULL) note(0, &own);
  for (size_t lane = 0; lane < config->lane_count; lane++) {
    tide_posix_budget_t *budget = config->lanes[lane].budget.context; /* set by tide_posix_budget_hooks */
    if (budget != NULL) note(config->lanes[lane].settings.least_level, budget);
  }
}

static void print_budgets(void) {
  putchar('[');
  for (size_t index = 0; index < noted_count; index++) {
    const tide_budget_counters_t *counters = &noted[index].counters;
    printf("%s{\"level\": %u, \"exhaustions\": %" PRIu64 ", \"used_ns\": %" PRIu64 ", \"low_ns\": %" PRIu64
           ", \"overrun_ns\": %" PRIu64 "}",
           index == 0 ? "" : ", ", noted[index].level, counters->exhaustions, counters->used_ns, counters->low_ns,
           counters->overrun_ns);
  }
  putchar(']');
}

/* ---- callbacks: their described work and their messages ---- */

typedef struct callback {
  const plan_callback_t *plan;
  raw_type_t in_type;
  raw_message_t in, out;
  raw_message_t reply; /* for a service: the reply that rclc sends; on_request fills it */
  rcl_subscription_t subscription;
  raw_service_t served, requested;
  rcl_service_t service;
  rcl_client_t client; /* of the callback that sends the request; the callback that takes the reply uses it, too */
  rcl_timer_t timer;
  rcl_guard_condition_t guard; /* for events: their trigger; several events may come before the callback starts */
  atomic_uint raised;
  uint32_t begun;
  uint32_t taken;  /* number of messages taken since the first release */
  int64_t sent_ns; /* longest recent time for creating and sending the message */
  uint8_t *came;   /* for joins: by instance, one bit for each message that has arrived */
} callback_t;

/* An input for which a callback waits in addition to its first one. */
typedef struct join {
  callback_t *callback;
  const plan_message_t *plan;
  unsigned bit;
  raw_type_t type;
  raw_message_t in;
  rcl_subscription_t subscription;
  uint32_t taken;
} join_t;

typedef struct output {
  const plan_message_t *plan;
  raw_type_t type;
  raw_message_t message;
  rcl_publisher_t publisher;
} output_t;

static callback_t callbacks[PLAN_CALLBACKS];
static join_t joins[PLAN_JOINS];
static output_t outputs[PLAN_SENDS];
static atomic_uint publish_failures, unexpected; /* counted by all lanes */

enum {
  WAKE_UP_NS = 30000, /* a sleep ends this much before the wanted time, because it may end late by as much */
  SPARE_NS = 10000    /* margin for starting and ending a callback */
};
static int64_t waited_ns;

/* Processor time of the calling thread, including sleeps that represent computing (options.waits). */
static int64_t executed_ns(void) { return clock_ns(CLOCK_THREAD_CPUTIME_ID) + waited_ns; }

static void wait_ns(int64_t duration_ns) {
  const int64_t begin_ns = executed_ns(), end_ns = now_ns() + duration_ns, wake_ns = end_ns - WAKE_UP_NS;
  const struct timespec wake = {.tv_sec = wake_ns / 1000000000, .tv_nsec = wake_ns % 1000000000};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, NULL);
  while (now_ns() < end_ns) {}
  waited_ns += duration_ns - (executed_ns() - begin_ns);
}

/* Time for which the callback computes. The described time is the maximum for the whole callback, so the time for
 * sending is subtracted: its longest recent value, because the value of this run is not known yet. */
static int64_t work_of_ns(const callback_t *callback, int64_t spent_ns) {
  const int64_t execution_ns = callback->plan->execution_ns, needed_ns = callback->plan->least_ns - spent_ns;
  const int64_t left_ns = callback->plan->limit_ns - callback->sent_ns - spent_ns - SPARE_NS;
  const int64_t work_ns = left_ns < execution_ns ? left_ns : execution_ns;
  const int64_t least_ns = needed_ns > execution_ns / 2 ? needed_ns : execution_ns / 2;
  return work_ns > least_ns ? work_ns : least_ns;
}

static void keep_sent(callback_t *callback, int64_t sent_ns) {
  const int64_t known_ns = callback->sent_ns / 16 * 15;
  callback->sent_ns = sent_ns > known_ns ? sent_ns : known_ns;
}

static const plan_chain_t *chain_of(const callback_t *callback) { return &plan.chains[callback->plan->chain]; }

static bool subscribes(const callback_t *callback) { return callback->plan->in.topic[0] != '\0'; }

static bool serves(const callback_t *callback) { return callback->plan->role == PLAN_SERVICE; }

/* A service exists only once even if callbacks of several chains serve it. This is the callback to which it belongs. */
static callback_t *server_of(const callback_t *callback) { return &callbacks[callback->plan->server]; }

static bool has_service(const callback_t *callback) { return serves(callback) && server_of(callback) == callback; }

static bool requests(const callback_t *callback) { return callback->plan->requests; }

/* The client from which this callback takes replies. */
static rcl_client_t *client_of(callback_t *callback) { return &callbacks[callback->plan->request].client; }

static bool is_last(const callback_t *callback) {
  const plan_chain_t *chain = chain_of(callback);
  return callback->plan == &plan.callbacks[chain->first + chain->count - 1];
}

static rcl_ret_t request(callback_t *callback) {
  int64_t sequence_number = 0;
  return rcl_send_request(&callback->client, &callback->out, &sequence_number);
}

static tide_callback_t *core_of(callback_t *callback) {
  switch (callback->plan->role) {
    case PLAN_TIMER: return tide_rclc_timer_callback(&callback->timer);
    case PLAN_EVENT: return tide_rclc_guard_condition_callback(&callback->guard);
    case PLAN_SERVICE: return tide_rclc_service_callback(&server_of(callback)->service);
    case PLAN_CLIENT: return tide_rclc_client_callback(client_of(callback));
    default: return tide_rclc_subscription_callback(&callback->subscription);
  }
}

static void publish(callback_t *callback, size_t place, uint32_t index) {
  output_t *output = &outputs[callback->plan->first_send + place];
  if (index % output->plan->every != 0) return;
  number_write(output->message.bytes, output->plan->number, index / output->plan->every);
  if (rcl_publish(&output->publisher, &output->message, NULL) != RCL_RET_OK) publish_failures++;
}

/* Runs the callback: computes, sends messages, and records the times. rclc sends the reply of a service after the
 * callback has returned. */
static void execute(callback_t *callback, uint32_t index, int64_t start_ns, int64_t start_cpu_ns) {
  const uint32_t traced = TRACE_INSTANCE(callback->plan->chain, index);
  if (trace.file != NULL) tide_trace_set_instance(&trace.rings[DAEMON], core_of(callback)->priority, traced);
  const int64_t work_ns = work_of_ns(callback, executed_ns() - start_cpu_ns);
  if (options.waits) {
    wait_ns(work_ns);
  } else {
    tide_posix_spin_cpu(work_ns);
  }
  const int64_t worked_ns = executed_ns();
  record_t *record = recorder_at(callback->plan, index);
  record->start_ns = start_ns;
  for (size_t place = 0; place < callback->plan->send_count; place++) publish(callback, place, index);
  if (callback->plan->out.topic[0] != '\0')
    number_write(callback->out.bytes, callback->plan->out.number, index / callback->plan->out.every);
  if (requests(callback) && request(callback) != RCL_RET_OK) publish_failures++;
  record->end_ns = now_ns();
  const int64_t done_ns = executed_ns();
  record->cpu_ns = done_ns - start_cpu_ns;
  keep_sent(callback, done_ns - worked_ns);
  if (is_last(callback)) recorder_finish(callback->plan->chain, index);
}

/* The instance is identified by the expiry, not by the start, because a late callback may start in the next period. */
static void on_timer(rcl_timer_t *timer, int64_t since_last_call_ns) {
  (void)since_last_call_ns;
  const int64_t start_ns = now_ns(), start_cpu_ns = executed_ns();
  size_t number = 0;
  while (&callbacks[number].timer != timer) number++;
  const plan_chain_t *chain = chain_of(&callbacks[number]);
  const int64_t index = latest(chain, tide_rclc_timer_callback(timer)->ready_ns);
  if (index < 0 || index >= chain->instances)
    return; /* before the first release, or after the last described instance */
  execute(&callbacks[number], (uint32_t)index, start_ns, start_cpu_ns);
}

/* The interrupt counts its events, because a guard condition remembers only one trigger and the callback must run once
 * for each event. */
static void on_event(size_t number) {
  const int64_t start_ns = now_ns(), start_cpu_ns = executed_ns();
  callback_t *callback = callbacks;
  for (;; callback++) {
    if (callback->plan->role == PLAN_EVENT && number-- == 0) break;
  }
  const uint32_t index = callback->begun;
  if (index == atomic_load(&callback->raised)) return;
  callback->begun++;
  if (callback->begun < atomic_load(&callback->raised)) (void)rcl_trigger_guard_condition(&callback->guard);
  if (index < chain_of(callback)->instances) execute(callback, index, start_ns, start_cpu_ns);
}

/* rclc passes no context to the callback of a guard condition, so each one has its own function. */
#define ON_EVENT(number) \
  static void on_event_##number(void) { on_event(number); }
ON_EVENT(0)
ON_EVENT(1)
ON_EVENT(2)
ON_EVENT(3)
ON_EVENT(4)
ON_EVENT(5)
ON_EVENT(6)
ON_EVENT(7)
static const rclc_gc_callback_t on_events[] = {on_event_0, on_event_1, on_event_2, on_event_3,
                                               on_event_4, on_event_5, on_event_6, on_event_7};
_Static_assert(sizeof on_events / sizeof *on_events == PLAN_EVENTS, "a callback for each");

/* The instance to which a message belongs; -1 if there is none, or if the instance was already processed. `taken` is
 * the number of earlier messages. */
static int64_t instance_of(callback_t *callback, const raw_message_t *message, const plan_message_t *in,
                           uint32_t *taken, int64_t at_ns) {
  const plan_chain_t *chain = chain_of(callback);
  const int64_t last = latest(chain, at_ns);
  if (last < 0) return -1;
  const int64_t read = number_read(message->bytes, message->size, in->number);
  int64_t index = number_instance(read, in->number, in->every, last);
  if (in->number.kind == NUMBER_COUNT) index = (int64_t)(*taken)++ * in->every;
  if (index < 0 || index >= chain->instances) return -1;
  return recorder_at(callback->plan, (uint32_t)index)->end_ns == 0 ? index : -1;
}

/* Records the arrival of a message, and returns true if all messages of the instance have arrived. All messages of a
 * callback have the same level and so the same lane, so no lock is needed. */
static bool is_last_of_join(callback_t *callback, int64_t index, unsigned bit) {
  if (callback->came == NULL) return true;
  callback->came[index] |= (uint8_t)(1u << bit);
  return callback->came[index] == (1u << (callback->plan->join_count + 1u)) - 1u;
}

static void on_message(const void *message, void *context) {
  const int64_t start_ns = now_ns(), start_cpu_ns = executed_ns();
  callback_t *callback = context;
  const int64_t index = instance_of(callback, message, &callback->plan->in, &callback->taken, start_ns);
  if (index < 0) {
    unexpected++;
  } else if (is_last_of_join(callback, index, 0)) {
    execute(callback, (uint32_t)index, start_ns, start_cpu_ns);
  }
}

static void on_join(const void *message, void *context) {
  const int64_t start_ns = now_ns(), start_cpu_ns = executed_ns();
  join_t *join = context;
  const int64_t index = instance_of(join->callback, message, join->plan, &join->taken, start_ns);
  if (index < 0) {
    unexpected++;
  } else if (is_last_of_join(join->callback, index, join->bit)) {
    execute(join->callback, (uint32_t)index, start_ns, start_cpu_ns);
  }
}

/* The callback, among those that serve this service, for which a request is meant; NULL if there is none. */
static callback_t *asked_by(const callback_t *server, const raw_message_t *message) {
  for (size_t index = 0; index < plan.callback_count; index++) {
    callback_t *callback = &callbacks[index];
    const plan_callback_t *described = callback->plan;
    if (!serves(callback) || server_of(callback) != server) continue;
    if (described->mark.kind == NUMBER_NONE) return callback;
    if (number_read(message->bytes, message->size, described->mark) == described->mark_value) return callback;
  }
  return NULL;
}

static void on_request(const void *message, void *response, void *context) {
  callback_t *asked = asked_by(context, message);
  if (asked == NULL) {
    unexpected++;
    asked = context;
  } else {
    on_message(message, asked);
  }
  *(raw_message_t *)response = asked->out; /* on_message has written the number of the instance */
}

static void on_reply(const void *message, rmw_request_id_t *request_id) {
  (void)request_id;
  size_t number = 0;
  while (&callbacks[number].in != message) number++;
  on_message(message, &callbacks[number]);
}

/* ---- set-up ---- */

enum { ENTITY_MS = 10000 }; /* timeout for the creation of an entity; long, because the computer may be busy */
static tide_chain_t priorities[PLAN_CHAINS];

static void on_signal(int number) {
  (void)number;
  interrupted = 1;
}

static void require(rcl_ret_t result, const char *step) {
  if (result == RCL_RET_OK) return;
  fprintf(stderr, "chain_client: %s failed: %s\n", step, tide_status_text(tide_rclc_last_status()));
  exit(1);
}

static void require_plan(bool right, const plan_message_t *message) {
  if (right) return;
  fprintf(stderr, "chain_client: topic %s: its type %s is none, or there is no memory for it\n", message->topic,
          message->type);
  exit(2);
}

static void subscribe_to(const plan_message_t *in, raw_type_t *type, raw_message_t *message,
                         rcl_subscription_t *subscription, rcl_node_t *node) {
  require_plan(raw_type_init(type, in->type) && raw_message_reserve(message), in);
  require(in->reliable ? rclc_subscription_init_default(subscription, node, &type->support, in->topic)
                       : rclc_subscription_init_best_effort(subscription, node, &type->support, in->topic),
          in->topic);
}

static void subscribe(callback_t *callback, rcl_node_t *node) {
  const plan_chain_t *chain = chain_of(callback);
  const plan_callback_t *described = callback->plan;
  subscribe_to(&described->in, &callback->in_type, &callback->in, &callback->subscription, node);
  for (size_t place = 0; place < described->join_count; place++) {
    join_t *join = &joins[described->first_join + place];
    join->callback = callback;
    join->plan = &plan.joins[described->first_join + place];
    join->bit = (unsigned)place + 1u;
    subscribe_to(join->plan, &join->type, &join->in, &join->subscription, node);
  }
  if (described->join_count == 0) return;
  callback->came = calloc(chain->instances, 1);
  if (callback->came != NULL) return;
  fputs("chain_client: no memory for the messages of a join; ask for fewer periods\n", stderr);
  exit(1);
}

static void advertise(output_t *output, const plan_message_t *out, rcl_node_t *node) {
  output->plan = out;
  require_plan(raw_type_init(&output->type, out->type), out);
  if (!raw_message_read(&output->message, out->file)) exit(2);
  require_plan(out->number.offset + number_bytes(out->number.kind) <= output->message.size, out);
  const rosidl_message_type_support_t *type = &output->type.support;
  require(out->reliable ? rclc_publisher_init_default(&output->publisher, node, type, out->topic)
                        : rclc_publisher_init_best_effort(&output->publisher, node, type, out->topic),
          out->topic);
}

static void take_memory(callback_t *callback) {
  const plan_message_t *in = &callback->plan->in, *out = &callback->plan->out;
  if (callback->plan->role == PLAN_SERVICE || callback->plan->role == PLAN_CLIENT) {
    require_plan(raw_message_reserve(&callback->in), in);
  }
  if (!serves(callback) && !requests(callback)) return;
  if (!raw_message_read(&callback->out, out->file)) exit(2);
  require_plan(out->number.offset + number_bytes(out->number.kind) <= callback->out.size, out);
}

static void create_ends(callback_t *callback, rcl_node_t *node) {
  const plan_message_t *in = &callback->plan->in, *out = &callback->plan->out;
  take_memory(callback);
  if (has_service(callback)) {
    require_plan(raw_service_init(&callback->served, in->type), in);
    require(rclc_service_init_default(&callback->service, node, &callback->served.support, in->topic), in->topic);
  }
  if (requests(callback)) {
    require_plan(raw_service_init(&callback->requested, out->type), out);
    require(rclc_client_init_default(&callback->client, node, &callback->requested.support, out->topic), out->topic);
  }
}

static void create_callback(callback_t *callback, const plan_callback_t *described, rclc_support_t *support,
                            rcl_node_t *node) {
  callback->plan = described;
  for (size_t place = described->first_send; place < described->first_send + described->send_count; place++) {
    advertise(&outputs[place], &plan.sends[place], node);
  }
  create_ends(callback, node);
  if (described->role == PLAN_SUBSCRIPTION) {
    subscribe(callback, node);
  } else if (described->role == PLAN_TIMER) {
    const uint64_t period_ns = (uint64_t)chain_of(callback)->period_ns;
    require(rclc_timer_init_default(&callback->timer, support, period_ns, on_timer), "a timer");
  } else if (described->role == PLAN_EVENT) {
    callback->guard = rcl_get_zero_initialized_guard_condition();
    require(rcl_guard_condition_init(&callback->guard, &support->context, rcl_guard_condition_get_default_options()),
            "a guard condition");
  }
}

static void register_handle(rclc_executor_t *executor, callback_t *callback) {
  const plan_role_t role = callback->plan->role;
  if (role == PLAN_SUBSCRIPTION) {
    require(rclc_executor_add_subscription_with_context(executor, &callback->subscription, &callback->in, on_message,
                                                        callback, ON_NEW_DATA),
            "adding a subscription");
    for (size_t place = 0; place < callback->plan->join_count; place++) {
      join_t *join = &joins[callback->plan->first_join + place];
      require(rclc_executor_add_subscription_with_context(executor, &join->subscription, &join->in, on_join, join,
                                                          ON_NEW_DATA),
              "adding a subscription");
    }
  } else if (has_service(callback)) {
    callback->reply = callback->out;
    require(rclc_executor_add_service_with_context(executor, &callback->service, &callback->in, &callback->reply,
                                                   on_request, callback),
            "adding a service");
  } else if (role == PLAN_CLIENT) {
    require(rclc_executor_add_client_with_request_id(executor, client_of(callback), &callback->in, on_reply),
            "adding a client");
  }
}

static void register_events(rclc_executor_t *executor) {
  size_t count = 0;
  for (size_t index = 0; index < plan.callback_count; index++) {
    if (callbacks[index].plan->role != PLAN_EVENT) continue;
    if (count == PLAN_EVENTS) {
      fprintf(stderr, "chain_client: more than %d chains begin with events\n", PLAN_EVENTS);
      exit(2);
    }
    require(rclc_executor_add_guard_condition(executor, &callbacks[index].guard, on_events[count++]),
            "adding a guard condition");
  }
}

/* Registers the timers first, then all other callbacks, each in the order of the plan. The batch executor runs
 * callbacks that are ready in the same round in this order; the policy tide does not depend on it. */
static void register_handles(rclc_executor_t *executor) {
  for (size_t index = 0; index < plan.callback_count; index++) {
    if (callbacks[index].plan->role == PLAN_TIMER) {
      require(rclc_executor_add_timer(executor, &callbacks[index].timer), "adding a timer");
    }
  }
  for (size_t index = 0; index < plan.callback_count; index++) register_handle(executor, &callbacks[index]);
  register_events(executor);
}

/* Adds the callback to its chain. An input from elsewhere follows the node or board that publishes it. */
static void name_callback(tide_chain_t *chain, callback_t *callback) {
  if (subscribes(callback)) {
    tide_chain_add_remote(chain);
    if (serves(callback) && !has_service(callback))
      return; /* another callback of this service has added it to the chain */
    require(serves(callback)                      ? tide_rclc_chain_add_service(chain, &callback->service)
            : callback->plan->role == PLAN_CLIENT ? tide_rclc_chain_add_client(chain, client_of(callback))
                                                  : tide_rclc_chain_add_subscription(chain, &callback->subscription),
            "naming the chain of what a callback takes");
    for (size_t place = 0; place < callback->plan->join_count; place++) {
      rcl_subscription_t *joined = &joins[callback->plan->first_join + place].subscription;
      require(tide_rclc_chain_add_subscription(chain, joined), "naming the chain of what a callback joins");
    }
  } else if (callback->plan->role == PLAN_EVENT) {
    require(tide_rclc_chain_add_guard_condition(chain, &callback->guard), "naming an event's chain");
  } else {
    require(tide_rclc_chain_add_timer(chain, &callback->timer), "naming a timer's chain");
  }
  for (size_t place = 0; place < callback->plan->send_count; place++) {
    rcl_publisher_t *publisher = &outputs[callback->plan->first_send + place].publisher;
    require(tide_rclc_chain_add_publisher(chain, publisher), "naming a publisher's chain");
  }
}

/* Declares the chains and their levels, which a plain micro-ROS program does not. */
static void name_chains(void) {
  for (size_t index = 0; index < plan.chain_count; index++) {
    const plan_chain_t *described = &plan.chains[index];
    tide_chain_init(&priorities[index], described->name, described->level, described->period_ns, described->period_ns);
    for (size_t number = described->first; number < described->first + described->count; number++) {
      name_callback(&priorities[index], &callbacks[number]);
    }
  }
}

static void schedule(int priority, int cpu, const char *what) {
  if (priority == 0 && cpu == TIDE_POSIX_ANY_CPU) return;
  const int status = tide_posix_set_scheduling(priority > 0 ? SCHED_FIFO : SCHED_OTHER, priority, cpu);
  if (status != TIDE_OK) {
    fprintf(stderr, "chain_client: the %s keeps its scheduling: %s\n", what, tide_status_text(status));
  }
}

static tide_lane_settings_t lane_of(unsigned level, size_t number) {
  tide_lane_settings_t lane = {.least_level = (uint8_t)level};
  if (options.priority > 0) {
    lane.scheduling = TIDE_SCHEDULING_FIFO;
    lane.priority = options.priority + (int)number;
  }
  if (options.budget_ns > 0) {
    lane.scheduling = TIDE_SCHEDULING_SPORADIC;
    lane.runtime_ns = options.budget_ns;
    lane.period_ns = options.budget_period_ns;
  }
  if (options.cpu != TIDE_POSIX_ANY_CPU) lane.processor = TIDE_ON_PROCESSOR(options.cpu);
  return lane;
}

/* Chooses one lane for each level, more urgent ones with higher priorities, all on the executor's processor; or one
 * lane for all callbacks. */
static void choose_lanes(rclc_executor_t *executor) {
  tide_lane_settings_t lanes[PLAN_CHAINS];
  size_t count = 0;
  if (!options.preemptive) lanes[count++] = lane_of(0, 0);
  for (unsigned level = 1; options.preemptive && level <= TIDE_LEVEL_MAXIMUM; level++) {
    bool used = false;
    for (size_t index = 0; index < plan.chain_count; index++) used = used || plan.chains[index].level == level;
    if (used) lanes[count] = lane_of(level, count), count++;
  }
  require(tide_rclc_executor_set_lanes(executor, lanes, count), "choosing the lanes");
}

/* A thread that ends the program when standard input closes, because then the parent has ended and a remaining board
 * would keep the line busy. It does not use fgets, which would hold the lock of stdin, for which exit() waits since
 * glibc 2.41. */
static void *end_with_input(void *unused) {
  (void)unused;
  char passed_over[64];
  ssize_t got;
  do got = read(STDIN_FILENO, passed_over, sizeof passed_over);
  while (got > 0 || (got < 0 && errno == EINTR));
  interrupted = 1;
  return NULL;
}

/* Time of the first release: given by the parent, or else soon after now. */
static int64_t wait_for_start(void) {
  printf("{\"event\": \"ready\"}\n");
  fflush(stdout);
  char line[64];
  if (!options.wait_for_start) return now_ns() + 500000000;
  if (fgets(line, sizeof line, stdin) == NULL) exit(0);
  pthread_t watcher;
  if (pthread_create(&watcher, NULL, end_with_input, NULL) == 0) pthread_detach(watcher);
  return strtoll(line + strcspn(line, " "), NULL, 10);
}

static void release_timers(int64_t first_ns) {
  first_release_ns = first_ns;
  for (size_t index = 0; index < plan.callback_count; index++) {
    callback_t *callback = &callbacks[index];
    if (callback->plan->role != PLAN_TIMER) continue;
    require(tide_rclc_timer_set_phase(&callback->timer, first_ns + chain_of(callback)->offset_ns),
            "setting the first release");
  }
  printf("{\"event\": \"start\", \"first_release_ns\": %" PRId64 "}\n", first_release_ns);
  fflush(stdout);
}

/* ---- outside of the executor: threads for interrupts that raise events, and for loads. They end with the run. ---- */

static pthread_t interrupts, loads[PLAN_LOADS];
static tide_session_t *load_session; /* the session, whose link stops while a load masks interrupts */

static struct {
  uint32_t runs;
  int64_t most_ns;
} loaded[PLAN_LOADS];

/* Returns false if the run ends before at_ns. */
static bool sleep_until(int64_t at_ns) {
  while (!interrupted && now_ns() < at_ns) {
    const int64_t look_ns = now_ns() + 50000000, wake_ns = at_ns < look_ns ? at_ns : look_ns;
    const struct timespec wake = {.tv_sec = wake_ns / 1000000000, .tv_nsec = wake_ns % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, NULL);
  }
  return !interrupted;
}

static void *raise_events(void *unused) {
  (void)unused;
  schedule((int)options.link_priority, (int)options.link_cpu, "interrupts");
  for (;;) {
    callback_t *next = NULL;
    int64_t at_ns = INT64_MAX;
    for (size_t index = 0; index < plan.callback_count; index++) {
      callback_t *callback = &callbacks[index];
      const uint32_t raised = atomic_load(&callback->raised);
      if (callback->plan->role != PLAN_EVENT || raised >= chain_of(callback)->instances) continue;
      if (release_ns(chain_of(callback), raised) >= at_ns) continue;
      next = callback;
      at_ns = release_ns(chain_of(callback), raised);
    }
    if (next == NULL || !sleep_until(at_ns)) return NULL;
    atomic_fetch_add(&next->raised, events_of(chain_of(next)));
    if (rcl_trigger_guard_condition(&next->guard) != RCL_RET_OK) unexpected++;
  }
}

/* The thread of a described load, which is more urgent than every lane. Its waits count as its execution. If the load
 * masks interrupts, the link stops while it runs. */
static void *run_load(void *context) {
  const size_t number = (size_t)((const plan_load_t *)context - plan.loads);
  const plan_load_t *load = context;
  schedule(options.priority > 0 ? (int)options.priority + PLAN_CHAINS : 0, (int)options.cpu, "load");
  const tide_platform_t *platform = load_session->daemon.platform;
  for (int64_t at_ns = first_release_ns; sleep_until(at_ns);) {
    const int64_t begin_ns = now_ns(), begin_cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    const uintptr_t state = load->masks ? tide_platform_enter(platform) : 0;
    if (load->asks) (void)rmw_uros_ping_agent((int)(load->execution_ns / 1000000) + 1, 1);
    const int64_t spent_ns = load->asks ? now_ns() - begin_ns : clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_cpu_ns;
    const int64_t left_ns =
        load->execution_ns - spent_ns - 5 * SPARE_NS; /* the margin is for the end of the load and the measurement */
    if (left_ns > 0) tide_posix_spin_cpu(left_ns);
    if (load->masks) tide_platform_exit(platform, state);
    const int64_t took_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_cpu_ns;
    const int64_t most_ns = spent_ns > took_ns ? spent_ns : took_ns;
    if (most_ns > loaded[number].most_ns) loaded[number].most_ns = most_ns;
    loaded[number].runs++;
    at_ns = (at_ns > begin_ns ? at_ns : begin_ns) + load->period_ns;
  }
  return NULL;
}

static void start_others(void) {
  if (pthread_create(&interrupts, NULL, raise_events, NULL) != 0) exit(1);
  for (size_t index = 0; index < plan.load_count; index++) {
    if (pthread_create(&loads[index], NULL, run_load, &plan.loads[index]) != 0) exit(1);
  }
}

static void join_others(void) {
  interrupted = 1;
  pthread_join(interrupts, NULL);
  for (size_t index = 0; index < plan.load_count; index++) pthread_join(loads[index], NULL);
}

static void print_loads(void) {
  putchar('[');
  for (size_t index = 0; index < plan.load_count; index++) {
    printf("%s{\"name\": \"%s\", \"runs\": %" PRIu32 ", \"most_ns\": %" PRId64 "}", index == 0 ? "" : ", ",
           plan.loads[index].name, loaded[index].runs, loaded[index].most_ns);
  }
  putchar(']');
}

/* ---- the run ---- */

/* The thread that stops the executor on a signal. It runs beside the lanes, with the scheduling of main. */
static void *stop_when_interrupted(void *executor) {
  const struct timespec pause = {.tv_nsec = 50000000};
  for (bool attached = false; !interrupted; nanosleep(&pause, NULL)) {
    if (!attached && now_ns() >= first_release_ns) trace_attach_budgets(executor), attached = true;
  }
  note_budgets(executor);
  tide_executor_stop(tide_rclc_executor_core(executor));
  return NULL;
}

/* Budgets belong to lanes. The batch executor has no lanes, so there the budget belongs to its thread. */
static bool has_lanes(void) {
  return options.preemptive || (options.budget_ns > 0 && options.policy != TIDE_POLICY_BATCH);
}

static void run(rclc_executor_t *executor) {
  if (has_lanes()) {
    pthread_t watcher;
    if (pthread_create(&watcher, NULL, stop_when_interrupted, executor) != 0) return;
    require(rclc_executor_spin(executor), "starting the lanes");
    pthread_join(watcher, NULL);
    return;
  }
  if (options.budget_ns > 0 && !take_budget(options.priority, options.budget_ns, options.budget_period_ns)) {
    exit(1);
  }
  while (!interrupted) rclc_executor_spin_some(executor, RCL_MS_TO_NS(100));
  note_budgets(executor);
}

static void print_summary(rclc_support_t *support, rclc_executor_t *executor) {
  const tide_session_t *session = tide_rclc_support_session(support);
  const tide_executor_counters_t *rounds = &tide_rclc_executor_core(executor)->counters;
  const tide_transmitter_counters_t *sent = &session->daemon.transmitter.counters;
  const tide_receiver_counters_t *received = &session->daemon.receiver.counters;
  printf("{\"event\": \"summary\", \"publish_failures\": %" PRIu32 ", \"unexpected\": %" PRIu32 ", \"interrupted\": %s",
         (uint32_t)publish_failures, (uint32_t)unexpected, interrupted ? "true" : "false");
  struct timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  printf(", \"processor_ns\": %" PRId64, (int64_t)used.tv_sec * 1000000000 + used.tv_nsec);
  printf(", \"executor\": {\"rounds\": %" PRIu64 ", \"callbacks_run\": %" PRIu64 ", \"frames_digested\": %" PRIu64
         ", \"timers_expired\": %" PRIu64 ", \"sleeps\": %" PRIu64 "}",
         rounds->rounds, rounds->callbacks_run, rounds->frames_digested, rounds->timers_expired, rounds->sleeps);
  tide_link_counters_t link = {0};
  (void)tide_port_link_counters(tide_rclc_support_session(support), &link);
  printf(", \"link\": {\"thread_priority\": %d, \"messages_lost\": %" PRIu32 ", \"complete_late_maximum_ns\": %" PRId64
         "}",
         link.thread_priority, link.messages_lost, link.complete_late_maximum_ns);
  printf(", \"session\": {\"connects\": %" PRIu32 ", \"reconnects\": %" PRIu32 ", \"requests_repeated\": %" PRIu32 "}",
         session->counters.connects, session->counters.reconnects, session->counters.requests_repeated);
  printf(", \"transmitter\": {\"submitted\": %" PRIu32 ", \"refused_full\": %" PRIu32 ", \"expired\": %" PRIu32
         ", \"frames\": %" PRIu32 ", \"retransmissions\": %" PRIu32 ", \"heartbeats\": %" PRIu32
         ", \"acknacks\": %" PRIu32 ", \"acknowledged\": %" PRIu32 "}",
         sent->submitted, sent->refused_full, sent->expired, sent->frames, sent->retransmissions, sent->heartbeats,
         sent->acknacks, sent->acknowledged);
  printf(", \"receiver\": {\"frames\": %" PRIu32 ", \"checksum_errors\": %" PRIu32 ", \"overflow_dropped\": %" PRIu32
         ", \"duplicates\": %" PRIu32 ", \"gaps\": %" PRIu32 "}, \"budgets\": ",
         received->frames, received->checksum_errors, received->overflow_dropped, received->duplicates, received->gaps);
  print_budgets();
  printf(", \"loads\": ");
  print_loads();
  if (options.rtps != NULL) {
    const tide_rtps_agent_t *agent = tide_rclc_rtps_agent();
    const tide_rtps_counters_t *seen = &agent->participant.counters;
    printf(", \"rtps\": {\"resent\": %" PRIu32 ", \"lost\": %" PRIu32 ", \"full\": %" PRIu32 "}", seen->resent,
           seen->lost, seen->matches_full + seen->overwritten + seen->too_large + agent->counters.too_large);
  }
  puts("}");
  fflush(stdout);
}

static void choose_link(rmw_init_options_t *link) {
  /* Frames between the session and an agent on the board take no time, so their size is that of the agent's memory. */
  if (options.rtps != NULL) options.mtu_bytes = MTU_BYTES_MOST;
  require(tide_rclc_options_set_mtu(link, options.mtu_bytes), "choosing the largest message");
  if (options.key != 0) require(rmw_uros_options_set_client_key(options.key, link), "choosing the key");
  if (options.udp != NULL || options.tcp != NULL) {
    const char *port = options.udp != NULL ? options.udp : options.tcp;
    require(rmw_uros_options_set_udp_address("127.0.0.1", port, link), "choosing the agent's port");
    if (options.tcp != NULL) link->link = TIDE_LINK_TCP;
  } else if (options.rtps != NULL) {
    require(tide_rclc_options_set_rtps(link, options.rtps), "choosing the board's address");
  } else {
    require(tide_rclc_options_set_serial(link, options.device, options.baud), "choosing the serial device");
  }
}

static void end_callback(callback_t *callback, rcl_node_t *node) {
  for (size_t place = 0; place < callback->plan->send_count; place++) {
    rcl_publisher_t *publisher = &outputs[callback->plan->first_send + place].publisher;
    require(rcl_publisher_fini(publisher, node), "ending a publisher");
  }
  if (has_service(callback)) require(rcl_service_fini(&callback->service, node), "ending a service");
  if (requests(callback)) require(rcl_client_fini(&callback->client, node), "ending a client");
  if (callback->plan->role == PLAN_SUBSCRIPTION) {
    require(rcl_subscription_fini(&callback->subscription, node), "ending a subscription");
    for (size_t place = 0; place < callback->plan->join_count; place++) {
      rcl_subscription_t *joined = &joins[callback->plan->first_join + place].subscription;
      require(rcl_subscription_fini(joined, node), "ending a subscription");
    }
    free(callback->came);
  } else if (callback->plan->role == PLAN_TIMER) {
    require(rcl_timer_fini(&callback->timer), "ending a timer");
  } else if (callback->plan->role == PLAN_EVENT) {
    require(rcl_guard_condition_fini(&callback->guard), "ending a guard condition");
  }
}

int main(int count, char **words) {
  read_options(count, words);
  if (!plan_read(options.plan, &plan)) return 2;
  signal(SIGINT, on_signal);
  signal(SIGTERM, on_signal);
  if (!recorder_start()) {
    fputs("chain_client: no memory for the records; ask for fewer periods\n", stderr);
    return 1;
  }
  if (options.trace != NULL && !trace_open(options.trace)) return 1;
  mlockall(MCL_CURRENT | MCL_FUTURE); /* without the permission this fails, and pages may be loaded during the run */

  rcl_allocator_t allocator = rcl_get_default_allocator();
  rcl_init_options_t init_options = rcl_get_zero_initialized_init_options();
  require(rcl_init_options_init(&init_options, allocator), "initialising the options");
  require(rcl_init_options_set_domain_id(&init_options, options.domain), "setting the domain");
  rmw_init_options_t *rmw_options = rcl_init_options_get_rmw_init_options(&init_options);
  choose_link(rmw_options);

  rclc_support_t support;
  require(tide_rclc_options_set_link_priority(rmw_options, options.link_priority), "choosing the link's priority");
  schedule(0, options.link_cpu, "link"); /* the thread of the link, which is created next, inherits this processor */
  require(rclc_support_init_with_options(&support, 0, NULL, &init_options, &allocator), "connecting to the agent");
  rmw_context_t *context = rcl_context_get_rmw_context(&support.context);
  (void)rmw_uros_set_context_entity_creation_session_timeout(context, ENTITY_MS);
  (void)rmw_uros_set_context_entity_destroy_session_timeout(context, ENTITY_MS);
  if (!has_lanes()) schedule(options.priority, options.cpu, "executor");
  require(tide_rclc_support_set_send(&support, options.send), "choosing the way of sending");
  require(tide_rclc_support_set_heartbeat_delay(&support, options.heartbeat_delay_ns), "choosing the heartbeat");
  for (unsigned level = 0; level <= TIDE_LEVEL_MAXIMUM; level++) {
    require(tide_rclc_support_hold_level(&support, (uint8_t)level, options.hold[level]), "choosing who holds the line");
  }

  rcl_node_t node;
  require(rclc_node_init_default(&node, "chain_client", "", &support), "creating the node");
  for (size_t index = 0; index < plan.callback_count; index++) {
    create_callback(&callbacks[index], &plan.callbacks[index], &support, &node);
  }
  rclc_executor_t executor = rclc_executor_get_zero_initialized_executor();
  require(rclc_executor_init(&executor, &support.context, plan.callback_count + plan.join_count, &allocator),
          "creating the executor");
  require(tide_rclc_executor_set_policy(&executor, options.policy), "choosing the policy");
  if (has_lanes()) choose_lanes(&executor);
  register_handles(&executor);
  if (options.policy == TIDE_POLICY_TIDE) name_chains(); /* the batch executor ignores levels */

  trace_attach(&support, &executor);
  release_timers(wait_for_start());
  load_session = tide_rclc_support_session(&support);
  start_others();
  run(&executor);
  join_others();
  trace_close();

  recorder_stop(now_ns());
  print_summary(&support, &executor);
  require(rclc_executor_fini(&executor), "ending the executor");
  for (size_t index = 0; index < plan.callback_count; index++) end_callback(&callbacks[index], &node);
  require(rcl_node_fini(&node), "ending the node");
  require(rclc_support_fini(&support), "ending the session");
  return 0;
}
