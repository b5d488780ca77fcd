/* Faults in what the sections of a pack hold: FORMAT.md, section 10, from 12 on. Part of
 * twin_open.c, which walks over them. */

#ifndef TWIN_FAULTS_H
#define TWIN_FAULTS_H

#include "twin_model.h"

#if TWIN_QUICK_OPEN && defined(__GNUC__) && defined(__ARM_FEATURE_SIMD32)
#include <arm_acle.h>
#define TWIN_USADA8 1
#else
#define TWIN_USADA8 0
#endif

enum {
    MAP_HEAD = 4,
    MOST_MAP_SHIFT = 24,
    MOST_SHIFT = 30,
    LEAST_FRACTION = 5,
    MOST_FRACTION = 15,
    CURVE_LENGTH = 193
};

/* Faults of a twin are collected, as padding takes precedence over values, and those over possible
 * overflows, wherever they are; likewise for all anchors. */
enum { OVERFLOW = 1, VALUE = 2, PADDING = 4, UNFINISHED = 8 };

static twin_status twini_verdict(unsigned faults) {
    int status = faults ? TWIN_ERROR_OVERFLOW : TWIN_OK;
    while (faults >>= 1)
        status++;
    return (twin_status)status;
}

/* PADDING if a byte from `at` up to `end` is not zero. */
static unsigned twini_padding_faults(twin_flash at, twin_flash end) {
    uint8_t all = 0;
    for (; at != end; at++)
        all |= twini_u8(at);
    return all ? PADDING : 0;
}

static uint32_t twini_magnitude(int32_t a) {
    return a < 0 ? 0 - (uint32_t)a : (uint32_t)a;
}

/* Sum of the magnitudes of the i8, or i16 if `wide`, from `at` up to `end`, `step` bytes apart.
 * Those of i8 are whole words. */
TWIN_NOT_INLINE static uint32_t twini_sum(twin_flash at, twin_flash end, unsigned wide,
                                          unsigned step) {
    uint32_t sum = 0;
#if TWIN_QUICK_OPEN
    for (; !wide && at != end; at += 4) {
        uint32_t four = twini_u32(at);
#if TWIN_USADA8
        sum = __usada8(four ^ 0x80808080u, 0x80808080u, sum);
#else
        uint32_t negative = four >> 7 & 0x01010101u;
        four = (four ^ ((negative << 8) - negative)) + negative; /* 128 at most, so none carries */
        four = (four & 0x00FF00FFu) + (four >> 8 & 0x00FF00FFu);
        sum += (four & 65535u) + (four >> 16);
#endif
    }
#endif
    while (at != end) {
        sum += twini_magnitude(wide ? twini_i16(at) : twini_i8(at));
        at += step;
    }
    return sum;
}

/* By the bits, as a device may have no float: offsets finite, gains finite and positive. */
static unsigned twini_scaling_faults(const twin_model *model) {
    twin_flash at = model->scaling;
    unsigned i, faults = 0;
    for (i = 0; i <= model->features; i++) {
        uint32_t offset = twini_u32(at) & 0x7FFFFFFFu, gain = twini_u32(at + 4);
        if (offset >= 0x7F800000u || gain - 1 >= 0x7F800000u - 1)
            faults = VALUE;
        at += 8;
    }
    return faults;
}

#if TWIN_MAP
/* Where the knots of a map begin, from the start of its section. */
static uint32_t twini_knots_at(const twin_model *model) {
    return twini_align(MAP_HEAD + (uint32_t)model->features + model->inputs, 4);
}

/* Also finds knots and table. */
static unsigned twini_map_faults(twin_model *model) {
    twin_flash at = model->map, knot, end;
    unsigned i, faults = 0;
    if (!at)
        return 0;
    knot = at + (twini_size)twini_knots_at(model) - MAP_HEAD;
    end = knot + 2 * (twini_size)twini_u16(at - 2);
    model->knots = knot;
    model->table = knot + (twini_size)twini_align((uint32_t)(end - knot), 4);
    for (i = model->features; i; i--) {
        unsigned left = twini_u8(at);
        int32_t before = INT16_MIN;
        at++;
        for (left += left > 0; left; left--) {
            int32_t next;
            if (knot == end) /* what follows is no knot */
                break;
            next = twini_i16(knot);
            knot += 2;
            if (next <= before)
                faults = VALUE;
            before = next;
        }
        if (left)
            faults = VALUE;
    }
    if (knot != end)
        faults = VALUE;
    for (i = model->inputs; i; i--) {
        if (twini_u8(at) - 1u >= MOST_MAP_SHIFT)
            faults = VALUE;
        at++;
    }
    return faults | twini_padding_faults(at, model->knots) |
           twini_padding_faults(end, model->table);
}
#endif

