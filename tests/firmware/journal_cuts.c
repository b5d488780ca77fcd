/* Puts a journal through power cuts, errors and stuck bits, again and again, and knows at each
 * moment which records it may hold. */

#include "flash.h"
#include <string.h>

enum { PLACES = 32, WORDS = 16, KNOWN = 48, OWNER = 0x5EED, TRIES = 200 };

/* Any words, but always the same for a seed. */
static uint32_t word_of(uint32_t seed, uint32_t i) {
    uint32_t x = seed * 0x9E3779B1u + i * 0x85EBCA77u;
    x ^= x >> 15;
    x *= 0x2C1B3C6Du;
    return x ^ x >> 13;
}

typedef struct entry {
    uint32_t number, seed; /* its first word is the seed, others follow from that */
} entry;

typedef struct content {
    uint32_t count, number, stamp;
    entry entries[PLACES];
} content;

/* A journal on a flash, and all contents that it may have: what the last confirmed change has left,
 * and the possible results of changes that failed since. */
typedef struct subject {
    flash *memory;
    const twin_storage *storage;
    uint16_t size, most;   /* bytes of a record, most records */
    uint32_t worn;         /* whether there are stuck bits, or errors */
    uint32_t cuts, errors; /* how many */
    uint32_t either[2];    /* how often the old and the new content showed */
    uint32_t fault;        /* first line that found something wrong */
    twin_journal journal;
    uint32_t buffer[128];
    unsigned known, now; /* possible contents, and the one it shows */
    content contents[KNOWN], shown;
} subject;

#define CHECK(right)                                                                               \
    do {                                                                                           \
        if (!all->fault)                                                                           \
            all->fault = all->memory->fault ? 100000 + all->memory->fault                          \
                         : (right)          ? 0                                                    \
                                            : __LINE__;                                                     \
    } while (0)

/* Whether this is the same content, though there may have been more records meanwhile. */
static int same(const content *a, const content *b) {
    return a->count == b->count && a->number >= b->number && a->stamp == b->stamp &&
           !memcmp(a->entries, b->entries, a->count * sizeof *a->entries);
}

static uint32_t seed_in(const subject *all, const uint8_t *record) {
    uint32_t words[WORDS], i;
    memcpy(words, record, all->size);
    for (i = 1; i < all->size / 4u; i++)
        if (words[i] != word_of(words[0], i))
            return 0;
    return words[0];
}

static void fill(const subject *all, uint8_t *record, uint32_t seed) {
    uint32_t i, word = seed;
    for (i = 0; i < all->size / 4u; i++, word = word_of(seed, i))
        memcpy(record + 4 * i, &word, 4);
}

/* Let one of the next calls report an error, sometimes. */
static void disturb(subject *all) {
    if (!flash_below(all->memory, 8))
        all->memory->error = all->memory->calls + (int32_t)flash_below(all->memory, 40);
}

/* Whether an error was reported since. */
static int was_disturbed(subject *all) {
    int was = all->memory->calls > all->memory->error;
    all->memory->error = NEVER;
    return was;
}

/* What the journal shows. */
static void look(subject *all, content *seen) {
    twin_status status;
    uint32_t number, before = 0;
    disturb(all);
    seen->count = 0;
    seen->number = all->journal.number;
    seen->stamp = all->journal.stamp;
    while ((status = twin_journal_next(&all->journal, &number)) != TWIN_OK) {
        entry *one = seen->entries + seen->count++;
        if (status == TWIN_ERROR_STORAGE && was_disturbed(all)) {
            seen->count--;
            continue;
        }
        CHECK(status == TWIN_MORE);
        CHECK(seen->count <= PLACES && (seen->count == 1 || number > before));
        if (all->fault)
            return;
        before = number;
        one->number = number;
        one->seed = seed_in(all, all->journal.record);
        CHECK(one->seed);
    }
    all->memory->error = NEVER;
}

