/* Vectors of 256 or 512 bits, as layers.h wants them. A kernel file defines first
 *
 *     NAME(word)                   its prefix
 *     LANES                        of 32 bits in a vector: 8 or 16
 *     ADD_PRODUCTS(sums, x, y)     adds two 16-bit products to each sum
 *
 * and includes this where functions may use the instructions. In an eight, pairs of outputs are
 * side by side: [2 activations at a time][LANES columns][2]. */

/* Intrinsics for vectors of LANES. */
#if LANES == 16
#define V(name) _mm512_##name
#define W(name) _mm512_##name##_si512
#else
#define V(name) _mm256_##name
#define W(name) _mm256_##name##_si256
#endif

#define sums         NAME(sums)
#define activations  NAME(activations)
#define none         NAME(none)
#define set          NAME(set)
#define load         NAME(load)
#define keep         NAME(keep)
#define add          NAME(add)
#define subtract     NAME(subtract)
#define add_products NAME(add_products)
#define fold_in      NAME(fold_in)
#define activate     NAME(activate)
#define which        NAME(which)
#define sum_inputs   NAME(sum_inputs)
#define store        NAME(store)
#define transpose    NAME(transpose)

#define way        x86_way
#define way_of     x86_way_of
#define rows       x86_rows
#define rows_room  x86_rows_room
#define take_rows  x86_take_rows
#define take_start x86_take_start

#if LANES == 16
typedef __m512i sums;
#else
typedef __m256i sums;
#endif
typedef sums activations; /* of 32 bits */

INLINE activations none(void) {
    return W(setzero)();
}

INLINE sums set(int32_t a) {
    return V(set1_epi32)(a);
}

INLINE sums load(const int32_t *from) {
    return W(loadu)((const sums *)(const void *)from);
}

INLINE void keep(int32_t *to, sums a) {
    W(storeu)((sums *)(void *)to, a);
}

INLINE sums add(sums a, sums b) {
    return V(add_epi32)(a, b);
}

INLINE sums subtract(sums a, sums b) {
    return V(sub_epi32)(a, b);
}

/* Two products of 16 bits, added to each sum. */
INLINE sums add_products(sums a, sums x, sums y) {
    return ADD_PRODUCTS(a, x, y);
}

/* An activation fits the lower 16 bits, where the weight is; the upper ones meet zero. */
INLINE sums fold_in(sums a, activations h, int16_t weight) {
    return add_products(a, h, set((uint16_t)weight));
}

#if LANES == 16
/* floor(sum * multiplier / 65536): even columns, then odd ones. */
INLINE sums NAME(mulw)(sums sum, sums multiplier) {
    sums even = _mm512_mul_epi32(sum, multiplier);
    sums odd = _mm512_mul_epi32(_mm512_srli_epi64(sum, 32), multiplier);
    return _mm512_mask_blend_epi32(0xAAAA, _mm512_srli_epi64(even, 16), _mm512_slli_epi64(odd, 16));
}

/* With relu negative sums end up zero, so they may be zero before the shift. */
INLINE activations activate(const way *how, sums sum, int32_t multiplier, int silu) {
    sums h;
    if (silu) {
        __m256i low = x86_activate_eight(how, _mm512_castsi512_si256(sum), multiplier, 1);
        __m256i high = x86_activate_eight(how, _mm512_extracti64x4_epi64(sum, 1), multiplier, 1);
        return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    }
    h = add(NAME(mulw)(sum, set(multiplier)), _mm512_broadcast_i64x4(how->half));
    h = _mm512_srl_epi32(_mm512_max_epi32(h, none()), how->shift);
    return _mm512_min_epi32(h, set(TWIN_LARGEST));
}

INLINE unsigned NAME(is_any)(activations a) {
    return _mm512_test_epi32_mask(a, a) != 0;
}

/* Two outputs of each column into 32 bits. */
INLINE sums NAME(beside)(activations a, activations b) {
    return _mm512_or_si512(_mm512_and_si512(a, set(UINT16_MAX)), _mm512_slli_epi32(b, 16));
}
#else
INLINE activations activate(const way *how, sums sum, int32_t multiplier, int silu) {
    return x86_activate_eight(how, sum, multiplier, silu);
}

INLINE unsigned NAME(is_any)(activations a) {
    return (unsigned)!_mm256_testz_si256(a, a);
}

/* Two outputs of each column into 32 bits. */
INLINE sums NAME(beside)(activations a, activations b) {
    return _mm256_blend_epi16(a, _mm256_slli_epi32(b, 16), 0xAA);
}
#endif

/* Which of eight outputs are positive in any column. */
INLINE unsigned which(activations (*h)[TWIN_BLOCK / LANES], unsigned all) {
    unsigned r, c, bits = 0;
    EIGHT_TIMES {
        activations any = h[r][0];
        for (c = 1; c < all; c++)
            any = W(or)(any, h[r][c]);
        bits |= NAME(is_any)(any) << r;
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
        sums x = load((const int32_t *)(const void *)(from + 2 * LANES * i));
        EIGHT_TIMES {
            int32_t two;
            memcpy(&two, eight->row[r] + i, sizeof two);
            sum[r] = add_products(sum[r], x, set(two));
        }
    }
}

INLINE void store(uint8_t *to, size_t size, uint32_t first, const activations *h) {
    int32_t *out = (int32_t *)(void *)to + LANES / 2 * (size_t)first;
    (void)size;
    keep(out, NAME(beside)(h[0], h[1]));
    keep(out + LANES, NAME(beside)(h[2], h[3]));
}

INLINE void transpose(uint8_t *to, unsigned inputs, const twin_flash *anchor) {
    int32_t *out = (int32_t *)(void *)to;
    unsigned i, c;
    for (i = 0; i < twini_align(inputs, 4); i += 2)
        for (c = 0; c < LANES; c++)
            out[LANES / 2 * i + c] = twini_i32(anchor[c] + 2 * i);
}
