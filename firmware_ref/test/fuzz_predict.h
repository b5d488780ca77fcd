/* Predictions of an open model: every kernel of this processor, prepared or not, in one go or in
 * steps, must compute the bits of the portable one, within exactly as much memory as it asks for;
 * and these must be what FORMAT.md makes of the estimates. */

#ifndef FUZZ_PREDICT_H
#define FUZZ_PREDICT_H

#include "fuzz_mutate.h"
#include "twin_host.h"

#if !TWIN_HOST
static const char *twin_kernel_name(const twin_model *model, unsigned number) {
    return model->kernel && !number ? "portable" : 0;
}
static twin_status twin_set_kernel(twin_model *model, unsigned number) {
    return model->kernel ? (number ? TWIN_ERROR_UNSUPPORTED : TWIN_OK) : TWIN_ERROR_MODEL;
}
static uint32_t twin_prepared_size(const twin_model *model) {
    (void)model;
    return 0;
}
static twin_status twin_prepare(twin_model *model, void *memory, uint32_t size) {
    (void)memory;
    (void)size;
    return model->kernel ? TWIN_ERROR_UNSUPPORTED : TWIN_ERROR_MODEL;
}
#endif

/* Kernels by name, and how many predictions they made, as they are and prepared. */
enum { KERNELS = 8 };
static const char *kernel_names[KERNELS];
static unsigned long long kernel_runs[2][KERNELS];

static void count_kernel(const char *name, int prepared) {
    unsigned i = 0;
    while (i < KERNELS - 1 && kernel_names[i] && strcmp(kernel_names[i], name) != 0)
        i++;
    kernel_names[i] = name;
    kernel_runs[prepared][i]++;
}

static void print_kernels(void) {
    unsigned kernels = 0;
    while (kernels < KERNELS && kernel_names[kernels])
        kernels++;
    print_numbers("kernels", kernel_names, kernel_runs[0], kernels);
    (void)printf(", ");
    print_numbers("prepared", kernel_names, kernel_runs[1], kernels);
}

/* A query, and what it should be answered with: all estimates, in the order of the anchors. */
typedef struct question {
    int16_t *query;
    int16_t *filled; /* with replacements for what is missing */
    int16_t *taken;  /* by the twins */
    int refused;
    uint32_t outside, missing;
} question;

/* Fill in what is missing, and find what is outside. */
static void look_up(const twin_model *model, question *of) {
    uint32_t i;
    of->refused = 0;
    of->outside = of->missing = 0;
    for (i = 0; i < model->features; i++) {
        uint32_t bit = (uint32_t)1 << (i < 31 ? i : 31);
        twin_flash range = model->domain ? model->domain + 6 * i : 0;
        int32_t q = of->query[i];
        if (q == INT16_MIN && range) {
            q = get_signed(range + 4, 2);
            of->missing |= bit;
        } else if (range && (q < get_signed(range, 2) || q > get_signed(range + 2, 2))) {
            of->outside |= bit;
        }
        of->filled[i] = (int16_t)q;
        of->refused |= q == INT16_MIN;
    }
    if (!of->refused)
        map_query(model, of->filled, of->taken);
}

/* Mean and root of `count` estimates, and an interval around the mean. */
static void check_raw(const twin_model *model, const twin_raw *raw, const int32_t *estimates,
                      uint32_t count) {
    uint64_t squares = 0, off, square = (uint64_t)raw->root * raw->root, half;
    int64_t sum = 0, deviations = 0, twice, low, high;
    uint32_t i;
    CHECK(raw->count == count && raw->points == 0);
    for (i = 0; i < count; i++) {
        int64_t apart = (int64_t)estimates[i] - estimates[0];
        apart = apart > 1048575 ? 1048575 : apart < -1048575 ? -1048575 : apart;
        sum += estimates[i];
        deviations += apart;
        squares += (uint64_t)(apart * apart);
    }
    twice = 2 * (sum < 0 ? -sum : sum);
    twice = count ? (twice + count) / (2 * (int64_t)count) : 0;
    CHECK(raw->mean == (sum < 0 ? -twice : twice));
    off = (uint64_t)(deviations < 0 ? -deviations : deviations);
    squares = count * squares - off * off;
    CHECK(square <= squares && squares - square <= 2 * (uint64_t)raw->root);
    CHECK(raw->intervals == (count && model->flags & SCALED));
    half = raw->intervals ? (uint64_t)model->quantile * raw->scale >> 20 : 0;
    half = half > INT32_MAX ? INT32_MAX : half;
    low = raw->intervals ? raw->mean - (int64_t)half : 0;
    high = raw->intervals ? raw->mean + (int64_t)half : 0;
    CHECK(raw->low == (low < INT32_MIN ? INT32_MIN : low));
    CHECK(raw->high == (high > INT32_MAX ? INT32_MAX : high));
    CHECK(raw->intervals || !raw->scale);
}

