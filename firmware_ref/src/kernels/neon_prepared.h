/* What the NEON kernels share for prepared models. Each order of eight anchors is evaluated by
 * itself.
 *
 * With relu many neurons are zero for all eight anchors: in the first layer the largest of their
 * shares shows it. They are not computed, and their weights are left out. */

#ifndef TWIN_KERNELS_NEON_PREPARED_H
#define TWIN_KERNELS_NEON_PREPARED_H

#include "../twin_prepared.h"
#include "neon.h"

#if TWIN_HOST_ARM

NEON_TARGET

/* The query's share in the first layer: A q + bias, then B q + bias. */
static inline void neon_share_of_query(const twini_prepared_twin *twin, const int16_t *query,
                                       int32_t *share) {
    uint32_t n = twini_padded(twin->layer[0].outputs), features = twin->features, o, i, second;
    const int16_t *weights = twin->first;
    for (second = 0; second < 2; second++, weights += features * (size_t)n)
        for (o = 0; o < n; o += TWIN_EIGHT) {
            neon_sums sum = neon_load(twin->layer[0].bias + o);
            for (i = 0; i < features; i++)
                sum = neon_fold_in(sum, vld1q_s16(weights + i * (size_t)n + o), query[i]);
            neon_keep(share + second * n + o, sum);
        }
}

/* The share of eight anchors. */
static inline void neon_shares_of_anchors(const twini_prepared_twin *twin,
                                          const int16_t *features_by_eight, int32_t *share) {
    uint32_t n = twini_padded(twin->layer[0].outputs), features = twin->features, o, i, second;
    int32_t *most = share + 2 * TWIN_EIGHT * n;
    for (second = 0; second < 2; second++) {
        const int16_t *weights = twin->first + (second ? 0 : features * (size_t)n);
        for (o = 0; o < n; o++) {
            neon_sums sum = neon_set(0);
            for (i = 0; i < features; i++)
                sum = neon_fold_in(sum, vld1q_s16(features_by_eight + TWIN_EIGHT * i),
                                   weights[i * (size_t)n + o]);
            neon_keep(share + TWIN_EIGHT * (2 * o + second), sum);
            most[second * n + o] = vmaxvq_s32(vmaxq_s32(sum.low, sum.high));
        }
    }
}

#define FOUR_TIMES UNROLLED for (r = 0; r < 4; r++)

/* The way from sums to z is shorter where SQRDMULH shifts and rounds, too. It always
 * rounds, as rsh does if there is something to shift. */
INLINE int neon_squashes(const twini_prepared_layer *layer) {
    return layer->shift >= 1 && layer->shift <= 15;
}

/* Four multipliers for that. */
INLINE int32x4_t neon_squashing(const twini_prepared_layer *layer, int32x4_t multipliers) {
    return vshlq_s32(multipliers, vdupq_n_s32(-layer->shift));
}

#define SQUASHED(low, high, four, r)                                                               \
    vqmovn_high_s32(vqmovn_s32(TIMES_LANE(low, four, r)), TIMES_LANE(high, four, r))

/* Activations times number r of eight weights. */
#define FOLD(total, h, weights, r)                                                                 \
    (total).low = ADD_TIMES_LANE((total).low, vget_low_s16(h), weights, r);                        \
    (total).high = ADD_HIGH_TIMES_LANE((total).high, h, weights, r)

typedef struct neon_prepared_work {
    uint16_t *number;  /* neurons of a layer, in order; then four that stand for none */
    uint32_t count;    /* how many neurons */
    int32_t *sum;      /* of a layer: [outputs][8] */
    uint8_t *next;     /* for silu: room for those of the next layer */
    uint8_t *in;       /* activations of the neurons: 16 bytes each, in fours */
    uint8_t *squeezed; /* remaining weights of a layer */
} neon_prepared_work;

/* Lay out the working memory of a model with layers up to `widest` wide, and at most `left`
 * bytes of remaining weights, 0 with silu; returns its size. */
static inline uint32_t neon_lay_out(neon_prepared_work *mine, unsigned widest, uint32_t left,
                                    uintptr_t at) {
    uintptr_t start = at, width = twini_padded(widest);
    mine->in = (uint8_t *)at;
    mine->sum = (int32_t *)(at += 16 * width);
    mine->number = (uint16_t *)(at += 32 * width);
    mine->squeezed = (uint8_t *)(at += 2 * width);
    mine->next = mine->squeezed;
    if (left < 16 * width)
        left = (uint32_t)(16 * width);
    return (uint32_t)(at - start) + left;
}

/* The next layer reads what was written. */
INLINE void neon_swap_rooms(neon_prepared_work *mine) {
    uint8_t *in = mine->in;
    mine->in = mine->next;
    mine->next = in;
}

