/* Arm with NEON, as in all Raspberry Pis since the 2, with 64 bits or 32: SMLAL multiplies four
 * activations by one weight. In an eight, the activations of each output are side by
 * side. */

#include "neon_prepared.h"

#if TWIN_HOST_ARM

NEON_TARGET

#define NAME(word) neon_##word
#include "neon_eights.h"

typedef uint8_t rows_room[8][MOST_INPUTS + 16];

typedef struct rows {
    twin_flash row[8];
    unsigned wide;
} rows;

INLINE void take_rows(rows *eight, rows_room *room, const twini_layer *layer, twin_flash weights,
                      const uint32_t *numbers, const squeeze *without) {
    unsigned r;
    EIGHT_TIMES eight->row[r] = weights + numbers[r] * layer->row;
    if (without) {
        neon_squeeze_rows(without, eight->row, **room, sizeof **room);
        EIGHT_TIMES eight->row[r] = (*room)[r];
    }
    eight->wide = layer->wide;
}

INLINE void take_start(int32_t *start, const twini_layer *layer, rows *eight,
                       const uint32_t *numbers, uint32_t n) {
    unsigned r;
    (void)eight;
    (void)n;
    EIGHT_TIMES start[r] = twini_i32(layer->bias + 4 * numbers[r]);
}

/* Eight weights of a row; reading past the last row is safe, as more data follows. */
INLINE int16x8_t neon_weights_at(twin_flash row, uint32_t i, unsigned wide) {
    if (wide)
        return vld1q_s16((const int16_t *)(const void *)(row + 2 * i));
    return vmovl_s8(vld1_s8((const int8_t *)(row + i)));
}

#define INPUT(k)                                                                                   \
    {                                                                                              \
        int16x8_t x = vld1q_s16(h + 8 * (i + (k)));                                                \
        EIGHT_TIMES {                                                                              \
            sum[r].low = ADD_TIMES_LANE(sum[r].low, vget_low_s16(x), w[r], k);                     \
            sum[r].high = ADD_HIGH_TIMES_LANE(sum[r].high, x, w[r], k);                            \
        }                                                                                          \
    }

INLINE void neon_add_inputs(neon_sums *sum, const rows *eight, uint32_t inputs, const int16_t *h,
                            unsigned wide) {
    uint32_t i;
    unsigned r;
    for (i = 0; i < inputs; i += 8) {
        int16x8_t w[8];
        EIGHT_TIMES w[r] = neon_weights_at(eight->row[r], i, wide);
        INPUT(0)
        INPUT(1)
        INPUT(2)
        INPUT(3)
        if (i + 4 >= inputs)
            break;
        INPUT(4)
        INPUT(5)
        INPUT(6)
        INPUT(7)
    }
}

INLINE void sum_inputs(neon_sums *sum, const int32_t *start, const rows *eight, uint32_t inputs,
                       const uint8_t *from, size_t size) {
    const int16_t *h = (const int16_t *)(const void *)from;
    unsigned r;
    (void)size;
    EIGHT_TIMES sum[r] = neon_set(start[r]);
    if (eight->wide)
        neon_add_inputs(sum, eight, inputs, h, 1);
    else
        neon_add_inputs(sum, eight, inputs, h, 0);
}

INLINE void store(uint8_t *to, size_t size, uint32_t first, const neon_activations *h) {
    int16_t *out = (int16_t *)(void *)to + 8 * (size_t)first;
    (void)size;
    vst1q_s16(out, h[0]);
    vst1q_s16(out + 8, h[1]);
    vst1q_s16(out + 16, h[2]);
    vst1q_s16(out + 24, h[3]);
}

INLINE void transpose(uint8_t *to, unsigned inputs, const twin_flash *anchor) {
    int16_t *out = (int16_t *)(void *)to;
    unsigned i, r;
    for (i = 0; i < twini_align(inputs, 4); i++)
        EIGHT_TIMES out[8 * i + r] = twini_i16(anchor[r] + 2 * i);
}

