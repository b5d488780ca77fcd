/* x86-64 with AVX2: VPMADDWD multiplies two activations of each column with two weights. In an
 * eight, pairs of outputs lie side by side: [2 activations at a time][8 columns][2]. */

#include "host.h"

#if TWIN_HOST_X86

#define PAIRS       TWIN_BLOCK
#define PLACE(i, c) 0 /* nothing is stored in the plain way */

#define MULTIPLIER_SHIFT 0

#include "plain.h"

#if TWIN_HOST_EMULATED
#elif defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif

#include "x86.h"

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

INLINE activations activate(const way *how, sums sum, int32_t multiplier, int silu) {
    return activate_eight(how, sum, multiplier, silu);
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

#if TWIN_HOST_EMULATED
#elif defined(__clang__)
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
    0,             /* lines */
};

#endif
