/* Whatever the bytes, opening a pack and all that can be done with it stays within its memory, and
 * every kernel of this processor computes the same bits for a sound pack.
 *
 * Random bytes do not get past the checksums, so a mutator that knows the format makes the inputs
 * (fuzz_mutate.h), and each is tried again with length and checksums repaired, and then with its
 * values repaired: this fuzzes every check, and everything after them.
 *
 * To be linked with libFuzzer or with fuzz_alone.c. At the end it prints what it counted, as one
 * line of JSON. */

/* clang-format off */
#define COUNTERS(COUNTER)                                                                          \
    COUNTER(sound) COUNTER(repaired) COUNTER(scaled) COUNTER(version_1) COUNTER(version_2)         \
    COUNTER(version_3) COUNTER(silu) COUNTER(wide) COUNTER(layers_1) COUNTER(layers_2) COUNTER(layers_3)              \
    COUNTER(several_twins) COUNTER(neighbors) COUNTER(section_scaling) COUNTER(section_twins)      \
    COUNTER(section_curve) COUNTER(section_anchors) COUNTER(section_ids)                           \
    COUNTER(section_metadata) COUNTER(section_intervals) COUNTER(section_domain)                   \
    COUNTER(section_schema) COUNTER(section_map) COUNTER(section_target_curve)                     \
    COUNTER(section_unknown) COUNTER(large) COUNTER(stepped) COUNTER(disturbed)                    \
    COUNTER(refused_queries) COUNTER(filled_queries) COUNTER(outside_queries)   \
    COUNTER(watched) COUNTER(learnt) COUNTER(adapted)
/* clang-format on */

#include "fuzz_device.h"

/* The largest sizes of sound packs. */
enum { FEATURES, WIDTH, ANCHORS_IN_ALL, TWINS_IN_ALL, BYTES, SIZES };
static unsigned long long largest[SIZES];

static void note_size(unsigned which, uint32_t size) {
    if (largest[which] < size)
        largest[which] = size;
}

/* Count what a sound pack has. */
static void count_pack(const twin_model *model, const uint8_t *pack, uint32_t size) {
    section all[MOST_SECTIONS];
    uint32_t i, width, count = read_table(all, pack, size);
    ADD(sound, 1);
    ADD(scaled, model->flags >> 1 & 1);
    counts[COUNT_version_1 + get(pack + 4, 2) - 1]++;
    ADD(silu, model->silu);
    ADD(wide, model->wide);
    counts[COUNT_layers_1 + model->layers - 1]++;
    ADD(several_twins, model->twin_count > 1);
    ADD(neighbors, model->neighbors != 0);
    for (i = 0; i < count; i++)
        counts[all[i].kind - 1 < (get(pack + 4, 2) > 2 ? TARGET_CURVE : SCHEMA)
                   ? COUNT_section_scaling + all[i].kind - 1
                   : COUNT_section_unknown]++;
    for (i = width = 0; i < model->layers; i++)
        width = model->hidden[i] > width ? model->hidden[i] : width;
    ADD(large, model->features > MOST_WIDTH / 2 || width > MOST_WIDTH / 2 ||
                   model->anchor_count > MOST_ANCHORS / 2 || model->twin_count > MOST_TWINS / 2);
    note_size(FEATURES, model->features);
    note_size(WIDTH, width);
    note_size(ANCHORS_IN_ALL, model->anchor_count);
    note_size(TWINS_IN_ALL, model->twin_count);
    note_size(BYTES, size);
}

static void report(void) {
    static const char *const sizes[] = {"features", "width", "anchors", "twins", "bytes"};
    (void)printf("{");
    print_counts();
    (void)printf(", ");
    print_numbers("largest", sizes, largest, SIZES);
    (void)printf(", ");
    print_kernels();
    (void)printf("}\n");
}

