/* Opening a pack: the faults of FORMAT.md, section 10, in that order. */

#include "twin_model.h"

#if TWIN_QUICK_OPEN && defined(__GNUC__) && defined(__ARM_FEATURE_SIMD32)
#include <arm_acle.h>
#define TWIN_USADA8 1
#else
#define TWIN_USADA8 0
#endif

enum { MOST_SECTIONS = 32, MOST_WIDTH = 1024, MOST_ANCHORS = 4096 };
enum { MOST_SHIFT = 30, LEAST_FRACTION = 5, MOST_FRACTION = 15, CURVE_LENGTH = 193 };
enum { SCALING = 1, TWINS, CURVE, ANCHORS, IDS, METADATA, INTERVALS, RANGES };
enum { INTERVALS_HEAD = 32, LEVEL = 8, MOST_LEVELS = 15 };

/* CRC-32 as in zip, of one more word. The pack's checksums cover whole words. */
static uint32_t twini_crc_word(uint32_t crc, uint32_t word) {
#if TWIN_QUICK_OPEN
    static const uint32_t table[16] = {0x00000000u, 0x1DB71064u, 0x3B6E20C8u, 0x26D930ACu,
                                       0x76DC4190u, 0x6B6B51F4u, 0x4DB26158u, 0x5005713Cu,
                                       0xEDB88320u, 0xF00F9344u, 0xD6D6A3E8u, 0xCB61B38Cu,
                                       0x9B64C2B0u, 0x86D3D2D4u, 0xA00AE278u, 0xBDBDF21Cu};
    uint8_t digits = 8;
    crc ^= word;
    do
        crc = (crc >> 4) ^ table[crc & 15];
    while (--digits);
    return crc;
#else
    return twini_crc_bits(crc, word);
#endif
}

/* CRC of `size` more bytes after those with CRC `crc`, taking the word at `skip` as zero. */
static uint32_t twini_crc(uint32_t crc, twin_flash at, twini_size size, twini_size skip) {
    twini_size i;
    crc = ~crc;
    for (i = 0; i != size; i += 4) {
        crc = twini_crc_word(crc, i == skip ? 0 : twini_u32(at));
        at += 4;
    }
    return ~crc;
}

/* CRC of everything after the table, so far. */
static uint32_t twini_body_crc(uint32_t crc, twin_flash at, twini_size size) {
#ifdef TWIN_CRC
    return TWIN_CRC(crc, at, size);
#else
    return twini_crc(crc, at, size, size);
#endif
}

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

/* Faults 1 to 7; `behind` becomes the length of header and table. */
static twin_status twini_check_file(twin_flash at, uint32_t size, uint32_t *behind) {
    uint32_t length;
#if TWIN_FLASH == 0
    if ((uintptr_t)at & 3)
        return TWIN_ERROR_ALIGNMENT;
#endif
    if (size < TWIN_TABLE)
        return TWIN_ERROR_TRUNCATED;
    if (twini_u32(at) != 0x4E495754u) /* TWIN */
        return TWIN_ERROR_MAGIC;
    if ((unsigned)twini_u16(at + 4) - TWIN_PACK_OLDEST > TWIN_PACK_NEWEST - TWIN_PACK_OLDEST)
        return TWIN_ERROR_VERSION;
    length = twini_u32(at + 8);
    if (size < length)
        return TWIN_ERROR_TRUNCATED;
    if (size > length || length % 16)
        return TWIN_ERROR_LENGTH;
    *behind = TWIN_TABLE + TWIN_ENTRY * (uint32_t)twini_u16(at + 6);
    if (*behind == TWIN_TABLE || *behind > TWIN_TABLE + TWIN_ENTRY * MOST_SECTIONS ||
        *behind > length)
        return TWIN_ERROR_HEADER;
    if (twini_crc(0, at, (twini_size)*behind, 12) != twini_u32(at + 12))
        return TWIN_ERROR_HEADER_CRC;
    return TWIN_OK;
}

