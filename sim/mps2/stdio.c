/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that newlib needs for programs that print. Standard output goes to the emulator's standard error, line by
 * line; there is no input. */
#include <errno.h>
#include <sys/stat.h>

#include "board.h"

int _write(int file, const char *bytes, int count);
int _read(int file, char *bytes, int count);
int _close(int file);
int _lseek(int file, int offset, int whence);
int _fstat(int file, struct stat *status);
int _isatty(int file);
int _kill(int process, int signal);
int _getpid(void);
void *_sbrk(int bytes);
void _exit(int code);

int _write(int file, const char *bytes, int count) {
  static char line[128];
  static unsigned length;
  (void)file;
  for (int i = 0; i < count; i++) {
    line[length++] = bytes[i];
    if (bytes[i] != '\n' && length < sizeof line - 1u) continue;
    line[length] = '\0';
    board_print(line);
    length = 0;
  }
  return count;
}

int _read(int file, char *bytes, int count) {
  (void)file;
  (void)bytes;
  (void)count;
  return 0;
}

int _close(int file) {
  (void)file;
  return -1;
}

int _lseek(int file, int offset, int whence) {
  (void)file;
  (void)offset;
  (void)whence;
  return 0;
}

int _fstat(int file, struct stat *status) {
  (void)file;
  status->st_mode = S_IFCHR;
  return 0;
}

int _isatty(int file) {
  (void)file;
  return 1;
}

int _kill(int process, int signal) {
  (void)process;
  (void)signal;
  errno = EINVAL;
  return -1;
}

int _getpid(void) { return 1; }

/* Memory for newlib's one or two stdio buffers. */
void *_sbrk(int bytes) {
  static char heap[4096] __attribute__((aligned(8)));
  static int used;
  if (bytes < 0 || used + bytes > (int)sizeof heap) {
    errno = ENOMEM;
    return (void *)-1;
  }
  used += bytes;
  return heap + used - bytes;
}

void _exit(int code) { board_exit(code); }
