/* How the fuzzer makes one pack from another, or from random numbers alone: one field takes another
 * value, sections come, go and move, networks change shape. Most results have the right checksums,
 * and about half are valid, so that the code after the checks is reached, too. */

#ifndef FUZZ_MUTATE_H
#define FUZZ_MUTATE_H

#include "fuzz_pack.h"

/* libFuzzer's own mutations, which know nothing of packs. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

/* Room for one more than a table may have. */
typedef section sections[MOST_SECTIONS + 1];

/* Content for new bytes: any; mostly zeros; extremes; or one number repeated, which makes anchors
 * that are equally near. */
static void fill(uint8_t *at, uint32_t count, uint64_t *luck) {
    static const uint8_t extremes[] = {0x80, 0x7F, 0xFF, 0x81, 0x00, 0x01};
    uint32_t style = below(luck, 6), word = draw(luck), i;
    for (i = 0; i < count; i++) {
        uint32_t number = draw(luck);
        if (style == 0)
            at[i] = (uint8_t)(number & 7 ? 0 : number >> 8);
        else if (style == 1)
            at[i] = extremes[number % sizeof extremes];
        else if (style == 2)
            at[i] = (uint8_t)(word >> (i % 4 * 8));
        else
            at[i] = (uint8_t)number;
    }
}

/* Lay out sections after the header in `out`, with their content taken from `from`. Returns the
 * size, or 0 if there is not enough room. */
static uint32_t assemble(uint8_t *out, uint32_t most, const section *all, uint32_t count,
                         const uint8_t *from, uint64_t *luck) {
    uint32_t end = HEADER + ENTRY * count, apart = one_in(luck, 4) ? 3 : 1, i;
    for (i = 0; i <= count; i++) {
        uint32_t start = up(end, 16) + 16 * below(luck, apart);
        uint32_t length = i < count ? all[i].length : 0, kept;
        if (start > most || length > most - start)
            return 0;
        memset(out + end, 0, start - end);
        end = start + length;
        if (i == count)
            break;
        kept = all[i].there < length ? all[i].there : length;
        memcpy(out + start, from + all[i].at, kept);
        fill(out + start + kept, length - kept, luck);
        put(out + HEADER + ENTRY * i, all[i].kind, 2);
        put(out + HEADER + ENTRY * i + 2, all[i].flags, 2);
        put(out + HEADER + ENTRY * i + 4, start, 4);
        put(out + HEADER + ENTRY * i + 8, length, 4);
    }
    put(out + 6, count, 2);
    return end;
}

/* The same in place; the pack stays as it was if it does not fit. */
static uint32_t rebuild(uint8_t *pack, uint32_t size, uint32_t most, const section *all,
                        uint32_t count, uint64_t *luck) {
    uint8_t *old = (uint8_t *)malloc(size);
    uint32_t made;
    if (!old)
        abort();
    memcpy(old, pack, size);
    made = assemble(pack, most, all, count, old, luck);
    if (!made)
        memcpy(pack, old, size);
    free(old);
    return made ? made : size;
}

static int has(const section *all, uint32_t count, uint32_t kind) {
    while (count--)
        if (all[count].kind == kind)
            return 1;
    return 0;
}

/* Make the list right for this shape: each section once, with its length and flag, all that are
 * needed, and no needless curve. Returns how many there are. */
