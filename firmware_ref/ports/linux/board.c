/* A Linux program. The emulator counts the instructions, not the program. */

#include "board.h"
#include <stdio.h>
#include <stdlib.h>

enum { MEMORY = 1 << 24, STACK = 1 << 16 };

void *board_memory(size_t size) {
    static uint64_t memory[MEMORY / 8];
    return size <= MEMORY ? memory : 0;
}

uint8_t *board_stack_end(void) {
    return (uint8_t *)__builtin_frame_address(0) - STACK;
}

void board_write(const char *text) {
    fputs(text, stdout);
}

void board_exit(int status) {
    exit(status);
}

void board_start_counter(void) {
}

uint32_t board_counter(void) {
    return 0;
}