#if TWIN_TARGET_CURVE
static unsigned twini_one_curve_faults(twin_flash at) {
    unsigned left, faults;
    int32_t before;
    uint8_t shift;
    before = twini_i32(at);
    shift = twini_u8(at + TWIN_CURVE_SHIFT);
    left = twini_u16(at + TWIN_CURVE_BINS);
    faults = twini_padding_faults(at + TWIN_CURVE_SHIFT + 1, at + TWIN_CURVE_BINS);
#if TWIN_TARGETS > 1
    if (!left) /* a target without a curve */
        return before || shift ? faults | VALUE : faults;
#endif
    /* In bins, how far it may reach. */
    if (twini_magnitude(before) >> 30 || shift > MOST_MAP_SHIFT ||
        ((uint32_t)INT32_MAX - (uint32_t)before) >> shift < left)
        faults |= VALUE;
    before = INT32_MIN;
    at += TWIN_CURVE_HEAD;
    do {
        int32_t next = twini_i32(at);
        if (next <= before || twini_magnitude(next) >> 30)
            faults |= VALUE;
        before = next;
        at += 4;
    } while (left--);
    return faults;
}

static unsigned twini_target_faults(const twin_model *model) {
#if TWIN_TARGETS > 1
    twin_flash at = model->curves;
    unsigned left, faults = 0;
    for (left = model->targets; at && left && !faults; left--) {
        faults = twini_one_curve_faults(at);
        at += (twini_size)twini_curve_bytes(twini_u16(at + TWIN_CURVE_BINS));
    }
    return faults;
#else
    return model->target_curve ? twini_one_curve_faults(model->target_curve) : 0;
#endif
}
#endif

static unsigned twini_head_faults(const twin_model *model, twin_flash head) {
    unsigned i;
#if TWIN_INTERVALS
    uint32_t most_second = 0, multipliers = 0xFFFF8000u;
#endif
    for (i = 0; i < 3; i++) {
        uint8_t shift = twini_u8(head + i), fraction = twini_u8(head + TWIN_HEAD_FRACTION + i);
        if (i < model->layers
                ? shift > MOST_SHIFT || fraction < LEAST_FRACTION || fraction > MOST_FRACTION
                : shift | fraction)
            return VALUE;
    }
    /* Without a second output the shift is followed by a zero, the multiplier by six. */
#if TWIN_INTERVALS
    if (twini_is_scaled(model)) {
        most_second = MOST_SHIFT;
        multipliers = 0x80008000u;
    } else if (twini_u32(head + TWIN_HEAD_BIAS)) {
        return VALUE;
    }
    return twini_u8(head + TWIN_HEAD_SHIFT) > MOST_SHIFT ||
                   twini_u8(head + TWIN_HEAD_SHIFT + 1) > most_second ||
                   (twini_u32(head + TWIN_HEAD_MULTIPLIER) & multipliers)
               ? VALUE
               : 0;
#else
    return twini_u16(head + TWIN_HEAD_SHIFT) > MOST_SHIFT ||
                   twini_u32(head + TWIN_HEAD_MULTIPLIER) > 32767 ||
                   twini_u32(head + TWIN_HEAD_BIAS)
               ? VALUE
               : 0;
#endif
}

#if TWIN_TARGETS > 1
/* Where the weights of the first output are, in the record of a twin. */
static twin_flash twini_first_output(const twin_model *model, twin_flash record) {
    twin_flash at = record + TWIN_HEAD;
    twini_layer layer;
    unsigned depth;
    for (depth = 0; depth < model->layers; depth++)
        at = twini_layer_at(&layer, model, record, at, depth);
    return at;
}

/* The records in front of the weights of further outputs, the first of which are at `fold`. */
static unsigned twini_record_faults(const twin_model *model, twin_flash fold) {
    unsigned most_second = twini_is_scaled(model) ? MOST_SHIFT : 0, left, faults = 0;
    unsigned second = twini_is_scaled(model) ? 0x8000u : 0xFFFFu; /* bits that are zero */
    for (left = model->targets - 1u; left; left--) {
        twin_flash at = fold + (twini_size)model->apart - TWIN_OUTPUT;
        if (twini_u8(at) > MOST_SHIFT || twini_u8(at + 1) > most_second ||
            (twini_u16(at + 2) & 0x8000u) || (twini_u16(at + 4) & second) || twini_u16(at + 6) ||
            (!twini_is_scaled(model) && twini_u32(at + 8)))
            faults = VALUE;
        fold = at + TWIN_OUTPUT;
    }
    return faults;
}
#endif

