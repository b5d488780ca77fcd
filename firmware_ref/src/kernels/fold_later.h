/* Several targets, for a kernel that stores the last layer like any other, and then folds it once
 * for each of them. A kernel file defines the following, and includes this; its twin_kernel has
 * ANY_FIRST and ANY_FURTHER:
 *
 *     FIRST, FURTHER    its functions for one target
 *     NAME(fold)        adds the totals of one target, with its weights in layer->fold, from
 *                       layer->block
 */

#if TWIN_TARGETS > 1

/* Not inlined, as this would only enlarge the stack of a layer. */
TWIN_NOT_INLINE static void NAME(fold_all)(const twini_layer *layer, int32_t *totals) {
    twini_layer one = *layer;
    unsigned left;
    for (left = layer->targets; left; left--) {
        NAME(fold)(&one, totals);
        one.fold += one.apart;
        totals += TWIN_TOTALS;
    }
}

static void NAME(any_first)(const twini_layer *layer, const twini_pairs *pairs, void *out,
                            int32_t *totals) {
    unsigned later = !out && layer->targets > 1;
    FIRST(layer, pairs, later ? layer->block : out, totals);
    if (later)
        NAME(fold_all)(layer, totals);
}

static void NAME(any_further)(const twini_layer *layer, const void *in, void *out,
                              int32_t *totals) {
    unsigned later = !out && layer->targets > 1;
    FURTHER(layer, in, later ? layer->block : out, totals);
    if (later)
        NAME(fold_all)(layer, totals);
}

#define ANY_FIRST   NAME(any_first)
#define ANY_FURTHER NAME(any_further)
#else
#define ANY_FIRST   FIRST
#define ANY_FURTHER FURTHER
#endif
