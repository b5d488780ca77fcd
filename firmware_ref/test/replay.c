/* Evaluate packs and queries from a file and write the bits of all results to another, for machines
 * on which Python cannot load the library.
 *
 * In, as u32: number of cases; then each case: bytes of the pack, number of queries, the pack, and
 * the queries as f32. Out, as u32: each case's status and, if that is 0, for each query the bits of
 * mean and spread, then raw mean, root and count, then the members. Everything has its own block of
 * memory that is just large enough, so that a sanitizer sees each access outside. If the
 * environment has PREPARED, models are prepared. */

#include "twin_host.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *room(size_t size) {
    void *block = malloc(size ? size : 1);
    if (!block)
        exit(3);
    return block;
}

static void take(FILE *file, void *to, size_t size) {
    if (fread(to, 1, size, file) != size)
        exit(4);
}

static void give(FILE *file, const void *from, size_t size) {
    if (fwrite(from, 1, size, file) != size)
        exit(5);
}

static uint32_t take_number(FILE *file) {
    uint32_t number;
    take(file, &number, sizeof number);
    return number;
}

static void answer(FILE *out, const twin_model *model, void *scratch, const float *x) {
    uint32_t size = twin_scratch_size(model), bits[13];
    size_t bytes = sizeof(int32_t) * model->members;
    int32_t *members = (int32_t *)room(bytes);
    twin_prediction prediction;
    twin_raw raw;
    twin_run run;
    if (twin_begin(&run, model, scratch, size, x, members))
        exit(6);
    while (twin_step(&run, 100)) /* in steps, if there are many */
        ;
    if (twin_read(&run, &prediction) || twin_read_raw(&run, &raw))
        exit(7);
    memcpy(bits, &prediction, 8);
    bits[2] = (uint32_t)raw.mean;
    bits[3] = raw.root;
    bits[4] = raw.count;
    memcpy(bits + 5, &prediction.scale, 12); /* and low, and high */
    bits[8] = prediction.outside;
    bits[9] = prediction.missing;
    bits[10] = raw.scale;
    bits[11] = (uint32_t)raw.low;
    bits[12] = (uint32_t)raw.high;
    give(out, bits, sizeof bits);
    give(out, members, bytes);
    free(members);
}

/* Returns the memory that holds what was prepared, if anything was. */
static void *prepare(twin_model *model) {
#if TWIN_HOST
    uint32_t size = getenv("PREPARED") ? twin_prepared_size(model) : 0;
    void *memory = room(size);
    if (size && twin_prepare(model, memory, size))
        exit(8);
    return memory;
#else
    return room(model->layers);
#endif
}

static void replay(FILE *in, FILE *out) {
    uint32_t size = take_number(in), queries = take_number(in);
    void *pack = room(size);
    twin_model model;
    int32_t status;
    take(in, pack, size);
    status = twin_open(&model, pack, size);
    give(out, &status, sizeof status);
    if (!status) {
        size_t bytes = sizeof(float) * model.features;
        float *x = (float *)room(bytes);
        void *prepared = prepare(&model), *scratch = room(twin_scratch_size(&model));
        for (; queries; queries--) {
            take(in, x, bytes);
            answer(out, &model, scratch, x);
        }
        free(scratch);
        free(prepared);
        free(x);
    }
    free(pack);
}

int main(int count, char **names) {
    FILE *in, *out;
    uint32_t cases;
    if (count != 3 || !(in = fopen(names[1], "rb")))
        return 2;
    if (!(out = fopen(names[2], "wb"))) {
        (void)fclose(in);
        return 2;
    }
    for (cases = take_number(in); cases; cases--)
        replay(in, out);
    (void)fclose(in);
    return fclose(out) ? 5 : 0;
}
