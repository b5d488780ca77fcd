/* The kernel for any machine with a C compiler, and the reference for all others. */

#include "plain.h"

#define NAME(word)  portable_##word
#define PAIRS       (TWIN_BLOCK < 4 ? TWIN_BLOCK : 4)
#define ELEMENT     int16_t
#define PLACE(i, c) ((i) * (2 * PAIRS) + (c))

#include "block.h"

/* A loop over columns. With few columns, their sums should stay in registers; with more, compilers
 * vectorise it, which they do not once the loop is unrolled. */
#if TWIN_BLOCK > 2 || (!defined(__clang__) && __GNUC__ + 0 < 8)
#define EACH_COLUMN for (c = 0; c < COLUMNS; c++)
#elif defined(__clang__)
#define EACH_COLUMN _Pragma("unroll") for (c = 0; c < COLUMNS; c++)
#else
#define EACH_COLUMN _Pragma("GCC unroll 4") for (c = 0; c < COLUMNS; c++)
#endif

/* A and B of one output with one anchor, added to both orders of the pair. */
static inline void portable_of_anchor(const twini_layer *layer, twin_flash a, twin_flash b,
                                      twin_flash anchor, int32_t *sum) {
    uint32_t i;
    for (i = 0; i < layer->inputs; i++) {
        int32_t feature = twini_i16(anchor + 2 * i);
        sum[0] += twini_weight(b, i, layer->wide) * feature;
        sum[1] += twini_weight(a, i, layer->wide) * feature;
    }
}

static void portable_first(const twini_layer *layer, const twini_pairs *pairs, void *out,
                           int32_t *totals) {
    twin_flash a = layer->weights, b = layer->mirror;
    uint32_t o;
    for (o = 0; o < layer->outputs; o++) {
        int32_t sum[COLUMNS], of_query[2];
        unsigned c;
#if TWIN_PARTIAL
        of_query[0] = ((const int32_t *)pairs->partial)[2 * o];
        of_query[1] = ((const int32_t *)pairs->partial)[2 * o + 1];
#else
        int32_t bias = twini_i32(layer->bias + 4 * o);
        of_query[0] = bias + plain_of_query(layer, a, pairs->query);
        of_query[1] = bias + plain_of_query(layer, b, pairs->query);
#endif
        for (c = 0; c < PAIRS; c++) {
            sum[2 * c] = of_query[0];
            sum[2 * c + 1] = of_query[1];
            portable_of_anchor(layer, a, b, pairs->anchor[c], sum + 2 * c);
        }
        portable_finish(layer, o, sum, (int16_t *)out, totals);
        a += layer->row;
        b += layer->row;
    }
    portable_pad(layer, (int16_t *)out);
}

/* Sums of one output of a further layer. */
INLINE void portable_sums(const twini_layer *layer, twin_flash row, int32_t bias, const int16_t *h,
                          int32_t *sums, unsigned wide) {
    int32_t sum[COLUMNS];
    uint32_t i, inputs = layer->inputs;
    unsigned c;
    EACH_COLUMN sum[c] = bias;
    for (i = 0; i < inputs; i += 4) {
        int32_t w0 = twini_weight(row, i, wide), w1 = twini_weight(row, i + 1, wide);
        int32_t w2 = twini_weight(row, i + 2, wide), w3 = twini_weight(row, i + 3, wide);
        EACH_COLUMN sum[c] += w0 * h[PLACE(i, c)];
        EACH_COLUMN sum[c] += w1 * h[PLACE(i + 1, c)];
        EACH_COLUMN sum[c] += w2 * h[PLACE(i + 2, c)];
        EACH_COLUMN sum[c] += w3 * h[PLACE(i + 3, c)];
    }
    EACH_COLUMN sums[c] = sum[c];
}

static void portable_further(const twini_layer *layer, const void *in, void *out, int32_t *totals) {
    const int16_t *h = (const int16_t *)in;
    twin_flash row = layer->weights;
    uint32_t o;
    for (o = 0; o < layer->outputs; o++) {
        int32_t sum[COLUMNS], bias = twini_i32(layer->bias + 4 * o);
        if (TWIN_INT16 && layer->wide)
            portable_sums(layer, row, bias, h, sum, 1);
        else
            portable_sums(layer, row, bias, h, sum, 0);
        portable_finish(layer, o, sum, (int16_t *)out, totals);
        row += layer->row;
    }
    portable_pad(layer, (int16_t *)out);
}

TWIN_DEFINE(twini_kernel_portable) = {
    PAIRS,                          /* pairs */
    4,                              /* unit */
    8,                              /* align */
    TWIN_PARTIAL ? 8 : 0,           /* partial_bytes */
    2 * COLUMNS,                    /* block_bytes */
    TWIN_PARTIAL ? plain_query : 0, /* query */
    portable_first,                 /* first */
    portable_further,               /* further */
    0,                              /* room_bytes */
    0,                              /* lines */
#if TWIN_HOST
    0, /* work_bytes */
    0, /* form */
#endif
};
