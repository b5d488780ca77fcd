/* The building blocks of FORMAT.md, section 8. */

#ifndef TWIN_ARITH_H
#define TWIN_ARITH_H

#include "twin_kernel.h"
#include "twin_read.h"

/* All known compilers shift signed numbers arithmetically; C leaves it to them. */
typedef char twini_shifts_are_arithmetic[(-3 >> 1) == -2 ? 1 : -1];

#define TWIN_LARGEST 32767

/* floor(a * m / 65536) for 0 <= m <= 32767: the upper half of a 64-bit product, or two 32-bit ones
 * where that is a call. */
static inline int32_t twini_mulw(int32_t a, int32_t m) {
#if defined(__AVR__) || defined(__ARM_ARCH_6M__) || defined(__ARM_ARCH_8M_BASE__) ||               \
    defined(__XTENSA_CALL0_ABI__)
    return (a >> 16) * m + (int32_t)((((uint32_t)a & 65535u) * (uint32_t)m) >> 16);
#else
    return (int32_t)(((int64_t)a * (m * 65536)) >> 32);
#endif
}

/* a / 2^n, rounded half up. Half of 1 << n is 0 for n = 0, as it should be. */
static inline int32_t twini_rsh(int32_t a, uint8_t n) {
    /*@ split n; */
    return (a + (int32_t)(((uint32_t)1 << n) >> 1)) >> n;
}

static inline int32_t twini_sat(int32_t a) {
    return a > TWIN_LARGEST ? TWIN_LARGEST : a < -TWIN_LARGEST ? -TWIN_LARGEST : a;
}

/* Between low and high by a part of 1 << width. */
/*@ requires 0 <= low <= 16383 && 0 <= high <= 16383;
    requires width <= 12 && 0 <= part < 1 << width;
    assigns \nothing;
    ensures 0 <= \result <= 16383; */
static inline int32_t twini_between(int32_t low, int32_t high, int32_t part, uint8_t width) {
    return low + (((high - low) * part) >> width);
}

/* By how much silu lies below relu at a distance a from zero, with b fraction bits. */
static inline int32_t twini_bump(twin_flash curve, int32_t a, uint8_t b) {
    uint8_t width;
    int32_t k;
    /*@ split b; */
    width = (uint8_t)(b - 5);
    if (a >= (int32_t)4 << b) {
        a -= (int32_t)4 << b;
        width = (uint8_t)(b - 3);
        k = 128 + (a >> width);
        if (k >= 192)
            return 0;
    } else {
        k = a >> width;
    }
    curve += 2 * (uint16_t)k;
    a &= ((int32_t)1 << width) - 1;
    return twini_rsh(twini_between(twini_i16(curve), twini_i16(curve + 2), a, width),
                     (uint8_t)(15 - b));
}

#endif