INLINE neon_way neon_prepared_way(const twini_prepared_layer *layer) {
    return neon_way_for(layer->curve, layer->shift, layer->fraction);
}

/* List those of the eight outputs from `first` on whose mask is set. */
INLINE void neon_list_some(neon_prepared_work *mine, uint32_t first, uint32x4_t low,
                           uint32x4_t high) {
    uint8x8_t is = vmovn_u16(vcombine_u16(vmovn_u32(low), vmovn_u32(high)));
    uint64_t bytes = vget_lane_u64(vreinterpret_u64_u8(is), 0);
    uint32_t count = mine->count, r;
    EIGHT_TIMES {
        mine->number[count] = (uint16_t)(first + r);
        count += (uint32_t)(bytes >> 8 * r) & 1;
    }
    mine->count = count;
}

/* Outputs of the first layer that are positive for any anchor. */
INLINE void neon_list_first(neon_prepared_work *mine, const int32_t *of_query, const int32_t *most,
                            uint32_t outputs) {
    int32x4_t zero = vdupq_n_s32(0);
    uint32_t o;
    for (o = 0; o < outputs; o += 8) {
        int32x4_t low = vaddq_s32(vld1q_s32(of_query + o), vld1q_s32(most + o));
        int32x4_t high = vaddq_s32(vld1q_s32(of_query + o + 4), vld1q_s32(most + o + 4));
        neon_list_some(mine, o, vcgtq_s32(low, zero), vcgtq_s32(high, zero));
    }
}

/* The same for a further layer, by its sums. */
INLINE void neon_list_further(neon_prepared_work *mine, uint32_t outputs) {
    int32x4_t zero = vdupq_n_s32(0);
    uint32_t o, r;
    for (o = 0; o < outputs; o += 8) {
        const int32_t *sum = mine->sum + 8 * (size_t)o;
        int32x4_t most[8];
        EIGHT_TIMES most[r] = vmaxq_s32(vld1q_s32(sum + 8 * r), vld1q_s32(sum + 8 * r + 4));
        most[0] = vpmaxq_s32(vpmaxq_s32(most[0], most[1]), vpmaxq_s32(most[2], most[3]));
        most[1] = vpmaxq_s32(vpmaxq_s32(most[4], most[5]), vpmaxq_s32(most[6], most[7]));
        neon_list_some(mine, o, vcgtq_s32(most[0], zero), vcgtq_s32(most[1], zero));
    }
}

/* List the neurons of a layer that the next one needs: `all`, or those that are not zero. In the
 * first layer the shares are given. */
INLINE void neon_list_neurons(neon_prepared_work *mine, uint32_t outputs, const int32_t *of_query,
                              const int32_t *most, int all) {
    uint32_t r;
    mine->count = 0;
    if (all)
        while (mine->count < outputs) {
            mine->number[mine->count] = (uint16_t)mine->count;
            mine->count++;
        }
    else if (most)
        neon_list_first(mine, of_query, most, outputs);
    else
        neon_list_further(mine, outputs);
    FOUR_TIMES mine->number[mine->count + r] = (uint16_t)twini_align(outputs, 8);
}

/* The sums of an output: its shares of anchors and query in the first layer; or as they are.
 */
INLINE neon_sums neon_sum_at(const int32_t *sum, const int32_t *of_query, uint32_t o, int first) {
    if (first)
        return neon_add(neon_load(sum + 2 * TWIN_EIGHT * (size_t)o), neon_set(of_query[o]));
    return neon_load(sum + TWIN_EIGHT * (size_t)o);
}

/* Totals over the last layer with relu, from sums. */
INLINE void neon_fold_sums(const twini_prepared_layer *layer, const int32_t *sum,
                           const int32_t *of_query, int first, int32_t *totals, int32_t *hard) {
    neon_way how = neon_prepared_way(layer);
    neon_sums total = neon_set(0), second = total;
    uint32_t o;
    for (o = 0; o < layer->outputs; o++) {
        neon_activations h =
            neon_activate(&how, neon_sum_at(sum, of_query, o, first), layer->multiplier[o], 0);
        total = neon_fold_in(total, h, layer->fold[o]);
        second = neon_fold_in(second, h, layer->hard[o]);
    }
    neon_keep(totals, total);
    if (hard)
        neon_keep(hard, second);
}

