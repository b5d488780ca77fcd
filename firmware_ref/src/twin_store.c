/* The journal of a device's own points, and predictions with them: FORMAT.md, sections 11, 12. */

#include "twin_store.h"
#include "twin_arith.h"
#include "twin_model.h"

#if TWIN_STORE && TWIN_INTERVALS

/* An entry: its checksum, then these. A head, in the first two slots of a block, likewise. */
enum { NUMBER = 4, TARGET = 8, SCORE = 12, SCALE = 14, FEATURES = 16 };
enum { GENERATION = 4, PACK = 8, END = 12, HEAD = 16 };
enum { ERASED, TORN, WHOLE };
enum { HEADS = 2, MOST_POINTS = 1024, MOST_MEMBERS = 4096, VERSION = 1, FREEDOM = 4 };

#if defined(__GNUC__)
#define ALIGNED __builtin_assume_aligned
#else
#define ALIGNED(at, to) (at)
#endif

#define BEYOND     0x40000000 /* what targets are below */
#define MOST_SCORE 511

/* Numbers in memory of the caller, which is aligned to words: little-endian, as in the storage. */
#if TWIN_OWN_IN_RAM || (defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
static uint32_t twini_word(const void *at) {
    uint32_t word;
    TWIN_COPY(&word, ALIGNED(at, 4), sizeof word);
    return word;
}
static int32_t twini_half_word(const void *at) {
    int16_t half;
    TWIN_COPY(&half, ALIGNED(at, 2), sizeof half);
    return half;
}
static void twini_put(void *at, uint32_t word) {
    TWIN_COPY(ALIGNED(at, 4), &word, sizeof word);
}
static void twini_put_half(void *at, uint32_t value) {
    uint16_t half = (uint16_t)value;
    TWIN_COPY(ALIGNED(at, 2), &half, sizeof half);
}
#else
static uint32_t twini_word(const void *at) {
    return twini_u32((twin_flash)at);
}
static int32_t twini_half_word(const void *at) {
    return twini_i16((twin_flash)at);
}
static void twini_put_half(void *at, uint32_t value) {
    ((uint8_t *)at)[0] = (uint8_t)value;
    ((uint8_t *)at)[1] = (uint8_t)(value >> 8);
}
static void twini_put(void *at, uint32_t word) {
    twini_put_half(at, word);
    twini_put_half((uint8_t *)at + 2, word >> 16);
}
#endif

/* Features of a query, with zeros up to a multiple of 4. */
static void twini_put_query(uint8_t *at, const int16_t *query, unsigned size) {
#if TWIN_OWN_IN_RAM || (defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
    TWIN_COPY(at, query, size);
#else
    for (; size; size -= 2, at += 2)
        twini_put_half(at, (uint16_t)*query++);
#endif
}

/* Entry `i` of those in memory; behind the last is room for another. */
static uint8_t *twini_entry(const twin_store *store, unsigned i) {
    return store->memory + (uint32_t)i * store->slot;
}

/* Their targets, one behind another, as kernels want them. */
static uint8_t *twini_targets(const twin_store *store) {
    return twini_entry(store, store->most + 1u);
}

/* Read a slot of the block to where there is room; but first program entry `i`, if it is not
 * negative. */
TWIN_APART unsigned twini_slot(twin_store *store, unsigned slot, int i) {
    const twin_storage *storage = store->storage;
    uint32_t size = store->slot, address = store->block + slot * size, crc, j;
    uint32_t end = FEATURES + (slot < HEADS ? 0u : store->model->anchor_size);
    uint8_t *entry = twini_entry(store, i < 0 ? store->count : (unsigned)i);
    for (;; entry = twini_entry(store, store->count)) {
        if (i < 0 && storage->read(storage->context, address, entry, size)) {
            store->status = TWIN_ERROR_STORAGE;
            return TORN;
        }
        crc = UINT32_MAX;
        for (j = 4; j < end; j += 4)
            crc = twini_crc_bits(crc, twini_word(entry + j));
        if (i < 0)
            break;
        i = -1;
        twini_put(entry, ~crc);
        if (storage->program(storage->context, address, entry, size))
            return TORN;
    }
    if (!~twini_word(entry))
        return ERASED;
    return twini_word(entry) == ~crc ? WHOLE : TORN;
}

static unsigned twini_fetch(twin_store *store, unsigned slot) {
    return twini_slot(store, slot, -1);
}

/* Returns whether it failed. */
static unsigned twini_program(twin_store *store, unsigned slot, unsigned i) {
    return twini_slot(store, slot, (int)i) != WHOLE;
}

/* The entry behind the last is another point. */
TWIN_APART void twini_take_point(twin_store *store) {
    const uint8_t *entry = twini_entry(store, store->count);
    store->number = twini_word(entry + NUMBER) + 1;
    TWIN_COPY(twini_targets(store) + 4 * store->count++, entry + TARGET, 4);
}

static void twini_turn(twin_store *store) {
    store->block = store->storage->block_size - store->block;
}

