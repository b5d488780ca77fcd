/* Points of a device, and predictions with them: FORMAT.md, sections 12 and 13. */

#include "twin_store.h"
#include "twin_model.h"

#if TWIN_STORE && TWIN_INTERVALS && TWIN_FLOAT

#include "twin_record.h"

/* Bytes of a record before its features, which are those of a point; and the number before it. */
enum { TIME = 0, POINT = 16, NUMBER = 4, SCORE = 12 };
/* In a pack: its checksum, number of sections, and their table; in that, kind and place. */
enum { CHECKSUM = 12, SECTIONS = 6, PLACE = 4 };
enum { MOST_POINTS = 1024, VERSION = 2, FREEDOM = 4 };
/* Weights, and the distance from which on there is none; scores, and as much of them as widens an
 * interval. */
enum { FULL = 48, NOTHING = 112, MOST_SCORE = 511, MOST_SURPRISE = 32 };

#define UNSCORED 0x80000000u

TWIN_NOT_INLINE static void twini_copy_point(twin_point *to, const twin_point *from) {
    *to = *from;
}

/* Put a point into a record, which its number precedes; its features follow. */
static void twini_put_point(uint8_t *record, const twin_point *point) {
    twini_copy_words(record - NUMBER, point, sizeof *point / 4);
}

/* a / b in units of 1/65536, as precisely as 32 bits allow: both lose their last bits until a has
 * 16. */
TWIN_NOT_INLINE static uint32_t twini_over(uint32_t a, uint32_t b) {
    while (a >> 16) {
        a >>= 1;
        b >>= 1;
    }
    return b ? (a << 16) / b : UINT32_MAX;
}

static uint32_t twini_size_of(int32_t number) {
    return (uint32_t)(number < 0 ? -number : number);
}

/* Evaluate the pack at a point, and compare it with what was measured there. */
TWIN_NOT_INLINE static twin_status twini_score(const twin_store *store, void *scratch,
                                               uint32_t size, const float *x, twin_point *point) {
    /* cppcheck-suppress ctuuninitvar ; the caller has set the target */
    int32_t target = twini_target_of(store->model, point->target);
    uint32_t off;
    twin_run run;
    twin_raw predicted;
    twin_status status = twin_begin(&run, store->model, scratch, size, x, 0);
    if (status)
        return status;
    if (target == INT32_MIN)
        return TWIN_ERROR_TARGET;
    (void)twin_step(&run, TWIN_ALL);
    predicted.scale = 0; /* the pack has intervals, which not every compiler sees */
    twini_combine(&run, &predicted);
    off = (uint32_t)target - (uint32_t)predicted.mean; /* fits 32 bits, except for the sign */
    if (target < predicted.mean)
        off = 0 - off;
    point->error = (int32_t)(off < INT32_MAX ? off : INT32_MAX);
    off = ((twini_over(off, predicted.scale) >> 7) + 1) >> 1;
    if (off > MOST_SCORE)
        off = MOST_SCORE;
    point->score = (int32_t)off;
    if (target < predicted.mean) {
        point->error = -point->error;
        point->score = -point->score;
    }
    return TWIN_OK;
}

/* What to forget, while records are moved. */
typedef struct twini_range {
    const twin_store *store;
    uint32_t first, last; /* numbers */
    uint32_t before;      /* time, or 0 for any */
} twini_range;

static unsigned twini_forgets(const twini_range *range, uint32_t number, uint32_t time) {
    return number >= range->first && number <= range->last &&
           (!range->before || time - 1 < range->before - 1);
}

/* For twin_journal_move. Scores are those of this pack from now on. */
static unsigned twini_keep(void *context, uint32_t number, uint8_t *record) {
    const twini_range *range = (const twini_range *)context;
    const twin_store *store = range->store;
    unsigned i;
    if (twini_forgets(range, number, twini_word(record + TIME)))
        return 0;
    if (store->journal.stamp != store->pack)
        twini_put(record + SCORE, UNSCORED);
    for (i = 0; i < store->count; i++)
        if (store->points[i].number == number)
            twini_put_point(record, store->points + i);
    return 1;
}

/* Move the points, except those of a range. */
TWIN_NOT_INLINE static twin_status twini_move(twin_store *store, uint32_t first, uint32_t last,
                                              uint32_t before) {
    twini_range range;
    unsigned i, kept = 0;
    twin_status status;
    range.store = store;
    range.first = first;
    range.last = last;
    range.before = before;
    status = twin_journal_move(&store->journal, twini_keep, &range, store->pack);
    if (status)
        return status;
    for (i = 0; i < store->count; i++)
        if (!twini_forgets(&range, store->points[i].number, store->points[i].time))
            twini_copy_point(store->points + kept++, store->points + i);
    store->count = (uint16_t)kept;
    return TWIN_OK;
}