#include "layers.h"

/* A prepared model: the layout of weights is [8 outputs at a time][inputs][8]; a product uses those
 * of the listed neurons. */

INLINE int neon_leaves_out(unsigned inputs, unsigned outputs) {
    (void)inputs;
    (void)outputs;
    return 1;
}

static uint32_t neon_most_left(unsigned widest) {
    (void)widest;
    return 0;
}

static uint32_t neon_weight_bytes(unsigned inputs, unsigned outputs) {
    return (uint32_t)sizeof(int16_t) * inputs * twini_align(outputs, 8);
}

static void neon_arrange(const twini_layer *from, const uint16_t *ranked, uint8_t *weights) {
    int16_t *to = (int16_t *)(void *)weights;
    uint32_t o, i;
    for (o = 0; o < from->outputs; o++)
        for (i = 0; i < from->inputs; i++)
            to[(o & ~7u) * from->inputs + 8 * i + (o & 7)] =
                (int16_t)twini_weight(from->weights + (size_t)ranked[o] * from->row, i, from->wide);
}

INLINE void neon_put_four(uint8_t *in, uint32_t first, const neon_activations *h) {
    int16_t *to = (int16_t *)(void *)in + 8 * (size_t)first;
    uint32_t r;
    FOUR_TIMES vst1q_s16(to + 8 * r, h[r]);
}

INLINE const int16_t *neon_take_weights(const neon_prepared_work *mine,
                                        const twini_prepared_layer *layer, int all) {
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
INLINE void neon_add_products(neon_sums *sum, const neon_prepared_work *mine,
                              const int16_t *weights, int listed, int lower, int upper) {
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
INLINE void neon_sum_eight(neon_sums *sum, const neon_prepared_work *mine,
                           const twini_prepared_layer *layer, uint32_t o, int listed) {
    const int16_t *weights = (const int16_t *)(const void *)layer->weights;
    uint32_t r;
    weights += (size_t)o * layer->inputs;
    EIGHT_TIMES sum[r] = neon_set(layer->bias[o + r]);
    if (TWIN_HOST_ARM == 64) {
        neon_add_products(sum, mine, weights, listed, 1, 1);
    } else {
        neon_add_products(sum, mine, weights, listed, 1, 0);
        neon_add_products(sum, mine, weights, listed, 0, 1);
    }
}

/* Not inlined, so that all of it stays in registers. */
TWIN_NOT_INLINE static void neon_sum_products(const neon_prepared_work *mine,
                                              const twini_prepared_layer *layer,
                                              const int16_t *weights) {
    uint32_t o, r;
    (void)weights;
    for (o = 0; o < layer->outputs; o += 8) {
        neon_sums sum[8];
        neon_sum_eight(sum, mine, layer, o, 1);
        EIGHT_TIMES neon_keep(mine->sum + 8 * (size_t)(o + r), sum[r]);
    }
}

#define neon_put_silu neon_put_four
#define STEP          8
INLINE void neon_step_sums(neon_sums *sum, const neon_prepared_work *mine,
                           const twini_prepared_layer *layer, uint32_t o, neon_lookups *waiting) {
    (void)waiting;
    neon_sum_eight(sum, mine, layer, o, 0);
}

INLINE void neon_fold_relu(const neon_prepared_work *mine, const twini_prepared_layer *layer,
                           const int16_t *weights, int32_t *totals, int32_t *hard) {
    neon_sum_products(mine, layer, weights);
    neon_fold_sums(layer, mine->sum, 0, 0, totals, hard);
}

#define END_INPUTS(in, count) (void)(in)
#define ENOUGH                0
#include "neon_layers.h"

#define KERNEL twini_kernel_neon
#define ALIGN  16
#include "host_kernel.h"

NEON_TARGET_END

#endif
