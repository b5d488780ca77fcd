/* Whatever bytes a storage holds, and however it fails, a store and its journal stay within their
 * memory; and what they confirm is there when they are opened again.
 *
 * An input is eight bytes that describe a storage, then the content of its two blocks. Random bytes
 * are no records, so the mutator also writes slots with the right checksums.
 *
 * To be linked with libFuzzer or with fuzz_alone.c. At the end it prints what it saw, as one line
 * of JSON. */

#include "fuzz_pack.h"
#include "fuzz_store_pack.h"
#include "twin_store.h"
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

enum { CONTROL = 8, MOST_BYTES = 8192, HEAD_BYTES = 28, HEAD_SLOTS = 3, STATUSES = 24 };
enum { FAILS = 1, WANDERS = 2, ZEROS = 4 }; /* flags of a storage */

static struct {
    unsigned long long inputs, points, damaged;
    unsigned long long verdicts[STATUSES]; /* of opening, by -status; TWIN_MORE counts as TWIN_OK */
    unsigned long long learnt, forgotten, failed, adapted;
} seen;

static void broken(const char *claim, int line) {
    (void)fprintf(stderr, "fuzz_store.c:%d: does not hold, in input %llu: %s\n", line, seen.inputs,
                  claim);
    abort();
}
#define MUST(claim) ((claim) ? (void)0 : broken(#claim, __LINE__))

static void *room(size_t size) {
    void *block = malloc(size ? size : 1);
    MUST(block);
    return block;
}

/* A storage that holds anything, reports errors, or reads differently each time. */
typedef struct device {
    twin_storage storage;
    uint8_t *cells;
    uint64_t luck;
    uint32_t flags;
} device;

static int fails(device *one) {
    return one->flags & FAILS && one_in(&one->luck, 200);
}

static int read_cells(void *context, uint32_t address, void *bytes, uint32_t size) {
    device *one = (device *)context;
    uint32_t block = one->storage.block_size;
    MUST(size && size % 4 == 0 && address % block % 4 == 0);
    MUST(address < 2 * block && size <= block - address % block);
    if (fails(one))
        return -1;
    memcpy(bytes, one->cells + address, size);
    if (one->flags & WANDERS && one_in(&one->luck, 32))
        ((uint8_t *)bytes)[below(&one->luck, size)] ^= (uint8_t)(1u << below(&one->luck, 8));
    return 0;
}

static int program_cells(void *context, uint32_t address, const void *bytes, uint32_t size) {
    device *one = (device *)context;
    uint32_t block = one->storage.block_size, unit = one->storage.program_size;
    int failed = fails(one);
    MUST(size && size % unit == 0 && address % unit == 0);
    MUST(address < 2 * block && size <= block - address % block);
    if (failed)
        size = below(&one->luck, size + 1);
    memcpy(one->cells + address, bytes, size);
    return failed;
}

static int erase_cells(void *context, uint32_t address) {
    device *one = (device *)context;
    int failed = fails(one);
    MUST(address == 0 || address == one->storage.block_size);
    if (!failed)
        memset(one->cells + address, one->flags & ZEROS ? 0 : 255, one->storage.block_size);
    return failed;
}

/* The model that all stores belong to. */
static const twin_model *open_model(void) {
    static twin_model model;
    if (!model.kernel)
        MUST(twin_open(&model, PACK, sizeof PACK) == TWIN_OK);
    return &model;
}

static uint32_t record_size(void) {
    return 16 + 4u * open_model()->features;
}

/* The storage that the first bytes of an input describe: small enough for the rest of it. */
static uint32_t describe(device *one, const uint8_t *data) {
    uint32_t unit = (uint32_t)1 << data[0] % 9, slot = up(8 + record_size(), unit), slots;
    slots = (MOST_BYTES - CONTROL) / 2 / slot;
    slots = HEAD_SLOTS + 1 + data[1] % (slots < 24 ? slots - HEAD_SLOTS : 24 - HEAD_SLOTS);
    memset(one, 0, sizeof *one);
    one->storage.read = read_cells;
    one->storage.program = program_cells;
    one->storage.erase = erase_cells;
    one->storage.context = one;
    one->storage.program_size = (uint16_t)unit;
    one->storage.block_size = slots * slot + unit * (data[4] % 2u);
    if (2 * one->storage.block_size > MOST_BYTES - CONTROL)
        one->storage.block_size = slots * slot;
    one->flags = (data[3] % 4 ? 0 : FAILS) | (data[3] / 4 % 8 ? 0 : WANDERS) |
                 (data[3] / 32 % 2 ? 0 : ZEROS);
    return slot;
}

