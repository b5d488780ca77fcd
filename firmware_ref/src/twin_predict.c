/* Prediction from integers to integers: walks over twins and anchors, a block at a time. */

#include "twin_arith.h"
#include "twin_model.h"
#include "twin_prepared.h"

/* Estimates further apart than this count as this far. */
#define FAR_APART 1048575u

/* Totals per pair. */
#define TOTALS (TWIN_INTERVALS ? 3 : 1)

#if TWIN_INTERVALS
#define WIDEST 0x7FFFFFFFu /* half of an interval */
#endif

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
    layer->fold = layer->multiplier + ((2 * outputs + 3) & ~3u);
    return layer->fold;
}

/* A constant on devices. */
static unsigned twini_align_of(const twin_model *model) {
#if TWIN_HOST
    return model->prepared ? TWIN_ROOMY : model->kernel->align;
#else
    (void)model;
    return 8;
#endif
}

/* Unlike the pack, memory always has addresses that fit a uintptr_t. */
static uintptr_t twini_room(uintptr_t size, const twin_model *model) {
    return (size + twini_align_of(model) - 1) & ~(uintptr_t)(twini_align_of(model) - 1);
}

static int twini_has_lines(const twin_model *model) {
    return twini_is_silu(model) && model->kernel->lines;
}

#if TWIN_WITH_LINES
/* Just before the partial sums. */
static uint32_t *twini_lines_of(const twin_run *run) {
    return (uint32_t *)run->partial - TWIN_LINES;
}
#endif

/* Lay out the scratch from address `start` on; returns its size, independent of the start, and 0 if
 * the model is not open. */
static uint32_t twini_lay_out(twin_run *run, const twin_model *model, uintptr_t start) {
    const twin_kernel *kernel = model->kernel;
    uintptr_t at, width;
    unsigned i;
    if (!kernel)
        return 0;
    start = twini_room(start, model);
    at = start;
#if TWIN_NEIGHBORS
    for (i = 0; i < model->twin_count; i++) {
        unsigned owned = twini_u16(model->counts + 2 * i);
        unsigned chosen = twini_choose(model->neighbors, owned);
        if (chosen < owned)
            at = start + twini_room(8 * (uintptr_t)chosen, model);
    }
    run->nearest = (uint64_t *)start;
#endif
#if TWIN_HOST
    if (model->prepared) {
        run->query = (int16_t *)twini_lay_out_prepared(run, model, at);
        return (uint32_t)((uintptr_t)run->query + model->anchor_size - start) +
               twini_align_of(model) - 1;
    }
#endif
    if (twini_has_lines(model))
        at += 4 * TWIN_LINES;
    run->partial = (void *)at;
    width = model->hidden[0];
    at += twini_room(kernel->partial_bytes * width, model);
    for (i = 0; i + 1 < model->layers; i++) {
        width = (model->hidden[i] + kernel->unit - 1u) & ~(uintptr_t)(kernel->unit - 1u);
        run->block[i] = (void *)at;
        at += twini_room(kernel->block_bytes * width, model);
    }
#if TWIN_HOST
    run->work = (void *)at;
    at += kernel->work_bytes;
#endif
    run->room = (void *)at;
    width = model->anchor_size / 2;
    at += twini_room(kernel->room_bytes * width, model);
    run->query = (int16_t *)at;
    return (uint32_t)(at + model->anchor_size - start) + twini_align_of(model) - 1;
}

uint32_t twin_scratch_size(const twin_model *model) {
    twin_run nobodys;
    return twini_lay_out(&nobodys, model, 0);
}

TWIN_INTERNAL twin_status twini_start(twin_run *run, const twin_model *model, void *scratch,
                                      uint32_t size, int32_t *members) {
    uint32_t needed;
    unsigned i;
    run->model = model;
    run->members = members;
    run->sum = 0;
    run->deviations = 0;
    run->squares = 0;
#if TWIN_INTERVALS
    run->asymmetries = 0;
    run->difficulty = 0;
    run->outside = 0;
    run->missing = 0;
#endif
    run->reference = 0;
    run->total = 0;
    run->count = 0;
    run->twin = 0;
    run->before = 0;
    run->owned = 0;
    run->chosen = 0;
    run->position = 0;
    needed = twini_lay_out(run, model, (uintptr_t)scratch);
    if (!needed)
        return twini_refuse(run, TWIN_ERROR_MODEL);
    if (!scratch || needed > size)
        return twini_refuse(run, TWIN_ERROR_SCRATCH);
    run->status = TWIN_ERROR_EARLY;
    run->total = model->members;
#if TWIN_NEIGHBORS
    run->neighbors = model->neighbors;
    run->sought = 0;
#endif
    for (i = model->features; i % 4; i++)
        run->query[i] = 0;
#if TWIN_WITH_LINES
    if (twini_has_lines(model))
        twini_lines(model->curve, twini_lines_of(run));
#endif
    return TWIN_OK;
}

