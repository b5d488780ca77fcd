/* Layers of a block in plain C. A kernel file says how it stores a block, includes this, and has a
 * function for everything it does not do in a better way itself:
 *
 *     PAIRS          pairs in a block
 *     PLACE(i, c)    where activation i of column c is, in int16 from the start of the block
 *
 * Column 2 j is (query, anchor j), column 2 j + 1 (anchor j, query). Functions are static. */

#ifndef TWIN_KERNELS_PLAIN_H
#define TWIN_KERNELS_PLAIN_H

#include "../twin_arith.h"
#include "../twin_kernel.h"

#define COLUMNS (2 * PAIRS)

/* Weight number i of a row. */
static inline int32_t plain_weight(const twin_layer *layer, twin_flash row, uint32_t i) {
#if TWIN_INT16
    if (layer->wide)
        return twin_i16(row + 2 * i);
#endif
    (void)layer;
    return twin_i8(row + i);
}

/* Activation of output o from its sum. */
static inline int32_t plain_activate(const twin_layer *layer, int32_t sum, int32_t multiplier) {
    int32_t z = twin_sat(twin_rsh(twin_mulw(sum, multiplier), layer->shift));
    int32_t h = z > 0 ? z : 0;
#if TWIN_SILU
    if (layer->silu)
        h -= twin_bump(layer->curve, z < 0 ? -z : z, layer->fraction);
#endif
    return h;
}

/* Sums of output o to activations: stored, or folded into the differences. */
static inline void plain_finish(const twin_layer *layer, uint32_t o, const int32_t *sum,
                                int16_t *out, int32_t *difference) {
    int32_t multiplier = twin_i16(layer->multiplier + 2 * o), h[COLUMNS];
    uint8_t c;
    for (c = 0; c < COLUMNS; c++)
        h[c] = plain_activate(layer, sum[c], multiplier);
    if (out) {
        for (c = 0; c < COLUMNS; c++)
            out[PLACE(o, c)] = (int16_t)h[c];
    } else {
        int32_t weight = twin_i16(layer->fold + 2 * o);
        for (c = 0; c < PAIRS; c++)
            difference[c] += weight * (h[2 * c] - h[2 * c + 1]);
    }
}

/* A q, or B q. */
static inline int32_t plain_of_query(const twin_layer *layer, twin_flash row, const int16_t *q) {
    int32_t sum = 0;
    uint16_t i;
    for (i = 0; i < layer->inputs; i++)
        sum += plain_weight(layer, row, i) * q[i];
    return sum;
}

/* Partial sums: A q + bias, then B q + bias of each output. */
static inline void plain_query(const twin_layer *layer, const int16_t *query, void *partial) {
    int32_t *out = (int32_t *)partial;
    uint32_t o;
    for (o = 0; o < layer->outputs; o++) {
        int32_t bias = twin_i32(layer->bias + 4 * o);
        *out++ = bias + plain_of_query(layer, layer->weights + o * layer->row, query);
        *out++ = bias + plain_of_query(layer, layer->mirror + o * layer->row, query);
    }
}

/* A and B of one output with one anchor, added to both orders of the pair. */
static inline void plain_of_anchor(const twin_layer *layer, twin_flash a, twin_flash b,
                                   twin_flash anchor, int32_t *sum) {
    uint32_t i;
    for (i = 0; i < layer->inputs; i++) {
        int32_t feature = twin_i16(anchor + 2 * i);
        sum[0] += plain_weight(layer, b, i) * feature;
        sum[1] += plain_weight(layer, a, i) * feature;
    }
}

static inline void plain_first(const twin_layer *layer, const twin_pairs *pairs, void *out,
                               int32_t *difference) {
    twin_flash a = layer->weights, b = layer->mirror;
    uint32_t o;
    for (o = 0; o < layer->outputs; o++) {
        int32_t sum[COLUMNS], of_query[2];
        uint8_t c;
#if TWIN_PARTIAL
        of_query[0] = ((const int32_t *)pairs->partial)[2 * o];
        of_query[1] = ((const int32_t *)pairs->partial)[2 * o + 1];
#else
        int32_t bias = twin_i32(layer->bias + 4 * o);
        of_query[0] = bias + plain_of_query(layer, a, pairs->query);
        of_query[1] = bias + plain_of_query(layer, b, pairs->query);
#endif
        for (c = 0; c < COLUMNS; c++)
            sum[c] = of_query[c & 1];
        for (c = 0; c < PAIRS; c++)
            plain_of_anchor(layer, a, b, pairs->anchor[c], sum + 2 * c);
        plain_finish(layer, o, sum, (int16_t *)out, difference);
        a += layer->row;
        b += layer->row;
    }
}

static inline void plain_further(const twin_layer *layer, const void *in, void *out,
                                 int32_t *difference) {
    const int16_t *h = (const int16_t *)in;
    twin_flash row = layer->weights;
    uint32_t o, i;
    for (o = 0; o < layer->outputs; o++) {
        int32_t sum[COLUMNS], bias = twin_i32(layer->bias + 4 * o);
        uint8_t c;
        for (c = 0; c < COLUMNS; c++)
            sum[c] = bias;
        for (i = 0; i < layer->inputs; i++) {
            int32_t weight = plain_weight(layer, row, i);
            for (c = 0; c < COLUMNS; c++)
                sum[c] += weight * h[PLACE(i, c)];
        }
        plain_finish(layer, o, sum, (int16_t *)out, difference);
        row += layer->row;
    }
}

#endif