static twin_status start(subject *all) {
    memset(&all->journal, flash_below(all->memory, 2) ? 0xA5 : 0, sizeof all->journal);
    memset(all->buffer, 0xA5, sizeof all->buffer);
    return twin_journal_open(&all->journal, all->storage, OWNER, all->size, all->buffer);
}

/* Turn the power on: the journal must show something that it may have. */
static void reopen(subject *all) {
    twin_status status;
    content seen;
    unsigned i;
    all->memory->dead = 0;
    all->memory->cut = all->memory->error = NEVER;
    disturb(all);
    status = start(all);
    CHECK(status == (was_disturbed(all) ? TWIN_ERROR_STORAGE : TWIN_OK));
    if (status)
        CHECK(start(all) == TWIN_OK);
    if (all->fault)
        return;
    /* A record that was cut may be whole now, and not when it is read again. */
    look(all, &seen);
    CHECK(seen.count <= all->journal.count);
    CHECK(all->known > 1 || seen.count == all->journal.count);
    if (seen.count < all->journal.count) {
        reopen(all);
        return;
    }
    for (i = 0; i < all->known && !same(&seen, all->contents + i); i++)
        ;
    CHECK(i < all->known);
    if (all->fault)
        return;
    all->now = i;
    all->shown = seen;
}

/* A change to make: append a record; or move the others, with a new stamp. */
typedef struct change {
    int appends, clears, rewrites;
    uint32_t seed, stamp;
    uint32_t first, last; /* to be left out */
} change;

static uint32_t any_seed(flash *memory) {
    return flash_draw(memory) | 1;
}

static void plan(subject *all, change *what) {
    flash *memory = all->memory;
    uint32_t number = all->shown.number, i;
    memset(what, 0, sizeof *what);
    what->appends = all->shown.count < all->most && flash_below(memory, 8) < 6;
    what->seed = any_seed(memory);
    what->stamp = flash_below(memory, 3);
    what->rewrites = !flash_below(memory, 4);
    what->last = UINT32_MAX;
    switch (flash_below(memory, 8)) {
    case 0: /* all */
        what->clears = (int)flash_below(memory, 2);
        break;
    case 1:
    case 2: /* the oldest, if any */
        i = flash_below(memory, all->most + 1u);
        what->last = number > i ? number - i - 1 : 0;
        break;
    case 3: /* none */
        what->first = what->last = number;
        break;
    default: /* a few of the latest */
        i = 1 + flash_below(memory, all->most + 2u);
        what->first = number > i ? number - i : 0;
        what->last = what->first + flash_below(memory, 3);
    }
}

static uint32_t rewritten(uint32_t seed, uint32_t stamp) {
    return word_of(seed, 77 + stamp) | 1;
}

static void expect(const content *now, const change *what, content *next) {
    unsigned i;
    *next = *now;
    if (what->appends) {
        next->entries[next->count].number = next->number++;
        next->entries[next->count++].seed = what->seed;
        return;
    }
    next->count = 0;
    next->stamp = what->stamp;
    for (i = 0; i < now->count; i++) {
        entry *one = next->entries + next->count;
        *one = now->entries[i];
        if (what->rewrites && !what->clears)
            one->seed = rewritten(one->seed, what->stamp);
        next->count += one->number < what->first || one->number > what->last;
    }
}

typedef struct moving {
    const subject *all;
    const change *what;
} moving;

static unsigned keep(void *context, uint32_t number, uint8_t *record) {
    const moving *of = (const moving *)context;
    if (of->what->rewrites)
        fill(of->all, record, rewritten(seed_in(of->all, record), of->what->stamp));
    return number < of->what->first || number > of->what->last;
}

static twin_status act(subject *all, const change *what) {
    twin_journal *journal = &all->journal;
    twin_status status;
    moving of;
    of.all = all;
    of.what = what;
    if (what->clears && !what->appends)
        return twin_journal_clear(journal, what->stamp);
    if (!what->appends)
        return twin_journal_move(journal, keep, &of, what->stamp);
    do {
        fill(all, journal->record, what->seed);
        status = twin_journal_append(journal);
    } while (status == TWIN_MORE &&
             (status = twin_journal_move(journal, 0, 0, journal->stamp)) == TWIN_OK);
    return status;
}

