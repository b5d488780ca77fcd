/* A device at work with an open model: it predicts from floats, watches, learns and keeps what it
 * has learnt. Whatever it measures, all stays within its memory, and what it predicts is what the
 * integers say. */

#ifndef FUZZ_DEVICE_H
#define FUZZ_DEVICE_H

#include "fuzz_predict.h"
#include "fuzz_storage.h"
#include "twin_watch.h"

/* (x - offset) * gain as FORMAT.md rounds it. A double holds what a float does, and its halves. */
static int16_t quantise(float x, const uint8_t *scaling) {
    volatile float difference = x - float_of(get(scaling, 4));
    volatile float product = difference * float_of(get(scaling + 4, 4));
    double t = product;
    if (t != t)
        return INT16_MIN;
    t = t > 32767 ? 32767 : t < -32767 ? -32767 : t;
    return (int16_t)(t < 0 ? t - 0.5 : t + 0.5);
}

/* Any float: an edge, a usual one, one whose integer is not clamped, seldom NaN. */
static float draw_float(const uint8_t *scaling, uint64_t *rng) {
    static const uint32_t edges[] = {0x7F800000, 0xFF800000, 0x7F7FFFFF, 0xFF7FFFFF,
                                     0,          0x80000000, 1,          0x3F800000};
    uint32_t bits = draw(rng), style = below(rng, 32);
    if (style == 0)
        return float_of(0x7F800001u + bits % 0x7FFFFF + (bits & 0x80000000u));
    if (style < 6)
        return float_of(edges[bits % 8]);
    if (style < 16)
        return float_of((bits & 0x8FFFFFFFu) | 0x30000000u);
    return float_of(get(scaling, 4)) +
           (float)((int32_t)(bits % 80000) - 40000) / float_of(get(scaling + 4, 4));
}

static void draw_floats(const twin_model *model, float *x, uint64_t *rng) {
    uint32_t i;
    for (i = 0; i < model->features; i++)
        x[i] = draw_float(model->scaling + 8 * i, rng);
}

static float in_units(const twin_model *model, int32_t number) {
    twin_flash target = model->scaling + 8u * model->features;
    volatile float product = (float)on_curve(model, number) * float_of(get(target + 4, 4));
    volatile float sum = product + float_of(get(target, 4));
    return sum;
}

static float distance_in_units(const twin_model *model, int32_t mean, uint32_t number,
                               uint32_t parts) {
    volatile float product, quotient;
    if (model->target_curve) {
        int64_t low = (int64_t)mean - number / parts, high = (int64_t)mean + number / parts;
        number = (uint32_t)on_curve(model, high > INT32_MAX ? INT32_MAX : high) -
                 (uint32_t)on_curve(model, low < INT32_MIN ? INT32_MIN : low);
        parts = 2;
    }
    product = (float)number * float_of(get(model->scaling + 8u * model->features + 4, 4));
    quotient = product / (float)parts;
    return quotient;
}

/* Whether floats are those of the integers. */
static void check_floats(const twin_model *model, const twin_prediction *out, const twin_raw *raw) {
    CHECK(bits_of(out->mean) == bits_of(in_units(model, raw->mean)));
    CHECK(bits_of(out->spread) ==
          bits_of(distance_in_units(model, raw->mean, raw->root, raw->count)));
    CHECK(out->intervals == raw->intervals && out->points == raw->points);
    CHECK(out->outside == raw->outside && out->missing == raw->missing);
    if (raw->intervals) {
        CHECK(bits_of(out->scale) == bits_of(distance_in_units(model, raw->mean, raw->scale, 16)));
        CHECK(bits_of(out->low) == bits_of(in_units(model, raw->low)));
        CHECK(bits_of(out->high) == bits_of(in_units(model, raw->high)));
    } else {
        CHECK(out->scale != out->scale && out->low != out->low && out->high != out->high);
    }
}

/* What a device has while it works. */
typedef struct bench {
    twin_model *model;
    memory scratch;
    float *x;
    int16_t *query; /* the same in integers */
} bench;

/* Predict from the floats and from the integers; returns whether that was possible. */
static int predict_floats(bench *on, twin_prediction *out, twin_raw *raw) {
    uint32_t i;
    twin_status status;
    for (i = 0; i < on->model->features; i++)
        on->query[i] = quantise(on->x[i], on->model->scaling + 8 * i);
    status = twin_predict_raw(on->model, on->scratch.start, on->scratch.size, on->query, raw, 0);
    CHECK(status == TWIN_OK || status == TWIN_ERROR_QUERY);
    CHECK(twin_predict(on->model, on->scratch.start, on->scratch.size, on->x, out, 0) == status);
    if (status) {
        check_refused(raw);
        CHECK(out->mean != out->mean && out->spread != out->spread && !out->intervals);
        return 0;
    }
    check_floats(on->model, out, raw);
    return 1;
}

