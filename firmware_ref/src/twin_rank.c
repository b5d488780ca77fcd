/* Which outputs of a layer are usually zero, so that kernels may skip them together. Only the speed
 * of a prepared model depends on it, never a bit of a prediction. */

#include "twin_prepared.h"

#if TWIN_HOST

static float twini_dot(const twini_layer *layer, twin_flash row, twin_flash features) {
    int64_t sum = 0;
    uint32_t i;
    for (i = 0; i < layer->inputs; i++)
        sum += twini_weight(layer, row, i) * twini_i16(features + 2 * i);
    return (float)sum;
}

/* The mean activation of an output of the first layer, over the pairs of some anchors. */
static float twini_typical(const twin_model *model, const twini_layer *layer, uint32_t o,
                           unsigned first, unsigned count) {
    float left[TWIN_EIGHT], right[TWIN_EIGHT], bias = (float)twini_i32(layer->bias + 4 * o),
                                               sum = 0;
    unsigned i, k;
    for (i = 0; i < count; i++) {
        twin_flash anchor = model->anchors + (twini_size)(first + i) * model->anchor_size;
        left[i] = twini_dot(layer, layer->weights + o * (twini_size)layer->row, anchor) + bias;
        right[i] = twini_dot(layer, layer->mirror + o * (twini_size)layer->row, anchor);
    }
    for (i = 0; i < count; i++)
        for (k = 0; k < count; k++)
            sum += left[i] + right[k] > 0 ? left[i] + right[k] : 0;
    sum *= (float)twini_i16(layer->multiplier + 2 * o) / (float)(count * count);
    return sum / 65536 / (float)((uint32_t)1 << layer->shift);
}

TWIN_INTERNAL void twini_rank_rows(uint16_t *ranked, const twin_model *model, twin_flash record,
                                   unsigned first, unsigned owned) {
    float usual[TWIN_WIDEST], rank[TWIN_WIDEST];
    twini_layer layer, last;
    twin_flash at = twini_layer_at(&layer, model, record, record + TWIN_HEAD, 0);
    unsigned count = owned < TWIN_EIGHT ? owned : TWIN_EIGHT;
    uint32_t o, i;
    (void)twini_layer_at(&last, model, record, at, 1);
    for (o = 0; o < layer.outputs; o++)
        usual[o] = twini_typical(model, &layer, o, first, count);
    for (o = 0; o < last.outputs; o++) {
        twin_flash row = last.weights + o * (twini_size)last.row;
        float sum = (float)twini_i32(last.bias + 4 * o), size = 1;
        for (i = 0; i < layer.outputs; i++) {
            float weight = (float)twini_weight(&last, row, i);
            sum += weight * usual[i];
            size += weight * weight;
        }
        rank[o] = sum * (sum < 0 ? -sum : sum) / size;
    }
    for (o = 0; o < last.outputs; o++) { /* insertion sort */
        for (i = o; i && rank[ranked[i - 1]] > rank[o]; i--)
            ranked[i] = ranked[i - 1];
        ranked[i] = (uint16_t)o;
    }
}

#endif
