/* Prediction from integers to integers: walks over twins and anchors, a block at a time. */

#include "twin_arith.h"
#include "twin_model.h"

/* Deviations and asymmetries beyond this count as this. */
#define MOST_APART 1048575u

TWIN_INTERNAL twin_flash twini_layer_at(twini_layer *layer, const twin_model *model,
                                        twin_flash record, twin_flash at, unsigned depth) {
    unsigned outputs = model->hidden[depth], inputs = twini_inputs(model, depth);
    unsigned row = twini_row(model, inputs);
    twini_size kernel = (twini_size)row * outputs;
    layer->inputs = (uint16_t)inputs;
    layer->outputs = (uint16_t)outputs;
    layer->row = (uint16_t)row;
    layer->shift = twini_u8(record + depth);
    layer->fraction = twini_u8(record + TWIN_HEAD_FRACTION + depth);
    layer->wide = (uint8_t)twini_is_wide(model);
    layer->silu = (uint8_t)twini_is_silu(model);
#if TWIN_INTERVALS
    layer->scaled = (uint8_t)twini_is_scaled(model);
#endif
    layer->curve = TWIN_SILU ? model->curve : 0;
    layer->weights = at;
    layer->mirror = at + kernel;
    at += depth ? kernel : 2 * kernel;
    layer->bias = at;
    layer->multiplier = at + 4 * outputs;
    at = layer->multiplier + ((2 * outputs + 3) & ~3u);
    layer->fold = at;
#if TWIN_TARGETS > 1
    layer->fold += (twini_size)model->first * model->apart;
    layer->apart = model->apart;
    layer->targets = model->targets;
    layer->first = model->first;
#endif
    return at;
}

/* Round up to what a kernel aligns to, a constant on devices. Unlike the pack, memory always has
 * addresses that fit a uintptr_t. */
static uintptr_t twini_round_up(uintptr_t size, const twin_kernel *kernel) {
    unsigned align = TWIN_HOST ? kernel->align : 8;
    return (size + align - 1) & ~(uintptr_t)(align - 1);
}

#if TWIN_WITH_LINES
/* Just before the partial sums. */
static uint32_t *twini_lines_of(const twin_run *run) {
    return (uint32_t *)run->partial - TWIN_LINES;
}

static unsigned twini_has_lines(const twin_model *model, const twin_kernel *kernel) {
    return model->silu && kernel->lines;
}
#endif

/* Whether the last layer is stored as well: 1 or 0. */
static unsigned twini_folds_later(const twin_model *model) {
#if TWIN_FOLDS_LATER
    return model->targets > 1;
#else
    (void)model;
    return 0;
#endif
}

/* Lay out the scratch from address `start` on; returns its size, independent of the start, and 0 if
 * the model is not open. */
static uint32_t twini_lay_out(twin_run *run, const twin_model *model, uintptr_t start) {
    const twin_kernel *kernel = model->kernel;
    uintptr_t at, width;
    unsigned i;
    if (!kernel)
        return 0;
    start = twini_round_up(start, kernel);
    at = start;
#if TWIN_NEIGHBORS
    for (i = 0; i < model->twin_count; i++) {
        unsigned owned = twini_u16(model->counts + 2 * i);
        unsigned chosen = twini_chosen(model->neighbors, owned);
        if (chosen < owned)
            at = start + twini_round_up(8 * (uintptr_t)chosen, kernel);
    }
    run->nearest = (uint64_t *)start;
#endif
#if TWIN_WITH_LINES
    if (twini_has_lines(model, kernel))
        at += 4 * TWIN_LINES;
#endif
    run->partial = (void *)at;
    width = model->hidden[0];
    at += twini_round_up(kernel->partial_bytes * width, kernel);
    for (i = 0; i + 1 < model->layers + twini_folds_later(model); i++) {
        width = (model->hidden[i] + kernel->unit - 1u) & ~(uintptr_t)(kernel->unit - 1u);
        run->block[i] = (void *)at;
        at += twini_round_up(kernel->block_bytes * width, kernel);
    }
#if TWIN_HOST
    run->work = (void *)at;
    at += kernel->work_bytes;
#endif
#if TWIN_MAP
    width = (uintptr_t)run->partial + sizeof(twini_place) * model->features;
    if (model->map && at < width) /* it needs room before the first layer does */
        at = twini_round_up(width, kernel);
#endif
    run->room = (void *)at;
    width = model->anchor_size / 2;
    at += twini_round_up(kernel->room_bytes * width, kernel);
    run->query = (int16_t *)at;
    at += model->anchor_size;
    return (uint32_t)(at - start) + (TWIN_HOST ? kernel->align : 8) - 1;
}

