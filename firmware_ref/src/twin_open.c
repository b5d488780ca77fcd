/* Opening a pack: the faults of FORMAT.md, section 10, in that order. */

#include "twin_faults.h"
#include "twin_model.h"

enum { MOST_SECTIONS = 32, MOST_WIDTH = 1024, MOST_ANCHORS = 4096 };
enum { SCALING = 1, TWINS, CURVE, ANCHORS, IDS, METADATA, INTERVALS, RANGES };
enum { MAP = TWIN_SCHEMA + 1, TARGET_CURVE, TARGETS, KINDS = TARGETS + (TWIN_TARGETS > 1) };
/* In version 3; a pack may have them. */
#define ADDED (1u << MAP | 1u << TARGET_CURVE | (TWIN_TARGETS > 1 ? 1u << TARGETS : 0u))
#define REQUIRED                                                                                   \
    (1u << SCALING | 1u << TWINS | 1u << CURVE | 1u << ANCHORS | 1u << INTERVALS | ADDED)
enum { MOST_LEVELS = 15, MOST_BINS = 4096, MOST_TARGETS = 8 };

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

TWIN_NOT_INLINE static uint32_t twini_record_size(twin_model *model) {
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
#if TWIN_TARGETS > 1
    model->apart = (uint16_t)(last + TWIN_OUTPUT);
    last += model->apart * (model->targets - 1u);
#endif
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
          (flags & 1) > model->neighbors || flags >> 1 > twini_u8(at + 4) / 2u ||
          twini_u32(at + 40) || twini_u32(at + 44); /* the second flag is new in version 2 */
    for (depth = 0; depth < 3; depth++) {
        unsigned width = twini_u16(at + 24 + 2 * depth);
        model->hidden[depth] = (uint16_t)width;
        bad |= depth < model->layers ? width - 1 >= MOST_WIDTH : width;
    }
    if (bad)
        return TWIN_ERROR_HEADER;
    if ((!TWIN_SILU && model->silu) || (!TWIN_INT16 && model->wide) ||
        (!TWIN_NEIGHBORS && model->neighbors) || (!TWIN_INTERVALS && flags > 1) ||
        (!TWIN_MAP && !TWIN_TARGET_CURVE && TWIN_TARGETS == 1 && twini_u8(at + 4) > 2))
        return TWIN_ERROR_UNSUPPORTED;
    return TWIN_OK;
}

#if TWIN_TARGETS > 1
#if TWIN_INTERVALS
/* Length of the intervals of all targets, which have as many levels each. */
static uint32_t twini_all_intervals(const twin_model *model, twin_flash at, uint32_t levels,
                                    uint32_t length) {
    uint32_t each = twini_intervals_bytes(levels);
    unsigned left;
    if (length != each * model->targets)
        return ~length;
    for (left = model->targets; left; left--, at += (twini_size)each)
        if (twini_u32(at + TWIN_LEVEL_COUNT) != levels)
            return ~length;
    return length;
}
#endif

#if TWIN_TARGET_CURVE
/* Length of the target curves of several targets, which may have none. */
static uint32_t twini_all_curves(const twin_model *model, twin_flash at, uint32_t length) {
    uint32_t all = 0;
    unsigned left;
    for (left = model->targets; left; left--) {
        uint32_t bins;
        if (length - all < TWIN_CURVE_HEAD)
            return ~length;
        bins = twini_u16(at + (twini_size)all + TWIN_CURVE_BINS);
        all += twini_curve_bytes(bins);
        if (bins > MOST_BINS || all > length)
            return ~length;
    }
    return all;
}
#endif
#endif

/* Required length of the section at `at`, by its kind; `length` if any is allowed. */
static uint32_t twini_length(const twin_model *model, unsigned kind, twin_flash at,
                             uint32_t length) {
    uint32_t features = model->features, anchors = model->anchor_count;
#if TWIN_INTERVALS || TWIN_MAP || TWIN_TARGET_CURVE
    uint32_t rows;
#endif
    switch (kind) {
    case SCALING:
        return 8 * features + 8 * twini_targets(model);
    case TWINS:
        return model->twin_count * model->twin_size;
    case CURVE:
        return 2 * CURVE_LENGTH;
    case ANCHORS:
        return twini_align(2 * (uint32_t)model->twin_count, 4) +
               anchors * (model->anchor_size + 4u * twini_targets(model));
    case IDS:
        return 4 * anchors;
#if TWIN_INTERVALS
    case INTERVALS: /* no other build has a pack that may have them */
        rows = length < TWIN_INTERVALS_HEAD ? 0 : twini_u32(at + TWIN_LEVEL_COUNT);
        if (rows - 1 >= MOST_LEVELS)
            return ~length;
#if TWIN_TARGETS > 1
        return twini_all_intervals(model, at, rows, length);
#else
        return twini_intervals_bytes(rows);
#endif
#endif
    case RANGES:
        return 6 * features;
#if TWIN_MAP
    case MAP:
        if (length < MAP_HEAD || model->inputs - features > MOST_WIDTH - features)
            return ~length;
        rows = twini_u16(at + 2);
        return twini_knots_at(model) + twini_align(2 * rows, 4) + rows * model->inputs;
#endif
#if TWIN_TARGET_CURVE
    case TARGET_CURVE:
#if TWIN_TARGETS > 1
        if (model->targets > 1)
            return twini_all_curves(model, at, length);
#endif
        rows = length < TWIN_CURVE_HEAD ? 0 : twini_u16(at + TWIN_CURVE_BINS);
        return rows - 1 < MOST_BINS ? twini_curve_bytes(rows) : ~length;
#endif
#if TWIN_TARGETS > 1
    case TARGETS:
        return model->targets > 1 ? 4 : ~length;
#endif
    case TWIN_SCHEMA:
        return 4;
    default:
        (void)at;
        return length;
    }
}

