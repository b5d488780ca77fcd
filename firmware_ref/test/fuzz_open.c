/* Whatever the bytes, opening and predicting stay within their memory, and every kernel of this
 * processor computes the same bits for a valid pack.
 *
 * Random bytes do not get past the checksums, so a mutator that knows the format makes the inputs
 * (fuzz_mutate.h), and each is tried again with length and checksums fixed, and then with its
 * values fixed: this fuzzes every check, and everything after them.
 *
 * To be linked with libFuzzer or with fuzz_alone.c. At the end it prints what it saw, as one line
 * of JSON. */

#include "fuzz_mutate.h"
#include "twin.h"
#include "twin_host.h"
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);

enum { STATUSES = 18, KERNELS = 6 };

static struct {
    unsigned long long inputs;
    unsigned long long verdicts[STATUSES]; /* with length and checksums fixed, by -status */
    unsigned long long mended;             /* valid once their values are fixed, too */
    unsigned long long packs[KERNELS];     /* evaluated by each kernel */
    const char *kernels[KERNELS];
} seen;

static void broken(const char *claim, int line) {
    (void)fprintf(stderr, "fuzz_open.c:%d: does not hold, in input %llu: %s\n", line, seen.inputs,
                  claim);
    abort();
}
#define MUST(claim) ((claim) ? (void)0 : broken(#claim, __LINE__))

static void *room(size_t size) {
    void *block = malloc(size ? size : 1);
    MUST(block);
    return block;
}

/* A number, small ones as often as large ones. */
static uint32_t some(uint64_t *luck, uint32_t bits) {
    return below(luck, (uint32_t)1 << below(luck, bits + 1));
}

#if !TWIN_HOST
static const char *twin_kernel_name(const twin_model *model, unsigned number) {
    return model->kernel && !number ? "portable" : 0;
}
static twin_status twin_set_kernel(twin_model *model, unsigned number) {
    return model->kernel ? (number ? TWIN_ERROR_UNSUPPORTED : TWIN_OK) : TWIN_ERROR_MODEL;
}
#endif

/* Mean and root of `count` estimates, as FORMAT.md has them. */
static void check_raw(const twin_raw *raw, const int32_t *estimates, uint32_t count) {
    uint64_t squares = 0, off, square = (uint64_t)raw->root * raw->root;
    int64_t sum = 0, deviations = 0, twice;
    uint32_t i;
    MUST(raw->count == count);
    for (i = 0; i < count; i++) {
        int64_t apart = (int64_t)estimates[i] - estimates[0];
        apart = apart > 1048575 ? 1048575 : apart < -1048575 ? -1048575 : apart;
        sum += estimates[i];
        deviations += apart;
        squares += (uint64_t)(apart * apart);
    }
    twice = 2 * (sum < 0 ? -sum : sum);
    twice = count ? (twice + count) / (2 * (int64_t)count) : 0;
    MUST(raw->mean == (sum < 0 ? -twice : twice));
    off = (uint64_t)(deviations < 0 ? -deviations : deviations);
    squares = count * squares - off * off;
    MUST(square <= squares && squares - square <= 2 * (uint64_t)raw->root);
}

/* Estimates of all anchors must be within what the output's weights allow: an activation of relu
 * is 0 .. 32767, one of silu -16383 .. 32767. */
static void check_range(const twin_model *model, const int32_t *estimates) {
    uint32_t t, i, n = 0, width = model->hidden[model->layers - 1];
    shape of = {0};
    of.features = model->features;
    of.layers = model->layers;
    of.wide = model->wide;
    for (i = 0; i < 3; i++)
        of.hidden[i] = model->hidden[i];
    for (t = 0; t < model->twin_count; t++) {
        twin_flash twin = model->twins + t * twin_bytes(&of);
        twin_flash weights = twin + layer_of(&of, of.layers - 1).end;
        uint32_t owned = get(model->counts + 2 * t, 2);
        int64_t most = 0;
        for (i = 0; i < width; i++)
            most += magnitude(get_signed(weights + 2 * i, 2));
        most *= model->silu ? 49150 : 32767;
        most = (most * get_signed(twin + 8, 2) >> 16 >> twin[6]) + 1;
        for (; owned--; n++) {
            int64_t apart = (int64_t)estimates[n] - get_signed(model->targets + 4 * n, 4);
            MUST(apart <= most && apart >= -most);
        }
    }
    MUST(n == model->anchor_count);
}

