/* Packs as laid out by FORMAT.md, for the fuzzer: where things are, and how to repair whatever a
 * reader would refuse. */

#ifndef FUZZ_PACK_H
#define FUZZ_PACK_H

#include "fuzz_curves.h"

enum { HEADER = 48, ENTRY = 12, MOST_SECTIONS = 32, CURVE_LENGTH = 193 };
enum {
    SCALING = 1,
    TWINS,
    CURVE,
    ANCHORS,
    IDS,
    METADATA,
    INTERVALS,
    DOMAIN,
    SCHEMA,
    MAP,
    TARGET_CURVE
};
enum { INTERVALS_HEAD = 32, LEVEL = 8, MOST_LEVELS = 15 };
enum { MOST_WIDTH = 1024, MOST_ANCHORS = 4096, MOST_TWINS = 256 };
enum { NEAREST_ONLY = 1, SCALED = 2 }; /* flags of the header */

/* What the header says of the networks, and what stands in front of them and behind: numbers that
 * a map makes of the features, its rows, and bins of a target curve, each 0 if there is none. */
typedef struct shape {
    uint32_t features, layers, silu, hidden[3], wide, twins, anchors, neighbors, flags;
    uint32_t outputs, rows, bins;
} shape;

/* Numbers that the twins take. */
static inline uint32_t inputs_of(const shape *of) {
    return of->outputs ? of->outputs : of->features;
}

/* Its content starts at `at`; `there` bytes of it are in the file. */
typedef struct section {
    uint32_t kind, flags, at, length, there;
} section;

/* Sections as the table states them, truncated at the end of the file; returns how many. */
static inline uint32_t read_table(section *all, const uint8_t *pack, uint32_t size) {
    uint32_t i, count = get(pack + 6, 2);
    for (i = 0; i < count && i < MOST_SECTIONS && HEADER + ENTRY * (i + 1) <= size; i++) {
        const uint8_t *entry = pack + HEADER + ENTRY * i;
        all[i].kind = get(entry, 2);
        all[i].flags = get(entry + 2, 2);
        all[i].at = get(entry + 4, 4);
        all[i].length = get(entry + 8, 4);
        if (all[i].at > size)
            all[i].at = size;
        if (all[i].length > size - all[i].at)
            all[i].length = size - all[i].at;
        all[i].there = all[i].length;
    }
    return i;
}

/* Returns whether such networks are possible. */
static inline int read_shape(shape *of, const uint8_t *pack, uint32_t size) {
    section all[MOST_SECTIONS];
    uint32_t d, count = get(pack + 4, 2) > 2 ? read_table(all, pack, size) : 0;
    of->features = get(pack + 20, 2);
    of->layers = pack[22];
    of->silu = pack[23];
    of->wide = pack[30];
    of->twins = get(pack + 32, 2);
    of->anchors = get(pack + 34, 2);
    of->neighbors = get(pack + 36, 2);
    of->flags = get(pack + 38, 2);
    for (d = 0; d < 3; d++) {
        of->hidden[d] = get(pack + 24 + 2 * d, 2);
        if (d < of->layers ? of->hidden[d] - 1 >= MOST_WIDTH : of->hidden[d])
            return 0;
    }
    of->outputs = of->rows = of->bins = 0;
    for (d = 0; d < count; d++) {
        const uint8_t *at = pack + all[d].at;
        if (all[d].kind == MAP && all[d].length >= MAP_HEAD) {
            of->outputs = get(at, 2);
            of->rows = get(at + 2, 2);
            if (of->outputs < of->features || of->outputs > MOST_WIDTH)
                return 0;
        }
        if (all[d].kind == TARGET_CURVE && all[d].length >= TARGET_HEAD) {
            of->bins = get(at + 6, 2);
            if (of->bins - 1 >= MOST_BINS)
                return 0;
        }
    }
    return of->features - 1 < MOST_WIDTH && of->layers - 1 < 3 && of->silu < 2 && of->wide < 2 &&
           of->twins - 1 < MOST_TWINS && of->anchors >= of->twins && of->anchors <= MOST_ANCHORS &&
           of->neighbors <= MOST_ANCHORS && of->flags < 4;
}

