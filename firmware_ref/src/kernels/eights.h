/* Layers of a block in eights: for eight outputs at a time, with vectors that lie across eight
 * columns.
 *
 * First come the eights of (query, anchor), then those of (anchor, query). A block is
 *
 *     u32 eights of one order, padding to 16 bytes
 *     for each eight: its activations, 16 bytes for each output, a multiple of four of them
 *
 * A kernel file defines, before it includes this, how the activations of an eight lie:
 *
 *     sums          32 bits for each column; set, load, keep, add, subtract
 *     activations   of one output for each column
 *     way           from sums to activations: way_of(layer), activate(way, sums, multiplier, silu)
 *     fold          adds activations times a weight to sums
 *     rows          of weights, of eight outputs: take_rows(rows, layer, weights, numbers)
 *     take_start    what the sums of a further layer start with: (start, layer, rows, numbers)
 *     sum_inputs    sums of eight outputs over an eight: (sums, start, rows, inputs, eight)
 *     store         activations of eight outputs into an eight: (eight, outputs, first,
 * activations) turn          features of eight anchors into an eight: (eight, inputs, anchors) */

#ifndef TWIN_KERNELS_EIGHTS_H
#define TWIN_KERNELS_EIGHTS_H

#include "host.h"

#define HEADER 16

INLINE uint8_t *eight_at(const void *block, unsigned number, unsigned size) {
    return (uint8_t *)(uintptr_t)block + HEADER + (size_t)number * EIGHT_SIZE(size);
}

/* Numbers of eight outputs from o on; the last again in place of those beyond it. */
INLINE void number_outputs(const twin_layer *layer, uint32_t o, uint32_t *numbers) {
    uint32_t last = layer->outputs - 1u, r;
    EIGHT_TIMES numbers[r] = o + r < last ? o + r : last;
}

/* From the sums of eight outputs to activations in eight `number`: stored, or, of the first
 * `count`, folded into the differences. */
INLINE void finish(const twin_layer *layer, const way *how, const uint32_t *numbers, uint32_t count,
                   const sums *sum, unsigned number, unsigned all, void *out, int32_t *difference,
                   int silu) {
    activations h[8];
    uint32_t r;
    EIGHT_TIMES h[r] = activate(how, sum[r], twin_i16(layer->multiplier + 2 * numbers[r]), silu);
    if (out) {
        store(eight_at(out, number, layer->outputs), layer->outputs, numbers[0], h);
    } else {
        sums total = set(0);
        int32_t *to = difference + 8 * (number < all ? number : number - all);
        EIGHT_TIMES {
            int16_t weight = twin_i16(layer->fold + 2 * numbers[r]);
            total = fold(total, h[r], (int16_t)(r < count ? weight : 0));
        }
        keep(to, number < all ? add(load(to), total) : subtract(load(to), total));
    }
}

/* First layer of a block; `partial` is {A q + bias, B q + bias} of each output. */
INLINE void first_layer(const twin_layer *layer, const twin_pairs *pairs, void *out,
                        int32_t *difference, int silu) {
    unsigned all = (pairs->count + 7u) / 8, c, order;
    const int32_t *partial = (const int32_t *)pairs->partial;
    size_t size = EIGHT_SIZE(layer->inputs);
    uint8_t *turned = (uint8_t *)pairs->room;
    way how = way_of(layer);
    uint32_t o, r;
    if (out)
        memcpy(out, &all, sizeof all);
    for (c = 0; c < all; c++)
        turn(turned + c * size, layer->inputs, pairs->anchor + 8 * c);
    for (o = 0; o < layer->outputs; o += 8) {
        uint32_t numbers[8];
        number_outputs(layer, o, numbers);
        for (order = 0; order < 2; order++) {
            int32_t start[8];
            rows eight;
            take_rows(&eight, layer, order ? layer->weights : layer->mirror, numbers);
            EIGHT_TIMES start[r] = partial[2 * numbers[r] + order];
            for (c = 0; c < all; c++) {
                sums sum[8];
                sum_inputs(sum, start, &eight, layer->inputs, turned + c * size);
                finish(layer, &how, numbers, layer->outputs - o, sum, order ? all + c : c, all, out,
                       difference, silu);
            }
        }
    }
}

/* Further layer of a block. */
INLINE void further_layer(const twin_layer *layer, const void *in, void *out, int32_t *difference,
                          int silu) {
    unsigned all, number;
    way how = way_of(layer);
    uint32_t o;
    memcpy(&all, in, sizeof all);
    if (out)
        memcpy(out, &all, sizeof all);
    for (o = 0; o < layer->outputs; o += 8) {
        uint32_t numbers[8];
        int32_t start[8];
        rows eight;
        number_outputs(layer, o, numbers);
        take_rows(&eight, layer, layer->weights, numbers);
        take_start(start, layer, &eight, numbers);
        for (number = 0; number < 2 * all; number++) {
            sums sum[8];
            sum_inputs(sum, start, &eight, layer->inputs, eight_at(in, number, layer->inputs));
            finish(layer, &how, numbers, layer->outputs - o, sum, number, all, out, difference,
                   silu);
        }
    }
}

#endif