static int is_same(const twin_raw *a, const twin_raw *b) {
    return a->mean == b->mean && a->root == b->root && a->scale == b->scale && a->low == b->low &&
           a->high == b->high && a->outside == b->outside && a->missing == b->missing &&
           a->points == b->points && a->intervals == b->intervals && a->count == b->count;
}

static void check_refused(const twin_raw *raw) {
    CHECK(!raw->mean && !raw->root && !raw->scale && !raw->low && !raw->high && !raw->points &&
          !raw->intervals && !raw->count);
}

/* Estimates of all anchors must be within what the output's weights allow: an activation of relu
 * is 0 .. 32767, one of silu -16383 .. 32767. Not for several targets, whose weights are elsewhere.
 */
static void check_range(const twin_model *model, const int32_t *estimates) {
    uint32_t t, i, n = 0;
    shape of = {0};
    outputs last;
    of.features = model->inputs;
    of.layers = model->layers;
    of.wide = model->wide;
    of.flags = model->flags;
    for (i = 0; i < 3; i++)
        of.hidden[i] = model->hidden[i];
    last = outputs_of(&of);
    if (model->twin_size != twin_bytes(&of))
        return;
    for (t = 0; t < model->twin_count; t++) {
        twin_flash twin = model->twins + t * twin_bytes(&of);
        uint32_t owned = get(model->counts + 2 * t, 2);
        int64_t most = 0;
        for (i = 0; i < last.count; i++)
            most += magnitude(get_signed(twin + last.weights + i * last.step, 2));
        most *= model->silu ? 49150 : 32767;
        most = (most * get_signed(twin + 8, 2) >> 16 >> twin[6]) + 1;
        for (; owned--; n++) {
            int64_t apart = (int64_t)estimates[n] - get_signed(model->values + 4 * n, 4);
            CHECK(apart <= most && apart >= -most);
        }
    }
    CHECK(n == model->anchor_count);
}

/* From the estimates of all anchors, those of the anchors that predict, found the slow way. Returns
 * how many. */
static uint32_t choose(const twin_model *model, const int16_t *query, const int32_t *all,
                       int32_t *chosen) {
    uint64_t *distance = (uint64_t *)calloc(model->anchor_count, sizeof(uint64_t));
    uint32_t t, i, j, first = 0, count = 0;
    CHECK(distance);
    for (i = 0; i < model->anchor_count; i++)
        for (j = 0; j < model->inputs; j++) {
            twin_flash feature = model->anchors + i * model->anchor_size + 2 * j;
            int64_t apart = (int64_t)query[j] - get_signed(feature, 2);
            distance[i] += (uint64_t)(apart * apart);
        }
    for (t = 0; t < model->twin_count; t++) {
        uint32_t behind = first + get(model->counts + 2 * t, 2);
        for (i = first; i < behind; i++) {
            uint32_t nearer = 0;
            for (j = first; model->neighbors && j < behind; j++)
                nearer += distance[j] < distance[i] || (j < i && distance[j] == distance[i]);
            if (!model->neighbors || nearer < model->neighbors)
                chosen[count++] = all[i];
        }
        first = behind;
    }
    free(distance);
    return count;
}

/* Prepare the model, in memory exactly as large as the library says. Its block is NULL if there is
 * nothing to prepare. */
static memory prepare(twin_model *model, uint64_t *rng) {
    memory prepared = {0, 0, 0};
    uint32_t size = twin_prepared_size(model);
    if (!size) {
        CHECK(twin_prepare(model, &size, sizeof size) == TWIN_ERROR_UNSUPPORTED);
        return prepared;
    }
    prepared = allocate_anywhere(size, rng);
    CHECK(twin_prepare(model, prepared.start, size - 1) == TWIN_ERROR_SCRATCH);
    CHECK(twin_prepare(model, prepared.start, size) == TWIN_OK);
    return prepared;
}

