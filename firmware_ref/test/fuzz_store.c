/* Whatever bytes a storage holds, and however it fails, a store and its journal stay within their
 * memory; and what they confirm is there when they are opened again.
 *
 * An input is eight bytes that describe a storage, then the content of its two blocks. Random bytes
 * are no records, so the mutator also writes slots with the right checksums.
 *
 * To be linked with libFuzzer or with fuzz_alone.c. At the end it prints what it saw, as one line
 * of JSON. */

/* clang-format off */
#define COUNTERS(COUNTER)                                                                          \
    COUNTER(points) COUNTER(damaged) COUNTER(learnt) COUNTER(forgotten) COUNTER(failed)            \
    COUNTER(adapted)
/* clang-format on */

#include "fuzz_storage.h"
#include "fuzz_store_pack.h"

enum { CONTROL = 8, HEAD_BYTES = 28 };

/* The model that all stores belong to. */
static const twin_model *open_model(void) {
    static twin_model model;
    if (!model.kernel)
        CHECK(twin_open(&model, PACK, sizeof PACK) == TWIN_OK);
    return &model;
}

static uint32_t record_size(void) {
    return record_bytes(open_model());
}

/* The storage that the first bytes of an input describe: small enough for the rest of it. */
static uint32_t describe(device *one, const uint8_t *data) {
    uint32_t unit = (uint32_t)1 << data[0] % 9, slot = slot_bytes(open_model(), unit), slots, bytes;
    slots = (USUAL_BYTES - CONTROL) / 2 / slot;
    slots = HEAD_SLOTS + 1 + data[1] % (slots < 24 ? slots - HEAD_SLOTS : 24 - HEAD_SLOTS);
    bytes = slots * slot + unit * (data[4] % 2u);
    if (2 * bytes > USUAL_BYTES - CONTROL)
        bytes = slots * slot;
    describe_storage(one, unit, bytes,
                     (data[3] % 4 ? 0 : FAILS) | (data[3] / 4 % 8 ? 0 : WANDERS) |
                         (data[3] / 32 % 2 ? 0 : ZEROS));
    return slot;
}

/* The owner of stores with slots of this size. */
static uint32_t owner_of(uint32_t slot) {
    static const uint8_t control[CONTROL] = {0, 0, 0, 0xFF};
    static uint32_t owner;
    if (!owner) {
        device blank;
        opened all;
        uint32_t size = describe(&blank, control);
        CHECK(!blank.flags);
        erase_all(&blank);
        CHECK(open_store(&all, open_model(), PACK, &blank, 1) == TWIN_OK);
        owner = all.store.journal.owner - size;
        close_store(&all);
        free(blank.cells);
    }
    return owner + slot;
}

/* Predictions are ordered, whatever the points are. */
static twin_prediction predict(opened *all, uint64_t *rng) {
    int16_t query[8] = {0};
    float x[8] = {0};
    twin_prediction out;
    twin_raw raw;
    uint32_t i;
    for (i = 0; i < all->store.model->features; i++) {
        query[i] = (int16_t)((int32_t)below(rng, 65535) - 32767);
        x[i] = (float)query[i] / 1000;
    }
    CHECK(twin_predict_adapted_raw(&all->store, all->scratch.start, all->scratch.size, query,
                                   &raw) == TWIN_OK);
    CHECK(raw.low <= raw.mean && raw.mean <= raw.high && raw.points <= all->store.count);
    CHECK(twin_predict_adapted(&all->store, all->scratch.start, all->scratch.size, x, &out) ==
          TWIN_OK);
    CHECK(out.low <= out.mean && out.mean <= out.high && out.points <= all->store.count);
    ADD(adapted, out.points != 0);
    return out;
}

static twin_status change(opened *all, uint64_t *rng) {
    twin_store *store = &all->store;
    uint32_t number = store->journal.number, first = number - below(rng, 30), i;
    float x[8], target;
    twin_status status;
    for (i = 0; i < 8; i++)
        x[i] = (float)(int32_t)(below(rng, 20001) - 10000) / 1000;
    target = one_in(rng, 8) ? -999.0f : (float)below(rng, 1000) / 100;
    switch (below(rng, 12)) {
    case 0:
        status = twin_forget(store, 0, UINT32_MAX);
        CHECK(status || !store->count);
        break;
    case 1:
        status = twin_forget(store, first, first + below(rng, 8));
        break;
    case 2:
        status = twin_keep_latest(store, (uint16_t)below(rng, 9));
        break;
    case 3:
        status = twin_forget_before(store, below(rng, 100));
        break;
    default:
        i = store->count;
        status =
            twin_learn(store, all->scratch.start, all->scratch.size, x, target, below(rng, 100));
        CHECK(store->count == i + !status);
        CHECK(status || store->journal.number == number + 1);
        ADD(learnt, !status);
        return status;
    }
    ADD(forgotten, !status);
    return status;
}

