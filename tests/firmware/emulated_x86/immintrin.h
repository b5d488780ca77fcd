/* Instead of the compiler's header for x86-64: functions instead of instructions, on any machine.
 */

#pragma once
#include <simde/x86/avx2.h>
#include <simde/x86/avx512.h>

/* What it lacks, number by number. */
#define EACH(type, count, expression)                                                              \
    type x[count], y[count];                                                                       \
    int i;                                                                                         \
    simde_mm512_storeu_si512(x, a);                                                                \
    simde_mm512_storeu_si512(y, b);                                                                \
    for (i = 0; i < count; i++)                                                                    \
        x[i] = (type)(expression);                                                                 \
    return simde_mm512_loadu_si512(x);

static __m512i shift_each(__m512i a, __m512i b) {
    EACH(int32_t, 16, x[i] >> (y[i] < 31 ? y[i] : 31))
}
static __m512i high_products(__m512i a, __m512i b) {
    EACH(uint16_t, 32, (uint32_t)x[i] * y[i] >> 16)
}
static __m512i shift_some(__m512i a, uint32_t which, __m512i b, unsigned by) {
    EACH(uint16_t, 32, which >> i & 1 ? y[i] << by : x[i])
}
static __m512i gather(__m512i a, unsigned which, __m512i b, const int32_t *from) {
    EACH(int32_t, 16, which >> i & 1 ? from[y[i]] : x[i])
}
static __m512i widen(__m256i from) {
    uint16_t narrow[32];
    __m512i a, b;
    simde_mm256_storeu_si256(narrow, from);
    a = b = simde_mm512_loadu_si512(narrow);
    EACH(uint32_t, 16, narrow[i])
}
#define _mm512_sra_epi32(a, by)                              shift_each(a, simde_mm512_set1_epi32(_mm_cvtsi128_si32(by)))
#define _mm512_srav_epi32                                    shift_each
#define _mm512_mulhi_epu16                                   high_products
#define _mm512_mask_slli_epi16                               shift_some
#define _mm512_mask_i32gather_epi32(a, which, n, from, size) gather(a, which, n, from)
#define _mm512_cvtepu16_epi32                                widen
#define _mm256_dpwssd_avx_epi32(a, x, y)                     simde_mm256_add_epi32(a, simde_mm256_madd_epi16(x, y))

/* Tiles: here of one thread, and always whole. */
typedef union tile {
    uint8_t byte[16][64];
    int32_t number[16][16];
} tile;
static tile tiles[8];
static void multiply_tiles(tile *sum, const tile *a, const tile *b, int is_unsigned) {
    int m, n, k;
    for (m = 0; m < 16; m++)
        for (n = 0; n < 16; n++)
            for (k = 0; k < 64; k++) {
                int right = b->byte[k / 4][4 * n + k % 4];
                if (!is_unsigned)
                    right = (int8_t)right;
                sum->number[m][n] += (int8_t)a->byte[m][k] * right;
            }
}
static void move_tile(char *to, size_t ahead, const char *from, size_t behind) {
    int m;
    for (m = 0; m < 16; m++)
        memcpy(to + m * ahead, from + m * behind, 64);
}
#define _tile_loadconfig(at)         ((void)(at))
#define _tile_release()              ((void)0)
#define _tile_zero(n)                memset(&tiles[n], 0, sizeof(tile))
#define _tile_loadd(n, from, stride) move_tile((char *)&tiles[n], 64, (const char *)(from), stride)
#define _tile_stored(n, to, stride)  move_tile((char *)(to), stride, (const char *)&tiles[n], 64)
#define _tile_dpbsud(c, a, b)        multiply_tiles(&tiles[c], &tiles[a], &tiles[b], 1)
#define _tile_dpbssd(c, a, b)        multiply_tiles(&tiles[c], &tiles[a], &tiles[b], 0)
