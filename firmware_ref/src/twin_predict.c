/* Prediction from integers to integers: walks over twins and anchors, a block at a time. */

#include "twin_arith.h"
#include "twin_model.h"

/* Estimates further apart than this count as this far. */
#define FAR_APART ((int64_t)1048575)

/* How many of a twin's anchors predict. */
static uint16_t twin_choose(const twin_model *model, uint16_t owned) {
    return model->neighbours && model->neighbours < owned ? model->neighbours : owned;
}

enum { NEAREST, PARTIAL, BLOCKS, QUERY = BLOCKS + 2, END, PLACES };

/* Where everything in the scratch begins. */
static void twin_lay_out(const twin_model *model, uint32_t *place) {
    const twin_kernel *kernel = model->kernel;
    uint32_t bytes[END] = {0};
    uint16_t i;
    for (i = 0; i < model->twin_count; i++) {
        uint16_t owned = twin_u16(model->counts + 2 * i), chosen = twin_choose(model, owned);
        if (chosen < owned)
            bytes[NEAREST] = 8 * (uint32_t)chosen;
    }
    bytes[PARTIAL] = (uint32_t)kernel->partial_bytes * model->hidden[0];
    for (i = 0; i + 1 < model->layers; i++)
        bytes[BLOCKS + i] = kernel->block_bytes * twin_align(model->hidden[i], kernel->unit);
    bytes[QUERY] = 2 * twin_align(model->features, 4);
    place[0] = 0;
    for (i = 0; i < END; i++)
        place[i + 1] = place[i] + twin_align(bytes[i], kernel->align);
}

uint32_t twin_scratch_size(const twin_model *model) {
    uint32_t place[PLACES];
    twin_lay_out(model, place);
    return place[END] + model->kernel->align - 1u; /* whatever its start is aligned to */
}

twin_status twin_start(twin_run *run, const twin_model *model, void *scratch, uint32_t size,
                       int32_t *members) {
    uint8_t *start = (uint8_t *)scratch;
    uint32_t place[PLACES], align = model->kernel->align;
    uint16_t i;
    if (size < twin_scratch_size(model))
        return TWIN_ERROR_SCRATCH;
    twin_lay_out(model, place);
    start += (0 - (uintptr_t)start) & (align - 1);
    run->model = model;
    run->nearest = (uint64_t *)(void *)(start + place[NEAREST]);
    run->partial = start + place[PARTIAL];
    run->block[0] = start + place[BLOCKS];
    run->block[1] = start + place[BLOCKS + 1];
    run->query = (int16_t *)(void *)(start + place[QUERY]);
    run->members = members;
    run->squares = 0;
    run->deviations = 0;
    run->sum = 0;
    run->reference = 0;
    run->count = 0;
    run->twin = UINT16_MAX; /* so that the first step begins twin 0 */
    run->anchor = 0;
    run->position = 0;
    run->chosen = 0;
    run->owned = 0;
    for (i = model->features; i % 4; i++)
        run->query[i] = 0;
    return TWIN_OK;
}

twin_status twin_begin_raw(twin_run *run, const twin_model *model, void *scratch, uint32_t size,
                           const int16_t *query, int32_t *members) {
    twin_status status = twin_start(run, model, scratch, size, members);
    uint16_t i;
    for (i = 0; i < model->features && !status; i++) {
        if (query[i] == INT16_MIN)
            return TWIN_ERROR_QUERY;
        run->query[i] = query[i];
    }
    return status;
}

static twin_flash twin_record(const twin_run *run) {
    return run->model->twins + run->twin * run->model->twin_size;
}

static void twin_next_twin(twin_run *run) {
    const twin_model *model = run->model;
    run->twin++;
    run->anchor = (uint16_t)(run->anchor + run->owned);
    run->owned = twin_u16(model->counts + 2 * (uint32_t)run->twin);
    run->chosen = twin_choose(model, run->owned);
    run->position = 0;
#if TWIN_NEIGHBOURS
    if (run->chosen < run->owned)
        twin_nearest(model, run->query,
                     model->anchors + run->anchor * 2 * twin_align(model->features, 4), run->owned,
                     run->chosen, run->nearest);
#endif
    if (model->kernel->partial_bytes) {
        twin_flash record = twin_record(run);
        twin_layer layer;
        twin_layer_at(&layer, model, record, record + TWIN_HEAD, 0);
        model->kernel->query(&layer, run->query, run->partial);
    }
}

/* Number of the anchor that predicts at this position. */
static uint32_t twin_anchor_at(const twin_run *run, uint16_t position) {
#if TWIN_NEIGHBOURS
    if (run->chosen < run->owned)
        return run->anchor + (uint32_t)run->nearest[position];
#endif
    return (uint32_t)run->anchor + position;
}

