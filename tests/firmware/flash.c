/* A memory that is erased and programmed like flash, and loses power at bad moments.
 *
 * Erasing sets bytes to 255, programming clears bits. When the power is cut, some bytes are done
 * and others are not, and some bits of the latter are undecided: they read at random, each time,
 * until they are erased or programmed successfully. `flash_trial` puts a store through this again
 * and again, and knows at each moment which points it may have. */

#include "twin_store.h"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 16384, NEVER = 0x7FFFFFFF };

typedef struct flash {
    uint32_t block_size, program_size;
    uint64_t random;
    int32_t cut;     /* changes until the power is cut, or NEVER */
    int32_t changes; /* erase and program operations so far */
    int32_t fail;    /* address that is not programmed, with an error; or -1 */
    int32_t skip;    /* address that is not programmed, without an error; or -1 */
    int32_t lie;     /* address that is programmed, but with an error; or -1 */
    int32_t stuck;   /* address of a block that is not erased, with an error; or -1 */
    int32_t unread;  /* address that is not read, with an error; or -1 */
    uint32_t once;   /* whether it refuses to program bytes twice */
    uint32_t dead;   /* whether the power is off */
    uint32_t fault;  /* first line here that saw a misuse of flash */
    uint32_t hit[2]; /* whether a change of this block failed since it was erased */
    uint8_t cell[2 * BLOCK], weak[2 * BLOCK];  /* bits, and which of them are undecided */
    uint8_t done[2 * BLOCK], meant[2 * BLOCK]; /* whether a byte was programmed, and to what */
} flash;

#define FAULT(wrong)                                                                               \
    do {                                                                                           \
        if ((wrong) && !memory->fault)                                                             \
            memory->fault = __LINE__;                                                              \
    } while (0)

static uint32_t draw(flash *memory) { /* xorshift64* */
    uint64_t x = memory->random;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    memory->random = x;
    return (uint32_t)((x * 0x2545F4914F6CDD1Du) >> 32);
}

static uint32_t below(flash *memory, uint32_t limit) {
    return (uint32_t)(((uint64_t)draw(memory) * limit) >> 32);
}

static int flash_read(void *context, uint32_t address, void *bytes, uint32_t size) {
    flash *memory = (flash *)context;
    uint8_t *to = (uint8_t *)bytes;
    uint32_t i;
    FAULT(address % memory->program_size || size % memory->program_size || !size);
    FAULT(address + size > 2 * memory->block_size);
    if (memory->dead || memory->fault || (int32_t)address == memory->unread)
        return 5;
    for (i = address; i < address + size; i++) {
        uint8_t bits = memory->cell[i], weak = memory->weak[i];
        if (weak)
            bits = (uint8_t)((bits & ~weak) | (draw(memory) & weak));
        *to++ = bits;
    }
    return 0;
}

/* What a cut leaves: which bytes are done, and how many bits of the others are undecided. */
typedef struct wreck {
    uint32_t from, to; /* bytes between these are done, */
    uint32_t done;     /* and this many in 16 of the others */
    uint32_t weak;     /* undecided bits in 16 of the rest */
    uint32_t zeroed;   /* bytes in 16 of the rest: some flash clears bits before it sets them */
    uint32_t few;      /* undecided bits, anywhere */
} wreck;

static wreck break_down(flash *memory, uint32_t size, int erases) {
    static const uint32_t shares[] = {0, 0, 1, 8, 15};
    wreck how = {0, 0, 0, 0, 0, 0};
    switch (below(memory, 4)) {
    case 0: /* almost done */
        how.to = size;
        how.few = below(memory, 4);
        break;
    case 1: /* barely started */
        how.few = below(memory, 4);
        break;
    case 2: /* one end of it, or a part in the middle */
        how.from = below(memory, 2) ? below(memory, size) : 0;
        how.to = below(memory, 2) ? how.from + below(memory, size - how.from + 1) : size;
        how.weak = shares[below(memory, 5)];
        break;
    default:
        how.done = shares[below(memory, 5)];
        how.weak = shares[below(memory, 5)];
        how.zeroed = erases ? shares[below(memory, 5)] : 0;
    }
    return how;
}