/* One of the pack's levels, or any. */
static uint16_t draw_level(const twin_model *model, uint64_t *rng) {
    if (!model->intervals || one_in(rng, 4))
        return (uint16_t)below(rng, 1100);
    return (uint16_t)get(
        model->intervals + INTERVALS_HEAD + LEVEL * below(rng, get(model->intervals + 28, 4)), 4);
}

/* A level that is selected is one of the pack; one that is refused changes nothing. */
static void try_coverage(twin_model *model, uint64_t *rng) {
    uint32_t i, quantile = model->quantile;
    uint16_t level = draw_level(model, rng);
    twin_status status = twin_set_coverage(model, level);
    CHECK((level - 1u < 999 && status == TWIN_OK) ||
          (status == TWIN_ERROR_LEVEL && model->quantile == quantile));
    for (i = 0; !status; i++) {
        twin_flash at = model->intervals + INTERVALS_HEAD + LEVEL * i;
        CHECK(i < get(model->intervals + 28, 4));
        if (get(at, 4) == level && get(at + 4, 4) == model->quantile)
            break;
    }
}

static void check_watch(const twin_watch *watch) {
    uint32_t i;
    CHECK(watch->covered <= watch->targets && watch->outside <= watch->predictions);
    CHECK(watch->targets <= 65535 && watch->predictions <= 65535);
    CHECK(watch->alpha >= -1000 && watch->alpha <= 41000);
    CHECK(twin_watch_coverage(watch) <= 1000 && twin_watch_outside(watch) <= 1000);
    CHECK(twin_watch_scale(watch) <= 64000);
    for (i = 0; i < 5; i++)
        CHECK(watch->sums[i] <= 32 * 1024);
}

/* Targets of any size; predictions as they were, or any other. */
static void watch_some(twin_watch *watch, twin_model *model, twin_prediction out, twin_raw raw,
                       uint64_t *rng) {
    uint32_t times = 1 + any_size(rng, one_in(rng, 64) ? 9 : 3);
    while (times--) {
        uint32_t style = below(rng, 8), bits = draw(rng);
        if (style == 7)
            raw.scale = any_size(rng, 31);
        if (style & 1) {
            float near = out.mean + out.scale * (float)((int32_t)(bits % 64) - 32) / 8;
            twin_watch_add_prediction(watch, model, &out);
            twin_watch_add_target(watch, model, &out, style < 4 ? near : float_of(bits));
        } else {
            uint32_t near = (uint32_t)raw.mean + bits % 1024 - 512;
            twin_watch_add_prediction_raw(watch, model, &raw);
            twin_watch_add_target_raw(watch, model, &raw, (int32_t)(style < 4 ? near : bits));
        }
    }
    if (one_in(rng, 4))
        twin_watch_clear(watch, twin_watch_flags(watch) & draw(rng));
}

/* A watch that is saved is restored; whatever else has the right checksum does no harm. */
static void try_saved_watch(twin_watch *watch, twin_model *model, const twin_prediction *out,
                            const twin_raw *raw, uint64_t *rng) {
    uint8_t bytes[TWIN_WATCH_BYTES];
    twin_watch again;
    twin_model other = *model;
    twin_watch_save(watch, bytes);
    memset(&again, 0xA5, sizeof again);
    CHECK(twin_watch_restore(&again, &other, bytes) == TWIN_OK);
    CHECK(!memcmp(&again, watch, sizeof again));
    CHECK(!watch->targets || other.quantile == model->quantile);
    change(bytes + below(rng, 8), 1, rng);
    CHECK(twin_watch_restore(&again, &other, bytes) <= TWIN_OK);
    CHECK(!memcmp(&again, watch, sizeof again));
    twin_watch_save(watch, bytes);
    fill(bytes + 8, below(rng, TWIN_WATCH_BYTES - 11), rng);
    if (!one_in(rng, 4))
        put(bytes + 8, below(rng, 1000), 4);
    put(bytes + TWIN_WATCH_BYTES - 4, ~crc_of(bytes, TWIN_WATCH_BYTES - 4), 4);
    CHECK(twin_watch_restore(&again, &other, bytes) ==
          (get(bytes + 8, 4) < 1000 ? TWIN_OK : TWIN_ERROR_LEVEL));
    watch_some(&again, &other, *out, *raw, rng);
}

static void try_watch(bench *on, uint64_t *rng) {
    uint16_t level = draw_level(on->model, rng);
    twin_prediction out;
    twin_raw raw;
    twin_watch watch;
    twin_status status;
    memset(&watch, 0xA5, sizeof watch);
    status = twin_watch_begin(&watch, on->model, level);
    CHECK(status == TWIN_OK || status == TWIN_ERROR_LEVEL);
    if (!predict_floats(on, &out, &raw))
        return;
    if (status) { /* it does nothing */
        static const twin_watch none;
        watch_some(&watch, on->model, out, raw, rng);
        CHECK(!memcmp(&watch, &none, sizeof none));
        return;
    }
    watch_some(&watch, on->model, out, raw, rng);
    check_watch(&watch);
    try_saved_watch(&watch, on->model, &out, &raw, rng);
    ADD(watched, 1);
}

