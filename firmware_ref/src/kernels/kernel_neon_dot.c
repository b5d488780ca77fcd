/* 64-bit Arm with dot products, as the Raspberry Pi 5 has; packs with 8-bit weights.
 *
 * SDOT multiplies bytes and adds four products to a sum, so a 16-bit number is taken as two:
 * 256 high + low + 128, both signed. The 128 comes back as 128 times the sum of the weights. In an
 * eight lie the high bytes, [4 activations at a time][8 columns][4], then the low bytes likewise.
 *
 * The high bytes alone tell of most outputs that relu makes zero, as what the low ones can add is
 * bounded: in the last layer these are spared the second half of the work. */

#include "host.h"

#if TWIN_HOST_ARM

#include "neon.h"

#define MOST 1024 /* features or outputs */
#define ROWS 128  /* outputs whose sums are kept at a time */

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("dotprod"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("arch=armv8.2-a+dotprod")
#endif

/* In assembler, as arm_neon.h has no function for it if the file is compiled for any processor. */
#define SDOT(sum, a, b) __asm__("sdot %0.4s, %1.16b, %2.16b" : "+w"(sum) : "w"(a), "w"(b))

/* Four outputs by eight columns by four inputs. In one piece: eight sums in turn hide the time that
 * each takes, and compilers would put those of one sum next to each other. */
#define FOUR_ROWS(p, q, s, t, lane)                                                                \
    __asm__("sdot %0.4s, %8.16b, %10.4b[" #lane "]\n\t"                                            \
            "sdot %1.4s, %9.16b, %10.4b[" #lane "]\n\t"                                            \
            "sdot %2.4s, %8.16b, %11.4b[" #lane "]\n\t"                                            \
            "sdot %3.4s, %9.16b, %11.4b[" #lane "]\n\t"                                            \
            "sdot %4.4s, %8.16b, %12.4b[" #lane "]\n\t"                                            \
            "sdot %5.4s, %9.16b, %12.4b[" #lane "]\n\t"                                            \
            "sdot %6.4s, %8.16b, %13.4b[" #lane "]\n\t"                                            \
            "sdot %7.4s, %9.16b, %13.4b[" #lane "]"                                                \
            : "+w"(sum[p].low), "+w"(sum[p].high), "+w"(sum[q].low), "+w"(sum[q].high),            \
              "+w"(sum[s].low), "+w"(sum[s].high), "+w"(sum[t].low), "+w"(sum[t].high)             \
            : "w"(low), "w"(high), "w"(w[p]), "w"(w[q]), "w"(w[s]), "w"(w[t]))

#define FOUR_INPUTS(lane)                                                                          \
    {                                                                                              \
        int8x16_t low = vld1q_s8(h), high = vld1q_s8(h + 16);                                      \
        h += 32;                                                                                   \
        FOUR_ROWS(0, 1, 2, 3, lane);                                                               \
        FOUR_ROWS(4, 5, 6, 7, lane);                                                               \
    }

typedef struct rows {
    const int8_t *row[8];
} rows;

INLINE void take_rows(rows *eight, const twin_layer *layer, twin_flash weights,
                      const uint32_t *numbers) {
    unsigned r;
    EIGHT_TIMES eight->row[r] = (const int8_t *)(weights + numbers[r] * layer->row);
}

/* Eight outputs by eight columns: `fours` times four inputs, of high or of low bytes. A load may go
 * up to 12 bytes beyond a row: behind the last lie bias, multiplier and weights of the output, 16
 * bytes at least. */
INLINE void add_bytes(sums *sum, const rows *eight, unsigned fours, const int8_t *h) {
    unsigned i, r;
    for (i = 0; i < fours; i += 4) {
        int8x16_t w[8];
        EIGHT_TIMES w[r] = vld1q_s8(eight->row[r] + 4 * i);
        FOUR_INPUTS(0)
        if (fours - i == 1)
            break;
        FOUR_INPUTS(1)
        if (fours - i == 2)
            break;
        FOUR_INPUTS(2)
        if (fours - i == 3)
            break;
        FOUR_INPUTS(3)
    }
}

INLINE unsigned fours_of(unsigned n) {
    return (n + 3) / 4;
}

INLINE const int8_t *low_bytes_at(const uint8_t *eight, unsigned inputs) {
    return (const int8_t *)eight + EIGHT_SIZE(inputs) / 2;
}

/* 256 times sums of high bytes, and what they start with. */
INLINE sums shifted(sums high, int32_t start) {
    sums all = {vshlq_n_s32(high.low, 8), vshlq_n_s32(high.high, 8)};
    return add(all, set(start));
}

/* Sums over each of eight vectors. */
INLINE sums over_each(const int32x4_t *v) {
    sums all = {vpaddq_s32(vpaddq_s32(v[0], v[1]), vpaddq_s32(v[2], v[3])),
                vpaddq_s32(vpaddq_s32(v[4], v[5]), vpaddq_s32(v[6], v[7]))};
    return all;
}

/* What sums start with: bias, and 128 times all weights. And how large a sum of high bytes may be
 * if the output is not to be more than zero: low bytes add up to 255 times the positive weights. */
INLINE void weigh(const twin_layer *layer, const rows *eight, const uint32_t *numbers,
                  int32_t *start, int32_t *floor) {
    static const int8_t there[32] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    uint32_t i, r, width = 4 * fours_of(layer->inputs);
    int8x16_t zero = vdupq_n_s8(0);
    int32x4_t all[8], positive[8];
    int32_t bias[8];
    sums some, most;
    EIGHT_TIMES {
        all[r] = positive[r] = vdupq_n_s32(0);
        bias[r] = twin_i32(layer->bias + 4 * numbers[r]);
    }
    for (i = 0; i < width; i += 16) {
        int8x16_t one = vld1q_s8(there + (width - i < 16 ? 16 - (width - i) : 0));
        EIGHT_TIMES {
            int8x16_t w = vld1q_s8(eight->row[r] + i), more = vmaxq_s8(w, zero);
            SDOT(all[r], w, one);
            SDOT(positive[r], more, one);
        }
    }
    some = over_each(all);
    some.low = vshlq_n_s32(some.low, 7);
    some.high = vshlq_n_s32(some.high, 7);
    keep(start, add(load(bias), some));
    most = over_each(positive);
    most.low = vmulq_n_s32(most.low, -255);
    most.high = vmulq_n_s32(most.high, -255);
    most = subtract(most, load(bias));
    most.low = vshrq_n_s32(most.low, 8);
    most.high = vshrq_n_s32(most.high, 8);
    keep(floor, most);
}

INLINE void take_start(int32_t *start, const twin_layer *layer, const rows *eight,
                       const uint32_t *numbers) {
    int32_t floor[8];
    weigh(layer, eight, numbers, start, floor);
}

INLINE void sum_halves(sums *sum, const int32_t *start, const rows *eight, unsigned fours,
                       const int8_t *high, const int8_t *low) {
    unsigned r;
    EIGHT_TIMES sum[r] = set(0);
    add_bytes(sum, eight, fours, high);
    EIGHT_TIMES sum[r] = shifted(sum[r], start[r]);
    add_bytes(sum, eight, fours, low);
}

INLINE void sum_inputs(sums *sum, const int32_t *start, const rows *eight, uint32_t inputs,
                       const uint8_t *from) {
    const int8_t *high = (const int8_t *)from, *low = low_bytes_at(from, inputs);
    if (inputs <= 4)
        sum_halves(sum, start, eight, 1, high, low);
    else if (inputs <= 8)
        sum_halves(sum, start, eight, 2, high, low);
    else
        sum_halves(sum, start, eight, fours_of(inputs), high, low);
}

/* High bytes of two vectors, then low bytes less 128. */
INLINE int8x16_t high_bytes(int16x8_t a, int16x8_t b) {
    return vuzp2q_s8(vreinterpretq_s8_s16(a), vreinterpretq_s8_s16(b));
}
INLINE int8x16_t low_bytes(int16x8_t a, int16x8_t b) {
    int8x16_t low = vuzp1q_s8(vreinterpretq_s8_s16(a), vreinterpretq_s8_s16(b));
    return veorq_s8(low, vdupq_n_s8(INT8_MIN));
}

/* The bytes of four outputs, side by side for each column. */
INLINE void store_four(int8_t *high, int8_t *low, const activations *h) {
    uint16x8_t a = vreinterpretq_u16_s16(h[0]), b = vreinterpretq_u16_s16(h[1]);
    uint16x8_t c = vreinterpretq_u16_s16(h[2]), d = vreinterpretq_u16_s16(h[3]);
    uint16x8_t ab = vsriq_n_u16(b, a, 8), cd = vsriq_n_u16(d, c, 8), less = vdupq_n_u16(0x8080);
    vst1q_s8(high, vreinterpretq_s8_u16(vzip1q_u16(ab, cd)));
    vst1q_s8(high + 16, vreinterpretq_s8_u16(vzip2q_u16(ab, cd)));
    ab = veorq_u16(vsliq_n_u16(a, b, 8), less);
    cd = veorq_u16(vsliq_n_u16(c, d, 8), less);
    vst1q_s8(low, vreinterpretq_s8_u16(vzip1q_u16(ab, cd)));
    vst1q_s8(low + 16, vreinterpretq_s8_u16(vzip2q_u16(ab, cd)));
}

INLINE void store(uint8_t *to, unsigned outputs, uint32_t first, const activations *h) {
    int8_t *high = (int8_t *)to + 8 * first, *low = high + EIGHT_SIZE(outputs) / 2;
    store_four(high, low, h);
    if (first + 4 < outputs)
        store_four(high + 32, low + 32, h + 4);
}

INLINE int16x8_t four_features(twin_flash one, twin_flash other) {
    return vcombine_s16(vld1_s16((const int16_t *)(const void *)one),
                        vld1_s16((const int16_t *)(const void *)other));
}

INLINE void turn(uint8_t *to, unsigned inputs, const twin_flash *anchor) {
    int8_t *high = (int8_t *)to, *low = high + EIGHT_SIZE(inputs) / 2;
    unsigned i, k;
    for (i = 0; i < fours_of(inputs); i++)
        for (k = 0; k < 2; k++) {
            int16x8_t ab = four_features(anchor[4 * k] + 8 * i, anchor[4 * k + 1] + 8 * i);
            int16x8_t cd = four_features(anchor[4 * k + 2] + 8 * i, anchor[4 * k + 3] + 8 * i);
            vst1q_s8(high + 32 * i + 16 * k, high_bytes(ab, cd));
            vst1q_s8(low + 32 * i + 16 * k, low_bytes(ab, cd));
        }
}

#include "eights.h"

static void dot_first(const twin_layer *layer, const twin_pairs *pairs, void *out,
                      int32_t *difference) {
    if (layer->silu)
        first_layer(layer, pairs, out, difference, 1);
    else
        first_layer(layer, pairs, out, difference, 0);
}

/* A q + bias and B q + bias of each output, and 128 times all its weights: the anchors' share of
 * that is added here, too. */
static void dot_query(const twin_layer *layer, const int16_t *query, void *partial) {
    int8_t high[MOST], low[MOST], there[MOST];
    int32_t *out = (int32_t *)partial;
    uint32_t o, i, inputs = layer->inputs;
    for (i = 0; i < twin_align(inputs, 16); i++) {
        high[i] = (int8_t)(i < inputs ? query[i] >> 8 : 0);
        low[i] = (int8_t)(i < inputs ? (query[i] & 255) - 128 : 0);
        there[i] = (int8_t)(i < inputs ? 1 : 0);
    }
    for (o = 0; o < layer->outputs; o++) {
        const int8_t *a = (const int8_t *)(layer->weights + o * layer->row);
        const int8_t *b = (const int8_t *)(layer->mirror + o * layer->row);
        int32x4_t zero = vdupq_n_s32(0), all = zero, both;
        int32x4_t a_high = zero, a_low = zero, b_high = zero, b_low = zero;
        for (i = 0; i < inputs; i += 16) {
            int8x16_t wa = vld1q_s8(a + i), wb = vld1q_s8(b + i), one = vld1q_s8(there + i);
            int8x16_t h = vld1q_s8(high + i), l = vld1q_s8(low + i);
            SDOT(all, wa, one);
            SDOT(all, wb, one);
            SDOT(a_high, wa, h);
            SDOT(a_low, wa, l);
            SDOT(b_high, wb, h);
            SDOT(b_low, wb, l);
        }
        all = vshlq_n_s32(all, 7);
        a_low = vaddq_s32(vaddq_s32(a_low, all), vshlq_n_s32(a_high, 8));
        b_low = vaddq_s32(vaddq_s32(b_low, all), vshlq_n_s32(b_high, 8));
        both = vpaddq_s32(a_low, b_low);
        both = vaddq_s32(vpaddq_s32(both, both), vdupq_n_s32(twin_i32(layer->bias + 4 * o)));
        vst1_s32(out + 2 * o, vget_low_s32(both));
    }
}

/* Some outputs of a further layer. */
typedef struct some {
    uint32_t first, count;
    uint32_t alive[ROWS + 8];  /* numbers of those that may be more than zero, from the first on */
    int32_t start[ROWS + 8];   /* bias, and 128 times all weights */
    int32_t floor[ROWS + 8];   /* a sum of high bytes up to this makes zero of an output */
    int32_t high[ROWS + 8][8]; /* sums of high bytes */
} some;

/* Whatever is about weights alone. */
static void sum_weights(some *of, const twin_layer *layer) {
    uint32_t k;
    for (k = 0; k < of->count; k += 8) {
        uint32_t numbers[8];
        rows eight;
        number_outputs(layer, of->first + k, numbers);
        take_rows(&eight, layer, layer->weights, numbers);
        weigh(layer, &eight, numbers, of->start + k, of->floor + k);
    }
}

/* Sums of high bytes over an eight; returns how many outputs may be more than zero. */
INLINE uint32_t first_half(some *of, const twin_layer *layer, const uint8_t *from) {
    uint32_t k, r, alive = 0;
    for (k = 0; k < of->count; k += 8) {
        uint32_t numbers[8];
        rows eight;
        sums sum[8];
        int32x4_t most[8];
        uint64_t live;
        number_outputs(layer, of->first + k, numbers);
        take_rows(&eight, layer, layer->weights, numbers);
        EIGHT_TIMES sum[r] = set(0);
        add_bytes(sum, &eight, fours_of(layer->inputs), (const int8_t *)from);
        EIGHT_TIMES {
            keep(of->high[k + r], sum[r]);
            most[r] = vmaxq_s32(sum[r].low, sum[r].high);
        }
        most[0] = vpmaxq_s32(vpmaxq_s32(most[0], most[1]), vpmaxq_s32(most[2], most[3]));
        most[1] = vpmaxq_s32(vpmaxq_s32(most[4], most[5]), vpmaxq_s32(most[6], most[7]));
        live = vget_lane_u64(vreinterpret_u64_u8(vmovn_u16(vcombine_u16(
                                 vmovn_u32(vcgtq_s32(most[0], vld1q_s32(of->floor + k))),
                                 vmovn_u32(vcgtq_s32(most[1], vld1q_s32(of->floor + k + 4)))))),
                             0);
        EIGHT_TIMES {
            of->alive[alive] = k + r;
            alive += (uint32_t)(live >> 8 * r & 1) & (k + r < of->count);
        }
    }
    EIGHT_TIMES of->alive[alive + r] = alive ? of->alive[alive - 1] : 0;
    return alive;
}

/* The last layer with relu. */
static void last_layer(const twin_layer *layer, const void *in, int32_t *difference) {
    unsigned all, number;
    way how = way_of(layer);
    uint32_t alive, k, r;
    some of;
    memcpy(&all, in, sizeof all);
    for (of.first = 0; of.first < layer->outputs; of.first += ROWS) {
        of.count = layer->outputs - of.first < ROWS ? layer->outputs - of.first : ROWS;
        sum_weights(&of, layer);
        for (number = 0; number < 2 * all; number++) {
            const uint8_t *from = eight_at(in, number, layer->inputs);
            alive = first_half(&of, layer, from);
            for (k = 0; k < alive; k += 8) {
                uint32_t numbers[8];
                rows eight;
                sums sum[8];
                EIGHT_TIMES {
                    uint32_t one = of.alive[k + r];
                    numbers[r] = of.first + one;
                    sum[r] = shifted(load(of.high[one]), of.start[one]);
                }
                take_rows(&eight, layer, layer->weights, numbers);
                add_bytes(sum, &eight, fours_of(layer->inputs), low_bytes_at(from, layer->inputs));
                finish(layer, &how, numbers, alive - k, sum, number, all, NULL, difference, 0);
            }
        }
    }
}

static void dot_further(const twin_layer *layer, const void *in, void *out, int32_t *difference) {
    if (layer->silu)
        further_layer(layer, in, out, difference, 1);
    else if (out)
        further_layer(layer, in, out, difference, 0);
    else
        last_layer(layer, in, difference);
}

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

const twin_kernel twin_kernel_neon_dot = {
    PAIRS,         /* pairs */
    4,             /* unit */
    16,            /* align */
    8,             /* partial_bytes */
    4 * PAIRS + 4, /* block_bytes: four times 4 make the header */
    dot_query,     /* query */
    dot_first,     /* first */
    dot_further,   /* further */
    2 * PAIRS,     /* room_bytes */
};

#endif