/* Whether to prepare: the more memory that takes, the longer, and the less often. */
static int is_to_prepare(const twin_model *model, uint64_t *rng) {
    uint32_t blocks = twin_prepared_size(model) / 8192;
    return one_in(rng, 2 + (blocks < 30 ? blocks : 30));
}

/* Change what a run in progress must not depend on. */
static void disturb(twin_model *model, memory *prepared, uint64_t *rng) {
    switch (below(rng, 4)) {
    case 0:
        twin_set_neighbors(model, (uint16_t)any_size(rng, 12));
        break;
    case 1:
        if (!prepared->block && is_to_prepare(model, rng))
            *prepared = prepare(model, rng);
        break;
    default:
        (void)twin_set_kernel(model, below(rng, 6)); /* there may be fewer */
    }
}

/* In steps, while the model changes, to no effect. */
static void step(twin_model *model, const memory *scratch, const question *of, int32_t *members,
                 twin_raw *out, uint64_t *rng) {
    int disturbed = one_in(rng, 4);
    twin_model before = *model;
    memory prepared = {0, 0, 0};
    uint32_t total = model->members, left = total;
    twin_run run;
    memset(&run, 0xA5, sizeof run);
    CHECK(twin_begin_raw(&run, model, scratch->start, scratch->size, of->query, members) ==
          TWIN_OK);
    CHECK(twin_read_raw(&run, out) == TWIN_ERROR_EARLY && !out->count);
    while (left) {
        twin_status status;
        if (disturbed)
            disturb(model, &prepared, rng);
        left = twin_step(&run, (uint16_t)any_size(rng, one_in(rng, 4) ? 16 : 5));
        status = twin_read_raw(&run, out);
        CHECK(status == (out->count == total ? TWIN_OK
                         : out->count        ? TWIN_MORE
                                             : TWIN_ERROR_EARLY));
        CHECK(left == total - out->count);
        if (one_in(rng, 4))
            check_raw(model, out, members, out->count);
    }
    CHECK(!twin_step(&run, TWIN_ALL) && twin_read_raw(&run, out) == TWIN_OK);
    *model = before;
    free(prepared.block);
    ADD(stepped, 1);
    ADD(disturbed, disturbed != 0);
}

/* Predict with the current kernel and neighbors. */
static void predict(twin_model *model, const question *of, twin_raw *out, int32_t *members,
                    uint64_t *rng) {
    memory scratch = allocate_anywhere(twin_scratch_size(model), rng);
    CHECK(scratch.size);
    memset(out, 0xA5, sizeof *out);
    CHECK(twin_predict_raw(model, scratch.start, scratch.size - 1, of->query, out, members) ==
          TWIN_ERROR_SCRATCH);
    check_refused(out);
    if (one_in(rng, 2))
        step(model, &scratch, of, members, out, rng);
    else
        CHECK(twin_predict_raw(model, scratch.start, scratch.size, of->query, out, members) ==
              TWIN_OK);
    CHECK(out->outside == of->outside && out->missing == of->missing);
    free(scratch.block);
}

/* The same, which must be as expected, to the last bit. */
static void predict_same(twin_model *model, const question *of, const twin_raw *expected,
                         const int32_t *estimates, uint64_t *rng) {
    int32_t *members = (int32_t *)allocate(sizeof(int32_t) * expected->count);
    twin_raw out;
    CHECK(model->members == expected->count);
    predict(model, of, &out, members, rng);
    CHECK(is_same(&out, expected));
    CHECK(!memcmp(members, estimates, sizeof(int32_t) * expected->count));
    free(members);
}

/* One kernel, as it is and prepared, or one of these. */
static void predict_by_kernel(twin_model *model, unsigned kernel, int both, const question *of,
                              const twin_raw *expected, const int32_t *estimates, uint64_t *rng) {
    CHECK(twin_set_kernel(model, kernel) == TWIN_OK);
    if (both || one_in(rng, 2)) {
        predict_same(model, of, expected, estimates, rng);
        count_kernel(twin_kernel_name(model, kernel), 0);
    }
    if (both || is_to_prepare(model, rng)) {
        memory prepared = prepare(model, rng);
        if (prepared.block) {
            predict_same(model, of, expected, estimates, rng);
            count_kernel(twin_kernel_name(model, kernel), 1);
            CHECK(twin_set_kernel(model, kernel) == TWIN_OK);
        }
        free(prepared.block);
    }
}

/* All kernels, or one of them, against the portable one, the last; with all anchors or with the
 * nearest, whose estimates must be among those of all. */
