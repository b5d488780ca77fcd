/* Prepares a model for a host's processor: a prepared model is a kernel of its own, in the caller's
 * memory. */

#include "twin_prepared.h"

#if TWIN_HOST

#include "../include/twin_host.h"
#include <string.h>

static float twini_dot(const twini_layer *layer, twin_flash row, twin_flash features) {
    int64_t sum = 0;
    uint32_t i;
    for (i = 0; i < layer->inputs; i++)
        sum += twini_weight(row, i, layer->wide) * twini_i16(features + 2 * i);
    return (float)sum;
}

/* The mean activation of an output of the first layer, over the pairs of some anchors. */
static float twini_typical(const twin_model *model, const twini_layer *layer, uint32_t o,
                           unsigned first, unsigned count) {
    float left[TWIN_EIGHT], right[TWIN_EIGHT], bias = (float)twini_i32(layer->bias + 4 * o),
                                               sum = 0;
    unsigned i, k;
    for (i = 0; i < count; i++) {
        twin_flash anchor = model->anchors + (twini_size)(first + i) * model->anchor_size;
        left[i] = twini_dot(layer, layer->weights + o * (twini_size)layer->row, anchor) + bias;
        right[i] = twini_dot(layer, layer->mirror + o * (twini_size)layer->row, anchor);
    }
    for (i = 0; i < count; i++)
        for (k = 0; k < count; k++)
            sum += left[i] + right[k] > 0 ? left[i] + right[k] : 0;
    sum *= (float)twini_i16(layer->multiplier + 2 * o) / (float)(count * count);
    return sum / 65536 / (float)((uint32_t)1 << layer->shift);
}

/* Rows of the last of two layers with relu, sorted by how often their output is zero, most often
 * first, as the pairs of some of the twin's anchors show: a kernel may then skip several outputs at
 * once. Only the speed depends on it, never a bit of a prediction. */
static void twini_rank_rows(uint16_t *ranked, const twin_model *model, twin_flash record,
                            unsigned first, unsigned owned) {
    float usual[TWIN_WIDEST], rank[TWIN_WIDEST];
    twini_layer layer, last;
    twin_flash at = twini_layer_at(&layer, model, record, record + TWIN_HEAD, 0);
    unsigned count = owned < TWIN_EIGHT ? owned : TWIN_EIGHT;
    uint32_t o, i;
    (void)twini_layer_at(&last, model, record, at, 1);
    for (o = 0; o < layer.outputs; o++)
        usual[o] = twini_typical(model, &layer, o, first, count);
    for (o = 0; o < last.outputs; o++) {
        twin_flash row = last.weights + o * (twini_size)last.row;
        float sum = (float)twini_i32(last.bias + 4 * o), size = 1;
        for (i = 0; i < layer.outputs; i++) {
            float weight = (float)twini_weight(row, i, last.wide);
            sum += weight * usual[i];
            size += weight * weight;
        }
        rank[o] = sum * (sum < 0 ? -sum : sum) / size;
    }
    for (o = 0; o < last.outputs; o++) { /* insertion sort */
        for (i = o; i && rank[ranked[i - 1]] > rank[o]; i--)
            ranked[i] = ranked[i - 1];
        ranked[i] = (uint16_t)o;
    }
}

/* The same walk lays out memory twice: first to measure it, from address 0 and without writing,
 * then for real. */
typedef struct twini_walk {
    uintptr_t at;
    int measuring;
    uint32_t table_bytes; /* of all tables together */
} twini_walk;

static void *twini_reserve(twini_walk *walk, uintptr_t bytes) {
    uintptr_t here = (walk->at + TWIN_ROOMY - 1) & ~(uintptr_t)(TWIN_ROOMY - 1);
    walk->at = here + bytes;
    if (walk->measuring)
        return 0;
    memset((void *)here, 0, bytes);
    return (void *)here;
}

static uint16_t twini_widest(const twin_model *model) {
    uint16_t widest = (uint16_t)twini_inputs(model, 0);
    unsigned i;
    for (i = 0; i < model->layers; i++)
        if (model->hidden[i] > widest)
            widest = model->hidden[i];
    return widest;
}

