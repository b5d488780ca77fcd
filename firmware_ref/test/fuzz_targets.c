/* Whatever the bytes of a pack of several targets, all of them are predicted within the memory that
 * this asks for, as each is by itself, by every kernel of this processor; and points are learnt for
 * the targets that they have.
 *
 * Inputs are packs of the corpus in which a few fields take other values. Each is tried as it is,
 * and again with length and checksums repaired.
 *
 * To be linked with libFuzzer or with fuzz_alone.c. At the end it prints what it counted, as one
 * line of JSON. */

/* clang-format off */
#define COUNTERS(COUNTER)                                                                          \
    COUNTER(sound) COUNTER(several) COUNTER(scaled) COUNTER(mapped) COUNTER(curved) COUNTER(silu)  \
    COUNTER(wide) COUNTER(neighbors) COUNTER(stepped) COUNTER(disturbed) COUNTER(refused_queries)  \
    COUNTER(filled_queries) COUNTER(outside_queries) COUNTER(learnt) COUNTER(adapted)
/* clang-format on */

#include "fuzz_predict.h"
#include "fuzz_storage.h"

enum { POINTS = 3, NOT_A_NUMBER = 0x7FC00000 };

/* What all targets are asked, and answer. */
typedef struct bench {
    twin_model *model;
    int16_t *query;
    float *x;
    twin_status status, of_floats;
    twin_raw raw[TWIN_TARGETS];
    twin_prediction out[TWIN_TARGETS];
} bench;

static void count_pack(const twin_model *model) {
    ADD(sound, 1);
    ADD(several, model->targets > 1);
    ADD(scaled, model->flags >> 1 & 1);
    ADD(mapped, model->map != 0);
    ADD(curved, model->target_curve != 0);
    ADD(silu, model->silu);
    ADD(wide, model->wide);
    ADD(neighbors, model->neighbors != 0);
}

static void report(void) {
    (void)printf("{");
    print_counts();
    (void)printf(", ");
    print_kernels();
    (void)printf("}\n");
}

/* The middle of the step that stands for an integer, or what is missing. */
static float in_units(int16_t number, const uint8_t *scaling) {
    if (number == INT16_MIN)
        return float_of(NOT_A_NUMBER);
    return (float)number / float_of(get(scaling + 4, 4)) + float_of(get(scaling, 4));
}

/* Ask for all targets at once, prepared or not, in exactly as much memory as that needs. */
static void ask(bench *on, uint64_t *rng) {
    unsigned count = on->model->targets;
    twin_model plain = *on->model;
    memory prepared = {0, 0, 0}, all;
    if (is_to_prepare(on->model, rng))
        prepared = prepare(on->model, rng);
    all = allocate_anywhere(twin_scratch_size(on->model), rng);
    CHECK(twin_predict_targets_raw(on->model, all.start, all.size - 1, on->query, on->raw, count) ==
          TWIN_ERROR_SCRATCH);
    CHECK(twin_predict_targets_raw(on->model, all.start, all.size, on->query, on->raw, count - 1) ==
          TWIN_ERROR_TARGETS);
    on->status =
        twin_predict_targets_raw(on->model, all.start, all.size, on->query, on->raw, count);
    CHECK(on->status == TWIN_OK || on->status == TWIN_ERROR_QUERY);
    on->of_floats = twin_predict_targets(on->model, all.start, all.size, on->x, on->out, count);
    *on->model = plain;
    free(all.block);
    free(prepared.block);
}

static int is_same_float(const twin_prediction *a, const twin_prediction *b) {
    return bits_of(a->mean) == bits_of(b->mean) && bits_of(a->spread) == bits_of(b->spread) &&
           bits_of(a->scale) == bits_of(b->scale) && bits_of(a->low) == bits_of(b->low) &&
           bits_of(a->high) == bits_of(b->high) && a->outside == b->outside &&
           a->missing == b->missing && a->intervals == b->intervals && a->points == b->points;
}

/* A model of one target answers as the model of all does; then on to all that it can be asked. */
static void try_target(const bench *on, unsigned target, uint64_t *rng) {
    twin_model one;
    twin_raw raw;
    twin_prediction out;
    memory scratch;
    CHECK(twin_select_target(&one, on->model, target) == TWIN_OK && one.targets == 1);
    scratch = allocate_anywhere(twin_scratch_size(&one), rng);
    CHECK(twin_predict_raw(&one, scratch.start, scratch.size, on->query, &raw, 0) == on->status);
    CHECK(on->status || is_same(&raw, on->raw + target));
    CHECK(twin_predict(&one, scratch.start, scratch.size, on->x, &out, 0) == on->of_floats);
    CHECK(on->of_floats || is_same_float(&out, on->out + target));
    free(scratch.block);
    try_integers(&one, rng);
}

