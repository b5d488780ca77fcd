/* Learns the points of the image with its pack, predicts with them, and reports the results to
 * the host. Instead of queries the image has rows of words: features and target in the user's
 * units, then the features in integers, and a time. A row without a target, NaN, is a query; the
 * others are points. The image may have a second pack after the first, which replaces it before
 * the first query that has a time. The store is in RAM.
 *
 * Lines are those of main.c, except
 *
 *     store CONTEXT MEMORY                bytes of twin_store, and of its memory
 *     empty COUNTS                        of measuring nothing
 *     opened COUNTS POINTS DAMAGED        of opening the store, before the queries
 *     learnt COUNTS                       for each point
 *     alone MEAN SCALE LOW HIGH POINTS COUNTS    for each query: twin_predict, bits of floats
 *     adapted MEAN SCALE LOW HIGH POINTS COUNTS  twin_predict_adapted
 *     raw MEAN SCALE LOW HIGH POINTS COUNTS      twin_predict_adapted_raw, integers
 *     stack BYTES                         high-water mark of everything
 *     block WORD                          for each word of both blocks, in the end
 *     done */

#include "../../src/twin_store.h"
#include "board.h"
#include "../../src/twin_read.h"

static twin_model model;
static twin_store store;
static twin_storage storage;
static twin_prediction out;
static twin_raw raw;
static uint32_t number[6];
static size_t scratch_size, points;
static twin_flash pack;
static uint8_t *scratch;
static uintptr_t top;
static uint32_t *memory; /* of the store */
static float *x;
static int16_t *q;

#include "marks.h"
#include "flash_in_ram.h"

/* Words of a row, and whether it has a target. */
static unsigned words(void) {
    return 2 * (model.features + 1u);
}

static unsigned is_point(twin_flash row) {
    uint32_t bits = twini_u32(row + 4 * (twini_size)model.features);
    return (bits & 0x7FFFFFFFu) <= 0x7F800000u;
}

/* Find memory for a row, the scratch, and as many points as the image has. */
static void find_room(void) {
    size_t row = 6 * (size_t)model.features, kept, block;
    uint8_t *room;
    block = lay_out_blocks(model.features, points);
    kept = (size_t)twin_store_size(&model, &storage, (uint16_t)points);
    scratch_size = (size_t)twin_scratch_size(&model);
    room = (uint8_t *)board_memory(row + kept + 2 * block + scratch_size);
    if (!room)
        stop("out of memory\n");
    x = (float *)(void *)room;
    memory = (uint32_t *)(void *)(room + 4 * (size_t)model.features);
    q = (int16_t *)(void *)((uint8_t *)memory + kept);
    storage.context = q + model.features;
    scratch = (uint8_t *)storage.context + 2 * block;
    number[0] = sizeof store;
    number[1] = (uint32_t)kept;
}

/* Counts go to the last number. */
static void begin(void) {
    number[5] = board_counter();
}

static void end(twin_status status) {
    number[5] = board_counter() - number[5];
    if (status)
        stop("refused\n");
}

static void open_pack(void) {
    if (twin_open(&model, pack, twini_u32(pack + 8)))
        stop("refused\n");
}

/* As after a reset: the next point moves all existing ones. */
static void open_store(void) {
    twin_status status;
    begin();
    status = twin_store_open(&store, &model, pack, &storage, memory, (uint16_t)points);
    while (status == TWIN_MORE)
        status = twin_store_step(&store, scratch, (uint32_t)scratch_size);
    end(status);
    number[0] = number[5];
    number[1] = store.count;
    number[2] = store.journal.damaged;
}

/* Replace the pack by the one after it. */
static void update(void) {
    pack += (twini_size)twini_align(twini_u32(pack + 8), 16);
    open_pack();
    if (twin_scratch_size(&model) > scratch_size)
        stop("out of memory\n");
}

/* Take features, target and time out of a row. */
static void take(twin_flash row, float *target, uint32_t *time) {
    uint32_t *feature = (uint32_t *)(void *)x;
    uint32_t bits;
    unsigned i;
    for (i = 0; i < model.features; i++, row += 4)
        feature[i] = twini_u32(row);
    bits = twini_u32(row);
    __builtin_memcpy(target, &bits, sizeof bits);
    row += 4;
    for (i = 0; i < model.features; i++, row += 4)
        q[i] = (int16_t)twini_u16(row);
    *time = twini_u32(row);
}

static void learn(float target, uint32_t time) {
    begin();
    end(twin_learn(&store, scratch, (uint32_t)scratch_size, x, target, time));
    number[0] = number[5];
}

static void say_floats(const char *word) {
    __builtin_memcpy(number, &out.mean, 4);
    __builtin_memcpy(number + 1, &out.scale, 12);
    number[4] = out.points;
    write_line(word, 6);
}

static void predict(void) {
    begin();
    end(twin_predict(&model, scratch, (uint32_t)scratch_size, x, &out, 0));
    say_floats("alone");
    begin();
    end(twin_predict_adapted(&store, scratch, (uint32_t)scratch_size, x, &out));
    say_floats("adapted");
    begin();
    end(twin_predict_adapted_raw(&store, scratch, (uint32_t)scratch_size, q, &raw));
    number[0] = (uint32_t)raw.mean;
    __builtin_memcpy(number + 1, &raw.scale, 12);
    number[4] = raw.points;
    write_line("raw", 6);
}

static void say_blocks(void) {
    uint32_t at;
    for (at = 0; at < 2 * storage.block_size; at += 4) {
        fetch(storage.context, at, number, 4);
        write_line("block", 1);
    }
}

int main(void) {
    twin_flash first = PLACE(board_queries), last, at;
    unsigned before = 0;
    uint32_t time;
    float target;

    pack = PLACE(board_pack);
    open_pack();
    last = first + (twini_size)twini_u32(first) + 4;
    first += 4;
    for (at = first; at != last; at += 4 * words())
        points += is_point(at);
    find_room();
    write_line("store", 2);
    top = stack_pointer();
    paint();
    board_start_counter();
    begin();
    end(TWIN_OK);
    number[0] = number[5];
    write_line("empty", 1);

    /* What is in RAM is not a store yet; a point makes it one. */
    open_store();
    take(first, &target, &time);
    learn(target, time);
    if (twin_forget(&store, 0, UINT32_MAX) || store.count)
        stop("not forgotten\n");
    for (at = first; at != last; at += 4 * words()) {
        unsigned is = is_point(at);
        take(at, &target, &time);
        if (is) {
            learn(target, time);
            write_line("learnt", 1);
        } else {
            if (time)
                update();
            if (before) {
                open_store();
                write_line("opened", 3);
            }
            predict();
        }
        before = is;
    }
    number[0] = (uint32_t)used();
    write_line("stack", 1);
    say_blocks();
    write_line("done", 0);
    board_exit(0);
}
