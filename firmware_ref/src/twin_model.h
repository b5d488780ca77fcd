/* What the files of the core share. */

#ifndef TWIN_MODEL_H
#define TWIN_MODEL_H

#include "twin_kernel.h"
#include "twin_read.h"
#include "twin_words.h"

/* Describe hidden layer `depth` of the twin at `record`; returns the address after it: the next
 * layer, or the output's weights. `at` is its address: after the head, or after the layer before.
 */
TWIN_INTERNAL twin_flash twini_layer_at(twini_layer *layer, const twin_model *model,
                                        twin_flash record, twin_flash at, unsigned depth);

/* In a pack: where the table of sections begins, bytes of an entry there, and the section that says
 * what the columns are. */
#define TWIN_TABLE  48
#define TWIN_ENTRY  12
#define TWIN_SCHEMA 9

/* Bytes in the head of a twin, before its first layer, and offsets in it. */
#define TWIN_HEAD            16
#define TWIN_HEAD_FRACTION   3
#define TWIN_HEAD_SHIFT      6
#define TWIN_HEAD_MULTIPLIER 8
#define TWIN_HEAD_BIAS       12

/* Bytes of the record in front of the weights of each further target's output: what the head of a
 * twin has of the first, from the shift on, but with two bytes between multipliers and bias. */
#define TWIN_OUTPUT 12

/* Constant where this build has no choice: twin_open refuses the rest. */
static inline unsigned twini_targets(const twin_model *model) {
    return TWIN_TARGETS > 1 ? model->targets : 1u;
}
static inline unsigned twini_is_silu(const twin_model *model) {
    return TWIN_SILU ? model->silu : 0;
}
static inline unsigned twini_is_wide(const twin_model *model) {
    return TWIN_INT16 ? model->wide : 0;
}

static inline unsigned twini_is_scaled(const twin_model *model) {
    return TWIN_INTERVALS ? model->flags >> 1 : 0;
}

/* Whether the model is one of several targets of its pack. */
static inline unsigned twini_is_selected(const twin_model *model) {
#if TWIN_TARGETS > 1
    return model->all != model->targets;
#else
    (void)model;
    return 0;
#endif
}

/* Offset and gain of the first target. */
static inline twin_flash twini_scaling(const twin_model *model) {
#if TWIN_TARGETS > 1
    return model->units;
#else
    return model->scaling + 8 * (uint32_t)model->features;
#endif
}

/* Bytes in a row of `n` weights. */
static inline unsigned twini_row(const twin_model *model, unsigned n) {
    return ((n + 3) & ~3u) << twini_is_wide(model);
}

/* Inputs of hidden layer `depth`; for the first, those of each kernel. */
static inline unsigned twini_inputs(const twin_model *model, unsigned depth) {
#if TWIN_MAP
    return depth ? model->hidden[depth - 1] : model->inputs;
#else
    return depth ? model->hidden[depth - 1] : model->features;
#endif
}

#if TWIN_MAP
/* Where a feature of the query lies on its curve: in front of this row of the map's table, at this
 * part of the way from the row before, in units of 1/16384. */
typedef struct twini_place {
    twin_flash row;
    unsigned part;
} twini_place;

/* Let the query be what the twins take. Needs a twini_place for each feature at run->partial. */
TWIN_INTERNAL void twini_map(twin_run *run);
#endif

#if TWIN_TARGET_CURVE
/* In the section of a target curve: the estimate at the first of its values, by how many bits an
 * estimate is shifted for the number of its bin, bins, and values. */
#define TWIN_CURVE_SHIFT 4
#define TWIN_CURVE_BINS  6
#define TWIN_CURVE_HEAD  8

/* Bytes of a target curve, by its bins; one of several targets may have none. */
static inline uint32_t twini_curve_bytes(uint32_t bins) {
    return bins || TWIN_TARGETS == 1 ? TWIN_CURVE_HEAD + 4 + 4 * bins : TWIN_CURVE_HEAD;
}
#endif

/* In a pack: bytes of the intervals of a target before its levels, and where their number is; bytes
 * of a level. */
#define TWIN_INTERVALS_HEAD 32
#define TWIN_LEVEL_COUNT    28
#define TWIN_LEVEL          8

/* Bytes of the intervals of a target, by their levels. */
static inline uint32_t twini_intervals_bytes(uint32_t levels) {
    return TWIN_INTERVALS_HEAD + TWIN_LEVEL * levels;
}

/* Number of the anchor that predicts at this position of the twin. */
static inline unsigned twini_number(const twin_run *run, unsigned position) {
#if TWIN_NEIGHBORS
    if (run->chosen < run->owned)
        position = (unsigned)run->nearest[position];
#endif
    return run->before + position;
}

/* How many of a twin's anchors predict. */
static inline unsigned twini_chosen(unsigned neighbors, unsigned owned) {
    unsigned most = TWIN_NEIGHBORS && neighbors ? neighbors : owned;
    return most < owned ? most : owned;
}

/* Make `of` a run of a single target, and `one` its model, to read what `run` has found. If there
 * is no such target, it is a run that was refused. */
TWIN_INTERNAL void twini_view_run(twin_run *of, twin_model *one, const twin_run *run,
                                  unsigned target);

/* Search for the `run->chosen` anchors of the twin, whose anchors start at `anchors`, nearest to
 * the query: up to 16 steps of the search. Returns whether it is done; then their numbers are in
 * `run->nearest`, in ascending order. */
