/* Opening a pack: faults 1 to 11 of FORMAT.md, section 8, in that order; the rest in twin_check.c.
 */

#include "twin_model.h"

enum { HEADER = 48, ENTRY = 12, MOST_SECTIONS = 32, MOST_WIDTH = 1024, MOST_ANCHORS = 4096 };
enum { SCALING = 1, TWINS, CURVE, ANCHORS, IDS, METADATA };

static unsigned twin_inputs(const twin_model *model, unsigned depth) {
    return depth ? model->hidden[depth - 1] : model->features;
}

twin_flash twin_layer_at(twin_layer *layer, const twin_model *model, twin_flash record,
                         twin_flash at, unsigned depth) {
    unsigned outputs = model->hidden[depth], inputs = twin_inputs(model, depth);
    unsigned row = twin_row(model, inputs);
    twin_size kernel = (twin_size)row * outputs;
    layer->inputs = (uint16_t)inputs;
    layer->outputs = (uint16_t)outputs;
    layer->row = (uint16_t)row;
    layer->shift = twin_u8(record + depth);
    layer->fraction = twin_u8(record + TWIN_HEAD_FRACTION + depth);
    layer->wide = (uint8_t)twin_is_wide(model);
    layer->silu = (uint8_t)twin_is_silu(model);
    layer->curve = TWIN_SILU ? model->curve : 0;
    layer->weights = at;
    layer->mirror = at + kernel;
    at += depth ? kernel : 2 * kernel;
    layer->bias = at;
    layer->multiplier = at + 4 * outputs;
    layer->fold = layer->multiplier + ((2 * outputs + 3) & ~3u);
    return layer->fold;
}

TWIN_APART uint32_t twin_record_size(const twin_model *model) {
    uint32_t size = TWIN_HEAD;
    unsigned depth;
    for (depth = 0; depth < model->layers; depth++) {
        uint32_t outputs = model->hidden[depth], kernels = depth ? 1 : 2;
        size += outputs * (kernels * twin_row(model, twin_inputs(model, depth)) + 4);
        size += twin_align(2 * outputs, 4);
    }
    return twin_align(size + 2 * twin_align(model->hidden[depth - 1], 4), 16);
}

/* Fault 9, and what this build has no code for. */
static twin_status twin_read_header(twin_model *model, twin_flash at) {
    unsigned flags = twin_u16(at + 38), kernel = twin_u16(at + 30); /* and a byte that is zero */
    unsigned bad, depth;
    model->features = twin_u16(at + 20);
    model->layers = twin_u8(at + 22);
    model->silu = twin_u8(at + 23);
    model->wide = (uint8_t)kernel;
    model->twin_count = twin_u16(at + 32);
    model->anchor_count = twin_u16(at + 34);
    model->neighbours = twin_u16(at + 36);
    model->flags = (uint8_t)flags;
    bad = model->features - 1u >= MOST_WIDTH || model->layers - 1u >= 3 || model->silu > 1 ||
          kernel > 1 || model->twin_count - 1u >= 256 || model->anchor_count < model->twin_count ||
          model->anchor_count > MOST_ANCHORS || model->neighbours > MOST_ANCHORS ||
          flags > (model->neighbours ? 1 : 0) || twin_u32(at + 40) || twin_u32(at + 44);
    for (depth = 0; depth < 3; depth++) {
        unsigned width = twin_u16(at + 24 + 2 * depth);
        model->hidden[depth] = (uint16_t)width;
        bad |= depth < model->layers ? width - 1 >= MOST_WIDTH : width;
    }
    if (bad)
        return TWIN_ERROR_HEADER;
    if ((!TWIN_SILU && model->silu) || (!TWIN_INT16 && model->wide) ||
        (!TWIN_NEIGHBOURS && model->neighbours))
        return TWIN_ERROR_UNSUPPORTED;
    return TWIN_OK;
}

