/* Points of a device, and predictions with them: FORMAT.md, sections 12 and 13. */

#include "twin_store.h"
#include "twin_model.h"

#if TWIN_STORE && TWIN_INTERVALS && TWIN_FLOAT

#include "twin_record.h"

/* In a record: the time, and the score of the first target; bytes before, what there is of each
 * target, and the number before it all. */
enum { TIME = 0, SCORE = 12, MEASURED = 4, OF_TARGET = 12, NUMBER = 4 };
/* In a pack: its checksum, number of sections, and their table; in that, kind and place. */
enum { CHECKSUM = 12, SECTIONS = 6, PLACE = 4 };
enum { MOST_POINTS = 1024, VERSION = 2, FREEDOM = 4 };
/* Weights, and the distance from which on there is none; scores, and as much of them as widens an
 * interval. */
enum { FULL = 48, NOTHING = 112, MOST_SCORE = 511, MOST_SURPRISE = 32 };

#define UNSCORED 0x80000000u

/* Bytes of a record before its features; and words of a point, which are these and its number. */
static inline unsigned twini_point_bytes(const twin_model *model) {
    return MEASURED + OF_TARGET * twini_targets(model);
}
static inline unsigned twini_point_words(const twin_model *model) {
    return (NUMBER + twini_point_bytes(model)) / 4;
}

#if TWIN_TARGETS > 1

/* Room for a point with as many targets as there may be. */
#define TWIN_POINT_ROOM (1 + (OF_TARGET * (TWIN_TARGETS - 1) + 19) / 20)

/* A point of the store; what there is of another target of a point is moved by so many bytes. */
static twin_point *twini_point(const twin_store *store, unsigned i) {
    uint32_t words = i * (uint32_t)twini_point_words(store->model);
    return (twin_point *)(void *)((uint8_t *)store->points + 4 * words);
}
static const twin_point *twini_next(const twin_store *store, const twin_point *point) {
    return (const twin_point *)(const void *)((const uint8_t *)point +
                                              4 * twini_point_words(store->model));
}
static twin_point *twini_of_target(twin_point *point, unsigned target) {
    return (twin_point *)(void *)((uint8_t *)point + OF_TARGET * target);
}

static void twini_copy_point(const twin_store *store, twin_point *to, const twin_point *from) {
    unsigned left = twini_point_words(store->model);
    const uint8_t *at = (const uint8_t *)from;
    uint8_t *into = (uint8_t *)to;
    for (; left; left--) {
        TWIN_COPY(into, at, 4);
        at += 4;
        into += 4;
    }
}

#else

#define TWIN_POINT_ROOM 1

static inline twin_point *twini_point(const twin_store *store, unsigned i) {
    return store->points + i;
}
static inline const twin_point *twini_next(const twin_store *store, const twin_point *point) {
    (void)store;
    return point + 1;
}
static inline twin_point *twini_of_target(twin_point *point, unsigned target) {
    (void)target;
    return point;
}

TWIN_NOT_INLINE static void twini_copy_one(twin_point *to, const twin_point *from) {
    *to = *from;
}
static inline void twini_copy_point(const twin_store *store, twin_point *to,
                                    const twin_point *from) {
    (void)store;
    twini_copy_one(to, from);
}

#endif

