/* Kernels with vectors of 512 bits: VPDPWSSD multiplies two activations of each of sixteen columns
 * with two weights, and adds both. In an eight, pairs of outputs lie side by side:
 * [2 activations at a time][16 columns][2]. To be included where functions may use AVX-512-VNNI. */

#ifndef TWIN_KERNELS_X86_ZMM_H
#define TWIN_KERNELS_X86_ZMM_H

#define PAIRS       TWIN_BLOCK
#define PLACE(i, c) 0 /* nothing is stored in the plain way */

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

/* floor(sum * multiplier / 65536): lower halves apart from upper ones. */
INLINE sums mulw(sums sum, int32_t multiplier) {
    return _mm512_dpwssd_epi32(_mm512_mulhi_epu16(sum, set(multiplier)), sum,
                               set(multiplier * 65536));
}

/* For sixteen columns what is the same for eight. */
INLINE __m512i twice(__m256i a) {
    return _mm512_broadcast_i64x4(a);
}

INLINE __m512i bump(const way *how, __m512i a) {
    __m256i low = bump_eight(how, _mm512_castsi512_si256(a));
    __m256i high = bump_eight(how, _mm512_extracti64x4_epi64(a, 1));
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

/* With relu what is negative is zero in the end, so it can be so before the shift. */
INLINE activations activate(const way *how, sums sum, int32_t multiplier, int silu) {
    __m512i h = add(mulw(sum, multiplier), twice(how->half)), most = set(TWIN_LARGEST), z;
    if (!silu)
        return _mm512_min_epi32(_mm512_srl_epi32(_mm512_max_epi32(h, none()), how->shift), most);
    z = _mm512_min_epi32(_mm512_sra_epi32(h, how->shift), most);
    z = _mm512_max_epi32(z, subtract(none(), most));
    return subtract(_mm512_max_epi32(z, none()), bump(how, _mm512_abs_epi32(z)));
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
