/* What kernels do not do better themselves, in plain C. */

#ifndef TWIN_KERNELS_PLAIN_H
#define TWIN_KERNELS_PLAIN_H

#include "../twin_arith.h"

/* A function to be compiled separately for each width of weights; but only once where branches are
 * counted (test/coverage.py), as each copy takes only some of them. */
#if defined(__GNUC__) && !defined(TWIN_COUNTED)
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif

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

/* A q, or B q. */
static inline int32_t plain_of_query(const twini_layer *layer, twin_flash row, const int16_t *q) {
    int32_t sum = 0;
    uint32_t i;
    for (i = 0; i < layer->inputs; i++)
        sum += twini_weight(row, i, layer->wide) * q[i];
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

#endif
