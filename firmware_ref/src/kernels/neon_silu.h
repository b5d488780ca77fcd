/* silu of a prepared model, by straight lines, four outputs at a time, in two steps. The first
 * finds the line of each activation and leaves its number in memory; the second takes the lines,
 * once the first has done the next four. So numbers need not move from vectors to addresses one by
 * one, which takes longer than all else, and nothing waits for them. */

#ifndef TWIN_KERNELS_NEON_SILU_H
#define TWIN_KERNELS_NEON_SILU_H

#include "neon_ready.h"

/* A line is a slope in the lower half of a number, and a base in the upper one, both signed. With
 * a = |z|, max(z, 0) - silu(z) is
 *
 *     (slope * a - (base << (fraction + 1)) + (fraction < 15 ? 32768 : 0)) >> 16
 *
 * on line min(a >> (fraction - 5), (a >> (fraction - 3)) + 96), as two shifts in a row are one. So
 * these are all lines for 9 fraction bits and more; those after the steps of the curve are zero. If
 * the curve of the pack allows no such lines, all of them are. */
#define LINES (TWIN_COARSE * 3 / 4 + (32768 >> 6))

static void fill_lines(int32_t *lines, twin_flash curve) {
    int fits = 1, k;
    for (k = 0; k < TWIN_STEPS; k++, curve += 2) {
        int32_t low = twini_i16(curve), step = twini_i16(curve + 2) - low;
        int near_zero = k < TWIN_COARSE;
        int32_t base = step * (near_zero ? k : k - TWIN_COARSE * 3 / 4) - low;
        int32_t slope = step * (near_zero ? 64 : 16);
        fits &= base == (int16_t)base && slope == (int16_t)slope;
        lines[k] = (int32_t)((uint32_t)base << 16 | (uint16_t)slope);
    }
    if (!fits)
        memset(lines, 0, TWIN_STEPS * sizeof *lines);
}

/* What the outputs of a layer share. */
typedef struct lines {
    const uint32_t *line;
    int16x8_t fine, coarse, scale;
} lines;

/* Whether lines suffice for a layer: RADDHN rounds, too. */
INLINE int has_lines(const twini_ready_layer *layer) {
    return squashes(layer) && layer->fraction >= 9 && layer->fraction < 15 && layer->lines[0];
}

INLINE lines lines_of(const twini_ready_layer *layer) {
    int b = layer->fraction;
    lines all = {(const uint32_t *)layer->lines, vdupq_n_s16((int16_t)(5 - b)),
                 vdupq_n_s16((int16_t)(3 - b)), vdupq_n_s16((int16_t) - (2 << b))};
    return all;
}

/* The first step. */
INLINE void number_lines(uint16_t *to, const lines *all, int16x8_t z) {
    uint16x8_t a = vreinterpretq_u16_s16(vqabsq_s16(z));
    uint16x8_t far = vaddq_u16(vshlq_u16(a, all->coarse), vdupq_n_u16(96));
    vst1q_u16(to, vminq_u16(vshlq_u16(a, all->fine), far));
}

#if TWIN_HOST_ARM == 64
/* A line, and zeros. In assembly for gcc, which would insert what it loads into a copy of zeros. */
INLINE int16x8_t line_at(const uint32_t *line, uint64_t k) {
#if defined(__clang__)
    return vreinterpretq_s16_u32(vsetq_lane_u32(line[k], vdupq_n_u32(0), 0));
#else
    int16x8_t one;
    __asm__("ldr %s0, %1" : "=w"(one) : "m"(line[k]));
    return one;
#endif
}

/* Four slopes, then four bases. */
INLINE int16x8_t four_lines(const uint32_t *line, const uint16_t *numbers) {
    uint64_t k;
    int16x8_t ab, cd;
    __builtin_memcpy(&k, numbers, sizeof k);
    ab = vzip1q_s16(line_at(line, k & 65535), line_at(line, k >> 16 & 65535));
    cd = vzip1q_s16(line_at(line, k >> 32 & 65535), line_at(line, k >> 48));
    return vreinterpretq_s16_s32(vzip1q_s32(vreinterpretq_s32_s16(ab), vreinterpretq_s32_s16(cd)));
}
#else
/* Four slopes, then four bases. */
INLINE int16x8_t four_lines(const uint32_t *line, const uint16_t *k) {
    uint32x2_t ab = vdup_n_u32(line[k[0]]), cd = vdup_n_u32(line[k[2]]);
    int16x4x2_t all;
    ab = vld1_lane_u32(line + k[1], ab, 1);
    cd = vld1_lane_u32(line + k[3], cd, 1);
    all = vuzp_s16(vreinterpret_s16_u32(ab), vreinterpret_s16_u32(cd));
    return vcombine_s16(all.val[0], all.val[1]);
}
#endif

/* The second step. */
INLINE activations bend(const lines *all, int16x8_t z, const uint16_t *numbers) {
    int16x8_t one = four_lines(all->line, numbers), other = four_lines(all->line, numbers + 4);
    int16x8_t a = vqabsq_s16(z);
    int32x4_t low = vmull_s16(vget_low_s16(one), vget_low_s16(a)), zero = vdupq_n_s32(0);
    int32x4_t high = vmull_s16(vget_low_s16(other), vget_high_s16(a));
    low = vmlal_high_s16(low, one, all->scale);
    high = vmlal_high_s16(high, other, all->scale);
    return vsubq_s16(vmaxq_s16(z, none()), vraddhn_high_s32(vraddhn_s32(low, zero), high, zero));
}

#endif