/* Also the version: that of a scaled pack is 2, or 3 with a map or a target curve. */
static inline void write_shape(const shape *of, uint32_t version, uint8_t *pack) {
    uint32_t d;
    put(pack + 4, of->outputs || of->bins ? 3 : (of->flags & SCALED) ? 2 : version, 2);
    put(pack + 20, of->features, 2);
    put(pack + 22, of->layers, 1);
    put(pack + 23, of->silu, 1);
    for (d = 0; d < 3; d++)
        put(pack + 24 + 2 * d, d < of->layers ? of->hidden[d] : 0, 2);
    put(pack + 30, of->wide, 2);
    put(pack + 32, of->twins, 2);
    put(pack + 34, of->anchors, 2);
    put(pack + 36, of->neighbors, 2);
    put(pack + 38, (of->flags & SCALED) | (of->neighbors ? of->flags & NEAREST_ONLY : 0), 2);
    put(pack + 40, 0, 4);
    put(pack + 44, 0, 4);
}

/* Where the parts of a hidden layer are, from the start of the twin. */
typedef struct layer {
    uint32_t inputs, outputs, kernels, width, row, weights, bias, multiplier, end;
} layer;

static inline layer layer_of(const shape *of, uint32_t depth) {
    layer all = {0, 0, 0, 0, 0, 0, 0, 0, 16};
    uint32_t d;
    for (d = 0; d <= depth; d++) {
        all.inputs = d ? of->hidden[d - 1] : inputs_of(of);
        all.outputs = of->hidden[d];
        all.kernels = d ? 1 : 2;
        all.width = 1 + of->wide;
        all.row = up(all.inputs, 4) * all.width;
        all.weights = all.end;
        all.bias = all.weights + all.kernels * all.outputs * all.row;
        all.multiplier = all.bias + 4 * all.outputs;
        all.end = all.multiplier + up(2 * all.outputs, 4);
    }
    return all;
}

/* The weights of the outputs: where the first is, and how far the next. */
typedef struct outputs {
    uint32_t count, weights, step, end;
} outputs;

static inline outputs outputs_of(const shape *of) {
    layer last = layer_of(of, of->layers - 1);
    outputs all = {0, 0, 2, 0};
    all.count = last.outputs;
    all.weights = last.end;
    if (of->flags & SCALED) { /* after the bias of the difficulty */
        all.weights += 4;
        all.step = 4;
    }
    all.end = all.weights + all.step * up(all.count, 4);
    return all;
}

static inline uint32_t twin_bytes(const shape *of) {
    return up(outputs_of(of).end, 16);
}

/* Length of a section of this kind; `other` if it may have any. Intervals may have any that holds
 * whole levels. */
static inline uint32_t section_bytes(const shape *of, uint32_t kind, uint32_t other) {
    switch (kind) {
    case SCALING:
        return 8 * of->features + 8;
    case TWINS:
        return of->twins * twin_bytes(of);
    case CURVE:
        return 2 * CURVE_LENGTH;
    case ANCHORS:
        return up(2 * of->twins, 4) + of->anchors * (2 * up(inputs_of(of), 4) + 4);
    case IDS:
        return 4 * of->anchors;
    case INTERVALS:
        return other % LEVEL || other / LEVEL - 5 >= MOST_LEVELS
                   ? INTERVALS_HEAD + LEVEL * (1 + other % MOST_LEVELS)
                   : other;
    case DOMAIN:
        return 6 * of->features;
    case SCHEMA:
        return 4;
    case MAP:
        return of->outputs ? map_bytes(of->features, of->outputs, of->rows) : other;
    case TARGET_CURVE:
        return of->bins ? TARGET_HEAD + 4 * (of->bins + 1) : other;
    default:
        return other;
    }
}

static inline int is_required(uint32_t kind) {
    return (kind >= SCALING && kind <= ANCHORS) || kind == INTERVALS || kind == MAP ||
           kind == TARGET_CURVE;
}