static void twin_take(twin_run *run, int32_t estimate) {
    int64_t d;
    if (!run->count)
        run->reference = estimate;
    if (run->members)
        run->members[run->count] = estimate;
    run->count++;
    run->sum += estimate;
    d = (int64_t)estimate - run->reference;
    d = d > FAR_APART ? FAR_APART : d < -FAR_APART ? -FAR_APART : d;
    run->deviations += d;
    run->squares += (uint64_t)(d * d);
}

/* The next `count` anchors of this twin, at most a block of them. */
static void twin_evaluate(twin_run *run, uint8_t count) {
    const twin_model *model = run->model;
    const twin_kernel *kernel = model->kernel;
    twin_flash record = twin_record(run), at = record + TWIN_HEAD;
    uint32_t number[TWIN_BLOCK], row = 2 * twin_align(model->features, 4);
    int32_t difference[TWIN_BLOCK], multiplier = twin_i16(record + TWIN_HEAD_MULTIPLIER);
    uint8_t shift = twin_u8(record + TWIN_HEAD_SHIFT), i, depth;
    twin_pairs pairs;
    pairs.query = run->query;
    pairs.partial = run->partial;
    pairs.count = count;
    for (i = 0; i < kernel->pairs; i++) {
        number[i] = twin_anchor_at(run, (uint16_t)(run->position + (i < count ? i : 0)));
        pairs.anchor[i] = model->anchors + number[i] * row;
        difference[i] = 0;
    }
    for (depth = 0; depth < model->layers; depth++) {
        void *out = depth + 1 < model->layers ? run->block[depth] : 0;
        twin_layer layer;
        at = twin_layer_at(&layer, model, record, at, depth);
        if (depth)
            kernel->further(&layer, run->block[depth - 1], out, difference);
        else
            kernel->first(&layer, &pairs, out, difference);
    }
    for (i = 0; i < count; i++)
        twin_take(run, twin_rsh(twin_mulw(difference[i], multiplier), shift) +
                           twin_i32(model->targets + 4 * number[i]));
    run->position = (uint16_t)(run->position + count);
}

uint16_t twin_step(twin_run *run, uint16_t anchors) {
    uint16_t total = run->model->members;
    while (anchors && run->count < total) {
        uint16_t most = run->model->kernel->pairs;
        if (run->position == run->chosen)
            twin_next_twin(run);
        if (most > anchors)
            most = anchors;
        if (most > run->chosen - run->position)
            most = (uint16_t)(run->chosen - run->position);
        twin_evaluate(run, (uint8_t)most);
        anchors = (uint16_t)(anchors - most);
    }
    return (uint16_t)(total - run->count);
}

/* a / n rounded down, for a below 2^48 and n below 2^14, in digits of 16 bits: a 64-bit division is
 * a large call on small devices. */
static uint32_t twin_divide(uint64_t a, uint32_t n) {
    uint32_t rest = (uint32_t)(a >> 32), high;
    rest = (rest % n) << 16 | ((uint32_t)a >> 16);
    high = rest / n;
    rest = (rest % n) << 16 | ((uint32_t)a & 65535u);
    return high << 16 | rest / n;
}

/* The largest s with s * s <= a, bit by bit. */
static uint32_t twin_root(uint64_t a) {
    uint64_t bit = (uint64_t)1 << 62, root = 0;
    for (; bit; bit >>= 2) {
        uint64_t next = root + bit;
        root >>= 1;
        if (a >= next) {
            a -= next;
            root += bit;
        }
    }
    return (uint32_t)root;
}

void twin_read_raw(const twin_run *run, twin_raw *out) {
    uint32_t n = run->count;
    uint64_t size = run->sum < 0 ? 0 - (uint64_t)run->sum : (uint64_t)run->sum;
    uint64_t off = run->deviations < 0 ? 0 - (uint64_t)run->deviations : (uint64_t)run->deviations;
    int32_t mean = n ? (int32_t)twin_divide(2 * size + n, 2 * n) : 0;
    out->mean = run->sum < 0 ? -mean : mean;
    out->root = twin_root(n * run->squares - off * off);
    out->count = run->count;
}

twin_status twin_predict_raw(const twin_model *model, void *scratch, uint32_t size,
                             const int16_t *query, twin_raw *out, int32_t *members) {
    twin_run run;
    twin_status status = twin_begin_raw(&run, model, scratch, size, query, members);
    if (!status) {
        twin_step(&run, UINT16_MAX);
        twin_read_raw(&run, out);
    }
    return status;
}
