/* The interface between the core and the kernels. A new kernel for a device changes three places:
 *
 *   1. kernels/kernel_NAME.c, inside #ifdef TWIN_KERNEL_NAME, defines one twin_kernel. It starts
 *      from kernel_portable.c or groups.h, in C, and replaces the functions that matter.
 *   2. The list of kernels for devices, below, says which compilers get it.
 *   3. KERNELS in tests/firmware/test_device_kernels.py has one of these compilers. (How many
 *      instructions a query may take on a board is in MOST, tests/ports/test_boards.py.)
 *
 * All builds compile every file in kernels/. The list of kernels for hosts is in choose_host.c.
 *
 * The runtime can also be one file, in which all kernels of a processor meet. A header with an
 * include guard appears there once, ahead of all files. One without is a template: it appears with
 * each file that includes it, and what it defines has the prefix that NAME gives it there.
 *
 * The core walks over twins and anchors; a kernel evaluates the layers for a block of pairs. Both
 * orders of each pair, (query, anchor) and (anchor, query), are columns of that block. How the
 * activations of a block are stored, and how many pairs it has, is up to the kernel.
 *
 * For each block the core calls first, then further for each other layer. All but the last store
 * activations in `out`; in the last `out` is NULL, and each output o adds to `totals` instead. If
 * the layer is not scaled, fold[o] * (h(query, anchor)[o] - h(anchor, query)[o]) goes to the pair's
 * entry. If it is, `fold` holds pairs of numbers after the first four bytes, and totals are three
 * times TWIN_BLOCK numbers:
 *
 *     fold[o][0] * h(query, anchor)[o]
 *     fold[o][0] * h(anchor, query)[o]
 *     fold[o][1] * h(anchor, query)[o]
 *
 * All stay within 32 bits in any order (FORMAT.md, section 9).
 *
 * In builds for several targets there are as many outputs, and the last layer adds to the totals of
 * each: layer->targets, with their weights layer->apart bytes apart, and their totals one after the
 * other, as many as there are of one. A kernel that would rather not do so where it computes
 * activations stores them in layer->block, as in any other layer, and folds them there afterwards.
 */

#ifndef TWIN_KERNEL_H
#define TWIN_KERNEL_H

#include "twin.h"

#if defined(__GNUC__) && (defined(__ELF__) || defined(__APPLE__))
#define TWIN_HIDDEN __attribute__((visibility("hidden")))
#else
#define TWIN_HIDDEN
#endif

/* Marks what only files of the library use; declares a kernel, and defines it. Kernels come first
 * in a single file, and need no declaration. */
#ifdef TWIN_SINGLE_FILE
#define TWIN_INTERNAL static
#define TWIN_DECLARE(kernel)
#define TWIN_DEFINE(kernel) static const twin_kernel kernel
#else
#define TWIN_INTERNAL        TWIN_HIDDEN
#define TWIN_DECLARE(kernel) TWIN_INTERNAL extern const twin_kernel kernel;
#define TWIN_DEFINE(kernel)  const twin_kernel kernel
#endif

/* Marks a function that is written in assembly. */
#ifdef __cplusplus
#define TWIN_ASSEMBLY extern "C" TWIN_HIDDEN
#else
#define TWIN_ASSEMBLY TWIN_HIDDEN
#endif

