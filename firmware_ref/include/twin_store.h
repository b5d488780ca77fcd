/* A device that learns: what it measures on site corrects its predictions.
 *
 * A point measured where the model runs knows this machine, this batch, this hull. The device keeps
 * such points in a store, and predictions are shifted by what the pack gets wrong at them; the pack
 * says how far to trust them (FORMAT.md, sections 12 and 13):
 *
 *     static uint32_t memory[256];
 *     twin_store store;
 *     if (twin_store_size(&model, &storage, 32) > sizeof memory)
 *         do_without_it();
 *     status = twin_store_open(&store, &model, pack, &storage, memory, 32);
 *     while (status == TWIN_MORE)
 *         status = twin_store_step(&store, scratch, sizeof scratch);
 *     if (status != TWIN_OK && status != TWIN_ERROR_FULL)
 *         report(twin_text(status));
 *     while (next_query(x)) {
 *         if (twin_predict_adapted(&store, scratch, sizeof scratch, x, &out) == TWIN_OK)
 *             use(out.low, out.high);
 *         if (!measure(&y))
 *             continue;
 *         status = twin_learn(&store, scratch, sizeof scratch, x, y, now());
 *         if (status == TWIN_ERROR_FULL && twin_keep_latest(&store, 24) == TWIN_OK)
 *             status = twin_learn(&store, scratch, sizeof scratch, x, y, now());
 *         if (status != TWIN_OK)
 *             report(twin_text(status));
 *     }
 *
 * One reading cannot break it: a point that is far from what the others and the pack allow has no
 * weight, and if it is the only one, predictions are those of the pack.
 *
 * Points are kept in the user's units, in a journal (twin_journal.h), which says what storage must
 * do and why a power cut does no harm. They belong to a schema, not to one pack: after an update to
 * another pack of the same schema, they are scored again and go on working. Opening only reads.
 * Learning writes one slot. The first time after opening, and whenever a block is full, it also
 * erases the other block and moves all points there, as does forgetting. No call takes longer than
 * that, none allocates, and none recurses.
 *
 * If storage fails, a call returns TWIN_ERROR_STORAGE, predictions go on with the points that were
 * read or learnt before, and a later call tries again.
 *
 * A program that calls none of this does not have it in its image. Not available if TWIN_STORE,
 * TWIN_INTERVALS or TWIN_FLOAT is 0. A store must not be used by two threads at a time, not even to
 * predict. */

#ifndef TWIN_STORE_H
#define TWIN_STORE_H

#include "twin_journal.h"

#if TWIN_STORE && TWIN_INTERVALS && TWIN_FLOAT

