/* Layers of a block of two pairs in C, for 8-bit weights and cores that multiply one 32-bit number
 * at a time. Sums of a group of outputs are computed together, what all outputs of a layer have in
 * common is looked up once, and sums that relu makes zero are not multiplied. A kernel file may
 * define the following, and includes this:
 *
 *     GROUP      outputs in a group, a power of two
 *     BY_WORD    1: weights are read four at a time, which are then shifted apart; for cores that
 *                cannot load a byte with its sign
 *     SUMS       a function that takes the place of group_sums
 */

#include "plain.h"

#define PAIRS   2
#define COLUMNS (2 * PAIRS)

#if defined(__clang__)
#define EACH(i, from, to) _Pragma("unroll") for (i = from; i < (to); i++)
#elif __GNUC__ + 0 >= 8
#define EACH(i, from, to) _Pragma("GCC unroll 8") for (i = from; i < (to); i++)
#else
#define EACH(i, from, to) for (i = from; i < (to); i++)
#endif

/* How sums of one output after the other become activations, and where these go. */
typedef struct group_state {
    const twini_layer *layer;
    twin_flash multiplier, fold; /* of the next output */
    int16_t *out;                /* its place; NULL in the last layer */
    int32_t half;                /* of 1 << shift */
    unsigned shift;
    int32_t total[3][PAIRS];
} group_state;

INLINE group_state group_begin(const twini_layer *layer, void *out) {
    group_state to = {layer, layer->multiplier, layer->fold, (int16_t *)out,
                      0,     layer->shift,      {{0}}};
    to.half = (int32_t)(((uint32_t)1 << layer->shift) >> 1);
    return to;
}

#if TWIN_SILU
/* Sums to activations. Not inlined, as registers would run out; from a copy of the layer, so that
 * compilers need not read it again after every store. */
TWIN_NOT_INLINE static void group_silu(const twini_layer *layer, int32_t multiplier, int32_t *h) {
    const twini_layer own = *layer;
    unsigned c;
    for (c = 0; c < COLUMNS; c++)
        h[c] = plain_activate(&own, h[c], multiplier);
}
#endif

/* The same for either activation. */
INLINE void group_activate(const group_state *to, int32_t *h) {
    int32_t multiplier = twini_i16(to->multiplier);
    unsigned c;
#if TWIN_SILU
    if (to->layer->silu) {
        int32_t sum[COLUMNS];
        EACH(c, 0, COLUMNS) sum[c] = h[c];
        group_silu(to->layer, multiplier, sum);
        EACH(c, 0, COLUMNS) h[c] = sum[c];
        return;
    }
#endif
    EACH(c, 0, COLUMNS) {
        int32_t z = 0;
        if (h[c] > 0) {
            z = (twini_mulw(h[c], multiplier) + to->half) >> to->shift;
            if (z > TWIN_LARGEST)
                z = TWIN_LARGEST;
        }
        h[c] = z;
    }
}

/* Fold the activations of an output into totals. */
INLINE void group_add(group_state *to, const int32_t *h) {
    int32_t weight;
    unsigned c;
#if TWIN_INTERVALS
    if (to->layer->scaled) {
        int32_t hard = twini_i16(to->fold + 6);
        weight = twini_i16(to->fold + 4);
        EACH(c, 0, PAIRS) {
            to->total[0][c] += weight * h[2 * c];
            to->total[1][c] += weight * h[2 * c + 1];
            to->total[2][c] += hard * h[2 * c + 1];
        }
        to->fold += 4;
        return;
    }
#endif
    weight = twini_i16(to->fold);
    EACH(c, 0, PAIRS) to->total[0][c] += weight * (h[2 * c] - h[2 * c + 1]);
    to->fold += 2;
}

/* The next output, from its sums: its activations are stored, or folded into totals. */
INLINE void group_finish(group_state *to, int32_t *h) {
    group_activate(to, h);
    to->multiplier += 2;
    if (to->out) {
        unsigned c;
        EACH(c, 0, COLUMNS) *to->out++ = (int16_t)h[c];
    } else {
        group_add(to, h);
    }
}

/* Zeros up to a multiple of four, if there is a layer to read them. */
static inline void group_pad(const twini_layer *layer, int16_t *out) {
    uint32_t o;
    unsigned c;
    for (o = layer->outputs; out && o % 4; o++)
        for (c = 0; c < COLUMNS; c++)
            out[COLUMNS * o + c] = 0;
}

/* After the last output. */
INLINE void group_end(const group_state *to, void *out, int32_t *totals) {
    unsigned c;
    if (out) {
        group_pad(to->layer, (int16_t *)out);
        return;
    }
    EACH(c, 0, PAIRS) totals[c] += to->total[0][c];
#if TWIN_INTERVALS
    if (to->layer->scaled) {
        EACH(c, 0, PAIRS) totals[TWIN_BLOCK + c] += to->total[1][c];
        EACH(c, 0, PAIRS) totals[2 * TWIN_BLOCK + c] += to->total[2][c];
    }
#endif
}