/* A store, with exactly the memory that it asks for. */
typedef struct opened {
    twin_store store;
    void *memory, *scratch;
    uint32_t size;
    uint16_t most;
} opened;

static twin_status open_store(opened *all, const device *one, uint16_t most) {
    const twin_model *model = open_model();
    uint32_t steps = 0;
    twin_status status;
    all->most = most;
    all->memory = room(twin_store_size(model, &one->storage, most));
    all->size = twin_scratch_size(model);
    all->scratch = room(all->size);
    memset(&all->store, 0xA5, sizeof all->store);
    do
        status = twin_store_open(&all->store, model, PACK, &one->storage, all->memory, most);
    while (status == TWIN_ERROR_STORAGE && ++steps < 4);
    while (status == TWIN_MORE ||
           (status == TWIN_ERROR_STORAGE && all->store.status == TWIN_MORE)) {
        MUST(++steps < 4096);
        status = twin_store_step(&all->store, all->scratch, all->size);
    }
    MUST(all->store.count <= most);
    return status;
}

static void stop(opened *all) {
    free(all->memory);
    free(all->scratch);
}

/* The owner of stores with slots of this size. */
static uint32_t owner_of(uint32_t slot) {
    static const uint8_t control[CONTROL] = {0, 0, 0, 0xFF};
    static uint32_t owner;
    if (!owner) {
        device blank;
        opened all;
        uint32_t size = describe(&blank, control), length = 2 * blank.storage.block_size;
        MUST(!blank.flags);
        blank.cells = (uint8_t *)room(length);
        memset(blank.cells, 255, length);
        MUST(open_store(&all, &blank, 1) == TWIN_OK);
        owner = all.store.journal.owner - size;
        stop(&all);
        free(blank.cells);
    }
    return owner + slot;
}

/* Predictions are ordered, whatever the points are. */
static twin_prediction predict(opened *all, uint64_t *luck) {
    int16_t query[8] = {0};
    float x[8] = {0};
    twin_prediction out;
    twin_raw raw;
    uint32_t i;
    for (i = 0; i < all->store.model->features; i++) {
        query[i] = (int16_t)((int32_t)below(luck, 65535) - 32767);
        x[i] = (float)query[i] / 1000;
    }
    MUST(twin_predict_adapted_raw(&all->store, all->scratch, all->size, query, &raw) == TWIN_OK);
    MUST(raw.low <= raw.mean && raw.mean <= raw.high && raw.points <= all->store.count);
    MUST(twin_predict_adapted(&all->store, all->scratch, all->size, x, &out) == TWIN_OK);
    MUST(out.low <= out.mean && out.mean <= out.high && out.points <= all->store.count);
    seen.adapted += out.points != 0;
    return out;
}

static twin_status change(opened *all, uint64_t *luck) {
    twin_store *store = &all->store;
    uint32_t number = store->journal.number, first = number - below(luck, 30), i;
    float x[8], target;
    twin_status status;
    for (i = 0; i < 8; i++)
        x[i] = (float)(int32_t)(below(luck, 20001) - 10000) / 1000;
    target = one_in(luck, 8) ? -999.0f : (float)below(luck, 1000) / 100;
    switch (below(luck, 12)) {
    case 0:
        status = twin_forget(store, 0, UINT32_MAX);
        MUST(status || !store->count);
        break;
    case 1:
        status = twin_forget(store, first, first + below(luck, 8));
        break;
    case 2:
        status = twin_keep_latest(store, (uint16_t)below(luck, 9));
        break;
    case 3:
        status = twin_forget_before(store, below(luck, 100));
        break;
    default:
        i = store->count;
        status = twin_learn(store, all->scratch, all->size, x, target, below(luck, 100));
        MUST(store->count == i + !status);
        MUST(status || store->journal.number == number + 1);
        seen.learnt += !status;
        return status;
    }
    seen.forgotten += !status;
    return status;
}