/* Learn, forget and predict. Returns whether all was stored. */
static twin_status use_store(bench *on, opened *all, uint64_t *rng) {
    uint32_t times = 1 + below(rng, 4), points;
    twin_status status = TWIN_OK;
    twin_raw raw;
    while (times-- && !status) {
        uint32_t bits = draw(rng), count = all->store.count;
        float target = bits & 7 ? in_units(on->model, (int32_t)(bits >> 12)) : float_of(bits);
        draw_floats(on->model, on->x, rng);
        status = twin_learn(&all->store, all->scratch.start, all->scratch.size, on->x, target,
                            bits & 15);
        CHECK(status != TWIN_MORE && all->store.count == count + !status);
        ADD(learnt, !status);
        if (status == TWIN_ERROR_FULL)
            status = twin_keep_latest(&all->store, (uint16_t)below(rng, 3));
        else if (status == TWIN_ERROR_QUERY || status == TWIN_ERROR_TARGET)
            status = TWIN_OK;
    }
    points = all->store.count;
    if (!twin_predict_adapted_raw(&all->store, all->scratch.start, all->scratch.size, on->query,
                                  &raw)) {
        CHECK(raw.low <= raw.mean && raw.mean <= raw.high && raw.points <= points);
        ADD(adapted, raw.points != 0);
    }
    return status;
}

/* Predict with what was learnt, from integers and from floats. */
static twin_status predict_adapted(bench *on, opened *all, twin_raw *raw) {
    twin_prediction out;
    twin_status status = twin_predict_adapted_raw(&all->store, all->scratch.start,
                                                  all->scratch.size, on->query, raw);
    CHECK(twin_predict_adapted(&all->store, all->scratch.start, all->scratch.size, on->x, &out) ==
          status);
    if (!status)
        check_floats(on->model, &out, raw);
    return status;
}

/* An empty store predicts what the pack does; one that was learnt is there when it is opened
 * again. */
static void try_learning(bench *on, const uint8_t *pack, uint64_t *rng) {
    uint32_t unit = (uint32_t)1 << below(rng, 9), slot = slot_bytes(on->model, unit);
    uint32_t most = 1 + below(rng, 4), i;
    twin_prediction out;
    twin_raw plain, before, after;
    twin_status status;
    opened all;
    device one;
    int possible;
    describe_storage(&one, unit, slot * (HEAD_SLOTS + 1 + below(rng, 4)), 0);
    one.flags = below(rng, 4) ? below(rng, 2) * ZEROS : below(rng, 8);
    one.rng = draw(rng);
    erase_all(&one);
    status = open_store(&all, on->model, pack, &one, (uint16_t)most);
    if (!on->model->intervals) {
        CHECK(status == TWIN_ERROR_STORE);
    } else if (!status) {
        draw_floats(on->model, on->x, rng);
        possible = predict_floats(on, &out, &plain);
        CHECK(predict_adapted(on, &all, &before) == (possible ? TWIN_OK : TWIN_ERROR_QUERY));
        CHECK(!possible || is_same(&plain, &before));
        status = use_store(on, &all, rng);
        draw_floats(on->model, on->x, rng);
        for (i = 0; i < on->model->features; i++)
            on->query[i] = quantise(on->x[i], on->model->scaling + 8 * i);
        possible = !predict_adapted(on, &all, &before);
        i = all.store.count;
        if (is_reliable(&one)) {
            CHECK(!status || status == TWIN_ERROR_FULL);
            close_store(&all);
            status = open_store(&all, on->model, pack, &one, (uint16_t)most);
            CHECK(status == TWIN_OK && all.store.count == i);
            CHECK(predict_adapted(on, &all, &after) == (possible ? TWIN_OK : TWIN_ERROR_QUERY));
            CHECK(!possible || is_same(&before, &after));
        }
    }
    close_store(&all);
    free(one.cells);
}

/* A model at work on a device, with any kernel. */
static void try_device(twin_model *model, const uint8_t *pack, uint64_t *rng) {
    memory prepared = {0, 0, 0};
    twin_prediction out;
    twin_raw raw;
    bench on;
    (void)twin_set_kernel(model, below(rng, 6)); /* there may be fewer */
    if (is_to_prepare(model, rng))
        prepared = prepare(model, rng);
    on.model = model;
    on.scratch = allocate_anywhere(twin_scratch_size(model), rng);
    on.x = (float *)allocate(sizeof(float) * model->features);
    on.query = (int16_t *)allocate(sizeof(int16_t) * model->features);
    draw_floats(model, on.x, rng);
    ADD(refused_queries, !predict_floats(&on, &out, &raw));
    try_coverage(model, rng);
    if (one_in(rng, 2))
        try_watch(&on, rng);
    if (one_in(rng, 4))
        try_learning(&on, pack, rng);
    free(on.query);
    free(on.x);
    free(on.scratch.block);
    free(prepared.block);
}

#endif
