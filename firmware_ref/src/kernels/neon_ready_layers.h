/* The layers of a prepared model, from what a kernel file defines after neon_ready.h:
 *
 *     leaves_out      whether a layer of this size, with relu, leaves out weights
 *     most_left       most bytes of remaining weights, for layers up to this wide
 *     put_four        activations of neurons k to k + 3 of the list: (in, k, activations)
 *     take_weights    those that meet the listed neurons
 *     sum_products    sums of all outputs into mine->sum
 *     fold_relu       totals over the last layer with relu, which squashes
 *     ENOUGH          twini_form.enough, or 0 */

#ifndef TWIN_KERNELS_NEON_READY_LAYERS_H
#define TWIN_KERNELS_NEON_READY_LAYERS_H

#include "neon_ready_silu.h"

/* Activations of the neurons in the list, as inputs of the next layer. */
INLINE void go_on(const ready_work *mine, const twini_ready_layer *layer, const int32_t *sum,
                  const int32_t *of_query, int first, int squashing_too) {
    const int32_t *multiplier = layer->multiplier;
    const uint16_t *number = mine->number;
    uint32_t count = mine->count, k, r;
    way how = ready_way(layer);
    for (k = 0; k < count; k += 4, number += 4) {
        activations h[4];
        sums four[4];
        FOUR_TIMES four[r] = sum_at(sum, of_query, number[r], first);
        if (squashing_too) {
            int32x4_t m = vdupq_n_s32(multiplier[number[0]]);
            m = vld1q_lane_s32(multiplier + number[1], m, 1);
            m = vld1q_lane_s32(multiplier + number[2], m, 2);
            m = squashing(layer, vld1q_lane_s32(multiplier + number[3], m, 3));
            h[0] = vmaxq_s16(SQUASHED(four[0].low, four[0].high, m, 0), none());
            h[1] = vmaxq_s16(SQUASHED(four[1].low, four[1].high, m, 1), none());
            h[2] = vmaxq_s16(SQUASHED(four[2].low, four[2].high, m, 2), none());
            h[3] = vmaxq_s16(SQUASHED(four[3].low, four[3].high, m, 3), none());
        } else {
            FOUR_TIMES h[r] = activate(&how, four[r], multiplier[number[r]], 0);
        }
        put_four(mine->in, k, h);
    }
}

TWIN_NOT_INLINE static void go_on_shortly(const ready_work *mine, const twini_ready_layer *layer,
                                          const int32_t *share, const int32_t *of_query) {
    go_on(mine, layer, share, of_query, 1, 1);
}

TWIN_NOT_INLINE static void go_on_further(const ready_work *mine, const twini_ready_layer *layer) {
    go_on(mine, layer, mine->sum, 0, 0, 0);
}

TWIN_NOT_INLINE static void go_on_first(const ready_work *mine, const twini_ready_layer *layer,
                                        const int32_t *share, const int32_t *of_query) {
    go_on(mine, layer, share, of_query, 1, 0);
}

INLINE int knows_all(const twini_ready_layer *next) {
    return !leaves_out(next->inputs, next->outputs);
}

INLINE void relu_order(const twini_ready_twin *twin, const int32_t *of_query,
                       const int32_t *of_anchors, const int32_t *most, ready_work *mine,
                       int32_t *totals, int32_t *hard) {
    const twini_ready_layer *layer = twin->layer, *last = layer + twin->layers - 1;
    if (layer == last) {
        fold_sums(layer, of_anchors, of_query, 1, totals, hard);
        return;
    }
    list_neurons(mine, layer->outputs, of_query, most, knows_all(layer + 1));
    if (squashes(layer))
        go_on_shortly(mine, layer, of_anchors, of_query);
    else
        go_on_first(mine, layer, of_anchors, of_query);
    while (++layer != last) {
        sum_products(mine, layer, take_weights(mine, layer, knows_all(layer)));
        list_neurons(mine, layer->outputs, 0, 0, knows_all(layer + 1));
        go_on_further(mine, layer);
    }
    if (squashes(layer)) {
        fold_relu(mine, layer, take_weights(mine, layer, knows_all(layer)), totals, hard);
    } else {
        sum_products(mine, layer, take_weights(mine, layer, knows_all(layer)));
        fold_sums(layer, mine->sum, 0, 0, totals, hard);
    }
}

static uint32_t ready_work_bytes(unsigned widest) {
    ready_work nobodys;
    return ready_lay_out(&nobodys, widest, most_left(widest), 0);
}

static void ready_eight(const twini_ready_twin *twin, const int32_t *of_query,
                        const int32_t *of_anchors, void *scratch, int32_t *totals) {
    uint32_t n = twini_padded(twin->layer[0].outputs), order;
    const int32_t *most = of_anchors + 2 * TWIN_EIGHT * (size_t)n;
    ready_work mine;
    ready_lay_out(&mine, twin->widest, 0, (uintptr_t)scratch);
    for (order = 0; order < 2; order++) {
        int32_t *hard = order && twin->scaled ? totals + TWIN_EIGHT : 0;
        if (twin->silu)
            silu_order(twin, of_query, of_anchors, &mine, totals, hard);
        else
            relu_order(twin, of_query, of_anchors, most, &mine, totals, hard);
        of_query += n;
        most += n;
        of_anchors += TWIN_EIGHT;
        totals += TWIN_EIGHT;
    }
}

static const twini_form ready_form = {
    ready_weight_bytes,
    ready_arrange,
    ENOUGH,
    MULTIPLIER_SHIFT,
    ready_work_bytes,
    ready_query,
    ready_anchors,
    ready_eight,
    TABLE_BYTES,
    fill_table,
    0,
    0,
};

#endif
