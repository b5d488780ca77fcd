/* The watch, whatever is added to it, in any order, from any state that can be restored. */

#include "proof.h"

#include "twin_kernel.h"
#include "twin_watch.h"

/* A model as opening leaves it, as far as the watch looks at it: N_FEATURES of them, and N_LEVELS
 * levels of any numbers. Both sections are as long as that. */
static uint32_t scaling[2 * N_FEATURES + 2];
static uint32_t intervals[8 + 2 * N_LEVELS];
static twin_model model;
static twin_watch watch;

static void any_model(void) {
    FILL(scaling, sizeof scaling);
    FILL(intervals, sizeof intervals);
    FILL(&model.quantile, sizeof model.quantile);
    intervals[7] = N_LEVELS;
    scaling[2 * N_FEATURES + 1] = ANY(1, 0x7F7FFFFF);
    model.kernel = &twini_kernel_portable;
    model.scaling = (twin_flash)scaling;
    model.intervals = (twin_flash)intervals;
    model.features = N_FEATURES;
}

static void any_call(void) {
    twin_raw raw;
    twin_prediction prediction;
    float target;
    uint8_t bytes[TWIN_WATCH_BYTES];
    FILL(&raw, sizeof raw);
    FILL(&prediction, sizeof prediction);
    FILL(&target, sizeof target);
    switch (Frama_C_interval(0, 8)) {
    case 0:
        (void)twin_watch_begin(&watch, &model, (uint16_t)ANY(0, 65535));
        break;
    case 1:
        twin_watch_add_prediction_raw(&watch, &model, &raw);
        break;
    case 2:
        twin_watch_add_target_raw(&watch, &model, &raw, (int32_t)ANY(0, UINT32_MAX));
        break;
    case 3:
        twin_watch_add_prediction(&watch, &model, &prediction);
        break;
    case 4:
        twin_watch_add_target(&watch, &model, &prediction, target);
        break;
    case 5:
        (void)twin_watch_coverage(&watch);
        (void)twin_watch_outside(&watch);
        (void)twin_watch_scale(&watch);
        (void)twin_watch_flags(&watch);
        break;
    case 6:
        twin_watch_clear(&watch, ANY(0, UINT32_MAX));
        break;
    case 7:
        twin_watch_save(&watch, bytes);
        //@ assert \initialized(bytes + (0 .. TWIN_WATCH_BYTES - 1));
        break;
    default:
        FILL(bytes, sizeof bytes);
        (void)twin_watch_restore(&watch, &model, bytes);
    }
}

void main(void) {
    any_model();
    while (Frama_C_nondet(0, 1))
        any_call();
    Frama_C_show_each_end(watch.level);
}