/* Program bytes, or erase if NULL. Returns whether the power is cut meanwhile. */
static int change(flash *memory, uint32_t address, uint32_t size, const uint8_t *bytes) {
    uint8_t *cell = memory->cell + address, *weak = memory->weak + address;
    int cut = memory->changes++ == memory->cut;
    wreck how = {0, 0, 16, 0, 0, 0};
    uint32_t i, bit, few;
    if (cut) {
        how = break_down(memory, size, !bytes);
        memory->dead = 1;
        memory->hit[address >= memory->block_size] = 1;
    }
    few = how.few;
    for (i = 0; i < size; i++) {
        uint8_t moved = (uint8_t)(bytes ? cell[i] & ~bytes[i] : ~cell[i]); /* bits that change */
        if ((i >= how.from && i < how.to) || below(memory, 16) < how.done) {
            cell[i] = (uint8_t)(bytes ? cell[i] & bytes[i] : 255);
            weak[i] = (uint8_t)(bytes ? weak[i] & bytes[i] : 0);
        } else if (below(memory, 16) < how.zeroed) {
            cell[i] = weak[i] = 0;
        } else {
            for (bit = 1; bit < 256; bit *= 2)
                if (moved & bit && below(memory, 16) < how.weak)
                    weak[i] = (uint8_t)(weak[i] | bit);
        }
        if (few && moved && below(memory, size - i) < few) {
            do
                bit = (uint32_t)1 << below(memory, 8);
            while (!(moved & bit));
            weak[i] = (uint8_t)(weak[i] | bit);
            few--;
        }
    }
    return cut;
}

static int flash_program(void *context, uint32_t address, const void *bytes, uint32_t size) {
    flash *memory = (flash *)context;
    const uint8_t *from = (const uint8_t *)bytes;
    uint32_t i;
    FAULT(address % memory->program_size || size % memory->program_size || !size);
    FAULT(address / memory->block_size != (address + size - 1) / memory->block_size);
    FAULT(address + size > 2 * memory->block_size);
    if (memory->dead || memory->fault)
        return -1;
    if ((int32_t)address == memory->fail || (int32_t)address == memory->skip) {
        memory->hit[address >= memory->block_size] = 1;
        return (int32_t)address == memory->fail;
    }
    if (memory->once && memchr(memory->done + address, 1, size))
        return 3;
    for (i = address; i < address + size; i++, from++) {
        /* Twice is an error, unless the block is unfinished and the bytes are the same. */
        if (memory->done[i]) {
            FAULT(!memory->hit[address >= memory->block_size]);
            FAULT(*from != memory->meant[i] && (*from ^ memory->cell[i]) & ~memory->weak[i]);
        }
        memory->done[i] = 1;
        memory->meant[i] = *from;
    }
    if ((int32_t)address == memory->lie)
        memory->hit[address >= memory->block_size] = 1;
    return change(memory, address, size, (const uint8_t *)bytes) || (int32_t)address == memory->lie;
}

static int flash_erase(void *context, uint32_t address) {
    flash *memory = (flash *)context;
    FAULT(address != 0 && address != memory->block_size);
    if (memory->dead || memory->fault || (int32_t)address == memory->stuck)
        return 1;
    if (change(memory, address, memory->block_size, 0))
        return 2;
    memset(memory->done + address, 0, memory->block_size);
    memory->hit[address != 0] = 0;
    return 0;
}

flash *flash_new(void);
flash *flash_new(void) {
    return (flash *)malloc(sizeof(flash));
}

void flash_free(flash *memory);
void flash_free(flash *memory) {
    free(memory);
}

/* A new memory, and its storage functions. */
void flash_reset(flash *memory, twin_storage *storage, uint32_t block_size, uint16_t program_size,
                 uint32_t seed);
void flash_reset(flash *memory, twin_storage *storage, uint32_t block_size, uint16_t program_size,
                 uint32_t seed) {
    memset(memory, 0, sizeof *memory);
    memset(memory->cell, 255, sizeof memory->cell);
    memory->block_size = storage->block_size = block_size;
    memory->program_size = storage->program_size = program_size;
    memory->random = seed + ((uint64_t)1 << 63);
    memory->cut = NEVER;
    memory->fail = memory->skip = memory->lie = memory->stuck = memory->unread = -1;
    storage->read = flash_read;
    storage->program = flash_program;
    storage->erase = flash_erase;
    storage->context = memory;
}

/* Copy the blocks, but not the state of the random numbers. */
static void flash_copy(flash *to, const flash *from) {
    uint32_t size = 2 * from->block_size;
    uint64_t random = to->random;
    memcpy(to, from, offsetof(flash, cell));
    to->random = random;
    memcpy(to->cell, from->cell, size);
    memcpy(to->weak, from->weak, size);
    memcpy(to->done, from->done, size);
    memcpy(to->meant, from->meant, size);
}