/* The same for all targets. */
INLINE void neon_fold_all_sums(const twini_prepared_twin *twin, const twini_prepared_layer *layer,
                               const int32_t *sum, const int32_t *of_query, int first,
                               int32_t *totals, int32_t *hard) {
    twini_prepared_layer one = *layer;
    unsigned t;
    for (t = 0; t < twini_prepared_targets(twin); t++, totals += TWIN_EIGHT_TOTALS) {
        neon_fold_sums(&one, sum, of_query, first, totals, hard);
        one.fold += twini_apart(layer->outputs);
        one.hard += twini_apart(layer->outputs);
        hard = hard ? hard + TWIN_EIGHT_TOTALS : 0;
    }
}

/* silu, by a table for each fraction. Entry |z| is |z| - 2 bump(|z|), so silu
 * is the mean of z and its entry, whatever the curve of the pack.
 *
 * Entries are looked up one by one, by the units that are idle while others multiply. So z leaves
 * its offset in the table in memory; later the entry replaces it there; still later it is used. */

#define TABLE_BYTES (2 * (TWIN_LARGEST + 1))

static inline void neon_fill_table(void *table, twin_flash curve, uint8_t fraction) {
    int16_t *entries = (int16_t *)table;
    int32_t a;
    for (a = 0; a <= TWIN_LARGEST; a++)
        entries[a] = (int16_t)(a - 2 * twini_bump(curve, a, fraction));
}

/* Where the entries of z begin, in bytes. */
INLINE uint16x8_t neon_offsets_of(int16x8_t z) {
    uint16x8_t a = vreinterpretq_u16_s16(vqabsq_s16(z));
    return vaddq_u16(a, a);
}

/* SRHADD rounds up, which makes -32767 of -32768, as it should be: SQABS has made it 32767. */
INLINE neon_activations neon_bend(int16x8_t z, uint16x8_t entries) {
    return vrhaddq_s16(z, vreinterpretq_s16_u16(entries));
}

/* Places, from `next` to `end`, that wait to be replaced by their entries. */
typedef struct neon_lookups {
    const uint8_t *table;
    uint16_t *next, *end;
} neon_lookups;

INLINE uint32_t neon_entry_at(const uint8_t *table, uint32_t offset) {
    uint16_t entry;
    __builtin_memcpy(&entry, table + offset, sizeof entry);
    return entry;
}

/* Compilers would gather in vectors what is read here, and move it to a loop of its own. */
INLINE void neon_look_up_two(neon_lookups *waiting) {
    uint32_t two;
    __builtin_memcpy(&two, waiting->next, sizeof two);
    __asm__ volatile("" : "+r"(two));
    two = neon_entry_at(waiting->table, two & 65535) | neon_entry_at(waiting->table, two >> 16)
                                                           << 16;
    __builtin_memcpy(waiting->next, &two, sizeof two);
    waiting->next += 2;
}

INLINE void neon_look_up_four(neon_lookups *waiting) {
    neon_look_up_two(waiting);
    neon_look_up_two(waiting);
}

INLINE void neon_look_up_all(neon_lookups *waiting) {
    while (waiting->next != waiting->end)
        neon_look_up_four(waiting);
}

/* The entries of eight offsets, if nothing else is going on. */
#if TWIN_HOST_ARM == 64
/* An entry, and zeros. In assembly for gcc, which would insert what it loads into a copy of zeros.
 */
INLINE uint16x8_t neon_load_entry(const uint8_t *table, uint64_t offset) {
#if defined(__clang__)
    return vsetq_lane_u16((uint16_t)neon_entry_at(table, (uint32_t)offset), vdupq_n_u16(0), 0);
#else
    uint16x8_t one;
    __asm__("ldr %h0, %1" : "=w"(one) : "m"(*(const uint16_t *)(const void *)(table + offset)));
    return one;
#endif
}

INLINE uint32x4_t neon_load_four(const uint8_t *table, const uint16_t *offsets) {
    uint64_t k;
    uint16x8_t ab, cd;
    __builtin_memcpy(&k, offsets, sizeof k);
    ab = vzip1q_u16(neon_load_entry(table, k & 65535), neon_load_entry(table, k >> 16 & 65535));
    cd = vzip1q_u16(neon_load_entry(table, k >> 32 & 65535), neon_load_entry(table, k >> 48));
    return vzip1q_u32(vreinterpretq_u32_u16(ab), vreinterpretq_u32_u16(cd));
}

INLINE uint16x8_t neon_load_entries(const uint8_t *table, const uint16_t *offsets) {
    uint64x2_t low = vreinterpretq_u64_u32(neon_load_four(table, offsets));
    uint64x2_t high = vreinterpretq_u64_u32(neon_load_four(table, offsets + 4));
    return vreinterpretq_u16_u64(vzip1q_u64(low, high));
}
#else
INLINE uint16x8_t neon_load_entries(const uint8_t *table, uint16_t *offsets) {
    neon_lookups waiting = {table, offsets, offsets + 8};
    neon_look_up_all(&waiting);
    return vld1q_u16(offsets);
}
#endif

