/* 64-bit Arm that multiplies matrices of bytes (I8MM), such as Neoverse V1; prepared models with
 * silu and 8-bit weights. SMMLA multiplies two outputs by two anchors by eight inputs, twice as
 * many products as SDOT. All else is as in kernel_neon_dot.c, including models that are not
 * prepared.
 *
 * With relu, neon_dot leaves out inputs that are zero, and the low bytes of most outputs, and
 * transposes weights by fours as it goes; here it would have to be by eights. Those models use
 * neon_dot. */

#include "neon_prepared.h"

#if TWIN_HOST_I8MM

#if defined(__clang__)
TARGET("i8mm")
#else
TARGET("arch=armv8.2-a+i8mm")
#endif

#define NAME(word) i8mm_##word

/* Two outputs by two anchors, for two times two outputs: [output][anchor] in each sum. */
#define TWO_BY_TWO(sum, h, w, v)                                                                   \
    __asm__("smmla %0.4s, %2.16b, %4.16b\n\t"                                                      \
            "smmla %1.4s, %3.16b, %4.16b"                                                          \
            : "+w"((sum)[0]), "+w"((sum)[4])                                                       \
            : "w"(w), "w"(v), "w"(h))

static uint32_t i8mm_weight_bytes(unsigned inputs, unsigned outputs) {
    return twini_align(inputs, 8) * twini_align(outputs, 4);
}

/* [4 outputs at a time][8 inputs at a time][4][8] */
static void i8mm_arrange(const twini_layer *from, const uint16_t *ranked, uint8_t *weights) {
    uint32_t eights = twini_align(from->inputs, 8), o, i;
    for (o = 0; o < from->outputs; o++)
        for (i = 0; i < from->inputs; i++)
            weights[(o & ~3u) * eights + 4 * (i & ~7u) + 8 * (o & 3) + (i & 7)] =
                (uint8_t)twini_weight(from->weights + (size_t)ranked[o] * from->row, i, 0);
}

/* Bytes of four neurons, side by side for each of eight anchors. */
typedef struct i8mm_four_bytes {
    uint32x4_t low, high;
} i8mm_four_bytes;

INLINE i8mm_four_bytes i8mm_by_anchor(uint16x8_t ab, uint16x8_t cd) {
    i8mm_four_bytes all = {vreinterpretq_u32_u16(vzip1q_u16(ab, cd)),
                           vreinterpretq_u32_u16(vzip2q_u16(ab, cd))};
    return all;
}

/* The first four of eight wait in place; with the others they end up as [8 anchors][8]. */
INLINE void i8mm_put_bytes(uint8_t *to, i8mm_four_bytes all, uint32_t second) {
    uint32_t *words = (uint32_t *)(void *)to;
    if (second) {
        uint32x4_t low = vld1q_u32(words), high = vld1q_u32(words + 4);
        vst1q_u32(words, vzip1q_u32(low, all.low));
        vst1q_u32(words + 4, vzip2q_u32(low, all.low));
        vst1q_u32(words + 8, vzip1q_u32(high, all.high));
        vst1q_u32(words + 12, vzip2q_u32(high, all.high));
    } else {
        vst1q_u32(words, all.low);
        vst1q_u32(words + 4, all.high);
    }
}

/* [8 neurons at a time]{hi, lo}[8 anchors][8], of bytes as neon_dot_prepared.h has them. */
INLINE void i8mm_put_silu(uint8_t *in, uint32_t first, const neon_activations *h) {
    uint16x8_t a = vreinterpretq_u16_s16(h[0]), b = vreinterpretq_u16_s16(h[1]);
    uint16x8_t c = vreinterpretq_u16_s16(h[2]), d = vreinterpretq_u16_s16(h[3]);
    uint16x8_t up = vdupq_n_u16(127);
    uint8_t *to = in + 16 * (size_t)(first & ~7u);
    i8mm_put_bytes(to + 64, i8mm_by_anchor(vsliq_n_u16(a, b, 8), vsliq_n_u16(c, d, 8)), first & 4);
    i8mm_put_bytes(to,
                   i8mm_by_anchor(vsriq_n_u16(vsubq_u16(up, b), vsubq_u16(up, a), 8),
                                  vsriq_n_u16(vsubq_u16(up, d), vsubq_u16(up, c), 8)),
                   first & 4);
}

/* Flush fours that still wait for others. */
INLINE void i8mm_end_inputs(uint8_t *in, uint32_t count) {
    neon_activations h[4];
    uint32_t r;
    FOUR_TIMES h[r] = neon_none();
    if (twini_align(count, 4) & 4)
        i8mm_put_silu(in, twini_align(count, 4), h);
}

