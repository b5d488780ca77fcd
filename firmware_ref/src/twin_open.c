/* Opening a pack: faults 1 to 11 of FORMAT.md, section 8, in that order; the rest in twin_check.c.
 */

#include "twin_model.h"

enum { HEADER = 48, ENTRY = 12, MOST_SECTIONS = 32, MOST_WIDTH = 1024 };
enum { SCALING = 1, TWINS, CURVE, ANCHORS, IDS, METADATA, KINDS };

int twin_is_zero(twin_flash at, twin_flash end) {
    while (at != end) {
        if (twin_u8(at))
            return 0;
        at += 1;
    }
    return 1;
}

twin_flash twin_layer_at(twin_layer *layer, const twin_model *model, twin_flash record,
                         twin_flash at, uint8_t depth) {
    uint16_t inputs = depth ? model->hidden[depth - 1] : model->features;
    uint16_t outputs = model->hidden[depth];
    uint32_t row = twin_row(model, inputs), kernel = row * outputs;
    layer->inputs = inputs;
    layer->outputs = outputs;
    layer->row = (uint16_t)row;
    layer->shift = twin_u8(record + depth);
    layer->fraction = twin_u8(record + TWIN_HEAD_FRACTION + depth);
    layer->wide = model->wide;
    layer->silu = model->silu;
    layer->curve = model->curve;
    layer->weights = at;
    layer->mirror = at + kernel;
    at += depth ? kernel : 2 * kernel;
    layer->bias = at;
    at += 4 * (uint32_t)outputs;
    layer->multiplier = at;
    at += twin_align(2 * (uint32_t)outputs, 4);
    layer->fold = at;
    return at;
}

static uint32_t twin_record_size(const twin_model *model) {
    uint32_t size = TWIN_HEAD;
    uint16_t inputs = model->features;
    uint8_t depth;
    for (depth = 0; depth < model->layers; depth++) {
        uint32_t outputs = model->hidden[depth];
        uint32_t kernel = outputs * twin_row(model, inputs);
        size += (depth ? kernel : 2 * kernel) + 4 * outputs + twin_align(2 * outputs, 4);
        inputs = model->hidden[depth];
    }
    return twin_align(size + 2 * twin_align(inputs, 4), 16);
}

/* Fault 9. */
static twin_status twin_read_header(twin_model *model, twin_flash at) {
    uint8_t kernel, depth, sound;
    model->features = twin_u16(at + 20);
    model->layers = twin_u8(at + 22);
    model->silu = twin_u8(at + 23);
    kernel = twin_u8(at + 30);
    model->wide = kernel;
    model->twin_count = twin_u16(at + 32);
    model->anchor_count = twin_u16(at + 34);
    model->neighbours = twin_u16(at + 36);
    model->flags = twin_u8(at + 38);
    sound = model->features - 1u < MOST_WIDTH && model->layers - 1u < 3 && model->silu < 2 &&
            kernel < 2 && twin_u8(at + 31) == 0 && model->twin_count - 1u < 256 &&
            model->anchor_count >= model->twin_count && model->anchor_count <= 4096 &&
            model->neighbours <= 4096 && model->flags < 2 && twin_u8(at + 39) == 0 &&
            (model->neighbours || !model->flags) && twin_is_zero(at + 40, at + 48);
    for (depth = 0; depth < 3; depth++) {
        uint16_t width = twin_u16(at + 24 + 2 * depth);
        model->hidden[depth] = width;
        sound = sound && (depth < model->layers ? width - 1u < MOST_WIDTH : !width);
    }
    return sound ? TWIN_OK : TWIN_ERROR_HEADER;
}

/* Length that a section of this kind must have. */
static uint32_t twin_length(const twin_model *model, uint16_t kind) {
    uint32_t anchors = model->anchor_count;
    switch (kind) {
    case SCALING:
        return 8 * (uint32_t)model->features + 8;
    case TWINS:
        return model->twin_count * model->twin_size;
    case CURVE:
        return 2 * 193;
    case ANCHORS:
        return twin_align(2 * (uint32_t)model->twin_count, 4) +
               anchors * (2 * twin_align(model->features, 4) + 4);
    default:
        return 4 * anchors; /* IDS */
    }
}