/* ---- what a store may hold */

enum { PLACES = 32, FEATURES = 4, KNOWN = 24 };

typedef struct point {
    uint32_t number;
    int32_t target;
    int16_t query[FEATURES];
} point;

typedef struct content {
    unsigned count;
    point points[PLACES];
} content;

/* A store on a flash, and all contents that it may have: what the last confirmed change has left,
 * and the possible results of changes that were cut since. */
typedef struct trial {
    const twin_model *model;
    twin_pack pack;
    flash *memory;
    const twin_storage *storage;
    void *scratch;
    uint32_t scratch_size;
    uint16_t most;
    uint32_t cuts, either[2]; /* how many, and how often the old and the new content showed */
    uint32_t fault;           /* first line that found something wrong */
    twin_store store;
    uint32_t room[512];
    unsigned known, now; /* possible contents, and the one it shows */
    content contents[KNOWN];
} trial;

#define CHECK(right)                                                                               \
    do {                                                                                           \
        if (!all->fault)                                                                           \
            all->fault = all->memory->fault ? all->memory->fault : (right) ? 0 : __LINE__;         \
    } while (0)

static int same(const trial *all, const content *a, const content *b) {
    unsigned i;
    if (a->count != b->count)
        return 0;
    for (i = 0; i < a->count; i++)
        if (a->points[i].number != b->points[i].number ||
            a->points[i].target != b->points[i].target ||
            memcmp(a->points[i].query, b->points[i].query, 2u * all->model->features))
            return 0;
    return 1;
}

/* What the store shows: entries as in FORMAT.md. */
static void look(trial *all, content *seen) {
    const twin_store *store = &all->store;
    unsigned i;
    seen->count = store->count <= PLACES ? store->count : 0;
    for (i = 0; i < seen->count; i++) {
        const uint8_t *entry = store->memory + (uint32_t)i * store->slot;
        memcpy(&seen->points[i].number, entry + 4, 4);
        memcpy(&seen->points[i].target, entry + 8, 4);
        memcpy(seen->points[i].query, entry + 16, 2u * all->model->features);
    }
    CHECK(store->number == (i ? seen->points[i - 1].number + 1 : 0));
}

/* Turn the power on: the store must show something that it may have. */
static void reopen(trial *all) {
    content seen;
    unsigned i;
    all->memory->dead = 0;
    all->memory->cut = NEVER;
    memset(&all->store, below(all->memory, 2) ? 0xA5 : 0, sizeof all->store);
    memset(all->room, 0xA5, sizeof all->room);
    CHECK(twin_store_open(&all->store, all->model, all->pack, all->storage, all->room, all->most) ==
          TWIN_OK);
    if (all->fault)
        return;
    look(all, &seen);
    for (i = 0; i < all->known && !same(all, &seen, all->contents + i); i++)
        ;
    CHECK(i < all->known);
    all->now = i;
}

/* A change to make, of either kind. */
typedef struct deed {
    int learns;
    point made;
    uint32_t first, last; /* to be forgotten */
} deed;

static void plan(trial *all, deed *what) {
    flash *memory = all->memory;
    uint32_t number = all->store.number, i;
    what->learns = all->contents[all->now].count < all->most && below(memory, 8) < 6;
    what->made.number = number;
    what->made.target = (int32_t)below(memory, 2000000) - 1000000;
    memset(what->made.query, 0, sizeof what->made.query);
    for (i = 0; i < all->model->features; i++)
        what->made.query[i] = (int16_t)((int32_t)below(memory, 65535) - 32767);
    what->first = 0;
    what->last = UINT32_MAX;
    switch (below(memory, 8)) {
    case 0: /* all */
        break;
    case 1:
    case 2: /* the oldest, if any */
        i = below(memory, all->most + 1u);
        what->last = number > i ? number - i - 1 : 0;
        break;
    case 3: /* none */
        what->first = what->last = number;
        break;
    default: /* a few of the latest */
        i = 1 + below(memory, all->most + 2u);
        what->first = number > i ? number - i : 0;
        what->last = what->first + below(memory, 3);
    }
}

