/* The journal of a device's own points, and predictions with them: FORMAT.md, sections 11, 12. */

#include "twin_store.h"
#include "twin_arith.h"
#include "twin_model.h"

#if TWIN_STORE && TWIN_INTERVALS

/* Offsets in an entry, after its checksum; and in a head, in the first two slots of a block. */
enum { NUMBER = 4, TARGET = 8, SCORE = 12, SCALE = 14, FEATURES = 16 };
enum { GENERATION = 4, PACK = 8, END = 12, HEAD = 16 };
enum { ERASED, TORN, WHOLE };
enum { HEADS = 2, MOST_POINTS = 1024, MOST_MEMBERS = 4096, VERSION = 1, FREEDOM = 4 };

#define BEYOND     0x40000000 /* targets are below this */
#define MOST_SCORE 511

/* Like memcpy, which would add 300 bytes if nothing else links it. */
TWIN_APART void twini_copy(void *to, const void *from, unsigned size) {
    const uint8_t *at = (const uint8_t *)from;
    uint8_t *into = (uint8_t *)to;
    do
        *into++ = *at++;
    while (--size);
}

/* Features of a query, with zeros up to a multiple of 4. */
static void twini_put_query(uint8_t *at, const int16_t *query, unsigned size) {
#if TWIN_LITTLE
    twini_copy(at, query, size);
#else
    for (; size; size -= 2, at += 2)
        twini_put_half(at, (uint16_t)*query++);
#endif
}

/* Checksum of an entry for this slot. */
TWIN_APART uint32_t twini_checksum(const twin_store *store, uint32_t slot, const uint8_t *entry) {
    const uint8_t *end = entry + FEATURES + (slot < HEADS ? 0 : store->model->anchor_size);
    uint32_t crc = UINT32_MAX;
    while ((entry += 4) != end)
        crc = twini_crc_bits(crc, twini_word(entry));
    return ~crc;
}

/* Read a slot of the block into the room after the last entry. */
TWIN_APART unsigned twini_fetch(twin_store *store, uint32_t slot) {
    const twin_storage *storage = store->storage;
    uint8_t *entry = store->spare;
    if (storage->read(storage->context, store->block + slot * store->slot, entry, store->slot)) {
        store->status = TWIN_ERROR_STORAGE;
        return TORN;
    }
    if (!~twini_word(entry))
        return ERASED;
    return twini_word(entry) == twini_checksum(store, slot, entry) ? WHOLE : TORN;
}

/* Write an entry, or a head, to a slot. Returns whether it failed. */
TWIN_APART unsigned twini_program(twin_store *store, uint32_t slot, uint8_t *entry) {
    const twin_storage *storage = store->storage;
    twini_put(entry, twini_checksum(store, slot, entry));
    /* A slot reprogrammed after a cut may report failure: it is good if it reads back right. */
    return (storage->program(storage->context, store->block + slot * store->slot, entry,
                             store->slot) &&
            store->settled) ||
           twini_fetch(store, slot) != WHOLE;
}

/* Accept the entry after the last as another point. */
TWIN_APART void twini_take_point(twin_store *store) {
    const uint8_t *entry = store->spare;
    store->number = twini_word(entry + NUMBER) + 1;
    TWIN_COPY(store->targets + 4 * store->count++, entry + TARGET, 4);
    store->spare += store->slot;
}

TWIN_APART void twini_turn(twin_store *store) {
    store->block = store->storage->block_size - store->block;
}

/* Switch to the other block, and find the points in its slots up to `slots`. Returns its
 * generation, or 0 if it is not valid. */