/* One hidden layer of one twin. */
typedef struct twini_layer {
    twin_flash weights;    /* rows of `row` bytes, i8 or i16, zero beyond `inputs` */
    twin_flash mirror;     /* first layer: `weights` is A, and this is B; otherwise unused */
    twin_flash bias;       /* i32 of each output */
    twin_flash multiplier; /* i16 of each output */
    twin_flash curve;      /* i16[193], for silu */
    twin_flash fold;       /* last layer: i16[outputs]; or an i32 and i16[outputs][2] */
    uint16_t inputs;
    uint16_t outputs;
    uint16_t row;
    uint8_t shift;
    uint8_t fraction;
    uint8_t wide; /* 1 for i16 weights */
    uint8_t silu; /* 0 for relu */
#if TWIN_INTERVALS
    uint8_t scaled; /* 1 if the network has a second output */
#endif
#if TWIN_SILU
    const uint32_t *lines; /* for kernels that ask for them */
#endif
#if TWIN_TARGETS > 1
    void *block; /* for activations of the last layer, if TWIN_FOLDS_LATER */
    uint16_t apart;
    uint8_t targets;
    uint8_t first; /* of the pack's targets, for prepared models */
#endif
#if TWIN_HOST
    const struct twin_kernel *kernel; /* that evaluates it: a prepared model is one with data */
    void *work;                       /* twin_kernel.work_bytes for exclusive use */
#endif
} twini_layer;

/* Totals of one output for the pairs of a block. */
#define TWIN_TOTALS ((TWIN_INTERVALS ? 3 : 1) * TWIN_BLOCK)

/* How many outputs a layer folds into; constant where this build has no choice. */
static inline unsigned twini_outputs(const twini_layer *layer) {
#if TWIN_TARGETS > 1
    return layer->targets;
#else
    (void)layer;
    return 1;
#endif
}

/* Weights of an output of the last layer. */
static inline twin_flash twini_fold_of(const twini_layer *layer, unsigned output) {
#if TWIN_TARGETS > 1
    return layer->fold + (uint32_t)output * layer->apart;
#else
    (void)output;
    return layer->fold;
#endif
}

/* The pairs of a block. All `pairs` entries of `anchor` are valid: those beyond `count` repeat the
 * first, so that a kernel may always work on whole blocks. */
typedef struct twini_pairs {
    const int16_t *query;          /* features in RAM, zeros up to a multiple of 4 */
    const void *partial;           /* what twin_kernel.query left there */
    void *room;                    /* for `first` to use as it likes */
    twin_flash anchor[TWIN_BLOCK]; /* features of each anchor: i16, zeros up to a multiple of 4 */
    uint8_t count;
} twini_pairs;

typedef struct twin_kernel {
    uint8_t pairs;         /* in a block, 1 .. TWIN_BLOCK */
    uint8_t unit;          /* widths of blocks are rounded up to a multiple of this power of two */
    uint8_t align;         /* of blocks and partial sums: 8; on hosts a power of two, at least 8 */
    uint8_t partial_bytes; /* for each output of the first layer; may be 0 */
    uint16_t block_bytes;  /* for each activation: all columns of the block */

    /* Once for each query and twin: the query's contribution to the first layer, for instance
     * A q + bias and B q + bias. NULL only if TWIN_PARTIAL is 0. */
    void (*query)(const twini_layer *layer, const int16_t *query, void *partial);

    /* First layer of a block. */
    void (*first)(const twini_layer *layer, const twini_pairs *pairs, void *out, int32_t *totals);

    /* A further layer of a block, from the activations `in`. */
    void (*further)(const twini_layer *layer, const void *in, void *out, int32_t *totals);

    /* Bytes of twini_pairs.room for each feature, rounded up to a multiple of 4; may be 0. Room
     * that is a multiple of `align` ends where the query begins. */
    uint8_t room_bytes;

    /* 1: for silu, wants twini_layer.lines. */
    uint8_t lines;

#if TWIN_HOST
    /* Bytes of twini_layer.work: a multiple of `align`, TWIN_WORK_BYTES at most. */
    uint32_t work_bytes;

    /* What it has for prepared models (twin_prepared.h), or NULL. */
    const struct twini_form *form;
#endif
} twin_kernel;

/* The list of kernels for devices: this device gets the first whose condition holds. Tests define
 * TWIN_DEVICE_KERNEL and the other macro of a kernel to compile it for another machine. */
