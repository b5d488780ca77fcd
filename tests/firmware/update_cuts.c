/* A device that is updated, and learns, again and again, while its power is cut at each erasure and
 * at each program of its three memories: the two banks, their journal, and a store.
 *
 * Whatever a cut left, it must start with a pack that is signed, sound and passes its self-test, in
 * the bank that may be in use, and with the points that it had. The pack is read as a part reads it
 * that cannot reach its flash by pointers: through the memory's function, into RAM. */

#include "flash.h"
#include "hmac_sha256.h"
#include "twin_slots.h"
#include "twin_store.h"
#include <string.h>

enum { BANK = 1024, MEMORIES = 3, MOST_POINTS = 6, KEPT = 3, RANGES = 12, STARTS = 2 };
enum { BANKS, LOG, SITE };

typedef struct pack {
    const uint8_t *bytes;
    uint32_t size, counter;
} pack;

/* Points have the numbers 1, 2, 3, ... as targets; a store has those of one range. */
typedef struct range {
    uint32_t first, end;
} range;

typedef struct device {
    twin_slots slots;
    twin_model model, other;
    twin_store store;
    uint32_t slots_memory[128], store_memory[64], scratch[512];
    uint32_t in_use[BANK / 4], update[BANK / 4]; /* copies of both banks in RAM */
    unsigned banks;                              /* that may be in use at the next start */
    range ranges[RANGES];                        /* what the store may hold */
    unsigned range_count;
    range now; /* what it holds */
    uint32_t counter;
    unsigned on_trial;
} device;

typedef struct world {
    device device;
    flash *memory[MEMORIES];
    twin_storage inner[MEMORIES], storage[MEMORIES];
    hmac_key key;
    const pack *packs;
    uint32_t pack_count;
    int32_t left; /* changes until the power is cut, or NEVER */
    unsigned dead;
    uint32_t fault;
    uint32_t cuts, updates, trials, confirmed, undone, points, both[2], restarts, repeated, failed;
} world;

/* What a cut has left may read otherwise than at opening, and then a call fails. Another may
 * succeed; if none does, the device starts again. */
#define CALL(status, call)                                                                         \
    do {                                                                                           \
        unsigned tries = 0;                                                                        \
        do                                                                                         \
            status = call;                                                                         \
        while (status == TWIN_ERROR_STORAGE && !all->dead && tries++ < 9);                         \
        all->repeated += tries > 0;                                                                \
    } while (0)

#define CHECK(right)                                                                               \
    do {                                                                                           \
        if (!all->fault && !(right))                                                               \
            all->fault = __LINE__;                                                                 \
    } while (0)

static world *all;

/* ---- three memories that lose their power together */

static unsigned is_cut(unsigned which) {
    if (all->dead)
        return 1;
    if (all->left-- == 0) {
        all->memory[which]->cut = all->memory[which]->changes;
        all->dead = 1;
    }
    return 0;
}

static unsigned number_of(const void *context) {
    unsigned which = 0;
    while (which < MEMORIES - 1 && all->memory[which] != context)
        which++;
    return which;
}

static int read_memory(void *context, uint32_t address, void *bytes, uint32_t size) {
    return all->dead ? 1 : all->inner[number_of(context)].read(context, address, bytes, size);
}

static int program_memory(void *context, uint32_t address, const void *bytes, uint32_t size) {
    unsigned which = number_of(context);
    return is_cut(which) ? 1 : all->inner[which].program(context, address, bytes, size);
}

static int erase_memory(void *context, uint32_t address) {
    unsigned which = number_of(context);
    return is_cut(which) ? 1 : all->inner[which].erase(context, address);
}

static void power_on(void) {
    unsigned i;
    for (i = 0; i < MEMORIES; i++) {
        CHECK(!all->memory[i]->fault);
        all->memory[i]->dead = 0;
        all->memory[i]->cut = NEVER;
    }
    all->dead = 0;
    all->left = NEVER;
}

static uint32_t below(uint32_t limit) {
    return flash_below(all->memory[BANKS], limit);
}

/* ---- the program of the device */

static void read_bank(unsigned bank, uint32_t *copy) {
    CHECK(!read_memory(all->memory[BANKS], bank * BANK, copy, BANK));
}

/* Check the pack of a bank in steps, after copying it. */
static twin_status check(unsigned bank, twin_model *model, uint32_t *copy) {
    device *own = &all->device;
    twin_check state;
    twin_status status;
    read_bank(bank, copy);
    memset(&state, 0xA5, sizeof state);
    status = twin_check_begin(&state, &own->slots, model, copy, hmac_verify, &all->key);
    while (status == TWIN_MORE)
        status = twin_check_step(&state, 256, own->scratch, sizeof own->scratch);
    return status;
}

/* The pack of which a bank holds every byte; or none. */
static const pack *known(const uint32_t *copy) {
    uint32_t i;
    for (i = 0; i < all->pack_count; i++)
        if (!memcmp(copy, all->packs[i].bytes, all->packs[i].size))
            return all->packs + i;
    return 0;
}

