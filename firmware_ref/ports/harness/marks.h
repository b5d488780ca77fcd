/* High-water marks of the stack, after harness.h. A program declares `top` first: the stack pointer
 * where painting starts. */

#ifndef MARKS_H
#define MARKS_H

#include "harness.h"

enum { LARGEST_STACK = 1 << 14, PAINT = 0xA5, NEAR = 32 };

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
