/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the behaviours of a micro-ROS client that a program can observe, one in each line: NAME | OBSERVATION.
 *
 *   behaviours PORT [-n NAME] [-p PEER] AGENT [ARGUMENT...]
 *
 * The program uses only the public interface, so it links with any client. lab/bench/behaviours.py builds it and
 * compares its output. Each behaviour runs in a process of its own, with an agent of its own; AGENT and its arguments
 * are the command for an agent that serves UDP on PORT. PEER is the command, as one argument, that starts the observing
 * ROS 2 node (peer.py). Without PEER, behaviours that need the node are omitted. */
#define _GNU_SOURCE
#include "behaviours.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_S 60

static char **agent_command;
static pid_t agent_process, peer_process;
static const char *peer_command;
static FILE *to_peer, *from_peer;

int64_t now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

int64_t wall_ms(void) { return (int64_t)time(NULL) * 1000; }

static pthread_t threads[8];

thread_t start_thread(void *(*body)(void *), void *argument) {
  static int count;
  require(pthread_create(&threads[count % 8], NULL, body, argument) == 0, "a thread");
  return count++ % 8;
}

void join_thread(thread_t thread) { (void)pthread_join(threads[thread], NULL); }

void sleep_ms(int64_t time_ms) { usleep((useconds_t)(time_ms * 1000)); }  // clock: a real client's own time

void start_agent(void) {
  agent_process = fork();
  if (agent_process == 0) {
    if (!freopen("/dev/null", "w", stdout)) _exit(126);
    execvp(agent_command[0], agent_command);
    _exit(127);
  }
  sleep_ms(500);
}

void kill_agent(void) {
  if (agent_process > 0) {
    kill(agent_process, SIGKILL);
    waitpid(agent_process, NULL, 0);
  }
  agent_process = 0;
}

void require(bool holds, const char *step) {
  if (holds) return;
  printf(" no result: %s failed\n", step);
  fflush(stdout);
  kill_agent();
  _exit(0);
}

int ask_peer(const char *question) {
  fprintf(to_peer, "%s\n", question);
  fflush(to_peer);
  char answer[32];
  require(fgets(answer, sizeof answer, from_peer) != NULL, "the peer");
  return atoi(answer);
}

void start_peer(const char *topic) {
  int down[2], up[2];
  require(pipe(down) == 0 && pipe(up) == 0, "a pipe");
  peer_process = fork();
  if (peer_process == 0) {
    if (dup2(down[0], STDIN_FILENO) < 0 || dup2(up[1], STDOUT_FILENO) < 0) _exit(126);
    close(down[1]);
    close(up[0]);
    execl("/bin/sh", "sh", "-c", peer_command, (char *)NULL);
    _exit(127);
  }
  close(down[0]);
  close(up[1]);
  to_peer = fdopen(down[1], "w");
  from_peer = fdopen(up[0], "r");
  (void)ask_peer(topic);
}

static void run(const behaviour_t *behaviour) {
  printf("%s |", behaviour->name);
  fflush(stdout);
  const pid_t process = fork();
  if (process == 0) {
    setpgid(0, 0);
    start_agent();
    allocator = rcl_get_default_allocator();
    behaviour->run();
    printf(" %s\n", line + strspn(line, " ,"));
    fflush(stdout);
    kill_agent();
    _exit(0);
  }
  int status = 0;
  pid_t ended = 0;
  for (int waited = 0; waited < LIMIT_S * 20 && ended == 0; waited++) {
    sleep_ms(50);
    ended = waitpid(process, &status, WNOHANG);
  }
  if (ended == 0) puts(" does not return");
  if (ended != 0 && WIFSIGNALED(status)) printf(" ends the program: %s\n", strsignal(WTERMSIG(status)));
  kill(-process, SIGKILL); /* including its agent */
  if (ended == 0) waitpid(process, NULL, 0);
  fflush(stdout);
}

int main(int count, char **words) {
  const char *only = NULL;
  agent_port = count > 1 ? words[1] : NULL;
  if (count > 4 && strcmp(words[2], "-n") == 0) {
    only = words[3];
    words += 2;
    count -= 2;
  }
  if (count > 4 && strcmp(words[2], "-p") == 0) {
    peer_command = words[3];
    words += 2;
    count -= 2;
  }
  if (count < 3) {
    fprintf(stderr, "usage: behaviours PORT [-n NAME] [-p PEER] AGENT [ARGUMENT...]\n");
    return 2;
  }
  agent_command = words + 2;
  for (size_t i = 0; i < sizeof behaviour_lists / sizeof behaviour_lists[0]; i++)
    for (const behaviour_t *behaviour = behaviour_lists[i]; behaviour->run; behaviour++)
      if ((!only || strstr(behaviour->name, only)) && (peer_command || !behaviour->needs_peer)) run(behaviour);
  return 0;
}
