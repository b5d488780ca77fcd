/* Which anchors predict: those nearest to the query. */

#include "twin_model.h"

#if TWIN_NEIGHBOURS

/* A key is a distance above the number of an anchor, so of equally near ones the earlier is
 * smaller: the distance is below 2^42, the number below 2^12. */
enum { NUMBER_BITS = 12 };

static uint64_t twin_distance(const twin_model *model, const int16_t *query, twin_flash anchor) {
    uint64_t sum = 0;
    unsigned i;
    for (i = 0; i < model->features; i++) {
        int32_t step = (int32_t)query[i] - twin_i16(anchor);
        uint32_t size = step < 0 ? 0 - (uint32_t)step : (uint32_t)step;
        sum += size * size; /* below 2^32 */
        anchor += 2;
    }
    return sum;
}

/* Let the key at `at` sink in a heap of `count` keys with the largest on top. */
static void twin_sink(uint64_t *heap, unsigned count, unsigned at) {
    uint64_t key = heap[at];
    unsigned below;
    while ((below = 2 * at + 1) < count) {
        if (below + 1 < count && heap[below + 1] > heap[below])
            below++;
        if (heap[below] <= key)
            break;
        heap[at] = heap[below];
        at = below;
    }
    heap[at] = key;
}

static void twin_heap(uint64_t *heap, unsigned count) {
    unsigned at;
    for (at = count / 2; at-- > 0;)
        twin_sink(heap, count, at);
}

void twin_nearest(const twin_model *model, const int16_t *query, twin_flash anchors, unsigned owned,
                  unsigned chosen, uint64_t *found) {
    unsigned i;
    for (i = 0; i < owned; i++) {
        uint64_t key = twin_distance(model, query, anchors) << NUMBER_BITS | i;
        anchors += model->anchor_size;
        if (i < chosen) {
            found[i] = key;
            if (i + 1 == chosen)
                twin_heap(found, chosen);
        } else if (key < found[0]) {
            found[0] = key;
            twin_sink(found, chosen, 0);
        }
    }
    for (i = 0; i < chosen; i++)
        found[i] &= ((uint64_t)1 << NUMBER_BITS) - 1;
    twin_heap(found, chosen);
    for (i = chosen; i-- > 1;) {
        uint64_t largest = found[0];
        found[0] = found[i];
        found[i] = largest;
        twin_sink(found, i, 0);
    }
}

#endif