/* Faults 10 and 11. */
static twin_status twin_read_sections(twin_model *model, twin_flash pack, uint32_t size) {
    twin_flash table = pack + HEADER, at[KINDS];
    uint16_t count = twin_u16(pack + 6), i, j;
    uint32_t end = HEADER + ENTRY * (uint32_t)count;
    uint8_t found = 0, needed = 1 << SCALING | 1 << TWINS | 1 << ANCHORS;
    for (i = 0; i < count; i++) {
        twin_flash entry = table + ENTRY * i;
        uint16_t kind = twin_u16(entry), flags = twin_u16(entry + 2);
        uint32_t offset = twin_u32(entry + 4), length = twin_u32(entry + 8);
        int known = kind - 1u < METADATA;
        if (offset % 16 || offset < end || offset > size || length > size - offset ||
            flags != (known && kind <= ANCHORS) ||
            (known && kind != METADATA && length != twin_length(model, kind)))
            return TWIN_ERROR_SECTION;
        for (j = 0; j < i; j++)
            if (twin_u16(table + ENTRY * j) == kind)
                return TWIN_ERROR_SECTION;
        if (known) {
            found = (uint8_t)(found | 1 << kind);
            at[kind] = pack + offset;
        }
        end = offset + length;
    }
    if (model->silu)
        needed |= 1 << CURVE;
    if ((found & (needed | 1 << CURVE)) != needed)
        return TWIN_ERROR_SECTION;
    end = HEADER + ENTRY * (uint32_t)count;
    for (i = 0; i <= count; i++) {
        twin_flash entry = table + ENTRY * i;
        uint32_t offset = i < count ? twin_u32(entry + 4) : size;
        if (!twin_is_zero(pack + end, pack + offset))
            return TWIN_ERROR_PADDING;
        end = i < count ? offset + twin_u32(entry + 8) : end;
    }
    model->scaling = at[SCALING];
    model->twins = at[TWINS];
    model->curve = at[model->silu ? CURVE : TWINS];
    model->counts = at[ANCHORS];
    model->anchors = model->counts + twin_align(2 * (uint32_t)model->twin_count, 4);
    model->targets = model->anchors + model->anchor_count * 2 * twin_align(model->features, 4);
    return TWIN_OK;
}

static uint16_t twin_count_members(const twin_model *model) {
    uint16_t i, members = 0;
    for (i = 0; i < model->twin_count; i++) {
        uint16_t owned = twin_u16(model->counts + 2 * i);
        uint16_t most = model->neighbours ? model->neighbours : owned;
        members = (uint16_t)(members + (owned < most ? owned : most));
    }
    return members;
}

#if TWIN_NEIGHBOURS
void twin_set_neighbours(twin_model *model, uint16_t neighbours) {
    model->neighbours = neighbours;
    model->members = twin_count_members(model);
}
#endif

twin_status twin_open(twin_model *model, twin_pack pack, uint32_t size) {
    twin_flash at = (twin_flash)pack;
    uint32_t length, behind;
    twin_status status;
#if TWIN_FLASH == 0
    if ((uintptr_t)at & 3)
        return TWIN_ERROR_ALIGNMENT;
#endif
    if (size < HEADER)
        return TWIN_ERROR_TRUNCATED;
    if (twin_u32(at) != 0x4E495754u) /* TWIN */
        return TWIN_ERROR_MAGIC;
    if (twin_u16(at + 4) != 1)
        return TWIN_ERROR_VERSION;
    length = twin_u32(at + 8);
    if (size < length)
        return TWIN_ERROR_TRUNCATED;
    if (size > length || length % 16)
        return TWIN_ERROR_LENGTH;
    behind = HEADER + ENTRY * (uint32_t)twin_u16(at + 6);
    if (behind == HEADER || behind > HEADER + ENTRY * MOST_SECTIONS || behind > length)
        return TWIN_ERROR_HEADER;
    if (twin_crc(at, behind, 12) != twin_u32(at + 12))
        return TWIN_ERROR_HEADER_CRC;
    if (twin_crc(at + behind, length - behind, length) != twin_u32(at + 16))
        return TWIN_ERROR_BODY_CRC;
    status = twin_read_header(model, at);
    if (status)
        return status;
    model->twin_size = twin_record_size(model);
    status = twin_read_sections(model, at, length);
    if (status)
        return status;
    status = twin_check(model);
    if (status)
        return status;
    if ((!TWIN_SILU && model->silu) || (!TWIN_INT16 && model->wide) ||
        (!TWIN_NEIGHBOURS && model->neighbours))
        return TWIN_ERROR_UNSUPPORTED;
    model->members = twin_count_members(model);
    model->kernel = TWIN_KERNEL;
    return TWIN_OK;
}
