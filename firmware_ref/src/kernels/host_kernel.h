/* A kernel of the layers in layers.h; its file defines first
 *
 *     KERNEL, ALIGN    its name, and what its blocks are aligned to
 *     NAME(form)       what it has for prepared models
 *     QUERY            its function for the query's share in the first layer, if not plain_query
 *     HAS_LAST         if it has its own NAME(last_layer) for relu, and last_work to work in */

#ifndef QUERY
#define QUERY NAME(query)
static void NAME(query)(const twini_layer *layer, const int16_t *query, void *partial) {
    plain_query(layer, query, partial);
}
#endif

#ifdef HAS_LAST
#define WORK (sizeof(layer_work) > sizeof(last_work) ? sizeof(layer_work) : sizeof(last_work))
#else
#define WORK sizeof(layer_work)
#endif
typedef char NAME(work_fits)[WORK <= TWIN_WORK_BYTES ? 1 : -1];

/* In each of these `silu` is known at compile time. The layer is a copy, as a compiler may assume
 * that writing to the scratch changes any other. */
static void NAME(kernel_first)(const twini_layer *given, const twini_pairs *pairs, void *out,
                               int32_t *totals) {
    const twini_layer layer = *given;
    if (layer.silu)
        NAME(first_layer)(&layer, pairs, out, totals, 1);
    else
        NAME(first_layer)(&layer, pairs, out, totals, 0);
}

static void NAME(kernel_further)(const twini_layer *given, const void *in, void *out,
                                 int32_t *totals) {
    const twini_layer layer = *given;
    if (layer.silu)
        NAME(further_layer)(&layer, in, out, totals, 1);
#ifdef HAS_LAST
    else if (!out && twini_outputs(&layer) == 1)
        NAME(last_layer)(&layer, in, totals);
#endif
    else
        NAME(further_layer)(&layer, in, out, totals, 0);
}

TWIN_DEFINE(KERNEL) = {
    TWIN_BLOCK,                        /* pairs */
    4,                                 /* unit */
    ALIGN,                             /* align */
    8,                                 /* partial_bytes */
    4 * TWIN_BLOCK + 4,                /* block_bytes */
    QUERY,                             /* query */
    NAME(kernel_first),                /* first */
    NAME(kernel_further),              /* further */
    2 * TWIN_BLOCK,                    /* room_bytes */
    0,                                 /* lines */
    (WORK + ALIGN - 1) / ALIGN *ALIGN, /* work_bytes */
    &NAME(form),                       /* form */
};
