/* What the NEON kernels share: sums of eight columns, and the way from there to
 * activations. */

#ifndef TWIN_KERNELS_NEON_H
#define TWIN_KERNELS_NEON_H

#include "eights.h"

#if TWIN_HOST_ARM

NEON_TARGET

#include <arm_neon.h>

#if TWIN_HOST_ARM == 64
/* Products with a lane. */
#define ADD_TIMES_LANE      vmlal_laneq_s16
#define ADD_HIGH_TIMES_LANE vmlal_high_laneq_s16
#define TIMES_LANE          vqrdmulhq_laneq_s32
#else
/* What 32-bit Arm lacks: most of it works on the upper halves of vectors, or takes a lane of a
 * whole one. */

/* Half of a vector that has the lane, of 16 bits or 32. */
#define HALF16(v, lane) ((lane) < 4 ? vget_low_s16(v) : vget_high_s16(v))
#define HALF32(v, lane) ((lane) < 2 ? vget_low_s32(v) : vget_high_s32(v))

#define ADD_TIMES_LANE(sum, a, v, lane) vmlal_lane_s16(sum, a, HALF16(v, lane), (lane)&3)
#define ADD_HIGH_TIMES_LANE(sum, a, v, lane)                                                       \
    vmlal_lane_s16(sum, vget_high_s16(a), HALF16(v, lane), (lane)&3)
#define TIMES_LANE(a, v, lane) vqrdmulhq_lane_s32(a, HALF32(v, lane), (lane)&1)

#define vmlal_high_n_s16(sum, a, b) vmlal_n_s16(sum, vget_high_s16(a), b)
#define vmull_high_s16(a, b)        vmull_s16(vget_high_s16(a), vget_high_s16(b))
#define vmovl_high_s16(a)           vmovl_s16(vget_high_s16(a))
#define vmovn_high_s32(low, a)      vcombine_s16(low, vmovn_s32(a))
#define vqmovn_high_s32(low, a)     vcombine_s16(low, vqmovn_s32(a))
#define vpmaxq_s16                  neon_vpmaxq_s16
#define vpmaxq_s32                  neon_vpmaxq_s32
#define vmaxvq_s32                  neon_vmaxvq_s32
#define vaddvq_u16                  neon_vaddvq_u16
#define vqtbl1q_u8                  neon_vqtbl1q_u8

INLINE int16x8_t vpmaxq_s16(int16x8_t a, int16x8_t b) {
    return vcombine_s16(vpmax_s16(vget_low_s16(a), vget_high_s16(a)),
                        vpmax_s16(vget_low_s16(b), vget_high_s16(b)));
}

INLINE int32x4_t vpmaxq_s32(int32x4_t a, int32x4_t b) {
    return vcombine_s32(vpmax_s32(vget_low_s32(a), vget_high_s32(a)),
                        vpmax_s32(vget_low_s32(b), vget_high_s32(b)));
}

INLINE int32_t vmaxvq_s32(int32x4_t a) {
    int32x2_t most = vpmax_s32(vget_low_s32(a), vget_high_s32(a));
    return vget_lane_s32(vpmax_s32(most, most), 0);
}

INLINE uint16_t vaddvq_u16(uint16x8_t a) {
    uint64x2_t all = vpaddlq_u32(vpaddlq_u16(a));
    return (uint16_t)(vgetq_lane_u64(all, 0) + vgetq_lane_u64(all, 1));
}

INLINE uint8x16_t vqtbl1q_u8(uint8x16_t table, uint8x16_t from) {
    uint8x8x2_t both = {{vget_low_u8(table), vget_high_u8(table)}};
    return vcombine_u8(vtbl2_u8(both, vget_low_u8(from)), vtbl2_u8(both, vget_high_u8(from)));
}
#endif

typedef struct neon_sums {
    int32x4_t low, high;
} neon_sums;

typedef int16x8_t neon_activations;

INLINE neon_activations neon_none(void) {
    return vdupq_n_s16(0);
}

