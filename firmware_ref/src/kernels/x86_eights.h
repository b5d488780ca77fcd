/* What the x86-64 kernels do with an eight, from what a kernel file defines: pairs of outputs are
 * side by side, [2 activations at a time][LANES columns][2].
 *
 *     add_products    of two activations with two weights, to sums
 *     either          the bits of two activations
 *     is_any          whether an activation is not zero in a column
 *     beside          two activations of 32 bits into 32 bits */

#ifndef TWIN_KERNELS_X86_EIGHTS_H
#define TWIN_KERNELS_X86_EIGHTS_H

#include "eights.h"

/* Which of eight outputs are positive in any column. */
INLINE unsigned which(activations (*h)[TWIN_BLOCK / LANES], unsigned all) {
    unsigned r, c, bits = 0;
    EIGHT_TIMES {
        activations any = h[r][0];
        for (c = 1; c < all; c++)
            any = either(any, h[r][c]);
        bits |= is_any(any) << r;
    }
    return bits;
}

INLINE void sum_inputs(sums *sum, const int32_t *start, const rows *eight, uint32_t inputs,
                       const uint8_t *from, size_t size) {
    uint32_t i;
    unsigned r;
    (void)size;
    EIGHT_TIMES sum[r] = set(start[r]);
    for (i = 0; i < inputs; i += 2) {
        sums x = load((const int32_t *)(const void *)(from + 2 * LANES * i));
        EIGHT_TIMES {
            int32_t two;
            memcpy(&two, eight->row[r] + i, sizeof two);
            sum[r] = add_products(sum[r], x, set(two));
        }
    }
}

INLINE void store(uint8_t *to, size_t size, uint32_t first, const activations *h) {
    int32_t *out = (int32_t *)(void *)to + LANES / 2 * (size_t)first;
    (void)size;
    keep(out, beside(h[0], h[1]));
    keep(out + LANES, beside(h[2], h[3]));
}

INLINE void transpose(uint8_t *to, unsigned inputs, const twin_flash *anchor) {
    int32_t *out = (int32_t *)(void *)to;
    unsigned i, c;
    for (i = 0; i < twini_align(inputs, 4); i += 2)
        for (c = 0; c < LANES; c++)
            out[LANES / 2 * i + c] = twini_i32(anchor[c] + 2 * i);
}

#endif
