/* A kernel of the layers in layers.h; its file defines first
 *
 *     KERNEL, ALIGN    its name, and what its blocks are aligned to
 *     QUERY            its function for the query's share in the first layer
 *     WORK             bytes that its layers work in
 *     FORM             what it has for prepared models, or 0
 *     HAS_LAST         if it has its own last_layer for relu */

#ifndef TWIN_KERNELS_HOST_KERNEL_H
#define TWIN_KERNELS_HOST_KERNEL_H

#include "layers.h"

typedef char work_fits[WORK <= TWIN_WORK_BYTES ? 1 : -1];

/* In each of these `silu` is known at compile time. The layer is a copy, as a compiler may assume
 * that writing to the scratch changes any other. */
static void kernel_first(const twini_layer *given, const twini_pairs *pairs, void *out,
                         int32_t *totals) {
    const twini_layer layer = *given;
    if (layer.silu)
        first_layer(&layer, pairs, out, totals, 1);
    else
        first_layer(&layer, pairs, out, totals, 0);
}

static void kernel_further(const twini_layer *given, const void *in, void *out, int32_t *totals) {
    const twini_layer layer = *given;
    if (layer.silu)
        further_layer(&layer, in, out, totals, 1);
#ifdef HAS_LAST
    else if (!out)
        last_layer(&layer, in, totals);
#endif
    else
        further_layer(&layer, in, out, totals, 0);
}

const twin_kernel KERNEL = {
    PAIRS,                             /* pairs */
    4,                                 /* unit */
    ALIGN,                             /* align */
    8,                                 /* partial_bytes */
    4 * PAIRS + 4,                     /* block_bytes */
    QUERY,                             /* query */
    kernel_first,                      /* first */
    kernel_further,                    /* further */
    2 * PAIRS,                         /* room_bytes */
    0,                                 /* lines */
    (WORK + ALIGN - 1) / ALIGN *ALIGN, /* work_bytes */
    FORM,                              /* form */
};

#endif
