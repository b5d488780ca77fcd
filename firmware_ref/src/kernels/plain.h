/* Layers of a block in plain C. A kernel file says how it stores a block, includes this, and gets a
 * function for everything it does not do better itself:
 *
 *     PAIRS          pairs in a block
 *     ELEMENT        type of an activation, int16_t by default
 *     PLACE(i, c)    where activation i of column c is, in elements from the start of the block
 *
 * Column 2 j is (query, anchor j), column 2 j + 1 (anchor j, query). A block has a multiple of four
 * activations; those beyond the width are zero. Functions are static. */

#ifndef TWIN_KERNELS_PLAIN_H
#define TWIN_KERNELS_PLAIN_H

#include "../twin_arith.h"
#include "../twin_kernel.h"

#define COLUMNS (2 * PAIRS)

#ifndef ELEMENT
#define ELEMENT int16_t
#endif

/* A loop over columns. With few columns, their sums should stay in registers; with more, compilers
 * vectorise it, which they do not once the loop is unrolled. */
#if TWIN_BLOCK > 2 || (!defined(__clang__) && __GNUC__ + 0 < 8)
#define EACH_COLUMN for (c = 0; c < COLUMNS; c++)
#elif defined(__clang__)
#define EACH_COLUMN _Pragma("unroll") for (c = 0; c < COLUMNS; c++)
#else
#define EACH_COLUMN _Pragma("GCC unroll 4") for (c = 0; c < COLUMNS; c++)
#endif

/* A function to be compiled separately for each width of weights; but only once where branches are
 * counted (test/coverage.py), as each copy takes only some of them. */
#if defined(__GNUC__) && !defined(TWIN_COUNTED)
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif

/* Weight number i of a row. */
static inline int32_t plain_weight(twin_flash row, uint32_t i, unsigned wide) {
    return wide ? twini_i16(row + 2 * i) : twini_i8(row + i);
}

/* Activation of an output from its sum. */
static inline int32_t plain_activate(const twini_layer *layer, int32_t sum, int32_t multiplier) {
    int32_t z = twini_sat(twini_rsh(twini_mulw(sum, multiplier), layer->shift));
    int32_t h = z > 0 ? z : 0;
#if TWIN_SILU
    if (layer->silu)
        h -= twini_bump(layer->curve, z < 0 ? -z : z, layer->fraction);
#endif
    return h;
}

/* Activations of output o: stored, or folded into the totals. */
static inline void plain_put(const twini_layer *layer, uint32_t o, const int32_t *h, ELEMENT *out,
                             int32_t *totals) {
    unsigned c;
    if (out) {
        for (c = 0; c < COLUMNS; c++)
            out[PLACE(o, c)] = (ELEMENT)h[c];
#if TWIN_INTERVALS
    } else if (layer->scaled) {
        twin_flash both = layer->fold + 4 * o;
        int32_t weight = twini_i16(both + 4), hard = twini_i16(both + 6);
        for (c = 0; c < PAIRS; c++) {
            totals[c] += weight * h[2 * c];
            totals[TWIN_BLOCK + c] += weight * h[2 * c + 1];
            totals[2 * TWIN_BLOCK + c] += hard * h[2 * c + 1];
        }
#endif
    } else {
        int32_t weight = twini_i16(layer->fold + 2 * o);
        for (c = 0; c < PAIRS; c++)
            totals[c] += weight * (h[2 * c] - h[2 * c + 1]);
    }
}

/* The same from its sums. */
static inline void plain_finish(const twini_layer *layer, uint32_t o, const int32_t *sum,
                                ELEMENT *out, int32_t *totals) {
    int32_t multiplier = twini_i16(layer->multiplier + 2 * o), h[COLUMNS];
    unsigned c;
    for (c = 0; c < COLUMNS; c++)
        h[c] = plain_activate(layer, sum[c], multiplier);
    plain_put(layer, o, h, out, totals);
}

/* Zeros up to a multiple of four, if there is a layer to read them. */
static inline void plain_pad(const twini_layer *layer, ELEMENT *out) {
    uint32_t o;
    unsigned c;
    for (o = layer->outputs; out && o % 4; o++)
        for (c = 0; c < COLUMNS; c++)
            out[PLACE(o, c)] = 0;
}

