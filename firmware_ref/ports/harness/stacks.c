/* Reports how much stack the calls of the API take, with several packs. The image has the packs one
 * after the other, each padded to a multiple of 16 bytes, and then one query for each. The store is
 * in RAM. Interrupts are off, or would count.
 *
 * Lines are those of main.c, except
 *
 *     stacks OPEN PREDICT STEPS WATCH STORE LEARN ADAPTED    high-water marks, for each pack
 *     done */

#include "../../src/twin_store.h"
#include "../../src/twin_watch.h"
#include "board.h"
#include "../../src/twin_read.h"

enum { OPEN, PREDICT, STEPS, WATCH, STORE, LEARN, ADAPTED, CALLS };
enum { POINTS = 2 };

static twin_model model;
static twin_store store;
static twin_storage storage;
static twin_prediction out;
static twin_raw raw;
static uint32_t number[CALLS];
static uintptr_t top;
static uint8_t *scratch;
static uint32_t *memory; /* of the store */
static uint32_t scratch_size;
static float *x;
static int16_t *q;

/* Only one of them is needed at a time. */
static union {
#if TWIN_OPEN_STEPS
    twin_opening opening;
#endif
    twin_run run;
    struct {
        twin_watch watch;
        uint8_t bytes[TWIN_WATCH_BYTES];
    } watched;
} held;

#include "marks.h"
#include "flash_in_ram.h"

static void check(twin_status status) {
    if (status)
        stop("refused\n");
}

/* What a group of calls takes: the most of all of its calls. */
#define MARK(group, call)                                                                          \
    do {                                                                                           \
        uint32_t took;                                                                             \
        top = stack_pointer();                                                                     \
        paint();                                                                                   \
        call;                                                                                      \
        took = (uint32_t)used();                                                                   \
        if (took > number[group])                                                                  \
            number[group] = took;                                                                  \
    } while (0)

static void find_room(twin_flash at) {
    size_t features = model.features, block = lay_out_blocks(features, POINTS);
    size_t kept = (size_t)twin_store_size(&model, &storage, POINTS);
    uint8_t *room;
    unsigned i;
    scratch_size = twin_scratch_size(&model);
    room = (uint8_t *)board_memory(6 * features + kept + 2 * block + (size_t)scratch_size);
    if (!room)
        stop("out of memory\n");
    x = (float *)(void *)room;
    memory = (uint32_t *)(void *)(room + 4 * features);
    q = (int16_t *)(void *)((uint8_t *)memory + kept);
    storage.context = q + features;
    scratch = (uint8_t *)storage.context + 2 * block;
    for (i = 0; i < features; i++, at += 4) {
        uint32_t bits = twini_u32(at);
        __builtin_memcpy(x + i, &bits, sizeof bits);
        q[i] = (int16_t)i;
    }
}

static void open_pack(twin_flash pack) {
    uint32_t length = twini_u32(pack + 8);
#if TWIN_OPEN_STEPS
    twin_status status;
    MARK(OPEN, status = twin_open_begin(&held.opening, &model, pack, length));
    while (status == TWIN_MORE)
        MARK(OPEN, status = twin_open_step(&held.opening, 64));
    check(status);
#endif
    MARK(OPEN, check(twin_open(&model, pack, length)));
}

static inline void do_steps(void) {
    while (twin_step(&held.run, 1))
        ;
}

static void predict(void) {
    MARK(PREDICT, check(twin_predict(&model, scratch, scratch_size, x, &out, 0)));
    MARK(PREDICT, check(twin_predict_raw(&model, scratch, scratch_size, q, &raw, 0)));
    MARK(STEPS, check(twin_begin(&held.run, &model, scratch, scratch_size, x, 0)));
    MARK(STEPS, do_steps());
    MARK(STEPS, check(twin_read(&held.run, &out)));
    MARK(STEPS, check(twin_begin_raw(&held.run, &model, scratch, scratch_size, q, 0)));
    (void)twin_step(&held.run, TWIN_ALL);
    MARK(STEPS, check(twin_read_raw(&held.run, &raw)));
}

static void watch_predictions(void) {
    twin_watch *watch = &held.watched.watch;
    MARK(WATCH, check(twin_watch_begin(watch, &model, 900)));
    MARK(WATCH, twin_watch_add_prediction(watch, &model, &out));
    MARK(WATCH, twin_watch_add_target(watch, &model, &out, out.mean));
    MARK(WATCH, twin_watch_add_prediction_raw(watch, &model, &raw));
    MARK(WATCH, twin_watch_add_target_raw(watch, &model, &raw, raw.mean));
    MARK(WATCH, twin_watch_save(watch, held.watched.bytes));
    MARK(WATCH, check(twin_watch_restore(watch, &model, held.watched.bytes)));
}

static void open_store(twin_flash pack) {
    twin_status status;
    MARK(STORE, status = twin_store_open(&store, &model, pack, &storage, memory, POINTS));
    while (status == TWIN_MORE)
        MARK(STORE, status = twin_store_step(&store, scratch, scratch_size));
    check(status);
}

/* Learns one point more than there is room for, and opens the store again with points in it. */
static void learn(twin_flash pack) {
    uint32_t time;
    open_store(pack);
    for (time = 1; time <= POINTS; time++)
        MARK(LEARN, check(twin_learn(&store, scratch, scratch_size, x, out.mean + 1, time)));
    MARK(LEARN, check(twin_keep_latest(&store, 1)));
    MARK(LEARN, check(twin_learn(&store, scratch, scratch_size, x, out.mean, time)));
    open_store(pack);
    MARK(ADAPTED, check(twin_predict_adapted(&store, scratch, scratch_size, x, &out)));
    MARK(ADAPTED, check(twin_predict_adapted_raw(&store, scratch, scratch_size, q, &raw)));
    MARK(LEARN, check(twin_forget(&store, 0, UINT32_MAX)));
}

int main(void) {
    twin_flash pack = PLACE(board_pack), end = PLACE(board_queries), at = end + 4;
    while (pack != end) {
        unsigned i;
        for (i = 0; i < CALLS; i++)
            number[i] = 0;
        open_pack(pack);
        find_room(at);
        predict();
        watch_predictions();
        learn(pack);
        write_line("stacks", CALLS);
        at += 4 * model.features;
        pack += (twini_size)twini_align(twini_u32(pack + 8), 16);
    }
    write_line("done", 0);
    board_exit(0);
}
