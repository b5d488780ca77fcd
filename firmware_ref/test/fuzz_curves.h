/* Input maps and target curves for the fuzzer: how to repair them, and what they make of numbers,
 * as plainly as FORMAT.md says it. */

#ifndef FUZZ_CURVES_H
#define FUZZ_CURVES_H

#include "fuzz.h"
#include "twin.h"

enum { MOST_MAP_SHIFT = 24, MOST_BINS = 4096, MAP_HEAD = 4, TARGET_HEAD = 8, SPAN = 256 };

static inline uint32_t map_knots(uint32_t features, uint32_t inputs) {
    return up(MAP_HEAD + features + inputs, 4);
}

static inline uint32_t map_bytes(uint32_t features, uint32_t inputs, uint32_t rows) {
    return map_knots(features, inputs) + up(2 * rows, 4) + rows * inputs;
}

/* Whether so many features can have so many rows: none, or two or more each. */
static inline int can_share(uint32_t rows, uint32_t features) {
    return !rows || (rows > 1 && rows <= SPAN * features);
}

/* A number between two that leaves room for `left` larger ones. */
static inline int64_t repair_ascending(int64_t number, int64_t before, int64_t most,
                                       uint32_t left) {
    int64_t low = before + 1, high = most - left;
    if (number >= low && number <= high)
        return number;
    return low + (number & INT32_MAX) % ((high - low) / (left + 1) + 1);
}

static inline void repair_knots(uint8_t *at, uint32_t count) {
    int64_t before = -32768;
    for (; count--; at += 2) {
        before = repair_ascending(get_signed(at, 2), before, 32767, count);
        put(at, (uint32_t)before, 2);
    }
}

static inline void repair_map(uint8_t *map, uint32_t features, uint32_t inputs, uint32_t rows) {
    uint8_t *bins = map + MAP_HEAD, *shifts = bins + features, *knots;
    uint32_t left = rows, i;
    knots = map + map_knots(features, inputs);
    if (!can_share(rows, features))
        return;
    for (i = 0; i < features; i++) {
        uint32_t of = bins[i] ? bins[i] + 1u : 0;
        while (of == 1 || of > left || !can_share(left - of, features - i - 1))
            of = (of + 1) % (SPAN + 1);
        bins[i] = (uint8_t)(of ? of - 1 : 0);
        repair_knots(knots + 2 * (rows - left), of);
        left -= of;
    }
    for (i = 0; i < inputs; i++)
        if (shifts[i] - 1u >= MOST_MAP_SHIFT)
            shifts[i] = (uint8_t)(1 + shifts[i] % MOST_MAP_SHIFT);
    memset(shifts + inputs, 0, (size_t)(knots - shifts) - inputs);
    memset(knots + 2 * rows, 0, up(2 * rows, 4) - 2 * rows);
}

static inline void repair_target_curve(uint8_t *at) {
    int32_t first = get_signed(at, 4);
    uint32_t left = get(at + 6, 2);
    int64_t before = -((int64_t)1 << 30);
    if (magnitude(first) >> 30)
        first %= 1 << 30;
    put(at, (uint32_t)first, 4);
    if (at[4] > MOST_MAP_SHIFT)
        at[4] %= MOST_MAP_SHIFT + 1;
    while (((int64_t)left << at[4]) + first > INT32_MAX)
        at[4]--;
    at[5] = 0;
    for (at += TARGET_HEAD;; at += 4) {
        before = repair_ascending(get_signed(at, 4), before, (1 << 30) - 1, left);
        put(at, (uint32_t)before, 4);
        if (!left--)
            break;
    }
}

/* What the twins take: for each of these numbers all features in turn, knot by knot. */
static inline void map_query(const twin_model *model, const int16_t *query, int16_t *taken) {
    twin_flash map = model->map ? model->map - MAP_HEAD : 0;
    uint32_t j, i, k;
    for (j = 0; !map && j < model->features; j++)
        taken[j] = query[j];
    for (j = 0; map && j < model->inputs; j++) {
        twin_flash knots = map + map_knots(model->features, model->inputs);
        twin_flash table = knots + up(2 * get(map + 2, 2), 4);
        uint32_t shift = map[MAP_HEAD + model->features + j];
        int64_t sum = (int64_t)1 << shift >> 1;
        for (i = 0; i < model->features; i++) {
            uint32_t bins = map[MAP_HEAD + i];
            for (k = 0; bins && k <= bins; k++, knots += 2, table += model->inputs) {
                int64_t here = get_signed(knots, 2), q = query[i], share;
                int64_t below_it = k ? get_signed(knots - 2, 2) : here;
                int64_t above_it = k < bins ? get_signed(knots + 2, 2) : here;
                if (q <= below_it || (k == 0 && q <= here))
                    share = k ? 0 : 16384;
                else if (q >= above_it || (k == bins && q >= here))
                    share = k < bins ? 0 : 16384;
                else if (q < here)
                    share = (q - below_it) * 16384 / (here - below_it);
                else
                    share = 16384 - (q - here) * 16384 / (above_it - here);
                sum += share * get_signed(table + j, 1);
            }
        }
        sum >>= shift;
        sum += j < model->features ? query[j] : 0;
        taken[j] = (int16_t)(sum > 32767 ? 32767 : sum < -32767 ? -32767 : sum);
    }
}

/* An estimate on the target curve. */
static inline int32_t on_curve(const twin_model *model, int64_t estimate) {
    twin_flash at = model->target_curve;
    int64_t bins, off, low;
    if (!at)
        return (int32_t)estimate;
    bins = get(at + 6, 2);
    off = estimate - get_signed(at, 4);
    if (off <= 0)
        return get_signed(at + TARGET_HEAD, 4);
    if (off >> at[4] >= bins)
        return get_signed(at + TARGET_HEAD + 4 * bins, 4);
    at += TARGET_HEAD + 4 * (off >> model->target_curve[4]);
    low = get_signed(at, 4);
    off &= ((int64_t)1 << model->target_curve[4]) - 1;
    return (int32_t)(low + ((get_signed(at + 4, 4) - low) * off >> model->target_curve[4]));
}

#endif
