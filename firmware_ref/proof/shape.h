/* A pack of one shape as opening leaves it: that of the macros; all other bytes are unknown, within
 * the ranges that opening has checked, as open.c shows. */

#ifndef TWIN_PROOF_SHAPE_H
#define TWIN_PROOF_SHAPE_H

#include "proof.h"

#include "twin_kernel.h"

#define PAD4(n)       (((n) + 3u) / 4u * 4u)
#define PAD16(n)      (((n) + 15u) / 16u * 16u)
#define CHOSEN(owned) (N_NEIGHBORS && N_NEIGHBORS < (owned) ? N_NEIGHBORS : (owned))
#define LEFT          (N_ANCHORS - (N_TWINS - 1) * N_OWNED) /* anchors of the last twin */
#define MEMBERS       ((N_TWINS - 1) * CHOSEN(N_OWNED) + CHOSEN(LEFT))
#define LAST          (N_LAYERS == 1 ? N_H1 : N_LAYERS == 2 ? N_H2 : N_H3)

/* Bytes of one layer: `kernels` of them, then biases and multipliers. */
#define LAYER(kernels, inputs, outputs)                                                            \
    ((outputs) * ((kernels) * (PAD4(inputs) << N_WIDE) + 4u) + PAD4(2u * (outputs)))
#define RECORD                                                                                     \
    PAD16(16u + LAYER(2u, N_FEATURES, N_H1) + (N_LAYERS > 1 ? LAYER(1u, N_H1, N_H2) : 0u) +        \
          (N_LAYERS > 2 ? LAYER(1u, N_H2, N_H3) : 0u) +                                            \
          (N_SCALED ? 4u + 4u * PAD4(LAST) : 2u * PAD4(LAST)))

enum { SCALING_AT = 96, SCALING_SIZE = 8 * N_FEATURES + 8 };
enum { TWINS_AT = PAD16(SCALING_AT + SCALING_SIZE), TWINS_SIZE = N_TWINS * RECORD };
enum { CURVE_AT = PAD16(TWINS_AT + TWINS_SIZE), CURVE_SIZE = N_SILU ? 386 : 0 };
enum { ANCHORS_AT = PAD16(CURVE_AT + CURVE_SIZE) };
enum { ANCHORS_SIZE = PAD4(2 * N_TWINS) + N_ANCHORS * (2 * PAD4(N_FEATURES) + 4) };
enum { INTERVALS_AT = PAD16(ANCHORS_AT + ANCHORS_SIZE), INTERVALS_SIZE = N_SCALED ? 48 : 0 };
enum {
    DOMAIN_AT = PAD16(INTERVALS_AT + INTERVALS_SIZE),
    DOMAIN_SIZE = N_DOMAIN ? 6 * N_FEATURES : 0
};
enum { TEST_AT = PAD16(DOMAIN_AT + DOMAIN_SIZE) };
enum { QUERY = 2 * ((N_FEATURES + 1) / 2 * 2) + 12, TEST_SIZE = 4 + N_QUERIES * QUERY };
enum { SIZE = TEST_AT + (N_QUERIES ? PAD16(TEST_SIZE) : 0) };

static uint32_t pack[SIZE / 4];
#define AT(type, offset) (*(type *)((uint8_t *)pack + (offset)))

