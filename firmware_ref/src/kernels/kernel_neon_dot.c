/* 64-bit Arm with dot products, as the Raspberry Pi 5 has; packs with 8-bit weights. neon_dot.h
 * says how bytes replace 16-bit numbers, neon_dot_last.h how the last layer saves work. */

#include "neon_prepared.h"

#if TWIN_HOST_ARM == 64

#if defined(__clang__)
TARGET("dotprod")
#else
TARGET("arch=armv8.2-a+dotprod")
#endif

#define NAME(word) dot_##word
#include "neon_eights.h"

#include "neon_dot.h"

typedef uint8_t rows_room[8 * (MOST_INPUTS + 16)];

typedef struct rows {
    const int8_t *row[8];
    const squeeze *without;
    uint8_t *room;
} rows;

INLINE void take_rows(rows *eight, rows_room *room, const twini_layer *layer, twin_flash weights,
                      const uint32_t *numbers, const squeeze *without) {
    unsigned r;
    EIGHT_TIMES eight->row[r] = (const int8_t *)(weights + numbers[r] * layer->row);
    eight->without = without;
    eight->room = *room;
}

INLINE void take_start(int32_t *start, const twini_layer *layer, rows *eight,
                       const uint32_t *numbers, uint32_t n) {
    dot_weighed all;
    unsigned r;
    dot_weigh(&all, layer, numbers, n, eight->without, eight->room);
    EIGHT_TIMES {
        eight->row[r] = all.row[r];
        start[r] = all.start[r];
    }
}

INLINE void dot_sum_halves(neon_sums *sum, const int32_t *start, const int8_t *const *row,
                           unsigned fours, const int8_t *high, const int8_t *low) {
    unsigned r;
    EIGHT_TIMES sum[r] = neon_set(0);
    dot_add_bytes(sum, row, fours, high);
    EIGHT_TIMES sum[r] = dot_shifted(sum[r], start[r]);
    dot_add_bytes(sum, row, fours, low);
}

INLINE void sum_inputs(neon_sums *sum, const int32_t *start, const rows *eight, uint32_t n,
                       const uint8_t *from, size_t size) {
    const int8_t *high = (const int8_t *)from, *low = high + size / 2;
    if (n <= 4)
        dot_sum_halves(sum, start, eight->row, 1, high, low);
    else if (n <= 8)
        dot_sum_halves(sum, start, eight->row, 2, high, low);
    else
        dot_sum_halves(sum, start, eight->row, dot_fours_of(n), high, low);
}

/* A q + bias and B q + bias of each output, and 128 times all its weights: the anchors' part of
 * that is added here, too. */
static void dot_query(const twini_layer *given, const int16_t *query, void *partial) {
    const twini_layer mine = *given, *layer = &mine;
    int8_t *high = (int8_t *)layer->work, *low = high + MOST_INPUTS, *there = low + MOST_INPUTS;
    int32_t *out = (int32_t *)partial;
    uint32_t o, i, inputs = layer->inputs;
    for (i = 0; i < twini_align(inputs, 16); i++) {
        high[i] = (int8_t)(i < inputs ? query[i] >> 8 : 0);
        low[i] = (int8_t)(i < inputs ? (query[i] & 255) - 128 : 0);
        there[i] = (int8_t)(i < inputs ? 1 : 0);
    }
    for (o = 0; o < layer->outputs; o++) {
        const int8_t *a = (const int8_t *)(layer->weights + o * layer->row);
        const int8_t *b = (const int8_t *)(layer->mirror + o * layer->row);
        int32x4_t zero = vdupq_n_s32(0), all = zero, both;
        int32x4_t a_high = zero, a_low = zero, b_high = zero, b_low = zero;
        for (i = 0; i < inputs; i += 16) {
            int8x16_t wa = vld1q_s8(a + i), wb = vld1q_s8(b + i), one = vld1q_s8(there + i);
            int8x16_t h = vld1q_s8(high + i), l = vld1q_s8(low + i);
            SDOT(all, wa, one);
            SDOT(all, wb, one);
            SDOT(a_high, wa, h);
            SDOT(a_low, wa, l);
            SDOT(b_high, wb, h);
            SDOT(b_low, wb, l);
        }
        all = vshlq_n_s32(all, 7);
        a_low = vaddq_s32(vaddq_s32(a_low, all), vshlq_n_s32(a_high, 8));
        b_low = vaddq_s32(vaddq_s32(b_low, all), vshlq_n_s32(b_high, 8));
        both = vpaddq_s32(a_low, b_low);
        both = vaddq_s32(vpaddq_s32(both, both), vdupq_n_s32(twini_i32(layer->bias + 4 * o)));
        vst1_s32(out + 2 * o, vget_low_s32(both));
    }
}

#include "layers.h"
#include "neon_dot_last.h"
#include "neon_dot_prepared.h"

#define KERNEL twini_kernel_neon_dot
#define ALIGN  16
#define QUERY  dot_query
#define HAS_LAST
#include "host_kernel.h"

TARGET_END

#endif
