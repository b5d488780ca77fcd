/* Eight threads share one model, each with its own scratch; all predictions equal those of a single
 * thread, made before the model is prepared. Takes a pack; prints how many predictions were made,
 * and whether the model was prepared. */

#include "twin_host.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 8, QUERIES = 50, ROUNDS = 50 }; /* 20,000 predictions in all */

typedef struct job {
    const twin_model *model;
    const float *queries;
    uint32_t (*expected)[2]; /* bits of mean and spread */
    unsigned wrong;
} job;

static twin_status bits_of(const twin_model *model, void *scratch, uint32_t size, const float *x,
                           uint32_t *bits) {
    twin_prediction found;
    twin_status status = twin_predict(model, scratch, size, x, &found, NULL);
    memcpy(bits, &found, 8);
    return status;
}

static void *work(void *argument) {
    job *mine = (job *)argument;
    uint32_t size = twin_scratch_size(mine->model);
    void *scratch = malloc(size);
    unsigned i;
    for (i = 0; i < QUERIES * ROUNDS; i++) {
        const float *x = mine->queries + (i % QUERIES) * mine->model->features;
        uint32_t found[2];
        if (!scratch || bits_of(mine->model, scratch, size, x, found) ||
            found[0] != mine->expected[i % QUERIES][0] ||
            found[1] != mine->expected[i % QUERIES][1])
            mine->wrong++;
    }
    free(scratch);
    return NULL;
}

int main(int count, char **names) {
    static uint32_t pack[1 << 14], scratch[1 << 14];
    static uint64_t memory[1 << 17]; /* tables of silu take 64 KB each */
    static float queries[QUERIES * 64];
    static uint32_t expected[QUERIES][2];
    pthread_t thread[THREADS];
    job jobs[THREADS];
    twin_model model;
    twin_status prepared;
    unsigned i, wrong = 0;
    size_t size;
    FILE *file = count == 2 ? fopen(names[1], "rb") : NULL;
    if (!file)
        return 2;
    size = fread(pack, 1, sizeof pack, file);
    (void)fclose(file);
    if (twin_open(&model, pack, (uint32_t)size) || model.features > 64)
        return 2;
    for (i = 0; i < QUERIES * 64; i++)
        queries[i] = (float)(i % 97) - 48.0f;
    for (i = 0; i < QUERIES; i++)
        if (bits_of(&model, scratch, sizeof scratch, queries + i * model.features, expected[i]))
            return 2;
    prepared = twin_prepare(&model, memory, sizeof memory);
    for (i = 0; i < THREADS; i++) {
        jobs[i].model = &model;
        jobs[i].queries = queries;
        jobs[i].expected = expected;
        jobs[i].wrong = 0;
        if (pthread_create(&thread[i], NULL, work, &jobs[i]))
            return 2;
    }
    for (i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        wrong += jobs[i].wrong;
    }
    printf("%d predictions, %u wrong, %sprepared\n", THREADS * QUERIES * ROUNDS, wrong,
           prepared == TWIN_OK ? "" : "not ");
    return wrong ? 1 : 0;
}
