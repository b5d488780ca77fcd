/* Layers of a block in eights: eight outputs at a time, with vectors across eight columns.
 *
 * First come the eights of (query, anchor), then those of (anchor, query). With relu many neurons
 * are zero in all columns of an order: a kernel may drop them and spare the next layer. So, with n
 * the layer's outputs rounded up to a multiple of 4, a block is
 *
 *     4 n bytes     struct header; then for each order and output a byte: whether it is present
 *     16 n bytes    for each eight: the activations present, zeros up to a multiple of 4
 *
 * With AVX-512 an eight has sixteen columns, given by LANES, and twice the bytes. */

#ifndef TWIN_KERNELS_EIGHTS_H
#define TWIN_KERNELS_EIGHTS_H

#include "host.h"
#include "plain.h"

#if TWIN_HOST_X86 || TWIN_HOST_ARM

#include <string.h>

/* Left shift of multipliers. */
#define MULTIPLIER_SHIFT (TWIN_HOST_ARM ? 15 : 0) /* see activate in neon.h */

#define MOST_INPUTS 1024
#define NO_INPUT    255 /* instead of an index: a shuffle makes it zero */

/* For loops over eight outputs whose sums should stay in registers. */
#define EIGHT_TIMES UNROLLED for (r = 0; r < 8; r++)

typedef struct block_header {
    uint16_t eights;   /* of one order */
    uint16_t there[2]; /* activations of each order */
    uint16_t padding;
} block_header;

/* Bytes of an eight. */
static inline size_t size_of_eight(unsigned lanes, unsigned width) {
    return 2 * lanes * (size_t)twini_align(width, 4);
}

static inline uint8_t *eight_at(const void *block, unsigned lanes, unsigned number,
                                unsigned width) {
    return (uint8_t *)((uintptr_t)block + 4 * twini_align(width, 4) +
                       number * size_of_eight(lanes, width));
}

static inline uint8_t *eight_flags_at(const void *block, unsigned order, unsigned width) {
    return (uint8_t *)((uintptr_t)block + sizeof(block_header) + order * twini_align(width, 4));
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
    const uint8_t *there = eight_flags_at(block, order, inputs);
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

/* Whether the network has a second output; and the weight of neuron `o` for either. */
INLINE unsigned layer_is_scaled(const twini_layer *layer) {
#if TWIN_INTERVALS
    return layer->scaled;
#else
    (void)layer;
    return 0;
#endif
}

INLINE int16_t fold_weight(const twini_layer *layer, twin_flash fold, uint32_t o, unsigned second) {
    return (int16_t)twini_i16(fold + (layer_is_scaled(layer) ? 4 * o + 4 + 2 * second : 2 * o));
}

/* Fill in the weights of an octet, of which the first `count` are not beyond the last. */
INLINE void weigh_octet(octet *of, const twini_layer *layer, twin_flash fold, uint32_t count) {
    uint32_t r;
    EIGHT_TIMES {
        of->fold[r] = of->hard[r] = 0;
        if (r < count) {
            of->fold[r] = fold_weight(layer, fold, of->numbers[r], 0);
            if (layer_is_scaled(layer))
                of->hard[r] = fold_weight(layer, fold, of->numbers[r], 1);
        }
    }
}

INLINE void number_octet(octet *of, const twini_layer *layer, uint32_t o) {
    uint32_t last = layer->outputs - 1u, r;
    EIGHT_TIMES of->numbers[r] = o + r < last ? o + r : last;
}

/* Fill in the rest of an octet for its first `count` numbers; `last` in the last layer. */
INLINE void describe_octet(octet *of, const twini_layer *layer, uint32_t count, int last) {
    uint32_t r;
    EIGHT_TIMES {
        int32_t multiplier = twini_i16(layer->multiplier + 2 * of->numbers[r]);
        of->multiplier[r] = multiplier * (1 << MULTIPLIER_SHIFT);
    }
    weigh_octet(of, layer, layer->fold, last ? count : 0);
}

#endif

#endif
