/* Prediction from integers to integers: walks over twins and anchors, a block at a time. */

#include "twin_arith.h"
#include "twin_model.h"

/* Estimates further apart than this count as this far. */
#define FAR_APART 1048575u

/* Memory, as opposed to the pack, has addresses that integers of this size hold. */
static uintptr_t twin_room(uintptr_t size, const twin_kernel *kernel) {
    return (size + kernel->align - 1u) & ~(uintptr_t)(kernel->align - 1u);
}

static int twin_has_lines(const twin_model *model) {
    return twin_is_silu(model) && model->kernel->lines;
}

#if TWIN_WITH_LINES
/* They lie in front of the partial sums. */
static uint32_t *twin_lines_of(const twin_run *run) {
    return (uint32_t *)run->partial - TWIN_LINES;
}
#endif

/* Lay out the scratch from `start` on, an address; returns its size, wherever it starts. */
static uint32_t twin_lay_out(twin_run *run, const twin_model *model, uintptr_t start) {
    const twin_kernel *kernel = model->kernel;
    uintptr_t at = start, width;
    unsigned i;
#if TWIN_NEIGHBOURS
    for (i = 0; i < model->twin_count; i++) {
        unsigned owned = twin_u16(model->counts + 2 * i), chosen = twin_choose(model, owned);
        if (chosen < owned)
            at = start + twin_room(8 * (uintptr_t)chosen, kernel);
    }
#endif
    run->nearest = (uint64_t *)start;
    if (twin_has_lines(model))
        at += 4 * TWIN_LINES;
    run->partial = (void *)at;
    width = model->hidden[0];
    at += twin_room(kernel->partial_bytes * width, kernel);
    for (i = 0; i + 1 < model->layers; i++) {
        width = (model->hidden[i] + kernel->unit - 1u) & ~(uintptr_t)(kernel->unit - 1u);
        run->block[i] = (void *)at;
        at += twin_room(kernel->block_bytes * width, kernel);
    }
    run->room = (void *)at;
    width = model->anchor_size / 2;
    at += twin_room(kernel->room_bytes * width, kernel);
    run->query = (int16_t *)at;
    return (uint32_t)(at + model->anchor_size - start) + kernel->align - 1u;
}

uint32_t twin_scratch_size(const twin_model *model) {
    twin_run nobodys;
    return twin_lay_out(&nobodys, model, 0);
}

twin_status twin_start(twin_run *run, const twin_model *model, void *scratch, uint32_t size,
                       int32_t *members) {
    unsigned i;
    if (size < twin_lay_out(run, model, twin_room((uintptr_t)scratch, model->kernel)))
        return TWIN_ERROR_SCRATCH;
    run->model = model;
    run->members = members;
    run->sum = 0;
    run->deviations = 0;
    run->squares = 0;
    run->reference = 0;
    run->count = 0;
    run->twin = 0;
    run->before = 0;
    run->owned = 0;
    run->chosen = 0;
    run->position = 0;
    for (i = model->features; i % 4; i++)
        run->query[i] = 0;
#if TWIN_WITH_LINES
    if (twin_has_lines(model))
        twin_lines(model->curve, twin_lines_of(run));
#endif
    return TWIN_OK;
}

twin_status twin_begin_raw(twin_run *run, const twin_model *model, void *scratch, uint32_t size,
                           const int16_t *query, int32_t *members) {
    twin_status status = twin_start(run, model, scratch, size, members);
    unsigned i;
    for (i = 0; i < model->features && !status; i++) {
        if (query[i] == INT16_MIN)
            return TWIN_ERROR_QUERY;
        run->query[i] = query[i];
    }
    return status;
}

/* Features of anchor `number`. */
static twin_flash twin_features(const twin_model *model, unsigned number) {
    return model->anchors + (twin_size)number * model->anchor_size;
}

/* Number of the anchor that predicts at this position. */
static unsigned twin_number(const twin_run *run, unsigned position) {
#if TWIN_NEIGHBOURS
    if (run->chosen < run->owned)
        position = (unsigned)run->nearest[position];
#endif
    return run->before + position;
}

/* Where twin `number` begins. */
static twin_flash twin_record(const twin_model *model, unsigned number) {
    return model->twins + number * (twin_size)model->twin_size;
}