INLINE neon_sums neon_set(int32_t a) {
    neon_sums all = {vdupq_n_s32(a), vdupq_n_s32(a)};
    return all;
}

INLINE neon_sums neon_load(const int32_t *from) {
    neon_sums all = {vld1q_s32(from), vld1q_s32(from + 4)};
    return all;
}

INLINE void neon_keep(int32_t *to, neon_sums a) {
    vst1q_s32(to, a.low);
    vst1q_s32(to + 4, a.high);
}

INLINE neon_sums neon_add(neon_sums a, neon_sums b) {
    neon_sums all = {vaddq_s32(a.low, b.low), vaddq_s32(a.high, b.high)};
    return all;
}

INLINE neon_sums neon_subtract(neon_sums a, neon_sums b) {
    neon_sums all = {vsubq_s32(a.low, b.low), vsubq_s32(a.high, b.high)};
    return all;
}

INLINE neon_sums neon_fold_in(neon_sums a, neon_activations h, int16_t weight) {
    neon_sums all = {vmlal_n_s16(a.low, vget_low_s16(h), weight),
                     vmlal_high_n_s16(a.high, h, weight)};
    return all;
}

/* What the outputs of a layer share on the way from sums to activations. Negative
 * left shifts go to the right. */
typedef struct neon_way {
    twin_flash curve;
    int32x4_t left;
    int16x8_t fine, coarse, round;
    uint16x8_t far;
} neon_way;

INLINE neon_way neon_way_for(twin_flash curve, uint8_t shift, uint8_t fraction) {
    int b = fraction;
    neon_way how;
    how.curve = curve;
    how.left = vdupq_n_s32(-(int32_t)shift);
    how.fine = vdupq_n_s16((int16_t)(5 - b));
    how.coarse = vdupq_n_s16((int16_t)(3 - b));
    how.round = vdupq_n_s16((int16_t)(b - 15));
    how.far = vdupq_n_u16((uint16_t)(b < 13 ? 4 << b : UINT16_MAX)); /* nothing is beyond 4 << 13 */
    return how;
}

INLINE neon_way neon_way_of(const twini_layer *layer) {
    return neon_way_for(layer->curve, layer->shift, layer->fraction);
}

/* Entries k and k + 1 of the curve, the second in the upper half. */
INLINE uint32_t neon_two_of_curve(twin_flash curve, uint32_t k) {
    uint32_t two;
    __builtin_memcpy(&two, curve + 2 * k, sizeof two);
    return two;
}

INLINE int16x8x2_t neon_look_up(twin_flash curve, uint16x8_t k) {
    uint32x4_t low = vdupq_n_u32(0), high = low;
    low = vsetq_lane_u32(neon_two_of_curve(curve, vgetq_lane_u16(k, 0)), low, 0);
    low = vsetq_lane_u32(neon_two_of_curve(curve, vgetq_lane_u16(k, 1)), low, 1);
    low = vsetq_lane_u32(neon_two_of_curve(curve, vgetq_lane_u16(k, 2)), low, 2);
    low = vsetq_lane_u32(neon_two_of_curve(curve, vgetq_lane_u16(k, 3)), low, 3);
    high = vsetq_lane_u32(neon_two_of_curve(curve, vgetq_lane_u16(k, 4)), high, 0);
    high = vsetq_lane_u32(neon_two_of_curve(curve, vgetq_lane_u16(k, 5)), high, 1);
    high = vsetq_lane_u32(neon_two_of_curve(curve, vgetq_lane_u16(k, 6)), high, 2);
    high = vsetq_lane_u32(neon_two_of_curve(curve, vgetq_lane_u16(k, 7)), high, 3);
    return vuzpq_s16(vreinterpretq_s16_u32(low), vreinterpretq_s16_u32(high));
}

/* Where eight numbers are on the curve: at entry k, possibly beyond the last, and `rest` of the
 * way to the next, by shifts to the `left`. */
typedef struct neon_places {
    uint16x8_t k;
    int16x8_t rest, left;
} neon_places;

