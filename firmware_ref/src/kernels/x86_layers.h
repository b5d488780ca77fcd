/* The layers of a prepared model (x86_ready.h), from what a header defines first:
 *
 *     ready_weight_bytes, ready_arrange, ready_work_bytes    as in twini_form
 *     ready_block_bytes    of activations, before the sums
 *     put_four             activations of four outputs, in vector v
 *     sum_products         sums of a further layer, from these
 *     four_of_sums         activations of four outputs, in vector v, from these
 *     fill_table           as in twini_form: TWIN_STEPS numbers, for any fraction
 *     subtract_bumps       for silu
 *     ENTER, LEAVE         as in twini_form, or 0 */

#ifndef TWIN_KERNELS_X86_LAYERS_H
#define TWIN_KERNELS_X86_LAYERS_H

#include "x86_ready.h"

/* Layers are copies here, as a compiler may assume that writes change any other. */
INLINE void ready_layers(const twini_ready_twin *twin, const int32_t *of_query,
                         const int32_t *of_anchors, uint8_t *in, int32_t *totals, int silu,
                         int scaled) {
    int32_t *sum = (int32_t *)(void *)(in + ready_block_bytes(twin->widest));
    twini_ready_layer layer = twin->layer[0];
    const ready_shares shares = {of_anchors, {of_query, of_query + twini_padded(layer.outputs)}};
    ready_way how = ready_way_of(&layer, silu);
    unsigned depth, last = twin->layers - 1u;
    ready_totals total;
    uint32_t o, v;
    begin_totals(&total);
    for (o = 0; o < layer.outputs; o += 4)
        EACH_VECTOR {
            four h = first_four(&layer, &how, &shares, o, v, silu);
            if (last)
                put_four(in, o, v, h);
            else
                add_four(&total, &layer, h, o, v, scaled);
        }
    for (depth = 1; depth <= last; depth++) {
        sum_products(&twin->layer[depth], in, sum);
        layer = twin->layer[depth];
        how = ready_way_of(&layer, silu);
        for (o = 0; o < layer.outputs; o += 4)
            EACH_VECTOR {
                four h = four_of_sums(&layer, &how, sum, o, v, silu);
                if (depth < last)
                    put_four(in, o, v, h);
                else
                    add_four(&total, &layer, h, o, v, scaled);
            }
    }
    end_totals(&total, totals, scaled);
}

/* In each of these `silu` and `scaled` are known at compile time. */
static void ready_eight(const twini_ready_twin *twin, const int32_t *of_query,
                        const int32_t *of_anchors, void *room, int32_t *totals) {
    uint8_t *in = (uint8_t *)room;
    if (twin->silu && twin->scaled)
        ready_layers(twin, of_query, of_anchors, in, totals, 1, 1);
    else if (twin->silu)
        ready_layers(twin, of_query, of_anchors, in, totals, 1, 0);
    else if (twin->scaled)
        ready_layers(twin, of_query, of_anchors, in, totals, 0, 1);
    else
        ready_layers(twin, of_query, of_anchors, in, totals, 0, 0);
}

static const twini_form ready_form = {
    ready_weight_bytes,
    ready_arrange,
    0,
    MULTIPLIER_SHIFT,
    ready_work_bytes,
    ready_query,
    ready_anchors,
    ready_eight,
    sizeof(int32_t) * TWIN_STEPS,
    fill_table,
    ENTER,
    LEAVE,
};

#endif