TWIN_NOT_INLINE static uint32_t twini_record_size(const twin_model *model) {
    uint32_t size = TWIN_HEAD, last;
    unsigned depth;
    for (depth = 0; depth < model->layers; depth++) {
        uint32_t outputs = model->hidden[depth], kernels = depth ? 1 : 2;
        size += outputs * (kernels * twini_row(model, twini_inputs(model, depth)) + 4);
        size += twini_align(2 * outputs, 4);
    }
    last = 2 * twini_align(model->hidden[depth - 1], 4);
    if (twini_is_scaled(model))
        last = 2 * last + 4;
    return twini_align(size + last, 16);
}

/* Fault 9, and features that this build lacks. */
TWIN_NOT_INLINE static twin_status twini_read_header(twin_model *model, twin_flash at) {
    unsigned flags = twini_u16(at + 38), kernel = twini_u16(at + 30); /* with a byte that is zero */
    unsigned bad, depth;
    model->features = twini_u16(at + 20);
    model->layers = twini_u8(at + 22);
    model->silu = twini_u8(at + 23);
    model->wide = (uint8_t)kernel;
    model->twin_count = twini_u16(at + 32);
    model->anchor_count = twini_u16(at + 34);
    model->neighbors = twini_u16(at + 36);
    model->flags = (uint8_t)flags;
    bad = model->features - 1u >= MOST_WIDTH || model->layers - 1u >= 3 || model->silu > 1 ||
          kernel > 1 || model->twin_count - 1u >= 256 || model->anchor_count < model->twin_count ||
          model->anchor_count > MOST_ANCHORS || model->neighbors > MOST_ANCHORS ||
          (flags & 1) > model->neighbors || flags >> 1 >= twini_u8(at + 4) || twini_u32(at + 40) ||
          twini_u32(at + 44); /* the second flag is new in version 2 */
    for (depth = 0; depth < 3; depth++) {
        unsigned width = twini_u16(at + 24 + 2 * depth);
        model->hidden[depth] = (uint16_t)width;
        bad |= depth < model->layers ? width - 1 >= MOST_WIDTH : width;
    }
    if (bad)
        return TWIN_ERROR_HEADER;
    if ((!TWIN_SILU && model->silu) || (!TWIN_INT16 && model->wide) ||
        (!TWIN_NEIGHBORS && model->neighbors) || (!TWIN_INTERVALS && flags > 1))
        return TWIN_ERROR_UNSUPPORTED;
    return TWIN_OK;
}

/* Required length of the section at `at`, by its kind; `length` if any is allowed. */
static uint32_t twini_length(const twin_model *model, unsigned kind, twin_flash at,
                             uint32_t length) {
    uint32_t features = model->features, anchors = model->anchor_count;
#if TWIN_INTERVALS
    uint32_t levels;
#endif
    switch (kind) {
    case SCALING:
        return 8 * features + 8;
    case TWINS:
        return model->twin_count * model->twin_size;
    case CURVE:
        return 2 * CURVE_LENGTH;
    case ANCHORS:
        return twini_align(2 * (uint32_t)model->twin_count, 4) +
               anchors * (model->anchor_size + 4u);
    case IDS:
        return 4 * anchors;
#if TWIN_INTERVALS
    case INTERVALS: /* no other build has a pack that may have them */
        levels = length < INTERVALS_HEAD ? 0 : twini_u32(at + 28);
        return levels - 1 < MOST_LEVELS ? INTERVALS_HEAD + LEVEL * levels : ~length;
#endif
    case RANGES:
        return 6 * features;
    case TWIN_SCHEMA:
        return 4;
    default:
        (void)at;
        return length;
    }
}

