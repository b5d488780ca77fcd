/* The numbers in a pack: faults 12 to 19 of FORMAT.md, section 8, in that order. */

#include "twin_model.h"

enum { MOST_SHIFT = 30, LEAST_FRACTION = 5, MOST_FRACTION = 15, CURVE_LENGTH = 193 };

#define TARGET_END ((uint32_t)1 << 30)

static uint32_t twin_magnitude(int32_t a) {
    return a < 0 ? 0 - (uint32_t)a : (uint32_t)a;
}

/* By the bits, as a device may have no float: offsets finite, gains finite and positive. */
static twin_status twin_check_scaling(const twin_model *model) {
    uint16_t i;
    for (i = 0; i <= model->features; i++) {
        uint32_t offset = twin_u32(model->scaling + 8 * (uint32_t)i) & 0x7FFFFFFFu;
        uint32_t gain = twin_u32(model->scaling + 8 * (uint32_t)i + 4);
        if (offset >= 0x7F800000u || gain - 1 >= 0x7F800000u - 1)
            return TWIN_ERROR_VALUE;
    }
    return TWIN_OK;
}

static twin_status twin_check_head(const twin_model *model, twin_flash head) {
    uint8_t i;
    for (i = 0; i < 3; i++) {
        uint8_t shift = twin_u8(head + i), fraction = twin_u8(head + TWIN_HEAD_FRACTION + i);
        if (i < model->layers
                ? shift > MOST_SHIFT || fraction < LEAST_FRACTION || fraction > MOST_FRACTION
                : shift | fraction)
            return TWIN_ERROR_VALUE;
    }
    if (twin_u8(head + TWIN_HEAD_SHIFT) > MOST_SHIFT || twin_u8(head + TWIN_HEAD_SHIFT + 1) ||
        twin_i16(head + TWIN_HEAD_MULTIPLIER) < 0 || !twin_is_zero(head + 10, head + TWIN_HEAD))
        return TWIN_ERROR_VALUE;
    return TWIN_OK;
}

/* Whether `rows` rows of `row` bytes are zero beyond the first `used` of them. */
static int twin_rows_padded(twin_flash at, uint32_t rows, uint32_t used, uint32_t row) {
    for (; rows; rows--, at += row)
        if (!twin_is_zero(at + used, at + row))
            return 0;
    return 1;
}

/* Sum of the magnitudes of a row of `n` weights. */
static uint32_t twin_sum(twin_flash at, uint16_t n, uint8_t wide) {
    uint32_t sum = 0;
    for (; n; n--) {
        sum += twin_magnitude(wide ? twin_i16(at) : twin_i8(at));
        at += 1 << wide;
    }
    return sum;
}

enum { PADDING, MULTIPLIERS, OVERFLOWS, PASSES };

static twin_status twin_check_layer(const twin_layer *layer, uint8_t pass, uint8_t first) {
    uint32_t outputs = layer->outputs, o;
    if (pass == PADDING) {
        uint32_t used = (uint32_t)layer->inputs << layer->wide;
        if (!twin_rows_padded(layer->weights, first ? 2 * outputs : outputs, used, layer->row) ||
            !twin_is_zero(layer->multiplier + 2 * outputs, layer->fold))
            return TWIN_ERROR_PADDING;
        return TWIN_OK;
    }
    for (o = 0; o < outputs; o++) {
        uint32_t sum, bias;
        if (pass == MULTIPLIERS) {
            if (twin_i16(layer->multiplier + 2 * o) < 0)
                return TWIN_ERROR_VALUE;
            continue;
        }
        sum = twin_sum(layer->weights + o * layer->row, layer->inputs, layer->wide);
        if (first)
            sum += twin_sum(layer->mirror + o * layer->row, layer->inputs, layer->wide);
        bias = twin_magnitude(twin_i32(layer->bias + 4 * o));
        /* 32767 * sum + bias, in 32 bits: beyond 65538 the product alone is too large. */
        if (sum > 65538 || (sum << 15) - sum + bias > 0x7FFFFFFFu)
            return TWIN_ERROR_OVERFLOW;
    }
    return TWIN_OK;
}

static twin_status twin_check_twin(const twin_model *model, twin_flash record) {
    uint16_t last = model->hidden[model->layers - 1];
    twin_status status = twin_check_head(model, record);
    uint8_t pass;
    for (pass = 0; pass < PASSES && !status; pass++) {
        twin_flash at = record + TWIN_HEAD;
        uint8_t depth;
        for (depth = 0; depth < model->layers && !status; depth++) {
            twin_layer layer;
            at = twin_layer_at(&layer, model, record, at, depth);
            status = twin_check_layer(&layer, pass, depth == 0);
        }
        if (status)
            return status;
        if (pass == PADDING && !twin_is_zero(at + 2 * (uint32_t)last, record + model->twin_size))
            return TWIN_ERROR_PADDING;
        if (pass == OVERFLOWS && twin_sum(at, last, 1) > 32769)
            return TWIN_ERROR_OVERFLOW;
    }
    return status;
}

static twin_status twin_check_anchors(const twin_model *model) {
    uint32_t counts = 2 * (uint32_t)model->twin_count, row = 2 * twin_align(model->features, 4);
    uint32_t i, j, total = 0;
    if (!twin_is_zero(model->counts + counts, model->anchors) ||
        !twin_rows_padded(model->anchors, model->anchor_count, 2 * (uint32_t)model->features, row))
        return TWIN_ERROR_PADDING;
    for (i = 0; i < counts; i += 2) {
        uint16_t owned = twin_u16(model->counts + i);
        if (!owned)
            return TWIN_ERROR_VALUE;
        total += owned;
    }
    if (total != model->anchor_count)
        return TWIN_ERROR_VALUE;
    for (i = 0; i < model->anchor_count; i++) {
        for (j = 0; j < row; j += 2)
            if (twin_i16(model->anchors + i * row + j) == INT16_MIN)
                return TWIN_ERROR_VALUE;
        if (twin_magnitude(twin_i32(model->targets + 4 * i)) >= TARGET_END)
            return TWIN_ERROR_VALUE;
    }
    return TWIN_OK;
}

twin_status twin_check(const twin_model *model) {
    twin_status status = twin_check_scaling(model);
    twin_flash record = model->twins;
    uint16_t i;
    for (i = 0; i < model->twin_count && !status; i++) {
        status = twin_check_twin(model, record);
        record += model->twin_size;
    }
    if (status)
        return status;
    for (i = 0; model->silu && i < CURVE_LENGTH; i++)
        if (twin_u16(model->curve + 2 * i) > 16383)
            return TWIN_ERROR_VALUE;
    return twin_check_anchors(model);
}
