/* A device that learns: points measured on site become anchors of its own.
 *
 * A point measured where the model runs knows this machine, this batch, this hull. The device keeps
 * such points in a store, and a prediction blends what the pack says with what the network makes of
 * them; how far they are believed is in the pack (FORMAT.md, sections 11 and 12):
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
 * The store is a journal in two blocks that can be erased: of flash, EEPROM or FRAM, of a file or
 * of RAM. What they are is the caller's business, behind three functions. A power cut at any moment
 * leaves the points as they were before the call that it hit, or as they would have been after it;
 * bits that are not settled may read either way, until the next call that writes succeeds. A bit
 * that flips costs the point it is in, and `lost` says so.
 *
 * Opening only reads. Learning writes one slot. The first time after opening, and whenever a block
 * is full, it erases the other block and moves all points there; forgetting does so, too. No call
 * takes longer than that, none allocates, and none recurses.
 *
 * A program that calls none of this does not have it in its image, and where TWIN_STORE is 0 there
 * is none of it. A store is not for two threads at a time, nor is a prediction with it. */

#ifndef TWIN_STORE_H
#define TWIN_STORE_H

#include "twin.h"

#if TWIN_STORE && TWIN_INTERVALS

#ifdef __cplusplus
extern "C" {
#endif

/* Where a store lies. It starts at address 0; the second block starts at `block_size`. The
 * functions return 0, or anything else where they fail. They are given addresses and sizes that are
 * multiples of `program_size`. No slot is programmed twice between two erasures, but where a power
 * cut, or a failure, has left a block unfinished: then with what is there already. To read what a
 * cut has left is no failure, whatever the bytes are: a memory that knows them to be wrong gives
 * any. */
typedef struct twin_storage {
    int (*read)(void *context, uint32_t address, void *bytes, uint32_t size);
    int (*program)(void *context, uint32_t address, const void *bytes, uint32_t size);
    int (*erase)(void *context, uint32_t address); /* sets all bytes of the block there to 255 */
    void *context;
    uint32_t block_size;   /* of each block */
    uint16_t program_size; /* that can be programmed at once: 1, 2, 4, 8, 16 or 32 */
} twin_storage;

/* An open store. The fields may be read. */
typedef struct twin_store {
    const twin_model *model;
    const twin_storage *storage;
    uint8_t *memory;     /* the caller's: entries, with room for another */
    uint8_t *spare;      /* that room */
    uint8_t *targets;    /* and behind them targets of the points */
    uint32_t pack;       /* what tells whether points belong to it */
    uint32_t block;      /* where the block begins that is in use */
    uint32_t generation; /* how often a block was erased and filled, one after the other */
    uint32_t number;     /* of the next point */
    uint32_t slots;      /* in a block */
    uint32_t next;       /* slot to program next; `slots` where the block has none */
    uint16_t slot;       /* bytes of a slot */
    uint16_t most;       /* points that there is room for */
    uint16_t count;      /* points */
    uint16_t lost;       /* entries that cannot be read: damaged, or cut short */
    unsigned settled;    /* whether the block is known to read the same the next time */
    int status;          /* what opening said, or TWIN_ERROR_STORAGE once a read has failed */
} twin_store;

/* Bytes of memory for so many points, 1024 at most, and 4096 for all twins together. */
uint32_t twin_store_size(const twin_model *model, const twin_storage *storage, uint16_t points);

/* Find what a store holds; one that was never written is empty. `pack` is the one that the model
 * was opened from, with intervals. `memory` is aligned to 4 and has the bytes of twin_store_size.
 * Model, storage and memory must stay as long as the store is used.
 *
 * TWIN_ERROR_STORE where the model is not open, its pack has no intervals, or a block has not three
 * slots more than there may be points. TWIN_ERROR_OTHER where the points belong to another pack, or
 * to a storage with another program size: twin_forget of all numbers makes it ours. TWIN_ERROR_FULL
 * where it has more points than there may be. TWIN_ERROR_STORAGE where a read failed. Unless a
 * store is open, predictions are those of the pack alone. */
twin_status twin_store_open(twin_store *store, const twin_model *model, twin_pack pack,
                            const twin_storage *storage, void *memory, uint16_t points);

/* Learn from a point: `query` as for twin_predict_raw, `target` its measured value in the units of
 * the raw mean. TWIN_OK means that it is in the store for good.
 *
 * TWIN_ERROR_FULL where there are as many points as there is room for: forget some.
 * TWIN_ERROR_QUERY and TWIN_ERROR_TARGET where the point is none. TWIN_ERROR_STORAGE where a block
 * could not be erased or programmed: it may be worn out, or the call may succeed when it is made
 * again, which takes the next slot. The points that are there stay. */
twin_status twin_learn_raw(twin_store *store, void *scratch, uint32_t size, const int16_t *query,
                           int32_t target);

/* Forget the points numbered `first` to `last`. A point has the number that the store had before it
 * was learnt; where points were forgotten, numbers go on behind the last that is left. 0 to
 * store.number - 101 leaves the latest 100 where there are more, 0 to UINT32_MAX leaves none. */
twin_status twin_forget(twin_store *store, uint32_t first, uint32_t last);

/* Predict with the points of the store. Spread, count and flags are those of the pack. */
twin_status twin_predict_adapted_raw(const twin_store *store, void *scratch, uint32_t size,
                                     const int16_t *query, twin_raw *out);

#if TWIN_FLOAT
/* The same in the user's units. A target that is infinite or not a number is none. */
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