/* A refused model stays refused. */
static void check_shut(twin_model *model, const uint8_t *pack) {
    int16_t query[1] = {0};
    float x[1] = {0};
    uint64_t some[1];
    twin_prediction prediction;
    twin_watch watch;
    twin_raw out;
    twin_store store;
    device one;
    twin_set_neighbors(model, 1);
    CHECK(twin_scratch_size(model) == 0 && twin_prepared_size(model) == 0);
    CHECK(!twin_kernel_name(model, 0) && twin_set_kernel(model, 0) == TWIN_ERROR_MODEL);
    CHECK(twin_prepare(model, some, sizeof some) == TWIN_ERROR_MODEL);
    CHECK(twin_predict_raw(model, some, sizeof some, query, &out, 0) == TWIN_ERROR_MODEL);
    CHECK(twin_predict(model, some, sizeof some, x, &prediction, 0) == TWIN_ERROR_MODEL);
    CHECK(twin_set_coverage(model, 900) == TWIN_ERROR_MODEL);
    CHECK(twin_watch_begin(&watch, model, 900) == TWIN_ERROR_MODEL);
    describe_storage(&one, 1, 65536, 0);
    CHECK(twin_store_open(&store, model, pack, &one.storage, some, 1) == TWIN_ERROR_STORE);
}

/* Open in one go and in steps, with the same result; use what is sound. */
static twin_status try_pack(const uint8_t *data, uint32_t size, uint64_t *rng) {
    uint32_t lead = 4 * below(rng, 4);
    uint8_t *block = (uint8_t *)allocate(lead + size), *pack = block + lead;
    twin_model model, stepped;
    twin_opening opening;
    twin_status status, found;
    memset(&model, 0xA5, sizeof model);
    memset(&stepped, 0xA5, sizeof stepped);
    memset(&opening, 0xA5, sizeof opening);
    memcpy(pack, data, size);
    status = twin_open(&model, pack, size);
    CHECK(status <= TWIN_OK && status > -STATUSES && *twin_text(status));
    found = twin_open_begin(&opening, &stepped, pack, size);
    while (found == TWIN_MORE) {
        CHECK(twin_scratch_size(&stepped) == 0);
        found = twin_open_step(&opening, any_size(rng, 12));
    }
    CHECK(found == status && twin_open_step(&opening, 1) == status);
    if (status) {
        check_shut(&model, pack);
        check_shut(&stepped, pack);
    } else {
        twin_model *either = one_in(rng, 2) ? &model : &stepped;
        count_pack(either, pack, size);
        try_integers(either, rng);
        if (one_in(rng, 2))
            try_device(either, pack, rng);
    }
    CHECK(!size || twin_open(&model, pack + 1, size - 1) == TWIN_ERROR_ALIGNMENT);
    free(block);
    return status;
}

/* Whether values can be repaired: not if a map has rows that its features cannot share. */
static int can_repair(const uint8_t *pack, uint32_t size) {
    shape of;
    return read_shape(&of, pack, size) && can_share(of.rows, of.features);
}

/* Repair the values: that changes nothing in a sound pack, and makes sound any other whose only
 * faults are values. */
static void try_repaired(uint8_t *pack, uint32_t size, twin_status status, uint64_t *rng) {
    uint8_t *old = (uint8_t *)allocate(size);
    memcpy(old, pack, size);
    repair_values(pack, size, rng);
    repair_file(pack, size);
    CHECK(!memcmp(pack, old, size) == !status);
    free(old);
    if (status) {
        CHECK(try_pack(pack, size, rng) == TWIN_OK);
        ADD(repaired, 1);
    }
}

static void begin(void) {
    int status;
    for (status = -STATUSES; status <= TWIN_MORE; status++)
        CHECK(twin_text((twin_status)status)[0]);
    CHECK(!atexit(report));
}

/* Random numbers depend on the bytes alone, so findings can be repeated. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint32_t bytes = (uint32_t)size;
    uint64_t rng = crc_of(data, bytes);
    uint8_t *pack = (uint8_t *)allocate(size);
    twin_status status;
    if (!executions)
        begin();
    memcpy(pack, data, size);
    status = try_pack(pack, bytes, &rng);
    if (status && bytes >= HEADER) {
        repair_file(pack, bytes);
        if (memcmp(pack, data, size) != 0)
            status = try_pack(pack, bytes, &rng);
    }
    if ((status == TWIN_ERROR_PADDING || status == TWIN_ERROR_VALUE ||
         status == TWIN_ERROR_OVERFLOW || !status) &&
        can_repair(pack, bytes))
        try_repaired(pack, bytes, status, &rng);
    executions++;
    statuses[-status]++;
    free(pack);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
    uint64_t rng = seed;
    return mutate(data, (uint32_t)size, (uint32_t)most, &rng);
}
