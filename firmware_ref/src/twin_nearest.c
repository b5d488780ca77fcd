/* Which anchors predict: those nearest to the query. */

#include "twin_model.h"

#if TWIN_NEIGHBORS

/* A key is a distance above the number of an anchor, so that among equally near ones the earlier is
 * smaller: the distance is below 2^42, the number below 2^12. */
enum { NUMBER_BITS = 12 };

static uint64_t twini_distance(const twin_model *model, const int16_t *query, twin_flash anchor) {
    uint64_t sum = 0;
    unsigned i;
    for (i = 0; i < twini_inputs(model, 0); i++) {
        int32_t step = (int32_t)query[i] - twini_i16(anchor);
        uint32_t size = step < 0 ? 0 - (uint32_t)step : (uint32_t)step;
        sum += size * size; /* below 2^32 */
        anchor += 2;
    }
    return sum;
}

/* Let the key at `at` sink in a heap of `count` keys with the largest on top. */
static void twini_sink(uint64_t *heap, unsigned count, unsigned at) {
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

/* A search is a number of steps of about equal duration: one for each anchor, to keep the
 * nearest in a heap; then, for each of those, one that strips its distance and one that pops the
 * last of them off the heap. */
static void twini_search_once(twin_run *run, twin_flash anchors) {
    uint64_t *found = run->nearest;
    unsigned chosen = run->chosen, step = run->searched;
    if (step < run->owned) {
        const twin_model *model = run->model;
        twin_flash anchor = anchors + (twini_size)step * model->anchor_size;
        uint64_t key = twini_distance(model, run->query, anchor) << NUMBER_BITS | step;
        /* The first ones fill the heap from its end, each above those already there. */
        unsigned at = step < chosen ? chosen - 1 - step : 0;
        if (step < chosen || key < found[0]) {
            found[at] = key;
            twini_sink(found, chosen, at);
        }
    } else if (step - run->owned < chosen) {
        unsigned at = chosen - 1 - (step - run->owned);
        found[at] &= ((uint64_t)1 << NUMBER_BITS) - 1;
        twini_sink(found, chosen, at);
    } else {
        unsigned last = chosen - 1 - (step - run->owned - chosen);
        uint64_t largest = found[0];
        found[0] = found[last];
        found[last] = largest;
        twini_sink(found, last, 0);
    }
}

TWIN_INTERNAL unsigned twini_search(twin_run *run, twin_flash anchors) {
    unsigned left = 16, end = run->owned + 2 * run->chosen;
    while (left-- && run->searched < end) {
        twini_search_once(run, anchors);
        run->searched++;
    }
    return run->searched == end;
}

#endif