static void predict_by_kernels(twin_model *model, const question *of, uint64_t *rng) {
    size_t bytes = sizeof(int32_t) * model->anchor_count;
    int32_t *all = (int32_t *)allocate(bytes), *members = all;
    uint16_t stated = model->neighbors;
    unsigned kernels = 0, k;
    int both = one_in(rng, 32);
    twin_raw expected;
    CHECK(model->anchor_count);
    while (twin_kernel_name(model, kernels))
        kernels++;
    CHECK(kernels && !strcmp(twin_kernel_name(model, kernels - 1), "portable"));
    CHECK(twin_set_kernel(model, kernels) == TWIN_ERROR_UNSUPPORTED);
    CHECK(twin_set_kernel(model, kernels - 1) == TWIN_OK);
    twin_set_neighbors(model, 0);
    predict(model, of, &expected, all, rng);
    count_kernel("portable", 0);
    check_raw(model, &expected, all, model->anchor_count);
    check_range(model, all);
    if (!one_in(rng, 3)) {
        twin_set_neighbors(model,
                           (uint16_t)(stated && one_in(rng, 2) ? stated : 1 + any_size(rng, 5)));
        members = (int32_t *)allocate(bytes);
        CHECK(model->members == choose(model, of->taken, all, members));
        if (model->members < model->anchor_count) {
            int32_t *own = (int32_t *)allocate(sizeof(int32_t) * model->members);
            predict(model, of, &expected, own, rng);
            check_raw(model, &expected, members, model->members);
            CHECK(!memcmp(own, members, sizeof(int32_t) * model->members));
            free(own);
        }
    }
    for (k = below(rng, kernels); both && kernels--;)
        predict_by_kernel(model, kernels, 1, of, &expected, members, rng);
    if (!both)
        predict_by_kernel(model, k, 0, of, &expected, members, rng);
    CHECK(twin_set_kernel(model, 0) == TWIN_OK);
    twin_set_neighbors(model, stated);
    if (members != all)
        free(members);
    free(all);
}

/* A query that makes sums as large as possible; one at the edges; one near an anchor; or any. */
static void draw_query(const twin_model *model, int16_t *query, uint64_t *rng) {
    uint32_t width = 1u + model->wide, row = (model->inputs + 3u) / 4 * 4 * width, i;
    twin_flash sign = model->twins + below(rng, model->twin_count) * model->twin_size + 16;
    twin_flash anchor = model->anchors + below(rng, model->anchor_count) * model->anchor_size;
    uint32_t style = below(rng, 4);
    sign += below(rng, 2u * model->hidden[0]) * row;
    for (i = 0; i < model->features; i++) {
        uint32_t number = draw(rng);
        if (style == 0)
            query[i] = worst(sign + i * width, width);
        else if (style == 1)
            query[i] = (int16_t)(number & 1 ? 32767 : -32767);
        else if (style == 2)
            query[i] = (int16_t)get_signed(anchor + 2 * i, 2);
        else
            query[i] = (int16_t)((int32_t)(number % 65535) - 32767);
    }
}

/* Predictions from integers, some of which may be missing. */
static inline void try_integers(twin_model *model, uint64_t *rng) {
    size_t bytes = sizeof(int16_t) * model->features;
    question of;
    of.query = (int16_t *)allocate(bytes);
    of.filled = (int16_t *)allocate(bytes);
    of.taken = (int16_t *)allocate(sizeof(int16_t) * model->inputs);
    draw_query(model, of.query, rng);
    if (one_in(rng, 4))
        of.query[below(rng, model->features)] = INT16_MIN;
    look_up(model, &of);
    if (of.refused) {
        memory scratch = allocate_anywhere(twin_scratch_size(model), rng);
        twin_run run;
        twin_raw out;
        memset(&run, 0xA5, sizeof run);
        CHECK(twin_begin_raw(&run, model, scratch.start, scratch.size, of.query, 0) ==
              TWIN_ERROR_QUERY);
        CHECK(!twin_step(&run, TWIN_ALL) && twin_read_raw(&run, &out) == TWIN_ERROR_QUERY);
        check_refused(&out);
        free(scratch.block);
        ADD(refused_queries, 1);
    } else {
        predict_by_kernels(model, &of, rng);
        ADD(filled_queries, of.missing != 0);
        ADD(outside_queries, of.outside != 0);
    }
    free(of.taken);
    free(of.filled);
    free(of.query);
}

#endif