INLINE neon_places neon_place_on_curve(const neon_way *how, int16x8_t z) {
    uint16x8_t a = vreinterpretq_u16_s16(vqabsq_s16(z)), far = vcgeq_u16(a, how->far);
    uint16x8_t r = vsubq_u16(a, vandq_u16(far, how->far)), whole;
    neon_places at;
    at.left = vbslq_s16(far, how->coarse, how->fine);
    whole = vshlq_u16(r, at.left);
    at.k = vaddq_u16(whole, vandq_u16(far, vdupq_n_u16(128)));
    at.rest = vreinterpretq_s16_u16(vsubq_u16(r, vshlq_u16(whole, vnegq_s16(at.left))));
    return at;
}

#define LAST_ENTRY 191 /* that has a next one */

INLINE uint16x8_t neon_entry_of(neon_places at) {
    return vminq_u16(at.k, vdupq_n_u16(LAST_ENTRY));
}

/* silu, from the entries of the curve: max(z, 0) - twini_bump. */
INLINE neon_activations neon_bend_curve(const neon_way *how, int16x8_t z, neon_places at,
                                        int16x8x2_t ends) {
    int16x8_t step = vsubq_s16(ends.val[1], ends.val[0]), g;
    int32x4_t low = vmull_s16(vget_low_s16(step), vget_low_s16(at.rest));
    int32x4_t high = vmull_high_s16(step, at.rest);
    uint16x8_t there = vcleq_u16(at.k, vdupq_n_u16(LAST_ENTRY));
    low = vshlq_s32(low, vmovl_s16(vget_low_s16(at.left)));
    high = vshlq_s32(high, vmovl_high_s16(at.left));
    g = vaddq_s16(ends.val[0], vmovn_high_s32(vmovn_s32(low), high));
    g = vandq_s16(vrshlq_s16(g, how->round), vreinterpretq_s16_u16(there));
    return vsubq_s16(vmaxq_s16(z, neon_none()), g);
}

/* SQDMULH doubles a product and keeps its upper half, which is mulw with a multiplier shifted by
 * 15; SRSHL rounds like rsh; SQXTN saturates, to -32768 what SQABS then makes 32767. */
INLINE int16x8_t neon_squash(const neon_way *how, neon_sums sum, int32_t multiplier) {
    int32x4_t m = vdupq_n_s32(multiplier);
    int32x4_t low = vrshlq_s32(vqdmulhq_s32(sum.low, m), how->left);
    int32x4_t high = vrshlq_s32(vqdmulhq_s32(sum.high, m), how->left);
    return vqmovn_high_s32(vqmovn_s32(low), high);
}

INLINE neon_activations neon_activate(const neon_way *how, neon_sums sum, int32_t multiplier,
                                      int silu) {
    int16x8_t z = neon_squash(how, sum, multiplier);
    if (silu) {
        neon_places at = neon_place_on_curve(how, z);
        return neon_bend_curve(how, z, at, neon_look_up(how->curve, neon_entry_of(at)));
    }
    return vmaxq_s16(z, neon_none());
}

/* Which of eight outputs are positive in any column. */
INLINE unsigned neon_which(neon_activations (*h)[TWIN_BLOCK / 8], unsigned all) {
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
    return vaddvq_u16(vandq_u16(vcgtq_s16(most[0], neon_none()), vld1q_u16(bit)));
}

/* Eight rows of weights, squeezed, each followed by 16 zeros; `stride` apart. */
INLINE void neon_squeeze_rows(const squeeze *plan, const twin_flash *row, uint8_t *to,
                              size_t stride) {
    uint32_t i, r;
    for (i = 0; i < plan->sixteens; i++) {
        uint8x16_t from = vld1q_u8(plan->from[i]);
        uint8_t *at = to + plan->to[i];
        EIGHT_TIMES vst1q_u8(at + r * stride, vqtbl1q_u8(vld1q_u8(row[r] + 16 * i), from));
    }
    EIGHT_TIMES vst1q_u8(to + r * stride + plan->count, vdupq_n_u8(0));
}

NEON_TARGET_END

#endif

#endif
