/* The numbers in a pack: faults 12 to 19 of FORMAT.md, section 8, in that order. */

#include "twin_model.h"

enum { MOST_SHIFT = 30, LEAST_FRACTION = 5, MOST_FRACTION = 15, CURVE_LENGTH = 193 };

/* Faults of a record are collected, as its padding counts before its values, and those before what
 * could overflow, wherever in the record they are. */
typedef struct twin_faults {
    uint32_t padding; /* what should be zero */
    unsigned value;
    unsigned overflow;
} twin_faults;

static twin_status twin_verdict(const twin_faults *faults) {
    return faults->padding    ? TWIN_ERROR_PADDING
           : faults->value    ? TWIN_ERROR_VALUE
           : faults->overflow ? TWIN_ERROR_OVERFLOW
                              : TWIN_OK;
}

static uint32_t twin_magnitude(int32_t a) {
    return a < 0 ? 0 - (uint32_t)a : (uint32_t)a;
}

uint32_t twin_sum(twin_flash at, twin_flash end, unsigned wide) {
    uint32_t sum = 0;
    while (at != end) {
        sum += twin_magnitude(wide ? twin_i16(at) : twin_i8(at));
        at += 1 + wide;
    }
    return sum;
}

/* By the bits, as a device may have no float: offsets finite, gains finite and positive. */
static twin_status twin_check_scaling(const twin_model *model) {
    twin_flash at = model->scaling;
    unsigned i;
    for (i = 0; i <= model->features; i++) {
        uint32_t offset = twin_u32(at) & 0x7FFFFFFFu, gain = twin_u32(at + 4);
        if (offset >= 0x7F800000u || gain - 1 >= 0x7F800000u - 1)
            return TWIN_ERROR_VALUE;
        at += 8;
    }
    return TWIN_OK;
}

static twin_status twin_check_head(const twin_model *model, twin_flash head) {
    unsigned i;
    for (i = 0; i < 3; i++) {
        uint8_t shift = twin_u8(head + i), fraction = twin_u8(head + TWIN_HEAD_FRACTION + i);
        if (i < model->layers
                ? shift > MOST_SHIFT || fraction < LEAST_FRACTION || fraction > MOST_FRACTION
                : shift | fraction)
            return TWIN_ERROR_VALUE;
    }
    /* The shift is followed by a zero, the multiplier by six. */
    if (twin_u16(head + TWIN_HEAD_SHIFT) > MOST_SHIFT ||
        twin_u32(head + TWIN_HEAD_MULTIPLIER) > 32767 || twin_u32(head + 12))
        return TWIN_ERROR_VALUE;
    return TWIN_OK;
}

TWIN_APART void twin_check_layer(const twin_layer *layer, unsigned kernels, twin_faults *faults) {
    twin_size used = (twin_size)layer->inputs << layer->wide;
    unsigned o;
    for (o = 0; o < layer->outputs; o++) {
        uint32_t bias = twin_magnitude(twin_i32(layer->bias + 4 * o)), sum = 0;
        unsigned k;
        for (k = 0; k < kernels; k++) {
            twin_flash row = (k ? layer->mirror : layer->weights) + (twin_size)o * layer->row;
            sum += twin_sum(row, row + used, layer->wide);
            faults->padding |= twin_sum(row + used, row + layer->row, 0);
        }
        faults->value |= twin_u16(layer->multiplier + 2 * o) & 0x8000u;
        /* 32767 * sum + bias, in 32 bits: beyond 65538 the product alone is too large. */
        faults->overflow |= sum > 65538 || (sum << 15) - sum + bias > 0x7FFFFFFFu;
    }
    faults->padding |= twin_sum(layer->multiplier + 2 * o, layer->fold, 0);
}

static twin_status twin_check_twin(const twin_model *model, twin_flash record) {
    twin_faults faults = {0, 0, 0};
    twin_flash at = record + TWIN_HEAD, end;
    unsigned depth;
    twin_status status = twin_check_head(model, record);
    if (status)
        return status;
    for (depth = 0; depth < model->layers; depth++) {
        twin_layer layer;
        at = twin_layer_at(&layer, model, record, at, depth);
        twin_check_layer(&layer, depth ? 1 : 2, &faults);
    }
    end = at + 2 * model->hidden[depth - 1];
    faults.overflow |= twin_sum(at, end, 1) > 32769;
    faults.padding |= twin_sum(end, record + (twin_size)model->twin_size, 0);
    return twin_verdict(&faults);
}

static twin_status twin_check_anchors(const twin_model *model) {
    twin_faults faults = {0, 0, 0};
    twin_flash at = model->counts, target = model->targets;
    uint32_t total = 0;
    unsigned i, j;
    for (i = 0; i < model->twin_count; i++) {
        uint16_t owned = twin_u16(at);
        faults.value |= !owned;
        total += owned;
        at += 2;
    }
    faults.value |= total != model->anchor_count;
    faults.padding |= twin_sum(at, model->anchors, 0);
    at = model->anchors;
    for (i = 0; i < model->anchor_count; i++) {
        for (j = 0; j < model->features; j++, at += 2)
            faults.value |= twin_u16(at) == 0x8000u;
        for (; j % 4; j++, at += 2)
            faults.padding |= twin_u16(at);
        faults.value |= (unsigned)(twin_magnitude(twin_i32(target)) >> 30);
        target += 4;
    }
    return twin_verdict(&faults);
}

twin_status twin_check(const twin_model *model) {
    twin_status status = twin_check_scaling(model);
    twin_flash record = model->twins;
    unsigned i;
    for (i = 0; i < model->twin_count && !status; i++) {
        status = twin_check_twin(model, record);
        record += (twin_size)model->twin_size;
    }
    if (status)
        return status;
    for (i = 0; twin_is_silu(model) && i < CURVE_LENGTH; i++)
        if (twin_u16(model->curve + 2 * i) > 16383)
            return TWIN_ERROR_VALUE;
    return twin_check_anchors(model);
}