TWIN_APART uint32_t twini_load(twin_store *store, uint32_t slots) {
    uint32_t slot, end = 0;
    unsigned second;
    twini_turn(store);
    store->spare = store->memory;
    store->count = 0;
    store->lost = 0;
    store->number = 0;
    store->generation = 0;
    store->settled = TORN;
    second = twini_fetch(store, 1);
    if (second != WHOLE) {
        if (twini_fetch(store, 0) != WHOLE)
            return 0;
        end = twini_word(store->memory + END);
    }
    store->generation = twini_word(store->memory + GENERATION);
    if (!slots)
        return store->generation;
    if (twini_word(store->memory + PACK) != store->pack)
        store->status = TWIN_ERROR_OTHER;
    else
        store->settled = second;
    for (slot = HEADS; slot < slots && !store->status; slot++) {
        unsigned kind = twini_fetch(store, slot);
        if (kind != WHOLE) {
            if (slot < end)
                return store->generation = 0;
            store->lost = (uint16_t)(store->lost + kind);
        } else if (store->count == store->most)
            store->status = TWIN_ERROR_FULL;
        else
            twini_take_point(store);
    }
    return store->generation;
}

/* Write the points except those numbered `first` to `last`, then the heads. Returns whether it
 * failed. */
TWIN_APART unsigned twini_fill(twin_store *store, uint32_t first, uint32_t last,
                               uint32_t generation) {
    uint8_t *entry = store->memory;
    uint32_t next = HEADS;
    for (; entry != store->spare; entry += store->slot)
        if (twini_word(entry + NUMBER) - first > last - first &&
            twini_program(store, next++, entry))
            return 1;
    store->next = store->slots; /* from now on the block may be valid, even if this fails */
    twini_fetch(store, 0);      /* for what follows the head */
    twini_put(entry + GENERATION, generation);
    twini_put(entry + PACK, store->pack);
    twini_put(entry + END, next);
    if (twini_program(store, 0, entry))
        return 1;
    if (store->settled) {
        if (twini_program(store, 1, entry))
            return 1;
        store->next = next;
    }
    return 0;
}

/* Move the points to the other block, except those numbered `first` to `last`.
 *
 * The block they are in may have been started, or even erased again, when the power was cut, and
 * may read differently next time: as long as it has no second head, it is written once more. */
TWIN_APART twin_status twini_compact(twin_store *store, uint32_t first, uint32_t last) {
    const twin_storage *storage = store->storage;
    unsigned failed;
    if (!store->settled && twini_fill(store, store->number, store->number, store->generation))
        return TWIN_ERROR_STORAGE;
    store->settled = WHOLE;
    twini_turn(store);
    failed = storage->erase(storage->context, store->block) ||
             twini_fill(store, first, last, store->generation + 1);
    twini_turn(store);
    if (failed)
        return TWIN_ERROR_STORAGE;
    store->status = TWIN_OK;
    twini_load(store, store->slots);
    return (twin_status)store->status;
}

static uint32_t twini_slot_size(const twin_model *model, const twin_storage *storage) {
    return twini_align(FEATURES + (uint32_t)model->anchor_size, storage->program_size);
}

uint32_t twin_store_size(const twin_model *model, const twin_storage *storage, uint16_t points) {
    return (points + 1u) * twini_slot_size(model, storage) + 4u * points;
}

twin_status twin_store_open(twin_store *store, const twin_model *model, twin_pack pack,
                            const twin_storage *storage, void *memory, uint16_t points) {
    uint32_t slot = twini_slot_size(model, storage), slots = storage->block_size / slot, generation;
    store->model = model;
    store->status = TWIN_ERROR_STORE;
    if (!model->kernel || !model->intervals ||
        (uint32_t)points * model->twin_count > MOST_MEMBERS || points > MOST_POINTS ||
        slots <= points + (uint32_t)HEADS)
        return (twin_status)store->status;
    store->storage = storage;
    store->memory = (uint8_t *)memory;
    store->targets = store->memory + (points + 1u) * slot;
    store->pack = twini_u32((twin_flash)pack + 12) + VERSION * 65536u + slot;
    store->slot = (uint16_t)slot;
    store->most = points;
    store->next = store->slots = slots;
    store->status = TWIN_OK;
    store->block = 0;
    generation = twini_load(store, 0);
    if ((int32_t)(twini_load(store, 0) - generation) >= 0)
        twini_turn(store);
    if (!twini_load(store, store->slots))
        twini_load(store, store->slots);
    return (twin_status)store->status;
}