#if defined(TWIN_DEVICE_KERNEL)
#elif TWIN_CORTEX_M && defined(__ARM_FEATURE_MVE)
#define TWIN_KERNEL_HELIUM
#define TWIN_DEVICE_KERNEL twini_kernel_helium
#elif TWIN_CORTEX_M && defined(__ARM_FEATURE_DSP)
#define TWIN_KERNEL_DSP
#define TWIN_DEVICE_KERNEL twini_kernel_dsp
#elif TWIN_CORTEX_M
#define TWIN_KERNEL_THUMB
#define TWIN_DEVICE_KERNEL twini_kernel_thumb
#elif defined(__GNUC__) && defined(__AVR_HAVE_MUL__) && !TWIN_PARTIAL
#define TWIN_KERNEL_AVR
#define TWIN_DEVICE_KERNEL twini_kernel_avr
#elif defined(__GNUC__) && defined(__riscv_mul) && __riscv_xlen == 32 && !defined(__riscv_32e) &&  \
    !defined(__riscv_e) && TWIN_BLOCK >= 2 && TWIN_PARTIAL
#define TWIN_KERNEL_RV32
#define TWIN_DEVICE_KERNEL twini_kernel_rv32
#elif defined(__GNUC__) && defined(__XTENSA_CALL0_ABI__) && TWIN_BLOCK >= 2 && TWIN_PARTIAL
#define TWIN_KERNEL_LX106
#define TWIN_DEVICE_KERNEL twini_kernel_lx106
#endif

/* 1 if the kernel stores the last layer, too, where there are several targets. */
#if TWIN_TARGETS > 1 && (defined(TWIN_KERNEL_HELIUM) || defined(TWIN_KERNEL_DSP) ||                \
                         defined(TWIN_KERNEL_RV32) || defined(TWIN_KERNEL_LX106))
#define TWIN_FOLDS_LATER 1
#else
#define TWIN_FOLDS_LATER 0
#endif

TWIN_DECLARE(twini_kernel_portable)
#if defined(TWIN_DEVICE_KERNEL)
TWIN_DECLARE(TWIN_DEVICE_KERNEL)
#endif

/* silu as straight lines, for an activation z with w = fraction - 5, between -128 << w and 128
 * << w. Line number z >> w, starting at -128, is a base in the lower half of its word and a slope
 * in the upper one, both signed:
 *
 *     h = ((base << w) + slope * z + (fraction < 15 ? 511 : 1023)) >> 10
 *
 * A number on the border of two lines may use either. With 13 fraction bits, -32768 may stand for
 * -32767. If the curve of the pack allows no such lines, the first of them is zero.
 *
 * Those for Helium describe max(z, 0) - silu(z), with 32 times the slope:
 *
 *     bump = ((base << w) + slope * z / 32 + (fraction < 15 ? 512 : 0)) >> 10 */
#define TWIN_LINES      256 /* of 4 bytes */
#define TWIN_WITH_LINES (TWIN_SILU && TWIN_SILU_BYTES)
#if TWIN_WITH_LINES
TWIN_INTERNAL void twini_lines(twin_flash curve, uint32_t *lines);
#endif

/* The kernel that `model` uses. Those of devices have 8-bit weights only. No other is linked,
 * unless the pack may have 16-bit weights. */
#if defined(TWIN_KERNEL)
#elif defined(TWIN_DEVICE_KERNEL)
#define TWIN_KERNEL (TWIN_INT16 && model->wide ? &twini_kernel_portable : &TWIN_DEVICE_KERNEL)
#elif TWIN_HOST
#define TWIN_KERNEL twini_host_kernel(model, 0, 0)
#else
#define TWIN_KERNEL (&twini_kernel_portable)
#endif

/* Kernel `number` of those that this processor has for the model, fastest first, and its name; NULL
 * after the last. */
#if TWIN_HOST
TWIN_INTERNAL const twin_kernel *twini_host_kernel(const twin_model *model, unsigned number,
                                                   const char **name);
#endif

#endif