/* The journal alone: what it reads is in order, and as much as it says. */
static void try_journal(device *one) {
    uint16_t size = (uint16_t)record_size();
    uint32_t slot = twin_journal_slot(&one->storage, size), tries = 0;
    uint32_t *buffer = (uint32_t *)allocate(slot);
    twin_journal journal;
    twin_status status;
    do
        status = twin_journal_open(&journal, &one->storage, owner_of(slot), size, buffer);
    while (status == TWIN_ERROR_STORAGE && ++tries < 64);
    if (!status) {
        uint32_t number, least = 0, count = 0;
        CHECK(journal.count <= journal.slots - HEAD_SLOTS && journal.end <= journal.slots);
        CHECK(journal.damaged <= journal.slots - HEAD_SLOTS);
        while ((status = twin_journal_next(&journal, &number)) == TWIN_MORE) {
            CHECK(number >= least && (number < journal.number || one->flags & WANDERS));
            least = number + 1;
            count++;
        }
        CHECK(status || count == journal.count || one->flags & WANDERS);
        CHECK(!status || one->flags & FAILS);
    }
    free(buffer);
}

/* Change a store a few times; what it then holds must be there when it is opened again. */
static void try_store(device *one, uint16_t most) {
    uint32_t times = 1 + below(&one->rng, 8), number, count;
    twin_prediction old, now;
    uint64_t rng, same;
    opened all;
    twin_status status = open_store(&all, open_model(), PACK, one, most);
    int complete = status != TWIN_ERROR_FULL; /* otherwise older points show up later */
    CHECK(status <= 0 && status > -STATUSES);
    statuses[-status]++;
    ADD(points, all.store.count);
    ADD(damaged, status == TWIN_OK ? all.store.journal.damaged : 0);
    predict(&all, &one->rng);
    while (times--) {
        status = change(&all, &one->rng);
        CHECK(status != TWIN_MORE && (status != TWIN_ERROR_STORAGE || !is_reliable(one)));
        ADD(failed, status == TWIN_ERROR_STORAGE);
        if (one_in(&one->rng, 4))
            predict(&all, &one->rng);
    }
    rng = same = one->rng;
    old = predict(&all, &rng);
    number = all.store.journal.number;
    count = all.store.count;
    status = (twin_status)all.store.status;
    close_store(&all);
    if (is_reliable(one)) {
        twin_status again = open_store(&all, open_model(), PACK, one, most);
        now = predict(&all, &same);
        if (status) {
            CHECK(status == again);
        } else {
            CHECK(!again || again == TWIN_ERROR_FULL);
            CHECK(all.store.journal.number == number);
            CHECK(!complete || (all.store.count == count && old.points == now.points &&
                                !memcmp(&old.mean, &now.mean, sizeof old.mean)));
        }
        close_store(&all);
    }
}

static void report(void) {
    (void)printf("{");
    print_counts();
    (void)printf("}\n");
}

/* Random numbers depend on the bytes alone, so findings can be repeated. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t control[CONTROL] = {0};
    uint32_t length, there;
    device one;
    CHECK(executions || !atexit(report));
    memcpy(control, data, size < CONTROL ? size : CONTROL);
    (void)describe(&one, control);
    one.rng = crc_of(data, (uint32_t)size);
    length = 2 * one.storage.block_size;
    erase_all(&one);
    there = size < CONTROL ? 0 : (uint32_t)size - CONTROL;
    if (there)
        memcpy(one.cells, data + CONTROL, there < length ? there : length);
    try_journal(&one);
    try_store(&one, (uint16_t)(1 + control[2] % 20));
    free(one.cells);
    executions++;
    return 0;
}

/* Mutations. */

/* A head, mostly right. */
static void write_head(uint8_t *at, const device *one, uint32_t slot, uint32_t generation,
                       uint64_t *rng) {
    uint32_t slots = one->storage.block_size / slot, count = below(rng, slots - HEAD_SLOTS + 1);
    put(at + 4, generation, 4);
    put(at + 8, one_in(rng, 32) ? draw(rng) : owner_of(slot), 4);
    put(at + 12, one_in(rng, 2) ? draw(rng) : get(PACK + 12, 4), 4);
    put(at + 16, one_in(rng, 32) ? draw(rng) : slot | record_size() << 16, 4);
    put(at + 20, one_in(rng, 16) ? draw(rng) : below(rng, 40), 4);
    put(at + 24, one_in(rng, 4) ? draw(rng) : (HEAD_SLOTS + count) | count << 16, 4);
    put(at, crc_of(at + 4, HEAD_BYTES - 4), 4);
}

