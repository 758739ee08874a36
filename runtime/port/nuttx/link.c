/* SPDX-License-Identifier: Apache-2.0 */
/* A session on a serial device of NuttX. Two threads: one reads, the other writes and polls the session, so that
 * neither waits for the other. A frame is encoded by its submitter and sent by the writer; tcdrain waits until its last
 * bit was sent. Only one line can be open. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "tide/link_serial.h"
#include "tide/port.h"
#include "tide/status.h"

#ifndef TIDE_NUTTX_MTU_BYTES
#define TIDE_NUTTX_MTU_BYTES 512u
#endif
#ifndef TIDE_NUTTX_LINK_STACK_BYTES
#define TIDE_NUTTX_LINK_STACK_BYTES 4096u
#endif
#define REOPEN_NS INT64_C(200000000)

static struct {
  tide_session_t *session; /* null: closed */
  const char *device;
  uint32_t baud;
  int descriptor; /* negative: link down. The writer opens and closes this descriptor */
  bool stop;
  bool down;    /* the reader has detected the end of the link */
  bool sending; /* the frame in `output` is not written yet */
  uint8_t storage[TIDE_FRAMING_WORST_BYTES(TIDE_NUTTX_MTU_BYTES) + 4u];
  tide_serial_output_t output;
  tide_event_t work;   /* event of the writer */
  tide_event_t opened; /* event of the reader */
  pthread_t reader, writer;
  tide_link_counters_t counters;
} line = {.descriptor = -1};

static const tide_platform_t *platform(void) { return tide_port_platform(); }
static uintptr_t enter(void) { return platform()->critical_enter(platform()->context); }
static void leave(uintptr_t state) { platform()->critical_exit(platform()->context, state); }
static void set(tide_event_t *event) { platform()->event_set(platform()->context, event); }
static int64_t now_ns(void) { return platform()->now_ns(platform()->context); }

/* Called in the daemon's critical section: encoding is linear in the frame's length, and short for frames within the
 * link's quantum. */
static int start(void *context, const tide_frame_parts_t *parts) {
  (void)context;
  const int status = tide_serial_output_load(&line.output, parts);
  if (status != TIDE_OK) return status;
  line.sending = true;
  set(&line.work);
  return TIDE_OK;
}

static int open_device(void) {
  const int descriptor = open(line.device, O_RDWR | O_NOCTTY);
  struct termios settings;
  if (descriptor < 0) return -1;
  if (tcgetattr(descriptor, &settings) == 0) {
    settings.c_iflag = 0;
    settings.c_oflag = 0;
    settings.c_lflag = 0;
    settings.c_cflag = CS8 | CREAD | CLOCAL;
    settings.c_cc[VMIN] = 1;
    settings.c_cc[VTIME] = 0;
    (void)cfsetispeed(&settings, (speed_t)line.baud);
    (void)cfsetospeed(&settings, (speed_t)line.baud);
    (void)tcsetattr(descriptor, TCSANOW, &settings);
  }
  return descriptor;
}

static bool is_stopped(void) {
  const uintptr_t state = enter();
  const bool stop = line.stop;
  leave(state);
  return stop;
}

static void come_up(void) {
  static const tide_link_t link = {.start = start, .heartbeat_floor_ns = TIDE_SERIAL_HEARTBEAT_FLOOR_NS};
  const int descriptor = open_device();
  if (descriptor < 0) return;
  const uintptr_t state = enter();
  line.descriptor = descriptor;
  line.down = false;
  line.counters.opens++;
  leave(state);
  (void)tide_daemon_attach_link(&line.session->daemon, &link, TIDE_SERIAL_ADDRESS_CLIENT);
  set(&line.opened);
}

static void go_down(void) {
  uintptr_t state = enter();
  const int descriptor = line.descriptor;
  line.descriptor = -1;
  line.sending = false;
  tide_serial_output_reset(&line.output);
  line.counters.cuts++;
  leave(state);
  if (descriptor >= 0) (void)close(descriptor);
  tide_daemon_detach_link(&line.session->daemon);
}

/* False: the line is down. */
static bool write_frame(void) {
  const uint8_t *bytes;
  for (size_t rest; (rest = tide_serial_output_rest(&line.output, &bytes)) > 0u;) {
    const ssize_t count = write(line.descriptor, bytes, rest);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    tide_serial_output_wrote(&line.output, (size_t)count, now_ns());
    line.counters.bytes_sent += (uint64_t)count;
  }
  return tcdrain(line.descriptor) == 0;
}

