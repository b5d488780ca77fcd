/* Bytes instead of 16-bit numbers, for SDOT.
 *
 * SDOT multiplies bytes and adds four products to a sum, so a 16-bit number is split into two
 * bytes: 256 high + low + 128, both signed. The 128 is made up for by 128 times the sum of the
 * weights. An eight holds the high bytes, [4 activations at a time][8 columns][4], then the
 * low bytes likewise. */

/* In assembly, as arm_neon.h lacks the intrinsic if the file is compiled for any processor. */
#define SDOT(sum, a, b) __asm__("sdot %0.4s, %1.16b, %2.16b" : "+w"(sum) : "w"(a), "w"(b))

/* Four outputs by eight columns by four inputs. In one piece: eight interleaved sums hide the
 * latency of each, and compilers would put those of one sum next to each other. */
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

/* Eight outputs by eight columns: `fours` times four inputs, of high or of low bytes. A load may
 * read up to 12 bytes past a row: after the last come bias, multiplier and weights of the output,
 * at least 16 bytes. */
INLINE void dot_add_bytes(neon_sums *sum, const int8_t *const *row, unsigned fours,
                          const int8_t *h) {
    unsigned i, r;
    for (i = 0; i < fours; i += 4) {
        int8x16_t w[8];
        EIGHT_TIMES w[r] = vld1q_s8(row[r] + 4 * i);
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

INLINE unsigned dot_fours_of(unsigned n) {
    return (n + 3) / 4;
}

/* 256 times sums of high bytes, and what they start with. */
INLINE neon_sums dot_shifted(neon_sums high, int32_t start) {
    neon_sums all = {vshlq_n_s32(high.low, 8), vshlq_n_s32(high.high, 8)};
    return neon_add(all, neon_set(start));
}

/* Sums over each of eight vectors. */
INLINE neon_sums dot_over_each(const int32x4_t *v) {
    neon_sums all = {vpaddq_s32(vpaddq_s32(v[0], v[1]), vpaddq_s32(v[2], v[3])),
                     vpaddq_s32(vpaddq_s32(v[4], v[5]), vpaddq_s32(v[6], v[7]))};
    return all;
}

/* Rows of weights of eight outputs; what their sums over a layer start with: bias, and 128
 * times all weights; and how large a sum of high bytes may be for the output to be zero: low bytes
 * add at most 255 times the positive weights. */
typedef struct dot_weighed {
    const int8_t *row[8];
    int32_t start[8], floor[8];
} dot_weighed;

/* Bytes between rows of squeezed weights: 16 zeros after each, and a multiple of 16. */
INLINE size_t dot_stride_of(uint32_t n) {
    return twini_align(n + 16, 16);
}

/* Take rows of weights, of `n` inputs. If some are left out, the others go to `room`, each row
 * followed by 16 zeros; they are summed on the way, as reading them back at once is slow. */
INLINE void dot_weigh(dot_weighed *eight, const twini_layer *layer, const uint32_t *numbers,
                      uint32_t n, const squeeze *without, uint8_t *room) {
    static const int8_t there[32] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    uint32_t i, r, width = layer->row;
    size_t stride = dot_stride_of(n);
    int32x4_t all[8], positive[8];
    int32_t bias[8];
    neon_sums dot_some, most;
    EIGHT_TIMES {
        all[r] = positive[r] = vdupq_n_s32(0);
        bias[r] = twini_i32(layer->bias + 4 * numbers[r]);
        eight->row[r] = (const int8_t *)(layer->weights + numbers[r] * layer->row);
    }
    for (i = 0; i < width; i += 16) {
        int8x16_t one = vld1q_s8(there + (width - i < 16 ? 16 - (width - i) : 0));
        uint8x16_t from = without ? vld1q_u8(without->from[i / 16]) : vdupq_n_u8(0);
        uint8_t *to = without ? room + without->to[i / 16] : room;
        EIGHT_TIMES {
            int8x16_t w = vld1q_s8(eight->row[r] + i);
            if (without) {
                w = vqtbl1q_s8(w, from);
                vst1q_s8((int8_t *)to, w);
                to += stride;
            }
            SDOT(all[r], w, one);
            SDOT(positive[r], vmaxq_s8(w, vdupq_n_s8(0)), one);
        }
    }
    for (r = 0; r < 8 && without; r++) {
        eight->row[r] = (const int8_t *)room + r * stride;
        vst1q_u8(room + r * stride + n, vdupq_n_u8(0));
    }
    dot_some = dot_over_each(all);
    dot_some.low = vshlq_n_s32(dot_some.low, 7);
    dot_some.high = vshlq_n_s32(dot_some.high, 7);
    neon_keep(eight->start, neon_add(neon_load(bias), dot_some));
    most = dot_over_each(positive);
    most.low = vmulq_n_s32(most.low, -255);
    most.high = vmulq_n_s32(most.high, -255);
    most = neon_subtract(most, neon_load(bias));
    most.low = vshrq_n_s32(most.low, 8);
    most.high = vshrq_n_s32(most.high, 8);
    neon_keep(eight->floor, most);
}

/* High bytes of two vectors, then low bytes less 128. */
INLINE int8x16_t dot_high_bytes(int16x8_t a, int16x8_t b) {
    return vuzp2q_s8(vreinterpretq_s8_s16(a), vreinterpretq_s8_s16(b));
}
INLINE int8x16_t dot_low_bytes(int16x8_t a, int16x8_t b) {
    int8x16_t low = vuzp1q_s8(vreinterpretq_s8_s16(a), vreinterpretq_s8_s16(b));
    return veorq_s8(low, vdupq_n_s8(INT8_MIN));
}

/* The bytes of four outputs, side by side for each column. */
INLINE void store(uint8_t *to, size_t size, uint32_t first, const neon_activations *h) {
    uint16x8_t a = vreinterpretq_u16_s16(h[0]), b = vreinterpretq_u16_s16(h[1]);
    uint16x8_t c = vreinterpretq_u16_s16(h[2]), d = vreinterpretq_u16_s16(h[3]);
    uint16x8_t ab = vsriq_n_u16(b, a, 8), cd = vsriq_n_u16(d, c, 8), less = vdupq_n_u16(0x8080);
    uint8_t *high = to + 8 * (size_t)first, *low = high + size / 2;
    vst1q_u8(high, vreinterpretq_u8_u16(vzip1q_u16(ab, cd)));
    vst1q_u8(high + 16, vreinterpretq_u8_u16(vzip2q_u16(ab, cd)));
    ab = veorq_u16(vsliq_n_u16(a, b, 8), less);
    cd = veorq_u16(vsliq_n_u16(c, d, 8), less);
    vst1q_u8(low, vreinterpretq_u8_u16(vzip1q_u16(ab, cd)));
    vst1q_u8(low + 16, vreinterpretq_u8_u16(vzip2q_u16(ab, cd)));
}

INLINE int16x8_t dot_four_features(twin_flash one, twin_flash other) {
    return vcombine_s16(vld1_s16((const int16_t *)(const void *)one),
                        vld1_s16((const int16_t *)(const void *)other));
}

INLINE void transpose(uint8_t *to, unsigned inputs, const twin_flash *anchor) {
    int8_t *high = (int8_t *)to, *low = high + size_of_eight(LANES, inputs) / 2;
    unsigned i, k;
    for (i = 0; i < dot_fours_of(inputs); i++)
        for (k = 0; k < 2; k++) {
            int16x8_t ab = dot_four_features(anchor[4 * k] + 8 * i, anchor[4 * k + 1] + 8 * i);
            int16x8_t cd = dot_four_features(anchor[4 * k + 2] + 8 * i, anchor[4 * k + 3] + 8 * i);
            vst1q_s8(high + 32 * i + 16 * k, dot_high_bytes(ab, cd));
            vst1q_s8(low + 32 * i + 16 * k, dot_low_bytes(ab, cd));
        }
}