/* Learn points that have some of the targets. The others are predicted as before. */
static void try_learning(const bench *on, const uint8_t *pack, uint64_t *rng) {
    uint32_t slot = slot_bytes(on->model, 4), i;
    unsigned count = on->model->targets, t;
    int known[TWIN_TARGETS] = {0};
    float truths[TWIN_TARGETS];
    twin_status status;
    opened all;
    device one;
    describe_storage(&one, 4, slot * (HEAD_SLOTS + POINTS + below(rng, 4)), 0);
    erase_all(&one);
    status = open_store(&all, on->model, pack, &one, POINTS);
    CHECK(on->model->intervals || status == TWIN_ERROR_STORE);
    for (i = 0; !status && i < POINTS; i++) {
        for (t = 0; t < count; t++)
            truths[t] = one_in(rng, 3) ? float_of(NOT_A_NUMBER) : on->out[t].mean + (float)i;
        status = twin_learn_targets(&all.store, all.scratch.start, all.scratch.size, on->x, truths,
                                    count, i);
        for (t = 0; t < count && !status; t++)
            known[t] |= truths[t] == truths[t];
        ADD(learnt, !status);
        if (status == TWIN_ERROR_TARGET || status == TWIN_ERROR_QUERY)
            status = TWIN_OK; /* nothing was measured, or something beyond what the pack takes */
    }
    if (!status && !on->status) {
        twin_raw raw[TWIN_TARGETS];
        CHECK(twin_predict_adapted_targets_raw(&all.store, all.scratch.start, all.scratch.size,
                                               on->query, raw, count) == TWIN_OK);
        for (t = 0; t < count; t++) {
            CHECK(raw[t].low <= raw[t].mean && raw[t].mean <= raw[t].high);
            CHECK(known[t] || is_same(raw + t, on->raw + t));
            ADD(adapted, raw[t].points != 0);
        }
    }
    close_store(&all);
    free(one.cells);
}

static void try_sound(twin_model *model, const uint8_t *pack, uint64_t *rng) {
    twin_model one;
    bench on;
    uint32_t i;
    count_pack(model);
    memset(&on, 0xA5, sizeof on);
    (void)twin_set_kernel(model, below(rng, 6)); /* there may be fewer */
    on.model = model;
    on.query = (int16_t *)allocate(sizeof(int16_t) * model->features);
    on.x = (float *)allocate(sizeof(float) * model->features);
    draw_query(model, on.query, rng);
    if (one_in(rng, 8))
        on.query[below(rng, model->features)] = INT16_MIN;
    for (i = 0; i < model->features; i++)
        on.x[i] = in_units(on.query[i], model->scaling + 8 * i);
    ask(&on, rng);
    for (i = 0; i < model->targets; i++)
        try_target(&on, i, rng);
    CHECK(twin_select_target(&one, model, i) == TWIN_ERROR_TARGETS && !one.kernel);
    if (one_in(rng, 4))
        try_learning(&on, pack, rng);
    free(on.x);
    free(on.query);
}

static twin_status try_pack(const uint8_t *data, uint32_t size, uint64_t *rng) {
    uint32_t lead = 4 * below(rng, 4);
    uint8_t *block = (uint8_t *)allocate(lead + size), *pack = block + lead;
    twin_model model;
    twin_status status;
    memset(&model, 0xA5, sizeof model);
    memcpy(pack, data, size);
    status = twin_open(&model, pack, size);
    if (!status)
        try_sound(&model, pack, rng);
    free(block);
    return status;
}

/* Random numbers depend on the bytes alone, so findings can be repeated. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint32_t bytes = (uint32_t)size;
    uint64_t rng = crc_of(data, bytes);
    twin_status status = try_pack(data, bytes, &rng);
    if (!executions)
        CHECK(!atexit(report));
    if (status && bytes >= HEADER) {
        uint8_t *pack = (uint8_t *)allocate(size);
        memcpy(pack, data, size);
        repair_file(pack, bytes);
        status = try_pack(pack, bytes, &rng);
        free(pack);
    }
    executions++;
    statuses[-status]++;
    return 0;
}

/* Change a field: of the header, of the table, or of a section, most often near its start. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
    uint64_t rng = seed;
    section all[MOST_SECTIONS];
    uint32_t bytes = (uint32_t)size, count, at, width = (uint32_t)1 << below(&rng, 3);
    if (bytes < HEADER + ENTRY)
        return mutate(data, bytes, (uint32_t)most, &rng); /* one target */
    if (one_in(&rng, 32))
        return LLVMFuzzerMutate(data, size, most);
    count = read_table(all, data, bytes);
    if (!count || one_in(&rng, 4)) {
        at = below(&rng, one_in(&rng, 2) ? HEADER : HEADER + ENTRY * (count + 1));
    } else {
        const section *one = all + below(&rng, count);
        at = one->at + below(&rng, one->length && one_in(&rng, 2) ? one->length : 24);
    }
    if (at > bytes - width)
        at = bytes - width;
    if (one_in(&rng, 3))
        put(data + at, get(data + at, width) ^ (uint32_t)1 << below(&rng, 8 * width), width);
    else
        put(data + at, one_in(&rng, 2) ? draw(&rng) : any_size(&rng, 9), width);
    return size;
}