/* Faults 10 and 11. */
static twin_status twini_read_sections(twin_model *model, twin_flash pack, uint32_t size) {
    twin_flash entry, at[RANGES], table = pack + TWIN_TABLE;
    twin_flash stop = table + TWIN_ENTRY * (uint32_t)twini_u16(pack + 6);
    uint32_t end = (uint32_t)(stop - pack);
    unsigned faults = 0, found = 0, needed = 1 << SCALING | 1 << TWINS | 1 << ANCHORS;
#if TWIN_INTERVALS
    model->domain = 0;
    model->intervals = 0;
#endif
    if (twini_is_silu(model))
        needed |= 1 << CURVE;
    if (twini_is_scaled(model))
        needed |= 1 << INTERVALS;
    for (entry = table; entry != stop; entry += TWIN_ENTRY) {
        unsigned kind = twini_u16(entry), required = kind - 1 < ANCHORS || kind == INTERVALS;
        uint32_t offset = twini_u32(entry + 4), length = twini_u32(entry + 8);
        twin_flash other;
        if (offset != twini_align(end, 16) || length > size - offset ||
            twini_u16(entry + 2) != required ||
            length != twini_length(model, kind, pack + offset, length))
            return TWIN_ERROR_SECTION;
        for (other = table; other != entry; other += TWIN_ENTRY)
            if (twini_u16(other) == kind)
                return TWIN_ERROR_SECTION;
        faults |= twini_padding_faults(pack + end, pack + offset);
        end = offset + length;
        /*@ split end; */
        if (required) {
            found |= 1u << kind;
            at[kind] = pack + offset;
        }
#if TWIN_INTERVALS
        if (kind == INTERVALS)
            model->intervals = pack + offset;
        if (kind == RANGES)
            model->domain = pack + offset;
#endif
    }
    if (found != needed || twini_align(end, 16) != size)
        return TWIN_ERROR_SECTION;
    model->scaling = at[SCALING];
    model->twins = at[TWINS];
    model->curve = at[twini_is_silu(model) ? CURVE : TWINS]; /* relu does not use it */
    model->counts = at[ANCHORS];
    model->anchors = model->counts + (uint16_t)twini_align(2 * model->twin_count, 4);
    model->targets = model->anchors + (twini_size)model->anchor_count * model->anchor_size;
    faults |= twini_padding_faults(pack + end, pack + size);
    return faults ? TWIN_ERROR_PADDING : TWIN_OK;
}

static uint32_t twini_magnitude(int32_t a) {
    return a < 0 ? 0 - (uint32_t)a : (uint32_t)a;
}

/* Sum of the magnitudes of the i8, or i16 if `wide`, from `at` up to `end`, `step` bytes apart.
 * Those of i8 are whole words. */
