/* SPDX-License-Identifier: Apache-2.0 */
/* Pong of pong.h on a Cortex-M without an operating system, with a tide-agent on its serial line: lanes on one stack,
 * the default receive slots. The command line has words of plan.h, and
 *
 *   reliable               the topics are
 *   baud=RATE              of the line; 115200
 *   instruction_ns=N       what an instruction takes: two to the power of the emulator's -icount shift
 *
 * A sleeping lane would keep the common stack, so lanes must not sleep. The time starts with the first ping and is the
 * board's own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../pong.h"
#include "board.h"
#include "lanes.h"
#include "measure.h"
#include "platform.h"
#include "tide/rclc.h"
#include "uart.h"

#define TIDE_EXECUTOR_LANES PONG_LANES
#define TIDE_DEFINE_POOLS
#include "tide/pools.h"

#define SYS_GET_CMDLINE 0x15u
#define PIECE_NS INT64_C(100000)
enum { WORDS_MAXIMUM = 16, REPLENISHMENTS = 100 };

TIDE_DEFINE_LANE_BUDGETS(PONG_LANES, REPLENISHMENTS);

static uint8_t piece[32], ring[512];
const tide_uart_board_t tide_uart_board = {&TIDE_CHIP_UART, piece, sizeof piece, ring, sizeof ring};

static pong_plan_t plan;
static bool reliable;
static uint32_t baud = 115200u;
static int64_t started_ns, cpu_ns[PONG_LANES];

static int64_t now_ns(void) { return tide_cortex_m_platform.now_ns(NULL); }

static void start_time(void) {
  if (started_ns == 0) started_ns = now_ns();
}

static bool is_over(void) {
  const bool over = now_ns() - started_ns >= plan.duration_ns;
  if (over) pong_stop();
  return over;
}

/* In pieces, so that a lane knows its progress if the time ends during it. */
static void work(int32_t lane) {
  for (int64_t done_ns = 0; done_ns < plan.work_ns; done_ns += PIECE_NS) {
    const int64_t left_ns = plan.work_ns - done_ns;
    measure_burn(left_ns < PIECE_NS ? left_ns : PIECE_NS);
    cpu_ns[lane] += left_ns < PIECE_NS ? left_ns : PIECE_NS;
  }
}

static int64_t cpu_of_lane_ns(int32_t lane) { return cpu_ns[lane]; }

/* Lanes are numbered from the least urgent one, and only those with a budget have one. */
static void take_counters(int32_t lane) {
  size_t number = 0;
  for (int32_t other = 0; other < plan.lane_count; other++) {
    if (plan.lanes[other].priority < plan.lanes[lane].priority) number++;
  }
  const tide_budget_t *const budget = tide_port_lane_budget(number);
  if (budget != NULL) pong_results()[lane].budget = budget->counters;
}

static bool take_word(const char *word) {
  const bool is_baud = strncmp(word, "baud=", 5) == 0, is_time = strncmp(word, "instruction_ns=", 15) == 0;
  const bool is_reliable = strcmp(word, "reliable") == 0;
  if (is_baud) baud = (uint32_t)strtoul(word + 5, NULL, 10);
  if (is_time) measure_set_instruction_ns((uint32_t)strtoul(word + 15, NULL, 10));
  reliable = reliable || is_reliable;
  return is_baud || is_time || is_reliable;
}

/* The first word is the program's name. */
static const char *read_plan(void) {
  static char line[512];
  static char *words[WORDS_MAXIMUM];
  const uint32_t arguments[2] = {(uint32_t)line, sizeof line};
  if (board_semihosting(SYS_GET_CMDLINE, arguments) != 0) return "the command line is too long";
  int count = 0;
  (void)strtok(line, " ");
  for (char *word = strtok(NULL, " "); word != NULL; word = strtok(NULL, " ")) {
    if (take_word(word)) continue;
    if (count == WORDS_MAXIMUM) return "there are too many words";
    words[count++] = word;
  }
  const char *const wrong = pong_plan_read(&plan, count, words);
  for (int32_t lane = 0; wrong == NULL && lane < plan.lane_count; lane++) {
    if (plan.lanes[lane].sleep_percent > 0) return "a lane that sleeps would keep the stack that all share";
  }
  return wrong == NULL && plan.lane_count > PONG_LANES ? "it takes four lanes at most" : wrong;
}

static const char *open(void) {
  static const pong_place_t place = {start_time, work, is_over, cpu_of_lane_ns};
  rcl_init_options_t options = rcl_get_zero_initialized_init_options();
  if (rcl_init_options_init(&options, rcl_get_default_allocator()) != RCL_RET_OK) return "rcl_init_options_init failed";
  rmw_init_options_t *const link = rcl_init_options_get_rmw_init_options(&options);
  if (tide_rclc_options_set_serial(link, "", baud) != RMW_RET_OK) return "baud= is no rate";
  return pong_open(&plan, reliable, &place, &options);
}

int main(void) {
  const char *wrong = read_plan();
  if (wrong == NULL) wrong = open();
  if (wrong == NULL) printf("ready\n");
  if (wrong == NULL) wrong = pong_run();
  if (wrong != NULL) {
    printf(PONG_NAME ": %s\n", wrong);
    return 2;
  }
  for (int32_t lane = 0; lane < plan.lane_count; lane++) take_counters(lane);
  pong_plan_print(&plan, "qemu", pong_results());
  (void)fflush(stdout);
  return 0;
}