/* The number that packs have in common if their features and targets mean the same. */
static uint32_t twini_schema(twin_flash pack) {
    unsigned left = twini_u16(pack + SECTIONS);
    twin_flash entry = pack + TWIN_TABLE;
    for (; left; left--, entry += TWIN_ENTRY)
        if (twini_u16(entry) == TWIN_SCHEMA)
            return twini_u32(pack + (twini_size)twini_u32(entry + PLACE));
    return twini_u32(pack + CHECKSUM);
}

static uint16_t twini_point_size(const twin_model *model) {
    return (uint16_t)(POINT + 4u * model->features);
}

uint32_t twin_store_size(const twin_model *model, const twin_storage *storage, uint16_t points) {
    uint32_t slot = twin_journal_slot(storage, twini_point_size(model));
    if (!slot || !points || points > MOST_POINTS)
        return 0;
    return slot + (uint32_t)sizeof(twin_point) * points; /* a slot is a multiple of 4 */
}

twin_status twin_store_open(twin_store *store, const twin_model *model, twin_pack pack,
                            const twin_storage *storage, void *memory, uint16_t points) {
    twin_flash flash = (twin_flash)pack;
    uint32_t slot = twin_store_size(model, storage, points);
    twin_status status = TWIN_ERROR_STORE;
    store->model = model;
    store->most = points;
    store->count = 0;
    if (model->kernel && model->intervals && !twini_has_several(model) && slot) {
        slot -= (uint32_t)sizeof(twin_point) * points;
        store->pack = twini_u32(flash + CHECKSUM);
        store->points = (twin_point *)(void *)((uint8_t *)memory + slot);
        status = twin_journal_open(&store->journal, storage,
                                   twini_schema(flash) + VERSION * 65536u + slot,
                                   twini_point_size(model), memory);
        if (!status && store->journal.count)
            status = TWIN_MORE;
    }
    store->status = (int8_t)status;
    return status;
}

/* Another point in RAM; if there is no room, the oldest has to go. */
TWIN_NOT_INLINE static void twini_use(twin_store *store, const twin_point *point) {
    if (store->count == store->most) {
        unsigned i;
        store->count--;
        for (i = 0; i < store->count; i++)
            twini_copy_point(store->points + i, store->points + i + 1);
    }
    twini_copy_point(store->points + store->count++, point);
}

/* That of opening; memory that is zero was never opened. */
TWIN_NOT_INLINE static twin_status twini_store_status(const twin_store *store) {
    return store->model ? (twin_status)store->status : TWIN_ERROR_STORE;
}

twin_status twin_store_step(twin_store *store, void *scratch, uint32_t size) {
    twin_journal *journal = &store->journal;
    twin_status status = twini_store_status(store);
    twin_point point;
    if (status != TWIN_MORE)
        return status;
    if (twin_scratch_size(store->model) > size)
        return TWIN_ERROR_SCRATCH;
    status = twin_journal_next(journal, &point.number);
    if (!status) {
        store->status = TWIN_OK;
        return store->count == store->most && store->count < journal->count ? TWIN_ERROR_FULL
                                                                            : TWIN_OK;
    }
    if (status == TWIN_MORE) {
        uint8_t *from = journal->record - NUMBER;
        uint8_t *features = journal->record + POINT;
        twini_copy_words(&point, from, sizeof point / 4);
        twini_copy_words(features, features, store->model->features);
        if ((journal->stamp == store->pack && point.score != INT32_MIN) ||
            !twini_score(store, scratch, size, (const float *)(const void *)features, &point))
            twini_use(store, &point);
    }
    return status;
}

twin_status twin_learn(twin_store *store, void *scratch, uint32_t size, const float *x,
                       float target, uint32_t time) {
    twin_journal *journal = &store->journal;
    twin_status status = twini_store_status(store);
    twin_point point;
    point.target = target;
    point.time = time;
    if (!status)
        status = twini_score(store, scratch, size, x, &point);
    if (!status && store->count == store->most)
        status = TWIN_ERROR_FULL;
    if (status)
        return status;
    do {
        point.number = journal->number;
        twini_put_point(journal->record, &point);
        twini_copy_words(journal->record + POINT, x, store->model->features);
        status = twin_journal_append(journal);
    } while (status == TWIN_MORE && !(status = twini_move(store, UINT32_MAX, UINT32_MAX, 0)));
    if (!status)
        twini_use(store, &point);
    return status;
}

/* Forget a range of an open store; or all, even if not all can be read, or of another schema. */
TWIN_NOT_INLINE static twin_status twini_forget(twin_store *store, uint32_t first, uint32_t last,
                                                uint32_t before) {
    twin_status status = twini_store_status(store);
    if (first || ~last || before || status == TWIN_ERROR_STORE)
        return status ? status : twini_move(store, first, last, before);
    status = twin_journal_clear(&store->journal, store->pack);
    if (!status) {
        store->status = TWIN_OK;
        store->count = 0;
    }
    return status;
}

twin_status twin_forget(twin_store *store, uint32_t first, uint32_t last) {
    return first > last ? TWIN_ERROR_VALUE : twini_forget(store, first, last, 0);
}