/* Whether 32767 * sum + bias has more than 31 bits: beyond 65538 the product alone has. */
static unsigned twini_overflows(uint32_t sum, uint32_t bias) {
    return sum > 65538 || (sum << 15) - sum + bias > 0x7FFFFFFFu;
}

/* Faults of one output of a layer with one kernel, or two. */
static unsigned twini_row_faults(const twini_layer *layer, unsigned o, unsigned kernels) {
    uint32_t bias = twini_magnitude(twini_i32(layer->bias + 4 * o)), sum = 0;
    twini_size used = (twini_size)layer->inputs << layer->wide;
    twin_flash row = layer->weights;
    unsigned faults = 0;
    do {
        twin_flash end;
        row += (twini_size)o * layer->row;
        end = row + layer->row;
        sum += twini_sum(row, end, layer->wide, 1u + layer->wide);
        faults |= twini_padding_faults(row + used, end);
        row = layer->mirror;
    } while (--kernels);
    if (twini_u16(layer->multiplier + 2 * o) & 0x8000u)
        faults |= VALUE;
    if (twini_overflows(sum, bias))
        faults |= OVERFLOW;
    return faults;
}

/* The weights of an output at `at`, whose bias is where the head of a twin has it, and what follows
 * up to `size` bytes from this head. */
static unsigned twini_output_faults(const twin_model *model, twin_flash head, twin_flash at,
                                    uint32_t size) {
    unsigned step = 2, faults = 0;
    twin_flash end = at + 2 * model->hidden[model->layers - 1];
#if TWIN_INTERVALS
    if (twini_is_scaled(model)) {
        uint32_t bias = twini_magnitude(twini_i32(at));
        step = 4;
        end += 4 + 2 * model->hidden[model->layers - 1];
        at += 4;
        if (twini_overflows(twini_sum(at + 2, end + 2, 1, step), bias))
            faults = OVERFLOW;
    }
    if (twini_overflows(2 * twini_sum(at, end, 1, step),
                        twini_magnitude(twini_i32(head + TWIN_HEAD_BIAS))))
        faults = OVERFLOW;
#else
    if (twini_sum(at, end, 1, step) > 32769) /* there is no bias */
        faults = OVERFLOW;
#endif
    return faults | twini_padding_faults(end, head + (twini_size)size);
}

#if TWIN_TARGETS > 1
/* The same for all outputs of the record at `head`, the first of which is at `at`. */
static unsigned twini_all_output_faults(const twin_model *model, twin_flash head, twin_flash at) {
    twin_flash stop = head + (twini_size)model->twin_size;
    unsigned left, faults = 0;
    for (left = model->targets - 1u; left; left--) {
        twin_flash next = at + (twini_size)model->apart;
        faults |= twini_output_faults(model, head, at, (uint32_t)(next - TWIN_OUTPUT - head));
        head = next - 4 - TWIN_HEAD_BIAS;
        at = next;
    }
    return faults | twini_output_faults(model, head, at, (uint32_t)(stop - head));
}
#endif

static unsigned twini_curve_faults(const twin_model *model) {
    unsigned i;
    for (i = 0; twini_is_silu(model) && i < CURVE_LENGTH; i++)
        if (twini_u16(model->curve + 2 * i) > 16383)
            return VALUE;
    return 0;
}

/* Faults in the anchor counts of the twins. */
TWIN_NOT_INLINE static unsigned twini_count_faults(const twin_model *model) {
    twin_flash at = model->counts;
    uint32_t total = 0;
    unsigned i, faults = 0;
    for (i = 0; i < model->twin_count; i++) {
        uint16_t owned = twini_u16(at);
        if (!owned)
            faults = VALUE;
        total += owned;
        at += 2;
    }
    if (total != model->anchor_count)
        faults = VALUE;
    return faults | twini_padding_faults(at, model->anchors);
}

static unsigned twini_anchor_faults(const twin_model *model, unsigned number) {
    twin_flash at = model->anchors + (twini_size)number * model->anchor_size;
    twin_flash end = at + model->anchor_size;
    unsigned i, faults = 0;
    for (i = 0; i < twini_inputs(model, 0); i++, at += 2)
        if (twini_u16(at) == 0x8000u)
            faults = VALUE;
    for (i = 0; i < twini_targets(model); i++) {
        twini_size value = number + i * (twini_size)model->anchor_count;
        if (twini_magnitude(twini_i32(model->values + 4 * value)) >> 30)
            faults = VALUE;
    }
    return faults | twini_padding_faults(at, end);
}

#endif
