/* What the kernels for 64-bit Arm have in common for prepared models. Each order of eight anchors
 * is evaluated by itself.
 *
 * With relu many neurons are zero for all eight anchors: in the first layer the largest of their
 * shares tells so. They are not computed, and the weights that they meet are left out. */

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

typedef struct ready_work {
    uint16_t *number;  /* of neurons of a layer, in order; then four that stand for nobody */
    uint32_t count;    /* of those in front */
    int32_t *sum;      /* of a layer: [outputs][8] */
    uint8_t *in;       /* activations of the neurons: 16 bytes for each, four by four */
    uint8_t *squeezed; /* weights of a layer that are left */
} ready_work;

/* Lay out what a model with layers up to this wide works in, with so many weights that are left at
 * most; returns its size. */
static uint32_t ready_lay_out(ready_work *mine, unsigned widest, uint32_t left, uintptr_t at) {
    uintptr_t start = at, width = twini_padded(widest);
    mine->in = (uint8_t *)at;
    mine->sum = (int32_t *)(at += 16 * width);
    mine->number = (uint16_t *)(at += 32 * width);
    mine->squeezed = (uint8_t *)(at += 2 * width);
    return (uint32_t)(at - start) + left;
}

INLINE way ready_way(const twini_ready_layer *layer) {
    return way_for(layer->curve, layer->shift, layer->fraction);
}

/* List those of the eight outputs from `first` on whose 32 bits are set. */
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

/* Outputs of the first layer that are more than zero for any anchor. */
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

/* The same of a further layer, by its sums. */
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

/* List the neurons of a layer that the next one is to know of: `all`, or those that are not zero.
 * In the first layer the shares are given. */
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

/* The sums of an output: its share of anchors and query, in the first layer; or as they are. */
INLINE sums sum_at(const int32_t *sum, const int32_t *of_query, uint32_t o, int first) {
    if (first)
        return add(load(sum + 2 * TWIN_EIGHT * (size_t)o), set(of_query[o]));
    return load(sum + TWIN_EIGHT * (size_t)o);
}

/* silu of all outputs of a layer: activations take the place of their sums in mine->sum. By itself,
 * as it needs all registers. */
TWIN_NOT_INLINE static void apply_silu(const ready_work *mine, const twini_ready_layer *layer,
                                       const int32_t *sum, const int32_t *of_query, int first) {
    const int32_t *multiplier = layer->multiplier;
    int16_t *to = (int16_t *)(void *)mine->sum;
    uint32_t outputs = layer->outputs, o, r;
    way how = ready_way(layer);
    for (o = 0; o < outputs; o += 8, to += 16 * TWIN_EIGHT) {
        activations h[8];
        EIGHT_TIMES h[r] =
            activate(&how, sum_at(sum, of_query, o + r, first), multiplier[o + r], 1);
        EIGHT_TIMES vst1q_s16(to + 2 * TWIN_EIGHT * r, h[r]);
    }
}

/* Activations of an output, which apply_silu has left where sums were. */
INLINE activations activation_at(const ready_work *mine, const twini_ready_layer *layer,
                                 const way *how, const int32_t *sum, const int32_t *of_query,
                                 uint32_t o, int first, int silu) {
    if (silu)
        return vld1q_s16((const int16_t *)(const void *)(mine->sum + TWIN_EIGHT * (size_t)o));
    return activate(how, sum_at(sum, of_query, o, first), layer->multiplier[o], 0);
}

/* Totals over the last layer. */
INLINE void finish(const ready_work *mine, const twini_ready_layer *layer, const int32_t *sum,
                   const int32_t *of_query, int first, int32_t *totals, int32_t *hard, int silu) {
    way how = ready_way(layer);
    sums total = set(0), second = total;
    uint32_t o;
    if (silu)
        apply_silu(mine, layer, sum, of_query, first);
    for (o = 0; o < layer->outputs; o++) {
        activations h = activation_at(mine, layer, &how, sum, of_query, o, first, silu);
        total = fold(total, h, layer->fold[o]);
        second = fold(second, h, layer->hard[o]);
    }
    keep(totals, total);
    if (hard)
        keep(hard, second);
}

#endif