/* What opening makes of the header and the section table. */
static void fill_model(twin_model *model) {
    model->kernel = &twini_kernel_portable;
    model->scaling = (twin_flash)pack + SCALING_AT;
    model->twins = (twin_flash)pack + TWINS_AT;
    model->curve = (twin_flash)pack + (N_SILU ? CURVE_AT : TWINS_AT);
    model->counts = (twin_flash)pack + ANCHORS_AT;
    model->anchors = model->counts + PAD4(2 * N_TWINS);
    model->values = model->anchors + N_ANCHORS * 2 * PAD4(N_FEATURES);
    model->twin_size = RECORD;
    model->anchor_size = 2 * PAD4(N_FEATURES);
    model->features = N_FEATURES;
    model->inputs = N_FEATURES;
    model->hidden[0] = N_H1;
    model->hidden[1] = N_LAYERS > 1 ? N_H2 : 0;
    model->hidden[2] = N_LAYERS > 2 ? N_H3 : 0;
    model->twin_count = N_TWINS;
    model->anchor_count = N_ANCHORS;
    model->neighbors = N_NEIGHBORS;
    model->members = MEMBERS;
    model->layers = N_LAYERS;
    model->silu = N_SILU;
    model->wide = N_WIDE;
    model->flags = 2 * N_SCALED;
    model->intervals = N_SCALED ? (twin_flash)pack + INTERVALS_AT : 0;
    model->domain = N_DOMAIN ? (twin_flash)pack + DOMAIN_AT : 0;
    model->quantile = ANY(0, UINT32_MAX);
}

static uint32_t fill_layer(uint32_t at, unsigned kernels, unsigned inputs, unsigned outputs) {
    unsigned o;
    at += kernels * outputs * (PAD4(inputs) << N_WIDE) + 4 * outputs;
    for (o = 0; o < outputs; o++)
        AT(int16_t, at + 2 * o) = (int16_t)ANY(0, 32767);
    return at + PAD4(2 * outputs);
}

static void fill_twin(uint32_t head) {
    unsigned i;
    uint32_t at = head + 16;
    for (i = 0; i < 3; i++) {
        AT(uint8_t, head + i) = i < N_LAYERS ? (uint8_t)ANY(0, 30) : 0;
        AT(uint8_t, head + 3 + i) = i < N_LAYERS ? (uint8_t)ANY(5, 15) : 0;
    }
    AT(uint8_t, head + 6) = (uint8_t)ANY(0, 30);
    AT(uint8_t, head + 7) = (uint8_t)ANY(0, N_SCALED ? 30 : 0);
    AT(int16_t, head + 8) = (int16_t)ANY(0, 32767);
    AT(int16_t, head + 10) = (int16_t)ANY(0, N_SCALED ? 32767 : 0);
    at = fill_layer(at, 2, N_FEATURES, N_H1);
    if (N_LAYERS > 1)
        at = fill_layer(at, 1, N_H1, N_H2);
    if (N_LAYERS > 2)
        (void)fill_layer(at, 1, N_H2, N_H3);
}

static void fill_anchors(void) {
    unsigned i, j;
    for (i = 0; i < N_TWINS; i++) /* the last has those that are left */
        AT(uint16_t, ANCHORS_AT + 2 * i) = i + 1 < N_TWINS ? N_OWNED : LEFT;
    for (i = 0; i < N_ANCHORS; i++) {
        uint32_t anchor = ANCHORS_AT + PAD4(2 * N_TWINS) + 2 * PAD4(N_FEATURES) * i;
        for (j = 0; j < N_FEATURES; j++)
            AT(int16_t, anchor + 2 * j) = (int16_t)Frama_C_interval(-32767, 32767);
        AT(int32_t, ANCHORS_AT + PAD4(2 * N_TWINS) + 2 * PAD4(N_FEATURES) * N_ANCHORS + 4 * i) =
            Frama_C_interval(-0x3FFFFFFF, 0x3FFFFFFF);
    }
}

static void fill_pack(void) {
    unsigned i;
    FILL(pack, sizeof pack);
    for (i = 0; i < N_TWINS; i++)
        fill_twin(TWINS_AT + RECORD * i);
    for (i = 0; i < CURVE_SIZE / 2; i++)
        AT(int16_t, CURVE_AT + 2 * i) = (int16_t)ANY(0, 16383);
    fill_anchors();
    if (N_SCALED)
        AT(uint32_t, INTERVALS_AT + 28) = 2;
}

/* The scratch is at an address: code that aligns addresses is beyond Eva elsewhere. */
#define SCRATCH ((uint8_t *)0x20000000)

#endif
