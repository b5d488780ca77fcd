/* What the x86-64 kernels share: rows of 16-bit weights, and the way from eight sums to
 * activations. To be included where functions may use AVX2. */

#ifndef TWIN_KERNELS_X86_H
#define TWIN_KERNELS_X86_H

#include "eights.h"
#include <immintrin.h>

INLINE __m256i all_eight(int32_t a) {
    return _mm256_set1_epi32(a);
}

/* What the outputs of a layer share on their way from sums to activations. */
typedef struct way {
    twin_flash curve;
    __m128i shift;
    __m256i half, far, fine, coarse, back, back_half;
} way;

INLINE __m128i load_bytes(const uint8_t *from) {
    return _mm_loadu_si128((const __m128i *)(const void *)from);
}

INLINE way way_of(const twini_layer *layer) {
    int b = layer->fraction;
    way how;
    how.curve = layer->curve;
    how.shift = _mm_cvtsi32_si128(layer->shift);
    how.half = all_eight((int32_t)(((uint32_t)1 << layer->shift) >> 1));
    how.far = all_eight((4 << b) - 1);
    how.fine = all_eight(b - 5);
    how.coarse = all_eight(b < 3 ? 0 : b - 3);
    how.back = all_eight(15 - b);
    how.back_half = all_eight((1 << (15 - b)) >> 1);
    return how;
}

/* floor(sum * multiplier / 65536): lower and upper halves separately. */
INLINE __m256i mulw_eight(__m256i sum, int32_t multiplier) {
    __m256i upper = _mm256_madd_epi16(sum, all_eight(multiplier * 65536));
    return _mm256_add_epi32(upper, _mm256_mulhi_epu16(sum, all_eight(multiplier)));
}

/* twini_bump for eight. */
INLINE __m256i bump_eight(const way *how, __m256i a) {
    __m256i far = _mm256_cmpgt_epi32(a, how->far), one = all_eight(1), last = all_eight(191);
    __m256i r = _mm256_sub_epi32(a, _mm256_and_si256(far, _mm256_add_epi32(how->far, one)));
    __m256i width = _mm256_blendv_epi8(how->fine, how->coarse, far);
    __m256i whole = _mm256_srlv_epi32(r, width);
    __m256i k = _mm256_add_epi32(whole, _mm256_and_si256(far, all_eight(128)));
    __m256i rest = _mm256_sub_epi32(r, _mm256_sllv_epi32(whole, width));
    /* Entries k and k + 1, the second in the upper half. */
    __m256i two =
        _mm256_i32gather_epi32((const int *)(const void *)how->curve, _mm256_min_epi32(k, last), 2);
    __m256i low = _mm256_srai_epi32(_mm256_slli_epi32(two, 16), 16);
    __m256i step = _mm256_sub_epi32(_mm256_srai_epi32(two, 16), low);
    __m256i g = _mm256_add_epi32(low, _mm256_srav_epi32(_mm256_mullo_epi32(step, rest), width));
    g = _mm256_srav_epi32(_mm256_add_epi32(g, how->back_half), how->back);
    return _mm256_andnot_si256(_mm256_cmpgt_epi32(k, last), g);
}

INLINE __m256i activate_eight(const way *how, __m256i sum, int32_t multiplier, int silu) {
    __m256i most = all_eight(TWIN_LARGEST), zero = all_eight(0);
    __m256i z = _mm256_sra_epi32(_mm256_add_epi32(mulw_eight(sum, multiplier), how->half),
                                 how->shift),
            h;
    z = _mm256_min_epi32(z, most);
    h = _mm256_max_epi32(z, zero);
    if (silu) {
        z = _mm256_max_epi32(z, _mm256_sub_epi32(zero, most));
        h = _mm256_sub_epi32(h, bump_eight(how, _mm256_abs_epi32(z)));
    }
    return h;
}

/* Rows of 16-bit weights: in the pack, or widened. */
typedef struct rows {
    const int16_t *row[8];
} rows;

typedef struct rows_room {
    int16_t widened[8][MOST_INPUTS + 16];
    uint8_t squeezed[MOST_INPUTS + 32];
} rows_room;

/* A row of weights, squeezed and followed by 16 zeros. */
INLINE void squeeze_row(const squeeze *plan, const uint8_t *row, uint8_t *to) {
    uint32_t i;
    for (i = 0; i < plan->sixteens; i++)
        _mm_storeu_si128((__m128i *)(void *)(to + plan->to[i]),
                         _mm_shuffle_epi8(load_bytes(row + 16 * i), load_bytes(plan->from[i])));
    _mm_storeu_si128((__m128i *)(void *)(to + plan->count), _mm_setzero_si128());
}

INLINE void take_rows(rows *eight, rows_room *room, const twini_layer *layer, twin_flash weights,
                      const uint32_t *numbers, const squeeze *without) {
    uint32_t i, count = without ? without->count : layer->inputs;
    unsigned r;
    for (r = 0; r < 8; r++) {
        const uint8_t *row = weights + numbers[r] * layer->row;
        eight->row[r] = (const int16_t *)(const void *)row;
        if (layer->wide)
            continue;
        if (without) {
            squeeze_row(without, row, room->squeezed);
            row = room->squeezed;
        }
        eight->row[r] = room->widened[r];
        for (i = 0; i < count; i += 16) /* safe: more data follows the last row */
            _mm256_storeu_si256((__m256i *)(void *)(room->widened[r] + i),
                                _mm256_cvtepi8_epi16(load_bytes(row + i)));
    }
}

INLINE void take_start(int32_t *start, const twini_layer *layer, rows *eight,
                       const uint32_t *numbers, uint32_t n) {
    unsigned r;
    (void)eight;
    (void)n;
    EIGHT_TIMES start[r] = twini_i32(layer->bias + 4 * numbers[r]);
}

#endif
