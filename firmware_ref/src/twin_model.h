/* What the files of the core know of each other. */

#ifndef TWIN_MODEL_H
#define TWIN_MODEL_H

#include "twin_kernel.h"
#include "twin_read.h"

/* CRC-32 of `size` bytes, of which those from `zero` to `zero + 3` are taken as zero. */
uint32_t twin_crc(twin_flash at, uint32_t size, uint32_t zero);

/* Faults 12 to 19 of FORMAT.md, section 8: the numbers in the sections. */
twin_status twin_check(const twin_model *model);

/* Whether all bytes from `at` up to `end` are zero. */
int twin_is_zero(twin_flash at, twin_flash end);

/* Describe hidden layer `depth` of the twin at `record`; returns what lies behind it: the next
 * layer, or the output's weights. `at` is its place: behind the head, or behind the layer before.
 */
twin_flash twin_layer_at(twin_layer *layer, const twin_model *model, twin_flash record,
                         twin_flash at, uint8_t depth);

/* Bytes in the head of a twin, in front of its first layer, and where things are in it. */
#define TWIN_HEAD            16
#define TWIN_HEAD_FRACTION   3
#define TWIN_HEAD_SHIFT      6
#define TWIN_HEAD_MULTIPLIER 8

/* Bytes in a row of `n` weights. */
static inline uint32_t twin_row(const twin_model *model, uint16_t n) {
    return twin_align(n, 4) << model->wide;
}

/* Put the numbers of the `count` of `owned` anchors at `anchors` that are nearest to the query into
 * `found`, in ascending order. */
#if TWIN_NEIGHBOURS
void twin_nearest(const twin_model *model, const int16_t *query, twin_flash anchors, uint16_t owned,
                  uint16_t count, uint64_t *found);
#endif

/* Lay out the scratch and start at the first twin; the query is in run->query already once this was
 * called with a scratch that is large enough. */
twin_status twin_start(twin_run *run, const twin_model *model, void *scratch, uint32_t size,
                       int32_t *members);

#endif
