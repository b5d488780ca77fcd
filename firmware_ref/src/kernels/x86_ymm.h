/* Kernels with 256-bit vectors, from ADD_PRODUCTS(sums, x, y): adds two 16-bit products to each
 * sum. In an eight, pairs of outputs are side by side: [2 activations at a time][8 columns][2]. To
 * be included where functions may use the instructions. */

#ifndef TWIN_KERNELS_X86_YMM_H
#define TWIN_KERNELS_X86_YMM_H

#define PAIRS       TWIN_BLOCK
#define PLACE(i, c) 0 /* unused: nothing is stored the plain way */

#define MULTIPLIER_SHIFT 0

#include "plain.h"
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

/* Two products of 16 bits, added to each sum. */
INLINE sums add_products(sums a, __m256i x, __m256i y) {
    return ADD_PRODUCTS(a, x, y);
}

/* An activation fits the lower 16 bits, where the weight is; the upper ones meet zero. */
INLINE sums fold(sums a, activations h, int16_t weight) {
    return add_products(a, h, set((uint16_t)weight));
}

INLINE activations activate(const way *how, sums sum, int32_t multiplier, int silu) {
    return activate_eight(how, sum, multiplier, silu);
}

INLINE activations either(activations a, activations b) {
    return _mm256_or_si256(a, b);
}

INLINE unsigned is_any(activations a) {
    return (unsigned)!_mm256_testz_si256(a, a);
}

/* Two outputs of each column into 32 bits. */
INLINE __m256i beside(activations a, activations b) {
    return _mm256_blend_epi16(a, _mm256_slli_epi32(b, 16), 0xAA);
}

#include "x86_eights.h"

#include "squeeze.h"

#define ALIGN 32
#define QUERY plain_query
#define WORK  sizeof(work)
#define FORM  &ready_form

#endif
