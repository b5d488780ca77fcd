/* Packs as laid out by FORMAT.md, for the fuzzer: where things are, and how to fix whatever a
 * reader would refuse. Nothing here is shared with the runtime, so that a mistake in one cannot
 * hide in the other. */

#ifndef FUZZ_PACK_H
#define FUZZ_PACK_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER = 48, ENTRY = 12, MOST_SECTIONS = 32, CURVE_LENGTH = 193 };
enum { SCALING = 1, TWINS, CURVE, ANCHORS, IDS };

/* The next random number; any start will do (splitmix64). */
static inline uint32_t draw(uint64_t *luck) {
    uint64_t z = *luck += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (uint32_t)(z >> 32);
}

static inline uint32_t below(uint64_t *luck, uint32_t n) {
    return draw(luck) % n;
}

static inline int one_in(uint64_t *luck, uint32_t n) {
    return !below(luck, n);
}

/* Numbers of 1, 2 or 4 bytes, the lowest first. */
static inline uint32_t get(const uint8_t *at, uint32_t width) {
    uint32_t value = 0;
    while (width--)
        value = value << 8 | at[width];
    return value;
}

static inline int32_t get_signed(const uint8_t *at, uint32_t width) {
    uint32_t value = get(at, width), sign = (uint32_t)1 << (8 * width - 1);
    return (int32_t)(((int64_t)value ^ sign) - sign);
}

static inline void put(uint8_t *at, uint32_t value, uint32_t width) {
    for (; width--; value >>= 8)
        *at++ = (uint8_t)value;
}

static inline uint32_t magnitude(int32_t a) {
    return a < 0 ? 0 - (uint32_t)a : (uint32_t)a;
}

static inline uint32_t up(uint32_t n, uint32_t to) {
    return (n + to - 1) / to * to;
}

/* What the header says of the networks. */
typedef struct shape {
    uint32_t features, layers, silu, hidden[3], wide, twins, anchors, neighbors, flags;
} shape;

/* Returns whether such networks are possible. */
static inline int read_shape(shape *of, const uint8_t *pack) {
    uint32_t d;
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
        if (d < of->layers ? of->hidden[d] - 1 >= 1024 : of->hidden[d])
            return 0;
    }
    return of->features - 1 < 1024 && of->layers - 1 < 3 && of->silu < 2 && of->wide < 2 &&
           of->twins - 1 < 256 && of->anchors >= of->twins && of->anchors <= 4096 &&
           of->neighbors <= 4096;
}

