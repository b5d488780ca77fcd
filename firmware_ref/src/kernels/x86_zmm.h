/* Kernels with 512-bit vectors: VPDPWSSD multiplies two activations of each of sixteen columns by
 * two weights, and adds both. In an eight, pairs of outputs are side by side:
 * [2 activations at a time][16 columns][2]. To be included where functions may use AVX-512-VNNI. */

#ifndef TWIN_KERNELS_X86_ZMM_H
#define TWIN_KERNELS_X86_ZMM_H

#define PAIRS       TWIN_BLOCK
#define PLACE(i, c) 0 /* unused: nothing is stored the plain way */

#define MULTIPLIER_SHIFT 0
#define LANES            16

#include "plain.h"
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

/* With relu negative sums end up zero, so they may be zero before the shift. */
INLINE activations activate(const way *how, sums sum, int32_t multiplier, int silu) {
    __m512i h;
    if (silu) {
        __m256i low = activate_eight(how, _mm512_castsi512_si256(sum), multiplier, 1);
        __m256i high = activate_eight(how, _mm512_extracti64x4_epi64(sum, 1), multiplier, 1);
        return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    }
    h = add(mulw(sum, set(multiplier)), _mm512_broadcast_i64x4(how->half));
    h = _mm512_srl_epi32(_mm512_max_epi32(h, none()), how->shift);
    return _mm512_min_epi32(h, set(TWIN_LARGEST));
}

/* Two products of 16 bits, added to each sum. */
INLINE sums add_products(sums a, __m512i x, __m512i y) {
    return _mm512_dpwssd_epi32(a, x, y);
}

INLINE activations either(activations a, activations b) {
    return _mm512_or_si512(a, b);
}

INLINE unsigned is_any(activations a) {
    return _mm512_test_epi32_mask(a, a) != 0;
}

/* Two outputs of each column into 32 bits. */
INLINE __m512i beside(activations a, activations b) {
    return _mm512_or_si512(_mm512_and_si512(a, set(UINT16_MAX)), _mm512_slli_epi32(b, 16));
}

#include "x86_eights.h"

#include "squeeze.h"

#define ALIGN 64
#define QUERY plain_query
#define WORK  sizeof(work)
#define FORM  &ready_form

#endif
