/* The float edges: a query in, a prediction out.
 *
 * Every operation rounds to float separately. A compiler may want to fuse a product with a sum, or
 * to keep more digits than a float has: a volatile in between prevents both. What no code can
 * prevent is refused here. */

#include "twin_arith.h"
#include "twin_model.h"

#if TWIN_FLOAT

#if defined(__FAST_MATH__) || defined(_M_FP_FAST)
#error "-ffast-math changes the bits of predictions"
#endif
#if defined(__FINITE_MATH_ONLY__)
#if __FINITE_MATH_ONLY__
#error "-ffinite-math-only changes what infinity and NaN do"
#endif
#endif
#if defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) || defined(__NO_SIGNED_ZEROS__)
#error "-funsafe-math-optimizations and its parts change the bits of predictions"
#endif

/* Whether the compiler keeps no extra digits, and whether it fuses. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__FLT_EVAL_METHOD__)
#define TWIN_ROUNDS (__FLT_EVAL_METHOD__ == 0)
#else
#define TWIN_ROUNDS 0
#endif
#if defined(__FP_FAST_FMAF)
#define TWIN_FUSES 1
#else
#define TWIN_FUSES 0
#endif

static float twini_f32(twin_flash at) {
    uint32_t bits = twini_u32(at);
    float value;
    TWIN_COPY(&value, &bits, sizeof value);
    return value;
}

/* A product that may be followed by a sum. */
static float twini_rounded(float value) {
#if TWIN_ROUNDS && !TWIN_FUSES
    return value;
#else
    volatile float rounded = value;
    return rounded;
#endif
}

/* A result that is followed by nothing to fuse with. */
static float twini_alone(float value) {
#if TWIN_ROUNDS
    return value;
#else
    return twini_rounded(value);
#endif
}

/* To the nearest integer, halves away from zero, clamped to the range of a feature. */
static int32_t twini_quantise(float t) {
    int32_t twice;
    if (t >= TWIN_LARGEST)
        return TWIN_LARGEST;
    if (t <= -TWIN_LARGEST)
        return -TWIN_LARGEST;
    twice = (int32_t)(t + t); /* exact: halves are now integers */
    return (twice + 1 - (twice < 0)) >> 1;
}

/* By the bits, as a compiler may optimise a comparison away. */
static unsigned twini_is_nan(float value) {
    uint32_t bits;
    TWIN_COPY(&bits, &value, sizeof bits);
    return bits << 1 > 0xFF000000u;
}

twin_status twin_begin(twin_run *run, const twin_model *model, void *scratch, uint32_t size,
                       const float *x, int32_t *members) {
    twin_status status = twini_begin(run, model, scratch, size, members);
    twin_flash scaling = status ? 0 : model->scaling;
    unsigned i;
    for (i = 0; !status && i < model->features; i++) {
        float t = twini_alone(x[i] - twini_f32(scaling));
        t = twini_rounded(t * twini_f32(scaling + 4));
        /* NaN only if x is NaN: the numbers in the pack are finite. */
        status =
            twini_set_feature(run, i, (int16_t)(twini_is_nan(t) ? INT16_MIN : twini_quantise(t)));
        scaling += 8;
    }
    return status;
}

static float twini_nan(void) {
    uint32_t bits = 0x7FC00000u;
    float nan;
    TWIN_COPY(&nan, &bits, sizeof nan);
    return nan;
}

float twin_target(const twin_model *model, int32_t estimate) {
    twin_flash scaling = twini_scaling(model);
    float product;
    if (!model->kernel)
        return twini_nan();
    estimate = twin_target_raw(model, estimate);
    product = twini_rounded(twini_alone((float)estimate) * twini_f32(scaling + 4));
    return twini_alone(product + twini_f32(scaling));
}

TWIN_SHARED float twini_in_units(const twin_model *model, uint32_t distance, uint16_t parts) {
    float all = twini_alone(twini_alone((float)distance) * twini_f32(twini_scaling(model) + 4));
    return twini_alone(all / twini_alone((float)parts));
}

#if TWIN_TARGET_CURVE
TWIN_SHARED float twini_deviation(const twin_model *model, int32_t mean, uint32_t distance,
                                  uint16_t parts) {
    if (model->target_curve) { /* half of what lies between both sides of the mean */
        distance /= parts;
        parts = 2;
        distance = (uint32_t)twin_target_raw(model, twini_above(mean, distance)) -
                   (uint32_t)twin_target_raw(model, twini_below(mean, distance));
    }
    return twini_in_units(model, distance, parts);
}
#else
#define twini_deviation(model, mean, distance, parts) twini_in_units(model, distance, parts)
#endif

#if TWIN_INTERVALS && (TWIN_STORE || TWIN_TARGET_CURVE)
TWIN_INTERNAL int32_t twini_target_of(const twin_model *model, float value) {
    twin_flash scaling = twini_scaling(model);
    float t = twini_alone(value - twini_f32(scaling)), rest;
    int32_t whole;
    t = twini_alone(t / twini_f32(scaling + 4));
    if (!(t < 1073741824.0f && t > -1073741824.0f)) /* also false for NaN */
        return INT32_MIN;
    whole = (int32_t)t;
    rest = twini_alone(t - twini_alone((float)whole)); /* exact */
    return twin_estimate_raw(model, whole + (rest >= 0.5f) - (rest <= -0.5f));
}
#endif

TWIN_SHARED void twini_report(const twin_run *run, const twin_raw *raw, twin_prediction *out) {
    const twin_model *model = run->model;
    out->mean = twini_nan();
    out->spread = out->mean;
    if (run->count) {
        out->mean = twin_target(model, raw->mean);
        out->spread = twini_deviation(model, raw->mean, raw->root, raw->count);
    }
#if TWIN_INTERVALS
    out->scale = twini_nan();
    out->low = out->scale;
    out->high = out->scale;
    if (raw->intervals) {
        out->scale = twini_deviation(model, raw->mean, raw->scale, 16);
        out->low = twin_target(model, raw->low);
        out->high = twin_target(model, raw->high);
    }
    out->outside = run->outside;
    out->missing = run->missing;
    out->points = raw->points;
    out->intervals = raw->intervals;
#endif
}

twin_status twin_read(const twin_run *run, twin_prediction *out) {
    twin_raw raw;
#if TWIN_INTERVALS && defined(__AVR__) /* as below */
    __builtin_memset(&raw, 0, sizeof raw);
#endif
    twini_combine(run, &raw);
    twini_report(run, &raw, out);
    return twini_status(run);
}

twin_status twin_predict(const twin_model *model, void *scratch, uint32_t size, const float *x,
                         twin_prediction *out, int32_t *members) {
    twin_run run;
#if TWIN_INTERVALS && defined(__AVR__) /* its compiler warns of unset fields */
    __builtin_memset(&run, 0, sizeof run);
#endif
    (void)twin_begin(&run, model, scratch, size, x, members); /* a refused run has no steps */
    (void)twin_step(&run, TWIN_ALL);
    return twin_read(&run, out);
}

#endif