uint32_t twin_scratch_size(const twin_model *model) {
    twin_run unused;
    return twini_lay_out(&unused, model, 0);
}

TWIN_INTERNAL TWIN_NOT_INLINE twin_status twini_begin(twin_run *run, const twin_model *model,
                                                      void *scratch, uint32_t size,
                                                      int32_t *members) {
    uint32_t needed;
    unsigned i;
    run->model = model;
    run->kernel = model ? model->kernel : 0;
    run->members = members;
    for (i = 0; i < TWIN_TARGETS; i++)
        twini_begin_sums(run->sums + i);
#if TWIN_INTERVALS
    run->outside = 0;
    run->missing = 0;
#endif
    run->count = 0;
    run->twin = 0;
    run->before = 0;
    run->owned = 0;
    run->chosen = 0;
    run->position = 0;
    if (!run->kernel)
        return twini_refuse(run, TWIN_ERROR_MODEL);
    needed = twini_lay_out(run, model, (uintptr_t)scratch);
    if (!scratch || needed > size)
        return twini_refuse(run, TWIN_ERROR_SCRATCH);
    twini_set_status(run, TWIN_ERROR_EARLY);
    run->total = model->members;
#if TWIN_NEIGHBORS
    run->neighbors = model->neighbors;
    run->searched = 0;
#endif
    for (i = model->features; TWIN_MAP ? i < model->anchor_size / 2u : i % 4; i++)
        run->query[i] = 0;
#if TWIN_WITH_LINES
    if (twini_has_lines(model, run->kernel))
        twini_lines(model->curve, twini_lines_of(run));
#endif
    return TWIN_OK;
}

twin_status twin_begin_raw(twin_run *run, const twin_model *model, void *scratch, uint32_t size,
                           const int16_t *query, int32_t *members) {
    twin_status status = twini_begin(run, model, scratch, size, members);
    unsigned i;
    for (i = 0; !status && i < model->features; i++)
        status = twini_set_feature(run, i, query[i]);
    return status;
}

/* Features of anchor `number`. */
static twin_flash twini_features(const twin_model *model, unsigned number) {
    return model->anchors + (twini_size)number * model->anchor_size;
}

/* Where twin `number` begins. */
static twin_flash twini_record(const twin_model *model, unsigned number) {
    return model->twins + number * (twini_size)model->twin_size;
}

static void twini_next_twin(twin_run *run, twini_layer *layer) {
    const twin_model *model = run->model;
    twin_flash record = twini_record(model, run->twin);
    run->before += run->owned;
    run->owned = twini_u16(model->counts + 2 * run->twin);
    run->chosen = run->owned;
#if TWIN_NEIGHBORS
    run->chosen = twini_chosen(run->neighbors, run->owned);
    run->searched = 0;
#endif
    run->position = 0;
#if TWIN_MAP
    if (!run->twin && model->map)
        twini_map(run);
#endif
    run->twin++;
    if (TWIN_PARTIAL || run->kernel->query) {
        (void)twini_layer_at(layer, model, record, record + TWIN_HEAD, 0);
        run->kernel->query(layer, run->query, run->partial);
    }
}

static uint32_t twini_at_most(uint32_t apart) {
    return apart < MOST_APART ? apart : MOST_APART;
}

static void twini_add_estimate(twin_run *run, unsigned target, int32_t estimate) {
    twin_sums *sums = run->sums + target;
    uint32_t apart;
    if (!run->count)
        sums->reference = estimate;
    if (run->members)
        run->members[target * run->total + run->count] = estimate;
    sums->sum += estimate;
    apart = (uint32_t)estimate - (uint32_t)sums->reference;
    if (estimate < sums->reference)
        apart = 0 - apart;
    apart = twini_at_most(apart);
    sums->squares += (uint64_t)apart * apart;
    sums->deviations += estimate < sums->reference ? -(int32_t)apart : (int32_t)apart;
}

/* Convert a total of an output, or of the second one, to its units. */
TWIN_SHARED int32_t twini_units(twin_flash head, unsigned second, int32_t total) {
    int32_t units = twini_mulw(total, twini_i16(head + TWIN_HEAD_MULTIPLIER + 2 * second));
    return twini_rsh(units, twini_u8(head + TWIN_HEAD_SHIFT + second));
}

#if TWIN_INTERVALS
/* Add the other signals of a pair. */
static void twini_add_signals(twin_sums *sums, int32_t asymmetry, int32_t difficulty) {
    uint32_t apart = twini_at_most((uint32_t)(asymmetry < 0 ? -asymmetry : asymmetry));
    sums->asymmetries += (uint64_t)apart * apart;
    sums->difficulty += (uint32_t)difficulty;
}
#endif

