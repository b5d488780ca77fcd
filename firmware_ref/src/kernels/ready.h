/* What kernels share for a prepared model (twin_prepared.h): the shares of the query and of eight
 * anchors in the first layer. A kernel file defines first:
 *
 *     eight_sums    of 32 bits; no_eight, load_eight, keep_eight
 *     add_times     eight 16-bit numbers times one, added to sums
 *     largest       of eight sums
 *     HAS_QUERY     if it has its own ready_query; then it needs no load_eight */

#ifndef TWIN_KERNELS_READY_H
#define TWIN_KERNELS_READY_H

#include "../twin_prepared.h"

#ifndef HAS_QUERY
/* A q + bias, then B q + bias. */
static void ready_query(const twini_ready_twin *twin, const int16_t *query, int32_t *share) {
    uint32_t n = twini_padded(twin->layer[0].outputs), features = twin->features, o, i, second;
    const int16_t *weights = twin->first;
    for (second = 0; second < 2; second++, weights += features * (size_t)n)
        for (o = 0; o < n; o += TWIN_EIGHT) {
            eight_sums sum = load_eight(twin->layer[0].bias + o);
            for (i = 0; i < features; i++)
                sum = add_times(sum, weights + i * (size_t)n + o, query[i]);
            keep_eight(share + second * n + o, sum);
        }
}
#endif

static void ready_anchors(const twini_ready_twin *twin, const int16_t *features_by_eight,
                          int32_t *share) {
    uint32_t n = twini_padded(twin->layer[0].outputs), features = twin->features, o, i, second;
    int32_t *most = share + 2 * TWIN_EIGHT * n;
    for (second = 0; second < 2; second++) {
        const int16_t *weights = twin->first + (second ? 0 : features * (size_t)n);
        for (o = 0; o < n; o++) {
            eight_sums sum = no_eight();
            for (i = 0; i < features; i++)
                sum =
                    add_times(sum, features_by_eight + TWIN_EIGHT * i, weights[i * (size_t)n + o]);
            keep_eight(share + TWIN_EIGHT * (2 * o + second), sum);
            most[second * n + o] = largest(sum);
        }
    }
}

#endif