static uint32_t fit(section *all, uint32_t count, const shape *of) {
    uint32_t kept = 0, kind, i;
    for (i = 0; i < count; i++) {
        kind = all[i].kind;
        if (has(all, kept, kind) || (kind == CURVE && !of->silu))
            continue;
        all[kept] = all[i];
        all[kept].flags = kind >= SCALING && kind <= ANCHORS;
        all[kept].length = section_bytes(of, kind, all[i].length);
        kept++;
    }
    for (kind = SCALING; kind <= ANCHORS && kept < MOST_SECTIONS; kind++)
        if (!has(all, kept, kind) && (kind != CURVE || of->silu)) {
            section one = {kind, 1, 0, 0, 0};
            one.length = section_bytes(of, kind, 0);
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

/* 1 .. most: near the old value, or any. */
static uint32_t vary(uint32_t was, uint32_t most, uint64_t *luck) {
    uint32_t now = one_in(luck, 2) ? 1 + below(luck, most) : was + below(luck, 5) - 2;
    return now - 1 < most ? now : was;
}

/* Change one thing about the networks. */
static void vary_shape(shape *of, uint64_t *luck) {
    uint32_t d = below(luck, 3), most = one_in(luck, 4) ? 40 : 18;
    uint32_t width = one_in(luck, 16) ? 200 : most;
    switch (below(luck, 9)) {
    case 0:
        of->features = vary(of->features, width, luck);
        break;
    case 1:
        of->layers = 1 + d;
        for (d = 0; d < of->layers; d++)
            of->hidden[d] = of->hidden[d] ? of->hidden[d] : 1 + below(luck, most);
        break;
    case 2:
        of->silu = !of->silu;
        break;
    case 3:
        of->wide = !of->wide;
        break;
    case 4:
        of->twins = vary(of->twins, 5, luck);
        break;
    case 5:
        of->anchors = vary(of->anchors, 2 * most, luck);
        break;
    case 6:
        of->neighbors = one_in(luck, 2) ? 0 : vary(of->neighbors, of->anchors + 1, luck);
        of->flags = draw(luck);
        break;
    default:
        d %= of->layers;
        of->hidden[d] = vary(of->hidden[d], width, luck);
    }
    if (of->anchors < of->twins)
        of->anchors = of->twins;
}

/* Any size and sign, small ones as often as large ones. */
static uint32_t of_any_size(uint64_t *luck) {
    uint32_t number = draw(luck) >> (1 + below(luck, 31));
    return one_in(luck, 2) ? number : 0 - number;
}

/* Random bytes make networks that are zero or saturated nearly everywhere, and targets far beyond
 * what the estimates add: make most numbers as large as those of trained networks. */
static void temper(uint8_t *pack, uint32_t size, const shape *of, uint64_t *luck) {
    uint8_t *scaling = find(pack, size, of, SCALING), *twin = find(pack, size, of, TWINS);
    uint8_t *targets = find(pack, size, of, ANCHORS);
    uint32_t i, d, o;
    for (i = 0; scaling && i < 2 * of->features + 2; i++)
        put(scaling + 4 * i, (draw(luck) & 0x80000000u) + 0x3A000000u + below(luck, 0xC000000u), 4);
    for (i = 0; twin && i < of->twins; i++, twin += twin_bytes(of))
        for (d = 0; d < of->layers; d++) {
            layer one = layer_of(of, d);
            twin[d] = (uint8_t)(2 + below(luck, 12));
            for (o = 0; o < one.outputs; o++)
                put(twin + one.bias + 4 * o, of_any_size(luck), 4);
        }
    if (targets)
        targets += section_bytes(of, ANCHORS, 0) - 4 * of->anchors;
    for (i = 0; targets && i < of->anchors; i++)
        put(targets + 4 * i, of_any_size(luck), 4);
}

/* A valid pack from random numbers alone. */
static uint32_t renew(uint8_t *pack, uint32_t most, uint64_t *luck) {
    static const uint32_t others[] = {IDS, 6, 0, 7, 0x7FFF, 0x8000, 0xFFFF};
    shape of = {1, 1, 0, {1, 0, 0}, 0, 1, 1, 0, 0};
    uint32_t times = 12 + below(luck, 12), count = 0, size, i;
    sections all;
    while (times--) {
        shape next = of;
        vary_shape(&next, luck);
        if (bytes_of(all, fit(all, 0, &next)) + 512 <= most)
            of = next;
    }
    for (i = 0; i < sizeof others / sizeof *others; i++)
        if (one_in(luck, 8)) {
            section one = {others[i], 0, 0, 0, 0};
            one.length = below(luck, 32);
            all[count++] = one;
        }
    count = fit(all, count, &of);
    for (i = count - 1; i && one_in(luck, 2); i--)
        swap(all, i, below(luck, i + 1));
    memset(pack, 0, HEADER);
    write_shape(&of, pack);
    size = assemble(pack, most, all, count, pack, luck);
    if (!size)
        return HEADER;
    if (!one_in(luck, 4))
        temper(pack, size, &of, luck);
    mend_values(pack, size, luck);
    return size;
}

/* The pack in a different shape, and valid; numbers that fit are kept. */
static uint32_t reshape(uint8_t *pack, uint32_t size, uint32_t most, uint64_t *luck) {
    sections all;
    uint32_t count;
    shape of;
    if (!read_shape(&of, pack))
        return renew(pack, most, luck);
    vary_shape(&of, luck);
    count = fit(all, read_table(all, pack, size), &of);
    if (bytes_of(all, count) > most)
        return size;
    write_shape(&of, pack);
    size = rebuild(pack, size, most, all, count, luck);
    mend_values(pack, size, luck);
    return size;
}

/* Change the sections. */
static uint32_t restructure(uint8_t *pack, uint32_t size, uint32_t most, uint64_t *luck) {
    static const uint32_t kinds[] = {0, SCALING, CURVE, IDS, 6, 7, 0x7FFF, 0x8000, 0xFFFF};
    sections all;
    uint32_t count = read_table(all, pack, size), i = below(luck, count + 1);
    section one = {0, 0, 0, 0, 0};
    if (i == count || one_in(luck, 4)) { /* one more */
        one.kind = kinds[below(luck, sizeof kinds / sizeof *kinds)];
        one.flags = one_in(luck, 4) ? draw(luck) & 3 : 0;
        one.length = below(luck, 100);
        all[count] = one;
        swap(all, i, count++);
    } else if (one_in(luck, 4)) { /* twice */
        all[count++] = all[i];
    } else if (one_in(luck, 4)) { /* not at all */
        all[i] = all[--count];
    } else if (one_in(luck, 4)) { /* another length */
        all[i].length += below(luck, 9) - 4;
    } else { /* elsewhere */
        swap(all, i, below(luck, count));
    }
    return rebuild(pack, size, most, all, count, luck);
}

/* A longer or shorter file, mostly a multiple of 16 bytes. */
static uint32_t resize(uint8_t *pack, uint32_t size, uint32_t most, uint64_t *luck) {
    uint32_t now = below(luck, 4) ? up(below(luck, size + 32), 16) : below(luck, size + 32);
    if (now > most)
        return size;
    if (now > size)
        memset(pack + size, one_in(luck, 4), now - size);
    return now;
}

/* Something in a twin: its head, a weight, a bias, a multiplier, a weight of the output, its end.
 * Returns its place and width. */
static uint32_t pick_in_twin(const shape *of, uint32_t *width, uint64_t *luck) {
    layer one = layer_of(of, below(luck, of->layers)), last = layer_of(of, of->layers - 1);
    uint32_t o = below(luck, one.outputs);
    *width = 2;
    switch (below(luck, 6)) {
    case 0:
        *width = 1;
        return below(luck, 16);
    case 1:
        *width = one.width;
        return one.weights +
               below(luck, one.kernels * one.outputs * one.row) / one.width * one.width;
    case 2:
        *width = 4;
        return one.bias + 4 * o;
    case 3:
        return one.multiplier + 2 * below(luck, up(one.outputs, 2));
    case 4:
        return last.end + 2 * below(luck, up(last.outputs, 4));
    default:
        return twin_bytes(of) - 2 - 2 * below(luck, 8);
    }
}

/* A field of the pack: its place and width. */
static uint32_t pick(const uint8_t *pack, uint32_t size, uint32_t *width, uint64_t *luck) {
    static const uint8_t header[][2] = {
        {0, 4},  {4, 2},  {6, 2},  {8, 4},  {12, 4}, {16, 4}, {20, 2}, {22, 1}, {23, 1}, {24, 2},
        {26, 2}, {28, 2}, {30, 1}, {31, 1}, {32, 2}, {34, 2}, {36, 2}, {38, 2}, {40, 4}, {44, 4}};
    static const uint8_t entry[][2] = {{0, 2}, {2, 2}, {4, 4}, {8, 4}};
    sections all;
    uint32_t count = read_table(all, pack, size), i, k, features;
    shape of;
    if (one_in(luck, 16) || !count) {
        i = below(luck, sizeof header / sizeof *header);
        *width = header[i][1];
        return header[i][0];
    }
    i = below(luck, count);
    if (one_in(luck, 16)) {
        k = below(luck, sizeof entry / sizeof *entry);
        *width = entry[k][1];
        return HEADER + ENTRY * i + entry[k][0];
    }
    *width = all[i].kind == CURVE ? 2 : 4;
    k = all[i].at + below(luck, all[i].length + 4) / *width * *width;
    if (!read_shape(&of, pack) || all[i].length != section_bytes(&of, all[i].kind, 0))
        return k;
    if (all[i].kind == TWINS)
        return all[i].at + below(luck, of.twins) * twin_bytes(&of) + pick_in_twin(&of, width, luck);
    features = up(2 * of.twins, 4) + 2 * of.anchors * up(of.features, 4);
    if (all[i].kind == ANCHORS && k - all[i].at < features) {
        *width = 2;
        if (one_in(luck, 4)) /* how many anchors a twin has */
            return all[i].at + 2 * below(luck, up(of.twins, 2));
    }
    return k;
}

/* Change a field: to an edge, near the old value, by one bit, or to anything. */
static void change(uint8_t *at, uint32_t width, uint64_t *luck) {
    static const uint32_t edges[] = {
        0,          1,          2,          3,          4,          5,          15,
        16,         30,         31,         32,         33,         127,        128,
        255,        256,        257,        1023,       1024,       1025,       4095,
        4096,       4097,       16383,      16384,      32767,      32768,      32769,
        65535,      65536,      65538,      65539,      0x3FFFFFFF, 0x40000000, 0x7F7FFFFF,
        0x7F800000, 0x7FC00000, 0x7FFFFFFF, 0x80000000, 0x00000001, 0x00800000,
    };
    uint32_t value = get(at, width), edge = edges[below(luck, sizeof edges / sizeof *edges)];
    switch (below(luck, 6)) {
    case 0:
        value = edge;
        break;
    case 1:
        value = 0 - edge;
        break;
    case 2:
        value += below(luck, 9) - 4;
        break;
    case 3:
        value ^= (uint32_t)1 << below(luck, 8 * width);
        break;
    case 4:
        value = 0 - value;
        break;
    default:
        value = draw(luck);
    }
    put(at, value, width);
}

/* The largest feature with the sign of a weight: such products make the largest sum. */
static int16_t worst(const uint8_t *weight, uint32_t width) {
    return (int16_t)(get_signed(weight, width) < 0 ? -32767 : 32767);
}

/* Let an anchor make a sum of the first layer as large as possible. */
static void point(uint8_t *pack, uint32_t size, uint64_t *luck) {
    uint8_t *twin, *anchor;
    layer first;
    shape of;
    uint32_t i;
    if (!read_shape(&of, pack) || !(twin = find(pack, size, &of, TWINS)) ||
        !(anchor = find(pack, size, &of, ANCHORS)))
        return;
    first = layer_of(&of, 0);
    twin += below(luck, of.twins) * twin_bytes(&of) + first.weights;
    twin += below(luck, 2 * first.outputs) * first.row;
    anchor += up(2 * of.twins, 4) + below(luck, of.anchors) * 2 * up(of.features, 4);
    for (i = 0; i < of.features; i++)
        put(anchor + 2 * i, (uint32_t)worst(twin + i * first.width, first.width), 2);
}

/* Replace a pack by a mutated one. Returns its size. */
static uint32_t mutate(uint8_t *pack, uint32_t size, uint32_t most, uint64_t *luck) {
    uint32_t what = size < HEADER ? 0 : below(luck, 20), times = 1 + below(luck, 4);
    if (what == 0 && most >= 1024)
        size = renew(pack, most, luck);
    else if (what <= 2)
        size = (uint32_t)LLVMFuzzerMutate(pack, size, most) & (one_in(luck, 4) ? ~0u : ~15u);
    else if (what == 3)
        size = resize(pack, size, most, luck);
    else if (what <= 5)
        size = restructure(pack, size, most, luck);
    else if (what <= 8)
        size = reshape(pack, size, most, luck);
    else if (what == 9)
        point(pack, size, luck);
    else
        while (times--) {
            uint32_t width, at = pick(pack, size, &width, luck);
            if (at <= size && width <= size - at)
                change(pack + at, width, luck);
        }
    if (size >= HEADER && one_in(luck, 2))
        mend_values(pack, size, luck);
    if (size >= HEADER && !one_in(luck, 16))
        mend_file(pack, size);
    return size;
}

#endif
