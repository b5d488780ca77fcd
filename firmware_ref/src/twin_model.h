/* What the files of the core know of each other. */

#ifndef TWIN_MODEL_H
#define TWIN_MODEL_H

#include "twin_kernel.h"
#include "twin_read.h"

/* CRC-32 of `size` bytes, of which those from `zero` to `zero + 3` are taken as zero. */
uint32_t twin_crc(twin_flash at, uint32_t size, uint32_t zero);

/* Faults 12 to 19 of FORMAT.md, section 8: the numbers in the sections. */
twin_status twin_check(const twin_model *model);

/* Sum of the magnitudes of the i8, or where `wide` i16, from `at` up to `end`; of what should be
 * zero it is zero. */
uint32_t twin_sum(twin_flash at, twin_flash end, unsigned wide);

/* Describe hidden layer `depth` of the twin at `record`; returns what lies behind it: the next
 * layer, or the output's weights. `at` is its place: behind the head, or behind the layer before.
 */
twin_flash twin_layer_at(twin_layer *layer, const twin_model *model, twin_flash record,
                         twin_flash at, unsigned depth);

/* Bytes in the head of a twin, in front of its first layer, and where things are in it. */
#define TWIN_HEAD            16
#define TWIN_HEAD_FRACTION   3
#define TWIN_HEAD_SHIFT      6
#define TWIN_HEAD_MULTIPLIER 8

/* A function that makes its only caller larger if it becomes part of it. */
#if defined(__GNUC__)
#define TWIN_APART __attribute__((noinline)) static
#else
#define TWIN_APART static
#endif

/* What the model may be, as far as this build knows: twin_open refuses the rest. */
static inline unsigned twin_is_silu(const twin_model *model) {
    return TWIN_SILU ? model->silu : 0;
}
static inline unsigned twin_is_wide(const twin_model *model) {
    return TWIN_INT16 ? model->wide : 0;
}

/* Bytes in a row of `n` weights. */
static inline unsigned twin_row(const twin_model *model, unsigned n) {
    return ((n + 3) & ~3u) << twin_is_wide(model);
}

/* How many of a twin's anchors predict. */
static inline unsigned twin_choose(const twin_model *model, unsigned owned) {
    unsigned most = TWIN_NEIGHBOURS && model->neighbours ? model->neighbours : owned;
    return most < owned ? most : owned;
}

/* Put the numbers of the `chosen` of `owned` anchors at `anchors` that are nearest to the query
 * into `found`, in ascending order. */
#if TWIN_NEIGHBOURS
void twin_nearest(const twin_model *model, const int16_t *query, twin_flash anchors, unsigned owned,
                  unsigned chosen, uint64_t *found);
#endif

/* Lay out the scratch and start in front of the first twin. The query goes to run->query. */
twin_status twin_start(twin_run *run, const twin_model *model, void *scratch, uint32_t size,
                       int32_t *members);

#endif
