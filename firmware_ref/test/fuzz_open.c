/* Whatever the bytes are, opening and predicting stay within their memory (libFuzzer).
 *
 * Random bytes do not get past the checksums, so each input is also tried with its length and
 * checksums put right: what is fuzzed is the checks behind them, and what passes those is evaluated
 * with the worst queries, with and without neighbours. */

#include "twin.h"
#include "twin_model.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put(uint8_t *at, uint32_t value) {
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
    at[2] = (uint8_t)(value >> 16);
    at[3] = (uint8_t)(value >> 24);
}

static void repair(uint8_t *pack, uint32_t size) {
    uint32_t behind = 48 + 12 * (uint32_t)(pack[6] | pack[7] << 8);
    if (behind > size)
        behind = size;
    put(pack, 0x4E495754u); /* TWIN */
    pack[4] = 1;
    pack[5] = 0;
    put(pack + 8, size);
    put(pack + 16, twin_crc(pack + behind, size - behind, size));
    put(pack + 12, twin_crc(pack, behind, 12));
}

/* Estimates must lie where FORMAT.md proves them to be, and so must their mean. */
static void ask(const twin_model *model, int16_t feature) {
    uint32_t size = twin_scratch_size(model);
    void *scratch = malloc(size);
    int32_t *members = (int32_t *)malloc(sizeof(int32_t) * model->members);
    int16_t *query = (int16_t *)malloc(sizeof(int16_t) * model->features);
    int32_t low = INT32_MAX, high = INT32_MIN;
    unsigned i;
    twin_raw out;
    for (i = 0; i < model->features; i++)
        query[i] = (int16_t)(i % 2 ? -feature : feature);
    if (twin_predict_raw(model, scratch, size, query, &out, members) || out.count != model->members)
        abort();
    for (i = 0; i < out.count; i++) {
        low = members[i] < low ? members[i] : low;
        high = members[i] > high ? members[i] : high;
    }
    if (out.mean < low || out.mean > high || (low == high && out.root))
        abort();
    free(query);
    free(members);
    free(scratch);
}

static void try_pack(const uint8_t *pack, uint32_t size) {
    twin_model model;
    if (twin_open(&model, pack, size))
        return;
    ask(&model, 32767);
    ask(&model, -1);
    twin_set_neighbours(&model, model.neighbours ? 0 : 1);
    ask(&model, -32767);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint32_t whole = (uint32_t)size & ~(uint32_t)15;
    uint8_t *pack = (uint8_t *)malloc(size ? size : 1);
    memcpy(pack, data, size);
    try_pack(pack, (uint32_t)size);
    free(pack);
    if (whole < 48)
        return 0;
    pack = (uint8_t *)malloc(whole);
    memcpy(pack, data, whole);
    repair(pack, whole);
    try_pack(pack, whole);
    free(pack);
    return 0;
}
