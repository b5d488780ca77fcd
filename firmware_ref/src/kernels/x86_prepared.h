/* A prepared model on x86-64 (twin_prepared.h), for vectors of x86_vectors.h. Eight anchors in both
 * orders are sixteen columns, ACROSS vectors of LANES. Four outputs are made at a time, as 16-bit
 * words. How products are summed is in amx_tiles.h if TILES is defined, else in x86_words.h; from
 * there come, under NAME,
 *
 *     weight_bytes, arrange, work_bytes, fill_table    as in twini_form
 *     block_bytes       of activations, before the sums
 *     put_four          activations of four outputs, in vector v
 *     sum_products      sums of a further layer, from these
 *     four_of_sums      activations of four outputs, in vector v, from these
 *     subtract_bumps    for silu */

#define words           NAME(words)
#define four            NAME(four)
#define prepared_way    NAME(prepared_way)
#define prepared_totals NAME(prepared_totals)
#define first_shares    NAME(first_shares)

#define ALL_COLUMNS (2 * TWIN_EIGHT)
#define ACROSS      (ALL_COLUMNS / LANES)

/* For loops over the vectors of a row. */
#define EACH_VECTOR UNROLLED for (v = 0; v < ACROSS; v++)

typedef sums words; /* twice as many, of 16 bits */

/* The same 16 bytes in each part of a vector. */
INLINE words NAME(everywhere)(__m128i a) {
#if LANES == 16
    return _mm512_broadcast_i32x4(a);
#else
    return _mm256_broadcastsi128_si256(a);
#endif
}

/* Lower halves of one, upper halves of the other. */
INLINE words NAME(merge)(words lower, words upper) {
#if LANES == 16
    return _mm512_mask_blend_epi16(0xAAAAAAAA, lower, upper);
#else
    return _mm256_blend_epi16(lower, upper, 0xAA);
#endif
}

/* Four times what is at most `limit`, the rest unchanged. */
INLINE words NAME(quadruple)(words a, words limit) {
#if LANES == 16
    return _mm512_mask_slli_epi16(a, _mm512_cmple_epi16_mask(a, limit), a, 2);
#else
    return _mm256_blendv_epi8(_mm256_slli_epi16(a, 2), a, _mm256_cmpgt_epi16(a, limit));
#endif
}

/* What the outputs of a layer share on their way from sums to activations. */
typedef struct prepared_way {
    const int32_t *lines;
    sums shift, half, entry, rounding;
    words fine, coarse, last_fine, rest;
} prepared_way;

/* With relu the lines are unused. */
INLINE prepared_way NAME(prepared_way_of)(const twini_prepared_layer *layer, int silu) {
    int b = silu ? layer->fraction : 5, c = b - 3;
    prepared_way how;
    how.shift = set(layer->shift);
    how.half = set((int32_t)(((uint32_t)1 << layer->shift) >> 1));
    how.lines = (const int32_t *)layer->table;
    how.entry = set(1 << c);
    how.rounding = set(b < 15 ? 2048 : 0);
    how.fine = V(set1_epi16)((int16_t)(65536 >> (b - 4)));
    how.coarse = V(set1_epi16)((int16_t)(65536 >> (c + 1)));
    how.last_fine = V(set1_epi16)((int16_t)(b < 13 ? (4 << b) - 1 : TWIN_LARGEST));
    how.rest = V(set1_epi16)((int16_t)((1 << c) - 1));
    return how;
}

/* The step that z is in, and r in it. A product is faster than a shift. */
INLINE words NAME(step_of)(const prepared_way *how, words z, words *r) {
    words a = V(abs_epi16)(z), doubled = V(add_epi16)(a, a);
    words fine = V(mulhi_epu16)(doubled, how->fine), coarse = V(mulhi_epu16)(doubled, how->coarse);
    *r = W(and)(NAME(quadruple)(a, how->last_fine), how->rest);
    return V(min_epu16)(fine, V(add_epi16)(coarse, V(set1_epi16)(TWIN_COARSE * 3 / 4)));
}

/* A number times 65536, loaded with the zeros of the 32-bit number before it. */
INLINE sums NAME(set_upper)(const int32_t *number) {
    int32_t upper;
    memcpy(&upper, (const uint8_t *)number - 2, sizeof upper);
    return set(upper);
}

/* rsh(mulw(sum, multiplier), shift): lower and upper halves are multiplied separately. */
INLINE sums NAME(scale)(const prepared_way *how, sums sum, const int32_t *multiplier) {
    sums lower = add(V(mulhi_epu16)(sum, set(*multiplier)), how->half);
    return V(srav_epi32)(add_products(lower, sum, NAME(set_upper)(multiplier)), how->shift);
}