#if TWIN_MAP || TWIN_TARGETS > 1
/* Find the map, and how many targets there are, before the other sections are checked: how long
 * they are depends on both. */
static twin_status twini_find_sizes(twin_model *model, twin_flash pack, uint32_t size) {
    unsigned left = twini_u16(pack + 6);
    twin_flash entry = pack + TWIN_TABLE;
#if TWIN_MAP
    model->map = 0;
    model->inputs = model->features;
#endif
    for (; left && twini_u8(pack + 4) > 2; left--) {
        unsigned kind = twini_u16(entry);
        uint32_t offset = twini_u32(entry + 4);
        if (TWIN_TARGETS == 1 && kind == TARGETS)
            return TWIN_ERROR_UNSUPPORTED;
        if (offset < size && !(offset & 15)) {
#if TWIN_MAP
            if (kind == MAP) {
                model->map = pack + offset + MAP_HEAD;
                model->inputs = twini_u16(pack + offset);
            }
#endif
#if TWIN_TARGETS > 1
            if (kind == TARGETS) {
                unsigned targets = twini_u16(pack + offset);
                if (targets - 2 <= MOST_TARGETS - 2) {
                    if (targets > TWIN_TARGETS)
                        return TWIN_ERROR_UNSUPPORTED;
                    model->targets = (uint8_t)targets;
                    model->all = (uint8_t)targets;
                }
            }
#endif
        }
        entry += TWIN_ENTRY;
    }
    return TWIN_OK;
}
#endif

/* Faults 10 and 11. */
static twin_status twini_read_sections(twin_model *model, twin_flash pack, uint32_t size) {
    twin_flash entry, at[KINDS], table = pack + TWIN_TABLE;
    twin_flash stop = table + TWIN_ENTRY * (uint32_t)twini_u16(pack + 6);
    uint32_t end = (uint32_t)(stop - pack);
    unsigned faults = 0, found = 0, needed = 1 << SCALING | 1 << TWINS | 1 << ANCHORS;
    unsigned newest = TWIN_SCHEMA; /* kind */
    if ((TWIN_MAP || TWIN_TARGET_CURVE || TWIN_TARGETS > 1) && twini_u8(pack + 4) > 2)
        newest = TWIN_TARGETS > 1 ? TARGETS : TARGET_CURVE;
    at[INTERVALS] = 0; /* a pack may lack these */
    at[RANGES] = 0;
    at[TARGET_CURVE] = 0;
    if (twini_is_silu(model))
        needed |= 1 << CURVE;
    if (twini_is_scaled(model))
        needed |= 1 << INTERVALS;
    for (entry = table; entry != stop; entry += TWIN_ENTRY) {
        unsigned kind = twini_u16(entry), known = kind <= newest ? kind : 0;
        unsigned required = REQUIRED >> known & 1;
        uint32_t offset = twini_u32(entry + 4), length = twini_u32(entry + 8);
        twin_flash other;
        if ((!TWIN_MAP && known == MAP) || (!TWIN_TARGET_CURVE && known == TARGET_CURVE))
            return TWIN_ERROR_UNSUPPORTED;
        if (offset != twini_align(end, 16) || length > size - offset ||
            twini_u16(entry + 2) != required ||
            length != twini_length(model, known, pack + offset, length))
            return TWIN_ERROR_SECTION;
        for (other = table; other != entry; other += TWIN_ENTRY)
            if (twini_u16(other) == kind)
                return TWIN_ERROR_SECTION;
        faults |= twini_padding_faults(pack + end, pack + offset);
        end = offset + length;
        /*@ split end; */
        found |= 1u << known;
        at[known] = pack + offset;
    }
    if ((found ^ needed) & (REQUIRED & ~ADDED) || twini_align(end, 16) != size)
        return TWIN_ERROR_SECTION;
#if TWIN_INTERVALS
    model->intervals = at[INTERVALS];
    model->domain = at[RANGES];
#endif
#if TWIN_TARGET_CURVE
    model->target_curve = at[TARGET_CURVE];
#endif
#if TWIN_TARGETS > 1
    if (model->targets > 1)
        faults |= twini_padding_faults(at[TARGETS] + 2, at[TARGETS] + 4);
#if TWIN_TARGET_CURVE
    model->curves = at[TARGET_CURVE];
    if (model->curves && !twini_u16(model->curves + TWIN_CURVE_BINS))
        model->target_curve = 0;
#endif
    model->units = at[SCALING] + 8 * (twini_size)model->features;
#endif
    model->scaling = at[SCALING];
    model->twins = at[TWINS];
    model->curve = at[twini_is_silu(model) ? CURVE : TWINS]; /* relu does not use it */
    model->counts = at[ANCHORS];
    model->anchors = model->counts + (uint16_t)twini_align(2 * model->twin_count, 4);
    model->values = model->anchors + (twini_size)model->anchor_count * model->anchor_size;
    faults |= twini_padding_faults(pack + end, pack + size);
    return faults ? TWIN_ERROR_PADDING : TWIN_OK;
}