#if TWIN_NEIGHBORS
TWIN_INTERNAL unsigned twini_search(twin_run *run, twin_flash anchors);
#endif

/* Lay out the scratch and start before the first twin; twini_set_feature puts the query there. */
TWIN_INTERNAL twin_status twini_begin(twin_run *run, const twin_model *model, void *scratch,
                                      uint32_t size, int32_t *members);

/* No estimates. */
static inline void twini_begin_sums(twin_sums *sums) {
    sums->sum = 0;
    sums->deviations = 0;
    sums->squares = 0;
#if TWIN_INTERVALS
    sums->asymmetries = 0;
    sums->difficulty = 0;
#endif
    sums->reference = 0;
}

/* What reading a run returns. It is kept so that memory that is zero, a run that was never begun,
 * stands for TWIN_ERROR_MODEL. */
static inline void twini_set_status(twin_run *run, twin_status status) {
    run->status = (int)status ^ TWIN_ERROR_MODEL;
}
static inline twin_status twini_status(const twin_run *run) {
    return (twin_status)(run->status ^ TWIN_ERROR_MODEL);
}

/* How many targets a run has; one that was not begun has one, which is refused. */
static inline unsigned twini_run_targets(const twin_run *run) {
    return run->kernel ? twini_targets(run->model) : 1u;
}

/* What reading all targets returns; and which of them goes to entry `i` of as many: none if there
 * are not enough. */
static inline twin_status twini_all_status(const twin_run *run, unsigned count) {
    return count < twini_run_targets(run) ? TWIN_ERROR_TARGETS : twini_status(run);
}
static inline unsigned twini_entry(const twin_run *run, unsigned count, unsigned i) {
    return count < twini_run_targets(run) ? TWIN_TARGETS : i;
}

/* Stop the run, and keep the reason for whoever reads it. */
static inline twin_status twini_refuse(twin_run *run, twin_status status) {
    twini_set_status(run, status);
    run->total = 0;
    return status;
}

/* Set a quantised feature of the query; if it is missing, INT16_MIN, the pack fills it in. */
static inline twin_status twini_set_feature(twin_run *run, unsigned i, int16_t feature) {
#if TWIN_INTERVALS
    uint32_t bit = (uint32_t)1 << (i < 31 ? i : 31);
    twin_flash entry = run->model->domain;
    if (entry) {
        entry += 6 * (uint16_t)i;
        if (feature == INT16_MIN) {
            feature = twini_i16(entry + 4);
            run->missing |= bit;
        } else if (feature < twini_i16(entry) || feature > twini_i16(entry + 2)) {
            run->outside |= bit;
        }
    }
#endif
    run->query[i] = feature;
    return feature == INT16_MIN ? twini_refuse(run, TWIN_ERROR_QUERY) : TWIN_OK;
}

/* Combine the estimates of the run so far; fills in neither the masks, nor, without intervals, what
 * only those have. */
TWIN_INTERNAL void twini_combine(const twin_run *run, twin_raw *out);

/* What intervals or the store call as well, where there are any. */
#if TWIN_INTERVALS
#define TWIN_SHARED TWIN_INTERNAL TWIN_NOT_INLINE
#else
#define TWIN_SHARED static
#endif

#if TWIN_INTERVALS || TWIN_TARGET_CURVE
/* a * b >> shift, but at most 2^31 - 1. */
TWIN_INTERNAL uint32_t twini_product(uint32_t a, uint32_t b, uint8_t shift);

/* a + b and a - b, within 32 bits. */
static inline int32_t twini_above(int32_t a, uint32_t b) {
    int32_t sum = (int32_t)((uint32_t)a + b);
    return sum < a ? INT32_MAX : sum;
}
static inline int32_t twini_below(int32_t a, uint32_t b) {
    int32_t difference = (int32_t)((uint32_t)a - b);
    return difference > a ? INT32_MIN : difference;
}
#endif

#if TWIN_INTERVALS
/* The largest s with s * s <= a; and a / n, rounded down, for a below 2^48, n up to 2^16, and
 * quotients of 32 bits. */
TWIN_SHARED uint32_t twini_root(uint64_t a);
TWIN_SHARED uint32_t twini_divide(uint64_t a, uint32_t n);

/* A total of an output, or of the second one, in its units. */
TWIN_SHARED int32_t twini_units(twin_flash head, unsigned second, int32_t total);

/* Ends of the interval, once mean and scale are known: half its width is the product of quantile
 * and scale, shifted by this. */
#define TWIN_WIDTH_SHIFT 20
static inline void twini_bound(const twin_model *model, twin_raw *out) {
    uint32_t width = twini_product(model->quantile, out->scale, TWIN_WIDTH_SHIFT);
    out->low = twini_below(out->mean, width);
    out->high = twini_above(out->mean, width);
}

#if TWIN_FLOAT
/* A measured value in the units of an estimate; INT32_MIN if it is NaN or far too large. */
TWIN_INTERNAL int32_t twini_target_of(const twin_model *model, float value);

/* A distance, over a number of parts, in the units of the target; and one from this mean, which
 * the target curve stretches. */
TWIN_SHARED float twini_in_units(const twin_model *model, uint32_t distance, uint16_t parts);
#if TWIN_TARGET_CURVE
TWIN_SHARED float twini_deviation(const twin_model *model, int32_t mean, uint32_t distance,
                                  uint16_t parts);
#endif

/* What a run predicts, in the units of the target. */
TWIN_SHARED void twini_report(const twin_run *run, const twin_raw *raw, twin_prediction *out);
#endif
#endif

#endif