static void twini_fill_layer(twini_prepared_layer *to, const twini_layer *from,
                             const uint16_t *ranked, int last, const twini_form *form,
                             uint8_t *weights, int32_t *numbers, int16_t *folds) {
    uint32_t n = twini_padded(from->outputs), k, t;
#if TWIN_INTERVALS
    int scaled = from->scaled;
#else
    int scaled = 0;
#endif
    to->inputs = from->inputs;
    to->outputs = from->outputs;
    to->shift = from->shift;
    to->fraction = from->fraction;
    to->curve = from->curve;
    to->weights = weights;
    to->bias = numbers;
    to->multiplier = numbers + n;
    to->enough = numbers + 2 * n;
    to->fold = folds;
    to->hard = folds + n;
    for (k = 0; k < from->outputs; k++) {
        uint32_t o = ranked[k];
        numbers[k] = twini_i32(from->bias + 4 * o);
        numbers[n + k] = twini_i16(from->multiplier + 2 * o) * (1 << form->multiplier_shift);
        if (weights && form->enough)
            numbers[2 * n + k] = form->enough(from, o);
        for (t = 0; last && t < twini_outputs(from); t++) {
            twin_flash fold = twini_fold_of(from, t);
            int16_t *of = folds + t * twini_apart(from->outputs);
            of[k] = twini_i16(fold + (scaled ? 4 * o + 4 : 2 * o));
            of[n + k] = (int16_t)(scaled ? twini_i16(fold + 4 * o + 6) : 0);
        }
    }
    if (weights)
        form->arrange(from, ranked, weights);
}

/* A and B with the outputs side by side, as 16-bit numbers. */
static void twini_fill_first(int16_t *to, const twini_layer *layer) {
    uint32_t n = twini_padded(layer->outputs), o, i, second;
    for (second = 0; second < 2; second++)
        for (o = 0; o < layer->outputs; o++)
            for (i = 0; i < layer->inputs; i++) {
                twin_flash row = (second ? layer->mirror : layer->weights) + o * layer->row;
                to[(second * layer->inputs + i) * n + o] =
                    (int16_t)twini_weight(row, i, layer->wide);
            }
}

/* Features of eight anchors, side by side. */
static void twini_transpose(int16_t *to, unsigned features, const twin_flash *anchors) {
    unsigned i, k;
    for (k = 0; k < TWIN_EIGHT; k++)
        for (i = 0; i < features; i++)
            to[TWIN_EIGHT * i + k] = twini_i16(anchors[k] + 2 * i);
}

/* Shares of all anchors of a twin; the last of them is repeated up to eight. */
static void twini_fill_shares(int32_t *to, const twini_form *form, const twini_prepared_twin *twin,
                              unsigned owned) {
    int16_t features[TWIN_EIGHT * TWIN_WIDEST];
    twin_flash eight[TWIN_EIGHT];
    unsigned first, k;
    for (first = 0; first < owned; first += TWIN_EIGHT) {
        for (k = 0; k < TWIN_EIGHT; k++)
            eight[k] = twin->anchors +
                       (size_t)(first + k < owned ? first + k : owned - 1) * twin->anchor_size;
        twini_transpose(features, twin->features, eight);
        form->of_anchors(twin, features, to);
        to += twini_share_length(twin->layer[0].outputs);
    }
}

static void twini_walk_twin(twini_walk *walk, const twin_model *model, const twini_form *form,
                            twini_prepared_twin *twin, twin_flash record, unsigned first,
                            unsigned owned) {
    twin_flash at = record + TWIN_HEAD;
    uint16_t ranked[TWIN_WIDEST];
    unsigned depth, o;
    for (depth = 0; depth < model->layers; depth++) {
        unsigned inputs = twini_inputs(model, depth), outputs = model->hidden[depth];
        uint32_t n = twini_padded(outputs);
        uint8_t *weights = 0;
        int32_t *numbers = (int32_t *)twini_reserve(walk, 3 * sizeof(int32_t) * n);
        unsigned targets = depth + 1 == model->layers ? twini_targets(model) : 1u;
        int16_t *folds = (int16_t *)twini_reserve(walk, 2 * sizeof(int16_t) * n * targets);
        if (depth)
            weights = (uint8_t *)twini_reserve(walk, form->weight_bytes(inputs, outputs));
        if (twin && numbers && folds) { /* none of them while it measures */
            int last = depth + 1 == model->layers;
            twini_layer layer;
            for (o = 0; o < outputs; o++)
                ranked[o] = (uint16_t)o;
            if (depth == 1 && last && !twini_is_silu(model))
                twini_rank_rows(ranked, model, record, first, owned);
            at = twini_layer_at(&layer, model, record, at, depth);
            twini_fill_layer(&twin->layer[depth], &layer, ranked, last, form, weights, numbers,
                             folds);
        }
    }
}

/* The prepared twin of a layer, which is its first. */
static const twini_prepared_twin *twini_prepared_twin_at(const twini_prepared *all,
                                                         const twini_layer *layer) {
    return &all->twin[(uint32_t)(layer->weights - TWIN_HEAD - all->twins) / all->twin_size];
}

static void twini_prepared_query(const twini_layer *layer, const int16_t *query, void *partial) {
    const twini_prepared *all = (const twini_prepared *)layer->kernel;
    (void)partial; /* what is prepared has other shares, and all of them where it works */
    all->form->of_query(twini_prepared_twin_at(all, layer), query, (int32_t *)layer->work);
}