/* Put a point into a record, which its number precedes; its features follow. */
static void twini_put_point(const twin_store *store, uint8_t *record, const twin_point *point) {
    twini_copy_words(record - NUMBER, point, twini_point_words(store->model));
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

/* Compare what a run predicts with what was measured. */
static inline void twini_compare(const twin_run *run, int32_t target, twin_point *point) {
    uint32_t off;
    twin_raw predicted;
    predicted.scale = 0; /* the pack has intervals, which not every compiler sees */
    twini_combine(run, &predicted);
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
}

#if TWIN_TARGETS > 1

/* By the bits, as a compiler may optimise a comparison away. */
static unsigned twini_is_measured(const twin_point *point) {
    uint32_t bits;
    TWIN_COPY(&bits, &point->target, sizeof bits);
    return bits << 1 <= 0xFF000000u;
}

/* Evaluate the pack at a point, and compare it with what was measured there. A target that was
 * not, or is out of its range, has no score; the latter is an error, and so is a point without any
 * score. */
static twin_status twini_score(const twin_store *store, void *scratch, uint32_t size,
                               const float *x, twin_point *point) {
    unsigned targets = twini_targets(store->model), scored = 0, wrong = 0, i;
    twin_run run;
    twin_status status = twin_begin(&run, store->model, scratch, size, x, 0);
    (void)twin_step(&run, TWIN_ALL); /* a refused run has no steps */
    for (i = 0; i < targets; i++) {
        twin_point *own = twini_of_target(point, i);
        int32_t target;
        twin_model one;
        twin_run of;
        own->error = 0;
        own->score = INT32_MIN;
        if (status)
            continue;
        twini_view_run(&of, &one, &run, i);
        target = twini_target_of(&one, own->target);
        if (target != INT32_MIN) {
            twini_compare(&of, target, own);
            scored = 1;
        } else if (twini_is_measured(own)) {
            wrong = 1;
        }
    }
    if (!status && (wrong || !scored))
        status = TWIN_ERROR_TARGET;
    return status;
}

/* How many of a point's targets have a score; and how many have none, but were measured. */
static unsigned twini_scored(const twin_store *store, twin_point *point) {
    unsigned left = twini_targets(store->model), count = 0;
    for (; left; left--, point = twini_of_target(point, 1))
        count += point->score != INT32_MIN;
    return count;
}
static unsigned twini_unscored(const twin_store *store, twin_point *point) {
    unsigned left = twini_targets(store->model), count = 0;
    for (; left; left--, point = twini_of_target(point, 1))
        count += point->score == INT32_MIN && twini_is_measured(point);
    return count;
}

/* Score a point that was read, where this pack has not; whether it is of any use. */
static unsigned twini_is_usable(const twin_store *store, void *scratch, uint32_t size,
                                const float *x, twin_point *point) {
    if (store->journal.stamp != store->pack || twini_unscored(store, point))
        (void)twini_score(store, scratch, size, x, point);
    return twini_scored(store, point) > 0;
}

/* How many points have a score for this target. */
static unsigned twini_count_scored(const twin_store *store, unsigned target) {
    unsigned i, count = 0;
    for (i = 0; i < store->count; i++)
        count += twini_of_target(twini_point(store, i), target)->score != INT32_MIN;
    return count;
}

#else

/* Evaluate the pack at a point, and compare it with what was measured there. */
TWIN_NOT_INLINE static twin_status twini_score(const twin_store *store, void *scratch,
                                               uint32_t size, const float *x, twin_point *point) {
    /* cppcheck-suppress ctuuninitvar ; the caller has set the target */
    int32_t target = twini_target_of(store->model, point->target);
    twin_run run;
    twin_status status = twin_begin(&run, store->model, scratch, size, x, 0);
    if (status)
        return status;
    if (target == INT32_MIN)
        return TWIN_ERROR_TARGET;
    (void)twin_step(&run, TWIN_ALL);
    twini_compare(&run, target, point);
    return TWIN_OK;
}

/* Score a point that was read, where this pack has not; whether it is of any use. */
static inline unsigned twini_is_usable(const twin_store *store, void *scratch, uint32_t size,
                                       const float *x, twin_point *point) {
    return (store->journal.stamp == store->pack && point->score != INT32_MIN) ||
           !twini_score(store, scratch, size, x, point);
}

static inline unsigned twini_count_scored(const twin_store *store, unsigned target) {
    (void)target;
    return store->count;
}

#endif

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
        for (i = 0; i < twini_targets(store->model); i++)
            twini_put(record + SCORE + OF_TARGET * i, UNSCORED);
    for (i = 0; i < store->count; i++)
        if (twini_point(store, i)->number == number)
            twini_put_point(store, record, twini_point(store, i));
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
    for (i = 0; i < store->count; i++) {
        const twin_point *point = twini_point(store, i);
        if (!twini_forgets(&range, point->number, point->time))
            twini_copy_point(store, twini_point(store, kept++), point);
    }
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
    return (uint16_t)(twini_point_bytes(model) + 4u * model->features);
}

uint32_t twin_store_size(const twin_model *model, const twin_storage *storage, uint16_t points) {
    uint32_t slot = twin_journal_slot(storage, twini_point_size(model));
    if (!slot || !points || points > MOST_POINTS)
        return 0;
    return slot + 4u * twini_point_words(model) * points; /* a slot is a multiple of 4 */
}

