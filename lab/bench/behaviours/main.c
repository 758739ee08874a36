/* SPDX-License-Identifier: Apache-2.0 */
/* Behaviours of a micro-ROS client that a program can tell, one line each: NAME | WHAT WAS SEEN.
 *
 *   behaviours PORT [-n NAME] [-p PEER] AGENT [ARGUMENT...]
 *
 * Only the public interface is used, so it links with any client; lab/bench/behaviours.py builds and compares. Each
 * behaviour runs in a process and with an agent (the command, which serves UDP on PORT) of its own. PEER is the
 * command, in one word, of what says how ROS 2 sees them (peer.py); behaviours that ask it are left out without. */
#define _GNU_SOURCE
#include "behaviours.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_S 60

static char line[4000];
static const char *port;
static char **agent_command;
static pid_t agent_process, peer_process;
static const char *peer_command;
static FILE *to_peer, *from_peer;

rcl_allocator_t allocator;
rclc_support_t support;
rcl_node_t node;
int seen;
int32_t last_value;

void say(const char *format, ...) {
  va_list words;
  va_start(words, format);
  const size_t used = strlen(line);
  vsnprintf(line + used, sizeof line - used, format, words);
  va_end(words);
}

void say_code(const char *name, rcl_ret_t code) { say(" %s %d", name, (int)code); }

int64_t now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

void sleep_ms(int64_t time_ms) { usleep((useconds_t)(time_ms * 1000)); }

const char *about(int64_t time_ms) {
  static const struct {
    int64_t below_ms;
    const char *text;
  } steps[] = {{60, "0 s"},   {300, "0.1 s"}, {750, "0.5 s"},  {1500, "1 s"},
               {3500, "2 s"}, {7500, "5 s"},  {12500, "10 s"}, {20000, "15 s"}};
  for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
    if (time_ms < steps[i].below_ms) return steps[i].text;
  return "long";
}

const char *fresh(const char *base) {
  static char names[16][64];
  static unsigned number;
  char *name = names[number++ % 16];
  snprintf(name, sizeof names[0], "%s_%d_%u", base, (int)getpid(), number);
  return name;
}

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

static void require(bool holds, const char *step) {
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

void say_peer(const char *question) { say(" [%.*s %d]", (int)strcspn(question, " "), question, ask_peer(question)); }

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

rcl_init_options_t options_of_agent(void) {
  rcl_init_options_t options = rcl_get_zero_initialized_init_options();
  require(rcl_init_options_init(&options, allocator) == RCL_RET_OK, "rcl_init_options_init");
  rmw_init_options_t *link = rcl_init_options_get_rmw_init_options(&options);
  require(rmw_uros_options_set_udp_address("127.0.0.1", port, link) == RMW_RET_OK, "the address");
  return options;
}

void connect_support(void) {
  rcl_init_options_t options = options_of_agent();
  const rcl_ret_t code = rclc_support_init_with_options(&support, 0, NULL, &options, &allocator);
  require(code == RCL_RET_OK, "rclc_support_init");
  (void)rcl_init_options_fini(&options);
}

void connect_node(void) {
  connect_support();
  node = rcl_get_zero_initialized_node();
  require(rclc_node_init_default(&node, "node", "", &support) == RCL_RET_OK, "rclc_node_init");
}

void on_int32(const void *message) {
  seen++;
  last_value = message ? ((const std_msgs__msg__Int32 *)message)->data : -1;
}

rcl_publisher_t publisher_of(const char *topic) {
  rcl_publisher_t publisher = rcl_get_zero_initialized_publisher();
  require(rclc_publisher_init_default(&publisher, &node, INT32, topic) == RCL_RET_OK, "a publisher");
  return publisher;
}

rcl_subscription_t subscription_of(const char *topic) {
  rcl_subscription_t subscription = rcl_get_zero_initialized_subscription();
  require(rclc_subscription_init_default(&subscription, &node, INT32, topic) == RCL_RET_OK, "a subscription");
  return subscription;
}

rcl_ret_t publish_int32(const rcl_publisher_t *publisher, int32_t value) {
  const std_msgs__msg__Int32 message = {value};
  return rcl_publish(publisher, &message, NULL);
}

rclc_executor_t executor_of(size_t handles) {
  rclc_executor_t executor = rclc_executor_get_zero_initialized_executor();
  require(rclc_executor_init(&executor, &support.context, handles, &allocator) == RCL_RET_OK, "an executor");
  return executor;
}

void spin_until(rclc_executor_t *executor, int count) {
  for (const int64_t end_ms = now_ms() + 2000; seen < count && now_ms() < end_ms;)
    rclc_executor_spin_some(executor, RCL_MS_TO_NS(20));
}

void spin_for(rclc_executor_t *executor, int64_t time_ms) {
  for (const int64_t end_ms = now_ms() + time_ms; now_ms() < end_ms;)
    rclc_executor_spin_some(executor, RCL_MS_TO_NS(5));
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
  kill(-process, SIGKILL); /* with its agent */
  if (ended == 0) waitpid(process, NULL, 0);
  fflush(stdout);
}

int main(int count, char **words) {
  const char *only = NULL;
  port = count > 1 ? words[1] : NULL;
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
  const behaviour_t *const lists[] = {behaviours_of_objects, behaviours_of_executors, behaviours_of_messages,
                                      behaviours_of_agents,  behaviours_of_starts,    behaviours_of_ends,
                                      behaviours_of_threads, behaviours_of_memory};
  for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
    for (const behaviour_t *behaviour = lists[i]; behaviour->run; behaviour++)
      if ((!only || strstr(behaviour->name, only)) && (peer_command || !behaviour->needs_peer)) run(behaviour);
  return 0;
}