/* Totals of `most` anchors of an eight, from this one on. */
static void twini_take_totals(int32_t (*found)[TWIN_EIGHT], unsigned from, unsigned most,
                              unsigned scaled, int32_t *totals) {
    unsigned k, row;
    for (k = 0; k < most; k++)
        if (scaled)
            for (row = 0; row < 3; row++)
                totals[row * TWIN_BLOCK + k] = found[row][from + k];
        else
            totals[k] = found[0][from + k] - found[1][from + k];
}

/* Which target of a prepared model is this one of a layer: a model of one target may have been
 * selected since. */
static unsigned twini_found(const twini_prepared_twin *twin, const twini_layer *layer,
                            unsigned target) {
#if TWIN_TARGETS > 1
    return ((unsigned)layer->first - twin->target + target) % TWIN_TARGETS;
#else
    (void)twin;
    (void)layer;
    return target;
#endif
}

/* All layers. Anchors are numbered in ascending order, so if the last is where it would be, none is
 * left out. */
static void twini_prepared_first(const twini_layer *layer, const twini_pairs *pairs, void *out,
                                 int32_t *totals) {
    const twini_prepared *all = (const twini_prepared *)layer->kernel;
    const twini_form *form = all->form;
    const twini_prepared_twin *twin = twini_prepared_twin_at(all, layer);
    uint8_t *work = (uint8_t *)layer->work;
    unsigned count = pairs->count, done = 0, t;
    int stored = twin->shares && pairs->anchor[count - 1] ==
                                     pairs->anchor[0] + (size_t)(count - 1) * twin->anchor_size;
    uint32_t position =
        stored ? (uint32_t)(pairs->anchor[0] - twin->anchors) / twin->anchor_size : 0;
    (void)out;
    if (form->enter)
        form->enter();
    while (done < count) {
        unsigned from = position % TWIN_EIGHT;
        unsigned most = TWIN_EIGHT - from < count - done ? TWIN_EIGHT - from : count - done;
        int32_t found[TWIN_TARGETS][3][TWIN_EIGHT];
        int32_t *share = (int32_t *)(void *)(work + all->share_at);
        if (stored) {
            share = twin->shares + (position / TWIN_EIGHT) * twini_share_length(layer->outputs);
            position += most;
        } else {
            int16_t *features = (int16_t *)(void *)(work + all->features_at);
            twini_transpose(features, twin->features, pairs->anchor + done);
            form->of_anchors(twin, features, share);
        }
        form->eight(twin, (const int32_t *)layer->work, share, work + all->work_at, found[0][0]);
        for (t = 0; t < twini_outputs(layer); t++)
            twini_take_totals(found[twini_found(twin, layer, t)], from, most, twin->scaled,
                              totals + t * TWIN_TOTALS + done);
        done += most;
    }
    if (form->leave)
        form->leave();
}

static void twini_prepared_further(const twini_layer *layer, const void *in, void *out,
                                   int32_t *totals) { /* NOLINT(readability-non-const-parameter) */
    (void)layer;
    (void)in;
    (void)out;
    (void)totals;
}

/* The kernel of a prepared model, and how it lays out the memory that it works in: the query's
 * share; that of eight anchors; their features; room for the form. */
static void twini_fill_kernel(twini_prepared *all, const twin_model *model,
                              const twini_form *form) {
    twin_kernel *kernel = &all->kernel;
    uint32_t shares = (uint32_t)sizeof(int32_t) * twini_share_length(model->hidden[0]);
    all->form = form;
    all->twins = model->twins;
    all->twin_size = model->twin_size;
    all->share_at = twini_align(8 * twini_padded(model->hidden[0]), TWIN_ROOMY);
    all->features_at = all->share_at + twini_align(shares, TWIN_ROOMY);
    all->work_at =
        all->features_at + twini_align(2 * TWIN_EIGHT * twini_inputs(model, 0), TWIN_ROOMY);
    kernel->pairs = TWIN_BLOCK / TWIN_EIGHT * TWIN_EIGHT;
    kernel->unit = 1;
    kernel->align = TWIN_ROOMY;
    kernel->query = twini_prepared_query;
    kernel->first = twini_prepared_first;
    kernel->further = twini_prepared_further;
    kernel->work_bytes =
        all->work_at + twini_align(form->work_bytes(twini_widest(model)), TWIN_ROOMY);
    kernel->form = form;
}

/* The tables of silu by fraction, and a bit for each that there is. */
typedef struct twini_tables {
    uint32_t present;
    const void *of[16];
} twini_tables;