twin_status twin_store_open(twin_store *store, const twin_model *model, twin_pack pack,
                            const twin_storage *storage, void *memory, uint16_t points) {
    twin_flash flash = (twin_flash)pack;
    uint32_t slot = twin_store_size(model, storage, points);
    twin_status status = TWIN_ERROR_STORE;
    store->model = model;
    store->most = points;
    store->count = 0;
    if (model->kernel && model->intervals && !twini_is_selected(model) && slot) {
        slot -= 4u * twini_point_words(model) * points;
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
            twini_copy_point(store, twini_point(store, i), twini_point(store, i + 1));
    }
    twini_copy_point(store, twini_point(store, store->count++), point);
}

/* That of opening; memory that is zero was never opened. */
TWIN_NOT_INLINE static twin_status twini_store_status(const twin_store *store) {
    return store->model ? (twin_status)store->status : TWIN_ERROR_STORE;
}

twin_status twin_store_step(twin_store *store, void *scratch, uint32_t size) {
    twin_journal *journal = &store->journal;
    twin_status status = twini_store_status(store);
    twin_point point[TWIN_POINT_ROOM];
    if (status != TWIN_MORE)
        return status;
    if (twin_scratch_size(store->model) > size)
        return TWIN_ERROR_SCRATCH;
    status = twin_journal_next(journal, &point->number);
    if (!status) {
        store->status = TWIN_OK;
        return store->count == store->most && store->count < journal->count ? TWIN_ERROR_FULL
                                                                            : TWIN_OK;
    }
    if (status == TWIN_MORE) {
        uint8_t *from = journal->record - NUMBER;
        uint8_t *features = journal->record + twini_point_bytes(store->model);
        twini_copy_words(point, from, twini_point_words(store->model));
        twini_copy_words(features, features, store->model->features);
        if (twini_is_usable(store, scratch, size, (const float *)(const void *)features, point))
            twini_use(store, point);
    }
    return status;
}

/* Learn a point whose time and targets are known. */
static twin_status twini_learn(twin_store *store, void *scratch, uint32_t size, const float *x,
                               twin_point *point) {
    twin_journal *journal = &store->journal;
    twin_status status = twini_store_status(store);
    if (!status)
        status = twini_score(store, scratch, size, x, point);
    if (!status && store->count == store->most)
        status = TWIN_ERROR_FULL;
    if (status)
        return status;
    do {
        point->number = journal->number;
        twini_put_point(store, journal->record, point);
        twini_copy_words(journal->record + twini_point_bytes(store->model), x,
                         store->model->features);
        status = twin_journal_append(journal);
    } while (status == TWIN_MORE && !(status = twini_move(store, UINT32_MAX, UINT32_MAX, 0)));
    if (!status)
        twini_use(store, point);
    return status;
}

#if TWIN_TARGETS > 1

twin_status twin_learn_targets(twin_store *store, void *scratch, uint32_t size, const float *x,
                               const float *targets, unsigned count, uint32_t time) {
    twin_status status = twini_store_status(store);
    twin_point point[TWIN_POINT_ROOM];
    unsigned i;
    if (status)
        return status;
    if (count < twini_targets(store->model))
        return TWIN_ERROR_TARGETS;
    point->time = time;
    for (i = 0; i < twini_targets(store->model); i++)
        twini_of_target(point, i)->target = targets[i];
    return twini_learn(store, scratch, size, x, point);
}

twin_status twin_learn(twin_store *store, void *scratch, uint32_t size, const float *x,
                       float target, uint32_t time) {
    return twin_learn_targets(store, scratch, size, x, &target, 1, time);
}

#else

twin_status twin_learn(twin_store *store, void *scratch, uint32_t size, const float *x,
                       float target, uint32_t time) {
    twin_point point;
    point.target = target;
    point.time = time;
    return twini_learn(store, scratch, size, x, &point);
}

#endif

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
        first = twini_point(store, store->count - (unsigned)points)->number;
        if (!first)
            return TWIN_OK;
    }
    return twini_forget(store, 0, first - 1, 0);
}

/* The largest number up to 511 that most scores are not below, times this sign. The pack has a
 * vote, too: that there is no error. */
TWIN_NOT_INLINE static int32_t twini_agreed(const twin_store *store, unsigned target,
                                            int32_t sign) {
    unsigned needed = (twini_count_scored(store, target) + 1u) / 2 + 1, i;
    int32_t agreed = 0, bit = (MOST_SCORE + 1) / 2;
    for (; bit; bit >>= 1) {
        unsigned count = 0;
        for (i = 0; i < store->count; i++) {
            int32_t score = twini_of_target(twini_point(store, i), target)->score;
            if (TWIN_TARGETS == 1 || score != INT32_MIN)
                count += sign * score >= (agreed | bit);
        }
        if (count >= needed)
            agreed |= bit;
    }
    return agreed;
}