/* A section of the length that it should have, or NULL. */
static inline const section *find(const section *all, uint32_t count, const shape *of,
                                  uint32_t kind) {
    uint32_t i;
    for (i = 0; i < count; i++)
        if (all[i].kind == kind && all[i].length == section_bytes(of, kind, all[i].length))
            return all + i;
    return 0;
}

/* Fix what is checked before all else: magic, version, length and checksums. */
static inline void repair_file(uint8_t *pack, uint32_t size) {
    uint32_t behind = HEADER + ENTRY * get(pack + 6, 2);
    if (behind > size)
        behind = size;
    put(pack, 0x4E495754u, 4); /* TWIN */
    if (get(pack + 4, 2) - 1 > 2)
        put(pack + 4, (get(pack + 38, 2) & SCALED) ? 2 : 1, 2);
    put(pack + 8, size, 4);
    put(pack + 16, crc_of(pack + behind, size - behind), 4);
    put(pack + 12, 0, 4);
    put(pack + 12, crc_of(pack, behind), 4);
}

static inline void repair_scaling(uint8_t *at, uint32_t count) {
    for (; count--; at += 8) {
        uint32_t offset = get(at, 4), gain = get(at + 4, 4) & 0x7FFFFFFFu;
        if ((offset & 0x7F800000u) == 0x7F800000u)
            offset ^= 0x00800000u;
        if (gain >= 0x7F800000u)
            gain ^= 0x00800000u;
        put(at, offset, 4);
        put(at + 4, gain ? gain : 1, 4);
    }
}

/* Weights of one sum: `count` of `width` bytes, `step` apart, in one kernel or two. */
typedef struct weights {
    uint8_t *first;
    uint32_t count, width, step, kernels, apart;
} weights;

/* Reduce weights until the sum of their magnitudes is `most`, each in proportion or only the last
 * ones. Returns the sum. */
static inline uint32_t repair_weights(const weights *of, uint32_t most, uint64_t *rng) {
    int cut = 2; /* not yet decided: most rows are fine as they are */
    for (;;) {
        uint32_t k, i, sum = 0;
        for (k = 0; k < of->kernels; k++)
            for (i = 0; i < of->count; i++) {
                uint8_t *at = of->first + k * of->apart + i * of->step;
                int32_t weight = get_signed(at, of->width);
                uint32_t left = magnitude(weight);
                if (cut == 1 && left > most - sum)
                    left = most - sum;
                else if (!cut)
                    left /= 2;
                if (cut < 2)
                    put(at, weight < 0 ? 0 - left : left, of->width);
                sum += left;
            }
        if (sum <= most)
            return sum;
        if (cut == 2)
            cut = one_in(rng, 4);
    }
}

static inline void repair_bias(uint8_t *at, uint32_t most) {
    int32_t bias = get_signed(at, 4);
    if (magnitude(bias) > most)
        put(at, bias < 0 ? 0 - most : most, 4);
}

static inline void repair_layer(uint8_t *twin, const layer *of, uint64_t *rng) {
    uint32_t o, k;
    for (o = 0; o < of->outputs; o++) {
        uint32_t apart = of->outputs * of->row, used = of->inputs * of->width;
        weights row = {0, of->inputs, of->width, of->width, of->kernels, apart};
        row.first = twin + of->weights + o * of->row;
        for (k = 0; k < of->kernels; k++)
            memset(row.first + k * apart + used, 0, of->row - used);
        repair_bias(twin + of->bias + 4 * o,
                    0x7FFFFFFFu - 32767 * repair_weights(&row, 65538, rng));
        twin[of->multiplier + 2 * o + 1] &= 127;
    }
    memset(twin + of->multiplier + 2 * o, 0, of->end - of->multiplier - 2 * o);
}

