/* A prepared model on x86-64, from what a kernel file defines (layers.h, x86_eights.h). Eight
 * anchors in both orders are sixteen columns, ACROSS vectors of LANES. Four outputs are made at a
 * time, as 16-bit words. x86_layers.h moves them from one layer to the next. */

#ifndef TWIN_KERNELS_X86_READY_H
#define TWIN_KERNELS_X86_READY_H

#include "../twin_prepared.h"
#include "x86.h"

#define COLUMNS_READY (2 * TWIN_EIGHT)
#define ACROSS        (COLUMNS_READY / LANES)

/* Intrinsics for vectors of LANES. */
#if LANES == 16
#define V(name) _mm512_##name
#define W(name) _mm512_##name##_si512
#else
#define V(name) _mm256_##name
#define W(name) _mm256_##name##_si256
#endif

/* For loops over the vectors of a row. */
#define EACH_VECTOR UNROLLED for (v = 0; v < ACROSS; v++)

typedef sums words; /* twice as many, of 16 bits */

/* The same 16 bytes in each part of a vector. */
INLINE words everywhere(__m128i a) {
#if LANES == 16
    return _mm512_broadcast_i32x4(a);
#else
    return _mm256_broadcastsi128_si256(a);
#endif
}

/* Lower halves of one, upper halves of the other. */
INLINE words merge(words lower, words upper) {
#if LANES == 16
    return _mm512_mask_blend_epi16(0xAAAAAAAA, lower, upper);
#else
    return _mm256_blend_epi16(lower, upper, 0xAA);
#endif
}

/* Four times what is at most `limit`, the rest unchanged. */
INLINE words quadruple(words a, words limit) {
#if LANES == 16
    return _mm512_mask_slli_epi16(a, _mm512_cmple_epi16_mask(a, limit), a, 2);
#else
    return _mm256_blendv_epi8(_mm256_slli_epi16(a, 2), a, _mm256_cmpgt_epi16(a, limit));
#endif
}

/* What the outputs of a layer share on their way from sums to activations. */
typedef struct ready_way {
    const int32_t *lines;
    sums shift, half, entry, rounding;
    words fine, coarse, last_fine, rest;
} ready_way;

/* With relu the lines are unused. */
INLINE ready_way ready_way_of(const twini_ready_layer *layer, int silu) {
    int b = silu ? layer->fraction : 5, c = b - 3;
    ready_way how;
    how.shift = set(layer->shift);
    how.half = set((int32_t)(((uint32_t)1 << layer->shift) >> 1));
    how.lines = (const int32_t *)layer->table;
    how.entry = set(1 << c);
    how.rounding = set(b < 15 ? 2048 : 0);
    how.fine = V(set1_epi16)((int16_t)(65536 >> (b - 4)));
    how.coarse = V(set1_epi16)((int16_t)(65536 >> (c + 1)));
    how.last_fine = V(set1_epi16)((int16_t)(b < 13 ? (4 << b) - 1 : TWIN_LARGEST));
    how.rest = V(set1_epi16)((int16_t)((1 << c) - 1));
    return how;
}

/* The curve of silu as lines: one number for each step of the curve, with the entry where the step
 * begins in the lower half, and the difference to the next entry in the upper one. Let b be the
 * fraction bits of a layer, and r how far a is past the start of its step; four times that in the
 * first steps, which are a quarter as wide as the others. Then
 *
 *     bump(a) = ((entry << (b - 3)) + step * r + half) >> 12       half: 2048; 0 for b = 15
 *
 * is what FORMAT.md says, with two shifts in one. */
INLINE int32_t line_at(twin_flash curve, unsigned k) {
    int32_t entry = twini_i16(curve + 2 * k);
    return entry + (twini_i16(curve + 2 * k + 2) - entry) * 65536;
}

/* The step that z is in, and r in it. A product is faster than a shift. */
INLINE words step_of(const ready_way *how, words z, words *r) {
    words a = V(abs_epi16)(z), doubled = V(add_epi16)(a, a);
    words fine = V(mulhi_epu16)(doubled, how->fine), coarse = V(mulhi_epu16)(doubled, how->coarse);
    *r = W(and)(quadruple(a, how->last_fine), how->rest);
    return V(min_epu16)(fine, V(add_epi16)(coarse, V(set1_epi16)(TWIN_COARSE * 3 / 4)));
}

/* A number times 65536, loaded with the zeros of the 32-bit number before it. */
INLINE sums set_upper(const int32_t *number) {
    int32_t upper;
    memcpy(&upper, (const uint8_t *)number - 2, sizeof upper);
    return set(upper);
}

/* rsh(mulw(sum, multiplier), shift): lower and upper halves are multiplied separately. */
INLINE sums scale(const ready_way *how, sums sum, const int32_t *multiplier) {
    sums lower = add(V(mulhi_epu16)(sum, set(*multiplier)), how->half);
    return V(srav_epi32)(add_products(lower, sum, set_upper(multiplier)), how->shift);
}