twin_status twin_begin_raw(twin_run *run, const twin_model *model, void *scratch, uint32_t size,
                           const int16_t *query, int32_t *members) {
    twin_status status = twini_start(run, model, scratch, size, members);
    unsigned i;
    for (i = 0; !status && i < model->features; i++) {
#if TWIN_INTERVALS
        status = twini_ask(run, i, query[i]);
#else
        if (query[i] == INT16_MIN)
            return twini_refuse(run, TWIN_ERROR_QUERY);
        run->query[i] = query[i];
#endif
    }
    return status;
}

#if TWIN_INTERVALS
TWIN_INTERNAL twin_status twini_ask(twin_run *run, unsigned i, int16_t feature) {
    uint32_t bit = (uint32_t)1 << (i < 31 ? i : 31);
    twin_flash entry = run->model->domain;
    if (entry) {
        entry += 6 * (uint16_t)i;
        if (feature == INT16_MIN) {
            feature = (int16_t)twini_i16(entry + 4);
            run->missing |= bit;
        } else if (feature < twini_i16(entry) || feature > twini_i16(entry + 2)) {
            run->outside |= bit;
        }
    }
    run->query[i] = feature;
    return feature == INT16_MIN ? twini_refuse(run, TWIN_ERROR_QUERY) : TWIN_OK;
}
#endif

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
    run->chosen = twini_choose(run->neighbors, run->owned);
    run->sought = 0;
#endif
    run->position = 0;
    run->twin++;
#if TWIN_HOST
    if (model->prepared) {
        twini_ask_prepared(run);
        return;
    }
#endif
    twini_layer_at(layer, model, record, record + TWIN_HEAD, 0);
    if (model->kernel->partial_bytes)
        model->kernel->query(layer, run->query, run->partial);
}

/* A distance, clamped. */
static uint32_t twini_near(uint32_t apart) {
    return apart < FAR_APART ? apart : FAR_APART;
}

static void twini_take(twin_run *run, int32_t estimate) {
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
    apart = twini_near(apart);
    run->squares += (uint64_t)apart * apart;
    run->deviations += estimate < run->reference ? -(int32_t)apart : (int32_t)apart;
}

/* Convert a total of an output, or of the second one, to its units. */
TWIN_SHARED int32_t twini_units(twin_flash head, unsigned second, int32_t total) {
    int32_t units = twini_mulw(total, twini_i16(head + TWIN_HEAD_MULTIPLIER + 2 * second));
    return twini_rsh(units, twini_u8(head + TWIN_HEAD_SHIFT + second));
}

#if TWIN_INTERVALS
/* Add the other signals of a pair: asymmetry and difficulty. */
static void twini_take_signals(twin_run *run, int32_t asymmetry, int32_t difficulty) {
    uint32_t apart = twini_near((uint32_t)(asymmetry < 0 ? -asymmetry : asymmetry));
    run->asymmetries += (uint64_t)apart * apart;
    run->difficulty += (uint32_t)difficulty;
}
#endif

/* Evaluate the next `count` anchors of this twin, at most a block. */
static void twini_evaluate(twin_run *run, unsigned count, twini_layer *layer) {
    const twin_model *model = run->model;
    const twin_kernel *kernel = model->kernel;
    twin_flash record = twini_record(model, run->twin - 1), at = record + TWIN_HEAD;
    int32_t totals[TOTALS * TWIN_BLOCK];
    unsigned i, depth = 0;
    twini_pairs pairs;
    pairs.query = run->query;
    pairs.partial = run->partial;
    pairs.room = run->room;
    pairs.count = (uint8_t)count;
    for (i = 0; i < TOTALS * TWIN_BLOCK; i++)
        totals[i] = 0;
#if TWIN_HOST
    if (model->prepared) {
        at = twini_prepared_totals(run, count, totals);
        depth = model->layers; /* all of them are done */
    }
    if (!depth)
#endif
        for (i = 0; i < kernel->pairs; i++) {
            unsigned position = run->position + (i < count ? i : 0);
            pairs.anchor[i] = twini_features(model, twini_number(run, position));
        }
    for (; depth < model->layers; depth++) {
        void *out = depth + 1 < model->layers ? run->block[depth] : 0;
        at = twini_layer_at(layer, model, record, at, depth);
        if (depth)
            kernel->further(layer, run->block[depth - 1], out, totals);
        else
            kernel->first(layer, &pairs, out, totals);
    }
    for (i = 0; i < count; i++) {
        twini_size number = twini_number(run, run->position++);
        int32_t difference = totals[i];
#if TWIN_INTERVALS
        if (twini_is_scaled(model)) {
            int32_t back = totals[TWIN_BLOCK + i];
            int32_t both = difference + back + twini_i32(record + TWIN_HEAD_BIAS);
            int32_t hard = totals[2 * TWIN_BLOCK + i] + twini_i32(at);
            twini_take_signals(run, twini_units(record, 0, both), twini_units(record, 1, hard));
            difference -= back;
        }
#endif
        twini_take(run,
                   twini_units(record, 0, difference) + twini_i32(model->targets + 4 * number));
    }
}

