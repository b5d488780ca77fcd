/* For a board with one RAM: what is free between variables and stack belongs to both the harness
 * and the stack. Included by the port's start.c alone, whose linker script names both ends. */

#ifndef ONE_RAM_H
#define ONE_RAM_H

#include "board.h"

extern uint8_t board_free[], board_stack[];

static uint8_t *stack_end = board_free;

void *board_memory(size_t size) {
    uint32_t spare = (uint32_t)board_stack - (uint32_t)board_free;
    if (size > spare || spare - size < 2048)
        return 0;
    stack_end = board_free + size;
    return board_free;
}

uint8_t *board_stack_end(void) {
    return stack_end;
}

#endif
