/* How the fuzzer makes one pack from another: one field takes another value, sections come, go and
 * move, networks change shape. Most results have the right checksums, and about half are sound, so
 * that the code after the checks is reached, too. */

#ifndef FUZZ_MUTATE_H
#define FUZZ_MUTATE_H

#include "fuzz_make.h"

/* Lay out sections in place; the pack stays as it was if they do not fit. */
static uint32_t rebuild(uint8_t *pack, uint32_t size, uint32_t most, const section *all,
                        uint32_t count, uint32_t gaps, uint64_t *rng) {
    uint8_t *old = (uint8_t *)allocate(size);
    uint32_t made;
    memcpy(old, pack, size);
    made = assemble(pack, most, all, count, old, gaps, rng);
    if (!made)
        memcpy(pack, old, size);
    free(old);
    return made ? made : size;
}

/* Change one thing about the networks. */
static void vary_shape(shape *of, uint64_t *rng) {
    const limits *most = one_in(rng, 64) ? &MEDIUM : one_in(rng, 8) ? &SMALL : &TINY;
    shape other = draw_shape(most, rng), old = *of;
    uint32_t what = below(rng, 12), d;
    if (what < 6) {
        set_size(of, what,
                 what == 0   ? other.features
                 : what == 1 ? other.anchors
                 : what == 2 ? other.twins
                             : other.hidden[0]);
    } else if (what == 6) {
        of->layers = other.layers;
        for (d = 0; d < of->layers; d++)
            of->hidden[d] = of->hidden[d] ? of->hidden[d] : other.hidden[d];
    } else if (what == 7) {
        of->silu = !of->silu;
    } else if (what == 8) {
        of->wide = !of->wide;
    } else if (what == 9) {
        of->outputs = other.outputs ? of->features + other.outputs - other.features : 0;
        of->rows = can_share(other.rows, of->features) ? other.rows : 0;
        if (of->outputs > MOST_WIDTH)
            of->outputs = of->rows = 0;
    } else if (what == 10) {
        of->bins = other.bins;
    } else {
        of->neighbors = other.neighbors;
        of->flags = other.flags;
    }
    if (!is_within(of, &MEDIUM))
        *of = old;
}

/* The pack in a different shape, and sound; numbers that fit are kept. */
static uint32_t reshape(uint8_t *pack, uint32_t size, uint32_t most, uint64_t *rng) {
    sections all;
    uint32_t count;
    shape of;
    if (!read_shape(&of, pack, size))
        return make_pack(pack, most, rng);
    while (!can_share(of.rows, of.features))
        of.rows /= 2;
    vary_shape(&of, rng);
    count = fit(all, read_table(all, pack, size), &of);
    if (bytes_of(all, count) > most)
        return size;
    write_shape(&of, 1 + below(rng, 2), pack);
    size = rebuild(pack, size, most, all, count, 1, rng);
    write_curves(pack, size, &of);
    repair_values(pack, size, rng);
    return size;
}

/* Change the sections. */
static uint32_t restructure(uint8_t *pack, uint32_t size, uint32_t most, uint64_t *rng) {
    static const uint32_t kinds[] = {0,         SCALING, CURVE,  IDS,   METADATA,
                                     INTERVALS, DOMAIN,  SCHEMA, MAP,   TARGET_CURVE,
                                     12,        0x7FFF,  0x8000, 0xFFFF};
    sections all;
    uint32_t count = read_table(all, pack, size), i = below(rng, count + 1);
    section one = {0, 0, 0, 0, 0};
    if (i == count || one_in(rng, 4)) { /* one more */
        one.kind = kinds[below(rng, sizeof kinds / sizeof *kinds)];
        one.flags = one_in(rng, 4) ? draw(rng) & 3 : 0;
        one.length = below(rng, 100);
        all[count] = one;
        swap(all, i, count++);
    } else if (one_in(rng, 4)) { /* twice */
        all[count++] = all[i];
    } else if (one_in(rng, 4)) { /* not at all */
        all[i] = all[--count];
    } else if (one_in(rng, 4)) { /* another length */
        all[i].length += below(rng, 9) - 4;
    } else { /* elsewhere */
        swap(all, i, below(rng, count));
    }
    return rebuild(pack, size, most, all, count, one_in(rng, 8) ? 3 : 1, rng);
}

/* A longer or shorter file, mostly a multiple of 16 bytes. */
static uint32_t resize(uint8_t *pack, uint32_t size, uint32_t most, uint64_t *rng) {
    uint32_t now = below(rng, 4) ? up(below(rng, size + 32), 16) : below(rng, size + 32);
    if (now > most)
        return size;
    if (now > size)
        memset(pack + size, one_in(rng, 4), now - size);
    return now;
}

/* Something in a twin: its head, a weight, a bias, a multiplier, a weight of the outputs or their
 * bias, its end. Returns its place and width. */
static uint32_t pick_in_twin(const shape *of, uint32_t *width, uint64_t *rng) {
    layer one = layer_of(of, below(rng, of->layers));
    outputs last = outputs_of(of);
    *width = 2;
    switch (below(rng, 7)) {
    case 0:
        *width = 1;
        return below(rng, 16);
    case 1:
        *width = one.width;
        return one.weights +
               below(rng, one.kernels * one.outputs * one.row) / one.width * one.width;
    case 2:
        *width = 4;
        return one.bias + 4 * below(rng, one.outputs);
    case 3:
        return one.multiplier + 2 * below(rng, up(one.outputs, 2));
    case 4:
        *width = 4;
        return of->flags & SCALED && one_in(rng, 2) ? last.weights - 4 : 12;
    case 5:
        return last.weights + 2 * below(rng, (last.end - last.weights) / 2);
    default:
        return twin_bytes(of) - 2 - 2 * below(rng, 8);
    }
}