/* Predict again, with the points of the store. The model is of this target; a point without a score
 * for it is too far off to have a weight. */
TWIN_NOT_INLINE static void twini_adapt_raw(const twin_store *store, const twin_model *model,
                                            unsigned target, twin_raw *out) {
    int32_t centre = twini_agreed(store, target, 1) - twini_agreed(store, target, -1);
    int32_t high = 0, scores = 0, clamped = 0;
    uint32_t low = 0, squares = 0, all = 0, least, trust, among, shift, weight, part;
    const twin_point *point = twini_of_target(store->points, target);
    const twin_point *end = twini_of_target(twini_point(store, store->count), target);
    uint64_t errors;
    for (; point != end; point = twini_next(store, point)) {
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
    trust = twini_u16(model->intervals + 18);
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
    twini_bound(model, out);
}

#if TWIN_TARGETS > 1

/* Read a run of this target, and adapt what it predicts. */
static twin_status twini_read_adapted(const twin_store *store, const twin_run *run, unsigned target,
                                      twin_raw *out) {
    twin_status status = twin_read_raw(run, out);
    if (!status && !store->status && store->count)
        twini_adapt_raw(store, run->model, target, out);
    return status;
}

static twin_status twini_read_target(const twin_store *store, const twin_run *run, unsigned target,
                                     twin_prediction *out) {
    twin_model one;
    twin_run of;
    twin_raw raw;
    twin_status status;
    twini_view_run(&of, &one, run, target);
    status = twini_read_adapted(store, &of, target, &raw);
    twini_report(&of, &raw, out);
    return status;
}
static twin_status twini_read_target_raw(const twin_store *store, const twin_run *run,
                                         unsigned target, twin_raw *out) {
    twin_model one;
    twin_run of;
    twini_view_run(&of, &one, run, target);
    return twini_read_adapted(store, &of, target, out);
}

twin_status twin_predict_adapted_targets_raw(const twin_store *store, void *scratch, uint32_t size,
                                             const int16_t *query, twin_raw *out, unsigned count) {
    unsigned i;
    twin_run run;
    (void)twin_begin_raw(&run, store->model, scratch, size, query, 0);
    (void)twin_step(&run, TWIN_ALL);
    for (i = 0; i < count; i++)
        (void)twini_read_target_raw(store, &run, twini_entry(&run, count, i), out + i);
    return twini_all_status(&run, count);
}

twin_status twin_predict_adapted_targets(const twin_store *store, void *scratch, uint32_t size,
                                         const float *x, twin_prediction *out, unsigned count) {
    unsigned i;
    twin_run run;
    (void)twin_begin(&run, store->model, scratch, size, x, 0);
    (void)twin_step(&run, TWIN_ALL);
    for (i = 0; i < count; i++)
        (void)twini_read_target(store, &run, twini_entry(&run, count, i), out + i);
    return twini_all_status(&run, count);
}

twin_status twin_predict_adapted_raw(const twin_store *store, void *scratch, uint32_t size,
                                     const int16_t *query, twin_raw *out) {
    twin_run run;
    (void)twin_begin_raw(&run, store->model, scratch, size, query, 0); /* refused: no steps */
    (void)twin_step(&run, TWIN_ALL);
    return twini_read_target_raw(store, &run, 0, out);
}

twin_status twin_predict_adapted(const twin_store *store, void *scratch, uint32_t size,
                                 const float *x, twin_prediction *out) {
    twin_run run;
    (void)twin_begin(&run, store->model, scratch, size, x, 0);
    (void)twin_step(&run, TWIN_ALL);
    return twini_read_target(store, &run, 0, out);
}

#else

/* Finish a run, and adapt what it predicts. */
TWIN_NOT_INLINE static twin_status twini_finish(const twin_store *store, twin_run *run,
                                                twin_raw *out) {
    twin_status status;
    (void)twin_step(run, TWIN_ALL);
    status = twin_read_raw(run, out);
    if (!status && !store->status && store->count)
        twini_adapt_raw(store, store->model, 0, out);
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

#endif