twin_status twin_forget_before(twin_store *store, uint32_t time) {
    return time ? twini_forget(store, 0, UINT32_MAX, time) : twini_store_status(store);
}

twin_status twin_keep_latest(twin_store *store, uint16_t points) {
    uint32_t first = 0; /* that is kept */
    if (points) {
        twin_status status = twini_store_status(store);
        if (status || store->count < points || store->journal.count <= points)
            return status;
        first = store->points[store->count - points].number;
        if (!first)
            return TWIN_OK;
    }
    return twini_forget(store, 0, first - 1, 0);
}

/* The largest number up to 511 that most scores are not below, times this sign. The pack has a
 * vote, too: that there is no error. */
TWIN_NOT_INLINE static int32_t twini_agreed(const twin_store *store, int32_t sign) {
    unsigned needed = (store->count + 1u) / 2 + 1, i;
    int32_t agreed = 0, bit = (MOST_SCORE + 1) / 2;
    for (; bit; bit >>= 1) {
        unsigned count = 0;
        for (i = 0; i < store->count; i++)
            count += sign * store->points[i].score >= (agreed | bit);
        if (count >= needed)
            agreed |= bit;
    }
    return agreed;
}

/* Predict again, with the points of the store. */
TWIN_NOT_INLINE static void twini_adapt_raw(const twin_store *store, twin_raw *out) {
    int32_t centre = twini_agreed(store, 1) - twini_agreed(store, -1);
    int32_t high = 0, scores = 0, clamped = 0;
    uint32_t low = 0, squares = 0, all = 0, least, trust, among, shift, weight, part;
    const twin_point *point = store->points, *end = point + store->count;
    uint64_t errors;
    for (; point != end; point++) {
        int32_t score = point->score;
        uint32_t off = (uint32_t)score - (uint32_t)centre;
        off = off >> 31 ? 0 - off : off;
        if (off >= NOTHING)
            continue;
        weight = NOTHING - off;
        if (weight > FULL)
            weight = FULL;
        all += weight;
        scores += (int32_t)weight * score;
        if (score > MOST_SURPRISE)
            score = MOST_SURPRISE;
        if (score < -MOST_SURPRISE)
            score = -MOST_SURPRISE;
        clamped += (int32_t)weight * score;
        squares += weight * (uint32_t)(score * score);
        high += (int32_t)weight * (point->error >> 16); /* two sums save products of 64 bits */
        low += weight * ((uint32_t)point->error & 65535u);
        out->points++;
    }
    if (!all)
        return;
    least = all;
    if (least < FULL)
        least = FULL;
    trust = twini_u16(store->model->intervals + 18);
    among = all * trust + FULL * (65536u - trust);
    weight = twini_over(all * trust, among) >> 1;
    errors = ((uint64_t)(int64_t)high << 16) + low;
    high = (int32_t)(errors >> 32); /* for its sign */
    shift = twini_divide(high < 0 ? 0 - errors : errors, least);
    part = twini_product(out->scale, 16 * twini_size_of(scores) / least, 12);
    shift = twini_product(shift < part ? shift : part, weight, 15);
    out->mean = high < 0 ? twini_below(out->mean, shift) : twini_above(out->mean, shift);
    part = twini_size_of(clamped);
    part = (part * (16 * part / least)) >> 4;
    squares = squares > part ? squares - part : 0;
    part = (twini_over(squares, 65536u - trust) >> 2) + 12 * twini_over(part, among);
    part = twini_over(64 * FULL * FREEDOM + part, 64 * (FULL * FREEDOM + all));
    weight = 65536u - 13 * ((trust * weight) >> 19);
    out->scale = twini_product(out->scale, twini_root((uint64_t)weight * part), 16);
    twini_bound(store->model, out);
}

/* Finish a run, and adapt what it predicts. */
TWIN_NOT_INLINE static twin_status twini_finish(const twin_store *store, twin_run *run,
                                                twin_raw *out) {
    twin_status status;
    (void)twin_step(run, TWIN_ALL);
    status = twin_read_raw(run, out);
    if (!status && !store->status && store->count)
        twini_adapt_raw(store, out);
    return status;
}

twin_status twin_predict_adapted_raw(const twin_store *store, void *scratch, uint32_t size,
                                     const int16_t *query, twin_raw *out) {
    twin_run run;
    (void)twin_begin_raw(&run, store->model, scratch, size, query, 0); /* twin_read_raw says it */
    return twini_finish(store, &run, out);
}

twin_status twin_predict_adapted(const twin_store *store, void *scratch, uint32_t size,
                                 const float *x, twin_prediction *out) {
    twin_run run;
    twin_raw raw;
    twin_status status;
    (void)twin_begin(&run, store->model, scratch, size, x, 0);
    status = twini_finish(store, &run, &raw);
    twini_report(&run, &raw, out);
    return status;
}

#endif
