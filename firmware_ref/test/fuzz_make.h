/* Sound packs from random numbers alone: networks of any shape that the format allows, with all of
 * its sections, and numbers like those of trained networks, or extreme ones. Most are tiny, so that
 * there can be many. */

#ifndef FUZZ_MAKE_H
#define FUZZ_MAKE_H

#include "fuzz_pack.h"

/* Room for one more than a table may have. */
typedef section sections[MOST_SECTIONS + 1];

/* The largest networks of their kind. The work is that of one prediction, in products. */
typedef struct limits {
    uint32_t features, width, anchors, twins, work, bytes;
} limits;

static const limits TINY = {5, 6, 5, 3, 1500, 3072};
static const limits SMALL = {12, 24, 24, 4, 12000, USUAL_BYTES - 1024};
static const limits MEDIUM = {70, 80, 80, 20, 120000, USUAL_BYTES - 1024};
static const limits LARGE = {MOST_WIDTH, MOST_WIDTH, MOST_ANCHORS,
                             MOST_TWINS, 2400000,    LARGE_BYTES - 65536};

/* Content for new bytes: any; mostly zeros; extremes; or one number repeated, which makes anchors
 * that are equally near. */
static void fill(uint8_t *at, uint32_t count, uint64_t *rng) {
    static const uint8_t extremes[] = {0x80, 0x7F, 0xFF, 0x81, 0x00, 0x01, 0x80, 0x7F};
    uint32_t style = below(rng, 6), word = draw(rng), i;
    for (i = 0; i < count; i++) {
        uint32_t number;
        if (i % 4 == 0 && style != 2)
            word = draw(rng);
        number = word >> (i % 4 * 8);
        if (style == 0)
            at[i] = (uint8_t)(number & 7 ? 0 : number);
        else if (style == 1)
            at[i] = extremes[number & 7];
        else
            at[i] = (uint8_t)number;
    }
}

/* Lay out sections after the header in `out`, with their content taken from `from`, and fewer than
 * `gaps` times 16 bytes too much in between. Returns the size, or 0 if there is not enough room. */
static uint32_t assemble(uint8_t *out, uint32_t most, const section *all, uint32_t count,
                         const uint8_t *from, uint32_t gaps, uint64_t *rng) {
    uint32_t end = HEADER + ENTRY * count, i;
    for (i = 0; i <= count; i++) {
        uint32_t start = up(end, 16) + 16 * below(rng, gaps);
        uint32_t length = i < count ? all[i].length : 0, kept;
        if (start > most || length > most - start)
            return 0;
        memset(out + end, 0, start - end);
        end = start + length;
        if (i == count)
            break;
        kept = all[i].there < length ? all[i].there : length;
        memcpy(out + start, from + all[i].at, kept);
        fill(out + start + kept, length - kept, rng);
        if (all[i].kind == INTERVALS && length >= INTERVALS_HEAD)
            put(out + start + 28, (length - INTERVALS_HEAD) / LEVEL, 4);
        put(out + HEADER + ENTRY * i, all[i].kind, 2);
        put(out + HEADER + ENTRY * i + 2, all[i].flags, 2);
        put(out + HEADER + ENTRY * i + 4, start, 4);
        put(out + HEADER + ENTRY * i + 8, length, 4);
    }
    put(out + 6, count, 2);
    return end;
}

static int has(const section *all, uint32_t count, uint32_t kind) {
    while (count--)
        if (all[count].kind == kind)
            return 1;
    return 0;
}

static int is_needed(const shape *of, uint32_t kind) {
    return kind == CURVE          ? of->silu != 0
           : kind == INTERVALS    ? (of->flags & SCALED) != 0
           : kind == MAP          ? of->outputs != 0
           : kind == TARGET_CURVE ? of->bins != 0
                                  : kind >= SCALING && kind <= ANCHORS;
}

/* Make the list right for this shape: each section once, with its length and flag, all that are
 * needed, and no others that are required. Returns how many there are. */
static uint32_t fit(section *all, uint32_t count, const shape *of) {
    uint32_t kept = 0, kind, i;
    for (i = 0; i < count; i++) {
        kind = all[i].kind;
        if (has(all, kept, kind) || (is_required(kind) && !is_needed(of, kind)))
            continue;
        all[kept] = all[i];
        all[kept].flags = is_required(kind) ? 1 : 0;
        all[kept].length = section_bytes(of, kind, all[i].length);
        kept++;
    }
    for (kind = SCALING; kind <= TARGET_CURVE && kept < MOST_SECTIONS; kind++)
        if (!has(all, kept, kind) && is_needed(of, kind)) {
            section one = {kind, 1, 0, 0, 0};
            one.length = section_bytes(of, kind, of->features + 3 * of->anchors);
            all[kept++] = one;
        }
    return kept;
}

