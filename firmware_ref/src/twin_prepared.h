/* A model prepared for a host's processor (twin_host.h), as its kernels see it.
 *
 * Anchors are evaluated in eights, each in both orders. Arrays over a layer's outputs are padded to
 * a multiple of eight, plus eight more; beyond the last output all is zero, so that a kernel may
 * work on whole eights and has an output that adds nothing.
 *
 * The first layer is linear in both points of a pair, so each has its share. That of eight anchors
 * is a twini_share of 32-bit numbers, with n the padded outputs:
 *
 *     [n][2][8]    for each output and anchor: B a, for (query, anchor); then A a, for the other
 *     [2][n]       the largest of the eight
 *
 * and that of the query [2][n]: A q + bias, then B q + bias. */

#ifndef TWIN_PREPARED_H
#define TWIN_PREPARED_H

#include "twin_model.h"

#if TWIN_HOST

#define TWIN_EIGHT  8
#define TWIN_ROOMY  64   /* alignment of everything */
#define TWIN_WIDEST 1024 /* features, or neurons of a layer */

#define TWIN_STEPS  192 /* of the curve of silu */
#define TWIN_COARSE 128 /* the first that is four times as wide */

/* Outputs of a padded array. */
static inline uint32_t twini_padded(uint32_t outputs) {
    return twini_align(outputs, TWIN_EIGHT) + TWIN_EIGHT;
}

typedef struct twini_prepared_layer {
    const uint8_t *weights;    /* as the kernel wants them */
    const int32_t *bias;       /* of each output */
    const int32_t *multiplier; /* likewise, shifted as the kernel wants it */
    const int32_t *enough;     /* likewise: twini_form.enough */
    const int16_t *fold; /* in the last layer: weights of the output, and of the second one; */
    const int16_t *hard; /* those of each further target twini_apart numbers on */
    twin_flash curve;
    const void *table; /* for silu: twini_form.fill_table */
    uint16_t inputs;
    uint16_t outputs;
    uint8_t shift;
    uint8_t fraction;
} twini_prepared_layer;

typedef struct twini_prepared_twin {
    twini_prepared_layer layer[3];
    const int16_t *first; /* A, then B: [features][n] each */
    int32_t *shares;      /* of its anchors, eight by eight; NULL if computed each time */
    twin_flash anchors;   /* in the pack */
    uint16_t anchor_size;
    uint16_t features; /* numbers of a point that the twin takes */
    uint16_t widest;   /* layer, or number of features */
    uint8_t layers;
    uint8_t silu;
    uint8_t scaled;
#if TWIN_TARGETS > 1
    uint8_t targets;
    uint8_t target; /* of the pack, which is its first */
#endif
} twini_prepared_twin;

/* How many targets it has, constant where this build has no choice; numbers between the weights of
 * two of them, in a layer with so many outputs; and between their totals. */
static inline unsigned twini_prepared_targets(const twini_prepared_twin *twin) {
#if TWIN_TARGETS > 1
    return twin->targets;
#else
    (void)twin;
    return 1;
#endif
}
static inline uint32_t twini_apart(uint32_t outputs) {
    return 2 * twini_padded(outputs);
}
#define TWIN_EIGHT_TOTALS (3 * TWIN_EIGHT)

/* What a kernel has for prepared models. */
typedef struct twini_form {
    /* Bytes of a further layer's weights; and a function that puts them into zeroed memory.
     * Output o is that of row ranked[o]. */
    uint32_t (*weight_bytes)(unsigned inputs, unsigned outputs);
    void (*arrange)(const twini_layer *from, const uint16_t *ranked, uint8_t *weights);
    /* A number for each output: twini_prepared_layer.enough. May be NULL. */
    int32_t (*enough)(const twini_layer *from, uint32_t o);
    /* Left shift of multipliers. */
    uint8_t multiplier_shift;
    /* Bytes of working memory, for layers and features up to this wide. */
    uint32_t (*work_bytes)(unsigned widest);
    /* The query's share. */
    void (*of_query)(const twini_prepared_twin *twin, const int16_t *query, int32_t *share);
    /* The share of eight anchors, whose features are [features][8] here. */
    void (*of_anchors)(const twini_prepared_twin *twin, const int16_t *transposed, int32_t *share);
    /* Totals of eight anchors for each target: [3][8], as in twin_kernel.h; without a second output
     * the last eight are not touched. */
    void (*eight)(const twini_prepared_twin *twin, const int32_t *of_query,
                  const int32_t *of_anchors, void *work, int32_t *totals);
    /* For silu: the curve as the kernel wants it in layers with this fraction, and its bytes. */
    uint32_t table_bytes;
    void (*fill_table)(void *table, twin_flash curve, uint8_t fraction);
    /* Called before and after a number of eights, to switch on a unit. Both may be NULL. */
    void (*enter)(void);
    void (*leave)(void);
} twini_form;

/* A prepared model: a kernel, first, and what it needs. */
typedef struct twini_prepared {
    twin_kernel kernel;
    const twini_form *form;
    twin_flash twins; /* in the pack */
    uint32_t twin_size;
    uint32_t share_at; /* offsets in twini_layer.work, after the query's share */
    uint32_t features_at;
    uint32_t work_at;
    twini_prepared_twin twin[1]; /* or more */
} twini_prepared;

/* Numbers in the share of eight anchors. */
static inline uint32_t twini_share_length(unsigned outputs) {
    return (2 * TWIN_EIGHT + 2) * twini_padded(outputs);
}

#endif

#endif
