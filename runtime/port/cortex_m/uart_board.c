/* SPDX-License-Identifier: Apache-2.0 */
/* Default board: the linker takes this object only for a program that defines none. */
#include "uart.h"

static uint8_t piece[16], ring[256];
const tide_uart_board_t tide_uart_board = {&tide_mps2_uart, piece, sizeof piece, ring, sizeof ring};
