/* A prepared model, by dot products of bytes.
 *
 * An activation h is split into lo - 256 hi, with lo its lower byte as a signed number; so hi, the
 * negative of h / 256 rounded, is between -128 and 64. Zero is zero in both bytes.
 *
 * In the last layer with relu, the products with hi alone show for most outputs that they are zero,
 * as what those with lo can add is bounded. Eight adjacent outputs that are all zero are done then.
 */

/* Weights are left out only in layers that have at most this many. */
#define MOST_SQUEEZED 65536

static uint32_t dot_most_left(unsigned widest) {
    uint32_t most = twini_align(widest, 4) * twini_align(widest, 16);
    return most < MOST_SQUEEZED ? most : MOST_SQUEEZED;
}

INLINE int dot_leaves_out(unsigned inputs, unsigned outputs) {
    return twini_align(inputs, 4) * twini_align(outputs, 16) <= MOST_SQUEEZED;
}

/* With silu, bytes of eight outputs: what their sums start with, and their weights. */
#define START_BYTES 256

INLINE size_t dot_silu_bytes(uint32_t inputs) {
    return START_BYTES + 8 * (size_t)twini_align(inputs, 4);
}

static uint32_t dot_weight_bytes(unsigned inputs, unsigned outputs) {
    uint32_t relu = twini_padded(inputs) * twini_align(outputs, 16);
    uint32_t silu = (uint32_t)dot_silu_bytes(inputs) * (twini_align(outputs, 8) / 8);
    return silu > relu ? silu : relu;
}

/* [8 outputs at a time]{start; [4 inputs at a time][8][4]}. A sum starts with the bias and 128
 * times all weights, since low bytes lack 128. Four times each: its part above the lowest byte, for
 * the sum of products with high bytes; then that byte. */
static void dot_silu_arrange(const twini_layer *from, uint8_t *weights) {
    uint32_t o, i;
    for (o = 0; o < from->outputs; o++) {
        twin_flash row = from->weights + (size_t)o * from->row;
        uint8_t *eight = weights + o / 8 * dot_silu_bytes(from->inputs);
        int32_t *start = (int32_t *)(void *)eight + START_BYTES / 32 * (o & 7);
        uint32_t bias = (uint32_t)twini_i32(from->bias + 4 * o);
        for (i = 0; i < from->inputs; i++) {
            int32_t weight = twini_weight(row, i, 0);
            bias += (uint32_t)(128 * weight);
            eight[START_BYTES + 8 * (i & ~3u) + 4 * (o & 7) + (i & 3)] = (uint8_t)weight;
        }
        for (i = 0; i < 4; i++) {
            start[i] = (int32_t)bias >> 8;
            start[4 + i] = (int32_t)(bias & 255);
        }
    }
}

/* With relu, if weights may be left out, those of each input are side by side. */
static void dot_arrange(const twini_layer *from, const uint16_t *ranked, uint8_t *weights) {
    uint32_t width = twini_align(from->outputs, 16), fours = twini_align(from->inputs, 4), o, i;
    int squeezed = dot_leaves_out(from->inputs, from->outputs);
    if (from->silu) {
        dot_silu_arrange(from, weights);
        return;
    }
    for (o = 0; o < from->outputs; o++) {
        twin_flash row = from->weights + (size_t)ranked[o] * from->row;
        for (i = 0; i < from->inputs; i++) {
            uint32_t to = squeezed ? i * width + o
                                   : (o & ~3u) * fours + 4 * (i & ~3u) + 4 * (o & 3) + (i & 3);
            weights[to] = (uint8_t)twini_weight(row, i, 0);
        }
    }
}

/* An output may be positive only if its sum of products with hi is below this: products with lo add
 * at most 127 times a weight, or -128 times. */
static int32_t dot_enough(const twini_layer *from, uint32_t o) {
    twin_flash row = from->weights + (size_t)o * from->row;
    int64_t most = twini_i32(from->bias + 4 * o);
    uint32_t i;
    for (i = 0; i < from->inputs; i++) {
        int32_t weight = twini_weight(row, i, 0);
        most += weight > 0 ? 127 * weight : -128 * weight;
    }
    return (int32_t) - (-most >> 8); /* rounded up */
}

/* Zeros to add products to. In assembly, as a compiler would copy one, and copies take time that
 * new zeros do not. */