/* From the estimates of all anchors, those of the anchors that predict, found the slow way. Returns
 * how many. */
static uint32_t choose(const twin_model *model, const int16_t *query, uint32_t neighbors,
                       const int32_t *all, int32_t *chosen) {
    uint64_t *distance = (uint64_t *)calloc(model->anchor_count, sizeof(uint64_t));
    uint32_t t, i, j, first = 0, count = 0;
    MUST(distance);
    for (i = 0; i < model->anchor_count; i++)
        for (j = 0; j < model->features; j++) {
            twin_flash feature = model->anchors + i * model->anchor_size + 2 * j;
            int64_t apart = (int64_t)query[j] - get_signed(feature, 2);
            distance[i] += (uint64_t)(apart * apart);
        }
    for (t = 0; t < model->twin_count; t++) {
        uint32_t behind = first + get(model->counts + 2 * t, 2);
        for (i = first; i < behind; i++) {
            uint32_t nearer = 0;
            for (j = first; neighbors && j < behind; j++)
                nearer += distance[j] < distance[i] || (j < i && distance[j] == distance[i]);
            if (!neighbors || nearer < neighbors)
                chosen[count++] = all[i];
        }
        first = behind;
    }
    free(distance);
    return count;
}

/* Scratch exactly as large as the library says, at any address, full of garbage. */
typedef struct scratch {
    uint8_t *block, *start;
    uint32_t size;
} scratch;

static scratch get_scratch(const twin_model *model, uint64_t *luck) {
    uint32_t lead = below(luck, 16);
    scratch mine;
    mine.size = twin_scratch_size(model);
    MUST(mine.size);
    mine.block = (uint8_t *)room(lead + mine.size);
    mine.start = mine.block + lead;
    memset(mine.block, (int)below(luck, 256), lead + mine.size);
    return mine;
}

/* In steps, with neighbors that change after it has begun, to no effect. */
static void step(twin_model *model, const scratch *mine, const int16_t *query, int32_t *members,
                 twin_raw *out, uint64_t *luck) {
    uint16_t neighbors = model->neighbors;
    uint32_t total = model->members, left = total;
    twin_run run;
    memset(&run, 0xA5, sizeof run);
    MUST(twin_begin_raw(&run, model, mine->start, mine->size, query, members) == TWIN_OK);
    MUST(twin_read_raw(&run, out) == TWIN_ERROR_EARLY && !out->count);
    if (one_in(luck, 2))
        twin_set_neighbors(model, (uint16_t)some(luck, 12));
    while (left) {
        twin_status status;
        left = twin_step(&run, (uint16_t)some(luck, 6));
        status = twin_read_raw(&run, out);
        MUST(status == (out->count == total ? TWIN_OK : out->count ? TWIN_MORE : TWIN_ERROR_EARLY));
        MUST(left == total - out->count);
        check_raw(out, members, out->count);
    }
    MUST(!twin_step(&run, TWIN_ALL) && twin_read_raw(&run, out) == TWIN_OK);
    twin_set_neighbors(model, neighbors);
}

/* The current kernel and neighbors must yield these estimates. */
static void ask(twin_model *model, const int16_t *query, const int32_t *expected, uint32_t count,
                uint64_t *luck) {
    int32_t *members = (int32_t *)room(sizeof(int32_t) * count);
    scratch mine = get_scratch(model, luck);
    twin_raw out;
    MUST(model->members == count);
    MUST(twin_predict_raw(model, mine.start, mine.size - 1, query, &out, members) ==
         TWIN_ERROR_SCRATCH);
    MUST(!out.mean && !out.root && !out.count);
    if (one_in(luck, 2))
        step(model, &mine, query, members, &out, luck);
    else
        MUST(twin_predict_raw(model, mine.start, mine.size, query, &out, members) == TWIN_OK);
    MUST(!memcmp(members, expected, sizeof(int32_t) * count));
    check_raw(&out, expected, count);
    free(mine.block);
    free(members);
}