static void twin_next_twin(twin_run *run, twin_layer *layer) {
    const twin_model *model = run->model;
    twin_flash record = twin_record(model, run->twin);
    run->before += run->owned;
    run->owned = twin_u16(model->counts + 2 * run->twin);
    run->chosen = twin_choose(model, run->owned);
    run->position = 0;
    run->twin++;
#if TWIN_NEIGHBOURS
    if (run->chosen < run->owned)
        twin_nearest(model, run->query, twin_features(model, run->before), run->owned, run->chosen,
                     run->nearest);
#endif
    twin_layer_at(layer, model, record, record + TWIN_HEAD, 0);
    if (model->kernel->partial_bytes)
        model->kernel->query(layer, run->query, run->partial);
}

static void twin_take(twin_run *run, int32_t estimate) {
    uint32_t apart;
    if (!run->count)
        run->reference = estimate;
    if (run->members)
        run->members[run->count] = estimate;
    run->count++;
    run->sum += estimate;
    apart = (uint32_t)estimate - (uint32_t)run->reference;
    if (estimate < run->reference)
        apart = 0 - apart;
    if (apart > FAR_APART)
        apart = FAR_APART;
    run->squares += (uint64_t)apart * apart;
    run->deviations += estimate < run->reference ? -(int32_t)apart : (int32_t)apart;
}

/* The next `count` anchors of this twin, at most a block of them. */
static void twin_evaluate(twin_run *run, unsigned count, twin_layer *layer) {
    const twin_model *model = run->model;
    const twin_kernel *kernel = model->kernel;
    twin_flash record = twin_record(model, run->twin - 1), at = record + TWIN_HEAD;
    int32_t difference[TWIN_BLOCK];
    unsigned i, depth;
    twin_pairs pairs;
    pairs.query = run->query;
    pairs.partial = run->partial;
    pairs.room = run->room;
    pairs.count = (uint8_t)count;
    for (i = 0; i < TWIN_BLOCK; i++)
        difference[i] = 0;
    for (i = 0; i < kernel->pairs; i++) {
        unsigned position = run->position + (i < count ? i : 0);
        pairs.anchor[i] = twin_features(model, twin_number(run, position));
    }
    for (depth = 0; depth < model->layers; depth++) {
        void *out = depth + 1 < model->layers ? run->block[depth] : 0;
        at = twin_layer_at(layer, model, record, at, depth);
        if (depth)
            kernel->further(layer, run->block[depth - 1], out, difference);
        else
            kernel->first(layer, &pairs, out, difference);
    }
    for (i = 0; i < count; i++) {
        int32_t sum = twin_mulw(difference[i], twin_i16(record + TWIN_HEAD_MULTIPLIER));
        twin_take(run,
                  twin_rsh(sum, twin_u8(record + TWIN_HEAD_SHIFT)) +
                      twin_i32(model->targets + 4 * (twin_size)twin_number(run, run->position)));
        run->position++;
    }
}

uint16_t twin_step(twin_run *run, uint16_t anchors) {
    unsigned left = run->model->members - run->count;
    unsigned stop = anchors < left ? left - anchors : 0; /* where so many are left */
    twin_layer layer;
#if TWIN_WITH_LINES
    if (twin_has_lines(run->model))
        layer.lines = twin_lines_of(run);
#endif
    while (left > stop) {
        unsigned most = run->model->kernel->pairs;
        if (run->position == run->chosen)
            twin_next_twin(run, &layer);
        if (most > left - stop)
            most = left - stop;
        if (most > run->chosen - run->position)
            most = run->chosen - run->position;
        twin_evaluate(run, most, &layer);
        left -= most;
    }
    return (uint16_t)left;
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
    uint32_t root = 0, bit;
    for (bit = (uint32_t)1 << 31; bit; bit >>= 1)
        if ((uint64_t)(root | bit) * (root | bit) <= a)
            root |= bit;
    return root;
}

void twin_read_raw(const twin_run *run, twin_raw *out) {
    uint32_t n = run->count, mean;
    uint64_t sum = (uint64_t)run->sum;
    /* Below 2^32, so the low half of the magnitude is all of it. */
    uint32_t off = (uint32_t)(run->deviations < 0 ? -run->deviations : run->deviations);
    if (run->sum < 0)
        sum = 0 - sum;
    mean = n ? twin_divide(2 * sum + n, 2 * n) : 0;
    out->mean = (int32_t)(run->sum < 0 ? 0 - mean : mean);
    out->root = twin_root(n * run->squares - (uint64_t)off * off);
    out->count = (uint16_t)n;
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