/* Turn to the other block, and find the points in its slots up to `slots`. Returns its generation,
 * or 0 if it does not count.
 *
 * As long as nothing was written to its second head, nobody knows whether the first one will read
 * the same next time. Then the block before stays the one in use, and this one is written again. */
TWIN_APART uint32_t twini_load(twin_store *store, unsigned slots) {
    unsigned slot = HEADS, kind, second;
    uint32_t end;
    twini_turn(store);
    store->count = 0;
    store->lost = 0;
    store->generation = 0;
    second = twini_fetch(store, 1);
    if (second != WHOLE && twini_fetch(store, 0) != WHOLE)
        return 0;
    store->generation = twini_word(store->memory + GENERATION);
    end = second == WHOLE ? 0 : twini_word(store->memory + END);
    if (slots && twini_word(store->memory + PACK) != store->pack)
        store->status = TWIN_ERROR_OTHER;
    for (; slot < slots && !store->status; slot++) {
        kind = twini_fetch(store, slot);
        if (kind != WHOLE) {
            if (slot < end)
                return store->generation = 0;
            store->lost = (uint16_t)(store->lost + kind);
        } else if (store->count == store->most)
            store->status = TWIN_ERROR_FULL;
        else
            twini_take_point(store);
    }
    if (slots && second == ERASED) {
        twini_turn(store);
        store->generation--;
    }
    return store->generation;
}

/* Move the points to the other block, but for those numbered `first` to `last`. */
TWIN_APART twin_status twini_compact(twin_store *store, uint32_t first, uint32_t last) {
    const twin_storage *storage = store->storage;
    uint8_t *entry = twini_entry(store, store->count);
    unsigned i, next = HEADS, failed;
    twini_turn(store);
    failed = storage->erase(storage->context, store->block) != 0;
    for (i = 0; i < store->count && !failed; i++)
        if (twini_word(twini_entry(store, i) + NUMBER) - first > last - first)
            failed = twini_program(store, next++, i);
    if (!failed) {
        store->next = store->slots; /* where this fails, the block may count all the same */
        twini_put(entry + GENERATION, store->generation + 1);
        twini_put(entry + PACK, store->pack);
        twini_put(entry + END, next);
        failed = twini_program(store, 0, store->count) || twini_program(store, 1, store->count);
    }
    twini_turn(store);
    if (failed)
        return TWIN_ERROR_STORAGE;
    store->next = (uint16_t)next;
    store->status = TWIN_OK;
    twini_load(store, store->slots);
    return (twin_status)store->status;
}

static uint32_t twini_slot_size(const twin_model *model, const twin_storage *storage) {
    return twini_align(FEATURES + (uint32_t)model->anchor_size, storage->program_size);
}

uint32_t twin_store_size(const twin_model *model, const twin_storage *storage, uint16_t points) {
    return (points + 1u) * twini_slot_size(model, storage) + 4u * points +
           2u * model->twin_count;
}

