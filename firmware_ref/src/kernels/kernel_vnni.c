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

TARGET("avx2,avx512f,avx512bw,avx512vnni")

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

/* For sixteen columns what is the same for eight. */
INLINE __m512i twice(__m256i a) {
    return _mm512_broadcast_i64x4(a);
}

/* Entries k and k + 1 of the curve for each k below 192: of twelve vectors, permutes look into two
 * at a time. */
INLINE __m512i look_up(const way *how, __m512i k) {
    const __m512i *two = how->two;
    uint16_t bit5 = _mm512_test_epi32_mask(k, set(32)), bit6 = _mm512_test_epi32_mask(k, set(64));
    uint16_t bit7 = _mm512_test_epi32_mask(k, set(128));
    __m512i a = _mm512_mask_blend_epi32(bit5, _mm512_permutex2var_epi32(two[0], k, two[1]),
                                        _mm512_permutex2var_epi32(two[2], k, two[3]));
    __m512i b = _mm512_mask_blend_epi32(bit5, _mm512_permutex2var_epi32(two[4], k, two[5]),
                                        _mm512_permutex2var_epi32(two[6], k, two[7]));
    __m512i c = _mm512_mask_blend_epi32(bit5, _mm512_permutex2var_epi32(two[8], k, two[9]),
                                        _mm512_permutex2var_epi32(two[10], k, two[11]));
    return _mm512_mask_blend_epi32(bit7, _mm512_mask_blend_epi32(bit6, a, b), c);
}

/* twini_bump for sixteen. Entries of the curve are not negative; and the rest of a step has 12 bits
 * at most, so it is times the lower half alone. */
INLINE __m512i bump(const way *how, __m512i a) {
    __m512i near_end = twice(how->far);
    uint16_t far = _mm512_cmpgt_epi32_mask(a, near_end);
    __m512i r = _mm512_mask_sub_epi32(a, far, a, add(near_end, set(1)));
    __m512i width = _mm512_mask_blend_epi32(far, twice(how->fine), twice(how->coarse));
    __m512i whole = _mm512_srlv_epi32(r, width);
    __m512i k = _mm512_mask_add_epi32(whole, far, whole, set(128));
    __m512i rest = subtract(r, _mm512_sllv_epi32(whole, width));
    __m512i two = look_up(how, k);
    __m512i low = _mm512_and_si512(two, set(UINT16_MAX));
    __m512i step = subtract(_mm512_srli_epi32(two, 16), low);
    __m512i g = _mm512_srav_epi32(_mm512_dpwssd_epi32(none(), step, rest), width);
    g = _mm512_srlv_epi32(add(add(low, g), twice(how->back_half)), twice(how->back));
    return _mm512_mask_blend_epi32(_mm512_cmpgt_epi32_mask(k, set(191)), g, none());
}

/* With relu what is negative is zero in the end, so it can be so before the shift. */
INLINE activations activate(const way *how, sums sum, int32_t multiplier, int silu) {
    __m512i h = add(mulw(sum, set(multiplier)), twice(how->half)), most = set(TWIN_LARGEST), z;
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

#include "x86_ready.h"

#define KERNEL twini_kernel_vnni
#define ALIGN  64
#define QUERY  plain_query
#define WORK   sizeof(work)
#define FORM   &ready_form
#include "host_kernel.h"

TARGET_END

#endif
