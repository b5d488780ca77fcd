/* A prepared model, by SMLAL: four activations times one weight, both of 16 bits. The layout of
 * weights is [8 outputs at a time][inputs][8]; a product uses those of the listed neurons. */

#ifndef TWIN_KERNELS_NEON_PLAIN_READY_H
#define TWIN_KERNELS_NEON_PLAIN_READY_H

#include "neon_silu.h"

INLINE int leaves_out(unsigned inputs, unsigned outputs) {
    (void)inputs;
    (void)outputs;
    return 1;
}

static uint32_t most_left(unsigned widest) {
    (void)widest;
    return 0;
}

static uint32_t ready_weight_bytes(unsigned inputs, unsigned outputs) {
    return (uint32_t)sizeof(int16_t) * inputs * twini_align(outputs, 8);
}

static void ready_arrange(const twini_layer *from, const uint16_t *ranked, uint8_t *weights) {
    int16_t *to = (int16_t *)(void *)weights;
    uint32_t o, i;
    for (o = 0; o < from->outputs; o++)
        for (i = 0; i < from->inputs; i++)
            to[(o & ~7u) * from->inputs + 8 * i + (o & 7)] =
                (int16_t)plain_weight(from->weights + (size_t)ranked[o] * from->row, i, from->wide);
}

INLINE void put_four(uint8_t *in, uint32_t first, const activations *h) {
    int16_t *to = (int16_t *)(void *)in + 8 * (size_t)first;
    uint32_t r;
    FOUR_TIMES vst1q_s16(to + 8 * r, h[r]);
}

INLINE const int16_t *take_weights(const ready_work *mine, const twini_ready_layer *layer,
                                   int all) {
    (void)mine;
    (void)all;
    return (const int16_t *)(const void *)layer->weights;
}

#define OUTPUT_BY_EIGHT(r)                                                                         \
    sum[r].low = ADD_TIMES_LANE(sum[r].low, vget_low_s16(x), w, r);                                \
    sum[r].high = ADD_HIGH_TIMES_LANE(sum[r].high, x, w, r);
#define FOUR_OUTPUTS(a, b, c, d)                                                                   \
    OUTPUT_BY_EIGHT(a) OUTPUT_BY_EIGHT(b) OUTPUT_BY_EIGHT(c) OUTPUT_BY_EIGHT(d)

/* Add to sums of eight outputs, or of one half of them, the listed inputs or all of them. */
INLINE void add_products(sums *sum, const ready_work *mine, const int16_t *weights, int listed,
                         int lower, int upper) {
    uint32_t k;
    for (k = 0; k < mine->count; k++) {
        int16x8_t x = vld1q_s16((const int16_t *)(const void *)mine->in + 8 * k);
        int16x8_t w = vld1q_s16(weights + 8 * (size_t)(listed ? mine->number[k] : k));
        if (lower) {
            FOUR_OUTPUTS(0, 1, 2, 3)
        }
        if (upper) {
            FOUR_OUTPUTS(4, 5, 6, 7)
        }
    }
}

/* Sums of eight outputs from `o` on. 32-bit Arm has registers for four. */
INLINE void sum_eight(sums *sum, const ready_work *mine, const twini_ready_layer *layer, uint32_t o,
                      int listed) {
    const int16_t *weights = (const int16_t *)(const void *)layer->weights;
    uint32_t r;
    weights += (size_t)o * layer->inputs;
    EIGHT_TIMES sum[r] = set(layer->bias[o + r]);
    if (TWIN_HOST_ARM == 64) {
        add_products(sum, mine, weights, listed, 1, 1);
    } else {
        add_products(sum, mine, weights, listed, 1, 0);
        add_products(sum, mine, weights, listed, 0, 1);
    }
}

/* Not inlined, so that all of it stays in registers. */
TWIN_NOT_INLINE static void sum_products(const ready_work *mine, const twini_ready_layer *layer,
                                         const int16_t *weights) {
    uint32_t o, r;
    (void)weights;
    for (o = 0; o < layer->outputs; o += 8) {
        sums sum[8];
        sum_eight(sum, mine, layer, o, 1);
        EIGHT_TIMES keep(mine->sum + 8 * (size_t)(o + r), sum[r]);
    }
}

#define put_silu put_four
#define STEP     8
INLINE void step_sums(sums *sum, const ready_work *mine, const twini_ready_layer *layer, uint32_t o,
                      lookups *waiting) {
    (void)waiting;
    sum_eight(sum, mine, layer, o, 0);
}

INLINE void fold_relu(const ready_work *mine, const twini_ready_layer *layer,
                      const int16_t *weights, int32_t *totals, int32_t *hard) {
    sum_products(mine, layer, weights);
    fold_sums(layer, mine->sum, 0, 0, totals, hard);
}

#define END_INPUTS(in, count) (void)(in)
#define ENOUGH                0
#include "neon_ready_layers.h"

#endif
