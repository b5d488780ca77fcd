/* A prepared model on x86-64, of what a kernel file defines (layers.h, x86_eights.h). Eight anchors
 * in both orders are sixteen columns, ACROSS vectors of LANES; activations lie as [2 neurons at a
 * time][16 columns][2], weights as [OUTPUTS at a time][2 inputs at a time][OUTPUTS][2]. */

#ifndef TWIN_KERNELS_X86_READY_H
#define TWIN_KERNELS_X86_READY_H

#include "../twin_prepared.h"
#include "x86.h"

#define COLUMNS_READY (2 * TWIN_EIGHT)
#define ACROSS        (COLUMNS_READY / LANES)
#define OUTPUTS       (LANES == 16 ? 16 : 4) /* whose sums fit the registers */

/* Loops over them, and over the vectors of a row. */
#if defined(__clang__)
#define EACH_OUTPUT _Pragma("unroll") for (r = 0; r < OUTPUTS; r++)
#define EACH_VECTOR _Pragma("unroll") for (v = 0; v < ACROSS; v++)
#else
#define EACH_OUTPUT _Pragma("GCC unroll 16") for (r = 0; r < OUTPUTS; r++)
#define EACH_VECTOR _Pragma("GCC unroll 2") for (v = 0; v < ACROSS; v++)
#endif

typedef __m256i eight_sums;

INLINE eight_sums no_eight(void) {
    return _mm256_setzero_si256();
}

INLINE eight_sums load_eight(const int32_t *from) {
    return _mm256_loadu_si256((const __m256i *)(const void *)from);
}

INLINE void keep_eight(int32_t *to, eight_sums a) {
    _mm256_storeu_si256((__m256i *)(void *)to, a);
}

INLINE eight_sums add_times(eight_sums a, const int16_t *eight, int16_t factor) {
    __m128i from = _mm_loadu_si128((const __m128i *)(const void *)eight);
    return _mm256_add_epi32(
        a, _mm256_madd_epi16(_mm256_cvtepu16_epi32(from), all_eight((uint16_t)factor)));
}

INLINE int32_t largest(eight_sums a) {
    int32_t all[TWIN_EIGHT], most = INT32_MIN;
    unsigned r;
    keep_eight(all, a);
    for (r = 0; r < TWIN_EIGHT; r++)
        most = all[r] > most ? all[r] : most;
    return most;
}

#include "ready.h"

static uint32_t ready_weight_bytes(unsigned inputs, unsigned outputs) {
    return (uint32_t)sizeof(int16_t) * twini_align(inputs, 2) * twini_align(outputs, OUTPUTS);
}

static void ready_arrange(const twini_layer *from, const uint16_t *ranked, uint8_t *weights) {
    uint32_t pairs = twini_align(from->inputs, 2), o, i;
    int16_t *to = (int16_t *)(void *)weights;
    for (o = 0; o < from->outputs; o++)
        for (i = 0; i < from->inputs; i++) {
            uint32_t place = o / OUTPUTS * OUTPUTS * pairs + i / 2 * 2 * OUTPUTS + o % OUTPUTS * 2;
            to[place + i % 2] =
                (int16_t)plain_weight(from->weights + (size_t)ranked[o] * from->row, i, from->wide);
        }
}

/* What a layer works in: activations of the one before, and its own sums, [outputs][16]. */
static uint32_t ready_block(unsigned widest) {
    return (uint32_t)sizeof(int16_t) * COLUMNS_READY * twini_align(widest, 16);
}

static uint32_t ready_work_bytes(unsigned widest) {
    return 3 * ready_block(widest);
}

/* Sums of a further layer. By itself, so that all of it stays in registers. */
TWIN_NOT_INLINE static void sum_products(const twini_ready_layer *layer, const int32_t *in,
                                         int32_t *to) {
    const int32_t *weights = (const int32_t *)(const void *)layer->weights;
    uint32_t pairs = twini_align(layer->inputs, 2) / 2, o, i, r, v;
    for (o = 0; o < layer->outputs; o += OUTPUTS) {
        const int32_t *h = in;
        sums sum[OUTPUTS][ACROSS];
        EACH_OUTPUT EACH_VECTOR sum[r][v] = set(layer->bias[o + r]);
        for (i = 0; i < pairs; i++, weights += OUTPUTS, h += COLUMNS_READY) {
            sums x[ACROSS];
            EACH_VECTOR x[v] = load(h + LANES * v);
            EACH_OUTPUT {
                sums two = set(weights[r]);
                EACH_VECTOR sum[r][v] = add_products(sum[r][v], x[v], two);
            }
        }
        EACH_OUTPUT EACH_VECTOR keep(to + COLUMNS_READY * (size_t)(o + r) + LANES * v, sum[r][v]);
    }
}