#define STEP              4
#define END_INPUTS(in, n) i8mm_end_inputs(in, n)

INLINE void i8mm_step_sums(neon_sums *sum, const neon_prepared_work *mine,
                           const twini_prepared_layer *layer, uint32_t o, neon_lookups *waiting) {
    uint32_t eights = twini_align(layer->inputs, 8), r;
    const int8_t *w = (const int8_t *)layer->weights + (size_t)o * eights, *end = w + 4 * eights;
    const int8_t *h = (const int8_t *)mine->in;
    int32x4_t hi[8], lo[8];
    (void)waiting;
    EIGHT_TIMES {
        const int32_t *two = layer->bias + o + r / 4 * 2;
        hi[r] = vdupq_n_s32(0);
        lo[r] = vcombine_s32(vdup_n_s32(two[0]), vdup_n_s32(two[1]));
    }
    for (; w != end; w += 32, h += 128) {
        int8x16_t one = vld1q_s8(w), other = vld1q_s8(w + 16);
        FOUR_TIMES {
            int8x16_t up = vld1q_s8(h + 16 * r), down = vld1q_s8(h + 64 + 16 * r);
            TWO_BY_TWO(hi + r, up, one, other);
            TWO_BY_TWO(lo + r, down, one, other);
        }
    }
    EIGHT_TIMES lo[r] = vsubq_s32(lo[r], vshlq_n_s32(hi[r], 8));
    for (r = 0; r < 4; r++) {
        const int32x4_t *of = lo + r / 2 * 4;
        int64x2_t a = vreinterpretq_s64_s32(of[0]), b = vreinterpretq_s64_s32(of[1]);
        int64x2_t c = vreinterpretq_s64_s32(of[2]), d = vreinterpretq_s64_s32(of[3]);
        sum[r].low = vreinterpretq_s32_s64(r & 1 ? vzip2q_s64(a, b) : vzip1q_s64(a, b));
        sum[r].high = vreinterpretq_s32_s64(r & 1 ? vzip2q_s64(c, d) : vzip1q_s64(c, d));
    }
}

#include "neon_silu.h"

static uint32_t i8mm_work_bytes(unsigned widest) {
    neon_prepared_work nobodys;
    return neon_lay_out(&nobodys, widest, 0, 0);
}

static void i8mm_eight(const twini_prepared_twin *twin, const int32_t *of_query,
                       const int32_t *of_anchors, void *scratch, int32_t *totals) {
    uint32_t n = twini_padded(twin->layer[0].outputs);
    int32_t *hard = twin->scaled ? totals + 2 * TWIN_EIGHT : 0;
    neon_prepared_work mine;
    neon_lay_out(&mine, twin->widest, 0, (uintptr_t)scratch);
    i8mm_silu_order(twin, of_query, of_anchors, &mine, totals, 0);
    i8mm_silu_order(twin, of_query + n, of_anchors + TWIN_EIGHT, &mine, totals + TWIN_EIGHT, hard);
}

static const twini_form i8mm_form = {
    i8mm_weight_bytes,
    i8mm_arrange,
    0,
    MULTIPLIER_SHIFT,
    i8mm_work_bytes,
    neon_share_of_query,
    neon_shares_of_anchors,
    i8mm_eight,
    TABLE_BYTES,
    neon_fill_table,
    0,
    0,
};

static void i8mm_query(const twini_layer *layer, const int16_t *query, void *partial) {
    twini_kernel_neon_dot.query(layer, query, partial);
}

static void i8mm_first(const twini_layer *layer, const twini_pairs *pairs, void *out,
                       int32_t *totals) {
    twini_kernel_neon_dot.first(layer, pairs, out, totals);
}

static void i8mm_further(const twini_layer *layer, const void *in, void *out, int32_t *totals) {
    twini_kernel_neon_dot.further(layer, in, out, totals);
}

TWIN_DEFINE(twini_kernel_neon_i8mm) = {
    TWIN_BLOCK,         /* pairs */
    4,                  /* unit */
    16,                 /* align */
    8,                  /* partial_bytes */
    4 * TWIN_BLOCK + 4, /* block_bytes */
    i8mm_query,         /* query */
    i8mm_first,         /* first */
    i8mm_further,       /* further */
    2 * TWIN_BLOCK,     /* room_bytes */
    0,                  /* lines */
    TWIN_WORK_BYTES,    /* work_bytes */
    &i8mm_form,         /* form */
};

TARGET_END

#endif
