/* Packs of several targets: a model of one of them, and reading a run of all. */

#include "twin_model.h"

/* Make another target the first of a model, and the only one. */
static void twini_select(twin_model *one, unsigned target) {
#if TWIN_TARGETS > 1
#if TWIN_TARGET_CURVE
    twin_flash curve = one->curves;
#endif
    unsigned i;
    for (i = 0; i < target; i++) {
#if TWIN_TARGET_CURVE
        if (curve)
            curve += (twini_size)twini_curve_bytes(twini_u16(curve + TWIN_CURVE_BINS));
#endif
#if TWIN_INTERVALS
        one->quantile = one->quantiles[i];
        if (one->intervals)
            one->intervals +=
                (twini_size)twini_intervals_bytes(twini_u32(one->intervals + TWIN_LEVEL_COUNT));
#endif
    }
#if TWIN_TARGET_CURVE
    one->curves = curve;
    one->target_curve = curve && twini_u16(curve + TWIN_CURVE_BINS) ? curve : 0;
#endif
    one->units += 8 * target;
    one->values += 4 * target * (twini_size)one->anchor_count;
    one->first = (uint8_t)(one->first + target);
    one->targets = 1;
#else
    (void)one;
    (void)target;
#endif
}

twin_status twin_select_target(twin_model *one, const twin_model *model, unsigned target) {
    one->kernel = 0;
    if (!model->kernel)
        return TWIN_ERROR_MODEL;
    if (target >= twini_targets(model))
        return TWIN_ERROR_TARGETS;
    *one = *model;
    twini_select(one, target);
    return TWIN_OK;
}

TWIN_INTERNAL void twini_view_run(twin_run *of, twin_model *one, const twin_run *run,
                                  unsigned target) {
    twin_status status = twini_status(run);
    *of = *run;
    of->model = one;
    if (run->kernel) { /* it was begun */
        status = twin_select_target(one, run->model, target);
        if (!status && target < TWIN_TARGETS)
            of->sums[0] = run->sums[target];
    }
    if (run->kernel && !status)
        return;
    twini_begin_sums(of->sums);
    of->count = 0;
#if TWIN_INTERVALS
    of->outside = 0;
    of->missing = 0;
#endif
    (void)twini_refuse(of, status);
}

twin_status twin_read_target_raw(const twin_run *run, unsigned target, twin_raw *out) {
    twin_model one;
    twin_run of;
    twini_view_run(&of, &one, run, target);
    return twin_read_raw(&of, out);
}

twin_status twin_read_targets_raw(const twin_run *run, twin_raw *out, unsigned count) {
    unsigned i;
    for (i = 0; i < count; i++)
        (void)twin_read_target_raw(run, twini_entry(run, count, i), out + i);
    return twini_all_status(run, count);
}

twin_status twin_predict_targets_raw(const twin_model *model, void *scratch, uint32_t size,
                                     const int16_t *query, twin_raw *out, unsigned count) {
    twin_run run;
    (void)twin_begin_raw(&run, model, scratch, size, query, 0); /* refused: no steps */
    (void)twin_step(&run, TWIN_ALL);
    return twin_read_targets_raw(&run, out, count);
}

#if TWIN_FLOAT

twin_status twin_read_target(const twin_run *run, unsigned target, twin_prediction *out) {
    twin_model one;
    twin_run of;
    twini_view_run(&of, &one, run, target);
    return twin_read(&of, out);
}

twin_status twin_read_targets(const twin_run *run, twin_prediction *out, unsigned count) {
    unsigned i;
    for (i = 0; i < count; i++)
        (void)twin_read_target(run, twini_entry(run, count, i), out + i);
    return twini_all_status(run, count);
}

twin_status twin_predict_targets(const twin_model *model, void *scratch, uint32_t size,
                                 const float *x, twin_prediction *out, unsigned count) {
    twin_run run;
    (void)twin_begin(&run, model, scratch, size, x, 0);
    (void)twin_step(&run, TWIN_ALL);
    return twin_read_targets(&run, out, count);
}

#endif