/* A record with the right checksum, and values of all kinds. */
static void write_record(uint8_t *at, uint32_t number, uint32_t generation, uint64_t *rng) {
    static const uint32_t odd[] = {0x7FC00000u, 0x7F800000u, 0xFF800000u, 0x80000000u, 0x7F7FFFFFu,
                                   0xFF7FFFFFu, 0x00000001u, 0xC479C000u, 0x7FFFFFFFu, 0xFFFFFFFFu};
    uint32_t size = record_size(), i;
    uint8_t *sum = (uint8_t *)allocate(8 + size);
    put(at + 4, number, 4);
    for (i = 0; i < size; i += 4) {
        uint32_t word = one_in(rng, 3) ? draw(rng) : 0x3F800000u + draw(rng) % 0x2000000u;
        if (one_in(rng, 8))
            word = odd[below(rng, sizeof odd / sizeof *odd)];
        if (i == 8 || i == 12) /* error and score */
            word = one_in(rng, 4) ? word : (uint32_t)((int32_t)below(rng, 1023) - 511);
        put(at + 8 + i, word, 4);
    }
    put(sum, generation, 4);
    memcpy(sum + 4, at + 4, 4 + size);
    put(at, crc_of(sum, 8 + size), 4);
    free(sum);
}

/* Fill a block as a store does, up to a point. */
static void write_block(uint8_t *at, const device *one, uint32_t slot, uint32_t generation,
                        uint64_t *rng) {
    uint32_t slots = one->storage.block_size / slot, count, number = below(rng, 30), i;
    memset(at, erased_cell(one), one->storage.block_size);
    count = below(rng, slots - HEAD_SLOTS + 1);
    for (i = 0; i < count; i++) {
        write_record(at + (HEAD_SLOTS + i) * slot, number, generation, rng);
        number += !one_in(rng, 8);
        number += one_in(rng, 8) ? below(rng, 5) : 0;
    }
    write_head(at, one, slot, generation, rng);
    for (i = 1; i < HEAD_SLOTS; i++)
        if (!one_in(rng, 3))
            memcpy(at + i * slot, at, HEAD_BYTES);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
    uint64_t rng = seed;
    uint32_t slot, length, block, at, generation = 1 + below(&rng, 4);
    device one;
    if (most < USUAL_BYTES)
        return LLVMFuzzerMutate(data, size, most);
    if (size < CONTROL) {
        memset(data + size, 0, CONTROL - size);
        size = CONTROL;
    }
    if (size == CONTROL || one_in(&rng, 8)) { /* another storage, which holds something */
        put(data, draw(&rng), 4);
        put(data + 4, draw(&rng), 4);
        slot = describe(&one, data);
        for (at = 0; at < 2; at++)
            write_block(data + CONTROL + at * one.storage.block_size, &one, slot,
                        generation + below(&rng, 3), &rng);
        return CONTROL + 2 * one.storage.block_size;
    }
    slot = describe(&one, data);
    length = CONTROL + 2 * one.storage.block_size;
    if (size < length)
        memset(data + size, erased_cell(&one), length - size);
    block = CONTROL + below(&rng, 2) * one.storage.block_size;
    if (!one_in(&rng, 4)) /* that of the block */
        generation = get(data + block + 4, 4);
    at = block + below(&rng, one.storage.block_size / slot) * slot;
    switch (below(&rng, 8)) {
    case 0:
    case 1:
        write_block(data + block, &one, slot, generation, &rng);
        break;
    case 2:
        write_head(data + block + below(&rng, HEAD_SLOTS) * slot, &one, slot, generation, &rng);
        break;
    case 3:
        write_record(data + at, below(&rng, 40), generation, &rng);
        break;
    case 4: /* another slot, or one of the other block */
        memmove(data + at, data + CONTROL + below(&rng, length / slot - 1) * slot, slot);
        break;
    case 5:
        flip_bit(data + CONTROL, length - CONTROL, &rng);
        break;
    case 6:
        memset(data + at, (int)(draw(&rng) & 255), slot);
        break;
    default:
        LLVMFuzzerMutate(data + CONTROL, length - CONTROL, length - CONTROL);
    }
    return length;
}