/* Add the estimate of a target by an anchor, from the totals of the pair. The weights of the output
 * are at `fold`, and what says how to convert totals is in the head of the twin, or before them. */
static void twini_add_pair(twin_run *run, unsigned target, twini_size number, twin_flash head,
                           twin_flash fold, const int32_t *total) {
    const twin_model *model = run->model;
    int32_t difference = *total;
    twin_flash bias = head + TWIN_HEAD_BIAS;
#if TWIN_TARGETS > 1
    if (model->first + target) {
        head = fold - TWIN_OUTPUT - TWIN_HEAD_SHIFT;
        bias = fold - 4;
    }
#endif
#if TWIN_INTERVALS
    if (twini_is_scaled(model)) {
        int32_t back = total[TWIN_BLOCK];
        int32_t both = difference + back + twini_i32(bias);
        int32_t second = total[2 * TWIN_BLOCK] + twini_i32(fold);
        twini_add_signals(run->sums + target, twini_units(head, 0, both),
                          twini_units(head, 1, second));
        difference -= back;
    }
#else
    (void)bias;
    (void)fold;
#endif
    number += target * (twini_size)model->anchor_count;
    twini_add_estimate(run, target,
                       twini_units(head, 0, difference) + twini_i32(model->values + 4 * number));
}

/* Evaluate the next `count` anchors of this twin, at most a block. */
static void twini_evaluate(twin_run *run, unsigned count, twini_layer *layer) {
    const twin_model *model = run->model;
    const twin_kernel *kernel = run->kernel;
    twin_flash record = twini_record(model, run->twin - 1), at = record + TWIN_HEAD;
    int32_t totals[TWIN_TARGETS * TWIN_TOTALS];
    unsigned i, t, depth, most = kernel->pairs;
    unsigned numbered = TWIN_HOST ? count : most; /* two loops are faster, but larger */
    twini_pairs pairs;
    pairs.query = run->query;
    pairs.partial = run->partial;
    pairs.room = run->room;
    pairs.count = (uint8_t)count;
    for (i = 0; i < twini_targets(model) * TWIN_TOTALS; i++)
        totals[i] = 0;
#if TWIN_FOLDS_LATER
    layer->block = run->block[model->layers - 1];
#endif
    for (i = 0; i < numbered; i++) {
        unsigned position = run->position + (i < count ? i : 0);
        pairs.anchor[i] = twini_features(model, twini_number(run, position));
    }
    for (; i < most; i++)
        pairs.anchor[i] = pairs.anchor[0];
    for (depth = 0; depth < model->layers; depth++) {
        void *out = depth + 1 < model->layers ? run->block[depth] : 0;
        at = twini_layer_at(layer, model, record, at, depth);
        if (depth)
            kernel->further(layer, run->block[depth - 1], out, totals);
        else
            kernel->first(layer, &pairs, out, totals);
    }
    for (i = 0; i < count; i++) {
        twini_size number = twini_number(run, run->position++);
        for (t = 0; t < twini_targets(model); t++)
            twini_add_pair(run, t, number, record, TWIN_TARGETS > 1 ? twini_fold_of(layer, t) : at,
                           totals + TWIN_TOTALS * t + i);
        run->count++;
    }
}

uint16_t twin_step(twin_run *run, uint16_t anchors) {
    unsigned left = run->total - run->count;
    twini_layer layer;
#if TWIN_WITH_LINES
    if (left && twini_has_lines(run->model, run->kernel))
        layer.lines = twini_lines_of(run);
#endif
#if TWIN_HOST
    if (left) { /* a run that was refused has nothing to work in */
        layer.kernel = run->kernel;
        layer.work = run->work;
    }
#endif
    while (anchors && left) {
        unsigned most = run->kernel->pairs;
        if (run->position == run->chosen)
            twini_next_twin(run, &layer);
#if TWIN_NEIGHBORS
        if (run->chosen < run->owned &&
            !twini_search(run, twini_features(run->model, run->before))) {
            anchors--;
            continue;
        }
#endif
        if (most > anchors)
            most = anchors;
        if (most > run->chosen - run->position)
            most = run->chosen - run->position;
        twini_evaluate(run, most, &layer);
        anchors = (uint16_t)(anchors - most);
        left -= most;
    }
    if (run->count)
        twini_set_status(run, left ? TWIN_MORE : TWIN_OK);
    return (uint16_t)left;
}

twin_status twin_predict_raw(const twin_model *model, void *scratch, uint32_t size,
                             const int16_t *query, twin_raw *out, int32_t *members) {
    twin_run run;
    (void)twin_begin_raw(&run, model, scratch, size, query, members); /* refused: no steps */
    (void)twin_step(&run, TWIN_ALL);
    return twin_read_raw(&run, out);
}
