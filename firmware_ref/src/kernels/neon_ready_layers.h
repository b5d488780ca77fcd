/* The layers of a prepared model, of what a kernel file defines behind neon_ready.h:
 *
 *     leaves_out      whether a layer of so many inputs and outputs, with relu, leaves out weights
 *     most_left       bytes of the weights that are left, at most, of layers up to this wide
 *     put_four        activations of neurons k to k + 3 of the list into mine->in
 *     take_weights    those that meet the listed neurons
 *     sum_products    sums of all outputs into mine->sum
 *     fold_relu       totals over the last layer with relu
 *     ENOUGH          twini_form.enough, or 0 */

#ifndef TWIN_KERNELS_NEON_READY_LAYERS_H
#define TWIN_KERNELS_NEON_READY_LAYERS_H

#include "neon_ready.h"

/* Activations of the neurons in the list, to be the inputs of another layer. */
INLINE void go_on(const ready_work *mine, const twini_ready_layer *layer, const int32_t *sum,
                  const int32_t *of_query, int first, int silu) {
    uint32_t count = mine->count, k, r;
    way how = ready_way(layer);
    if (silu)
        apply_silu(mine, layer, sum, of_query, first);
    for (k = 0; k < count; k += 4) {
        activations h[4];
        FOUR_TIMES {
            uint32_t o = mine->number[k + r];
            h[r] = activation_at(mine, layer, &how, sum, of_query, o, first, silu);
            if (silu && k + r >= count)
                h[r] = none();
        }
        put_four(mine->in + 16 * (size_t)k, h);
    }
}

INLINE int knows_all(const twini_ready_layer *next, int silu) {
    return silu || !leaves_out(next->inputs, next->outputs);
}

INLINE void one_order_ready(const twini_ready_twin *twin, const int32_t *of_query,
                            const int32_t *of_anchors, const int32_t *most, ready_work *mine,
                            int32_t *totals, int32_t *hard, int silu) {
    const twini_ready_layer *layer = twin->layer, *last = layer + twin->layers - 1;
    if (layer == last) {
        finish(mine, layer, of_anchors, of_query, 1, totals, hard, silu);
        return;
    }
    list_neurons(mine, layer->outputs, of_query, most, knows_all(layer + 1, silu));
    go_on(mine, layer, of_anchors, of_query, 1, silu);
    while (++layer != last) {
        sum_products(mine, layer, take_weights(mine, layer, knows_all(layer, silu)));
        list_neurons(mine, layer->outputs, 0, 0, knows_all(layer + 1, silu));
        go_on(mine, layer, mine->sum, 0, 0, silu);
    }
    if (silu) {
        sum_products(mine, layer, take_weights(mine, layer, 1));
        finish(mine, layer, mine->sum, 0, 0, totals, hard, 1);
    } else {
        fold_relu(mine, layer, take_weights(mine, layer, knows_all(layer, 0)), totals, hard);
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
            one_order_ready(twin, of_query, of_anchors, most, &mine, totals, hard, 1);
        else
            one_order_ready(twin, of_query, of_anchors, most, &mine, totals, hard, 0);
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
    0,
    0,
    0,
    0,
};

#endif