INLINE int32x4_t dot_new_sum(void) {
    int32x4_t sum;
    __asm__ volatile("movi %0.4s, #0" : "=w"(sum));
    return sum;
}

/* [4 neurons at a time]{hi, lo}[8 anchors][4] */
INLINE void dot_put_four(uint8_t *in, uint32_t first, const neon_activations *h) {
    uint8_t *to = in + 16 * (size_t)first;
    uint16x8_t a = vreinterpretq_u16_s16(h[0]), b = vreinterpretq_u16_s16(h[1]);
    uint16x8_t c = vreinterpretq_u16_s16(h[2]), d = vreinterpretq_u16_s16(h[3]);
    uint16x8_t ab = vsliq_n_u16(a, b, 8), cd = vsliq_n_u16(c, d, 8), up = vdupq_n_u16(127);
    vst1q_u8(to + 32, vreinterpretq_u8_u16(vzip1q_u16(ab, cd)));
    vst1q_u8(to + 48, vreinterpretq_u8_u16(vzip2q_u16(ab, cd)));
    ab = vsriq_n_u16(vsubq_u16(up, b), vsubq_u16(up, a), 8);
    cd = vsriq_n_u16(vsubq_u16(up, d), vsubq_u16(up, c), 8);
    vst1q_u8(to, vreinterpretq_u8_u16(vzip1q_u16(ab, cd)));
    vst1q_u8(to + 16, vreinterpretq_u8_u16(vzip2q_u16(ab, cd)));
}

/* [4 outputs at a time][4 inputs at a time][4][4] */
TWIN_NOT_INLINE static void dot_leave_out(const neon_prepared_work *mine,
                                          const twini_prepared_layer *layer) {
    uint32_t width = twini_align(layer->outputs, 16), fours = dot_fours_of(mine->count), g, o;
    size_t apart = 16 * (size_t)fours;
    for (g = 0; g < fours; g++) {
        const uint16_t *number = mine->number + 4 * g;
        const int8_t *from = (const int8_t *)layer->weights;
        const int8_t *a = from + number[0] * width, *b = from + number[1] * width;
        const int8_t *c = from + number[2] * width, *d = from + number[3] * width;
        int8_t *to = (int8_t *)mine->squeezed + 16 * (size_t)g;
        for (o = 0; o < width; o += 16, to += 4 * apart) {
            int8x16x2_t ab = vzipq_s8(vld1q_s8(a + o), vld1q_s8(b + o));
            int8x16x2_t cd = vzipq_s8(vld1q_s8(c + o), vld1q_s8(d + o));
            int16x8x2_t low =
                vzipq_s16(vreinterpretq_s16_s8(ab.val[0]), vreinterpretq_s16_s8(cd.val[0]));
            int16x8x2_t high =
                vzipq_s16(vreinterpretq_s16_s8(ab.val[1]), vreinterpretq_s16_s8(cd.val[1]));
            vst1q_s8(to, vreinterpretq_s8_s16(low.val[0]));
            vst1q_s8(to + apart, vreinterpretq_s8_s16(low.val[1]));
            vst1q_s8(to + 2 * apart, vreinterpretq_s8_s16(high.val[0]));
            vst1q_s8(to + 3 * apart, vreinterpretq_s8_s16(high.val[1]));
        }
    }
}

INLINE const int8_t *dot_take_weights(const neon_prepared_work *mine,
                                      const twini_prepared_layer *layer, int all) {
    if (all)
        return (const int8_t *)layer->weights;
    dot_leave_out(mine, layer);
    return (const int8_t *)mine->squeezed;
}

/* Four inputs of eight anchors, for four outputs. In one piece: eight interleaved sums hide
 * the latency of each. */
#define FOUR_BY_EIGHT(sum, low, high, w)                                                           \
    __asm__("sdot %0.4s, %8.16b, %10.4b[0]\n\t"                                                    \
            "sdot %1.4s, %9.16b, %10.4b[0]\n\t"                                                    \
            "sdot %2.4s, %8.16b, %10.4b[1]\n\t"                                                    \
            "sdot %3.4s, %9.16b, %10.4b[1]\n\t"                                                    \
            "sdot %4.4s, %8.16b, %10.4b[2]\n\t"                                                    \
            "sdot %5.4s, %9.16b, %10.4b[2]\n\t"                                                    \
            "sdot %6.4s, %8.16b, %10.4b[3]\n\t"                                                    \
            "sdot %7.4s, %9.16b, %10.4b[3]"                                                        \
            : "+w"((sum)[0]), "+w"((sum)[1]), "+w"((sum)[2]), "+w"((sum)[3]), "+w"((sum)[4]),      \
              "+w"((sum)[5]), "+w"((sum)[6]), "+w"((sum)[7])                                       \
            : "w"(low), "w"(high), "w"(w))