static inline void write_shape(const shape *of, uint8_t *pack) {
    uint32_t d;
    put(pack + 20, of->features, 2);
    put(pack + 22, of->layers, 1);
    put(pack + 23, of->silu, 1);
    for (d = 0; d < 3; d++)
        put(pack + 24 + 2 * d, d < of->layers ? of->hidden[d] : 0, 2);
    put(pack + 30, of->wide, 2);
    put(pack + 32, of->twins, 2);
    put(pack + 34, of->anchors, 2);
    put(pack + 36, of->neighbors, 2);
    put(pack + 38, of->neighbors ? of->flags & 1 : 0, 2);
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
        all.inputs = d ? of->hidden[d - 1] : of->features;
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

static inline uint32_t twin_bytes(const shape *of) {
    layer last = layer_of(of, of->layers - 1);
    return up(last.end + 2 * up(last.outputs, 4), 16);
}

/* Length of a section of this kind; `other` if it may have any. */
static inline uint32_t section_bytes(const shape *of, uint32_t kind, uint32_t other) {
    switch (kind) {
    case SCALING:
        return 8 * of->features + 8;
    case TWINS:
        return of->twins * twin_bytes(of);
    case CURVE:
        return 2 * CURVE_LENGTH;
    case ANCHORS:
        return up(2 * of->twins, 4) + of->anchors * (2 * up(of->features, 4) + 4);
    case IDS:
        return 4 * of->anchors;
    default:
        return other;
    }
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

/* A section of the length that it should have, or NULL. */
static inline uint8_t *find(uint8_t *pack, uint32_t size, const shape *of, uint32_t kind) {
    section all[MOST_SECTIONS];
    uint32_t i, count = read_table(all, pack, size);
    for (i = 0; i < count; i++)
        if (all[i].kind == kind && all[i].length == section_bytes(of, kind, 0))
            return pack + all[i].at;
    return 0;
}

static inline uint32_t crc_of(const uint8_t *at, uint32_t size) {
    static uint32_t table[256];
    uint32_t crc = ~(uint32_t)0, i, k;
    for (i = 0; !table[255] && i < 256; i++)
        for (table[i] = i, k = 0; k < 8; k++)
            table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xEDB88320u : 0);
    while (size--)
        crc = crc >> 8 ^ table[(crc ^ *at++) & 255];
    return ~crc;
}

/* Fix what is checked before all else: magic, version, length and checksums. */
static inline void mend_file(uint8_t *pack, uint32_t size) {
    uint32_t behind = HEADER + ENTRY * get(pack + 6, 2);
    if (behind > size)
        behind = size;
    memcpy(pack, "TWIN\1", 6);
    put(pack + 8, size, 4);
    put(pack + 16, crc_of(pack + behind, size - behind), 4);
    put(pack + 12, 0, 4);
    put(pack + 12, crc_of(pack, behind), 4);
}

static inline void mend_scaling(uint8_t *at, uint32_t count) {
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

/* Reduce weights until the sum of their magnitudes is `most`, each in proportion or only the last
 * ones; those of two kernels are `apart` bytes from each other. Returns the sum. */
static inline uint32_t mend_weights(uint8_t *row, uint32_t count, uint32_t width, uint32_t kernels,
                                    uint32_t apart, uint32_t most, uint64_t *luck) {
    int cut = 2; /* not yet decided: most rows are fine as they are */
    for (;;) {
        uint32_t k, i, sum = 0;
        for (k = 0; k < kernels; k++)
            for (i = 0; i < count; i++) {
                uint8_t *at = row + k * apart + i * width;
                int32_t weight = get_signed(at, width);
                uint32_t left = magnitude(weight);
                if (cut == 1 && left > most - sum)
                    left = most - sum;
                else if (!cut)
                    left /= 2;
                if (cut < 2)
                    put(at, weight < 0 ? 0 - left : left, width);
                sum += left;
            }
        if (sum <= most)
            return sum;
        if (cut == 2)
            cut = one_in(luck, 4);
    }
}

static inline void mend_layer(uint8_t *twin, const layer *of, uint64_t *luck) {
    uint32_t o, k;
    for (o = 0; o < of->outputs; o++) {
        uint8_t *row = twin + of->weights + o * of->row, *at = twin + of->bias + 4 * o;
        uint32_t apart = of->outputs * of->row, used = of->inputs * of->width, sum, most;
        int32_t bias = get_signed(at, 4);
        for (k = 0; k < of->kernels; k++)
            memset(row + k * apart + used, 0, of->row - used);
        sum = mend_weights(row, of->inputs, of->width, of->kernels, apart, 65538, luck);
        most = 0x7FFFFFFFu - 32767 * sum;
        if (magnitude(bias) > most)
            put(at, bias < 0 ? 0 - most : most, 4);
        twin[of->multiplier + 2 * o + 1] &= 127;
    }
    memset(twin + of->multiplier + 2 * o, 0, of->end - of->multiplier - 2 * o);
}

static inline void mend_twin(uint8_t *twin, const shape *of, uint64_t *luck) {
    layer last = layer_of(of, of->layers - 1);
    uint32_t d, used = last.end + 2 * last.outputs;
    for (d = 0; d < 3; d++) {
        uint8_t shift = twin[d] % 31, fraction = twin[3 + d];
        if (fraction < 5 || fraction > 15)
            fraction = (uint8_t)(5 + fraction % 11);
        twin[d] = d < of->layers ? shift : 0;
        twin[3 + d] = d < of->layers ? fraction : 0;
    }
    twin[6] %= 31;
    twin[7] = 0;
    twin[9] &= 127;
    memset(twin + 10, 0, 6);
    for (d = 0; d < of->layers; d++) {
        layer one = layer_of(of, d);
        mend_layer(twin, &one, luck);
    }
    mend_weights(twin + last.end, last.outputs, 2, 1, 0, 32769, luck);
    memset(twin + used, 0, twin_bytes(of) - used);
}

static inline void mend_anchors(uint8_t *at, const shape *of) {
    uint32_t left = of->anchors - of->twins, used = 2 * of->features, i, k;
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
static inline void mend_values(uint8_t *pack, uint32_t size, uint64_t *luck) {
    section all[MOST_SECTIONS];
    uint32_t count = read_table(all, pack, size), end = HEADER + ENTRY * count, i;
    uint8_t *at;
    shape of;
    if (!read_shape(&of, pack))
        return;
    for (i = 0; i <= count; i++) {
        uint32_t start = i < count ? all[i].at : size;
        if (start > end)
            memset(pack + end, 0, start - end);
        if (i < count)
            end = all[i].at + all[i].length;
    }
    if ((at = find(pack, size, &of, SCALING)))
        mend_scaling(at, of.features + 1);
    if ((at = find(pack, size, &of, TWINS)))
        for (i = 0; i < of.twins; i++)
            mend_twin(at + i * twin_bytes(&of), &of, luck);
    if ((at = find(pack, size, &of, CURVE)))
        for (i = 0; i < CURVE_LENGTH; i++)
            at[2 * i + 1] &= 63;
    if ((at = find(pack, size, &of, ANCHORS)))
        mend_anchors(at, &of);
}

#endif
