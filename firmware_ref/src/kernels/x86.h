/* What the x86-64 kernels share, with AVX2: rows of 16-bit weights, the way from eight sums
 * to activations, and for prepared models the share of eight anchors. */

#ifndef TWIN_KERNELS_X86_H
#define TWIN_KERNELS_X86_H

#include "../twin_prepared.h"
#include "eights.h"

#if TWIN_HOST_X86

#include <immintrin.h>

TARGET("avx2")

INLINE __m256i x86_all_eight(int32_t a) {
    return _mm256_set1_epi32(a);
}

/* What the outputs of a layer share on their way from sums to activations. */
typedef struct x86_way {
    twin_flash curve;
    __m128i shift;
    __m256i half, far, fine, coarse, back, back_half;
} x86_way;

INLINE __m128i x86_load_bytes(const uint8_t *from) {
    return _mm_loadu_si128((const __m128i *)(const void *)from);
}

INLINE x86_way x86_way_of(const twini_layer *layer) {
    int b = layer->fraction;
    x86_way how;
    how.curve = layer->curve;
    how.shift = _mm_cvtsi32_si128(layer->shift);
    how.half = x86_all_eight((int32_t)(((uint32_t)1 << layer->shift) >> 1));
    how.far = x86_all_eight((4 << b) - 1);
    how.fine = x86_all_eight(b - 5);
    how.coarse = x86_all_eight(b < 3 ? 0 : b - 3);
    how.back = x86_all_eight(15 - b);
    how.back_half = x86_all_eight((1 << (15 - b)) >> 1);
    return how;
}

/* floor(sum * multiplier / 65536): lower and upper halves separately. */
INLINE __m256i x86_mulw_eight(__m256i sum, int32_t multiplier) {
    __m256i upper = _mm256_madd_epi16(sum, x86_all_eight(multiplier * 65536));
    return _mm256_add_epi32(upper, _mm256_mulhi_epu16(sum, x86_all_eight(multiplier)));
}

/* twini_bump for eight. */
INLINE __m256i x86_bump_eight(const x86_way *how, __m256i a) {
    __m256i far = _mm256_cmpgt_epi32(a, how->far), one = x86_all_eight(1),
            last = x86_all_eight(191);
    __m256i r = _mm256_sub_epi32(a, _mm256_and_si256(far, _mm256_add_epi32(how->far, one)));
    __m256i width = _mm256_blendv_epi8(how->fine, how->coarse, far);
    __m256i whole = _mm256_srlv_epi32(r, width);
    __m256i k = _mm256_add_epi32(whole, _mm256_and_si256(far, x86_all_eight(128)));
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

INLINE __m256i x86_activate_eight(const x86_way *how, __m256i sum, int32_t multiplier, int silu) {
    __m256i most = x86_all_eight(TWIN_LARGEST), zero = x86_all_eight(0);
    __m256i z = _mm256_sra_epi32(_mm256_add_epi32(x86_mulw_eight(sum, multiplier), how->half),
                                 how->shift),
            h;
    z = _mm256_min_epi32(z, most);
    h = _mm256_max_epi32(z, zero);
    if (silu) {
        z = _mm256_max_epi32(z, _mm256_sub_epi32(zero, most));
        h = _mm256_sub_epi32(h, x86_bump_eight(how, _mm256_abs_epi32(z)));
    }
    return h;
}

/* Rows of 16-bit weights: in the pack, or widened. */
typedef struct x86_rows {
    const int16_t *row[8];
} x86_rows;

typedef struct x86_rows_room {
    int16_t widened[8][MOST_INPUTS + 16];
    uint8_t squeezed[MOST_INPUTS + 32];
} x86_rows_room;

/* A row of weights, squeezed and followed by 16 zeros. */
INLINE void x86_squeeze_row(const squeeze *plan, const uint8_t *row, uint8_t *to) {
    uint32_t i;
    for (i = 0; i < plan->sixteens; i++)
        _mm_storeu_si128(
            (__m128i *)(void *)(to + plan->to[i]),
            _mm_shuffle_epi8(x86_load_bytes(row + 16 * i), x86_load_bytes(plan->from[i])));
    _mm_storeu_si128((__m128i *)(void *)(to + plan->count), _mm_setzero_si128());
}

INLINE void x86_take_rows(x86_rows *eight, x86_rows_room *room, const twini_layer *layer,
                          twin_flash weights, const uint32_t *numbers, const squeeze *without) {
    uint32_t i, count = without ? without->count : layer->inputs;
    unsigned r;
    for (r = 0; r < 8; r++) {
        const uint8_t *row = weights + numbers[r] * layer->row;
        eight->row[r] = (const int16_t *)(const void *)row;
        if (layer->wide)
            continue;
        if (without) {
            x86_squeeze_row(without, row, room->squeezed);
            row = room->squeezed;
        }
        eight->row[r] = room->widened[r];
        for (i = 0; i < count; i += 16) /* safe: more data follows the last row */
            _mm256_storeu_si256((__m256i *)(void *)(room->widened[r] + i),
                                _mm256_cvtepi8_epi16(x86_load_bytes(row + i)));
    }
}

INLINE void x86_take_start(int32_t *start, const twini_layer *layer, x86_rows *eight,
                           const uint32_t *numbers, uint32_t n) {
    unsigned r;
    (void)eight;
    (void)n;
    EIGHT_TIMES start[r] = twini_i32(layer->bias + 4 * numbers[r]);
}

/* The curve of silu as lines: one number for each step of the curve, with the entry where the step
 * begins in the lower half, and the difference to the next entry in the upper one. Let b be the
 * fraction bits of a layer, and r how far a is past the start of its step; four times that in the
 * first steps, which are a quarter as wide as the others. Then
 *
 *     bump(a) = ((entry << (b - 3)) + step * r + half) >> 12       half: 2048; 0 for b = 15
 *
 * is what FORMAT.md says, with two shifts in one. */
INLINE int32_t x86_line_at(twin_flash curve, unsigned k) {
    int32_t entry = twini_i16(curve + 2 * k);
    return entry + (twini_i16(curve + 2 * k + 2) - entry) * 65536;
}

/* The share of eight anchors in the first layer of a prepared model. */
static inline void x86_anchors(const twini_prepared_twin *twin, const int16_t *features_by_eight,
                               int32_t *share) {
    uint32_t n = twini_padded(twin->layer[0].outputs), features = twin->features, o, i, second, r;
    int32_t *most = share + 2 * TWIN_EIGHT * n;
    for (second = 0; second < 2; second++) {
        const int16_t *weights = twin->first + (second ? 0 : features * (size_t)n);
        for (o = 0; o < n; o++) {
            int32_t *of_eight = share + TWIN_EIGHT * (2 * o + second), largest = INT32_MIN;
            __m256i sum = x86_all_eight(0);
            for (i = 0; i < features; i++) {
                const int16_t *eight = features_by_eight + TWIN_EIGHT * i;
                __m128i from = x86_load_bytes((const uint8_t *)(const void *)eight);
                __m256i weight = x86_all_eight((uint16_t)weights[i * (size_t)n + o]);
                sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_cvtepu16_epi32(from), weight));
            }
            _mm256_storeu_si256((__m256i *)(void *)of_eight, sum);
            for (r = 0; r < TWIN_EIGHT; r++)
                largest = of_eight[r] > largest ? of_eight[r] : largest;
            most[second * n + o] = largest;
        }
    }
}

TARGET_END

#endif

#endif
