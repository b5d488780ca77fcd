/* Counts the instructions of one prediction with each of several packs. The image has the packs
 * one after the other, each padded to a multiple of 16 bytes, and then one query for each.
 *
 * Lines are those of main.c, except
 *
 *     empty COUNTS      of measuring nothing
 *     counted COUNTS    of twin_predict, for each pack
 *     done */

#include "board.h"
#include "../../src/twin_read.h"

static twin_model model;
static twin_prediction out;
static uint32_t number[1];

#include "harness.h"

/* Predict from the query at `at` and return where the next one is. */
static twin_flash predict(twin_flash at) {
    uint32_t size = twin_scratch_size(&model);
    size_t query = 4 * (size_t)model.features, estimates = 4 * (size_t)model.members;
    uint8_t *memory = (uint8_t *)board_memory((size_t)size + query + estimates);
    uint32_t *feature;
    unsigned i;
    if (!memory)
        stop("out of memory\n");
    feature = (uint32_t *)(void *)(memory + estimates);
    for (i = 0; i < model.features; i++, at += 4)
        feature[i] = twini_u32(at);
    number[0] = board_counter();
    if (twin_predict(&model, memory + estimates + query, size, (const float *)(void *)feature, &out,
                     (int32_t *)(void *)memory))
        stop("refused\n");
    number[0] = board_counter() - number[0];
    write_line("counted", 1);
    return at;
}

int main(void) {
    twin_flash pack = PLACE(board_pack), end = PLACE(board_queries), at = end + 4;
    board_start_counter();
    number[0] = board_counter();
    number[0] = board_counter() - number[0];
    write_line("empty", 1);
    while (pack != end) {
        uint32_t size = twini_u32(pack + 8);
        if (twin_open(&model, pack, size))
            stop("refused\n");
        at = predict(at);
        pack += (twini_size)twini_align(size, 16);
    }
    write_line("done", 0);
    board_exit(0);
}
