/* Predictions in bulk, each with the interval that the model has at that moment, as in FORMAT.md.
 */

#include "twin_watch.h"
enum { RING = 256 };
static int32_t end(int64_t at) {
    return at > INT32_MAX ? INT32_MAX : at < INT32_MIN ? INT32_MIN : (int32_t)at;
}
void drive(twin_watch *watch, twin_model *model, uint32_t count, uint32_t late, int clear,
           const int32_t *mean, const uint32_t *scale, const uint8_t *outside, const int32_t *truth,
           uint8_t *missed, uint32_t *flags, uint32_t *quantile);
void drive(twin_watch *watch, twin_model *model, uint32_t count, uint32_t late, int clear,
           const int32_t *mean, const uint32_t *scale, const uint8_t *outside, const int32_t *truth,
           uint8_t *missed, uint32_t *flags, uint32_t *quantile) {
    static twin_raw ring[RING];
    uint32_t i;
    for (i = 0; i < count; i++) {
        twin_raw *now = ring + i % RING;
        int64_t half = (int64_t)(((uint64_t)model->quantile * scale[i]) >> 20);
        if (half > INT32_MAX)
            half = INT32_MAX;
        now->mean = mean[i];
        now->scale = scale[i];
        now->low = end(mean[i] - half);
        now->high = end(mean[i] + half);
        now->outside = outside[i];
        now->intervals = 1;
        quantile[i] = model->quantile;
        twin_watch_add_prediction_raw(watch, model, now);
        if (i >= late) {
            const twin_raw *then = ring + (i - late) % RING;
            missed[i - late] = truth[i - late] < then->low || truth[i - late] > then->high;
            twin_watch_add_target_raw(watch, model, then, truth[i - late]);
        }
        flags[i] = twin_watch_flags(watch);
        if (clear)
            twin_watch_clear(watch, flags[i]);
    }
}