#if TWIN_INTERVALS
/* Select the highest level up to this, or the lowest, of the intervals at `at`; returns it, or 0 if
 * there are none. */
static uint32_t twini_level_of(twin_flash at, uint32_t thousandths, uint32_t *quantile) {
    uint32_t left, taken = 0;
    if (!at)
        return 0;
    left = twini_u32(at + TWIN_LEVEL_COUNT);
    at += TWIN_INTERVALS_HEAD;
    for (; left; left--) {
        uint32_t level = twini_u32(at);
        if (!taken || level <= thousandths) {
            taken = level;
            *quantile = twini_u32(at + 4);
        }
        at += TWIN_LEVEL;
    }
    return taken;
}

/* The same for all targets of the model; 0 if one has selected another level than the first. */
TWIN_NOT_INLINE static uint32_t twini_select_level(twin_model *model, uint32_t thousandths) {
    uint32_t taken = twini_level_of(model->intervals, thousandths, &model->quantile);
#if TWIN_TARGETS > 1
    twin_flash at = model->intervals;
    uint32_t all = taken;
    unsigned i;
    for (i = 0; at && i + 1 < model->targets; i++) {
        at += (twini_size)twini_intervals_bytes(twini_u32(at + TWIN_LEVEL_COUNT));
        if (twini_level_of(at, thousandths, model->quantiles + i) != taken)
            all = 0;
    }
    taken = all;
#endif
    return taken;
}

twin_status twin_set_coverage(twin_model *model, uint16_t thousandths) {
    uint32_t quantile = model->quantile;
#if TWIN_TARGETS > 1
    uint32_t quantiles[TWIN_TARGETS - 1];
    TWIN_COPY(quantiles, model->quantiles, sizeof quantiles);
#endif
    if (!model->kernel)
        return TWIN_ERROR_MODEL;
    if (thousandths - 1u < 999 && twini_select_level(model, thousandths) == thousandths)
        return TWIN_OK;
    model->quantile = quantile;
#if TWIN_TARGETS > 1
    TWIN_COPY(model->quantiles, quantiles, sizeof quantiles);
#endif
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

/* Faults 9 to 11. */
static twin_status twini_read_model(twin_model *model, twin_flash pack, uint32_t size) {
    twin_status status = twini_read_header(model, pack);
    if (status)
        return status;
    model->targets = 1;
#if TWIN_TARGETS > 1
    model->first = 0;
    model->all = 1;
#endif
#if TWIN_MAP || TWIN_TARGETS > 1
    status = twini_find_sizes(model, pack, size);
    if (status)
        return status;
#endif
    model->twin_size = twini_record_size(model);
    model->anchor_size = (uint16_t)(2 * twini_align(twini_inputs(model, 0), 4));
    return twini_read_sections(model, pack, size);
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

/* Faults 8 to 11: bytes that the checksum covers, and after the last of them what precedes the
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

/* Faults 17 to 20. A step ends before a row of weights. */
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
#if TWIN_TARGETS > 1
        if (!head)
            head = twini_record_faults(model, twini_first_output(model, record));
#endif
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
#if TWIN_TARGETS > 1
        faults |= twini_all_output_faults(model, record, at);
#else
        faults |= twini_output_faults(model, record, at, model->twin_size);
#endif
        if (faults)
            return faults;
    }
    if (TWIN_OPEN_STEPS)
        opening->number = 0;
    return 0;
}

/* Faults 21 to 23. A step ends before an anchor. */
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
        if (!twini_has_time(left, (twini_size)(model->anchor_size + 4u * twini_targets(model)))) {
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
        faults = twini_scaling_faults(model);
#if TWIN_MAP
        if (!faults)
            faults = twini_map_faults(model);
#endif
#if TWIN_TARGET_CURVE
        if (!faults)
            faults = twini_target_faults(model);
#endif
    }
    if (!faults && (!TWIN_OPEN_STEPS || opening->stage != STAGE_ANCHORS)) {
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