static uint32_t twini_sum(twin_flash at, twin_flash end, unsigned wide, unsigned step) {
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

/* The weights of the outputs, and what follows them in the record at `head`. */
static unsigned twini_output_faults(const twin_model *model, twin_flash head, twin_flash at) {
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
#endif
#if TWIN_INTERVALS
    if (twini_overflows(2 * twini_sum(at, end, 1, step),
                        twini_magnitude(twini_i32(head + TWIN_HEAD_BIAS))))
        faults = OVERFLOW;
#else
    if (twini_sum(at, end, 1, step) > 32769) /* there is no bias */
        faults = OVERFLOW;
#endif
    return faults | twini_padding_faults(end, head + (twini_size)model->twin_size);
}

static unsigned twini_curve_faults(const twin_model *model) {
    unsigned i;
    for (i = 0; twini_is_silu(model) && i < CURVE_LENGTH; i++)
        if (twini_u16(model->curve + 2 * i) > 16383)
            return VALUE;
    return 0;
}

/* Faults in the anchor counts of the twins. */
static unsigned twini_count_faults(const twin_model *model) {
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
    for (i = 0; i < model->features; i++, at += 2)
        if (twini_u16(at) == 0x8000u)
            faults = VALUE;
    if (twini_magnitude(twini_i32(model->targets + 4 * (twini_size)number)) >> 30)
        faults = VALUE;
    return faults | twini_padding_faults(at, end);
}

#if TWIN_INTERVALS
/* Select the highest level up to this, or the lowest; returns it, or 0 if there are none. */
static uint32_t twini_select_level(twin_model *model, uint32_t thousandths) {
    twin_flash at = model->intervals;
    uint32_t left, taken = 0;
    if (!at)
        return 0;
    left = twini_u32(at + 28);
    at += INTERVALS_HEAD;
    for (; left; left--) {
        uint32_t level = twini_u32(at);
        if (!taken || level <= thousandths) {
            taken = level;
            model->quantile = twini_u32(at + 4);
        }
        at += LEVEL;
    }
    return taken;
}

twin_status twin_set_coverage(twin_model *model, uint16_t thousandths) {
    uint32_t quantile = model->quantile;
    if (!model->kernel)
        return TWIN_ERROR_MODEL;
    if (thousandths - 1u < 999 && twini_select_level(model, thousandths) == thousandths)
        return TWIN_OK;
    model->quantile = quantile;
    return TWIN_ERROR_LEVEL;
}
#endif

static void twini_count_members(twin_model *model) {
    unsigned i, members = 0;
    for (i = 0; TWIN_NEIGHBORS && i < model->twin_count; i++)
        members += twini_chosen(model->neighbors, twini_u16(model->counts + 2 * i));
    model->members = TWIN_NEIGHBORS ? (uint16_t)members : model->anchor_count;
}

#if TWIN_NEIGHBORS
void twin_set_neighbors(twin_model *model, uint16_t neighbors) {
    if (!model->kernel)
        return;
    model->neighbors = neighbors;
    twini_count_members(model);
}
#endif

/* Faults 9 to 12. */
static twin_status twini_read_model(twin_model *model, twin_flash pack, uint32_t size) {
    twin_status status = twini_read_header(model, pack);
    if (status)
        return status;
    model->twin_size = twini_record_size(model);
    model->anchor_size = (uint16_t)(2 * twini_align(model->features, 4));
    status = twini_read_sections(model, pack, size);
    if (!status && twini_scaling_faults(model))
        status = TWIN_ERROR_VALUE;
    return status;
}

/* What is checked next; each says so if the step is over before it is done. In a build
 * without steps there is one, and what it resumes from is constant. */
enum { STAGE_BYTES, STAGE_TWINS, STAGE_ANCHORS };

/* Whether this many more bytes belong to the step, of which `left` bytes are left. */
static unsigned twini_has_time(twini_size *left, twini_size bytes) {
    if (!TWIN_OPEN_STEPS)
        return 1;
    if (!*left)
        return 0;
    *left = *left > bytes ? *left - bytes : 0;
    return 1;
}

/* Faults 8 to 12: bytes that the checksum covers, and after the last of them what precedes the
 * twins. */
static twin_status twini_check_bytes(twin_opening *opening, twini_size *left) {
    twin_flash pack = opening->pack;
    twini_size count = (twini_size)(pack + opening->size - opening->at);
    if (TWIN_OPEN_STEPS && count > *left) {
        opening->sum = twini_body_crc(opening->sum, opening->at, *left);
        opening->at += *left;
        return TWIN_MORE;
    }
    *left -= count;
    if (twini_body_crc((TWIN_OPEN_STEPS ? opening->sum : 0u), opening->at, count) !=
        twini_u32(pack + 16))
        return TWIN_ERROR_BODY_CRC;
    return twini_read_model(opening->model, pack, opening->size);
}

/* Faults 13 to 16. A step ends before a row of weights. */
static unsigned twini_check_twins(twin_opening *opening, twini_size *left) {
    const twin_model *model = opening->model;
    unsigned number = TWIN_OPEN_STEPS ? opening->number : 0u;
    unsigned begun = TWIN_OPEN_STEPS ? opening->depth : 0u;
    unsigned output = TWIN_OPEN_STEPS ? opening->output : 0u;
    unsigned faults = TWIN_OPEN_STEPS ? opening->faults : 0u, depth;
    for (; number < model->twin_count; number++) {
        twin_flash record = model->twins + number * (twini_size)model->twin_size;
        twin_flash at = record + TWIN_HEAD;
        unsigned head = twini_head_faults(model, record);
        if (head)
            return head;
        for (depth = 0; depth < model->layers; depth++) {
            unsigned kernels = depth ? 1 : 2;
            twini_layer layer;
            at = twini_layer_at(&layer, model, record, at, depth);
            if (TWIN_OPEN_STEPS && depth < begun)
                continue;
            for (; output < layer.outputs; output++) {
                if (!twini_has_time(left, (twini_size)kernels * layer.row)) {
                    opening->number = (uint16_t)number;
                    opening->depth = (uint8_t)depth;
                    opening->output = (uint16_t)output;
                    opening->faults = (uint8_t)faults;
                    return UNFINISHED;
                }
                faults |= twini_row_faults(&layer, output, kernels);
            }
            output = 0;
            faults |= twini_padding_faults(layer.multiplier + 2 * layer.outputs, layer.fold);
        }
        begun = 0;
        faults |= twini_output_faults(model, record, at);
        if (faults)
            return faults;
    }
    if (TWIN_OPEN_STEPS)
        opening->number = 0;
    return 0;
}

/* Faults 17 to 19. A step ends before an anchor. */
static unsigned twini_check_anchors(twin_opening *opening, twini_size *left) {
    const twin_model *model = opening->model;
    unsigned number = TWIN_OPEN_STEPS ? opening->number : 0u;
    unsigned faults = TWIN_OPEN_STEPS ? opening->faults : 0u;
    if (!TWIN_OPEN_STEPS || !number) {
        faults = twini_curve_faults(model);
        if (faults)
            return faults;
        faults = twini_count_faults(model);
    }
    for (; number < model->anchor_count; number++) {
        if (!twini_has_time(left, (twini_size)(model->anchor_size + 4u))) {
            opening->number = (uint16_t)number;
            opening->faults = (uint8_t)faults;
            return UNFINISHED;
        }
        faults |= twini_anchor_faults(model, number);
    }
    return faults;
}

/* Check the next bytes, and make the model usable after the last. */
static twin_status twini_check(twin_opening *opening, twini_size left) {
    twin_model *model = opening->model;
    unsigned faults = 0;
    if (!TWIN_OPEN_STEPS || opening->stage == STAGE_BYTES) {
        twin_status status = twini_check_bytes(opening, &left);
        if (status)
            return status;
    }
    if (!TWIN_OPEN_STEPS || opening->stage != STAGE_ANCHORS) {
        opening->stage = STAGE_TWINS;
        faults = twini_check_twins(opening, &left);
    }
    if (!faults) {
        opening->stage = STAGE_ANCHORS;
        faults = twini_check_anchors(opening, &left);
    }
    if (!faults) {
        twini_count_members(model);
#if TWIN_INTERVALS
        (void)twini_select_level(model, 900);
#endif
        model->kernel = TWIN_KERNEL;
    }
    return faults == UNFINISHED ? TWIN_MORE : twini_verdict(faults);
}

/* Faults 1 to 7, and what the rest begins with. */
static twin_status twini_begin_check(twin_opening *opening, twin_model *model, twin_flash pack,
                                     uint32_t size) {
    uint32_t behind = 0;
    twin_status status = twini_check_file(pack, size, &behind);
    model->kernel = 0;
    opening->model = model;
    opening->pack = pack;
    opening->at = pack + (twini_size)behind;
    opening->size = size;
    return status;
}

#if TWIN_OPEN_STEPS

twin_status twin_open_begin(twin_opening *opening, twin_model *model, twin_pack pack,
                            uint32_t size) {
    twin_status status = twini_begin_check(opening, model, (twin_flash)pack, size);
    if (!status)
        status = TWIN_MORE;
    opening->sum = 0;
    opening->number = 0;
    opening->output = 0;
    opening->depth = 0;
    opening->faults = 0;
    opening->stage = STAGE_BYTES;
    opening->status = (int8_t)status;
    return status;
}

twin_status twin_open_step(twin_opening *opening, uint32_t bytes) {
    if (!opening->model) /* never begun */
        return TWIN_ERROR_MODEL;
    if (opening->status == TWIN_MORE) {
        if (bytes < 4)
            bytes = 4;
        opening->status =
            (int8_t)twini_check(opening, (twini_size)bytes & ~(twini_size)3); /* words */
    }
    return (twin_status)opening->status;
}

twin_status twin_open(twin_model *model, twin_pack pack, uint32_t size) {
    twin_opening opening;
    twin_status status = twin_open_begin(&opening, model, pack, size);
    while (status == TWIN_MORE) /* a pack may have more bytes than one step takes */
        status = twin_open_step(&opening, UINT32_MAX);
    return status;
}

#else

twin_status twin_open(twin_model *model, twin_pack pack, uint32_t size) {
    twin_opening opening;
    twin_status status = twini_begin_check(&opening, model, (twin_flash)pack, size);
    return status ? status : twini_check(&opening, 0);
}

#endif
