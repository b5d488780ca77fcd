/* What the NEON kernels share: sums of eight columns, and the way from there to activations. */

#ifndef TWIN_KERNELS_NEON_H
#define TWIN_KERNELS_NEON_H

#define PAIRS       TWIN_BLOCK
#define PLACE(i, c) 0 /* unused: nothing is stored the plain way */

#define MULTIPLIER_SHIFT 15 /* see activate */

#include "plain.h"
#include "eights.h"
#include <arm_neon.h>
#if TWIN_HOST_ARM == 32
#include "neon32.h"
#else
/* Products with a lane. */
#define ADD_TIMES_LANE      vmlal_laneq_s16
#define ADD_HIGH_TIMES_LANE vmlal_high_laneq_s16
#define TIMES_LANE          vqrdmulhq_laneq_s32
#endif

typedef struct sums {
    int32x4_t low, high;
} sums;

typedef int16x8_t activations;

INLINE activations none(void) {
    return vdupq_n_s16(0);
}

INLINE sums set(int32_t a) {
    sums all = {vdupq_n_s32(a), vdupq_n_s32(a)};
    return all;
}

INLINE sums load(const int32_t *from) {
    sums all = {vld1q_s32(from), vld1q_s32(from + 4)};
    return all;
}

INLINE void keep(int32_t *to, sums a) {
    vst1q_s32(to, a.low);
    vst1q_s32(to + 4, a.high);
}

INLINE sums add(sums a, sums b) {
    sums all = {vaddq_s32(a.low, b.low), vaddq_s32(a.high, b.high)};
    return all;
}

INLINE sums subtract(sums a, sums b) {
    sums all = {vsubq_s32(a.low, b.low), vsubq_s32(a.high, b.high)};
    return all;
}

INLINE sums fold(sums a, activations h, int16_t weight) {
    sums all = {vmlal_n_s16(a.low, vget_low_s16(h), weight), vmlal_high_n_s16(a.high, h, weight)};
    return all;
}

/* What the outputs of a layer share on the way from sums to activations. Negative left shifts go to
 * the right. */
typedef struct way {
    twin_flash curve;
    int32x4_t left;
    int16x8_t fine, coarse, round;
    uint16x8_t far;
} way;

INLINE way way_for(twin_flash curve, uint8_t shift, uint8_t fraction) {
    int b = fraction;
    way how;
    how.curve = curve;
    how.left = vdupq_n_s32(-(int32_t)shift);
    how.fine = vdupq_n_s16((int16_t)(5 - b));
    how.coarse = vdupq_n_s16((int16_t)(3 - b));
    how.round = vdupq_n_s16((int16_t)(b - 15));
    how.far = vdupq_n_u16((uint16_t)(b < 13 ? 4 << b : UINT16_MAX)); /* nothing is beyond 4 << 13 */
    return how;
}

INLINE way way_of(const twini_layer *layer) {
    return way_for(layer->curve, layer->shift, layer->fraction);
}

/* Entries k and k + 1 of the curve, the second in the upper half. */
INLINE uint32_t two_of_curve(twin_flash curve, uint32_t k) {
    uint32_t two;
    __builtin_memcpy(&two, curve + 2 * k, sizeof two);
    return two;
}

INLINE int16x8x2_t look_up(twin_flash curve, uint16x8_t k) {
    uint32x4_t low = vdupq_n_u32(0), high = low;
    low = vsetq_lane_u32(two_of_curve(curve, vgetq_lane_u16(k, 0)), low, 0);
    low = vsetq_lane_u32(two_of_curve(curve, vgetq_lane_u16(k, 1)), low, 1);
    low = vsetq_lane_u32(two_of_curve(curve, vgetq_lane_u16(k, 2)), low, 2);
    low = vsetq_lane_u32(two_of_curve(curve, vgetq_lane_u16(k, 3)), low, 3);
    high = vsetq_lane_u32(two_of_curve(curve, vgetq_lane_u16(k, 4)), high, 0);
    high = vsetq_lane_u32(two_of_curve(curve, vgetq_lane_u16(k, 5)), high, 1);
    high = vsetq_lane_u32(two_of_curve(curve, vgetq_lane_u16(k, 6)), high, 2);
    high = vsetq_lane_u32(two_of_curve(curve, vgetq_lane_u16(k, 7)), high, 3);
    return vuzpq_s16(vreinterpretq_s16_u32(low), vreinterpretq_s16_u32(high));
}

/* Where eight numbers are on the curve: at entry k, possibly beyond the last, and `rest` of the way
 * to the next, by shifts to the `left`. */
