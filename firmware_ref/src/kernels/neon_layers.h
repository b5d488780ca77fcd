/* The layers of a prepared model, from what a kernel file defines under NAME, besides what
 * neon_silu.h wants:
 *
 *     leaves_out             whether a layer of this size, with relu, leaves out weights
 *     most_left              most bytes of remaining weights, for layers up to this wide
 *     put_four               activations of neurons k to k + 3 of the list: (in, k,
 * activations) take_weights           those that meet the listed neurons sum_products
 * sums of all outputs into mine->sum fold_relu              totals over the last layer with
 * relu, which squashes weight_bytes, arrange, ENOUGH    as in twini_form; ENOUGH may be 0 */

#include "neon_silu.h"

/* Activations of the neurons in the list, as inputs of the next layer. */
INLINE void NAME(go_on)(const neon_prepared_work *mine, const twini_prepared_layer *layer,
                        const int32_t *sum, const int32_t *of_query, int first, int squashing_too) {
    const int32_t *multiplier = layer->multiplier;
    const uint16_t *number = mine->number;
    uint32_t count = mine->count, k, r;
    neon_way how = neon_prepared_way(layer);
    for (k = 0; k < count; k += 4, number += 4) {
        neon_activations h[4];
        neon_sums four[4];
        FOUR_TIMES four[r] = neon_sum_at(sum, of_query, number[r], first);
        if (squashing_too) {
            int32x4_t m = vdupq_n_s32(multiplier[number[0]]);
            m = vld1q_lane_s32(multiplier + number[1], m, 1);
            m = vld1q_lane_s32(multiplier + number[2], m, 2);
            m = neon_squashing(layer, vld1q_lane_s32(multiplier + number[3], m, 3));
            h[0] = vmaxq_s16(SQUASHED(four[0].low, four[0].high, m, 0), neon_none());
            h[1] = vmaxq_s16(SQUASHED(four[1].low, four[1].high, m, 1), neon_none());
            h[2] = vmaxq_s16(SQUASHED(four[2].low, four[2].high, m, 2), neon_none());
            h[3] = vmaxq_s16(SQUASHED(four[3].low, four[3].high, m, 3), neon_none());
        } else {
            FOUR_TIMES h[r] = neon_activate(&how, four[r], multiplier[number[r]], 0);
        }
        NAME(put_four)(mine->in, k, h);
    }
}

TWIN_NOT_INLINE static void NAME(go_on_shortly)(const neon_prepared_work *mine,
                                                const twini_prepared_layer *layer,
                                                const int32_t *share, const int32_t *of_query) {
    NAME(go_on)(mine, layer, share, of_query, 1, 1);
}

TWIN_NOT_INLINE static void NAME(go_on_further)(const neon_prepared_work *mine,
                                                const twini_prepared_layer *layer) {
    NAME(go_on)(mine, layer, mine->sum, 0, 0, 0);
}

TWIN_NOT_INLINE static void NAME(go_on_first)(const neon_prepared_work *mine,
                                              const twini_prepared_layer *layer,
                                              const int32_t *share, const int32_t *of_query) {
    NAME(go_on)(mine, layer, share, of_query, 1, 0);
}

INLINE int NAME(knows_all)(const twini_prepared_layer *next) {
    return !NAME(leaves_out)(next->inputs, next->outputs);
}

INLINE void NAME(relu_order)(const twini_prepared_twin *twin, const int32_t *of_query,
                             const int32_t *of_anchors, const int32_t *most,
                             neon_prepared_work *mine, int32_t *totals, int32_t *hard) {
    const twini_prepared_layer *layer = twin->layer, *last = layer + twin->layers - 1;
    if (layer == last) {
        neon_fold_all_sums(twin, layer, of_anchors, of_query, 1, totals, hard);
        return;
    }
    neon_list_neurons(mine, layer->outputs, of_query, most, NAME(knows_all)(layer + 1));
    if (neon_squashes(layer))
        NAME(go_on_shortly)(mine, layer, of_anchors, of_query);
    else
        NAME(go_on_first)(mine, layer, of_anchors, of_query);
    while (++layer != last) {
        NAME(sum_products)(mine, layer, NAME(take_weights)(mine, layer, NAME(knows_all)(layer)));
        neon_list_neurons(mine, layer->outputs, 0, 0, NAME(knows_all)(layer + 1));
        NAME(go_on_further)(mine, layer);
    }
    if (neon_squashes(layer) && twini_prepared_targets(twin) == 1) {
        NAME(fold_relu)
        (mine, layer, NAME(take_weights)(mine, layer, NAME(knows_all)(layer)), totals, hard);
    } else {
        NAME(sum_products)(mine, layer, NAME(take_weights)(mine, layer, NAME(knows_all)(layer)));
        neon_fold_all_sums(twin, layer, mine->sum, 0, 0, totals, hard);
    }
}

static uint32_t NAME(work_bytes)(unsigned widest) {
    neon_prepared_work nobodys;
    return neon_lay_out(&nobodys, widest, NAME(most_left)(widest), 0);
}

static void NAME(predict_eight)(const twini_prepared_twin *twin, const int32_t *of_query,
                                const int32_t *of_anchors, void *scratch, int32_t *totals) {
    uint32_t n = twini_padded(twin->layer[0].outputs), order;
    const int32_t *most = of_anchors + 2 * TWIN_EIGHT * (size_t)n;
    neon_prepared_work mine;
    neon_lay_out(&mine, twin->widest, 0, (uintptr_t)scratch);
    for (order = 0; order < 2; order++) {
        int32_t *hard = order && twin->scaled ? totals + TWIN_EIGHT : 0;
        if (twin->silu)
            NAME(silu_order)(twin, of_query, of_anchors, &mine, totals, hard);
        else
            NAME(relu_order)(twin, of_query, of_anchors, most, &mine, totals, hard);
        of_query += n;
        most += n;
        of_anchors += TWIN_EIGHT;
        totals += TWIN_EIGHT;
    }
}

static const twini_form NAME(form) = {
    NAME(weight_bytes),
    NAME(arrange),
    ENOUGH,
    MULTIPLIER_SHIFT,
    NAME(work_bytes),
    neon_share_of_query,
    neon_shares_of_anchors,
    NAME(predict_eight),
    TABLE_BYTES,
    neon_fill_table,
    0,
    0,
};