/* Four outputs: their activations are two words, and in each 16 bytes of one are four columns of an
 * output, then of the next. */
typedef struct four {
    words two[2];
} four;

/* Subtract max(z, 0) - silu(z) from h. */
INLINE four NAME(subtract_bumps)(const prepared_way *how, four h, const four *z);

/* Activations from the sums of four outputs. */
INLINE four NAME(activate_four)(const prepared_way *how, const sums *sum, const int32_t *multiplier,
                                int silu) {
    four z, h;
    unsigned i;
    UNROLLED for (i = 0; i < 2; i++) {
        z.two[i] = V(packs_epi32)(NAME(scale)(how, sum[2 * i], multiplier + 2 * i),
                                  NAME(scale)(how, sum[2 * i + 1], multiplier + 2 * i + 1));
        h.two[i] = V(max_epi16)(z.two[i], set(0));
        z.two[i] = V(max_epi16)(z.two[i], V(set1_epi16)(-TWIN_LARGEST));
    }
    return silu ? NAME(subtract_bumps)(how, h, &z) : h;
}

/* The two of each column side by side. */
INLINE words NAME(side_by_side)(words two) {
    return V(shuffle_epi8)(
        two, NAME(everywhere)(_mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15)));
}

/* What the query and eight anchors contribute to the first layer. */
typedef struct first_shares {
    const int32_t *anchors, *query[2];
} first_shares;

/* The sums of output o in vector v: one order, then the other. */
INLINE sums NAME(first_sums)(const first_shares *shares, uint32_t o, unsigned v) {
#if LANES == 16
    __m512i query = _mm512_inserti64x4(_mm512_castsi256_si512(x86_all_eight(shares->query[0][o])),
                                       x86_all_eight(shares->query[1][o]), 1);
#else
    __m256i query = set(shares->query[v][o]);
#endif
    return add(load(shares->anchors + ALL_COLUMNS * (size_t)o + LANES * v), query);
}

/* Activations of outputs o to o + 3 of the first layer, in vector v. */
INLINE four NAME(first_four)(const twini_prepared_layer *layer, const prepared_way *how,
                             const first_shares *shares, uint32_t o, unsigned v, int silu) {
    sums sum[4];
    unsigned i;
    UNROLLED for (i = 0; i < 4; i++) sum[i] = NAME(first_sums)(shares, o + i, v);
    return NAME(activate_four)(how, sum, layer->multiplier + o, silu);
}

/* Totals over the last layer. */
typedef struct prepared_totals {
    sums first[ACROSS], second[ACROSS];
} prepared_totals;

INLINE void NAME(begin_totals)(prepared_totals *totals) {
    uint32_t v;
    EACH_VECTOR totals->first[v] = totals->second[v] = set(0);
}

INLINE void NAME(add_four)(prepared_totals *totals, const int16_t *fold, const int16_t *hard,
                           four h, unsigned v, int scaled) {
    int32_t weights;
    unsigned i;
    UNROLLED for (i = 0; i < 2; i++) {
        words two = NAME(side_by_side)(h.two[i]);
        memcpy(&weights, fold + 2 * i, sizeof weights);
        totals->first[v] = add_products(totals->first[v], two, set(weights));
        if (scaled) {
            memcpy(&weights, hard + 2 * i, sizeof weights);
            totals->second[v] = add_products(totals->second[v], two, set(weights));
        }
    }
}

/* The same for all targets. */
INLINE void NAME(add_to_all)(prepared_totals *totals, const twini_prepared_layer *layer,
                             unsigned targets, four h, uint32_t o, unsigned v, int scaled) {
    unsigned t;
    for (t = 0; t < targets; t++) {
        size_t at = t * twini_apart(layer->outputs) + o;
        NAME(add_four)(totals + t, layer->fold + at, layer->hard + at, h, v, scaled);
    }
}

INLINE void NAME(end_totals)(const prepared_totals *totals, int32_t *to, int scaled) {
    uint32_t v;
    EACH_VECTOR keep(to + LANES * v, totals->first[v]);
    if (scaled) {
        int32_t hard[ALL_COLUMNS];
        EACH_VECTOR keep(hard + LANES * v, totals->second[v]);
        memcpy(to + ALL_COLUMNS, hard + TWIN_EIGHT, sizeof hard / 2);
    }
}

