/* Layers of a block in eights: eight outputs at a time, with vectors across eight columns.
 *
 * First come the eights of (query, anchor), then those of (anchor, query). With relu many neurons
 * are zero in all columns of an order: a kernel may drop them and spare the next layer. So, with n
 * the layer's outputs rounded up to a multiple of 4, a block is
 *
 *     4 n bytes     struct header; then for each order and output a byte: whether it is present
 *     16 n bytes    for each eight: the activations present, zeros up to a multiple of 4
 *
 * With AVX-512 an eight has sixteen columns, given by LANES, and twice the bytes.
 *
 * Before it includes layers.h, a kernel file defines the layout of an eight:
 *
 *     sums          32 bits for each column; set, load, keep, add, subtract
 *     activations   of one output for each column
 *     way           from sums to activations: way_of(layer), activate(way, sums, multiplier, silu),
 *                   the multiplier shifted by MULTIPLIER_SHIFT
 *     fold          adds activations times a weight to sums
 *     rows          of weights, of eight outputs, with rows_room to keep some of them in:
 *                   take_rows(rows, room, layer, weights, numbers, without)
 *     take_start    what the sums of a further layer start with: (start, layer, rows, numbers, n)
 *     sum_inputs    sums of eight outputs over an eight: (sums, start, rows, n, eight, size)
 *     store         activations of four outputs into an eight: (eight, size, first, activations)
 *     transpose     features of eight anchors into an eight: (eight, inputs, anchors)
 *     outlet        writer for one order of a block: begin_order, put, end_octet, end_order */

#ifndef TWIN_KERNELS_EIGHTS_H
#define TWIN_KERNELS_EIGHTS_H

#include "../twin_read.h"
#include "host.h"
#include <string.h>

#ifndef LANES
#define LANES 8 /* columns in an eight */
#endif

#define MOST_INPUTS 1024
#define NO_INPUT    255 /* instead of an index: a shuffle makes it zero */

/* For loops over eight outputs whose sums should stay in registers. */
#define EIGHT_TIMES UNROLLED for (r = 0; r < 8; r++)

typedef struct header {
    uint16_t eights;   /* of one order */
    uint16_t there[2]; /* activations of each order */
    uint16_t padding;
} header;

/* Bytes of an eight. */
static inline size_t size_of_eight(unsigned width) {
    return 2 * LANES * (size_t)twini_align(width, 4);
}

static inline uint8_t *eight_at(const void *block, unsigned number, unsigned width) {
    return (uint8_t *)((uintptr_t)block + 4 * twini_align(width, 4) +
                       number * size_of_eight(width));
}

static inline uint8_t *flags_at(const void *block, unsigned order, unsigned width) {
    return (uint8_t *)((uintptr_t)block + sizeof(header) + order * twini_align(width, 4));
}

/* Eight outputs of a layer. */
typedef struct octet {
    uint32_t numbers[8]; /* those beyond the last repeat it */
    int32_t multiplier[8];
    int16_t fold[8]; /* zero beyond the last */
    int16_t hard[8]; /* the same for the second output */
} octet;

/* How to leave out the weights of inputs that are not present: which of each sixteen stay, and
 * where they go. */
typedef struct squeeze {
    uint32_t sixteens, count;
    uint16_t to[MOST_INPUTS / 16];
    uint8_t from[MOST_INPUTS / 16][16];
} squeeze;

/* For the `n` inputs present in an order; NULL if all are. */
static inline const squeeze *plan_squeeze(squeeze *plan, const void *block, unsigned order,
                                          uint32_t n, uint32_t inputs) {
    const uint8_t *there = flags_at(block, order, inputs);
    uint32_t i, j, count = 0;
    if (n == inputs)
        return 0;
    for (i = 0; i < inputs; i += 16) {
        uint32_t k = 0;
        plan->to[i / 16] = (uint16_t)count;
        memset(plan->from[i / 16], NO_INPUT, 16);
        for (j = i; j < i + 16 && j < inputs; j++) {
            plan->from[i / 16][k] = (uint8_t)(j - i); /* the next replaces it if it does not stay */
            k += there[j];
        }
        if (k < 16)
            plan->from[i / 16][k] = NO_INPUT;
        count += k;
    }
    plan->sixteens = i / 16;
    plan->count = count;
    return plan;
}

#endif