/* The weights of the outputs, and all after them. */
static inline void repair_outputs(uint8_t *twin, const shape *of, uint64_t *rng) {
    outputs all = outputs_of(of);
    weights one = {0, all.count, 2, all.step, 1, 0};
    uint32_t sum, used = all.weights + all.step * all.count;
    one.first = twin + all.weights;
    sum = repair_weights(&one, 32769, rng);
    if (of->flags & SCALED) {
        repair_bias(twin + 12, 0x7FFFFFFFu - 65534 * sum);
        one.first += 2;
        sum = repair_weights(&one, 65538, rng);
        repair_bias(twin + all.weights - 4, 0x7FFFFFFFu - 32767 * sum);
    }
    memset(twin + used, 0, twin_bytes(of) - used);
}

static inline void repair_twin(uint8_t *twin, const shape *of, uint64_t *rng) {
    uint32_t d;
    for (d = 0; d < 3; d++) {
        uint8_t shift = twin[d] % 31, fraction = twin[3 + d];
        if (fraction < 5 || fraction > 15)
            fraction = (uint8_t)(5 + fraction % 11);
        twin[d] = d < of->layers ? shift : 0;
        twin[3 + d] = d < of->layers ? fraction : 0;
    }
    twin[6] %= 31;
    twin[9] &= 127;
    if (of->flags & SCALED) {
        twin[7] %= 31;
        twin[11] &= 127;
    } else {
        twin[7] = 0;
        memset(twin + 10, 0, 6);
    }
    for (d = 0; d < of->layers; d++) {
        layer one = layer_of(of, d);
        repair_layer(twin, &one, rng);
    }
    repair_outputs(twin, of, rng);
}

static inline void repair_anchors(uint8_t *at, const shape *of) {
    uint32_t left = of->anchors - of->twins, used = 2 * inputs_of(of), i, k;
    uint8_t *features = at + up(2 * of->twins, 4), *targets;
    for (i = 0; i < of->twins; i++) {
        uint32_t more = get(at + 2 * i, 2);
        more = more ? more - 1 : 0;
        if (more > left || i + 1 == of->twins)
            more = left;
        left -= more;
        put(at + 2 * i, 1 + more, 2);
    }
    memset(at + 2 * i, 0, (size_t)(features - at) - 2 * i);
    targets = features + of->anchors * up(used, 8);
    for (i = 0; i < of->anchors; i++, features += up(used, 8), targets += 4) {
        int32_t target = get_signed(targets, 4);
        for (k = 0; k < used; k += 2)
            if (get(features + k, 2) == 0x8000u)
                put(features + k, 0x8001u, 2);
        memset(features + used, 0, up(used, 8) - used);
        if (magnitude(target) >> 30)
            put(targets, target < 0 ? 0xC0000001u : 0x3FFFFFFFu, 4);
    }
}

/* Put every number in its range and zero where zeros belong, in a pack whose header and table are
 * valid: then all of it is. */
static inline void repair_values(uint8_t *pack, uint32_t size, uint64_t *rng) {
    section all[MOST_SECTIONS];
    const section *one;
    uint32_t count = read_table(all, pack, size), end = HEADER + ENTRY * count, i;
    shape of;
    if (!read_shape(&of, pack, size))
        return;
    for (i = 0; i <= count; i++) {
        uint32_t start = i < count ? all[i].at : size;
        if (start > end)
            memset(pack + end, 0, start - end);
        if (i < count)
            end = all[i].at + all[i].length;
    }
    if ((one = find(all, count, &of, SCALING)))
        repair_scaling(pack + one->at, of.features + 1);
    if (of.outputs && (one = find(all, count, &of, MAP)))
        repair_map(pack + one->at, of.features, of.outputs, of.rows);
    if (of.bins && (one = find(all, count, &of, TARGET_CURVE)))
        repair_target_curve(pack + one->at);
    if ((one = find(all, count, &of, TWINS)))
        for (i = 0; i < of.twins; i++)
            repair_twin(pack + one->at + i * twin_bytes(&of), &of, rng);
    if ((one = find(all, count, &of, CURVE)))
        for (i = 0; i < CURVE_LENGTH; i++)
            pack[one->at + 2 * i + 1] &= 63;
    if ((one = find(all, count, &of, ANCHORS)))
        repair_anchors(pack + one->at, &of);
}

#endif