/* Those that the layers of a twin need and that no twin before it needed. */
static void twini_walk_tables(twini_walk *walk, const twin_model *model, const twini_form *form,
                              twin_flash record, twini_tables *tables) {
    unsigned depth;
    for (depth = 0; depth < model->layers; depth++) {
        uint8_t fraction = twini_u8(record + TWIN_HEAD_FRACTION + depth);
        void *table;
        if (tables->present >> fraction & 1)
            continue;
        table = twini_reserve(walk, form->table_bytes);
        if (table)
            form->fill_table(table, model->curve, fraction);
        tables->of[fraction] = table;
        tables->present |= (uint32_t)1 << fraction;
        walk->table_bytes += form->table_bytes;
    }
}

/* Lay out the memory of a prepared model, and fill it unless the walk only measures. */
static void twini_walk_model(twini_walk *walk, const twin_model *model, const twini_form *form,
                             int with_shares) {
    uint32_t n = twini_padded(model->hidden[0]);
    unsigned k, depth, before = 0;
    twini_tables tables = {0, {0}};
    twini_prepared *all = (twini_prepared *)twini_reserve(
        walk, sizeof(twini_prepared) + (model->twin_count - 1u) * sizeof(twini_prepared_twin));
    if (all)
        twini_fill_kernel(all, model, form);
    for (k = 0; k < model->twin_count; k++) {
        unsigned owned = twini_u16(model->counts + 2 * k);
        uint32_t eights = (owned + TWIN_EIGHT - 1) / TWIN_EIGHT;
        twin_flash record = model->twins + k * (twini_size)model->twin_size;
        twini_prepared_twin *twin = all ? &all->twin[k] : 0;
        int16_t *first = (int16_t *)twini_reserve(walk, 4u * twini_inputs(model, 0) * n);
        int32_t *shares = 0;
        if (twini_is_silu(model))
            twini_walk_tables(walk, model, form, record, &tables);
        twini_walk_twin(walk, model, form, twin, record, before, owned);
        if (with_shares)
            shares = (int32_t *)twini_reserve(
                walk, sizeof(int32_t) * (uintptr_t)twini_share_length(model->hidden[0]) * eights);
        if (twin) {
            twini_layer layer;
            (void)twini_layer_at(&layer, model, record, record + TWIN_HEAD, 0);
            twini_fill_first(first, &layer);
            twin->first = first;
            twin->shares = shares;
            twin->anchors = model->anchors + (size_t)before * model->anchor_size;
            twin->anchor_size = model->anchor_size;
            twin->features = (uint16_t)twini_inputs(model, 0);
            twin->widest = twini_widest(model);
            twin->layers = model->layers;
            twin->silu = (uint8_t)twini_is_silu(model);
            twin->scaled = (uint8_t)twini_is_scaled(model);
#if TWIN_TARGETS > 1
            twin->targets = model->targets;
            twin->target = model->first;
#endif
            for (depth = 0; depth < model->layers; depth++)
                twin->layer[depth].table = tables.of[twin->layer[depth].fraction];
            if (shares)
                twini_fill_shares(shares, form, twin, owned);
        }
        before += owned;
    }
}

/* Bytes that it takes; 0 if that is more than three times the pack plus 64 KB, and tables. */
static uint32_t twini_measure(const twin_model *model, const twini_form *form, int with_shares) {
    uint64_t pack = (uint64_t)model->twin_size * model->twin_count +
                    (uint64_t)model->anchor_count * (model->anchor_size + 4u);
    twini_walk walk = {0, 1, 0};
    twini_walk_model(&walk, model, form, with_shares);
    walk.at += TWIN_ROOMY - 1;
    pack = 3 * pack + 65536 + walk.table_bytes;
    return walk.at <= pack && walk.at <= UINT32_MAX ? (uint32_t)walk.at : 0;
}

/* What the kernel has for prepared models of this kind, or NULL. */
static const twini_form *twini_form_of(const twin_model *model) {
    return model->kernel ? model->kernel->form : 0;
}

uint32_t twin_prepared_size(const twin_model *model) {
    const twini_form *form = twini_form_of(model);
    uint32_t size = form ? twini_measure(model, form, 1) : 0;
    return size || !form ? size : twini_measure(model, form, 0);
}

twin_status twin_prepare(twin_model *model, void *memory, uint32_t size) {
    const twini_form *form = twini_form_of(model);
    uint32_t needed = twin_prepared_size(model);
    twini_walk walk = {0, 0, 0};
    const twini_prepared *all;
    if (!model->kernel)
        return TWIN_ERROR_MODEL;
    if (!needed)
        return TWIN_ERROR_UNSUPPORTED;
    if (!memory || size < needed)
        return TWIN_ERROR_SCRATCH;
    walk.at = ((uintptr_t)memory + TWIN_ROOMY - 1) & ~(uintptr_t)(TWIN_ROOMY - 1);
    all = (const twini_prepared *)walk.at;
    twini_walk_model(&walk, model, form, twini_measure(model, form, 1) != 0);
    model->kernel = &all->kernel;
    return TWIN_OK;
}

#endif
