/* x86-64 with AVX2: VPMADDWD multiplies two activations of each column with two weights. In an
 * eight, pairs of outputs lie side by side: [2 activations at a time][8 columns][2]. */

#include "host.h"

#if TWIN_HOST_X86

#define PAIRS       TWIN_BLOCK
#define PLACE(i, c) 0 /* nothing is stored in the plain way */

#define MULTIPLIER_SHIFT 0

#include "plain.h"
#include "eights.h"
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif

typedef __m256i sums;
typedef __m256i activations; /* of 32 bits */

INLINE activations none(void) {
    return _mm256_setzero_si256();
}

INLINE sums set(int32_t a) {
    return _mm256_set1_epi32(a);
}

INLINE sums load(const int32_t *from) {
    return _mm256_loadu_si256((const __m256i *)(const void *)from);
}

INLINE void keep(int32_t *to, sums a) {
    _mm256_storeu_si256((__m256i *)(void *)to, a);
}

INLINE sums add(sums a, sums b) {
    return _mm256_add_epi32(a, b);
}

INLINE sums subtract(sums a, sums b) {
    return _mm256_sub_epi32(a, b);
}

/* An activation fits the lower 16 bits, where the weight is; the upper ones meet zero. */
INLINE sums fold(sums a, activations h, int16_t weight) {
    return add(a, _mm256_madd_epi16(h, set((uint16_t)weight)));
}

/* What the outputs of a layer share on their way from sums to activations. */
typedef struct way {
    twin_flash curve;
    __m128i shift;
    __m256i half, far, fine, coarse, back, back_half;
} way;

INLINE way way_of(const twin_layer *layer) {
    int b = layer->fraction;
    way how;
    how.curve = layer->curve;
    how.shift = _mm_cvtsi32_si128(layer->shift);
    how.half = set((int32_t)(((uint32_t)1 << layer->shift) >> 1));
    how.far = set((4 << b) - 1);
    how.fine = set(b - 5);
    how.coarse = set(b < 3 ? 0 : b - 3);
    how.back = set(15 - b);
    how.back_half = set((1 << (15 - b)) >> 1);
    return how;
}

/* floor(sum * multiplier / 65536): even columns, then odd ones. */
INLINE sums mulw(sums sum, __m256i multiplier) {
    __m256i even = _mm256_mul_epi32(sum, multiplier);
    __m256i odd = _mm256_mul_epi32(_mm256_srli_epi64(sum, 32), multiplier);
    return _mm256_blend_epi32(_mm256_srli_epi64(even, 16), _mm256_slli_epi64(odd, 16), 0xAA);
}

/* twin_bump for eight. */
INLINE __m256i bump(const way *how, __m256i a) {
    __m256i far = _mm256_cmpgt_epi32(a, how->far), one = set(1), last = set(191);
    __m256i r = subtract(a, _mm256_and_si256(far, add(how->far, one)));
    __m256i width = _mm256_blendv_epi8(how->fine, how->coarse, far);
    __m256i whole = _mm256_srlv_epi32(r, width);
    __m256i k = add(whole, _mm256_and_si256(far, set(128)));
    __m256i rest = subtract(r, _mm256_sllv_epi32(whole, width));
    /* Entries k and k + 1, the second in the upper half. */
    __m256i two =
        _mm256_i32gather_epi32((const int *)(const void *)how->curve, _mm256_min_epi32(k, last), 2);
    __m256i low = _mm256_srai_epi32(_mm256_slli_epi32(two, 16), 16);
    __m256i step = subtract(_mm256_srai_epi32(two, 16), low);
    __m256i g = add(low, _mm256_srav_epi32(_mm256_mullo_epi32(step, rest), width));
    g = _mm256_srav_epi32(add(g, how->back_half), how->back);
    return _mm256_andnot_si256(_mm256_cmpgt_epi32(k, last), g);
}

INLINE activations activate(const way *how, sums sum, int32_t multiplier, int silu) {
    __m256i most = set(TWIN_LARGEST), zero = set(0);
    __m256i z = _mm256_sra_epi32(add(mulw(sum, set(multiplier)), how->half), how->shift), h;
    z = _mm256_min_epi32(z, most);
    h = _mm256_max_epi32(z, zero);
    if (silu) {
        z = _mm256_max_epi32(z, subtract(zero, most));
        h = subtract(h, bump(how, _mm256_abs_epi32(z)));
    }
    return h;
}

/* Which of eight outputs are more than zero somewhere. */
INLINE unsigned which(activations (*h)[TWIN_BLOCK / 8], unsigned all) {
    unsigned r, c, bits = 0;
    EIGHT_TIMES {
        __m256i any = h[r][0];
        for (c = 1; c < all; c++)
            any = _mm256_or_si256(any, h[r][c]);
        bits |= (unsigned)!_mm256_testz_si256(any, any) << r;
    }
    return bits;
}