static void foresee(const trial *all, const deed *what, content *next) {
    const content *now = all->contents + all->now;
    unsigned i;
    next->count = 0;
    for (i = 0; i < now->count; i++)
        if (what->learns || now->points[i].number < what->first ||
            now->points[i].number > what->last)
            next->points[next->count++] = now->points[i];
    if (what->learns)
        next->points[next->count++] = what->made;
}

static twin_status act(trial *all, const deed *what) {
    if (what->learns)
        return twin_learn_raw(&all->store, all->scratch, all->scratch_size, what->made.query,
                              what->made.target);
    return twin_forget(&all->store, what->first, what->last);
}

/* Make a change, cutting the power after this many changes of the memory. Returns whether it was
 * cut; otherwise the content of the store is certain. */
static int suffer(trial *all, const deed *what, uint32_t cut) {
    content next, seen;
    twin_status status;
    foresee(all, what, &next);
    all->memory->cut = all->memory->changes + (int32_t)cut;
    status = act(all, what);
    if (all->memory->dead) {
        CHECK(status == TWIN_ERROR_STORAGE);
        CHECK(act(all, what) == TWIN_ERROR_STORAGE);
        all->cuts++;
        all->contents[all->known++] = next;
        return 1;
    }
    all->memory->cut = NEVER;
    CHECK(status == TWIN_OK);
    look(all, &seen);
    CHECK(same(all, &seen, &next));
    CHECK(all->store.lost == 0);
    all->contents[0] = next;
    all->known = 1;
    all->now = 0;
    return 0;
}

/* A change of the memory to cut at: often an erasure or a head. */
static uint32_t moment(trial *all, const deed *what) {
    content next;
    foresee(all, what, &next);
    switch (below(all->memory, 4)) {
    case 0:
        return 0;
    case 1:
        return next.count - (what->learns ? 1u : 0u) + 1;
    default:
        return below(all->memory, 2 * all->contents[all->now].count + 8);
    }
}

static void open_often(trial *all) {
    uint32_t i;
    for (i = below(all->memory, 3); i < 3 && !all->fault; i++)
        reopen(all);
}

/* After a cut: open, and cut the power again in the first change, up to this many times; in the end
 * changes succeed, and stay. */
static void recover(trial *all, unsigned times) {
    deed what;
    int lost = 1;
    open_often(all);
    if (!all->fault && all->known == 2)
        all->either[all->now]++;
    while (times-- && lost && !all->fault && all->known < KNOWN) {
        plan(all, &what);
        lost = suffer(all, &what, moment(all, &what));
        if (lost || !below(all->memory, 2))
            open_often(all);
    }
    for (times = 0; times < 2 && !all->fault; times++) {
        plan(all, &what);
        CHECK(!suffer(all, &what, NEVER / 2));
        open_often(all);
    }
}

/* This many random changes, each cut at every program and erase operation it makes. */
uint32_t flash_trial(flash *memory, const twin_storage *storage, const twin_model *model,
                     twin_pack pack, void *scratch, uint32_t scratch_size, uint16_t most,
                     uint32_t changes, uint32_t nested, uint32_t *counts);
uint32_t flash_trial(flash *memory, const twin_storage *storage, const twin_model *model,
                     twin_pack pack, void *scratch, uint32_t scratch_size, uint16_t most,
                     uint32_t changes, uint32_t nested, uint32_t *counts) {
    static trial live, before;
    static flash aside;
    trial *all = &live;
    deed what;
    memset(all, 0, sizeof *all);
    all->model = model;
    all->pack = pack;
    all->memory = memory;
    all->storage = storage;
    all->scratch = scratch;
    all->scratch_size = scratch_size;
    all->most = most;
    all->known = 1;
    CHECK(most <= PLACES && model->features <= FEATURES);
    CHECK(twin_store_size(model, storage, most) <= sizeof all->room);
    if (!all->fault)
        reopen(all);
    while (changes-- && !all->fault) {
        uint32_t cut;
        if (!below(memory, 6))
            reopen(all);
        plan(all, &what);
        before = live;
        flash_copy(&aside, memory);
        for (cut = 0; !all->fault && suffer(all, &what, cut); cut++) {
            recover(all, nested ? below(memory, nested + 1) : 0);
            before.cuts = all->cuts;
            before.either[0] = all->either[0];
            before.either[1] = all->either[1];
            before.fault = all->fault;
            live = before;
            flash_copy(memory, &aside);
        }
    }
    counts[0] = all->cuts;
    counts[1] = all->either[0];
    counts[2] = all->either[1];
    return all->fault;
}