/* Sums of four outputs with the weights `w`. */
INLINE void dot_sum_four(neon_sums *sum, const neon_prepared_work *mine,
                         const twini_prepared_layer *layer, uint32_t o, const int8_t *w,
                         uint32_t fours) {
    const int8_t *h = (const int8_t *)mine->in, *end = w + 16 * (size_t)fours;
    int32x4_t hi[8], lo[8];
    uint32_t r;
    EIGHT_TIMES {
        hi[r] = dot_new_sum();
        lo[r] = vdupq_n_s32(layer->bias[o + r / 2]);
    }
    for (; w != end; w += 16, h += 64) {
        int8x16_t four = vld1q_s8(w), a = vld1q_s8(h), b = vld1q_s8(h + 16);
        int8x16_t c = vld1q_s8(h + 32), d = vld1q_s8(h + 48);
        FOUR_BY_EIGHT(hi, a, b, four);
        FOUR_BY_EIGHT(lo, c, d, four);
    }
    FOUR_TIMES {
        sum[r].low = vsubq_s32(lo[2 * r], vshlq_n_s32(hi[2 * r], 8));
        sum[r].high = vsubq_s32(lo[2 * r + 1], vshlq_n_s32(hi[2 * r + 1], 8));
    }
}

/* Not inlined, like the next ones, so that all of it stays in registers. */
TWIN_NOT_INLINE static void dot_sum_products(const neon_prepared_work *mine,
                                             const twini_prepared_layer *layer,
                                             const int8_t *weights) {
    uint32_t fours = dot_fours_of(mine->count), o, r;
    for (o = 0; o < twini_align(layer->outputs, 8); o += 4, weights += 16 * (size_t)fours) {
        neon_sums sum[4];
        dot_sum_four(sum, mine, layer, o, weights, fours);
        FOUR_TIMES neon_keep(mine->sum + TWIN_EIGHT * (size_t)(o + r), sum[r]);
    }
}

/* silu, where an activation is 256 high + low + 128: [4 neurons at a time]{high, low}[8][4]. */
INLINE void dot_put_silu(uint8_t *in, uint32_t first, const neon_activations *h) {
    uint16_t *to = (uint16_t *)(void *)in + 8 * (size_t)first;
    uint8x16_t a = vreinterpretq_u8_s16(h[0]), b = vreinterpretq_u8_s16(h[1]);
    uint8x16_t c = vreinterpretq_u8_s16(h[2]), d = vreinterpretq_u8_s16(h[3]);
    uint8x16_t less = vdupq_n_u8(128);
    uint16x8_t ab = vreinterpretq_u16_u8(vtrn2q_u8(a, b));
    uint16x8_t cd = vreinterpretq_u16_u8(vtrn2q_u8(c, d));
    vst1q_u16(to, vzip1q_u16(ab, cd));
    vst1q_u16(to + 8, vzip2q_u16(ab, cd));
    ab = vreinterpretq_u16_u8(veorq_u8(vtrn1q_u8(a, b), less));
    cd = vreinterpretq_u16_u8(veorq_u8(vtrn1q_u8(c, d), less));
    vst1q_u16(to + 16, vzip1q_u16(ab, cd));
    vst1q_u16(to + 24, vzip2q_u16(ab, cd));
}

/* In assembly, as a compiler would load what two sums start with once, and copy it: copies
 * take time from products, loads do not. */
INLINE int32x4_t dot_load_start(const uint8_t *from) {
    int32x4_t start;
    __asm__ volatile("ldr %q0, %1" : "=w"(start) : "m"(*(const int32x4_t *)(const void *)from));
    return start;
}

