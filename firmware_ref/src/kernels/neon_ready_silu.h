/* The layers of a prepared model with silu, from what a kernel file defines after neon_silu.h:
 *
 *     put_silu      activations of four neurons, as inputs: (in, first, activations)
 *     END_INPUTS    after all of them: (in, count)
 *     STEP          outputs whose sums it makes at once: four, or eight
 *     step_sums     these, of all inputs: (sums, mine, layer, first output, lookups); it may look
 * up some of the entries that wait, four at a time */

#ifndef TWIN_KERNELS_NEON_READY_SILU_H
#define TWIN_KERNELS_NEON_READY_SILU_H

#include "neon_silu.h"

/* Where activations go: to the next layer, or into the totals of one output or of both, as the
 * second may not be needed. */
typedef enum course { ONWARD, TO_ONE, TO_BOTH } course;

INLINE void fold_four(sums *total, const int16_t *weights, const activations *h) {
    int16x8_t four = vcombine_s16(vld1_s16(weights), vdup_n_s16(0));
    FOLD(*total, h[0], four, 0);
    FOLD(*total, h[1], four, 1);
    FOLD(*total, h[2], four, 2);
    FOLD(*total, h[3], four, 3);
}

/* Activations of four outputs from `o` on. Weights of those beyond the last are zero. */
INLINE void send_four(const ready_work *mine, const twini_ready_layer *layer, uint32_t o,
                      const activations *h, course where, sums *total, sums *second) {
    if (where == ONWARD)
        put_silu(mine->next, o, h);
    else
        fold_four(total, layer->fold + o, h);
    if (where == TO_BOTH)
        fold_four(second, layer->hard + o, h);
}

INLINE void keep_totals(course where, sums total, sums second, int32_t *totals, int32_t *hard) {
    if (where != ONWARD)
        keep(totals, total);
    if (where == TO_BOTH && hard)
        keep(hard, second);
}

/* What the outputs of a layer share on the way from sums to z: a copy, as a compiler may assume
 * that writing to memory changes the layer. */
typedef struct silu_way {
    const int32_t *multiplier;
    const uint8_t *table;
    int32x4_t left;
    int squashes;
} silu_way;

INLINE silu_way silu_way_of(const twini_ready_layer *layer) {
    silu_way how = {layer->multiplier, (const uint8_t *)layer->table,
                    vdupq_n_s32(-(int32_t)layer->shift), squashes(layer)};
    return how;
}

/* z of four outputs from `o` on, and their offsets in the table. */
INLINE void squash_four(int16_t (*z)[8], uint16_t (*offsets)[8], const silu_way *how, uint32_t o,
                        const sums *sum) {
    int32x4_t m = vld1q_s32(how->multiplier + o);
    int16x8_t four[4];
    uint32_t r;
    if (how->squashes) {
        m = vshlq_s32(m, how->left);
        four[0] = SQUASHED(sum[0].low, sum[0].high, m, 0);
        four[1] = SQUASHED(sum[1].low, sum[1].high, m, 1);
        four[2] = SQUASHED(sum[2].low, sum[2].high, m, 2);
        four[3] = SQUASHED(sum[3].low, sum[3].high, m, 3);
    } else {
        way general;
        general.left = how->left;
        FOUR_TIMES four[r] = squash(&general, sum[r], how->multiplier[o + r]);
    }
    FOUR_TIMES {
        vst1q_s16(z[r], four[r]);
        vst1q_u16(offsets[r], offsets_of(four[r]));
    }
}

INLINE void step_shares(sums *sum, const int32_t *share, const int32_t *of_query, uint32_t o) {
    int32x4_t four = vld1q_s32(of_query + o);
    share += 2 * TWIN_EIGHT * (size_t)o;
    sum[0] = add(load(share), set(vgetq_lane_s32(four, 0)));
    sum[1] = add(load(share + 16), set(vgetq_lane_s32(four, 1)));
    sum[2] = add(load(share + 32), set(vgetq_lane_s32(four, 2)));
    sum[3] = add(load(share + 48), set(vgetq_lane_s32(four, 3)));
}

/* The first layer. Entries are loaded once z of the next four outputs is known, as what was just
 * stored takes a while to be read. */