#if TWIN_TARGETS > 1
/* The totals of one target, for fold_later.h. */
static void group_fold(const twini_layer *layer, int32_t *totals) {
    group_state to = group_begin(layer, 0);
    const int16_t *in = (const int16_t *)layer->block;
    uint32_t left;
    for (left = layer->outputs; left; left--) {
        int32_t h[COLUMNS];
        unsigned c;
        EACH(c, 0, COLUMNS) h[c] = *in++;
        group_add(&to, h);
    }
    group_end(&to, 0, totals);
}
#endif

INLINE void group_weights(twin_flash at, int32_t *w) {
#if BY_WORD
    uint32_t word = twini_u32(at);
    w[0] = (int32_t)(word << 24) >> 24;
    w[1] = (int32_t)(word << 16) >> 24;
    w[2] = (int32_t)(word << 8) >> 24;
    w[3] = (int32_t)word >> 24;
#else
    unsigned k;
    EACH(k, 0, 4) w[k] = twini_i8(at + k);
#endif
}

static void group_query(const twini_layer *layer, const int16_t *query, void *partial) {
    twin_flash a = layer->weights, b = layer->mirror, bias = layer->bias;
    int32_t *out = (int32_t *)partial;
    uint32_t left;
    for (left = layer->outputs; left; left--) {
        int32_t of_a = twini_i32(bias), of_b = of_a;
        const int16_t *q = query, *end = query + layer->row;
        do {
            int32_t v[4], w[4];
            unsigned k;
            group_weights(a, v);
            group_weights(b, w);
            EACH(k, 0, 4) of_a += v[k] * q[k];
            EACH(k, 0, 4) of_b += w[k] * q[k];
            q += 4;
            a += 4;
            b += 4;
        } while (q != end);
        *out++ = of_a;
        *out++ = of_b;
        bias += 4;
    }
}

static void group_first(const twini_layer *layer, const twini_pairs *pairs, void *out,
                        int32_t *totals) {
    group_state to = group_begin(layer, out);
    const int32_t *partial = (const int32_t *)pairs->partial;
    twin_flash a = layer->weights, b = layer->mirror;
    twin_flash last = layer->multiplier + 2 * layer->outputs;
    do {
        twin_flash x = pairs->anchor[0], y = pairs->anchor[1], end = x + 2 * layer->row;
        int32_t sum[COLUMNS];
        sum[0] = sum[2] = *partial++;
        sum[1] = sum[3] = *partial++;
        do {
            int32_t v[4], w[4];
            unsigned k;
            group_weights(a, v);
            group_weights(b, w);
            EACH(k, 0, 4) {
                int32_t p = twini_i16(x + 2 * k), q = twini_i16(y + 2 * k);
                sum[0] += w[k] * p;
                sum[1] += v[k] * p;
                sum[2] += w[k] * q;
                sum[3] += v[k] * q;
            }
            x += 8;
            y += 8;
            a += 4;
            b += 4;
        } while (x != end);
        group_finish(&to, sum);
    } while (to.multiplier != last);
    group_end(&to, out, totals);
}

#ifndef SUMS
#define SUMS group_sums
/* Sums of `outputs` outputs of a further layer, whole groups: for each of them, four. Each has a
 * bias, and `count` weights that begin `stride` bytes after those of the one before. */
TWIN_NOT_INLINE static void group_sums(twin_flash weights, uint32_t stride, const int16_t *in,
                                       uint32_t count, twin_flash bias, int32_t *sum,
                                       uint32_t outputs) {
    do {
        int32_t s0 = twini_i32(bias), s1 = s0, s2 = s0, s3 = s0;
        twin_flash row = weights, end = row + count;
        const int16_t *h = in;
        do {
            int32_t w[4];
            unsigned k;
            group_weights(row, w);
            EACH(k, 0, 4) {
                s0 += w[k] * h[0];
                s1 += w[k] * h[1];
                s2 += w[k] * h[2];
                s3 += w[k] * h[3];
                h += 4;
            }
            row += 4;
        } while (row != end);
        *sum++ = s0;
        *sum++ = s1;
        *sum++ = s2;
        *sum++ = s3;
        weights += stride;
        bias += 4;
    } while (--outputs);
}
#endif

static void group_further(const twini_layer *layer, const void *in, void *out, int32_t *totals) {
    group_state to = group_begin(layer, out);
    uint32_t o = 0, outputs = layer->outputs, count = layer->row;
    do {
        int32_t sums[2 * GROUP][COLUMNS], *sum, *end;
        uint32_t left = outputs - o, number = 2 * GROUP, again = 0, stride = count;
        if (left < 2 * GROUP) {
            number = left < GROUP ? left : GROUP;
            again = GROUP - number; /* outputs before, to have a whole group */
            if (again > o) {        /* there are not as many: one output again and again */
                again = stride = 0;
                number = 1;
            }
        }
        SUMS(layer->weights + (o - again) * count, stride, (const int16_t *)in, count,
             layer->bias + 4 * (o - again), sums[0], (number + GROUP - 1u) & ~(GROUP - 1u));
        sum = sums[again];
        end = sum + COLUMNS * number;
        o += number;
        do {
            int32_t h[COLUMNS];
            unsigned c;
            EACH(c, 0, COLUMNS) h[c] = *sum++;
            group_finish(&to, h);
        } while (sum != end);
    } while (o != outputs);
    group_end(&to, out, totals);
}
