/* The float edges: a query in, a prediction out.
 *
 * Every operation rounds to float by itself. A compiler may want to fuse a product with a sum, or
 * to keep more digits than a float has: a volatile in between forbids both. */

#include "twin_arith.h"
#include "twin_model.h"

#if TWIN_FLOAT

#ifdef __FAST_MATH__
#error "-ffast-math changes the bits of predictions"
#endif

static float twin_f32(twin_flash at) {
    uint32_t bits = twin_u32(at);
    float value;
    TWIN_COPY(&value, &bits, sizeof value);
    return value;
}

static float twin_rounded(float value) {
#if defined(__GNUC__) && !defined(__clang__) && __FLT_EVAL_METHOD__ == 0 && !defined(__FP_FAST_FMAF)
    return value; /* there is nothing to fuse or to keep */
#else
    volatile float rounded = value;
    return rounded;
#endif
}

/* To the nearest integer, halves away from zero, limited to what a feature can be. */
static int32_t twin_quantise(float t) {
    int32_t twice;
    if (t >= TWIN_LARGEST)
        return TWIN_LARGEST;
    if (t <= -TWIN_LARGEST)
        return -TWIN_LARGEST;
    twice = (int32_t)(t + t); /* the sum is exact, and so is what decides: halves are whole now */
    return (twice + (twice < 0 ? -1 : 1)) / 2;
}

twin_status twin_begin(twin_run *run, const twin_model *model, void *scratch, uint32_t size,
                       const float *x, int32_t *members) {
    twin_status status = twin_start(run, model, scratch, size, members);
    twin_flash scaling = model->scaling;
    unsigned i;
    for (i = 0; i < model->features && !status; i++) {
        float t = twin_rounded(x[i] - twin_f32(scaling));
        t = twin_rounded(t * twin_f32(scaling + 4));
        if (t != t) /* only where x is: the pack's numbers are finite */
            return TWIN_ERROR_QUERY;
        run->query[i] = (int16_t)twin_quantise(t);
        scaling += 8;
    }
    return status;
}

float twin_target(const twin_model *model, int32_t estimate) {
    twin_flash scaling = model->scaling + 8 * (uint32_t)model->features;
    return twin_rounded((float)estimate * twin_f32(scaling + 4)) + twin_f32(scaling);
}

void twin_read(const twin_run *run, twin_prediction *out) {
    const twin_model *model = run->model;
    float gain = twin_f32(model->scaling + 8 * (uint32_t)model->features + 4);
    twin_raw raw;
    twin_read_raw(run, &raw);
    out->mean = twin_target(model, raw.mean);
    out->spread = twin_rounded((float)raw.root * gain) / (float)(raw.count ? raw.count : 1);
}

twin_status twin_predict(const twin_model *model, void *scratch, uint32_t size, const float *x,
                         twin_prediction *out, int32_t *members) {
    twin_run run;
    twin_status status = twin_begin(&run, model, scratch, size, x, members);
    if (!status) {
        twin_step(&run, UINT16_MAX);
        twin_read(&run, out);
    }
    return status;
}

#endif