/* What the change may make of the content that shows; returns how many there are. A record that a
 * power cut hit may be lost in it, if it has never been confirmed. */
static unsigned expect_all(const subject *all, const change *what, content next[2]) {
    content now = all->shown;
    unsigned i;
    expect(&now, what, next);
    if (!now.count)
        return 1;
    now.count--;
    for (i = 0; i < all->known; i++)
        if (same(&now, all->contents + i)) {
            expect(&now, what, next + 1);
            return 2;
        }
    return 1;
}

static void add(subject *all, const content *more, unsigned count) {
    memcpy(all->contents + all->known, more, count * sizeof *more);
    all->known += count;
}

/* Make a change, cutting the power after this many changes of the memory, and with an error after
 * this many calls. Returns whether that happened, or -1
 * if the change failed without it; if not, the content is certain. */
static int make_change(subject *all, const change *what, uint32_t cut, uint32_t error) {
    flash *memory = all->memory;
    content next[2], seen;
    unsigned variants = expect_all(all, what, next);
    twin_status status;
    int hit;
    memory->cut = memory->changes + (int32_t)cut;
    memory->error = memory->calls + (int32_t)error;
    memory->burst = flash_below(memory, 4) ? 1 : 1 + (int32_t)flash_below(memory, 16);
    status = act(all, what);
    hit = memory->dead || memory->calls > memory->error;
    if (hit && !memory->dead)
        all->worn = 1;
    memory->cut = memory->error = NEVER;
    CHECK(status == TWIN_OK || status == TWIN_ERROR_STORAGE);
    if (memory->dead) {
        all->cuts++;
        if (status == TWIN_OK)
            all->known = 0; /* only the second head was hit */
        add(all, next, variants);
        CHECK(act(all, what) == TWIN_ERROR_STORAGE);
        return 1;
    }
    if (status != TWIN_OK) {
        /* There was an error, maybe earlier, so that there are not enough slots left; or what a cut
         * left reads otherwise than before. Another try may succeed. */
        CHECK(all->worn || (all->known > 1 && all->journal.heads == 1));
        all->errors += hit ? 1 : 0;
        if (hit)
            add(all, next, variants);
        if (hit && all->known == 2 && variants == 1) { /* RAM knows what it did */
            look(all, &seen);
            CHECK(same(&seen, all->contents));
        }
        return hit ? 1 : -1;
    }
    look(all, &seen);
    CHECK(same(&seen, next) || same(&seen, next + variants - 1));
    CHECK(all->worn || all->journal.damaged == 0);
    all->errors += hit ? 1 : 0;
    all->contents[0] = all->shown = seen;
    all->known = 1;
    all->now = 0;
    return hit;
}

/* A change of the memory to cut at: often an erasure or a head. */
static uint32_t moment(subject *all, const change *what) {
    content next;
    expect(&all->shown, what, &next);
    switch (flash_below(all->memory, 4)) {
    case 0:
        return 0;
    case 1:
        return next.count - (what->appends ? 1u : 0u) + 1;
    default:
        return flash_below(all->memory, 2 * all->shown.count + 8);
    }
}

static void open_often(subject *all) {
    do
        reopen(all);
    while (!flash_below(all->memory, 4) && !all->fault);
}

/* After a cut or an error: open, and cut the power again in the first change, up to this many
 * times; in the end changes succeed, and stay. */
static void recover(subject *all, unsigned times) {
    change what;
    int lost = 1, tries = 0;
    if (all->memory->dead || flash_below(all->memory, 2))
        open_often(all);
    if (!all->fault && all->known == 2)
        all->either[all->now]++;
    while (times-- && lost && !all->fault && all->known < KNOWN - 4) {
        plan(all, &what);
        if (flash_below(all->memory, 4))
            lost = make_change(all, &what, moment(all, &what), NEVER / 2);
        else
            lost = make_change(all, &what, NEVER / 2, flash_below(all->memory, 64));
        if (all->memory->dead || !flash_below(all->memory, 2))
            open_often(all);
    }
    for (times = 0; times < 2 && !all->fault; times++) {
        do {
            plan(all, &what);
            CHECK(tries++ < TRIES);
            lost = make_change(all, &what, NEVER / 2, NEVER / 2);
            if (lost || flash_below(all->memory, 2))
                open_often(all);
        } while (lost && !all->fault);
    }
}