uint16_t twin_step(twin_run *run, uint16_t anchors) {
    unsigned left = run->total - run->count;
    twini_layer layer;
#if TWIN_HOST
    const twini_form *form = left && run->model->prepared ? run->model->prepared->form : 0;
#endif
#if TWIN_WITH_LINES
    if (left && twini_has_lines(run->model))
        layer.lines = twini_lines_of(run);
#endif
#if TWIN_HOST
    if (left)
        layer.work = run->work;
    if (form && form->enter)
        form->enter();
#endif
    while (anchors && left) {
        unsigned most = run->model->kernel->pairs;
        if (run->position == run->chosen)
            twini_next_twin(run, &layer);
#if TWIN_NEIGHBORS
        if (run->chosen < run->owned && !twini_seek(run, twini_features(run->model, run->before))) {
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
#if TWIN_HOST
    if (form && form->leave)
        form->leave();
#endif
    if (run->count)
        run->status = left ? TWIN_MORE : TWIN_OK;
    return (uint16_t)left;
}

/* In 16-bit digits: 64-bit division is a large library function on small devices. */
TWIN_LENT uint32_t twini_divide(uint64_t a, uint32_t n) {
    uint32_t rest = (uint32_t)(a >> 32), high;
    rest = (rest % n) << 16 | ((uint32_t)a >> 16);
    high = rest / n;
    rest = (rest % n) << 16 | ((uint32_t)a & 65535u);
    return high << 16 | rest / n;
}

/* The largest s with s * s <= a, bit by bit. */
TWIN_LENT uint32_t twini_root(uint64_t a) {
    uint32_t root = 0, bit;
    for (bit = (uint32_t)1 << 31; bit; bit >>= 1)
        if ((uint64_t)(root | bit) * (root | bit) <= a)
            root |= bit;
    return root;
}

#if TWIN_INTERVALS
/* a * b >> shift, but at most WIDEST. */
TWIN_LENT uint32_t twini_product(uint32_t a, uint32_t b, uint8_t shift) {
    uint64_t product = ((uint64_t)a * b) >> shift;
    return product >> 31 ? WIDEST : (uint32_t)product;
}

/* Scale and interval, once mean and spread are known. */
static void twini_doubt(const twin_run *run, twin_raw *out) {
    const twin_model *model = run->model;
    twin_flash weight = model->intervals;
    uint32_t n = run->count, signal[4];
    uint64_t square = 0;
    unsigned i;
    signal[0] = out->root;
    signal[1] = twini_root(n * run->asymmetries);
    signal[2] = run->difficulty >> 31 ? 0 : run->difficulty;
    signal[3] = 16 * n;
    for (i = 0; i < 4; i++) {
        uint32_t part = twini_product(twini_u32(weight), signal[i], 12);
        square += (uint64_t)part * part;
        weight += 4;
    }
    out->scale = twini_root(square) / n;
    twini_bound(model, out);
}
#endif

TWIN_INTERNAL void twini_combine(const twin_run *run, twin_raw *out) {
    uint32_t n = run->count, mean;
    uint64_t sum = (uint64_t)run->sum;
    /* Below 2^32, so the low half of the magnitude suffices. */
    uint32_t off = (uint32_t)(run->deviations < 0 ? -run->deviations : run->deviations);
    if (run->sum < 0)
        sum = 0 - sum;
    mean = n ? twini_divide(2 * sum + n, 2 * n) : 0;
    out->mean = (int32_t)(run->sum < 0 ? 0 - mean : mean);
    out->root = twini_root(n * run->squares - (uint64_t)off * off);
    out->count = (uint16_t)n;
#if TWIN_INTERVALS
    out->intervals = n && twini_is_scaled(run->model);
    if (out->intervals)
        twini_doubt(run, out);
#endif
}

twin_status twin_read_raw(const twin_run *run, twin_raw *out) {
    twini_combine(run, out);
#if TWIN_INTERVALS
    if (!out->intervals) {
        out->scale = 0;
        out->low = out->high = 0;
    }
    out->outside = run->outside;
    out->missing = run->missing;
    out->points = 0;
#endif
    return (twin_status)run->status;
}

twin_status twin_predict_raw(const twin_model *model, void *scratch, uint32_t size,
                             const int16_t *query, twin_raw *out, int32_t *members) {
    twin_run run;
    if (!twin_begin_raw(&run, model, scratch, size, query, members))
        twin_step(&run, TWIN_ALL);
    return twin_read_raw(&run, out);
}
