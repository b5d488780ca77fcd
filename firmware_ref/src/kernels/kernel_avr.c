/* For AVR: weights are read from flash one by one, and an 8 x 16-bit product is two.
 *
 * A block is one pair, two columns, with both activations of an input side by side. The first layer
 * is evaluated like any other, once with A and once with B: query and anchor are its columns, which
 * swap places in between. Weights have 8 bits. */

#include "../twin_kernel.h"

#ifdef TWIN_KERNEL_AVR

#define PAIRS   1
#define COLUMNS (2 * PAIRS)

#include "plain.h"
#include <avr/io.h>

#if TWIN_FLASH == 2
#define LOAD "elpm"
#else
#define LOAD "lpm"
#endif

/* Adds the product of w and the next number at X to a sum. */
#define COLUMN(sum)                                                                                \
    "ld %[low], X+\n\t"                                                                            \
    "ld %[high], X+\n\t"                                                                           \
    "mulsu %[w], %[low]\n\t"                                                                       \
    "sbc %[low], %[low]\n\t"                                                                       \
    "add %A[" sum "], r0\n\t"                                                                      \
    "adc %B[" sum "], r1\n\t"                                                                      \
    "adc %C[" sum "], %[low]\n\t"                                                                  \
    "adc %D[" sum "], %[low]\n\t"                                                                  \
    "muls %[w], %[high]\n\t"                                                                       \
    "sbc %[low], %[low]\n\t"                                                                       \
    "add %B[" sum "], r0\n\t"                                                                      \
    "adc %C[" sum "], r1\n\t"                                                                      \
    "adc %D[" sum "], %[low]\n\t"

/* Add `count` weights times each column to the sums. */
static void avr_sums(twin_flash weights, const int16_t *in, uint16_t count, int32_t *sum) {
    int32_t first = sum[0], second = sum[1];
    uint16_t at = (uint16_t)weights;
    uint8_t w, low, high;
#if TWIN_FLASH == 2
    RAMPZ = (uint8_t)(weights >> 16);
#endif
    __asm volatile("1: " LOAD " %[w], Z+\n\t" COLUMN("first")
                       COLUMN("second") "sbiw %[count], 1\n\t"
                                        "brne 1b\n\t"
                                        "clr r1"
                   : [first] "+l"(first), [second] "+l"(second), [at] "+z"(at), [in] "+x"(in),
                     [count] "+w"(count), [w] "=&a"(w), [low] "=&a"(low), [high] "=&a"(high)
                   :
                   : "r0");
    sum[0] = first;
    sum[1] = second;
}

__attribute__((noinline)) static int16_t avr_activate(const twini_layer *layer, int32_t sum,
                                                      int16_t multiplier) {
    return (int16_t)plain_activate(layer, sum, multiplier);
}

static void avr_swap(int32_t *sum) {
    int32_t first = sum[0];
    sum[0] = sum[1];
    sum[1] = first;
}

/* Fold the activations of an output into the totals of all targets. */
static void avr_fold(const twini_layer *layer, twin_flash fold, int16_t h0, int16_t h1,
                     int32_t *totals) {
    uint8_t left;
    for (left = (uint8_t)twini_outputs(layer); left; left--) {
#if TWIN_INTERVALS
        if (layer->scaled) {
            int32_t weight = twini_i16(fold + 4);
            totals[0] += weight * h0;
            totals[TWIN_BLOCK] += weight * h1;
            totals[2 * TWIN_BLOCK] += (int32_t)twini_i16(fold + 6) * h1;
        } else
#endif
            *totals += twini_i16(fold) * ((int32_t)h0 - h1);
#if TWIN_TARGETS > 1
        fold += layer->apart;
        totals += TWIN_TOTALS;
#endif
    }
}

/* All outputs of a layer; with B, if it has one. */
static void avr_layer(const twini_layer *layer, const int16_t *in, unsigned both, int16_t *out,
                      int32_t *totals) {
    twin_flash weights = layer->weights, mirror = layer->mirror, bias = layer->bias;
    twin_flash multiplier = layer->multiplier, fold = layer->fold;
    uint16_t left;
    for (left = layer->outputs; left; left--) {
        int32_t sum[COLUMNS];
        int16_t h0, h1;
        sum[0] = sum[1] = twini_i32(bias);
        if (both) {
            avr_sums(mirror, in, layer->inputs, sum);
            avr_swap(sum);
        }
        avr_sums(weights, in, layer->inputs, sum);
        h0 = avr_activate(layer, sum[0], twini_i16(multiplier));
        h1 = avr_activate(layer, sum[1], twini_i16(multiplier));
        if (out) {
            *out++ = h0;
            *out++ = h1;
        } else {
            avr_fold(layer, fold, h0, h1, totals);
#if TWIN_INTERVALS
            fold += layer->scaled ? 2 : 0;
#endif
        }
        weights += layer->row;
        mirror += layer->row;
        bias += 4;
        multiplier += 2;
        fold += 2;
    }
}

static void avr_first(const twini_layer *layer, const twini_pairs *pairs, void *out,
                      int32_t *totals) {
    int16_t *room = (int16_t *)pairs->room;
    uint16_t i;
    for (i = 0; i < layer->inputs; i++) {
        room[2 * i] = pairs->query[i];
        room[2 * i + 1] = twini_i16(pairs->anchor[0] + 2 * i);
    }
    avr_layer(layer, room, 1, (int16_t *)out, totals);
}

static void avr_further(const twini_layer *layer, const void *in, void *out, int32_t *totals) {
    avr_layer(layer, (const int16_t *)in, 0, (int16_t *)out, totals);
}

TWIN_DEFINE(twini_kernel_avr) = {
    PAIRS,       /* pairs */
    1,           /* unit */
    8,           /* align */
    0,           /* partial_bytes */
    2 * COLUMNS, /* block_bytes */
    0,           /* query */
    avr_first,   /* first */
    avr_further, /* further */
    4,           /* room_bytes */
    0,           /* lines */
};

#endif
