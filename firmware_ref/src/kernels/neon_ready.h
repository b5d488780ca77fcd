/* What the NEON kernels share for prepared models. Each order of eight anchors is evaluated by
 * itself.
 *
 * With relu many neurons are zero for all eight anchors: in the first layer the largest of their
 * shares shows it. They are not computed, and their weights are left out. */

#ifndef TWIN_KERNELS_NEON_READY_H
#define TWIN_KERNELS_NEON_READY_H

#include "../twin_prepared.h"
#include "neon.h"

typedef sums eight_sums;

INLINE eight_sums no_eight(void) {
    return set(0);
}

INLINE eight_sums load_eight(const int32_t *from) {
    return load(from);
}

INLINE void keep_eight(int32_t *to, eight_sums a) {
    keep(to, a);
}

INLINE eight_sums add_times(eight_sums a, const int16_t *eight, int16_t factor) {
    return fold(a, vld1q_s16(eight), factor);
}

INLINE int32_t largest(eight_sums a) {
    return vmaxvq_s32(vmaxq_s32(a.low, a.high));
}

#include "ready.h"

#if defined(__clang__)
#define FOUR_TIMES _Pragma("unroll") for (r = 0; r < 4; r++)
#else
#define FOUR_TIMES _Pragma("GCC unroll 4") for (r = 0; r < 4; r++)
#endif

/* The way from sums to z is shorter where SQRDMULH shifts and rounds, too. It always rounds, as rsh
 * does if there is something to shift. */
INLINE int squashes(const twini_ready_layer *layer) {
    return layer->shift >= 1 && layer->shift <= 15;
}

/* Four multipliers for that. */
INLINE int32x4_t squashing(const twini_ready_layer *layer, int32x4_t multipliers) {
    return vshlq_s32(multipliers, vdupq_n_s32(-layer->shift));
}

#define SQUASHED(low, high, four, r)                                                               \
    vqmovn_high_s32(vqmovn_s32(TIMES_LANE(low, four, r)), TIMES_LANE(high, four, r))

/* Activations times number r of eight weights. */
#define FOLD(total, h, weights, r)                                                                 \
    (total).low = ADD_TIMES_LANE((total).low, vget_low_s16(h), weights, r);                        \
    (total).high = ADD_HIGH_TIMES_LANE((total).high, h, weights, r)

typedef struct ready_work {
    uint16_t *number;  /* neurons of a layer, in order; then four that stand for none */
    uint32_t count;    /* how many neurons */
    int32_t *sum;      /* of a layer: [outputs][8] */
    uint8_t *next;     /* for silu: room for those of the next layer */
    uint8_t *in;       /* activations of the neurons: 16 bytes each, in fours */
    uint8_t *squeezed; /* remaining weights of a layer */
} ready_work;

/* Lay out the working memory of a model with layers up to `widest` wide, and at most `left`
 * bytes of remaining weights, 0 with silu; returns its size. */
static uint32_t ready_lay_out(ready_work *mine, unsigned widest, uint32_t left, uintptr_t at) {
    uintptr_t start = at, width = twini_padded(widest);
    mine->in = (uint8_t *)at;
    mine->sum = (int32_t *)(at += 16 * width);
    mine->number = (uint16_t *)(at += 32 * width);
    mine->squeezed = (uint8_t *)(at += 2 * width);
    mine->next = mine->squeezed;
    if (left < 16 * width)
        left = (uint32_t)(16 * width);
    return (uint32_t)(at - start) + left;
}

/* The next layer reads what was written. */
INLINE void swap_rooms(ready_work *mine) {
    uint8_t *in = mine->in;
    mine->in = mine->next;
    mine->next = in;
}

INLINE way ready_way(const twini_ready_layer *layer) {
    return way_for(layer->curve, layer->shift, layer->fraction);
}

/* List those of the eight outputs from `first` on whose mask is set. */
INLINE void list_some(ready_work *mine, uint32_t first, uint32x4_t low, uint32x4_t high) {
    uint8x8_t is = vmovn_u16(vcombine_u16(vmovn_u32(low), vmovn_u32(high)));
    uint64_t bytes = vget_lane_u64(vreinterpret_u64_u8(is), 0);
    uint32_t count = mine->count, r;
    EIGHT_TIMES {
        mine->number[count] = (uint16_t)(first + r);
        count += (uint32_t)(bytes >> 8 * r) & 1;
    }
    mine->count = count;
}

/* Outputs of the first layer that are positive for any anchor. */
INLINE void list_first(ready_work *mine, const int32_t *of_query, const int32_t *most,
                       uint32_t outputs) {
    int32x4_t zero = vdupq_n_s32(0);
    uint32_t o;
    for (o = 0; o < outputs; o += 8) {
        int32x4_t low = vaddq_s32(vld1q_s32(of_query + o), vld1q_s32(most + o));
        int32x4_t high = vaddq_s32(vld1q_s32(of_query + o + 4), vld1q_s32(most + o + 4));
        list_some(mine, o, vcgtq_s32(low, zero), vcgtq_s32(high, zero));
    }
}

/* The same for a further layer, by its sums. */
INLINE void list_further(ready_work *mine, uint32_t outputs) {
    int32x4_t zero = vdupq_n_s32(0);
    uint32_t o, r;
    for (o = 0; o < outputs; o += 8) {
        const int32_t *sum = mine->sum + 8 * (size_t)o;
        int32x4_t most[8];
        EIGHT_TIMES most[r] = vmaxq_s32(vld1q_s32(sum + 8 * r), vld1q_s32(sum + 8 * r + 4));
        most[0] = vpmaxq_s32(vpmaxq_s32(most[0], most[1]), vpmaxq_s32(most[2], most[3]));
        most[1] = vpmaxq_s32(vpmaxq_s32(most[4], most[5]), vpmaxq_s32(most[6], most[7]));
        list_some(mine, o, vcgtq_s32(most[0], zero), vcgtq_s32(most[1], zero));
    }
}

/* List the neurons of a layer that the next one needs: `all`, or those that are not zero. In the
 * first layer the shares are given. */
INLINE void list_neurons(ready_work *mine, uint32_t outputs, const int32_t *of_query,
                         const int32_t *most, int all) {
    uint32_t r;
    mine->count = 0;
    if (all)
        while (mine->count < outputs) {
            mine->number[mine->count] = (uint16_t)mine->count;
            mine->count++;
        }
    else if (most)
        list_first(mine, of_query, most, outputs);
    else
        list_further(mine, outputs);
    FOUR_TIMES mine->number[mine->count + r] = (uint16_t)twini_align(outputs, 8);
}

/* The sums of an output: its shares of anchors and query in the first layer; or as they are. */
INLINE sums sum_at(const int32_t *sum, const int32_t *of_query, uint32_t o, int first) {
    if (first)
        return add(load(sum + 2 * TWIN_EIGHT * (size_t)o), set(of_query[o]));
    return load(sum + TWIN_EIGHT * (size_t)o);
}

/* Totals over the last layer with relu, from sums. */
INLINE void fold_sums(const twini_ready_layer *layer, const int32_t *sum, const int32_t *of_query,
                      int first, int32_t *totals, int32_t *hard) {
    way how = ready_way(layer);
    sums total = set(0), second = total;
    uint32_t o;
    for (o = 0; o < layer->outputs; o++) {
        activations h = activate(&how, sum_at(sum, of_query, o, first), layer->multiplier[o], 0);
        total = fold(total, h, layer->fold[o]);
        second = fold(second, h, layer->hard[o]);
    }
    keep(totals, total);
    if (hard)
        keep(hard, second);
}

#endif