/* Rows as 16-bit weights: where the pack has them, or widened. */
typedef struct rows {
    const int16_t *row[8];
    int16_t widened[8][MOST_INPUTS + 16];
} rows;

INLINE __m128i load_bytes(const uint8_t *from) {
    return _mm_loadu_si128((const __m128i *)(const void *)from);
}

/* A row of weights, squeezed, and 16 zeros behind it. */
INLINE void squeeze_row(const squeeze *plan, const uint8_t *row, uint8_t *to) {
    uint32_t i;
    for (i = 0; i < plan->sixteens; i++)
        _mm_storeu_si128((__m128i *)(void *)(to + plan->to[i]),
                         _mm_shuffle_epi8(load_bytes(row + 16 * i), load_bytes(plan->from[i])));
    _mm_storeu_si128((__m128i *)(void *)(to + plan->count), _mm_setzero_si128());
}

INLINE void take_rows(rows *eight, const twin_layer *layer, twin_flash weights,
                      const uint32_t *numbers, const squeeze *without) {
    uint32_t i, count = without ? without->count : layer->inputs;
    uint8_t squeezed[MOST_INPUTS + 32];
    unsigned r;
    for (r = 0; r < 8; r++) {
        const uint8_t *row = weights + numbers[r] * layer->row;
        eight->row[r] = (const int16_t *)(const void *)row;
        if (layer->wide)
            continue;
        if (without) {
            squeeze_row(without, row, squeezed);
            row = squeezed;
        }
        eight->row[r] = eight->widened[r];
        for (i = 0; i < count; i += 16) /* behind the last row there is more to read than that */
            _mm256_storeu_si256((__m256i *)(void *)(eight->widened[r] + i),
                                _mm256_cvtepi8_epi16(load_bytes(row + i)));
    }
}

INLINE void take_start(int32_t *start, const twin_layer *layer, rows *eight,
                       const uint32_t *numbers, uint32_t n) {
    unsigned r;
    (void)eight;
    (void)n;
    EIGHT_TIMES start[r] = twin_i32(layer->bias + 4 * numbers[r]);
}

INLINE void sum_inputs(sums *sum, const int32_t *start, const rows *eight, uint32_t inputs,
                       const uint8_t *from, size_t size) {
    uint32_t i;
    unsigned r;
    (void)size;
    EIGHT_TIMES sum[r] = set(start[r]);
    for (i = 0; i < inputs; i += 2) {
        __m256i x = load((const int32_t *)(const void *)(from + 16 * i));
        EIGHT_TIMES {
            int32_t two;
            memcpy(&two, eight->row[r] + i, sizeof two);
            sum[r] = add(sum[r], _mm256_madd_epi16(x, set(two)));
        }
    }
}

/* Two outputs of each column into 32 bits. */
INLINE __m256i beside(activations a, activations b) {
    return _mm256_blend_epi16(a, _mm256_slli_epi32(b, 16), 0xAA);
}

INLINE void store(uint8_t *to, size_t size, uint32_t first, const activations *h) {
    int32_t *out = (int32_t *)(void *)to + 4 * (size_t)first;
    (void)size;
    keep(out, beside(h[0], h[1]));
    keep(out + 8, beside(h[2], h[3]));
}

INLINE void turn(uint8_t *to, unsigned inputs, const twin_flash *anchor) {
    int32_t *out = (int32_t *)(void *)to;
    unsigned i, r;
    for (i = 0; i < twin_align(inputs, 4); i += 2)
        EIGHT_TIMES out[4 * i + r] = twin_i32(anchor[r] + 2 * i);
}

#include "squeeze.h"
#include "layers.h"

static void avx2_first(const twin_layer *layer, const twin_pairs *pairs, void *out,
                       int32_t *difference) {
    if (layer->silu)
        first_layer(layer, pairs, out, difference, 1);
    else
        first_layer(layer, pairs, out, difference, 0);
}

static void avx2_further(const twin_layer *layer, const void *in, void *out, int32_t *difference) {
    if (layer->silu)
        further_layer(layer, in, out, difference, 1);
    else
        further_layer(layer, in, out, difference, 0);
}

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

const twin_kernel twin_kernel_avx2 = {
    PAIRS,         /* pairs */
    4,             /* unit */
    32,            /* align */
    8,             /* partial_bytes */
    4 * PAIRS + 4, /* block_bytes */
    plain_query,   /* query */
    avx2_first,    /* first */
    avx2_further,  /* further */
    2 * PAIRS,     /* room_bytes */
};

#endif
