/* Predict with a pack: ./example model.twin 0.5 -1.25 ... More numbers than the pack has features
 * are further queries. On a device the pack is a const array in flash; the rest is the same. */

#include "twin_release.h"
#include <stdio.h>
#include <stdlib.h>

static uint32_t pack[1 << 18], scratch[1 << 14]; /* 1 MB and 64 KB: generous for a desktop */

int main(int count, char **words) {
    float x[64] = {0};
    int at, i, refused = 0;
    twin_model model;
    twin_prediction out;
    twin_status opened = TWIN_ERROR_TRUNCATED, status;
    FILE *file = count > 1 ? fopen(words[1], "rb") : NULL;
    if (file) {
        opened = twin_open(&model, pack, (uint32_t)fread(pack, 1, sizeof pack, file));
        (void)fclose(file);
    }
    if (opened == TWIN_OK && (model.features > 64 || count < 3 || (count - 2) % model.features))
        opened = TWIN_ERROR_QUERY;
    if (opened == TWIN_OK)
        opened = twin_self_test(&model, pack, scratch, sizeof scratch);
    if (opened != TWIN_OK && opened != TWIN_ERROR_UNTESTED) { /* older packs have no self-test */
        (void)fprintf(stderr, "%s\n", twin_text(opened));
        return 1;
    }
    for (at = 2; at < count; at += model.features) { /* one may be refused, and the next answered */
        for (i = 0; i < model.features; i++)
            x[i] = strtof(words[at + i], NULL);
        status = twin_predict(&model, scratch, sizeof scratch, x, &out, NULL);
        if (status != TWIN_OK)
            refused = fprintf(stderr, "%s\n", twin_text(status)) != 0;
        else
#if TWIN_INTERVALS /* NaN if the pack has none */
            printf("%.9g %.9g %.9g %.9g\n", (double)out.mean, (double)out.spread, (double)out.low,
                   (double)out.high);
#else
            printf("%.9g %.9g\n", (double)out.mean, (double)out.spread);
#endif
    }
    return refused;
}