/* The journal alone: what it reads is in order, and as much as it says. */
static void try_journal(device *one) {
    uint16_t size = (uint16_t)record_size();
    uint32_t slot = twin_journal_slot(&one->storage, size), tries = 0;
    uint32_t *buffer = (uint32_t *)room(slot);
    twin_journal journal;
    twin_status status;
    do
        status = twin_journal_open(&journal, &one->storage, owner_of(slot), size, buffer);
    while (status == TWIN_ERROR_STORAGE && ++tries < 64);
    if (!status) {
        uint32_t number, least = 0, count = 0;
        MUST(journal.count <= journal.slots - HEAD_SLOTS && journal.end <= journal.slots);
        MUST(journal.damaged <= journal.slots - HEAD_SLOTS);
        while ((status = twin_journal_next(&journal, &number)) == TWIN_MORE) {
            MUST(number >= least && (number < journal.number || one->flags & WANDERS));
            least = number + 1;
            count++;
        }
        MUST(status || count == journal.count || one->flags & WANDERS);
        MUST(!status || one->flags & FAILS);
    }
    free(buffer);
}

static int is_sure(const device *one) {
    return !(one->flags & (FAILS | WANDERS));
}

/* Change a store a few times; what it then holds must be there when it is opened again. */
static void try_store(device *one, uint16_t most) {
    uint32_t times = 1 + below(&one->luck, 8), number, count;
    twin_prediction old, now;
    uint64_t luck;
    opened all;
    twin_status status = open_store(&all, one, most);
    int complete = status != TWIN_ERROR_FULL; /* otherwise older points show up later */
    MUST(status <= 0 && status > -STATUSES);
    seen.verdicts[-status]++;
    seen.points += all.store.count;
    seen.damaged += status == TWIN_OK ? all.store.journal.damaged : 0;
    predict(&all, &one->luck);
    while (times--) {
        status = change(&all, &one->luck);
        MUST(status != TWIN_MORE && (status != TWIN_ERROR_STORAGE || !is_sure(one) || times < 8));
        seen.failed += status == TWIN_ERROR_STORAGE;
        if (one_in(&one->luck, 4))
            predict(&all, &one->luck);
    }
    luck = one->luck;
    old = predict(&all, &luck);
    number = all.store.journal.number;
    count = all.store.count;
    status = (twin_status)all.store.status;
    stop(&all);
    if (is_sure(one)) {
        twin_status again = open_store(&all, one, most);
        luck = one->luck;
        now = predict(&all, &luck);
        if (status) {
            MUST(status == again);
        } else {
            MUST(!again || again == TWIN_ERROR_FULL);
            MUST(all.store.journal.number == number);
            MUST(!complete || (all.store.count == count && old.points == now.points &&
                               !memcmp(&old.mean, &now.mean, sizeof old.mean)));
        }
        stop(&all);
    }
}

static void report(void) {
    unsigned i;
    (void)printf("{\"inputs\": %llu, \"verdicts\": [", seen.inputs);
    for (i = 0; i < STATUSES; i++)
        (void)printf("%s%llu", i ? ", " : "", seen.verdicts[i]);
    (void)printf("], \"points\": %llu, \"damaged\": %llu, \"learnt\": %llu, \"forgotten\": %llu, ",
                 seen.points, seen.damaged, seen.learnt, seen.forgotten);
    (void)printf("\"failed\": %llu, \"adapted\": %llu}\n", seen.failed, seen.adapted);
}

/* Random numbers depend on the bytes alone, so findings can be repeated. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t control[CONTROL] = {0};
    uint32_t length, there;
    device one;
    MUST(seen.inputs || !atexit(report));
    memcpy(control, data, size < CONTROL ? size : CONTROL);
    (void)describe(&one, control);
    one.luck = crc_of(data, (uint32_t)size);
    length = 2 * one.storage.block_size;
    one.cells = (uint8_t *)room(length);
    memset(one.cells, one.flags & ZEROS ? 0 : 255, length);
    there = size < CONTROL ? 0 : (uint32_t)size - CONTROL;
    if (there)
        memcpy(one.cells, data + CONTROL, there < length ? there : length);
    try_journal(&one);
    try_store(&one, (uint16_t)(1 + control[2] % 20));
    free(one.cells);
    seen.inputs++;
    return 0;
}

/* ---- mutations */

/* A head, mostly right. */
static void write_head(uint8_t *at, const device *one, uint32_t slot, uint32_t generation,
                       uint64_t *luck) {
    uint32_t slots = one->storage.block_size / slot, count = below(luck, slots - HEAD_SLOTS + 1);
    put(at + 4, generation, 4);
    put(at + 8, one_in(luck, 32) ? draw(luck) : owner_of(slot), 4);
    put(at + 12, one_in(luck, 2) ? draw(luck) : get(PACK + 12, 4), 4);
    put(at + 16, one_in(luck, 32) ? draw(luck) : slot | record_size() << 16, 4);
    put(at + 20, one_in(luck, 16) ? draw(luck) : below(luck, 40), 4);
    put(at + 24, one_in(luck, 4) ? draw(luck) : (HEAD_SLOTS + count) | count << 16, 4);
    put(at, crc_of(at + 4, HEAD_BYTES - 4), 4);
}

