/* Prepares a model for a host's processor, and evaluates a prepared one. */

#include "twin_prepared.h"

#if TWIN_HOST

#include "../include/twin_host.h"
#include <string.h>

/* The same walk lays out memory twice: first to measure it, from address 0 and without writing,
 * then for real. */
typedef struct twini_walk {
    uintptr_t at;
    int measuring;
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
    uint16_t widest = model->features;
    unsigned i;
    for (i = 0; i < model->layers; i++)
        if (model->hidden[i] > widest)
            widest = model->hidden[i];
    return widest;
}

static void twini_fill_layer(twini_ready_layer *to, const twini_layer *from, const uint16_t *ranked,
                             int last, const twini_form *form, uint8_t *weights, int32_t *numbers,
                             int16_t *folds) {
    uint32_t n = twini_padded(from->outputs), k;
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
        if (last) {
            folds[k] = twini_i16(from->fold + (scaled ? 4 * o + 4 : 2 * o));
            folds[n + k] = (int16_t)(scaled ? twini_i16(from->fold + 4 * o + 6) : 0);
        }
    }
    if (weights)
        form->arrange(from, ranked, weights);
}

/* Weight number i of a row. */
static int32_t twini_weight(const twini_layer *layer, twin_flash row, uint32_t i) {
    return layer->wide ? twini_i16(row + 2 * i) : twini_i8(row + i);
}

/* A and B with the outputs side by side, as 16-bit numbers. */
static void twini_fill_first(int16_t *to, const twini_layer *layer) {
    uint32_t n = twini_padded(layer->outputs), o, i, second;
    for (second = 0; second < 2; second++)
        for (o = 0; o < layer->outputs; o++)
            for (i = 0; i < layer->inputs; i++) {
                twin_flash row = (second ? layer->mirror : layer->weights) + o * layer->row;
                to[(second * layer->inputs + i) * n + o] = (int16_t)twini_weight(layer, row, i);
            }
}

/* Features of eight anchors, side by side; those beyond `count` repeat the last. */
static void twini_turn_eight(int16_t *to, const twin_model *model, const unsigned *numbers) {
    unsigned i, k;
    for (k = 0; k < TWIN_EIGHT; k++) {
        twin_flash from = model->anchors + (twini_size)numbers[k] * model->anchor_size;
        for (i = 0; i < model->features; i++)
            to[TWIN_EIGHT * i + k] = twini_i16(from + 2 * i);
    }
}

/* Numbers of `count` anchors from `first` on, repeating the last up to eight. */
static void twini_number_eight(unsigned *numbers, unsigned first, unsigned count) {
    unsigned k;
    for (k = 0; k < TWIN_EIGHT; k++)
        numbers[k] = first + (k < count ? k : count - 1);
}

/* Shares of the `owned` anchors of a twin from number `first` on. */
static void twini_fill_shares(int32_t *to, const twin_model *model, const twini_form *form,
                              const twini_ready_twin *twin, unsigned first, unsigned owned) {
    unsigned k, numbers[TWIN_EIGHT];
    int16_t turned[TWIN_EIGHT * TWIN_WIDEST];
    for (k = 0; k < owned; k += TWIN_EIGHT) {
        twini_number_eight(numbers, first + k, owned - k < TWIN_EIGHT ? owned - k : TWIN_EIGHT);
        twini_turn_eight(turned, model, numbers);
        form->of_anchors(twin, turned, to);
        to += twini_share_length(model->hidden[0]);
    }
}

