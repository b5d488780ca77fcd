/* ATmega in simavr: runner.c listens to registers without other use. */

#include "board.h"
#include <avr/io.h>

extern uint8_t __heap_start[];

enum { LEAST_STACK = 256 };

static uint8_t *stack_end = __heap_start;

void *board_memory(size_t size) {
    size_t spare = SP - (uint16_t)__heap_start - LEAST_STACK;
    if (size > spare)
        return 0;
    stack_end = __heap_start + size;
    return __heap_start;
}

uint8_t *board_stack_end(void) {
    return stack_end;
}

void board_write(const char *text) {
    while (*text)
        GPIOR0 = (uint8_t)*text++;
}

void board_exit(int status) {
    GPIOR2 = (uint8_t)status;
    for (;;)
        ;
}

void board_start_counter(void) {
}

uint32_t board_counter(void) {
    union {
        uint32_t count;
        uint8_t byte[4];
    } counter;
    uint8_t i;
    GPIOR1 = 0;
    for (i = 0; i < 4; i++)
        counter.byte[i] = GPIOR1;
    return counter.count;
}