/* This many random changes, each cut at every program and erase operation it makes; every fourth
 * also with an error in each of its calls. Returns the line of a fault, or 0. */
uint32_t journal_cuts(flash *memory, const twin_storage *storage, uint16_t size, uint16_t most,
                      uint32_t changes, uint32_t nested, uint32_t *counts);
uint32_t journal_cuts(flash *memory, const twin_storage *storage, uint16_t size, uint16_t most,
                      uint32_t changes, uint32_t nested, uint32_t *counts) {
    static subject live, before;
    static flash aside;
    subject *all = &live;
    change what;
    memset(all, 0, sizeof *all);
    all->memory = memory;
    all->storage = storage;
    all->size = size;
    all->most = most;
    all->known = 1;
    all->worn = memory->is_worn;
    CHECK(most < PLACES && size <= 4 * WORDS);
    CHECK(twin_journal_slot(storage, size) &&
          twin_journal_slot(storage, size) <= sizeof all->buffer);
    if (!all->fault)
        reopen(all);
    while (changes-- && !all->fault) {
        uint32_t step;
        int errors, hit;
        if (!flash_below(memory, 6))
            reopen(all);
        plan(all, &what);
        before = live;
        flash_copy(&aside, memory);
        for (errors = !flash_below(memory, 4); errors >= 0; errors--)
            for (step = 0; !all->fault; step++) {
                hit = errors ? make_change(all, &what, NEVER / 2, step)
                             : make_change(all, &what, step, NEVER / 2);
                if (!hit && !errors)
                    break;
                if (hit)
                    recover(all, nested ? flash_below(memory, nested + 1) : 0);
                before.cuts = all->cuts;
                before.errors = all->errors;
                before.either[0] = all->either[0];
                before.either[1] = all->either[1];
                before.fault = all->fault;
                live = before;
                flash_copy(memory, &aside);
                if (hit <= 0)
                    break;
            }
    }
    counts[0] = all->cuts;
    counts[1] = all->errors;
    counts[2] = all->either[0];
    counts[3] = all->either[1];
    return all->fault;
}

/* Let each bit of the memory be stuck in turn, at 0 and at 1, and append and remove records.
 * Returns the line of a fault, or 0; and adds up how many slots were passed over. */
uint32_t journal_wear(flash *memory, twin_storage *storage, uint16_t size, uint32_t *passed);
uint32_t journal_wear(flash *memory, twin_storage *storage, uint16_t size, uint32_t *passed) {
    static subject live;
    subject *all = &live;
    uint32_t bits = 16 * storage->block_size, bit, block = storage->block_size, i;
    for (bit = 0; bit < 2 * bits && !all->fault; bit++) {
        uint32_t seed = bit + 1;
        memset(all, 0, sizeof *all);
        flash_reset(memory, storage, block, storage->program_size, memory->erased, memory->key,
                    seed);
        flash_wear(memory, bit % bits / 8, (uint8_t)(1u << bit % 8), bit >= bits);
        all->memory = memory;
        all->storage = storage;
        all->size = size;
        all->known = 1;
        all->worn = 1;
        all->most = (uint16_t)(block / twin_journal_slot(storage, size) - 4);
        reopen(all);
        for (i = 0; i < 8 && !all->fault; i++) {
            change what;
            if (i % 4 == 3)
                reopen(all);
            plan(all, &what);
            CHECK(make_change(all, &what, NEVER / 2, NEVER / 2) == 0);
            *passed += all->journal.damaged;
        }
    }
    return all->fault;
}