/* The query's share in vector v: one order, then the other. */
INLINE sums of_query_at(const int32_t *of_query, uint32_t n, uint32_t o, unsigned v) {
#if LANES == 16
    (void)v;
    return _mm512_inserti64x4(_mm512_castsi256_si512(all_eight(of_query[o])),
                              all_eight(of_query[n + o]), 1);
#else
    return set(of_query[v * n + o]);
#endif
}

/* Activations of output o in vector v, from the sums of a layer; in the first one these are shares
 * of anchors, and the query's is added; elsewhere nobody looks at `of_query`. */
INLINE activations activation_at(const twini_ready_layer *layer, const way *how, const int32_t *sum,
                                 const int32_t *of_query, uint32_t o, unsigned v, int first,
                                 int silu) {
    sums all = load(sum + COLUMNS_READY * (size_t)o + LANES * v);
    if (first)
        all = add(all, of_query_at(of_query, twini_padded(layer->outputs), o, v));
    return activate(how, all, layer->multiplier[o], silu);
}

/* Activations of a layer, for the next one. */
INLINE void go_on(const twini_ready_layer *layer, const int32_t *sum, const int32_t *of_query,
                  int32_t *to, int first, int silu) {
    way how = way_for(layer->curve, layer->shift, layer->fraction);
    uint32_t o, v;
    for (o = 0; o < layer->outputs; o += 2)
        EACH_VECTOR {
            activations a = activation_at(layer, &how, sum, of_query, o, v, first, silu);
            activations b = activation_at(layer, &how, sum, of_query, o + 1, v, first, silu);
            keep(to + COLUMNS_READY / 2 * (size_t)o + LANES * v, beside(a, b));
        }
}

/* Totals over the last layer. */
INLINE void finish(const twini_ready_layer *layer, const int32_t *sum, const int32_t *of_query,
                   int32_t *totals, int first, int scaled, int silu) {
    way how = way_for(layer->curve, layer->shift, layer->fraction);
    sums total[ACROSS], second[ACROSS];
    uint32_t o, v;
    EACH_VECTOR total[v] = second[v] = set(0);
    for (o = 0; o < layer->outputs; o++)
        EACH_VECTOR {
            activations h = activation_at(layer, &how, sum, of_query, o, v, first, silu);
            total[v] = fold(total[v], h, layer->fold[o]);
            second[v] = fold(second[v], h, layer->hard[o]);
        }
    EACH_VECTOR keep(totals + LANES * v, total[v]);
    if (scaled) {
        int32_t hard[COLUMNS_READY];
        EACH_VECTOR keep(hard + LANES * v, second[v]);
        memcpy(totals + COLUMNS_READY, hard + TWIN_EIGHT, sizeof hard / 2);
    }
}

INLINE void ready_layers(const twini_ready_twin *twin, const int32_t *of_query,
                         const int32_t *of_anchors, int32_t *in, int32_t *totals, int silu) {
    const twini_ready_layer *layer = twin->layer, *last = layer + twin->layers - 1;
    int32_t *sum = in + ready_block(twin->widest) / sizeof *in;
    if (layer == last) {
        finish(layer, of_anchors, of_query, totals, 1, twin->scaled, silu);
        return;
    }
    go_on(layer, of_anchors, of_query, in, 1, silu);
    while (++layer != last) {
        sum_products(layer, in, sum);
        go_on(layer, sum, sum, in, 0, silu);
    }
    sum_products(layer, in, sum);
    finish(layer, sum, sum, totals, 0, twin->scaled, silu);
}

static void ready_eight(const twini_ready_twin *twin, const int32_t *of_query,
                        const int32_t *of_anchors, void *scratch, int32_t *totals) {
    if (twin->silu)
        ready_layers(twin, of_query, of_anchors, (int32_t *)scratch, totals, 1);
    else
        ready_layers(twin, of_query, of_anchors, (int32_t *)scratch, totals, 0);
}

static const twini_form ready_form = {
    ready_weight_bytes, ready_arrange, 0,           MULTIPLIER_SHIFT, ready_work_bytes,
    ready_query,        ready_anchors, ready_eight,
};

#endif