static twin_status open_store(void) {
    device *own = &all->device;
    twin_status status;
    memset(&own->store, 0xA5, sizeof own->store);
    memset(own->store_memory, 0xA5, sizeof own->store_memory);
    CHECK(twin_store_size(&own->model, all->storage + SITE, MOST_POINTS) <=
          sizeof own->store_memory);
    status = twin_store_open(&own->store, &own->model, own->in_use, all->storage + SITE,
                             own->store_memory, MOST_POINTS);
    while (status == TWIN_MORE)
        status = twin_store_step(&own->store, own->scratch, sizeof own->scratch);
    return status;
}

/* Start. Returns whether the power stayed on. */
static unsigned start(void) {
    device *own = &all->device;
    twin_status status;
    const pack *used;
    unsigned i;
    all->restarts++;
    memset(&own->slots, 0xA5, sizeof own->slots);
    memset(own->slots_memory, 0xA5, sizeof own->slots_memory);
    CHECK(twin_slots_size(all->storage + LOG, all->storage + BANKS) <= sizeof own->slots_memory);
    CALL(status,
         twin_slots_open(&own->slots, all->storage + LOG, all->storage + BANKS, own->slots_memory));
    if (all->dead)
        return 0;
    CHECK(status == TWIN_OK);
    CHECK(own->banks >> own->slots.bank & 1);
    CHECK(check(own->slots.bank, &own->model, own->in_use) == TWIN_OK);
    used = known(own->in_use);
    CHECK(used && used->counter >= own->slots.state.lowest);
    if (all->fault)
        return 1;
    own->counter = used->counter;
    own->on_trial = own->slots.on_trial;
    all->both[own->slots.bank]++;
    /* A count of starts was written, or nothing: then what is read may be undecided still. */
    if (own->slots.settled)
        own->banks = own->slots.state.trial >= 2 ? 2u >> own->slots.state.current
                                                 : 1u << own->slots.state.current;
    CALL(status, open_store());
    CHECK(status == TWIN_OK);
    own->now.first = own->store.count ? (uint32_t)own->store.points[0].target : 0;
    own->now.end = own->now.first + own->store.count;
    for (i = 0; i < own->store.count; i++)
        CHECK((uint32_t)own->store.points[i].target == own->now.first + i);
    for (i = 0; i < own->range_count; i++)
        if (own->ranges[i].end - own->ranges[i].first == own->store.count &&
            (!own->store.count || own->ranges[i].first == own->now.first))
            break;
    CHECK(i < own->range_count);
    if (!all->fault)
        own->now = own->ranges[i];
    return 1;
}

/* ---- what happens to it */

typedef enum { UPDATE, LEARN, FORGET, CONFIRM, UNDO, RESTART } kind;

typedef struct event {
    kind what;
    uint32_t pack, piece, starts;
} event;

static event any_event(void) {
    const device *own = &all->device;
    static const kind most[] = {UPDATE, UPDATE, LEARN, RESTART};
    static const kind trial[] = {CONFIRM, CONFIRM, UNDO, RESTART, RESTART, LEARN};
    event one;
    one.what = own->on_trial ? trial[below(6)] : most[below(4)];
    if (one.what == LEARN && own->store.count == MOST_POINTS)
        one.what = FORGET;
    do
        one.pack = below(all->pack_count);
    while (all->packs[one.pack].counter < own->slots.state.lowest);
    one.piece = 1 + below(below(2) ? 40 : 700);
    one.starts = 1 + below(STARTS);
    return one;
}

/* Banks that may be in use at the next start, if the power fails now or later: more and more. */
static void may_use(unsigned bank) {
    all->device.banks |= 1u << bank;
}

static void may_hold(range more) {
    device *own = &all->device;
    CHECK(own->range_count < RANGES);
    if (!all->fault)
        own->ranges[own->range_count++] = more;
}

static twin_status update(const event *one) {
    device *own = &all->device;
    twin_slots *slots = &own->slots;
    const pack *from = all->packs + one->pack;
    unsigned idle = slots->state.current ? 0 : 1;
    uint32_t at, size;
    twin_status status;
    CALL(status, twin_slots_begin(slots));
    if (status == TWIN_OK)
        own->banks = 1u << slots->bank;
    for (at = 0; status == TWIN_OK && at < from->size; at += size) {
        size = from->size - at < one->piece ? from->size - at : one->piece;
        status = twin_slots_write(slots, from->bytes + at, size);
    }
    if (status == TWIN_OK)
        status = twin_slots_finish(slots);
    if (status == TWIN_OK) {
        CHECK(check(idle, &own->other, own->update) == TWIN_OK);
        may_use(idle);
        CALL(status, twin_slots_try(slots, (uint8_t)one->starts));
    }
    if (status == TWIN_OK) {
        own->banks = 1u << idle;
        all->trials++;
    }
    all->updates++;
    return status;
}