twin_status twin_forget(twin_store *store, uint32_t first, uint32_t last) {
    if (store->status && (store->status != TWIN_ERROR_OTHER || first || ~last))
        return (twin_status)store->status;
    return twini_compact(store, first, last);
}

/* a / b in units of 1/65536, as precisely as 32 bits allow: both lose their last bits until a has
 * 16. */
TWIN_APART uint32_t twini_over(uint32_t a, uint32_t b) {
    while (a >> 16) {
        a >>= 1;
        b >>= 1;
    }
    return b ? (a << 16) / b : UINT32_MAX;
}

/* Scale of a prediction, relative to 256 for the mean in calibration. */
TWIN_APART uint32_t twini_relative(const twin_model *model, uint32_t scale) {
    scale = twini_over(scale, twini_u32(model->intervals + 20)) >> 8;
    return scale < 65535u ? scale : 65535u;
}

/* Learn from the query of a run that was begun. */
TWIN_APART twin_status twini_learn(twin_store *store, twin_run *run, int32_t target) {
    uint8_t *entry;
    uint32_t off;
    twin_raw said;
    twin_status status = TWIN_OK;
    if (target >= BEYOND || target <= -BEYOND)
        return TWIN_ERROR_TARGET;
    if (store->count == store->most)
        return TWIN_ERROR_FULL;
    if (store->next == store->slots)
        status = twini_compact(store, store->number, store->number);
    if (status)
        return status;
    twin_step(run, TWIN_ALL);
    twini_combine(run, &said);
    off = (uint32_t)target - (uint32_t)said.mean; /* fits 32 bits, except for the sign */
    if (target < said.mean)
        off = 0 - off;
    off = twini_over(off, said.scale) >> 8;
    if (off > MOST_SCORE)
        off = MOST_SCORE;
    if (target < said.mean)
        off = 0 - off;
    entry = store->spare;
    twini_put(entry + NUMBER, store->number++);
    twini_put(entry + TARGET, (uint32_t)target);
    twini_put_half(entry + SCORE, off);
    twini_put_half(entry + SCALE, twini_relative(store->model, said.scale));
    twini_put_query(entry + FEATURES, run->query, store->model->anchor_size);
    if (twini_program(store, store->next++, entry))
        return TWIN_ERROR_STORAGE;
    twini_take_point(store);
    return TWIN_OK;
}

twin_status twin_learn_raw(twin_store *store, void *scratch, uint32_t size, const int16_t *query,
                           int32_t target) {
    twin_status status = (twin_status)store->status;
    twin_run run;
    if (!status)
        status = twin_begin_raw(&run, store->model, scratch, size, query, 0);
    return status ? status : twini_learn(store, &run, target);
}

/* Move the mean by `weight`, in 1/32768, of the way to what the pack would predict if the points
 * were the anchors of each twin; and update the interval. The run is done, so its query and scratch
 * are still there. */
TWIN_APART void twini_move(const twin_store *store, twin_run *run, twin_raw *out, int32_t weight) {
    twin_model own;
    int32_t off;
    twin_raw said;
#if TWIN_LITTLE
    const uint16_t *count = &store->count;
#else
    uint16_t little, *count = &little;
    twini_put_half(count, store->count);
#endif
    twini_copy(&own, store->model, sizeof own);
    own.anchor_size = store->slot;
    own.targets = (twin_flash)(uintptr_t)store->targets;
    own.anchors = (twin_flash)(uintptr_t)(store->memory + FEATURES);
#if TWIN_OWN_IN_RAM
    own.anchor_count = *count;
    own.flags |= TWIN_OWN;
#endif
    run->model = &own; /* cppcheck-suppress autoVariables ; nobody asks the run later */
    run->sum = 0;
    run->total = (unsigned)store->count * own.twin_count;
    run->count = 0;
    run->twin = 0;
#if TWIN_NEIGHBORS
    run->neighbors = 0;
#endif
    do {
        run->before = 0u - run->owned; /* all twins have the same anchors */
#if !TWIN_OWN_IN_RAM
        own.counts = (twin_flash)((uintptr_t)count - 2u * run->twin);
#endif
    } while (twin_step(run, store->count));
    twini_combine(run, &said);
    off = (int32_t)((uint32_t)said.mean - (uint32_t)out->mean);
    off = (int32_t)(((int64_t)off * weight + 16384) >> 15);
    out->mean = (int32_t)((uint32_t)out->mean + (uint32_t)off);
    twini_bound(store->model, out);
}