/* The query's share. */
static void NAME(share_of_query)(const twini_prepared_twin *twin, const int16_t *query,
                                 int32_t *share) {
    uint32_t outputs = twin->layer[0].outputs, n = twini_padded(outputs), o, i, second;
    const int16_t *weights = twin->first;
    for (second = 0; second < 2; second++, weights += twin->features * (size_t)n)
        for (o = 0; o < outputs; o += LANES) {
            sums sum = load(twin->layer[0].bias + o);
            for (i = 0; i < twin->features; i++) {
                const int16_t *at = weights + i * (size_t)n + o;
#if LANES == 16
                sums row =
                    _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)at));
#else
                sums row = _mm256_cvtepu16_epi32(x86_load_bytes((const uint8_t *)(const void *)at));
#endif
                sum = add_products(sum, row, set((uint16_t)query[i]));
            }
            keep(share + second * n + o, sum);
        }
}

#ifdef TILES
#include "amx_tiles.h"
#else
#include "x86_words.h"
#endif

/* Layers are copies here, as a compiler may assume that writes change any other. */
INLINE void NAME(prepared_layers)(const twini_prepared_twin *twin, const int32_t *of_query,
                                  const int32_t *of_anchors, uint8_t *in, int32_t *totals, int silu,
                                  int scaled, unsigned targets) {
    int32_t *sum = (int32_t *)(void *)(in + NAME(block_bytes)(twin->widest));
    twini_prepared_layer layer = twin->layer[0];
    const first_shares shares = {of_anchors, {of_query, of_query + twini_padded(layer.outputs)}};
    prepared_way how = NAME(prepared_way_of)(&layer, silu);
    unsigned depth, last = twin->layers - 1u, t;
    prepared_totals total[TWIN_TARGETS];
    uint32_t o, v;
    for (t = 0; t < targets; t++)
        NAME(begin_totals)(total + t);
    for (o = 0; o < layer.outputs; o += 4)
        EACH_VECTOR {
            four h = NAME(first_four)(&layer, &how, &shares, o, v, silu);
            if (last)
                NAME(put_four)(in, o, v, h);
            else
                NAME(add_to_all)(total, &layer, targets, h, o, v, scaled);
        }
    for (depth = 1; depth <= last; depth++) {
        NAME(sum_products)(&twin->layer[depth], in, sum);
        layer = twin->layer[depth];
        how = NAME(prepared_way_of)(&layer, silu);
        for (o = 0; o < layer.outputs; o += 4)
            EACH_VECTOR {
                four h = NAME(four_of_sums)(&layer, &how, sum, o, v, silu);
                if (depth < last)
                    NAME(put_four)(in, o, v, h);
                else
                    NAME(add_to_all)(total, &layer, targets, h, o, v, scaled);
            }
    }
    for (t = 0; t < targets; t++)
        NAME(end_totals)(total + t, totals + t * TWIN_EIGHT_TOTALS, scaled);
}

/* In each of these `silu` and `scaled` are known at compile time, and so is that there is one
 * target. */
INLINE void NAME(predict_targets)(const twini_prepared_twin *twin, const int32_t *of_query,
                                  const int32_t *of_anchors, uint8_t *in, int32_t *totals,
                                  unsigned targets) {
    if (twin->silu && twin->scaled)
        NAME(prepared_layers)(twin, of_query, of_anchors, in, totals, 1, 1, targets);
    else if (twin->silu)
        NAME(prepared_layers)(twin, of_query, of_anchors, in, totals, 1, 0, targets);
    else if (twin->scaled)
        NAME(prepared_layers)(twin, of_query, of_anchors, in, totals, 0, 1, targets);
    else
        NAME(prepared_layers)(twin, of_query, of_anchors, in, totals, 0, 0, targets);
}

static void NAME(predict_eight)(const twini_prepared_twin *twin, const int32_t *of_query,
                                const int32_t *of_anchors, void *room, int32_t *totals) {
    uint8_t *in = (uint8_t *)room;
    if (twini_prepared_targets(twin) > 1)
        NAME(predict_targets)(twin, of_query, of_anchors, in, totals, twini_prepared_targets(twin));
    else
        NAME(predict_targets)(twin, of_query, of_anchors, in, totals, 1);
}

static const twini_form NAME(form) = {
    NAME(weight_bytes), NAME(arrange),       0,
    MULTIPLIER_SHIFT,   NAME(work_bytes),    NAME(share_of_query),
    x86_anchors,        NAME(predict_eight), sizeof(int32_t) * TWIN_STEPS,
    NAME(fill_table),
#ifdef TILES
    amx_enter_tiles,    amx_leave_tiles,
#else
    0,
    0,
#endif
};
