/* A storage in RAM that holds anything, reports errors, or reads differently each time; and stores
 * on it, with exactly the memory that they ask for. */

#ifndef FUZZ_STORAGE_H
#define FUZZ_STORAGE_H

#include "fuzz.h"
#include "twin_store.h"

enum { HEAD_SLOTS = 3 };
enum { FAILS = 1, WANDERS = 2, ZEROS = 4 }; /* flags of a storage */

typedef struct device {
    twin_storage storage;
    uint8_t *cells;
    uint64_t rng;
    uint32_t flags;
} device;

static int fails(device *one) {
    return one->flags & FAILS && one_in(&one->rng, 200);
}

static void flip_bit(uint8_t *bytes, uint32_t size, uint64_t *rng) {
    uint32_t bit = below(rng, 8 * size);
    bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
}

static int read_cells(void *context, uint32_t address, void *bytes, uint32_t size) {
    device *one = (device *)context;
    uint32_t block = one->storage.block_size;
    CHECK(size && size % 4 == 0 && address % block % 4 == 0);
    CHECK(address < 2 * block && size <= block - address % block);
    if (fails(one))
        return -1;
    memcpy(bytes, one->cells + address, size);
    if (one->flags & WANDERS && one_in(&one->rng, 32))
        flip_bit((uint8_t *)bytes, size, &one->rng);
    return 0;
}

static int program_cells(void *context, uint32_t address, const void *bytes, uint32_t size) {
    device *one = (device *)context;
    uint32_t block = one->storage.block_size, unit = one->storage.program_size;
    int failed = fails(one);
    CHECK(size && size % unit == 0 && address % unit == 0);
    CHECK(address < 2 * block && size <= block - address % block);
    if (failed)
        size = below(&one->rng, size + 1);
    memcpy(one->cells + address, bytes, size);
    return failed;
}

static uint8_t erased_cell(const device *one) {
    return (one->flags & ZEROS) ? 0 : 255;
}

static int erase_cells(void *context, uint32_t address) {
    device *one = (device *)context;
    int failed = fails(one);
    CHECK(address == 0 || address == one->storage.block_size);
    if (!failed)
        memset(one->cells + address, erased_cell(one), one->storage.block_size);
    return failed;
}

static inline uint32_t record_bytes(const twin_model *model) {
    return 4 + 12u * model->targets + 4u * model->features;
}

static inline uint32_t slot_bytes(const twin_model *model, uint32_t program_size) {
    return up(8 + record_bytes(model), program_size);
}

/* Blocks of this many bytes, without cells yet. */
static void describe_storage(device *one, uint32_t program_size, uint32_t block_size,
                             uint32_t flags) {
    memset(one, 0, sizeof *one);
    one->storage.read = read_cells;
    one->storage.program = program_cells;
    one->storage.erase = erase_cells;
    one->storage.context = one;
    one->storage.program_size = (uint16_t)program_size;
    one->storage.block_size = block_size;
    one->flags = flags;
}

static void erase_all(device *one) {
    one->cells = (uint8_t *)allocate(2 * one->storage.block_size);
    memset(one->cells, erased_cell(one), 2 * one->storage.block_size);
}

static inline int is_reliable(const device *one) {
    return !(one->flags & (FAILS | WANDERS));
}

/* A store, and its memory. The scratch is for any kernel of the model. */
typedef struct opened {
    twin_store store;
    void *points;
    memory scratch;
} opened;

static inline twin_status open_store(opened *all, const twin_model *model, const uint8_t *pack,
                                     device *one, uint16_t most) {
    uint32_t steps = 0;
    twin_status status;
    all->points = allocate(twin_store_size(model, &one->storage, most));
    all->scratch = allocate_anywhere(twin_scratch_size(model), &one->rng);
    memset(&all->store, 0xA5, sizeof all->store);
    do
        status = twin_store_open(&all->store, model, pack, &one->storage, all->points, most);
    while (status == TWIN_ERROR_STORAGE && ++steps < 4);
    while (status == TWIN_MORE ||
           (status == TWIN_ERROR_STORAGE && all->store.status == TWIN_MORE)) {
        CHECK(++steps < 4096);
        status = twin_store_step(&all->store, all->scratch.start, all->scratch.size);
    }
    CHECK(all->store.count <= most);
    return status;
}

static inline void close_store(opened *all) {
    free(all->points);
    free(all->scratch.block);
}

#endif