static uint32_t bytes_of(const section *all, uint32_t count) {
    uint32_t i, sum = HEADER + ENTRY * count;
    for (i = 0; i < count; i++)
        sum = all[i].length < 1u << 30 ? up(sum, 16) + all[i].length : 1u << 30;
    return sum;
}

static void swap(section *all, uint32_t i, uint32_t j) {
    section one = all[i];
    all[i] = all[j];
    all[j] = one;
}

/* Products of one prediction. */
static uint32_t work_of(const shape *of) {
    uint32_t d, products = of->hidden[of->layers - 1];
    for (d = 0; d < of->layers; d++)
        products += (d ? of->hidden[d - 1] : inputs_of(of)) * of->hidden[d];
    return 2 * products > UINT32_MAX / of->anchors ? UINT32_MAX : 2 * products * of->anchors;
}

static int is_within(const shape *of, const limits *most) {
    sections all;
    uint32_t count = fit(all, 0, of);
    return of->features <= most->features && of->rows * inputs_of(of) <= most->work &&
           of->anchors <= most->anchors && of->twins <= most->twins && work_of(of) <= most->work &&
           bytes_of(all, count) <= most->bytes;
}

/* Set one size of a shape, from 0 on: features, anchors, twins, hidden layers. */
static void set_size(shape *of, uint32_t which, uint32_t size) {
    if (which == 0) {
        of->features = size;
        if (of->outputs && of->outputs < size)
            of->outputs = size;
        while (!can_share(of->rows, size))
            of->rows /= 2;
    }
    if (which == 1)
        of->anchors = size < of->twins ? of->twins : size;
    else if (which == 2)
        of->twins = size;
    else if (which - 3 < of->layers)
        of->hidden[which - 3] = size;
    if (of->anchors < of->twins)
        of->anchors = of->twins;
}

/* Networks within limits. Sizes are drawn in any order: those that come late get what is left. */
static shape draw_shape(const limits *most, uint64_t *rng) {
    shape of = {1, 1, 0, {1, 1, 1}, 0, 1, 1, 0, 0, 0, 0, 0}, next;
    uint32_t i, first = below(rng, 4);
    of.layers = 1 + below(rng, 3);
    of.silu = below(rng, 2);
    of.wide = below(rng, 2);
    of.flags = below(rng, 4);
    for (i = 0; i < 6; i++) {
        uint32_t which = (first + 5 * i) % 6, tries, size;
        size = which == 0   ? most->features
               : which == 1 ? most->anchors
               : which == 2 ? most->twins
                            : most->width;
        if (most != &LARGE)
            size = 1 + below(rng, size);
        else if (i) /* the first is at its limit */
            size = one_in(rng, 2) ? size : 1 + any_size(rng, 6) % size;
        for (tries = 0; tries < 8; tries++, size = (size + 1) / 2) {
            next = of;
            set_size(&next, which, size);
            if (is_within(&next, most)) {
                of = next;
                break;
            }
        }
    }
    next = of;
    if (one_in(rng, 2)) {
        next.outputs = of.features + below(rng, 9);
        next.rows = any_size(rng, 16) % (SPAN * of.features + 1);
        next.rows = next.rows > 1 ? next.rows : 0;
    }
    if (next.outputs <= MOST_WIDTH && is_within(&next, most))
        of = next;
    next.bins = one_in(rng, 2) ? 1 + any_size(rng, 12) % MOST_BINS : 0;
    next.outputs = of.outputs;
    next.rows = of.rows;
    if (is_within(&next, most))
        of = next;
    if (one_in(rng, 2))
        of.neighbors = 1 + below(rng, one_in(rng, 8) ? MOST_ANCHORS : of.anchors);
    return of;
}

/* Any size and sign, small ones as often as large ones. */
static uint32_t of_any_size(uint64_t *rng) {
    uint32_t number = draw(rng), shift = 1 + below(rng, 62);
    return shift < 32 ? number >> shift : 0 - (number >> (shift - 31));
}

/* Scales of a usual size, levels that ascend, and features in ranges that some queries leave. */
static void temper_intervals(uint8_t *at, uint32_t levels, uint64_t *rng) {
    uint32_t i, level = 0, quantile = 0;
    for (i = 0; i < 3; i++)
        put(at + 4 * i, any_size(rng, 20), 4);
    put(at + 12, 1 + any_size(rng, 24), 4);
    put(at + 20, any_size(rng, 20), 4);
    put(at + 24, below(rng, 65537), 4);
    for (i = 0; i < levels; i++) {
        level += 1 + below(rng, 66);
        quantile += any_size(rng, 18);
        put(at + INTERVALS_HEAD + LEVEL * i, one_in(rng, 8) ? 900 : level, 4);
        put(at + INTERVALS_HEAD + LEVEL * i + 4, quantile, 4);
    }
}

static void temper_domain(uint8_t *at, uint32_t features, uint64_t *rng) {
    for (; features--; at += 6) {
        put(at, 0 - any_size(rng, 15), 2);
        put(at + 2, any_size(rng, 15), 2);
        put(at + 4, one_in(rng, 4) ? 0x8000u : any_size(rng, 15), 2);
    }
}