INLINE void first_silu(const ready_work *mine, const twini_ready_layer *layer, const int32_t *share,
                       const int32_t *of_query, course where, int32_t *totals, int32_t *hard) {
    const silu_way how = silu_way_of(layer);
    const uint32_t outputs = layer->outputs;
    sums total = set(0), second = total;
    int16_t z[2][4][8];
    uint16_t offsets[2][4][8];
    uint32_t o, r, odd = 0;
    for (o = 0; o < outputs + 4; o += 4) {
        if (o < outputs) {
            sums sum[4];
            step_shares(sum, share, of_query, o);
            squash_four(z[odd], offsets[odd], &how, o, sum);
        }
        odd ^= 1;
        if (o) {
            activations h[4];
            FOUR_TIMES h[r] = bend(vld1q_s16(z[odd][r]), load_entries(how.table, offsets[odd][r]));
            send_four(mine, layer, o - 4, h, where, &total, &second);
        }
    }
    keep_totals(where, total, second, totals, hard);
}

/* A further layer. While it sums products for a step, it looks up the entries of the step before.
 */
INLINE void further_silu(const ready_work *mine, const twini_ready_layer *layer, course where,
                         int32_t *totals, int32_t *hard) {
    const silu_way how = silu_way_of(layer);
    const uint32_t outputs = layer->outputs;
    sums total = set(0), second = total;
    int16_t z[STEP][8];
    uint16_t offsets[STEP][8];
    uint32_t o, k, r;
    for (o = 0;; o += STEP) {
        uint16_t *start = (uint16_t *)(void *)offsets;
        lookups waiting = {how.table, start, start + (o ? 8 * STEP : 0)};
        sums sum[STEP];
        if (o < outputs)
            step_sums(sum, mine, layer, o, &waiting);
        look_up_all(&waiting);
        if (o)
            UNROLLED for (k = 0; k < STEP; k += 4) {
                activations h[4];
                FOUR_TIMES h[r] = bend(vld1q_s16(z[k + r]), vld1q_u16(offsets[k + r]));
                send_four(mine, layer, o - STEP + k, h, where, &total, &second);
            }
        if (o >= outputs)
            break;
        UNROLLED for (k = 0; k < STEP; k += 4)
            squash_four(z + k, offsets + k, &how, o + k, sum + k);
        /* All registers are needed for sums, so z has to stay in memory. */
        __asm__ volatile("" : : "r"(z) : "memory");
    }
    keep_totals(where, total, second, totals, hard);
}

/* Not inlined, so that registers suffice in each. */
TWIN_NOT_INLINE static void first_onward(const ready_work *mine, const twini_ready_layer *layer,
                                         const int32_t *share, const int32_t *of_query) {
    first_silu(mine, layer, share, of_query, ONWARD, 0, 0);
}

TWIN_NOT_INLINE static void first_to_both(const ready_work *mine, const twini_ready_layer *layer,
                                          const int32_t *share, const int32_t *of_query,
                                          int32_t *totals, int32_t *hard) {
    first_silu(mine, layer, share, of_query, TO_BOTH, totals, hard);
}

TWIN_NOT_INLINE static void onward(const ready_work *mine, const twini_ready_layer *layer) {
    further_silu(mine, layer, ONWARD, 0, 0);
}

TWIN_NOT_INLINE static void to_one(const ready_work *mine, const twini_ready_layer *layer,
                                   int32_t *totals) {
    further_silu(mine, layer, TO_ONE, totals, 0);
}

TWIN_NOT_INLINE static void to_both(const ready_work *mine, const twini_ready_layer *layer,
                                    int32_t *totals, int32_t *hard) {
    further_silu(mine, layer, TO_BOTH, totals, hard);
}

INLINE void silu_order(const twini_ready_twin *twin, const int32_t *of_query,
                       const int32_t *of_anchors, ready_work *mine, int32_t *totals,
                       int32_t *hard) {
    const twini_ready_layer *layer = twin->layer, *last = layer + twin->layers - 1;
    if (layer == last) {
        first_to_both(mine, layer, of_anchors, of_query, totals, hard);
        return;
    }
    first_onward(mine, layer, of_anchors, of_query);
    for (;;) {
        END_INPUTS(mine->next, layer->outputs);
        swap_rooms(mine);
        mine->count = layer->outputs;
        if (++layer == last)
            break;
        onward(mine, layer);
    }
    if (hard)
        to_both(mine, layer, totals, hard);
    else
        to_one(mine, layer, totals);
}

#endif
