/* What the programs of the harness share: lines for the host, and stack high-water marks. A program
 * declares its variables first, among them
 *
 *     number    what goes into a line
 *     top       the stack pointer where painting starts */

#ifndef HARNESS_H
#define HARNESS_H

#include "board.h"
#include "../../src/twin_read.h"

extern const uint8_t board_pack[], board_queries[];

#if TWIN_FLASH == 2
#define PLACE(symbol) pgm_get_far_address(symbol)
#else
#define PLACE(symbol) ((twin_flash)(symbol))
#endif

enum { LARGEST_STACK = 1 << 14, PAINT = 0xA5, NEAR = 32 };

static char digit(unsigned value) {
    value &= 15;
    return (char)(value < 10 ? '0' + value : 'a' - 10 + value);
}

/* A line: a word, and `count` numbers of eight hexadecimal digits. */
static void say(const char *word, unsigned count) {
    const uint8_t *byte = (const uint8_t *)number;
    unsigned i;
    board_write(word);
    for (i = 0; i < 4 * count; i++) {
        char text[4], *at = text;
        unsigned value = byte[i ^ 3]; /* all boards are little-endian */
        if (i % 4 == 0)
            *at++ = ' ';
        *at++ = digit(value >> 4);
        *at++ = digit(value);
        *at = 0;
        board_write(text);
    }
    board_write("\n");
}

__attribute__((noreturn)) static void stop(const char *why) {
    board_write(why);
    board_exit(1);
}

static inline uintptr_t stack_pointer(void) {
#if defined(__AVR__)
    return SP;
#else
    uintptr_t here;
#if defined(__riscv)
    __asm volatile("mv %0, sp" : "=r"(here));
#else
    __asm volatile("mov %0, sp" : "=r"(here));
#endif
    return here;
#endif
}

/* The lowest byte below `top` that is painted. */
static volatile uint8_t *canvas(void) {
    uint8_t *low = board_stack_end();
    return top - (uintptr_t)low > LARGEST_STACK ? (uint8_t *)(top - LARGEST_STACK) : low;
}

static void paint(void) {
    volatile uint8_t *at;
    for (at = canvas(); (uintptr_t)at < top - NEAR; at++)
        *at = PAINT;
}

/* Bytes below `top` used since painting. */
static uintptr_t used(void) {
    volatile uint8_t *low = canvas(), *at = low;
    while ((uintptr_t)at < top && *at == PAINT)
        at++;
    if (at == low)
        stop("stack overflow\n");
    return top - (uintptr_t)at;
}

#endif