/* Length that a section of this kind has; `length` where it may have any. */
static uint32_t twin_length(const twin_model *model, unsigned kind, uint32_t length) {
    uint32_t anchors = model->anchor_count;
    switch (kind) {
    case SCALING:
        return 8 * (uint32_t)model->features + 8;
    case TWINS:
        return model->twin_count * model->twin_size;
    case CURVE:
        return 2 * 193;
    case ANCHORS:
        return twin_align(2 * (uint32_t)model->twin_count, 4) + anchors * (model->anchor_size + 4u);
    case IDS:
        return 4 * anchors;
    default:
        return length;
    }
}

/* Faults 10 and 11. */
static twin_status twin_read_sections(twin_model *model, twin_flash pack, uint32_t size) {
    twin_flash entry, at[ANCHORS + 1], table = pack + HEADER;
    twin_flash stop = table + ENTRY * (uint32_t)twin_u16(pack + 6);
    uint32_t end = (uint32_t)(stop - pack), dirt = 0;
    unsigned found = 0, needed = 1 << SCALING | 1 << TWINS | 1 << ANCHORS;
    if (twin_is_silu(model))
        needed |= 1 << CURVE;
    for (entry = table; entry != stop; entry += ENTRY) {
        unsigned kind = twin_u16(entry), required = kind - 1 < ANCHORS;
        uint32_t offset = twin_u32(entry + 4), length = twin_u32(entry + 8);
        twin_flash other;
        if (offset % 16 || offset < end || offset > size || length > size - offset ||
            twin_u16(entry + 2) != required || length != twin_length(model, kind, length))
            return TWIN_ERROR_SECTION;
        for (other = table; other != entry; other += ENTRY)
            if (twin_u16(other) == kind)
                return TWIN_ERROR_SECTION;
        dirt |= twin_sum(pack + end, pack + offset, 0);
        end = offset + length;
        if (required) {
            found |= 1u << kind;
            at[kind] = pack + offset;
        }
    }
    if (found != needed)
        return TWIN_ERROR_SECTION;
    if (dirt | twin_sum(pack + end, pack + size, 0))
        return TWIN_ERROR_PADDING;
    model->scaling = at[SCALING];
    model->twins = at[TWINS];
    model->curve = at[twin_is_silu(model) ? CURVE : TWINS]; /* relu makes no use of it */
    model->counts = at[ANCHORS];
    model->anchors = model->counts + (uint16_t)twin_align(2 * model->twin_count, 4);
    model->targets = model->anchors + (twin_size)model->anchor_count * model->anchor_size;
    return TWIN_OK;
}

static void twin_count_members(twin_model *model) {
    unsigned i, members = 0;
    for (i = 0; TWIN_NEIGHBOURS && i < model->twin_count; i++)
        members += twin_choose(model, twin_u16(model->counts + 2 * i));
    model->members = TWIN_NEIGHBOURS ? (uint16_t)members : model->anchor_count;
}

#if TWIN_NEIGHBOURS
void twin_set_neighbours(twin_model *model, uint16_t neighbours) {
    model->neighbours = neighbours;
    twin_count_members(model);
}
#endif

/* Faults 1 to 8. */
static twin_status twin_check_file(twin_flash at, uint32_t size) {
    uint32_t length, behind;
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
    return TWIN_OK;
}

twin_status twin_open(twin_model *model, twin_pack pack, uint32_t size) {
    twin_flash at = (twin_flash)pack;
    twin_status status;
#if TWIN_FLASH == 0
    if ((uintptr_t)at & 3)
        return TWIN_ERROR_ALIGNMENT;
#endif
    status = twin_check_file(at, size);
    if (!status)
        status = twin_read_header(model, at);
    if (!status) {
        model->twin_size = twin_record_size(model);
        model->anchor_size = (uint16_t)(2 * twin_align(model->features, 4));
        status = twin_read_sections(model, at, size);
    }
    if (!status)
        status = twin_check(model);
    if (!status) {
        twin_count_members(model);
        model->kernel = TWIN_KERNEL;
    }
    return status;
}
