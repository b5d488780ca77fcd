/* A device that learns: points measured on site become anchors of its own.
 *
 * A point measured where the model runs knows this machine, this batch, this hull. The device keeps
 * such points in a store, and a prediction blends what the pack says with what the network makes of
 * them; the pack says how far to trust them (FORMAT.md, sections 11 and 12):
 *
 *     static uint32_t memory[512];
 *     twin_store store;
 *     if (twin_store_size(&model, &storage, 32) > sizeof memory ||
 *         twin_store_open(&store, &model, pack, &storage, memory, 32) != TWIN_OK)
 *         do_without_it();
 *     for (;;) {
 *         if (twin_predict_adapted(&store, scratch, sizeof scratch, x, &out) == TWIN_OK)
 *             use(out.low, out.high);
 *         if (measure(&y) && twin_learn(&store, scratch, sizeof scratch, x, y) != TWIN_OK)
 *             do_without_it();
 *     }
 *
 * The store is a journal in two erasable blocks: of flash, EEPROM or FRAM, of a file or of RAM.
 * What they are is the caller's choice, behind three functions. A power cut at any moment leaves
 * the points as they were before the call that it hit, or as they would have been after it;
 * unsettled bits may read either way until the next successful write. A flipped bit costs the point
 * it is in, and `lost` counts it.
 *
 * Opening only reads. Learning writes one slot. The first time after opening, and whenever a block
 * is full, it also erases the other block and moves all points there, as does forgetting. No call
 * takes longer than that, none allocates, and none recurses.
 *
 * A program that calls none of this does not have it in its image. Not available if TWIN_STORE is
 * 0. A store must not be used by two threads at a time, not even to predict. */

#ifndef TWIN_STORE_H
#define TWIN_STORE_H

#include "twin_journal.h"

#if TWIN_STORE && TWIN_INTERVALS

#ifdef __cplusplus
extern "C" {
#endif

/* An open store. The fields may be read. */
typedef struct twin_store {
    const twin_model *model;
    const twin_storage *storage;
    uint8_t *memory;     /* the caller's: entries, with room for one more */
    uint8_t *spare;      /* that room */
    uint8_t *targets;    /* after them, targets of the points */
    uint32_t pack;       /* identifies the pack that points belong to */
    uint32_t block;      /* start of the block in use */
    uint32_t generation; /* how often a block was erased and filled, in sequence */
    uint32_t number;     /* of the next point */
    uint32_t slots;      /* in a block */
    uint32_t next;       /* slot to program next; `slots` if the block is full */
    uint16_t slot;       /* bytes of a slot */
    uint16_t most;       /* most points */
    uint16_t count;      /* points */
    uint16_t lost;       /* entries that cannot be read: damaged, or cut short */
    unsigned settled;    /* whether the block is sure to read the same next time */
    int status;          /* that of opening, or TWIN_ERROR_STORAGE once a read has failed */
} twin_store;

/* Bytes of memory for this many points: at most 1024, and at most 4096 over all twins. */
uint32_t twin_store_size(const twin_model *model, const twin_storage *storage, uint16_t points);

/* Find what a store holds; one that was never written is empty. `pack` is the one that the model
 * was opened from, with intervals. `memory` is aligned to 4 and as large as twin_store_size says.
 * Model, storage and memory must stay as long as the store is used.
 *
 * TWIN_ERROR_STORE if the model is not open, its pack has no intervals, or a block has fewer than
 * `points` + 3 slots. TWIN_ERROR_OTHER if the points belong to a different pack, or to a storage
 * with a different program size: twin_forget of all numbers takes it over. TWIN_ERROR_FULL if it
 * holds more than `points` points. TWIN_ERROR_STORAGE if a read failed. Unless a store is open,
 * predictions are those of the pack alone. */
twin_status twin_store_open(twin_store *store, const twin_model *model, twin_pack pack,
                            const twin_storage *storage, void *memory, uint16_t points);

/* Learn from a point: `query` as for twin_predict_raw, `target` its measured value in the units of
 * the raw mean. TWIN_OK means that it is stored permanently.
 *
 * TWIN_ERROR_FULL if the store is full: forget some points. TWIN_ERROR_QUERY or TWIN_ERROR_TARGET
 * if the point is invalid. TWIN_ERROR_STORAGE if a block could not be erased or programmed: it may
 * be worn out, or a second call, which takes the next slot, may succeed. Existing points stay. */
twin_status twin_learn_raw(twin_store *store, void *scratch, uint32_t size, const int16_t *query,
                           int32_t target);

/* Forget the points numbered `first` to `last`. The number of a point is that of the store
 * before it was learnt; after forgetting, numbers continue after the last that is left. 0 to
 * store.number - 101 keeps the latest 100 if there are more, 0 to UINT32_MAX keeps none. */
twin_status twin_forget(twin_store *store, uint32_t first, uint32_t last);

/* Predict with the points of the store. Spread, count and flags are those of the pack. */
twin_status twin_predict_adapted_raw(const twin_store *store, void *scratch, uint32_t size,
                                     const int16_t *query, twin_raw *out);

#if TWIN_FLOAT
/* The same in the user's units. An infinite or NaN target is refused. */
twin_status twin_learn(twin_store *store, void *scratch, uint32_t size, const float *x,
                       float target);
twin_status twin_predict_adapted(const twin_store *store, void *scratch, uint32_t size,
                                 const float *x, twin_prediction *out);
#endif

#ifdef __cplusplus
}
#endif

#endif

#endif
