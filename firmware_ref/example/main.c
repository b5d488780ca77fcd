/* Predict with a pack: ./example model.twin 0.5 -1.25 ... On a device the pack is a const array in
 * flash; the rest is the same. */

#include "twin.h"
#include <stdio.h>
#include <stdlib.h>

static uint32_t pack[1 << 18], scratch[1 << 14]; /* 1 MB and 64 KB: generous for a desktop */

int main(int count, char **words) {
    float x[64] = {0};
    twin_model model;
    twin_prediction out;
    twin_status status = TWIN_ERROR_TRUNCATED;
    FILE *file = count > 1 ? fopen(words[1], "rb") : NULL;
    if (file) {
        status = twin_open(&model, pack, (uint32_t)fread(pack, 1, sizeof pack, file));
        (void)fclose(file);
    }
    if (status == TWIN_OK && (model.features > 64 || count != model.features + 2))
        status = TWIN_ERROR_QUERY;
    for (int i = 2; i < count && status == TWIN_OK; i++)
        x[i - 2] = strtof(words[i], NULL);
    if (status == TWIN_OK)
        status = twin_predict(&model, scratch, sizeof scratch, x, &out, NULL);
    if (status == TWIN_OK)
#if TWIN_INTERVALS /* NaN if the pack has none */
        printf("%.9g %.9g %.9g %.9g\n", (double)out.mean, (double)out.spread, (double)out.low,
               (double)out.high);
#else
        printf("%.9g %.9g\n", (double)out.mean, (double)out.spread);
#endif
    else
        (void)fprintf(stderr, "%s\n", twin_text(status));
    return status == TWIN_OK ? 0 : 1;
}