twin_status twin_store_open(twin_store *store, const twin_model *model, twin_pack pack,
                            const twin_storage *storage, void *memory, uint16_t points) {
    uint32_t slot = twini_slot_size(model, storage), generation;
    store->model = model;
    store->status = TWIN_ERROR_STORE;
    if (!model->kernel || !model->intervals ||
        (uint32_t)points * model->twin_count > MOST_MEMBERS || points > MOST_POINTS ||
        storage->block_size / slot <= points + (uint32_t)HEADS)
        return TWIN_ERROR_STORE;
    store->storage = storage;
    store->memory = (uint8_t *)memory;
    store->pack = twini_u32((twin_flash)pack + 12) + VERSION * 65536u + slot;
    store->slot = (uint16_t)slot;
    store->most = points;
    store->number = 0;
    store->next = store->slots = (uint16_t)(storage->block_size / slot);
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

/* a / b in units of 1/65536, as far as 32 bits have room for it: both lose their last digits until
 * a has 16. */
TWIN_APART uint32_t twini_over(uint32_t a, uint32_t b) {
    while (a >> 16) {
        a >>= 1;
        b >>= 1;
    }
    return b ? (a << 16) / b : UINT32_MAX;
}

/* Scale of a prediction where 256 is the mean in calibration. */
static uint32_t twini_relative(const twin_model *model, const twin_raw *said) {
    uint32_t scale = twini_over(said->scale, twini_u32(model->intervals + 20)) >> 8;
    return scale < 65535u ? scale : 65535u;
}

/* Learn from the run's query, which was begun. */
TWIN_APART twin_status twini_learn(twin_store *store, twin_run *run, int32_t target) {
    const twin_model *model = store->model;
    uint8_t *entry;
    uint32_t off;
    twin_raw said;
    twin_status status = (twin_status)store->status;
    if (status)
        return status;
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
    off = (uint32_t)(target < said.mean ? said.mean - target : target - said.mean);
    off = twini_over(off, said.scale) >> 8;
    if (off > MOST_SCORE)
        off = MOST_SCORE;
    if (target < said.mean)
        off = 0 - off;
    entry = twini_entry(store, store->count);
    twini_put(entry + NUMBER, store->number);
    twini_put(entry + TARGET, (uint32_t)target);
    twini_put_half(entry + SCORE, off);
    twini_put_half(entry + SCALE, twini_relative(model, &said));
    twini_put_query(entry + FEATURES, run->query, model->anchor_size);
    if (twini_program(store, store->next++, store->count))
        return TWIN_ERROR_STORAGE;
    twini_take_point(store);
    return TWIN_OK;
}

twin_status twin_learn_raw(twin_store *store, void *scratch, uint32_t size, const int16_t *query,
                           int32_t target) {
    twin_run run;
    twin_status status = twin_begin_raw(&run, store->model, scratch, size, query, 0);
    return status ? status : twini_learn(store, &run, target);
}

/* What the pack would predict if the points were the anchors of each twin. */
static int32_t twini_own(const twin_store *store, twin_run *run, void *scratch, uint32_t size) {
    twin_model own = *store->model;
    uint8_t *query = twini_entry(store, store->count), *counts;
    unsigned twin = own.twin_count;
    twin_raw said;
    own.neighbours = 0;
    own.anchor_count = store->count;
    own.members = (uint16_t)(store->count * twin);
    own.targets = (twin_flash)(uintptr_t)twini_targets(store);
    own.anchors = (twin_flash)(uintptr_t)(store->memory + FEATURES);
#if TWIN_OWN_IN_RAM
    own.flags |= TWIN_OWN;
    (void)counts;
#else
    counts = twini_targets(store) + 4 * store->most;
    own.counts = counts;
    do {
        twini_put_half(counts, store->count);
        counts += 2;
    } while (--twin);
#endif
    TWIN_COPY(query, run->query, own.anchor_size);
    twin_begin_raw(run, &own, scratch, size, (const int16_t *)(const void *)query, 0);
    own.anchor_size = store->slot;
    while (twin_step(run, store->count))
        run->before = 0u - run->owned; /* the next twin has the same anchors */
    twini_combine(run, &said);
    return said.mean;
}

/* Let the points of the store have their say in a prediction. */
TWIN_APART void twini_adapt(const twin_store *store, twin_run *run, void *scratch, uint32_t size,
                            twin_raw *out) {
    const twin_model *model = store->model;
    uint32_t k = store->count, trust = twini_u16(model->intervals + 18), rest = 65536u - trust;
    uint32_t among = k * trust + rest, near = 32768, own, part, squares = 0, scales = 0, sum = 0;
    unsigned i;
    int32_t off;
    if (store->status || !k)
        return;
    for (i = 0; i < k; i++) {
        const uint8_t *entry = twini_entry(store, i);
        uint32_t score = (uint32_t)twini_half_word(entry + SCORE);
        sum += score;
        squares += score * score;
        scales += (uint16_t)twini_half_word(entry + SCALE);
    }
    part = k * twini_relative(model, out);
    if (part < scales)
        near = twini_over(part, scales) >> 1;
    own = ((twini_over(k * trust, among) >> 1) * near) >> 15;
    off = (int32_t)((uint32_t)twini_own(store, run, scratch, size) - (uint32_t)out->mean);
    out->mean += (int32_t)(((int64_t)off * (int32_t)own + 16384) >> 15);
    if (sum >> 31)
        sum = 0 - sum;
    sum = (sum * (16 * sum / k)) >> 4;
    part = squares < sum ? 0 : squares - sum;
    part = (twini_over(part, rest) >> 2) + (twini_over(sum, among) >> 2);
    part = twini_over(64 * FREEDOM + part, 64 * FREEDOM + 64 * k);
    own = 65536u - ((trust * ((own * (65536u - near)) >> 15)) >> 15);
    out->scale = twini_product(out->scale, twini_root((uint64_t)own * part), 16);
    twini_bound(model, out);
}

twin_status twin_predict_adapted_raw(const twin_store *store, void *scratch, uint32_t size,
                                     const int16_t *query, twin_raw *out) {
    twin_status status;
    twin_run run;
    if (!twin_begin_raw(&run, store->model, scratch, size, query, 0))
        twin_step(&run, TWIN_ALL);
    status = twin_read_raw(&run, out);
    if (!status)
        twini_adapt(store, &run, scratch, size, out);
    return status;
}

#if TWIN_FLOAT

twin_status twin_learn(twin_store *store, void *scratch, uint32_t size, const float *x,
                       float target) {
    twin_run run;
    twin_status status = twin_begin(&run, store->model, scratch, size, x, 0);
    return status ? status : twini_learn(store, &run, twini_target_of(store->model, target));
}

twin_status twin_predict_adapted(const twin_store *store, void *scratch, uint32_t size,
                                 const float *x, twin_prediction *out) {
    twin_status status;
    twin_run run;
    twin_raw raw;
    if (!twin_begin(&run, store->model, scratch, size, x, 0))
        twin_step(&run, TWIN_ALL);
    status = twin_read(&run, out);
    if (!status) {
        twini_combine(&run, &raw);
        twini_adapt(store, &run, scratch, size, &raw);
        out->mean = twin_target(store->model, raw.mean);
        twini_tell(store->model, &raw, out);
    }
    return status;
}

#endif

#endif