/* A field of the pack: its place and width. */
static uint32_t pick(const uint8_t *pack, uint32_t size, uint32_t *width, uint64_t *rng) {
    static const uint8_t header[][2] = {
        {0, 4},  {4, 2},  {6, 2},  {8, 4},  {12, 4}, {16, 4}, {20, 2}, {22, 1}, {23, 1}, {24, 2},
        {26, 2}, {28, 2}, {30, 1}, {31, 1}, {32, 2}, {34, 2}, {36, 2}, {38, 2}, {40, 4}, {44, 4}};
    static const uint8_t entry[][2] = {{0, 2}, {2, 2}, {4, 4}, {8, 4}};
    sections all;
    uint32_t count = read_table(all, pack, size), i, k, features;
    shape of;
    if (one_in(rng, 16) || !count) {
        i = below(rng, sizeof header / sizeof *header);
        *width = header[i][1];
        return header[i][0];
    }
    i = below(rng, count);
    if (one_in(rng, 16)) {
        k = below(rng, sizeof entry / sizeof *entry);
        *width = entry[k][1];
        return HEADER + ENTRY * i + entry[k][0];
    }
    *width = all[i].kind == MAP                              ? 1 + below(rng, 2)
             : all[i].kind == CURVE || all[i].kind == DOMAIN ? 2
                                                             : 4;
    k = all[i].at + below(rng, all[i].length + 4) / *width * *width;
    if (!read_shape(&of, pack, size) ||
        all[i].length != section_bytes(&of, all[i].kind, all[i].length))
        return k;
    if (all[i].kind == TWINS) {
        k = all[i].at + below(rng, of.twins) * twin_bytes(&of);
        return k + pick_in_twin(&of, width, rng);
    }
    features = up(2 * of.twins, 4) + 2 * of.anchors * up(inputs_of(&of), 4);
    if (all[i].kind == ANCHORS && k - all[i].at < features) {
        *width = 2;
        if (one_in(rng, 4)) /* how many anchors a twin has */
            return all[i].at + 2 * below(rng, up(of.twins, 2));
    }
    return k;
}

/* Change a field: to an edge, near the old value, by one bit, or to anything. */
static void change(uint8_t *at, uint32_t width, uint64_t *rng) {
    static const uint32_t edges[] = {
        0,          1,          2,          3,          4,          5,          15,
        16,         30,         31,         32,         33,         127,        128,
        255,        256,        257,        1023,       1024,       1025,       4095,
        4096,       4097,       16383,      16384,      32767,      32768,      32769,
        65535,      65536,      65538,      65539,      0x3FFFFFFF, 0x40000000, 0x7F7FFFFF,
        0x7F800000, 0x7FC00000, 0x7FFFFFFF, 0x80000000, 0x00000001, 0x00800000,
    };
    uint32_t value = get(at, width), edge = edges[below(rng, sizeof edges / sizeof *edges)];
    switch (below(rng, 6)) {
    case 0:
        value = edge;
        break;
    case 1:
        value = 0 - edge;
        break;
    case 2:
        value += below(rng, 9) - 4;
        break;
    case 3:
        value ^= (uint32_t)1 << below(rng, 8 * width);
        break;
    case 4:
        value = 0 - value;
        break;
    default:
        value = draw(rng);
    }
    put(at, value, width);
}

/* The largest feature with the sign of a weight: such products make the largest sum. */
static int16_t worst(const uint8_t *weight, uint32_t width) {
    return (int16_t)(get_signed(weight, width) < 0 ? -32767 : 32767);
}

/* Let an anchor make a sum of the first layer as large as possible. */
static void point(uint8_t *pack, uint32_t size, uint64_t *rng) {
    sections all;
    const section *twins, *anchors;
    uint32_t count = read_table(all, pack, size), at, i;
    const uint8_t *row;
    layer first;
    shape of;
    if (!read_shape(&of, pack, size) || !(twins = find(all, count, &of, TWINS)) ||
        !(anchors = find(all, count, &of, ANCHORS)))
        return;
    first = layer_of(&of, 0);
    row = pack + twins->at + below(rng, of.twins) * twin_bytes(&of) + first.weights;
    row += below(rng, 2 * first.outputs) * first.row;
    at = anchors->at + up(2 * of.twins, 4) + below(rng, of.anchors) * 2 * up(first.inputs, 4);
    for (i = 0; i < first.inputs; i++)
        put(pack + at + 2 * i, (uint32_t)worst(row + i * first.width, first.width), 2);
}

/* Replace a pack by a mutated one. Returns its size. */
static uint32_t mutate(uint8_t *pack, uint32_t size, uint32_t most, uint64_t *rng) {
    uint32_t what = size < HEADER ? 0 : below(rng, 20), times = 1 + below(rng, 4);
    if (what == 0 && most >= USUAL_BYTES)
        return make_pack(pack, most, rng);
    if (what <= 2)
        size = (uint32_t)LLVMFuzzerMutate(pack, size, most) & (one_in(rng, 4) ? ~0u : ~15u);
    else if (what == 3)
        size = resize(pack, size, most, rng);
    else if (what <= 5)
        size = restructure(pack, size, most, rng);
    else if (what <= 8)
        size = reshape(pack, size, most, rng);
    else if (what == 9)
        point(pack, size, rng);
    else
        while (times--) {
            uint32_t width, at = pick(pack, size, &width, rng);
            if (at <= size && width <= size - at)
                change(pack + at, width, rng);
        }
    if (size >= HEADER && one_in(rng, 2))
        repair_values(pack, size, rng);
    if (size >= HEADER && !one_in(rng, 16))
        repair_file(pack, size);
    return size;
}

#endif