/* Four outputs: their activations are two words, and in each 16 bytes of one are four columns of an
 * output, then of the next. */
typedef struct four {
    words two[2];
} four;

/* Subtract max(z, 0) - silu(z) from h. */
INLINE four subtract_bumps(const ready_way *how, four h, const four *z);

/* Activations from the sums of four outputs. */
INLINE four activate_four(const ready_way *how, const sums *sum, const int32_t *multiplier,
                          int silu) {
    four z, h;
    unsigned i;
    UNROLLED for (i = 0; i < 2; i++) {
        z.two[i] = V(packs_epi32)(scale(how, sum[2 * i], multiplier + 2 * i),
                                  scale(how, sum[2 * i + 1], multiplier + 2 * i + 1));
        h.two[i] = V(max_epi16)(z.two[i], set(0));
        z.two[i] = V(max_epi16)(z.two[i], V(set1_epi16)(-TWIN_LARGEST));
    }
    return silu ? subtract_bumps(how, h, &z) : h;
}

/* The two of each column side by side. */
INLINE words side_by_side(words two) {
    return V(shuffle_epi8)(
        two, everywhere(_mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15)));
}

/* What the query and eight anchors contribute to the first layer. */
typedef struct ready_shares {
    const int32_t *anchors, *query[2];
} ready_shares;

/* The sums of output o in vector v: one order, then the other. */
INLINE sums first_sums(const ready_shares *shares, uint32_t o, unsigned v) {
#if LANES == 16
    __m512i query = _mm512_inserti64x4(_mm512_castsi256_si512(all_eight(shares->query[0][o])),
                                       all_eight(shares->query[1][o]), 1);
#else
    __m256i query = set(shares->query[v][o]);
#endif
    return add(load(shares->anchors + COLUMNS_READY * (size_t)o + LANES * v), query);
}

/* Activations of outputs o to o + 3 of the first layer, in vector v. */
INLINE four first_four(const twini_ready_layer *layer, const ready_way *how,
                       const ready_shares *shares, uint32_t o, unsigned v, int silu) {
    sums sum[4];
    unsigned i;
    UNROLLED for (i = 0; i < 4; i++) sum[i] = first_sums(shares, o + i, v);
    return activate_four(how, sum, layer->multiplier + o, silu);
}

/* Totals over the last layer. */
typedef struct ready_totals {
    sums first[ACROSS], second[ACROSS];
} ready_totals;

INLINE void begin_totals(ready_totals *totals) {
    uint32_t v;
    EACH_VECTOR totals->first[v] = totals->second[v] = set(0);
}

INLINE void add_four(ready_totals *totals, const twini_ready_layer *layer, four h, uint32_t o,
                     unsigned v, int scaled) {
    int32_t weights;
    unsigned i;
    UNROLLED for (i = 0; i < 2; i++) {
        words two = side_by_side(h.two[i]);
        memcpy(&weights, layer->fold + o + 2 * i, sizeof weights);
        totals->first[v] = add_products(totals->first[v], two, set(weights));
        if (scaled) {
            memcpy(&weights, layer->hard + o + 2 * i, sizeof weights);
            totals->second[v] = add_products(totals->second[v], two, set(weights));
        }
    }
}

INLINE void end_totals(const ready_totals *totals, int32_t *to, int scaled) {
    uint32_t v;
    EACH_VECTOR keep(to + LANES * v, totals->first[v]);
    if (scaled) {
        int32_t hard[COLUMNS_READY];
        EACH_VECTOR keep(hard + LANES * v, totals->second[v]);
        memcpy(to + COLUMNS_READY, hard + TWIN_EIGHT, sizeof hard / 2);
    }
}

/* The query's share. */
static void ready_query(const twini_ready_twin *twin, const int16_t *query, int32_t *share) {
    uint32_t outputs = twin->layer[0].outputs, n = twini_padded(outputs), o, i, second;
    const int16_t *weights = twin->first;
    for (second = 0; second < 2; second++, weights += twin->features * (size_t)n)
        for (o = 0; o < outputs; o += LANES) {
            sums sum = load(twin->layer[0].bias + o);
            for (i = 0; i < twin->features; i++) {
                const int16_t *at = weights + i * (size_t)n + o;
#if LANES == 16
                sums row =
                    _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)at));
#else
                sums row = _mm256_cvtepu16_epi32(load_bytes((const uint8_t *)(const void *)at));
#endif
                sum = add_products(sum, row, set((uint16_t)query[i]));
            }
            keep(share + second * n + o, sum);
        }
}

typedef __m256i eight_sums;

INLINE eight_sums no_eight(void) {
    return _mm256_setzero_si256();
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

#define HAS_QUERY
#include "ready.h"

#endif