static void temper_twin(uint8_t *twin, const shape *of, uint64_t *rng) {
    uint32_t d, o;
    for (d = 0; d < of->layers; d++) {
        layer one = layer_of(of, d);
        twin[d] = (uint8_t)(2 + below(rng, 12));
        for (o = 0; o < one.outputs; o++)
            put(twin + one.bias + 4 * o, of_any_size(rng), 4);
    }
}

/* Write what states the sizes of a map and of a target curve. */
static void write_curves(uint8_t *pack, uint32_t size, const shape *of) {
    sections all;
    const section *one;
    uint32_t count = read_table(all, pack, size);
    if (of->outputs && (one = find(all, count, of, MAP))) {
        put(pack + one->at, of->outputs, 2);
        put(pack + one->at + 2, of->rows, 2);
    }
    if (of->bins && (one = find(all, count, of, TARGET_CURVE)))
        put(pack + one->at + 6, of->bins, 2);
}

/* Steps of any size, in reach of the estimates; and a map that does not saturate. */
static void temper_target_curve(uint8_t *at, uint32_t bins, uint64_t *rng) {
    uint32_t value = 0 - any_size(rng, 24), i;
    put(at, of_any_size(rng), 4);
    at[4] = (uint8_t)below(rng, 16);
    for (i = 0; i <= bins; i++) {
        put(at + TARGET_HEAD + 4 * i, value, 4);
        value += 1 + any_size(rng, 14);
    }
}

static void temper_map(uint8_t *map, const shape *of, uint64_t *rng) {
    uint32_t j;
    for (j = 0; j < of->outputs; j++)
        map[MAP_HEAD + of->features + j] = (uint8_t)(6 + below(rng, 8));
}

/* Random bytes make networks that are zero or saturated nearly everywhere, and targets far beyond
 * what the estimates add: make most numbers as large as those of trained networks. */
static void temper(uint8_t *pack, uint32_t size, const shape *of, uint64_t *rng) {
    sections all;
    const section *one;
    uint32_t count = read_table(all, pack, size), i;
    if ((one = find(all, count, of, SCALING)))
        for (i = 0; i < 2 * of->features + 2; i++) {
            uint32_t bits = draw(rng);
            put(pack + one->at + 4 * i, (bits & 0x80000000u) + 0x3A000000u + bits % 0xC000000u, 4);
        }
    if ((one = find(all, count, of, TWINS)))
        for (i = 0; i < of->twins; i++)
            temper_twin(pack + one->at + i * twin_bytes(of), of, rng);
    if ((one = find(all, count, of, ANCHORS)))
        for (i = 1; i <= of->anchors; i++)
            put(pack + one->at + one->length - 4 * i, of_any_size(rng), 4);
    if ((one = find(all, count, of, INTERVALS)))
        temper_intervals(pack + one->at, (one->length - INTERVALS_HEAD) / LEVEL, rng);
    if ((one = find(all, count, of, DOMAIN)))
        temper_domain(pack + one->at, of->features, rng);
    if (of->outputs && (one = find(all, count, of, MAP)))
        temper_map(pack + one->at, of, rng);
    if (of->bins && (one = find(all, count, of, TARGET_CURVE)))
        temper_target_curve(pack + one->at, of->bins, rng);
}

/* A sound pack in `most` bytes; in LARGE_BYTES it is as large as the format allows in some way. */
static uint32_t make_pack(uint8_t *pack, uint32_t most, uint64_t *rng) {
    static const uint32_t others[] = {IDS, METADATA, DOMAIN, DOMAIN, SCHEMA,
                                      0,   0x000C,   0x7FFF, 0x8000, 0xFFFF};
    uint32_t kind = below(rng, 64), count = 0, size, i;
    const limits *within = kind < 58 ? &TINY : kind < 63 ? &SMALL : &MEDIUM;
    sections all;
    shape of;
    of = draw_shape(most < LARGE_BYTES ? within : &LARGE, rng);
    for (i = 0; i < sizeof others / sizeof *others; i++)
        if (one_in(rng, i < 5 ? 3 : 16)) {
            section one = {others[i], 0, 0, 0, 0};
            one.length = below(rng, 32);
            all[count++] = one;
        }
    count = fit(all, count, &of);
    for (i = count - 1; i && one_in(rng, 2); i--)
        swap(all, i, below(rng, i + 1));
    memset(pack, 0, HEADER);
    write_shape(&of, 1 + below(rng, 2), pack);
    size = assemble(pack, most, all, count, pack, 1, rng);
    if (!size)
        return HEADER;
    write_curves(pack, size, &of);
    if (!one_in(rng, 4))
        temper(pack, size, &of, rng);
    repair_values(pack, size, rng);
    repair_file(pack, size);
    return size;
}

#endif