/* Eight outputs by eight anchors by four inputs. */
INLINE void dot_add_four_inputs(int32x4_t *sum, const int8_t *w, const int8_t *h) {
    int8x16_t one = vld1q_s8(w), other = vld1q_s8(w + 16);
    int8x16_t low = vld1q_s8(h), high = vld1q_s8(h + 16);
    FOUR_BY_EIGHT(sum, low, high, one);
    FOUR_BY_EIGHT(sum + 8, low, high, other);
}

/* The same for `fours` of them. */
INLINE void dot_add_inputs(int32x4_t *sum, const int8_t *w, const int8_t *h, uint32_t fours) {
    uint32_t r;
    for (; fours >= 4; fours -= 4, w += 128, h += 256)
        FOUR_TIMES dot_add_four_inputs(sum, w + 32 * r, h + 64 * r);
    for (; fours; fours--, w += 32, h += 64)
        dot_add_four_inputs(sum, w, h);
}

/* With lookups on the way, of two entries for every sixteen products, or of four in
 * narrow layers, which have less time for them. They use what products leave free. */
INLINE void dot_add_inputs_and_look_up(int32x4_t *sum, const int8_t *w, const int8_t *h,
                                       uint32_t fours, neon_lookups *waiting) {
    int narrow = fours < 32;
    uint32_t r, with = (uint32_t)(waiting->end - waiting->next) / 8 >> narrow;
    if (with > fours / 4)
        with = fours / 4;
    fours -= 4 * with;
    for (; with && narrow; with--, w += 128, h += 256)
        FOUR_TIMES {
            dot_add_four_inputs(sum, w + 32 * r, h + 64 * r);
            neon_look_up_four(waiting);
        }
    for (; with; with--, w += 128, h += 256)
        FOUR_TIMES {
            dot_add_four_inputs(sum, w + 32 * r, h + 64 * r);
            neon_look_up_two(waiting);
        }
    dot_add_inputs(sum, w, h, fours);
}

/* First the high bytes; SLI moves their sums up, and makes the lowest byte that of the start.
 */
#define STEP 8
INLINE void dot_step_sums(neon_sums *sum, const neon_prepared_work *mine,
                          const twini_prepared_layer *layer, uint32_t o, neon_lookups *waiting) {
    const uint8_t *start = layer->weights + o / 8 * dot_silu_bytes(layer->inputs);
    const int8_t *h = (const int8_t *)mine->in, *w = (const int8_t *)start + START_BYTES;
    uint32_t fours = dot_fours_of(layer->inputs), r;
    int32x4_t all[16];
    EIGHT_TIMES {
        all[2 * r] = dot_load_start(start + 32 * r);
        all[2 * r + 1] = dot_load_start(start + 32 * r);
    }
    dot_add_inputs_and_look_up(all, w, h, fours, waiting);
    EIGHT_TIMES {
        all[2 * r] = vsliq_n_s32(dot_load_start(start + 32 * r + 16), all[2 * r], 8);
        all[2 * r + 1] = vsliq_n_s32(dot_load_start(start + 32 * r + 16), all[2 * r + 1], 8);
    }
    dot_add_inputs(all, w, h + 32, fours);
    EIGHT_TIMES {
        sum[r].low = all[2 * r];
        sum[r].high = all[2 * r + 1];
    }
}

/* Products of eight outputs, whose weights are `apart` in fours, with hi; or with lo, if `h` is 32
 * bytes further on. */
INLINE void dot_add_products(int32x4_t *sum, const int8_t *weights, size_t apart, const int8_t *h) {
    const int8_t *end = weights + apart;
    for (; weights != end; weights += 16, h += 64) {
        int8x16_t one = vld1q_s8(weights), other = vld1q_s8(weights + apart);
        int8x16_t low = vld1q_s8(h), high = vld1q_s8(h + 16);
        FOUR_BY_EIGHT(sum, low, high, one);
        FOUR_BY_EIGHT(sum + 8, low, high, other);
    }
}

/* Whether any of eight outputs may be positive, by its sums of products with hi. */
INLINE int dot_is_any_alive(const int32x4_t *sum, const int32_t *enough) {
    int32x4_t least[8];
    uint32x4_t alive;
    uint32_t r;
    EIGHT_TIMES least[r] = vminq_s32(sum[2 * r], sum[2 * r + 1]);
    least[0] = vpminq_s32(vpminq_s32(least[0], least[1]), vpminq_s32(least[2], least[3]));
    least[1] = vpminq_s32(vpminq_s32(least[4], least[5]), vpminq_s32(least[6], least[7]));
    alive = vorrq_u32(vcltq_s32(least[0], vld1q_s32(enough)),
                      vcltq_s32(least[1], vld1q_s32(enough + 4)));
    return vmaxvq_u32(alive) != 0;
}

