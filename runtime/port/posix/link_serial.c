/* SPDX-License-Identifier: Apache-2.0 */
/* Serial links: a tty in raw mode, 8N1. The end of a transmission is computed from the baud rate; on real hardware the
 * driver is asked besides whether its queue and the UART's shift register are empty. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <termios.h>
#include <unistd.h>

#include "link.h"
#include "serial_speed.h"
#include "tide/status.h"

#define PSEUDO_TERMINAL_FIRST 136u /* major numbers of the terminal side, as Linux assigns them */
#define PSEUDO_TERMINAL_LAST 143u

static bool is_pseudo_terminal(int descriptor) {
  struct stat status;
  if (fstat(descriptor, &status) != 0 || !S_ISCHR(status.st_mode)) return false;
  const unsigned number = major(status.st_rdev);
  return number >= PSEUDO_TERMINAL_FIRST && number <= PSEUDO_TERMINAL_LAST;
}

/* Raw, 8N1, no flow control, and rid of what lay in the queues before. A pseudo terminal has no speed, so any will do.
 */
static int make_raw(tide_posix_link_t *link, int descriptor) {
  struct termios mode;
  if (tcgetattr(descriptor, &mode) != 0) return TIDE_ERROR_LINK;
  cfmakeraw(&mode);
  mode.c_cflag |= (tcflag_t)(CLOCAL | CREAD);
  mode.c_cflag &= ~(tcflag_t)(CSTOPB | CRTSCTS);
  mode.c_cc[VMIN] = 1;
  mode.c_cc[VTIME] = 0;
  if (!tide_serial_set_speed(&mode, link->address.baud) && !link->is_pseudo_terminal) return TIDE_ERROR_ARGUMENT;
  if (tcsetattr(descriptor, TCSANOW, &mode) != 0) return TIDE_ERROR_LINK;
  (void)tcflush(descriptor, TCIOFLUSH);
  return TIDE_OK;
}

static int open_serial(tide_posix_link_t *link) {
  const int descriptor = open(link->address.device, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return TIDE_ERROR_LINK;
  link->is_pseudo_terminal = is_pseudo_terminal(descriptor);
  const int status = make_raw(link, descriptor);
  if (status != TIDE_OK) {
    (void)close(descriptor);
    return status;
  }
  unsigned register_status = 0u;
  link->tells_when_empty = ioctl(descriptor, TIOCSERGETLSR, &register_status) == 0;
  return descriptor;
}

static int load(tide_posix_link_t *link, const tide_frame_parts_t *frame) {
  return tide_serial_output_load(&link->output, frame);
}

static bool is_drained(tide_posix_link_t *link) {
  int queued = 0;
  unsigned register_status = 0u;
  if (link->is_pseudo_terminal || link->address.paced || link->descriptor < 0) return true;
  if (ioctl(link->descriptor, TIOCOUTQ, &queued) == 0 && queued > 0) return false;
  if (!link->tells_when_empty || ioctl(link->descriptor, TIOCSERGETLSR, &register_status) != 0) return true;
  return (register_status & TIOCSER_TEMT) != 0u;
}

static int receive(tide_posix_link_t *link) {
  const int count = tide_posix_link_read(link);
  if (count <= 0) return count;
  tide_posix_link_count_received(link, (size_t)count, false);
  link->input_bytes = 0u;
  tide_daemon_on_bytes(&link->session->daemon, link->input, (size_t)count);
  return count;
}

const tide_posix_link_kind_t tide_posix_link_serial = {
    .open = open_serial,
    .load = load,
    .push = tide_posix_link_push_stream,
    .is_drained = is_drained,
    .receive = receive,
};
