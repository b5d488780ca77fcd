/* The layers of a block in eights, from what a kernel file defines (eights.h), and the kernel:
 *
 *     KERNEL, ALIGN    its name, and what its blocks are aligned to
 *     QUERY            its function for the query's share in the first layer
 *     HAS_LAST         a header, if it has its own last_layer with relu, and working memory for it
 */

#ifndef TWIN_KERNELS_LAYERS_H
#define TWIN_KERNELS_LAYERS_H

#include "eights.h"

/* Working memory of a layer. */
typedef struct work {
    slot waiting[SLOTS + 1];
    rows_room room;
    squeeze plan;
} work;

/* Whether the network has a second output; and the weight of neuron `o` for either. */
INLINE unsigned is_scaled(const twini_layer *layer) {
#if TWIN_INTERVALS
    return layer->scaled;
#else
    (void)layer;
    return 0;
#endif
}

INLINE int16_t fold_weight(const twini_layer *layer, uint32_t o, unsigned second) {
    return (int16_t)twini_i16(layer->fold + (is_scaled(layer) ? 4 * o + 4 + 2 * second : 2 * o));
}

INLINE void number_from(octet *of, const twini_layer *layer, uint32_t o) {
    uint32_t last = layer->outputs - 1u, r;
    EIGHT_TIMES of->numbers[r] = o + r < last ? o + r : last;
}

/* Fill in the rest of an octet for its first `count` numbers; `last` in the last layer. */
INLINE void describe(octet *of, const twini_layer *layer, uint32_t count, int last) {
    uint32_t r;
    EIGHT_TIMES {
        int32_t multiplier = twini_i16(layer->multiplier + 2 * of->numbers[r]);
        of->multiplier[r] = multiplier * (1 << MULTIPLIER_SHIFT);
        of->fold[r] = of->hard[r] = 0;
        if (last && r < count) {
            of->fold[r] = fold_weight(layer, of->numbers[r], 0);
            if (is_scaled(layer))
                of->hard[r] = fold_weight(layer, of->numbers[r], 1);
        }
    }
}

/* Add the totals of one order of an eight: `first` of the output, `second` of the second. */
INLINE void add_totals(const twini_layer *layer, int32_t *totals, unsigned order, sums first,
                       sums second) {
    if (!is_scaled(layer) && order) {
        keep(totals, subtract(load(totals), first));
    } else if (order) {
        keep(totals + TWIN_BLOCK, add(load(totals + TWIN_BLOCK), first));
        keep(totals + 2 * TWIN_BLOCK, add(load(totals + 2 * TWIN_BLOCK), second));
    } else {
        keep(totals, add(load(totals), first));
    }
}

/* Fold an octet into the totals of an eight. */
INLINE void fold_octet(const twini_layer *layer, const octet *of, const way *how, const sums *sum,
                       int32_t *totals, unsigned order, int silu) {
    sums first = set(0), second = first;
    uint32_t r;
    EIGHT_TIMES {
        activations h = activate(how, sum[r], of->multiplier[r], silu);
        first = fold(first, h, of->fold[r]);
        second = fold(second, h, of->hard[r]); /* of zeros without a second output */
    }
    add_totals(layer, totals, order, first, second);
}

/* One order of a layer. `in` is the first eight of its inputs, of which `n` are present; `without`
 * says how to leave out the weights of the others. Returns how many outputs are present. */
INLINE uint16_t one_order(const twini_layer *layer, twin_flash weights, const squeeze *without,
                          const int32_t *partial, const uint8_t *in, uint32_t n, unsigned all,
                          unsigned order, void *out, int32_t *totals, int silu) {
    size_t size = size_of_eight(layer->inputs);
    work *mine = (work *)layer->work;
    way how = way_of(layer);
    outlet to;
    uint32_t o, r;
    unsigned c;
    begin_order(&to, mine->waiting, out, order, all, layer->outputs);
    for (o = 0; o < layer->outputs; o += 8) {
        int32_t start[8];
        octet of;
        rows eight;
        number_from(&of, layer, o);
        describe(&of, layer, layer->outputs - o, !out);
        take_rows(&eight, &mine->room, layer, weights, of.numbers, without);
        if (partial)
            EIGHT_TIMES start[r] = partial[2 * of.numbers[r] + order];
        else
            take_start(start, layer, &eight, of.numbers, n);
        for (c = 0; c < all; c++) {
            sums sum[8];
            activations h[8];
            sum_inputs(sum, start, &eight, n, in + c * size, size);
            if (out) {
                EIGHT_TIMES h[r] = activate(&how, sum[r], of.multiplier[r], silu);
                put(&to, c, h);
            } else {
                fold_octet(layer, &of, &how, sum, totals + LANES * c, order, silu);
            }
        }
        if (out)
            end_octet(&to, o, silu || layer->wide);
    }
    return (uint16_t)(out ? end_order(&to) : 0);
}

/* First layer of a block; `partial` is {A q + bias, B q + bias} of each output. */
INLINE void first_layer(const twini_layer *layer, const twini_pairs *pairs, void *out,
                        int32_t *totals, int silu) {
    unsigned all = (pairs->count + LANES - 1u) / LANES, c, order;
    const int32_t *partial = (const int32_t *)pairs->partial;
    uint8_t *features_by_eight = (uint8_t *)pairs->room;
    header head = {0, {0, 0}, 0};
    head.eights = (uint16_t)all;
    for (c = 0; c < all; c++)
        transpose(features_by_eight + c * size_of_eight(layer->inputs), layer->inputs,
                  pairs->anchor + LANES * c);
    for (order = 0; order < 2; order++)
        head.there[order] =
            one_order(layer, order ? layer->weights : layer->mirror, 0, partial, features_by_eight,
                      layer->inputs, all, order, out, totals, silu);
    if (out)
        memcpy(out, &head, sizeof head);
}

/* Further layer of a block. */
INLINE void further_layer(const twini_layer *layer, const void *in, void *out, int32_t *totals,
                          int silu) {
    squeeze *plan = &((work *)layer->work)->plan;
    unsigned order;
    header head;
    memcpy(&head, in, sizeof head);
    for (order = 0; order < 2; order++) {
        const uint8_t *eights = eight_at(in, order * head.eights, layer->inputs);
        uint32_t n = head.there[order];
        const squeeze *without = plan_squeeze(plan, in, order, n, layer->inputs);
        head.there[order] = one_order(layer, layer->weights, without, 0, eights, n, head.eights,
                                      order, out, totals, silu);
    }
    if (out)
        memcpy(out, &head, sizeof head);
}

#endif