/* Prepare the model, in memory exactly as large as the library says, at any address and full of
 * garbage. Returns the block; NULL if there is nothing to prepare. */
static uint8_t *prepare(twin_model *model, uint64_t *luck) {
    uint32_t size = twin_prepared_size(model), lead = below(luck, 16);
    uint8_t *block = (uint8_t *)room(lead + size);
    memset(block, (int)below(luck, 256), lead + size);
    if (!size) {
        MUST(twin_prepare(model, block, 0) == TWIN_ERROR_UNSUPPORTED && !model->prepared);
        free(block);
        return 0;
    }
    MUST(twin_prepare(model, block + lead, size - 1) == TWIN_ERROR_SCRATCH && !model->prepared);
    MUST(twin_prepare(model, block + lead, size) == TWIN_OK && model->prepared);
    return block;
}

static void count_kernel(const char *name) {
    unsigned i = 0;
    while (i < KERNELS - 1 && seen.kernels[i] && strcmp(seen.kernels[i], name) != 0)
        i++;
    seen.kernels[i] = name;
    seen.packs[i]++;
}

/* All kernels against the portable one, the last, with all anchors and with the nearest. */
static void ask_kernels(twin_model *model, const int16_t *query, uint64_t *luck) {
    size_t bytes = sizeof(int32_t) * model->anchor_count;
    int32_t *all = (int32_t *)room(bytes), *chosen = (int32_t *)room(bytes);
    uint16_t stated = model->neighbors, fewer = (uint16_t)(1 + some(luck, 5));
    uint8_t *prepared = 0;
    scratch mine;
    twin_raw out;
    unsigned k = 0;
    while (twin_kernel_name(model, k))
        k++;
    MUST(k && !strcmp(twin_kernel_name(model, k - 1), "portable"));
    MUST(twin_set_kernel(model, k) == TWIN_ERROR_UNSUPPORTED);
    MUST(twin_set_kernel(model, k - 1) == TWIN_OK);
    twin_set_neighbors(model, 0);
    mine = get_scratch(model, luck);
    MUST(twin_predict_raw(model, mine.start, mine.size, query, &out, all) == TWIN_OK);
    free(mine.block);
    check_range(model, all);
    check_raw(&out, all, model->anchor_count);
    if (stated && one_in(luck, 2))
        fewer = stated;
    while (k--) {
        MUST(twin_set_kernel(model, k) == TWIN_OK);
        count_kernel(twin_kernel_name(model, k));
        do {
            twin_set_neighbors(model, 0);
            ask(model, query, all, model->anchor_count, luck);
            twin_set_neighbors(model, fewer);
            ask(model, query, chosen, choose(model, query, fewer, all, chosen), luck);
        } while (!prepared && (prepared = prepare(model, luck)));
        free(prepared);
        prepared = 0;
    }
    MUST(twin_set_kernel(model, 0) == TWIN_OK && !model->prepared);
    twin_set_neighbors(model, stated);
    free(chosen);
    free(all);
}