/* A q, or B q. */
static inline int32_t plain_of_query(const twini_layer *layer, twin_flash row, const int16_t *q) {
    int32_t sum = 0;
    uint32_t i;
    for (i = 0; i < layer->inputs; i++)
        sum += plain_weight(row, i, layer->wide) * q[i];
    return sum;
}

/* Partial sums: A q + bias, then B q + bias of each output. */
static inline void plain_query(const twini_layer *layer, const int16_t *query, void *partial) {
    int32_t *out = (int32_t *)partial;
    uint32_t o;
    for (o = 0; o < layer->outputs; o++) {
        int32_t bias = twini_i32(layer->bias + 4 * o);
        *out++ = bias + plain_of_query(layer, layer->weights + o * layer->row, query);
        *out++ = bias + plain_of_query(layer, layer->mirror + o * layer->row, query);
    }
}

/* A and B of one output with one anchor, added to both orders of the pair. */
static inline void plain_of_anchor(const twini_layer *layer, twin_flash a, twin_flash b,
                                   twin_flash anchor, int32_t *sum) {
    uint32_t i;
    for (i = 0; i < layer->inputs; i++) {
        int32_t feature = twini_i16(anchor + 2 * i);
        sum[0] += plain_weight(b, i, layer->wide) * feature;
        sum[1] += plain_weight(a, i, layer->wide) * feature;
    }
}

static inline void plain_first(const twini_layer *layer, const twini_pairs *pairs, void *out,
                               int32_t *totals) {
    twin_flash a = layer->weights, b = layer->mirror;
    uint32_t o;
    for (o = 0; o < layer->outputs; o++) {
        int32_t sum[COLUMNS], of_query[2];
        unsigned c;
#if TWIN_PARTIAL
        of_query[0] = ((const int32_t *)pairs->partial)[2 * o];
        of_query[1] = ((const int32_t *)pairs->partial)[2 * o + 1];
#else
        int32_t bias = twini_i32(layer->bias + 4 * o);
        of_query[0] = bias + plain_of_query(layer, a, pairs->query);
        of_query[1] = bias + plain_of_query(layer, b, pairs->query);
#endif
        for (c = 0; c < PAIRS; c++) {
            sum[2 * c] = of_query[0];
            sum[2 * c + 1] = of_query[1];
            plain_of_anchor(layer, a, b, pairs->anchor[c], sum + 2 * c);
        }
        plain_finish(layer, o, sum, (ELEMENT *)out, totals);
        a += layer->row;
        b += layer->row;
    }
    plain_pad(layer, (ELEMENT *)out);
}

/* Sums of one output of a further layer. */
INLINE void plain_sums(const twini_layer *layer, twin_flash row, int32_t bias, const ELEMENT *h,
                       int32_t *sums, unsigned wide) {
    int32_t sum[COLUMNS];
    uint32_t i, inputs = layer->inputs;
    unsigned c;
    EACH_COLUMN sum[c] = bias;
    for (i = 0; i < inputs; i += 4) {
        int32_t w0 = plain_weight(row, i, wide), w1 = plain_weight(row, i + 1, wide);
        int32_t w2 = plain_weight(row, i + 2, wide), w3 = plain_weight(row, i + 3, wide);
        EACH_COLUMN sum[c] += w0 * h[PLACE(i, c)];
        EACH_COLUMN sum[c] += w1 * h[PLACE(i + 1, c)];
        EACH_COLUMN sum[c] += w2 * h[PLACE(i + 2, c)];
        EACH_COLUMN sum[c] += w3 * h[PLACE(i + 3, c)];
    }
    EACH_COLUMN sums[c] = sum[c];
}

static inline void plain_further(const twini_layer *layer, const void *in, void *out,
                                 int32_t *totals) {
    const ELEMENT *h = (const ELEMENT *)in;
    twin_flash row = layer->weights;
    uint32_t o;
    for (o = 0; o < layer->outputs; o++) {
        int32_t sum[COLUMNS], bias = twini_i32(layer->bias + 4 * o);
        if (TWIN_INT16 && layer->wide)
            plain_sums(layer, row, bias, h, sum, 1);
        else
            plain_sums(layer, row, bias, h, sum, 0);
        plain_finish(layer, o, sum, (ELEMENT *)out, totals);
        row += layer->row;
    }
    plain_pad(layer, (ELEMENT *)out);
}

#endif
