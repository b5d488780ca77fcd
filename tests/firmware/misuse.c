/* What a program may do wrong with memory of its own; each line printed is a status. */

#include "twin_host.h"
#include "twin_store.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Memory that was never written: all of it is zero. */
static twin_model model, untouched_model;
static twin_run untouched_run;
static twin_opening untouched_opening;
static twin_store untouched_store;
static twin_journal untouched_journal;

static int16_t query[64];
static float row[64];

static void print(const char *what, int status) {
    printf("%s %d\n", what, status);
}

/* A status, and that nothing was predicted. */
static void print_refusal(const char *what, int status, const twin_prediction *out) {
    print(what, out->mean == out->mean || out->spread == out->spread ? 1000 : status);
}

static void zeroed_memory(void) {
    static uint32_t scratch[4096];
    twin_prediction out;
    twin_raw raw;
    uint32_t number;
    memset(&out, 0, sizeof out);
    print_refusal("run", twin_read(&untouched_run, &out), &out);
    print("run raw", twin_read_raw(&untouched_run, &raw));
    print("steps", twin_step(&untouched_run, TWIN_ALL));
    print("opening", twin_open_step(&untouched_opening, 64));
    memset(&out, 0, sizeof out);
    print_refusal("model", twin_predict(&untouched_model, scratch, sizeof scratch, row, &out, 0),
                  &out);
    print("target", twin_target(&untouched_model, 1) == twin_target(&untouched_model, 1));
    memset(&out, 0, sizeof out);
    print_refusal("store",
                  twin_predict_adapted(&untouched_store, scratch, sizeof scratch, row, &out), &out);
    print("store raw",
          twin_predict_adapted_raw(&untouched_store, scratch, sizeof scratch, query, &raw));
    print("store step", twin_store_step(&untouched_store, scratch, sizeof scratch));
    print("learn", twin_learn(&untouched_store, scratch, sizeof scratch, row, 1.0f, 0));
    print("forget", twin_forget(&untouched_store, 0, UINT32_MAX));
    print("forget some", twin_forget(&untouched_store, 1, 2));
    print("forget before", twin_forget_before(&untouched_store, 0));
    print("keep", twin_keep_latest(&untouched_store, 1));
    print("next", twin_journal_next(&untouched_journal, &number));
    print("append", twin_journal_append(&untouched_journal));
    print("clear", twin_journal_clear(&untouched_journal, 0));
}

static void refused_open(const void *pack) {
    twin_model refused = model;
    memset(&refused, 0, sizeof refused);
    print("refused", twin_open(&refused, pack, 40));
    print("target", twin_target(&refused, 1) == twin_target(&refused, 1));
}

/* A run of which the model changes after `done` of its anchors; whether the result is the same. */
static int changed(unsigned first, unsigned second, int prepared_first, int prepared_second,
                   uint16_t done) {
    void *memory, *memories[2] = {0, 0}, *scratch;
    int k, prepared[2];
    unsigned kernels[2];
    uint32_t size;
    twin_run run;
    twin_raw expected, found;
    prepared[0] = prepared_first;
    prepared[1] = prepared_second;
    kernels[0] = first;
    kernels[1] = second;
    for (k = 0; k < 2; k++) {
        if (twin_set_kernel(&model, kernels[k]))
            return 1;
        if (prepared[k] && twin_prepared_size(&model)) {
            size = twin_prepared_size(&model);
            memories[k] = memory = malloc(size);
            if (twin_prepare(&model, memory, size))
                return 0;
        }
        if (!k) {
            size = twin_scratch_size(&model);
            scratch = malloc(size);
            twin_predict_raw(&model, scratch, size, query, &expected, 0);
            twin_begin_raw(&run, &model, scratch, size, query, 0);
            twin_step(&run, done);
        }
    }
    twin_set_neighbors(&model, 1);
    twin_step(&run, TWIN_ALL);
    k = twin_read_raw(&run, &found) == TWIN_OK && found.mean == expected.mean &&
        found.root == expected.root && found.count == expected.count;
    twin_set_neighbors(&model, 0);
    free(scratch);
    free(memories[0]);
    free(memories[1]);
    return k;
}

int main(int argc, char **argv) {
    static uint32_t pack[65536];
    FILE *file = fopen(argv[argc - 1], "rb");
    uint32_t size = (uint32_t)fread(pack, 1, sizeof pack, file);
    unsigned first, second, tried = 0;
    int ready, same = 1;
    uint16_t done;
    fclose(file);
    zeroed_memory();
    refused_open(pack);
    if (twin_open(&model, pack, size))
        return 1;
    for (first = 0; twin_kernel_name(&model, first); first++)
        for (second = 0; twin_kernel_name(&model, second); second++)
            for (ready = 0; ready < 4; ready++)
                for (done = 0; done < 4; done++, tried++)
                    same &= changed(first, second, ready & 1, ready >> 1, done);
    print("same", same);
    return tried < 16;
}