/* A query that makes sums as large as possible; one at the edges; or any. */
static void draw_query(const twin_model *model, int16_t *query, uint64_t *luck) {
    uint32_t width = 1u + model->wide, row = (model->features + 3u) / 4 * 4 * width, i;
    twin_flash weights = model->twins + below(luck, model->twin_count) * model->twin_size + 16;
    uint32_t style = below(luck, 4);
    weights += below(luck, 2u * model->hidden[0]) * row;
    for (i = 0; i < model->features; i++) {
        uint32_t number = draw(luck);
        if (style == 0)
            query[i] = worst(weights + i * width, width);
        else if (style == 1)
            query[i] = (int16_t)(number & 1 ? 32767 : -32767);
        else
            query[i] = (int16_t)((int32_t)(number % 65535) - 32767);
    }
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* (x - offset) * gain as FORMAT.md rounds it. A double holds what a float does, and its halves. */
static int16_t quantise(float x, const uint8_t *scaling) {
    volatile float difference = x - float_of(get(scaling, 4));
    volatile float product = difference * float_of(get(scaling + 4, 4));
    double t = product;
    t = t > 32767 ? 32767 : t < -32767 ? -32767 : t;
    return (int16_t)(t < 0 ? t - 0.5 : t + 0.5);
}

static void refuse_queries(const twin_model *model, scratch *mine, float *x, int16_t *query,
                           uint64_t *luck) {
    uint32_t at = below(luck, model->features);
    twin_prediction out;
    twin_raw raw;
    twin_run run;
#if TWIN_INTERVALS
    if (model->domain) /* a missing feature may be filled in */
        return;
#endif
    query[at] = INT16_MIN;
    MUST(twin_predict_raw(model, mine->start, mine->size, query, &raw, 0) == TWIN_ERROR_QUERY);
    MUST(!raw.mean && !raw.root && !raw.count);
    MUST(twin_predict(model, mine->start, mine->size - 1, x, &out, 0) == TWIN_ERROR_SCRATCH);
    MUST(out.mean != out.mean && out.spread != out.spread);
    x[at] = float_of(0x7F800001u + below(luck, 0x7FFFFF) + (draw(luck) & 0x80000000u));
    memset(&run, 0xA5, sizeof run);
    MUST(twin_begin(&run, model, mine->start, mine->size, x, 0) == TWIN_ERROR_QUERY);
    MUST(!twin_step(&run, TWIN_ALL) && twin_read(&run, &out) == TWIN_ERROR_QUERY);
    MUST(out.mean != out.mean && out.spread != out.spread);
}

/* From float to float, by any kernel. */
static void ask_floats(twin_model *model, uint64_t *luck) {
    static const uint32_t edges[] = {0x7F800000, 0xFF800000, 0x7F7FFFFF, 0xFF7FFFFF,
                                     0,          0x80000000, 1,          0x3F800000};
    twin_flash target = model->scaling + 8u * model->features;
    float *x = (float *)room(sizeof(float) * model->features);
    int16_t *query = (int16_t *)room(sizeof(int16_t) * model->features);
    volatile float mean, spread;
    twin_prediction out;
    twin_raw raw;
    scratch mine;
    uint32_t i;
    (void)twin_set_kernel(model, below(luck, 4)); /* there may be fewer */
    mine = get_scratch(model, luck);
    for (i = 0; i < model->features; i++) {
        uint32_t bits = draw(luck), style = below(luck, 3);
        if (style == 0)
            bits = edges[bits % (sizeof edges / sizeof *edges)];
        else if (style == 1 || (bits & 0x7F800000u) == 0x7F800000u)
            bits = (bits & 0x8FFFFFFFu) | 0x30000000u;
        x[i] = float_of(bits);
        query[i] = quantise(x[i], model->scaling + 8 * i);
    }
    MUST(twin_predict_raw(model, mine.start, mine.size, query, &raw, 0) == TWIN_OK);
    MUST(twin_predict(model, mine.start, mine.size, x, &out, 0) == TWIN_OK);
    mean = (float)raw.mean * float_of(get(target + 4, 4));
    mean = mean + float_of(get(target, 4));
    spread = (float)raw.root * float_of(get(target + 4, 4));
    spread = spread / (float)raw.count;
    MUST(bits_of(out.mean) == bits_of(mean) && bits_of(out.spread) == bits_of(spread));
    refuse_queries(model, &mine, x, query, luck);
    free(mine.block);
    free(query);
    free(x);
}

/* A refused model stays refused. */
static void check_shut(twin_model *model) {
    int16_t query[1] = {0};
    uint64_t memory[1];
    twin_raw out;
    twin_set_neighbors(model, 1);
    MUST(twin_scratch_size(model) == 0);
    MUST(!twin_kernel_name(model, 0) && twin_set_kernel(model, 0) == TWIN_ERROR_MODEL);
    MUST(twin_predict_raw(model, memory, sizeof memory, query, &out, 0) == TWIN_ERROR_MODEL);
}

/* Open in one go and in steps, with the same verdict; evaluate valid packs. */
static twin_status try_pack(const uint8_t *data, uint32_t size, uint64_t *luck) {
    uint32_t lead = 4 * below(luck, 4);
    uint8_t *block = (uint8_t *)room(lead + size), *pack = block + lead;
    twin_model model, stepped;
    twin_opening opening;
    twin_status status, found;
    memset(&model, 0xA5, sizeof model);
    memset(&stepped, 0xA5, sizeof stepped);
    memset(&opening, 0xA5, sizeof opening);
    memcpy(pack, data, size);
    status = twin_open(&model, pack, size);
    MUST(status <= TWIN_OK && status > -STATUSES && *twin_text(status));
    found = twin_open_begin(&opening, &stepped, pack, size);
    while (found == TWIN_MORE) {
        MUST(twin_scratch_size(&stepped) == 0);
        found = twin_open_step(&opening, some(luck, 12));
    }
    MUST(found == status && twin_open_step(&opening, 1) == status);
    if (status) {
        check_shut(&model);
        check_shut(&stepped);
    } else {
        int16_t *query = (int16_t *)room(sizeof(int16_t) * model.features);
        twin_model *either = one_in(luck, 2) ? &model : &stepped;
        draw_query(either, query, luck);
        ask_kernels(either, query, luck);
        ask_floats(either, luck);
        free(query);
    }
    MUST(!size || twin_open(&model, pack + 1, size - 1) == TWIN_ERROR_ALIGNMENT);
    free(block);
    return status;
}

/* One line of JSON. */
static void report(void) {
    unsigned i;
    (void)printf("{\"inputs\": %llu, \"mended\": %llu, \"verdicts\": [", seen.inputs, seen.mended);
    for (i = 0; i < STATUSES; i++)
        (void)printf("%s%llu", i ? ", " : "", seen.verdicts[i]);
    (void)printf("], \"kernels\": {");
    for (i = 0; i < KERNELS && seen.kernels[i]; i++)
        (void)printf("%s\"%s\": %llu", i ? ", " : "", seen.kernels[i], seen.packs[i]);
    (void)printf("}}\n");
}

/* Fix the values: that changes nothing in a valid pack, and makes valid any other whose only faults
 * are values. */
static void try_mended(uint8_t *pack, uint32_t size, twin_status status, uint64_t *luck) {
    uint8_t *old = (uint8_t *)room(size);
    memcpy(old, pack, size);
    mend_values(pack, size, luck);
    mend_file(pack, size);
    MUST(!memcmp(pack, old, size) == !status);
    free(old);
    if (status) {
        MUST(try_pack(pack, size, luck) == TWIN_OK);
        seen.mended++;
    }
}

/* Random numbers depend on the bytes alone, so findings can be repeated. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint32_t bytes = (uint32_t)size;
    uint64_t luck = crc_of(data, bytes);
    uint8_t *pack = (uint8_t *)room(size);
    twin_status status;
    MUST(seen.inputs || !atexit(report));
    memcpy(pack, data, size);
    status = try_pack(pack, bytes, &luck);
    if (status && bytes >= HEADER) {
        mend_file(pack, bytes);
        if (memcmp(pack, data, size) != 0)
            status = try_pack(pack, bytes, &luck);
    }
    if (status == TWIN_OK || status == TWIN_ERROR_PADDING || status == TWIN_ERROR_VALUE ||
        status == TWIN_ERROR_OVERFLOW)
        try_mended(pack, bytes, status, &luck);
    seen.inputs++;
    seen.verdicts[-status]++;
    free(pack);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
    uint64_t luck = seed;
    return mutate(data, (uint32_t)size, (uint32_t)most, &luck);
}