typedef struct places {
    uint16x8_t k;
    int16x8_t rest, left;
} places;

INLINE places place_on_curve(const way *how, int16x8_t z) {
    uint16x8_t a = vreinterpretq_u16_s16(vqabsq_s16(z)), far = vcgeq_u16(a, how->far);
    uint16x8_t r = vsubq_u16(a, vandq_u16(far, how->far)), whole;
    places at;
    at.left = vbslq_s16(far, how->coarse, how->fine);
    whole = vshlq_u16(r, at.left);
    at.k = vaddq_u16(whole, vandq_u16(far, vdupq_n_u16(128)));
    at.rest = vreinterpretq_s16_u16(vsubq_u16(r, vshlq_u16(whole, vnegq_s16(at.left))));
    return at;
}

#define LAST_ENTRY 191 /* that has a next one */

INLINE uint16x8_t entry_of(places at) {
    return vminq_u16(at.k, vdupq_n_u16(LAST_ENTRY));
}

/* silu, from the entries of the curve: max(z, 0) - twini_bump. */
INLINE activations bend_curve(const way *how, int16x8_t z, places at, int16x8x2_t ends) {
    int16x8_t step = vsubq_s16(ends.val[1], ends.val[0]), g;
    int32x4_t low = vmull_s16(vget_low_s16(step), vget_low_s16(at.rest));
    int32x4_t high = vmull_high_s16(step, at.rest);
    uint16x8_t there = vcleq_u16(at.k, vdupq_n_u16(LAST_ENTRY));
    low = vshlq_s32(low, vmovl_s16(vget_low_s16(at.left)));
    high = vshlq_s32(high, vmovl_high_s16(at.left));
    g = vaddq_s16(ends.val[0], vmovn_high_s32(vmovn_s32(low), high));
    g = vandq_s16(vrshlq_s16(g, how->round), vreinterpretq_s16_u16(there));
    return vsubq_s16(vmaxq_s16(z, none()), g);
}

/* SQDMULH doubles a product and keeps its upper half, which is mulw with a multiplier shifted by
 * 15; SRSHL rounds like rsh; SQXTN saturates, to -32768 what SQABS then makes 32767. */
INLINE int16x8_t squash(const way *how, sums sum, int32_t multiplier) {
    int32x4_t m = vdupq_n_s32(multiplier);
    int32x4_t low = vrshlq_s32(vqdmulhq_s32(sum.low, m), how->left);
    int32x4_t high = vrshlq_s32(vqdmulhq_s32(sum.high, m), how->left);
    return vqmovn_high_s32(vqmovn_s32(low), high);
}

INLINE activations activate(const way *how, sums sum, int32_t multiplier, int silu) {
    int16x8_t z = squash(how, sum, multiplier);
    if (silu) {
        places at = place_on_curve(how, z);
        return bend_curve(how, z, at, look_up(how->curve, entry_of(at)));
    }
    return vmaxq_s16(z, none());
}

/* Which of eight outputs are positive in any column. */
INLINE unsigned which(activations (*h)[TWIN_BLOCK / 8], unsigned all) {
    static const uint16_t bit[8] = {1, 2, 4, 8, 16, 32, 64, 128};
    int16x8_t most[8];
    uint32_t r;
    unsigned c;
    EIGHT_TIMES {
        most[r] = h[r][0];
        for (c = 1; c < all; c++)
            most[r] = vmaxq_s16(most[r], h[r][c]);
    }
    most[0] = vpmaxq_s16(vpmaxq_s16(most[0], most[1]), vpmaxq_s16(most[2], most[3]));
    most[1] = vpmaxq_s16(vpmaxq_s16(most[4], most[5]), vpmaxq_s16(most[6], most[7]));
    most[0] = vpmaxq_s16(most[0], most[1]);
    return vaddvq_u16(vandq_u16(vcgtq_s16(most[0], none()), vld1q_u16(bit)));
}

/* Eight rows of weights, squeezed, each followed by 16 zeros; `stride` apart. */
INLINE void squeeze_rows(const squeeze *plan, const twin_flash *row, uint8_t *to, size_t stride) {
    uint32_t i, r;
    for (i = 0; i < plan->sixteens; i++) {
        uint8x16_t from = vld1q_u8(plan->from[i]);
        uint8_t *at = to + plan->to[i];
        EIGHT_TIMES vst1q_u8(at + r * stride, vqtbl1q_u8(vld1q_u8(row[r] + 16 * i), from));
    }
    EIGHT_TIMES vst1q_u8(to + r * stride + plan->count, vdupq_n_u8(0));
}

#endif