static float twini_dot(const twini_layer *layer, twin_flash row, twin_flash features) {
    int64_t sum = 0;
    uint32_t i;
    for (i = 0; i < layer->inputs; i++)
        sum += twini_weight(layer, row, i) * twini_i16(features + 2 * i);
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
 * first, judging by the pairs of some anchors: a kernel may then skip several outputs at once. */
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
            float weight = (float)twini_weight(&last, row, i);
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

static void twini_walk_twin(twini_walk *walk, const twin_model *model, const twini_form *form,
                            twini_ready_twin *twin, twin_flash record, unsigned first,
                            unsigned owned) {
    twin_flash at = record + TWIN_HEAD;
    uint16_t ranked[TWIN_WIDEST];
    unsigned depth, o;
    for (depth = 0; depth < model->layers; depth++) {
        unsigned inputs = twini_inputs(model, depth), outputs = model->hidden[depth];
        uint32_t n = twini_padded(outputs);
        uint8_t *weights = 0;
        int32_t *numbers = (int32_t *)twini_reserve(walk, 3 * sizeof(int32_t) * n);
        int16_t *folds = (int16_t *)twini_reserve(walk, 2 * sizeof(int16_t) * n);
        if (depth)
            weights = (uint8_t *)twini_reserve(walk, form->weight_bytes(inputs, outputs));
        if (twin) {
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
    if (twin)
        twin->behind = at;
}

/* Lay out the memory of a prepared model, and fill it unless the walk only measures. */
static void twini_walk_model(twini_walk *walk, const twin_model *model, const twini_form *form,
                             int with_shares) {
    uint32_t n = twini_padded(model->hidden[0]);
    unsigned k, depth, before = 0;
    int32_t *lines = 0;
    twini_prepared *all = (twini_prepared *)twini_reserve(
        walk, sizeof(twini_prepared) + (model->twin_count - 1u) * sizeof(twini_ready_twin));
    if (all) {
        all->form = form;
        all->anchors = model->anchors;
    }
    if (twini_is_silu(model))
        lines = (int32_t *)twini_reserve(walk, sizeof *lines * form->line_count);
    if (lines)
        form->fill_lines(lines, model->curve);
    for (k = 0; k < model->twin_count; k++) {
        unsigned owned = twini_u16(model->counts + 2 * k);
        uint32_t eights = (owned + TWIN_EIGHT - 1) / TWIN_EIGHT;
        twin_flash record = model->twins + k * (twini_size)model->twin_size;
        twini_ready_twin *twin = all ? &all->twin[k] : 0;
        int16_t *first = (int16_t *)twini_reserve(walk, 4u * model->features * n);
        int32_t *shares = 0;
        twini_walk_twin(walk, model, form, twin, record, before, owned);
        if (with_shares)
            shares = (int32_t *)twini_reserve(
                walk, sizeof(int32_t) * (uintptr_t)twini_share_length(model->hidden[0]) * eights);
        if (twin) {
            twini_layer layer;
            twini_layer_at(&layer, model, record, record + TWIN_HEAD, 0);
            twini_fill_first(first, &layer);
            twin->first = first;
            twin->features = model->features;
            twin->widest = twini_widest(model);
            twin->layers = model->layers;
            twin->silu = (uint8_t)twini_is_silu(model);
            twin->scaled = (uint8_t)twini_is_scaled(model);
            twin->shares = shares;
            for (depth = 0; depth < model->layers; depth++)
                twin->layer[depth].lines = lines;
            if (shares)
                twini_fill_shares(shares, model, form, twin, before, owned);
        }
        before += owned;
    }
}

/* Bytes that it takes; 0 if that is more than three times the pack plus 64 KB. */
static uint32_t twini_measure(const twin_model *model, const twini_form *form, int with_shares) {
    uint64_t pack = (uint64_t)model->twin_size * model->twin_count +
                    (uint64_t)model->anchor_count * (model->anchor_size + 4u);
    twini_walk walk = {0, 1};
    twini_walk_model(&walk, model, form, with_shares);
    walk.at += TWIN_ROOMY - 1;
    return walk.at <= 3 * pack + 65536 && walk.at <= UINT32_MAX ? (uint32_t)walk.at : 0;
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
    twini_walk walk = {0, 0};
    if (!model->kernel)
        return TWIN_ERROR_MODEL;
    if (!needed)
        return TWIN_ERROR_UNSUPPORTED;
    if (!memory || size < needed)
        return TWIN_ERROR_SCRATCH;
    walk.at = ((uintptr_t)memory + TWIN_ROOMY - 1) & ~(uintptr_t)(TWIN_ROOMY - 1);
    model->prepared = (const struct twini_prepared *)walk.at;
    twini_walk_model(&walk, model, form, twini_measure(model, form, 1) != 0);
    return TWIN_OK;
}

/* In order: the query's share; that of eight anchors; their features; room for the kernel. */
TWIN_INTERNAL uintptr_t twini_lay_out_prepared(twin_run *run, const twin_model *model,
                                               uintptr_t at) {
    const twini_form *form = model->prepared->form;
    uint32_t n = twini_padded(model->hidden[0]);
    run->partial = (void *)at;
    at += twini_align(2 * n * (uint32_t)sizeof(int32_t), TWIN_ROOMY);
    run->block[0] = (void *)at;
    at += twini_align(twini_share_length(model->hidden[0]) * (uint32_t)sizeof(int32_t), TWIN_ROOMY);
    run->room = (void *)at;
    at += twini_align(TWIN_EIGHT * model->features * (uint32_t)sizeof(int16_t), TWIN_ROOMY);
    run->work = (void *)at;
    return at + twini_align(form->work_bytes(twini_widest(model)), TWIN_ROOMY);
}

TWIN_INTERNAL void twini_ask_prepared(const twin_run *run) {
    const twini_prepared *all = run->model->prepared;
    all->form->of_query(&all->twin[run->twin - 1], run->query, (int32_t *)run->partial);
}

/* The share of eight anchors that are not prepared: `count` of them, from a position on. */
static const int32_t *twini_share_anew(const twin_run *run, const twini_ready_twin *twin,
                                       unsigned position, unsigned count) {
    unsigned k, numbers[TWIN_EIGHT];
    for (k = 0; k < TWIN_EIGHT; k++)
        numbers[k] = twini_number(run, position + (k < count ? k : count - 1));
    twini_turn_eight((int16_t *)run->room, run->model, numbers);
    run->model->prepared->form->of_anchors(twin, (const int16_t *)run->room,
                                           (int32_t *)run->block[0]);
    return (const int32_t *)run->block[0];
}

TWIN_INTERNAL twin_flash twini_prepared_totals(const twin_run *run, unsigned count,
                                               int32_t *totals) {
    const twini_prepared *all = run->model->prepared;
    const twini_ready_twin *twin = &all->twin[run->twin - 1];
    int stored = twin->shares && run->chosen == run->owned && run->model->anchors == all->anchors;
    unsigned done = 0, k, row;
    while (done < count) {
        unsigned position = run->position + done, from = stored ? position % TWIN_EIGHT : 0;
        unsigned most = TWIN_EIGHT - from < count - done ? TWIN_EIGHT - from : count - done;
        int32_t found[3][TWIN_EIGHT];
        const int32_t *share;
        if (stored)
            share = twin->shares +
                    (size_t)twini_share_length(twin->layer[0].outputs) * (position / TWIN_EIGHT);
        else
            share = twini_share_anew(run, twin, position, most);
        all->form->eight(twin, (const int32_t *)run->partial, share, run->work, found[0]);
        for (k = 0; k < most; k++)
            if (twin->scaled)
                for (row = 0; row < 3; row++)
                    totals[row * TWIN_BLOCK + done + k] = found[row][from + k];
            else
                totals[done + k] = found[0][from + k] - found[1][from + k];
        done += most;
    }
    return twin->behind;
}

#endif
