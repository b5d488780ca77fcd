/* Arm with NEON, as in all Raspberry Pis since the 2, with 64 bits or 32: SMLAL multiplies four
 * activations by one weight. In an eight, the activations of each output are side by side. */

#include "host.h"

#if TWIN_HOST_ARM

#include "../twin_prepared.h"
#include <string.h>

/* 32-bit Raspberry Pi OS is compiled for ARMv6, which lacks NEON. */
#if TWIN_HOST_ARM == 32 && !defined(__ARM_NEON)
TARGET("arch=armv7-a,fpu=neon")
#define TARGETED 1
#endif

#include "neon.h"

typedef uint8_t rows_room[8][MOST_INPUTS + 16];

typedef struct rows {
    twin_flash row[8];
    unsigned wide;
} rows;

INLINE void take_rows(rows *eight, rows_room *room, const twini_layer *layer, twin_flash weights,
                      const uint32_t *numbers, const squeeze *without) {
    unsigned r;
    EIGHT_TIMES eight->row[r] = weights + numbers[r] * layer->row;
    if (without) {
        squeeze_rows(without, eight->row, **room, sizeof **room);
        EIGHT_TIMES eight->row[r] = (*room)[r];
    }
    eight->wide = layer->wide;
}

INLINE void take_start(int32_t *start, const twini_layer *layer, rows *eight,
                       const uint32_t *numbers, uint32_t n) {
    unsigned r;
    (void)eight;
    (void)n;
    EIGHT_TIMES start[r] = twini_i32(layer->bias + 4 * numbers[r]);
}

/* Eight weights of a row; reading past the last row is safe, as more data follows. */
INLINE int16x8_t weights_at(twin_flash row, uint32_t i, unsigned wide) {
    if (wide)
        return vld1q_s16((const int16_t *)(const void *)(row + 2 * i));
    return vmovl_s8(vld1_s8((const int8_t *)(row + i)));
}

#define INPUT(k)                                                                                   \
    {                                                                                              \
        int16x8_t x = vld1q_s16(h + 8 * (i + (k)));                                                \
        EIGHT_TIMES {                                                                              \
            sum[r].low = ADD_TIMES_LANE(sum[r].low, vget_low_s16(x), w[r], k);                     \
            sum[r].high = ADD_HIGH_TIMES_LANE(sum[r].high, x, w[r], k);                            \
        }                                                                                          \
    }

INLINE void add_inputs(sums *sum, const rows *eight, uint32_t inputs, const int16_t *h,
                       unsigned wide) {
    uint32_t i;
    unsigned r;
    for (i = 0; i < inputs; i += 8) {
        int16x8_t w[8];
        EIGHT_TIMES w[r] = weights_at(eight->row[r], i, wide);
        INPUT(0)
        INPUT(1)
        INPUT(2)
        INPUT(3)
        if (i + 4 >= inputs)
            break;
        INPUT(4)
        INPUT(5)
        INPUT(6)
        INPUT(7)
    }
}

INLINE void sum_inputs(sums *sum, const int32_t *start, const rows *eight, uint32_t inputs,
                       const uint8_t *from, size_t size) {
    const int16_t *h = (const int16_t *)(const void *)from;
    unsigned r;
    (void)size;
    EIGHT_TIMES sum[r] = set(start[r]);
    if (eight->wide)
        add_inputs(sum, eight, inputs, h, 1);
    else
        add_inputs(sum, eight, inputs, h, 0);
}

INLINE void store(uint8_t *to, size_t size, uint32_t first, const activations *h) {
    int16_t *out = (int16_t *)(void *)to + 8 * (size_t)first;
    (void)size;
    vst1q_s16(out, h[0]);
    vst1q_s16(out + 8, h[1]);
    vst1q_s16(out + 16, h[2]);
    vst1q_s16(out + 24, h[3]);
}

INLINE void transpose(uint8_t *to, unsigned inputs, const twin_flash *anchor) {
    int16_t *out = (int16_t *)(void *)to;
    unsigned i, r;
    for (i = 0; i < twini_align(inputs, 4); i++)
        EIGHT_TIMES out[8 * i + r] = twini_i16(anchor[r] + 2 * i);
}

#include "squeeze.h"

#include "neon_plain_ready.h"

#define KERNEL twini_kernel_neon
#define ALIGN  16
#define QUERY  plain_query
#define WORK   sizeof(work)
#define FORM   &ready_form
#include "host_kernel.h"

#ifdef TARGETED
TARGET_END
#endif

#endif