/* A bias less the products with hi. Before those with lo are added it may leave 32 bits, so that
 * this is done without a sign: the sum is right modulo 2^32. */
INLINE int32x4_t dot_less_high(int32_t bias, int32x4_t sum) {
    uint32x4_t high = vreinterpretq_u32_s32(vshlq_n_s32(sum, 8));
    return vreinterpretq_s32_u32(vsubq_u32(vdupq_n_u32((uint32_t)bias), high));
}

#define FOLD_OUTPUT(r, lane)                                                                       \
    {                                                                                              \
        neon_activations h =                                                                       \
            vmaxq_s16(SQUASHED(sum[2 * (r)], sum[2 * (r) + 1], m, lane), neon_none());             \
        FOLD(total, h, weight, r);                                                                 \
        if (scaled) {                                                                              \
            FOLD(second, h, other, r);                                                             \
        }                                                                                          \
    }

/* The last layer with relu. */
INLINE void dot_fold_products(const neon_prepared_work *mine, const twini_prepared_layer *layer,
                              const int8_t *weights, int32_t *totals, int32_t *hard, int scaled) {
    const int8_t *bytes = (const int8_t *)mine->in;
    const int32_t *biases = layer->bias, *multiplier = layer->multiplier, *enough = layer->enough;
    uint32_t outputs = layer->outputs, o, r;
    size_t apart = 16 * (size_t)dot_fours_of(mine->count);
    neon_sums total = neon_set(0), second = total;
    for (o = 0; o < outputs; o += 8, weights += 2 * apart) {
        int32x4_t sum[16], m;
        int16x8_t weight, other;
        EIGHT_TIMES {
            sum[2 * r] = dot_new_sum();
            sum[2 * r + 1] = dot_new_sum();
        }
        dot_add_products(sum, weights, apart, bytes);
        if (!dot_is_any_alive(sum, enough + o))
            continue;
        EIGHT_TIMES {
            sum[2 * r] = dot_less_high(biases[o + r], sum[2 * r]);
            sum[2 * r + 1] = dot_less_high(biases[o + r], sum[2 * r + 1]);
        }
        dot_add_products(sum, weights, apart, bytes + 32);
        m = neon_squashing(layer, vld1q_s32(multiplier + o));
        weight = vld1q_s16(layer->fold + o);
        other = vld1q_s16(layer->hard + o);
        FOLD_OUTPUT(0, 0)
        FOLD_OUTPUT(1, 1)
        FOLD_OUTPUT(2, 2)
        FOLD_OUTPUT(3, 3)
        m = neon_squashing(layer, vld1q_s32(multiplier + o + 4));
        FOLD_OUTPUT(4, 0)
        FOLD_OUTPUT(5, 1)
        FOLD_OUTPUT(6, 2)
        FOLD_OUTPUT(7, 3)
    }
    neon_keep(totals, total);
    if (scaled)
        neon_keep(hard, second);
}

TWIN_NOT_INLINE static void dot_fold_one(const neon_prepared_work *mine,
                                         const twini_prepared_layer *layer, const int8_t *weights,
                                         int32_t *totals) {
    dot_fold_products(mine, layer, weights, totals, 0, 0);
}

TWIN_NOT_INLINE static void dot_fold_both(const neon_prepared_work *mine,
                                          const twini_prepared_layer *layer, const int8_t *weights,
                                          int32_t *totals, int32_t *hard) {
    dot_fold_products(mine, layer, weights, totals, hard, 1);
}

INLINE void dot_fold_relu(const neon_prepared_work *mine, const twini_prepared_layer *layer,
                          const int8_t *weights, int32_t *totals, int32_t *hard) {
    if (hard)
        dot_fold_both(mine, layer, weights, totals, hard);
    else
        dot_fold_one(mine, layer, weights, totals);
}

#define END_INPUTS(in, count) (void)(in)
#define ENOUGH                dot_enough
#include "neon_layers.h"