#ifdef __cplusplus
extern "C" {
#endif

/* A point: what a record of one target has before its features (FORMAT.md, section 12). */
typedef struct twin_point {
    uint32_t number;
    uint32_t time;
    float target;  /* as measured */
    int32_t error; /* of the pack, in units of an estimate */
    int32_t score; /* the same in sixteenths of the scale it had */
} twin_point;

/* An open store. The fields may be read. */
typedef struct twin_store {
    twin_journal journal; /* `number` is that of the next point; `damaged` counts bad slots */
    const twin_model *model;
    twin_point
        *points;    /* the caller's memory, the oldest first; not an array for several targets */
    uint32_t pack;  /* checksum of the pack */
    uint16_t most;  /* points there is room for */
    uint16_t count; /* points */
    int8_t status;  /* of opening; TWIN_MORE as long as points are to be read */
} twin_store;

/* Bytes of memory for this many points, at most 1024; 0 if the storage cannot hold a store. */
uint32_t twin_store_size(const twin_model *model, const twin_storage *storage, uint16_t points);

/* Open a store; one that was never written is empty. `pack` is the one that the model was opened
 * from, with intervals. `memory` is aligned as uint32_t and as large as twin_store_size says.
 * Model, storage and memory must stay as long as the store is used.
 *
 * TWIN_MORE: call twin_store_step until it returns something else. TWIN_ERROR_STORE if the model is
 * not open, its pack has no intervals, the model is one of several targets (twin_select_target),
 * twin_store_size is 0, or the memory is not aligned. TWIN_ERROR_OTHER if the points have another
 * schema, or the storage had another program size: twin_forget of all numbers takes it over.
 * TWIN_ERROR_STORAGE if a read failed: open it again. Predictions are those of the pack unless all
 * points were read. */
twin_status twin_store_open(twin_store *store, const twin_model *model, twin_pack pack,
                            const twin_storage *storage, void *memory, uint16_t points);

/* Read another point; if another pack has scored it, that takes as long as a prediction. TWIN_MORE
 * if there may be more, then TWIN_OK; or TWIN_ERROR_FULL if there are more than `points`: the
 * latest are used, and some must be forgotten before another is learnt. TWIN_ERROR_STORAGE if a
 * read failed: call it again. A point that this pack cannot evaluate is not used, but stays. */
twin_status twin_store_step(twin_store *store, void *scratch, uint32_t size);

/* Learn from a point: `x` as for twin_predict, its measured `target`, and the time or a counter of
 * your choice, 0 if you have none. TWIN_OK means that it is stored permanently.
 *
 * TWIN_ERROR_FULL if there is no room: forget some points. TWIN_ERROR_QUERY or TWIN_ERROR_TARGET if
 * the point is invalid. TWIN_MORE if there are points to read first. TWIN_ERROR_STORAGE if a block
 * could not be read, erased or programmed: it may be worn out, or a later call may succeed. */
twin_status twin_learn(twin_store *store, void *scratch, uint32_t size, const float *x,
                       float target, uint32_t time);

/* Learn from a point of a pack for several targets: what was measured of each, NaN for those that
 * were not. `count`, those given, is at least `model->targets`, or the status is
 * TWIN_ERROR_TARGETS, as it is of twin_learn for several targets. TWIN_ERROR_TARGET if none was
 * measured, or if one is out of its range. Each target is predicted from the points that have it.
 */
#if TWIN_TARGETS > 1
twin_status twin_learn_targets(twin_store *store, void *scratch, uint32_t size, const float *x,
                               const float *targets, unsigned count, uint32_t time);
#else
static inline twin_status twin_learn_targets(twin_store *store, void *scratch, uint32_t size,
                                             const float *x, const float *targets, unsigned count,
                                             uint32_t time) {
    return count ? twin_learn(store, scratch, size, x, *targets, time) : TWIN_ERROR_TARGETS;
}
#endif

/* Forget the points numbered `first` to `last`: a point has the number that journal.number was
 * before it was learnt. 0 to UINT32_MAX forgets all, even if some could not be read. TWIN_MORE if
 * there are points to read first. TWIN_ERROR_VALUE if `first` is above `last`. */
twin_status twin_forget(twin_store *store, uint32_t first, uint32_t last);

/* Forget all but the latest `points`; and points older than `time`, except those without one. */
twin_status twin_keep_latest(twin_store *store, uint16_t points);
twin_status twin_forget_before(twin_store *store, uint32_t time);

/* Predict with the points of the store: `out->points` says how many had any weight. Spread, count
 * and flags are those of the pack. */
#define twin_predict_adapted TWIN_CONFIGURED(twin_predict_adapted)
twin_status twin_predict_adapted(const twin_store *store, void *scratch, uint32_t size,
                                 const float *x, twin_prediction *out);
#define twin_predict_adapted_raw TWIN_CONFIGURED(twin_predict_adapted_raw)
twin_status twin_predict_adapted_raw(const twin_store *store, void *scratch, uint32_t size,
                                     const int16_t *query, twin_raw *out);

/* The same for all targets, as twin_predict_targets; the functions above predict the first. */
#if TWIN_TARGETS > 1
#define twin_predict_adapted_targets TWIN_CONFIGURED(twin_predict_adapted_targets)
twin_status twin_predict_adapted_targets(const twin_store *store, void *scratch, uint32_t size,
                                         const float *x, twin_prediction *out, unsigned count);
#define twin_predict_adapted_targets_raw TWIN_CONFIGURED(twin_predict_adapted_targets_raw)
twin_status twin_predict_adapted_targets_raw(const twin_store *store, void *scratch, uint32_t size,
                                             const int16_t *query, twin_raw *out, unsigned count);
#else
/* Without a scratch, it is refused, as what goes beyond the target is to be. */
static inline twin_status twin_predict_adapted_targets(const twin_store *store, void *scratch,
                                                       uint32_t size, const float *x,
                                                       twin_prediction *out, unsigned count) {
    unsigned i;
    for (i = 1; i < count; i++)
        (void)twin_predict_adapted(store, scratch, 0, x, out + i);
    return count ? twin_predict_adapted(store, scratch, size, x, out) : TWIN_ERROR_TARGETS;
}
static inline twin_status twin_predict_adapted_targets_raw(const twin_store *store, void *scratch,
                                                           uint32_t size, const int16_t *query,
                                                           twin_raw *out, unsigned count) {
    unsigned i;
    for (i = 1; i < count; i++)
        (void)twin_predict_adapted_raw(store, scratch, 0, query, out + i);
    return count ? twin_predict_adapted_raw(store, scratch, size, query, out) : TWIN_ERROR_TARGETS;
}
#endif

#ifdef __cplusplus
}
#endif

#endif

#endif