/* Where activations go: to the next layer; into the totals of one output or of both, as the second
 * may not be needed; or, in the last layer for several targets, where sums would be. */
typedef enum neon_course { ONWARD, TO_ONE, TO_BOTH, TO_BLOCK } neon_course;

INLINE void neon_fold_four(neon_sums *total, const int16_t *weights, const neon_activations *h) {
    int16x8_t four = vcombine_s16(vld1_s16(weights), vdup_n_s16(0));
    FOLD(*total, h[0], four, 0);
    FOLD(*total, h[1], four, 1);
    FOLD(*total, h[2], four, 2);
    FOLD(*total, h[3], four, 3);
}

#if TWIN_TARGETS > 1
/* Totals of all targets, from a block of activations. */
static inline void neon_fold_block(const twini_prepared_twin *twin,
                                   const twini_prepared_layer *layer, const int32_t *block,
                                   int32_t *totals, int32_t *hard) {
    const int16_t *h = (const int16_t *)(const void *)block;
    unsigned t;
    for (t = 0; t < twin->targets; t++, totals += TWIN_EIGHT_TOTALS) {
        const int16_t *fold = layer->fold + t * twini_apart(layer->outputs);
        const int16_t *other = layer->hard + t * twini_apart(layer->outputs);
        neon_sums total = neon_set(0), second = total;
        uint32_t o;
        for (o = 0; o < layer->outputs; o++) {
            neon_activations eight = vld1q_s16(h + TWIN_EIGHT * (size_t)o);
            total = neon_fold_in(total, eight, fold[o]);
            second = neon_fold_in(second, eight, other[o]);
        }
        neon_keep(totals, total);
        if (hard) {
            neon_keep(hard, second);
            hard += TWIN_EIGHT_TOTALS;
        }
    }
}
#endif

INLINE void neon_keep_totals(neon_course where, neon_sums total, neon_sums second, int32_t *totals,
                             int32_t *hard) {
    if (where == TO_ONE || where == TO_BOTH)
        neon_keep(totals, total);
    if (where == TO_BOTH && hard)
        neon_keep(hard, second);
}

/* What the outputs of a layer share on the way from sums to z: a copy, as a compiler may
 * assume that writing to memory changes the layer. */
typedef struct neon_silu_way {
    const int32_t *multiplier;
    const uint8_t *table;
    int32x4_t left;
    int squashes;
} neon_silu_way;

INLINE neon_silu_way neon_silu_way_of(const twini_prepared_layer *layer) {
    neon_silu_way how = {layer->multiplier, (const uint8_t *)layer->table,
                         vdupq_n_s32(-(int32_t)layer->shift), neon_squashes(layer)};
    return how;
}

/* z of four outputs from `o` on, and their offsets in the table. */
INLINE void neon_squash_four(int16_t (*z)[8], uint16_t (*offsets)[8], const neon_silu_way *how,
                             uint32_t o, const neon_sums *sum) {
    int32x4_t m = vld1q_s32(how->multiplier + o);
    int16x8_t four[4];
    uint32_t r;
    if (how->squashes) {
        m = vshlq_s32(m, how->left);
        four[0] = SQUASHED(sum[0].low, sum[0].high, m, 0);
        four[1] = SQUASHED(sum[1].low, sum[1].high, m, 1);
        four[2] = SQUASHED(sum[2].low, sum[2].high, m, 2);
        four[3] = SQUASHED(sum[3].low, sum[3].high, m, 3);
    } else {
        neon_way general;
        general.left = how->left;
        FOUR_TIMES four[r] = neon_squash(&general, sum[r], how->multiplier[o + r]);
    }
    FOUR_TIMES {
        vst1q_s16(z[r], four[r]);
        vst1q_u16(offsets[r], neon_offsets_of(four[r]));
    }
}

INLINE void neon_step_shares(neon_sums *sum, const int32_t *share, const int32_t *of_query,
                             uint32_t o) {
    int32x4_t four = vld1q_s32(of_query + o);
    share += 2 * TWIN_EIGHT * (size_t)o;
    sum[0] = neon_add(neon_load(share), neon_set(vgetq_lane_s32(four, 0)));
    sum[1] = neon_add(neon_load(share + 16), neon_set(vgetq_lane_s32(four, 1)));
    sum[2] = neon_add(neon_load(share + 32), neon_set(vgetq_lane_s32(four, 2)));
    sum[3] = neon_add(neon_load(share + 48), neon_set(vgetq_lane_s32(four, 3)));
}

NEON_TARGET_END

#endif

#endif