static twin_status change_points(const event *one) {
    device *own = &all->device;
    range next = own->now;
    float x[1];
    twin_status status;
    x[0] = (float)below(1000) / 100 - 5;
    if (one->what == FORGET)
        next.first = next.end - KEPT;
    else if (next.first == next.end)
        next.first = 1, next.end = 2;
    else
        next.end++;
    may_hold(next);
    if (all->fault)
        return TWIN_OK;
    if (one->what == FORGET)
        CALL(status, twin_keep_latest(&own->store, KEPT));
    else
        CALL(status, twin_learn(&own->store, own->scratch, sizeof own->scratch, x,
                                (float)(next.end - 1), 0));
    if (status == TWIN_OK && !all->dead) {
        own->ranges[0] = own->now = next;
        own->range_count = 1;
        all->points++;
    }
    return status;
}

static void act(const event *one) {
    device *own = &all->device;
    twin_slots *slots = &own->slots;
    twin_status status = TWIN_OK;
    if (one->what == UPDATE) {
        status = update(one);
    } else if (one->what == LEARN || one->what == FORGET) {
        status = change_points(one);
    } else if (one->what == CONFIRM && slots->on_trial) {
        own->banks = 3; /* an end of it that is not written may be the end of its starts, too */
        CALL(status, twin_slots_confirm(slots));
        own->on_trial = 0;
        all->confirmed += status == TWIN_OK;
    } else if (one->what == UNDO && slots->on_trial) {
        may_use(slots->state.current);
        CALL(status, twin_slots_undo(slots));
        all->undone += status == TWIN_OK;
    }
    CHECK(status == TWIN_OK || status == TWIN_ERROR_STORAGE);
    all->failed += status && !all->dead;
    if (status == TWIN_OK && !all->dead && (one->what == CONFIRM || one->what == UNDO))
        own->banks = 1u << slots->state.current;
    if (!all->dead && !all->fault && (status || (one->what != LEARN && one->what != FORGET)))
        (void)start();
}

/* Turn the power on, sometimes cutting it at once again, and come to a start that succeeds. */
static void recover(void) {
    unsigned again = below(3);
    do {
        power_on();
        may_use(all->device.slots.state.current & 1);
        if (again)
            all->left = (int32_t)below(3);
        if (start() && !all->dead)
            break;
        all->cuts++;
    } while (again--);
    power_on();
    CHECK(start());
}

typedef struct snapshot {
    device device;
    flash memory[MEMORIES];
} snapshot;

static void keep(snapshot *to) {
    unsigned i;
    to->device = all->device;
    for (i = 0; i < MEMORIES; i++)
        flash_copy(to->memory + i, all->memory[i]);
}

static void restore(const snapshot *from) {
    unsigned i;
    all->device = from->device;
    for (i = 0; i < MEMORIES; i++)
        flash_copy(all->memory[i], from->memory + i);
    power_on();
}

/* This many cuts, or a few more. Each event is cut at each of its changes; after each cut the
 * device recovers, and then something happens that is cut in turn, once. Then the event happens in
 * full. `packs` are releases that are good, of which the first is in bank 0, with a counter that no
 * other is below. Returns the line of a fault, or 0. */
uint32_t update_cuts(flash *const *memory, const twin_storage *storage, const pack *packs,
                     uint32_t pack_count, const uint8_t *key, uint32_t cuts, uint32_t *counts);
uint32_t update_cuts(flash *const *memory, const twin_storage *storage, const pack *packs,
                     uint32_t pack_count, const uint8_t *key, uint32_t cuts, uint32_t *counts) {
    static world state;
    static snapshot before;
    unsigned i;
    all = &state;
    memset(all, 0, sizeof *all);
    for (i = 0; i < MEMORIES; i++) {
        all->memory[i] = memory[i];
        all->inner[i] = all->storage[i] = storage[i];
        all->storage[i].read = read_memory;
        all->storage[i].program = program_memory;
        all->storage[i].erase = erase_memory;
    }
    all->packs = packs;
    all->pack_count = pack_count;
    memcpy(all->key.bytes, key, sizeof all->key.bytes);
    memcpy(memory[BANKS]->cell, packs[0].bytes, packs[0].size);
    power_on();
    all->device.banks = 1;
    all->device.range_count = 1;
    CHECK(start());
    while (!all->fault && all->cuts < cuts) {
        event one = any_event(), more;
        int32_t step;
        keep(&before);
        for (step = 0; !all->fault; step++) {
            restore(&before);
            all->left = step;
            act(&one);
            if (!all->dead)
                break;
            all->cuts++;
            recover();
            if (all->fault)
                break;
            more = any_event();
            all->left = (int32_t)below(16);
            act(&more);
            if (all->dead) {
                all->cuts++;
                recover();
            }
        }
        power_on();
    }
    counts[0] = all->cuts;
    counts[1] = all->updates;
    counts[2] = all->trials;
    counts[3] = all->confirmed;
    counts[4] = all->undone;
    counts[5] = all->points;
    counts[6] = all->both[0];
    counts[7] = all->both[1];
    counts[8] = all->restarts;
    counts[9] = all->repeated;
    counts[10] = all->failed;
    return all->fault;
}