/* Predict again, with the points of the store; there are some. */
TWIN_APART void twini_heed(const twin_store *store, twin_run *run, twin_raw *out) {
    uint32_t k = store->count, trust, rest, among, near, own, part;
    uint32_t squares = 0, scales = 0, sum = 0;
    const uint8_t *entry = store->memory;
    twini_combine(run, out);
    do {
        uint32_t score = (uint32_t)twini_half_word(entry + SCORE);
        sum += score;
        squares += score * score;
        scales += (uint16_t)twini_half_word(entry + SCALE);
        entry += store->slot;
    } while (--k);
    k = store->count;
    near = 32768;
    part = k * twini_relative(store->model, out->scale);
    if (part < scales)
        near = twini_over(part, scales) >> 1;
    if (sum >> 31)
        sum = 0 - sum;
    sum = (sum * (16 * sum / k)) >> 4;
    part = squares < sum ? 0 : squares - sum;
    trust = twini_u16(store->model->intervals + 18);
    rest = 65536u - trust;
    among = k * trust + rest;
    part = (twini_over(part, rest) >> 2) + (twini_over(sum, among) >> 2);
    part = twini_over(64 * FREEDOM + part, 64 * FREEDOM + 64 * k);
    own = ((twini_over(k * trust, among) >> 1) * near) >> 15;
    rest = 65536u - 3 * ((trust * ((own * (65536u - near)) >> 15)) >> 17);
    out->scale = twini_product(out->scale, twini_root((uint64_t)rest * part), 16);
    twini_move(store, run, out, (int32_t)own);
}

static unsigned twini_knows(const twin_store *store) {
    return !store->status && store->count;
}

twin_status twin_predict_adapted_raw(const twin_store *store, void *scratch, uint32_t size,
                                     const int16_t *query, twin_raw *out) {
    twin_status status;
    twin_run run;
    if (!twin_begin_raw(&run, store->model, scratch, size, query, 0))
        twin_step(&run, TWIN_ALL);
    status = twin_read_raw(&run, out);
    if (!status && twini_knows(store))
        twini_heed(store, &run, out);
    return status;
}

#if TWIN_FLOAT

twin_status twin_learn(twin_store *store, void *scratch, uint32_t size, const float *x,
                       float target) {
    twin_status status = (twin_status)store->status;
    int32_t units;
    twin_run run;
    if (status)
        return status;
    units = twini_target_of(store->model, target);
    status = twin_begin(&run, store->model, scratch, size, x, 0);
    return status ? status : twini_learn(store, &run, units);
}

twin_status twin_predict_adapted(const twin_store *store, void *scratch, uint32_t size,
                                 const float *x, twin_prediction *out) {
    const twin_model *model = store->model;
    twin_status status;
    twin_run run;
    twin_raw raw;
    if (!twin_begin(&run, model, scratch, size, x, 0))
        twin_step(&run, TWIN_ALL);
    status = twin_read(&run, out);
    if (!status && twini_knows(store)) {
        twini_heed(store, &run, &raw);
        out->mean = twin_target(model, raw.mean);
        twini_tell(model, &raw, out);
    }
    return status;
}

#endif

#endif