/* Runs one round of the writer thread. Returns the time of the next round. */
static int64_t serve(void) {
  const uintptr_t state = enter();
  const bool sending = line.sending, down = line.down;
  line.sending = false;
  leave(state);
  if (line.descriptor < 0) {
    come_up();
  } else if (down || (sending && !write_frame())) {
    go_down();
  } else if (sending) {
    line.counters.messages_sent++;
    tide_daemon_on_transmit_complete(&line.session->daemon);
  }
  const int64_t next_ns = tide_session_poll(line.session);
  const int64_t again_ns = line.descriptor < 0 ? now_ns() + REOPEN_NS : TIDE_FOREVER;
  return next_ns < again_ns ? next_ns : again_ns;
}

static void *write_thread(void *argument) {
  while (!is_stopped()) {
    const int64_t until_ns = serve();
    (void)platform()->event_wait(platform()->context, &line.work, until_ns);
  }
  return argument;
}

static void *read_thread(void *argument) {
  uint8_t bytes[64];
  int before;
  (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before); /* only a read may be cancelled, never a thread that
                                                                    holds a lock */
  while (!is_stopped()) {
    const uintptr_t state = enter();
    const int descriptor = line.down ? -1 : line.descriptor;
    leave(state);
    if (descriptor < 0) {
      (void)platform()->event_wait(platform()->context, &line.opened, TIDE_FOREVER);
      continue;
    }
    int ignored;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &ignored);
    const ssize_t count = read(descriptor, bytes, sizeof bytes);
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &ignored);
    if (count > 0) {
      line.counters.bytes_received += (uint64_t)count;
      tide_daemon_on_bytes(&line.session->daemon, bytes, (size_t)count);
    } else if (count == 0 || errno != EINTR) {
      const uintptr_t again = enter();
      line.down = true;
      leave(again);
    }
    set(&line.work); /* the reception changes the session's deadlines */
  }
  return argument;
}

static int start_thread(pthread_t *thread, void *(*function)(void *), int priority) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return TIDE_ERROR_FULL;
  (void)pthread_attr_setstacksize(&attributes, TIDE_NUTTX_LINK_STACK_BYTES);
  if (priority > 0) {
    const struct sched_param parameters = {.sched_priority = priority};
    (void)pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    (void)pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
    (void)pthread_attr_setschedparam(&attributes, &parameters);
  }
  const int error = pthread_create(thread, &attributes, function, NULL);
  (void)pthread_attr_destroy(&attributes);
  if (error == EPERM) return TIDE_ERROR_NOT_PERMITTED;
  return error == 0 ? TIDE_OK : TIDE_ERROR_FULL;
}

static void stop_threads(bool reader) {
  const uintptr_t state = enter();
  line.stop = true;
  leave(state);
  set(&line.work);
  set(&line.opened);
  (void)pthread_join(line.writer, NULL);
  if (line.descriptor >= 0) go_down(); /* ends a waiting read */
  if (!reader) return;
  (void)pthread_cancel(line.reader);
  (void)pthread_join(line.reader, NULL);
}

int tide_port_open_link(tide_session_t *session, const tide_link_address_t *address) {
  if (address->kind != TIDE_LINK_SERIAL || address->device == NULL) return TIDE_ERROR_UNSUPPORTED;
  if (line.session != NULL) return TIDE_ERROR_EXISTS;
  line.device = address->device;
  line.baud = address->baud != 0u ? address->baud : 115200u;
  line.stop = line.down = line.sending = false;
  memset(&line.counters, 0, sizeof line.counters);
  tide_serial_output_init(&line.output, line.storage, sizeof line.storage, line.baud, TIDE_SERIAL_ADDRESS_CLIENT,
                          TIDE_SERIAL_ADDRESS_AGENT);
  platform()->event_init(platform()->context, &line.work);
  platform()->event_init(platform()->context, &line.opened);
  line.session = session;
  come_up();
  if (line.descriptor < 0) {
    line.session = NULL;
    return TIDE_ERROR_LINK;
  }
  int status = start_thread(&line.writer, write_thread, address->thread_priority);
  if (status == TIDE_OK) {
    status = start_thread(&line.reader, read_thread, address->thread_priority);
    if (status != TIDE_OK) stop_threads(false);
  } else {
    go_down();
  }
  if (status != TIDE_OK) line.session = NULL;
  return status;
}

void tide_port_close_link(tide_session_t *session) {
  if (line.session != session) return;
  stop_threads(true);
  line.session = NULL;
}

void tide_port_wake_link(tide_session_t *session) {
  if (line.session == session) set(&line.work);
}

void tide_port_serve_link(tide_session_t *session) { (void)session; }

const tide_pump_t *tide_port_pump(tide_session_t *session) {
  (void)session;
  return NULL;
}

int tide_port_link_counters(tide_session_t *session, tide_link_counters_t *counters) {
  if (line.session != session) return TIDE_ERROR_NOT_FOUND;
  const uintptr_t state = enter();
  *counters = line.counters;
  leave(state);
  return TIDE_OK;
}
