/* x86-64 with AVX-512-VNNI: VPDPWSSD multiplies two activations of each of sixteen columns with two
 * weights, and adds both. (VPDPBUSD would take bytes, so 16-bit activations need it twice.) In an
 * eight, pairs of outputs lie side by side: [2 activations at a time][16 columns][2]. */

#include "host.h"

#if TWIN_HOST_VNNI

#define PAIRS       TWIN_BLOCK
#define PLACE(i, c) 0 /* nothing is stored in the plain way */

#define MULTIPLIER_SHIFT 0
#define LANES            16

#include "plain.h"

#if TWIN_HOST_EMULATED
#elif defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,avx512f,avx512vnni"))),                   \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,avx512f,avx512vnni")
#endif

#include "x86.h"

typedef __m512i sums;
typedef __m512i activations; /* of 32 bits */

INLINE activations none(void) {
    return _mm512_setzero_si512();
}

INLINE sums set(int32_t a) {
    return _mm512_set1_epi32(a);
}

INLINE sums load(const int32_t *from) {
    return _mm512_loadu_si512(from);
}

INLINE void keep(int32_t *to, sums a) {
    _mm512_storeu_si512(to, a);
}

INLINE sums add(sums a, sums b) {
    return _mm512_add_epi32(a, b);
}

INLINE sums subtract(sums a, sums b) {
    return _mm512_sub_epi32(a, b);
}

/* An activation fits the lower 16 bits, where the weight is; the upper ones meet zero. */
INLINE sums fold(sums a, activations h, int16_t weight) {
    return _mm512_dpwssd_epi32(a, h, set((uint16_t)weight));
}

/* floor(sum * multiplier / 65536): even columns, then odd ones. */
INLINE sums mulw(sums sum, __m512i multiplier) {
    __m512i even = _mm512_mul_epi32(sum, multiplier);
    __m512i odd = _mm512_mul_epi32(_mm512_srli_epi64(sum, 32), multiplier);
    return _mm512_mask_blend_epi32(0xAAAA, _mm512_srli_epi64(even, 16), _mm512_slli_epi64(odd, 16));
}

/* With relu what is negative is zero in the end, so it can be so before the shift. */
INLINE activations activate(const way *how, sums sum, int32_t multiplier, int silu) {
    __m512i h;
    if (silu) {
        __m256i low = activate_eight(how, _mm512_castsi512_si256(sum), multiplier, 1);
        __m256i high = activate_eight(how, _mm512_extracti64x4_epi64(sum, 1), multiplier, 1);
        return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    }
    h = add(mulw(sum, set(multiplier)), _mm512_broadcast_i32x4(_mm256_castsi256_si128(how->half)));
    h = _mm512_srl_epi32(_mm512_max_epi32(h, none()), how->shift);
    return _mm512_min_epi32(h, set(TWIN_LARGEST));
}

/* Which of eight outputs are more than zero somewhere. */
INLINE unsigned which(activations (*h)[TWIN_BLOCK / LANES], unsigned all) {
    unsigned r, c, bits = 0;
    EIGHT_TIMES {
        __m512i any = h[r][0];
        for (c = 1; c < all; c++)
            any = _mm512_or_si512(any, h[r][c]);
        bits |= (unsigned)(_mm512_test_epi32_mask(any, any) != 0) << r;
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
        __m512i x = load((const int32_t *)(const void *)(from + 2 * LANES * i));
        EIGHT_TIMES {
            int32_t two;
            memcpy(&two, eight->row[r] + i, sizeof two);
            sum[r] = _mm512_dpwssd_epi32(sum[r], x, set(two));
        }
    }
}

/* Two outputs of each column into 32 bits. */
INLINE __m512i beside(activations a, activations b) {
    return _mm512_or_si512(_mm512_and_si512(a, set(UINT16_MAX)), _mm512_slli_epi32(b, 16));
}

INLINE void store(uint8_t *to, size_t size, uint32_t first, const activations *h) {
    int32_t *out = (int32_t *)(void *)to + LANES / 2 * (size_t)first;
    (void)size;
    keep(out, beside(h[0], h[1]));
    keep(out + LANES, beside(h[2], h[3]));
}

INLINE void turn(uint8_t *to, unsigned inputs, const twin_flash *anchor) {
    int32_t *out = (int32_t *)(void *)to;
    unsigned i, c;
    for (i = 0; i < twin_align(inputs, 4); i += 2)
        for (c = 0; c < LANES; c++)
            out[LANES / 2 * i + c] = twin_i32(anchor[c] + 2 * i);
}

#include "squeeze.h"
#include "layers.h"

static void vnni_first(const twin_layer *layer, const twin_pairs *pairs, void *out,
                       int32_t *difference) {
    if (layer->silu)
        first_layer(layer, pairs, out, difference, 1);
    else
        first_layer(layer, pairs, out, difference, 0);
}

static void vnni_further(const twin_layer *layer, const void *in, void *out, int32_t *difference) {
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

const twin_kernel twin_kernel_vnni = {
    PAIRS,         /* pairs */
    4,             /* unit */
    64,            /* align */
    8,             /* partial_bytes */
    4 * PAIRS + 4, /* block_bytes */
    plain_query,   /* query */
    vnni_first,    /* first */
    vnni_further,  /* further */
    2 * PAIRS,     /* room_bytes */
    0,             /* lines */
};

#endif
