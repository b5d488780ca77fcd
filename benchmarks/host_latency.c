/* A program outside the tree, for host_latency.py: it finds the runtime by find_package and
 * predicts with it as documented.
 *
 *     host_latency PACK QUERIES ROUNDS
 *
 * QUERIES are rows of float32. Prints the kernel and the median time of one query in nanoseconds,
 * over ROUNDS passes, each query timed separately; then a sum of all predictions, so that none of
 * them can be optimised away. */

#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <twin_host.h>

static uint32_t pack[1 << 18];
static float queries[1 << 16];

static int by_size(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

static size_t read_file(const char *name, void *to, size_t most) {
    FILE *file = fopen(name, "rb");
    size_t size = file ? fread(to, 1, most, file) : 0;
    if (file)
        (void)fclose(file);
    return size;
}

int main(int count, char **words) {
    size_t size = count == 4 ? read_file(words[1], pack, sizeof pack) : 0;
    size_t i, total, rows, bytes = size ? read_file(words[2], queries, sizeof queries) : 0;
    twin_model model;
    double *taken, sum = 0;
    uint32_t needed;
    void *scratch, *prepared;
    if (!bytes || twin_open(&model, pack, (uint32_t)size) != TWIN_OK)
        return 1;
    needed = twin_prepared_size(&model);
    prepared = malloc(needed);
    if (!prepared || (needed && twin_prepare(&model, prepared, needed) != TWIN_OK))
        return 1;
    rows = bytes / sizeof *queries / model.features;
    total = rows * (size_t)atoi(words[3]);
    needed = twin_scratch_size(&model);
    scratch = malloc(needed);
    taken = (double *)malloc(total * sizeof *taken);
    for (i = 0; taken && i < total; i++) {
        const float *x = queries + i % rows * model.features;
        twin_prediction out;
        double start = now();
        if (twin_predict(&model, scratch, needed, x, &out, NULL) != TWIN_OK)
            return 1;
        taken[i] = now() - start;
        sum += (double)out.mean + (double)out.spread;
    }
    if (!taken || !total)
        return 1;
    qsort(taken, total, sizeof *taken, by_size);
    printf("%s %.1f %.9g\n", twin_kernel_name(&model, 0), taken[total / 2], sum);
    free(taken);
    free(scratch);
    free(prepared);
    return 0;
}
