/* The interface between the core and the kernels: adding an instruction set is adding a file in
 * kernels/ that defines one twin_kernel.
 *
 * The core walks over twins and anchors; a kernel evaluates the layers for a block of pairs. Both
 * orders of each pair, (query, anchor) and (anchor, query), are columns of that block. How the
 * activations of a block are stored, and how many pairs it has, is the kernel's own choice.
 *
 * For each block the core calls first, then further for each other layer. All but the last store
 * activations in `out`; in the last `out` is NULL, and each output o adds
 * fold[o] * (h(query, anchor)[o] - h(anchor, query)[o]) to the pair's entry of `difference`
 * instead: the sum stays within 32 bits in any order (FORMAT.md, section 7). */

#ifndef TWIN_KERNEL_H
#define TWIN_KERNEL_H

#include "twin.h"

/* One hidden layer of one twin. */
typedef struct twin_layer {
    twin_flash weights;    /* rows of `row` bytes, i8 or i16, zero beyond `inputs` */
    twin_flash mirror;     /* first layer: `weights` is A, and this is B; otherwise unused */
    twin_flash bias;       /* i32 of each output */
    twin_flash multiplier; /* i16 of each output */
    twin_flash curve;      /* i16[193], for silu */
    twin_flash fold;       /* i16[outputs]: the output's weights, in the last layer */
    uint16_t inputs;
    uint16_t outputs;
    uint16_t row;
    uint8_t shift;
    uint8_t fraction;
    uint8_t wide; /* 1 for i16 weights */
    uint8_t silu; /* 0 for relu */
#if TWIN_SILU
    const uint32_t *lines; /* for kernels that ask for them */
#endif
} twin_layer;

/* The pairs of a block. Of `anchor` all `pairs` entries of the kernel are valid: those beyond
 * `count` repeat the first, so that a kernel may always work on whole blocks. */
typedef struct twin_pairs {
    const int16_t *query;          /* features in RAM, zeros up to a multiple of 4 */
    const void *partial;           /* what twin_kernel.query left there */
    void *room;                    /* for `first`, which may use it as it likes */
    twin_flash anchor[TWIN_BLOCK]; /* features of each anchor: i16, zeros up to a multiple of 4 */
    uint8_t count;
} twin_pairs;

typedef struct twin_kernel {
    uint8_t pairs;         /* in a block, 1 .. TWIN_BLOCK */
    uint8_t unit;          /* widths of blocks are rounded up to a multiple of this power of two */
    uint8_t align;         /* of blocks and partial sums: a power of two, at least 8 */
    uint8_t partial_bytes; /* for each output of the first layer; may be 0 */
    uint16_t block_bytes;  /* for each activation: all columns of the block */

    /* Once for each query and twin: the query's share in the first layer, for instance A q + bias
     * and B q + bias. NULL where partial_bytes is 0. */
    void (*query)(const twin_layer *layer, const int16_t *query, void *partial);

    /* First layer of a block. */
    void (*first)(const twin_layer *layer, const twin_pairs *pairs, void *out, int32_t *difference);

    /* A further layer of a block, from the activations `in`. */
    void (*further)(const twin_layer *layer, const void *in, void *out, int32_t *difference);

    /* Of twin_pairs.room, for each feature up to a multiple of 4; may be 0. What is a multiple of
     * `align` ends where the query begins. */
    uint8_t room_bytes;

    /* 1: for silu, wants twin_layer.lines. */
    uint8_t lines;
} twin_kernel;

/* One to a file. Those for an instruction set are there where the compiler may use it. */
extern const twin_kernel twin_kernel_portable;

#if TWIN_CORTEX_M
#if defined(__ARM_FEATURE_MVE)
#define TWIN_KERNEL_HELIUM 1
extern const twin_kernel twin_kernel_helium;
#elif defined(__ARM_FEATURE_DSP)
#define TWIN_KERNEL_DSP 1
extern const twin_kernel twin_kernel_dsp;
#else
#define TWIN_KERNEL_THUMB 1
extern const twin_kernel twin_kernel_thumb;
#endif
#endif

#if defined(__AVR__) && defined(__AVR_HAVE_MUL__) && !TWIN_PARTIAL
#define TWIN_KERNEL_AVR 1
extern const twin_kernel twin_kernel_avr;
#endif

/* Straight lines that silu is made of, for an activation z with w = fraction - 5, between
 * -128 << w and 128 << w. Line number z >> w, from -128 on, is a base in the lower half of its word
 * and a slope in the upper one, both signed:
 *
 *     h = ((base << w) + slope * z + (fraction < 15 ? 511 : 1023)) >> 10
 *
 * A number on the border of two lines may go with either. With 13 fraction bits, -32768 may stand
 * for -32767. Where the curve of the pack allows no such lines, the first of them is zero.
 *
 * Those for Helium are lines of what silu takes from max(z, 0), with 32 times the slope:
 *
 *     bump = ((base << w) + slope * z / 32 + (fraction < 15 ? 512 : 0)) >> 10 */
#define TWIN_LINES      256 /* of 4 bytes */
#define TWIN_WITH_LINES (TWIN_SILU && TWIN_SILU_BYTES)
void twin_lines(twin_flash curve, uint32_t *lines);

/* Which one `model` takes. On devices no other is linked, unless it lacks something. */
#if defined(TWIN_KERNEL)
#elif TWIN_KERNEL_HELIUM
#define TWIN_KERNEL (TWIN_INT16 && model->wide ? &twin_kernel_portable : &twin_kernel_helium)
#elif TWIN_KERNEL_DSP
#define TWIN_KERNEL (TWIN_INT16 && model->wide ? &twin_kernel_portable : &twin_kernel_dsp)
#elif TWIN_KERNEL_THUMB
#define TWIN_KERNEL (TWIN_INT16 && model->wide ? &twin_kernel_portable : &twin_kernel_thumb)
#elif TWIN_KERNEL_AVR
#define TWIN_KERNEL (TWIN_INT16 && model->wide ? &twin_kernel_portable : &twin_kernel_avr)
#else
#define TWIN_KERNEL (&twin_kernel_portable)
#endif

#endif
