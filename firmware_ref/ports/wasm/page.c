/* The runtime for a web page: WebAssembly with one model, without libc.
 *
 * Memory starts with what the program needs. From twin_page_place on it belongs to the page: the
 * pack goes there, followed by queries, predictions and scratch. The page grows the memory as
 * needed. */

#include <stddef.h>

#include "twin.h"

/* Does not compile if runtime.js would read from wrong places. */
typedef char twin_page_layout[offsetof(twin_prediction, scale) == 8 &&
                                      offsetof(twin_prediction, outside) == 20 &&
                                      offsetof(twin_prediction, missing) == 24 &&
                                      offsetof(twin_prediction, intervals) == 30 &&
                                      sizeof(twin_prediction) == 32
                                  ? 1
                                  : -1];

#define EXPORTED __attribute__((visibility("default"), used))

extern unsigned char __heap_base; /* the linker's: where the memory of the program ends */

static twin_model model;

/* The first byte that the page may use, as a multiple of 16. */
EXPORTED uint32_t twin_page_place(void) {
    return ((uint32_t)(uintptr_t)&__heap_base + 15u) & ~15u;
}

/* Open the pack of `size` bytes that the page put at twin_page_place: a status of twin.h. */
EXPORTED int twin_page_open(uint32_t size) {
    return twin_open(&model, (twin_pack)(uintptr_t)twin_page_place(), size);
}

/* Numbers in a query. */
EXPORTED uint32_t twin_page_features(void) {
    return model.features;
}

/* Bytes of scratch that a prediction needs. */
EXPORTED uint32_t twin_page_scratch(void) {
    return twin_scratch_size(&model);
}

/* Let intervals cover this many thousandths: a status. */
EXPORTED int twin_page_coverage(uint32_t thousandths) {
    return twin_set_coverage(&model, (uint16_t)thousandths);
}

/* Predict from floats at `query` into the twin_prediction at `out`: a status. */
EXPORTED int twin_page_predict(const float *query, twin_prediction *out, void *scratch,
                               uint32_t size) {
    return twin_predict(&model, scratch, size, query, out, 0);
}
