/* The layers of a prepared model with silu, from what a kernel file defines after neon_ready.h:
 *
 *     put_four      activations of four neurons, as inputs: (in, first, activations)
 *     END_INPUTS    after all of them: (in, count)
 *     STEP          outputs whose sums it makes at once: four, or eight
 *     step_sums     these, of all inputs: (sums, mine, layer, first output) */

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
        put_four(mine->next, o, h);
    else
        fold_four(total, layer->fold + o, h);
    if (where == TO_BOTH)
        fold_four(second, layer->hard + o, h);
}

INLINE void step_shares(sums *sum, const int32_t *share, const int32_t *of_query, uint32_t o) {
    int32x4_t four = vld1q_s32(of_query + o);
    share += 2 * TWIN_EIGHT * (size_t)o;
    sum[0] = add(load(share), set(vgetq_lane_s32(four, 0)));
    sum[1] = add(load(share + 16), set(vgetq_lane_s32(four, 1)));
    sum[2] = add(load(share + 32), set(vgetq_lane_s32(four, 2)));
    sum[3] = add(load(share + 48), set(vgetq_lane_s32(four, 3)));
}

INLINE void squash_four(int16x8_t *z, uint16_t (*number)[8], const lines *all, int32x4_t m,
                        const sums *sum) {
    uint32_t r;
    z[0] = SQUASHED(sum[0].low, sum[0].high, m, 0);
    z[1] = SQUASHED(sum[1].low, sum[1].high, m, 1);
    z[2] = SQUASHED(sum[2].low, sum[2].high, m, 2);
    z[3] = SQUASHED(sum[3].low, sum[3].high, m, 3);
    FOUR_TIMES number_lines(number[r], all, z[r]);
}

/* A layer with lines; the first, if there are shares. */
INLINE void layer_by_lines(const ready_work *mine, const twini_ready_layer *layer,
                           const int32_t *share, const int32_t *of_query, int first, course where,
                           int32_t *totals, int32_t *hard) {
    const uint32_t outputs = layer->outputs;
    const int32_t *multiplier = layer->multiplier;
    lines all = lines_of(layer);
    sums total = set(0), second = total;
    int16x8_t z[STEP];
    uint16_t numbers[STEP][8];
    uint32_t step = STEP, o, k, r;
    if (first)
        step = 4;
    for (r = 0; r < step; r++)
        z[r] = none();
    for (o = 0; o < outputs + step; o += step) {
        sums sum[STEP];
        if (o < outputs && first)
            step_shares(sum, share, of_query, o);
        else if (o < outputs)
            step_sums(sum, mine, layer, o);
        for (k = 0; k < step && o; k += 4) {
            activations h[4];
            FOUR_TIMES h[r] = bend(&all, z[k + r], numbers[k + r]);
            send_four(mine, layer, o - step + k, h, where, &total, &second);
        }
        for (k = 0; k < step && o < outputs; k += 4)
            squash_four(z + k, numbers + k, &all, squashing(layer, vld1q_s32(multiplier + o + k)),
                        sum + k);
    }
    if (where != ONWARD)
        keep(totals, total);
    if (where == TO_BOTH && hard)
        keep(hard, second);
}

TWIN_NOT_INLINE static void first_onward(const ready_work *mine, const twini_ready_layer *layer,
                                         const int32_t *share, const int32_t *of_query) {
    layer_by_lines(mine, layer, share, of_query, 1, ONWARD, 0, 0);
}

TWIN_NOT_INLINE static void first_to_both(const ready_work *mine, const twini_ready_layer *layer,
                                          const int32_t *share, const int32_t *of_query,
                                          int32_t *totals, int32_t *hard) {
    layer_by_lines(mine, layer, share, of_query, 1, TO_BOTH, totals, hard);
}

TWIN_NOT_INLINE static void onward(const ready_work *mine, const twini_ready_layer *layer) {
    layer_by_lines(mine, layer, 0, 0, 0, ONWARD, 0, 0);
}

TWIN_NOT_INLINE static void to_one(const ready_work *mine, const twini_ready_layer *layer,
                                   int32_t *totals) {
    layer_by_lines(mine, layer, 0, 0, 0, TO_ONE, totals, 0);
}

TWIN_NOT_INLINE static void to_both(const ready_work *mine, const twini_ready_layer *layer,
                                    int32_t *totals, int32_t *hard) {
    layer_by_lines(mine, layer, 0, 0, 0, TO_BOTH, totals, hard);
}

/* A layer without lines. */
TWIN_NOT_INLINE static void layer_by_curve(const ready_work *mine, const twini_ready_layer *layer,
                                           const int32_t *share, const int32_t *of_query,
                                           course where, int32_t *totals, int32_t *hard) {
    way how = ready_way(layer);
    sums total = set(0), second = total;
    sums sum[STEP];
    uint32_t o, r;
    for (o = 0; o < layer->outputs; o += 4) {
        const sums *four = share ? sum : sum + o % STEP;
        activations h[4];
        if (share)
            step_shares(sum, share, of_query, o);
        else if (o % STEP == 0)
            step_sums(sum, mine, layer, o);
        FOUR_TIMES h[r] = activate(&how, four[r], layer->multiplier[o + r], 1);
        send_four(mine, layer, o, h, where, &total, &second);
    }
    if (where != ONWARD)
        keep(totals, total);
    if (where == TO_BOTH && hard)
        keep(hard, second);
}

INLINE void silu_order(const twini_ready_twin *twin, const int32_t *of_query,
                       const int32_t *of_anchors, ready_work *mine, int32_t *totals,
                       int32_t *hard) {
    const twini_ready_layer *layer = twin->layer, *last = layer + twin->layers - 1;
    const int32_t *share = of_anchors;
    for (;; layer++, share = 0) {
        if (!has_lines(layer))
            layer_by_curve(mine, layer, share, of_query, layer == last ? TO_BOTH : ONWARD, totals,
                           hard);
        else if (layer != last && share)
            first_onward(mine, layer, share, of_query);
        else if (layer != last)
            onward(mine, layer);
        else if (share)
            first_to_both(mine, layer, share, of_query, totals, hard);
        else if (hard)
            to_both(mine, layer, totals, hard);
        else
            to_one(mine, layer, totals);
        if (layer == last)
            return;
        END_INPUTS(mine->next, layer->outputs);
        swap_rooms(mine);
        mine->count = layer->outputs;
    }
}

#endif