/* A record with the right checksum, and values of all kinds. */
static void write_record(uint8_t *at, uint32_t number, uint32_t generation, uint64_t *luck) {
    static const uint32_t odd[] = {0x7FC00000u, 0x7F800000u, 0xFF800000u, 0x80000000u, 0x7F7FFFFFu,
                                   0xFF7FFFFFu, 0x00000001u, 0xC479C000u, 0x7FFFFFFFu, 0xFFFFFFFFu};
    uint32_t size = record_size(), i;
    uint8_t *sum = (uint8_t *)room(8 + size);
    put(at + 4, number, 4);
    for (i = 0; i < size; i += 4) {
        uint32_t word = one_in(luck, 3) ? draw(luck) : 0x3F800000u + draw(luck) % 0x2000000u;
        if (one_in(luck, 8))
            word = odd[below(luck, sizeof odd / sizeof *odd)];
        if (i == 8 || i == 12) /* error and score */
            word = one_in(luck, 4) ? word : (uint32_t)((int32_t)below(luck, 1023) - 511);
        put(at + 8 + i, word, 4);
    }
    put(sum, generation, 4);
    memcpy(sum + 4, at + 4, 4 + size);
    put(at, crc_of(sum, 8 + size), 4);
    free(sum);
}

/* Fill a block as a store does, up to a point. */
static void write_block(uint8_t *at, const device *one, uint32_t slot, uint32_t generation,
                        uint64_t *luck) {
    uint32_t slots = one->storage.block_size / slot, count, number = below(luck, 30), i;
    memset(at, one->flags & ZEROS ? 0 : 255, one->storage.block_size);
    count = below(luck, slots - HEAD_SLOTS + 1);
    for (i = 0; i < count; i++) {
        write_record(at + (HEAD_SLOTS + i) * slot, number, generation, luck);
        number += !one_in(luck, 8) + (one_in(luck, 8) ? below(luck, 5) : 0);
    }
    write_head(at, one, slot, generation, luck);
    for (i = 1; i < HEAD_SLOTS; i++)
        if (!one_in(luck, 3))
            memcpy(at + i * slot, at, HEAD_BYTES);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
    uint64_t luck = seed;
    uint32_t slot, length, block, at, generation = 1 + below(&luck, 4);
    device one;
    if (most < MOST_BYTES)
        return LLVMFuzzerMutate(data, size, most);
    if (size < CONTROL) {
        memset(data + size, 0, CONTROL - size);
        size = CONTROL;
    }
    if (size == CONTROL || one_in(&luck, 8)) { /* another storage, which holds something */
        put(data, draw(&luck), 4);
        put(data + 4, draw(&luck), 4);
        slot = describe(&one, data);
        for (at = 0; at < 2; at++)
            write_block(data + CONTROL + at * one.storage.block_size, &one, slot,
                        generation + below(&luck, 3), &luck);
        return CONTROL + 2 * one.storage.block_size;
    }
    slot = describe(&one, data);
    length = CONTROL + 2 * one.storage.block_size;
    if (size < length)
        memset(data + size, one.flags & ZEROS ? 0 : 255, length - size);
    block = CONTROL + below(&luck, 2) * one.storage.block_size;
    if (!one_in(&luck, 4)) /* that of the block */
        generation = get(data + block + 4, 4);
    at = block + below(&luck, one.storage.block_size / slot) * slot;
    switch (below(&luck, 8)) {
    case 0:
    case 1:
        write_block(data + block, &one, slot, generation, &luck);
        break;
    case 2:
        write_head(data + block + below(&luck, HEAD_SLOTS) * slot, &one, slot, generation, &luck);
        break;
    case 3:
        write_record(data + at, below(&luck, 40), generation, &luck);
        break;
    case 4: /* another slot, or one of the other block */
        memmove(data + at, data + CONTROL + below(&luck, length / slot - 1) * slot, slot);
        break;
    case 5:
        data[CONTROL + below(&luck, length - CONTROL)] ^= (uint8_t)(1u << below(&luck, 8));
        break;
    case 6:
        memset(data + at, (int)(draw(&luck) & 255), slot);
        break;
    default:
        LLVMFuzzerMutate(data + CONTROL, length - CONTROL, length - CONTROL);
    }
    return length;
}
